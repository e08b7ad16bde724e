"""The regression examples row by row: unbiased weights, every sample with its own least squares."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dpcore.common.checks import InvalidInput
from dpcore.gap_examples.regression import example_1, example_3, limit_samples_3, limit_variances_1
from dpcore.regression import examples, working_set
from tests.dpcore.gap_examples.enumeration import (
    RegressionInstance,
    enumerate_sample_limiting,
    instance,
    paper_weights,
    weighted_variance,
)


def row_variance(
    features: np.ndarray, users: np.ndarray, weights: np.ndarray, sigma2: float, noise: float
) -> float:
    """Theorem 6 with one column of C per row."""
    loads = [np.abs(weights[:, users == user]).sum() for user in np.unique(users)]
    return float(sigma2 * (weights**2).sum() + noise * max(loads) ** 2)


@pytest.mark.parametrize("g", [1, 3, 7])
def test_example_1_row_by_row(g: int) -> None:
    made, table = example_1(g), instance(1, g)
    users, features = table.rows()
    assert features.shape == (made.num_rows, 2)
    assert table.num_users == made.num_users
    weights = np.repeat(paper_weights(1, g), table.counts, axis=1)
    assert weights @ features == pytest.approx(np.eye(2))
    assert row_variance(features, users, weights, 0.0, 1.0) == pytest.approx(1.0 / g**4)
    assert weighted_variance(table, paper_weights(1, g)).variance == pytest.approx(made.feasible_variance)
    assert made.feasible_variance == pytest.approx(made.weights_bound)


def test_example_1_with_the_papers_weights_is_biased() -> None:
    weights = paper_weights(1, 4)
    literal = np.where(weights == 1.0 / 4**3, 1.0 / 4**2, weights)
    with pytest.raises(InvalidInput, match="biased"):
        weighted_variance(instance(1, 4), literal)


@pytest.mark.parametrize("g", [2, 3, 8, 40])
def test_example_3_row_by_row(g: int) -> None:
    made, table = example_3(g), instance(3, g)
    users, features = table.rows()
    assert (made.num_rows, made.num_users) == (users.size, table.num_users)
    assert np.bincount(users).tolist() == [g] * (g + 1)
    assert np.linalg.norm(features, axis=1) == pytest.approx(np.ones(g * (g + 1)))
    weights = np.repeat(paper_weights(3, g), table.counts, axis=1)
    assert weights @ features == pytest.approx(np.eye(2))
    assert row_variance(features, users, weights, 1.0, float(g)) == pytest.approx(made.feasible_variance)
    assert made.feasible_variance <= made.weights_bound * (1 + 1e-12)


def every_subset(made: RegressionInstance, threshold: int) -> list[float]:
    """Variance of sample limiting for each choice of rows (one entry per row, all equally likely)."""
    users, features = made.rows()
    per_user = [
        list(itertools.combinations(np.flatnonzero(users == u), min(threshold, int((users == u).sum()))))
        for u in range(made.num_users)
    ]
    found = []
    for pick in itertools.product(*per_user):
        rows = np.concatenate(pick)
        u = features[rows]
        if np.linalg.matrix_rank(u) < 2:
            found.append(np.inf)
            continue
        found.append(
            row_variance(u, users[rows], np.linalg.pinv(u), made.residual_variance, made.release_noise)
        )
    return found


@pytest.mark.parametrize(("g", "threshold"), [(2, 1), (2, 2), (3, 1), (3, 2), (3, 3)])
def test_example_3_against_every_subset_of_rows(g: int, threshold: int) -> None:
    made = instance(3, g)
    subsets = np.array(every_subset(made, threshold))
    defined = subsets[np.isfinite(subsets)]
    for found in (limit_samples_3(g, threshold), enumerate_sample_limiting(made, threshold)):
        assert found is not None
        assert found.mean_variance == pytest.approx(defined.mean())
        assert found.undefined == pytest.approx(np.isinf(subsets).mean(), abs=1e-15)
        assert found.probabilities.sum() + found.undefined == pytest.approx(1.0)
        middle = float(np.median(subsets))
        assert found.probability_at_least(middle) == pytest.approx((subsets >= middle * (1 - 1e-9)).mean())


@pytest.mark.parametrize("g", [1, 2, 5, 8])
def test_example_1_sample_limiting_is_that_of_least_squares(g: int) -> None:
    made = instance(1, g)
    thresholds, variances = limit_variances_1(g)
    for h, variance in zip(thresholds, variances, strict=True):
        found = enumerate_sample_limiting(made, int(h))
        assert found is not None
        assert found.variances == pytest.approx([variance], rel=1e-9)
        # Rows of one user are alike, so any h of them are the sample: the first h, by a pseudo-inverse.
        users, features = made.rows()
        kept = np.concatenate([np.flatnonzero(users == u)[:h] for u in range(made.num_users)])
        c = np.linalg.pinv(features[kept])
        assert row_variance(features[kept], users[kept], c, 0.0, 1.0) == pytest.approx(variance, rel=1e-9)


@pytest.mark.parametrize("g", [8, 9, 30, 100, 500])
def test_the_papers_claims_on_both_examples(g: int) -> None:
    first = example_1(g) if g <= 100 else None
    if first is not None:
        _, variances = limit_variances_1(g)
        assert variances.min() >= first.limiting_bound * (1 - 1e-12)
        assert variances.min() / first.feasible_variance >= g / 4 * (1 - 1e-12)
    third = example_3(g)
    for h in {1, 2, g // 3, g // 2, g - 1, g}:
        assert limit_samples_3(g, h).probability_at_least(third.limiting_bound) >= 0.5
    assert third.limiting_bound > third.weights_bound


def test_example_3_at_eight_over_all_256_samples() -> None:
    made = instance(3, 8)
    for h in range(1, 9):
        listed, closed = (enumerate_sample_limiting(made, h), limit_samples_3(8, h))
        assert listed.mean_variance == pytest.approx(closed.mean_variance, rel=1e-10)
        assert listed.undefined == pytest.approx(closed.undefined, rel=1e-10)


def test_too_many_samples_are_refused() -> None:
    with pytest.raises(InvalidInput, match="distinct samples"):
        enumerate_sample_limiting(instance(3, 20), 3)
    with pytest.raises(InvalidInput, match=r"(?i)threshold"):
        limit_samples_3(8, 9)
    with pytest.raises(InvalidInput, match=r"(?i)g must be"):
        example_3(1)


def test_a_user_with_three_kinds_of_rows() -> None:
    # 2 + 1 + 1 rows of one user, 1 of another; one kept per user of 2: chances 2/4, 1/4, 1/4 by hand.
    table = RegressionInstance(
        features=[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, -1.0]],
        user_codes=[0, 0, 0, 1],
        counts=[2, 1, 1, 1],
        residual_variance=1.0,
        release_noise=0.0,
    )
    found = enumerate_sample_limiting(table, 1)
    assert found is not None
    assert sorted(found.probabilities) == pytest.approx([0.25, 0.25, 0.5])
    # trace of (U^T U)^-1 for rows (1,0),(1,-1); (0,1),(1,-1): 3; for (1,1),(1,-1): 1.
    assert found.mean_variance == pytest.approx(0.75 * 3.0 + 0.25 * 1.0)


def test_bad_instances_are_refused_all_at_once() -> None:
    with pytest.raises(InvalidInput) as refused:
        RegressionInstance([[1.0], [2.0]], [0, 2], [1, 0], -1.0, 1.0)
    assert len(refused.value.problems) == 3
    with pytest.raises(InvalidInput, match="one entry, per kind"):
        RegressionInstance([[1.0], [2.0]], [0], [1, 1], 1.0, 1.0)


@pytest.mark.parametrize("g", [2, 3, 7])
@pytest.mark.parametrize(("number", "problem"), [(1, examples.example_1), (3, examples.example_3)])
def test_both_packages_mean_the_same_instance(number: int, problem, g: int) -> None:  # type: ignore[no-untyped-def]
    here, there = instance(number, g), problem(g)
    users, features = here.rows()
    ours = np.column_stack((users, features))
    theirs = np.column_stack((there.user_codes, there.features))
    assert ours[np.lexsort(ours.T)] == pytest.approx(theirs[np.lexsort(theirs.T)])
    assert there.residual_variance == here.residual_variance
    assert there.unit_noise == pytest.approx(here.release_noise, rel=1e-12)


@pytest.mark.parametrize("g", [1, 2, 3, 5, 8, 13])
def test_the_best_c_of_example_1(g: int) -> None:
    made, found = example_1(g), working_set.solve(examples.example_1(g))
    assert made.optimum == 1.0 / (g * g + 1.0) ** 2
    assert found.certificate.proves(1e-7)
    assert found.variance == pytest.approx(made.optimum, rel=1e-7)
    assert found.certificate.lower_bound <= made.optimum * (1 + 1e-9)
    assert made.optimum < made.feasible_variance


@pytest.mark.parametrize("g", [2, 3, 5, 8, 16, 50])
def test_the_best_c_of_example_3(g: int) -> None:
    made, found = example_3(g), working_set.solve(examples.example_3(g))
    assert found.certificate.proves(1e-7)
    assert found.variance == pytest.approx(made.optimum, rel=1e-7)
    assert made.optimum < made.feasible_variance <= made.weights_bound * (1 + 1e-12)
    # User 1's rows weigh a, the others' (1, 0) rows b, with g a + g b = 1: a fine grid finds nothing better.
    b = np.linspace(0.0, 1.0 / g, 200_001)
    largest = np.maximum(1.0 - g * b, b + 1.0 / g)
    values = g * (1.0 / g - b) ** 2 + g * b**2 + 1.0 / (g * (g - 1)) + g * largest**2
    assert values.min() >= made.optimum * (1 - 1e-12)
    assert values.min() == pytest.approx(made.optimum, rel=1e-4)
