"""The figures of quantiles as data. Pure: what was found in, plots out."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpcore.answer import Axis, Curve, Item, Level, Mark, Plot, Points, Scale, Style
from dpcore.answer.axes import build_bound_axis, choose_curve_bounds, fit_limits
from dpcore.answer.plot import IN_USE
from dpcore.common import wording
from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset
from dpcore.quantile import QuantileOutput, WeightKind
from dpcore.quantile.answer.found import Poorer, QuantileFound, bound_limits, mean_error, near_grid, window
from dpcore.quantile.answer.words import name_of
from dpcore.quantile.parameters import Weighting
from dpcore.quantile.several import SampledAnswers

BINS = 240
SAMPLE_BINS = 40
SHARE = "share of rows"
# One look per quantile, other than those of cap and smooth weights; at most MAX_QUANTILES are asked for.
LOOKS = (
    (Style.SAMPLING, "solid"),
    (Style.PRIVACY, "dash"),
    (Style.CUSTOMARY, "dashdot"),
    (Style.TOTAL, "dot"),
    (Style.SMOOTH, "longdash"),
)
WIDTH = 2.5
"""In pixels, of a quantile's line."""
KINDS = (
    (WeightKind.SMOOTH, "Smooth weights", Style.SMOOTH, "circle"),
    (WeightKind.CAP, "Bounded rows", Style.CAP, "diamond"),
)


def errors(solution: QuantileFound, data: Dataset) -> Plot:
    """Return the main figure: expected rank error against the bound, with the best of each kind."""
    searches = [(name.lower(), solution.choices.of(weighting).tried) for weighting, name, *_ in KINDS]
    done = [~np.isnan(candidates.rank_error) for _, candidates in searches]
    heights = [
        candidates.rank_error[is_done] for (_, candidates), is_done in zip(searches, done, strict=True)
    ]
    columns: dict[str, npt.ArrayLike] = {
        "weights": [
            name for (name, _), is_done in zip(searches, done, strict=True) for _ in range(is_done.sum())
        ],
        "bound": np.concatenate(
            [candidates.bounds[is_done] for (_, candidates), is_done in zip(searches, done, strict=True)]
        ),
        "expected_rank_error": np.concatenate(heights),
        "standard_error_over_subsamples": np.concatenate(
            [
                candidates.standard_error[is_done]
                for (_, candidates), is_done in zip(searches, done, strict=True)
            ]
        ),
    }
    items: list[Item] = []
    for weighting, name, color, symbol in KINDS:
        choice, condition = solution.choices.of(weighting), ("weights", name.lower())
        # Often one lies on the other: both are to be seen.
        dash = "dash" if weighting is WeightKind.CAP else ""
        items.append(Curve(name, "bound", "expected_rank_error", color, filter=condition, dash=dash))
        items.append(Mark(f"Best, {name.lower()}", choice.bound, choice.rank_error, color, symbol))
    items.append(Level("No bound", solution.unbounded_error, dash="longdash"))
    if solution.ties:
        items.append(Level("Least possible (ties)", solution.least_error))
    if solution.bound != solution.choices.of(solution.kind).bound:
        items.append(Mark(IN_USE, solution.bound, solution.rank_error, Style.ENTERED, "square"))
    if solution.own is not None and solution.parameters.own_bound is not None:
        items.append(
            Mark(
                "Your own bound", solution.parameters.own_bound, mean_error(solution.own), Style.ENTERED, "x"
            )
        )
    smooth, cap = solution.choices.smooth, solution.choices.cap
    average = f" on average over {wording.counted(cap.subsamples, 'subsample')}" if cap.subsamples > 1 else ""
    marked = [item.y for item in items if isinstance(item, Mark)]
    upwards = fit_limits(np.concatenate([*heights, marked, [solution.unbounded_error]]))
    return Plot(
        "quantile-error",
        "Rank error against the bound",
        f"The expected rank error is least at {wording.counted(smooth.bound, 'row')} with smooth weights, "
        f"{wording.percent(smooth.rank_error)}, and at {wording.counted(cap.bound, 'row')} with bounded rows, "
        f"{wording.percent(cap.rank_error)}{average}; without a bound it is "
        f"{wording.percent(solution.unbounded_error)}.",
        build_bound_axis(bound_limits(solution)),
        Axis("rank error", SHARE, upwards, title=f"Expected rank error ({SHARE})", number_format=".3~%"),
        columns,
        tuple(items),
        data.provenance,
        is_main=True,
    )


