"""A table on its way to a data set: its columns as numbers and codes, and what is to be said of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpcore.common.checks import Problems
from dpcore.contributions import ContributionHistogram, FloatArray, IntArray
from dpcore.data.column_roles import MissingUsers, Roles
from dpcore.data.messages import PLACES
from dpcore.data.numbers import read_numbers
from dpcore.data.tables import BoolArray, Table, shown
from dpcore.dataset import MAX_TOTALS, Pairs, Totals, Values

Reduced = tuple[ContributionHistogram, Values | None, Totals | None, Pairs | None]


@dataclass
class Reading:
    """A table on its way to a data set: what is wrong so far, and what is to be said."""

    table: Table
    problems: Problems
    notes: list[str]

    def line(self, row: int) -> str:
        """The place of a row in words."""
        return self.table.place(int(row))

    def flag(
        self,
        bad: BoolArray,
        rows: IntArray,
        column: str,
        what: str,
        remedy: str,
        say: Callable[[int], str] | None = None,
    ) -> None:
        """Add a problem with the first places, what stands there (``say``), and how many there are."""
        at = np.flatnonzero(bad)
        if not at.size:
            return
        cells = [f" ({say(int(i))})" if say is not None else "" for i in at[:PLACES]]
        also = " and ".join(
            self.line(rows[i]) + cell for i, cell in zip(at[1:PLACES], cells[1:], strict=True)
        )
        text = what + cells[0] + (f"; also {also}" if also else "")
        text += f"; {at.size:,} in all" if at.size > PLACES else ""
        self.problems.add(text, f"{self.line(rows[at[0]])}, column {shown(column)}", remedy)

    def leave_out(self, out: BoolArray, rows: IntArray, one: str, many: str) -> BoolArray:
        """Note rows that are left out; returns the mask of those that stay."""
        at = np.flatnonzero(out)
        if at.size:
            first = self.line(rows[at[0]])
            self.notes.append(
                f"1 {one} was left out ({first})."
                if at.size == 1
                else f"{at.size:,} {many} were left out (first: {first})."
            )
        return ~out

    def numbers(self, column: str, rows: IntArray, remedy: str, *, whole: bool = False) -> FloatArray:
        """A column as finite numbers; what is none is flagged, and NaN here."""
        read = read_numbers(self.table, column, rows, whole=whole)
        if read.note:
            self.notes.append(read.note)
        if read.problem is not None:
            self.problems.extend([read.problem])
        cells = self.table.frame[column]
        self.flag(read.blank, rows, column, "the cell is blank", remedy)
        # These cells match a short list of words or are numbers like 1e999, so they may be shown.
        self.flag(
            read.not_finite,
            rows,
            column,
            "not a finite number",
            remedy,
            lambda i: str(cells.iloc[rows[i]])[:20],
        )
        self.flag(read.text, rows, column, "text where a number must stand", remedy)
        return read.values

    def whole_numbers(self, column: str, rows: IntArray, high: int, remedy: str) -> FloatArray:
        """A column of whole numbers from 0 to ``high``; what is none is flagged."""
        values = self.numbers(column, rows, remedy, whole=True)
        with np.errstate(invalid="ignore"):
            negative, large = values < 0, values > high
            broken = ~negative & ~large & (values != np.floor(values)) & ~np.isnan(values)

        # Rounded: a column of ids chosen by mistake holds large numbers, and ids are not to be quoted.
        def say(i: int) -> str:
            return f"{values[i]:.3g}"

        self.flag(negative, rows, column, "a negative number", remedy, say)
        self.flag(broken, rows, column, "not a whole number", remedy, say)
        self.flag(large, rows, column, f"more than {high:,}", remedy, say)
        return values

    def rows_with_user(self, roles: Roles) -> IntArray:
        """Rows that stay, given what is to be done with those that name no user."""
        rows = np.arange(len(self.table.frame), dtype=np.int64)
        if not roles.privacy_unit:
            return rows
        blank = no_user(self.table.frame, roles)
        if not blank.any():
            return rows
        if roles.missing_users is MissingUsers.ONE_USER:
            at = np.flatnonzero(blank)
            how_many = (
                "1 row without a user counts" if at.size == 1 else f"{at.size:,} rows without a user count"
            )
            self.notes.append(f"{how_many} as one user (first: {self.line(at[0])}).")
            return rows
        kept = rows[self.leave_out(blank, rows, "row without a user", "rows without a user")]
        if not kept.size:
            self.problems.add(
                "no row names a user",
                f"column {' and '.join(map(shown, roles.privacy_unit))}",
                "Choose the column that says who, or count rows without a user as one user",
            )
            self.problems.raise_if_any()
        return kept


def no_user(frame: pd.DataFrame, roles: Roles) -> BoolArray:
    """Whether a row names no user."""
    blank: BoolArray = np.any((frame[list(roles.privacy_unit)] == "").to_numpy(bool), axis=1)
    return blank


def codes_of(cells: pd.Series) -> IntArray:
    """One code per cell, counted from 0 in the order in which the cells come first."""
    return np.asarray(pd.factorize(cells)[0], dtype=np.int64)


def totals_of(
    reading: Reading,
    histogram: ContributionHistogram,
    value: FloatArray | None,
    sums: FloatArray | None,
    column: str,
) -> Totals | None:
    """One total per user: of the value column where totals of it make sense, else of contributions."""
    num_users = histogram.num_users if sums is None else sums.size
    if num_users > MAX_TOTALS:
        reading.notes.append(f"The totals of {num_users:,} users were not kept; at most {MAX_TOTALS:,} fit.")
        return None
    if value is not None and sums is not None:
        if value.min() >= 0 and np.isfinite(sums).all():
            return Totals(sums, column)
        why = "has negative values" if value.min() < 0 else "adds up to more than a number can hold"
        reading.notes.append(f"Column {shown(column)} {why}, so the totals per user count rows.")
    return Totals.of_contributions(histogram)
