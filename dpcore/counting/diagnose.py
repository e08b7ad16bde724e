"""Diagnosis of large files: read them again, and describe their problems in sentences that name lines.

DuckDB's messages are not passed on, as they quote lines of the file, which contain user ids.
"""

from __future__ import annotations

import codecs
import csv
import io
import operator
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import wait
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path

from dpcore.common.checks import InputProblem, InvalidInput, Problems, refuse
from dpcore.common.progress import ShouldStop
from dpcore.counting import formats, rejects
from dpcore.counting.duck import Duck, Steps, check_stop, start_thread
from dpcore.counting.rejects import LONG_LINE_MESSAGE_AND_REMEDY, QUOTES_REMEDY
from dpcore.counting.relation import ROW_COLUMN, Relation, write_scan
from dpcore.counting.text import mark_fields
from dpcore.data.column_names import shorten
from dpcore.data.tables import FileKind

_CHUNK_BYTES = 8_000_000
_SMALL_CHUNK_BYTES = 1 << 20
_END_BYTES = formats.MAX_LINE_BYTES + 3
"""Bytes at the end of a file that contain the complete last line, or show that it is too long."""

OpenDuck = Callable[[], AbstractContextManager[Duck]]


def describe_damage(relation: Relation) -> InputProblem:
    """Describe a file that cannot be read to its end, as a problem."""
    if relation.packing:
        return formats.describe_damaged_archive(relation.packing, relation.name)
    damage_by_kind = {
        FileKind.TEXT: "it cannot be read to its end",
        FileKind.JSON: "some line is no JSON object",
    }.get(relation.kind, "the Parquet file is damaged or cut off")
    return InputProblem(damage_by_kind, formats.describe_file(relation.name), "Export it again")


def describe_windows_1252(relation: Relation) -> str:
    """Write the note that a file is not UTF-8, and so was read as Windows-1252."""
    return f"{shorten(relation.name)} is not UTF-8, so it was read as Windows-1252{formats.IF_LETTERS_WRONG_TEXT}"


class TruncationCheck:
    """A check of the ends of files, in a thread, while they are counted: DuckDB silently drops some of them.

    DuckDB accepts a truncated Zstandard file, checks no checksum of gzip files, and drops a last line that is longer
    than its buffer without an error (https://github.com/duckdb/duckdb/issues/25825). Compressed files must be unpacked
    for this check.

    Args:
        relations: The files.
        should_stop: Called in the calling thread.
    """

    def __init__(self, relations: Sequence[Relation], should_stop: ShouldStop | None) -> None:
        self._user_should_stop, self._end_event = should_stop, threading.Event()
        self._relations = [
            single_relation
            for single_relation in relations
            if single_relation.packing or _may_end_overlong(single_relation)
        ]
        self._future = start_thread(self._check)

    def should_stop(self) -> bool:
        """Return True if counting can end: the check found a problem or failed, or the user wants to stop."""
        has_failed = self._future.done() and self._future.exception() is not None
        return has_failed or (self._user_should_stop is not None and self._user_should_stop())

    def raise_if_damaged(self) -> None:
        """Wait for the result of the check.

        Raises:
            InvalidInput: A file is cut off, or ends in an overlong line.
            StoppedError: Stop was pressed.
        """
        while not self._future.done():
            wait([self._future], 0.05)
            check_stop(self._user_should_stop)
        self._future.result()

    def close(self) -> None:
        """End the check without the remaining files."""
        self._end_event.set()
        wait([self._future])

    def _check(self) -> None:
        """Check the ends of all files; raise InvalidInput for those that are cut off or end in an overlong line."""
        with Problems() as problems:
            for relation in self._relations:
                self._check_end(relation, problems)

    def _check_end(self, relation: Relation, problems: Problems) -> None:
        """Read a file to its end, which raises InvalidInput if it is cut off; add a problem on an overlong end."""
        # Line ends behind the last line are not part of it: they are counted, and at most one is kept.
        num_inner_breaks, num_trailing_breaks, end_bytes, pending_break = 0, 0, b"", b""
        with relation.open_bytes() as binary_stream:
            while byte_block := binary_stream.read(_CHUNK_BYTES):
                if self._end_event.is_set():
                    return
                if stripped_block := byte_block.rstrip(b"\r\n"):
                    end_bytes = (end_bytes + pending_break + stripped_block)[-_END_BYTES:]
                    num_inner_breaks += num_trailing_breaks + stripped_block.count(b"\n")
                    num_trailing_breaks = 0
                num_trailing_breaks += byte_block.count(b"\n", len(stripped_block))
                pending_break = b"\n" if len(stripped_block) < len(byte_block) else b""
        if relation.is_text and _is_overlong(end_bytes):
            message, remedy = LONG_LINE_MESSAGE_AND_REMEDY
            problems.add(message, f"line {num_inner_breaks + 1:,} of {shorten(relation.name)}", remedy)


