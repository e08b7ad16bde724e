"""The reduction of files through DuckDB to a histogram and further facets, in parts if needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from dpcore.common.checks import Problems, refuse
from dpcore.common.wording import format_count
from dpcore.contributions import ContributionHistogram
from dpcore.counting import diagnose, query, relation
from dpcore.counting.attempts import FileAttempts
from dpcore.counting.duck import Duck, write_part_condition
from dpcore.counting.duck_tables import ColumnType, DuckColumn, DuckTable, quote_literal
from dpcore.counting.facets import Facets, RowPlaces, describe_first, note_copies
from dpcore.counting.public_rules import count_outside, filter_rows, note_outside, write_yes_sql
from dpcore.counting.reduce import MAX_SIZES, Reduction
from dpcore.counting.relation import ROW_COLUMN, Relation, clean_sql, is_padded_sql, make_comparable_sql
from dpcore.data.cell_numbers import Marks, settle_marks
from dpcore.data.column_names import HEADER_AGAIN_MESSAGE, REMOVE_HEADER_REMEDY, and_more, shorten
from dpcore.data.column_roles import MissingUsers, Roles, TableKind
from dpcore.data.row_filter import list_compared_columns
from dpcore.data.tables import BLANKS, FileKind
from dpcore.dataset import Contribution

NO_NUMBERS_MESSAGE, OTHER_COLUMN_REMEDY = "the column does not hold numbers", "Choose another column"
NUMBER_PREFIX = "n"


class FileReduction(FileAttempts):
    """The reduction of files, or of a table in memory, to `Facets`."""

    # --- rows and numbers -----------------------------------------------------------------------------------

    def _reduce(self) -> Facets:
        """Count once with the present options; raise InvalidInput for rows that do not count, or DuckDB's error."""
        text_relations = [single_relation for single_relation in self._relations if single_relation.is_text]
        if single_threaded_relations := [
            single_relation for single_relation in text_relations if single_relation.is_single_threaded
        ]:
            diagnose.refuse_open_quotes(single_threaded_relations, self._should_stop)
        with self._open_connection() as duck:
            self._open_source(duck)
            roles = relation.rename_roles(self.roles, self.columns)
            if self.roles.kind is TableKind.HISTOGRAM:
                return self._reduce_sizes(duck, roles)
            facets = self._reduce_events(duck, duck.get_table("source"), roles)
            if len(self.columns) > 2 and not self._is_count_table:
                self._note_copies(duck, roles)
        # Reading all of a file once more takes 4 % of the time; it is not needed if no id contains a blank between
        # marks.
        if text_relations:
            diagnose.refuse_reopened_marks(text_relations, self._should_stop, self._has_blanks)
        return facets

    def _open_source(self, duck: Duck) -> None:
        """Create the view ``source``: all rows as text, and the number columns as numbers."""
        self._create_view(duck, {}, self._in_memory)
        is_histogram = self.roles.kind is TableKind.HISTOGRAM
        problems, sql_by_column = Problems(), dict[str, str]()
        value_columns = [self.roles.value, *list_compared_columns(self.roles.filters)]
        number_columns = [self.roles.size, self.roles.users] if is_histogram else value_columns
        for column_name in dict.fromkeys(filter(None, number_columns)):
            view_column = f"c{self.columns.index(column_name)}"
            if self.roles.yes_text and column_name == self.roles.value:
                sql_by_column[view_column] = write_yes_sql(view_column, self.roles.yes_text)
                self.decimal_marks[column_name] = ""
            elif self._types_by_column[view_column].is_string():
                marks = self._settle_marks(duck, view_column, column_name)
                sql_by_column[view_column] = marks.number_sql
                self.decimal_marks[column_name] = marks.decimal_mark
                self.notes += [marks.note_text] if marks.note_text else []
                problems.extend([marks.problem] if marks.problem is not None else [])
            elif self._types_by_column[view_column].is_boolean():
                sql_by_column[view_column], self.decimal_marks[column_name] = f"{view_column}::DOUBLE", ""
            elif self._types_by_column[view_column].is_numeric():
                sql_by_column[view_column], self.decimal_marks[column_name] = view_column, ""
            else:
                problems.add(NO_NUMBERS_MESSAGE, f"column {shorten(column_name)}", OTHER_COLUMN_REMEDY)
        problems.raise_if_any()
        self._create_view(duck, sql_by_column, self._in_memory)

    def _create_view(self, duck: Duck, sql_by_column: dict[str, str], has_row_numbers: bool) -> None:
        """Create the view ``source`` with columns of numbers, named by `NUMBER_PREFIX` and the column read."""
        self._number_sql_by_column = sql_by_column
        source_sql = self._write_view(self._relations, has_row_numbers)
        duck.connection.execute(f"CREATE OR REPLACE TEMP VIEW source AS {source_sql}")
        self._types_by_column = duck.get_table("source").types_by_column

    def _write_view(self, relations: Sequence[Relation], has_row_numbers: bool) -> str:
        """Return the SQL of all rows of these files, with number columns and, if asked for, row numbers added."""
        union_sql = relation.write_union(relations, self.columns, self.roles.missing_users, has_row_numbers)
        sql_and_names = [(sql, NUMBER_PREFIX + column) for column, sql in self._number_sql_by_column.items()]
        numbers_sql = "".join(f", {sql} AS {name}" for sql, name in sql_and_names)
        return f"SELECT *{numbers_sql} FROM ({union_sql})" if numbers_sql else union_sql

    def _settle_marks(self, duck: Duck, view_column: str, column_name: str) -> Marks:
        """Choose the decimal and thousands marks of a text column, and so the SQL of its numbers."""

        def check_masks(masks_by_name: Mapping[str, str]) -> dict[str, bool]:
            """Return by name whether any row satisfies each SQL mask."""
            self._steps.num_steps += 1
            anywhere_sql = ", ".join(f"bool_or({mask_sql})" for mask_sql in masks_by_name.values())
            (mask_values,) = duck.fetch_rows(f"SELECT {anywhere_sql} FROM source")
            return dict(zip(masks_by_name, map(bool, mask_values), strict=True))

        delimiters = {one_relation.delimiter for one_relation in self._relations}
        delimiter = delimiters.pop() if len(delimiters) == 1 else ""
        cell_sql = f"trim({view_column}, {quote_literal(BLANKS)})"

        def find_place(mask_sql: str) -> str:
            """Return the location of the first row that satisfies an SQL mask."""
            return self._find_rows_where(mask_sql, 1)[0][0]

        return settle_marks(cell_sql, check_masks, find_place, column_name, delimiter, self._is_count_table)

    def _find_rows(self, write_flagged_rows_sql: Callable[[Duck], str], max_rows: int) -> RowPlaces:
        """Return the locations and details of the first bad rows of all files, which are read again for that."""
        return diagnose.find_rows(
            self._relations,
            self._write_view,
            self._open_connection,
            write_flagged_rows_sql,
            max_rows,
            self._should_stop,
        )

    def _find_rows_where(self, mask_sql: str, max_rows: int) -> RowPlaces:
        """Return the locations of the first rows for which a mask is true."""
        flagged_rows_sql = f"SELECT {ROW_COLUMN}, '' AS detail, {mask_sql} AS bad FROM source"
        return self._find_rows(lambda _: flagged_rows_sql, max_rows)

    def _describe_first(self, mask_sql: str, num_rows: int) -> str:
        """Return the first of ``num_rows`` rows that satisfy an SQL mask, its location as the end of a note."""
        return describe_first(self._find_rows_where(mask_sql, 1), num_rows)

    # --- copies ---------------------------------------------------------------------------------------------

    def _note_copies(self, duck: Duck, roles: Roles) -> None:
        """Count exact copies of rows and add a note on them, or a note that they were not looked for."""
        if not (self._in_memory or self._counts_copies):
            note_copies(None, self.notes)
            return
        view_columns = [f"c{view_index}" for view_index in range(len(self.columns))]
        cell_sqls = [make_comparable_sql(column, self._types_by_column[column]) for column in view_columns]
        cells_sql = ", ".join(f"{cell_sql} AS c{view_index}" for view_index, cell_sql in enumerate(cell_sqls))
        condition_sql = self._write_counted_condition(view_columns, roles)
        rows_sql = f"SELECT {cells_sql} FROM source WHERE {condition_sql}"
        num_copies = 0
        self._steps.num_steps += self._num_passes
        for part_index in range(self._num_passes):
            in_part_sql = write_part_condition(", ".join(roles.privacy_unit), part_index, self._num_passes)
            grouped_sql = f"WHERE {in_part_sql} GROUP BY {', '.join(view_columns)}"
            groups_sql = f"SELECT count(*) AS n FROM ({rows_sql}) {grouped_sql}"
            num_copies += duck.fetch_rows(f"SELECT coalesce(sum(n - 1), 0)::BIGINT FROM ({groups_sql})")[0][0]
        row_places = self._find_repeats(view_columns, roles, 1) if num_copies and self._in_memory else []
        note_copies(num_copies, self.notes, row_places)

    def _find_repeats(self, compared_columns: Sequence[str], roles: Roles, max_rows: int) -> RowPlaces:
        """Find the first counted rows that repeat the cells of an earlier row, with the location of that row."""
        cells_sql = ", ".join(make_comparable_sql(c, self._types_by_column[c]) for c in compared_columns)
        first_sql = f"min({ROW_COLUMN}) OVER (PARTITION BY {cells_sql})"
        condition_sql = self._write_counted_condition(compared_columns, roles)
        rows_sql = f"SELECT {ROW_COLUMN}, {first_sql} AS detail FROM source WHERE {condition_sql}"
        flagged_rows_sql = f"SELECT *, detail < {ROW_COLUMN} AS bad FROM ({rows_sql})"
        return self._find_rows(lambda _: flagged_rows_sql, max_rows)

    def _write_counted_condition(self, columns: Sequence[str], roles: Roles) -> str:
        """Return the SQL condition that a row counts, when rows are compared by these columns.

        A row without a user counts if these rows are one user, and more columns than those of the user are compared.
        """
        cell_sqls = [make_comparable_sql(c, self._types_by_column[c]) for c in roles.privacy_unit]
        condition_sqls = [f"{cell_sql} IS NOT NULL" for cell_sql in cell_sqls]
        counts_unnamed = roles.missing_users is MissingUsers.ONE_USER and len(columns) > len(condition_sqls)
        return "true" if counts_unnamed or not condition_sqls else " AND ".join(condition_sqls)

    # --- events ---------------------------------------------------------------------------------------------

    def _reduce_events(self, duck: Duck, source_table: DuckTable, roles: Roles) -> Facets:
        """Count a table of events: in one pass if only users matter and no cell needs cleaning, else after cleaning."""
        if roles.periods is not None:
            self._steps.num_steps += 1
            outside_counts = duck.fetch_table(count_outside(source_table, roles.periods))
            note_outside(outside_counts, self.roles.periods or roles.periods, self.notes)
        needs_users_alone = self.roles.value is None and self.roles.task is None
        if needs_users_alone and self._num_passes == 1:
            facets = self._reduce_in_one_pass(duck, source_table, roles)
            if facets is not None:
                return facets
        value_expression = self._find_value_column(source_table, roles.value)
        rows = self._select_events(source_table, roles, value_expression, relation.strip_padded)
        # The few columns are stored if reading them again would cost more.
        is_read_again = not needs_users_alone or self._num_passes > 1
        if is_read_again and any(
            single_relation.kind is not FileKind.PARQUET for single_relation in self._relations
        ):
            rows = duck.store_table("rows", rows)
        header_condition_sql = self._write_header_condition(rows)
        header_sql = f"SELECT bool_or({header_condition_sql}) FROM ({rows.sql})"
        if header_condition_sql and duck.fetch_rows(header_sql)[0][0]:
            self._refuse_second_headers(duck)
        return self._build_reduction(duck, rows, roles).reduce()

    def _reduce_in_one_pass(self, duck: Duck, source_table: DuckTable, roles: Roles) -> Facets | None:
        """Count users in one pass, by their cells alone; return None if these are no text or need cleaning.

        Cells are grouped unchanged and checked afterwards, once per user: stripping 10 million cells before grouping
        would take a third of the time. Ids of digits stay text, as 7, 07 and 7.0 are three users. Grouping 10 million
        of them takes 14 % longer than grouping numbers; a cast with a proof that no two texts are one number takes
        about 30 %.
        """
        rows = self._select_events(source_table, roles, None, lambda column: column)
        if not (text_columns := query.list_text_columns(rows)):
            return None
        reduction = self._build_reduction(duck, rows, roles)
        odd_conditions = [self._write_header_condition(rows), *map(is_padded_sql, text_columns)]
        odd_sql = " OR ".join(filter(None, odd_conditions))
        blanks_sql = " OR ".join(f"contains({text_column}, ' ')" for text_column in text_columns)
        histogram_columns = reduction.count_users(odd=odd_sql, blanks=blanks_sql)
        if np.nansum(np.asarray(histogram_columns["odd"], np.float64)):
            self._steps.num_steps += 1
            return None
        self._has_blanks = bool(np.nansum(np.asarray(histogram_columns["blanks"], np.float64)))
        reduction.histogram_columns = histogram_columns
        return reduction.reduce()

    def _write_header_condition(self, rows: DuckTable) -> str:
        """Return the SQL condition that a user is called like the column, as in joined files; empty if it cannot be."""
        may_be_joined = any(
            single_relation.is_text and len(single_relation.columns) > 1
            for single_relation in self._relations
        )
        if not (may_be_joined and query.list_text_columns(rows)):
            return ""
        user_column, column_name = f"{query.USER_PREFIX}0", self.roles.user or ""
        # Cleaning every cell would take longer than counting, so the last word of the name is searched first.
        has_word_sql = f"contains({user_column}, {quote_literal(column_name.split()[-1])})"
        return f"({has_word_sql} AND {clean_sql(user_column)} = {quote_literal(column_name)})"

    def _refuse_second_headers(self, duck: Duck) -> None:
        """Raise InvalidInput if files were joined with their headers, which would count as a further user."""
        self._steps.num_steps += 1
        same_sqls = [
            f"{clean_sql(f'c{i}')} = {quote_literal(column_name)}"
            for i, column_name in enumerate(self.columns)
        ]
        condition_sql = " AND ".join(same_sqls)
        if num_headers := duck.fetch_rows(f"SELECT count(*) FROM source WHERE {condition_sql}")[0][0]:
            header_message = HEADER_AGAIN_MESSAGE + and_more(num_headers - 1)
            raise refuse(header_message, self._find_rows_where(condition_sql, 1)[0][0], REMOVE_HEADER_REMEDY)

    def _select_events(
        self,
        source_table: DuckTable,
        roles: Roles,
        value_expression: DuckColumn | None,
        strip: Callable[[DuckColumn], DuckColumn],
        further_columns: Sequence[str] = (),
    ) -> DuckTable:
        """Return `query.select_events` of the table, with the rows' numbers if the files are in memory."""
        rows, roles = filter_rows(source_table, roles.filters, NUMBER_PREFIX), replace(roles, filters=())
        events: DuckTable = query.select_events(
            rows, roles, value_expression, has_nan=True, strip_cells=strip,
            further_columns=further_columns or ((ROW_COLUMN,) if self._in_memory else ()),
        )  # fmt: skip
        return events

    def _find_value_column(self, source_table: DuckTable, view_column: str | None) -> DuckColumn | None:
        """Return a view column's numbers; None if no column is given.

        In numbers that the file itself stores, NaN and infinite ones are replaced by one large number.
        """
        if view_column is None:
            return None
        numbers: DuckColumn = source_table[NUMBER_PREFIX + view_column]
        if self._number_sql_by_column[view_column] == view_column:
            numbers = query.replace_non_numbers(numbers, has_nan=True)
        return numbers

    def _build_reduction(
        self, duck: Duck, rows: DuckTable, roles: Roles, message_roles: Roles | None = None
    ) -> Reduction:
        """Build the reduction of rows to facets, with other roles for messages, and add its queries to the progress."""
        num_queries_in_parts = 1 + (self.roles.value is not None) + (self.roles.task is not None)
        self._steps.num_steps += num_queries_in_parts * (self._num_passes - 1)

        def find_places(cell_kind: str, max_rows: int) -> RowPlaces:
            """Return the locations and contents of the first rows with cells of a kind."""
            self._steps.num_steps += 1
            if cell_kind == "again":
                return self._find_repeats(roles.privacy_unit, roles, max_rows)
            if cell_kind == "nul":
                nul_conditions = [f"contains({column}::VARCHAR, chr(0))" for column in roles.privacy_unit]
                return self._find_rows_where(" OR ".join(nul_conditions), max_rows)

            def write_flagged_rows_sql(duck_to_read: Duck) -> str:
                """Return the SQL of all rows with their number, a flag for cells of the kind, and a detail to show."""
                table = duck_to_read.get_table("source")
                value_expression = self._find_value_column(table, roles.value)
                no_text = DuckColumn("''", ColumnType("VARCHAR"))
                cells = table[roles.value].cast("string") if roles.value else no_text
                events = self._select_events(
                    table.mutate(cell=cells),
                    roles,
                    value_expression,
                    relation.strip_padded,
                    (ROW_COLUMN, "cell"),
                )
                # These cells are from a short list of words or numbers like 1e999, so they may be shown.
                detail = no_text
                if cell_kind in ("negative", "broken", "large", "not_finite"):
                    detail = events["cell" if cell_kind == "not_finite" else "value"]
                bad_mask = query.mask_odd_cells(events, roles.missing_users, self._is_count_table)[cell_kind]
                return events.select(ROW_COLUMN, bad=bad_mask, detail=detail).sql

            return self._find_rows(write_flagged_rows_sql, max_rows)

        return Reduction(
            rows, message_roles or self.roles, self.columns, duck.fetch_table, duck, find_places,
            notes=self.notes, is_count_table=self._is_count_table, num_passes=self._num_passes,
            order_column=ROW_COLUMN if self._in_memory else "",
        )  # fmt: skip

    # --- a histogram, which is counted already ------------------------------------------------------------

    def _reduce_sizes(self, duck: Duck, roles: Roles) -> Facets:
        """Build the histogram of a file that states sizes and numbers of users; refuse or note odd rows."""
        size_column, users_column = f"{NUMBER_PREFIX}{roles.size}", f"{NUMBER_PREFIX}{roles.users}"
        size_name, users_name = shorten(self.roles.size or ""), shorten(self.roles.users or "")
        # Stored, as every other query would read the numbers again, which takes most of the time.
        selected_columns = [size_column, users_column, *([ROW_COLUMN] if self._in_memory else [])]
        table = duck.store_table("sizes", duck.get_table("source").select(*selected_columns))
        with Problems() as problems:
            for role_name in ("size", "users"):
                view_column = getattr(roles, role_name)
                event_roles = Roles(TableKind.EVENTS, value=view_column, contribution=Contribution.TOTAL)
                value_expression = self._find_value_column(table, event_roles.value)
                events = self._select_events(table, event_roles, value_expression, relation.strip_padded)
                message_roles = replace(event_roles, value=getattr(self.roles, role_name))
                reduction = self._build_reduction(duck, events, event_roles, message_roles)
                reduction.count_remedy = "It must be a whole number; if it is not one, choose another column"
                reduction.refuse_cells(problems)
        is_positive_sql = f"{size_column} > 0 AND {users_column} > 0"
        sums_sql = f"{size_column} AS size, sum({users_column}) AS users, count(*) AS rows"
        limit_sql = f"GROUP BY 1 ORDER BY 1 LIMIT {MAX_SIZES + 1}"
        sum_columns = duck.fetch_columns(f"SELECT {sums_sql} FROM sizes WHERE {is_positive_sql} {limit_sql}")
        if sum_columns["size"].size > MAX_SIZES:
            sizes_message = f"there are more than {MAX_SIZES:,} distinct sizes"
            raise refuse(sizes_message, f"column {size_name}", f"{OTHER_COLUMN_REMEDY}, or a larger unit")
        is_zero_sql = f"({size_column} = 0 OR {users_column} = 0)"
        if num_zero_rows := duck.fetch_rows(f"SELECT count(*) FROM sizes WHERE {is_zero_sql}")[0][0]:
            noun_forms = "row of size 0 or without users was", "rows of size 0 or without users were"
            rows_text = format_count(num_zero_rows, *noun_forms)
            self.notes.append(f"{rows_text} left out{self._describe_first(is_zero_sql, num_zero_rows)}.")
        if not sum_columns["size"].size:
            columns_location = f"columns {size_name} and {users_name}"
            raise refuse("no row has a size above 0 that anybody has", columns_location, OTHER_COLUMN_REMEDY)
        if num_repeats := int(sum_columns["rows"].sum()) - sum_columns["rows"].size:
            self.has_repeated_sizes = True
            repeat_text = format_count(num_repeats, "row repeats", "rows repeat")
            first_row_sql = f"min({ROW_COLUMN}) FILTER ({is_positive_sql}) OVER (PARTITION BY {size_column})"
            first_text = self._describe_first(f"{is_positive_sql} AND {ROW_COLUMN} > {first_row_sql}", 2)
            self.notes.append(
                f"{repeat_text} a size that stood before{first_text}; their users were added up."
            )
        user_counts = sum_columns["users"].astype(np.float64)
        return Facets(ContributionHistogram.from_table(sum_columns["size"], user_counts))
