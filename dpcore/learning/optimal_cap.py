"""Bias curves over τ₀: the error bound of a capped private learner, and its best cap.

At most tau = tau_0 n rows of each user are kept, and a private learner runs on them. Amin et al. 2019, theorem 1:
with probability at least 1 - delta, the risk of what an epsilon-DP empirical risk minimiser returns exceeds the best
possible by at most

    2 * bias  +  finite-sample term  +  F(largest share, 1 / epsilon, 3 / delta),                          (*)

where neighbours differ in one user's presence, losses lie in [0, 1] and rows are drawn independently (first a
user, then a row of theirs). delta is the probability that the guarantee fails, not the delta of
(epsilon, delta)-DP. O() constants are 1 unless said otherwise, so (*) compares caps; it promises no accuracy.

The bound that is minimised is (*); its bias is bounded in one of the ways of `dpcore.learning.bias_bounds`. The
population side, n toward infinity, is `dpcore.learning.population`.

Source: Amin et al. 2019, sections 4 to 6.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dpcore.common.branch_and_bound import Minimum, ObjectiveParts, find_interval_within, minimise
from dpcore.common.certificate import Certificate
from dpcore.common.checks import EPSILON_RANGE, Problems, refuse
from dpcore.common.privacy import Neighbours
from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.contributions import ContributionHistogram, FloatArray, build_log_grid
from dpcore.learning.bias_bounds import AboveSums, BiasTerm, CapStatistics, bound_bias, compute_cap_statistics
from dpcore.learning.participation import convert_to_rows

NEIGHBOURS = Neighbours.ADD_OR_REMOVE_USER

BIAS_FACTOR_IN_THEOREM_1 = 2.0
"""Theorem 1 carries the bias twice: once for the hypothesis returned, once for the best one."""

SEARCH_TOLERANCE = 1e-6
"""Relative gap to which the best cap is proved."""

MAX_VC_DIMENSION = 10**9


@dataclass(frozen=True)
class PrivacyTerm:
    """F of definition 5: constant * ln(3 / delta)^log_power * (largest share / epsilon)^power.

    The default is that of output perturbation (Chaudhuri et al. 2011, lemma 3).

    Attributes:
        power: How fast the error grows with the largest share over epsilon, above 0, at most 10.
        constant: C >= 0. It depends on the learner (dimension, smoothness, regularisation); 1 by default.
        log_power: Power of ln(3 / delta), between 0 and 10.

    Raises:
        InvalidInput: A parameter out of its range; all problems at once.

    Source: Amin et al. 2019, definition 5 and the example below it; 3 / delta from theorem 1.
    """

    power: float = 2.0
    constant: float = 1.0
    log_power: float = 2.0

    def __post_init__(self) -> None:
        """Raise `InvalidInput` with every parameter that is out of its range."""
        with Problems() as problems:
            problems.between(0.0, 1e12, constant=self.constant)
            problems.between(1e-3, 10.0, power=self.power)
            problems.between(0.0, 10.0, log_power=self.log_power)

    def compute_error(
        self, largest_shares: npt.ArrayLike, epsilon: float, failure_probability: float
    ) -> FloatArray:
        """Return F at each of the largest shares; F never falls as the share grows."""
        noise_factor = self.constant * math.log(3.0 / failure_probability) ** self.log_power
        return np.asarray(
            noise_factor * (np.asarray(largest_shares, dtype=np.float64) / epsilon) ** self.power
        )


@dataclass(frozen=True, kw_only=True)
class BoundSettings:
    """All that bounds the excess risk of a capped learner, 2 bias + finite-sample term + F, but who contributes what.

    Attributes:
        epsilon: Privacy budget of the learner, between 1e-6 and 1e3.
        bias: Which bound on the bias goes into the objective.
        loss_variance: Var(H), the largest variance over users of a hypothesis's risk, between 0 (users are
            alike) and 1/4 (nothing known).
        vc_dimension: d of the hypothesis class, a whole number; 0 leaves the finite-sample term out.
        failure_probability: delta of theorem 1, between 1e-12 and 0.999.
        privacy: F, the privacy term.
        finite_sample_constant: The constant hidden in O(sqrt(d log(n / delta) / n_tau)), between 0 and 1e6.

    Raises:
        InvalidInput: A parameter out of its range; all problems at once.
    """

    epsilon: float
    bias: BiasTerm = BiasTerm.WORST_CASE
    loss_variance: float = 0.25
    vc_dimension: int = 0
    failure_probability: float = 0.05
    privacy: PrivacyTerm = field(default_factory=PrivacyTerm)
    finite_sample_constant: float = 1.0

    def __post_init__(self) -> None:
        """Raise `InvalidInput` with every parameter that is out of its range."""
        with Problems() as problems:
            problems.between(*EPSILON_RANGE, epsilon=self.epsilon)
            problems.between(0.0, 0.25, loss_variance=self.loss_variance)
            problems.between(1e-12, 0.999, failure_probability=self.failure_probability)
            problems.between(0.0, 1e6, finite_sample_constant=self.finite_sample_constant)
            problems.whole(0, MAX_VC_DIMENSION, vc_dimension=self.vc_dimension)
            problems.of_kind(BiasTerm, bias=self.bias)
            problems.of_kind(PrivacyTerm, privacy=self.privacy)
            self._check_contributors(problems)

    def _check_contributors(self, problems: Problems) -> None:
        """Do nothing; subclasses add the problems of their histogram or population."""

    def compute_error_parts(self, cap_statistics: CapStatistics, num_rows: float) -> ErrorParts:
        """Return the bound on the excess risk in its parts for caps; infinite n leaves the finite-sample term out."""
        keeps_rows = cap_statistics.kept_share > 0.0
        positive_kept_shares = np.where(keeps_rows, cap_statistics.kept_share, 1.0)
        finite_sample_terms = np.zeros(positive_kept_shares.shape)
        if math.isfinite(num_rows):
            vc_log_term = self.vc_dimension * math.log(num_rows / self.failure_probability)
            finite_sample_terms = self.finite_sample_constant * np.sqrt(
                vc_log_term / (positive_kept_shares * num_rows)
            )
        max_shares = np.where(keeps_rows, cap_statistics.max_share, 1.0)
        privacy_terms = self.privacy.compute_error(max_shares, self.epsilon, self.failure_probability)
        return ErrorParts(
            twice_bias=np.asarray(
                BIAS_FACTOR_IN_THEOREM_1 * bound_bias(self.bias, cap_statistics, self.loss_variance)
            ),
            finite_sample=np.where(keeps_rows, finite_sample_terms, np.inf),
            privacy=np.where(keeps_rows, privacy_terms, np.inf),
        )

    def split_objective(self, cap_statistics: CapStatistics, num_rows: float) -> ObjectiveParts:
        """Return the bound on the excess risk as a falling part (also less its rounding) and a rising one (privacy)."""
        # The bias is a difference of sums: for the proof it is taken as low as rounding may have left it.
        rounded_down_twice_bias = BIAS_FACTOR_IN_THEOREM_1 * bound_bias(
            self.bias, cap_statistics.round_down(), self.loss_variance
        )
        twice_bias, finite_sample, privacy = vars(self.compute_error_parts(cap_statistics, num_rows)).values()
        return ObjectiveParts(twice_bias + finite_sample, rounded_down_twice_bias + finite_sample, privacy)


@dataclass(frozen=True)
class ErrorParts:
    """The bound (*) on the excess risk in its parts, of the shape of the caps; all infinite where nothing is kept.

    Attributes:
        twice_bias: Twice the bound on the bias, as theorem 1 carries it.
        finite_sample: C sqrt(d log(n / delta) / n_tau).
        privacy: F(largest share, 1 / epsilon, 3 / delta).
    """

    twice_bias: FloatArray
    finite_sample: FloatArray
    privacy: FloatArray

    @property
    def total(self) -> FloatArray:
        """Return the sum of the three parts, which bounds the excess risk; above 1 it says nothing."""
        return np.asarray(self.twice_bias + self.finite_sample + self.privacy)


@dataclass(frozen=True)
class LearningCap:
    """The best cap, the parts of the bound (*) on the excess risk there, and the proof of its search.

    Attributes:
        fraction: tau_0 = tau / n.
        cap: tau in rows per user; whole from `optimal_cap.find_best_cap`, real from `population.find_best_fraction`,
            nan in the limit of many rows.
        twice_bias: Twice the bound on the bias there.
        finite_sample: Finite-sample term there.
        privacy: Privacy term there.
        kept_share: n_tau / n there.
        users_capped: Users with more rows than the cap; for a population their expected number, rounded.
        certificate: The bound (*) beside what no cap of this kind can go below.
        is_complete: Whether the search went through, rather than being stopped.
        stop_reason: How the search ended, a sentence.
    """

    fraction: float
    cap: float
    twice_bias: float
    finite_sample: float
    privacy: float
    kept_share: float
    users_capped: int
    certificate: Certificate
    is_complete: bool
    stop_reason: str

    @property
    def total(self) -> float:
        """Return the bound (*) on the excess risk at the cap, the sum of its three parts."""
        return self.twice_bias + self.finite_sample + self.privacy

    @property
    def max_contributions(self) -> int:
        """Return the cap as a whole number of rows per user, rounded down where it is real."""
        return math.floor(self.cap)


def build_choice(
    bound_settings: BoundSettings,
    cap_statistics: CapStatistics,
    search_minimum: Minimum,
    num_rows: float,
    cap: float,
    stop_reason: str,
) -> LearningCap:
    """Build the `LearningCap` for one cap: parts of (*) from its statistics, lower bound from the search's minimum."""
    error_parts = bound_settings.compute_error_parts(cap_statistics, num_rows)
    return LearningCap(
        fraction=float(cap_statistics.fraction),
        cap=cap,
        twice_bias=float(error_parts.twice_bias),
        finite_sample=float(error_parts.finite_sample),
        privacy=float(error_parts.privacy),
        kept_share=float(cap_statistics.kept_share),
        users_capped=round(float(cap_statistics.users_capped)),
        certificate=Certificate(
            float(error_parts.total),
            search_minimum.lower_bound,
            "lower limits on intervals that cover every bound",
        ),
        is_complete=not search_minimum.stop_reason,
        stop_reason=stop_reason,
    )


