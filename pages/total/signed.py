"""What clipping totals of both signs to [L, U] costs, computed once for a question and a data set."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcore.contributions import FloatArray
from dpcore.data.totals_per_user import Amounts
from dpcore.total import TotalErrors
from dpcore.total.parameters import TotalParameters, UserTotals
from dpcore.total.signed import ClippedSum, clipped_sum, proposed_bound, symmetric_errors
from pages.total.answer import curve_bounds


@dataclass(frozen=True)
class SignedView:
    """Totals of both signs, clipped to [L, U].

    Attributes:
        clipped: What the range costs.
        entered: Whether the person entered the range; else it is [-T, T] read off the data.
        truth: The sum itself.
        largest: The largest |x|.
        absolute_sum: Sum of |x|.
        num_users: Number of users.
        bounds: T of the curves for [-T, T].
        errors: Over ``bounds``.
    """

    clipped: ClippedSum
    entered: bool
    truth: float
    largest: float
    absolute_sum: float
    num_users: int
    bounds: FloatArray
    errors: TotalErrors


def compute(held: UserTotals, parameters: TotalParameters) -> SignedView:
    """Evaluate the range entered, or the proposal."""
    assert held.signed is not None
    x = held.signed
    how = (parameters.epsilon, parameters.mechanism, parameters.delta)
    low, high = parameters.lower, parameters.upper
    entered = low is not None and high is not None
    if low is None or high is None:
        high = proposed_bound(x, *how)
        low = -high
    bounds = curve_bounds(Amounts.from_totals(np.abs(x)))
    return SignedView(
        clipped=clipped_sum(x, low, high, *how),
        entered=entered,
        truth=float(x.sum()),
        largest=float(np.abs(x).max()),
        absolute_sum=float(np.abs(x).sum()),
        num_users=x.size,
        bounds=bounds,
        errors=symmetric_errors(x, bounds, *how),
    )
