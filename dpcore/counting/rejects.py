"""Lines of text and JSON that DuckDB refuses or misreads, with sentences that name them.

DuckDB's own messages are not passed on, as they quote cells.
"""

from __future__ import annotations

import csv
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import IO

from dpcore.common.checks import Problems
from dpcore.common.progress import ShouldStop
from dpcore.counting.duck import Duck, check_stop
from dpcore.counting.formats import MAX_LINE_BYTES, open_lines
from dpcore.counting.relation import Relation, scan

LONG_LINE = f"the line is longer than {MAX_LINE_BYTES:,} bytes", "Leave out columns of long text"
QUOTES = "Close every quotation mark that opens a field, and double it inside a field"
NOT_JSON = 'Write one JSON object per line, such as {"user": "a", "value": 1}'

MAX_PLACES = 3
"""Largest number of locations that a message names for one reason."""
SHORT = "MISSING COLUMNS"
_LONG_QUOTATION = "LONG QUOTATION"
_OPENED = "a quotation mark is opened and not closed"
_MESSAGES = {
    _LONG_QUOTATION: (f"{_OPENED} within {csv.field_size_limit():,} characters", QUOTES),
    "UNQUOTED VALUE": (f"{_OPENED} at the end of its field", QUOTES),
    "LINE SIZE OVER MAXIMUM": LONG_LINE,
    "INVALID STATE": ("the line ends or quotation marks do not match the rest of the file", QUOTES),
}
REOPENED = "a field has a second quotation behind a closed one"
_CHUNK = 8_000_000
_SECOND_QUOTATION = re.compile(rb'" +"')
_QUOTED = re.compile(r' *"(?:[^"]|"")*"( +")?')


def describe_lines(message: str, lines: Sequence[int], count: int) -> str:
    """Return the message with the further lines to which it applies, and the number of all."""
    also = f"; also line {', '.join(f'{line:,}' for line in lines[1:MAX_PLACES])}" if len(lines) > 1 else ""
    return f"{message}{also}" + (f"; {count:,} lines in all" if count > MAX_PLACES else "")


@dataclass(frozen=True)
class Rejected:
    """The lines that are refused for one reason.

    Attributes:
        reason: DuckDB's name of the reason.
        count: Number of lines.
        lines: The first of them.
        num_fields: Number of fields of the first line, if that is the reason.
    """

    reason: str
    count: int
    lines: Sequence[int]
    num_fields: int


def list_rejected(duck: Duck, relation: Relation, should_stop: ShouldStop | None = None) -> list[Rejected]:
    """Return the lines that cannot be read, by reason.

    DuckDB is used only for lines with the right number of fields: it stores 1 kB for every cell that is missing or
    superfluous.

    Args:
        duck: The connection that refused the file.
        relation: The file.
        should_stop: Called while the fields of its lines are counted.

    Raises:
        duckdb.Error: The file cannot be read at all.
    """
    by_fields = _lines_by_fields(relation, should_stop)
    if any(reason.reason != SHORT for reason in by_fields):
        return by_fields
    if by_fields:  # with missing cells filled in, DuckDB rejects none of these lines
        relation = replace(relation, short_rows=True, is_single_threaded=True)
    duck.fetch_columns(f"SELECT count(COLUMNS(*)) FROM {scan(relation, rejects=True)}")
    lines_sql = f"list(DISTINCT line ORDER BY line)[:{MAX_PLACES}], arg_min(error_message, line)"
    rejected_sql = f"SELECT error_type::VARCHAR, count(DISTINCT line), {lines_sql} FROM reject_errors"
    rejected = duck.connection.execute(f"{rejected_sql} GROUP BY 1 ORDER BY 1").fetchall()
    for reason, count, lines, message in rejected:
        found_fields = re.search(r"Found: ([0-9]+)", message)
        by_fields.append(Rejected(reason, count, lines, int(found_fields[1]) if found_fields else 0))
    return by_fields


def _lines_by_fields(relation: Relation, should_stop: ShouldStop | None) -> list[Rejected]:
    """Return the lines with too few or too many fields or unmatched quotation marks; or that text is not UTF-8."""
    columns, last_line = len(relation.columns), 0
    counts, lines_by_reason = Counter[str](), dict[str, list[tuple[int, int]]]()

    def note(reason: str, fields: int = 0) -> None:
        """Count the current record under a reason, and keep its line if it is one of the first."""
        counts[reason] += 1
        if counts[reason] <= MAX_PLACES:
            lines_by_reason.setdefault(reason, []).append((relation.skip + last_line + 1, fields))

    # DuckDB ignores blanks after a closing mark.
    behind = re.compile(rf'" +(?=[{re.escape(relation.separator)}\n])')
    with relation.open_bytes() as file:
        lines = open_lines(file, relation.skip, newline=None)
        closed = (behind.sub('"', line) if '" ' in line else line for line in lines)
        records = csv.reader(closed, delimiter=relation.separator, skipinitialspace=True, strict=True)
        for index in itertools.count():
            try:
                if (record := next(records, None)) is None:
                    break
            except UnicodeDecodeError:
                return [Rejected("INVALID UNICODE", 1, (), 0)]
            except csv.Error as error:
                is_long = "limit" in str(error)
                if is_long and records.line_num > last_line + 1:
                    note(_LONG_QUOTATION)
                    break  # it is unknown whether the following text is inside the quotation
                note("LINE SIZE OVER MAXIMUM" if is_long else "UNQUOTED VALUE")
            else:
                # DuckDB ignores a delimiter at the end of a line.
                fields = len(record) - (len(record) == columns + 1 and not record[-1])
                if 0 < fields < columns:
                    note(SHORT, fields)
                elif fields > columns:
                    note("TOO MANY COLUMNS", fields)
            if index % 10_000 == 0:
                check_stop(should_stop)
            last_line = records.line_num
    places = lines_by_reason.items()
    return [Rejected(reason, counts[reason], [n for n, _ in its], its[0][1]) for reason, its in places]


