"""The two learners of the paper: ridge regressions and noisy gradient descent, from weighted tasks.

**Algorithm 1** solves ridge regressions from weighted sums of statistics, perturbed. Its sensitivity: removing user j
takes w_ij (x x^T + lambda I) off A_i and w_ij y x off b_i, for each of their tasks. With |x| <= G and |y| <= G G*,
and for k = |x|^2 <= G^2,

    |x x^T + lambda I|_F^2 = k^2 + 2 lambda k + d lambda^2  <=  G^4 + 2 lambda G^2 + d lambda^2,

attained at |x| = G, and |y x| <= G^2 G*. So all the matrices together move by at most sqrt(beta) times the
root of the first, the vectors by sqrt(beta) G^2 G*. The noise matrix has independent entries on and above the diagonal,
and this half is released. Its Euclidean length is at most the Frobenius norm (equal for x along an axis, so there is no
better bound). Noise of standard deviation sqrt(G^4 + 2 lambda G^2 + d lambda^2) and G^2 G* makes the two releases
(alpha, alpha beta / 2)-RDP each.

The paper's proof of theorem 3.3 leaves lambda I out and adds noise G^2. That is right only where the
regularisation does not depend on who is in the data.

**Algorithm 2** is noisy gradient descent on weighted squared losses, all tasks at once. The paper's line 5 clips a
task's *summed* gradient. Removing one user can then turn this sum around, and move it by up to twice the bound for any
weight of the user. Its proof (A.3) uses |w_ij gradient| <= w_ij Gamma for each user, so each user's gradient is clipped
to Gamma here, before weighting. Removing user j then moves the stacked sums of a step by at most Gamma sqrt(sum_i
w_ij^2) <= Gamma sqrt(beta). With noise of standard deviation Gamma sqrt(T / 2) a step is (alpha, alpha beta / T)-RDP,
and T steps (alpha, alpha beta).

The loss of a pair is (theta . x - y)^2 + lambda |theta|^2 (equation 4); the ridge is part of the gradient
that is clipped, so it needs no accounting of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpcore.contributions import FloatArray
from dpcore.multitask.problem import TaskGraph


@dataclass(frozen=True, eq=False)
class Examples:
    """One example (x_ij, y_ij) per pair of user and task, for training or for testing.

    Attributes:
        graph: Who contributes to what; for testing, a task may have no user.
        features: x_ij, finite, in the graph's order, shape (num_pairs, dimension).
        labels: y_ij, finite, shape (num_pairs,).
    """

    graph: TaskGraph
    features: FloatArray
    labels: FloatArray

    @property
    def dimension(self) -> int:
        """Return d, the number of entries of a feature vector."""
        return int(self.features.shape[1])

    def compute_root_mean_squared_error(self, coefficients: FloatArray) -> float:
        """Compute the root of the mean of (<theta_i, x> - y)^2 over all examples, in the labels' unit.

        Args:
            coefficients: theta, shape (num_tasks, dimension).

        Source: Krichene et al. 2023, appendix D.1, "Metrics".
        """
        predictions = np.einsum("pd,pd->p", self.features, coefficients[self.graph.task_codes])
        return float(np.sqrt(np.mean((predictions - self.labels) ** 2)))


def clip_rows(vectors: FloatArray, max_length: float) -> FloatArray:
    """Scale every vector (last axis) down to Euclidean length ``max_length``; shorter ones stay.

    Source: clip of Krichene et al. 2023, algorithm 1, line 2; also the projection onto a ball.
    """
    vector_lengths = np.sqrt(np.einsum("...d,...d->...", vectors, vectors))
    return np.asarray(
        vectors * np.minimum(1.0, max_length / np.maximum(vector_lengths, max_length))[..., None]
    )


@dataclass(frozen=True)
class RidgeSettings:
    """The clipping and the regularisation of algorithm 1.

    Attributes:
        feature_bound: Gamma_x > 0; longer features are scaled down.
        coefficient_bound: Gamma_* > 0; labels are clamped to +- Gamma_x Gamma_*, and the coefficients are
            projected on the ball of this radius (the domain C).
        ridge: lambda >= 0.
    """

    feature_bound: float = 1.0
    coefficient_bound: float = 1.0
    ridge: float = 0.0

    def compute_matrix_sensitivity(self, dimension: int) -> float:
        """Return the largest Frobenius norm that a user of weight 1 adds to A_i; derived at the top of this module."""
        squared_bound, ridge = self.feature_bound**2, self.ridge
        return math.sqrt(squared_bound**2 + 2.0 * ridge * squared_bound + dimension * ridge**2)

    @property
    def vector_sensitivity(self) -> float:
        """Return the largest length that a user of weight 1 adds to b_i: Gamma_x^2 Gamma_*."""
        return self.feature_bound**2 * self.coefficient_bound


@dataclass(frozen=True, eq=False)
class RidgeSums:
    """The weighted sums before noise. Private.

    Attributes:
        matrices: sum_j w_ij (x x^T + lambda I), shape (num_tasks, d, d).
        vectors: sum_j w_ij y x, shape (num_tasks, d).
    """

    matrices: FloatArray
    vectors: FloatArray


def compute_weighted_sums(
    examples: Examples, pair_weights: FloatArray, ridge_settings: RidgeSettings
) -> RidgeSums:
    """Compute each task's weighted sums of clipped features and clamped labels, without noise.

    These are lines 2, 5 and 6 of algorithm 1; each pair also adds lambda I.

    Args:
        examples: The data.
        pair_weights: w_ij >= 0 in the graph's order, shape (num_pairs,).
        ridge_settings: Clipping and lambda.
    """
    graph = examples.graph
    # Clipped here and not by the caller: the sensitivity below rests on it.
    clipped_features = clip_rows(examples.features, ridge_settings.feature_bound)
    label_bound = ridge_settings.feature_bound * ridge_settings.coefficient_bound
    clamped_labels = np.clip(examples.labels, -label_bound, label_bound)
    weight_matrix = graph.weight_pairs(pair_weights)
    products = clipped_features[:, :, None] * clipped_features[:, None, :]
    label_sums = np.asarray(weight_matrix @ (clamped_labels[:, None] * clipped_features))
    product_sums = (weight_matrix @ products.reshape(clamped_labels.size, -1)).reshape(*label_sums.shape, -1)
    regularisation_terms = ridge_settings.ridge * graph.sum_pairs_by_task(pair_weights)
    return RidgeSums(
        product_sums + regularisation_terms[:, None, None] * np.eye(examples.dimension), label_sums
    )


def perturb_sums(ridge_sums: RidgeSums, ridge_settings: RidgeSettings, rng: np.random.Generator) -> RidgeSums:
    """Return the sums plus Gaussian noise: for each task a symmetric matrix and a vector.

    Entries on and above the diagonal are independent.

    The noise is scaled for weights of which a user's squares sum to beta: then both are (alpha, alpha beta / 2)-RDP.

    A simulation: floating-point noise from ``rng``, not hardened against attacks on the low bits.

    Source: Krichene et al. 2023, algorithm 1 and theorem 3.3, corrected as at the head of this module.
    """
    # The upper triangle is released, and the lower one mirrors it. Its L2 norm is at most the Frobenius norm by which
    # the noise is scaled, so one draw for both entries is enough.
    raw_noise = rng.normal(size=ridge_sums.matrices.shape)
    symmetric_noise = np.triu(raw_noise) + np.swapaxes(np.triu(raw_noise, 1), 1, 2)
    matrix_noise = ridge_settings.compute_matrix_sensitivity(ridge_sums.vectors.shape[1]) * symmetric_noise
    vector_noise = ridge_settings.vector_sensitivity * rng.normal(size=ridge_sums.vectors.shape)
    return RidgeSums(ridge_sums.matrices + matrix_noise, ridge_sums.vectors + vector_noise)


def solve_sums(ridge_sums: RidgeSums, coefficient_bound: float) -> FloatArray:
    """Compute each task's coefficients from its sums, theta = A^dagger b, shape (num_tasks, d).

    A is first projected on the positive semidefinite cone, and theta last on the ball of radius
    ``coefficient_bound``.

    Source: Krichene et al. 2023, algorithm 1, line 7, and section 2.1 for the dagger; the projection on the domain C,
    an input that the algorithm does not use, is post-processing.
    """
    eigenvalues, eigenvectors = np.linalg.eigh(ridge_sums.matrices)
    # An eigenvalue within rounding of 0 counts as 0: its inverse would blow up the noise of b without any signal.
    relative_rounding = np.finfo(np.float64).eps * eigenvalues.shape[-1]
    rounding_bounds = relative_rounding * np.abs(eigenvalues).max(axis=-1, keepdims=True)
    is_positive = eigenvalues > rounding_bounds
    inverse_eigenvalues = np.divide(1.0, eigenvalues, out=np.zeros_like(eigenvalues), where=is_positive)
    rotated_vectors = np.einsum("mkj,mk->mj", eigenvectors, ridge_sums.vectors)
    coefficients = np.einsum("mij,mj->mi", eigenvectors, inverse_eigenvalues * rotated_vectors)
    return clip_rows(coefficients, coefficient_bound)


@dataclass(frozen=True)
class DescentSettings:
    """The clipping and the steps of algorithm 2.

    Attributes:
        gradient_bound: Gamma > 0, the length to which each user's gradient for a task is clipped.
        num_steps: T, between 1 and 100,000.
        radius: Radius of the domain C, a ball around 0, above 0.
        ridge: lambda >= 0.
    """

    gradient_bound: float = 1.0
    num_steps: int = 10
    radius: float = 1.0
    ridge: float = 0.0

    @property
    def noise_std(self) -> float:
        """Return Gamma sqrt(T / 2), the standard deviation of the noise on each entry of a summed gradient."""
        return self.gradient_bound * math.sqrt(self.num_steps / 2.0)


def sum_gradients(
    examples: Examples, pair_weights: FloatArray, descent_settings: DescentSettings, coefficients: FloatArray
) -> FloatArray:
    """Compute sum_j w_ij clip(gradient of pair (i, j), Gamma), shape (num_tasks, d).

    Args:
        examples: The data.
        pair_weights: w_ij in the graph's order, shape (num_pairs,).
        descent_settings: Clipping and lambda.
        coefficients: theta, shape (num_tasks, d).
    """
    features, half_bound = examples.features, descent_settings.gradient_bound / 2.0
    pair_coefficients = np.take(coefficients, examples.graph.task_codes, axis=0)
    residuals = np.einsum("pd,pd->p", features, pair_coefficients) - examples.labels
    half_gradients = residuals[:, None] * features
    if descent_settings.ridge:
        half_gradients += descent_settings.ridge * pair_coefficients
    half_gradient_lengths = np.sqrt(np.einsum("pd,pd->p", half_gradients, half_gradients))
    # Clipped first, then weighted: so a user moves the sum by w_ij Gamma at most, as the budget counts it.
    clipped_weights = pair_weights * half_bound / np.maximum(half_gradient_lengths, half_bound)
    return np.asarray(2.0 * (examples.graph.weight_pairs(clipped_weights) @ half_gradients))


def fit_descent(
    examples: Examples,
    pair_weights: FloatArray,
    descent_settings: DescentSettings,
    step_rates: FloatArray,
    rng: np.random.Generator | None,
) -> FloatArray:
    """Run algorithm 2 from theta = 0, with users' gradients clipped, and return each task's coefficients.

    A simulation: floating-point noise from ``rng``, not hardened against attacks on the low bits.

    Args:
        examples: The data.
        pair_weights: w_ij >= 0 in the graph's order, shape (num_pairs,). A user's weights may depend on
            their own tasks and on public numbers, never on other users' data.
        descent_settings: Clipping, steps, domain.
        step_rates: eta_i^(t) > 0, shape (steps, num_tasks); public or already released.
        rng: Source of the noise; None leaves it out, and nothing is private then.

    Returns:
        theta_hat after the last step, shape (num_tasks, d); with noise, (alpha, alpha beta)-RDP for beta = max_j
        sum_i w_ij^2.

    Source: Krichene et al. 2023, algorithm 2 and theorem 3.11, corrected as at the head of this module.
    """
    coefficients = np.zeros((examples.graph.num_tasks, examples.dimension))
    for task_rates in step_rates:
        task_gradients = sum_gradients(examples, pair_weights, descent_settings, coefficients)
        if rng is not None:
            task_gradients += descent_settings.noise_std * rng.normal(size=coefficients.shape)
        # The projection reads only noisy values: it costs no privacy.
        coefficients = clip_rows(coefficients - task_rates[:, None] * task_gradients, descent_settings.radius)
    return coefficients


def compute_isotropic_rates(task_totals: FloatArray, dimension: int, num_steps: int) -> FloatArray:
    """Compute eta_i^(t) = d / (2 W_i sqrt(t)): Newton's step for isotropic features of length 1.

    Args:
        task_totals: W_i or what is publicly known of it, shape (num_tasks,).
        dimension: d.
        num_steps: T.

    Returns:
        Shape (steps, num_tasks). Ours; the paper's rates serve its bounds. Its theorem 3.12 (b) prints
        1 / (omega_i^2 n_i lambda t), where its proof has omega_i.
    """
    step_numbers = np.arange(1, num_steps + 1, dtype=np.float64)
    return np.asarray(dimension / (2.0 * np.sqrt(step_numbers)[:, None] * task_totals))
