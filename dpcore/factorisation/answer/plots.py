"""The figures of a recommender as data. Pure: what was found in, plots out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.answer import Axis, Bars, Curve, Item, Level, Look, Plot, Scale
from dpcore.common import wording
from dpcore.common.privacy import Provenance
from dpcore.contributions import FloatArray
from dpcore.factorisation.allocation import Scheme
from dpcore.factorisation.answer.found import FactorisationFound
from dpcore.factorisation.answer.words import SCHEME_NAMES
from dpcore.factorisation.measures import BUCKETS, buckets_of, overlap
from dpcore.factorisation.study import MEANS, SCHEMES, Kind, StudyResult

LOOKS: dict[Kind, dict[str, Any]] = {
    Kind.UNIFORM: {"look": Look.OWN, "dash": "solid", "width": 2, "symbol": "square"},
    Kind.TAIL: {"look": Look.SAMPLING, "symbol": "triangle-up"},
    Kind.ADAPTIVE: {"look": Look.CAP, "symbol": "circle"},
    Kind.PRIVATE_MEAN: {"look": Look.SMOOTH, "dash": "dot", "width": 1.5, "symbol": "diamond"},
    Kind.PRIVATE_OFFSETS: {"look": Look.SMOOTH, "symbol": "diamond"},
    Kind.GLOBAL_MEAN: {"look": Look.USUAL, "dash": "dot"},
    Kind.ITEM_MEAN: {"look": Look.USUAL, "dash": "dash"},
    Kind.NO_PRIVACY: {"look": Look.PRIVACY},
}
"""Line and points by model; those without privacy are lines across."""
OF_SCHEME = {scheme: LOOKS[kind] for kind, scheme in SCHEMES.items()}
BUCKET_NAMES = ("Rarest", "2nd fifth", "Middle", "4th fifth", "Most rated")
OVERLAP = 20
"""Nearest items that are compared, as in the paper."""
LEAST_EPSILON, MOST_EPSILON = 0.2, 20.0
"""Between which noise sets the axis of noise over signal, so that it stays while epsilon moves."""


def plots(found: FactorisationFound) -> dict[str, Callable[[], Plot]]:
    """By key, the main one first: who gets the budget; after a training, the errors."""
    of: dict[str, Callable[[], Plot]] = {"factorisation-shares": lambda: shares(found)}
    result = found.result
    if result is None or found.at is None:
        return of
    return {
        "factorisation-errors": lambda: errors(result, found.table.disclosure, found.parameters.epsilon),
        **of,
        "factorisation-buckets-rmse": lambda: buckets(found),
        "factorisation-buckets-recall": lambda: buckets(found, recall=True),
    }


def bucket_labels(spreads: Sequence[tuple[int, int]]) -> list[str]:
    """Names for the axis, with the items' numbers of ratings."""
    return [
        f"{name}<br>{wording.number(low)}–{wording.number(high)}"
        for name, (low, high) in zip(BUCKET_NAMES, spreads, strict=True)
    ]


def _fifths(at: str = "") -> Axis:
    """The axis of buckets; ``at`` ends its title."""
    return Axis("ratings", "", (0.0, 1.0), Scale.NAMES, f"Fifths of the items, by ratings{at}")


# --- who gets the budget ------------------------------------------------------------------------------------


