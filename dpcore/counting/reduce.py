"""The reduction of a table to a histogram and further facets: the queries that run, and notes on their results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dpcore import dataset
from dpcore.common import wording
from dpcore.common.checks import InvalidInput, Problems, refuse
from dpcore.contributions import MAX_SIZE, MAX_USERS, ContributionHistogram, FloatArray, IntArray, read_only
from dpcore.counting import query
from dpcore.counting.duck import (
    Columns,
    Duck,
    compile_sql,
    count_twins_sql,
    count_without_point_sql,
    note_placeholders,
    write_flag_sql,
    write_part_condition,
    write_user_checks,
)
from dpcore.counting.rejects import MAX_PLACES
from dpcore.data.column_names import shorten
from dpcore.data.column_roles import MissingUsers, Roles, write_user_hint

if TYPE_CHECKING:
    from ibis.expr.types import Table

MAX_SIZES = 5_000_000
"""Largest number of distinct sizes of a histogram: 16 bytes each, 80 MB."""
MAX_TASKS = 20_000_000
"""Largest number of tasks whose numbers of users are kept: 8 bytes each, 160 MB."""
MAX_PAIRS_BACK = 2_000_000
"""Largest number of pairs that are fetched from an engine on request: codes and sums, 80 MB, never a name."""
_VALUE_BYTES, _PAIR_BYTES = 16, 32
"""Bytes outside DuckDB of a value, and of a pair with its sums."""
_NONE: FloatArray = np.zeros(0)

NO_COPIES = "Exact copies of rows were not looked for: that takes another pass, on request."
_SEVERAL_ROWS_REMEDY = "Add up the counts of each user, or say that one row is one contribution"
_TWO_WAYS = "whoever is written both ways counts as two. Write all in one way first."
COUNT_ROWS = ", so the totals per user count rows."
RowPlaces = list[tuple[str, str]]
"""Locations of rows as text, each with a detail for the message."""


def describe_first(row_places: RowPlaces, count: int) -> str:
    """Return the location of the first row as the end of a note; empty if it is unknown."""
    return f" ({'first: ' if count > 1 else ''}{row_places[0][0]})" if row_places else ""


def note_copies(number: int | None, notes: list[str], row_places: RowPlaces | None = None) -> None:
    """Add a note on the number of copies and the first one's location, or (None) that they were not looked for."""
    if number is None:
        notes.append(NO_COPIES)
    elif number:
        rows = wording.counted(number, "row is an exact copy", "rows are exact copies")
        notes.append(f"{rows} of an earlier one{describe_first(row_places or [], 2)}.")


@dataclass
class Facets:
    """The histogram and further facets of a dataset, by the names that they have there."""

    histogram: ContributionHistogram
    values: dataset.Values | None = None
    totals: dataset.Totals | None = None
    pairs: dataset.Pairs | None = None
    tasks: dataset.TaskSizes | None = None
    pair_sizes: dataset.PairSizes | None = None
    task_names: tuple[str, ...] = ()


