"""The parameters of a mean, everything but the data, as one validated object, and its assumptions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dpcore.common.checks import VALUE_BOUND_RANGE, Problems
from dpcore.common.noise_error import ASSUMED_USER_SHARE, NoiseKind
from dpcore.common.parameters import (
    LINE,
    Option,
    Parameters,
    gaussian_delta,
    noise_kind,
    of_data,
    of_values,
    own_bound,
    program_choice,
    public,
    range_end,
)
from dpcore.common.privacy import Disclosure
from dpcore.common.programs import MEAN_SPLITTING_PROGRAMS, Program
from dpcore.common.wording import format_entered, format_number
from dpcore.contributions import MAX_SIZE, ContributionHistogram
from dpcore.dataset import Dataset
from dpcore.mean import private_counts, public_counts
from dpcore.mean.moved_mean import find_mean
from dpcore.mean.private_counts import PrivateCountsProblem
from dpcore.mean.public_counts import INDEPENDENT_ROWS_ASSUMPTION, MeanProblem, Target
from dpcore.mean.table_values import ValueSummary


class VarianceSource(Option):
    """The source of sigma^2, the variance of one row's value."""

    WORST_CASE = "worst", "Worst case"
    FROM_VALUES = "values", "From values"
    ENTERED = "entered", "Entered"


class Likeness(Option):
    """The source of rho, the share of sigma^2 that lies between users; for independent rows rho is 0."""

    INDEPENDENT = "none", "Not at all"
    ENTERED = "entered", "Assumed"
    FROM_VALUES = "values", "From values"


class Counts(Option):
    """The protection of the number of rows of each user: public to everybody, or private as the values."""

    PUBLIC = "public", "Public"
    PRIVATE = "private", "Private too"


class Clamp(Option):
    """What is clamped: each row to [L, U], or what each user deviates from the middle of [L, U], all rows together."""

    ROWS = "rows", "Rows"
    USERS = "users", "Users' deviations"


def choose_defaults(dataset: Dataset) -> Mapping[str, Any]:
    """Return the defaults of `MeanParameters` for these data, by field.

    The release is to come close to the mean of this very table. Public values are read. Data that are not public get
    the private side: how many rows each user has is protected too, sigma^2 is the worst case, and rho is assumed.
    Public counts, or what is read off private values, put into the bound what no epsilon covers. A DP release is made
    of data whose users are to be protected, and has no values. If values decide which rows count, counts are private.
    """
    is_public = dataset.disclosure is Disclosure.PUBLIC
    reads_values = is_public and dataset.values is not None
    return {
        "counts": Counts.PUBLIC if is_public and not dataset.drops_missing else Counts.PRIVATE,
        "variance_source": VarianceSource.FROM_VALUES if reads_values else VarianceSource.WORST_CASE,
        "target": Target.TABLE,
        "likeness": Likeness.FROM_VALUES if reads_values else Likeness.ENTERED,
    }


