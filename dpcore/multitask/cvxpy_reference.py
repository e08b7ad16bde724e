"""Problem (9) solved by CVXPY, and certified in the same way as our own solution; small graphs only."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import numpy as np

from dpcore.common.certificate import Certificate, Solved, solve_timed
from dpcore.common.progress import ShouldStop, never
from dpcore.multitask import exact, weights
from dpcore.multitask.problem import TaskProblem

MAX_PAIRS = 50_000
"""Pairs of a user and a task up to which a general solver ends within some seconds: as many took Clarabel 2 to 4."""


def solve(
    problem: TaskProblem, solver: str = "CLARABEL", **solver_options: object
) -> tuple[Certificate, str]:
    """Minimise the total bound over weights that are one number per task, by a general solver.

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
    graph = problem.require_graph()
    costs = problem.task_sizes.astype(np.float64) ** -problem.loss.value
    # In units of equation 11, unclipped: entries near 1, where solvers are at their best.
    exponent = problem.loss.best_exponent
    unit = (
        weights.allocate_by_power(
            problem, exponent, weights.inflate_for_no_clipping(problem, exponent)
        ).task_weights
        ** 2
        / problem.budget
    )
    p = cp.Variable(problem.num_tasks)
    limit = graph.matrix.multiply(unit).tocsr() @ p <= 1.0
    scaled_costs = costs / unit / np.sum(costs / unit)
    cvxpy_problem = cp.Problem(cp.Minimize(cp.sum(cp.multiply(scaled_costs, cp.inv_pos(p)))), [limit])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "Solution may be inaccurate": the certificate says how much.
        try:
            cvxpy_problem.solve(solver=solver, **solver_options)
        except cp.SolverError as error:
            stop_reason = f"{solver} failed ({error}); the weights of equation 11 stand in."
        else:
            stop_reason = f"{solver} ended with “{cvxpy_problem.status}”."
    solver_weights = np.ones(problem.num_tasks) if p.value is None else np.asarray(p.value)
    squared = unit * np.maximum(solver_weights, 1e-9)
    # Scaled to the budget: a solver's violation of it must not pass for a lower value.
    squared *= problem.budget / graph.sum_by_user(squared).max()
    multipliers = np.zeros(graph.num_users) if limit.dual_value is None else np.asarray(limit.dual_value)
    prices = np.maximum(multipliers, 0.0)
    bound = exact.compute_lower_bound(problem, prices) if np.any(prices > 0.0) else -np.inf
    return Certificate(float(np.sum(costs / squared)), bound, f"the multipliers of {solver}"), stop_reason


def compare_with_cvxpy(problem: TaskProblem, should_stop: ShouldStop = never) -> tuple[Solved, ...]:
    """Compare our solution with that of CVXPY with Clarabel, both timed; return ours alone if it is stopped."""
    importlib.import_module("cvxpy")  # Before its clock starts.
    problem.require_graph().sum_by_user(np.zeros(problem.num_tasks))  # The index too.

    def solve_ours() -> tuple[Certificate, str]:
        """Solve by our own method."""
        allocation = exact.find_best_task_weights(problem, should_stop=should_stop)
        assert allocation.certificate is not None
        return allocation.certificate, allocation.stop_reason

    own_result = solve_timed("Sweet Spot", solve_ours)
    if should_stop():
        return (own_result,)
    return own_result, solve_timed("CVXPY with Clarabel", lambda: solve(problem, time_limit=60.0))
