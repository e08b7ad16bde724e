"""The tabs of many tasks."""

from __future__ import annotations

import functools

import numpy as np

from dpcore.answer import standard
from dpcore.answer.answer import Answer
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
    Parts,
    Row,
    Section,
    Sections,
    Table,
)
from dpcore.common import wording
from dpcore.common.privacy import Disclosure, write_file_name
from dpcore.data.column_names import escape_formula
from dpcore.dataset import Dataset
from dpcore.multitask import exact, files
from dpcore.multitask.answer import plots, words
from dpcore.multitask.answer.experiment import show_experiment
from dpcore.multitask.answer.solution import (
    Optima,
    Tasks,
    WeightComparison,
    compute_total_ratio,
    search_optima,
)
from dpcore.multitask.parameters import MultitaskParameters
from dpcore.multitask.problem import Allocation, Loss, compare_budgets
from dpcore.multitask.sampling import PrivateCounts, compute_cost_factor, release_counts
from dpcore.multitask.weights import BudgetFit, WeightRule, compute_skew

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
