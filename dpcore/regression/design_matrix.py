"""A table as the data of a regression: as `dpcore.data.design_matrix` reads it, with independent features."""

from __future__ import annotations

from dpcore.common.privacy import Disclosure
from dpcore.contributions import FloatArray, IntArray
from dpcore.data import design_matrix
from dpcore.data.design_matrix import Design
from dpcore.data.tables import Table
from dpcore.dataset import Dataset
from dpcore.regression.problem import RegressionProblem


def build(table: Table, design: Design, disclosure: Disclosure) -> Dataset:
    """Build the dataset as `dpcore.data.design_matrix.build_dataset`; features and users are public here.

    Raises:
        InvalidInput: As there, and where features are linearly dependent, by name.
    """
    return design_matrix.build_dataset(table, design, disclosure, _check_rank)


read_labelled_table = build
"""What `dpcore.regression_weights` makes of a table."""


def check(data: Dataset) -> None:
    """Check that a regression can take a data set with the facet `table`.

    Raises:
        InvalidInput: Features are linearly dependent, by name, or not fewer than the rows.
    """
    assert data.table is not None
    table = data.table
    _check_rank(table.features, table.user_codes, table.feature_names)


def _check_rank(features: FloatArray, codes: IntArray, names: tuple[str, ...]) -> None:
    """Refuse linearly dependent features, by name; the other parameters only fill their places."""
    RegressionProblem(features, codes, 1.0, 1.0, 0.0, names)
