"""The answer on counts per group, computed once for a question and a data set."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset
from dpcore.total import groups
from dpcore.total.groups import GroupedChoice, GroupedErrors, GroupedProblem
from dpcore.total.parameters import pairs_of
from pages.total.answer import curve_bounds


@dataclass(frozen=True)
class GroupedView:
    """Counts per group.

    Attributes:
        problem: The question.
        choice: The best number of groups per user.
        caps: k of the curves, ascending, at most the number of groups.
        errors: Over ``caps``.
        surely: Interval that holds the expected total absolute error at the best k, where there are pairs.
        own: Error at the person's own k, or at the number of groups where that is less.
    """

    problem: GroupedProblem
    choice: GroupedChoice
    caps: FloatArray
    errors: GroupedErrors
    surely: tuple[float, float] | None
    own: GroupedErrors | None


def compute(dataset: Dataset, problem: GroupedProblem, own: int | None) -> GroupedView:
    """Solve and evaluate; nobody is in more groups than there are, so no k beyond them is looked at."""
    choice = groups.best_cap(problem)
    own = None if own is None else min(own, problem.num_groups)
    extra = [float(x) for x in (choice.max_groups, own) if x]
    caps = np.concatenate((np.rint(curve_bounds(problem.amounts)), extra))
    caps = np.unique(np.minimum(caps, problem.num_groups))
    surely = None
    if dataset.pairs is not None:
        surely = groups.error_range(problem, pairs_of(problem, dataset.pairs), choice.max_groups)
    return GroupedView(
        problem=problem,
        choice=choice,
        caps=caps,
        errors=groups.errors(problem, caps),
        surely=surely,
        own=None if own is None else groups.errors(problem, float(own)),
    )
