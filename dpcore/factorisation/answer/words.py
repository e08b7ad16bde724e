"""The solution for a recommender in words: sentences, numbers, the methods section."""

from __future__ import annotations

import math

import numpy as np

from dpcore.answer.answer import Number
from dpcore.answer.methods import Methods, write_guarantee
from dpcore.code.choice import Quantity
from dpcore.code.forms import ROWS_OF_THE_FILE, CodeChoice, build_forms, list_data_fields
from dpcore.common import wording
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Neighbours
from dpcore.common.strict_json import finite_or_none
from dpcore.dataset import Dataset
from dpcore.factorisation.allocation import Scheme
from dpcore.factorisation.answer.solution import (
    MIN_SEEDS,
    FactorisationSolution,
    Verdict,
    judge,
    list_verdicts,
)
from dpcore.factorisation.parameters import Algorithm
from dpcore.factorisation.studies import PRIVATE_KINDS, RatingStudy
from dpcore.factorisation.study import FACTORISATION, ModelKind, StudyResult
from dpcore.report.content import Line, summarise_dataset

SCHEME_NAMES = {scheme: scheme.value.capitalize() for scheme in Scheme}
ASSUMPTIONS = (
    "Neighbouring data differ in one user, with all their ratings",
    "Only item vectors and noisy counts are released. Each user computes their vector, offset and predictions locally; "
    "these are private for everybody else (joint differential privacy)",
    "The range of ratings, the list of items, d, T, k, μ and both ridges are public; ε does not cover their choice",
    "Errors and buckets are computed without noise: they are not part of the release",
    "The noise is simulated in floating point, without protection against attacks on its low bits",
)
BASELINES = {
    "rmse": ("item means with own offsets", "release item means"),
    "recall": ("the most popular items", "recommend the most popular items"),
}
"""By measure: the rival, and what to do if it wins."""
FEW_SEEDS = f"Train at least {MIN_SEEDS} seeds for a clear answer."
NEAR_OPTIMAL_SHARE = 0.01
"""Relative excess of a near-optimal error."""


def write_headline(solution: FactorisationSolution) -> str:
    """Write how noisy a training will be, or after it whether a factorisation is worth it."""
    if (verdict := solution.verdict) is not None:
        return write_verdict(verdict)
    noise = float(solution.find_shares(Scheme.ADAPTIVE).noise_to_signal[0])
    if not math.isfinite(noise):
        return "Not trained yet."
    return f"Not trained yet: noise on the rarest items is {wording.number(noise, 2)} times their signal."


def write_verdict(verdict: Verdict) -> str:
    """Write whether a factorisation is worth it, in one sentence."""
    baseline, alternative = BASELINES[verdict.result.study.main_measure]
    opening_text = f"At ε = {wording.entered(verdict.epsilon)}"
    if verdict.is_worth_it:
        return f"{opening_text}, factorise with adaptive weights: it beats {baseline}."
    if verdict.is_worse:
        return f"{opening_text}, {alternative}: factorising is worse."
    return f"{opening_text} it is not clear whether factorising beats {baseline}."


def write_comparison(result: StudyResult, epsilon: float) -> str:
    """Write whether a factorisation is worth it at the trained epsilon nearest to one, with recalls if it has some."""
    verdict = judge(result, epsilon)
    if verdict is None:
        return "Nothing is trained yet."
    if result.study.main_measure == "rmse":
        return write_verdict(verdict)
    difference_text = _add_interval(f"{verdict.gain:+.3f}".replace("-", "−"), verdict.gain_half_width, 3)
    hint_text = "" if verdict.num_seeds >= MIN_SEEDS else f" {FEW_SEEDS}"
    return (
        f"**{write_verdict(verdict)}** Recall is {verdict.mean:.3f} against {verdict.mean - verdict.gain:.3f}, a "
        f"difference of {difference_text}.{hint_text}"
    )


