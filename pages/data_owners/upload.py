"""The upload of Data owners: a table with one row per record, whose users are the owners."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from dpcore.common import wording
from dpcore.common.privacy import Disclosure
from dpcore.data import design_matrix
from dpcore.data.design_matrix import Design
from dpcore.data.tables import Table
from dpcore.data_owners.labelled import LabelledRecords, read_table
from dpcore.dataset import Dataset
from pages.data_owners.question import QUESTION
from pages.shared.data.table_upload import TableUpload


@dataclass(frozen=True, eq=False)
class OwnersTable:
    """Records of the page's own.

    Attributes:
        records: With their owners.
        account: Digest of what was read.
        dataset: What they were read as.
    """

    records: LabelledRecords
    account: str
    dataset: Dataset


def _build(table: Table, design: Design, disclosure: Disclosure) -> Dataset:
    found = design_matrix.build_dataset(table, design, disclosure)
    read_table(found)  # What cannot be trained on is said before it is used.
    return found


def _used(data: Dataset, account: str, design: Design | None) -> OwnersTable:
    # What the columns mean makes other records of the same file.
    return OwnersTable(read_table(data), data.digest, data)


UPLOAD = TableUpload(
    QUESTION,
    asked="A table with one row per record, a label of 2 to 20 classes written as numbers, features, and a column that "
    "says whose it is (CSV)",
    label="Label: the class that is predicted",
    public_help="Accuracies are computed from the records without noise: of private data they are private.",
    build=_build,
    used=_used,
)


def in_use() -> OwnersTable | None:
    """Return the table that the page has for itself; None where there is none."""
    found: OwnersTable | None = st.session_state.get(QUESTION.key("loaded"))
    return found


def loaded() -> OwnersTable | None:
    """Return the table in use, and the way to another; None, with the uploader, where there is none."""
    found = in_use()
    UPLOAD.show_uploader()
    UPLOAD.show_choices()
    if found is None:
        return None
    records = found.records
    st.markdown(
        f"In use: **{wording.plain(found.dataset.name)}**, {wording.counted(records.labels.size, 'record')} of "
        f"{wording.counted(records.num_owners, 'owner')}, {records.classes} classes. Each record is scaled to norm 1 "
        "by itself: bring columns to like scales before."
    )
    for note in found.dataset.notes:
        st.caption(wording.plain(note, 600))
    return found
