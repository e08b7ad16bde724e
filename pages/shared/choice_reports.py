"""What the pages Mean, Sum and count, and Quantile contribute to their reports. Pure: answers in, content out."""

from __future__ import annotations

from dpcore.dataset import Dataset
from dpcore.mean import MeanParameters
from dpcore.mean.user_effects import Clamped
from dpcore.quantile import files as export_quantile
from dpcore.report import csv_files, script_bodies
from dpcore.report.content import data_lines
from dpcore.report.script import Source
from dpcore.total import files as export_total
from dpcore.total.parameters import TotalParameters, UserTotals
from pages.mean import answer as mean_view
from pages.mean import card as mean_words
from pages.mean import figures as mean_charts
from pages.mean.formula import FORMULA as MEAN_FORMULA
from pages.mean.formula import FORMULA_PRIVATE
from pages.quantile import answer as quantile_view
from pages.quantile import card as quantile_words
from pages.quantile import figures as quantile_charts
from pages.quantile.formula import FORMULA as QUANTILE_FORMULA
from pages.shared.report_content import Picture, ReportContent, distribution
from pages.total import answer as total_view
from pages.total import card as total_words
from pages.total import figures as total_charts
from pages.total import grouped, signed
from pages.total.formula import FORMULA as TOTAL_FORMULA

EPSILON = "Privacy budget ε"
OWN_CAP = "Your own cap, rows per user"
NOISE = {"epsilon": EPSILON, "noise": "Noise", "delta": "δ"}


def mean_report(
    view: mean_view.MeanView,
    data: Dataset,
    parameters: MeanParameters,
    clamped: Clamped | None,
    source: Source,
) -> ReportContent:
    """Of the page Mean."""
    bounds, errors = mean_view.axis_limits(data.histogram, parameters.value_bound)
    sizes, kind = mean_view.curve_bounds(data.histogram), data.provenance
    pictures = [
        Picture(
            "mean-error",
            "Standard error against the bound",
            lambda: mean_charts.error_figure(view, (bounds, errors), parameters.own_cap),
            mean_charts.error_alt(view),
            mean_view.labelled(mean_charts.error_columns(view), view),
            kind,
        ),
        Picture(
            "mean-weights",
            "Weight of one row",
            lambda: mean_charts.weight_figure(view, sizes, bounds, mean_view.weight_limits(data.histogram)),
            mean_charts.WEIGHT_ALT,
            mean_view.labelled(mean_charts.weight_columns(view, sizes), view),
            kind,
        ),
    ]
    if clamped is not None:
        pictures.append(
            Picture(
                "mean-shift",
                "What independence hides",
                lambda: mean_charts.shift_figure(view, clamped, bounds),
                mean_charts.SHIFT_ALT,
                mean_view.labelled(mean_charts.shift_columns(view, clamped), view),
                kind,
            )
        )
    return ReportContent(
        page="Mean",
        parameters=parameters,
        asked={
            "epsilon": EPSILON,
            "lower": "Lowest value, L",
            "upper": "Highest value, U",
            "noise": "Variance of one row's value",
            "noise_variance": "Variance entered",
            "own_cap": OWN_CAP,
            "counts": "Contribution counts are",
        },
        cards=[("", mean_words.card(view, data, parameters, clamped))],
        pictures=[*pictures, distribution(data)],
        formula=FORMULA_PRIVATE if view.private_counts else MEAN_FORMULA,
        source=source,
        bodies=[script_bodies.MEAN],
        summary=data_lines(data),
        choice=lambda: csv_files.mean_choice_json(data, parameters, view.problem, view.cap, view.smooth),
    )


TOTAL_ASKED = {
    **NOISE,
    "summed": "What is added up",
    "measure": "Error that is minimised",
    "own_bound": "Your own bound T",
    "lower": "L",
    "upper": "U",
}


def total_report(
    view: total_view.TotalView, data: Dataset, parameters: TotalParameters, source: Source
) -> ReportContent:
    """Of the page Sum and count, where no total is negative."""
    picture = Picture(
        "total-error",
        "Error against the bound",
        lambda: total_charts.error_figure(view, view.limits),
        total_charts.error_alt(view),
        total_charts.error_columns(view.errors),
        data.provenance,
    )
    return ReportContent(
        page="Sum and count",
        parameters=parameters,
        asked=TOTAL_ASKED,
        cards=[("", total_words.card(view, data))],
        pictures=[picture, distribution(data)],
        formula=TOTAL_FORMULA,
        source=source,
        bodies=[script_bodies.TOTAL],
        summary=data_lines(data),
        choice=lambda: export_total.total_choice_json(
            data, parameters, view.problem, view.choice, view.within, view.unit.column
        ),
    )


