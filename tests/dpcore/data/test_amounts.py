"""Grouped totals, against one user at a time."""

import math
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpcore.common.checks import InvalidInput
from dpcore.contributions import ContributionHistogram
from dpcore.data.totals_per_user import Amounts
from dpcore.dataset import Totals, Values

totals_lists = st.lists(
    st.one_of(st.integers(0, 20).map(float), st.floats(0.0, 1e6, allow_nan=False)), min_size=1, max_size=40
)


@given(totals_lists, st.floats(0.0, 2e6))
def test_sums_are_those_of_the_single_users(totals, bound):
    amounts = Amounts.from_totals(totals)
    assert amounts.num_users == len(totals)
    assert amounts.total == pytest.approx(math.fsum(totals), rel=1e-12)
    assert amounts.largest == max(totals)
    excess = math.fsum(max(x - bound, 0.0) for x in totals)
    assert float(amounts.sum_excess(bound)) == pytest.approx(excess, rel=1e-9, abs=1e-9 * max(totals))
    assert float(amounts.count_users_above(bound)) == sum(x > bound for x in totals)


@given(totals_lists)
def test_ranks_and_quantiles_are_order_statistics(totals):
    amounts = Amounts.from_totals(totals)
    descending = sorted(totals, reverse=True)
    for rank, x in enumerate(descending, start=1):
        assert amounts.find_total_at_rank(rank) == x
    assert amounts.find_total_at_rank(len(totals) + 1) == 0.0
    for share in (0.0, 0.25, 0.5, 0.95, 1.0):
        fits = [x for x in totals if sum(y <= x for y in totals) >= share * len(totals) * (1 - 1e-12)]
        assert amounts.find_quantile(share) == min(fits)


def test_quantile_does_not_stumble_over_rounding():
    # 0.07 * 100 is 7.000000000000001: the 7th of 1..100 is meant, not the 8th.
    assert Amounts.from_totals(np.arange(1.0, 101.0)).find_quantile(0.07) == 7.0


def test_every_way_in_leads_to_the_same():
    direct = Amounts([0.0, 1.5, 4.0], [2, 3, 1])
    rows = [1.5, 0.0, 4.0, 1.5, 0.0, 1.5]
    assert Amounts.from_totals(rows) == direct
    assert Amounts.from_totals(Totals(np.array(rows))) == direct
    assert Amounts.from_table([4.0, 1.5, 0.0, 1.5], [1, 1, 2, 2]) == direct
    assert hash(Amounts.from_totals(rows)) == hash(direct)
    assert Amounts.from_totals([-0.0, 1.0]) == Amounts.from_totals([0.0, 1.0])
    histogram = ContributionHistogram(sizes=[1, 7], users=[5, 2])
    assert Amounts.from_histogram(histogram) == Amounts([1.0, 7.0], [5, 2])


def test_refuses_negative_totals_and_says_what_to_do():
    with pytest.raises(InvalidInput) as caught:
        Amounts.from_totals([3.0, -2.0, -1.0])
    text = str(caught.value)
    assert "−2" in text
    assert "1 more" in text
    assert "[L, U]" in text


@pytest.mark.parametrize(
    ("values", "users", "message"),
    [
        ([1.0, 1.0], [1, 1], "distinct"),
        ([1.0, math.nan], [1, 1], "finite"),
        ([1.0], [0], "whole"),
        ([1.0], [1.5], "whole"),
        ([1.0, 2.0], [1], "same length"),
        ([], [], "empty"),
        (["a"], [1], "numbers"),
        ([1e308], [1000], "float64"),
    ],
)
def test_refuses_bad_tables(values, users, message):
    with pytest.raises(InvalidInput, match=message):
        Amounts(values, users)


def test_sums_per_user_of_values():
    values = Values(user_codes=[0, 0, 3], values=[1.0, -4.0, 2.5])
    assert values.sum_per_user(values.values).tolist() == [-3.0, 2.5]


@given(st.lists(st.tuples(st.floats(0.0, 1e6), st.integers(1, 9)), min_size=1, max_size=12))
def test_bins_of_totals_are_as_many_users_as_they_hold(bins):
    means, users = zip(*bins, strict=True)
    expanded = [mean for mean, count in bins for _ in range(count)]
    binned, single = (
        Amounts.from_totals(Totals(means, "x", users)),
        Amounts.from_totals(Totals(expanded, "x")),
    )
    assert binned.values.tolist() == single.values.tolist()
    assert binned.users.tolist() == single.users.tolist()


def test_nobody_else_reads_totals_without_their_users():
    """Where totals are binned, an entry is not a user. Readers are few: each is named here with its reason."""
    root = Path(__file__).resolve().parents[3]
    readers = {
        str(path.relative_to(root))
        for folder in ("dpcore", "pages")
        for path in (root / folder).rglob("*.py")
        if re.search(r"totals\.totals\b", path.read_text(encoding="utf-8"))
    }
    assert readers == {
        "dpcore/data/totals_per_user.py"  # draws nothing where there are some
    }


@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=8, unique=True),
    st.integers(0, 41),
    st.integers(1, 10**12),
)
def test_what_a_bound_cuts_keeps_its_digits(below, at, users):
    # Neighbouring floats at 2^52 and 1e12 users each: the sum of x and T times the users agree in every digit.
    values = sorted(2**52 + 40 - b for b in below)
    bound = 2**52 + 40 - at
    amounts = Amounts(values, [users] * len(values))
    histogram = ContributionHistogram([v - 2**52 + 10**12 - 40 for v in values], [users] * len(values))
    exact = Fraction(sum(max(v - bound, 0) for v in values) * users)
    for excess_found in (
        amounts.sum_excess(float(bound)),
        histogram.sum_excess(float(bound - 2**52 + 10**12 - 40)),
    ):
        assert abs(Fraction(float(excess_found)) - exact) <= exact * Fraction(1, 10**14)
    above = sum(v - 2**52 + 10**12 - 40 for v in values if v > bound) * users
    assert float(histogram.count_rows_above(float(bound - 2**52 + 10**12 - 40))) == pytest.approx(
        above, rel=1e-14
    )
