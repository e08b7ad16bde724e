"""Figures 1, 3, 4 and 9 of Krichene et al. 2023: the error of a recommender over ε, the exponent and popularity."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from dpcore.answer import Axis, Style, linear_axis, share_axis
from dpcore.answer.paper_figure import Line, PaperFigure
from dpcore.factorisation.generator import GeneratedRatings
from dpcore.factorisation.measures import BUCKETS
from dpcore.factorisation.model import FactorSettings, RatingRange
from dpcore.factorisation.ratings import Ratings
from dpcore.factorisation.study import MODEL_KINDS, SCHEMES, ModelKind, Study, run

PAPER = "Krichene et al. 2023"
EPSILONS = (1.0, 5.0, 10.0, 20.0)
DASHES = {1.0: "solid", 5.0: "dash", 20.0: "dashdot"}
"""The ε of figure 3 as it is drawn here, with their dash patterns."""
EXPONENTS = (0.0, 0.125, 0.25, 0.375, 0.5, 0.75, 1.0)
SETTINGS = "Ranks, ridges and items per user are this program's defaults."
RATINGS = (
    "The paper has MovieLens 10M, whose data may not be passed on: these are 6,000 generated users with about 600,000 "
    f"ratings of 3,700 items, a tenth of them held out; δ = 1e-5. {SETTINGS}"
)
MODEL_STYLES = {
    ModelKind.UNIFORM: ("Uniform sampling", Style.ENTERED, "square"),
    ModelKind.TAIL: ("Tail sampling", Style.CAP, "diamond"),
    ModelKind.ADAPTIVE: ("Adaptive weights", Style.SMOOTH, "circle"),
    ModelKind.PRIVATE_OFFSETS: ("DP item means, users' own offsets", Style.PRIVACY, "star"),
    ModelKind.NO_PRIVACY: ("Factorisation, no privacy", Style.SAMPLING, "triangle-up"),
}


@functools.lru_cache(maxsize=2)
def _draw_ratings(seed: int) -> Ratings:
    """Draw the generated ratings of a seed, once."""
    return GeneratedRatings().draw(np.random.default_rng(seed))


@dataclass(frozen=True, eq=False)
class Errors:
    """Errors of all models on some ratings, each computed once.

    Attributes:
        ratings: The table of a seed.
        limits: Public range of its ratings.
        cache: What was computed, by what was asked.
    """

    ratings: Callable[[int], Ratings]
    limits: RatingRange
    cache: dict[tuple[object, ...], dict[ModelKind, tuple[float, ...]]] = field(default_factory=dict)

    def compute(
        self, epsilon: float, exponent: float, seed: int, all_models: bool = False
    ) -> dict[ModelKind, tuple[float, ...]]:
        """Compute the RMSE of all models, or of the three schemes, over all items and in each fifth, rarest first."""
        key = (epsilon, exponent, seed, all_models)
        if key not in self.cache:
            study = Study(
                epsilons=(epsilon,),
                exponent=exponent,
                repeats=1,
                seed=seed,
                limits=self.limits,
                with_recall=False,
            )
            if not all_models:  # The one without privacy is not drawn.
                study = replace(study, reference=FactorSettings(dimension=1, sweeps=1))
            rmse = run(self.ratings(seed), study).rmse
            model_kinds = MODEL_STYLES if all_models else SCHEMES
            self.cache[key] = {
                model_kind: tuple(rmse[MODEL_KINDS.index(model_kind), 0, 0].tolist())
                for model_kind in model_kinds
            }
        return self.cache[key]

    def run_figure_1(self, epsilon: float, seed: int) -> dict[str, float]:
        """Run figure 1."""
        return {
            model_kind.name.lower(): errors[0]
            for model_kind, errors in self.compute(epsilon, 0.25, seed, True).items()
        }

    def run_figure_3(self, exponent: float, seed: int) -> dict[str, float]:
        """Run figure 3."""
        return {f"adaptive_{e:g}": self.compute(e, exponent, seed)[ModelKind.ADAPTIVE][0] for e in DASHES}

    def run_figure_4(self, fifth: float, seed: int) -> dict[str, float]:
        """Run figure 4."""
        errors_at_quarter, errors_at_half = (self.compute(1.0, exponent, seed) for exponent in (0.25, 0.5))
        results = {
            model_kind.name.lower(): errors[int(fifth)] for model_kind, errors in errors_at_quarter.items()
        }
        return results | {"adaptive_half": errors_at_half[ModelKind.ADAPTIVE][int(fifth)]}

    def run_figure_9(self, fifth: float, seed: int) -> dict[str, float]:
        """Run figure 9."""
        results = {}
        for epsilon in DASHES:
            errors = self.compute(epsilon, 0.25, seed)
            results[f"gain_{epsilon:g}"] = (
                1.0 - errors[ModelKind.ADAPTIVE][int(fifth)] / errors[ModelKind.TAIL][int(fifth)]
            )
        return results


GENERATED = Errors(_draw_ratings, RatingRange())

FIFTH_NAMES = ("rarest", "2nd fifth", "middle", "4th fifth", "most rated")
FIFTHS = linear_axis(
    "fifth of the items, by how often they were rated",
    (0.8, BUCKETS + 0.2),
    named_ticks=tuple(enumerate(FIFTH_NAMES, 1)),
)
FIFTH = tuple(1.0 + at for at in range(BUCKETS))
RMSE = linear_axis("root mean squared error", unit="rating points")
EXPONENT = linear_axis("exponent μ", (-0.03, 1.03))

FIGURES = (
    PaperFigure(
        "krichene-figure-1",
        PAPER,
        "Figure 1",
        "error of a recommender over ε",
        RATINGS,
        "Factorisation",
        "",
        Axis("privacy budget ε", "", (0.9, 22.0), named_ticks=tuple((e, f"{e:g}") for e in EPSILONS)),
        RMSE,
        EPSILONS,
        tuple(
            Line(kind.name.lower(), name, look, symbol) for kind, (name, look, symbol) in MODEL_STYLES.items()
        ),
        GENERATED.run_figure_1,
        10,
        "The paper says that adaptive weights are best. "
        "On these ratings they are from ε = 5 on, and at ε = 1 the three schemes are alike; on MovieLens 1M "
        "they are best at every ε. The paper lacks the baseline of item means with users' own "
        "offsets, which cost no further privacy: it is ahead of every private factorisation on both.",
    ),
    PaperFigure(
        "krichene-figure-3",
        PAPER,
        "Figure 3",
        "error of a recommender over the exponent μ",
        f"ε = 1, 5 and 20. {RATINGS}",
        "Factorisation",
        "",
        EXPONENT,
        RMSE,
        EXPONENTS,
        tuple(
            Line(f"adaptive_{epsilon:g}", f"Adaptive weights, ε = {epsilon:g}", Style.SMOOTH, "circle", dash)
            for epsilon, dash in DASHES.items()
        ),
        GENERATED.run_figure_3,
        10,
        "The paper says that μ between 1/4 and 1/2 is typically best, and that μ = 1 is clearly worse. "
        "The second holds here. The first does not on these generated ratings, where small μ are best. The "
        "ratings make the difference: on MovieLens 1M, 1/4 is best at ε = 5 and 20, and "
        "1/8 at ε = 1.",
    ),
    PaperFigure(
        "krichene-figure-4",
        PAPER,
        "Figure 4",
        "error by popularity of the item",
        f"ε = 1. {RATINGS}",
        "Factorisation",
        "Rare and popular items",
        FIFTHS,
        RMSE,
        FIFTH,
        (
            Line("uniform", "Uniform sampling", Style.ENTERED, "square"),
            Line("tail", "Tail sampling", Style.CAP, "diamond"),
            Line("adaptive", "Adaptive weights, μ = 1/4", Style.SMOOTH, "circle"),
            Line("adaptive_half", "Adaptive weights, μ = 1/2", Style.SMOOTH, "circle", "dash"),
        ),
        GENERATED.run_figure_4,
        10,
        "The paper says that larger μ are better on the two rarest fifths and worse on the most rated one. "
        "The second holds here; on the rarest fifths μ = 1/4 is a little better than tail sampling and than μ = 1/2. "
        "The ratings make the difference: on MovieLens 1M both hold.",
    ),
    PaperFigure(
        "krichene-figure-9",
        PAPER,
        "Figure 9",
        "what adaptive weights gain over tail sampling, by popularity",
        "Share by which the error is lower, with μ = 1/4, at ε = 1, 5 and 20. The paper's numbers are those of its "
        "appendix D.2, at ε = 1: at least so much for every μ that it draws; of the middle fifth it prints none. "
        f"{RATINGS}",
        "Factorisation",
        "Rare and popular items",
        FIFTHS,
        share_axis("error below tail sampling's", (-0.02, 0.26)),
        FIFTH,
        tuple(
            Line(
                f"gain_{epsilon:g}",
                f"Adaptive weights, ε = {epsilon:g}",
                Style.SMOOTH,
                "circle",
                dash,
                paper_values=(0.216, 0.237, None, 0.228, 0.084) if epsilon == 1.0 else (),
            )
            for epsilon, dash in DASHES.items()
        ),
        GENERATED.run_figure_9,
        10,
        "The paper gains a fifth at ε = 1; ours is below a hundredth there, and a small loss on the most rated items. "
        "Smaller ridges, which make rare items err more, bring it no nearer: why is open. At ε = 20 it is about a "
        "hundredth everywhere.",
    ),
)
