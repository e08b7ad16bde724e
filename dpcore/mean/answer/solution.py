"""Solve a mean on a data set: the best choices and their error curves; and the solution in sentences and numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpcore import mean
from dpcore.answer import axes, standard
from dpcore.answer.against import BoundComparison
from dpcore.answer.answer import BIAS, NOISE, SAMPLING, ErrorPart, Number, build_error_parts
from dpcore.answer.axes import RANGE_SOURCE, ROWS_UNIT, OutsideCounts
from dpcore.common import wording
from dpcore.common.checks import EPSILON_RANGE
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Neighbours
from dpcore.common.programs import Program, describe_program, find_noise
from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset
from dpcore.mean import worst_values
from dpcore.mean.answer.users import UNIT, UsersSolution, propose_clamp, solve_users
from dpcore.mean.models import interval_around
from dpcore.mean.parameters import Clamp, MeanParameters, VarianceSource
from dpcore.mean.private_counts import NEAR_END, ROUGH_NOISE, PrivateCountsProblem, ReleasedSums
from dpcore.mean.table_values import ClampedValues, ValueSummary

MEAN_OVER_USERS = "Mean over users"
CLEAR_SLOPE = 3.0
"""Smallest slope, in standard errors, that is reported as a difference of users with more rows."""
MAX_LISTED_INTERVALS = 4
VALUES_LEAK = standard.warn_of_leak(
    "this bound was",
    "their values and row counts",
    "Take σ² and ρ from elsewhere, and choose the bound with DP, or without these data.",
)
COUNTS_PUBLIC = "**How many rows each user has is assumed to be public**."


@dataclass(frozen=True)
class SplitRelease:
    """The usual release of a private mean, to compare with ours: numerator and denominator, half of epsilon each.

    Attributes:
        cap_choice: The best cap of that release.
        capped_errors: The error of that release over the ``bounds`` of the solution.
    """

    cap_choice: mean.CapChoice
    capped_errors: mean.MeanError


@dataclass(frozen=True)
class WorstCaseErrors:
    """The worst-case error about the mean of this table over all values in [L, U]; root mean square.

    With private counts the ratio is linearised, so these errors are approximations like the expected error.

    Attributes:
        cap_error_bound: Upper bound on the error of the best bound, which keeps rows at random.
        smooth_error: Error of the best smooth weights.
        best_weights_error: Smallest worst-case error of any weights of users; some smooth weights have it.
    """

    cap_error_bound: float
    smooth_error: float
    best_weights_error: float


@dataclass(frozen=True, eq=False)
class MeanSolution:
    """The best cap and the best smooth weights with their error curves; it does not depend on the user's own cap.

    Attributes:
        problem: The problem on these data.
        cap_choice: The best cap.
        smooth_choice: The best smooth weights.
        stretches: Smallest and largest cap of each stretch within 5 % of the best error, from 1 to s_m, ascending.
        bounds: Bounds of the curves in rows per user, ascending, shape (points,).
        capped_errors: Error over ``bounds`` when capping.
        smooth_errors: Error over ``bounds`` under smooth weights.
        split_release: The usual release of a numerator and a denominator, if counts are private; None if they are
            public.
        value_summary: Summary of the values, clamped to [L, U]; None if the data have no values.
        worst_case: The worst-case errors; None if the target is not the mean of this table.
        users_solution: The best smooth weights if users are clamped in place of rows; None for programs that cannot.
    """

    problem: mean.MeanProblem
    cap_choice: mean.CapChoice
    smooth_choice: mean.SmoothChoice
    stretches: tuple[tuple[int, int], ...]
    bounds: FloatArray
    capped_errors: mean.MeanError
    smooth_errors: mean.MeanError
    split_release: SplitRelease | None = None
    value_summary: ValueSummary | None = None
    worst_case: WorstCaseErrors | None = None
    users_solution: UsersSolution | None = None

    @cached_property
    def clamped_values(self) -> ClampedValues | None:
        """Return the values clamped to [L, U], per user, or None if the data have no values."""
        return None if self.value_summary is None else self.value_summary.clamped_values

    @cached_property
    def near_optimal(self) -> tuple[int, int]:
        """Return the interval (smallest, largest) of caps around the best cap whose error is within 5 % of the best."""
        smallest_cap, largest_cap = interval_around(self.stretches, self.cap_choice.max_contributions)
        return int(smallest_cap), int(largest_cap)

    @cached_property
    def is_about_table(self) -> bool:
        """Return True if the error is about the mean of this table, not about a population."""
        return self.problem.target is mean.Target.TABLE

    @cached_property
    def has_private_counts(self) -> bool:
        """Return True if contribution counts are private too; all errors are then delta-method approximations."""
        return self.split_release is not None

    @cached_property
    def neighbours(self) -> Neighbours:
        """Return the neighbouring relation of the release: the user comes or goes if counts are private."""
        return Neighbours.ADD_OR_REMOVE_USER if self.has_private_counts else Neighbours.REPLACE_VALUES

    @cached_property
    def error_name(self) -> str:
        """Return the name of the error within a sentence; a *standard error* includes no bias."""
        return "error" if self.is_about_table else "standard error"

    @property
    def error_over_users(self) -> float:
        """Return the error of a release of the mean over users; each user has one value, their mean.

        No rows are left out, so all of the error is noise: sqrt(2) B / (epsilon m) where counts are public. Clamping is
        not included. Keeping fewer rows of each user would not reduce the noise, as a user's mean may lie anywhere from
        L to U.
        """
        # Every user weighs 1 / m; the unit noise is that for a user who holds all the weight.
        return math.sqrt(self.problem._unit_noise_variance) / self.problem.histogram.num_users

    def standard_errors(self, caps: npt.ArrayLike) -> FloatArray:
        """Return the root mean square errors at caps, in the values' unit, of the shape of ``caps``."""
        return np.sqrt(self.problem.model.capped(np.asarray(caps, dtype=np.float64)).variance)


