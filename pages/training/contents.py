"""The contents of the page Training below its answer: tabs, a release, and the paper's learner.

One DP release of a model, on request, counted: work beside the page, with progress and Stop.

The cost is noted before the work begins, and taken out again only if the work ended before there was any noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from dpcore.answer.answer import Answer
from dpcore.common import wording
from dpcore.common.checks import InputProblem, InvalidInput, describe_error, refuse
from dpcore.common.privacy import Ledger, ReleaseFacts, format_rounded_up
from dpcore.common.progress import ShouldStop
from dpcore.data.column_names import escape_formula
from dpcore.report.content import Line, Report
from dpcore.report.script import Code, Source, write_table_cell
from dpcore.training import bassily, files
from dpcore.training.account import Method
from dpcore.training.answer import words
from dpcore.training.answer.plots import METHOD_NAMES
from dpcore.training.answer.solution import TrainingSolution
from dpcore.training.answer.words import describe_cell, write_methods
from dpcore.training.bassily import PaperTable, Reading, StepSize
from dpcore.training.experiment import Side
from dpcore.training.files import ReleaseRecord
from dpcore.training.mechanism import Mechanism
from dpcore.training.parameters import GENERATOR_FIELDS, DataSource
from dpcore.training.release import Model, StoppedError, state_guarantee, train_once
from dpcore.training.rows import ClassifierRows, Measure, ScoreUnit
from dpcore.training.training_data import describe_positive
from pages.shared.base import demo, tables
from pages.shared.card import cards
from pages.shared.card.releases import Releases, lost_sentence, released_lines, spent_lines
from pages.shared.fields import fields, jobs
from pages.shared.report import report_content
from pages.shared.screen import plots
from pages.training import cached, work
from pages.training.question import QUESTION

PAPER_JOB = QUESTION.key("paper_job")
EPSILONS = {30.0: "30", 40.0: "40", 50.0: "50"}
STEP_SIZES = {
    StepSize.PRINTED: "As printed",
    StepSize.WITHOUT_NOISE: "Free of the noise",
    StepSize.DIAMETER: "Twice that",
}
RUNS = 10
MOST_SERVED = 200
"""Users up to which a public demo makes all m² steps."""


def show_paper(solution: TrainingSolution) -> None:
    """Draw the tab of the paper's learner: a description, the button, and the losses so far."""
    rows = solution.table.experiment.train
    st.markdown(
        "**Replication, no protection.** The paper's appendix E.2 trains by algorithm 1 of Bassily, Smith and Thakurta "
        "(2014): one random user a step, $m^2$ steps, noise for each, the last iterate; ε = 30 to 50 with δ = 0.1. "
        "The paper does not print the algorithm, and its formulae are recalled here, not checked against their source. "
        "Here it runs on the users trained on of this page; the loss is that of their rows, all alike."
    )
    with fields.row():
        for name, first in (("paper_epsilon", 30.0), ("paper_steps", StepSize.PRINTED)):
            st.session_state.setdefault(QUESTION.key(name), first)
        epsilon: float = fields.choice("ε", EPSILONS, QUESTION.key("paper_epsilon"))
        step_size: StepSize = fields.choice(
            "Step size",
            STEP_SIZES,
            QUESTION.key("paper_steps"),
            "The paper does not say. As recalled: ‖C‖ / √(t (m² L² + d σ²)). Free of the noise: "
            "‖C‖ / √t, or twice that, which come nearer to the paper's table, and were picked after seeing it.",
        )
    max_users = MOST_SERVED if demo.is_served() else bassily.MAX_USERS
    if rows.num_users > max_users:
        st.info(
            f"{wording.counted(rows.num_users, 'user')} take {rows.num_users**2:,} steps; at most "
            f"{wording.counted(max_users, 'user')} are run here.",
            icon=":material/info:",
        )
        return
    question = (rows.digest, epsilon, step_size)
    job: jobs.Job | None = st.session_state.get(PAPER_JOB)
    is_repeat = job is not None and job.question == question
    st.button(
        "Run it again" if is_repeat else f"Run {rows.num_users**2:,} steps for each of 9 columns",
        key="training_paper_run",
        on_click=_start,
        args=(solution, epsilon, step_size),
        icon=":material/play_arrow:",
        disabled=job is not None and job.running,
    )
    outcome = jobs.outcome(PAPER_JOB, "Running", question, live=True)
    if outcome is None:
        return
    (_, of_epsilon, of_step_size), table = outcome
    _show_table(solution, table, of_epsilon, of_step_size)


