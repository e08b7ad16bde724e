"""The page of a question whose answer is data: inputs, answer, main figure, tabs and downloads follow from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import streamlit as st

from dpcore.answer import Answer
from dpcore.answer.section import Cached
from dpcore.common.parameters import Place
from dpcore.dataset import Dataset
from pages.shared.base import keys
from pages.shared.base.question import Question
from pages.shared.fields import runner
from pages.shared.render.sections import Renderer, contents
from pages.shared.report import report_content, take_away
from pages.shared.screen import answer_tabs, inputs, layout, plots
from pages.shared.session import session


@dataclass(frozen=True)
class Page:
    """What a question says about its page.

    Attributes:
        question: The question.
        solve: Solves it, from data and parameters.
        build_answer: Builds the answer from data, parameters and solution.
        main: Key of the main figure.
        glossary: Stands below *More settings*.
        describe_inputs: Says what the answer was computed from; None for nothing.
        describe_files: Says what the files of the answer hold.
    """

    question: Question
    solve: Callable[[Dataset, Any], Any]
    build_answer: Callable[[Dataset, Any, Any], Answer]
    main: str
    glossary: str = ""
    describe_inputs: Callable[[Answer], str] | None = None
    describe_files: Callable[[Answer], str] = str

    def show(self) -> None:
        """Draw the page."""
        data, question = session.dataset(), self.question

        def body(places: layout.Places) -> None:
            more = self.glossary
            parameters = inputs.read(question, places, more=lambda: st.caption(more) if more else None)
            if parameters is None:
                return
            st.session_state[keys.PAGE_PARAMETERS] = parameters
            solution = runner.compute(Cached(self.solve, (data, parameters.about_data), 32))
            answer = self.build_answer(data, parameters, solution)
            with places.figure:  # First: the browser draws it while the rest is still on its way.
                main = plots.show(plots.main_plot(answer, self.main), moves=question.key)
            describe = self.describe_inputs
            answer_tabs.show(
                places,
                question,
                answer,
                contents(Renderer(question, answer, data, main), answer.sections),
                lambda: self._files(answer),
                used=None if describe is None else lambda: describe(answer),
            )

        layout.show(question, body)

    def _files(self, answer: Answer) -> None:
        """Offer the answer, and its files."""
        question, source = self.question, take_away.source()
        asked = question.asked(*(name for name, f in question.fields.items() if f.place is not Place.TAB))
        take_away.draw(
            question.name,
            answer.disclosure,
            lambda: report_content.of_answer(question, answer, source, asked=asked),
            answer.methods,
            self.describe_files(answer),
            [(_title(question, name), name, make) for name, make in answer.files.items()],
        )


def _title(question: Question, name: str) -> str:
    """Return the label of the button of a file: "Curves (CSV)" of learning_curves.csv."""
    stem, _, ending = name.removeprefix(f"{question.name}_").rpartition(".")
    return f"{stem.replace('_', ' ').capitalize()} ({ending.upper()})"
