"""A linear regression with private labels as a problem: features, owners, noise, and its constraint.

Rows are sorted by user, and the constraint C X = I stands in coordinates where it is well conditioned. The constraint
alone is whitened. The objective counts |c_ij| and c_ij^2 in the coordinates of the coefficients and is not invariant.
With X = A R (R upper triangular, A^T A = n I) and W = C^T,

    C X = I   <=>   X^T W = I   <=>   A^T W = E,  E = R^-T,

so W keeps its meaning and nothing has to be undone but the multipliers of the constraint.
"""

from __future__ import annotations

import copy
import hashlib
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcore.common.checks import Problems
from dpcore.common.privacy import Disclosure, LaplaceNoise
from dpcore.contributions import ByDigest, ContributionHistogram, FloatArray, IntArray
from dpcore.data import design_matrix
from dpcore.data.design_matrix import Design
from dpcore.data.tables import Table
from dpcore.dataset import Dataset, LabelledRows

RANK_TOLERANCE = 1e-8
"""Smallest over largest singular value below which columns are dependent: C X could not be brought within 1e-9 of I."""


@dataclass(frozen=True, eq=False)
class Whitened:
    """The rows sorted by user and rescaled, as the solvers need them.

    W always stands for C^T with its rows in this order.

    Attributes:
        row_order: Positions in the original data of the sorted rows, shape (n,).
        starts: Where each user's rows begin, shape (m,).
        sizes: Rows of each user, shape (m,).
        row_users: User 0 .. m - 1 of each sorted row, ascending, shape (n,).
        row_matrix: A, shape (n, d), with A^T A = n I.
        constraint_target: E, shape (d, d): the constraint is A^T W = E.
        triangular_factor: R, shape (d, d).
        feature_scales: Root mean square of each feature, shape (d,), in its unit.
        condition_number: That of X with its columns scaled to equal length; infinite where dependent.
    """

    row_order: IntArray
    starts: IntArray
    sizes: IntArray
    row_users: IntArray
    row_matrix: FloatArray
    constraint_target: FloatArray
    triangular_factor: FloatArray
    feature_scales: FloatArray
    condition_number: float

    def sum_per_user(self, row_values: FloatArray) -> FloatArray:
        """Sum sorted row values over the rows of each user, shape (m, ...)."""
        return np.asarray(np.add.reduceat(row_values, self.starts, axis=0))

    def find_largest_user_weight(self, w: FloatArray) -> float:
        """Return max_l sum_{i in S_l, j} |w_ij|, the largest sum of a user's absolute weights."""
        # A user's entries lie side by side: one pass, several times faster than row sums first.
        return float(np.add.reduceat(np.abs(w).ravel(), self.starts * w.shape[1]).max())

    def evaluate_objective(self, w: FloatArray, trade_off: float) -> float:
        """Return a sum w^2 + (largest user weight)^2; W is not checked to be feasible."""
        return trade_off * float(np.vdot(w, w)) + self.find_largest_user_weight(w) ** 2

    def solve_least_squares(self) -> FloatArray:
        """Return the W of ordinary least squares on all rows, X (X^T X)^-1 = A E / n, shape (n, d)."""
        return np.asarray(self.row_matrix @ (self.constraint_target / self.row_matrix.shape[0]))

    def restore_order(self, w: FloatArray) -> FloatArray:
        """Return C = W^T with its columns in the original order of rows, shape (d, n)."""
        c = np.empty((w.shape[1], w.shape[0]))
        c[:, self.row_order] = w.T
        return c

    def sort_rows(self, c: FloatArray) -> FloatArray:
        """Return W = C^T with its rows in the sorted order, shape (n, d)."""
        return np.ascontiguousarray(c[:, self.row_order].T)

    def repair(self, w: FloatArray) -> FloatArray:
        """Return a feasible W close to the given one.

        If little is missing, only non-zero entries are changed, so that a sparse W stays sparse. Otherwise, or if
        these do not suffice, all entries are: this is the nearest feasible W, C + (I - C X) (X^T X)^-1 X^T.
        """
        constraint_residual = self.constraint_target - self.row_matrix.T @ w
        constraint_scales = np.maximum(np.abs(self.constraint_target).max(axis=0), np.finfo(float).tiny)
        if float(np.max(np.abs(constraint_residual) / constraint_scales)) < 1e-6:
            w = self._repair_on_support(w, constraint_residual)
            constraint_residual = self.constraint_target - self.row_matrix.T @ w
            if float(np.max(np.abs(constraint_residual) / constraint_scales)) < 1e-13:
                return w
        # A^T A = n I: the pseudo-inverse of A^T is A / n.
        for _ in range(2):  # The second pass removes the rounding of the first.
            w = w + self.row_matrix @ ((self.constraint_target - self.row_matrix.T @ w) / w.shape[0])
        return w

    def _repair_on_support(self, w: FloatArray, constraint_residual: FloatArray) -> FloatArray:
        """Return W with its non-zero entries changed so that A^T W = E, as far as they allow.

        ``constraint_residual``, E - A^T W, is overwritten.
        """
        w = w.copy()
        for j in range(w.shape[1]):
            support_rows = np.flatnonzero(w[:, j])
            a = self.row_matrix[support_rows]
            for _ in range(2):
                # The support may have too few independent rows: least squares then makes up what it can.
                w[support_rows, j] += a @ np.linalg.lstsq(a.T @ a, constraint_residual[:, j], rcond=1e-12)[0]
                constraint_residual[:, j] = self.constraint_target[:, j] - a.T @ w[support_rows, j]
        return w


