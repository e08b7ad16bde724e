"""The answer for a recommender: one object that page, report, files, script and notebook read, and its tabs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from dpcore.answer import section
from dpcore.answer.answer import Answer
from dpcore.answer.unit import state_unit
from dpcore.common.progress import ShouldStop, Stage
from dpcore.common.wording import PERCENT, escape_text, format_count, format_entered
from dpcore.data.column_names import escape_formula
from dpcore.dataset import Dataset
from dpcore.factorisation import paper
from dpcore.factorisation.allocation import Scheme, divide_budget
from dpcore.factorisation.answer import plots, words
from dpcore.factorisation.answer import solution as solving
from dpcore.factorisation.answer.solution import FactorisationSolution
from dpcore.factorisation.implicit import select_choices
from dpcore.factorisation.parameters import CHOICE_SPREAD, FactorisationParameters, RatingSource
from dpcore.factorisation.ratings import NUM_BUCKETS, Ratings
from dpcore.factorisation.study import (
    SCHEME_BY_KIND,
    ModelKind,
    ProgressReport,
    StudyResult,
    find_nearest,
    run,
)

NUM_NEIGHBOURS = 6
NOT_TRAINED_SENTENCE = "No model is trained for these settings yet. Press *Train* above."


def build_answer(
    dataset: Dataset | None,
    parameters: FactorisationParameters,
    solution: FactorisationSolution | None = None,
) -> Answer:
    """Choose which items get a user's budget in a recommender, and decide whether it beats item means.

    Args:
        dataset: Ratings: a user, an item and a value in each row; None if the parameters say how they are generated.
        parameters: The parameters.
        solution: The solution for both, with a training or without; by default all models are trained here.

    Returns:
        The answer; its ``solution`` is a `FactorisationSolution`. Plots are computed when they are asked for.

    Raises:
        InvalidInput: The data hold no ratings, or too few of them to train on some and test on others.

    Examples:
        >>> import dpcore as ss
        >>> few = {"num_users": 100, "num_items": 20, "ratings_per_user": 5, "rank": 2, "dimension": 2, "repeats": 2}
        >>> ss.rating_weights(epsilon=0.01, **few).headline
        'At ε = 0.01 it is not clear whether a factorisation predicts better than item means.'

    Source: Krichene et al. 2023, section 5.
    """
    solution = solving.solve(dataset, parameters) if solution is None else solution
    label, result, card_numbers = solution.disclosure.label, solution.result, words.build_numbers(solution)
    rated_dataset = dataset if solution.parameters.source is RatingSource.DATA else None
    answer = Answer(
        headline=words.write_headline(solution),
        detail=words.write_detail(solution),
        numbers=card_numbers,
        assumptions=words.ASSUMPTIONS,
        disclosure=solution.disclosure,
        facts=words.build_facts(solution),
        code=words.choose_programs(solution, rated_dataset),
        parameters=solution.parameters,
        solution=solution,
        plots=plots.build_plots(solution),
        make_methods=lambda: words.write_methods(solution),
        files={} if result is None else {"factorisation_runs.csv": lambda: write_runs(result, label)},
        sections=build_sections(solution),
        bound=lambda: tabulate_budget(solution),
        error=None if solution.baseline_comparison is None else card_numbers[0].value,
        relative_error=words.measure_relative_error(solution.baseline_comparison),
    )
    unit_answer: Answer = state_unit(answer, rated_dataset)
    return unit_answer


def tabulate_budget(solution: FactorisationSolution) -> pd.DataFrame:
    """Tabulate the budget by scheme, a row for each fifth of the items, the rarest first.

    Columns: ``fewest_ratings`` and ``most_ratings`` of an item in it, then for each scheme the share of all
    squared weights that its items get.
    """
    fifth_index = pd.RangeIndex(1, NUM_BUCKETS + 1, name="fifth")
    count_ranges_frame = pd.DataFrame(solution.count_ranges, fifth_index, ["fewest_ratings", "most_ratings"])
    return count_ranges_frame.assign(**{s.scheme.value: s.bucket_shares for s in solution.budget_shares})


def write_runs(result: StudyResult, disclosure_text: str) -> str:
    """Write one CSV line per model, epsilon, seed and set of items (all, or a bucket) that has a test error.

    Columns: model (name of a `ModelKind`), epsilon (empty for models without privacy), seed (from 0), items
    (``all``, or the bucket from 1, the rarest, to `NUM_BUCKETS`), rmse (in the ratings' unit), recall (empty where
    not measured).

    Args:
        result: Of the study.
        disclosure_text: Whether the numbers may be published, written as a comment on top.
    """
    csv_rows = []
    for model_kind in result.study.model_kinds:
        rmses, recalls = (result.select_runs(model_kind, measure_name) for measure_name in ("rmse", "recall"))
        epsilons = result.study.epsilons if model_kind.is_private else ("",)
        for i, seed, measure_index in np.argwhere(np.isfinite(rmses[: len(epsilons)])):
            run_fields = model_kind.name.lower(), str(epsilons[i]), seed, measure_index or "all"
            csv_rows.append((*run_fields, rmses[i, seed, measure_index], recalls[i, seed, measure_index]))
    column_names = ("model", "epsilon", "seed", "items", "rmse", "recall")
    return f"# {disclosure_text}\n{pd.DataFrame(csv_rows, columns=column_names).to_csv(index=False)}"


def solve_beside_page(dataset: Dataset, parameters: FactorisationParameters) -> section.Solver:
    """Divide the budget in cached steps, and take the training as far as it is; return the solution."""
    rated_dataset = dataset if parameters.source is RatingSource.DATA else None
    load_arguments = (parameters.ratings_parameters, rated_dataset)
    ratings: Ratings = yield section.Cached(solving.load_ratings, load_arguments, 2)
    budget_shares = []
    for scheme in Scheme:
        share_settings = solving.choose_share_settings(parameters, scheme)
        scheme_shares = yield section.Cached(divide_budget, (ratings, scheme, *share_settings), 48)
        budget_shares.append(solving.replace_noise(scheme_shares, parameters))
    search_result: section.SearchResult = yield search_training(ratings, parameters)
    result = None if search_result.stage is Stage.EARLIER else search_result.value
    disclosure = solving.find_disclosure(parameters, dataset)
    solution = FactorisationSolution(parameters, ratings, disclosure, tuple(budget_shares), result)
    return section.SearchResult(solution)


def search_training(
    ratings: Ratings, parameters: FactorisationParameters, is_trained: bool = False
) -> section.Search:
    """Build the search that trains all models; a change of the page's own ε alone does not make its result outdated."""
    return section.Search(
        "train_job",
        (ratings.digest, replace(parameters.study, epsilons=(1.0,))),
        lambda report, stop: run(ratings, parameters.study, report, stop),
        "Training",
        "Train again" if is_trained else "Train",
        "model_training",
        is_main=not is_trained,
        outdated_text=":material/history: The last training was for other settings.",
        depends_on_data=parameters.source is RatingSource.DATA,
        compute_first=lambda: solving.find_stored(parameters),
        is_complete=lambda result: result.is_finished,
        is_heavy=True,
    )


