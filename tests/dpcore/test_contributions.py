"""`ContributionHistogram` against loops over users, and what it refuses."""

import math
import re
from collections import Counter
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpcore.common.checks import InvalidInput
from dpcore.contributions import ContributionHistogram, build_log_grid

COUNTS = st.lists(st.integers(1, 40), min_size=1, max_size=30)
BOUNDS = st.lists(st.floats(0, 60), min_size=1, max_size=6)


def problems_of(**columns: object) -> list[str]:
    with pytest.raises(InvalidInput) as raised:
        ContributionHistogram(**columns)
    return [p.message for p in raised.value.problems]


@given(COUNTS)
def test_grouping(counts: list[int]) -> None:
    h = ContributionHistogram.from_counts(counts)
    expected = Counter(counts)
    assert h.sizes.tolist() == sorted(expected)
    assert h.users.tolist() == [expected[s] for s in sorted(expected)]
    assert (h.num_users, h.num_rows) == (len(counts), sum(counts))
    assert (h.min_size, h.max_size) == (min(counts), max(counts))


@given(COUNTS, BOUNDS)
def test_sums_on_either_side_of_a_bound(counts: list[int], bounds: list[float]) -> None:
    h = ContributionHistogram.from_counts(counts)
    kept_rows, pieces = h.count_kept_rows(bounds), h.compute_sums_at(bounds)
    for k, b in enumerate(bounds):
        assert kept_rows[k] == pytest.approx(math.fsum(min(b, c) for c in counts), rel=1e-14)
        assert pieces.rows_at_or_below[k] == sum(c for c in counts if c <= b)
        assert pieces.users_above[k] == sum(c > b for c in counts) == h.count_users_above(b)
        assert pieces.inverse_above[k] == pytest.approx(math.fsum(1 / c for c in counts if c > b), rel=1e-14)


@given(COUNTS)
def test_pieces_at_sizes_are_pieces_of_sizes(counts: list[int]) -> None:
    h = ContributionHistogram.from_counts(counts)
    for item, piece in zip(h.compute_sums_at_sizes(), h.compute_sums_at(h.sizes), strict=True):
        np.testing.assert_array_equal(item, piece)


def test_kept_rows_keeps_the_shape() -> None:
    h = ContributionHistogram(sizes=[1, 3, 10], users=[200, 20, 1])
    # h = 2: 200 + 21 * 2; h = 5: 200 + 60 + 5; h = 10 and above: all 270; h = 0: none.
    np.testing.assert_array_equal(h.count_kept_rows([[0, 2], [5, 10]]), [[0, 242], [265, 270]])
    assert h.count_kept_rows(1e9) == 270
    assert np.ndim(h.count_kept_rows(3)) == 0


@given(COUNTS)
def test_summary(counts: list[int]) -> None:
    histogram = ContributionHistogram.from_counts(counts)
    m, n, s = len(counts), sum(counts), histogram.summarise()
    assert (histogram.num_users, histogram.num_rows, histogram.max_size) == (m, n, max(counts))
    assert s.median == np.median(counts)
    assert s.mean == pytest.approx(n / m)
    # The definition: mean absolute difference of all pairs over twice the mean.
    gini = sum(abs(a - b) for a in counts for b in counts) / (2 * m * n)
    assert s.gini == pytest.approx(gini, abs=1e-12)
    heaviest = sorted(counts, reverse=True)[: math.ceil(m / 100)]
    assert s.top_percent_share == pytest.approx(sum(heaviest) / n)


@given(COUNTS, st.integers(0, 30))
def test_share_held_by_heaviest(counts: list[int], heads: int) -> None:
    heads = min(heads, len(counts))
    h = ContributionHistogram.from_counts(counts)
    share = (heads - 0.5) / len(counts) if heads else 0.0  # taken as whole users, rounded up
    expected = sum(sorted(counts, reverse=True)[:heads]) / sum(counts)
    assert h.compute_heaviest_share(share) == pytest.approx(expected)


def test_whole_percents_of_whole_hundreds_are_whole_users() -> None:
    # In float64 0.07 * 100 lies above 7; the heaviest 7 % of 100 users are 7 all the same.
    even = ContributionHistogram.from_counts(range(1, 101))
    for percent in range(101):
        expected = sum(range(101 - percent, 101)) / 5050
        assert even.compute_heaviest_share(percent / 100) == pytest.approx(expected, rel=1e-12)


@given(COUNTS, st.sampled_from([0.0, 0.125, 0.25, 0.5, 0.75, 1.0]))
def test_quantile(counts: list[int], share: float) -> None:
    h = ContributionHistogram.from_counts(counts)
    expected = min(s for s in counts if sum(c <= s for c in counts) >= share * len(counts))
    assert h.find_quantile(share) == expected


@given(COUNTS, st.randoms())
def test_equal_content_is_equal_however_it_came(counts: list[int], random: object) -> None:
    h = ContributionHistogram.from_counts(counts)
    shuffled = list(counts)
    random.shuffle(shuffled)
    others = [
        ContributionHistogram.from_counts(np.array(shuffled, dtype=np.int16)),
        ContributionHistogram.from_counts([float(c) for c in counts]),
        ContributionHistogram.from_counts([Decimal(c) for c in counts]),
        ContributionHistogram.from_table(shuffled, np.ones(len(counts))),  # equal sizes are added up
        ContributionHistogram(sizes=h.sizes.tolist(), users=h.users.astype(np.uint64)),
    ]
    for item in others:
        assert item == h
        assert hash(item) == hash(h)
        assert item.digest == h.digest


