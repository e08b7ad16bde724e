"""Bounds and ways compared: sums against one user after another, edges, and the estimate against a simulated mean."""

import math

import numpy as np
import pytest

from dpcore.common.checks import InvalidInput
from dpcore.contributions import ContributionHistogram
from dpcore.examples_per_user import candidates
from dpcore.examples_per_user.candidates import Candidate, compare_candidates, evaluate_candidate, list_bounds
from dpcore.examples_per_user.parameters import ExamplesParameters, Sampling

COUNTS = np.array([1, 1, 1, 2, 3, 3, 8, 20])
HISTOGRAM = ContributionHistogram.from_counts(COUNTS)


def make_parameters(**settings: object) -> ExamplesParameters:
    return ExamplesParameters(**{"epsilon": 2.0, "batch_size": 6.0, "steps": 20, "dimension": 40, **settings})


def evaluate_known(sampling: Sampling, bound: int, sigma: float, **settings: object) -> Candidate:
    return evaluate_candidate(HISTOGRAM, make_parameters(**settings), sampling, bound, sigma)


def test_sums_over_the_histogram_are_those_over_users() -> None:
    kept_examples = np.minimum(COUNTS, 3)
    candidate = evaluate_known(Sampling.EXAMPLES, 3, 1.5, gradient_similarity=0.3)
    assert kept_examples.sum() == 17
    assert candidate.kept_share == pytest.approx(17 / 39)
    assert candidate.rate == 0.353  # 6/17 to three digits, as it stands in a program
    assert candidate.data_error**2 == pytest.approx(0.7 / 17 + 0.3 * (kept_examples**2).sum() / 17**2)
    assert candidate.noise == pytest.approx(1.5 / 6.0)
    users = evaluate_known(Sampling.USERS, 3, 1.5, gradient_similarity=0.3)
    assert users.divisor == pytest.approx(0.353 * 8)
    assert users.gradient_norm**2 == pytest.approx(0.3 + 0.7 * (1.0 / kept_examples).mean())
    assert users.noise == pytest.approx(1.5 * users.gradient_norm / users.divisor)


@pytest.mark.parametrize("sampling", [Sampling.EXAMPLES, Sampling.USERS])
def test_the_estimate_is_the_error_of_a_simulated_mean(sampling: Sampling) -> None:
    """Gradients of norm 1 on average, T noisy means of drawn batches, averaged: 4,000 of them, simulated."""
    rng, runs, sigma, r, dimension = np.random.default_rng(5), 4000, 0.8, 0.4, 40
    candidate = evaluate_known(sampling, 3, sigma, gradient_similarity=r, steps=4)
    kept_examples = np.minimum(COUNTS, 3)
    user = np.repeat(np.arange(kept_examples.size), kept_examples)
    squared = np.empty(runs)
    for run in range(runs):
        shared_parts = rng.normal(scale=math.sqrt(r / dimension), size=(kept_examples.size, dimension))
        own_parts = rng.normal(scale=math.sqrt((1.0 - r) / dimension), size=(user.size, dimension))
        gradients = shared_parts[user] + own_parts
        scale = 1.0
        if sampling is Sampling.USERS:
            totals = np.zeros((kept_examples.size, dimension))
            np.add.at(totals, user, gradients)
            gradients, scale = totals / kept_examples[:, None], candidate.gradient_norm
        is_drawn = (rng.random((4, len(gradients))) < candidate.rate).astype(float)
        steps = (
            is_drawn @ gradients + rng.normal(scale=sigma * scale, size=(4, dimension))
        ) / candidate.divisor
        squared[run] = (steps.mean(axis=0) ** 2).sum()
    expected = squared.mean()
    # Five standard errors, and what the rounding of the rate leaves.
    assert candidate.error**2 == pytest.approx(
        expected, abs=5.0 * squared.std() / math.sqrt(runs) + 2e-3 * expected
    )


def test_bounds_that_keep_less_than_a_batch_are_said_and_not_offered() -> None:
    comparison = compare_candidates(HISTOGRAM, make_parameters(batch_size=16.0))
    assert comparison.too_small_bounds == (1, 2)
    assert all(entry.bound >= 3 for item in comparison.candidates_by_sampling.values() for entry in item)
    with pytest.raises(InvalidInput, match="more than all 39 examples"):
        compare_candidates(HISTOGRAM, make_parameters(batch_size=40.0))


def test_nobody_is_offered_more_than_the_heaviest_user_has() -> None:
    assert list_bounds(HISTOGRAM) == (1, 2, 3, 4, 6, 8, 12, 16, 20)
    assert list_bounds(ContributionHistogram([1], [5])) == (1,)
    heavy = list_bounds(ContributionHistogram([1, 10**6], [50, 1]))
    assert heavy[-1] == 10**6
    assert len(heavy) < 30


def test_one_example_of_each_user_is_one_mechanism_both_ways() -> None:
    comparison = compare_candidates(ContributionHistogram([1], [500]), make_parameters())
    (examples,), (users,) = (
        comparison.candidates_by_sampling[Sampling.EXAMPLES],
        comparison.candidates_by_sampling[Sampling.USERS],
    )
    assert examples.multiplier == users.multiplier
    assert examples.error == pytest.approx(users.error, rel=1e-3)
    assert comparison.best_candidate.sampling is Sampling.EXAMPLES


def test_one_user_and_a_full_batch() -> None:
    comparison = compare_candidates(ContributionHistogram([7], [1]), make_parameters(batch_size=7.0))
    assert [item.bound for item in comparison.candidates_by_sampling[Sampling.USERS]] == [7]
    assert comparison.best_candidate.rate == 1.0
    assert not comparison.best_candidate.is_upper_bound


def test_the_way_that_was_asked_for_is_the_one_that_is_chosen() -> None:
    for way in (Sampling.EXAMPLES, Sampling.USERS):
        comparison = compare_candidates(HISTOGRAM, make_parameters(sampling=way))
        assert comparison.best_candidate.sampling is way
        assert comparison.best_candidate.error == min(
            one.error for one in comparison.candidates_by_sampling[way]
        )
        low, high = comparison.find_near_optimal()
        assert low <= comparison.best_candidate.bound <= high


def test_twice_the_users_leave_the_noise_of_a_bound_no_larger() -> None:
    """The same batch from twice the users is drawn with half the probability."""
    double = ContributionHistogram(HISTOGRAM.sizes, 2 * HISTOGRAM.users)
    for item, other_entry in zip(
        compare_candidates(HISTOGRAM, make_parameters()).candidates_by_sampling[Sampling.USERS],
        compare_candidates(double, make_parameters()).candidates_by_sampling[Sampling.USERS],
        strict=True,
    ):
        assert other_entry.multiplier < item.multiplier


def test_how_alike_examples_are_changes_no_noise_multiplier() -> None:
    candidate = compare_candidates(HISTOGRAM, make_parameters()).candidates_by_sampling[Sampling.USERS][3]
    alike = candidates.replace_similarity(HISTOGRAM, make_parameters(), candidate, 1.0)
    diverse = candidates.replace_similarity(HISTOGRAM, make_parameters(), candidate, 0.0)
    assert alike.multiplier == diverse.multiplier == candidate.multiplier
    assert diverse.noise < candidate.noise < alike.noise
    assert alike.gradient_norm == 1.0


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(InvalidInput) as refused:
        ExamplesParameters(
            0.0, delta=1.0, batch_size=0.5, steps=0, dimension=0, gradient_similarity=1.5, own_bound=0
        )
    assert len(refused.value.problems) == 7
