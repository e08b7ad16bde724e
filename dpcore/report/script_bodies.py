"""The answers that scripts compute again, one per page: Python as text, run by the tests of every page.

Each prints its numbers under the names that the page's card gives them, and writes its figures.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Body:
    """What follows the data and the parameters in a script.

    Attributes:
        imports: What it uses, as lines ``from module import names``.
        answer: Computes and prints.
        figures: Draws.
    """

    imports: str
    answer: str
    figures: str


MEAN = Body(
    """
from dpcore import mean
from dpcore.common import wording
from dpcore.contributions import log_spaced
from dpcore.mean import private_counts
from dpcore.mean.private_counts import PrivateCountsProblem
from dpcore.mean.user_effects import clamp
""",
    """
# Values, where the data have some, give the variance; else the parameters or the worst case do.
clamped = None if data.values is None else clamp(data.values, parameters.lower, parameters.upper)
spread = () if clamped is None else (clamped.variance, clamped.mean)
problem = parameters.problem(data.histogram, *spread)
if isinstance(problem, PrivateCountsProblem):
    cap, smooth = private_counts.best_cap(problem), private_counts.best_smooth(problem)
else:
    cap, smooth = mean.best_cap(problem), mean.best_smooth(problem)

say("Best cap", wording.counted(cap.max_contributions, "row"))
say("Error, cap", wording.number(cap.standard_error))
say("Best smooth threshold", wording.number(smooth.threshold))
say("Error, smooth", wording.number(smooth.standard_error))
low, high = mean.caps_within(problem)
say("Caps within 5 % of the best", f"{low:,} to {high:,}")
for name, choice in (("Cap", cap), ("Smooth weights", smooth)):
    say(f"{name}, how sure", f"{choice.ended} {choice.certificate.sentence}")
""",
    """
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
kept = np.minimum(sizes, cap.max_contributions) / sizes / float(data.histogram.kept_rows(cap.max_contributions))
line(fig, "Cap, on average over kept and dropped rows", sizes, kept / plain, BLUE, dash="dot")
keep(fig, "mean-weights")
""",
)

TOTAL = Body(
    """
from dpcore import total
from dpcore.common import wording
from dpcore.common.noise_error import Measure
from dpcore.contributions import log_spaced
from dpcore.total.parameters import user_totals
""",
    '''
held = user_totals(data, parameters.summed)
problem = parameters.problem(held.amounts)
choice = total.best_bound(problem)
# The best bound on totals is handed over in few digits; the proof is about the exact one.
bound = total.short_bound(problem, choice.max_total)
at = total.errors(problem, bound)


def amount(value, digits=3):
    """With its unit: rows, or bare for the total of a column."""
    text = wording.number(value, digits)
    return text if held.column else f"{text} {'row' if value == 1 else 'rows'}"


names = {Measure.ABSOLUTE: "Expected error", Measure.RMSE: "RMSE", Measure.BOUND: "Error, at most"}
say("Best bound T", amount(bound, 4))
say(names[problem.measure], amount(float(total.measured(problem, bound))))
say("Cut away (bias)", amount(float(at.bias)))
say("Noise", amount(float(at.noise)))
low, high = total.bounds_within(problem)
say("Bounds within 5 % of the best", f"{amount(low)} to {amount(high)}")
say("How sure", f"{choice.ended} {choice.certificate.sentence}")
''',
    """
values = held.amounts.values[held.amounts.values > 0.0]
most = held.amounts.largest
bounds = log_spaced(max(float(values[0]), most / 1e6), 2.0 * most, 240)
errors = total.errors(problem, bounds)
fig = figure("Error against the bound", "Bound T on what one user adds", "Error")
line(fig, "Expected absolute error", bounds, errors.absolute_error, BLUE)
line(fig, "Root mean squared error", bounds, errors.rmse, ORANGE)
line(fig, "Bias + noise (the paper's bound)", bounds, errors.bound, GREY)
line(fig, "Bias", bounds, errors.bias, GREEN, dash="dot")
line(fig, "Noise", bounds, errors.noise, PURPLE, dash="dash")
if choice.max_total > 0.0:
    point(fig, "Best bound", choice.max_total, choice.certificate.value, BLUE)
