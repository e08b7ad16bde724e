"""Factorisation: who gets a user's budget when a recommender is learned, and whether that beats item means."""

from dataclasses import replace

import streamlit as st

from dpcore.factorisation.parameters import FactorisationParameters, RatingSource
from pages.factorisation import cached, card, code, growth, inputs, tabs, work
from pages.factorisation import figures as factorisation_charts
from pages.factorisation.answer import FactorisationView
from pages.factorisation.question import QUESTION
from pages.shared import cards, figures, keys, layout, lazy_tabs, session

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
        cards.answer(answer, key="factorisation_card")
        if not running:
            work.show_button(view.table, parameters, view.result is not None)
    with places.below:
        show_tabs(view, answer)


def load(parameters: FactorisationParameters) -> FactorisationView:
    """Ratings, shares of the budget, and what was trained."""
    table = cached.table(parameters, data)
    assert table is not None  # Inputs offer the data's ratings only where they hold some.
    result, finished = work.found(table, parameters)
    return FactorisationView(parameters, table, cached.shares(table, parameters), result, finished)


def show_tabs(view: FactorisationView, answer: cards.AnswerCard) -> None:
    """What stands behind the answer, and the other figures."""
    trained = view.verdict is not None
    of = {
        layout.BEHIND: lambda: tabs.behind(view, answer),
        **({"Who gets the budget": lambda: tabs.budget(view)} if trained else {}),
        "Rare and popular items": lambda: tabs.popularity(view),
        "Nearest items": lambda: tabs.likeness(view),
        "How many users?": lambda: growth.show(view.parameters),
        "Large size": lambda: tabs.large(view),
        layout.DOWNLOADS: lambda: tabs.show_files(view, data),
        layout.COMPUTED: lambda: st.markdown(QUESTION.formula()),
    }
    lazy_tabs.draw(of, QUESTION.key("tabs"))


layout.show(QUESTION, body)
