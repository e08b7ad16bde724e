"""Guesses of the roles of the columns of a table, from names first and cells second; a person corrects them."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

import numpy as np

from dpcore.data import user_names
from dpcore.data.cell_numbers import NO_WORDS, YES_WORDS, Numbers, read_numbers
from dpcore.data.column_names import split_name, split_words
from dpcore.data.column_roles import PAIRS_HEADER, PAIRS_SUM, TOTALS_PREFIX, Roles, TableKind, read_periods
from dpcore.data.tables import Table
from dpcore.data.user_names import counts_people, find_two_people, list_other_user_columns, score_as_users

_TIME_PATTERN = (
    r"(?:[0-9]{4}[-/][0-9]{1,2}(?:[-/][0-9]{1,2})?|[0-9]{1,4}([-/.])[0-9]{1,2}\1[0-9]{1,4})(?:[ T,].*)?"
    r"|(?:-?[0-9]+ days?,? )?[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?(?: ?[AaPp][Mm])?"
)
_ID_PATTERN = (
    r"[^@\s]+@[^@\s]+\.[a-zA-Z]+|(?:[0-9a-fA-F]{16}){1,4}"
    r"|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
)
"""Mail addresses, hashes and UUIDs, which hardly name anything but people and devices if they repeat."""
_SIZE_WORDS = split_words("size sizes contributions contribution rows multiplicity")
_TASK_WORDS = frozenset(user_names.TASK_WORDS_IN_ORDER)
_TASK_PLURALS = frozenset(word + "s" for word in _TASK_WORDS) | {"categories", "countries"}
_NUM_SAMPLED = 1_000


def guess_roles(table: Table) -> Roles:
    """Guess the kind of table and the roles of its columns, from names first and cells second.

    Never raises on a `Table`. If neither names nor cells say who a row belongs to, no column has the role of the
    user. Only the first rows are read, so that each format of a table gives the same roles.
    """
    if pair_roles := guess_pairs(table):
        return pair_roles
    columns = list(table.columns)
    columns = [column for column in columns if not _is_row_number(table, column)] or columns
    return _guess_histogram(table, columns) or _guess_counts(table, columns) or _guess_events(table, columns)


def guess_pairs(table: Table) -> Roles | None:
    """Return the roles of a table of pairs that an engine count wrote, recognised by its header and sorted codes.

    None if the table is none.
    """
    if table.columns not in (PAIRS_HEADER, (*PAIRS_HEADER, PAIRS_SUM)):
        return None
    user_column, group_column, rows_column = PAIRS_HEADER
    if not all(_has_whole_numbers(table, pair_column, 1.0) for pair_column in PAIRS_HEADER):
        return None
    if not (_read_first_numbers(table, rows_column).values >= 1).all():
        return None
    user_steps, group_steps = (
        np.diff(_read_first_numbers(table, code_column).values) for code_column in PAIRS_HEADER[:2]
    )
    if (user_steps < 0).any() or (group_steps[user_steps == 0] <= 0).any():
        return None
    value_column = PAIRS_SUM if PAIRS_SUM in table.columns else None
    return Roles(TableKind.PAIRS, user=user_column, task=group_column, count=rows_column, value=value_column)


def _guess_histogram(table: Table, column_names: list[str]) -> Roles | None:
    """Return the roles of a table of sizes and numbers of users; None if names and cells do not suggest one."""
    if len(column_names) < 2:
        return None
    people_columns = [name for name in column_names if counts_people(name) or read_periods(name)]
    other_columns = [column_name for column_name in column_names if column_name not in people_columns]
    size_words = _SIZE_WORDS | user_names.COUNT_WORDS
    size_columns = [
        name for name in other_columns if set(split_name(name)) & size_words or name.startswith(TOTALS_PREFIX)
    ]
    task_columns = [name for name in other_columns if set(split_name(name)) & _TASK_PLURALS]
    size_column, users_column = column_names[:2]
    if people_columns and (size_columns or task_columns):
        # How many tasks have so many users: the tasks are what is counted.
        size_column, users_column = (
            (size_columns[0], people_columns[0]) if size_columns else (people_columns[0], task_columns[0])
        )
    elif (
        len(column_names) > 2
        or any(map(score_as_users, column_names))
        or any(_is_time(table, column_name) for column_name in column_names)
        or _names_values_or_tasks(users_column)
        or not (_is_ascending(table, size_column) and _has_whole_numbers(table, users_column, 1.0))
    ):
        return None
    if not all(_has_whole_numbers(table, column_name, 0.5) for column_name in (size_column, users_column)):
        return None
    if len(column_names) > 2 and len(table.frame) > 1 and not _is_distinct(table, size_column):
        return None  # say, users and events per page
    return Roles(TableKind.HISTOGRAM, size=size_column, users=users_column)


def _names_values_or_tasks(column_name: str) -> bool:
    """Return True if a column's name has a word for values or for tasks."""
    return bool(set(split_name(column_name)) & (user_names.VALUE_WORDS | _TASK_WORDS))


