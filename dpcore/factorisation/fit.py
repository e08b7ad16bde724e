"""Alternating least squares and noisy gradient steps, with and without privacy.

AdaDPSGD finds item vectors by noisy gradient steps: algorithm 3 of Krichene et al. 2023 with algorithm 2. In each
sweep users solve for their vectors, and item vectors take S steps. In a step every user's gradient for an item,
residual times user vector, is clipped to length Gamma and then weighted. So one user moves the stacked sums by at most
Gamma sqrt(k). The paper's line 5 clips an item's *summed* gradient, which does not bound the effect of a user (see
`dpcore.multitask.learners`). The ridge is added after the noise; it reads only what is released.

Alternating least squares, without privacy and with it, is algorithm 3 of Krichene et al. 2023 with algorithm 1. It
releases item vectors and noisy counts alone. Each user's vector is clipped to length 1 and each rating to the public
range before they enter a sum. So a rating of weight w adds at most w Gamma_y to an item's vector. It adds at most w
times `compute_matrix_sensitivity` to the half of the item's matrix that is released. A user's own offset is taken off
their ratings at home before these are clipped: it is computed from their own ratings and what was released, and moves
no sensitivity.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from dpcore.common.checks import refuse
from dpcore.contributions import FloatArray
from dpcore.factorisation import model
from dpcore.factorisation.allocation import Scheme, Spending, WeightedRatings, weigh_with_counts
from dpcore.factorisation.model import FactorModel, FactorSettings, LeastSquaresSums, RatingRange
from dpcore.factorisation.ratings import RatingBlock, Ratings
from dpcore.multitask.learners import clip_rows

_MAX_CELLS = 4_000_000


@dataclass(frozen=True)
class GradientSteps:
    """The number of gradient steps in a sweep, and the length that gradients are clipped to.

    Attributes:
        steps_per_sweep: S, steps in a sweep, each a release; 1 to 1,000.
        gradient_bound: Gamma > 0, in the ratings' unit: the length to which each user's gradient for an item is
            clipped. A residual of this size is where clipping begins, since user vectors have length at most 1.
    """

    steps_per_sweep: int = 2
    gradient_bound: float = 1.0


def sum_gradients(
    weighted_ratings: WeightedRatings,
    user_vectors: FloatArray,
    item_vectors: FloatArray,
    rating_range: RatingRange,
    gradient_bound: float,
) -> FloatArray:
    """Compute the sum of each item's weighted, clipped gradients over users, shape (num_items, d).

    Private.

    It is sum_j w_ij clip((<u_i, v_j> - y_ij) v_j, bound).

    Args:
        weighted_ratings: The ratings that count, and their weights.
        user_vectors: Shape (num_users, d), of length at most 1.
        item_vectors: Shape (num_items, d).
        rating_range: Public range of the ratings.
        gradient_bound: Gamma.
    """
    ratings = weighted_ratings.ratings
    gradient_sums = np.zeros(item_vectors.shape)
    user_vector_lengths = np.sqrt(np.einsum("ud,ud->u", user_vectors, user_vectors))
    cells_per_user = max(ratings.num_ratings / ratings.num_users, 1.0) * item_vectors.shape[1]
    for rating_block in ratings.iterate_blocks(max(int(_MAX_CELLS / cells_per_user), 1)):
        rating_users = rating_block.rating_users
        predictions = np.einsum("pd,pd->p", user_vectors[rating_users], item_vectors[rating_block.items])
        residuals = predictions - rating_range.centre(ratings.values[rating_block.rating_slice])
        gradient_lengths = np.abs(residuals) * user_vector_lengths[rating_users]
        # Clipped first, then weighted: so a user moves the sum by w_ij Gamma at most, as the budget counts it.
        clip_factors = gradient_bound / np.maximum(gradient_lengths, gradient_bound)
        weighted_residuals = weighted_ratings.weights[rating_block.rating_slice] * residuals * clip_factors
        gradient_sums += rating_block.build_matrix(weighted_residuals).T @ user_vectors[rating_block.users]
    return gradient_sums


def estimate_weight_sums(noisy_counts: FloatArray, weight_exponent: float) -> FloatArray:
    """Estimate the sum of each item's weights from noisy counts alone, shape (num_items,).

    Equation 11 with as many users as the counts show at least: n_i omega_i with omega_i proportional to n_i^-mu
    and sum n_i omega_i^2 = sum n_i. It sets the length of the steps and costs no privacy.
    """
    weight_scale = np.sqrt(noisy_counts.sum() / np.sum(noisy_counts ** (1.0 - 2.0 * weight_exponent)))
    return np.asarray(noisy_counts ** (1.0 - weight_exponent) * weight_scale)


def take_gradient_steps(
    item_vectors: FloatArray,
    ridge_target: FloatArray,
    weighted_ratings: WeightedRatings,
    user_vectors: FloatArray,
    settings: FactorSettings,
    rating_range: RatingRange,
    gradient_steps: GradientSteps,
    noise_std: float,
    weight_sums: FloatArray,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Take the noisy gradient steps of one sweep; return the new item vectors and the new ridge target.

    Args:
        item_vectors: Before, shape (num_items, d).
        ridge_target: The vector that the ridge draws all items to, shape (d,): 0 but for the overall level in front,
            which follows the released sums.
        weighted_ratings: The ratings that count, and their weights.
        user_vectors: Of this sweep, of length at most 1, shape (num_users, d).
        settings: Ridge of the items, and the offset.
        rating_range: Public range of the ratings.
        gradient_steps: How many, and the clipping.
        noise_std: s, per unit of the gradient bound.
        weight_sums: `estimate_weight_sums`.
        rng: Source of the noise.

    Returns:
        Item vectors, and ``ridge_target`` as it is then.
    """
    new_vectors, ridge_target = item_vectors.copy(), ridge_target.copy()
    for _ in range(gradient_steps.steps_per_sweep):
        gradient_bound = gradient_steps.gradient_bound
        gradients = sum_gradients(weighted_ratings, user_vectors, new_vectors, rating_range, gradient_bound)
        gradients += noise_std * gradient_bound * rng.standard_normal(gradients.shape)
        if (offset_coordinate := settings.offset_coordinate) > 0.0:
            # The common level of all items: its gradient is the sum over items, in which the noise averages out.
            level_shift = float(gradients[:, 0].sum()) / (offset_coordinate**2 * float(weight_sums.sum()))
            largest_level = rating_range.label_bound / offset_coordinate
            new_level = min(max(float(ridge_target[0]) - level_shift, -largest_level), largest_level)
            new_vectors[:, 0] += new_level - ridge_target[0]
            # The vectors have moved, and their gradients with them, by offset^2 times the weights where nothing is
            # clipped.
            gradients[:, 0] += (new_level - ridge_target[0]) * offset_coordinate**2 * weight_sums
            ridge_target[0] = new_level
        # User vectors have length at most 1, so this is never longer than a stable step.
        step_sizes = 1.0 / (weight_sums + settings.item_ridge)
        new_vectors -= step_sizes[:, None] * (gradients + settings.item_ridge * (new_vectors - ridge_target))
    return new_vectors, ridge_target


