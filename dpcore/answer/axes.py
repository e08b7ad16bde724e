"""Where curves over a bound are drawn, on which axis, and which users stand below them. Pure: numbers out."""

from __future__ import annotations

import numpy as np

from dpcore.answer.handle import MOST_USERS, Users
from dpcore.answer.limits import SMALLEST_PART as SMALLEST_PART
from dpcore.answer.limits import fitted_limits as fitted_limits
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
