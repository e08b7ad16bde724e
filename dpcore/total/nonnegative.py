"""Sum and count: the best upper bound on what one user adds, and what each bound costs.

Setting (Amin et al. 2019, section 3): user i holds x_i >= 0, the number of their rows or the total of a
column; sum_i min(x_i, T) is released with noise for sensitivity T; neighbours add or remove one user. Errors
are in the totals' own unit and are those on the very data given: nothing is averaged over a population.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Decimal
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpcore.common import noise_error, weights
from dpcore.common.certificate import Certificate
from dpcore.common.checks import Problems
from dpcore.common.noise_error import Measure, NoiseKind
from dpcore.common.privacy import Neighbours
from dpcore.common.programs import LARGEST_GAIN, DrawnNoise, Program, find_noise
from dpcore.common.wording import format_count, format_entered
from dpcore.contributions import FloatArray
from dpcore.data.totals_per_user import Amounts

NEIGHBOURS = Neighbours.ADD_OR_REMOVE_USER
MAX_WHOLE_TOTAL = 2.0**53
"""The largest float64 whose next whole number is one, too."""
NUM_PROBES = 64
"""Totals evaluated at once in the search, and most bounds that a certificate compares under whole noise."""
MAX_CANDIDATES = 10_000
"""Whole bounds that are compared under whole noise."""
Interval = tuple[float, float]
"""Low and high end."""
MAX_COST_OF_ROUNDING = 1e-3
"""Share of the least error that rounding the bound may add."""


@dataclass(frozen=True)
class TotalProblem:
    """The question: release the sum of one non-negative total per user.

    Attributes:
        amounts: The totals x_i, grouped; `Amounts.from_totals`, `.from_histogram` or `.from_table`.
        epsilon: Privacy budget, above 0.
        mechanism: Laplace for epsilon-DP, Gaussian for (epsilon, delta)-DP.
        delta: Strictly between 0 and 1 with Gaussian noise; None with Laplace noise.
        measure: The error that the best bound minimises.
        is_integer: Whether only whole bounds T may be chosen (a cap on rows), or any T >= 0. Totals are then whole and
            at most `MAX_WHOLE_TOTAL`.
        program: The program whose noise the error is of; plain Python's is that of the papers.
        rounds_noise: False to compute with noise of real numbers where the program draws whole numbers.

    Raises:
        InvalidInput: A parameter is missing or out of its range; all problems at once.
    """

    amounts: Amounts
    epsilon: float
    mechanism: NoiseKind = NoiseKind.LAPLACE
    delta: float | None = None
    measure: Measure = Measure.ABSOLUTE
    is_integer: bool = False
    program: Program = Program.PYTHON
    rounds_noise: bool = True

    def __post_init__(self) -> None:
        """Raise `InvalidInput` with every parameter that is missing or out of its range."""
        with Problems() as problems:
            problems.of_kind(Amounts, amounts=self.amounts)
            problems.of_kind(Measure, measure=self.measure)
            problems.of_kind(Program, program=self.program)
            noise_error.check_noise(problems, self.mechanism, self.epsilon, self.delta)
        with problems:
            if self.is_integer and self.amounts.largest > MAX_WHOLE_TOTAL:
                problems.add(
                    f"whole bounds go up to 2⁵³ only, and a total is {format_entered(self.amounts.largest)}",
                    remedy="Allow any bound, or use a larger unit",
                )
            if not math.isfinite(self.unit_noise * max(self.amounts.largest, 1.0)):
                problems.add("epsilon is so small that the noise leaves float64")

    @cached_property
    def noise(self) -> DrawnNoise:
        """Return the noise that the program draws.

        For column totals, or if ``rounds_noise`` is False, it is noise of real numbers.
        """
        of_counts = self.is_integer and self.rounds_noise
        return find_noise(self.program, self.mechanism, self.epsilon, self.delta, is_of_counts=of_counts)

    @property
    def unit_noise(self) -> float:
        """Return the scale of the noise at sensitivity 1: b of Laplace or sigma of Gaussian noise."""
        return self.noise.unit_scale


@dataclass(frozen=True)
class TotalErrors:
    """The error of the released sum, by its parts and by each measure, at given bounds.

    Attributes:
        bounds: T, in the totals' unit; the other fields have its shape and unit.
        bias: a = sum_i (x_i - T)_+, what the bound cuts away.
        mean_noise: Mean magnitude of the noise.
        absolute_errors: E|release - sum|, exactly.
        rmse: Root of E(release - sum)^2, exactly.
    """

    bounds: FloatArray
    bias: FloatArray
    mean_noise: FloatArray
    absolute_errors: FloatArray
    rmse: FloatArray

    @property
    def bias_plus_noise(self) -> FloatArray:
        """Return bias plus mean noise, the paper's upper bound on the absolute error (equation 5)."""
        return np.asarray(self.bias + self.mean_noise)

    def measure_noise(self, measure: Measure) -> FloatArray:
        """Return the noise at each bound: its root mean square for the RMSE, else its mean magnitude."""
        if measure is not Measure.RMSE:
            return self.mean_noise
        return np.asarray(np.sqrt(np.maximum(self.rmse - self.bias, 0.0)) * np.sqrt(self.rmse + self.bias))

    def measure_error(self, measure: Measure) -> FloatArray:
        """Return the error by one measure at each bound, shape of `bounds`."""
        if measure is Measure.BOUND:
            return self.bias_plus_noise
        return self.rmse if measure is Measure.RMSE else self.absolute_errors


