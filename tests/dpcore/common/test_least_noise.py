"""The least noise that keeps a budget: from above, near, and with few looks."""

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import brentq

from dpcore.common.branch_and_bound import find_least_noise
from dpcore.common.checks import InvalidInput


@given(
    st.floats(-6.0, 3.0),
    st.floats(0.3, 3.0),
    st.floats(0.0, 2.0),
    st.sampled_from([0.1, 0.8, 1.0, 1.3, 20.0]),
)
@example(-6.0, 3.0, 2.0, 20.0)
def test_it_is_the_root_from_above_with_few_looks(log_epsilon, slope, bend, off):
    epsilon, noises = 10.0**log_epsilon, []

    def spend(noise):
        noises.append(noise)
        return noise**-slope + bend * noise ** (-2.0 * slope)

    exact = math.exp(brentq(lambda log: math.log(spend(math.exp(log)) / epsilon), -60.0, 60.0, xtol=1e-14))
    noises.clear()
    solution = find_least_noise(spend, epsilon, off * exact, 1e-9)
    assert solution in noises
    assert spend(solution) <= epsilon
    assert solution == pytest.approx(exact, rel=1e-8)
    assert len(noises) <= 25


def test_what_spends_nothing_beyond_some_noise_has_its_least():
    solution = find_least_noise(lambda noise: max(2.0 - noise, 0.0), 0.5, 40.0, 1e-9)
    assert solution == pytest.approx(1.5, rel=1e-8)
    assert solution >= 1.5


def test_where_no_noise_keeps_the_budget_that_is_said():
    with pytest.raises(InvalidInput, match="o noise was found"):
        find_least_noise(lambda noise: 2.0, 1.0, 1.0, 1e-3)
