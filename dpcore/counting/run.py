"""The two ways to count: files in this process, and a table that an engine holds."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from dpcore.common import wording
from dpcore.common.checks import Problems
from dpcore.common.errors import InputProblem, InvalidInput, describe_error, refuse
from dpcore.common.privacy import Disclosure, Provenance, ReleaseFacts, classify
from dpcore.common.progress import Progress, ShouldStop
from dpcore.contributions import ContributionHistogram, IntArray
from dpcore.counting import query, spelling
from dpcore.counting.duck import MEMORY_LIMIT
from dpcore.counting.engines import first_line
from dpcore.counting.files import Source
from dpcore.counting.pair_table import count_pairs
from dpcore.counting.parts import in_memory, refuse_changed
from dpcore.counting.reduce import NO_COPIES, Reduced, Reduction, say_copies
from dpcore.counting.reduce_files import Files
from dpcore.counting.running import Steps, StoppedError, engine_runner
from dpcore.counting.times import refuse_times
from dpcore.data.column_names import shown
from dpcore.data.column_roles import MissingUsers, Roles, TableKind, check_roles, explain_roles
from dpcore.data.layout import TableLayout
from dpcore.data.tables import Table
from dpcore.dataset import Contribution, Dataset

if TYPE_CHECKING:
    from ibis.expr.types import Table as EngineTable


@dataclass(frozen=True)
class Counted:
    """How counting ended.

    Attributes:
        dataset: What was counted; None where it was stopped.
        seconds: How long it took.
        ended: A sentence for a person.
    """

    dataset: Dataset | None
    seconds: float
    ended: str


def count(
    source: Source,
    roles: Roles,
    provenance: Provenance,
    *,
    memory_limit: int = MEMORY_LIMIT,
    copies: bool = False,
    progress: Progress | None = None,
    should_stop: ShouldStop | None = None,
) -> Counted:
    """Count contributions per user in files.

    Args:
        source: As `open_files` gives it.
        roles: What each column means, guessed (`dpcore.data.column_roles.guess_roles` of ``source.head``) or chosen.
        provenance: Public, private, or what a DP release guarantees, as the person says.
        memory_limit: Bytes that DuckDB may use; what does not fit goes to a temporary folder.
        copies: Whether to look for rows that are exact copies in large files, too, which takes another pass over
            all their columns. In files that fit in memory they are always looked for.
        progress: Called with the fraction done, in the calling thread.
        should_stop: Asked often, in the calling thread.

    Returns:
        `Counted`; stopping is a result, too.

    Raises:
        InvalidInput: The files cannot be counted; all problems at once.
    """
    began = time.monotonic()
    check_roles(source.columns, roles, source.name)
    check_release(roles, provenance)
    with Problems() as problems_of_times:
        for column in (roles.value, roles.count, roles.size, roles.users):
            refuse_times(problems_of_times, source.head.times, column)
    if roles.kind is TableKind.PAIRS:
        refuse_changed(source.parts, "since it was looked at")
        try:
            return _counted(
                count_pairs(source, roles, classify(provenance), memory_limit, should_stop), began
            )
        except StoppedError:
            return _stopped(began)
    notes = [note for note in source.head.notes if source.complete or "was read as" not in note]
    asked = _as_events(roles)
    counts = roles.kind is TableKind.COUNTS
    steps = Steps(progress, _queries(asked))
    refuse_changed(source.parts, "since it was looked at")
    problems: Sequence[InputProblem] = ()
    try:
        files = Files(
            source.parts, asked, memory_limit, should_stop, steps, notes, counts=counts, copies=copies
        )
        reduced = files.reduce()
    except StoppedError:
        return _stopped(began)
    except (InvalidInput, OSError) as refused:
        problems = describe_error(refused)
    refuse_changed(source.parts, "while it was counted")  # whatever else that made of it
    if problems:  # raised anew: behind it stands what DuckDB said, which quotes lines of the file
        raise InvalidInput(problems)
    if isinstance(provenance, ReleaseFacts) and reduced.sizes_repeat:
        what = "a size stands twice, so this is not one DP release; of several, what they spent adds up"
        column = f"column {shown(roles.size or '')}"
        raise refuse(what, column, "Bring one release, or say that the data are private")
    dataset = _dataset(reduced, source.name, f"File {source.name}.", roles, provenance, notes)
    return _counted(replace(dataset, layout=_layout(source, files, roles)), began)


def _layout(source: Source, files: Files, roles: Roles) -> TableLayout | None:
    """Return how the files turned out to be read."""
    parts = tuple(
        replace(layout, encoding=files.encodings.get(at, layout.encoding))
        for at, layout in enumerate(source.head.layouts)
    )
    one_user = roles.missing_users is MissingUsers.ONE_USER
    return TableLayout(parts, tuple(files.decimals.items()), one_user) if parts else None


def check_release(roles: Roles, provenance: Provenance) -> None:
    """Refuse to take for a DP release what is no histogram: a release holds nothing else.

    Raises:
        InvalidInput: It is a release, and one row is not one size.
    """
    if isinstance(provenance, ReleaseFacts) and roles.kind is not TableKind.HISTOGRAM:
        what = "a DP release is a table of one row per size"
        raise refuse(what, remedy="Say that one row is one size, or that the data are private")


def build_dataset(table: Table, roles: Roles, provenance: Provenance) -> Dataset:
    """Reduce a table in memory to what the questions need.

    Args:
        table: As `dpcore.counting.read_table` gives it.
        roles: What each column means, guessed or chosen.
        provenance: Public, private, or what a DP release guarantees, as the person says.

    Returns:
        As `count` does.

    Raises:
        InvalidInput: Columns are missing or hold what they cannot; all problems at once, with their lines.
    """
    dataset = count(Source(table.name, table, True, (in_memory(table),)), roles, provenance).dataset
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
) -> Counted:
    """Count contributions per user in a table that an engine holds, through Ibis.

    Only the histogram, binned totals and the numbers of users per task come back, and how many pairs of user and task
    have so many rows: no row, no user, no task. With ``max_pairs`` pairs come back as codes, where they are as few.

    Args:
        table: An Ibis table, of any engine.
        roles: Events; what each column means.
        disclosure: Public or private, as the person says.
        name: What to call the data set.
        copies: Whether to look for rows that are exact copies, which takes the engine a pass over all columns.
        max_pairs: How many pairs of user and task may come back, at most `dpcore.counting.reduce.MAX_PAIRS_BACK`; the
            notes of a first run say how many there are. None for none.
        progress: Called with the fraction done.
        should_stop: Asked between queries.

    Returns:
        `Counted`.

    Raises:
        InvalidInput: The table cannot be counted; all problems at once.
    """
    began = time.monotonic()
    check_roles(table.columns, roles, name)
    roles = _as_events(roles)
    notes: list[str] = []
    steps = Steps(progress, _queries(roles))
    if roles.value is not None and not table[roles.value].type().is_numeric():
        what = f"the engine holds column {shown(roles.value)} as {table[roles.value].type()}, not as numbers"
        remedy = (
            "Convert it to numbers in a view, durations to a unit such as seconds, or choose another column"
        )
        raise refuse(what, remedy=remedy)
    has_nan = _has_nan(table)
    rows = query.events(table, roles, has_nan=has_nan)
    run = engine_runner(should_stop, steps)
    try:
        reduced = Reduction(
            rows, roles, tuple(table.columns), run, None, notes=notes, max_pairs=max_pairs
        ).reduce()
        if query.who_columns(rows)[0] in query.text_columns(rows) and roles.contribution is Contribution.ROWS:
            steps.total += 1
            placeholders = run(query.placeholders(rows, spelling.PLACEHOLDERS))["placeholders"]
            spelling.say_placeholders(int(np.nan_to_num(placeholders)[0]), notes)
        if copies and len(table.columns) > 2:
            steps.total += 1
            asked = query.copies(table, table.columns, roles, has_nan)
            say_copies(int(np.nan_to_num(run(asked)["copies"])[0]), notes)
        elif len(table.columns) > 2:
            notes.append(NO_COPIES)
    except StoppedError:
        return _stopped(began)
    except InvalidInput:
        raise
    except Exception as error:  # every driver has its own
        what = f"the engine could not answer: {first_line(error)}"
        raise refuse(what, remedy="Check the connection and your rights to read the table") from error
    return _counted(_dataset(reduced, name, f"Table {name}.", roles, disclosure, notes), began)


def _has_nan(table: EngineTable) -> bool:
    import ibis.expr.operations as operations

    return bool(table.get_backend().has_operation(operations.IsNan))


def _as_events(roles: Roles) -> Roles:
    """Counts per user are totals of the count column."""
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
    """Return how many queries there will be, for the progress; a few more may come."""
    with_value, with_task = roles.value is not None, roles.task is not None
    return 1 + (with_value or with_task) + 2 * with_value + 2 * with_task


def _dataset(
    reduced: Reduced, name: str, where: str, roles: Roles, provenance: Provenance, notes: list[str]
) -> Dataset:
    return Dataset(
        name=name,
        source=f"{where} {explain_roles(roles)}",
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


def _counted(dataset: Dataset, began: float) -> Counted:
    seconds = time.monotonic() - began
    users = wording.counted(dataset.histogram.num_users, "user")
    unit = "row" if dataset.contribution is Contribution.ROWS else "contribution"
    rows = wording.counted(dataset.histogram.num_rows, unit)
    return Counted(dataset, seconds, f"Counted {rows} of {users} in {wording.number(seconds)} seconds.")


def _stopped(began: float) -> Counted:
    seconds = time.monotonic() - began
    return Counted(None, seconds, "Stopped; the data in use stay as they were.")


@dataclass(frozen=True)
class Heavy:
    """The heaviest users, as ranks and sizes; never who they are.

    Attributes:
        ranks: 1 for the heaviest, shape (k,).
        sizes: Contributions of each, descending, shape (k,).
        share: Share of all contributions that they hold together.
    """

    ranks: IntArray
    sizes: IntArray
    share: float


def heaviest(histogram: ContributionHistogram, most: int = 10) -> Heavy:
    """Return the heaviest users of a histogram, at most ``most``."""
    sizes: list[int] = []
    for size, users in zip(histogram.sizes[::-1], histogram.users[::-1], strict=True):
        sizes += [int(size)] * min(int(users), most - len(sizes))
        if len(sizes) == most:
            break
    kept = np.array(sizes, np.int64)
    return Heavy(np.arange(1, kept.size + 1, dtype=np.int64), kept, float(kept.sum()) / histogram.num_rows)
