"""What weights gain: the person's data, the paper's example and bound, and the sharp bound."""

from collections.abc import Collection

import streamlit as st

from dpcore.gap_examples.parameters import GapParameters
from pages.gap_examples import cached, checks, proof
from pages.gap_examples.question import QUESTION
from pages.mean import elsewhere
from pages.mean.question import QUESTION as MEAN
from pages.shared.base import keys
from pages.shared.fields import setting
from pages.shared.screen import answer_tabs, inputs, layout, plots
from pages.shared.session import session, stand_ins

data = session.dataset()


def body(places: layout.Places) -> None:
    """Read the inputs and draw the answer on the person's data; examples stand in tabs."""
    parameters: GapParameters | None = inputs.read(QUESTION, places, ask_first=say_cleared)
    if parameters is None:
        return
    answer = cached.gap_answer(data, parameters, ends())
    with places.figure:  # First: its message goes ahead of all others.
        plots.show(answer.plots["gap-data"]())
    if said := elsewhere.differing(data, answer.setting, answer.solution.comparison.cap.max_contributions):
        places.notes.caption(said)
    of: dict[str, answer_tabs.Content] = {
        "On any data": {
            "Paper's example": lambda: proof.show_theorem_2(parameters),
            "Two groups": lambda: proof.show_two_groups(parameters),
            "Any noise": lambda: proof.show_any_noise(parameters),
            "Regression": lambda: checks.show_regression(parameters),
        },
    }
    answer_tabs.show(
        places,
        QUESTION,
        answer,
        of,
        lambda: proof.show_files(answer),
        key="gap_card",
        draw_behind=proof.show_behind,
    )
    st.session_state[keys.PAGE_PARAMETERS] = parameters


def say_cleared(unused: Collection[str]) -> bool:
    """Say why the variance is empty, if a release emptied it."""
    if "value_variance" not in unused:
        stand_ins.explain_cleared({QUESTION.key("value_variance"): "σ²"})
    return False


def ends() -> tuple[float, float] | None:
    """L and U as they stand on *Mean*; None where nobody has entered them."""
    lower, upper = setting.read_value(MEAN, "lower"), setting.read_value(MEAN, "upper")
    return None if lower is None or upper is None else (lower, upper)


layout.show(QUESTION, body)
