"""What the columns of a table mean: guessed from names first and cells second, corrected by the person."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dpcore.common import wording
from dpcore.common.checks import Problems
from dpcore.data.column_names import name_words, shown, word_set
from dpcore.data.numbers import Numbers, read_numbers
from dpcore.data.tables import Table
from dpcore.dataset import Contribution


class TableKind(enum.Enum):
    """What one row of a table is."""

    EVENTS = "one row per contribution"
    COUNTS = "one row per user"
    HISTOGRAM = "one row per size"
    PAIRS = "one row per pair of user and group"


class MissingUsers(enum.Enum):
    """What to do with rows that name no user."""

    LEAVE_OUT = "leave these rows out"
    ONE_USER = "count them as one user"


@dataclass(frozen=True)
class Roles:
    """Which column means what; columns that the kind of table does not need are ignored.

    Attributes:
        kind: What one row is.
        user: Column that says who (events; counts, where None makes every row a user of its own).
        count: Column of contributions per user (counts), or of rows per pair (pairs).
        size: Column of numbers of contributions (histogram).
        users: Column of how many users have each size (histogram).
        value: Column of values to release (events, optional), or of their sums (pairs, optional).
        task: Column of tasks, groups or products (events, optional; pairs).
        missing_users: What to do with rows that name no user (events and counts).
        further_user: Columns that only together with ``user`` say who (events); a row where one of them is
            blank names no user.
        further_task: Columns that only together with ``task`` name a group (events); a row where one of them is blank
            names none.
        contribution: What is counted (events): rows, distinct tasks of a user (needs ``task``), or the total
            of ``value``, rounded up to whole units.
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

    @property
    def privacy_unit(self) -> tuple[str, ...]:
        """Return the columns that together say who; empty where none does."""
        if self.kind is TableKind.HISTOGRAM or self.user is None:
            return ()
        return (self.user, *(self.further_user if self.kind is TableKind.EVENTS else ()))

    @property
    def groups(self) -> tuple[str, ...]:
        """Return the columns that together name a task, group or product; empty where none does."""
        if self.kind not in (TableKind.EVENTS, TableKind.PAIRS) or self.task is None:
            return ()
        if self.kind is TableKind.PAIRS:
            return (self.task,)
        return (self.task, *self.further_task)

    @property
    def needed(self) -> dict[str, str | None]:
        """Return the roles that this kind of table must fill, with their columns."""
        if self.kind is TableKind.EVENTS:
            needed = {"user": self.user}
            if self.contribution is Contribution.DISTINCT_TASKS:
                needed["task"] = self.task
            if self.contribution is Contribution.TOTAL:
                needed["value"] = self.value
            return needed
        if self.kind is TableKind.COUNTS:
            return {"count": self.count}
        if self.kind is TableKind.PAIRS:
            return {"user": self.user, "task": self.task, "count": self.count}
        return {"size": self.size, "users": self.users}

    @property
    def optional(self) -> dict[str, str]:
        """Return the further roles of this kind of table that are filled, with their columns."""
        if self.kind is TableKind.EVENTS:
            possible = {"value": self.value, "task": self.task}
            possible |= {f"user (column {at})": c for at, c in enumerate(self.further_user, 2)}
            possible |= {f"task (column {at})": c for at, c in enumerate(self.groups[1:], 2)}
        else:
            possible = {"user": self.user} if self.kind is TableKind.COUNTS else {}
            possible |= {"value": self.value} if self.kind is TableKind.PAIRS else {}
        return {role: column for role, column in possible.items() if column is not None}


