"""Opening files of any size: small ones become a table in memory, large ones a relation for DuckDB."""

from __future__ import annotations

import glob
import itertools
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from dpcore.common.checks import InputProblem, InvalidInput, Problems, convert_system_errors, refuse
from dpcore.common.privacy import LABEL_COLUMN, Disclosure, ReleaseFacts
from dpcore.common.progress import ShouldStop
from dpcore.common.workspace import Workspace
from dpcore.counting import formats, heads
from dpcore.counting.formats import File, MemoryFile, describe_file
from dpcore.counting.heads import read_json
from dpcore.counting.relation import Relation, read_stamp
from dpcore.counting.text import TooManyCells, read_separator, read_table
from dpcore.counting.workbooks import read_workbook
from dpcore.data import binned_values, group_pairs
from dpcore.data.column_names import refuse_many_columns, refuse_other_columns, shorten
from dpcore.data.column_roles import Roles
from dpcore.data.guessed_roles import guess_roles
from dpcore.data.tables import FileKind, Table, join_tables, join_types
from dpcore.dataset import Dataset

MAX_HELD_BYTES = 20_000_000
"""Largest size of uploads that stay in memory unchanged."""
MAX_SMALL_BYTES = 5_000_000
"""Largest number of uncompressed bytes of all files whose rows are kept as a table in memory."""
MAX_ARRAY_BYTES = 20_000_000
"""Largest number of uncompressed bytes of a JSON array, which has no lines and is read at once."""
MAX_SMALL_CELLS = 1_000_000
"""Largest number of cells of a Parquet file whose rows are kept."""
_COMPARED_BYTES = 4_096


@dataclass(frozen=True, eq=False)
class Source:
    """Files that were inspected and can be counted; close it when done.

    Attributes:
        name: Display name.
        head: The first rows, as text; all rows if ``is_complete``.
        is_complete: True if the head has every row.
        relations: The files to count; the table of the head if ``is_complete``.
        num_bytes: Size on disk.
        owned_folder: Temporary folder with the files, which is removed with the source.
    """

    name: str
    head: Table
    is_complete: bool
    relations: tuple[Relation, ...]
    num_bytes: int = 0
    owned_folder: Workspace | None = field(default=None, repr=False)

    @classmethod
    def of_table(cls, table: Table, num_bytes: int = 0, owned_folder: Workspace | None = None) -> Source:
        """Build the source of a table in memory."""
        return cls(table.name, table, True, (Relation.of_table(table),), num_bytes, owned_folder)

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the column names."""
        return self.head.columns

    @property
    def roles(self) -> Roles:
        """Guess the roles of the columns."""
        return guess_roles(self.head)

    @property
    def stated_release(self) -> ReleaseFacts | None:
        """Return the DP release that the label column of one small file states in every line; else None.

        The statement is not verified. Several joined files are not one release, as their budgets add up.
        """
        if not self.is_complete or LABEL_COLUMN not in self.columns or self.head.files:
            return None
        label_cells = self.head.frame[LABEL_COLUMN]
        first_label = str(label_cells.iloc[0])
        return ReleaseFacts.from_label(first_label) if bool((label_cells == first_label).all()) else None

    @property
    def lacks_column_names(self) -> bool:
        """Return True if the files have no column names, so that theirs were made up."""
        return any(file_layout.names for file_layout in self.head.layouts)

    def with_names(self, new_column_names: Sequence[str]) -> Source:
        """Return the source with these names of its columns; refuse files that name their columns themselves.

        Args:
            new_column_names: From left to right.

        Raises:
            InvalidInput: The files name their columns; or these are too few, too many, empty or not distinct.
        """
        new_names = tuple(" ".join(column_name.split()) for column_name in new_column_names)
        with Problems() as problems:
            if not self.lacks_column_names:
                problems.add("the files name their columns themselves")
            if len(new_names) != len(self.columns):
                problems.add(f"there are {len(self.columns)} columns, and {len(new_names)} names")
            if not all(new_names) or len(set(new_names)) < len(new_names):
                problems.add("every column needs a name of its own")
        file_layouts = tuple(
            replace(f, names=new_names[: len(f.names)]) if f.names else f for f in self.head.layouts
        )
        head = replace(self.head, frame=self.head.frame.set_axis(new_names, axis=1), layouts=file_layouts)
        relations = [replace(r, columns=new_names, table=r.table and head) for r in self.relations]
        return replace(self, head=head, relations=tuple(relations))

    def close(self) -> None:
        """Remove the temporary folder of the source, if any; the user's own files stay."""
        if self.owned_folder is not None:
            self.owned_folder.close()


