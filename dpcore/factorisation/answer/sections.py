"""The tabs of Factorisation as data, and the training beside a page."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpcore.answer import section
from dpcore.answer.answer import Answer
from dpcore.common import wording
from dpcore.common.progress import ShouldStop, Stage
from dpcore.data.column_names import escape_formula
from dpcore.dataset import Dataset
from dpcore.factorisation import paper
from dpcore.factorisation.allocation import Scheme, divide_budget
from dpcore.factorisation.answer import plots, words
from dpcore.factorisation.answer.solution import (
    FactorisationSolution,
    Verdict,
    choose_share_settings,
    find_disclosure,
    judge,
    load_ratings,
    replace_noise,
)
from dpcore.factorisation.answer.stored import find_stored
from dpcore.factorisation.implicit import select_choices
from dpcore.factorisation.measures import find_nearest
from dpcore.factorisation.parameters import CHOICE_SPREAD, LARGE, FactorisationParameters, RatingSource
from dpcore.factorisation.ratings import Ratings
from dpcore.factorisation.study import SCHEMES, ModelKind, ProgressReport, StudyResult, run

LARGE_COST = "about 0.8 GB of memory, and half a minute on a free processor"
"""Measured: 0.72 GB with all of Python; 14 s of processor time, 4.5 of them to draw the ratings."""
NUM_NEIGHBOURS = 6
NOT_TRAINED = "Nothing is trained for these settings yet: press *Train* above."


def solve_beside_page(dataset: Dataset, parameters: FactorisationParameters) -> section.Solver:
    """Divide the budget, and take the training as far as it is."""
    given_data = dataset if parameters.source is RatingSource.DATA else None
    ratings: Ratings = yield section.Cached(load_ratings, (parameters.of_ratings, given_data), 2)
    shares = []
    for scheme in Scheme:
        settings = choose_share_settings(parameters, scheme)
        shares_of_scheme = yield section.Cached(divide_budget, (ratings, scheme, *settings), 48)
        shares.append(replace_noise(shares_of_scheme, parameters))
    training: section.SearchResult = yield search_training(ratings, parameters)
    result = None if training.stage is Stage.EARLIER else training.value
    is_over = result is not None and (result.finished or training.stage is Stage.FINAL)
    disclosure = find_disclosure(parameters, dataset)
    return section.SearchResult(
        FactorisationSolution(parameters, ratings, disclosure, tuple(shares), result, is_over)
    )


def search_training(
    ratings: Ratings, parameters: FactorisationParameters, is_trained: bool = False
) -> section.Search:
    """Build the search that trains all models. The page's own ε may change under its result."""
    return section.Search(
        "train_job",
        (ratings.digest, replace(parameters.study, epsilons=(1.0,))),
        lambda report, stop: run(ratings, parameters.study, report, stop),
        "Training",
        "Train again" if is_trained else "Train",
        "model_training",
        is_main=not is_trained,
        outdated=":material/history: The last training was for other settings.",
        of_data=parameters.source is RatingSource.DATA,
        first=lambda: find_stored(parameters),
        is_complete=lambda result: result.finished,
        heavy=True,
    )


def show_training(answer: Answer, dataset: Dataset) -> section.Parts:
    """Offer the training of all models."""
    yield search_training(answer.solution.ratings, answer.parameters, answer.solution.result is not None)


def describe_basis(answer: Answer, dataset: Dataset) -> section.Parts:
    """Say what the answer was computed from."""
    yield section.Note(words.describe_ratings(answer.solution))


def show_budget(answer: Answer, dataset: Dataset) -> section.Parts:
    """Show how the budget is divided, for a page whose main figure shows something else."""
    yield (
        "**Look at** the left end: what uniform sampling leaves for rare items, and how far noise stands above their "
        "signal. Where noise over signal is above 1, no scheme can teach an item's vector much."
    )
    yield answer.plots["factorisation-shares"]()