def density(solution: QuantileFound, data: Dataset, limits: tuple[float, float] | None = None) -> Plot:
    """Where the answer falls: its exact density on equal bins, with its mean and the quantile of the rows.

    The vertical axis moves with epsilon: a density has area 1.

    Args:
        solution: What is drawn.
        data: What it is about.
        limits: From which value to which; by default those near the quantiles.
    """
    span = window(solution)[0] if limits is None else limits
    edges = np.linspace(*span, BINS + 1)

    def densities(output: QuantileOutput) -> FloatArray:
        return output.binned_density(*span, BINS)[1]

    columns: dict[str, FloatArray] = {"from": edges[:-1], "to": edges[1:]}
    guides = {"middle": (edges[:-1] + edges[1:]) / 2.0}
    curves: list[Item] = []
    means: list[Item] = []
    trues: list[Item] = []
    for output, (color, dash), true in zip(solution.outputs, LOOKS, solution.exact, strict=False):
        name, column = name_of(output.quantile), f"density_q{wording.digits(output.quantile)}"
        columns[column] = densities(output)
        curves.append(Curve(name, "middle", column, color, dash=dash, width=WIDTH, is_binned=True))
        for uprights, label, position, style in (
            (means, "Mean of the answer", output.mean, "dot"),
            (trues, "Quantile of the rows", true, "solid"),
        ):
            if span[0] <= position <= span[1]:
                name_at = f"{name}: {label.lower()}"
                uprights.append(
                    Level(name_at, position, is_vertical=True, style=color, dash=style, legend=label)
                )
    columns["base_density"] = _base_density(solution, edges)
    if len(solution.outputs) == 1 and solution.own is not None:
        guides["own density"] = densities(solution.own.outputs[0])
        curves.append(Curve("Your own bound", "middle", "own density", Style.CUSTOMARY))
    if len(solution.outputs) == 1 and solution.bound < solution.problem.histogram.max_size:
        guides["unbounded density"] = densities(solution.unbounded.outputs[0])
        curves.append(Curve("Without a bound", "middle", "unbounded density", Style.ENTERED))
    curves.append(Curve("Base ν", "middle", "base_density", Style.SAMPLING, color_style=Style.ENTERED))
    heights = [columns[name] for name in columns if "density" in name]
    heights += [guides[name] for name in guides if "density" in name]
    alt = " ".join(
        f"{name_of(output.quantile)}: 95 % of answers lie between {wording.number(output.interval()[0])} and "
        f"{wording.number(output.interval()[1])}; the quantile of the rows is {wording.number(true)}."
        for output, true in zip(solution.outputs, solution.exact, strict=True)
    )
    return Plot(
        "quantile-density",
        "Where the answer falls",
        alt,
        _values(span),
        Axis("density", "per unit of the values", _from_zero(heights), Scale.LINEAR, number_format=".3~g"),
        columns,
        (*curves, *means, *trues),
        data.provenance,
        guides,
        height=400,
    )


def _values(limits: tuple[float, float]) -> Axis:
    return Axis("answer", "unit of the values", limits, Scale.LINEAR, number_format=",.4~g")


def _from_zero(heights: list[FloatArray]) -> tuple[float, float]:
    """From 0 to a little above the highest of what is drawn."""
    return 0.0, 1.05 * max(float(np.max(values)) for values in heights) or 1.0


def _base_density(solution: QuantileFound, edges: FloatArray) -> FloatArray:
    # Between two edges the base may change its form: its mass there is that of the pieces.
    base = solution.problem.base
    cuts = np.union1d(edges, base.breaks[(base.breaks > edges[0]) & (base.breaks < edges[-1])])
    cumulated = np.concatenate(([0.0], np.cumsum(np.exp(base.log_mass(cuts[:-1], cuts[1:])))))
    return np.diff(cumulated[np.searchsorted(cuts, edges)]) / np.diff(edges)


def near(solution: QuantileFound, data: Dataset) -> Plot:
    """Probability that the answer lies within t in rank of the quantile, over t; with the bound and without any."""
    t, several = near_grid(), len(solution.outputs) > 1
    columns: dict[str, FloatArray] = {"distance_in_rank": t}
    items: list[Item] = []
    unbounded: list[Item] = []
    for output, free, (color, dash) in zip(solution.outputs, solution.unbounded.outputs, LOOKS, strict=False):
        name, column = name_of(output.quantile), f"probability_q{wording.digits(output.quantile)}"
        columns[column] = output.probability_within(t)
        columns[f"{column}_without_bound"] = free.probability_within(t)
        items.append(Curve(name, "distance_in_rank", column, color, dash=dash, width=WIDTH))
        unbounded.append(
            Curve(
                f"{name}, without a bound",
                "distance_in_rank",
                f"{column}_without_bound",
                Style.ENTERED,
                color_style=color,
                legend="Without a bound" if several else "",
            )
        )
    close = [float(output.probability_within(0.01)) for output in solution.outputs]
    return Plot(
        "quantile-near",
        "How near it falls",
        f"Within 1 % of rank with probability {' and '.join(wording.percent(p) for p in close)}.",
        Axis("distance t in rank", SHARE, (1e-4, 0.5), number_format=".3~g"),
        Axis("probability that |F(answer) − q| ≤ t", "", (0.0, 1.02), Scale.PERCENT, number_format=".2~%"),
        columns,
        (*items, *([] if solution.parameters.weighting is Weighting.NONE else unbounded)),
        data.provenance,
        height=400,
    )