def _may_end_overlong(relation: Relation) -> bool:
    """Return True if the last line of a text file is longer than a row may be, or many line ends hide its length."""
    if not relation.is_text:
        return False
    with relation.path.open("rb") as binary_stream:
        binary_stream.seek(-min(relation.path.stat().st_size, _END_BYTES), 2)
        end_bytes = binary_stream.read()
    # After so many line ends the last line is not in `end_bytes`.
    return _is_overlong(end_bytes) or not end_bytes.strip(b"\r\n")


def _is_overlong(end_bytes: bytes) -> bool:
    """Return True if the last line is longer than a row may be, given the end of the file."""
    end_bytes = end_bytes.rstrip(b"\r\n")
    return len(end_bytes) - max(end_bytes.rfind(b"\n"), end_bytes.rfind(b"\r")) - 1 > formats.MAX_LINE_BYTES


def refuse_open_quotes(relations: Sequence[Relation], should_stop: ShouldStop | None) -> None:
    """Raise InvalidInput if a quotation mark is opened and never closed.

    DuckDB reports this if several threads read. A single thread takes the end of the file as the end of the quotation,
    and drops its content.
    """
    with Problems() as problems:
        for relation in relations:
            num_quote_marks = 0
            with relation.open_bytes() as binary_stream:
                for _ in range(relation.num_skipped_lines):
                    binary_stream.readline()
                while byte_block := binary_stream.read(_CHUNK_BYTES):
                    check_stop(should_stop)
                    num_quote_marks += byte_block.count(b'"')
            if num_quote_marks % 2:  # inside a quotation they are doubled
                location = f"line {_find_open_quote(relation, should_stop):,} of {shorten(relation.name)}"
                problems.add("a quotation mark is opened and never closed", location, QUOTES_REMEDY)


def refuse_reopened_marks(
    relations: Sequence[Relation], should_stop: ShouldStop | None, reads_all: bool
) -> None:
    """Raise InvalidInput if a text file has a field like ``"a" "b"``, which DuckDB silently reads as ``a b``.

    Only with ``reads_all`` a file is read further whose first 8 MB have no quotation mark.
    """
    with Problems() as problems:
        for relation in relations:
            if line_number := rejects.find_second_quotation(relation, should_stop, reads_all=reads_all):
                location = f"line {line_number:,} of {shorten(relation.name)}"
                problems.add(rejects.SECOND_QUOTATION_MESSAGE, location, QUOTES_REMEDY)


def _find_open_quote(relation: Relation, should_stop: ShouldStop | None) -> int:
    """Return the number of the first line of the record whose quotation never ends; of the last one if all end."""
    record_first_line, record_last_line = 0, 0
    with relation.open_bytes() as binary_stream:
        line_stream = formats.open_lines(binary_stream)  # held, so that nothing closes it before the file
        csv_reader = csv.reader(line_stream, delimiter=relation.separator, strict=True)
        try:
            for _ in csv_reader:
                record_first_line, record_last_line = record_last_line, csv_reader.line_num
                if record_last_line % 10_000 == 0:
                    check_stop(should_stop)
            return record_first_line + 1
        except (csv.Error, UnicodeDecodeError):
            return record_last_line + 1


# --- cells that are refused --------------------------------------------------------------------------------


def find_rows(
    relations: Sequence[Relation], write_view: Callable[[list[Relation], bool], str], open_duck: OpenDuck,
    write_flagged_rows_sql: Callable[[Duck], str], max_rows: int, should_stop: ShouldStop | None,
) -> list[tuple[str, str]]:  # fmt: skip
    """Return the locations of the first bad rows of all files, each with a detail, as texts; the files are read again.

    Args:
        relations: The files.
        write_view: Function that returns the SQL of the rows of files, numbered if its second argument is True.
        open_duck: Function that opens DuckDB.
        write_flagged_rows_sql: Function that returns SQL over ``source``: ``bad``, `relation.ROW_COLUMN`, ``detail``.
            A detail is a number or a text, or an integer for another row, which is replaced by its location.
        max_rows: Largest number of rows.
        should_stop: Called while lines are counted.
    """
    row_places: list[tuple[str, str]] = []
    for relation in relations:
        with open_duck() as duck, duck.keep_order():
            duck.connection.execute(f"CREATE TEMP VIEW source AS {write_view([relation], True)}")
            limit_sql = f"WHERE bad ORDER BY {ROW_COLUMN} LIMIT {max_rows - len(row_places)}"
            details_sql = f"SELECT {ROW_COLUMN}, detail FROM ({write_flagged_rows_sql(duck)}) {limit_sql}"
            numbered_details = duck.fetch_rows(details_sql)
        other_row_numbers = [raw_detail for _, raw_detail in numbered_details if isinstance(raw_detail, int)]
        row_numbers = [*(row_number for row_number, _ in numbered_details), *other_row_numbers]
        file_suffix = f" of {shorten(relation.name)}" if len(relations) > 1 else ""
        if relation.table is not None:
            locations_by_row = {row: relation.table.describe_row(row - 1) for row in row_numbers}
        elif relation.kind is FileKind.PARQUET:
            locations_by_row = {row: f"row {row:,}{file_suffix}" for row in row_numbers}
        else:
            lines_by_row = _find_lines(relation, row_numbers, should_stop)
            locations_by_row = {row: f"line {n:,}{file_suffix}" for row, n in lines_by_row.items()}
        for row, raw_detail in numbered_details:
            if isinstance(raw_detail, int):
                detail = locations_by_row[raw_detail]
            else:  # Rounded: messages must not quote ids, as of a column of ids chosen by mistake.
                detail = f"{raw_detail:.3g}" if isinstance(raw_detail, float) else str(raw_detail or "")[:20]
            row_places.append((locations_by_row[row], detail))
        if len(row_places) == max_rows:
            break
    return row_places


