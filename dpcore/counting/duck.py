"""DuckDB inside this process: bounded memory, its own temporary folder, no network, progress and Stop."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
import threading
import time
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpcore.common.progress import ShouldStop
from dpcore.counting.running import Columns, Steps, StoppedError

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
_PREFIX = "sweetspot-"


class Workspace:
    """A temporary folder that goes when it is closed, when nothing refers to it, and when Python ends."""

    def __init__(self) -> None:
        remove_abandoned()
        self.folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
        self._remove = weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)

    def close(self) -> None:
        """Remove the folder and all that is in it."""
        self._remove()


def remove_abandoned() -> None:
    """Remove the workspaces of processes that were killed before they could."""
    if os.name != "posix":  # signal 0 would end a process there
        return
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*-*"):
        number = folder.name.removeprefix(_PREFIX).partition("-")[0]
        with contextlib.suppress(OSError):
            # Processes of other containers that share the folder cannot be asked: an hour is left to them.
            if number.isdecimal() and time.time() - folder.stat().st_mtime > 3600:
                try:
                    os.kill(int(number), 0)
                except ProcessLookupError:
                    shutil.rmtree(folder, ignore_errors=True)


def literal(text: str) -> str:
    """Text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """A column name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


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


class Duck:
    """One DuckDB connection that reads the files it was given and nothing else.

    Args:
        files: Files it may read.
        folder: Where it may write what does not fit into memory.
        memory_limit: Bytes.
        should_stop: Asked while a query runs.
        steps: Told how far a query is.
    """

    def __init__(
        self,
        files: Sequence[Path],
        folder: Path,
        memory_limit: int = MEMORY_LIMIT,
        should_stop: ShouldStop | None = None,
        steps: Steps | None = None,
    ) -> None:
        import duckdb

        self._should_stop, self._steps = should_stop, steps
        # In the first place: without these two DuckDB would fetch extensions from its servers.
        self.connection: duckdb.DuckDBPyConnection = duckdb.connect(
            config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
        )
        allowed = ", ".join(literal(str(path)) for path in files)
        for setting in (
            f"memory_limit = '{memory_limit}B'",
            f"temp_directory = {literal(str(folder))}",
            "enable_progress_bar = true",
            "enable_progress_bar_print = false",
            "preserve_insertion_order = false",
            f"allowed_paths = [{allowed}]",
            "enable_external_access = false",
        ):
            self.connection.execute(f"SET {setting}")

    def close(self) -> None:
        """Drop everything."""
        self.connection.close()

    def table(self, name: str) -> Table:
        """A table or view as an Ibis table that knows its columns and belongs to no engine."""
        import ibis

        described = self.connection.execute(f"DESCRIBE {identifier(name)}").fetchall()
        table: Table = ibis.table({str(row[0]): _ibis_type(str(row[1])) for row in described}, name=name)
        return table

    def execute(self, sql: str) -> None:
        """Run a statement whose result is not needed."""
        self._run(sql, False)

    def run(self, expression: Table) -> Columns:
        """Run an Ibis expression."""
        import ibis

        return self.columns(str(ibis.to_sql(expression, dialect="duckdb")))

    def columns(self, sql: str) -> Columns:
        """Run a query and bring back its columns, nulls as NaN."""
        found = self._run(sql, True)
        return {
            name: np.ma.filled(column.astype(np.float64), np.nan)
            if np.ma.is_masked(column)
            else np.asarray(column)
            for name, column in found.items()
        }

    def _run(self, sql: str, fetch: bool) -> dict[str, Any]:
        """Run in a thread of its own, so that this one can tell the progress and ask whether to stop."""
        outcome: dict[str, Any] = {}
        failed: list[BaseException] = []

        def work() -> None:
            try:
                result = self.connection.execute(sql)
                outcome.update(result.fetchnumpy() if fetch else {})
            except BaseException as error:
                failed.append(error)

        worker = threading.Thread(target=work, daemon=True)
        worker.start()
        stopped = False
        try:
            while worker.is_alive():
                worker.join(_POLL)
                if not stopped and self._should_stop is not None and self._should_stop():
                    stopped = True
                if stopped:
                    self.connection.interrupt()
                elif self._steps is not None:
                    self._steps.inside(self.connection.query_progress() / 100.0)
        finally:
            # What `progress` raises (a page that starts afresh) ends the query too.
            while worker.is_alive():
                self.connection.interrupt()
                worker.join(_POLL)
        if stopped:
            raise StoppedError
        if failed:
            raise failed[0]
        if self._steps is not None:
            self._steps.finish()
        return outcome


def _ibis_type(duckdb_type: str) -> str:
    """The kind of a DuckDB type, as far as counting depends on it."""
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