keep(fig, "total-error")
""",
)

SIGNED = Body(
    """
from dpcore.common import wording
from dpcore.common.noise_error import Measure
from dpcore.contributions import log_spaced
from dpcore.data.totals_per_user import Amounts
from dpcore.total.parameters import user_totals
from dpcore.total.signed import clipped_sum, proposed_bound, symmetric_errors
""",
    """
held = user_totals(data, parameters.summed)
how = (parameters.epsilon, parameters.noise, parameters.delta)
low, high = parameters.lower, parameters.upper
if low is None or high is None:  # The proposal: [-T, T], read off the data, in few digits.
    high = proposed_bound(held.signed, *how)
    low = -high
clipped = clipped_sum(held.signed, low, high, *how)

rmse = parameters.measure is Measure.RMSE
say("Range", f"[{wording.number(clipped.low, 4)}, {wording.number(clipped.high, 4)}]")
say("Largest change by one user", wording.number(clipped.sensitivity, 4))
say("RMSE" if rmse else "Expected error", wording.number(clipped.rmse if rmse else clipped.absolute_error))
say("Bias", wording.number(abs(clipped.bias)))
say("Noise", wording.number(clipped.noise))
""",
    """
amounts = Amounts.from_totals(np.abs(held.signed))
values = amounts.values[amounts.values > 0.0]
bounds = log_spaced(max(float(values[0]), amounts.largest / 1e6), 2.0 * amounts.largest, 240)
errors = symmetric_errors(held.signed, bounds, *how)
fig = figure("Error when totals are clipped to [-T, T]", "T", "Error of the released sum")
line(fig, "Expected absolute error", bounds, errors.absolute_error, BLUE)
line(fig, "Root mean squared error", bounds, errors.rmse, ORANGE)
line(fig, "Size of the bias", bounds, errors.bias, GREEN, dash="dot")
line(fig, "Noise", bounds, errors.noise, PURPLE, dash="dash")
keep(fig, "total-signed")
""",
)

GROUPED = Body(
    """
from dpcore.common import wording
from dpcore.contributions import log_spaced
from dpcore.total import groups
""",
    """
grouped = parameters.grouped(data)
best = groups.best_cap(grouped)
say("Best k", wording.number(best.max_groups))
say("Total error, at most", wording.number(best.bound))
say("Left out (bias)", wording.number(best.bias))
say("Noise", wording.number(best.noise))
say("Groups per user, how sure", f"{best.ended} {best.certificate.sentence}")
""",
    """
caps = np.rint(log_spaced(1.0, 2.0 * grouped.amounts.largest, 240))
caps = np.unique(np.minimum(caps, grouped.num_groups))
errors = groups.errors(grouped, caps)
fig = figure("Counts per group", "Groups per user, k", "Total error over all groups, at most")
line(fig, "Bias + noise", caps, errors.bound, BLUE)
line(fig, "Bias", caps, errors.bias, GREEN, dash="dot")
line(fig, "Noise", caps, errors.noise, PURPLE, dash="dash")
keep(fig, "total-grouped")
""",
)

QUANTILE = Body(
    """
from dpcore.common import wording
from dpcore.quantile import QuantileProblem, WeightKind
from dpcore.quantile.optimal_bound import best_bound
from dpcore.quantile.parameters import BoundFrom, Weighting
from dpcore.quantile.several import several
""",
    """
problem = QuantileProblem(data.values, 0.5, 1.0, parameters.base_distribution()).with_epsilon(parameters.epsilon)
asked, kind = parameters.asked, parameters.kind
# The search of the page: every whole cap where they are few, else a grid and a finer one.
best = {one: best_bound(problem, one, 32, quantiles=asked) for one in WeightKind}
from_counts = parameters.rank_bound(problem.histogram).best(kind)
if parameters.weighting is Weighting.NONE:
    bound = float(problem.histogram.max_size)
