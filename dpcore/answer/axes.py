"""Where curves over a bound are drawn, on which axis, and which users stand below them. Pure: numbers out."""

from __future__ import annotations

import math

import numpy as np

from dpcore.answer.handle import MOST_USERS, Users
from dpcore.answer.plot import Axis
from dpcore.common import wording
from dpcore.contributions import ContributionHistogram, FloatArray, log_spaced

CURVE_POINTS = 240


def curve_bounds(histogram: ContributionHistogram, points: int = CURVE_POINTS) -> FloatArray:
    """Bounds to draw: log-spaced from s_1 to s_m, all sizes where they are few.

    Where all users have equally many rows the curve is drawn to twice that size, since there is nothing
    between s_1 and s_m.
    """
    low, high = float(histogram.min_size), float(histogram.max_size)
    sizes = histogram.sizes.astype(np.float64)
    return log_spaced(low, max(high, 2.0 * low), points, extra=list(sizes) if sizes.size <= 60 else ())


BOUND_AXIS = "Bound (rows per user)"
ROWS = "rows per user"
"""The unit of a bound on rows."""


def bound_axis(limits: tuple[float, float]) -> Axis:
    """The horizontal axis of curves over a bound."""
    return Axis("bound", ROWS, limits, title=BOUND_AXIS, number=",.3~r")


MARGIN = 1.1
"""Factor that is left free between curves and the ends of an axis that follows them."""
SMALLEST_PART = 30.0
"""A part of an error this many times smaller than the least error need not be seen on its axis."""


def fitted_limits(whole: FloatArray, parts: FloatArray | None = None) -> tuple[float, float]:
    """Ends of a log axis around curves, each 1, 2 or 5 times a power of ten: few steps of a slider move them.

    Args:
        whole: What must be seen, of any shape; what is not finite or not above 0 is left out.
        parts: What ``whole`` is made of, of any shape; it may leave the axis at its lower end, `SMALLEST_PART`.
    """
    shown = whole[np.isfinite(whole) & (whole > 0.0)]
    if not shown.size:
        return 1.0, 10.0
    low, high = float(shown.min()), float(shown.max())
    if parts is not None:
        low = float(parts[parts > low / SMALLEST_PART].min(initial=low))
    return _round(low / MARGIN, up=False), _round(high * MARGIN, up=True)


def _round(value: float, up: bool) -> float:
    """The next 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(value))
    steps = [step * power for step in (1.0, 2.0, 5.0, 10.0)]
    return (
        min(step for step in steps if step >= value) if up else max(step for step in steps if step <= value)
    )


def rounded_limits(values: FloatArray) -> tuple[float, float]:
    """Whole powers of ten around positive values."""
    fine = values[np.isfinite(values) & (values > 0.0)]
    low, high = (float(fine.min()), float(fine.max())) if fine.size else (1.0, 10.0)
    below, above = math.floor(math.log10(low)), math.ceil(math.log10(high))
    return 10.0**below, 10.0 ** max(above, below + 1)


def some_users(
    values: FloatArray, users: FloatArray, unit: str, what: str = "user", by_second: bool = False
) -> Users:
    """Users of all sizes at even ratios of rank, the heaviest first, as heavy tails are seen best so.

    Args:
        values: What a user adds, distinct and ascending, shape (k,).
        users: How many users add that, shape (k,).
        unit: What is added, for the title.
        what: What the bars are, where they are no users.
        by_second: As of `Users`.
    """
    reached = np.cumsum(np.asarray(users, dtype=np.float64)[::-1])
    total = float(reached[-1])
    few = total <= MOST_USERS
    ranks = np.arange(1.0, total + 1.0) if few else np.unique(np.floor(np.geomspace(1.0, total, MOST_USERS)))
    at_ranks = np.asarray(values, dtype=np.float64)[::-1][np.searchsorted(reached, ranks)]
    of_all = wording.counted(ranks.size, what) if ranks.size == total else (
        f"{ranks.size} of {wording.counted(int(total), what)}"
    )  # fmt: skip
    # Rows are what the bound is about, and need no word.
    title = wording.capital(of_all) + ("" if unit == "rows" else f" by {unit}")
    return Users(at_ranks, title, by_second)
