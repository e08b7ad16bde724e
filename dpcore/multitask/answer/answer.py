"""The answer for many tasks and its tabs, as all readers take them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.answer.answer import Answer
from dpcore.answer.plot import Axis, Curve, Plot, Style, linear_axis
from dpcore.code.choice import Quantity
from dpcore.code.forms import ROWS_OF_THE_FILE, CodeChoice, build_forms, fields_of_data, one_group_column
from dpcore.common import wording
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Disclosure
from dpcore.common.progress import Progress, ShouldStop
from dpcore.dataset import Dataset
from dpcore.multitask import files
from dpcore.multitask.answer import plots, words
from dpcore.multitask.answer.solution import (
    MultitaskSolution,
    Optima,
    Tasks,
    WeightComparison,
    WeightQuestion,
    compute_total_ratio,
    count_tasks_per_user,
    rescale_budget,
    solve,
)
from dpcore.multitask.answer.words import compute_inflation, write_methods
from dpcore.multitask.exact import SearchOptions, find_best_task_weights, find_best_user_task_weights
from dpcore.multitask.experiment import Algorithm, ExperimentResult
from dpcore.multitask.parameters import MultitaskParameters, TaskSource
from dpcore.multitask.problem import Allocation, BudgetComparison, Loss, TaskProblem
from dpcore.multitask.sampling import PrivateCounts, compute_cost_factor, release_counts
from dpcore.multitask.weights import AVERAGE, BudgetFit, WeightRule, WeightSkew, compute_skew


def choose_programs(solution: MultitaskSolution, dataset: Dataset | None) -> CodeChoice | None:
    """Return programs for task weights, and for the person's or the best number of tasks per user.

    Args:
        solution: What was found.
        dataset: The data; those whose tasks were generated do not name them.
    """
    comparison, parameters = solution.comparison, solution.parameters
    if dataset is None or parameters.source is not TaskSource.DATA:
        base: dict[str, Any] = {"group_column": "task"}
    else:
        base = fields_of_data(dataset) | one_group_column(dataset)
    base |= {"disclosure": solution.tasks.disclosure, "delta": parameters.delta} | ROWS_OF_THE_FILE
    task_weights = {
        "exponent": comparison.rule.exponent,
        # A user moves these sums by the root of the budget. The sums of algorithms 1 and 2 move by sqrt(2 beta), and
        # beta is calibrated for them: here it may be twice as large.
        "budget": 2.0 * solution.budgets.exact,
        "inflation": _public_inflation(solution),
        "every_user_full": comparison.rule.fit is BudgetFit.FULL,
    }
    max_tasks = count_tasks_per_user(comparison.entered_sampling or comparison.sampling)
    groups = {"max_groups": max_tasks, "noise": NoiseKind.GAUSSIAN}
    return build_forms(
        parameters.epsilon,
        base,
        [
            (
                f"Task weights, μ = {wording.entered(comparison.rule.exponent)}",
                Quantity.TASK_WEIGHTS,
                task_weights,
            ),
            (f"At most {wording.counted(max_tasks, 'task')}", Quantity.GROUP_COUNTS, groups),
        ],
    )


def _public_inflation(solution: MultitaskSolution) -> float | None:
    """Return c of equation 10, or None if it would tell of private data: the person then enters a public one."""
    if solution.comparison.rule.fit in (BudgetFit.CLIPPED, BudgetFit.FULL):
        return AVERAGE.factor
    return compute_inflation(solution.comparison) if solution.tasks.disclosure is Disclosure.PUBLIC else None


def build_answer(
    dataset: Dataset | None, parameters: MultitaskParameters, solution: MultitaskSolution | None = None
) -> Answer:
    """Divide a user's privacy budget among tasks if one model per task is trained.

    Args:
        dataset: Who contributes to which task; not read, and may be None, where the parameters name a generator.
        parameters: The question.
        solution: What `solve` found for both, with the exact optima where they were computed; searched for here by
            default.

    Returns:
        The answer; its ``solution`` is a `MultitaskSolution`. Plots are computed when they are asked for.

    Raises:
        InvalidInput: The data have no tasks, the generator drew nothing, or c = C log n with a single user.

    Examples:
        Two tasks with as many users each: no weights are better than equal ones.

        >>> import pandas as pd
        >>> import dpcore as ss
        >>> pairs = pd.DataFrame({"user": list("aabc"), "task": list("xyxy")})
        >>> answer = ss.task_weights(pairs, user="user", group="task", epsilon=1)
        >>> print(answer.bound["share_of_bound"].round(3).tolist(), round(answer.error, 3))
        [0.5, 0.5] 1.0

    Source: Krichene et al. 2023, section 4.
    """
    solution = solve(dataset, parameters) if solution is None else solution
    return Answer(
        headline=words.write_headline(solution),
        detail=words.write_detail(solution),
        numbers=words.build_numbers(solution),
        assumptions=words.list_assumptions(solution),
        disclosure=solution.tasks.disclosure,
        facts=words.build_facts(solution),
        proofs=words.list_proofs(solution),
        code=choose_programs(solution, dataset),
        near_optimal=words.describe_near_optimal(solution),
        parameters=parameters,
        solution=solution,
        plots={
            "many-tasks-buckets": lambda: plots.plot_buckets(solution),
            "many-tasks-weights": lambda: plots.plot_weights(solution),
            "many-tasks-exponents": lambda: plots.plot_exponents(solution),
            "many-tasks-sizes": lambda: plots.plot_sizes(solution.tasks),
        },
        make_methods=lambda: write_methods(solution),
        bound=lambda: files.tabulate_weights(
            rescale_budget(solution.comparison.allocation, solution.budgets.exact)
        ),
    )


TOLERANCE = 1e-4
"""Relative gap asked of the exact optima."""
COVERED_SHARE = 0.1
"""Share of the counts' budget for the release that covers what counting at most k tasks misses."""


