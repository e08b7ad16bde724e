"""Implicit feedback: least squares over all pairs, what one user can move, what is released, and recall."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpcore.common.checks import InvalidInput
from dpcore.factorisation import allocation, implicit
from dpcore.factorisation.allocation import Scheme, Spending, WeightedRatings, weigh_ratings
from dpcore.factorisation.fit import GradientSteps, sum_gradients
from dpcore.factorisation.implicit import ImplicitSettings, ImplicitSums
from dpcore.factorisation.model import LeastSquaresSums
from dpcore.factorisation.paper_runs import MOVIE_RUNS, choose_count_share
from dpcore.factorisation.parameters import Algorithm, FactorisationParameters
from dpcore.factorisation.ratings import GeneratedRatings, Ratings
from dpcore.factorisation.studies import CHOICE_KINDS, ChoiceStudy
from dpcore.factorisation.study import ModelKind, run
from dpcore.multitask.problem import PrivacyTarget, compute_epsilon
from tests.dpcore.factorisation.conftest import table

SETTINGS = ImplicitSettings(dimension=3, sweeps=2, unobserved_weight=0.3, user_ridge=0.7, item_ridge=0.9)


def dense(ratings: Ratings) -> np.ndarray:
    """1 where a user chose an item, shape (num_users, num_items)."""
    out = np.zeros((ratings.num_users, ratings.num_items))
    out[ratings.graph.user_codes, ratings.items] = 1.0
    return out


def test_users_solve_least_squares_over_all_pairs() -> None:
    ratings, rng = implicit.select_choices(table(4)), np.random.default_rng(0)
    items = rng.normal(size=(12, 3))
    (block,) = implicit.solve_users(ratings, items, SETTINGS)
    for user, user_vector in zip(dense(ratings), block[1], strict=True):
        # Rows of a least-squares problem: chosen pairs with label 1, all pairs with label 0, and the ridge.
        rows = np.vstack([items[user > 0], math.sqrt(0.3) * items, math.sqrt(0.7) * np.eye(3)])
        labels = np.concatenate([np.ones(int(user.sum())), np.zeros(15)])
        best = np.linalg.lstsq(rows, labels, rcond=None)[0]
        length = np.linalg.norm(best)
        assert user_vector == pytest.approx(best / length if length else best, abs=2e-5)
        assert np.linalg.norm(user_vector) <= 1.0


def test_items_solve_least_squares_over_all_pairs_and_weights() -> None:
    ratings = implicit.select_choices(table(5))
    weighted = weigh_ratings(
        ratings, Scheme.ADAPTIVE, 4, 1.0 + np.arange(12.0), 0.5, np.random.default_rng(0)
    )
    items = np.random.default_rng(1).normal(size=(12, 3))
    (block,) = implicit.solve_users(ratings, items, SETTINGS)
    users = block[1]
    sums = implicit.sum_over_users(ratings, weighted, items, SETTINGS)
    solution = implicit._solve_items(sums, SETTINGS)
    for item in range(12):
        all_sums = ratings.items == item
        who, root = ratings.graph.user_codes[all_sums], np.sqrt(weighted.weights[all_sums])[:, None]
        rows = np.vstack([root * users[who], math.sqrt(0.3) * users, math.sqrt(0.9) * np.eye(3)])
        labels = np.concatenate([root[:, 0], np.zeros(users.shape[0] + 3)])
        assert solution[item] == pytest.approx(np.linalg.lstsq(rows, labels, rcond=None)[0], abs=1e-6)


@given(
    seed=st.integers(0, 10**6),
    scheme=st.sampled_from(Scheme),
    k=st.integers(1, 15),
    exponent=st.floats(0.0, 1.0),
    scale=st.sampled_from([1e-150, 1e-3, 1.0, 1e4, 1e15]),
    share=st.sampled_from([0.02, 0.5]),
)
def test_one_user_moves_every_sum_by_no_more_than_declared(
    seed: int, scheme: Scheme, k: int, exponent: float, scale: float, share: float
) -> None:
    ratings, user = implicit.select_choices(table(seed, users=8, share=share)), seed % 8
    rng = np.random.default_rng(seed)
    vectors, counts = scale * rng.normal(size=(12, 3)), 1.0 + 50.0 * rng.random(12)
    weighted = weigh_ratings(ratings, scheme, k, counts, exponent, np.random.default_rng(1))
    other_ratings = ratings.select(ratings.graph.user_codes != user)
    is_other_user = weighted.ratings.graph.user_codes != user
    rest = WeightedRatings(weighted.ratings.select(is_other_user), weighted.weights[is_other_user])
    other_sums = implicit.sum_over_users(other_ratings, rest, vectors, SETTINGS)
    all_sums = implicit.sum_over_users(ratings, weighted, vectors, SETTINGS)
    differences = {
        "matrices": np.sum((all_sums.item_sums.matrix_triangles - other_sums.item_sums.matrix_triangles) ** 2)
        / k,
        "vectors": np.sum((all_sums.item_sums.label_sums - other_sums.item_sums.label_sums) ** 2) / k,
        # The Gram matrix has every user in it, whatever their weights: it moves by 1, and is paid for as 1.
        "gram": np.sum((all_sums.user_gram_triangle - other_sums.user_gram_triangle) ** 2),
    }
    assert all(np.isfinite(value) and value <= 1.0 + 1e-9 for value in differences.values()), differences


def test_what_is_declared_is_reached() -> None:
    # One coordinate: vectors are 1, and each of k pairs of weight 1 moves a matrix and a vector by 1.
    ratings = implicit.select_choices(Ratings.from_columns([0] * 5, range(5), np.ones(5), 5))
    settings = ImplicitSettings(dimension=1)
    for scheme in Scheme:
        weighted = weigh_ratings(ratings, scheme, 5, np.arange(1.0, 6.0), 0.5, np.random.default_rng(0))
        sums = implicit.sum_over_users(ratings, weighted, np.ones((5, 1)), settings)
        assert np.sum(sums.item_sums.matrix_triangles**2) == pytest.approx(5.0, rel=1e-5)
        assert np.sum(sums.item_sums.label_sums**2) == pytest.approx(5.0, rel=1e-5)
        assert np.sum(sums.user_gram_triangle**2) == pytest.approx(1.0)


def test_without_the_gram_matrix_the_account_would_be_short() -> None:
    """The audit finds what is not paid for: with k = 1, a user's movement of all releases is 3 T, not 2 T."""
    target, sweeps = PrivacyTarget(1.0, 1e-5), 2
    paid, unpaid = (
        Spending.from_target(target, 0.1, sweeps, 1, gram_releases_per_sweep=number) for number in (1, 0)
    )
    for spending, keeps in ((paid, True), (unpaid, False)):
        differences = 1.0 / spending.count_noise_std**2 + sweeps * (2.0 + 1.0) / spending.noise_std**2
        assert (compute_epsilon(differences / 2.0, 1e-5) <= 1.0 + 1e-9) is keeps


