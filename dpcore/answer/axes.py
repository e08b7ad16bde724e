"""The bounds at which curves are drawn, the limits of axes, and the users that are drawn below. Pure: numbers out."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpcore.answer.handle import MAX_USERS, UserBars
from dpcore.answer.limits import SMALLEST_PART as SMALLEST_PART
from dpcore.answer.limits import Limits
from dpcore.answer.limits import fit_limits as fit_limits
from dpcore.answer.plot import Axis
from dpcore.common import wording
from dpcore.contributions import ContributionHistogram, FloatArray, log_spaced

CURVE_POINTS = 240


def choose_curve_bounds(histogram: ContributionHistogram, points: int = CURVE_POINTS) -> FloatArray:
    """Choose the bounds to draw: log-spaced from s_1 to s_m, all sizes if they are few.

    If all users have equally many rows, the curve is drawn to twice that size, since nothing lies between s_1
    and s_m.
    """
    sizes = histogram.sizes.astype(np.float64)
    extra = list(sizes) if sizes.size <= 60 else ()
    return log_spaced(*choose_bound_limits(histogram), points, extra=extra)


def choose_bound_limits(histogram: ContributionHistogram) -> Limits:
    """Choose the limits of an axis of bounds: the smallest and the largest size, at least twice the smallest."""
    low, high = float(histogram.min_size), float(histogram.max_size)
    return low, max(high, 2.0 * low)


ROWS_UNIT = "rows per user"
"""The unit of a bound on rows."""


def build_bound_axis(histogram: ContributionHistogram) -> Axis:
    """Build the horizontal axis of curves over a bound."""
    limits = choose_bound_limits(histogram)
    return Axis("bound", ROWS_UNIT, limits, title="Bound (rows per user)", number_format=",.3~r")


def sample_users(
    values: npt.ArrayLike,
    users: npt.ArrayLike,
    unit: str,
    unit_name: str = "user",
    is_cut_by_second: bool = False,
) -> UserBars:
    """Sample users of all sizes at even ratios of rank, the heaviest first, which shows heavy tails best.

    Args:
        values: The contribution of a user, distinct and ascending, shape (k,).
        users: The number of users with each, shape (k,).
        unit: The unit of a contribution, for the title.
        unit_name: The name of a bar, if it is not a user.
        is_cut_by_second: See `UserBars`.
    """
    cumulative_users = np.cumsum(np.asarray(users, dtype=np.float64)[::-1])
    total = float(cumulative_users[-1])
    shows_all = total <= MAX_USERS
    ranks = (
        np.arange(1.0, total + 1.0) if shows_all else np.unique(np.floor(np.geomspace(1.0, total, MAX_USERS)))
    )
    at_ranks = np.asarray(values, dtype=np.float64)[::-1][np.searchsorted(cumulative_users, ranks)]
    count_text = wording.counted(ranks.size, unit_name) if ranks.size == total else (
        f"{ranks.size} of {wording.counted(int(total), unit_name)}"
    )  # fmt: skip
    # Rows are what the bound is about, and need no word.
    title = wording.capital(count_text) + ("" if unit == "rows" else f" by {unit}")
    return UserBars(at_ranks, title, is_cut_by_second)
