"""The roles of the columns of a table: guessed from names first and cells second, corrected by the user."""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dpcore.common import wording
from dpcore.common.checks import InputProblem, Problems
from dpcore.contributions import ContributionHistogram
from dpcore.data import user_names
from dpcore.data.cell_numbers import NO_WORDS, YES_WORDS, Numbers, read_numbers
from dpcore.data.column_names import shorten, split_name, split_words
from dpcore.data.periods import Periods
from dpcore.data.tables import FileLayout, Table, TableLayout
from dpcore.data.user_names import counts_people, find_two_people, list_other_user_columns, score_as_users
from dpcore.dataset import Contribution


class TableKind(enum.Enum):
    """The meaning of one row of a table."""

    EVENTS = "one row per contribution"
    COUNTS = "one row per user"
    HISTOGRAM = "one row per size"
    PAIRS = "one row per pair of user and group"


class MissingUsers(enum.Enum):
    """The treatment of rows that name no user."""

    LEAVE_OUT = "leave these rows out"
    ONE_USER = "count them as one user"


MissingRule = str | float | None
"""The treatment of cells of values without a number up to ±1e100: `DROP`, a public number, or None to refuse them."""
DROP = "drop"
"""The rule that leaves out their rows."""

ROLES_BY_KIND = {
    TableKind.EVENTS: ("user", "value", "task"),
    TableKind.COUNTS: ("user", "count"),
    TableKind.HISTOGRAM: ("size", "users"),
    TableKind.PAIRS: ("user", "task", "count", "value"),
}
"""The roles of each kind of table."""


