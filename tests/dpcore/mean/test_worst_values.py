"""The largest error over all values: against all vertices, a general solver, and figures by hand."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from dpcore import mean, total
from dpcore.common.certificate import Certificate
from dpcore.common.checks import InvalidInput
from dpcore.common.noise_error import Measure
from dpcore.common.privacy import Disclosure
from dpcore.contributions import ContributionHistogram
from dpcore.data.totals_per_user import Amounts
from dpcore.dataset import Dataset
from dpcore.mean import MeanParameters, choose_defaults, worst_values
from dpcore.mean.answer import build_answer
from dpcore.total import TotalProblem


def build_problem(counts: list[int], epsilon: float = 1.0, bound: float = 1.0):
    return mean.MeanProblem(ContributionHistogram.from_counts(counts), epsilon, bound, 0.0)


def draw_tables(number: int, seed: int = 0) -> list[list[int]]:
    generator = np.random.default_rng(seed)
    return [generator.integers(1, 7, generator.integers(1, 5)).tolist() for _ in range(number)]


def list_vertices(counts: list[int]) -> itertools.product:
    """How many rows of every user lie at U, all others at L."""
    return itertools.product(*(range(s + 1) for s in counts))


def compute_table_error(
    counts: list[int], at_upper: tuple[int, ...], h: float, capped: bool
) -> tuple[float, float]:
    """Shift and the variance of the draw, by the definition, of rows at 0 and 1."""
    kept_rows = np.minimum(h, counts)
    shift, variance = 0.0, 0.0
    for s, k, j in zip(counts, kept_rows, at_upper, strict=True):
        rows = np.array([1.0] * j + [0.0] * (s - j))
        shift += (k / kept_rows.sum() - s / sum(counts)) * rows.mean()
        if capped and s > 1:
            variance += k * (1.0 - k / s) * rows.var(ddof=1) / kept_rows.sum() ** 2
    return shift, variance


@pytest.mark.long
def test_weights_are_as_bad_as_the_worst_of_all_vertices() -> None:
    for counts in draw_tables(25):
        for h in (1.0, 1.7, 3.0, 6.0):
            worst = max(
                abs(compute_table_error(counts, at, h, capped=False)[0]) for at in list_vertices(counts)
            )
            weight = min(h, max(counts)) / np.minimum(h, counts).sum()
            for epsilon, bound in ((1.0, 1.0), (0.2, 7.0)):
                found = worst_values.compute_smooth_worst_error(
                    build_problem(counts, epsilon, bound=bound), h
                )
                assert float(found) == pytest.approx(
                    bound * math.hypot(worst, math.sqrt(2.0) * weight / epsilon), rel=1e-9
                )


def test_any_weights_are_as_bad_as_the_worst_of_all_vertices() -> None:
    """As those that follow rho: min(t, p + nu x), here at random."""
    generator = np.random.default_rng(7)
    for counts in draw_tables(12, seed=5):
        sizes, code_of_user = np.unique(counts, return_inverse=True)
        weights = generator.uniform(0.0, 1.0, sizes.size)
        weights /= weights[code_of_user].sum()
        away = weights[code_of_user] - np.array(counts) / sum(counts)
        worst = max(abs(away @ (np.array(at) / counts)) for at in list_vertices(counts))
        found = worst_values.compute_worst_error(build_problem(counts, 0.7, bound=3.0), weights)
        assert found == pytest.approx(3.0 * math.hypot(worst, math.sqrt(2.0) * weights.max() / 0.7), rel=1e-9)


def test_what_stands_beside_an_error_holds_on_values_made_to_reach_it() -> None:
    """The heaviest users have all their values at U, the others at L: the shift of the answer's own weights."""
    counts = np.random.default_rng(1).geometric(0.1, 60)
    users = np.repeat(np.arange(60), counts)
    values = np.where(counts[users] > np.quantile(counts, 0.6), 1.0, 0.0)
    bare = Dataset("made", "a generator", Disclosure.PUBLIC, ContributionHistogram.from_counts(counts))
    for item in (bare, replace(bare, disclosure=Disclosure.PRIVATE)):
        answer = build_answer(item, MeanParameters(5.0, 0.0, 1.0, **choose_defaults(item)))
        worst_case_errors, problem = answer.solution.worst_case_errors, answer.solution.problem
        assert worst_case_errors.best_weights_error <= min(
            worst_case_errors.cap_error_bound, worst_case_errors.smooth_error
        )
        of_users = mean.compute_row_weight(problem, answer.solution.smooth_choice.threshold, counts) * counts
        shift = float((of_users - counts / counts.sum()) @ (np.bincount(users, weights=values) / counts))
        noise = math.sqrt(2.0) * float(of_users.max()) / 5.0
        assert math.hypot(shift, noise) <= worst_case_errors.smooth_error * (1.0 + 1e-12)
        number = next(one for one in answer.numbers if one.key == "error_whatever_the_values")
        assert number.value == worst_case_errors.cap_error_bound
    population_answer = build_answer(
        bare, MeanParameters(5.0, 0.0, 1.0)
    )  # A population: no values of this table limit that error.
    assert population_answer.solution.worst_case_errors is None
    assert "Whatever the values" not in population_answer.facts
    # One value of each of 60 users: Laplace noise of scale B / (epsilon m).
    assert population_answer.solution.error_over_users == pytest.approx(math.sqrt(2.0) / (5.0 * 60))


