"""The figures of Krichene et al. 2023 about recommenders on ratings that a person brings: MovieLens."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dpcore.answer.paper_figure import Brings, PaperFigure, Run
from dpcore.data import published
from dpcore.data.published import File
from dpcore.factorisation import paper, paper_recall
from dpcore.factorisation.implicit import ImplicitSettings, chosen
from dpcore.factorisation.model import RatingRange
from dpcore.factorisation.paper import Errors
from dpcore.factorisation.paper_recall import Recalls
from dpcore.factorisation.ratings import Ratings

RUNS = 3
"""Splits and noises: MovieLens 1M takes minutes for each."""
WHAT = "MovieLens: `ratings.dat` of its 1M or 10M set, `ratings.csv`, or `u.data` of its 100K set"
STARS = 4.0
"""Ratings of at least so much are choices, as in the paper (Liang et al. 2018)."""
FREE = ImplicitSettings(dimension=16, sweeps=8, unobserved=0.2)
"""Without privacy: of dimension 8 it recalled 0.28 on MovieLens 1M, where this recalls 0.32."""


def of_files(files: Sequence[File]) -> tuple[Ratings, RatingRange]:
    """The ratings, and the range that they have.

    Raises:
        InvalidInput: There are none, or somebody rated a film twice.
    """
    rated = published.ratings(files)
    lowest, highest = float(rated.values.min()), float(rated.values.max())
    return Ratings.from_columns(rated.users, rated.items, rated.values), RatingRange(lowest, highest)


def brought(of: PaperFigure) -> PaperFigure:
    """A figure with the way to make it on ratings that are brought, where ratings are what it needs."""
    if of.key not in paper.SAYS and of.key not in paper_recall.SAYS:
        return of
    return replace(of, brings=Brings(WHAT, functools.partial(_on_files, of)))


def _on_files(of: PaperFigure, files: Sequence[File]) -> PaperFigure:
    ratings, limits = of_files(files)
    per_user = ratings.num_ratings / max(ratings.num_users, 1)
    words = (
        f"These are {ratings.num_ratings:,} ratings of {ratings.num_items:,} films by {ratings.num_users:,} "
        f"users, {np.round(per_user):g} on average"
    )
    if of.key in paper.SAYS:
        setting = f"{words}, a tenth of them held out; δ = 1e-5. {paper.SETTINGS}"
        run, says = _of_errors(of.key, Errors(lambda _: ratings, limits)), paper.SAYS[of.key]
    else:
        choices = chosen(ratings, STARS)
        setting = (
            f"{words}; the {choices.num_ratings:,} of {STARS:g} stars and more are choices. "
            + paper_recall.SETTING
        )
        run, says = _of_recalls(of.key, Recalls(lambda _: (choices, None), FREE)), paper_recall.SAYS[of.key]
    return replace(of, setting=setting, run=run, runs=RUNS, differs=says, data="these ratings")


def _of_errors(key: str, errors: Errors) -> Run:
    return {
        "krichene-figure-1": errors.over_epsilon,
        "krichene-figure-3": errors.over_exponent,
        "krichene-figure-4": errors.by_fifth,
        "krichene-figure-9": errors.gains,
    }[key]


def _of_recalls(key: str, recalls: Recalls) -> Run:
    return {
        "krichene-figure-2": recalls.over_epsilon,
        "krichene-figure-4-recall": recalls.by_fifth,
        "krichene-figure-10": recalls.over_exponent,
        "krichene-figure-11": recalls.overlap,
    }[key]
