"""Plots of a recommender as data. Pure functions of the solution."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.answer import Axis, Bars, Curve, Item, Level, Plot, Scale, Style
from dpcore.common import wording
from dpcore.common.privacy import Provenance
from dpcore.contributions import FloatArray
from dpcore.factorisation.allocation import Scheme
from dpcore.factorisation.answer.found import FactorisationSolution
from dpcore.factorisation.answer.words import SCHEME_NAMES
from dpcore.factorisation.measures import BUCKETS, assign_buckets, compute_overlap
from dpcore.factorisation.study import MEANS, SCHEMES, ModelKind, StudyResult

MODEL_STYLES: dict[ModelKind, dict[str, Any]] = {
    ModelKind.UNIFORM: {"style": Style.ENTERED, "dash": "solid", "width": 2, "symbol": "square"},
    ModelKind.TAIL: {"style": Style.SAMPLING, "symbol": "triangle-up"},
    ModelKind.ADAPTIVE: {"style": Style.CAP, "symbol": "circle"},
    ModelKind.PRIVATE_MEAN: {"style": Style.SMOOTH, "dash": "dot", "width": 1.5, "symbol": "diamond"},
    ModelKind.PRIVATE_OFFSETS: {"style": Style.SMOOTH, "symbol": "diamond"},
    ModelKind.GLOBAL_MEAN: {"style": Style.CUSTOMARY, "dash": "dot"},
    ModelKind.ITEM_MEAN: {"style": Style.CUSTOMARY, "dash": "dash"},
    ModelKind.NO_PRIVACY: {"style": Style.PRIVACY},
}
"""Line and points by model; those without privacy are lines across."""
SCHEME_STYLES = {scheme: MODEL_STYLES[kind] for kind, scheme in SCHEMES.items()}
BUCKET_NAMES = ("Rarest", "2nd fifth", "Middle", "4th fifth", "Most rated")
NUM_NEAREST = 20
"""Nearest items that are compared, as in the paper."""
AXIS_MIN_EPSILON, AXIS_MAX_EPSILON = 0.2, 20.0
"""Between which noise sets the axis of noise over signal, so that it stays while epsilon moves."""


def build_plots(solution: FactorisationSolution) -> dict[str, Callable[[], Plot]]:
    """Return the functions that make the plots, by key, the main one first."""
    makers: dict[str, Callable[[], Plot]] = {"factorisation-shares": lambda: plot_shares(solution)}
    result = solution.result
    if result is None or solution.epsilon_index is None:
        return makers
    return {
        "factorisation-errors": lambda: plot_errors(
            result, solution.table.disclosure, solution.parameters.epsilon
        ),
        **makers,
        "factorisation-buckets-rmse": lambda: plot_buckets(solution),
        "factorisation-buckets-recall": lambda: plot_buckets(solution, recall=True),
    }


def label_buckets(spreads: Sequence[tuple[int, int]]) -> list[str]:
    """Write the labels of the axis, with the numbers of ratings of the items."""
    return [
        f"{name}<br>{wording.number(low)}–{wording.number(high)}"
        for name, (low, high) in zip(BUCKET_NAMES, spreads, strict=True)
    ]


def _bucket_axis(suffix: str = "") -> Axis:
    """Build the axis of buckets; ``suffix`` ends its title."""
    return Axis("ratings", "", (0.0, 1.0), Scale.NAMES, f"Fifths of the items, by ratings{suffix}")


# --- who gets the budget ------------------------------------------------------------------------------------


def plot_shares(solution: FactorisationSolution) -> Plot:
    """Plot the share of the budget, and beneath it noise over signal, by popularity, one series per scheme."""
    adaptive, uniform = solution.find_shares(Scheme.ADAPTIVE), solution.find_shares(Scheme.UNIFORM)
    disclosure, epsilon = solution.table.disclosure, solution.parameters.epsilon
    columns: dict[str, npt.ArrayLike] = {
        "bucket": list(BUCKET_NAMES),
        "fewest_ratings": [low for low, _ in solution.table.spreads],
        "most_ratings": [high for _, high in solution.table.spreads],
    }
    bars: list[Item] = []
    noise: list[Item] = []
    for scheme_shares in solution.shares:
        share, ratio = (
            f"share_{scheme_shares.scheme.value}",
            f"noise_over_signal_{scheme_shares.scheme.value}",
        )
        columns |= {share: scheme_shares.shares, ratio: scheme_shares.noise_to_signal}
        name, style = SCHEME_NAMES[scheme_shares.scheme], SCHEME_STYLES[scheme_shares.scheme]
        bars.append(Bars(name, "label", share, style["style"], opacity=0.8))
        noise.append(Curve(name, "label", ratio, **style))
    # Of uniform sampling, whose weights do not depend on epsilon: the axis stays put while epsilon moves.
    noise_over_weight = uniform.noise * epsilon / np.maximum(uniform.weight, 1e-3)
    limits = (
        float(noise_over_weight.min()) / max(AXIS_MAX_EPSILON, epsilon),
        float(noise_over_weight.max()) / min(AXIS_MIN_EPSILON, epsilon),
    )
    labels = {"label": label_buckets(solution.table.spreads)}
    over_signal = Axis("noise over signal", "", _round_to_decades(limits))
    noise_plot = Plot(
        "factorisation-noise",
        "Noise over signal",
        "",
        _bucket_axis(),
        over_signal,
        columns,
        (*noise, Level("Noise = signal", 1.0, dash="dash")),
        disclosure,
        guides=labels,
    )
    return Plot(
        "factorisation-shares",
        "Who gets the budget",
        f"The most popular fifth of items gets {wording.percent(float(uniform.shares[-1]))} of the budget under "
        f"uniform sampling and {wording.percent(float(adaptive.shares[-1]))} under adaptive weights; noise over signal "
        "falls from rare to popular items.",
        _bucket_axis(),
        Axis("share of the budget", "", (0.0, 1.0), Scale.PERCENT, number_format=".1%"),
        columns,
        tuple(bars),
        disclosure,
        guides=labels,
        is_main=True,
        lower_plot=noise_plot,
        lower_share=0.46,
    )


def _round_to_decades(limits: tuple[float, float]) -> tuple[float, float]:
    """Round limits to whole decades, so that a small change of the ratings does not move the axis."""
    low, high = limits
    return float(10.0 ** np.floor(np.log10(low))), float(10.0 ** np.ceil(np.log10(high)))


# --- error over epsilon -------------------------------------------------------------------------------------


def plot_errors(result: StudyResult, disclosure: Provenance, page_epsilon: float | None = None) -> Plot:
    """Plot test error over epsilon: private models with intervals, baselines as levels, and the entered epsilon."""
    epsilons = np.array(result.study.epsilons)
    limits = float(epsilons.min()) / 1.5, float(epsilons.max()) * 1.5
    columns: dict[str, npt.ArrayLike] = {"epsilon": epsilons}
    guides: dict[str, npt.ArrayLike] = {"across": list(limits)}
    items: list[Item] = []
    for model in ModelKind:
        mean, half_width = (values[:, 0] for values in result.summarise(model))
        name = model.name.lower()
        columns |= {f"rmse_{name}": mean, f"half_interval_{name}": half_width}
        if not np.isfinite(mean).any():
            continue
        if model.is_private:
            spread = np.nan_to_num(half_width)
            guides |= {f"low_{name}": mean - spread, f"high_{name}": mean + spread}
            interval: dict[str, Any] = {"low": f"low_{name}", "high": f"high_{name}"}
            items.append(Curve(model.value, "epsilon", f"rmse_{name}", **MODEL_STYLES[model], **interval))
        else:
            guides[f"level_{name}"] = [float(mean[0])] * 2
            items.append(Curve(model.value, "across", f"level_{name}", **MODEL_STYLES[model]))
    if page_epsilon is not None and limits[0] <= page_epsilon <= limits[1]:
        items.append(Level("Your ε", page_epsilon, is_vertical=True, dash="longdash"))
    ticks = tuple((float(epsilon), wording.entered(float(epsilon))) for epsilon in epsilons)
    return Plot(
        "factorisation-errors",
        "Test error over ε",
        f"At the largest ε, {_name_best(result)} has the smallest error of the private models; all errors "
        "fall as ε grows.",
        Axis("privacy budget ε", "", limits, named_ticks=ticks),
        Axis("test error (RMSE)", scale=Scale.LINEAR, number_format=".4f"),
        columns,
        tuple(items),
        disclosure,
        guides=guides,
        is_main=True,
    )


def _name_best(result: StudyResult) -> str:
    """Name the private model of the smallest error at the largest trained epsilon."""
    errors = {model_kind: result.summarise(model_kind)[0][:, 0] for model_kind in (*MEANS, *SCHEMES)}
    trained = [
        index
        for index in range(len(result.study.epsilons))
        if np.isfinite([errors_of_model[index] for errors_of_model in errors.values()]).all()
    ]
    if not trained:
        return "no model"
    return min(errors, key=lambda model_kind: float(errors[model_kind][trained[-1]])).value


# --- rare and popular items ---------------------------------------------------------------------------------


def plot_buckets(solution: FactorisationSolution, recall: bool = False) -> Plot:
    """Plot differences to uniform sampling by popularity, paired by seed, at the nearest trained epsilon."""
    result, epsilon_index = solution.result, solution.epsilon_index
    assert result is not None
    assert epsilon_index is not None
    columns: dict[str, npt.ArrayLike] = {"items": ["All", *BUCKET_NAMES]}
    guides: dict[str, npt.ArrayLike] = {"label": ["All<br>items", *label_buckets(solution.table.spreads)]}
    items: list[Item] = []
    for model in (ModelKind.TAIL, ModelKind.ADAPTIVE):
        mean, half_width = (
            values[epsilon_index]
            for values in result.compare(model, ModelKind.UNIFORM, result.recall if recall else result.rmse)
        )
        name = model.name.lower()
        columns |= {f"difference_{name}": mean, f"half_interval_{name}": half_width}
        low, high = mean - np.nan_to_num(half_width), mean + np.nan_to_num(half_width)
        guides |= {f"low_{name}": low, f"high_{name}": high}
        items.append(
            Bars(
                model.value,
                "label",
                f"difference_{name}",
                MODEL_STYLES[model]["style"],
                low=f"low_{name}",
                high=f"high_{name}",
                opacity=0.8,
                hover_columns=(("half of the interval", f"half_interval_{name}"),),
            )
        )
    measure, better = ("recall", "above 0 is better") if recall else ("RMSE", "below 0 is better")
    rarest = float(np.asarray(columns["difference_adaptive"])[1])
    return Plot(
        f"factorisation-buckets-{'recall' if recall else 'rmse'}",
        f"{'Recall' if recall else 'Error'} against uniform sampling, rare to popular",
        f"On the rarest fifth of items adaptive weights change {measure} by {rarest:+.4f} against uniform sampling."
        if np.isfinite(rarest)
        else f"Differences of {measure} to uniform sampling by popularity.",
        _bucket_axis(f" (ε = {wording.entered(result.study.epsilons[epsilon_index])})"),
        Axis(
            f"difference of {measure}",
            scale=Scale.LINEAR,
            title=f"Difference of {measure} to uniform ({better})",
            number_format="+.4f",
        ),
        columns,
        tuple(items),
        solution.table.disclosure,
        guides=guides,
        is_main=True,
    )


# --- neighbours ---------------------------------------------------------------------------------------------


def compute_overlaps(result: StudyResult, epsilon_index: int) -> dict[ModelKind, FloatArray]:
    """Compute the mean share of an item's nearest items that the model without privacy has too, by bucket."""
    reference = result.models.get((ModelKind.NO_PRIVACY, 0.0))
    overlaps: dict[ModelKind, FloatArray] = {}
    if reference is None:
        return overlaps
    buckets = assign_buckets(result.train_counts)
    for model_kind in SCHEMES:
        model = result.models.get((model_kind, result.study.epsilons[epsilon_index]))
        if model is None or model.item_vectors.shape[1] < 2:
            continue
        item_overlaps = compute_overlap(model, reference, np.arange(buckets.size), NUM_NEAREST)
        overlaps[model_kind] = np.array(
            [item_overlaps[buckets == bucket].mean() for bucket in range(BUCKETS)]
        )
    return overlaps


