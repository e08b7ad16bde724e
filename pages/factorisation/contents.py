"""The contents of the page Recommender: its inputs, its tabs, and the work beside it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import streamlit as st

from dpcore.answer.answer import Answer
from dpcore.common import wording
from dpcore.common.checks import Problems
from dpcore.common.parameters import Place
from dpcore.common.progress import ShouldStop
from dpcore.data.column_names import escape_formula
from dpcore.dataset import Dataset
from dpcore.factorisation import paper_recall
from dpcore.factorisation.allocation import BudgetShares, Scheme, Spending, divide_budget
from dpcore.factorisation.answer import plots as core_plots
from dpcore.factorisation.answer import solution as core
from dpcore.factorisation.answer import stored, words
from dpcore.factorisation.answer.solution import FactorisationSolution, RatingsInUse, judge
from dpcore.factorisation.measures import find_neighbours
from dpcore.factorisation.paper import FIGURES
from dpcore.factorisation.parameters import LARGE, FactorisationParameters, RatingSource
from dpcore.factorisation.study import SCHEMES, ModelKind, StudyResult, run
from dpcore.report.script import Code, Source
from pages.factorisation.question import GENERATOR, QUESTION, RANGE
from pages.shared.base import demo, tables
from pages.shared.base.cache import cached
from pages.shared.card import cards
from pages.shared.data import uploads
from pages.shared.fields import fields, jobs
from pages.shared.report import report_content
from pages.shared.screen import inputs, layout, plots
from pages.shared.session import session


@cached(max_entries=2, spinner="Drawing ratings …")
def _table(key: str, _parameters: FactorisationParameters, _data: Dataset) -> core.RatingsInUse | None:
    return core.load_table(_parameters, _data)


def table(parameters: FactorisationParameters, data: Dataset) -> core.RatingsInUse | None:
    """Return the ratings; ``None`` where the data hold none."""
    return _table(core.make_table_key(parameters, data), parameters, data)


@cached(max_entries=48)
def _shares(
    key: str, scheme: Scheme, spending: Spending, exponent: float, _table: core.RatingsInUse
) -> BudgetShares:
    return divide_budget(_table.ratings, scheme, spending, exponent)


def shares(
    ratings_in_use: core.RatingsInUse, parameters: FactorisationParameters
) -> tuple[BudgetShares, ...]:
    """Return the division of the budget by each scheme."""
    settings = {scheme: core.choose_share_settings(parameters, scheme) for scheme in Scheme}
    return tuple(
        core.replace_noise(_shares(ratings_in_use.key, scheme, *budget, ratings_in_use), parameters)
        for scheme, budget in settings.items()
    )


TRAIN, LARGE_JOB = QUESTION.key("train_job"), QUESTION.key("large_job")
EARLIER = QUESTION.key("earlier")
"""The last training that was finished, with its question."""
LARGE_COST = "about 0.8 GB of memory, and half a minute on a free processor"
"""Measured: 0.72 GB with all of Python; 14 s of processor time, 4.5 of them to draw the ratings."""


def question(table: RatingsInUse, parameters: FactorisationParameters) -> tuple[object, ...]:
    """Return the question that a training answers: ratings and study, without the page's own epsilon."""
    study = replace(parameters.study, epsilons=(1.0,))
    return table.key, study


def start(table: RatingsInUse, parameters: FactorisationParameters) -> None:
    """Train all models on this table."""
    ratings, study = table.ratings, parameters.study
    trained = jobs.result_of(TRAIN)
    if trained is not None and isinstance(trained[1], StudyResult) and trained[1].finished:
        st.session_state[EARLIER] = trained  # Stop, or an error, does not take it away.
    jobs.start(
        TRAIN,
        question(table, parameters),
        lambda progress, stop: run(ratings, study, progress, stop),
        heavy=True,
    )


