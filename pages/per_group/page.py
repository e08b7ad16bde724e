"""Per group: the best pair of bounds for a release per group, and what scaling users instead would save."""

from contextlib import nullcontext

import streamlit as st

from dpcore.common.errors import InvalidInput
from dpcore.per_group import PerGroupParameters
from pages.per_group import card, distribution, figures, inputs, tabs, work
from pages.per_group.question import QUESTION
from pages.shared import answer_tabs, drawn, fields, jobs, keys, layout, missing, session
from pages.shared import figures as shared_figures

in_use = session.dataset()
distributed = in_use.pairs is None and in_use.pair_sizes is not None
demonstration = in_use.pairs is None and not distributed
data = missing.demonstration() if demonstration else in_use


def body(places: layout.Places) -> None:
    """Read the inputs and draw the answer."""
    if demonstration:
        places.notes.markdown(":small[The data have no groups: **these are invented**.]")
    parameters = inputs.read(data, places)
    if parameters is None:
        return
    if distributed:
        show_distribution(parameters, places)
        return
    # A job has its own sign below the figure; a spinner above it would move it.
    long = work.is_long(data, parameters)
    try:
        with (
            places.notes,
            nullcontext() if long else st.spinner("Looking for the best pair …", show_time=True),
        ):
            view, before = work.view_of(data, parameters)
    except InvalidInput as refused:
        with places.notes:
            fields.say(refused.problems)
        return
    st.session_state[keys.PAGE_PARAMETERS] = parameters
    if view is None:
        show_progress(parameters, before, places)
        return
    drawn.answers(view.parameters)
    with places.figure:  # First: its message goes ahead of all others.
        label = missing.DEMONSTRATION if demonstration else ""
        shared_figures.show_picture(figures.map_picture(view, data.provenance, label))
    if view.selected is not None:
        of = {"Which groups survive": lambda: tabs.survival(view, data)}
    else:
        of = {"Scaling instead": lambda: tabs.scaling(view, data)}
    of["Error of each group"] = lambda: tabs.groups(view, data)
    answer_tabs.show(
        places,
        QUESTION,
        card.card(view, data),
        of,
        lambda: tabs.show_files(view, data),
        used=lambda: tabs.what_is_used(view, data),
    )
    if demonstration:
        with places.answer:
            missing.bring("Bring groups")
    show_progress(parameters, before, places)


def show_progress(parameters: PerGroupParameters, before: bool, places: layout.Places) -> None:
    """How far a long search is, below the figure, which it does not move."""
    if not work.is_long(data, parameters):
        return
    with places.figure:
        if jobs.watch(work.JOB, "Looking for the best pair") and before:
            st.caption("Until it is found, the answer to what was asked before stands here.")


def show_distribution(parameters: PerGroupParameters, places: layout.Places) -> None:
    """The answer from how pairs are distributed, where they were too many to be kept."""
    try:
        distribution.show(data, parameters, places)
    except InvalidInput as refused:
        with places.notes:
            fields.say(refused.problems)
        return
    st.session_state[keys.PAGE_PARAMETERS] = parameters


layout.show(QUESTION, body)
