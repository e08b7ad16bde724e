"""The best model without privacy, with a certificate, and the best model without features."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpcore.common.certificate import Certificate
from dpcore.common.progress import ShouldStop, never
from dpcore.contributions import FloatArray
from dpcore.training.losses import LossKind
from dpcore.training.rows import ClassifierRows

_NEWTON_STEPS = 300
_SMALL = 1e-13


@dataclass(frozen=True, eq=False)
class Fit:
    """A model and how good it is proved to be.

    Attributes:
        theta: Shape (num_features,).
        certificate: The weighted mean loss, and what no θ in the ball can go below.
    """

    theta: FloatArray
    certificate: Certificate


def fit_model(
    rows: ClassifierRows,
    loss: LossKind,
    weights: FloatArray,
    radius: float = math.inf,
    regularisation: float = 0.0,
    start: FloatArray | None = None,
    should_stop: ShouldStop = never,
) -> Fit:
    """Find the θ of smallest weighted mean loss in a ball, by Newton's method.

    If the global minimiser is outside of the ball, bisection finds the multiplier of |θ|² at which the
    minimiser is on the sphere.

    Args:
        rows: The data.
        loss: Of a row.
        weights: Of each row, at least 0 and not all 0, shape (num_rows,); they are divided by their sum.
        radius: Of the ball around 0.
        regularisation: Λ: Λ/2 |θ|² is added to the mean loss.
        start: θ to begin with.
        should_stop: Asked between steps; what is found by then is returned, with a bound that holds for it.

    Returns:
        The model. The lower bound is that of a convex function from its tangent: on the ball none goes below
        L(θ) - θ·g - radius |g|, g the gradient; with Λ > 0, none anywhere below L(θ) - |g|² / (2 Λ).
    """
    normalised_weights = weights / math.fsum(weights)
    theta = _minimise(rows, loss, normalised_weights, regularisation, start, should_stop)
    if np.linalg.norm(theta) > radius:
        # The minimiser on the ball minimises the loss plus multiplier / 2 |θ|², and its length falls as the multiplier
        # grows.
        low, high = 0.0, 1.0
        while (
            np.linalg.norm(
                theta := _minimise(rows, loss, normalised_weights, regularisation + high, theta, should_stop)
            )
            > radius
        ):
            low, high = high, high * 4.0
            if should_stop():
                break
        for _ in range(200):
            if high - low <= 1e-15 * high or should_stop():
                break
            midpoint = (low + high) / 2.0
            theta = _minimise(rows, loss, normalised_weights, regularisation + midpoint, theta, should_stop)
            low, high = (midpoint, high) if np.linalg.norm(theta) > radius else (low, midpoint)
        # At the upper end the minimiser lies in the ball.
        theta = _minimise(rows, loss, normalised_weights, regularisation + high, theta, should_stop)
        # Bisection ends a rounding away from the sphere.
        theta *= min(1.0, radius / float(np.linalg.norm(theta)))
    value, gradient, _ = _evaluate(rows, loss, normalised_weights, regularisation, theta)
    gradient_norm = float(np.linalg.norm(gradient))
    # Without a ball and without a penalty no tangent bounds anything.
    gaps = [math.inf]
    if math.isfinite(radius):
        gaps.append(max(float(theta @ gradient) + radius * gradient_norm, 0.0))
    if regularisation:
        gaps.append(gradient_norm**2 / (2.0 * regularisation))
    bound = value - min(gaps)
    argument = "the tangent plane of a convex function"
    return Fit(theta, Certificate(value, bound, argument))


def fit_to_gradient(
    rows: ClassifierRows,
    loss: LossKind,
    weights: FloatArray,
    penalty: float,
    max_gradient_norm: float,
    should_stop: ShouldStop = never,
) -> FloatArray:
    """Minimise the SUM of weighted losses plus μ/2 |θ|², to a gradient of at most a given norm.

    It succeeds on any data: a release may rest on it, and reveals nothing by a failure. Newton's method is
    tried first. If rounding or a kink ends it too early, accelerated descent continues: its distance to the
    minimiser falls at least by √(1 - √(μ/L)) in every step, so that it always arrives.

    Args:
        rows: The data.
        loss: Of a row.
        weights: Of each row, shape (num_rows,).
        penalty: μ, above 0.
        max_gradient_norm: Norm of the gradient at which it ends; θ is then within most / μ of the minimiser. Well
            above rounding of a sum over all rows.
        should_stop: Asked between steps; θ is then where it had come to.

    Returns:
        θ, shape (num_features,).

    Source: Nesterov 2004, theorem 2.2.3 and scheme 2.2.22, for the descent.
    """
    total = math.fsum(weights)
    theta = fit_model(rows, loss, weights, math.inf, penalty / total, should_stop=should_stop).theta

    def gradient(coefficients: FloatArray) -> FloatArray:
        return np.asarray(
            rows.signed.T @ (weights * loss.differentiate(rows.signed @ coefficients))
            + penalty * coefficients
        )

    weighted_moments = rows.features.T @ (rows.features * (weights * loss.smoothness)[:, None])
    # Rounded up: the rate is proved for steps of at most 1/L.
    steepest = float(np.linalg.eigvalsh(weighted_moments)[-1]) * (1.0 + 1e-9) + penalty
    convergence_root = math.sqrt(penalty / steepest)
    extrapolated = theta
    while float(np.linalg.norm(gradient(theta))) > max_gradient_norm and not should_stop():
        previous, theta = theta, extrapolated - gradient(extrapolated) / steepest
        extrapolated = theta + (1.0 - convergence_root) / (1.0 + convergence_root) * (theta - previous)
    return theta


def _evaluate(
    rows: ClassifierRows,
    loss: LossKind,
    normalised_weights: FloatArray,
    regularisation: float,
    theta: FloatArray,
) -> tuple[float, FloatArray, FloatArray]:
    """Evaluate value, gradient and Hessian of Σ c loss + Λ/2 |θ|²."""
    margins = rows.signed @ theta
    value = float(normalised_weights @ loss.evaluate(margins)) + 0.5 * regularisation * float(theta @ theta)
    gradient = rows.signed.T @ (normalised_weights * loss.differentiate(margins)) + regularisation * theta
    hessian = rows.features.T @ (
        rows.features * (normalised_weights * loss.differentiate_twice(margins))[:, None]
    )
    hessian[np.diag_indices_from(hessian)] += regularisation
    return value, gradient, hessian


def _minimise(
    rows: ClassifierRows,
    loss: LossKind,
    normalised_weights: FloatArray,
    regularisation: float,
    start: FloatArray | None,
    should_stop: ShouldStop = never,
) -> FloatArray:
    """Return the minimiser, or the point after at most 1e8 of travel: without a penalty there may be none."""
    theta = np.zeros(rows.num_features) if start is None else np.array(start)
    value, gradient, hessian = _evaluate(rows, loss, normalised_weights, regularisation, theta)
    # No curvature is larger than this anywhere, so that a step by it alone always gains half of its predicted gain.
    # It is used where the hinge is flat or Newton's step goes beyond a kink.
    largest_hessian = rows.features.T @ (rows.features * (normalised_weights * loss.smoothness)[:, None])
    largest_hessian[np.diag_indices_from(largest_hessian)] += regularisation
    damping = 1e-12
    for _ in range(_NEWTON_STEPS):
        if np.linalg.norm(theta) > 1e8 or should_stop():
            break
        while True:
            step = _solve_semidefinite(hessian + damping * largest_hessian, gradient)
            decrement = float(gradient @ step)
            candidate = theta - step
            evaluation = _evaluate(rows, loss, normalised_weights, regularisation, candidate)
            if evaluation[0] <= value - 1e-4 * decrement or damping >= 1.0:
                break
            damping = min(max(damping * 100.0, 1e-6), 1.0)
        if decrement <= _SMALL**2 or evaluation[0] >= value:
            break  # Rounding hides the remaining gain.
        theta, (value, gradient, hessian) = candidate, evaluation
        damping = max(damping / 100.0, 1e-12)
    return theta


def _solve_semidefinite(matrix: FloatArray, target: FloatArray) -> FloatArray:
    """Solve for a positive semidefinite matrix; flat directions stay nearly where they are.

    A feature that its range has made constant is parallel to the intercept: the loss is flat in their
    difference.
    """
    eigenvalues, vectors = np.linalg.eigh(matrix)
    smallest_eigenvalue = max(1e-13 * float(eigenvalues[-1]), 1e-300)
    return np.asarray(vectors @ (vectors.T @ target / np.maximum(eigenvalues, smallest_eigenvalue)))


def find_best_constant(rows: ClassifierRows, loss: LossKind) -> float:
    """Find the score z of smallest mean loss over rows, the same for every row: guessing without features.

    With p the share of rows whose label is 1: logistic log(p / (1 - p)); squared 2 p - 1; the smoothed hinge by
    search. If all labels agree, a score of ±20, at which the logistic loss is 2e-9.
    """
    positive_share = float(np.mean(rows.signs > 0.0))
    if loss is LossKind.SQUARED:
        return 2.0 * positive_share - 1.0
    if positive_share in (0.0, 1.0):
        return 20.0 * (2.0 * positive_share - 1.0)
    if loss is LossKind.LOGISTIC:
        return math.log(positive_share / (1.0 - positive_share))
    from scipy.optimize import minimize_scalar

    def mean(score: float) -> float:
        losses = loss.evaluate(np.array([score, -score]))
        return positive_share * float(losses[0]) + (1.0 - positive_share) * float(losses[1])

    return float(minimize_scalar(mean, bounds=(-2.0, 2.0), method="bounded", options={"xatol": 1e-12}).x)
