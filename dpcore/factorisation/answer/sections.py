"""The tabs of Factorisation as data, and the training beside a page."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpcore.answer.answer import Answer
from dpcore.answer.section import (
    BEHIND,
    DOWNLOADS,
    Cached,
    Choice,
    Fields,
    Figures,
    File,
    Found,
    ItemNames,
    Label,
    Note,
    PaperFigures,
    Parts,
    Search,
    Sections,
    Solver,
    Table,
)
from dpcore.answer.stage import Stage
from dpcore.common import wording
from dpcore.common.progress import ShouldStop
from dpcore.data.column_names import escape_formula
from dpcore.dataset import Dataset
from dpcore.factorisation import paper
from dpcore.factorisation.allocation import Scheme
from dpcore.factorisation.answer import plots, words
from dpcore.factorisation.answer.solution import (
    FactorisationSolution,
    RatingsInUse,
    choose_share_settings,
    compute_shares,
    describe_table,
    find_disclosure,
    judge,
    replace_noise,
)
from dpcore.factorisation.answer.stored import find_stored
from dpcore.factorisation.implicit import select_choices
from dpcore.factorisation.measures import find_neighbours
from dpcore.factorisation.parameters import CHOICE_SPREAD, LARGE, FactorisationParameters, RatingSource
from dpcore.factorisation.study import SCHEMES, ModelKind, ProgressReport, StudyResult, run

LARGE_COST = "about 0.8 GB of memory, and half a minute on a free processor"
"""Measured: 0.72 GB with all of Python; 14 s of processor time, 4.5 of them to draw the ratings."""
NUM_NEIGHBOURS = 6
NOT_TRAINED = "Nothing is trained for these settings yet: press *Train* above."
STOPPED_EARLY = "Stopped before the private models were done."


def solve_beside_page(data: Dataset, parameters: FactorisationParameters) -> Solver:
    """Divide the budget, and take the training as far as it is."""
    given_data = data if parameters.source is RatingSource.DATA else None
    table: RatingsInUse = yield Cached(describe_table, (parameters.of_ratings, given_data), 2)
    shares = []
    for scheme in Scheme:
        shares_of_scheme = yield Cached(
            compute_shares, (table, scheme, *choose_share_settings(parameters, scheme)), 48
        )
        shares.append(replace_noise(shares_of_scheme, parameters))
    training: Found = yield search_training(table, parameters)
    result = None if training.stage is Stage.EARLIER else training.value
    return Found(
        FactorisationSolution(
            parameters,
            table,
            find_disclosure(parameters, data),
            tuple(shares),
            result,
            result is not None and (result.finished or training.stage is Stage.FINAL),
        )
    )


def search_training(
    table: RatingsInUse, parameters: FactorisationParameters, is_trained: bool = False
) -> Search:
    """Build the search that trains all models. The page's own ε may change under its result."""
    return Search(
        "train_job",
        (table.digest, replace(parameters.study, epsilons=(1.0,))),
        lambda tell, stop: run(table.ratings, parameters.study, tell, stop),
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


def show_training(answer: Answer, data: Dataset) -> Parts:
    """Offer the training of all models."""
    yield search_training(answer.solution.table, answer.parameters, answer.solution.result is not None)


def describe_basis(answer: Answer, data: Dataset) -> Parts:
    """Say what the answer was computed from."""
    yield Note(words.describe_ratings(answer.solution.table))


def show_budget(answer: Answer, data: Dataset) -> Parts:
    """Show how the budget is divided, for a page whose main figure shows something else."""
    yield (
        "**Look at** the left end: what uniform sampling leaves for rare items, and how far noise stands above their "
        "signal. Where noise over signal is above 1, no scheme can teach an item's vector much."
    )
    yield answer.plots["factorisation-shares"]()


def show_popularity(answer: Answer, data: Dataset) -> Parts:
    """Show the differences to uniform sampling by popularity."""
    solution: FactorisationSolution = answer.solution
    if solution.result is None or solution.verdict is None:
        yield Note(NOT_TRAINED)
        return
    measure = yield Choice("measure", "Measure", {"rmse": "Error (RMSE)", "recall": "Recall"})
    yield answer.plots[f"factorisation-buckets-{measure}"]()
    yield Note(
        f"Mean differences over {wording.counted(solution.result.study.repeats, 'seed')}, paired; whiskers are "
        f"95{wording.PERCENT} intervals. "
        + (
            "Recall of items rated in the test set among the top 20 (all, most rated) to 100 (rarest). In generated "
            "ratings taste does not decide what is rated, so recall shows little."
            if measure == "recall"
            else "Buckets are five equal parts of the items by ratings in training."
        )
    )
    yield Label()


def show_nearest_items(answer: Answer, data: Dataset) -> Parts:
    """Show the items that are nearest to one item, under each model."""
    solution: FactorisationSolution = answer.solution
    result, verdict = solution.result, solution.verdict
    yield Fields(("item",))
    item_names = None
    if answer.parameters.source is RatingSource.DATA:
        item_names = yield ItemNames("item")
    if result is None or verdict is None:
        yield Note(NOT_TRAINED)
        return
    if not result.models:
        yield Note("*Train again* shows them: this training was stored with its errors only.")
        return
    counts, epsilon = result.train_counts, verdict.epsilon
    names = list(item_names or (f"item {i}" for i in range(counts.size)))
    item = int((-counts).argsort(kind="stable")[min(answer.parameters.item, counts.size) - 1])
    model_names = {ModelKind.NO_PRIVACY: "Not private"}
    model_names |= {kind: words.SCHEME_NAMES[scheme] for kind, scheme in SCHEMES.items()}
    columns: dict[str, list[str]] = {}
    for kind, name in model_names.items():
        model = result.models.get((kind, epsilon if kind.is_private else 0.0))
        if model is not None:
            columns[name] = [
                f"{escape_formula(names[neighbour])} ({wording.counted(int(counts[neighbour]), 'rating')})"
                for neighbour in find_neighbours(model, item, NUM_NEIGHBOURS)
            ]
    yield (
        f"**Nearest to {wording.plain(names[item])}** ({wording.counted(int(counts[item]), 'rating')} in training), "
        f"at ε = {wording.entered(epsilon)}, first seed; by the inner product of item vectors without their level."
    )
    yield Table(columns, "The nearest items under each model", key="factorisation_neighbours")
    if (plot := plots.plot_nearest_items(solution)) is not None:
        yield Figures((plot,), titled=True)
    yield Label()


def show_choices(answer: Answer, data: Dataset) -> Parts:
    """Show recall over epsilon and by popularity, trained on what users chose."""
    parameters: FactorisationParameters = answer.parameters
    table: RatingsInUse = answer.solution.table
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
    yield Fields(("chosen_from", "unobserved") if uses_data else ("unobserved",))
    study = parameters.choice_study

    def train(tell: ProgressReport, stop: ShouldStop) -> StudyResult:
        if uses_data:
            choices = select_choices(table.ratings, parameters.chosen_from)
        else:
            population = replace(parameters.population, choice_spread=CHOICE_SPREAD)
            choices = select_choices(population.draw(np.random.default_rng(parameters.data_seed)))
        return run(choices, study, tell, stop)

    result: StudyResult | None = yield Search(
        "implicit_job",
        (
            table.digest,
            replace(study, epsilons=(1.0,)),
            parameters.train_epsilons,
            parameters.chosen_from,
        ),
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
        yield Note("Stopped before the first model was done.", "stop_circle")
        return
    yield words.write_recommendation(result, parameters.epsilon)
    yield Figures((plots.plot_over_epsilon(result, answer.disclosure, measure="recall"),), titled=True)
    if (verdict := judge(result, max(result.study.epsilons))) is not None:
        yield (
            f"**By popularity, at ε = {wording.entered(verdict.epsilon)}.** Recall at 20 over all items; by fifths of "
            "the items at 100 on the rarest to 20 on the most chosen."
        )
        yield _tabulate_models(result, verdict.index, "recall")
    yield Label()


def _tabulate_models(result: StudyResult, epsilon_index: int, measure: str) -> Table:
    """Tabulate "rmse" or "recall" of each model, over all items and in each bucket."""
    kinds, buckets = result.study.models, ("All", *plots.BUCKET_NAMES)
    means = np.array([result.summarise(kind, measure).mean[epsilon_index] for kind in kinds])
    columns = {"Model": [kind.value for kind in kinds], **dict(zip(buckets, means.T.tolist(), strict=True))}
    name, number_format = {"rmse": ("Test error", "%.4f"), "recall": ("Recall", "%.3f")}[measure]
    alt = f"{name} of each model, over all items and by popularity"
    return Table(columns, alt, dict.fromkeys(buckets, number_format), key=f"factorisation_table_{measure}")


def show_large(answer: Answer, data: Dataset) -> Parts:
    """Show the training at the size of MovieLens 10M, on generated ratings."""
    parameters: FactorisationParameters = answer.parameters
    yield (
        "**The size of MovieLens 10M**: 69,878 users, 10,677 items and 10 million ratings, generated, at "
        f"ε = {wording.entered(parameters.epsilon)} with one seed and the settings above."
    )
    result: StudyResult | None = yield Search(
        "large_job",
        (parameters.large_study, parameters.data_seed),
        lambda tell, stop: run(
            LARGE.draw(np.random.default_rng(parameters.data_seed)), parameters.large_study, tell, stop
        ),
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
    verdict = judge(result, parameters.epsilon)
    if verdict is None:
        yield Note(STOPPED_EARLY, "stop_circle")
        return
    yield f"**{words.write_verdict(verdict)}**"
    yield _tabulate_models(result, verdict.index, "rmse")
    yield Note(
        f"Test error (RMSE) at ε = {wording.entered(verdict.epsilon)}, over all items and by fifths of the items from "
        "rare to popular."
    )


def show_paper_figures(answer: Answer, data: Dataset) -> Parts:
    """Show the paper's figures at its setting, on generated ratings and choices."""
    yield PaperFigures(paper.FIGURES)


def show_runs(answer: Answer, data: Dataset) -> Parts:
    """Offer all runs as a file."""
    for name, write in answer.files.items():
        yield "**Runs** holds the error and recall of each model, ε, seed and bucket, a line each."
        yield File("Runs (CSV)", name, write)


def build_sections(solution: FactorisationSolution) -> Sections:
    """Return the sections of an answer."""
    budget = {} if solution.verdict is None else {"Who gets the budget": show_budget}
    return {
        BEHIND: describe_basis,
        "Items": {
            **budget,
            "Rare and popular items": show_popularity,
            "Nearest items": show_nearest_items,
            "Implicit feedback": show_choices,
        },
        "Size": {"Large size": show_large, "The paper's figures": show_paper_figures},
        DOWNLOADS: show_runs,
    }
