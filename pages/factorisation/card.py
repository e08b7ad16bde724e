"""The answer of the page Factorisation in words."""

from __future__ import annotations

import math

import numpy as np

from dpcore.answer import Answer, Number
from dpcore.common import wording
from dpcore.factorisation.allocation import Scheme
from dpcore.factorisation.study import SCHEMES, Kind, StudyResult
from pages.factorisation.answer import FactorisationView, RatingsInUse, Verdict, gains, nearest, trained_at

SCHEME_NAMES = {Scheme.UNIFORM: "Uniform", Scheme.TAIL: "Tail", Scheme.ADAPTIVE: "Adaptive"}
ASSUMPTIONS = (
    "Neighbouring data differ in one user, with all their ratings",
    "Item vectors and noisy counts are released, and nothing else: each user computes their own vector at home, from "
    "the released item vectors and their own ratings",
    "The range of ratings is public, and so is its midpoint, around which ratings are centred",
    "The number of items and which items there are is public; so are d, T, k, μ and both ridges, whose choice is not "
    "paid for",
    "Errors and buckets are computed from the ratings without noise, to choose by: they are not part of the release",
    "Noise is floating-point noise of a simulation, not hardened against attacks on its low bits",
)
GOOD_ENOUGH = 0.01
"""Share of the error by which a scheme may be worse and still be good enough."""


def card(view: FactorisationView) -> Answer:
    """What the page says: before a training who gets the budget, then whether a factorisation is worth it."""
    found = view.verdict
    if view.result is None or found is None:
        return _before(view)
    return _after(view, view.result, found)


def _before(view: FactorisationView) -> Answer:
    uniform, adaptive = view.share(Scheme.UNIFORM), view.share(Scheme.ADAPTIVE)
    ratio = adaptive.noise_to_signal
    used = "; ".join(f"{SCHEME_NAMES[found.scheme].lower()} {_percent(found.used)}" for found in view.shares)
    return Answer(
        headline="Train, and see whether a factorisation is worth its budget.",
        detail=f"Adaptive weights give the rarest three fifths of items {_percent(adaptive.shares[:3].sum())} of the "
        f"budget; uniform sampling gives them {_percent(uniform.shares[:3].sum())}.",
        numbers=(
            Number(
                "Noise s on each sum",
                wording.number(adaptive.noise),
                help="Standard deviation of the Gaussian noise on each entry of an item's sums, where a rating of "
                "weight 1 adds at most 1. With tail and adaptive weights; uniform sampling pays for no counts.",
                copied=repr(adaptive.noise),
            ),
            Number("Noise on the rarest items", f"{wording.number(float(ratio[0]), 2)}×", "the signal (adaptive)"),
            Number("Noise on popular items", f"{wording.number(float(ratio[-1]), 2)}×", "the signal (adaptive)"),
            Number(
                "Noise on each count",
                wording.number(view.parameters.spending.count_noise),
                help="Standard deviation of the noise on the number of ratings of each item.",
            ),
        ),
        facts={
            "Budget that is used": f"{used}. What a user with few ratings does not use is lost.",
            "Noise over signal": "where it is above 1, an item's vector is mostly noise, and the ridge draws it to "
            "the overall mean.",
        },
        assumptions=ASSUMPTIONS,
        disclosure=view.table.disclosure,
    )  # fmt: skip


def _after(view: FactorisationView, result: StudyResult, found: Verdict) -> Answer:
    at = nearest(result, view.parameters.epsilon)
    assert at is not None
    mean, half = result.mean(Kind.PRIVATE_MEAN)
    recommended, error, error_half = Kind.PRIVATE_MEAN, float(mean[at, 0]), float(half[at, 0])
    if found.is_worth_it:
        recommended, error, error_half = found.best, found.error, found.error_half
    spread = Number("Seeds", "only one", "so no interval")
    if math.isfinite(error_half):
        spread = Number(f"Interval, 95{wording.PERCENT}", f"± {error_half:.4f}", "over seeds and splits")
    rare, popular = _rare_and_popular(result, at)
    return Answer(
        headline=headline(found),
        detail=_detail(view, result, found, at),
        numbers=(
            Number(
                f"Test error (RMSE), {recommended.value}",
                f"{error:.4f}",
                help="Root mean squared error on ratings held out, mean over seeds.",
                copied=repr(error),
            ),
            spread,
            Number("Best factorisation", f"{found.error:.4f}", found.best.value),
            Number(f"Adaptive, rarest 60{wording.PERCENT}", rare, "RMSE against uniform"),
            Number("Adaptive, most rated", popular, "RMSE against uniform"),
        ),
        facts=_facts(result, at),
        assumptions=ASSUMPTIONS,
        disclosure=view.table.disclosure,
    )


