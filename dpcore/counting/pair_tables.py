"""Tables of pairs of user and group, with the rows of each, that an engine counted."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from dpcore.common.checks import Problems, refuse
from dpcore.common.privacy import Disclosure
from dpcore.common.progress import ShouldStop
from dpcore.common.workspace import Workspace
from dpcore.contributions import ContributionHistogram
from dpcore.counting.duck import Duck
from dpcore.counting.files import Source
from dpcore.counting.relation import find_safe_path, write_scan
from dpcore.data import column_names
from dpcore.data.cell_numbers import MAX_NUMBER, NUMBER_TEXT, read_numbers
from dpcore.data.column_roles import Roles, TableKind, explain_roles
from dpcore.data.tables import FileLayout, TableLayout
from dpcore.data.task_facets import Pairs
from dpcore.dataset import MAX_PAIRS, Contribution, Dataset, Totals

MAX_EXACT_INTEGER = 2**53
"""Largest number up to which all integers are exact in float64."""


def prefer_pair_roles(guessed_roles: Roles, chosen_roles: Roles) -> Roles:
    """Return the guessed roles, with the chosen value column, if they are of pairs and fit; else the chosen roles.

    They fit if rows are counted, and the chosen columns of user and group, if any, are those of the pairs.
    """
    if guessed_roles.kind is not TableKind.PAIRS or chosen_roles.contribution is not Contribution.ROWS:
        return chosen_roles
    has_pair_user = chosen_roles.privacy_unit == (guessed_roles.user,)
    if not has_pair_user or chosen_roles.further_task or chosen_roles.task not in (None, guessed_roles.task):
        return chosen_roles
    # A value column that is the rows of the pair is redundant, as these are counted anyway.
    value_column = None if chosen_roles.value == guessed_roles.count else chosen_roles.value
    return replace(guessed_roles, value=value_column)


def build_pair_dataset(
    source: Source,
    roles: Roles,
    disclosure: Disclosure,
    memory_limit: int,
    should_stop: ShouldStop | None = None,
) -> Dataset:
    """Build the dataset from a table of pairs that an engine counted.

    Args:
        source: One file; its users and groups are codes, and `count` of the roles is the rows of a pair.
        roles: Roles of the kind `TableKind.PAIRS`.
        disclosure: Public or private, as the user states.
        memory_limit: Bytes that DuckDB may use.
        should_stop: Called while a large file is read.

    Raises:
        InvalidInput: A cell is not a valid number, or there are several files; all problems at once.
    """
    if len(source.head.layouts) > 1:
        raise refuse("codes in one file of pairs are not those of another", remedy="Choose one file")
    pair_columns = [column for column in (roles.user, roles.task, roles.count, roles.value) if column]
    numbers_by_column = _read_number_columns(source, pair_columns, memory_limit, should_stop)
    with Problems() as problems:
        for column_name, cell_numbers in numbers_by_column.items():
            valid_cell_mask, requirement_text = np.abs(cell_numbers) <= MAX_NUMBER, f"a {NUMBER_TEXT}"
            if column_name != roles.value:
                least_valid = 1 if column_name == roles.count else 0
                requirement_text = f"a whole number of at least {least_valid}"
                valid_cell_mask &= (cell_numbers >= least_valid) & (cell_numbers == np.rint(cell_numbers))
            if num_bad := int((~valid_cell_mask).sum()):
                location = (
                    f"column {column_names.shorten(column_name)}, row {np.argmin(valid_cell_mask) + 1:,}"
                )
                remedy = "Count again with --pairs-to, or say that one row is one contribution"
                problems.add(f"{num_bad:,} cells are not {requirement_text}", location, remedy)
        if (num_pairs := numbers_by_column[pair_columns[0]].size) > MAX_PAIRS:
            problems.add(f"there are {num_pairs:,} pairs; at most {MAX_PAIRS:,} fit")
    user_and_group_numbers = [numbers_by_column[column_name] for column_name in pair_columns[:2]]
    user_codes, group_codes = (np.unique(n, return_inverse=True)[1] for n in user_and_group_numbers)
    pair_order = np.lexsort((group_codes, user_codes))
    user_codes, group_codes = user_codes[pair_order], group_codes[pair_order]
    pair_starts = np.flatnonzero(np.r_[True, (np.diff(user_codes) != 0) | (np.diff(group_codes) != 0)])
    rows_per_pair = np.add.reduceat(numbers_by_column[pair_columns[2]][pair_order], pair_starts)
    rows_per_user = np.bincount(user_codes[pair_starts], rows_per_pair)
    if float(rows_per_pair.sum()) > MAX_EXACT_INTEGER:
        raise refuse("the pairs have too many rows", f"column {column_names.shorten(pair_columns[2])}")
    histogram = ContributionHistogram.from_counts(rows_per_user.astype(np.int64))
    sums_per_pair = totals = None
    if roles.value is not None:
        sums_per_pair = np.add.reduceat(numbers_by_column[roles.value][pair_order], pair_starts)
        sums_per_user = np.bincount(user_codes[pair_starts], sums_per_pair)
        totals = Totals(sums_per_user, roles.value) if sums_per_user.min() >= 0 else None
    file_layouts = source.head.layouts or (FileLayout.by_name("events.csv"),)
    return Dataset(
        source.name, f"File {source.name}. {explain_roles(roles)}", disclosure, histogram, roles.privacy_unit,
        totals=totals or Totals.of_contributions(histogram),
        pairs=Pairs(
            user_codes[pair_starts], group_codes[pair_starts], int(group_codes.max()) + 1, pair_columns[1],
            rows=rows_per_pair.astype(np.int64), sums=sums_per_pair, value_column=roles.value or "",
        ),
        notes=(*source.head.notes, "Rows that name no group are in no pair, so the file does not hold them."),
        layout=TableLayout(file_layouts, count_column=pair_columns[2]),
    )  # fmt: skip


def _read_number_columns(
    source: Source, columns: list[str], memory_limit: int, should_stop: ShouldStop | None
) -> dict[str, npt.NDArray[np.float64]]:
    """Read these columns of a file or a table in memory as float64 arrays; other cells become NaN."""
    import duckdb

    if source.is_complete:
        return {read_column: read_numbers(source.head, read_column).values for read_column in columns}
    with closing(Workspace()) as workspace:
        (relation,) = source.relations
        relation = replace(relation, path=find_safe_path(relation.path, workspace))
        cast_sql = "::VARCHAR" if relation.types else ""
        with closing(Duck([relation.path], workspace.folder, memory_limit, should_stop)) as duck:
            cell_sqls = [f"x{relation.columns.index(name)}{cast_sql}" for name in columns]
            number_sqls = [f"TRY_CAST({sql} AS DOUBLE) AS c{index}" for index, sql in enumerate(cell_sqls)]
            numbers_sql = f"SELECT {', '.join(number_sqls)} FROM {write_scan(relation)}"
            try:
                numbers_by_alias = duck.fetch_columns(numbers_sql)
            except duckdb.Error:
                raise refuse("the table of pairs cannot be read", remedy="Save it as CSV (UTF-8)") from None
    return {name: np.asarray(numbers_by_alias[f"c{index}"], np.float64) for index, name in enumerate(columns)}
