"""The Training page's own upload, which also needs the public range of every number."""

from __future__ import annotations

from dpcore.common.checks import Problems, refuse
from dpcore.common.privacy import Disclosure
from dpcore.data import design_matrix
from dpcore.data.design_matrix import Design
from dpcore.data.tables import Table
from dpcore.dataset import Dataset
from dpcore.training.training_data import TrainingData, check_rows, find_unlisted_levels, find_unnamed_class
from pages.shared.data.table_upload import TableUpload
from pages.training.question import QUESTION


def _check_levels(design: Design | None) -> None:
    """Raise InvalidInput for levels read off private rows: a release would hold them, and ε does not cover them."""
    with Problems() as problems:
        problems.extend([] if design is None else find_unlisted_levels(design))


def _check_saved(data: Dataset) -> None:
    assert data.table is not None
    check_rows(data.table.features, data.table.user_codes, data.table.feature_names)


def _build(table: Table, design: Design, disclosure: Disclosure) -> Dataset:
    with Problems() as problems:
        problems.extend(find_unnamed_class(table, design))
        problems.extend(find_unlisted_levels(design) if disclosure is Disclosure.PRIVATE else [])
    return design_matrix.build_dataset(table, design, disclosure, check_rows)


def _build_entry(data: Dataset, account: str, design: Design | None) -> TrainingData:
    if design is None:  # Without it nobody knows which columns need a range.
        raise refuse("what the columns of the table mean is missing")
    if data.is_private:
        _check_levels(design)
    return TrainingData(data, account, design)


UPLOAD = TableUpload(
    QUESTION,
    uploader_label="A table with one row per observation, a label (numbers or classes), features, and a column "
    "that says whose it is (CSV)",
    label="Label: what is predicted",
    public_help="Rows of private data are protected as a whole: features, labels, and who owns them.",
    build=_build,
    build_entry=_build_entry,
    check=_check_saved,
    column_field_prefix="range_",
    must_list_levels=True,
    allows_classes=True,
    # Else ranges would be proposed once more, in place of those that the file brings.
    list_extra_state=lambda table: {"proposed": table.account},
)