def get_training(table: RatingsInUse, parameters: FactorisationParameters) -> tuple[StudyResult | None, bool]:
    """Return the training for this question as far as it is, from this session or stored; and True if it has ended."""
    present_question = question(table, parameters)
    earlier = st.session_state.get(EARLIER)
    earlier = earlier[1] if earlier is not None and earlier[0] == present_question else None
    for training, finished in ((jobs.result_of(TRAIN), True), (jobs.so_far_of(TRAIN), False)):
        if training is not None and training[0] == present_question and isinstance(training[1], StudyResult):
            if earlier is not None and finished and not training[1].finished:
                return earlier, True  # What was stopped has less than what there was.
            return training[1], finished
    if earlier is None:
        earlier = stored.find_stored(parameters)
    return (None, False) if earlier is None else (earlier, True)


def show_progress(table: RatingsInUse, parameters: FactorisationParameters) -> bool:
    """Show how far the training is, with Stop; return True if it runs."""
    job: jobs.Job | None = st.session_state.get(TRAIN)
    if job is not None and job.running and job.question != question(table, parameters):
        job.stop()  # Nobody waits for the answer to another question.
    return jobs.watch(TRAIN, "Training")


def show_button(table: RatingsInUse, parameters: FactorisationParameters, trained: bool) -> None:
    """Draw the button *Train*."""
    st.button(
        "Train again" if trained else "Train",
        type="secondary" if trained else fields.main_button(),
        icon=":material/model_training:",
        key="factorisation_train",
        on_click=start,
        args=(table, parameters),
    )
    job: jobs.Job | None = st.session_state.get(TRAIN)
    if job is not None and not trained and job.question != question(table, parameters):
        st.caption(":material/history: The last training was for other settings.")


def start_large(parameters: FactorisationParameters) -> None:
    """Draw ratings at the size of MovieLens 10M, and train at the page's epsilon."""
    study = parameters.large_study
    seed = parameters.data_seed

    def work(progress: jobs.Progress, stop: ShouldStop) -> StudyResult | None:
        ratings = LARGE.draw(np.random.default_rng(seed))
        return run(ratings, study, progress, stop)

    jobs.start(LARGE_JOB, (study, seed), work, heavy=True)


SERVED_RATINGS = 600_000
SERVED_REPEATS = 3
"""What a public demo trains at most, about the defaults."""


def has_ratings(data: Dataset) -> bool:
    """Return True if the data hold a value for pairs of users and items."""
    return data.pairs is not None and data.pairs.sums is not None


def read_inputs(data: Dataset, slots: layout.PageSlots) -> FactorisationParameters | None:
    """Draw the inputs and return the parameters; None, with the sentences on the page, if they are refused."""
    fields.start(QUESTION)
    state, key = st.session_state, QUESTION.key
    if state[key("source")] is RatingSource.DATA and not has_ratings(data):
        state[key("source")] = RatingSource.GENERATED
    unused = inputs.start(QUESTION)
    sources = list(RatingSource) if has_ratings(data) else [RatingSource.GENERATED]
    with slots.line:
        fields.draw_all(QUESTION, "max_items", "exponent")
    ends = {key("lowest"): "the lowest rating", key("highest"): "the highest rating"}
    empty = [name for end, name in ends.items() if state[end] is None]
    with slots.more_settings("factorisation_more"):
        fields.draw(QUESTION, "source", options=sources)
        if not has_ratings(data):
            st.caption("The data in use hold no ratings of items, so these are generated.")
            session.draw_data_link("Bring ratings")
        fields.draw(QUESTION, "algorithm")
        for names in (
            ("steps", "gradient_bound"),
            () if empty else RANGE,
            *(GENERATOR[:2], GENERATOR[2:4], GENERATOR[4:]),
            ("dimension", "sweeps"),
            ("user_ridge", "ridge_to_noise"),
            ("count_share", "delta"),
        ):
            _draw_in_columns(*(name for name in names if name not in unused))
        fields.draw(QUESTION, "train_epsilons")
        _draw_in_columns("repeats", "train_seed")
    with slots.notes:
        if data.pairs is not None and not has_ratings(data):
            st.markdown(
                ":small[The data in use have groups but no ratings of them: **these are generated**.]"
            )
        if state[key("source")] is RatingSource.DATA:
            session.explain_cleared(ends)
            if empty:
                # Below the line, where they are seen; once both are filled they stand under *More settings*.
                fields.draw_row(QUESTION, *RANGE)
                st.info(
                    f"**What range can a rating have?** Enter {' and '.join(empty)}, from what a rating is by design. "
                    "Do not read it off private data. The answer follows.",
                    icon=":material/straighten:",
                )
                return None
        parameters: FactorisationParameters | None = fields.build(
            QUESTION, unused=unused, optional=QUESTION.list_fields(Place.TAB)
        )
        return parameters if parameters is None or _fits_here(parameters) else None


