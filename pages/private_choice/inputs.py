"""What a person enters on Choose privately, as one validated parameters object."""

from __future__ import annotations

import streamlit as st

from dpcore.code.forms import summed_column
from dpcore.common.wording import plain
from dpcore.dataset import Dataset
from dpcore.private_choice.parameters import Wanted
from dpcore.private_choice.private_histogram import CopyNoise
from pages.private_choice import on_mean
from pages.private_choice.forms import IN_TABS, PageParameters
from pages.private_choice.question import QUESTION
from pages.shared.fields import fields
from pages.shared.screen import layout

SUM_OF_A_COLUMN = (
    "The bound is on rows, so it is for a **count of rows**. The bound of a **sum of a column** is drawn on *Sum and "
    "count*."
)
SUM_OF_THE_TOTAL = "A row is one unit of {} here, so the bound is for its **sum**."
OF_ONE_QUESTION = {
    "variance_share": (Wanted.SMOOTH, Wanted.CAP),
    "user_share": (Wanted.SMOOTH, Wanted.CAP),
    "margin": (Wanted.SUM,),
    "release_delta": (Wanted.SUM,),
    "share": (Wanted.QUANTILE,),
}
"""Fields that are shown for some questions only."""


def read(data: Dataset, places: layout.Places) -> PageParameters | None:
    """Draw the inputs. Returns None, with the sentences on the page, where they do not fit together."""
    fields.start(QUESTION)
    # A field that is not shown begins anew.
    fields.refill(QUESTION, *_unused())
    on_mean.follow(data)
    with places.line:
        fields.draw(QUESTION, "epsilon_choice")
        wanted = fields.draw(QUESTION, "wanted")
    with places.more("private_choice_more"):
        _more(wanted)
    with places.notes:
        if wanted is Wanted.SUM:
            column = summed_column(data)
            st.caption(SUM_OF_THE_TOTAL.format(plain(column)) if column else SUM_OF_A_COLUMN)
        unused = _unused()
        usual = {name: QUESTION.first(name) for name in OF_ONE_QUESTION if name in unused}
        found: PageParameters | None = fields.build(
            QUESTION, unused=unused, overrides=usual, optional=IN_TABS
        )
    return found


def _unused() -> set[str]:
    """Fields that do not apply to what is chosen."""
    state = st.session_state
    found = {name for name, wanted in OF_ONE_QUESTION.items() if state[QUESTION.key("wanted")] not in wanted}
    if state[QUESTION.key("noise")] is not CopyNoise.GAUSSIAN:
        found.add("delta")
    if state[QUESTION.key("guess")] is None:
        found.add("factor")
    return found


def _more(wanted: Wanted) -> None:
    fields.draw(QUESTION, "largest")
    fields.draw_all(QUESTION, *(name for name, of in OF_ONE_QUESTION.items() if wanted in of))
    if fields.draw(QUESTION, "guess") is not None:
        fields.draw(QUESTION, "factor")
    fields.draw(QUESTION, "relation")
    if fields.draw(QUESTION, "noise") is CopyNoise.GAUSSIAN:
        fields.draw(QUESTION, "delta")
