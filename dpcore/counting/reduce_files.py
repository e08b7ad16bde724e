"""Files through DuckDB: tried as they seem to be, read again as they turn out to be, in parts where need be."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dpcore.common import wording
from dpcore.common.checks import Problems
from dpcore.common.errors import FULL_DISK, InvalidInput, refuse
from dpcore.common.progress import ShouldStop
from dpcore.common.workspace import Workspace
from dpcore.contributions import ContributionHistogram
from dpcore.counting import diagnose, query, reading
from dpcore.counting.duck import Duck, give_back, in_part, literal, sql_of
from dpcore.counting.formats import Format
from dpcore.counting.parts import Part, safe_path
from dpcore.counting.reading import Reading
from dpcore.counting.reduce import MAX_SIZES, NO_COPIES, Found, Reduced, Reduction, said_first, say_copies
from dpcore.counting.running import Steps, StoppedError
from dpcore.data.column_names import and_more, shown
from dpcore.data.column_roles import MissingUsers, Roles, TableKind
from dpcore.data.delimited_text import BLANKS
from dpcore.data.numbers import Marks, settled
from dpcore.dataset import Contribution

if TYPE_CHECKING:
    from ibis.expr.types import Table, Value

PASSES = (1, 7, 61)
"""In how many parts users are counted, one after another, when fewer need more than the memory limit."""

SIZE_REMEDY = "It must be a whole number; if it is not one, choose another column"
HELD_CELLS = 1_000_000
"""Cells of tables in memory that the DuckDB counts which all share: what that took it keeps, 100 bytes a cell."""
TABLE_LIMIT = 400_000_000
"""Bytes that DuckDB may use beside a table in memory."""
_ROOM = 1_000_000
"""Bytes without which a disk is as good as full."""


class Files:
    """Files, or a table in memory, on their way to a `Reduced`.

    Args:
        parts: The files, of the same columns in whatever order.
        roles: Events or a histogram; what each column means.
        memory_limit: Bytes that DuckDB may use.
        should_stop: Asked all the time.
        steps: Told how far it is.
        notes: Takes what a person should know.
        counts: Whether the value is the number of contributions of a user who has no other row.
        copies: Whether to look for rows that are exact copies of others.

    Attributes:
        decimals: The columns of numbers, with the mark that stands before decimals where it had to be settled.
        encodings: Of files that turned out to be of another encoding than their beginning, by their place.
    """

    def __init__(
        self,
        parts: tuple[Part, ...],
        roles: Roles,
        memory_limit: int,
        should_stop: ShouldStop | None,
        steps: Steps,
        notes: list[str],
        *,
        counts: bool = False,
        copies: bool = False,
    ) -> None:
        self.columns = parts[0].columns
        self.roles, self.notes, self._steps, self._stop = roles, notes, steps, should_stop
        self._counts, self._copies = counts or roles.kind is TableKind.HISTOGRAM, copies
        self._memory_limit, self._threads, self._passes = memory_limit, 0, 1
        self._queries = steps.total
        held = [part.table.frame.size for part in parts if part.table is not None]
        self._in_memory = len(held) == len(parts)
        small = self._in_memory and sum(held) <= HELD_CELLS
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
        texts = reading.mixed(parts)
        self._readings = [Reading(p, buffer=buffer, texts=texts) for p in parts]
        if self._workspace is not None:
            for at, its in enumerate(self._readings):
                if its.part.table is None:
                    path = safe_path(its.part.path, self._workspace)
                    self._readings[at] = replace(its, part=replace(its.part, path=path))

    def reduce(self) -> Reduced:
        """Count; a file that turns out not to be UTF-8, or to have short rows, is read again as it is.

        Raises:
            InvalidInput: The files cannot be counted; all problems at once.
            StoppedError: Stop was pressed.
        """
        with closing(self._workspace) if self._workspace is not None else nullcontext():
            for at, its in enumerate(self._readings):
                foreign = not its.part.encoding.startswith("utf-8") and its.part.format is Format.TEXT
                if its.part.split and not foreign:
                    self._readings[at] = self._recode(at, its.part.encoding)
                if foreign:
                    if not its.part.encoding.startswith("utf"):
                        self.notes.append(diagnose.windows_1252(its.part))
                    self._readings[at] = self._recode(at, its.part.encoding)
            with closing(diagnose.TruncationCheck(self._parts, self._stop)) as truncation:
                self._stop = truncation.should_stop
                try:
                    reduced = self._mend_and_reduce()
                except (InvalidInput, StoppedError):
                    truncation.verdict()  # What is wrong with a file that was cut off is mostly that.
                    raise
                finally:
                    if self._workspace is not None:
                        give_back()
                truncation.verdict()
                return reduced

    def _mend_and_reduce(self) -> Reduced:
        import duckdb

        attempts = 0
        while attempts < 3 + len(self._readings):
            said = len(self.notes)
            try:
                return self._reduce()
            except duckdb.OutOfMemoryException as error:
                del self.notes[said:]
                self._ask_for_less(error)
            except duckdb.NotImplementedException:
                # What its threads read did not fit together: https://github.com/duckdb/duckdb/issues/24237.
                del self.notes[said:]
                self._readings = [replace(its, alone=True) for its in self._readings]
                attempts += 1
            except duckdb.Error as error:
                del self.notes[said:]
                if self._finds_no_room(error):
                    raise InvalidInput([FULL_DISK]) from None
                diagnosis = diagnose.Diagnosis(
                    self._readings, self._duck, self._recode, self.notes, self._stop
                )
                self._readings = diagnosis.recovered()
                attempts += 1
        raise InvalidInput([diagnose.damaged(self._readings[0].part)])

    @property
    def _parts(self) -> list[Part]:
        return [its.part for its in self._readings]

    def _recode(self, at: int, encoding: str) -> Reading:
        assert self._workspace is not None
        target = self._workspace.folder / f"utf8-{at}"
        self.encodings[at] = encoding
        return reading.recoded(self._readings[at], encoding, target, self._stop, self._steps)

    @contextmanager
    def _duck(self) -> Iterator[Duck]:
        """DuckDB, or where it is open already, another connection to it."""
        before = self._opened
        files = [part.path for part in self._parts if part.table is None]
        folder = None if self._workspace is None else self._workspace.folder
        fresh = before or Duck(files, folder, self._memory_limit, self._stop, self._steps)
        with closing(fresh if before is None else fresh.beside()) as duck:
            if self._threads:
                duck.connection.execute(f"SET threads = {self._threads}")
            for part in self._parts:
                if part.table is not None:
                    duck.connection.register(str(part.path), reading.table_of(part))
            self._opened = duck
            try:
                yield duck
            finally:
                self._opened = before

    def _finds_no_room(self, error: Exception) -> bool:
        """Return True if DuckDB failed as the disk is full: it says so in its own words, or in those of the system."""
        said = str(error)
        words = ("max_temp_directory_size", "No space left", "not enough space")
        return any(word in said for word in words) or not (
            self._workspace is None or self._workspace.has_room(_ROOM)
        )

    def _ask_for_less(self, error: Exception) -> None:
        """One thread and small buffers, as every thread has its own; then fewer users at a time."""
        self._steps.total = self._steps.done + self._queries
        if not self._threads:
            self._threads = 1
            self._readings = [replace(its, buffer=reading.SMALL_BUFFER) for its in self._readings]
            return
        further = [passes for passes in PASSES if passes > self._passes]
        if not further:
            if self._finds_no_room(error):
                raise InvalidInput([FULL_DISK])
            what = f"counting needs more than the memory limit of {self._memory_limit:,} bytes"
            raise refuse(what, remedy="Raise the limit")
        self._passes = further[0]

    # --- counting -----------------------------------------------------------------------------------------

    def _reduce(self) -> Reduced:
        for at, its in enumerate(self._readings):
            if its.part.format is Format.JSON and its.part.encoding != "utf-8":  # a mark that DuckDB refuses
                self._readings[at] = self._recode(at, its.part.encoding)
        alone = [its.part for its in self._readings if its.alone and its.part.format is Format.TEXT]
        diagnose.refuse_open_quotes(alone, self._stop)
        with self._duck() as duck:
            self._open_source(duck)
            roles = reading.renamed(self.roles, self.columns)
            if self.roles.kind is TableKind.HISTOGRAM:
                return self._sizes(duck, roles)
            reduced = self._events_reduced(duck, duck.table("source"), roles)
            if len(self.columns) > 2 and not self._counts:
                self._say_copies(duck, roles)
        # To read all of a file once more takes 4 % of the time: spared where no id holds the blank between two marks.
        diagnose.refuse_reopened_marks(self._parts, self._stop, self._has_blanks)
        return reduced

    def _open_source(self, duck: Duck) -> None:
        """The view ``source``: all rows as text, and the columns that must hold numbers as such."""
        self._numbers = {}
        view = "CREATE OR REPLACE TEMP VIEW source AS"
        duck.connection.execute(f"{view} {self._view(self._readings, self._in_memory)}")
        self._kinds = kinds = duck.table("source").schema()
        histogram = self.roles.kind is TableKind.HISTOGRAM
        wanted = [self.roles.size, self.roles.users] if histogram else [self.roles.value]
        problems = Problems()
        for name in filter(None, wanted):
            column = f"c{self.columns.index(name)}"
            if kinds[column].is_string():
                marks = self._marks(duck, column, name)
                self._numbers[column], self.decimals[name] = marks.sql, marks.decimal
                self.notes += [marks.note] if marks.note else []
                problems.extend([marks.problem] if marks.problem is not None else [])
            elif kinds[column].is_numeric():
                self._numbers[column], self.decimals[name] = column, ""
            else:
                what = "the column does not hold numbers"
                problems.add(what, f"column {shown(name)}", "Choose another column")
        problems.raise_if_any()
        duck.connection.execute(f"{view} {self._view(self._readings, self._in_memory)}")

    def _view(self, readings: Sequence[Reading], numbered: bool) -> str:
        union = reading.union(readings, self.columns, self.roles.missing_users, numbered)
        numbers = "".join(f", {sql} AS {_number(column)}" for column, sql in self._numbers.items())
        return f"SELECT *{numbers} FROM ({union})" if numbers else union

    def _marks(self, duck: Duck, column: str, name: str) -> Marks:
        def ask(masks: Mapping[str, str]) -> dict[str, bool]:
            self._steps.total += 1
            anywhere = ", ".join(f"bool_or({mask})" for mask in masks.values())
            return dict(zip(masks, map(bool, duck.rows(f"SELECT {anywhere} FROM source")[0]), strict=True))

        def place(mask: str) -> str:
            return self._marked(mask, 1)[0][0]

        delimiters = {part.delimiter for part in self._parts}
        delimiter = delimiters.pop() if len(delimiters) == 1 else ""
        return settled(f"trim({column}, {literal(BLANKS)})", ask, place, name, delimiter, self._counts)

    def _say_copies(self, duck: Duck, roles: Roles) -> None:
        if not (self._in_memory or self._copies):
            self.notes.append(NO_COPIES)
            return
        columns = [f"c{at}" for at in range(len(self.columns))]
        cells = ", ".join(f"{self._cell(column)} AS {column}" for column in columns)
        rows = f"SELECT {cells} FROM source WHERE {self._counting(columns, roles)}"
        number = 0
        self._steps.total += self._passes
        for at in range(self._passes):
            part = in_part(", ".join(roles.privacy_unit), at, self._passes)
            groups = f"SELECT count(*) AS n FROM ({rows}) WHERE {part} GROUP BY {', '.join(columns)}"
            number += duck.rows(f"SELECT coalesce(sum(n - 1), 0)::BIGINT FROM ({groups})")[0][0]
        places = self._repeated(columns, roles, 1) if number and self._in_memory else []
        say_copies(number, self.notes, places)

    def _repeated(self, columns: Sequence[str], roles: Roles, most: int) -> Found:
        """Return the first rows whose cells stood in an earlier row, and the places of these."""
        return self._places().find(lambda _: self._repeats(columns, roles), most)

    def _cell(self, column: str) -> str:
        """SQL of a cell as rows are compared by it; null for nothing."""
        if self._kinds[column].is_string():
            return f"nullif({reading.trimmed(column)}, '')"
        floating = self._kinds[column].is_floating()
        return f"CASE WHEN NOT isnan({column}) THEN {column} END" if floating else column

    def _counting(self, columns: Sequence[str], roles: Roles) -> str:
        """SQL of whether a row counts, where rows are compared by these columns."""
        who = [f"{self._cell(column)} IS NOT NULL" for column in roles.privacy_unit]
        as_one = roles.missing_users is MissingUsers.ONE_USER and len(columns) > len(who)
        return "true" if as_one or not who else " AND ".join(who)

    def _repeats(self, columns: Sequence[str], roles: Roles) -> str:
        """SQL of the rows that count, with the first row that holds the same cells (``said``)."""
        cells = ", ".join(map(self._cell, columns))
        first = f"min({reading.ROW}) OVER (PARTITION BY {cells})"
        rows = f"SELECT {reading.ROW}, {first} AS said FROM source WHERE {self._counting(columns, roles)}"
        return f"SELECT *, said < {reading.ROW} AS bad FROM ({rows})"

    def _events_reduced(self, duck: Duck, table: Table, roles: Roles) -> Reduced:
        who_alone = self.roles.value is None and self.roles.task is None
        if who_alone and self._passes == 1 and (reduced := self._in_one_pass(duck, table, roles)):
            return reduced
        value = self._value(table, roles.value)
        rows = self._events(table, roles, value)
        # The few columns are kept on the way where reading them again would cost more.
        read_again = not who_alone or self._passes > 1
        if read_again and any(part.format is not Format.PARQUET for part in self._parts):
            rows = duck.keep("rows", rows)
        again = self._header_again(rows)
        if again and duck.rows(f"SELECT bool_or({again}) FROM ({sql_of(rows)})")[0][0]:
            self._refuse_second_headers(duck)
        return self._reduction(duck, rows, roles, value).reduce()

    def _in_one_pass(self, duck: Duck, table: Table, roles: Roles) -> Reduced | None:
        """Who alone: cells are grouped as they stand, and looked at afterwards, once per user; None for odd ones.

        Stripping 10 million cells before they are grouped would take a third of the time. Ids of digits stay text, as
        7, 07 and 7.0 are three users: to group 10 million of them takes 14 % longer than to group numbers, and to cast
        them with a proof that no two texts are one number (length in the key, no exponent) about 30 %.
        """
        rows = self._events(table, roles, None, _as_it_stands)
        if not (texts := query.text_columns(rows)):
            return None
        reduction = self._reduction(duck, rows, roles, None)
        strange = [*filter(None, [self._header_again(rows)]), *map(reading.padded, texts)]
        blanks = [f"contains({text}, ' ')" for text in texts]
        counts = reduction.count_users(odd=" OR ".join(strange), blanks=" OR ".join(blanks))
        odd, spaced = (bool(np.nansum(np.asarray(counts[name], np.float64))) for name in ("odd", "blanks"))
        if odd:
            self._steps.total += 1
            return None
        reduction.histogram, self._has_blanks = counts, spaced
        return reduction.reduce()

    def _header_again(self, rows: Table) -> str:
        """SQL of whether a user is called as the column, as where files were joined with their headers."""
        joined = any(part.format is Format.TEXT and len(part.columns) > 1 for part in self._parts)
        if not (joined and query.text_columns(rows)):
            return ""
        who, name = f"{query.WHO}0", self.roles.user or ""
        # To clean every cell would take longer than to count: the last word stands in it as it is.
        return f"(contains({who}, {literal(name.split()[-1])}) AND {_cleaned(who)} = {literal(name)})"

    def _refuse_second_headers(self, duck: Duck) -> None:
        """Refuse files that were joined with their headers, which would count as one more user."""
        self._steps.total += 1
        cells = [_cleaned(f"c{at}") for at in range(len(self.columns))]
        again = " AND ".join(f"{c} = {literal(name)}" for c, name in zip(cells, self.columns, strict=True))
        if number := duck.rows(f"SELECT count(*) FROM source WHERE {again}")[0][0]:
            what = f"the header row stands among the data again{and_more(number - 1)}"
            where = self._marked(again, 1)[0][0]
            raise refuse(what, where, "Remove it (were several files joined?)")

    def _events(
        self, table: Table, roles: Roles, value: Value | None, strip: Callable[[Any], Any] | None = None
    ) -> Table:
        also = (reading.ROW,) if self._in_memory else ()
        return query.events(table, roles, value, has_nan=True, strip=strip or _strip, also=also)

    def _value(self, table: Table, column: str | None) -> Value | None:
        """Return a column as numbers, as the view has it."""
        if column is None:
            return None
        number = table[_number(column)]
        return query.finite_or_beyond(number, has_nan=True) if self._numbers[column] == column else number

    def _places(self) -> diagnose.Places:
        return diagnose.Places(lambda at: self._view([at], True), self._readings, self._duck, self._stop)

    def _reduction(
        self, duck: Duck, rows: Table, roles: Roles, value: Value | None,
        named: Roles | None = None,
    ) -> Reduction:  # fmt: skip
        import ibis

        in_parts = 1 + (self.roles.value is not None) + (self.roles.task is not None)
        self._steps.total += in_parts * (self._passes - 1)

        def place(kind: str, most: int) -> Found:
            self._steps.total += 1
            if kind == "again":
                return self._repeated(roles.privacy_unit, roles, most)
            if kind == "nul":
                holds = " OR ".join(f"contains({column}::VARCHAR, chr(0))" for column in roles.privacy_unit)
                return self._marked(holds, most)

            def ask(its: Duck) -> str:
                part = its.table("source")
                number = None if value is None else self._value(part, roles.value)
                cell = part[roles.value].cast("string") if roles.value else ibis.literal("")
                cells = part.mutate(cell=cell)
                events = query.events(
                    cells, roles, number, has_nan=True, strip=_strip, also=(reading.ROW, "cell")
                )
                # These cells match a short list of words or are numbers like 1e999, so they may be shown.
                quoted = {"not_finite": "cell", "negative": "value", "broken": "value", "large": "value"}
                said = quoted.get(kind)
                asked = events.select(
                    reading.ROW, bad=query.odd_cells(events, roles.missing_users, self._counts)[kind],
                    said=events[said] if said else ibis.literal(""),
                )  # fmt: skip
                return sql_of(asked)

            return self._places().find(ask, most)

        return Reduction(
            rows, named or self.roles, self.columns, duck.run, duck, place,
            notes=self.notes, counts=self._counts, passes=self._passes,
            order=reading.ROW if self._in_memory else "",
        )  # fmt: skip

    # --- a histogram, which is counted already ------------------------------------------------------------

    def _sizes(self, duck: Duck, roles: Roles) -> Reduced:
        size, users = _number(roles.size or ""), _number(roles.users or "")
        # Every other query would read the numbers anew, which takes most of the time.
        order = [reading.ROW] if self._in_memory else []
        table = duck.keep("sizes", duck.table("source").select(size, users, *order))
        problems = Problems()
        for role in ("size", "users"):
            its = Roles(TableKind.EVENTS, value=getattr(roles, role), contribution=Contribution.TOTAL)
            value = self._value(table, its.value)
            named = replace(its, value=getattr(self.roles, role))
            reduction = self._reduction(duck, self._events(table, its, value), its, value, named=named)
            reduction.remedy = SIZE_REMEDY
            reduction.refuse_cells(problems)
        problems.raise_if_any()
        columns = duck.columns(
            f"SELECT {size} AS size, sum({users}) AS users, count(*) AS rows FROM sizes "
            f"WHERE {size} > 0 AND {users} > 0 GROUP BY 1 ORDER BY 1 LIMIT {MAX_SIZES + 1}"
        )
        if columns["size"].size > MAX_SIZES:
            where = f"column {shown(self.roles.size or '')}"
            what = f"there are more than {MAX_SIZES:,} distinct sizes"
            raise refuse(what, where, "Choose another column, or write sizes in a larger unit")
        masks = {
            f"{size} = 0": ("row of size 0 was", "rows of size 0 were"),
            f"{size} > 0 AND {users} = 0": ("size that nobody has was", "sizes that nobody has were"),
        }
        for mask, words in masks.items():
            if count := duck.rows(f"SELECT count(*) FROM sizes WHERE {mask}")[0][0]:
                self.notes.append(f"{wording.counted(count, *words)} left out{self._first(mask, count)}.")
        if not columns["size"].size:
            where = f"columns {shown(self.roles.size or '')} and {shown(self.roles.users or '')}"
            raise refuse("no row has a size above 0 that anybody has", where, "Choose other columns")
        if again := int(columns["rows"].sum()) - columns["rows"].size:
            repeat = wording.counted(again, "row repeats", "rows repeat")
            fits = f"{size} > 0 AND {users} > 0"
            earlier = f"min({reading.ROW}) FILTER ({fits}) OVER (PARTITION BY {size})"
            first = self._first(f"{fits} AND {reading.ROW} > {earlier}", 2)
            self.notes.append(f"{repeat} a size that stood before{first}; their users were added up.")
        histogram = ContributionHistogram.from_table(columns["size"], columns["users"].astype(np.float64))
        return Reduced(histogram, sizes_repeat=bool(again))

    def _first(self, mask: str, count: int) -> str:
        return said_first(self._marked(mask, 1), count)

    def _marked(self, mask: str, most: int) -> Found:
        """Where the first rows stand for which a mask is true."""
        return self._places().find(
            lambda _: f"SELECT {reading.ROW}, '' AS said, {mask} AS bad FROM source", most
        )


def _cleaned(cell: str) -> str:
    """SQL of a cell as a name of a column is read; 65279 is a byte-order mark."""
    return f"trim(regexp_replace(replace({cell}, chr(65279), ''), '\\s+', ' ', 'g'))"


def _number(column: str) -> str:
    """Return the name of a column as numbers in the view."""
    return f"n{column}"


@functools.cache
def _array_extract() -> Any:
    import ibis

    def array_extract(text: str, at: int) -> str: ...  # type: ignore[empty-body]

    return ibis.udf.scalar.builtin(array_extract)


def _as_it_stands(column: Value) -> Value:
    return column


def _strip(column: Any) -> Any:
    """`query.stripped` for DuckDB, which takes 2 s to strip 10 million cells and 0.2 s to see that it need not."""
    plain = column.re_replace(reading.FAR_QUOTED, r"\1") if column.type().is_string() else column
    # As `reading.padded` has it; what Ibis writes for the last character takes DuckDB several times as long.
    padded = (column < "!") | (_array_extract()(column, -1) <= " ")
    return padded.ifelse(query.stripped(plain), column)
