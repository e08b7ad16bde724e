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
from dpcore.counting.relation import Relation, write_scan

LONG_LINE_MESSAGE_AND_REMEDY = (
    f"the line is longer than {MAX_LINE_BYTES:,} bytes",
    "Leave out columns of long text",
)
QUOTES_REMEDY = "Close every quotation mark that opens a field, and double it inside a field"
JSON_REMEDY = 'Write one JSON object per line, such as {"user": "a", "value": 1}'

MAX_PLACES = 3
"""Largest number of locations that a message names for one reason."""
SHORT_REASON = "MISSING COLUMNS"
_LONG_QUOTATION = "LONG QUOTATION"
_UNCLOSED_QUOTATION_TEXT = "a quotation mark is opened and not closed"
_MESSAGES_BY_REASON = {
    _LONG_QUOTATION: (
        f"{_UNCLOSED_QUOTATION_TEXT} within {csv.field_size_limit():,} characters",
        QUOTES_REMEDY,
    ),
    "UNQUOTED VALUE": (f"{_UNCLOSED_QUOTATION_TEXT} at the end of its field", QUOTES_REMEDY),
    "LINE SIZE OVER MAXIMUM": LONG_LINE_MESSAGE_AND_REMEDY,
    "INVALID STATE": ("the line ends or quotation marks do not match the rest of the file", QUOTES_REMEDY),
}
SECOND_QUOTATION_MESSAGE = "a field has a second quotation behind a closed one"
_CHUNK_BYTES = 8_000_000
_SECOND_QUOTATION_PATTERN = re.compile(rb'" +"')
_QUOTED_PATTERN = re.compile(r' *"(?:[^"]|"")*"( +")?')


def describe_lines(line_message: str, line_numbers: Sequence[int], num_lines: int) -> str:
    """Return the message with the second and third of its lines, if any, and the number of all if there are more."""
    further_text = ", ".join(f"{line_number:,}" for line_number in line_numbers[1:MAX_PLACES])
    also_text = f"; also line {further_text}" if further_text else ""
    return f"{line_message}{also_text}" + (f"; {num_lines:,} lines in all" if num_lines > MAX_PLACES else "")


@dataclass(frozen=True)
class RejectedLines:
    """The lines that are refused for one reason.

    Attributes:
        reason: DuckDB's name of the reason.
        num_lines: Number of lines.
        first_line_numbers: The numbers of the first of them, at most `MAX_PLACES`.
        num_fields: Number of fields of the first line, if that is the reason; else 0.
    """

    reason: str
    num_lines: int
    first_line_numbers: Sequence[int]
    num_fields: int


def list_rejected(
    duck: Duck, relation: Relation, should_stop: ShouldStop | None = None
) -> list[RejectedLines]:
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
    rejected_lines = _check_fields(relation, should_stop)
    if any(rejected.reason != SHORT_REASON for rejected in rejected_lines):
        return rejected_lines
    if rejected_lines:  # with missing cells filled in, DuckDB rejects none of these lines
        relation = replace(relation, has_short_rows=True, is_single_threaded=True)
    duck.fetch_columns(f"SELECT count(COLUMNS(*)) FROM {write_scan(relation, stores_rejects=True)}")
    first_lines_sql = f"list(DISTINCT line ORDER BY line)[:{MAX_PLACES}], arg_min(error_message, line)"
    rejected_sql = f"SELECT error_type::VARCHAR, count(DISTINCT line), {first_lines_sql} FROM reject_errors"
    reason_rows = duck.connection.execute(f"{rejected_sql} GROUP BY 1 ORDER BY 1").fetchall()
    for refusal_reason, num_lines, first_line_numbers, error_message in reason_rows:
        fields_match = re.search(r"Found: ([0-9]+)", error_message)
        num_fields = int(fields_match[1]) if fields_match else 0
        rejected_lines.append(RejectedLines(refusal_reason, num_lines, first_line_numbers, num_fields))
    return rejected_lines


