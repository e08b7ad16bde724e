"""One number chosen from private data: an exponential mechanism over a public grid of candidates.

Candidate j is drawn with probability proportional to  w_j exp(-epsilon d_j / (2 D)),  where d_j >= 0 is its
distance from the optimality condition (`dpcore.private_choice.scores`), D the most that one user can move any d_j,
and w_j a public prior weight. This is epsilon-DP (McSherry and Talwar 2007, theorem 6).

Why the factor 2 stays. If adding a user moved all scores the same way, exp(-epsilon d_j / D) would do. The
*query* is monotone in the data, the *score* -|query - target| is not: one more user brings candidates on one
side of the target nearer and takes those on the other side away. Two candidates whose distances move from
(0, 1) to (1, 0) show it: without the 2 the log-ratio is up to 2 epsilon. A test computes such a case exactly.

How it is drawn: scores are whole numbers of steps, computed exactly; OpenDP adds Gumbel noise to them by exact
arithmetic on as many random bits as the comparison needs, and reports the largest. The argmax of scores with
Gumbel noise of scale b has exactly the probabilities softmax(score / b). OpenDP proves epsilon^2 / 8-zCDP for it, from
which the scale is checked; that the same mechanism is epsilon-DP is the theorem cited. No score is exponentiated
on the way, so scores of any size can be drawn from.

The cost of a private choice against one in the clear is exact, from the probabilities. Regret is error(chosen) / least
error - 1, in the unit of what is released: the standard error of a mean (the root of the expected squared error), bias
plus mean noise of a sum. For a quantile of the sizes there is no such error; there it is the rank error, the share of
users by which the chosen size misses the quantile. All of it is computed from private data.

The number of users is varied by taking every user ``multiple`` times: shares stay, noise matters less.

`forecast` says the same before anything was drawn: from public samples, and never from the data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpcore.common import mechanisms
from dpcore.common.checks import EPSILON_RANGE, Problems, require
from dpcore.common.privacy import Charge, Neighbours, ReleaseFacts
from dpcore.contributions import MAX_SIZE, ContributionHistogram, FloatArray, IntArray
from dpcore.data import samples
from dpcore.private_choice import scores
from dpcore.private_choice.scores import RankedSum, SizeQuantile, add_prior, check_users, scale_sums
from dpcore.private_choice.table_scores import Condition, compute_least_error

MAX_WHOLE_CANDIDATE = 50
"""Whole candidates have every number up to here."""
MAX_EIGHTH_CANDIDATE = 16
"""Real candidates have every eighth up to here."""
GRID_GROWTH = 1.02
"""Above, each candidate is at most so many times the one before: errors are flat at the optimum."""
FACTOR_RANGE = (1.01, 1e6)
MECHANISM_NAME = "exponential mechanism"


@dataclass(frozen=True)
class Prior:
    """A lognormal guess of the answer, made without the data.

    Attributes:
        guess: Where the answer is expected, at least 1, in rows per user.
        factor: It lies within this factor of the guess with a chance of about two in three; in `FACTOR_RANGE`.
    """

    guess: float
    factor: float

    def __post_init__(self) -> None:
        """Raise `InvalidInput` with all problems of the attributes."""
        with Problems() as problems:
            problems.between(1, MAX_SIZE, guess=self.guess)
            problems.between(*FACTOR_RANGE, factor=self.factor)

    def log_weights(self, candidates: FloatArray) -> FloatArray:
        """Compute the log weight of each candidate, up to a constant.

        It is the log density plus the log of the candidate's width on the log axis.
        """
        log_candidates = np.log(candidates)
        log_widths = np.gradient(log_candidates) if log_candidates.size > 1 else np.ones(1)
        standardised_logs = (log_candidates - math.log(self.guess)) / math.log(self.factor)
        return np.asarray(-0.5 * standardised_logs**2 + np.log(log_widths))


@dataclass(frozen=True)
class SmallFirst:
    """Larger weights for small bounds: too large a one costs noise in proportion.

    Candidate T has weight T^-power. If few users decide, candidates beyond the data all lie about as far from the
    target. Alike, they share most of the probability, as they are many, and the expected error grows with the public
    maximum. At a power above 1 a tail of them adds no more than the bounds of the data.

    Measured over the six samples at an epsilon of the release of 1 and of the choice of 0.1 and 0.5, the largest
    average extra error of a sum falls from 19.6 and 20.7 times the best one's to 3.6 and 1.3; of the cap of a mean for
    100 users from 72 and 0.01 to 0.17 and 0.00. At a power of 2 (5.0 and 1.1) users who all have many
    rows need half as many again before they are heard. One hundred users with 1,000 rows each at an epsilon of the
    choice of 0.1 are not, at either power: there a guess helps.

    Attributes:
        power: Above 0, at most 4.
    """

    power: float = 1.5

    def __post_init__(self) -> None:
        """Raise `InvalidInput` with all problems of the attributes."""
        with Problems() as problems:
            problems.between(1e-6, 4.0, power=self.power)

    def log_weights(self, candidates: FloatArray) -> FloatArray:
        """Compute the log weight of each candidate T, up to a constant: -power log T."""
        return np.asarray(-self.power * np.log(candidates))


def build_grid(largest_candidate: int, is_integer: bool) -> FloatArray:
    """Build the public grid of candidates: every whole number, or eighth, up to a limit, then geometric.

    Args:
        largest_candidate: Public maximum of rows per user, from 1 to 1e12; public, not from the data.
        is_integer: Whole numbers only; otherwise multiples of 1/8.

    Returns:
        Ascending from 1 to ``largest_candidate``, float64.

    Raises:
        InvalidInput: ``largest_candidate`` out of range.
    """
    require.whole(1, MAX_SIZE, largest=largest_candidate)
    parts_per_row, fine_limit = (1.0, MAX_WHOLE_CANDIDATE) if is_integer else (8.0, MAX_EIGHTH_CANDIDATE)
    fine_parts = np.arange(parts_per_row, min(fine_limit, largest_candidate) * parts_per_row + 1.0)
    coarse_parts = np.zeros(0)
    if largest_candidate > fine_limit:
        num_steps = max(math.ceil(math.log(largest_candidate / fine_limit) / math.log(GRID_GROWTH)), 1)
        coarse_parts = np.rint(np.geomspace(fine_limit, largest_candidate, num_steps + 1) * parts_per_row)
    return np.unique(np.concatenate((fine_parts, coarse_parts))) / parts_per_row


@dataclass(frozen=True)
class ChoiceProblem:
    """The question: choose one number of private data with epsilon-DP.

    Attributes:
        condition: What makes a number the best one.
        epsilon: Budget of the choice alone.
        largest: Public maximum of rows per user.
        neighbours: One of `scores.COVERED_RELATIONS`: under both, who has how many rows is private.
        prior: What is known without the data: a guess, or that small bounds cost less; None for nothing (all
            candidates alike).
        unit: What a row stands for where what is bounded is no number of rows: a total, in its own unit. Public.

    Raises:
        InvalidInput: A parameter is out of its range; all problems at once.
    """

    condition: Condition
    epsilon: float
    largest: int
    neighbours: Neighbours = Neighbours.ADD_OR_REMOVE_USER
    prior: Prior | SmallFirst | None = None
    unit: float = 1.0

    def __post_init__(self) -> None:
        """Raise `InvalidInput` with all problems of the attributes."""
        with Problems() as problems:
            if not isinstance(self.condition, Condition):
                problems.add("condition must be one of dpcore.private_choice.scores")
            problems.between(*EPSILON_RANGE, epsilon=self.epsilon)
            problems.whole(1, MAX_SIZE, largest=self.largest)
            problems.between(1e-12, 1e12, unit=self.unit)
            if self.neighbours not in scores.COVERED_RELATIONS:
                problems.add(
                    "where only one user's values may differ, the number of rows of each user is public, and so is a "
                    "bound chosen from it",
                    remedy="Choose in the clear; there is nothing to spend a budget on",
                )

    @cached_property
    def candidates(self) -> FloatArray:
        """Return the public grid of candidates in rows, or units, per user, ascending."""
        return build_grid(int(self.largest), self.condition.is_integer)

    @cached_property
    def bounds(self) -> FloatArray:
        """Return the candidates in the unit of the bounded amount, to 12 digits."""
        if self.unit == 1.0:
            return self.candidates
        # 3 units of 0.1 are 0.3, not 0.30000000000000004.
        return np.array([float(f"{candidate * self.unit:.12g}") for candidate in self.candidates])

    @property
    def sensitivity(self) -> int:
        """Return by how many steps one user can change a distance, at most."""
        return self.condition.compute_sensitivity(self.neighbours)

    @cached_property
    def log_prior(self) -> FloatArray:
        """Return the log prior weight of each candidate, shape (c,), with largest entry 0."""
        if self.prior is None:
            return np.zeros(self.candidates.size)
        log_weights = self.prior.log_weights(self.candidates)
        return np.asarray(log_weights - log_weights.max())

    def compute_distances(self, histogram: ContributionHistogram) -> IntArray:
        """Compute the distance of each candidate, shape (c,), in steps of 1 / `scores.RESOLUTION` user; private."""
        check_users(histogram)
        return np.asarray(compute_distances(self, histogram, np.array([self.epsilon]))[0, 0])

    def compute_scores(self, histogram: ContributionHistogram) -> list[int]:
        """Compute the scores without noise, private: minus distances plus log prior, in steps."""
        return add_prior(self.compute_distances(histogram), self.log_prior, self.sensitivity, self.epsilon)


def compute_distances(
    problem: ChoiceProblem,
    histogram: ContributionHistogram,
    epsilons: npt.NDArray[np.float64],
    multiples: Sequence[float] = (1.0,),
) -> IntArray:
    """Compute the distances at several budgets, with every user several times there, shape (n, e or 1, c).

    There is one line for each budget only if the target depends on it, as for a sum.
    """
    condition, candidates = problem.condition, problem.candidates
    if not isinstance(condition, RankedSum):
        return np.asarray(condition.compute_distances(histogram, candidates, multiples)[:, None])
    scaled_sums = scale_sums(condition.compute_sums(histogram, candidates), multiples)
    aimed_conditions = (condition.with_draw_margin(float(epsilon)) for epsilon in epsilons)
    return np.stack(
        [
            aimed_condition.compute_target_distances(scaled_sums, candidates)
            for aimed_condition in aimed_conditions
        ],
        axis=1,
    )


def compute_probabilities(
    problem: ChoiceProblem, histogram: ContributionHistogram, epsilons: npt.ArrayLike | None = None
) -> FloatArray:
    """Compute the probability that each candidate is drawn; as private as the data.

    Args:
        problem: The question.
        histogram: Rows per user.
        epsilons: Budgets of the choice in place of the problem's own, any shape; None for its own.

    Returns:
        Probabilities, float64, of the shape of ``epsilons`` (() for None) with the candidates as last axis.
    """
    budgets = np.asarray(problem.epsilon if epsilons is None else epsilons, dtype=np.float64)
    check_users(histogram)
    distances = compute_distances(problem, histogram, budgets.ravel())[0]
    return convert_to_probabilities(compute_logits(problem, distances, budgets.ravel())).reshape(
        *budgets.shape, -1
    )


def compute_logits(
    problem: ChoiceProblem, distances: npt.NDArray[np.generic], epsilons: npt.NDArray[np.float64]
) -> FloatArray:
    """Compute the log probabilities of candidates, up to a constant; shape of ``epsilons`` with a last axis added."""
    logits_per_step = epsilons[..., None] / (2.0 * problem.sensitivity)
    return np.asarray(problem.log_prior - logits_per_step * distances.astype(np.float64))


def normalise_log_weights(log_weights: FloatArray) -> FloatArray:
    """Compute normalised log probabilities from log weights over the last axis, without overflow."""
    shifted_weights = log_weights - log_weights.max(axis=-1, keepdims=True)
    return np.asarray(shifted_weights - np.log(np.exp(shifted_weights).sum(axis=-1, keepdims=True)))


def convert_to_probabilities(log_weights: FloatArray) -> FloatArray:
    """Compute normalised probabilities from log weights over the last axis, without overflow."""
    return np.asarray(np.exp(normalise_log_weights(log_weights)))


@dataclass(frozen=True)
class DrawnNumber:
    """A number that was chosen with epsilon-DP and may be published, with its guarantee and its problem.

    Attributes:
        value: In rows per user, or in the unit of what is bounded.
        facts: What it guarantees and how it was made.
        problem: The question, all of it public.
        column: Whose totals are bounded; empty for rows.
    """

    value: float
    facts: ReleaseFacts
    problem: ChoiceProblem
    column: str = ""


def choose(
    problem: ChoiceProblem,
    histogram: ContributionHistogram,
    charge: Charge | None = None,
    value_column: str = "",
) -> DrawnNumber:
    """Draw the number by the exponential mechanism: a DP release, fresh at every call.

    Args:
        problem: The question.
        histogram: Rows per user, private; of a total, units per user.
        charge: Told what the draw guarantees before anything is drawn.
        value_column: Whose totals are bounded; empty for rows.

    Raises:
        InvalidInput: More users than steps can add up; nothing was drawn.
    """

    def build_facts(epsilon: float) -> ReleaseFacts:
        """Build the guarantee of a draw at this epsilon."""
        return ReleaseFacts(epsilon, 0.0, problem.neighbours, MECHANISM_NAME)

    charge_epsilon = None if charge is None else lambda epsilon, _: charge(build_facts(epsilon))
    index_release = mechanisms.exponential_mechanism(
        problem.compute_scores(histogram), problem.sensitivity, problem.epsilon, charge_epsilon
    )
    return DrawnNumber(
        float(problem.bounds[index_release.index]), build_facts(index_release.epsilon), problem, value_column
    )


def format_drawn_number(choice: DrawnNumber) -> str:
    """Format the drawn number with thousands separators, and up to three decimals if it is of rows."""
    if choice.problem.unit != 1.0:
        return f"{choice.value:,.12g}"
    return f"{choice.value:,.0f}" if choice.value == int(choice.value) else f"{choice.value:,.3f}".rstrip("0")


MULTIPLE_RANGE = (1e-6, 1e6)
FORECAST_USER_COUNTS = (100, 1_000, 10_000)
"""Numbers of users that it is said for: of these everyone knows the one that is nearest to theirs."""
FORECAST_SAMPLES = ("shop-events", "online-retail-lines", "requests-commits")
"""Public samples whose users differ as people's do: a few have most of the rows."""