@dataclass(frozen=True)
class Roles:
    """The roles of columns; those that the kind of table does not need are ignored.

    Attributes:
        kind: Meaning of one row.
        user: Column of users (events; counts, where None makes every row a separate user).
        count: Column of contributions per user (counts), or of rows per pair (pairs).
        size: Column of numbers of contributions (histogram).
        users: Column of numbers of users of each size (histogram).
        value: Column of values to release (events, optional), or of their sums (pairs, optional).
        task: Column of tasks, groups or products (events, optional; pairs).
        missing_users: Treatment of rows that name no user (events and counts).
        further_user: Columns that identify the user only together with ``user`` (events); a row with a blank in one of
            them names no user.
        further_task: Columns that name a group only together with ``task`` (events); a row with a blank in one of them
            names no group.
        contribution: Unit of contributions (events): rows, distinct tasks of a user (needs ``task``), or the total of
            ``value``, rounded up to whole units.
        drops_missing: True if rows whose cell of ``value`` holds no number are left out (events).
        missing_constant: Public number that replaces such cells; None if they are refused or their rows left out.
        is_share: True if it is known that ``value`` says yes and no, so that it lies between 0 and 1 (events).
        yes: The cell of ``value`` that counts as 1, in any case, while all other filled ones count as 0; empty to read
            numbers (events).
        periods: Periods of time, each of which makes a user another unit; None for the user as the unit (events).
        further_values: Further columns of values to release, with the same rule for missing ones (events).
    """

    kind: TableKind
    user: str | None = None
    count: str | None = None
    size: str | None = None
    users: str | None = None
    value: str | None = None
    task: str | None = None
    missing_users: MissingUsers = MissingUsers.LEAVE_OUT
    further_user: tuple[str, ...] = ()
    further_task: tuple[str, ...] = ()
    contribution: Contribution = Contribution.ROWS
    drops_missing: bool = False
    missing_constant: float | None = None
    is_share: bool = False
    yes: str = ""
    periods: Periods | None = None
    further_values: tuple[str, ...] = ()

    @classmethod
    def of_events(
        cls, user_columns: Sequence[str], value_column: str | None, task_columns: Sequence[str],
        contribution: Contribution = Contribution.ROWS, missing_users: MissingUsers = MissingUsers.LEAVE_OUT,
        missing: MissingRule = None, yes: str | None = None, periods: Periods | None = None,
    ) -> Roles:  # fmt: skip
        """Build the roles of a table of events: at least one column of the user; of the task several, one or none.

        Raises:
            InvalidInput: ``missing`` is neither "drop" nor a finite number, ``yes`` is no text, or there are no values.
        """
        task = task_columns[0] if task_columns else None
        is_number = isinstance(missing, int | float) and not isinstance(missing, bool)
        with Problems() as problems:
            if missing not in (None, DROP) and not (is_number and math.isfinite(float(missing or 0.0))):
                problems.add(f'missing must be "{DROP}" or a finite number; got {str(missing)[:40]!r}')
            elif missing is not None and value_column is None:
                problems.add("missing is about the cells of values", "", "Name their column: value=…")
            if yes is not None and (not isinstance(yes, str) or not yes.strip() or value_column is None):
                problems.add("yes is the text of a cell of values", "", "Name it, and their column: value=…")
        return cls(
            TableKind.EVENTS, user_columns[0], value=value_column, task=task, missing_users=missing_users,
            further_user=tuple(user_columns[1:]), further_task=tuple(task_columns[1:]), contribution=contribution,
            drops_missing=missing == DROP, missing_constant=float(missing or 0.0) if is_number else None,
            yes=(yes or "").strip(), periods=periods,
        )  # fmt: skip

    @property
    def missing_rule(self) -> MissingRule:
        """Return the rule for missing or unusable values as the argument ``missing`` states it."""
        return DROP if self.drops_missing else self.missing_constant

    @property
    def privacy_unit(self) -> tuple[str, ...]:
        """Return the columns that together identify the user; empty if there are none."""
        if self.kind is TableKind.HISTOGRAM or self.user is None:
            return ()
        return (self.user, *self.further_user) if self.kind is TableKind.EVENTS else (self.user,)

    @property
    def unit_columns(self) -> tuple[str, ...]:
        """Return the columns that together identify the unit of privacy: those of the user, and that of periods."""
        return (*self.privacy_unit, *([] if self.periods is None else [self.periods.unit_column]))

    @property
    def groups(self) -> tuple[str, ...]:
        """Return the columns that together name a task, group or product; empty if there are none."""
        if self.kind not in (TableKind.EVENTS, TableKind.PAIRS) or self.task is None:
            return ()
        return (self.task, *self.further_task) if self.kind is TableKind.EVENTS else (self.task,)

    @property
    def columns(self) -> dict[str, str | None]:
        """Return the column of each role of this kind of table; None for a role that is needed and has no column.

        Optional roles without a column are left out.
        """
        unit_role = {Contribution.DISTINCT_TASKS: "task", Contribution.TOTAL: "value"}.get(self.contribution)
        columns_by_role = {role: getattr(self, role) for role in ROLES_BY_KIND[self.kind]}
        if self.kind is TableKind.EVENTS:
            columns_by_role |= {f"user (column {n})": column for n, column in enumerate(self.further_user, 2)}
            columns_by_role |= {f"task (column {n})": column for n, column in enumerate(self.groups[1:], 2)}
            columns_by_role |= {} if self.periods is None else {"date": self.periods.column}
            columns_by_role |= {
                f"value (column {n})": column for n, column in enumerate(self.further_values, 2)
            }
            optional_roles = {"value", "task"} - {unit_role}
        else:
            optional_roles = {"user"} if self.kind is TableKind.COUNTS else {"value"}
        role_pairs = columns_by_role.items()
        return {role: name for role, name in role_pairs if name is not None or role not in optional_roles}


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
_TASK_WORDS = frozenset(user_names.TASKS_IN_ORDER)
_TASK_PLURALS = frozenset(word + "s" for word in _TASK_WORDS) | {"categories", "countries"}
_NUM_SAMPLED = 1_000


def guess_roles(table: Table) -> Roles:
    """Guess the kind of table and the roles of its columns, from names first and cells second.

    Never raises on a `Table`. If neither names nor cells say who a row belongs to, no column has the role of the
    user. Only the first rows are read, so that each format of a table gives the same roles.
    """
    if pair_roles := _guess_pairs(table):
        return pair_roles
    columns = list(table.columns)
    columns = [column for column in columns if not _is_row_number(table, column)] or columns
    return _guess_histogram(table, columns) or _guess_counts(table, columns) or _guess_events(table, columns)


TOTALS_PREFIX = "total_of_"
"""Begins the name of the sizes in a written histogram of totals; the column that was added up follows."""
PAIRS_HEADER = ("user", "group", "rows")
"""Column names of a table of pairs that an engine counted; a column `PAIRS_SUM` may follow."""
PAIRS_SUM = "sum"


