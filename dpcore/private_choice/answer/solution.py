"""What the mathematics finds on choosing a number privately: put together once for a question and a data set."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dpcore.answer.against import BoundComparison
from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.contributions import ContributionHistogram, FloatArray
from dpcore.dataset import Dataset
from dpcore.private_choice import choice_regret, comparison, scores
from dpcore.private_choice.choice_regret import ChoiceRegret
from dpcore.private_choice.comparison import NO_COPIES, ChoiceCost, Copies, CostCurve
from dpcore.private_choice.fixed_point import checked_users
from dpcore.private_choice.parameters import PrivateParameters, Wanted


@dataclass(frozen=True, eq=False)
class PrivateSolution:
    """Everything that words and plots are made of.

    Attributes:
        parameters: The question.
        best: The number chosen in the clear, in rows per user.
        direct: Exact cost of the direct choice.
        over_epsilon: The same over budgets of the choice.
        num_users: Users in the data.
        num_above: Users with more rows than the public maximum.
        data: What it is computed from.
        copies: What private copies cost; the others are exact, and without simulation.
    """

    parameters: PrivateParameters
    best: float
    direct: ChoiceCost
    over_epsilon: ChoiceRegret
    num_users: int
    num_above: int
    data: Dataset
    copies: Copies = NO_COPIES

    @property
    def is_rank_error(self) -> bool:
        """Return True if costs are rank errors, not relative errors."""
        return self.parameters.wanted is Wanted.QUANTILE


def without_budget(parameters: PrivateParameters) -> PrivateParameters:
    """Return the question with the budget of the choice set to one value: what curves over that budget depend on."""
    return replace(parameters, epsilon_choice=PrivateParameters(1.0).epsilon_choice)


def compute(data: Dataset, parameters: PrivateParameters, over_epsilon: ChoiceRegret) -> PrivateSolution:
    """Solve, and evaluate at the budget of the choice; ``over_epsilon`` from `comparison.direct_over_epsilon`."""
    histogram = data.histogram
    return PrivateSolution(
        parameters=parameters,
        best=parameters.condition.best_bound(histogram),
        direct=comparison.direct_cost(parameters.choice, histogram),
        over_epsilon=over_epsilon,
        num_users=histogram.num_users,
        num_above=histogram.users_above(parameters.largest),
        data=data,
    )


def solve(data: Dataset, parameters: PrivateParameters) -> PrivateSolution:
    """Return what either way costs, copies simulated.

    Raises:
        InvalidInput: The data have more users than the mechanisms can hold.
    """
    checked_users(data.histogram)
    over_epsilon = comparison.direct_over_epsilon(without_budget(parameters), data.histogram)
    return replace(compute(data, parameters, over_epsilon), copies=simulate(data.histogram, parameters))


NOT_COMPARED = ("noise", "delta")


def against_epsilon(data: Dataset, parameters: PrivateParameters) -> BoundComparison | str:
    """Get the number chosen in the clear at any epsilon of the release, and what choosing it privately costs there."""
    if parameters.wanted is Wanted.QUANTILE:
        return (
            "A quantile of the rows per user is the same at every ε of a release. What its choice costs over the ε of "
            "the choice is the main figure."
        )
    histogram = data.histogram

    def at_epsilon(epsilon: float) -> PrivateParameters:
        return replace(parameters, epsilon=epsilon)

    def best(epsilon: float) -> tuple[float, float]:
        at_budget = at_epsilon(epsilon)
        extra = choice_regret.regret(at_budget.choice, histogram).mean
        return at_budget.condition.best_bound(histogram), float(extra[0, 0])

    def error(epsilon: float, bounds: FloatArray) -> FloatArray:
        condition = at_epsilon(epsilon).condition
        least_error = scores.best_error(condition, histogram)
        return np.asarray(condition.errors(histogram, np.asarray(bounds, dtype=np.float64)) / least_error)

    return BoundComparison(
        "Number chosen in the clear (rows per user)",
        "Expected extra error (share)",
        best,
        error,
        histogram.sizes,
        histogram.users,
        is_integer=parameters.wanted is not Wanted.SMOOTH,
        caption="The second curve is what the direct choice adds on average to the error of choosing in the clear, "
        "over the ε of the release and with the ε of the choice as entered: exact. The table has what a bound costs "
        "that is taken without a look at these data, which spends nothing; the one called best is chosen in the "
        "clear, and leaks.",
        candidate_error_note="Error (1 = chosen in the clear)",
    )


def simulate(
    histogram: ContributionHistogram,
    parameters: PrivateParameters,
    known_curve: CostCurve = (),
    progress: Progress = silent,
    should_stop: ShouldStop = never,
) -> Copies:
    """Costs of copies at and over budgets of the choice; ``known_curve``: the curve, where it was simulated before."""
    cost = comparison.copy_cost(parameters, histogram)
    if known_curve:
        return Copies(cost, known_curve)
    return replace(comparison.copy_curves(parameters, histogram, progress, should_stop, scales=()), at=cost)
