"""DuckDB inside this process: queries with progress and Stop, SQL of texts, and checks of how users are written."""

from __future__ import annotations

import atexit
import copy
import ctypes
import functools
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dpcore.common.progress import Progress, ShouldStop
from dpcore.common.wording import format_count
from dpcore.counting.duck_tables import (
    DECIMAL_PATTERN,
    FLOAT_TYPES,
    DuckTable,
    quote_identifier,
    quote_literal,
)
from dpcore.counting.formats import MEMORY_SCHEME, File, build_memory_file_system
from dpcore.data.column_names import split_words

if TYPE_CHECKING:
    import duckdb

Columns = Mapping[str, npt.NDArray[Any]]
"""The columns of a result, nulls as NaN."""
MEMORY_LIMIT = 1_000_000_000
"""Bytes that DuckDB may use by default; the rest goes to the temporary folder."""
_POLL_SECONDS = 0.05
_END_SECONDS = 3.0
_threads_by_duck: weakref.WeakKeyDictionary[Duck, threading.Thread] = weakref.WeakKeyDictionary()
_exit_event = threading.Event()


class StoppedError(Exception):
    """The user pressed Stop; the function that began counting turns it into a result."""


@dataclass
class Steps:
    """The progress of several steps as one fraction that never falls."""

    progress: Progress | None
    num_steps: int
    num_done: int = 0
    _reported_fraction: float = 0.0

    def report_fraction(self, fraction: float) -> None:
        """Report the progress of all steps, given that of the current step as a fraction from 0 to 1."""
        if self.progress is not None:
            # DuckDB's estimate may fall, and steps may be added.
            fraction_done = (self.num_done + min(max(fraction, 0.0), 1.0)) / max(self.num_steps, 1)
            self._reported_fraction = max(self._reported_fraction, min(fraction_done, 1.0))
            self.progress(self._reported_fraction)

    def finish(self) -> None:
        """Report that the current step is done."""
        self.num_done += 1
        self.report_fraction(0.0)


def check_stop(should_stop: ShouldStop | None) -> None:
    """Raise `StoppedError` if ``should_stop`` says that the user wants to stop."""
    if should_stop is not None and should_stop():
        raise StoppedError


def start_thread(function: Callable[[], Any]) -> Future[Any]:
    """Run a function in a thread that does not keep Python from exiting, and return its future result."""
    future: Future[Any] = Future()

    def run() -> None:
        """Run the function, and set its result or its exception in the future."""
        try:
            future.set_result(function())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


def write_part_condition(key_cells_sql: str, part_index: int, num_parts: int) -> str:
    """Return the SQL condition of one of several parts of the rows; rows with equal key cells are in one part."""
    return f"hash({key_cells_sql}) % {num_parts} = {part_index}" if num_parts > 1 else "true"


def write_text_sql(column_sql: str, column_type: str, text_sql: str = "") -> str:
    """Return the SQL of a column as text, with equal texts for equal numbers of any type.

    Integers among floats and decimals, such as ids with gaps, are written as integers; NaN becomes null.

    Args:
        column_sql: SQL of the column.
        column_type: Its DuckDB type.
        text_sql: SQL of the column as text; empty for a cast.
    """
    text_sql = text_sql or f"{column_sql}::VARCHAR"
    if DECIMAL_PATTERN.fullmatch(column_type) and not column_type.endswith(",0)"):
        return f"rtrim(rtrim({text_sql}, '0'), '.')"
    if column_type not in FLOAT_TYPES:
        return text_sql
    is_integer_sql = f"{column_sql} = trunc({column_sql}) AND abs({column_sql}) < 1e15"
    integer_case_sql = f"WHEN {is_integer_sql} THEN TRY_CAST({column_sql} AS BIGINT)::VARCHAR"
    return f"CASE WHEN isnan({column_sql}) THEN NULL {integer_case_sql} ELSE {text_sql} END"


@functools.cache
def _open_in_memory() -> duckdb.DuckDBPyConnection:
    """Open the DuckDB that all tables in memory share, which reads only files in memory and never writes.

    It is opened once, as that takes longer than reading a thousand rows; each `Duck` is a separate connection. It has
    one thread, so that sums of a small table are reproducible.
    """
    import duckdb

    connection = duckdb.connect(config={**_SETTINGS, "threads": "1", "temp_directory": ""})
    connection.register_filesystem(build_memory_file_system())
    connection.execute(_SET_UTC_SQL)
    connection.execute(f"SET allowed_directories = ['{MEMORY_SCHEME}://']")
    connection.execute("SET enable_external_access = false")
    atexit.register(connection.close)
    return connection


