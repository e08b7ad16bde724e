"""The inputs of the page Training."""

from __future__ import annotations

import streamlit as st

from dpcore.common import wording
from dpcore.common.parameters import LINE, MORE
from dpcore.training.answer import TrainingSolution
from dpcore.training.parameters import GENERATOR_FIELDS, TrainingParameters
from dpcore.training.rows import Measure, ScoreUnit
from pages.shared.fields import fields
from pages.shared.screen import layout
from pages.training.question import QUESTION

MEASURES = {Measure.LOSS: "Loss", Measure.ACCURACY: "Rows told right"}
OVERS = {ScoreUnit.ROWS: "Rows", ScoreUnit.USERS: "Users"}


def read(places: layout.Places) -> tuple[TrainingParameters | None, Measure, ScoreUnit]:
    """Draw the inputs; return the parameters, and the measure and the unit of the main figure.

    The parameters are None, with the sentences on the page, if they are refused.
    """
    with places.line:
        fields.draw_all(QUESTION, *QUESTION.placed(LINE))
    with places.more("training_more"):
        measure, over = _read_figure_choices()
        with st.grid(2):
            fields.draw_all(QUESTION, *QUESTION.placed(MORE))
    with places.notes:
        state = st.session_state
        # Empty fields of the generator are named where the data are made, and matter to no other data.
        unused = {name for name in GENERATOR_FIELDS if state[QUESTION.key(name)] is None}
        parameters: TrainingParameters | None = fields.build(QUESTION, unused=unused)
    return parameters, measure, over


def _read_figure_choices() -> tuple[Measure, ScoreUnit]:
    """Draw the choices of the main figure; return its measure and its unit."""
    for name, first in (("measure", Measure.LOSS), ("over", ScoreUnit.ROWS)):
        st.session_state.setdefault(QUESTION.key(name), first)
    with fields.row():
        measure: Measure = fields.choice("The figure shows", MEASURES, QUESTION.key("measure"))
        over: ScoreUnit = fields.choice(
            "Mean over",
            OVERS,
            QUESTION.key("over"),
            "Over users, every user counts alike; over rows, heavy users count for more.",
        )
    return measure, over


def what_is_used(found: TrainingSolution) -> str:
    """Return the quantities that the answer is computed with, and where they come from."""
    experiment = found.table.experiment
    positive = float((experiment.train.signs > 0).mean())
    return (
        f"{wording.plain(found.data.dataset.source, 600)} {wording.counted(experiment.train.num_users, 'user')} with "
        f"{wording.counted(experiment.train.num_rows, 'row')} to train on, "
        f"{wording.counted(experiment.test.num_users, 'user')} with "
        f"{wording.counted(experiment.test.num_rows, 'row')} held out, "
        f"{wording.counted(experiment.train.num_features, 'feature')}, intercept included; "
        f"{wording.percent(positive)} of the labels are 1."
    )
