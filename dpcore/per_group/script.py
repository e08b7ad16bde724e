"""The best pair of bounds for a release per group, and the best bound on a user's whole vector.

A program that a person takes away (`dpcore.report.script`), here with an example of a question and data.
"""

# %% What it uses
import numpy as np

from dpcore.common import wording
from dpcore.data import samples
from dpcore.per_group import (
    PerGroupParameters,
    PerGroupProblem,
    Statistic,
    UserGroupPairs,
    best_cap,
    best_mean_pair,
    best_pair,
    best_radial,
    errors_by_groups,
)
from dpcore.report.scaffold import BLUE, figure, keep, line, say

# %% The question, as it was entered
parameters = PerGroupParameters(epsilon=1.0)

# %% The data
data = samples.load("shop-events")

# %% The answer
assert data.pairs is not None
problem = PerGroupProblem(UserGroupPairs.from_facet(data.pairs, parameters.num_groups), parameters)
mean = parameters.statistic is Statistic.MEAN
best = best_mean_pair(problem) if mean else best_pair(problem)
say("Best pair, L0", wording.number(best.max_groups))
say("Best pair, L-infinity", wording.number(best.max_amount))
say("Error of the pair", wording.number(best.error))
say("Error of publishing nothing", wording.number(best.error_of_nothing))
proof = "" if best.certificate is None else best.certificate.sentence
say("Pair, how sure", f"{best.ended} {proof}")
if parameters.statistic.non_negative:
    for name, found in (("Cap", best_cap(problem)), ("Scaling", best_radial(problem))):
        say(f"{name}, T", wording.number(found.max_norm))
        say(f"{name}, error", wording.number(found.error))
        say(f"{name}, how sure", f"{found.ended} {found.certificate.sentence}")

# %% Figures
if not mean and not best.releases_nothing:
    errors = errors_by_groups(problem, best.max_amount)
    groups = np.arange(1.0, errors.size + 1.0)
    fig = figure("Error at the best L-infinity", "L0, groups per user", "Error")
    line(fig, "Error of the pair", groups, errors, BLUE)
    keep(fig, "per-group-error")
