"""Fits, and what each may be held against: by constraint, by optimum, by Cauchy and Schwarz."""

import numpy as np
import pytest

from dpcore.common.certificate import Certificate
from dpcore.multitask import exact, weights
from dpcore.multitask.problem import Loss, TaskProblem
from dpcore.multitask.weights import BudgetFit, WeightRule, allocate_by_power, allocate_normalised
from tests.dpcore.multitask.conftest import allocate_unclipped, build_problem

BUDGET = 0.3


@pytest.mark.thinned
@pytest.mark.parametrize("fit", BudgetFit)
@pytest.mark.parametrize("exponent", [0.0, 0.25, 0.5, 1.0])
def test_no_fit_exceeds_a_users_budget(random_graph, fit: BudgetFit, exponent: float) -> None:
    problem = TaskProblem(random_graph(2, 60, 8), BUDGET)
    budget_uses = WeightRule(exponent, fit).allocate(problem).budget_uses
    assert np.all(budget_uses <= BUDGET)
    has_task = problem.graph.tasks_per_user > 0
    if fit is BudgetFit.FULL:
        assert budget_uses[has_task] == pytest.approx(BUDGET)
    if fit is BudgetFit.NOBODY_CLIPPED:
        assert budget_uses.max() == pytest.approx(BUDGET)


def test_fits_are_those_of_the_weights_module(random_graph) -> None:
    problem = TaskProblem(random_graph(5, 40, 7), BUDGET)
    clipped, full = WeightRule(0.5).allocate(problem), WeightRule(0.5, BudgetFit.FULL).allocate(problem)
    assert clipped.compute_pair_weights() == pytest.approx(
        allocate_by_power(problem, 0.5).compute_pair_weights()
    )
    assert full.compute_pair_weights() == pytest.approx(
        allocate_normalised(problem, 0.5).compute_pair_weights()
    )
    # c = C log n with C = 1 / log n is c = 1.
    same = WeightRule(0.5, BudgetFit.LOGARITHMIC, 1.0 / np.log(40)).allocate(problem)
    assert same.compute_pair_weights() == pytest.approx(clipped.compute_pair_weights())
    # Four times the c halves every weight before clipping.
    four = WeightRule(0.5, BudgetFit.LOGARITHMIC, 4.0 / np.log(40)).allocate(problem)
    assert four.task_weights == pytest.approx(clipped.task_weights / 2.0)


@pytest.mark.thinned
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("loss", Loss)
def test_each_fit_is_above_the_optimum_of_its_kind(random_graph, seed: int, loss: Loss) -> None:
    problem = TaskProblem(random_graph(seed, 50, 7), BUDGET, loss)
    same = exact.find_best_task_weights(problem, 1e-6).total_bound
    anything = exact.find_best_user_task_weights(problem, 1e-6).total_bound
    assert anything <= same * (1.0 + 1e-6)
    for fit in BudgetFit:
        for exponent in (0.0, loss.best_exponent, 1.0):
            total = WeightRule(exponent, fit).allocate(problem).total_bound
            assert total >= (same if fit.clips_nobody else anything) * (1.0 - 1e-6)


def test_clipped_weights_can_beat_the_optimum_that_clips_nobody(graph_of) -> None:
    # One user has all of 9 tasks and 9 have one each. Problem (9) gives every task beta / 9, for the heavy user's
    # sake: W = 2 sqrt(beta / 9), a total of 9 * 2 / W^2 = 40.5 / beta. With c = 1 a light user keeps
    # omega^2 = 10 beta / 18, more than sqrt(beta) / 3, and the heavy one is scaled down to beta / 9 a task:
    # W = (sqrt(10 / 18) + 1 / 3) sqrt(beta).
    problem = TaskProblem(graph_of(np.vstack((np.ones(9), np.eye(9)))), BUDGET)
    best = exact.find_best_task_weights(problem, 1e-8).total_bound
    assert best == pytest.approx(40.5 / BUDGET)
    clipped = WeightRule(0.5, BudgetFit.CLIPPED).allocate(problem).total_bound
    assert clipped == pytest.approx(18.0 / (np.sqrt(10.0 / 18.0) + 1.0 / 3.0) ** 2 / BUDGET)
    assert clipped < best


@pytest.mark.parametrize("loss", Loss)
def test_certificate_on_average(loss: Loss) -> None:
    sizes = np.array([1, 4, 4, 9, 30, 77])
    problem = build_problem(sizes, 100, BUDGET, loss)
    for exponent in (0.0, 0.3, 1.0):
        proof = weights.certify_on_average(problem, exponent)
        assert proof.value == pytest.approx(allocate_unclipped(problem, exponent).total_bound)
        assert proof.relative_gap > 0.01
    assert weights.certify_on_average(problem, loss.best_exponent).proves(1e-12)
    # No weights that spend the average user's budget go below.
    rng = np.random.default_rng(3)
    for _ in range(200):
        squared = rng.exponential(size=sizes.size)
        squared *= 100 * BUDGET / (sizes @ squared)
        Certificate(float(np.sum(sizes ** -float(loss.gamma) / squared)), proof.lower_bound, "")
