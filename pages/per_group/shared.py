"""The pair of bounds that serves two data sets best; the work of a job. No Streamlit, no plotting."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpcore.answer.against import SharedChoice, in_turn
from dpcore.common import wording
from dpcore.common.progress import Progress, ShouldStop
from dpcore.dataset import Dataset
from dpcore.per_group.answer.found import pairs_for
from dpcore.per_group.moments import pair_error
from dpcore.per_group.pair_of_bounds import PairChoice, best_pair
from dpcore.per_group.parameters import PerGroupParameters, PerGroupProblem, Statistic
from dpcore.per_group.passes import errors_by_groups
from dpcore.per_group.shared_pair import shared_pair

NOT_COMPARED = ("own_groups", "own_amount")
NOTHING = "nothing released"


def why_not(data: Sequence[Dataset], parameters: PerGroupParameters) -> str:
    """Why no pair is looked for; empty where one is."""
    if any(one.pairs is None for one in data):
        return "Both data sets must say who contributes to which group, pair by pair."
    if parameters.selection.private:
        return "Where groups are selected privately no pair for two data sets is looked for."
    if parameters.statistic is Statistic.MEAN:
        return "For means, nothing proves one pair best for two data sets; pin the answers of both instead."
    return ""


def shared_choice(
    data: Sequence[Dataset], parameters: PerGroupParameters, progress: Progress, should_stop: ShouldStop
) -> SharedChoice | None:
    """The pair with its proof, and both data sets at it and at their own best ones; None where it was stopped early.

    Raises:
        InvalidInput: The data do not fit the question.
    """
    problems = [
        PerGroupProblem(pairs_for(one.pairs, parameters), parameters) for one in data if one.pairs is not None
    ]
    parts = len(problems) + 1
    choices = [
        best_pair(problem, progress=in_turn(progress, at, parts), should_stop=should_stop)
        for at, problem in enumerate(problems)
    ]
    if should_stop():
        return None
    found = shared_pair(
        problems, choices, progress=in_turn(progress, parts - 1, parts), should_stop=should_stop
    )
    # Where nobody counts twice in a group, the main figure has the error over L0 in place of a map of both bounds.
    flat = problems[0].whole and float(problems[0].amounts.max()) <= 1.0
    curve = errors_by_groups(problems[1], 1.0) if flat else None
    pairs = [(found.max_groups, found.max_amount), *((one.max_groups, one.max_amount) for one in choices)]
    return SharedChoice(
        choice=_said(*pairs[0]),
        regrets=found.regrets,
        certificate=found.certificate,
        choices=tuple(_said(*pair) for pair in pairs),
        errors=tuple(
            tuple(_error(problem, choice, *pair) for pair in pairs)
            for problem, choice in zip(problems, choices, strict=True)
        ),
        upwards="Error" if flat else "Amount",
        best=None if flat or choices[1].releases_nothing else (float(pairs[2][0]), float(pairs[2][1])),
        shared=None if flat or found.max_groups == 0 else (float(found.max_groups), found.max_amount),
        curve=None if curve is None else (np.arange(1.0, curve.size + 1.0), curve),
    )


def _error(problem: PerGroupProblem, choice: PairChoice, groups: int, amount: float) -> float:
    return pair_error(problem, groups, amount) if groups else choice.error_of_nothing


def _said(groups: int, amount: float) -> str:
    return f"{wording.counted(groups, 'group')} × {wording.number(amount, 4)}" if groups else NOTHING
