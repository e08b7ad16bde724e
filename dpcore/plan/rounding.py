"""Shares as integer parts of 2^20, so that in binary they add up to no more than the whole budget."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dpcore.contributions import IntArray

NUM_PARTS = 2**20
"""The number of parts of the budget."""
_BITS = 32


def round_to_parts(shares: npt.ArrayLike) -> IntArray:
    """Round shares to integer parts that add up to `NUM_PARTS`, at least 1 for a share above 0.

    Args:
        shares: At least 0, not all 0, shape (k,); scaled to sum to 1.
    """
    share_array = np.asarray(shares, dtype=np.float64)
    exact = share_array / share_array.sum() * NUM_PARTS
    line_parts = np.where(share_array > 0.0, np.maximum(np.floor(exact), 1.0), 0.0).astype(np.int64)
    missing = NUM_PARTS - int(line_parts.sum())
    # The largest remainders get the missing parts; if small shares were lifted to 1, the largest line pays.
    for line_index in np.argsort(line_parts - exact, kind="stable")[: max(missing, 0)]:
        line_parts[line_index] += 1 if share_array[line_index] > 0.0 else 0
    line_parts[int(np.argmax(line_parts))] += NUM_PARTS - int(line_parts.sum())
    return line_parts


def round_amount_down(amount: float) -> float:
    """Round an amount down to 32 binary digits: its parts of 2^20, and their sums, are then exact in float64.

    It loses less than one part in two billion.
    """
    mantissa, exponent = math.frexp(amount)
    return math.ldexp(math.floor(mantissa * 2.0**_BITS), exponent - _BITS)
