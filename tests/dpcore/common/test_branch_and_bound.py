"""Branch and bound against problems whose minimum is known."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpcore.common.branch_and_bound import ObjectiveParts, find_interval_within, minimise, move_to_kink


def make_split(falling, rising):
    def split(x: np.ndarray) -> ObjectiveParts:
        return ObjectiveParts(falling(x), falling(x), rising(x))

    return split


def test_a_smooth_valley() -> None:
    # 4/x + x has its minimum 4 at 2.
    solution = minimise(
        make_split(lambda x: 4.0 / x, lambda x: x), 0.01, 1e4, is_integer=False, tolerance=1e-8
    )
    assert solution.minimiser == pytest.approx(2.0, rel=1e-3)
    assert solution.value == pytest.approx(4.0, rel=1e-8)
    assert solution.value * (1 - 1e-8) <= solution.lower_bound <= 4.0
    assert not solution.stop_reason


@pytest.mark.parametrize("slope", [0.01, 0.5, 0.99])
@pytest.mark.parametrize("kink", [1.0 / 3.0, 7.0, 1234.5678])
def test_a_minimum_at_a_kink_is_reported_there_and_a_smooth_one_where_it_is(
    kink: float, slope: float
) -> None:
    # max(k - x, 0) + slope x: falls up to k, rises from there, least slope k at k.
    function = make_split(lambda x: np.maximum(kink - x, 0.0), lambda x: slope * x)
    solution = minimise(function, 1e-3, 1e5, is_integer=False, tolerance=1e-6)
    refined = move_to_kink(function, solution, lambda x: np.array([kink / 2.0, kink, kink * 2.0]), 1e-3, 1e5)
    assert refined.minimiser == kink
    assert refined.value == pytest.approx(slope * kink, rel=1e-15)
    assert refined.lower_bound == solution.lower_bound <= refined.value <= solution.value
    # k/x + x/k has its smooth minimum 2 at k; kinks beside it, though within the search's tolerance, are higher.
    function = make_split(lambda x: kink / x, lambda x: x / kink)
    solution = minimise(function, 1e-3, 1e5, is_integer=False, tolerance=1e-6)
    kinks = np.array([kink * (1 - 1e-5), kink * (1 + 1e-5)])
    refined = move_to_kink(function, solution, lambda x: kinks, 1e-3, 1e5)
    assert refined.minimiser == pytest.approx(kink, rel=1e-6)
    assert refined.value == pytest.approx(2.0, rel=1e-14)


def test_an_end_of_the_range_stays_the_minimum() -> None:
    function = make_split(lambda x: 0.0 * x, lambda x: x)
    solution = minimise(function, 1.0, 100.0, is_integer=False, tolerance=1e-6)
    assert move_to_kink(function, solution, lambda x: np.array([1.0 + 1e-15]), 1.0, 100.0) is solution


def test_two_valleys_and_whole_numbers_against_all_of_them() -> None:
    # Steps down at 10 and at 700, a steady rise: two valleys, the second lower.
    falling = lambda x: 5.0 * (x < 10) + 9.0 * (x < 700)  # noqa: E731
    rising = lambda x: x / 200.0  # noqa: E731
    everything = np.arange(1.0, 5001.0)
    best = float(np.min(falling(everything) + rising(everything)))
    solution = minimise(make_split(falling, rising), 1.0, 5000.0, is_integer=True, tolerance=1e-9)
    assert (solution.minimiser, solution.value) == (700.0, best)
    assert solution.lower_bound == pytest.approx(best, rel=1e-9)


def test_one_point_only() -> None:
    solution = minimise(make_split(lambda x: 1.0 / x, lambda x: x), 3.0, 3.0, is_integer=True, tolerance=1e-6)
    assert (solution.minimiser, solution.lower_bound) == (3.0, solution.value)


def test_a_stopped_search_still_bounds_from_below() -> None:
    shares: list[float] = []
    answers = iter([False, False, True])
    solution = minimise(
        make_split(lambda x: 4.0 / x, lambda x: x),
        1e-3,
        1e6,
        is_integer=False,
        tolerance=1e-9,
        progress=shares.append,
        should_stop=lambda: next(answers),
    )
    assert "request" in solution.stop_reason
    assert 0.0 < solution.lower_bound < 4.0 <= solution.value
    assert shares == sorted(shares)


def test_the_limit_on_points_holds_on_a_plateau() -> None:
    # 3 - x + x is constant: no interval is ever good enough at this tolerance.
    solution = minimise(
        make_split(lambda x: 3.0 - x, lambda x: x),
        1.0,
        2.0,
        is_integer=False,
        tolerance=1e-9,
        max_evaluations=2000,
    )
    assert solution.num_evaluations <= 2000
    assert "points" in solution.stop_reason
    assert 2.9 < solution.lower_bound <= 3.0


def test_infinite_where_nothing_is_promised() -> None:
    falling = lambda x: np.where(x < 3.0, np.inf, 1.0 / x)  # noqa: E731
    solution = minimise(make_split(falling, lambda x: x), 1.0, 100.0, is_integer=False, tolerance=1e-6)
    assert solution.minimiser == pytest.approx(3.0, rel=1e-5)
    assert math.isfinite(solution.lower_bound)
    # The bound does not know that the jump is approached from above: it proves the value at the jump.
    assert solution.lower_bound <= 3.0 + 1.0 / 3.0 <= solution.value * (1 + 1e-12)


steps = st.lists(st.floats(0.0, 5.0), min_size=1, max_size=60)


@given(steps, steps, st.floats(0.0, 2.0), st.data())
def test_a_stretch_within_a_limit_against_all_whole_numbers(
    falls: list[float], rises: list[float], room: float, data: st.DataObject
) -> None:
    # Any falling and any rising sequence, hence as many valleys as you like.
    size = min(len(falls), len(rises))
    falling, rising = np.sort(falls[:size])[::-1], np.sort(rises[:size])
    total = falling + rising
    best = data.draw(st.integers(1, size))
    limit = float(total[best - 1]) + room
    split = make_split(lambda x: falling[x.astype(int) - 1], lambda x: rising[x.astype(int) - 1])
    low, high = find_interval_within(split, float(best), 1.0, float(size), limit)
    fine = total <= limit
    expected_low = next((i + 2 for i in range(best - 2, -1, -1) if not fine[i]), 1)
    expected_high = next((i for i in range(best, size) if not fine[i]), size)
    assert (low, high) == (expected_low, expected_high)


def test_a_stretch_over_many_decades() -> None:
    # 4e12/x + x/1e12 is at most 4 * 1.25 where x / 2e12 lies in [1/2, 2].
    split = make_split(lambda x: 4e12 / x, lambda x: x / 1e12)
    low, high = find_interval_within(split, 2e12, 1.0, 1e15, 5.0 * (1 + 1e-13))
    assert low == pytest.approx(1e12, abs=1.0)
    assert high == pytest.approx(4e12, abs=1.0)