def solve(dataset: Dataset, parameters: MeanParameters, value_summary: ValueSummary | None) -> MeanSolution:
    """Solve for the best choices and evaluate their curves.

    Args:
        dataset: The data.
        parameters: The question.
        value_summary: Summary of the values, which does not depend on epsilon; None if the data have no values.

    Raises:
        InvalidInput: Counts are to be public, and values decide which rows count.
    """
    histogram = dataset.histogram
    if parameters.counts is mean.Counts.PUBLIC:
        dataset.refuse_public_counts()
    problem = parameters.problem(histogram, value_summary)
    cap_choice, smooth_choice = mean.best_cap(problem), mean.best_smooth(problem)
    best_bounds = [cap_choice.max_contributions, smooth_choice.threshold]
    bounds = np.unique(np.concatenate((axes.choose_curve_bounds(histogram), best_bounds)))
    split_release, worst_case = None, None
    has_entered_variance = parameters.variance_source is VarianceSource.ENTERED
    if isinstance(problem, PrivateCountsProblem):
        split_problem = replace(problem, released_sums=ReleasedSums.SPLIT)
        split_release = SplitRelease(mean.best_cap(split_problem), mean.capped_error(split_problem, bounds))
    if problem.target is mean.Target.TABLE:
        user_weights = mean.user_weight(problem, smooth_choice.threshold, histogram.sizes) * histogram.sizes
        worst_case = WorstCaseErrors(
            worst_values.caps_error_bound(problem, cap_choice.max_contributions),
            worst_values.any_weights_error(problem, user_weights),
            worst_values.best_weights(problem).error,
        )
    return MeanSolution(
        problem=problem,
        cap_choice=cap_choice,
        smooth_choice=smooth_choice,
        stretches=mean.cap_stretches(problem, cap_choice=cap_choice),
        bounds=bounds,
        capped_errors=problem.model.capped(bounds),
        smooth_errors=problem.model.smooth(bounds),
        split_release=split_release,
        value_summary=value_summary,
        worst_case=worst_case,
        users_solution=solve_users(problem, smooth_choice, bounds, value_summary, has_entered_variance),
    )


NOT_COMPARED = ("own_bound",)


def against_epsilon(dataset: Dataset, parameters: MeanParameters) -> BoundComparison:
    """Compare the best cap and its error over epsilon."""
    value_summary = ValueSummary.from_dataset(dataset, parameters.lower, parameters.upper)
    problem = parameters.problem(dataset.histogram, value_summary)

    def compute_best(epsilon: float) -> tuple[float, float]:
        """Return the best cap at one epsilon, and its error."""
        cap_choice = mean.best_cap(replace(problem, epsilon=epsilon))
        return float(cap_choice.max_contributions), cap_choice.standard_error

    return BoundComparison(
        "Best bound (rows per user)",
        f"{'Error' if problem.target is mean.Target.TABLE else 'Standard error'} (unit of the values)",
        compute_best,
        lambda epsilon, caps: np.sqrt(mean.capped_variance(replace(problem, epsilon=epsilon), caps)),
        dataset.histogram.sizes,
        dataset.histogram.users,
    )


