"""The tour on Start: what keeping all rows of one heavy user costs everybody."""

from __future__ import annotations

from dpcore.common import wording
from dpcore.dataset import Dataset
from dpcore.start.answer import solve
from dpcore.start.parameters import StartParameters
from dpcore.start.presets import UserPreset
from pages.shared.session import session
from pages.shared.session.tour import Step


def answer(data: Dataset, asked: StartParameters) -> str:
    """Noise and rows lost at the bound that is set, and at the best one."""
    view = solve(data, asked)
    bound, best = asked.bound or 1, view.best.max_total
    high, low = view.evaluate(bound), view.evaluate(best)
    noise, least, lost = (
        wording.percent(float(x) / view.num_rows) for x in (high.noise, low.noise, low.bias)
    )
    above = wording.counted(view.histogram.users_above(best), "user")
    return (
        f"At {wording.number(bound)} rows the noise is {noise} of a count, at {wording.number(best)} only {least}: "
        f"everybody's count pays. The lower bound loses {lost} of the rows, all of them rows of {above}."
    )


_BEGIN = StartParameters(1.0, bound=20, users=UserPreset.ONE_HEAVY)
STEP = Step(
    origin=session.Origin(session.DEFAULT_SAMPLE),
    parameters=_BEGIN,
    field="bound",
    goal=20_000,
    question="Of 2,001 invented users one has 20,000 rows, the others 20 each. What does keeping all rows cost "
    "everybody?",
    move="Drag the ring to 20,000 rows or beyond",
    enough=lambda bound: bound >= 10_000,
    answer=answer,
)
