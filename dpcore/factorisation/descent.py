"""AdaDPSGD: item vectors by noisy gradient steps, algorithm 3 of Krichene et al. 2023 with algorithm 2.

In each sweep users solve for their vectors, and item vectors take S steps. In a step every user's gradient for an item,
residual times user vector, is clipped to length Gamma and then weighted, so that one user moves the stacked sums by at
most Gamma sqrt(k): the paper's line 5 clips an item's *summed* gradient, which bounds nothing of the kind (see
`dpcore.multitask.descent`). The ridge is added after the noise; it reads only what is released.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcore.common.checks import Problems
from dpcore.contributions import FloatArray
from dpcore.factorisation.allocation import WeightedRatings
from dpcore.factorisation.model import FactorSettings, RatingRange
from dpcore.factorisation.normal_equations import add_item_vectors

_CELLS = 4_000_000


@dataclass(frozen=True)
class GradientSteps:
    """The gradient steps of a sweep.

    Attributes:
        number: S, steps in a sweep, each a release; 1 to 1,000.
        gradient_bound: Gamma > 0, in the ratings' unit: the length to which each user's gradient for an item is
            clipped. A residual of this size is where clipping begins, since user vectors have length at most 1.

    Raises:
        InvalidInput: Out of range; both problems at once.
    """

    number: int = 2
    gradient_bound: float = 1.0

    def __post_init__(self) -> None:
        with Problems() as problems:
            problems.whole(1, 1_000, number=self.number)
            problems.positive(gradient_bound=self.gradient_bound)


def sum_gradients(
    weighted: WeightedRatings,
    user_vectors: FloatArray,
    item_vectors: FloatArray,
    limits: RatingRange,
    bound: float,
) -> FloatArray:
    """Compute sum_j w_ij clip((<u_i, v_j> - y_ij) v_j, bound) of every item, shape (num_items, d). Private.

    Args:
        weighted: The ratings that count, and their weights.
        user_vectors: Shape (num_users, d), of length at most 1.
        item_vectors: Shape (num_items, d).
        limits: Public range of the ratings.
        bound: Gamma.
    """
    ratings = weighted.ratings
    gradient_sums = np.zeros(item_vectors.shape)
    lengths = np.sqrt(np.einsum("ud,ud->u", user_vectors, user_vectors))
    per_user = max(ratings.num_ratings / ratings.num_users, 1.0) * item_vectors.shape[1]
    for users, rating_slice in ratings.blocks(max(int(_CELLS / per_user), 1)):
        user_rows = np.repeat(
            np.arange(users.start, users.stop), np.diff(ratings.starts[users.start : users.stop + 1])
        )
        predicted = np.einsum("pd,pd->p", user_vectors[user_rows], item_vectors[ratings.items[rating_slice]])
        residuals = predicted - limits.centre(ratings.values[rating_slice])
        gradient_lengths = np.abs(residuals) * lengths[user_rows]
        # Clipped first, then weighted: so a user moves the sum by w_ij Gamma at most, as the budget counts it.
        entries = weighted.weights[rating_slice] * residuals * (bound / np.maximum(gradient_lengths, bound))
        add_item_vectors(gradient_sums, ratings, users, rating_slice, user_vectors[users], entries)
    return gradient_sums


def expect_weights(counts: FloatArray, exponent: float) -> FloatArray:
    """Estimate the sum of each item's weights from noisy counts alone, shape (num_items,).

    Equation 11 with as many users as the counts show at least: n_i omega_i with omega_i proportional to n_i^-mu
    and sum n_i omega_i^2 = sum n_i. It sets the length of the steps and costs no privacy.
    """
    return np.asarray(
        counts ** (1.0 - exponent) * np.sqrt(counts.sum() / np.sum(counts ** (1.0 - 2.0 * exponent)))
    )


def descend(
    item_vectors: FloatArray,
    start: FloatArray,
    weighted: WeightedRatings,
    user_vectors: FloatArray,
    settings: FactorSettings,
    limits: RatingRange,
    steps: GradientSteps,
    noise: float,
    totals: FloatArray,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Take the steps of one sweep and return the item vectors after them.

    Args:
        item_vectors: Before, shape (num_items, d).
        start: What the ridge draws items to, shape (d,): the overall level, followed from the released sums.
        weighted: The ratings that count, and their weights.
        user_vectors: Of this sweep, of length at most 1, shape (num_users, d).
        settings: Ridge of the items, and the offset.
        limits: Public range of the ratings.
        steps: How many, and the clipping.
        noise: s, per unit of the gradient bound.
        totals: `expect_weights`.
        rng: Source of the noise.

    Returns:
        Item vectors, and ``start`` as it is then.
    """
    vectors, start = item_vectors.copy(), start.copy()
    for _ in range(steps.number):
        gradients = sum_gradients(weighted, user_vectors, vectors, limits, steps.gradient_bound)
        gradients += noise * steps.gradient_bound * rng.standard_normal(gradients.shape)
        if settings.offset > 0.0:
            # The common level of all items: its gradient is the sum over items, in which the noise averages out.
            shift = float(gradients[:, 0].sum()) / (settings.offset**2 * float(totals.sum()))
            bound = limits.label_bound / settings.offset
            new_level = min(max(float(start[0]) - shift, -bound), bound)
            vectors[:, 0] += new_level - start[0]
            # The vectors have moved, and their gradients with them, by offset^2 times the weights where nothing is
            # clipped.
            gradients[:, 0] += (new_level - start[0]) * settings.offset**2 * totals
            start[0] = new_level
        # User vectors have length at most 1, so this is never longer than a stable step.
        rate = 1.0 / (totals + settings.item_ridge)
        vectors -= rate[:, None] * (gradients + settings.item_ridge * (vectors - start))
    return vectors, start
