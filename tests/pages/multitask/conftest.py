"""Few generated tasks: the problem, its solution and its answer."""

from __future__ import annotations

import numpy as np
import pytest

from dpcore.answer import Answer, Plot
from dpcore.common.wording import format_number, format_percent
from dpcore.data import samples
from dpcore.multitask import weights as multitask_weights
from dpcore.multitask.answer import MultitaskSolution, build_answer, solve
from dpcore.multitask.experiment import SkewedTasks
from dpcore.multitask.parameters import MultitaskParameters
from dpcore.multitask.problem import (
    Loss,
    PrivacyTarget,
    TaskGraph,
    TaskProblem,
    compute_exact_budget,
    drop_empty_tasks,
)
from dpcore.multitask.sampling import find_best_uniform_sampling
from dpcore.multitask.weights import WeightRule
from dpcore.report import plotly_figures

TARGET = PrivacyTarget(1.0, 1e-5)
SMALL = {"num_users": 400, "num_tasks": 12, "tasks_per_user": 3.0}
WITH_TASKS, WITHOUT = samples.load("shop-events"), samples.load("online-retail-lines")


def build_problem(generator: SkewedTasks, loss: Loss = Loss.STRONGLY_CONVEX) -> TaskProblem:
    pairs = drop_empty_tasks(generator.draw(np.random.default_rng(1)))
    graph = TaskGraph.from_pairs(pairs, generator.num_users)
    return TaskProblem(graph, compute_exact_budget(TARGET), loss)


def build_small_problem(loss: Loss = Loss.STRONGLY_CONVEX) -> TaskProblem:
    return build_problem(SkewedTasks(400, 12, 1.0, 3.0), loss)


def solve_small(dataset=WITHOUT, **changed) -> MultitaskSolution:
    return solve(dataset, MultitaskParameters(**{"epsilon": 1.0, **SMALL, **changed}))


def build_answer_of(solution: MultitaskSolution, data=WITHOUT) -> Answer:
    return build_answer(data, solution.parameters, solution)


def read_trace(plot: Plot, name: str) -> tuple[np.ndarray, np.ndarray]:
    """(x, y) of a trace of this name; bars begin at 1."""
    (plot_trace,) = [trace for trace in plotly_figures.draw_plot(plot).data if trace.name == name]
    y = np.asarray(plot_trace.y, dtype=np.float64)
    return np.asarray(plot_trace.x), y + 1.0 if plot_trace.type == "bar" else y


def assert_answer(answer: Answer, problem: TaskProblem, rule: WeightRule) -> None:
    """Figures and numbers show these weights on these tasks: buckets, weights, and the card's numbers."""
    chosen, uniform = rule.allocate(problem), rule.with_exponent(0.0).allocate(problem)
    drawn = answer.plots["many-tasks-buckets"]()
    name = f"μ = {rule.exponent:g}"
    buckets = multitask_weights.slice_by_size(chosen, uniform)
    bars = f"{name} (whiskers: best to worst task)"
    assert read_trace(drawn, bars)[1] == pytest.approx(
        [b.error_bound_sum / b.reference_error_sum for b in buckets]
    )
    sampled = find_best_uniform_sampling(problem)
    k = round(problem.budget / sampled.task_weights[0] ** 2)
    assert read_trace(drawn, f"Uniform sampling, k = {k:,}")[1] == pytest.approx(
        [b.error_bound_sum / b.reference_error_sum for b in multitask_weights.slice_by_size(sampled, uniform)]
    )
    is_advised = rule.exponent == answer.solution.comparison.recommendation[0]
    weights_name = f"{name} (recommended)" if is_advised else name
    weights = dict(zip(*read_trace(answer.plots["many-tasks-weights"](), weights_name), strict=True))
    for size in np.unique(problem.graph.task_sizes):
        mean = chosen.mean_weights[problem.graph.task_sizes == size].mean() / np.sqrt(problem.budget)
        assert weights[float(size)] == pytest.approx(mean)
    texts = {number.label: number.text for number in answer.numbers}
    assert texts["User budget β"] == format_number(problem.budget)
    used = chosen.budget_uses[problem.graph.tasks_per_user > 0].mean() / problem.budget
    assert texts["Budget used"] == format_percent(float(used))
