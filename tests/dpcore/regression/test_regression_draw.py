import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcore.common.checks import InvalidInput
from dpcore.regression import draw, estimate, sample_limiting, working_set
from dpcore.regression.problem import RegressionProblem
from tests.dpcore.regression.bank import random_problem


@settings(max_examples=80, deadline=None)
@given(data=st.data(), seed=st.integers(0, 60), method=st.integers(0, 2))
def test_one_users_labels_move_the_estimate_by_no_more_than_the_sensitivity(data, seed, method):
    problem = random_problem(seed)
    solution = (
        sample_limiting.estimate_on_all_rows,
        working_set.solve,
        sample_limiting.estimate_on_averages,
    )[method](problem)
    user = data.draw(st.sampled_from(sorted(set(problem.user_codes.tolist()))))
    own_rows = np.flatnonzero(problem.user_codes == user)
    label = st.floats(0.0, problem.value_bound)
    y = np.random.default_rng(seed).uniform(0.0, problem.value_bound, problem.num_rows)
    other_labels = y.copy()
    # Extreme labels move most: 0 or B, chosen freely; or anything in between.
    choices = st.lists(
        st.one_of(st.sampled_from([0.0, problem.value_bound]), label),
        min_size=own_rows.size,
        max_size=own_rows.size,
    )
    y[own_rows], other_labels[own_rows] = data.draw(choices), data.draw(choices)
    movement = np.abs(solution.matrix @ y - solution.matrix @ other_labels).sum()
    assert movement <= draw.compute_sensitivity(problem, solution)


def test_no_label_decides_whether_there_is_a_release():
    problem = random_problem(1)
    solution = working_set.solve(problem)
    y = np.full(problem.num_rows, problem.value_bound / 2.0)
    for label, counts_as in ((np.nan, 0.0), (np.inf, problem.value_bound), (-np.inf, 0.0)):
        hostile = y.copy()
        hostile[0] = label
        assert draw.clip_released_labels(problem, hostile)[0] == counts_as
        charged = []
        release = draw.draw_coefficients(problem, solution, hostile, charge=charged.append)
        assert release.facts == charged[0]
    with pytest.raises(InvalidInput, match="one number per row"):
        draw.clip_released_labels(problem, y[1:])


@pytest.mark.parametrize("seed", [1, 4, 10])
def test_sensitivity_by_brute_force(seed):
    # All 2^s corner labels of one user against all others, users with few rows.
    problem = random_problem(seed)
    solution = working_set.solve(problem)
    worst = 0.0
    for user in np.unique(problem.user_codes):
        own_rows = np.flatnonzero(problem.user_codes == user)
        if own_rows.size > 8:
            continue
        differences = np.array(np.meshgrid(*[[-1.0, 0.0, 1.0]] * own_rows.size)).reshape(own_rows.size, -1)
        movement = np.abs(solution.matrix[:, own_rows] @ differences).sum(axis=0).max() * problem.value_bound
        bound = np.abs(solution.matrix[:, own_rows]).sum() * problem.value_bound
        assert movement <= bound * (1 + 1e-12)
        if problem.num_features == 1:
            assert movement == pytest.approx(bound)
        worst = max(worst, movement)
    assert 0.0 < worst <= problem.value_bound * solution.largest_user_weight * (1 + 1e-12)


def test_theorem_6_by_monte_carlo():
    # 40,000 draws of labels and noise. The mean of the squared distance is compared within 5 of its own
    # standard errors (a false alarm about once in two million).
    problem = random_problem(4)
    solution = working_set.solve(problem)
    rng = np.random.default_rng(1)
    beta = rng.standard_normal(problem.num_features)
    draws = 40_000
    noise = rng.standard_normal((draws, problem.num_rows)) * math.sqrt(problem.residual_variance)
    y = problem.features @ beta + noise
    released = y @ solution.matrix.T + rng.laplace(
        scale=solution.laplace_noise.scale, size=(draws, beta.size)
    )
    squares = ((released - beta) ** 2).sum(axis=1)
    assert abs(squares.mean() - solution.variance) < 5 * squares.std() / math.sqrt(draws)
    each = estimate.compute_variances(problem, solution)
    error = ((released - beta) ** 2).std(axis=0) / math.sqrt(draws)
    assert np.all(np.abs(((released - beta) ** 2).mean(axis=0) - each) < 5 * error)
    # The intervals cover as often as they say: 5 standard deviations of a proportion.
    for confidence in (0.5, 0.95, 0.99):
        widths = draw.compute_half_widths(problem, solution, confidence)
        covered = (np.abs(released - beta) <= widths).mean(axis=0)
        assert np.all(np.abs(covered - confidence) < 5 * math.sqrt(confidence * (1 - confidence) / draws))


def test_intervals_at_both_ends():
    # Without sampling noise the width is Laplace's, b log(1 / outside); with hardly any privacy noise it is
    # the normal's, 1.959964 standard deviations.
    features, owners = np.ones((4, 1)), np.arange(4)
    without_sampling = RegressionProblem(features, owners, 1.0, 1.0, 0.0)
    solution = sample_limiting.estimate_on_all_rows(without_sampling)
    width = draw.compute_half_widths(without_sampling, solution, 0.95)[0]
    assert width == pytest.approx(0.25 * math.log(20.0), rel=1e-12)
    normal = RegressionProblem(features, owners, 1e3, 1e-3, 4.0)
    width = draw.compute_half_widths(normal, sample_limiting.estimate_on_all_rows(normal), 0.95)[0]
    assert width == pytest.approx(1.959963985, rel=1e-6)
    with pytest.raises(InvalidInput, match="Confidence"):
        draw.compute_half_widths(normal, solution, 1.0)


