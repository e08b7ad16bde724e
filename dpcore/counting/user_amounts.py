"""Rows and amounts of users for a private selection, read by public rules: no user's cells affect the outcome."""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import replace

import numpy as np

from dpcore.common.checks import InvalidInput, Problems, refuse
from dpcore.common.privacy import Disclosure
from dpcore.common.workspace import Workspace
from dpcore.contributions import ContributionHistogram
from dpcore.counting import formats, query, single_rows
from dpcore.counting.duck import MEMORY_LIMIT, Duck, Steps
from dpcore.counting.duck_tables import DuckColumn, DuckTable, quote_literal
from dpcore.counting.facets import Facets
from dpcore.counting.files import Source, add_folder_cells, list_folder_cells, name_file, open_files
from dpcore.counting.formats import File, FileStart, MemoryFile
from dpcore.counting.heads import inspect_parquet
from dpcore.counting.pair_tables import build_pair_dataset, prefer_pair_roles
from dpcore.counting.public_rules import filter_rows, write_yes_sql
from dpcore.counting.reduce_files import (
    NO_NUMBERS_MESSAGE,
    NUMBER_PREFIX,
    OTHER_COLUMN_REMEDY,
    FileReduction,
)
from dpcore.counting.relation import Relation, refuse_times, rename_roles
from dpcore.counting.text import read_separator, read_table, split_fields
from dpcore.data.cell_numbers import MAX_NUMBER, read_cell_sql
from dpcore.data.column_names import refuse_missing, shorten
from dpcore.data.column_roles import Roles, TableKind, describe_values
from dpcore.data.guessed_roles import guess_pairs
from dpcore.data.row_filter import list_compared_columns
from dpcore.data.tables import BLANKS, SPACED, FileKind, FileLayout, Table, TableLayout, build_table
from dpcore.data.totals_per_user import LARGEST_CELL, UserAmounts
from dpcore.dataset import LONGEST_TASK_NAME, Dataset


def read_user_amounts(
    files: Sequence[File],
    display_names: Sequence[str] | None,
    roles: Roles,
    named_columns: Sequence[str],
    *,
    keeps_rows: bool = False,
    sheet: str = "",
    separator: str = "",
) -> UserAmounts | Dataset:
    """Read rows, totals or pairs per user, or every row's value, from files; of a table of pairs return its dataset.

    A row that names no user is left out. A cell without a number up to 1e100 counts as 0, and numbers are clamped to
    `LARGEST_CELL`. A file without rows has no users.

    Args:
        files: Files with the same columns.
        display_names: Display names; None for the names of the files.
        roles: The columns of user, group and value; None for those not needed.
        named_columns: All columns that the user named.
        keeps_rows: True to read the value of every row, each as a pair of its user and a group of its own.
        sheet: Sheet of workbooks; empty for the first.
        separator: Separator of fields of text files; empty to detect it.

    Returns:
        The amounts; for a table of pairs that an engine counted, its dataset.

    Raises:
        InvalidInput: A column is missing or its type has no numbers, or the files are not a table. Problems of rows are
            not described.
    """
    source = None
    with suppress(InvalidInput):
        source = open_files(files, display_names, sheet=sheet, separator=separator)
    # The first rows may belong to one user, and decide how the header is read.
    if source is None or not set(named_columns) <= set(source.columns):
        try:
            source = _open_by_header(files, display_names, read_separator(separator), named_columns)
        except InvalidInput:
            if source is None:
                raise
    with Problems() as problems:
        refuse_missing(problems, source.columns, named_columns)
    with Problems() as problems:
        refuse_times(problems, source.head.times, None if roles.yes_text else roles.value)
    preferred_roles = roles if keeps_rows else prefer_pair_roles(guess_pairs(source.head) or roles, roles)
    if preferred_roles.kind is TableKind.PAIRS:
        try:
            return build_pair_dataset(source, preferred_roles, Disclosure.PRIVATE, MEMORY_LIMIT)
        except InvalidInput:
            raise _build_unreadable_error() from None
    with closing(Workspace()) as workspace:
        relations = _write_relations(source, files, named_columns, workspace)
        amounts_reduction = _AmountsReduction(relations, roles, MEMORY_LIMIT, None, Steps(None, 4), [])
        amounts_reduction.keeps_rows = keeps_rows
        try:
            amounts_reduction.reduce()
        except InvalidInput:
            raise amounts_reduction.column_error or _build_unreadable_error() from None
    assert amounts_reduction.user_amounts is not None
    file_layouts, decimal_mark_pairs = source.head.layouts, tuple(amounts_reduction.decimal_marks.items())
    table_rules = describe_values(roles, source.head.booleans)
    table_layout = TableLayout(file_layouts, decimal_mark_pairs, **table_rules) if file_layouts else None
    return replace(amounts_reduction.user_amounts, layout=table_layout, name=source.name)


