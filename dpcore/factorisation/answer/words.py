"""The solution for a recommender in words: sentences, numbers, the methods section."""

from __future__ import annotations

import math

import numpy as np

from dpcore.answer.answer import Number
from dpcore.answer.methods import Methods, write_guarantee
from dpcore.code.choice import Quantity
from dpcore.code.forms import ROWS_OF_THE_FILE, CodeChoice, build_forms, fields_of_data
from dpcore.common import wording
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Neighbours
from dpcore.dataset import Dataset
from dpcore.factorisation.allocation import Scheme
from dpcore.factorisation.answer.solution import (
    MIN_SEEDS,
    FactorisationSolution,
    RatingsInUse,
    Verdict,
    compare_with_uniform,
    list_trained_epsilons,
)
from dpcore.factorisation.answer.solution import judge as judge
from dpcore.factorisation.parameters import Algorithm, FactorisationParameters
from dpcore.factorisation.study import BASELINE, FACTORISATION, MEANS, SCHEMES, ModelKind, StudyResult
from dpcore.report.content import Line, summarise_dataset

SCHEME_NAMES = {Scheme.UNIFORM: "Uniform", Scheme.TAIL: "Tail", Scheme.ADAPTIVE: "Adaptive"}
ASSUMPTIONS = (
    "Neighbouring data differ in one user, with all their ratings",
    "Only item vectors and noisy counts are released. Each user computes their own vector and offset locally, from "
    "these and their own ratings. Predictions stay with the user and are private for everybody else (joint "
    "differential privacy)",
    "The range of ratings is public; ratings are centred around its midpoint",
    "The list of items is public, and so are d, T, k, μ and both ridges; ε does not cover their choice",
    "Errors and buckets are computed without noise, to choose by: they are not part of the release",
    "The noise is simulated in floating point, without protection against attacks on its low bits",
)
FEW_SEEDS = f"Train at least {MIN_SEEDS} seeds: with fewer nothing is clear."
NEAR_OPTIMAL_SHARE = 0.01
"""Share of the smallest error by which a near-optimal model may be worse."""


def write_headline(solution: FactorisationSolution) -> str:
    """Write how noisy a training will be, or after it whether a factorisation is worth it."""
    verdict = solution.verdict
    if verdict is None:
        noise = float(solution.find_shares(Scheme.ADAPTIVE).noise_to_signal[0])
        if not math.isfinite(noise):
            return "Not trained with these settings yet."
        return f"Not trained yet: noise on the rarest items is {wording.number(noise, 2)} times their signal."
    return write_verdict(verdict)


def write_detail(solution: FactorisationSolution) -> str:
    """Write the sentences that explain the headline."""
    verdict, result, epsilon_index = solution.verdict, solution.result, solution.epsilon_index
    if verdict is None or result is None or epsilon_index is None:
        uniform, adaptive = solution.find_shares(Scheme.UNIFORM), solution.find_shares(Scheme.ADAPTIVE)
        return (
            f"Adaptive weights give the rarest three fifths of items {wording.percent(adaptive.shares[:3].sum())} of "
            f"the budget, uniform sampling {wording.percent(uniform.shares[:3].sum())}."
        )
    side = "better" if verdict.gain > 0.0 else "worse"
    sentences = [
        f"Factorising with adaptive weights is {_format_difference(abs(verdict.gain), verdict.gain_half)} {side}."
    ]
    # It follows the sentence that every epsilon has, so that nothing moves when it appears.
    if not math.isclose(verdict.epsilon, solution.parameters.epsilon):
        sentences.append(
            f"ε = {wording.entered(verdict.epsilon)} is the nearest trained to yours; train again for ε = "
            f"{wording.entered(solution.parameters.epsilon)}."
        )
    if verdict.seeds < MIN_SEEDS:
        sentences.append(FEW_SEEDS)
    if not solution.finished:
        sentences.append("**The training is not finished.**")
    elif not result.finished:
        sentences.append("**The training was stopped early.**")
    return " ".join(sentences)


