"""What one user can move, and what the noise costs."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpcore.common.checks import InvalidInput
from dpcore.factorisation.allocation import (
    Scheme,
    Spending,
    WeightedRatings,
    count_with_noise,
    mask_kept_ratings,
    weigh_ratings,
)
from dpcore.factorisation.fit import compute_matrix_sensitivity, sum_over_users
from dpcore.factorisation.model import FactorSettings, RatingRange
from dpcore.factorisation.ratings import Ratings
from dpcore.multitask.problem import PrivacyTarget, compute_epsilon, compute_exact_budget
from tests.dpcore.factorisation.conftest import table

RANGE = RatingRange(0.5, 5.0)


def without(ratings: Ratings, user: int) -> Ratings:
    """The table without one user's ratings; nobody is numbered anew."""
    return ratings.select(ratings.graph.user_codes != user)


@given(
    seed=st.integers(0, 10**6),
    scheme=st.sampled_from(Scheme),
    k=st.integers(1, 15),
    exponent=st.floats(0.0, 1.0),
    offset=st.sampled_from([0.0, 0.5, 0.9, 1.0]),
    scale=st.floats(0.01, 100.0),
    own=st.sampled_from([0.0, 1.5]),
)
def test_one_user_moves_the_stacked_sums_by_no_more_than_declared(
    seed: int, scheme: Scheme, k: int, exponent: float, offset: float, scale: float, own: float
) -> None:
    ratings, user = table(seed, users=8), seed % 8
    rng = np.random.default_rng(seed)
    counts = 1.0 + 50.0 * rng.random(12)
    vectors = scale * rng.normal(size=(12, 3))
    settings = FactorSettings(3, 1, 0.01, 1.0, offset_coordinate=offset, own_coordinate=own)
    vectors = settings.append_own_coordinate(vectors)
    weighted = weigh_ratings(ratings, scheme, k, counts, exponent, np.random.default_rng(1))
    # The others' weights do not depend on this user; the uniform scheme's draws are the same for them.
    is_other_user = weighted.ratings.graph.user_codes != user
    other_ratings = WeightedRatings(weighted.ratings.select(is_other_user), weighted.weights[is_other_user])
    if scheme.needs_counts:
        anew = weigh_ratings(without(ratings, user), scheme, k, counts, exponent, rng)
        assert np.array_equal(anew.ratings.items, other_ratings.ratings.items)
        assert anew.weights == pytest.approx(other_ratings.weights)
    all_sums = sum_over_users(ratings, weighted, vectors, settings, RANGE, max_length=1.0)
    other_sums = sum_over_users(
        without(ratings, user), other_ratings, vectors, settings, RANGE, max_length=1.0
    )
    matrices = math.sqrt(
        np.sum((all_sums.matrix_triangles - other_sums.matrix_triangles) ** 2)
    ) / compute_matrix_sensitivity(offset)
    in_labels = math.sqrt(np.sum((all_sums.label_sums - other_sums.label_sums) ** 2)) / RANGE.label_bound
    for item in (matrices, in_labels):
        assert item <= math.sqrt(k) * (1.0 + 1e-9)


def test_half_a_matrix_moves_by_what_is_declared_and_no_more() -> None:
    # Brute force over vectors of length at most 1 with the first coordinate fixed; and the worst of them, the rest in
    # one coordinate.
    rng = np.random.default_rng(0)
    for offset in (0.0, 0.5, 0.9, 1.0):
        other_coordinates = rng.standard_normal((20_000, 3))
        other_coordinates *= (np.sqrt(1 - offset**2) / np.linalg.norm(other_coordinates, axis=1))[:, None]
        x = np.column_stack((np.full(20_000, offset), other_coordinates))
        half_squares = sum(x[:, a] ** 2 * x[:, b] ** 2 for a in range(4) for b in range(a, 4))
        assert math.sqrt(half_squares.max()) <= compute_matrix_sensitivity(offset) * (1 + 1e-12)
        worst = np.array([offset, math.sqrt(1 - offset**2), 0.0, 0.0])
        largest_movement = math.sqrt(sum((worst[a] * worst[b]) ** 2 for a in range(4) for b in range(a, 4)))
        assert largest_movement == pytest.approx(compute_matrix_sensitivity(offset))
    assert compute_matrix_sensitivity(0.9) == pytest.approx(0.9198, abs=1e-4)