def _guess_counts(table: Table, columns: list[str]) -> Roles | None:
    """Return the roles of a table with one row per user; None if names and cells do not suggest one."""
    counting_columns = [column for column in columns if set(split_name(column)) & user_names.COUNT_WORDS]
    count_columns = [column for column in counting_columns if not counts_people(column)]
    user_columns = list_other_user_columns(columns, count_columns)
    user_column = next((column for column in user_columns if not _is_time(table, column)), None)
    if len(columns) == 1:
        is_count_list = count_columns and _has_whole_numbers(table, columns[0], 0.5)
        return Roles(TableKind.COUNTS, count=columns[0]) if is_count_list else None
    if user_column is not None and count_columns and (len(columns) == 2 or _is_distinct(table, user_column)):
        return Roles(TableKind.COUNTS, user=user_column, count=count_columns[0])
    if len(columns) == 2:
        first_column, second_column = columns
        second_names_other = _names_values_or_tasks(second_column) or score_as_users(second_column) > 0
        second_names_other |= says_yes_and_no(table, second_column)
        has_distinct_ids = _is_distinct(table, first_column) and not _is_time(table, first_column)
        has_neutral_names = not (set(split_name(first_column)) & user_names.VALUE_WORDS or second_names_other)
        if has_neutral_names and has_distinct_ids and _has_whole_numbers(table, second_column, 1.0):
            return Roles(TableKind.COUNTS, user=first_column, count=second_column)
    return None


def _guess_events(table: Table, column_names: list[str]) -> Roles:
    """Return the roles of a table of events; the user is None if neither a name nor cells suggest a column."""
    user_column = _guess_user(table, column_names)
    other_columns = [column_name for column_name in column_names if column_name != user_column]
    value_column = _find_named_column(
        other_columns, user_names.VALUE_WORDS_IN_ORDER, partial(_may_be_values, table)
    )
    answer_columns = [column_name for column_name in other_columns if says_yes_and_no(table, column_name)]
    if value_column is None and len(answer_columns) == 1:
        value_column = answer_columns[0]
    other_columns = [column_name for column_name in other_columns if column_name != value_column]
    task_column = _find_named_column(other_columns, user_names.TASK_WORDS_IN_ORDER)
    return Roles(TableKind.EVENTS, user_column, value=value_column, task=task_column)


def _guess_user(table: Table, column_names: list[str]) -> str | None:
    """Return the likeliest column by its name, or else the only one with repeated ids; None if neither is certain."""
    candidate_columns = [column_name for column_name in column_names if not _is_time(table, column_name)]
    user_named_columns = list_other_user_columns(candidate_columns, ())
    if user_named_columns:
        likeliest_column = user_named_columns[0]
        is_certain = score_as_users(likeliest_column) > 1.5 or not _is_distinct(table, likeliest_column)
        return likeliest_column if is_certain and not find_two_people(user_named_columns) else None
    id_columns = [
        column_name
        for column_name in candidate_columns
        if not _is_distinct(table, column_name) and _match_filled(table, column_name, _ID_PATTERN)
    ]
    return id_columns[0] if len(id_columns) == 1 else None


def _is_time(table: Table, column_name: str) -> bool:
    """Return True if a column has dates or times, by its type, its name or its cells."""
    is_named_so = bool(set(split_name(column_name)) & user_names.TIME_WORDS)
    return column_name in table.times or is_named_so or _match_filled(table, column_name, _TIME_PATTERN)


