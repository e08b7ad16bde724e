"""Multi-task weights: who gets a user's privacy budget when one model per task is trained."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from dpcore.answer.answer import Answer, build_without_numbers
from dpcore.common.privacy import Disclosure
from dpcore.common.wording import format_entered
from dpcore.dataset import Dataset
from dpcore.multitask.answer import build_answer
from dpcore.multitask.answer.sections import STUDIES
from dpcore.multitask.answer.solution import solve_beside_page
from dpcore.multitask.answer.words import summarise_tasks
from dpcore.multitask.parameters import MultitaskParameters, TaskSource
from dpcore.report.content import Line
from dpcore.report.script import CodeBuilder, ScriptSource
from pages.multitask.question import QUESTION, list_answer_fields
from pages.shared.fields import fields
from pages.shared.render.question_page import Page
from pages.shared.report import report_content
from pages.shared.screen import layout
from pages.shared.screen.sections import Renderer, list_contents
from pages.shared.session import session


def write_generated_cell(code_builder: CodeBuilder, source: ScriptSource, public_only: bool) -> str:
    """Return the cell of generated tasks, which is the same for all: no data."""
    return "data = None  # Users and tasks are generated."


def enter_exponent(exponent: float) -> None:
    """Enter this exponent in the page's field."""
    st.session_state[QUESTION.get_key("exponent")] = exponent


class MultitaskPage(Page):
    """The page *Multi-task weights*."""

    def name_data(self, data: Dataset, parameters: MultitaskParameters) -> str:
        """Return what the sidebar calls generated users and tasks; empty for tasks of the data in use."""
        return "generated users and tasks" if parameters.generator else ""

    def refuse(self, slots: layout.PageSlots, dataset: Dataset, parameters: MultitaskParameters) -> bool:
        """Return True, with a note and the studies, if tasks of the data are chosen and the data have none; else False.

        If the data have none and tasks are generated, a note says that.
        """
        if dataset.pairs is not None:
            return False
        is_generated = parameters.source is not TaskSource.DATA
        subject_text = "The data in use have" if dataset.release is None else "A DP release has"
        with slots.notes:
            if not is_generated:
                st.info(
                    f"{subject_text} no tasks. Choose generated ones (*More settings*) or bring a task column.",
                    icon=":material/info:",
                )
            with st.container(horizontal=True, vertical_alignment="center"):
                if is_generated:
                    st.caption(f"{subject_text} no tasks, so these are generated.", width="content")
                session.draw_data_link("Bring data with tasks")
        if not is_generated:
            self.draw_refused(slots, dataset, parameters)
        return not is_generated

    def draw_refused(
        self, slots: layout.PageSlots, dataset: Dataset, parameters: MultitaskParameters
    ) -> None:
        """Draw the tabs of the studies and of the formula, which need no tasks."""
        renderer = Renderer(QUESTION, build_without_numbers(parameters, Disclosure.PUBLIC), dataset)
        formula_content_by_tab = {layout.COMPUTED: lambda: st.markdown(QUESTION.read_formula())}
        content_by_tab = list_contents(renderer, {"Studies": STUDIES}, formula_content_by_tab)
        with slots.bottom:
            layout.draw_tabs(content_by_tab, QUESTION.get_key("tabs"))

    def draw_last(self, slots: layout.PageSlots, answer: Answer) -> None:
        """Draw a button that enters the best exponent, unless it is entered already or the data are private.

        Links, reports and scripts hold the field. The best exponent for private data is computed from them, so that
        users type it if they want it there.
        """
        best_exponent = answer.solution.comparison.recommendation[0]
        if best_exponent != answer.parameters.exponent and answer.disclosure is not Disclosure.PRIVATE:
            button_label = f"Use μ = {format_entered(best_exponent)}"
            with slots.answer:
                fields.draw_button(button_label, "tasks_use_best", "check", enter_exponent, best_exponent)

    def list_report_fields(self, answer: Answer) -> list[str]:
        """Return the fields that the answer depends on."""
        return list_answer_fields(answer.parameters)

    def build_source(self, answer: Answer, dataset: Dataset) -> ScriptSource:
        """Build the source of the script; generated tasks need no data."""
        script_source = report_content.build_session_source(needs_rows=True, disclosure=answer.disclosure)
        is_generated = answer.parameters.generator is not None
        return replace(script_source, write_data_cell=write_generated_cell) if is_generated else script_source

    def summarise(self, answer: Answer, dataset: Dataset) -> tuple[Line, ...]:
        """Return lines of the report on the data and the graph's users and tasks; if chosen, on the generated graph."""
        return summarise_tasks(answer.solution, None if answer.parameters.generator else dataset)


MultitaskPage(QUESTION, solve_beside_page, build_answer, stem="many_tasks").show()