def expand_patterns(paths_or_patterns: Sequence[str | os.PathLike[str]]) -> list[str]:
    """Return the paths, with each pattern such as ``logs/*.csv`` and each partitioned folder replaced by its files.

    Raises:
        InvalidInput: A pattern matches no file, a folder has no partitions, or a file is part of a Delta table.
    """
    expanded_paths: list[str] = []
    with Problems() as problems:
        for path in [os.fspath(path) for path in paths_or_patterns]:
            if "\0" in path:
                problems.add("a path holds a NUL character, which no name of a file has")
            elif partition_paths := _list_partitions(path):
                expanded_paths += partition_paths
            elif os.path.isdir(path):
                problems.add(_describe_folder(path), f"folder {shorten(Path(os.path.abspath(path)).name)}")
            elif os.path.exists(path) or not glob.has_magic(path):
                expanded_paths.append(path)
            elif matching_paths := sorted(filter(os.path.isfile, glob.glob(path, recursive=True))):
                expanded_paths += matching_paths
            else:
                problems.add(f"no file is called like {shorten(path)}", "", "Check the folder and the ending")
        if delta_paths := [path for path in expanded_paths if _is_in_delta_table(path)]:
            problems.add(_DELTA_MESSAGE, describe_file(os.path.basename(delta_paths[0])), _DELTA_REMEDY)
    return expanded_paths


_DELTA_MESSAGE = "this is part of a Delta table, whose files also hold rows that were deleted or replaced"
_DELTA_REMEDY = "Write its current rows as Parquet first, or count it in your engine"


def _is_in_delta_table(path: str) -> bool:
    """Return True if a folder that contains the file is a Delta table; partitions lie a few folders below it."""
    folders = list(Path(os.path.abspath(path)).parents)[:6]
    # The function of `os` returns False for a name that is too long.
    return any(os.path.isdir(parent_folder / "_delta_log") for parent_folder in folders)


_FOLDER_PATTERN = re.compile(r"([^=]+)=(.*)")
"""The name of a folder that names a column and its cell, as Hive writes it."""


def _list_partitions(folder_path: str) -> list[str]:
    """Return the files of a folder whose folders name cells, as in ``year=2024``; empty for any other path."""
    # Unlike `Path.glob`, the function of `os` raises no error for a name that is too long.
    if not os.path.isdir(folder_path) or _is_in_delta_table(os.path.join(folder_path, "file")):
        return []
    partition_files = sorted(Path(folder_path).glob("*=*/**/*"))
    return [str(file) for file in partition_files if file.is_file() and not file.name.startswith(("_", "."))]


def list_folder_cells(file: File) -> tuple[tuple[str, str], ...]:
    """Return the name and the cell of each column that the innermost folders of a path name."""
    folder_names = () if isinstance(file, MemoryFile) else file.parts[-2::-1]
    matches = list(itertools.takewhile(bool, map(_FOLDER_PATTERN.fullmatch, folder_names)))
    return tuple(
        (" ".join(unquote(match[1]).split()), unquote(match[2]).replace("__HIVE_DEFAULT_PARTITION__", ""))
        for match in reversed(matches)
        if match
    )


def name_file(file: File) -> str:
    """Return the display name of a file, from which programs read it: with the folders that name cells."""
    num_folders = len(list_folder_cells(file))
    return (
        Path(*file.parts[-num_folders - 2 :]).as_posix()
        if isinstance(file, Path) and num_folders
        else file.name
    )


