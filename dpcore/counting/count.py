"""Counting: whatever a person has in hand becomes a dataset.

A table in memory, a file, counts, or a histogram (`to_dataset`); files whose columns have roles (`count`).
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.common.checks import InputProblem, InvalidInput, Problems, describe_error, refuse
from dpcore.common.privacy import Disclosure, Provenance, ReleaseFacts, check_provenance, classify
from dpcore.common.progress import Progress, ShouldStop
from dpcore.common.wording import format_count, format_number
from dpcore.contributions import ContributionHistogram
from dpcore.counting import files
from dpcore.counting.duck import MEMORY_LIMIT, Steps, StoppedError
from dpcore.counting.facets import Facets
from dpcore.counting.files import Source
from dpcore.counting.formats import MemoryFile
from dpcore.counting.frames import FRAME_FILE, write_parquet
from dpcore.counting.pair_tables import build_pair_dataset, prefer_pair_roles
from dpcore.counting.reduce_files import FileReduction
from dpcore.counting.relation import refuse_changed, refuse_times
from dpcore.data import column_names, column_roles
from dpcore.data.column_roles import TOTALS_PREFIX, MissingRule, Roles, TableKind, explain_roles
from dpcore.data.guessed_roles import guess_pairs
from dpcore.data.periods import build_periods
from dpcore.data.row_filter import RowFilter, parse_filters
from dpcore.data.tables import FileKind, Table, TableLayout
from dpcore.dataset import Contribution, Dataset, Totals


def to_dataset(
    data: Any,
    user: column_names.Columns = None,
    value: str | None = None,
    group: column_names.Columns = None,
    disclosure: str | Provenance = Disclosure.PRIVATE,
    contribution: Contribution = Contribution.ROWS,
    needs: Sequence[str] = (),
    missing: MissingRule = None,
    sheet: str = "",
    separator: str = "",
    yes: str | None = None,
    filters: str | None = None,
    date: str | None = None,
    periods: str | None = None,
    releases: int = 1,
    person_epsilon: float | None = None,
    further_values: Sequence[str] = (),
) -> Dataset:
    """Convert data of any accepted kind to a `Dataset`, as *Data* does for an upload.

    Args:
        data: A table in memory (pandas, Polars, Arrow, DuckDB), one row per contribution; the path of a file, a
            pattern such as ``logs/*.csv``, or several of them; rows per user as a list, an array or a dict by user; a
            `ContributionHistogram`; or a `Dataset`, which stays as it is.
        user: The column, or columns together, that identify the user of a row. A file of counts or of a histogram needs
            none.
        value: The column of numbers that is released; None for none.
        group: The column, or columns together, that name the group; None for none.
        disclosure: ``"public"`` or ``"private"``, or the facts of a DP release.
        contribution: The unit of a contribution.
        needs: Names of those of the arguments ``value`` and ``group`` that the question requires.
        missing: What happens where a value is missing or no number up to ±1e100: ``"drop"`` leaves the row out, a
            public number replaces the value, None refuses the data.
        sheet: Sheet of workbooks; empty for the first.
        separator: Separator of fields of text files; empty to detect it.
        yes: The cell of the values that counts as 1, while all other filled ones count as 0; None to read numbers.
        filters: Public conditions such as ``quantity > 0; country = France``; other rows are left out.
        date: The column of dates, for periods.
        periods: Public periods such as ``2025-01-01 to 2026-01-01 by month``, each of which makes a user another unit.
        releases: How often such a release is made, each of further periods.
        person_epsilon: The largest epsilon for a whole person; None for no limit.
        further_values: Further columns of numbers that are released.

    Returns:
        The dataset.

    Raises:
        InvalidInput: The table cannot be counted with these columns; all problems at once.
    """
    if isinstance(data, Dataset):
        _refuse_missing_facets(data, needs)
        return data
    columns_by_argument = {"value": value, "group": group}
    missing_arguments = [
        argument_name
        for argument_name in columns_by_argument
        if argument_name in needs and not columns_by_argument[argument_name]
    ]
    provenance: Provenance = Disclosure.PRIVATE
    given_dataset: Dataset | None = None
    with Problems() as problems:
        with problems.collecting():
            provenance = check_provenance(disclosure)
        stated_periods = None
        row_filters: tuple[RowFilter, ...] = ()
        with problems.collecting():
            row_filters = parse_filters(filters)
        with problems.collecting():
            stated_periods = build_periods(date, periods, releases, person_epsilon)
        with problems.collecting():
            column_names.refuse_wrong_names(user=user, value=value, group=group, date=date)
            user_columns, group_columns = column_names.list_columns(user), column_names.list_columns(group)
            source = None
            if files.is_table(data):
                named_columns = [
                    *user_columns,
                    *group_columns,
                    *column_names.list_columns(value),
                    *further_values,
                    *(column_names.list_columns(date) if user_columns else ()),
                    *(row_filter.column for row_filter in row_filters),
                ]
                parquet_bytes = write_parquet(data, named_columns, missing_arguments if user_columns else ())
                source = files.open_files([MemoryFile(parquet_bytes)], [FRAME_FILE])
            elif (file_paths := files.list_paths(data)) is None:
                given_dataset = _build_from_counts(data, provenance)
            elif files.find_summaries(file_paths):
                given_dataset = files.read_summary(file_paths, provenance=provenance)
            else:
                source = files.open_files(file_paths, sheet=sheet, separator=separator)
            if source is not None:
                user_value_group = user_columns, value, group_columns
                options = {"missing": missing, "yes": yes, "periods": stated_periods, "filters": row_filters}
                roles = _choose_roles(
                    source, *user_value_group, contribution, missing_arguments, problems, options
                )
                if further_values and roles.kind is TableKind.EVENTS:
                    column_names.refuse_missing(problems, source.columns, further_values)
                    further_columns = (column for column in further_values if column != roles.value)
                    roles = replace(roles, further_values=tuple(further_columns))
                given_dataset = count(source, roles, provenance).dataset
    assert given_dataset is not None  # There is no Stop here.
    _refuse_missing_facets(given_dataset, missing_arguments)
    return given_dataset


def _build_from_counts(data: Any, provenance: Provenance) -> Dataset:
    """Build the dataset of a histogram, or of rows per user, in order or by user; else raise InvalidInput."""
    source_text = "Rows per user."
    if isinstance(data, ContributionHistogram):
        histogram, source_text = data, "A histogram."
    else:
        rows_per_user = list_counts(data)
        if len(rows_per_user) == 0:
            raise refuse("the list of rows per user is empty", remedy="Give one number for each user")
        histogram = ContributionHistogram.from_counts(rows_per_user)
    release_facts = None if isinstance(provenance, Disclosure) else provenance
    return Dataset("your counts", source_text, classify(provenance), histogram, release=release_facts)


def list_counts(data: Any) -> Sequence[Any] | npt.NDArray[Any]:
    """Return numbers of rows per user, in order or by user, as they were entered; none of them is checked.

    Raises:
        InvalidInput: The data are neither a list, nor a dict, nor an array of one dimension.
    """
    if isinstance(data, Mapping):
        return list(data.values())
    if isinstance(data, list | tuple):
        return data
    with suppress(ValueError):
        if (array := np.asarray(data)).ndim == 1:
            return array
    allowed_text = "a table, the path of a file, rows per user (a list, or a dict by user), or a histogram"
    raise refuse(f"data must be {allowed_text}; got {type(data).__name__}")


def _refuse_missing_facets(dataset: Dataset, needed_arguments: Sequence[str]) -> None:
    """Raise InvalidInput if the dataset lacks the values or the groups that a question needs."""
    # Without a column, totals are numbers of rows.
    has_value_totals = dataset.totals is not None and bool(dataset.totals.column)
    has_groups = bool(dataset.pairs or dataset.pair_sizes or dataset.tasks)
    has_facet_by_argument = {"value": has_value_totals or dataset.values is not None, "group": has_groups}
    with Problems() as problems:
        for argument_name in needed_arguments:
            if not has_facet_by_argument[argument_name]:
                remedy = f"Take a table with one row per contribution, and name its column: {argument_name}=…"
                problems.add(f"this question needs the {argument_name} of each row", remedy=remedy)


def _choose_roles(
    file_source: Source, user_columns: list[str], value_column: str | None, group_columns: list[str],
    contribution: Contribution, missing_arguments: Sequence[str], earlier_problems: Problems,
    roles_options: Mapping[str, Any],
) -> Roles:  # fmt: skip
    """Return the roles of the named columns, or the guessed roles if no user is named or the file is of pairs that fit.

    Raise InvalidInput, together with the earlier problems, for named columns that do not exist, and for columns that a
    table of events needs and nobody named.
    """
    # Beside a named user, only pairs matter: to guess more took a tenth of a call on a small file.
    guessed_roles = guess_pairs(file_source.head) or (
        Roles(TableKind.EVENTS) if user_columns else file_source.roles
    )
    guesses_events = guessed_roles.kind is TableKind.EVENTS
    with Problems([*earlier_problems.entries]) as problems:
        named_columns = [*user_columns, *group_columns, *column_names.list_columns(value_column)]
        column_names.refuse_missing(problems, file_source.columns, named_columns)
        if guesses_events and not user_columns:
            names_text = column_names.list_names(file_source.columns)
            if guessed_roles.user:
                names_text += f"; {column_names.shorten(guessed_roles.user)} looks likely"
            problems.add(f"say which column names the user: user=…, one of {names_text}")
        if guesses_events or (user_columns and guessed_roles.kind is not TableKind.PAIRS):
            column_names.add_missing_arguments(problems, missing_arguments)
    roles = guessed_roles
    if user_columns:
        roles = Roles.of_events(user_columns, value_column, group_columns, contribution, **roles_options)
    if guessed_roles.kind is TableKind.PAIRS:
        # Where no column is named the sums that stand beside the pairs are taken, as the app proposes.
        pair_roles = replace(guessed_roles, value=value_column or guessed_roles.value)
        return prefer_pair_roles(guessed_roles, roles if user_columns else pair_roles)
    return roles


@dataclass(frozen=True)
class CountResult:
    """What counting files gave: the dataset, or None if it was stopped, and the time it took.

    Attributes:
        dataset: The counted dataset; None if counting was stopped.
        seconds: Duration.
        summary_sentence: Sentence on how counting ended.
    """

    dataset: Dataset | None
    seconds: float
    summary_sentence: str

    @classmethod
    def build(cls, start_seconds: float, dataset: Dataset | None) -> CountResult:
        """Build the result of counting that began at this monotonic time; a dataset of None means it was stopped."""
        seconds = time.monotonic() - start_seconds
        if dataset is None:
            return cls(None, seconds, "Stopped; the data in use stay as they were.")
        users_text = format_count(dataset.histogram.num_users, dataset.unit_noun)
        unit_noun = "row" if dataset.contribution is Contribution.ROWS else "contribution"
        rows_text = format_count(dataset.histogram.num_rows, unit_noun)
        summary_sentence = f"Counted {rows_text} of {users_text} in {format_number(seconds)} seconds."
        return cls(dataset, seconds, summary_sentence)


def count(
    source: Source,
    roles: Roles,
    provenance: Provenance,
    *,
    memory_limit: int = MEMORY_LIMIT,
    counts_copies: bool = False,
    progress: Progress | None = None,
    should_stop: ShouldStop | None = None,
) -> CountResult:
    """Count contributions per user in files.

    Args:
        source: Result of `open_files`.
        roles: Roles of the columns, guessed (`dpcore.data.guessed_roles.guess_roles` of ``source.head``) or chosen.
        provenance: Public, private, or the facts of a DP release, as the user states.
        memory_limit: Bytes that DuckDB may use; the rest goes to a temporary folder.
        counts_copies: True to look for exact copies of rows in large files, too, which takes another pass over all
            their columns. Files that fit in memory are always searched.
        progress: Called with the fraction done, in the calling thread.
        should_stop: Called often, in the calling thread.

    Returns:
        `CountResult`, also if counting was stopped.

    Raises:
        InvalidInput: The files cannot be counted; all problems at once.
    """
    start_seconds = time.monotonic()
    if roles.further_values and roles.drops_missing:
        # A row counts if all columns of values hold a number, so that all of them are of the same rows.
        number_columns = (
            *roles.further_values,
            *([roles.value] if roles.value and not roles.yes_text else []),
        )
        number_filters = tuple(map(RowFilter.of_number, number_columns))
        roles = replace(roles, filters=tuple(dict.fromkeys((*roles.filters, *number_filters))))
    column_roles.check_roles(source.columns, roles, source.name)
    if isinstance(provenance, ReleaseFacts) and roles.kind is not TableKind.HISTOGRAM:
        raise refuse("a DP release has one row per size", remedy="Say so, or that the data are private")
    with Problems() as problems:
        for column in (None if roles.yes_text else roles.value, roles.count, roles.size, roles.users):
            refuse_times(problems, source.head.times, column)
    refuse_changed(source.relations, "since it was looked at")
    notes = [note for note in source.head.notes if source.is_complete or "was read as" not in note]
    notes += _note_shortened_ids(source.head, roles)
    event_roles = convert_to_events(roles)
    input_problems: Sequence[InputProblem] = ()
    try:
        if roles.kind is TableKind.PAIRS:
            pair_dataset = build_pair_dataset(source, roles, classify(provenance), memory_limit, should_stop)
            return CountResult.build(start_seconds, pair_dataset)
        file_reduction = FileReduction(
            source.relations, event_roles, memory_limit, should_stop, Steps(progress, count_queries(event_roles)),
            notes, is_count_table=roles.kind is TableKind.COUNTS, counts_copies=counts_copies,
        )  # fmt: skip
        facets = file_reduction.reduce()
    except StoppedError:
        return CountResult.build(start_seconds, None)
    except (InvalidInput, OSError) as refused:
        input_problems = describe_error(refused)
    # Before other problems, which it may have caused.
    refuse_changed(source.relations, "while it was counted")
    if input_problems:  # a new error, as the original is chained to DuckDB's, which quotes lines of the file
        raise InvalidInput(input_problems)
    if isinstance(provenance, ReleaseFacts) and file_reduction.has_repeated_sizes:
        remedy = f"Bring one release with each size once in column {column_names.shorten(roles.size or '')}"
        raise refuse("a size stands twice, so this is not one DP release", remedy=remedy)
    table_layout = None if roles.periods is None else column_roles.build_rule_layout(roles)
    if source.head.layouts:
        file_layouts = list(source.head.layouts)
        for file_index, encoding in file_reduction.encodings_by_index.items():
            file_layouts[file_index] = replace(file_layouts[file_index], encoding=encoding)
        decimal_mark_pairs = tuple(file_reduction.decimal_marks.items())
        table_rules = column_roles.describe_values(roles, source.head.booleans)
        if roles.kind is TableKind.COUNTS:
            table_rules["count_column"] = roles.count or ""
        table_layout = TableLayout(tuple(file_layouts), decimal_mark_pairs, **table_rules)
    source_text = f"File {source.name}."
    dataset = build_counted_dataset(facets, source.name, source_text, roles, provenance, notes, table_layout)
    is_counted_histogram = roles.kind is TableKind.HISTOGRAM and dataset.release is None
    if is_counted_histogram and (size_column := roles.size or "").startswith(TOTALS_PREFIX):
        totals_column = size_column.removeprefix(TOTALS_PREFIX)
        size_totals = Totals(dataset.histogram.sizes, totals_column, dataset.histogram.users)
        dataset = replace(dataset, contribution=Contribution.TOTAL, totals=size_totals)
    if is_counted_histogram and (periods := column_roles.read_periods(roles.users or "")):
        dataset = dataset.in_periods(periods)
    # Each further column is counted as the first one was: every check and rule is the same.
    for column in roles.further_values if roles.kind is TableKind.EVENTS else ():
        further_roles = replace(
            roles, value=column, task=None, further_task=(), further_values=(), is_share=False, yes_text=""
        )
        further_dataset = count(
            source, further_roles, provenance, memory_limit=memory_limit, should_stop=should_stop
        ).dataset
        if further_dataset is None:
            return CountResult.build(start_seconds, None)
        notes = [note for note in further_dataset.notes if note not in dataset.notes]
        dataset = replace(
            dataset,
            further_datasets=(*dataset.further_datasets, further_dataset),
            notes=(*dataset.notes, *notes),
        )
        if dataset.layout is not None and further_dataset.layout is not None:
            marks_by_column = dict(dataset.layout.numbers) | dict(further_dataset.layout.numbers)
            dataset = replace(dataset, layout=replace(dataset.layout, numbers=tuple(marks_by_column.items())))
    return CountResult.build(start_seconds, dataset)


_SHORTENED_PATTERN = re.compile(r"[0-9](?:[.,][0-9]+)?[eE]\+[0-9]+")
"""Numbers such as 7.9E+17, as a spreadsheet writes a long one."""
_ROUNDED_PATTERN = re.compile(r"[0-9]{15}0+")
"""Numbers of more digits than the 15 that a spreadsheet keeps, with zeros in place of the others."""


def _note_shortened_ids(head: Table, roles: Roles) -> list[str]:
    """Write a note on each column of users in whose first rows a spreadsheet has shortened numbers."""
    is_workbook = any(file_layout.kind is FileKind.WORKBOOK for file_layout in head.layouts)
    shortened_notes = []
    for user_column in roles.privacy_unit:
        long_cells = [cell for cell in head.frame[user_column] if len(cell) > 15 and cell.isdigit()]
        is_rounded = is_workbook and bool(long_cells) and all(map(_ROUNDED_PATTERN.fullmatch, long_cells))
        if is_rounded or any(map(_SHORTENED_PATTERN.fullmatch, head.frame[user_column])):
            shortened_notes.append(
                f"Column {column_names.shorten(user_column)} has numbers that a spreadsheet has shortened: different "
                "people may have become one. Export the ids again, as text."
            )
    return shortened_notes


def convert_to_events(roles: Roles) -> Roles:
    """Return the roles, with those of counts per user turned into roles of events whose value is the count."""
    if roles.kind is not TableKind.COUNTS:
        return roles
    event_roles = Roles(TableKind.EVENTS, roles.user, value=roles.count, missing_users=roles.missing_users)
    return replace(event_roles, contribution=Contribution.TOTAL)


def count_queries(roles: Roles) -> int:
    """Compute how many queries counting with these roles runs; a few more may follow.

    The number serves to report progress.
    """
    names_value, names_task = roles.value is not None, roles.task is not None
    return 1 + (names_value or names_task) + 2 * names_value + 2 * names_task


def build_counted_dataset(
    facets: Facets,
    dataset_name: str,
    source_text: str,
    roles: Roles,
    provenance: Provenance,
    notes: Sequence[str],
    layout: TableLayout | None = None,
) -> Dataset:
    """Build the dataset of this name from the facets that were counted in a source, which ``source_text`` names."""
    contribution = roles.contribution if roles.kind is TableKind.EVENTS else Contribution.ROWS
    release_facts = provenance if isinstance(provenance, ReleaseFacts) else None
    return Dataset(
        dataset_name, f"{source_text} {explain_roles(roles)}", classify(provenance), privacy_unit=roles.unit_columns,
        contribution=contribution, notes=tuple(notes), release=release_facts, layout=layout, **vars(facets),
    )  # fmt: skip


def build_dataset(table: Table, roles: Roles, provenance: Provenance) -> Dataset:
    """Build the dataset of a table in memory.

    Args:
        table: Result of `dpcore.counting.read_table`.
        roles: Roles of the columns, guessed or chosen.
        provenance: Public, private, or the facts of a DP release, as the user states.

    Raises:
        InvalidInput: Columns are missing or have invalid cells; all problems at once, with their lines.
    """
    dataset = count(Source.of_table(table), roles, provenance).dataset
    assert dataset is not None
    return dataset
