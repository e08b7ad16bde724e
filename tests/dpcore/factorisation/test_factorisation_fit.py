"""Alternating least squares against row by row least squares, planted factors, and symmetries."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dpcore.factorisation import studies
from dpcore.factorisation.allocation import Scheme, Spending, WeightedRatings
from dpcore.factorisation.fit import (
    add_noise,
    compute_matrix_sensitivity,
    fit,
    fit_private,
    solve_noisy_items,
    sum_over_users,
)
from dpcore.factorisation.model import (
    FactorModel,
    FactorSettings,
    LeastSquaresSums,
    RatingRange,
    solve_rows,
    solve_users,
    unfold_triangles,
)
from dpcore.factorisation.ratings import GeneratedRatings, Ratings, assign_buckets
from dpcore.factorisation.study import measure
from tests.dpcore.factorisation.conftest import table

RANGE = RatingRange(0.5, 5.0)


def ridge_by_rows(features: np.ndarray, labels: np.ndarray, ridge: float) -> np.ndarray:
    """Least squares with the ridge as d further rows, by SVD."""
    d = features.shape[1]
    stacked = np.vstack([features, np.sqrt(ridge) * np.eye(d)])
    return np.asarray(np.linalg.lstsq(stacked, np.concatenate([labels, np.zeros(d)]), rcond=None)[0])


@pytest.mark.parametrize("offset", [0.0, 0.6])
def test_a_sweep_is_least_squares_row_by_row(offset: float) -> None:
    ratings = table(1)
    settings = FactorSettings(4, 1, user_ridge=0.7, item_ridge=0.3, offset_coordinate=offset)
    first = np.random.default_rng(0).normal(size=(12, 4))
    dense = np.full((40, 12), np.nan)
    dense[ratings.graph.user_codes, ratings.items] = ratings.values - RANGE.midpoint
    fixed = int(offset > 0.0)
    users = np.concatenate([x for _, x in solve_users(ratings, first, settings, RANGE)])
    for user in range(40):
        has = ~np.isnan(dense[user])
        labels = dense[user, has] - offset * first[has, 0]
        expected = ridge_by_rows(first[has][:, fixed:], labels, 0.7)
        assert users[user, fixed:] == pytest.approx(expected, abs=1e-10)
        assert users[user, :fixed] == pytest.approx(offset)
    items = solve_rows(sum_over_users(ratings, None, first, settings, RANGE), 0.3)
    for item in range(12):
        has = ~np.isnan(dense[:, item])
        assert items[item] == pytest.approx(ridge_by_rows(users[has], dense[has, item], 0.3), abs=1e-10)


def test_blocks_and_single_precision_change_nothing_but_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    ratings = table(2, users=90)
    settings = FactorSettings(5, 3, 1.0, 1.0)
    full_vectors = fit(ratings, settings, RANGE).item_vectors
    single = replace(ratings, values=ratings.values.astype(np.float32))
    assert fit(single, settings, RANGE).item_vectors == pytest.approx(full_vectors, abs=2e-4)
    monkeypatch.setattr("dpcore.factorisation.model.choose_block_size", lambda d: 7)
    assert fit(ratings, settings, RANGE).item_vectors == pytest.approx(full_vectors, abs=1e-12)


def objective(model: FactorModel, train: Ratings, users: np.ndarray) -> float:
    """Squared errors over all ratings, plus the ridges, each vector's once: (D.1) of Krichene et al. 2023."""
    predicted = np.einsum("pd,pd->p", users[train.graph.user_codes], model.item_vectors[train.items])
    errors = np.sum((predicted - model.rating_range.centre(train.values)) ** 2)
    of_items = model.settings.item_ridge * np.sum(model.item_vectors**2)
    return float(errors + model.settings.user_ridge * np.sum(users**2) + of_items)


def test_no_sweep_raises_the_objective() -> None:
    ratings = table(3, users=60)
    settings = FactorSettings(4, 1, 0.5, 0.5, offset_coordinate=0.0)
    result = []
    for sweeps in (1, 2, 4, 8, 16):
        model = fit(ratings, replace(settings, sweeps=sweeps), RANGE)
        result.append(objective(model, ratings, model.solve_user_vectors(ratings)))
    assert np.all(np.diff(result) < 1e-9)


def planted(users: int = 1_500, items: int = 60, rank: int = 2) -> tuple[Ratings, np.ndarray]:
    """Ratings of exactly low rank around an item offset, and the items' planted vectors."""
    rng = np.random.default_rng(4)
    traits, tastes = rng.normal(size=(items, rank)), rng.normal(size=(users, rank))
    user_codes, item_codes = np.nonzero(rng.random((users, items)) < 0.5)
    levels = 0.4 * rng.normal(size=items)
    values = np.clip(
        2.75 + levels[item_codes] + 0.45 * np.sum(tastes[user_codes] * traits[item_codes], axis=1), 0.5, 5.0
    )
    return Ratings.from_columns(user_codes, item_codes, values, items), np.column_stack([levels, traits])


