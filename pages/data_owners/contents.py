"""The contents of the page Data owners: its inputs, its tabs, and the work beside it."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from dpcore.answer.answer import Answer
from dpcore.common import wording
from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Disclosure, Provenance
from dpcore.data_owners.answer import answer as answer_answer
from dpcore.data_owners.answer import trained
from dpcore.data_owners.answer.trained import TITLE, TrainingCard
from dpcore.data_owners.bounds import Unit
from dpcore.data_owners.labelled import LabelledRecords
from dpcore.data_owners.paper import FIGURES
from dpcore.data_owners.parameters import TRAINING_FIELDS, OwnersParameters
from dpcore.data_owners.study import Records, StudyResult, check_records, run_study
from dpcore.report.content import Report
from dpcore.report.script import Code, Source
from pages.data_owners import upload
from pages.data_owners.question import QUESTION
from pages.shared.card import cards
from pages.shared.fields import fields, jobs
from pages.shared.figures import figures
from pages.shared.report import report_content
from pages.shared.screen import inputs, layout, plots


def read_inputs(slots: layout.PageSlots) -> OwnersParameters | None:
    """Draw the inputs. Returns None, with the sentences on the page, where they do not fit together."""
    unused = inputs.start(QUESTION)
    with slots.line:
        fields.draw_all(QUESTION, *(name for name in ("owners", "records", "shared") if name not in unused))
    with slots.more_settings("owners_more"):
        fields.draw_all(QUESTION, "source", "unit")
        with fields.row():
            if "records_per_user" not in unused:
                fields.draw(QUESTION, "records_per_user")
            fields.draw(QUESTION, "delta")
            if "owners" in unused:
                fields.draw(QUESTION, "own_bound")
        fields.draw_row(QUESTION, "personal", "personal_diameter", "shared_diameter")
        fields.draw_row(QUESTION, "lipschitz", "alone_constant", "sampling_constant", "privacy_constant")
        fields.draw_row(QUESTION, "x_axis", "y_axis")
    with slots.notes:
        # Those of the training stand in a tab, which a refused question does not show.
        parameters: OwnersParameters | None = fields.build(QUESTION, unused=unused, optional=TRAINING_FIELDS)
    return parameters


def training_source() -> Records:
    """Return the training data."""
    records: Records = fields.draw(QUESTION, "train_on")
    return records


def training(given_owners: bool) -> bool:
    """Draw the fields of the training and its button; return True if the button was pressed.

    Args:
        given_owners: Whether the records have owners, so that their number is no choice.
    """
    columns = st.columns([3, 3, 2, 2, 3], vertical_alignment="bottom")
    with columns[0]:
        fields.draw(QUESTION, "train_owners", disabled=given_owners)
    for column, name in zip(columns[1:4], ("train_epsilons", "train_runs", "train_seed"), strict=True):
        with column:
            fields.draw(QUESTION, name)
    return columns[4].button(
        "Train", type=fields.main_button(), icon=":material/play_arrow:", key="owners_train", width="stretch"
    )


def show(parameters: OwnersParameters) -> None:
    """Draw the tab: inputs, *Train*, figure and sentences; below, the paper's tables and figure at its setting."""
    _show_training(parameters)
    st.divider()
    plots.show_paper_figure(FIGURES, QUESTION.key("paper_figure"))


def _show_training(parameters: OwnersParameters) -> None:
    st.markdown(
        "Multinomial logistic regression with a shared part W and a personal part V of every owner. *Joint privacy* is "
        "*share, then personalise*: W is trained with noise, then every owner fits V by itself, and nothing comes "
        "back. "
        f"**{trained.UNIT_NAMES[parameters.unit].capitalize()}** is protected, at the page's δ: neighbouring data sets "
        "differ in one unit whose records are zeroed, and how many records and units there are is public."
    )
    own_table = None
    if training_source() is Records.UPLOAD:
        own_table = upload.show_table()
        if own_table is None:
            return
    start = training(own_table is not None)
    key, study = QUESTION.key("training_job"), parameters.study
    records: Records | LabelledRecords = parameters.train_on
    if own_table is not None:
        records, study = own_table.records, replace(study, owners=(own_table.records.num_owners,))
    disclosure: Provenance = Disclosure.PUBLIC if own_table is None else own_table.dataset.provenance
    question = (parameters.train_on, "" if own_table is None else own_table.account, study, disclosure)
    try:
        check_records(study, records)
    except InvalidInput as refused:
        fields.show_problems(refused.problems)
        start = False
    if start:
        jobs.start(
            key, question, lambda progress, stop: run_study(study, records, progress, stop), heavy=True
        )
    running = jobs.watch(key, "Training")
    result: StudyResult | None = None
    if running and (partial_result := jobs.so_far_of(key)) is not None and partial_result[0] == question:
        result = partial_result[1]
    if not running and (done := jobs.result_of(key)) is not None:
        # Of another source they would stand under the wrong label.
        result = done[1] if done[0][:2] == question[:2] else None
        if result is not None and done[0] != question:
            st.caption(":material/history: These are for earlier settings; train again for the new ones.")
    if result is None or result.share_done == 0.0:
        if not running:
            st.caption("Nothing was trained yet. With these defaults it takes a few seconds.")
        return
    _results(result, running, disclosure, own_table is None)


