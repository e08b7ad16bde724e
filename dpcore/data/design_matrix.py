"""From a table of text cells to features, labels and owners: one-hot groups, an intercept, missing values.

A categorical column with k levels becomes k - 1 columns of 0 and 1; the level left out is its reference (Epasto
et al. 2020, appendix E.1.1, "dropping one category").
Where the cells are private, the levels must be public, as their names and their number go into every release: then they
are listed, and any other level counts as the reference. Rows with a missing value are left out and named. What cannot
be used is said with its file lines, all at once.
"""

from __future__ import annotations

import enum
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from dpcore.common import wording
from dpcore.common.checks import Problems
from dpcore.common.privacy import Disclosure
from dpcore.contributions import ContributionHistogram, FloatArray, IntArray
from dpcore.data.column_names import and_more, shown
from dpcore.data.column_roles import guess_roles
from dpcore.data.layout import TableLayout
from dpcore.data.numbers import Numbers, read_numbers
from dpcore.data.tables import BoolArray, Table
from dpcore.dataset import MAX_TABLE_ENTRIES, Dataset, LabelledRows

if TYPE_CHECKING:
    import pandas as pd

INTERCEPT = "intercept"
LABEL_NAMES = frozenset({"label", "target", "outcome", "response", "class", "y"})
"""Columns of these names are proposed as what is predicted."""
MAX_LEVELS = 50
"""Levels that a categorical column may have: each but one becomes a feature, and so many are handled."""

MAX_FEATURES = 50
"""Columns of the matrix: each costs a pass over all rows, and models here are small."""
Check = Callable[[FloatArray, IntArray, tuple[str, ...]], object]
"""Given features, owners and names of the features; it raises `InvalidInput` where a model cannot take them."""

_INFINITE = re.compile(r"[+-]?inf(inity)?|.*[0-9].*", re.IGNORECASE)


class FeatureKind(enum.Enum):
    """How a column enters the model."""

    NUMERIC = "number"
    CATEGORIES = "categories"


@dataclass(frozen=True)
class Feature:
    """One column as a feature.

    Attributes:
        column: Its name.
        kind: As a number, or one-hot.
        reference: The level that is left out (categories); empty for the most frequent one.
        levels: The public list of all other levels, in the order of their columns; empty to read them off the cells.
    """

    column: str
    kind: FeatureKind = FeatureKind.NUMERIC
    reference: str = ""
    levels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Design:
    """Which column means what.

    Attributes:
        label: Column to predict.
        user: Column that says whose a row is.
        features: Columns to predict from.
        intercept: Whether a column of ones comes first.
        positive: The class that counts as 1, all others as 0, as its cells have it; public. Empty where the label is
            read as numbers.
    """

    label: str
    user: str
    features: tuple[Feature, ...]
    intercept: bool = True
    positive: str = ""


def listed(column: str, text: str) -> Feature:
    """Return a column of categories whose levels are listed, one per line, the reference first.

    Raises:
        InvalidInput: Fewer than two levels, too many, or one stands twice.
    """
    names = [line.strip() for line in text.splitlines() if line.strip()]
    where = f"the levels of column {shown(column)}"
    with Problems() as problems:
        if len(names) < 2:
            problems.add(
                "at least two are needed, the reference level and another", where, "One in each line"
            )
        if len(names) > MAX_LEVELS:
            problems.add(f"there are {len(names):,}; at most {MAX_LEVELS} are handled", where)
        if twice := sorted(shown(name) for name, times in Counter(names).items() if times > 1):
            more = and_more(len(twice) - 3)
            problems.add(f"{', '.join(twice[:3])}{more} stands twice", where, "Write each level once")
    return Feature(column, FeatureKind.CATEGORIES, names[0], tuple(names[1:]))


def levels(table: Table, column: str) -> tuple[str, ...]:
    """Return the levels of a column, the most frequent first; blank cells are none."""
    cells = table.frame[column]
    counts = cells[(cells != "").to_numpy(bool)].value_counts(sort=False)
    return tuple(sorted((str(level) for level in counts.index), key=lambda level: (-counts[level], level)))


def is_numeric(table: Table, column: str) -> bool:
    """Return True if every cell that is there is a number."""
    read = read_numbers(table, column)
    return read.problem is None and not read.text.any() and bool(np.isfinite(read.values).any())


def guess(table: Table, classes: bool = False) -> Design:
    """Return a first design: user and label by name, features the other columns that can be used.

    Args:
        table: With at least one column.
        classes: Whether a label may be a column of words.
    """
    roles = guess_roles(table)
    user = roles.user or table.columns[0]
    rest = [c for c in table.columns if c != user]
    numeric = [c for c in rest if is_numeric(table, c)]
    named = next((c for c in (rest if classes else numeric) if c.strip().casefold() in LABEL_NAMES), None)
    label = named or (roles.value if roles.value in rest else (numeric or rest or [user])[-1])
    features = []
    for column in rest:
        if column == label:
            continue
        if column in numeric:
            features.append(Feature(column))
        elif 2 <= len(found := levels(table, column)) <= MAX_LEVELS // 2:
            features.append(Feature(column, FeatureKind.CATEGORIES, found[0]))
    return Design(label, user, tuple(features))


