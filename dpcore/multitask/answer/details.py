"""Further figures of many tasks as data: users, skew of weights, private counts, budget; and the table of tasks."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dpcore.answer import Axis, Bars, Curve, Item, Look, Mark, Plot, Points, Scale
from dpcore.common import wording
from dpcore.common.privacy import Disclosure
from dpcore.contributions import FloatArray, IntArray
from dpcore.multitask.answer.found import MultitaskFound, Tasks, Weighed
from dpcore.multitask.answer.plots import (
    CHOSEN,
    FREE,
    HEIGHT,
    SAMPLED,
    SIZE_AXIS,
    UNIFORM,
    UNIFORM_WEIGHTS,
    by_distinct_size,
    chosen_name,
    picks,
)
from dpcore.multitask.budget import PrivacyTarget, exact_budget, sufficient_budget
from dpcore.multitask.counts import PrivateCounts
from dpcore.multitask.weight_skew import WeightSkew

USE_BINS = 20


def _both(weighed: Weighed) -> tuple[tuple[str, str, FloatArray, Look], ...]:
    """Name, column, use of the budget by users with a task, and look of the chosen weights and of uniform ones."""
    has_task = weighed.tasks.graph.tasks_per_user > 0
    return tuple(
        (name, column, allocation.budget_use[has_task] / weighed.problem.budget, look)
        for name, column, allocation, look in (
            (chosen_name(weighed), "chosen", weighed.chosen, CHOSEN),
            (UNIFORM_WEIGHTS, "uniform", weighed.uniform, UNIFORM),
        )
    )


def use(weighed: Weighed) -> Plot:
    """Share of users, among those with a task, by the share of their budget that is used."""
    edges = np.linspace(0.0, 1.0, USE_BINS + 1)
    columns, items = {"used_from": edges[:-1], "used_to": edges[1:]}, []
    for name, column, used, look in _both(weighed):
        shares = f"{column}_share_of_users"
        # The margin for rounding keeps a full budget just below 1: it belongs to the last bin.
        columns[shares] = np.histogram(np.clip(used, 0.0, 1.0), edges)[0] / used.size
        items.append(Bars(name, "middle", shares, look))
    return Plot(
        "many-tasks-use",
        "How much of their budget users use",
        "Share of users by the share of the budget that they use.",
        Axis("share of the user's budget β used", "", (0.0, 1.0), Scale.PERCENT, number=".1%"),
        Axis("share of users", "", (0.0, 1.02), Scale.PERCENT, number=".3p"),
        columns,
        tuple(items),
        weighed.tasks.disclosure,
        {"middle": (edges[:-1] + edges[1:]) / 2.0},
        height=HEIGHT,
    )


def users(weighed: Weighed) -> Plot:
    """Mean share of the budget used against the user's number of tasks."""
    counts, columns, items = weighed.tasks.graph.tasks_per_user, dict[str, FloatArray](), []
    for name, column, used, look in _both(weighed):
        columns["tasks_of_user"], columns[f"{column}_used"] = by_distinct_size(counts[counts > 0], used)
        items.append(Curve(name, "tasks_of_user", f"{column}_used", look))
    return Plot(
        "many-tasks-users",
        "Who uses it",
        "Users with few tasks leave budget unused; those with many spend all of it.",
        Axis("tasks of the user", number=","),
        Axis("share of the budget used, mean", "", (0.0, 1.05), Scale.PERCENT, number=".3p"),
        columns,
        tuple(items),
        weighed.tasks.disclosure,
        height=HEIGHT,
    )