def _guess_pairs(table: Table) -> Roles | None:
    """Return the roles of a table of pairs that an engine count wrote, recognised by its header and sorted codes.

    None if the table is none.
    """
    if table.columns not in (PAIRS_HEADER, (*PAIRS_HEADER, PAIRS_SUM)):
        return None
    user_column, group_column, rows_column = PAIRS_HEADER
    if not all(_has_whole_numbers(table, column, 1.0) for column in PAIRS_HEADER):
        return None
    if not (_read_first_numbers(table, rows_column).values >= 1).all():
        return None
    user_steps, group_steps = (np.diff(_read_first_numbers(table, name).values) for name in PAIRS_HEADER[:2])
    if (user_steps < 0).any() or (group_steps[user_steps == 0] <= 0).any():
        return None
    value_column = PAIRS_SUM if PAIRS_SUM in table.columns else None
    return Roles(TableKind.PAIRS, user=user_column, task=group_column, count=rows_column, value=value_column)


def _guess_histogram(table: Table, columns: list[str]) -> Roles | None:
    """Return the roles of a table of sizes and numbers of users; None if names and cells do not suggest one."""
    if len(columns) < 2:
        return None
    people_columns = [column for column in columns if counts_people(column)]
    other_columns = [column for column in columns if column not in people_columns]
    size_words = _SIZE_WORDS | user_names.COUNT_WORDS
    size_columns = [
        name for name in other_columns if set(split_name(name)) & size_words or name.startswith(TOTALS_PREFIX)
    ]
    task_columns = [name for name in other_columns if set(split_name(name)) & _TASK_PLURALS]
    size_column, users_column = columns[:2]
    if people_columns and (size_columns or task_columns):
        # How many tasks have so many users: the tasks are what is counted.
        size_column, users_column = (
            (size_columns[0], people_columns[0]) if size_columns else (people_columns[0], task_columns[0])
        )
    elif (
        len(columns) > 2
        or any(map(score_as_users, columns))
        or any(_is_time(table, column) for column in columns)
        or _names_values_or_tasks(users_column)
        or not (_is_ascending(table, size_column) and _has_whole_numbers(table, users_column, 1.0))
    ):
        return None
    if not all(_has_whole_numbers(table, column, 0.5) for column in (size_column, users_column)):
        return None
    if len(columns) > 2 and len(table.frame) > 1 and not _is_distinct(table, size_column):
        return None  # say, users and events per page
    return Roles(TableKind.HISTOGRAM, size=size_column, users=users_column)


def _names_values_or_tasks(column: str) -> bool:
    """Return True if a column's name has a word for values or for tasks."""
    return bool(set(split_name(column)) & (user_names.VALUE_WORDS | _TASK_WORDS))


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


def _guess_events(table: Table, columns: list[str]) -> Roles:
    """Return the roles of a table of events; the user is None if neither a name nor cells suggest a column."""
    user_column = _guess_user(table, columns)
    other_columns = [column for column in columns if column != user_column]
    value_column = _find_named_column(
        other_columns, user_names.VALUES_IN_ORDER, partial(_may_be_values, table)
    )
    answer_columns = [column for column in other_columns if says_yes_and_no(table, column)]
    if value_column is None and len(answer_columns) == 1:
        value_column = answer_columns[0]
    other_columns = [column for column in other_columns if column != value_column]
    task_column = _find_named_column(other_columns, user_names.TASKS_IN_ORDER)
    return Roles(TableKind.EVENTS, user_column, value=value_column, task=task_column)


def _guess_user(table: Table, columns: list[str]) -> str | None:
    """Return the column whose name suggests users, or else the only one with repeated ids; None if it is unclear."""
    candidate_columns = [column for column in columns if not _is_time(table, column)]
    named_columns = list_other_user_columns(candidate_columns, ())
    if named_columns:
        likeliest_column = named_columns[0]
        is_certain = score_as_users(likeliest_column) > 1.5 or not _is_distinct(table, likeliest_column)
        return likeliest_column if is_certain and not find_two_people(named_columns) else None
    id_columns = [
        column
        for column in candidate_columns
        if not _is_distinct(table, column) and _match_filled(table, column, _ID_PATTERN)
    ]
    return id_columns[0] if len(id_columns) == 1 else None


def _is_time(table: Table, column: str) -> bool:
    """Return True if a column has dates or times, by its type, its name or its cells."""
    is_named_so = bool(set(split_name(column)) & user_names.TIME_WORDS)
    return column in table.times or is_named_so or _match_filled(table, column, _TIME_PATTERN)


def _match_filled(table: Table, column: str, pattern: str) -> bool:
    """Return True if all filled cells among the first ones match a pattern completely; False if none is filled."""
    cells = table.frame[column].iloc[:_NUM_SAMPLED]
    filled_cells = cells[cells != ""]
    return len(filled_cells) > 0 and all(map(re.compile(pattern).fullmatch, filled_cells))