@dataclass(frozen=True)
class MeanParameters(Parameters):
    """The parameters of the page Mean: everything but the data.

    Omitted fields mean the same as before users could differ: the mean of a population whose rows are independent, as
    in Epasto et al. 2020. Page and call take the defaults of `choose_defaults`.
    """

    lower: float = range_end(0.0, "Lowest value L", width=128, shared="lower", place=LINE)
    """Values below are raised to it. Public: from what the quantity is, not from data."""
    upper: float = range_end(1.0, "Highest value U", width=128, shared="upper", place=LINE)
    """Values above are lowered to it. B = U − L sets how much noise is needed."""
    clamp: Clamp = public.choice(Clamp.ROWS, "Clamp", shared="clamp")
    """Rows: each to [L, U]. Users' deviations: a user's total deviation from the middle of [L, U], at most
    h (U − L)/2 for a bound of h rows. Users with fewer rows may lie farther out, at the same noise."""
    target: Target = public.choice(Target.POPULATION, "The mean of", shared="target")
    """The mean of the rows at hand, or of the population that users come from."""
    counts: Counts = public.choice(Counts.PUBLIC, "Contribution counts are")
    """Public: everybody may know how many rows each user has; neighbours differ in one user's values. Private too:
    neighbours add or remove one user."""
    variance_source: VarianceSource = public.choice(
        VarianceSource.WORST_CASE,
        "What is known of the values",
        name="what is known of the values",
        shared="variance_source",
    )
    """How much they scatter, σ²; B²/4 in the worst case. From values is a private look if they are private."""
    value_variance: float | None = of_values.number(
        None,
        "σ² (unit squared)",
        name="σ²",
        initial=0.1,
        width=170,
        shared="value_variance",
        only_with=("variance_source", (VarianceSource.ENTERED,)),
    )
    """In the values' unit, squared; if users are clamped, before clamping."""
    likeness: Likeness = public.choice(Likeness.INDEPENDENT, "Rows of one user are alike", shared="likeness")
    """The share ρ of the variance between users; 0 in the paper. From values is a private look if they are private."""
    user_share: float = of_data.number(
        ASSUMED_USER_SHARE,
        "Share ρ of the variance between users",
        (0.0, 1.0),
        name="the share between users",
        slider=(0.0, 1.0, 0.05),
        width=300,
        shared="user_share",
        only_with=("likeness", (Likeness.ENTERED, Likeness.FROM_VALUES)),
    )
    """An assumption: purchases had 0.3 to 0.5, ratings and waiting times 0 to 0.2."""
    own_bound: int | None = own_bound(
        "rows per user", former_name="own_cap", limits=(1, MAX_SIZE), placeholder="rows", width=180
    )
    """A bound that you use today."""
    mechanism: NoiseKind = noise_kind()
    """Laplace for ε-DP, Gaussian for (ε, δ)-DP."""
    delta: float | None = gaussian_delta(None, "mechanism", place=LINE)
    """Probability that ε does not hold. Choose it well below 1 / (number of users)."""
    program: Program = program_choice(width=160, place=LINE)
    """The errors are those of its noise, and *Get code* opens with it."""

    def _check_together(self, range_problems: Problems) -> None:
        """Add problems of fields together: range, sigma^2 for it, and a program that cannot clamp users."""
        if self.clamp is Clamp.USERS and self.program in MEAN_SPLITTING_PROGRAMS:
            range_problems.add(
                f"{self.program.value} cannot clamp users' deviations",
                remedy="Choose OpenDP or plain Python, or clamp rows",
            )
        if range_problems.ascending(**{"lowest value L": self.lower, "highest value U": self.upper}):
            range_problems.between(*VALUE_BOUND_RANGE, **{"upper − lower": self.value_bound})
            if self.value_variance is not None:
                self._check_variance(range_problems, self.value_variance)

    def _check_variance(self, problems: Problems, variance: float) -> None:
        """Check that the entered variance is at least 0 and, if rows are clamped, possible for values in [L, U]."""
        if problems.non_negative(**{"σ²": variance}):
            # If users' deviations are clamped, the variance is that of values that may lie outside [L, U].
            max_variance = self.largest_variance
            if self.clamp is Clamp.ROWS and variance > max_variance * (1.0 + 1e-12):
                lower_text, upper_text = format_entered(self.lower), format_entered(self.upper)
                problems.add(
                    f"values between {lower_text} and {upper_text} cannot vary by more than (upper − lower)²/4 = "
                    f"{format_entered(max_variance)}; got {format_entered(variance)}"
                )

    @cached_property
    def value_bound(self) -> float:
        """Return B = U - L, in the values' unit."""
        return self.upper - self.lower

    @cached_property
    def largest_variance(self) -> float:
        """Return B^2 / 4, which no values in [L, U] can exceed (Popoviciu's inequality)."""
        return self.value_bound * self.value_bound / 4.0  # 1e300**2 raises, 1e300 * 1e300 is infinite

    def build_problem(
        self, histogram: ContributionHistogram, summary: ValueSummary | None = None
    ) -> MeanProblem:
        """Build the problem that these parameters and data define, with public or private counts.

        Args:
            histogram: Rows per user.
            summary: Summary of the clamped values, for what is to be read off them; if it is None, the worst case and
                the assumed share stand in.

        Returns:
            A `dpcore.mean.private_counts.PrivateCountsProblem` if counts are private.
        """
        value_variance, mean_above_lower = self.largest_variance, None
        if self.variance_source is VarianceSource.ENTERED and self.value_variance is not None:
            value_variance = self.value_variance
        elif self.variance_source is VarianceSource.FROM_VALUES and summary is not None:
            value_variance = min(summary.clamped_values.variance, value_variance)
            mean_above_lower = min(max(summary.clamped_values.mean - self.lower, 0.0), self.value_bound)
        table_values = summary.table_values if summary is not None and self.reads_table(summary) else None
        problem_fields: dict[str, Any] = {"target": self.target, "table_values": table_values}
        problem_fields["user_share"] = self._choose_share(summary) if table_values is None else 0.0
        problem_fields |= {"mechanism": self.mechanism, "delta": self.delta, "program": self.program}
        problem_arguments = histogram, self.epsilon, self.value_bound, value_variance
        if self.counts is Counts.PUBLIC:
            return MeanProblem(*problem_arguments, **problem_fields)
        problem_fields["released_sums"] = private_counts.choose_released_sums(self.program)
        return PrivateCountsProblem(*problem_arguments, mean_above_lower, **problem_fields)

    @property
    def reads_values(self) -> bool:
        """Return True if the variance or the user share is to be computed from the values."""
        return self.variance_source is VarianceSource.FROM_VALUES or self.likeness is Likeness.FROM_VALUES

    def reads_table(self, summary: ValueSummary | None) -> bool:
        """Return True if the error is computed from each user's values, so that nothing is assumed of users.

        False if there are no values (None), or if their mean is so large that the error would not be finite.
        """
        is_read = self.target is Target.TABLE and self.variance_source is VarianceSource.FROM_VALUES
        return is_read and summary is not None and summary.has_finite_error

    def _choose_share(self, summary: ValueSummary | None) -> float:
        """Return rho: 0, the estimate from the values, or, if that is not wanted or undefined, the entered share."""
        if self.likeness is Likeness.INDEPENDENT:
            return 0.0
        share = None if summary is None or self.likeness is Likeness.ENTERED else summary.user_share
        return self.user_share if share is None or math.isnan(share.estimate) else share.clipped_estimate


