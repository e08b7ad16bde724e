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
from dpcore.mean.parameters import Clamp, MeanParameters
from dpcore.mean.private_counts import ROUGH_NOISE, PrivateCountsProblem, Release
from dpcore.mean.table_values import Clamped, ValueSummary

MEAN_OVER_USERS = "Mean over users"
CLEAR_SLOPE = 3.0
"""Smallest slope, in standard errors, that is reported as a difference of users with more rows."""
MAX_LISTED_INTERVALS = 4
VALUES_LEAK = standard.warn_of_leak(
    "this bound was",
    "their values and row counts",
    "Take σ² and ρ from elsewhere, and choose the bound under *Choose privately*, or without these data.",
)
COUNTS_PUBLIC = "**How many rows each user has is assumed to be public**."


@dataclass(frozen=True)
class SplitRelease:
    """The usual release of a private mean, to compare with ours: numerator and denominator, half of epsilon each.

    Attributes:
        cap: The best cap of that release.
        capped: The error of that release over the ``bounds`` of the solution.
    """

    cap: mean.CapChoice
    capped: mean.MeanError


@dataclass(frozen=True)
class WorstCaseErrors:
    """The worst-case error about the mean of this table over all values in [L, U]; root mean square.

    With private counts the ratio is linearised, so these errors are approximations like the expected error.

    Attributes:
        cap: Error of the best bound, which keeps rows at random.
        smooth: Error of the best smooth weights.
        any_weights: Smallest worst-case error of any weights of users; some smooth weights have it.
    """

    cap: float
    smooth: float
    any_weights: float


@dataclass(frozen=True, eq=False)
class MeanSolution:
    """The best cap and the best smooth weights with their error curves; it does not depend on the user's own cap.

    Attributes:
        problem: The problem on these data.
        cap: The best cap.
        smooth: The best smooth weights.
        stretches: Smallest and largest cap of each stretch within 5 % of the best error, from 1 to s_m, ascending.
        bounds: Bounds of the curves in rows per user, ascending, shape (points,).
        capped: Error over ``bounds`` when capping.
        smoothed: Error over ``bounds`` under smooth weights.
        split_release: The usual release of a numerator and a denominator, if counts are private; None if they are
            public.
        values: Summary of the values, clamped to [L, U]; None if the data have no values.
        worst_case: The worst-case errors; None if the target is not the mean of this table.
        users: The best smooth weights if users are clamped in place of rows; None for programs that cannot.
    """

    problem: mean.MeanProblem
    cap: mean.CapChoice
    smooth: mean.SmoothChoice
    stretches: tuple[tuple[int, int], ...]
    bounds: FloatArray
    capped: mean.MeanError
    smoothed: mean.MeanError
    split_release: SplitRelease | None = None
    values: ValueSummary | None = None
    worst_case: WorstCaseErrors | None = None
    users: UsersSolution | None = None

    @cached_property
    def clamped(self) -> Clamped | None:
        """Return the values clamped to [L, U], per user, or None if the data have no values."""
        return None if self.values is None else self.values.clamped

    @cached_property
    def near_optimal(self) -> tuple[int, int]:
        """Return the interval (smallest, largest) of caps around the best cap whose error is within 5 % of the best."""
        low, high = interval_around(self.stretches, self.cap.max_contributions)
        return int(low), int(high)

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
        """Return the neighbouring relation of the release."""
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
        return math.sqrt(self.problem._unit_noise) / self.problem.histogram.num_users

    def standard_errors(self, caps: npt.ArrayLike) -> FloatArray:
        """Return the root mean square errors at caps, in the values' unit, of the shape of ``caps``."""
        return np.sqrt(self.problem.model.capped(np.asarray(caps, dtype=np.float64)).variance)


