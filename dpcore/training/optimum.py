"""The best model without privacy, and output perturbation, the baseline.

Output perturbation minimises exactly with a penalty, then adds noise to the minimiser once. The sum of weighted
losses plus μ/2 |θ|² is μ-strongly convex. A user adds a convex function whose gradient has norm at most h. So the
minimiser moves by at most h / μ, or twice that if a user is replaced (Chaudhuri, Monteleoni, Sarwate 2011, lemma 7, for
users instead of rows). μ follows from no data, also where steps of the other methods are entered.

Gaussian objective perturbation is not offered: its analysis is for losses of one margin per person, and a user with
two rows has a loss of two margins.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpcore.common.certificate import Certificate
from dpcore.common.progress import ShouldStop, never
from dpcore.contributions import FloatArray
from dpcore.training import account
from dpcore.training.account import Cell, compute_smooth_weights
from dpcore.training.descent import draw_noise
from dpcore.training.mechanism import LossKind, Mechanism
from dpcore.training.rows import ClassifierRows

_MAX_NEWTON_STEPS = 300
_SMALLEST_DECREMENT = 1e-13


@dataclass(frozen=True, eq=False)
class FittedModel:
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
    row_weights: FloatArray,
    radius: float = math.inf,
    regularisation: float = 0.0,
    should_stop: ShouldStop = never,
) -> FittedModel:
    """Find the θ of smallest weighted mean loss plus Λ/2 |θ|² in a ball, by Newton's method, with a certificate.

    If the global minimiser is outside of the ball, bisection finds the multiplier of |θ|² at which the
    minimiser is on the sphere.

    Args:
        rows: The data.
        loss: Of a row.
        row_weights: Of each row, at least 0 and not all 0, shape (num_rows,); they are divided by their sum.
        radius: Of the ball around 0.
        regularisation: Λ: Λ/2 |θ|² is added to the mean loss.
        should_stop: Asked between steps; what is found by then is returned, with a bound that holds for it.

    Returns:
        The model. The lower bound is that of a convex function from its tangent: on the ball none goes below
        L(θ) - θ·g - radius |g|, g the gradient; with Λ > 0, none anywhere below L(θ) - |g|² / (2 Λ).
    """
    normalised_weights = row_weights / math.fsum(row_weights)

    def minimise(multiplier: float, start_theta: FloatArray) -> FloatArray:
        """Return the minimiser of the loss with (Λ + multiplier)/2 |θ|², anywhere, from a point to start from."""
        penalty = regularisation + multiplier
        return _minimise(rows, loss, normalised_weights, penalty, start_theta, should_stop)

    theta = minimise(0.0, np.zeros(rows.num_features))
    if np.linalg.norm(theta) > radius:
        # The minimiser on the ball minimises the loss plus multiplier / 2 |θ|², and its length falls as the multiplier
        # grows.
        lower_multiplier, upper_multiplier = 0.0, 1.0
        while np.linalg.norm(theta := minimise(upper_multiplier, theta)) > radius:
            lower_multiplier, upper_multiplier = upper_multiplier, upper_multiplier * 4.0
            if should_stop():
                break
        for _ in range(200):
            if upper_multiplier - lower_multiplier <= 1e-15 * upper_multiplier or should_stop():
                break
            middle_multiplier = (lower_multiplier + upper_multiplier) / 2.0
            theta = minimise(middle_multiplier, theta)
            lower_multiplier, upper_multiplier = (
                (middle_multiplier, upper_multiplier)
                if np.linalg.norm(theta) > radius
                else (lower_multiplier, middle_multiplier)
            )
        # At the upper end the minimiser lies in the ball, but for a rounding.
        theta = minimise(upper_multiplier, theta)
        theta *= min(1.0, radius / float(np.linalg.norm(theta)))
    objective, gradient, _ = _evaluate(rows, loss, normalised_weights, regularisation, theta)
    gradient_norm = float(np.linalg.norm(gradient))
    # Without a ball and without a penalty no tangent bounds anything.
    gap_upper_bounds = [math.inf]
    if math.isfinite(radius):
        gap_upper_bounds.append(max(float(theta @ gradient) + radius * gradient_norm, 0.0))
    if regularisation:
        gap_upper_bounds.append(gradient_norm**2 / (2.0 * regularisation))
    lower_bound = objective - min(gap_upper_bounds)
    return FittedModel(theta, Certificate(objective, lower_bound, "the tangent plane of a convex function"))


def fit_to_gradient(
    rows: ClassifierRows,
    loss: LossKind,
    row_weights: FloatArray,
    penalty_factor: float,
    max_gradient_norm: float,
    should_stop: ShouldStop = never,
) -> FloatArray:
    """Minimise the SUM of weighted losses plus μ/2 |θ|², to a gradient of at most a given norm; return θ.

    It succeeds on any data: a release may rest on it, and reveals nothing by a failure. Newton's method is
    tried first. If rounding or a kink ends it too early, accelerated descent continues: its distance to the
    minimiser falls at least by √(1 - √(μ/L)) in every step, so that it always arrives.

    Args:
        rows: The data.
        loss: Of a row.
        row_weights: Of each row, shape (num_rows,).
        penalty_factor: μ, above 0.
        max_gradient_norm: Norm of the gradient at which it ends; θ is then within most / μ of the minimiser. Well
            above rounding of a sum over all rows.
        should_stop: Asked between steps; θ is then where it had come to.

    Returns:
        θ, shape (num_features,).

    Source: Nesterov 2004, theorem 2.2.3 and scheme 2.2.22, for the descent.
    """
    weight_sum = math.fsum(row_weights)
    theta = fit_model(
        rows, loss, row_weights, math.inf, penalty_factor / weight_sum, should_stop=should_stop
    ).theta

    def compute_gradient(theta: FloatArray) -> FloatArray:
        """Return the gradient of the sum of losses with its penalty, shape (num_features,)."""
        weighted_slopes = row_weights * loss.differentiate(rows.signed_features @ theta)
        return np.asarray(rows.signed_features.T @ weighted_slopes + penalty_factor * theta)

    curvature_bound = rows.features.T @ (rows.features * (row_weights * loss.smoothness)[:, None])
    # Rounded up: the rate is proved for steps of at most 1/L.
    largest_curvature = float(np.linalg.eigvalsh(curvature_bound)[-1]) * (1.0 + 1e-9) + penalty_factor
    inverse_condition_root = math.sqrt(penalty_factor / largest_curvature)
    momentum = (1.0 - inverse_condition_root) / (1.0 + inverse_condition_root)
    extrapolated_theta = theta
    while float(np.linalg.norm(compute_gradient(theta))) > max_gradient_norm and not should_stop():
        previous_theta = theta
        theta = extrapolated_theta - compute_gradient(extrapolated_theta) / largest_curvature
        extrapolated_theta = theta + momentum * (theta - previous_theta)
    return theta


def _evaluate(
    rows: ClassifierRows, loss: LossKind, row_weights: FloatArray, regularisation: float, theta: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    """Return value, gradient and Hessian of Σ c loss + Λ/2 |θ|² at θ; the weights c have the sum 1, Λ regularises."""
    margins = rows.signed_features @ theta
    objective = float(row_weights @ loss.evaluate(margins)) + 0.5 * regularisation * float(theta @ theta)
    gradient = rows.signed_features.T @ (row_weights * loss.differentiate(margins)) + regularisation * theta
    curvatures = row_weights * loss.differentiate_twice(margins)
    hessian = rows.features.T @ (rows.features * curvatures[:, None])
    hessian[np.diag_indices_from(hessian)] += regularisation
    return objective, gradient, hessian


def _minimise(
    rows: ClassifierRows,
    loss: LossKind,
    normalised_weights: FloatArray,
    regularisation: float,
    theta: FloatArray,
    should_stop: ShouldStop = never,
) -> FloatArray:
    """Minimise Σ c loss + Λ/2 |θ|² from θ by Newton's method with damping; return the minimiser, shape of θ.

    Where it is stopped, where |θ| is above 1e8 (without a penalty there may be no minimum), or after
    `_MAX_NEWTON_STEPS`, the point reached is returned instead.
    """
    objective, gradient, hessian = _evaluate(rows, loss, normalised_weights, regularisation, theta)
    # No curvature is larger than this anywhere, so that a step by it alone always gains half of its predicted gain.
    # It is used where the hinge is flat or Newton's step goes beyond a kink.
    curvature_bound = rows.features.T @ (rows.features * (normalised_weights * loss.smoothness)[:, None])
    curvature_bound[np.diag_indices_from(curvature_bound)] += regularisation
    damping = 1e-12
    for _ in range(_MAX_NEWTON_STEPS):
        if np.linalg.norm(theta) > 1e8 or should_stop():
            break
        while True:
            newton_step = _solve_semidefinite(hessian + damping * curvature_bound, gradient)
            squared_decrement = float(gradient @ newton_step)
            candidate_theta = theta - newton_step
            candidate_evaluation = _evaluate(rows, loss, normalised_weights, regularisation, candidate_theta)
            if candidate_evaluation[0] <= objective - 1e-4 * squared_decrement or damping >= 1.0:
                break
            damping = min(max(damping * 100.0, 1e-6), 1.0)
        if squared_decrement <= _SMALLEST_DECREMENT**2 or candidate_evaluation[0] >= objective:
            break  # Rounding hides the remaining gain.
        theta, (objective, gradient, hessian) = candidate_theta, candidate_evaluation
        damping = max(damping / 100.0, 1e-12)
    return theta


def _solve_semidefinite(matrix: FloatArray, right_hand_side: FloatArray) -> FloatArray:
    """Solve matrix x = right side for a positive semidefinite matrix, with x nearly 0 where the matrix is flat.

    A feature that its range has made constant is parallel to the intercept: the loss is flat in their difference.
    """
    eigenvalues, eigenvectors = np.linalg.eigh(matrix)
    eigenvalue_floor = max(1e-13 * float(eigenvalues[-1]), 1e-300)
    rotated_solution = eigenvectors.T @ right_hand_side / np.maximum(eigenvalues, eigenvalue_floor)
    return np.asarray(eigenvectors @ rotated_solution)


def find_best_constant(rows: ClassifierRows, loss: LossKind) -> float:
    """Return the score, the same for every row, with the smallest mean loss: guessing without features.

    With p the share of rows whose label is 1: squared 2 p - 1; logistic log(p / (1 - p)); the smoothed hinge by
    search. If all labels agree, ±20 for the latter two, at which the logistic loss is 2e-9.
    """
    positive_share = float(np.mean(rows.signs > 0.0))
    if loss is LossKind.SQUARED:
        return 2.0 * positive_share - 1.0
    if positive_share in (0.0, 1.0):
        return 20.0 * (2.0 * positive_share - 1.0)
    if loss is LossKind.LOGISTIC:
        return math.log(positive_share / (1.0 - positive_share))
    from scipy.optimize import minimize_scalar

    def compute_loss(score: float) -> float:
        """Return the mean loss over rows if every row has this score."""
        label_losses = loss.evaluate(np.array([score, -score]))
        return float(np.array([positive_share, 1.0 - positive_share]) @ label_losses)

    optimum = minimize_scalar(compute_loss, bounds=(-2.0, 2.0), method="bounded", options={"xatol": 1e-12})
    return float(optimum.x)


PENALTY_FACTOR = 0.8
"""Penalty, in κ √d h: the noise on θ then has norm 1 / `PENALTY_FACTOR`. Chosen on generated data."""


def choose_penalty(unit_noise: float, num_features: int, bound: float) -> float:
    """Compute μ of the penalty μ/2 |θ|² beside the sum of weighted losses; no data are read.

    Args:
        unit_noise: κ, noise of one release of the whole budget over how far a user moves it in bounds.
        num_features: d.
        bound: h, what a user weighs at most.
    """
    return PENALTY_FACTOR * unit_noise * math.sqrt(num_features) * bound


def perturb_minimiser(
    rows: ClassifierRows,
    mechanism: Mechanism,
    cell: Cell,
    seed: int,
    run_numbers: Sequence[int],
    should_stop: ShouldStop = never,
) -> FloatArray | None:
    """Simulate output perturbation with smooth weights: the penalised minimiser plus noise; None if stopped.

    Returns:
        θ, shape (num_features, runs), projected onto the ball; None where it was stopped.

    Raises:
        ValueError: The loss has no bounded slope, so that no noise covers a user.
    """
    if not mechanism.loss.has_bounded_slope:
        raise ValueError("output perturbation needs a loss of bounded slope")
    if should_stop():
        return None
    row_weights = compute_smooth_weights(rows.sizes, cell.bound)[rows.user_codes]
    unit_noise = account.plan_rule_noise(mechanism, False).unit_noise
    penalty_factor = choose_penalty(unit_noise, rows.num_features, cell.bound)
    # `fit_model` takes the mean of the losses: μ beside their sum is μ over the sum of weights beside that.
    regularisation = penalty_factor / float(rows.histogram.count_kept_rows(cell.bound))
    theta = fit_model(rows, mechanism.loss, row_weights, math.inf, regularisation).theta
    gradient_draws, _ = draw_noise(mechanism, rows.num_features, seed, run_numbers)
    # A user moves the minimiser by at most h / μ; κ includes the factor 2 for a user who is replaced.
    return mechanism.project(theta[:, None] + unit_noise * cell.bound / penalty_factor * gradient_draws[0])
