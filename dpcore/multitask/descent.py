"""Algorithm 2: noisy gradient descent on weighted squared losses, all tasks at once.

The paper's line 5 clips a task's *summed* gradient; removing one user can then turn that sum around, and move
it by up to twice the bound whatever the user's weight. What its proof (A.3) uses is |w_ij gradient| <=
w_ij Gamma for each user, so each user's gradient is clipped to Gamma here, before weighting. Removing user j
then moves the stacked sums of a step by at most Gamma sqrt(sum_i w_ij^2) <= Gamma sqrt(beta). With noise of
standard deviation Gamma sqrt(T / 2) a step is (alpha, alpha beta / T)-RDP, and T steps (alpha, alpha beta).

The loss of a pair is (theta . x - y)^2 + lambda |theta|^2 (equation 4); the ridge is part of the gradient
that is clipped, so it needs no accounting of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpcore.common.checks import Problems, refuse
from dpcore.contributions import FloatArray
from dpcore.multitask.examples import Examples, clip_rows
from dpcore.multitask.ridge import check_weights


@dataclass(frozen=True)
class DescentSettings:
    """The clipping and the steps of algorithm 2.

    Attributes:
        gradient_bound: Gamma > 0, the length to which each user's gradient for a task is clipped.
        steps: T, between 1 and 100,000.
        radius: Radius of the domain C, a ball around 0, above 0.
        ridge: lambda >= 0.

    Raises:
        InvalidInput: Out of range; all problems at once.
    """

    gradient_bound: float = 1.0
    steps: int = 10
    radius: float = 1.0
    ridge: float = 0.0

    def __post_init__(self) -> None:
        with Problems() as problems:
            problems.positive(gradient_bound=self.gradient_bound, radius=self.radius)
            problems.whole(1, 100_000, steps=self.steps)
            problems.non_negative(ridge=self.ridge)

    @property
    def noise(self) -> float:
        """Return Gamma sqrt(T / 2), the standard deviation of the noise on each entry of a summed gradient."""
        return self.gradient_bound * math.sqrt(self.steps / 2.0)


@dataclass(frozen=True, eq=False)
class DescentFit:
    """The result of algorithm 2.

    Attributes:
        coefficients: theta_hat after the last step, shape (num_tasks, d).
        budget_spent: max_j sum_i w_ij^2, the beta that the noise keeps; infinite without noise.
        noise: Standard deviation of the noise on each entry of each step's sums.
    """

    coefficients: FloatArray
    budget_spent: float
    noise: float


class _GradientSums:
    """Weighted sums of clipped gradients; pairs are sorted by task once."""

    def __init__(self, examples: Examples, pair_weights: FloatArray, settings: DescentSettings) -> None:
        order = examples.by_task
        self._features = examples.features_by_task
        self._labels = examples.labels_by_task
        self._weights = pair_weights[order]
        self._sizes = examples.graph.task_sizes
        self._starts = np.concatenate(([0], np.cumsum(self._sizes))).astype(np.int32)
        self._columns = np.arange(order.size, dtype=np.int32)
        self._squared = examples.squared_lengths_by_task
        self._settings = settings

    def evaluate(self, coefficients: FloatArray) -> FloatArray:
        """Compute sum_j w_ij clip(gradient of pair (i, j), Gamma), shape (num_tasks, d)."""
        from scipy.sparse import csr_matrix

        settings, sizes = self._settings, self._sizes
        predicted = np.einsum("pd,pd->p", self._features, np.repeat(coefficients, sizes, axis=0))
        residuals = predicted - self._labels
        # |2 r x + 2 lambda theta|^2 from three scalars per pair.
        lengths = residuals**2 * self._squared
        if settings.ridge:
            ridge_lengths = settings.ridge**2 * np.einsum("md,md->m", coefficients, coefficients)
            lengths += 2.0 * settings.ridge * residuals * predicted + np.repeat(ridge_lengths, sizes)
        lengths = 2.0 * np.sqrt(np.maximum(lengths, 0.0))
        # Clipped first, then weighted: so a user moves the sum by w_ij Gamma at most, as the budget counts it.
        clipped_weights = self._weights * (
            settings.gradient_bound / np.maximum(lengths, settings.gradient_bound)
        )
        shape = (sizes.size, residuals.size)
        sums = (
            csr_matrix((clipped_weights * residuals, self._columns, self._starts), shape=shape)
            @ self._features
        )
        if settings.ridge:
            totals = np.bincount(
                np.repeat(np.arange(sizes.size), sizes), clipped_weights, minlength=sizes.size
            )
            sums = sums + settings.ridge * totals[:, None] * coefficients
        return np.asarray(2.0 * sums)


def fit_descent(
    examples: Examples,
    pair_weights: FloatArray,
    settings: DescentSettings,
    rates: FloatArray,
    rng: np.random.Generator | None,
) -> DescentFit:
    """Run algorithm 2 from theta = 0, with users' gradients clipped.

    A simulation: floating-point noise from ``rng``, not hardened against attacks on the low bits.

    Args:
        examples: The data.
        pair_weights: w_ij >= 0 in the graph's order, shape (num_pairs,); as in `ridge.fit_ridge`.
        settings: Clipping, steps, domain.
        rates: eta_i^(t) > 0, shape (steps, num_tasks); public or already released.
        rng: Source of the noise; None leaves it out, and nothing is private then.

    Returns:
        `DescentFit`; with noise, (alpha, alpha budget_spent)-RDP.

    Raises:
        InvalidInput: Weights or rates not as described.

    Source: Krichene et al. 2023, algorithm 2 and theorem 3.11, corrected as at the head of this module.
    """
    check_weights(examples, pair_weights)
    shape = (settings.steps, examples.graph.num_tasks)
    if rates.shape != shape or not np.all(np.isfinite(rates) & (rates > 0.0)):
        raise refuse(f"rates must be finite numbers above 0 of shape {shape}")
    sums = _GradientSums(examples, pair_weights, settings)
    noise = settings.noise if rng is not None else 0.0
    coefficients = np.zeros((examples.graph.num_tasks, examples.dimension))
    for rate in rates:
        gradient = sums.evaluate(coefficients)
        if rng is not None:
            gradient += noise * rng.normal(size=coefficients.shape)
        # The projection reads only noisy values: it costs no privacy.
        coefficients = clip_rows(coefficients - rate[:, None] * gradient, settings.radius)
    budget_spent = math.inf if rng is None else float(examples.graph.sum_pairs_by_user(pair_weights**2).max())
    return DescentFit(coefficients, budget_spent, noise)


def compute_strongly_convex_rates(
    task_weights: FloatArray, counts: npt.ArrayLike, convexity: float, steps: int
) -> FloatArray:
    """Compute eta_i^(t) = 1 / (omega_i n_i lambda t), lambda the strong convexity of one pair's loss.

    The theorem prints omega_i^2; its proof (strong convexity omega_i n_i lambda) has omega_i.

    Args:
        task_weights: omega, shape (num_tasks,).
        counts: n_i, public or released, shape (num_tasks,).
        convexity: lambda > 0.
        steps: T.

    Returns:
        Shape (steps, num_tasks).

    Source: Krichene et al. 2023, theorem 3.12 (b) and A.4.
    """
    step_numbers = np.arange(1, steps + 1, dtype=np.float64)
    return np.asarray(
        1.0 / (step_numbers[:, None] * task_weights * np.asarray(counts, dtype=np.float64) * convexity)
    )


def compute_isotropic_rates(totals: FloatArray, dimension: int, steps: int) -> FloatArray:
    """Compute eta_i^(t) = d / (2 W_i sqrt(t)): Newton's step for isotropic features of length 1.

    Args:
        totals: W_i or what is publicly known of it, shape (num_tasks,).
        dimension: d.
        steps: T.

    Returns:
        Shape (steps, num_tasks). Ours; the paper's rates above serve its bounds.
    """
    step_numbers = np.arange(1, steps + 1, dtype=np.float64)
    return np.asarray(dimension / (2.0 * np.sqrt(step_numbers)[:, None] * totals))
