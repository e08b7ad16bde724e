"""RMSE, recall, buckets and neighbours against loops written out; intervals against scipy."""

import math

import numpy as np
import pytest

from dpcore.common.checks import InvalidInput
from dpcore.factorisation import allocation, studies
from dpcore.factorisation import study as factorisation_study
from dpcore.factorisation.allocation import Scheme, Spending, divide_budget
from dpcore.factorisation.fit import RIDGE_TO_NOISE
from dpcore.factorisation.model import FactorModel, FactorSettings, RatingRange
from dpcore.factorisation.ratings import OUTSIDE, GeneratedRatings, Ratings
from dpcore.factorisation.studies import RatingStudy
from dpcore.factorisation.study import ModelKind, StudyResult, run

RANGE = RatingRange(0.5, 5.0)


@pytest.fixture(scope="module")
def split(generated: Ratings) -> tuple[Ratings, Ratings]:
    return generated.split(0.2, np.random.default_rng(1))


@pytest.fixture(scope="module")
def model() -> FactorModel:
    return FactorModel(np.random.default_rng(0).normal(size=(150, 4)), FactorSettings(4, 1, 1.0), RANGE)


def test_errors_and_recall_are_those_of_loops(split: tuple[Ratings, Ratings], model: FactorModel) -> None:
    train, test = split
    buckets = factorisation_study.assign_buckets(train.item_counts)
    rmse, recall = factorisation_study.measure(model, train, test, buckets)
    users = model.solve_user_vectors(train)
    scores = users @ model.item_vectors.T
    predicted = np.clip(scores + 2.75, 0.5, 5.0)[test.graph.user_codes, test.items]
    errors = (predicted - test.values) ** 2
    assert rmse[0] == pytest.approx(np.sqrt(errors.mean()))
    bucket_of_pair = buckets[test.items]
    for bucket in range(factorisation_study.NUM_BUCKETS):
        assert rmse[1 + bucket] == pytest.approx(np.sqrt(errors[bucket_of_pair == bucket].mean()))
    for position, k in enumerate((20, 100, 80, 60, 40, 20)):
        recalls = []
        for user in range(test.num_users):
            rated_items = set(train.items[train.starts[user] : train.starts[user + 1]])
            relevant_items = set(test.items[test.starts[user] : test.starts[user + 1]])
            if position:
                relevant_items = {item for item in relevant_items if buckets[item] == position - 1}
            if not relevant_items:
                continue
            ranked = [item for item in np.argsort(-scores[user], kind="stable") if item not in rated_items][
                :k
            ]
            recalls.append(len(relevant_items & set(ranked)) / min(k, len(relevant_items)))
        assert recall[position] == pytest.approx(np.mean(recalls))


def test_buckets_hold_equally_many_items_from_rare_to_popular() -> None:
    counts = np.random.default_rng(1).integers(0, 50, 103)
    buckets = factorisation_study.assign_buckets(counts)
    assert np.bincount(buckets).tolist() == [21, 21, 20, 21, 20]
    for bucket in range(4):
        assert counts[buckets == bucket].max() <= counts[buckets == bucket + 1].min()


