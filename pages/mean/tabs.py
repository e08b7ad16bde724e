"""The tabs below the answer of the Mean page."""

from __future__ import annotations

import streamlit as st

from dpcore.answer import Answer, Plot
from dpcore.common import wording
from dpcore.dataset import Dataset
from dpcore.mean import VarianceSource
from dpcore.mean.answer import words
from dpcore.mean.answer.plots import on_same_bounds
from pages.mean.question import QUESTION
from pages.shared.card import cards
from pages.shared.report import report_content, take_away
from pages.shared.screen import plots
from pages.shared.session import stand_ins


def show_weights(answer: Answer, main: Plot) -> None:
    """How much one row counts against its user's size."""
    plots.show(on_same_bounds(answer.plots["mean-weights"](), main), y_only=True)


def show_hidden(data: Dataset, answer: Answer, main: Plot) -> None:
    """What the assumption of independent rows hides."""
    read = answer.solution.values
    if read is None:
        stand_ins.show_stand_in(data, "values, one per row", "Bring data with values")
        return
    st.markdown("\n".join(f"- {sentence}" for sentence in words.describe_shifts(answer.solution, read)))
    plots.show(on_same_bounds(answer.plots["mean-shift"](), main), y_only=True)
    cards.label(data.provenance)


def show_files(data: Dataset, answer: Answer, formula: str) -> None:
    """The whole answer; weights and choice as files."""
    rows = (
        answer.parameters.variance_source is VarianceSource.FROM_VALUES
        and answer.solution.clamped is not None
    )
    source = take_away.source(rows=rows)
    take_away.draw(
        "mean",
        data.provenance,
        lambda: report_content.of_answer(QUESTION, answer, source, formula),
        answer.methods,
        f"{words.describe_files(answer.solution)} Label in both: *{data.provenance.label}*.",
        [("Weights (CSV)", name, make) for name, make in answer.files.items()],
    )
    st.caption(f"{wording.counted(data.histogram.sizes.size, 'line')} of weights.")