def _draw_in_columns(*names: str) -> None:
    for column, name in zip(st.columns(2), names, strict=False):
        with column:
            fields.draw(QUESTION, name)


def _fits_here(parameters: FactorisationParameters) -> bool:
    """Return True if a public demo may train this; otherwise show which number is too large."""
    if not demo.is_served():
        return True
    problems = Problems()
    generator = parameters.generator
    if generator is not None and generator.num_users * generator.ratings_per_user > SERVED_RATINGS:
        problems.add(
            f"this public demo generates at most {SERVED_RATINGS:,} ratings",
            remedy="Take fewer users or fewer ratings per user, or run the app on your own computer",
        )
    if parameters.repeats > SERVED_REPEATS:
        problems.add(f"this public demo trains at most {SERVED_REPEATS} seeds", remedy="Take fewer")
    if problems.entries:
        fields.show_problems(problems.entries)
    return not problems.entries


NOT_TRAINED = "Nothing is trained for these settings yet: press *Train* above."
NEIGHBOURS = 6
NOT_ANSWERED = ("item", "chosen_from", "unobserved")
"""Fields that only a tab uses, and no report says."""


def budget(answer: Answer) -> None:
    """Draw how the budget is divided, for a page whose main figure shows something else."""
    st.markdown(
        "**Look at** the left end: what uniform sampling leaves for rare items, and how far noise stands above their "
        "signal. Where noise over signal is above 1, no scheme can teach an item's vector much."
    )
    plots.draw(answer.plots["factorisation-shares"]())


def paper_figures() -> None:
    """Draw the paper's figures at its setting, on generated ratings and choices."""
    plots.show_paper_figure((*FIGURES, *paper_recall.FIGURES), QUESTION.key("paper_figure"))


def popularity(answer: Answer) -> None:
    """Draw the differences to uniform sampling by popularity."""
    solution: FactorisationSolution = answer.solution
    if solution.result is None or solution.epsilon_index is None:
        st.caption(NOT_TRAINED)
        return
    key = QUESTION.key("measure")
    st.session_state.setdefault(key, "rmse")
    measure = fields.choice("Measure", {"rmse": "Error (RMSE)", "recall": "Recall"}, key)
    plots.draw(answer.plots[f"factorisation-buckets-{measure}"]())
    st.caption(
        f"Mean differences over {wording.counted(solution.result.study.repeats, 'seed')}, paired; whiskers are "
        f"95{wording.PERCENT} intervals. "
        + (
            "Recall of items rated in the test set among the top 20 (all, most rated) to 100 (rarest). In generated "
            "ratings taste does not decide what is rated, so recall shows little."
            if measure == "recall"
            else "Buckets are five equal parts of the items by ratings in training."
        )
    )
    cards.label(answer.disclosure)


def likeness(solution: FactorisationSolution, data: Dataset) -> None:
    """Draw the items that are nearest to one item, under each model."""
    result, epsilon_index = solution.result, solution.epsilon_index
    fields.draw_row(QUESTION, "item")
    uses_data = solution.parameters.source is RatingSource.DATA
    if result is None or epsilon_index is None:
        st.caption(NOT_TRAINED)
        if uses_data:
            uploads.show_upload(QUESTION, data)
        return
    if not result.models:
        st.caption("*Train again* shows them: this training was stored with its errors only.")
        return
    names = uploads.list_task_names(data) if uses_data else ()
    item_names = [f"item {i}" for i in range(result.train_counts.size)] if not names else list(names)
    epsilon = result.study.epsilons[epsilon_index]
    counts = result.train_counts
    order = (-counts).argsort(kind="stable")
    rank = min(solution.parameters.item, order.size) - 1
    item = int(order[rank])
    columns: dict[str, list[str]] = {}
    for model_kind, name in ((ModelKind.NO_PRIVACY, "Not private"), *((k, _short(k)) for k in SCHEMES)):
        model = result.models.get((model_kind, epsilon if model_kind.is_private else 0.0))
        if model is not None:
            columns[name] = [
                f"{escape_formula(item_names[neighbour])} ({wording.counted(int(counts[neighbour]), 'rating')})"
                for neighbour in find_neighbours(model, item, NEIGHBOURS)
            ]
    st.markdown(
        f"**Nearest to {wording.plain(item_names[item])}** ({wording.counted(int(counts[item]), 'rating')} in "
        f"training), at ε = {wording.entered(epsilon)}, first seed; by the inner product of item vectors without "
        "their level."
    )
    tables.show(columns, "The nearest items under each model", "factorisation_neighbours")
    if shared := core_plots.compute_overlaps(result, epsilon_index):
        plots.draw_titled(core_plots.plot_nearest_items(solution, shared))
    cards.label(solution.table.disclosure)
    if uses_data:
        uploads.show_upload(QUESTION, data)


