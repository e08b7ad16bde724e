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
from dpcore.report import charts
from pages.multitask import card
from pages.multitask.answer import Curve, MultitaskView, Tasks, tasks_per_user
from pages.multitask.compare import Optima
from pages.shared.figures import Picture

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
    """The buckets of an allocation for a budget of 1 against the page's uniform weights."""
    return Compared(name, by_size(allocation, view.uniform), color, symbol)


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


def bucket_figure(
    name: str,
    buckets: tuple[Bucket, ...],
    others: Sequence[Compared],
    limits: tuple[float, float],
    height: int,
    uniform: str = "Uniform weights",
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
    charts.add_bars(
        fig,
        name,
        names,
        ratios - 1.0,
        CHOSEN,
        "%{x}<br>error bound %{customdata[0]:.3g} times that of uniform weights"
        "<br>single tasks: %{customdata[1]:.3g} to %{customdata[2]:.3g}<br>%{customdata[3]:.1%} of the total",
        base=1.0,
        width=0.55,
        opacity=0.75,
        error_y=charts.whiskers(above, below, color=charts.NEUTRAL),
        customdata=np.column_stack((ratios, ratios - below, ratios + above, [b.share for b in buckets])),
    )
    for other in others:
        look = {"color": other.color, "size": 11, "symbol": other.symbol}
        hover = "%{fullData.name}<br>%{x}: %{y:.3g}"
        charts.add_points(fig, other.name, names, [b.ratio for b in other.buckets], look, hover)
    charts.line_across(fig, 1, uniform, width=1.5)
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


def _chosen(view: MultitaskView) -> str:
    return f"μ = {wording.entered(view.rule.exponent)}"


def bucket_picture(view: MultitaskView, budget: float, limits: tuple[float, float] | None = None) -> Picture:
    """The chosen weights from tail to head, with the best uniform sampling beside them.

    Args:
        view: The answer.
        budget: beta, which all three have alike.
        limits: Of the errors; they do not move with mu where not given.
    """
    sampling = [uniform_sampling(view)]
    return Picture(
        "many-tasks-buckets",
        "Error bounds from tail to head",
        lambda: bucket_figure(
            _chosen(view),
            view.buckets,
            sampling,
            limits or bucket_limits(view.curve, sampling),
            charts.MAIN_HEIGHT,
            f"Uniform weights, all with β = {wording.number(budget)}",
        ),
        f"{card.tail_and_head(view)}, beside uniform weights.",
        bucket_columns(view.buckets, sampling),
        view.tasks.disclosure,
    )


def optimum_picture(view: MultitaskView, optima: Optima) -> Picture:
    """The chosen weights from tail to head, with both exact optima beside them."""
    others = [
        compared("Problem (9)", optima.same_for_all, view, SAME["color"], "square"),
        compared("Free weights", optima.free, view, FREE["color"], "diamond"),
    ]
    return Picture(
        "many-tasks-optimum",
        "Error from tail to head, with the optima",
        lambda: bucket_figure(_chosen(view), view.buckets, others, bucket_limits(view.curve, others), 400),
        "Error bounds from tail to head under the chosen weights and both optima.",
        bucket_columns(view.buckets, others),
        view.tasks.disclosure,
    )


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
    sizes, chosen = by_distinct_size(view.problem.task_sizes, view.chosen.mean_weights)
    _, uniform = by_distinct_size(view.problem.task_sizes, view.uniform.mean_weights)
    return {"users_of_task": sizes, "weight_over_root_beta": chosen, "uniform_over_root_beta": uniform}


def weight_picture(view: MultitaskView) -> Picture:
    """Weight against the task's size, on axes that do not move with mu."""
    columns = weight_columns(view)
    return Picture(
        "many-tasks-weights",
        "Weight against the size of the task",
        lambda: _weight_figure(view, columns),
        "Weight of a user's data in a task against the task's size: the larger μ, the more small tasks weigh.",
        columns,
        view.tasks.disclosure,
    )


def _weight_figure(view: MultitaskView, columns: dict[str, FloatArray]) -> go.Figure:
    x = columns["users_of_task"]
    across = charts.log_axis(SIZE_AXIS, log_limits(view.problem.task_sizes))
    upwards = charts.log_axis("Weight ω (1 = √β)", log_limits(np.array(view.curve.weight_limits)))
    fig = charts.figure(across, upwards, 360)
    hover = "%{fullData.name}<br>users of the task: %{x:,}<br>weight %{y:.3g} √β"
    charts.add_curve(fig, "Uniform weights", x, columns["uniform_over_root_beta"], UNIFORM, hover)
    look = {"color": CHOSEN["color"], "size": 6, "opacity": 0.8}
    charts.add_points(fig, _chosen(view), x, columns["weight_over_root_beta"], look, hover)
    return fig


# --- sizes and mu -------------------------------------------------------------------------------------------


def size_columns(tasks: Tasks) -> dict[str, FloatArray]:
    """Users of every task, largest first."""
    ordered = np.sort(tasks.graph.task_sizes)[::-1].astype(np.float64)
    return {"rank": np.arange(1.0, ordered.size + 1.0), "users": ordered}


def drawn_sizes(tasks: Tasks) -> dict[str, FloatArray]:
    """What `size_picture` draws: `size_columns`, at log-spaced ranks where there are more than `MAX_TASKS`."""
    columns = size_columns(tasks)
    count = columns["rank"].size
    if count <= MAX_TASKS:
        return columns
    at = np.unique(np.round(np.geomspace(1, count, MAX_TASKS)).astype(np.int64)) - 1
    return {name: values[at] for name, values in columns.items()}


def size_picture(tasks: Tasks) -> Picture:
    """Task sizes by rank, log-log; all of them in the file, though of very many only some are drawn."""
    return Picture(
        "many-tasks-sizes",
        "How large the tasks are",
        lambda: _size_figure(tasks),
        "Users per task, from the largest task to the smallest.",
        size_columns(tasks),
        tasks.disclosure,
    )


def _size_figure(tasks: Tasks) -> go.Figure:
    columns = drawn_sizes(tasks)
    across = charts.log_axis("Rank of the task, largest first", log_limits(columns["rank"]))
    upwards = charts.log_axis(SIZE_AXIS, log_limits(columns["users"]))
    fig = charts.figure(across, upwards, 360)
    charts.add_curve(
        fig, "", columns["rank"], columns["users"], charts.TOTAL, "rank %{x:,}<br>users of the task: %{y:,}"
    )
    fig.data[0].mode = "lines+markers"
    fig.data[0].marker = {"size": 5}
    return charts.without_legend(fig)


def exponent_picture(view: MultitaskView, optima: Optima | None) -> Picture:
    """Total bound over mu, with the paper's values marked, and the optimum where it is known."""
    columns = {"mu": view.curve.exponents, "total_bound": view.curve.totals}
    if optima is not None:
        optimum = view.total(optima.of_kind(view.rule.fit))
        columns["optimum"] = np.full(view.curve.exponents.shape, optimum)
    return Picture(
        "many-tasks-exponents",
        "Total error bound against the exponent",
        lambda: _exponent_figure(view, columns),
        f"The total error bound is smallest at μ = {wording.entered(view.curve.best[0])}.",
        columns,
        view.tasks.disclosure,
    )


def _exponent_figure(view: MultitaskView, columns: dict[str, FloatArray]) -> go.Figure:
    low, high = float(columns["total_bound"].min()), float(columns["total_bound"].max())
    across = charts.linear_axis("Exponent μ of the task's size", (-0.03, 1.03))
    upwards = charts.log_axis("Total error bound (1 = uniform)", (min(low, 0.8) / 1.5, max(high, 1.25) * 1.2))
    fig = charts.figure(across, upwards, 360)
    fig.update_xaxes(tickvals=list(MARKED), ticktext=["0", "1/4", "1/2", "1"])
    hover = "μ = %{x:.3g}: %{y:.3g} of uniform weights' bound"
    charts.add_curve(fig, "Total bound", columns["mu"], columns["total_bound"], CHOSEN, hover)
    if "optimum" in columns:
        charts.add_curve(
            fig, "Exact optimum of this kind", columns["mu"], columns["optimum"], FREE, "optimum: %{y:.3g}"
        )
    best = view.curve.best
    charts.add_marker(fig, "Best μ", *best, CHOSEN["color"], "diamond", "best μ = %{x:.3g}: %{y:.3g}")
    now = (view.rule.exponent, view.total(view.chosen))
    charts.add_marker(fig, "Chosen μ", *now, SAMPLED["color"], "circle", "chosen μ = %{x:.3g}: %{y:.3g}")
    return fig