def _start(solution: TrainingSolution, epsilon: float, step_size: StepSize) -> None:
    rows, seed = solution.table.experiment.train, solution.parameters.seed

    def work(progress: jobs.Progress, should_stop: ShouldStop) -> PaperTable:
        return bassily.fill_paper_table(
            rows,
            epsilon,
            Reading(step_size),
            RUNS,
            seed,
            progress=progress,
            should_stop=should_stop,
            on_more=lambda table: progress(None, table),
        )

    jobs.start(PAPER_JOB, (rows.digest, epsilon, step_size), work, heavy=True)


def lines(solution: TrainingSolution, table: PaperTable) -> Mapping[str, list[object]]:
    """Return one line per column of the paper's table that is done."""
    done = table.finished_cells.tolist()
    largest = float(solution.table.experiment.train.sizes.max())
    unbounded = [table.cells[i].bound == largest and i == len(table.cells) - 1 for i in done]
    return {
        "Method": [
            "No bound" if free else METHOD_NAMES[table.cells[i].method]
            for i, free in zip(done, unbounded, strict=True)
        ],
        "h": [table.cells[i].bound for i in done],
        "Loss": [float(table.mean[i]) for i in done],
        "Standard error": [float(table.standard_error[i]) for i in done],
    }


def _show_table(solution: TrainingSolution, table: PaperTable, epsilon: float, step_size: StepSize) -> None:
    if not table.finished_cells.size:
        st.caption("No column is done yet.")
        return
    tables.show(
        pd.DataFrame(lines(solution, table)),
        "Loss of the paper's learner for smooth weights, caps and no bound",
        "training_paper",
        dict.fromkeys(("Loss", "Standard error"), "%.3f"),
    )
    floor, guess = (
        wording.number(float(reference[0, 0, 0, 0]))
        for reference in (solution.references.no_privacy, solution.references.guessing)
    )
    st.caption(
        f"ε = {wording.entered(epsilon)}, δ = {wording.entered(bassily.DELTA)}, step size "
        f"{STEP_SIZES[step_size].lower()}; {RUNS} runs, last iterate, θ in [−10, 10]ᵈ, caps drawn anew in every run. "
        f"On the same rows {floor} without privacy, {guess} guessing. The paper's table 2 itself, on its own data, is "
        "in benchmarks/training.py."
    )
    cards.label(solution.data.provenance)


JOB = QUESTION.key("release_job")


@dataclass(frozen=True)
class _ReleaseRequest:
    """A release that was asked for: whose rows, and the mark of what was noted for it; empty once that is settled."""

    account: str
    mark: str


@dataclass(frozen=True)
class _Stopped:
    """A training that was stopped or failed; ``has_noise`` is True if noise had been drawn by then."""

    has_noise: bool
    problems: tuple[InputProblem, ...] = ()


def get_question(solution: TrainingSolution) -> object:
    """Return the question that a release would answer now."""
    return (solution.data.dataset.digest, solution.data.scaling, solution.parameters.positive_above,
            get_mechanism(solution), solution.parameters.release_cell)  # fmt: skip


def get_mechanism(solution: TrainingSolution) -> Mechanism:
    """Return the mechanism of the page with all users in every step: a release samples none."""
    return replace(solution.parameters.mechanism, sampled=1.0)