def signed_report(
    view: signed.SignedView, held: UserTotals, data: Dataset, parameters: TotalParameters, source: Source
) -> ReportContent:
    """Of the page Sum and count, where totals have both signs."""
    picture = Picture(
        "total-signed",
        "Error when totals are clipped to [−T, T]",
        lambda: total_charts.signed_figure(view, parameters.measure, total_charts.signed_limits(view)),
        total_charts.SIGNED_ALT,
        total_charts.error_columns(view.errors),
        data.provenance,
    )
    return ReportContent(
        page="Sum and count",
        parameters=parameters,
        asked=TOTAL_ASKED,
        cards=[
            ("", signed.card(view, data, total_view.Unit(held.column), parameters)),
        ],
        pictures=[picture, distribution(data)],
        formula=TOTAL_FORMULA,
        source=source,
        bodies=[script_bodies.SIGNED],
        summary=data_lines(data),
        choice=lambda: export_total.signed_choice_json(data, parameters, held, view.clipped, view.entered),
    )


def grouped_report(
    view: grouped.GroupedView, data: Dataset, parameters: TotalParameters, source: Source
) -> ReportContent:
    """Of the counts per group on the page Sum and count."""
    picture = Picture(
        "total-grouped",
        "Total error against the groups per user",
        lambda: total_charts.grouped_figure(view, total_charts.grouped_limits(view)),
        total_charts.grouped_alt(view),
        total_charts.grouped_columns(view),
        data.provenance,
    )
    asked = {**NOISE, "num_groups": "Number of groups", "own_groups": "Your own k, groups per user"}
    return ReportContent(
        page="Sum and count",
        parameters=parameters,
        asked=asked,
        cards=[("counts per group", grouped.card(view, data, parameters.own_groups))],
        pictures=[picture, distribution(data)],
        formula=TOTAL_FORMULA,
        source=source,
        bodies=[script_bodies.GROUPED],
        summary=data_lines(data),
        choice=lambda: export_total.grouped_choice_json(data, parameters, view.problem, view.choice),
    )


def quantile_report(view: quantile_view.QuantileView, data: Dataset, source: Source) -> ReportContent:
    """Of the page Quantile."""
    limits, (first, _), kind = quantile_view.axis_limits(view), quantile_view.window(view), data.provenance
    pictures = [
        Picture(
            "quantile-error",
            "Rank error against the bound",
            lambda: quantile_charts.error_figure(view, limits),
            quantile_charts.error_alt(view),
            quantile_charts.error_columns(view),
            kind,
        ),
        Picture(
            "quantile-density",
            "Where the answer falls",
            lambda: quantile_charts.density_figure(view, first),
            quantile_words.density_alt(view),
            quantile_charts.density_columns(view, first),
            kind,
        ),
        Picture(
            "quantile-near",
            "How near it falls",
            lambda: quantile_charts.near_figure(view),
            quantile_words.near_alt(view),
            quantile_charts.near_columns(view),
            kind,
        ),
    ]
    return ReportContent(
        page="Quantile",
        parameters=view.parameters,
        asked={
            "epsilon": EPSILON,
            "quantiles": "Quantiles",
            "base": "Base distribution",
            "low": "Lowest answer",
            "high": "Highest answer",
            "center": "Mean of the base",
            "spread": "Standard deviation of the base",
            "edges": "Edges of the base",
            "masses": "Masses of the base",
            "weighting": "Weights",
            "bound_from": "Bound taken from",
            "own_bound": "Your own bound, rows per user",
        },
        cards=[("", quantile_words.card(view, data))],
        pictures=[*pictures, distribution(data)],
        formula=QUANTILE_FORMULA,
        source=source,
        bodies=[script_bodies.QUANTILE],
        summary=data_lines(data),
        choice=lambda: export_quantile.choice_json(
            data, view.parameters, view.bound, (view.choices.smooth, view.choices.cap), view.outputs
        ),
    )
