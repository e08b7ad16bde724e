"""The tabs of many tasks."""

from __future__ import annotations

import functools
import math

import numpy as np
import numpy.typing as npt

from dpcore.answer import standard
from dpcore.answer.answer import Answer
from dpcore.answer.plot import Axis, Curve, Plot, Style, linear_axis
from dpcore.answer.section import (
    BEHIND,
    DOWNLOADS,
    Cached,
    Choice,
    Columns,
    Fields,
    Figures,
    File,
    ItemNames,
    Label,
    Note,
    Numbers,
    PaperFigures,
    Parts,
    Row,
    Search,
    Section,
    Sections,
    Table,
)
from dpcore.common import wording
from dpcore.common.noise_error import Summary
from dpcore.common.privacy import Disclosure, write_file_name
from dpcore.data.column_names import escape_formula
from dpcore.dataset import Dataset
from dpcore.multitask import exact, files
from dpcore.multitask.answer import plots, words
from dpcore.multitask.answer.solution import (
    Optima,
    Tasks,
    WeightComparison,
    compute_total_ratio,
    search_optima,
)
from dpcore.multitask.experiment import FIGURES, Algorithm, ExperimentResult, run_experiment
from dpcore.multitask.parameters import MultitaskParameters
from dpcore.multitask.problem import Allocation, Loss, compare_budgets
from dpcore.multitask.sampling import PrivateCounts, compute_cost_factor, release_counts
from dpcore.multitask.weights import BudgetFit, WeightRule, compute_skew

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
EXPONENT_TICKS = ((0.0, "0"), (0.25, "1/4"), (0.5, "1/2"), (0.75, "3/4"), (1.0, "1"))


def plot_errors(result: ExperimentResult, is_relative: bool) -> list[tuple[Plot, ...]]:
    """Plot mean test error over mu: a row of plots per algorithm, a plot per skew, a curve per epsilon.

    Args:
        result: The experiment.
        is_relative: True if errors are those relative to mu = 0, paired over repeats.
    """
    experiment = result.experiment
    summaries = {panel: result.summarise(panel, is_relative) for panel in result.errors}
    means = np.array([summary.mean for summary in summaries.values()])
    # All panels have one axis.
    if is_relative:
        whiskers = np.nan_to_num([2.0 * summary.standard_error for summary in summaries.values()])
        limits = float(np.nanmin(means - whiskers)) - 0.03, float(np.nanmax(means + whiskers)) + 0.03
        axis = linear_axis("test error", limits, "1 = uniform")
    else:
        axis = Axis("test error", "RMSE", (float(np.nanmin(means)) / 1.15, float(np.nanmax(means)) * 1.15))

    def plot_panels(number: int, algorithm: Algorithm, power: float) -> Plot:
        exponents, curves = np.array(experiment.exponents), []
        columns: dict[str, npt.ArrayLike] = {"mu": exponents}
        # Fewer epsilons than styles.
        for epsilon, (style, dash, symbol) in zip(experiment.epsilons, EPSILON_STYLES, strict=False):
            summary, suffix = summaries[algorithm, power, epsilon], f"epsilon_{wording.digits(epsilon)}"
            columns[f"{'relative_rmse' if is_relative else 'rmse'}_{suffix}"] = summary.mean
            columns[f"standard_error_{suffix}"] = summary.standard_error
            spread = np.nan_to_num(2.0 * summary.standard_error)
            ends, name = (summary.mean - spread, summary.mean + spread), f"ε = {wording.entered(epsilon)}"
            curves.append(
                Curve(name, exponents, summary.mean, style, *ends, dash=dash, width=2.0, symbol=symbol)
            )
        title = f"{ALGORITHM_NAMES[algorithm]}, a = {wording.entered(power)}"
        return Plot(
            f"many-tasks-experiment-{number}-{wording.digits(power)}",
            title,
            f"Test error against the exponent for {title}.",
            linear_axis("exponent μ", (-0.04, 1.04), named_ticks=EXPONENT_TICKS),
            axis,
            curves,
            Disclosure.PUBLIC,
            columns,
            height=300,
        )

    return [
        tuple(plot_panels(number, algorithm, power) for power in experiment.powers)
        for number, algorithm in enumerate(experiment.algorithms, 1)
    ]


def tabulate_errors(result: ExperimentResult) -> list[dict[str, object]]:
    """Tabulate per panel the exponent of the smallest error, and the paired gain of 1/2 over 0 and 1."""
    rows: list[dict[str, object]] = []
    for panel, errors in result.errors.items():
        if not np.isfinite(errors).any():
            continue
        mean = result.summarise(panel).mean
        best = int(np.nanargmin(mean))
        rows.append(
            {
                "Algorithm": ALGORITHM_NAMES[panel[0]],
                "a": panel[1],
                "ε": panel[2],
                "Best μ": result.experiment.exponents[best],
                "Its RMSE": float(mean[best]),
                "μ = 1/2 against 0": _format_gain(result.compare_exponents(panel, 0.5, 0.0)),
                "μ = 1/2 against 1": _format_gain(result.compare_exponents(panel, 0.5, 1.0)),
            }
        )
    return rows