def headline(found: Verdict) -> str:
    """Whether a factorisation is worth having, one sentence."""
    epsilon = wording.entered(found.epsilon)
    if found.is_worth_it:
        return f"At ε = {epsilon}, factorise with {HOW[found.best]}: it beats DP item means."
    if found.is_worse:
        return f"At ε = {epsilon}, release item means: no private factorisation beats them."
    return f"At ε = {epsilon}, release item means: no factorisation is shown to beat them."


def _detail(view: FactorisationView, result: StudyResult, found: Verdict, at: int) -> str:
    words = []
    if not math.isclose(found.epsilon, view.parameters.epsilon):
        words.append(
            f"ε = {wording.entered(found.epsilon)} is the nearest trained to yours; train again for "
            f"ε = {wording.entered(view.parameters.epsilon)}."
        )
    words.append(
        f"The best factorisation, with {HOW[found.best]}, is {_difference(abs(found.beats), found.beats_half)} "
        f"{'better' if found.beats > 0.0 else 'worse'} than item means."
    )
    mean, half = gains(result, Kind.ADAPTIVE, at)
    if math.isfinite(mean[0]) and math.isfinite(mean[-1]):
        words.append(
            f"Against uniform sampling, adaptive weights {_does(mean[0], half[0])} on the rarest fifth of items and "
            f"{_does(mean[-1], half[-1])} on the most rated."
        )
    if not view.finished:
        words.append("**Not all is trained yet.**")
    elif not result.finished:
        words.append("**The training was stopped**: this is what was finished.")
    return " ".join(words)


HOW = {Kind.UNIFORM: "uniform sampling", Kind.TAIL: "tail sampling", Kind.ADAPTIVE: "adaptive weights"}


def _does(change: float, half: float) -> str:
    """What a change of the error is worth: ``gain 0.0041 ± 0.0013``."""
    if math.isfinite(half) and half >= abs(change):
        return f"show no clear change ({_change(float(change), float(half))})"
    return f"{'gain' if change < 0.0 else 'cost'} {_difference(abs(float(change)), float(half))}"


def _rare_and_popular(result: StudyResult, at: int) -> tuple[str, str]:
    """What adaptive weights change on the rarest three fifths (mean of the three) and the most popular one."""
    mean, _ = gains(result, Kind.ADAPTIVE, at)
    rare = mean[:3][np.isfinite(mean[:3])]
    return (_signed(float(rare.mean())) if rare.size else "none tested"), _signed(float(mean[-1]))


def _within(result: StudyResult, at: int) -> str:
    errors = {kind: float(result.mean(kind)[0][at, 0]) for kind in (Kind.PRIVATE_MEAN, *SCHEMES)}
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
        "A factorisation beats DP item means": f"{at_which}, of {_listed(result)}.",
        "Good enough": _within(result, at),
        "Tail sampling against uniform": (
            f"rarest fifth {_change(tail_mean[0], tail_half[0])}, most popular "
            f"{_change(tail_mean[-1], tail_half[-1])}."
        ),
        "Seeds": (
            f"{wording.counted(result.study.repeats, 'seed')}; each has its own split and noise, which all models "
            f"share. Intervals are Student's, at 95{wording.PERCENT}, and differences are paired by seed."
        ),
    }


def _is_worth_it(result: StudyResult, at: int) -> bool:
    for kind in SCHEMES:
        mean, half = result.difference(Kind.PRIVATE_MEAN, kind)
        if float(mean[at, 0]) - (float(half[at, 0]) if math.isfinite(half[at, 0]) else 0.0) > 0.0:
            return True
    return False


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
