"""The tabs of the page Factorisation below its answer."""

from __future__ import annotations

import streamlit as st

from dpcore.common import wording
from dpcore.dataset import Dataset
from dpcore.factorisation import files
from dpcore.factorisation.measures import neighbours
from dpcore.factorisation.parameters import RatingSource
from dpcore.factorisation.study import SCHEMES, Kind, StudyResult
from pages.factorisation import card, methods, report, work
from pages.factorisation import figures as factorisation_charts
from pages.factorisation.answer import FactorisationView, nearest, verdict
from pages.factorisation.question import QUESTION
from pages.shared.base import demo, tables
from pages.shared.card import cards, file_button
from pages.shared.fields import fields, jobs
from pages.shared.figures import figures
from pages.shared.report import take_away

NOT_TRAINED = "Nothing is trained for these settings yet: press *Train* above."
NEIGHBOURS = 6


def budget(view: FactorisationView) -> None:
    """Who gets the budget, where the main figure is another one."""
    st.markdown(
        "**Look at** the left end: what uniform sampling leaves for rare items, and how far noise stands above their "
        "signal. Where noise over signal is above 1, no scheme can teach an item's vector much."
    )
    figures.show_picture(factorisation_charts.shares_picture(view))


def popularity(view: FactorisationView) -> None:
    """Differences to uniform sampling by popularity."""
    result, at = view.result, None if view.result is None else nearest(view.result, view.parameters.epsilon)
    if result is None or at is None:
        st.caption(NOT_TRAINED)
        return
    key = QUESTION.key("measure")
    st.session_state.setdefault(key, "rmse")
    measure = fields.choice("Measure", {"rmse": "Error (RMSE)", "recall": "Recall"}, key)
    recall = measure == "recall"
    figures.show_picture(
        factorisation_charts.bucket_picture(result, at, view.table.spreads, view.table.disclosure, recall)
    )
    st.caption(
        f"Mean differences over {wording.counted(result.study.repeats, 'seed')}, paired; whiskers are "
        f"95{wording.PERCENT} intervals. "
        + (
            "Recall of items rated in the test set among the top 20 (all, most rated) to 100 (rarest). In generated "
            "ratings taste does not decide what is rated, so recall shows little."
            if recall
            else "Buckets are five equal parts of the items by ratings in training."
        )
    )
    cards.label(view.table.disclosure)


def likeness(view: FactorisationView) -> None:
    """The items nearest to one, under each model."""
    result, at = view.result, None if view.result is None else nearest(view.result, view.parameters.epsilon)
    fields.draw_row(QUESTION, "item")
    if result is None or at is None:
        st.caption(NOT_TRAINED)
        return
    epsilon = result.study.epsilons[at]
    counts = result.train_counts
    order = (-counts).argsort(kind="stable")
    rank = min(view.parameters.item, order.size) - 1
    item = int(order[rank])
    columns: dict[str, list[str]] = {}
    for kind, name in ((Kind.NO_PRIVACY, "Not private"), *((k, _short(k)) for k in SCHEMES)):
        model = result.models.get((kind, epsilon if kind.is_private else 0.0))
        if model is not None:
            columns[name] = [
                f"{one} ({wording.counted(int(counts[one]), 'rating')})"
                for one in neighbours(model, item, NEIGHBOURS)
            ]
    st.markdown(
        f"**Nearest to item {item}** ({wording.counted(int(counts[item]), 'rating')} in training), at "
        f"ε = {wording.entered(epsilon)}, first seed; by the inner product of item vectors without their level."
    )
    tables.show(columns, "The nearest items under each model", "factorisation_neighbours")
    shared = factorisation_charts.overlaps(result, at)
    if shared:
        picture = factorisation_charts.overlap_picture(
            shared, view.table.spreads, epsilon, counts.size, view.table.disclosure
        )
        st.markdown(f"**{picture.title}**")
        figures.show_picture(picture)
    cards.label(view.table.disclosure)


def _short(kind: Kind) -> str:
    return card.SCHEME_NAMES[SCHEMES[kind]]


def large(view: FactorisationView) -> None:
    """The size of MovieLens 10M, generated."""
    st.markdown(
        "**The size of MovieLens 10M**: 69,878 users, 10,677 items and 10 million ratings, generated, at "
        f"ε = {wording.entered(view.parameters.epsilon)} with one seed and the settings above."
    )
    if demo.is_served():
        st.caption("This public demo does not train at this size. Run the app on your own computer for it.")
        return
    if jobs.watch(work.LARGE_JOB, "Training at the large size"):
        return
    fields.button(
        f"Train: {work.LARGE_COST}", "factorisation_large", "memory", work.start_large, view.parameters
    )
    done = jobs.result_of(work.LARGE_JOB)
    if done is None or not isinstance(done[1], StudyResult):
        return
    (study, seed), result = done
    if (study, seed) != (view.parameters.large_study, view.parameters.data_seed):
        st.caption(":material/history: These results are for earlier settings.")
    if not result.runs:
        st.info("Stopped before the first private model was done.", icon=":material/stop_circle:")
        return
    if (found := verdict(result, result.study.epsilons[0])) is not None:
        st.markdown(f"**{card.headline(found)}**")
    table = {
        "Model": [kind.value for kind in Kind],
        "All": [float(result.mean(kind)[0][0, 0]) for kind in Kind],
    }
    for place, name in enumerate(factorisation_charts.BUCKET_NAMES):
        table[name] = [float(result.mean(kind)[0][0, 1 + place]) for kind in Kind]
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


def show_files(view: FactorisationView, data: Dataset) -> None:
    """The whole answer, and all runs."""
    kind = view.table.disclosure
    source = take_away.source(rows=True, disclosure=kind)
    if view.parameters.source is RatingSource.GENERATED:
        source = take_away.source(disclosure=kind)
    take_away.draw(
        "factorisation", kind, lambda: report.factorisation_report(view, data, source), methods.methods(view)
    )
    result = view.result
    if result is None:
        return
    st.markdown("**Runs** holds the error and recall of each model, ε, seed and bucket, a line each.")
    file_button.draw("Runs (CSV)", "factorisation_runs.csv", kind, lambda: files.runs_csv(result, kind.label))
