"""How many users would have to come or go until a cap is the best one for a mean, in closed form.

A user at or below a cap h adds s / h to a, one above it adds 1 to q, and h is best where k a = q (a + q) with
k = 2 h / A (`dpcore.private_choice.scores`). The distance to that curve, by adding and removing users, is the larger
of `too_high` and `too_low`; everything is in steps of `dpcore.private_choice.fixed_point`.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dpcore.contributions import FloatArray, IntArray
from dpcore.private_choice.fixed_point import RESOLUTION


def on_curve(a: npt.ArrayLike, k: float) -> FloatArray:
    """Get q* with k a = q* (a + q*): (sqrt(a^2 + 4 k a) - a) / 2 without its cancellation. Rising and concave in a."""
    a = np.asarray(a, dtype=np.float64)
    root = np.sqrt(a) * np.sqrt(a + 4.0 * k)
    return np.asarray(2.0 * k * np.divide(a, a + root, out=np.zeros_like(a), where=a > 0.0))


def too_high(
    a: npt.NDArray[np.generic], users: npt.NDArray[np.generic], shares: IntArray, q: float, k: float
) -> float:
    """Return the steps until q >= q*(a), by adding users above the cap or removing users below it, the largest first.

    Args:
        a: What users of the first j sizes add to a, shape (j + 1,), ascending from 0, in steps.
        users: Those users, same shape, in steps.
        shares: What each user of a size adds to a, shape (j,), in steps.
        q: Users above the cap, in steps.
        k: 2 h / A, in steps.

    Between sizes the sum of both is concave in the number removed, so the least is where all users of some sizes
    are gone, or where removing alone is just enough.
    """
    remaining, gone = a.astype(np.float64), users[-1] - users.astype(np.float64)
    lacking = np.maximum(on_curve(remaining, k) - q, 0.0)
    # The last entry has everybody there: nobody need come or go.
    if lacking[-1] == 0.0:
        return 0.0
    best = float(np.min(gone + lacking))
    # q*(a) = q there. What remains is at most its largest share times its users, and q and users are exact (39 bits
    # times 2^20), so that rounding stays below 2^9 steps even after the division by a tiny share.
    enough = q / (k - q) * q if q < k else math.inf
    j = int(np.searchsorted(remaining, enough, side="right"))
    if 0 < j < remaining.size:
        best = min(best, float(gone[j] + (remaining[j] - enough) / float(shares[j - 1]) * RESOLUTION))
    return best


def too_low(a: float, q: float, k: float) -> float:
    """Return the steps until q <= q*(a), by removing users above the cap or adding users at it.

    a' >= a costs (a' - a) + (q - q*(a')), convex, least where q* has slope 1: at a' = k (sqrt(4.5) - 2), where
    q* = (k - a') / 3. Adding alone is enough at a' = q^2 / (k - q).
    """
    excess = q - float(on_curve(a, k))
    turn = k * (math.sqrt(4.5) - 2.0)
    if excess <= 0.0 or a >= turn:
        return max(excess, 0.0)
    height = (k - turn) / 3.0
    if q >= height:
        return (turn - a) + (q - height)
    # Here q < (k - turn) / 3 < k, so that the quotient is positive.
    return max(q / (k - q) * q - a, 0.0)