def report_rejected(
    rejected: Sequence[Rejected],
    relation: Relation,
    problems: Problems,
    notes: list[str],
    skipped: int,
    suffix: str,
) -> bool:
    """Report rejected lines; return True if the only reason is that some are short, which is a note.

    Args:
        rejected: Result of `list_rejected`.
        relation: The file.
        problems: Collection to which problems are added.
        notes: List to which the note on short lines is added if there is no problem.
        skipped: Number of lines above the text that was read.
        suffix: Text after a line number: `` of file.csv``, or empty.
    """
    short = [entry for entry in rejected if entry.reason == SHORT]
    for entry in rejected:
        if entry.reason == SHORT:
            continue
        message, remedy = _MESSAGES.get(entry.reason, ("the line cannot be read", QUOTES))
        if entry.reason == "TOO MANY COLUMNS":
            message = f"{entry.num_fields:,} fields, but the header names {len(relation.columns)}"
            remedy = "Put quotation marks around fields with a delimiter inside, or add the missing names"
        lines = [line + skipped for line in entry.lines]
        problems.add(describe_lines(message, lines, entry.count), f"line {lines[0]:,}{suffix}", remedy)
    if len(short) < len(rejected) or not rejected:
        return False
    have = f"{short[0].count:,} lines have" if short[0].count > 1 else "One line has"
    first = f"(first: line {short[0].lines[0] + skipped:,}{suffix})"
    notes.append(f"{have} fewer fields than the header {first}; the cells that lack count as missing.")
    return True


def find_reopened_mark(
    relation: Relation, should_stop: ShouldStop | None = None, *, reads_all: bool = True
) -> int:
    """Return the first line with a field like ``"a" "b"``, which DuckDB silently reads as ``a b``; 0 for none.

    Args:
        relation: A text file in UTF-8.
        should_stop: Called while it is read.
        reads_all: True to read the whole file even if the first 8 MB have no quotation mark.

    Returns:
        The line, counted from 1; 0 if there is none.
    """
    with relation.open_bytes() as file:
        while block := file.read(_CHUNK):
            check_stop(should_stop)
            if b'"' in block and _SECOND_QUOTATION.search(block + file.readline()):
                break
            reads_all = reads_all or b'"' in block
            if not reads_all:
                return 0
        else:
            return 0
    # The same text may occur inside a quotation, where marks are doubled, so every field is checked.
    delimiter, raw, last_line = relation.separator, list[str](), relation.skip

    def noted(lines: Iterable[str]) -> Iterator[str]:
        """Yield the lines, and note each in ``raw``."""
        for line in lines:
            raw.append(line)
            yield line

    # The csv module fails on a field that is also too long for DuckDB, which reports it.
    with relation.open_bytes() as file, suppress(csv.Error):
        lines = open_lines(file, relation.skip)  # held, so that nothing closes it before the file
        for _ in csv.reader(noted(lines), delimiter=delimiter):
            if _is_reopened("".join(raw), delimiter):
                return last_line + 1
            last_line += len(raw)
            raw.clear()
    return 0


def _is_reopened(record: str, delimiter: str) -> bool:
    """Return True if a field of the record has blanks and further text behind a closed quotation."""
    position = 0 if '" ' in record else -1
    while position >= 0:
        field = _QUOTED.match(record, position)
        if field and field[1]:
            return True
        position = record.find(delimiter, field.end() if field else position) + 1 or -1
    return False


def refuse_bad_lines(stream: IO[bytes], suffix: str, should_stop: ShouldStop | None = None) -> None:
    """Raise InvalidInput for lines that are not a JSON object or repeat a key; called after DuckDB has refused some.

    Args:
        stream: Lines of UTF-8.
        suffix: Text after a line number in messages: `` of file.jsonl``, or empty.
        should_stop: Called while it is read.

    Raises:
        InvalidInput: There are such lines; names the first ones and their number.
    """
    lines_by_message: dict[str, list[int]] = {}
    for number, line in enumerate(stream, 1):
        if number % 10_000 == 0:
            check_stop(should_stop)
        if line.strip(b" \t\r\n\xef\xbb\xbf") and (message := _describe_bad_line(line)):
            lines_by_message.setdefault(message, []).append(number)
    with Problems() as problems:
        for message, lines in lines_by_message.items():
            problems.add(describe_lines(message, lines, len(lines)), f"line {lines[0]:,}{suffix}", NOT_JSON)


def _describe_bad_line(line: bytes) -> str:
    """Return the message on a line that is not a JSON object or repeats a key; empty if it is good."""
    try:
        text = line.decode("utf-8-sig")
        pairs = json.loads(text, object_pairs_hook=list)
        if isinstance(json.loads(text), dict):
            return "a key stands twice in one object" if len(dict(pairs)) < len(pairs) else ""
    except (ValueError, RecursionError):
        pass
    return "this is not a JSON object"
