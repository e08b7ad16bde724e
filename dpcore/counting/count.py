"""Counting: whatever a person has in hand becomes a dataset.

A table in memory, a file, counts, or a histogram (`to_dataset`); files whose columns have roles (`count`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpcore.common import wording
from dpcore.common.checks import InputProblem, InvalidInput, Problems, describe_error, refuse
from dpcore.common.privacy import Disclosure, Provenance, ReleaseFacts, check_provenance, classify
from dpcore.common.progress import Progress, ShouldStop
from dpcore.contributions import ContributionHistogram
from dpcore.counting.duck import MEMORY_LIMIT, Steps, StoppedError
from dpcore.counting.engine_pairs import count_pairs, take_pairs
from dpcore.counting.files import (
    Source,
    find_distributions,
    is_table,
    list_paths,
    open_files,
    read_distribution,
)
from dpcore.counting.formats import MemoryFile
from dpcore.counting.frames import FRAME, as_parquet
from dpcore.counting.reduce import Facets
from dpcore.counting.reduce_files import FileReduction
from dpcore.counting.relation import refuse_changed, refuse_times
from dpcore.data.column_names import (
    Columns,
    add_lacking,
    list_columns,
    list_names,
    refuse_missing,
    refuse_no_names,
    shorten,
)
from dpcore.data.column_roles import MissingUsers, Roles, TableKind, check_roles, explain_roles
from dpcore.data.tables import Table, TableLayout
from dpcore.dataset import Contribution, Dataset


def to_dataset(
    data: Any,
    user: Columns = None,
    value: str | None = None,
    group: Columns = None,
    disclosure: str | Provenance = Disclosure.PRIVATE,
    contribution: Contribution = Contribution.ROWS,
    needs: Sequence[str] = (),
) -> Dataset:
    """Convert data of any accepted kind to a `Dataset`, as *Your data* does for an upload.

    Args:
        data: A table in memory (pandas, Polars, Arrow, DuckDB), one row per contribution; the path of a file, a
            pattern such as ``logs/*.csv``, or several of them; rows per user as a list or an array; a
            `ContributionHistogram`; or a `Dataset`, which stays as it is.
        user: The column, or columns together, that identify the user of a row. A file of counts or of a histogram needs
            none.
        value: The column of numbers that is released; None for none.
        group: The column, or columns together, that name the group; None for none.
        disclosure: ``"public"`` or ``"private"``, or the facts of a DP release.
        contribution: The unit of a contribution.
        needs: Those of ``value`` and ``group`` that the question requires.

    Returns:
        The dataset.

    Raises:
        InvalidInput: The table cannot be counted with these columns; all problems at once.
    """
    if isinstance(data, Dataset):
        _refuse_without(data, needs)
        return data
    lacking = [name for name, column in (("value", value), ("group", group)) if name in needs and not column]
    provenance: Provenance = Disclosure.PRIVATE
    dataset: Dataset | None = None
    with Problems() as problems:
        with problems.collecting():
            provenance = check_provenance(disclosure)
        with problems.collecting():
            refuse_no_names(user=user, value=value, group=group)
            users, groups = list_columns(user), list_columns(group)
            source = None
            if is_table(data):
                columns = [*users, *groups, *list_columns(value)]
                table = as_parquet(data, columns, lacking if users else ())
                source = open_files([MemoryFile(table)], [FRAME])
            elif (files := list_paths(data)) is None:
                dataset = _build_from_counts(data, provenance)
            elif find_distributions(files):
                dataset = read_distribution(files, provenance=provenance)
            else:
                source = open_files(files)
            if source is not None:
                roles = _choose_roles(source, users, value, groups, contribution, lacking, problems.entries)
                dataset = count(source, roles, provenance).dataset
    assert dataset is not None  # There is no Stop here.
    _refuse_without(dataset, lacking)
    return dataset


def _build_from_counts(data: Any, provenance: Provenance) -> Dataset:
    """Build the dataset of a histogram, or of rows per user."""
    source_text = "Rows per user."
    if isinstance(data, ContributionHistogram):
        histogram, source_text = data, "A histogram."
    elif data is None:
        raise refuse("there are no data", remedy="Name a table, the path of a file, or rows per user")
    else:
        counts = np.empty((0, 0))
        with suppress(ValueError):  # lists of several lengths
            counts = np.asarray(data)
        if counts.ndim == 1 and counts.size == 0:
            raise refuse("the list of rows per user is empty", remedy="Give one number for each user")
        if counts.ndim != 1 or counts.dtype.kind not in "iuf":
            allowed = "a table, the path of a file, rows per user as a list of numbers, or a histogram"
            raise refuse(f"data must be {allowed}; got {type(data).__name__}")
        histogram = ContributionHistogram.from_counts(counts)
    release = None if isinstance(provenance, Disclosure) else provenance
    return Dataset("your counts", source_text, classify(provenance), histogram, release=release)


def _refuse_without(dataset: Dataset, needs: Sequence[str]) -> None:
    """Raise InvalidInput if the data lack a value or a group that the question needs."""
    # Without a column, totals are numbers of rows.
    has_totals = dataset.totals is not None and dataset.totals.column
    has_groups = dataset.pairs or dataset.pair_sizes or dataset.tasks
    facets = {"value": dataset.values or has_totals, "group": has_groups}
    with Problems() as problems:
        for name in needs:
            if not facets[name]:
                remedy = f"Take a table with one row per contribution, and name its column: {name}=…"
                problems.add(f"this question needs the {name} of each row", remedy=remedy)


def _choose_roles(
    source: Source, user: list[str], value: str | None, group: list[str], contribution: Contribution,
    lacking: Sequence[str], earlier_problems: Sequence[InputProblem],
) -> Roles:  # fmt: skip
    """Return the roles of the named columns, or those that the file itself shows."""
    guessed = source.roles
    with Problems([*earlier_problems]) as problems:
        refuse_missing(problems, source.columns, [*user, *group, *list_columns(value)])
        if not user and guessed.kind is TableKind.EVENTS:
            problems.add(f"say which column names the user: user=…, one of {list_names(source.columns)}")
        if guessed.kind is TableKind.EVENTS or (user and guessed.kind is not TableKind.PAIRS):
            add_lacking(problems, lacking)
    roles = Roles.of_events(user, value, group, contribution) if user else guessed
    if guessed.kind is TableKind.PAIRS:
        return take_pairs(guessed, roles if user else replace(guessed, value=value))
    return roles


@dataclass(frozen=True)
class CountResult:
    """The result of counting.

    Attributes:
        dataset: The counted dataset; None if counting was stopped.
        seconds: Duration.
        summary: Sentence on how counting ended.
    """

    dataset: Dataset | None
    seconds: float
    summary: str

    @classmethod
    def since(cls, start: float, dataset: Dataset | None) -> CountResult:
        """Return the result of counting that began at this time; None was stopped."""
        seconds = time.monotonic() - start
        if dataset is None:
            return cls(None, seconds, "Stopped; the data in use stay as they were.")
        users = wording.counted(dataset.histogram.num_users, "user")
        unit = "row" if dataset.contribution is Contribution.ROWS else "contribution"
        rows = wording.counted(dataset.histogram.num_rows, unit)
        return cls(dataset, seconds, f"Counted {rows} of {users} in {wording.number(seconds)} seconds.")


def count(
    source: Source,
    roles: Roles,
    provenance: Provenance,
    *,
    memory_limit: int = MEMORY_LIMIT,
    copies: bool = False,
    progress: Progress | None = None,
    should_stop: ShouldStop | None = None,
) -> CountResult:
    """Count contributions per user in files.

    Args:
        source: Result of `open_files`.
        roles: Roles of the columns, guessed (`dpcore.data.column_roles.guess_roles` of ``source.head``) or chosen.
        provenance: Public, private, or the facts of a DP release, as the user states.
        memory_limit: Bytes that DuckDB may use; the rest goes to a temporary folder.
        copies: True to look for exact copies of rows in large files, too, which takes another pass over all their
            columns. Files that fit in memory are always searched.
        progress: Called with the fraction done, in the calling thread.
        should_stop: Called often, in the calling thread.

    Returns:
        `CountResult`, also if counting was stopped.

    Raises:
        InvalidInput: The files cannot be counted; all problems at once.
    """
    start = time.monotonic()
    check_roles(source.columns, roles, source.name)
    if isinstance(provenance, ReleaseFacts) and roles.kind is not TableKind.HISTOGRAM:
        remedy = "Say that one row is one size, or that the data are private"
        raise refuse("a DP release is a table of one row per size", remedy=remedy)
    with Problems() as problems_of_times:
        for column in (roles.value, roles.count, roles.size, roles.users):
            refuse_times(problems_of_times, source.head.times, column)
    refuse_changed(source.relations, "since it was looked at")
    notes = [note for note in source.head.notes if source.complete or "was read as" not in note]
    event_roles = as_events(roles)
    problems: Sequence[InputProblem] = ()
    try:
        if roles.kind is TableKind.PAIRS:
            pairs = count_pairs(source, roles, classify(provenance), memory_limit, should_stop)
            return CountResult.since(start, pairs)
        reduction = FileReduction(
            source.relations, event_roles, memory_limit, should_stop, Steps(progress, count_queries(event_roles)),
            notes, counts=roles.kind is TableKind.COUNTS, copies=copies,
        )  # fmt: skip
        facets = reduction.reduce()
    except StoppedError:
        return CountResult.since(start, None)
    except (InvalidInput, OSError) as refused:
        problems = describe_error(refused)
    # Before other problems, which it may have caused.
    refuse_changed(source.relations, "while it was counted")
    if problems:  # a new error, as the original is chained to DuckDB's, which quotes lines of the file
        raise InvalidInput(problems)
    if isinstance(provenance, ReleaseFacts) and reduction.sizes_repeat:
        column, remedy = (
            f"column {shorten(roles.size or '')}",
            "Bring one release, or say that the data are private",
        )
        raise refuse("a size stands twice, so this is not one DP release", column, remedy)
    layout = None
    if source.head.layouts:
        layouts = list(source.head.layouts)
        for index, encoding in reduction.encodings.items():
            layouts[index] = replace(layouts[index], encoding=encoding)
        one_user = roles.missing_users is MissingUsers.ONE_USER
        layout = TableLayout(tuple(layouts), tuple(reduction.decimals.items()), one_user)
    dataset = dataset_of(facets, source.name, f"File {source.name}.", roles, provenance, notes, layout)
    return CountResult.since(start, dataset)


def as_events(roles: Roles) -> Roles:
    """Return the roles as events: counts per user are totals of the count column."""
    if roles.kind is not TableKind.COUNTS:
        return roles
    events = Roles(TableKind.EVENTS, user=roles.user, value=roles.count, missing_users=roles.missing_users)
    return replace(events, contribution=Contribution.TOTAL)


def count_queries(roles: Roles) -> int:
    """Return the number of queries, for the progress; there may be a few more."""
    with_value, with_task = roles.value is not None, roles.task is not None
    return 1 + (with_value or with_task) + 2 * with_value + 2 * with_task


def dataset_of(
    facets: Facets, name: str, source_text: str, roles: Roles, provenance: Provenance,
    notes: Sequence[str], layout: TableLayout | None = None,
) -> Dataset:  # fmt: skip
    """Return the dataset of what was counted in a source."""
    return Dataset(
        name=name,
        source=f"{source_text} {explain_roles(roles)}",
        disclosure=classify(provenance),
        privacy_unit=roles.privacy_unit,
        contribution=roles.contribution if roles.kind is TableKind.EVENTS else Contribution.ROWS,
        notes=tuple(notes),
        release=provenance if isinstance(provenance, ReleaseFacts) else None,
        layout=layout,
        **vars(facets),
    )


def build_dataset(table: Table, roles: Roles, provenance: Provenance) -> Dataset:
    """Count a table in memory.

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
