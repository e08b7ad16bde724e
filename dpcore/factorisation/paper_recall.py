"""Figures 2, 4, 7, 10 and 11 and tables 3 and 4 of Krichene et al. 2023: what is recommended from implicit feedback."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from dpcore.answer import Axis, Look, Scale
from dpcore.answer.paper_figure import Line, PaperFigure
from dpcore.contributions import FloatArray
from dpcore.factorisation import implicit_study
from dpcore.factorisation.generator import GeneratedRatings
from dpcore.factorisation.implicit import ImplicitSettings, chosen
from dpcore.factorisation.implicit_study import RECOMMENDERS, ImplicitResult, ImplicitStudy, Recommender
from dpcore.factorisation.measures import BUCKETS, buckets_of, nearest, overlap_of
from dpcore.factorisation.paper import EPSILONS, EXPONENT, EXPONENTS, FIFTHS, OF_EXPONENT, PAPER
from dpcore.factorisation.ratings import Ratings

MOVIES = GeneratedRatings(8_000, 1_200, 73.0, choice_spread=1.5)
"""As many users for an item and choices for a user as in MovieLens 20M: 136,677 users, 20,108 items and 9.99 million
choices (table 1)."""
SONGS = GeneratedRatings(10_000, 720, 59.0, choice_spread=1.5)
"""The same of the Million Song Data: 571,355 users, 41,140 songs, 33.63 million choices."""
SETTING = (
    "A tenth of the users is held out, and a fifth of what these chose is to be recalled. δ = 1e-5. Dimension 8, 3 "
    "sweeps, 50 items per user, α₀ = 0.5 and the ridges are this program's, as are 8 sweeps and a smaller α₀ without "
    "privacy; the paper leaves its own to its code."
)
FILMS = (
    "The paper has MovieLens 20M: these are 8,000 generated users of 1,200 items with 73 choices each, by popularity "
    f"and by taste of rank 6. {SETTING}"
)
SONG_DATA = (
    "The paper has the Million Song Data: these are 10,000 generated users of 720 items with 59 choices each, by "
    f"popularity and by taste of rank 6. {SETTING}"
)
KEPT = {
    Recommender.UNIFORM: ("Uniform sampling", Look.OWN, "square"),
    Recommender.TAIL: ("Tail sampling", Look.CAP, "diamond"),
    Recommender.ADAPTIVE: ("Adaptive weights", Look.SMOOTH, "circle"),
    Recommender.PRIVATE_POPULAR: ("DP most popular", Look.PRIVACY, "star"),
    Recommender.NO_PRIVACY: ("Factorisation, no privacy", Look.SAMPLING, "triangle-up"),
}
FREE = ImplicitSettings(dimension=8, sweeps=8, unobserved=0.1)
"""Without privacy: it recalls most on such users, of dimensions 8 to 16 and α₀ from 0.1 to 0.5."""
SCHEMES = (Recommender.UNIFORM, Recommender.TAIL, Recommender.ADAPTIVE)
LOOKED_AT = (1.0, 20.0)
"""The ε at which nearest items are compared: the paper's, and one at which there is more to see."""
NEAR, NEIGHBOURS = 20, 6
"""Nearest items in figure 11, and in tables 3 and 4."""


@functools.lru_cache(maxsize=2)
def _choices(of: GeneratedRatings, seed: int) -> tuple[Ratings, FloatArray]:
    ratings, traits = of.draw_with_traits(np.random.default_rng(seed))
    return chosen(ratings), traits.astype(np.float64)


