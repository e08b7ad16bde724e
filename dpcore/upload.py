"""From a table of text cells to a `Dataset`: the reduction to counts of what fits in memory.

Three kinds of table are understood (`TableKind`). User ids become codes; no message and no `Dataset` holds
one, and cells that are not number-like are never quoted, as the column chosen by mistake may be the ids.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpcore.checks import Problems
from dpcore.contributions import MAX_SIZE, MAX_USERS, ContributionHistogram, FloatArray, IntArray
from dpcore.dataset import MAX_PAIRS, MAX_TOTALS, MAX_VALUES, Contribution, Dataset, Pairs, Totals, Values
from dpcore.numerals import Numbers, read_numbers
from dpcore.privacy import Sensitivity
from dpcore.roles import MissingUsers, Roles, TableKind, check_roles, explain, guess_roles, user_hint
from dpcore.tables import BoolArray, Table, read_table, shown

__all__ = [
    "MissingUsers",
    "Numbers",
    "Roles",
    "Table",
    "TableKind",
    "build_dataset",
    "explain",
    "guess_roles",
    "read_numbers",
    "read_table",
]


def build_dataset(table: Table, roles: Roles, sensitivity: Sensitivity) -> Dataset:
    """Reduce a table to what the questions need.

    Args:
        table: As `read_table` gives it.
        roles: What each column means, guessed or chosen.
        sensitivity: Public, private or a DP release, as the person says.

    Returns:
        The histogram of contributions per user; of events also the facet `totals` (per user, of the value
        column where it has no negative value, else rows), `values` where a value column is chosen and
        `pairs` where a task column is; of counts the `totals`. What was left out stands in the notes.

    Raises:
        InvalidInput: Columns are missing or hold what they cannot; all problems at once, with their lines.
    """
    check_roles(table.columns, roles, table.name)
    build = {
        TableKind.EVENTS: _from_events,
        TableKind.COUNTS: _from_counts,
        TableKind.HISTOGRAM: _from_histogram,
    }[roles.kind]
    reading = _Reading(table, Problems(), list(table.notes))
    histogram, values, totals, pairs = build(reading, roles)
    return Dataset(
        name=table.name,
        source=f"File {table.name}. {explain(table, roles)}",
        sensitivity=sensitivity,
        histogram=histogram,
        privacy_unit=roles.privacy_unit,
        contribution=roles.contribution if roles.kind is TableKind.EVENTS else Contribution.ROWS,
        values=values,
        totals=totals,
        pairs=pairs,
        notes=tuple(reading.notes),
    )


_Reduced = tuple[ContributionHistogram, Values | None, Totals | None, Pairs | None]


@dataclass
class _Reading:
    """A table on its way to a data set: what is wrong so far, and what is to be said."""

    table: Table
    problems: Problems
    notes: list[str]

    def line(self, row: int) -> str:
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
        """Add a problem with the first three places, what stands there (``say``), and how many there are."""
        at = np.flatnonzero(bad)
        if not at.size:
            return
        cells = [f" ({say(int(i))})" if say is not None else "" for i in at[:3]]
        also = " and ".join(self.line(rows[i]) + cell for i, cell in zip(at[1:3], cells[1:], strict=True))
        text = what + cells[0] + (f"; also {also}" if also else "")
        text += f"; {at.size:,} in all" if at.size > 3 else ""
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
        blank = _no_user(self.table.frame, roles)
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


def _from_events(reading: _Reading, roles: Roles) -> _Reduced:
    rows = reading.rows_with_user(roles)
    codes = _user_codes(reading.table.frame, roles, rows)
    value = _value_column(reading, roles, rows)
    reading.problems.raise_if_any()
    counts = np.bincount(codes).astype(np.float64)
    sums = None if value is None else np.bincount(codes, weights=value).astype(np.float64)
    distinct = None if roles.task is None else _distinct_pairs(reading, rows, codes, roles)
    per_user = counts
    if roles.contribution is Contribution.TOTAL:
        assert sums is not None
        per_user = _whole_units(reading, sums, roles.value or "")
    elif roles.contribution is Contribution.DISTINCT_TASKS:
        assert distinct is not None  # `check_roles` and `_distinct_pairs` refuse the rest
        per_user = np.bincount(distinct.users).astype(np.float64)
    reading.problems.raise_if_any()
    histogram = ContributionHistogram.from_counts(per_user[per_user > 0])
    hint = user_hint(roles, reading.table.columns, histogram.num_users, histogram.max_size)
    reading.notes += [hint] if hint else []
    _note_copies(reading, rows)
    values = _values(reading, codes, value, roles)
    totals = _totals(reading, histogram, value, sums, roles.value or "")
    return (
        histogram,
        values,
        totals,
        None if distinct is None else _pairs(reading, distinct, roles.task or ""),
    )


def _value_column(reading: _Reading, roles: Roles, rows: IntArray) -> FloatArray | None:
    if roles.value is None:
        return None
    value = reading.numbers(roles.value, rows, "Correct these cells, or choose another value column or none")
    if roles.contribution is Contribution.TOTAL:
        with np.errstate(invalid="ignore"):
            negative = value < 0
        reading.flag(
            negative, rows, roles.value, NEGATIVE_TOTAL, NEGATIVE_REMEDY, lambda i: f"{value[i]:.3g}"
        )
    return value


NEGATIVE_TOTAL = "a negative number, where contributions are added up"
COUNT_REMEDY = "A count must be a whole number of contributions; if it is not one, choose another column"
SEVERAL_ROWS_REMEDY = (
    "A table of counts has one row per user; if every row is one contribution, read it as events, "
    "else add up the counts of each user first"
)
NEGATIVE_REMEDY = "Count rows instead, correct these cells, or choose another column"


def _whole_units(reading: _Reading, sums: FloatArray, column: str) -> FloatArray:
    """Totals per user as whole numbers of contributions; what cannot be one is a problem."""
    units = np.ceil(sums * UNIT_ROUNDING)
    broken = bool((units > sums / UNIT_ROUNDING).any())
    say_units(column, float(units.max()), int((units == 0).sum()), broken, reading.problems, reading.notes)
    return units


UNIT_ROUNDING = 1.0 - 1e-12
"""An error of rounding in a sum is no further unit: 0.1 + 0.2 + 2.7 counts as 3."""


def say_units(
    column: str, largest: float, without: int, broken: bool, problems: Problems, notes: list[str]
) -> None:
    """Say what is wrong with, and what a person should know of, totals that count as contributions.

    Args:
        column: Where they come from.
        largest: The largest total, in whole units.
        without: Users whose total is 0.
        broken: Whether any total was rounded up.
        problems: Takes what is wrong.
        notes: Takes what a person should know.
    """
    where = f"column {shown(column)}"
    if not largest > 0:
        problems.add("all totals are 0", where, "Choose another column, or count rows")
    elif not largest <= MAX_SIZE:
        what = f"the total of one user is above {MAX_SIZE:,}"
        problems.add(what, where, "Write the column in a larger unit, or count rows")
    elif without:
        who = (
            "1 user has a total of 0 and is"
            if without == 1
            else f"{without:,} users have a total of 0 and are"
        )
        notes.append(f"{who} among the totals, not in the histogram.")
    if broken and not problems.found:
        notes.append(f"Totals of column {shown(column)} that are not whole count as the next whole number.")


def _user_codes(frame: pd.DataFrame, roles: Roles, rows: IntArray) -> IntArray:
    """One code per row, 0 for the first user; rows without a user, where they stay, share one."""
    unit = roles.privacy_unit
    codes = _codes(frame[unit[0]].iloc[rows])
    for column in unit[1:]:
        further = _codes(frame[column].iloc[rows])
        codes = _codes(pd.Series(codes * (int(further.max()) + 1) + further))  # at most rows², below 2^63
    missing = _no_user(frame, roles)[rows]
    if len(unit) > 1 and missing.any():
        codes = _codes(pd.Series(np.where(missing, -1, codes)))
    return codes


def _no_user(frame: pd.DataFrame, roles: Roles) -> BoolArray:
    blank: BoolArray = np.any((frame[list(roles.privacy_unit)] == "").to_numpy(bool), axis=1)
    return blank


def _note_copies(reading: _Reading, rows: IntArray) -> None:
    frame = reading.table.frame
    if frame.shape[1] < 3:  # rows of a user and a task alone are expected to repeat
        return
    copies = np.flatnonzero(frame.iloc[rows].duplicated().to_numpy(bool))
    if copies.size:
        what = "1 row is an exact copy" if copies.size == 1 else f"{copies.size:,} rows are exact copies"
        reading.notes.append(f"{what} of an earlier one (first: {reading.line(rows[copies[0]])}).")


def _values(reading: _Reading, codes: IntArray, value: FloatArray | None, roles: Roles) -> Values | None:
    if value is None or roles.contribution is not Contribution.ROWS:
        return None
    if value.size > MAX_VALUES:
        reading.notes.append(f"The values of {value.size:,} rows were not kept; at most {MAX_VALUES:,} fit.")
        return None
    order = np.argsort(codes, kind="stable")
    return Values(codes[order], value[order], roles.value or "")


def _codes(cells: pd.Series) -> IntArray:
    return np.asarray(pd.factorize(cells)[0], dtype=np.int64)


def _totals(
    reading: _Reading,
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
    return Totals(np.repeat(histogram.sizes, histogram.users))


@dataclass(frozen=True)
class _Distinct:
    """Distinct pairs of user and task, sorted, as codes; users without a task have none."""

    users: IntArray
    tasks: IntArray
    num_tasks: int


def _distinct_pairs(reading: _Reading, rows: IntArray, codes: IntArray, roles: Roles) -> _Distinct | None:
    column = roles.task or ""
    cells = reading.table.frame[column].iloc[rows]
    named = reading.leave_out(
        (cells == "").to_numpy(bool),
        rows,
        f"row without a task (column {shown(column)})",
        f"rows without a task (column {shown(column)})",
    )
    counts_tasks = roles.contribution is Contribution.DISTINCT_TASKS
    if not named.all() and not counts_tasks:
        reading.notes[-1] = reading.notes[-1].replace(" left out", " left out of the pairs of user and task")
    if not named.any():
        if counts_tasks:
            reading.problems.add(
                "no row names a task", f"column {shown(column)}", "Choose another column, or count rows"
            )
            reading.problems.raise_if_any()
        return None
    tasks = _codes(cells[named])
    num_tasks = int(tasks.max()) + 1
    distinct = np.unique(codes[named] * num_tasks + tasks)  # at most rows², far below 2^63
    if counts_tasks and (again := int(named.sum()) - distinct.size):
        what = "1 row repeats" if again == 1 else f"{again:,} rows repeat"
        reading.notes.append(f"{what} a user and task that stood before; each pair counts once.")
    return _Distinct(distinct // num_tasks, distinct % num_tasks, num_tasks)


def _pairs(reading: _Reading, distinct: _Distinct, column: str) -> Pairs | None:
    if distinct.users.size > MAX_PAIRS:
        reading.notes.append(
            f"The {distinct.users.size:,} pairs of user and task were not kept; at most {MAX_PAIRS:,} fit."
        )
        return None
    return Pairs(distinct.users, distinct.tasks, distinct.num_tasks, column)


def _from_counts(reading: _Reading, roles: Roles) -> _Reduced:
    assert roles.count is not None
    rows = reading.rows_with_user(roles)
    counts = reading.whole_numbers(roles.count, rows, MAX_SIZE, COUNT_REMEDY)
    codes = np.arange(rows.size, dtype=np.int64)
    if roles.user is not None:
        cells = reading.table.frame[roles.user].iloc[rows]
        codes = _codes(cells)
        _, first = np.unique(codes, return_index=True)
        again = (first[codes] != np.arange(codes.size)) & (cells != "").to_numpy(bool)
        reading.flag(
            again,
            rows,
            roles.user,
            "the user has a row already",
            SEVERAL_ROWS_REMEDY,
            lambda i: reading.line(rows[first[codes[i]]]),
        )
    reading.problems.raise_if_any()
    kept = reading.leave_out(counts == 0, rows, "user with a count of 0", "users with a count of 0")
    if not kept.any():
        reading.problems.add("all counts are 0", f"column {shown(roles.count)}", "Choose another column")
        reading.problems.raise_if_any()
    # Only rows without a user can share a code here. float64 is exact: counts are at most 1e12.
    per_user = np.bincount(codes[kept], weights=counts[kept])
    histogram = ContributionHistogram.from_counts(per_user[per_user > 0])
    hint = user_hint(roles, reading.table.columns, histogram.num_users, histogram.max_size)
    reading.notes += [hint] if hint else []
    return histogram, None, _totals(reading, histogram, None, None, ""), None


def _from_histogram(reading: _Reading, roles: Roles) -> _Reduced:
    assert roles.size is not None
    assert roles.users is not None
    rows = np.arange(len(reading.table.frame), dtype=np.int64)
    remedy = "It must be a whole number; if it is not one, choose another column"
    sizes = reading.whole_numbers(roles.size, rows, MAX_SIZE, remedy)
    users = reading.whole_numbers(roles.users, rows, MAX_USERS, remedy)
    reading.problems.raise_if_any()
    kept = reading.leave_out(sizes == 0, rows, "row of size 0", "rows of size 0")
    kept &= reading.leave_out((users == 0) & kept, rows, "size that nobody has", "sizes that nobody has")
    if not kept.any():
        reading.problems.add(
            "no row has a size above 0 that anybody has",
            f"columns {shown(roles.size)} and {shown(roles.users)}",
            "Choose other columns",
        )
        reading.problems.raise_if_any()
    again = pd.Series(sizes[kept]).duplicated().to_numpy(bool)
    if again.any():
        rows_repeat = "1 row repeats" if again.sum() == 1 else f"{int(again.sum()):,} rows repeat"
        first = reading.line(rows[kept][int(np.argmax(again))])
        reading.notes.append(
            f"{rows_repeat} a size that stood before (first: {first}); their users were added up."
        )
    return ContributionHistogram.from_table(sizes[kept], users[kept]), None, None, None