def add_folder_cells(file: File, relation: Relation, table: Table) -> tuple[Relation, Table]:
    """Return the relation and the table of a file with the columns that its folders name and the file lacks."""
    cell_by_column = {
        column_name: cell
        for column_name, cell in list_folder_cells(file)
        if column_name not in relation.columns
    }
    if not cell_by_column:
        return relation, table
    refuse_many_columns(len(relation.columns) + len(cell_by_column))
    file_layouts = tuple(
        replace(file_layout, folder_cells=tuple(cell_by_column.items())) for file_layout in table.layouts
    )
    table = replace(table, frame=table.frame.assign(**cell_by_column), layouts=file_layouts)
    if relation.table is not None:
        return Relation.of_table(table), table
    columns = (*relation.columns, *cell_by_column)
    return replace(relation, columns=columns, folder_cells=tuple(cell_by_column.values())), table


def _describe_folder(folder_path: str) -> str:
    """Describe why a folder is not read, with what to do."""
    if os.path.isdir(os.path.join(folder_path, "_delta_log")):
        return f"{_DELTA_MESSAGE}. {_DELTA_REMEDY}"
    return "a folder is no table. Name its files with a pattern, such as folder/part*.csv"


def is_table(data: Any) -> bool:
    """Return True if the data are a table in memory."""
    # A pandas or Polars series also supports Arrow, but is a list of counts. A LazyFrame warns if its columns are read,
    # so only the existence of attributes is checked.
    attribute_names = "collect_schema", "columns", "column_names"
    return any(hasattr(data, name) for name in attribute_names) and not isinstance(data, type)


def list_paths(data: Any) -> list[str] | None:
    """Return the files that data name as a path, a pattern, or several of them; None if they are something else."""
    paths = [data] if isinstance(data, str | os.PathLike) else data
    if isinstance(paths, list | tuple) and paths and all(isinstance(p, str | os.PathLike) for p in paths):
        return expand_patterns(paths)
    return None


def convert_to_files(paths: Sequence[str | os.PathLike[str] | MemoryFile]) -> list[File]:
    """Convert paths to `pathlib.Path`; files in memory stay."""
    return [path if isinstance(path, MemoryFile) else Path(path) for path in paths]


SUMMARIES = {
    group_pairs.SCHEMA: ("a distribution of pairs", group_pairs.read_distribution, "group"),
    binned_values.SCHEMA: ("a file of binned values", binned_values.read_values, "mean"),
}
"""The name of each kind of file of summaries, its reader, and a command that answers from it, by its schema."""


def find_summaries(files_to_search: Sequence[str | os.PathLike[str] | MemoryFile]) -> list[tuple[File, str]]:
    """Return those of the files whose first bytes state that they hold summaries, each with its schema."""
    summary_files = []
    for summary_file in convert_to_files(files_to_search):
        if isinstance(summary_file, MemoryFile) or os.path.isfile(summary_file):
            # The function that reads the file reports an error.
            with suppress(OSError), summary_file.open("rb") as stream:
                first_bytes = stream.read(_COMPARED_BYTES)
                schemas = [schema for schema in SUMMARIES if group_pairs.has_schema(first_bytes, schema)]
                summary_files += [(summary_file, schema) for schema in schemas[:1]]
    return summary_files


def read_summary(
    paths: Sequence[str | os.PathLike[str] | MemoryFile],
    display_names: Sequence[str] | None = None,
    provenance: Disclosure | ReleaseFacts = Disclosure.PRIVATE,
) -> Dataset:
    """Read the summaries in one of the files that `find_summaries` finds as a dataset; no column has to be named.

    Raises:
        InvalidInput: There are several files, it cannot be a release, or the numbers in it fit no data.
    """
    (summary_file, schema), *_ = find_summaries(paths)
    summary_name, read_content, _ = SUMMARIES[schema]
    if len(paths) > 1:
        raise refuse(f"{summary_name} is one file", remedy="Choose it alone")
    if not isinstance(provenance, Disclosure):
        raise refuse(f"{summary_name} cannot be a DP release", remedy="Say public or private")
    with summary_file.open("rb") as binary_stream:
        file_bytes = binary_stream.read(binned_values.MAX_BYTES + 1)
    return read_content(
        file_bytes, summary_file.name if display_names is None else display_names[0], provenance
    )


