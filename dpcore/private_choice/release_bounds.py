"""Bounds that are selected privately for releases of other pages.

The bounds are those of a quantile, of a learner, and of a column's sum, row by row. Each is one
`dpcore.private_choice.choice.ChoiceProblem`, so that one mechanism draws them all. The proofs here say that a
question's best bound is where a public target meets a query that one user moves by a known number of users.

A quantile of values whose counts are private. Its best bound h from counts minimises, of the paper's bound on the
rank error (`dpcore.quantile.optimal_bound.RankBound`), W^2 + A sum c_i^2 with W = h / n_h: (*) of
`dpcore.common.weights`, and hence with the conditions of a mean (`dpcore.private_choice.scores`). A = e^2 ln(2 n /
gamma) / (8 ln^2(1 / (gamma beta))), four times that for the population's quantile, where e is epsilon of one quantile
over max(q, 1 - q). n alone is private: a public number stands in for it (`dpcore.quantile.parameters.ASSUMED_ROWS`),
for the page's own bound too. So A is public. As 2 A / epsilon^2 it is .49 for a median, of which a mean has at most
.25.
- *Smooth weights.* h is best where sum_l (1 - h / s_l)_+ = h / A. With A public only the left side depends on the data,
  and each user adds a number in [0, 1]. So a user who is added or removed moves the distance by at most 1. A user who
  replaces another does too, as two numbers in [0, 1] differ by at most 1.
- *A cap.* h is best where k a = q (a + q), k = 2 h / A: a set of states (a, q) that does not depend on the data. The
  score is how many users must come or go, parts of users allowed, until the state is in it. Let D' be D with one user
  more. From D' one can go to D at the cost of 1, and from there on: d(D') <= 1 + d(D), and likewise d(D) <= 1 +
  d(D'). Replacing is going and coming: 2. These two hold for every set, whatever A; the number of rows
  of a user does not enter.

A learner. See *A learner under a cap* in `dpcore.private_choice.scores`: #{s_l > T} against a target of T and public
numbers alone, N among them. A user adds 0 or 1: 1 under either relation.

A sum of a column whose file holds it row by row. T is best where as many users' totals lie above it as the noise is
large per unit of T, as for a count. Each total becomes a whole number of a public unit, rounded up, by itself: what a
user adds to #{x_l > T} stays 0 or 1, under either relation. (If users are too many, means of totals in bins replace the
totals. One user may move them for all users of a bin, so no bound is drawn from these.)

Source: Epasto et al. 2020, section 4 and appendix B; Amin et al. 2019, equation 6 and theorem 1. Conditions,
distances and the approximation for a learner are ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpcore.answer.answer import ReleaseSetting
from dpcore.common.checks import refuse
from dpcore.common.privacy import Ledger, Neighbours, ReleaseFacts, format_rounded_up
from dpcore.common.programs import find_noise
from dpcore.contributions import ContributionHistogram, FloatArray
from dpcore.learning.optimal_cap import BIAS_FACTOR_IN_THEOREM_1
from dpcore.learning.parameters import LearningParameters
from dpcore.per_group.private_pair import PrivatePairProblem
from dpcore.private_choice.choice import MECHANISM_NAME, ChoiceProblem, SmallFirst
from dpcore.private_choice.parameters import (
    DEFAULT_LARGEST_BOUND,
    NumberKind,
    NumberPair,
    OtherBound,
    PrivateParameters,
)
from dpcore.private_choice.private_range import RangeProblem
from dpcore.private_choice.scores import CapMean, RankedSum, RisingPrice, SmoothMean
from dpcore.private_choice.table_scores import Condition
from dpcore.quantile.parameters import QuantileParameters
from dpcore.quantile.rows import WeightKind

UNITS_OF_LARGEST_TOTAL = 1e4
"""A total's largest is at least so many of its units: bounds from one unit on are drawn to 2 % or better."""


