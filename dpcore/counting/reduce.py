"""The reduction of a table to a histogram and further facets: the queries that run, and notes on their results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dpcore import dataset
from dpcore.common.checks import InvalidInput, Problems, refuse
from dpcore.common.wording import format_count, format_number, format_percent
from dpcore.contributions import MAX_SIZE, MAX_USERS, ContributionHistogram, FloatArray, read_only
from dpcore.counting import query
from dpcore.counting.duck import (
    Columns,
    Duck,
    count_twins_sql,
    count_without_point_sql,
    note_placeholders,
    write_flag_sql,
    write_part_condition,
    write_user_checks,
)
from dpcore.counting.facets import Facets, RowPlaces, convert_to_floats, describe_first, list_task_names
from dpcore.counting.rejects import MAX_PLACES
from dpcore.data import task_facets
from dpcore.data.cell_numbers import NUMBER_TEXT
from dpcore.data.column_names import shorten
from dpcore.data.column_roles import MissingUsers, Roles, write_user_hint

if TYPE_CHECKING:
    from dpcore.counting.duck_tables import Table

MAX_SIZES = 5_000_000
"""Largest number of distinct sizes of a histogram: 16 bytes each, 80 MB."""
MAX_TASKS = 20_000_000
"""Largest number of tasks whose numbers of users are kept: 8 bytes each, 160 MB."""
MAX_FETCHED_PAIRS = 2_000_000
"""Largest number of pairs that are fetched from an engine on request: codes and sums, 80 MB, never a name."""
_VALUE_BYTES, _PAIR_BYTES = 16, 32
"""Bytes outside DuckDB of a value, and of a pair with its sums."""
_NO_NUMBERS: FloatArray = np.zeros(0)
MISSING_REMEDY = (
    "Correct these cells, say that missing values are replaced by a public number or their rows left out, or choose "
    "another value column or none"
)
_MISSING_KINDS = ("blank", "not_finite", "text")
"""Kinds of cells of values that hold no number up to ±1e100."""

_SEVERAL_ROWS_REMEDY = "Add up the counts of each user, or say that one row is one contribution"
_TWO_WAYS_TEXT = "whoever is written both ways counts as two. Write all in one way first."


@dataclass
class Reduction:
    """The reduction of one table to `Facets`.

    Attributes:
        rows: Result of `query.select_events`.
        roles: Roles of the columns.
        columns: All columns, for hints.
        run_query: Function that runs a query and returns its columns.
        duck: DuckDB in this process, from which facets with an entry per row or per user may be fetched. None for a
            remote engine, from which only counts are fetched.
        find_places: Function that returns the locations of the first cells of a kind, for messages, given the name in
            `query.mask_odd_cells` (or ``again``, rows of users who have one already) and the largest number of them. A
            remote engine has none, as rows have no order there.
        is_count_table: True if the value is the number of contributions of a user, who has no other row.
        num_passes: Number of parts in which users (or tasks) are counted, one after another, to save memory.
        notes: List to which notes for the user are added.
        histogram_columns: The result of `query.count_users_by_size`, if it is known already.
        order_column: Name of the column that numbers the rows; users and tasks are then numbered in order. Else empty.
        count_remedy: Remedy of the problems of cells that are not counts.
        max_fetched_pairs: Largest number of pairs that may be fetched from a remote engine, at most
            `MAX_FETCHED_PAIRS`; with 0 there is a note on their number instead.
        fetch_values: Function that fetches the binned values of the counted rows from a remote engine; None for none.
    """

    rows: Table
    roles: Roles
    columns: tuple[str, ...]
    run_query: Callable[[Table], Columns]
    duck: Duck | None
    find_places: Callable[[str, int], RowPlaces] = lambda cell_kind, max_rows: []
    notes: list[str] = field(default_factory=list)
    histogram_columns: Columns | None = None
    is_count_table: bool = False
    num_passes: int = 1
    order_column: str = ""
    count_remedy: str = "A count must be a whole number; if it is not one, choose another column"
    max_fetched_pairs: int = 0
    fetch_values: Callable[[Table, ContributionHistogram], dataset.Values] | None = None
    _num_counted_rows: int = 0
    _num_unnamed_rows: int = 0
    _num_rows_without_task: int = 0
    _code_tables: dict[str, Table] = field(default_factory=dict)

    def reduce(self) -> Facets:
        """Return the histogram, totals and, for columns of values or tasks, the further facets; add notes on the rows.

        Raises:
            InvalidInput: The cells cannot be counted; all problems at once.
            StoppedError: Stop was pressed.
        """
        has_negative_values = self._check_cells()
        rows = query.select_counted(self.rows, self.roles.missing_users)
        histogram = self._count_histogram()
        user_hint = write_user_hint(self.roles, self.columns, histogram)
        self.notes += [user_hint] if user_hint else []
        facets = Facets(histogram)
        counts_rows = self.roles.contribution is dataset.Contribution.ROWS
        if counts_rows and self.roles.value is not None and self.duck is not None:
            facets.values = self._fetch_values(rows, histogram, self.duck)
        if self.fetch_values is not None:
            facets.values = self.fetch_values(rows, histogram)
        facets.totals = self._fetch_totals(rows, histogram, has_negative_values)
        if has_negative_values and facets.values is None:  # From values, totals of either sign are computed.
            self.notes.append(
                f"Column {shorten(self.roles.value or '')} has negative values, so no totals were kept."
            )
        if self.roles.task is not None:
            self._add_task_facets(rows, facets)
        return facets

    def _run_in_parts(
        self, build_query: Callable[[Table], Table], rows: Table, key_columns: Sequence[str] | None = None
    ) -> Columns:
        """Run a query on one part of the rows after another, and join the columns of the results.

        Rows with equal cells in the key columns, by default those of the user, are in one part.
        """
        if self.num_passes == 1:
            return self.run_query(build_query(rows))
        assert self.duck is not None
        key_cells_sql = ", ".join(key_columns or query.list_user_columns(rows))
        part_results: list[Columns] = []
        for part_index in range(self.num_passes):
            condition_sql = write_part_condition(key_cells_sql, part_index, self.num_passes)
            part_rows = self.duck.create_view("part", rows, condition_sql)
            part_results.append(self.run_query(build_query(part_rows)))
        return {name: np.concatenate([columns[name] for columns in part_results]) for name in part_results[0]}

    def count_users(self, **mask_sqls: str) -> Columns:
        """Return the result of `query.count_users_by_size`; in DuckDB also count the users of masks and odd spellings.

        A mask is an SQL condition on a user; a column of the result has its name and the number of users per size.
        """
        sql_by_mark = {}
        if self.duck is not None:
            user_columns = query.list_user_columns(self.rows)
            sql_by_check = write_user_checks(user_columns, query.list_text_columns(self.rows))
            sql_by_check |= {mark_name: write_flag_sql(mask_sql) for mark_name, mask_sql in mask_sqls.items()}
            sql_by_mark = {f"{query.MARK_PREFIX}{mark_name}": sql for mark_name, sql in sql_by_check.items()}

        def build_histogram(rows: Table) -> Table:
            """Build the query for the histogram of these rows, in DuckDB with the marks of users."""
            users_table = query.count_per_user(rows, self.roles.contribution)
            if self.duck is not None:
                users_table = self.duck.create_view("users_", users_table, sql_by_mark=sql_by_mark)
            return query.count_users_by_size(users_table, self.roles.contribution)

        return self._run_in_parts(build_histogram, self.rows)

    def _check_cells(self) -> bool:
        """Note or refuse cells that cannot be counted, and keep their numbers; return True if a value is negative."""
        if self.roles.value is None and self.roles.task is None:
            return False
        with Problems() as problems:
            counts_by_kind = self.refuse_cells(problems)
            plural_ending = "s" if len(self.roles.groups) > 1 else ""
            groups_text = f"column{plural_ending} {' and '.join(map(shorten, self.roles.groups))}"
            counts_tasks = self.roles.contribution is dataset.Contribution.DISTINCT_TASKS
            if num_without_task := counts_by_kind.get("no_task", 0):
                noun_forms = "row without a task was", "rows without a task were"
                rows_text = format_count(num_without_task, *noun_forms)
                left_out_of_phrase = "" if counts_tasks else " of the pairs of user and task"
                first_text = self._describe_first("no_task", num_without_task)
                self.notes.append(f"{rows_text} left out{left_out_of_phrase}{first_text}.")
            leaves_out_unnamed = self.roles.missing_users is MissingUsers.LEAVE_OUT
            self._num_counted_rows = counts_by_kind["rows"] - counts_by_kind["nobody"] * leaves_out_unnamed
            if not self._num_counted_rows:
                raise self._build_unnamed_error()  # before problems of tasks or values
            self._num_unnamed_rows, self._num_rows_without_task = counts_by_kind["nobody"], num_without_task
            if self.roles.contribution is not dataset.Contribution.ROWS:
                self._note_unnamed(counts_by_kind["nobody"])
            if counts_tasks and num_without_task == self._num_counted_rows:
                problems.add("no row names a task", groups_text, "Choose another column, or count rows")
        return counts_by_kind.get("negative", 0) > 0

    def refuse_cells(self, problems: Problems) -> dict[str, int]:
        """Add problems for cells of the value that cannot be counted; return the number of rows of each kind of cell.

        With a rule for missing values, it is applied to the rows first, with a note.
        """
        counts_by_kind = self._survey_cells()
        missing_kinds = [cell_kind for cell_kind in _MISSING_KINDS if counts_by_kind.get(cell_kind)]
        if self.roles.missing_rule is not None and missing_kinds and not self.is_count_table:
            num_missing = sum(counts_by_kind[cell_kind] for cell_kind in missing_kinds)
            first_text = self._describe_first(missing_kinds[0], num_missing)
            self.rows = query.settle_missing(self.rows, self.roles.missing_constant)
            counts_by_kind = self._survey_cells()
            self._note_missing(num_missing, first_text)
            if counts_by_kind["rows"] == 0:
                location = f"column {shorten(self.roles.value or '')}"
                raise refuse("no row holds a number there", location, "Choose another value column or none")
        if counts_by_kind["rows"] == 0:
            problems.add("there are no rows", "", "Choose a table or a file with rows")
            problems.raise_if_any()
        if self.roles.value is None:
            return counts_by_kind
        remedy_text = self.count_remedy if self.is_count_table else MISSING_REMEDY
        messages_by_kind = {"blank": "the cell is blank", "not_finite": f"no {NUMBER_TEXT}"}
        messages_by_kind["text"] = "text where a number must stand"
        if self.is_count_table or self.roles.contribution is dataset.Contribution.TOTAL:
            messages_by_kind["negative"] = "a negative number"
        if self.is_count_table:
            messages_by_kind |= {"broken": "not a whole number", "large": f"more than {MAX_SIZE:,}"}
        column_text = f"column {shorten(self.roles.value)}"
        for cell_kind, message in messages_by_kind.items():
            if num_cells := counts_by_kind[cell_kind]:
                self._refuse(cell_kind, message, num_cells, column_text, remedy_text, problems)
        return counts_by_kind

    def _survey_cells(self) -> dict[str, int]:
        """Return the number of all rows (``rows``), and of the rows of each kind of `query.mask_odd_cells`."""
        survey_query = query.count_odd_cells(self.rows, self.roles.missing_users, self.is_count_table)
        survey_columns = convert_to_floats(self.run_query(survey_query))
        return {cell_kind: int(cell_counts[0]) for cell_kind, cell_counts in survey_columns.items()}

    def _note_missing(self, num_missing: int, first_text: str) -> None:
        """Add a note on values that were missing or unusable, and on what happened to them."""
        constant = self.roles.missing_constant
        rows_text = format_count(num_missing, "row without a number", "rows without a number")
        column_text = f"in column {shorten(self.roles.value or '')} {'was' if num_missing == 1 else 'were'}"
        rule_text = "left out" if constant is None else f"counted as {format_number(constant)}"
        self.notes.append(f"{rows_text} {column_text} {rule_text}{first_text}.")

    def _refuse(
        self, cell_kind: str, message: str, num_cells: int, column_text: str, remedy: str, problems: Problems
    ) -> None:
        """Add a problem with the first cells' locations, if known, and contents, and the number of all."""
        total_text = f"; {format_count(num_cells, 'user' if cell_kind == 'nul' else 'row')} in all"
        if not (row_places := self.find_places(cell_kind, MAX_PLACES)):
            problems.add(message + total_text, column_text, remedy)
            return
        (_, first_detail), *other_places = row_places
        other_texts = [f"{location} ({detail})" if detail else location for location, detail in other_places]
        message_text = f"{message} ({first_detail})" if first_detail else message
        message_text += f"; also {' and '.join(other_texts)}" if other_texts else ""
        message_text += total_text if num_cells > MAX_PLACES else ""
        problems.add(message_text, f"{row_places[0][0]}, {column_text}", remedy)

    def _raise_for_user_cells(self, cell_kind: str, message: str, num_cells: int, remedy_text: str) -> None:
        """Raise InvalidInput for odd cells in the user columns, with their first locations."""
        with Problems() as problems:
            self._refuse(cell_kind, message, num_cells, self._user_columns_text, remedy_text, problems)

    def _note_unnamed(self, num_rows: int) -> None:
        """Add a note on this number of rows without a user, unless it is 0."""
        if num_rows:
            counts_unnamed = self.roles.missing_users is MissingUsers.ONE_USER
            rows_text = format_count(num_rows, "row without a user was", "rows without a user were")
            action_text = "counted as one user" if counts_unnamed else "left out"
            self.notes.append(f"{rows_text} {action_text}{self._describe_first('nobody', num_rows)}.")

    def _describe_first(self, cell_kind: str, num_cells: int) -> str:
        """Return the location of the first cell of a kind, as the end of a note; empty if it is unknown."""
        return describe_first(self.find_places(cell_kind, 1), num_cells)

    @property
    def _user_columns_text(self) -> str:
        """Return the user columns, for messages."""
        return "column " + " and ".join(map(shorten, self.roles.privacy_unit))

    def _build_unnamed_error(self) -> InvalidInput:
        """Return the error that no row names a user."""
        remedy = "Choose another column, or count them as one user"
        return refuse("no row names a user", self._user_columns_text, remedy)

    def _count_histogram(self) -> ContributionHistogram:
        """Count users by size, add notes on them, and return the histogram; raise InvalidInput if it is none."""
        # Rows that name no user are one group here, so that the same pass over the table counts them.
        histogram_columns = convert_to_floats(self.histogram_columns or self.count_users())
        if "nul" in histogram_columns and (num_nul_users := int(histogram_columns["nul"].sum())):
            message = "there is a NUL byte, which no text has"
            self._raise_for_user_cells("nul", message, num_nul_users, "Export it again")
        self._note_spelling(histogram_columns)
        sizes, user_counts = histogram_columns["size"], histogram_columns["users"]
        unnamed_mask = histogram_columns["nobody"].astype(bool)
        if self.roles.contribution is dataset.Contribution.ROWS and unnamed_mask.any():
            self._note_unnamed(int(sizes[unnamed_mask].sum()))
        counts_unnamed = self.roles.missing_users is MissingUsers.ONE_USER
        if not counts_unnamed:
            if unnamed_mask.all() and unnamed_mask.size:
                raise self._build_unnamed_error()
            sizes, user_counts = sizes[~unnamed_mask], user_counts[~unnamed_mask]
        if self.is_count_table:
            # Rows that name no user form one user, who may have several rows, or are left out.
            num_further_unnamed = max(self._num_unnamed_rows - 1, 0) * counts_unnamed
            num_extra_rows = self._num_counted_rows - num_further_unnamed - int(user_counts.sum())
            if num_extra_rows:
                message = "the user has a row already"
                self._raise_for_user_cells("again", message, num_extra_rows, _SEVERAL_ROWS_REMEDY)
        if not sizes.size:
            raise refuse("there are no rows", remedy="Choose a table or a file with rows")
        if (num_distinct_sizes := np.unique(sizes).size) > MAX_SIZES:
            message = f"users have {num_distinct_sizes:,} distinct numbers of contributions; at most {MAX_SIZES:,} fit"
            raise refuse(message, remedy="Count rows, or write the column in a larger unit")
        if self.roles.contribution is dataset.Contribution.TOTAL:
            self._check_totals(sizes, int(user_counts[sizes == 0].sum()))
            if not self.is_count_table and histogram_columns["broken"][~unnamed_mask | counts_unnamed].any():
                self.notes.append("Totals that are not whole count as the next whole number.")
            sizes, user_counts = sizes[sizes > 0], user_counts[sizes > 0]
        if user_counts.sum() > MAX_USERS:
            raise refuse(f"there are more than {MAX_USERS:,} users", remedy="Take a sample of users")
        return ContributionHistogram.from_table(sizes, user_counts)

    def _check_totals(self, user_totals: FloatArray, num_zero_users: int) -> None:
        """Raise InvalidInput for totals that are no sizes, or add a note on users with a total of 0."""
        column_location = f"column {shorten(self.roles.value or '')}"
        if not user_totals.max() > 0:
            raise refuse("all totals are 0", column_location, "Choose another column, or count rows")
        if not user_totals.max() <= MAX_SIZE:
            raise refuse(f"the total of one user is above {MAX_SIZE:,}", column_location, "Use a larger unit")
        if num_zero_users:
            noun_forms = "user with a total of 0 is", "users with a total of 0 are"
            users_text = format_count(num_zero_users, *noun_forms)
            first_text = self._describe_first("zero", num_zero_users) if self.is_count_table else ""
            self.notes.append(f"{users_text} not in the histogram{first_text}.")

    def _note_spelling(self, histogram_columns: Mapping[str, FloatArray]) -> None:
        """Add notes on users whose spelling suggests that two of them are the same."""
        if self.duck is None:
            return
        user_columns, text_columns = query.list_user_columns(self.rows), query.list_text_columns(self.rows)
        if not self.is_count_table:
            note_placeholders(int(histogram_columns.get("placeholders", _NO_NUMBERS).sum()), self.notes)
            any_with_point = histogram_columns.get("with_point", _NO_NUMBERS).any()
            count_sql = count_without_point_sql(self.rows.sql, user_columns[0])
            if any_with_point and self.duck.fetch_rows(count_sql)[0][0]:
                self.notes.append(f"Some users are written like 7.0 and others like 7: {_TWO_WAYS_TEXT}")
        if histogram_columns.get("beyond_ascii", _NO_NUMBERS).any():
            num_twins, rows_sql = 0, self.rows.sql
            for part_index in range(self.num_passes):
                condition_sql = write_part_condition("{}", part_index, self.num_passes)
                twins_sql = count_twins_sql(rows_sql, user_columns, text_columns, condition_sql)
                num_twins += self.duck.fetch_rows(twins_sql)[0][0]
            if num_twins:
                noun_forms = "user looks like another one", "users look like others"
                users_text = format_count(num_twins, *noun_forms)
                self.notes.append(f"{users_text} but for spaces or Unicode forms: {_TWO_WAYS_TEXT}")

    def _find_lowest_code(self) -> int:
        """Return the lowest user code that counts: 0, of unnamed users, or 1 if they are left out."""
        return 0 if self.roles.missing_users is MissingUsers.ONE_USER else 1

    def _fetch_values(
        self, rows: Table, histogram: ContributionHistogram, duck: Duck
    ) -> dataset.Values | None:
        """Return the values of all rows, sorted by user; None, with a note, if they do not fit in memory."""
        has_too_many = histogram.num_rows > dataset.MAX_VALUES
        if has_too_many or self.num_passes > 1:
            max_values = dataset.MAX_VALUES if has_too_many else None
            self._note_dropped(f"The values of {histogram.num_rows:,} rows", max_values)
            return None
        duck.reserve(_VALUE_BYTES * histogram.num_rows)
        task_codes_table = self._store_codes(duck, rows, "tasks") if self.roles.task is not None else None
        user_codes_table = self._store_codes(duck, rows, "users")
        # The arrays are sorted one after another, as each of them is large.
        coded_rows = query.code_values(rows, user_codes_table, task_codes_table, self.order_column)
        coded_columns = dict(self.run_query(coded_rows))
        user_codes, values = coded_columns.pop("user"), coded_columns.pop("value")
        # Rows of a pair of user and task are adjacent, so that its values can be clamped later.
        sort_keys = [coded_columns.pop(key) for key in ("order", "task") if key in coded_columns]
        row_order = np.lexsort([*sort_keys, user_codes])
        values = read_only(values[row_order])
        user_codes = user_codes[row_order].astype(np.int64)
        del row_order
        user_codes -= self._find_lowest_code()
        return dataset.Values(read_only(user_codes), values, self.roles.value or "")

    def _note_dropped(self, subject_text: str, limit: int | None = None) -> None:
        """Add a note that something was not kept, because of this limit or (None) of the memory limit."""
        end_text = ": for them the memory limit is too small" if limit is None else f"; at most {limit:,} fit"
        self.notes.append(f"{subject_text} were not kept{end_text}.")

    def _store_codes(self, duck: Duck, rows: Table, name: str) -> Table:
        """Store the codes of ``users`` or ``tasks`` in a table, once for all facets, and return it."""
        if name not in self._code_tables:
            code_columns = query.list_user_columns(rows) if name == "users" else query.list_task_columns(rows)
            codes_table = query.number_cells(rows, code_columns, self.order_column)
            self._code_tables[name] = duck.store_table(name, codes_table)
        return self._code_tables[name]

    def _fetch_totals(
        self, rows: Table, histogram: ContributionHistogram, has_negative_values: bool
    ) -> dataset.Totals:
        """Return the sum of the values of each user, exact or in bins; else the rows of each user.

        The rows stand in for the sum if there is no value column, rows are counts, values are fetched as they are, or
        a value is negative.
        """
        value_column = self.roles.value
        is_not_summed = self.is_count_table or self.fetch_values is not None or has_negative_values
        if value_column is None or is_not_summed:
            return dataset.Totals.of_contributions(histogram)
        # Users with a total of 0 are not in the histogram, but they are few if it is large.
        if self.duck is not None and histogram.num_users <= dataset.MAX_TOTALS:
            totals = self._run_in_parts(lambda part: query.sum_per_user(part).select("total"), rows)["total"]
            if totals.size <= dataset.MAX_TOTALS:
                return dataset.Totals(totals, value_column)
        bin_columns = self._run_in_parts(query.bin_totals, rows)
        width_text = format_percent(10 ** (1 / query.BINS_PER_DECADE) - 1, 2)
        self.notes.append(f"Totals per user are kept in bins in which they differ by at most {width_text}.")
        return dataset.Totals(bin_columns["mean"], value_column, bin_columns["users"].astype(np.int64))

    def _add_task_facets(self, rows: Table, facets: Facets) -> None:
        """Add the facets of tasks: pairs, or else the distribution of pairs and users per task; note the rest."""
        size_columns = self._run_in_parts(query.count_task_sizes, rows, query.list_task_columns(rows))
        task_sizes = size_columns["users"].astype(np.int64)
        task_counts = size_columns["tasks"].astype(np.int64)
        if not task_sizes.size:
            return
        num_pairs, num_tasks = int((task_sizes * task_counts).sum()), int(task_counts.sum())
        num_repeats = self._num_counted_rows - self._num_rows_without_task - num_pairs
        if self.roles.contribution is dataset.Contribution.DISTINCT_TASKS and num_repeats:
            repeat_text = format_count(num_repeats, "row repeats", "rows repeat")
            self.notes.append(f"{repeat_text} a user and task that stood before; each pair counts once.")
        if self.duck is None:
            if num_pairs <= min(self.max_fetched_pairs, MAX_FETCHED_PAIRS):
                coded_columns = dict(self.run_query(query.rank_pairs(rows)))
                facets.pairs = self._build_pairs(rows, coded_columns, num_tasks)
                return
            advice_text = f"--pairs-to and --max-pairs {num_pairs} return them as codes, for exact bounds"
            if num_pairs > MAX_FETCHED_PAIRS:
                advice_text = f"an engine returns at most {MAX_FETCHED_PAIRS:,}"
                advice_text += "; --distribution-to writes their distribution"
            self.notes.append(f"There are {num_pairs:,} pairs of user and group: {advice_text}.")
        elif self.num_passes > 1 or num_pairs > dataset.MAX_PAIRS:
            max_pairs = dataset.MAX_PAIRS if self.num_passes == 1 else None
            self._note_dropped(f"The {num_pairs:,} pairs of user and task", max_pairs)
        else:
            num_values = 0 if facets.values is None else facets.values.values.size
            self.duck.reserve(_VALUE_BYTES * num_values + _PAIR_BYTES * num_pairs)
            tasks_table = self._store_codes(self.duck, rows, "tasks")
            coded_pairs = query.code_pairs(rows, self._store_codes(self.duck, rows, "users"), tasks_table)
            facets.pairs = self._build_pairs(rows, dict(self.run_query(coded_pairs)), num_tasks)
            if num_tasks <= dataset.MAX_TASK_NAMES:
                facets.task_names = list_task_names(self.duck, tasks_table)
            return
        if num_tasks > MAX_TASKS:
            self._note_dropped(f"Users per task of {num_tasks:,} tasks", MAX_TASKS)
            return
        facets.pair_sizes = self._fetch_pair_sizes(rows)
        users_per_task = np.repeat(task_sizes, task_counts)
        facets.tasks = task_facets.TaskSizes(users_per_task, self.roles.task or "", self.roles.further_task)

    def _fetch_pair_sizes(self, rows: Table) -> task_facets.PairSizes | None:
        """Return the distribution of pairs and the totals per group; None, with a note, if there are too many sizes."""
        size_columns = self._run_in_parts(query.count_pair_sizes, rows)
        total_columns = self._run_in_parts(query.count_group_totals, rows, query.list_task_columns(rows))
        if size_columns["pairs"].size > MAX_SIZES:
            self.notes.append(f"Sizes of pairs were not kept; at most {MAX_SIZES:,} distinct ones fit.")
            return None
        group_counts = total_columns["groups"].astype(np.int64)
        return task_facets.PairSizes(
            size_columns["groups"], size_columns["rows"], size_columns["pairs"],
            np.repeat(total_columns["rows"], group_counts), np.repeat(total_columns["users"], group_counts),
            self.roles.task or "", self.roles.further_task,
        )  # fmt: skip

    def _build_pairs(
        self, rows: Table, coded_columns: dict[str, npt.NDArray[Any]], num_tasks: int
    ) -> task_facets.Pairs:
        """Build the pairs from ``coded_columns``, which is emptied on the way, as its arrays are large."""
        pair_order = np.lexsort((coded_columns["task"], coded_columns["user"]))
        for column_name in list(coded_columns):
            coded_columns[column_name] = read_only(coded_columns[column_name][pair_order])
        del pair_order
        # Codes of `query.rank_pairs` begin at 1 for every treatment of rows that name no user.
        user_codes = coded_columns.pop("user").astype(np.int64)
        user_codes -= 1 if self.duck is None else self._find_lowest_code()
        task_codes = coded_columns.pop("task").astype(np.int64)
        task_codes -= 1
        amount_options: dict[str, Any] = {}
        if self.roles.value is not None:
            range_columns = self.run_query(query.compute_value_range(rows))
            value_range = float(range_columns["least"][0]), float(range_columns["largest"][0])
            if value_range[0] <= value_range[1]:  # Both are NaN if no row names a task.
                amount_options = {
                    "sums": coded_columns["sums"], "sums_of_squares": coded_columns["squares"],
                    "value_column": self.roles.value, "value_range": value_range,
                }  # fmt: skip
        return task_facets.Pairs(
            read_only(user_codes), read_only(task_codes), num_tasks, self.roles.task or "", rows=coded_columns["rows"],
            rows_without_group=self._num_rows_without_task, further_columns=self.roles.further_task, **amount_options,
        )  # fmt: skip