def read_if_summary(paths_or_data: Any, provenance: Disclosure | ReleaseFacts = Disclosure.PRIVATE) -> Any:
    """Return the dataset of a file of summaries that data name and that can be read; other data unchanged."""
    with suppress(InvalidInput, OSError):
        data_paths = list_paths(paths_or_data)
        if data_paths and find_summaries(data_paths):
            return read_summary(data_paths, provenance=provenance)
    return paths_or_data


@convert_system_errors()
def open_files(
    paths: Sequence[str | Path | MemoryFile],
    display_names: Sequence[str] | None = None,
    *,
    small_bytes: int = MAX_SMALL_BYTES,
    owned_folder: Workspace | None = None,
    should_stop: ShouldStop | None = None,
    sheet: str = "",
    separator: str = "",
) -> Source:
    """Inspect files: return a source with their formats, columns and first rows, or all rows if they are small.

    Args:
        paths: Files with the same columns: text tables, JSON Lines, Parquet or Excel workbooks; text and JSON
            may be compressed with gzip or Zstandard. Small files in memory are never written to a disk.
        display_names: Display names; None for the names of the files.
        small_bytes: Largest number of uncompressed bytes whose rows are kept in memory; 0 sends all but workbooks
            to DuckDB.
        owned_folder: A temporary folder that is removed when the source is closed.
        should_stop: Called while a workbook is read.
        sheet: Sheet of workbooks to read; empty for the first.
        separator: Separator of fields of text, such as ``;``, ``tab`` or ``blank``; empty to detect it.

    Raises:
        InvalidInput: They cannot be read, or do not belong together; all problems at once.
    """
    files = convert_to_files(paths)
    file_names = (
        [name_file(source_file) for source_file in files] if display_names is None else list(display_names)
    )
    stated_separator = read_separator(separator)
    if not files:
        raise refuse("no file is chosen", remedy="Choose at least one")
    relations: list[Relation] = []
    head_tables: list[Table] = []
    remaining_bytes = small_bytes
    with Problems() as problems:
        for source_file, display_name in zip(files, file_names, strict=True):
            try:
                relation, table, num_kept_bytes = _inspect_file(
                    source_file, display_name, remaining_bytes, should_stop, sheet, stated_separator
                )
                relation, table = add_folder_cells(source_file, relation, table)
            except InvalidInput as refused:
                file_problems = refused.problems
                problems.extend(
                    file_problems if len(files) == 1 else _add_file_name(file_problems, display_name)
                )
            else:
                relations.append(relation)
                head_tables.append(table)
                remaining_bytes -= num_kept_bytes
        has_one_header = (
            not problems.entries and len({frozenset(table.columns) for table in head_tables}) == 1
        )
        if separator and len(files) > 1 and not has_one_header:
            message = "with this separator, which holds for all files, they do not have the same columns"
            problems.add(message, "", "Leave it out, and that of each file is detected")
    file_kinds = {file_layout.kind for table in head_tables for file_layout in table.layouts}
    with Problems() as problems:
        if sheet and file_kinds != {FileKind.WORKBOOK}:
            problems.add("only workbooks have sheets", "", "Leave the sheet out")
        if separator and file_kinds != {FileKind.TEXT}:
            problems.add("only text has a separator of fields", "", "Leave the separator out")
    num_bytes = sum(source_file.stat().st_size for source_file in files)
    copy_notes = _note_copies(files, file_names)
    if all(relation.table is not None for relation in relations):
        table = join_tables(head_tables)
        return Source.of_table(replace(table, notes=(*copy_notes, *table.notes)), num_bytes, owned_folder)
    refuse_other_columns([(relation.name, relation.columns) for relation in relations])
    file_layouts = tuple(file_layout for table in head_tables for file_layout in table.layouts)
    source_notes = (*copy_notes, *head_tables[0].notes)
    head = replace(head_tables[0], layouts=file_layouts, notes=source_notes, **join_types(head_tables))
    further_text = f" and {len(relations) - 1} more" if len(relations) > 1 else ""
    return Source(relations[0].name + further_text, head, False, tuple(relations), num_bytes, owned_folder)


