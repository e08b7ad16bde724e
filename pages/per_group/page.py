"""Per group: the best pair of bounds for a release per group, and what scaling users instead would save."""

import streamlit as st

from dpcore.answer.stage import Stage
from dpcore.common.errors import InvalidInput
from dpcore.per_group.answer import (
    DistributionSolution,
    PerGroupSolution,
    build_answer,
    distribution,
    refused_answer,
    words,
)
from pages.per_group import inputs, tabs, work
from pages.per_group.question import QUESTION
from pages.shared.base import keys, page_run
from pages.shared.card import cards
from pages.shared.fields import fields, jobs
from pages.shared.screen import answer_tabs, layout, plots
from pages.shared.session import session, stand_ins

in_use = session.dataset()
demonstration = in_use.pairs is None and in_use.pair_sizes is None
data = stand_ins.demonstration() if demonstration else in_use


def body(places: layout.Places) -> None:
    """Read the inputs and draw the answer."""
    if demonstration:
        page_run.answers_on_invented_data()
    parameters = inputs.read(data, places)
    if parameters is None:
        return
    st.session_state[keys.PAGE_PARAMETERS] = parameters
    # A long search has its own sign below the figure; a spinner above would move it.
    try:
        found = work.found_for(data, parameters)
    except InvalidInput as refused:
        with places.notes:
            fields.say(refused.problems)
        if data.is_private:
            with places.answer:
                cards.answer(refused_answer(data, parameters), "per_group_card")
        return
    if found.value is not None:
        show(found.value, places)
    if work.is_long(data, parameters):
        show_progress(found.stage, places)


def show(found: PerGroupSolution | DistributionSolution, places: layout.Places) -> None:
    """The answer made of what was found."""
    page_run.answers(found.parameters)
    answer = build_answer(data, found.parameters, found)
    with places.figure:  # First: its message goes ahead of all others.
        label = stand_ins.DEMONSTRATION if demonstration else ""
        plots.draw(plots.main_plot(answer, "per-group-error"), label, moves=QUESTION.key)
    if isinstance(found, DistributionSolution):
        answer_tabs.show(
            places,
            QUESTION,
            answer,
            {},
            lambda: tabs.show_files_of_distribution(answer, data),
            used=lambda: distribution.describe_data(found),
        )
        return
    if found.selected is not None:
        of = {"Which groups survive": lambda: tabs.survival(answer)}
    else:
        of = {"Scaling instead": lambda: tabs.scaling(answer)}
    of["Error of each group"] = lambda: tabs.groups(answer)
    answer_tabs.show(
        places,
        QUESTION,
        answer,
        of,
        lambda: tabs.show_files(answer, data),
        used=lambda: words.describe_data(found, data),
    )
    if demonstration:
        with places.answer:
            stand_ins.bring("Bring groups")


def show_progress(stage: Stage, places: layout.Places) -> None:
    """How far a long search is, below the figure, which it does not move."""
    with places.figure:
        if jobs.watch(work.SEARCH.key, "Looking for the best pair") and stage is Stage.EARLIER:
            st.caption("Until it is found, the answer to what was asked before stands here.")


layout.show(QUESTION, body)
