"""What a person enters on Sum and count, as one validated parameters object."""

from __future__ import annotations

import streamlit as st

from dpcore.common.noise_error import NoiseKind
from dpcore.total.parameters import TotalParameters
from pages.shared.fields import fields
from pages.shared.screen import layout
from pages.total.question import QUESTION

IN_TABS = ("highest_total", "own_share", "runs", "seed")
"""Fields that stand elsewhere on the page, so that a refused one does not take the answer away."""


def start() -> None:
    """Set what the fields begin with."""
    fields.start(QUESTION)
    # A link with Laplace noise has no delta; the field must not be empty once the noise is changed to Gaussian.
    if st.session_state[QUESTION.key("mechanism")] is NoiseKind.LAPLACE:
        fields.refill(QUESTION, "delta")


def show(places: layout.Places, signed: bool) -> None:
    """The inputs of the answer; a range besides where totals have both signs."""
    with places.line:
        # The mechanism is chosen in *More settings*; δ is spent with ε and stands beside it.
        if st.session_state[QUESTION.key("mechanism")] is NoiseKind.GAUSSIAN:
            fields.draw(QUESTION, "delta")
        fields.draw(QUESTION, "summed")
        if signed:
            fields.draw_all(QUESTION, "lower", "upper")
    with places.more("total_more"):
        fields.draw_all(QUESTION, "mechanism", "measure")


def strategies() -> bool:
    """The inputs of the comparison over ε. Returns whether the simulation is to start."""
    columns = fields.columns(QUESTION, [4, 4, 3, 4], "own_share", "runs", "seed")
    with columns[3]:
        return st.button("Simulate", key="total_simulate", icon=":material/casino:", width="stretch")


def parameters() -> TotalParameters | None:
    """What is entered; None, with the sentences on the page, where it does not fit together."""
    gaussian = st.session_state[QUESTION.key("mechanism")] is NoiseKind.GAUSSIAN
    parameters: TotalParameters | None = fields.build(
        QUESTION, unused=() if gaussian else ("delta",), aside=(*IN_TABS, *QUESTION.own)
    )
    return parameters
