"""The Training page's own upload, and what is asked of it besides: the public range of every number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from dpcore.common.errors import refusal
from dpcore.common.privacy import Disclosure
from dpcore.contributions import FloatArray
from dpcore.data import design_matrix
from dpcore.data.design_matrix import Design, FeatureKind
from dpcore.data.tables import Table
from dpcore.dataset import Dataset
from dpcore.training.parameters import MAX_ROWS
from dpcore.training.rows import Scaling
from pages.shared.table_upload import TableUpload
from pages.training.question import QUESTION


@dataclass(frozen=True, eq=False)
class TrainingData:
    """The page's data.

    Attributes:
        dataset: With the facet `table`.
        account: Whose rows they are: releases from the same rows add up, whatever was made of them.
        design: What the columns meant, where they come from a table.
        scaling: How features are brought to norm 1; None as long as ranges are missing.
        ranges: Of the columns that enter as numbers, by name.
    """

    dataset: Dataset
    account: str
    design: Design | None = None
    scaling: Scaling | None = None
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)

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


def _build(table: Table, design: Design, disclosure: Disclosure) -> Dataset:
    def check(features: FloatArray, codes: np.ndarray, names: tuple[str, ...]) -> None:
        if features.shape[0] > MAX_ROWS:
            raise refusal(f"there are {features.shape[0]:,} rows; at most {MAX_ROWS:,} are trained on")
        if np.unique(codes).size < 2:
            raise refusal("there is one user; at least two are needed, one of them to be held out")

    return design_matrix.build(table, design, disclosure, check)


def _used(data: Dataset, account: str, design: Design) -> TrainingData:
    return TrainingData(data, account, design)


UPLOAD = TableUpload(
    QUESTION,
    asked="A table with one row per observation, a label of numbers (two classes as 0 and 1), features, and a column "
    "that says whose it is (CSV)",
    label="Label: what is predicted",
    public_help="Rows of private data are protected as a whole: features, labels, and who owns them.",
    build=_build,
    used=_used,
)
