"""Plots of many tasks as data. Pure functions of the solution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpcore.answer import Axis, Bars, Curve, Item, Level, Mark, Plot, Points, Scale, Style
from dpcore.answer.limits import fit_limits
from dpcore.common import wording
from dpcore.contributions import FloatArray, IntArray
from dpcore.multitask.answer.found import ExponentCurve as OverExponents
from dpcore.multitask.answer.found import (
    MultitaskSolution,
    Optima,
    Tasks,
    WeightComparison,
    count_tasks_per_user,
)
from dpcore.multitask.answer.words import describe_tail_and_head, format_sizes
from dpcore.multitask.bounds import Bucket, slice_by_size

WEIGHTS_STYLE, UNIFORM_STYLE, SAMPLING_STYLE, TASK_OPTIMUM_STYLE, USER_OPTIMUM_STYLE = (
    Style.CAP,
    Style.ENTERED,
    Style.PRIVACY,
    Style.SAMPLING,
    Style.SMOOTH,
)
MAX_POINTS = 300
MAX_TASKS = 3000
"""So many tasks are drawn one by one; of more, those at log-spaced ranks."""
HEIGHT = 360
BUCKET_NAMES = ("Tail", "2nd fifth", "Middle", "4th fifth", "Head")
UNIFORM_WEIGHTS = "Uniform weights"
SIZE_AXIS = Axis("users of the task", number_format=",")


def name_weights(comparison: WeightComparison) -> str:
    """Name the weights by their exponent."""
    return f"μ = {wording.entered(comparison.rule.exponent)}"


# --- tail to head -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ComparedBuckets:
    """An allocation that is compared with the bars: name, buckets against uniform weights, style and symbol."""

    name: str
    buckets: tuple[Bucket, ...]
    style: Style
    symbol: str


def label_buckets(buckets: Sequence[Bucket]) -> list[str]:
    """Write the labels of the axis, with the tasks' sizes."""
    fifths = len(buckets) == len(BUCKET_NAMES)
    names = BUCKET_NAMES if fifths else [f"Task {i + 1}" for i in range(len(buckets))]
    spreads = [format_sizes(bucket).replace(" to ", "–") for bucket in buckets]
    return [f"{name}<br>{sizes}" for name, sizes in zip(names, spreads, strict=True)]


def choose_ratio_limits(
    curve: OverExponents, compared_buckets: Sequence[ComparedBuckets]
) -> tuple[float, float]:
    """Choose the limits of the axis of error ratios; they do not move with mu."""
    ratios = [bucket.ratio for compared in compared_buckets for bucket in compared.buckets]
    low, high = curve.ratio_limits
    return min(low, 0.8, *ratios) / 1.2, max(high, 1.25, *ratios) * 1.2


def plot_buckets(solution: MultitaskSolution) -> Plot:
    """Plot the weights from tail to head, with the best uniform sampling for comparison."""
    comparison = solution.comparison
    sampling = f"Uniform sampling, k = {count_tasks_per_user(comparison.sampling):,}"
    return _plot_buckets(
        "many-tasks-buckets",
        "Error bounds from tail to head",
        f"{describe_tail_and_head(comparison)}, beside uniform weights.",
        comparison,
        [ComparedBuckets(sampling, comparison.sampling_buckets, SAMPLING_STYLE, "diamond")],
        f"{UNIFORM_WEIGHTS}, all with β = {wording.number(solution.budgets.exact)}",
    )


def plot_optimum(comparison: WeightComparison, optima: Optima) -> Plot:
    """Plot the weights from tail to head, with both exact optima for comparison."""
    return _plot_buckets(
        "many-tasks-optimum",
        "Error from tail to head, with the optima",
        "Error bounds from tail to head under the chosen weights and both optima.",
        comparison,
        [
            ComparedBuckets(
                "Problem (9)",
                slice_by_size(optima.task_optimum, comparison.uniform),
                TASK_OPTIMUM_STYLE,
                "square",
            ),
            ComparedBuckets(
                "Free weights",
                slice_by_size(optima.user_task_optimum, comparison.uniform),
                USER_OPTIMUM_STYLE,
                "diamond",
            ),
        ],
        UNIFORM_WEIGHTS,
        400,
    )


