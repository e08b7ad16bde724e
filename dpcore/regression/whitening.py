"""Rows sorted by user, and the constraint C X = I in coordinates where it is well conditioned.

Only the constraint is whitened. The objective counts |c_ij| and c_ij^2 in the coordinates of the coefficients
and is not invariant. With X = A R (R upper triangular, A^T A = n I) and W = C^T,

    C X = I   <=>   X^T W = I   <=>   A^T W = E,  E = R^-T,

so W keeps its meaning and nothing has to be undone but the multipliers of the constraint.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcore.contributions import FloatArray, IntArray

RANK_TOLERANCE = 1e-8
"""Columns, scaled to equal length, whose smallest singular value is relatively below this are dependent: C X
could not be brought within 1e-9 of I beyond."""


@dataclass(frozen=True, eq=False)
class Whitened:
    """The problem as the solvers see it. Everything called W here is C^T in this order of rows.

    Attributes:
        order: Positions in the original data of the sorted rows, shape (n,).
        starts: Where each user's rows begin, shape (m,).
        sizes: Rows of each user, shape (m,).
        users: User 0 .. m - 1 of each sorted row, ascending, shape (n,).
        rows: A, shape (n, d), with A^T A = n I.
        target: E, shape (d, d): the constraint is A^T W = E.
        triangle: R, shape (d, d).
        units: Root mean square of each feature, shape (d,), in its unit.
        condition: Condition number of X with its columns scaled to equal length; infinite where dependent.
    """

    order: IntArray
    starts: IntArray
    sizes: IntArray
    users: IntArray
    rows: FloatArray
    target: FloatArray
    triangle: FloatArray
    units: FloatArray
    condition: float

    def per_user(self, per_row: FloatArray) -> FloatArray:
        """Sum over each user's rows, shape (m, ...)."""
        return np.asarray(np.add.reduceat(per_row, self.starts, axis=0))

    def largest_user_weight(self, w: FloatArray) -> float:
        """max_l sum_{i in S_l, j} |w_ij|."""
        # A user's entries lie side by side: one pass, several times faster than row sums first.
        return float(np.add.reduceat(np.abs(w).ravel(), self.starts * w.shape[1]).max())

    def objective(self, w: FloatArray, trade_off: float) -> float:
        """Return a sum w^2 + (largest user weight)^2, without a check that W is feasible."""
        return trade_off * float(np.vdot(w, w)) + self.largest_user_weight(w) ** 2

    def residual(self, w: FloatArray) -> float:
        """Return the largest entry of C X - I, each taken in the features' own units (root mean squares)."""
        off = (self.rows.T @ w - self.target).T @ self.triangle
        return float(np.max(np.abs(off) * (self.units[:, None] / self.units[None, :])))

    def ordinary(self) -> FloatArray:
        """Ordinary least squares, W = X (X^T X)^-1 = A E / n."""
        return np.asarray(self.rows @ (self.target / self.rows.shape[0]))

    def original(self, w: FloatArray) -> FloatArray:
        """C in the original order of rows, shape (d, n)."""
        c = np.empty((w.shape[1], w.shape[0]))
        c[:, self.order] = w.T
        return c

    def sorted(self, c: FloatArray) -> FloatArray:
        """W = C^T in the sorted order of rows."""
        return np.ascontiguousarray(c[:, self.order].T)

    def repaired(self, w: FloatArray) -> FloatArray:
        """Return the nearest feasible W: C + (I - C X) (X^T X)^-1 X^T.

        Where little is missing it is made up on the non-zero entries alone, so that a sparse W stays sparse;
        otherwise (or where they do not suffice) over all rows.
        """
        missing = self.target - self.rows.T @ w
        scale = np.maximum(np.abs(self.target).max(axis=0), np.finfo(float).tiny)
        if float(np.max(np.abs(missing) / scale)) < 1e-6:
            w = self._repaired_on_support(w, missing)
            missing = self.target - self.rows.T @ w
            if float(np.max(np.abs(missing) / scale)) < 1e-13:
                return w
        # A^T A = n I: the pseudo-inverse of A^T is A / n.
        for _ in range(2):  # The second pass removes the rounding of the first.
            w = w + self.rows @ ((self.target - self.rows.T @ w) / self.rows.shape[0])
        return w

    def _repaired_on_support(self, w: FloatArray, missing: FloatArray) -> FloatArray:
        w = w.copy()
        for j in range(w.shape[1]):
            support = np.flatnonzero(w[:, j])
            # The support may have fewer independent rows than there are columns: least squares then makes up what it
            # can.
            a = self.rows[support]
            for _ in range(2):
                w[support, j] += a @ np.linalg.lstsq(a.T @ a, missing[:, j], rcond=1e-12)[0]
                missing[:, j] = self.target[:, j] - a.T @ w[support, j]
        return w


def whiten(features: FloatArray, user_codes: IntArray) -> Whitened:
    """Sort rows by user and factor X = A R by QR with columns first scaled to equal length."""
    n, d = features.shape
    _, users = np.unique(user_codes, return_inverse=True)
    order = np.argsort(users, kind="stable")
    users = users[order].astype(np.int64)
    starts = np.flatnonzero(np.diff(users, prepend=-1))
    units = _root_mean_squares(features)
    q, r = np.linalg.qr(features[order] / (units * np.sqrt(n)))
    singular = np.linalg.svd(r, compute_uv=False)
    condition = float(singular[0] / singular[-1]) if singular[-1] > 0.0 else np.inf
    # Dependent columns are refused by their names once the problem is put together; until then there is no E.
    inverse = np.linalg.inv(r) if condition < 1.0 / RANK_TOLERANCE else np.full((d, d), np.nan)
    return Whitened(
        order=order,
        starts=starts,
        sizes=np.diff(starts, append=n),
        users=users,
        rows=q * np.sqrt(n),
        target=np.ascontiguousarray((inverse / units[:, None]).T),
        triangle=r * units,
        units=units,
        condition=condition,
    )


def _root_mean_squares(features: FloatArray) -> FloatArray:
    """Return the root of the mean square of each column, without overflow; 1 for a column of zeros."""
    largest = np.abs(features).max(axis=0)
    largest = np.where(largest > 0.0, largest, 1.0)
    mean_squares = np.mean((features / largest) ** 2, axis=0)
    return np.asarray(largest * np.sqrt(np.where(mean_squares > 0.0, mean_squares, 1.0)))


def dependent_columns(features: FloatArray) -> list[int]:
    """Return the columns that the others already span, by QR with pivoting on columns scaled to equal length."""
    from scipy.linalg import qr

    r, pivots = qr(np.linalg.qr(features / _root_mean_squares(features), mode="r"), mode="r", pivoting=True)
    diagonal = np.abs(np.diag(r))
    small = diagonal <= 10.0 * RANK_TOLERANCE * diagonal[0]
    small[-1] = True  # Asked only where the condition number is too large: the last pivot is one in any case.
    return sorted(int(j) for j in pivots[small])
