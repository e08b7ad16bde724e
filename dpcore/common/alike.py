"""The effect of correlated rows of one user on formulas for independent rows.

With a share rho of the variance between users, rows of one user have correlation rho. The mean of n rows, s_l
of them from user l, has the variance sigma^2 / n^2 sum s_l (1 + (s_l - 1) rho): that of independent rows times
1 + (sum s_l^2 / n - 1) rho. Source: Kish 1965, *Survey Sampling*, section 5.4, there for clusters of one size.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpcore.contributions import FloatArray

ASSUMED_SHARE = 0.2
"""rho where nobody says otherwise: an assumption, for what people do. Read off values it was 0.3 to 0.5 for purchases,
and 0 to 0.2 for ratings and for waiting times (`benchmarks/mean_on_tables.py`)."""
NAME = "Users who differ"
"""Label of the fact that says what an answer assumes of users."""


def design_effect(sizes: npt.ArrayLike, users: npt.ArrayLike, share: float = ASSUMED_SHARE) -> float:
    """Compute the variance of the mean of all rows over that of independent rows.

    Args:
        sizes: Rows per user, shape (k,).
        users: How many users have each, shape (k,).
        share: rho in [0, 1].
    """
    size_array, user_counts = np.asarray(sizes, dtype=np.float64), np.asarray(users, dtype=np.float64)
    return 1.0 + share * (
        float((user_counts * size_array * size_array).sum()) / float((user_counts * size_array).sum()) - 1.0
    )


def weighted_effect(weights: FloatArray, user_codes: npt.ArrayLike, share: float = ASSUMED_SHARE) -> float:
    """Compute the effect on weighted sums of rows: (1 - rho) + rho sum_l (user's weight sum)^2 / sum of squares.

    Args:
        weights: c_ij, one sum per row of the matrix, shape (d, n); not all 0.
        user_codes: The user of each row, shape (n,).
        share: rho in [0, 1].
    """
    _, user_indices = np.unique(np.asarray(user_codes), return_inverse=True)
    squared_sums = sum(
        float((np.bincount(user_indices, weights=row_weights) ** 2).sum()) for row_weights in weights
    )
    return 1.0 - share + share * squared_sums / float((weights * weights).sum())
