"""The tabs of many tasks, and the files of weights."""

from __future__ import annotations

import functools
import math
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpcore.answer import section, standard
from dpcore.answer.answer import Answer
from dpcore.answer.plot import Axis, Curve, Plot, Style, linear_axis
from dpcore.code.common import render
from dpcore.common.noise_error import Summary
from dpcore.common.privacy import Disclosure, write_file_name
from dpcore.common.wording import format_count, format_digits, format_entered
from dpcore.data.column_names import escape_formula
from dpcore.dataset import Dataset
from dpcore.multitask import exact
from dpcore.multitask.answer import plots, words
from dpcore.multitask.answer.solution import Optima, Tasks, WeightComparison, compare_totals, search_optima
from dpcore.multitask.experiment import FIGURES, Algorithm, ExperimentResult, run_experiment
from dpcore.multitask.parameters import MultitaskParameters
from dpcore.multitask.problem import Allocation, Loss, TaskProblem, compare_budgets
from dpcore.multitask.sampling import (
    ReleasedUserCounts,
    compute_cost_factor,
    count_tasks_per_user,
    release_counts,
)
from dpcore.multitask.weights import BudgetFit, WeightRule, compute_skew

MAX_TABLE_ROWS = 2_000
LARGE_FILE_PAIRS = 1_000_000
"""Pairs above which its size is told."""
PAIRS_PER_CSV_PIECE = 100_000
"""Pairs whose weights are in memory at a time."""
TRUNCATION_SHARE_OF_BUDGET = 0.1
"""Share of the counts' budget for the slack of uncounted tasks."""
STYLE_DASH_SYMBOL_OF_EPSILONS = (
    (Style.CAP, "solid", "circle"),
    (Style.SMOOTH, "dash", "triangle-up"),
    (Style.SAMPLING, "dot", "square"),
    (Style.PRIVACY, "dashdot", "triangle-up"),
)
"""One for each of up to four epsilons."""
NAME_BY_ALGORITHM = {
    Algorithm.SUFFICIENT_STATISTICS: "Algorithm 1, sufficient statistics",
    Algorithm.GRADIENT_DESCENT: "Algorithm 2, noisy gradient descent",
}


def show_graph(answer: Answer, dataset: Dataset) -> section.Parts:
    """Yield a note with the numbers of users, tasks and pairs."""
    yield section.Note(words.describe_tasks(answer.solution))


def show_weights(answer: Answer, dataset: Dataset) -> section.Parts:
    """Yield the total bound over mu, and the error bounds from tail to head beside the best uniform sampling."""
    plot_keys = ("many-tasks-exponents", "many-tasks-buckets")
    yield section.Figures(tuple(answer.plots[plot_key]() for plot_key in plot_keys), has_titles=True)


def show_users_and_tasks(answer: Answer, dataset: Dataset) -> section.Parts:
    """Yield the use of the budget, the sizes of tasks, and a table of tasks by code, with names if they are known."""
    solution, comparison = answer.solution, answer.solution.comparison
    yield section.Figures(
        (plots.plot_budget_use(comparison), plots.plot_sizes(solution.tasks, file_has_all_tasks=True)),
        has_titles=True,
    )
    if num_idle_users := int((solution.tasks.graph.tasks_per_user == 0).sum()):
        yield section.Note(f"Without {format_count(num_idle_users, 'user')} who contribute to no task.")
    uses_data = answer.parameters.generator is None
    table_columns, num_left_out = plots.tabulate_tasks(solution, MAX_TABLE_ROWS)
    task_names = (yield section.ItemNames("task")) if uses_data else None
    # Tasks without users are left out of the graph, and would shift the others' numbers.
    if task_names and dataset.pairs is not None and solution.tasks.graph.num_tasks == dataset.pairs.num_tasks:
        shown_task_names = [
            escape_formula(task_names[task_code]) for task_code in np.asarray(table_columns["Task"])
        ]
        table_columns = {"Name": shown_task_names, **table_columns}
    yield section.Table(
        table_columns,
        "Tasks with size, weight and error bound, smallest first",
        {
            "Task": "%d",
            "Users": "localized",
            "Weight, mean": ("%.3g", "After fitting to β."),
            "Weight against uniform": "%.2f",
            "Error bound against uniform": "%.2f",
            "Share of the total error": "percent",
        },
    )
    left_out_sentence = (
        f" Without {format_count(num_left_out, 'task')} in the middle." if num_left_out else ""
    )
    yield section.Note(f"Numbered from 0 as tasks first appear.{left_out_sentence}")
    yield section.Label()


