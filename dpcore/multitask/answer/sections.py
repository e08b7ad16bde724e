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
from dpcore.multitask.parameters import TaskSource
from dpcore.multitask.problem import Allocation, Loss, compare_budgets
from dpcore.multitask.sampling import PrivateCounts, compute_cost_factor, release_counts
from dpcore.multitask.weights import BudgetFit, WeightRule, compute_skew

TABLE_ROWS = 2_000
LARGE_FILE = 1_000_000
"""Pairs above which a person is told how long the file will be."""
COVERED_SHARE = 0.1
"""Share of the counts' budget for the release that covers what counting at most k tasks misses."""


def show_graph(answer: Answer, data: Dataset) -> Parts:
    """Describe the graph and the budget."""
    yield Note(words.describe_tasks(answer.solution))


def show_weights(answer: Answer, data: Dataset) -> Parts:
    """Show the total bound over mu, and weights against sizes."""
    yield Figures((answer.plots["many-tasks-exponents"](), answer.plots["many-tasks-weights"]()), titled=True)


def show_users_and_tasks(answer: Answer, data: Dataset) -> Parts:
    """Show the use of the budget, the users who use it, the sizes of tasks, and a table of the tasks."""
    solution, comparison = answer.solution, answer.solution.comparison
    yield Figures((plots.plot_use(comparison), plots.plot_users(comparison)), titled=True)
    if num_idle := int((solution.tasks.graph.tasks_per_user == 0).sum()):
        are = wording.agreeing(num_idle, "is", "are")
        yield Note(f"{wording.counted(num_idle, 'user')} without a task {are} left out of both.")
    yield Figures((plots.plot_sizes(solution.tasks, has_all_tasks=True),), titled=True)
    uses_data = answer.parameters.source is TaskSource.DATA
    columns, num_left_out = plots.tabulate_tasks(solution, TABLE_ROWS)
    names = (yield ItemNames("task")) if uses_data else None
    # Tasks without users are left out of the graph, and would shift the others' numbers.
    if names and data.pairs is not None and solution.tasks.graph.num_tasks == data.pairs.num_tasks:
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
    left_out_text = (
        f"{wording.counted(num_left_out, 'task')} in the middle left out. " if num_left_out else ""
    )
    order = "in which they first appear in your file" if uses_data else "in which they were drawn"
    yield Note(f"Smallest task first. {left_out_text}Tasks are numbered from 0 in the order {order}.")
    yield Label()


def compare_with_optima(comparison: WeightComparison, optima: Optima) -> dict[str, list[object]]:
    """Tabulate each way of dividing the budget beside the optimum of its kind."""
    kinds = (
        ("weigh the same", "problem (9)", {BudgetFit.NOBODY_CLIPPED: "nobody clipped"}),
        (
            "may differ",
            "free weights",
            {BudgetFit.CLIPPED: "clipped, c = 1", BudgetFit.FULL: "every user filled up"},
        ),
    )
    rows: list[tuple[object, ...]] = []
    for users_text, optimum_name, fits in kinds:
        optimum = optima.by_name[optimum_name]
        allocations: dict[str, Allocation] = {}
        if BudgetFit.CLIPPED in fits:
            allocations[words.name_sampling(comparison.sampling)] = comparison.sampling
        for fit, fit_text in fits.items():
            for exponent in sorted({0.0, comparison.rule.exponent}):
                name = f"μ = {wording.entered(exponent)}" if exponent else "Uniform"
                allocations[f"{name}, {fit_text}"] = WeightRule(exponent, fit).allocate(comparison.problem)
        for name, allocation in (allocations | {f"Exact optimum, {optimum_name}": optimum}).items():
            total = compute_total_ratio(allocation, optima.user_task_optimum)
            excess = max(compute_total_ratio(allocation, optimum) - 1.0, 0.0)
            rows.append((users_text, name, total, 100.0 * excess, 100.0 * compute_skew(allocation).largest))
    heads = (
        "Users of a task",
        "Weights",
        "Total bound",
        "Above the optimum of its kind",
        "Largest weight skew",
    )
    return dict(zip(heads, map(list, zip(*rows, strict=True)), strict=True))


