"""The solution for a sum or a count as plots. Pure functions of the solution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore import total
from dpcore.answer.answer import BIAS, NOISE, STYLE_BY_PART
from dpcore.answer.axes import build_user_bars
from dpcore.answer.handle import Dots, Handle, Spread, draw_unit_noise
from dpcore.answer.plot import Axis, Band, Curve, Item, Level, Mark, Plot, Points, Style
from dpcore.common.noise_error import Measure, NoiseKind
from dpcore.common.wording import PERCENT, format_number
from dpcore.contributions import FloatArray
from dpcore.data.totals_per_user import Amounts
from dpcore.dataset import Dataset
from dpcore.total import strategies
from dpcore.total.answer.solution import NAME_BY_MEASURE, SignedSolution, TotalSolution
from dpcore.total.nonnegative import TotalErrors, TotalProblem
from dpcore.total.parameters import TotalParameters

NAME_COLUMN_OPTIONS_BY_MEASURE: dict[Measure, tuple[str, str, dict[str, Any]]] = {
    # Blue, orange and grey: three colours that nobody takes for each other, beside the amber of the bias and the
    # purple of the noise.
    Measure.ABSOLUTE: ("Expected error", "expected_absolute_error", {"style": Style.TOTAL}),
    Measure.RMSE: ("RMSE", "root_mean_squared_error", {"style": Style.SMOOTH, "dash": "dashdot"}),
    Measure.BOUND: ("Bias + noise", "bias_plus_noise", {"style": Style.ENTERED}),
}
"""Name, column and style of each error."""
CURVE_WIDTH, CHOSEN_CURVE_WIDTH = 2.0, 3.0
MAX_DOTS_IN_ERRORS = 5.0
"""Ends of the axis of simulated releases, in best errors."""


def plot_errors(solution: TotalSolution, dataset: Dataset, own_bound: float | None) -> Plot:
    """Plot the main figure: the error against T by the chosen measure, with bias and noise."""
    best_choice, problem, unit = solution.choice, solution.problem, solution.unit
    columns, measure = _list_columns(solution.errors), solution.measure
    error_curve = _build_curve(columns, measure, CHOSEN_CURVE_WIDTH)
    items: list[Item] = [*_build_parts(columns, measure), error_curve]
    if 0.0 < solution.near_optimal_bounds[0] < solution.near_optimal_bounds[1]:
        items.append(Band(f"Within 5{PERCENT} of the best", *solution.near_optimal_bounds))
    if best_choice.max_total > 0.0:
        items.append(
            Mark("Best bound", best_choice.max_total, best_choice.certificate.value, error_curve.style)
        )
    if own_bound:
        own_error = solution.compute_error(own_bound)
        items.append(Mark("Your own bound", own_bound, own_error, Style.ENTERED, "square"))
    bound_handle = _build_handle(
        columns,
        measure,
        problem.noise.kind,
        columns["bias"],
        float(solution.errors.measure_error(measure).min()),
        "" if unit.column_name else "rows",
        name="Bound",
        initial_value=own_bound or best_choice.max_total,
        is_integer=problem.is_integer,
        user_bars=(
            build_user_bars(problem.amounts.values, problem.amounts.users, unit.column_name or "rows"),
        ),
    )
    alt_text = (
        f"The {NAME_BY_MEASURE[measure]} is smallest at a bound of {unit.format_amount(best_choice.max_total, 4)}: "
        f"{unit.format_amount(best_choice.certificate.value)}."
    )
    plot_title = "Error against the bound"
    return _build_plot(
        "total-error", plot_title, alt_text, solution, dataset, items, columns, handle=bound_handle
    )


def plot_measures(solution: TotalSolution, dataset: Dataset) -> Plot:
    """Plot the error against T by each measure, each with a mark at its own best T."""
    items, columns = list[Item](), _list_columns(solution.errors)
    # The chosen one last, so that it lies on top.
    for measure in sorted(Measure, key=lambda measure: measure is solution.measure):
        best_bound = solution.bounds_by_measure[measure]
        curve = _build_curve(
            columns, measure, CHOSEN_CURVE_WIDTH if measure is solution.measure else CURVE_WIDTH
        )
        items.append(curve)
        if best_bound > 0.0:
            least_error_of_measure = float(
                total.compute_errors(solution.problem, best_bound).measure_error(measure)
            )
            items.append(
                Mark(
                    f"Best bound, {curve.name}",
                    best_bound,
                    least_error_of_measure,
                    curve.style,
                    is_unnamed=True,
                )
            )
    plot_title, alt_text = "Measures of the error", "Three measures, each with its best bound."
    plot_options = {"is_main": False, "height": 420}
    measures_plot = _build_plot(
        "total-measures", plot_title, alt_text, solution, dataset, items, columns, **plot_options
    )
    (smallest_bound, largest_bound), _ = solution.limits
    return measures_plot.with_limits(x_limits=(smallest_bound, 2.0 * largest_bound))


def plot_signed(solution: SignedSolution, dataset: Dataset, parameters: TotalParameters) -> Plot:
    """Plot the error over T for totals of both signs, which are clipped to [-T, T]."""
    columns, clipped_sum = _list_columns(solution.errors), solution.clipped_sum
    own_bound = parameters.own_bound
    error_curve = _build_curve(columns, solution.measure, CHOSEN_CURVE_WIDTH)
    items: list[Item] = [*_build_parts(columns, solution.measure, "Size of the bias"), error_curve]
    if clipped_sum.sensitivity > 0.0:
        range_mark = Mark("Proposed range", clipped_sum.sensitivity, solution.error, error_curve.style)
        if solution.is_entered:
            range_mark = replace(
                range_mark, name="Your [L, U], at max(|L|, |U|)", style=Style.ENTERED, symbol="square"
            )
        items.append(range_mark)
    if own_bound and (own_error := solution.compute_own_error(parameters)) is not None:
        items.append(Mark("Your own bound, on either side", own_bound, own_error, Style.ENTERED, "square"))
    problem, bound_handle = solution.problem, None
    columns["missing"] = problem.compute_shortfall(solution.bounds)
    # A range that was entered with two different ends lies on no curve of one bound: nothing to move.
    if clipped_sum.low == -clipped_sum.high < 0.0:
        amounts = problem.size_problem.amounts
        bound_handle = _build_handle(
            columns,
            solution.measure,
            problem.size_problem.noise.kind,
            columns["missing"],
            solution.error,
            name="Bound on either side",
            initial_value=own_bound or clipped_sum.sensitivity,
            user_bars=(build_user_bars(amounts.values, amounts.users, solution.unit.column_name),),
        )
    plot_title, alt_text = "Error of clipping on both sides", "Noise grows with the bound."
    return _build_plot(
        "total-signed", plot_title, alt_text, solution, dataset, items, columns, handle=bound_handle
    )


def _list_columns(errors: TotalErrors) -> dict[str, FloatArray]:
    """Build the columns of a plot's file by name: bounds, and bias, noise and errors at each."""
    return {
        "bound": errors.bounds,
        "bias": errors.bias,
        "mean_noise": errors.mean_noise,
        "rms_noise": errors.measure_noise(Measure.RMSE),
        "bias_plus_noise": errors.bias_plus_noise,
        "expected_absolute_error": errors.absolute_errors,
        "root_mean_squared_error": errors.rmse,
    }


