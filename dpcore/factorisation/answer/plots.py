"""Plots of a recommender as data, and what a training on implicit feedback recommends. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.answer import (
    Axis,
    Bars,
    Column,
    Curve,
    Item,
    Level,
    Plot,
    Style,
    linear_axis,
    names_axis,
    share_axis,
)
from dpcore.common import wording
from dpcore.common.privacy import Provenance
from dpcore.contributions import FloatArray
from dpcore.factorisation.allocation import Scheme
from dpcore.factorisation.answer.solution import MIN_SEEDS, FactorisationSolution
from dpcore.factorisation.answer.words import FEW_SEEDS, SCHEME_NAMES
from dpcore.factorisation.implicit_study import RECOMMENDERS, ImplicitResult, Recommender
from dpcore.factorisation.measures import BUCKETS, RECALL_SIZE, assign_buckets, compute_overlap
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
        "factorisation-errors": lambda: plot_errors(result, solution.disclosure, solution.parameters.epsilon),
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
    return names_axis("ratings", f"Fifths of the items, by ratings{suffix}")


def build_epsilon_axis(epsilons: FloatArray) -> Axis:
    """Build the axis of the epsilons of a study, each of them with a tick."""
    ticks = tuple((float(epsilon), wording.entered(float(epsilon))) for epsilon in epsilons)
    limits = float(epsilons.min()) / 1.5, float(epsilons.max()) * 1.5
    return Axis("privacy budget ε", "", limits, named_ticks=ticks)


def build_model_curve(
    model: ModelKind | Recommender,
    epsilons: FloatArray,
    mean: FloatArray,
    half_width: FloatArray,
    **style: Any,
) -> Curve:
    """Build the curve of a model over epsilon, with intervals; one without privacy is a line across."""
    if not model.is_private:
        return Curve(model.value, build_epsilon_axis(epsilons).limits, [float(mean[0])] * 2, **style)
    spread = np.nan_to_num(half_width)
    return Curve(model.value, epsilons, mean, low=mean - spread, high=mean + spread, **style)


# --- who gets the budget ------------------------------------------------------------------------------------


def plot_shares(solution: FactorisationSolution) -> Plot:
    """Plot the share of the budget, and beneath it noise over signal, by popularity, one series per scheme."""
    adaptive, uniform = solution.find_shares(Scheme.ADAPTIVE), solution.find_shares(Scheme.UNIFORM)
    disclosure, epsilon = solution.disclosure, solution.parameters.epsilon
    columns: dict[str, npt.ArrayLike] = {
        "bucket": list(BUCKET_NAMES),
        "fewest_ratings": [low for low, _ in solution.table.spreads],
        "most_ratings": [high for _, high in solution.table.spreads],
    }
    labels = label_buckets(solution.table.spreads)
    bars: list[Item] = []
    noise_curves: list[Item] = []
    for shares in solution.shares:
        name, style = SCHEME_NAMES[shares.scheme], SCHEME_STYLES[shares.scheme]
        columns[f"share_{shares.scheme.value}"] = shares.shares
        columns[f"noise_over_signal_{shares.scheme.value}"] = shares.noise_to_signal
        bars.append(Bars(name, labels, shares.shares, style["style"], opacity=0.8))
        noise_curves.append(Curve(name, labels, shares.noise_to_signal, **style))
    # Of uniform sampling, whose weights do not depend on epsilon: the axis stays put while epsilon moves.
    noise_over_weight = uniform.noise * epsilon / np.maximum(uniform.weight, 1e-3)
    limits = (
        float(noise_over_weight.min()) / max(AXIS_MAX_EPSILON, epsilon),
        float(noise_over_weight.max()) / min(AXIS_MIN_EPSILON, epsilon),
    )
    noise_plot = Plot(
        "factorisation-noise",
        "Noise over signal",
        "",
        _bucket_axis(),
        Axis("noise over signal", "", _round_to_decades(limits)),
        (*noise_curves, Level("Noise = signal", 1.0, dash="dash")),
        disclosure,
    )
    return Plot(
        "factorisation-shares",
        "Who gets the budget",
        f"The most popular fifth of items gets {wording.percent(float(uniform.shares[-1]))} of the budget under "
        f"uniform sampling and {wording.percent(float(adaptive.shares[-1]))} under adaptive weights; noise over signal "
        "falls from rare to popular items.",
        _bucket_axis(),
        share_axis("share of the budget", (0.0, 1.0), number_format=".1%"),
        bars,
        disclosure,
        columns,
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
    epsilon_axis, columns = build_epsilon_axis(epsilons), dict[str, npt.ArrayLike](epsilon=epsilons)
    items: list[Item] = []
    for model in ModelKind:
        mean, half_width = (values[:, 0] for values in result.summarise(model))
        name = model.name.lower()
        columns |= {f"rmse_{name}": mean, f"half_interval_{name}": half_width}
        if np.isfinite(mean).any():
            items.append(build_model_curve(model, epsilons, mean, half_width, **MODEL_STYLES[model]))
    if page_epsilon is not None and epsilon_axis.contains(page_epsilon):
        items.append(Level("Your ε", page_epsilon, is_vertical=True, dash="longdash"))
    return Plot(
        "factorisation-errors",
        "Test error over ε",
        f"At the largest ε, {_name_best(result)} has the smallest error of the private models; all errors "
        "fall as ε grows.",
        epsilon_axis,
        linear_axis("test error (RMSE)", number_format=".4f"),
        items,
        disclosure,
        columns,
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
    labels, items = ["All<br>items", *label_buckets(solution.table.spreads)], list[Item]()
    for model in (ModelKind.TAIL, ModelKind.ADAPTIVE):
        mean, half_width = (
            values[epsilon_index]
            for values in result.compare(model, ModelKind.UNIFORM, result.recall if recall else result.rmse)
        )
        columns[f"difference_{model.name.lower()}"] = mean
        columns[f"half_interval_{model.name.lower()}"] = half_width
        spread, style = np.nan_to_num(half_width), MODEL_STYLES[model]["style"]
        hover = (("half of the interval", half_width),)
        items.append(
            Bars(model.value, labels, mean, style, mean - spread, mean + spread, opacity=0.8, hover=hover)
        )
    measure, better = ("recall", "above 0 is better") if recall else ("RMSE", "below 0 is better")
    rarest = float(np.asarray(columns["difference_adaptive"])[1])
    title = f"Difference of {measure} to uniform ({better})"
    return Plot(
        f"factorisation-buckets-{'recall' if recall else 'rmse'}",
        f"{'Recall' if recall else 'Error'} against uniform sampling, rare to popular",
        f"On the rarest fifth of items adaptive weights change {measure} by {rarest:+.4f} against uniform sampling."
        if np.isfinite(rarest)
        else f"Differences of {measure} to uniform sampling by popularity.",
        _bucket_axis(f" (ε = {wording.entered(result.study.epsilons[epsilon_index])})"),
        linear_axis(f"difference of {measure}", title=title, number_format="+.4f"),
        items,
        solution.disclosure,
        columns,
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
    labels = label_buckets(solution.table.spreads)
    items: list[Item] = [
        Curve(
            SCHEME_NAMES[SCHEMES[model]],
            labels,
            Column(f"overlap_{SCHEMES[model].value}", values),
            **MODEL_STYLES[model],
        )
        for model, values in overlaps.items()
    ]
    return Plot(
        "factorisation-overlap",
        "Nearest items in common with the model without privacy",
        f"Of an item's {NUM_NEAREST} nearest items at most {wording.percent(best)} are those of the model "
        "without privacy; "
        f"chance alone gives {wording.percent(chance)}.",
        _bucket_axis(f" (ε = {wording.entered(result.study.epsilons[epsilon_index])})"),
        share_axis(f"of the {NUM_NEAREST} nearest, in common", number_format=".1%"),
        (*items, Level("Chance", chance, dash="dash")),
        solution.disclosure,
        {"bucket": list(BUCKET_NAMES)},
        height=320,
    )


# --- implicit feedback ---------------------------------------------------------------------------------------


RECOMMENDER_STYLES: dict[Recommender, dict[str, Any]] = {
    Recommender.UNIFORM: {"style": Style.ENTERED, "dash": "solid", "width": 2, "symbol": "square"},
    Recommender.TAIL: {"style": Style.SAMPLING, "symbol": "triangle-up"},
    Recommender.ADAPTIVE: {"style": Style.CAP, "symbol": "circle"},
    Recommender.PRIVATE_POPULAR: {"style": Style.SMOOTH, "symbol": "diamond"},
    Recommender.POPULAR: {"style": Style.CUSTOMARY, "dash": "dot"},
    Recommender.NO_PRIVACY: {"style": Style.PRIVACY},
}
BASELINE, FACTORISATION = Recommender.PRIVATE_POPULAR, Recommender.ADAPTIVE
"""What the sentence compares, declared before any training: one comparison, so that its interval is what it says."""


def plot_recall(result: ImplicitResult, disclosure: Provenance) -> Plot:
    """Plot recall over epsilon, private models with intervals, and models without privacy as levels."""
    epsilons = np.array(result.study.epsilons)
    columns: dict[str, npt.ArrayLike] = {"epsilon": epsilons}
    curves = []
    for model in RECOMMENDERS:
        summary, name = result.summarise(model), model.name.lower()
        mean, half_width = summary.mean[:, 0], summary.half_width[:, 0]
        if np.isfinite(mean).any():
            columns |= {f"recall_{name}": mean, f"half_interval_{name}": half_width}
            curves.append(build_model_curve(model, epsilons, mean, half_width, **RECOMMENDER_STYLES[model]))
    return Plot(
        "factorisation-recall",
        f"Recall at {RECALL_SIZE} over ε",
        write_recommendation(result, float(epsilons[-1])).replace("**", ""),
        build_epsilon_axis(epsilons),
        linear_axis(f"recall at {RECALL_SIZE}", number_format=".3f"),
        curves,
        disclosure,
        columns,
    )


def write_recommendation(result: ImplicitResult, epsilon: float) -> str:
    """Say whether a factorisation recommends better than popularity, at the trained epsilon nearest to one."""
    is_trained = np.isfinite(result.compare(FACTORISATION, BASELINE).mean[:, 0])
    if not is_trained.any():
        return "Nothing is trained yet that could be compared."
    trained = [index for index in range(is_trained.size) if is_trained[index]]
    index = min(trained, key=lambda candidate: abs(math.log(result.study.epsilons[candidate] / epsilon)))
    difference = result.compare(FACTORISATION, BASELINE)
    gain, half_width, seeds = (
        float(difference.mean[index, 0]),
        float(difference.half_width[index, 0]),
        int(difference.runs[index, 0]),
    )
    factorisation_recall, baseline_recall = (
        float(result.summarise(model).mean[index, 0]) for model in (FACTORISATION, BASELINE)
    )
    spread = f" ± {half_width:.3f}" if math.isfinite(half_width) else ""
    difference_text = f"a difference of {gain:+.3f}{spread}".replace("-", "−")
    comparison = f"{factorisation_recall:.3f} against {baseline_recall:.3f}, {difference_text}"
    opening = f"At ε = {wording.entered(result.study.epsilons[index])}"
    if seeds < MIN_SEEDS or not abs(gain) > half_width:
        hint = "" if seeds >= MIN_SEEDS else f" {FEW_SEEDS}"
        return (
            f"{opening} it is **not clear** whether factorising recommends better than what is popular: "
            f"{comparison}.{hint}"
        )
    if gain > 0.0:
        return f"{opening}, **factorise with adaptive weights**: it recalls more than what is popular, {comparison}."
    return (
        f"{opening}, **recommend what is popular**, by noisy counts: factorising recalls less, {comparison}."
    )