def solve(dataset: Dataset, parameters: MeanParameters, values: ValueSummary | None) -> MeanSolution:
    """Solve for the best choices and evaluate their curves.

    Args:
        dataset: The data.
        parameters: The question.
        values: Summary of the values, which does not depend on epsilon; None if the data have no values.
    """
    histogram = dataset.histogram
    problem = parameters.problem(histogram, values)
    cap, smooth = mean.best_cap(problem), mean.best_smooth(problem)
    bounds = np.unique(
        np.concatenate((axes.choose_curve_bounds(histogram), [cap.max_contributions, smooth.threshold]))
    )
    split_release = worst_case = None
    if isinstance(problem, PrivateCountsProblem):
        split = replace(problem, release=Release.SPLIT)
        split_release = SplitRelease(mean.best_cap(split), mean.capped_error(split, bounds))
    if problem.target is mean.Target.TABLE:
        user_weights = mean.user_weight(problem, smooth.threshold, histogram.sizes) * histogram.sizes
        worst_case = WorstCaseErrors(
            worst_values.caps_error_bound(problem, cap.max_contributions),
            worst_values.any_weights_error(problem, user_weights),
            worst_values.best_weights(problem).error,
        )
    return MeanSolution(
        problem=problem,
        cap=cap,
        smooth=smooth,
        stretches=mean.cap_stretches(problem, best=cap),
        bounds=bounds,
        capped=problem.model.capped(bounds),
        smoothed=problem.model.smooth(bounds),
        split_release=split_release,
        values=values,
        worst_case=worst_case,
        users=solve_users(
            problem, smooth, bounds, None if values is None or problem.table is None else values.deviations
        ),
    )


NOT_COMPARED = ("own_bound",)


def against_epsilon(dataset: Dataset, parameters: MeanParameters) -> BoundComparison:
    """Compare the best cap and its error over epsilon."""
    values = ValueSummary.from_dataset(dataset, parameters.lower, parameters.upper)
    problem = parameters.problem(dataset.histogram, values)

    def compute_best(epsilon: float) -> tuple[float, float]:
        cap = mean.best_cap(replace(problem, epsilon=epsilon))
        return float(cap.max_contributions), cap.standard_error

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


def offered_errors(problem: mean.MeanProblem) -> tuple[float, float]:
    """Return (from, to) of the error's axis, which contains the best error at any epsilon and sigma^2."""
    histogram, value_bound, program, factor = problem.histogram, problem.value_bound, problem.program, 1.0
    if problem.noise.kind is NoiseKind.GAUSSIAN:
        # A conversion takes a second at the ends of the range.
        program, factor = Program.PYTHON, LARGEST_CONVERSION
    worst_factor = problem.relative_noise / float(problem.noise.variance(1.0))
    unit_noises = [
        find_noise(program, problem.mechanism, e, problem.delta, num_aggregates=problem.num_aggregates)
        for e in EPSILON_RANGE
    ]
    noise = [value_bound * math.sqrt(worst_factor * float(unit.variance(1.0))) for unit in unit_noises]
    # Lowest without sampling error: every user weighs the same, and noise is the whole error. Highest if all rows are
    # kept and values have the largest variance, B^2 / 4: claim 2.
    sampling = value_bound / 2.0 / math.sqrt(histogram.num_rows)
    high = math.hypot(sampling, noise[0] * factor * histogram.max_size / histogram.num_rows)
    return noise[1] / histogram.num_users, high


# --- sentences and numbers ------------------------------------------------------------------------------------------