def describe_search(search_minimum: Minimum) -> str:
    """Write a sentence on how the search ended: why it was stopped, or completed with how many evaluations."""
    if search_minimum.stop_reason:
        return f"The search {search_minimum.stop_reason}: this is the best bound so far."
    return (
        f"Branch and bound settled every bound on rows after looking at {search_minimum.num_evaluations:,}."
    )


@dataclass(frozen=True, kw_only=True)
class BiasProblem(BoundSettings):
    """The problem of finding the cap with the smallest bound (*) on the excess risk for these users.

    Attributes:
        histogram: Rows per user. Whatever is computed from it, the best cap too, is as private as it is.
    """

    histogram: ContributionHistogram

    def _check_contributors(self, problems: Problems) -> None:
        """Add a problem if ``histogram`` is no `ContributionHistogram`."""
        problems.of_kind(ContributionHistogram, histogram=self.histogram)


def _convert_to_caps(histogram: ContributionHistogram, fractions: npt.ArrayLike) -> FloatArray:
    """Return the caps tau_0 n in rows as `participation.convert_to_rows`; raise InvalidInput outside [1 / n, 1]."""
    tau_0 = np.asarray(fractions, dtype=np.float64)
    caps = convert_to_rows(tau_0, histogram.num_rows)
    if not np.all((caps >= 1.0) & (tau_0 <= 1.0)):
        raise refuse("tau_0 must be at least the share of one row, and at most 1")
    return caps


