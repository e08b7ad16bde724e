"""Classifier: a private classifier under a bound on what a user brings, trained many times at every bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import streamlit as st

from dpcore.answer import Answer, Plot
from dpcore.answer.section import SearchResult, Solver
from dpcore.report.content import Line
from dpcore.report.script import CodeBuilder, ScriptSource, write_table_cell
from dpcore.training.answer import TrainingSolution, build_answer, plots, words
from dpcore.training.answer.answer import solve_beside_page
from dpcore.training.experiment import MAX_RUNS
from dpcore.training.parameters import GENERATOR_FIELDS, DataSource, TrainingParameters
from dpcore.training.rows import Measure, ScoreUnit
from dpcore.training.training_data import TrainingData
from pages.shared.fields import fields, jobs, searches
from pages.shared.figures.figures import draw_plot as draw_plot
from pages.shared.render import question_page
from pages.shared.render.question_page import Page
from pages.shared.screen import layout
from pages.shared.server import access
from pages.training import release, upload
from pages.training.question import MAX_DEMO_RUNS, QUESTION


def solve_with_demo_limit(data: TrainingData, parameters: TrainingParameters) -> Solver:
    """Yield the searches that train, and return their result; a public demo makes at most `MAX_DEMO_RUNS` runs."""
    max_runs = MAX_DEMO_RUNS if access.is_served() else MAX_RUNS
    search_result: SearchResult = yield from solve_beside_page(data, parameters, max_runs)
    return search_result


def build_with_model(
    data: TrainingData, parameters: TrainingParameters, solution: TrainingSolution
) -> Answer:
    """Build the answer; its methods section is about the model that was released, if there is one."""
    release.collect_release()  # Whatever tab is open, and before files and methods are made.
    answer, model = build_answer(data, parameters, solution), release.find_latest_model(solution)
    return replace(answer, make_methods=lambda: words.write_methods(solution, model))


def draw_figure_choices() -> None:
    """Draw the choices of the main figure."""
    for key_name, default_choice in (("measure", Measure.LOSS), ("over", ScoreUnit.ROWS)):
        st.session_state.setdefault(QUESTION.get_key(key_name), default_choice)
    with fields.build_row():
        fields.draw_choice("The figure shows", plots.TITLE_BY_MEASURE, QUESTION.get_key("measure"))
        fields.draw_choice(
            "Mean over",
            {ScoreUnit.ROWS: "Rows", ScoreUnit.USERS: "Users"},
            QUESTION.get_key("over"),
            "Over rows, heavy users count for more.",
        )


class TrainingPage(Page):
    """The page *Classifier*: its inputs, its release, and the files that describe both."""

    def read_own_data(self) -> TrainingData | None:
        """Show which data are used, offer others, and return them; None if there are none to train on."""
        return upload.read_data()

    def is_same_for_all(self, data: TrainingData, parameters: TrainingParameters) -> bool:
        """Return True for the sample."""
        return parameters.source is DataSource.SAMPLE

    def read_inputs(self, slots: layout.PageSlots, data: TrainingData) -> TrainingParameters | None:
        """Draw the inputs, say what a label means and what a demo does not do; return None if they are refused."""
        parameters: TrainingParameters | None = question_page.read_inputs(
            QUESTION,
            slots,
            # Empty fields of the generator are named where the data are made, and matter to no other data.
            is_hidden=GENERATOR_FIELDS.__contains__,
            draw_more=draw_figure_choices,
            num_columns=2,
        )
        if parameters is not None:
            with slots.notes:
                upload.show_label_rule(data, parameters.positive_above)
                if access.is_served() and parameters.runs > MAX_DEMO_RUNS:
                    st.caption(f":material/cloud_off: A public demo makes {MAX_DEMO_RUNS} runs of each.")
        return parameters

    def draw_main(self, answer: Answer, label_text: str) -> Plot:
        """Draw every method at its best bound, by the score that is chosen."""
        measure, score_unit = (
            st.session_state[QUESTION.get_key(key_name)] for key_name in ("measure", "over")
        )
        plot = plots.plot_methods(answer.solution, measure, score_unit)
        draw_plot(plot)
        return plot

    def draw_progress(self, result: SearchResult, runs: Sequence[searches.SearchRun]) -> None:
        """Draw how far the searches are; if none runs and there is an answer, how many trainings it rests on."""
        super().draw_progress(result, runs)
        if result.value is not None and not jobs.list_running_jobs(runs[0].job_key):
            st.caption(words.describe_runs(result.value))

    def list_tabs(self, answer: Answer) -> Mapping[str, layout.Content]:
        """Return the tab of the release, by its name."""
        return {"Release": lambda: release.show_release(answer.solution)}

    def build_source(self, answer: Answer, data: TrainingData) -> ScriptSource:
        """Build the source of the script: a table with its ranges, unless the settings say what the data are."""

        def write_data_cell(code_builder: CodeBuilder, source: ScriptSource, public_only: bool) -> str:
            """Write the cell that makes ``data``: None unless a table was uploaded, else the table with its ranges."""
            if answer.parameters.source is not DataSource.UPLOAD:
                return "data = None  # The settings say which data."
            code_builder.import_name("TrainingData", "dpcore.training.training_data")
            code_builder.import_name("make_scaling", "dpcore.training.rows")
            return (
                f"{write_table_cell(code_builder, source, public_only, data.design)}\n"
                f"ranges = {dict(data.ranges)!r}\n"
                "scaling = make_scaling(data, design, ranges)\n"
                "data = TrainingData(data, design=design, scaling=scaling, ranges=ranges)"
            )

        return ScriptSource(data.dataset, needs_rows=True, write_data_cell=write_data_cell)

    def list_releases(self, answer: Answer, data: TrainingData) -> tuple[Line, ...]:
        """List the latest model, and what was spent on these rows."""
        store = release.get_store(answer.solution)
        return release.list_model_lines(store.stored_releases, store.ledger)

    def list_report_fields(self, answer: Answer) -> list[str]:
        """List the fields for the report, without those of the generator unless the data are generated."""
        is_generated = answer.parameters.source is DataSource.GENERATED
        return [
            field_name for field_name in QUESTION.fields if is_generated or field_name not in GENERATOR_FIELDS
        ]

    def describe_files(self, answer: Answer) -> str:
        """Name the part of the downloads that has single files."""
        return "**Parts of it**"

    def write_file_label(self, file_name: str) -> str:
        """Return the text of the button of the runs."""
        return "Every run (CSV)"


TrainingPage(QUESTION, solve_with_demo_limit, build_with_model, shows_progress_below=True).show()