def build_numbers(solution: MeanSolution) -> tuple[Number, ...]:
    """Build the best bound and the best smooth weights, each with its error, and the worst-case error."""
    cap, smooth, worst_case = solution.cap, solution.smooth, solution.worst_case
    target = "of the rows in this table" if solution.is_about_table else "of the population"
    error_help = f"Root mean square distance of a release from the mean {target}."
    label, key = wording.capital(solution.error_name), solution.error_name.replace(" ", "_")
    rows, threshold = wording.counted(cap.max_contributions, "row"), wording.number(smooth.threshold)
    threshold_unit = wording.agreeing(smooth.threshold, "row per user", "rows per user")
    cap_error, smooth_error = cap.standard_error, smooth.standard_error
    texts = [wording.number(cap_error), wording.number(smooth_error)]
    notes = [f"({wording.percent(c.privacy_variance / c.variance)} noise)" for c in (cap, smooth)]
    cap_help = "Upper bound on contributions per user."
    threshold_help = "The rows of a heavier user together weigh as much as this many."
    numbers = (
        Number(
            "Best bound", rows, "per user", cap_help, cap.max_contributions, ROWS_UNIT, "max_contributions"
        ),
        Number(label, texts[0], notes[0], error_help, cap_error, UNIT, key),
        Number(
            "Bound of the smooth weights",
            threshold,
            threshold_unit,
            threshold_help,
            smooth.threshold,
            ROWS_UNIT,
            "threshold",
        ),
        Number(
            f"{label}, smooth weights", texts[1], notes[1], error_help, smooth_error, UNIT, f"smooth_{key}"
        ),
    )
    if worst_case is None:
        return numbers
    note, error = "at most, linearised" if solution.has_private_counts else "at most", worst_case.cap
    worst_help = "Of the best bound, for any values in [L, U]. No forecast."
    return (
        *numbers,
        Number("Error whatever the values", wording.number(error), note, worst_help, error, UNIT),
    )


def list_error_parts(solution: MeanSolution) -> tuple[ErrorPart, ...]:
    """Return the parts of the error of the best bound; their squares add up to its square."""
    cap = solution.cap
    shift = {BIAS: abs(cap.shift)} if solution.problem.table is not None else {}
    sizes = {**shift, SAMPLING: math.sqrt(cap.sampling_variance), NOISE: math.sqrt(cap.privacy_variance)}
    return build_error_parts(sizes, wording.number)


def write_detail(solution: MeanSolution, dataset: Dataset, parameters: MeanParameters) -> str:
    """Write the sentences that qualify the headline, most important first."""
    sentences, clamped, problem = [], solution.clamped, solution.problem
    if clamped is not None:
        values = OutsideCounts(clamped.num_below, clamped.num_above, problem.histogram.num_rows)
        if values.exceeds_warning:
            caveat = "" if problem.table is not None else ", and no number here counts that error"
            sentences.append(
                f"**{values.percent} of the values are clamped**{caveat}: set L and U {RANGE_SOURCE}"
            )
    sentences += _describe_target(solution, parameters)
    smooth_error = solution.smooth.standard_error
    sentences.append(
        f"Smooth weights with a bound of {wording.number(solution.smooth.threshold)}: error "
        f"{wording.number(smooth_error)}, {wording.change(smooth_error, solution.cap.standard_error)}."
    )
    if isinstance(problem, PrivateCountsProblem):
        sentences.append("Counts are **private too**.")
        cap_share = problem.noise_share(solution.cap.max_contributions)
        share = max(cap_share, problem.noise_share(solution.smooth.threshold, smooth=True))
        if share > ROUGH_NOISE:
            sentences.append(
                f"**The noise is {wording.percent(share)} of the sum of weights**: this error is rough. Take a larger "
                "ε."
            )
        elif problem.is_near_end(max(solution.cap.privacy_variance, solution.smooth.privacy_variance)):
            sentences.append(
                "**The mean lies near an end of its range**: this error is rough. The program moves the mean into the "
                "range, and errs less."
            )
    sentences += warn_of_leaks(solution, dataset, parameters)
    if solution.cap.max_contributions == problem.histogram.max_size:
        sentences.append("The best bound keeps every row.")
    return " ".join(sentences)


