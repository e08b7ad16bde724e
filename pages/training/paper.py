"""The paper's own learner on the page's data, behind a button: m² steps, so never by itself."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import streamlit as st

from dpcore.common import wording
from dpcore.common.progress import ShouldStop
from dpcore.training import bassily
from dpcore.training.answer import TrainingSolution
from dpcore.training.answer.plots import METHOD_NAMES
from dpcore.training.bassily import PaperTable, Reading, StepSize
from pages.shared.base import demo, tables
from pages.shared.card import cards
from pages.shared.fields import fields, jobs
from pages.training.question import QUESTION

JOB = QUESTION.key("paper_job")
EPSILONS = {30.0: "30", 40.0: "40", 50.0: "50"}
STEP_SIZES = {
    StepSize.PRINTED: "As printed",
    StepSize.WITHOUT_NOISE: "Free of the noise",
    StepSize.DIAMETER: "Twice that",
}
RUNS = 10
MOST_SERVED = 200
"""Users up to which a public demo makes all m² steps."""


def show(found: TrainingSolution) -> None:
    """What it is, the button, and the losses so far."""
    rows = found.table.experiment.train
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
    most = MOST_SERVED if demo.is_served() else bassily.MAX_USERS
    if rows.num_users > most:
        st.info(
            f"{wording.counted(rows.num_users, 'user')} take {rows.num_users**2:,} steps; at most "
            f"{wording.counted(most, 'user')} are run here.",
            icon=":material/info:",
        )
        return
    asked = (rows.digest, epsilon, step_size)
    job: jobs.Job | None = st.session_state.get(JOB)
    again = job is not None and job.question == asked
    st.button(
        "Run it again" if again else f"Run {rows.num_users**2:,} steps for each of 9 columns",
        key="training_paper_run",
        on_click=_start,
        args=(found, epsilon, step_size),
        icon=":material/play_arrow:",
        disabled=job is not None and job.running,
    )
    told = jobs.outcome(JOB, "Running", asked, live=True)
    if told is None:
        return
    (_, of_epsilon, of_step_size), table = told
    _show_table(found, table, of_epsilon, of_step_size)


def _start(found: TrainingSolution, epsilon: float, step_size: StepSize) -> None:
    rows, seed = found.table.experiment.train, found.parameters.seed

    def work(tell: jobs.Tell, should_stop: ShouldStop) -> PaperTable:
        return bassily.fill_paper_table(
            rows,
            epsilon,
            Reading(step_size),
            RUNS,
            seed,
            progress=tell,
            should_stop=should_stop,
            on_more=lambda more: tell(None, more),
        )

    jobs.start(JOB, (rows.digest, epsilon, step_size), work, heavy=True)


def lines(found: TrainingSolution, table: PaperTable) -> Mapping[str, list[object]]:
    """Return one line per column of the paper's table that is done."""
    done = table.finished_cells.tolist()
    largest = float(found.table.experiment.train.sizes.max())
    unbounded = [table.cells[at].bound == largest and at == len(table.cells) - 1 for at in done]
    return {
        "Method": [
            "No bound" if free else METHOD_NAMES[table.cells[at].method]
            for at, free in zip(done, unbounded, strict=True)
        ],
        "h": [table.cells[at].bound for at in done],
        "Loss": [float(table.mean[at]) for at in done],
        "Standard error": [float(table.standard_error[at]) for at in done],
    }


def _show_table(found: TrainingSolution, table: PaperTable, epsilon: float, step_size: StepSize) -> None:
    if not table.finished_cells.size:
        st.caption("No column is done yet.")
        return
    tables.show(
        pd.DataFrame(lines(found, table)),
        "Loss of the paper's learner for smooth weights, caps and no bound",
        "training_paper",
        dict.fromkeys(("Loss", "Standard error"), "%.3f"),
    )
    floor, guess = (
        wording.number(float(of[0, 0, 0, 0]))
        for of in (found.references.no_privacy, found.references.guessing)
    )
    st.caption(
        f"ε = {wording.entered(epsilon)}, δ = {wording.entered(bassily.DELTA)}, step size "
        f"{STEP_SIZES[step_size].lower()}; {RUNS} runs, last iterate, θ in [−10, 10]ᵈ, caps drawn anew in every run. "
        f"On the same rows {floor} without privacy, {guess} guessing. The paper's table 2 itself, on its own data, is "
        "in benchmarks/training.py."
    )
    cards.label(found.data.provenance)
