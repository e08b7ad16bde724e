"""Plots of a recommender as data. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.answer import Axis, Bars, Column, Curve, Item, Level, Mark, Plot, Style
from dpcore.answer.plot import Toggle, linear_axis, names_axis, share_axis
from dpcore.common.privacy import Provenance
from dpcore.common.wording import capitalise, format_entered, format_number, format_percent
from dpcore.contributions import FloatArray
from dpcore.factorisation.allocation import Scheme
from dpcore.factorisation.answer import solution as solving
from dpcore.factorisation.answer import words
from dpcore.factorisation.answer.solution import FactorisationSolution
from dpcore.factorisation.ratings import NUM_BUCKETS, assign_buckets
from dpcore.factorisation.study import (
    FACTORISATION,
    RECALL_SIZE,
    SCHEME_BY_KIND,
    ModelKind,
    StudyResult,
    compare_neighbours,
)

CURVE_OPTIONS_BY_MODEL: dict[ModelKind, dict[str, Any]] = {
    ModelKind.UNIFORM: {"style": Style.ENTERED, "dash": "solid", "width": 2, "symbol": "square"},
    ModelKind.TAIL: {"style": Style.SAMPLING, "symbol": "triangle-up"},
    ModelKind.ADAPTIVE: {"style": Style.CAP, "symbol": "circle"},
    ModelKind.PRIVATE_MEAN: {"style": Style.SMOOTH, "dash": "dot", "width": 1.5, "symbol": "triangle-up"},
    ModelKind.PRIVATE_OFFSETS: {"style": Style.SMOOTH, "symbol": "triangle-up"},
    ModelKind.PRIVATE_POPULAR: {"style": Style.SMOOTH, "symbol": "triangle-up"},
    ModelKind.GLOBAL_MEAN: {"style": Style.CUSTOMARY, "dash": "dot"},
    ModelKind.POPULAR: {"style": Style.CUSTOMARY, "dash": "dot"},
    ModelKind.ITEM_MEAN: {"style": Style.CUSTOMARY, "dash": "dash"},
    ModelKind.NO_PRIVACY: {"style": Style.PRIVACY},
}
BUCKET_NAMES = ("Rarest", "2nd fifth", "Middle", "4th fifth", "Most rated")
NUM_NEAREST = 20
"""As in the paper."""
AXIS_MIN_EPSILON, AXIS_MAX_EPSILON = 0.2, 20.0
"""The axis of noise over signal fits the noise between them, and stays while epsilon moves."""


def build_plots(solution: FactorisationSolution) -> dict[str, Callable[[], Plot]]:
    """Build functions that make the plots, by key; before a training there is the plot of shares alone."""
    plot_makers: dict[str, Callable[[], Plot]] = {"factorisation-shares": lambda: plot_shares(solution)}
    if (baseline_comparison := solution.baseline_comparison) is None:
        return plot_makers
    epsilon = solution.parameters.epsilon
    return {
        "factorisation-errors": lambda: plot_over_epsilon(
            baseline_comparison.result, solution.disclosure, epsilon
        ),
        **plot_makers,
        "factorisation-buckets-rmse": lambda: plot_buckets(solution, "rmse"),
        "factorisation-buckets-recall": lambda: plot_buckets(solution, "recall"),
    }


def label_buckets(count_ranges: Sequence[tuple[int, int]]) -> list[str]:
    """Write the labels of the axis of buckets, each with the fewest and the most ratings of its items."""
    return [
        f"{bucket_name}<br>{format_number(fewest_ratings)}–{format_number(most_ratings)}"
        for bucket_name, (fewest_ratings, most_ratings) in zip(BUCKET_NAMES, count_ranges, strict=True)
    ]


def _bucket_axis(axis_title_suffix: str = "") -> Axis:
    """Build the axis of buckets of items, whose title ends with a text such as `` (ε = 1)``."""
    return names_axis("ratings", f"Fifths of the items, by ratings{axis_title_suffix}")


def plot_shares(solution: FactorisationSolution) -> Plot:
    """Plot the main figure before a training: share of the budget and noise over signal, by popularity and scheme."""
    uniform_shares = solution.find_shares(Scheme.UNIFORM)
    popular_text_by_scheme = {
        s.scheme: format_percent(float(s.bucket_shares[-1])) for s in solution.budget_shares
    }
    disclosure, epsilon = solution.disclosure, solution.parameters.epsilon
    file_columns: dict[str, npt.ArrayLike] = {
        "bucket": list(BUCKET_NAMES),
        **dict(zip(("fewest_ratings", "most_ratings"), np.transpose(solution.count_ranges), strict=True)),
    }
    labels = label_buckets(solution.count_ranges)
    share_bars: list[Item] = []
    noise_curves: list[Item] = []
    for shares_of_scheme in solution.budget_shares:
        scheme, bucket_shares = shares_of_scheme.scheme, shares_of_scheme.bucket_shares
        scheme_name, style_options = (
            words.NAME_BY_SCHEME[scheme],
            CURVE_OPTIONS_BY_MODEL[ModelKind[scheme.name]],
        )
        file_columns[f"share_{scheme.value}"] = bucket_shares
        file_columns[f"noise_over_signal_{scheme.value}"] = shares_of_scheme.noise_to_signal
        share_bars.append(Bars(scheme_name, labels, bucket_shares, style_options["style"], opacity=0.8))
        noise_curves.append(Curve(scheme_name, labels, shares_of_scheme.noise_to_signal, **style_options))
    # Uniform sampling at ε = 1, whose weights do not depend on epsilon: the axis stays put while epsilon moves.
    uniform_ratios = uniform_shares.noise_std * epsilon / np.maximum(uniform_shares.mean_weight_sums, 1e-3)
    lowest_log = np.log10(uniform_ratios.min() / max(AXIS_MAX_EPSILON, epsilon))
    highest_log = np.log10(uniform_ratios.max() / min(AXIS_MIN_EPSILON, epsilon))
    # Whole decades, so that a small change of the ratings does not move the axis.
    axis_limits = float(10.0 ** np.floor(lowest_log)), float(10.0 ** np.ceil(highest_log))
    noise_plot = Plot(
        "factorisation-noise",
        "Noise over signal",
        "",
        _bucket_axis(),
        Axis("noise over signal", "", axis_limits),
        (*noise_curves, Level("Noise = signal", 1.0, dash="dash")),
        disclosure,
    )
    return Plot(
        "factorisation-shares",
        "Who gets the budget",
        f"The most popular fifth of items gets {popular_text_by_scheme[Scheme.UNIFORM]} of the budget under uniform "
        f"sampling, {popular_text_by_scheme[Scheme.ADAPTIVE]} under adaptive weights.",
        _bucket_axis(),
        share_axis("share of the budget", (0.0, 1.0), number_format=".1%"),
        share_bars,
        disclosure,
        file_columns,
        is_main=True,
        lower_plot=noise_plot,
        lower_height_share=0.46,
    )


def plot_over_epsilon(result: StudyResult, disclosure: Provenance, page_epsilon: float | None = None) -> Plot:
    """Plot error or recall over epsilon: private models with intervals, the others as levels.

    ``page_epsilon`` gets a vertical line if it lies within the axis.
    """
    measure_name, epsilons = result.study.main_measure, np.array(result.study.epsilons)
    epsilon_ticks = tuple((epsilon, format_entered(epsilon)) for epsilon in result.study.epsilons)
    axis_limits = float(epsilons.min()) / 1.5, float(epsilons.max()) * 1.5
    epsilon_axis = Axis("privacy budget ε", "", axis_limits, named_ticks=epsilon_ticks)
    file_columns: dict[str, npt.ArrayLike] = {"epsilon": epsilons}
    plot_items: list[Item] = []
    for model_kind in result.study.model_kinds:
        summary, options = result.summarise(model_kind), CURVE_OPTIONS_BY_MODEL[model_kind]
        column_name = model_kind.name.lower()
        means, half_widths = summary.means[:, 0], summary.half_widths[:, 0]
        if not np.isfinite(means).any():
            continue
        file_columns |= {f"{measure_name}_{column_name}": means, f"half_interval_{column_name}": half_widths}
        if model_kind.is_private:
            lows, highs = _compute_interval_ends(means, half_widths)
            label = capitalise(words.SHORT_NAME_BY_KIND.get(model_kind, ""))
            plot_items.append(
                Curve(
                    model_kind.value, epsilons, means, low_ends=lows, high_ends=highs, label=label, **options
                )
            )
        else:
            plot_items.append(Curve(model_kind.value, axis_limits, [float(means[0])] * 2, **options))
    if page_epsilon is not None and epsilon_axis.contains(page_epsilon):
        plot_items.append(Level("Your ε", page_epsilon, is_vertical=True, dash="longdash"))
        baseline_comparison = solving.find_baseline_comparison(result, page_epsilon)
        if baseline_comparison is not None and baseline_comparison.is_clear:
            best_kind = FACTORISATION if baseline_comparison.is_worth_it else result.study.baseline
            recommended_score = baseline_comparison.find_measure(best_kind)[0]
            style = CURVE_OPTIONS_BY_MODEL[best_kind]["style"]
            plot_items.append(
                Mark(
                    "Better at your ε", baseline_comparison.epsilon, recommended_score, style, label="Better"
                )
            )
    shown_kinds = (result.study.baseline, FACTORISATION, ModelKind.NO_PRIVACY)
    hidden_names = tuple(kind.value for kind in result.study.model_kinds if kind not in shown_kinds)
    plot_key, title_start, axis_name, number_format = {
        "rmse": ("factorisation-errors", "Test error", "test error (RMSE; lower is better)", ".4f"),
        "recall": ("factorisation-recall", f"Recall at {RECALL_SIZE}", f"recall at {RECALL_SIZE}", ".3f"),
    }[measure_name]
    return Plot(
        plot_key,
        f"{title_start} over ε",
        words.write_comparison(result, float(epsilons[-1])).replace("**", ""),
        epsilon_axis,
        linear_axis(axis_name, number_format=number_format),
        plot_items,
        disclosure,
        file_columns,
        is_main=measure_name == "rmse",
        toggles=(Toggle("Other models", hidden_names),),
    )


def _compute_interval_ends(means: FloatArray, half_widths: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the lower and the upper ends of intervals, in the shape of the means; the mean for a half-width of NaN."""
    return means - np.nan_to_num(half_widths), means + np.nan_to_num(half_widths)