def compare_with_optima(comparison: WeightComparison, optima: Optima) -> list[dict[str, object]]:
    """List table rows: each way of dividing the budget, with its total bound over the optimum of its kind."""
    table_rows: list[dict[str, object]] = []
    for optimum_name, users_phrase, phrase_by_fit in (
        ("problem (9)", "weigh the same", {BudgetFit.NOBODY_CLIPPED: "nobody clipped"}),
        ("free weights", "may differ", {BudgetFit.CLIPPED: "clipped, c = 1", BudgetFit.FULL: "filled up"}),
    ):
        optimum, allocation_by_name = optima.allocations_by_name[optimum_name], dict[str, Allocation]()
        if BudgetFit.CLIPPED in phrase_by_fit:
            allocation_by_name[words.name_sampling(comparison.best_task_sampling)] = (
                comparison.best_task_sampling
            )
        for budget_fit, fit_phrase in phrase_by_fit.items():
            for exponent in sorted({0.0, comparison.rule.exponent}):
                weights_name = f"μ = {format_entered(exponent)}" if exponent else "Uniform"
                weight_rule = WeightRule(exponent, budget_fit)
                allocation_by_name[f"{weights_name}, {fit_phrase}"] = weight_rule.allocate(comparison.problem)
        allocation_by_name[f"Exact optimum, {optimum_name}"] = optimum
        for weights_name, allocation in allocation_by_name.items():
            table_rows.append(
                {
                    "Users of a task": users_phrase,
                    "Weights": weights_name,
                    "Total bound": compare_totals(allocation, optima.user_task_optimum),
                    "Above the optimum of its kind": 100.0
                    * max(compare_totals(allocation, optimum) - 1.0, 0.0),
                    "Largest weight skew": 100.0 * compute_skew(allocation).max(),
                }
            )
    return table_rows


def show_optimum(answer: Answer, dataset: Dataset) -> section.Parts:
    """Yield a search for the exact optima, what it has found, and for a small graph a comparison with CVXPY."""
    comparison = answer.solution.comparison
    tasks, problem = comparison.tasks, comparison.problem
    yield (
        "Here it must be public who contributes to what. Problem (9) gives all users of a task one weight and clips "
        "nobody. Compare clipped weights with free weights, which differ between users."
    )
    optima: Optima | None = yield search_optima(tasks, problem.loss)
    if optima is not None:
        yield section.Table(
            (yield section.Cached(compare_with_optima, (comparison, optima), num_kept=4)),
            "Total error bounds beside the optimum of their kind",
            {
                "Total bound": ("%.3f", "1 is the optimum."),
                "Above the optimum of its kind": "%.2f %%",
                "Largest weight skew": ("%.1f %%", "Weight that moves to other users."),
            },
        )
        skew_plot = plots.plot_skew(comparison, compute_skew(optima.user_task_optimum))
        yield section.Figures((plots.plot_optimum(comparison, optima), skew_plot), has_titles=True)
        yield "Free weights favour users with few tasks: a bias if they differ, which no bound counts."
        yield section.Label()
    yield from standard.show_other_solver(
        "cvxpy_job",
        (tasks.digest, problem.loss),
        functools.partial(exact.compare_with_cvxpy, problem),
        "Total bound for β = 1",
        f"Offered up to {exact.MAX_PAIRS:,} pairs of a user and a task: CVXPY takes too long."
        if tasks.graph.num_pairs > exact.MAX_PAIRS
        else "",
    )
    yield section.Label()


def simulate_counts(
    tasks: Tasks, budget: float, parameters: MultitaskParameters
) -> tuple[ReleasedUserCounts, Allocation, Allocation]:
    """Simulate one private release of task sizes; return it, and the weights from it with and without slack.

    Args:
        tasks: Users and tasks.
        budget: beta.
        parameters: Which weights, and how to count.

    Returns:
        The counts, and the weights on what is left of the budget: from n_hat + s (equation 18), and from n_hat alone,
        at least 1.
    """
    count_share, max_tasks = parameters.count_share, parameters.count_max_tasks
    truncation_share = TRUNCATION_SHARE_OF_BUDGET if parameters.count_covers else 0.0
    rng = np.random.default_rng(parameters.count_seed)
    private_counts = release_counts(tasks.graph, budget * count_share, max_tasks, rng, truncation_share)
    problem = TaskProblem(tasks.graph, budget * (1.0 - count_share), parameters.loss)
    allocate_by_rule = functools.partial(parameters.rule.allocate, problem)
    floored_estimates = np.maximum(private_counts.estimates, 1.0)
    return private_counts, allocate_by_rule(private_counts.usable_counts), allocate_by_rule(floored_estimates)