def build_numbers(solution: FactorisationSolution) -> tuple[Number, ...]:
    """Build the noise before a training, and after it the error of the recommendation."""
    verdict, result, epsilon_index = solution.verdict, solution.result, solution.epsilon_index
    if verdict is None or result is None or epsilon_index is None:
        return _build_noise_numbers(solution)
    mean, half_width = result.summarise(BASELINE)
    recommended, error, error_half = (
        BASELINE,
        float(mean[epsilon_index, 0]),
        float(half_width[epsilon_index, 0]),
    )
    if verdict.is_worth_it:
        recommended, error, error_half = FACTORISATION, verdict.error, verdict.error_half
    spread = Number("Seeds", "only one", "so no interval")
    if math.isfinite(error_half):
        spread = Number(
            f"Interval, 95{wording.PERCENT}", f"± {error_half:.4f}", "over seeds and splits", value=error_half
        )
    rare, popular = _split_gains(result, epsilon_index)
    return (
        Number(
            f"Test error (RMSE), {recommended.value}",
            f"{error:.4f}",
            help="Root mean squared error on ratings held out, mean over seeds.",
            value=error,
        ),
        spread,
        Number("Factorisation", f"{verdict.error:.4f}", FACTORISATION.value, value=verdict.error),
        _make_number(
            f"Adaptive, rarest 60{wording.PERCENT}", rare, _format_signed(rare), "RMSE against uniform"
        ),
        _make_number("Adaptive, most rated", popular, _format_signed(popular), "RMSE against uniform"),
        *_build_noise_numbers(solution),
    )


def _build_noise_numbers(solution: FactorisationSolution) -> tuple[Number, ...]:
    """Build the numbers on the noise."""
    adaptive, count_noise = solution.find_shares(Scheme.ADAPTIVE), solution.parameters.spending.count_noise
    rare, popular = (float(adaptive.noise_to_signal[bucket]) for bucket in (0, -1))
    return (
        Number(
            "Noise s on each sum",
            wording.number(adaptive.noise),
            help="Standard deviation of the Gaussian noise on each entry of an item's sums, to which a rating of "
            "weight 1 adds at most 1. For tail and adaptive weights; uniform sampling needs no counts.",
            value=adaptive.noise,
        ),
        _make_number(
            "Noise on the rarest items", rare, f"{wording.number(rare, 2)}×", "the signal (adaptive)"
        ),
        _make_number(
            "Noise on popular items", popular, f"{wording.number(popular, 2)}×", "the signal (adaptive)"
        ),
        Number(
            "Noise on each count",
            wording.number(count_noise),
            help="Standard deviation of the noise on the number of ratings of each item.",
            value=count_noise,
        ),
    )


def _make_number(label: str, value: float, text: str, note: str) -> Number:
    """Make a number of items that may have no rating."""
    return Number(label, text, note, value=value if math.isfinite(value) else None)


def build_facts(solution: FactorisationSolution) -> dict[str, str]:
    """Build the facts behind the answer."""
    result, epsilon_index = solution.result, solution.epsilon_index
    if result is None or epsilon_index is None:
        used_budget = "; ".join(
            f"{SCHEME_NAMES[shares.scheme].lower()} {wording.percent(shares.used_share)}"
            for shares in solution.shares
        )
        return {
            "Budget that is used": f"{used_budget}. The unused budget of users with few ratings is lost.",
            "Noise over signal": "above 1, an item's vector is mostly noise, drawn to the overall mean by the ridge.",
        }
    return _build_training_facts(result, epsilon_index)


def write_verdict(verdict: Verdict) -> str:
    """Write whether a factorisation is worth it, in one sentence."""
    epsilon = wording.entered(verdict.epsilon)
    if verdict.is_worth_it:
        return f"At ε = {epsilon}, factorise with adaptive weights: it beats item means with own offsets."
    if verdict.is_worse:
        return f"At ε = {epsilon}, release item means: factorising is worse."
    return f"At ε = {epsilon} it is not clear whether factorising beats item means with own offsets."


def _describe_change(change: float, half_width: float) -> str:
    """Describe a change of the error: ``gain 0.0041 ± 0.0013``."""
    if math.isfinite(half_width) and half_width >= abs(change):
        return f"show no clear change ({_format_change(float(change), float(half_width))})"
    return f"{'gain' if change < 0.0 else 'cost'} {_format_difference(abs(float(change)), float(half_width))}"


def _split_gains(result: StudyResult, epsilon_index: int) -> tuple[float, float]:
    """Return the gain of adaptive weights on the rarest three fifths (their mean) and on the most popular one."""
    mean, _ = compare_with_uniform(result, ModelKind.ADAPTIVE, epsilon_index)
    rare = mean[:3][np.isfinite(mean[:3])]
    return float(rare.mean()) if rare.size else math.nan, float(mean[-1])


