"""Heavy users."""

import streamlit as st

from dpcore.toy.heavy import noisy_counts
from dpcore.toy.parameters import ToyParameters
from pages.shared.base import keys
from pages.shared.card import cards
from pages.shared.fields import fields, jobs
from pages.shared.figures import figures
from pages.shared.report import take_away
from pages.shared.screen import layout, lazy_tabs
from pages.shared.session import session
from pages.toy import cached
from pages.toy.answer import ToyAnswer
from pages.toy.card import card
from pages.toy.figures import pictures
from pages.toy.methods import methods
from pages.toy.question import QUESTION
from pages.toy.report import report

data = session.dataset()


def body(places: layout.Places) -> None:
    """Read the inputs and show the answer."""
    fields.start(QUESTION)
    with places.line:
        fields.draw(QUESTION, "shown")
        fields.draw(QUESTION, "rows")
    with places.more("toy_more"):
        fields.draw(QUESTION, "usual_value")
        fields.draw(QUESTION, "own_rows")
    with places.notes:
        parameters: ToyParameters | None = fields.build(QUESTION)
    if parameters is None:
        return
    st.session_state[keys.PAGE_PARAMETERS] = parameters
    view = cached.toy_answer(data.digest, parameters, data)
    answer = card(view, data, parameters)
    main, other = pictures(view, data.provenance)
    with places.answer:
        cards.answer(answer, key="toy_card")
    with places.figure:
        figures.show_picture(main)
    tabs = {
        layout.BEHIND: lambda: cards.behind(answer),
        "Their share": lambda: figures.show_picture(other),
        "Simulation": lambda: simulate(view, parameters),
        layout.DOWNLOADS: lambda: files(view, parameters),
    }
    with places.below:
        lazy_tabs.draw(tabs, QUESTION.key("tabs"))


def simulate(view: ToyAnswer, parameters: ToyParameters) -> None:
    """Work beside the page."""
    key, asked, heavy = QUESTION.key("job"), (data.digest, parameters), view.heavy
    if st.button("Simulate", key="toy_simulate"):
        epsilon = parameters.epsilon
        jobs.start(key, asked, lambda tell, stop: noisy_counts(heavy, epsilon, 50, tell, stop))
    if not jobs.watch(key, "Simulating") and (done := jobs.result_of(key)) is not None:
        st.markdown(f"{len(done[1])} runs.")


def files(view: ToyAnswer, parameters: ToyParameters) -> None:
    """The whole answer."""
    source = take_away.source()
    take_away.draw(
        "toy",
        data.provenance,
        lambda: report(view, data, parameters, source),
        methods(view, data, parameters),
    )


layout.show(QUESTION, body)