def show_counts(answer: Answer, dataset: Dataset) -> section.Parts:
    """Yield what releasing the task sizes privately first would cost, on one simulated release."""
    comparison, tasks, parameters = answer.solution.comparison, answer.solution.tasks, answer.parameters
    yield "**What does it cost** to release task sizes first, for a part of β?"
    yield section.Fields(("count_share", "count_max_tasks", "count_covers", "count_seed"), (3, 3, 4, 2))
    simulation_arguments = (tasks, answer.solution.budgets.exact_budget, parameters)
    private_counts, *allocations = yield section.Cached(simulate_counts, simulation_arguments, num_kept=4)
    # The bound is proportional to 1/beta, for convex losses to its root.
    count_cost = (1.0 - parameters.count_share) ** -(0.5 if parameters.loss is Loss.CONVEX else 1.0)
    ratio_with_slack, ratio_without_slack = (
        compare_totals(allocation, comparison.allocation) * count_cost for allocation in allocations
    )
    cost_factor = compute_cost_factor(tasks.graph.task_sizes, private_counts.usable_counts)
    numbers = words.build_count_numbers(private_counts, ratio_with_slack, ratio_without_slack, cost_factor)
    is_slack_cheap = ratio_with_slack <= 1.05 * ratio_without_slack
    counts_sentences = words.describe_counts(comparison, private_counts, is_slack_cheap)
    counts_plot = plots.plot_counts(tasks, private_counts)
    yield section.Columns(((section.Numbers(numbers), counts_sentences), (counts_plot,)))
    yield section.Label(preceding_text=":violet-badge[:material/casino: simulation: not a release]")


def show_budget(answer: Answer, dataset: Dataset) -> section.Parts:
    """Yield beta, exact and by the paper's sufficient condition, in a table and over epsilon."""
    parameters = answer.parameters
    budget_comparison = compare_budgets(parameters.target)
    budget_columns = yield section.Cached(plots.build_budget_columns, (parameters.delta,), num_kept=8)
    budget_plot = plots.plot_budget(budget_columns, parameters.epsilon, budget_comparison.exact_budget)
    yield section.Columns(((words.describe_budgets(budget_comparison),), (budget_plot,)))


# --- the experiment on generated tasks ------------------------------------------------------------------------


def plot_errors(result: ExperimentResult, is_relative: bool) -> list[tuple[Plot, ...]]:
    """Plot mean test error over mu: a row of plots per algorithm, a plot per skew, a curve per epsilon.

    Args:
        result: The experiment.
        is_relative: True if errors are those relative to mu = 0, paired over repeats.
    """
    experiment = result.experiment
    summaries_by_panel = {panel: result.summarise(panel, is_relative) for panel in result.errors_by_panel}
    means = np.array([summary.means for summary in summaries_by_panel.values()])
    # All panels have one axis.
    if is_relative:
        whisker_lengths = np.nan_to_num(
            [2.0 * summary.standard_errors for summary in summaries_by_panel.values()]
        )
        low_whisker, high_whisker = np.nanmin(means - whisker_lengths), np.nanmax(means + whisker_lengths)
        error_limits = float(low_whisker) - 0.03, float(high_whisker) + 0.03
        error_axis = linear_axis("test error", error_limits, "1 = uniform")
    else:
        error_limits = float(np.nanmin(means)) / 1.15, float(np.nanmax(means)) * 1.15
        error_axis = Axis("test error", "RMSE", error_limits)

    def plot_panel(algorithm_number: int, algorithm: Algorithm, power: float) -> Plot:
        """Plot the mean test error of one algorithm at one skew over mu, a curve per epsilon."""
        exponents, curves = np.array(experiment.exponents), []
        columns_by_name: dict[str, npt.ArrayLike] = {"mu": exponents}
        # Fewer epsilons than styles.
        for epsilon, (style, dash, symbol) in zip(
            experiment.epsilons, STYLE_DASH_SYMBOL_OF_EPSILONS, strict=False
        ):
            summary = summaries_by_panel[algorithm, power, epsilon]
            epsilon_key = f"epsilon_{format_digits(epsilon)}"
            columns_by_name[f"{'relative_rmse' if is_relative else 'rmse'}_{epsilon_key}"] = summary.means
            columns_by_name[f"standard_error_{epsilon_key}"] = summary.standard_errors
            whisker_lengths, mean_errors = np.nan_to_num(2.0 * summary.standard_errors), summary.means
            whisker_ends = (mean_errors - whisker_lengths, mean_errors + whisker_lengths)
            curve_name = f"ε = {format_entered(epsilon)}"
            curve = Curve(
                curve_name, exponents, mean_errors, style, *whisker_ends, dash=dash, width=2.0, symbol=symbol
            )
            curves.append(curve)
        panel_title = f"{NAME_BY_ALGORITHM[algorithm]}, a = {format_entered(power)}"
        return Plot(
            f"many-tasks-experiment-{algorithm_number}-{format_digits(power)}",
            panel_title,
            f"Test error against the exponent for {panel_title}.",
            linear_axis("exponent μ", (-0.04, 1.04), named_ticks=plots.EXPONENT_TICKS),
            error_axis,
            curves,
            Disclosure.PUBLIC,
            columns_by_name,
            height=300,
        )

    return [
        tuple(plot_panel(algorithm_number, algorithm, power) for power in experiment.powers)
        for algorithm_number, algorithm in enumerate(experiment.algorithms, 1)
    ]