def test_buckets_of_a_tenth_of_the_items_are_its_fifths() -> None:
    counts = np.random.default_rng(2).permutation(200)
    buckets = factorisation_study.assign_buckets(counts, 0.1)
    # By hand: 180 to 199 ratings, four items in each.
    for count, bucket in zip(counts, buckets, strict=True):
        assert bucket == (OUTSIDE if count < 180 else (count - 180) // 4)


def test_errors_of_items_outside_the_buckets_count_among_all(
    split: tuple[Ratings, Ratings], model: FactorModel
) -> None:
    train, test = split
    all_buckets, top_buckets = (factorisation_study.assign_buckets(train.item_counts, s) for s in (1.0, 0.2))
    errors, top_errors = (
        factorisation_study.measure(model, train, test, buckets)[0] for buckets in (all_buckets, top_buckets)
    )
    assert top_errors[0] == errors[0]
    # The five buckets of a fifth of the items are together the most popular bucket of all.
    counts = np.bincount(top_buckets[test.items] + 1, minlength=6)[1:]
    assert math.sqrt(np.sum(counts * top_errors[1:] ** 2) / counts.sum()) == pytest.approx(errors[5])


def test_neighbours_leave_out_the_item_and_its_level(model: FactorModel) -> None:
    near = factorisation_study.find_nearest(model.coordinates_without_level, np.array([7]), 5)[0]
    learned = model.item_vectors[:, 1:]
    scores = learned @ learned[7]
    scores[7] = -np.inf
    assert near.tolist() == np.argsort(-scores)[:5].tolist()
    rotation = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    turned_vectors = np.hstack([model.item_vectors[:, :1] + 9.0, learned @ rotation])
    turned = FactorModel(turned_vectors, model.settings, RANGE)
    items = np.arange(150)
    assert factorisation_study.compare_neighbours(
        turned.coordinates_without_level, model.coordinates_without_level, items
    ) == pytest.approx(1.0)
    noise = FactorModel(np.random.default_rng(5).normal(size=(150, 4)), model.settings, RANGE)
    # By chance 20 of 149 are shared: 0.13, with a standard deviation of 0.006 over 150 items.
    assert factorisation_study.compare_neighbours(
        noise.coordinates_without_level, model.coordinates_without_level, items
    ).mean() == pytest.approx(20 / 149, abs=0.04)


STUDY = RatingStudy(
    epsilons=(1.0, 1e3), repeats=2, max_items=20, private_settings=FactorSettings(3, 1), measures_recall=False
)


@pytest.fixture(scope="module")
def result(generated: Ratings) -> StudyResult:
    return run(generated, STUDY)


def test_a_study_fills_every_run_and_repeats_itself(generated: Ratings, result: StudyResult) -> None:
    assert result.is_finished
    assert np.isfinite(result.rmse[..., 0]).all()
    repeated = run(generated, STUDY)
    assert np.array_equal(repeated.rmse, result.rmse)
    for model_kind in (ModelKind.GLOBAL_MEAN, ModelKind.ITEM_MEAN, ModelKind.NO_PRIVACY):
        assert np.ptp(result.select_runs(model_kind)[:, :, 0], axis=0) == pytest.approx(0.0)
    private = result.summarise(ModelKind.PRIVATE_MEAN).means
    assert private[1, 0] < private[0, 0]
    # With hardly any noise the DP item mean comes near the one without privacy.
    assert private[1, 0] == pytest.approx(result.summarise(ModelKind.ITEM_MEAN).means[1, 0], abs=0.02)
    assert (ModelKind.NO_PRIVACY, 0.0) in result.first_seed_models
    assert (ModelKind.TAIL, 1.0) in result.first_seed_models


def test_differences_are_paired_by_seed(result: StudyResult) -> None:
    difference = result.compare(ModelKind.ADAPTIVE, ModelKind.UNIFORM)
    adaptive_runs, uniform_runs = (
        result.select_runs(model_kind) for model_kind in (ModelKind.ADAPTIVE, ModelKind.UNIFORM)
    )
    assert difference.means == pytest.approx((adaptive_runs - uniform_runs).mean(axis=1))
    # Two seeds: half the interval is t = 12.706 times half the distance of the two differences.
    assert difference.half_widths == pytest.approx(
        12.706 * np.abs(np.diff(adaptive_runs - uniform_runs, axis=1)[:, 0]) / 2.0, rel=1e-3
    )


def test_a_stopped_study_keeps_what_is_finished(generated: Ratings, result: StudyResult) -> None:
    reports: list[tuple[float, StudyResult | None]] = []

    def report(share: float, partial_result: StudyResult | None = None) -> None:
        reports.append((share, partial_result))

    stopped = run(
        generated, STUDY, report, lambda: any(partial_result is not None for _, partial_result in reports)
    )
    assert not stopped.is_finished
    assert 0 < np.isfinite(stopped.rmse).sum() < np.isfinite(result.rmse).sum()
    done = np.isfinite(stopped.rmse)
    assert np.array_equal(stopped.rmse[done], result.rmse[done])
    shares = [share for share, _ in reports]
    assert shares == sorted(shares)
    assert shares[-1] < 1.0
    # What was told is not changed by what came after.
    first = next(partial_result for _, partial_result in reports if partial_result is not None)
    assert np.isfinite(first.rmse[..., 0]).sum() == 3 * 2 + 5


def test_shares_of_the_budget_add_up_and_rare_items_gain(generated: Ratings) -> None:
    spending = Spending(100.0, 0.1, 2, 10)
    uniform, tail, adaptive = (divide_budget(generated, scheme, spending, 0.5) for scheme in Scheme)
    for division in (uniform, tail, adaptive):
        assert division.bucket_shares.sum() == pytest.approx(1.0)
        assert division.noise_to_signal == pytest.approx(division.noise_std / division.mean_weight_sums)
    assert adaptive.bucket_shares[0] > uniform.bucket_shares[0]
    assert tail.bucket_shares[0] > uniform.bucket_shares[0]
    assert adaptive.used_share == pytest.approx(1.0, abs=1e-4)
    # Users with fewer than k ratings leave some of theirs unused.
    fewer = np.diff(generated.starts)
    expected = np.minimum(fewer[fewer > 0], 10).mean() / 10
    assert uniform.used_share == pytest.approx(expected)
    # Counts cost the other schemes some of the budget.
    assert uniform.noise_std < adaptive.noise_std


def test_a_study_without_test_ratings_is_refused() -> None:
    lonely = Ratings.from_columns([0], [0], [3.0], 1)
    with pytest.raises(InvalidInput, match="othing is left"):
        run(lonely, STUDY)


@pytest.mark.long
def test_small_budgets_pay_for_no_counts_of_item_means() -> None:
    assert studies.choose_exponent(1.99, 0.25) == 0.0
    assert studies.choose_exponent(2.0, 0.25) == 0.25
    ratings = GeneratedRatings(1_500, 80, 20.0).draw(np.random.default_rng(0))
    study = RatingStudy(epsilons=(0.3,), repeats=6, measures_recall=False)
    # With mu = 0 there are no counts: everything goes to the one sweep.
    spending = study.build_spending(0.3)
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(allocation, "count_with_noise")
        fitted = studies.fit_private_item_means(ratings, RANGE, spending, 0.0)
    noise = Spending(spending.budget, 0.0, 1, spending.max_items).noise_std
    assert fitted.settings.item_ridge == pytest.approx(5.0 + RIDGE_TO_NOISE * noise)
    equal_weights = run(ratings, study).summarise(ModelKind.PRIVATE_OFFSETS).means[0, 0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(studies, "EQUAL_WEIGHTS_BELOW", 0.1)
        by_counts = run(ratings, study).summarise(ModelKind.PRIVATE_OFFSETS).means[0, 0]
    assert equal_weights < by_counts - 0.003
