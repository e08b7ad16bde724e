"""Lines of text that DuckDB refuses, in sentences that name them; nothing that it says of their cells is passed on."""

from __future__ import annotations

import csv
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from dpcore.common.checks import Problems
from dpcore.common.progress import ShouldStop
from dpcore.counting import formats
from dpcore.counting.duck import Duck
from dpcore.counting.parts import Part
from dpcore.counting.reading import Reading, scan
from dpcore.counting.running import check_stop
from dpcore.data.delimited_text import DELIMITER_NAMES, LONG_LINE, QUOTES

PLACES = 3
"""How many places of one kind are named."""
SHORT = "MISSING COLUMNS"
_LONG_QUOTATION = "LONG QUOTATION"
_SAID = {
    _LONG_QUOTATION: (
        f"a quotation mark is opened and not closed within {csv.field_size_limit():,} characters",
        QUOTES,
    ),
    "UNQUOTED VALUE": ("a quotation mark is opened and not closed at the end of its field", QUOTES),
    "LINE SIZE OVER MAXIMUM": LONG_LINE,
    "INVALID STATE": ("the line ends or quotation marks do not match the rest of the file", QUOTES),
}
REOPENED = "behind a quotation mark that is closed stands another one in the same field"
_CHUNK = 8_000_000
_AGAIN = re.compile(rb'" +"')
_QUOTED = re.compile(r' *"(?:[^"]|"")*"( +")?')


def at_lines(what: str, lines: Sequence[int], count: int) -> str:
    """Return what is wrong with the first of some lines, which others it is wrong with, and with how many in all."""
    also = f"; also line {', '.join(f'{line:,}' for line in lines[1:PLACES])}" if len(lines) > 1 else ""
    return f"{what}{also}" + (f"; {count:,} lines in all" if count > PLACES else "")


@dataclass(frozen=True)
class Rejected:
    """Lines that are refused for one reason.

    Attributes:
        kind: As DuckDB calls it.
        count: How many.
        lines: The first of them.
        fields: How many fields the first one has, where that is the reason.
    """

    kind: str
    count: int
    lines: Sequence[int]
    fields: int


def lines_of(duck: Duck, reading: Reading, should_stop: ShouldStop | None = None) -> list[Rejected]:
    """Return the lines that cannot be read, by kind.

    DuckDB names only lines of which the fields say nothing: it holds 1 kB of every cell that is missing or too many.

    Args:
        duck: What refused the file.
        reading: How it was read.
        should_stop: Asked while the fields of its lines are counted.

    Raises:
        duckdb.Error: The file cannot be read at all.
    """
    counted = _lines_by_fields(reading.part, should_stop)
    if any(kind.kind != SHORT for kind in counted):
        return counted
    if counted:  # with the missing cells filled in, DuckDB holds none of these lines
        reading = replace(reading, short_rows=True, alone=True)
    duck.columns(f"SELECT count(COLUMNS(*)) FROM {scan(reading, rejects=True)}")
    rejected = duck.connection.execute(
        f"SELECT error_type::VARCHAR, count(DISTINCT line), list(DISTINCT line ORDER BY line)[:{PLACES}], "
        "arg_min(error_message, line) FROM reject_errors GROUP BY 1 ORDER BY 1"
    ).fetchall()
    return counted + [
        Rejected(kind, count, lines, _fields(message)) for kind, count, lines, message in rejected
    ]