_USER_WORDS = (  # the surer ones first
    word_set(
        """
        user userid uid username customer customerid client clientid author account member patient visitor
        subscriber person participant respondent worker contributor player student buyer reviewer rater voter
        employee household committer owner kunde nutzer benutzer
        """
    ),
    word_set("email mail session sessionid device deviceid cookie ip phone"),
    word_set("id name who"),
)
_PEOPLE = word_set(
    """
    users customers clients authors accounts members patients visitors subscribers people persons participants
    respondents workers contributors players students buyers reviewers raters employees
    """
)
_IDENTIFYING = word_set("id uid name key no nr number num code hash hashed pseudonym login of the e")
_COUNT_WORDS = word_set(
    "count counts cnt n rows contributions contribution num nb records events frequency freq anzahl"
)
_SIZE_WORDS = word_set("size sizes contributions contribution rows multiplicity")
# In order of preference.
_VALUES_IN_ORDER = (
    *("value", "amount", "price", "rating", "score", "total", "cost", "revenue", "sales", "spend"),
    *("quantity", "qty", "stars", "duration", "payment", "salary", "income", "weight", "balance"),
    *("val", "v", "betrag", "wert", "preis", "menge"),
)
_TASKS_IN_ORDER = (
    *("task", "product", "item", "category", "group", "partition", "movie", "film", "book", "song", "artist"),
    *("track", "article", "page", "url", "domain", "stockcode", "sku", "genre", "topic", "shop", "store"),
    *("country", "tag", "model"),
)
_VALUE_WORDS, _TASK_WORDS = frozenset(_VALUES_IN_ORDER), frozenset(_TASKS_IN_ORDER)
_TASKS = frozenset(word + "s" for word in _TASK_WORDS) | {"categories", "countries"}
_SAMPLE = 1_000


def guess_roles(table: Table) -> Roles:
    """Guess the kind of table and the meaning of its columns, from names first and cells second.

    Never raises on a `Table`; where nothing tells, the first column is taken as the users of an events table.
    """
    if pairs := _as_pairs(table):
        return pairs
    columns = [c for c in table.columns if not _is_row_number(table, c)] or list(table.columns)
    return _as_histogram(table, columns) or _as_counts(table, columns) or _as_events(table, columns)


PAIRS_HEADER = ("user", "group", "rows")
"""What the columns are called of pairs that an engine counted; a column `PAIRS_SUM` may follow."""
PAIRS_SUM = "sum"


def _as_pairs(table: Table) -> Roles | None:
    """Return the roles of a table of pairs as an engine count writes it: its header, and codes in order."""
    if table.columns not in (PAIRS_HEADER, (*PAIRS_HEADER, PAIRS_SUM)):
        return None
    user, group, rows = PAIRS_HEADER
    if not all(_mostly_whole(table, name, 1.0) for name in PAIRS_HEADER):
        return None
    if not (_sample(table, rows).values >= 1).all():
        return None
    steps, group_steps = (np.diff(_sample(table, name).values) for name in (user, group))
    if (steps < 0).any() or (group_steps[steps == 0] <= 0).any():
        return None
    value = PAIRS_SUM if PAIRS_SUM in table.columns else None
    return Roles(TableKind.PAIRS, user=user, task=group, count=rows, value=value)


def _as_histogram(table: Table, columns: list[str]) -> Roles | None:
    if len(columns) < 2:
        return None
    people = [c for c in columns if _counts_people(c)]
    sizes = [c for c in columns if c not in people and set(name_words(c)) & (_SIZE_WORDS | _COUNT_WORDS)]
    tasks = [c for c in columns if c not in people and set(name_words(c)) & _TASKS]
    pair: tuple[str, str] | None = None
    if people and sizes:
        pair = (sizes[0], people[0])
    elif people and tasks:  # how many tasks have so many users: the tasks are what is counted
        pair = (people[0], tasks[0])
    elif len(columns) == 2 and not any(_user_score(c) for c in columns):
        known = set(name_words(columns[1])) & (_VALUE_WORDS | _TASK_WORDS)
        if not known and _ascends(table, columns[0]) and _mostly_whole(table, columns[1], 1.0):
            pair = (columns[0], columns[1])
    if pair is None or not all(_mostly_whole(table, c, 0.5) for c in pair):
        return None
    if len(columns) > 2 and len(table.frame) > 1 and not _all_distinct(table, pair[0]):
        return None  # say, users and events per page
    return Roles(TableKind.HISTOGRAM, size=pair[0], users=pair[1])


def _as_counts(table: Table, columns: list[str]) -> Roles | None:
    counts = [c for c in columns if _is_count(c)]
    user = _best_user([c for c in columns if c not in counts])
    if len(columns) == 1:
        alone = counts and _mostly_whole(table, columns[0], 0.5)
        return Roles(TableKind.COUNTS, count=columns[0]) if alone else None
    if user is not None and counts and (len(columns) == 2 or _all_distinct(table, user)):
        return Roles(TableKind.COUNTS, user=user, count=counts[0])
    if len(columns) == 2:
        first, second = columns
        known = set(name_words(second)) & (_VALUE_WORDS | _TASK_WORDS)
        named_otherwise = known or _user_score(second) or set(name_words(first)) & _VALUE_WORDS
        if not named_otherwise and _all_distinct(table, first) and _mostly_whole(table, second, 1.0):
            return Roles(TableKind.COUNTS, user=first, count=second)
    return None