def _check_fields(relation: Relation, should_stop: ShouldStop | None) -> list[RejectedLines]:
    """Return by reason lines that are overlong, have a wrong number of fields or unmatched marks, or are not UTF-8.

    If some text is not UTF-8 that is the only reason, without line numbers.
    """
    num_columns, last_line_number = relation.num_stored_columns, 0
    counts_by_reason, line_field_pairs_by_reason = Counter[str](), dict[str, list[tuple[int, int]]]()

    def note_line(refusal_reason: str, num_fields: int = 0) -> None:
        """Count the current record under a reason, and keep its line if it is one of the first."""
        counts_by_reason[refusal_reason] += 1
        if counts_by_reason[refusal_reason] <= MAX_PLACES:
            line_number = relation.num_skipped_lines + last_line_number + 1
            line_field_pairs_by_reason.setdefault(refusal_reason, []).append((line_number, num_fields))

    # DuckDB ignores blanks after a closing mark.
    blanks_pattern = re.compile(rf'" +(?=[{re.escape(relation.separator)}\n])')
    with relation.open_bytes() as binary_stream:
        line_stream = open_lines(binary_stream, relation.num_skipped_lines, newline=None)
        clean_lines = (blanks_pattern.sub('"', line) if '" ' in line else line for line in line_stream)
        csv_reader = csv.reader(clean_lines, delimiter=relation.separator, skipinitialspace=True, strict=True)
        for record_index in itertools.count():
            try:
                if (csv_record := next(csv_reader, None)) is None:
                    break
            except UnicodeDecodeError:
                return [RejectedLines("INVALID UNICODE", 1, (), 0)]
            except csv.Error as error:
                is_long = "limit" in str(error)
                if is_long and csv_reader.line_num > last_line_number + 1:
                    note_line(_LONG_QUOTATION)
                    break  # it is unknown whether the following text is inside the quotation
                note_line("LINE SIZE OVER MAXIMUM" if is_long else "UNQUOTED VALUE")
            else:
                # DuckDB ignores a delimiter at the end of a line.
                num_fields = len(csv_record) - (len(csv_record) == num_columns + 1 and not csv_record[-1])
                if 0 < num_fields < num_columns:
                    note_line(SHORT_REASON, num_fields)
                elif num_fields > num_columns:
                    note_line("TOO MANY COLUMNS", num_fields)
            if record_index % 10_000 == 0:
                check_stop(should_stop)
            last_line_number = csv_reader.line_num
    return [
        RejectedLines(reason, counts_by_reason[reason], [n for n, _ in pairs], pairs[0][1])
        for reason, pairs in line_field_pairs_by_reason.items()
    ]


def report_rejected(
    rejected_lines: Sequence[RejectedLines],
    relation: Relation,
    problems: Problems,
    notes: list[str],
    num_skipped: int,
    file_suffix: str,
) -> bool:
    """Report rejected lines; return True if the only reason is that some are short, which is a note.

    Args:
        rejected_lines: Result of `list_rejected`.
        relation: The file.
        problems: Collection to which problems are added.
        notes: List to which the note on short lines is added if there is no problem.
        num_skipped: Number of lines above the text that was read.
        file_suffix: Text after a line number: `` of file.csv``, or empty.
    """
    short_lines = [rejected for rejected in rejected_lines if rejected.reason == SHORT_REASON]
    for rejected in rejected_lines:
        if rejected.reason == SHORT_REASON:
            continue
        message, remedy = "the line cannot be read", QUOTES_REMEDY
        message, remedy = _MESSAGES_BY_REASON.get(rejected.reason, (message, remedy))
        if rejected.reason == "TOO MANY COLUMNS":
            message = f"{rejected.num_fields:,} fields, but the header names {relation.num_stored_columns}"
            remedy = "Put quotation marks around fields with a delimiter inside, or add the missing names"
        line_numbers = [line_number + num_skipped for line_number in rejected.first_line_numbers]
        message = describe_lines(message, line_numbers, rejected.num_lines)
        problems.add(message, f"line {line_numbers[0]:,}{file_suffix}", remedy)
    if len(short_lines) < len(rejected_lines) or not rejected_lines:
        return False
    have_text = f"{short_lines[0].num_lines:,} lines have" if short_lines[0].num_lines > 1 else "One line has"
    first_line_text = f"(first: line {short_lines[0].first_line_numbers[0] + num_skipped:,}{file_suffix})"
    missing_cells_text = "the cells that lack count as missing"
    notes.append(f"{have_text} fewer fields than the header {first_line_text}; {missing_cells_text}.")
    return True


