"""The range for totals of both signs in words. Pure: what was found in, sentences and numbers out."""

from __future__ import annotations

import math

import numpy as np

from dpcore.answer import Number
from dpcore.common import wording
from dpcore.common.noise_error import Measure
from dpcore.dataset import Dataset
from dpcore.total.answer.found import SignedFound
from dpcore.total.answer.words import ERROR_LABELS, LEAKS, MEASURE_NAMES
from dpcore.total.parameters import TotalParameters


def headline(found: SignedFound) -> str:
    """Say what to do."""
    return f"Clip each user's total of {wording.plain(found.held.column)} to {_interval(found)}."


def _interval(found: SignedFound) -> str:
    return f"[{wording.number(found.clipped.low, 4)}, {wording.number(found.clipped.high, 4)}]"


def numbers(found: SignedFound) -> tuple[Number, ...]:
    """Return the range with its error, and the parts of that."""
    c, unit, noise, size = found.clipped, found.unit.axis, found.clipped.noise, "mean size"
    if found.measure is Measure.RMSE:
        noise, size = (
            math.sqrt(max(c.rmse - abs(c.bias), 0.0)) * math.sqrt(c.rmse + abs(c.bias)),
            "root mean square",
        )
    whole = abs(float(found.totals.sum()))
    of_sum = f"({wording.percent(found.error / whole)} of the sum)" if whole else "(the sum is 0)"
    direction = "too low" if c.bias < 0.0 else "too high" if c.bias else "none"
    copied = f"{wording.digits(c.low)}, {wording.digits(c.high)}"
    return (
        Number(
            "Range", _interval(found), "", "A total outside counts as the nearer end.", clipboard_text=copied
        ),
        Number(
            ERROR_LABELS[found.measure],
            wording.number(found.error),
            of_sum,
            value=found.error,
            unit=unit,
            key="error",
        ),
        Number(
            "Largest change by one user",
            wording.number(c.sensitivity, 4),
            "max(|L|, |U|)",
            value=c.sensitivity,
            unit=unit,
        ),
        Number("Bias", wording.number(abs(c.bias)), direction, value=c.bias, unit=unit),
        Number("Noise", wording.number(noise), size, value=noise, unit=unit),
    )


def facts(found: SignedFound, parameters: TotalParameters) -> dict[str, str]:
    """Say what stands behind the range, a sentence each."""
    c, users = found.clipped, found.totals.size
    cut = c.users_below + c.users_above
    own = {}
    if parameters.own_bound and (error := found.own_error(parameters)) is not None:
        bound = wording.number(parameters.own_bound, 4)
        own[f"Your own bound, [−{bound}, {bound}]"] = (
            f"{MEASURE_NAMES[found.measure]} {wording.number(error)}, {wording.change(error, found.error)} compared "
            f"with {_interval(found)}."
        )
    return own | {
        "Who is affected": (
            f"{wording.counted(cut, 'user')} ({wording.percent(cut / users)}): "
            f"{wording.number(c.users_below)} below L, {wording.number(c.users_above)} above U. "
            "Cuts at the two ends may partly cancel."
        ),
        "Where the range comes from": (
            "you entered it."
            if found.entered
            else "both ends have the size at which noise plus the size of all cuts is least. It is rounded, "
            "because the exact value equals one user's total. Where the curve is lower, positive and negative cuts "
            "partly cancel."
        ),
        "Why a range": wording.plain(found.held.refusal, 600),
    }


def detail(found: SignedFound, dataset: Dataset) -> str:
    """Why there are two ends, and what a range read off private data gives away."""
    negative = int(np.sum(found.totals < 0.0))
    said = (
        f"{wording.number(negative)} of {wording.counted(found.totals.size, 'user')} "
        f"{wording.agreeing(negative, 'has', 'have')} a negative total: a bound is needed on either side."
    )
    return f"{said} {LEAKS}" if dataset.is_private and not found.entered else said
