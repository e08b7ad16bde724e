"""Every user's summed gradient, for all runs at once: what is clipped where users are bounded by it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcore.contributions import FloatArray, IntArray
from dpcore.training.rows import ClassifierRows

BLOCK = 200_000
"""Entries of a rows × runs matrix that are worked on at once: 1.6 MB, about what a core's own cache holds."""


def user_blocks(rows: ClassifierRows, block: int) -> list[tuple[int, int]]:
    """Users from and to, each block with about so many rows."""
    marks = np.searchsorted(rows.starts, np.arange(0, rows.num_rows, block))
    cuts = np.unique(np.append(marks, rows.num_users))
    return list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class _Block:
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
        self._blocks = [self._block(*ends) for ends in user_blocks(rows, max(BLOCK // runs, 1))]

    def _block(self, first: int, last: int) -> _Block:
        from scipy.sparse import csr_array

        rows, d = self._rows, self._rows.num_features
        begin = int(rows.starts[first])
        part = slice(begin, int(rows.starts[last - 1] + rows.sizes[last - 1]))
        owners = rows.users[part] - first
        size = owners.size
        # One line per user and feature, in which each row's slope meets its signed feature.
        line = (owners[:, None] * d + np.arange(d)).ravel()
        order = np.argsort(line, kind="stable")
        ends = np.concatenate(([0], np.cumsum(np.repeat(rows.sizes[first:last], d))))
        matrix = csr_array(
            (rows.signed[part].ravel()[order], np.repeat(np.arange(size), d)[order], ends),
            shape=((last - first) * d, size),
        )
        return _Block(slice(first, last), part, owners, matrix)

    def blocks(self) -> Iterator[_Block]:
        """Users in turn."""
        yield from self._blocks

    def norms(self, block: _Block, slopes: FloatArray) -> FloatArray:
        """Norm of each user's sum, from the slopes of the block's rows, shape (users, runs)."""
        users = block.users.stop - block.users.start
        sums = (block.matrix @ slopes).reshape(users, self._rows.num_features, slopes.shape[1])
        return np.asarray(np.sqrt(np.einsum("ukr,ukr->ur", sums, sums)))
