"""The roles of the columns of a table."""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dpcore.common.checks import InputProblem, Problems, quote
from dpcore.common.wording import format_number
from dpcore.contributions import ContributionHistogram
from dpcore.data.column_names import refuse_missing, shorten
from dpcore.data.periods import Periods
from dpcore.data.row_filter import RowFilter
from dpcore.data.tables import FileLayout, TableLayout
from dpcore.data.user_names import find_two_people, list_other_user_columns
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
        yes_text: The cell of ``value`` that counts as 1, in any case; other filled ones count as 0. Empty to read
            numbers (events). 1.0 is 1.
        periods: Periods of time, each of which makes a user another unit; None for the user as the unit (events).
        filters: Public conditions; rows that do not satisfy all of them are left out (events).
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
    yes_text: str = ""
    periods: Periods | None = None
    filters: tuple[RowFilter, ...] = ()
    further_values: tuple[str, ...] = ()

    @classmethod
    def of_events(
        cls, user_columns: Sequence[str], value_column: str | None, task_columns: Sequence[str],
        contribution: Contribution = Contribution.ROWS, missing_users: MissingUsers = MissingUsers.LEAVE_OUT,
        missing: MissingRule = None, yes: str | None = None, periods: Periods | None = None,
        filters: tuple[RowFilter, ...] = (),
    ) -> Roles:  # fmt: skip
        """Build the roles of a table of events: at least one column of the user; of the task several, one or none.

        Raises:
            InvalidInput: ``missing`` is neither "drop" nor a finite number, ``yes`` is no text, or there are no values.
        """
        task = task_columns[0] if task_columns else None
        is_number = isinstance(missing, int | float) and not isinstance(missing, bool)
        with Problems() as problems:
            if missing not in (None, DROP) and not (is_number and math.isfinite(float(missing or 0.0))):
                problems.add(f'missing must be "{DROP}" or a finite number; got {quote(missing)}')
            elif missing is not None and value_column is None:
                problems.add("missing is about the cells of values", "", "Name their column: value=…")
            if yes is not None and (not isinstance(yes, str) or not yes.strip() or value_column is None):
                problems.add("yes is the text of a cell of values", "", "Name it, and their column: value=…")
        return cls(
            TableKind.EVENTS, user_columns[0], value=value_column, task=task, missing_users=missing_users,
            further_user=tuple(user_columns[1:]), further_task=tuple(task_columns[1:]), contribution=contribution,
            drops_missing=missing == DROP, missing_constant=float(missing or 0.0) if is_number else None,
            yes_text=re.sub(r"^([0-9]+)\.0$", r"\1", (yes or "").strip()), periods=periods, filters=filters,
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
        return {
            role: column for role, column in role_pairs if column is not None or role not in optional_roles
        }


TOTALS_PREFIX = "total_of_"
"""Begins the name of the sizes in a written histogram of totals; the column that was added up follows."""
_UNITS_PATTERN = re.compile(r"users, ([0-9]{4}-.+?) of (.+)")
"""The name of the numbers of users in a written histogram whose unit is a user in a period: span and date column."""


def name_size_column(contribution: Contribution, value_column: str) -> str:
    """Return the name of the sizes in a written histogram, from which the column can be read whose totals they are."""
    return f"{TOTALS_PREFIX}{value_column}" if contribution is Contribution.TOTAL and value_column else "size"


def name_users_column(periods: Periods | None) -> str:
    """Return the name of the numbers of users in a written histogram, from which its unit can be read."""
    return "users" if periods is None or periods.is_filter else f"users, {periods.span} of {periods.column}"


def read_periods(users_column: str) -> Periods | None:
    """Return the periods that the name of the numbers of users states; None if the unit is the user."""
    match = _UNITS_PATTERN.fullmatch(users_column)
    return None if match is None else Periods(match[2], match[1])


PAIRS_HEADER = ("user", "group", "rows")
"""Column names of a table of pairs that an engine counted; a column `PAIRS_SUM` may follow."""
PAIRS_SUM = "sum"


def describe_values(roles: Roles, boolean_columns: Collection[str] = ()) -> dict[str, Any]:
    """Return fields of a `TableLayout`: all that roles settle for values and dates, and if values are known shares.

    ``boolean_columns`` are those whose type says yes and no.
    """
    value_column = (roles.value if roles.kind is TableKind.EVENTS else None) or ""
    is_share = roles.is_share or value_column in boolean_columns or bool(roles.yes_text)
    is_share &= roles.missing_constant is None or 0.0 <= roles.missing_constant <= 1.0
    return {
        "missing_is_a_user": roles.missing_users is MissingUsers.ONE_USER,
        "dropped_column": value_column if roles.drops_missing else "",
        "missing_constant": roles.missing_constant,
        "share_column": value_column if is_share else "",
        "yes_text": roles.yes_text,
        "periods": roles.periods,
        "filters": roles.filters,
    }


def build_rule_layout(roles: Roles) -> TableLayout | None:
    """Build the usual layout of a file with what roles settle for values and dates; None if they settle nothing."""
    if roles.missing_rule is None and not roles.yes_text and roles.periods is None and not roles.filters:
        return None
    return TableLayout((FileLayout.by_name("events.csv"),), **describe_values(roles))


def explain_roles(roles: Roles) -> str:
    """Write the kind of table and the roles of its columns as one sentence."""
    columns_by_role = {role: shorten(column_name or "?") for role, column_name in roles.columns.items()}
    if roles.kind is TableKind.EVENTS:
        columns_by_role = {"contribution": roles.contribution.value, **columns_by_role}
    role_phrases = [f"{role} = {column_name}" for role, column_name in columns_by_role.items()]
    if roles.missing_rule is not None:
        rule_text = "row left out" if roles.drops_missing else format_number(roles.missing_constant or 0.0)
        role_phrases.append(f"missing value = {rule_text}")
    if roles.is_share:
        role_phrases.append("value is yes or no")
    if roles.yes_text:
        role_phrases.append(f"yes = {roles.yes_text}")
    if roles.periods is not None:
        role_phrases.append(f"unit = user and {roles.periods.noun}, {roles.periods.span_text}")
    role_phrases += [f"only {row_filter.text}" for row_filter in roles.filters]
    return f"Read as {roles.kind.value}: {', '.join(role_phrases)}."


def check_roles(table_columns: Sequence[str], roles: Roles, table_name: str) -> None:
    """Check that needed roles have existing columns, that no column has two, and that users name one person.

    Only value and task may share a column.

    Args:
        table_columns: The columns of the table.
        roles: The roles to check.
        table_name: Name of the table, for messages.

    Raises:
        InvalidInput: All problems at once.
    """
    with Problems() as problems:
        refuse_wrong_columns(problems, table_columns, roles.columns.items(), table_name)
        refuse_missing(problems, table_columns, [row_filter.column for row_filter in roles.filters])
        if find_two_people(roles.privacy_unit):
            problems.extend([describe_two_people(roles.privacy_unit)])
        if roles.periods is not None and roles.missing_users is MissingUsers.ONE_USER:
            problems.add("with periods, rows without a user cannot count as one user", "", "Leave them out")
        if roles.periods is not None and roles.periods.unit_column in table_columns:
            unit_column_text = f"column {shorten(roles.periods.unit_column)}"
            problems.add("programs write the period of a row into this column", unit_column_text, "Rename it")


def describe_two_people(user_columns: Sequence[str]) -> InputProblem:
    """Return the problem that two columns of the user name two different people of a row."""
    return InputProblem(
        "each of these columns names a person, so a row belongs to two. A bound on the rows of both is not stable: "
        "removing one person can change which rows of all others are kept",
        f"columns {' and '.join(map(shorten, user_columns))}",
        "Choose one of them. If the pair is what you protect, join both into one column first",
    )


def refuse_wrong_columns(
    problems: Problems,
    columns: Sequence[str],
    roles_and_columns: Iterable[tuple[str, str | None]],
    table_name: str,
) -> None:
    """Add a problem for each role whose column is None, is not in the table, or has another role already.

    One column may be both value and task.
    """
    role_by_column: dict[str, str] = {}
    for role, column in roles_and_columns:
        if column is None:
            problems.add(f"no column is chosen for {role}", "", f"Choose one of the columns of {table_name}")
        elif column not in columns:
            message = f'there is no column "{shorten(column)}" in {table_name}'
            problems.add(message, "", f"Choose another for {role}")
        elif column in role_by_column and {role, role_by_column[column]} != {"value", "task"}:
            message = f"column {shorten(column)} is chosen for {role_by_column[column]} and for {role}"
            problems.add(message, "", "Choose two columns")
        else:
            role_by_column[column] = role


FEW_USERS = 20
"""Below this number of users a question to the person says that they may be no people."""
_MIN_SINGLE_ROW_SHARE = 0.95


def write_user_hint(roles: Roles, table_columns: Sequence[str], histogram: ContributionHistogram) -> str:
    """Write a question to the person if the user column may be the wrong one; else return an empty text."""
    user_columns = roles.privacy_unit
    user_columns_text = " and ".join(map(shorten, user_columns))
    other_columns = list_other_user_columns(table_columns, user_columns) if user_columns else []
    if other_columns:
        question_text = f"is {user_columns_text} the privacy unit, or {shorten(other_columns[0])}?"
    else:
        question_text = f"does {user_columns_text or 'a row'} really say who?"
    num_users = histogram.num_users
    num_single_row_users = int(histogram.users[histogram.sizes == 1].sum())
    if num_users == 1:
        return f"There is only one user: {question_text}"
    if num_single_row_users == num_users:
        return f"Every user has exactly one contribution: {question_text}"
    if num_users < FEW_USERS:
        return f"There are only {num_users} users: {question_text}"
    is_mostly_single = num_single_row_users >= _MIN_SINGLE_ROW_SHARE * num_users
    return f"Nearly every user has one contribution: {question_text}" if is_mostly_single else ""
