"""Linear regression: the best linear estimator under label privacy, and what caps cost beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import streamlit as st

from dpcore.answer import Answer
from dpcore.answer.section import Cached, SearchResult
from dpcore.common.privacy import format_rounded_up
from dpcore.common.progress import Stage
from dpcore.common.wording import escape_text, format_count, format_number, format_percent
from dpcore.data.column_names import escape_formula
from dpcore.dataset import Dataset
from dpcore.regression import draw as regression_draw
from dpcore.regression.answer import RegressionSolution, build_answer
from dpcore.regression.answer.answer import FIT_ASSUMPTION
from dpcore.regression.answer.solution import PROVED_GAP, count_clipped, get_table, solve_beside_page
from dpcore.regression.draw import ReleasedCoefficients, draw_coefficients
from dpcore.regression.estimate import ErrorTarget, compute_variances
from dpcore.regression.parameters import DataSource, RegressionGenerator, RegressionParameters, round_outwards
from dpcore.report.content import Line
from dpcore.report.script import CodeBuilder, ScriptSource, write_table_cell
from pages.regression.question import GENERATOR_FIELDS, QUESTION
from pages.regression.upload import UPLOAD, RegressionData, find_own_data, find_releases, list_draw_lines
from pages.shared.base import cache
from pages.shared.card import cards
from pages.shared.data import table_upload
from pages.shared.fields import field_values, fields, searches
from pages.shared.figures import figures
from pages.shared.render import question_page
from pages.shared.render.question_page import Page
from pages.shared.screen import layout

MAX_CLIPPED_SHARE = 0.05
"""Share of clipped labels above which the page warns."""
LABEL_BY_TARGET = {ErrorTarget.PREDICTIONS: "Predictions", ErrorTarget.COEFFICIENTS: "Coefficients"}


def show_release(answer: Answer) -> None:
    """Draw the tab: a description, the button, and the latest draw with its label."""
    solution, release_store = answer.solution, find_releases(answer)
    draws, latest_draw = (
        release_store.stored_releases,
        release_store.stored_releases[-1] if release_store.stored_releases else None,
    )
    problem, estimate, label_values = (
        solution.problem,
        solution.best_estimate,
        get_table(solution.dataset).labels,
    )
    epsilon_text, lower = format_rounded_up(problem.epsilon), answer.parameters.lower
    st.markdown(
        f"A draw adds Laplace noise of scale **{format_number(estimate.laplace_noise.scale)}** to each coefficient, "
        f"by OpenDP, and spends **ε = {epsilon_text}**. Every further draw of the same labels spends more."
    )
    if solution.variance_is_private:
        st.warning(
            "σ² was read from private labels, and C depends on it: ε would not cover that. Enter a σ² that you may "
            "publish under *More settings*, then draw.",
            icon=":material/lock:",
        )
    fields.draw_button(
        f"Draw {'once more' if draws else 'the coefficients'}: spends ε = {epsilon_text}",
        "regression_draw",
        "casino",
        release_store.add_release,
        lambda charge: draw_coefficients(problem, estimate, label_values, lower, charge=charge),
        is_main=not draws,
        disabled=solution.variance_is_private or solution.stage is not Stage.FINAL,
        help=None if solution.stage is Stage.FINAL else "It waits for the end of the search.",
    )
    release_store.show_refusal()
    is_outdated = latest_draw is not None and latest_draw.question != problem.digest
    release_store.show_account(None if latest_draw is None else latest_draw.facts, is_outdated)
    columns_by_heading = tabulate_release(solution, latest_draw)
    format_by_column = dict.fromkeys([*columns_by_heading][1:], "%.4g")
    figures.show_table(
        columns_by_heading,
        "Coefficients with noise scale and standard error",
        "regression_coefficients",
        format_by_column,
    )
    st.caption(
        f"A coefficient is in {escape_text(solution.unit, 30)} per unit of its feature, that of a category compared "
        "with the reference level. Errors and intervals contain sampling error and noise. They assume σ², a linear "
        "model and few clipped labels, and hold for each coefficient alone."
    )
    if latest_draw is None:
        cards.draw_label(answer.disclosure)
    else:
        button_label = "Released coefficients (CSV)"
        release_store.draw_file_button(
            button_label, lambda: regression_draw.write_draws(draws), "released-coefficients"
        )


def tabulate_release(
    solution: RegressionSolution, latest_draw: ReleasedCoefficients | None
) -> dict[str, Any]:
    """Return columns by heading: the coefficients of the latest draw, their intervals, noise and standard errors.

    Before the first draw there are only names, noise scale and standard errors. Generated data add the true values.
    """
    problem, estimate = solution.problem, solution.best_estimate
    coefficient_names = problem.feature_names if latest_draw is None else latest_draw.feature_names
    columns_by_heading: dict[str, Any] = {
        "Coefficient": [escape_formula(coefficient_name) for coefficient_name in coefficient_names]
    }
    if latest_draw is not None:
        columns_by_heading["Released"] = released_values = latest_draw.release.values
        columns_by_heading["95 % from"] = released_values - latest_draw.half_widths
        columns_by_heading["95 % to"] = released_values + latest_draw.half_widths
    noise_scale = estimate.laplace_noise.scale if latest_draw is None else latest_draw.release.scale
    columns_by_heading["Noise scale b"] = np.full(len(coefficient_names), noise_scale)
    columns_by_heading["Standard error"] = (
        np.sqrt(compute_variances(problem, estimate)) if latest_draw is None else latest_draw.standard_errors
    )
    if solution.parameters.source is DataSource.GENERATED:
        columns_by_heading["True (generated)"] = solution.parameters.generator.generate().coefficients
    return columns_by_heading


def build_for_target(
    dataset: Dataset, parameters: RegressionParameters, solution: RegressionSolution
) -> Answer:
    """Build the answer whose figures show the chosen error."""
    target: ErrorTarget = st.session_state[QUESTION.get_key("error")]
    return build_answer(dataset, parameters, replace(solution, target=target))


def generate_data() -> RegressionData | None:
    """Return generated data; None, with the sentences on the page, if the settings are refused."""
    values_by_field: dict[str, Any] = {
        field_name: st.session_state[QUESTION.get_key(field_name)] for field_name in GENERATOR_FIELDS
    }
    label_by_field = {field_name: QUESTION.declarations[field_name].name for field_name in GENERATOR_FIELDS}
    generator, input_problems = field_values.build_parameters(
        RegressionGenerator, values_by_field, label_by_field
    )
    if generator is None:
        fields.show_problems(input_problems)
        return None
    generated_data, _ = cache.compute_cached(Cached(RegressionGenerator.build_dataset, (generator,), 4))
    return RegressionData(generated_data, generated_data.digest)


def propose_range(dataset: Dataset) -> None:
    """Set the fields of the range to that of public labels, rounded out, or empty them; an entered range stays."""
    state, lower_key, upper_key = st.session_state, QUESTION.get_key("lower"), QUESTION.get_key("upper")
    last_proposal = state.get(QUESTION.get_key("proposed"))
    if (state[lower_key], state[upper_key]) not in (last_proposal or (None, None), (None, None)):
        return
    label_values = get_table(dataset).labels
    new_proposal = (
        (None, None) if dataset.is_private else round_outwards(label_values.min(), label_values.max())
    )
    # Only where it differs: an assignment that reaches the browser late undoes a key press. And where the
    # person has cleared what was proposed, the page says so instead of filling it in again.
    if last_proposal != new_proposal:
        state[lower_key], state[upper_key] = state[QUESTION.get_key("proposed")] = new_proposal


class RegressionPage(Page):
    """The page, which has data of its own, and draws coefficients on request."""

    def read_own_data(self) -> Dataset | None:
        """Show which data are used and offer others; return them, or None if there are none."""
        own_data: RegressionData | None = table_upload.draw_data_choice(
            UPLOAD,
            {
                DataSource.GENERATED: generate_data,
                DataSource.UPLOAD: lambda: table_upload.show_table_upload(UPLOAD),
            },
            DataSource.GENERATED,
            "As in the paper's appendix E.1.1: normal features and a linear model with noise.",
            GENERATOR_FIELDS,
            lambda data: format_count(data.histogram.num_users, "user"),
        )
        return None if own_data is None else own_data.dataset

    def is_same_for_all(self, dataset: Dataset, parameters: RegressionParameters) -> bool:
        """Return True for generated data."""
        return parameters.source is DataSource.GENERATED

    def read_inputs(self, slots: layout.PageSlots, dataset: Dataset) -> RegressionParameters | None:
        """Draw the inputs, and warn of many clipped labels; return the parameters, or None if they are refused."""
        propose_range(dataset)
        get_key = QUESTION.get_key
        st.session_state.setdefault(get_key("error"), ErrorTarget.PREDICTIONS)
        parameters: RegressionParameters | None = question_page.read_inputs(
            QUESTION,
            slots,
            # Empty fields of the generator are named where the data are made, and matter to no upload.
            is_hidden=GENERATOR_FIELDS.__contains__,
            draw_more=lambda: fields.draw_choice(
                "Figures show the error of", LABEL_BY_TARGET, get_key("error"), FIT_ASSUMPTION
            ),
            ask_first=lambda unused: question_page.ask_for_range(
                dataset, {get_key("lower"): "L", get_key("upper"): "U"}, "label"
            ),
        )
        outside_counts = None if parameters is None else count_clipped(dataset, parameters)
        if outside_counts and outside_counts.num_outside > MAX_CLIPPED_SHARE * outside_counts.num_values:
            slots.notes.warning(
                f"{outside_counts.percent_text} of the labels are clipped, which biases the coefficients. Set L and U "
                "from what you know of the quantity.",
                icon=":material/warning:",
            )
            if dataset.is_private:
                with slots.notes:
                    cards.draw_label(dataset.provenance)
        return parameters

    def draw_progress(self, result: SearchResult, runs: Sequence[searches.SearchRun]) -> None:
        """Draw how far the searches are, or how sure the answer is."""
        super().draw_progress(result, runs)
        solution: RegressionSolution | None = result.value
        if solution is None or result.stage is not Stage.FINAL or any(run.has_failed for run in runs):
            return
        certificate = solution.best_estimate.certificate
        caption = ":material/verified: Proved best."
        if not certificate.proves(PROVED_GAP):
            gap_text = format_percent(certificate.relative_gap)
            caption = f":material/pan_tool: Stopped: another C could save at most {gap_text} of the variance."
        elif not solution.cap_draws.num_draws:
            caption = ":material/pan_tool: The trial of bounds was stopped."
        st.caption(caption)

    def list_tabs(self, answer: Answer) -> Mapping[str, Callable[[], None]]:
        """Return the function that draws the tab *Release*, by that name."""
        return {"Release": lambda: show_release(answer)}

    def write_file_label(self, file_name: str) -> str:
        """Return the text of the button of C."""
        return "C (Parquet)"

    def describe_files(self, answer: Answer) -> str:
        """Return Markdown on the content of the files."""
        return (
            "**C** has one line per complete row of the table and one column per coefficient. **Choice** has the "
            f"question and the answer. The label of both files is *{answer.solution.dataset.provenance.label}*."
        )

    def list_report_fields(self, answer: Answer) -> Sequence[str]:
        """List the fields for the report, for uploaded data without the settings of the generator."""
        is_generated = answer.parameters.source is DataSource.GENERATED
        return [
            field_name for field_name in QUESTION.fields if is_generated or field_name not in GENERATOR_FIELDS
        ]

    def build_source(self, answer: Answer, dataset: Dataset) -> ScriptSource:
        """Build the source of the script: a file of one's own, or the settings alone."""
        own_data = find_own_data(answer)

        def write_data_cell(code_builder: CodeBuilder, source: ScriptSource, public_only: bool) -> str:
            """Write the cell that makes ``data``: None for generated ones, else the table that is read."""
            if answer.parameters.source is DataSource.GENERATED:
                return "data = None  # The settings say how data are generated."
            return write_table_cell(
                code_builder, source, public_only, own_data.design, "dpcore.regression.problem"
            )

        return ScriptSource(dataset, needs_rows=True, write_data_cell=write_data_cell)

    def list_releases(self, answer: Answer, dataset: Dataset) -> tuple[Line, ...]:
        """List the latest draw and all that was spent, as lines of the report."""
        release_store = find_releases(answer)
        return list_draw_lines(release_store.stored_releases, release_store.ledger)


RegressionPage(QUESTION, solve_beside_page, build_for_target, shows_progress_below=True).show()