def show_popularity(answer: Answer, dataset: Dataset) -> section.Parts:
    """Show the differences to uniform sampling by popularity."""
    solution: FactorisationSolution = answer.solution
    if (verdict := solution.verdict) is None:
        yield section.Note(NOT_TRAINED)
        return
    measure = yield section.Choice("measure", "Measure", {"rmse": "Error (RMSE)", "recall": "Recall"})
    yield answer.plots[f"factorisation-buckets-{measure}"]()
    yield section.Note(
        f"Mean differences over {wording.counted(verdict.result.study.repeats, 'seed')}, paired; whiskers are "
        f"95{wording.PERCENT} intervals. "
        + (
            "Recall of items rated in the test set among the top 20 (all, most rated) to 100 (rarest). In generated "
            "ratings taste does not decide what is rated, so recall shows little."
            if measure == "recall"
            else "Buckets are five equal parts of the items by ratings in training."
        )
    )
    yield section.Label()


def show_nearest_items(answer: Answer, dataset: Dataset) -> section.Parts:
    """Show the items that are nearest to one item, under each model."""
    verdict = answer.solution.verdict
    yield section.Fields(("item",))
    item_names = None
    if answer.parameters.source is RatingSource.DATA:
        item_names = yield section.ItemNames("item")
    if verdict is None:
        yield section.Note(NOT_TRAINED)
        return
    result: StudyResult = verdict.result
    if not result.models:
        yield section.Note("*Train again* shows them: this training was stored with its errors only.")
        return
    counts, epsilon = result.train_counts, verdict.epsilon
    names = list(item_names or (f"item {i}" for i in range(counts.size)))
    item = int((-counts).argsort(kind="stable")[min(answer.parameters.item, counts.size) - 1])
    model_names = {ModelKind.NO_PRIVACY: "Not private"}
    model_names |= {model_kind: words.SCHEME_NAMES[scheme] for model_kind, scheme in SCHEMES.items()}
    columns: dict[str, list[str]] = {}
    for model_kind, name in model_names.items():
        model = result.models.get((model_kind, epsilon if model_kind.is_private else 0.0))
        if model is not None:
            columns[name] = [
                f"{escape_formula(names[neighbour])} ({wording.counted(int(counts[neighbour]), 'rating')})"
                for neighbour in find_nearest(model.learned_coordinates, np.array([item]), NUM_NEIGHBOURS)[0]
            ]
    yield (
        f"**Nearest to {wording.plain(names[item])}** ({wording.counted(int(counts[item]), 'rating')} in training), "
        f"at ε = {wording.entered(epsilon)}, first seed; by the inner product of item vectors without their level."
    )
    yield section.Table(columns, "The nearest items under each model", key="factorisation_neighbours")
    if (plot := plots.plot_nearest_items(answer.solution)) is not None:
        yield section.Figures((plot,), titled=True)
    yield section.Label()


def show_choices(answer: Answer, dataset: Dataset) -> section.Parts:
    """Show recall over epsilon and by popularity, trained on what users chose."""
    parameters: FactorisationParameters = answer.parameters
    ratings: Ratings = answer.solution.ratings
    uses_data = parameters.source is RatingSource.DATA
    yield (
        "**What should be recommended?** It counts what users chose, not how they rate it; what they did not choose "
        "counts a little as *no*. Users are held out whole, and a fifth of what they chose is to be found among the "
        "first 20 recommended. "
        + (
            "Of your ratings, those from the number below on are choices."
            if uses_data
            else "These choices are generated as the settings say, and here taste decides what is chosen."
        )
    )
    yield section.Fields(("chosen_from", "unobserved") if uses_data else ("unobserved",))
    study = parameters.choice_study

    def train(report: ProgressReport, stop: ShouldStop) -> StudyResult:
        if uses_data:
            choices = select_choices(ratings, parameters.chosen_from)
        else:
            population = replace(parameters.population, choice_spread=CHOICE_SPREAD)
            choices = select_choices(population.draw(np.random.default_rng(parameters.data_seed)))
        return run(choices, study, report, stop)

    result: StudyResult | None = yield section.Search(
        "implicit_job",
        (ratings.digest, replace(study, epsilons=(1.0,)), parameters.train_epsilons, parameters.chosen_from),
        train,
        "Training on choices",
        f"Train on choices, {wording.counted(study.repeats, 'seed')}",
        "model_training",
        shows_outdated=True,
        of_data=uses_data,
        heavy=True,
    )
    if result is None:
        return
    if not np.isfinite(result.recall).any():
        yield section.Note("Stopped before the first model was done.", "stop_circle")
        return
    yield words.write_comparison(result, parameters.epsilon)
    yield section.Figures((plots.plot_over_epsilon(result, answer.disclosure),), titled=True)
    if (verdict := judge(result, max(result.study.epsilons))) is not None:
        yield (
            f"**By popularity, at ε = {wording.entered(verdict.epsilon)}.** Recall at 20 over all items; by fifths of "
            "the items at 100 on the rarest to 20 on the most chosen."
        )
        yield _tabulate_models(verdict)
    yield section.Label()


