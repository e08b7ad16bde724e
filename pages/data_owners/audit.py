"""The tab *Why not the paper's algorithm?* of Data owners: what its audit shows, and no more."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from dpcore.common import wording
from dpcore.common.privacy import Disclosure
from dpcore.common.progress import Progress, ShouldStop
from dpcore.contributions import FloatArray
from dpcore.data_owners.audit import AuditInstance, AuditResult, accounted_noise, halved, shared_outputs
from dpcore.report import charts
from pages.data_owners.question import QUESTION
from pages.shared import cards, fields, figures, jobs
from pages.shared.figures import Picture

INSTANCE = AuditInstance()
RUNS, SEED = 2_000, 1
BINS = 60
WORDS = """
**What a step of algorithm 1 gives away.** It moves the personal part of an owner by the record that it draws, without
noise, and takes later shared gradients of the owner's other records there. These are released. Joint privacy hides the
personal part from the others, not what the shared part learned through it; the noise of line 2 is that of a record that
enters only the step that draws it.

With the noise of algorithm 1, line 2 (accounted at one record in mn), joint privacy as claimed in theorem 3.1 fails in
the worst case: on a constructed convex, Lipschitz example (n = 2, m = 50, D_X = 5,000 D_U) an audit of the shared
output alone, with 20,000 runs of each of two neighbours, finds **ε ≥ 5.3** (95 % confidence, δ = 0.00001) **where 1 is
claimed**. At D_X = 100 D_U it finds nothing above the claim: this is a worst case, not a typical one. Lemma 3.2's
printed noise is m times larger and was not tested. This says nothing about the paper's experiments.

Nor does drawing one owner per step amplify privacy against the other owners: they see when they were not drawn.

**What is trained here instead:** *share, then personalise* (the shared part at a public personal part; then every
owner fits its own, and nothing comes back), the same with every owner in each step and the owner's whole gradient
clipped, and full privacy. Their noise is that of one Gaussian mechanism; audits of them stay below ε.
"""


@dataclass(frozen=True, eq=False)
class Audit:
    """Outputs of the two neighbours, and what a test of them shows."""

    record: FloatArray
    neighbour: FloatArray
    result: AuditResult


def run(progress: Progress, should_stop: ShouldStop) -> Audit | None:
    """The audit with fewer runs; None where it was stopped."""
    outputs = shared_outputs(INSTANCE, accounted_noise(INSTANCE), RUNS, SEED, progress, should_stop)
    return None if outputs is None else Audit(*outputs, halved(*outputs, INSTANCE.delta))


def picture(found: Audit) -> Picture:
    """The shared outputs under both neighbours."""
    every = np.r_[found.record, found.neighbour]
    edges = np.linspace(float(every.min()), float(every.max()), BINS + 1)
    counts = [np.histogram(side, edges)[0] for side in (found.record, found.neighbour)]
    columns = {"from": edges[:-1], "to": edges[1:], "with_the_record": counts[0], "with_another": counts[1]}
    return Picture(
        "owners-audit",
        "Shared outputs with a record, and with another in its place",
        lambda: _figure(found, columns),
        f"The shared outputs of algorithm 1 with a record and with another in its place lie apart: {sentence(found)}",
        columns,
        Disclosure.PUBLIC,
    )


def _figure(found: Audit, columns: dict[str, FloatArray]) -> go.Figure:
    most = float(max(columns["with_the_record"].max(), columns["with_another"].max()))
    limits = float(columns["from"][0]), float(columns["to"][-1])
    fig = charts.figure(
        charts.linear_axis("Average of the shared parameter, in units of D_U", limits),
        charts.linear_axis("Runs", (0.0, 1.05 * most)),
    )
    middle = (columns["from"] + columns["to"]) / 2.0
    for name, column, color in (
        ("With the record", "with_the_record", charts.SMOOTH["color"]),
        ("With another in its place", "with_another", charts.CAP["color"]),
    ):
        hover = f"{name}<br>%{{x:.4f}}: %{{y}} runs"
        charts.add_bars(fig, name, middle, columns[column], color, hover, opacity=0.6)
    fig.update_layout(barmode="overlay", bargap=0)
    fig.add_vline(x=found.result.threshold, line={"color": charts.NEUTRAL, "dash": "dash", "width": 1.5})
    return fig


def sentence(found: Audit) -> str:
    """What the test shows, rounded to the safe side."""
    r = found.result
    shown = math.floor(100.0 * r.epsilon) / 100.0
    return (
        f"of {wording.counted(r.runs, 'run')} each, a test says *the record* in {wording.number(r.true)} with it and "
        f"in {wording.number(r.false)} without it, which shows ε ≥ {wording.entered(shown)} with "
        f"{wording.percent(r.confidence)} confidence, where {wording.entered(INSTANCE.epsilon)} is claimed."
    )


def show() -> None:
    """The tab."""
    st.markdown(WORDS)
    key = QUESTION.key("audit_job")
    if st.button(
        "Run the audit", type=fields.main_button(), icon=":material/troubleshoot:", key="owners_audit_run"
    ):
        jobs.start(key, INSTANCE, run, heavy=True)
    if jobs.watch(key, "Running algorithm 1"):
        return
    done = jobs.result_of(key)
    if done is None or done[1] is None:
        st.caption(
            f"Here it runs with {RUNS:,} of each, in a few seconds, and so shows less; `python -m "
            "benchmarks.data_owners` has the whole."
        )
        return
    found: Audit = done[1]
    st.markdown(f"**Here:** {sentence(found)}")
    figures.show_picture(picture(found))
    st.caption(
        "The threshold, dashed, is chosen on the first half of the runs and judged on the other; probabilities are "
        f"bounded after Clopper and Pearson. The noise is the least that RDP accounting accepts: "
        f"{wording.number(accounted_noise(INSTANCE), 4)} L."
    )
    cards.label(Disclosure.PUBLIC)
