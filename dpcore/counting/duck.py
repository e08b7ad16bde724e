"""DuckDB inside this process: bounded memory, its own temporary folder, no network, progress and Stop."""

from __future__ import annotations

import atexit
import copy
import ctypes
import functools
import re
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpcore.common.progress import ShouldStop
from dpcore.counting import query
from dpcore.counting.held import SCHEME, File, file_system
from dpcore.counting.running import Columns, Steps, StoppedError, check_stop

if TYPE_CHECKING:
    import duckdb
    from ibis.expr.types import Table

MEMORY_LIMIT = 1_000_000_000
"""Bytes that DuckDB may use by default; what does not fit goes to the temporary folder."""
FLOATS = ("DOUBLE", "FLOAT")
WHOLE_NUMBERS = tuple(
    sign + size for size in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT") for sign in ("", "U")
)
"""DuckDB's types of whole numbers; any two of them have a third that holds both exactly."""
_DECIMAL = re.compile(r"DECIMAL\([0-9]+,[0-9]+\)")
_POLL = 0.05
_END_SECONDS = 3.0
_open: weakref.WeakKeyDictionary[Duck, threading.Thread] = weakref.WeakKeyDictionary()
_ending = threading.Event()


def literal(text: str) -> str:
    """Return the text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """Return a column name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def in_part(cells: str, at: int, parts: int) -> str:
    """SQL of whether cells are in one of so many parts of about the same size; equal ones stay together."""
    return f"hash({cells}) % {parts} = {at}" if parts > 1 else "true"


def as_text(column: str, kind: str, text: str = "") -> str:
    """SQL of a column as text, one text for one number whatever its type.

    Whole numbers among floats, as ids with gaps are, and among decimals are written as such; NaN is a gap.

    Args:
        column: SQL of the column.
        kind: Its type, as DuckDB calls it.
        text: SQL of it as text, where that is not a plain cast.
    """
    text = text or f"{column}::VARCHAR"
    if _DECIMAL.fullmatch(kind) and not kind.endswith(",0)"):
        return f"rtrim(rtrim({text}, '0'), '.')"
    if kind not in FLOATS:
        return text
    whole = f"{column} = trunc({column}) AND abs({column}) < 1e15"
    number = f"TRY_CAST({column} AS BIGINT)::VARCHAR"
    return f"CASE WHEN isnan({column}) THEN NULL WHEN {whole} THEN {number} ELSE {text} END"


@functools.cache
def _memory() -> duckdb.DuckDBPyConnection:
    """Return a DuckDB that reads nothing but files in memory and never writes.

    It is opened once, as that takes longer than to read a thousand rows; each `Duck` is a connection of its own.
    One thread: sums of a small table are then the same each time.
    """
    import duckdb

    connection = duckdb.connect(config={**_SETTINGS, "threads": "1", "temp_directory": ""})
    connection.register_filesystem(file_system())
    connection.execute(f"SET allowed_directories = ['{SCHEME}://']")
    connection.execute("SET enable_external_access = false")
    atexit.register(connection.close)
    return connection


@functools.lru_cache(maxsize=500)
def _sql(operation: Any) -> str:
    return query.to_sql(operation.to_expr(), "duckdb")


def sql_of(expression: Table) -> str:
    """Return an expression as SQL; the same one again costs nothing."""
    return _sql(expression.op())


# Without the first two DuckDB would fetch extensions from its servers. The time of the third grows with the square of
# the columns: 3 s of 3.6 s for 12 rows of 500.
_SETTINGS: dict[str, Any] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "disabled_optimizers": "common_subexpressions",
}


