"""Implicit feedback: it counts what users chose, not how they rate it; all that they did not choose counts a little.

    sum over chosen (i, j) of w_ij (<u_i, v_j> - 1)^2 + alpha_0 sum over all (i, j) of <u_i, v_j>^2 + ridges

The second sum draws predictions of what was not chosen to 0; without it 1 for everything would be perfect. It needs
nothing of who chose what but the Gram matrix of all item vectors, when users solve for their vectors, and the one of
all user vectors, G = sum_j v_j v_j^T, when items are solved. The first is made of what was released. The second moves
with every user, whatever they chose and whatever their weights are: by at most |v_j|^2 = 1 in Frobenius norm, as it has
weight 1 for each. So it is released once a sweep with the noise s of the other sums, and paid for: the squared movement
of a sweep is 2 k + 1 in place of 2 k. By S gradient steps it is S k + 1: a step releases the gradients of the first
sum, and the second needs G alone, which stays as it is while user vectors do.

Source: Krichene et al. 2023, figures 2, 7 and 10, which are about implicit feedback. The objective that is printed
(appendix D.1) has no term for pairs that were not chosen; the public code of that paper and of Chien et al. 2021 has
it, and pays for G as is done here. That user vectors are scaled to length 1, and not only clipped to it, is ours: at
epsilon = 20 it recalled 0.345 on generated users where clipping recalled 0.265.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from dpcore.common.checks import refuse
from dpcore.contributions import FloatArray, IntArray
from dpcore.factorisation import allocation, model
from dpcore.factorisation.allocation import Scheme, Spending, WeightedRatings, weigh_with_counts
from dpcore.factorisation.fit import GradientSteps, OnSweep, estimate_weight_sums, sum_gradients
from dpcore.factorisation.model import LeastSquaresSums, RatingRange, Vectors, multiply_coordinates
from dpcore.factorisation.ratings import RatingBlock, Ratings


@dataclass(frozen=True)
class ImplicitSettings:
    """The settings of alternating least squares with implicit feedback.

    Attributes:
        dimension: d, 1 to 128.
        sweeps: T, 1 to 50.
        unobserved_weight: alpha_0, above 0: the weight of a pair that was not chosen against one that was.
        user_ridge: lambda of the users, above 0.
        item_ridge: lambda of the items, above 0, the same for each item.
        seed: Of the first item vectors, which are public.
    """

    dimension: int = 8
    sweeps: int = 3
    unobserved_weight: float = 0.5
    user_ridge: float = 1.0
    item_ridge: float = 1.0
    seed: int = 0

    def draw_first_vectors(self, item_counts: FloatArray) -> FloatArray:
        """Draw the first item vectors: √(count / mean count) in front, then normal coordinates times that root.

        Args:
            item_counts: Noisy or exact, at least 0, public or released before; shape (num_items,).
        """
        rng = np.random.default_rng(self.seed)
        item_vectors = rng.standard_normal((item_counts.size, self.dimension))
        popularity_roots = np.sqrt(item_counts / max(float(item_counts.mean()), 1e-300))
        item_vectors *= popularity_roots[:, None]
        item_vectors[:, 0] = popularity_roots
        return np.asarray(item_vectors)


def select_choices(ratings: Ratings, smallest_rating: float | None = None) -> Ratings:
    """Select what users chose: the ratings of at least ``smallest_rating``, or all, each with value 1.

    Args:
        ratings: The table.
        smallest_rating: In the ratings' unit; None for all of them. The paper takes 4 of 5 stars.

    Raises:
        InvalidInput: No rating is so high.
    """
    chosen_ratings = ratings if smallest_rating is None else ratings.select(ratings.values >= smallest_rating)
    if not chosen_ratings.num_ratings:
        raise refuse(f"no rating is at least {smallest_rating:g}", remedy="Lower what counts as chosen")
    return replace(chosen_ratings, values=np.ones(chosen_ratings.num_ratings, dtype=np.float32))


@dataclass(frozen=True, eq=False)
class ImplicitModel:
    """The released item vectors, and the recommendations that follow from them.

    Attributes:
        item_vectors: Shape (num_items, d).
        settings: How they were found.
    """

    item_vectors: FloatArray
    settings: ImplicitSettings

    def solve_user_vectors(self, known_choices: Ratings) -> FloatArray:
        """Compute each user's vector from the item vectors and what they chose, shape (num_users, d).

        It has length 1, or 0 for a user without choices.
        """
        blocks = solve_users(known_choices, self.item_vectors, self.settings)
        return np.concatenate([block_vectors for _, block_vectors in blocks])


def solve_users(
    known_choices: Ratings, item_vectors: Vectors, settings: ImplicitSettings
) -> Iterator[tuple[RatingBlock, FloatArray]]:
    """Solve for all users' least-squares vectors, block by block, scaled to length 1; zeros for a user without choices.

    The recommendations to a user do not depend on the length of their vector. At length 1 every user's signal is as
    large as it may be for the noise.

    Yields:
        A block of users, and their vectors, shape (block, d).

    Source: Krichene et al. 2023, algorithm 3, line 4.
    """
    item_vectors = np.ascontiguousarray(item_vectors, dtype=known_choices.values.dtype)
    item_products = multiply_coordinates(item_vectors)
    unobserved_triangle = settings.unobserved_weight * item_products.sum(axis=0, dtype=np.float64)
    for choice_block in known_choices.iterate_blocks(model.choose_block_size(item_vectors.shape[1])):
        choice_matrix = choice_block.build_matrix(np.ones(choice_block.items.size, dtype=item_vectors.dtype))
        matrix_triangles = np.asarray(choice_matrix @ item_products) + unobserved_triangle
        user_sums = LeastSquaresSums(matrix_triangles, np.asarray(choice_matrix @ item_vectors))
        yield choice_block, scale_to_unit_length(model.solve_rows(user_sums, settings.user_ridge))


def scale_to_unit_length(vectors: FloatArray) -> FloatArray:
    """Scale every row to length 1, less 1e-9 for rounding; a row of zeros stays."""
    # By the largest entry first: squares of very small or large ones would leave float64.
    vectors = vectors / np.maximum(np.abs(vectors).max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    row_lengths = np.sqrt(np.einsum("ud,ud->u", vectors, vectors))
    return np.asarray(vectors * ((1.0 - 1e-9) / np.where(row_lengths > 0.0, row_lengths, 1.0))[:, None])


@dataclass(frozen=True, eq=False)
class ImplicitSums:
    """The sums of one pass over the users: private as `sum_over_users` makes them, or as released after `add_noise`.

    Attributes:
        item_sums: sum_j w_ij v_j v_j^T and sum_j w_ij v_j of every item.
        user_gram_triangle: Upper triangle of sum_j v_j v_j^T over all users, shape (d (d + 1) / 2,).
    """

    item_sums: LeastSquaresSums
    user_gram_triangle: FloatArray

    def add_noise(self, noise_std: float, rng: np.random.Generator) -> ImplicitSums:
        """Add Gaussian noise s to every entry: the sums as released.

        User vectors have length 1 and labels are 1, so that a user of squared weights k moves matrices and
        vectors by sqrt(k) each, and the Gram matrix by 1. The upper triangle of v v^T has squared norm (|v|^4 +
        sum v_k^4) / 2, which is at most 1.
        """
        item_sums = self.item_sums.add_noise(noise_std, noise_std, rng)
        gram_noise = noise_std * rng.standard_normal(self.user_gram_triangle.shape)
        return ImplicitSums(item_sums, self.user_gram_triangle + gram_noise)


def sum_over_users(
    train: Ratings,
    weighted_ratings: WeightedRatings | None,
    item_vectors: FloatArray,
    settings: ImplicitSettings,
) -> ImplicitSums:
    """Solve every user's vector, of length 1, and return the sums over users: of each item, and of all.

    Private.

    Args:
        train: All that the users chose, from which they solve.
        weighted_ratings: What enters the sums of items, with weights; None for all of it with weight 1.
        item_vectors: Of the sweep before, shape (num_items, d).
        settings: Ridge of the users, and alpha_0.
    """
    # In float64, as in `fit.sum_over_users`: in float32 a user could move a sum by more than is declared.
    dtype = train.values.dtype if weighted_ratings is None else np.dtype(np.float64)
    item_sums = LeastSquaresSums.build_zeros(train.num_items, settings.dimension, dtype)
    user_gram_triangle = np.zeros(item_sums.matrix_triangles.shape[1])
    weighted_ratings = weighted_ratings or WeightedRatings(train, np.ones(train.num_ratings, dtype))
    for train_block, user_vectors in solve_users(train, item_vectors, settings):
        user_gram_triangle += multiply_coordinates(user_vectors).sum(axis=0)
        weighted_block = RatingBlock(weighted_ratings.ratings, train_block.users)
        rating_weights = weighted_ratings.weights[weighted_block.rating_slice].astype(dtype, copy=False)
        item_sums.add(weighted_block, user_vectors.astype(dtype), rating_weights, rating_weights)
    return ImplicitSums(item_sums, user_gram_triangle)


def _solve_items(sums: ImplicitSums, settings: ImplicitSettings) -> FloatArray:
    """Compute (A_i + alpha_0 G + lambda I)^-1 b_i of every item, with A_i and G made semidefinite first."""
    # With noise a matrix may have negative eigenvalues, and the objective no minimum. The projection reads released
    # sums, and costs no privacy.
    item_matrices = model.unfold_triangles(sums.item_sums.matrix_triangles).astype(np.float64)
    matrices = model.project_semidefinite(item_matrices) + _weigh_unobserved(
        sums.user_gram_triangle, settings
    )
    return model.solve_with_ridge(matrices, sums.item_sums.label_sums, settings.item_ridge)


def _weigh_unobserved(user_gram_triangle: FloatArray, settings: ImplicitSettings) -> FloatArray:
    """Compute alpha_0 G of every item's equations, shape (1, d, d), from the users' Gram matrix G made semidefinite."""
    gram_matrices = model.unfold_triangles(user_gram_triangle[None, :]).astype(np.float64)
    return settings.unobserved_weight * model.project_semidefinite(gram_matrices)


CHOICE_RANGE = RatingRange(-1.0, 1.0)
"""Labels are 1, and 0 is its midpoint."""


def take_gradient_steps(
    item_vectors: FloatArray,
    weighted_choices: WeightedRatings,
    user_vectors: FloatArray,
    settings: ImplicitSettings,
    gradient_steps: GradientSteps,
    noise_std: float,
    weight_sums: FloatArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Take the noisy gradient steps of one sweep; return the new item vectors.

    Args:
        item_vectors: Before, shape (num_items, d).
        weighted_choices: The choices that count, and their weights.
        user_vectors: Of this sweep, of length at most 1, shape (num_users, d).
        settings: Ridge of the items, and alpha_0.
        gradient_steps: How many, and the clipping.
        noise_std: s, of G and, per unit of the gradient bound, of gradients.
        weight_sums: `dpcore.factorisation.fit.estimate_weight_sums`.
        rng: Source of the noise.

    Source: Krichene et al. 2023, algorithm 3 with algorithm 2, and its public code, whose objective this is. The step
    size is ours.
    """
    user_gram_triangle = multiply_coordinates(user_vectors).sum(axis=0)
    user_gram_triangle += noise_std * rng.standard_normal(user_gram_triangle.shape)
    unobserved_matrix = _weigh_unobserved(user_gram_triangle, settings)
    # What an item's curvature is if its users' vectors point where all users' do: sum_j w_ij G / trace G. In all
    # directions alike a step would be far too short, since most vectors have one direction in common (measured at
    # epsilon = 20 on generated choices: recall 0.39 in 4 steps, against 0.18).
    gram_share = unobserved_matrix / max(float(np.trace(unobserved_matrix[0])), 1e-300)
    curvatures = weight_sums[:, None, None] * gram_share + unobserved_matrix
    gradient_bound = gradient_steps.gradient_bound
    for _ in range(gradient_steps.steps_per_sweep):
        gradients = sum_gradients(weighted_choices, user_vectors, item_vectors, CHOICE_RANGE, gradient_bound)
        gradients += noise_std * gradient_bound * rng.standard_normal(gradients.shape)
        gradients += item_vectors @ unobserved_matrix[0] + settings.item_ridge * item_vectors
        item_vectors = item_vectors - model.solve_with_ridge(curvatures, gradients, settings.item_ridge)
    return item_vectors


