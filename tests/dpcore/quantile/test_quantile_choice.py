"""The best bound for a quantile: every cap by brute force, and the paper's bound row by row."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dpcore import quantile
from dpcore.common.checks import InvalidInput
from dpcore.contributions import ContributionHistogram
from dpcore.dataset import Values
from dpcore.quantile import QuantileProblem, WeightKind, optimal_bound
from dpcore.quantile.base_distribution import NormalBase, build_uniform_base
from dpcore.quantile.optimal_bound import RankBound

SKEWED = ContributionHistogram(sizes=[2, 3, 10, 60], users=[40, 20, 6, 2])


def skewed_problem(epsilon=1.0, longest=60):
    generator = np.random.default_rng(8)
    sizes = np.concatenate((np.full(150, 2), np.full(40, 5), [20, longest]))
    values = generator.normal(50.0, 10.0, size=int(sizes.sum()))
    return QuantileProblem(
        Values(np.repeat(np.arange(sizes.size), sizes), values), 0.75, epsilon, NormalBase(40.0, 20.0)
    )


@pytest.mark.long
def test_all_caps_are_tried_and_the_least_is_taken():
    problem = skewed_problem()
    choice = optimal_bound.find_best_bound(problem, WeightKind.CAP)
    # On the 50 subsamples after the problem's own 400, averaged subsample by subsample.
    subsamples = [replace(problem, first_seed=400 + k, num_subsamples=1) for k in range(50)]
    brute = [
        np.mean([quantile.compute_output(one, WeightKind.CAP, h).expected_rank_error for one in subsamples])
        for h in range(2, 61)
    ]
    assert choice.bound == 2 + int(np.argmin(brute))
    assert choice.search_errors.expected_errors == pytest.approx(brute)
    assert choice.certificate.value == pytest.approx(min(brute))
    # Judged by the problem's own subsamples, none of which it was picked on.
    own_problem = quantile.compute_output(problem, WeightKind.CAP, choice.bound)
    assert choice.rank_error == own_problem.expected_rank_error
    assert choice.num_subsamples == own_problem.subsample_errors.size == 400
    assert choice.standard_error == pytest.approx(own_problem.subsample_errors.std(ddof=1) / 20.0)
    assert choice.unbounded_rank_error == pytest.approx(brute[-1])
    assert choice.unbounded_rank_error > 1.5 * min(brute)
    assert choice.certificate.proves(0.0)
    assert choice.search_errors.bounds.tolist() == list(range(2, 61))


def test_the_smooth_search_is_honest_about_its_proof():
    problem = skewed_problem()
    progress_shares = []
    choice = optimal_bound.find_best_bound(
        problem, WeightKind.SMOOTH, num_bounds=12, progress=progress_shares.append
    )
    grid = np.geomspace(2.0, 60.0, 60)
    brute = optimal_bound.compute_rank_errors(problem, WeightKind.SMOOTH, grid).expected_errors
    assert choice.rank_error <= brute.min() * 1.01
    assert choice.rank_error == choice.search_errors.expected_errors.min()
    assert math.isinf(choice.certificate.relative_gap)
    assert "nothing is proved" in choice.stop_reason
    assert progress_shares == sorted(progress_shares)
    assert progress_shares[-1] == 1.0


def test_many_caps_are_searched_on_a_grid():
    choice = optimal_bound.find_best_bound(skewed_problem(longest=1000), WeightKind.CAP, num_bounds=8)
    assert choice.bound == round(choice.bound)
    assert math.isinf(choice.certificate.relative_gap)
    assert choice.search_errors.bounds.size < 20


def test_stopping_early_gives_the_best_so_far():
    problem = skewed_problem()
    answers = iter([False] * 3 + [True] * 9)
    choice = optimal_bound.find_best_bound(problem, WeightKind.CAP, should_stop=lambda: next(answers))
    assert choice.search_errors.is_cancelled
    assert choice.bound == 58.0  # From the largest down: 60, 59, 58.
    assert math.isinf(choice.certificate.relative_gap)
    none = optimal_bound.find_best_bound(problem, WeightKind.SMOOTH, should_stop=lambda: True)
    assert (none.search_errors.is_cancelled, none.bound) == (True, 60.0)
    assert none.rank_error == none.unbounded_rank_error


def test_equal_users_have_one_cap_and_one_threshold():
    values = Values(np.repeat(np.arange(5), 3), np.arange(15.0))
    problem = QuantileProblem(values, 0.5, 1.0, build_uniform_base(0.0, 14.0))
    for weight_kind in WeightKind:
        assert optimal_bound.find_best_bound(problem, weight_kind).bound == 3.0


def test_base_mass_is_the_mass_near_the_quantile():
    # Values 0..9: F is (k + 1) / 10 on [k, k + 1). Within 0.1 of 0.5: 0.4, 0.5, 0.6, so [3, 6) of [0, 20].
    values = Values(np.arange(10), np.arange(10.0))
    problem = QuantileProblem(values, 0.5, 1.0, build_uniform_base(0.0, 20.0))
    assert optimal_bound.compute_base_mass(problem, 0.1) == pytest.approx(0.15)
    ties = QuantileProblem(Values([0, 1], [3.0, 3.0]), 0.5, 1.0, build_uniform_base(0.0, 20.0))
    assert optimal_bound.compute_base_mass(ties, 0.1) == 0.0
    with pytest.raises(InvalidInput):
        optimal_bound.compute_base_mass(problem, -0.1)


def row_weights(kind, h):
    """c_i and its user, one entry per row, as the paper defines them."""
    sizes = np.repeat(SKEWED.sizes, SKEWED.users)
    n_h = np.minimum(h, sizes).sum()
    for user, s in enumerate(sizes):
        for row in range(s):
            if kind is WeightKind.SMOOTH:
                yield user, min(h, s) / (s * n_h)
            else:
                yield user, (1.0 if row < h else 0.0) / n_h


@pytest.mark.thinned
@pytest.mark.parametrize("kind", list(WeightKind))
@pytest.mark.parametrize("h", [1.0, 2.0, 7.0, 60.0, 90.0])
def test_the_bound_is_the_one_of_claims_5_and_6(kind, h):
    epsilon, alpha, beta, gamma = 0.8, 0.02, 0.1, 0.05
    pairs = list(row_weights(kind, h))
    c = np.array([weight for _, weight in pairs])
    w = np.bincount([user for user, _ in pairs], weights=c).max()
    assert c.sum() == pytest.approx(1.0)
    eta = math.sqrt(0.5 * math.log(2 * SKEWED.num_rows / gamma) * (c**2).sum()) + c.max()
    last = 2.0 * w / epsilon * math.log(1.0 / (gamma * beta))
    bound = RankBound(SKEWED, epsilon, alpha, beta, gamma)
    assert float(bound.compute(kind, h)) == pytest.approx(alpha + eta + last)
    twice = RankBound(SKEWED, epsilon, alpha, beta, gamma, is_for_population=True)
    assert float(twice.compute(kind, h)) == pytest.approx(alpha + 2.0 * eta + last)


@pytest.mark.parametrize("population", [False, True])
def test_the_trade_off_form(population):
    bound = RankBound(SKEWED, 0.8, 0.02, 0.1, 0.05, population)
    # A as stated: eps^2 ln(2 n / gamma) / (8 ln^2(1 / (gamma beta))); four times that where eta counts twice.
    n = 40 * 2 + 20 * 3 + 60 + 120
    a = 0.64 * math.log(2 * n / 0.05) / (8.0 * math.log(1.0 / 0.005) ** 2) * (4.0 if population else 1.0)
    assert bound.trade_off == pytest.approx(a)
    for weight_kind in WeightKind:
        best = bound.find_optimum(weight_kind)
        all_values = []
        for h in range(2, 61):
            pairs = list(row_weights(weight_kind, h))
            c = np.array([weight for _, weight in pairs])
            w = np.bincount([user for user, _ in pairs], weights=c).max()
            all_values.append(w**2 + a * (c**2).sum())
            # Both main terms added are between the root of the summed squares and sqrt(2) times that.
            terms = float(bound.compute(weight_kind, h)) - 0.02 - (2.0 if population else 1.0) * c.max()
            root = math.sqrt(all_values[-1]) * 2.0 / 0.8 * math.log(1.0 / 0.005)
            assert root <= terms * (1.0 + 1e-12)
            assert terms <= math.sqrt(2.0) * root * (1.0 + 1e-12)
        assert best.certificate.value <= min(all_values) * (1.0 + 1e-12)
        assert best.certificate.proves(2e-6)


def test_the_bound_holds_for_the_mechanism():
    # Claim 6 on given values, with claim 5's event replaced by what it is for: |F - rank| <= eta on them.
    problem = skewed_problem(epsilon=2.0)
    alpha, gamma = 0.02, 0.05
    out = quantile.compute_output(problem, WeightKind.SMOOTH, 3.0)
    beta = optimal_bound.compute_base_mass(problem, alpha)
    bound = RankBound(problem.histogram, 2.0, alpha, beta, gamma)
    distance = np.abs(out.weighted_ranks - 0.75)
    assert float(np.sum(out.probabilities[distance > float(bound.compute(WeightKind.SMOOTH, 3.0))])) <= gamma


def test_refusals():
    with pytest.raises(InvalidInput) as caught:
        RankBound(SKEWED, 0.0, -1.0, 1.5, 0.5)
    assert len(caught.value.problems) == 4
    with pytest.raises(InvalidInput, match="Points"):
        optimal_bound.find_best_bound(skewed_problem(), WeightKind.CAP, num_bounds=2)
    with pytest.raises(InvalidInput):
        optimal_bound.compute_rank_errors(skewed_problem(), WeightKind.CAP, [1.5])


def test_several_quantiles_share_one_bound_and_the_mean_of_their_errors():
    problem, answers = skewed_problem(), [0.2, 0.5, 0.9]
    choice = optimal_bound.find_best_bound(problem, WeightKind.CAP, quantiles=answers)
    # By hand: each quantile on its own at a third of epsilon.
    single_errors = [
        [
            quantile.compute_output(
                problem.with_search_subsamples().with_changes(epsilon=1.0 / 3.0, quantile=q),
                WeightKind.CAP,
                h,
            ).expected_rank_error
            for q in answers
        ]
        for h in range(2, 61)
    ]
    means = np.mean(single_errors, axis=1)
    assert choice.search_errors.expected_errors == pytest.approx(means)
    assert choice.bound == 2 + int(np.argmin(means))


def test_errors_under_other_bases_are_those_of_problems_with_these_bases():
    problem = skewed_problem()
    bases = [NormalBase(40.0, 20.0), build_uniform_base(0.0, 100.0), build_uniform_base(80.0, 90.0)]
    progress_shares = []
    errors_found = optimal_bound.compute_base_errors(
        problem, bases, WeightKind.SMOOTH, 6.0, progress=progress_shares.append
    )
    for base, error in zip(bases, errors_found, strict=True):
        own_problem = QuantileProblem(problem.values, 0.75, 1.0, base)
        assert error == quantile.compute_output(own_problem, WeightKind.SMOOTH, 6.0).expected_rank_error
    assert progress_shares[-1] == 1.0
    assert errors_found[2] > 10.0 * errors_found[0]
    answers = iter([False, True])
    stopped = optimal_bound.compute_base_errors(
        problem, bases, WeightKind.SMOOTH, 6.0, should_stop=lambda: next(answers)
    )
    assert np.isnan(stopped).tolist() == [False, True, True]


@pytest.mark.parametrize("share", [0.01, 0.1, 0.25, 0.5, 0.75, 0.999, 1.0])
def test_the_exact_quantile_is_the_least_value_with_enough_rows_below(share):
    values = np.array([3.0, 1.0, 1.0, 7.0, 2.0, 2.0, 2.0, 9.0, 4.0, 4.0])
    problem = QuantileProblem(Values(np.arange(10) // 2, values), 0.5, 1.0, build_uniform_base(0.0, 8.0))
    expected = min(v for v in values if np.mean(values <= v) >= share)
    assert problem.rows.find_quantile(share) == expected
