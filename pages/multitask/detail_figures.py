"""Further figures of Many tasks: users, skew of weights, private counts, budget, and the table of tasks. Pure."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from dpcore.common import wording
from dpcore.common.privacy import Disclosure
from dpcore.contributions import FloatArray, IntArray
from dpcore.multitask.budget import PrivacyTarget, exact_budget, sufficient_budget
from dpcore.multitask.counts import PrivateCounts
from dpcore.multitask.weight_skew import WeightSkew
from dpcore.report import charts
from pages.multitask.answer import MultitaskView, Tasks
from pages.multitask.figures import (
    CHOSEN,
    FREE,
    SAMPLED,
    SIZE_AXIS,
    UNIFORM,
    by_distinct_size,
    log_limits,
    picks,
)
from pages.shared.figures import Picture

USE_BINS = 20


# --- users --------------------------------------------------------------------------------------------------


def use_columns(view: MultitaskView) -> dict[str, FloatArray]:
    """Share of users, among those with a task, by the share of their budget that is used."""
    has_task = view.tasks.graph.tasks_per_user > 0
    edges = np.linspace(0.0, 1.0, USE_BINS + 1)
    columns = {"used_from": edges[:-1], "used_to": edges[1:]}
    for name, allocation in (("chosen", view.chosen), ("uniform", view.uniform)):
        used = np.clip(allocation.budget_use[has_task] / view.problem.budget, 0.0, 1.0)
        # The margin for rounding keeps a full budget just below 1: it belongs to the last bin.
        columns[f"{name}_share_of_users"] = np.histogram(used, edges)[0] / used.size
    return columns


def use_picture(view: MultitaskView) -> Picture:
    """How much of the budget users use."""
    columns = use_columns(view)
    return Picture(
        "many-tasks-use",
        "How much of their budget users use",
        lambda: _use_figure(view, columns),
        "Share of users by the share of the budget that they use.",
        columns,
        view.tasks.disclosure,
    )


def _use_figure(view: MultitaskView, columns: dict[str, FloatArray]) -> go.Figure:
    across = charts.linear_axis("Share of the user's budget β used", (0.0, 1.0), percent=True)
    upwards = charts.linear_axis("Share of users", (0.0, 1.02), percent=True)
    fig = charts.figure(across, upwards, 360)
    middle = (columns["used_from"] + columns["used_to"]) / 2.0
    for name, key, style in (
        (f"μ = {wording.entered(view.rule.exponent)}", "chosen", CHOSEN),
        ("Uniform weights", "uniform", UNIFORM),
    ):
        hover = "%{fullData.name}: %{y:.3p} of users use about %{x:.1%}"
        charts.add_bars(fig, name, middle, columns[f"{key}_share_of_users"], style, hover)
    return fig.update_layout(bargap=0.15)


def user_columns(view: MultitaskView) -> dict[str, FloatArray]:
    """Mean share of the budget used against the user's number of tasks."""
    counts = view.tasks.graph.tasks_per_user
    has_task = counts > 0
    columns = {}
    for name, allocation in (("chosen", view.chosen), ("uniform", view.uniform)):
        used = allocation.budget_use[has_task] / view.problem.budget
        columns["tasks_of_user"], columns[f"{name}_used"] = by_distinct_size(counts[has_task], used)
    return columns


def user_picture(view: MultitaskView) -> Picture:
    """Who uses the budget: by number of tasks."""
    columns = user_columns(view)
    return Picture(
        "many-tasks-users",
        "Who uses it",
        lambda: _user_figure(view, columns),
        "Users with few tasks leave budget unused; those with many spend all of it.",
        columns,
        view.tasks.disclosure,
    )


def _user_figure(view: MultitaskView, columns: dict[str, FloatArray]) -> go.Figure:
    across = charts.log_axis("Tasks of the user", log_limits(columns["tasks_of_user"]))
    upwards = charts.linear_axis("Share of the budget used, mean", (0.0, 1.05), percent=True)
    fig = charts.figure(across, upwards, 360)
    for name, key, style in (
        (f"μ = {wording.entered(view.rule.exponent)}", "chosen", CHOSEN),
        ("Uniform weights", "uniform", UNIFORM),
    ):
        look = {**style, "shape": "linear"}
        hover = "%{fullData.name}<br>tasks of the user: %{x:,}<br>%{y:.3p} of the budget"
        charts.add_curve(fig, name, columns["tasks_of_user"], columns[f"{key}_used"], look, hover)
    return fig


# --- skew of weights ----------------------------------------------------------------------------------------


def skew_columns(tasks: Tasks, skews: dict[str, WeightSkew]) -> dict[str, FloatArray]:
    """Share of a task's weight that moved to other users, per distinct size."""
    columns = {}
    for name, one in skews.items():
        columns["users_of_task"], columns[name] = by_distinct_size(
            tasks.graph.task_sizes, one.total_variation
        )
    return columns


def skew_picture(tasks: Tasks, skews: dict[str, WeightSkew]) -> Picture:
    """The share of weight moved to other users, against the task's size; the last of ``skews`` is the optimum's."""
    columns = skew_columns(tasks, skews)
    most = wording.percent(list(skews.values())[-1].largest)
    return Picture(
        "many-tasks-weight-skew",
        "Weight skew: whose loss a task learns",
        lambda: _skew_figure(tasks, skews, columns),
        f"Free weights move up to {most} of a task's weight to other users.",
        columns,
        tasks.disclosure,
    )