def plot_buckets(solution: FactorisationSolution, measure_name: str) -> Plot:
    """Plot how far "rmse" or "recall" of tail sampling and adaptive weights is from uniform sampling's, by popularity.

    Differences are paired by seed.
    """
    baseline_comparison = solution.baseline_comparison
    assert baseline_comparison is not None
    file_columns: dict[str, npt.ArrayLike] = {"items": ["All", *BUCKET_NAMES]}
    labels, plot_items = ["All<br>items", *label_buckets(solution.count_ranges)], list[Item]()
    for kind in (ModelKind.TAIL, ModelKind.ADAPTIVE):
        summary = baseline_comparison.result.compare(kind, ModelKind.UNIFORM, measure_name)
        epsilon_index = baseline_comparison.epsilon_index
        means, half_widths = summary.means[epsilon_index], summary.half_widths[epsilon_index]
        file_columns[f"difference_{kind.name.lower()}"] = means
        file_columns[f"half_interval_{kind.name.lower()}"] = half_widths
        style, hover = CURVE_OPTIONS_BY_MODEL[kind]["style"], (("half of the interval", half_widths),)
        lows, highs = _compute_interval_ends(means, half_widths)
        plot_items.append(
            Bars(kind.value, labels, means, style, lows, highs, opacity=0.8, hover_numbers=hover)
        )
    measure_phrase, title_word, better_phrase = {
        "rmse": ("RMSE", "Error", "below 0 is better"),
        "recall": ("recall", "Recall", "above 0 is better"),
    }[measure_name]
    plot_title = f"{title_word} against uniform sampling, rare to popular"
    return Plot(
        f"factorisation-buckets-{measure_name}",
        plot_title,
        plot_title,
        _bucket_axis(f" (ε = {format_entered(baseline_comparison.epsilon)})"),
        linear_axis(
            f"difference of {measure_phrase}",
            title=f"Difference of {measure_phrase} to uniform ({better_phrase})",
            number_format="+.4f",
        ),
        plot_items,
        solution.disclosure,
        file_columns,
        is_main=True,
    )


