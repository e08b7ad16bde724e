"""One DP release of a model, on request, counted: work beside the page, with progress and Stop.

What it costs is noted before the work begins, and taken out again only where it ended before there was any noise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from dpcore.common import wording
from dpcore.common.checks import InputProblem, InvalidInput, describe_error, refuse
from dpcore.common.privacy import ReleaseFacts, format_rounded_up
from dpcore.common.progress import ShouldStop
from dpcore.data.column_names import escape_formula
from dpcore.training import files
from dpcore.training.account import Method
from dpcore.training.answer import TrainingSolution
from dpcore.training.answer.words import describe_cell
from dpcore.training.files import ReleaseRecord
from dpcore.training.mechanism import Mechanism
from dpcore.training.release import Model, StoppedError, state_guarantee, train_once
from dpcore.training.rows import ClassifierRows
from dpcore.training.training_data import describe_positive
from pages.shared.base import tables
from pages.shared.card.releases import Releases
from pages.shared.fields import fields, jobs
from pages.training import cached
from pages.training.question import QUESTION

JOB = QUESTION.key("release_job")


@dataclass(frozen=True)
class _Asked:
    """A release that was asked for: whose rows, and the mark of what was noted for it; empty once that is settled."""

    account: str
    mark: str


@dataclass(frozen=True)
class _Stopped:
    """It was stopped, or failed, before or after noise was drawn."""

    drawn: bool
    problems: tuple[InputProblem, ...] = ()


def asked(found: TrainingSolution) -> object:
    """Return what a release would answer now."""
    return (found.data.dataset.digest, found.data.scaling, found.parameters.positive_above,
            mechanism_of(found), found.parameters.release_cell)  # fmt: skip


def mechanism_of(found: TrainingSolution) -> Mechanism:
    """That of the page, with all users in every step: a release samples none."""
    return replace(found.parameters.mechanism, sampled=1.0)


def show(found: TrainingSolution) -> None:
    """What a release would be, the button, and the latest one with its label."""
    of, parameters = releases(found), found.parameters
    collect()
    made = of.made
    cost = f"ε = {format_rounded_up(parameters.epsilon)}, δ = {format_rounded_up(parameters.delta)}"
    st.markdown(
        f"A release trains on **all {wording.counted(found.data.dataset.histogram.num_users, 'user')}**, with "
        f"{describe_cell(parameters.release_cell)} (*More settings*). What users contribute is rounded onto a "
        "public grid "
        f"before it is added up, and OpenDP's discrete Gaussian noise covers all of it. It spends **{cost}**. "
        "The page keeps it and draws again only when you ask."
    )
    st.caption(
        ("All users take part in every step of a release. " if parameters.sampled < 1.0 else "")
        + (
            "Rows are drawn once, for all steps. Who keeps which rows is part of what ε covers, and is not shown. "
            if parameters.bounded_by is Method.CAP
            else ""
        )
        + "Everything else on this page is a simulation with NumPy's noise of the same size, and no release. ε does "
        "not cover a method, a bound, steps or a step size that were chosen by looking at these data."
    )
    if jobs.watch(JOB, "Training the model that is released"):
        return
    _say_stopped(found)
    st.button(
        f"Train once more: spends another {cost}" if made else f"Train once: spends {cost}",
        key="training_release",
        on_click=_draw,
        args=(found,),
        type="secondary" if made else fields.main_button(),
        icon=":material/casino:",
    )
    of.say_refused()
    of.show_account(made[-1].model.facts if made else None, bool(made) and made[-1].question != asked(found))
    if made:
        _show_model(made[-1])
        of.file_button("Released models (CSV)", lambda: files.write_models(made), "released-models")


def releases(found: TrainingSolution) -> Releases:
    """Those of the rows in use."""
    return Releases(QUESTION, found.data.account)


def latest(found: TrainingSolution) -> Model | None:
    """Return the last model that was released for what is asked now; None where there is none."""
    made = [draw.model for draw in releases(found).made if draw.question == asked(found)]
    return made[-1] if made else None


def _draw(found: TrainingSolution) -> None:
    data, parameters = found.data, found.parameters
    table, scaling = data.dataset.table, data.scaling
    assert table is not None
    assert scaling is not None
    rows: ClassifierRows = cached.rows(data.digest, parameters.positive_above, data)
    mechanism, cell, of = mechanism_of(found), parameters.release_cell, releases(found)
    question, says = asked(found), describe_positive(data, parameters.positive_above)
    collect()
    try:
        facts = state_guarantee(rows, mechanism, cell)
    except InvalidInput as refused:
        of.refuse(refused)
        return

    def is_noted(charged: ReleaseFacts) -> None:
        if charged != facts:  # Asked before anything is drawn.
            raise refuse("the release would cost something else than was noted")

    def make(tell: jobs.Tell, should_stop: ShouldStop) -> ReleaseRecord | _Stopped:
        try:
            model = train_once(rows, mechanism, cell, charge=is_noted, progress=tell, should_stop=should_stop)
        except StoppedError as stopped:
            return _Stopped(stopped.was_drawn)
        except Exception as error:  # No second try of the same work: it would draw noise that nobody noted.
            return _Stopped(True, describe_error(error))
        return ReleaseRecord(question, table.feature_names, scaling, model, says)

    jobs.start(JOB, _Asked(data.account, of.note(facts)), make)


def collect() -> None:
    """Keep what the work beside the page has drawn; where it was stopped before there was noise, nothing was spent."""
    held = jobs.result_of(JOB)
    if held is None or not held[0].mark:
        return
    question, result = held
    of = Releases(QUESTION, question.account)
    jobs.put(JOB, _Asked(question.account, ""), result)
    if isinstance(result, ReleaseRecord):
        of.made.append(result)
    elif isinstance(result, _Stopped) and not result.drawn:
        of.take_back(question.mark)


def _say_stopped(found: TrainingSolution) -> None:
    """How the last release of these rows ended, where it was stopped or failed."""
    question, stopped = jobs.result_of(JOB) or (None, None)
    if question is None or question.account != found.data.account or not isinstance(stopped, _Stopped):
        return
    if stopped.problems:
        fields.say(stopped.problems)
        return
    st.info(
        "Stopped after noise was drawn: what the release costs is spent."
        if stopped.drawn
        else "Stopped before any noise was drawn: nothing was spent.",
        icon=":material/stop_circle:",
    )


def _show_model(draw: ReleaseRecord) -> None:
    columns: dict[str, Any] = {
        "Feature": [escape_formula(name) for name in draw.names],
        "Lowest": [np.nan if pair is None else pair[0] for pair in draw.scaling.ranges],
        "Highest": [np.nan if pair is None else pair[1] for pair in draw.scaling.ranges],
        "θ": draw.model.theta,
    }
    tables.show(
        pd.DataFrame(columns),
        "The released model: range and coefficient of each feature",
        "training_model",
        dict.fromkeys([name for name in columns if name != "Feature"], "%.4g"),
    )
    st.caption(
        f"A feature with a range is clipped to it and mapped to [−1, 1]; a row longer than "
        f"{wording.number(draw.scaling.norm)} is shortened to that, then all are divided by it. A score θ·x above 0 "
        f"says **{wording.plain(draw.positive_meaning, 120)}**. Trained with "
        f"{describe_cell(draw.model.cell)}. {_noise_of(draw)}"
    )


def _noise_of(draw: ReleaseRecord) -> str:
    model = draw.model
    size = f"standard deviation {wording.number(model.noise)}"
    if model.cell.method is Method.OUTPUT:
        return f"Noise: {size} on each coordinate of θ."
    last = f" The last bound was {wording.counted(model.last_bound, 'row')}."
    return (
        f"Noise of {'the last' if model.cell.method is Method.FOLLOWED else 'a'} step: {size} rows on each coordinate "
        f"of the summed gradient.{last if model.cell.method is Method.FOLLOWED else ''}"
    )
