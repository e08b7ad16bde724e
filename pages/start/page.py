"""Start: what this is, in a picture that moves, and which page answers a person's question."""

from dataclasses import replace

import streamlit as st

from dpcore.common import wording
from dpcore.common.markdown import plain
from dpcore.dataset import Dataset
from dpcore.start import presets
from dpcore.start.answer import answered
from dpcore.start.answer.answer import ASSUMED, dots_said
from dpcore.start.parameters import StartParameters
from pages.shared.base import keys
from pages.shared.card import cards
from pages.shared.fields import fields
from pages.shared.figures import figures
from pages.shared.screen import layout, plots
from pages.shared.session import session, shelf, stand_ins
from pages.start import advice, cached, play
from pages.start.question import QUESTION


def body(places: layout.Places) -> None:
    """The picture, and below it the way to a page."""
    with places.line:
        users = fields.draw(QUESTION, "users")
    data = presets.shown(session.dataset(), users)
    # Where the slider stood first was read off the users before, which may be private.
    if st.session_state.get(QUESTION.key("of"), data.digest) != data.digest:
        st.session_state.pop(QUESTION.key("bound"), None)
        play.stop()
    st.session_state[QUESTION.key("of")] = data.digest
    steps = play.bound_steps(data.histogram)
    with places.line:
        bound = show_bound(data, steps, play.bound_now(steps, lambda: best_bound(data)))
        play.button()
    with places.notes:
        # Where the slider stands at first, and where it ends, is read off the data: on private data no public input.
        shown = None if data.is_private else bound
        parameters: StartParameters | None = fields.build(QUESTION, instead={"bound": shown})
    if parameters is not None:
        show(places, parameters, data, bound)
    with places.below:
        show_way(data)


def best_bound(data: Dataset) -> float:
    """The best bound; 1 while what stands in the field of epsilon is refused."""
    epsilon = st.session_state[keys.EPSILON]
    return (
        1.0 if fields.epsilon_problems(epsilon) else cached.found(data.digest, epsilon, data).best.max_total
    )


def show(places: layout.Places, parameters: StartParameters, data: Dataset, bound: int) -> None:
    """The figures and the answer."""
    st.session_state[keys.PAGE_PARAMETERS] = parameters
    # During the tour its question says whose rows these are, and the sentence would answer it.
    if parameters.users in presets.SENTENCES and shelf.tour() is None:
        places.notes.markdown(f"**Invented users.** {presets.SENTENCES[parameters.users]}")
    found = cached.found(data.digest, parameters.epsilon, data)
    answer = answered(data, replace(parameters, bound=bound), found)
    with places.figure:
        plots.show(answer.plots["start-tradeoff"]())
    with places.answer:
        cards.answer(answer, key="start_card")
    with places.below:
        st.header("Which rows are cut")
        chart = st.container()
        under = st.container(horizontal=True, vertical_alignment="center")
        under.caption(dots_said(found.rows), width="content")
        figures.show_picture(plots.picture(answer.plots["start-rows"]()), under, chart)


def show_bound(data: Dataset, steps: tuple[int, ...], played: int | None) -> int:
    """The slider of the bound; it moves by itself while it is played."""
    field, key = QUESTION.field("bound"), QUESTION.key("bound")
    if played is not None:
        st.session_state[key] = played
    elif st.session_state.get(key) not in steps:
        st.session_state[key] = play.first_bound(data.histogram)
    return st.select_slider(
        field.label,
        steps,
        key=key,
        persist_state="session",
        format_func=wording.number,
        disabled=played is not None,
        width=fields.wide(field.width or 210),
    )


def show_way(data: Dataset) -> None:
    """Three questions that lead to a page, and what is drawn above them."""
    st.header("Which page is mine?")
    several, who, release = (
        st.radio(label, options, index=None, key=QUESTION.key(name), persist_state="session", horizontal=True)
        for name, label, options in (
            ("several", "1. Can one person have several rows?", list(advice.SEVERAL)),
            ("who", "2. Which column says who a row belongs to?", list(advice.WHO)),
            ("release", "3. What do you release?", advice.releases()),
        )
    )
    for sentence in advice.sentences(several, who):
        st.markdown(sentence)
    with st.container(horizontal=True):
        stand_ins.bring("Bring your data")
        target = advice.page_for(release)
        if target is not None:
            st.page_link(target.path, label=f"Go to {target.title}", icon=target.icon)
            st.caption(target.sentence)
    st.caption(f"The figure is drawn on {plain(data.name)}. {ASSUMED}.")


layout.show(QUESTION, body)
