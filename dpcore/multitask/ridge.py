"""Algorithm 1: ridge regressions from weighted sums of statistics, perturbed.

Sensitivity, by hand. Removing user j takes w_ij (x x^T + lambda I) off A_i and w_ij y x off b_i, for each of
their tasks. With |x| <= G and |y| <= G G*, and for k = |x|^2 <= G^2,

    |x x^T + lambda I|_F^2 = k^2 + 2 lambda k + d lambda^2  <=  G^4 + 2 lambda G^2 + d lambda^2,

attained at |x| = G, and |y x| <= G^2 G*. So all the matrices together move by at most sqrt(beta) times the
root of the first, the vectors by sqrt(beta) G^2 G*. The noise matrix has independent entries on and above
the diagonal; what is released is that half, whose Euclidean length is at most the Frobenius norm (equal for
x along an axis, so nothing is to be gained). Noise of standard deviation
sqrt(G^4 + 2 lambda G^2 + d lambda^2) and G^2 G* makes the two releases (alpha, alpha beta / 2)-RDP each.

The paper's proof of theorem 3.3 leaves lambda I out and adds noise G^2. That is right only where the
regularisation does not depend on who is in the data: give ``regularised_totals`` computed from public or
already private counts, and the matrices move by sqrt(beta) G^2 again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpcore.common.checks import Problems
from dpcore.contributions import FloatArray
from dpcore.multitask.examples import Examples, clip_rows


@dataclass(frozen=True)
class RidgeSettings:
    """The clipping and the regularisation of algorithm 1.

    Attributes:
        feature_bound: Gamma_x > 0; longer features are scaled down.
        coefficient_bound: Gamma_* > 0; labels are clamped to +- Gamma_x Gamma_*, and the coefficients are
            projected on the ball of this radius (the domain C).
        ridge: lambda >= 0.

    Raises:
        InvalidInput: Out of range; all problems at once.
    """

    feature_bound: float = 1.0
    coefficient_bound: float = 1.0
    ridge: float = 0.0

    def __post_init__(self) -> None:
        with Problems() as problems:
            problems.positive(feature_bound=self.feature_bound, coefficient_bound=self.coefficient_bound)
            problems.non_negative(ridge=self.ridge)

    def matrix_sensitivity(self, dimension: int, ridge_is_counted: bool) -> float:
        """Return the largest Frobenius norm that a user of weight 1 adds to A_i; derived at the top of this module."""
        squared_bound, ridge = self.feature_bound**2, self.ridge if ridge_is_counted else 0.0
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


@dataclass(frozen=True, eq=False)
class RidgeFit:
    """The result of algorithm 1.

    Attributes:
        coefficients: theta_hat, shape (num_tasks, d).
        budget_spent: max_j sum_i w_ij^2, the beta that the noise keeps; infinite without noise.
        matrix_noise: Standard deviation of the noise on each entry of A_i.
        vector_noise: The same for b_i.
    """

    coefficients: FloatArray
    budget_spent: float
    matrix_noise: float
    vector_noise: float


def compute_weighted_sums(
    examples: Examples,
    pair_weights: FloatArray,
    settings: RidgeSettings,
    regularised_totals: FloatArray | None = None,
) -> RidgeSums:
    """Compute lines 2, 5 and 6 of algorithm 1 without the noise.

    Args:
        examples: The data.
        pair_weights: w_ij >= 0 in the graph's order, shape (num_pairs,).
        settings: Clipping and lambda.
        regularised_totals: What lambda is multiplied by in each task, shape (num_tasks,), from public or
            private counts; None for sum_j w_ij, as in the paper.
    """
    graph = examples.graph
    # Clipped here and not by the caller: the sensitivity below rests on it.
    features = clip_rows(examples.features, settings.feature_bound)
    bound = settings.feature_bound * settings.coefficient_bound
    labels = np.clip(examples.labels, -bound, bound)
    dimension = examples.dimension
    matrices = np.empty((graph.num_tasks, dimension, dimension))
    vectors = np.empty((graph.num_tasks, dimension))
    for row in range(dimension):
        weighted = pair_weights * features[:, row]
        vectors[:, row] = graph.sum_pairs_by_task(weighted * labels)
        for column in range(row, dimension):
            matrices[:, row, column] = graph.sum_pairs_by_task(weighted * features[:, column])
            matrices[:, column, row] = matrices[:, row, column]
    totals = graph.sum_pairs_by_task(pair_weights) if regularised_totals is None else regularised_totals
    matrices += settings.ridge * totals[:, None, None] * np.eye(dimension)
    return RidgeSums(matrices, vectors)


def perturb(sums: RidgeSums, matrix_noise: float, vector_noise: float, rng: np.random.Generator) -> RidgeSums:
    """Add symmetric Gaussian matrices (entries on and above the diagonal independent) and vectors."""
    # The upper triangle is released, and the lower one mirrors it. Its L2 norm is at most the Frobenius norm by which
    # the noise is scaled, so one draw for both entries is enough.
    raw = rng.normal(size=sums.matrices.shape)
    symmetric = np.triu(raw) + np.swapaxes(np.triu(raw, 1), 1, 2)
    noise = rng.normal(size=sums.vectors.shape)
    return RidgeSums(sums.matrices + matrix_noise * symmetric, sums.vectors + vector_noise * noise)


def solve_sums(sums: RidgeSums, coefficient_bound: float) -> FloatArray:
    """Solve theta = A^dagger b, A projected on the positive semidefinite cone, then theta on the ball.

    Source: Krichene et al. 2023, algorithm 1, line 7, and section 2.1 for the dagger; the projection on the
    domain C, an input that the algorithm does not use, is post-processing.
    """
    eigenvalues, eigenvectors = np.linalg.eigh(sums.matrices)
    # An eigenvalue within rounding of 0 counts as 0: its inverse would blow up the noise of b without any signal.
    rounding = (
        np.finfo(np.float64).eps * eigenvalues.shape[-1] * np.abs(eigenvalues).max(axis=-1, keepdims=True)
    )
    is_positive = eigenvalues > rounding
    inverse_eigenvalues = np.divide(1.0, eigenvalues, out=np.zeros_like(eigenvalues), where=is_positive)
    rotated = np.einsum("mkj,mk->mj", eigenvectors, sums.vectors)
    return clip_rows(np.einsum("mij,mj->mi", eigenvectors, inverse_eigenvalues * rotated), coefficient_bound)


def fit_ridge(
    examples: Examples,
    pair_weights: FloatArray,
    settings: RidgeSettings,
    rng: np.random.Generator | None,
    regularised_totals: FloatArray | None = None,
) -> RidgeFit:
    """Run algorithm 1, with the ridge accounted for.

    A simulation: floating-point noise from ``rng``, not hardened against attacks on the low bits.

    Args:
        examples: The data.
        pair_weights: w_ij >= 0 in the graph's order, shape (num_pairs,). A user's weights may depend on
            their own tasks and on public numbers, never on other users' data.
        settings: Clipping and lambda.
        rng: Source of the noise; None leaves it out, and nothing is private then.
        regularised_totals: See `compute_weighted_sums`; must be public or already released.

    Returns:
        `RidgeFit`; with noise, (alpha, alpha budget_spent)-RDP.

    Raises:
        InvalidInput: Weights of the wrong shape, negative or not finite.

    Source: Krichene et al. 2023, algorithm 1 and theorem 3.3, corrected as at the head of this module.
    """
    check_weights(examples, pair_weights)
    sums = compute_weighted_sums(examples, pair_weights, settings, regularised_totals)
    if rng is None:
        return RidgeFit(solve_sums(sums, settings.coefficient_bound), math.inf, 0.0, 0.0)
    matrix_noise = settings.matrix_sensitivity(examples.dimension, regularised_totals is None)
    vector_noise = settings.vector_sensitivity
    return RidgeFit(
        coefficients=solve_sums(perturb(sums, matrix_noise, vector_noise, rng), settings.coefficient_bound),
        budget_spent=float(examples.graph.sum_pairs_by_user(pair_weights**2).max()),
        matrix_noise=matrix_noise,
        vector_noise=vector_noise,
    )


def check_weights(examples: Examples, pair_weights: FloatArray) -> None:
    """Raise `InvalidInput` for weights that do not fit the examples.

    Raises:
        InvalidInput: Wrong shape, negative or not finite.
    """
    with Problems() as problems:
        if pair_weights.shape != (examples.graph.num_pairs,):
            problems.add(f"pair_weights must have shape ({examples.graph.num_pairs:,},)")
        elif not np.all(np.isfinite(pair_weights) & (pair_weights >= 0.0)):
            problems.add("pair_weights must be finite numbers of at least 0")