def compute_errors(problem: TotalProblem, bounds: npt.ArrayLike) -> TotalErrors:
    """Compute the error of each bound by every measure.

    Args:
        problem: The question; its ``measure`` does not matter here.
        bounds: T >= 0 in the totals' unit, any shape.

    Source: Amin et al. 2019, equations 3 to 5, for bias, noise and bound. The exact errors are ours: with
    noise of scale b beside a bias a, E|a + Lap(b)| = a + b e^(-a/b), and RMSE^2 = a^2 + 2 b^2.
    """
    return build_errors(problem.noise, bounds, problem.amounts.sum_excess(bounds))


def build_errors(drawn_noise: DrawnNoise, bounds: npt.ArrayLike, bias: npt.ArrayLike) -> TotalErrors:
    """Build the errors of bounds T from the bias at each and the noise."""
    bound_array, bias_array = np.asarray(bounds, dtype=np.float64), np.asarray(bias, dtype=np.float64)
    return TotalErrors(
        bounds=bound_array,
        bias=bias_array,
        mean_noise=drawn_noise.compute_mean_magnitude(bound_array),
        absolute_errors=drawn_noise.compute_mean_absolute(bias_array, bound_array),
        rmse=drawn_noise.measure_error(Measure.RMSE, bias_array, bound_array),
    )


def measure_errors(problem: TotalProblem, bounds: npt.ArrayLike) -> FloatArray:
    """Compute the error of each bound by the problem's own measure, shape of ``bounds``."""
    t = np.asarray(bounds, dtype=np.float64)
    return problem.noise.measure_error(problem.measure, problem.amounts.sum_excess(t), t)


@dataclass(frozen=True)
class TotalChoice:
    """The best upper bound on one user's total.

    Attributes:
        max_total: T, in the totals' unit; 0 where nothing useful can be released.
        errors: The errors of T, each of shape ().
        num_users_affected: Users with more than T.
        error_of_nothing: The error of always publishing 0, which is the sum itself.
        certificate: The error by the problem's measure beside a lower bound for every T >= 0 (every whole
            T where the problem asks for one).
        stop_reason: How the search ended, a sentence.
    """

    max_total: float
    errors: TotalErrors
    num_users_affected: int
    error_of_nothing: float
    certificate: Certificate
    stop_reason: str

    @property
    def gain(self) -> float:
        """Return 1 − error / `error_of_nothing`, by the problem's measure; 0 if the release is useless."""
        if self.error_of_nothing == 0.0:
            return 0.0
        return 1.0 - self.certificate.value / self.error_of_nothing


