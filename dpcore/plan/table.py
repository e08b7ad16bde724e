"""The curves of a plan's lines, computed from a data set.

All lines have one relation: one user is added or removed, with all their rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.common.checks import EPSILON_RANGE, Problems, refuse
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Neighbours, compute_gaussian_epsilon
from dpcore.common.programs import Program, find_share_noise
from dpcore.contributions import FloatArray, build_log_grid
from dpcore.data import binned_values
from dpcore.data.totals_per_user import Amounts
from dpcore.dataset import Contribution, Dataset
from dpcore.mean.parameters import Clamp
from dpcore.per_group.listed_pairs import build_pairs
from dpcore.per_group.moments import compute_pair_error
from dpcore.per_group.pair_of_bounds import find_best_pair, round_up
from dpcore.per_group.parameters import PerGroupParameters, Statistic
from dpcore.per_group.passes import compute_parts_by_max_groups
from dpcore.per_group.problem import PerGroupProblem
from dpcore.per_group.sorted_pairs import SortedPairs
from dpcore.plan import curves
from dpcore.plan.lines import DEFAULT_TARGET_SHARE, EXAMPLE_LINES, Line, LineStatistic
from dpcore.plan.mean_lines import (
    MAX_CAPS,
    build_mean_problem,
    list_mean_assumptions,
    make_moved_error,
    make_spread_curve,
    measure_mean,
    split_mean_error,
)
from dpcore.plan.parameters import PlanParameters
from dpcore.quantile import QuantileProblem, WeightKind, compute_output
from dpcore.quantile.base_distribution import build_uniform_base
from dpcore.quantile.mechanism import ASSUMPTIONS_BY_PROGRAM, compute_errors_over_epsilon
from dpcore.quantile.optimal_bound import find_best_bound
from dpcore.quantile.programs import BEST_OF, BIGQUERY_ROWS, TREE_PROGRAMS, WEIGHTED_PROGRAMS, lay_base
from dpcore.total.parameters import Summed, compute_user_totals

NEIGHBOURS = Neighbours.ADD_OR_REMOVE_USER
MAX_AMOUNT_BOUNDS, MAX_GROUP_BOUNDS = 64, 128
MAX_SEARCHED_PAIRS = 200_000
"""Pairs of user and group up to which all pairs of bounds are searched at a line's share of the budget."""
MAX_THRESHOLDS = 1024
"""Candidate bounds of a mean that clamps users, log-spaced."""
MAX_SIGNED_SUM_BOUNDS = 2048
SMALLEST_AMOUNT, LARGEST_AMOUNT = 1e-100, 1e100
"""Beyond, the square of an amount would be 0 or infinite."""
SMALLEST_V = 1e-18
_MAX_RANK_BOUNDS = 12
RANK_EPSILONS = np.geomspace(1e-4, 1e3, 33)
"""The error of a quantile is interpolated between these."""
TREE_EPSILONS, NUM_TREE_BOUNDS = np.geomspace(3e-3, 100.0, 15), 6
"""The same of simulated trees, and the number of candidate bounds: each error takes 30 ms. Beyond, little changes."""
MAX_TREE_SUBSAMPLES = 16
"""Random choices of rows over which their errors are averaged, at most."""
MAX_ROWS_TO_MEASURE_RANKS = 20_000
"""With more rows the error of a quantile is computed on fewer distinct values, to 1 %."""
MAX_RANKED_ROWS = 2_000_000
"""Rows times subsamples over which the error of a quantile is averaged."""
_GROUP_CURVE_EPSILON = 1e3
"""At which the noise of a line per group is small beside its bias."""