def test_planted_factors_are_recovered_as_epsilon_grows() -> None:
    ratings, truth = planted()
    train, test = ratings.split(0.1, np.random.default_rng(0))
    buckets = assign_buckets(train.item_counts)
    settings = FactorSettings(3, 8, user_ridge=0.1, item_ridge=0.1)
    errors = []
    model: FactorModel | None = None
    for noise_budget in (1e-2, 1.0, 1e2, 1e8):
        spending = Spending(noise_budget, 0.1, 8, 60)
        model = fit_private(train, settings, RANGE, Scheme.ADAPTIVE, spending, ridge_to_noise=3.0)
        errors.append(float(measure(model, train, test, buckets, False)[0][0]))
    assert np.all(np.diff(errors) < 0.0)
    assert errors[-1] < 0.15 * errors[0]
    # The planted subspace, level included, is spanned by the vectors found: cosines of the principal angles.
    fitted_basis, _ = np.linalg.qr(model.item_vectors)
    true_basis, _ = np.linalg.qr(truth)
    assert np.linalg.svd(fitted_basis.T @ true_basis, compute_uv=False).min() > 0.98


def test_without_noise_the_private_solution_is_ridge_around_the_mean() -> None:
    ratings = table(5)
    settings = FactorSettings(3, 1, 1.0, 2.0)
    sums = sum_over_users(ratings, None, settings.draw_first_vectors(12), settings, RANGE, max_length=1.0)
    result = solve_noisy_items(sums, settings, RANGE)
    mean = ratings.values.mean() - RANGE.midpoint
    start = np.array([mean / settings.offset_coordinate, 0.0, 0.0])
    shifted = LeastSquaresSums(
        sums.matrix_triangles, sums.label_sums - unfold_triangles(sums.matrix_triangles) @ start
    )
    assert result == pytest.approx(start + solve_rows(shifted, 2.0), abs=1e-9)


def test_an_item_that_nobody_rated_gets_the_overall_mean() -> None:
    ratings = Ratings.from_columns([0, 0, 1, 1], [0, 1, 0, 1], [5.0, 1.0, 4.0, 2.0], num_items=3)
    settings = FactorSettings(2, 1, 1.0, 1.0)
    sums = sum_over_users(ratings, None, settings.draw_first_vectors(3), settings, RANGE, max_length=1.0)
    result = solve_noisy_items(sums, settings, RANGE)
    assert settings.offset_coordinate * result[2, 0] + RANGE.midpoint == pytest.approx(3.0)
    assert result[2, 1] == pytest.approx(0.0)


def test_noise_has_the_size_that_is_said() -> None:
    sums = LeastSquaresSums(np.zeros((4_000, 10)), np.zeros((4_000, 4)))
    noisy_sums = add_noise(sums, 3.0, 2.0, np.random.default_rng(1), 0.0)
    less = add_noise(sums, 3.0, 2.0, np.random.default_rng(1), 0.9)
    assert less.matrix_triangles == pytest.approx(
        compute_matrix_sensitivity(0.9) * noisy_sums.matrix_triangles
    )
    assert np.array_equal(less.label_sums, noisy_sums.label_sums)
    # 40,000 and 16,000 draws: the standard deviation is known to 0.4 % and 0.6 %; five of that.
    assert noisy_sums.matrix_triangles.std() == pytest.approx(3.0, rel=0.02)
    assert noisy_sums.label_sums.std() == pytest.approx(6.0, rel=0.03)
    assert abs(np.corrcoef(noisy_sums.matrix_triangles[:, 0], noisy_sums.matrix_triangles[:, 1])[0, 1]) < 0.08


def test_own_offsets_are_those_of_least_squares_and_beat_item_means() -> None:
    ratings = GeneratedRatings(900, 60, 20.0, user_offset_spread=0.6, error_spread=0.4).draw(
        np.random.default_rng(1)
    )
    train, test = ratings.split(0.2, np.random.default_rng(2))
    means = studies.fit_item_means(train, RANGE)
    model = studies.add_own_offsets(means)
    result = model.solve_user_vectors(train)[:, -1]
    residuals = RANGE.centre(train.values).astype(np.float64) - means.item_vectors[train.items, 0]
    by_hand = np.bincount(train.graph.user_codes, residuals, 900) / (np.diff(train.starts) + 5.0)
    assert result == pytest.approx(by_hand, abs=1e-4)
    # What is released is the same, and predictions are those of both together.
    assert np.array_equal(model.item_vectors[:, 0], means.item_vectors[:, 0])
    predictions = model.predict(model.solve_user_vectors(train), test)
    at = means.item_vectors[test.items, 0] + by_hand[test.graph.user_codes] + RANGE.midpoint
    assert predictions == pytest.approx(np.clip(at, RANGE.lowest, RANGE.highest), abs=1e-4)
    buckets = assign_buckets(train.item_counts)
    # Offsets explain 0.36 of a variance of about 1.
    with_them, without = (measure(item, train, test, buckets, False)[0][0] for item in (model, means))
    assert with_them < without - 0.05