def compute_critical_rank(problem: TotalProblem) -> int:
    """Compute the rank r >= 1 for which the bound of equation 5 is least at the r-th largest total.

    It is ceil(1 / epsilon) for Laplace noise, and ceil(sigma_1 sqrt(2 / pi)) for Gaussian noise with sigma_1 its
    standard deviation at sensitivity 1. A value within a relative 1e-12 of a whole number is that number: 1 / (1 /
    49) is 49.00000000000001 in float64.

    Source: Amin et al. 2019, equation 6.
    """
    price = problem.noise.kind.mean_magnitude * problem.unit_noise
    nearest_integer = math.floor(price + 0.5)
    return max(nearest_integer if abs(price - nearest_integer) <= 1e-12 * price else math.ceil(price), 1)


def find_best_choice(problem: TotalProblem) -> TotalChoice:
    """Find the best upper bound on one user's total, exactly, with a certificate.

    Bias is convex and noise linear in T, and every measure is a nondecreasing jointly convex function of
    both: the error is convex in T. Bisection over the distinct totals by the sign of the slope finds the
    piece; in it the root has a closed form in the bias-to-noise ratio (`noise_error.find_balance`).

    Returns:
        `TotalChoice`. For the bound, T is the ceil(1 / epsilon)-th largest total (`compute_critical_rank`), or 0.
    """
    max_total = find_optimal_bound(problem)
    return TotalChoice(
        max_total=max_total,
        errors=compute_errors(problem, max_total),
        num_users_affected=int(problem.amounts.count_users_above(max_total)),
        error_of_nothing=problem.amounts.total,
        certificate=certify(problem, max_total),
        stop_reason=_describe_stop(problem, max_total),
    )


def find_optimal_bound(problem: TotalProblem) -> float:
    """Find the T of `find_best_choice` without its certificate; 0 if nothing useful can be released.

    Under noise of real numbers the cost is logarithmic in the number of distinct totals.
    """
    if problem.amounts.total == 0.0:
        return 0.0
    if problem.noise.is_discrete:
        candidate_bounds = _list_candidates(problem, find_optimal_bound(replace(problem, rounds_noise=False)))
        return float(candidate_bounds[int(np.argmin(measure_errors(problem, candidate_bounds)))])
    if problem.measure is Measure.BOUND:
        best_real_bound = problem.amounts.find_total_at_rank(compute_critical_rank(problem))
    else:
        best_real_bound = _minimise_exact(problem)
    if not problem.is_integer:
        return best_real_bound
    # Convex: the best whole T is a neighbour of the best T.
    candidate_bounds = np.array([math.floor(best_real_bound), math.ceil(best_real_bound)], dtype=np.float64)
    return float(candidate_bounds[int(np.argmin(measure_errors(problem, candidate_bounds)))])


def _list_candidates(problem: TotalProblem, best_real_bound: float) -> FloatArray:
    """List the whole bounds that can be best under whole noise, from the best one under noise of real numbers.

    Whole noise errs less than noise of real numbers, by at most `programs.LARGEST_GAIN`; the error under the latter is
    convex. So no bound outside the interval in which it is within that of the best can be best.
    Of more than `MAX_CANDIDATES` such bounds, as many evenly spaced ones are listed.
    """
    real_problem = replace(problem, rounds_noise=False)
    real_error = float(measure_errors(real_problem, best_real_bound))
    error_limit = (
        math.hypot(real_error, LARGEST_GAIN) if problem.measure is Measure.RMSE else real_error + LARGEST_GAIN
    )
    min_bound, max_bound = weights.find_interval_within(
        lambda bounds: measure_errors(real_problem, bounds),
        minimiser=best_real_bound,
        lowest_point=0.0,
        highest_point=problem.amounts.largest,
        objective_limit=error_limit,
        is_integer=True,
    )
    # More would have to be nearly equal by chance, over so many bounds that the best one's error is in the thousands.
    bounds = np.round(np.linspace(min_bound, max_bound, min(int(max_bound - min_bound) + 1, MAX_CANDIDATES)))
    return np.union1d(bounds, [best_real_bound])