@dataclass(frozen=True, eq=False)
class PlannedLine:
    """A line as entered, with its curve of errors and all else that was computed from the data; without a share.

    Attributes:
        line: What is released.
        curve: Its least squared error.
        reference_value: What its relative error is relative to; NaN of a quantile, whose error is a share of rows.
        unit: Of its error and its bound's amount.
        target_error: The target error in that unit.
        assumptions: What its error assumes of users; sentences without their full stop.
        quantile_problem: The problem of a quantile for weights by user, its rows sorted; None for other lines.
        group_problem: The problem of a line per group whose curve lacks pairs of bounds, which are searched at its
            share; at a large epsilon. It is None for other lines.
        half_width: Of a mean that clamps users, half of U - L, so that T is the bound times it; None for other lines.
        mean_parts: Of a mean that clamps rows, its squared error without noise and the variance of its noise at v = 1
            under each of `curves.list_caps`, and U - L; None for other lines.
        shares_rows: True for rows, and means that take their number from them; see `dpcore.plan.shared_rows`.
        square_moved: Of a mean, the function of `mean_lines.make_moved_error`; None for other lines.
        program_problems: The problem of a quantile by the law of its program, on all rows; several of which the best
            answers if no program was chosen, none if rows are many or for other lines.
    """

    line: Line
    curve: curves.LineCurve
    reference_value: float
    unit: str
    target_error: float
    assumptions: tuple[str, ...] = ()
    quantile_problem: QuantileProblem | None = None
    group_problem: PerGroupProblem | None = None
    half_width: float | None = None
    program_problems: tuple[QuantileProblem, ...] = ()
    mean_parts: tuple[FloatArray, FloatArray, float] | None = None
    shares_rows: bool = False
    square_moved: Callable[..., FloatArray] | None = None

    def measure_errors(self, v: FloatArray) -> FloatArray:
        """Compute the error under the best bound at each v; of a mean or variance, after it is moved into its range."""
        return np.asarray(np.sqrt(np.maximum(curves.measure_squared_errors(self.curve, v), 0.0)))

    @property
    def noiseless_error(self) -> float:
        """Return the least error without noise, as nearly as a tiny v has it."""
        return float(self.measure_errors(np.array([SMALLEST_V]))[0])

    @property
    def weight(self) -> float:
        """Return the weight of the squared error: 1 / target_error^2, times the line's own weight."""
        return self.line.weight / self.target_error**2


def plan_lines(dataset: Dataset, parameters: PlanParameters) -> tuple[PlannedLine, ...]:
    """Compute the curve of every line, in their order.

    Raises:
        InvalidInput: The data lack what a line needs, or a relative error is wanted of a value of 0; all at once.
    """
    planned_lines: list[PlannedLine] = []
    with Problems() as problems:
        if not parameters.parsed_lines:
            problems.add("there is no line", remedy=f"Write what you release, such as: {EXAMPLE_LINES}")
        if dataset.contribution is not Contribution.ROWS:
            problems.add(
                "a plan counts rows, and in these data a contribution is something else",
                remedy="Count rows, under Data",
            )
        for line in parameters.parsed_lines if not problems.entries else ():
            with problems.collecting():
                planned_lines.append(_plan_line(dataset, parameters, line))
    return tuple(planned_lines)


