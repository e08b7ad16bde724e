"""Further plots of many tasks as data: users, skew of weights, private counts, budget; and the table of tasks."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dpcore.answer import Axis, Bars, Curve, Item, Mark, Plot, Points, Scale, Style
from dpcore.common import wording
from dpcore.common.privacy import Disclosure
from dpcore.contributions import FloatArray, IntArray
from dpcore.multitask.answer.found import MultitaskSolution, Tasks, WeightComparison
from dpcore.multitask.answer.plots import (
    HEIGHT,
    SAMPLING_STYLE,
    SIZE_AXIS,
    UNIFORM_STYLE,
    UNIFORM_WEIGHTS,
    USER_OPTIMUM_STYLE,
    WEIGHTS_STYLE,
    average_by_size,
    choose_indices,
    name_weights,
)
from dpcore.multitask.budget import PrivacyTarget, compute_exact_budget, compute_sufficient_budget
from dpcore.multitask.counts import PrivateCounts
from dpcore.multitask.weight_skew import WeightSkew

USE_BINS = 20


def _list_uses(comparison: WeightComparison) -> tuple[tuple[str, str, FloatArray, Style], ...]:
    """Return name, column, use of the budget by users with a task, and style, of the chosen and of uniform weights."""
    has_task = comparison.tasks.graph.tasks_per_user > 0
    return tuple(
        (name, column, allocation.budget_use[has_task] / comparison.problem.budget, style)
        for name, column, allocation, style in (
            (name_weights(comparison), "chosen", comparison.allocation, WEIGHTS_STYLE),
            (UNIFORM_WEIGHTS, "uniform", comparison.uniform, UNIFORM_STYLE),
        )
    )


def plot_use(comparison: WeightComparison) -> Plot:
    """Plot the share of users, among those with a task, by the share of their budget that is used."""
    edges = np.linspace(0.0, 1.0, USE_BINS + 1)
    columns, items = {"used_from": edges[:-1], "used_to": edges[1:]}, []
    for name, column, used_shares, style in _list_uses(comparison):
        shares = f"{column}_share_of_users"
        # The margin for rounding keeps a full budget just below 1: it belongs to the last bin.
        columns[shares] = np.histogram(np.clip(used_shares, 0.0, 1.0), edges)[0] / used_shares.size
        items.append(Bars(name, "middle", shares, style))
    return Plot(
        "many-tasks-use",
        "How much of their budget users use",
        "Share of users by the share of the budget that they use.",
        Axis("share of the user's budget β used", "", (0.0, 1.0), Scale.PERCENT, number_format=".1%"),
        Axis("share of users", "", (0.0, 1.02), Scale.PERCENT, number_format=".3p"),
        columns,
        tuple(items),
        comparison.tasks.disclosure,
        {"middle": (edges[:-1] + edges[1:]) / 2.0},
        height=HEIGHT,
    )


def plot_users(comparison: WeightComparison) -> Plot:
    """Plot the mean share of the budget used over the user's number of tasks."""
    counts, columns, items = comparison.tasks.graph.tasks_per_user, dict[str, FloatArray](), []
    for name, column, used_shares, style in _list_uses(comparison):
        columns["tasks_of_user"], columns[f"{column}_used"] = average_by_size(counts[counts > 0], used_shares)
        items.append(Curve(name, "tasks_of_user", f"{column}_used", style))
    return Plot(
        "many-tasks-users",
        "Who uses it",
        "Users with few tasks leave budget unused; those with many spend all of it.",
        Axis("tasks of the user", number_format=","),
        Axis("share of the budget used, mean", "", (0.0, 1.05), Scale.PERCENT, number_format=".3p"),
        columns,
        tuple(items),
        comparison.tasks.disclosure,
        height=HEIGHT,
    )


def plot_skew(comparison: WeightComparison, free: WeightSkew) -> Plot:
    """Plot the share of a task's weight that moves to other users, per distinct size; ``free`` is the optimum's."""
    columns: dict[str, FloatArray] = {}
    items: list[Item] = []
    for name, weight_skew, style, symbol in (
        (name_weights(comparison), comparison.weight_skew, WEIGHTS_STYLE, "circle"),
        ("Free weights", free, USER_OPTIMUM_STYLE, "diamond"),
    ):
        columns["users_of_task"], columns[name] = average_by_size(
            comparison.tasks.graph.task_sizes, weight_skew.total_variation
        )
        items.append(Points(name, "users_of_task", name, style, symbol=symbol, size=6, opacity=0.8))
    return Plot(
        "many-tasks-weight-skew",
        "Weight skew: whose loss a task learns",
        f"Free weights move up to {wording.percent(free.largest)} of a task's weight to other users.",
        SIZE_AXIS,
        Axis("weight moved to other users", scale=Scale.PERCENT, number_format=".3p"),
        columns,
        tuple(items),
        comparison.tasks.disclosure,
        height=330,
    )


