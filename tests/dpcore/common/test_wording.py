"""Numbers in sentences."""

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpcore.common.wording import (
    describe_change,
    format_count,
    format_digits,
    format_entered,
    format_number,
    format_percent,
)


def no_break(text):
    """The same with the space that keeps a figure and its percent sign on one line."""
    return text.replace(" %", "\N{NO-BREAK SPACE}%")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (-0.0, "0"),
        (-1234, "−1,234"),
        (406_829, "406,829"),
        (17.449, "17.4"),
        (99.96, "100.0"),
        (0.000012345, "1.23e−05"),
        (1e300, "1.00e+300"),
        (math.nan, "not defined"),
        (-math.inf, "−∞"),
    ],
)
def test_number(value, text):
    assert format_number(value) == text


@given(st.floats(1e-300, 1e300), st.sampled_from([1.0, -1.0]))
def test_a_number_in_a_sentence_is_right_to_three_digits(size, sign):
    text = format_number(sign * size)
    assert float(text.replace(",", "").replace("−", "-")) == pytest.approx(sign * size, rel=5.001e-3)


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0123, "1.2 %"),
        (0.123456, "12 %"),
        (0.99999999, "99.99 %"),
        (1e-7, "1.0e−05 %"),
        (12.5, "1,250 %"),
        (-0.031, "−3.1 %"),
        (math.nan, "not defined"),
    ],
)
def test_percent(share, text):
    assert format_percent(share) == no_break(text)


@given(st.floats(0.0, 1.0, exclude_min=True, exclude_max=True))
def test_a_part_is_neither_nothing_nor_the_whole(share):
    assert format_percent(share) != no_break("0 %")
    if share < 1.0 - 1e-10:
        assert format_percent(share) not in (no_break("100 %"), no_break("100.00 %"))


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 rows"), (1, "1 row"), (2, "2 rows"), (1_234, "1,234 rows"), (1.5, "1.50 rows")]
)
def test_counted(count, text):
    assert format_count(count, "row") == text
    assert format_count(3, "entry", "entries") == "3 entries"


@pytest.mark.parametrize(
    ("value", "digits", "entered"),
    [
        (1e-5, "0.00001", "0.00001"),
        (1.5e-7, "1.5e-7", "1.5e−7"),
        (1234.5, "1234.5", "1,234.5"),
        (-12345.0, "-12345", "−12,345"),
        (1 / 3, "0.3333333333333333", "0.3333333333333333"),
        (0.0, "0", "0"),
        (math.nan, "nan", "not defined"),
    ],
)
def test_what_was_entered_keeps_its_digits(value, digits, entered):
    assert format_digits(value) == digits
    assert format_entered(value) == entered


@given(st.floats(1e-6, 1e3))
def test_an_entered_epsilon_is_never_rounded_down(epsilon):
    number_shown = float(format_digits(epsilon))
    assert abs(number_shown - epsilon) <= 2.0 * math.ulp(epsilon)
    assert float(format_entered(epsilon).replace(",", "")) == number_shown


@given(st.integers(1, 10**15 - 1), st.integers(0, 12))
def test_up_to_fifteen_digits_come_out_as_they_were_typed(number, decimals):
    typed = Decimal(number).scaleb(-decimals)
    assert Decimal(format_digits(float(typed))) == typed


@pytest.mark.parametrize(
    ("value", "reference", "text"),
    [
        (1.12, 1.0, "12 % more"),
        (1.00001, 1.0, "the same"),
        (2.4, 1.0, "2.4 times as much"),
        (1.999, 1.0, "99.90 % more"),
        (0.0, 1.0, "100 % less"),
        (1.0, 0.0, "not comparable"),
    ],
)
def test_change(value, reference, text):
    assert describe_change(value, reference) == no_break(text)
