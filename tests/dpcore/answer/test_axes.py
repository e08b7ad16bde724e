"""Where an axis that follows its curves begins and ends."""

import math

import numpy as np
import pytest

from dpcore.answer import Axis, Bars, Curve, Item, Level, Mark, Plot, Scale, Style
from dpcore.answer.limits import MAX_PART_RATIO, fit_limits
from dpcore.answer.plot import FIT, Limits
from dpcore.common.privacy import Disclosure


def test_ends_are_1_2_or_5_times_a_power_of_ten_and_next_to_the_curves():
    random = np.random.default_rng(5)
    for low, spread in zip(10 ** random.uniform(-9, 9, 300), 10 ** random.uniform(0, 6, 300), strict=True):
        first, last = fit_limits(np.array([np.nan, low, 0.0, low * spread, np.inf]))
        assert first <= low / 1.1 <= 2.5 * first * (1 + 1e-12)
        assert last / 2.5 * (1 - 1e-12) <= low * spread * 1.1 <= last
        for end in (first, last):
            digits = end / 10.0 ** math.floor(math.log10(end * (1 + 1e-12)))
            assert min(abs(digits - step) for step in (1.0, 2.0, 5.0)) < 1e-9


def test_parts_are_seen_unless_they_are_negligible():
    values = np.array([3.0, 40.0])
    assert fit_limits(values) == (2.0, 50.0)
    assert fit_limits(values, np.array([0.0, 0.3, 39.0, np.nan])) == (0.2, 50.0)
    assert fit_limits(values, np.array([3.0 / MAX_PART_RATIO * 0.99, 39.0])) == (2.0, 50.0)
    assert fit_limits(np.array([np.nan])) == (1.0, 10.0)


A, B = [1.0, np.nan, 3.0], [0.2, 0.4, 30.0]


def plot_with(scale: Scale, *items: Item, limits: Limits = FIT) -> Plot:
    x, y = Axis("x", limits=limits, scale=Scale.LINEAR), Axis("y", scale=scale)
    return Plot("k", "t", "a", x, y, items, Disclosure.PUBLIC)


def test_an_axis_fits_all_that_is_drawn_unless_it_is_fixed() -> None:
    curve = Curve("c", A, B, Style.CAP, low_ends=[0.1, 0.3, 29.0], high_ends=[0.3, 0.5, 90.0])
    fitted = plot_with(Scale.LOG, curve)
    # A tenth of the length on either side of 1 to 3; the next of 1, 2 and 5 beyond 0.1 / 1.1 and 90 * 1.1.
    assert fitted.x.limits == pytest.approx((0.8, 3.2))
    assert fitted.y.limits == pytest.approx((0.05, 100.0))
    with_marks = plot_with(
        Scale.LOG,
        curve,
        Mark("m", 13.0, 0.001, Style.ENTERED),
        Level("l", 500.0),
        Level("u", -7.0, is_vertical=True),
    )
    assert with_marks.x.limits == pytest.approx((-9.0, 15.0))
    assert with_marks.y.limits == pytest.approx((0.0005, 1000.0))
    assert plot_with(Scale.PERCENT, curve).y.limits == pytest.approx((0.0, 99.0))
    assert plot_with(Scale.LINEAR, Bars("b", A, B, Style.CAP)).y.limits == pytest.approx((-3.0, 33.0))
    fixed = plot_with(Scale.LOG, curve, limits=(2.0, 2.5))
    assert fixed.x.limits == (2.0, 2.5)
    assert fitted.with_limits(x_limits=(2.0, 2.5)).x.limits == (2.0, 2.5)
