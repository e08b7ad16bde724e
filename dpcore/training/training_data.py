"""What a classifier is trained on: a table with the public ranges of its features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from dpcore.common import wording
from dpcore.common.checks import Problems
from dpcore.common.errors import InputProblem, refusal
from dpcore.common.privacy import Disclosure, Provenance
from dpcore.contributions import FloatArray, IntArray
from dpcore.data import design_matrix
from dpcore.data.column_names import shown
from dpcore.data.design_matrix import Design, FeatureKind
from dpcore.data.numbers import read_numbers
from dpcore.data.tables import Table
from dpcore.dataset import Dataset
from dpcore.training.generator import TrainingGenerator
from dpcore.training.parameters import MAX_ROWS
from dpcore.training.rows import Scaling, scaling_of
from dpcore.training.sample import DESIGN, RANGES, ticket_data


@dataclass(frozen=True, eq=False)
class TrainingData:
    """A table, and how it enters.

    Attributes:
        dataset: With the facet `table`.
        account: Whose rows they are: releases from the same rows add up, whatever was made of them. Empty where
            nothing is released.
        design: What the columns meant, where they come from a table.
        scaling: How features are brought to norm 1, as `dpcore.training.rows.scaling_of` has it; None as long as ranges
            are missing.
        ranges: Of the columns that enter as numbers, by name.
    """

    dataset: Dataset
    account: str = ""
    design: Design | None = None
    scaling: Scaling | None = None
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """Names the rows as they are trained on: the table, and how features are scaled."""
        return f"{self.dataset.digest} {self.scaling!r}"

    @property
    def provenance(self) -> Provenance:
        """What numbers computed from them are."""
        return self.dataset.provenance

    @property
    def numbers(self) -> tuple[str, ...]:
        """Columns that enter as numbers and need a range."""
        features = () if self.design is None else self.design.features
        return tuple(feature.column for feature in features if feature.kind is FeatureKind.NUMERIC)

    def spread(self, column: str) -> tuple[float, float]:
        """Least and largest value of a column in the data: as private as they are."""
        assert self.dataset.table is not None
        values = self.dataset.table.features[:, self.dataset.table.feature_names.index(column)]
        return float(values.min()), float(values.max())


def of_table(
    table: Table,
    design: Design,
    disclosure: Disclosure,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    positive: str | float | None = None,
) -> TrainingData:
    """A table as it is trained on.

    Args:
        table: As `dpcore.counting.read_table` gives it.
        design: What its columns mean; of private rows the levels of categories are listed.
        disclosure: Of the rows.
        ranges: The public range of each column that enters as a number.
        positive: The class of the label that counts as 1, all others as -1, as its cells have it; by default that of
            ``design``.

    Raises:
        InvalidInput: The table cannot be read so; ranges or levels are missing; or the label is words and no class is
            named.
    """
    if positive is not None:
        design = replace(design, positive=str(positive).strip())
    with Problems() as problems:
        problems.extend(unnamed(table, design))
        if disclosure is Disclosure.PRIVATE:
            problems.extend(unlisted(design))
        numbers = [one.column for one in design.features if one.kind is FeatureKind.NUMERIC]
        for column in numbers:
            if column not in (ranges or {}):
                problems.add(
                    f"the range of {shown(column)} is missing: ranges={{{column[:40]!r}: (lowest, highest)}}"
                )
        for column in ranges or {}:
            if column not in numbers:
                problems.add(f"ranges names {shown(column)}, which is no feature that enters as a number")
    data = design_matrix.build(table, design, disclosure, check)
    pairs = {column: (float(low), float(high)) for column, (low, high) in (ranges or {}).items()}
    return TrainingData(data, data.digest, design, scaling_of(data, design, pairs), pairs)


def check(features: FloatArray, codes: IntArray, names: tuple[str, ...]) -> None:
    """Whether rows can be trained on; features and their names do not matter.

    Raises:
        InvalidInput: Too many rows, or one user.
    """
    if features.shape[0] > MAX_ROWS:
        raise refusal(f"there are {features.shape[0]:,} rows; at most {MAX_ROWS:,} are trained on")
    if np.unique(codes).size < 2:
        raise refusal("there is one user; at least two are needed, one of them to be held out")


def unlisted(design: Design) -> list[InputProblem]:
    """Categories whose levels are not listed: read off private rows they would stand in the release."""
    return [
        InputProblem(
            f"the levels of column {shown(feature.column)} must be listed: a release of private rows names them",
            remedy="Write the public list, the reference level first, or leave the column out",
        )
        for feature in design.features
        if feature.kind is FeatureKind.CATEGORIES and not feature.levels
    ]


def unnamed(table: Table, design: Design) -> list[InputProblem]:
    """A label of words of which no class is named as the one that counts as 1."""
    if design.positive or design.label not in table.columns:
        return []
    words = np.flatnonzero(read_numbers(table, design.label).text)
    if not words.size:
        return []
    lines = ", ".join(f"{table.line(int(row)):,}" for row in words[:3])
    more = f" and {words.size - 3:,} more" if words.size > 3 else ""
    return [
        InputProblem(
            f"the label {shown(design.label)} holds words (line{'s' if words.size > 1 else ''} {lines}{more}): which "
            "one is 1?",
            remedy="Name the class that counts as 1, positive; all others then count as −1. Or correct these cells",
        )
    ]


def says_one(data: TrainingData, positive_above: float) -> str:
    """What a score above 0 says of a row, as ``kind = cat`` or ``rating above 3``."""
    assert data.dataset.table is not None
    label = shown(data.dataset.table.label)
    if data.design is not None and data.design.positive:
        return f"{label} = {shown(data.design.positive)}"
    return f"{label} above {wording.entered(positive_above)}"


def how_labels_are_cut(data: TrainingData, positive_above: float) -> str:
    """A sentence without its full stop on which labels count as 1; empty for labels of two numbers.

    How many different labels there are is as private as the data.
    """
    if data.design is not None and data.design.positive:
        return f"A row counts as 1 where {says_one(data, positive_above)}, as −1 with any other class"
    values = 0 if data.dataset.table is None else np.unique(data.dataset.table.labels).size
    if data.dataset.table is None or values <= 2:
        return ""
    return (
        f"The label {shown(data.dataset.table.label)} has {values:,} different values: those above "
        f"{wording.entered(positive_above)} count as 1, all others as −1"
    )


def sample() -> TrainingData:
    """The sample.

    Raises:
        InvalidInput: Its file is missing.
    """
    data, scaling = ticket_data()
    return TrainingData(data, data.digest, DESIGN, scaling, RANGES)


def generated(generator: TrainingGenerator) -> TrainingData:
    """Generated features, labels and owners."""
    made = generator.generate()
    return TrainingData(made.dataset, made.dataset.digest, scaling=made.scaling)