def _skew_figure(tasks: Tasks, skews: dict[str, WeightSkew], columns: dict[str, FloatArray]) -> go.Figure:
    most = max(float(columns[name].max()) for name in skews)
    across = charts.log_axis(SIZE_AXIS, log_limits(tasks.graph.task_sizes))
    upwards = charts.linear_axis("Weight moved to other users", (0.0, max(1.1 * most, 0.01)), percent=True)
    fig = charts.figure(across, upwards, 330)
    for (name, style), symbol in zip(
        zip(skews, (CHOSEN, FREE), strict=False), ("circle", "diamond"), strict=False
    ):
        look = {"color": style["color"], "size": 6, "symbol": symbol, "opacity": 0.8}
        hover = "%{fullData.name}<br>users of the task: %{x:,}<br>%{y:.3p} moved"
        charts.add_points(fig, name, columns["users_of_task"], columns[name], look, hover)
    return fig


# --- private counts -----------------------------------------------------------------------------------------


def count_columns(tasks: Tasks, counts: PrivateCounts) -> dict[str, FloatArray]:
    """Sizes, estimates and what takes their place, of at most `MAX_POINTS` tasks, small to large."""
    order = np.argsort(tasks.graph.task_sizes, kind="stable")
    at = order[picks(order.size)]
    return {
        "users_of_task": tasks.graph.task_sizes[at].astype(np.float64),
        "estimate": counts.estimates[at],
        "estimate_and_slack": counts.usable[at],
    }


def count_picture(tasks: Tasks, counts: PrivateCounts) -> Picture:
    """Estimated against true sizes."""
    columns = count_columns(tasks, counts)
    return Picture(
        "many-tasks-counts",
        "Estimated against true sizes",
        lambda: _count_figure(columns),
        "Estimated task sizes against the true ones; small tasks drown in the noise first.",
        columns,
        tasks.disclosure,
    )


def _count_figure(columns: dict[str, FloatArray]) -> go.Figure:
    x = columns["users_of_task"]
    floored = np.maximum(columns["estimate"], 1.0)
    everything = np.concatenate((x, floored, columns["estimate_and_slack"]))
    fig = charts.log_log(SIZE_AXIS, log_limits(x), "Users, as estimated", log_limits(everything), 360)
    ends = np.array(log_limits(x))
    charts.add_curve(fig, "The truth", ends, ends, UNIFORM, "exact")
    for name, y, style, symbol in (
        ("Estimate, at least 1", floored, SAMPLED, "x-thin-open"),
        ("Estimate + s, used", columns["estimate_and_slack"], CHOSEN, "circle"),
    ):
        look = {"color": style["color"], "size": 6, "symbol": symbol}
        hover = "%{fullData.name}<br>users of the task: %{x:,}<br>estimated: %{y:,.0f}"
        charts.add_points(fig, name, x, y, look, hover)
    return fig


# --- budget -------------------------------------------------------------------------------------------------


def budget_columns(delta: float) -> dict[str, FloatArray]:
    """beta over epsilon, exact and by the paper's condition; NaN where that does not hold."""
    epsilons = np.geomspace(0.01, 20.0, 40)
    targets = [PrivacyTarget(float(e), delta) for e in epsilons]
    return {
        "epsilon": epsilons,
        "exact_beta": np.array([exact_budget(t) for t in targets]),
        "paper_beta": np.array([sufficient_budget(t) or np.nan for t in targets]),
    }


def _both(columns: dict[str, FloatArray]) -> FloatArray:
    values = np.concatenate((columns["exact_beta"], columns["paper_beta"]))
    return values[np.isfinite(values)]


def budget_picture(columns: dict[str, FloatArray], epsilon: float, budget: float) -> Picture:
    """beta against epsilon; ``columns`` of `budget_columns`."""
    return Picture(
        "many-tasks-budget",
        "User budget against the privacy budget",
        lambda: _budget_figure(columns, epsilon, budget),
        "The user budget against epsilon: the exact one lies above the paper's.",
        columns,
        Disclosure.PUBLIC,
    )


def _budget_figure(columns: dict[str, FloatArray], epsilon: float, budget: float) -> go.Figure:
    x = columns["epsilon"]
    fig = charts.log_log(
        "Privacy budget ε", (0.01, 20.0), "User budget β", log_limits(_both(columns), 1.5), 360
    )
    hover = "%{fullData.name}<br>ε = %{x:.3g}: β = %{y:.3g}"
    charts.add_curve(fig, "Exact", x, columns["exact_beta"], CHOSEN, hover)
    holds = np.isfinite(columns["paper_beta"])
    charts.add_curve(
        fig, "Paper's sufficient β", x[holds], columns["paper_beta"][holds], {**FREE, "dash": "dash"}, hover
    )
    now = f"now: ε = {wording.entered(epsilon)}, β = %{{y:.3g}}"
    charts.add_marker(fig, "Now", epsilon, budget, CHOSEN, "diamond", now)
    return fig


# --- table --------------------------------------------------------------------------------------------------


def task_table(view: MultitaskView, budget: float, most: int) -> tuple[dict[str, FloatArray | IntArray], int]:
    """Columns of the table of tasks for this beta, smallest task first, and how many are left out in the middle."""
    order = np.argsort(view.problem.task_sizes, kind="stable")
    left_out = max(order.size - most, 0)
    if left_out:
        order = np.concatenate((order[: most // 2], order[-(most - most // 2) :]))
    chosen, uniform = view.chosen, view.uniform
    bounds = chosen.task_bounds
    return {
        "task": order,
        "users": view.problem.task_sizes[order],
        "weight": np.sqrt(budget) * chosen.mean_weights[order],
        "weight_ratio": (chosen.mean_weights / uniform.mean_weights)[order],
        "bound_ratio": (bounds / uniform.task_bounds)[order],
        "share": (bounds / bounds.sum())[order],
    }, left_out
