"""Choose privately: a private copy or a direct choice, and what either costs."""

from dataclasses import replace

import streamlit as st

from dpcore.common.errors import InvalidInput
from dpcore.private_choice.answer import build_answer
from dpcore.private_choice.fixed_point import checked_users
from dpcore.private_choice.parameters import PrivateParameters, Wanted
from pages.mean import elsewhere
from pages.private_choice import actions, cached, inputs, on_total, tabs, work
from pages.private_choice.question import QUESTION
from pages.shared.base import keys
from pages.shared.fields import fields
from pages.shared.screen import answer_tabs, layout, plots
from pages.shared.session import session

data = session.dataset()


def body(places: layout.Places) -> None:
    """Read the inputs, and show what either way costs, with its button."""
    actions.show_account()
    entered = inputs.read(data, places)
    parameters = None if entered is None else entered.question
    if parameters is not None:
        st.session_state[keys.PAGE_PARAMETERS] = entered
        try:
            checked_users(session.get_original().dataset.histogram)
            checked_users(data.histogram)
        except InvalidInput as refused:
            parameters = None
            with places.notes:
                fields.say(refused.problems)
    if parameters is not None:
        show_costs(parameters, places)
    with places.answer:
        actions.show(parameters, data)


def show_costs(parameters: PrivateParameters, places: layout.Places) -> None:
    """The figure of costs, the card, and the tabs."""
    exact = cached.found(data.digest, parameters, data)
    found = replace(exact, copies=work.over_epsilon(data, parameters))
    answer = build_answer(data, parameters, found)
    smooth = parameters.wanted is Wanted.SMOOTH
    said = elsewhere.differing(data, answer.setting, found.best, smooth)
    if said := said or on_total.differing(data, parameters, found.best):
        places.below.caption(said)
    with places.figure:
        plots.draw(answer.plots["private-cost-epsilon"]())
        tabs.show_progress(work.CURVES.key, found.copies)
    of: dict[str, answer_tabs.Content] = {
        "Leak and size": {
            "Why the number leaks": lambda: tabs.leak(found),
            "More or fewer users": lambda: tabs.over_users(found),
        },
        "Range or pair": {"A value range": tabs.value_range, "A pair per group": tabs.pair},
    }
    answer_tabs.show(
        places, QUESTION, answer, of, lambda: tabs.files(found), key="private_card", draw_behind=tabs.behind
    )


layout.show(QUESTION, body)
