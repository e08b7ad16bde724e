"""The figures of many tasks as data. Pure: what was found in, plots out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpcore.answer import Axis, Bars, Curve, Item, Level, Look, Mark, Plot, Points, Scale
from dpcore.answer.limits import fitted_limits
from dpcore.common import wording
from dpcore.contributions import FloatArray, IntArray
from dpcore.multitask.answer.found import Curve as OverExponents
from dpcore.multitask.answer.found import MultitaskFound, Optima, Tasks, Weighed, tasks_per_user
from dpcore.multitask.answer.words import spread, tail_and_head
from dpcore.multitask.bounds import Bucket, by_size

CHOSEN, UNIFORM, SAMPLED, SAME, FREE = Look.CAP, Look.OWN, Look.PRIVACY, Look.SAMPLING, Look.SMOOTH
MAX_POINTS = 300
MAX_TASKS = 3000
"""So many tasks are drawn one by one; of more, those at log-spaced ranks."""
HEIGHT = 360
BUCKET_NAMES = ("Tail", "2nd fifth", "Middle", "4th fifth", "Head")
UNIFORM_WEIGHTS = "Uniform weights"
SIZE_AXIS = Axis("users of the task", number=",")


def chosen_name(weighed: Weighed) -> str:
    """What the chosen weights are called."""
    return f"μ = {wording.entered(weighed.rule.exponent)}"


# --- tail to head -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Compared:
    """Something to set beside the bars: its name, buckets against uniform weights, whose colour, and symbol."""

    name: str
    buckets: tuple[Bucket, ...]
    look: Look
    symbol: str


def bucket_names(buckets: Sequence[Bucket]) -> list[str]:
    """Names for the axis, with the tasks' sizes."""
    fifths = len(buckets) == len(BUCKET_NAMES)
    names = BUCKET_NAMES if fifths else [f"Task {i + 1}" for i in range(len(buckets))]
    spreads = [spread(b).replace(" to ", "–") for b in buckets]
    return [f"{name}<br>{sizes}" for name, sizes in zip(names, spreads, strict=True)]


def bucket_limits(curve: OverExponents, others: Sequence[Compared]) -> tuple[float, float]:
    """Limits of the axis of error ratios; they do not move with mu."""
    beside = [b.ratio for other in others for b in other.buckets]
    low, high = curve.ratio_limits
    return min(low, 0.8, *beside) / 1.2, max(high, 1.25, *beside) * 1.2


def buckets(found: MultitaskFound) -> Plot:
    """The main figure: the chosen weights from tail to head, with the best uniform sampling beside them."""
    weighed = found.weighed
    sampling = f"Uniform sampling, k = {tasks_per_user(weighed.sampling):,}"
    return _buckets(
        "many-tasks-buckets",
        "Error bounds from tail to head",
        f"{tail_and_head(weighed)}, beside uniform weights.",
        weighed,
        [Compared(sampling, weighed.sampling_buckets, SAMPLED, "diamond")],
        f"{UNIFORM_WEIGHTS}, all with β = {wording.number(found.budgets.exact)}",
    )


def optimum(weighed: Weighed, optima: Optima) -> Plot:
    """The chosen weights from tail to head, with both exact optima beside them."""
    return _buckets(
        "many-tasks-optimum",
        "Error from tail to head, with the optima",
        "Error bounds from tail to head under the chosen weights and both optima.",
        weighed,
        [
            Compared("Problem (9)", by_size(optima.same_for_all, weighed.uniform), SAME, "square"),
            Compared("Free weights", by_size(optima.free, weighed.uniform), FREE, "diamond"),
        ],
        UNIFORM_WEIGHTS,
        400,
    )


