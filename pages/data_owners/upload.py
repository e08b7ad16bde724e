"""The upload of Join or train alone: a table with one row per record, whose users are the owners."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from dpcore.common.privacy import Disclosure
from dpcore.common.wording import escape_text, format_count
from dpcore.data import design_matrix
from dpcore.data.design_matrix import Design
from dpcore.data.tables import Table
from dpcore.data_owners.training import LabelledRecords, read_table
from dpcore.dataset import Dataset
from pages.data_owners.question import QUESTION
from pages.shared.data.table_upload import TableUpload


@dataclass(frozen=True, eq=False)
class OwnersTable:
    """A table of records that the page has for itself.

    Attributes:
        records: With their owners.
        dataset: The same data as read from the file.
    """

    records: LabelledRecords
    dataset: Dataset


def _build_dataset(table: Table, design: Design, disclosure: Disclosure) -> Dataset:
    """Build the dataset of an uploaded table; raise `InvalidInput` if models cannot be trained on it."""
    dataset = design_matrix.build_dataset(table, design, disclosure)
    read_table(dataset)  # What cannot be trained on is said before it is used.
    return dataset


def _build_entry(dataset: Dataset, account: str, design: Design | None) -> OwnersTable:
    """Build what the page keeps of a table: its records and its dataset; account and design are not kept."""
    # What the columns mean makes other records of the same file.
    return OwnersTable(read_table(dataset), dataset)


UPLOAD = TableUpload(
    QUESTION,
    uploader_label="A table with one row per record: a numeric label of 2 to 20 classes, features, and a column that "
    "says whose it is (CSV)",
    label_prompt="Label: the class that is predicted",
    public_help="Accuracies are computed without noise: of private data they are private.",
    build_dataset=_build_dataset,
    build_entry=_build_entry,
)


def find_table() -> OwnersTable | None:
    """Return the page's own table; None if there is none."""
    owners_table: OwnersTable | None = st.session_state.get(QUESTION.get_key("loaded"))
    return owners_table


def show_table() -> OwnersTable | None:
    """Show the uploader, and size and notes of the page's own table; return that table, or None if there is none."""
    owners_table = find_table()
    UPLOAD.show_uploader()
    UPLOAD.show_choices()
    if owners_table is None:
        return None
    records = owners_table.records
    st.markdown(
        f"In use: **{escape_text(owners_table.dataset.name)}**, {format_count(records.labels.size, 'record')} of "
        f"{format_count(records.num_owners, 'owner')}, {records.num_classes} classes. Each record is scaled to "
        "norm 1: bring columns to like scales before."
    )
    for note in owners_table.dataset.notes:
        st.caption(escape_text(note, 600))
    return owners_table