RIDGE_TO_NOISE = 10.0
"""Growth of the items' ridge per unit of noise. Found on generated ratings: on the user's own, the search
would cost budget."""
OnSweep = Callable[[], None]
"""A callback after each sweep; what it raises ends the work."""


def compute_matrix_sensitivity(offset_coordinate: float) -> float:
    """Return the most that a user vector x of length 1 adds to a matrix on and above its diagonal, in Frobenius norm.

    That half of x x^T has squared norm (|x|^4 + sum_k x_k^4) / 2. With |x| = 1 and one coordinate fixed at o, the
    sum of fourth powers is at most o^4 + (1 - o^2)^2, where the rest is one coordinate: at o = 0.9 this is 0.92.
    Ours; Krichene et al. 2023 take the whole matrix, which is 1.
    """
    return math.sqrt((1.0 + offset_coordinate**4 + (1.0 - offset_coordinate**2) ** 2) / 2.0)


def clip_user_vectors(user_vectors: FloatArray, settings: FactorSettings, max_length: float) -> FloatArray:
    """Shorten user vectors to ``max_length`` by scaling all but their offset coordinate, which stays.

    Source: Krichene et al. 2023, algorithm 1, line 2.
    """
    num_fixed_coordinates = int(settings.offset_coordinate > 0.0)
    # A little less, so that no rounding of the sums' precision lifts a vector above the bound.
    free_length = math.sqrt(max(max_length**2 * (1.0 - 1e-6) - settings.offset_coordinate**2, 0.0))
    free_coordinates = user_vectors[:, num_fixed_coordinates:]
    free_coordinates = clip_rows(free_coordinates, free_length) if free_length else 0.0 * free_coordinates
    return np.hstack([user_vectors[:, :num_fixed_coordinates], free_coordinates])


def split_own_offsets(user_vectors: FloatArray, settings: FactorSettings) -> tuple[FloatArray, FloatArray]:
    """Return users' own offsets, in the ratings' unit, and the rest of their vectors.

    Without an own coordinate the offsets are 0, and the vectors are returned as they are.
    """
    if not settings.own_coordinate:
        return np.zeros(user_vectors.shape[0]), user_vectors
    return settings.own_coordinate * user_vectors[:, -1], user_vectors[:, :-1]


