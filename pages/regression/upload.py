"""The own data of the page Linear regression, and what was released from their labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from dpcore.answer.answer import Answer
from dpcore.common.privacy import Ledger
from dpcore.common.wording import format_number
from dpcore.data.design_matrix import Design
from dpcore.dataset import Dataset
from dpcore.regression import problem
from dpcore.regression.draw import ReleasedCoefficients
from dpcore.regression.parameters import DataSource
from dpcore.report.content import Line
from pages.regression.question import QUESTION
from pages.shared.card import releases
from pages.shared.card.releases import Releases
from pages.shared.data.table_upload import TableUpload


@dataclass(frozen=True, eq=False)
class RegressionData:
    """The data of the page Linear regression, with the account of their labels.

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
    uploader_label="A table with a row per observation, a label, features, and the user (CSV)",
    label_prompt="Label: what is predicted (private)",
    public_help="This is about the labels: features and owners are taken as public in any case.",
    build_dataset=problem.build_dataset,
    build_entry=RegressionData,
    check_dataset=problem.build_unit_problem,
)

LABELS_PHRASE = "these labels"


def find_own_data(answer: Answer) -> RegressionData:
    """Return the data that an answer is about, generated or uploaded, with their account."""
    dataset = answer.solution.dataset
    if answer.parameters.source is DataSource.GENERATED:
        return RegressionData(dataset, dataset.digest)
    own_data: RegressionData = st.session_state[QUESTION.get_key("loaded")]
    return own_data


def find_releases(answer: Answer) -> Releases:
    """Return the releases of the labels of an answer."""
    return Releases(QUESTION, find_own_data(answer).account, LABELS_PHRASE)


def list_draw_lines(draws: Sequence[ReleasedCoefficients], ledger: Ledger) -> tuple[Line, ...]:
    """List the latest draw for the report, and all that was spent, failed releases included."""
    return releases.list_release_lines(
        draws,
        ledger,
        LABELS_PHRASE,
        lambda latest: (
            latest.feature_names,
            latest.release.values,
            f"Draw {len(draws)} of {LABELS_PHRASE}; Laplace noise of scale {format_number(latest.release.scale)}.",
            latest.facts,
        ),
    )