@pytest.mark.long
def test_caps_are_never_worse_than_said_and_reach_it_with_even_numbers_of_rows() -> None:
    for counts in draw_tables(14, seed=1):
        even = [2 * s for s in counts[:3]]
        for item in (counts, even):
            for h in (1, 2, 4):
                worst = max(
                    shift**2 + variance
                    for shift, variance in (
                        compute_table_error(item, vertex, h, capped=True) for vertex in list_vertices(item)
                    )
                )
                noise = 2.0 * (min(h, max(item)) / np.minimum(h, item).sum()) ** 2
                found = float(worst_values.bound_worst_cap_error(build_problem(item), h)) ** 2 - noise
                assert found >= worst * (1 - 1e-9) - 1e-15
                if item is even and sum(even) <= 16 and max(even) <= 4:
                    assert found <= 1.1 * worst + 1e-12


def test_the_best_weights_are_best_of_all_weights() -> None:
    """The bias of weights u is B sum (p - u)_+, convex: least over all weights by a general solver, at each t."""
    import cvxpy as cp

    for counts in [*draw_tables(4, seed=3), [1, 1, 1, 40], [3, 3, 3]]:
        share = np.array(counts) / sum(counts)
        for epsilon in (0.3, 3.0):
            question = build_problem(counts, epsilon)
            found = worst_values.find_best_weights(question)
            assert found.certificate.proves(1e-9)
            assert found.error == pytest.approx(
                float(worst_values.compute_smooth_worst_error(question, found.threshold))
            )
            weights, t = cp.Variable(share.size), cp.Parameter(nonneg=True)
            lost = cp.Problem(
                cp.Minimize(cp.sum(cp.pos(share - weights))),
                [cp.sum(weights) == 1, weights >= 0, weights <= t],
            )
            for value in (found.largest_weight, 0.5 * (found.largest_weight + 1.0), 1.0, 1.0 / share.size):
                t.value = value
                lost.solve(solver=cp.CLARABEL)
                error_at_weight = math.hypot(float(lost.value), math.sqrt(2.0) * value / epsilon)
                assert error_at_weight >= found.error * (1.0 - 1e-6)
            of_sum = total.find_best_choice(
                TotalProblem(Amounts.from_histogram(question.histogram), epsilon, measure=Measure.RMSE)
            )
            if of_sum.max_total * share.size >= sum(counts):  # The sum of all rows, bounded by T, over n.
                assert found.largest_weight == pytest.approx(of_sum.max_total / sum(counts), rel=1e-9)
                assert found.error == pytest.approx(of_sum.certificate.value / sum(counts), rel=1e-9)
    unproved = Certificate(1.5 * found.error, found.certificate.lower_bound, "half an answer")
    assert not unproved.proves(0.1)


@pytest.mark.long
def test_a_million_sizes_are_no_matter() -> None:
    sizes = np.arange(1, 1_000_001)
    question = mean.MeanProblem(
        ContributionHistogram(sizes, np.ones(sizes.size, dtype=np.int64)), 1.0, 1.0, 0.0
    )
    best = worst_values.find_best_weights(question)
    around = worst_values.compute_smooth_worst_error(
        question, np.geomspace(best.threshold / 3, best.threshold * 3, 31)
    )
    assert around.min() >= best.error * (1 - 1e-12)
    smooth = float(worst_values.compute_smooth_worst_error(question, 1000.0))
    assert float(worst_values.bound_worst_cap_error(question, 1000)) >= smooth * (1 - 1e-12)


def test_what_cannot_be_is_refused_with_all_reasons() -> None:
    with pytest.raises(InvalidInput) as refused:
        build_problem([1], 0.0, bound=-1.0)
    assert len(refused.value.problems) == 2