@dataclass
class Reduction:
    """The reduction of one table to `Facets`.

    Attributes:
        rows: Result of `query.events`.
        roles: Roles of the columns.
        columns: All columns, for hints.
        run: Function that runs a query and returns its columns.
        duck: DuckDB in this process, from which facets with an entry per row or per user may be fetched. None for a
            remote engine, from which only counts are fetched.
        find_places: Function that returns the locations of the first cells of a kind, for messages, given the name in
            `query.odd_cells` (or ``again``, rows of users who have one already) and the largest number of them. A
            remote engine has none, as rows have no order there.
        counts: True if the value is the number of contributions of a user, who has no other row.
        num_passes: Number of parts in which users (or tasks) are counted, one after another, to save memory.
        notes: List to which notes for the user are added.
        histogram: The result of `query.histogram`, if it is known already.
        order: Name of the column that numbers the rows, if there is one; users and tasks are then numbered in order.
        remedy: Remedy for cells that are not counts.
        max_pairs: Largest number of pairs that may be fetched from a remote engine, at most `MAX_PAIRS_BACK`; with 0
            there is a note on their number instead.
    """

    rows: Table
    roles: Roles
    columns: tuple[str, ...]
    run: Callable[[Table], Columns]
    duck: Duck | None
    find_places: Callable[[str, int], RowPlaces] = lambda cell_kind, max_rows: []
    notes: list[str] = field(default_factory=list)
    histogram: Columns | None = None
    counts: bool = False
    num_passes: int = 1
    order: str = ""
    remedy: str = "A count must be a whole number; if it is not one, choose another column"
    max_pairs: int = 0
    _num_counted: int = 0
    _num_unnamed: int = 0
    _without_task: int = 0
    _codes: dict[str, Table] = field(default_factory=dict)

    def reduce(self) -> Facets:
        """Run the queries and return their results.

        Raises:
            InvalidInput: The cells cannot be counted; all problems at once.
            StoppedError: Stop was pressed.
        """
        rows = query.select_counted(self.rows, self.roles.missing_users)
        has_negative = self._survey()
        histogram = self._histogram()
        hint = write_user_hint(self.roles, self.columns, histogram.num_users, histogram.max_size)
        self.notes += [hint] if hint else []
        facets = Facets(histogram)
        has_values = self.roles.contribution is dataset.Contribution.ROWS and self.roles.value
        if has_values and self.duck is not None:
            facets.values = self._values(rows, histogram, self.duck)
        facets.totals = self._totals(rows, histogram, has_negative)
        if self.roles.task is not None:
            self._tasks(rows, facets)
        return facets

    def _run_in_parts(
        self, make: Callable[[Table], Table], rows: Table, group_columns: Sequence[str] | None = None
    ) -> Columns:
        """Run a query in parts and join the columns; the parts divide the given columns (default: the user's)."""
        if self.num_passes == 1:
            return self.run(make(rows))
        assert self.duck is not None
        cells = ", ".join(group_columns or query.who_columns(rows))
        conditions = [
            write_part_condition(cells, part_number, self.num_passes)
            for part_number in range(self.num_passes)
        ]
        parts = [self.run(make(self.duck.create_view("part", rows, condition))) for condition in conditions]
        return {name: np.concatenate([columns[name] for columns in parts]) for name in parts[0]}

    def count_users(self, **masks: str) -> Columns:
        """Run `query.histogram`; in DuckDB also count the users who fit each mask, and odd spellings of users."""
        marks = {}
        if self.duck is not None:
            who, texts = query.who_columns(self.rows), query.text_columns(self.rows)
            masks_sql = write_user_checks(who, texts) | {
                name: write_flag_sql(mask) for name, mask in masks.items()
            }
            marks = {f"{query.MARK}{name}": sql for name, sql in masks_sql.items()}

        def make(rows: Table) -> Table:
            """Build the histogram's expression over these rows, in DuckDB with the marks of users."""
            users = query.per_user(rows, self.roles.contribution)
            marked = (
                users if self.duck is None else self.duck.create_view("users_", users, further_columns=marks)
            )
            return query.histogram(marked, self.roles.contribution)

        return self._run_in_parts(make, self.rows)

    def _survey(self) -> bool:
        """Note or refuse cells that cannot be counted, and keep their numbers; return True if any value is negative."""
        if self.roles.value is None and self.roles.task is None:
            return False
        with Problems() as problems:
            cells = self.refuse_cells(problems)
            plural = "s" if len(self.roles.groups) > 1 else ""
            group_columns = f"column{plural} {' and '.join(map(shorten, self.roles.groups))}"
            counts_tasks = self.roles.contribution is dataset.Contribution.DISTINCT_TASKS
            if no_task := cells.get("no_task", 0):
                rows = wording.counted(no_task, "row without a task was", "rows without a task were")
                pairs = "" if counts_tasks else " of the pairs of user and task"
                self.notes.append(f"{rows} left out{pairs}{self._describe_first('no_task', no_task)}.")
            leave_out = self.roles.missing_users is MissingUsers.LEAVE_OUT
            self._num_counted = cells["rows"] - cells["nobody"] * leave_out
            if not self._num_counted:
                raise self._nobody_named()  # before problems of tasks or values
            self._num_unnamed, self._without_task = cells["nobody"], no_task
            if self.roles.contribution is not dataset.Contribution.ROWS:
                self._note_unnamed(cells["nobody"])
            if counts_tasks and no_task == self._num_counted:
                problems.add("no row names a task", group_columns, "Choose another column, or count rows")
        return cells.get("negative", 0) > 0

    def refuse_cells(self, problems: Problems) -> dict[str, int]:
        """Add problems for cells of the value that cannot be counted; return the number of cells of each kind."""
        answer = self.run(query.survey(self.rows, self.roles.missing_users, self.counts))
        numbers = {name: int(column[0]) for name, column in _to_floats(answer).items()}
        if numbers["rows"] == 0:
            problems.add("there are no rows", "", "Choose a table or a file with rows")
            problems.raise_if_any()
        if self.roles.value is None:
            return numbers
        remedy = self.remedy if self.counts else "Correct these cells, or choose another value column or none"
        messages = {"blank": "the cell is blank", "not_finite": "not a finite number"}
        messages["text"] = "text where a number must stand"
        if self.counts or self.roles.contribution is dataset.Contribution.TOTAL:
            messages["negative"] = "a negative number"
        if self.counts:
            messages |= {"broken": "not a whole number", "large": f"more than {MAX_SIZE:,}"}
        column = f"column {shorten(self.roles.value)}"
        for cell_kind, message in messages.items():
            if count := numbers[cell_kind]:
                self._refuse(cell_kind, message, count, column, remedy, problems)
        return numbers

    def _refuse(
        self, cell_kind: str, message: str, count: int, column: str, remedy: str, problems: Problems
    ) -> None:
        """Add a problem with the locations and contents of the first cells, and their number."""
        row_places = self.find_places(cell_kind, MAX_PLACES)
        if not row_places:
            problems.add(f"{message}; {wording.counted(count, 'row')} in all", column, remedy)
            return
        (_, first_cell), *other_places = row_places
        other_texts = [f"{location} ({cell})" if cell else location for location, cell in other_places]
        text = f"{message} ({first_cell})" if first_cell else message
        text += f"; also {' and '.join(other_texts)}" if other_texts else ""
        text += f"; {count:,} in all" if count > MAX_PLACES else ""
        problems.add(text, f"{row_places[0][0]}, {column}", remedy)

    def _refuse_now(self, cell_kind: str, message: str, count: int, remedy: str) -> None:
        """Raise InvalidInput for rows of users, with their first locations."""
        with Problems() as problems:
            self._refuse(cell_kind, message, count, self._unit, remedy, problems)

    def _note_unnamed(self, count: int) -> None:
        """Add a note on this number of rows without a user, unless it is 0."""
        if count:
            is_one_user = self.roles.missing_users is MissingUsers.ONE_USER
            rows = wording.counted(count, "row without a user was", "rows without a user were")
            action = "counted as one user" if is_one_user else "left out"
            self.notes.append(f"{rows} {action}{self._describe_first('nobody', count)}.")

    def _describe_first(self, cell_kind: str, count: int) -> str:
        """Return the location of the first cell of a kind, as the end of a note."""
        return describe_first(self.find_places(cell_kind, 1), count)

    @property
    def _unit(self) -> str:
        """Return the user columns, for messages."""
        return "column " + " and ".join(map(shorten, self.roles.privacy_unit))

    def _nobody_named(self) -> InvalidInput:
        """Return the error that no row names a user."""
        return refuse("no row names a user", self._unit, "Choose another column, or count them as one user")

    def _histogram(self) -> ContributionHistogram:
        """Count users by size, add notes on them, and return the histogram; raise InvalidInput if it is none."""
        # Rows that name no user are one group here, so that the same pass over the table counts them.
        histogram = _to_floats(self.histogram or self.count_users())
        if "nul" in histogram and (count := int(histogram["nul"].sum())):
            self._refuse_now("nul", "there is a NUL byte, which no text has", count, "Export it again")
        self._note_spelling(histogram)
        sizes, users, nobody = histogram["size"], histogram["users"], histogram["nobody"].astype(bool)
        if self.roles.contribution is dataset.Contribution.ROWS and nobody.any():
            self._note_unnamed(int(sizes[nobody].sum()))
        is_one_user = self.roles.missing_users is MissingUsers.ONE_USER
        if not is_one_user:
            if nobody.all() and nobody.size:
                raise self._nobody_named()
            sizes, users = sizes[~nobody], users[~nobody]
        if self.counts:
            # Rows that name no user form one user, who may have several rows, or are left out.
            num_repeats = self._num_counted - max(self._num_unnamed - 1, 0) * is_one_user - int(users.sum())
            if num_repeats:
                self._refuse_now("again", "the user has a row already", num_repeats, _SEVERAL_ROWS_REMEDY)
        if not sizes.size:
            raise refuse("there are no rows", remedy="Choose a table or a file with rows")
        if (distinct := np.unique(sizes).size) > MAX_SIZES:
            message = f"users have {distinct:,} distinct numbers of contributions; at most {MAX_SIZES:,} fit"
            raise refuse(message, remedy="Count rows, or write the column in a larger unit")
        if self.roles.contribution is dataset.Contribution.TOTAL:
            self._check_totals(sizes, int(users[sizes == 0].sum()))
            if not self.counts and histogram["broken"][~nobody | is_one_user].any():
                self.notes.append("Totals that are not whole count as the next whole number.")
            sizes, users = sizes[sizes > 0], users[sizes > 0]
        if users.sum() > MAX_USERS:
            raise refuse(f"there are more than {MAX_USERS:,} users", remedy="Take a sample of users")
        return ContributionHistogram.from_table(sizes, users)

    def _check_totals(self, sizes: FloatArray, without: int) -> None:
        """Raise InvalidInput for totals that are no sizes, or add a note on users with a total of 0."""
        location = f"column {shorten(self.roles.value or '')}"
        if not sizes.max() > 0:
            raise refuse("all totals are 0", location, "Choose another column, or count rows")
        if not sizes.max() <= MAX_SIZE:
            raise refuse(f"the total of one user is above {MAX_SIZE:,}", location, "Use a larger unit")
        if without:
            users = wording.counted(without, "user with a total of 0 is", "users with a total of 0 are")
            first = self._describe_first("zero", without) if self.counts else ""
            self.notes.append(f"{users} not in the histogram{first}.")

    def _note_spelling(self, histogram: Mapping[str, FloatArray]) -> None:
        """Add notes on users whose spelling suggests that two of them are the same."""
        if self.duck is None:
            return
        who, texts = query.who_columns(self.rows), query.text_columns(self.rows)
        if not self.counts:
            note_placeholders(int(histogram.get("placeholders", _NONE).sum()), self.notes)
            with_point = histogram.get("with_point", _NONE).any()
            if (
                with_point
                and self.duck.fetch_rows(count_without_point_sql(compile_sql(self.rows), who[0]))[0][0]
            ):
                self.notes.append(f"Some users are written like 7.0 and others like 7: {_TWO_WAYS}")
        if histogram.get("beyond_ascii", _NONE).any():
            conditions = [
                write_part_condition("{}", part_number, self.num_passes)
                for part_number in range(self.num_passes)
            ]
            queries = [
                count_twins_sql(compile_sql(self.rows), who, texts, condition) for condition in conditions
            ]
            if twins := sum(self.duck.fetch_rows(sql)[0][0] for sql in queries):
                users = wording.counted(twins, "user looks like another one", "users look like others")
                self.notes.append(f"{users} but for spaces or Unicode forms: {_TWO_WAYS}")

    def _values(self, rows: Table, histogram: ContributionHistogram, duck: Duck) -> dataset.Values | None:
        """Return the values of all rows, sorted by user; None, with a note, if they do not fit in memory."""
        too_many = histogram.num_rows > dataset.MAX_VALUES
        if too_many or self.num_passes > 1:
            limit = dataset.MAX_VALUES if too_many else None
            self._note_dropped(f"The values of {histogram.num_rows:,} rows", limit)
            return None
        duck.reserve(_VALUE_BYTES * histogram.num_rows)
        tasks = self._keep_codes(duck, rows, "tasks") if self.roles.task is not None else None
        users_table = self._keep_codes(duck, rows, "users")
        # The arrays are sorted one after another, as each of them is large.
        coded = dict(self.run(query.coded_values(rows, users_table, tasks, self.order)))
        users, values = coded.pop("user"), coded.pop("value")
        # Rows of a pair of user and task are adjacent, so that its values can be clamped later.
        order = np.lexsort([*(coded.pop(name) for name in ("order", "task") if name in coded), users])
        values = read_only(values[order])
        users = _to_integers(users[order])
        del order
        users -= _lowest_code(self.roles)
        return dataset.Values(read_only(users), values, self.roles.value or "")

    def _note_dropped(self, subject: str, limit: int | None = None) -> None:
        """Add a note that something was not kept, because of its limit or of the memory limit."""
        why = ": for them the memory limit is too small" if limit is None else f"; at most {limit:,} fit"
        self.notes.append(f"{subject} were not kept{why}.")

    def _keep_codes(self, duck: Duck, rows: Table, name: str) -> Table:
        """Store the codes of ``users`` or ``tasks`` in a table, once for all facets, and return it."""
        if name not in self._codes:
            columns = query.who_columns(rows) if name == "users" else query.task_columns(rows)
            self._codes[name] = duck.store_table(name, query.numbered(rows, columns, self.order))
        return self._codes[name]

    def _totals(self, rows: Table, histogram: ContributionHistogram, has_negative: bool) -> dataset.Totals:
        """Return the totals per user, exact or in bins; rows per user without a usable value column."""
        column = self.roles.value
        if column is None or self.counts:
            return dataset.Totals.of_contributions(histogram)
        if has_negative:
            self.notes.append(f"Column {shorten(column)} has negative values{COUNT_ROWS}")
            return dataset.Totals.of_contributions(histogram)
        # Users with a total of 0 are not in the histogram, but they are few if it is large.
        if self.duck is not None and histogram.num_users <= dataset.MAX_TOTALS:
            totals = self._run_in_parts(lambda part: query.totals_per_user(part).select("total"), rows)
            if totals["total"].size <= dataset.MAX_TOTALS and np.isfinite(totals["total"]).all():
                return dataset.Totals(totals["total"], column)
        binned = self._run_in_parts(query.binned_totals, rows)
        if not np.isfinite(binned["mean"]).all():
            self.notes.append(f"Column {shorten(column)} adds up to more than a number can hold{COUNT_ROWS}")
            return dataset.Totals.of_contributions(histogram)
        width = wording.percent(10 ** (1 / query.BINS_PER_DECADE) - 1, 2)
        self.notes.append(f"Totals per user are kept in bins in which they differ by at most {width}.")
        return dataset.Totals(binned["mean"], column, _to_integers(binned["users"]))

    def _tasks(self, rows: Table, facets: Facets) -> None:
        """Add the facets of tasks: pairs, or else the distribution of pairs and users per task; note the rest."""
        sizes = self._run_in_parts(query.task_sizes, rows, query.task_columns(rows))
        users, tasks = _to_integers(sizes["users"]), _to_integers(sizes["tasks"])
        if not users.size:
            return
        num_pairs, num_tasks = int((users * tasks).sum()), int(tasks.sum())
        num_repeats = self._num_counted - self._without_task - num_pairs
        if self.roles.contribution is dataset.Contribution.DISTINCT_TASKS and num_repeats:
            repeat = wording.counted(num_repeats, "row repeats", "rows repeat")
            self.notes.append(f"{repeat} a user and task that stood before; each pair counts once.")
        if self.duck is None:
            if num_pairs <= min(self.max_pairs, MAX_PAIRS_BACK):
                facets.pairs = self._pairs(rows, dict(self.run(query.ranked_pairs(rows))), num_tasks)
                return
            advice = f"--pairs-to and --max-pairs {num_pairs} return them as codes, for exact bounds"
            if num_pairs > MAX_PAIRS_BACK:
                advice = f"an engine returns at most {MAX_PAIRS_BACK:,}; --distribution-to writes their distribution"
            self.notes.append(f"There are {num_pairs:,} pairs of user and group: {advice}.")
        elif self.num_passes > 1 or num_pairs > dataset.MAX_PAIRS:
            limit = dataset.MAX_PAIRS if self.num_passes == 1 else None
            self._note_dropped(f"The {num_pairs:,} pairs of user and task", limit)
        else:
            num_values = 0 if facets.values is None else facets.values.values.size
            self.duck.reserve(_VALUE_BYTES * num_values + _PAIR_BYTES * num_pairs)
            codes = self._keep_codes(self.duck, rows, "tasks")
            pairs = query.coded_pairs(rows, self._keep_codes(self.duck, rows, "users"), codes)
            facets.pairs = self._pairs(rows, dict(self.run(pairs)), num_tasks)
            if num_tasks <= dataset.MAX_TASK_NAMES:
                facets.task_names = _list_task_names(self.duck, codes)
            return
        if num_tasks > MAX_TASKS:
            self._note_dropped(f"Users per task of {num_tasks:,} tasks", MAX_TASKS)
            return
        facets.pair_sizes = self._pair_sizes(rows)
        task, further = self.roles.task or "", self.roles.further_task
        facets.tasks = dataset.TaskSizes(np.repeat(users, tasks), task, further)

    def _pair_sizes(self, rows: Table) -> dataset.PairSizes | None:
        """Return the distribution of pairs and the totals per group; None, with a note, if there are too many sizes."""
        sizes = self._run_in_parts(query.pair_sizes, rows)
        totals = self._run_in_parts(query.group_totals, rows, query.task_columns(rows))
        if sizes["pairs"].size > MAX_SIZES:
            self.notes.append(f"Sizes of pairs were not kept; at most {MAX_SIZES:,} distinct ones fit.")
            return None
        times = _to_integers(totals["groups"])
        return dataset.PairSizes(
            sizes["groups"], sizes["rows"], sizes["pairs"],
            np.repeat(totals["rows"], times), np.repeat(totals["users"], times),
            self.roles.task or "", self.roles.further_task,
        )  # fmt: skip

    def _pairs(self, rows: Table, coded: dict[str, npt.NDArray[Any]], num_tasks: int) -> dataset.Pairs:
        """Build the pairs from their coded columns; ``coded`` is emptied on the way, as its arrays are large."""
        order = np.lexsort((coded["task"], coded["user"]))
        for name in list(coded):
            coded[name] = read_only(coded[name][order])
        del order
        # Codes of `ranked_pairs` begin at 1 for every treatment of rows that name no user.
        users = _to_integers(coded.pop("user"))
        users -= 1 if self.duck is None else _lowest_code(self.roles)
        tasks = _to_integers(coded.pop("task"))
        tasks -= 1
        amounts: dict[str, Any] = {}
        if self.roles.value is not None:
            ends = {name: float(cell[0]) for name, cell in self.run(query.value_range(rows)).items()}
            if max(map(abs, ends.values())) <= query.MAX_SQUARED:
                amounts = {
                    "sums": coded["sums"], "sums_of_squares": coded["squares"],
                    "value_column": self.roles.value, "value_range": (ends["least"], ends["largest"]),
                }  # fmt: skip
        return dataset.Pairs(
            read_only(users), read_only(tasks), num_tasks, self.roles.task or "", rows=coded["rows"],
            rows_without_group=self._without_task, further_columns=self.roles.further_task, **amounts,
        )  # fmt: skip


def _lowest_code(roles: Roles) -> int:
    """Return the lowest user code that counts: 0, of unnamed users, or 1 if they are left out."""
    return 0 if roles.missing_users is MissingUsers.ONE_USER else 1


def _list_task_names(duck: Duck, codes: Table) -> tuple[str, ...]:
    """Return the name of each task, in the order of codes."""
    length, columns = dataset.LONGEST_TASK_NAME, query.task_columns(codes)
    cells = [f"substr(CAST({name} AS VARCHAR), 1, {length})" for name in columns]
    names = duck.fetch_rows(f"SELECT {', '.join(cells)} FROM ({compile_sql(codes)}) ORDER BY code")
    return tuple(" × ".join(str(cell) for cell in row) for row in names)


def _to_integers(column: npt.NDArray[Any]) -> IntArray:
    """Convert an array to int64."""
    return column.astype(np.int64)


def _to_floats(columns: Columns) -> dict[str, FloatArray]:
    """Return the columns as float64, which is exact below 2^53; nulls, such as empty sums, become 0."""
    return {name: np.nan_to_num(np.asarray(column, dtype=np.float64)) for name, column in columns.items()}