def _compute_statistics_of_caps(histogram: ContributionHistogram, caps: FloatArray) -> CapStatistics:
    """Return the statistics of caps in rows, at least 1, any shape."""
    return compute_cap_statistics(
        histogram.compute_sums_at,
        caps,
        total_rows=float(histogram.num_rows),
        largest_size=float(histogram.max_size),
        above_sums=AboveSums(histogram.count_rows_above, histogram.sum_excess),
    )


def compute_statistics(histogram: ContributionHistogram, fractions: npt.ArrayLike) -> CapStatistics:
    """Compute which shares the users hold, and how much is cut, under caps of tau = tau_0 n rows.

    Args:
        histogram: Rows per user.
        fractions: tau_0 in [1 / n, 1], any shape. tau may be real, for curves.

    Returns:
        `CapStatistics` of the shape of ``fractions``; O(log k) each for k distinct sizes.

    Raises:
        InvalidInput: A fraction outside [1 / n, 1].

    Source: Amin et al. 2019, section 5.
    """
    return _compute_statistics_of_caps(histogram, _convert_to_caps(histogram, fractions))


def compute_bias_terms(problem: BiasProblem, fractions: npt.ArrayLike) -> dict[BiasTerm, FloatArray]:
    """Return every bound on the bias (once, not twice) at each tau_0; infinite where a bound does not apply."""
    s = compute_statistics(problem.histogram, fractions)
    return {term: bound_bias(term, s, problem.loss_variance) for term in BiasTerm}


