"""The answer of every method: its matrix, its error in parts, a certificate, and how well it predicts."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dpcore.common.certificate import Certificate
from dpcore.common.checks import Problems, refuse
from dpcore.common.privacy import LaplaceNoise
from dpcore.contributions import FloatArray
from dpcore.regression.dual import price_entries
from dpcore.regression.problem import RegressionProblem

FEASIBILITY_TOLERANCE = 1e-9
"""Largest difference of an entry of C X from I, features measured in their root mean squares."""


@dataclass(frozen=True)
class SearchStep:
    """The variance and the lower bound that a search had found at one moment.

    Attributes:
        seconds: Since the search began.
        variance: Total variance of the best C so far, (label unit / feature unit)^2.
        lower_bound: The best lower bound so far, same unit.
        num_entries: Entries of C that the search looked at.
    """

    seconds: float
    variance: float
    lower_bound: float
    num_entries: int

    @property
    def relative_gap(self) -> float:
        """Return (variance - lower_bound) / variance, at least 0."""
        return max(self.variance - self.lower_bound, 0.0) / self.variance if self.variance > 0.0 else 0.0


@dataclass(frozen=True, eq=False)
class LinearEstimate:
    """A linear unbiased estimator C y + Laplace noise, and what it costs.

    Attributes:
        matrix: C, shape (num_features, num_rows), rows of the data in their given order; C X = I. Its unit
            is 1 / unit of the feature.
        largest_user_weight: max_l sum_{i in S_l, j} |c_ij|, 1 / unit of the feature.
        sampling_variance: sigma^2 sum c^2, summed over coefficients, (label unit / feature unit)^2.
        privacy_variance: Laplace noise, summed over coefficients, same unit.
        laplace_noise: The Laplace noise that each coefficient receives.
        infeasibility: Largest entry of C X - I, features measured in their root mean squares.
        certificate: Total variance beside a lower bound for every C, both recomputed from the data.
        stop_reason: How the search ended, a sentence.
        search_steps: The search in time, which grows while it goes on; empty for closed forms.
    """

    matrix: FloatArray
    largest_user_weight: float
    sampling_variance: float
    privacy_variance: float
    laplace_noise: LaplaceNoise
    infeasibility: float
    certificate: Certificate
    stop_reason: str
    search_steps: Sequence[SearchStep] = field(default=(), repr=False)

    @property
    def variance(self) -> float:
        """Return sampling plus privacy variance, summed over coefficients; correct if C X = I (theorem 6)."""
        return self.sampling_variance + self.privacy_variance


class ErrorTarget(enum.Enum):
    """The quantity whose errors are shown."""

    COEFFICIENTS = "coefficients"
    PREDICTIONS = "predictions"


def compute_lower_bound(problem: RegressionProblem, m: FloatArray) -> float:
    """Compute a lower bound on the total variance of every C with C X = I, from any multipliers.

    Args:
        problem: The question.
        m: M, multipliers of the whitened constraint, shape (num_features, num_features).
    """
    return problem.unit_noise * price_entries(problem.whitened, problem.trade_off, m).lower_bound


def evaluate(
    problem: RegressionProblem,
    matrix: FloatArray,
    constraint_multipliers: FloatArray | None = None,
    stop_reason: str = "A closed form.",
    search_steps: Sequence[SearchStep] = (),
) -> LinearEstimate:
    """Compute the variances, the noise and the certificate of a matrix C.

    Args:
        problem: The question.
        matrix: C, shape (num_features, num_rows).
        constraint_multipliers: M as in `compute_lower_bound`; None where the method claims no optimality.
        stop_reason: How the search ended, a sentence.
        search_steps: The search in time.

    Returns:
        The answer. Where C X differs from I by more than `FEASIBILITY_TOLERANCE`, its certificate proves nothing.

    Raises:
        InvalidInput: The shape is wrong or an entry is not finite.

    Source: Epasto et al. 2020, algorithm 3 and theorem 6.
    """
    expected_shape = (problem.num_features, problem.num_rows)
    if matrix.shape != expected_shape:
        raise refuse(f"the matrix must have shape {expected_shape}; got {matrix.shape}")
    if not np.all(np.isfinite(matrix)):
        raise refuse("the matrix must hold finite numbers")
    whitened = problem.whitened
    sorted_weights = whitened.sort_rows(matrix)
    largest_user_weight = whitened.find_largest_user_weight(sorted_weights)
    laplace_noise = LaplaceNoise.for_release(problem.value_bound * largest_user_weight, problem.epsilon)
    sampling_variance = problem.residual_variance * float(np.vdot(sorted_weights, sorted_weights))
    privacy_variance = problem.unit_noise * largest_user_weight**2
    # C X - I, each entry in the features' own units (root mean squares).
    identity_errors = (
        whitened.row_matrix.T @ sorted_weights - whitened.constraint_target
    ).T @ whitened.triangular_factor
    feature_scale_ratios = whitened.feature_scales[:, None] / whitened.feature_scales
    infeasibility = float(np.max(np.abs(identity_errors) * feature_scale_ratios))
    lower_bound, argument_phrase = -math.inf, "this method does not claim to be the best"
    if constraint_multipliers is not None:
        lower_bound = compute_lower_bound(problem, constraint_multipliers)
        argument_phrase = "a dual bound computed from the same data"
    total_variance = sampling_variance + privacy_variance
    # Not `>`: where C X leaves float64 the difference is NaN, which proves nothing either.
    if not infeasibility <= FEASIBILITY_TOLERANCE:
        total_variance, argument_phrase = math.inf, f"C X differs from I by {infeasibility:.1e}"
    return LinearEstimate(
        matrix=matrix,
        largest_user_weight=largest_user_weight,
        sampling_variance=sampling_variance,
        privacy_variance=privacy_variance,
        laplace_noise=laplace_noise,
        infeasibility=infeasibility,
        certificate=Certificate(total_variance, lower_bound, argument_phrase),
        stop_reason=stop_reason,
        search_steps=search_steps,
    )


def evaluate_repaired_weights(problem: RegressionProblem, w: FloatArray) -> LinearEstimate:
    """Evaluate the C of sorted weights W, shape (n, d), changed as little as needed to be feasible.

    The certificate claims no optimality.
    """
    return evaluate(problem, problem.whitened.restore_order(problem.whitened.repair(w)))


def compute_sampling_variances(problem: RegressionProblem, estimate: LinearEstimate) -> FloatArray:
    """Compute the variance of each coefficient without noise, sigma^2 sum_i c_ji^2, shape (num_features,)."""
    return np.asarray(problem.residual_variance * np.einsum("ji,ji->j", estimate.matrix, estimate.matrix))


def compute_variances(problem: RegressionProblem, estimate: LinearEstimate) -> FloatArray:
    """Compute the variance of each released coefficient, sigma^2 sum_i c_ji^2 + 2 b^2, shape (num_features,).

    Returns:
        In (label unit / unit of that feature)^2; they add up to `LinearEstimate.variance`.
    """
    return np.asarray(compute_sampling_variances(problem, estimate) + estimate.laplace_noise.variance)


def compute_user_weights(problem: RegressionProblem, estimate: LinearEstimate) -> FloatArray:
    """Compute sum |c_ij| over each user's rows and all coefficients, shape (num_users,).

    Users are in the order of `RegressionProblem.whitened`.
    """
    whitened = problem.whitened
    return np.asarray(whitened.sum_per_user(np.abs(whitened.sort_rows(estimate.matrix))).sum(axis=1))


def convert_labels(problem: RegressionProblem, labels: npt.ArrayLike) -> FloatArray:
    """Convert the labels to a float array, shape (num_rows,); NaN and infinite ones stay.

    Raises:
        InvalidInput: Not one number per row.
    """
    try:
        y = np.array(labels, dtype=np.float64)
    except (TypeError, ValueError):
        raise refuse("labels must be numbers") from None
    if y.shape != (problem.num_rows,):
        raise refuse(f"labels must be one number per row, {problem.num_rows:,}; got shape {y.shape}")
    return y


def check_labels(problem: RegressionProblem, labels: npt.ArrayLike) -> FloatArray:
    """Convert the labels to a float array, shape (num_rows,), and raise InvalidInput unless all are finite.

    Raises:
        InvalidInput: Not one finite number per row (the first offender is named).
    """
    y = convert_labels(problem, labels)
    if not np.all(np.isfinite(y)):
        raise refuse("labels must be finite numbers", location=f"row {int(np.argmax(~np.isfinite(y))) + 1}")
    return y


def compute_squared_prediction_error(
    problem: RegressionProblem, estimate: LinearEstimate, labels: npt.ArrayLike
) -> float:
    """Compute the expected mean squared error of the released model's predictions on these rows.

    The expectation is over the noise and exact.

    Args:
        problem: The problem.
        estimate: C and its noise.
        labels: y, shape (num_rows,), as they enter the release (clipped).

    Returns:
        (1/n) |y - X C y|^2 + 2 b^2 tr(X^T X) / n, label unit squared; the last term is due to the noise.

    Raises:
        InvalidInput: The labels do not fit.
    """
    y = check_labels(problem, labels)
    fitted_labels = problem.features @ (estimate.matrix @ y)
    privacy_error = estimate.laplace_noise.variance * problem.total_mean_square
    return float(np.mean((y - fitted_labels) ** 2)) + privacy_error


def estimate_residual_variance(features: npt.ArrayLike, labels: npt.ArrayLike) -> float:
    """Estimate sigma^2 by ordinary least squares, the residual sum of squares over n - d.

    It is computed from private labels without noise.

    Args:
        features: X, shape (num_rows, num_features), of full rank.
        labels: y, shape (num_rows,).

    Raises:
        InvalidInput: Shapes differ, or there are no more rows than features.
    """
    x, y = np.asarray(features, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    with Problems() as problems:
        if x.ndim != 2 or y.shape != x.shape[:1]:
            problems.add(f"labels must be one number per row of the features; got {y.shape} for {x.shape}")
        elif x.shape[0] <= x.shape[1]:
            problems.add("the noise cannot be estimated: there are no more rows than features")
    # The fit does not depend on the units of the features, but what `lstsq` takes for rounding does.
    feature_scales = np.maximum(np.abs(x).max(axis=0), np.finfo(float).tiny)
    residuals = y - (x / feature_scales) @ np.linalg.lstsq(x / feature_scales, y, rcond=None)[0]
    return float(np.sum(residuals**2) / (x.shape[0] - x.shape[1]))