def shares(found: FactorisationFound) -> Plot:
    """Share of the budget, and beneath it noise over signal, by popularity, one series per scheme."""
    adaptive, uniform = found.share(Scheme.ADAPTIVE), found.share(Scheme.UNIFORM)
    kind, epsilon = found.table.disclosure, found.parameters.epsilon
    columns: dict[str, npt.ArrayLike] = {
        "bucket": list(BUCKET_NAMES),
        "fewest_ratings": [low for low, _ in found.table.spreads],
        "most_ratings": [high for _, high in found.table.spreads],
    }
    bars: list[Item] = []
    noise: list[Item] = []
    for of in found.shares:
        share, ratio = f"share_{of.scheme.value}", f"noise_over_signal_{of.scheme.value}"
        columns |= {share: of.shares, ratio: of.noise_to_signal}
        name, look = SCHEME_NAMES[of.scheme], OF_SCHEME[of.scheme]
        bars.append(Bars(name, "label", share, look["look"], opacity=0.8))
        noise.append(Curve(name, "label", ratio, **look))
    # Of uniform sampling, whose weights do not depend on epsilon: the axis stays put while epsilon moves.
    per_weight = uniform.noise * epsilon / np.maximum(uniform.weight, 1e-3)
    limits = (
        float(per_weight.min()) / max(MOST_EPSILON, epsilon),
        float(per_weight.max()) / min(LEAST_EPSILON, epsilon),
    )
    labels = {"label": bucket_labels(found.table.spreads)}
    over_signal = Axis("noise over signal", "", _decades(limits))
    below = Plot(
        "factorisation-noise",
        "Noise over signal",
        "",
        _fifths(),
        over_signal,
        columns,
        (*noise, Level("Noise = signal", 1.0, dash="dash")),
        kind,
        guides=labels,
    )
    return Plot(
        "factorisation-shares",
        "Who gets the budget",
        f"The most popular fifth of items gets {wording.percent(float(uniform.shares[-1]))} of the budget under "
        f"uniform sampling and {wording.percent(float(adaptive.shares[-1]))} under adaptive weights; noise over signal "
        "falls from rare to popular items.",
        _fifths(),
        Axis("share of the budget", "", (0.0, 1.0), Scale.PERCENT, number=".1%"),
        columns,
        tuple(bars),
        kind,
        guides=labels,
        main=True,
        beneath=below,
        beneath_share=0.46,
    )


def _decades(limits: tuple[float, float]) -> tuple[float, float]:
    """Return limits at whole decades, so that a small change of the ratings does not move the axis."""
    low, high = limits
    return float(10.0 ** np.floor(np.log10(low))), float(10.0 ** np.ceil(np.log10(high)))


# --- error over epsilon -------------------------------------------------------------------------------------


def errors(result: StudyResult, kind: Provenance, entered: float | None = None) -> Plot:
    """Test error over epsilon, private models with intervals, and the baselines across; upright the one entered."""
    epsilons = np.array(result.study.epsilons)
    limits = float(epsilons.min()) / 1.5, float(epsilons.max()) * 1.5
    columns: dict[str, npt.ArrayLike] = {"epsilon": epsilons}
    guides: dict[str, npt.ArrayLike] = {"across": list(limits)}
    items: list[Item] = []
    for model in Kind:
        mean, half = (part[:, 0] for part in result.mean(model))
        name = model.name.lower()
        columns |= {f"rmse_{name}": mean, f"half_interval_{name}": half}
        if not np.isfinite(mean).any():
            continue
        if model.is_private:
            spread = np.nan_to_num(half)
            guides |= {f"low_{name}": mean - spread, f"high_{name}": mean + spread}
            ends: dict[str, Any] = {"low": f"low_{name}", "high": f"high_{name}"}
            items.append(Curve(model.value, "epsilon", f"rmse_{name}", **LOOKS[model], **ends))
        else:
            guides[f"level_{name}"] = [float(mean[0])] * 2
            items.append(Curve(model.value, "across", f"level_{name}", **LOOKS[model]))
    if entered is not None and limits[0] <= entered <= limits[1]:
        items.append(Level("Your ε", entered, upright=True, dash="longdash"))
    marked = tuple((float(epsilon), wording.entered(float(epsilon))) for epsilon in epsilons)
    return Plot(
        "factorisation-errors",
        "Test error over ε",
        f"At the largest ε, {_least(result)} has the smallest error of the private models; all errors fall as ε grows.",
        Axis("privacy budget ε", "", limits, marked=marked),
        Axis("test error (RMSE)", scale=Scale.LINEAR, number=".4f"),
        columns,
        tuple(items),
        kind,
        guides=guides,
        main=True,
    )


def _least(result: StudyResult) -> str:
    errors = {kind: result.mean(kind)[0][:, 0] for kind in (*MEANS, *SCHEMES)}
    there = [
        at for at in range(len(result.study.epsilons)) if np.isfinite([e[at] for e in errors.values()]).all()
    ]
    if not there:
        return "no model"
    return min(errors, key=lambda kind: float(errors[kind][there[-1]])).value


# --- rare and popular items ---------------------------------------------------------------------------------


