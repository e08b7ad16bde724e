"""From a table of text cells to a `Dataset`: the reduction to counts of what fits in memory.

Three kinds of table are understood (`TableKind`). User ids become codes; no message and no `Dataset` holds
one, and cells that are not number-like are never quoted, as the column chosen by mistake may be the ids.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpcore.common.checks import Problems
from dpcore.common.errors import InvalidInput, Problem
from dpcore.common.privacy import LABEL_COLUMN, Provenance, ReleaseFacts, kind_of
from dpcore.contributions import ContributionHistogram, FloatArray, IntArray
from dpcore.data.column_roles import (
    MissingUsers,
    Roles,
    TableKind,
    check_roles,
    explain_roles,
    guess_roles,
    user_hint,
)
from dpcore.data.counted_tables import from_counts, from_histogram
from dpcore.data.group_pairs import NO_GROUP, pairs_of_rows
from dpcore.data.messages import (
    NEGATIVE_REMEDY,
    NEGATIVE_TOTAL,
    PLACEHOLDERS,
    UNIT_ROUNDING,
    WITH_POINT,
    WITHOUT_POINT,
    say_spelling,
    say_units,
)
from dpcore.data.numbers import Numbers, read_numbers
from dpcore.data.reading import Reading, Reduced, codes_of, no_user, say_users_that_look_alike, totals_of
from dpcore.data.tables import Table, read_table, shown
from dpcore.dataset import MAX_PAIRS, MAX_VALUES, Contribution, Dataset, Pairs, Values

__all__ = [
    "MissingUsers",
    "Numbers",
    "Roles",
    "Table",
    "TableKind",
    "build_dataset",
    "explain_roles",
    "guess_roles",
    "read_numbers",
    "read_table",
    "stated_release",
]


def stated_release(table: Table) -> ReleaseFacts | None:
    """Which DP release a table says it is: the same in every line of its label column; None where it says none.

    That is the word of whoever wrote the file. Files that were joined are no one release: what they spent adds up.
    """
    if LABEL_COLUMN not in table.columns or table.files:
        return None
    labels = table.frame[LABEL_COLUMN]
    first = str(labels.iloc[0])
    return ReleaseFacts.from_label(first) if bool((labels == first).all()) else None


def check_release(roles: Roles, provenance: Provenance) -> None:
    """Refuse to take for a DP release what is no histogram: a release holds nothing else.

    Raises:
        InvalidInput: It is a release, and one row is not one size.
    """
    if isinstance(provenance, ReleaseFacts) and roles.kind is not TableKind.HISTOGRAM:
        what = "a DP release is a table of one row per size"
        raise InvalidInput([Problem(what, "", "Say that one row is one size, or that the data are private")])


def build_dataset(table: Table, roles: Roles, provenance: Provenance) -> Dataset:
    """Reduce a table to what the questions need.

    Args:
        table: As `read_table` gives it.
        roles: What each column means, guessed or chosen.
        provenance: Public, private, or what a DP release guarantees, as the person says.

    Returns:
        The histogram of contributions per user; of events also the facet `totals` (per user, of the value
        column where it has no negative value, else rows), `values` where a value column is chosen and
        `pairs` where a task column is; of counts the `totals`. What was left out stands in the notes.

    Raises:
        InvalidInput: Columns are missing or hold what they cannot; all problems at once, with their lines.
    """
    check_roles(table.columns, roles, table.name)
    check_release(roles, provenance)
    build = {
        TableKind.EVENTS: _from_events,
        TableKind.COUNTS: from_counts,
        TableKind.HISTOGRAM: from_histogram,
    }[roles.kind]
    reading = Reading(table, Problems(), list(table.notes))
    histogram, values, totals, pairs = build(reading, roles)
    if isinstance(provenance, ReleaseFacts):
        _refuse_several_releases(table, roles)
    return Dataset(
        name=table.name,
        source=f"File {table.name}. {explain_roles(roles)}",
        sensitivity=kind_of(provenance),
        histogram=histogram,
        privacy_unit=roles.privacy_unit,
        contribution=roles.contribution if roles.kind is TableKind.EVENTS else Contribution.ROWS,
        values=values,
        totals=totals,
        pairs=pairs,
        notes=tuple(reading.notes),
        release=provenance if isinstance(provenance, ReleaseFacts) else None,
    )


def _refuse_several_releases(table: Table, roles: Roles) -> None:
    sizes = table.frame[roles.size or ""]
    if sizes.duplicated().any():
        what = "a size stands twice, so this is not one DP release; of several, what they spent adds up"
        column = f"column {shown(roles.size or '')}"
        raise InvalidInput([Problem(what, column, "Bring one release, or say that the data are private")])


def _from_events(reading: Reading, roles: Roles) -> Reduced:
    rows = reading.rows_with_user(roles)
    codes = _usercodes_of(reading.table.frame, roles, rows)
    value = _value_column(reading, roles, rows)
    reading.problems.raise_if_any()
    counts = np.bincount(codes).astype(np.float64)
    sums = None if value is None else np.bincount(codes, weights=value).astype(np.float64)
    pairs = None if roles.task is None else _pairs_of_groups(reading, rows, codes, value, roles)
    per_user = counts
    if roles.contribution is Contribution.TOTAL:
        assert sums is not None
        per_user = _whole_units(reading, sums, roles.value or "")
    elif roles.contribution is Contribution.DISTINCT_TASKS:
        assert pairs is not None  # `check_roles` and `_pairs_of_groups` refuse the rest
        per_user = np.bincount(pairs.user_codes).astype(np.float64)
    reading.problems.raise_if_any()
    histogram = ContributionHistogram.from_counts(per_user[per_user > 0])
    hint = user_hint(roles, reading.table.columns, histogram.num_users, histogram.max_size)
    reading.notes += [hint] if hint else []
    _say_spelling(reading, roles, rows, codes, per_user)
    _note_copies(reading, rows)
    values = _values(reading, codes, value, roles)
    totals = totals_of(reading, histogram, value, sums, roles.value or "")
    return histogram, values, totals, _kept(reading, pairs)


def _value_column(reading: Reading, roles: Roles, rows: IntArray) -> FloatArray | None:
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


def _whole_units(reading: Reading, sums: FloatArray, column: str) -> FloatArray:
    """Totals per user as whole numbers of contributions; what cannot be one is a problem."""
    units = np.ceil(sums * UNIT_ROUNDING)
    broken = bool((units > sums / UNIT_ROUNDING).any())
    say_units(column, float(units.max()), int((units == 0).sum()), broken, reading.problems, reading.notes)
    return units


def _usercodes_of(frame: pd.DataFrame, roles: Roles, rows: IntArray) -> IntArray:
    """One code per row, 0 for the first user; rows without a user, where they stay, share one."""
    unit = roles.privacy_unit
    codes = codes_of(frame[unit[0]].iloc[rows])
    for column in unit[1:]:
        further = codes_of(frame[column].iloc[rows])
        codes = codes_of(pd.Series(codes * (int(further.max()) + 1) + further))  # at most rows², below 2^63
    missing = no_user(frame, roles)[rows]
    if len(unit) > 1 and missing.any():
        codes = codes_of(pd.Series(np.where(missing, -1, codes)))
    return codes


def _say_spelling(
    reading: Reading, roles: Roles, rows: IntArray, codes: IntArray, per_user: FloatArray
) -> None:
    _, first = np.unique(codes, return_index=True)
    users = reading.table.frame[roles.privacy_unit[0]].iloc[rows[first]]
    called = np.flatnonzero(users.isin(PLACEHOLDERS).to_numpy(bool))
    called = called[called < per_user.size]  # users that have no task may have no entry
    with_point, without = (bool(users.str.fullmatch(form).any()) for form in (WITH_POINT, WITHOUT_POINT))
    say_spelling(int(per_user[called].sum()), with_point, without, reading.notes)
    say_users_that_look_alike(reading, roles, rows, codes)


def _note_copies(reading: Reading, rows: IntArray) -> None:
    frame = reading.table.frame
    if frame.shape[1] < 3:  # rows of a user and a task alone are expected to repeat
        return
    copies = np.flatnonzero(frame.iloc[rows].duplicated().to_numpy(bool))
    if copies.size:
        what = "1 row is an exact copy" if copies.size == 1 else f"{copies.size:,} rows are exact copies"
        reading.notes.append(f"{what} of an earlier one (first: {reading.line(rows[copies[0]])}).")


def _values(reading: Reading, codes: IntArray, value: FloatArray | None, roles: Roles) -> Values | None:
    if value is None or roles.contribution is not Contribution.ROWS:
        return None
    if value.size > MAX_VALUES:
        reading.notes.append(f"The values of {value.size:,} rows were not kept; at most {MAX_VALUES:,} fit.")
        return None
    order = np.argsort(codes, kind="stable")
    return Values(codes[order], value[order], roles.value or "")


def _pairs_of_groups(
    reading: Reading, rows: IntArray, codes: IntArray, value: FloatArray | None, roles: Roles
) -> Pairs | None:
    """Who has rows in which task; None, with a problem where tasks are counted, where no row names one."""
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
    tasks = np.full(named.shape, NO_GROUP, dtype=np.int64)
    tasks[named] = codes_of(cells[named])
    pairs = pairs_of_rows(codes, tasks, int(tasks.max()) + 1, column, value, roles.value or "")
    if pairs is None and counts_tasks:
        reading.problems.add(
            "no row names a task", f"column {shown(column)}", "Choose another column, or count rows"
        )
        reading.problems.raise_if_any()
    if pairs is not None and counts_tasks and (again := int(named.sum()) - pairs.user_codes.size):
        what = "1 row repeats" if again == 1 else f"{again:,} rows repeat"
        reading.notes.append(f"{what} a user and task that stood before; each pair counts once.")
    return pairs


def _kept(reading: Reading, pairs: Pairs | None) -> Pairs | None:
    """The facet, where it fits."""
    if pairs is not None and pairs.user_codes.size > MAX_PAIRS:
        reading.notes.append(
            f"The {pairs.user_codes.size:,} pairs of user and task were not kept; at most {MAX_PAIRS:,} fit."
        )
        return None
    return pairs