def fit(train: Ratings, settings: ImplicitSettings, on_sweep: OnSweep = lambda: None) -> ImplicitModel:
    """Fit a factorisation of choices by alternating least squares without privacy."""
    item_vectors = settings.draw_first_vectors(train.item_counts.astype(np.float64))
    for _ in range(settings.sweeps):
        item_vectors = _solve_items(sum_over_users(train, None, item_vectors, settings), settings)
        on_sweep()
    return ImplicitModel(item_vectors, settings)


RIDGE_TO_NOISE = 3.0
"""As in `fit`; found on generated users, as alpha_0 and d were."""


def fit_private(
    train: Ratings,
    settings: ImplicitSettings,
    scheme: Scheme,
    spending: Spending,
    exponent: float = 0.25,
    ridge_to_noise: float = RIDGE_TO_NOISE,
    seed: int = 0,
    on_sweep: OnSweep = lambda: None,
    gradient_steps: GradientSteps | None = None,
) -> ImplicitModel:
    """Fit a factorisation of choices with user-level differential privacy: DPALS, or AdaDPSGD if steps are given.

    A simulation: floating-point noise, not hardened against attacks on the low bits.

    Args:
        train: What users chose; values are not read.
        settings: Dimension, ridges, alpha_0; the sweeps are those of ``spending``.
        scheme: Who gets a user's budget.
        spending: The budget, for two releases a sweep or one a step, and one for all items together. Noisy counts are
            taken under every scheme, and are where the sweeps begin.
        exponent: mu of the adaptive scheme.
        ridge_to_noise: What the items' ridge grows by per unit of noise.
        seed: Of noise and draws; schemes share the noise of the same seed.
        on_sweep: Called after each sweep; it may raise an exception to end the work.
        gradient_steps: Of gradient descent (algorithm 2); None for sums and their solution (algorithm 1).

    Returns:
        The model. With mu^2 as in `dpcore.factorisation.allocation`, it is a Gaussian
        mechanism under adding or removing one user.

    Raises:
        InvalidInput: The budget is for other releases than are made, or pays for no counts.
    """
    releases_per_sweep = 2 if gradient_steps is None else gradient_steps.steps_per_sweep
    if (spending.releases_per_sweep, spending.gram_releases_per_sweep) != (releases_per_sweep, 1):
        raise refuse(
            f"implicit feedback makes {releases_per_sweep} releases of each item and one Gram matrix in a sweep"
        )
    if not spending.count_share:
        raise refuse("implicit feedback needs noisy counts", remedy="Set some of the budget aside for counts")
    noisy_counts, weighted_ratings, noise_rng = weigh_with_counts(train, scheme, spending, exponent, seed)
    item_ridge = settings.item_ridge + ridge_to_noise * spending.noise_std
    settings = replace(settings, sweeps=spending.sweeps, item_ridge=item_ridge)
    item_vectors = settings.draw_first_vectors(noisy_counts)
    for _ in range(spending.sweeps):
        if gradient_steps is None:
            exact_sums = sum_over_users(train, weighted_ratings, item_vectors, settings)
            item_vectors = _solve_items(exact_sums.add_noise(spending.noise_std, noise_rng), settings)
        else:
            weight_sums = estimate_weight_sums(noisy_counts, exponent if scheme is Scheme.ADAPTIVE else 0.0)
            user_vectors = ImplicitModel(item_vectors, settings).solve_user_vectors(train)
            item_vectors = take_gradient_steps(
                item_vectors, weighted_ratings, user_vectors, settings, gradient_steps, spending.noise_std,
                weight_sums, noise_rng,
            )  # fmt: skip
        on_sweep()
    return ImplicitModel(item_vectors, settings)


