"""The best bound for a quantile, and where its answers fall.

A program that a person takes away (`dpcore.report.script`), here with an example of a question and data.
"""

# %% What it uses
import numpy as np

from dpcore.common import wording
from dpcore.data import samples
from dpcore.quantile import QuantileProblem, WeightKind
from dpcore.quantile.optimal_bound import best_bound
from dpcore.quantile.parameters import BoundFrom, QuantileParameters, Weighting
from dpcore.quantile.several import several
from dpcore.report.scaffold import BLUE, GREEN, GREY, ORANGE, PURPLE, figure, keep, line, point, say

# %% The question, as it was entered
parameters = QuantileParameters(epsilon=1.0, low=0.0, high=100.0)

# %% The data
data = samples.load("shop-events")
assert data.values is not None

# %% The answer
problem = QuantileProblem(data.values, 0.5, 1.0, parameters.base_distribution()).with_epsilon(
    parameters.epsilon
)
asked, kind = parameters.asked, parameters.kind
# The search of the page: every whole cap where they are few, else a grid and a finer one.
best = {one: best_bound(problem, one, 32, quantiles=asked) for one in WeightKind}
from_counts = parameters.rank_bound(problem.histogram).best(kind)
if parameters.weighting is Weighting.NONE:
    bound = float(problem.histogram.max_size)
elif parameters.bound_from is BoundFrom.COUNTS:
    bound = from_counts.bound
else:
    bound = best[kind].bound
outputs = several(problem, asked, kind, bound).outputs
free = several(problem, asked, WeightKind.SMOOTH, float(problem.histogram.max_size)).outputs

none = parameters.weighting is Weighting.NONE
smooth = best[WeightKind.SMOOTH]
mean_error = float(np.mean([one.expected_rank_error for one in outputs]))
named = "Bound h from counts" if not none and parameters.bound_from is BoundFrom.COUNTS else "Best bound h"
say(named, wording.counted(smooth.bound if none else bound, "row"))
say("Rank error", wording.percent(smooth.rank_error if none else mean_error))
say("Without a bound", wording.percent(float(np.mean([one.expected_rank_error for one in free]))))
for output in outputs:
    low, high = output.interval()
    of = f", q = {wording.entered(output.quantile)}" if len(outputs) > 1 else ""
    say(f"95\u00a0% of answers{of}", f"{wording.number(low)} to {wording.number(high)}")
if parameters.own_bound is not None:
    own = several(problem, asked, kind, parameters.own_bound).outputs
    own_error = wording.percent(float(np.mean([one.expected_rank_error for one in own])))
    say(f"Your own bound, {wording.counted(parameters.own_bound, 'row')}", own_error)
for one in WeightKind:
    what = f"{wording.counted(best[one].bound, 'row')}, {wording.percent(best[one].rank_error)}"
    say(f"Best, {one.name.lower()}", what)
    say(f"Best, {one.name.lower()}, how sure", f"{best[one].ended} {best[one].certificate.sentence}")

# %% Figures
fig = figure("Rank error against the bound", "Bound h (rows per user)", "Expected rank error (share of rows)")
for one, color in zip(WeightKind, (ORANGE, BLUE), strict=True):
    tried = best[one].tried
    line(fig, one.name.lower(), tried.bounds, tried.rank_error, color)
    point(fig, f"Best, {one.name.lower()}", best[one].bound, best[one].rank_error, color)
keep(fig, "quantile-error")

t = np.geomspace(1e-4, 0.5, 160)
fig = figure("How near the answer falls", "Distance t in rank", "P(|F(answer) - q| <= t)", log="x")
for output, plain, color in zip(outputs, free, (BLUE, ORANGE, GREEN, PURPLE, GREY) * 20, strict=False):
    name = f"q = {wording.entered(output.quantile)}"
    line(fig, name, t, output.probability_within(t), color)
    line(fig, f"{name}, without a bound", t, plain.probability_within(t), color, dash="dot")
keep(fig, "quantile-near")