def whiten(features: FloatArray, user_codes: IntArray) -> Whitened:
    """Sort rows by user, scale columns to equal length and factor X = A R by QR.

    If columns are dependent, `constraint_target` is NaN.
    """
    n, d = features.shape
    _, row_users = np.unique(user_codes, return_inverse=True)
    row_order = np.argsort(row_users, kind="stable")
    row_users = row_users[row_order].astype(np.int64)
    first_row_indices = np.flatnonzero(np.diff(row_users, prepend=-1))
    feature_scales = _compute_root_mean_squares(features)
    q, r = np.linalg.qr(features[row_order] / (feature_scales * np.sqrt(n)))
    singular_values = np.linalg.svd(r, compute_uv=False)
    smallest_singular_value = float(singular_values[-1])
    condition_number = (
        float(singular_values[0]) / smallest_singular_value if smallest_singular_value > 0.0 else np.inf
    )
    # Dependent columns are refused by their names once the problem is put together; until then there is no E.
    inverse_factor = np.linalg.inv(r) if condition_number < 1.0 / RANK_TOLERANCE else np.full((d, d), np.nan)
    return Whitened(
        row_order=row_order,
        starts=first_row_indices,
        sizes=np.diff(first_row_indices, append=n),
        row_users=row_users,
        row_matrix=q * np.sqrt(n),
        constraint_target=np.ascontiguousarray((inverse_factor / feature_scales[:, None]).T),
        triangular_factor=r * feature_scales,
        feature_scales=feature_scales,
        condition_number=condition_number,
    )


def _compute_root_mean_squares(features: FloatArray) -> FloatArray:
    """Return the root mean square of each column, shape (d,), without overflow; 1 for a column of zeros."""
    largest_abs_values = np.abs(features).max(axis=0)
    largest_abs_values = np.where(largest_abs_values > 0.0, largest_abs_values, 1.0)
    mean_squares = np.mean((features / largest_abs_values) ** 2, axis=0)
    return np.asarray(largest_abs_values * np.sqrt(np.where(mean_squares > 0.0, mean_squares, 1.0)))