@dataclass(frozen=True, eq=False)
class ChoiceRegret:
    """Regret over the draws of the mechanism, as a share (0.01 is one per cent).

    Attributes:
        epsilons: Budgets of the choice, shape (e,).
        multiples: How many times every user is there, shape (n,).
        mean_regrets: Expected regret, shape (n, e).
        median_regrets: Smallest regret that is not exceeded with probability 1/2, shape (n, e).
        percentile_95_regrets: The same with probability 0.95, shape (n, e).
    """

    epsilons: FloatArray
    multiples: FloatArray
    mean_regrets: FloatArray
    median_regrets: FloatArray
    percentile_95_regrets: FloatArray


def compute_regrets(
    condition: Condition, histogram: ContributionHistogram, bounds: FloatArray, multiple: float = 1.0
) -> FloatArray:
    """Compute the regret of every bound, error / least error - 1, shape (c,), with ``multiple`` times the users.

    For a quantile of rows per user it is the rank error.
    """
    bound_errors = condition.compute_errors(histogram, bounds, multiple)
    if isinstance(condition, SizeQuantile):
        return bound_errors
    least_error = compute_least_error(condition, histogram, multiple)
    # A regret below 0 by a last digit is rounding: the best error is proved by its own certificate.
    return np.maximum(bound_errors / least_error - 1.0, 0.0)


