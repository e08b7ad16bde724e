"""What a private selection is drawn from: rows, totals and pairs of users, by public rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpcore.common.privacy import Disclosure
from dpcore.contributions import ContributionHistogram, FloatArray, IntArray
from dpcore.data.layout import TableLayout
from dpcore.data.totals_per_user import user_starts
from dpcore.dataset import Contribution, Dataset, Pairs, PairSizes, Totals, Values

LARGEST_CELL = 1e15
"""Cells are clamped to this on both sides, so that no sum of them overflows; bounds go no further."""


@dataclass(frozen=True, eq=False)
class UserAmounts:
    """What a private selection is drawn from; as private as the data.

    Attributes:
        histogram: Users by their number of rows; of data that name no user it holds nobody.
        totals: Each user's sum of the values, of either sign, shape (num_users,); None where no values were read.
        user_codes: User of every pair of user and group, ascending, shape (num_pairs,).
        rows: Rows of every pair, likewise.
        sums: Sum of the values of every pair, likewise; None where no values were read.
        pair_sizes: How pairs are distributed, where the pairs themselves are not known.
        layout: How the files were read; None for other data.
        name: What a person calls the data.
        num_groups: Groups that the rows name; None where no groups were read.
        rows_without_user: Rows that name no user; None where that was not counted.
        cells_without_number: Cells of the values that count as 0; None where that was not counted.
    """

    histogram: ContributionHistogram
    totals: FloatArray | None = None
    user_codes: IntArray | None = None
    rows: IntArray | None = None
    sums: FloatArray | None = None
    pair_sizes: PairSizes | None = None
    layout: TableLayout | None = None
    name: str = ""
    num_groups: int | None = None
    rows_without_user: int | None = None
    cells_without_number: int | None = None

    @property
    def dropped(self) -> dict[str, int]:
        """Return what the public rules leave out or count as 0, and how many groups there are; private."""
        counts = {
            "rows without a user": self.rows_without_user,
            "cells without a number": self.cells_without_number,
            "totals below 0": None if self.totals is None else int((self.totals < 0.0).sum()),
            "amounts below 0": None if self.sums is None else int((self.sums < 0.0).sum()),
            "groups": self.num_groups,
        }
        return {name: count for name, count in counts.items() if count is not None}


def has_totals(data: Dataset) -> bool:
    """Return True if the data hold one total per user of a column, and not only bins of totals."""
    if data.totals is not None and data.totals.column:
        return data.totals.users is None
    return data.values is not None


def _totals_of(data: Dataset) -> FloatArray | None:
    if not has_totals(data):
        return None
    if data.totals is not None and data.totals.column:
        return np.asarray(data.totals.totals, dtype=np.float64)
    assert data.values is not None
    cells = np.clip(data.values.values, -LARGEST_CELL, LARGEST_CELL)
    return np.asarray(np.add.reduceat(cells, user_starts(data.values)))


def amounts_of(data: Dataset) -> UserAmounts:
    """Return the amounts of data that were counted before."""
    amounts = UserAmounts(
        data.histogram, _totals_of(data), pair_sizes=data.pair_sizes, layout=data.layout, name=data.name
    )
    if (pairs := data.pairs) is None:
        return amounts
    rows = np.ones_like(pairs.user_codes) if pairs.rows is None else pairs.rows
    return replace(
        amounts, user_codes=pairs.user_codes, rows=rows, sums=pairs.sums, num_groups=pairs.num_tasks
    )


def columns_of(data: Dataset) -> dict[str, Any]:
    """Return the columns of data that were counted before by what they mean: ``user``, ``value``, ``group``."""
    value = data.values.column if data.values is not None else None
    if data.totals is not None and data.totals.column:
        value = data.totals.column
    groups = data.pairs or data.pair_sizes
    group = () if groups is None else (groups.column, *groups.further_columns)
    return {"user": data.privacy_unit, "value": value, "group": group}


def made_up_table(
    columns: Mapping[str, Any],
    disclosure: Disclosure,
    contribution: Contribution,
    amounts: UserAmounts | None = None,
) -> Dataset:
    """Return a made-up table of three users with these columns; of the data it has the file's name and format."""
    value, group, sizes = columns["value"], columns["group"], np.array([1, 2, 3])
    pairs = None
    if group:
        added: dict[str, Any] = {}
        if value is not None:
            added = {
                "sums": sizes,
                "sums_of_squares": sizes,
                "value_column": value,
                "value_range": (1.0, 1.0),
            }
        pairs = Pairs(
            np.arange(3),
            np.zeros(3, dtype=np.int64),
            1,
            group[0],
            rows=sizes,
            further_columns=group[1:],
            **added,
        )
    histogram = ContributionHistogram.from_counts(sizes)
    return Dataset(
        name=amounts.name if amounts is not None and amounts.name else "data",
        source="A made-up table.",
        disclosure=disclosure,
        histogram=histogram,
        privacy_unit=columns["user"],
        contribution=contribution,
        values=None if value is None else Values(np.repeat(np.arange(3), sizes), np.ones(6), value),
        totals=Totals.of_contributions(histogram) if value is None else Totals(sizes, value),
        pairs=pairs,
        layout=None if amounts is None else amounts.layout,
    )
