"""The range for totals of both signs in words. Pure: what was found in, sentences and numbers out."""

from __future__ import annotations

import math

import numpy as np

from dpcore.answer import Number
from dpcore.common import wording
from dpcore.common.noise_error import Measure
from dpcore.dataset import Dataset
from dpcore.total.answer.solution import SignedSolution
from dpcore.total.answer.words import ERROR_LABELS, LEAKS, MEASURE_NAMES
from dpcore.total.parameters import TotalParameters


def write_headline(solution: SignedSolution) -> str:
    """Say to which range to clip each user's total."""
    return f"Clip each user's total of {wording.plain(solution.user_totals.column)} to {_format_interval(solution)}."


def _format_interval(solution: SignedSolution) -> str:
    return f"[{wording.number(solution.clipped.low, 4)}, {wording.number(solution.clipped.high, 4)}]"


def list_numbers(solution: SignedSolution) -> tuple[Number, ...]:
    """Return the range, its error and the parts of the error."""
    c, unit, noise, size = solution.clipped, solution.unit.axis, solution.clipped.noise, "mean size"
    if solution.measure is Measure.RMSE:
        noise, size = (
            math.sqrt(max(c.rmse - abs(c.bias), 0.0)) * math.sqrt(c.rmse + abs(c.bias)),
            "root mean square",
        )
    absolute_sum = abs(float(solution.totals.sum()))
    of_sum = (
        f"({wording.percent(solution.error / absolute_sum)} of the sum)" if absolute_sum else "(the sum is 0)"
    )
    direction = "too low" if c.bias < 0.0 else "too high" if c.bias else "none"
    copied = f"{wording.digits(c.low)}, {wording.digits(c.high)}"
    return (
        Number(
            "Range",
            _format_interval(solution),
            "",
            "A total outside counts as the nearer end.",
            clipboard_text=copied,
        ),
        Number(
            ERROR_LABELS[solution.measure],
            wording.number(solution.error),
            of_sum,
            value=solution.error,
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


def list_facts(solution: SignedSolution, parameters: TotalParameters) -> dict[str, str]:
    """Explain the range in sentences, each under its heading."""
    c, users = solution.clipped, solution.totals.size
    cut = c.users_below + c.users_above
    own_fact = {}
    if parameters.own_bound and (error := solution.own_error(parameters)) is not None:
        bound = wording.number(parameters.own_bound, 4)
        own_fact[f"Your own bound, [−{bound}, {bound}]"] = (
            f"{MEASURE_NAMES[solution.measure]} {wording.number(error)}, {wording.change(error, solution.error)} "
            f"compared with {_format_interval(solution)}."
        )
    return own_fact | {
        "Who is affected": (
            f"{wording.counted(cut, 'user')} ({wording.percent(cut / users)}): "
            f"{wording.number(c.users_below)} below L, {wording.number(c.users_above)} above U. "
            "Cuts at the two ends may partly cancel."
        ),
        "Where the range comes from": (
            "you entered it."
            if solution.is_entered
            else "both ends have the size at which noise plus the size of all cuts is least. It is rounded, "
            "because the exact value equals one user's total. Where the curve is lower, positive and negative cuts "
            "partly cancel."
        ),
        "Why a range": wording.plain(solution.user_totals.refusal, 600),
    }


def write_detail(solution: SignedSolution, dataset: Dataset) -> str:
    """Say why there are two ends, and what a range read off private data gives away."""
    negative = int(np.sum(solution.totals < 0.0))
    sentence = (
        f"{wording.number(negative)} of {wording.counted(solution.totals.size, 'user')} "
        f"{wording.agreeing(negative, 'has', 'have')} a negative total: a bound is needed on either side."
    )
    return f"{sentence} {LEAKS}" if dataset.is_private and not solution.is_entered else sentence