def find_optima(tasks: Tasks, loss: Loss, progress: Progress, should_stop: ShouldStop) -> Optima:
    """Solve both problems; if the search is stopped, both allocations are valid all the same."""
    problem = TaskProblem.from_graph(tasks.graph, 1.0, loss)
    options = SearchOptions(TOLERANCE)
    task_optimum = find_best_task_weights(problem, options, lambda share: progress(0.7 * share), should_stop)
    return Optima(
        task_optimum,
        find_best_user_task_weights(problem, options, lambda share: progress(0.7 + 0.3 * share), should_stop),
    )


@dataclass(frozen=True, eq=False)
class ComparedAllocation:
    """One row of the comparison with the optima.

    Attributes:
        name: What a person calls it.
        allocation: The weights, for a budget of 1.
        optimum: The optimum of its kind.
        weight_skew: What it does to the tasks' losses.
    """

    name: str
    allocation: Allocation
    optimum: Allocation
    weight_skew: WeightSkew

    @property
    def above_optimum(self) -> float:
        """Return by how much its error bound exceeds that of the optimum of its kind, relative."""
        return compute_total_ratio(self.allocation, self.optimum) - 1.0


def compare_with_optima(
    tasks: Tasks, loss: Loss, exponent: float, sampling: Allocation, optima: Optima
) -> list[ComparedAllocation]:
    """Compare each allocation with the optimum of its kind: first one weight per task, then weights per user."""
    problem = TaskProblem.from_graph(tasks.graph, 1.0, loss)
    pairs: list[tuple[str, Allocation, Allocation]] = []
    for fit, fit_text in (
        (BudgetFit.NOBODY_CLIPPED, "nobody clipped"),
        (BudgetFit.CLIPPED, "clipped, c = 1"),
        (BudgetFit.FULL, "every user filled up"),
    ):
        optimum = optima.choose(fit)
        if fit is BudgetFit.CLIPPED:
            pairs.append((f"Sampling, k = {count_tasks_per_user(sampling):,}", sampling, optimum))
        for exponent_value in sorted({0.0, exponent}):
            name = (
                f"μ = {wording.entered(exponent_value)}, {fit_text}"
                if exponent_value
                else f"Uniform, {fit_text}"
            )
            pairs.append((name, WeightRule(exponent_value, fit).allocate(problem), optimum))
        if fit is BudgetFit.NOBODY_CLIPPED:
            pairs.append(("Exact optimum, problem (9)", optimum, optimum))
    pairs.append(("Exact optimum, free weights", optima.user_task_optimum, optima.user_task_optimum))
    return [
        ComparedAllocation(name, allocation, optimum, compute_skew(allocation))
        for name, allocation, optimum in pairs
    ]


# --- private counts -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CountsSolution:
    """The cost of a private release of the task sizes: one simulated draw.

    Attributes:
        counts: What would be released.
        with_slack: Weights from n_hat + s on what is left of the budget (equation 18).
        without_slack: Weights from n_hat alone, floored at 1.
        cost_factor: (1 / m) sum (n_hat + s) / n_i.
        num_underestimated: Number of tasks whose n_hat + s is below their size.
        budget_share: Of the budget that the counts take.
    """

    counts: PrivateCounts
    with_slack: Allocation
    without_slack: Allocation
    cost_factor: float
    num_underestimated: int
    budget_share: float

    def compare_total(self, allocation: Allocation, exact: Allocation) -> float:
        """Compare the error bound of all tasks with the remaining budget to that of exact sizes with all of it."""
        # 1/beta, for convex losses its root.
        power = 1.0 if exact.problem.loss is Loss.STRONGLY_CONVEX else 0.5
        return float(compute_total_ratio(allocation, exact) / (1.0 - self.budget_share) ** power)


