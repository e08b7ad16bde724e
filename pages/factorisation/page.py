"""Factorisation: who gets a user's budget when a recommender is learned, and whether that beats item means."""

import streamlit as st

from dpcore.factorisation.answer import FactorisationSolution, build_answer, words
from dpcore.factorisation.parameters import FactorisationParameters
from pages.factorisation import contents, implicit
from pages.factorisation.question import QUESTION
from pages.shared.base import keys
from pages.shared.screen import layout, plots
from pages.shared.session import session

data = session.dataset()


def body(slots: layout.PageSlots) -> None:
    """Read the inputs and show the answer."""
    parameters = contents.read_inputs(data, slots)
    if parameters is None:
        return
    st.session_state[keys.PAGE_PARAMETERS] = parameters
    solution = load(parameters)
    answer = build_answer(data, parameters, solution)
    with slots.figure:  # First, so that the browser draws it while the rest is on its way.
        plots.draw(next(iter(answer.plots.values()))())
    with slots.answer:
        running = contents.show_progress(solution.table, parameters)
    budget = {"Who gets the budget": lambda: contents.budget(answer)} if solution.verdict is not None else {}
    tabs: dict[str, layout.Content] = {
        "Items": {
            **budget,
            "Rare and popular items": lambda: contents.popularity(answer),
            "Nearest items": lambda: contents.likeness(solution, data),
            "Implicit feedback": lambda: implicit.show(solution),
        },
        "Size": {
            "Large size": lambda: contents.large(parameters),
            "The paper's figures": contents.paper_figures,
        },
    }
    layout.show_answer(
        slots,
        QUESTION,
        answer,
        tabs,
        lambda: contents.show_files(answer, data),
        describe_basis=lambda: words.describe_ratings(solution.table),
    )
    if not running:
        with slots.answer:
            contents.show_button(solution.table, parameters, solution.result is not None)


def load(parameters: FactorisationParameters) -> FactorisationSolution:
    """Ratings, shares of the budget, and what was trained."""
    table = contents.table(parameters, data)
    assert table is not None  # Inputs offer the data's ratings only where they hold some.
    result, finished = contents.get_training(table, parameters)
    return FactorisationSolution(parameters, table, contents.shares(table, parameters), result, finished)


layout.show(QUESTION, body)
