"""Whatever a person has in hand as a data set: a table in memory, a file, counts, or a histogram."""

from __future__ import annotations

import io
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpcore.common.checks import InputProblem, Problems, refuse
from dpcore.common.privacy import Disclosure, Provenance, ReleaseFacts, classify
from dpcore.contributions import ContributionHistogram
from dpcore.counting.duck import identifier
from dpcore.counting.files import Source, expand_patterns, open_files
from dpcore.counting.formats import MemoryFile
from dpcore.counting.run import count, take_pairs
from dpcore.counting.times import arrow_times, refuse_times
from dpcore.data import group_pairs
from dpcore.data.column_names import and_more, shorten
from dpcore.data.column_roles import PAIRS_HEADER, PAIRS_SUM, Roles, TableKind
from dpcore.dataset import Contribution, Dataset

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


MAX_LISTED = 20
"""Largest number of columns that a sentence lists."""
LOCAL_BACKENDS = ("duckdb", "polars", "datafusion", "pandas")
"""Engines of Ibis that run in this process."""
INTO_PANDAS = "Convert it first: pandas, Polars, Arrow and DuckDB tables are read"


def is_table(data: Any) -> bool:
    """Return True if the data are a table in memory."""
    # A pandas or Polars series also supports Arrow, but is a list of counts. A LazyFrame warns if its columns are read,
    # so only the existence of attributes is checked.
    is_like_one = any(hasattr(data, name) for name in ("collect_schema", "columns", "column_names"))
    return is_like_one and not isinstance(data, type)


def column_names(table: Any) -> list[str]:
    """Return the column names as text, those of a named pandas index first."""
    import pandas as pd

    if isinstance(table, pd.DataFrame):
        return [str(name) for name in [*_levels(table), *table.columns]]
    if hasattr(table, "collect_schema"):  # Polars; the columns of a LazyFrame cost as much as this
        return list(table.collect_schema().names())
    if hasattr(table, "column_names"):
        return list(table.column_names)
    if hasattr(table, "schema") and hasattr(table.schema, "names"):
        return list(table.schema.names)
    return [str(name) for name in table.columns]


def _levels(frame: pd.DataFrame) -> list[Any]:
    """Return the names of the index levels if any has one: after a groupby the user may be in the index."""
    if all(name is None for name in frame.index.names):
        return []
    return [f"level_{index}" if name is None else name for index, name in enumerate(frame.index.names)]


