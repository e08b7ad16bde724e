"""Learning under a bound: how many rows of one user a private learner may see, and what that costs."""

import streamlit as st

from dpcore.learning.answer import words
from pages.learning import cached, inputs, population_tabs, tabs
from pages.learning.question import QUESTION
from pages.shared.base import keys
from pages.shared.screen import answer_tabs, layout, plots
from pages.shared.session import session

data = session.dataset()


def body(places: layout.Places) -> None:
    """Read the inputs and show the answer."""
    parameters = inputs.read(places)
    if parameters is None:
        return
    st.session_state[keys.PAGE_PARAMETERS] = parameters
    answer = cached.learning_answer(data, parameters)
    with places.figure:  # First: the browser draws it while the rest is still on its way.
        main = plots.show(plots.main_plot(answer, "learning-bound"), moves=QUESTION.key)
    of: dict[str, answer_tabs.Content] = {
        "These data": {
            "All bounds on the bias": lambda: tabs.show_terms(answer, data, main),
            "Who loses rows": lambda: tabs.show_capped(answer),
        },
        "The paper": {
            "Figure 2": lambda: population_tabs.show_mass(parameters),
            "Figure 3": lambda: population_tabs.show_cost_over_caps(parameters),
            "Cost of privacy": lambda: population_tabs.show_cost_over_rows(parameters),
        },
    }
    answer_tabs.show(
        places,
        QUESTION,
        answer,
        of,
        lambda: tabs.show_files(answer),
        used=lambda: words.what_is_used(parameters),
    )


layout.show(QUESTION, body)