def _format_gain(gain: Summary) -> str:
    """Format how much smaller the error is, with two standard errors."""
    if not math.isfinite(gain.mean):
        return "not reached"
    spread = f" ± {2.0 * float(gain.standard_error):.4f}" if math.isfinite(gain.standard_error) else ""
    return f"{'−' if gain.mean >= 0 else '+'}{abs(float(gain.mean)):.4f}{spread}"


def show_experiment(answer: Answer, dataset: Dataset) -> Parts:
    """Show the experiment, and below it the paper's figure at its setting."""
    experiment = answer.parameters.experiment
    yield (
        "Appendix C of the paper, run here: 100 linear regressions in 5 dimensions, each user in 20 of them on "
        "average; 80 % of the pairs train, 20 % test. **Which μ predicts best?** Weights are scaled so that every user "
        "spends the whole budget; within a repeat all μ share data and noise."
    )
    result: ExperimentResult | None = yield Search(
        "experiment_job",
        experiment,
        lambda progress, stop: run_experiment(experiment, progress, stop),
        "Running",
        "Run",
        fields=("experiment_epsilons", "experiment_users", "experiment_repeats", "experiment_seed"),
        idle="It has not run yet. With these defaults it takes about ten seconds.",
        shows_outdated=True,
        of_data=False,
    )
    if result is not None:
        yield from _show_errors(result)
    yield PaperFigures(FIGURES)


def _show_errors(result: ExperimentResult) -> Parts:
    if not result.num_done:
        yield Note("Stopped before the first run was done.", "stop_circle")
        return
    if not result.is_finished:
        yield Note(f":material/stop_circle: Stopped after {result.num_done:,} of {result.num_runs:,} runs.")
    is_relative = yield Choice(
        "relative", "Test error", {True: "Relative to that of uniform weights (μ = 0)", False: "As it is"}
    )
    for row in plot_errors(result, is_relative):
        yield Figures(row, titled=True)
    yield Table(
        tabulate_errors(result),
        "Best exponent per algorithm, skew and privacy budget, and what 1/2 gains over 0 and 1",
        {"Its RMSE": "%.4f"},
    )
    yield Note(
        f"{wording.counted(result.num_done, 'run')}; whiskers and ± are two standard errors over "
        f"{wording.counted(result.experiment.repeats, 'repeat')}, the last two columns paired: a minus sign means that "
        f"μ = 1/2 has the smaller error. δ = {wording.entered(result.experiment.delta)}. The paper gives neither "
        "regularisation nor clipping bounds nor steps; those used here were chosen on other seeds."
    )
    yield Label(Disclosure.PUBLIC)


TABLE_ROWS = 2_000
LARGE_FILE = 1_000_000
"""Pairs above which a person is told how long the file will be."""
COVERED_SHARE = 0.1
"""Share of the counts' budget for the release that covers what counting at most k tasks misses."""


def show_graph(answer: Answer, dataset: Dataset) -> Parts:
    """Describe the graph and the budget."""
    yield Note(words.describe_tasks(answer.solution))


def show_weights(answer: Answer, dataset: Dataset) -> Parts:
    """Show the total bound over mu, and weights against sizes."""
    yield Figures((answer.plots["many-tasks-exponents"](), answer.plots["many-tasks-weights"]()), titled=True)


def show_users_and_tasks(answer: Answer, dataset: Dataset) -> Parts:
    """Show the use of the budget, the users who use it, the sizes of tasks, and a table of the tasks."""
    solution, comparison = answer.solution, answer.solution.comparison
    yield Figures((plots.plot_use(comparison), plots.plot_users(comparison)), titled=True)
    if num_idle := int((solution.tasks.graph.tasks_per_user == 0).sum()):
        are = wording.agreeing(num_idle, "is", "are")
        yield Note(f"{wording.counted(num_idle, 'user')} without a task {are} left out of both.")
    yield Figures((plots.plot_sizes(solution.tasks, has_all_tasks=True),), titled=True)
    uses_data = answer.parameters.generator is None
    columns, num_left_out = plots.tabulate_tasks(solution, TABLE_ROWS)
    names = (yield ItemNames("task")) if uses_data else None
    # Tasks without users are left out of the graph, and would shift the others' numbers.
    if names and dataset.pairs is not None and solution.tasks.graph.num_tasks == dataset.pairs.num_tasks:
        columns = {"Name": [escape_formula(names[task]) for task in np.asarray(columns["Task"])], **columns}
    yield Table(
        columns,
        "Tasks with their size, weight and share of the total error, smallest task first",
        {
            "Task": "%d",
            "Users": "localized",
            "Weight, mean": ("%.3g", "Mean over the task's users, after fitting to β."),
            "Weight against uniform": "%.2f",
            "Error bound against uniform": "%.2f",
            "Share of the total error": "percent",
        },
    )
    gap_text = f", without {wording.counted(num_left_out, 'task')} in the middle" if num_left_out else ""
    order_text = "in which they first appear in your file" if uses_data else "in which they were drawn"
    yield Note(f"Smallest task first{gap_text}. Tasks are numbered from 0 in the order {order_text}.")
    yield Label()