def _find_lines(relation: Relation, row_numbers: list[int], should_stop: ShouldStop | None) -> dict[int, int]:
    """Return the number of the first line of each of these rows by row number; both are counted from 1."""
    first_lines_by_row = dict[int, int]()
    with relation.open_bytes() as byte_stream:
        row_number, line_stream = 0, formats.open_lines(byte_stream, relation.num_skipped_lines, newline=None)
        for first_line_number, is_row in _iterate_records(relation, line_stream):
            row_number += is_row
            if is_row and row_number in row_numbers:
                first_lines_by_row[row_number] = first_line_number
                if len(first_lines_by_row) == len(set(row_numbers)):
                    break
            if row_number % 10_000 == 0:
                check_stop(should_stop)
    return first_lines_by_row


def _iterate_records(relation: Relation, line_stream: io.TextIOWrapper) -> Iterator[tuple[int, bool]]:
    """Yield the first line's number of each record below a header, and True for a row, False for a blank line."""
    if relation.kind is FileKind.JSON:
        yield from ((line_number, bool(line.strip())) for line_number, line in enumerate(line_stream, 1))
        return
    csv_reader = csv.reader(line_stream, delimiter=relation.separator, skipinitialspace=True)
    next(csv_reader, None)
    first_line_number = csv_reader.line_num + 1
    for record in csv_reader:
        yield relation.num_skipped_lines + first_line_number, bool(record) or relation.num_stored_columns == 1
        first_line_number = csv_reader.line_num + 1


# --- files that DuckDB refuses -----------------------------------------------------------------------------


@dataclass
class Diagnosis:
    """The reasons why DuckDB refused files, and another way to read them.

    Attributes:
        relations: The files.
        open_duck: Function that opens DuckDB.
        recode: Function that writes the file of this index as UTF-8, from the given encoding.
        notes: List to which notes for the user are added.
        should_stop: Called while a file is read.
    """

    relations: Sequence[Relation]
    open_duck: OpenDuck
    recode: Callable[[int, str], Relation]
    notes: list[str]
    should_stop: ShouldStop | None
    _problems: Problems = field(default_factory=Problems)

    def recover(self) -> list[Relation]:
        """Return the files with reading options that should work, recoded if needed.

        Raises:
            InvalidInput: They cannot be read; all problems at once, with their lines.
        """
        new_relations = [
            self._recover_file(relation_index, relation)
            for relation_index, relation in enumerate(self.relations)
        ]
        self._problems.raise_if_any()
        if all(map(operator.is_, new_relations, self.relations)):
            raise InvalidInput([describe_damage(self.relations[0])])
        return new_relations

    def _recover_file(self, relation_index: int, relation: Relation) -> Relation:
        """Return a file with options that should work, recoded if needed; if none will, unchanged, with a problem."""
        import duckdb

        file_suffix = f" of {shorten(relation.name)}"
        rejected_lines: list[rejects.RejectedLines] = []
        try:
            with self.open_duck() as duck:
                if relation.is_text:
                    rejected_lines = rejects.list_rejected(duck, relation, self.should_stop)
                else:
                    duck.fetch_rows(f"SELECT count(COLUMNS(*)::VARCHAR) FROM {write_scan(relation)}")
        except duckdb.Error:
            return self._recode_or_refuse(relation_index, relation, file_suffix)
        refusal_reasons = {rejected.reason for rejected in rejected_lines}
        if "INVALID ENCODING" in refusal_reasons or "INVALID UNICODE" in refusal_reasons:
            self.notes.append(describe_windows_1252(relation))
            return self.recode(relation_index, "cp1252")
        if not refusal_reasons <= {rejects.SHORT_REASON} and self._mixes_line_ends(relation):
            return self.recode(relation_index, "utf-8")
        if rejects.report_rejected(rejected_lines, relation, self._problems, self.notes, 0, file_suffix):
            return replace(relation, has_short_rows=True, is_single_threaded=True)
        return relation if rejected_lines else self._recode_or_refuse(relation_index, relation, file_suffix)

    def _recode_or_refuse(self, relation_index: int, relation: Relation, file_suffix: str) -> Relation:
        """Recode a file refused for no known reason; if that cannot help, refuse its JSON lines or add a problem."""
        if relation.kind is FileKind.JSON:
            with relation.open_bytes() as binary_stream:
                rejects.refuse_bad_lines(binary_stream, file_suffix, self.should_stop)
        if self._mixes_line_ends(relation) or relation.packing:
            return self.recode(relation_index, "utf-8")
        self._problems.extend([describe_damage(relation)])
        return relation

    def _mixes_line_ends(self, relation: Relation) -> bool:
        """Return True if a text file in UTF-8 has several kinds of line ends, as after a join; False for others."""
        if not (relation.is_text and relation.encoding.startswith("utf-8")):
            return False
        num_breaks_by_end, last_byte = {b"\r\n": 0, b"\n": 0, b"\r": 0}, b""
        with relation.open_bytes() as binary_stream:
            while byte_block := binary_stream.read(_SMALL_CHUNK_BYTES):
                check_stop(self.should_stop)
                for line_end in num_breaks_by_end:
                    num_breaks_by_end[line_end] += byte_block.count(line_end)
                num_breaks_by_end[b"\r\n"] += last_byte == b"\r" and byte_block.startswith(b"\n")
                last_byte = byte_block[-1:]
        num_crlf = num_breaks_by_end.pop(b"\r\n")
        return (num_crlf > 0) + sum(num_breaks > num_crlf for num_breaks in num_breaks_by_end.values()) > 1


