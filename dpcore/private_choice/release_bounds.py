"""Bounds and ranges that are selected for releases of other pages, and what a private range costs.

The bounds are those of a quantile, of a learner, and of a column's sum, row by row. Each is one
`dpcore.private_choice.choice.ChoiceProblem`, so that one mechanism draws them all. The proofs here say that a
question's best bound is where a public target meets a query that one user moves by a known number of users.

A quantile of values whose counts are private. Its best bound h from counts minimises, of the paper's bound on the
rank error (`dpcore.quantile.optimal_bound.RankBound`), W^2 + A sum c_i^2 with W = h / n_h: (*) of
`dpcore.common.weights`, and hence with the conditions of a mean (`dpcore.private_choice.scores`). A = e^2 ln(2 n /
gamma) / (8 ln^2(1 / (gamma beta))), four times that for the population's quantile, where e is epsilon of one quantile
over max(q, 1 - q). n alone is private: a public number stands in for it (`dpcore.quantile.parameters.PUBLIC_ROWS`),
for the page's own bound too. So A is public. As 2 A / epsilon^2 it is .49 for a median, of which a mean has at most
.25.
- *Smooth weights.* h is best where sum_l (1 - h / s_l)_+ = h / A. With A public only the left side depends on the
  data, and each user adds a number in [0, 1]: one who comes or goes moves the distance by at most 1, and so does one
  who takes the place of another, as two numbers in [0, 1] differ by at most 1.
- *A cap.* h is best where k a = q (a + q), k = 2 h / A: a set of states (a, q) that does not depend on the data. The
  score is how many users must come or go, parts of users allowed, until the state is in it. Let D' be D with one user
  more. From D' one can go to D at the cost of 1, and from there on: d(D') <= 1 + d(D), and likewise d(D) <= 1 +
  d(D'). Replacing is going and coming: 2. These two hold for every set, whatever A; the number of rows
  of a user does not enter.

A learner. See *A learner under a cap* in `dpcore.private_choice.scores`: #{s_l > T} against a target of T and public
numbers alone, N among them. A user adds 0 or 1: 1 under either relation.

A sum of a column whose file holds it row by row. T is best where as many users' totals lie above it as the noise is
large per unit of T, as for a count. Each total becomes a whole number of a public unit, rounded up, by itself: what a
user adds to #{x_l > T} stays 0 or 1, under either relation. (Means of totals in bins, which stand for them where
users are too many, may move with one user for all users of a bin: of these no bound is drawn.)

Source: Epasto et al. 2020, section 4 and appendix B; Amin et al. 2019, equation 6 and theorem 1. Conditions,
distances and the approximation for a learner are ours.

The cost of choosing a range privately, and of other ways, is compared with the best range in the clear. The error is
that of `dpcore.mean.value_range`: what clamping cuts off and weighing shifts, without letting them cancel, and noise.
For every way this is the mean of its error over draws, over the least error at the same bound on rows: exactly for
the two mechanisms that draw from a grid, over simulated draws for bins. All of it is computed from the values: on
private data as private as they are.

The number of users is varied by taking every user ``scale`` times: shares stay, noise matters less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpcore.answer.answer import ReleaseSetting
from dpcore.common.checks import refuse
from dpcore.common.noise_error import compute_unit_scale
from dpcore.common.privacy import ReleaseFacts
from dpcore.contributions import ContributionHistogram, FloatArray, IntArray
from dpcore.data import samples
from dpcore.dataset import Values
from dpcore.learning.optimal_cap import THEOREM_FACTOR
from dpcore.learning.parameters import LearningParameters
from dpcore.mean.value_range import RangeChoice, ValueRangeProblem, WeightedRows, best_joint
from dpcore.per_group.private_pair import PrivatePairProblem
from dpcore.private_choice import private_range
from dpcore.private_choice.choice import MECHANISM, ChoiceProblem, SmallFirst, softmax
from dpcore.private_choice.parameters import (
    DEFAULT_LARGEST,
    NumberKind,
    NumberPair,
    OtherBound,
    PrivateParameters,
)
from dpcore.private_choice.private_range import RangeProblem
from dpcore.private_choice.scores import (
    RESOLUTION,
    CapMean,
    RankedSum,
    RisingPrice,
    SmoothMean,
    interval_distance,
)
from dpcore.private_choice.table_scores import Condition
from dpcore.quantile.parameters import QuantileParameters
from dpcore.quantile.rows import WeightKind

UNITS = 1e4
"""A total's largest is at least so many of its units: bounds from one unit on are drawn to 2 % or better."""