def test_different_content_differs() -> None:
    base = ContributionHistogram(sizes=[1, 2], users=[3, 4])
    others = [([1, 3], [3, 4]), ([1, 2], [4, 3]), ([1, 2, 3], [3, 4, 1]), ([1], [3])]
    digests = {base.digest} | {ContributionHistogram(sizes=s, users=u).digest for s, u in others}
    assert len(digests) == 5
    assert base != "text"
    # One heavy user among many is exactly what a sampled hash overlooks.
    many = np.arange(1, 200_001)
    changed = many.copy()
    changed[-1] += 1
    assert ContributionHistogram(many, many) != ContributionHistogram(changed, many)


def test_immutable_and_apart_from_its_input() -> None:
    sizes, users = np.array([1, 2]), np.array([3, 4])
    h = ContributionHistogram(sizes=sizes, users=users)
    digest_before = h.digest
    sizes[0], users[0] = 2, 9
    assert (h.sizes.tolist(), h.users.tolist()) == ([1, 2], [3, 4])
    assert ContributionHistogram(h.sizes, h.users).digest == digest_before
    for column in (h.sizes, h.users):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 7
    with pytest.raises(AttributeError):
        h.sizes = sizes


@pytest.mark.long
def test_largest_numbers_do_not_overflow() -> None:
    big = 10**12
    h = ContributionHistogram(sizes=[1, big], users=[big, big])
    # 1e24 + 1e12 rows: five orders above int64.
    assert h.num_users == 2 * big
    assert h.num_rows == pytest.approx(float(big) ** 2 + big, rel=1e-15)
    assert h.count_kept_rows(big / 2) == pytest.approx(big + big * big / 2, rel=1e-15)
    s = h.summarise()
    assert s.median == (1 + big) / 2
    assert s.gini == pytest.approx(0.5, rel=1e-11)
    assert s.top_percent_share == pytest.approx(0.02, rel=1e-9)
    many = ContributionHistogram(sizes=np.arange(1, 10**7 + 1), users=np.full(10**7, big))
    assert many.num_users == pytest.approx(1e19, rel=1e-12)  # above int64


def test_all_problems_at_once() -> None:
    found = problems_of(sizes=[1, 3, 3, 2], users=[0, -1, 2.5])
    assert len(found) == 3
    assert "users must be at least 1" in found[0]
    assert "entry 1 is 0.0 (and 1 more)" in found[0]
    assert "users must be whole; entry 3 is 2.5" in found[1]
    assert "sizes must be distinct and ascending; entry 3 " in found[2]
    found = problems_of(sizes=[2, 1], users=[1])
    assert len(found) == 2
    assert "ascending; entry 2 " in found[0]
    assert "same length; got 2 and 1" in found[1]


@pytest.mark.parametrize(
    ("bad", "word"),
    [
        ([], "empty"),
        ([0], "at least 1"),
        ([-5], "at least 1"),
        ([1.5], "whole"),
        ([math.nan], "finite"),
        ([math.inf], "finite"),
        ([None], "numbers; entry 1 is None"),
        ([1, "x"], "numbers; entry 2 is 'x'"),
        ([1, 2, math.nan], "finite number; entry 3 is nan"),
        ([1, 10**30, 10**31], f"at most 1,000,000,000,000; entry 2 is {10**30} (and 1 more)"),
        ([1e300], "at most 1,000,000,000,000"),
        ([10**12 + 1], "at most"),
        ([10**30], "at most"),
        ([10**400], "at most"),
        (np.array([2**64 - 1], dtype=np.uint64), "at most"),
        ([[1, 2]], "one-dimensional"),
        (7, "one-dimensional"),
        ([[1], [1, 2]], "numbers; entry 1 is [1] (and 1 more)"),
        (["1", "2"], "numbers"),
        ("12", "numbers"),
        ([True], "numbers"),
        ([1 + 2j], "numbers"),
        (np.array(["2020-01-01"], dtype="datetime64[D]"), "numbers"),
        ({1: 2}, "numbers"),
        pytest.param([object()], "numbers", id="object"),
    ],
    ids=repr,
)
def test_hostile_columns(bad: object, word: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(word)):
        ContributionHistogram.from_counts(bad)
    # Both columns of a histogram are looked at, and so are both of a table.
    found = problems_of(sizes=bad, users=bad)
    assert [f.split()[0] for f in found][:1] == ["sizes"]
    assert any(f.startswith("users") and word in f for f in found)
    with pytest.raises(InvalidInput, match=re.escape(word)):
        ContributionHistogram.from_table(bad, [1])


def test_half_precision_is_read() -> None:
    assert ContributionHistogram.from_counts(np.array([1, 2], dtype=np.float16)).num_rows == 3


def test_users_of_one_size_that_add_up_too_far() -> None:
    with pytest.raises(InvalidInput, match="at most"):
        ContributionHistogram.from_table([5, 5], [10**12, 1])
    with pytest.raises(InvalidInput, match="same length"):
        ContributionHistogram.from_table([5, 5], [1])


def test_log_spaced_has_its_ends_and_extras() -> None:
    grid = build_log_grid(1, 1000, 4, extra_points=[37.5, 5000, 0.5])
    np.testing.assert_allclose(grid, [1, 10, 37.5, 100, 1000])
    assert (grid[0], grid[-1]) == (1, 1000)
    assert build_log_grid(3, 3, 50).tolist() == [3]


def test_the_heaviest_are_told_by_their_sizes():
    assert ContributionHistogram(sizes=[1, 4, 9], users=[5, 2, 1]).list_heaviest_sizes(2).tolist() == [9, 4]
    assert ContributionHistogram([3], [2]).list_heaviest_sizes(10).tolist() == [3, 3]
    assert ContributionHistogram([2, 3], [1, 10**12]).list_heaviest_sizes(3).tolist() == [3, 3, 3]
