"""The best pair of bounds for a release per group where only the distribution of pairs is known.

A program that a person takes away (`dpcore.report.script`), here with an example of a question and data.
"""

# %% What it uses
from dataclasses import replace

import numpy as np

from dpcore.data import pair_distribution, samples
from dpcore.per_group import (
    PerGroupParameters,
    SummaryProblem,
    best_summary_pair,
    words,
)
from dpcore.report.scaffold import BLUE, figure, keep, line, say

# %% The question, as it was entered
parameters = PerGroupParameters(epsilon=1.0)

# %% The data
shop = samples.load("shop-events")
assert shop.pairs is not None
data = replace(shop, pairs=None, pair_sizes=pair_distribution.sizes_of(shop.pairs))

# %% The answer
assert data.pair_sizes is not None
problem = SummaryProblem(data.pair_sizes, parameters)
best = best_summary_pair(problem)
if best.max_groups:
    pair = words.pair_words(parameters, best.max_groups, best.max_amount)
    say("Best pair found, L0 × L∞", pair)
else:
    say("Best pair found, L0 × L∞", "none")
say("Error, about", words.error_words(parameters, best.error))
if best.lower is not None and best.upper is not None:
    say("Error at least", words.error_words(parameters, best.lower))
    say("Error at most", words.error_words(parameters, best.upper))
say("How sure", best.ended)

# %% Figures
most = int(problem.sizes.groups.max())
at = best.max_amount or float(problem.amounts.max())
every = np.unique(np.rint(np.geomspace(1, most, 60)))
errors = np.array([problem.error(int(l0), at) for l0 in every])
fig = figure("Error at the best L-infinity, about", "L0, groups per user", "Error")
line(fig, "Error of the pair", every, errors, BLUE)
keep(fig, "per-group-error")
