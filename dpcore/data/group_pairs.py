"""Who contributes how much to which group, from columns: the facet `Pairs` with rows and sums."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpcore.contributions import FloatArray
from dpcore.dataset import Pairs

NO_GROUP = -1
"""Code of a row that names no group."""


def pairs_of_rows(
    user_codes: npt.ArrayLike,
    group_codes: npt.ArrayLike,
    num_groups: int,
    column: str,
    values: FloatArray | None = None,
    value_column: str = "",
) -> Pairs | None:
    """Return the facet from one entry per row; rows that name no group are counted and stay out.

    Args:
        user_codes: Whole numbers of at least 0, shape (num_rows,). Never ids.
        group_codes: 0 .. num_groups - 1, or `NO_GROUP`, shape (num_rows,).
        num_groups: Groups that the data hold.
        column: Name of the group column; of several, joined by the caller.
        values: What is added up per user and group, finite, shape (num_rows,); None for rows alone.
        value_column: Its name.

    Returns:
        `Pairs` with rows, and with sums, sums of squares and the values' range where values are given and their squares
        can be added up in float64; None where no row names a group.
    """
    users, groups = np.asarray(user_codes, dtype=np.int64), np.asarray(group_codes, dtype=np.int64)
    named = groups >= 0
    if not named.any():
        return None
    users, groups = users[named], groups[named]
    held = None if values is None else np.asarray(values, dtype=np.float64)[named]
    if held is not None and float(np.abs(held).max()) > 1e100:
        held = None
    code = users * num_groups + groups  # At most rows squared, far below 2^63.
    # A stable sort of whole numbers is a radix sort, about twice as fast as the default one on millions.
    order = np.argsort(code, kind="stable")
    code = code[order]
    starts = np.flatnonzero(np.r_[True, code[1:] != code[:-1]])
    first = order[starts]
    sums = None if held is None else np.add.reduceat(held[order], starts)
    squares = None if held is None else np.add.reduceat(held[order] ** 2, starts)
    return Pairs(
        users[first],
        groups[first],
        num_groups,
        column,
        rows=np.diff(np.r_[starts, code.size]),
        sums=sums,
        sums_of_squares=squares,
        value_column=value_column if held is not None else "",
        value_range=None if held is None else (float(held.min()), float(held.max())),
        rows_without_group=int(named.size - named.sum()),
    )