def _results(result: StudyResult, running: bool, disclosure: Provenance, paper: bool) -> None:
    if not running and result.share_done < 1.0:
        st.caption(f":material/stop_circle: Stopped after {wording.percent(result.share_done)} of the fits.")
    figures.draw(trained.plot_accuracy(result, disclosure, paper))
    if running:
        return
    st.markdown("\n".join(f"- {sentence}" for sentence in trained.write_directions(result, paper)))
    st.dataframe(
        trained.tabulate_accuracy(result).style.format("{:.3f}", na_rep="not run"),
        alt="Test accuracy of every form against the number of owners",
    )
    st.caption(
        f"{wording.plain(result.name[:1].upper() + result.name[1:])}: {trained.write_settings(result, paper)}"
    )
    cards.label(disclosure)


def finished() -> TrainingCard | None:
    """Return the training that this session has run last; None while one runs, or where nothing was found."""
    done = jobs.result_of(QUESTION.key("training_job"))
    if done is None or done[1].share_done == 0.0:
        return None
    (records, _, _, disclosure), result = done
    return TrainingCard(result, disclosure, records is not Records.UPLOAD)


def content(answer: Answer, source: Source, trained: TrainingCard | None = None) -> Report:
    """Return the report of the page, with the results of training, if any."""

    def write_disclosure(code: Code, source: Source, public_only: bool) -> str:
        disclosure = code.write(answer.disclosure)
        return f"data = {disclosure}  # The settings hold the owners; this is what kind of numbers they are."

    solution, parameters, summary = answer.solution, answer.parameters, None
    hidden_fields = {
        *TRAINING_FIELDS,
        "owners",
        "records",
        "own_bound",
        "records_per_user",
        "x_axis",
        "y_axis",
    }
    field_names = [name for name in QUESTION.fields if name not in hidden_fields]
    if solution.is_of_data:
        field_names.append("own_bound")
    else:
        field_names, summary = ["owners", "records", *field_names], answer_answer.summarise_owners(solution)
        source = replace(source, disclosure=answer.disclosure, write_cell=write_disclosure)
    if parameters.unit is Unit.USER:
        field_names.append("records_per_user")
    if trained is not None and trained.is_private:
        # The bounds may be public: the file as a whole is not.
        source = replace(source, disclosure=trained.disclosure)
    report = report_content.of_answer(
        QUESTION, answer, source, setting_labels=QUESTION.get_labels(*field_names), summary=summary
    )
    if trained is None:
        return report
    return replace(
        report, answers=(*report.answers, (TITLE, trained.card)), figures=(*report.figures, trained.plot)
    )


def show_files(answer: Answer) -> None:
    """Offer the whole answer, and the choice as a file."""
    source, card = report_content.source(), finished()
    disclosure = answer.disclosure if card is None or not card.is_private else card.disclosure
    description = "**Choice** holds the question, every bound and every crossing. Label: "
    report_content.draw(
        "owners",
        disclosure,
        lambda: content(answer, source, card),
        answer.methods,
        f"{description}*{answer.disclosure.label}*.",
        files_disclosure=answer.disclosure,
    )
    if card is None:
        st.caption("Nothing was trained, so that the report holds the bounds alone: see the tab *Accuracy*.")
    else:
        st.caption(
            f"The report holds the accuracies of the last training, too. Their label: *{card.disclosure.label}*."
        )
