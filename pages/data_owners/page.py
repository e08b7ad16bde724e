"""Join or train alone: who should train together, by the bounds and by training."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import streamlit as st

from dpcore.answer import Answer
from dpcore.answer.section import Cached, SearchResult, Solver
from dpcore.data_owners.answer import build_answer, solve
from dpcore.data_owners.parameters import TRAINING_FIELDS, OwnersParameters, OwnersSource
from dpcore.dataset import Dataset
from pages.data_owners import contents, upload
from pages.data_owners.question import QUESTION, find_disclosure
from pages.shared.render import question_page
from pages.shared.render.question_page import Page
from pages.shared.screen import layout


def solve_with_label(dataset: Dataset, parameters: OwnersParameters) -> Solver:
    """Yield the call that evaluates the bounds, and return its solution as a `SearchResult`.

    For owners of the data the call gets the data, for entered owners only the label of the answer.
    """
    own_table = upload.find_table()
    disclosure = find_disclosure(parameters, dataset, None if own_table is None else own_table.dataset)
    data_or_label = dataset if parameters.source is OwnersSource.DATA else disclosure
    solution = yield Cached(solve, (data_or_label, parameters.without(*TRAINING_FIELDS)))
    return SearchResult(solution)


class OwnersPage(Page):
    """The page *Join or train alone*."""

    def name_data(self, data: Dataset, parameters: OwnersParameters) -> str:
        """Return what the sidebar says about entered owners in place of a data name; empty for owners of the data."""
        return "none, only the numbers entered" if parameters.source is OwnersSource.ENTERED else ""

    def read_inputs(self, slots: layout.PageSlots, dataset: Dataset) -> OwnersParameters | None:
        """Draw the inputs in two columns; *Your own cap* is hidden for entered owners. Return None if they are bad."""
        parameters: OwnersParameters | None = question_page.read_inputs(
            QUESTION,
            slots,
            # Entered owners are all alike, so that no cap is sought for them.
            is_hidden=lambda name: (
                name == "own_bound" and st.session_state[QUESTION.get_key("source")] is not OwnersSource.DATA
            ),
            num_columns=2,
        )
        return parameters

    def list_tabs(self, answer: Answer) -> Mapping[str, Callable[[], None]]:
        """Return the function that draws the tab *Accuracy*, by that name; it trains models on records of its own."""
        return {"Accuracy": lambda: contents.draw_accuracy_tab(answer.parameters)}

    def show_files(self, answer: Answer, dataset: Dataset, demo_label: str) -> None:
        """Offer the files of the answer; the report holds the results of the last training, too."""
        contents.show_files(answer)


OwnersPage(QUESTION, solve_with_label, build_answer, stem="owners", has_axis_controls=False).show()
