"""What stands on the page Recommender: its inputs, its tabs, and the work beside it."""

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


def shares(of: core.RatingsInUse, parameters: FactorisationParameters) -> tuple[BudgetShares, ...]:
    """Who gets the budget under each scheme."""
    asked = {scheme: core.choose_share_settings(parameters, scheme) for scheme in Scheme}
    return tuple(
        core.replace_noise(_shares(of.key, scheme, *budget, of), parameters)
        for scheme, budget in asked.items()
    )


TRAIN, LARGE_JOB = QUESTION.key("train_job"), QUESTION.key("large_job")
EARLIER = QUESTION.key("earlier")
"""The last training that was finished, with its question."""
LARGE_COST = "about 0.8 GB of memory, and half a minute on a free processor"
"""Measured: 0.72 GB with all of Python; 14 s of processor time, 4.5 of them to draw the ratings."""


def question(table: RatingsInUse, parameters: FactorisationParameters) -> tuple[object, ...]:
    """Return what a training answers: the ratings and what is run, without the page's own epsilon."""
    study = replace(parameters.study, epsilons=(1.0,))
    return table.key, study


def start(table: RatingsInUse, parameters: FactorisationParameters) -> None:
    """Train all models on this table."""
    ratings, study = table.ratings, parameters.study
    held = jobs.result_of(TRAIN)
    if held is not None and isinstance(held[1], StudyResult) and held[1].finished:
        st.session_state[EARLIER] = held  # Stop, or an error, does not take it away.
    jobs.start(
        TRAIN, question(table, parameters), lambda tell, stop: run(ratings, study, tell, stop), heavy=True
    )


def found(table: RatingsInUse, parameters: FactorisationParameters) -> tuple[StudyResult | None, bool]:
    """Return what was trained for this question as far as it is, here or before it was stored, and whether
    that is all.
    """
    asked = question(table, parameters)
    earlier = st.session_state.get(EARLIER)
    earlier = earlier[1] if earlier is not None and earlier[0] == asked else None
    for held, finished in ((jobs.result_of(TRAIN), True), (jobs.so_far_of(TRAIN), False)):
        if held is not None and held[0] == asked and isinstance(held[1], StudyResult):
            if earlier is not None and finished and not held[1].finished:
                return earlier, True  # What was stopped has less than what there was.
            return held[1], finished
    if earlier is None:
        earlier = stored.find_stored(parameters)
    return (None, False) if earlier is None else (earlier, True)


def show_progress(table: RatingsInUse, parameters: FactorisationParameters) -> bool:
    """Return how far the training is, with Stop. Returns whether it runs."""
    job: jobs.Job | None = st.session_state.get(TRAIN)
    if job is not None and job.running and job.question != question(table, parameters):
        job.stop()  # Nobody waits for the answer to another question.
    return jobs.watch(TRAIN, "Training")


def show_button(table: RatingsInUse, parameters: FactorisationParameters, trained: bool) -> None:
    """*Train*, with what it costs."""
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

    def work(tell: jobs.Tell, stop: ShouldStop) -> StudyResult | None:
        ratings = LARGE.draw(np.random.default_rng(seed))
        return run(ratings, study, tell, stop)

    jobs.start(LARGE_JOB, (study, seed), work, heavy=True)


SERVED_RATINGS = 600_000
SERVED_REPEATS = 3
"""What a public demo trains at most, about the defaults."""


def has_ratings(data: Dataset) -> bool:
    """Return whether the data hold a value for pairs of users and items."""
    return data.pairs is not None and data.pairs.sums is not None


def read_inputs(data: Dataset, places: layout.Places) -> FactorisationParameters | None:
    """Draw the inputs. Returns None, with the sentences on the page, where they do not fit together."""
    fields.start(QUESTION)
    state, key = st.session_state, QUESTION.key
    if state[key("source")] is RatingSource.DATA and not has_ratings(data):
        state[key("source")] = RatingSource.GENERATED
    unused = inputs.start(QUESTION)
    offered = list(RatingSource) if has_ratings(data) else [RatingSource.GENERATED]
    with places.line:
        fields.draw_all(QUESTION, "max_items", "exponent")
    ends = {key("lowest"): "the lowest rating", key("highest"): "the highest rating"}
    empty = [name for end, name in ends.items() if state[end] is None]
    with places.more("factorisation_more"):
        fields.draw(QUESTION, "source", options=offered)
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
            _beside(*(name for name in names if name not in unused))
        fields.draw(QUESTION, "train_epsilons")
        _beside("repeats", "train_seed")
    with places.notes:
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
            QUESTION, unused=unused, optional=QUESTION.placed(Place.TAB)
        )
        return parameters if parameters is None or _fits_here(parameters) else None


def _beside(*names: str) -> None:
    for column, name in zip(st.columns(2), names, strict=False):
        with column:
            fields.draw(QUESTION, name)


def _fits_here(parameters: FactorisationParameters) -> bool:
    """Return whether a public demo may train this; says what is too large where it may not."""
    if not demo.is_served():
        return True
    problems = Problems()
    of = parameters.generator
    if of is not None and of.num_users * of.ratings_per_user > SERVED_RATINGS:
        problems.add(
            f"this public demo generates at most {SERVED_RATINGS:,} ratings",
            remedy="Take fewer users or fewer ratings per user, or run the app on your own computer",
        )
    if parameters.repeats > SERVED_REPEATS:
        problems.add(f"this public demo trains at most {SERVED_REPEATS} seeds", remedy="Take fewer")
    if problems.entries:
        fields.say(problems.entries)
    return not problems.entries