def find_dependent_columns(features: FloatArray) -> list[int]:
    """Return the ascending positions of columns that are linear combinations of the others; at least one.

    Found by QR with pivoting on columns scaled to equal length.
    """
    from scipy.linalg import qr

    scaled_features = features / _compute_root_mean_squares(features)
    r, pivots = qr(np.linalg.qr(scaled_features, mode="r"), mode="r", pivoting=True)
    abs_diagonal = np.abs(np.diag(r))
    negligible_mask = abs_diagonal <= 10.0 * RANK_TOLERANCE * abs_diagonal[0]
    # Asked only where the condition number is too large: the last pivot is one in any case.
    negligible_mask[-1] = True
    return sorted(int(j) for j in pivots[negligible_mask])


MAX_FEATURES = 50
"""The dual has d^2 unknowns, its Hessian d^4 entries: 50 MB at 50 features."""


@dataclass(frozen=True, eq=False)
class RegressionProblem(ByDigest):
    """The question: estimate the coefficients of a linear model from private labels with epsilon-DP.

    The total variance adds up variances of coefficients, each in (unit of the label / unit of its feature)^2. So the
    best estimator depends on the features' units, and nothing is rescaled here.

    Attributes:
        features: X, finite, full column rank, shape (num_rows, num_features), each column in its own unit.
        user_codes: Who owns each row, whole numbers, shape (num_rows,), in any order.
        epsilon: Privacy budget, above 0.
        value_bound: B, the length of the interval that labels are clipped to, above 0, in the labels' unit.
        residual_variance: sigma^2, the variance of one label around the model, at least 0, labels' unit squared.
        feature_names: One name per column; x1, x2, ... where none are given.

    Raises:
        InvalidInput: Wrong shapes, numbers not finite, too few rows, linearly dependent columns (named), a
            parameter out of its range; all problems at once.
    """

    features: FloatArray
    user_codes: IntArray
    epsilon: float
    value_bound: float
    residual_variance: float
    feature_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        feature_names = self.feature_names or tuple(f"x{j + 1}" for j in range(np.shape(self.features)[-1]))
        # The facet has the same columns, makes them read-only, and checks them. Of its largest size the solver holds up
        # to 17 copies (measured; 4 GB).
        placeholder_labels = np.zeros(len(self.features))
        labelled_rows = LabelledRows(self.features, placeholder_labels, self.user_codes, feature_names)
        vars(self).update(
            features=labelled_rows.features, user_codes=labelled_rows.user_codes, feature_names=feature_names
        )
        n, d = self.features.shape
        with Problems() as problems:
            if d > MAX_FEATURES:
                problems.add(f"there are {d:,} features; at most {MAX_FEATURES} are handled")
            if n < d:
                problems.add(f"{d:,} coefficients need at least as many rows; got {n:,}")
            self._check_settings(problems)
        with problems:
            if self.whitened.condition_number > 1.0 / RANK_TOLERANCE:
                columns_text = ", ".join(feature_names[j] for j in find_dependent_columns(self.features))
                problems.add(
                    f"the features are linearly dependent: {columns_text} can be written through the others",
                    remedy="Leave these out, or one level of each one-hot group, or the intercept",
                )

    def _check_settings(self, problems: Problems) -> None:
        """Add a problem if epsilon, value_bound or residual_variance is out of range."""
        problems.positive(epsilon=self.epsilon, value_bound=self.value_bound)
        problems.non_negative(residual_variance=self.residual_variance)
        if problems.entries:
            return
        if not (0.0 < self.unit_noise < math.inf and math.isfinite(self.trade_off)):
            problems.add(
                "epsilon, value_bound and residual_variance are so far apart that their ratio leaves float64",
                remedy="Express the labels in another unit",
            )

    def with_settings(
        self, epsilon: float, value_bound: float, residual_variance: float
    ) -> RegressionProblem:
        """Return a problem with other settings and the same rows, which are neither checked nor sorted again.

        Args:
            epsilon: As in `RegressionProblem`.
            value_bound: As in `RegressionProblem`.
            residual_variance: As in `RegressionProblem`.

        Raises:
            InvalidInput: As for a new problem.
        """
        # What is cached goes along: all but the digest depends on features and owners alone.
        problem = copy.copy(self)
        vars(problem).update(epsilon=epsilon, value_bound=value_bound, residual_variance=residual_variance)
        vars(problem).pop("digest", None)
        with Problems() as problems:
            problem._check_settings(problems)
        return problem

    @property
    def num_rows(self) -> int:
        """Return the number of rows, n."""
        return int(self.features.shape[0])

    @property
    def num_features(self) -> int:
        """Return the number of columns, d."""
        return int(self.features.shape[1])

    @property
    def num_users(self) -> int:
        """Return the number of users with at least one row, m."""
        return int(self.whitened.starts.size)

    @property
    def unit_noise(self) -> float:
        """Return 2 d (B / epsilon)^2: the noise in all coefficients together per unit of (largest user weight)^2."""
        return self.num_features * LaplaceNoise.for_release(self.value_bound, self.epsilon).variance

    @property
    def trade_off(self) -> float:
        """Return A = sigma^2 / unit_noise: variances divided by `unit_noise` are A sum c^2 + (max_l sum |c|)^2."""
        return self.residual_variance / self.unit_noise

    @property
    def total_mean_square(self) -> float:
        """Return tr(X^T X) / n: by this, noise of variance 1 on each coefficient raises the prediction error."""
        return float(np.sum(self.whitened.feature_scales**2))

    @cached_property
    def whitened(self) -> Whitened:
        """Return the rows sorted by user and rescaled, computed once."""
        return whiten(self.features, self.user_codes)

    @cached_property
    def histogram(self) -> ContributionHistogram:
        """Return the number of users by number of rows."""
        return ContributionHistogram.from_counts(self.whitened.sizes)

    @cached_property
    def digest(self) -> str:
        """Return the SHA-256 hash of the content, hexadecimal."""
        content_hash = hashlib.sha256(b"regression/1")
        # The shape too: bytes alone do not tell rows from columns.
        shape_and_settings = (self.features.shape, self.epsilon, self.value_bound, self.residual_variance)
        content_hash.update(repr((*shape_and_settings, self.feature_names)).encode())
        content_hash.update(self.features.tobytes())
        content_hash.update(self.user_codes.tobytes())
        return content_hash.hexdigest()


