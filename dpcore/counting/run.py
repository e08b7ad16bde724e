"""The two ways to count: files in this process, and a table that an engine holds."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dpcore.common import wording
from dpcore.common.checks import InputProblem, InvalidInput, Problems, describe_error, refuse
from dpcore.common.privacy import Disclosure, Provenance, ReleaseFacts, classify
from dpcore.common.progress import Progress, ShouldStop
from dpcore.common.workspace import Workspace
from dpcore.contributions import ContributionHistogram, IntArray
from dpcore.counting import duck, query
from dpcore.counting.duck import MEMORY_LIMIT, Duck
from dpcore.counting.engines import first_line
from dpcore.counting.files import Source
from dpcore.counting.reading import Reading, file_of_table, refuse_changed, safe_path, scan
from dpcore.counting.reduce import Reduction
from dpcore.counting.reduce_files import Files
from dpcore.counting.reduced import NO_COPIES, Reduced, note_copies
from dpcore.counting.running import Steps, StoppedError, engine_runner
from dpcore.counting.times import refuse_times
from dpcore.data.column_names import shorten
from dpcore.data.column_roles import MissingUsers, Roles, TableKind, check_roles, explain_roles
from dpcore.data.tables import Table, TableLayout, read_numbers
from dpcore.dataset import MAX_PAIRS, Contribution, Dataset, Pairs, Totals

if TYPE_CHECKING:
    from ibis.expr.types import Table as EngineTable


MOST_ROWS = 2**53
"""Largest number up to which all integers are exact in float64."""


def take_pairs(guessed: Roles, roles: Roles) -> Roles:
    """Return the roles of a table of pairs if the file is one, though the user named its columns as events."""
    if guessed.kind is not TableKind.PAIRS or roles.contribution is not Contribution.ROWS:
        return roles
    is_pair_table = (roles.user, roles.further_user, roles.further_task) == (guessed.user, (), ())
    if not is_pair_table or roles.task not in (None, guessed.task):
        return roles
    # A value column that is the rows of the pair is redundant, as these are counted anyway.
    return replace(guessed, value=None if roles.value == guessed.count else roles.value)


def count_pairs(
    source: Source,
    roles: Roles,
    disclosure: Disclosure,
    memory_limit: int,
    should_stop: ShouldStop | None = None,
) -> Dataset:
    """Build the dataset from a table of pairs that an engine counted.

    Args:
        source: One file; its users and groups are codes, and `count` of the roles is the rows of a pair.
        roles: Roles of the kind `TableKind.PAIRS`.
        disclosure: Public or private, as the user states.
        memory_limit: Bytes that DuckDB may use.
        should_stop: Called while a large file is read.

    Raises:
        InvalidInput: A cell is not a valid number, or there are several files; all problems at once.
    """
    if len(source.head.layouts) > 1:
        message = "the codes of users and groups in one file of pairs are not those of another"
        raise refuse(message, remedy="Count all data in one go, or choose one file")
    names = [name for name in (roles.user, roles.task, roles.count, roles.value) if name is not None]
    cells = _cells(source, names, memory_limit, should_stop)
    with Problems() as problems:
        for name in names:
            fine = np.isfinite(cells[name])
            if name != roles.value:
                minimum = 1 if name == roles.count else 0
                with np.errstate(invalid="ignore"):
                    fine &= (cells[name] >= minimum) & (cells[name] == np.rint(cells[name]))
            if bad := int((~fine).sum()):
                message = (
                    "a finite number" if name == roles.value else f"a whole number of at least {minimum}"
                )
                row = int(np.argmin(fine)) + 1
                problems.add(
                    f"{bad:,} cells are not {message}", f"column {shorten(name)}, first in row {row:,}",
                    "Count again with --pairs-to, or say that one row is one contribution",
                )  # fmt: skip
        if cells[names[0]].size > MAX_PAIRS:
            problems.add(f"there are {cells[names[0]].size:,} pairs; at most {MAX_PAIRS:,} fit")
    users, groups = (np.unique(cells[name], return_inverse=True)[1] for name in names[:2])
    order = np.lexsort((groups, users))
    users, groups = users[order], groups[order]
    starts = np.flatnonzero(np.r_[True, (np.diff(users) != 0) | (np.diff(groups) != 0)])
    rows = np.add.reduceat(cells[names[2]][order], starts)
    per_user = np.bincount(users[starts], rows)
    if float(rows.sum()) > MOST_ROWS:
        raise refuse("the pairs have more rows than can be counted exactly", f"column {shorten(names[2])}")
    histogram = ContributionHistogram.from_counts(per_user.astype(np.int64))
    sums = totals = None
    notes = ["Rows that name no group are in no pair, so the file does not hold them."]
    if roles.value is not None:
        sums = np.add.reduceat(cells[roles.value][order], starts)
        added = np.bincount(users[starts], sums)
        totals = Totals(added, roles.value) if added.min() >= 0 else None
    return Dataset(
        name=source.name,
        source=f"File {source.name}. {explain_roles(roles)}",
        disclosure=disclosure,
        histogram=histogram,
        privacy_unit=roles.privacy_unit,
        totals=totals or Totals.of_contributions(histogram),
        pairs=Pairs(
            users[starts], groups[starts], int(groups.max()) + 1, names[1], rows=rows.astype(np.int64),
            sums=sums, value_column=roles.value or "",
        ),
        notes=(*source.head.notes, *notes),
    )  # fmt: skip


def _cells(
    source: Source, names: list[str], memory_limit: int, should_stop: ShouldStop | None
) -> dict[str, npt.NDArray[np.float64]]:
    """Return the columns as numbers; other cells become NaN."""
    import duckdb

    if source.complete:
        return {name: read_numbers(source.head, name).values for name in names}
    with closing(Workspace()) as workspace:
        (input_file,) = source.input_files
        input_file = replace(input_file, path=safe_path(input_file.path, workspace))
        with closing(Duck([input_file.path], workspace.folder, memory_limit, should_stop)) as duck:
            picked = ", ".join(
                f"TRY_CAST(x{input_file.columns.index(name)}{'::VARCHAR' if input_file.types else ''} AS DOUBLE) AS "
                f"c{index}"
                for index, name in enumerate(names)
            )
            try:
                columns = duck.columns(f"SELECT {picked} FROM {scan(Reading(input_file))}")
            except duckdb.Error:
                message = "the table of pairs cannot be read"
                raise refuse(message, remedy="Save it as CSV (UTF-8) with commas between fields") from None
    return {name: np.asarray(columns[f"c{index}"], np.float64) for index, name in enumerate(names)}


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
    check_release(roles, provenance)
    with Problems() as problems_of_times:
        for column in (roles.value, roles.count, roles.size, roles.users):
            refuse_times(problems_of_times, source.head.times, column)
    if roles.kind is TableKind.PAIRS:
        refuse_changed(source.input_files, "since it was looked at")
        try:
            return _build_result(
                count_pairs(source, roles, classify(provenance), memory_limit, should_stop), start
            )
        except StoppedError:
            return _build_stopped_result(start)
    notes = [note for note in source.head.notes if source.complete or "was read as" not in note]
    event_roles = _as_events(roles)
    counts = roles.kind is TableKind.COUNTS
    steps = Steps(progress, _queries(event_roles))
    refuse_changed(source.input_files, "since it was looked at")
    problems: Sequence[InputProblem] = ()
    try:
        files = Files(
            source.input_files,
            event_roles,
            memory_limit,
            should_stop,
            steps,
            notes,
            counts=counts,
            copies=copies,
        )
        reduced = files.reduce()
    except StoppedError:
        return _build_stopped_result(start)
    except (InvalidInput, OSError) as refused:
        problems = describe_error(refused)
    refuse_changed(
        source.input_files, "while it was counted"
    )  # before other problems, which it may have caused
    if problems:  # a new error, as the original is chained to DuckDB's, which quotes lines of the file
        raise InvalidInput(problems)
    if isinstance(provenance, ReleaseFacts) and reduced.sizes_repeat:
        message = "a size stands twice, so this is not one DP release; of several, what they spent adds up"
        column = f"column {shorten(roles.size or '')}"
        raise refuse(message, column, "Bring one release, or say that the data are private")
    dataset = _build_dataset(reduced, source.name, f"File {source.name}.", roles, provenance, notes)
    return _build_result(replace(dataset, layout=_layout(source, files, roles)), start)


def _layout(source: Source, files: Files, roles: Roles) -> TableLayout | None:
    """Return the layout of the files, with the encodings and decimal marks found while counting."""
    layouts = tuple(
        replace(layout, encoding=files.encodings.get(index, layout.encoding))
        for index, layout in enumerate(source.head.layouts)
    )
    one_user = roles.missing_users is MissingUsers.ONE_USER
    return TableLayout(layouts, tuple(files.decimals.items()), one_user) if layouts else None


def check_release(roles: Roles, provenance: Provenance) -> None:
    """Check that data of a DP release are a histogram, as a release contains nothing else.

    Raises:
        InvalidInput: The data are a release, and one row is not one size.
    """
    if isinstance(provenance, ReleaseFacts) and roles.kind is not TableKind.HISTOGRAM:
        message = "a DP release is a table of one row per size"
        raise refuse(message, remedy="Say that one row is one size, or that the data are private")


def build_dataset(table: Table, roles: Roles, provenance: Provenance) -> Dataset:
    """Count a table in memory.

    Args:
        table: Result of `dpcore.counting.read_table`.
        roles: Roles of the columns, guessed or chosen.
        provenance: Public, private, or the facts of a DP release, as the user states.

    Returns:
        The dataset.

    Raises:
        InvalidInput: Columns are missing or have invalid cells; all problems at once, with their lines.
    """
    dataset = count(Source(table.name, table, True, (file_of_table(table),)), roles, provenance).dataset
    assert dataset is not None
    return dataset


def count_table(
    table: EngineTable,
    roles: Roles,
    disclosure: Disclosure,
    *,
    name: str,
    copies: bool = False,
    max_pairs: int | None = None,
    progress: Progress | None = None,
    should_stop: ShouldStop | None = None,
) -> CountResult:
    """Count contributions per user in a table of an engine, through Ibis.

    The engine returns the histogram, binned totals, the numbers of users per task and the distribution of pairs: no
    row, no user, no task. With ``max_pairs`` the pairs are fetched as codes, if they are that few.

    Args:
        table: An Ibis table, of any engine.
        roles: Roles of the columns of a table of events.
        disclosure: Public or private, as the user states.
        name: Name of the dataset.
        copies: True to look for exact copies of rows, which costs the engine a pass over all columns.
        max_pairs: Largest number of pairs that may be fetched, at most `dpcore.counting.reduce.MAX_PAIRS_BACK`; the
            notes of a first run tell their number. None to fetch none.
        progress: Called with the fraction done.
        should_stop: Called between queries.

    Returns:
            `CountResult`.

    Raises:
        InvalidInput: The table cannot be counted; all problems at once.
    """
    start = time.monotonic()
    check_roles(table.columns, roles, name)
    roles = _as_events(roles)
    notes: list[str] = []
    steps = Steps(progress, _queries(roles))
    if roles.value is not None and not table[roles.value].type().is_numeric():
        message = (
            f"the engine holds column {shorten(roles.value)} as {table[roles.value].type()}, not as numbers"
        )
        remedy = (
            "Convert it to numbers in a view, durations to a unit such as seconds, or choose another column"
        )
        raise refuse(message, remedy=remedy)
    has_nan = _has_nan(table)
    rows = query.events(table, roles, has_nan=has_nan)
    run = engine_runner(should_stop, steps)
    try:
        reduced = Reduction(
            rows, roles, tuple(table.columns), run, None, notes=notes, max_pairs=max_pairs
        ).reduce()
        if query.who_columns(rows)[0] in query.text_columns(rows) and roles.contribution is Contribution.ROWS:
            steps.total += 1
            placeholders = run(query.placeholders(rows, duck.PLACEHOLDERS))["placeholders"]
            duck.note_placeholders(int(np.nan_to_num(placeholders)[0]), notes)
        if copies and len(table.columns) > 2:
            steps.total += 1
            copies_query = query.copies(table, table.columns, roles, has_nan)
            note_copies(int(np.nan_to_num(run(copies_query)["copies"])[0]), notes)
        elif len(table.columns) > 2:
            notes.append(NO_COPIES)
    except StoppedError:
        return _build_stopped_result(start)
    except InvalidInput:
        raise
    except Exception as error:  # every driver has its own
        message = f"the engine could not answer: {first_line(error)}"
        raise refuse(message, remedy="Check the connection and your rights to read the table") from error
    return _build_result(_build_dataset(reduced, name, f"Table {name}.", roles, disclosure, notes), start)


def _has_nan(table: EngineTable) -> bool:
    import ibis.expr.operations as operations

    return bool(table.get_backend().has_operation(operations.IsNan))


def _as_events(roles: Roles) -> Roles:
    """Return the roles as events: counts per user are totals of the count column."""
    if roles.kind is not TableKind.COUNTS:
        return roles
    return replace(
        roles,
        kind=TableKind.EVENTS,
        value=roles.count,
        count=None,
        contribution=Contribution.TOTAL,
        task=None,
    )


def _queries(roles: Roles) -> int:
    """Return the number of queries, for the progress; there may be a few more."""
    with_value, with_task = roles.value is not None, roles.task is not None
    return 1 + (with_value or with_task) + 2 * with_value + 2 * with_task


def _build_dataset(
    reduced: Reduced, name: str, source_text: str, roles: Roles, provenance: Provenance, notes: list[str]
) -> Dataset:
    return Dataset(
        name=name,
        source=f"{source_text} {explain_roles(roles)}",
        disclosure=classify(provenance),
        histogram=reduced.histogram,
        privacy_unit=roles.privacy_unit,
        contribution=roles.contribution if roles.kind is TableKind.EVENTS else Contribution.ROWS,
        values=reduced.values,
        totals=reduced.totals,
        pairs=reduced.pairs,
        tasks=reduced.tasks,
        pair_sizes=reduced.pair_sizes,
        task_names=reduced.task_names,
        notes=tuple(notes),
        release=provenance if isinstance(provenance, ReleaseFacts) else None,
    )


def _build_result(dataset: Dataset, start: float) -> CountResult:
    seconds = time.monotonic() - start
    users = wording.counted(dataset.histogram.num_users, "user")
    unit = "row" if dataset.contribution is Contribution.ROWS else "contribution"
    rows = wording.counted(dataset.histogram.num_rows, unit)
    return CountResult(dataset, seconds, f"Counted {rows} of {users} in {wording.number(seconds)} seconds.")


def _build_stopped_result(start: float) -> CountResult:
    seconds = time.monotonic() - start
    return CountResult(None, seconds, "Stopped; the data in use stay as they were.")


@dataclass(frozen=True)
class Heavy:
    """The heaviest users, as ranks and sizes without their ids.

    Attributes:
        ranks: 1 for the heaviest, shape (k,).
        sizes: Contributions of each, descending, shape (k,).
        share: Their share of all contributions.
    """

    ranks: IntArray
    sizes: IntArray
    share: float


def list_heaviest(histogram: ContributionHistogram, max_users: int = 10) -> Heavy:
    """List the heaviest users of a histogram, at most ``max_users``."""
    sizes: list[int] = []
    for size, users in zip(histogram.sizes[::-1], histogram.users[::-1], strict=True):
        sizes += [int(size)] * min(int(users), max_users - len(sizes))
        if len(sizes) == max_users:
            break
    size_array = np.array(sizes, np.int64)
    return Heavy(
        np.arange(1, size_array.size + 1, dtype=np.int64),
        size_array,
        float(size_array.sum()) / histogram.num_rows,
    )