def _as_events(table: Table, columns: list[str]) -> Roles:
    user = _best_user(columns)
    if user is None:
        rest = [c for c in columns if not set(name_words(c)) & (_VALUE_WORDS | _TASK_WORDS)] or columns
        texts = [c for c in rest if not _all_numbers(table, c) and not _all_distinct(table, c)]
        user = (texts or rest)[0]
    others = [c for c in columns if c != user]
    value = _first_named(others, _VALUES_IN_ORDER, lambda c: _all_numbers(table, c))
    others = [c for c in others if c != value]
    return Roles(TableKind.EVENTS, user=user, value=value, task=_first_named(others, _TASKS_IN_ORDER))


def _first_named(
    columns: list[str], words: tuple[str, ...], fits: Callable[[str], bool] = lambda column: True
) -> str | None:
    """Return the column that names the earliest of ``words`` and fits."""
    named = [
        (words.index(word), at, column)
        for at, column in enumerate(columns)
        for word in (*name_words(column), "".join(name_words(column)))  # StockCode is also stockcode
        if word in words
    ]
    return next((column for _, _, column in sorted(named) if fits(column)), None)


def _user_score(column: str) -> float:
    words = set(name_words(column))
    for rank, known in enumerate(_USER_WORDS):
        if words & known and not words & (_COUNT_WORDS | _VALUE_WORDS):
            strange = words - known - _IDENTIFYING
            if rank == len(_USER_WORDS) - 1 and strange:  # order_id, product_name
                return 0.0
            # The rank decides; what follows, less than 1 in all, orders columns of one rank.
            return 3.0 - rank + 0.3 * (bool(words & {"id", "uid"})) - 0.5 * bool(strange)
    return 0.0


def _best_user(columns: list[str]) -> str | None:
    scored = [(-_user_score(c), at, c) for at, c in enumerate(columns) if _user_score(c) > 0]
    return min(scored)[2] if scored else None


def _counts_people(column: str) -> bool:
    words = set(name_words(column))
    counted = words & {"num", "number", "n", "count", "how"} and words & _USER_WORDS[0] and "per" not in words
    return bool((words & _PEOPLE and "per" not in words) or counted)


def _is_count(column: str) -> bool:
    return bool(set(name_words(column)) & _COUNT_WORDS) and not _counts_people(column)


def _is_row_number(table: Table, column: str) -> bool:
    """Return True if a column only numbers the rows, as data frames write their index."""
    if not (re.fullmatch(r"column [0-9]+'*", column) or column.lower() in ("index", "unnamed: 0", "row")):
        return False
    head = table.frame[column].iloc[:_SAMPLE].tolist()
    return any(head == [str(start + at) for at in range(len(head))] for start in (0, 1))


def _sample(table: Table, column: str) -> Numbers:
    return read_numbers(table, column, _SAMPLE)


def _mostly_whole(table: Table, column: str, share: float) -> bool:
    values = _sample(table, column).values
    with np.errstate(invalid="ignore"):
        fine = (values >= 0) & (values == np.floor(values))
    return bool(fine.mean() >= share)


def _all_numbers(table: Table, column: str) -> bool:
    return bool(np.isfinite(_sample(table, column).values).all())


def _ascends(table: Table, column: str) -> bool:
    numbers = read_numbers(table, column).values
    return numbers.size > 1 and bool(np.isfinite(numbers).all() and (np.diff(numbers) > 0).all())


def _all_distinct(table: Table, column: str) -> bool:
    cells = table.frame[column]
    named = cells[(cells != "").to_numpy(bool)]
    return len(named) > 1 and bool(named.is_unique)