def plot_counts(tasks: Tasks, private_counts: PrivateCounts) -> Plot:
    """Plot sizes, estimates and their replacements, for at most `MAX_POINTS` tasks, small to large."""
    order = np.argsort(tasks.graph.task_sizes, kind="stable")
    indices = order[choose_indices(order.size)]
    sizes = tasks.graph.task_sizes[indices].astype(np.float64)
    floored, usable = np.maximum(private_counts.estimates[indices], 1.0), private_counts.usable[indices]
    return Plot(
        "many-tasks-counts",
        "Estimated against true sizes",
        "Estimated task sizes against the true ones; small tasks drown in the noise first.",
        SIZE_AXIS,
        Axis("users, as estimated", number_format=",.0f"),
        {"users_of_task": sizes, "estimate": private_counts.estimates[indices], "estimate_and_slack": usable},
        (
            Curve("The truth", "users_of_task", "users_of_task", UNIFORM_STYLE),
            Points(
                "Estimate, at least 1",
                "users_of_task",
                "floored",
                SAMPLING_STYLE,
                symbol="x-thin-open",
                size=6,
            ),
            Points(
                "Estimate + s, used",
                "users_of_task",
                "estimate_and_slack",
                WEIGHTS_STYLE,
                symbol="circle",
                size=6,
            ),
        ),
        tasks.disclosure,
        {"floored": floored},
        height=HEIGHT,
    )


def build_budget_columns(delta: float) -> dict[str, FloatArray]:
    """Compute beta over epsilon, exact and by the paper's condition; NaN where that does not hold."""
    epsilons = np.geomspace(0.01, 20.0, 40)
    targets = [PrivacyTarget(float(epsilon), delta) for epsilon in epsilons]
    return {
        "epsilon": epsilons,
        "exact_beta": np.array([compute_exact_budget(target) for target in targets]),
        "paper_beta": np.array([compute_sufficient_budget(target) or np.nan for target in targets]),
    }


def plot_budget(columns: Mapping[str, FloatArray], epsilon: float, beta: float) -> Plot:
    """Plot beta over epsilon; ``columns`` are those of `build_budget_columns`."""
    return Plot(
        "many-tasks-budget",
        "User budget against the privacy budget",
        "The user budget against epsilon: the exact one lies above the paper's.",
        Axis("privacy budget ε", "", (0.01, 20.0)),
        Axis("user budget β"),
        columns,
        (
            Curve("Exact", "epsilon", "exact_beta", WEIGHTS_STYLE),
            Curve("Paper's sufficient β", "epsilon", "paper_beta", USER_OPTIMUM_STYLE, dash="dash"),
            Mark("Now", epsilon, beta, WEIGHTS_STYLE),
        ),
        Disclosure.PUBLIC,
        height=HEIGHT,
    )


def tabulate_tasks(
    solution: MultitaskSolution, max_rows: int
) -> tuple[dict[str, FloatArray | IntArray], int]:
    """Tabulate the tasks, smallest first; return the columns and how many are left out in the middle."""
    sizes, allocated, uniform = (
        solution.comparison.problem.task_sizes,
        solution.comparison.allocation,
        solution.comparison.uniform,
    )
    order = np.argsort(sizes, kind="stable")
    num_left_out = max(order.size - max_rows, 0)
    if num_left_out:
        order = np.concatenate((order[: max_rows // 2], order[-(max_rows - max_rows // 2) :]))
    bounds = allocated.task_bounds
    return {
        "task": order,
        "users": sizes[order],
        "weight": np.sqrt(solution.budgets.exact) * allocated.mean_weights[order],
        "weight_ratio": (allocated.mean_weights / uniform.mean_weights)[order],
        "bound_ratio": (bounds / uniform.task_bounds)[order],
        "share": (bounds / bounds.sum())[order],
    }, num_left_out
