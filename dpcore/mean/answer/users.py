"""The answer for a mean that clamps what users deviate in place of rows: the best weights, in words and plots.

The bound h has the least error on the values at hand. Without values the error is that of clamped rows at the same
[L, U], as nothing is clamped in that model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dpcore import mean
from dpcore.answer import standard
from dpcore.answer.answer import BIAS, NOISE, PART_STYLES, SAMPLING, ErrorPart, Number, build_error_parts
from dpcore.answer.axes import ROWS_UNIT, build_bound_axis, sample_users
from dpcore.answer.handle import Dots, Handle, Spread, draw_normal, draw_unit_noise
from dpcore.answer.limits import fit_limits
from dpcore.answer.methods import Methods, cite_noise
from dpcore.answer.plot import Axis, Curve, Mark, Plot, Style
from dpcore.common import wording
from dpcore.common.certificate import Certificate
from dpcore.common.programs import SPLITS_MEANS
from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset
from dpcore.mean.clamped_users import ClampedUsersProblem, best_joint
from dpcore.mean.parameters import Clamp, MeanParameters
from dpcore.mean.private_counts import ROUGH_NOISE, PrivateCountsProblem
from dpcore.mean.table_values import UserDeviations
from dpcore.mean.value_range import RangeChoice

UNIT = "unit of the values"
ROWS_FIELD, USERS_FIELD = "*Rows*", "*Users' deviations*"
SAME_WITHOUT_VALUES = (
    "The error is the same as for clamped rows: this model uses no single values, "
    "so it cannot tell what a clamp cuts."
)


@dataclass(frozen=True, eq=False)
class UsersSolution:
    """The best smooth weights if users' deviations are clamped, and their error over bounds.

    Attributes:
        threshold: h, in rows per user.
        limit: T = h (U - L) / 2, in rows times the values' unit.
        error: The error at h.
        errors: The error at the bounds of the solution, an array for each part.
        deviations: The values of the table; None if the error is that of the model without values.
    """

    threshold: float
    limit: float
    error: mean.MeanError
    errors: mean.MeanError
    deviations: UserDeviations | None

    @property
    def standard_error(self) -> float:
        """Return the root mean square error at h, in the values' unit."""
        return math.sqrt(float(self.error.variance))


def solve_users(
    problem: mean.MeanProblem,
    smooth: mean.SmoothChoice,
    bounds: FloatArray,
    deviations: UserDeviations | None,
) -> UsersSolution | None:
    """Find the best smooth weights if users are clamped; None for programs that cannot clamp them.

    Args:
        problem: The problem of clamped rows.
        smooth: Its best smooth weights, which are the answer without values.
        bounds: Where the error's curve is evaluated, in rows per user.
        deviations: The values of the table; None if the error does not use them.
    """
    if problem.program in SPLITS_MEANS:
        return None
    threshold = smooth.threshold
    if deviations is not None:
        threshold = deviations.find_threshold(float(problem.noise.variance(1.0)), problem.num_aggregates == 2)
    errors, error = (evaluate_users(problem, deviations, h) for h in (bounds, threshold))
    return UsersSolution(threshold, threshold * problem.value_bound / 2.0, error, errors, deviations)


def evaluate_users(
    problem: mean.MeanProblem, deviations: UserDeviations | None, thresholds: npt.ArrayLike
) -> mean.MeanError:
    """Return the error at bounds of any shape, on the values at hand or, if they are None, in the model without."""
    if deviations is None:
        return problem.model.smooth(np.asarray(thresholds, dtype=np.float64))
    return deviations.error(thresholds, float(problem.noise.variance(1.0)), problem.num_aggregates == 2)


def propose_clamp(users: UsersSolution | None, rows: mean.SmoothChoice, clamp: Clamp) -> str:
    """Compare both ways of clamping and propose the better one; empty if nothing is known of users.

    On one table the biases of clamping and weighting can cancel, which says nothing of other tables. So the better way
    is the one with the smaller error if they are added.

    Args:
        users: Users clamped.
        rows: The best smooth weights if rows are clamped.
        clamp: The way in use.
    """
    if users is None:
        return ""
    if users.deviations is None:
        return SAME_WITHOUT_VALUES
    errors = {Clamp.ROWS: rows.standard_error, Clamp.USERS: users.standard_error}
    added_errors = {
        Clamp.ROWS: math.hypot(
            users.deviations.sum_biases(rows.threshold, clamps_users=False), math.sqrt(rows.privacy_variance)
        ),
        Clamp.USERS: math.hypot(
            users.deviations.sum_biases(users.threshold, clamps_users=True),
            math.sqrt(float(users.error.privacy_variance)),
        ),
    }
    other = Clamp.USERS if clamp is Clamp.ROWS else Clamp.ROWS
    change_text = wording.change(errors[other], errors[clamp])
    field = USERS_FIELD if other is Clamp.USERS else ROWS_FIELD
    is_better = added_errors[other] < added_errors[clamp] * (1.0 - 1e-9)
    advice = f" Choose {field} under *Clamp*." if is_better else ""
    cancelling = ""
    if (errors[other] < errors[clamp] * (1.0 - 1e-9)) != is_better:
        rows_text, users_text = (wording.number(error) for error in added_errors.values())
        cancelling = f" Biases cancel on this table: added up, the errors are {rows_text} (rows), {users_text} (users)."
    return f"{field} clamped: error {wording.number(errors[other])}, {change_text}.{cancelling}{advice}"


