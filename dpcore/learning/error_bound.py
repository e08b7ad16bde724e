"""The error bound of a capped private learner, whoever contributes: its settings, its parts, its best choice.

Amin et al. 2019, theorem 1: with probability at least 1 - delta, the risk of what an epsilon-DP empirical
risk minimiser returns exceeds the best possible by at most

    2 * bias  +  finite-sample term  +  F(largest share, 1 / epsilon, 3 / delta),                          (*)

where neighbours differ in one user's presence, losses lie in [0, 1] and rows are drawn independently (first a
user, then a row of theirs). delta is the probability that the guarantee fails, not the delta of
(epsilon, delta)-DP. O() constants are 1 unless said otherwise, so (*) compares caps; it promises no accuracy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dpcore.common.branch_and_bound import Minimum, Split
from dpcore.common.certificate import Certificate
from dpcore.common.checks import EPSILON_RANGE, Problems
from dpcore.common.privacy import Neighbours
from dpcore.contributions import FloatArray
from dpcore.learning.bias_bounds import BiasTerm, CapStatistics, evaluate

NEIGHBOURS = Neighbours.ADD_OR_REMOVE_USER

THEOREM_FACTOR = 2.0
"""Theorem 1 carries the bias twice: once for the hypothesis returned, once for the best one."""

TOLERANCE = 1e-6
"""Relative gap to which the best cap is proved."""

MAX_VC_DIMENSION = 10**9


@dataclass(frozen=True)
class PrivacyTerm:
    """F of definition 5: constant * ln(3 / delta)^log_power * (largest share / epsilon)^power.

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
        with Problems() as problems:
            problems.between(0.0, 1e12, constant=self.constant)
            problems.between(1e-3, 10.0, power=self.power)
            problems.between(0.0, 10.0, log_power=self.log_power)

    @classmethod
    def quadratic(cls, constant: float = 1.0) -> PrivacyTerm:
        """C ln^2(3 / delta) (share / epsilon)^2: output perturbation (Chaudhuri et al. 2011, lemma 3)."""
        return cls(power=2.0, constant=constant, log_power=2.0)

    @classmethod
    def linear(cls, constant: float = 1.0) -> PrivacyTerm:
        """C share / epsilon."""
        return cls(power=1.0, constant=constant, log_power=0.0)

    @classmethod
    def of_power(cls, power: float, constant: float = 1.0) -> PrivacyTerm:
        """C (share / epsilon)^power."""
        return cls(power=power, constant=constant, log_power=0.0)

    def error(self, share: npt.ArrayLike, epsilon: float, failure_probability: float) -> FloatArray:
        """Return F at the given largest shares, which never falls as they grow."""
        factor = self.constant * math.log(3.0 / failure_probability) ** self.log_power
        return np.asarray(factor * (np.asarray(share, dtype=np.float64) / epsilon) ** self.power)


@dataclass(frozen=True, kw_only=True)
class BoundSettings:
    """How the error of a capped learner is bounded: all of (*) but who contributes what.

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
        """Add to ``problems`` every fault of the contributors; a subclass that has some overrides this."""

    def error_parts(self, statistics: CapStatistics, num_rows: float) -> ErrorParts:
        """Return (*) in its parts for the statistics of caps; an infinite n leaves the finite-sample term out."""
        keeps_rows = statistics.kept_share > 0.0
        kept_share = np.where(keeps_rows, statistics.kept_share, 1.0)
        finite = np.zeros(kept_share.shape)
        if math.isfinite(num_rows):
            log_term = self.vc_dimension * math.log(num_rows / self.failure_probability)
            finite = self.finite_sample_constant * np.sqrt(log_term / (kept_share * num_rows))
        noise = self.privacy.error(
            np.where(keeps_rows, statistics.max_share, 1.0), self.epsilon, self.failure_probability
        )
        return ErrorParts(
            bias=np.asarray(THEOREM_FACTOR * evaluate(self.bias, statistics, self.loss_variance)),
            finite_sample=np.where(keeps_rows, finite, np.inf),
            privacy=np.where(keeps_rows, noise, np.inf),
        )

    def split(self, statistics: CapStatistics, num_rows: float) -> Split:
        """Return (*) as a falling and a rising part, for `dpcore.common.branch_and_bound`."""
        error_parts = self.error_parts(statistics, num_rows)
        # The bias is a difference of sums: for the proof it is taken as low as rounding may have left it.
        lower = THEOREM_FACTOR * evaluate(self.bias, statistics.rounded_down(), self.loss_variance)
        return Split(
            error_parts.bias + error_parts.finite_sample,
            lower + error_parts.finite_sample,
            error_parts.privacy,
        )


@dataclass(frozen=True)
class ErrorParts:
    """The bound (*) in its parts, each of the shape of the caps; all infinite where nothing is kept.

    Attributes:
        bias: Twice the bound on the bias, as theorem 1 carries it.
        finite_sample: C sqrt(d log(n / delta) / n_tau).
        privacy: F(largest share, 1 / epsilon, 3 / delta).
    """

    bias: FloatArray
    finite_sample: FloatArray
    privacy: FloatArray

    @property
    def total(self) -> FloatArray:
        """Return all three together: excess risk, at most (losses lie in [0, 1], so above 1 it says nothing)."""
        return np.asarray(self.bias + self.finite_sample + self.privacy)


@dataclass(frozen=True)
class LearningCap:
    """The best cap.

    Attributes:
        fraction: tau_0 = tau / n.
        cap: tau in rows per user; whole from `optimal_cap.best_cap`, real from `population.best_fraction`.
        bias: Twice the bound on the bias there.
        finite_sample: Finite-sample term there.
        privacy: Privacy term there.
        kept_share: n_tau / n there.
        users_capped: Users with more rows than the cap.
        certificate: The bound (*) beside what no cap of this kind can go below.
        complete: Whether the search went through, rather than being stopped.
        stop_reason: How the search ended, a sentence.
    """

    fraction: float
    cap: float
    bias: float
    finite_sample: float
    privacy: float
    kept_share: float
    users_capped: int
    certificate: Certificate
    complete: bool
    stop_reason: str

    @property
    def total(self) -> float:
        """Return the bound (*) at the cap."""
        return self.bias + self.finite_sample + self.privacy

    @property
    def max_contributions(self) -> int:
        """Return the cap as a whole number of rows per user, rounded down where it is real."""
        return math.floor(self.cap)


def build_cap(
    settings: BoundSettings,
    statistics: CapStatistics,
    minimum: Minimum,
    num_rows: float,
    cap: float,
    stop_reason: str,
) -> LearningCap:
    """Build the `LearningCap` at the minimum of a search; its parts are computed afresh."""
    error_parts = settings.error_parts(statistics, num_rows)
    return LearningCap(
        fraction=float(statistics.fraction),
        cap=cap,
        bias=float(error_parts.bias),
        finite_sample=float(error_parts.finite_sample),
        privacy=float(error_parts.privacy),
        kept_share=float(statistics.kept_share),
        users_capped=round(float(statistics.users_capped)),
        certificate=Certificate(
            float(error_parts.total),
            minimum.lower_bound,
            "lower limits on intervals that cover every bound of this kind",
        ),
        complete=not minimum.stop_reason,
        stop_reason=stop_reason,
    )


def describe_search(minimum: Minimum) -> str:
    """Say in a sentence how the search ended."""
    if minimum.stop_reason:
        return f"The search {minimum.stop_reason}: this is the best bound so far, with the proof so far."
    return f"Branch and bound settled every bound on rows after looking at {minimum.evaluations:,}."