def recode_file(
    relation: Relation, encoding: str, output_path: Path, should_stop: ShouldStop | None, steps: Steps
) -> Relation:
    """Write text as uncompressed UTF-8 with newlines between lines, block by block; return its relation.

    Args:
        relation: The file; if it has a separator that is to be marked, that is done on the way.
        encoding: Python's name; bytes that Windows-1252 leaves undefined are read as Latin-1.
        output_path: Output file.
        should_stop: Called after every block.
        steps: Receives the progress.

    Raises:
        InvalidInput: The bytes do not fit the encoding; or text with such a separator contains quotation marks.
    """
    steps.num_steps += 1
    num_file_bytes, file_location = max(relation.path.stat().st_size, 1), formats.describe_file(relation.name)
    separator = relation.marked_separator
    # The five undefined bytes are control characters in Latin-1, as in every browser.
    error_handler = "windows-1252-rest" if encoding == "cp1252" else "strict"
    byte_decoder = codecs.getincrementaldecoder(encoding)(error_handler)
    text_decoder = io.IncrementalNewlineDecoder(byte_decoder, translate=True)
    with relation.open_bytes() as stream, output_path.open("w", encoding="utf-8", newline="") as utf8_stream:
        num_bytes_read, unfinished_line, byte_block = 0, "", b" "
        while byte_block:
            byte_block = stream.read(_SMALL_CHUNK_BYTES)
            try:
                decoded_text = text_decoder.decode(byte_block, final=not byte_block)
            except UnicodeError:
                encoding_message = f"the file looks like {encoding.upper()}, but some bytes do not fit"
                raise refuse(encoding_message, file_location, formats.SAVE_AS_UTF_8_REMEDY) from None
            if separator:
                if '"' in decoded_text and separator != " +":
                    separator_remedy = "Save it with commas between fields"
                    raise refuse("its fields cannot be quoted", file_location, separator_remedy)
                *complete_lines, unfinished_line = (unfinished_line + decoded_text).split("\n")
                decoded_text = "".join(mark_fields(line, separator) + "\n" for line in complete_lines)
                decoded_text += mark_fields(unfinished_line, separator) if not byte_block else ""
            utf8_stream.write(decoded_text)
            num_bytes_read += len(byte_block)
            check_stop(should_stop)
            steps.report_fraction(0.5 if relation.packing else num_bytes_read / num_file_bytes)
    steps.finish()
    return replace(relation, path=output_path, packing="", encoding="utf-8", marked_separator="")


def _read_as_latin_1(error: UnicodeError) -> tuple[str, int]:
    """Decode the bytes that caused a decoding error as Latin-1; return the text and the position behind them."""
    assert isinstance(error, UnicodeDecodeError)
    return error.object[error.start : error.end].decode("latin-1"), error.end


codecs.register_error("windows-1252-rest", _read_as_latin_1)