def test_sums_of_very_many_move_by_no_more_than_is_declared() -> None:
    # In float32 a user's part is rounded by the size of the sum that it enters: here 200,000 alike, and one more.
    many = 200_000
    ratings = Ratings.from_columns(range(many), np.zeros(many, int), np.full(many, 4.97), 1)
    fewer = ratings.select(ratings.graph.user_codes != many - 1)
    settings = FactorSettings(1, 1, offset_coordinate=1.0)
    sums = []
    for table_used in (ratings, fewer):
        weighted = weigh_ratings(table_used, Scheme.UNIFORM, 1, np.ones(1), 0.0, np.random.default_rng(0))
        sums.append(sum_over_users(table_used, weighted, np.zeros((1, 1)), settings, RANGE, max_length=1.0))
    assert abs(sums[0].matrix_triangles - sums[1].matrix_triangles)[0, 0] <= 1.0 + 1e-10
    assert abs(sums[0].label_sums - sums[1].label_sums)[0, 0] <= RANGE.label_bound * (1.0 + 1e-10)


def test_a_range_beyond_what_sums_hold_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"lowest rating must(.|\n)*highest must"):
        RatingRange(-1e31, 1e31)


def test_the_declared_movement_is_reached() -> None:
    # One user whose vector is the offset alone, with labels at the end of the range: w^2 for the matrix and w^2 for the
    # vector of each of k items.
    ratings = Ratings.from_columns([0] * 5, range(5), np.full(5, 5.0), 5)
    settings = FactorSettings(1, 1, offset_coordinate=1.0)
    for scheme in Scheme:
        weighted = weigh_ratings(ratings, scheme, 5, np.arange(1.0, 6.0), 0.5, np.random.default_rng(0))
        sums = sum_over_users(ratings, weighted, np.zeros((5, 1)), settings, RANGE, max_length=1.0)
        moved = np.sum(sums.matrix_triangles**2) + np.sum(sums.label_sums**2) / RANGE.label_bound**2
        assert math.sqrt(moved) == pytest.approx(math.sqrt(2 * 5), rel=1e-5)


@given(seed=st.integers(0, 10**6), k=st.integers(1, 14))
def test_every_user_keeps_k_ratings_exactly(seed: int, k: int) -> None:
    ratings = table(seed, users=9)
    counts = np.random.default_rng(seed).integers(1, 4, 12).astype(float)
    rarest = weigh_ratings(ratings, Scheme.TAIL, k, counts, 0.0, np.random.default_rng(seed)).ratings
    is_drawn = mask_kept_ratings(ratings.graph, k, np.random.default_rng(seed))
    order = np.argsort(counts, kind="stable")
    for user in range(9):
        rated = slice(ratings.starts[user], ratings.starts[user + 1])
        size = rated.stop - rated.start
        assert is_drawn[rated].sum() == min(k, size)
        by_hand = [i for i in order if i in ratings.items[rated]][:k]
        assert set(rarest.items[rarest.starts[user] : rarest.starts[user + 1]]) == set(by_hand)


def test_every_rating_is_as_likely_to_be_drawn() -> None:
    ratings = table(0, users=3, items=6, share=1.0)
    rng = np.random.default_rng(2)
    hits = sum(mask_kept_ratings(ratings.graph, 2, rng).astype(int) for _ in range(3_000))
    # Each of 18 ratings 1,000 times of 3,000, standard deviation 26; five of that.
    assert np.abs(hits - 1_000).max() < 130


@given(seed=st.integers(0, 10**6), k=st.integers(1, 30), exponent=st.floats(0.0, 1.0))
def test_adaptive_weights_fill_every_budget(seed: int, k: int, exponent: float) -> None:
    ratings = table(seed, users=10)
    counts = 1.0 + 1e4 * np.random.default_rng(seed).random(12) ** 4
    found = weigh_ratings(ratings, Scheme.ADAPTIVE, k, counts, exponent, np.random.default_rng(0))
    squared = np.bincount(ratings.graph.user_codes, found.weights.astype(np.float64) ** 2, 10)
    has = np.diff(ratings.starts) > 0
    assert squared.max() <= k
    assert squared[has] == pytest.approx(k, rel=1e-4)
    # Within a user, weights are as the power of the counts.
    rated = slice(int(ratings.starts[0]), int(ratings.starts[1]))
    assert found.weights[rated] / found.weights[0] == pytest.approx(
        (counts[ratings.items[rated]] / counts[ratings.items[0]]) ** -exponent, rel=1e-4
    )