@dataclass
class _Reading:
    table: Table
    problems: Problems = field(default_factory=Problems)
    notes: list[str] = field(default_factory=list)
    missing: dict[str, BoolArray] = field(default_factory=dict)
    decimals: dict[str, str] = field(default_factory=dict)

    def lines(self, bad: BoolArray) -> str:
        """Return the first three lines and how many there are."""
        at = np.flatnonzero(bad)
        named = ", ".join(f"{self.table.line(int(row)):,}" for row in at[:3])
        more = f" and {at.size - 3:,} more" if at.size > 3 else ""
        return f"line{'s' if at.size > 1 else ''} {named}{more}"

    def numbers(self, column: str, remedy: str) -> FloatArray:
        """Return a column as numbers; blank cells, NA and the like are missing, anything else a problem."""
        read = read_numbers(self.table, column)
        self.notes += [read.note] if read.note else []
        self.decimals[column] = read.decimal
        self.problems.extend([read.problem] if read.problem is not None else [])
        infinite = _infinite(self.table, column, read)
        self.missing[column] = read.blank | (read.not_finite & ~infinite)
        for bad, what in (
            (read.text, "text where a number must stand"),
            (infinite, "a number that is infinite or beyond what can be held"),
        ):
            if bad.any():
                where = f"{self.lines(bad)}, column {shown(column)}"
                self.problems.add(what, where, remedy)
        return read.values

    def labels(self, design: Design) -> FloatArray:
        """Return the label as numbers; as 1 and 0 where a class is named."""
        if not design.positive:
            return self.numbers(design.label, "Correct these cells, or choose another label")
        return np.asarray(self.text(design.label) == design.positive, dtype=np.float64)

    def text(self, column: str) -> pd.Series:
        cells = self.table.frame[column]
        self.missing[column] = (cells == "").to_numpy(bool)
        return cells


def _infinite(table: Table, column: str, read: Numbers) -> BoolArray:
    """Return how many cells say inf or hold digits and yet are no finite numbers, such as 1e999."""
    bad = np.zeros(read.not_finite.shape, dtype=bool)
    at = np.flatnonzero(read.not_finite)
    cells = table.frame[column].iloc[at]
    bad[at] = [_INFINITE.fullmatch(str(cell)) is not None for cell in cells]
    return bad


def build(table: Table, design: Design, disclosure: Disclosure, check: Check | None = None) -> Dataset:
    """Return the features, labels and owners of a table, as a data set with the facet `table`.

    Args:
        table: As `dpcore.counting.read_table` gives it.
        design: What each column means.
        disclosure: Public or private, as the person says; what it is about is the model's matter.
        check: What a model asks of the features besides.

    Returns:
        The data set; rows with missing values were left out and are named in its notes.

    Raises:
        InvalidInput: Roles overlap or are missing, cells cannot be read, a category has too few or too many
            levels, too few rows, or the check fails; all problems that can be seen at once.
    """
    import pandas as pd

    _check_roles(table, design)
    reading = _Reading(table)
    reading.notes += table.notes
    labels = reading.labels(design)
    users = reading.text(design.user)
    values: dict[str, FloatArray] = {}
    for feature in design.features:
        if feature.kind is FeatureKind.NUMERIC:
            remedy = "Correct these cells, take the column as categories, or leave it out"
            values[feature.column] = reading.numbers(feature.column, remedy)
        else:
            reading.text(feature.column)
    reading.problems.raise_if_any()
    kept = _complete_rows(reading)
    # Levels are those of the rows that stay: a level that is left nowhere would be a column of zeros.
    parts = [
        (values[feature.column][kept, None], [feature.column])
        if feature.kind is FeatureKind.NUMERIC
        else _one_hot(reading, feature, kept)
        for feature in design.features
    ]
    reading.problems.raise_if_any()
    if design.intercept:
        parts.insert(0, (np.ones((kept.size, 1)), [_free(INTERCEPT, table.columns)]))
    _check_size(reading, kept.size, sum(block.shape[1] for block, _ in parts))
    features = np.hstack([block for block, _ in parts])
    feature_names = tuple(_distinct([name for _, part in parts for name in part]))
    codes = np.asarray(pd.factorize(users.iloc[kept])[0], dtype=np.int64)
    if check is not None:
        check(features, codes, feature_names)
    return Dataset(
        name=table.name,
        source=f"File {table.name}. {explain(design)}",
        disclosure=disclosure,
        histogram=ContributionHistogram.from_counts(np.bincount(codes)),
        privacy_unit=(design.user,),
        table=LabelledRows(features, labels[kept], codes, feature_names, design.label),
        notes=tuple(reading.notes),
        layout=_layout(reading) if table.layouts else None,
    )


