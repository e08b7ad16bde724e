"""The paper's own way: the problem as written, handed to CVXPY, certified by the same module as ours."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import numpy as np

from dpcore.common.certificate import Certificate, Solved, solve_timed
from dpcore.common.progress import ShouldStop, never
from dpcore.regression import working_set
from dpcore.regression.estimate import LinearEstimate, evaluate
from dpcore.regression.problem import RegressionProblem

MOST_ENTRIES = 60_000
"""Entries of C up to which a general solver ends within some seconds: 30,000 took Clarabel 4."""


def solve(problem: RegressionProblem, solver: str = "CLARABEL", **solver_options: object) -> LinearEstimate:
    """Return the linear unbiased estimator of least total variance, by a general solver; small problems only.

    Args:
        problem: The question.
        solver: Any solver of CVXPY for second-order cones or quadratic programs; the paper used ``SCS``.
        **solver_options: Handed to it.

    Returns:
        The solver's C made feasible by C + (I - C X)(X^T X)^-1 X^T, and a bound from its own multipliers.
        Where it gives no answer, ordinary least squares stands in and ``stop_reason`` says so.

    Source: Epasto et al. 2020, theorem 6 and appendix E.1.2.
    """
    from scipy.sparse import csr_array

    cp: Any = importlib.import_module("cvxpy")  # Heavy, and only partly typed.
    n, d = problem.features.shape
    whitened = problem.whitened
    users = np.empty(n, dtype=np.int64)
    users[whitened.order] = whitened.users
    owns = csr_array((np.ones(n), (np.arange(n), users)), shape=(n, problem.num_users))
    c = cp.Variable((d, n))
    unbiased = c @ problem.features == np.eye(d)
    largest = cp.max(cp.sum(cp.abs(c), axis=0) @ owns)
    loss = problem.residual_variance * cp.sum_squares(c) + problem.unit_noise * cp.square(largest)
    question = cp.Problem(cp.Minimize(loss), [unbiased])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "Solution may be inaccurate": the certificate says how much.
        try:
            question.solve(solver=solver, **solver_options)
        except cp.SolverError as error:
            stop_reason = f"{solver} failed ({error}); ordinary least squares stands in."
        else:
            stop_reason = f"{solver} ended with “{question.status}”."
    weights = np.zeros((d, n)) if c.value is None else np.asarray(c.value)
    multipliers = np.zeros((d, d)) if unbiased.dual_value is None else np.asarray(unbiased.dual_value)
    w = whitened.repaired(whitened.sorted(weights))
    # CVXPY adds <Y, C X - I> to the loss where we subtract <M, X^T C^T - I>; X = A R takes M to R M.
    dual = -whitened.triangle @ multipliers.T
    return evaluate(problem, whitened.original(w), dual, f"CVXPY with {solver}", stop_reason)


def compare_solvers(problem: RegressionProblem, should_stop: ShouldStop = never) -> tuple[Solved, ...]:
    """Solve with our search and with CVXPY and Clarabel, both timed; ours alone where it is stopped before."""
    importlib.import_module("cvxpy")  # Before its clock starts.
    _ = problem.whitened

    def proof(estimate: LinearEstimate) -> tuple[Certificate, str]:
        return estimate.certificate, estimate.stop_reason

    own_result = solve_timed("Sweet Spot", lambda: proof(working_set.solve(problem, should_stop=should_stop)))
    if should_stop():
        return (own_result,)
    return own_result, solve_timed("CVXPY with Clarabel", lambda: proof(solve(problem, time_limit=60.0)))
