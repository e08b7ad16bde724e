"""The solution for a recommender in words: sentences, numbers, the methods section."""

from __future__ import annotations

import math

import numpy as np

from dpcore.answer.answer import NOT_USEFUL_ABOVE, Number, RelativeError
from dpcore.answer.methods import Methods, write_guarantee
from dpcore.code.forms import FILE_ROW_FIELDS, OfferedPrograms, build_forms, list_data_fields
from dpcore.code.release_spec import Quantity
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Neighbours
from dpcore.common.strict_json import finite_or_none
from dpcore.common.wording import (
    PERCENT,
    capitalise,
    format_count,
    format_entered,
    format_number,
    format_percent,
)
from dpcore.dataset import Dataset
from dpcore.factorisation.allocation import Scheme
from dpcore.factorisation.answer import solution as solving
from dpcore.factorisation.answer.solution import MIN_SEEDS, BaselineComparison, FactorisationSolution
from dpcore.factorisation.parameters import Algorithm
from dpcore.factorisation.studies import PRIVATE_KINDS, RatingStudy
from dpcore.factorisation.study import FACTORISATION, ModelKind, StudyResult
from dpcore.report.content import Line, summarise_dataset

NAME_BY_SCHEME = {scheme: scheme.value.capitalize() for scheme in Scheme}
ASSUMPTIONS = (
    "Neighbouring data differ in one user, with all their ratings",
    "The release has item vectors and noisy counts. Each user computes their vector, offset and predictions locally; "
    "these are private for everybody else (joint differential privacy)",
    "The range of ratings, the list of items, d, T, k, μ and both ridges are public; ε does not cover their choice",
    "Errors and buckets are computed without noise: they are not part of the release",
    "The noise is simulated in floating point, without protection against attacks on its low bits",
)
BASELINE_BY_MEASURE = {
    "rmse": ("item means", "release item means"),
    "recall": ("the most popular items", "recommend the most popular items"),
}
"""By measure: the rival, and what to do if it wins."""
SHORT_NAME_BY_KIND = {FACTORISATION: "factorisation", RatingStudy.baseline: "item means"}
FEW_SEEDS_SENTENCE = f"Train at least {MIN_SEEDS} seeds for a clear answer."
NEAR_OPTIMAL_SHARE = 0.01
"""Relative excess of a near-optimal error."""


def write_headline(solution: FactorisationSolution) -> str:
    """Write how noisy the rarest items will be or, after a training, whether a factorisation is worth it."""
    if (baseline_comparison := solution.baseline_comparison) is not None:
        return write_verdict(baseline_comparison)
    rarest_noise_ratio = float(solution.find_shares(Scheme.ADAPTIVE).noise_to_signal[0])
    if not math.isfinite(rarest_noise_ratio):
        return "Not trained yet."
    return f"Not trained yet: noise on the rarest items is {format_number(rarest_noise_ratio, 2)} times their signal."


def write_verdict(baseline_comparison: BaselineComparison) -> str:
    """Write whether a factorisation is worth it, in one sentence."""
    baseline_phrase, alternative_phrase = BASELINE_BY_MEASURE[baseline_comparison.result.study.main_measure]
    opening_phrase = f"At ε = {format_entered(baseline_comparison.epsilon)}"
    if baseline_comparison.is_worth_it:
        return f"{opening_phrase}, release a factorisation: it predicts better than {baseline_phrase}."
    if baseline_comparison.is_worse:
        return f"{opening_phrase}, {alternative_phrase}: they predict better than a factorisation."
    return f"{opening_phrase} it is not clear whether a factorisation predicts better than {baseline_phrase}."


def write_comparison(result: StudyResult, epsilon: float) -> str:
    """Write whether a factorisation is worth it at the nearest trained epsilon; for choices with both recalls.

    It says so if nothing is trained yet.
    """
    baseline_comparison = solving.find_baseline_comparison(result, epsilon)
    if baseline_comparison is None:
        return "Nothing is trained yet."
    if result.study.main_measure == "rmse":
        return write_verdict(baseline_comparison)
    difference_text = _add_interval(
        f"{baseline_comparison.gain:+.3f}".replace("-", "−"), baseline_comparison.gain_half_width, 3
    )
    factorisation_recall = baseline_comparison.factorisation_score
    seeds_sentence = "" if baseline_comparison.num_seeds >= MIN_SEEDS else f" {FEW_SEEDS_SENTENCE}"
    return (
        f"**{write_verdict(baseline_comparison)}** Recall is {factorisation_recall:.3f} against "
        f"{factorisation_recall - baseline_comparison.gain:.3f}, a difference of {difference_text}.{seeds_sentence}"
    )


