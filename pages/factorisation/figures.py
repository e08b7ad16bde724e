"""The figures of the page Factorisation. Pure: an answer in, a Plotly figure out."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from dpcore.common import wording
from dpcore.common.privacy import Provenance
from dpcore.contributions import FloatArray
from dpcore.factorisation.allocation import Scheme
from dpcore.factorisation.measures import BUCKETS, buckets_of, overlap
from dpcore.factorisation.study import SCHEMES, Kind, StudyResult
from dpcore.report import charts
from pages.factorisation.answer import FactorisationView, nearest
from pages.factorisation.card import SCHEME_NAMES
from pages.shared.figures.figures import Picture

LOOKS = {
    Kind.UNIFORM: ({**charts.OWN, "dash": "solid", "width": 2}, "square"),
    Kind.TAIL: (charts.SAMPLING, "triangle-up"),
    Kind.ADAPTIVE: (charts.CAP, "circle"),
    Kind.PRIVATE_MEAN: (charts.SMOOTH, "diamond"),
    Kind.GLOBAL_MEAN: ({**charts.USUAL, "dash": "dot"}, ""),
    Kind.ITEM_MEAN: ({**charts.USUAL, "dash": "dash"}, ""),
    Kind.NO_PRIVACY: (charts.PRIVACY, ""),
}
"""Line and marker by model; those without privacy are lines across, and have no marker."""
OF_SCHEME = {scheme: LOOKS[kind] for kind, scheme in SCHEMES.items()}
BUCKET_NAMES = ("Rarest", "2nd fifth", "Middle", "4th fifth", "Most rated")
OVERLAP = 20
"""Nearest items that are compared, as in the paper."""
LEAST_EPSILON, MOST_EPSILON = 0.2, 20.0
"""Between which noise sets the axis of noise over signal, so that it stays while epsilon moves."""


def bucket_labels(spreads: Sequence[tuple[int, int]]) -> list[str]:
    """Names for the axis, with the items' numbers of ratings."""
    return [
        f"{name}<br>{wording.number(low)}–{wording.number(high)}"
        for name, (low, high) in zip(BUCKET_NAMES, spreads, strict=True)
    ]


# --- who gets the budget ------------------------------------------------------------------------------------


def shares_picture(view: FactorisationView) -> Picture:
    """Share of the budget and noise over signal by popularity, one series per scheme."""
    adaptive, uniform = view.share(Scheme.ADAPTIVE), view.share(Scheme.UNIFORM)
    columns: dict[str, npt.ArrayLike] = {
        "bucket": list(BUCKET_NAMES),
        "fewest_ratings": [low for low, _ in view.table.spreads],
        "most_ratings": [high for _, high in view.table.spreads],
    }
    for found in view.shares:
        columns[f"share_{found.scheme.value}"] = found.shares
        columns[f"noise_over_signal_{found.scheme.value}"] = found.noise_to_signal
    return Picture(
        "factorisation-shares",
        "Who gets the budget",
        lambda: _shares_figure(view),
        f"The most popular fifth of items gets {wording.percent(float(uniform.shares[-1]))} of the budget under "
        f"uniform sampling and {wording.percent(float(adaptive.shares[-1]))} under adaptive weights; noise over signal "
        "falls from rare to popular items.",
        columns,
        view.table.disclosure,
    )


def _shares_figure(view: FactorisationView) -> go.Figure:
    labels = bucket_labels(view.table.spreads)
    upwards = charts.linear_axis("Share of the budget", (0.0, 1.0), percent=True)
    fig = charts.figure(_fifths(), upwards, charts.MAIN_HEIGHT)
    weight = view.share(Scheme.UNIFORM).weight
    # Of uniform sampling, whose weights do not depend on epsilon: the axis stays put while epsilon moves.
    per_weight = view.share(Scheme.UNIFORM).noise * view.parameters.epsilon / np.maximum(weight, 1e-3)
    epsilon = view.parameters.epsilon
    limits = (
        float(per_weight.min()) / max(MOST_EPSILON, epsilon),
        float(per_weight.max()) / min(LEAST_EPSILON, epsilon),
    )
    fig.update_layout(
        yaxis={"domain": [0.54, 1.0]},
        yaxis2={
            **charts.log_axis("Noise over signal", _decades(limits)),
            "domain": [0.0, 0.46],
            "anchor": "x",
        },
        barmode="group",
        xaxis={"anchor": "y2"},
    )
    for found in view.shares:
        line, symbol = OF_SCHEME[found.scheme]
        name = SCHEME_NAMES[found.scheme]
        hover = f"{name}<br>%{{x}} ratings: %{{y:.1%}} of the budget"
        charts.add_bars(fig, name, labels, found.shares.tolist(), line, hover, opacity=0.8, legendgroup=name)
        charts.add_curve(
            fig,
            name,
            labels,
            [value if math.isfinite(value) else None for value in found.noise_to_signal.tolist()],
            line,
            f"{name}<br>%{{x}} ratings: noise is %{{y:.3g}} times the signal",
            symbol=symbol,
            legendgroup=name,
            showlegend=False,
            yaxis="y2",
        )
    charts.line_across(fig, 1, "Noise = signal", yref="y2")
    return fig


