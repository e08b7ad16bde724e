"""What a classifier is trained on: a table with the public ranges of its features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dpcore.common.privacy import Provenance
from dpcore.data.design_matrix import Design, FeatureKind
from dpcore.dataset import Dataset
from dpcore.training.generator import TrainingGenerator
from dpcore.training.rows import Scaling
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