def write_detail(solution: FactorisationSolution) -> str:
    """Write the sentences that explain the headline: budget of rare items or, after a training, how much it gains."""
    if (baseline_comparison := solution.baseline_comparison) is None:
        adaptive_percent, uniform_percent = (
            format_percent(solution.find_shares(scheme).bucket_shares[:3].sum())
            for scheme in (Scheme.ADAPTIVE, Scheme.UNIFORM)
        )
        shares_phrase = f"{adaptive_percent} of the budget, uniform sampling {uniform_percent}"
        return f"Adaptive weights give the rarest three fifths of items {shares_phrase}."
    difference_text = _add_interval(
        f"{abs(baseline_comparison.gain):.4f}", baseline_comparison.gain_half_width
    )
    direction_word = "better" if baseline_comparison.gain > 0.0 else "worse"
    detail_sentences = [f"Factorising with adaptive weights is {difference_text} {direction_word}."]
    # It follows the sentence that every epsilon has, so that nothing moves when it appears.
    if not math.isclose(baseline_comparison.epsilon, solution.parameters.epsilon):
        detail_sentences.append(
            f"ε = {format_entered(baseline_comparison.epsilon)} is the nearest trained to yours."
        )
    if baseline_comparison.num_seeds < MIN_SEEDS:
        detail_sentences.append(FEW_SEEDS_SENTENCE)
    if not baseline_comparison.result.is_finished:
        detail_sentences.append("**The training is not finished.**")
    return " ".join(detail_sentences)


def build_numbers(solution: FactorisationSolution) -> tuple[Number, ...]:
    """Build the numbers of the answer: noise and, after a training, before it errors, interval and gains."""
    baseline_comparison, adaptive_shares = solution.baseline_comparison, solution.find_shares(Scheme.ADAPTIVE)
    count_noise_std = solution.parameters.spending.count_noise_std
    phrased_ratios = zip(("the rarest", "popular"), adaptive_shares.noise_to_signal[[0, -1]], strict=True)
    noise_numbers = (
        Number(
            "Noise s on each sum", format_number(adaptive_shares.noise_std), value=adaptive_shares.noise_std
        ),
        *(
            Number(
                f"Noise on {items_phrase} items",
                f"{format_number(noise_ratio, 2)}×",
                "the signal (adaptive)",
                value=finite_or_none(float(noise_ratio)),
            )
            for items_phrase, noise_ratio in phrased_ratios
        ),
        Number("Noise on each count", format_number(count_noise_std), value=count_noise_std),
    )
    if baseline_comparison is None:
        return noise_numbers
    recommended_kind = FACTORISATION if baseline_comparison.is_worth_it else RatingStudy.baseline
    rating_range = solution.parameters.rating_range
    best_error = float(baseline_comparison.result.summarise(ModelKind.NO_PRIVACY).means[0, 0])
    reference_numbers = [
        Number(capitalise(short_name), f"{score:.4f}", f"(without privacy {best_error:.3f})", value=score)
        for model_kind, short_name in reversed(SHORT_NAME_BY_KIND.items())
        if model_kind is FACTORISATION or baseline_comparison.is_worth_it
        for score in (baseline_comparison.find_measure(model_kind)[0],)
    ]
    recommended_error, half_width = baseline_comparison.find_measure(recommended_kind)
    interval_number = Number("Seeds", "only one", "so no interval")
    if math.isfinite(half_width):
        interval_name, interval_note = f"Interval, 95{PERCENT}", "over seeds and splits"
        interval_number = Number(interval_name, f"± {half_width:.4f}", interval_note, value=half_width)
    difference_summary = baseline_comparison.result.compare(ModelKind.ADAPTIVE, ModelKind.UNIFORM)
    bucket_differences = difference_summary.means[baseline_comparison.epsilon_index, 1:]
    rare_differences = bucket_differences[:3][np.isfinite(bucket_differences[:3])]
    differences_by_phrase = {
        f"rarest 60{PERCENT}": float(rare_differences.mean()) if rare_differences.size else math.nan,
        "most rated": float(bucket_differences[-1]),
    }
    return (
        Number(
            f"Test error (RMSE) of {SHORT_NAME_BY_KIND[recommended_kind]}",
            f"{recommended_error:.4f}",
            f"on ratings of {format_entered(rating_range.lowest)} to {format_entered(rating_range.highest)}",
            value=recommended_error,
        ),
        *reference_numbers,
        interval_number,
        *(
            Number(
                f"Adaptive, {items_phrase}",
                f"{difference:+.4f}".replace("-", "−") if math.isfinite(difference) else "none tested",
                "RMSE against uniform",
                value=finite_or_none(difference),
            )
            for items_phrase, difference in differences_by_phrase.items()
        ),
        *noise_numbers,
    )


