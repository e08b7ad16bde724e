"""The best number of groups per user for counts per group.

A program that a person takes away (`dpcore.report.script`), here with an example of a question and data.
"""

# %% What it uses
import numpy as np

from dpcore.common import wording
from dpcore.contributions import log_spaced
from dpcore.data import samples
from dpcore.report.scaffold import BLUE, GREEN, PURPLE, figure, keep, line, say
from dpcore.total import groups
from dpcore.total.parameters import TotalParameters

# %% The question, as it was entered
parameters = TotalParameters(epsilon=1.0)

# %% The data
data = samples.load("shop-events")

# %% The answer
grouped = parameters.grouped(data)
assert grouped is not None  # The number of groups is known.
best = groups.best_cap(grouped)
say("Best k", wording.number(best.max_groups))
say("Total error, at most", wording.number(best.bound))
say("Left out (bias)", wording.number(best.bias))
say("Noise", wording.number(best.noise))
say("Groups per user, how sure", f"{best.ended} {best.certificate.sentence}")

# %% Figures
caps = np.rint(log_spaced(1.0, 2.0 * grouped.amounts.largest, 240))
caps = np.unique(np.minimum(caps, grouped.num_groups))
errors = groups.errors(grouped, caps)
fig = figure("Counts per group", "Groups per user, k", "Total error over all groups, at most")
line(fig, "Bias + noise", caps, errors.bound, BLUE)
line(fig, "Bias", caps, errors.bias, GREEN, dash="dot")
line(fig, "Noise", caps, errors.noise, PURPLE, dash="dash")
keep(fig, "total-grouped")