def summarise_regret(
    problem: ChoiceProblem,
    histogram: ContributionHistogram,
    epsilons: npt.ArrayLike | None = None,
    multiples: npt.ArrayLike = 1.0,
) -> ChoiceRegret:
    """Compute mean, median and 95th percentile of the regret of a draw, for each budget and number of users.

    Args:
        problem: The question.
        histogram: Rows per user.
        epsilons: Budgets of the choice, in `dpcore.common.checks.EPSILON_RANGE`; None for the problem's own.
        multiples: How many times every user is there, in `MULTIPLE_RANGE`; may be a fraction.

    Raises:
        InvalidInput: A figure is out of its range.
    """
    budgets = np.atleast_1d(np.asarray(problem.epsilon if epsilons is None else epsilons, dtype=np.float64))
    multiple_values = np.atleast_1d(np.asarray(multiples, dtype=np.float64))
    with Problems() as problems:
        for budget_or_multiple in budgets:
            problems.between(*EPSILON_RANGE, epsilon=float(budget_or_multiple))
        for budget_or_multiple in multiple_values:
            problems.between(*MULTIPLE_RANGE, scale=float(budget_or_multiple))
    check_users(histogram, float(multiple_values.max()))
    distances_per_multiple = compute_distances(
        problem, histogram, budgets, [float(k) for k in multiple_values]
    )
    statistics_per_multiple = []
    for distances_at_multiple, k in zip(distances_per_multiple, multiple_values.tolist(), strict=True):
        regrets = compute_regrets(problem.condition, histogram, problem.candidates, k)
        probabilities = convert_to_probabilities(compute_logits(problem, distances_at_multiple, budgets))
        # In the order of what candidates cost, their chances add up to the law of the regret.
        regret_order = np.argsort(regrets)
        cumulative_chances = np.cumsum(probabilities[:, regret_order], axis=1)
        median_and_percentile = (
            regrets[regret_order][np.argmax(cumulative_chances >= p, axis=1)] for p in (0.5, 0.95)
        )
        statistics_per_multiple.append((probabilities @ regrets, *median_and_percentile))
    return ChoiceRegret(budgets, multiple_values, *map(np.array, zip(*statistics_per_multiple, strict=True)))


