"""The figures of a sum or a count as data. Pure: what was found in, plots out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpcore import total
from dpcore.answer import Axis, Band, Curve, Item, Mark, Plot, Style
from dpcore.answer.axes import sample_users
from dpcore.answer.handle import Dots, Handle, Spread, draw_unit_noise
from dpcore.answer.parts import BIAS, NOISE, STYLES, list_part_columns
from dpcore.common import wording
from dpcore.common.noise_error import Measure
from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset
from dpcore.total import TotalErrors
from dpcore.total.answer.found import SignedSolution, TotalSolution
from dpcore.total.answer.words import MEASURE_NAMES
from dpcore.total.parameters import TotalParameters
from dpcore.total.signed import lacking

CURVES = {
    # Blue, orange and grey: three colours that nobody takes for each other, beside the amber of the bias and the
    # purple of the noise.
    Measure.ABSOLUTE: Curve("Expected error", "bound", "expected_absolute_error", Style.TOTAL, width=2.0),
    Measure.RMSE: Curve("RMSE", "bound", "root_mean_squared_error", Style.SMOOTH, dash="dashdot", width=2.0),
    Measure.BOUND: Curve("Bias + noise", "bound", "bias_plus_noise", Style.ENTERED, width=2.0),
}
CHOSEN_WIDTH = 3.0
PARTS = {
    measure: list_part_columns(
        {BIAS: "bias", NOISE: "rms_noise" if measure is Measure.RMSE else "mean_noise"}
    )
    for measure in Measure
}
"""Of the error by each measure."""
REACH = 5.0
"""Ends of the axis of simulated releases, in best errors: at the best bound hardly one of them lies beyond."""


def errors(found: TotalSolution, data: Dataset, own_bound: float | None) -> Plot:
    """Return the main figure: error against T by the chosen measure, with its two parts."""
    chosen = CURVES[found.problem.measure]
    items: list[Item] = [
        *_curves(BIAS, found.problem.measure),
        replace(chosen, width=CHOSEN_WIDTH, is_first=True),
    ]
    if 0.0 < found.near_optimal[0] < found.near_optimal[1]:
        items.append(Band(f"Within 5{wording.PERCENT}", *found.near_optimal))
    if found.choice.max_total > 0.0:
        items.append(Mark("Best bound", found.choice.max_total, found.choice.certificate.value, chosen.style))
    if own_bound:
        items.append(Mark("Your own bound", own_bound, found.error(own_bound), Style.ENTERED, "square"))
    plot = _plot("total-error", "Error against the bound", _alt(found), found, data, items)
    return replace(plot, handle=_handle(found, own_bound))


def _handle(found: TotalSolution, own_bound: float | None) -> Handle:
    """Return the bound by hand: whose totals it cuts, and what releases it gives."""
    problem, unit = found.problem, found.unit
    best = float(found.errors.error_by(problem.measure).min())
    spread = Spread.ROOT_MEAN_SQUARE if problem.measure is Measure.RMSE else Spread.MEAN
    return Handle(
        "Bound",
        "bound",
        CURVES[problem.measure].y,
        own_bound or found.choice.max_total,
        "own_bound",
        is_integer=problem.is_integer,
        parts=PARTS[problem.measure],
        users=(
            sample_users(
                problem.amounts.values, problem.amounts.users.astype(np.float64), unit.column or "rows"
            ),
        ),
        dots=Dots(
            "bias",
            "mean_noise",
            draw_unit_noise(problem.mechanism),
            spread,
            REACH * best,
            "" if unit.column else "rows",
        ),
    )


def measures(found: TotalSolution, data: Dataset) -> Plot:
    """Return the error against T by each measure, each with its own best T, as far as the curves go."""
    items: list[Item] = []
    # The chosen one last, so that it lies on top.
    for measure in sorted(Measure, key=lambda one: one is found.problem.measure):
        curve, best = CURVES[measure], found.bounds_by_measure[measure]
        chosen = measure is found.problem.measure
        items.append(replace(curve, width=CHOSEN_WIDTH) if chosen else curve)
        if best > 0.0:
            error = float(total.errors(found.problem, best).error_by(measure))
            items.append(Mark(f"Best bound, {curve.name}", best, error, curve.style, is_unnamed=True))
    alt = f"{_alt(found)} The other measures have curves of the same shape, and best bounds of their own."
    plot = _plot("total-measures", "Measures of the error", alt, found, data, items)
    (low, high), _ = found.limits
    return replace(plot.with_limits(x=(low, 2.0 * high)), is_main=False, height=420)


def signed(found: SignedSolution, data: Dataset, parameters: TotalParameters) -> Plot:
    """Return the main figure where totals have both signs: error against T when they are clipped to [-T, T]."""
    chosen, clipped = CURVES[found.measure], found.clipped
    items: list[Item] = [*_curves("Size of the bias", found.measure), replace(chosen, width=CHOSEN_WIDTH)]
    if clipped.sensitivity > 0.0:
        name, look, symbol = (
            ("Your [L, U], at max(|L|, |U|)", Style.ENTERED, "square")
            if found.is_entered
            else ("Proposed range", chosen.style, "diamond")
        )
        items.append(Mark(name, clipped.sensitivity, found.error, look, symbol))
    if parameters.own_bound and (own := found.own_error(parameters)) is not None:
        items.append(
            Mark("Your own bound, on either side", parameters.own_bound, own, Style.ENTERED, "square")
        )
    title = "Error when totals are clipped on both sides"
    alt = (
        "Error of the sum when every total is clipped at the same size on both sides: noise grows with that size; "
        "what is cut away falls."
    )
    plot = _plot("total-signed", title, alt, found, data, items)
    columns = dict(plot.columns) | {"missing": lacking(found.totals, found.bounds)}
    # A range that was entered with two different ends lies on no curve of one bound: nothing to move.
    whole = clipped.low == -clipped.high < 0.0
    return replace(plot, columns=columns, handle=_signed_handle(found, parameters) if whole else None)


def _signed_handle(found: SignedSolution, parameters: TotalParameters) -> Handle:
    """Return the bound on either side by hand: whose totals it cuts, and what releases it gives."""
    sizes, users = np.unique(np.abs(found.totals), return_counts=True)
    return Handle(
        "Bound on either side",
        "bound",
        CURVES[found.measure].y,
        parameters.own_bound or found.clipped.sensitivity,
        "own_bound",
        parts=PARTS[found.measure],
        users=(sample_users(sizes, users.astype(np.float64), found.unit.column),),
        dots=Dots(
            "missing",
            "mean_noise",
            draw_unit_noise(parameters.mechanism),
            Spread.ROOT_MEAN_SQUARE if found.measure is Measure.RMSE else Spread.MEAN,
            REACH * found.error,
        ),
    )


def _plot(
    key: str, title: str, alt: str, found: TotalSolution | SignedSolution, data: Dataset, items: list[Item]
) -> Plot:
    unit, (across, upwards) = found.unit, found.limits
    bound = "bound on either side" if isinstance(found, SignedSolution) else "bound"
    return Plot(
        key,
        title,
        alt,
        Axis(bound, unit.per_user, across, number_format=",.4~r"),
        Axis(f"error of the released {unit.result}", unit.axis, upwards, number_format=",.3~r"),
        _columns(found.errors),
        tuple(items),
        data.provenance,
        is_main=True,
    )


def _curves(bias: str, measure: Measure) -> list[Curve]:
    names = {BIAS: bias}
    return [
        Curve(names.get(part.name, part.name), "bound", part.column, STYLES[part.name])
        for part in PARTS[measure]
    ]


def _columns(errors: TotalErrors) -> dict[str, FloatArray]:
    return {
        "bound": errors.bounds,
        "bias": errors.bias,
        "mean_noise": errors.noise,
        "rms_noise": errors.noise_by(Measure.RMSE),
        "bias_plus_noise": errors.bound,
        "expected_absolute_error": errors.absolute_error,
        "root_mean_squared_error": errors.rmse,
    }


def _alt(found: TotalSolution) -> str:
    amount = found.unit.amount
    return (
        f"The {MEASURE_NAMES[found.problem.measure]} is smallest at a bound of {amount(found.choice.max_total, 4)}: "
        f"{amount(found.choice.certificate.value)}. Below, the bias rises; above, the noise."
    )
