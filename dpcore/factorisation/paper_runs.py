"""Runs of the figures of Krichene et al. 2023: tables drawn for each seed, and models trained on them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from dpcore.contributions import FloatArray
from dpcore.factorisation.fit import GradientSteps
from dpcore.factorisation.implicit import ImplicitSettings, scale_to_unit_length, select_choices
from dpcore.factorisation.model import FactorSettings, RatingRange
from dpcore.factorisation.ratings import NUM_BUCKETS, GeneratedRatings, Ratings, assign_buckets
from dpcore.factorisation.studies import ChoiceStudy, RatingStudy
from dpcore.factorisation.study import (
    SCHEME_BY_KIND,
    ModelKind,
    Study,
    StudyResult,
    compare_neighbours,
    find_nearest,
    run,
)

COUNT_SHARE_BY_EPSILON = {1.0: 0.12, 5.0: 0.14, 20.0: 0.20}
"""Share of the budget for counts, by ε (appendix D.1)."""


def choose_count_share(epsilon: float) -> float:
    """Return the paper's share of the budget for counts; between its three ε it rises evenly, which is ours."""
    return float(np.interp(epsilon, tuple(COUNT_SHARE_BY_EPSILON), tuple(COUNT_SHARE_BY_EPSILON.values())))


RunOnce = Callable[[float, int], dict[str, float]]
"""Function that returns a score by key of a line, for a number on the x axis and a seed."""
EPSILONS = (1.0, 5.0, 10.0, 20.0)
DASHES = {1.0: "solid", 5.0: "dash", 20.0: "dashdot"}
"""By ε, in figures 3, 9 and 10."""
EXPONENTS = (0.0, 0.125, 0.25, 0.375, 0.5, 0.75, 1.0)
CHOICE_EXPONENTS = (0.0, 0.125, 0.25, 0.5, 1.0)
FIFTHS = tuple(1.0 + bucket for bucket in range(NUM_BUCKETS))
NEAREST_EPSILONS = (1.0, 20.0)
"""The paper's ε, and one at which there is more to see."""
NUM_NEAREST, NUM_NEIGHBOURS = 20, 6
"""In figure 11, and in tables 3 and 4."""
RATINGS_GENERATOR = GeneratedRatings()
MOVIES_GENERATOR = GeneratedRatings(8_000, 6_000, 73.0, 1.1, choice_spread=1.5)
"""Choices per user are those of MovieLens 20M (table 1).

There a tenth of the items has 86 % of the choices (section 5), here 61 %. With as many users per item as there, 1,200
items, a tenth of the items would be 120, and 100 recommendations would recall nearly all of them.
"""
SONGS_GENERATOR = GeneratedRatings(10_000, 720, 59.0, choice_spread=1.5)
"""Users per item and choices per user are those of the Million Song Data (table 1)."""
WITHOUT_PRIVACY = ImplicitSettings(dimension=8, sweeps=8, unobserved_weight=0.1)
"""It recalls most on such users, of dimensions 8 to 16 and α₀ from 0.1 to 0.5."""


@functools.lru_cache(maxsize=4)
def _draw_table(generator: GeneratedRatings, seed: int) -> tuple[Ratings, FloatArray]:
    """Draw generated ratings with the planted traits of the items; all values are 1 where taste decides what is chosen.

    Each seed is drawn once.
    """
    ratings, item_traits = generator.draw_with_traits(np.random.default_rng(seed))
    return select_choices(ratings) if generator.choice_spread else ratings, item_traits.astype(np.float64)