def _find_named_column(
    columns: list[str], words: tuple[str, ...], fits: Callable[[str], bool] = lambda column: True
) -> str | None:
    """Return the column that ``fits`` and whose name has the earliest of these words; None if there is none."""
    ranked_columns: list[tuple[int, int, str]] = []
    for index, column in enumerate(columns):
        name_words = split_name(column)
        all_words = *name_words, "".join(name_words)  # StockCode is also stockcode.
        ranked_columns += [(words.index(word), index, column) for word in all_words if word in words]
    return next((column for _, _, column in sorted(ranked_columns) if fits(column)), None)


def _is_row_number(table: Table, column: str) -> bool:
    """Return True if a column is unnamed, or named as an index, and its first cells number the rows from 0 or 1."""
    if not (re.fullmatch(r"column [0-9]+'*", column) or column.lower() in ("index", "unnamed: 0", "row")):
        return False
    first_cells = table.frame[column].iloc[:_NUM_SAMPLED].tolist()
    number_texts = [str(number) for number in range(len(first_cells) + 1)]
    return first_cells in (number_texts[:-1], number_texts[1:])


def _read_first_numbers(table: Table, column: str) -> Numbers:
    """Read the first `_NUM_SAMPLED` cells of a column as numbers."""
    return read_numbers(table, column, _NUM_SAMPLED)


def _has_whole_numbers(table: Table, column: str, min_share: float) -> bool:
    """Return True if at least this share of the first cells are whole numbers of at least 0."""
    values = _read_first_numbers(table, column).values
    with np.errstate(invalid="ignore"):
        whole_mask = (values >= 0) & (values == np.floor(values))
    return bool(whole_mask.mean() >= min_share)


def _may_be_values(table: Table, column: str) -> bool:
    """Return True if the first cells are numbers or missing, at least one a number, or nearly all say yes or no."""
    column_numbers = _read_first_numbers(table, column)
    has_numbers_alone = np.isfinite(column_numbers.values).any() and not column_numbers.text_mask.any()
    return bool(has_numbers_alone) or says_yes_and_no(table, column)


_ANSWERS = frozenset((*YES_WORDS, *NO_WORDS, "1", "0", "1.0", "0.0"))
_MIN_ANSWER_SHARE = 0.8
"""Below 1, so that another cell is refused with its line, and does not change in silence which column is proposed."""


def says_yes_and_no(table: Table, column: str) -> bool:
    """Return True if at least 80 % of the filled first cells say yes or no, or 1 or 0, and two answers occur."""
    cells = table.frame[column].iloc[:_NUM_SAMPLED].str.lower()
    filled_cells = cells[cells != ""]
    answer_cells = filled_cells[filled_cells.isin(_ANSWERS)]
    return answer_cells.nunique() > 1 and len(answer_cells) >= _MIN_ANSWER_SHARE * len(filled_cells)


def _is_ascending(table: Table, column: str) -> bool:
    """Return True if the first cells of a column are at least two numbers, each above the one before."""
    numbers = _read_first_numbers(table, column).values
    return numbers.size > 1 and bool(np.isfinite(numbers).all() and (np.diff(numbers) > 0).all())


def _is_distinct(table: Table, column: str) -> bool:
    """Return True if two or more of the first cells of a column are filled, and no two of these are equal."""
    cells = table.frame[column].iloc[:_NUM_SAMPLED]
    filled_cells = cells[(cells != "").to_numpy(bool)]
    return len(filled_cells) > 1 and bool(filled_cells.is_unique)


def describe_values(roles: Roles, table: Table) -> dict[str, Any]:
    """Return fields of a `TableLayout`: the rule for missing values, and whether values are known to be shares."""
    value_column = (roles.value if roles.kind is TableKind.EVENTS else None) or ""
    is_share = roles.is_share or value_column in table.booleans or bool(roles.yes)
    is_share &= roles.missing_constant is None or 0.0 <= roles.missing_constant <= 1.0
    return {
        "dropped_column": value_column if roles.drops_missing else "",
        "missing_constant": roles.missing_constant,
        "share_column": value_column if is_share else "",
        "yes": roles.yes,
        "periods": roles.periods,
    }


def build_rule_layout(roles: Roles) -> TableLayout | None:
    """Build the usual layout of a file with what roles settle for values and dates; None if they settle nothing."""
    if roles.missing_rule is None and not roles.yes and roles.periods is None:
        return None
    return TableLayout(
        (FileLayout.by_name("events.csv"),),
        missing_is_a_user=roles.missing_users is MissingUsers.ONE_USER,
        dropped_column=(roles.value or "") if roles.drops_missing else "",
        missing_constant=roles.missing_constant,
        share_column=(roles.value or "") if roles.yes else "",
        yes=roles.yes,
        periods=roles.periods,
    )


