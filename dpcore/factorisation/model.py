"""Item vectors, the user vectors that follow from them, and predictions, by least squares.

Least squares are solved for all users, or for all items, at once, from weighted sums of x x^T and y x. A block of
users is a sparse matrix with the weights as its entries. Its product with a table of the items' products x_k x_l (upper
triangle only) gives the matrices of all its users. The product of its transpose with a table of the users' products
adds to the matrices of all items. So there is no loop over users and no table by item. Processor time on one core with
10 million ratings: at d = 8, 0.1 s for all users and 0.2 s for all items. At d = 32, 1.8 s and 1.2 s.

Every user's vector begins with the same number o (the offset coordinate), which is not learned: the item's
coordinate there is the item's own level. Without it a private model would spend its noise on finding the levels
as a product. With o = 0 there is no such coordinate, and the objective is (D.1) of Krichene et al. 2023 on
ratings less the midpoint.

Every item's vector may end with the same public number (the own coordinate). A user's coordinate there is their own
offset: how far they rate above what items explain. It is computed on the user's device, costs no privacy, and is
subtracted from their ratings before these enter a sum.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpcore.common.checks import Problems
from dpcore.contributions import FloatArray
from dpcore.factorisation.ratings import RatingBlock, Ratings, RatingValues

Vectors = npt.NDArray[np.floating]

_BLOCK_BYTES = 16_000_000


@dataclass(frozen=True, eq=False)
class LeastSquaresSums:
    """Sums of w x x^T and of w y x for every row of a table; a row is a user or an item.

    Attributes:
        matrix_triangles: Upper triangle of sum w x x^T, row by row, shape (rows, d (d + 1) / 2).
        label_sums: sum w y x, shape (rows, d).
    """

    matrix_triangles: Vectors
    label_sums: Vectors

    @classmethod
    def build_zeros(cls, num_rows: int, d: int, dtype: npt.DTypeLike) -> LeastSquaresSums:
        """Return sums that are all 0, for ``num_rows`` rows and vectors of d coordinates."""
        return cls(np.zeros((num_rows, d * (d + 1) // 2), dtype), np.zeros((num_rows, d), dtype))

    def add(
        self, rating_block: RatingBlock, user_vectors: Vectors, weights: Vectors, weighted_labels: Vectors
    ) -> None:
        """Add the ratings of a block of users to the sums of all items, in place.

        Args:
            rating_block: The users and their ratings.
            user_vectors: Theirs, shape (users of the block, d).
            weights: The weight of each of the block's ratings, for the matrices.
            weighted_labels: Weight times label of each of the block's ratings, for the label sums.
        """
        # The transpose of a matrix by rows is one by columns, which is multiplied as it is: nothing is sorted.
        block_products = rating_block.build_matrix(weights).T @ multiply_coordinates(user_vectors)
        np.add(self.matrix_triangles, block_products, out=self.matrix_triangles)
        np.add(
            self.label_sums, rating_block.build_matrix(weighted_labels).T @ user_vectors, out=self.label_sums
        )

    def add_noise(
        self, matrix_noise_std: float, label_noise_std: float, rng: np.random.Generator
    ) -> LeastSquaresSums:
        """Return these sums with Gaussian noise on every entry; matrices and vectors have a deviation each."""
        return LeastSquaresSums(
            self.matrix_triangles + matrix_noise_std * rng.standard_normal(self.matrix_triangles.shape),
            self.label_sums + label_noise_std * rng.standard_normal(self.label_sums.shape),
        )


def unfold_triangles(matrix_triangles: Vectors) -> Vectors:
    """Return symmetric matrices in full, shape (rows, d, d), from their upper triangles, (rows, d (d + 1) / 2)."""
    d = math.isqrt(2 * matrix_triangles.shape[1])
    row_indices, column_indices = np.triu_indices(d)
    triangle_positions = np.empty((d, d), dtype=np.intp)
    triangle_positions[row_indices, column_indices] = np.arange(row_indices.size)
    triangle_positions[column_indices, row_indices] = np.arange(row_indices.size)
    # One gather of whole rows: twice as fast as filling both halves.
    return np.asarray(np.take(matrix_triangles, triangle_positions.ravel(), axis=1).reshape(-1, d, d))


def project_semidefinite(symmetric_matrices: FloatArray) -> FloatArray:
    """Return the nearest positive semidefinite matrices. Source: Krichene et al. 2023, algorithm 1, line 7."""
    eigenvalues, eigenvectors = np.linalg.eigh(symmetric_matrices)
    scaled_vectors = eigenvectors * np.maximum(eigenvalues, 0.0)[:, None, :]
    return np.asarray(scaled_vectors @ np.swapaxes(eigenvectors, -1, -2))


def choose_block_size(dimension: int) -> int:
    """Return the number of users per block, at least 1,024, so that its products stay in the processor's cache."""
    return max(_BLOCK_BYTES // (2 * dimension * (dimension + 1) or 1), 1_024)


def multiply_coordinates(row_vectors: Vectors) -> Vectors:
    """Compute x_k x_l for k <= l of every row, shape (rows, d (d + 1) / 2)."""
    row_indices, column_indices = np.triu_indices(row_vectors.shape[1])
    return np.asarray(row_vectors[:, row_indices] * row_vectors[:, column_indices])


def solve_rows(row_sums: LeastSquaresSums, ridge: float) -> FloatArray:
    """Compute (sum w x x^T + ridge I)^-1 sum w y x for every row, shape (rows, d); ``ridge`` above 0.

    All rows in one call, in float64 whatever the precision of the sums. Measured for 6,040 rows of d = 32: 0.04
    s by LU factorisations, as in `numpy.linalg.solve`; Cholesky factors and triangles solved for all rows at
    once took 0.08 s.
    """
    matrices, d = unfold_triangles(row_sums.matrix_triangles), row_sums.label_sums.shape[1]
    largest_diagonals = np.diagonal(matrices, axis1=1, axis2=2).max(axis=1, initial=0.0).astype(np.float64)
    # The sums are rounded: without this, a ridge that is smaller than that could leave a matrix indefinite.
    rounding_ridges = 4 * d * np.finfo(matrices.dtype).eps * largest_diagonals
    return solve_with_ridge(matrices, row_sums.label_sums, ridge + rounding_ridges)


def solve_with_ridge(row_matrices: Vectors, right_sides: Vectors, ridges: float | FloatArray) -> FloatArray:
    """Compute (A + ridge I)^-1 b in float64 for the A and b of every row; ridges are one number, or one of each row."""
    ridged_matrices, diagonal_indices = row_matrices.astype(np.float64), np.arange(row_matrices.shape[1])
    ridged_matrices[:, diagonal_indices, diagonal_indices] += np.reshape(ridges, (-1, 1))
    return np.asarray(np.linalg.solve(ridged_matrices, right_sides.astype(np.float64)[:, :, None])[:, :, 0])


OFFSET = 0.9
"""o. An item's level explains more of a rating than taste does; on generated ratings 0.9 did better than 0.7 at every
epsilon from 1 to 20."""
OWN_COORDINATE = 1.5
"""The own coordinate of every item: a user's offset has a ridge of user_ridge / `OWN_COORDINATE`², 4.4 by default."""
LARGEST_RATING = 1e30
"""Ends of the range: beyond, sums of squares would leave float32."""


@dataclass(frozen=True)
class RatingRange:
    """The public range of ratings: they are clipped to it, and centred at its midpoint.

    Attributes:
        lowest, highest: Its ends, in the ratings' unit. They must not be read off private ratings.

    Raises:
        InvalidInput: Not finite, or empty.
    """

    lowest: float = 0.5
    highest: float = 5.0

    def __post_init__(self) -> None:
        """Raise `InvalidInput` unless the ends are ascending and within `LARGEST_RATING`."""
        with Problems() as problems:
            ends_by_name = {"the lowest rating": self.lowest, "the highest": self.highest}
            if problems.ascending(**ends_by_name):
                problems.between(-LARGEST_RATING, LARGEST_RATING, **ends_by_name)

    @property
    def midpoint(self) -> float:
        """Return the midpoint of the range."""
        return (self.lowest + self.highest) / 2.0

    @property
    def label_bound(self) -> float:
        """Return Gamma_y, the largest distance of a clipped rating from the midpoint."""
        return (self.highest - self.lowest) / 2.0

    def centre(self, rating_values: RatingValues) -> RatingValues:
        """Return the ratings less the midpoint, clipped to at most `label_bound` from 0, in the same precision."""
        # Rounded to float32 before the midpoint is taken off, a rating between 1000.1 and 1000.7 may lie 1.6e-4 of the
        # bound too far out. The margin covers the rounding at the end.
        bound = self.label_bound * (1.0 - float(np.finfo(rating_values.dtype).eps))
        centred_values = np.clip(rating_values.astype(np.float64) - self.midpoint, -bound, bound)
        return np.asarray(centred_values, dtype=rating_values.dtype)


@dataclass(frozen=True)
class FactorSettings:
    """The settings of alternating least squares for ratings, with or without privacy.

    Attributes:
        dimension: d, coordinates of an item vector, the offset coordinate among them; 1 to 128.
        sweeps: T, each a solution for all users and then for all items; 1 to 50.
        user_ridge: lambda of the users, above 0. Users solve for their own vector at home: it touches no privacy.
        item_ridge: lambda of the items, above 0, the same number for each item, so that it is public.
        offset_coordinate: o, the first coordinate of every user vector, in [0, 1]; 0 for none.
        own_coordinate: The own coordinate of every item, at least 0; 0 for users without an offset of their own.
        seed: Of the first item vectors, which are public.
    """

    dimension: int = 4
    sweeps: int = 2
    user_ridge: float = 10.0
    item_ridge: float = 5.0
    offset_coordinate: float = OFFSET
    own_coordinate: float = 0.0
    seed: int = 0

    def draw_first_vectors(self, num_items: int) -> FloatArray:
        """Draw random item vectors of expected squared length 1.

        The offset coordinate is 0, and the own coordinate is appended if there is one.
        """
        num_free = self.dimension - (self.offset_coordinate > 0.0)
        rng = np.random.default_rng(self.seed)
        random_vectors = rng.standard_normal((num_items, num_free)) / math.sqrt(max(num_free, 1))
        offset_column = np.zeros((num_items, self.dimension - num_free))
        return self.append_own_coordinate(np.hstack([offset_column, random_vectors]))

    def append_own_coordinate(self, item_vectors: FloatArray) -> FloatArray:
        """Append the own coordinate to item vectors of shape (items, d); without one, return them as they are."""
        if not self.own_coordinate:
            return item_vectors
        return np.hstack([item_vectors, np.full((item_vectors.shape[0], 1), self.own_coordinate)])


@dataclass(frozen=True, eq=False)
class FactorModel:
    """The released item vectors, and the predictions that follow from them.

    Attributes:
        item_vectors: One per item, shape (num_items, d), with the own coordinate behind where there is one.
        settings: How they were found.
        rating_range: Of the ratings.
    """

    item_vectors: FloatArray
    settings: FactorSettings
    rating_range: RatingRange

    @property
    def coordinates_without_level(self) -> FloatArray:
        """Return the item vectors without the first, offset coordinate, if any; the constant own coordinate stays."""
        return self.item_vectors[:, int(self.settings.offset_coordinate > 0.0) :]

    def solve_user_vectors(self, own_ratings: Ratings) -> FloatArray:
        """Compute each user's vector from the item vectors and their own ratings, shape (num_users, d)."""
        blocks = solve_users(own_ratings, self.item_vectors, self.settings, self.rating_range)
        return np.concatenate([block_vectors for _, block_vectors in blocks])

    def predict(self, user_vectors: Vectors, pairs: Ratings) -> FloatArray:
        """Predict the rating of each pair of user and item in a table, within the range, shape (num_ratings,)."""
        predictions = np.empty(pairs.num_ratings)
        # 4 million numbers at a time.
        users_per_block = int(4e6 / self.item_vectors.shape[1] * pairs.num_users / (pairs.num_ratings + 1))
        for rating_block in pairs.iterate_blocks(max(users_per_block, 1)):
            predictions[rating_block.rating_slice] = np.einsum(
                "pd,pd->p", user_vectors[rating_block.rating_users], self.item_vectors[rating_block.items]
            )
        limits = self.rating_range.lowest, self.rating_range.highest
        return np.asarray(np.clip(predictions + self.rating_range.midpoint, *limits))


def solve_users(
    ratings: Ratings, item_vectors: Vectors, settings: FactorSettings, rating_range: RatingRange
) -> Iterator[tuple[RatingBlock, FloatArray]]:
    """Solve for the exact least-squares vectors of all users, block by block, the offset coordinate in front.

    Args:
        ratings: The table.
        item_vectors: Shape (num_items, d).
        settings: Ridge and offset.
        rating_range: The range of ratings.

    Yields:
        A block of users, and their vectors, shape (block, d).

    Source: Krichene et al. 2023, algorithm 3, line 4.
    """
    num_fixed = int(settings.offset_coordinate > 0.0)
    item_coordinates = np.ascontiguousarray(item_vectors[:, num_fixed:], dtype=ratings.values.dtype)
    item_products = multiply_coordinates(item_coordinates)
    item_level_terms = (settings.offset_coordinate * item_vectors[:, 0]).astype(item_coordinates.dtype)
    for rating_block in ratings.iterate_blocks(choose_block_size(item_vectors.shape[1])):
        user_vectors = np.empty((rating_block.users.stop - rating_block.users.start, item_vectors.shape[1]))
        user_vectors[:, :num_fixed] = settings.offset_coordinate
        if item_coordinates.shape[1]:
            centred_ratings = rating_range.centre(ratings.values[rating_block.rating_slice])
            centred_ratings = centred_ratings - item_level_terms[rating_block.items]
            matrix_triangles = rating_block.build_matrix(np.ones_like(centred_ratings)) @ item_products
            label_sums = rating_block.build_matrix(centred_ratings) @ item_coordinates
            user_sums = LeastSquaresSums(np.asarray(matrix_triangles), np.asarray(label_sums))
            user_vectors[:, num_fixed:] = solve_rows(user_sums, settings.user_ridge)
        yield rating_block, user_vectors
