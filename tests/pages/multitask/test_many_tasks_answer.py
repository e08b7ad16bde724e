"""Multi-task weights: the card and the figures of an answer, as pure functions."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from dpcore.common.privacy import Disclosure
from dpcore.common.wording import format_digits, format_entered, format_percent
from dpcore.multitask.answer import plots, words
from dpcore.multitask.answer.words import format_change
from dpcore.multitask.problem import Loss, TaskProblem, compute_exact_budget
from dpcore.multitask.sampling import allocate_uniform_sampling
from dpcore.multitask.weights import BudgetFit, WeightRule
from dpcore.report import plotly_figures
from tests.pages.driving import read_answer
from tests.pages.multitask.conftest import (
    TARGET,
    assert_answer,
    build_answer_of,
    build_small_problem,
    solve_small,
)


def compute_ratio(problem: TaskProblem, rule: WeightRule) -> float:
    """Total bound against uniform weights."""
    power = 0.5 if problem.loss is Loss.CONVEX else 1.0
    return (
        rule.allocate(problem).total_bound / rule.with_exponent(0.0).allocate(problem).total_bound
    ) ** power


@pytest.mark.thinned
@pytest.mark.parametrize("fit", BudgetFit)
@pytest.mark.parametrize("kind", Loss)
def test_every_fit_and_loss(fit, kind):
    answer = build_answer_of(solve_small(fit=fit, loss=kind, exponent=0.25, log_constant=0.5))
    assert_answer(answer, build_small_problem(kind), WeightRule(0.25, fit, 0.5))
    reads = "depends on who contributed to which task" in answer.detail
    assert reads == (fit is BudgetFit.NOBODY_CLIPPED)


def test_what_is_good_enough_is_recommended_and_else_the_best():
    problem = build_small_problem()
    tried_values = np.linspace(0.0, 1.0, 41)
    totals = np.array([compute_ratio(problem, WeightRule(float(mu))) for mu in tried_values])
    best = float(tried_values[np.argmin(totals)])
    near = tried_values[totals <= 1.05 * totals.min()]
    for mu in (*tried_values[::8], best):
        solution = solve_small(exponent=float(mu))
        one = build_answer_of(solution)
        expected = float(mu) if compute_ratio(problem, WeightRule(float(mu))) <= 1.05 * totals.min() else best
        assert solution.comparison.recommendation[0] == expected
        assert one.numbers[1].text_to_copy == format_digits(expected)
        assert (f"are for your μ = {words.format_exponent(float(mu))}" in one.detail) == (expected != mu)
        assert (
            f"μ from {format_entered(near[0])} to {format_entered(near[-1])} are within 5" in one.near_optimal
        )
        ratio = compute_ratio(problem, WeightRule(expected))
        assert one.numbers[0].text == f"−{format_percent(1.0 - ratio)}"
        assert one.error == pytest.approx(ratio)
        weight = {0.5: "1/√n", 1.0: "1/n"}.get(expected, f"n to the power −{format_entered(expected)}")
        assert one.headline == f"Weight a task of n users by {weight}: small tasks weigh more."
    # Two stretches that are good enough: only the one around the best counts.
    curve = replace(
        solution.comparison.exponent_curve,
        exponents=np.arange(5.0),
        relative_totals=np.array([1.0, 2.0, 1.03, 0.99, 2.0]),
    )
    assert curve.near_optimal == (2.0, 3.0)
    assert replace(curve, relative_totals=np.array([1.0, 1.1, 1.2, 1.3, 1.4])).near_optimal == (0.0, 0.0)


def test_an_own_sampling_is_compared():
    problem = build_small_problem()
    ratio = allocate_uniform_sampling(problem, 2).total_bound / WeightRule(0.0).allocate(problem).total_bound
    sentence = f"Your sampling: 2 tasks per user: total bound {format_change(ratio)}"
    assert sentence in read_answer(build_answer_of(solve_small(max_tasks=2)))


def test_few_tasks_have_few_buckets():
    only = build_answer_of(solve_small(num_tasks=1, tasks_per_user=1.0))
    assert only.headline == "Give the only task every user's whole budget."
    three = read_answer(build_answer_of(solve_small(num_tasks=3, tasks_per_user=1.5)))
    assert "The smallest task" in three
    assert "tail fifth" not in three


def test_users_budget_use():
    comparison, problem = solve_small().comparison, build_small_problem()
    graph = problem.graph
    use = plots.plot_budget_use(comparison)
    for name, mu in (("μ = 0.5", 0.5), ("Uniform weights", 0.0)):
        used = WeightRule(mu).allocate(problem).budget_uses[graph.tasks_per_user > 0] / problem.budget
        (shares,) = [np.asarray(item.y) for item in use.items if item.name == name]
        assert shares.sum() == pytest.approx(1.0)
        assert shares[-1] == pytest.approx(np.mean(used >= 0.95 - 1e-9))


def test_a_long_table_keeps_both_ends():
    solution = solve_small(num_tasks=50, num_users=500, tasks_per_user=5.0)
    columns, left_out = plots.tabulate_tasks(solution, 10)
    ordered = np.sort(solution.comparison.problem.graph.task_sizes)
    assert left_out == ordered.size - 10
    assert columns["Users"].tolist() == [*ordered[:5], *ordered[-5:]]
    assert columns["Weight, mean"] == pytest.approx(
        np.sqrt(compute_exact_budget(TARGET)) * solution.comparison.allocation.mean_weights[columns["Task"]]
    )


@pytest.mark.parametrize("count", [100, 5_000])
def test_every_task_is_in_the_figure_of_sizes_and_of_very_many_all_in_its_file(count):
    sizes = np.random.default_rng(2).integers(1, 10**6, count)
    tasks = SimpleNamespace(graph=SimpleNamespace(task_sizes=sizes), disclosure=Disclosure.PUBLIC)
    complete, few = plots.plot_sizes(tasks, file_has_all_tasks=True), plots.plot_sizes(tasks)
    assert list(complete.columns["rank"]) == list(range(1, count + 1))
    ordered = sorted(sizes, reverse=True)
    assert list(complete.columns["users"]) == ordered
    (line,) = plotly_figures.draw_plot(complete).data
    # A report holds what is drawn: it stays small.
    assert list(line.x) == list(few.columns["rank"])
    if count <= 3_000:
        assert list(line.x) == list(complete.columns["rank"])
    else:
        assert 300 < len(line.x) <= 3_000
        assert (line.x[0], line.x[-1]) == (1, count)
    assert list(line.y) == [ordered[int(rank) - 1] for rank in line.x]
