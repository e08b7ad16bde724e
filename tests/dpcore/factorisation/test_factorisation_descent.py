"""Gradient steps: what one user moves, the gradient by finite differences, and where the steps lead without noise."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpcore.common.checks import InvalidInput
from dpcore.factorisation.allocation import Scheme, Spending, WeightedRatings, weigh_ratings
from dpcore.factorisation.fit import (
    GradientSteps,
    clip_user_vectors,
    estimate_weight_sums,
    fit_private,
    solve_noisy_items,
    sum_gradients,
    sum_over_users,
    take_gradient_steps,
)
from dpcore.factorisation.model import FactorModel, FactorSettings, RatingRange, unfold_triangles
from dpcore.factorisation.ratings import Ratings
from dpcore.factorisation.studies import RatingStudy
from dpcore.factorisation.study import ModelKind, run
from dpcore.multitask.problem import PrivacyTarget
from tests.dpcore.factorisation.conftest import table

RANGE = RatingRange(0.5, 5.0)
SETTINGS = FactorSettings(3, 1, 1.0, 2.0)


@given(
    seed=st.integers(0, 10**6),
    scheme=st.sampled_from(Scheme),
    k=st.integers(1, 15),
    bound=st.floats(1e-3, 10.0),
    scale=st.floats(0.01, 100.0),
)
def test_one_user_moves_the_gradients_by_no_more_than_declared(
    seed: int, scheme: Scheme, k: int, bound: float, scale: float
) -> None:
    ratings, user = table(seed, users=8), seed % 8
    rng = np.random.default_rng(seed)
    weighted = weigh_ratings(ratings, scheme, k, 1.0 + 50.0 * rng.random(12), 0.5, rng)
    vectors = scale * rng.normal(size=(12, 3))
    users = clip_user_vectors(rng.normal(size=(8, 3)) * scale, SETTINGS, 1.0)
    users[:, 0] = SETTINGS.offset_coordinate
    is_other_user = weighted.ratings.graph.user_codes != user
    other_ratings = WeightedRatings(weighted.ratings.select(is_other_user), weighted.weights[is_other_user])
    difference = sum_gradients(weighted, users, vectors, RANGE, bound) - sum_gradients(
        other_ratings, users, vectors, RANGE, bound
    )
    assert np.linalg.norm(difference) <= bound * math.sqrt(k) * (1.0 + 1e-6)
    # Where every gradient is clipped, a user moves the sums by the bound times the length of their weights.
    own_ratings = WeightedRatings(weighted.ratings.select(~is_other_user), weighted.weights[~is_other_user])
    far = sum_gradients(own_ratings, users, 1e6 * np.ones((12, 3)), RANGE, bound)
    assert np.linalg.norm(far) == pytest.approx(bound * np.linalg.norm(own_ratings.weights), rel=1e-5)


def test_without_clipping_it_is_the_gradient_of_half_the_weighted_loss() -> None:
    ratings = table(1)
    rng = np.random.default_rng(0)
    weights = rng.random(ratings.num_ratings, dtype=np.float32)
    weighted = WeightedRatings(ratings, weights)
    users, vectors = rng.normal(size=(40, 3)), rng.normal(size=(12, 3))

    def loss(of: np.ndarray) -> float:
        predicted = np.einsum("pd,pd->p", users[ratings.graph.user_codes], of[ratings.items])
        return float(np.sum(weights * (predicted - RANGE.centre(ratings.values)) ** 2) / 2.0)

    gradients = sum_gradients(weighted, users, vectors, RANGE, 1e9)
    for item, coordinate in ((0, 0), (5, 2), (11, 1)):
        step = np.zeros_like(vectors)
        step[item, coordinate] = 1e-4
        by_differences = (loss(vectors + step) - loss(vectors - step)) / 2e-4
        assert gradients[item, coordinate] == pytest.approx(by_differences, rel=1e-5)


def test_many_steps_without_noise_end_where_the_sums_are_solved() -> None:
    ratings = table(2, users=200)
    weighted = WeightedRatings(ratings, np.ones(ratings.num_ratings, np.float32))
    first = SETTINGS.draw_first_vectors(12)
    users = clip_user_vectors(FactorModel(first, SETTINGS, RANGE).solve_user_vectors(ratings), SETTINGS, 1.0)
    totals = ratings.item_counts.astype(np.float64)
    steps, rng = GradientSteps(400, 100.0), np.random.default_rng(0)
    gradients, start = take_gradient_steps(
        first, np.zeros(3), weighted, users, SETTINGS, RANGE, steps, 0.0, totals, rng
    )
    sums = sum_over_users(ratings, weighted, first, SETTINGS, RANGE, max_length=1.0)
    # The ridge draws both to the level that the steps have found, which is near the mean of the solution.
    level = np.array([start[0], 0.0, 0.0])
    matrices = unfold_triangles(sums.matrix_triangles) + SETTINGS.item_ridge * np.eye(3)
    expected = np.linalg.solve(matrices, (sums.label_sums + SETTINGS.item_ridge * level)[:, :, None])[:, :, 0]
    assert gradients == pytest.approx(expected, abs=1e-3)
    assert gradients == pytest.approx(solve_noisy_items(sums, SETTINGS, RANGE), abs=0.1)


def test_expected_weights_are_the_counts_where_items_are_alike() -> None:
    equal_counts = np.full(7, 30.0)
    assert estimate_weight_sums(equal_counts, 0.5) == pytest.approx(equal_counts)
    counts = np.array([1.0, 10.0, 100.0])
    assert estimate_weight_sums(counts, 0.0) == pytest.approx(counts)
    # n omega^2 summed is what n summed is.
    weights = estimate_weight_sums(counts, 0.25) / counts
    assert np.sum(counts * weights**2) == pytest.approx(counts.sum())


def test_the_budget_of_steps_is_that_of_their_releases(generated: Ratings) -> None:
    target = PrivacyTarget(1.0, 1e-5)
    two, eight = (Spending.from_target(target, 0.1, 2, 50, releases) for releases in (2, 8))
    assert eight.noise_std == pytest.approx(2.0 * two.noise_std)
    with pytest.raises(InvalidInput, match="2 releases in a sweep, and 8 are made"):
        fit_private(generated, SETTINGS, RANGE, Scheme.TAIL, two, gradient_steps=GradientSteps(8))


@pytest.mark.long
def test_a_study_of_gradient_steps_learns(generated: Ratings) -> None:
    settings, steps = FactorSettings(3, 3), GradientSteps(20)
    study = RatingStudy(
        (0.1, 1e3), 1e-5, settings, max_items=20, repeats=1, gradient_steps=steps, measures_recall=False
    )
    result = run(generated, study)
    for model_kind in (ModelKind.UNIFORM, ModelKind.TAIL, ModelKind.ADAPTIVE):
        errors = result.summarise(model_kind).means[:, 0]
        assert errors[1] < errors[0]
        # With hardly any noise, at least the items' levels are learned.
        assert errors[1] < result.summarise(ModelKind.ITEM_MEAN).means[1, 0] + 0.02
    without_steps = run(generated, replace(study, gradient_steps=None))
    assert not np.array_equal(
        without_steps.summarise(ModelKind.TAIL).means, result.summarise(ModelKind.TAIL).means
    )