def write_detail(solution: FactorisationSolution) -> str:
    """Write the sentences that explain the headline."""
    if (verdict := solution.verdict) is None:
        adaptive, uniform = (
            wording.percent(solution.find_shares(scheme).shares[:3].sum())
            for scheme in (Scheme.ADAPTIVE, Scheme.UNIFORM)
        )
        return (
            f"Adaptive weights give the rarest three fifths of items {adaptive} of the budget, uniform sampling "
            f"{uniform}."
        )
    difference_text = _add_interval(f"{abs(verdict.gain):.4f}", verdict.gain_half_width)
    side_text = "better" if verdict.gain > 0.0 else "worse"
    sentences = [f"Factorising with adaptive weights is {difference_text} {side_text}."]
    # It follows the sentence that every epsilon has, so that nothing moves when it appears.
    if not math.isclose(verdict.epsilon, solution.parameters.epsilon):
        sentences.append(f"ε = {wording.entered(verdict.epsilon)} is the nearest trained to yours.")
    if verdict.num_seeds < MIN_SEEDS:
        sentences.append(FEW_SEEDS)
    if not verdict.result.finished:
        sentences.append("**The training is not finished.**")
    return " ".join(sentences)


def build_numbers(solution: FactorisationSolution) -> tuple[Number, ...]:
    """Build the noise before a training, and after it the error of the recommendation."""
    verdict, adaptive = solution.verdict, solution.find_shares(Scheme.ADAPTIVE)
    count_noise = solution.parameters.spending.count_noise
    rare_noise, popular_noise = (
        Number(
            f"Noise on {items} items",
            f"{wording.number(noise, 2)}×",
            "the signal (adaptive)",
            value=finite_or_none(float(noise)),
        )
        for items, noise in zip(("the rarest", "popular"), adaptive.noise_to_signal[[0, -1]], strict=True)
    )
    noise_numbers = (
        Number("Noise s on each sum", wording.number(adaptive.noise), value=adaptive.noise),
        rare_noise,
        popular_noise,
        Number("Noise on each count", wording.number(count_noise), value=count_noise),
    )
    if verdict is None:
        return noise_numbers
    recommended = FACTORISATION if verdict.is_worth_it else RatingStudy.baseline
    error, half_width = verdict.find_error(recommended)
    interval = Number("Seeds", "only one", "so no interval")
    if math.isfinite(half_width):
        name = f"Interval, 95{wording.PERCENT}"
        interval = Number(name, f"± {half_width:.4f}", "over seeds and splits", value=half_width)
    changes = verdict.result.compare(ModelKind.ADAPTIVE, ModelKind.UNIFORM).means[verdict.index, 1:]
    rare_changes = changes[:3][np.isfinite(changes[:3])]
    changes_by_items = {
        f"rarest 60{wording.PERCENT}": float(rare_changes.mean()) if rare_changes.size else math.nan,
        "most rated": float(changes[-1]),
    }
    return (
        Number(f"Test error (RMSE), {recommended.value}", f"{error:.4f}", value=error),
        interval,
        Number("Factorisation", f"{verdict.mean:.4f}", FACTORISATION.value, value=verdict.mean),
        *(
            Number(
                f"Adaptive, {items}",
                _write_signed(change) if math.isfinite(change) else "none tested",
                "RMSE against uniform",
                value=finite_or_none(change),
            )
            for items, change in changes_by_items.items()
        ),
        *noise_numbers,
    )


def build_facts(solution: FactorisationSolution) -> dict[str, str]:
    """Build the facts behind the answer."""
    if (verdict := solution.verdict) is None:
        used_shares_text = "; ".join(
            f"{SCHEME_NAMES[shares.scheme].lower()} {wording.percent(shares.used_share)}"
            for shares in solution.shares
        )
        return {
            "Budget that is used": f"{used_shares_text}.",
            "Noise over signal": "above 1, an item's vector is mostly noise.",
        }
    errors = {model_kind: verdict.find_error(model_kind)[0] for model_kind in PRIVATE_KINDS}
    limit = min(errors.values()) * (1.0 + NEAR_OPTIMAL_SHARE)
    near_optimal = [model_kind.value for model_kind, error in errors.items() if error <= limit]
    trained_verdicts = list_verdicts(verdict.result)
    winning_epsilons_text = ", ".join(wording.entered(v.epsilon) for v in trained_verdicts if v.is_worth_it)
    winning_text = f"at ε = {winning_epsilons_text}" if winning_epsilons_text else "at no trained ε"
    return {
        "A factorisation clearly beats item means with own offsets": f"{winning_text}, of "
        f"{', '.join(wording.entered(v.epsilon) for v in trained_verdicts)}.",
        "Own offsets": "how far users rate above item means, computed locally, not released.",
        "Good enough": f"{', '.join(near_optimal)}: within 1{wording.PERCENT} of the smallest error.",
        "Intervals": f"Student's at 95{wording.PERCENT}; all models of a seed share its split and noise.",
    }