def plot_nearest_items(solution: FactorisationSolution) -> Plot | None:
    """Plot figure 11 of the paper: overlap of nearest items with the model without privacy, and by chance.

    Returns:
        None if no private model can be compared: it, or the one without privacy, is missing, or has only the level.
    """
    baseline_comparison = solution.baseline_comparison
    assert baseline_comparison is not None
    result = baseline_comparison.result
    reference_model = result.first_seed_models.get((ModelKind.NO_PRIVACY, 0.0))
    buckets = assign_buckets(result.item_train_counts)
    labels, largest_overlap, plot_items = label_buckets(solution.count_ranges), 0.0, list[Item]()
    for model_kind, scheme in SCHEME_BY_KIND.items():
        model = result.first_seed_models.get((model_kind, baseline_comparison.epsilon))
        if reference_model is None or model is None or model.item_vectors.shape[1] < 2:
            continue
        vectors = model.coordinates_without_level
        reference_vectors = reference_model.coordinates_without_level
        item_overlaps = compare_neighbours(vectors, reference_vectors, np.arange(buckets.size), NUM_NEAREST)
        # Of fewer than five items some buckets are empty.
        bucket_masks = (buckets == bucket for bucket in range(NUM_BUCKETS))
        bucket_overlaps = np.array(
            [item_overlaps[mask].mean() if mask.any() else np.nan for mask in bucket_masks]
        )
        largest_overlap = max(largest_overlap, float(np.nanmax(bucket_overlaps)))
        overlap_column = Column(f"overlap_{scheme.value}", bucket_overlaps)
        plot_items.append(
            Curve(words.NAME_BY_SCHEME[scheme], labels, overlap_column, **CURVE_OPTIONS_BY_MODEL[model_kind])
        )
    if not plot_items:
        return None
    chance_overlap = min(NUM_NEAREST / max(result.item_train_counts.size - 1, 1), 1.0)
    return Plot(
        "factorisation-overlap",
        "Nearest items in common with the model without privacy",
        f"At most {format_percent(largest_overlap)} in common; by chance {format_percent(chance_overlap)}.",
        _bucket_axis(f" (ε = {format_entered(baseline_comparison.epsilon)})"),
        share_axis(f"of the {NUM_NEAREST} nearest, in common", number_format=".1%"),
        (*plot_items, Level("Chance", chance_overlap, dash="dash")),
        solution.disclosure,
        {"bucket": list(BUCKET_NAMES)},
        height=320,
    )