def _build_unreadable_error() -> InvalidInput:
    """Return the error that the data cannot be read, which tells nothing about them."""
    no_draw_remedy = "Ask without a draw to see why. No draw was made, and no ε was spent"
    return refuse("the data cannot be read as a table", remedy=no_draw_remedy)


def _write_relations(
    source: Source, files: Sequence[File], named_columns: Sequence[str], workspace: Workspace
) -> Sequence[Relation]:
    """Return the files as relations, text and JSON as Parquet whose rows were read one by one."""
    text_kinds, layouts = (FileKind.TEXT, FileKind.JSON), source.head.layouts
    if not any(layout.kind in text_kinds for layout in layouts):
        return source.relations
    has_other_kinds = any(layout.kind not in text_kinds for layout in layouts)
    columns = source.columns if has_other_kinds else tuple(dict.fromkeys(named_columns))
    relations, found_columns = list[Relation](), set[str]()
    for file_index, (file, layout) in enumerate(zip(files, layouts, strict=True)):
        if layout.kind not in text_kinds:
            relations += open_files([file], [layout.name], sheet=layout.sheet).relations
            continue
        # A key of one JSON object takes no other row's cell away.
        folder_cells = list_folder_cells(file) if layout.kind is FileKind.JSON else layout.folder_cells
        cell_by_column = {column: cell for column, cell in folder_cells if column in columns}
        stored_columns = tuple(column for column in columns if column not in cell_by_column)
        # A file in memory is never written to a disk.
        output = io.BytesIO() if isinstance(file, MemoryFile) else workspace.folder / f"rows-{file_index}"
        try:
            found_columns |= {*cell_by_column, *single_rows.write_rows(file, layout, stored_columns, output)}
        except InvalidInput:
            raise _build_unreadable_error() from None
        relation = Relation(
            MemoryFile(output.getvalue()) if isinstance(output, io.BytesIO) else output, layout.name,
            FileKind.PARQUET, (*stored_columns, *cell_by_column),
            delimiter=layout.separator if layout.kind is FileKind.TEXT else "",
            types=("VARCHAR",) * len(stored_columns), folder_cells=tuple(cell_by_column.values()),
        )  # fmt: skip
        relations.append(relation)
    if all(layout.kind is FileKind.JSON for layout in layouts):
        with Problems() as problems:
            refuse_missing(problems, [column for column in columns if column in found_columns], columns)
    return relations


