"""The figures of quantiles as data. Pure: what was found in, plots out."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpcore.answer import Axis, Curve, Item, Level, Look, Mark, Plot, Points, Scale
from dpcore.answer.axes import bound_axis, curve_bounds, fitted_limits
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
    (Look.SAMPLING, "solid"),
    (Look.PRIVACY, "dash"),
    (Look.USUAL, "dashdot"),
    (Look.TOTAL, "dot"),
    (Look.SMOOTH, "longdash"),
)
WIDTH = 2.5
"""In pixels, of a quantile's line."""
KINDS = (
    (WeightKind.SMOOTH, "Smooth weights", Look.SMOOTH, "circle"),
    (WeightKind.CAP, "Bounded rows", Look.CAP, "diamond"),
)


def errors(found: QuantileFound, data: Dataset) -> Plot:
    """The main figure: expected rank error against the bound, with the best of each kind."""
    parts = [(name.lower(), found.choices.of(kind).tried) for kind, name, *_ in KINDS]
    done = [~np.isnan(tried.rank_error) for _, tried in parts]
    heights = [tried.rank_error[held] for (_, tried), held in zip(parts, done, strict=True)]
    columns: dict[str, npt.ArrayLike] = {
        "weights": [name for (name, _), held in zip(parts, done, strict=True) for _ in range(held.sum())],
        "bound": np.concatenate([tried.bounds[held] for (_, tried), held in zip(parts, done, strict=True)]),
        "expected_rank_error": np.concatenate(heights),
        "standard_error_over_subsamples": np.concatenate(
            [tried.standard_error[held] for (_, tried), held in zip(parts, done, strict=True)]
        ),
    }
    items: list[Item] = []
    for kind, name, look, symbol in KINDS:
        choice, meant = found.choices.of(kind), ("weights", name.lower())
        # Often one lies on the other: both are to be seen.
        dash = "dash" if kind is WeightKind.CAP else ""
        items.append(Curve(name, "bound", "expected_rank_error", look, where=meant, dash=dash))
        items.append(Mark(f"Best, {name.lower()}", choice.bound, choice.rank_error, look, symbol))
    items.append(Level("No bound", found.unbounded_error, dash="longdash"))
    if found.ties:
        items.append(Level("Least possible (ties)", found.least_error))
    if found.bound != found.choices.of(found.kind).bound:
        items.append(Mark(IN_USE, found.bound, found.rank_error, Look.OWN, "square"))
    if found.own is not None and found.parameters.own_bound is not None:
        items.append(Mark("Your own bound", found.parameters.own_bound, mean_error(found.own), Look.OWN, "x"))
    smooth, cap = found.choices.smooth, found.choices.cap
    over = f" on average over {wording.counted(cap.subsamples, 'subsample')}" if cap.subsamples > 1 else ""
    marked = [item.y for item in items if isinstance(item, Mark)]
    upwards = fitted_limits(np.concatenate([*heights, marked, [found.unbounded_error]]))
    return Plot(
        "quantile-error",
        "Rank error against the bound",
        f"The expected rank error is least at {wording.counted(smooth.bound, 'row')} with smooth weights, "
        f"{wording.percent(smooth.rank_error)}, and at {wording.counted(cap.bound, 'row')} with bounded rows, "
        f"{wording.percent(cap.rank_error)}{over}; without a bound it is {wording.percent(found.unbounded_error)}.",
        bound_axis(bound_limits(found)),
        Axis("rank error", SHARE, upwards, title=f"Expected rank error ({SHARE})", number=".3~%"),
        columns,
        tuple(items),
        data.provenance,
        main=True,
    )