def _buckets(
    key: str,
    title: str,
    alt: str,
    weighed: Weighed,
    others: Sequence[Compared],
    uniform: str,
    height: int | None = None,
) -> Plot:
    """Error bound of tail to head relative to uniform weights; whiskers reach over the bucket's tasks."""
    of = weighed.buckets
    columns: dict[str, npt.ArrayLike] = {
        "smallest_task": [b.smallest for b in of],
        "largest_task": [b.largest for b in of],
        "tasks": [b.num_tasks for b in of],
        "error_ratio": [b.ratio for b in of],
        "least_ratio_of_a_task": [b.least_ratio for b in of],
        "largest_ratio_of_a_task": [b.largest_ratio for b in of],
        "share_of_total": [b.share for b in of],
    }
    items: list[Item] = [
        Bars(
            f"{chosen_name(weighed)} (whiskers: from its best task to its worst)",
            "bucket",
            "error_ratio",
            CHOSEN,
            base=1.0,
            low="least_ratio_of_a_task",
            high="largest_ratio_of_a_task",
            gap=0.45,
            opacity=0.75,
            also=(
                ("least of its tasks", "least_ratio_of_a_task"),
                ("largest of its tasks", "largest_ratio_of_a_task"),
                ("share of the total bound", "share_of_total"),
            ),
        )
    ]
    for other in others:
        column = f"{other.name}: error_ratio"
        columns[column] = [b.ratio for b in other.buckets]
        items.append(Points(other.name, "bucket", column, other.look, symbol=other.symbol, size=11))
    what = "Fifths of the tasks" if len(of) == len(BUCKET_NAMES) else "Tasks"
    return Plot(
        key,
        title,
        alt,
        Axis("tasks", "", (0.0, 1.0), Scale.NAMES, f"{what} by size (users)"),
        Axis("error bound", "1 = uniform weights", bucket_limits(weighed.curve, others)),
        columns,
        (*items, Level(uniform, 1.0, dash="dash")),
        weighed.tasks.disclosure,
        {"bucket": bucket_names(of)},
        main=height is None,
        height=height,
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


def weights(found: MultitaskFound) -> Plot:
    """Mean weight over the task's users against the task's size, on axes that do not move with mu."""
    weighed = found.weighed
    sizes, chosen = by_distinct_size(weighed.problem.task_sizes, weighed.chosen.mean_weights)
    _, uniform = by_distinct_size(weighed.problem.task_sizes, weighed.uniform.mean_weights)
    return Plot(
        "many-tasks-weights",
        "Weight against the size of the task",
        "Weight of a user's data in a task against the task's size: the larger μ, the more small tasks weigh.",
        SIZE_AXIS,
        Axis("weight ω", "1 = √β", fitted_limits(np.array(weighed.curve.weight_limits))),
        {"users_of_task": sizes, "weight_over_root_beta": chosen, "uniform_over_root_beta": uniform},
        (
            Curve(UNIFORM_WEIGHTS, "users_of_task", "uniform_over_root_beta", UNIFORM),
            Points(
                chosen_name(weighed), "users_of_task", "weight_over_root_beta", CHOSEN, size=6, opacity=0.8
            ),
        ),
        weighed.tasks.disclosure,
        height=HEIGHT,
    )


# --- sizes and mu -------------------------------------------------------------------------------------------


def sizes(tasks: Tasks, every: bool = False) -> Plot:
    """Users of every task, largest first, log-log; drawn at log-spaced ranks where there are more than `MAX_TASKS`.

    Args:
        tasks: Users and tasks.
        every: Whether its file holds all tasks, or those that are drawn.
    """
    ordered = np.sort(tasks.graph.task_sizes)[::-1].astype(np.float64)
    whole: Mapping[str, FloatArray] = {"rank": np.arange(1.0, ordered.size + 1.0), "users": ordered}
    at = np.arange(ordered.size)
    if ordered.size > MAX_TASKS:
        at = np.unique(np.round(np.geomspace(1, ordered.size, MAX_TASKS)).astype(np.int64)) - 1
    drawn = {f"{name} drawn": values[at] for name, values in whole.items()}
    return Plot(
        "many-tasks-sizes",
        "How large the tasks are",
        "Users per task, from the largest task to the smallest.",
        Axis("rank of the task, largest first", number=","),
        SIZE_AXIS,
        whole if every else {name: values[at] for name, values in whole.items()},
        (
            Curve("Users per task", "rank drawn", "users drawn", Look.TOTAL, unnamed=True),
            Points("Users per task", "rank drawn", "users drawn", Look.TOTAL, size=5, unnamed=True),
        ),
        tasks.disclosure,
        drawn,
        height=HEIGHT,
    )


def exponents(found: MultitaskFound) -> Plot:
    """Total bound over mu, with the paper's values marked, and the optimum where it is known."""
    weighed, curve = found.weighed, found.weighed.curve
    columns = {"mu": curve.exponents, "total_bound": curve.totals}
    items: list[Item] = [Curve("Total bound", "mu", "total_bound", CHOSEN)]
    if found.optima is not None:
        total = weighed.total(found.optima.of_kind(weighed.rule.fit))
        columns["optimum"] = np.full(curve.exponents.shape, total)
        items.append(Curve("Exact optimum of this kind", "mu", "optimum", FREE))
    items.append(Mark("Best μ", *curve.best, CHOSEN))
    items.append(Mark("Chosen μ", weighed.rule.exponent, weighed.total(weighed.chosen), SAMPLED, "circle"))
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
            marked=((0.0, "0"), (0.25, "1/4"), (0.5, "1/2"), (1.0, "1")),
        ),
        Axis("total error bound", "1 = uniform", (min(low, 0.8) / 1.5, max(high, 1.25) * 1.2)),
        columns,
        tuple(items),
        weighed.tasks.disclosure,
        height=HEIGHT,
    )