def _open_by_header(
    files: Sequence[File],
    display_names: Sequence[str] | None,
    stated_separator: str,
    named_columns: Sequence[str] = (),
) -> Source:
    """Open files by their column names alone, independent of their rows; JSON has the named columns."""
    relations, head_tables = [], []
    for file, file_name in zip(files, display_names or map(name_file, files), strict=True):
        file_start = formats.read_start(file, file_name)
        if file_start.kind is FileKind.WORKBOOK:
            raise _build_unreadable_error()
        try:
            if file_start.kind is FileKind.TEXT:
                stored_columns = [c for c in named_columns if c not in dict(list_folder_cells(file))]
                arguments = file, file_name, file_start, stated_separator, stored_columns
                relation, head = _read_text_header(*arguments)
            elif file_start.kind is FileKind.JSON:
                json_layout = FileLayout(file_name, FileKind.JSON, packing=file_start.packing)
                json_columns = list(dict.fromkeys(named_columns))
                head = build_table(json_columns, [["0"] * len(json_columns)], np.arange(1, 3), file_name)
                head = replace(head, layouts=(json_layout,))
                relation = Relation(file, file_name, FileKind.JSON, head.columns)
            else:
                relation, head = inspect_parquet(file, file_name, 0, reads_header_only=True)
        except InvalidInput:
            raise _build_unreadable_error() from None
        relation, head = add_folder_cells(file, relation, head)
        relations.append(relation)
        head_tables.append(head)
    if len({frozenset(relation.columns) for relation in relations}) > 1:
        raise _build_unreadable_error()
    file_layouts = tuple(file_layout for head in head_tables for file_layout in head.layouts)
    return Source(relations[0].name, replace(head_tables[0], layouts=file_layouts), False, tuple(relations))


def _read_text_header(
    file: File,
    display_name: str,
    file_start: FileStart,
    stated_separator: str,
    named_columns: Sequence[str],
) -> tuple[Relation, Table]:
    """Return a text file as a relation, and its header with one dummy row in place of all rows."""
    content, encoding = file_start.content, formats.detect_encoding(file_start.content)
    if encoding.startswith(("utf-16", "utf-32")):
        content = content.decode(encoding, "ignore").encode()
    byte_lines = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    num_skipped, separator = _find_header(byte_lines, named_columns, stated_separator)
    delimiter_byte = separator.replace(" +", " ").encode()
    dummy_bytes = delimiter_byte.join([b"0"] * (byte_lines[num_skipped].count(delimiter_byte) + 1))
    header_bytes = byte_lines[num_skipped] + b"\n" + dummy_bytes + b"\n"
    head = read_table(header_bytes, display_name, separator if separator in SPACED else stated_separator)
    encoding = encoding or head.encoding
    layout = replace(
        head.layouts[0], skip=num_skipped, packing=file_start.packing, encoding=encoding,
        has_stated_separator=bool(stated_separator),
    )  # fmt: skip
    head = replace(head, layouts=(layout,))
    format_fields = file_start.packing, encoding, head.delimiter, num_skipped
    marked_separator = separator if separator in SPACED else ""
    return Relation(file, display_name, FileKind.TEXT, head.columns, *format_fields, marked_separator), head


def _find_header(
    byte_lines: Sequence[bytes], named_columns: Sequence[str], stated_separator: str
) -> tuple[int, str]:
    """Return the number of lines above the header, which has the named columns, and its separator."""
    separators = [stated_separator] if stated_separator else [",", ";", "\t", "|", *reversed(SPACED)]
    for num_skipped, byte_line in enumerate(byte_lines):
        line = byte_line.decode("utf-8", "replace").lstrip("\ufeff")
        for separator in separators if named_columns else ():
            cells = split_fields(line, separator) if separator in SPACED else line.split(separator)
            if set(named_columns) <= {" ".join(cell.strip(' "').split()) for cell in cells}:
                return num_skipped, separator
        if line.strip() and not line.lower().startswith(("#", "sep=")):
            break
    # Names with a separator inside quotation marks, and columns that are not there.
    return num_skipped, max(separators[:4], key=line.count)


def _write_condition(number_column: DuckColumn) -> str:
    """Return the SQL condition that a cell of the column is a number up to 1e100; null where it is missing."""
    return f"abs({number_column.sql}) <= {MAX_NUMBER}"