def _match_filled(table: Table, column_name: str, regular_expression: str) -> bool:
    """Return True if all filled cells among the first ones match a pattern completely; False if none is filled."""
    first_cells = table.frame[column_name].iloc[:_NUM_SAMPLED]
    filled_cells = first_cells[first_cells != ""]
    return len(filled_cells) > 0 and all(map(re.compile(regular_expression).fullmatch, filled_cells))


def _find_named_column(
    column_names: list[str], words: tuple[str, ...], is_suitable: Callable[[str], bool] = lambda column: True
) -> str | None:
    """Return the column that ``is_suitable`` and whose name has the earliest of these words; None if there is none."""
    ranked_columns: list[tuple[int, int, str]] = []
    for column_index, column in enumerate(column_names):
        name_words = split_name(column)
        all_words = *name_words, "".join(name_words)  # StockCode is also stockcode.
        ranked_columns += [(words.index(word), column_index, column) for word in all_words if word in words]
    return next((column for _, _, column in sorted(ranked_columns) if is_suitable(column)), None)


def _is_row_number(table: Table, column: str) -> bool:
    """Return True if a column is unnamed, or named as an index, and its first cells number the rows from 0 or 1."""
    if not (re.fullmatch(r"column [0-9]+'*", column) or column.lower() in ("index", "unnamed: 0", "row")):
        return False
    first_cells = table.frame[column].iloc[:_NUM_SAMPLED].tolist()
    number_texts = [str(row_number) for row_number in range(len(first_cells) + 1)]
    return first_cells in (number_texts[:-1], number_texts[1:])


def _read_first_numbers(table: Table, column_name: str) -> Numbers:
    """Read the first `_NUM_SAMPLED` cells of a column as numbers."""
    return read_numbers(table, column_name, _NUM_SAMPLED)


def _has_whole_numbers(table: Table, column_name: str, min_share: float) -> bool:
    """Return True if at least this share of the first cells are whole numbers of at least 0."""
    cell_values = _read_first_numbers(table, column_name).values
    with np.errstate(invalid="ignore"):
        whole_mask = (cell_values >= 0) & (cell_values == np.floor(cell_values))
    return bool(whole_mask.mean() >= min_share)


def _may_be_values(table: Table, column_name: str) -> bool:
    """Return True if the first cells are numbers or missing, at least one a number, or nearly all say yes or no."""
    column_numbers = _read_first_numbers(table, column_name)
    has_numbers_alone = np.isfinite(column_numbers.values).any() and not column_numbers.text_mask.any()
    return bool(has_numbers_alone) or says_yes_and_no(table, column_name)


_YES_NO_CELLS = frozenset((*YES_WORDS, *NO_WORDS, "1", "0", "1.0", "0.0"))
_MIN_ANSWER_SHARE = 0.8
"""Below 1, so that another cell is refused with its line, and does not change in silence which column is proposed."""


def says_yes_and_no(table: Table, column_name: str) -> bool:
    """Return True if at least 80 % of the filled first cells say yes or no, or 1 or 0, and two answers occur."""
    first_cells = table.frame[column_name].iloc[:_NUM_SAMPLED].str.lower()
    filled_cells = first_cells[first_cells != ""]
    answer_cells = filled_cells[filled_cells.isin(_YES_NO_CELLS)]
    return answer_cells.nunique() > 1 and len(answer_cells) >= _MIN_ANSWER_SHARE * len(filled_cells)


def _is_ascending(table: Table, column_name: str) -> bool:
    """Return True if the first cells of a column are at least two numbers, each above the one before."""
    numbers = _read_first_numbers(table, column_name).values
    return numbers.size > 1 and bool(np.isfinite(numbers).all() and (np.diff(numbers) > 0).all())


def _is_distinct(table: Table, column_name: str) -> bool:
    """Return True if two or more of the first cells of a column are filled, and no two of these are equal."""
    first_cells = table.frame[column_name].iloc[:_NUM_SAMPLED]
    filled_cells = first_cells[(first_cells != "").to_numpy(bool)]
    return len(filled_cells) > 1 and bool(filled_cells.is_unique)