def _select_parts(columns: dict[str, FloatArray], measure: Measure) -> dict[str, FloatArray]:
    """Return bias and noise over the bound, by part name.

    The noise is its root mean square for the RMSE, else its mean magnitude.
    """
    return {BIAS: columns["bias"], NOISE: columns["rms_noise" if measure is Measure.RMSE else "mean_noise"]}


def _build_curve(columns: dict[str, FloatArray], measure: Measure, width: float, **options: Any) -> Curve:
    """Build the curve of the error by a measure over the bound, with the name and style of that measure."""
    curve_name, column_name, style_options = NAME_COLUMN_OPTIONS_BY_MEASURE[measure]
    return Curve(curve_name, columns["bound"], columns[column_name], width=width, **style_options, **options)


def _build_parts(columns: dict[str, FloatArray], measure: Measure, bias_name: str = BIAS) -> list[Curve]:
    """Build the curves of bias and noise over the bound; ``bias_name`` names the first."""
    return [
        Curve(bias_name if name == BIAS else name, columns["bound"], part_errors, STYLE_BY_PART[name])
        for name, part_errors in _select_parts(columns, measure).items()
    ]


def _build_handle(
    columns: dict[str, FloatArray],
    measure: Measure,
    noise_kind: NoiseKind,
    signed_losses: FloatArray,
    best_error: float,
    dots_unit: str = "",
    **options: Any,
) -> Handle:
    """Build the handle by which the bound is moved, with the totals that it cuts and simulated releases."""
    spread_kind = Spread.ROOT_MEAN_SQUARE if measure is Measure.RMSE else Spread.MEAN
    unit_draws, max_dot_size = draw_unit_noise(noise_kind), MAX_DOTS_IN_ERRORS * best_error
    return Handle(
        bounds=columns["bound"],
        errors=columns[NAME_COLUMN_OPTIONS_BY_MEASURE[measure][1]],
        field_name="own_bound",
        error_parts=_select_parts(columns, measure),
        dots=Dots(signed_losses, columns["mean_noise"], unit_draws, spread_kind, max_dot_size, dots_unit),
        **options,
    )