def paper(solution: QuantileFound, data: Dataset) -> Plot:
    """Return the paper's bound against h for both kinds, with the best h of its trade-off form."""
    histogram = solution.problem.histogram
    bound, h = solution.parameters.rank_bound(histogram), choose_curve_bounds(histogram)
    columns: dict[str, FloatArray] = {"bound": h}
    items: list[Item] = []
    for weighting, name, color, symbol in KINDS:
        column, best = f"{weighting.name.lower()}_paper_bound", bound.best(weighting).bound
        columns[column] = bound.value(weighting, h)
        items.append(Curve(name, "bound", column, color))
        items.append(Mark(f"Best, {name.lower()}", best, float(bound.value(weighting, best)), color, symbol))
    return Plot(
        "quantile-paper",
        "The paper's bound",
        f"The paper's bound is least near {wording.counted(solution.counts_bound, 'row')}.",
        build_bound_axis(bound_limits(solution)),
        Axis("bound on the rank error", SHARE, (1e-3, 1e2), number_format=".3~g"),
        columns,
        (*items, Level("Says nothing above 1", 1.0, dash="longdash")),
        data.provenance,
        height=400,
    )


def poorer(
    solution: QuantileFound, how: Poorer, steps: FloatArray, errors: FloatArray, data: Dataset
) -> Plot:
    """Return the expected rank error as the base distribution gets poorer; ``steps`` and ``errors`` of shape (k,)."""
    wider = how is Poorer.WIDER
    column = "times_as_wide" if wider else "moved_by_widths"
    worst = wording.percent(float(np.nanmax(errors, initial=0.0)))
    return Plot(
        "quantile-poorer",
        "Poorer bases",
        f"The largest error of these bases is {worst}; for the base as entered it is "
        f"{wording.percent(solution.rank_error)}.",
        Axis("width of ν", "1 = as entered", (1.0, 1e4), number_format=",.3~g")
        if wider
        else Axis(
            "ν moved by",
            "its widths; 0 = as entered",
            (-1.05, 1.05),
            Scale.LINEAR,
            title="ν moved by (its widths; 0 = as entered)",
            number_format=".2f",
        ),
        Axis("expected rank error", SHARE, (1e-4, 1.0), number_format=".3~%"),
        {column: steps, "expected_rank_error": errors},
        (Curve("Expected rank error", column, "expected_rank_error", Style.TOTAL, symbol="circle"),),
        data.provenance,
    )


def samples(
    solution: QuantileFound, sampled: SampledAnswers, limits: tuple[float, float], data: Dataset
) -> Plot:
    """Share of the simulated answers in each bin beside its exact probability, among the values in ``limits``."""
    edges, draws = np.linspace(*limits, SAMPLE_BINS + 1), max(sampled.answers.shape[0], 1)
    columns: dict[str, FloatArray] = {"from": edges[:-1], "to": edges[1:]}
    items: list[Item] = []
    for output, answers, (color, dash) in zip(solution.outputs, sampled.answers.T, LOOKS, strict=False):
        name, column = name_of(output.quantile), f"q{wording.digits(output.quantile)}"
        simulated, exact = f"simulated_share_{column}", f"exact_probability_{column}"
        columns[simulated], columns[exact] = (
            np.histogram(answers, edges)[0] / draws,
            np.diff(output.cdf(edges)),
        )
        items.append(Curve(f"{name}, exact", "middle", exact, color, dash=dash, width=WIDTH, is_binned=True))
        items.append(Points(f"{name}, simulated", "middle", simulated, color, size=7))
    shares = _from_zero([columns[name] for name in columns if name not in ("from", "to")])
    return Plot(
        "quantile-samples",
        "Sampled answers",
        "Simulated answers beside their exact probabilities.",
        _values(limits),
        Axis("share of the answers in a bin", "", shares, Scale.PERCENT, number_format=".2~%"),
        columns,
        tuple(items),
        data.provenance,
        {"middle": (edges[:-1] + edges[1:]) / 2.0},
    )
