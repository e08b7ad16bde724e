"""The figures of Krichene et al. 2023 about recommenders on ratings from the user's files: MovieLens."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dpcore.answer.paper_figure import OwnData, PaperFigure, Run
from dpcore.data import published
from dpcore.data.published import File
from dpcore.factorisation import paper, paper_recall
from dpcore.factorisation.implicit import ImplicitSettings, select_choices
from dpcore.factorisation.model import RatingRange
from dpcore.factorisation.paper import Errors
from dpcore.factorisation.paper_recall import Recalls
from dpcore.factorisation.ratings import Ratings

RUNS = 3
"""Splits and noises: MovieLens 1M takes minutes for each."""
EXPECTED_FILES = "MovieLens: `ratings.dat` of its 1M or 10M set, `ratings.csv`, or `u.data` of its 100K set"
STARS = 4.0
"""Ratings of at least so much are choices, as in the paper (Liang et al. 2018)."""
SETTINGS_WITHOUT_PRIVACY = ImplicitSettings(dimension=16, sweeps=8, unobserved=0.2)
"""Without privacy: of dimension 8 it recalled 0.28 on MovieLens 1M, where this recalls 0.32."""


def read_ratings(files: Sequence[File]) -> tuple[Ratings, RatingRange]:
    """Read the ratings of some files, and their range.

    Raises:
        InvalidInput: There are none, or somebody rated a film twice.
    """
    columns = published.ratings(files)
    lowest, highest = float(columns.values.min()), float(columns.values.max())
    return Ratings.from_columns(columns.users, columns.items, columns.values), RatingRange(lowest, highest)


def accept_files(figure: PaperFigure) -> PaperFigure:
    """Let a figure be made on the user's own ratings, where ratings are what it needs."""
    if figure.key not in paper.PAPER_CLAIMS and figure.key not in paper_recall.PAPER_CLAIMS:
        return figure
    return replace(figure, own_data=OwnData(EXPECTED_FILES, functools.partial(_apply_to_files, figure)))


def _apply_to_files(figure: PaperFigure, files: Sequence[File]) -> PaperFigure:
    """Make a figure on the ratings of the user's files."""
    ratings, limits = read_ratings(files)
    ratings_per_user = ratings.num_ratings / max(ratings.num_users, 1)
    data_text = (
        f"These are {ratings.num_ratings:,} ratings of {ratings.num_items:,} films by {ratings.num_users:,} "
        f"users, {np.round(ratings_per_user):g} on average"
    )
    if figure.key in paper.PAPER_CLAIMS:
        setting = f"{data_text}, a tenth of them held out; δ = 1e-5. {paper.SETTINGS}"
        run, claim = (
            _choose_error_run(figure.key, Errors(lambda _: ratings, limits)),
            paper.PAPER_CLAIMS[figure.key],
        )
    else:
        choices = select_choices(ratings, STARS)
        setting = (
            f"{data_text}; the {choices.num_ratings:,} of {STARS:g} stars and more are choices. "
            + paper_recall.SETTING
        )
        run, claim = (
            _choose_recall_run(figure.key, Recalls(lambda _: (choices, None), SETTINGS_WITHOUT_PRIVACY)),
            paper_recall.PAPER_CLAIMS[figure.key],
        )
    return replace(
        figure,
        setting=setting,
        run_once=run,
        num_runs=RUNS,
        difference_note=claim,
        dataset_name="these ratings",
    )


def _choose_error_run(key: str, errors: Errors) -> Run:
    """Return the run of a figure of errors."""
    return {
        "krichene-figure-1": errors.run_figure_1,
        "krichene-figure-3": errors.run_figure_3,
        "krichene-figure-4": errors.run_figure_4,
        "krichene-figure-9": errors.run_figure_9,
    }[key]


def _choose_recall_run(key: str, recalls: Recalls) -> Run:
    """Return the run of a figure of recall."""
    return {
        "krichene-figure-2": recalls.run_figure_2,
        "krichene-figure-4-recall": recalls.run_figure_4,
        "krichene-figure-10": recalls.run_figure_10,
        "krichene-figure-11": recalls.run_figure_11,
    }[key]
