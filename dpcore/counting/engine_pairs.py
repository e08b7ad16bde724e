"""Tables of pairs of user and group that an engine counted (``--pairs-to``)."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from dpcore.common.checks import Problems, refuse
from dpcore.common.privacy import Disclosure
from dpcore.common.progress import ShouldStop
from dpcore.common.workspace import Workspace
from dpcore.contributions import ContributionHistogram
from dpcore.counting.duck import Duck
from dpcore.counting.files import Source
from dpcore.counting.relation import safe_path, scan
from dpcore.data.column_names import shorten
from dpcore.data.column_roles import Roles, TableKind, explain_roles
from dpcore.data.tables import read_numbers
from dpcore.dataset import MAX_PAIRS, Contribution, Dataset, Pairs, Totals

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
        raise refuse("codes in one file of pairs are not those of another", remedy="Choose one file")
    names = [name for name in (roles.user, roles.task, roles.count, roles.value) if name is not None]
    cells = _cells(source, names, memory_limit, should_stop)
    with Problems() as problems:
        for name in names:
            is_valid, requirement = np.isfinite(cells[name]), "a finite number"
            if name != roles.value:
                minimum = 1 if name == roles.count else 0
                requirement = f"a whole number of at least {minimum}"
                is_valid &= (cells[name] >= minimum) & (cells[name] == np.rint(cells[name]))
            if bad := int((~is_valid).sum()):
                location = f"column {shorten(name)}, first in row {int(np.argmin(is_valid)) + 1:,}"
                remedy = "Count again with --pairs-to, or say that one row is one contribution"
                problems.add(f"{bad:,} cells are not {requirement}", location, remedy)
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
    if roles.value is not None:
        sums = np.add.reduceat(cells[roles.value][order], starts)
        added = np.bincount(users[starts], sums)
        totals = Totals(added, roles.value) if added.min() >= 0 else None
    return Dataset(
        source.name, f"File {source.name}. {explain_roles(roles)}", disclosure, histogram, roles.privacy_unit,
        totals=totals or Totals.of_contributions(histogram),
        pairs=Pairs(
            users[starts], groups[starts], int(groups.max()) + 1, names[1], rows=rows.astype(np.int64),
            sums=sums, value_column=roles.value or "",
        ),
        notes=(*source.head.notes, "Rows that name no group are in no pair, so the file does not hold them."),
    )  # fmt: skip


def _cells(
    source: Source, names: list[str], memory_limit: int, should_stop: ShouldStop | None
) -> dict[str, npt.NDArray[np.float64]]:
    """Return the columns as numbers; other cells become NaN."""
    import duckdb

    if source.complete:
        return {name: read_numbers(source.head, name).values for name in names}
    with closing(Workspace()) as workspace:
        (relation,) = source.relations
        relation = replace(relation, path=safe_path(relation.path, workspace))
        as_text = "::VARCHAR" if relation.types else ""
        with closing(Duck([relation.path], workspace.folder, memory_limit, should_stop)) as duck:
            picked = ", ".join(
                f"TRY_CAST(x{relation.columns.index(name)}{as_text} AS DOUBLE) AS c{index}"
                for index, name in enumerate(names)
            )
            try:
                columns = duck.columns(f"SELECT {picked} FROM {scan(relation)}")
            except duckdb.Error:
                raise refuse("the table of pairs cannot be read", remedy="Save it as CSV (UTF-8)") from None
    return {name: np.asarray(columns[f"c{index}"], np.float64) for index, name in enumerate(names)}