@dataclass(frozen=True, eq=False)
class Recalls:
    """Recall of all models on some choices, each computed once.

    Attributes:
        choices: The choices of a seed, and the planted traits of the items, shape (num_items, rank); None without
            traits.
        free: Settings of the model without privacy.
        known: What was computed, by what was asked.
        alike: Likewise of nearest items.
    """

    choices: Callable[[int], tuple[Ratings, FloatArray | None]]
    free: ImplicitSettings = FREE
    known: dict[tuple[object, ...], dict[Recommender, FloatArray]] = field(default_factory=dict)
    alike: dict[int, dict[str, tuple[FloatArray, FloatArray]]] = field(default_factory=dict)

    def _run(
        self, epsilons: tuple[float, ...], exponent: float, seed: int, compared: tuple[Recommender, ...]
    ) -> ImplicitResult:
        asked = ImplicitStudy(
            epsilons=epsilons, exponent=exponent, repeats=1, seed=seed, compared=compared, reference=self.free
        )
        return implicit_study.run(self.choices(seed)[0], asked)

    def of(
        self, epsilon: float, exponent: float, seed: int, compared: tuple[Recommender, ...]
    ) -> dict[Recommender, FloatArray]:
        """Recall over all items and then in each fifth, rarest first, of each model that is asked for."""
        asked = (epsilon, exponent, seed, compared)
        if asked not in self.known:
            found = self._run((epsilon,), exponent, seed, compared).recall[:, 0, 0]
            self.known[asked] = {model: found[RECOMMENDERS.index(model)] for model in compared}
        return self.known[asked]

    def over_epsilon(self, epsilon: float, seed: int) -> dict[str, float]:
        """A run of figures 2 and 7."""
        private = tuple(model for model in KEPT if model.is_private)
        found = self.of(epsilon, 0.25, seed, private) | self.of(1.0, 0.25, seed, (Recommender.NO_PRIVACY,))
        return {model.name.lower(): float(recall[0]) for model, recall in found.items()}

    def over_exponent(self, exponent: float, seed: int) -> dict[str, float]:
        """A run of figure 10."""
        asked = (Recommender.ADAPTIVE,)
        return {
            f"adaptive_{e:g}": float(self.of(e, exponent, seed, asked)[Recommender.ADAPTIVE][0])
            for e in OF_EXPONENT
        }

    def by_fifth(self, fifth: float, seed: int) -> dict[str, float]:
        """A run of figure 4's recall."""
        quarter = self.of(5.0, 0.25, seed, SCHEMES)
        half = self.of(5.0, 0.5, seed, (Recommender.ADAPTIVE,))[Recommender.ADAPTIVE]
        found = {model.name.lower(): float(recall[int(fifth)]) for model, recall in quarter.items()}
        return found | {"adaptive_half": float(half[int(fifth)])}

    def overlap(self, fifth: float, seed: int) -> dict[str, float]:
        """A run of figure 11."""
        return {name: float(shared[int(fifth) - 1]) for name, (shared, _) in self._nearest(seed).items()}

    def likeness(self, fifth: float, seed: int) -> dict[str, float]:
        """A run of table 3."""
        return {name: float(alike[int(fifth) - 1]) for name, (_, alike) in self._nearest(seed).items()}

    def _nearest(self, seed: int) -> dict[str, tuple[FloatArray, FloatArray]]:
        """Of each model, by fifth of the items: overlap with the one without privacy, likeness of planted traits."""
        if seed in self.alike:
            return self.alike[seed]
        free = self._run((1.0,), 0.25, seed, (Recommender.NO_PRIVACY,))
        private = self._run(LOOKED_AT, 1.0 / 3.0, seed, (Recommender.TAIL, Recommender.ADAPTIVE))
        reference = _unit(free.models[Recommender.NO_PRIVACY, 0.0].item_vectors)
        models = {"no_privacy": reference}
        models |= {
            f"{k.name.lower()}_{e:g}": _unit(one.item_vectors) for (k, e), one in private.models.items()
        }
        planted = self.choices(seed)[1]
        traits = np.full((reference.shape[0], 1), np.nan) if planted is None else _unit(planted)
        buckets, items = buckets_of(free.train_counts), np.arange(reference.shape[0])

        def by_fifth(each: FloatArray) -> FloatArray:
            return np.array([each[buckets == bucket].mean() for bucket in range(BUCKETS)])

        for name, vectors in models.items():
            near = nearest(vectors, items, NEIGHBOURS)
            likeness = np.einsum("id,ind->in", traits, traits[near]).mean(axis=1)
            shared = overlap_of(vectors, reference, items, NEAR)
            self.alike.setdefault(seed, {})[name] = (by_fifth(shared), by_fifth(likeness))
        return self.alike[seed]


def _unit(vectors: FloatArray) -> FloatArray:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-300))


OF_FILMS = Recalls(lambda seed: _choices(MOVIES, seed))
OF_SONGS = Recalls(lambda seed: _choices(SONGS, seed))

