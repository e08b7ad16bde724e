"""Figures 1 and 3 of Krichene et al. 2023 on ratings that a person brings: MovieLens."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from dpcore.answer.paper_figure import Brings, PaperFigure
from dpcore.data import published
from dpcore.data.published import File
from dpcore.factorisation import study as ratings_study
from dpcore.factorisation.model import FactorSettings, RatingRange
from dpcore.factorisation.paper import KEPT, OF_EXPONENT
from dpcore.factorisation.ratings import Ratings
from dpcore.factorisation.study import KINDS, Kind, Study

RUNS = 3
"""Splits and noises: MovieLens 1M takes minutes for each."""
WHAT = "MovieLens: `ratings.dat` of its 1M or 10M set, `ratings.csv`, or `u.data` of its 100K set"


def of_files(files: Sequence[File]) -> tuple[Ratings, RatingRange]:
    """The ratings, and the range that they have.

    Raises:
        InvalidInput: There are none, or somebody rated a film twice.
    """
    rated = published.ratings(files)
    lowest, highest = float(rated.values.min()), float(rated.values.max())
    return Ratings.from_columns(rated.users, rated.items, rated.values), RatingRange(lowest, highest)


def errors(
    ratings: Ratings, limits: RatingRange, epsilon: float, exponent: float, seed: int, free: bool
) -> Mapping[Kind, float]:
    """RMSE of every model on held-out ratings; of those without privacy only where ``free``."""
    asked = Study(
        epsilons=(epsilon,), exponent=exponent, repeats=1, seed=seed, with_recall=False, limits=limits
    )
    if not free:
        asked = replace(asked, reference=FactorSettings(dimension=1, sweeps=1))
    rmse = ratings_study.run(ratings, asked).rmse
    return {kind: float(rmse[KINDS.index(kind), 0, 0, 0]) for kind in KEPT}


def brought(of: PaperFigure) -> PaperFigure:
    """Figure 1 or 3 with the way to make it on ratings that are brought."""
    return replace(of, brings=Brings(WHAT, functools.partial(_on_files, of)))


def _on_files(of: PaperFigure, files: Sequence[File]) -> PaperFigure:
    ratings, limits = of_files(files)

    def over_epsilon(epsilon: float, seed: int) -> Mapping[str, float]:
        return {
            kind.name.lower(): x for kind, x in errors(ratings, limits, epsilon, 0.25, seed, True).items()
        }

    def over_exponent(exponent: float, seed: int) -> Mapping[str, float]:
        found = {e: errors(ratings, limits, e, exponent, seed, False) for e in OF_EXPONENT}
        return {f"adaptive_{e:g}": x[Kind.ADAPTIVE] for e, x in found.items()}

    per_user = ratings.num_ratings / max(ratings.num_users, 1)
    return replace(
        of,
        setting=f"These are {ratings.num_ratings:,} ratings of {ratings.num_items:,} films by "
        f"{ratings.num_users:,} users, "
        f"{np.round(per_user):g} on average, a tenth of them held out; δ = 1e-5. Ranks, ridges and items per user are "
        "this program's defaults.",
        run=over_epsilon if of.key == "krichene-figure-1" else over_exponent,
        runs=RUNS,
        differs="The paper prints no numbers of this figure, and leaves its settings to its code.",
        data="these ratings",
    )
