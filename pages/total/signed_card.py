"""The range for totals of both signs in words."""

from __future__ import annotations

import numpy as np

from dpcore.answer import Answer, Number
from dpcore.common import wording
from dpcore.common.markdown import plain
from dpcore.common.noise_error import Measure
from dpcore.dataset import Dataset
from dpcore.total.parameters import SIGNED_ASSUMPTIONS, TotalParameters, UserTotals
from dpcore.total.signed import ClippedSum
from pages.total import code
from pages.total.card import LEAKS
from pages.total.signed import SignedView


def card(view: SignedView, dataset: Dataset, held: UserTotals, parameters: TotalParameters) -> Answer:
    """Totals of both signs in words."""
    c, measure = view.clipped, parameters.measure
    exact = c.rmse if measure is Measure.RMSE else c.absolute_error
    low, high = wording.number(c.low, 4), wording.number(c.high, 4)
    share = abs(view.truth)
    of_sum = f"({wording.percent(exact / share)} of the sum)" if share else "(the sum is 0)"
    direction = "too low" if c.bias < 0.0 else "too high"
    cut = c.users_below + c.users_above
    facts = {
        "Who is affected": (
            f"{wording.counted(cut, 'user')} ({wording.percent(cut / view.num_users)}): "
            f"{wording.number(c.users_below)} below L, {wording.number(c.users_above)} above U. "
            "Cuts at the two ends may partly cancel."
        ),
        "Where the range comes from": (
            "you entered it."
            if view.entered
            else "[−T, T], with T such that noise plus the size of all cuts is least. T is rounded because the exact "
            "value equals one user's total. Where the curve is lower, positive and negative cuts partly cancel."
        ),
        "Why a range": plain(held.refusal, 600),
    }
    return Answer(
        headline=f"Clip each user's total of {plain(held.column)} to [{low}, {high}].",
        detail=f"{_negative(view, held)} {LEAKS if dataset.is_private and not view.entered else ''}".strip(),
        numbers=(
            Number(
                "Range",
                f"[{low}, {high}]",
                "",
                "A total outside counts as the nearer end.",
                copied=_copied(c),
            ),
            Number(
                "Expected error" if measure is not Measure.RMSE else "RMSE", wording.number(exact), of_sum
            ),
            Number("Largest change by one user", wording.number(c.sensitivity, 4), "max(|L|, |U|)"),
            Number("Bias", wording.number(abs(c.bias)), direction if c.bias else "none"),
            Number("Noise", wording.number(c.noise), "mean size"),
        ),
        facts=facts,
        assumptions=SIGNED_ASSUMPTIONS,
        disclosure=dataset.provenance,
        code=code.of_signed(view, dataset, held.column, parameters),
    )


def _negative(view: SignedView, held: UserTotals) -> str:
    assert held.signed is not None
    negative = int(np.sum(held.signed < 0.0))
    return (
        f"{wording.number(negative)} of {wording.counted(view.num_users, 'user')} "
        f"{wording.agreeing(negative, 'has', 'have')} a negative total: a bound is needed on either side."
    )


def _copied(of: ClippedSum) -> str:
    return f"{wording.digits(of.low)}, {wording.digits(of.high)}"
