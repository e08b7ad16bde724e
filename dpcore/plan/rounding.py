"""Shares as whole parts of 2^20, so that in binary they add up to no more than the whole."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dpcore.contributions import IntArray

PARTS = 2**20
"""Into how many parts the budget is cut."""
_BITS = 32


def in_parts(shares: npt.ArrayLike) -> IntArray:
    """Whole parts that add up to `PARTS`: the nearest to the shares, at least 1 where a share is above 0.

    Args:
        shares: At least 0, not all 0, shape (k,); scaled to sum to 1.
    """
    s = np.asarray(shares, dtype=np.float64)
    exact = s / s.sum() * PARTS
    parts = np.where(s > 0.0, np.maximum(np.floor(exact), 1.0), 0.0).astype(np.int64)
    missing = PARTS - int(parts.sum())
    # The largest remainders get what is left; where small shares were lifted to 1, the largest line pays.
    for i in np.argsort(parts - exact, kind="stable")[: max(missing, 0)]:
        parts[i] += 1 if s[i] > 0.0 else 0
    parts[int(np.argmax(parts))] += PARTS - int(parts.sum())
    return parts


def short(amount: float) -> float:
    """The amount rounded down to 32 binary digits: its whole parts of 2^20, and their sums, are then exact in float64.

    It loses less than one part in two billion.
    """
    mantissa, exponent = math.frexp(amount)
    return math.ldexp(math.floor(mantissa * 2.0**_BITS), exponent - _BITS)