elif parameters.bound_from is BoundFrom.COUNTS:
    bound = from_counts.bound
elif parameters.bound_from is BoundFrom.OWN:
    bound = parameters.own_bound
else:
    bound = best[kind].bound
outputs = several(problem, asked, kind, bound).outputs
free = several(problem, asked, WeightKind.SMOOTH, float(problem.histogram.max_size)).outputs

none = parameters.weighting is Weighting.NONE
say("Bound h", "none" if none else wording.counted(bound, "row"))
say("Rank error", wording.percent(float(np.mean([one.expected_rank_error for one in outputs]))))
say("Without a bound", wording.percent(float(np.mean([one.expected_rank_error for one in free]))))
for one in outputs:
    low, high = one.interval()
    of = f", q = {wording.entered(one.quantile)}" if len(outputs) > 1 else ""
    say(f"95\\u00a0% of answers{of}", f"{wording.number(low)} to {wording.number(high)}")
say("Best smooth weights", wording.percent(best[WeightKind.SMOOTH].rank_error))
for one in WeightKind:
    what = f"{wording.counted(best[one].bound, 'row')}, {wording.percent(best[one].rank_error)}"
    say(f"Best, {one.name.lower()}", what)
    say(f"Best, {one.name.lower()}, how sure", f"{best[one].ended} {best[one].certificate.sentence}")
""",
    """
fig = figure("Rank error against the bound", "Bound h (rows per user)", "Expected rank error (share of rows)")
for one, color in zip(WeightKind, (ORANGE, BLUE), strict=True):
    tried = best[one].tried
    line(fig, one.name.lower(), tried.bounds, tried.rank_error, color)
    point(fig, f"Best, {one.name.lower()}", best[one].bound, best[one].rank_error, color)
keep(fig, "quantile-error")

t = np.geomspace(1e-4, 0.5, 160)
fig = figure("How near the answer falls", "Distance t in rank", "P(|F(answer) - q| <= t)", log="x")
for one, plain, color in zip(outputs, free, (BLUE, ORANGE, GREEN, PURPLE, GREY) * 20, strict=False):
    name = f"q = {wording.entered(one.quantile)}"
    line(fig, name, t, one.probability_within(t), color)
    line(fig, f"{name}, without a bound", t, plain.probability_within(t), color, dash="dot")
keep(fig, "quantile-near")
""",
)

LEARNING = Body(
    """
from dpcore.common import wording
from dpcore.learning import optimal_cap
""",
    """
problem = parameters.problem(data.histogram)
choice = optimal_cap.best_cap(problem)
low, high = optimal_cap.caps_within(problem, choice)

say("Best cap", wording.counted(choice.max_contributions, "row"))
say("Bound on the excess risk", wording.number(choice.total))
say("Bias, twice", wording.number(choice.bias))
say("Finite sample", wording.number(choice.finite_sample))
say("Privacy noise", wording.number(choice.privacy))
say("Caps within 5 % of the best", f"{low:,} to {high:,}")
say("How sure", f"{choice.ended} {choice.certificate.sentence}")
""",
    """
fractions = optimal_cap.fractions_for_curves(problem.histogram, 240)
parts = optimal_cap.error_parts(problem, fractions)
fig = figure("Bound on the excess risk against the cap", "Cap as a share of all rows", "Bound")
line(fig, "All three", fractions, parts.total, BLUE)
line(fig, "Bias, twice", fractions, parts.bias, ORANGE, dash="dot")
line(fig, "Finite sample", fractions, parts.finite_sample, GREEN, dash="dash")
line(fig, "Privacy noise", fractions, parts.privacy, PURPLE, dash="dash")
point(fig, "Best cap", choice.fraction, choice.total, BLUE)
keep(fig, "learning-bound")
""",
)

REGRESSION = Body(
    """
from dpcore.common import wording
from dpcore.regression import naive, sample_limiting, working_set
from dpcore.regression.prediction import ordinary_residual_variance, prediction_error
""",
    """
