"""The best cap for learning.

A program that a person takes away (`dpcore.report.script`), here with an example of a question and data.
"""

# %% What it uses
from dpcore.common import wording
from dpcore.data import samples
from dpcore.learning import optimal_cap
from dpcore.learning.parameters import LearningParameters
from dpcore.report.scaffold import BLUE, GREEN, ORANGE, PURPLE, figure, keep, line, point, say

# %% The question, as it was entered
parameters = LearningParameters(epsilon=1.0)

# %% The data
data = samples.load("online-retail-lines")

# %% The answer
problem = parameters.problem(data.histogram)
choice = optimal_cap.best_cap(problem)
low, high = optimal_cap.caps_within(problem, choice)

say("Best cap", wording.counted(choice.max_contributions, "row"))
say("Bound on the excess risk", wording.number(choice.total))
say("As a share of all rows, τ₀", wording.number(choice.fraction))
say("Bias, twice", wording.number(choice.bias))
say("Finite sample", wording.number(choice.finite_sample))
say("Privacy noise", wording.number(choice.privacy))
say("Caps within 5 % of the best", f"{low:,} to {high:,}")
say("How sure", f"{choice.ended} {choice.certificate.sentence}")

# %% Figures
fractions = optimal_cap.fractions_for_curves(problem.histogram, 240)
parts = optimal_cap.error_parts(problem, fractions)
fig = figure("Bound on the excess risk against the cap", "Cap as a share of all rows", "Bound")
line(fig, "All three", fractions, parts.total, BLUE)
line(fig, "Bias, twice", fractions, parts.bias, ORANGE, dash="dot")
line(fig, "Finite sample", fractions, parts.finite_sample, GREEN, dash="dash")
line(fig, "Privacy noise", fractions, parts.privacy, PURPLE, dash="dash")
point(fig, "Best cap", choice.fraction, choice.total, BLUE)
keep(fig, "learning-bound")