def density(found: QuantileFound, data: Dataset, limits: tuple[float, float] | None = None) -> Plot:
    """Where the answer falls: its exact density on equal bins, with its mean and the quantile of the rows.

    The vertical axis moves with epsilon: a density has area 1.

    Args:
        found: What is drawn.
        data: What it is about.
        limits: From which value to which; by default those near the quantiles.
    """
    shown = window(found)[0] if limits is None else limits
    edges = np.linspace(*shown, BINS + 1)

    def of(one: QuantileOutput) -> FloatArray:
        return one.binned_density(*shown, BINS)[1]

    columns: dict[str, FloatArray] = {"from": edges[:-1], "to": edges[1:]}
    guides = {"middle": (edges[:-1] + edges[1:]) / 2.0}
    curves: list[Item] = []
    means: list[Item] = []
    trues: list[Item] = []
    for one, (look, dash), true in zip(found.outputs, LOOKS, found.exact, strict=False):
        name, column = name_of(one.quantile), f"density_q{wording.digits(one.quantile)}"
        columns[column] = of(one)
        curves.append(Curve(name, "middle", column, look, dash=dash, width=WIDTH, bins=True))
        for uprights, what, at, style in (
            (means, "Mean of the answer", one.mean, "dot"),
            (trues, "Quantile of the rows", true, "solid"),
        ):
            if shown[0] <= at <= shown[1]:
                name_at = f"{name}: {what.lower()}"
                uprights.append(Level(name_at, at, upright=True, look=look, dash=style, legend=what))
    columns["base_density"] = _base_density(found, edges)
    if len(found.outputs) == 1 and found.own is not None:
        guides["own density"] = of(found.own.outputs[0])
        curves.append(Curve("Your own bound", "middle", "own density", Look.USUAL))
    if len(found.outputs) == 1 and found.bound < found.problem.histogram.max_size:
        guides["unbounded density"] = of(found.unbounded.outputs[0])
        curves.append(Curve("Without a bound", "middle", "unbounded density", Look.OWN))
    curves.append(Curve("Base ν", "middle", "base_density", Look.SAMPLING, tint=Look.OWN))
    drawn = [columns[name] for name in columns if "density" in name]
    drawn += [guides[name] for name in guides if "density" in name]
    alt = " ".join(
        f"{name_of(one.quantile)}: 95 % of answers lie between {wording.number(one.interval()[0])} and "
        f"{wording.number(one.interval()[1])}; the quantile of the rows is {wording.number(true)}."
        for one, true in zip(found.outputs, found.exact, strict=True)
    )
    return Plot(
        "quantile-density",
        "Where the answer falls",
        alt,
        _values(shown),
        Axis("density", "per unit of the values", _from_zero(drawn), Scale.LINEAR, number=".3~g"),
        columns,
        (*curves, *means, *trues),
        data.provenance,
        guides,
        height=400,
    )


def _values(limits: tuple[float, float]) -> Axis:
    return Axis("answer", "unit of the values", limits, Scale.LINEAR, number=",.4~g")


def _from_zero(drawn: list[FloatArray]) -> tuple[float, float]:
    """From 0 to a little above the highest of what is drawn."""
    return 0.0, 1.05 * max(float(np.max(values)) for values in drawn) or 1.0


def _base_density(found: QuantileFound, edges: FloatArray) -> FloatArray:
    # Between two edges the base may change its form: its mass there is that of the pieces.
    base = found.problem.base
    cuts = np.union1d(edges, base.breaks[(base.breaks > edges[0]) & (base.breaks < edges[-1])])
    below = np.concatenate(([0.0], np.cumsum(np.exp(base.log_mass(cuts[:-1], cuts[1:])))))
    return np.diff(below[np.searchsorted(cuts, edges)]) / np.diff(edges)


def near(found: QuantileFound, data: Dataset) -> Plot:
    """Probability that the answer lies within t in rank of the quantile, over t; with the bound and without any."""
    t, several = near_grid(), len(found.outputs) > 1
    columns: dict[str, FloatArray] = {"distance_in_rank": t}
    named: list[Item] = []
    unbounded: list[Item] = []
    for one, free, (look, dash) in zip(found.outputs, found.unbounded.outputs, LOOKS, strict=False):
        name, column = name_of(one.quantile), f"probability_q{wording.digits(one.quantile)}"
        columns[column] = one.probability_within(t)
        columns[f"{column}_without_bound"] = free.probability_within(t)
        named.append(Curve(name, "distance_in_rank", column, look, dash=dash, width=WIDTH))
        unbounded.append(
            Curve(
                f"{name}, without a bound",
                "distance_in_rank",
                f"{column}_without_bound",
                Look.OWN,
                tint=look,
                legend="Without a bound" if several else "",
            )
        )
    within = [float(one.probability_within(0.01)) for one in found.outputs]
    return Plot(
        "quantile-near",
        "How near it falls",
        f"Within 1 % of rank with probability {' and '.join(wording.percent(p) for p in within)}.",
        Axis("distance t in rank", SHARE, (1e-4, 0.5), number=".3~g"),
        Axis("probability that |F(answer) − q| ≤ t", "", (0.0, 1.02), Scale.PERCENT, number=".2~%"),
        columns,
        (*named, *([] if found.parameters.weighting is Weighting.NONE else unbounded)),
        data.provenance,
        height=400,
    )