def write_headline(users: UsersSolution) -> str:
    """Write the instruction."""
    rows = wording.counted(users.threshold, "row")
    return (
        f"Weigh a user as at most {rows}, and limit their total deviation to ± {wording.number(users.limit)}."
    )


def write_user_detail(
    users: UsersSolution,
    rows: mean.SmoothChoice,
    problem: mean.MeanProblem,
    leak_sentences: Sequence[str],
) -> str:
    """Write the sentences that qualify the headline, most important first; those on leaks come last."""
    sentences = [propose_clamp(users, rows, Clamp.USERS)]
    if users.deviations is not None:
        sentences.append("Error about **the mean of these rows**, smooth weights both.")
    if isinstance(problem, PrivateCountsProblem):
        sentences.append("Counts are **private too**.")
        share = problem.noise_share(users.threshold, smooth=True)
        if share > ROUGH_NOISE:
            sentences.append(
                f"**The noise is {wording.percent(share)} of the sum of weights**: this error is rough."
            )
    return " ".join([*sentences, *leak_sentences])


def build_user_numbers(
    users: UsersSolution, rows_error: float, key: str, num_users: int
) -> tuple[Number, ...]:
    """Build the bound, its error, the limit, and the error if rows are clamped.

    Args:
        users: The solution.
        rows_error: The error of the best smooth weights if rows are clamped.
        key: Name of the error in programs.
        num_users: Number of all users.
    """
    number, error = wording.number, users.standard_error
    num_cut = 0 if users.deviations is None else users.deviations.count_cut(users.threshold)
    share = wording.percent(float(users.error.privacy_variance) / float(users.error.variance))
    unit = wording.agreeing(users.threshold, "row per user", "rows per user")
    cut_note = f"cuts {wording.counted(num_cut, 'user')} ({wording.percent(num_cut / num_users)})"
    limit_help = "T = h (U − L)/2, on the rows' weight times the distance of the user's mean from (L + U)/2."
    return (
        Number(
            "Bound of the weights",
            number(users.threshold),
            unit,
            "The rows of a heavier user together weigh as much as this many.",
            users.threshold,
            ROWS_UNIT,
            "threshold",
        ),
        Number(
            wording.capital(key.replace("_", " ")),
            number(error),
            f"({share} noise)",
            "Root mean square distance of a release from the mean.",
            error,
            UNIT,
            key,
        ),
        Number(
            "Deviation limit",
            f"± {number(users.limit)}",
            cut_note if users.deviations is not None else "",
            limit_help,
            users.limit,
            "rows × unit of the values",
            "deviation_limit",
        ),
        Number(
            "Error, rows clamped",
            number(rows_error),
            wording.change(rows_error, error),
            "Of the best smooth weights, each row clamped to [L, U].",
            rows_error,
            UNIT,
            "rows_error",
        ),
    )


def list_user_error_parts(users: UsersSolution) -> tuple[ErrorPart, ...]:
    """Return the parts of the error; their squares add up to its square."""
    sampling = {} if users.deviations is not None else {SAMPLING: float(users.error.sampling_variance) ** 0.5}
    bias = {BIAS: abs(float(users.error.shift))} if users.deviations is not None else {}
    return build_error_parts(
        {**bias, **sampling, NOISE: float(users.error.privacy_variance) ** 0.5}, wording.number
    )


def build_user_facts(
    users: UsersSolution, problem: mean.MeanProblem, rows_facts: Mapping[str, str], own_bound: int | None
) -> dict[str, str]:
    """Build the facts behind the answer; those on users, noise and counts are the same as of clamped rows."""
    histogram, number = problem.histogram, wording.number

    def compute_errors(bounds: list[float]) -> FloatArray:
        return np.sqrt(evaluate_users(problem, users.deviations, bounds).variance)

    half_and_double = standard.compare_half_and_double(
        users.threshold, compute_errors, number, is_integer=False
    )
    facts = {"Half or double": half_and_double}
    if own_bound is not None:
        own_error = float(compute_errors([float(own_bound)])[0])
        facts[f"Your own bound, {wording.counted(own_bound, 'row')}"] = standard.compare_own_bound(
            "error", own_error, users.standard_error, number
        )
    if (deviations := users.deviations) is not None:
        num_cut = deviations.count_cut(users.threshold)
        facts["Who is affected"] = (
            f"{wording.counted(num_cut, 'user')} ({wording.percent(num_cut / histogram.num_users)}) "
            f"{wording.agreeing(num_cut, 'deviates', 'deviate')} by more than the limit. Users with fewer rows than "
            "the bound may lie farther from the middle."
        )
    kept_names = ("How users differ", "Noise", "Where counts are private", "At which mean")
    return facts | {name: text for name, text in rows_facts.items() if name in kept_names}