def show_training(answer: Answer, dataset: Dataset) -> section.Parts:
    """Yield the search that trains all models, for the first time or again."""
    yield search_training(answer.solution.ratings, answer.parameters, answer.solution.result is not None)


def show_basis(answer: Answer, dataset: Dataset) -> section.Parts:
    """Yield a note on how many users, items and ratings there are."""
    yield section.Note(words.describe_ratings(answer.solution))


def show_budget(answer: Answer, dataset: Dataset) -> section.Parts:
    """Yield how the budget is divided, for an answer whose main figure shows something else."""
    yield "If noise over signal is above 1, no scheme can learn much of an item's vector."
    yield answer.plots["factorisation-shares"]()


def show_popularity(answer: Answer, dataset: Dataset) -> section.Parts:
    """Yield the differences to uniform sampling by popularity; before a training, a note that there is none."""
    if answer.solution.baseline_comparison is None:
        yield section.Note(NOT_TRAINED_SENTENCE)
        return
    measure_name = yield section.Choice("measure", "Measure", {"rmse": "Error (RMSE)", "recall": "Recall"})
    yield answer.plots[f"factorisation-buckets-{measure_name}"]()
    yield section.Note(
        f"Paired by seed; whiskers are 95{PERCENT} intervals."
        + (
            " Recall of rated items among the top 20 (all, most rated) to 100 (rarest). It shows little if, as in "
            "generated ratings, taste does not decide what is rated."
            if measure_name == "recall"
            else ""
        )
    )
    yield section.Label()


def show_nearest_items(answer: Answer, dataset: Dataset) -> section.Parts:
    """Yield the items nearest to one item under each model, in a table and a plot.

    Or a note that there are no models.
    """
    baseline_comparison = answer.solution.baseline_comparison
    yield section.Fields(("item",))
    names_from_data = None
    if answer.parameters.source is RatingSource.DATA:
        names_from_data = yield section.ItemNames("item")
    if baseline_comparison is None:
        yield section.Note(NOT_TRAINED_SENTENCE)
        return
    result: StudyResult = baseline_comparison.result
    if not result.first_seed_models:
        yield section.Note("This training was stored with its errors only: *Train again*.")
        return
    train_counts, epsilon = result.item_train_counts, baseline_comparison.epsilon
    item_names = list(names_from_data or (f"item {i}" for i in range(train_counts.size)))
    item_code = int(
        (-train_counts).argsort(kind="stable")[min(answer.parameters.item, train_counts.size) - 1]
    )
    names_by_kind = {ModelKind.NO_PRIVACY: "Not private"}
    names_by_kind |= {
        model_kind: words.NAME_BY_SCHEME[scheme] for model_kind, scheme in SCHEME_BY_KIND.items()
    }
    neighbour_texts_by_model: dict[str, list[str]] = {}
    for model_kind, model_name in names_by_kind.items():
        model = result.first_seed_models.get((model_kind, epsilon if model_kind.is_private else 0.0))
        if model is not None:
            nearest_items = find_nearest(
                model.coordinates_without_level, np.array([item_code]), NUM_NEIGHBOURS
            )[0]
            neighbour_texts_by_model[model_name] = [
                f"{escape_formula(item_names[i])} ({format_count(int(train_counts[i]), 'rating')})"
                for i in nearest_items
            ]
    yield (
        f"**Nearest to {escape_text(item_names[item_code])}** "
        f"({format_count(int(train_counts[item_code]), 'rating')} in training), "
        f"at ε = {format_entered(epsilon)}, first seed."
    )
    yield section.Table(
        neighbour_texts_by_model, "The nearest items under each model", key="factorisation_neighbours"
    )
    if (overlap_plot := plots.plot_nearest_items(answer.solution)) is not None:
        yield section.Figures((overlap_plot,), has_titles=True)
    yield section.Label()