def test_a_fit_with_own_offsets_takes_them_off_ratings_and_clips_again() -> None:
    ratings = table(4)
    settings = FactorSettings(3, 1, 2.0, 1.0, own_coordinate=1.5)
    vectors = settings.draw_first_vectors(ratings.num_items)
    assert np.all(vectors[:, -1] == 1.5)
    weighted = WeightedRatings(ratings, np.ones(ratings.num_ratings, dtype=np.float32))
    result = sum_over_users(ratings, weighted, vectors, settings, RANGE, max_length=1.0)
    # One user after another: least squares for taste and offset together, then sums of what is left.
    by_hand = np.zeros((ratings.num_items, 3))
    for user in range(ratings.num_users):
        at = slice(ratings.starts[user], ratings.starts[user + 1])
        items = ratings.items[at]
        y = RANGE.centre(ratings.values[at]).astype(np.float64)
        v = vectors[items]
        learned = np.linalg.solve(v[:, 1:].T @ v[:, 1:] + 2.0 * np.eye(3), v[:, 1:].T @ (y - 0.9 * v[:, 0]))
        own_offset, taste = 1.5 * learned[-1], learned[:-1]
        taste *= min(1.0, math.sqrt(1 - 0.81) / max(np.linalg.norm(taste), 1e-12))
        labels = np.clip(
            ratings.values[at] - own_offset - RANGE.midpoint, -RANGE.label_bound, RANGE.label_bound
        )
        for item, label in zip(items, labels, strict=True):
            by_hand[item] += label * np.array([0.9, *taste])
    assert result.label_sums == pytest.approx(by_hand, abs=1e-3)


def test_weights_enter_both_sums() -> None:
    ratings = table(7)
    settings = FactorSettings(3, 1, 1.0, 1.0)
    first = settings.draw_first_vectors(12)
    weights = np.random.default_rng(0).random(ratings.num_ratings, dtype=np.float32)
    sums = sum_over_users(ratings, WeightedRatings(ratings, weights), first, settings, RANGE)
    users = np.concatenate([x for _, x in solve_users(ratings, first, settings, RANGE)])
    for item in range(12):
        at = ratings.items == item
        x, y = users[ratings.graph.user_codes[at]], ratings.values[at] - RANGE.midpoint
        assert unfold_triangles(sums.matrix_triangles)[item] == pytest.approx((weights[at, None] * x).T @ x)
        assert sums.label_sums[item] == pytest.approx((weights[at] * y) @ x)


def test_the_private_item_mean_tends_to_the_weighted_mean(generated: Ratings) -> None:
    spending = Spending(1e12, 0.1, 2, 30)
    result = studies.fit_private_item_means(generated, RANGE, spending, exponent=0.0)
    # With mu = 0 a user's ratings weigh alike, 1 over the root of their number.
    weights = 1.0 / np.sqrt(np.diff(generated.starts))[generated.graph.user_codes]
    rated = generated.item_counts > 0
    sums = np.bincount(generated.items, weights * generated.values, 150)[rated]
    means = sums / np.bincount(generated.items, weights, 150)[rated]
    assert result.item_vectors[rated, 0] + RANGE.midpoint == pytest.approx(means, abs=0.6)
    heavy = generated.item_counts[rated] > 100
    # The ridge of 5 draws items of many ratings by a few per cent of their distance from the mean.
    assert result.item_vectors[rated, 0][heavy] + RANGE.midpoint == pytest.approx(means[heavy], abs=0.08)


def test_plain_means_are_means(generated: Ratings) -> None:
    values = generated.values.astype(np.float64)
    overall = studies.fit_item_means(generated, RANGE, ridge_ratings=math.inf)
    assert overall.item_vectors + RANGE.midpoint == pytest.approx(values.mean())
    per_item = studies.fit_item_means(generated, RANGE, ridge_ratings=0.0)
    at = generated.items == generated.items[0]
    expected = values[at].mean() - RANGE.midpoint
    assert per_item.item_vectors[generated.items[0], 0] == pytest.approx(expected)


def test_predictions_stay_in_the_range_and_users_solve_at_home(generated: Ratings) -> None:
    model = FactorModel(
        np.random.default_rng(0).normal(size=(150, 3)) * 10.0, FactorSettings(3, 1, 1e-6), RANGE
    )
    predicted = model.predict(model.solve_user_vectors(generated), generated)
    assert predicted.min() >= 0.5
    assert predicted.max() <= 5.0
    every_seventh = generated.select(np.arange(generated.num_ratings) % 7 == 0)
    assert model.predict(model.solve_user_vectors(generated), every_seventh) == pytest.approx(predicted[::7])
