"""The noise of both ways of sampling, against dp-accounting, closed forms and integrals over the plane."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from dpcore.common.privacy import compute_gaussian_sigma
from dpcore.examples_per_user import noise
from dpcore.examples_per_user.noise import DensityRatio, compute_divergences, compute_log_weights


def epsilon_of_dp_accounting(
    sigma: float, examples: int, rate: float, steps: int, delta: float, grid: float
) -> float:
    """Its own mixture of Gaussians, with all G + 1 terms as SciPy has them."""
    from dp_accounting.pld import privacy_loss_distribution as losses

    k = np.arange(examples + 1)
    with np.errstate(all="ignore"):
        one = losses.from_mixture_gaussian_mechanism(
            sigma, k.tolist(), binom.pmf(k, examples, rate).tolist(), value_discretization_interval=grid
        )
        return float(one.self_compose(steps).get_epsilon_for_delta(delta))


@pytest.mark.long
@pytest.mark.parametrize(
    ("examples", "rate", "steps", "epsilon", "expected"),
    [(1, 0.02, 100, 4.0, 0.740), (4, 0.3, 50, 1.0, 36.07)],
)
def test_the_least_noise_is_that_of_dp_accounting_at_a_fine_grid(
    examples: int, rate: float, steps: int, epsilon: float, expected: float
) -> None:
    multiplier = noise.find_multiplier(examples, rate, epsilon, 1e-6, steps)
    assert multiplier == pytest.approx(expected, rel=5e-3)
    epsilon_spent = epsilon_of_dp_accounting(multiplier, examples, rate, steps, 1e-6, 2e-3)
    assert 0.98 * epsilon <= epsilon_spent <= epsilon * (1.0 + 1e-9)
    assert multiplier <= noise.bound_multiplier(examples, rate, epsilon, 1e-6, steps) <= 1.15 * multiplier


@pytest.mark.long
@pytest.mark.parametrize(("examples", "expected"), [(4, 1.361), (16, 4.089)])
def test_noise_for_more_examples_of_a_user(examples: int, expected: float) -> None:
    # ε falls at least as fast as noise grows: what is right to 0.5 % in ε is so in the noise.
    epsilon_spent = noise.bound_epsilon(expected, examples, 0.02, 100, 1e-6, 3e-3)
    assert epsilon_spent == pytest.approx(4.0, rel=5e-3)
    assert expected <= noise.bound_multiplier(examples, 0.02, 4.0, 1e-6, 100) <= 1.15 * expected


@pytest.mark.long
@settings(max_examples=5, deadline=None)
@given(
    st.integers(1, 8),
    st.floats(0.05, 0.95),
    st.floats(0.2, 3.0),
    st.integers(1, 200),
    st.sampled_from([1e-9, 1e-5]),
)
def test_the_quick_bound_never_spends_more_than_it_says(
    examples: int, rate: float, epsilon: float, steps: int, delta: float
) -> None:
    multiplier = noise.bound_multiplier(examples, rate, epsilon, delta, steps)
    assert (
        noise.bound_epsilon(multiplier, examples, rate, steps, delta, noise.choose_grid(epsilon, steps))
        <= epsilon
    )


@pytest.mark.parametrize(
    ("examples", "rate", "sigma"),
    [
        (1, 0.02, 0.8),
        (1, 0.02, 0.543),
        (16, 0.2, 0.613),
        (4, 0.3, 38.0),
        (16, 0.02, 4.1),
        (128, 0.003, 17.7),
        (3, 0.9, 0.4),
        (500, 0.01, 60.0),
    ],
)
def test_divergences_of_whole_orders_are_sums(examples: int, rate: float, sigma: float) -> None:
    k = np.arange(examples + 1.0)
    weights = binom.logpmf(k, examples, rate)
    # E_Q[w²] = Σ b_j b_k e^(jk/σ²): the integral of two shifted normals over the one at 0.
    second_order = np.logaddexp.reduce((weights[:, None] + weights + np.outer(k, k) / sigma**2).ravel())
    divergence = compute_divergences(
        DensityRatio(compute_log_weights(examples, rate), sigma), np.array([2.0])
    )[0]
    assert divergence >= second_order * (1.0 - 1e-9)  # the larger of both directions
    if examples <= 16:
        pairs = k[:, None, None] * k[:, None] + k[:, None, None] * k + k[:, None] * k
        logs = weights[:, None, None] + weights[:, None] + weights + pairs / sigma**2
        third_order = np.logaddexp.reduce(logs.ravel()) / 2.0
        assert compute_divergences(DensityRatio(compute_log_weights(examples, rate), sigma), np.array([3.0]))[
            0
        ] == pytest.approx(third_order, rel=1e-8)


def test_the_other_direction_against_an_integral_by_hand() -> None:
    # Q ‖ P is never the larger one for these pairs alone; it is asked for by its own power.
    examples, rate, sigma, order = 4, 0.6, 0.9, 4.0
    x = np.linspace(-40.0, 40.0, 400_001)
    k = np.arange(examples + 1)
    terms = binom.logpmf(k, examples, rate) + (2.0 * np.outer(x, k) - k**2.0) / (2.0 * sigma**2)
    log = np.logaddexp.reduce(terms, axis=1)
    density = np.exp((1.0 - order) * log - x**2 / (2.0 * sigma**2)) / (sigma * math.sqrt(2.0 * math.pi))
    by_hand = math.log(float(density.sum()) * (x[1] - x[0]))
    ratio = DensityRatio(compute_log_weights(examples, rate), sigma)
    log_integral = noise._integrate_powers(ratio, ratio.find_lower_end(order), 10.0, np.array([1.0 - order]))[
        0
    ]
    assert log_integral == pytest.approx(by_hand, rel=1e-9)


def test_examples_in_other_directions_are_no_worse_than_alike() -> None:
    """Two examples at an angle, shorter ones too: δ at ε of both directions, by an integral over the plane."""
    side = np.linspace(-9.0, 12.0, 421)
    x, y = np.meshgrid(side, side)
    area = (side[1] - side[0]) ** 2

    def deltas(
        first: tuple[float, float], second: tuple[float, float], sigma: float, rate: float
    ) -> list[float]:
        def normal(centre: tuple[float, float]) -> np.ndarray:
            squared = (x - centre[0]) ** 2 + (y - centre[1]) ** 2
            return np.exp(-squared / (2.0 * sigma**2)) / (2.0 * math.pi * sigma**2)

        sum_of_both = (first[0] + second[0], first[1] + second[1])
        p = (1.0 - rate) ** 2 * normal((0.0, 0.0)) + rate**2 * normal(sum_of_both)
        p += rate * (1.0 - rate) * (normal(first) + normal(second))
        q = normal((0.0, 0.0))
        return [
            float(np.maximum(one - math.exp(epsilon) * other, 0.0).sum()) * area
            for epsilon in (0.1, 0.7)
            for one, other in ((p, q), (q, p))
        ]

    for sigma, rate in ((0.7, 0.2), (1.5, 0.7)):
        worst = deltas((1.0, 0.0), (1.0, 0.0), sigma, rate)
        for angle in (0.5, 1.6, math.pi):
            for length in (0.5, 1.0):
                second = (length * math.cos(angle), length * math.sin(angle))
                deltas_apart = deltas((1.0, 0.0), second, sigma, rate)
                assert all(one <= item + 1e-9 for one, item in zip(deltas_apart, worst, strict=True))


def test_a_tail_that_is_moved_to_g_would_cost_many_times_the_budget() -> None:
    weights, sigma = compute_log_weights(128, 0.003), 17.73
    orders = noise.choose_orders(1.0, 1e-6)
    moved_weights = np.where(weights > math.log(1e-16), weights, -1e6)
    moved_weights[-1] = math.log(1e-16)
    epsilon_of_all = noise.compute_epsilon(weights, sigma, 100, 1e-6, orders)
    assert epsilon_of_all <= 1.01
    assert noise.compute_epsilon(moved_weights, sigma, 100, 1e-6, orders) > 2.0 * epsilon_of_all


def test_orders_reach_as_far_as_a_small_epsilon_needs() -> None:
    weights, orders = compute_log_weights(4, 0.01), noise.choose_orders(0.1, 1e-6)
    sigma = noise.bound_multiplier(4, 0.01, 0.1, 1e-6, 100)
    assert noise.compute_epsilon(weights, sigma, 100, 1e-6, orders) <= 0.1
    few = np.array([*np.arange(1.25, 64.0, 0.25)])
    assert noise.compute_epsilon(weights, sigma, 100, 1e-6, few) > 0.15


def test_a_coarse_grid_over_many_steps_would_say_much_more() -> None:
    sigma = noise.bound_multiplier(4, 0.01, 0.13, 1e-6, 755)
    assert noise.bound_epsilon(sigma, 4, 0.01, 755, 1e-6, noise.choose_grid(0.13, 755)) <= 0.13
    assert noise.bound_epsilon(sigma, 4, 0.01, 755, 1e-6, 1e-2) > 0.2


@pytest.mark.long
def test_a_rate_computed_from_the_table_spends_about_twice() -> None:
    """With q = B / n_G a user who leaves changes everybody's q: both data sets are mixtures, of 50 and of 46 examples.

    All examples point one way. Held against what is said where q is a constant: 0.418.
    """
    num_examples, bound, batch, sigma, delta = 50, 4, 25, 20.0, 1e-5
    stated_epsilon = noise.bound_epsilon(sigma, bound, batch / num_examples, 1, delta, 1e-3)
    x = np.linspace(-150.0, 200.0, 2001)

    def density(examples: int, shifts: np.ndarray) -> np.ndarray:
        weights = binom.pmf(np.arange(examples + 1), examples, batch / examples)
        densities = np.exp(-((x[:, None] - shifts) ** 2) / (2.0 * sigma**2)) / (
            sigma * math.sqrt(2.0 * math.pi)
        )
        return np.asarray(densities @ weights)

    # The user's 4 examples have gradient 1, all others −1: who leaves moves the sum, and so do the others' new rates.
    num_others = num_examples - bound
    k, j = np.meshgrid(np.arange(num_others + 1), np.arange(bound + 1))
    probabilities = binom.pmf(k, num_others, batch / num_examples) * binom.pmf(j, bound, batch / num_examples)
    with_user = sum(
        weight * np.exp(-((x - (up - down)) ** 2) / (2.0 * sigma**2)) / (sigma * math.sqrt(2.0 * math.pi))
        for weight, up, down in zip(probabilities.ravel(), j.ravel(), k.ravel(), strict=True)
    )
    without = density(num_others, -np.arange(num_others + 1.0))
    step = x[1] - x[0]

    def epsilon(p: np.ndarray, q: np.ndarray) -> float:
        low, high = 0.0, 5.0
        for _ in range(60):
            middle = (low + high) / 2.0
            delta_spent = float(np.maximum(p - math.exp(middle) * q, 0.0).sum()) * step
            low, high = (middle, high) if delta_spent > delta else (low, middle)
        return high

    true = max(epsilon(with_user, without), epsilon(without, with_user))
    assert true > 1.5 * stated_epsilon


@pytest.mark.parametrize("examples", [1, 5, 4096])
def test_a_full_batch_is_one_gaussian(examples: int) -> None:
    exact = examples * math.sqrt(30.0) * compute_gaussian_sigma(1.0, 1e-6)
    for find in (noise.find_multiplier, noise.bound_multiplier):
        assert find(examples, 1.0, 1.0, 1e-6, 30) == pytest.approx(exact, rel=1e-9)


@pytest.mark.long
@pytest.mark.parametrize(
    ("examples", "rate", "epsilon", "steps"),
    [
        (4, 0.5, 1000.0, 1),
        (1, 1e-9, 1.0, 100),
        (2**14, 1e-4, 50.0, 100),
        (4, 0.001, 1e-3, 10**6),
        (1, 0.3, 1e-6, 5),
    ],
)
def test_far_out_settings_have_an_answer(examples: int, rate: float, epsilon: float, steps: int) -> None:
    multiplier = noise.bound_multiplier(examples, rate, epsilon, 1e-6, steps)
    assert math.isfinite(multiplier)
    weights, orders = compute_log_weights(examples, rate), noise.choose_orders(epsilon, 1e-6)
    assert noise.compute_epsilon(weights, multiplier, steps, 1e-6, orders) <= epsilon
    assert noise.compute_epsilon(weights, multiplier / 1.01, steps, 1e-6, orders) > epsilon


def test_more_examples_or_a_higher_rate_never_need_less_noise() -> None:
    by_bound = [noise.bound_multiplier(2**i, 0.03, 2.0, 1e-6, 50) for i in range(9)]
    by_rate = [noise.bound_multiplier(4, 0.03 * 2**i, 2.0, 1e-6, 50) for i in range(5)]
    for multipliers in (by_bound, by_rate):
        assert all(np.diff(multipliers) > 0.0)


def test_what_is_moved_in_the_accounting_by_losses_is_moved_upwards() -> None:
    k, weights = noise.truncate_mixture(200, 0.01)
    assert k[-1] == 200.0
    assert len(k) < 60
    assert math.fsum(weights) == pytest.approx(1.0, abs=1e-12)
    # Stochastically larger: no upper tail is lighter than the binomial's.
    upper_tails = np.cumsum(weights[::-1])[::-1]
    assert (upper_tails >= binom.sf(np.array(k) - 1.0, 200, 0.01) * (1.0 - 1e-9)).all()


def test_a_search_that_is_stopped_has_no_result() -> None:
    num_asked = 0

    def stop() -> bool:
        nonlocal num_asked
        num_asked += 1
        return num_asked > 1

    assert noise.find_multiplier(1, 0.3, 1.0, 1e-6, 10, stop) is None
    assert num_asked == 2
