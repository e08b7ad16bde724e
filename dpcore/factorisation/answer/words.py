"""What is said of a recommender: headline, numbers, facts."""

from __future__ import annotations

import math

import numpy as np

from dpcore.answer import Number
from dpcore.common import wording
from dpcore.dataset import Dataset
from dpcore.factorisation.allocation import Scheme
from dpcore.factorisation.answer.found import (
    FEWEST_SEEDS,
    FactorisationFound,
    RatingsInUse,
    Verdict,
    gains,
    trained_at,
)
from dpcore.factorisation.answer.found import (
    verdict as verdict_at,
)
from dpcore.factorisation.study import BASELINE, FACTORISATION, MEANS, SCHEMES, Kind, StudyResult
from dpcore.report.content import Line, data_lines

SCHEME_NAMES = {Scheme.UNIFORM: "Uniform", Scheme.TAIL: "Tail", Scheme.ADAPTIVE: "Adaptive"}
ASSUMPTIONS = (
    "Neighbouring data differ in one user, with all their ratings",
    "Item vectors and noisy counts are released, and nothing else: each user computes their own vector and their own "
    "offset at home, from what is released and their own ratings. Predictions stay with the user, and are private for "
    "everybody else (joint differential privacy)",
    "The range of ratings is public, and so is its midpoint, around which ratings are centred",
    "The number of items and which items there are is public; so are d, T, k, μ and both ridges, whose choice is not "
    "paid for",
    "Errors and buckets are computed from the ratings without noise, to choose by: they are not part of the release",
    "Noise is floating-point noise of a simulation, not hardened against attacks on its low bits",
)
GOOD_ENOUGH = 0.01
"""Share of the error by which a scheme may be worse and still be good enough."""


def headline(found: FactorisationFound) -> str:
    """Before a training how noisy it will be, then whether a factorisation is worth it."""
    said = found.verdict
    if said is None:
        noise = float(found.share(Scheme.ADAPTIVE).noise_to_signal[0])
        if not math.isfinite(noise):
            return "Not trained with these settings yet."
        return f"Not trained yet: noise on the rarest items is {wording.number(noise, 2)} times their signal."
    return of_verdict(said)


def detail(found: FactorisationFound) -> str:
    """What the headline rests on."""
    verdict, result, at = found.verdict, found.result, found.at
    if verdict is None or result is None or at is None:
        uniform, adaptive = found.share(Scheme.UNIFORM), found.share(Scheme.ADAPTIVE)
        return (
            f"Adaptive weights give the rarest three fifths of items {_percent(adaptive.shares[:3].sum())} of the "
            f"budget; uniform sampling gives them {_percent(uniform.shares[:3].sum())}."
        )
    side = "better" if verdict.beats > 0.0 else "worse"
    words = [
        f"Factorising with adaptive weights is {_difference(abs(verdict.beats), verdict.beats_half)} {side}."
    ]
    # After what every epsilon has, so that nothing moves where it comes.
    if not math.isclose(verdict.epsilon, found.parameters.epsilon):
        words.append(
            f"ε = {wording.entered(verdict.epsilon)} is the nearest trained to yours; train again for "
            f"ε = {wording.entered(found.parameters.epsilon)}."
        )
    if verdict.seeds < FEWEST_SEEDS:
        words.append(f"Train at least {FEWEST_SEEDS} seeds: with fewer nothing is clear.")
    if not found.finished:
        words.append("**Not all is trained yet.**")
    elif not result.finished:
        words.append("**The training was stopped**: this is what was finished.")
    return " ".join(words)


