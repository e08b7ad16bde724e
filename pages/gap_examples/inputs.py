"""What a person enters on the page *What weights gain*."""

from __future__ import annotations

import streamlit as st

from dpcore import mean
from dpcore.gap_examples.parameters import GapParameters
from pages.gap_examples.question import QUESTION
from pages.shared.fields import fields
from pages.shared.screen import layout
from pages.shared.session import stand_ins


def read(places: layout.Places) -> GapParameters | None:
    """Show the main inputs. Returns None, with the sentences on the page, where they do not hold together.

    What stands in the tabs is set aside: a bad one is named, and the answer goes on without it.
    """
    fields.start(QUESTION)
    variance = QUESTION.key("value_variance")
    with places.line:
        source = fields.draw(QUESTION, "variance_source")
        entered = source is mean.VarianceSource.ENTERED
        if not entered:
            fields.refill(QUESTION, "value_variance")
        else:
            fields.draw(QUESTION, "value_variance")
    with places.notes:
        if entered:
            stand_ins.say_cleared({variance: "σ²"})
        parameters: GapParameters | None = fields.build(
            QUESTION,
            unused=() if entered else ("value_variance",),
            aside=[name for name in QUESTION.fields if name not in ("variance_source", "value_variance")],
        )
    return parameters


def two_groups() -> None:
    """The sliders of the step on two groups."""
    with st.grid(3, min_column_width=220):
        fields.draw_all(QUESTION, "light_users", "heavy_size", "light_size")