def _build_plot(
    plot_key: str,
    plot_title: str,
    alt_text: str,
    solution: TotalSolution | SignedSolution,
    dataset: Dataset,
    items: Sequence[Item],
    columns: dict[str, FloatArray],
    **options: Any,
) -> Plot:
    """Build a plot with the axes of the solution: errors over the bound."""
    unit, (x_limits, y_limits) = solution.unit, solution.limits
    bound_name = "bound on either side" if isinstance(solution, SignedSolution) else "bound"
    return Plot(
        plot_key,
        plot_title,
        alt_text,
        Axis(bound_name, unit.per_user_unit, x_limits, number_format=",.4~r"),
        Axis(f"error of the released {unit.result_name}", unit.axis_unit, y_limits, number_format=",.3~r"),
        items,
        dataset.provenance,
        columns,
        **{"is_main": True, **options},
    )


def choose_epsilons(amounts: Amounts, points_per_decade: int) -> FloatArray:
    """Choose log-spaced epsilons up to 10, from one at which hardly anything can be released.

    That one is about 0.5 over the number of users, between 1e-6 and 1e-3.
    """
    min_epsilon = min(max(10.0 ** math.floor(math.log10(0.5 / amounts.num_users)), 1e-6), 1e-3)
    return np.geomspace(min_epsilon, 10.0, 1 + points_per_decade * round(math.log10(10.0 / min_epsilon)))


def compute_curves(problem: TotalProblem, own_quantile: float) -> strategies.StrategyCurves:
    """Compute the exact relative errors over epsilon of the paper's strategies and the person's own quantile."""
    epsilons = choose_epsilons(problem.amounts, points_per_decade=16)
    compared_strategies = (*strategies.PAPER_STRATEGIES, strategies.Strategy(own_quantile))
    return strategies.compute_strategy_curves(problem, epsilons, compared_strategies)


