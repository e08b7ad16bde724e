"""Validators: every problem at once, the keyword as the name, no input that makes them fall over."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dpcore.common.checks import InputProblem, InvalidInput, Problems, require

NOT_NUMBERS = [None, "1", True, np.True_, 1j, [1.0], np.array([1.0]), object()]
NOT_FINITE = [math.nan, math.inf, -math.inf, np.float64("nan"), 10**400, -(10**5000)]


@pytest.mark.thinned
@pytest.mark.parametrize("value", NOT_NUMBERS + NOT_FINITE, ids=lambda v: type(v).__name__)
@pytest.mark.parametrize("check", ["finite", "positive", "non_negative", "between", "inside", "whole"])
def test_hostile_values_get_a_sentence(check: str, value: object) -> None:
    problems = Problems()
    limits = (0, 10) if check in {"between", "inside", "whole"} else ()
    assert getattr(problems, check)(*limits, epsilon=value) is False
    (problem,) = problems.entries
    assert problem.sentence.startswith("Epsilon must ")
    is_real = any(value is number for number in NOT_FINITE)
    assert is_real or " number" in problem.sentence
    assert len(problem.sentence) < 150


@pytest.mark.parametrize(
    ("check", "limits", "good", "bad"),
    [
        ("finite", (), [-1, 0, 1e300, np.float32(2), np.int8(3), Fraction(1, 3)], []),
        ("positive", (), [5e-324, 1, np.int64(7)], [0, -0.0, -1]),
        ("non_negative", (), [0, -0.0, 1], [-5e-324, -1]),
        ("between", (1, 2), [1, 1.5, 2], [0.999, 2.001]),
        ("inside", (0, 1), [5e-324, 0.5, math.nextafter(1.0, 0.0)], [0, 1, -0.0, 2]),
        ("whole", (1, 10**12), [1, 10**12, 3.0, np.float64(4)], [0, 10**12 + 1, 1.5]),
    ],
)
def test_limits(check: str, limits: tuple[float, ...], good: list[float], bad: list[float]) -> None:
    for value in good:
        assert getattr(Problems(), check)(*limits, x=value), value
    for value in bad:
        assert not getattr(Problems(), check)(*limits, x=value), value


def test_all_problems_are_raised_together_and_in_order() -> None:
    problems = Problems()
    problems.positive(epsilon=0, value_bound=-1)
    problems.whole(1, 5, cap=2.5)
    problems.add("the file is empty", location="row 1", remedy="Choose another file")
    with pytest.raises(InvalidInput) as raised:
        problems.raise_if_any()
    assert str(raised.value).split("\n") == [
        "Epsilon must be a finite number above 0; got 0.",
        "Value_bound must be a finite number above 0; got -1.",
        "Cap must be a whole number between 1 and 5; got 2.5.",
        "Row 1: the file is empty. Choose another file.",
    ]
    assert isinstance(raised.value, ValueError)
    assert len(raised.value.problems) == 4


def test_problems_can_be_handed_on() -> None:
    outer = Problems()
    outer.extend(InvalidInput(["a", InputProblem("b")]).problems)
    assert [p.message for p in outer.entries] == ["a", "b"]
    # Of a problem that is known already nothing is said twice.
    outer.extend(outer.entries)
    assert len(outer.entries) == 2


def test_a_block_refuses_at_its_end_with_all_that_it_found() -> None:
    passed = []

    def checks() -> None:
        with Problems() as problems:
            problems.positive(epsilon=0)
            with problems.collecting():
                passed.append("within")
                require.whole(1, 5, cap=2.5)
            passed.append("behind")
            problems.ascending(lower=2.0, upper=1)

    with pytest.raises(InvalidInput) as raised:
        checks()
    assert passed == ["within", "behind"]
    assert [p.message for p in raised.value.problems] == [
        "epsilon must be a finite number above 0; got 0",
        "cap must be a whole number between 1 and 5; got 2.5",
        "lower must lie below upper; got 2 and 1",
    ]

    def falls_over() -> None:
        with Problems() as problems:
            _ = 1 / problems.positive(epsilon=0)

    # An error of the block's own is not hidden behind the problems.
    with pytest.raises(ZeroDivisionError):
        falls_over()


@pytest.mark.parametrize(
    ("low", "high", "fine"),
    [(1, 2.0, True), (-3.0, -2.5, True), (1.0, 1, False), (math.nan, 1, False), (None, 1, False)],
)
def test_two_numbers_in_order(low: object, high: object, fine: bool) -> None:
    assert Problems().ascending(low=low, high=high) is fine


def test_a_check_alone_refuses_at_once_and_remembers_nothing() -> None:
    with pytest.raises(InvalidInput) as raised:
        require.positive(epsilon=0, delta=-1)
    assert len(raised.value.problems) == 2
    for refused in (
        lambda: require.ascending(low=2, high=1),
        lambda: require.inside(0.0, 1.0, share=1.0),
        lambda: require.of_kind(str, name=1),
        lambda: require.add("nothing fits"),
    ):
        with pytest.raises(InvalidInput):
            refused()
    assert not require.entries
    assert require.of_kind(str, name="one")
