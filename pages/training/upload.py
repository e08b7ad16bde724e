"""The Training page's own upload, and what is asked of it besides: the public range of every number."""

from __future__ import annotations

import numpy as np

from dpcore.common.checks import Problems
from dpcore.common.errors import refusal
from dpcore.common.privacy import Disclosure
from dpcore.contributions import FloatArray
from dpcore.data import design_matrix
from dpcore.data.column_names import shown
from dpcore.data.design_matrix import Design, FeatureKind
from dpcore.data.tables import Table
from dpcore.dataset import Dataset
from dpcore.training.parameters import MAX_ROWS
from dpcore.training.training_data import TrainingData
from pages.shared.data.table_upload import TableUpload
from pages.training.question import QUESTION


def _check(features: FloatArray, codes: np.ndarray, names: tuple[str, ...]) -> None:
    if features.shape[0] > MAX_ROWS:
        raise refusal(f"there are {features.shape[0]:,} rows; at most {MAX_ROWS:,} are trained on")
    if np.unique(codes).size < 2:
        raise refusal("there is one user; at least two are needed, one of them to be held out")


def _check_levels(design: Design | None) -> None:
    """Levels that were read off private rows would stand in the release, which ε does not cover."""
    columns = [
        feature.column
        for feature in (() if design is None else design.features)
        if feature.kind is FeatureKind.CATEGORIES and not feature.levels
    ]
    with Problems() as problems:
        for column in columns:
            problems.add(
                f"the levels of column {shown(column)} must be listed: a release of private rows names them",
                remedy="Write the public list, the reference level first, or leave the column out",
            )


def _check_saved(data: Dataset) -> None:
    assert data.table is not None
    _check(data.table.features, data.table.user_codes, data.table.feature_names)


def _build(table: Table, design: Design, disclosure: Disclosure) -> Dataset:
    if disclosure is Disclosure.PRIVATE:
        _check_levels(design)
    return design_matrix.build(table, design, disclosure, _check)


def _used(data: Dataset, account: str, design: Design | None) -> TrainingData:
    if design is None:  # Without it nobody knows which columns need a range.
        raise refusal("what the columns of the table mean is missing")
    if data.is_private:
        _check_levels(design)
    return TrainingData(data, account, design)


UPLOAD = TableUpload(
    QUESTION,
    asked="A table with one row per observation, a label of numbers (two classes as 0 and 1), features, and a column "
    "that says whose it is (CSV)",
    label="Label: what is predicted",
    public_help="Rows of private data are protected as a whole: features, labels, and who owns them.",
    build=_build,
    used=_used,
    check=_check_saved,
    about_columns="range_",
    levels_are_listed=True,
    # Else ranges would be proposed once more, in place of those that the file brings.
    beside=lambda used: {"proposed": used.account},
)
