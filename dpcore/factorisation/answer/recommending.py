"""What a training on implicit feedback says: recall over epsilon as a figure, and one sentence."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.answer import Axis, Curve, Item, Look, Plot, Scale
from dpcore.common import wording
from dpcore.common.privacy import Provenance
from dpcore.factorisation.answer.found import FEWEST_SEEDS
from dpcore.factorisation.implicit_study import RECOMMENDERS, ImplicitResult, Recommender
from dpcore.factorisation.measures import RECALL_AT

LOOKS: dict[Recommender, dict[str, Any]] = {
    Recommender.UNIFORM: {"look": Look.OWN, "dash": "solid", "width": 2, "symbol": "square"},
    Recommender.TAIL: {"look": Look.SAMPLING, "symbol": "triangle-up"},
    Recommender.ADAPTIVE: {"look": Look.CAP, "symbol": "circle"},
    Recommender.PRIVATE_POPULAR: {"look": Look.SMOOTH, "symbol": "diamond"},
    Recommender.POPULAR: {"look": Look.USUAL, "dash": "dot"},
    Recommender.NO_PRIVACY: {"look": Look.PRIVACY},
}
BASELINE, FACTORISATION = Recommender.PRIVATE_POPULAR, Recommender.ADAPTIVE
"""What the sentence compares, declared before any training: one comparison, so that its interval is what it says."""


def recall(result: ImplicitResult, kind: Provenance) -> Plot:
    """Recall over epsilon, private models with intervals, and those without privacy across."""
    epsilons = np.array(result.study.epsilons)
    limits = float(epsilons.min()) / 1.5, float(epsilons.max()) * 1.5
    columns: dict[str, npt.ArrayLike] = {"epsilon": epsilons}
    guides: dict[str, npt.ArrayLike] = {"across": list(limits)}
    items: list[Item] = []
    for model in RECOMMENDERS:
        found = result.over_seeds(model)
        mean, half = found.mean[:, 0], np.nan_to_num(found.half_width[:, 0])
        name = model.name.lower()
        if not np.isfinite(mean).any():
            continue
        columns |= {f"recall_{name}": mean, f"half_interval_{name}": found.half_width[:, 0]}
        if model.is_private:
            guides |= {f"low_{name}": mean - half, f"high_{name}": mean + half}
            ends: dict[str, Any] = {"low": f"low_{name}", "high": f"high_{name}"}
            items.append(Curve(model.value, "epsilon", f"recall_{name}", **LOOKS[model], **ends))
        else:
            guides[f"level_{name}"] = [float(mean[0])] * 2
            items.append(Curve(model.value, "across", f"level_{name}", **LOOKS[model]))
    marked = tuple((float(epsilon), wording.entered(float(epsilon))) for epsilon in epsilons)
    return Plot(
        "factorisation-recall",
        f"Recall at {RECALL_AT} over ε",
        sentence(result, float(epsilons[-1])).replace("**", ""),
        Axis("privacy budget ε", "", limits, marked=marked),
        Axis(f"recall at {RECALL_AT}", scale=Scale.LINEAR, number=".3f"),
        columns,
        tuple(items),
        kind,
        guides=guides,
    )


def sentence(result: ImplicitResult, epsilon: float) -> str:
    """Whether a factorisation recommends better than what is popular, at the trained epsilon nearest to one."""
    reached = np.isfinite(result.difference(FACTORISATION, BASELINE).mean[:, 0])
    if not reached.any():
        return "Nothing is trained yet that could be compared."
    there = [at for at in range(reached.size) if reached[at]]
    at = min(there, key=lambda place: abs(math.log(result.study.epsilons[place] / epsilon)))
    apart = result.difference(FACTORISATION, BASELINE)
    gain, half, seeds = float(apart.mean[at, 0]), float(apart.half_width[at, 0]), int(apart.runs[at, 0])
    ours, theirs = (float(result.over_seeds(model).mean[at, 0]) for model in (FACTORISATION, BASELINE))
    spread = f" ± {half:.3f}" if math.isfinite(half) else ""
    said = f"{ours:.3f} against {theirs:.3f}, a difference of {gain:+.3f}{spread}".replace("-", "−")
    where = f"At ε = {wording.entered(result.study.epsilons[at])}"
    if seeds < FEWEST_SEEDS or not abs(gain) > half:
        few = (
            ""
            if seeds >= FEWEST_SEEDS
            else f" Train at least {FEWEST_SEEDS} seeds: with fewer nothing is clear."
        )
        return f"{where} it is **not clear** whether factorising recommends better than what is popular: {said}.{few}"
    if gain > 0.0:
        return f"{where}, **factorise with adaptive weights**: it recalls more than what is popular, {said}."
    return f"{where}, **recommend what is popular**, by noisy counts: factorising recalls less, {said}."