def numbers(found: FactorisationFound) -> tuple[Number, ...]:
    """Before a training the noise, then the error of what is recommended."""
    verdict, result, at = found.verdict, found.result, found.at
    if verdict is None or result is None or at is None:
        return _noise(found)
    mean, half = result.mean(BASELINE)
    recommended, error, error_half = BASELINE, float(mean[at, 0]), float(half[at, 0])
    if verdict.is_worth_it:
        recommended, error, error_half = FACTORISATION, verdict.error, verdict.error_half
    spread = Number("Seeds", "only one", "so no interval")
    if math.isfinite(error_half):
        spread = Number(
            f"Interval, 95{wording.PERCENT}", f"± {error_half:.4f}", "over seeds and splits", value=error_half
        )
    rare, popular = _rare_and_popular(result, at)
    return (
        Number(
            f"Test error (RMSE), {recommended.value}",
            f"{error:.4f}",
            help="Root mean squared error on ratings held out, mean over seeds.",
            value=error,
        ),
        spread,
        Number("Factorisation", f"{verdict.error:.4f}", FACTORISATION.value, value=verdict.error),
        _measured(f"Adaptive, rarest 60{wording.PERCENT}", rare, _signed(rare), "RMSE against uniform"),
        _measured("Adaptive, most rated", popular, _signed(popular), "RMSE against uniform"),
        *_noise(found),
    )


def _noise(found: FactorisationFound) -> tuple[Number, ...]:
    adaptive, on_counts = found.share(Scheme.ADAPTIVE), found.parameters.spending.count_noise
    rare, popular = (float(adaptive.noise_to_signal[at]) for at in (0, -1))
    return (
        Number(
            "Noise s on each sum",
            wording.number(adaptive.noise),
            help="Standard deviation of the Gaussian noise on each entry of an item's sums, where a rating of "
            "weight 1 adds at most 1. With tail and adaptive weights; uniform sampling pays for no counts.",
            value=adaptive.noise,
        ),
        _measured("Noise on the rarest items", rare, f"{wording.number(rare, 2)}×", "the signal (adaptive)"),
        _measured(
            "Noise on popular items", popular, f"{wording.number(popular, 2)}×", "the signal (adaptive)"
        ),
        Number(
            "Noise on each count",
            wording.number(on_counts),
            help="Standard deviation of the noise on the number of ratings of each item.",
            value=on_counts,
        ),
    )


def _measured(label: str, value: float, text: str, note: str) -> Number:
    """A number of items that may have no rating."""
    return Number(label, text, note, value=value if math.isfinite(value) else None)


def facts(found: FactorisationFound) -> dict[str, str]:
    """What stands behind the answer."""
    result, at = found.result, found.at
    if result is None or at is None:
        used = "; ".join(f"{SCHEME_NAMES[one.scheme].lower()} {_percent(one.used)}" for one in found.shares)
        return {
            "Budget that is used": f"{used}. What a user with few ratings does not use is lost.",
            "Noise over signal": "where it is above 1, an item's vector is mostly noise, and the ridge draws it to "
            "the overall mean.",
        }
    return _facts(result, at)


def of_verdict(found: Verdict) -> str:
    """Whether a factorisation is worth having, one sentence."""
    epsilon = wording.entered(found.epsilon)
    if found.is_worth_it:
        return f"At ε = {epsilon}, factorise with adaptive weights: it beats item means with own offsets."
    if found.is_worse:
        return f"At ε = {epsilon}, release item means: factorising is worse."
    return f"At ε = {epsilon} it is not clear whether factorising beats item means with own offsets."


def _does(change: float, half: float) -> str:
    """What a change of the error is worth: ``gain 0.0041 ± 0.0013``."""
    if math.isfinite(half) and half >= abs(change):
        return f"show no clear change ({_change(float(change), float(half))})"
    return f"{'gain' if change < 0.0 else 'cost'} {_difference(abs(float(change)), float(half))}"


def _rare_and_popular(result: StudyResult, at: int) -> tuple[float, float]:
    """What adaptive weights change on the rarest three fifths (mean of the three) and the most popular one."""
    mean, _ = gains(result, Kind.ADAPTIVE, at)
    rare = mean[:3][np.isfinite(mean[:3])]
    return float(rare.mean()) if rare.size else math.nan, float(mean[-1])


def _within(result: StudyResult, at: int) -> str:
    errors = {kind: float(result.mean(kind)[0][at, 0]) for kind in (*MEANS, *SCHEMES)}
    least = min(errors.values())
    within = [kind.value for kind, error in errors.items() if error <= least * (1.0 + GOOD_ENOUGH)]
    if len(within) == 1:
        return f"only {within[0]}; the others are more than 1{wording.PERCENT} worse."
    return f"{', '.join(within)} stay within 1{wording.PERCENT} of the smallest error."


