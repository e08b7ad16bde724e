"""The input of a private selection: rows, totals and pairs of users, by public rules."""

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
"""Magnitude to which cells are clamped, so that no sum overflows; it is also the largest bound."""


@dataclass(frozen=True, eq=False)
class UserAmounts:
    """The input of a private selection; as private as the data.

    Attributes:
        histogram: Numbers of users by size; empty for data that name no user.
        totals: Each user's sum of the values, of either sign, shape (num_users,); None if no values were read.
        user_codes: User of every pair of user and group, ascending, shape (num_pairs,).
        rows: Rows of every pair, likewise.
        sums: Sum of the values of every pair, likewise; None if no values were read.
        pair_sizes: Distribution of pairs, if the pairs themselves are not known.
        layout: Layout of the files; None for other data.
        name: Display name of the data.
        num_groups: Number of groups that the rows name; None if no groups were read.
        rows_without_user: Number of rows that name no user; None if it was not counted.
        cells_without_number: Number of value cells that count as 0; None if it was not counted.
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
        """Return the numbers of cells and rows that the rules drop or count as 0, and of groups, by name; private."""
        counts = {
            "rows without a user": self.rows_without_user,
            "cells without a number": self.cells_without_number,
            "totals below 0": None if self.totals is None else int((self.totals < 0.0).sum()),
            "amounts below 0": None if self.sums is None else int((self.sums < 0.0).sum()),
            "groups": self.num_groups,
        }
        return {name: count for name, count in counts.items() if count is not None}


def has_totals(data: Dataset) -> bool:
    """Return True if the data have a total per user of a column, not only bins of totals."""
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
    """Return the amounts of a dataset, which was counted before."""
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
    """Return the columns of a dataset by role: ``user``, ``value``, ``group``."""
    value = data.values.column if data.values is not None else None
    if data.totals is not None and data.totals.column:
        value = data.totals.column
    groups = data.pairs or data.pair_sizes
    group = () if groups is None else (groups.column, *groups.further_columns)
    return {"user": data.privacy_unit, "value": value, "group": group}


def build_dummy_dataset(
    columns: Mapping[str, Any],
    disclosure: Disclosure,
    contribution: Contribution,
    amounts: UserAmounts | None = None,
) -> Dataset:
    """Build a dummy dataset of three users with these columns, and with the data's file name and layout."""
    value, group, sizes = columns["value"], columns["group"], np.array([1, 2, 3])
    pairs = None
    if group:
        amount_fields: dict[str, Any] = {}
        if value is not None:
            amount_fields = {
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
            **amount_fields,
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