def measure_relative_error(baseline_comparison: BaselineComparison | None) -> RelativeError | None:
    """Return the share of the possible gain that privacy costs the better model; None before all models are trained.

    Possible is what a factorisation without privacy gains over one mean for all items.
    """
    if baseline_comparison is None:
        return None
    mean_error, error_without_privacy = (
        float(baseline_comparison.result.summarise(model_kind).means[0, 0])
        for model_kind in (ModelKind.GLOBAL_MEAN, ModelKind.NO_PRIVACY)
    )
    gain = mean_error - error_without_privacy

    def compute_cost_share(trained: BaselineComparison) -> float:
        """Return the share that privacy costs at one trained epsilon; infinite if nothing can be gained."""
        model_error = trained.find_measure(FACTORISATION if trained.is_worth_it else RatingStudy.baseline)[0]
        return max(model_error - error_without_privacy, 0.0) / gain if gain > 0.0 else math.inf

    model_name = SHORT_NAME_BY_KIND[
        FACTORISATION if baseline_comparison.is_worth_it else RatingStudy.baseline
    ]
    cost_share, error_phrase = compute_cost_share(baseline_comparison), f"privacy costs {model_name}"
    baseline_comparisons = solving.list_baseline_comparisons(baseline_comparison.result)
    larger_comparisons = [c for c in baseline_comparisons if c.epsilon > baseline_comparison.epsilon]
    useful_comparison = next(
        (c for c in larger_comparisons if compute_cost_share(c) <= NOT_USEFUL_ABOVE), None
    )
    if cost_share > NOT_USEFUL_ABOVE and useful_comparison is not None:
        cost_text = format_percent(compute_cost_share(useful_comparison))
        error_phrase += f" {cost_text} at ε = {format_entered(useful_comparison.epsilon)}, but here"
    return RelativeError(cost_share, "the possible gain", error_phrase=error_phrase)


def build_facts(solution: FactorisationSolution) -> dict[str, str]:
    """Build the facts behind the answer, sentences by heading.

    On the budget before a training, on the models after it.
    """
    if (baseline_comparison := solution.baseline_comparison) is None:
        used_shares_phrase = "; ".join(
            f"{NAME_BY_SCHEME[scheme_shares.scheme].lower()} {format_percent(scheme_shares.used_share)}"
            for scheme_shares in solution.budget_shares
        )
        return {
            "Budget that is used": f"{used_shares_phrase}.",
            "Noise over signal": "above 1, an item's vector is mostly noise.",
        }
    errors_by_kind = {
        model_kind: baseline_comparison.find_measure(model_kind)[0] for model_kind in PRIVATE_KINDS
    }
    error_limit = min(errors_by_kind.values()) * (1.0 + NEAR_OPTIMAL_SHARE)
    near_optimal_names = [kind.value for kind, error in errors_by_kind.items() if error <= error_limit]
    baseline_comparisons = solving.list_baseline_comparisons(baseline_comparison.result)
    winning_epsilons_text = ", ".join(
        format_entered(c.epsilon) for c in baseline_comparisons if c.is_worth_it
    )
    winning_phrase = f"at ε = {winning_epsilons_text}" if winning_epsilons_text else "at no trained ε"
    return {
        "A factorisation clearly beats item means with own offsets": f"{winning_phrase}, of "
        f"{', '.join(format_entered(c.epsilon) for c in baseline_comparisons)}.",
        "Item means": "with each user's own offset, computed on their device and not released.",
        "Possible gain": "that of a factorisation without privacy over one mean for all items.",
        "Near-optimal": f"{', '.join(near_optimal_names)}: within 1{PERCENT} of the smallest error.",
        "Intervals": f"Student's at 95{PERCENT}; all models of a seed share its split and noise.",
    }


def _add_interval(mean_text: str, half_width: float, num_digits: int = 4) -> str:
    """Add half of an interval to a number in words, ``−0.0042 ± 0.0013``; without an interval, return the number."""
    return f"{mean_text} ± {half_width:.{num_digits}f}" if math.isfinite(half_width) else mean_text


