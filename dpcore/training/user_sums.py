"""Every user's summed gradient, for all runs at once, for methods that clip it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcore.contributions import FloatArray, IntArray
from dpcore.training.rows import ClassifierRows

BLOCK = 200_000
"""Entries of a rows × runs matrix that are worked on at once: 1.6 MB, about what a core's own cache holds."""


def cut_user_blocks(rows: ClassifierRows, block_size: int) -> list[tuple[int, int]]:
    """Cut the users into blocks of about so many rows; return (first, last) of each."""
    block_starts = np.searchsorted(rows.starts, np.arange(0, rows.num_rows, block_size))
    cuts = np.unique(np.append(block_starts, rows.num_users))
    return list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class _UserBlock:
    """A block of users with the matrix from their rows to their sums."""

    users: slice
    rows: slice
    owners: IntArray
    """Position of each row's user among the users of the block."""
    matrix: Any
    """Sparse: the rows' slopes to the users' sums, one line per user and feature."""


class UserSums:
    """The sums of some rows, prepared once for all steps.

    One sparse matrix takes the slopes of a block's rows to the sums of its users, with no array of rows × features ×
    runs: ten times as fast as adding up feature by feature at 7 features and 50 runs.
    """

    def __init__(self, rows: ClassifierRows, runs: int) -> None:
        self._rows = rows
        self._blocks = [
            self._make_block(*user_range) for user_range in cut_user_blocks(rows, max(BLOCK // runs, 1))
        ]

    def _make_block(self, first_user: int, last_user: int) -> _UserBlock:
        """Make a block of users."""
        from scipy.sparse import csr_array

        rows, num_features = self._rows, self._rows.num_features
        first_row = int(rows.starts[first_user])
        row_slice = slice(first_row, int(rows.starts[last_user - 1] + rows.sizes[last_user - 1]))
        owners = rows.users[row_slice] - first_user
        num_rows = owners.size
        # One line per user and feature, with the signed feature of each of the user's rows.
        matrix_rows = (owners[:, None] * num_features + np.arange(num_features)).ravel()
        order = np.argsort(matrix_rows, kind="stable")
        row_ends = np.concatenate(([0], np.cumsum(np.repeat(rows.sizes[first_user:last_user], num_features))))
        matrix = csr_array(
            (
                rows.signed[row_slice].ravel()[order],
                np.repeat(np.arange(num_rows), num_features)[order],
                row_ends,
            ),
            shape=((last_user - first_user) * num_features, num_rows),
        )
        return _UserBlock(slice(first_user, last_user), row_slice, owners, matrix)

    def iterate_blocks(self) -> Iterator[_UserBlock]:
        """Yield the blocks of users in turn."""
        yield from self._blocks

    def compute_norms(self, block: _UserBlock, slopes: FloatArray) -> FloatArray:
        """Compute the norm of each user's sum from the slopes of the block's rows, shape (users, runs)."""
        users = block.users.stop - block.users.start
        sums = (block.matrix @ slopes).reshape(users, self._rows.num_features, slopes.shape[1])
        return np.asarray(np.sqrt(np.einsum("ukr,ukr->ur", sums, sums)))