# Without the first two settings DuckDB would fetch extensions from its servers. The time of the disabled optimizer
# grows with the square of the number of columns: 3 s of 3.6 s for 12 rows of 500 columns.
_SETTINGS: dict[str, Any] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "disabled_optimizers": "common_subexpressions",
}
_SET_UTC_SQL = "SET GLOBAL TimeZone = 'UTC'"
"""Programs read the day of a time in UTC, wherever they run. Not in `_SETTINGS`: no zone is known as DuckDB opens."""


def release_memory() -> None:
    """Give unused memory of Arrow and the C library back to the system; this takes some milliseconds."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # Only the GNU C library has this call.
            ctypes.CDLL(None).malloc_trim(0)


class Duck:
    """A DuckDB connection that can read only the given files.

    Args:
        files: Files it may read.
        folder: Folder for temporary data that does not fit into memory; None to read only files in memory.
        memory_limit: Bytes.
        should_stop: Called while a query runs.
        steps: Receives the progress of a query.
    """

    def __init__(
        self,
        readable_files: Sequence[File] = (),
        folder: Path | None = None,
        memory_limit: int = MEMORY_LIMIT,
        should_stop: ShouldStop | None = None,
        steps: Steps | None = None,
    ) -> None:
        import duckdb

        self._should_stop, self._steps, self._memory_limit = should_stop, steps, memory_limit
        self._in_memory = folder is None
        connection = _open_in_memory().cursor() if folder is None else duckdb.connect(config=_SETTINGS)
        self._use_connection(connection)
        if folder is None:
            return
        self.connection.register_filesystem(build_memory_file_system())
        allowed_sql = ", ".join(quote_literal(str(file_path)) for file_path in readable_files)
        execute = self.connection.execute
        execute(f"SET memory_limit = '{memory_limit}B'; SET temp_directory = {quote_literal(str(folder))}")
        execute(f"{_SET_UTC_SQL}; SET preserve_insertion_order = false")
        execute(f"SET allowed_paths = [{allowed_sql}]; SET enable_external_access = false")

    def _use_connection(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Take a connection as this object's own, and note it as open in the current thread."""
        _threads_by_duck[self] = threading.current_thread()
        self.connection = connection
        if not self._in_memory:
            connection.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")

    def connect(self) -> Duck:
        """Return another connection to the same DuckDB, with separate temporary tables; a new one would take 10 ms."""
        other_duck = copy.copy(self)
        other_duck._use_connection(self.connection.cursor())
        return other_duck

    @contextmanager
    def keep_order(self) -> Iterator[None]:
        """Keep rows in the order of the file within this context; from memory they always are."""
        if self._in_memory:
            yield
            return
        self.connection.execute("SET preserve_insertion_order = true")
        try:
            yield
        finally:
            self.connection.execute("SET preserve_insertion_order = false")

    def reserve(self, num_bytes: int) -> None:
        """Lower the memory limit by this number of bytes, for arrays outside DuckDB, but not below a third."""
        if not self._in_memory:
            remaining_bytes = max(self._memory_limit - num_bytes, self._memory_limit // 3)
            self.connection.execute(f"SET memory_limit = '{remaining_bytes}B'")

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()
        _threads_by_duck.pop(self, None)

    def get_table(self, table_name: str) -> DuckTable:
        """Return the DuckDB table or view of this name with its columns."""
        type_rows = self.connection.execute(f"DESCRIBE {quote_identifier(table_name)}").fetchall()
        return DuckTable.of_name(table_name, {str(name): str(type_) for name, type_, *_ in type_rows})

    def store_table(self, table_name: str, rows: DuckTable) -> DuckTable:
        """Store the rows of a query in a temporary table of this name, and return that table."""
        if self._steps is not None:
            self._steps.num_steps += 1
        self.execute(f"CREATE TEMP TABLE {quote_identifier(table_name)} AS {rows.sql}")
        return self.get_table(table_name)

    def create_view(
        self,
        name: str,
        rows: DuckTable,
        where_sql: str = "true",
        sql_by_mark: Mapping[str, str] | None = None,
    ) -> DuckTable:
        """Create a view of some rows, and return it as a table.

        Args:
            name: Name of the view; an earlier view of this name is replaced.
            rows: All rows.
            where_sql: SQL condition that selects rows.
            sql_by_mark: SQL of further integer columns, by name.
        """
        marks_sql = "".join(f", {mark_sql} AS {column}" for column, mark_sql in (sql_by_mark or {}).items())
        view_sql = f"SELECT *{marks_sql} FROM ({rows.sql}) WHERE {where_sql}"
        self.connection.execute(f"CREATE OR REPLACE TEMP VIEW {quote_identifier(name)} AS {view_sql}")
        return DuckTable.of_name(name, {**rows.types_by_column, **dict.fromkeys(sql_by_mark or {}, "BIGINT")})

    def execute(self, statement_sql: str) -> None:
        """Run a statement whose result is not needed."""
        self._run_statement(statement_sql, lambda result: None)

    def fetch_rows(self, query_sql: str) -> list[tuple[Any, ...]]:
        """Run a query and return its rows as tuples."""
        row_tuples: list[tuple[Any, ...]] = self._run_statement(query_sql, lambda result: result.fetchall())
        return row_tuples

    def fetch_table(self, table: DuckTable) -> Columns:
        """Run the query of a table and return its columns as arrays by name, nulls as NaN."""
        return self.fetch_columns(table.sql)

    def fetch_columns(self, query_sql: str) -> Columns:
        """Run a query and return its columns as arrays by name, nulls as NaN."""
        arrays_by_column: dict[str, Any] = self._run_statement(query_sql, lambda result: result.fetchnumpy())
        for column_name, column_values in arrays_by_column.items():
            if np.ma.is_masked(column_values):
                column_values = np.ma.filled(column_values.astype(np.float64), np.nan)
            arrays_by_column[column_name] = np.asarray(column_values)
        return arrays_by_column

    def _run_statement(self, statement_sql: str, read_result: Callable[[Any], Any]) -> Any:
        """Run a statement, and return what ``read_result`` reads of its result.

        While files are read, it reports progress and stops if the user wants to.
        """
        if self._in_memory:  # too short to be stopped
            check_stop(self._should_stop)
            return read_result(self.connection.execute(statement_sql))
        if _exit_event.is_set():
            raise StoppedError
        future = start_thread(lambda: read_result(self.connection.execute(statement_sql)))
        is_stopped = False
        try:
            while not future.done():
                wait([future], _POLL_SECONDS)
                is_stopped = (
                    is_stopped or _exit_event.is_set() or bool(self._should_stop and self._should_stop())
                )
                if is_stopped:
                    self.connection.interrupt()
                elif self._steps is not None:
                    self._steps.report_fraction(max(self.connection.query_progress(), 0.0) / 100.0)
        finally:
            # An exception of `progress` (a page that is rerun) ends the query, too.
            while not future.done():
                self.connection.interrupt()
                wait([future], _POLL_SECONDS)
        if is_stopped or _exit_event.is_set():
            raise StoppedError
        result = future.result()
        if self._steps is not None:
            self._steps.finish()
        return result


@atexit.register
def _end_queries() -> None:
    """End running queries when Python exits: a thread inside DuckDB would otherwise abort the process.

    The thread that waits for a query interrupts it and closes its connection.
    """
    _exit_event.set()
    for thread in list(_threads_by_duck.values()):
        if thread is not threading.current_thread():
            thread.join(_END_SECONDS)


# --- spelling of users --------------------------------------------------------------------------------------
#
# SQL that detects spellings which may hide that two users are the same. It runs once per user while users are counted.
# Remote engines check only for users called NA and the like. There may be as many users as rows, so cheap checks come
# first.

# Texts that programs write for a missing user. They stay users, as one may have that name, but a note mentions them.
PLACEHOLDERS = sorted(
    split_words(r"NA N/A n/a na <NA> #N/A NULL Null null (null) None none NaN nan NAN nil \N undefined -")
)
# Characters that look like a blank, and invisible ones.
_SPACES = "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_INVISIBLE = "\u00ad\u180e\u200b\u200c\u200d\u2060\ufeff"
_HIDDEN_CHARACTERS_SQL = quote_literal(_SPACES + _INVISIBLE)


def note_placeholders(num_contributions: int, dataset_notes: list[str]) -> None:
    """Add a note on this number of contributions of users called NA and the like, unless it is 0."""
    if num_contributions:
        noun_forms = "contribution is of a user", "contributions are of users"
        subject_text = format_count(num_contributions, *noun_forms)
        advice_text = "If that means nobody, empty these cells first."
        dataset_notes.append(f"{subject_text} called NA, null or the like. {advice_text}")


def write_user_checks(user_columns: Sequence[str], text_columns: Sequence[str]) -> dict[str, str]:
    """Return by name the SQL of checks of one user in text columns: numbers, which the caller sums over all users.

    Args:
        user_columns: The user columns.
        text_columns: Those of them with text.

    Returns:
            By name: the contributions of users called NA and the like (``placeholders``), and flags of users that are a
            number such as 7.0 (``with_point``), are not ASCII (``beyond_ascii``), or contain a NUL byte (``nul``).
    """
    sql_by_check: dict[str, str] = {}
    if user_columns[0] in text_columns:
        user_column, names_sql = user_columns[0], ", ".join(map(quote_literal, PLACEHOLDERS))
        called_so_sql = f"({user_column} < '0' OR {user_column} > '9') AND {user_column} IN ({names_sql})"
        sql_by_check["placeholders"] = f"CASE WHEN {called_so_sql} THEN size ELSE 0 END"
        has_point_sql = f"suffix({user_column}, '.0') AND {user_column} >= '0' AND {user_column} < ':'"
        sql_by_check["with_point"] = write_flag_sql(has_point_sql)
    if text_columns:
        sql_by_check["beyond_ascii"] = write_flag_sql(" OR ".join(map(_is_beyond_ascii_sql, text_columns)))
        has_nul_sqls = [f"contains({text_column}, chr(0))" for text_column in text_columns]
        sql_by_check["nul"] = write_flag_sql(" OR ".join(has_nul_sqls))
    return sql_by_check


def write_flag_sql(condition_sql: str) -> str:
    """Return the SQL of 1 if the condition holds, else 0."""
    return f"CASE WHEN {condition_sql} THEN 1 ELSE 0 END"


def _is_beyond_ascii_sql(text_sql: str) -> str:
    """Return the SQL condition that a text has characters beyond ASCII."""
    return f"length({text_sql}) < strlen({text_sql})"


def count_without_point_sql(rows_sql: str, user_column: str) -> str:
    """Return the SQL that counts the rows whose user begins and ends with a digit and has no point, such as 7."""
    digits_sql = " AND ".join(f"{side}({user_column}, 1) BETWEEN '0' AND '9'" for side in ("left", "right"))
    return f"SELECT count(*) FROM ({rows_sql}) WHERE {digits_sql} AND NOT contains({user_column}, '.')"


def count_twins_sql(
    rows_sql: str, user_columns: Sequence[str], text_columns: Sequence[str], part_condition_template: str
) -> str:
    """Return the SQL that counts the users of a part who look the same as another one, all but one of each look.

    The look of a user has plain blanks for all spaces, no invisible characters, and letters in one Unicode form (NFC).

    Args:
        rows_sql: SQL of the rows.
        user_columns: The user columns.
        text_columns: Those of them with text.
        part_condition_template: SQL condition on the look of a user, with ``{}`` for its columns, that selects a part.
    """
    blanks_sql, look_sql_by_column = (
        quote_literal(" " * len(_SPACES)),
        {user_column: user_column for user_column in user_columns},
    )
    for column in text_columns:
        cleaned_sql = f"trim(nfc_normalize(translate({column}, {_HIDDEN_CHARACTERS_SQL}, {blanks_sql})))"
        beyond_ascii_sql = _is_beyond_ascii_sql(column)
        look_sql_by_column[column] = f"CASE WHEN {beyond_ascii_sql} THEN {cleaned_sql} ELSE {column} END"
    look_columns_sql = ", ".join(f"{sql} AS seen_{column}" for column, sql in look_sql_by_column.items())
    look_names_sql = ", ".join(f"seen_{column}" for column in user_columns)
    from_named_sql = f"FROM ({rows_sql}) WHERE {user_columns[0]} IS NOT NULL"
    users_sql = f"SELECT DISTINCT {', '.join(user_columns)}, {look_columns_sql} {from_named_sql}"
    from_part_sql = f"FROM ({users_sql}) WHERE {part_condition_template.format(look_names_sql)}"
    groups_sql = f"SELECT count(*) AS n {from_part_sql} GROUP BY {look_names_sql}"
    return f"SELECT coalesce(sum(n - 1), 0)::BIGINT FROM ({groups_sql})"
