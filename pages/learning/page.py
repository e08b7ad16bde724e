"""Learning under a bound: how many rows of one user a private learner may see, and what that costs."""

import streamlit as st

from dpcore.learning.answer import words
from pages.learning import cached, population_tabs, tabs
from pages.learning.question import QUESTION
from pages.shared.base import keys
from pages.shared.screen import answer_tabs, inputs, layout, plots
from pages.shared.session import session

GLOSSARY = """
**Risk** is the expected loss of a model, between 0 and 1. **Var(H)** is the variance over users of a model's risk: 0
where all users are alike, at most 1/4. The **VC dimension d** says how rich the models are that the learner chooses
from: linear classifiers with 9 features have d = 10.
"""
data = session.dataset()


def body(places: layout.Places) -> None:
    """Read the inputs and show the answer."""
    parameters = inputs.read(QUESTION, places, more=lambda: st.caption(GLOSSARY))
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
        used=lambda: words.describe_formulae(parameters),
    )


layout.show(QUESTION, body)