LARGEST_CONVERSION = 1.6
"""Noise by way of zero-concentrated DP over that of the exact mechanism, at most, for delta up to 1/2."""


def choose_error_limits(problem: mean.MeanProblem) -> tuple[float, float]:
    """Choose (lowest, highest) error of the axis, between which the best error lies at any epsilon and sigma^2."""
    histogram, program, noise_factor = problem.histogram, problem.program, 1.0
    if problem.noise.kind is NoiseKind.GAUSSIAN:
        # A conversion takes a second at the ends of the range.
        program, noise_factor = Program.PYTHON, LARGEST_CONVERSION
    variance_factor = problem.relative_noise / float(problem.noise.variance(1.0))

    def noise_deviation(epsilon: float) -> float:
        """Return the standard deviation of the noise at one epsilon if one user holds all the weight."""
        num_aggregates = problem.num_aggregates
        noise = find_noise(program, problem.mechanism, epsilon, problem.delta, num_aggregates=num_aggregates)
        return problem.value_bound * math.sqrt(variance_factor * float(noise.variance(1.0)))

    # Lowest without sampling error: every user weighs the same, and noise is the whole error. Highest if all rows are
    # kept and values have the largest variance, B^2 / 4: claim 2.
    largest_noise = noise_deviation(EPSILON_RANGE[0]) * noise_factor * histogram.max_size / histogram.num_rows
    least_error = noise_deviation(EPSILON_RANGE[1]) / histogram.num_users
    return least_error, math.hypot(problem.value_bound / 2.0 / math.sqrt(histogram.num_rows), largest_noise)


# --- sentences and numbers ------------------------------------------------------------------------------------------


def build_numbers(solution: MeanSolution) -> tuple[Number, ...]:
    """Build the best bound, the best smooth weights, the error of both, and the worst-case error if there is one."""
    cap, threshold = solution.cap_choice.max_contributions, solution.smooth_choice.threshold
    target_phrase = "of the rows in this table" if solution.is_about_table else "of the population"
    error_help = f"Root mean square distance of a release from the mean {target_phrase}."
    if not solution.has_private_counts:
        error_help += " It is an upper bound, as a release outside [L, U] is moved to its nearer end."
    label, key = wording.capital(solution.error_name), solution.error_name.replace(" ", "_")

    def error_number(choice: mean.CapChoice | mean.SmoothChoice, label: str, key: str) -> Number:
        """Build the number of a choice's error, with the share of noise in its square."""
        error = choice.standard_error
        noise_note = f"({wording.percent(choice.privacy_variance / choice.variance)} noise)"
        return Number(label, wording.number(error), noise_note, error_help, error, UNIT, key)

    rows_text, threshold_text = wording.counted(cap, "row"), wording.number(threshold)
    threshold_unit = wording.agreeing(threshold, "row per user", "rows per user")
    cap_help = "Upper bound on contributions per user."
    threshold_help = "The rows of a heavier user together weigh as much as this many."
    threshold_args = threshold_text, threshold_unit, threshold_help, threshold, ROWS_UNIT, "threshold"
    numbers = (
        Number("Best bound", rows_text, "per user", cap_help, cap, ROWS_UNIT, "max_contributions"),
        error_number(solution.cap_choice, label, key),
        Number("Bound of the smooth weights", *threshold_args),
        error_number(solution.smooth_choice, f"{label}, smooth weights", f"smooth_{key}"),
    )
    if solution.worst_case is None:
        return numbers
    error = solution.worst_case.cap_error_bound
    worst_case_help = "The worst case of the best bound over all values in [L, U], not a forecast."
    bound_note = "at most, linearised" if solution.has_private_counts else "at most"
    error_text = wording.number(error)
    return *numbers, Number("Error whatever the values", error_text, bound_note, worst_case_help, error, UNIT)


def list_error_parts(solution: MeanSolution) -> tuple[ErrorPart, ...]:
    """Return the parts of the best bound's error, the bias if it is known; their squares add up to its square."""
    choice = solution.cap_choice
    errors_by_part = {BIAS: abs(choice.shift)} if solution.problem.table_values is not None else {}
    errors_by_part[SAMPLING] = math.sqrt(choice.sampling_variance)
    return build_error_parts({**errors_by_part, NOISE: math.sqrt(choice.privacy_variance)}, wording.number)


