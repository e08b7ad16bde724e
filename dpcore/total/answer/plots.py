"""Plots of a sum or a count as data. Pure functions of the solution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpcore import total
from dpcore.answer import Axis, Band, Curve, Item, Mark, Plot, Style
from dpcore.answer.answer import BIAS, NOISE, STYLES
from dpcore.answer.axes import sample_users
from dpcore.answer.handle import Dots, Handle, Spread, draw_unit_noise
from dpcore.common import wording
from dpcore.common.noise_error import Measure, NoiseKind
from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset
from dpcore.total import TotalErrors
from dpcore.total.answer.found import SignedSolution, TotalSolution
from dpcore.total.answer.words import MEASURE_NAMES
from dpcore.total.parameters import TotalParameters
from dpcore.total.signed import lacking

ERROR_COLUMNS: dict[Measure, tuple[str, str, dict[str, Any]]] = {
    # Blue, orange and grey: three colours that nobody takes for each other, beside the amber of the bias and the
    # purple of the noise.
    Measure.ABSOLUTE: ("Expected error", "expected_absolute_error", {"style": Style.TOTAL}),
    Measure.RMSE: ("RMSE", "root_mean_squared_error", {"style": Style.SMOOTH, "dash": "dashdot"}),
    Measure.BOUND: ("Bias + noise", "bias_plus_noise", {"style": Style.ENTERED}),
}
"""Name, column and style of the error by each measure."""
WIDTH, CHOSEN_WIDTH = 2.0, 3.0
MAX_ERRORS = 5.0
"""Ends of the axis of simulated releases, in best errors: at the best bound hardly one of them lies beyond."""


def plot_errors(solution: TotalSolution, dataset: Dataset, own_bound: float | None) -> Plot:
    """Plot the error against T by the chosen measure, with its two parts: the main figure."""
    choice, problem, unit = solution.choice, solution.problem, solution.unit
    columns, measure = _list_columns(solution.errors), solution.problem.measure
    chosen = _build_curve(columns, measure, CHOSEN_WIDTH, is_first=True)
    items: list[Item] = [*_build_parts(columns, measure), chosen]
    if 0.0 < solution.near_optimal[0] < solution.near_optimal[1]:
        items.append(Band(f"Within 5{wording.PERCENT}", *solution.near_optimal))
    if choice.max_total > 0.0:
        items.append(Mark("Best bound", choice.max_total, choice.certificate.value, chosen.style))
    if own_bound:
        items.append(Mark("Your own bound", own_bound, solution.error(own_bound), Style.ENTERED, "square"))
    handle = _build_handle(
        columns,
        measure,
        problem.mechanism,
        columns["bias"],
        float(solution.errors.error_by(measure).min()),
        "" if unit.column else "rows",
        name="Bound",
        initial_value=own_bound or choice.max_total,
        is_integer=problem.is_integer,
        users=(sample_users(problem.amounts.values, problem.amounts.users, unit.column or "rows"),),
    )
    title = "Error against the bound"
    return _plot("total-error", title, _describe(solution), solution, dataset, items, columns, handle=handle)


def plot_measures(solution: TotalSolution, dataset: Dataset) -> Plot:
    """Plot the error against T by each measure, each with its own best T, as far as the curves go."""
    items, columns = list[Item](), _list_columns(solution.errors)
    # The chosen one last, so that it lies on top.
    for measure in sorted(Measure, key=lambda measure: measure is solution.problem.measure):
        width, best = (
            CHOSEN_WIDTH if measure is solution.problem.measure else WIDTH,
            solution.bounds_by_measure[measure],
        )
        curve = _build_curve(columns, measure, width)
        items.append(curve)
        if best > 0.0:
            error = float(total.errors(solution.problem, best).error_by(measure))
            items.append(Mark(f"Best bound, {curve.name}", best, error, curve.style, is_unnamed=True))
    alt = f"{_describe(solution)} The other measures have curves of the same shape, and best bounds of their own."
    title = "Measures of the error"
    plot = _plot("total-measures", title, alt, solution, dataset, items, columns, is_main=False, height=420)
    (low, high), _ = solution.limits
    return plot.with_limits(x=(low, 2.0 * high))


def plot_signed(solution: SignedSolution, dataset: Dataset, parameters: TotalParameters) -> Plot:
    """Plot the error against T when totals of both signs are clipped to [-T, T]: the main figure."""
    columns, clipped, own_bound = _list_columns(solution.errors), solution.clipped, parameters.own_bound
    chosen = _build_curve(columns, solution.measure, CHOSEN_WIDTH)
    items: list[Item] = [*_build_parts(columns, solution.measure, "Size of the bias"), chosen]
    if clipped.sensitivity > 0.0:
        name, style, symbol = (
            ("Your [L, U], at max(|L|, |U|)", Style.ENTERED, "square")
            if solution.is_entered
            else ("Proposed range", chosen.style, "diamond")
        )
        items.append(Mark(name, clipped.sensitivity, solution.error, style, symbol))
    if own_bound and (own_error := solution.own_error(parameters)) is not None:
        items.append(Mark("Your own bound, on either side", own_bound, own_error, Style.ENTERED, "square"))
    columns["missing"], handle = lacking(solution.totals, solution.bounds), None
    # A range that was entered with two different ends lies on no curve of one bound: nothing to move.
    if clipped.low == -clipped.high < 0.0:
        sizes, users = np.unique(np.abs(solution.totals), return_counts=True)
        handle = _build_handle(
            columns,
            solution.measure,
            parameters.mechanism,
            columns["missing"],
            solution.error,
            name="Bound on either side",
            initial_value=own_bound or clipped.sensitivity,
            users=(sample_users(sizes, users, solution.unit.column),),
        )
    title = "Error when totals are clipped on both sides"
    alt = (
        "Error of the sum when every total is clipped at the same size on both sides: noise grows with that size; "
        "what is cut away falls."
    )
    return _plot("total-signed", title, alt, solution, dataset, items, columns, handle=handle)


def _list_columns(errors: TotalErrors) -> dict[str, FloatArray]:
    return {
        "bound": errors.bounds,
        "bias": errors.bias,
        "mean_noise": errors.noise,
        "rms_noise": errors.noise_by(Measure.RMSE),
        "bias_plus_noise": errors.bound,
        "expected_absolute_error": errors.absolute_error,
        "root_mean_squared_error": errors.rmse,
    }


def _list_parts(columns: dict[str, FloatArray], measure: Measure) -> dict[str, FloatArray]:
    """List both parts of the error by a measure."""
    return {BIAS: columns["bias"], NOISE: columns["rms_noise" if measure is Measure.RMSE else "mean_noise"]}


def _build_curve(columns: dict[str, FloatArray], measure: Measure, width: float, **options: Any) -> Curve:
    """Build the curve of the error by a measure."""
    name, column, style = ERROR_COLUMNS[measure]
    return Curve(name, columns["bound"], columns[column], width=width, **style, **options)


def _build_parts(columns: dict[str, FloatArray], measure: Measure, bias: str = BIAS) -> list[Curve]:
    """Build the curves of both parts of the error; ``bias`` is the name of the first one."""
    return [
        Curve(bias if name == BIAS else name, columns["bound"], values, STYLES[name])
        for name, values in _list_parts(columns, measure).items()
    ]


def _build_handle(
    columns: dict[str, FloatArray],
    measure: Measure,
    noise: NoiseKind,
    loss: FloatArray,
    best_error: float,
    dots_unit: str = "",
    **options: Any,
) -> Handle:
    """Build the handle of the bound: whose totals it cuts, and what releases it gives."""
    spread = Spread.ROOT_MEAN_SQUARE if measure is Measure.RMSE else Spread.MEAN
    draws, axis_limit = draw_unit_noise(noise), MAX_ERRORS * best_error
    return Handle(
        bound=columns["bound"],
        error=columns[ERROR_COLUMNS[measure][1]],
        field="own_bound",
        parts=_list_parts(columns, measure),
        dots=Dots(loss, columns["mean_noise"], draws, spread, axis_limit, dots_unit),
        **options,
    )


def _plot(
    key: str,
    title: str,
    alt: str,
    solution: TotalSolution | SignedSolution,
    dataset: Dataset,
    items: Sequence[Item],
    columns: dict[str, FloatArray],
    **options: Any,
) -> Plot:
    unit, (bound_limits, error_limits) = solution.unit, solution.limits
    bound = "bound on either side" if isinstance(solution, SignedSolution) else "bound"
    return Plot(
        key,
        title,
        alt,
        Axis(bound, unit.per_user, bound_limits, number_format=",.4~r"),
        Axis(f"error of the released {unit.result}", unit.axis, error_limits, number_format=",.3~r"),
        items,
        dataset.provenance,
        columns,
        **{"is_main": True, **options},
    )


def _describe(solution: TotalSolution) -> str:
    amount, choice = solution.unit.amount, solution.choice
    return (
        f"The {MEASURE_NAMES[solution.problem.measure]} is smallest at a bound of {amount(choice.max_total, 4)}: "
        f"{amount(choice.certificate.value)}. Below, the bias rises; above, the noise."
    )
