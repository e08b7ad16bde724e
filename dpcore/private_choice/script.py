"""What it costs to choose a number privately, directly and on a private copy.

A program that a person takes away (`dpcore.report.script`), here with an example of a question and data.
"""

# %% What it uses
import numpy as np

from dpcore.common import wording
from dpcore.data import samples
from dpcore.private_choice import comparison
from dpcore.private_choice.parameters import PrivateParameters, Wanted
from dpcore.report.scaffold import BLUE, GREY, figure, keep, line, say

# %% The question, as it was entered
parameters = PrivateParameters(epsilon=1.0)

# %% The data
data = samples.load("online-retail-lines")

# %% The answer
histogram = data.histogram
direct = comparison.direct_cost(parameters.choice, histogram)
copy = comparison.copy_cost(parameters, histogram)


def share(cost: float) -> str:
    """A cost; tiny ones are not told apart from 0."""
    return f"< 0.01{wording.PERCENT}" if 0.0 <= cost < 1e-4 else wording.percent(cost)


say("Best number on these data", wording.number(parameters.condition.best_bound(histogram)))
say("Direct choice, median cost", share(direct.median))
say("Direct choice, 1 in 20", share(direct.percentile_95))
say("Private copy, median cost", share(copy.median))
say("Private copy, 1 in 20", share(copy.percentile_95))
say("Nine draws in ten, direct", f"{wording.number(direct.low)} to {wording.number(direct.high)} rows")
say("Copies without users", wording.percent(copy.empty_share))

# %% Figures
added, moved, without = comparison.bound_with_one_more(parameters, histogram)
fig = figure(
    "The number with one more user", "Rows of the user who is added", "Number chosen in the clear", log="x"
)
line(fig, "Without that user", added, np.full(added.size, without), GREY)
line(fig, "With that user", added, moved, BLUE)
keep(fig, "private-leak")

over_epsilon = comparison.direct_over_epsilon(parameters, histogram)
over_users = comparison.direct_over_users(parameters, histogram)
error = "Rank error, share of users" if parameters.wanted is Wanted.QUANTILE else "Extra error, share"
fig = figure("Cost over epsilon of the choice", "Epsilon of the choice", error)
line(fig, "Direct choice, median", over_epsilon.epsilons, over_epsilon.median[0], BLUE)
line(
    fig,
    "Direct choice, 95th percentile",
    over_epsilon.epsilons,
    over_epsilon.percentile_95[0],
    BLUE,
    dash="dot",
)
keep(fig, "private-cost-epsilon")

users = over_users.scales * histogram.num_users
fig = figure("Cost over the number of users, each taken so many times", "Users", error)
line(fig, "Direct choice, median", users, over_users.median[:, 0], BLUE)
line(fig, "Direct choice, 95th percentile", users, over_users.percentile_95[:, 0], BLUE, dash="dot")
keep(fig, "private-cost-users")
