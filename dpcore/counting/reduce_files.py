"""The reduction of files through DuckDB: first with guessed options, then with corrected ones, in parts if needed."""

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
from dpcore.counting import diagnose, query, relation
from dpcore.counting.duck import (
    Duck,
    Steps,
    StoppedError,
    compile_sql,
    quote_literal,
    release_memory,
    write_part_condition,
)
from dpcore.counting.reduce import MAX_SIZES, Facets, Reduction, RowPlaces, describe_first, note_copies
from dpcore.counting.relation import ROW, Relation, clean_sql, comparable_sql, is_padded_sql, strip_padded
from dpcore.data.column_names import HEADER_AGAIN, REMOVE_HEADER, and_more, shorten
from dpcore.data.column_roles import MissingUsers, Roles, TableKind
from dpcore.data.tables import BLANKS, FileKind, Marks, settle_marks
from dpcore.dataset import Contribution

if TYPE_CHECKING:
    from ibis.expr.types import Table, Value

PASSES = (1, 7, 61)
"""Numbers of parts in which users are counted, one after another, if fewer parts exceed the memory limit."""
HELD_CELLS = 1_000_000
"""Largest number of cells for the shared DuckDB in memory, which keeps the memory it took, 100 bytes a cell."""
NO_NUMBERS, ANOTHER = "the column does not hold numbers", "Choose another column"
TABLE_LIMIT = 400_000_000
"""Bytes that DuckDB may use in addition to a table in memory."""
_ROOM = 1_000_000
"""Free bytes below which a disk counts as full."""