def _plot_buckets(
    key: str,
    title: str,
    alt: str,
    comparison: WeightComparison,
    compared_buckets: Sequence[ComparedBuckets],
    uniform: str,
    height: int | None = None,
) -> Plot:
    """Plot the error bound from tail to head relative to uniform weights; whiskers reach over a bucket's tasks."""
    weight_buckets = comparison.buckets
    columns: dict[str, npt.ArrayLike] = {
        "smallest_task": [bucket.smallest for bucket in weight_buckets],
        "largest_task": [bucket.largest for bucket in weight_buckets],
        "tasks": [bucket.num_tasks for bucket in weight_buckets],
        "error_ratio": [bucket.ratio for bucket in weight_buckets],
        "least_ratio_of_a_task": [bucket.least_ratio for bucket in weight_buckets],
        "largest_ratio_of_a_task": [bucket.largest_ratio for bucket in weight_buckets],
        "share_of_total": [bucket.share for bucket in weight_buckets],
    }
    items: list[Item] = [
        Bars(
            f"{name_weights(comparison)} (whiskers: from its best task to its worst)",
            "bucket",
            "error_ratio",
            WEIGHTS_STYLE,
            base=1.0,
            low="least_ratio_of_a_task",
            high="largest_ratio_of_a_task",
            gap=0.45,
            opacity=0.75,
            hover_columns=(
                ("least of its tasks", "least_ratio_of_a_task"),
                ("largest of its tasks", "largest_ratio_of_a_task"),
                ("share of the total bound", "share_of_total"),
            ),
        )
    ]
    for compared in compared_buckets:
        column = f"{compared.name}: error_ratio"
        columns[column] = [bucket.ratio for bucket in compared.buckets]
        items.append(Points(compared.name, "bucket", column, compared.style, symbol=compared.symbol, size=11))
    tasks_text = "Fifths of the tasks" if len(weight_buckets) == len(BUCKET_NAMES) else "Tasks"
    return Plot(
        key,
        title,
        alt,
        Axis("tasks", "", (0.0, 1.0), Scale.NAMES, f"{tasks_text} by size (users)"),
        Axis("error bound", "1 = uniform weights", choose_ratio_limits(comparison.curve, compared_buckets)),
        columns,
        (*items, Level(uniform, 1.0, dash="dash")),
        comparison.tasks.disclosure,
        {"bucket": label_buckets(weight_buckets)},
        is_main=height is None,
        height=height,
    )


# --- weight against size ------------------------------------------------------------------------------------