def _layout(reading: _Reading) -> TableLayout:
    filled = tuple(column for column in reading.missing if column not in reading.decimals)
    return TableLayout(reading.table.layouts, tuple(reading.decimals.items()), filled=filled)


def explain(design: Design) -> str:
    """Return a sentence on what is predicted from what."""
    parts = [
        f"{shown(f.column)} (one-hot, without {shown(f.reference)})"
        if f.kind is FeatureKind.CATEGORIES
        else shown(f.column)
        for f in design.features
    ]
    parts = ["an intercept", *parts] if design.intercept else parts
    label = shown(design.label) + (f" = {shown(design.positive)}" if design.positive else "")
    return f"{label} from {', '.join(parts)}; users in column {shown(design.user)}."


def _check_roles(table: Table, design: Design) -> None:
    problems = Problems()
    taken: dict[str, str] = {}
    roles = [(design.user, "the user"), (design.label, "the label")]
    for column, role in [*roles, *((feature.column, "a feature") for feature in design.features)]:
        if column not in table.columns:
            problems.add(f'there is no column "{shown(column)}" in {table.name}', "", f"Choose {role} again")
        elif column in taken:
            problems.add(
                f"column {shown(column)} is chosen as {taken[column]} and as {role}", "", "Choose it once"
            )
        taken.setdefault(column, role)
    if not design.features and not design.intercept:
        problems.add("there are no features", remedy="Choose at least one column, or the intercept")
    problems.raise_if_any()


def _complete_rows(reading: _Reading) -> IntArray:
    """Return the rows in which nothing is missing; the others are noted, column by column."""
    gaps = {column: bad for column, bad in reading.missing.items() if bad.any()}
    out = np.zeros(len(reading.table.frame), dtype=bool)
    for bad in gaps.values():
        out |= bad
    kept = np.flatnonzero(~out)
    if gaps:
        where = "; ".join(f"{shown(column)}: {reading.lines(bad)}" for column, bad in list(gaps.items())[:10])
        count = int(out.sum())
        rows = wording.counted(count, "row with a missing value was", "rows with missing values were")
        reading.notes.append(f"{rows} left out ({where}).")
    if not kept.size:
        worst = max(gaps, key=lambda column: int(gaps[column].sum())) if gaps else ""
        reading.problems.add(
            "no row is complete",
            remedy=f"Leave out columns with missing values, such as {shown(worst)}" if worst else "",
        )
        reading.problems.raise_if_any()
    return kept


def _one_hot(reading: _Reading, feature: Feature, kept: IntArray) -> tuple[FloatArray, list[str]]:
    import pandas as pd

    cells = reading.table.frame[feature.column].iloc[kept]
    if feature.levels:  # Nothing that is asked of them may depend on the cells.
        block = (cells.to_numpy(str)[:, None] == np.array(feature.levels)).astype(np.float64)
        return block, [f"{feature.column}: {level}" for level in feature.levels]
    codes, found = pd.factorize(cells, sort=True)
    where, count = f"column {shown(feature.column)}", len(found)
    names = [str(level) for level in found]
    if count < 2:
        reading.problems.add("only one level is left, so it tells nothing", where, "Leave it out")
    elif count > MAX_LEVELS:
        what = f"{count:,} levels; at most {MAX_LEVELS} are handled"
        reading.problems.add(what, where, "Take it as a number, group its levels, or leave it out")
    reference = feature.reference or str(cells.mode().iloc[0])
    if reference not in names:
        what = "the reference level stands in no complete row"
        reading.problems.add(what, where, "Choose another reference level")
    if reading.problems.entries:
        return np.zeros((kept.size, 1)), [feature.column]
    others = [at for at, name in enumerate(names) if name != reference]
    return (codes[:, None] == np.array(others)).astype(np.float64), [
        f"{feature.column}: {names[at]}" for at in others
    ]


def _check_size(reading: _Reading, rows: int, columns: int) -> None:
    if columns > MAX_FEATURES:
        reading.problems.add(
            f"there are {columns:,} features after one-hot encoding; at most {MAX_FEATURES} are handled",
            remedy="Leave columns out, or group levels",
        )
    if rows * columns > MAX_TABLE_ENTRIES:
        reading.problems.add(
            f"{rows:,} rows with {columns:,} features are {rows * columns:,} entries; at most {MAX_TABLE_ENTRIES:,} fit"
        )
    if rows <= columns:
        reading.problems.add(
            f"{wording.counted(columns, 'coefficient')} {wording.agreeing(columns, 'needs', 'need')} more than "
            f"{wording.counted(columns, 'complete row')}; there {wording.agreeing(rows, 'is', 'are')} {rows:,}",
            remedy="Leave features out",
        )
    reading.problems.raise_if_any()


def _free(name: str, taken: tuple[str, ...]) -> str:
    while name in taken:
        name += "'"
    return name


def _distinct(names: list[str]) -> list[str]:
    """Names made different: a column may be called like a level of another."""
    seen: set[str] = set()
    for at, name in enumerate(names):
        names[at] = _free(name, tuple(seen))
        seen.add(names[at])
    return names
