"""The parameters of the page "Bias curves over τ₀": everything but the data.

The questions that they belong to are `optimal_cap` (for a histogram) and `population` (for a power law).
"""

from __future__ import annotations

from dataclasses import dataclass

from dpcore.common import parameters
from dpcore.common.parameters import CARD, LINE, TAB, Option, Parameters, of_data, own_bound, public
from dpcore.common.text_fields import build_from
from dpcore.contributions import MAX_SIZE, ContributionHistogram
from dpcore.learning.bias_bounds import BiasTerm
from dpcore.learning.optimal_cap import MAX_VC_DIMENSION, BiasProblem, PrivacyTerm
from dpcore.learning.participation import ALPHA_RANGE, MAX_SIMULATED_ROWS, PowerLaw
from dpcore.learning.population import PopulationProblem

MAX_DRAWS = 1000

ASSUMPTIONS = (
    "Neighbouring data sets differ by one user with all their rows; the learner is ε-differentially private on the "
    "rows that are kept",
    "Losses lie in [0, 1]; rows are drawn independently, first a user, then a row of that user",
    "The constants that O(·) hides, Var(H), d and the privacy term are those entered: the excess risk compares bounds, "
    "it promises no accuracy",
    "δ is the probability that the excess risk is larger, not the δ of (ε, δ)-differential privacy",
    "The best bound is as private as the data: for a release, take it from public data or choose it privately",
)
"""Sentences without their full stop."""

FALLBACK_BY_TERM = {
    BiasTerm.WORST_CASE: BiasTerm.LOG_KEPT,
    BiasTerm.CHI_SQUARED: BiasTerm.VARIANCE_KEPT,
    BiasTerm.TIGHTEST: BiasTerm.PROPOSITION_1,
}
"""The paper's bound with the same knowledge of Var(H) if only the share kept is known."""


class PrivacyForm(Option):
    """The shape of F, the privacy term."""

    QUADRATIC = "quadratic", "Quadratic"
    LINEAR = "linear", "Linear"
    OWN = "own", "Power"


class CapUnit(Option):
    """The unit of the horizontal axis."""

    FRACTION = "tau_0", "τ₀"
    ROWS = "rows", "Rows"


BIAS_TERMS = (BiasTerm.TIGHTEST, *(term for term in BiasTerm if term is not BiasTerm.TIGHTEST))
"""The bounds on the bias in the order of the list."""
NAME_BY_TERM = {term: f"{term.title} ({term.way_numerals})" for term in BIAS_TERMS}
TERMS_WITH_VARIANCE = tuple(term for term in BIAS_TERMS if term.needs_variance)