def write_detail(solution: MeanSolution, dataset: Dataset, parameters: MeanParameters) -> str:
    """Write the sentences that qualify the headline, most important first."""
    sentences, problem, clamped_values = [], solution.problem, solution.clamped_values
    cap_choice, smooth_choice = solution.cap_choice, solution.smooth_choice
    if clamped_values is not None:
        below_and_above = clamped_values.num_below, clamped_values.num_above
        outside_counts = OutsideCounts(*below_and_above, problem.histogram.num_rows)
        if outside_counts.exceeds_warning:
            caveat = ", and no number here counts that error" if problem.table_values is None else ""
            sentences.append(
                f"**{outside_counts.percent_text} of the values are clamped**{caveat}: set L and U {RANGE_SOURCE}"
            )
    sentences += _describe_target(solution, parameters)
    if isinstance(problem, PrivateCountsProblem):
        sentences.append("Counts are **private too**.")
        cap_noise_share = problem.noise_share(cap_choice.max_contributions)
        noise_share = max(cap_noise_share, problem.noise_share(smooth_choice.threshold, is_smooth=True))
        if noise_share > ROUGH_NOISE:
            sentences.append(
                f"**The noise is {wording.percent(noise_share)} of the sum of weights**: this error is rough. Take a "
                "larger ε."
            )
        elif problem.is_near_end(max(cap_choice.privacy_variance, smooth_choice.privacy_variance)):
            sentences.append(
                "**The mean lies near an end of its range**: this error is rough. The program moves the mean into the "
                "range, and errs less."
            )
    elif _may_leave_range(solution, parameters):
        sentences.append(
            "**Noise can leave the range**: this error is an upper bound. The program moves the mean into the range, "
            "and errs less."
        )
    sentences += warn_of_leaks(solution, dataset, parameters)
    if cap_choice.max_contributions == problem.histogram.max_size:
        sentences.append("The best bound keeps every row.")
    return " ".join(sentences)


def _may_leave_range(solution: MeanSolution, parameters: MeanParameters) -> bool:
    """Return True if noise leaves the range from the mean of the values, or from its middle if none are read."""
    problem, mean_above_lower = solution.problem, solution.problem.value_bound / 2.0
    if problem.table_values is not None and solution.clamped_values is not None:
        mean_above_lower = solution.clamped_values.mean - parameters.lower
    return min(mean_above_lower, problem.value_bound - mean_above_lower) < NEAR_END * math.sqrt(
        max(solution.cap_choice.privacy_variance, solution.smooth_choice.privacy_variance)
    )


def warn_of_leaks(solution: MeanSolution, dataset: Dataset, parameters: MeanParameters) -> list[str]:
    """Write what a bound that was computed from private data reveals, and the bound that reveals less.

    Empty if the data are not private.
    """
    if not dataset.is_private:
        return []
    reads_values = solution.clamped_values is not None and parameters.reads_values
    if not reads_values and solution.has_private_counts:
        return [standard.warn_of_leak("this bound was")]
    rows_text = wording.counted(_find_safer_cap(solution, parameters), "row")
    if not reads_values:
        sentences, worst_case_phrase = [standard.ASSUMES_PUBLIC_COUNTS], ""
    else:
        sentences, worst_case_phrase = [VALUES_LEAK], "σ² of the worst case and "
        if not solution.has_private_counts:
            sentences.append(COUNTS_PUBLIC)
    return [*sentences, f"With {worst_case_phrase}private counts the best bound is **{rows_text}**."]


def _find_safer_cap(solution: MeanSolution, parameters: MeanParameters) -> int:
    """Find the best cap with private counts and without the values."""
    changes: dict[str, object] = {"counts": mean.Counts.PRIVATE}
    if parameters.variance_source is mean.VarianceSource.FROM_VALUES:
        changes["variance_source"] = mean.VarianceSource.WORST_CASE
    if parameters.likeness is mean.Likeness.FROM_VALUES:
        changes["likeness"] = mean.Likeness.ENTERED
    problem = replace(parameters, **changes).problem(solution.problem.histogram)  # type: ignore[arg-type]
    return mean.best_cap(problem).max_contributions