NOT_TRAINED = "Nothing is trained for these settings yet: press *Train* above."
NEIGHBOURS = 6
NOT_ANSWERED = ("item", "chosen_from", "unobserved")
"""Fields that only a tab uses, and no report says."""


def budget(answer: Answer) -> None:
    """Who gets the budget, where the main figure is another one."""
    st.markdown(
        "**Look at** the left end: what uniform sampling leaves for rare items, and how far noise stands above their "
        "signal. Where noise over signal is above 1, no scheme can teach an item's vector much."
    )
    plots.draw(answer.plots["factorisation-shares"]())


def paper_figures() -> None:
    """The paper's figures at its setting, on generated ratings and choices."""
    plots.show_paper_figure((*FIGURES, *paper_recall.FIGURES), QUESTION.key("paper_figure"))


def popularity(answer: Answer) -> None:
    """Differences to uniform sampling by popularity."""
    found: FactorisationSolution = answer.solution
    if found.result is None or found.epsilon_index is None:
        st.caption(NOT_TRAINED)
        return
    key = QUESTION.key("measure")
    st.session_state.setdefault(key, "rmse")
    measure = fields.choice("Measure", {"rmse": "Error (RMSE)", "recall": "Recall"}, key)
    plots.draw(answer.plots[f"factorisation-buckets-{measure}"]())
    st.caption(
        f"Mean differences over {wording.counted(found.result.study.repeats, 'seed')}, paired; whiskers are "
        f"95{wording.PERCENT} intervals. "
        + (
            "Recall of items rated in the test set among the top 20 (all, most rated) to 100 (rarest). In generated "
            "ratings taste does not decide what is rated, so recall shows little."
            if measure == "recall"
            else "Buckets are five equal parts of the items by ratings in training."
        )
    )
    cards.label(answer.disclosure)


def likeness(found: FactorisationSolution, data: Dataset) -> None:
    """The items nearest to one, under each model."""
    result, at = found.result, found.epsilon_index
    fields.draw_row(QUESTION, "item")
    own = found.parameters.source is RatingSource.DATA
    if result is None or at is None:
        st.caption(NOT_TRAINED)
        if own:
            uploads.show_upload(QUESTION, data)
        return
    if not result.models:
        st.caption("*Train again* shows them: this training was stored with its errors only.")
        return
    names = uploads.list_task_names(data) if own else ()
    called = [f"item {one}" for one in range(result.train_counts.size)] if not names else list(names)
    epsilon = result.study.epsilons[at]
    counts = result.train_counts
    order = (-counts).argsort(kind="stable")
    rank = min(found.parameters.item, order.size) - 1
    item = int(order[rank])
    columns: dict[str, list[str]] = {}
    for kind, name in ((ModelKind.NO_PRIVACY, "Not private"), *((k, _short(k)) for k in SCHEMES)):
        model = result.models.get((kind, epsilon if kind.is_private else 0.0))
        if model is not None:
            columns[name] = [
                f"{escape_formula(called[one])} ({wording.counted(int(counts[one]), 'rating')})"
                for one in find_neighbours(model, item, NEIGHBOURS)
            ]
    st.markdown(
        f"**Nearest to {wording.plain(called[item])}** ({wording.counted(int(counts[item]), 'rating')} in training), "
        f"at ε = {wording.entered(epsilon)}, first seed; by the inner product of item vectors without their level."
    )
    tables.show(columns, "The nearest items under each model", "factorisation_neighbours")
    if shared := core_plots.compute_overlaps(result, at):
        plots.draw_titled(core_plots.plot_nearest_items(found, shared))
    cards.label(found.table.disclosure)
    if own:
        uploads.show_upload(QUESTION, data)


def _short(kind: ModelKind) -> str:
    return words.SCHEME_NAMES[SCHEMES[kind]]


def large(parameters: FactorisationParameters) -> None:
    """The size of MovieLens 10M, generated."""
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
    if (found := judge(result, result.study.epsilons[0])) is not None:
        st.markdown(f"**{words.write_verdict(found)}**")
    table = {
        "Model": [kind.value for kind in ModelKind],
        "All": [float(result.summarise(kind)[0][0, 0]) for kind in ModelKind],
    }
    for place, name in enumerate(core_plots.BUCKET_NAMES):
        table[name] = [float(result.summarise(kind)[0][0, 1 + place]) for kind in ModelKind]
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
    """The whole answer, and all runs."""
    kind, parameters = answer.disclosure, answer.parameters
    own = parameters.source is RatingSource.DATA
    source = report_content.source(needs_rows=True, disclosure=kind)
    if not own:
        source = replace(report_content.source(disclosure=kind), write_cell=_generated_cell)
    unused = {*inputs.unused_fields(QUESTION), *NOT_ANSWERED}
    asked = QUESTION.asked(*(name for name in QUESTION.fields if name not in unused))
    report_content.draw(
        "factorisation",
        kind,
        lambda: report_content.of_answer(
            QUESTION,
            answer,
            source,
            setting_labels=asked,
            summary=words.summarise_ratings(answer.solution, data if own else None),
        ),
        answer.methods,
    )
    if answer.files:
        st.markdown("**Runs** holds the error and recall of each model, ε, seed and bucket, a line each.")
    for name, content in answer.files.items():
        cards.file_button("Runs (CSV)", name, kind, content)