def forecast(
    problem: ChoiceProblem,
    num_rows: int | None = None,
    num_users_of_samples: Sequence[int] = FORECAST_USER_COUNTS,
) -> FloatArray:
    """Compute the mean regret of a draw on public samples, the largest over samples, for each number of users.

    It reads public samples alone, so that it says nothing of private data.

    Args:
        problem: The selection; its variance of a value is the worst case, or known from elsewhere.
        num_rows: Of a learner, the public number of rows; None for other bounds.
        num_users_of_samples: Numbers of users.

    Returns:
        What a draw adds to the error on average, as a share of the error of the best bound, the largest over the
        samples; for a quantile of the rows per user the rank error. Exact, by the probabilities of the exponential
        mechanism. One for each number of users; with ``num_rows`` one, for as many users as it takes.
    """
    mean_regrets_per_sample = []
    for sample_key in FORECAST_SAMPLES:
        histogram = samples.load(sample_key).histogram
        multiples = np.asarray(num_users_of_samples, dtype=np.float64) / histogram.num_users
        if num_rows is not None:
            # Beyond what samples are scaled to, nothing changes any more.
            multiples = np.clip([num_rows / histogram.num_rows], *MULTIPLE_RANGE)
        mean_regrets_per_sample.append(
            summarise_regret(problem, histogram, None, multiples).mean_regrets[:, 0]
        )
    return np.asarray(np.max(mean_regrets_per_sample, axis=0))