def _describe_target(solution: MeanSolution, parameters: MeanParameters) -> list[str]:
    """Describe the target of the error, its assumptions, and if the means over rows and over users clearly differ."""
    value_summary, problem = solution.value_summary, solution.problem
    sentences = []
    if value_summary is not None and not value_summary.has_finite_error and solution.is_about_table:
        sentences.append("**Some values are beyond 1e100**: the error cannot be computed from them.")
    if value_summary is not None and problem.table_values is not None:
        clamping_shift = value_summary.table_values.clamping_shift
        sentences.append(
            "Error about **the mean of these rows**. Shift by leaving rows out: {}, by clamping: {}.".format(
                *map(wording.number, (solution.cap_choice.shift - clamping_shift, clamping_shift))
            )
        )
    elif solution.is_about_table or problem.user_share:
        assumption_phrase = "rows are independent"
        if problem.user_share:
            assumption_phrase = f"{wording.percent(problem.user_share, 2)} of the variance lies between users"
        target_phrase = (
            "about **this table's mean**" if solution.is_about_table else "**for people like these**"
        )
        sentences.append(f"Error {target_phrase}. Assumed: {assumption_phrase}.")
    if value_summary is not None and parameters.reads_values and abs(value_summary.size_slope) > CLEAR_SLOPE:
        clamped_values = value_summary.clamped_values
        mean_over_users = float(clamped_values.user_means.mean())
        higher_or_lower = "higher" if value_summary.size_slope > 0.0 else "lower"
        sentences.append(
            f"**Users with more rows have {higher_or_lower} values**: the mean over rows is "
            f"{wording.number(clamped_values.mean)}, over users {wording.number(mean_over_users)}. This bound is for "
            "the first."
        )
    return sentences


def describe_near_optimal(solution: MeanSolution) -> str:
    """Describe the bounds whose error is within 5 % of the best; only how many intervals, if there are too many."""
    min_cap, max_cap = solution.near_optimal
    objective_text = f"the least {solution.error_name}"
    if len(solution.stretches) > MAX_LISTED_INTERVALS:
        intervals_text = f"{len(solution.stretches)} stretches"
    elif len(solution.stretches) > 1:
        format_number = wording.number
        interval_texts = [
            format_number(a) + (f" to {format_number(b)}" if b > a else "") for a, b in solution.stretches
        ]
        intervals_text = f"{', '.join(interval_texts)} rows"
    else:
        smaller_phrase = "smaller bounds" if min_cap > 1 else ""
        worse_phrase = "all other bounds" if max_cap < solution.problem.histogram.max_size else smaller_phrase
        return standard.write_range(
            min_cap, max_cap, "row", objective=objective_text, worse_choices_phrase=worse_phrase
        )
    return f"bounds of {intervals_text} are within 5{wording.PERCENT} of {objective_text}."