@dataclass(frozen=True, eq=False)
class PaperRuns:
    """A study of models on tables that are drawn anew for each seed, and its numbers for the paper's figures.

    Attributes:
        draw_table: Draws the table of a seed, with the planted traits of the items, shape (num_items, rank); NaN if
            none are planted.
        study: The settings.
    """

    draw_table: Callable[[int], tuple[Ratings, FloatArray]]
    study: Study

    def run(
        self, epsilon: float, exponent: float, seed: int, model_kinds: tuple[ModelKind, ...]
    ) -> StudyResult:
        """Run the study with one seed at this epsilon, this exponent and these models; return its result."""
        study = replace(
            self.study,
            epsilons=(epsilon,),
            count_share=choose_count_share(epsilon),
            exponent=exponent,
            repeats=1,
            seed=seed,
            model_kinds=model_kinds,
        )
        return run(self.draw_table(seed)[0], study)

    def run_over_epsilon(self, epsilon: float, seed: int) -> dict[str, float]:
        """Return error or recall over all items at one ε, by line of figures 1, 2 and 7."""
        private_kinds = tuple(model_kind for model_kind in self.study.model_kinds if model_kind.is_private)
        score_lists_by_line = dict(_measure_models(self, epsilon, 0.25, seed, private_kinds))
        if ModelKind.NO_PRIVACY in self.study.model_kinds:
            score_lists_by_line |= _measure_models(self, 1.0, 0.25, seed, (ModelKind.NO_PRIVACY,))
        return {line_key: scores[0] for line_key, scores in score_lists_by_line.items()}

    def run_over_exponent(self, weight_exponent: float, seed: int) -> dict[str, float]:
        """Return error or recall of adaptive weights at one μ, by line of figures 3 and 10: one for each ε."""
        scores_by_epsilon = {
            e: _measure_models(self, e, weight_exponent, seed, (ModelKind.ADAPTIVE,)) for e in DASHES
        }
        return {f"adaptive_{e:g}": s["adaptive"][0] for e, s in scores_by_epsilon.items()}

    def run_over_fifths(self, fifth: float, seed: int, epsilon: float = 1.0) -> dict[str, float]:
        """Return error or recall on one fifth of the items, 1 for the rarest, by line of figure 4."""
        score_lists_by_line = dict(_measure_models(self, epsilon, 0.25, seed, tuple(SCHEME_BY_KIND)))
        half_exponent_lists = _measure_models(self, epsilon, 0.5, seed, (ModelKind.ADAPTIVE,))
        score_lists_by_line["adaptive_half"] = half_exponent_lists["adaptive"]
        return {line_key: scores[int(fifth)] for line_key, scores in score_lists_by_line.items()}

    def run_gain(self, fifth: float, seed: int) -> dict[str, float]:
        """Return what adaptive weights gain over tail sampling on one fifth, by line of figure 9.

        Of errors the share by which theirs is lower, also with the authors' settings; of recalls the difference.
        """
        compared_kinds, i = (ModelKind.TAIL, ModelKind.ADAPTIVE), int(fifth)
        scores_by_epsilon = {e: _measure_models(self, e, 0.25, seed, compared_kinds) for e in DASHES}
        if not isinstance(self.study, RatingStudy):
            return {f"gain_{e:g}": s["adaptive"][i] - s["tail"][i] for e, s in scores_by_epsilon.items()}
        ratios_by_line = {
            f"gain_{e:g}": s["adaptive"][i] / s["tail"][i] for e, s in scores_by_epsilon.items()
        }
        adaptive_error = _measure_with_norm(self.study, self.draw_table, ModelKind.ADAPTIVE, 0.2, seed)[i]
        for line_key, max_norm in AUTHORS_NORM_BY_LINE.items():
            tail_error = _measure_with_norm(self.study, self.draw_table, ModelKind.TAIL, max_norm, seed)[i]
            ratios_by_line[line_key] = adaptive_error / tail_error
        return {line_key: 1.0 - ratio for line_key, ratio in ratios_by_line.items()}

    def run_overlap(self, fifth: float, seed: int) -> dict[str, float]:
        """Return the share of nearest items in common on one fifth of the items, for each line of figure 11."""
        return {k: float(o[int(fifth) - 1]) for k, (o, _) in _compare_nearest(self, seed).items()}

    def run_likeness(self, fifth: float, seed: int) -> dict[str, float]:
        """Return the mean cosine of planted traits of nearest items on one fifth, for each line of table 3."""
        return {k: float(c[int(fifth) - 1]) for k, (_, c) in _compare_nearest(self, seed).items()}


@functools.cache
def _measure_models(
    runs: PaperRuns, epsilon: float, weight_exponent: float, seed: int, model_kinds: tuple[ModelKind, ...]
) -> Mapping[str, list[float]]:
    """Measure error or recall of models at one ε.

    Lists by the model's key, over all items, then by fifth, rarest first.
    """
    result = runs.run(epsilon, weight_exponent, seed, model_kinds)
    return {kind.name.lower(): result.select_runs(kind)[0, 0].tolist() for kind in model_kinds}


AUTHORS_RIDGE_BY_KIND = {ModelKind.TAIL: 60.0, ModelKind.ADAPTIVE: 40.0}
"""The ridge λ in the authors' notebook for MovieLens 10M at ε = 1, where d is 8 and T is 2."""
AUTHORS_NORM_BY_LINE = {"gain_alike": 0.2, "gain_undamped": 1.0}
"""The largest norm of user vectors under tail sampling, by line of figure 9; 0.2 is that of the notebook."""
AUTHORS_MIDPOINT = 3.5
"""They take a noisy mean off all ratings; that of movies is about this."""


@functools.cache
def _measure_with_norm(
    study: RatingStudy,
    draw_table: Callable[[int], tuple[Ratings, FloatArray]],
    model_kind: ModelKind,
    max_norm: float,
    seed: int,
) -> list[float]:
    """Measure the error at ε = 1 with the authors' settings, whose user vectors have at most a norm of ``max_norm``.

    Over all items, then by fifth, rarest first. With norm c, user vectors c v and item vectors u / c predict the same
    from v and u of norm 1. So a norm of c is the ridge λ c² for users and λ / c² for items: a small norm damps.
    """
    squared_norm, ridge = max_norm**2, AUTHORS_RIDGE_BY_KIND[model_kind]
    settings = FactorSettings(8, 2, ridge * squared_norm, ridge / squared_norm, offset_coordinate=0.0)
    lowest = study.rating_range.lowest
    rating_range = RatingRange(lowest, 2.0 * AUTHORS_MIDPOINT - lowest)
    study = replace(study, private_settings=settings, ridge_to_noise=0.0, rating_range=rating_range)
    return _measure_models(PaperRuns(draw_table, study), 1.0, 0.25, seed, (model_kind,))[
        model_kind.name.lower()
    ]