def test_counts_count_k_of_each_user() -> None:
    ratings = table(3, users=500, items=10, share=0.9)
    silent = count_with_noise(ratings, 4, 1e-9, np.random.default_rng(0))
    is_other_user = np.minimum(np.diff(ratings.starts), 4).sum()
    assert silent.sum() == pytest.approx(is_other_user)
    noisy = count_with_noise(ratings, 4, 1e4, np.random.default_rng(0))
    assert noisy.min() == 1.0


# What the paper spends on counts, by epsilon (appendix D.1).
@pytest.mark.long_but("1.0-0.12")
@pytest.mark.parametrize(("epsilon", "share"), [(1.0, 0.12), (5.0, 0.14), (20.0, 0.20)])
def test_the_budget_by_another_accountant(epsilon: float, share: float) -> None:
    from dp_accounting import dp_event
    from dp_accounting.pld import pld_privacy_accountant
    from dp_accounting.rdp import rdp_privacy_accountant

    delta, k, sweeps = 1e-5, 100, 2
    spending = Spending.from_target(PrivacyTarget(epsilon, delta), share, sweeps, k)
    # In units of its noise a user moves the counts by sqrt(k) / s_0, and each of 2 T sums by sqrt(k) / s.
    events = [dp_event.GaussianDpEvent(spending.count_noise_std / math.sqrt(k))]
    events += [dp_event.GaussianDpEvent(spending.noise_std / math.sqrt(k))] * (2 * sweeps)
    composed = dp_event.ComposedDpEvent(events)
    with np.errstate(all="ignore"):
        by_rdp = rdp_privacy_accountant.RdpAccountant().compose(composed).get_epsilon(delta)
    if epsilon < 20.0:  # Its grid is large at a large epsilon: 5 seconds.
        with np.errstate(all="ignore"):
            by_pld = pld_privacy_accountant.PLDAccountant().compose(composed).get_epsilon(delta)
        assert by_pld == pytest.approx(epsilon, rel=5e-3)
    assert by_rdp >= epsilon
    assert by_rdp <= 1.2 * epsilon


def test_the_noise_of_the_notes() -> None:
    # mu^2 = k / s_0^2 + 2 T k / s^2 is 2 beta whatever the shares are.
    target = PrivacyTarget(1.0, 1e-5)
    for share, sweeps, k, releases in ((0.12, 2, 100, 2), (0.5, 3, 7, 5)):
        spending = Spending.from_target(target, share, sweeps, k, releases)
        budget_spent = k / spending.count_noise_std**2 + releases * sweeps * k / spending.noise_std**2
        assert budget_spent == pytest.approx(2.0 * compute_exact_budget(target))
        assert compute_epsilon(budget_spent / 2.0, 1e-5) == pytest.approx(1.0)
    assert Spending.from_target(target, 0.12, 2, 100).noise_std == pytest.approx(79.5, abs=0.1)
    assert math.isinf(Spending(1.0, 0.0, 1, 1).count_noise_std)


def test_bad_input_is_said_all_at_once() -> None:
    with pytest.raises(InvalidInput) as refused:
        Spending(-1.0, 2.0, 0, 0)
    assert len(refused.value.problems) == 4


@pytest.mark.parametrize("ends", [(0.5, 5.0), (1000.1, 1000.7), (16_777_217.0, 16_777_219.0), (-1e-3, 2e-3)])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_no_centred_rating_is_farther_out_than_the_noise_is_made_for(ends, kind):
    rating_range = RatingRange(*ends)
    values = np.linspace(ends[0] - 1.0, ends[1] + 1.0, 1001).astype(kind)
    centred = rating_range.centre(values)
    assert centred.dtype == kind
    assert np.abs(centred.astype(np.float64)).max() <= rating_range.label_bound