def to_frame(frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Return these columns and index levels of a pandas table, with their names as text."""
    import pandas as pd

    levels = len(_levels(frame))
    cells = {}
    for index, name in enumerate(column_names(frame)):
        if name in names:
            cells[name] = (
                pd.Series(frame.index.get_level_values(index))
                if index < levels
                else frame.iloc[:, index - levels]
            ).reset_index(drop=True)
    return pd.DataFrame(cells, copy=False)


def to_arrow(table: Any, names: Sequence[str]) -> pa.Table:
    """Return these columns as an Arrow table, without computing or fetching others.

    Raises:
        InvalidInput: The table is in a remote engine, or its library does not support Arrow.
    """
    import pandas as pd
    import pyarrow as pa

    if isinstance(table, pd.DataFrame):
        return _frame_to_arrow(to_frame(table, names))
    names, library = list(names), type(table).__module__.partition(".")[0].removeprefix("_")
    if library == "ibis":
        _refuse_remote(table)
        return table.select(*names).to_pyarrow()
    if library == "duckdb":
        return table.project(", ".join(map(identifier, names))).to_arrow_table()
    if library == "polars":
        picked = table.select(names)
        return (picked.collect() if hasattr(picked, "collect") else picked).to_arrow()
    if isinstance(table, pa.Table | pa.RecordBatch):
        return pa.table(table.select(names))
    try:
        return pa.table(table).select(names)
    except (TypeError, ValueError, AttributeError):
        message = f"a table of the type {type(table).__name__} cannot be read"
        raise refuse(message, remedy=INTO_PANDAS) from None


def _refuse_remote(table: Any) -> None:
    """Raise InvalidInput if an Ibis table belongs to an engine outside this process."""
    try:
        backend = table.get_backend().name
    except Exception:  # an unbound table, or tables of several engines
        message = "no engine holds the Ibis table"
        raise refuse(message, remedy="Bind it to a connection first") from None
    if backend not in LOCAL_BACKENDS:
        message = f"the Ibis table lies in another engine ({backend}), and its rows would have to be fetched"
        remedy = "Let the engine count: sweet-spot count --from ADDRESS --table NAME (docs/engines.md)"
        raise refuse(message, remedy=f"{remedy}, and ask about the file that it writes")


def _frame_to_arrow(frame: pd.DataFrame) -> pa.Table:
    import pandas as pd
    import pyarrow as pa

    columns = {}
    for name, column in frame.items():
        try:
            columns[name] = pa.Array.from_pandas(column)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
            # A mixture of texts and numbers is converted to text, as in a text file.
            columns[name] = pa.array([None if pd.isna(cell) else str(cell) for cell in column])
    return pa.table(columns)


def refuse_missing(problems: Problems, columns: Sequence[str], names: Sequence[str]) -> None:
    """Add a problem for every name that is not a column."""
    for name in names:
        if name not in columns:
            problems.add(f"there is no column {shorten(str(name))}; there are {list_names(columns)}")


def refuse_twice(problems: Problems, columns: Sequence[str], names: Sequence[str]) -> None:
    """Add a problem for each of these names that several columns have."""
    for name, times in Counter(columns).items():
        if times > 1 and name in names:
            message = f"{times} columns are called {shorten(name)}"
            problems.add(message, remedy="Rename or drop all but one of them")


def list_names(columns: Sequence[str]) -> str:
    """List the names of columns for a sentence."""
    names = ", ".join(shorten(name) for name in columns[:MAX_LISTED]) + and_more(len(columns) - MAX_LISTED)
    return names or "none"


FRAME = "data.parquet"
"""File name for a table in memory; generated programs read this file."""
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
    problems = Problems()
    provenance: Provenance = Disclosure.PRIVATE
    with problems.collecting():
        provenance = check_provenance(disclosure)
    dataset: Dataset | None = None
    with problems.collecting():
        refuse_no_names(user=user, value=value, group=group)
        user_columns, groups = list_columns(user), list_columns(group)
        if isinstance(data, str | os.PathLike):
            data = [data]
        if (
            isinstance(data, list | tuple)
            and data
            and all(isinstance(path, str | os.PathLike) for path in data)
        ):
            files = expand_patterns(data)
            if any(map(group_pairs.is_distribution_file, files)):
                dataset = _read_distribution(files, provenance)
            else:
                source = open_files(files)
                dataset = _read_source(
                    source, user_columns, value, groups, provenance, contribution, lacking, problems.entries
                )
        elif is_table(data):
            named_columns = [*user_columns, *groups, *([value] if value is not None else [])]
            source = open_files(
                [MemoryFile(as_parquet(data, named_columns, lacking if user_columns else ()))], [FRAME]
            )
            dataset = _read_source(
                source, user_columns, value, groups, provenance, contribution, lacking, problems.entries
            )
        else:
            dataset = _dataset_of_histogram(*_histogram_of(data), provenance)
    problems.raise_if_any()
    assert dataset is not None
    _refuse_without(dataset, lacking)
    return dataset


def _histogram_of(data: Any) -> tuple[ContributionHistogram, str]:
    """Return the histogram of the data, and a sentence on its source."""
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
    """Raise InvalidInput if the data lack a value or a group that the question needs."""
    totals = (
        dataset.totals is not None and dataset.totals.column
    )  # without a column, totals are numbers of rows
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


def check_provenance(disclosure: str | Provenance) -> Provenance:
    """Return the provenance that was given by name or as the facts of a release; raise InvalidInput for others."""
    is_named = isinstance(disclosure, str) and disclosure in (
        Disclosure.PUBLIC.value,
        Disclosure.PRIVATE.value,
    )
    if not is_named and not isinstance(disclosure, Disclosure | ReleaseFacts):
        raise refuse(
            f"disclosure must be 'private', 'public' or the facts of a DP release; got {str(disclosure)[:40]!r}"
        )
    return Disclosure(disclosure) if isinstance(disclosure, str) else disclosure


def _dataset_of_histogram(histogram: ContributionHistogram, source: str, provenance: Provenance) -> Dataset:
    release = None if isinstance(provenance, Disclosure) else provenance
    return Dataset("your counts", source, classify(provenance), histogram, release=release)


def refuse_no_names(**columns: object) -> None:
    """Raise InvalidInput for entries that are not column names; a settings file can contain anything."""
    with Problems() as problems:
        for name, entry in columns.items():
            is_single = (
                isinstance(entry, str) or name in ("value", "label") or not isinstance(entry, Iterable)
            )
            each = [entry] if is_single else list(entry)  # type: ignore[call-overload]
            if entry is not None and not all(isinstance(column, str) for column in each):
                problems.add(f"{name} must be the name of a column; got {str(entry)[:40]!r}")


def list_columns(columns: Columns) -> list[str]:
    """Return the columns as a list; None means none."""
    if columns is None:
        return []
    return [columns] if isinstance(columns, str) else list(columns)


def _read_distribution(paths: Sequence[str | os.PathLike[str]], provenance: Provenance) -> Dataset:
    """Read a distribution of pairs, whose columns need not be named."""
    if len(paths) > 1:
        raise refuse("a distribution of pairs is one file, and is brought alone")
    if not isinstance(provenance, Disclosure):
        raise refuse("a distribution of pairs cannot be a DP release", remedy="Say public or private")
    path = Path(paths[0])
    with path.open("rb") as file:
        return group_pairs.read_distribution(file.read(group_pairs.MAX_BYTES + 1), path.name, provenance)


def _read_source(
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
            problems.add(f"say which column names the user: user=…, one of {list_names(source.columns)}")
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
    dataset = count(source, roles, provenance).dataset
    assert dataset is not None  # There is no Stop here.
    return dataset


def as_parquet(table: Any, named_columns: list[str], lacking: Sequence[str] = ()) -> bytes:
    """Return these columns as a Parquet file; raise InvalidInput for missing, repeated or lacking columns."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = column_names(table)
    # A table of pairs is recognised by all its columns, and needs its rows.
    is_pairs = tuple(names) in (PAIRS_HEADER, (*PAIRS_HEADER, PAIRS_SUM))
    selected = [name for name in names if name in named_columns or not named_columns or is_pairs]
    with Problems() as problems:
        refuse_missing(problems, names, named_columns)
        refuse_twice(problems, names, selected)
        if problems.entries and not is_pairs:
            _add_lacking(problems, lacking)
    arrow = to_arrow(table, selected)
    with Problems() as problems:
        for index, field in enumerate(arrow.schema):
            if pa.types.is_interval(field.type):  # a type that Parquet does not support
                refuse_times(problems, arrow_times(arrow.schema), field.name)
                arrow = arrow.set_column(index, field.name, pa.nulls(len(arrow)))
    content = io.BytesIO()
    pq.write_table(arrow, content)
    return content.getvalue()
