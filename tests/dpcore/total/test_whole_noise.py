"""Bounds and errors under the noise of a program, by brute force over all bounds and over the law of the noise."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest

import dpcore as ss
from dpcore.common import programs
from dpcore.common.noise_error import Measure, NoiseKind
from dpcore.common.programs import Program
from dpcore.contributions import ContributionHistogram
from dpcore.data.totals_per_user import Amounts
from dpcore.total.nonnegative import (
    TotalProblem,
    compute_error_interval,
    compute_errors,
    find_best_choice,
    find_near_optimal_bounds,
)

CASES = list(itertools.product(Measure, NoiseKind, (0.3, 1.0, 5.0)))


def sum_over_law(problem: TotalProblem, bound: int) -> float:
    """The error at a bound, by a sum over whole noise whose scale comes from `programs` alone."""
    rows, users = problem.amounts.values, problem.amounts.users
    bias = float((np.maximum(rows - bound, 0.0) * users).sum())
    unit = 1.0 / problem.epsilon
    if problem.mechanism is NoiseKind.GAUSSIAN:
        unit = math.sqrt(0.5 / programs.convert_to_rho(problem.epsilon, problem.delta))
    scale = unit * bound
    reach = math.ceil(45.0 * scale) + 2
    z = np.arange(-reach, reach + 1.0)
    exponent = np.abs(z) if problem.mechanism is NoiseKind.LAPLACE else 0.5 * z * z / max(scale, 1e-9)
    weights = np.exp(-np.minimum(exponent / max(scale, 1e-9), 700.0))
    weights /= weights.sum()
    if problem.measure is Measure.RMSE:
        return math.sqrt(float((weights * (bias + z) ** 2).sum()))
    if problem.measure is Measure.ABSOLUTE:
        return float((weights * np.abs(bias + z)).sum())
    return bias + float((weights * np.abs(z)).sum())


def problem_of(rows: np.ndarray, measure: Measure, noise_kind: NoiseKind, epsilon: float) -> TotalProblem:
    amounts = Amounts.from_histogram(ContributionHistogram.from_counts(rows))
    delta = None if noise_kind is NoiseKind.LAPLACE else 1e-6
    return TotalProblem(amounts, epsilon, noise_kind, delta, measure, is_integer=True, program=Program.OPENDP)


@pytest.mark.parametrize(("measure", "kind", "epsilon"), CASES)
def test_the_best_cap_under_whole_noise_is_best_of_all_caps(
    measure: Measure, kind: NoiseKind, epsilon: float
) -> None:
    generator = np.random.default_rng(8)
    for users in (1, 3, 30, 200):
        rows = np.ceil(generator.pareto(1.2, users) + 0.2).clip(1, 40).astype(np.int64)
        problem = problem_of(rows, measure, kind, epsilon)
        all_errors = [sum_over_law(problem, bound) for bound in range(int(rows.max()) + 1)]
        choice = find_best_choice(problem)
        assert choice.certificate.value == pytest.approx(min(all_errors), rel=1e-6)
        assert all_errors[int(choice.max_total)] <= min(all_errors) * (1 + 1e-6) + 1e-12
        assert choice.certificate.lower_bound <= min(all_errors) * (1 + 1e-6)
        assert choice.certificate.lower_bound == pytest.approx(min(all_errors), rel=1e-6)
        low, high = find_near_optimal_bounds(problem)
        assert all(all_errors[bound] <= 1.06 * min(all_errors) for bound in range(int(low), int(high) + 1))
        curve = compute_errors(problem, np.arange(len(all_errors)))
        assert curve.measure_error(measure) == pytest.approx(all_errors, rel=1e-6, abs=1e-9)


def test_an_interval_of_whole_noise_holds_95_of_100_releases() -> None:
    problem = problem_of(np.array([1, 1, 2, 9]), Measure.RMSE, NoiseKind.LAPLACE, 1.0)
    low, high = compute_error_interval(problem, 2.0)
    z = np.arange(-200, 201)
    weights = np.exp(-np.abs(z) / 2.0)
    weights /= weights.sum()
    inside = (z - 7 >= low) & (z - 7 <= high)
    assert weights[inside].sum() >= 0.95
    assert weights[(z - 7 > low) & (z - 7 < high)].sum() < 0.95


@pytest.mark.parametrize("program", Program)
def test_a_sum_has_the_scale_of_its_program(program: Program) -> None:
    amounts = Amounts.from_totals(np.array([1.5, 2.0, 7.25]))
    problem = TotalProblem(amounts, 1.0, NoiseKind.GAUSSIAN, 1e-6, Measure.RMSE, program=program)
    by_program = {Program.BIGQUERY: 2.0 * math.sqrt(2.0), Program.OPENDP: 4.5309, Program.TUMULT: 4.5309}
    noise = compute_errors(problem, 10.0).rmse / 10.0
    assert noise == pytest.approx(by_program.get(program, 4.2247), rel=1e-3)


@pytest.mark.thinned
@pytest.mark.parametrize("totals", [[1.0, 2.0, 7.0] * 20, [1.0, -2.0, 7.0] * 20], ids=["positive", "signed"])
@pytest.mark.parametrize("program", Program)
def test_the_methods_name_the_noise_that_the_program_draws(program: Program, totals: list[float]) -> None:
    table = pd.DataFrame({"user": range(60), "amount": totals})
    settings = {"mechanism": "Gaussian", "delta": 1e-6, "program": program.value, "disclosure": "public"}
    answer = ss.sum_bound(table, user="user", value="amount", epsilon=1, **settings)
    methods = str(answer.answer.make_methods().procedure)
    assert ("Laplace" in methods) == (program is Program.BIGQUERY)
    assert ("Gaussian" in methods) == (program is not Program.BIGQUERY)


def test_users_within_a_tenth_take_less_epsilon_where_noise_is_whole() -> None:
    """The variance of whole Laplace noise is 2 a / (1 - a)^2 with a = e^-epsilon; that of real noise 2 / epsilon^2."""
    reached = {
        program: ss.plan_bounds([1] * 50, lines="users within 0.1", epsilon=1.0, program=program.value)
        for program in (Program.OPENDP, Program.PYTHON)
    }
    (whole,), (real,) = (reply.solution.reaching_epsilons for reply in reached.values())
    assert math.sqrt(2.0 * math.exp(-whole)) / (1.0 - math.exp(-whole)) == pytest.approx(0.1, rel=1e-9)
    assert (whole, real) == (pytest.approx(5.31, abs=0.01), pytest.approx(math.sqrt(200.0), rel=1e-9))
