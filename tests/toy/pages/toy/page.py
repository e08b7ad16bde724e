"""Heavy users."""

from collections.abc import Callable, Mapping

import streamlit as st

from dpcore.answer import Answer
from dpcore.toy.answer import build_answer
from dpcore.toy.heavy import draw_noisy_counts
from pages.shared.fields import jobs
from pages.shared.figures import figures
from pages.shared.render.question_page import Page
from pages.shared.session import session
from pages.toy.question import QUESTION


class ToyPage(Page):
    """The page."""

    def list_tabs(self, answer: Answer) -> Mapping[str, Callable[[], object]]:
        """Return a figure, and a simulation in a job."""
        return {
            "Their share": lambda: figures.draw_plot(answer.plots["toy-share"]()),
            "Simulation": lambda: simulate(answer),
        }


def simulate(answer: Answer) -> None:
    """Simulate in a job."""
    key, heavy, epsilon = QUESTION.get_key("job"), answer.solution, answer.parameters.epsilon
    if st.button("Simulate", key="toy_simulate"):
        request = (session.get_dataset().digest, answer.parameters)
        jobs.start_job(
            key, request, lambda progress, stop: draw_noisy_counts(heavy, epsilon, 50, progress, stop)
        )
    if not jobs.show_progress(key, "Simulating") and (result := jobs.find_result(key)) is not None:
        st.markdown(f"{len(result[1])} runs.")


ToyPage(QUESTION, build_answer, lambda data, parameters, answer: answer).show()
