"""The best weights for a linear regression, beside the best cap and none.

A program that a person takes away (`dpcore.report.script`), here with an example of a question and data.
"""

# %% What it uses
import math

import numpy as np

from dpcore.common import wording
from dpcore.regression import naive, sample_limiting, working_set
from dpcore.regression.parameters import RegressionParameters
from dpcore.regression.prediction import ordinary_residual_variance, prediction_error
from dpcore.report.scaffold import BLUE, ORANGE, figure, keep, line, say

# %% The question, as it was entered
parameters = RegressionParameters(epsilon=1.0, lower=-300.0, upper=300.0)

# %% The data
data, true_coefficients = parameters.generator.dataset()
assert data.table is not None

# %% The answer
labels = parameters.clipped(data.table)
variance = parameters.residual_variance
if variance is None:
    variance = ordinary_residual_variance(data.table.features, labels)
problem = parameters.problem(data.table, variance)
ours, no_cap = working_set.solve(problem), naive.all_rows(problem)
# Few draws where there are many rows: they hardly differ then. As on the page.
options = sample_limiting.CapOptions(draws=10 if problem.num_rows <= 50_000 else 3)
caps = sample_limiting.curve(problem, sample_limiting.study(problem, options, labels))

say("Laplace noise, scale b", wording.number(ours.noise.scale))
say("Standard error, total", wording.number(math.sqrt(ours.variance)))
if caps.rank_deficient[caps.best] == 0:
    say("Best cap, standard error", wording.number(math.sqrt(float(caps.variance[caps.best]))))
    say("Best cap, rows per user", wording.number(caps.max_contributions))
say("No cap, standard error", wording.number(math.sqrt(no_cap.variance)))
predicted = prediction_error(problem, ours, labels).total
say(f"Error in predicting {data.table.label}", wording.number(math.sqrt(predicted)))
say("Best weights C, how sure", f"{ours.ended} {ours.certificate.sentence}")

# %% Figures
fig = figure("Error against the cap", "Cap h (rows per user)", "Standard error, all coefficients")
line(fig, "Cap", caps.caps, np.sqrt(caps.variance), BLUE)
line(fig, "Cap, sampling error", caps.caps, np.sqrt(caps.sampling_variance), BLUE, dash="dot")
line(fig, "Cap, privacy noise", caps.caps, np.sqrt(caps.privacy_variance), BLUE, dash="dash")
line(fig, "Best weights C (no cap)", caps.caps, np.full(caps.caps.size, math.sqrt(ours.variance)), ORANGE)
keep(fig, "regression-caps")