def warn_of_leaks(solution: MeanSolution, dataset: Dataset, parameters: MeanParameters) -> list[str]:
    """Write what a bound that was computed from private data reveals, and the bound that reveals less."""
    sentences = []
    if dataset.is_private:
        reads_values = solution.clamped is not None and parameters.reads_values
        if reads_values:
            sentences += [VALUES_LEAK, *([] if solution.has_private_counts else [COUNTS_PUBLIC])]
        else:
            counts_leak = standard.warn_of_leak("this bound was")
            sentences.append(counts_leak if solution.has_private_counts else standard.ASSUMES_PUBLIC_COUNTS)
        if reads_values or not solution.has_private_counts:
            rows = wording.counted(_find_safer_cap(solution, parameters), "row")
            worst_case = "σ² of the worst case and " if reads_values else ""
            sentences.append(f"With {worst_case}private counts the best bound is **{rows}**.")
    return sentences


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
    summary, problem = solution.values, solution.problem
    sentences = []
    if summary is not None and not summary.has_finite_error and solution.is_about_table:
        sentences.append("**Some values are beyond 1e100**: the error cannot be computed from them.")
    if summary is not None and problem.table is not None:
        clamping = summary.table.clamping
        sentences.append(
            "Error about **the mean of these rows**. Shift by leaving rows out: "
            f"{wording.number(solution.cap.shift - clamping)}, by clamping: {wording.number(clamping)}."
        )
    elif solution.is_about_table or problem.user_share:
        assumption = "rows are independent"
        if problem.user_share:
            assumption = f"{wording.percent(problem.user_share, 2)} of the variance lies between users"
        target = "about **this table's mean**" if solution.is_about_table else "**for people like these**"
        sentences.append(f"Error {target}. Assumed: {assumption}.")
    if summary is not None and parameters.reads_values and abs(summary.slope) > CLEAR_SLOPE:
        mean_over_rows, mean_over_users = summary.clamped.mean, float(summary.clamped.user_means.mean())
        sentences.append(
            f"**Users with more rows have {'higher' if summary.slope > 0.0 else 'lower'} values**: the mean over rows "
            f"is {wording.number(mean_over_rows)}, over users {wording.number(mean_over_users)}. This bound is for the "
            "first."
        )
    return sentences


def describe_near_optimal(solution: MeanSolution) -> str:
    """Describe the bounds whose error is within 5 % of the best."""
    low, high = solution.near_optimal
    objective = f"the least {solution.error_name}"
    if len(solution.stretches) > MAX_LISTED_INTERVALS:
        intervals_text = f"{len(solution.stretches)} stretches of bounds"
    elif len(solution.stretches) > 1:
        intervals_text = f"{', '.join(_name_interval(*interval) for interval in solution.stretches)} rows"
    else:
        is_largest = high >= solution.problem.histogram.max_size
        worse_bounds = "all other bounds" if not is_largest else "smaller bounds" if low > 1 else ""
        return standard.write_range(low, high, "row", objective=objective, worse_choices_text=worse_bounds)
    return f"{intervals_text}, within 5{wording.PERCENT} of {objective}."


def _name_interval(low: int, high: int) -> str:
    return wording.number(low) if low == high else f"{wording.number(low)} to {wording.number(high)}"


