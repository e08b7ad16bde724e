"""What the assumption of independent rows hides: users differ, and bounding contributions shifts the mean.

Epasto et al. 2020, section 2.2, take all rows as draws from one distribution. Where users differ, weighting
users differently moves the mean itself (Amin et al. 2019 is about that bias). These figures show how far, on
the values at hand. All are computed from the values: as private as they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpcore.common.checks import require
from dpcore.contributions import FloatArray, suffix_sums
from dpcore.dataset import Values


@dataclass(frozen=True)
class Clamped:
    """Values forced into [lower, upper], summed up per user.

    Attributes:
        lower: L, in the values' unit.
        upper: U, in the values' unit.
        num_below: Rows with a value below L, raised to L.
        num_above: Rows with a value above U, lowered to U.
        variance: Sample variance of all clamped rows around their mean, (unit)^2; at most (U - L)^2 / 4 up to
            the factor n / (n - 1), which is taken off. 0 for a single row.
        mean: Mean of all clamped rows.
        sizes: Rows per user, shape (num_users,).
        user_means: Mean of each user's clamped rows, shape (num_users,).
        within_squares: Sum over rows of the squared distance to the user's own mean, (unit)^2.
        within_variances: Variance of each user's clamped rows, size - 1 below, (unit)^2, shape (num_users,); 0 for a
            single row.
        unclamped_mean: Mean of all rows before clamping.
    """

    lower: float
    upper: float
    num_below: int
    num_above: int
    variance: float
    mean: float
    sizes: FloatArray
    user_means: FloatArray
    within_squares: float
    within_variances: FloatArray
    unclamped_mean: float


def clamp(values: Values, lower: float, upper: float) -> Clamped:
    """Force values into [lower, upper] and sum up per user.

    Raises:
        InvalidInput: Bounds not finite or not in order.
    """
    require.ascending(**{"the lower value bound": lower, "the upper one": upper})
    clamped = np.clip(values.values, lower, upper)
    starts = np.flatnonzero(np.diff(values.user_codes, prepend=values.user_codes[0] - 1))
    sizes = np.diff(np.append(starts, clamped.size)).astype(np.float64)
    user_means = np.add.reduceat(clamped, starts) / sizes
    within = clamped - np.repeat(user_means, sizes.astype(np.int64))
    squares = np.add.reduceat(within * within, starts)
    mean = float(clamped.mean())
    # Whoever compares with a mean that is no number looks first.
    with np.errstate(over="ignore", invalid="ignore"):
        unclamped = float(values.values.mean())
    return Clamped(
        lower=lower,
        upper=upper,
        num_below=int(np.count_nonzero(values.values < lower)),
        num_above=int(np.count_nonzero(values.values > upper)),
        variance=min(float(clamped.var(ddof=1)) if clamped.size > 1 else 0.0, (upper - lower) ** 2 / 4.0),
        mean=mean,
        sizes=sizes,
        user_means=user_means,
        within_squares=float(within @ within),
        within_variances=squares / np.maximum(sizes - 1.0, 1.0),
        unclamped_mean=unclamped,
    )


def bounded_mean(clamped: Clamped, bounds: npt.ArrayLike) -> FloatArray:
    """Return the mean when user l weighs min(h, s_l), before noise.

    It is the smooth weights' mean at threshold h, and the expectation of the capped mean at cap h over which
    of a heavy user's rows are kept, when every row is equally likely to be.

    Args:
        clamped: Values per user.
        bounds: h > 0 in rows per user, any shape.

    Returns:
        Means in the values' unit, float64, of the shape of ``bounds``.
    """
    h = np.asarray(bounds, dtype=np.float64)
    # Users in order of size, then prefix sums: no array of bounds times users.
    order = np.argsort(clamped.sizes, kind="stable")
    sizes, means = clamped.sizes[order], clamped.user_means[order]
    below = np.concatenate(([0.0], np.cumsum(sizes * means)))
    rows_below = np.concatenate(([0.0], np.cumsum(sizes)))
    above = suffix_sums(means)
    k = np.searchsorted(sizes, h, side="right")
    return np.asarray((below[k] + h * above[k]) / (rows_below[k] + h * (sizes.size - k)))


@dataclass(frozen=True)
class UserShare:
    """The share of the variance of a row that lies between users, as it is read off values.

    Attributes:
        estimate: The estimate, not cut at 0 or 1; nan where it cannot be told.
        low: Lower end of its 95 % interval by the jackknife, cut at 0.
        high: Upper end, cut at 1.
    """

    estimate: float
    low: float
    high: float

    @property
    def used(self) -> float:
        """Return the estimate within [0, 1]."""
        return min(max(self.estimate, 0.0), 1.0)


def size_slope(clamped: Clamped) -> float:
    """Return how clearly the values rise with the number of rows of a user: the t value of a regression over users.

    Each user's mean is regressed on the logarithm of their rows, all users counting alike.

    Returns:
        Slope over its standard error, negative where users with more rows have lower values; 0 where all users have
        equally many rows, there are fewer than three, or all means are the same.
    """
    x, y = np.log(clamped.sizes), clamped.user_means
    x, y = x - x.mean(), y - y.mean()
    across = float(x @ x)
    if x.size < 3 or across <= 1e-12 * x.size:
        return 0.0
    slope = float(x @ y) / across
    left = float(((y - slope * x) ** 2).sum()) / (x.size - 2)
    # Means that lie on a line but for rounding have no scatter to go by.
    least = 1e-24 * float((clamped.user_means**2).sum()) / x.size
    return slope / math.sqrt(max(left, least) / across) if max(left, least) > 0.0 else 0.0


NORMAL_95 = 1.96


def user_share(clamped: Clamped) -> UserShare:
    """Return the intraclass correlation with an interval that leaves each user out in turn.

    One-way random-effects analysis of variance for unequal group sizes: with MSB and MSW the mean squares
    between and within users and n_0 = (n - sum s_l^2 / n) / (m - 1), it is
    (MSB - MSW) / (MSB + (n_0 - 1) MSW); nan where it cannot be told (one user, or nobody with two rows).

    The usual interval for normal values is several times too narrow where users differ in size and are not normal;
    that of the jackknife is about right (`tests/dpcore/mean/test_user_share.py` measures both).

    Source: Miller 1974, "The jackknife: a review", Biometrika 61; the estimate is that of Searle, Casella and
        McCulloch, *Variance Components* (1992), section 3.6.
    """
    estimate = float(_correlation(_Sums.of(clamped)))
    if math.isnan(estimate):
        return UserShare(math.nan, math.nan, math.nan)
    left_out = _correlation(_Sums.of(clamped).without_each(clamped))
    # Without some users it may not be told: where only one user has two rows, say.
    told = left_out[~np.isnan(left_out)]
    m = clamped.sizes.size
    spread = float(((told - told.mean()) ** 2).sum()) * (m - 1) / m if told.size > 1 else math.inf
    half = NORMAL_95 * math.sqrt(spread)
    return UserShare(estimate, max(estimate - half, 0.0), min(estimate + half, 1.0))


@dataclass(frozen=True)
class _Sums:
    """What the analysis of variance needs; numbers, or one entry per user who is left out."""

    users: FloatArray
    rows: FloatArray
    squared_sizes: FloatArray
    total: FloatArray
    between: FloatArray
    within: FloatArray

    @classmethod
    def of(cls, clamped: Clamped) -> _Sums:
        sizes, away = clamped.sizes, clamped.user_means - clamped.mean
        sums = (sizes.size, sizes.sum(), sizes @ sizes, sizes @ away, sizes @ away**2, clamped.within_squares)
        return cls(*(np.asarray(one, dtype=np.float64) for one in sums))

    def without_each(self, clamped: Clamped) -> _Sums:
        """Return the same sums with one user left out, for each user."""
        sizes, away = clamped.sizes, clamped.user_means - clamped.mean
        within = clamped.within_variances * (sizes - 1.0)
        return _Sums(
            np.full(sizes.shape, self.users - 1.0),
            self.rows - sizes,
            self.squared_sizes - sizes**2,
            self.total - sizes * away,
            self.between - sizes * away**2,
            np.maximum(self.within - within, 0.0),
        )


def _correlation(of: _Sums) -> FloatArray:
    """Return the estimate of `user_share`, not cut at 0; nan where it cannot be told."""
    m, n = of.users, of.rows
    told = (m >= 2.0) & (n > m)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Moved from the mean of all rows to that of the rows that are left: a small step, so that little cancels.
        between = np.maximum(of.between - of.total**2 / n, 0.0) / (m - 1.0)
        within = of.within / (n - m)
        typical = (n - of.squared_sizes / n) / (m - 1.0)
        spread = between + (typical - 1.0) * within
        share = np.where(spread > 0.0, (between - within) / np.where(spread > 0.0, spread, 1.0), 0.0)
    return np.asarray(np.where(told, share, np.nan))
