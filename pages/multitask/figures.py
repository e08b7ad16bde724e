"""The figures of the page Many tasks. Pure: an answer in, a Plotly figure out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from dpcore.common import wording
from dpcore.contributions import FloatArray, IntArray
from dpcore.multitask.bounds import Bucket, by_size
from dpcore.multitask.problem import Allocation
from pages.multitask import card
from pages.multitask.answer import Curve, MultitaskView, Tasks, tasks_per_user, with_budget
from pages.shared import charts

CHOSEN, UNIFORM, SAMPLED, SAME, FREE = (
    charts.CAP,
    charts.OWN,
    charts.PRIVACY,
    charts.SAMPLING,
    charts.SMOOTH,
)
MAX_POINTS = 300
MAX_TASKS = 3000
"""So many tasks are drawn one by one; of more, those at log-spaced ranks."""
MARKED = (0.0, 0.25, 0.5, 1.0)
BUCKET_NAMES = ("Tail", "2nd fifth", "Middle", "4th fifth", "Head")
SIZE_AXIS = "Users of the task"
WEIGHT_ALT = (
    "Weight of a user's data in a task against the task's size: the larger μ, the more small tasks weigh."
)
SIZE_ALT = "Users per task, from the largest task to the smallest."


def log_limits(values: FloatArray | IntArray, margin: float = 1.2) -> tuple[float, float]:
    """Limits of a log axis with a margin around these values."""
    low, high = float(np.min(values)), float(np.max(values))
    return low / margin, max(high, low * 2.0) * margin


# --- tail to head -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Compared:
    """Something to set beside the bars: its name, buckets, colour and symbol."""

    name: str
    buckets: tuple[Bucket, ...]
    color: str
    symbol: str


def compared(name: str, allocation: Allocation, view: MultitaskView, color: str, symbol: str) -> Compared:
    """An allocation's buckets against the page's uniform weights."""
    return Compared(name, by_size(with_budget(allocation, view.problem), view.uniform), color, symbol)


def uniform_sampling(view: MultitaskView) -> Compared:
    """The baseline beside every choice of weights: the best uniform sampling."""
    name = f"Uniform sampling, k = {tasks_per_user(view.sampling):,}"
    return Compared(name, view.sampling_buckets, SAMPLED["color"], "diamond")


def bucket_names(buckets: Sequence[Bucket]) -> list[str]:
    """Names for the axis, with the tasks' sizes."""
    names = (
        BUCKET_NAMES if len(buckets) == len(BUCKET_NAMES) else [f"Task {i + 1}" for i in range(len(buckets))]
    )
    spreads = [card.spread(b).replace(" to ", "–") for b in buckets]
    return [f"{name}<br>{spread}" for name, spread in zip(names, spreads, strict=True)]


def bucket_limits(curve: Curve, others: Sequence[Compared]) -> tuple[float, float]:
    """Limits of the axis of error ratios; they do not move with mu."""
    beside = [b.ratio for other in others for b in other.buckets]
    low, high = curve.ratio_limits
    return min(low, 0.8, *beside) / 1.2, max(high, 1.25, *beside) * 1.2


def weight_limits(curve: Curve) -> tuple[float, float]:
    """Limits of the axis of weights; they do not move with mu."""
    return log_limits(np.array(curve.weight_limits))


