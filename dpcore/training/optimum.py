"""The best model without privacy, with a proof; and the best that knows no features at all."""

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


def fit(
    rows: ClassifierRows,
    loss: LossKind,
    weights: FloatArray,
    radius: float = math.inf,
    regularisation: float = 0.0,
    start: FloatArray | None = None,
    should_stop: ShouldStop = never,
) -> Fit:
    """The θ of least weighted mean loss in a ball, by Newton's method.

    Where the least of all lies outside of the ball, the multiplier of |θ|² is found at which the minimiser lies on
    the ball, by bisection.

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
    c = weights / math.fsum(weights)
    theta = _newton(rows, loss, c, regularisation, start, should_stop)
    if np.linalg.norm(theta) > radius:
        # The minimiser on the ball minimises the loss plus multiplier / 2 |θ|², and its length falls as the multiplier
        # grows.
        low, high = 0.0, 1.0
        while (
            np.linalg.norm(theta := _newton(rows, loss, c, regularisation + high, theta, should_stop))
            > radius
        ):
            low, high = high, high * 4.0
            if should_stop():
                break
        for _ in range(200):
            if high - low <= 1e-15 * high or should_stop():
                break
            middle = (low + high) / 2.0
            theta = _newton(rows, loss, c, regularisation + middle, theta, should_stop)
            low, high = (middle, high) if np.linalg.norm(theta) > radius else (low, middle)
        # At the upper end the minimiser lies in the ball.
        theta = _newton(rows, loss, c, regularisation + high, theta, should_stop)
        # Bisection ends a rounding away from the sphere.
        theta *= min(1.0, radius / float(np.linalg.norm(theta)))
    value, gradient, _ = _pieces(rows, loss, c, regularisation, theta)
    length = float(np.linalg.norm(gradient))
    # Without a ball and without a penalty no tangent bounds anything.
    gaps = [math.inf]
    if math.isfinite(radius):
        gaps.append(max(float(theta @ gradient) + radius * length, 0.0))
    if regularisation:
        gaps.append(length**2 / (2.0 * regularisation))
    bound = value - min(gaps)
    argument = "the tangent plane of a convex function"
    return Fit(theta, Certificate(value, bound, argument))


def fit_within(
    rows: ClassifierRows,
    loss: LossKind,
    weights: FloatArray,
    penalty: float,
    most: float,
    should_stop: ShouldStop = never,
) -> FloatArray:
    """The minimiser of the SUM of weighted losses plus μ/2 |θ|², to a gradient of at most a given norm.

    It is found on any data: a release may rest on it, and says nothing by having failed. Newton's method is tried
    first. Where rounding or a kink ends it too early, accelerated descent goes on: its distance to the minimiser falls
    at least by √(1 - √(μ/L)) in every step, so that it always comes there.

    Args:
        rows: The data.
        loss: Of a row.
        weights: Of each row, shape (num_rows,).
        penalty: μ, above 0.
        most: Norm of the gradient at which it ends; θ is then within most / μ of the minimiser. Well above rounding of
            a sum over all rows.
        should_stop: Asked between steps; θ is then where it had come to.

    Returns:
        θ, shape (num_features,).

    Source: Nesterov 2004, theorem 2.2.3 and scheme 2.2.22, for the descent.
    """
    total = math.fsum(weights)
    theta = fit(rows, loss, weights, math.inf, penalty / total, should_stop=should_stop).theta

    def gradient(at: FloatArray) -> FloatArray:
        return np.asarray(rows.signed.T @ (weights * loss.slope(rows.signed @ at)) + penalty * at)

    squares = rows.features.T @ (rows.features * (weights * loss.smoothness)[:, None])
    # Rounded up: the rate is proved for steps of at most 1/L.
    steepest = float(np.linalg.eigvalsh(squares)[-1]) * (1.0 + 1e-9) + penalty
    root = math.sqrt(penalty / steepest)
    ahead = theta
    while float(np.linalg.norm(gradient(theta))) > most and not should_stop():
        before, theta = theta, ahead - gradient(ahead) / steepest
        ahead = theta + (1.0 - root) / (1.0 + root) * (theta - before)
    return theta


def _pieces(
    rows: ClassifierRows, loss: LossKind, c: FloatArray, regularisation: float, theta: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    """Value, gradient and Hessian of Σ c loss + Λ/2 |θ|²."""
    margins = rows.signed @ theta
    value = float(c @ loss.at(margins)) + 0.5 * regularisation * float(theta @ theta)
    gradient = rows.signed.T @ (c * loss.slope(margins)) + regularisation * theta
    hessian = rows.features.T @ (rows.features * (c * loss.curvature(margins))[:, None])
    hessian[np.diag_indices_from(hessian)] += regularisation
    return value, gradient, hessian


def _newton(
    rows: ClassifierRows,
    loss: LossKind,
    c: FloatArray,
    regularisation: float,
    start: FloatArray | None,
    should_stop: ShouldStop = never,
) -> FloatArray:
    """The minimiser, or where steps of at most 1e8 in all have led: without a penalty it may lie nowhere."""
    theta = np.zeros(rows.num_features) if start is None else np.array(start)
    value, gradient, hessian = _pieces(rows, loss, c, regularisation, theta)
    # No curvature is larger than this anywhere, so that a step by it alone always gains half of what it promises: the
    # way on where the hinge is flat or Newton's step reaches beyond a kink.
    most = rows.features.T @ (rows.features * (c * loss.smoothness)[:, None])
    most[np.diag_indices_from(most)] += regularisation
    share = 1e-12
    for _ in range(_NEWTON_STEPS):
        if np.linalg.norm(theta) > 1e8 or should_stop():
            break
        while True:
            step = _solve(hessian + share * most, gradient)
            decrement = float(gradient @ step)
            there = theta - step
            found = _pieces(rows, loss, c, regularisation, there)
            if found[0] <= value - 1e-4 * decrement or share >= 1.0:
                break
            share = min(max(share * 100.0, 1e-6), 1.0)
        if decrement <= _SMALL**2 or found[0] >= value:
            break  # Rounding hides what is left to gain.
        theta, (value, gradient, hessian) = there, found
        share = max(share / 100.0, 1e-12)
    return theta


def _solve(matrix: FloatArray, target: FloatArray) -> FloatArray:
    """The solution for a positive semidefinite matrix; directions in which it is flat stay nearly where they are.

    A feature that its range has made constant is parallel to the intercept: the loss is flat in their difference.
    """
    eigenvalues, vectors = np.linalg.eigh(matrix)
    least = max(1e-13 * float(eigenvalues[-1]), 1e-300)
    return np.asarray(vectors @ (vectors.T @ target / np.maximum(eigenvalues, least)))


def best_constant(rows: ClassifierRows, loss: LossKind) -> float:
    """The score z, the same for every row, of least mean loss over rows: guessing without features.

    With p the share of rows whose label is 1: logistic log(p / (1 - p)); squared 2 p - 1; the smoothed hinge by
    search. Where all labels agree, a score of ±20, at which the logistic loss is 2e-9.
    """
    p = float(np.mean(rows.signs > 0.0))
    if loss is LossKind.SQUARED:
        return 2.0 * p - 1.0
    if p in (0.0, 1.0):
        return 20.0 * (2.0 * p - 1.0)
    if loss is LossKind.LOGISTIC:
        return math.log(p / (1.0 - p))
    from scipy.optimize import minimize_scalar

    def mean(z: float) -> float:
        ends = loss.at(np.array([z, -z]))
        return p * float(ends[0]) + (1.0 - p) * float(ends[1])

    return float(minimize_scalar(mean, bounds=(-2.0, 2.0), method="bounded", options={"xatol": 1e-12}).x)
