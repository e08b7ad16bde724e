"""Factorisation: who gets a user's budget when a recommender is learned, and whether that beats item means."""

from dataclasses import replace

import streamlit as st

from dpcore.factorisation.parameters import FactorisationParameters, RatingSource
from pages.factorisation import cached, card, code, growth, inputs, tabs, work
from pages.factorisation import figures as factorisation_charts
from pages.factorisation.answer import FactorisationView
from pages.factorisation.question import QUESTION
from pages.shared.base import keys
from pages.shared.figures import figures
from pages.shared.screen import answer_tabs, layout
from pages.shared.session import session

data = session.dataset()


def body(places: layout.Places) -> None:
    """Read the inputs and show the answer."""
    parameters = inputs.read(data, places)
    if parameters is None:
        return
    st.session_state[keys.PAGE_PARAMETERS] = parameters
    view = load(parameters)
    own = data if parameters.source is RatingSource.DATA else None
    answer = replace(card.card(view), code=code.of_view(view, own))
    with places.figure:  # First, so that the browser draws it while the rest is on its way.
        figures.show_picture(factorisation_charts.pictures(view)[0])
    with places.answer:
        running = work.show_progress(view.table, parameters)
    budget = {"Who gets the budget": lambda: tabs.budget(view)} if view.verdict is not None else {}
    of = {
        **budget,
        "Rare and popular items": lambda: tabs.popularity(view),
        "Nearest items": lambda: tabs.likeness(view),
        "How many users?": lambda: growth.show(view.parameters),
        "Large size": lambda: tabs.large(view),
    }
    answer_tabs.show(
        places,
        QUESTION,
        answer,
        of,
        lambda: tabs.show_files(view, data),
        used=lambda: card.what_is_used(view.table),
    )
    if not running:
        with places.answer:
            work.show_button(view.table, parameters, view.result is not None)


def load(parameters: FactorisationParameters) -> FactorisationView:
    """Ratings, shares of the budget, and what was trained."""
    table = cached.table(parameters, data)
    assert table is not None  # Inputs offer the data's ratings only where they hold some.
    result, finished = work.found(table, parameters)
    return FactorisationView(parameters, table, cached.shares(table, parameters), result, finished)


layout.show(QUESTION, body)