def _list_near_optimal(result: StudyResult, epsilon_index: int) -> str:
    """List the models whose error is near the smallest."""
    errors = {
        model_kind: float(result.summarise(model_kind)[0][epsilon_index, 0])
        for model_kind in (*MEANS, *SCHEMES)
    }
    smallest_error = min(errors.values())
    near_optimal = [
        model_kind.value
        for model_kind, error in errors.items()
        if error <= smallest_error * (1.0 + NEAR_OPTIMAL_SHARE)
    ]
    if len(near_optimal) == 1:
        return f"only {near_optimal[0]}; the others are more than 1{wording.PERCENT} worse."
    return f"{', '.join(near_optimal)} stay within 1{wording.PERCENT} of the smallest error."


def _lower_first(name: str) -> str:
    """Lower the first letter of a name, unless it begins with DP."""
    return name if name.startswith("DP") else name[0].lower() + name[1:]


def _build_training_facts(result: StudyResult, epsilon_index: int) -> dict[str, str]:
    """Build the facts of a training."""
    errors_without_privacy = "; ".join(
        f"{_lower_first(model_kind.value)} {float(result.summarise(model_kind)[0][epsilon_index, 0]):.4f}"
        for model_kind in (ModelKind.GLOBAL_MEAN, ModelKind.ITEM_MEAN, ModelKind.NO_PRIVACY)
    )
    tail_mean, tail_half = compare_with_uniform(result, ModelKind.TAIL, epsilon_index)
    winning_epsilons = [
        result.study.epsilons[trained_index]
        for trained_index in list_trained_epsilons(result)
        if _is_worth_it(result, trained_index)
    ]
    epsilons_text = (
        "at ε = " + ", ".join(wording.entered(epsilon) for epsilon in winning_epsilons)
        if winning_epsilons
        else "at no trained ε"
    )
    return {
        "Without privacy": f"{errors_without_privacy}.",
        "A factorisation clearly beats item means with own offsets": f"{epsilons_text}, of {_list_epsilons(result)}.",
        "Own offsets": (
            "how far a user rates above the released item means, computed locally from their own ratings. They are not "
            "released, so they cost no privacy. The factorisation subtracts them from ratings and clips again."
        ),
        "Good enough": _list_near_optimal(result, epsilon_index),
        "Adaptive weights against uniform": _describe_adaptive(result, epsilon_index),
        "Tail sampling against uniform": (
            f"rarest fifth {_format_change(tail_mean[0], tail_half[0])}, most popular "
            f"{_format_change(tail_mean[-1], tail_half[-1])}."
        ),
        "Seeds": (
            f"{wording.counted(result.study.repeats, 'seed')}; each has its own split and noise, which all models "
            f"share. The 95{wording.PERCENT} intervals are Student's; differences are paired by seed."
        ),
    }


def _describe_adaptive(study_result: StudyResult, epsilon_index: int) -> str:
    """Describe the gain of adaptive weights on the rarest and the most rated items."""
    mean, half_width = compare_with_uniform(study_result, ModelKind.ADAPTIVE, epsilon_index)
    if not (math.isfinite(mean[0]) and math.isfinite(mean[-1])):
        return "not tested on both ends."
    return (
        f"they {_describe_change(mean[0], half_width[0])} on the rarest fifth of items and "
        f"{_describe_change(mean[-1], half_width[-1])} on the most rated."
    )


def _is_worth_it(result: StudyResult, epsilon_index: int) -> bool:
    """Return True if the factorisation is shown to be better at a trained epsilon."""
    verdict = judge(result, result.study.epsilons[epsilon_index])
    return verdict is not None and verdict.is_worth_it


def _list_epsilons(result: StudyResult) -> str:
    """List the trained epsilons."""
    return ", ".join(wording.entered(result.study.epsilons[index]) for index in list_trained_epsilons(result))


def _format_signed(value: float) -> str:
    """Format a value with its sign."""
    return f"{'+' if value > 0 else '−'}{abs(value):.4f}" if math.isfinite(value) else "none tested"


def _format_change(value: float, half_width: float) -> str:
    """Format a change with its interval: ``−0.0042 ± 0.0013``."""
    return _format_signed(float(value)) + (f" ± {half_width:.4f}" if math.isfinite(half_width) else "")