def compute_error_parts(problem: BiasProblem, fractions: npt.ArrayLike) -> ErrorParts:
    """Return the bound (*) on the excess risk in its parts at each tau_0 in [1 / n, 1].

    Source: Amin et al. 2019, theorem 1; the largest share is min(tau, max n_j) / n_tau.
    """
    statistics = compute_statistics(problem.histogram, fractions)
    return problem.compute_error_parts(statistics, float(problem.histogram.num_rows))


def choose_fractions(histogram: ContributionHistogram, num_points: int = 200) -> FloatArray:
    """Return about ``num_points`` log-spaced tau_0 at whole caps from one row to n, the heaviest user's size too."""
    n = float(histogram.num_rows)
    return (
        np.unique(np.rint(build_log_grid(1.0, n, num_points, extra_points=(float(histogram.max_size),)))) / n
    )


def find_best_cap(
    problem: BiasProblem,
    progress: Progress = silent,
    should_stop: ShouldStop = never,
    is_integer: bool = True,
) -> LearningCap:
    """Return the best cap between one row and n, proved by branch and bound.

    Args:
        problem: The question.
        progress: Told the settled share of the range, from 0 to 1.
        should_stop: Asked between rounds; where it says yes the best so far is returned, with its proof.
        is_integer: Whether tau = tau_0 n is a whole number.

    Returns:
        `LearningCap`; its certificate covers every such cap. Above the heaviest user's size nothing changes
        but the forms in tau_0 alone.
    """
    histogram, n = problem.histogram, float(problem.histogram.num_rows)
    search_minimum = minimise(
        lambda caps: problem.split_objective(_compute_statistics_of_caps(histogram, caps), n),
        1.0,
        find_largest_cap(problem),
        is_integer=is_integer,
        tolerance=SEARCH_TOLERANCE,
        progress=progress,
        should_stop=should_stop,
    )
    best_statistics = _compute_statistics_of_caps(histogram, np.asarray(search_minimum.minimiser))
    stop_reason = describe_search(search_minimum)
    if best_statistics.users_capped == 0.0:
        stop_reason = f"Nobody loses rows. {stop_reason}"
    elif search_minimum.minimiser == 1.0:
        stop_reason = f"One row per user is best. {stop_reason}"
    return build_choice(problem, best_statistics, search_minimum, n, search_minimum.minimiser, stop_reason)


def find_caps_within(problem: BiasProblem, best_choice: LearningCap, excess: float = 0.05) -> tuple[int, int]:
    """Return the caps around the best one whose bound (*) is at most (1 + ``excess``) times the best.

    Args:
        problem: The question.
        best_choice: Its answer, from `find_best_cap`.
        excess: By how much the bound may be larger, at least 0.

    Returns:
        (smallest, largest) cap in rows per user; every whole cap between them is as good, proved. The largest
        ends at the heaviest user's size, beyond which nothing changes but the forms in tau_0 alone.
    """
    n = float(problem.histogram.num_rows)
    smallest_cap, largest_cap = find_interval_within(
        lambda caps: problem.split_objective(_compute_statistics_of_caps(problem.histogram, caps), n),
        best_choice.cap,
        1.0,
        find_largest_cap(problem),
        # A rounding more, so that the best cap itself is never beyond it.
        best_choice.total * (1.0 + excess) * (1.0 + 1e-12),
    )
    return int(smallest_cap), int(largest_cap)


def find_largest_cap(problem: BiasProblem) -> float:
    """Return the cap in rows beyond which (*) stays the same: the largest size, or n if the bias reads tau_0 alone."""
    histogram = problem.histogram
    return float(histogram.num_rows if problem.bias.needs_only_the_fraction else histogram.max_size)