def explain_roles(roles: Roles) -> str:
    """Return a sentence on what the columns of any table mean."""
    if roles.kind is TableKind.HISTOGRAM:
        return (
            f"Read as a histogram: one row per size, the size in column {shown(roles.size or '?')}, "
            f"how many have it in column {shown(roles.users or '?')}."
        )
    if roles.kind is TableKind.COUNTS:
        who = f"users in column {shown(roles.user)}" if roles.user else "no column that says who"
        return (
            f"Read as counts: one row per user, {who}, contributions in column {shown(roles.count or '?')}."
        )
    if roles.kind is TableKind.PAIRS:
        added = f", their sum in column {shown(roles.value)}" if roles.value else ""
        return (
            f"Read as pairs that an engine counted: users in column {shown(roles.user or '?')}, groups in column "
            f"{shown(roles.task or '?')}, the rows of each pair in column {shown(roles.count or '?')}{added}."
        )
    unit = roles.privacy_unit or ("?",)
    who = f"column {shown(unit[0])}" if len(unit) == 1 else f"columns {' and '.join(map(shown, unit))}"
    parts = [f"users in {who}"]
    parts += [f"values in column {shown(roles.value)}"] if roles.value else []
    if roles.groups:
        columns = "column" if len(roles.groups) == 1 else "columns"
        parts.append(f"tasks in {columns} {' and '.join(map(shown, roles.groups))}")
    counted = {
        Contribution.ROWS: "one row per contribution",
        Contribution.DISTINCT_TASKS: "one contribution per user and distinct task",
        Contribution.TOTAL: f"contributions are the total of column {shown(roles.value or '?')} per user",
    }[roles.contribution]
    return f"Read as events: {counted}, {', '.join(parts)}."


def values_passed_over(table: Table, roles: Roles) -> str:
    """Why no column of values was proposed though one is called so, sentences; empty where nothing is to be said.

    It looks at the first thousand rows, as the guess does; a column with fewer numbers than other cells has another
    meaning.
    """
    if roles.kind is not TableKind.EVENTS or roles.value is not None:
        return ""
    column = _first_named(
        [c for c in table.columns if c not in (*roles.privacy_unit, *roles.groups)], _VALUES_IN_ORDER
    )
    if column is None:
        return ""
    read = _sample(table, column)
    if read.problem is not None:
        return read.problem.sentence
    odd = ~np.isfinite(read.values)
    if not 0 < odd.sum() <= odd.size / 2:
        return ""
    number = int(odd.sum())
    kinds = (
        wording.agreeing(number, "is blank", "are blank")
        if read.blank[odd].all()
        else wording.agreeing(number, "is no number", "are no numbers")
    )
    where = table.place(int(np.argmax(odd)))
    return (
        f"Column {shown(column)} is not taken as the value: of its first {odd.size:,} cells {number:,} {kinds}, the "
        f"first in {where}. To release a mean, a sum or a quantile of it, correct them in the file."
    )


def other_user_columns(columns: Sequence[str], chosen: Sequence[str]) -> list[str]:
    """Columns whose names say that they name users and that were not chosen for that, the likeliest first."""
    scored = [
        (-_user_score(c), at, c) for at, c in enumerate(columns) if c not in chosen and _user_score(c) > 0
    ]
    return [column for _, _, column in sorted(scored)]


def check_roles(columns: Sequence[str], roles: Roles, name: str) -> None:
    """Refuse roles that are not filled, name no column, or name one column twice.

    Args:
        columns: The columns there are.
        roles: What each is to mean.
        name: Of the table, for messages.

    Raises:
        InvalidInput: All problems at once.
    """
    problems = Problems()
    chosen: dict[str, str] = {}
    for role, column in {**roles.needed, **roles.optional}.items():
        if column is None:
            problems.add(f"no column is chosen for {role}", "", f"Choose one of the columns of {name}")
        elif column not in columns:
            problems.add(f'there is no column "{shown(column)}" in {name}', "", f"Choose another for {role}")
        elif column in chosen:
            what = f"column {shown(column)} is chosen for {chosen[column]} and for {role}"
            problems.add(what, "", "Choose two columns")
        else:
            chosen[column] = role
    problems.raise_if_any()


def user_hint(roles: Roles, columns: Sequence[str], num_users: int, max_size: int) -> str:
    """Return what the person might have meant, where the users look like none; else empty."""
    unit = roles.privacy_unit
    chosen = " and ".join(map(shown, unit))
    who = f"is {chosen} really the column that says who?" if unit else "are these really counts per user?"
    if len(unit) > 1:
        who = f"are {chosen} really the columns that say who?"
    others = other_user_columns(columns, unit) if unit else []
    if others:
        who = f"is {chosen} the privacy unit, or {shown(others[0])}?"
    if num_users == 1:
        return f"There is only one user: {who}"
    return f"Every user has exactly one contribution: {who}" if max_size == 1 else ""