def simulate_counts(
    tasks: Tasks, question: WeightQuestion, budget: float, parameters: MultitaskParameters
) -> CountsSolution:
    """Simulate the counts for this beta, and weight by them."""
    share, sizes = parameters.count_share, tasks.graph.task_sizes
    counts = release_counts(
        tasks.graph,
        budget * share,
        parameters.count_max_tasks,
        np.random.default_rng(parameters.count_seed),
        COVERED_SHARE if parameters.count_covers else 0.0,
    )
    remaining_problem = TaskProblem.from_graph(tasks.graph, budget * (1.0 - share), question.loss)
    return CountsSolution(
        counts=counts,
        with_slack=question.rule.allocate(remaining_problem, counts.usable),
        without_slack=question.rule.allocate(remaining_problem, np.maximum(counts.estimates, 1.0)),
        cost_factor=compute_cost_factor(sizes, counts.usable),
        num_underestimated=int((counts.usable < sizes).sum()),
        budget_share=share,
    )


def describe_counts(comparison: WeightComparison, counts_solution: CountsSolution) -> str:
    """Describe one draw of the private counts."""
    counts, sizes = counts_solution.counts, comparison.problem.task_sizes
    num_heavy_users = int((comparison.tasks.graph.tasks_per_user > counts.max_tasks).sum())
    sentences = [
        f"Noise of standard deviation {wording.number(counts.noise_scale)} on every count; the median task has "
        f"{wording.counted(float(sorted(sizes)[sizes.size // 2]), 'user')}."
    ]
    if num_heavy_users:
        sentences.append(
            f"{wording.counted(num_heavy_users, 'user')} {wording.agreeing(num_heavy_users, 'has', 'have')} more than "
            f"{wording.counted(counts.max_tasks, 'task')}, so counts are too low."
        )
        if not counts.covers_truncation:
            sentences.append("The slack s does not cover that.")
    sentences.append(
        f"{wording.counted(counts_solution.num_underestimated, 'task')} of {sizes.size:,} "
        f"{wording.agreeing(counts_solution.num_underestimated, 'has', 'have')} n̂ + s below the true size."
        if counts_solution.num_underestimated
        else "n̂ + s is at least the true size for every task."
    )
    if counts_solution.with_slack.total_bound > 1.05 * counts_solution.without_slack.total_bound:
        sentences.append(
            "**The slack costs more than it saves here**: n̂ alone is better, although it clips more users."
        )
    return " ".join(sentences)


def describe_free_weights(free: WeightSkew) -> str:
    """Describe the gain of free weights, and its price."""
    ratio = free.user_size_ratio
    return (
        "With free weights, light users give more to each task than heavy ones can. So a task learns more from users "
        f"with few tasks: weighted by them, its users have {wording.percent(1.0 - float(ratio.mean()))} fewer tasks on "
        f"average, {wording.percent(1.0 - float(ratio.min()))} at worst. If light and heavy users differ, that biases "
        "the task, and no bound here counts it."
    )


def describe_budgets(budgets: BudgetComparison) -> str:
    """Describe exact and sufficient beta in a table and a sentence."""
    lines = [
        "| | β | weights | error bounds |",
        "|---|---|---|---|",
        f"| exact | {wording.number(budgets.exact, 4)} | 1 | 1 |",
    ]
    if budgets.sufficient is None or budgets.weight_gain is None:
        lines.append("| paper | does not apply: ε > log(1/δ) | | |")
        sentence = "The paper's condition needs ε ≤ log(1/δ), which does not hold here."
    else:
        weight_gain = budgets.weight_gain
        lines.append(
            f"| paper | {wording.number(budgets.sufficient, 4)} | {1.0 / weight_gain:.3f} | {weight_gain**2:.3f}× |"
        )
        sentence = (
            f"The exact conversion allows every weight to be {weight_gain:.3f} times as large; error bounds of "
            f"strongly convex losses fall by {wording.percent(1.0 - 1.0 / weight_gain**2)}."
        )
    return (
        "\n".join(lines)
        + f"\n\n{sentence} All releases are one Gaussian mechanism with noise "
        + f"{wording.number(budgets.noise_multiplier)} times its sensitivity."
    )


EPSILON_STYLES = (
    (Style.CAP, "solid", "circle"),
    (Style.SMOOTH, "dash", "diamond"),
    (Style.SAMPLING, "dot", "square"),
    (Style.PRIVACY, "dashdot", "triangle-up"),
)
"""One per epsilon; at most so many are asked for."""
ALGORITHM_NAMES = {
    Algorithm.SUFFICIENT_STATISTICS: "Algorithm 1, sufficient statistics",
    Algorithm.GRADIENT_DESCENT: "Algorithm 2, noisy gradient descent",
}