def _minimise_exact(problem: TotalProblem) -> float:
    """Find the T with the least error by an exact measure, under noise of real numbers.

    Between two neighbouring totals the bias is linear in T, and the slope of the error depends on T only through the
    ratio of bias to noise. The sign of the slope tells between which totals the minimum is; there the root has a
    closed form. No tolerance is needed.
    """
    amounts, unit_noise = problem.amounts, problem.unit_noise
    perspective = noise_error.make_perspective(problem.noise.kind, problem.measure)
    # Convexity makes the sign of the slope monotone over the totals: that is what the search needs.
    # At the largest total nobody lies above: the error rises.
    low_index, high_index = 0, amounts.values.size - 1
    while low_index < high_index:
        # Many at once: a call takes longer than so many totals in it.
        probe_indices = np.unique(np.linspace(low_index, high_index - 1, NUM_PROBES).astype(np.int64))
        totals = amounts.values[probe_indices]
        amounts_cut, num_users_above = amounts.sum_excess(totals), amounts.count_users_above(totals)
        slopes = _compute_slopes(problem, totals, amounts_cut, num_users_above)
        rising_probes = np.flatnonzero(slopes >= 0.0)
        first_rising_probe = int(rising_probes[0]) if rising_probes.size else probe_indices.size
        low_index = int(probe_indices[first_rising_probe - 1]) + 1 if first_rising_probe else low_index
        high_index = int(probe_indices[first_rising_probe]) if rising_probes.size else high_index
    left_total = float(amounts.values[low_index - 1]) if low_index else 0.0
    # On this piece the bias is S - q T: the ratio r to the noise unit * T fixes T = S / (q + r unit).
    q, s = float(amounts.count_users_above(left_total)), float(amounts.sum_above(left_total))
    r = noise_error.find_balance(perspective, q / unit_noise)
    # The root may round just outside the piece on which its formula holds.
    return min(max(s / (q + r * unit_noise), left_total), float(amounts.values[low_index]))