def describe_ratings(solution: FactorisationSolution) -> str:
    """Write in a line how many users, items and ratings there are, and how many ratings items have."""
    ratings, count_ranges = solution.ratings, solution.count_ranges
    return (
        f"{format_count(ratings.num_users, 'user')}, {format_count(ratings.num_items, 'item')}, "
        f"{format_count(ratings.num_ratings, 'rating')}; {format_number(count_ranges[0][0])} to "
        f"{format_count(count_ranges[-1][1], 'rating')} per item."
    )


def summarise_ratings(solution: FactorisationSolution, dataset: Dataset | None) -> tuple[Line, ...]:
    """List the lines of a report on the ratings: what data they are, and how many users, items and ratings."""
    ratings, disclosure = solution.ratings, solution.disclosure
    data_lines = (
        [Line("Data", "generated ratings", disclosure)] if dataset is None else summarise_dataset(dataset)
    )
    counts_by_name = {"Users": ratings.num_users, "Items": ratings.num_items, "Ratings": ratings.num_ratings}
    count_lines = (
        Line(count_name, format_number(named_count), disclosure, number=named_count)
        for count_name, named_count in counts_by_name.items()
    )
    return (*data_lines, *count_lines)


def write_methods(solution: FactorisationSolution) -> Methods | None:
    """Write the methods text with the recommendation and its error; None before a training."""
    parameters, baseline_comparison = solution.parameters, solution.baseline_comparison
    if baseline_comparison is None:
        return None
    algorithm_phrase = "least squares on noisy sums [@chien2021]"
    if parameters.algorithm is not Algorithm.STATISTICS:
        bound_text, steps_text = (
            format_number(parameters.gradient_bound),
            format_count(parameters.steps, "step"),
        )
        algorithm_phrase = (
            f"{steps_text} a sweep along noisy gradients, of which a user's are shortened to {bound_text}"
        )
    learning_sentences = (
        f"Vectors of {parameters.dimension} entries were learned in {format_count(parameters.sweeps, 'sweep')} "
        f"[@krichene2023, algorithm 3] by {algorithm_phrase}; the squared weights of a user sum to at most "
        f"{parameters.max_items:,}. An item of noisy count n weighs n^−{format_number(parameters.exponent)}; counts "
        f"took {format_percent(parameters.count_share)} of the budget. The ridge of users was "
        f"{format_number(parameters.user_ridge)}. All releases are one Gaussian mechanism [@dong2022], calibrated "
        "exactly [@balle2018]."
    )
    recommended_kind = RatingStudy.baseline
    procedure_text = "Noisy means of the items' ratings were released; users add their own offsets locally."
    if baseline_comparison.is_worth_it:
        recommended_kind = FACTORISATION
        procedure_text = learning_sentences
    mean_rmse, rmse_half_width = baseline_comparison.find_measure(recommended_kind)
    runs_phrase = format_count(baseline_comparison.result.study.repeats, "simulated run")
    return Methods(
        # That of the training which the choice and its error come from, not the one entered since, if they differ.
        guarantee_text=write_guarantee(
            "A recommender was released",
            baseline_comparison.epsilon,
            Neighbours.ADD_OR_REMOVE_USER,
            parameters.delta,
        ),
        procedure=f"{procedure_text} The RMSE on ratings held out is "
        f"{_add_interval(f'{mean_rmse:.4f}', rmse_half_width)} ({runs_phrase}).",
        public_procedure=learning_sentences,
        disclosure=solution.disclosure,
        rule_sentence="A factorisation with adaptive weights was preferred to noisy item means with users' own offsets "
        "only if its error is lower by more than the interval.",
        subject_phrase="The choice",
    )


def choose_programs(solution: FactorisationSolution, dataset: Dataset | None) -> OfferedPrograms | None:
    """Return programs for DP item means; None if a training recommends a factorisation, which no library fits.

    Args:
        solution: The solution.
        dataset: The data that have the ratings; None if these were generated.
    """
    baseline_comparison = solution.baseline_comparison
    if baseline_comparison is not None and baseline_comparison.is_worth_it:
        return None
    parameters, rating_range = solution.parameters, solution.parameters.rating_range
    data_fields = (
        {"group_column": "item", "value_column": "rating"} if dataset is None else list_data_fields(dataset)
    )
    data_fields |= {"disclosure": solution.disclosure, "delta": parameters.delta} | FILE_ROW_FIELDS
    bound_fields = {
        "max_groups": parameters.max_items,
        "max_rows": 1,
        "noise": NoiseKind.GAUSSIAN,
        "lower": rating_range.lowest,
        "upper": rating_range.highest,
    }
    program_name = f"Item means, at most {format_count(parameters.max_items, 'item')}"
    return build_forms(parameters.epsilon, data_fields, [(program_name, Quantity.GROUP_MEANS, bound_fields)])
