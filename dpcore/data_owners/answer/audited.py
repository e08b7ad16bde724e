"""What the audit of the paper's algorithm shows: its figure and its sentence."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpcore.answer import Axis, Bars, Level, Look, Plot, Scale
from dpcore.common import wording
from dpcore.common.privacy import Disclosure
from dpcore.common.progress import Progress, ShouldStop
from dpcore.contributions import FloatArray
from dpcore.data_owners.audit import AuditInstance, AuditResult, accounted_noise, halved, shared_outputs

INSTANCE = AuditInstance()
RUNS, SEED = 2_000, 1
BINS = 60


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


def plot(found: Audit) -> Plot:
    """The shared outputs under both neighbours."""
    every = np.r_[found.record, found.neighbour]
    edges = np.linspace(float(every.min()), float(every.max()), BINS + 1)
    counts = [np.histogram(side, edges)[0] for side in (found.record, found.neighbour)]
    return Plot(
        "owners-audit",
        "Shared outputs with a record, and with another in its place",
        f"The shared outputs of algorithm 1 with a record and with another in its place lie apart: {sentence(found)}",
        Axis(
            "average of the shared parameter, in units of D_U",
            "",
            (float(edges[0]), float(edges[-1])),
            Scale.LINEAR,
            number=".4f",
        ),
        Axis("runs", "", (0.0, 1.05 * float(np.max(counts))), Scale.LINEAR),
        {"from": edges[:-1], "to": edges[1:], "with_the_record": counts[0], "with_another": counts[1]},
        (
            Bars(
                "With the record",
                "middle",
                "with_the_record",
                Look.SMOOTH,
                gap=0.0,
                overlaid=True,
                opacity=0.6,
            ),
            Bars(
                "With another in its place",
                "middle",
                "with_another",
                Look.CAP,
                gap=0.0,
                overlaid=True,
                opacity=0.6,
            ),
            Level("Threshold", found.result.threshold, upright=True, dash="dash"),
        ),
        Disclosure.PUBLIC,
        {"middle": (edges[:-1] + edges[1:]) / 2.0},
        height=420,
    )


def sentence(found: Audit) -> str:
    """What the test shows, rounded to the safe side."""
    r = found.result
    shown = math.floor(100.0 * r.epsilon) / 100.0
    return (
        f"of {wording.counted(r.runs, 'run')} each, a test says *the record* in {wording.number(r.true)} with it and "
        f"in {wording.number(r.false)} without it, which shows ε ≥ {wording.entered(shown)} with "
        f"{wording.percent(r.confidence)} confidence, where {wording.entered(INSTANCE.epsilon)} is claimed."
    )