class FileReduction:
    """The reduction of files, or of a table in memory, to `Facets`.

    Args:
        relations: The files, with the same columns in any order.
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
        sizes_repeat: True if a histogram states a size twice.
    """

    def __init__(
        self,
        relations: Sequence[Relation],
        roles: Roles,
        memory_limit: int,
        should_stop: ShouldStop | None,
        steps: Steps,
        notes: list[str],
        *,
        counts: bool = False,
        copies: bool = False,
    ) -> None:
        self.columns, self.roles, self.notes = relations[0].columns, roles, notes
        self._steps, self._stop, self._queries = steps, should_stop, steps.num_steps
        self._counts, self._copies = counts or roles.kind is TableKind.HISTOGRAM, copies
        self._memory_limit, self._threads, self._passes = memory_limit, 0, 1
        table_sizes = [each.table.frame.size for each in relations if each.table is not None]
        self._in_memory = len(table_sizes) == len(relations)
        is_small = self._in_memory and sum(table_sizes) <= HELD_CELLS
        self._workspace = None if is_small else Workspace()
        if self._in_memory:
            self._threads = 1  # Sums of a table are then the same each time.
            self._memory_limit = min(memory_limit, TABLE_LIMIT)  # The table itself takes as much.
        self._numbers: dict[str, str] = {}
        self.decimals: dict[str, str] = {}
        self.encodings: dict[int, str] = {}
        self.sizes_repeat = False
        self._types: Mapping[str, Any] = {}
        self._has_blanks = True
        self._opened: Duck | None = None
        # 32 MB where 1 GB may be used, which is the fastest.
        buffer = min(max(memory_limit // 31 // 16 * 16, relation.SMALL_BUFFER), relation.LARGE_BUFFER)
        texts = relation.find_mixed_columns(relations)
        self._relations = [replace(each, buffer=buffer, text_columns=texts) for each in relations]
        if self._workspace is not None:
            for index, each in enumerate(self._relations):
                if each.table is None:
                    path = relation.safe_path(each.path, self._workspace)
                    self._relations[index] = replace(each, path=path)

    def reduce(self) -> Facets:
        """Count; a file that turns out not to be UTF-8, or to have short rows, is read again with other options.

        Raises:
            InvalidInput: The files cannot be counted; all problems at once.
            StoppedError: Stop was pressed.
        """
        with nullcontext() if self._workspace is None else closing(self._workspace):
            try:
                return self._mend_and_reduce() if self._in_memory else self._reduce_checked_files()
            finally:
                if self._workspace is not None:
                    release_memory()

    def _reduce_checked_files(self) -> Facets:
        """Count files, recoded to UTF-8 if needed, while their ends are checked."""
        for index, each in enumerate(self._relations):
            if each.is_text and (each.marked_separator or not each.encoding.startswith("utf-8")):
                if not each.encoding.startswith("utf"):
                    self.notes.append(diagnose.describe_windows_1252(each))
                self._relations[index] = self._recode(index, each.encoding)
        with closing(diagnose.TruncationCheck(self._relations, self._stop)) as truncation:
            self._stop = truncation.should_stop
            try:
                facets = self._mend_and_reduce()
            except (InvalidInput, StoppedError):
                truncation.raise_if_damaged()  # A truncated file is the likely cause of other problems.
                raise
            truncation.raise_if_damaged()
            return facets

    def _mend_and_reduce(self) -> Facets:
        """Count, again with other options or less memory after each error of DuckDB; refuse files if none helps."""
        import duckdb

        attempts = 0
        while attempts < 3 + len(self._relations):
            num_notes = len(self.notes)
            try:
                return self._reduce()
            except duckdb.OutOfMemoryException as error:
                del self.notes[num_notes:]
                self._reduce_memory(error)
            except duckdb.NotImplementedException:
                # Its threads disagreed on the file: https://github.com/duckdb/duckdb/issues/24237.
                del self.notes[num_notes:]
                self._relations = [replace(each, is_single_threaded=True) for each in self._relations]
                attempts += 1
            except duckdb.Error as error:
                del self.notes[num_notes:]
                if self._is_disk_full(error):
                    raise InvalidInput([FULL_DISK]) from None
                options = self._relations, self._duck, self._recode, self.notes, self._stop
                self._relations = diagnose.Diagnosis(*options).recover()
                attempts += 1
        raise InvalidInput([diagnose.describe_damage(self._relations[0])])

    def _recode(self, index: int, encoding: str) -> Relation:
        """Write a file as UTF-8 into the temporary folder, and return its relation."""
        assert self._workspace is not None
        target = self._workspace.folder / f"utf8-{index}"
        self.encodings[index] = encoding
        return diagnose.recode_file(self._relations[index], encoding, target, self._stop, self._steps)

    @contextmanager
    def _duck(self) -> Iterator[Duck]:
        """Open DuckDB with the tables in memory, or another connection to it if it is open already."""
        outer = self._opened
        files = [each.path for each in self._relations if each.table is None]
        folder = None if self._workspace is None else self._workspace.folder
        fresh = outer or Duck(files, folder, self._memory_limit, self._stop, self._steps)
        with closing(fresh if outer is None else fresh.connect()) as duck:
            if self._threads:
                duck.connection.execute(f"SET threads = {self._threads}")
            for each in self._relations:
                if each.table is not None:
                    duck.connection.register(str(each.path), relation.to_arrow_table(each.table))
            self._opened = duck
            try:
                yield duck
            finally:
                self._opened = outer

    def _is_disk_full(self, error: Exception) -> bool:
        """Return True if DuckDB failed because the disk is full, by its message or by the free space."""
        words = ("max_temp_directory_size", "No space left", "not enough space")
        has_room = self._workspace is None or self._workspace.has_room(_ROOM)
        return any(word in str(error) for word in words) or not has_room

    def _reduce_memory(self, error: Exception) -> None:
        """Reduce the memory of the next attempt: first one thread and small buffers, then fewer users at a time."""
        self._steps.num_steps = self._steps.num_done + self._queries
        if not self._threads:
            self._threads = 1
            self._relations = [replace(each, buffer=relation.SMALL_BUFFER) for each in self._relations]
            return
        further = [passes for passes in PASSES if passes > self._passes]
        if not further:
            if self._is_disk_full(error):
                raise InvalidInput([FULL_DISK])
            message = f"counting needs more than the memory limit of {self._memory_limit:,} bytes"
            raise refuse(message, remedy="Raise the limit")
        self._passes = further[0]

    # --- rows and numbers -----------------------------------------------------------------------------------

    def _reduce(self) -> Facets:
        """Count once with the present options; raise InvalidInput for rows that do not count, or DuckDB's error."""
        for index, each in enumerate(self._relations):
            if each.kind is FileKind.JSON and each.encoding != "utf-8":  # a mark that DuckDB refuses
                self._relations[index] = self._recode(index, each.encoding)
        texts = [each for each in self._relations if each.is_text]
        if single_threaded := [each for each in texts if each.is_single_threaded]:
            diagnose.refuse_open_quotes(single_threaded, self._stop)
        with self._duck() as duck:
            self._open_source(duck)
            roles = relation.rename_roles(self.roles, self.columns)
            if self.roles.kind is TableKind.HISTOGRAM:
                return self._reduce_sizes(duck, roles)
            facets = self._reduce_events(duck, duck.get_table("source"), roles)
            if len(self.columns) > 2 and not self._counts:
                self._note_copies(duck, roles)
        # Reading all of a file once more takes 4 % of the time; it is not needed if no id contains a blank between
        # marks.
        if texts:
            diagnose.refuse_reopened_marks(texts, self._stop, self._has_blanks)
        return facets

    def _open_source(self, duck: Duck) -> None:
        """Create the view ``source``: all rows as text, and the number columns as numbers."""
        self._create_view(duck, {}, self._in_memory)
        is_histogram = self.roles.kind is TableKind.HISTOGRAM
        problems, numbers = Problems(), dict[str, str]()
        for name in [self.roles.size, self.roles.users] if is_histogram else [self.roles.value]:
            if name is None:
                continue
            column = f"c{self.columns.index(name)}"
            if self._types[column].is_string():
                marks = self._settle_marks(duck, column, name)
                numbers[column], self.decimals[name] = marks.sql, marks.decimal
                self.notes += [marks.note] if marks.note else []
                problems.extend([marks.problem] if marks.problem is not None else [])
            elif self._types[column].is_numeric():
                numbers[column], self.decimals[name] = column, ""
            else:
                problems.add(NO_NUMBERS, f"column {shorten(name)}", ANOTHER)
        problems.raise_if_any()
        self._create_view(duck, numbers, self._in_memory)

    def _create_view(self, duck: Duck, numbers: dict[str, str], numbered: bool) -> None:
        """Create the view ``source`` with columns of numbers, each ``n`` and the column that it is read from."""
        self._numbers = numbers
        view = self._write_view(self._relations, numbered)
        duck.connection.execute(f"CREATE OR REPLACE TEMP VIEW source AS {view}")
        self._types = duck.get_table("source").schema()

    def _write_view(self, relations: Sequence[Relation], numbered: bool) -> str:
        """Return the SQL of all rows of these files, with the number columns added."""
        union = relation.union(relations, self.columns, self.roles.missing_users, numbered)
        numbers = "".join(f", {sql} AS n{column}" for column, sql in self._numbers.items())
        return f"SELECT *{numbers} FROM ({union})" if numbers else union

    def _settle_marks(self, duck: Duck, column: str, name: str) -> Marks:
        """Choose the decimal and thousands marks of a text column, and so the SQL of its numbers."""

        def ask(masks: Mapping[str, str]) -> dict[str, bool]:
            """Return by name whether any row satisfies each SQL mask."""
            self._steps.num_steps += 1
            anywhere = ", ".join(f"bool_or({mask})" for mask in masks.values())
            return dict(
                zip(masks, map(bool, duck.fetch_rows(f"SELECT {anywhere} FROM source")[0]), strict=True)
            )

        delimiters = {each.delimiter for each in self._relations}
        delimiter = delimiters.pop() if len(delimiters) == 1 else ""
        cells = f"trim({column}, {quote_literal(BLANKS)})"

        def find_place(mask: str) -> str:
            """Return the location of the first row that satisfies an SQL mask."""
            return self._find_marked(mask, 1)[0][0]

        return settle_marks(cells, ask, find_place, name, delimiter, self._counts)

    def _find_rows(self, write_sql: Callable[[Duck], str], max_rows: int) -> RowPlaces:
        """Return the locations and details of the first bad rows, as `diagnose.find_rows`."""

        def view(each: Relation) -> str:
            """Return the SQL of the numbered rows of one file."""
            return self._write_view([each], True)

        return diagnose.find_rows(self._relations, view, self._duck, write_sql, max_rows, self._stop)

    def _find_marked(self, mask: str, max_rows: int) -> RowPlaces:
        """Return the locations of the first rows for which a mask is true."""
        return self._find_rows(lambda _: f"SELECT {ROW}, '' AS detail, {mask} AS bad FROM source", max_rows)

    def _describe_first(self, mask: str, count: int) -> str:
        """Return the location of the first row that satisfies an SQL mask, as the end of a note."""
        return describe_first(self._find_marked(mask, 1), count)

    # --- copies ---------------------------------------------------------------------------------------------

    def _note_copies(self, duck: Duck, roles: Roles) -> None:
        """Count exact copies of rows and add a note on them, or a note that they were not looked for."""
        if not (self._in_memory or self._copies):
            note_copies(None, self.notes)
            return
        columns = [f"c{index}" for index in range(len(self.columns))]
        cells = ", ".join(f"{comparable_sql(column, self._types[column])} AS {column}" for column in columns)
        rows = f"SELECT {cells} FROM source WHERE {self._counted_sql(columns, roles)}"
        number = 0
        self._steps.num_steps += self._passes
        for pass_index in range(self._passes):
            condition = write_part_condition(", ".join(roles.privacy_unit), pass_index, self._passes)
            groups = f"SELECT count(*) AS n FROM ({rows}) WHERE {condition} GROUP BY {', '.join(columns)}"
            number += duck.fetch_rows(f"SELECT coalesce(sum(n - 1), 0)::BIGINT FROM ({groups})")[0][0]
        row_places = self._find_repeats(columns, roles, 1) if number and self._in_memory else []
        note_copies(number, self.notes, row_places)

    def _find_repeats(self, columns: Sequence[str], roles: Roles, max_rows: int) -> RowPlaces:
        """Find the first counted rows that repeat the cells of an earlier row, with the location of that row."""
        cells = ", ".join(comparable_sql(column, self._types[column]) for column in columns)
        first = f"min({ROW}) OVER (PARTITION BY {cells})"
        rows = f"SELECT {ROW}, {first} AS detail FROM source WHERE {self._counted_sql(columns, roles)}"
        return self._find_rows(lambda _: f"SELECT *, detail < {ROW} AS bad FROM ({rows})", max_rows)

    def _counted_sql(self, columns: Sequence[str], roles: Roles) -> str:
        """Return the SQL condition that a row counts, if rows are compared by these columns."""
        who = [f"{comparable_sql(column, self._types[column])} IS NOT NULL" for column in roles.privacy_unit]
        as_one = roles.missing_users is MissingUsers.ONE_USER and len(columns) > len(who)
        return "true" if as_one or not who else " AND ".join(who)

    # --- events ---------------------------------------------------------------------------------------------

    def _reduce_events(self, duck: Duck, table: Table, roles: Roles) -> Facets:
        """Count a table of events: in one pass if only users matter, else with cleaned cells."""
        who_alone = self.roles.value is None and self.roles.task is None
        if who_alone and self._passes == 1 and (facets := self._reduce_in_one_pass(duck, table, roles)):
            return facets
        value = self._value_column(table, roles.value)
        rows = self._events(table, roles, value, strip_padded)
        # The few columns are stored if reading them again would cost more.
        read_again = not who_alone or self._passes > 1
        if read_again and any(each.kind is not FileKind.PARQUET for each in self._relations):
            rows = duck.store_table("rows", rows)
        header_condition = self._header_condition(rows)
        if (
            header_condition
            and duck.fetch_rows(f"SELECT bool_or({header_condition}) FROM ({compile_sql(rows)})")[0][0]
        ):
            self._refuse_second_headers(duck)
        return self._reduction(duck, rows, roles, value).reduce()

    def _reduce_in_one_pass(self, duck: Duck, table: Table, roles: Roles) -> Facets | None:
        """Count users in one pass if there is only a user column; return None if some cells need cleaning.

        Cells are grouped unchanged and checked afterwards, once per user: stripping 10 million cells before grouping
        would take a third of the time. Ids of digits stay text, as 7, 07 and 7.0 are three users. Grouping 10 million
        of them takes 14 % longer than grouping numbers; a cast with a proof that no two texts are one number takes
        about 30 %.
        """
        rows = self._events(table, roles, None, lambda column: column)
        if not (texts := query.text_columns(rows)):
            return None
        reduction = self._reduction(duck, rows, roles, None)
        strange = [*filter(None, [self._header_condition(rows)]), *map(is_padded_sql, texts)]
        blanks = [f"contains({text}, ' ')" for text in texts]
        counts = reduction.count_users(odd=" OR ".join(strange), blanks=" OR ".join(blanks))
        odd, spaced = (bool(np.nansum(np.asarray(counts[name], np.float64))) for name in ("odd", "blanks"))
        if odd:
            self._steps.num_steps += 1
            return None
        reduction.histogram, self._has_blanks = counts, spaced
        return reduction.reduce()

    def _header_condition(self, rows: Table) -> str:
        """Return the SQL condition that a user is called like the column, as in joined files; empty if it cannot be."""
        may_be_joined = any(each.is_text and len(each.columns) > 1 for each in self._relations)
        if not (may_be_joined and query.text_columns(rows)):
            return ""
        who, name = f"{query.WHO}0", self.roles.user or ""
        # Cleaning every cell would take longer than counting, so the last word of the name is searched first.
        return f"(contains({who}, {quote_literal(name.split()[-1])}) AND {clean_sql(who)} = {quote_literal(name)})"

    def _refuse_second_headers(self, duck: Duck) -> None:
        """Raise InvalidInput if files were joined with their headers, which would count as a further user."""
        self._steps.num_steps += 1
        names = enumerate(self.columns)
        condition = " AND ".join(f"{clean_sql(f'c{index}')} = {quote_literal(name)}" for index, name in names)
        if number := duck.fetch_rows(f"SELECT count(*) FROM source WHERE {condition}")[0][0]:
            message, location = HEADER_AGAIN + and_more(number - 1), self._find_marked(condition, 1)[0][0]
            raise refuse(message, location, REMOVE_HEADER)

    def _events(self, table: Table, roles: Roles, value: Value | None, strip: Callable[[Any], Any]) -> Table:
        """Return `query.events` of the table, with the number of the row if the files are in memory."""
        also = (ROW,) if self._in_memory else ()
        return query.events(table, roles, value, has_nan=True, strip=strip, further_columns=also)

    def _value_column(self, table: Table, column: str | None) -> Value | None:
        """Return the numeric column of the view for a column; None for None."""
        if column is None:
            return None
        number = table[f"n{column}"]
        return query.finite_or_beyond(number, has_nan=True) if self._numbers[column] == column else number

    def _reduction(
        self, duck: Duck, rows: Table, roles: Roles, value: Value | None, message_roles: Roles | None = None
    ) -> Reduction:
        """Build the reduction of rows to facets, and add its queries to the progress."""
        import ibis

        in_parts = 1 + (self.roles.value is not None) + (self.roles.task is not None)
        self._steps.num_steps += in_parts * (self._passes - 1)

        def find_places(cell_kind: str, max_rows: int) -> RowPlaces:
            """Return the locations and contents of the first rows with cells of a kind."""
            self._steps.num_steps += 1
            if cell_kind == "again":
                return self._find_repeats(roles.privacy_unit, roles, max_rows)
            if cell_kind == "nul":
                cells = [f"contains({column}::VARCHAR, chr(0))" for column in roles.privacy_unit]
                return self._find_marked(" OR ".join(cells), max_rows)

            def write_sql(connection: Duck) -> str:
                """Return the SQL of all rows with their number, a flag for cells of the kind, and the cell to show."""
                table = connection.get_table("source")
                number = None if value is None else self._value_column(table, roles.value)
                cell = table[roles.value].cast("string") if roles.value else ibis.literal("")
                events = query.events(
                    table.mutate(cell=cell), roles, number, has_nan=True, strip=strip_padded,
                    further_columns=(ROW, "cell"),
                )  # fmt: skip
                # These cells are from a short list of words or numbers like 1e999, so they may be shown.
                shown = {"not_finite": "cell", "negative": "value", "broken": "value", "large": "value"}
                detail = events[shown[cell_kind]] if cell_kind in shown else ibis.literal("")
                bad = query.odd_cells(events, roles.missing_users, self._counts)[cell_kind]
                return compile_sql(events.select(ROW, bad=bad, detail=detail))

            return self._find_rows(write_sql, max_rows)

        return Reduction(
            rows, message_roles or self.roles, self.columns, duck.fetch_expression, duck, find_places,
            notes=self.notes, counts=self._counts, num_passes=self._passes, order=ROW if self._in_memory else "",
        )  # fmt: skip

    # --- a histogram, which is counted already ------------------------------------------------------------

    def _reduce_sizes(self, duck: Duck, roles: Roles) -> Facets:
        """Build the histogram of a file that states sizes and numbers of users; refuse or note odd rows."""
        size, users = f"n{roles.size}", f"n{roles.users}"
        size_name, users_name = shorten(self.roles.size or ""), shorten(self.roles.users or "")
        # Stored, as every other query would read the numbers again, which takes most of the time.
        order = [ROW] if self._in_memory else []
        table = duck.store_table("sizes", duck.get_table("source").select(size, users, *order))
        with Problems() as problems:
            for role in ("size", "users"):
                its = Roles(TableKind.EVENTS, value=getattr(roles, role), contribution=Contribution.TOTAL)
                value = self._value_column(table, its.value)
                events = self._events(table, its, value, strip_padded)
                message_roles = replace(its, value=getattr(self.roles, role))
                reduction = self._reduction(duck, events, its, value, message_roles)
                reduction.remedy = "It must be a whole number; if it is not one, choose another column"
                reduction.refuse_cells(problems)
        fits = f"{size} > 0 AND {users} > 0"
        sums = f"SELECT {size} AS size, sum({users}) AS users, count(*) AS rows FROM sizes WHERE {fits}"
        columns = duck.fetch_columns(f"{sums} GROUP BY 1 ORDER BY 1 LIMIT {MAX_SIZES + 1}")
        if columns["size"].size > MAX_SIZES:
            message = f"there are more than {MAX_SIZES:,} distinct sizes"
            raise refuse(message, f"column {size_name}", f"{ANOTHER}, or a larger unit")
        zero = f"({size} = 0 OR {users} = 0)"
        if count := duck.fetch_rows(f"SELECT count(*) FROM sizes WHERE {zero}")[0][0]:
            rows = wording.counted(
                count, "row of size 0 or without users was", "rows of size 0 or without users were"
            )
            self.notes.append(f"{rows} left out{self._describe_first(zero, count)}.")
        if not columns["size"].size:
            location = f"columns {size_name} and {users_name}"
            raise refuse("no row has a size above 0 that anybody has", location, ANOTHER)
        if num_repeats := int(columns["rows"].sum()) - columns["rows"].size:
            self.sizes_repeat = True
            repeat = wording.counted(num_repeats, "row repeats", "rows repeat")
            earlier = f"min({ROW}) FILTER ({fits}) OVER (PARTITION BY {size})"
            first = self._describe_first(f"{fits} AND {ROW} > {earlier}", 2)
            self.notes.append(f"{repeat} a size that stood before{first}; their users were added up.")
        return Facets(ContributionHistogram.from_table(columns["size"], columns["users"].astype(np.float64)))
