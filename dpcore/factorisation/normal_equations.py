"""Least squares for all users, or for all items, at once: weighted sums of x x^T and y x, and their solutions.

A block of users is a sparse matrix with the weights as its entries. Its product with a table of the items' products
x_k x_l (upper triangle only) gives the matrices of all its users, and the product of its transpose with a table of the
users' products adds to the matrices of all items: no loop over users, and no table by item. Measured on one core with
10 million ratings: 0.1 s of processor time for all users and 0.2 s for all items at d = 8, 1.8 s and 1.2 s at d = 32.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.contributions import FloatArray
from dpcore.factorisation.ratings import Ratings

Vectors = npt.NDArray[np.floating]

_BLOCK_BYTES = 16_000_000


@dataclass(frozen=True, eq=False)
class Sums:
    """Weighted sums for every row of a table, a row being a user or an item.

    Attributes:
        matrices: Upper triangle of sum w x x^T, row by row, shape (rows, d (d + 1) / 2).
        vectors: sum w y x, shape (rows, d).
    """

    matrices: Vectors
    vectors: Vectors

    def unfolded(self) -> Vectors:
        """The matrices in full, shape (rows, d, d)."""
        rows, d = self.vectors.shape
        above, right = np.triu_indices(d)
        place = np.empty((d, d), dtype=np.intp)
        place[above, right] = place[right, above] = np.arange(above.size)
        # One gather of whole rows: twice as fast as filling both halves.
        return np.asarray(np.take(self.matrices, place.ravel(), axis=1).reshape(rows, d, d))


def users_at_once(dimension: int) -> int:
    """Users per block, for which the products of one block stay near the processor."""
    return max(_BLOCK_BYTES // (2 * dimension * (dimension + 1) or 1), 1_024)


def products(vectors: Vectors) -> Vectors:
    """x_k x_l for k <= l of every row, shape (rows, d (d + 1) / 2)."""
    above, right = np.triu_indices(vectors.shape[1])
    return np.asarray(vectors[:, above] * vectors[:, right])


def _sparse(ratings: Ratings, users: slice, at: slice, entries: Vectors) -> Any:
    from scipy.sparse import csr_matrix

    starts = (ratings.starts[users.start : users.stop + 1] - at.start).astype(np.int32)
    return csr_matrix(
        (entries, ratings.items[at], starts), shape=(users.stop - users.start, ratings.num_items)
    )


def user_sums(
    ratings: Ratings,
    users: slice,
    at: slice,
    item_vectors: Vectors,
    item_products: Vectors,
    matrix_entries: Vectors,
    vector_entries: Vectors,
) -> Sums:
    """For each user of a block, the sums over their items.

    Args:
        ratings: The table.
        users: The block's users.
        at: Their ratings.
        item_vectors: Shape (num_items, d).
        item_products: `products` of them.
        matrix_entries: Weight of each of the block's ratings in the matrices.
        vector_entries: Weight times label of each, for the vectors.
    """
    return Sums(
        np.asarray(_sparse(ratings, users, at, matrix_entries) @ item_products),
        np.asarray(_sparse(ratings, users, at, vector_entries) @ item_vectors),
    )


def add_item_sums(
    into: Sums,
    ratings: Ratings,
    users: slice,
    at: slice,
    user_vectors: Vectors,
    matrix_entries: Vectors,
    vector_entries: Vectors,
) -> None:
    """Add a block of users to the sums of all items; arguments as in `user_sums`.

    ``user_vectors`` are those of the block's users, shape (block, d).
    """
    # The transpose of a matrix by rows is one by columns, which is multiplied as it is: nothing is sorted.
    np.add(
        into.matrices,
        _sparse(ratings, users, at, matrix_entries).T @ products(user_vectors),
        out=into.matrices,
    )
    add_item_vectors(into.vectors, ratings, users, at, user_vectors, vector_entries)


def add_item_vectors(
    into: Vectors, ratings: Ratings, users: slice, at: slice, user_vectors: Vectors, entries: Vectors
) -> None:
    """Add each item's sum of entry times user vector over a block of users; arguments as in `add_item_sums`."""
    np.add(into, _sparse(ratings, users, at, entries).T @ user_vectors, out=into)


def solved(sums: Sums, ridge: float) -> FloatArray:
    """(sum w x x^T + ridge I)^-1 sum w y x for every row, shape (rows, d); ``ridge`` above 0.

    All rows in one call, in float64 whatever the sums are. Measured for 6,040 rows of d = 32: 0.04 s by LU
    factorisations, which is what `numpy.linalg.solve` does; Cholesky factors and triangles solved for all rows at once
    took 0.08 s.
    """
    d = sums.vectors.shape[1]
    if d == 0:
        return sums.vectors.astype(np.float64)
    full = sums.unfolded().astype(np.float64)
    diagonal = np.arange(d)
    # The sums are rounded: without this, a ridge that is smaller than that could leave a matrix indefinite.
    rounding = 4 * d * np.finfo(sums.matrices.dtype).eps * full[:, diagonal, diagonal].max(axis=1)
    full[:, diagonal, diagonal] += ridge + rounding[:, None]
    return np.asarray(np.linalg.solve(full, sums.vectors.astype(np.float64)[:, :, None])[:, :, 0])