def tabulate_errors(result: ExperimentResult) -> list[dict[str, object]]:
    """List table rows, one per panel that has runs: best exponent, its error, and the gain of 1/2 over 0 and 1."""
    table_rows: list[dict[str, object]] = []
    for panel, errors_of_panel in result.errors_by_panel.items():
        if not np.isfinite(errors_of_panel).any():
            continue
        mean_errors = result.summarise(panel).means
        best_index = int(np.nanargmin(mean_errors))
        table_rows.append(
            {
                "Algorithm": NAME_BY_ALGORITHM[panel[0]],
                "a": panel[1],
                "ε": panel[2],
                "Best μ": result.experiment.exponents[best_index],
                "Its RMSE": float(mean_errors[best_index]),
                "μ = 1/2 against 0": _format_gain(result.compare_exponents(panel, 0.5, 0.0)),
                "μ = 1/2 against 1": _format_gain(result.compare_exponents(panel, 0.5, 1.0)),
            }
        )
    return table_rows


def _format_gain(gain: Summary) -> str:
    """Format the change of the error, below 0 for a gain, with two standard errors; ``not reached`` without runs."""
    if not math.isfinite(gain.means):
        return "not reached"
    spread_text = f" ± {2.0 * float(gain.standard_errors):.4f}" if math.isfinite(gain.standard_errors) else ""
    return f"{'−' if gain.means >= 0 else '+'}{abs(float(gain.means)):.4f}{spread_text}"


def show_experiment(answer: Answer, dataset: Dataset) -> section.Parts:
    """Yield the search that runs the experiment, its results once there are some, and the paper's figure."""
    experiment = answer.parameters.experiment
    yield "**Which μ predicts best?** Appendix C of the paper: 100 linear regressions, each user in 20."
    result: ExperimentResult | None = yield section.Search(
        "experiment_job",
        experiment,
        lambda progress, stop: run_experiment(experiment, progress, stop),
        "Running",
        "Run",
        field_names=("experiment_epsilons", "experiment_users", "experiment_repeats", "experiment_seed"),
        idle_text="It has not run yet; the defaults take ten seconds.",
        shows_outdated=True,
        depends_on_data=False,
    )
    if result is not None and not result.num_runs_done:
        yield section.Note("Stopped before the first run was done.", "stop_circle")
    elif result is not None:
        is_relative = yield section.Choice(
            "relative", "Test error", {True: "Relative to uniform weights (μ = 0)", False: "As it is"}
        )
        for algorithm_plots in plot_errors(result, is_relative):
            yield section.Figures(algorithm_plots, has_titles=True)
        yield section.Table(
            tabulate_errors(result), "Best exponents, and what 1/2 gains over 0 and 1", {"Its RMSE": "%.4f"}
        )
        runs_phrase = f"{result.num_runs_done:,} of {result.num_runs:,} runs"
        yield section.Note(f"{runs_phrase}; whiskers and ± are two standard errors.")
        yield section.Label(Disclosure.PUBLIC)
    yield section.PaperFigures(FIGURES)


# --- files ----------------------------------------------------------------------------------------------------


def tabulate_weights(allocation: Allocation) -> pd.DataFrame:
    """Tabulate the weight of each task, a row per task code.

    Columns: ``users`` (n_i), ``factor`` (of w_ij = factor x user factor), ``mean_weight`` (W_i / n_i),
    ``bound`` (error bound up to a common constant), ``share_of_bound``.
    """
    error_bounds = allocation.task_bounds
    columns_by_name = {
        "users": allocation.problem.graph.task_sizes,
        "factor": allocation.task_weights,
        "mean_weight": allocation.mean_weights,
        "bound": error_bounds,
        "share_of_bound": error_bounds / error_bounds.sum(),
    }
    return pd.DataFrame(columns_by_name, index=pd.RangeIndex(error_bounds.size, name="task"))