def _decades(limits: tuple[float, float]) -> tuple[float, float]:
    """Limits at whole decades, so that a small change of the ratings does not move the axis."""
    low, high = limits
    return float(10.0 ** np.floor(np.log10(low))), float(10.0 ** np.ceil(np.log10(high)))


# --- error over epsilon -------------------------------------------------------------------------------------


def error_picture(result: StudyResult, kind: Provenance, key: str = "factorisation-errors") -> Picture:
    """Test error over epsilon, private models with intervals, and the baselines across."""
    epsilons = np.array(result.study.epsilons)
    columns: dict[str, npt.ArrayLike] = {"epsilon": epsilons}
    for model in Kind:
        mean, half = result.mean(model)
        name = model.name.lower()
        columns[f"rmse_{name}"] = mean[:, 0]
        columns[f"half_interval_{name}"] = half[:, 0]
    best = _least(result)
    return Picture(
        key,
        "Test error over ε",
        lambda: _error_figure(result),
        f"At the largest ε, {best} has the smallest error of the private models; all errors fall as ε grows.",
        columns,
        kind,
    )


def _least(result: StudyResult) -> str:
    errors = {kind: result.mean(kind)[0][:, 0] for kind in (Kind.PRIVATE_MEAN, *SCHEMES)}
    there = [
        at for at in range(len(result.study.epsilons)) if np.isfinite([e[at] for e in errors.values()]).all()
    ]
    if not there:
        return "no model"
    return min(errors, key=lambda kind: float(errors[kind][there[-1]])).value


def _error_figure(result: StudyResult) -> go.Figure:
    epsilons = np.array(result.study.epsilons)
    limits = float(epsilons.min()) / 1.5, float(epsilons.max()) * 1.5
    reached = result.rmse[..., 0][np.isfinite(result.rmse[..., 0])]
    low, high = (float(reached.min()), float(reached.max())) if reached.size else (0.0, 1.0)
    room = max(0.06 * (high - low), 1e-3)
    fig = charts.log_linear(
        "Privacy budget ε", limits, "Test error (RMSE)", (low - room, high + room), charts.MAIN_HEIGHT
    )
    ticks = [wording.entered(float(epsilon)) for epsilon in epsilons]
    fig.update_xaxes(tickmode="array", tickvals=epsilons, ticktext=ticks, minor={"ticks": ""})
    for kind in Kind:
        mean, half = result.mean(kind)
        line, symbol = LOOKS[kind]
        if not np.isfinite(mean[:, 0]).any():
            continue
        hover = f"{kind.value}<br>RMSE %{{y:.4f}}"
        if not kind.is_private:
            level = float(mean[0, 0])
            charts.add_curve(fig, kind.value, list(limits), [level, level], line, hover)
            continue
        spread = charts.whiskers(np.nan_to_num(half[:, 0]))
        charts.add_curve(fig, kind.value, epsilons, mean[:, 0], line, hover, symbol=symbol, error_y=spread)
    return fig


# --- rare and popular items ---------------------------------------------------------------------------------


def bucket_picture(
    result: StudyResult, at: int, spreads: Sequence[tuple[int, int]], kind: Provenance, recall: bool = False
) -> Picture:
    """Differences to uniform sampling by popularity, paired by seed, at one epsilon."""
    of = result.recall if recall else result.rmse
    columns: dict[str, npt.ArrayLike] = {"items": ["All", *BUCKET_NAMES]}
    series = {}
    for model in (Kind.TAIL, Kind.ADAPTIVE):
        mean, half = result.difference(model, Kind.UNIFORM, of)
        series[model] = mean[at], half[at]
        name = model.name.lower()
        columns[f"difference_{name}"] = mean[at]
        columns[f"half_interval_{name}"] = half[at]
    what = "recall" if recall else "RMSE"
    rarest = float(series[Kind.ADAPTIVE][0][1])
    return Picture(
        f"factorisation-buckets-{'recall' if recall else 'rmse'}",
        f"{'Recall' if recall else 'Error'} against uniform sampling, rare to popular",
        lambda: _bucket_figure(series, spreads, what, result.study.epsilons[at]),
        f"On the rarest fifth of items adaptive weights change {what} by {rarest:+.4f} against uniform sampling."
        if np.isfinite(rarest)
        else f"Differences of {what} to uniform sampling by popularity.",
        columns,
        kind,
    )


