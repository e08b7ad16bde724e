"""Gradients as integers: a user contributes the same integer whoever else is in the data.

Gradients are rounded before they are summed, toward 0 onto a public grid, so that a user's sum is an integer
vector no longer than the bound. Everything about a row is computed from its own numbers by single operations
that IEEE 754 defines to the last digit (sums, products, roots, column by column), never by a matrix product or
a library's vectorised exponential, whose last digit may depend on where in an array a row is.
"""

from __future__ import annotations

import numpy as np

from dpcore.contributions import FloatArray, IntArray
from dpcore.training.losses import LossKind
from dpcore.training.mechanism import Mechanism
from dpcore.training.rows import ClassifierRows
from dpcore.training.weighting import compute_smooth_weights

CELLS = 2**22
"""Steps of the grid in the longest gradient of a user: what rounding takes off is far below the noise."""
USER_NORM = CELLS + 1
"""Norm that a user's whole numbers have at most: the bound itself, and one step for the rounding of float64, which is
below 1e-12 of it. Rounding toward 0 adds nothing."""

_LOG2_E = 1.4426950408889634
# ln 2 in two parts, the first exact.
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_TAYLOR = [1.0]
for _power in range(1, 15):
    _TAYLOR.append(_TAYLOR[-1] / _power)


def exponentiate_exactly(values: FloatArray) -> FloatArray:
    """Compute e^x to about 2 units in the last place, each entry by the same operations; |x| <= 700."""
    exponents = np.rint(values * _LOG2_E)
    remainder = (
        values - exponents * _LN2_HIGH
    ) - exponents * _LN2_LOW  # at most 0.35: the series ends below 1e-18
    series = np.full_like(remainder, _TAYLOR[-1])
    for term in reversed(_TAYLOR[:-1]):
        series = series * remainder + term
    return np.asarray(np.ldexp(series, exponents.astype(np.int64)))


def compute_slopes_exactly(loss: LossKind, margins: FloatArray) -> FloatArray:
    """Compute slopes as `LossKind.differentiate` does, each entry from its own margin by the same operations."""
    if loss is not LossKind.LOGISTIC:
        return loss.differentiate(margins)
    # -1 / (1 + e^m); beyond 700 the exponential would overflow, and the slope is 0 to 300 digits.
    slopes = -1.0 / (1.0 + exponentiate_exactly(np.clip(margins, -700.0, 700.0)))
    return np.where(margins < 700.0, slopes, 0.0)


def _clip_slopes(rows: ClassifierRows, mechanism: Mechanism, theta: FloatArray) -> FloatArray:
    """Compute the slope of each row, clipped so that its gradient has norm at most the clip."""
    margins = np.zeros(rows.num_rows)
    squares = np.zeros(rows.num_rows)
    for column, entry in zip(rows.signed.T, theta.tolist(), strict=True):
        margins += column * entry
        squares += column * column
    with np.errstate(divide="ignore"):
        max_slopes = mechanism.clip / np.sqrt(squares)
    return np.asarray(np.clip(compute_slopes_exactly(mechanism.loss, margins), -max_slopes, max_slopes))


def round_gradients(rows: ClassifierRows, mechanism: Mechanism, bound: float, theta: FloatArray) -> IntArray:
    """Round the weighted, clipped gradient of each row to steps of the grid, shape (num_rows, num_features).

    A step is ``bound × clip / CELLS``. The rows of a user add up to a vector of norm at most `USER_NORM`.
    """
    # s rows of weight min(h, s) / s, none with a gradient beyond the clip: together at most h times the clip, which is
    # `CELLS` steps. Rounding toward 0 makes no entry larger.
    weights = compute_smooth_weights(rows.sizes, bound)[rows.users]
    steps = weights * _clip_slopes(rows, mechanism, theta) * (CELLS / (bound * mechanism.clip))
    return np.trunc(rows.signed * steps[:, None]).astype(np.int64)


def round_user_sums(
    rows: ClassifierRows, mechanism: Mechanism, bound: float, theta: FloatArray
) -> tuple[IntArray, IntArray]:
    """Round each user's sum of clipped gradients, clipped to the bound, to the grid; also return who is within.

    A step is ``bound × clip / CELLS``. Rows are rounded to integers first, so that a user's sum is exact in any
    order of its rows.

    Returns:
        Whole vectors of norm at most `USER_NORM`, shape (num_users, num_features), and 1 or 0, shape (num_users,).
    """
    slopes = _clip_slopes(rows, mechanism, theta) * (CELLS / mechanism.clip)
    row_steps = np.trunc(rows.signed * slopes[:, None]).astype(np.int64)
    # Up to 200,000 rows of 2^22: float64 holds the sums exactly.
    sums = np.add.reduceat(row_steps, rows.starts, axis=0).astype(np.float64) / bound
    squares = np.zeros(rows.num_users)
    for column in sums.T:
        squares += column * column
    norms = np.sqrt(squares)
    factors = CELLS / np.maximum(norms, CELLS)
    return np.trunc(sums * factors[:, None]).astype(np.int64), (norms <= CELLS).astype(np.int64)