labels = parameters.clipped(data.table)
variance = parameters.residual_variance
if variance is None:
    variance = ordinary_residual_variance(data.table.features, labels)
problem = parameters.problem(data.table, variance)
ours, no_cap = working_set.solve(problem), naive.all_rows(problem)
# Few draws where there are many rows: they hardly differ then. As on the page.
options = sample_limiting.CapOptions(draws=10 if problem.num_rows <= 50_000 else 3)
caps = sample_limiting.curve(problem, sample_limiting.study(problem, options, labels))

say("Ours", wording.number(math.sqrt(ours.variance)))
if caps.rank_deficient[caps.best] == 0:
    say("Best cap", wording.number(math.sqrt(float(caps.variance[caps.best]))))
    say("Best cap, rows per user", wording.number(caps.max_contributions))
say("No cap", wording.number(math.sqrt(no_cap.variance)))
predicted = prediction_error(problem, ours, labels).total
say(f"Ours, predicting {data.table.label}", wording.number(math.sqrt(predicted)))
say("Noise scale", wording.number(ours.noise.scale))
say("Best weights C, how sure", f"{ours.ended} {ours.certificate.sentence}")
""",
    """
fig = figure("Error against the cap", "Cap h (rows per user)", "Standard error, all coefficients")
line(fig, "Cap", caps.caps, np.sqrt(caps.variance), BLUE)
line(fig, "Cap, sampling error", caps.caps, np.sqrt(caps.sampling_variance), BLUE, dash="dot")
line(fig, "Cap, privacy noise", caps.caps, np.sqrt(caps.privacy_variance), BLUE, dash="dash")
line(fig, "Ours (no cap needed)", caps.caps, np.full(caps.caps.size, math.sqrt(ours.variance)), ORANGE)
keep(fig, "regression-caps")
""",
)

MULTITASK = Body(
    """
from dpcore.common import wording
from dpcore.multitask import budget
from dpcore.multitask.fit import WeightRule
from dpcore.multitask.problem import Loss, TaskProblem
""",
    '''
budgets = budget.compare(parameters.target)
problem = TaskProblem.from_graph(graph, budgets.exact, parameters.loss.loss)
rule = WeightRule(parameters.exponent, parameters.fit, parameters.log_constant)
chosen, uniform = rule.weights(problem), rule.with_exponent(0.0).weights(problem)


def total(allocation):
    """Error bound of all tasks together, relative to uniform weights; for convex losses the root of the sum."""
    ratio = allocation.total_bound / uniform.total_bound
    return math.sqrt(ratio) if problem.loss is Loss.CONVEX else ratio


ratio = total(chosen)
used = chosen.budget_use[graph.tasks_per_user > 0] / problem.budget
sign = "\\u2212" if ratio < 1.0 else "+"
change = f"{sign}{wording.percent(abs(1.0 - ratio))}"
say("Total error bound", change if ratio <= 2.0 else f"{wording.number(ratio, 2)}\\u00d7")
say("Budget used", wording.percent(float(used.mean())))
say("Users clipped", wording.percent(chosen.share_clipped) if chosen.share_clipped else "none")
say("User budget β", wording.number(budgets.exact))
''',
    """
ranks = np.arange(1, graph.num_tasks + 1)
fig = figure("How large the tasks are", "Rank of the task, largest first", "Users of the task")
line(fig, "Users", ranks, np.sort(graph.task_sizes)[::-1], BLUE)
keep(fig, "many-tasks-sizes")

exponents = np.linspace(0.0, 1.0, 41)
totals = [total(rule.with_exponent(float(mu)).weights(problem)) for mu in exponents]
fig = figure("Total error bound over the exponent", "Exponent μ", "Total bound (1 = uniform weights)", log="y")
line(fig, "Total bound", exponents, totals, BLUE)
point(fig, "Chosen", parameters.exponent, ratio, ORANGE)
keep(fig, "many-tasks-exponents")

