"""The training of the page Join or train alone, in a tab, and the report that holds its results."""

from __future__ import annotations

import functools
from dataclasses import replace

import streamlit as st

from dpcore.answer.answer import Answer
from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Disclosure, Provenance
from dpcore.common.wording import capitalise, escape_text, format_percent
from dpcore.data_owners.answer import plots as answer_plots
from dpcore.data_owners.answer.answer import summarise_owners
from dpcore.data_owners.answer.plots import TITLE, TrainingCard
from dpcore.data_owners.paper import FIGURES
from dpcore.data_owners.parameters import TRAINING_FIELDS, OwnersParameters
from dpcore.data_owners.study import RecordSource, StudyResult, check_records, run_study
from dpcore.data_owners.training import LabelledRecords
from dpcore.report.content import Report
from dpcore.report.script import CodeBuilder, ScriptSource
from pages.data_owners import upload
from pages.data_owners.question import QUESTION
from pages.shared.card import cards
from pages.shared.fields import fields, jobs
from pages.shared.figures import figures
from pages.shared.report import report_content
from pages.shared.screen import sections

JOB_KEY = QUESTION.get_key("training_job")


def draw_accuracy_tab(parameters: OwnersParameters) -> None:
    """Draw the tab: inputs, *Train*, figure and sentences; below, the paper's tables and figure at its setting."""
    _show_training(parameters)
    st.divider()
    sections.show_paper_figure(FIGURES, QUESTION.get_key("paper_figure"))


def _show_training(parameters: OwnersParameters) -> None:
    """Draw the inputs, *Train*, progress and the latest results. Results for other records are not shown."""
    st.markdown(
        "Logistic regression with a shared part W and a personal part V of every owner. *Joint privacy*: W is trained "
        "with noise, then every owner fits V by itself. "
        f"**{capitalise(answer_plots.NAME_BY_UNIT[parameters.unit])}** is protected: neighbouring data sets "
        "differ in one unit whose records are zeroed."
    )
    records_or_source: RecordSource | LabelledRecords = fields.draw_field(QUESTION, "train_on")
    record_study, record_digest = parameters.study, ""
    provenance: Provenance = Disclosure.PUBLIC
    if records_or_source is RecordSource.UPLOAD:
        if (own_table := upload.show_table()) is None:
            return
        records_or_source, record_digest = own_table.records, own_table.dataset.digest
        provenance = own_table.dataset.provenance
        record_study = replace(record_study, numbers_of_owners=(own_table.records.num_owners,))
    field_slots = st.columns([3, 3, 2, 2, 3], vertical_alignment="bottom")
    for field_slot, field_name in zip(field_slots, TRAINING_FIELDS[1:], strict=False):
        with field_slot:
            fields.draw_field(
                QUESTION, field_name, is_disabled=field_name == "train_owners" and bool(record_digest)
            )
    with field_slots[-1]:
        is_started = fields.draw_button("Train", "owners_train", "play_arrow", is_main=True, width="stretch")
    request = (parameters.train_on, record_digest, record_study, provenance)
    try:
        check_records(record_study, records_or_source)
    except InvalidInput as refused:
        fields.show_problems(refused.problems)
        is_started = False
    if is_started:
        jobs.start_job(
            JOB_KEY, request, functools.partial(run_study, record_study, records_or_source), is_heavy=True
        )
    is_running = jobs.show_progress(JOB_KEY, "Training")
    request_and_result = jobs.find_partial_result(JOB_KEY) if is_running else jobs.find_result(JOB_KEY)
    # Of other records they would stand under the wrong label.
    if (
        request_and_result is None
        or request_and_result[0][:2] != request[:2]
        or request_and_result[1].share_done == 0.0
    ):
        if not is_running:
            st.caption("Nothing was trained yet.")
        return
    if request_and_result[0] != request:
        if is_running:
            return
        st.caption(":material/history: These are for earlier settings; train again.")
    _show_results(request_and_result[1], is_running, provenance, has_paper=not record_digest)


def _show_results(
    study_result: StudyResult, is_running: bool, provenance: Provenance, has_paper: bool
) -> None:
    """Draw the figure of accuracies; once training has ended also the sentences, the table, settings and label."""
    if not is_running and study_result.share_done < 1.0:
        st.caption(f":material/stop_circle: Stopped after {format_percent(study_result.share_done)}.")
    figures.draw_plot(answer_plots.plot_accuracy(study_result, provenance, has_paper))
    if is_running:
        return
    text_by_heading = answer_plots.write_directions(study_result, has_paper)
    st.markdown(
        "\n".join(f"- **{heading}:** {sentence_text}" for heading, sentence_text in text_by_heading.items())
    )
    st.dataframe(
        answer_plots.tabulate_accuracy(study_result).style.format("{:.3f}", na_rep="not run"),
        alt="Test accuracy of every form",
    )
    records_text = escape_text(capitalise(study_result.records_name))
    st.caption(f"{records_text}: {answer_plots.write_settings(study_result)}")
    cards.draw_label(provenance)


def build_report(answer: Answer, source: ScriptSource, training_card: TrainingCard | None = None) -> Report:
    """Build the report of the page, with the results of training, if any."""

    def write_disclosure_cell(code_builder: CodeBuilder, source: ScriptSource, public_only: bool) -> str:
        """Write the cell that sets ``data`` to the disclosure of the entered numbers, as no data are read."""
        disclosure_code = code_builder.write(answer.disclosure)
        return f"data = {disclosure_code}  # The kind of numbers that the settings hold."

    solution, hidden_names, summary_lines = answer.solution, {*TRAINING_FIELDS, "x_axis", "y_axis"}, None
    if solution.is_of_data:
        hidden_names |= {"owners", "records"}
    else:
        hidden_names.add("own_bound")
        summary_lines = summarise_owners(solution)
        source = replace(source, disclosure=answer.disclosure, write_data_cell=write_disclosure_cell)
    if training_card is not None and training_card.is_private:
        # The bounds may be public: the file as a whole is not.
        source = replace(source, disclosure=training_card.disclosure)
    labels_by_field = QUESTION.get_report_labels(
        *(field_name for field_name in QUESTION.fields if field_name not in hidden_names)
    )
    report = report_content.build_page_report(
        QUESTION, answer, source, labels_by_field=labels_by_field, summary_lines=summary_lines
    )
    if training_card is None:
        return report
    titled_answers = (*report.answers, (TITLE, training_card.card))
    return replace(report, answers=titled_answers, figures=(*report.figures, training_card.plot))


def show_files(answer: Answer) -> None:
    """Offer report, methods, script and choice as files; the report holds the results of the last training, if any."""
    assert answer.write_json is not None
    script_source, training_card = report_content.build_session_source(), None
    request_and_result = jobs.find_result(JOB_KEY)
    if request_and_result is not None and request_and_result[1].share_done > 0.0:
        (record_source, _, _, disclosure), study_result = request_and_result
        training_card = TrainingCard(study_result, disclosure, record_source is not RecordSource.UPLOAD)
    report_content.draw_downloads(
        "owners",
        answer.disclosure
        if training_card is None or not training_card.is_private
        else training_card.disclosure,
        lambda: build_report(answer, script_source, training_card),
        answer.methods,
        f"**Choice** holds every bound and crossing. Label: *{answer.disclosure.label}*.",
        [("Choice (JSON)", "owners_choice.json", answer.write_json)],
        answer.disclosure,
    )
    if training_card is not None:
        st.caption(
            f"The report holds the accuracies of the last training. Their label: *{training_card.disclosure.label}*."
        )
