"""Attempts to reduce files through DuckDB: first with guessed options, then with corrected ones or less memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import replace

from dpcore.common.checks import FULL_DISK_PROBLEM, InvalidInput, refuse
from dpcore.common.progress import ShouldStop
from dpcore.common.workspace import Workspace
from dpcore.counting import diagnose, relation
from dpcore.counting.duck import Duck, Steps, StoppedError, release_memory
from dpcore.counting.duck_tables import ColumnType
from dpcore.counting.facets import Facets
from dpcore.counting.relation import Relation
from dpcore.data.column_roles import Roles, TableKind
from dpcore.data.tables import FileKind

PASS_COUNTS = (1, 7, 61)
"""Numbers of parts in which users are counted, one after another, if fewer parts exceed the memory limit."""
MAX_SHARED_CELLS = 1_000_000
"""Largest number of cells for the shared DuckDB in memory, which keeps the memory it took, 100 bytes a cell."""
TABLE_MEMORY_LIMIT = 400_000_000
"""Bytes that DuckDB may use in addition to a table in memory."""
_MIN_FREE_BYTES = 1_000_000
"""Free bytes below which a disk counts as full."""


class FileAttempts(ABC):
    """Attempts to reduce files, or a table in memory, to `Facets`, until one succeeds or none is left.

    Args:
        relations: The files, with the same columns in any order.
        roles: Roles of the columns of events or of a histogram.
        memory_limit: Bytes that DuckDB may use.
        should_stop: Called often.
        steps: Receives the progress.
        notes: List to which notes for the user are added.
        is_count_table: True if the value is the number of contributions of a user, who has no other row.
        counts_copies: True to look for rows that are exact copies of others.

    Attributes:
        decimal_marks: Decimal mark by column of numbers; empty if the file itself stores numbers.
        encodings_by_index: Encodings that differ from the guess by the beginning of a file, by the index of the file.
        has_repeated_sizes: True if a histogram states a size twice.
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
        is_count_table: bool = False,
        counts_copies: bool = False,
    ) -> None:
        self.columns, self.roles, self.notes = relations[0].columns, roles, notes
        self._steps, self._should_stop, self._num_queries = steps, should_stop, steps.num_steps
        self._is_count_table = is_count_table or roles.kind is TableKind.HISTOGRAM
        self._counts_copies = counts_copies
        self._memory_limit, self._num_threads, self._num_passes = memory_limit, 0, 1
        cell_counts = [
            single_relation.table.frame.size
            for single_relation in relations
            if single_relation.table is not None
        ]
        self._in_memory = len(cell_counts) == len(relations)
        self._workspace = None if self._in_memory and sum(cell_counts) <= MAX_SHARED_CELLS else Workspace()
        if self._in_memory:
            self._num_threads = 1  # Sums of a table are then the same each time.
            self._memory_limit = min(memory_limit, TABLE_MEMORY_LIMIT)  # The table itself takes as much.
        self._number_sql_by_column: dict[str, str] = {}
        self.decimal_marks: dict[str, str] = {}
        self.encodings_by_index: dict[int, str] = {}
        self.has_repeated_sizes = False
        self._types_by_column: Mapping[str, ColumnType] = {}
        self._has_blanks = True
        self._open_duck: Duck | None = None
        # 32 MB where 1 GB may be used, which is the fastest.
        buffer_bytes = min(
            max(memory_limit // 31 // 16 * 16, relation.SMALL_BUFFER_BYTES), relation.LARGE_BUFFER_BYTES
        )
        mixed_columns = relation.find_mixed_columns(relations)
        self._relations = list[Relation]()
        for single_relation in relations:
            new_relation = replace(single_relation, buffer_bytes=buffer_bytes, text_columns=mixed_columns)
            if self._workspace is not None and single_relation.table is None:
                new_relation = replace(
                    new_relation, path=relation.find_safe_path(single_relation.path, self._workspace)
                )
            self._relations.append(new_relation)

    def reduce(self) -> Facets:
        """Count contributions per user.

        A file that turns out not to be UTF-8, or to have short rows, is read again with other options.

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
        """Count contributions per user in files while a thread checks their ends.

        Files in another encoding than UTF-8, or with marked fields, are rewritten first.
        """
        for relation_index, single_relation in enumerate(self._relations):
            if single_relation.is_text and (
                single_relation.marked_separator or not single_relation.encoding.startswith("utf-8")
            ):
                if not single_relation.encoding.startswith("utf"):
                    self.notes.append(diagnose.describe_windows_1252(single_relation))
                self._relations[relation_index] = self._recode(relation_index, single_relation.encoding)
        with closing(diagnose.TruncationCheck(self._relations, self._should_stop)) as truncation_check:
            self._should_stop = truncation_check.should_stop
            try:
                facets = self._mend_and_reduce()
            except (InvalidInput, StoppedError):
                truncation_check.raise_if_damaged()  # A truncated file is the likely cause of other problems.
                raise
            truncation_check.raise_if_damaged()
            return facets

    def _mend_and_reduce(self) -> Facets:
        """Count contributions per user; after an error of DuckDB, try again with less memory or other reading options.

        Raises InvalidInput if no attempt succeeds.
        """
        import duckdb

        num_mends = 0
        while num_mends < 3 + len(self._relations):
            num_notes_before = len(self.notes)
            try:
                for relation_index, single_relation in enumerate(self._relations):
                    if (
                        single_relation.kind is FileKind.JSON and single_relation.encoding != "utf-8"
                    ):  # a mark that DuckDB refuses
                        self._relations[relation_index] = self._recode(
                            relation_index, single_relation.encoding
                        )
                return self._reduce()
            except duckdb.OutOfMemoryException as error:
                del self.notes[num_notes_before:]
                self._lower_memory_use(error)
            except duckdb.NotImplementedException:
                # Its threads disagreed on the file: https://github.com/duckdb/duckdb/issues/24237.
                del self.notes[num_notes_before:]
                self._relations = [
                    replace(single_relation, is_single_threaded=True) for single_relation in self._relations
                ]
                num_mends += 1
            except duckdb.Error as error:
                del self.notes[num_notes_before:]
                if self._is_disk_full(error):
                    raise InvalidInput([FULL_DISK_PROBLEM]) from None
                self._relations = diagnose.Diagnosis(
                    self._relations, self._open_connection, self._recode, self.notes, self._should_stop
                ).recover()
                num_mends += 1
        raise InvalidInput([diagnose.describe_damage(self._relations[0])])

    def _recode(self, relation_index: int, encoding: str) -> Relation:
        """Write a file as UTF-8 into the temporary folder, note its encoding, and return the copy's relation."""
        assert self._workspace is not None
        utf8_path = self._workspace.folder / f"utf8-{relation_index}"
        self.encodings_by_index[relation_index] = encoding
        old_relation = self._relations[relation_index]
        return diagnose.recode_file(old_relation, encoding, utf8_path, self._should_stop, self._steps)

    @contextmanager
    def _open_connection(self) -> Iterator[Duck]:
        """Open DuckDB with the tables in memory, or another connection to DuckDB if it is open already."""
        outer_duck = self._open_duck
        paths = [single_relation.path for single_relation in self._relations if single_relation.table is None]
        folder = None if self._workspace is None else self._workspace.folder
        shared_duck = outer_duck or Duck(paths, folder, self._memory_limit, self._should_stop, self._steps)
        with closing(shared_duck if outer_duck is None else shared_duck.connect()) as duck:
            if self._num_threads:
                duck.connection.execute(f"SET threads = {self._num_threads}")
            for single_relation in self._relations:
                if single_relation.table is not None:
                    duck.connection.register(
                        str(single_relation.path), relation.convert_to_arrow(single_relation.table)
                    )
            self._open_duck = duck
            try:
                yield duck
            finally:
                self._open_duck = outer_duck

    def _is_disk_full(self, duckdb_error: Exception) -> bool:
        """Return True if DuckDB failed because the disk is full, by its message or by the free space."""
        full_disk_phrases = ("max_temp_directory_size", "No space left", "not enough space")
        has_room = self._workspace is None or self._workspace.has_room(_MIN_FREE_BYTES)
        return any(phrase in str(duckdb_error) for phrase in full_disk_phrases) or not has_room

    def _lower_memory_use(self, memory_error: Exception) -> None:
        """Use less memory in the next attempt: first one thread and small buffers, then fewer users at a time.

        Raise InvalidInput if that is done already.
        """
        self._steps.num_steps = self._steps.num_done + self._num_queries
        if not self._num_threads:
            self._num_threads = 1
            self._relations = [
                replace(single_relation, buffer_bytes=relation.SMALL_BUFFER_BYTES)
                for single_relation in self._relations
            ]
            return
        larger_pass_counts = [num_passes for num_passes in PASS_COUNTS if num_passes > self._num_passes]
        if not larger_pass_counts:
            if self._is_disk_full(memory_error):
                raise InvalidInput([FULL_DISK_PROBLEM])
            memory_message = f"counting needs more than the memory limit of {self._memory_limit:,} bytes"
            raise refuse(memory_message, remedy="Raise the limit")
        self._num_passes = larger_pass_counts[0]

    @abstractmethod
    def _reduce(self) -> Facets:
        """Count contributions per user once, with the present options.

        Raises InvalidInput for rows that do not count, or DuckDB's error.
        """