@dataclass(frozen=True)
class SelectionRequest:
    """A private selection for one release; all of it public.

    Attributes:
        number: What is selected.
        problem: Candidates, distances, sensitivity and prior of the mechanism, with the budget of the selection.
        epsilon: Budget of the release that will use what is selected.
        delta: Delta of that release; None for pure epsilon-DP.
        setting: The release; None if the number bounds none, and for pairs and ranges.
        rows: Of a learner, the public number of rows, N.
    """

    number: NumberKind
    problem: ChoiceProblem | PrivatePairProblem | RangeProblem
    epsilon: float
    delta: float | None = None
    setting: ReleaseSetting | None = None
    rows: int | None = None

    @classmethod
    def from_parameters(cls, parameters: PrivateParameters) -> SelectionRequest:
        """Return the direct choice of *Choose privately*."""
        release = parameters.epsilon, parameters.release_delta, parameters.setting
        return cls(parameters.purpose, parameters.choice, *release)

    @classmethod
    def from_pair_problem(cls, problem: PrivatePairProblem) -> SelectionRequest:
        """Return the selection of a pair of bounds per group."""
        return cls(NumberPair.PAIR, problem, problem.parameters.epsilon, problem.parameters.delta)

    @property
    def facts(self) -> ReleaseFacts:
        """Return the guarantee of the selection."""
        return ReleaseFacts(self.problem.epsilon, 0.0, self.problem.neighbours, MECHANISM)


def _build_request(
    number: OtherBound,
    setting: ReleaseSetting,
    condition: Condition,
    epsilon: float,
    largest: int,
    unit: float = 1.0,
    rows: int | None = None,
) -> SelectionRequest:
    # Users come or go, as in all releases that ask for such a bound.
    problem = ChoiceProblem(condition, epsilon, int(largest), prior=SmallFirst(), unit=unit)
    return SelectionRequest(number, problem, setting.epsilon, setting.delta, setting, rows)


def request_quantile_bound(
    parameters: QuantileParameters,
    setting: ReleaseSetting,
    epsilon_choice: float,
    largest: int = DEFAULT_LARGEST,
) -> SelectionRequest | None:
    """Return the request for a quantile's bound, by what is best from counts; None for public counts, which need none.

    Raises:
        InvalidInput: A parameter is out of its range, or one row per user is best whatever the data.
    """
    if not parameters.protects_users:
        return None
    is_smooth, trade_off = parameters.weight_kind is WeightKind.SMOOTH, parameters.public_trade_off
    number = OtherBound.QUANTILE_SMOOTH if is_smooth else OtherBound.QUANTILE_CAP
    condition = SmoothMean(trade_off) if is_smooth else CapMean(trade_off)
    return _build_request(number, setting, condition, epsilon_choice, largest)


def request_learner_bound(
    parameters: LearningParameters,
    setting: ReleaseSetting,
    rows: int,
    epsilon_choice: float,
    largest: int = DEFAULT_LARGEST,
) -> SelectionRequest:
    """Return the draw of a learner's cap, with twice the share of rows cut for the bias.

    Measured over four samples, as they are and with 30 times the users, and five settings of each: the cap that the
    draw aims at errs by Amin et al.'s bound 1.06 times as much as the best one in the geometric mean, at most 1.39;
    with a third of the rows for N 1.06, at most 1.51; with three times as many 1.24, at most 2.2.

    Args:
        parameters: Of the learner; which bound on the bias it asks for does not enter, nor does Var(H).
        setting: Of the release.
        rows: N, about how many rows there are: a public number.
        epsilon_choice: Budget of the draw.
        largest: Public maximum of rows per user.

    Raises:
        InvalidInput: The privacy term is 0, or a parameter is out of its range.
    """
    n, power = float(rows), parameters.privacy.power
    privacy = float(parameters.privacy.error(1.0 / n, parameters.epsilon, parameters.failure_probability))
    if privacy == 0.0:
        raise refuse("the privacy term is 0, so that no cap is best", remedy="Enter a constant C above 0")
    log_term = parameters.vc_dimension * math.log(n / parameters.failure_probability)
    finite = parameters.finite_sample_constant * math.sqrt(log_term / n)
    # Amin et al. 2019, theorem 1, to first order in the rows cut: see `scores`.
    condition = RisingPrice(power * privacy * n / (THEOREM_FACTOR + finite / 2.0), power - 1.0)
    return _build_request(OtherBound.MODEL, setting, condition, epsilon_choice, largest, rows=int(rows))


