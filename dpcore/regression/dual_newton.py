"""Newton's method on the dual: exact within a few steps where sampling noise counts, a warm start where not.

The dual of `dpcore.regression.dual` is a concave, once differentiable, piecewise quadratic function of the
d x d matrix M, with gradient E - A^T W(M). One step costs one pass over the data whatever the number of
non-zero entries, so it is the method of choice where C is dense. Where privacy noise rules (a m small), it is
nearly piecewise linear and Newton stalls; then the problem is smoothed by a larger a, whose solution says
which entries matter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpcore.contributions import FloatArray, IntArray
from dpcore.regression.dual import PricedEntries, price
from dpcore.regression.whitening import Whitened

CHUNK = 2_000_000
"""Numbers held at a time while the users' part of the Hessian is added up: 16 MB."""


@dataclass(frozen=True, eq=False)
class DualPoint:
    """A point of the ascent.

    Attributes:
        m: M, scaled by its best factor.
        priced: Prices and multipliers there.
        gradient: E - A^T W(M), shape (d, d).
        missing: Its largest entry relative to the largest of E: 0 at the optimum.
    """

    m: FloatArray
    priced: PricedEntries
    gradient: FloatArray
    missing: float


def _user_part(rows: FloatArray, owners: IntArray, signs: FloatArray, weights: FloatArray) -> FloatArray:
    """Return sum_l weight_l u_l u_l^T with u_l the signed sum of the user's rows per column, d^2 long.

    Args:
        rows: Rows that any entry uses, shape (k, d), grouped by owner.
        owners: Owner of each, ascending, shape (k,).
        signs: -1, 0 or 1 per entry, shape (k, d).
        weights: Per user, shape (m,); users with weight 0 are passed over.
    """
    d = rows.shape[1]
    total = np.zeros((d * d, d * d))
    weighted_rows = np.flatnonzero(weights[owners] > 0.0)
    starts = weighted_rows[np.flatnonzero(np.diff(owners[weighted_rows], prepend=-1))]
    per_chunk = max(CHUNK // (d * d), 1)
    for first in range(0, starts.size, per_chunk):
        begins = starts[first : first + per_chunk]
        end = starts[first + per_chunk] if first + per_chunk < starts.size else owners.size
        chunk_rows = np.arange(begins[0], end)
        chunk_rows = chunk_rows[weights[owners[chunk_rows]] > 0.0]
        chunk_starts = np.flatnonzero(np.diff(owners[chunk_rows], prepend=-1))
        u = np.empty((chunk_starts.size, d, d))
        for j in range(d):
            u[:, j] = np.add.reduceat(rows[chunk_rows] * signs[chunk_rows, j, None], chunk_starts, axis=0)
        flat = u.reshape(chunk_starts.size, d * d)
        total += flat.T @ (flat * weights[owners[begins], None])
    return total


def hessian(whitened: Whitened, trade_off: float, priced: PricedEntries) -> FloatArray:
    """Return the generalised Hessian of Q at M, times 2 a; M is read column after column, shape (d^2, d^2).

    W(M) moves with M directly, through the multipliers (lambda_l has 1/p_l of a change in the sum of its
    p_l entries) and through theta, which all binding users share. A binding user with one entry cancels out.
    """
    d = priced.prices.shape[1]
    used_rows, row = np.unique(priced.entries // d, return_inverse=True)
    rows, owners = whitened.rows[used_rows], whitened.users[used_rows]
    num_entries = np.bincount(owners[row], minlength=whitened.starts.size)
    binding = (priced.multipliers > 0.0) & (num_entries > 0)
    share = np.where(binding, 1.0 / np.maximum(num_entries, 1), 0.0)
    signs = np.zeros((used_rows.size, d))
    signs[row, priced.entries % d] = np.sign(priced.prices.ravel()[priced.entries])
    shared = (rows.T @ (signs * share[owners, None])).T.ravel()
    # A binding user with one entry: u u^T is taken off what A^T A has of it, whole. Only now, as through theta it
    # counts in `shared` still.
    lone = binding & (num_entries == 1)
    signs[lone[owners]] = 0.0
    total = np.zeros((d * d, d * d))
    for j in range(d):
        a = rows[np.flatnonzero(signs[:, j])]
        total[j * d : (j + 1) * d, j * d : (j + 1) * d] = a.T @ a
    total -= _user_part(rows, owners, signs, np.where(lone, 0.0, share))
    # theta = a sum of lambda_l, and lambda_l falls by 1/p_l of a rise in theta, so that d theta = a <shared, dM> / (1 +
    # a sum of 1/p_l); what lambda_l falls by goes to the user's entries.
    total += trade_off / (1.0 + trade_off * float(share.sum())) * np.outer(shared, shared)
    return total


def _point(whitened: Whitened, trade_off: float, m: FloatArray) -> DualPoint:
    priced = price(whitened, trade_off, m)
    scale = priced.best_scale
    if scale > 0.0 and abs(scale - 1.0) > 1e-15:
        # Everything is homogeneous in M: no second pass over the data.
        m = m * scale
        priced = PricedEntries(
            prices=priced.prices * scale,
            multipliers=priced.multipliers * scale,
            excess=priced.excess * scale,
            entries=priced.entries,
            excesses=priced.excesses * scale,
            reward=priced.reward * scale,
            penalty=priced.penalty * scale**2,
        )
    gradient = whitened.target - priced.candidate_total(whitened, trade_off)
    return DualPoint(m, priced, gradient, float(np.abs(gradient).max() / np.abs(whitened.target).max()))


def ascend(
    whitened: Whitened, trade_off: float, m: FloatArray, steps: int, is_settled: Callable[[DualPoint], bool]
) -> DualPoint:
    """Take Newton steps from M on, with a damping that is raised until the dual rises.

    Args:
        whitened: The data.
        trade_off: a > 0.
        m: Where to start, shape (d, d); its scale does not matter.
        steps: At most so many steps.
        is_settled: Called at every point; ends the ascent by returning True.

    Returns:
        The last, hence highest, point.
    """
    d = whitened.rows.shape[1]
    point = _point(whitened, trade_off, m)
    damping = 1e-8
    for _ in range(steps):
        if is_settled(point):
            break
        curvature = hessian(whitened, trade_off, point.priced) / (2.0 * trade_off)
        size = float(np.diag(curvature).max())
        if not size > 0.0:  # One entry per user, all of them binding: nothing to learn from here.
            break
        higher = None
        # Each try costs a pass over the data; twelve span as many orders of magnitude of damping.
        for _ in range(12):
            damped = curvature + damping * size * np.eye(d * d)
            # Columns of M one after the other, as the Hessian has them.
            step = np.linalg.solve(damped, point.gradient.T.ravel()).reshape(d, d).T
            # The quadratic model gains half of gradient times step, and more where it is damped.
            hoped = float(np.vdot(point.gradient, step)) / 2.0
            next_point = _point(whitened, trade_off, point.m + step)
            gain = next_point.priced.lower_bound - point.priced.lower_bound
            # Where the dual no longer tells two points apart, its gradient still does.
            rounded = abs(gain) <= 1e-12 * point.priced.lower_bound and next_point.missing < point.missing
            if gain > 1e-4 * hoped > 0.0 or rounded:
                higher = next_point
                break
            damping *= 10.0
        if higher is None:
            break
        # As Levenberg and Marquardt: trust the quadratic model more where it kept its promise, less where not.
        damping = max(damping / 10.0, 1e-14) if gain > 0.5 * hoped else damping * 2.0
        point = higher
    return point