def test_the_budget_by_another_accountant() -> None:
    from dp_accounting import dp_event
    from dp_accounting.pld import pld_privacy_accountant

    k, sweeps = 3, 2
    spending = Spending.from_target(PrivacyTarget(1.0, 1e-5), 0.12, sweeps, k, gram_releases_per_sweep=1)
    events = [dp_event.GaussianDpEvent(spending.count_noise_std / math.sqrt(k))]
    events += [dp_event.GaussianDpEvent(spending.noise_std / math.sqrt(k))] * (2 * sweeps)
    events += [dp_event.GaussianDpEvent(spending.noise_std)] * sweeps
    with np.errstate(all="ignore"):
        by_pld = (
            pld_privacy_accountant.PLDAccountant().compose(dp_event.ComposedDpEvent(events)).get_epsilon(1e-5)
        )
    assert by_pld == pytest.approx(1.0, rel=5e-3)


@pytest.mark.parametrize("scheme", Scheme)
def test_items_are_solved_from_what_was_released_alone(
    scheme: Scheme, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two tables, the same releases: the same item vectors."""
    rng = np.random.default_rng(3)
    counts = 1.0 + 20.0 * rng.random(12)
    sums_released = [
        ImplicitSums(LeastSquaresSums(rng.normal(size=(12, 6)), rng.normal(size=(12, 3))), rng.normal(size=6))
        for _ in range(2)
    ]
    spending = Spending.from_target(PrivacyTarget(1.0, 1e-5), 0.1, 2, 4, gram_releases_per_sweep=1)
    found = []
    for seed in (1, 2):
        remaining = iter(sums_released)
        monkeypatch.setattr(allocation, "count_with_noise", lambda *_: counts)
        monkeypatch.setattr(ImplicitSums, "add_noise", lambda *_, remaining=remaining: next(remaining))
        fitted = implicit.fit_private(implicit.select_choices(table(seed)), SETTINGS, scheme, spending, 0.5)
        found.append(fitted.item_vectors)
    assert np.array_equal(*found)


def test_a_budget_for_something_else_is_refused() -> None:
    ratings = implicit.select_choices(table(1))
    target = PrivacyTarget(1.0, 1e-5)
    for wrong in (
        Spending.from_target(target, 0.1, 2, 4),
        Spending.from_target(target, 0.0, 2, 4, gram_releases_per_sweep=1),
    ):
        with pytest.raises(InvalidInput):
            implicit.fit_private(ratings, SETTINGS, Scheme.UNIFORM, wrong)
    with pytest.raises(InvalidInput, match="o rating is at least 9"):
        implicit.select_choices(table(1), 9.0)


TASTE = GeneratedRatings(2_500, 300, 15.0, choice_spread=2.0)


@pytest.fixture(scope="module")
def choices() -> Ratings:
    """What 2,500 users chose of 300 items, by taste."""
    return implicit.select_choices(TASTE.draw(np.random.default_rng(2)))


def test_users_choose_by_taste_where_the_generator_says_so() -> None:
    """Items of like traits are chosen by the same users more often than popularity says; else they are not."""
    related = []
    for spread in (2.0, 0.0):
        setting = replace(TASTE, choice_spread=spread)
        ratings, traits = setting.draw_with_traits(np.random.default_rng(2))
        assert ratings.num_ratings == pytest.approx(2_500 * 15, rel=0.1)
        both = np.corrcoef(dense(ratings).T)
        apart = np.triu_indices(300, 1)
        related.append(np.corrcoef(both[apart], (traits @ traits.T)[apart])[0, 1])
    assert related[0] > 0.4
    assert abs(related[1]) < 0.02


def test_a_split_holds_out_users_and_a_fifth_of_what_they_chose(choices: Ratings) -> None:
    split = ChoiceStudy(test_user_share=0.3).split(choices, np.random.default_rng(0))
    trained, known, asked_items = (np.diff(item.starts) for item in (split.train, split.history, split.test))
    assert not np.any((trained > 0) & ((known > 0) | (asked_items > 0)))
    assert trained + known + asked_items == pytest.approx(np.diff(choices.starts))
    assert asked_items.sum() / (asked_items.sum() + known.sum()) == pytest.approx(0.2, abs=0.02)
    assert (trained > 0).sum() / (np.diff(choices.starts) > 0).sum() == pytest.approx(0.7, abs=0.05)
    with pytest.raises(InvalidInput, match="othing is left"):
        ChoiceStudy(test_user_share=0.001).split(
            choices.select(choices.graph.user_codes < 2), np.random.default_rng(0)
        )


def test_a_study_finds_taste_and_repeats_itself(choices: Ratings) -> None:
    study = ChoiceStudy(epsilons=(0.05, 1e3), repeats=1, max_items=15, test_user_share=0.2)
    progress_shares: list[float] = []
    result = run(choices, study, lambda share, partial_result=None: progress_shares.append(share))
    assert result.is_finished
    assert np.isfinite(result.recall[..., 0]).all()
    assert progress_shares == sorted(progress_shares)
    assert progress_shares[-1] == 1.0
    mean = {model_kind: result.summarise(model_kind, "recall").means[:, 0] for model_kind in CHOICE_KINDS}
    # Taste is there, and is found: without privacy, and with hardly any noise.
    assert mean[ModelKind.NO_PRIVACY][0] > 1.2 * mean[ModelKind.POPULAR][0]
    assert mean[ModelKind.ADAPTIVE][1] > 1.2 * mean[ModelKind.POPULAR][0]
    assert mean[ModelKind.PRIVATE_POPULAR][1] == pytest.approx(mean[ModelKind.POPULAR][1], abs=0.02)
    # With hardly any budget, nothing is left of it.
    assert mean[ModelKind.ADAPTIVE][0] < 0.8 * mean[ModelKind.ADAPTIVE][1]
    single_model = replace(study, model_kinds=(ModelKind.ADAPTIVE,), epsilons=(1e3,))
    repeated = run(choices, single_model).summarise(ModelKind.ADAPTIVE, "recall").means
    assert repeated[0, 0] == mean[ModelKind.ADAPTIVE][1]


@given(
    seed=st.integers(0, 10**6),
    scheme=st.sampled_from(Scheme),
    k=st.integers(1, 15),
    bound=st.floats(1e-3, 10.0),
    scale=st.sampled_from([1e-150, 1.0, 1e15]),
)
def test_one_user_moves_the_gradients_of_choices_by_no_more_than_declared(
    seed: int, scheme: Scheme, k: int, bound: float, scale: float
) -> None:
    ratings, user = implicit.select_choices(table(seed, users=8)), seed % 8
    rng = np.random.default_rng(seed)
    weighted = weigh_ratings(ratings, scheme, k, 1.0 + 50.0 * rng.random(12), 0.5, rng)
    vectors = scale * rng.normal(size=(12, 3))
    users = implicit.ImplicitModel(vectors, SETTINGS).solve_user_vectors(ratings)
    is_other_user = weighted.ratings.graph.user_codes != user
    rest = WeightedRatings(weighted.ratings.select(is_other_user), weighted.weights[is_other_user])
    all_gradients, other_gradients = (
        sum_gradients(table_used, users, vectors, implicit.CHOICE_RANGE, bound)
        for table_used in (weighted, rest)
    )
    moved = float(np.sum((all_gradients - other_gradients) ** 2))
    assert moved <= k * bound**2 * (1.0 + 1e-6)


def test_many_steps_without_noise_end_where_the_sums_are_solved() -> None:
    ratings = implicit.select_choices(table(6, users=60))
    weighted = WeightedRatings(ratings, np.ones(ratings.num_ratings, np.float32))
    settings = replace(SETTINGS, item_ridge=30.0)
    first = settings.draw_first_vectors(ratings.item_counts.astype(float))
    users = implicit.ImplicitModel(first, settings).solve_user_vectors(ratings)
    counts, rng = ratings.item_counts.astype(float), np.random.default_rng(0)
    stepped = implicit.take_gradient_steps(
        first, weighted, users, settings, GradientSteps(300, 100.0), 0.0, counts, rng
    )
    solved = implicit._solve_items(implicit.sum_over_users(ratings, weighted, first, settings), settings)
    assert stepped == pytest.approx(solved, abs=1e-6)


def test_the_budget_of_steps_on_choices_is_that_of_their_releases() -> None:
    """One Gram matrix and S sums of gradients in each sweep: a user's movement is T (S k + 1), whatever S is."""
    target, sweeps, k = PrivacyTarget(1.0, 1e-5), 3, 4
    for steps in (1, 2, 7):
        study = ChoiceStudy(
            private_settings=ImplicitSettings(sweeps=sweeps), max_items=k, gradient_steps=GradientSteps(steps)
        )
        spending = study.build_spending(1.0)
        movement = k / spending.count_noise_std**2 + sweeps * (steps * k + 1.0) / spending.noise_std**2
        assert compute_epsilon(movement / 2.0, target.delta) == pytest.approx(1.0)
    choices = implicit.select_choices(table(1))
    with pytest.raises(InvalidInput, match="makes 7 releases of each item"):
        implicit.fit_private(
            choices, SETTINGS, Scheme.TAIL, Spending(1.0, 0.1, 2, 4, 2, 1), gradient_steps=GradientSteps(7)
        )


def test_gradient_steps_learn_what_users_choose() -> None:
    choices = implicit.select_choices(
        GeneratedRatings(1_500, 200, 30.0, choice_spread=1.5).draw(np.random.default_rng(0))
    )
    study = ChoiceStudy(
        (0.1, 1e3), private_settings=ImplicitSettings(sweeps=4), max_items=20, repeats=1,
        gradient_steps=GradientSteps(1), model_kinds=(ModelKind.POPULAR, ModelKind.ADAPTIVE),
    )  # fmt: skip
    result = run(choices, study)
    recalls = result.summarise(ModelKind.ADAPTIVE).means[:, 0]
    assert recalls[0] < result.summarise(ModelKind.POPULAR).means[1, 0] < recalls[1]


def test_counts_take_the_papers_shares_of_the_budget() -> None:
    assert [choose_count_share(e) for e in (1.0, 5.0, 20.0)] == [0.12, 0.14, 0.20]
    assert choose_count_share(10.0) == pytest.approx(0.16)
    assert MOVIE_RUNS.study.delta == pytest.approx(1.0 / 8_000)


def test_a_norm_of_user_vectors_is_a_ridge_of_the_items() -> None:
    """Vectors of norm up to c with ridge λ predict what vectors of norm up to 1 with λ c² and λ / c² predict."""
    ratings, c, ridge = table(3, users=80), 0.2, 4.0
    rng = np.random.default_rng(0)
    item_vectors = rng.normal(size=(12, 3))
    centred = ratings.values - 2.75

    def solve(
        vectors: np.ndarray, codes: np.ndarray, sought: np.ndarray, size: int, lam: float
    ) -> np.ndarray:
        return np.array([
            np.linalg.solve(
                vectors[codes[sought == i]].T @ vectors[codes[sought == i]] + lam * np.eye(3),
                vectors[codes[sought == i]].T @ centred[sought == i],
            )
            for i in range(size)
        ])  # fmt: skip

    users_of_pairs = ratings.graph.user_codes
    predictions = []
    for norm, user_ridge, item_ridge, scale in ((c, ridge, ridge, 1.0), (1.0, ridge * c**2, ridge / c**2, c)):
        users = solve(scale * item_vectors, ratings.items, users_of_pairs, 80, user_ridge)
        users *= np.minimum(1.0, norm / np.linalg.norm(users, axis=1))[:, None]
        items = solve(users, users_of_pairs, ratings.items, 12, item_ridge)
        predictions.append(users @ items.T)
    assert predictions[0] == pytest.approx(predictions[1], rel=1e-9)


def test_choices_are_learned_by_the_algorithm_of_the_page() -> None:
    by_sums = FactorisationParameters(1.0)
    by_steps = replace(by_sums, algorithm=Algorithm.DESCENT, steps=3, gradient_bound=50.0)
    assert by_sums.choice_study.gradient_steps is None
    # A choice counts 1: the bound in the ratings' unit is not its own.
    assert by_steps.choice_study.gradient_steps == GradientSteps(3, 1.0)
    assert by_steps.study.gradient_steps == GradientSteps(3, 50.0)
