"""The papers' figures on the papers' own data, which do not come with the app."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.papers import readers
from dpcore.answer.paper_figure import PaperFigure, Run
from dpcore.contributions import ContributionHistogram
from dpcore.data.samples import RegressionRows
from dpcore.data.totals_per_user import Amounts
from dpcore.data_owners.paper import AccuracyStudy
from dpcore.data_owners.study import Form
from dpcore.data_owners.training import LabelledRecords, TrainingOptions, scale_records
from dpcore.factorisation.implicit import ImplicitSettings, select_choices
from dpcore.factorisation.model import RatingRange
from dpcore.factorisation.paper_runs import CHOICE_STEPS, CHOICE_STUDY, DESCENT_RUNS, PaperRuns, run_both
from dpcore.factorisation.ratings import Ratings
from dpcore.factorisation.studies import RatingStudy
from dpcore.papers import find_figure
from dpcore.regression.study import compute_errors_on_rows
from dpcore.total.strategies import compute_relative_errors
from dpcore.training.bassily import StepSizeFormula, compute_losses
from dpcore.training.rows import ClassifierRows

NUM_PICTURES = 12_500
"""Pictures of a run: 10,000 to learn from, as in the paper, and 2,500 to test on."""
TRAINING = TrainingOptions(step_size=16.0, personal_steps=40)
"""Rate and steps for records of 196 grey values, chosen on other seeds than those shown."""
FASHION = {
    Form.SEPARATE: (0.8888, 0.8575, 0.8498, 0.7506, 0.6489, 0.6355),
    Form.NON_PRIVATE: (0.8759, 0.8301, 0.8232, 0.7676, 0.8010, 0.8242),
    Form.FULL: (0.4560, 0.4044, 0.5354, 0.6593, 0.6749, 0.6484),
    Form.JOINT: (0.4533, 0.4205, 0.5564, 0.6719, 0.6908, 0.6667),
}
"""Table 1 of Huang et al. 2023 for FashionMNIST, as printed."""
MOVIELENS_RUNS = 3
"""Splits and noises: MovieLens 1M takes minutes for each."""
STARS = 4.0
"""Lowest rating that is a choice, as in the paper (Liang et al. 2018)."""
WITHOUT_PRIVACY = ImplicitSettings(dimension=16, sweeps=8, unobserved_weight=0.2)
"""Dimension 8 recalls 0.28 on MovieLens 1M, this 0.32."""
SHARE_OF_STEPS = 0.015
"""The last ones of the learner's m² steps. With all of them the means of table 2 move within their intervals
(`benchmarks/training.md`)."""


def build_on_pictures(key: str, folder: Path) -> PaperFigure:
    """Build a figure of Huang et al. 2023 on MNIST or FashionMNIST, with a linear model."""
    figure, pictures = find_figure(key), readers.read_pictures(folder)

    @functools.lru_cache(maxsize=2)
    def draw_records(seed: int) -> LabelledRecords:
        """Draw pictures, as means of 2 x 2 pixels."""
        rows = np.random.default_rng((seed, 28)).permutation(pictures.labels.size)[:NUM_PICTURES]
        means = pictures.pixels[rows].reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4)).reshape(-1, 196)
        return LabelledRecords(scale_records(means), pictures.labels[rows], 10, pictures.name)

    study = AccuracyStudy(draw_records, TRAINING)
    runs = {
        "huang-table-1": study.run_table_1,
        "huang-figure-1": study.run_figure_1,
        "huang-table-4": study.run_table_4,
    }
    lines = figure.lines
    if pictures.name != "MNIST":
        printed = FASHION if pictures.name == "FashionMNIST" and key == "huang-table-1" else {}
        by_key = {form.value: numbers for form, numbers in printed.items()}
        lines = tuple(
            replace(line, paper_values=by_key.get(line.key, ()), paper_spreads=()) for line in lines
        )
    return replace(figure, title=f"{figure.title}, on {pictures.name}", run_once=runs[key], lines=lines)


def build_on_ratings(key: str, folder: Path) -> PaperFigure:
    """Build a figure about a recommender, or about the number of ratings, on MovieLens."""
    figure = find_figure(key)
    users, films, values = readers.read_ratings(folder)
    title = f"{figure.title}, on {values.size:,} ratings by {users.max() + 1:,} users"
    if key == "amin-figure-1":
        amounts = Amounts.from_histogram(ContributionHistogram.from_counts(np.bincount(users)))
        return replace(
            figure,
            title=title,
            run_once=lambda epsilon, _: compute_relative_errors(amounts, epsilon),
            ignores_seed=True,
        )
    ratings = Ratings.from_columns(users, films, values)
    limits = RatingRange(float(values.min()), float(values.max()))
    traits = np.full((ratings.num_items, 1), np.nan)
    errors = PaperRuns(lambda _: (ratings, traits), RatingStudy(rating_range=limits, measures_recall=False))
    descents = replace(errors, study=replace(DESCENT_RUNS.study, rating_range=limits))
    choices = select_choices(ratings, STARS)
    recalls, step_recalls = (
        PaperRuns(
            lambda _: (choices, traits),
            replace(study, non_private_settings=WITHOUT_PRIVACY, delta=1.0 / choices.num_users),
        )
        for study in (CHOICE_STUDY, CHOICE_STEPS)
    )
    runs: dict[str, Run] = {
        "krichene-figure-1": functools.partial(run_both, errors.run_over_epsilon, descents.run_over_epsilon),
        "krichene-figure-2": functools.partial(
            run_both, recalls.run_over_epsilon, step_recalls.run_over_epsilon
        ),
        "krichene-figure-3": functools.partial(
            run_both, errors.run_over_exponent, descents.run_over_exponent
        ),
        "krichene-figure-4": errors.run_over_fifths,
        "krichene-figure-4-recall": recalls.run_over_fifths,
        "krichene-figure-9": errors.run_gain,
        "krichene-figure-9-recall": recalls.run_gain,
        "krichene-figure-10": functools.partial(
            run_both, recalls.run_over_exponent, step_recalls.run_over_exponent
        ),
        "krichene-figure-11": recalls.run_overlap,
    }
    return replace(figure, title=title, run_once=runs[key], num_runs=MOVIELENS_RUNS)


def build_on_regression_rows(key: str, folder: Path) -> PaperFigure:
    """Build a half of table 1 of Epasto et al. 2020; *news* over two readings of which counts the paper takes."""
    figure = find_figure(key)
    if key == "epasto-table-1-drugs":
        rows = readers.read_reviews(folder)
        return replace(figure, run_once=lambda epsilon, _: compute_errors_on_rows(rows, epsilon))
    readings = [readers.read_posts(folder, slices) for slices in (readers.FULL_HOURS, range(1, 11))]
    descriptions = sorted({posts.description for posts in readings})
    return _summarise_readings(
        replace(figure, title=f"{figure.title}, on {' or '.join(descriptions)}"),
        len(readings),
        lambda epsilon: [compute_errors_on_rows(posts.rows, epsilon) for posts in readings],
    )


def build_on_classes(key: str, folder: Path) -> PaperFigure:
    """Build table 2 of Epasto et al. 2020: a rating above the median is the class 1."""
    rows = classify_rows(readers.read_reviews(folder))
    return replace(
        find_figure(key),
        run_once=lambda bound, seed: compute_losses(
            rows, StepSizeFormula.DIAMETER, bound, seed, SHARE_OF_STEPS
        ),
    )


def classify_rows(rows: RegressionRows) -> ClassifierRows:
    """Return rows by user whose class is 1 where the label is above the median, else -1."""
    is_positive = rows.labels > float(np.median(rows.labels))
    order = np.argsort(rows.users, kind="stable")
    return ClassifierRows(rows.features[order], np.where(is_positive, 1.0, -1.0)[order], rows.users[order])


def _summarise_readings(
    figure: PaperFigure, num_readings: int, compute: Callable[[float], Iterable[Mapping[str, float]]]
) -> PaperFigure:
    """Return the figure with the median, the least and the most over readings as lines."""

    def run(value: float, _seed: int) -> dict[str, float]:
        results = list(compute(value))
        numbers: dict[str, float] = {}
        for key in results[0] if results else ():
            over_readings = [result[key] for result in results]
            numbers |= {
                key: float(np.median(over_readings)),
                f"{key}_least": min(over_readings),
                f"{key}_most": max(over_readings),
            }
        return numbers

    lines = [
        replace(
            line,
            key=line.key + suffix,
            name=line.name + name,
            paper_values=() if suffix else line.paper_values,
        )
        for line in figure.lines
        for suffix, name in (("", ""), ("_least", ", least"), ("_most", ", most"))
    ]
    title = f"{figure.title}, over {num_readings} readings of the paper"
    return replace(figure, title=title, lines=tuple(lines), run_once=run, ignores_seed=True)


BUILDERS: dict[str, Callable[[str, Path], PaperFigure]] = {
    "epasto-table-1-drugs": build_on_regression_rows,
    "epasto-table-1-news": build_on_regression_rows,
    "epasto-table-2": build_on_classes,
    "amin-figure-1": build_on_ratings,
    "huang-table-1": build_on_pictures,
    "huang-figure-1": build_on_pictures,
    "huang-table-4": build_on_pictures,
    "krichene-figure-1": build_on_ratings,
    "krichene-figure-2": build_on_ratings,
    "krichene-figure-3": build_on_ratings,
    "krichene-figure-4": build_on_ratings,
    "krichene-figure-4-recall": build_on_ratings,
    "krichene-figure-9": build_on_ratings,
    "krichene-figure-9-recall": build_on_ratings,
    "krichene-figure-10": build_on_ratings,
    "krichene-figure-11": build_on_ratings,
}
"""How each figure is built on its data; the others need none."""