@dataclass(frozen=True)
class SelectionRequest:
    """A private selection for one release; all of it public.

    Attributes:
        number: What is selected.
        problem: Candidates, distances, sensitivity and prior of the mechanism, with the budget of the selection.
        release_epsilon: Budget of the release that will use what is selected.
        release_delta: Delta of that release; None for pure epsilon-DP.
        setting: The release; None if the number bounds none, and for pairs and ranges.
        public_rows: Of a learner, the public number of rows, N.
        total_epsilon: Epsilon of everything on the data, of which both budgets are shares; None if they add up to no
            total that was entered.
        spent_epsilon: Epsilon of that total that earlier releases have taken.
    """

    number: NumberKind
    problem: ChoiceProblem | PrivatePairProblem | RangeProblem
    release_epsilon: float
    release_delta: float | None = None
    setting: ReleaseSetting | None = None
    public_rows: int | None = None
    total_epsilon: float | None = None
    spent_epsilon: float = 0.0

    @classmethod
    def from_parameters(cls, parameters: PrivateParameters, ledger: Ledger | None = None) -> SelectionRequest:
        """Build the request of the direct choice; a total epsilon, less what the ledger has spent, is divided first."""
        total_epsilon, spent_epsilon = None, 0.0
        if (epsilon_shares := parameters.find_shares(ledger)) is not None:
            total_epsilon, spent_epsilon = parameters.epsilon, epsilon_shares.spent_epsilon
        divided_parameters = parameters.divide(ledger)
        request = cls(
            divided_parameters.purpose,
            divided_parameters.choice,
            divided_parameters.epsilon,
            divided_parameters.release_delta,
            divided_parameters.setting,
        )
        return replace(request, total_epsilon=total_epsilon, spent_epsilon=spent_epsilon)

    @classmethod
    def from_pair_problem(cls, problem: PrivatePairProblem) -> SelectionRequest:
        """Build the request for a pair of bounds per group."""
        return cls(NumberPair.PAIR, problem, problem.parameters.epsilon, problem.parameters.delta)

    @property
    def facts(self) -> ReleaseFacts:
        """Return the guarantee of the selection."""
        return ReleaseFacts(self.problem.epsilon, 0.0, self.problem.neighbours, MECHANISM_NAME)

    @property
    def release_facts(self) -> ReleaseFacts:
        """Return the guarantee of the release, for neighbours that add or remove one user."""
        neighbours = Neighbours.ADD_OR_REMOVE_USER
        return ReleaseFacts(self.release_epsilon, self.release_delta or 0.0, neighbours, "release")

    def describe_budget(self) -> str:
        """Write how the budgets of draw and release add up, without a full stop."""
        if self.total_epsilon is None:
            return "ε of the draw and ε of the release add up"
        total_draw_and_release = self.total_epsilon, self.problem.epsilon, self.release_epsilon
        total_text, selection_text, release_text = map(format_rounded_up, total_draw_and_release)
        spent_before_clause = (
            f"{format_rounded_up(self.spent_epsilon)} was spent; " if self.spent_epsilon else ""
        )
        division_clause = (
            f"{spent_before_clause}a draw takes {selection_text}; {release_text} is left for the release"
        )
        budget_clause = f"Of ε = {total_text} in all, {division_clause}"
        release_counts_once = self.problem.neighbours is Neighbours.ADD_OR_REMOVE_USER
        return budget_clause if release_counts_once else f"{budget_clause}, which counts twice"


def _build_request(
    number_kind: OtherBound,
    setting: ReleaseSetting,
    condition: Condition,
    epsilon: float,
    largest_bound: int,
    unit_size: float = 1.0,
    num_rows: int | None = None,
) -> SelectionRequest:
    """Build the request for a bound of another page, for neighbours that add or remove one user."""
    # Users come or go, as in all releases that ask for such a bound.
    problem = ChoiceProblem(condition, epsilon, int(largest_bound), prior=SmallFirst(), unit=unit_size)
    return SelectionRequest(number_kind, problem, setting.epsilon, setting.delta, setting, num_rows)


def request_quantile_bound(
    parameters: QuantileParameters,
    setting: ReleaseSetting,
    epsilon_choice: float,
    largest_bound: int = DEFAULT_LARGEST_BOUND,
) -> SelectionRequest | None:
    """Build the request for a quantile's bound that is best by counts; None if counts are public.

    Raises:
        InvalidInput: A parameter is out of its range, or one row per user is best whatever the data.
    """
    if not parameters.protects_users:
        return None
    is_smooth, trade_off = parameters.weight_kind is WeightKind.SMOOTH, parameters.public_trade_off
    number_kind = OtherBound.QUANTILE_SMOOTH if is_smooth else OtherBound.QUANTILE_CAP
    condition = SmoothMean(trade_off) if is_smooth else CapMean(trade_off)
    return _build_request(number_kind, setting, condition, epsilon_choice, largest_bound)