def build_facts(solution: MeanSolution, dataset: Dataset, parameters: MeanParameters) -> dict[str, str]:
    """Build the facts behind the answer, one sentence each."""
    histogram, error_name, format_number = solution.problem.histogram, solution.error_name, wording.number
    cap, best_error = solution.cap_choice.max_contributions, solution.cap_choice.standard_error
    lost_share = 1.0 - float(histogram.kept_rows(cap)) / histogram.num_rows
    held_share = 1.0 - float(histogram.pieces(cap).rows_at_or_below) / histogram.num_rows
    num_affected = histogram.users_above(cap)
    affected_text = standard.describe_affected(num_affected, histogram.num_users, lost_share)
    holds_text = wording.agreeing(num_affected, "This user holds", "These users hold")
    compute_errors = solution.standard_errors
    fact_texts = {
        "Half or double": standard.compare_half_and_double(cap, compute_errors, format_number, error_name),
        "Who is affected by the bound": f"{affected_text} {holds_text} {wording.percent(held_share)} of all rows.",
    }
    if solution.value_summary is not None and parameters.reads_values:
        fact_texts["How users differ"] = describe_user_share(solution.value_summary)
    users_solution = solution.users_solution
    if users_solution is not None and users_solution.user_deviations is not None:
        proposal_text = propose_clamp(users_solution, solution.smooth_choice, Clamp.ROWS)
        fact_texts["Against clamped users"] = proposal_text
    fact_texts["Noise"] = describe_noise(solution.problem)
    if (split_release := solution.split_release) is not None:
        split_error = split_release.cap_choice.standard_error
        rows_text = wording.counted(split_release.cap_choice.max_contributions, "row")
        share_text = "a third of ε" if solution.problem.program is Program.BIGQUERY else "ε/2"
        if solution.problem.noise.kind is NoiseKind.GAUSSIAN:
            share_text = "half of the budget"
        fact_texts["Against the usual split"] = (
            f"numerator and denominator with {share_text} each: error {format_number(split_error)} at their best bound "
            f"of {rows_text}, {wording.change(split_error, best_error)}."
        )
    if dataset.is_private and not solution.has_private_counts:
        fact_texts["Where counts are private"] = "choose *Private too* under *Contribution counts are*."
    if parameters.own_bound is not None:
        own_and_best_errors = float(compute_errors(parameters.own_bound)), best_error
        own_text = standard.compare_own_bound(error_name, *own_and_best_errors, format_number)
        fact_texts[f"Your own bound, {wording.counted(parameters.own_bound, 'row')}"] = own_text
    linearised_text = ", linearised" if solution.has_private_counts else ""
    if (worst_case := solution.worst_case) is not None:
        fact_texts["Whatever the values"] = (
            f"for values in [L, U] the error is at most {format_number(worst_case.cap_error_bound)} with the best "
            f"bound, {format_number(worst_case.smooth_error)} with its smooth weights, "
            f"{format_number(worst_case.best_weights_error)} with the best weights for that{linearised_text}. Reached "
            "if heavy users have all values at one end."
        )
    if isinstance(solution.problem, PrivateCountsProblem):
        is_unknown = solution.problem.mean_above_lower is None
        mean_phrase = "at which it is largest, L or U" if is_unknown else "of all rows, for every bound"
        fact_texts["At which mean"] = f"the noise is computed for the mean {mean_phrase}."
    fact_texts[MEAN_OVER_USERS] = (
        f"error {format_number(solution.error_over_users)}, all of it noise{linearised_text}; clamping comes on top. "
        "*Get code* has it."
    )
    return fact_texts


def describe_noise(problem: mean.MeanProblem) -> str:
    """Describe the noise of the program, and what a split of its budget costs with Laplace noise."""
    budget_arguments = problem.mechanism, problem.epsilon, problem.delta
    noise_text = describe_program(problem.program, *budget_arguments, num_aggregates=problem.num_aggregates)
    released_sums = problem.released_sums if isinstance(problem, PrivateCountsProblem) else None
    is_split = released_sums is ReleasedSums.CENTRED_SPLIT
    if is_split and problem.noise.kind is NoiseKind.LAPLACE and problem.program is not Program.BIGQUERY:
        noise_text += " The split of ε between sum and rows costs 1.41 times the noise of OpenDP's program."
    return noise_text


def describe_user_share(value_summary: ValueSummary) -> str:
    """Describe the share of the variance that lies between users, with its interval; or why it cannot be estimated."""
    user_share = value_summary.user_share
    if math.isnan(user_share.estimate):
        return "it cannot be estimated: nobody has two rows, or there is only one user."
    return (
        f"about {wording.percent(user_share.clipped_estimate)} of the variance lies between users "
        f"({wording.percent(user_share.low)} to {wording.percent(user_share.high)}), as private as these values."
    )


def describe_shifts(solution: MeanSolution, value_summary: ValueSummary) -> tuple[str, ...]:
    """Describe how far each choice shifts the mean of the values, and the share of variance between users."""
    clamped_values, sentences = value_summary.clamped_values, []
    cap_choice, smooth_choice = solution.cap_choice, solution.smooth_choice
    smooth_growth = mean.growth(solution.problem, smooth_choice.threshold)
    for bounding_words, bound, weight_growth, choice in (
        ("bounded", float(cap_choice.max_contributions), mean.Growth(), cap_choice),
        ("smoothly weighted", smooth_choice.threshold, smooth_growth, smooth_choice),
    ):
        user_weights = weight_growth.scaled_weights(bound, clamped_values.sizes)
        shift = float(user_weights @ clamped_values.user_means / user_weights.sum()) - clamped_values.mean
        sentence = f"The {bounding_words} mean differs from the plain mean by {wording.number(shift)}"
        if solution.problem.table_values is None:
            ratio_text = wording.number(abs(shift) / choice.standard_error, 2)
            sentence += f", {ratio_text} times the {solution.error_name}, which does not contain it"
        sentences.append(f"{sentence}.")
    return (*sentences, f"How users differ: {describe_user_share(value_summary)}")
