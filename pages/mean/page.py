"""Mean: the best cap and the best smooth weights for releasing a mean."""

import streamlit as st

from pages.mean import best_range, inputs, tabs
from pages.mean.question import QUESTION
from pages.shared.base import keys
from pages.shared.screen import answer_tabs, layout, plots
from pages.shared.session import session

data = session.dataset()


def body(places: layout.Places) -> None:
    """Read the inputs and show the answer."""
    parameters = inputs.read(data, places)
    if parameters is None:
        return
    st.session_state[keys.PAGE_PARAMETERS] = parameters
    answer = inputs.mean_answer(data, parameters)
    with places.figure:  # First: the browser draws it while the rest is still on its way.
        main = plots.show(plots.main_plot(answer, "mean-error"), key_of=QUESTION.key)
    users = {
        "Weight of a row": lambda: tabs.show_weights(answer, main),
        "When users differ": lambda: tabs.show_hidden(data, answer, main),
    }
    of: dict[str, answer_tabs.Content] = {
        "Rows and users": users,
        "Range": lambda: best_range.show(answer, data),
    }
    formula = inputs.formula(answer)
    answer_tabs.show(
        places,
        QUESTION,
        answer,
        of,
        lambda: tabs.show_files(data, answer, formula),
        describe_basis=lambda: inputs.what_is_used(answer),
        formula=formula,
    )


layout.show(QUESTION, body)
