"""Totals of both signs on the page Sum and count: what clipping them to [L, U] costs, and that in words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcore.common import wording
from dpcore.common.noise_error import Measure
from dpcore.contributions import FloatArray
from dpcore.data.totals_per_user import Amounts
from dpcore.dataset import Dataset
from dpcore.total import TotalErrors
from dpcore.total.parameters import SIGNED_ASSUMPTIONS, TotalParameters, UserTotals
from dpcore.total.signed import ClippedSum, clipped_sum, proposed_bound, symmetric_errors
from pages.shared import code_choices
from pages.shared.cards import AnswerCard, Figure
from pages.shared.text import plain
from pages.total.answer import Unit, curve_bounds
from pages.total.card import LEAKS, MEASURE_NAMES


@dataclass(frozen=True)
class SignedView:
    """Totals of both signs, clipped to [L, U].

    Attributes:
        clipped: What the range costs.
        entered: Whether the person entered the range; else it is [-T, T] read off the data.
        truth: The sum itself.
        largest: The largest |x|.
        reach: Sum of |x|.
        num_users: Number of users.
        bounds: T of the curves for [-T, T].
        errors: Over ``bounds``.
    """

    clipped: ClippedSum
    entered: bool
    truth: float
    largest: float
    reach: float
    num_users: int
    bounds: FloatArray
    errors: TotalErrors


def compute(held: UserTotals, parameters: TotalParameters) -> SignedView:
    """Evaluate the range entered, or the proposal."""
    assert held.signed is not None
    x = held.signed
    how = (parameters.epsilon, parameters.noise, parameters.delta)
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
        reach=float(np.abs(x).sum()),
        num_users=x.size,
        bounds=bounds,
        errors=symmetric_errors(x, bounds, *how),
    )


def card(view: SignedView, dataset: Dataset, unit: Unit, parameters: TotalParameters) -> AnswerCard:
    """Totals of both signs in words."""
    c, measure = view.clipped, parameters.measure
    exact = c.rmse if measure is Measure.RMSE else c.absolute_error
    name = MEASURE_NAMES[Measure.RMSE if measure is Measure.RMSE else Measure.ABSOLUTE]
    low, high = wording.number(c.low, 4), wording.number(c.high, 4)
    share = abs(view.truth)
    of_sum = f"{wording.percent(exact / share)} of the sum" if share else "the sum is 0"
    start = f"Clip each user's total of {plain(unit.column)} to [{low}, {high}]"
    direction = "too low" if c.bias < 0.0 else "too high"
    cut = c.users_below + c.users_above
    facts = [
        (
            "Who is affected",
            f"{wording.counted(cut, 'user')} ({wording.percent(cut / view.num_users)}): "
            f"{wording.number(c.users_below)} below L, {wording.number(c.users_above)} above U. "
            "What is cut at one end may make up for the other.",
        ),
        (
            "Where the range comes from",
            "you entered it."
            if view.entered
            else "[−T, T], with T such that noise plus all that is cut away (as if nothing cancelled) is least, "
            "then rounded to few digits: unrounded, T is one user's very total. "
            "Where the curve is lower, what is cut at the two ends cancels on these very data.",
        ),
    ]
    return AnswerCard(
        headline=f"{start}: {name} {wording.number(exact)}.",
        detail=LEAKS if dataset.is_private and not view.entered else "",
        figures=(
            Figure("Largest change by one user", wording.number(c.sensitivity, 4), "max(|L|, |U|)"),
            Figure(
                "Expected error" if measure is not Measure.RMSE else "RMSE", wording.number(exact), of_sum
            ),
            Figure("Bias", wording.number(abs(c.bias)), direction if c.bias else "none"),
            Figure("Noise", wording.number(c.noise), "mean size"),
        ),
        facts=tuple(facts),
        assumptions=SIGNED_ASSUMPTIONS,
        proofs=(),
        sensitivity=dataset.provenance,
        code=code_choices.of_signed(view, dataset, unit.column, parameters),
    )
