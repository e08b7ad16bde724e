"""Quantile: the exact distribution of a private median or quantile, and the bound that serves it best."""

from dataclasses import replace

import streamlit as st

from dpcore.answer import Answer, Plot
from dpcore.answer.stage import Stage
from dpcore.quantile.answer import QuantileFound, build_answer, words
from pages.quantile import inputs, tabs, work
from pages.quantile.question import QUESTION
from pages.shared.base import keys, page_run
from pages.shared.fields import jobs
from pages.shared.screen import answer_tabs, layout, plots
from pages.shared.session import session, stand_ins

in_use = session.dataset()
demonstration = in_use.values is None
data = stand_ins.load_demonstration() if demonstration else in_use
label = stand_ins.DEMONSTRATION if demonstration else ""


def body(places: layout.Places) -> None:
    """Read the inputs and show the answer."""
    if demonstration:
        page_run.answers_on_invented_data()
        needs = stand_ins.explain_missing(in_use, "values, one per row", "This page")
        places.notes.markdown(f":small[{needs}]")
    parameters = inputs.read(data, places)
    if parameters is None:
        return
    st.session_state[keys.PAGE_PARAMETERS] = parameters
    found = work.find(data, parameters, demonstration or session.is_same_for_all())
    main: Plot | None = None
    searching = found.stage is not Stage.FINAL
    if found.value is not None:
        page_run.answers(found.value.parameters)
        answer = shown_answer(found.value)
    with places.figure:  # First: its message goes ahead of all others.
        if found.value is not None:
            main = plots.show(plots.main_plot(answer, "quantile-error"), label=label)
        # Always there, so that nothing moves when the exact answer has come.
        with st.container(height=tabs.PROGRESS_HEIGHT, border=False):
            if searching:
                doing = "Trying bounds on your values" if main is None else work.DOING[found.stage]
                jobs.watch(work.SEARCH.key, doing)
    if main is None:
        return
    show_rest(places, tabs.Shown(answer, data, label, searching), main)


def shown_answer(found: QuantileFound) -> Answer:
    """Return the answer; about invented data it says so first."""
    answer = build_answer(data, found.parameters, found)
    if not demonstration:
        return answer
    return replace(answer, detail=f"**{label}.** {words.write_detail(found, data)}")


def show_rest(places: layout.Places, shown: tabs.Shown, main: Plot) -> None:
    """What stands beside and below the main figure."""
    of: dict[str, answer_tabs.Content] = {
        "Where the answer falls": lambda: tabs.where(shown),
        "Studies": {
            "Base distribution": lambda: tabs.base(shown),
            "The paper's bound": lambda: tabs.paper(shown, main.x.limits),
            "Sampled answers": lambda: tabs.samples(shown),
        },
    }
    answer_tabs.show(
        places,
        QUESTION,
        shown.answer,
        of,
        lambda: tabs.files(shown),
        describe_basis=lambda: inputs.what_is_used(data, shown.answer.parameters),
    )
    with places.answer:
        if demonstration:
            stand_ins.draw_data_link("Bring data with values")
        if shown.answer.solution.choices.cancelled:
            st.button(
                "Search again", key="quantile_again", on_click=work.SEARCH.forget, icon=":material/refresh:"
            )


layout.show(QUESTION, body)