# Of the public fields, bias, privacy term and constants describe the learner and the theorem, which are fixed before
# the data are seen. The others can hold what a person measured on the data: how much users differ, a cap, how
# uneven the users are, how many rows there are.
@dataclass(frozen=True)
class LearningParameters(Parameters):
    """The parameters of the page Learning: everything but the data."""

    bias: BiasTerm = public.choice(BiasTerm.TIGHTEST, "Limit on the bias", NAME_BY_TERM, uses_select_box=True)
    """Stands in for the bias that a bound on rows causes; see *All bounds on the bias*."""
    loss_variance: float = of_data.number(
        0.25,
        "Users differ, Var(H)",
        (0.0, 0.25),
        name="Var(H)",
        slider=(0.0, 0.25, 0.005),
        format="%.3f",
        width=150,
        place=LINE,
        enabled_with=("bias", TERMS_WITH_VARIANCE),
    )
    """Variance of the expected loss between users. 0: users are alike; 1/4: nothing is known."""
    privacy_form: PrivacyForm = public.choice(PrivacyForm.QUADRATIC, "Privacy term F")
    """How the error grows with the largest share of a user. Quadratic: output perturbation."""
    # C = d^2 for d = 10: the error of output perturbation grows with the squared dimension of the model (Chaudhuri et
    # al. 2011, section 4; its other constants are at 1 here). C = 1 is the constant of a model of one number.
    privacy_constant: float = public.number(100.0, "Noise factor C", (0.0, 1e12))
    """Multiplies the privacy term. In output perturbation it is the squared dimension of the model."""
    privacy_power: float | None = public.number(
        None, "Power of F", (1e-3, 10.0), initial=1.5, only_with=("privacy_form", (PrivacyForm.OWN,))
    )
    """F = C (largest share / ε) to this power."""
    vc_dimension: int = public.number(10, "VC dimension d", (0, MAX_VC_DIMENSION))
    """The VC dimension of the models that the learner chooses from. 0 leaves the finite-sample term out."""
    finite_sample_constant: float = public.number(1.0, "Finite-sample constant", (0.0, 1e6))
    """Hidden by O(·) in the paper; 1 unless you know better."""
    failure_probability: float = public.number(0.05, "Failure probability δ", (1e-12, 0.999))
    """The limit holds with probability 1 − δ; not the δ of (ε, δ)-differential privacy."""
    own_bound: int | None = own_bound(
        "rows per user", former_name="own_cap", limits=(1, MAX_SIZE), placeholder="rows"
    )
    """A bound that you use today."""
    # Public by what it is: the sentence beside it says so, and a guess will do.
    public_rows: int | None = public.number(
        None,
        "Rows in all, about",
        (1, MAX_SIZE),
        name="the public number of rows",
        is_renewed=True,
        width=230,
        place=CARD,
    )
    """A public number for the private draw, not from these data."""
    cap_unit: CapUnit = public.choice(CapUnit.FRACTION, "Axis", place=TAB)
    """τ₀ is the bound as a share of all rows."""
    alpha: float = of_data.number(0.5, "α of the population", ALPHA_RANGE, step=0.25, place=TAB)
    """User j contributes a share pⱼ ∝ j^−(1+α) of the rows."""
    population_rows: int = of_data.number(
        10**6, "Rows n in a sample", (10, MAX_SIMULATED_ROWS), name="the number of rows n", place=TAB
    )
    """From 10 to 10,000,000."""
    draws: int = public.number(
        100, "Samples to draw", (1, MAX_DRAWS), name="the number of samples", place=TAB
    )
    """The paper averages 100."""

    @property
    def privacy(self) -> PrivacyTerm:
        """Return the privacy term F of the chosen form.

        It is quadratic, or has the entered power, which is 1 if none was entered.
        """
        if self.privacy_form is PrivacyForm.QUADRATIC:
            return PrivacyTerm(constant=self.privacy_constant)
        return PrivacyTerm(self.privacy_power or 1.0, self.privacy_constant, log_power=0.0)

    @property
    def population_bias(self) -> BiasTerm:
        """Return the chosen bias term, or the paper's in its place if it needs users' shares, which are unknown."""
        return FALLBACK_BY_TERM.get(self.bias, self.bias)

    @property
    def cost_parameters(self) -> LearningParameters:
        """Return the parameters with defaults for all fields that the cost of privacy over n ignores: a cache key."""
        return self.population_parameters.without("population_rows", "vc_dimension", "finite_sample_constant")

    @property
    def population_parameters(self) -> LearningParameters:
        """Return the parameters with defaults for all fields that figures on a population ignore: a cache key."""
        return self.without("own_bound", "public_rows", "draws")

    def build_problem(self, histogram: ContributionHistogram) -> BiasProblem:
        """Return the problem of the best cap for the users of a histogram."""
        return build_from(BiasProblem, self, histogram=histogram)

    def build_population_problem(self, num_rows: int | None) -> PopulationProblem:
        """Return the problem on the population, bias plus privacy noise only, as in the paper's figure 3.

        Args:
            num_rows: n; None for the limit of many rows.
        """
        power_law, bias_term = PowerLaw(self.alpha), self.population_bias
        settings_without_sample_terms = {"vc_dimension": 0, "finite_sample_constant": 0.0}
        return build_from(
            PopulationProblem,
            self,
            participation=power_law,
            num_rows=num_rows,
            bias=bias_term,
            **settings_without_sample_terms,
        )


FIELDS_BESIDE_DATA = parameters.list_fields_beside_data(LearningParameters)
"""Fields that do not change the answer for the data."""
