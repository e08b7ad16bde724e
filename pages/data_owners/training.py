"""The tab *Accuracy* of Data owners: training as work beside the page, its figure and sentences."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from dpcore.common import wording
from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Disclosure, Provenance
from dpcore.data_owners.answer import trained
from dpcore.data_owners.answer.trained import TrainingCard
from dpcore.data_owners.labelled import LabelledRecords
from dpcore.data_owners.paper import FIGURES
from dpcore.data_owners.parameters import OwnersParameters
from dpcore.data_owners.study import Records, StudyResult, check_records, run_study
from pages.data_owners import inputs, upload
from pages.data_owners.question import QUESTION
from pages.shared.card import cards
from pages.shared.fields import fields, jobs
from pages.shared.screen import paper, plots


def show(parameters: OwnersParameters) -> None:
    """The tab: inputs, Train, figure and sentences; below, the paper's tables and figure at its setting."""
    _show_training(parameters)
    st.divider()
    paper.show(FIGURES, QUESTION.key("paper_figure"))


def _show_training(parameters: OwnersParameters) -> None:
    st.markdown(
        "Multinomial logistic regression with a shared part W and a personal part V of every owner. *Joint privacy* is "
        "*share, then personalise*: W is trained with noise, then every owner fits V by itself, and nothing comes "
        "back. "
        f"**{trained.UNIT_NAMES[parameters.unit].capitalize()}** is protected, at the page's δ: neighbouring data sets "
        "differ in one unit whose records are zeroed, and how many records and units there are is public."
    )
    own = None
    if inputs.training_source() is Records.UPLOAD:
        own = upload.show_table()
        if own is None:
            return
    start = inputs.training(own is not None)
    key, study = QUESTION.key("training_job"), parameters.study
    records: Records | LabelledRecords = parameters.train_on
    if own is not None:
        records, study = own.records, replace(study, owners=(own.records.num_owners,))
    disclosure: Provenance = Disclosure.PUBLIC if own is None else own.dataset.provenance
    asked = (parameters.train_on, "" if own is None else own.account, study, disclosure)
    try:
        check_records(study, records)
    except InvalidInput as refused:
        fields.say(refused.problems)
        start = False
    if start:
        jobs.start(key, asked, lambda tell, stop: run_study(study, records, tell, stop), heavy=True)
    running = jobs.watch(key, "Training")
    found: StudyResult | None = None
    if running and (now := jobs.so_far_of(key)) is not None and now[0] == asked:
        found = now[1]
    if not running and (done := jobs.result_of(key)) is not None:
        # Of another source they would stand under the wrong label.
        found = done[1] if done[0][:2] == asked[:2] else None
        if found is not None and done[0] != asked:
            st.caption(":material/history: These are for earlier settings; train again for the new ones.")
    if found is None or found.share_done == 0.0:
        if not running:
            st.caption("Nothing was trained yet. With these defaults it takes a few seconds.")
        return
    _results(found, running, disclosure, own is None)


def _results(found: StudyResult, running: bool, disclosure: Provenance, paper: bool) -> None:
    if not running and found.share_done < 1.0:
        st.caption(f":material/stop_circle: Stopped after {wording.percent(found.share_done)} of the fits.")
    plots.draw(trained.plot_accuracy(found, disclosure, paper))
    if running:
        return
    st.markdown("\n".join(f"- {sentence}" for sentence in trained.write_directions(found, paper)))
    st.dataframe(
        trained.tabulate_accuracy(found).style.format("{:.3f}", na_rep="not run"),
        alt="Test accuracy of every form against the number of owners",
    )
    st.caption(
        f"{wording.plain(found.name[:1].upper() + found.name[1:])}: {trained.write_settings(found, paper)}"
    )
    cards.label(disclosure)


def finished() -> TrainingCard | None:
    """Return the training that this session has run last; None while one runs, or where nothing was found."""
    done = jobs.result_of(QUESTION.key("training_job"))
    if done is None or done[1].share_done == 0.0:
        return None
    (records, _, _, disclosure), found = done
    return TrainingCard(found, disclosure, records is not Records.UPLOAD)
