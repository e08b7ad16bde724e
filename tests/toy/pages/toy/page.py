"""Heavy users."""

import streamlit as st

from dpcore.answer import Answer
from dpcore.toy.answer import build_answer
from dpcore.toy.heavy import noisy_counts
from pages.shared.base import keys
from pages.shared.fields import jobs
from pages.shared.figures import figures
from pages.shared.render import question_page
from pages.shared.report import report_content
from pages.shared.screen import layout
from pages.shared.session import session
from pages.toy.question import QUESTION

data = session.dataset()


def body(places: layout.PageSlots) -> None:
    """Read the inputs and draw the answer."""
    parameters = question_page.read_inputs(QUESTION, places)
    if parameters is None:
        return
    st.session_state[keys.PAGE_PARAMETERS] = parameters
    answer = build_answer(data, parameters)
    with places.figure:
        figures.draw(answer.plots["toy-users"]())
    tabs = {
        "Their share": lambda: figures.draw(answer.plots["toy-share"]()),
        "Simulation": lambda: simulate(answer),
    }
    source = report_content.source()
    report = lambda: report_content.of_answer(QUESTION, answer, source)  # noqa: E731
    files = lambda: report_content.draw("toy", data.provenance, report, answer.methods)  # noqa: E731
    layout.show_answer(places, QUESTION, answer, tabs, files, key="toy_card")


def simulate(answer: Answer) -> None:
    """Simulate in a job."""
    key, heavy, epsilon = QUESTION.key("job"), answer.solution, answer.parameters.epsilon
    if st.button("Simulate", key="toy_simulate"):
        asked = (data.digest, answer.parameters)
        jobs.start(key, asked, lambda tell, stop: noisy_counts(heavy, epsilon, 50, tell, stop))
    if not jobs.watch(key, "Simulating") and (done := jobs.result_of(key)) is not None:
        st.markdown(f"{len(done[1])} runs.")


layout.show(QUESTION, body)