root = math.sqrt(problem.budget)
fig = figure("Weight against the size of the task", "Users of the task", "Weight (1 = root of β)")
order = np.argsort(graph.task_sizes)
line(fig, "Chosen", graph.task_sizes[order], chosen.mean_weights[order] / root, BLUE)
line(fig, "Uniform weights", graph.task_sizes[order], uniform.mean_weights[order] / root, GREY)
keep(fig, "many-tasks-weights")
""",
)

GAP = Body(
    """
from dpcore import gap_examples, mean
from dpcore.common import wording
from dpcore.contributions import log_spaced
""",
    """
problem = parameters.mean_parameters().problem(data.histogram)
both = gap_examples.compare(problem)

say("Variance, cap : weights", f"{both.ratio:.4f}")
say("Standard error", f"{math.sqrt(both.ratio):.4f}")
say("Best cap", wording.counted(both.cap.max_contributions, "row"))
say("Noise ratio ρ", wording.number(both.noise_ratio))
say("No data could have more than", f"{gap_examples.supremum().ratio:.5f}")
for name, choice in (("Cap", both.cap), ("Smooth weights", both.smooth)):
    say(f"{name}, how sure", f"{choice.ended} {choice.certificate.sentence}")
""",
    """
least, most = float(data.histogram.min_size), float(data.histogram.max_size)
bounds = log_spaced(least, max(most, 2.0 * least), 240)
best = both.smooth.variance
fig = figure("Variance against the bound", "Bound h (rows per user)", "Variance (1 = the best weights)")
line(fig, "Cap", bounds, mean.capped_variance(problem, bounds) / best, BLUE)
line(fig, "Smooth weights", bounds, mean.smooth_variance(problem, bounds) / best, ORANGE)
point(fig, "Best cap", both.cap.max_contributions, both.ratio, BLUE)
keep(fig, "gap-data")
""",
)

PRIVATE = Body(
    """
from dpcore.common import wording
from dpcore.private_choice import comparison
from dpcore.private_choice.parameters import Wanted
""",
    '''
histogram = data.histogram
direct = comparison.direct_cost(parameters.choice, histogram)
copy = comparison.copy_cost(parameters, histogram)


def share(cost):
    """A cost; tiny ones are not told apart from 0."""
    return f"<\u00a00.01{wording.PERCENT}" if 0.0 <= cost < 1e-4 else wording.percent(cost)


say("Number chosen in the clear", wording.number(parameters.condition.best_bound(histogram)))
say("Direct, median", share(direct.median))
say("Direct, 1 in 20", share(direct.percentile_95))
say("Copy, median", share(copy.median))
say("Copy, 1 in 20", share(copy.percentile_95))
say("Nine draws in ten, direct", f"{wording.number(direct.low)} to {wording.number(direct.high)} rows")
say("Copies without users", wording.percent(copy.empty_share))
''',
    """
added, moved, without = comparison.bound_with_one_more(parameters, histogram)
fig = figure("The number with one more user", "Rows of the user who is added", "Number chosen in the clear", log="x")
line(fig, "Without that user", added, np.full(added.size, without), GREY)
line(fig, "With that user", added, moved, BLUE)
keep(fig, "private-leak")

over_epsilon, over_users = comparison.direct_curves(parameters, histogram)
error = "Rank error, share of users" if parameters.wanted is Wanted.QUANTILE else "Extra error, share"
fig = figure("Cost over epsilon of the choice", "Epsilon of the choice", error)
line(fig, "Direct choice, median", over_epsilon.epsilons, over_epsilon.median[0], BLUE)
line(fig, "Direct choice, 95th percentile", over_epsilon.epsilons, over_epsilon.percentile_95[0], BLUE, dash="dot")
keep(fig, "private-cost-epsilon")

users = over_users.scales * histogram.num_users
fig = figure("Cost over the number of users, each taken so many times", "Users", error)
line(fig, "Direct choice, median", users, over_users.median[:, 0], BLUE)
line(fig, "Direct choice, 95th percentile", users, over_users.percentile_95[:, 0], BLUE, dash="dot")
keep(fig, "private-cost-users")
""",
)