def give_back() -> None:
    """Return to the system what Arrow and the C library keep of memory that nobody uses any more; some milliseconds."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # Other C libraries than GNU's have no such call.
            ctypes.CDLL(None).malloc_trim(0)


class Duck:
    """One DuckDB connection that reads the files it was given and nothing else.

    Args:
        files: Files it may read.
        folder: Where it may write what does not fit into memory; None for nowhere: then it reads files in memory only.
        memory_limit: Bytes.
        should_stop: Asked while a query runs.
        steps: Told how far a query is.
    """

    def __init__(
        self,
        files: Sequence[File] = (),
        folder: Path | None = None,
        memory_limit: int = MEMORY_LIMIT,
        should_stop: ShouldStop | None = None,
        steps: Steps | None = None,
    ) -> None:
        import duckdb

        self._should_stop, self._steps, self._memory_limit = should_stop, steps, memory_limit
        self._in_memory = folder is None
        self._begin(_memory().cursor() if folder is None else duckdb.connect(config=_SETTINGS))
        if folder is None:
            return
        self.connection.register_filesystem(file_system())
        allowed = ", ".join(literal(str(path)) for path in files)
        for setting in (
            f"memory_limit = '{memory_limit}B'",
            f"temp_directory = {literal(str(folder))}",
            "preserve_insertion_order = false",
            f"allowed_paths = [{allowed}]",
            "enable_external_access = false",
        ):
            self.connection.execute(f"SET {setting}")

    def _begin(self, connection: duckdb.DuckDBPyConnection) -> None:
        _open[self] = threading.current_thread()
        self.connection = connection
        if not self._in_memory:
            connection.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")

    def beside(self) -> Duck:
        """A connection of its own to the same DuckDB, with temporary tables of its own: to open another takes 10 ms."""
        other = copy.copy(self)
        other._begin(self.connection.cursor())
        return other

    @contextmanager
    def in_order(self) -> Iterator[None]:
        """Rows come in the order of the file, as they always do from memory."""
        if self._in_memory:
            yield
            return
        self.connection.execute("SET preserve_insertion_order = true")
        try:
            yield
        finally:
            self.connection.execute("SET preserve_insertion_order = false")

    def reserve(self, num_bytes: int) -> None:
        """Leave so many bytes of the memory limit to arrays outside DuckDB, at most two thirds."""
        if not self._in_memory:
            left = max(self._memory_limit - num_bytes, self._memory_limit // 3)
            self.connection.execute(f"SET memory_limit = '{left}B'")

    def close(self) -> None:
        """Drop everything."""
        self.connection.close()
        _open.pop(self, None)

    def table(self, name: str) -> Table:
        """Return a table or view as an Ibis table that knows its columns and belongs to no engine."""
        import ibis

        described = self.connection.execute(f"DESCRIBE {identifier(name)}").fetchall()
        table: Table = ibis.table({str(row[0]): _ibis_type(str(row[1])) for row in described}, name=name)
        return table

    def keep(self, name: str, expression: Table) -> Table:
        """Return the rows of an expression as a temporary table."""
        if self._steps is not None:
            self._steps.total += 1
        self.execute(f"CREATE TEMP TABLE {identifier(name)} AS {sql_of(expression)}")
        return self.table(name)

    def view(
        self, name: str, rows: Table, where: str = "true", further: Mapping[str, str] | None = None
    ) -> Table:
        """Return some rows under a name: what is asked of them is then put into SQL once, which takes 20 ms a query.

        Args:
            name: The name, which may be given anew.
            rows: All rows.
            where: SQL of which ones.
            further: SQL of further columns, whole numbers, by name.
        """
        import ibis

        columns = ", ".join(["*", *(f"{sql} AS {column}" for column, sql in (further or {}).items())])
        view = f"CREATE OR REPLACE TEMP VIEW {identifier(name)} AS SELECT {columns} FROM ({sql_of(rows)})"
        self.connection.execute(f"{view} WHERE {where}")
        table: Table = ibis.table({**rows.schema(), **dict.fromkeys(further or {}, "int64")}, name=name)
        return table

    def execute(self, sql: str) -> None:
        """Run a statement whose result is not needed."""
        self._run(sql, lambda result: None)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a query and bring back its rows."""
        rows: list[tuple[Any, ...]] = self._run(sql, lambda result: result.fetchall())
        return rows

    def run(self, expression: Table) -> Columns:
        """Run an Ibis expression."""
        return self.columns(sql_of(expression))

    def columns(self, sql: str) -> Columns:
        """Run a query and bring back its columns, nulls as NaN."""
        columns = self._run(sql, lambda result: result.fetchnumpy())
        return {
            name: np.ma.filled(column.astype(np.float64), np.nan)
            if np.ma.is_masked(column)
            else np.asarray(column)
            for name, column in columns.items()
        }

    def _run(self, sql: str, fetch: Callable[[Any], Any]) -> Any:
        """Run in a thread of its own, so that this one can tell the progress and ask whether to stop."""
        if self._in_memory:  # over before anybody could stop it
            check_stop(self._should_stop)
            return fetch(self.connection.execute(sql))
        outcome: list[Any] = []
        failed: list[BaseException] = []

        def work() -> None:
            try:
                outcome.append(fetch(self.connection.execute(sql)))
            except BaseException as error:
                failed.append(error)

        if _ending.is_set():
            raise StoppedError
        worker = threading.Thread(target=work, daemon=True)
        worker.start()
        stopped = False
        try:
            while worker.is_alive():
                worker.join(_POLL)
                if not stopped and (_ending.is_set() or (self._should_stop and self._should_stop())):
                    stopped = True
                if stopped:
                    self.connection.interrupt()
                elif self._steps is not None:
                    self._steps.inside(max(self.connection.query_progress(), 0.0) / 100.0)
        finally:
            # What `progress` raises (a page that starts afresh) ends the query too.
            while worker.is_alive():
                self.connection.interrupt()
                worker.join(_POLL)
        if stopped or _ending.is_set():
            raise StoppedError
        if failed:
            raise failed[0]
        if self._steps is not None:
            self._steps.finish()
        return outcome[0]


@atexit.register
def _end_queries() -> None:
    """End what still runs when Python ends: a thread inside DuckDB would abort the whole process then.

    A query that runs is interrupted by the thread that waits for it, which then closes its connection.
    """
    _ending.set()
    for thread in list(_open.values()):
        if thread is not threading.current_thread():
            thread.join(_END_SECONDS)


def _ibis_type(duckdb_type: str) -> str:
    """Return the kind of a DuckDB type, as far as counting depends on it."""
    if duckdb_type == "VARCHAR":
        return "string"
    if duckdb_type in FLOATS:
        return "float64"
    if _DECIMAL.fullmatch(duckdb_type):
        return "decimal"
    if duckdb_type in WHOLE_NUMBERS:
        return "int64"
    # Of all others only whether two cells are equal matters, which is the same for every such type.
    return "boolean" if duckdb_type == "BOOLEAN" else "date"