def _plan_line(dataset: Dataset, parameters: PlanParameters, line: Line) -> PlannedLine:
    """Compute the `PlannedLine` of one line: curve, unit, target error and assumptions.

    Raises InvalidInput if the data lack what it needs.
    """
    dataset, parameters = dataset.find_column(line.column), parameters.choose_for(line)
    statistic, budget = line.statistic, parameters.budget
    unit_variance, whole_noise = budget.mechanism.unit_variance, find_whole_noise(parameters)
    has_sums_by_statistic = {
        LineStatistic.SUM: dataset.totals is not None and bool(dataset.totals.column),
        LineStatistic.GROUP_SUMS: dataset.pairs is not None,
    }
    if statistic.needs_values and dataset.values is None and not has_sums_by_statistic.get(statistic):
        raise refuse(f"{line.label} needs a column of values")
    if statistic.is_per_group and dataset.pairs is None:
        raise refuse(f"{line.label} needs groups")
    curve: curves.LineCurve
    unit_text, more_line_fields = dataset.value_column, dict[str, Any]()
    match statistic:
        case LineStatistic.USERS:
            reference_value, unit_text = float(dataset.histogram.num_users), "users"
            # A user counts once however many rows they have: noise at sensitivity 1 and no bias, or 0 is published.
            curve = curves.BoundCurve(
                [0.0, reference_value**2], [unit_variance, 0.0], [1.0, 0.0], whole_noise=whole_noise
            )
        case LineStatistic.ROWS:
            row_amounts = Amounts.from_histogram(dataset.histogram)
            curve = curves.TotalCurve(row_amounts, unit_variance, is_integer=True, whole_noise=whole_noise)
            reference_value, unit_text = row_amounts.total, "rows"
        case LineStatistic.SUM:
            curve, reference_value = _make_sum_curve(dataset, unit_variance)
        case LineStatistic.MEAN:
            mean_problem, reference_value, value_summary = build_mean_problem(dataset, parameters)
            bounds, has_all_bounds = curves.list_caps(dataset.histogram.max_size, MAX_CAPS)
            if parameters.clamp is Clamp.USERS:
                thresholds = np.geomspace(1.0, dataset.histogram.max_size, MAX_THRESHOLDS)
                bounds, has_all_bounds = curves.round_bounds(thresholds), False
                more_line_fields["half_width"] = mean_problem.value_bound / 2.0
            mean_error = measure_mean(mean_problem, value_summary, parameters, bounds)
            alpha, beta = split_mean_error(mean_error, budget.mechanism)
            # A query of BigQuery of two sums has three shares, where one of one number has two of twice its scale.
            noise_factor = (3.0 / 4.0) ** 2 if parameters.program is Program.BIGQUERY else 1.0
            beta = beta * noise_factor
            square_moved = make_moved_error(mean_problem, value_summary, parameters, noise_factor)
            curve = curves.BoundCurve(
                alpha, beta, bounds, has_all_bounds=has_all_bounds, measure_release=square_moved
            )
            more_line_fields["square_moved"] = square_moved
            if parameters.clamp is Clamp.ROWS:
                more_line_fields["mean_parts"] = alpha, beta, mean_problem.value_bound
            more_line_fields["assumptions"] = list_mean_assumptions(mean_problem, parameters, dataset)
        case LineStatistic.VARIANCE | LineStatistic.DEVIATION:
            curve, reference_value, assumptions = make_spread_curve(dataset, parameters, statistic)
            more_line_fields["assumptions"] = assumptions
            unit_text += "²" if unit_text and statistic is LineStatistic.VARIANCE else ""
        case LineStatistic.QUANTILE:
            curve, more_line_fields["quantile_problem"] = _make_quantile_curve(dataset, parameters, line)
            if dataset.histogram.num_rows <= MAX_ROWS_TO_MEASURE_RANKS:
                program_problems = _build_program_problems(dataset, parameters, line)
                more_line_fields["program_problems"] = program_problems
            reference_value, unit_text = math.nan, "share of rows"
            assumptions = binned_values.list_assumptions(dataset, is_quantile=True)
            if parameters.program in TREE_PROGRAMS:
                assumptions += ASSUMPTIONS_BY_PROGRAM[parameters.program]
            more_line_fields["assumptions"] = assumptions
        case _:
            curve, problem = _make_group_curve(dataset, parameters, statistic)
            reference_value = float(np.average(np.abs(problem.totals), weights=problem.pairs.multiplicities))
            if not curve.has_all_bounds and problem.pairs.num_pairs <= MAX_SEARCHED_PAIRS:
                more_line_fields["group_problem"] = problem
            units_by_statistic = {LineStatistic.GROUP_USERS: "users", LineStatistic.GROUP_ROWS: "rows"}
            unit_text = units_by_statistic.get(statistic, dataset.pairs.value_column if dataset.pairs else "")
    target_error = DEFAULT_TARGET_SHARE if line.target_error is None else line.target_error
    if line.is_relative and statistic is not LineStatistic.QUANTILE:
        if reference_value == 0.0:
            raise refuse(
                f"{line.label} is 0 on these data, and so is every share of it",
                remedy=f"Write it in its unit: {line.label} within 10",
            )
        target_error *= abs(reference_value)
    check_magnitude(line.label, target_error)
    return PlannedLine(line, curve, reference_value, unit_text, target_error, **more_line_fields)


