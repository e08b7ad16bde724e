"""The table of pairs that an engine count writes: one row per pair of user and group, with its rows."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from dpcore.common.checks import Problems
from dpcore.common.errors import refuse
from dpcore.common.privacy import Disclosure
from dpcore.common.progress import ShouldStop
from dpcore.common.workspace import Workspace
from dpcore.contributions import ContributionHistogram
from dpcore.counting.duck import Duck
from dpcore.counting.files import Source
from dpcore.counting.parts import safe_path
from dpcore.counting.reading import Reading, scan
from dpcore.data.column_names import shown
from dpcore.data.column_roles import Roles, TableKind, explain_roles
from dpcore.data.numbers import read_numbers
from dpcore.dataset import MAX_PAIRS, Contribution, Dataset, Pairs, Totals

MOST_ROWS = 2**53
"""Whole numbers up to here are exact in float64."""


def take_pairs(guessed: Roles, roles: Roles) -> Roles:
    """Return the roles of a table of pairs where the file is one and the person named its columns as events."""
    if guessed.kind is not TableKind.PAIRS or roles.contribution is not Contribution.ROWS:
        return roles
    of_pairs = (roles.user, roles.further_user, roles.further_task) == (guessed.user, (), ())
    if not of_pairs or roles.task not in (None, guessed.task):
        return roles
    # Rows that are added up are the rows of the pair, which are counted anyway.
    return replace(guessed, value=None if roles.value == guessed.count else roles.value)


def count_pairs(
    source: Source,
    roles: Roles,
    disclosure: Disclosure,
    memory_limit: int,
    should_stop: ShouldStop | None = None,
) -> Dataset:
    """Return the data set of which an engine counted the pairs.

    Args:
        source: One file; its users and groups are codes, and `count` of the roles is the rows of a pair.
        roles: Of the kind `TableKind.PAIRS`.
        disclosure: Public or private, as the person says.
        memory_limit: Bytes that DuckDB may use.
        should_stop: Asked while a large file is read.

    Raises:
        InvalidInput: A cell is no number that it must be, or there are several files; all problems at once.
    """
    if len(source.head.layouts) > 1:
        what = "the codes of users and groups in one file of pairs are not those of another"
        raise refuse(what, remedy="Count all data in one go, or choose one file")
    names = [name for name in (roles.user, roles.task, roles.count, roles.value) if name is not None]
    cells = _cells(source, names, memory_limit, should_stop)
    with Problems() as problems:
        for name in names:
            fine = np.isfinite(cells[name])
            if name != roles.value:
                least = 1 if name == roles.count else 0
                with np.errstate(invalid="ignore"):
                    fine &= (cells[name] >= least) & (cells[name] == np.rint(cells[name]))
            if bad := int((~fine).sum()):
                what = "a finite number" if name == roles.value else f"a whole number of at least {least}"
                row = int(np.argmin(fine)) + 1
                problems.add(
                    f"{bad:,} cells are not {what}", f"column {shown(name)}, first in row {row:,}",
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
        raise refuse("the pairs have more rows than can be counted exactly", f"column {shown(names[2])}")
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
    """Return the columns as numbers; what is none is NaN."""
    import duckdb

    if source.complete:
        return {name: read_numbers(source.head, name).values for name in names}
    with closing(Workspace()) as workspace:
        (part,) = source.parts
        part = replace(part, path=safe_path(part.path, workspace))
        with closing(Duck([part.path], workspace.folder, memory_limit, should_stop)) as duck:
            picked = ", ".join(
                f"TRY_CAST(x{part.columns.index(name)}{'::VARCHAR' if part.types else ''} AS DOUBLE) AS c{at}"
                for at, name in enumerate(names)
            )
            try:
                found = duck.columns(f"SELECT {picked} FROM {scan(Reading(part))}")
            except duckdb.Error:
                what = "the table of pairs cannot be read"
                raise refuse(what, remedy="Save it as CSV (UTF-8) with commas between fields") from None
    return {name: np.asarray(found[f"c{at}"], np.float64) for at, name in enumerate(names)}
