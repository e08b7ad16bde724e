"""The answer of a training on implicit feedback: recall over epsilon as a plot, and one sentence."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.answer import Plot, Style, linear_axis
from dpcore.common import wording
from dpcore.common.privacy import Provenance
from dpcore.factorisation.answer.found import MIN_SEEDS
from dpcore.factorisation.answer.plots import build_epsilon_axis, build_model_curve
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
            curves.append(build_model_curve(model, epsilons, mean, half_width, **MODEL_STYLES[model]))
    return Plot(
        "factorisation-recall",
        f"Recall at {RECALL_SIZE} over ε",
        write_sentence(result, float(epsilons[-1])).replace("**", ""),
        build_epsilon_axis(epsilons),
        linear_axis(f"recall at {RECALL_SIZE}", number_format=".3f"),
        curves,
        disclosure,
        columns,
    )


def write_sentence(result: ImplicitResult, epsilon: float) -> str:
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
        hint = (
            "" if seeds >= MIN_SEEDS else f" Train at least {MIN_SEEDS} seeds: with fewer nothing is clear."
        )
        return (
            f"{opening} it is **not clear** whether factorising recommends better than what is popular: "
            f"{comparison}.{hint}"
        )
    if gain > 0.0:
        return f"{opening}, **factorise with adaptive weights**: it recalls more than what is popular, {comparison}."
    return (
        f"{opening}, **recommend what is popular**, by noisy counts: factorising recalls less, {comparison}."
    )
