"""The answer of Choose privately, computed once for a question and a data set."""

from __future__ import annotations

from dataclasses import dataclass

import numpy.typing as npt

from dpcore.contributions import ContributionHistogram, FloatArray
from dpcore.private_choice import comparison
from dpcore.private_choice.choice_regret import ChoiceRegret
from dpcore.private_choice.comparison import CopyCost, CopyCurves, DirectCost
from dpcore.private_choice.parameters import PrivateParameters, Wanted


@dataclass(frozen=True, eq=False)
class PrivateView:
    """Everything the page shows that depends on data and question.

    Attributes:
        parameters: The question.
        best: The number chosen in the clear, in rows per user.
        direct: Exact cost of the direct choice.
        copy: Simulated cost of choosing on a private copy.
        over_epsilon: Exact regret of the direct choice over its budget.
        over_users: The same over numbers of users.
        num_users: Users in the data.
        num_above: Users with more rows than the public maximum.
        added: Rows of one user added.
        moved: The number chosen in the clear with that user.
        shown: Whose number ``added`` and ``moved`` are about: where one user does not move the number asked for, that
            of a sum.
        without: The same number without that user.
    """

    parameters: PrivateParameters
    best: float
    direct: DirectCost
    copy: CopyCost
    over_epsilon: ChoiceRegret
    over_users: ChoiceRegret
    num_users: int
    num_above: int
    added: FloatArray
    moved: FloatArray
    shown: Wanted
    without: float

    @property
    def ranks(self) -> bool:
        """Whether costs are rank errors, not relative errors."""
        return self.parameters.wanted is Wanted.QUANTILE


def compute(histogram: ContributionHistogram, parameters: PrivateParameters) -> PrivateView:
    """Solve, simulate a few copies, and evaluate."""
    over_epsilon, over_users = comparison.direct_curves(parameters, histogram)
    shown = parameters
    added, moved, without = comparison.bound_with_one_more(parameters, histogram)
    if moved.min() == moved.max() == without:
        shown = PrivateParameters(parameters.epsilon, Wanted.SUM, largest=parameters.largest)
        added, moved, without = comparison.bound_with_one_more(shown, histogram)
    return PrivateView(
        parameters=parameters,
        best=parameters.condition.best_bound(histogram),
        direct=comparison.direct_cost(parameters.choice, histogram),
        copy=comparison.copy_cost(parameters, histogram),
        over_epsilon=over_epsilon,
        over_users=over_users,
        num_users=histogram.num_users,
        num_above=histogram.users_above(parameters.largest),
        added=added,
        moved=moved,
        shown=shown.wanted,
        without=without,
    )


def leak_columns(view: PrivateView) -> dict[str, npt.ArrayLike]:
    """What the picture of one added user draws, as columns."""
    return {"rows_of_added_user": view.added, "chosen_with": view.moved}


def curve_columns(view: PrivateView, curves: CopyCurves | None, over_users: bool) -> dict[str, npt.ArrayLike]:
    """What the regret figures draw, as columns."""
    found = view.over_users if over_users else view.over_epsilon
    axis = found.scales * view.num_users if over_users else found.epsilons
    copied = () if curves is None else curves.over_users if over_users else curves.over_epsilon
    factor = view.num_users if over_users else 1.0
    name = "users" if over_users else "epsilon_choice"
    median = found.median[:, 0] if over_users else found.median[0]
    high = found.percentile_95[:, 0] if over_users else found.percentile_95[0]
    return {
        "way": ["direct choice, exact"] * len(axis) + ["private copy, simulated"] * len(copied),
        name: [*axis, *(x * factor for x, _ in copied)],
        "median": [*median, *(c.median for _, c in copied)],
        "percentile_95": [*high, *(c.percentile_95 for _, c in copied)],
    }