def build_facts(solution: MeanSolution, dataset: Dataset, parameters: MeanParameters) -> dict[str, str]:
    """Build the facts behind the answer, one sentence each."""
    cap, histogram, error_name = solution.cap, solution.problem.histogram, solution.error_name
    bound, best_error, number = cap.max_contributions, cap.standard_error, wording.number
    error_over_users = solution.error_over_users
    lost_share = 1.0 - float(histogram.kept_rows(bound)) / histogram.num_rows
    held_share = 1.0 - float(histogram.pieces(bound).rows_at_or_below) / histogram.num_rows
    num_affected = histogram.users_above(bound)
    affected = standard.describe_affected(num_affected, histogram.num_users, lost_share)
    held_by = wording.agreeing(num_affected, "This user holds", "These users hold")
    half_and_double = standard.compare_half_and_double(bound, solution.standard_errors, number, error_name)
    facts = {
        "Half or double": half_and_double,
        "Who is affected by the bound": f"{affected} {held_by} {wording.percent(held_share)} of all rows.",
    }
    if solution.values is not None and parameters.reads_values:
        facts["How users differ"] = describe_user_share(solution.values)
    if solution.users is not None and solution.users.deviations is not None:
        facts["Against clamped users"] = propose_clamp(solution.users, solution.smooth, Clamp.ROWS)
    facts["Noise"] = describe_noise(solution.problem)
    if (split := solution.split_release) is not None:
        split_error = split.cap.standard_error
        rows = wording.counted(split.cap.max_contributions, "row")
        split_text = "a third of ε" if solution.problem.program is Program.BIGQUERY else "ε/2"
        if solution.problem.noise.kind is NoiseKind.GAUSSIAN:
            split_text = "half of the budget"
        facts["Against the usual split"] = (
            f"numerator and denominator with {split_text} each: error {number(split_error)} at their best bound "
            f"of {rows}, {wording.change(split_error, best_error)}."
        )
    if dataset.is_private and not solution.has_private_counts:
        facts["Where counts are private"] = "choose *Private too* under *Contribution counts are*."
    if parameters.own_bound is not None:
        own_error = float(solution.standard_errors(parameters.own_bound))
        facts[f"Your own bound, {wording.counted(parameters.own_bound, 'row')}"] = standard.compare_own_bound(
            error_name, own_error, best_error, number
        )
    linearised = ", linearised" if solution.has_private_counts else ""
    if (worst := solution.worst_case) is not None:
        facts["Whatever the values"] = (
            f"for values in [L, U] the error is at most {number(worst.cap)} with the best bound, "
            f"{number(worst.smooth)} with its smooth weights, {number(worst.any_weights)} with the best weights for "
            f"that{linearised}. Reached if heavy users have all values at one end."
        )
    if isinstance(solution.problem, PrivateCountsProblem):
        value_mean = solution.problem.value_mean
        mean_text = "at which it is largest, L or U" if value_mean is None else "of all rows, for every bound"
        facts["At which mean"] = f"the noise is computed for the mean {mean_text}."
    facts[MEAN_OVER_USERS] = (
        f"error {number(error_over_users)}, all of it noise{linearised}; clamping comes on top. *Code for "
        "your library* has it."
    )
    return facts


def describe_noise(problem: mean.MeanProblem) -> str:
    """Describe the noise of the program, and what a split of its budget costs."""
    sentence = describe_program(
        problem.program,
        problem.mechanism,
        problem.epsilon,
        problem.delta,
        num_aggregates=problem.num_aggregates,
    )
    is_split = isinstance(problem, PrivateCountsProblem) and problem.release is Release.CENTRED_SPLIT
    if is_split and problem.noise.kind is NoiseKind.LAPLACE and problem.program is not Program.BIGQUERY:
        sentence += " The split of ε between sum and rows costs 1.41 times the noise of OpenDP's program."
    return sentence


def describe_user_share(values: ValueSummary) -> str:
    """Describe the share of the variance that lies between users, with its interval."""
    share = values.share
    if math.isnan(share.estimate):
        return "it cannot be estimated: nobody has two rows, or there is only one user."
    return (
        f"about {wording.percent(share.clipped_estimate)} of the variance lies between users "
        f"({wording.percent(share.low)} to {wording.percent(share.high)}), as private as these values."
    )


def describe_shifts(solution: MeanSolution, values: ValueSummary) -> tuple[str, ...]:
    """Describe how far each choice shifts the mean of the values, and the share of variance between users."""
    plain_mean, clamped, sentences = values.clamped.mean, values.clamped, []
    growth = mean.growth(solution.problem, solution.smooth.threshold)
    for name, bound, weights, choice in (
        ("bounded", float(solution.cap.max_contributions), mean.Growth(), solution.cap),
        ("smoothly weighted", solution.smooth.threshold, growth, solution.smooth),
    ):
        user_weights = weights.scaled_weights(bound, clamped.sizes)
        shift = float(user_weights @ clamped.user_means / user_weights.sum()) - plain_mean
        sentence = f"The {name} mean differs from the plain mean by {wording.number(shift)}"
        if solution.problem.table is None:
            errors = wording.number(abs(shift) / choice.standard_error, 2)
            sentence += f", {errors} times the {solution.error_name}, which does not contain it"
        sentences.append(f"{sentence}.")
    return (*sentences, f"How users differ: {describe_user_share(values)}")