# --- What the answer assumes then; sentences without their full stop --------------------------------------------------

TABLE_READ_ASSUMPTIONS = (
    "The error is about the mean of these rows before clamping; nothing is assumed of users",
    "A bound keeps rows at random; a library that keeps the first rows has another error",
)
EXCHANGEABLE_ASSUMPTIONS = (
    "The error is about the mean of the rows in this table",
    "The number of a user's rows says nothing about the values, and a bound keeps rows at random",
)
NOTE_BY_PROGRAM = {
    Program.TUMULT: "Tumult keeps the same rows in every run; the error is an average over which rows it keeps",
    Program.BIGQUERY: "A first statement draws the rows; BigQuery's guarantee rests on a clamp of what a user adds",
}
"""How programs bound rows otherwise than by drawing them anew in every run."""
STEP_COUNTED_ASSUMPTION = (
    f"{public_counts.MOVED_INTO_RANGE}. The error counts that; the bound is the best before this step"
)
POPULATION_ASSUMPTION = "The error is about the mean of the population that users come from"


USERS_CLAMPED_ASSUMPTION = (
    "A user's total deviation from the middle of [L, U] is clamped to T = h (U − L)/2; both come from knowledge of the "
    "quantity, not from the data"
)
DEVIATIONS_RELEASED_ASSUMPTIONS = (
    "The release has Σ (B u/2 + z) and Σ (B u/2 − z), u a user's weight and z their deviation",
    "The release has Σ z, z a user's deviation",
)


def list_assumptions(problem: MeanProblem, clamp: Clamp = Clamp.ROWS) -> tuple[str, ...]:
    """Return the assumptions of the problem's answer, sentences without their full stop.

    They are those of public or of private counts. The sentences on users and on the noise are the problem's own, and so
    is that on clamping if users are clamped. At last comes what the program does with rows, if that is special.
    """
    is_private = isinstance(problem, PrivateCountsProblem)
    general_sentences: tuple[str, ...] = (
        private_counts.ASSUMPTIONS if is_private else public_counts.ASSUMPTIONS
    )
    noise_sentence = (
        private_counts.LAPLACE_PAIR_ASSUMPTION if is_private else public_counts.LAPLACE_NOISE_ASSUMPTION
    )
    own_sentences_by_general = {
        INDEPENDENT_ROWS_ASSUMPTION: list_user_assumptions(problem),
        noise_sentence: (problem.noise_sentence,),
    }
    if find_mean(problem) is not None:
        own_sentences_by_general[public_counts.UPPER_BOUND_ASSUMPTION] = (STEP_COUNTED_ASSUMPTION,)
    if clamp is Clamp.USERS:
        scale_text, norm_name = problem.write_scale(1.0, "B × h"), "L1" if problem.delta is None else "L2"
        released_sentence = (
            f"{DEVIATIONS_RELEASED_ASSUMPTIONS[not is_private]}, with {problem.noise.kind.value} noise of "
            f"{scale_text}, as a user "
            f"changes them by at most 2 T = B × h in {norm_name}"
        )
        own_sentences_by_general |= {
            noise_sentence: (released_sentence,),
            public_counts.CLAMPED_ASSUMPTION: (USERS_CLAMPED_ASSUMPTION,),
        }
        if problem.table_values is not None:
            own_sentences_by_general[INDEPENDENT_ROWS_ASSUMPTION] = TABLE_READ_ASSUMPTIONS[:1]
        moved_sentence = public_counts.MOVED_INTO_RANGE.replace("outside [L, U]", "that no users can have")
        general_sentences = tuple(
            sentence.replace(public_counts.MOVED_INTO_RANGE, moved_sentence) for sentence in general_sentences
        )
    sentences = [
        text for sentence in general_sentences for text in own_sentences_by_general.get(sentence, (sentence,))
    ]
    return (*sentences, *(text for program, text in NOTE_BY_PROGRAM.items() if program is problem.program))


def list_user_assumptions(problem: MeanProblem) -> tuple[str, ...]:
    """Return the assumptions of the error about users and their rows, and the mean that it is about."""
    if problem.table_values is not None:
        return TABLE_READ_ASSUMPTIONS
    likeness_sentence = INDEPENDENT_ROWS_ASSUMPTION
    if problem.user_share:
        user_share_text = format_number(problem.user_share, 2)
        likeness_sentence = f"A share of {user_share_text} of a row's variance lies between users"
    if problem.target is Target.TABLE:
        return (*EXCHANGEABLE_ASSUMPTIONS, likeness_sentence)
    return (likeness_sentence, POPULATION_ASSUMPTION) if problem.user_share else (likeness_sentence,)