def request_total_bound(
    setting: ReleaseSetting, largest_total: float, epsilon_choice: float, margin: float = 0.0
) -> SelectionRequest:
    """Return the draw of the bound on a total, in units that are a power of ten.

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
    unit = 10.0 ** math.floor(math.log10(largest_total / UNITS) + 1e-9)
    price = compute_unit_scale(setting.noise, setting.epsilon, setting.delta) * setting.noise.mean_magnitude
    largest = math.ceil(largest_total / unit * (1.0 - 1e-9))
    return _build_request(
        OtherBound.TOTAL, setting, RankedSum(price, margin), epsilon_choice, largest, float(f"{unit:.0e}")
    )


def count_units(totals: FloatArray, unit: float, largest: int) -> ContributionHistogram:
    """Return each total in units, rounded up by itself: at least 1, and one more than ``largest`` if it is larger.

    0.3 is three units of 0.1, whatever float64 says of it. Totals of 0 or less cost nothing to any bound, nor does 1.
    """
    if not totals.size:
        return ContributionHistogram.nobody()
    with np.errstate(over="ignore"):
        units = np.ceil(totals / unit * (1.0 - 1e-9))
    return ContributionHistogram.from_counts(np.clip(units, 1.0, largest + 1.0).astype(np.int64))


SHARE = 0.99
"""Share of the rows between the two quantiles of the usual rule, which leaves half of a per cent beyond either end."""
SUCCESS = 1.0 - 1e-9
"""Chance that no empty bin is taken, as libraries have it."""
RUNS = 400


@dataclass(frozen=True, eq=False)
class Table:
    """Values with the release that will use the range.

    Attributes:
        values: One per row.
        epsilon: Of the release.
        scale: How many times every user is there.
    """

    values: Values
    epsilon: float
    scale: float = 1.0

    @property
    def users(self) -> float:
        """Return the users, each taken so many times."""
        return self.scale * float(np.unique(self.values.user_codes).size)

    @cached_property
    def best(self) -> RangeChoice:
        """Return the best range and bound in the clear."""
        return best_joint(self._problem)

    @property
    def half_width(self) -> float:
        """Return half of the width of the best range."""
        return (self.best.upper - self.best.lower) / 2.0

    @cached_property
    def _problem(self) -> ValueRangeProblem:
        """Return the problem of the best range; noise of ``scale`` times the users is that at as many times epsilon."""
        return ValueRangeProblem(self.values, min(self.epsilon * self.scale, 1e3))

    @cached_property
    def _rows(self) -> WeightedRows:
        return WeightedRows(self._problem, self.best.threshold)

    def error_ratios(self, lower: npt.ArrayLike, upper: npt.ArrayLike) -> FloatArray:
        """Return the errors of ranges at the best bound over the least error; ends broadcast, and may be swapped."""
        ends = np.asarray(lower), np.asarray(upper)
        return self._rows.error_parts(np.minimum(*ends), np.maximum(*ends)).error / self.best.error

    def scale_tails(self, tails: tuple[IntArray, IntArray]) -> tuple[IntArray, IntArray]:
        """Return `private_range.sum_tails` of ``scale`` times the users."""
        above, reaching = (np.rint(tail * self.scale).astype(np.int64) for tail in tails)
        return above, reaching


MIN_CHANCE = 1e-6
"""Centres of a smaller chance are left out of a mean error, where the centre is drawn."""


def cost_draw(table: Table, problem: RangeProblem) -> float:
    """Return the mean error of a draw over the least error; exact, but for centres that are hardly ever drawn."""
    anchor = problem.anchor
    if anchor is None:
        half_users = round(table.users * (RESOLUTION // 2))
        distances = interval_distance(
            *table.scale_tails(private_range.sum_tails(table.values, problem.centres)), half_users
        )
        slope = problem.epsilon_of_centre / (2.0 * problem.centre_sensitivity)
        chances = softmax(problem.centre_log_prior - slope * distances)
        index = np.flatnonzero(chances > MIN_CHANCE)
        costs = [_cost_ends(table, problem, float(centre)) for centre in problem.centres[index]]
        return float(np.average(costs, weights=chances[index]))
    return _cost_ends(table, problem, anchor)


def _cost_ends(table: Table, problem: RangeProblem, anchor: float) -> float:
    """Return the mean error of the draws beside an anchor over the least error."""
    chances = [
        softmax(problem.logits(table.scale_tails(query), anchor))
        for query in private_range.list_tails(problem, table.values, anchor)
    ]
    upper = problem.ends(anchor)
    if problem.anchor is None:
        widths = problem.widths(anchor)
        return float(table.error_ratios(anchor - widths, anchor + widths) @ chances[0])
    if problem.lower is not None:
        return float(table.error_ratios(anchor, upper) @ chances[0])
    lower = -problem.ends(-anchor)
    return float(chances[0] @ table.error_ratios(lower[:, None], upper) @ chances[1])


def cost_quantiles(table: Table, problem: RangeProblem) -> float:
    """Return the mean error of two DP quantiles over the grid: equal weights, half of epsilon each, a public target."""
    ends = np.concatenate((-problem.grid[::-1], problem.grid))
    # Half of epsilon for either end, and half of that again, as a distance moves the normaliser as well.
    target, slope = (1.0 - SHARE) / 2.0 * table.users * RESOLUTION, problem.epsilon / 4.0 / RESOLUTION
    upper, lower = (
        softmax(-slope * interval_distance(*table.scale_tails(private_range.sum_tails(values, ends)), target))
        for values in (table.values, private_range.mirror(table.values))
    )
    # Ends in the wrong order are put in the right one, as whoever calls a library would.
    return float(lower[::-1] @ table.error_ratios(ends[:, None], ends) @ upper)


def cost_bins(table: Table, problem: RangeProblem) -> float:
    """Return the same of noisy counts in bins of doubling width on either side of 0, over simulated draws.

    The outermost bins above a threshold give the ends; an empty one passes it with a chance of 1 - `SUCCESS`. If
    none passes, the whole public range is taken. Each user counts 1 in all, a share in each bin, which is kinder to
    this way than libraries are.
    """
    first, stop = math.floor(math.log2(problem.unit)), math.ceil(math.log2(problem.largest))
    edges = 2.0 ** np.arange(first, stop + 1)
    ends = np.concatenate((-edges[::-1], [0.0], edges))
    _, user_index, counts = np.unique(table.values.user_codes, return_inverse=True, return_counts=True)
    weight = table.scale / counts[user_index]
    inside = np.clip(np.searchsorted(ends, table.values.values, side="right") - 1, 0, ends.size - 2)
    sums = np.bincount(inside, weights=weight, minlength=ends.size - 1)
    # One empty bin stays below b ln(1 / (2 (1 - p))) with chance p; all of them at p^(number of bins).
    bin_chance = SUCCESS ** (1.0 / sums.size)
    threshold = math.log(1.0 / (2.0 * -math.expm1(math.log(bin_chance)))) / problem.epsilon
    noise = np.random.default_rng(0).laplace(0.0, 1.0 / problem.epsilon, (RUNS, sums.size))
    passes = sums + noise >= threshold
    usable = passes.any(axis=1)
    low = np.where(usable, passes.argmax(axis=1), 0)
    high = np.where(usable, sums.size - passes[:, ::-1].argmax(axis=1), sums.size)
    return float(np.mean(table.error_ratios(ends[low], ends[high])))


def cost_guess(table: Table, factor: float) -> float:
    """Return the error of a range ``factor`` times as wide as the best one on either side of its middle; it is free."""
    middle, half_width = (table.best.lower + table.best.upper) / 2.0, table.half_width
    return float(table.error_ratios(middle - factor * half_width, middle + factor * half_width))


RangeCosts = tuple[float, float, float, float, float]
"""Mean error over the least one of ways to a range, the largest over the samples: of a draw, of two DP quantiles, of
noisy counts in bins, and of ranges twice and ten times as wide as the best, from what is known."""


SAMPLES = ("shop-events", "item-ratings")
"""Public samples with values."""


def compare_range_costs(problem: RangeProblem, users: float) -> RangeCosts:
    """Return what the ways cost on public samples, each user of which is taken so often that they weigh as so many.

    The grid has as many powers of ten as that of ``problem``, about the best range of each sample; where a centre is
    known, it is the sample's median in one digit, and where L is, the best one.
    """
    costs = []
    for key in SAMPLES:
        values = samples.load(key).values
        assert values is not None
        sizes = np.unique(values.user_codes, return_counts=True)[1]
        # A user below the bound on rows counts in part, so that it takes more of them.
        count = float(np.minimum(sizes, problem.max_contributions).sum()) / problem.max_contributions
        table, span = Table(values, problem.epsilon_release, users / count), problem.largest / problem.unit
        half_width = table.half_width
        midpoint = float(f"{np.median(values.values):.0e}")
        on_sample = replace(
            problem,
            unit=half_width / math.sqrt(span),
            largest=half_width * math.sqrt(span),
            centre=None if problem.centre is None else midpoint,
            lower=None if problem.lower is None else table.best.lower,
            users=users,
        )
        drawn = [compute(table, on_sample) for compute in (cost_draw, cost_quantiles, cost_bins)]
        costs.append([*drawn, cost_guess(table, 2.0), cost_guess(table, 10.0)])
    draw, quantiles, bins, twice, ten_times = np.max(costs, axis=0).tolist()
    return draw, quantiles, bins, twice, ten_times