def bucket_figure(
    name: str,
    buckets: tuple[Bucket, ...],
    others: Sequence[Compared],
    limits: tuple[float, float],
    height: int = 400,
) -> go.Figure:
    """Error bound of tail to head relative to uniform weights; whiskers reach over the bucket's tasks."""
    names = bucket_names(buckets)
    ratios = np.array([b.ratio for b in buckets])
    below, above = (
        np.maximum(ratios - [b.least_ratio for b in buckets], 0.0),
        np.maximum([b.largest_ratio for b in buckets] - ratios, 0.0),
    )
    axis = charts.log_axis("Error bound (1 = uniform weights)", limits)
    what = "Fifths of the tasks" if len(buckets) == len(BUCKET_NAMES) else "Tasks"
    across = {"title": {"text": f"{what} by size (users)"}, "type": "category", "tickangle": 0}
    fig = charts.figure(across, axis, height=height)
    fig.update_xaxes(tickfont={"size": 11})
    fig.add_trace(
        go.Bar(
            x=names,
            y=ratios - 1.0,
            base=1.0,
            name=name,
            width=0.55,
            marker={"color": CHOSEN["color"], "opacity": 0.75},
            error_y={
                "type": "data",
                "array": above,
                "arrayminus": below,
                "color": charts.NEUTRAL,
                "thickness": 1.5,
                "width": 6,
            },
            customdata=np.column_stack((ratios, ratios - below, ratios + above, [b.share for b in buckets])),
            hovertemplate="%{x}<br>error bound %{customdata[0]:.3g} times that of uniform weights"
            "<br>single tasks: %{customdata[1]:.3g} to %{customdata[2]:.3g}"
            "<br>%{customdata[3]:.1%} of the total<extra></extra>",
        )
    )
    for other in others:
        fig.add_trace(
            go.Scatter(
                x=names,
                y=[b.ratio for b in other.buckets],
                name=other.name,
                mode="markers",
                marker={"color": other.color, "size": 11, "symbol": other.symbol},
                hovertemplate="%{fullData.name}<br>%{x}: %{y:.3g}<extra></extra>",
            )
        )
    fig.add_hline(y=1.0, line={"color": charts.NEUTRAL, "width": 1.5, "dash": "dash"})
    return fig


def bucket_columns(buckets: tuple[Bucket, ...], others: Sequence[Compared]) -> dict[str, Sequence[float]]:
    """What `bucket_figure` draws, as columns."""
    return {
        "smallest_task": [b.smallest for b in buckets],
        "largest_task": [b.largest for b in buckets],
        "tasks": [b.num_tasks for b in buckets],
        "error_ratio": [b.ratio for b in buckets],
        "least_ratio_of_a_task": [b.least_ratio for b in buckets],
        "largest_ratio_of_a_task": [b.largest_ratio for b in buckets],
        "share_of_total": [b.share for b in buckets],
        **{f"{other.name}: error_ratio": [b.ratio for b in other.buckets] for other in others},
    }


def bucket_alt(view: MultitaskView) -> str:
    """The takeaway of `bucket_figure`."""
    tail, head = card.ordinal(view)
    first, last = view.buckets[0], view.buckets[-1]
    tail_gain, head_gain = card.gain(first), card.gain(last)
    return f"{tail.capitalize()} {tail_gain}, {head} {head_gain}, beside uniform weights."


# --- weight against size ------------------------------------------------------------------------------------


