"""The tour on Learning under a bound: why users who differ call for a higher cap."""

from __future__ import annotations

from dataclasses import replace

from dpcore.common import wording
from dpcore.dataset import Dataset
from dpcore.learning import LearningParameters, optimal_cap
from dpcore.learning.error_bound import LearningCap
from pages.shared.session import session
from pages.shared.session.tour import Step


def best(data: Dataset, asked: LearningParameters) -> LearningCap:
    """Return the best cap."""
    return optimal_cap.best_cap(asked.problem(data.histogram))


def answer(data: Dataset, asked: LearningParameters) -> str:
    """Return the best cap where users differ as is set, and where they are alike."""
    now, first = best(data, asked), best(data, replace(asked, loss_variance=_BEGIN.loss_variance))
    change = now.max_contributions - first.max_contributions
    rises = "It rises" if change > 0 else "It falls" if change < 0 else "It stays"
    rows = wording.counted(now.max_contributions, "row")
    return (
        f"**{rises}**, from {wording.number(first.max_contributions)} to {rows}. A bound changes the mix of users that "
        f"the model sees; where they differ, a better mix is worth noise of {wording.number(now.privacy)} instead of "
        f"{wording.number(first.privacy)}."
    )


_BEGIN = LearningParameters(1.0, loss_variance=0.0)
STEP = Step(
    origin=session.Origin("online-retail-lines"),
    parameters=_BEGIN,
    field="loss_variance",
    goal=0.25,
    is_enough=lambda variance: variance >= 0.05,
    question="While users are alike, a low bound costs little. Must it rise or fall where they differ?",
    move="Move Var(H) from 0 to its right end, 0.25",
    answer=answer,
)
