"""Counts per group: brute force over every cap, the rank rule, and the mechanism run user by user."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcore.common.errors import InvalidInput
from dpcore.common.noise_error import NoiseKind
from dpcore.contributions import ContributionHistogram
from dpcore.dataset import Pairs
from dpcore.total import groups as grouped_count
from dpcore.total.groups import GroupedProblem


def problem_of(counts, groups, epsilon, noise=NoiseKind.LAPLACE):
    delta = 1e-6 if noise is NoiseKind.GAUSSIAN else None
    return GroupedProblem(ContributionHistogram.from_counts(counts), groups, epsilon, noise, delta)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=40),
    st.integers(0, 30),
    st.floats(-1.0, 2.5),
    st.sampled_from(list(NoiseKind)),
)
def test_no_cap_is_better(counts, more, log_epsilon, noise):
    problem = problem_of(counts, max(counts) + more, 10.0**log_epsilon, noise)
    best = grouped_count.best_cap(problem)
    mean_noise = 1.0 if noise is NoiseKind.LAPLACE else math.sqrt(2.0 / math.pi)

    def bound(k):
        spread = k if noise is NoiseKind.LAPLACE else math.sqrt(k)
        return (
            sum(max(x - k, 0) for x in counts) + problem.num_groups * mean_noise * problem.unit_noise * spread
        )

    brute = min(bound(k) for k in range(max(counts) + 2))
    assert best.bound == pytest.approx(brute, rel=1e-12)
    assert bound(best.max_groups) == pytest.approx(brute, rel=1e-12)
    assert best.certificate.proves(1e-9)
    assert best.users_affected == sum(x > best.max_groups for x in counts)


def test_laplace_noise_follows_the_rank_rule():
    counts = np.arange(1, 101)
    # G / epsilon = 100 / 8 = 12.5: the 13th largest of 1..100.
    assert grouped_count.best_cap(problem_of(counts, 100, 8.0)).max_groups == 88
    assert grouped_count.best_cap(problem_of(counts, 100, 0.5)).max_groups == 0


def test_gaussian_noise_is_better_for_many_groups_per_user():
    counts = np.full(5000, 400)
    laplace = grouped_count.best_cap(problem_of(counts, 500, 1.0))
    gaussian = grouped_count.best_cap(problem_of(counts, 500, 1.0, NoiseKind.GAUSSIAN))
    assert gaussian.max_groups == laplace.max_groups == 400
    # 500 * 400 against 500 * 20 * 3.371 (the Gaussian mean magnitude at (1, 1e-6)).
    assert laplace.bound == pytest.approx(200_000.0)
    assert gaussian.bound == pytest.approx(33_710.0, rel=1e-3)


def test_two_valleys_under_gaussian_noise():
    # A light crowd and a heavy one: both sizes are local minima, and enumeration finds the lower.
    problem = problem_of([1] * 300 + [400] * 60, 400, 1.0, NoiseKind.GAUSSIAN)
    k = np.array([0.0, 1.0, 2.0, 100.0, 399.0, 400.0])
    bound = grouped_count.errors(problem, k).bound
    assert bound[1] < bound[2]
    assert bound[5] < bound[4]
    best = grouped_count.best_cap(problem)
    assert best.bound == pytest.approx(float(bound.min()))
    for wrong in (2, 100):
        assert grouped_count.certify(problem, wrong).relative_gap > 0.01


def test_error_range_holds_the_mechanism():
    generator = np.random.default_rng(5)
    rows = [np.sort(generator.choice(8, size=generator.integers(1, 9), replace=False)) for _ in range(30)]
    user_codes = np.concatenate([np.full(r.size, u) for u, r in enumerate(rows)])
    pairs = Pairs(user_codes, np.concatenate(rows), num_tasks=8)
    problem = GroupedProblem.from_pairs(pairs, epsilon=3.0)
    k, runs = 3, 4000
    truth = np.bincount(pairs.task_codes, minlength=8)
    found = np.empty(runs)
    for run in range(runs):
        kept = np.concatenate([generator.permutation(r)[:k] for r in rows])
        noisy = np.bincount(kept, minlength=8) + generator.laplace(scale=k / 3.0, size=8)
        found[run] = np.abs(noisy - truth).sum()
    low, high = grouped_count.error_range(problem, pairs, k)
    error = 4.0 * found.std() / math.sqrt(runs)  # One mean at 4 standard errors: 6e-5.
    assert low - error <= found.mean() <= high + error
    assert low > 0.8 * high


def test_nothing_left_out_makes_the_range_a_point():
    pairs = Pairs([0, 0, 1], [0, 1, 1], num_tasks=2)
    low, high = grouped_count.error_range(GroupedProblem.from_pairs(pairs, 1.0), pairs, 2)
    assert low == pytest.approx(high) == pytest.approx(4.0)


def test_refusals():
    with pytest.raises(InvalidInput, match="one user is in 5 groups"):
        problem_of([5], 4, 1.0)
    with pytest.raises(InvalidInput) as caught:
        GroupedProblem(ContributionHistogram.from_counts([1]), 0, 0.0, NoiseKind.GAUSSIAN)
    assert len(caught.value.problems) == 3
    pairs = Pairs([0], [0], num_tasks=1)
    with pytest.raises(InvalidInput, match="not those"):
        grouped_count.error_range(problem_of([1, 1], 1, 1.0), pairs, 1)