def test_a_draw_clips_and_carries_its_epsilon():
    problem = RegressionProblem(np.ones((50, 1)), np.arange(50), 0.5, 2.0, 1.0)
    solution = sample_limiting.draw_estimate(problem, 1)
    labels = np.linspace(-1.0, 4.0, 50)
    first_draw = draw.draw_coefficients(problem, solution, labels, lower=1.0)
    assert first_draw.release.epsilon <= 0.5
    assert first_draw.release.label == "DP release, epsilon = 0.5"
    # Noise below 60 scales: it is exceeded with probability e^-60.
    clipped = np.clip(labels, 1.0, 3.0).mean()
    assert abs(first_draw.release.values[0] - clipped) < 60 * first_draw.release.scale
    assert first_draw.release.scale == pytest.approx(solution.laplace_noise.scale, rel=1e-9)
    assert first_draw.release.scale >= solution.laplace_noise.scale
    assert first_draw.standard_errors[0] == pytest.approx(math.sqrt(1 / 50 + 2 * (2 / 50 / 0.5) ** 2))
    second_draw = draw.draw_coefficients(problem, solution, labels, lower=1.0)
    assert second_draw.release.values[0] != first_draw.release.values[0]


def test_a_biased_estimator_is_not_released():
    problem = random_problem(0)
    wrong = estimate.evaluate(
        problem, 0.5 * sample_limiting.estimate_on_all_rows(problem).matrix, None, "", ""
    )
    assert not wrong.certificate.proves(1.0)
    with pytest.raises(InvalidInput, match="biased"):
        draw.draw_coefficients(problem, wrong, np.zeros(problem.num_rows))


def make_single_user(weights, bound, shift=0):
    """A problem of one user and one feature whose C is (up to rounding) what is given times 2^-shift, and that C."""
    c = np.array([weights])
    features = np.ldexp((c / np.vdot(c, c)).T, shift)
    problem = RegressionProblem(features, np.zeros(c.size, int), 1.0, bound, 1.0)
    return problem, estimate.evaluate(problem, np.ldexp(c, -shift), None, "", "")


def find_largest_movement(solution, ends):
    """By how much the coefficients as computed differ over all corners of the interval, exactly."""
    rows = [
        sum((Fraction(math.fsum(row * np.array(y))) for row in solution.matrix), Fraction(0))
        for y in itertools.product(ends, repeat=solution.matrix.shape[1])
    ]
    return max(rows) - min(rows)


def test_a_fifth_rounding_where_the_interval_is_far_from_0():
    # Found by hill climbing: M = 2^50 + 648.5 + 2.125 is 4.24e14 B, where fl(low + B) - low is 2.25 for B = 2.125.
    # The sums move by 4.32 units of rounding of sum |c| M more than by B sum |c|.
    low, bound = 1125899957174273.5, 2.1250000000000004
    problem, solution = make_single_user([1.2450870862911143, 1.0062567611916828], bound)
    ends = draw.clip_released_labels(problem, [-1e300, 1e300], low).tolist()
    movement = find_largest_movement(solution, ends)
    assert ends[1] - ends[0] == 2.25
    m, weights = Fraction(ends[1]), Fraction(0) + sum(map(Fraction, solution.matrix[0].tolist()))
    assert movement - Fraction(bound) * weights > 4 * Fraction(1, 2**53) * m * weights
    assert movement <= Fraction(draw.compute_sensitivity(problem, solution, low))


hostile_weight = st.builds(
    lambda sign, mantissa, shift: sign * mantissa * 2.0**shift,
    st.sampled_from([-1.0, 1.0]),
    st.one_of(st.floats(1.0, 2.0), st.integers(1, 2**12).map(lambda k: 1.0 + k * 2.0**-52)),
    st.integers(-3, 3),
)


@settings(max_examples=400, deadline=None)
@given(
    weights=st.lists(hostile_weight, min_size=1, max_size=4),
    bound=st.floats(0.5, 4.0),
    exponent=st.integers(-60, 54),
    offset=st.integers(0, 2**20),
    sign=st.sampled_from([-1.0, 1.0]),
    small=st.booleans(),
)
def test_what_is_computed_never_moves_by_more_than_the_sensitivity(
    weights, bound, exponent, offset, sign, small
):
    # Exact rational arithmetic over all corners; products and sums are monotone, so no label inside moves more.
    # Labels in units of 2^-500 and C in 2^-570 put the products among the subnormal numbers.
    unit, shift = (-500, 570) if small else (0, 0)
    bound = math.ldexp(bound, unit)
    low = math.ldexp(sign * (2.0**exponent + offset * 2.0 ** (exponent - 52)), unit)
    problem, solution = make_single_user(weights, bound, shift)
    ends = sorted({low, low + bound})
    assert find_largest_movement(solution, ends) <= Fraction(draw.compute_sensitivity(problem, solution, low))


def test_what_reaches_beyond_float64_is_refused_whatever_the_labels_are():
    charged = []
    problem, solution = make_single_user([1e10, 1.0], 1.0)
    with pytest.raises(InvalidInput, match="beyond float64"):
        draw.draw_coefficients(problem, solution, [0.0, 0.0], 1e300, charged.append)
    assert not charged
