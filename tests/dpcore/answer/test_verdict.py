"""The verdict on an answer: one rule for all questions, recomputed here from the errors themselves."""

import json
import math
import statistics
from dataclasses import replace

import numpy as np
import pytest

import dpcore as ss
from dpcore.answer.answer import RelativeError, Verdict
from dpcore.common.privacy import Disclosure
from dpcore.data import samples

SHOP = samples.load("shop-events")


@pytest.mark.parametrize(
    ("share", "verdict"),
    [
        (0.0, Verdict.USEFUL),
        (0.1, Verdict.USEFUL),
        (0.101, Verdict.ROUGH),
        (0.5, Verdict.ROUGH),
        (0.501, Verdict.NOT_USEFUL),
        (math.inf, Verdict.NOT_USEFUL),
        (math.nan, Verdict.NOT_USEFUL),
    ],
)
def test_the_limits_are_a_tenth_and_a_half(share: float, verdict: Verdict) -> None:
    assert RelativeError(share, "the count").verdict is verdict


def test_a_count_is_compared_with_the_rows_and_its_file_says_so() -> None:
    # All users have 3 rows: the best bound keeps all or so, and the error is nearly the noise, 3 / ε.
    reply = ss.count_bound([3] * 40, epsilon=0.1, disclosure="public")
    entries = json.loads(reply.to_json())["choice"]["answer"]
    assert entries["relative_error"] == reply.relative_error == pytest.approx(reply.error / 120)
    assert (entries["verdict"], entries["relative_to"]) == ("rough", "the count")
    assert "Verdict: rough, the error is " in str(reply)


def test_the_card_says_how_parts_make_up_the_error() -> None:
    # 200 users of one row and 4 of 60: some rows of the 4 are cut, and |noise - bias| is less than the sum of both.
    counts = [1] * 200 + [60] * 4
    count = ss.count_bound(counts, epsilon=0.2, disclosure="public").answer
    (bias, noise), error = (part.value for part in count.error_parts), count.numbers[1].value
    # The noise is discrete.
    assert error == pytest.approx(bias + noise * math.exp(-bias / noise), rel=1e-4)
    assert min(bias, noise) > 0.0
    assert count.error_split_texts == ("", tuple(p.text for p in count.error_parts), "(they partly cancel)")
    # Sampling and noise are independent: their squares add up. The shares are those of the variance.
    mean = ss.mean_bound(counts, epsilon=1, lower=0, upper=1).answer
    squares = [part.value**2 for part in mean.error_parts]
    assert sum(squares) == pytest.approx(mean.numbers[1].value ** 2)
    percentages = [float(text.rstrip("%\u00a0")) for text in mean.error_split_texts[1]]
    assert mean.error_split_texts[0] == "Squared error"
    assert percentages == pytest.approx([100.0 * s / sum(squares) for s in squares], rel=0.05)
    # An upper bound is a sum.
    learning = ss.learning_bound(counts, epsilon=1, disclosure="public").answer
    assert (learning.error_split_texts[0], learning.error_split_texts[2]) == ("Made of", "")
    assert sum(part.value for part in learning.error_parts) == pytest.approx(learning.numbers[1].value)


def test_half_of_the_groups_have_at_most_the_relative_error() -> None:
    answer = ss.group_bounds(SHOP, epsilon=1).answer
    solution = answer.solution
    multiplicities = solution.problem.pairs.multiplicities.astype(int)
    errors, sizes = (
        np.repeat(solution.group_errors, multiplicities),
        np.repeat(solution.problem.totals, multiplicities),
    )
    ratios = [error / size if size else math.inf for error, size in zip(errors, sizes, strict=True)]
    assert answer.relative_error.share == pytest.approx(statistics.median_low(ratios))
    assert answer.relative_error.remark.startswith(
        f"{sum(ratio >= 1.0 for ratio in ratios)} of {len(ratios)} groups "
    )


def test_no_value_of_private_data_is_read_for_a_verdict() -> None:
    values = replace(SHOP.values, values=SHOP.values.values * 0.5)
    private_data = [replace(SHOP, values=v, disclosure=Disclosure.PRIVATE) for v in (SHOP.values, values)]
    replies = [
        ss.mean_bound(data, epsilon=1, lower=0, upper=100, variance_source="worst") for data in private_data
    ]
    first, second = (reply.answer.relative_error for reply in replies)
    assert first == second
    assert first.base_phrase == "half the range"
    assert first.share == pytest.approx(replies[0].error / 50.0)
