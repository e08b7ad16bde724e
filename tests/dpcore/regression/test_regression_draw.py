import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcore.common.errors import InvalidInput
from dpcore.regression import draw, estimate, naive, sample_limiting, working_set
from dpcore.regression.problem import RegressionProblem
from tests.dpcore.regression.bank import random_problem


@settings(max_examples=80, deadline=None)
@given(data=st.data(), seed=st.integers(0, 60), method=st.integers(0, 2))
def test_one_users_labels_move_the_estimate_by_no_more_than_the_sensitivity(data, seed, method):
    problem = random_problem(seed)
    found = (naive.all_rows, working_set.solve, naive.user_averages)[method](problem)
    user = data.draw(st.sampled_from(sorted(set(problem.user_codes.tolist()))))
    mine = np.flatnonzero(problem.user_codes == user)
    label = st.floats(0.0, problem.value_bound)
    y = np.random.default_rng(seed).uniform(0.0, problem.value_bound, problem.num_rows)
    other = y.copy()
    # Extreme labels move most: 0 or B, chosen freely; or anything in between.
    choices = st.lists(
        st.one_of(st.sampled_from([0.0, problem.value_bound]), label), min_size=mine.size, max_size=mine.size
    )
    y[mine], other[mine] = data.draw(choices), data.draw(choices)
    moved = np.abs(found.matrix @ y - found.matrix @ other).sum()
    assert moved <= draw.released_sensitivity(problem, found)


@pytest.mark.parametrize("seed", [1, 4, 10])
def test_sensitivity_by_brute_force(seed):
    # All 2^s corner labels of one user against all others, users with few rows.
    problem = random_problem(seed)
    found = working_set.solve(problem)
    worst = 0.0
    for user in np.unique(problem.user_codes):
        mine = np.flatnonzero(problem.user_codes == user)
        if mine.size > 8:
            continue
        differences = np.array(np.meshgrid(*[[-1.0, 0.0, 1.0]] * mine.size)).reshape(mine.size, -1)
        moved = np.abs(found.matrix[:, mine] @ differences).sum(axis=0).max() * problem.value_bound
        bound = np.abs(found.matrix[:, mine]).sum() * problem.value_bound
        assert moved <= bound * (1 + 1e-12)
        if problem.num_features == 1:
            assert moved == pytest.approx(bound)
        worst = max(worst, moved)
    assert 0.0 < worst <= found.sensitivity * (1 + 1e-12)


def test_theorem_6_by_monte_carlo():
    # 40,000 draws of labels and noise. The mean of the squared distance is compared within 5 of its own
    # standard errors (a false alarm about once in two million).
    problem = random_problem(4)
    found = working_set.solve(problem)
    rng = np.random.default_rng(1)
    beta = rng.standard_normal(problem.num_features)
    draws = 40_000
    noise = rng.standard_normal((draws, problem.num_rows)) * math.sqrt(problem.noise_variance)
    y = problem.features @ beta + noise
    released = y @ found.matrix.T + rng.laplace(scale=found.noise.scale, size=(draws, beta.size))
    squares = ((released - beta) ** 2).sum(axis=1)
    assert abs(squares.mean() - found.variance) < 5 * squares.std() / math.sqrt(draws)
    each = estimate.coefficient_variances(problem, found)
    error = ((released - beta) ** 2).std(axis=0) / math.sqrt(draws)
    assert np.all(np.abs(((released - beta) ** 2).mean(axis=0) - each) < 5 * error)
    # The intervals cover as often as they say: 5 standard deviations of a proportion.
    for confidence in (0.5, 0.95, 0.99):
        widths = draw.interval_half_widths(problem, found, confidence)
        covered = (np.abs(released - beta) <= widths).mean(axis=0)
        assert np.all(np.abs(covered - confidence) < 5 * math.sqrt(confidence * (1 - confidence) / draws))


def test_intervals_at_both_ends():
    # Without sampling noise the width is Laplace's, b log(1 / outside); with hardly any privacy noise it is
    # the normal's, 1.959964 standard deviations.
    features, owners = np.ones((4, 1)), np.arange(4)
    alone = RegressionProblem(features, owners, 1.0, 1.0, 0.0)
    found = naive.all_rows(alone)
    width = draw.interval_half_widths(alone, found, 0.95)[0]
    assert width == pytest.approx(0.25 * math.log(20.0), rel=1e-12)
    normal = RegressionProblem(features, owners, 1e3, 1e-3, 4.0)
    width = draw.interval_half_widths(normal, naive.all_rows(normal), 0.95)[0]
    assert width == pytest.approx(1.959963985, rel=1e-6)
    with pytest.raises(InvalidInput, match="Confidence"):
        draw.interval_half_widths(normal, found, 1.0)


def test_a_draw_clips_and_carries_its_epsilon():
    problem = RegressionProblem(np.ones((50, 1)), np.arange(50), 0.5, 2.0, 1.0)
    found = sample_limiting.draw(problem, 1)
    labels = np.linspace(-1.0, 4.0, 50)
    drawn = draw.draw_coefficients(problem, found, labels, low=1.0)
    assert drawn.clipped == np.sum((labels < 1.0) | (labels > 3.0))
    assert drawn.release.epsilon <= 0.5
    assert drawn.release.label == "DP release, epsilon = 0.5"
    # Noise below 60 scales: it is exceeded with probability e^-60.
    clipped = np.clip(labels, 1.0, 3.0).mean()
    assert abs(drawn.release.values[0] - clipped) < 60 * drawn.release.scale
    assert drawn.release.scale == pytest.approx(found.noise.scale, rel=1e-9)
    assert drawn.release.scale >= found.noise.scale
    assert drawn.standard_errors[0] == pytest.approx(math.sqrt(1 / 50 + 2 * (2 / 50 / 0.5) ** 2))
    again = draw.draw_coefficients(problem, found, labels, low=1.0)
    assert again.release.values[0] != drawn.release.values[0]


def test_a_biased_estimator_is_not_released():
    problem = random_problem(0)
    wrong = estimate.evaluate(problem, 0.5 * naive.all_rows(problem).matrix, None, "", "")
    assert not wrong.certificate.proves(1.0)
    with pytest.raises(InvalidInput, match="biased"):
        draw.draw_coefficients(problem, wrong, np.zeros(problem.num_rows))