def _lower(name: str) -> str:
    return name if name.startswith("DP") else name[0].lower() + name[1:]


def _facts(result: StudyResult, at: int) -> dict[str, str]:
    plain = "; ".join(
        f"{_lower(kind.value)} {float(result.mean(kind)[0][at, 0]):.4f}"
        for kind in (Kind.GLOBAL_MEAN, Kind.ITEM_MEAN, Kind.NO_PRIVACY)
    )
    tail_mean, tail_half = gains(result, Kind.TAIL, at)
    worth = [result.study.epsilons[place] for place in trained_at(result) if _is_worth_it(result, place)]
    at_which = (
        "at ε = " + ", ".join(wording.entered(epsilon) for epsilon in worth) if worth else "at no trained ε"
    )
    return {
        "Without privacy": f"{plain}.",
        "A factorisation clearly beats item means with own offsets": f"{at_which}, of {_listed(result)}.",
        "Own offsets": (
            "how far a user rates above the released item means, computed at home from their own ratings. Nothing more "
            "is released, so that they cost no privacy; the factorisation takes them off ratings, too, and clips again."
        ),
        "Good enough": _within(result, at),
        "Adaptive weights against uniform": _adaptive(result, at),
        "Tail sampling against uniform": (
            f"rarest fifth {_change(tail_mean[0], tail_half[0])}, most popular "
            f"{_change(tail_mean[-1], tail_half[-1])}."
        ),
        "Seeds": (
            f"{wording.counted(result.study.repeats, 'seed')}; each has its own split and noise, which all models "
            f"share. Intervals are Student's, at 95{wording.PERCENT}, and differences are paired by seed."
        ),
    }


def _adaptive(result: StudyResult, at: int) -> str:
    mean, half = gains(result, Kind.ADAPTIVE, at)
    if not (math.isfinite(mean[0]) and math.isfinite(mean[-1])):
        return "not tested on both ends."
    return (
        f"they {_does(mean[0], half[0])} on the rarest fifth of items and {_does(mean[-1], half[-1])} on the most "
        "rated."
    )


def _is_worth_it(result: StudyResult, at: int) -> bool:
    found = verdict_at(result, result.study.epsilons[at])
    return found is not None and found.is_worth_it


def _listed(result: StudyResult) -> str:
    return ", ".join(wording.entered(result.study.epsilons[at]) for at in trained_at(result))


def _percent(share: float) -> str:
    return wording.percent(float(share))


def _signed(value: float) -> str:
    return f"{'+' if value > 0 else '−'}{abs(value):.4f}" if math.isfinite(value) else "none tested"


def _change(value: float, half: float) -> str:
    """``−0.0042 ± 0.0013``."""
    return _signed(float(value)) + (f" ± {half:.4f}" if math.isfinite(half) else "")


def _difference(value: float, half: float) -> str:
    return f"{value:.4f}" + (f" ± {half:.4f}" if math.isfinite(half) else "")


def what_is_used(table: RatingsInUse) -> str:
    """The ratings in a line."""
    ratings = table.ratings
    return (
        f"{wording.counted(ratings.num_users, 'user')}, {wording.counted(ratings.num_items, 'item')}, "
        f"{wording.counted(ratings.num_ratings, 'rating')}; {wording.number(table.spreads[0][0])} to "
        f"{wording.counted(table.spreads[-1][1], 'rating')} per item."
    )


def summary(found: FactorisationFound, data: Dataset | None) -> tuple[Line, ...]:
    """The ratings in a report: what they are, and how many."""
    ratings, kind = found.table.ratings, found.table.disclosure
    named = (Line("Data", "generated ratings", kind),) if data is None else data_lines(data)
    sizes = (("Users", ratings.num_users), ("Items", ratings.num_items), ("Ratings", ratings.num_ratings))
    return (*named, *(Line(name, wording.number(number), kind, number=number) for name, number in sizes))