def show(solution: TrainingSolution) -> None:
    """Draw the tab of the release: a description, the button, and the latest model with its label."""
    store, parameters = releases(solution), solution.parameters
    collect()
    draws = store.draws
    cost = f"ε = {format_rounded_up(parameters.epsilon)}, δ = {format_rounded_up(parameters.delta)}"
    st.markdown(
        f"A release trains on **all {wording.counted(solution.data.dataset.histogram.num_users, 'user')}**, with "
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
    _say_stopped(solution)
    st.button(
        f"Train once more: spends another {cost}" if draws else f"Train once: spends {cost}",
        key="training_release",
        on_click=_draw,
        args=(solution,),
        type="secondary" if draws else fields.main_button(),
        icon=":material/casino:",
    )
    store.say_refused()
    store.show_account(
        draws[-1].model.facts if draws else None, bool(draws) and draws[-1].question != get_question(solution)
    )
    if draws:
        _show_model(draws[-1])
        store.file_button("Released models (CSV)", lambda: files.write_models(draws), "released-models")


def releases(solution: TrainingSolution) -> Releases:
    """Return the releases of the rows in use."""
    return Releases(QUESTION, solution.data.account)


def latest(solution: TrainingSolution) -> Model | None:
    """Return the last model that was released for the present question; None if there is none."""
    models = [draw.model for draw in releases(solution).draws if draw.question == get_question(solution)]
    return models[-1] if models else None


def _draw(solution: TrainingSolution) -> None:
    data, parameters = solution.data, solution.parameters
    table, scaling = data.dataset.table, data.scaling
    assert table is not None
    assert scaling is not None
    rows: ClassifierRows = cached.rows(data.digest, parameters.positive_above, data)
    mechanism, cell, store = get_mechanism(solution), parameters.release_cell, releases(solution)
    question, says = get_question(solution), describe_positive(data, parameters.positive_above)
    collect()
    try:
        facts = state_guarantee(rows, mechanism, cell)
    except InvalidInput as refused:
        store.refuse(refused)
        return

    def is_noted(charged: ReleaseFacts) -> None:
        if charged != facts:  # Asked before anything is drawn.
            raise refuse("the release would cost something else than was noted")

    def make(progress: jobs.Progress, should_stop: ShouldStop) -> ReleaseRecord | _Stopped:
        try:
            model = train_once(
                rows, mechanism, cell, charge=is_noted, progress=progress, should_stop=should_stop
            )
        except StoppedError as stopped:
            return _Stopped(stopped.was_drawn)
        except Exception as error:  # No second try of the same work: it would draw noise that nobody noted.
            return _Stopped(True, describe_error(error))
        return ReleaseRecord(question, table.feature_names, scaling, model, says)

    jobs.start(JOB, _ReleaseRequest(data.account, store.note(facts)), make)


def collect() -> None:
    """Keep the model that was drawn beside the page; if the work stopped before there was noise, nothing was spent."""
    question_and_result = jobs.result_of(JOB)
    if question_and_result is None or not question_and_result[0].mark:
        return
    question, result = question_and_result
    store = Releases(QUESTION, question.account)
    jobs.put(JOB, _ReleaseRequest(question.account, ""), result)
    if isinstance(result, ReleaseRecord):
        store.draws.append(result)
    elif isinstance(result, _Stopped) and not result.has_noise:
        store.take_back(question.mark)


def _say_stopped(solution: TrainingSolution) -> None:
    """Show how the last release of these rows ended, if it was stopped or failed."""
    question, stopped = jobs.result_of(JOB) or (None, None)
    if question is None or question.account != solution.data.account or not isinstance(stopped, _Stopped):
        return
    if stopped.problems:
        fields.show_problems(stopped.problems)
        return
    st.info(
        "Stopped after noise was drawn: what the release costs is spent."
        if stopped.has_noise
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
    last_bound = f" The last bound was {wording.counted(model.last_bound, 'row')}."
    return (
        f"Noise of {'the last' if model.cell.method is Method.FOLLOWED else 'a'} step: {size} rows on each coordinate "
        f"of the summed gradient.{last_bound if model.cell.method is Method.FOLLOWED else ''}"
    )


def show_behind(answer: Answer) -> None:
    """Draw how sure the answer is, its assumptions, its inputs, and every method at every bound."""
    cards.behind(answer)
    st.caption(work.what_is_used(answer.solution))
    st.markdown("**Every method at every bound**")
    tables.show(
        methods_table(answer.solution),
        "Loss, its interval, accuracy and the heaviest user's share, for every method at every bound",
        "training_methods",
        {
            **dict.fromkeys(("Loss", "Loss over users", "Loss, trained on"), "%.4g"),
            **dict.fromkeys(("± noise", "± users", "One run ±"), "%.2g"),
            **dict.fromkeys(("W", "Rows told right"), "%.3g %%"),
        },
    )
    st.caption(
        "On the users held out. ± is half of a 95 % interval of the mean; one run ± is the standard deviation of a "
        "single training, by which a release varies."
    )


def methods_table(solution: TrainingSolution) -> pd.DataFrame:
    """Return one line per method and bound."""
    cells = solution.table.experiment.cells
    losses, users = (
        solution.summarise(Measure.LOSS, ScoreUnit.ROWS),
        solution.summarise(Measure.LOSS, ScoreUnit.USERS),
    )
    trained = solution.summarise(Measure.LOSS, ScoreUnit.ROWS, Side.TRAINED)
    right = solution.summarise(Measure.ACCURACY, ScoreUnit.ROWS)
    return pd.DataFrame(
        {
            "Method": [METHOD_NAMES[cell.method] for cell in cells],
            "h": [np.nan if cell.method is Method.FOLLOWED else cell.reach for cell in cells],
            "W": 100.0 * solution.largest_weight,
            "Runs": losses.runs,
            "Loss": losses.mean,
            "± noise": losses.half_width,
            "± users": losses.users_half_width,
            "One run ±": losses.spread,
            "Loss over users": users.mean,
            "Loss, trained on": trained.mean,
            "Rows told right": 100.0 * right.mean,
        }
    )


def show_sides(answer: Answer) -> None:
    """Draw the means over rows and over users, trained on and held out."""
    st.markdown(
        "**Look at** the two colours: bounds bring the target nearer to a mean over users. Where heavy users differ "
        "from light ones the two means part, and you must know which of them you want. Dotted lines are for the users "
        "trained on. Which users are held out is drawn: another seed moves the solid lines."
    )
    plots.draw(answer.plots["training-sides"]())


def show_theory(solution: TrainingSolution) -> None:
    """Draw the bounds that theory calls for, beside the measured ones."""
    best = solution.best_by_method.get(Method.SMOOTH)
    rows = [
        ("Constants computed", solution.calibrated_bound, "from features and the descent's own constants"),
        ("Theorem 4, constant 1", solution.theorem_bound, "log d log n ε² / log⁴(m/δ)"),
    ]
    columns = {
        "Trade-off": [name for name, _, _ in rows],
        "A": [theory.trade_off for _, theory, _ in rows],
        "Best h, smooth weights": [theory.threshold.bound for _, theory, _ in rows],
        "Best cap": [theory.cap.bound for _, theory, _ in rows],
        "A is": [meaning for _, _, meaning in rows],
    }
    formats = dict.fromkeys(("A", "Best h, smooth weights"), "%.3g")
    tables.show(columns, "Trade-off, best bound and best cap by two theories", "training_theory", formats)
    measured = (
        ""
        if best is None
        else f" The runs have it at h = {wording.number(solution.get_cell(best.cell_index).reach)}."
    )
    st.markdown(
        f"Both minimise $(\\max_j W_j)^2 + A \\sum_i c_i^2$ over weights $c$, proved best.{measured} The first has "
        "the constants of plain descent with the steps and step size under *More settings*, and looks at features (no "
        "labels), which ε does not cover. The second is the paper's bound, whose constant it leaves open. Neither "
        "knows of clipping, of steps too few, or of heavy users who differ."
    )
    cards.label(solution.data.dataset.provenance)


def content(answer: Answer, draws: Sequence[ReleaseRecord], ledger: Ledger) -> Report:
    """Return the report of the page, with the latest of the releases in ``records``, if any."""

    def cell(code: Code, source: Source, public_only: bool) -> str:
        if data_source is not DataSource.UPLOAD:
            return "data = None  # The settings name the sample, or say how the data are generated."
        code.import_name("TrainingData", "dpcore.training.training_data")
        code.import_name("make_scaling", "dpcore.training.rows")
        return (
            f"{write_table_cell(code, source, public_only, data.design)}\n"
            f"ranges = {dict(data.ranges)!r}\n"
            "scaling = make_scaling(data, design, ranges)\n"
            "data = TrainingData(data, design=design, scaling=scaling, ranges=ranges)"
        )

    data, data_source = answer.solution.data, answer.parameters.source
    names = [name for name in QUESTION.fields if name not in GENERATOR_FIELDS]
    names += GENERATOR_FIELDS if data_source is DataSource.GENERATED else ()
    source = Source(data.dataset, needs_rows=True, write_cell=cell)
    report = report_content.of_answer(QUESTION, answer, source, setting_labels=QUESTION.get_labels(*names))
    return replace(report, releases=_list_release_lines(draws, ledger))


def _list_release_lines(draws: Sequence[ReleaseRecord], ledger: Ledger) -> tuple[Line, ...]:
    """Return the latest release, and all that was spent: releases that ended in an error, too."""
    spending = spent_lines(ledger, lost_sentence(ledger, len(draws), "these rows"))
    if not draws:
        return spending
    draw = draws[-1]
    note = f"Release {len(draws)} of these rows; {words.describe_cell(draw.model.cell)}."
    return released_lines(draw.names, draw.model.theta, note, draw.model.facts.label, spending)


def show_files(answer: Answer) -> None:
    """Offer the choice, the report and every run as files."""
    store, table = releases(answer.solution), answer.solution.table
    draws, ledger = tuple(store.draws), store.ledger
    disclosure = answer.disclosure
    report_content.draw(
        "training",
        disclosure,
        lambda: content(answer, draws, ledger),
        write_methods(answer.solution, latest(answer.solution)),
        "**Parts of it**",
        [("Every run (CSV)", "training_runs.csv", lambda: files.write_table(table, disclosure))],
    )