def buckets(found: FactorisationFound, recall: bool = False) -> Plot:
    """Differences to uniform sampling by popularity, paired by seed, at the trained epsilon nearest to that asked."""
    result, at = found.result, found.at
    assert result is not None
    assert at is not None
    columns: dict[str, npt.ArrayLike] = {"items": ["All", *BUCKET_NAMES]}
    guides: dict[str, npt.ArrayLike] = {"label": ["All<br>items", *bucket_labels(found.table.spreads)]}
    items: list[Item] = []
    for model in (Kind.TAIL, Kind.ADAPTIVE):
        mean, half = (
            part[at]
            for part in result.difference(model, Kind.UNIFORM, result.recall if recall else result.rmse)
        )
        name = model.name.lower()
        columns |= {f"difference_{name}": mean, f"half_interval_{name}": half}
        low, high = mean - np.nan_to_num(half), mean + np.nan_to_num(half)
        guides |= {f"low_{name}": low, f"high_{name}": high}
        items.append(
            Bars(
                model.value,
                "label",
                f"difference_{name}",
                LOOKS[model]["look"],
                low=f"low_{name}",
                high=f"high_{name}",
                opacity=0.8,
                also=(("half of the interval", f"half_interval_{name}"),),
            )
        )
    what, better = ("recall", "above 0 is better") if recall else ("RMSE", "below 0 is better")
    rarest = float(np.asarray(columns["difference_adaptive"])[1])
    return Plot(
        f"factorisation-buckets-{'recall' if recall else 'rmse'}",
        f"{'Recall' if recall else 'Error'} against uniform sampling, rare to popular",
        f"On the rarest fifth of items adaptive weights change {what} by {rarest:+.4f} against uniform sampling."
        if np.isfinite(rarest)
        else f"Differences of {what} to uniform sampling by popularity.",
        _fifths(f" (ε = {wording.entered(result.study.epsilons[at])})"),
        Axis(
            f"difference of {what}",
            scale=Scale.LINEAR,
            title=f"Difference of {what} to uniform ({better})",
            number="+.4f",
        ),
        columns,
        tuple(items),
        found.table.disclosure,
        guides=guides,
        main=True,
    )


# --- neighbours ---------------------------------------------------------------------------------------------


def overlaps(result: StudyResult, at: int) -> dict[Kind, FloatArray]:
    """Mean share of an item's nearest items that it has in common with the model without privacy, by bucket."""
    reference = result.models.get((Kind.NO_PRIVACY, 0.0))
    found: dict[Kind, FloatArray] = {}
    if reference is None:
        return found
    buckets = buckets_of(result.train_counts)
    for kind in SCHEMES:
        model = result.models.get((kind, result.study.epsilons[at]))
        if model is None or model.item_vectors.shape[1] < 2:
            continue
        each = overlap(model, reference, np.arange(buckets.size), OVERLAP)
        found[kind] = np.array([each[buckets == bucket].mean() for bucket in range(BUCKETS)])
    return found


def nearest_items(found: FactorisationFound, shared: Mapping[Kind, FloatArray]) -> Plot:
    """Figure 11 of the paper: overlap of nearest items with the model without privacy, and what chance gives."""
    result, at = found.result, found.at
    assert result is not None
    assert at is not None
    best = max((float(values.max()) for values in shared.values()), default=0.0)
    chance = min(OVERLAP / max(result.train_counts.size - 1, 1), 1.0)
    columns: dict[str, npt.ArrayLike] = {"bucket": list(BUCKET_NAMES)}
    items: list[Item] = []
    for model, values in shared.items():
        column = f"overlap_{SCHEMES[model].value}"
        columns[column] = values
        items.append(Curve(SCHEME_NAMES[SCHEMES[model]], "label", column, **LOOKS[model]))
    return Plot(
        "factorisation-overlap",
        "Nearest items in common with the model without privacy",
        f"Of an item's {OVERLAP} nearest items at most {wording.percent(best)} are those of the model without privacy; "
        f"chance alone gives {wording.percent(chance)}.",
        _fifths(f" (ε = {wording.entered(result.study.epsilons[at])})"),
        Axis(f"of the {OVERLAP} nearest, in common", scale=Scale.PERCENT, number=".1%"),
        columns,
        (*items, Level("Chance", chance, dash="dash")),
        found.table.disclosure,
        guides={"label": bucket_labels(found.table.spreads)},
        height=320,
    )
