"""A mean whose contribution counts are private too.

Neighbours add or remove a whole user. `dpcore.mean` follows Epasto et al. 2020, where everybody's number of rows is
public. Here the sum of weights n_h = sum_l min(h, s_l) is private and must be released as well. With weights w =
min(h, s_l) / s_l (or 1 for at most h rows of a user) and values y in [0, B], the pair

    P = sum w y,    N = sum w (B - y)

changes in L1 by B min(h, s_l) <= B h when user l comes or goes: both take Laplace noise of scale B h /
epsilon without splitting epsilon, and the mean is B P / (P + N). The usual route releases a numerator and a
denominator with half of epsilon each; `ReleasedSums` has that too, to compare, and for the libraries that split a
budget. The pair changes by at most B h in L2 as well, so Gaussian noise for B h covers both.

The errors here are **delta-method approximations**: the ratio is linearised at its expectation, which is good
while the noise is small against n_h. A test compares them with a simulation of the mechanism. `dpcore.mean.moved_mean`
has the error of the ratio itself. The module is ours; the paper has only the public-count setting.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import Any

from dpcore.common.checks import Problems
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Neighbours
from dpcore.common.programs import MEAN_SPLITTING_PROGRAMS, Program
from dpcore.common.strict_json import convert_certificate
from dpcore.contributions import ContributionHistogram
from dpcore.mean import public_counts

NEIGHBOURS = Neighbours.ADD_OR_REMOVE_USER
ERROR_APPROXIMATION_NAME = "delta-method approximation"
LAPLACE_PAIR_ASSUMPTION = (
    "The release has Σ w (y − L) and Σ w (U − y), each with Laplace noise of scale B × h / ε. Together they change by "
    "at most B × h in L1, so ε is not split"
)
LINEARISED_ASSUMPTION = (
    "Bounds are compared by the delta-method approximation, good while noise is small against the rows"
)
ASSUMPTIONS = (
    "Values and the number of rows of each user are private; so is a bound computed from them. The guarantee holds for "
    "a bound chosen without these data, or chosen privately",
    "Neighbouring data sets differ by one user, added or removed with all their rows",
    public_counts.INDEPENDENT_ROWS_ASSUMPTION,
    public_counts.CLAMPED_ASSUMPTION,
    LAPLACE_PAIR_ASSUMPTION,
    LINEARISED_ASSUMPTION,
    public_counts.UPPER_BOUND_ASSUMPTION,
)
"""Assumptions of this module; sentences without their full stop."""


class ReleasedSums(enum.Enum):
    """The pair of sums that is released with noise, from which the mean is computed."""

    PAIR = "sum of w y and sum of w (B - y), one epsilon for both"
    SPLIT = "sum of w y and sum of w, half of epsilon each"
    CENTRED_SPLIT = "sum of w (y - B/2) and sum of w, half of epsilon each"


def choose_released_sums(program: Program) -> ReleasedSums:
    """Choose the sums that a program releases: `CENTRED_SPLIT` if it splits the budget, else `PAIR`."""
    return ReleasedSums.CENTRED_SPLIT if program in MEAN_SPLITTING_PROGRAMS else ReleasedSums.PAIR


@dataclass(frozen=True)
class PrivateCountsProblem(public_counts.MeanProblem):
    """The problem of releasing the mean of all rows with epsilon-DP under add or remove one user.

    It differs from a `dpcore.mean.MeanProblem` by a factor on the privacy variance only, so every function of
    `dpcore.mean` accepts it; the errors are then delta-method approximations.

    Attributes:
        histogram: Rows per user; private in this setting, and so is every choice computed from it.
        epsilon: Privacy budget, above 0.
        value_bound: B: values are clamped to [0, B] (move them first where they start elsewhere), above 0.
        value_variance: sigma^2, the variance of one row, at least 0, in the values' unit squared.
        mean_above_lower: mu in [0, B], a guess of the mean less L, used only for the error, or None for the mean with
            the largest error.
        released_sums: The pair of sums that is released.

    Raises:
        InvalidInput: A parameter is not finite or out of its range; all problems at once.
    """

    mean_above_lower: float | None = None
    released_sums: ReleasedSums = ReleasedSums.PAIR

    def __post_init__(self) -> None:
        """Raise `InvalidInput` with every parameter that is out of its range, those of `MeanProblem` among them."""
        with Problems() as problems:
            is_release = problems.of_kind(ReleasedSums, released_sums=self.released_sums)
            with problems.collecting():
                problem_arguments = self.histogram, self.epsilon, self.value_bound, self.value_variance
                noise_fields: dict[str, Any] = {"mechanism": self.mechanism, "delta": self.delta}
                public_counts.MeanProblem(*problem_arguments, program=self.program, **noise_fields)
            if self.mean_above_lower is not None:
                # If the value bound itself was refused, any mean is accepted here.
                max_mean = self.value_bound if len(problems.entries) == (not is_release) else math.inf
                problems.between(0.0, max_mean, mean_above_lower=self.mean_above_lower)
        super().__post_init__()  # Check again with the factor in place: the ratio must stay in float64.

    @property
    def proof_limit(self) -> str:
        """Return that the error is approximate as the end of a sentence: nothing is proved of the exact error."""
        return f", for the {ERROR_APPROXIMATION_NAME} of the error"

    @property
    def num_aggregates(self) -> int:
        """Return 2: both sums are released with noise."""
        return 2

    @property
    def _split_variance(self) -> float:
        """Return q, the variance of a noise of the split over that of the whole budget.

        Half of epsilon doubles the scale, half of rho doubles the variance. PipelineDP composes two Gaussian noises
        exactly, which is the same. BigQuery's noise has the share of an aggregate already.
        """
        if self.program is Program.BIGQUERY:
            return 1.0
        return 4.0 if self.noise.kind is NoiseKind.LAPLACE else 2.0

    @property
    def privacy_factor(self) -> float:
        """Return the variance that privacy adds to the mean, divided by V = `noise`.compute_variance(B h) / n_h^2.

        With p = mu / B and q = `_split_variance`, which is 4 for Laplace noise, the linearised error of the mean is,
        from noise Z1 on the first and Z2 on the second,
        PAIR: ((1 - p) Z1 - p Z2) / n_h, so p^2 + (1 - p)^2, from 1/2 to 1;
        SPLIT: (Z1 - mu Z2) / n_h with sensitivities B h and h, so q (1 + p^2);
        CENTRED_SPLIT: sensitivities B h / 2 and h, so q (1 + (2 p - 1)^2) / 4: with Laplace noise twice that of PAIR,
        with Gaussian noise the same. Whole noise of a count, as Tumult draws it, is taken as real.
        """
        mu = self.mean_above_lower
        return self._factor_at(None if mu is None else mu / self.value_bound)

    def _factor_at(self, p: float | None) -> float:
        """Return `privacy_factor` for the mean p B, p in [0, 1]; the largest over all these means for None."""
        if self.released_sums is ReleasedSums.PAIR:
            return 1.0 if p is None else p**2 + (1.0 - p) ** 2
        if self.released_sums is ReleasedSums.SPLIT:
            return self._split_variance * (1.0 + (1.0 if p is None else p**2))
        return self._split_variance / 4.0 * (1.0 + (1.0 if p is None else (2.0 * p - 1.0) ** 2))

    @property
    def _unit_noise_variance(self) -> float:
        """Return the variance that privacy adds if one user holds all the weight, by the delta method."""
        return super()._unit_noise_variance * self.privacy_factor

    @property
    def relative_noise(self) -> float:
        """Return the largest variance of the noise over B^2 if one user holds all the weight."""
        return super().relative_noise * self._factor_at(None)

    @property
    def noise_sentence(self) -> str:
        """Return the assumption about the two released sums, their noise and the budget, without its full stop."""
        noise_name = f"{self.noise.kind.value} noise"
        if self.released_sums is ReleasedSums.PAIR:
            is_laplace = self.noise.kind is NoiseKind.LAPLACE
            norm_name, budget_phrase = ("L1", "ε") if is_laplace else ("L2", "the budget")
            scale_text = self.write_scale(1.0, "B × h")
            return (
                f"The release has Σ w (y − L) and Σ w (U − y), each with {noise_name} of {scale_text}. Together they "
                f"change by at most B × h in {norm_name}, so {budget_phrase} is not split"
            )
        scale_factor = math.sqrt(self._split_variance)
        hidden_count_phrase = " and a hidden count of users" if self.program is Program.BIGQUERY else ""
        scale_text = self.write_scale(scale_factor / 2.0, "B × h")
        return (
            f"The release has Σ w (y − (L + U)/2) with {noise_name} of {scale_text}, and Σ w with "
            f"{self.write_scale(scale_factor, 'h')}: {self.program.value} splits the budget between "
            f"them{hidden_count_phrase}"
        )


def compute_relative_noise(epsilon: float, library_program: Program, delta: float | None = None) -> float:
    """Compute the largest variance of a program's noise on a mean over B^2 if one user holds all the weight.

    The noise is Gaussian if there is a ``delta``, else Laplace.
    """
    noise_kind = NoiseKind.LAPLACE if delta is None else NoiseKind.GAUSSIAN
    noise_fields: dict[str, Any] = {"mechanism": noise_kind, "delta": delta, "program": library_program}
    noise_fields["released_sums"] = choose_released_sums(library_program)
    single_row = ContributionHistogram.from_counts([1])
    return PrivateCountsProblem(single_row, epsilon, 1.0, 0.25, **noise_fields).relative_noise


def list_choice_entries(
    best_choice: public_counts.CapChoice | public_counts.SmoothChoice,
    noise_kind: NoiseKind = NoiseKind.LAPLACE,
    standard_error: float | None = None,
) -> dict[str, Any]:
    """Return the JSON entries of one choice: error, its parts, scale of the noise, and certificate.

    The variances are those before a mean is moved into its range; ``standard_error`` is that after it, if it is given.
    """
    scale_name = "laplace_scale" if noise_kind is NoiseKind.LAPLACE else "gaussian_deviation"
    return {
        "standard_error": best_choice.standard_error if standard_error is None else standard_error,
        "variance": best_choice.squared_error,
        "sampling_variance": best_choice.sampling_variance,
        "privacy_variance": best_choice.privacy_variance,
        **({"shift": best_choice.shift} if best_choice.shift else {}),
        # What goes into the mechanism: Laplace noise of scale b has variance 2 b^2.
        scale_name: math.sqrt(best_choice.privacy_variance / noise_kind.unit_variance),
        **convert_certificate(best_choice.certificate),
    }