def find_whole_noise(parameters: PlanParameters) -> NoiseKind | None:
    """Return the kind of noise on users and rows if the program draws it in whole numbers, else None."""
    budget = parameters.budget
    noise_arguments = budget.program, budget.mechanism, budget.epsilon, budget.delta
    return budget.mechanism if find_share_noise(*noise_arguments, is_of_counts=True).is_discrete else None


def check_magnitude(line_label: str, amount: float) -> None:
    """Raise InvalidInput if an amount is so small or large that its square leaves float64."""
    if not SMALLEST_AMOUNT <= amount <= LARGEST_AMOUNT:
        small_or_large = "small" if amount < SMALLEST_AMOUNT else "large"
        raise refuse(
            f"{line_label} has values that are too {small_or_large} for a plan",
            remedy="Multiply them by a constant first",
        )


def _make_sum_curve(dataset: Dataset, unit_variance: float) -> tuple[curves.LineCurve, float]:
    """Build the curve of a sum's error over its bound; return it with the sum of all rows, without noise.

    If totals have both signs, they are clamped to [-T, T].
    """
    user_totals = compute_user_totals(dataset, Summed.VALUES)
    if user_totals.amounts is not None:
        return curves.TotalCurve(user_totals.amounts, unit_variance), user_totals.amounts.total
    if user_totals.signed_totals is None:
        raise refuse(user_totals.refusal_sentence.rstrip("."))
    # Totals of both signs, each clamped to [-T, T]; what is cut may cancel, so the bias need not fall as T grows.
    signed_totals = user_totals.signed_totals
    bounds = np.unique(np.abs(signed_totals))
    largest_total = float(bounds[-1])
    if bounds.size > MAX_SIGNED_SUM_BOUNDS:
        bounds = np.quantile(bounds, np.linspace(0.0, 1.0, MAX_SIGNED_SUM_BOUNDS // 2))
    if largest_total > 0.0:
        bounds = np.union1d(
            bounds, build_log_grid(largest_total * 1e-3, largest_total, MAX_SIGNED_SUM_BOUNDS)
        )
    bounds = np.union1d(curves.round_bounds(bounds), [0.0])
    positive_amounts = Amounts.from_totals(np.maximum(signed_totals, 0.0))
    negative_amounts = Amounts.from_totals(np.maximum(-signed_totals, 0.0))
    biases = positive_amounts.sum_excess(bounds) - negative_amounts.sum_excess(bounds)
    curve = curves.BoundCurve(biases**2, unit_variance * bounds**2, bounds, has_all_bounds=False)
    return curve, float(signed_totals.sum())


def _make_group_curve(
    dataset: Dataset, parameters: PlanParameters, line_statistic: LineStatistic
) -> tuple[curves.BoundCurve, PerGroupProblem]:
    """Build the curve of a line per group, and return it with its problem at a large epsilon."""
    pairs = dataset.pairs
    assert pairs is not None
    statistic = {
        LineStatistic.GROUP_USERS: Statistic.USERS,
        LineStatistic.GROUP_ROWS: Statistic.ROWS,
        LineStatistic.GROUP_SUMS: Statistic.SUM,
    }[line_statistic]
    if statistic is Statistic.SUM and pairs.sums is not None and pairs.sums.min() < 0.0:
        statistic = Statistic.SIGNED_SUM
    budget = parameters.budget
    # Noise of real numbers, which is proportional to its scale.
    parameter_arguments = _GROUP_CURVE_EPSILON, statistic, budget.mechanism, budget.delta
    group_parameters = PerGroupParameters(
        *parameter_arguments, program=Program.PYTHON, groups=parameters.groups, edges=parameters.edges
    )
    problem = PerGroupProblem(build_pairs(dataset, group_parameters), group_parameters)
    sorted_pairs = SortedPairs.from_problem(problem)
    absolute_amounts = np.abs(problem.amounts)
    largest_amount = float(absolute_amounts.max())
    amount_bounds, has_all_amounts = np.array([]), True
    if largest_amount > 0.0:
        check_magnitude(line_statistic.value, largest_amount)
    if statistic.is_integer:
        amount_bounds, has_all_amounts = curves.list_caps(int(largest_amount), MAX_AMOUNT_BOUNDS)
    elif largest_amount > 0.0:
        smallest_amount = max(float(absolute_amounts[absolute_amounts > 0.0].min()), largest_amount * 1e-4)
        amount_bounds = curves.round_bounds(
            build_log_grid(smallest_amount, largest_amount, MAX_AMOUNT_BOUNDS)
        )
        has_all_amounts = False
    l0_bounds, has_all_groups = curves.list_caps(int(sorted_pairs.k_values[0]), MAX_GROUP_BOUNDS)
    l0_indices = l0_bounds.astype(np.int64) - 1
    # Rows: alpha, beta, bound on groups, bound on the amount in each. The first candidate publishes 0 for every group.
    candidate_arrays = [np.array([[problem.error_of_nothing**2], [0.0], [0.0], [0.0]])]
    for amount_bound in amount_bounds.tolist():
        noise_stds = group_parameters.compute_pair_noise_std(l0_bounds, amount_bound)
        pair_norms = group_parameters.compute_pair_norm(l0_bounds, amount_bound)
        errors_per_l0 = compute_parts_by_max_groups(problem, amount_bound, sorted_pairs)[0][l0_indices]
        # Squares of bias and of noise add up in the error; a difference below 0 is rounding.
        alpha = np.maximum(errors_per_l0**2 - noise_stds**2, 0.0)
        beta = budget.mechanism.unit_variance * pair_norms**2
        candidate_arrays.append(np.stack([alpha, beta, l0_bounds, np.full(l0_bounds.shape, amount_bound)]))
    alpha, beta, candidate_l0s, candidate_amounts = np.concatenate(candidate_arrays, axis=1)
    whole_noise = find_whole_noise(parameters) if statistic.is_integer else None
    has_all_bounds = has_all_amounts and has_all_groups
    curve = curves.BoundCurve(alpha, beta, candidate_l0s, candidate_amounts, has_all_bounds, whole_noise)
    return curve, problem


def search_pairs_at(planned_line: PlannedLine, v: float) -> tuple[int, float, float]:
    """Search all pairs of bounds of a line per group at v; return the best pair and its squared error.

    Args:
        planned_line: A line with a group problem.
        v: Square of its noise scale at sensitivity 1.

    Returns:
        The bound on groups and that on the amount in each, and the squared error; both bounds are 0 if none is better
        than releasing nothing.
    """
    problem, curve = planned_line.group_problem, planned_line.curve
    assert problem is not None
    assert isinstance(curve, curves.BoundCurve)
    parameters, scale = problem.parameters, math.sqrt(v)
    epsilon = 1.0 / scale if parameters.delta is None else compute_gaussian_epsilon(scale, parameters.delta)
    # It only steers the search: the error below is that of v itself.
    parameters_at_v = replace(parameters, epsilon=float(np.clip(epsilon, *EPSILON_RANGE)))
    pair_choice = find_best_pair(PerGroupProblem(problem.pairs, parameters_at_v))
    if pair_choice.releases_nothing:
        return 0, 0.0, problem.error_of_nothing**2
    bounds = pair_choice.max_groups, pair_choice.max_amount
    if not parameters.statistic.is_integer:
        bounds = pair_choice.max_groups, round_up(pair_choice.max_amount)
    alpha = max(
        compute_pair_error(problem, *bounds) ** 2 - float(parameters.compute_pair_noise_std(*bounds)) ** 2,
        0.0,
    )
    beta = parameters.mechanism.unit_variance * parameters.compute_pair_norm(*bounds) ** 2
    return *bounds, alpha + float(curves.compute_noise_variance(beta * v, curve.whole_noise))


def _make_quantile_curve(
    dataset: Dataset, parameters: PlanParameters, line: Line
) -> tuple[curves.RankCurve, QuantileProblem]:
    """Build the curve of a quantile, and return it with its problem."""
    problem, library_program = build_quantile_problem(dataset, parameters, line), parameters.program
    if library_program in TREE_PROGRAMS:
        # Fewer random choices of more rows.
        num_orders = max(2, min(MAX_TREE_SUBSAMPLES, MAX_RANKED_ROWS // problem.histogram.num_rows))
        problem = problem.with_changes(program=library_program).with_subsamples(num_orders)
        largest_bound = BIGQUERY_ROWS if library_program is Program.BIGQUERY else problem.histogram.max_size
        bounds = np.unique(np.round(build_log_grid(1.0, float(largest_bound), NUM_TREE_BOUNDS)))
        epsilons = TREE_EPSILONS[::-1]
        errors = [compute_errors_over_epsilon(problem, WeightKind.CAP, h, epsilons) for h in bounds.tolist()]
        return curves.RankCurve(epsilons**-2.0, np.array(errors), bounds), problem
    # The curve is that of weights by user for all other programs, which is one pass per bound. A bound on rows at that
    # h errs as much to 5 % (measured on the sample events from epsilon = 0.3 to 3), and takes a pass per subsample.
    if dataset.histogram.num_rows > MAX_ROWS_TO_MEASURE_RANKS:
        problem = problem.with_thin_rows()
    histogram = problem.histogram
    bounds = np.unique(build_log_grid(float(histogram.min_size), float(histogram.max_size), _MAX_RANK_BOUNDS))
    if choose_rank_weights(parameters) is WeightKind.CAP:
        bounds = np.unique(np.round(bounds))
    # Descending in epsilon is ascending in v.
    epsilons = RANK_EPSILONS[::-1]
    errors = [compute_errors_over_epsilon(problem, WeightKind.SMOOTH, float(h), epsilons) for h in bounds]
    v_values = convert_rank_epsilon(epsilons, parameters.mechanism)
    return curves.RankCurve(v_values, np.array(errors), bounds), problem


def choose_rank_weights(parameters: PlanParameters) -> WeightKind:
    """Return how a user's rows weigh in a quantile: smooth weights if the program has them, else a cap."""
    return WeightKind.SMOOTH if parameters.program in WEIGHTED_PROGRAMS else WeightKind.CAP


def build_quantile_problem(dataset: Dataset, parameters: PlanParameters, line: Line) -> QuantileProblem:
    """Build the problem of one quantile line, at epsilon 1."""
    assert dataset.values is not None
    assert line.quantile is not None
    assert parameters.lower is not None
    assert parameters.upper is not None
    base = build_uniform_base(parameters.lower, parameters.upper)
    return QuantileProblem(dataset.values, line.quantile, 1.0, base, neighbours=NEIGHBOURS)


def _build_program_problems(
    dataset: Dataset, parameters: PlanParameters, line: Line
) -> tuple[QuantileProblem, ...]:
    """Build the problem of a quantile for each mechanism that may answer, as the page *Quantile* has it."""
    assert parameters.lower is not None
    assert parameters.upper is not None
    problem = build_quantile_problem(dataset, parameters, line)
    has_gaussian_noise = parameters.mechanism is NoiseKind.GAUSSIAN
    is_open = parameters.program is Program.BEST and not has_gaussian_noise
    programs = BEST_OF[:2] if is_open else [parameters.program]
    return tuple(
        # By rho all pick as the exponential mechanism does, each from its own candidates.
        replace(
            problem,
            base=lay_base(program, parameters.lower, parameters.upper),
            program=Program.BEST if has_gaussian_noise else program,
        )
        for program in programs
    )


def convert_rank_epsilon(epsilons: npt.ArrayLike, mechanism: NoiseKind) -> FloatArray:
    """Convert epsilons of the exponential mechanism for a quantile to v.

    With Laplace noise epsilons add up: v = 1 / epsilon^2. Beside Gaussian noise rho adds up: the exponential
    mechanism is epsilon^2 / 8-zCDP, a Gaussian mu^2 / 2-zCDP, so that mu^2 = epsilon^2 / 4 and v = 1 / mu^2.

    Source: Cesar and Rogers 2021 (bounded range), for epsilon^2 / 8.
    """
    return np.asarray((1.0 if mechanism is NoiseKind.LAPLACE else 4.0) / np.asarray(epsilons) ** 2)


def convert_rank_v(v: float, mechanism: NoiseKind) -> float:
    """Convert v to epsilon, the inverse of `convert_rank_epsilon`."""
    return math.sqrt((1.0 if mechanism is NoiseKind.LAPLACE else 4.0) / v)


def search_rank_bound(
    dataset: Dataset, parameters: PlanParameters, planned_line: PlannedLine, v: float
) -> tuple[float, float]:
    """Search the bound of a quantile line at this v as the page *Quantile* does, or of many rows read it off the curve.

    Returns:
        The bound and the expected rank error there.
    """
    if not planned_line.program_problems:
        bound = float(planned_line.curve.find_optimum(np.array([v])).bounds[0])
        return bound, compute_rank_error(dataset, parameters, planned_line, v, bound)
    epsilon, weight_kind = convert_rank_v(v, parameters.budget.mechanism), choose_rank_weights(parameters)
    choices = [
        find_best_bound(problem.with_changes(epsilon=epsilon), weight_kind)
        for problem in planned_line.program_problems
    ]
    best_choice = min(choices, key=lambda choice: choice.rank_error)
    return best_choice.bound, best_choice.rank_error


def compute_rank_error(
    dataset: Dataset, parameters: PlanParameters, planned_line: PlannedLine, v: float, bound: float
) -> float:
    """Compute the expected rank error of a quantile at a bound, with the budget that v stands for.

    Rows count as the program of the parameters counts them. With many rows that weigh by user it is exact to 1 %: see
    `dpcore.quantile.rows.ThinRows`.
    """
    epsilon, weight_kind = convert_rank_v(v, parameters.budget.mechanism), choose_rank_weights(parameters)
    if parameters.program in TREE_PROGRAMS:
        assert planned_line.quantile_problem is not None
        tree_problem = planned_line.quantile_problem.with_changes(epsilon=epsilon)
        return float(compute_output(tree_problem, weight_kind, bound).expected_rank_error)
    if weight_kind is WeightKind.SMOOTH:
        assert planned_line.quantile_problem is not None
        problem, epsilons = planned_line.quantile_problem, np.array([epsilon])
        return float(compute_errors_over_epsilon(problem, weight_kind, bound, epsilons)[0])
    program_problem, *_ = _build_program_problems(dataset, parameters, planned_line.line)
    problem = program_problem.with_changes(epsilon=epsilon)
    problem = problem.with_subsamples(max(4, min(64, MAX_RANKED_ROWS // dataset.histogram.num_rows)))
    return float(compute_output(problem, weight_kind, bound).expected_rank_error)