def _inspect_file(
    file: File, name: str, remaining_bytes: int, should_stop: ShouldStop | None, sheet: str, separator: str
) -> tuple[Relation, Table, int]:
    """Return a file as a relation, its first rows or all of them, and how many of the remaining bytes they take.

    Only text and JSON that become a table in memory take bytes: their uncompressed size; all other files take 0.
    """
    file_start = formats.read_start(file, name)
    file_stamp = read_stamp(file)  # Before anything is read, so that later writes are detected.
    if file_start.kind is FileKind.WORKBOOK:
        head_table = read_workbook(file, name, should_stop, sheet)
        return Relation.of_table(head_table), head_table, 0
    if file_start.kind is FileKind.PARQUET:
        relation, head_table = heads.inspect_parquet(
            file, name, MAX_SMALL_CELLS if remaining_bytes > 0 else 0
        )
        return replace(relation, stamp=file_stamp), head_table, 0
    is_json = file_start.kind is FileKind.JSON
    max_bytes = max(remaining_bytes, MAX_ARRAY_BYTES) if file_start.is_json_array else remaining_bytes
    content = formats.read_small(file, file_start, max_bytes, name) if max_bytes > 0 else None
    if content is not None:
        try:
            head_table = read_json(content, name)[0] if is_json else read_table(content, name, separator)
            head_table = _add_packing(head_table, file_start.packing)
            return Relation.of_table(head_table), head_table, len(content)
        except TooManyCells:  # DuckDB reads it like a large file, with little memory
            if file_start.is_json_array:
                raise
    if file_start.is_json_array:
        raise refuse(
            f"the JSON array is longer than {MAX_ARRAY_BYTES:,} bytes", "", "Write one object per line"
        )
    if is_json:
        relation, head_table = heads.inspect_json(file, name, file_start)
    else:
        relation, head_table = heads.inspect_text(file, name, file_start, separator)
    return replace(relation, stamp=file_stamp), _add_packing(head_table, file_start.packing), 0


def _add_packing(table: Table, packing: str) -> Table:
    """Return the table with the compression of its file in its layout."""
    return replace(table, layouts=tuple(replace(old_layout, packing=packing) for old_layout in table.layouts))


def _note_copies(files: Sequence[File], display_names: Sequence[str]) -> list[str]:
    """Write notes on files with the same content as an earlier one; raise InvalidInput if a file is named twice."""
    copy_notes: list[str] = []
    first_index_by_start: dict[tuple[int, bytes], int] = {}
    with Problems() as problems:
        for file_index, (file, display_name) in enumerate(zip(files, display_names, strict=True)):
            with file.open("rb") as stream:
                size_and_start = (file.stat().st_size, stream.read(_COMPARED_BYTES))
            first_index = first_index_by_start.setdefault(size_and_start, file_index)
            if first_index == file_index:
                continue
            first_file = files[first_index]
            if first_file is file or (
                isinstance(file, Path) and isinstance(first_file, Path) and first_file.samefile(file)
            ):
                problems.add("this file is named twice", describe_file(display_name), "Name it once")
                continue
            with file.open("rb") as stream, first_file.open("rb") as first_stream:
                later_blocks = iter(lambda: stream.read(1 << 20), b"")
                if all(later_block == first_stream.read(len(later_block)) for later_block in later_blocks):
                    copy_notes.append(
                        f"{shorten(display_name)} is an exact copy of {shorten(display_names[first_index])}."
                    )
    return copy_notes


def _add_file_name(problems: Sequence[InputProblem], display_name: str) -> list[InputProblem]:
    """Return the problems with the file in the location of each, unless it stands there."""
    file_location = describe_file(display_name)
    return [
        problem
        if file_location in problem.location
        else replace(problem, location=", ".join(filter(None, [file_location, problem.location])))
        for problem in problems
    ]