def plot_user_errors(
    users: UsersSolution,
    bounds: FloatArray,
    rows_smoothed: mean.MeanError,
    problem: mean.MeanProblem,
    dataset: Dataset,
    own_bound: int | None,
) -> Plot:
    """Plot the error over the bound, of clamped users with its parts, and of clamped rows: the main figure."""
    error, rows_error = np.sqrt(users.errors.variance), np.sqrt(rows_smoothed.variance)
    shift = np.broadcast_to(np.abs(users.errors.shift), bounds.shape)
    parts = {BIAS: shift, NOISE: np.sqrt(users.errors.privacy_variance)}
    if users.deviations is None:
        parts = {SAMPLING: np.sqrt(users.errors.sampling_variance), NOISE: parts[NOISE]}
    columns = {"bound": bounds, "users_error": error, "rows_error": rows_error}
    columns |= {f"users_{name.lower()}": part for name, part in parts.items()}
    setting = np.full(bounds.size, "private too" if problem.num_aggregates == 2 else "public")
    best = users.standard_error
    marks = [Mark("Best bound", users.threshold, best, Style.TOTAL)]
    if own_bound is not None:
        own_error = math.sqrt(float(evaluate_users(problem, users.deviations, float(own_bound)).variance))
        marks.append(Mark("Your own bound", own_bound, own_error, Style.ENTERED, "square"))
    start = float(own_bound or max(round(users.threshold), 1))
    return Plot(
        "mean-error",
        "Error over the bound",
        f"With users' deviations clamped the error is least at {wording.number(users.threshold)} rows, "
        f"{wording.number(best)}.",
        build_bound_axis(problem.histogram),
        Axis(
            "error",
            UNIT,
            fit_limits(np.concatenate((error, rows_error)), np.concatenate(list(parts.values()))),
        ),
        (
            Curve("Users clamped", bounds, error, Style.TOTAL),
            *(Curve(name, bounds, part, PART_STYLES[name]) for name, part in parts.items()),
            Curve("Rows clamped", bounds, rows_error, Style.SMOOTH),
            *marks,
        ),
        dataset.provenance,
        {**columns, "contribution_counts": setting},
        is_main=True,
        handle=build_handle(problem, bounds, users.errors, parts, start, best),
    )


MAX_ERRORS = 5.0
"""Ends of the axis of simulated releases, in best errors: at the best bound hardly one of them lies beyond."""


def build_handle(
    problem: mean.MeanProblem,
    bounds: FloatArray,
    errors: mean.MeanError,
    parts: Mapping[str, FloatArray],
    start: float,
    best_error: float,
) -> Handle:
    """Build the handle: whose rows the bound cuts, and what releases it gives, by the model of the error alone.

    Args:
        problem: The problem.
        bounds: Where the handle may stand.
        errors: The error there.
        parts: Its parts as the figure has them.
        start: Where it stands at first.
        best_error: Root mean square error of the best bound.
    """
    histogram, noise_kind = problem.histogram, problem.noise.kind
    dots = Dots(
        # What a release lacks of the truth.
        -np.broadcast_to(errors.shift, bounds.shape),
        parts[NOISE] * (noise_kind.mean_magnitude / math.sqrt(noise_kind.unit_variance)),
        draw_unit_noise(noise_kind),
        Spread.ROOT_MEAN_SQUARE,
        MAX_ERRORS * best_error,
        sampling_deviations=np.sqrt(errors.sampling_variance),
        unit_sampling_draws=draw_normal(noise_kind),
    )
    return Handle(
        "Bound",
        bounds,
        np.sqrt(errors.variance),
        start,
        "own_bound",
        is_integer=True,
        error_parts=parts,
        user_bars=(sample_users(histogram.sizes, histogram.users, "rows"),),
        dots=dots,
    )