def show_choices(answer: Answer, dataset: Dataset) -> section.Parts:
    """Yield a search that trains on what users chose and, once it has a result, recall over epsilon and by fifth."""
    parameters: FactorisationParameters = answer.parameters
    ratings: Ratings = answer.solution.ratings
    uses_data = parameters.source is RatingSource.DATA
    yield (
        "**What should be recommended?** Choices of users count fully; what they did not choose counts a little as a "
        "*no*. The test hides a fifth of the choices of held-out users and looks for them among 20 recommendations."
        + ("" if uses_data else " Here taste decides what generated users choose.")
        + (f" The algorithm is that of the page: {parameters.algorithm.label.lower()}.")
    )
    yield section.Fields(("chosen_from", "unobserved") if uses_data else ("unobserved",))
    study = parameters.choice_study

    def train(report_progress: ProgressReport, should_stop: ShouldStop) -> StudyResult:
        """Train and test the models of the study on choices.

        The choices are those in the data, or generated ones, where it depends on taste which items a user rates.
        """
        if uses_data:
            chosen_ratings = select_choices(ratings, parameters.chosen_from)
        else:
            generator = replace(parameters.population, choice_spread=CHOICE_SPREAD)
            chosen_ratings = select_choices(generator.draw(np.random.default_rng(parameters.data_seed)))
        return run(chosen_ratings, study, report_progress, should_stop)

    result: StudyResult | None = yield section.Search(
        "implicit_job",
        (ratings.digest, replace(study, epsilons=(1.0,)), parameters.train_epsilons, parameters.chosen_from),
        train,
        "Training on choices",
        "Train on choices",
        "model_training",
        shows_outdated=True,
        depends_on_data=uses_data,
        is_heavy=True,
    )
    if result is None:
        return
    baseline_comparison = solving.find_baseline_comparison(result, max(result.study.epsilons))
    yield words.write_comparison(result, parameters.epsilon)
    if baseline_comparison is not None:
        yield section.Figures((plots.plot_over_epsilon(result, answer.disclosure),), has_titles=True)
        bucket_names, model_kinds = ("All", *plots.BUCKET_NAMES), result.study.model_kinds
        recalls = np.array(
            [result.summarise(kind).means[baseline_comparison.epsilon_index] for kind in model_kinds]
        )
        columns_by_heading: dict[str, list[str]] = {"Model": [kind.value for kind in model_kinds]}
        columns_by_heading |= zip(bucket_names, recalls.T.tolist(), strict=True)
        yield (
            f"**By popularity, at ε = {format_entered(baseline_comparison.epsilon)}.** Recall at 20 over all items; "
            "by fifths of the items at 100 on the rarest to 20 on the most chosen."
        )
        alt, formats_by_column = "Recall of each model by popularity", dict.fromkeys(bucket_names, "%.3f")
        yield section.Table(columns_by_heading, alt, formats_by_column, key="factorisation_table_recall")
    yield section.Label()


def show_paper_figures(answer: Answer, dataset: Dataset) -> section.Parts:
    """Yield all figures and tables of the paper at its setting, on generated ratings and choices."""
    yield section.PaperFigures(paper.FIGURES)


def show_runs(answer: Answer, dataset: Dataset) -> section.Parts:
    """Yield all runs as a file to download; nothing before a training."""
    for file_name, write_file in answer.files.items():
        file_help_text = "Error and recall of each model, ε, seed and bucket."
        yield section.File("Runs (CSV)", file_name, write_file, help=file_help_text)


def build_sections(solution: FactorisationSolution) -> section.Sections:
    """Build the tabs of an answer by title.

    The budget has one after a training only, as the main figure shows it before.
    """
    budget_sections = {} if solution.baseline_comparison is None else {"Who gets the budget": show_budget}
    return {
        section.BEHIND: show_basis,
        "Items": {
            **budget_sections,
            "Rare and popular items": show_popularity,
            "Nearest items": show_nearest_items,
            "Implicit feedback": show_choices,
        },
        "Studies": {"The paper's figures": show_paper_figures},
        section.DOWNLOADS: show_runs,
    }