RECALL = Axis("recall at 20", scale=Scale.LINEAR)
NEAREST_LINES = tuple(
    Line(
        f"{kind}_{epsilon:g}",
        f"{name}, ε = {epsilon:g}",
        look,
        symbol,
        "solid" if epsilon == 1.0 else "dash",
    )
    for epsilon in LOOKED_AT
    for kind, name, look, symbol in (
        ("tail", "Tail sampling", Look.CAP, "diamond"),
        ("adaptive", "Adaptive weights, μ = 1/3", Look.SMOOTH, "circle"),
    )
)
_MOVIES_FIGURE = PaperFigure(
    "krichene-figure-2",
    PAPER,
    "Figure 2",
    "recall of a recommender over ε, implicit feedback",
    FILMS,
    "Factorisation",
    "Implicit feedback",
    Axis("privacy budget ε", "", (0.9, 22.0), marked=tuple((e, f"{e:g}") for e in EPSILONS)),
    RECALL,
    EPSILONS,
    tuple(Line(model.name.lower(), name, look, symbol) for model, (name, look, symbol) in KEPT.items()),
    OF_FILMS.over_epsilon,
    10,
    "The paper says that adaptive weights are best at every ε. "
    "Here they are from ε = 5 on. At ε = 1 noise hides taste, and no scheme recalls more than what is popular "
    "by noisy counts, a baseline that the paper lacks: it has seventeen times as many users.",
)
FIGURES = (
    _MOVIES_FIGURE,
    PaperFigure(
        "krichene-figure-4-recall",
        PAPER,
        "Figure 4 (b)",
        "recall by popularity of the item, implicit feedback",
        "ε = 5, where the paper has ε = 1, at which nothing is learned of rare items from so few users. k falls from "
        f"100 on the rarest fifth to 20 on the most chosen. {FILMS}",
        "Factorisation",
        "Implicit feedback",
        FIFTHS,
        replace(RECALL, name="recall at k"),
        tuple(float(n) for n in range(1, BUCKETS + 1)),
        (
            Line("uniform", "Uniform sampling", Look.OWN, "square"),
            Line("tail", "Tail sampling", Look.CAP, "diamond"),
            Line("adaptive", "Adaptive weights, μ = 1/4", Look.SMOOTH, "circle"),
            Line("adaptive_half", "Adaptive weights, μ = 1/2", Look.SMOOTH, "circle", "dash"),
        ),
        OF_FILMS.by_fifth,
        10,
        "The paper says that larger μ are better on the rare fifths and worse on the most popular one. "
        "So it is here, and μ = 1/2 recalls more than tail sampling on every fifth but that one.",
    ),
    replace(
        _MOVIES_FIGURE,
        key="krichene-figure-7",
        item="Figure 7",
        title="recall over ε, a catalogue of songs",
        setting=SONG_DATA,
        run=OF_SONGS.over_epsilon,
        differs="The paper says that adaptive weights are best at every ε. "
        "Here they are at ε = 5 and 10, and "
        "alike with tail sampling at 20. At ε = 1 what is popular by noisy counts is best, a baseline that the paper "
        "lacks; it has 57 times as many users.",
    ),
    PaperFigure(
        "krichene-figure-10",
        PAPER,
        "Figure 10",
        "recall over the exponent μ, implicit feedback",
        f"ε = 1, 5 and 20. {FILMS}",
        "Factorisation",
        "Implicit feedback",
        EXPONENT,
        RECALL,
        EXPONENTS,
        tuple(
            Line(f"adaptive_{epsilon:g}", f"Adaptive weights, ε = {epsilon:g}", Look.SMOOTH, "circle", dash)
            for epsilon, dash in OF_EXPONENT.items()
        ),
        OF_FILMS.over_exponent,
        10,
        "The paper says that μ = 1/4 is best, and with least squares 1/4 to 1/2 about as good. "
        "So it is here at ε = 20; at ε = 1 and 5, where more noise meets fewer users, smaller μ are better.",
    ),
    PaperFigure(
        "krichene-figure-11",
        PAPER,
        "Figure 11",
        "nearest items in common with the model without privacy",
        f"Of the 20 nearest items by the cosine of item vectors, as in the paper's code. {FILMS}",
        "Factorisation",
        "Nearest items",
        FIFTHS,
        Axis("of the 20 nearest, in common", "", (0.0, 0.5), Scale.PERCENT),
        tuple(float(n) for n in range(1, BUCKETS + 1)),
        NEAREST_LINES,
        OF_FILMS.overlap,
        10,
        "The paper says that adaptive weights share more with the model without privacy than tail sampling does. "
        "So it is here at ε = 20, on every fifth. At ε = 1 both share what chance gives, 20 of 1,199: so few "
        "users teach nothing of an item's neighbours.",
    ),
    PaperFigure(
        "krichene-table-3",
        PAPER,
        "Table 3",
        "how alike the six nearest items are",
        f"The paper lists the six nearest films of five films, here and in table 4. Generated items have no names, but "
        f"their planted traits are known: the cosine of an item's traits and those of its six nearest, 1 for the same "
        f"and 0 for nothing in common, averaged over a fifth of the items. {FILMS}",
        "Factorisation",
        "Nearest items",
        FIFTHS,
        Axis("likeness of planted traits", scale=Scale.LINEAR),
        tuple(float(n) for n in range(1, BUCKETS + 1)),
        (Line("no_privacy", "Without privacy", Look.SAMPLING, "triangle-up"), *NEAREST_LINES),
        OF_FILMS.likeness,
        10,
        "The paper says that neighbours without privacy and by adaptive weights are of the same kind of film, and tail "
        "sampling's more often not, most of all for rare films. So it is here at ε = 20; at ε = 1 nothing is learned.",
    ),
)
"""Recall, and nearest items, at the paper's setting."""