def paper(found: QuantileFound, data: Dataset) -> Plot:
    """The paper's bound against h for both kinds, with the best h of its trade-off form."""
    histogram = found.problem.histogram
    bound, h = found.parameters.rank_bound(histogram), curve_bounds(histogram)
    columns: dict[str, FloatArray] = {"bound": h}
    items: list[Item] = []
    for kind, name, look, symbol in KINDS:
        column, best = f"{kind.name.lower()}_paper_bound", bound.best(kind).bound
        columns[column] = bound.value(kind, h)
        items.append(Curve(name, "bound", column, look))
        items.append(Mark(f"Best, {name.lower()}", best, float(bound.value(kind, best)), look, symbol))
    return Plot(
        "quantile-paper",
        "The paper's bound",
        f"The paper's bound is least near {wording.counted(found.counts_bound, 'row')}.",
        bound_axis(bound_limits(found)),
        Axis("bound on the rank error", SHARE, (1e-3, 1e2), number=".3~g"),
        columns,
        (*items, Level("Says nothing above 1", 1.0, dash="longdash")),
        data.provenance,
        height=400,
    )


def poorer(found: QuantileFound, how: Poorer, steps: FloatArray, errors: FloatArray, data: Dataset) -> Plot:
    """Expected rank error as the base distribution gets poorer; ``steps`` and ``errors`` of shape (k,)."""
    wider = how is Poorer.WIDER
    column = "times_as_wide" if wider else "moved_by_widths"
    worst = wording.percent(float(np.nanmax(errors, initial=0.0)))
    return Plot(
        "quantile-poorer",
        "Poorer bases",
        f"The largest error of these bases is {worst}; for the base as entered it is "
        f"{wording.percent(found.rank_error)}.",
        Axis("width of ν", "1 = as entered", (1.0, 1e4), number=",.3~g")
        if wider
        else Axis(
            "ν moved by",
            "its widths; 0 = as entered",
            (-1.05, 1.05),
            Scale.LINEAR,
            title="ν moved by (its widths; 0 = as entered)",
            number=".2f",
        ),
        Axis("expected rank error", SHARE, (1e-4, 1.0), number=".3~%"),
        {column: steps, "expected_rank_error": errors},
        (Curve("Expected rank error", column, "expected_rank_error", Look.TOTAL, symbol="circle"),),
        data.provenance,
    )


def samples(
    found: QuantileFound, sampled: SampledAnswers, limits: tuple[float, float], data: Dataset
) -> Plot:
    """Share of the simulated answers in each bin beside its exact probability, among the values in ``limits``."""
    edges, draws = np.linspace(*limits, SAMPLE_BINS + 1), max(sampled.answers.shape[0], 1)
    columns: dict[str, FloatArray] = {"from": edges[:-1], "to": edges[1:]}
    items: list[Item] = []
    for one, answers, (look, dash) in zip(found.outputs, sampled.answers.T, LOOKS, strict=False):
        name, of = name_of(one.quantile), f"q{wording.digits(one.quantile)}"
        simulated, exact = f"simulated_share_{of}", f"exact_probability_{of}"
        columns[simulated], columns[exact] = np.histogram(answers, edges)[0] / draws, np.diff(one.cdf(edges))
        items.append(Curve(f"{name}, exact", "middle", exact, look, dash=dash, width=WIDTH, bins=True))
        items.append(Points(f"{name}, simulated", "middle", simulated, look, size=7))
    shares = _from_zero([columns[name] for name in columns if name not in ("from", "to")])
    return Plot(
        "quantile-samples",
        "Sampled answers",
        "Simulated answers beside their exact probabilities.",
        _values(limits),
        Axis("share of the answers in a bin", "", shares, Scale.PERCENT, number=".2~%"),
        columns,
        tuple(items),
        data.provenance,
        {"middle": (edges[:-1] + edges[1:]) / 2.0},
    )