def average_by_size(sizes: IntArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Average the values per distinct size, for at most `MAX_POINTS` sizes."""
    distinct, size_codes = np.unique(sizes, return_inverse=True)
    means = np.bincount(size_codes, values) / np.bincount(size_codes)
    indices = choose_indices(distinct.size)
    return distinct[indices].astype(np.float64), means[indices]


def choose_indices(size: int) -> IntArray:
    """Choose at most `MAX_POINTS` indices, evenly spaced, both ends kept."""
    if size <= MAX_POINTS:
        return np.arange(size)
    return np.unique(np.round(np.linspace(0, size - 1, MAX_POINTS)).astype(np.int64))


def plot_weights(solution: MultitaskSolution) -> Plot:
    """Plot the mean weight over the task's users against the task's size, on axes that do not move with mu."""
    comparison = solution.comparison
    sizes, mean_weights = average_by_size(comparison.problem.task_sizes, comparison.allocation.mean_weights)
    _, uniform_weights = average_by_size(comparison.problem.task_sizes, comparison.uniform.mean_weights)
    return Plot(
        "many-tasks-weights",
        "Weight against the size of the task",
        "Weight of a user's data in a task against the task's size: the larger μ, the more small tasks weigh.",
        SIZE_AXIS,
        Axis("weight ω", "1 = √β", fit_limits(np.array(comparison.curve.weight_limits))),
        {
            "users_of_task": sizes,
            "weight_over_root_beta": mean_weights,
            "uniform_over_root_beta": uniform_weights,
        },
        (
            Curve(UNIFORM_WEIGHTS, "users_of_task", "uniform_over_root_beta", UNIFORM_STYLE),
            Points(
                name_weights(comparison),
                "users_of_task",
                "weight_over_root_beta",
                WEIGHTS_STYLE,
                size=6,
                opacity=0.8,
            ),
        ),
        comparison.tasks.disclosure,
        height=HEIGHT,
    )


# --- sizes and mu -------------------------------------------------------------------------------------------


def plot_sizes(tasks: Tasks, has_all_tasks: bool = False) -> Plot:
    """Plot the users of every task, largest first, log-log; at log-spaced ranks if there are more than `MAX_TASKS`.

    Args:
        tasks: Users and tasks.
        has_all_tasks: Whether its file holds all tasks, or those that are drawn.
    """
    sorted_sizes = np.sort(tasks.graph.task_sizes)[::-1].astype(np.float64)
    all_columns: Mapping[str, FloatArray] = {
        "rank": np.arange(1.0, sorted_sizes.size + 1.0),
        "users": sorted_sizes,
    }
    indices = np.arange(sorted_sizes.size)
    if sorted_sizes.size > MAX_TASKS:
        indices = np.unique(np.round(np.geomspace(1, sorted_sizes.size, MAX_TASKS)).astype(np.int64)) - 1
    guides = {f"{name} drawn": values[indices] for name, values in all_columns.items()}
    return Plot(
        "many-tasks-sizes",
        "How large the tasks are",
        "Users per task, from the largest task to the smallest.",
        Axis("rank of the task, largest first", number_format=","),
        SIZE_AXIS,
        all_columns if has_all_tasks else {name: values[indices] for name, values in all_columns.items()},
        (
            Curve("Users per task", "rank drawn", "users drawn", Style.TOTAL, is_unnamed=True),
            Points("Users per task", "rank drawn", "users drawn", Style.TOTAL, size=5, is_unnamed=True),
        ),
        tasks.disclosure,
        guides,
        height=HEIGHT,
    )


def plot_exponents(solution: MultitaskSolution) -> Plot:
    """Plot the total bound over mu, with the paper's values marked, and the optimum where it is known."""
    comparison, curve = solution.comparison, solution.comparison.curve
    columns = {"mu": curve.exponents, "total_bound": curve.totals}
    items: list[Item] = [Curve("Total bound", "mu", "total_bound", WEIGHTS_STYLE)]
    if solution.optima is not None:
        total = comparison.compare_total(solution.optima.choose(comparison.rule.fit))
        columns["optimum"] = np.full(curve.exponents.shape, total)
        items.append(Curve("Exact optimum of this kind", "mu", "optimum", USER_OPTIMUM_STYLE))
    items.append(Mark("Best μ", *curve.best, WEIGHTS_STYLE))
    items.append(
        Mark(
            "Chosen μ",
            comparison.rule.exponent,
            comparison.compare_total(comparison.allocation),
            SAMPLING_STYLE,
            "circle",
        )
    )
    low, high = float(curve.totals.min()), float(curve.totals.max())
    return Plot(
        "many-tasks-exponents",
        "Total error bound against the exponent",
        f"The total error bound is smallest at μ = {wording.entered(curve.best[0])}.",
        Axis(
            "exponent μ of the task's size",
            "",
            (-0.03, 1.03),
            Scale.LINEAR,
            named_ticks=((0.0, "0"), (0.25, "1/4"), (0.5, "1/2"), (1.0, "1")),
        ),
        Axis("total error bound", "1 = uniform", (min(low, 0.8) / 1.5, max(high, 1.25) * 1.2)),
        columns,
        tuple(items),
        comparison.tasks.disclosure,
        height=HEIGHT,
    )
