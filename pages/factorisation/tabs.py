"""The tabs of the page Factorisation below its answer."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from dpcore.answer import Answer
from dpcore.common import wording
from dpcore.data.column_names import escape_formula
from dpcore.dataset import Dataset
from dpcore.factorisation import paper_recall
from dpcore.factorisation.answer import FactorisationSolution, words
from dpcore.factorisation.answer import plots as core_plots
from dpcore.factorisation.answer.found import judge
from dpcore.factorisation.measures import find_neighbours
from dpcore.factorisation.paper import FIGURES
from dpcore.factorisation.parameters import FactorisationParameters, RatingSource
from dpcore.factorisation.study import SCHEMES, ModelKind, StudyResult
from dpcore.report.script import Code, Source
from pages.factorisation import work
from pages.factorisation.question import QUESTION
from pages.shared.base import demo, tables
from pages.shared.card import cards
from pages.shared.data import item_list
from pages.shared.fields import fields, jobs
from pages.shared.report import report_content, take_away
from pages.shared.screen import inputs, paper, plots

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
    paper.show((*FIGURES, *paper_recall.FIGURES), QUESTION.key("paper_figure"))


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
            item_list.show_upload(QUESTION, data)
        return
    if not result.models:
        st.caption("*Train again* shows them: this training was stored with its errors only.")
        return
    names = item_list.list_task_names(data) if own else ()
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
        item_list.show_upload(QUESTION, data)


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
    if jobs.watch(work.LARGE_JOB, "Training at the large size"):
        return
    fields.button(f"Train: {work.LARGE_COST}", "factorisation_large", "memory", work.start_large, parameters)
    done = jobs.result_of(work.LARGE_JOB)
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
    source = take_away.source(needs_rows=True, disclosure=kind)
    if not own:
        source = replace(take_away.source(disclosure=kind), write_cell=_generated_cell)
    unused = {*inputs.unused_fields(QUESTION), *NOT_ANSWERED}
    asked = QUESTION.asked(*(name for name in QUESTION.fields if name not in unused))
    take_away.draw(
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