def compare_with_optima(comparison: WeightComparison, optima: Optima) -> list[dict[str, object]]:
    """Tabulate each way of dividing the budget beside the optimum of its kind."""
    kinds = {
        "problem (9)": ("weigh the same", {BudgetFit.NOBODY_CLIPPED: "nobody clipped"}),
        "free weights": ("may differ", {BudgetFit.CLIPPED: "clipped, c = 1", BudgetFit.FULL: "filled up"}),
    }
    rows: list[dict[str, object]] = []
    for optimum_name, (users_text, fits) in kinds.items():
        optimum, allocations = optima.by_name[optimum_name], dict[str, Allocation]()
        if BudgetFit.CLIPPED in fits:
            allocations[words.name_sampling(comparison.sampling)] = comparison.sampling
        for fit, fit_text in fits.items():
            for exponent in sorted({0.0, comparison.rule.exponent}):
                name = f"μ = {wording.entered(exponent)}" if exponent else "Uniform"
                allocations[f"{name}, {fit_text}"] = WeightRule(exponent, fit).allocate(comparison.problem)
        for name, allocation in (allocations | {f"Exact optimum, {optimum_name}": optimum}).items():
            excess = max(compute_total_ratio(allocation, optimum) - 1.0, 0.0)
            rows.append(
                {
                    "Users of a task": users_text,
                    "Weights": name,
                    "Total bound": compute_total_ratio(allocation, optima.user_task_optimum),
                    "Above the optimum of its kind": 100.0 * excess,
                    "Largest weight skew": 100.0 * compute_skew(allocation).largest_variation,
                }
            )
    return rows


def show_optimum(answer: Answer, dataset: Dataset) -> Parts:
    """Show the exact optima once they are asked for, and what CVXPY finds."""
    comparison = answer.solution.comparison
    tasks, problem = comparison.tasks, comparison.problem
    yield (
        "If the graph of users and tasks is public, the weights can be computed from it. **Compare like with like:** "
        "problem (9) gives all users of a task the same weight, so compare it with weights that clip nobody. Compare "
        "clipped weights with the optimum over weights that are free for every user and task."
    )
    optima: Optima | None = yield search_optima(tasks, problem.loss)
    if optima is not None:
        yield Table(
            (yield Cached(compare_with_optima, (comparison, optima), kept=4)),
            "Total error bound of every way of dividing the budget, beside the optimum of its kind",
            {
                "Total bound": ("%.3f", "1 is the exact optimum over free weights."),
                "Above the optimum of its kind": "%.2f %%",
                "Largest weight skew": ("%.1f %%", "Share of a task's weight that moves to other users."),
            },
        )
        for name, optimum in optima.by_name.items():
            assert optimum.certificate is not None
            yield Note(f"**{wording.capital(name)}.** {optimum.stop_reason} {optimum.certificate.sentence}")
        free = compute_skew(optima.user_task_optimum)
        optimum_plots = plots.plot_optimum(comparison, optima), plots.plot_skew(comparison, free)
        yield Figures(optimum_plots, titled=True)
        yield words.describe_free_weights(free)
        yield Label()
    num_pairs = tasks.graph.num_pairs
    yield from standard.show_other_solver(
        "cvxpy_job",
        (tasks.digest, problem.loss),
        functools.partial(exact.compare_with_cvxpy, problem),
        "Total bound for β = 1",
        f"A general solver takes too long for {wording.counted(num_pairs, 'pair')} of a user and a task; the "
        f"comparison is offered up to {exact.MAX_PAIRS:,}."
        if num_pairs > exact.MAX_PAIRS
        else "",
    )
    yield Label()