def _format_difference(value: float, half_width: float) -> str:
    """Format a difference with its interval."""
    return f"{value:.4f}" + (f" ± {half_width:.4f}" if math.isfinite(half_width) else "")


def describe_ratings(table: RatingsInUse) -> str:
    """Describe the ratings in a line."""
    ratings = table.ratings
    return (
        f"{wording.counted(ratings.num_users, 'user')}, {wording.counted(ratings.num_items, 'item')}, "
        f"{wording.counted(ratings.num_ratings, 'rating')}; {wording.number(table.spreads[0][0])} to "
        f"{wording.counted(table.spreads[-1][1], 'rating')} per item."
    )


def summarise_ratings(solution: FactorisationSolution, dataset: Dataset | None) -> tuple[Line, ...]:
    """Summarise the ratings for a report: what they are, and how many."""
    ratings, disclosure = solution.table.ratings, solution.disclosure
    data_lines_of_report = (
        (Line("Data", "generated ratings", disclosure),) if dataset is None else summarise_dataset(dataset)
    )
    sizes = (("Users", ratings.num_users), ("Items", ratings.num_items), ("Ratings", ratings.num_ratings))
    return (
        *data_lines_of_report,
        *(Line(name, wording.number(number), disclosure, number=number) for name, number in sizes),
    )


RATINGS_USED = {
    FACTORISATION: "all ratings, with weights that fall with the noisy number of ratings of an item"
}


def write_methods(solution: FactorisationSolution) -> Methods | None:
    """Write the methods section with the recommendation and its error; None before a training."""
    parameters, verdict, result = solution.parameters, solution.verdict, solution.result
    if result is None or verdict is None:
        return None
    learning_text = _describe_learning(parameters)
    model_kind = FACTORISATION if verdict.is_worth_it else BASELINE
    mean, half_width = (
        float(values[result.study.epsilons.index(verdict.epsilon), 0])
        for values in result.summarise(model_kind)
    )
    spread = f" ± {half_width:.4f}" if math.isfinite(half_width) else ""
    runs = wording.counted(result.study.repeats, "simulated run")
    step = (
        f"{learning_text} It used {RATINGS_USED[model_kind]}."
        if model_kind in RATINGS_USED
        else "Noisy means of the items' ratings were released; users add offsets of their own, computed at home."
    )
    text = f"{step} The root mean squared error on ratings held out is {mean:.4f}{spread} ({runs})."
    return Methods(
        # That of the training which the choice and its error come from, not the one entered since, if they differ.
        guarantee=write_guarantee(
            "A recommender was released", verdict.epsilon, Neighbours.ADD_OR_REMOVE_USER, parameters.delta
        ),
        sentences=text,
        public_sentences=f"{learning_text} It was compared with noisy item means and users' own offsets.",
        disclosure=solution.disclosure,
        rule="A factorisation with adaptive weights was compared with noisy item means and users' own offsets, on "
        "ratings held out. It was preferred only if the difference is larger than its interval.",
        subject="The choice",
    )


def _describe_learning(parameters: FactorisationParameters) -> str:
    """Describe how the vectors are learned."""
    sweeps = wording.counted(parameters.sweeps, "sweep")
    method = (
        "least squares on noisy sums [@chien2021]"
        if parameters.algorithm is Algorithm.STATISTICS
        else "noisy gradient steps"
    )
    return (
        f"Vectors of {parameters.dimension} entries were learned in {sweeps} of alternating minimisation "
        f"[@krichene2023, algorithm 3] by {method}, with squared weights of a user that sum to at most "
        f"{parameters.max_items:,}. Counts and sweeps together are one Gaussian mechanism [@dong2022], calibrated "
        "exactly [@balle2018]."
    )


def choose_programs(solution: FactorisationSolution, dataset: Dataset | None) -> CodeChoice | None:
    """Return programs for DP item means, where they are recommended; no library fits a factorisation.

    Args:
        solution: What was found.
        dataset: Whose ratings they are; None where they were generated.
    """
    verdict = solution.verdict
    if verdict is not None and verdict.is_worth_it:
        return None
    parameters, limits = solution.parameters, solution.parameters.limits
    base = (
        fields_of_data(dataset) if dataset is not None else {"group_column": "item", "value_column": "rating"}
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
