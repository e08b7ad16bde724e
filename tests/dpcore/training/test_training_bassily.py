"""The learner that the paper names, against the algorithm written out step by step."""

import math

import numpy as np
import pytest

from dpcore.training import bassily, optimum
from dpcore.training.account import Cell, Method, draw_ranks
from dpcore.training.bassily import StepSizeFormula
from dpcore.training.mechanism import LossKind
from dpcore.training.rows import ClassifierRows


def some_rows(num_users: int = 9, seed: int = 0) -> ClassifierRows:
    rng = np.random.default_rng(seed)
    sizes = np.minimum(rng.zipf(1.8, num_users), 12)
    users = np.repeat(np.arange(num_users), sizes)
    features = (
        rng.standard_normal((users.size, 2)) * 1.5
    )  # some rows are longer than 1: their gradients are clipped
    signs = np.where(rng.random(users.size) < 1 / (1 + np.exp(-features[:, 0])), 1.0, -1.0)
    return ClassifierRows(features, signs, users)


@pytest.mark.parametrize("method", [Method.SMOOTH, Method.CAP])
@pytest.mark.parametrize("step_size", StepSizeFormula)
def test_it_is_the_algorithm_written_out(method, step_size):
    rows, bound, epsilon, runs = some_rows(), 2.0, 30.0, 3
    result = bassily.train_bassily(rows, Cell(method, bound), epsilon, 5, range(runs), step_size)
    m, d, delta = rows.num_users, 2, 0.1
    kept_rows = np.minimum(bound, rows.sizes)
    lipschitz = kept_rows.max() / kept_rows.sum()
    sigma = math.sqrt(32 * lipschitz**2 * m**2 * math.log(m / delta) * math.log(1 / delta)) / epsilon
    assert bassily.compute_noise_scale(m, lipschitz, epsilon) == pytest.approx(sigma)
    radius = math.sqrt(d * 10.0**2)  # the farthest corner of [-10, 10]^d
    ranks = draw_ranks(rows, 5, range(runs))
    rng, theta = np.random.default_rng([5, 3, 0]), np.zeros((runs, d))
    for t in range(1, m * m):
        user_of_run = rng.integers(0, m, runs)
        noise = rng.standard_normal((runs, d))
        for run, user in enumerate(user_of_run):
            gradient = np.zeros(d)
            for i in np.flatnonzero(rows.user_codes == user):
                p = 1 / (1 + math.exp(float(rows.signs[i] * (rows.features[i] @ theta[run]))))
                one = -p * rows.signs[i] * rows.features[i]
                one /= max(np.linalg.norm(one), 1.0)
                weight = min(bound, rows.sizes[user]) / rows.sizes[user]
                if method is Method.CAP:
                    weight = float(ranks[i, run] < bound)
                gradient += weight / kept_rows.sum() * one
            rate = radius / math.sqrt(t) * (2 if step_size is StepSizeFormula.DIAMETER else 1)
            if step_size is StepSizeFormula.PRINTED:
                rate = radius / math.sqrt(t * (m**2 * lipschitz**2 + d * sigma**2))
            theta[run] = np.clip(theta[run] - rate * (m * gradient + sigma * noise[run]), -10, 10)
    np.testing.assert_allclose(result.T, theta, rtol=1e-7, atol=1e-9)


def test_without_noise_it_comes_near_the_optimum():
    rows = some_rows(40, seed=2)
    theta = bassily.train_bassily(rows, Cell(Method.SMOOTH, 12.0), 1e9, 0, range(4))
    result = LossKind.LOGISTIC.evaluate(rows.signed_features @ theta).mean(axis=0)
    certificate = optimum.fit_model(rows, LossKind.LOGISTIC, np.ones(rows.num_rows), 14.0).certificate
    # Long rows have clipped gradients, and steps of 1/√t are stochastic: it ends a little above the least loss.
    assert np.all(result >= certificate.lower_bound)
    assert result.mean() < certificate.value + 0.1


def test_one_user_takes_no_step() -> None:
    # m² - 1 = 0 steps lead from θ = 0 nowhere.
    single_user = ClassifierRows(np.array([[0.5, 0.5], [0.1, 0.2]]), np.array([1.0, -1.0]), np.array([0, 0]))
    result = bassily.train_bassily(single_user, Cell(Method.SMOOTH, 1.0), 1.0, 0, range(2))
    assert np.array_equal(result, np.zeros((2, 2)))