def show_optimum(answer: Answer, data: Dataset) -> Parts:
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
                "Largest weight skew": (
                    "%.1f %%",
                    "Share of a task's weight that moves to other users, at worst.",
                ),
            },
        )
        for name, optimum in optima.by_name.items():
            assert optimum.certificate is not None
            yield Note(f"**{wording.capital(name)}.** {optimum.stop_reason} {optimum.certificate.sentence}")
        free = compute_skew(optima.user_task_optimum)
        yield Figures(
            (plots.plot_optimum(comparison, optima), plots.plot_skew(comparison, free)), titled=True
        )
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
    tasks: Tasks, loss: Loss, rule: WeightRule, budget: float, settings: tuple[float, int, bool, int]
) -> tuple[PrivateCounts, Allocation, Allocation]:
    """Simulate one draw of private counts for this beta.

    Args:
        tasks: Users and tasks.
        loss: Of the tasks.
        rule: The rule of the weights.
        budget: beta.
        settings: Share of beta for the counts, tasks counted per user, whether the slack covers the others, and seed.

    Returns:
        The counts, and the weights on what is left of the budget: from n_hat + s (equation 18), and from n_hat alone,
        at least 1.
    """
    share, max_tasks, covers, seed = settings
    rng = np.random.default_rng(seed)
    counts = release_counts(tasks.graph, budget * share, max_tasks, rng, COVERED_SHARE if covers else 0.0)
    problem = tasks.build_problem(loss, budget * (1.0 - share))
    without_slack = rule.allocate(problem, np.maximum(counts.estimates, 1.0))
    return counts, rule.allocate(problem, counts.usable), without_slack


def show_counts(answer: Answer, data: Dataset) -> Parts:
    """Show the cost of releasing the sizes privately first."""
    solution, comparison, parameters = answer.solution, answer.solution.comparison, answer.parameters
    loss, tasks, share = comparison.problem.loss, comparison.tasks, parameters.count_share
    yield (
        "If task sizes are not public, release them first, for a part of β. **What does that cost?** The page "
        "simulates one draw of the noise; nothing is released."
    )
    yield Fields(("count_share", "count_max_tasks", "count_covers", "count_seed"), (3, 3, 4, 2))
    settings = (share, parameters.count_max_tasks, parameters.count_covers, parameters.count_seed)
    counts, *allocations = yield Cached(
        simulate_counts, (tasks, loss, comparison.rule, solution.budgets.exact, settings), kept=4
    )
    # The bound is proportional to 1/beta, for convex losses to its root.
    power = 0.5 if loss is Loss.CONVEX else 1.0
    with_slack, without_slack = (
        compute_total_ratio(allocation, comparison.allocation) / (1.0 - share) ** power
        for allocation in allocations
    )
    cost_factor = compute_cost_factor(tasks.graph.task_sizes, counts.usable)
    left = (
        Numbers(words.build_count_numbers(counts, with_slack, without_slack, cost_factor)),
        words.describe_counts(comparison, counts, slack_helps=with_slack <= 1.05 * without_slack),
    )
    yield Columns((left, (plots.plot_counts(tasks, counts),)))
    yield Label(after=":violet-badge[:material/casino: simulation: not a release]")


def show_budget(answer: Answer, data: Dataset) -> Parts:
    """Show the exact and the sufficient beta."""
    parameters = answer.parameters
    budgets = compare_budgets(parameters.target)
    columns = yield Cached(plots.build_budget_columns, (parameters.delta,), kept=8)
    plot = plots.plot_budget(columns, parameters.epsilon, budgets.exact)
    yield Columns(((words.describe_budgets(budgets),), (plot,)))


def show_weight_files(answer: Answer, data: Dataset) -> Parts:
    """Offer the weights and the code that applies them."""
    solution, comparison = answer.solution, answer.solution.comparison
    allocations = {
        f"Chosen: μ = {words.format_exponent(comparison.rule.exponent)}": comparison.allocation,
        words.name_sampling(comparison.sampling): comparison.sampling,
    }
    if solution.optima is not None:
        allocations |= {
            f"Exact optimum, {name}": optimum for name, optimum in solution.optima.by_name.items()
        }
    name = yield Choice("download", "Which weights", {name: name for name in allocations})
    allocation, label = allocations[name].with_budget(solution.budgets.exact), answer.disclosure.label
    if allocation.reads_graph:
        yield Note(
            ":material/warning: These weights are computed from who contributes to what, so they are not part of a "
            "private mechanism."
        )
    code = files.write_numpy_code(allocation, f"{write_file_name('task_weights', answer.disclosure)}.csv")
    yield Row(
        (
            File(
                "Task weights (CSV)", "task_weights.csv", lambda: files.write_task_weights(allocation, label)
            ),
            File(
                "User-task weights (CSV)",
                "user_task_weights.csv",
                lambda: "".join(files.write_pair_weights(allocation, label)),
            ),
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
