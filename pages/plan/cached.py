"""What a rerun of this page repeats, cached by content; see `pages.shared.base.cache`."""

from __future__ import annotations

from dataclasses import replace

from dpcore.answer import Answer
from dpcore.dataset import Dataset
from dpcore.plan.answer import PlanSolution, build_answer, solve
from dpcore.plan.answer.noises import NoiseComparison, compare_noises
from dpcore.plan.one_truncation import OneTruncation, find_common_bound
from dpcore.plan.parameters import Objective, PlanParameters
from dpcore.plan.table import PlannedLine, plan_lines
from pages.shared.base.cache import cached


@cached(max_entries=8)
def _planned(digest: str, asked: PlanParameters, _data: Dataset) -> tuple[PlannedLine, ...]:
    return plan_lines(_data, asked)


@cached(max_entries=16)
def _found(digest: str, asked: PlanParameters, _data: Dataset) -> PlanSolution:
    # The curves are the same at every epsilon.
    curves = _planned(digest, replace(asked, epsilon=1.0, objective=Objective.SUM), _data)
    return solve(_data, asked, curves)


def plan_answer(data: Dataset, asked: PlanParameters) -> Answer:
    """Return the answer.

    Raises:
        InvalidInput: The data lack what a line needs, or no epsilon is enough for all wanted errors.
    """
    return build_answer(data, asked, _found(data.digest, asked, data))


@cached(max_entries=8)
def one_truncation(digest: str, asked: PlanParameters, _found: PlanSolution, _data: Dataset) -> OneTruncation:
    """Return the best single bound on rows for all lines.

    Raises:
        InvalidInput: A line whose error under a common truncation is not known.
    """
    return find_common_bound(_data, asked, _found.planned, _found.budget)


@cached(max_entries=8)
def both_noises(digest: str, asked: PlanParameters, _found: PlanSolution, _data: Dataset) -> NoiseComparison:
    """Return the plan beside the best one with the other noise."""
    return compare_noises(_data, asked, _found)