def write_task_weights(allocation: Allocation, disclosure_label: str) -> str:
    """Write the table of `tabulate_weights` as CSV.

    Args:
        allocation: The weights.
        disclosure_label: What the numbers are (`dpcore.common.privacy.Disclosure.label`), written as a comment on top.
    """
    return f"# {disclosure_label}\n" + tabulate_weights(allocation).to_csv(lineterminator="\n")


def write_pair_weights(allocation: Allocation, disclosure_label: str) -> str:
    """Write the lines user,task,weight of every pair, by code, in the graph's order.

    Args:
        allocation: The weights, on a graph.
        disclosure_label: As in `write_task_weights`.
    """
    graph, user_scales = allocation.problem.graph, allocation.user_scales
    csv_pieces = [f"# {disclosure_label}\nuser,task,weight\n"]
    for first_pair_index in range(0, graph.num_pairs, PAIRS_PER_CSV_PIECE):
        pair_slice = slice(first_pair_index, first_pair_index + PAIRS_PER_CSV_PIECE)
        user_codes, task_codes = graph.user_codes[pair_slice], graph.task_codes[pair_slice]
        pair_weights = allocation.task_weights[task_codes] * user_scales[user_codes]
        weight_table = pd.DataFrame({"user": user_codes, "task": task_codes, "weight": pair_weights})
        csv_pieces.append(weight_table.to_csv(header=False, index=False, lineterminator="\n"))
    return "".join(csv_pieces)


def write_numpy_code(allocation: Allocation, file_name: str = "task_weights.csv") -> str:
    """Write code that reads the task factors and computes every w_ij from codes; a task that sampling drops has 0.

    Args:
        allocation: The weights.
        file_name: Where the CSV of `write_task_weights` will be.
    """
    template_path, k = Path(__file__).with_name("weights.py"), count_tasks_per_user(allocation)
    return render(template_path, allocation=allocation, rule=allocation.rule.name, k=k, file_name=file_name)


def show_weight_files(answer: Answer, dataset: Dataset) -> section.Parts:
    """Yield a choice of weights, files of them by task and by pair for the exact beta, and code that applies them."""
    solution, comparison = answer.solution, answer.solution.comparison
    allocation_by_name = {
        f"Chosen: μ = {words.format_exponent(comparison.rule.exponent)}": comparison.allocation,
        words.name_sampling(comparison.best_task_sampling): comparison.best_task_sampling,
    }
    for allocation_name, optimum in {} if solution.optima is None else solution.optima.by_name.items():
        allocation_by_name[f"Exact optimum, {allocation_name}"] = optimum
    allocation_name = yield section.Choice(
        "download", "Which weights", {name: name for name in allocation_by_name}
    )
    allocation = allocation_by_name[allocation_name].with_budget(solution.budgets.exact_budget)
    disclosure_label = answer.disclosure.label
    if allocation.reads_graph:
        yield section.Note(
            ":material/warning: They depend on who contributes to what, so they are not private."
        )
    numpy_code = write_numpy_code(allocation, f"{write_file_name('task_weights', answer.disclosure)}.csv")
    write_task_csv = functools.partial(write_task_weights, allocation, disclosure_label)
    write_pair_csv = functools.partial(write_pair_weights, allocation, disclosure_label)
    yield section.Row(
        (
            section.File("Task weights (CSV)", "task_weights.csv", write_task_csv),
            section.File("User-task weights (CSV)", "user_task_weights.csv", write_pair_csv),
            section.File("Code (Python)", "apply_weights.py", lambda: numpy_code, Disclosure.PUBLIC),
        )
    )
    num_pairs = solution.tasks.graph.num_pairs
    file_size_phrase = f" (about {num_pairs * 32 / 1e6:,.0f} MB)" if num_pairs > LARGE_FILE_PAIRS else ""
    yield section.Note(
        f"Label in both tables: *{disclosure_label}*. {format_count(num_pairs, 'line')} of user-task "
        f"weights{file_size_phrase}, "
        "numbered from 0 as users and tasks first appear."
    )
    yield f"```python\n{numpy_code}\n```"


STUDIES: dict[str, section.Section] = {"Budget": show_budget, "Experiment": show_experiment}
"""Tabs that need no tasks."""
SECTIONS: section.Sections = {
    section.BEHIND: show_graph,
    "Tasks": {
        "Weights": show_weights,
        "Users and tasks": show_users_and_tasks,
        "Exact optimum": show_optimum,
        "Private counts": show_counts,
    },
    "Studies": STUDIES,
    section.DOWNLOADS: show_weight_files,
}