def _lines_by_fields(part: Part, should_stop: ShouldStop | None) -> list[Rejected]:
    """The lines that have too few or too many fields, or marks that do not fit; or the first that is not UTF-8."""
    columns, began = len(part.columns), 0
    counts, places = Counter[str](), dict[str, list[tuple[int, int]]]()

    def note(kind: str, fields: int = 0) -> None:
        counts[kind] += 1
        if counts[kind] <= PLACES:
            places.setdefault(kind, []).append((part.skip + began + 1, fields))

    behind = re.compile(rf'" +(?=[{re.escape(part.separator)}\n])')  # a closing mark: nothing to DuckDB
    with formats.plain_bytes(part.path, part.packing, part.name) as file:
        lines = formats.lines_of(file, part.skip, newline=None)
        closed = (behind.sub('"', line) if '" ' in line else line for line in lines)
        records = csv.reader(closed, delimiter=part.separator, skipinitialspace=True, strict=True)
        for at in itertools.count():
            try:
                record = next(records)
            except StopIteration:
                break
            except UnicodeDecodeError:
                return [Rejected("INVALID UNICODE", 1, (), 0)]
            except csv.Error as error:
                is_long = "limit" in str(error)
                if is_long and records.line_num > began + 1:
                    note(_LONG_QUOTATION)
                    break  # of what follows nobody can tell whether it stands inside
                note("LINE SIZE OVER MAXIMUM" if is_long else "UNQUOTED VALUE")
            else:
                # DuckDB takes a delimiter at the end of a line for none.
                fields = len(record) - (len(record) == columns + 1 and not record[-1])
                if 0 < fields < columns:
                    note(SHORT, fields)
                elif fields > columns:
                    note("TOO MANY COLUMNS", fields)
            if at % 10_000 == 0:
                check_stop(should_stop)
            began = records.line_num
    return [Rejected(kind, counts[kind], [n for n, _ in its], its[0][1]) for kind, its in places.items()]


def _fields(message: str) -> int:
    match = re.search(r"Found: ([0-9]+)", message)
    return int(match[1]) if match else 0


def say(
    found: Sequence[Rejected], part: Part, problems: Problems, notes: list[str], skipped: int, of: str
) -> bool:
    """Say what is wrong with lines; returns whether nothing is but that some are short.

    Args:
        found: As `lines_of` gives it.
        part: The file.
        problems: Takes what is wrong.
        notes: Takes what is said of short lines, where nothing is wrong.
        skipped: Lines above what was read.
        of: What follows the line: `` of file.csv``, or nothing.
    """
    short = [kind for kind in found if kind.kind == SHORT]
    for kind in found:
        if kind.kind == SHORT:
            continue
        what, remedy = _SAID.get(kind.kind, ("the line cannot be read", QUOTES))
        if kind.kind == "TOO MANY COLUMNS":
            what = f"{kind.fields:,} fields, but the header names {len(part.columns)}"
            name = DELIMITER_NAMES.get(part.delimiter, "the delimiter")
            text = f"text (or numbers with decimal commas) that contains {name}"
            remedy = f"Put quotation marks around {text}, or add the missing column names"
        lines = [line + skipped for line in kind.lines]
        problems.add(at_lines(what, lines, kind.count), f"line {lines[0]:,}{of}", remedy)
    if len(short) < len(found) or not found:
        return False
    have = f"{short[0].count:,} lines have" if short[0].count > 1 else "One line has"
    notes.append(
        f"{have} fewer fields than the header (first: line {short[0].lines[0] + skipped:,}{of}); "
        "the cells that are not there count as missing."
    )
    return True


def reopened_mark(part: Part, should_stop: ShouldStop | None = None, *, whole: bool = True) -> int:
    """Return the first line with a field like ``"a" "b"``, which DuckDB takes for ``a b`` without a word.

    Args:
        part: A file of text in UTF-8.
        should_stop: Asked while it is read.
        whole: Whether all of it is read even if no mark stands in the first 8 MB.

    Returns:
        The line, counted from 1; 0 for none.
    """
    with formats.plain_bytes(part.path, part.packing, part.name) as file:
        while block := file.read(_CHUNK):
            check_stop(should_stop)
            if b'"' in block and _AGAIN.search(block + file.readline()):
                break
            whole = whole or b'"' in block
            if not whole:
                return 0
        else:
            return 0
    # Inside a quotation, where marks are doubled, the same may stand; so every field is looked at.
    delimiter, raw, began = part.separator, list[str](), part.skip

    def noted(lines: Iterable[str]) -> Iterator[str]:
        for line in lines:
            raw.append(line)
            yield line

    # The csv module gives up on a field that is too long for DuckDB, too, which says so.
    with formats.plain_bytes(part.path, part.packing, part.name) as file, suppress(csv.Error):
        lines = formats.lines_of(file, part.skip)
        for _ in csv.reader(noted(lines), delimiter=delimiter):
            if _is_reopened("".join(raw), delimiter):
                return began + 1
            began += len(raw)
            raw.clear()
    return 0


def _is_reopened(record: str, delimiter: str) -> bool:
    at = 0 if '" ' in record else -1
    while at >= 0:
        field = _QUOTED.match(record, at)
        if field and field[1]:
            return True
        at = record.find(delimiter, field.end() if field else at) + 1 or -1
    return False