def _tabulate_models(verdict: Verdict) -> section.Table:
    """Tabulate error or recall of each model, over all items and in each bucket."""
    result, buckets = verdict.result, ("All", *plots.BUCKET_NAMES)
    model_kinds, measure = result.study.models, result.study.main_measure
    means = np.array([result.summarise(model_kind).mean[verdict.index] for model_kind in model_kinds])
    columns = {
        "Model": [model_kind.value for model_kind in model_kinds],
        **dict(zip(buckets, means.T.tolist(), strict=True)),
    }
    name, number_format = {"rmse": ("Test error", "%.4f"), "recall": ("Recall", "%.3f")}[measure]
    alt = f"{name} of each model, over all items and by popularity"
    return section.Table(
        columns, alt, dict.fromkeys(buckets, number_format), key=f"factorisation_table_{measure}"
    )


def show_large(answer: Answer, dataset: Dataset) -> section.Parts:
    """Show the training at the size of MovieLens 10M, on generated ratings."""
    parameters: FactorisationParameters = answer.parameters
    yield (
        "**The size of MovieLens 10M**: 69,878 users, 10,677 items and 10 million ratings, generated, at "
        f"ε = {wording.entered(parameters.epsilon)} with one seed and the settings above."
    )
    study, seed = parameters.large_study, parameters.data_seed
    result: StudyResult | None = yield section.Search(
        "large_job",
        (study, seed),
        lambda report, stop: run(LARGE.draw(np.random.default_rng(seed)), study, report, stop),
        "Training at the large size",
        f"Train: {LARGE_COST}",
        "memory",
        shows_outdated=True,
        of_data=False,
        heavy=True,
        in_demo=False,
    )
    if result is None:
        return
    if (verdict := judge(result, parameters.epsilon)) is None:
        yield section.Note("Stopped before the private models were done.", "stop_circle")
        return
    yield f"**{words.write_verdict(verdict)}**"
    yield _tabulate_models(verdict)
    yield section.Note(
        f"Test error (RMSE) at ε = {wording.entered(verdict.epsilon)}, over all items and by fifths of the items from "
        "rare to popular."
    )


def show_paper_figures(answer: Answer, dataset: Dataset) -> section.Parts:
    """Show the paper's figures at its setting, on generated ratings and choices."""
    yield section.PaperFigures(paper.FIGURES)


def show_runs(answer: Answer, dataset: Dataset) -> section.Parts:
    """Offer all runs as a file."""
    for name, write in answer.files.items():
        yield "**Runs** holds the error and recall of each model, ε, seed and bucket, a line each."
        yield section.File("Runs (CSV)", name, write)


def build_sections(solution: FactorisationSolution) -> section.Sections:
    """Return the sections of an answer."""
    budget = {} if solution.verdict is None else {"Who gets the budget": show_budget}
    return {
        section.BEHIND: describe_basis,
        "Items": {
            **budget,
            "Rare and popular items": show_popularity,
            "Nearest items": show_nearest_items,
            "Implicit feedback": show_choices,
        },
        "Size": {"Large size": show_large, "The paper's figures": show_paper_figures},
        section.DOWNLOADS: show_runs,
    }