def _bucket_figure(
    series: dict[Kind, tuple[FloatArray, FloatArray]],
    spreads: Sequence[tuple[int, int]],
    what: str,
    epsilon: float,
) -> go.Figure:
    labels = ["All<br>items", *bucket_labels(spreads)]
    ends = np.concatenate(
        [
            np.concatenate([mean - np.nan_to_num(half), mean + np.nan_to_num(half)])
            for mean, half in series.values()
        ]
    )
    ends = ends[np.isfinite(ends)]
    low, high = (min(float(ends.min()), 0.0), max(float(ends.max()), 0.0)) if ends.size else (-1.0, 1.0)
    room = max(0.08 * (high - low), 1e-4)
    better = "above 0 is better" if what == "recall" else "below 0 is better"
    across = _fifths(f" (ε = {wording.entered(epsilon)})")
    upwards = charts.linear_axis(f"Difference of {what} to uniform ({better})", (low - room, high + room))
    fig = charts.figure(across, upwards, charts.MAIN_HEIGHT)
    fig.update_layout(barmode="group")
    for kind, (mean, half) in series.items():
        line, _ = LOOKS[kind]
        spread = charts.whiskers(np.nan_to_num(half), color=charts.NEUTRAL)
        hover = f"{kind.value}<br>%{{x}}: %{{y:+.4f}} ± %{{customdata:.4f}}"
        more = {"opacity": 0.8, "error_y": spread, "customdata": half}
        charts.add_bars(fig, kind.value, labels, mean, line, hover, **more)
    return fig


# --- neighbours ---------------------------------------------------------------------------------------------


def overlaps(result: StudyResult, at: int) -> dict[Kind, FloatArray]:
    """Mean share of an item's nearest items that it has in common with the model without privacy, by bucket."""
    reference = result.models.get((Kind.NO_PRIVACY, 0.0))
    found: dict[Kind, FloatArray] = {}
    if reference is None:
        return found
    buckets = buckets_of(result.train_counts)
    for kind in SCHEMES:
        model = result.models.get((kind, result.study.epsilons[at]))
        if model is None or model.item_vectors.shape[1] < 2:
            continue
        each = overlap(model, reference, np.arange(buckets.size), OVERLAP)
        found[kind] = np.array([each[buckets == bucket].mean() for bucket in range(BUCKETS)])
    return found


def overlap_picture(
    shared: dict[Kind, FloatArray],
    spreads: Sequence[tuple[int, int]],
    epsilon: float,
    num_items: int,
    kind: Provenance,
) -> Picture:
    """Figure 11 of the paper: overlap of nearest items with the model without privacy, and what chance gives."""
    best = max((float(values.max()) for values in shared.values()), default=0.0)
    chance = min(OVERLAP / max(num_items - 1, 1), 1.0)
    return Picture(
        "factorisation-overlap",
        "Nearest items in common with the model without privacy",
        lambda: _overlap_figure(shared, spreads, epsilon, chance),
        f"Of an item's {OVERLAP} nearest items at most {wording.percent(best)} are those of the model without privacy; "
        f"chance alone gives {wording.percent(chance)}.",
        {
            "bucket": list(BUCKET_NAMES),
            **{f"overlap_{SCHEMES[k].value}": values for k, values in shared.items()},
        },
        kind,
    )


def _overlap_figure(
    shared: dict[Kind, FloatArray], spreads: Sequence[tuple[int, int]], epsilon: float, chance: float
) -> go.Figure:
    most = max(chance, *(float(values.max()) for values in shared.values()))
    across = _fifths(f" (ε = {wording.entered(epsilon)})")
    upwards = charts.linear_axis(f"Of the {OVERLAP} nearest, in common", (0.0, 1.15 * most), percent=True)
    fig = charts.figure(across, upwards, 320)
    if most < 0.05:
        fig.update_yaxes(tickformat=".1%")
    for model, values in shared.items():
        line, symbol = LOOKS[model]
        name = SCHEME_NAMES[SCHEMES[model]]
        charts.add_curve(
            fig, name, bucket_labels(spreads), values, line, f"{name}<br>%{{x}}: %{{y:.1%}}", symbol=symbol
        )
    charts.line_across(fig, chance, "Chance")
    return fig


def _fifths(at: str = "") -> dict[str, object]:
    """The axis of buckets; ``at`` ends its title."""
    return {
        "title": {"text": f"Fifths of the items, by ratings{at}"},
        "type": "category",
        "tickangle": 0,
        "tickfont": {"size": 11},
    }


def pictures(view: FactorisationView) -> list[Picture]:
    """Those of page and report, the main one first."""
    result = view.result
    found = [shares_picture(view)]
    at = None if result is None else nearest(result, view.parameters.epsilon)
    if result is None or at is None:
        return found
    kind, spreads = view.table.disclosure, view.table.spreads
    return [
        error_picture(result, kind),
        *found,
        bucket_picture(result, at, spreads, kind),
        bucket_picture(result, at, spreads, kind, recall=True),
    ]