class _AmountsReduction(FileReduction):
    """The reduction of files to `UserAmounts`.

    Attributes:
        user_amounts: The result, after `reduce` has run.
        column_error: The error of a column whose type has no numbers; None if there is none.
        keeps_rows: True to keep the value of every row.
    """

    user_amounts: UserAmounts | None = None
    column_error: InvalidInput | None = None
    keeps_rows: bool = False

    def _open_source(self, duck: Duck) -> None:
        """Create the view ``source``: all rows as text, and numbers of some columns, each cell read separately."""
        self._create_view(duck, {}, False)
        number_columns = dict.fromkeys([self.roles.value, *list_compared_columns(self.roles.filters)])
        sql_by_column = {
            f"c{self.columns.index(column_name)}": self._write_number_sql(duck, column_name)
            for column_name in filter(None, number_columns)
        }
        self._create_view(duck, sql_by_column, False)

    def _write_number_sql(self, duck: Duck, column_name: str) -> str:
        """Return the SQL of a column's numbers, and keep its decimal mark for the program."""
        view_column = f"c{self.columns.index(column_name)}"
        column_type = self._types_by_column[view_column]
        if self.roles.yes_text and column_name == self.roles.value:
            self.decimal_marks[column_name] = ""
            return write_yes_sql(view_column, self.roles.yes_text)
        if column_type.is_string():
            # The decimal mark of the column is for the program only; no number here depends on it.
            self.decimal_marks[column_name] = self._settle_marks(duck, view_column, column_name).decimal_mark
            has_semicolons = all(relation.delimiter == ";" for relation in self._relations)
            cell_sql = f"trim({view_column}, {quote_literal(BLANKS)})"
            return read_cell_sql(cell_sql, "," if has_semicolons else ".")
        if column_type.is_numeric() or column_type.is_boolean() or column_type.is_null():
            self.decimal_marks[column_name] = ""
            return f"CAST({view_column} AS DOUBLE)"
        self.column_error = refuse(NO_NUMBERS_MESSAGE, f"column {shorten(column_name)}", OTHER_COLUMN_REMEDY)
        raise self.column_error

    def _clamp_values(self, number_column: DuckColumn) -> DuckColumn:
        """Return the values: what is no number up to 1e100 is settled by the public rule, and others are clamped."""
        missing_sql = "NULL" if self.roles.drops_missing else repr(self.roles.missing_constant or 0.0)
        finite_sql = (
            f"CASE WHEN {_write_condition(number_column)} THEN {number_column.sql} ELSE {missing_sql} END"
        )
        # The least and the greatest of null and a number are the number.
        limited_sql = f"greatest(least({finite_sql}, {LARGEST_CELL}), -{LARGEST_CELL})"
        clamped_sql = f"CASE WHEN {finite_sql} IS NOT NULL THEN {limited_sql} END"
        return replace(number_column, sql=clamped_sql)

    def _reduce(self) -> Facets:
        """Count the amounts per user, kept in ``user_amounts``, and return their histogram alone as facets."""
        with self._open_connection() as duck:
            self._open_source(duck)
            roles = rename_roles(self.roles, self.columns)
            source_rows = filter_rows(duck.get_table("source"), roles.filters, NUMBER_PREFIX)
            count_sql, value_expression = "count(*), NULL", None
            if roles.value is not None:
                number_column = source_rows[NUMBER_PREFIX + roles.value]
                count_sql = (
                    f"count(*), count(*) FILTER (NOT coalesce({_write_condition(number_column)}, false))"
                )
                value_expression = self._clamp_values(number_column)
            (row_counts,) = duck.fetch_rows(f"SELECT {count_sql} FROM ({source_rows.sql}) AS t")
            unfiltered_roles = replace(roles, filters=())
            events = query.select_events(source_rows, unfiltered_roles, value_expression, has_nan=True)
            events = query.settle_missing(events, None) if roles.drops_missing else events
            rows = query.select_counted(events, roles.missing_users)
            user_amounts = self._count_amounts(duck, duck.store_table("rows", rows), roles)
        num_rows, num_cells_without_number = row_counts
        self.user_amounts = replace(
            user_amounts,
            num_cells_without_number=num_cells_without_number,
            num_rows_without_user=int(num_rows) - user_amounts.histogram.num_rows,
        )
        return Facets(self.user_amounts.histogram)

    def _count_amounts(self, duck: Duck, rows: DuckTable, roles: Roles) -> UserAmounts:
        """Count rows per user, and sums per user or rows and sums per pair, as the roles require."""
        user_keys_sql = ", ".join(query.list_user_columns(rows))
        table_sql = f"({rows.sql})"
        sizes_sql = f"SELECT count(*) AS size FROM {table_sql} GROUP BY {user_keys_sql}"
        size_columns = duck.fetch_columns(f"SELECT size, count(*) AS users FROM ({sizes_sql}) GROUP BY size")
        histogram = ContributionHistogram.nobody()
        if size_columns["size"].size:
            histogram = ContributionHistogram.from_table(size_columns["size"], size_columns["users"])
        user_amounts = UserAmounts(histogram)
        code_sql = f"dense_rank() OVER (ORDER BY {user_keys_sql}) AS code"
        if self.keeps_rows:
            row_columns = duck.fetch_columns(f"SELECT value, {code_sql} FROM {table_sql}")
            row_order = np.argsort(row_columns["code"], kind="stable")
            pair_users = np.asarray(row_columns["code"], np.int64)[row_order]
            values = np.asarray(row_columns["value"], np.float64)[row_order]
            pair_rows = np.ones_like(pair_users)
            return replace(user_amounts, pair_user_codes=pair_users, pair_rows=pair_rows, pair_sums=values)
        sums_sql = "" if roles.value is None else ", sum(value) AS sums"
        if roles.task is None:
            if not sums_sql:
                return user_amounts
            totals_sql = f"SELECT sum(value) AS sums FROM {table_sql} GROUP BY {user_keys_sql}"
            total_columns = duck.fetch_columns(totals_sql)
            return replace(user_amounts, totals=np.asarray(total_columns["sums"], np.float64))
        group_keys_sql = ", ".join(query.list_task_columns(rows))
        from_named_sql = f"FROM {table_sql} WHERE task IS NOT NULL"
        pair_keys_sql = f"{user_keys_sql}, {group_keys_sql}"
        pairs_sql = (
            f"SELECT {pair_keys_sql}, count(*) AS rows{sums_sql} {from_named_sql} GROUP BY {pair_keys_sql}"
        )
        codes_sql = f"{code_sql}, dense_rank() OVER (ORDER BY {group_keys_sql}) - 1 AS group_code"
        pair_columns = duck.fetch_columns(
            f"SELECT rows{', sums' if sums_sql else ''}, {codes_sql} FROM ({pairs_sql})"
        )
        pair_order = np.lexsort((pair_columns["group_code"], pair_columns["code"]))
        cells_sql = ", ".join(
            f"CAST({c} AS VARCHAR)[:{LONGEST_TASK_NAME}]" for c in query.list_task_columns(rows)
        )
        groups_sql = f"SELECT DISTINCT {group_keys_sql} {from_named_sql}"
        names_sql = f"SELECT {cells_sql} FROM ({groups_sql}) ORDER BY {group_keys_sql}"
        group_names = tuple(" × ".join(map(str, group_cells)) for group_cells in duck.fetch_rows(names_sql))
        return replace(
            user_amounts, pair_user_codes=np.asarray(pair_columns["code"], np.int64)[pair_order],
            pair_rows=np.asarray(pair_columns["rows"], np.int64)[pair_order],
            pair_sums=np.asarray(pair_columns["sums"], np.float64)[pair_order] if sums_sql else None,
            pair_group_codes=np.asarray(pair_columns["group_code"], np.int64)[pair_order],
            group_names=group_names, num_groups=len(group_names),
        )  # fmt: skip