def write_user_methods(
    methods: Methods, users: UsersSolution, problem: mean.MeanProblem, parameters: MeanParameters
) -> Methods:
    """Write the methods section of clamped users; guarantee and rule are from that of clamped rows."""
    middle, limit_text = (
        wording.entered((parameters.lower + parameters.upper) / 2.0),
        wording.number(users.limit),
    )
    released_text = "the sum of these deviations"
    if problem.num_aggregates == 2:
        released_text = (
            "the two sums of users' weights times half of the width of the range, plus "
            "and minus their deviations"
        )

    def write_steps(weight_text: str, limit_text: str) -> str:
        return (
            f"All rows of a user together weighed at most as much as {weight_text}. The deviation of each user's mean "
            f"from {middle}, times that weight, was clamped to {limit_text}, and "
            f"{cite_noise(problem.noise.kind.value, problem.program)} for a sensitivity of twice this limit was added "
            f"to {released_text}."
        )

    error_text = wording.number(users.standard_error)
    steps_text = write_steps(wording.counted(users.threshold, "row"), f"± {limit_text}")
    return replace(
        methods,
        procedure=f"{steps_text} The expected error of the released mean is {error_text} in the unit of the values, "
        "noise included.",
        public_procedure=write_steps("a fixed number of rows", "a fixed limit"),
        rule_sentence=methods.rule_sentence.replace(
            "The bound on rows per user", "The bound on a user's weight"
        ),
    )


# --- the range ---


def build_problem(dataset: Dataset, problem: mean.MeanProblem) -> ClampedUsersProblem | None:
    """Build the problem of the best range and bound if users are clamped; None if no program or no value has any."""
    if dataset.values is None or problem.program in SPLITS_MEANS:
        return None
    users_problem = ClampedUsersProblem(
        dataset.values, float(problem.noise.variance(1.0)), problem.num_aggregates == 2
    )
    means = users_problem.users.means
    return users_problem if means.min() < means.max() else None


def describe_choice(
    problem: ClampedUsersProblem,
    threshold: float,
    lower: float,
    upper: float,
    certificate: Certificate | None,
) -> RangeChoice:
    """Return a range for users, with the parts of its error, in the form of a range for rows."""
    parts = problem.measure_parts(threshold, (lower + upper) / 2.0, threshold * (upper - lower) / 2.0)
    certificate = certificate or Certificate(parts.error, 0.0, "it is not claimed to be the best")
    return RangeChoice(
        lower, upper, threshold, parts.clamping, parts.bounding, parts.noise, parts.error, certificate
    )


def find_best_choice(
    problem: ClampedUsersProblem, *, progress: Progress = silent, should_stop: ShouldStop = never
) -> RangeChoice:
    """Find the best range and bound for users together, by `dpcore.mean.clamped_users.best_joint`."""
    best = best_joint(problem, progress=progress, should_stop=should_stop)
    half_width = best.width / 2.0
    ends = best.centre - half_width, best.centre + half_width
    return describe_choice(problem, best.threshold, *ends, best.certificate)


def is_usable(problem: ClampedUsersProblem, choice: RangeChoice) -> bool:
    """Return True if a release can use a range: half of the users' weight or more is not clamped.

    If noise is very large, the best range is next to a single value, which it publishes.
    """
    weights = np.minimum(choice.threshold, problem.users.sizes)
    middle, limit = (
        (choice.lower + choice.upper) / 2.0,
        choice.threshold * (choice.upper - choice.lower) / 2.0,
    )
    deviations = np.abs(weights * (problem.users.means - (middle - problem.mean)))
    is_wide = choice.upper - choice.lower > 1e-9 * max(abs(choice.lower), abs(choice.upper))
    return is_wide and float(weights[deviations > limit * (1.0 + 1e-9)].sum()) <= 0.5 * float(weights.sum())


def compute_errors(
    problem: ClampedUsersProblem, threshold: float, lowers: npt.ArrayLike, uppers: npt.ArrayLike
) -> FloatArray:
    """Compute the error, without cancelling, over ranges; many users count in groups, at nearly no difference.

    Args:
        problem: The question.
        threshold: h, in rows per user.
        lowers: L, a number or shape (ranges,).
        uppers: U, likewise.
    """
    points, sum_weights = problem.points, problem.sum_weights(threshold)
    weights, bias = np.minimum(threshold, points.sizes), abs(problem.compute_shift(threshold))
    lower, upper = np.broadcast_arrays(
        np.asarray(lowers, dtype=np.float64), np.asarray(uppers, dtype=np.float64)
    )
    offsets, limits = (lower + upper) / 2.0 - problem.mean, threshold * (upper - lower) / 2.0
    cuts = [
        float(points.num_users @ np.maximum(np.abs(weights * (points.means - offset)) - limit, 0.0))
        / sum_weights
        for offset, limit in zip(offsets.tolist(), limits.tolist(), strict=True)
    ]
    squares = 4.0 * limits**2
    if problem.has_private_counts:
        squares = 2.0 * (limits**2 + (threshold * offsets) ** 2)
    return np.asarray(
        np.sqrt((bias + np.array(cuts)) ** 2 + problem.unit_variance * squares / sum_weights**2)
    )
