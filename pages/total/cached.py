"""What a rerun of this page repeats, cached by content; see `pages.shared.base.cache`."""

from __future__ import annotations

from typing import Any

from dpcore.answer import Answer
from dpcore.dataset import Dataset
from dpcore.total import TotalProblem
from dpcore.total import answer as core
from dpcore.total.answer import SignedSolution, TotalSolution, strategies
from dpcore.total.parameters import Summed, TotalParameters, UserTotals, user_totals
from dpcore.total.strategies import StrategyCurves
from pages.shared.base.cache import cached
from pages.shared.compare.comparisons import plain_question


@cached(max_entries=8)
def held_totals(digest: str, summed: Summed, _data: Dataset) -> UserTotals:
    """Return what every user adds to the sum."""
    return user_totals(_data, summed)


@cached(max_entries=16)
def _found(digest: str, parameters: TotalParameters, _data: Dataset) -> TotalSolution | SignedSolution:
    return core.solve(_data, parameters, held_totals(digest, parameters.summed, _data))


def total_answer(data: Dataset, asked: TotalParameters) -> Answer:
    """Return the answer; a bound of the person's own, say, moves a mark only and is no part of what is
    kept.
    """
    found = _found(data.digest, plain_question(asked, core, asked.epsilon), data)
    return core.build_answer(data, asked, found)


def strategy_curves(data: Dataset, asked: TotalParameters, problem: TotalProblem) -> StrategyCurves:
    """Relative error of four strategies over epsilon; it does not depend on the one that is asked for."""
    key = (asked.summed, asked.mechanism, asked.delta, asked.measure, asked.own_share)
    return _strategy_curves(data.digest, key, asked.own_share, problem)


@cached(max_entries=16)
def _strategy_curves(digest: str, key: Any, share: float, _problem: TotalProblem) -> StrategyCurves:
    return strategies.compute_curves(_problem, share)