def sum_over_users(
    train: Ratings,
    weighted_ratings: WeightedRatings | None,
    item_vectors: FloatArray,
    factor_settings: FactorSettings,
    rating_range: RatingRange,
    max_length: float = math.inf,
) -> LeastSquaresSums:
    """Solve every user's vector, clip it to ``max_length``, and return the sums of each item over users.

    Private.

    Args:
        train: All ratings of the users, from which they solve.
        weighted_ratings: The ratings that enter the sums, with weights; None for all of them with weight 1.
        item_vectors: Of the sweep before, shape (num_items, d).
        factor_settings: Ridge of the users, and the offset.
        rating_range: The range of ratings.
        max_length: Gamma_x: user vectors are clipped to this length, the offset kept; infinite for no clipping.

    Returns:
        sum w x x^T and sum w y x of every item.
    """
    # A user's part is rounded to the precision of the whole sum: in float32 a user could so move a sum by 3e-4 more
    # than is declared, in float64 by 1e-12.
    dtype = train.values.dtype if weighted_ratings is None else np.dtype(np.float64)
    item_sums = LeastSquaresSums.build_zeros(train.num_items, factor_settings.dimension, dtype)
    weighted_ratings = weighted_ratings or WeightedRatings(train, np.ones(train.num_ratings, dtype))
    for train_block, user_vectors in model.solve_users(train, item_vectors, factor_settings, rating_range):
        own_offsets, user_vectors = split_own_offsets(user_vectors, factor_settings)
        # Each user solves from all of their ratings; only the clipped vector enters the release.
        if math.isfinite(max_length):
            user_vectors = clip_user_vectors(user_vectors, factor_settings, max_length)
        block = RatingBlock(weighted_ratings.ratings, train_block.users)
        rating_values = weighted_ratings.ratings.values[block.rating_slice]
        if factor_settings.own_coordinate:
            rating_values = rating_values - block.repeat_for_ratings(own_offsets).astype(rating_values.dtype)
        centred_ratings = rating_range.centre(rating_values).astype(dtype)
        rating_weights = weighted_ratings.weights[block.rating_slice].astype(dtype, copy=False)
        item_sums.add(block, user_vectors.astype(dtype), rating_weights, rating_weights * centred_ratings)
    return item_sums


def fit(
    train: Ratings, settings: FactorSettings, rating_range: RatingRange, on_sweep: OnSweep = lambda: None
) -> FactorModel:
    """Fit a factorisation by alternating least squares without privacy, from random item vectors."""
    item_vectors = settings.draw_first_vectors(train.num_items)
    for _ in range(settings.sweeps):
        item_sums = sum_over_users(train, None, item_vectors, settings, rating_range)
        item_vectors = settings.append_own_coordinate(model.solve_rows(item_sums, settings.item_ridge))
        on_sweep()
    return FactorModel(item_vectors, settings, rating_range)