def skew(weighed: Weighed, free: WeightSkew) -> Plot:
    """The share of a task's weight that moved to other users, per distinct size; ``free`` is the optimum's."""
    columns: dict[str, FloatArray] = {}
    items: list[Item] = []
    for name, one, look, symbol in (
        (chosen_name(weighed), weighed.weight_skew, CHOSEN, "circle"),
        ("Free weights", free, FREE, "diamond"),
    ):
        columns["users_of_task"], columns[name] = by_distinct_size(
            weighed.tasks.graph.task_sizes, one.total_variation
        )
        items.append(Points(name, "users_of_task", name, look, symbol=symbol, size=6, opacity=0.8))
    return Plot(
        "many-tasks-weight-skew",
        "Weight skew: whose loss a task learns",
        f"Free weights move up to {wording.percent(free.largest)} of a task's weight to other users.",
        SIZE_AXIS,
        Axis("weight moved to other users", scale=Scale.PERCENT, number=".3p"),
        columns,
        tuple(items),
        weighed.tasks.disclosure,
        height=330,
    )


def counts(tasks: Tasks, released: PrivateCounts) -> Plot:
    """Sizes, estimates and what takes their place, of at most `MAX_POINTS` tasks, small to large."""
    order = np.argsort(tasks.graph.task_sizes, kind="stable")
    at = order[picks(order.size)]
    of_task = tasks.graph.task_sizes[at].astype(np.float64)
    floored, usable = np.maximum(released.estimates[at], 1.0), released.usable[at]
    return Plot(
        "many-tasks-counts",
        "Estimated against true sizes",
        "Estimated task sizes against the true ones; small tasks drown in the noise first.",
        SIZE_AXIS,
        Axis("users, as estimated", number=",.0f"),
        {"users_of_task": of_task, "estimate": released.estimates[at], "estimate_and_slack": usable},
        (
            Curve("The truth", "users_of_task", "users_of_task", UNIFORM),
            Points("Estimate, at least 1", "users_of_task", "floored", SAMPLED, symbol="x-thin-open", size=6),
            Points(
                "Estimate + s, used", "users_of_task", "estimate_and_slack", CHOSEN, symbol="circle", size=6
            ),
        ),
        tasks.disclosure,
        {"floored": floored},
        height=HEIGHT,
    )


def budget_columns(delta: float) -> dict[str, FloatArray]:
    """beta over epsilon, exact and by the paper's condition; NaN where that does not hold."""
    epsilons = np.geomspace(0.01, 20.0, 40)
    targets = [PrivacyTarget(float(e), delta) for e in epsilons]
    return {
        "epsilon": epsilons,
        "exact_beta": np.array([exact_budget(t) for t in targets]),
        "paper_beta": np.array([sufficient_budget(t) or np.nan for t in targets]),
    }


def budget(columns: Mapping[str, FloatArray], epsilon: float, beta: float) -> Plot:
    """beta against epsilon; ``columns`` of `budget_columns`."""
    return Plot(
        "many-tasks-budget",
        "User budget against the privacy budget",
        "The user budget against epsilon: the exact one lies above the paper's.",
        Axis("privacy budget ε", "", (0.01, 20.0)),
        Axis("user budget β"),
        columns,
        (
            Curve("Exact", "epsilon", "exact_beta", CHOSEN),
            Curve("Paper's sufficient β", "epsilon", "paper_beta", FREE, dash="dash"),
            Mark("Now", epsilon, beta, CHOSEN),
        ),
        Disclosure.PUBLIC,
        height=HEIGHT,
    )


def task_table(found: MultitaskFound, most: int) -> tuple[dict[str, FloatArray | IntArray], int]:
    """Columns of the table of tasks, smallest task first, and how many are left out in the middle."""
    sizes, chosen, uniform = found.weighed.problem.task_sizes, found.weighed.chosen, found.weighed.uniform
    order = np.argsort(sizes, kind="stable")
    left_out = max(order.size - most, 0)
    if left_out:
        order = np.concatenate((order[: most // 2], order[-(most - most // 2) :]))
    bounds = chosen.task_bounds
    return {
        "task": order,
        "users": sizes[order],
        "weight": np.sqrt(found.budgets.exact) * chosen.mean_weights[order],
        "weight_ratio": (chosen.mean_weights / uniform.mean_weights)[order],
        "bound_ratio": (bounds / uniform.task_bounds)[order],
        "share": (bounds / bounds.sum())[order],
    }, left_out
