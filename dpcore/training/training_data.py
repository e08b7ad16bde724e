"""The data that a classifier is trained on: a table with the public ranges of its features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from dpcore.common import wording
from dpcore.common.checks import InputProblem, Problems, refuse
from dpcore.common.privacy import Disclosure, Provenance
from dpcore.contributions import FloatArray, IntArray
from dpcore.data import design_matrix
from dpcore.data.column_names import shorten
from dpcore.data.design_matrix import Design, FeatureKind
from dpcore.data.tables import Table, read_numbers
from dpcore.dataset import Dataset
from dpcore.training.generator import TrainingGenerator
from dpcore.training.parameters import MAX_ROWS
from dpcore.training.rows import Scaling, make_scaling
from dpcore.training.sample import DESIGN, RANGES, load_tickets


@dataclass(frozen=True, eq=False)
class TrainingData:
    """A table with its design and scaling.

    Attributes:
        dataset: With the facet `table`.
        account: Whose rows they are: releases from the same rows add up, whatever was made of them. Empty where
            nothing is released.
        design: What the columns meant, where they come from a table.
        scaling: How features are brought to norm 1, as `dpcore.training.rows.make_scaling` has it; None as long as
            ranges are missing.
        ranges: Of the columns that enter as numbers, by name.
    """

    dataset: Dataset
    account: str = ""
    design: Design | None = None
    scaling: Scaling | None = None
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """Return a digest of the training rows: the table, and how features are scaled."""
        return f"{self.dataset.digest} {self.scaling!r}"

    @property
    def provenance(self) -> Provenance:
        """Return the label of numbers computed from the data."""
        return self.dataset.provenance

    @property
    def numbers(self) -> tuple[str, ...]:
        """Return the columns that enter as numbers and need a range."""
        features = () if self.design is None else self.design.features
        return tuple(feature.column for feature in features if feature.encoding is FeatureKind.NUMERIC)

    def find_extremes(self, column: str) -> tuple[float, float]:
        """Find the smallest and largest value of a column: as private as the data."""
        assert self.dataset.table is not None
        values = self.dataset.table.features[:, self.dataset.table.feature_names.index(column)]
        return float(values.min()), float(values.max())


def read_labelled_table(
    table: Table,
    design: Design,
    disclosure: Disclosure,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    positive: str | float | None = None,
) -> TrainingData:
    """Read a table for training.

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
        problems.extend(find_unnamed_class(table, design))
        if disclosure is Disclosure.PRIVATE:
            problems.extend(find_unlisted_levels(design))
        numbers = [feature.column for feature in design.features if feature.encoding is FeatureKind.NUMERIC]
        for column in numbers:
            if column not in (ranges or {}):
                problems.add(
                    f"the range of {shorten(column)} is missing: ranges={{{column[:40]!r}: (lowest, highest)}}"
                )
        for column in ranges or {}:
            if column not in numbers:
                problems.add(f"ranges names {shorten(column)}, which is no feature that enters as a number")
    dataset = design_matrix.build_dataset(table, design, disclosure, check_rows)
    pairs = {column: (float(low), float(high)) for column, (low, high) in (ranges or {}).items()}
    return TrainingData(dataset, dataset.digest, design, make_scaling(dataset, design, pairs), pairs)


def check_rows(features: FloatArray, codes: IntArray, names: tuple[str, ...]) -> None:
    """Check that rows can be trained on; features and their names do not matter.

    Raises:
        InvalidInput: Too many rows, or one user.
    """
    if features.shape[0] > MAX_ROWS:
        raise refuse(f"there are {features.shape[0]:,} rows; at most {MAX_ROWS:,} are trained on")
    if np.unique(codes).size < 2:
        raise refuse("there is one user; at least two are needed, one of them to be held out")


def find_unlisted_levels(design: Design) -> list[InputProblem]:
    """Find categories whose levels are not listed: taken from private rows they would stand in the release."""
    return [
        InputProblem(
            f"the levels of column {shorten(feature.column)} must be listed: a release of private rows names them",
            remedy="Write the public list, the reference level first, or leave the column out",
        )
        for feature in design.features
        if feature.encoding is FeatureKind.CATEGORIES and not feature.levels
    ]


def find_unnamed_class(table: Table, design: Design) -> list[InputProblem]:
    """Find a label of words none of which is named as the class that counts as 1."""
    if design.positive or design.label not in table.columns:
        return []
    text_rows = np.flatnonzero(read_numbers(table, design.label).text)
    if not text_rows.size:
        return []
    line_numbers = ", ".join(f"{table.line(int(row)):,}" for row in text_rows[:3])
    more_text = f" and {text_rows.size - 3:,} more" if text_rows.size > 3 else ""
    return [
        InputProblem(
            f"the label {shorten(design.label)} holds words (line{'s' if text_rows.size > 1 else ''} "
            f"{line_numbers}{more_text}): which "
            "one is 1?",
            remedy="Name the class that counts as 1, positive; all others then count as −1. Or correct these cells",
        )
    ]


def describe_positive(data: TrainingData, positive_above: float) -> str:
    """Describe what a score above 0 means for a row, as ``kind = cat`` or ``rating above 3``."""
    assert data.dataset.table is not None
    label = shorten(data.dataset.table.label)
    if data.design is not None and data.design.positive:
        return f"{label} = {shorten(data.design.positive)}"
    return f"{label} above {wording.entered(positive_above)}"


def describe_label_rule(data: TrainingData, positive_above: float) -> str:
    """Describe which labels count as 1, without a full stop; empty for labels of two numbers.

    How many different labels there are is as private as the data.
    """
    if data.design is not None and data.design.positive:
        return (
            f"A row counts as 1 where {describe_positive(data, positive_above)}, as −1 with any other class"
        )
    num_labels = 0 if data.dataset.table is None else np.unique(data.dataset.table.labels).size
    if data.dataset.table is None or num_labels <= 2:
        return ""
    return (
        f"The label {shorten(data.dataset.table.label)} has {num_labels:,} different values: those above "
        f"{wording.entered(positive_above)} count as 1, all others as −1"
    )


def load_sample() -> TrainingData:
    """Load the sample.

    Raises:
        InvalidInput: Its file is missing.
    """
    dataset, scaling = load_tickets()
    return TrainingData(dataset, dataset.digest, DESIGN, scaling, RANGES)


def generate_data(generator: TrainingGenerator) -> TrainingData:
    """Generate features, labels and owners."""
    generated_table = generator.generate()
    return TrainingData(
        generated_table.dataset, generated_table.dataset.digest, scaling=generated_table.scaling
    )
