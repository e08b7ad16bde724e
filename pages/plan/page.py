"""Budget plan: several numbers about one table share one budget."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import streamlit as st

from dpcore.answer import Answer
from dpcore.common.privacy import Disclosure
from dpcore.dataset import Dataset
from dpcore.plan.answer import build_answer, words
from dpcore.plan.answer.answer import solve_beside_page
from dpcore.plan.parameters import PlanParameters
from dpcore.report import script
from pages.plan import inputs
from pages.plan.question import QUESTION
from pages.shared.card import cards
from pages.shared.figures import figures
from pages.shared.render.question_page import Page
from pages.shared.screen import layout


class PlanPage(Page):
    """The page."""

    def read_inputs(self, slots: layout.PageSlots, dataset: Dataset) -> PlanParameters | None:
        """Draw the lines and what they need."""
        return inputs.read_inputs(slots)

    def draw_behind(self, answer: Answer) -> None:
        """Draw every line with its share, bound and error, and what stands behind the plan."""
        texts_by_heading = words.tabulate_plan(answer.solution)
        figures.show_table(texts_by_heading, "Share, bound and error of every number", height="content")
        st.caption(words.TABLE_NOTE)
        cards.draw_behind(replace(answer, numbers=answer.numbers[:2]))

    def reads_rows(self, answer: Answer) -> bool:
        """Return True: lines may need values and groups."""
        return True

    def describe_files(self, answer: Answer) -> str:
        """Return Markdown on the content of the file *Choice*."""
        return f"**Choice** holds every line with its share, bound and error. Label: *{answer.disclosure.label}*."

    def show_files(self, answer: Answer, dataset: Dataset, label: str) -> None:
        """Offer the answer, and what was entered as a file for the command if the data can be read again."""
        super().show_files(answer, dataset, label)
        if not script.can_read_again(dataset):
            return
        st.markdown(
            "**plan.toml** holds what you entered, with the names of your columns: `sweet-spot plan plan.toml "
            "data.csv` gives this answer. Label: *public input*."
        )
        write_settings = partial(inputs.write_settings, dataset, answer)
        cards.file_button("Settings (TOML)", "plan.toml", Disclosure.PUBLIC, write_settings)


PlanPage(QUESTION, solve_beside_page, build_answer).show()