def fit_private(
    train: Ratings,
    settings: FactorSettings,
    rating_range: RatingRange,
    scheme: Scheme,
    spending: Spending,
    exponent: float = 0.25,
    ridge_to_noise: float = RIDGE_TO_NOISE,
    seed: int = 0,
    on_sweep: OnSweep = lambda: None,
    gradient_steps: GradientSteps | None = None,
) -> FactorModel:
    """Fit a factorisation with user-level differential privacy: DPALS, or AdaDPSGD if gradient steps are given.

    A simulation: floating-point noise, not hardened against attacks on the low bits.

    Args:
        train: The table.
        settings: Dimension, sweeps (those of ``spending`` count), ridges, offset.
        rating_range: The public range of ratings.
        scheme: Who gets a user's budget.
        spending: The budget; its ``max_items`` bounds a user's squared weights. Its share for counts is not spent where
            the scheme needs none, and goes to the sweeps.
        exponent: mu of the adaptive scheme.
        ridge_to_noise: What the items' ridge grows by per unit of noise.
        seed: Of noise and draws; schemes share the noise on sums of the same seed.
        on_sweep: Called after each sweep; it may raise an exception to end the work.
        gradient_steps: Of gradient descent (algorithm 2), which must be the releases of ``spending``; None for
            algorithm 1: two releases per sweep, the sums' matrices and vectors, which are then solved. Steps need noisy
            counts under every scheme.

    Returns:
        The model, with the ridge that was used. With mu^2 as in
        `dpcore.factorisation.allocation`, it is a Gaussian mechanism under adding or removing one user.

    Raises:
        InvalidInput: The releases of ``spending`` are not those that are made.

    Source: Krichene et al. 2023, algorithm 3 with algorithms 1 and 2; Chien et al. 2021.
    """
    releases_per_sweep = 2 if gradient_steps is None else gradient_steps.steps_per_sweep
    if spending.releases_per_sweep != releases_per_sweep:
        raise refuse(
            f"the budget is for {spending.releases_per_sweep} releases in a sweep, and {releases_per_sweep} are made"
        )
    # Weights of mu = 0 depend on no count: without a share of the budget for counts, none are taken.
    has_equal_weights = scheme is Scheme.ADAPTIVE and exponent == 0.0 and spending.count_share == 0.0
    needs_counts = (scheme.needs_counts and not has_equal_weights) or gradient_steps is not None
    if not needs_counts:
        spending = replace(spending, count_share=0.0)
    noisy_counts, weighted_ratings, noise_rng = weigh_with_counts(
        train, scheme, spending, exponent, seed, needs_counts
    )
    item_ridge = settings.item_ridge + ridge_to_noise * spending.noise_std
    settings = replace(settings, sweeps=spending.sweeps, item_ridge=item_ridge)
    item_vectors = settings.draw_first_vectors(train.num_items)
    ridge_target = np.zeros(settings.dimension)
    for _ in range(spending.sweeps):
        if gradient_steps is not None:
            weight_sums = estimate_weight_sums(noisy_counts, exponent if scheme is Scheme.ADAPTIVE else 0.0)
            user_vectors = FactorModel(item_vectors, settings, rating_range).solve_user_vectors(train)
            own_offsets, user_vectors = split_own_offsets(user_vectors, settings)
            ratings = weighted_ratings.ratings
            rating_offsets = np.repeat(own_offsets, np.diff(ratings.starts)).astype(ratings.values.dtype)
            item_vectors, ridge_target = take_gradient_steps(
                item_vectors[:, : settings.dimension], ridge_target,
                WeightedRatings(replace(ratings, values=ratings.values - rating_offsets), weighted_ratings.weights),
                clip_user_vectors(user_vectors, settings, 1.0), settings, rating_range, gradient_steps,
                spending.noise_std, weight_sums, noise_rng,
            )  # fmt: skip
        else:
            item_sums = sum_over_users(train, weighted_ratings, item_vectors, settings, rating_range, 1.0)
            offset_coordinate, label_bound = settings.offset_coordinate, rating_range.label_bound
            noisy_sums = add_noise(item_sums, spending.noise_std, label_bound, noise_rng, offset_coordinate)
            item_vectors = solve_noisy_items(noisy_sums, settings, rating_range)
        item_vectors = settings.append_own_coordinate(item_vectors)
        on_sweep()
    return FactorModel(item_vectors, settings, rating_range)


def add_noise(
    item_sums: LeastSquaresSums, noise_std: float, label_bound: float, rng: np.random.Generator, offset: float
) -> LeastSquaresSums:
    """Return the sums with Gaussian noise on every entry on and above the diagonals, and on every vector.

    Args:
        item_sums: Of user vectors of length at most 1 and labels of at most ``label_bound``.
        noise_std: s.
        label_bound: Gamma_y.
        rng: Source of the noise.
        offset: o, the first coordinate that all user vectors share; 0 for none.
    """
    return item_sums.add_noise(noise_std * compute_matrix_sensitivity(offset), noise_std * label_bound, rng)


def solve_noisy_items(
    noisy_sums: LeastSquaresSums, settings: FactorSettings, rating_range: RatingRange
) -> FloatArray:
    """Solve for the item vectors from the released sums, shape (num_items, d): post-processing, without a privacy cost.

    The matrix is projected on the positive semidefinite cone (algorithm 1, line 7) before the ridge is added.
    With an offset coordinate, the ridge pulls an item to the overall mean rating instead of the midpoint. This mean
    comes from the same released sums, whose noise averages out over the items (ours).
    """
    item_matrices = model.unfold_triangles(noisy_sums.matrix_triangles).astype(np.float64)
    ridge_target = np.zeros(settings.dimension)
    # The first entry of an item's matrix is offset^2 times its weights, that of its vector offset times its labels.
    first_entry_sum = float(noisy_sums.matrix_triangles[:, 0].sum())
    if settings.offset_coordinate > 0.0 and first_entry_sum > 0.0:
        largest_level = rating_range.label_bound / settings.offset_coordinate
        mean_level = float(noisy_sums.label_sums[:, 0].sum()) / first_entry_sum
        ridge_target[0] = min(max(mean_level, -largest_level), largest_level)
    # The ridge is on what an item is off from ``ridge_target``: the equations are solved for that.
    shifted_label_sums = noisy_sums.label_sums - item_matrices @ ridge_target
    projected_matrices = model.project_semidefinite(item_matrices)
    return ridge_target + model.solve_with_ridge(projected_matrices, shifted_label_sums, settings.item_ridge)
