"""How much smooth weights gain over the best cap on data of one's own.

A program that a person takes away (`dpcore.report.script`), here with an example of a question and data.
"""

# %% What it uses
import math

from dpcore import gap_examples, mean
from dpcore.common import wording
from dpcore.contributions import log_spaced
from dpcore.data import samples
from dpcore.gap_examples.parameters import GapParameters
from dpcore.report.scaffold import BLUE, ORANGE, figure, keep, line, point, say

# %% The question, as it was entered
parameters = GapParameters(epsilon=1.0)

# %% The data
data = samples.load("online-retail-lines")

# %% The answer
problem = parameters.mean_parameters().problem(data.histogram)
both = gap_examples.compare(problem)

say("Variance, cap : weights", f"{both.ratio:.4f}")
say("Error, cap : weights", f"{math.sqrt(both.ratio):.4f}")
say("Best cap", wording.counted(both.cap.max_contributions, "row"))
say("Noise ratio ρ", wording.number(both.noise_ratio))
say("No data could have more than", f"{gap_examples.supremum().ratio:.5f}")
for name, choice in (("Cap", both.cap), ("Smooth weights", both.smooth)):
    say(f"{name}, how sure", f"{choice.ended} {choice.certificate.sentence}")

# %% Figures
least, most = float(data.histogram.min_size), float(data.histogram.max_size)
bounds = log_spaced(least, max(most, 2.0 * least), 240)
best = both.smooth.variance
fig = figure("Variance against the bound", "Bound h (rows per user)", "Variance (1 = the best weights)")
line(fig, "Cap", bounds, mean.capped_variance(problem, bounds) / best, BLUE)
line(fig, "Smooth weights", bounds, mean.smooth_variance(problem, bounds) / best, ORANGE)
point(fig, "Best cap", both.cap.max_contributions, both.ratio, BLUE)
keep(fig, "gap-data")