@functools.cache
def _compare_nearest(runs: PaperRuns, seed: int) -> Mapping[str, tuple[FloatArray, FloatArray]]:
    """Compare nearest items under each model, by line: on each fifth, overlap with no privacy, and cosine of traits.

    The overlap is with the model without privacy; the cosine is NaN if no traits are planted.
    """
    result_without_privacy = runs.run(1.0, 0.25, seed, (ModelKind.NO_PRIVACY,))
    private_models = [
        model_entry
        for epsilon in NEAREST_EPSILONS
        for model_entry in runs.run(
            epsilon, 1.0 / 3.0, seed, (ModelKind.TAIL, ModelKind.ADAPTIVE)
        ).first_seed_models.items()
    ]
    reference_model = result_without_privacy.first_seed_models[ModelKind.NO_PRIVACY, 0.0]
    reference_vectors = scale_to_unit_length(reference_model.item_vectors)
    vectors_by_line = {"no_privacy": reference_vectors}
    for (model_kind, epsilon), model in private_models:
        vectors_by_line[f"{model_kind.name.lower()}_{epsilon:g}"] = scale_to_unit_length(model.item_vectors)
    bucket_of_item = assign_buckets(result_without_privacy.item_train_counts, runs.study.bucket_share)
    item_codes = np.arange(bucket_of_item.size)
    unit_traits = scale_to_unit_length(runs.draw_table(seed)[1])

    def average_fifths(value_of_item: FloatArray) -> FloatArray:
        """Return the mean over the items of each fifth, rarest first."""
        return np.array([value_of_item[bucket_of_item == bucket].mean() for bucket in range(NUM_BUCKETS)])

    overlap_and_cosine_by_line = {}
    for line_key, unit_vectors in vectors_by_line.items():
        nearest_items = find_nearest(unit_vectors, item_codes, NUM_NEIGHBOURS)
        mean_cosines = np.einsum("id,ind->in", unit_traits, unit_traits[nearest_items]).mean(axis=1)
        overlaps = compare_neighbours(unit_vectors, reference_vectors, item_codes, NUM_NEAREST)
        overlap_and_cosine_by_line[line_key] = (average_fifths(overlaps), average_fifths(mean_cosines))
    return overlap_and_cosine_by_line


RATING_RUNS = PaperRuns(lambda seed: _draw_table(RATINGS_GENERATOR, seed), RatingStudy(measures_recall=False))
DESCENT_RUNS = PaperRuns(
    RATING_RUNS.draw_table,
    RatingStudy(measures_recall=False, gradient_steps=GradientSteps(), model_kinds=tuple(SCHEME_BY_KIND)),
)
DESCENT_SUFFIX = "_descent"
"""Of the keys of lines by gradient steps (DPSGD); those without it are by least squares (DPALS)."""


def run_both(run_squares: RunOnce, run_descent: RunOnce, x: float, seed: int) -> dict[str, float]:
    """Return errors at one x of figure 1 or 3, for each of its lines: by least squares, and by gradient steps."""
    descent_errors = run_descent(x, seed)
    return run_squares(x, seed) | {f"{key}{DESCENT_SUFFIX}": error for key, error in descent_errors.items()}


CHOICE_STUDY = ChoiceStudy(
    non_private_settings=WITHOUT_PRIVACY,
    ridge_to_noise=10.0,
    delta=1.0 / MOVIES_GENERATOR.num_users,
    bucket_share=0.1,
)
"""δ is one over the number of users, and buckets hold a tenth of the items, as in the paper and its code."""
CHOICE_STEPS = replace(
    CHOICE_STUDY,
    gradient_steps=GradientSteps(1),
    private_settings=ImplicitSettings(sweeps=4),
    model_kinds=tuple(SCHEME_BY_KIND),
)
MOVIE_RUNS = PaperRuns(lambda seed: _draw_table(MOVIES_GENERATOR, seed), CHOICE_STUDY)
MOVIE_DESCENT_RUNS = PaperRuns(MOVIE_RUNS.draw_table, CHOICE_STEPS)
SONG_RUNS = PaperRuns(
    lambda seed: _draw_table(SONGS_GENERATOR, seed),
    ChoiceStudy(non_private_settings=WITHOUT_PRIVACY, delta=1.0 / SONGS_GENERATOR.num_users),
)