def _compute_slopes(
    problem: TotalProblem, bounds: npt.ArrayLike, amounts_cut: npt.ArrayLike, num_users_above: npt.ArrayLike
) -> FloatArray:
    """Compute the derivative of the error at each T, on the side on which so many users have more."""
    perspective = noise_error.make_perspective(problem.noise.kind, problem.measure)
    noise_scales = problem.unit_noise * np.asarray(bounds, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        r = np.where(noise_scales > 0.0, np.asarray(amounts_cut, dtype=np.float64) / noise_scales, math.inf)
    intercepts, slopes = perspective.compute_intercept(r), perspective.compute_slope(r)
    return np.asarray(problem.unit_noise * intercepts - np.asarray(num_users_above) * slopes)


def certify(problem: TotalProblem, bound: float) -> Certificate:
    """Compute the error at T beside a lower bound for every T >= 0, by subgradients computed from the totals anew.

    With g the slope to the left of T, every smaller bound has an error of at least J(T) - max(g, 0) T. With g the
    slope to its right, every larger one up to max x has at least J(T) + min(g, 0) (max x - T). Beyond max x only
    noise grows. Where the error falls toward one side, a second point on that side (the next whole number where only
    whole bounds are allowed) does the same for all that lies beyond it.
    """
    if problem.noise.is_discrete:
        return _certify_whole(problem, bound)
    error, slope_left, slope_right = _recompute(problem, bound)
    # Beyond the largest total (rounded up where only whole bounds count) more noise is all there is.
    largest_total = problem.amounts.largest
    largest_bound = float(math.ceil(largest_total)) if problem.is_integer else largest_total
    lower_bound = min(
        _bound_one_side(problem, bound, error, slope_left, 0.0),
        _bound_one_side(problem, bound, error, slope_right, largest_bound),
    )
    allowed_text = "whole bounds" if problem.is_integer else "bounds"
    return Certificate(error, lower_bound, f"convex in the bound; subgradients for all {allowed_text}")


def _certify_whole(problem: TotalProblem, bound: float) -> Certificate:
    """Compute the error under whole noise beside a lower bound.

    The lower bound is the least error of all bounds that can be best. If there are more than `NUM_PROBES`, it is the
    lower bound under noise of real numbers less `programs.LARGEST_GAIN`.
    """
    real_problem, error = replace(problem, rounds_noise=False), _recompute(problem, bound)[0]
    real_certificate = certify(real_problem, bound)
    candidate_bounds = _list_candidates(problem, find_optimal_bound(real_problem))
    if candidate_bounds.size <= NUM_PROBES:
        lower_bound = min(_recompute(problem, float(candidate))[0] for candidate in candidate_bounds)
    elif problem.measure is Measure.RMSE:
        lower_bound = math.sqrt(max(real_certificate.lower_bound**2 - LARGEST_GAIN**2, 0.0))
    else:
        lower_bound = max(real_certificate.lower_bound - LARGEST_GAIN, 0.0)
    return Certificate(
        error,
        min(lower_bound, error),
        f"{real_certificate.argument}; near bounds compared under noise of whole numbers",
    )


def _recompute(problem: TotalProblem, bound: float) -> tuple[float, float, float]:
    """Return (the error at T, its slope to the left, its slope to the right), by sums over all totals."""
    totals, num_users_per_total = problem.amounts.values, problem.amounts.users
    bias = float(np.sum(np.maximum(totals - bound, 0.0) * num_users_per_total))
    error = float(problem.noise.measure_error(problem.measure, bias, bound))
    num_above = float(np.sum(num_users_per_total, where=totals > bound, dtype=np.float64))
    num_at_or_above = float(np.sum(num_users_per_total, where=totals >= bound, dtype=np.float64))
    left_slope, right_slope = _compute_slopes(problem, bound, bias, [num_at_or_above, num_above])
    return error, float(left_slope), float(right_slope)


def _bound_one_side(problem: TotalProblem, bound: float, error: float, slope: float, end: float) -> float:
    """Return a lower bound on the error of every bound between T and ``end``.

    ``error`` and ``slope`` are those at T, the slope on that side.
    """
    # A convex error lies above each of its tangents. The one at T alone would be a poor bound far away from it, so a
    # second tangent, taken where the error no longer falls, covers everything beyond that point.
    direction = math.copysign(1.0, end - bound)
    descent = -slope * direction  # How fast the error falls when T moves toward the end.
    if descent <= 0.0 or end == bound:
        return error
    turning_point = _find_second_point(problem, bound, direction, end)
    turning_error, *slopes = _recompute(problem, turning_point)
    # Between the two points the first tangent holds; a whole step leaves nothing between them.
    least_beyond = turning_error - max(-slopes[direction > 0.0] * direction, 0.0) * abs(end - turning_point)
    distance = abs(turning_point - bound)
    least_between = error if problem.is_integer and distance <= 1.0 else error - descent * distance
    # Both are valid lower bounds on this side, so the larger one is, too.
    return max(min(least_between, least_beyond), error - descent * abs(end - bound))


def _find_second_point(problem: TotalProblem, bound: float, direction: float, end: float) -> float:
    """Find a point between T and ``end`` from which on the error no longer falls toward ``end``.

    It is the first such point among doubling distances from T, or ``end`` itself.
    """
    # Near T rounding of the slope decides, so the distance doubles until the slope has clearly turned. Whole bounds
    # near 2^53 are whole steps apart that float64 can hardly tell from each other, so that one step may be too few.
    for exponent in range(53):
        whole_step, relative_step = direction * 2.0**exponent, direction * 2.0 ** (exponent - 52)
        tested_bound = bound + whole_step if problem.is_integer else bound * (1.0 + relative_step)
        if (end - tested_bound) * direction <= 0.0:
            break
        amount_cut = problem.amounts.sum_excess(tested_bound)
        num_users_above = problem.amounts.count_users_above(tested_bound)
        if _compute_slopes(problem, tested_bound, amount_cut, num_users_above) * direction >= 0.0:
            return tested_bound
    return end


def _describe_stop(problem: TotalProblem, max_total: float) -> str:
    """Write how the search ended, as one sentence, which says if a release is of no or little use."""
    if problem.amounts.total == 0.0:
        return "All totals are 0."
    rank = compute_critical_rank(problem)
    users_text, has_too_few_users = format_count(rank, "user"), not problem.amounts.find_total_at_rank(rank)
    if problem.measure is Measure.BOUND:
        if has_too_few_users:
            return f"Nothing useful can be released: it takes at least {users_text} with a positive total."
        return f"Exact: the total of rank {rank:,} from the top."
    if max_total == 0.0:
        return "Nothing useful can be released: publishing 0 has a smaller error."
    if has_too_few_users:
        return f"Of little use: it takes about {users_text} with a positive total."
    return "Exact: bisection over the totals, then a root."


def compute_error_interval(problem: TotalProblem, bound: float, coverage: float = 0.95) -> Interval:
    """Return the interval around -bias that holds release - sum with probability ``coverage``.

    Returns:
        (low, high), in the totals' unit.

    Raises:
        InvalidInput: ``coverage`` not in [0, 1).
    """
    half_width = problem.noise.find_half_width(coverage, bound)
    bias = float(problem.amounts.sum_excess(bound))
    return -bias - half_width, -bias + half_width


def find_short_bound(problem: TotalProblem, best_bound: float) -> float:
    """Round the best bound to few digits, because the exact value often equals one user's total.

    The result is the shortest decimal just below or above the best bound whose error is at most `MAX_COST_OF_ROUNDING`
    more than the least; of both, the one with the smaller error. Four digits always suffice: every measure J is
    nondecreasing and homogeneous in bias and noise, so J(T (1 + r)) <= (1 + r) J(T), and rounding up to four digits
    moves T by r < 0.1 %.

    Args:
        problem: The question; where only whole bounds count, nothing is rounded.
        best_bound: Its `optimal_bound`.
    """
    if problem.is_integer:
        return best_bound
    return round_to_few_digits(best_bound, lambda bounds: measure_errors(problem, bounds))


def round_to_few_digits(best_bound: float, compute_errors: Callable[[FloatArray], FloatArray]) -> float:
    """Round a bound to the fewest digits, up to four, that cost at most `MAX_COST_OF_ROUNDING`; else return it.

    Args:
        best_bound: The best bound, at least 0.
        compute_errors: Root error, or any measure in the totals' unit, at bounds of shape (k,); shape (k,).
    """
    if best_bound == 0.0:
        return best_bound
    error_limit = float(compute_errors(np.array([best_bound]))[0]) * (1.0 + MAX_COST_OF_ROUNDING)
    exact_bound = Decimal(best_bound)
    for num_digits in range(1, 5):
        last_digit_unit = Decimal(1).scaleb(exact_bound.adjusted() + 1 - num_digits)
        rounded_down = exact_bound.quantize(last_digit_unit, ROUND_FLOOR)
        rounded_up = rounded_down if rounded_down == exact_bound else rounded_down + last_digit_unit
        candidate_bounds = np.array([float(rounded_down), float(rounded_up)])
        candidate_errors = compute_errors(candidate_bounds)
        if float(candidate_errors.min()) <= error_limit:
            return float(candidate_bounds[int(np.argmin(candidate_errors))])
    return best_bound


def find_near_optimal_bounds(problem: TotalProblem, excess: float = 0.05) -> Interval:
    """Find the interval of bounds with an error of at most (1 + ``excess``) times the least.

    Whole bounds end at the largest total: beyond it a cap on rows cuts nothing.
    """
    best_bound = find_optimal_bound(problem)
    # Above the largest total there is noise alone, which grows with T: so far a T within the limit can lie.
    largest_total = problem.amounts.largest
    return weights.find_interval_within(
        lambda bounds: measure_errors(problem, bounds),
        minimiser=best_bound,
        lowest_point=0.0,
        highest_point=math.ceil(largest_total) if problem.is_integer else largest_total * (1.0 + excess),
        objective_limit=float(measure_errors(problem, best_bound)) * (1.0 + excess),
        is_integer=problem.is_integer,
    )
