"""What the assumption of independent rows hides: users differ, and bounding contributions shifts the mean.

Epasto et al. 2020, section 2.2, take all rows as draws from one distribution. Where users differ, weighting
users differently moves the mean itself (Amin et al. 2019 is about that bias). These figures show how far, on
the values at hand. All are computed from the values: as private as they are.
"""

from __future__ import annotations

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
    mean = float(clamped.mean())
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
    )


def bounded_mean(clamped: Clamped, bounds: npt.ArrayLike) -> FloatArray:
    """Mean when user l weighs min(h, s_l), before noise.

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


def between_user_share(clamped: Clamped) -> float:
    """Share of the variance of a row that lies between users: the intraclass correlation.

    One-way random-effects analysis of variance for unequal group sizes: with MSB and MSW the mean squares
    between and within users and n_0 = (n - sum s_l^2 / n) / (m - 1), it is
    (MSB - MSW) / (MSB + (n_0 - 1) MSW), set to 0 where negative.

    Returns:
        A share in [0, 1]; nan where it cannot be told (one user, or nobody with two rows).

    Source: Searle, Casella and McCulloch, *Variance Components* (1992), section 3.6.
    """
    m, n = clamped.sizes.size, float(clamped.sizes.sum())
    if m < 2 or n <= m:
        return float("nan")
    between = float(clamped.sizes @ (clamped.user_means - clamped.mean) ** 2) / (m - 1)
    within = clamped.within_squares / (n - m)
    typical = (n - float(clamped.sizes @ clamped.sizes) / n) / (m - 1)
    spread = between + (typical - 1.0) * within
    return min(max((between - within) / spread, 0.0), 1.0) if spread > 0.0 else 0.0
