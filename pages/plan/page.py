"""Budget plan: several numbers about one table share one budget."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import streamlit as st

from dpcore.answer import Answer
from dpcore.answer.plot import Plot
from dpcore.common.privacy import Disclosure
from dpcore.dataset import Dataset
from dpcore.plan.answer import build_answer
from dpcore.plan.answer.answer import solve_beside_page
from dpcore.plan.parameters import PlanParameters
from dpcore.report import settings_file
from pages.plan import inputs, line_table
from pages.plan.question import QUESTION
from pages.shared.base import catalogue
from pages.shared.card import cards
from pages.shared.render.question_page import Page
from pages.shared.screen import layout
from pages.shared.session import session


class PlanPage(Page):
    """The page *Budget plan*."""

    def read_inputs(self, slots: layout.PageSlots, dataset: Dataset) -> PlanParameters | None:
        """Draw what the lines need, and return the parameters; if refused, draw the bare table and return None."""
        parameters = inputs.read_inputs(slots, dataset)
        if parameters is None:
            self.draw_refused(slots, dataset, None)
        return parameters

    def refuse(self, slots: layout.PageSlots, dataset: Dataset, parameters: PlanParameters) -> bool:
        """Return True if the plan is empty, and then draw what it can hold; else return False."""
        if not parameters.parsed_lines:
            self.draw_refused(slots, dataset, parameters)
        return not parameters.parsed_lines

    def draw_refused(
        self, slots: layout.PageSlots, dataset: Dataset, parameters: PlanParameters | None
    ) -> None:
        """Draw the table without numbers, so that what is wrong can be changed there."""
        with slots.figure:
            line_table.draw_table(dataset)

    def draw_main(self, answer: Answer, label_text: str) -> Plot:
        """Draw the table, and return the plot of errors, which stands in a tab."""
        line_table.draw_table(session.get_dataset(), answer.solution)
        return answer.plots["plan-errors"]()

    def draw_last(self, slots: layout.PageSlots, answer: Answer) -> None:
        """Draw a link to other data, of which a plan can be published, if the data are private."""
        if session.get_dataset().is_private:
            link_label, page_path = (
                "Plan on public or older data, or on a DP histogram",
                catalogue.find_page("Data").page_path,
            )
            slots.answer.page_link(page_path, label=link_label, icon=":material/table_chart:")

    def draw_behind(self, answer: Answer) -> None:
        """Draw what stands behind the plan, with its first two numbers; those of its lines are in the table."""
        cards.draw_behind(replace(answer, numbers=answer.numbers[:2]))

    def reads_rows(self, answer: Answer) -> bool:
        """Return True: lines may need values and groups."""
        return True

    def describe_files(self, answer: Answer) -> str:
        """Return Markdown on the content of the file *Choice*."""
        return f"**Choice** holds every line with its share, bound and error. Label: *{answer.disclosure.label}*."

    def show_files(self, answer: Answer, dataset: Dataset, demo_label: str) -> None:
        """Offer the answer, and what was entered as a file for the command if the data can be read again."""
        super().show_files(answer, dataset, demo_label)
        if not settings_file.can_read_again(dataset):
            return
        st.markdown(
            "**plan.toml** holds what you entered, with the names of your columns: `sweet-spot plan plan.toml "
            "data.csv` gives this answer. Label: *public input*."
        )
        write_settings = partial(inputs.write_settings, dataset, answer)
        cards.draw_file_button("Settings (TOML)", "plan.toml", Disclosure.PUBLIC, write_settings)


PlanPage(QUESTION, solve_beside_page, build_answer).show()