def explain_roles(roles: Roles) -> str:
    """Write the kind of table and the roles of its columns as one sentence."""
    columns_by_role = {role: shorten(column or "?") for role, column in roles.columns.items()}
    if roles.kind is TableKind.EVENTS:
        columns_by_role = {"contribution": roles.contribution.value, **columns_by_role}
    phrases = [f"{role} = {column}" for role, column in columns_by_role.items()]
    if roles.missing_rule is not None:
        rule_text = "row left out" if roles.drops_missing else wording.number(roles.missing_constant or 0.0)
        phrases.append(f"missing value = {rule_text}")
    if roles.is_share:
        phrases.append("value is yes or no")
    if roles.yes:
        phrases.append(f"yes = {roles.yes}")
    if roles.periods is not None:
        phrases.append(f"unit = user and {roles.periods.noun}, {roles.periods.span_text}")
    return f"Read as {roles.kind.value}: {', '.join(phrases)}."


def check_roles(columns: Sequence[str], roles: Roles, table_name: str) -> None:
    """Check that needed roles have existing columns, that no column has two, and that users name one person.

    Only value and task may share a column.

    Args:
        columns: The columns of the table.
        roles: The roles to check.
        table_name: Name of the table, for messages.

    Raises:
        InvalidInput: All problems at once.
    """
    with Problems() as problems:
        refuse_wrong_columns(problems, columns, roles.columns.items(), table_name)
        if find_two_people(roles.privacy_unit):
            problems.extend([describe_two_people(roles.privacy_unit)])
        if roles.periods is not None and roles.missing_users is MissingUsers.ONE_USER:
            problems.add("with periods, rows without a user cannot count as one user", "", "Leave them out")


def describe_two_people(columns: Sequence[str]) -> InputProblem:
    """Return the problem that two columns of the user name two different people of a row."""
    return InputProblem(
        "each of these columns names a person, so a row belongs to two. A bound on the rows of both is not stable: "
        "removing one person can change which rows of all others are kept",
        f"columns {' and '.join(map(shorten, columns))}",
        "Choose one of them. If the pair is what you protect, join both into one column first",
    )


def refuse_wrong_columns(
    problems: Problems, columns: Sequence[str], role_pairs: Iterable[tuple[str, str | None]], table_name: str
) -> None:
    """Add a problem for each role whose column is None, is not in the table, or has another role already.

    One column may be both value and task.
    """
    role_of_column: dict[str, str] = {}
    for role, column in role_pairs:
        if column is None:
            problems.add(f"no column is chosen for {role}", "", f"Choose one of the columns of {table_name}")
        elif column not in columns:
            message = f'there is no column "{shorten(column)}" in {table_name}'
            problems.add(message, "", f"Choose another for {role}")
        elif column in role_of_column and {role, role_of_column[column]} != {"value", "task"}:
            message = f"column {shorten(column)} is chosen for {role_of_column[column]} and for {role}"
            problems.add(message, "", "Choose two columns")
        else:
            role_of_column[column] = role


FEW_USERS = 20
"""Below this number of users a question to the person says that they may be no people."""
_MANY_SINGLE = 0.95


def write_user_hint(roles: Roles, columns: Sequence[str], histogram: ContributionHistogram) -> str:
    """Write a question to the person if the user column may be the wrong one; else return an empty text."""
    user_columns = roles.privacy_unit
    columns_text = " and ".join(map(shorten, user_columns))
    other_columns = list_other_user_columns(columns, user_columns) if user_columns else []
    if other_columns:
        question_text = f"is {columns_text} the privacy unit, or {shorten(other_columns[0])}?"
    else:
        question_text = f"does {columns_text or 'a row'} really say who?"
    num_users = histogram.num_users
    num_single = int(histogram.users[histogram.sizes == 1].sum())
    if num_users == 1:
        return f"There is only one user: {question_text}"
    if num_single == num_users:
        return f"Every user has exactly one contribution: {question_text}"
    if num_users < FEW_USERS:
        return f"There are only {num_users} users: {question_text}"
    is_mostly_single = num_single >= _MANY_SINGLE * num_users
    return f"Nearly every user has one contribution: {question_text}" if is_mostly_single else ""
