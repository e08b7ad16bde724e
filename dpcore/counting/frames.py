"""Whatever a person has in hand as a `Dataset`: a table in memory, a file, counts, or a histogram."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dpcore.common.checks import Problems
from dpcore.common.errors import InputProblem, refuse
from dpcore.common.privacy import Disclosure, Provenance, ReleaseFacts, classify
from dpcore.contributions import ContributionHistogram
from dpcore.counting.files import Source, expand_patterns, open_files
from dpcore.counting.held import Held
from dpcore.counting.memory_tables import (
    column_names,
    is_table,
    listed,
    refuse_missing,
    refuse_twice,
    to_arrow,
)
from dpcore.counting.pair_table import take_pairs
from dpcore.counting.run import count
from dpcore.counting.times import arrow_times, refuse_times
from dpcore.data import pair_distribution
from dpcore.data.column_roles import PAIRS_HEADER, PAIRS_SUM, Roles, TableKind
from dpcore.dataset import Contribution, Dataset

FRAME = "data.parquet"
"""What a table in memory is called: programs read it from a file of this name."""
Columns = str | Sequence[str] | None


def to_dataset(
    data: Any,
    user: Columns = None,
    value: str | None = None,
    group: Columns = None,
    disclosure: str | Provenance = Disclosure.PRIVATE,
    contribution: Contribution = Contribution.ROWS,
    needs: Sequence[str] = (),
) -> Dataset:
    """Count whatever a question is asked about, as *Your data* counts an upload.

    Args:
        data: A table in memory (pandas, Polars, Arrow, DuckDB), one row per contribution; the path of a file, a
            pattern such as ``logs/*.csv``, or several of them; rows per user as a list or an array; a
            `ContributionHistogram`; or a `Dataset`, which stays as it is.
        user: The column that says who a row belongs to, or the columns that say so together. A file of counts or of a
            histogram needs none.
        value: The column of numbers that is released; None for none.
        group: The column of groups, or the columns that name one together; None for none.
        disclosure: ``"public"`` or ``"private"``, or what a DP release guarantees.
        contribution: What is counted as one contribution.
        needs: Which of value and group the question cannot do without.

    Returns:
        The data, reduced to what the questions need.

    Raises:
        InvalidInput: The table cannot be counted so; all problems at once.
    """
    if isinstance(data, Dataset):
        _refuse_without(data, needs)
        return data
    lacking = [name for name, column in (("value", value), ("group", group)) if name in needs and not column]
    problems = Problems()
    provenance: Provenance = Disclosure.PRIVATE
    with problems.collecting():
        provenance = provenance_of(disclosure)
    dataset: Dataset | None = None
    with problems.collecting():
        refuse_no_names(user=user, value=value, group=group)
        whose, groups = several(user), several(group)
        if isinstance(data, str | os.PathLike):
            data = [data]
        if (
            isinstance(data, list | tuple)
            and data
            and all(isinstance(one, str | os.PathLike) for one in data)
        ):
            files = expand_patterns(data)
            if any(map(pair_distribution.is_file, files)):
                dataset = _read_distribution(files, provenance)
            else:
                source = open_files(files)
                dataset = _read(
                    source, whose, value, groups, provenance, contribution, lacking, problems.entries
                )
        elif is_table(data):
            named = [*whose, *groups, *([value] if value is not None else [])]
            source = open_files([Held(as_parquet(data, named, lacking if whose else ()))], [FRAME])
            dataset = _read(source, whose, value, groups, provenance, contribution, lacking, problems.entries)
        else:
            dataset = _counted(*_histogram_of(data), provenance)
    problems.raise_if_any()
    assert dataset is not None
    _refuse_without(dataset, lacking)
    return dataset


def _histogram_of(data: Any) -> tuple[ContributionHistogram, str]:
    """Return a histogram, or that of rows per user, and what it is."""
    if isinstance(data, ContributionHistogram):
        return data, "A histogram."
    if data is None:
        raise refuse("there are no data", remedy="Name a table, the path of a file, or rows per user first")
    try:
        counts = np.asarray(data)
    except ValueError:  # lists of several lengths
        counts = np.empty((0, 0))
    if counts.ndim == 1 and counts.size == 0:
        raise refuse("the list of rows per user is empty", remedy="Give one number for each user")
    if counts.ndim != 1 or counts.dtype.kind not in "iuf":
        raise refuse(
            "data must be a table, the path of a file, rows per user as a list of numbers, or a histogram; got "
            f"{type(data).__name__}"
        )
    return ContributionHistogram.from_counts(counts), "Rows per user."


def _refuse_without(dataset: Dataset, needs: Sequence[str]) -> None:
    """Refuse data that hold no value, or no group, where the question needs it."""
    totals = dataset.totals is not None and dataset.totals.column  # else rows were added up
    facets = {
        "value": dataset.values or totals,
        "group": dataset.pairs or dataset.pair_sizes or dataset.tasks,
    }
    with Problems() as problems:
        for name in needs:
            if not facets[name]:
                problems.add(
                    f"this question needs the {name} of each row, which these data do not hold",
                    remedy=f"Take a table with one row per contribution, and name its column: {name}=…",
                )


def _add_lacking(problems: Problems, lacking: Sequence[str]) -> None:
    for name in lacking:
        problems.add(f"this question needs the column of the {name}s: {name}=…")


def provenance_of(disclosure: str | Provenance) -> Provenance:
    """Return what a person says of data, by its name or as the facts of a release."""
    named = isinstance(disclosure, str) and disclosure in (Disclosure.PUBLIC.value, Disclosure.PRIVATE.value)
    if not named and not isinstance(disclosure, Disclosure | ReleaseFacts):
        raise refuse(
            f"disclosure must be 'private', 'public' or the facts of a DP release; got {str(disclosure)[:40]!r}"
        )
    return Disclosure(disclosure) if isinstance(disclosure, str) else disclosure


def _counted(histogram: ContributionHistogram, source: str, provenance: Provenance) -> Dataset:
    release = None if isinstance(provenance, Disclosure) else provenance
    return Dataset("your counts", source, classify(provenance), histogram, release=release)


def refuse_no_names(**columns: object) -> None:
    """Refuse what names no column; a file of settings can hold anything."""
    with Problems() as problems:
        for name, given in columns.items():
            one = isinstance(given, str) or name in ("value", "label") or not isinstance(given, Iterable)
            each = [given] if one else list(given)  # type: ignore[call-overload]
            if given is not None and not all(isinstance(column, str) for column in each):
                problems.add(f"{name} must be the name of a column; got {str(given)[:40]!r}")


def several(columns: Columns) -> list[str]:
    """Return one column or several, as a list."""
    if columns is None:
        return []
    return [columns] if isinstance(columns, str) else list(columns)


def _read_distribution(paths: Sequence[str | os.PathLike[str]], provenance: Provenance) -> Dataset:
    """Return what a distribution of pairs tells of; its columns need no names."""
    if len(paths) > 1:
        raise refuse("a distribution of pairs is one file, and is brought alone")
    if not isinstance(provenance, Disclosure):
        raise refuse("a distribution of pairs cannot be a DP release", remedy="Say public or private")
    path = Path(paths[0])
    with path.open("rb") as file:
        return pair_distribution.read(file.read(pair_distribution.MOST_BYTES + 1), path.name, provenance)


def _read(
    source: Source,
    user: list[str],
    value: str | None,
    group: list[str],
    provenance: Provenance,
    contribution: Contribution,
    lacking: Sequence[str],
    earlier: Sequence[InputProblem],
) -> Dataset:
    with Problems([*earlier]) as problems:
        refuse_missing(problems, source.columns, [*user, *group, *([value] if value is not None else [])])
        guessed = source.roles
        if not user and guessed.kind is TableKind.EVENTS:
            problems.add(f"say which column names the user: user=…, one of {listed(source.columns)}")
        if guessed.kind is TableKind.EVENTS or (user and guessed.kind is not TableKind.PAIRS):
            _add_lacking(problems, lacking)
    roles = guessed
    if user:
        roles = Roles(
            TableKind.EVENTS,
            user=user[0],
            value=value,
            task=group[0] if group else None,
            further_user=tuple(user[1:]),
            further_task=tuple(group[1:]),
            contribution=contribution,
        )
    if guessed.kind is TableKind.PAIRS:
        roles = take_pairs(guessed, roles if user else replace(guessed, value=value))
    counted = count(source, roles, provenance).dataset
    assert counted is not None  # nobody stopped it
    return counted


def as_parquet(table: Any, named: list[str], lacking: Sequence[str] = ()) -> bytes:
    """Return these columns as a Parquet file, which is read as any other; say which others the question needs."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = column_names(table)
    # A table of pairs is known by all its columns, and needs its rows.
    is_pairs = tuple(names) in (PAIRS_HEADER, (*PAIRS_HEADER, PAIRS_SUM))
    kept = [name for name in names if name in named or not named or is_pairs]
    with Problems() as problems:
        refuse_missing(problems, names, named)
        refuse_twice(problems, names, kept)
        if problems.entries and not is_pairs:
            _add_lacking(problems, lacking)
    arrow = to_arrow(table, kept)
    with Problems() as problems:
        for at, field in enumerate(arrow.schema):
            if pa.types.is_interval(field.type):  # which Parquet cannot hold
                refuse_times(problems, arrow_times(arrow.schema), field.name)
                arrow = arrow.set_column(at, field.name, pa.nulls(len(arrow)))
    content = io.BytesIO()
    pq.write_table(arrow, content)
    return content.getvalue()