def by_distinct_size(sizes: IntArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean value per distinct size, at most `MAX_POINTS` sizes."""
    distinct, which = np.unique(sizes, return_inverse=True)
    means = np.bincount(which, values) / np.bincount(which)
    at = picks(distinct.size)
    return distinct[at].astype(np.float64), means[at]


def picks(size: int) -> IntArray:
    """At most `MAX_POINTS` places out of so many, evenly, both ends kept."""
    if size <= MAX_POINTS:
        return np.arange(size)
    return np.unique(np.round(np.linspace(0, size - 1, MAX_POINTS)).astype(np.int64))


def weight_columns(view: MultitaskView) -> dict[str, FloatArray]:
    """Mean weight over the task's users, in units of sqrt(beta), per distinct size."""
    unit = np.sqrt(view.problem.budget)
    sizes, chosen = by_distinct_size(view.problem.task_sizes, view.chosen.mean_weights / unit)
    _, uniform = by_distinct_size(view.problem.task_sizes, view.uniform.mean_weights / unit)
    return {"users_of_task": sizes, "weight_over_root_beta": chosen, "uniform_over_root_beta": uniform}


def weight_figure(view: MultitaskView, limits: tuple[float, float]) -> go.Figure:
    """Weight against the task's size."""
    columns = weight_columns(view)
    x = columns["users_of_task"]
    fig = charts.figure(
        charts.log_axis(SIZE_AXIS, log_limits(view.problem.task_sizes)),
        charts.log_axis("Weight ω (1 = √β)", limits),
        height=360,
    )
    hover = "%{fullData.name}<br>%{x:,} users: weight %{y:.3g} √β"
    fig.add_trace(charts.curve("Uniform weights", x, columns["uniform_over_root_beta"], UNIFORM, hover))
    fig.add_trace(
        go.Scatter(
            x=x,
            y=columns["weight_over_root_beta"],
            name=f"μ = {wording.entered(view.rule.exponent)}",
            mode="markers",
            marker={"color": CHOSEN["color"], "size": 6, "opacity": 0.8},
            hovertemplate=hover + "<extra></extra>",
        )
    )
    return fig


# --- sizes and mu -------------------------------------------------------------------------------------------


def size_columns(tasks: Tasks) -> dict[str, FloatArray]:
    """Users of every task, largest first."""
    ordered = np.sort(tasks.graph.task_sizes)[::-1].astype(np.float64)
    return {"rank": np.arange(1.0, ordered.size + 1.0), "users": ordered}


def drawn_sizes(tasks: Tasks) -> dict[str, FloatArray]:
    """What `size_figure` draws: `size_columns`, at log-spaced ranks where there are more than `MAX_TASKS`."""
    columns = size_columns(tasks)
    count = columns["rank"].size
    if count <= MAX_TASKS:
        return columns
    at = np.unique(np.round(np.geomspace(1, count, MAX_TASKS)).astype(np.int64)) - 1
    return {name: values[at] for name, values in columns.items()}


def size_figure(tasks: Tasks) -> go.Figure:
    """Task sizes by rank, log-log."""
    columns = drawn_sizes(tasks)
    fig = charts.figure(
        charts.log_axis("Rank of the task, largest first", log_limits(columns["rank"])),
        charts.log_axis(SIZE_AXIS, log_limits(columns["users"])),
        height=360,
    )
    fig.add_trace(
        charts.curve("", columns["rank"], columns["users"], charts.TOTAL, "task %{x:,}: %{y:,} users")
    )
    fig.data[0].mode = "lines+markers"
    fig.data[0].marker = {"size": 5}
    return charts.without_legend(fig)


def exponent_columns(view: MultitaskView, optimum: float | None) -> dict[str, FloatArray]:
    """The total bound over mu, relative to uniform weights."""
    columns = {"mu": view.curve.exponents, "total_bound": view.curve.totals}
    if optimum is not None:
        columns["optimum"] = np.full(view.curve.exponents.shape, optimum)
    return columns


def exponent_alt(view: MultitaskView) -> str:
    """The takeaway of `exponent_figure`."""
    return f"The total error bound is smallest at μ = {wording.entered(view.curve.best[0])}."


def exponent_figure(view: MultitaskView, optimum: float | None) -> go.Figure:
    """Total bound over mu, with the paper's values marked, and the optimum where it is known."""
    columns = exponent_columns(view, optimum)
    low, high = float(columns["total_bound"].min()), float(columns["total_bound"].max())
    fig = charts.figure(
        charts.linear_axis("Exponent μ of the task's size", (-0.03, 1.03)),
        charts.log_axis("Total error bound (1 = uniform)", (min(low, 0.8) / 1.5, max(high, 1.25) * 1.2)),
        height=360,
    )
    fig.update_xaxes(tickvals=list(MARKED), ticktext=["0", "1/4", "1/2", "1"])
    hover = "μ = %{x:.3g}: %{y:.3g} of uniform weights' bound"
    fig.add_trace(charts.curve("Total bound", columns["mu"], columns["total_bound"], CHOSEN, hover))
    if optimum is not None:
        fig.add_trace(
            charts.curve(
                "Exact optimum of this kind", columns["mu"], columns["optimum"], FREE, "optimum: %{y:.3g}"
            )
        )
    best = view.curve.best
    fig.add_trace(charts.marker("Best μ", *best, CHOSEN["color"], "diamond", "best μ = %{x:.3g}: %{y:.3g}"))
    now = (view.rule.exponent, view.total(view.chosen))
    fig.add_trace(
        charts.marker("Chosen μ", *now, SAMPLED["color"], "circle", "chosen μ = %{x:.3g}: %{y:.3g}")
    )
    return fig
