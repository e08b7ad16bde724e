"""What a private selection is drawn from: rows, totals and pairs of users, by public rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpcore.common.privacy import Disclosure
from dpcore.contributions import ContributionHistogram, FloatArray, IntArray
from dpcore.data.layout import TableLayout
from dpcore.data.totals_per_user import sums_per_user
from dpcore.dataset import Contribution, Dataset, Pairs, PairSizes, Totals, Values


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


def drawable_totals(data: Dataset) -> FloatArray | None:
    """Return one total per user of the column that is summed; None if there is none, or only bins of totals."""
    if data.totals is not None and data.totals.column:
        return None if data.totals.users is not None else np.asarray(data.totals.totals, dtype=np.float64)
    return None if data.values is None else sums_per_user(data.values)


def amounts_of(data: Dataset) -> UserAmounts:
    """Return the amounts of data that were counted before."""
    amounts = UserAmounts(
        data.histogram, drawable_totals(data), pair_sizes=data.pair_sizes, layout=data.layout, name=data.name
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
