"""Recall over epsilon of a training on implicit feedback: a plot and a sentence."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.answer import Axis, Curve, Item, Plot, Scale, Style
from dpcore.common import wording
from dpcore.common.privacy import Provenance
from dpcore.factorisation.answer.found import MIN_SEEDS
from dpcore.factorisation.answer.words import FEW_SEEDS
from dpcore.factorisation.implicit_study import RECOMMENDERS, ImplicitResult, Recommender
from dpcore.factorisation.measures import RECALL_SIZE

MODEL_STYLES: dict[Recommender, dict[str, Any]] = {
    Recommender.UNIFORM: {"style": Style.ENTERED, "dash": "solid", "width": 2, "symbol": "square"},
    Recommender.TAIL: {"style": Style.SAMPLING, "symbol": "triangle-up"},
    Recommender.ADAPTIVE: {"style": Style.CAP, "symbol": "circle"},
    Recommender.PRIVATE_POPULAR: {"style": Style.SMOOTH, "symbol": "diamond"},
    Recommender.POPULAR: {"style": Style.CUSTOMARY, "dash": "dot"},
    Recommender.NO_PRIVACY: {"style": Style.PRIVACY},
}
BASELINE, FACTORISATION = Recommender.PRIVATE_POPULAR, Recommender.ADAPTIVE
"""The one comparison of the sentence, declared before any training, so that its interval holds."""


def plot_recall(result: ImplicitResult, disclosure: Provenance) -> Plot:
    """Plot recall over epsilon, private models with intervals, and models without privacy as levels."""
    epsilons = np.array(result.study.epsilons)
    limits = float(epsilons.min()) / 1.5, float(epsilons.max()) * 1.5
    columns: dict[str, npt.ArrayLike] = {"epsilon": epsilons}
    guides: dict[str, npt.ArrayLike] = {"across": list(limits)}
    items: list[Item] = []
    for model in RECOMMENDERS:
        summary_over_seeds = result.summarise(model)
        mean, half_width = summary_over_seeds.mean[:, 0], np.nan_to_num(summary_over_seeds.half_width[:, 0])
        name = model.name.lower()
        if not np.isfinite(mean).any():
            continue
        columns |= {f"recall_{name}": mean, f"half_interval_{name}": summary_over_seeds.half_width[:, 0]}
        if model.is_private:
            guides |= {f"low_{name}": mean - half_width, f"high_{name}": mean + half_width}
            interval: dict[str, Any] = {"low": f"low_{name}", "high": f"high_{name}"}
            items.append(Curve(model.value, "epsilon", f"recall_{name}", **MODEL_STYLES[model], **interval))
        else:
            guides[f"level_{name}"] = [float(mean[0])] * 2
            items.append(Curve(model.value, "across", f"level_{name}", **MODEL_STYLES[model]))
    ticks = tuple((float(epsilon), wording.entered(float(epsilon))) for epsilon in epsilons)
    return Plot(
        "factorisation-recall",
        f"Recall at {RECALL_SIZE} over ε",
        write_sentence(result, float(epsilons[-1])).replace("**", ""),
        Axis("privacy budget ε", "", limits, named_ticks=ticks),
        Axis(f"recall at {RECALL_SIZE}", scale=Scale.LINEAR, number_format=".3f"),
        columns,
        tuple(items),
        disclosure,
        guides=guides,
    )


def write_sentence(result: ImplicitResult, epsilon: float) -> str:
    """Write whether a factorisation recommends better than popularity, at the trained epsilon nearest to one."""
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