def _write_signed(value: float) -> str:
    """Write a value with its sign."""
    return f"{'+' if value > 0 else '−'}{abs(value):.4f}"


def _add_interval(text: str, half_width: float, digits: int = 4) -> str:
    """Add half of an interval to a number, if there is one: ``−0.0042 ± 0.0013``."""
    return f"{text} ± {half_width:.{digits}f}" if math.isfinite(half_width) else text


def describe_ratings(solution: FactorisationSolution) -> str:
    """Describe the ratings in a line."""
    ratings, spreads = solution.ratings, solution.spreads
    return (
        f"{wording.counted(ratings.num_users, 'user')}, {wording.counted(ratings.num_items, 'item')}, "
        f"{wording.counted(ratings.num_ratings, 'rating')}; {wording.number(spreads[0][0])} to "
        f"{wording.counted(spreads[-1][1], 'rating')} per item."
    )


def summarise_ratings(solution: FactorisationSolution, dataset: Dataset | None) -> tuple[Line, ...]:
    """Summarise the ratings for a report: what they are, and how many."""
    ratings, disclosure = solution.ratings, solution.disclosure
    lines = [Line("Data", "generated ratings", disclosure)] if dataset is None else summarise_dataset(dataset)
    sizes = {"Users": ratings.num_users, "Items": ratings.num_items, "Ratings": ratings.num_ratings}
    numbers = (Line(name, wording.number(size), disclosure, number=size) for name, size in sizes.items())
    return (*lines, *numbers)


def write_methods(solution: FactorisationSolution) -> Methods | None:
    """Write the methods section with the recommendation and its error; None before a training."""
    parameters, verdict = solution.parameters, solution.verdict
    if verdict is None:
        return None
    algorithm_text = (
        "least squares on noisy sums [@chien2021]"
        if parameters.algorithm is Algorithm.STATISTICS
        else "noisy gradient steps"
    )
    learning_text = (
        f"Vectors of {parameters.dimension} entries were learned in {wording.counted(parameters.sweeps, 'sweep')} "
        f"[@krichene2023, algorithm 3] by {algorithm_text}; the squared weights of a user sum to at most "
        f"{parameters.max_items:,}. All releases are one Gaussian mechanism [@dong2022], calibrated exactly "
        "[@balle2018]."
    )
    recommended = RatingStudy.baseline
    step_text = "Noisy means of the items' ratings were released; users add their own offsets locally."
    if verdict.is_worth_it:
        recommended = FACTORISATION
        step_text = f"{learning_text} Ratings weigh less the larger their item's noisy count is."
    mean, half_width = verdict.find_error(recommended)
    runs_text = wording.counted(verdict.result.study.repeats, "simulated run")
    return Methods(
        # That of the training which the choice and its error come from, not the one entered since, if they differ.
        guarantee_text=write_guarantee(
            "A recommender was released", verdict.epsilon, Neighbours.ADD_OR_REMOVE_USER, parameters.delta
        ),
        procedure=f"{step_text} The RMSE on ratings held out is {_add_interval(f'{mean:.4f}', half_width)} "
        f"({runs_text}).",
        public_procedure=learning_text,
        disclosure=solution.disclosure,
        rule_sentence="A factorisation with adaptive weights was preferred to noisy item means with users' own offsets "
        "only if its error is lower by more than the interval.",
        subject_text="The choice",
    )


def choose_programs(solution: FactorisationSolution, dataset: Dataset | None) -> CodeChoice | None:
    """Return programs for DP item means, where they are recommended; no library fits a factorisation.

    Args:
        solution: The solution.
        dataset: The data that have the ratings; None if these were generated.
    """
    verdict = solution.verdict
    if verdict is not None and verdict.is_worth_it:
        return None
    parameters, limits = solution.parameters, solution.parameters.limits
    base = (
        {"group_column": "item", "value_column": "rating"} if dataset is None else list_data_fields(dataset)
    )
    base |= {"disclosure": solution.disclosure, "delta": parameters.delta} | ROWS_OF_THE_FILE
    bounds = {
        "max_groups": parameters.max_items,
        "max_rows": 1,
        "noise": NoiseKind.GAUSSIAN,
        "lower": limits.lowest,
        "upper": limits.highest,
    }
    name = f"Item means, at most {wording.counted(parameters.max_items, 'item')}"
    return build_forms(parameters.epsilon, base, [(name, Quantity.GROUP_MEANS, bounds)])