def simulate_counts(
    tasks: Tasks, budget: float, parameters: MultitaskParameters
) -> tuple[PrivateCounts, Allocation, Allocation]:
    """Simulate one draw of private counts.

    Args:
        tasks: Users and tasks.
        budget: beta.
        parameters: Which weights, and how to count.

    Returns:
        The counts, and the weights on what is left of the budget: from n_hat + s (equation 18), and from n_hat alone,
        at least 1.
    """
    share, rng = parameters.count_share, np.random.default_rng(parameters.count_seed)
    covered_share = COVERED_SHARE if parameters.count_covers else 0.0
    counts = release_counts(tasks.graph, budget * share, parameters.count_max_tasks, rng, covered_share)
    problem = tasks.build_problem(parameters.loss, budget * (1.0 - share))
    without_slack = parameters.rule.allocate(problem, np.maximum(counts.estimates, 1.0))
    return counts, parameters.rule.allocate(problem, counts.usable_counts), without_slack


def show_counts(answer: Answer, dataset: Dataset) -> Parts:
    """Show the cost of releasing the sizes privately first."""
    comparison, tasks, parameters = answer.solution.comparison, answer.solution.tasks, answer.parameters
    yield (
        "If task sizes are not public, release them first, for a part of β. **What does that cost?** The page "
        "simulates one draw of the noise; nothing is released."
    )
    yield Fields(("count_share", "count_max_tasks", "count_covers", "count_seed"), (3, 3, 4, 2))
    arguments = (tasks, answer.solution.budgets.exact_budget, parameters)
    counts, *allocations = yield Cached(simulate_counts, arguments, kept=4)
    # The bound is proportional to 1/beta, for convex losses to its root.
    loss_factor = (1.0 - parameters.count_share) ** (0.5 if parameters.loss is Loss.CONVEX else 1.0)
    with_slack, without_slack = (
        compute_total_ratio(allocation, comparison.allocation) / loss_factor for allocation in allocations
    )
    cost_factor = compute_cost_factor(tasks.graph.task_sizes, counts.usable_counts)
    left_column = (
        Numbers(words.build_count_numbers(counts, with_slack, without_slack, cost_factor)),
        words.describe_counts(comparison, counts, slack_helps=with_slack <= 1.05 * without_slack),
    )
    yield Columns((left_column, (plots.plot_counts(tasks, counts),)))
    yield Label(after=":violet-badge[:material/casino: simulation: not a release]")


def show_budget(answer: Answer, dataset: Dataset) -> Parts:
    """Show the exact and the sufficient beta."""
    parameters = answer.parameters
    budgets = compare_budgets(parameters.target)
    columns = yield Cached(plots.build_budget_columns, (parameters.delta,), kept=8)
    plot = plots.plot_budget(columns, parameters.epsilon, budgets.exact_budget)
    yield Columns(((words.describe_budgets(budgets),), (plot,)))


def show_weight_files(answer: Answer, dataset: Dataset) -> Parts:
    """Offer the weights and the code that applies them."""
    solution, comparison = answer.solution, answer.solution.comparison
    allocations = {
        f"Chosen: μ = {words.format_exponent(comparison.rule.exponent)}": comparison.allocation,
        words.name_sampling(comparison.sampling): comparison.sampling,
    }
    for name, optimum in {} if solution.optima is None else solution.optima.by_name.items():
        allocations[f"Exact optimum, {name}"] = optimum
    name = yield Choice("download", "Which weights", {name: name for name in allocations})
    allocation, label = allocations[name].with_budget(solution.budgets.exact_budget), answer.disclosure.label
    if allocation.reads_graph:
        yield Note(
            ":material/warning: These weights are computed from who contributes to what, so they are not part of a "
            "private mechanism."
        )
    code = files.write_numpy_code(allocation, f"{write_file_name('task_weights', answer.disclosure)}.csv")
    write_tasks = functools.partial(files.write_task_weights, allocation, label)
    write_pairs = functools.partial(files.write_pair_weights, allocation, label)
    yield Row(
        (
            File("Task weights (CSV)", "task_weights.csv", write_tasks),
            File("User-task weights (CSV)", "user_task_weights.csv", write_pairs),
            File("Code (Python)", "apply_weights.py", lambda: code, Disclosure.PUBLIC),
        )
    )
    pairs = solution.tasks.graph.num_pairs
    size_text = f", about {pairs * 32 / 1e6:,.0f} MB" if pairs > LARGE_FILE else ""
    yield Note(
        f"Label in both tables: *{label}*. {wording.counted(pairs, 'line')} of user-task weights{size_text}. Users and "
        "tasks are numbered from 0 in the order in which they first appear; the code computes every user's weights "
        "from the tasks' factors."
    )
    yield f"```python\n{code}\n```"


STUDIES: dict[str, Section] = {"Budget": show_budget, "Experiment": show_experiment}
"""Tabs that need no tasks."""
SECTIONS: Sections = {
    BEHIND: show_graph,
    "Tasks": {
        "Weights": show_weights,
        "Users and tasks": show_users_and_tasks,
        "Exact optimum": show_optimum,
        "Private counts": show_counts,
    },
    "Studies": STUDIES,
    DOWNLOADS: show_weight_files,
}
