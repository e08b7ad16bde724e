"""Problem (9) as written, handed to CVXPY, certified as our own answer is; small graphs only."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import numpy as np

from dpcore.common.certificate import Certificate
from dpcore.common.progress import ShouldStop, never
from dpcore.common.reference import Solved, timed
from dpcore.multitask import exact, weights
from dpcore.multitask.problem import TaskProblem

MOST_PAIRS = 50_000
"""Pairs of a user and a task up to which a general solver ends within some seconds: as many took Clarabel 2 to 4."""


def solve(
    problem: TaskProblem, solver: str = "CLARABEL", **solver_options: object
) -> tuple[Certificate, str]:
    """The least total bound over weights that are one number per task, by a general solver.

    Args:
        problem: The question, with a graph.
        solver: Any solver of CVXPY for second-order cones.
        **solver_options: Handed to it.

    Returns:
        The bound of the solver's weights, scaled so that no user is above the budget, beside what its multipliers
        prove; and how it ended, a sentence. Where it gives no answer, the weights of equation 11 stand in.

    Source: Krichene et al. 2023, problem (9).
    """
    cp: Any = importlib.import_module("cvxpy")  # Heavy, and only partly typed.
    graph = problem.required_graph()
    costs = problem.task_sizes.astype(np.float64) ** -problem.loss.value
    # In units of equation 11, unclipped: entries near 1, where solvers are at their best.
    mu = problem.loss.best_exponent
    unit = (
        weights.power_weights(problem, mu, weights.unclipped(problem, mu)).task_weights ** 2 / problem.budget
    )
    p = cp.Variable(problem.num_tasks)
    limit = graph.matrix.multiply(unit).tocsr() @ p <= 1.0
    in_units = costs / unit / np.sum(costs / unit)
    question = cp.Problem(cp.Minimize(cp.sum(cp.multiply(in_units, cp.inv_pos(p)))), [limit])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "Solution may be inaccurate": the certificate says how much.
        try:
            question.solve(solver=solver, **solver_options)
        except cp.SolverError as error:
            ended = f"{solver} failed ({error}); the weights of equation 11 stand in."
        else:
            ended = f"{solver} ended with “{question.status}”."
    found = np.ones(problem.num_tasks) if p.value is None else np.asarray(p.value)
    squared = unit * np.maximum(found, 1e-9)
    # Onto the budget: what a solver is off by must not pass for a lower value.
    squared *= problem.budget / graph.user_sums(squared).max()
    multipliers = np.zeros(graph.num_users) if limit.dual_value is None else np.asarray(limit.dual_value)
    prices = np.maximum(multipliers, 0.0)
    bound = exact.lower_bound(problem, prices) if np.any(prices > 0.0) else -np.inf
    return Certificate(float(np.sum(costs / squared)), bound, f"the multipliers of {solver}"), ended


def beside(problem: TaskProblem, should_stop: ShouldStop = never) -> tuple[Solved, ...]:
    """Our answer and that of CVXPY with Clarabel, both timed; ours alone where it is stopped before."""
    importlib.import_module("cvxpy")  # Before its clock starts.
    problem.required_graph().user_sums(np.zeros(problem.num_tasks))  # The index too.

    def ours() -> tuple[Certificate, str]:
        allocation = exact.best_task_weights(problem, should_stop=should_stop)
        assert allocation.certificate is not None
        return allocation.certificate, allocation.ended

    mine = timed("Sweet Spot", ours)
    if should_stop():
        return (mine,)
    return mine, timed("CVXPY with Clarabel", lambda: solve(problem, time_limit=60.0))
