"""The best range [L, U] on values at hand: against CVXPY, against grids over the bound on rows, and by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dpcore.common.certificate import Certificate
from dpcore.common.checks import CertificateError, InvalidInput
from dpcore.data import samples
from dpcore.dataset import Values
from dpcore.mean import value_range
from dpcore.mean.value_range import ValueRangeProblem, WeightedRows

Table = tuple[np.ndarray, np.ndarray, np.ndarray]


def table(seed: int, max_users: int = 9, largest: int = 5) -> Table:
    """Sizes, the user of each row, and values, ties among them in every other table."""
    generator = np.random.default_rng(seed)
    sizes = generator.integers(1, largest + 1, generator.integers(2, max_users))
    users = np.repeat(np.arange(sizes.size), sizes)
    normal = np.round(generator.normal(0.0, 10.0, users.size), generator.integers(0, 3))
    skewed = np.round(np.exp(generator.normal(2.0, 1.0, users.size) + 0.2 * np.log(sizes[users])), 1)
    return sizes, users, normal if seed % 2 else skewed


def by_hand(table: Table, epsilon: float, h: float) -> tuple[np.ndarray, float, float]:
    """Weights of rows, |D| and the noise of a range of width 1."""
    sizes, users, values = table
    kept_rows = np.minimum(h, sizes)
    weights = (kept_rows / sizes / kept_rows.sum())[users]
    return (
        weights,
        abs(float(weights @ values - values.mean())),
        math.sqrt(2.0) * float(kept_rows.max() / kept_rows.sum()) / epsilon,
    )


@pytest.mark.long_but("neither")
@pytest.mark.parametrize("fixed_end", ["neither", "inside", "below"])
def test_the_best_range_is_that_of_a_general_solver(fixed_end: str) -> None:
    import cvxpy as cp

    for seed in range(12):
        sizes, users, values = table(seed)
        generator = np.random.default_rng(100 + seed)
        epsilon, h = (
            float(np.exp(generator.uniform(-3.0, 4.0))),
            float(generator.choice([1.0, 1.5, 2.0, 9.0])),
        )
        fixed = {
            "neither": None,
            "inside": float(np.quantile(values, 0.3)) - 1e-3,
            "below": values.min() - 3.0,
        }[fixed_end]
        if np.ptp(values) == 0.0:
            continue
        problem = ValueRangeProblem(Values(users, values), epsilon)
        solution = value_range.find_best_range(problem, h, fixed)
        twice = replace(problem, epsilon=2.0 * epsilon, relative_noise=2.0 / epsilon**2)
        assert value_range.find_best_range(twice, h, fixed).error == pytest.approx(solution.error, rel=1e-12)
        weights, shift, noise = by_hand((sizes, users, values), epsilon, h)
        low, high, bias, width = (cp.Variable() for _ in range(4))
        cut = weights @ cp.pos(low - values) + weights @ cp.pos(values - high)
        constraints = [low <= high, bias >= shift + cut, width >= noise * (high - low)]
        if fixed is not None:
            constraints.append(low == fixed)
        smallest = cp.Problem(cp.Minimize(cp.norm(cp.hstack([bias, width]))), constraints).solve(
            solver=cp.CLARABEL
        )
        assert solution.error == pytest.approx(smallest, rel=2e-6)
        assert solution.certificate.proves(1e-9)
        if fixed is not None:
            assert solution.lower == pytest.approx(fixed)


def test_parts_are_those_of_the_definition() -> None:
    for seed in range(6):
        sizes, users, values = table(seed)
        weights, shift, noise = by_hand((sizes, users, values), 0.7, 2.0)
        lows, highs = np.quantile(values, [0.0, 0.2, 0.5]), np.quantile(values, [0.5, 0.9, 1.0])
        solution = WeightedRows(ValueRangeProblem(Values(users, values), 0.7), 2.0).compute_error_parts(
            lows, highs
        )
        cut = [
            weights @ (np.maximum(low - values, 0.0) + np.maximum(values - high, 0.0))
            for low, high in zip(lows, highs, strict=True)
        ]
        np.testing.assert_allclose(solution.clamping, cut, atol=1e-12)
        np.testing.assert_allclose(solution.bounding, shift, atol=1e-12)
        np.testing.assert_allclose(solution.noise, noise * (highs - lows), atol=1e-12)
        np.testing.assert_allclose(solution.error, np.hypot(np.array(cut) + shift, noise * (highs - lows)))


def test_the_error_is_never_below_the_exact_one() -> None:
    """Which has no least one that is an answer: with L = U = the mean it is 0."""
    for seed in range(6):
        sizes, users, values = table(seed)
        problem = ValueRangeProblem(Values(users, values), 1.0)
        weights, _, noise = by_hand((sizes, users, values), 1.0, 2.0)
        for low, high in np.sort(np.random.default_rng(seed).choice(values, (20, 2)), axis=1):
            exact = math.hypot(
                float(weights @ np.clip(values, low, high) - values.mean()), noise * (high - low)
            )
            assert float(WeightedRows(problem, 2.0).compute_error_parts(low, high).error) >= exact - 1e-9
        mean = float(values.mean())
        solution = value_range.find_best_range(problem, 2.0)
        assert not solution.lower == solution.upper == mean
        assert float(WeightedRows(problem, 2.0).compute_error_parts(mean, mean).error) >= solution.error * (
            1.0 - 1e-9
        )
        assert abs(float(weights @ np.clip(values, mean, mean)) - mean) < 1e-9


def test_half_an_answer_has_no_proof() -> None:
    sizes, users, values = table(4)
    problem = ValueRangeProblem(Values(users, values), 3.0)
    solution = value_range.find_best_range(problem, 2.0)
    wider = WeightedRows(problem, 2.0).compute_error_parts(solution.lower - 5.0, solution.upper + 5.0)
    unproved = Certificate(float(wider.error), solution.certificate.lower_bound, "half")
    assert not unproved.proves(0.01)
    with pytest.raises(CertificateError):
        Certificate(0.99 * solution.error, solution.certificate.lower_bound, "too good")
    assert sizes.size


@pytest.mark.long
def test_joint_range_and_bound_are_within_two_per_cent_of_all() -> None:
    for seed in range(5):
        generator = np.random.default_rng(seed)
        sizes = np.minimum(generator.zipf(1.7, 40), 100)
        users = np.repeat(np.arange(40), sizes)
        values = np.round(np.exp(generator.normal(2.0, 1.0, users.size) + 0.2 * np.log(sizes[users])), 2)
        problem = ValueRangeProblem(Values(users, values), float(np.exp(generator.uniform(-2.0, 3.0))))
        solution = value_range.find_best_joint(problem)
        grid = np.unique(np.r_[np.geomspace(sizes.min(), sizes.max(), 40), sizes])
        smallest = min(value_range.find_best_range(problem, h).error for h in grid)
        assert solution.error <= 1.02 * smallest
        assert solution.certificate.lower_bound <= smallest
        assert solution.certificate.proves(0.0201)
    stopped = value_range.find_best_joint(problem, should_stop=lambda: True)
    assert stopped.certificate.lower_bound <= solution.error <= stopped.error * 1.021


def test_it_does_not_depend_on_unit_and_origin() -> None:
    sizes, users, values = table(6, max_users=40)
    original, rescaled = (
        value_range.find_best_joint(ValueRangeProblem(Values(users, x), 1.0))
        for x in (values, 1e3 * values - 5e5)
    )
    assert rescaled.error == pytest.approx(1e3 * original.error, rel=1e-6)
    assert rescaled.upper == pytest.approx(1e3 * original.upper - 5e5, rel=1e-6)
    assert original.threshold == pytest.approx(rescaled.threshold, rel=1e-6)
    assert sizes.size > 2


def test_on_the_shop_it_beats_the_range_of_the_values() -> None:
    values = samples.load("shop-events").values
    problem = ValueRangeProblem(values, 0.1)
    solution = value_range.find_best_joint(problem)
    uppers = np.linspace(solution.lower + 1.0, 200.0, 100)
    over_upper = WeightedRows(problem, solution.threshold).compute_error_parts(solution.lower, uppers).error
    assert solution.error <= over_upper.min() * (1 + 1e-9)
    assert solution.upper < float(values.values.max())
    # As many users weigh as much above U as beside it: with both parts, lambda (|D| + a) = kappa (U - L).
    weighted_rows = WeightedRows(problem, solution.threshold)
    weight = weighted_rows.compute_weight_share_above(solution.upper - problem.mean)
    assert weight * (solution.clamping + solution.bounding) <= solution.noise**2 / (
        solution.upper - solution.lower
    ) * (1 + 1e-9)


def test_what_cannot_be_is_refused() -> None:
    users = np.array([0, 0, 1])
    with pytest.raises(InvalidInput, match="All values are the same"):
        value_range.find_best_range(ValueRangeProblem(Values(users, [3.0, 3.0, 3.0]), 1.0), 1.0)
    with pytest.raises(InvalidInput, match="No value lies above L"):
        value_range.find_best_range(ValueRangeProblem(Values(users, [3.0, 4.0, 5.0]), 1.0), 1.0, 5.0)
    with pytest.raises(InvalidInput, match="Threshold"):
        value_range.find_best_range(ValueRangeProblem(Values(users, [3.0, 4.0, 5.0]), 1.0), 0.5)
    with pytest.raises(InvalidInput, match=r"[Ee]psilon"):
        ValueRangeProblem(Values(users, [3.0, 4.0, 5.0]), 0.0)