def find_second_quotation(
    relation: Relation, should_stop: ShouldStop | None = None, *, reads_all: bool = True
) -> int:
    """Return the number of the first line of the first record with a field like ``"a" "b"``; 0 if there is none.

    DuckDB silently reads such a field as ``a b``.

    Args:
        relation: A text file in UTF-8.
        should_stop: Called while it is read.
        reads_all: True to read the whole file even if the first 8 MB have no quotation mark.

    Returns:
        The line, counted from 1; 0 if there is none.
    """
    with relation.open_bytes() as binary_stream:
        while byte_block := binary_stream.read(_CHUNK_BYTES):
            check_stop(should_stop)
            if b'"' in byte_block and _SECOND_QUOTATION_PATTERN.search(byte_block + binary_stream.readline()):
                break
            reads_all = reads_all or b'"' in byte_block
            if not reads_all:
                return 0
        else:
            return 0
    # The same text may occur inside a quotation, where marks are doubled, so every field is checked.
    delimiter, record_lines, last_line_number = relation.separator, list[str](), relation.num_skipped_lines

    def note_lines(lines: Iterable[str]) -> Iterator[str]:
        """Yield the lines, and add each to ``record_lines``."""
        for line in lines:
            record_lines.append(line)
            yield line

    # The csv module fails on a field that is also too long for DuckDB, which reports it.
    with relation.open_bytes() as binary_stream, suppress(csv.Error):
        # Held, so that nothing closes it before the file.
        line_stream = open_lines(binary_stream, relation.num_skipped_lines)
        for _ in csv.reader(note_lines(line_stream), delimiter=delimiter):
            if _is_reopened("".join(record_lines), delimiter):
                return last_line_number + 1
            last_line_number += len(record_lines)
            record_lines.clear()
    return 0


def _is_reopened(record_text: str, delimiter: str) -> bool:
    """Return True if a field of the record has blanks and further text behind a closed quotation."""
    position = 0 if '" ' in record_text else -1
    while position >= 0:
        field_match = _QUOTED_PATTERN.match(record_text, position)
        if field_match and field_match[1]:
            return True
        position = record_text.find(delimiter, field_match.end() if field_match else position) + 1 or -1
    return False


def refuse_bad_lines(stream: IO[bytes], file_suffix: str, should_stop: ShouldStop | None = None) -> None:
    """Raise InvalidInput for lines that are not a JSON object or repeat a key; called after DuckDB has refused some.

    Args:
        stream: Lines of UTF-8.
        file_suffix: Text after a line number in messages: `` of file.jsonl``, or empty.
        should_stop: Called while it is read.

    Raises:
        InvalidInput: There are such lines; names the first ones and their number.
    """
    line_numbers_by_message: dict[str, list[int]] = {}
    for line_number, line_bytes in enumerate(stream, 1):
        if line_number % 10_000 == 0:
            check_stop(should_stop)
        if line_bytes.strip(b" \t\r\n\xef\xbb\xbf") and (line_message := _describe_bad_line(line_bytes)):
            line_numbers_by_message.setdefault(line_message, []).append(line_number)
    with Problems() as problems:
        for line_message, line_numbers in line_numbers_by_message.items():
            line_message = describe_lines(line_message, line_numbers, len(line_numbers))
            problems.add(line_message, f"line {line_numbers[0]:,}{file_suffix}", JSON_REMEDY)


def _describe_bad_line(line_bytes: bytes) -> str:
    """Return the message on a line that is not a JSON object or repeats a key; empty if it is good."""
    try:
        line_text = line_bytes.decode("utf-8-sig")
        json_members = json.loads(line_text, object_pairs_hook=list)
        if isinstance(json.loads(line_text), dict):
            return "a key stands twice in one object" if len(dict(json_members)) < len(json_members) else ""
    except (ValueError, RecursionError):
        pass
    return "this is not a JSON object"
