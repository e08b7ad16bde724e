"""Group by: the best pair of bounds for a release per group, and what scaling users instead would save."""

from __future__ import annotations

import streamlit as st

from dpcore.answer import Answer
from dpcore.dataset import Dataset
from dpcore.per_group.answer import DistributionSolution, build_answer, build_refused_answer
from dpcore.per_group.answer.answer import solve_beside_page, write_data_cell
from dpcore.per_group.parameters import PerGroupParameters
from dpcore.report.script import ScriptSource
from pages.per_group import inputs
from pages.per_group.question import QUESTION
from pages.shared.card import cards
from pages.shared.render.question_page import Needs, Page
from pages.shared.screen import layout


class PerGroupPage(Page):
    """The page *Group by*."""

    def read_inputs(self, slots: layout.PageSlots, dataset: Dataset) -> PerGroupParameters | None:
        """Draw the inputs that go with the statistic, and return the parameters; None if they are refused."""
        return inputs.read_inputs(dataset, slots)

    def draw_refused(self, slots: layout.PageSlots, dataset: Dataset, parameters: PerGroupParameters) -> None:
        """Offer to choose the pair with DP if the data are private; draw nothing otherwise."""
        if dataset.is_private:
            with slots.answer:
                cards.draw_answer(build_refused_answer(dataset, parameters), "per_group_card")

    def describe_files(self, answer: Answer) -> str:
        """Return Markdown on the content of the files."""
        content_text = "**Choice** holds the question, the best pair and the proofs."
        if isinstance(answer.solution, DistributionSolution):
            content_text = (
                "The **distribution of pairs**, for the script and *Data*, names no user and no group."
            )
        return f"{content_text} Label: *{answer.disclosure.label}*."

    def build_source(self, answer: Answer, dataset: Dataset) -> ScriptSource:
        """Return the source of the script: the data, or the file of their distribution."""
        if isinstance(answer.solution, DistributionSolution):
            return ScriptSource(dataset, needs_rows=True, write_data_cell=write_data_cell)
        return super().build_source(answer, dataset)

    def write_file_label(self, file_name: str) -> str:
        """Return the text of the button of the distribution's file."""
        return "Distribution of pairs (JSON)"

    def show_files(self, answer: Answer, dataset: Dataset, demo_label: str) -> None:
        """Offer the answer's files; without a script if the distribution that it reads does not fit in a file."""
        if not isinstance(answer.solution, DistributionSolution) or answer.files:
            super().show_files(answer, dataset, demo_label)
            return
        assert answer.write_json is not None
        files = [("Choice (JSON)", "per_group_choice.json", answer.write_json)]
        cards.draw_file_buttons(files, dataset.provenance)
        pair_sizes = answer.solution.problem.pair_sizes
        counts_text = f"{pair_sizes.pairs.size:,} sizes and {pair_sizes.task_rows.size:,} groups"
        st.caption(f"{counts_text} are too many for a file and a script.")


PerGroupPage(
    QUESTION,
    solve_beside_page,
    build_answer,
    needs=Needs(lambda data: data.pairs is None and data.pair_sizes is None, "", "Upload groups"),
    has_axis_controls=False,
).show()
