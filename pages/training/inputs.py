"""What a person enters on the Training page, as one validated parameters object."""

from __future__ import annotations

import streamlit as st

from dpcore.common import wording
from dpcore.training.answer import TrainingSolution
from dpcore.training.parameters import GENERATOR_FIELDS, TrainingParameters
from dpcore.training.scores import Measure, ScoreUnit
from pages.shared.fields import fields
from pages.shared.screen import layout
from pages.training.question import QUESTION

MEASURES = {Measure.LOSS: "Loss", Measure.ACCURACY: "Rows told right"}
IN_MORE = ("loss", "positive_above", "bounded_by", "bound", "pace", "average", "steps", "step_size", "radius",
           "sampled", "runs", "splits", "held_out", "seed")  # fmt: skip
OVERS = {ScoreUnit.ROWS: "Rows", ScoreUnit.USERS: "Users"}


def read(places: layout.Places) -> tuple[TrainingParameters | None, Measure, ScoreUnit]:
    """Show the inputs; returns the question and what the main figure shows.

    The question is None, with the sentences on the page, where the inputs do not fit together.
    """
    with places.line:
        fields.draw_all(QUESTION, "delta", "neighbours")
    with places.more("training_more"):
        measure, over = _shown()
        with st.grid(2):
            fields.draw_all(QUESTION, *IN_MORE)
    with places.notes:
        state = st.session_state
        # Empty fields of the generator are named where the data are made, and matter to no other data.
        unused = {name for name in GENERATOR_FIELDS if state[QUESTION.key(name)] is None}
        parameters: TrainingParameters | None = fields.build(QUESTION, unused=unused)
    return parameters, measure, over


def _shown() -> tuple[Measure, ScoreUnit]:
    """Return what the main figure shows."""
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