def _short(model_kind: ModelKind) -> str:
    return words.SCHEME_NAMES[SCHEMES[model_kind]]


def large(parameters: FactorisationParameters) -> None:
    """Draw the training at the size of MovieLens 10M, on generated ratings."""
    st.markdown(
        "**The size of MovieLens 10M**: 69,878 users, 10,677 items and 10 million ratings, generated, at "
        f"ε = {wording.entered(parameters.epsilon)} with one seed and the settings above."
    )
    if demo.is_served():
        st.caption("This public demo does not train at this size. Run the app on your own computer for it.")
        return
    if jobs.watch(LARGE_JOB, "Training at the large size"):
        return
    fields.button(f"Train: {LARGE_COST}", "factorisation_large", "memory", start_large, parameters)
    done = jobs.result_of(LARGE_JOB)
    if done is None or not isinstance(done[1], StudyResult):
        return
    (study, seed), result = done
    if (study, seed) != (parameters.large_study, parameters.data_seed):
        st.caption(":material/history: These results are for earlier settings.")
    if not result.runs:
        st.info("Stopped before the first private model was done.", icon=":material/stop_circle:")
        return
    if (verdict := judge(result, result.study.epsilons[0])) is not None:
        st.markdown(f"**{words.write_verdict(verdict)}**")
    table = {
        "Model": [model_kind.value for model_kind in ModelKind],
        "All": [float(result.summarise(model_kind)[0][0, 0]) for model_kind in ModelKind],
    }
    for bucket, name in enumerate(core_plots.BUCKET_NAMES):
        table[name] = [float(result.summarise(model_kind)[0][0, 1 + bucket]) for model_kind in ModelKind]
    tables.show(
        table,
        "Test error of each model, over all items and by popularity",
        "factorisation_large_table",
        dict.fromkeys([name for name in table if name != "Model"], "%.4f"),
    )
    st.caption(
        f"Test error (RMSE) at ε = {wording.entered(result.study.epsilons[0])}, over all items and by fifths of the "
        "items from rare to popular."
    )


def _generated_cell(code: Code, source: Source, public_only: bool) -> str:
    return "data = None  # Ratings are generated, as the settings say."


def show_files(answer: Answer, data: Dataset) -> None:
    """Offer the whole answer, and all runs, as files."""
    disclosure, parameters = answer.disclosure, answer.parameters
    uses_data = parameters.source is RatingSource.DATA
    source = report_content.source(needs_rows=True, disclosure=disclosure)
    if not uses_data:
        source = replace(report_content.source(disclosure=disclosure), write_cell=_generated_cell)
    unused = {*inputs.unused_fields(QUESTION), *NOT_ANSWERED}
    setting_labels = QUESTION.get_labels(*(name for name in QUESTION.fields if name not in unused))
    report_content.draw(
        "factorisation",
        disclosure,
        lambda: report_content.of_answer(
            QUESTION,
            answer,
            source,
            setting_labels=setting_labels,
            summary=words.summarise_ratings(answer.solution, data if uses_data else None),
        ),
        answer.methods,
    )
    if answer.files:
        st.markdown("**Runs** holds the error and recall of each model, ε, seed and bucket, a line each.")
    for name, content in answer.files.items():
        cards.file_button("Runs (CSV)", name, disclosure, content)
