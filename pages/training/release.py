"""A DP release of a model, on request, counted: work beside the page, with progress and Stop.

The cost is noted before the work begins, and taken out again only if the work ended before there was any noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import streamlit as st

from dpcore.answer.section import Cached
from dpcore.common.checks import InputProblem, InvalidInput, describe_error, refuse
from dpcore.common.privacy import Ledger, ReleaseFacts, format_rounded_up
from dpcore.common.progress import ShouldStop
from dpcore.common.wording import format_count
from dpcore.report.content import Line
from dpcore.training import release as dp_release
from dpcore.training.account import Method
from dpcore.training.answer.solution import TrainingSolution, scale_rows
from dpcore.training.answer.words import describe_cell, describe_model
from dpcore.training.mechanism import Mechanism
from dpcore.training.release import Model, ReleaseRecord, StoppedError, compute_guarantee, train_once
from dpcore.training.rows import ClassifierRows
from dpcore.training.training_data import describe_positive
from pages.shared.base import cache
from pages.shared.card import releases
from pages.shared.card.releases import Releases
from pages.shared.fields import fields, jobs
from pages.shared.figures import figures
from pages.training.question import QUESTION

JOB_KEY = QUESTION.get_key("release_job")
"""Its question is the account of the rows, and the mark of its cost in the ledger."""


@dataclass(frozen=True)
class _StoppedTraining:
    """The result of a training that was stopped or failed; ``has_noise`` is True if noise had been drawn by then."""

    has_noise: bool
    input_problems: tuple[InputProblem, ...] = ()


def _get_mechanism(solution: TrainingSolution) -> Mechanism:
    """Return the mechanism of the page with all users in every step: a release samples none."""
    return replace(solution.parameters.mechanism, sampled=1.0)


def _get_question_key(solution: TrainingSolution) -> object:
    """Return all that a release made now would depend on, to recognise releases of the same question."""
    data, parameters = solution.data, solution.parameters
    return data.digest, parameters.positive_above, _get_mechanism(solution), parameters.release_cell


def get_store(solution: TrainingSolution) -> Releases:
    """Return the releases of the rows in use."""
    return Releases(QUESTION, solution.data.account)


def find_latest_model(solution: TrainingSolution) -> Model | None:
    """Return the last model that was released for the present question; None if there is none."""
    records, question_key = get_store(solution).stored_releases, _get_question_key(solution)
    return next((record.model for record in reversed(records) if record.question == question_key), None)


def collect_release() -> None:
    """Keep the model that was drawn beside the page; if that stopped before any noise, take its cost off the ledger."""
    (account, ledger_mark), job_result = jobs.find_result(JOB_KEY) or (("", ""), None)
    release_store = Releases(QUESTION, account)
    if isinstance(job_result, ReleaseRecord) and job_result not in release_store.stored_releases:
        release_store.stored_releases.append(job_result)
    if (
        isinstance(job_result, _StoppedTraining)
        and not job_result.has_noise
        and ledger_mark in release_store.ledger.marks
    ):
        release_store.take_back(ledger_mark)


def show_release(solution: TrainingSolution) -> None:
    """Draw the tab of the release: a description, the button, and the latest model with its label."""
    release_store, parameters = get_store(solution), solution.parameters
    collect_release()
    stored_records = release_store.stored_releases
    cost_text = f"ε = {format_rounded_up(parameters.epsilon)}, δ = {format_rounded_up(parameters.delta)}"
    st.markdown(
        f"A release trains on **all {format_count(solution.data.dataset.histogram.num_users, 'user')}** with "
        f"{describe_cell(parameters.release_cell)} (*More settings*), and spends **{cost_text}**. OpenDP draws the "
        "noise."
    )
    note_sentences = [
        "Everything else on this page is a simulation. ε does not cover a method, a bound or steps that were chosen by "
        "looking at these data."
    ]
    if parameters.bounded_by is Method.CAP:
        note_sentences.insert(0, "Rows are drawn once, for all steps; ε covers who keeps which rows.")
    if parameters.sampled < 1.0:
        note_sentences.insert(0, "All users take part in every step of a release.")
    st.caption(" ".join(note_sentences))
    if jobs.show_progress(JOB_KEY, "Training the model that is released"):
        return
    _show_stop(release_store.account)
    fields.draw_button(
        f"Train once{' more' if stored_records else ''}: spends {cost_text}",
        "training_release",
        "casino",
        _start_release,
        solution,
        is_main=not stored_records,
    )
    release_store.show_refusal()
    is_outdated = bool(stored_records) and stored_records[-1].question != _get_question_key(solution)
    release_store.show_account(stored_records[-1].model.facts if stored_records else None, is_outdated)
    if stored_records:
        _show_model(stored_records[-1])
        release_store.draw_file_button(
            "Released models (CSV)", lambda: dp_release.write_models(stored_records), "released-models"
        )


def _start_release(solution: TrainingSolution) -> None:
    """Note what a release costs, and start it; or keep why it is refused."""
    data, parameters = solution.data, solution.parameters
    labelled_rows, feature_scaling = data.dataset.table, data.scaling
    assert labelled_rows is not None
    assert feature_scaling is not None
    scaled_rows: ClassifierRows = cache.compute_cached(
        Cached(scale_rows, (data, parameters.positive_above), num_kept=4)
    )
    mechanism, method_cell, release_store = (
        _get_mechanism(solution),
        parameters.release_cell,
        get_store(solution),
    )
    question_key = _get_question_key(solution)
    positive_meaning = describe_positive(data, parameters.positive_above)
    collect_release()
    try:
        facts = compute_guarantee(scaled_rows, mechanism, method_cell)
    except InvalidInput as refused:
        release_store.store_refusal(refused)
        return

    def check_noted(charged_facts: ReleaseFacts) -> None:
        """Raise `InvalidInput` if a release would cost something else than was noted."""
        if charged_facts != facts:  # Asked before anything is drawn.
            raise refuse("the release would cost something else than was noted")

    def train_and_record(
        progress: jobs.Progress, should_stop: ShouldStop
    ) -> ReleaseRecord | _StoppedTraining:
        """Train once and return the record of the release, or how it was stopped or failed."""
        try:
            model = train_once(
                scaled_rows,
                mechanism,
                method_cell,
                charge=check_noted,
                progress=progress,
                should_stop=should_stop,
            )
        except StoppedError as stopped_error:
            return _StoppedTraining(stopped_error.was_drawn)
        except Exception as error:  # No second try of the same work: it would draw noise that nobody noted.
            return _StoppedTraining(True, describe_error(error))
        return ReleaseRecord(
            question_key, labelled_rows.feature_names, feature_scaling, model, positive_meaning
        )

    jobs.start_job(JOB_KEY, (data.account, release_store.charge_ahead(facts)), train_and_record)


def _show_stop(account: str) -> None:
    """Show how the last release of these rows ended, if it was stopped or failed."""
    (stopped_account, _), stopped_release = jobs.find_result(JOB_KEY) or (("", ""), None)
    if stopped_account != account or not isinstance(stopped_release, _StoppedTraining):
        return
    if stopped_release.input_problems:
        fields.show_problems(stopped_release.input_problems)
    elif stopped_release.has_noise:
        st.info("Stopped after noise was drawn: the cost is spent.", icon=":material/stop_circle:")
    else:
        st.info("Stopped before any noise was drawn: nothing was spent.", icon=":material/stop_circle:")


def _show_model(record: ReleaseRecord) -> None:
    """Show θ with the range of each feature, and how the model is applied."""
    columns_by_heading = {
        "Lowest": record.range_ends[0],
        "Highest": record.range_ends[1],
        "θ": record.model.theta,
    }
    figures.show_table(
        {"Feature": record.feature_names, **columns_by_heading},
        "The released model",
        "training_model",
        dict.fromkeys(columns_by_heading, "%.4g"),
    )
    st.caption(describe_model(record))


def list_model_lines(records: Sequence[ReleaseRecord], ledger: Ledger) -> tuple[Line, ...]:
    """List the latest release for the report, and all that was spent: releases that ended in an error, too."""
    return releases.list_release_lines(
        records,
        ledger,
        "these rows",
        lambda latest: (
            latest.raw_feature_names,
            latest.model.theta,
            f"Release {len(records)} of these rows; {describe_cell(latest.model.cell)}.",
            latest.model.facts,
        ),
    )
