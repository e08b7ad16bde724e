"""The problem restricted to a few entries of C, solved by Clarabel, called directly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcore.common.progress import ShouldStop, never
from dpcore.contributions import FloatArray, IntArray
from dpcore.regression.whitening import Whitened

TOLERANCE = 1e-11
"""Relative gap and feasibility asked of Clarabel; what it reached is judged by the certificate alone."""


@dataclass(frozen=True, eq=False)
class Restricted:
    """Solution of a restricted problem.

    Attributes:
        w: W = C^T, sorted rows, zero outside the given entries, shape (n, d).
        dual: M, shape (d, d).
        multipliers: lambda of the users, 0 for those without entries, shape (m,).
        sound: Whether Clarabel returned finite numbers and did not call the problem infeasible.
        status: Clarabel's own word, for the record.
    """

    w: FloatArray
    dual: FloatArray
    multipliers: FloatArray
    sound: bool
    status: str


def solve_restricted(
    whitened: Whitened,
    trade_off: float,
    entries: IntArray,
    signs: FloatArray,
    scale: float,
    should_stop: ShouldStop = never,
) -> Restricted:
    """Minimise a sum v^2 + t^2 over v >= 0 with w = sign v on the given entries and 0 elsewhere.

    Args:
        whitened: The data.
        trade_off: a, at least 0.
        entries: Flat positions i d + j, shape (k,); an entry may stand twice, once with each sign.
        signs: 1 or -1 each, shape (k,).
        scale: The expected t; v is counted in it, so that Clarabel sees numbers near 1.
        should_stop: Asked at every iteration; stopping leaves an unsound solution.
    """
    import clarabel  # type: ignore[import-untyped]
    from scipy.sparse import block_array, csc_array, diags_array

    n, d = whitened.rows.shape
    k = entries.size
    rows, columns = entries // d, entries % d
    users, user_rank = np.unique(whitened.users[rows], return_inverse=True)
    # A^T W = E, column after column: line j d + r, one sparse column of d numbers per entry.
    lines = columns[:, None] * d + np.arange(d)
    picked = whitened.rows[rows] * signs[:, None]
    equalities = csc_array((picked.ravel(), lines.ravel(), np.arange(k + 1) * d), shape=(d * d, k))
    sums = csc_array((np.ones(k), (user_rank, np.arange(k))), shape=(users.size, k))
    constraints = block_array(
        [
            [equalities, csc_array((d * d, 1))],
            [sums, csc_array(np.full((users.size, 1), -1.0))],
            [diags_array(np.full(k, -1.0)), csc_array((k, 1))],
        ],
        format="csc",
    )
    limits = np.concatenate((whitened.target.T.ravel() / scale, np.zeros(users.size + k)))
    curvature = diags_array(np.append(np.full(k, 2.0 * trade_off), 2.0)).tocsc()
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_rel = settings.tol_gap_abs = settings.tol_feas = TOLERANCE
    cones = [clarabel.ZeroConeT(d * d), clarabel.NonnegativeConeT(users.size + k)]
    solver = clarabel.DefaultSolver(curvature, np.zeros(k + 1), constraints, limits, cones, settings)
    if should_stop is not never:
        solver.set_termination_callback(lambda _: should_stop())
    solution = solver.solve()
    v, z = np.array(solution.x), np.array(solution.z)
    sound = bool(np.all(np.isfinite(v)) and np.all(np.isfinite(z))) and "Infeasible" not in str(
        solution.status
    )
    w = np.zeros((n, d))
    multipliers = np.zeros(whitened.starts.size)
    if not sound:
        return Restricted(w, np.zeros((d, d)), multipliers, False, str(solution.status))
    # What interior points leave at the border counts as 0: C stays sparse, and the repair makes up for it.
    values = np.where(v[:k] > 1e-9 * max(float(v[k]), 0.0), v[:k], 0.0)
    np.add.at(w, (rows, columns), signs * values * scale)
    # The objective was counted in scale^2 and the constraints in scale, so multipliers in their ratio. Clarabel's z has
    # P x + A^T z = 0: for the equalities that is -M.
    multipliers[users] = z[d * d : d * d + users.size] * scale
    dual = -z[: d * d].reshape(d, d).T * scale
    return Restricted(w, dual, multipliers, True, str(solution.status))
