"""The regression examples row by row: unbiased weights, every sample with its own least squares."""

import itertools

import numpy as np
import pytest

from dpcore.common.checks import InvalidInput
from dpcore.gap_examples.regression import (
    build_example_1,
    build_example_3,
    compute_limiting_of_example_3,
    compute_variances_of_example_1,
)
from dpcore.regression import parameters, working_set
from tests.dpcore.gap_examples.enumeration import (
    RegressionInstance,
    build_instance,
    compute_least_squares_variance,
    compute_row_variance,
    enumerate_sample_limiting,
)


def spread_paper_weights(number: int, g: int) -> np.ndarray:
    """The paper's feasible C, one column per row, shape (2, rows)."""
    if number == 3:
        weights = np.zeros((2, 2 * g + 1))
        weights[0, 1::2] = 1.0 / g
        weights[1, 2::2] = 1.0 / (g * (g - 1))
    else:
        weights = np.zeros((2, 2 * g * g + 2))
        weights[0, 1 : g * g + 1] = 1.0 / g**3
        weights[1, g * g + 2 :] = 1.0 / g**2
    return np.repeat(weights, build_instance(number, g).counts, axis=1)


@pytest.mark.parametrize(("number", "g"), [(1, 1), (1, 3), (1, 7), (3, 2), (3, 3), (3, 8), (3, 40)])
def test_examples_row_by_row(number: int, g: int) -> None:
    example = {1: build_example_1, 3: build_example_3}[number](g)
    instance = build_instance(number, g)
    users, features = instance.rows()
    assert features.shape == (example.num_rows, 2)
    assert np.unique(users).size == example.num_users
    if number == 3:
        assert np.bincount(users).tolist() == [g] * (g + 1)
        assert np.linalg.norm(features, axis=1) == pytest.approx(1.0)
    weights = spread_paper_weights(number, g)
    assert weights @ features == pytest.approx(np.eye(2))
    assert compute_row_variance(instance, users, weights) == pytest.approx(example.feasible_variance)
    assert example.feasible_variance <= example.weights_bound * (1 + 1e-12)


def test_example_1_with_the_papers_weights_is_biased() -> None:
    # It prints 1 / g^2 where C X = I asks for 1 / g^3.
    weights = spread_paper_weights(1, 4)
    printed = np.where(weights == 1.0 / 4**3, 1.0 / 4**2, weights)
    assert (printed @ build_instance(1, 4).rows()[1])[0, 0] == pytest.approx(4.0)


def list_subset_variances(instance: RegressionInstance, threshold: int) -> np.ndarray:
    """Variance of sample limiting for each choice of rows (one entry per row, all equally likely)."""
    users, features = instance.rows()
    per_user = [
        itertools.combinations(rows, min(threshold, rows.size))
        for rows in (np.flatnonzero(users == user) for user in range(instance.num_users))
    ]
    subsets = (np.concatenate(item) for item in itertools.product(*per_user))
    return np.array([compute_least_squares_variance(instance, users[i], features[i]) for i in subsets])


@pytest.mark.parametrize(("g", "threshold"), [(2, 1), (2, 2), (3, 1), (3, 2), (3, 3)])
def test_example_3_against_every_subset_of_rows(g: int, threshold: int) -> None:
    instance = build_instance(3, g)
    subsets = list_subset_variances(instance, threshold)
    median = float(np.median(subsets))
    for solution in (
        compute_limiting_of_example_3(g, threshold),
        enumerate_sample_limiting(instance, threshold),
    ):
        assert solution.mean_variance == pytest.approx(subsets[np.isfinite(subsets)].mean())
        assert solution.undefined_probability == pytest.approx(np.isinf(subsets).mean(), abs=1e-15)
        assert solution.probabilities.sum() + solution.undefined_probability == pytest.approx(1.0)
        assert solution.compute_probability_at_least(median) == pytest.approx(
            (subsets >= median * (1 - 1e-9)).mean()
        )


@pytest.mark.parametrize("g", [1, 2, 5, 8])
def test_example_1_sample_limiting_is_that_of_least_squares(g: int) -> None:
    # Rows of one user are alike, so there is one sample.
    for threshold, variance in zip(*compute_variances_of_example_1(g), strict=True):
        sample = enumerate_sample_limiting(build_instance(1, g), int(threshold))
        assert sample.variances == pytest.approx([variance], rel=1e-9)


@pytest.mark.parametrize("g", [8, 9, 30, 100, 500])
def test_the_papers_claims_on_both_examples(g: int) -> None:
    first = build_example_1(g) if g <= 100 else None
    if first is not None:
        _, variances = compute_variances_of_example_1(g)
        assert variances.min() >= first.limiting_bound * (1 - 1e-12)
        assert variances.min() / first.feasible_variance >= g / 4 * (1 - 1e-12)
    third = build_example_3(g)
    for h in {1, 2, g // 3, g // 2, g - 1, g}:
        assert compute_limiting_of_example_3(g, h).compute_probability_at_least(third.limiting_bound) >= 0.5
    assert third.limiting_bound > third.weights_bound


def test_bad_input_is_refused_in_words() -> None:
    with pytest.raises(InvalidInput, match=r"(?i)threshold"):
        compute_limiting_of_example_3(8, 9)
    with pytest.raises(InvalidInput, match=r"(?i)g must be"):
        build_example_3(1)


@pytest.mark.parametrize("g", [2, 3, 7])
@pytest.mark.parametrize(("number", "problem"), [(1, parameters.example_1), (3, parameters.example_3)])
def test_both_packages_mean_the_same_instance(number: int, problem, g: int) -> None:
    instance, solved = build_instance(number, g), problem(g)
    rows = np.column_stack(instance.rows())
    solved_rows = np.column_stack((solved.user_codes, solved.features))
    assert rows[np.lexsort(rows.T)] == pytest.approx(solved_rows[np.lexsort(solved_rows.T)])
    assert solved.residual_variance == instance.residual_variance
    assert solved.unit_noise == pytest.approx(instance.release_noise, rel=1e-12)


@pytest.mark.parametrize("g", [1, 2, 3, 5, 8, 13])
def test_the_best_c_of_example_1(g: int) -> None:
    example, solution = build_example_1(g), working_set.solve(parameters.example_1(g))
    assert example.best_variance == 1.0 / (g * g + 1.0) ** 2
    assert solution.certificate.proves(1e-7)
    assert solution.variance == pytest.approx(example.best_variance, rel=1e-7)
    assert solution.certificate.lower_bound <= example.best_variance * (1 + 1e-9)
    assert example.best_variance < example.feasible_variance


@pytest.mark.parametrize("g", [2, 3, 5, 8, 16, 50])
def test_the_best_c_of_example_3(g: int) -> None:
    example, solution = build_example_3(g), working_set.solve(parameters.example_3(g))
    assert solution.certificate.proves(1e-7)
    assert solution.variance == pytest.approx(example.best_variance, rel=1e-7)
    assert example.best_variance < example.feasible_variance <= example.weights_bound * (1 + 1e-12)
    # User 1's rows weigh a, the others' (1, 0) rows b, with g a + g b = 1: a fine grid finds nothing better.
    b = np.linspace(0.0, 1.0 / g, 200_001)
    largest = np.maximum(1.0 - g * b, b + 1.0 / g)
    values = g * (1.0 / g - b) ** 2 + g * b**2 + 1.0 / (g * (g - 1)) + g * largest**2
    assert values.min() >= example.best_variance * (1 - 1e-12)
    assert values.min() == pytest.approx(example.best_variance, rel=1e-4)
