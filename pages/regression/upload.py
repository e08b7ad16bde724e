"""The own data of the page Linear regression, and what was released from their labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from dpcore.answer.answer import Answer
from dpcore.common import wording
from dpcore.common.privacy import Ledger
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
    uploader_label="A table with a row per observation, a label, features, and the user (CSV)",
    label_prompt="Label: what is predicted (private)",
    public_help="This is about the labels: features and owners are taken as public in any case.",
    build=problem.build_dataset,
    build_entry=RegressionData,
    check=problem.build_unit_problem,
)

SUBJECT = "these labels"


def find_own_data(answer: Answer) -> RegressionData:
    """Return the data that an answer is about, generated or uploaded, with their account."""
    data = answer.solution.dataset
    if answer.parameters.source is DataSource.GENERATED:
        return RegressionData(data, data.digest)
    own_data: RegressionData = st.session_state[QUESTION.get_key("loaded")]
    return own_data


def find_releases(answer: Answer) -> Releases:
    """Return the releases of the labels of an answer."""
    return Releases(QUESTION, find_own_data(answer).account, SUBJECT)


def list_lines(draws: Sequence[ReleasedCoefficients], ledger: Ledger) -> tuple[Line, ...]:
    """List the latest draw for the report, and all that was spent, failed releases included."""
    return releases.list_lines(
        draws,
        ledger,
        SUBJECT,
        lambda latest: (
            latest.feature_names,
            latest.release.values,
            f"Draw {len(draws)} of {SUBJECT}; Laplace noise of scale {wording.number(latest.release.scale)}.",
            latest.facts,
        ),
    )
