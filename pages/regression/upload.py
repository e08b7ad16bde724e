"""The Regression page's own upload: which column is the label, the user, a feature."""

from __future__ import annotations

from dataclasses import dataclass

from dpcore.data.design_matrix import Design
from dpcore.dataset import Dataset
from dpcore.regression import problem
from pages.regression.question import QUESTION
from pages.shared.data.table_upload import TableUpload


@dataclass(frozen=True, eq=False)
class RegressionData:
    """The page's data.

    Attributes:
        dataset: With the facet `table`.
        account: Digest of the labels' source: draws from the same labels share one ledger, whatever was made of them.
        design: Roles of the file's columns, if the data come from a file.
    """

    dataset: Dataset
    account: str
    design: Design | None = None


UPLOAD = TableUpload(
    QUESTION,
    uploader_label="A table with one row per observation, a label, features, and a column that says whose it is (CSV)",
    label="Label: what is predicted (private)",
    public_help="The method takes features and owners as public in any case; this is about the labels.",
    build=problem.build_dataset,
    build_entry=RegressionData,
    check=problem.check,
)
