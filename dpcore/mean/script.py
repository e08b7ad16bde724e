"""The best cap and the best smooth weights for a mean.

A program that a person takes away (`dpcore.report.script`), here with an example of a question and data.
"""

# %% What it uses
import numpy as np

from dpcore import mean
from dpcore.common import wording
from dpcore.contributions import log_spaced
from dpcore.data import samples
from dpcore.mean import private_counts
from dpcore.mean.parameters import MeanParameters
from dpcore.mean.private_counts import PrivateCountsProblem
from dpcore.mean.user_effects import clamp
from dpcore.report.scaffold import BLUE, ORANGE, figure, keep, line, point, say

# %% The question, as it was entered
parameters = MeanParameters(epsilon=1.0)

# %% The data
data = samples.load("online-retail-lines")

# %% The answer
# Values, where the data have some, give the variance; else the parameters or the worst case do.
clamped = None if data.values is None else clamp(data.values, parameters.lower, parameters.upper)
spread = () if clamped is None else (clamped.variance, clamped.mean)
problem = parameters.problem(data.histogram, *spread)
if isinstance(problem, PrivateCountsProblem):
    cap, smooth = private_counts.best_cap(problem), private_counts.best_smooth(problem)
else:
    cap, smooth = mean.best_cap(problem), mean.best_smooth(problem)

say("Best cap", wording.counted(cap.max_contributions, "row"))
say("Standard error", wording.number(cap.standard_error))
say("Best smooth threshold", wording.number(smooth.threshold))
say("Standard error, smooth weights", wording.number(smooth.standard_error))
low, high = mean.caps_within(problem)
say("Caps within 5 % of the best", f"{low:,} to {high:,}")
for name, choice in (("Cap", cap), ("Smooth weights", smooth)):
    say(f"{name}, how sure", f"{choice.ended} {choice.certificate.sentence}")

# %% Figures
least, most = float(data.histogram.min_size), float(data.histogram.max_size)
bounds = log_spaced(least, max(most, 2.0 * least), 240)
fig = figure("Standard error against the bound", "Bound h (rows per user)", "Standard error of the mean")
for name, error, color in (
    ("cap", mean.capped_error(problem, bounds), BLUE),
    ("smooth weights", mean.smooth_error(problem, bounds), ORANGE),
):
    line(fig, f"Total, {name}", bounds, np.sqrt(error.variance), color)
    line(fig, f"Sampling error, {name}", bounds, np.sqrt(error.sampling_variance), color, dash="dot")
    line(fig, f"Privacy noise, {name}", bounds, np.sqrt(error.privacy_variance), color, dash="dash")
point(fig, "Best cap", cap.max_contributions, cap.standard_error, BLUE)
point(fig, "Best smooth weights", smooth.threshold, smooth.standard_error, ORANGE)
keep(fig, "mean-error")

sizes = log_spaced(least, max(most, 2.0 * least), 240)
fig = figure("Weight of one row", "Rows of the user", "Weight (1 = without any bound)")
plain = 1.0 / data.histogram.num_rows
line(fig, "Smooth weights", sizes, mean.user_weight(problem, smooth.threshold, sizes) / plain, ORANGE)
kept = (
    np.minimum(sizes, cap.max_contributions) / sizes / float(data.histogram.kept_rows(cap.max_contributions))
)
line(fig, "Cap, on average over kept and dropped rows", sizes, kept / plain, BLUE, dash="dot")
keep(fig, "mean-weights")