def request_learner_bound(
    parameters: LearningParameters,
    setting: ReleaseSetting,
    num_rows: int,
    epsilon_choice: float,
    largest_bound: int = DEFAULT_LARGEST_BOUND,
) -> SelectionRequest:
    """Build the request for a learner's cap; the draw takes twice the share of rows that it cuts for the bias.

    Measured over four samples, as they are and with 30 times the users, and five settings of each: the cap that the
    draw aims at errs by Amin et al.'s bound 1.06 times as much as the best one in the geometric mean, at most 1.39;
    with a third of the rows for N 1.06, at most 1.51; with three times as many 1.24, at most 2.2.

    Args:
        parameters: Of the learner; which bound on the bias it asks for does not enter, nor does Var(H).
        setting: Of the release.
        num_rows: N, about how many rows there are: a public number.
        epsilon_choice: Budget of the draw.
        largest_bound: Public maximum of rows per user.

    Raises:
        InvalidInput: The privacy term is 0, or a parameter is out of its range.
    """
    n, privacy_term = float(num_rows), parameters.privacy
    failure_probability = parameters.failure_probability
    privacy_term_at_1 = float(privacy_term.compute_error(1.0 / n, parameters.epsilon, failure_probability))
    if privacy_term_at_1 == 0.0:
        raise refuse("the privacy term is 0, so that no cap is best", remedy="Enter a constant C above 0")
    vc_log_term = parameters.vc_dimension * math.log(n / failure_probability)
    finite_sample_term = parameters.finite_sample_constant * math.sqrt(vc_log_term / n)
    # Amin et al. 2019, theorem 1, to first order in the rows cut: see `scores`.
    price_scale = (
        privacy_term.power * privacy_term_at_1 * n / (BIAS_FACTOR_IN_THEOREM_1 + finite_sample_term / 2.0)
    )
    condition = RisingPrice(price_scale, privacy_term.power - 1.0)
    return _build_request(
        OtherBound.MODEL, setting, condition, epsilon_choice, largest_bound, num_rows=int(num_rows)
    )


def request_total_bound(
    setting: ReleaseSetting, largest_total: float, epsilon_choice: float, margin: float = 0.0
) -> SelectionRequest:
    """Build the request for a bound on a user's total, counted in units that are a power of ten.

    Args:
        setting: Of the release; its noise decides the price of a bound.
        largest_total: Public maximum of one user's total, above 0, in the column's unit.
        epsilon_choice: Budget of the draw.
        margin: As for `dpcore.private_choice.scores.RankedSum`.

    Raises:
        InvalidInput: A parameter is out of its range.
    """
    if not 1e-6 <= largest_total <= 1e15:
        raise refuse(f"the highest total must lie between 1e-06 and 1e+15; got {largest_total!r}")
    # Against rounding: a logarithm just below its whole number would give a unit ten times too small, and a
    # quotient just above its own one unit too many.
    unit_size = 10.0 ** math.floor(math.log10(largest_total / UNITS_OF_LARGEST_TOTAL) + 1e-9)
    drawn_noise = find_noise(setting.program, setting.noise, setting.epsilon, setting.delta)
    largest_in_units = math.ceil(largest_total / unit_size * (1.0 - 1e-9))
    condition = RankedSum(float(drawn_noise.compute_mean_magnitude(1.0)), margin)
    unit = float(f"{unit_size:.0e}")
    return _build_request(OtherBound.TOTAL, setting, condition, epsilon_choice, largest_in_units, unit)


def convert_to_units(totals: FloatArray, unit_size: float, largest_in_units: int) -> ContributionHistogram:
    """Round each total up to whole units, and return how many users have how many units.

    0.3 is three units of 0.1, in spite of float64's rounding. A total of 0 or less counts as 1 unit, and one of more
    than ``largest_in_units`` as ``largest_in_units`` + 1. Without totals it is the histogram of no users.
    """
    if not totals.size:
        return ContributionHistogram.nobody()
    with np.errstate(over="ignore"):
        num_units_per_user = np.ceil(totals / unit_size * (1.0 - 1e-9))
    return ContributionHistogram.from_counts(
        np.clip(num_units_per_user, 1.0, largest_in_units + 1.0).astype(np.int64)
    )
