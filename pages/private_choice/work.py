"""Simulated copies: a job beside the page. The curves before stand until the new ones are there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from dpcore.answer.stage import Stage
from dpcore.common.progress import ShouldStop
from dpcore.dataset import Dataset
from dpcore.private_choice import comparison
from dpcore.private_choice.answer import found as core
from dpcore.private_choice.answer.found import Copies
from dpcore.private_choice.comparison import CopyCurves
from dpcore.private_choice.parameters import PrivateParameters
from pages.private_choice.question import QUESTION
from pages.shared.fields import jobs
from pages.shared.fields.search import Search
from pages.shared.session import session

Simulated = TypeVar("Simulated", Copies, CopyCurves)
CURVES, USERS = Search[Copies](QUESTION.key("curves_job")), Search[CopyCurves](QUESTION.key("users_job"))


def over_epsilon(data: Dataset, parameters: PrivateParameters) -> Copies:
    """Costs of copies over budgets of the choice: those that are asked for, or as far as they are known."""
    histogram, (asked, before) = data.histogram, CURVES.last() or (None, Copies())
    same = (
        asked is not None and _curve_of(*asked) == _curve_of(data.digest, parameters) and not before.cancelled
    )
    curve = before.over_epsilon if same else ()
    _ask(CURVES, data, parameters, lambda tell, stop: core.simulate(histogram, parameters, curve, tell, stop))
    found = CURVES.found(lambda asked: bool(asked[0] == data.digest))
    if found.value is None:
        return Copies()
    return found.value if found.stage is Stage.FINAL else replace(found.value, at=None, earlier=not same)


def over_users(data: Dataset, parameters: PrivateParameters) -> Copies:
    """Return the same over numbers of users."""
    histogram = data.histogram

    def simulate(tell: jobs.Tell, stop: ShouldStop) -> CopyCurves:
        return comparison.copy_curves(parameters, histogram, tell, stop, epsilons=())

    _ask(USERS, data, parameters, simulate)
    found = USERS.found().value
    return Copies() if found is None else Copies(over_users=found.over_users, cancelled=found.cancelled)


def _ask(
    search: Search[Simulated],
    data: Dataset,
    parameters: PrivateParameters,
    simulate: Callable[[jobs.Tell, ShouldStop], Simulated],
) -> None:
    """Simulate beside the page what was not simulated before."""
    search.ask(
        (data.digest, parameters),
        simulate,
        lambda found: not found.cancelled,
        session.is_same_for_all(),
        light=True,
    )


def _curve_of(digest: str, parameters: PrivateParameters) -> tuple[str, PrivateParameters]:
    return digest, core.without_budget(parameters)