def make_error_axis(result: ExperimentResult, relative: bool) -> Axis:
    """Make one axis for all panels."""
    if not relative:
        mean = result.average()
        limits = float(np.nanmin(mean)) / 1.15, float(np.nanmax(mean)) * 1.15
        return Axis("test error", "RMSE", limits)
    ratio, error = result.compare_with_uniform()
    half_width = 2.0 * np.nan_to_num(error)
    low, high = float(np.nanmin(ratio - half_width)), float(np.nanmax(ratio + half_width))
    return linear_axis("test error", (low - 0.03, high + 0.03), "1 = uniform")


def plot_errors(result: ExperimentResult, algorithm: int, power: int, relative: bool) -> Plot:
    """Plot mean test error over mu, per epsilon, or relative to mu = 0; whiskers are two standard errors."""
    experiment = result.experiment
    mean, error = (
        result.compare_with_uniform() if relative else (result.average(), result.compute_standard_error())
    )
    exponents, curves = np.array(experiment.exponents), []
    columns: dict[str, npt.ArrayLike] = {"mu": exponents}
    for epsilon_index, (epsilon, (style, dash, symbol)) in enumerate(
        zip(experiment.epsilons, EPSILON_STYLES, strict=False)
    ):
        suffix = f"epsilon_{wording.digits(epsilon)}"
        means, errors = mean[algorithm, power, epsilon_index], error[algorithm, power, epsilon_index]
        columns |= {
            f"{'relative_rmse' if relative else 'rmse'}_{suffix}": means,
            f"standard_error_{suffix}": errors,
        }
        if np.isfinite(means).any():
            name, spread = f"ε = {wording.entered(epsilon)}", np.nan_to_num(2.0 * errors)
            ends = means - spread, means + spread
            curves.append(Curve(name, exponents, means, style, *ends, dash=dash, width=2.0, symbol=symbol))
    title, skew = ALGORITHM_NAMES[experiment.algorithms[algorithm]], wording.entered(experiment.powers[power])
    ticks = tuple(zip(np.arange(5) / 4.0, ("0", "1/4", "1/2", "3/4", "1"), strict=True))
    return Plot(
        f"many-tasks-experiment-{algorithm + 1}-{wording.digits(experiment.powers[power])}",
        f"{title}, a = {skew}",
        f"Test error against the exponent for {title} at skew a = {skew}.",
        linear_axis("exponent μ", (-0.04, 1.04), named_ticks=ticks),
        make_error_axis(result, relative),
        curves,
        Disclosure.PUBLIC,
        columns,
        height=300,
    )


def tabulate_errors(result: ExperimentResult) -> dict[str, list[object]]:
    """Tabulate per panel and epsilon the exponent of the smallest error, and the paired gain of 1/2 over 0 and 1."""
    experiment, mean = result.experiment, result.average()
    gain_over_zero, gain_over_one = result.compare_exponents(0.5, 0.0), result.compare_exponents(0.5, 1.0)
    rows: dict[str, list[object]] = {
        name: []
        for name in ("Algorithm", "a", "ε", "Best μ", "Its RMSE", "μ = 1/2 against 0", "μ = 1/2 against 1")
    }
    for algorithm_index, algorithm in enumerate(experiment.algorithms):
        for power_index, power in enumerate(experiment.powers):
            for epsilon_index, epsilon in enumerate(experiment.epsilons):
                errors = mean[algorithm_index, power_index, epsilon_index]
                if not np.isfinite(errors).any():
                    continue
                best = int(np.nanargmin(errors))
                row = (
                    ALGORITHM_NAMES[algorithm],
                    power,
                    epsilon,
                    experiment.exponents[best],
                    float(errors[best]),
                    _format_gain(
                        gain_over_zero[0][algorithm_index, power_index, epsilon_index],
                        gain_over_zero[1][algorithm_index, power_index, epsilon_index],
                    ),
                    _format_gain(
                        gain_over_one[0][algorithm_index, power_index, epsilon_index],
                        gain_over_one[1][algorithm_index, power_index, epsilon_index],
                    ),
                )
                for name, value in zip(rows, row, strict=True):
                    rows[name].append(value)
    return rows


def _format_gain(gain: float, error: float) -> str:
    """Format how much smaller the error is, with two standard errors."""
    if not math.isfinite(gain):
        return "not reached"
    sign = "−" if gain >= 0 else "+"
    spread = f" ± {2.0 * error:.4f}" if math.isfinite(error) else ""
    return f"{sign}{abs(gain):.4f}{spread}"
