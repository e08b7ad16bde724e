"""The release: whole numbers, what one user moves in them, what it costs, and what comes out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcore.common.errors import InvalidInput
from dpcore.common.mechanisms import discrete_gaussian_steps
from dpcore.common.privacy import Neighbours
from dpcore.training import account, optimum, release
from dpcore.training.generator import TrainingGenerator
from dpcore.training.losses import LossKind
from dpcore.training.mechanism import Mechanism
from dpcore.training.rows import ClassifierRows, prepare
from dpcore.training.weighting import smooth_weights


def rows_of(seed: int, sizes) -> ClassifierRows:
    rng = np.random.default_rng(seed)
    users = np.repeat(np.arange(len(sizes)), sizes)
    features = rng.standard_normal((users.size, 3))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    return ClassifierRows(features, np.sign(rng.standard_normal(users.size)), users)


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    sizes=st.lists(st.integers(1, 40), min_size=2, max_size=30),
    bound=st.floats(0.2, 40.0),
    loss=st.sampled_from(list(LossKind)),
    clip=st.sampled_from([0.1, 1.0, 4.0]),
)
def test_one_user_moves_whole_numbers_by_whole_numbers_within_the_sensitivity(seed, sizes, bound, loss, clip):
    rows = rows_of(seed, sizes)
    mechanism = Mechanism(1.0, 1e-5, loss=loss, clip=clip)
    theta = np.random.default_rng(seed).standard_normal(3) * 10.0
    everybody = release.whole_gradients(rows, mechanism, bound, theta)
    for user in {0, len(sizes) // 2, len(sizes) - 1}:
        others = np.delete(np.arange(len(sizes)), user)
        rest = release.whole_gradients(rows.of_users(others), mechanism, bound, theta)
        # The others' numbers are the same to the last digit, though they stand elsewhere in shorter arrays.
        assert np.array_equal(rest, everybody[rows.users != user])
        moved = everybody.sum(axis=0) - rest.sum(axis=0)
        assert sum(int(k) ** 2 for k in moved) <= release._squared_sensitivity(mechanism)


def test_whole_numbers_are_the_gradient_on_the_grid():
    rows = rows_of(1, [3, 20, 1, 7])
    mechanism = Mechanism(1.0, 1e-5, clip=0.3)
    theta = np.array([3.0, -1.0, 0.5])
    found = release.whole_gradients(rows, mechanism, 2.5, theta) * (2.5 * 0.3 / release.CELLS)
    slopes = -1 / (1 + np.exp(rows.signed @ theta))
    exact = np.maximum(slopes, -0.3)[:, None] * rows.signed  # rows have norm 1
    exact *= smooth_weights(rows.sizes, 2.5)[rows.users][:, None]
    assert found == pytest.approx(exact, abs=2.5 * 0.3 / release.CELLS)
    assert np.all(np.abs(found) <= np.abs(exact) * (1 + 1e-12))
    far = release.slopes_one_by_one(LossKind.LOGISTIC, np.array([-1e4, 0.0, 1e4]))
    assert far.tolist() == [-1.0, -0.5, 0.0]


@pytest.mark.parametrize("relation", Neighbours)
@pytest.mark.parametrize("bound", [1.0, 6.0, 1.0 + 1e-9, 1.0 + 1e-12, math.nextafter(1.0, 2.0)])
def test_the_budget_is_spent_and_never_more(relation, bound):
    rows = rows_of(2, [4, 9, 1, 2, 30])
    mechanism = Mechanism(1.5, 1e-6, relation, steps=7)
    told = []
    model = release.train_once(rows, mechanism, bound, told.append)
    assert told == [model.facts]
    assert model.facts.neighbours is relation
    assert 1.49 < model.facts.epsilon <= 1.5
    assert 0.0 < model.facts.delta <= 1e-6
    # zCDP asks for somewhat more noise than the exact account of the simulation.
    simulated = account.plan(1.5, 1e-6, relation, bound, 7).gradient
    assert simulated < model.noise < 1.15 * simulated
    # By Bun and Steinke's own conversion, from the noise alone: ρ + 2 sqrt(ρ log(1/δ)) is no tight bound, so ε below
    # it but above ρ; all steps and the sum of weights count.
    steps = 7 * release._squared_sensitivity(mechanism) + release._weight_grid(mechanism, bound).squared
    rho = steps / (2 * (model.noise / (bound / release.CELLS)) ** 2)
    assert rho < 1.5 <= rho + 2 * math.sqrt(rho * math.log(1e6))
    grid = release._weight_grid(mechanism, bound)
    if grid.squared:
        for one, other in ((1, 30), (3, 4), (30, 1)):
            steps_moved = [math.trunc(min(bound, s) / grid.step) for s in (one, other)]
            moved = (
                steps_moved[0]
                if relation is Neighbours.ADD_OR_REMOVE_USER
                else steps_moved[0] - steps_moved[1]
            )
            assert moved**2 <= grid.squared
            assert max(steps_moved) * 200_000 < 2**63  # of as many users as are taken, the sum does not wrap


def test_a_model_learns_and_differs_from_draw_to_draw():
    # 4,000 users of one row at ε = 20: the released model is near the best one, by 60 standard deviations at most.
    made = TrainingGenerator(num_users=4000, max_rows=1, informative=2, seed=3).generate()
    rows = prepare(made.dataset.table, made.scaling, 0.5)
    mechanism = Mechanism(20.0, 1e-5, steps=40)
    one, other = (release.train_once(rows, mechanism, 1.0) for _ in range(2))
    assert not np.array_equal(one.theta, other.theta)
    best = optimum.fit(rows, LossKind.LOGISTIC, np.ones(rows.num_rows), mechanism.radius)
    for model in (one, other):
        loss = LossKind.LOGISTIC.at(rows.signed @ model.theta).mean()
        assert best.certificate.value < loss < best.certificate.value + 0.1
    with pytest.raises(InvalidInput, match="ound must"):
        release.train_once(rows, mechanism, 0.0)


def test_steps_are_paid_for_before_they_are_drawn():
    paid = []
    steps = discrete_gaussian_steps(300, 1.0, 1e-5, lambda *facts: paid.append(facts))
    assert paid == [(steps.epsilon, steps.delta)]
    draws = np.concatenate([steps.release(np.zeros(4000, dtype=np.int64), 100) for _ in range(2)])
    # 8,000 draws of a discrete Gaussian of scale well above 1: mean and variance within 5 standard errors.
    assert abs(draws.mean()) < 5 * steps.scale / math.sqrt(draws.size)
    assert abs(draws.var() / steps.scale**2 - 1) < 5 * math.sqrt(2 / draws.size)
    with pytest.raises(InvalidInput, match="more than is left"):
        steps.release(np.zeros(3, dtype=np.int64), 101)
    steps.release(np.zeros(3, dtype=np.int64), 100)
    with pytest.raises(InvalidInput, match="more than is left"):
        steps.release(np.zeros(3, dtype=np.int64), 1)
    with pytest.raises(InvalidInput, match="vector of whole numbers"):
        steps.release(np.zeros(3), 1)

    def refuse(epsilon: float, delta: float) -> None:
        raise RuntimeError("no budget")

    with pytest.raises(RuntimeError, match="no budget"):
        discrete_gaussian_steps(1, 1.0, 1e-5, refuse)
    with pytest.raises(InvalidInput, match=r"sensitivity must(.|\n)*psilon must(.|\n)*elta must"):
        discrete_gaussian_steps(0, 0.0, 1.0)
