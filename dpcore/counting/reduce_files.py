"""Counting files through DuckDB: first with the guessed options, then with corrected ones, in parts if needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dpcore.common import wording
from dpcore.common.checks import FULL_DISK, InvalidInput, Problems, refuse
from dpcore.common.progress import ShouldStop
from dpcore.common.workspace import Workspace
from dpcore.contributions import ContributionHistogram
from dpcore.counting import diagnose, query, reading
from dpcore.counting.cells import clean_sql, comparable_sql, keep_text, number_column, strip_padded
from dpcore.counting.duck import Duck, in_part, literal, release_memory, sql_of
from dpcore.counting.formats import Format
from dpcore.counting.reading import InputFile, Reading, safe_path
from dpcore.counting.reduce import MAX_SIZES, Reduction
from dpcore.counting.reduced import NO_COPIES, Reduced, RowPlaces, describe_first, note_copies
from dpcore.counting.running import Steps, StoppedError
from dpcore.data.column_names import and_more, shorten
from dpcore.data.column_roles import MissingUsers, Roles, TableKind
from dpcore.data.delimited_text import BLANKS
from dpcore.data.tables import Marks, settle_marks
from dpcore.dataset import Contribution

if TYPE_CHECKING:
    from ibis.expr.types import Table, Value

PASSES = (1, 7, 61)
"""Numbers of parts in which users are counted, one after another, if fewer parts exceed the memory limit."""

SIZE_REMEDY = "It must be a whole number; if it is not one, choose another column"
HELD_CELLS = 1_000_000
"""Largest number of cells for the shared DuckDB in memory, which keeps the memory it took, 100 bytes a cell."""
TABLE_LIMIT = 400_000_000
"""Bytes that DuckDB may use in addition to a table in memory."""
_ROOM = 1_000_000
"""Free bytes below which a disk counts as full."""


class Files:
    """The reduction of files, or of a table in memory, to a `Reduced`.

    Args:
        parts: The files, with the same columns in any order.
        roles: Roles of the columns of events or of a histogram.
        memory_limit: Bytes that DuckDB may use.
        should_stop: Called often.
        steps: Receives the progress.
        notes: List to which notes for the user are added.
        counts: True if the value is the number of contributions of a user, who has no other row.
        copies: True to look for rows that are exact copies of others.

    Attributes:
        decimals: Columns of numbers, with their decimal mark if it had to be determined.
        encodings: Encodings that differ from the guess by the beginning of a file, by the index of the file.
    """

    def __init__(
        self,
        input_files: tuple[InputFile, ...],
        roles: Roles,
        memory_limit: int,
        should_stop: ShouldStop | None,
        steps: Steps,
        notes: list[str],
        *,
        counts: bool = False,
        copies: bool = False,
    ) -> None:
        self.columns = input_files[0].columns
        self.roles, self.notes, self._steps, self._stop = roles, notes, steps, should_stop
        self._counts, self._copies = counts or roles.kind is TableKind.HISTOGRAM, copies
        self._memory_limit, self._threads, self._passes = memory_limit, 0, 1
        self._queries = steps.total
        table_sizes = [
            input_file.table.frame.size for input_file in input_files if input_file.table is not None
        ]
        self._in_memory = len(table_sizes) == len(input_files)
        small = self._in_memory and sum(table_sizes) <= HELD_CELLS
        self._workspace = None if small else Workspace()
        if self._in_memory:
            self._threads = 1  # Sums of a table are then the same each time.
            self._memory_limit = min(memory_limit, TABLE_LIMIT)  # The table itself takes as much.
        self._numbers: dict[str, str] = {}
        self.decimals: dict[str, str] = {}
        self.encodings: dict[int, str] = {}
        self._kinds: Mapping[str, Any] = {}
        self._has_blanks = True
        self._opened: Duck | None = None
        # 32 MB where 1 GB may be used, which is the fastest.
        buffer = min(max(memory_limit // 31 // 16 * 16, reading.SMALL_BUFFER), reading.LARGE_BUFFER)
        texts = reading.find_mixed_columns(input_files)
        self._readings = [Reading(p, buffer=buffer, texts=texts) for p in input_files]
        if self._workspace is not None:
            for index, its in enumerate(self._readings):
                if its.file.table is None:
                    path = safe_path(its.file.path, self._workspace)
                    self._readings[index] = replace(its, file=replace(its.file, path=path))

    def reduce(self) -> Reduced:
        """Count; a file that turns out not to be UTF-8, or to have short rows, is read again with other options.

        Raises:
            InvalidInput: The files cannot be counted; all problems at once.
            StoppedError: Stop was pressed.
        """
        with closing(self._workspace) if self._workspace is not None else nullcontext():
            for index, its in enumerate(self._readings):
                foreign = not its.file.encoding.startswith("utf-8") and its.file.format is Format.TEXT
                if its.file.split and not foreign:
                    self._readings[index] = self._recode(index, its.file.encoding)
                if foreign:
                    if not its.file.encoding.startswith("utf"):
                        self.notes.append(diagnose.describe_windows_1252(its.file))
                    self._readings[index] = self._recode(index, its.file.encoding)
            with closing(diagnose.TruncationCheck(self._input_files, self._stop)) as truncation:
                self._stop = truncation.should_stop
                try:
                    reduced = self._mend_and_reduce()
                except (InvalidInput, StoppedError):
                    truncation.verdict()  # A truncated file is the likely cause of other problems.
                    raise
                finally:
                    if self._workspace is not None:
                        release_memory()
                truncation.verdict()
                return reduced

    def _mend_and_reduce(self) -> Reduced:
        import duckdb

        attempts = 0
        while attempts < 3 + len(self._readings):
            num_notes = len(self.notes)
            try:
                return self._reduce()
            except duckdb.OutOfMemoryException as error:
                del self.notes[num_notes:]
                self._reduce_memory(error)
            except duckdb.NotImplementedException:
                # Its threads disagreed on the file: https://github.com/duckdb/duckdb/issues/24237.
                del self.notes[num_notes:]
                self._readings = [replace(its, is_single_threaded=True) for its in self._readings]
                attempts += 1
            except duckdb.Error as error:
                del self.notes[num_notes:]
                if self._is_disk_full(error):
                    raise InvalidInput([FULL_DISK]) from None
                diagnosis = diagnose.Diagnosis(
                    self._readings, self._duck, self._recode, self.notes, self._stop
                )
                self._readings = diagnosis.recover()
                attempts += 1
        raise InvalidInput([diagnose.describe_damage(self._readings[0].file)])

    @property
    def _input_files(self) -> list[InputFile]:
        return [its.file for its in self._readings]

    def _recode(self, index: int, encoding: str) -> Reading:
        assert self._workspace is not None
        target = self._workspace.folder / f"utf8-{index}"
        self.encodings[index] = encoding
        return reading.recode_file(self._readings[index], encoding, target, self._stop, self._steps)

    @contextmanager
    def _duck(self) -> Iterator[Duck]:
        """Open DuckDB, or another connection to it if it is open already."""
        outer = self._opened
        files = [input_file.path for input_file in self._input_files if input_file.table is None]
        folder = None if self._workspace is None else self._workspace.folder
        fresh = outer or Duck(files, folder, self._memory_limit, self._stop, self._steps)
        with closing(fresh if outer is None else fresh.connect()) as duck:
            if self._threads:
                duck.connection.execute(f"SET threads = {self._threads}")
            for input_file in self._input_files:
                if input_file.table is not None:
                    duck.connection.register(str(input_file.path), reading.to_arrow_table(input_file))
            self._opened = duck
            try:
                yield duck
            finally:
                self._opened = outer

    def _is_disk_full(self, error: Exception) -> bool:
        """Return True if DuckDB failed because the disk is full, by its message or by the free space."""
        text = str(error)
        words = ("max_temp_directory_size", "No space left", "not enough space")
        return any(word in text for word in words) or not (
            self._workspace is None or self._workspace.has_room(_ROOM)
        )

    def _reduce_memory(self, error: Exception) -> None:
        """Reduce the memory of the next attempt: first one thread and small buffers, then fewer users at a time."""
        self._steps.total = self._steps.done + self._queries
        if not self._threads:
            self._threads = 1
            self._readings = [replace(its, buffer=reading.SMALL_BUFFER) for its in self._readings]
            return
        further = [passes for passes in PASSES if passes > self._passes]
        if not further:
            if self._is_disk_full(error):
                raise InvalidInput([FULL_DISK])
            message = f"counting needs more than the memory limit of {self._memory_limit:,} bytes"
            raise refuse(message, remedy="Raise the limit")
        self._passes = further[0]

    # --- counting -----------------------------------------------------------------------------------------

    def _reduce(self) -> Reduced:
        for index, its in enumerate(self._readings):
            if its.file.format is Format.JSON and its.file.encoding != "utf-8":  # a mark that DuckDB refuses
                self._readings[index] = self._recode(index, its.file.encoding)
        single_threaded = [
            its.file for its in self._readings if its.is_single_threaded and its.file.format is Format.TEXT
        ]
        diagnose.refuse_open_quotes(single_threaded, self._stop)
        with self._duck() as duck:
            self._open_source(duck)
            roles = reading.rename_roles(self.roles, self.columns)
            if self.roles.kind is TableKind.HISTOGRAM:
                return self._sizes(duck, roles)
            reduced = self._reduce_events(duck, duck.table("source"), roles)
            if len(self.columns) > 2 and not self._counts:
                self._note_copies(duck, roles)
        # Reading all of a file once more takes 4 % of the time; it is not needed if no id contains a blank between
        # marks.
        diagnose.refuse_reopened_marks(self._input_files, self._stop, self._has_blanks)
        return reduced

    def _open_source(self, duck: Duck) -> None:
        """Create the view ``source``: all rows as text, and the number columns as numbers."""
        self._numbers = {}
        view = "CREATE OR REPLACE TEMP VIEW source AS"
        duck.connection.execute(f"{view} {self._view(self._readings, self._in_memory)}")
        self._kinds = kinds = duck.table("source").schema()
        histogram = self.roles.kind is TableKind.HISTOGRAM
        number_columns = [self.roles.size, self.roles.users] if histogram else [self.roles.value]
        problems = Problems()
        for name in filter(None, number_columns):
            column = f"c{self.columns.index(name)}"
            if kinds[column].is_string():
                marks = self._marks(duck, column, name)
                self._numbers[column], self.decimals[name] = marks.sql, marks.decimal
                self.notes += [marks.note] if marks.note else []
                problems.extend([marks.problem] if marks.problem is not None else [])
            elif kinds[column].is_numeric():
                self._numbers[column], self.decimals[name] = column, ""
            else:
                message = "the column does not hold numbers"
                problems.add(message, f"column {shorten(name)}", "Choose another column")
        problems.raise_if_any()
        duck.connection.execute(f"{view} {self._view(self._readings, self._in_memory)}")

    def _view(self, readings: Sequence[Reading], numbered: bool) -> str:
        union = reading.union(readings, self.columns, self.roles.missing_users, numbered)
        numbers = "".join(f", {sql} AS {number_column(column)}" for column, sql in self._numbers.items())
        return f"SELECT *{numbers} FROM ({union})" if numbers else union

    def _marks(self, duck: Duck, column: str, name: str) -> Marks:
        def ask(masks: Mapping[str, str]) -> dict[str, bool]:
            self._steps.total += 1
            anywhere = ", ".join(f"bool_or({mask})" for mask in masks.values())
            return dict(zip(masks, map(bool, duck.rows(f"SELECT {anywhere} FROM source")[0]), strict=True))

        def find_place(mask: str) -> str:
            return self._find_marked(mask, 1)[0][0]

        delimiters = {input_file.delimiter for input_file in self._input_files}
        delimiter = delimiters.pop() if len(delimiters) == 1 else ""
        return settle_marks(
            f"trim({column}, {literal(BLANKS)})", ask, find_place, name, delimiter, self._counts
        )

    def _note_copies(self, duck: Duck, roles: Roles) -> None:
        if not (self._in_memory or self._copies):
            self.notes.append(NO_COPIES)
            return
        columns = [f"c{part_number}" for part_number in range(len(self.columns))]
        cells = ", ".join(f"{comparable_sql(column, self._kinds[column])} AS {column}" for column in columns)
        rows = f"SELECT {cells} FROM source WHERE {self._counts_sql(columns, roles)}"
        number = 0
        self._steps.total += self._passes
        for pass_index in range(self._passes):
            condition = in_part(", ".join(roles.privacy_unit), pass_index, self._passes)
            groups = f"SELECT count(*) AS n FROM ({rows}) WHERE {condition} GROUP BY {', '.join(columns)}"
            number += duck.rows(f"SELECT coalesce(sum(n - 1), 0)::BIGINT FROM ({groups})")[0][0]
        row_places = self._find_repeats(columns, roles, 1) if number and self._in_memory else []
        note_copies(number, self.notes, row_places)

    def _find_repeats(self, columns: Sequence[str], roles: Roles, max_rows: int) -> RowPlaces:
        """Find the first rows that repeat the cells of an earlier row, with the location of that row."""
        return self._row_locator().find(lambda _: self._repeats_sql(columns, roles), max_rows)

    def _counts_sql(self, columns: Sequence[str], roles: Roles) -> str:
        """Return the SQL condition that a row counts, if rows are compared by these columns."""
        who = [f"{comparable_sql(column, self._kinds[column])} IS NOT NULL" for column in roles.privacy_unit]
        as_one = roles.missing_users is MissingUsers.ONE_USER and len(columns) > len(who)
        return "true" if as_one or not who else " AND ".join(who)

    def _repeats_sql(self, columns: Sequence[str], roles: Roles) -> str:
        """Return the SQL of the counted rows, each with the first row that has the same cells (``detail``)."""
        cells = ", ".join(comparable_sql(column, self._kinds[column]) for column in columns)
        first = f"min({reading.ROW}) OVER (PARTITION BY {cells})"
        rows = f"SELECT {reading.ROW}, {first} AS detail FROM source WHERE {self._counts_sql(columns, roles)}"
        return f"SELECT *, detail < {reading.ROW} AS bad FROM ({rows})"

    def _reduce_events(self, duck: Duck, table: Table, roles: Roles) -> Reduced:
        who_alone = self.roles.value is None and self.roles.task is None
        if who_alone and self._passes == 1 and (reduced := self._reduce_in_one_pass(duck, table, roles)):
            return reduced
        value = self._value_column(table, roles.value)
        rows = self._events(table, roles, value)
        # The few columns are stored if reading them again would cost more.
        read_again = not who_alone or self._passes > 1
        if read_again and any(input_file.format is not Format.PARQUET for input_file in self._input_files):
            rows = duck.keep("rows", rows)
        header_condition = self._header_condition(rows)
        if header_condition and duck.rows(f"SELECT bool_or({header_condition}) FROM ({sql_of(rows)})")[0][0]:
            self._refuse_second_headers(duck)
        return self._reduction(duck, rows, roles, value).reduce()

    def _reduce_in_one_pass(self, duck: Duck, table: Table, roles: Roles) -> Reduced | None:
        """Count users in one pass if there is only a user column; return None if some cells need cleaning.

        Cells are grouped unchanged and checked afterwards, once per user: stripping 10 million cells before grouping
        would take a third of the time. Ids of digits stay text, as 7, 07 and 7.0 are three users. Grouping 10 million
        of them takes 14 % longer than grouping numbers; a cast with a proof that no two texts are one number takes
        about 30 %.
        """
        rows = self._events(table, roles, None, keep_text)
        if not (texts := query.text_columns(rows)):
            return None
        reduction = self._reduction(duck, rows, roles, None)
        strange = [*filter(None, [self._header_condition(rows)]), *map(reading.is_padded_sql, texts)]
        blanks = [f"contains({text}, ' ')" for text in texts]
        counts = reduction.count_users(odd=" OR ".join(strange), blanks=" OR ".join(blanks))
        odd, spaced = (bool(np.nansum(np.asarray(counts[name], np.float64))) for name in ("odd", "blanks"))
        if odd:
            self._steps.total += 1
            return None
        reduction.histogram, self._has_blanks = counts, spaced
        return reduction.reduce()

    def _header_condition(self, rows: Table) -> str:
        """Return the SQL condition that a user has the name of the column, as in files joined with their headers."""
        may_be_joined = any(
            input_file.format is Format.TEXT and len(input_file.columns) > 1
            for input_file in self._input_files
        )
        if not (may_be_joined and query.text_columns(rows)):
            return ""
        who, name = f"{query.WHO}0", self.roles.user or ""
        # Cleaning every cell would take longer than counting, so the last word of the name is searched first.
        return f"(contains({who}, {literal(name.split()[-1])}) AND {clean_sql(who)} = {literal(name)})"

    def _refuse_second_headers(self, duck: Duck) -> None:
        """Raise InvalidInput if files were joined with their headers, which would count as a further user."""
        self._steps.total += 1
        cells = [clean_sql(f"c{index}") for index in range(len(self.columns))]
        condition = " AND ".join(
            f"{c} = {literal(name)}" for c, name in zip(cells, self.columns, strict=True)
        )
        if number := duck.rows(f"SELECT count(*) FROM source WHERE {condition}")[0][0]:
            message = f"the header row stands among the data again{and_more(number - 1)}"
            location = self._find_marked(condition, 1)[0][0]
            raise refuse(message, location, "Remove it (were several files joined?)")

    def _events(
        self, table: Table, roles: Roles, value: Value | None, strip: Callable[[Any], Any] | None = None
    ) -> Table:
        also = (reading.ROW,) if self._in_memory else ()
        return query.events(
            table, roles, value, has_nan=True, strip=strip or strip_padded, further_columns=also
        )

    def _value_column(self, table: Table, column: str | None) -> Value | None:
        """Return the numeric column of the view for a column."""
        if column is None:
            return None
        number = table[number_column(column)]
        return query.finite_or_beyond(number, has_nan=True) if self._numbers[column] == column else number

    def _row_locator(self) -> diagnose.RowLocator:
        return diagnose.RowLocator(
            lambda file_reading: self._view([file_reading], True), self._readings, self._duck, self._stop
        )

    def _reduction(
        self, duck: Duck, rows: Table, roles: Roles, value: Value | None,
        message_roles: Roles | None = None,
    ) -> Reduction:  # fmt: skip
        import ibis

        in_parts = 1 + (self.roles.value is not None) + (self.roles.task is not None)
        self._steps.total += in_parts * (self._passes - 1)

        def find_places(cell_kind: str, max_rows: int) -> RowPlaces:
            self._steps.total += 1
            if cell_kind == "again":
                return self._find_repeats(roles.privacy_unit, roles, max_rows)
            if cell_kind == "nul":
                condition = " OR ".join(
                    f"contains({column}::VARCHAR, chr(0))" for column in roles.privacy_unit
                )
                return self._find_marked(condition, max_rows)

            def ask(duck_connection: Duck) -> str:
                table = duck_connection.table("source")
                number = None if value is None else self._value_column(table, roles.value)
                cell = table[roles.value].cast("string") if roles.value else ibis.literal("")
                table_with_cells = table.mutate(cell=cell)
                events = query.events(
                    table_with_cells,
                    roles,
                    number,
                    has_nan=True,
                    strip=strip_padded,
                    further_columns=(reading.ROW, "cell"),
                )
                # These cells are from a short list of words or numbers like 1e999, so they may be shown.
                quoted = {"not_finite": "cell", "negative": "value", "broken": "value", "large": "value"}
                shown_column = quoted.get(cell_kind)
                selected = events.select(
                    reading.ROW, bad=query.odd_cells(events, roles.missing_users, self._counts)[cell_kind],
                    detail=events[shown_column] if shown_column else ibis.literal(""),
                )  # fmt: skip
                return sql_of(selected)

            return self._row_locator().find(ask, max_rows)

        return Reduction(
            rows, message_roles or self.roles, self.columns, duck.run, duck, find_places,
            notes=self.notes, counts=self._counts, passes=self._passes,
            order=reading.ROW if self._in_memory else "",
        )  # fmt: skip

    # --- a histogram, which is counted already ------------------------------------------------------------

    def _sizes(self, duck: Duck, roles: Roles) -> Reduced:
        size, users = number_column(roles.size or ""), number_column(roles.users or "")
        # Stored, as every other query would read the numbers again, which takes most of the time.
        order = [reading.ROW] if self._in_memory else []
        table = duck.keep("sizes", duck.table("source").select(size, users, *order))
        problems = Problems()
        for role in ("size", "users"):
            its = Roles(TableKind.EVENTS, value=getattr(roles, role), contribution=Contribution.TOTAL)
            value = self._value_column(table, its.value)
            message_roles = replace(its, value=getattr(self.roles, role))
            reduction = self._reduction(
                duck, self._events(table, its, value), its, value, message_roles=message_roles
            )
            reduction.remedy = SIZE_REMEDY
            reduction.refuse_cells(problems)
        problems.raise_if_any()
        columns = duck.columns(
            f"SELECT {size} AS size, sum({users}) AS users, count(*) AS rows FROM sizes "
            f"WHERE {size} > 0 AND {users} > 0 GROUP BY 1 ORDER BY 1 LIMIT {MAX_SIZES + 1}"
        )
        if columns["size"].size > MAX_SIZES:
            location = f"column {shorten(self.roles.size or '')}"
            message = f"there are more than {MAX_SIZES:,} distinct sizes"
            raise refuse(message, location, "Choose another column, or write sizes in a larger unit")
        masks = {
            f"{size} = 0": ("row of size 0 was", "rows of size 0 were"),
            f"{size} > 0 AND {users} = 0": ("size that nobody has was", "sizes that nobody has were"),
        }
        for mask, words in masks.items():
            if count := duck.rows(f"SELECT count(*) FROM sizes WHERE {mask}")[0][0]:
                self.notes.append(
                    f"{wording.counted(count, *words)} left out{self._describe_first(mask, count)}."
                )
        if not columns["size"].size:
            location = f"columns {shorten(self.roles.size or '')} and {shorten(self.roles.users or '')}"
            raise refuse("no row has a size above 0 that anybody has", location, "Choose other columns")
        if num_repeats := int(columns["rows"].sum()) - columns["rows"].size:
            repeat = wording.counted(num_repeats, "row repeats", "rows repeat")
            fits = f"{size} > 0 AND {users} > 0"
            earlier = f"min({reading.ROW}) FILTER ({fits}) OVER (PARTITION BY {size})"
            first = self._describe_first(f"{fits} AND {reading.ROW} > {earlier}", 2)
            self.notes.append(f"{repeat} a size that stood before{first}; their users were added up.")
        histogram = ContributionHistogram.from_table(columns["size"], columns["users"].astype(np.float64))
        return Reduced(histogram, sizes_repeat=bool(num_repeats))

    def _describe_first(self, mask: str, count: int) -> str:
        return describe_first(self._find_marked(mask, 1), count)

    def _find_marked(self, mask: str, max_rows: int) -> RowPlaces:
        """Return the locations of the first rows for which a mask is true."""
        return self._row_locator().find(
            lambda _: f"SELECT {reading.ROW}, '' AS detail, {mask} AS bad FROM source", max_rows
        )
