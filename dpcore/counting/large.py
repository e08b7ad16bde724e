"""Large files through DuckDB: views over them, text read as numbers, and what is wrong with them in sentences.

Nothing that DuckDB says is passed on, as its messages quote lines of the file, which hold user ids.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from dpcore.checks import Problems
from dpcore.counting import formats, query
from dpcore.counting.duck import Duck, Workspace, identifier, literal
from dpcore.counting.files import Part, safe_path
from dpcore.counting.formats import Format, Packing
from dpcore.counting.reduce import Reduced, Reduction
from dpcore.counting.running import ShouldStop, Steps, check_stop
from dpcore.errors import InvalidInput, Problem
from dpcore.numerals import SPACED, SPACES, Marks, number_pattern, one_group, settle_marks
from dpcore.roles import MissingUsers, Roles
from dpcore.tables import MAX_LINE_BYTES, shown

_QUOTES = "Check that every quotation mark that opens a field is closed, and doubled inside a field"
_REJECTED = {
    "TOO MANY COLUMNS": (
        "there are more fields than the header names",
        "Put quotation marks around text that contains the delimiter, or add the missing column names",
    ),
    "UNQUOTED VALUE": ("the quotation marks do not match", _QUOTES),
    "LINE SIZE OVER MAXIMUM": (
        f"the line is longer than the {MAX_LINE_BYTES:,} bytes a row of a table may have",
        "Leave out columns of long text; user, value and task columns are enough",
    ),
    "INVALID STATE": ("the line ends or quotation marks do not match the rest of the file", _QUOTES),
}
_CHUNK = 8_000_000
_PLAIN = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?"


@dataclass(frozen=True)
class Reading:
    """How one part is read: as it was found, or as it had to be changed after DuckDB refused it."""

    part: Part
    short_rows: bool = False


class Large:
    """Large files on their way to a `Reduced`.

    Args:
        parts: The files, of the same columns in whatever order.
        roles: Events; what each column means.
        memory_limit: Bytes that DuckDB may use.
        should_stop: Asked all the time.
        steps: Told how far it is.
        notes: Takes what a person should know.
    """

    def __init__(
        self,
        parts: tuple[Part, ...],
        roles: Roles,
        memory_limit: int,
        should_stop: ShouldStop | None,
        steps: Steps,
        notes: list[str],
    ) -> None:
        self.columns = parts[0].columns
        self.roles, self.notes, self._steps, self._stop = roles, notes, steps, should_stop
        self._memory_limit, self._one_thread = memory_limit, False
        self._workspace = Workspace()
        self._readings = [Reading(replace(p, path=safe_path(p.path, self._workspace))) for p in parts]

    def reduce(self) -> Reduced:
        """Count; a file that turns out not to be UTF-8, or to have short rows, is read again as it is.

        Raises:
            InvalidInput: The files cannot be counted; all problems at once.
            StoppedError: Stop was pressed.
        """
        import duckdb

        try:
            for at, reading in enumerate(self._readings):
                if not reading.part.encoding.startswith("utf-8") and reading.part.format is Format.TEXT:
                    self._recode(at, reading.part.encoding)
            self._refuse_second_headers()
            for _ in range(3 + len(self._readings)):
                said = len(self.notes)
                try:
                    with self._duck() as duck:
                        return self._reduce(duck)
                except duckdb.OutOfMemoryException:
                    if not self._one_thread:  # every thread has buffers of its own
                        self._one_thread = True
                        del self.notes[said:]
                        continue
                    what = f"counting needs more than the memory limit of {self._memory_limit:,} bytes"
                    remedy = "Raise the limit, or free space in the temporary folder"
                    raise InvalidInput([Problem(what, "", remedy)]) from None
                except duckdb.Error:
                    del self.notes[said:]
                    self._mend()
            raise InvalidInput([self._damaged(self._readings[0].part)])
        finally:
            self._workspace.close()

    @contextmanager
    def _duck(self) -> Iterator[Duck]:
        files = [reading.part.path for reading in self._readings]
        duck = Duck(files, self._workspace.folder, self._memory_limit, self._stop, self._steps)
        try:
            if self._one_thread:
                duck.connection.execute("SET threads = 1")
            yield duck
        finally:
            duck.close()

    def _reduce(self, duck: Duck) -> Reduced:
        import ibis

        duck.connection.execute(f"CREATE TEMP VIEW source AS {self._source()}")
        table = duck.table("source")
        names = {column: f"c{at}" for at, column in enumerate(self.columns)}
        roles = _renamed(self.roles, names)
        value = None
        if roles.value is not None and table[roles.value].type().is_string():
            value = self._number(duck, table[roles.value], table)
        elif roles.value is not None and not table[roles.value].type().is_numeric():
            where = f"column {shown(self.roles.value or '')}"
            raise InvalidInput(
                [Problem("the column does not hold numbers", where, "Choose another value column")]
            )
        rows = query.events(table, roles, value, has_nan=True, strip=_strip)

        def keep(name: str, expression: Any) -> Any:
            self._steps.total += 1
            duck.execute(
                f"CREATE TEMP TABLE {identifier(name)} AS {ibis.to_sql(expression, dialect='duckdb')}"
            )
            return duck.table(name)

        if self._several_passes():
            rows = keep("rows", rows)
        reduction = Reduction(
            rows, self.roles, self.columns, duck.run, keep, lambda kind: self._place(kind, table, roles, value),
            self.notes,
        )  # fmt: skip
        return reduction.reduce()

    def _several_passes(self) -> bool:
        """Whether the few columns are kept on the way: reading text again costs more than keeping them."""
        several = self.roles.value is not None or self.roles.task is not None
        return several and any(reading.part.format is not Format.PARQUET for reading in self._readings)

    # --- reading ------------------------------------------------------------------------------------------

    def _source(self) -> str:
        selects = []
        for reading in self._readings:
            part = reading.part
            inner = {column: f"x{at}" for at, column in enumerate(part.columns)}
            if part.format is Format.PARQUET or part.format is Format.JSON:
                inner = {column: identifier(column) for column in part.columns}
            columns = ", ".join(f"{inner[column]} AS c{at}" for at, column in enumerate(self.columns))
            where = ""
            if part.format is Format.TEXT and self.roles.missing_users is MissingUsers.ONE_USER:
                # A blank line names nobody, but it is no row either.
                filled = " OR ".join(
                    f"nullif(trim(x{at}), '') IS NOT NULL" for at in range(len(part.columns))
                )
                where = f" WHERE {filled}" if len(part.columns) > 1 else ""
            selects.append(f"SELECT {columns} FROM {self._scan(reading)}{where}")
        return " UNION ALL ".join(selects)

    @staticmethod
    def _scan(reading: Reading, rejects: bool = False) -> str:
        part = reading.part
        path = literal(str(part.path))
        if part.format is Format.PARQUET:
            return f"read_parquet({path})"
        packing = f"compression = '{part.packing.value}'"
        if part.format is Format.JSON:
            columns = ", ".join(f"{literal(column)}: 'VARCHAR'" for column in part.columns)
            return f"read_json({path}, format = 'newline_delimited', {packing}, columns = {{{columns}}})"
        columns = ", ".join(f"'x{at}': 'VARCHAR'" for at in range(len(part.columns)))
        options = [
            "auto_detect = false", "header = true", f"skip = {part.skip}", packing,
            f"columns = {{{columns}}}", f"delim = {literal(part.delimiter or chr(0x1F))}",
            "quote = '\"'", "escape = '\"'", f"max_line_size = {MAX_LINE_BYTES}",
        ]  # fmt: skip
        if reading.short_rows:
            options += ["null_padding = true", "parallel = false"]
        if rejects:
            options.append("store_rejects = true")
        return f"read_csv({path}, {', '.join(options)})"

    def _recode(self, at: int, encoding: str) -> None:
        part = self._readings[at].part
        target = self._workspace.folder / f"utf8-{at}"
        self._steps.total += 1
        formats.recode(part.path, part.packing, encoding, target, part.name, self._stop, self._steps)
        changed = replace(part, path=target, packing=Packing.NONE, encoding="utf-8")
        self._readings[at] = replace(self._readings[at], part=changed)

    def _refuse_second_headers(self) -> None:
        """Files that were joined hold their header again, which would count as one more user.

        Zstandard files are read to their end here, as DuckDB takes one that was cut off for whole.
        """
        problems = Problems()
        for reading in self._readings:
            part = reading.part
            if part.packing is Packing.GZIP or (
                part.format is not Format.TEXT and part.packing is Packing.NONE
            ):
                continue
            with formats.plain_bytes(part.path, part.packing, part.name) as file:
                header = b""
                for _ in range(part.skip + 1):
                    header = file.readline()
                header = header.strip().removeprefix(b"\xef\xbb\xbf")
                needle = b"\n" + header
                found, kept = False, b""
                while block := file.read(_CHUNK):
                    check_stop(self._stop)
                    found = found or _stands_in(needle, kept + block)
                    if found and part.packing is Packing.NONE:
                        break
                    kept = block[-len(header) - 2 :]
            if found and part.format is Format.TEXT and len(part.columns) > 1:
                problems.add(
                    "the header row stands among the data again", f"file {shown(part.name)}",
                    "Remove it (were several files joined?)",
                )  # fmt: skip
        problems.raise_if_any()

    # --- numbers ------------------------------------------------------------------------------------------

    def _number(self, duck: Duck, column: Any, table: Any) -> Any:
        """The text column as numbers, with the marks settled once for all cells, as in `dpcore.numerals`."""
        cells = column.strip()
        # Plain numbers settle it with two patterns instead of eight.
        odd = (cells != "") & ~cells.re_search(f"^(?:{_PLAIN})$") | cells.re_search(f"^(?:{one_group('.')})$")
        self._steps.total += 1
        if not duck.run(table.aggregate(odd=odd.ifelse(1, 0).max().cast("int64")))["odd"][0] > 0:
            return cells.nullif("").try_cast("float64")
        cells = cells.replace("\u2212", "-")
        spaced = cells.re_search(f"^(?:{SPACED})$")
        cells = spaced.ifelse(cells.re_replace(f"[{SPACES}]", ""), cells)
        either = {mark: cells.re_search(f"^(?:{number_pattern(mark)})$") for mark in ".,"}
        grouped = {mark: cells.re_search(f"^(?:{one_group(mark)})$") for mark in ".,"}
        marked = cells.re_search("[.,]")
        self._steps.total += 1
        asked = {
            f"{name}_{at}": (marked & mask).ifelse(1, 0).sum().cast("int64")
            for at, (mark, other) in enumerate(((".", ","), (",", ".")))
            for name, mask in (("only", either[mark] & ~either[other]), ("group", grouped[mark]))
        }
        found = {name: bool(numbers[0] > 0) for name, numbers in duck.run(table.aggregate(**asked)).items()}
        seen = Marks(found["only_0"], found["only_1"], found["group_0"], found["group_1"])
        name = self.roles.value or ""
        delimiters = {reading.part.delimiter for reading in self._readings}
        where = dict.fromkeys(".,", f"column {shown(name)}")
        delimiter = delimiters.pop() if len(delimiters) == 1 else ""
        point, problem, note = settle_marks(seen, name, where, delimiter, whole=False)
        if problem is not None:
            raise InvalidInput([problem])
        self.notes += [note] if note else []
        plain = cells.replace("," if point == "." else ".", "").replace(",", ".")
        # Text that is no number becomes infinite, so that it is told from a blank cell; both are refused.
        number = either[point].ifelse(plain, "inf").try_cast("float64")
        return (cells.nullif("").isnull()).ifelse(None, number)

    # --- what is wrong ------------------------------------------------------------------------------------

    def _place(self, kind: str, table: Any, roles: Roles, value: Any) -> str:
        """The first rows with a kind of cell, counted under the header. Only asked where one is refused."""
        import ibis

        with self._duck() as duck:
            duck.connection.execute("SET preserve_insertion_order = true")
            duck.connection.execute(f"CREATE TEMP VIEW source AS {self._source()}")
            rows = query.events(table, roles, value, has_nan=True, strip=_strip)
            bad = rows.select(bad=query.bad_values(rows, roles)[kind])
            sql = ibis.to_sql(bad, dialect="duckdb")
            numbered = f"SELECT row_number() OVER () AS number, bad FROM ({sql})"
            found = duck.columns(f"SELECT number FROM ({numbered}) WHERE bad LIMIT 3")["number"]
        rows_ = [f"{int(number):,}" for number in found]
        of = " over all files" if len(self._readings) > 1 else ""
        if not rows_:
            return ""
        return (
            f"row {rows_[0]} under the header{of}"
            if len(rows_) == 1
            else f"rows {', '.join(rows_)} under the header{of}"
        )

    def _mend(self) -> None:
        """Find out why DuckDB refused; change how the files are read, or refuse with sentences."""
        import duckdb

        problems = Problems()
        changed = False
        for at, reading in enumerate(self._readings):
            part = reading.part
            if part.format is not Format.TEXT:
                with self._duck() as duck:
                    try:
                        duck.columns(
                            f"SELECT count(*) AS n FROM (SELECT COLUMNS(*)::VARCHAR FROM {self._scan(reading)})"
                        )
                    except duckdb.Error:
                        problems.extend([self._damaged(part)])
                continue
            with self._duck() as duck:
                try:
                    duck.columns(
                        f"SELECT count(x0) AS n FROM {self._scan(reading, rejects=not reading.short_rows)}"
                    )
                    found = duck.connection.execute(
                        "SELECT error_type::VARCHAR, count(DISTINCT line), list(DISTINCT line ORDER BY line)[:3] "
                        "FROM reject_errors GROUP BY 1 ORDER BY 1"
                    ).fetchall() if not reading.short_rows else []  # fmt: skip
                except duckdb.Error:
                    problems.extend([self._damaged(part)])
                    continue
            kinds = {kind for kind, _, _ in found}
            if "INVALID ENCODING" in kinds or "INVALID UNICODE" in kinds:
                self._recode(at, "cp1252")
                self.notes.append(f"{shown(part.name)} is not UTF-8, so it was read as Windows-1252.")
                changed = True
            elif kinds and kinds <= {"MISSING COLUMNS"}:
                count, first = found[0][1], found[0][2][0]
                lines = f"{count:,} lines have" if count > 1 else "One line has"
                self.notes.append(
                    f"{lines} fewer fields than the header (first: line {first:,} of {shown(part.name)}); "
                    "the cells that are not there count as missing."
                )
                self._readings[at] = replace(reading, short_rows=True)
                changed = True
            else:
                self._say_rejected(part, found, problems)
        problems.raise_if_any()
        if not changed:
            raise InvalidInput([self._damaged(self._readings[0].part)])

    @staticmethod
    def _say_rejected(part: Part, found: list[tuple[str, int, list[int]]], problems: Problems) -> None:
        for kind, count, lines in found:
            if kind == "MISSING COLUMNS":
                continue
            what, remedy = _REJECTED.get(kind, ("the line cannot be read", _QUOTES))
            also = f"; also line {', '.join(f'{line:,}' for line in lines[1:])}" if len(lines) > 1 else ""
            total = f"; {count:,} lines in all" if count > 3 else ""
            problems.add(f"{what}{also}{total}", f"line {lines[0]:,} of {shown(part.name)}", remedy)

    @staticmethod
    def _damaged(part: Part) -> Problem:
        if part.packing is not Packing.NONE:
            return formats.damaged_archive(part.packing, part.name)
        what = {
            Format.TEXT: "the file cannot be read as a table to its end",
            Format.JSON: "some line is not a JSON object",
        }.get(part.format, "the Parquet file is damaged or cut off")
        return Problem(what, f"file {shown(part.name)}", "Export it again")


def _stands_in(line: bytes, block: bytes) -> bool:
    """Whether a line (with the line end before it) stands in a block as a whole."""
    at = block.find(line)
    while at >= 0:
        if block[at + len(line) : at + len(line) + 1] in (b"\r", b"\n"):
            return True
        at = block.find(line, at + 1)
    return False


def _strip(column: Any) -> Any:
    """`query.stripped` for DuckDB, which takes 2 s to strip 10 million cells and 0.4 s to see that it need not."""
    # Every kind of blank sorts at or before the space, by code point, and so does nothing at all.
    blank = (column.left(1) <= " ") | (column.right(1) <= " ")
    return blank.ifelse(query.stripped(column), column)


def _renamed(roles: Roles, names: dict[str, str]) -> Roles:
    return replace(
        roles,
        user=names[roles.user or ""],
        further_user=tuple(names[column] for column in roles.further_user),
        task=names[roles.task] if roles.task is not None else None,
        value=names[roles.value] if roles.value is not None else None,
    )
