"""From a table that some engine holds to a `Dataset`: which queries run, and what is said of their answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dpcore.common import wording
from dpcore.common.checks import Problems
from dpcore.common.errors import InvalidInput, refuse
from dpcore.contributions import MAX_SIZE, MAX_USERS, ContributionHistogram, FloatArray, IntArray, read_only
from dpcore.counting import query, spelling
from dpcore.counting.duck import Duck, in_part, sql_of
from dpcore.counting.rejects import PLACES
from dpcore.counting.running import Columns, Runner
from dpcore.data.column_names import shown
from dpcore.data.column_roles import MissingUsers, Roles, user_hint
from dpcore.dataset import (
    LONGEST_TASK_NAME,
    MAX_PAIRS,
    MAX_TASK_NAMES,
    MAX_TOTALS,
    MAX_VALUES,
    Contribution,
    Pairs,
    PairSizes,
    TaskSizes,
    Totals,
    Values,
)

if TYPE_CHECKING:
    from ibis.expr.types import Table

MAX_SIZES = 5_000_000
"""Distinct numbers of contributions per user that a histogram may have: 16 bytes each, 80 MB."""
MAX_TASKS = 20_000_000
"""Tasks whose numbers of users are kept: 8 bytes each, 160 MB."""
_WRITE_ALIKE = "Write all in one way first."
_NONE: FloatArray = np.zeros(0)
_VALUE_BYTES, _PAIR_BYTES = 16, 32
"""Bytes outside DuckDB of a value, and of a pair with its sums as it comes."""
MAX_PAIRS_BACK = 2_000_000
"""Pairs of user and task that come back from an engine, on request: codes and sums, at most 80 MB, never a name."""

NO_COPIES = "Exact copies of rows were not looked for: that takes another pass over all columns, on request."
COUNT_REMEDY = "A count must be a whole number of contributions; if it is not one, choose another column"
_NEGATIVE_REMEDY = "Count rows instead, correct these cells, or choose another column"
_SEVERAL_ROWS_REMEDY = (
    "A table of counts has one row per user; if every row is one contribution, read it as events, "
    "else add up the counts of each user first"
)

Found = list[tuple[str, str]]
"""Places of rows in words, and what is to be said of each."""


def said_first(places: Found, count: int) -> str:
    """Where the first of so many rows stands, as the end of a note."""
    return f" ({'first: ' if count > 1 else ''}{places[0][0]})" if places else ""


def say_copies(number: int, notes: list[str], places: Found | None = None) -> None:
    """Note how many rows are copies, and where the first one stands."""
    if number:
        rows = wording.counted(number, "row is an exact copy", "rows are exact copies")
        notes.append(f"{rows} of an earlier one{said_first(places or [], 2)}.")


@dataclass
class Reduced:
    """What the queries gave."""

    histogram: ContributionHistogram
    values: Values | None = None
    totals: Totals | None = None
    pairs: Pairs | None = None
    tasks: TaskSizes | None = None
    pair_sizes: PairSizes | None = None
    task_names: tuple[str, ...] = ()
    sizes_repeat: bool = False


@dataclass
class Reduction:
    """One table on its way to a `Reduced`.

    Attributes:
        rows: As `query.events` gives it.
        roles: What each column means.
        columns: The columns there are, for hints.
        run: Runs a query.
        duck: DuckDB in this process; from there facets with an entry per row or per user may be fetched. None for an
            engine elsewhere, from which only counts come.
        place: Where the first cells of a kind stand, for messages, given the kind's name in `query.odd_cells` (or
            ``again``, rows of users who have one already) and how many are named at most. None for an engine
            elsewhere, where rows have no order.
        counts: Whether the value is the number of contributions of a user who has no other row.
        passes: In how many parts users (or tasks) are counted, one after another, to take less memory.
        notes: Takes what a person should know.
        histogram: The answer of `query.histogram`, where it is known already.
        order: The column that numbers the rows, where there is one: users and tasks are numbered as they come.
        remedy: What is to be done about cells that are no counts.
        max_pairs: How many pairs of user and task may come back from an engine, at most `MAX_PAIRS_BACK`; None for
            none, with a note on how many there are.
    """

    rows: Table
    roles: Roles
    columns: tuple[str, ...]
    run: Runner
    duck: Duck | None
    place: Callable[[str, int], Found] | None = None
    notes: list[str] = field(default_factory=list)
    histogram: Columns | None = None
    counts: bool = False
    passes: int = 1
    order: str = ""
    remedy: str = COUNT_REMEDY
    max_pairs: int | None = None
    _named_rows: int = 0
    _counted: int = 0
    _nobody: int = 0
    _without_task: int = 0
    _users: Table | None = None
    _coded: Table | None = None

    def reduce(self) -> Reduced:
        """Run the queries.

        Raises:
            InvalidInput: What the cells hold cannot be counted; all problems at once.
            StoppedError: Stop was pressed.
        """
        rows = query.used(self.rows, self.roles.missing_users)
        negative = self._survey()
        histogram = self._histogram()
        hint = user_hint(self.roles, self.columns, histogram.num_users, histogram.max_size)
        self.notes += [hint] if hint else []
        reduced = Reduced(histogram)
        if self.roles.contribution is Contribution.ROWS and self.roles.value and self.duck is not None:
            reduced.values = self._values(rows, histogram)
        reduced.totals = self._totals(rows, histogram, negative)
        if self.roles.task is not None:
            self._tasks(rows, reduced)
        return reduced

    def _by_parts(
        self, make: Callable[[Table], Table], rows: Table, by: Sequence[str] | None = None
    ) -> Columns:
        """Return the result of a query whose groups do not cross the columns ``by`` (who, where None), in parts."""
        if self.passes == 1:
            return self.run(make(rows))
        assert self.duck is not None
        cells = ", ".join(by or query.who_columns(rows))
        parts = [in_part(cells, at, self.passes) for at in range(self.passes)]
        answers = [self.run(make(self.duck.view("part", rows, part))) for part in parts]
        return {name: np.concatenate([columns[name] for columns in answers]) for name in answers[0]}

    def count_users(self, **masks: str) -> Columns:
        """The answer of `query.histogram`, in DuckDB with how many users fit each mask and how they are written."""
        marks = {}
        if self.duck is not None:
            who, texts = query.who_columns(self.rows), query.text_columns(self.rows)
            asked = spelling.marks(who, texts) | {name: spelling.when(mask) for name, mask in masks.items()}
            marks = {f"{query.MARK}{name}": sql for name, sql in asked.items()}

        def make(rows: Table) -> Table:
            users = query.per_user(rows, self.roles.contribution)
            written = users if self.duck is None else self.duck.view("users_", users, further=marks)
            return query.histogram(written, self.roles.contribution)

        return self._by_parts(make, self.rows)

    def _survey(self) -> bool:
        """Refuse what cannot be counted; returns whether any value is negative."""
        if self.roles.value is None and self.roles.task is None:
            return False
        problems = Problems()
        refused = self.refuse_cells(problems)
        column = " and ".join(map(shown, self.roles.groups))
        columns = "columns" if len(self.roles.groups) > 1 else "column"
        distinct = self.roles.contribution is Contribution.DISTINCT_TASKS
        if no_task := refused.get("no_task", 0):
            rows = f"{wording.counted(no_task, 'row')} without a task ({columns} {column})"
            was = f"{wording.agreeing(no_task, 'was', 'were')} left out"
            pairs = "" if distinct else " of the pairs of user and task"
            self.notes.append(f"{rows} {was}{pairs}{self._first('no_task', no_task)}.")
        leave_out = self.roles.missing_users is MissingUsers.LEAVE_OUT
        counted = refused["rows"] - refused["nobody"] * leave_out
        if not counted:
            raise self._nobody_named()
        self._counted, self._nobody, self._without_task = counted, refused["nobody"], no_task
        if self.roles.contribution is not Contribution.ROWS:
            self._say_nobody(refused["nobody"])
        if distinct:
            if no_task == counted:
                what = "no row names a task"
                problems.add(what, f"{columns} {column}", "Choose another column, or count rows")
            self._named_rows = counted - no_task
        problems.raise_if_any()
        return refused.get("negative", 0) > 0

    def refuse_cells(self, problems: Problems) -> dict[str, int]:
        """Say which cells of the value cannot be counted; returns how many cells there are of each kind."""
        answer = self.run(query.survey(self.rows, self.roles.missing_users, self.counts))
        numbers = {name: int(column[0]) for name, column in _numbers(answer).items()}
        if numbers["rows"] == 0:
            problems.add("there are no rows", "", "Choose a table or a file with rows")
            problems.raise_if_any()
        if self.roles.value is None:
            return numbers
        remedy = "Correct these cells, or choose another value column or none"
        refused = [("blank", "the cell is blank"), ("not_finite", "not a finite number"),
                   ("text", "text where a number must stand")]  # fmt: skip
        if self.counts:
            remedy = self.remedy
            refused += [("negative", "a negative number"), ("broken", "not a whole number"),
                        ("large", f"more than {MAX_SIZE:,}")]  # fmt: skip
        elif self.roles.contribution is Contribution.TOTAL:
            refused.append(("negative", "a negative number, where contributions are added up"))
        for kind, what in refused:
            if count := numbers[kind]:
                cure = _NEGATIVE_REMEDY if kind == "negative" and not self.counts else remedy
                self._refuse(kind, what, count, f"column {shown(self.roles.value)}", cure, problems)
        return numbers

    def _refuse(self, kind: str, what: str, count: int, column: str, remedy: str, problems: Problems) -> None:
        """Add a problem with the first places, what stands there, and how many there are."""
        places = self.place(kind, PLACES) if self.place is not None else []
        if not places:
            problems.add(f"{what}; {wording.counted(count, 'row')} in all", column, remedy)
            return
        said = [f"{where} ({cell})" if cell else where for where, cell in places]
        text = what + said[0].removeprefix(places[0][0])
        text += f"; also {' and '.join(said[1:])}" if said[1:] else ""
        text += f"; {count:,} in all" if count > PLACES else ""
        problems.add(text, f"{places[0][0]}, {column}", remedy)

    def _say_nobody(self, count: int) -> None:
        if not count:
            return
        if self.roles.missing_users is MissingUsers.ONE_USER:
            what = f"{wording.agreeing(count, 'counts', 'count')} as one user"
        else:
            what = f"{wording.agreeing(count, 'was', 'were')} left out"
        rows = f"{wording.counted(count, 'row')} without a user"
        self.notes.append(f"{rows} {what}{self._first('nobody', count)}.")

    def _first(self, kind: str, count: int) -> str:
        """Where the first of the cells of a kind stands, as the end of a note."""
        return said_first(self.place(kind, 1), count) if self.place is not None else ""

    def _histogram(self) -> ContributionHistogram:
        roles = self.roles
        # Rows that name no user are one group here, so that one pass over the table also counts them.
        histogram = _numbers(self.histogram or self.count_users())
        if "nul" in histogram and (count := int(histogram["nul"].sum())):
            problems = Problems()
            remedy = "The file is damaged; export it again"
            what = "there is a NUL byte, which no text has"
            self._refuse("nul", what, count, self._unit, remedy, problems)
            problems.raise_if_any()
        self._say_spelling(histogram)
        sizes, users, nobody = histogram["size"], histogram["users"], histogram["nobody"].astype(bool)
        if roles.contribution is Contribution.ROWS and nobody.any():
            self._say_nobody(int(sizes[nobody].sum()))
        if roles.missing_users is MissingUsers.LEAVE_OUT:
            if nobody.all() and nobody.size:
                raise self._nobody_named()
            sizes, users = sizes[~nobody], users[~nobody]
        if self.counts:
            self._refuse_users_with_several_rows(int(users.sum()))
        if not sizes.size:
            raise refuse("there are no rows", remedy="Choose a table or a file with rows")
        if (distinct := np.unique(sizes).size) > MAX_SIZES:
            what = f"users have {distinct:,} distinct numbers of contributions; at most {MAX_SIZES:,} fit"
            raise refuse(what, remedy="Count rows, or write the column in a larger unit")
        if roles.contribution is Contribution.TOTAL:
            problems = Problems()
            without = int(users[sizes == 0].sum())
            broken = bool(histogram["broken"][~nobody | (roles.missing_users is MissingUsers.ONE_USER)].any())
            if self.counts:
                self._say_counts(sizes, without, problems)
            else:
                self._say_units(float(sizes.max()), without, broken, problems)
            problems.raise_if_any()
            sizes, users = sizes[sizes > 0], users[sizes > 0]
        if users.sum() > MAX_USERS:
            raise refuse(f"there are more than {MAX_USERS:,} users", remedy="Take a sample of users")
        return ContributionHistogram.from_table(sizes, users)

    def _say_spelling(self, found: Mapping[str, FloatArray]) -> None:
        """Say where users are written so that they may not be who they seem."""
        if self.duck is None:
            return
        who, texts = query.who_columns(self.rows), query.text_columns(self.rows)
        if not self.counts:
            spelling.say_placeholders(int(found.get("placeholders", _NONE).sum()), self.notes)
        with_point = not self.counts and found.get("with_point", _NONE).any()
        if with_point and self.duck.rows(spelling.without_point(sql_of(self.rows), who[0]))[0][0]:
            what = "Some users are written like 7.0 and others like 7: who is written in both ways counts as two."
            self.notes.append(f"{what} {_WRITE_ALIKE}")
        if found.get("beyond_ascii", _NONE).any():
            parts = [in_part("{}", at, self.passes) for at in range(self.passes)]
            asked = [spelling.twins(sql_of(self.rows), who, texts, part) for part in parts]
            if twins := sum(self.duck.rows(sql)[0][0] for sql in asked):
                differ = wording.counted(twins, "user differs", "users differ")
                what = "by a no-break, wide or zero-width space or by the Unicode form of a letter"
                both = "who is written in both ways counts as two"
                self.notes.append(f"{differ} from another one only {what}: {both}. {_WRITE_ALIKE}")

    @property
    def _unit(self) -> str:
        """Return the columns that say who, for messages."""
        return "column " + " and ".join(map(shown, self.roles.privacy_unit))

    def _nobody_named(self) -> InvalidInput:
        """Said before anything about tasks or values: of rows that do not count they say nothing."""
        remedy = "Choose the column that says who, or count rows without a user as one user"
        return refuse("no row names a user", self._unit, remedy)

    def _say_counts(self, sizes: FloatArray, without: int, problems: Problems) -> None:
        if not sizes.any():
            where = f"column {shown(self.roles.value or '')}"
            problems.add("all counts are 0", where, "Choose another column")
        elif without:
            users = wording.counted(without, "user with a count of 0 was", "users with a count of 0 were")
            self.notes.append(f"{users} left out{self._first('zero', without)}.")

    def _say_units(self, largest: float, without: int, broken: bool, problems: Problems) -> None:
        """Say what is wrong with, and what a person should know of, totals that count as contributions.

        Args:
            largest: The largest total, in whole units.
            without: Users whose total is 0.
            broken: Whether any total was rounded up.
            problems: Takes what is wrong.
        """
        where = f"column {shown(self.roles.value or '')}"
        if not largest > 0:
            problems.add("all totals are 0", where, "Choose another column, or count rows")
        elif not largest <= MAX_SIZE:
            what = f"the total of one user is above {MAX_SIZE:,}"
            problems.add(what, where, "Write the column in a larger unit, or count rows")
        elif without:
            users = wording.counted(
                without, "user has a total of 0 and is", "users have a total of 0 and are"
            )
            self.notes.append(f"{users} among the totals, not in the histogram.")
        if broken and not problems.entries:
            self.notes.append(f"Totals of {where} that are not whole count as the next whole number.")

    def _refuse_users_with_several_rows(self, num_users: int) -> None:
        one = self.roles.missing_users is MissingUsers.ONE_USER
        # Rows that name nobody are one user then, who may have as many as there are.
        again = self._counted - max(self._nobody - 1, 0) * one - num_users
        if again:
            problems = Problems()
            what = "the user has a row already"
            self._refuse("again", what, again, self._unit, _SEVERAL_ROWS_REMEDY, problems)
            problems.raise_if_any()

    def _values(self, rows: Table, histogram: ContributionHistogram) -> Values | None:
        too_many = histogram.num_rows > MAX_VALUES
        if too_many or self.passes > 1:
            self._say_not_kept(f"The values of {histogram.num_rows:,} rows", MAX_VALUES if too_many else None)
            return None
        assert self.duck is not None
        self.duck.reserve(_VALUE_BYTES * histogram.num_rows)
        tasks = self._coded_tasks(rows) if self.roles.task is not None else None
        # One array after another, as each of them is large.
        coded = dict(self.run(query.coded_values(rows, self._coded_users(rows), tasks, self.order)))
        users, values = coded.pop("user"), coded.pop("value")
        # Rows of a pair of user and task stand together, so that its values can be clamped later.
        order = np.lexsort([*(coded.pop(name) for name in ("order", "task") if name in coded), users])
        values = read_only(values[order])
        users = _whole(users[order])
        del order
        users -= self._lowest
        return Values(read_only(users), values, self.roles.value or "")

    @property
    def _lowest(self) -> int:
        """Return the smallest code: 0 is of rows that name no user, where these count."""
        return int(self.roles.missing_users is MissingUsers.LEAVE_OUT)

    def _say_not_kept(self, what: str, most: int | None = None) -> None:
        """Say that something was not kept, as more than ``most`` of it do not fit, or as parts of it would not."""
        why = ": for them the memory limit is too small" if most is None else f"; at most {most:,} fit"
        self.notes.append(f"{what} were not kept{why}.")

    def _coded_users(self, rows: Table) -> Table:
        """Return the codes of users, the same for every facet."""
        assert self.duck is not None
        if self._users is None:
            self._users = self.duck.keep("users", query.numbered(rows, query.who_columns(rows), self.order))
        return self._users

    def _coded_tasks(self, rows: Table) -> Table:
        """Return the codes of tasks, the same for every facet."""
        assert self.duck is not None
        if self._coded is None:
            self._coded = self.duck.keep("tasks", query.numbered(rows, query.task_columns(rows), self.order))
        return self._coded

    def _totals(self, rows: Table, histogram: ContributionHistogram, negative: bool) -> Totals | None:
        column = self.roles.value
        if column is None or negative or self.counts:
            if negative:
                self.notes.append(
                    f"Column {shown(column or '')} has negative values, so the totals per user count rows."
                )
            return Totals.of_contributions(histogram)
        # Users with a total of 0 are none of the histogram's, but they are few where it is large.
        if self.duck is not None and histogram.num_users <= MAX_TOTALS:
            totals = self._by_parts(lambda part: query.totals_per_user(part).select("total"), rows)["total"]
            if totals.size <= MAX_TOTALS and np.isfinite(totals).all():
                return Totals(totals, column)
        found = self._by_parts(query.binned_totals, rows)
        means = found["mean"]
        if not np.isfinite(means).all():
            more = f"Column {shown(column)} adds up to more than a number can hold"
            self.notes.append(f"{more}, so the totals per user count rows.")
            return Totals.of_contributions(histogram)
        width = wording.percent(10 ** (1 / query.BINS_PER_DECADE) - 1, 2)
        self.notes.append(f"Totals per user are kept in bins in which they differ by at most {width}.")
        return Totals(means, column, _whole(found["users"]))

    def _tasks(self, rows: Table, reduced: Reduced) -> None:
        sizes = self._by_parts(query.task_sizes, rows, query.task_columns(rows))
        users, tasks = _whole(sizes["users"]), _whole(sizes["tasks"])
        if not users.size:
            return
        num_pairs, num_tasks = int((users * tasks).sum()), int(tasks.sum())
        if self.roles.contribution is Contribution.DISTINCT_TASKS and (again := self._named_rows - num_pairs):
            repeat = wording.counted(again, "row repeats", "rows repeat")
            self.notes.append(f"{repeat} a user and task that stood before; each pair counts once.")
        if self.duck is None:
            if num_pairs <= min(self.max_pairs or 0, MAX_PAIRS_BACK):
                reduced.pairs = self._pairs(rows, dict(self.run(query.ranked_pairs(rows))), num_tasks)
                return
            self.notes.append(
                f"There are {num_pairs:,} pairs of user and group. With --pairs-to and --max-pairs {num_pairs} they "
                "come back as codes and sums, without names, and bounds per group are exact."
                if num_pairs <= MAX_PAIRS_BACK
                else f"There are {num_pairs:,} pairs of user and group, and at most {MAX_PAIRS_BACK:,} come back from "
                "an engine. --distribution-to writes how they are distributed, from which bounds per group are about "
                "right; for exact ones count a sample of users, or coarser groups."
            )
        elif self.passes > 1:
            self._say_not_kept(f"The {num_pairs:,} pairs of user and task")
        elif num_pairs > MAX_PAIRS:
            self._say_not_kept(f"The {num_pairs:,} pairs of user and task", MAX_PAIRS)
        else:
            values = 0 if reduced.values is None else reduced.values.values.size
            self.duck.reserve(_VALUE_BYTES * values + _PAIR_BYTES * num_pairs)
            codes = self._coded_tasks(rows)
            coded = dict(self.run(query.coded_pairs(rows, self._coded_users(rows), codes)))
            reduced.pairs = self._pairs(rows, coded, num_tasks)
            if num_tasks <= MAX_TASK_NAMES:
                reduced.task_names = self._task_names(codes)
            return
        if num_tasks > MAX_TASKS:
            self._say_not_kept(f"Users per task of {num_tasks:,} tasks", MAX_TASKS)
            return
        reduced.pair_sizes = self._pair_sizes(rows)
        reduced.tasks = TaskSizes(np.repeat(users, tasks), self.roles.task or "", self.roles.further_task)

    def _task_names(self, codes: Table) -> tuple[str, ...]:
        """Return what the rows call each task, in the order of codes."""
        assert self.duck is not None
        cells = [
            f"substr(CAST({name} AS VARCHAR), 1, {LONGEST_TASK_NAME})" for name in query.task_columns(codes)
        ]
        named = self.duck.rows(f"SELECT {', '.join(cells)} FROM ({sql_of(codes)}) ORDER BY code")
        return tuple(" × ".join(str(cell) for cell in row) for row in named)

    def _pair_sizes(self, rows: Table) -> PairSizes | None:
        """Return how pairs are distributed, and the totals per group."""
        sizes = self._by_parts(query.pair_sizes, rows)
        totals = self._by_parts(query.group_totals, rows, query.task_columns(rows))
        if sizes["pairs"].size > MAX_SIZES:
            self.notes.append(f"Sizes of pairs were not kept; at most {MAX_SIZES:,} distinct ones fit.")
            return None
        times = _whole(totals["groups"])
        return PairSizes(
            sizes["groups"], sizes["rows"], sizes["pairs"],
            np.repeat(totals["rows"], times), np.repeat(totals["users"], times),
            self.roles.task or "", self.roles.further_task,
        )  # fmt: skip

    def _pairs(self, rows: Table, coded: dict[str, npt.NDArray[Any]], num_tasks: int) -> Pairs:
        """Build the pairs; ``coded`` is emptied meanwhile, as its arrays are large."""
        order = np.lexsort((coded["task"], coded["user"]))
        for name in list(coded):
            coded[name] = read_only(coded[name][order])
        del order
        # Codes of `ranked_pairs` begin at 1 whatever is done with rows that name nobody.
        users = _whole(coded.pop("user"))
        users -= 1 if self.duck is None else self._lowest
        tasks = _whole(coded.pop("task"))
        tasks -= 1
        amounts: dict[str, Any] = {}
        if self.roles.value is not None:
            ends = {name: float(cell[0]) for name, cell in self.run(query.value_range(rows)).items()}
            if max(map(abs, ends.values())) <= query.MAX_SQUARED:
                amounts = {
                    "sums": coded["sums"], "sums_of_squares": coded["squares"],
                    "value_column": self.roles.value, "value_range": (ends["least"], ends["largest"]),
                }  # fmt: skip
        return Pairs(
            read_only(users), read_only(tasks), num_tasks, self.roles.task or "", rows=coded["rows"],
            rows_without_group=self._without_task, further_columns=self.roles.further_task, **amounts,
        )  # fmt: skip


def _whole(column: npt.NDArray[Any]) -> IntArray:
    return column.astype(np.int64)


def _numbers(columns: Columns) -> dict[str, FloatArray]:
    """Return the columns as float64: exact, as sizes and users lie below 2^53; nulls, as in sums of nothing, are 0."""
    return {name: np.nan_to_num(np.asarray(column, dtype=np.float64)) for name, column in columns.items()}