def plot_strategies(
    curves: strategies.StrategyCurves,
    dataset: Dataset,
    epsilon: float,
    simulated: strategies.StrategyPoints | None = None,
) -> Plot:
    """Plot the relative error against epsilon for four ways to choose T (Amin et al. 2019, figure 1).

    Args:
        curves: Exact errors.
        dataset: The data.
        epsilon: The one that the person has entered, which is marked.
        simulated: Simulated errors, plotted with twice their standard errors; None for none.
    """
    epsilons, best_errors = curves.epsilons, curves.relative_errors[0]
    columns_by_name: dict[str, npt.ArrayLike] = {"epsilon": epsilons}
    items: list[Item] = []
    for strategy_index, strategy in enumerate(curves.strategies):
        strategy_name = _name_strategy(curves, strategy_index)
        width = None if strategy is strategies.BEST_STRATEGY else CURVE_WIDTH
        columns_by_name[f"{strategy.column}_bound"] = curves.bounds[strategy_index]
        columns_by_name[f"{strategy.column}_relative_error"] = curves.relative_errors[strategy_index]
        relative_errors = curves.relative_errors[strategy_index]
        items.append(
            Curve(strategy_name, epsilons, relative_errors, strategy.style, dash=strategy.dash, width=width)
        )
        if simulated is not None and strategy in simulated.strategies:
            mean_errors = simulated.relative_errors[strategy_index]
            error_margins = 2.0 * simulated.standard_errors[strategy_index]
            interval_ends = (mean_errors - error_margins, mean_errors + error_margins)
            strategy_style = strategy.style
            simulated_points = Points(
                f"{strategy_name}, simulated", simulated.epsilons, mean_errors, strategy_style, *interval_ends
            )
            items.append(replace(simulated_points, is_unnamed=True, symbol=strategy.symbol, size=7))
    epsilon_axis = Axis("privacy budget ε", "", (float(epsilons[0]), float(epsilons[-1])))
    if epsilon_axis.contains(epsilon):
        items.append(Level("Your ε", epsilon, is_vertical=True))
    return Plot(
        "total-strategies",
        "Four ways to choose a bound",
        "Each fixed quantile is near the best around one ε.",
        epsilon_axis,
        Axis("relative error of the release", "1 = 100 %", (float(best_errors.min()) / 2.0, 10.0)),
        items,
        dataset.provenance,
        columns_by_name,
        height=460,
    )


def _name_strategy(curves: strategies.StrategyCurves, strategy_index: int) -> str:
    """Return a strategy's name for the legend.

    That of a quantile has its bound behind it, which is the same at every epsilon.
    """
    strategy = curves.strategies[strategy_index]
    capital_name = strategy.name.capitalize()
    return (
        capital_name
        if strategy.share is None
        else f"{capital_name} (bound {format_number(curves.bounds[strategy_index, 0])})"
    )


def tabulate_points(strategy_points: strategies.StrategyPoints) -> dict[str, FloatArray]:
    """Build columns by name: epsilons, and the simulated error and its standard error of each strategy."""
    columns_by_name = {"epsilon": strategy_points.epsilons}
    for strategy_index, strategy in enumerate(strategy_points.strategies):
        columns_by_name[f"{strategy.column}_simulated_error"] = strategy_points.relative_errors[
            strategy_index
        ]
        columns_by_name[f"{strategy.column}_standard_error"] = strategy_points.standard_errors[strategy_index]
    return columns_by_name


def write_near_best(curves: strategies.StrategyCurves) -> list[str]:
    """Write for each fixed quantile the epsilons at which its error is at most 1.1 times the best bound's."""
    sentences = []
    for strategy_index in range(1, len(curves.strategies)):
        near_best_epsilons = curves.epsilons[
            curves.relative_errors[strategy_index] <= 1.1 * curves.relative_errors[0]
        ]
        epsilon_phrase = "no ε"
        if near_best_epsilons.size:
            lowest_epsilon_text, highest_epsilon_text = (
                format_number(epsilon, 2) for epsilon in near_best_epsilons[[0, -1]]
            )
            epsilon_phrase = f"ε from {lowest_epsilon_text} to {highest_epsilon_text}"
        sentences.append(f"{_name_strategy(curves, strategy_index)}: for {epsilon_phrase}.")
    return sentences