@dataclass(frozen=True, eq=False)
class PopularityModel:
    """A recommender of the same items to everybody: those with the largest counts, exact or noisy, (num_items,)."""

    counts: FloatArray | IntArray

    @property
    def item_vectors(self) -> FloatArray:
        """Return item vectors of one coordinate, the item's count, shape (items, 1)."""
        return np.asarray(self.counts, dtype=np.float64)[:, None]

    def solve_user_vectors(self, known_choices: Ratings) -> FloatArray:
        """Return the same vector, 1, for each user, shape (num_users, 1)."""
        return np.ones((known_choices.num_users, 1))


def release_popularity(train: Ratings, spending: Spending, seed: int = 0) -> FloatArray:
    """Count each item's choices among k random ones of each user, and add noise of the whole budget.

    A baseline; shape (num_items,). The counts may be negative, unlike those of `count_with_noise`.
    """
    # For this single release k / s^2 is mu^2 = 2 beta.
    noise_std = float(np.sqrt(spending.max_items / (2.0 * spending.budget)))
    rng = np.random.default_rng(seed)
    counted_items = train.items[allocation.mask_kept_ratings(train.graph, spending.max_items, rng)]
    exact_counts = np.bincount(counted_items, minlength=train.num_items)
    return np.asarray(exact_counts + noise_std * rng.standard_normal(exact_counts.size))
