"""What a person chooses on the page "Learning under a bound": everything but the data.

The questions themselves are `optimal_cap` (for a histogram) and `population` (for a power law).
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace

from dpcore.common.checks import EPSILON_RANGE, Problems
from dpcore.common.text_fields import build_from
from dpcore.contributions import MAX_SIZE, ContributionHistogram
from dpcore.learning.bias_bounds import BiasTerm
from dpcore.learning.error_bound import MAX_VC_DIMENSION, PrivacyTerm
from dpcore.learning.optimal_cap import BiasProblem
from dpcore.learning.participation import ALPHA_RANGE, PowerLaw
from dpcore.learning.participation_sample import MAX_SIMULATED_ROWS
from dpcore.learning.population import PopulationProblem

MAX_DRAWS = 1000

PRIVACY_CONSTANT = 100.0
"""C to begin with: d^2 for d = 10. The error of output perturbation grows with the squared dimension of the model
(Chaudhuri et al. 2011, section 4; its other constants are at 1 here); C = 1 is that of a model of one number."""

ASSUMPTIONS = (
    "Neighbouring data sets differ in one user's presence, with all their rows; the learner is ε-differentially "
    "private on the rows that are kept",
    "Losses lie in [0, 1]; rows are drawn independently, first a user, then a row of that user",
    "The constants that O(·) hides are those entered: the excess risk compares bounds, it promises no accuracy",
    "Var(H), d and the privacy term are what you enter; none is read from the data",
    "δ is the probability that the excess risk is larger, not the δ of (ε, δ)-differential privacy",
    "The best bound is computed from the data. Unless these are public it is private too: to use it in a "
    "release, take it from public data or choose it privately",
)
"""What the answers rest on; sentences without their full stop."""

WITHOUT_SHARES = {
    BiasTerm.WORST_CASE: BiasTerm.LOG_KEPT,
    BiasTerm.CHI_SQUARED: BiasTerm.VARIANCE_KEPT,
    BiasTerm.TIGHTEST: BiasTerm.PROPOSITION_1,
}
"""The paper's bound with the same knowledge of Var(H), for samples of which only the share kept is known."""


NOT_ABOUT_DATA = ("own_cap", "public_rows", "alpha", "population_rows", "draws")
"""Fields of `LearningParameters` that do not change the answer for the data."""


class PrivacyForm(enum.Enum):
    """The shape of F, the privacy term."""

    QUADRATIC = "quadratic"
    LINEAR = "linear"
    OWN = "own"


@dataclass(frozen=True)
class LearningParameters:
    """The question on the page, without the data.

    Attributes:
        epsilon: Privacy budget of the learner.
        bias: Which bound on the bias.
        loss_variance: Var(H), between 0 (users are alike) and 1/4 (nothing known).
        vc_dimension: d, whole; 0 leaves the finite-sample term out.
        failure_probability: delta of theorem 1.
        privacy_form: Shape of F.
        privacy_constant: C in F; see `PRIVACY_CONSTANT`.
        privacy_power: Power of share / epsilon, only with `PrivacyForm.OWN`.
        finite_sample_constant: Constant of the finite-sample term.
        own_cap: A cap to compare with the best one, in rows per user.
        alpha: Power law of the figures on a population, p_j proportional to j^-(1 + alpha).
        population_rows: n in those figures.
        draws: Samples drawn to reproduce figure 3.
        public_rows: About how many rows there are, a number that may be public, which a private draw of the cap needs;
            None for none. The answer does not depend on it.

    Raises:
        InvalidInput: All problems at once, in the page's words.
    """

    epsilon: float
    bias: BiasTerm = BiasTerm.TIGHTEST
    loss_variance: float = 0.25
    vc_dimension: int = 10
    failure_probability: float = 0.05
    privacy_form: PrivacyForm = PrivacyForm.QUADRATIC
    privacy_constant: float = PRIVACY_CONSTANT
    privacy_power: float | None = None
    finite_sample_constant: float = 1.0
    own_cap: int | None = None
    alpha: float = 0.5
    population_rows: int = 10**6
    draws: int = 100
    public_rows: int | None = None

    def __post_init__(self) -> None:
        with Problems() as problems:
            problems.between(*EPSILON_RANGE, epsilon=self.epsilon)
            problems.between(0.0, 0.25, **{"Var(H)": self.loss_variance})
            problems.whole(0, MAX_VC_DIMENSION, **{"the VC dimension d": self.vc_dimension})
            problems.between(1e-12, 0.999, **{"the failure probability δ": self.failure_probability})
            problems.between(0.0, 1e12, **{"the constant C of the privacy term": self.privacy_constant})
            if self.privacy_form is PrivacyForm.OWN:
                problems.between(1e-3, 10.0, **{"the power of the privacy term": self.privacy_power})
            elif self.privacy_power is not None:
                problems.add("a power goes only with a privacy term of your own")
            finite = {"the constant of the finite-sample term": self.finite_sample_constant}
            problems.between(0.0, 1e6, **finite)
            if self.own_cap is not None:
                problems.whole(1, MAX_SIZE, **{"your own bound": self.own_cap})
            if self.public_rows is not None:
                problems.whole(1, MAX_SIZE, **{"the public number of rows": self.public_rows})
            problems.between(*ALPHA_RANGE, **{"the exponent α": self.alpha})
            problems.whole(10, MAX_SIMULATED_ROWS, **{"the number of rows n": self.population_rows})
            problems.whole(1, MAX_DRAWS, **{"the number of samples": self.draws})

    @property
    def privacy(self) -> PrivacyTerm:
        """F."""
        if self.privacy_form is PrivacyForm.LINEAR:
            return PrivacyTerm.linear(self.privacy_constant)
        if self.privacy_form is PrivacyForm.OWN and self.privacy_power is not None:
            return PrivacyTerm.of_power(self.privacy_power, self.privacy_constant)
        return PrivacyTerm.quadratic(self.privacy_constant)

    @property
    def population_bias(self) -> BiasTerm:
        """The bound on the bias where users' shares are unknown; see `WITHOUT_SHARES`."""
        return WITHOUT_SHARES.get(self.bias, self.bias)

    @property
    def about_data(self) -> LearningParameters:
        """The same without what does not change the answer for the data."""
        plain = LearningParameters(self.epsilon)
        return replace(self, **{name: getattr(plain, name) for name in NOT_ABOUT_DATA})

    @property
    def about_cost(self) -> LearningParameters:
        """The same without what does not change the cost of privacy over n."""
        plain = LearningParameters(self.epsilon)
        return replace(
            self.about_population,
            population_rows=plain.population_rows,
            vc_dimension=plain.vc_dimension,
            finite_sample_constant=plain.finite_sample_constant,
        )

    @property
    def about_population(self) -> LearningParameters:
        """The same without what does not change the figures on a population."""
        draws = LearningParameters(self.epsilon).draws
        return replace(self, own_cap=None, public_rows=None, draws=draws)

    def problem(self, histogram: ContributionHistogram) -> BiasProblem:
        """The question on given data."""
        return build_from(BiasProblem, self, histogram=histogram)

    def population(self, num_rows: int | None) -> PopulationProblem:
        """The question on the population, bias plus privacy noise only, as in the paper's figure 3.

        Args:
            num_rows: n; None for the limit of many rows.
        """
        law, bias = PowerLaw(self.alpha), self.population_bias
        no_sample = {"vc_dimension": 0, "finite_sample_constant": 0.0}
        return build_from(
            PopulationProblem, self, participation=law, num_rows=num_rows, bias=bias, **no_sample
        )
