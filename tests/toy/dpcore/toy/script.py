"""How many users are heavy.

A program that a person takes away, here with an example of a question and data.
"""

# %% What it uses
from dpcore.common import wording
from dpcore.data import samples
from dpcore.report.scaffold import BLUE, figure, keep, line, say
from dpcore.toy.heavy import heavy_users
from dpcore.toy.parameters import ToyParameters

# %% The question, as it was entered
parameters = ToyParameters(epsilon=1.0)

# %% The data
data = samples.load("online-retail-lines")

# %% The answer
say("Heavy users", wording.number(heavy_users(data.histogram, parameters.rows)))

# %% Figures
sizes = data.histogram.sizes
fig = figure("Heavy users", "Rows", "Users with more rows")
line(fig, "Users", sizes, [heavy_users(data.histogram, int(size)) for size in sizes], BLUE)
keep(fig, "toy-users")