def plot_nearest_items(solution: FactorisationSolution, overlaps: Mapping[ModelKind, FloatArray]) -> Plot:
    """Plot figure 11 of the paper: overlap of nearest items with the model without privacy, and by chance."""
    result, epsilon_index = solution.result, solution.epsilon_index
    assert result is not None
    assert epsilon_index is not None
    best = max((float(values.max()) for values in overlaps.values()), default=0.0)
    chance = min(NUM_NEAREST / max(result.train_counts.size - 1, 1), 1.0)
    columns: dict[str, npt.ArrayLike] = {"bucket": list(BUCKET_NAMES)}
    items: list[Item] = []
    for model, values in overlaps.items():
        column = f"overlap_{SCHEMES[model].value}"
        columns[column] = values
        items.append(Curve(SCHEME_NAMES[SCHEMES[model]], "label", column, **MODEL_STYLES[model]))
    return Plot(
        "factorisation-overlap",
        "Nearest items in common with the model without privacy",
        f"Of an item's {NUM_NEAREST} nearest items at most {wording.percent(best)} are those of the model "
        "without privacy; "
        f"chance alone gives {wording.percent(chance)}.",
        _bucket_axis(f" (ε = {wording.entered(result.study.epsilons[epsilon_index])})"),
        Axis(f"of the {NUM_NEAREST} nearest, in common", scale=Scale.PERCENT, number_format=".1%"),
        columns,
        (*items, Level("Chance", chance, dash="dash")),
        solution.table.disclosure,
        guides={"label": label_buckets(solution.table.spreads)},
        height=320,
    )