def build_dataset(table: Table, design: Design, disclosure: Disclosure) -> Dataset:
    """Build the data set of a table whose features and users are public, and check that features are independent.

    Raises:
        InvalidInput: As of `dpcore.data.design_matrix.build_dataset`, and if features are linearly dependent, by name.
    """

    def check_rank(features: FloatArray, user_codes: IntArray, feature_names: tuple[str, ...]) -> None:
        """Raise `InvalidInput` if the features are linearly dependent; ε, B and σ² are placeholders."""
        RegressionProblem(features, user_codes, 1.0, 1.0, 0.0, feature_names)

    return design_matrix.build_dataset(table, design, disclosure, check_rank)


read_labelled_table = build_dataset
"""The name by which `dpcore.regression_weights` calls it; generated programs call the other one."""


def build_unit_problem(dataset: Dataset) -> RegressionProblem:
    """Build the problem of a data set's table, with ε, B and σ² of 1; its features are checked.

    `RegressionProblem.with_settings` puts other settings in place, without a second check. The data set must have the
    facet `table`.

    Raises:
        InvalidInput: Features are linearly dependent, by name, or not fewer than the rows.
    """
    labelled_rows = dataset.table
    assert labelled_rows is not None
    return RegressionProblem(
        labelled_rows.features, labelled_rows.user_codes, 1.0, 1.0, 1.0, labelled_rows.feature_names
    )
