"""The tabs of Choose privately below its answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from dpcore.answer import Answer
from dpcore.common import wording
from dpcore.common.errors import InvalidInput
from dpcore.common.ledger import Ledger
from dpcore.common.noise_error import NoiseKind
from dpcore.per_group.parameters import PerGroupParameters, Statistic
from dpcore.private_choice import choice, comparison
from dpcore.private_choice.answer import Copies, PrivateFound, build_answer, drawing, plots, words
from dpcore.private_choice.answer import found as core
from dpcore.private_choice.answer.drawing import Lacking
from dpcore.private_choice.answer.methods import methods
from dpcore.private_choice.choice import PrivateChoice
from dpcore.private_choice.parameters import PrivateParameters
from dpcore.report.content import Line, Report
from pages.per_group import inputs as per_group_inputs
from pages.per_group.question import QUESTION as PER_GROUP
from pages.private_choice import actions, cached, on_card, on_range, work
from pages.private_choice.inputs import OF_ONE_QUESTION
from pages.private_choice.question import QUESTION
from pages.shared.base import keys
from pages.shared.card import cards
from pages.shared.card.expenditure import spent_lines
from pages.shared.fields import fields, jobs, setting
from pages.shared.report import report_content, take_away
from pages.shared.screen import plots as screen
from pages.shared.session import session

PROGRESS_HEIGHT = 44
"""In pixels: kept free for a line of progress, so that nothing moves when it comes and goes."""


def behind(answer: Answer) -> None:
    """What the two ways are, what either costs, and what is assumed."""
    st.markdown(
        f"- **Private copy.** {actions.COPY_IS}\n- **Direct choice.** {actions.choice_is(answer.parameters.wanted)}"
    )
    cards.behind(answer)


def leak(found: PrivateFound) -> None:
    """Why a bound chosen in the clear leaks."""
    data = found.data
    moved = cached.leak(data.digest, core.without_budget(found.parameters), data)
    st.markdown(
        f"{words.leak_sentence(found, moved, data.release is not None)} The ε of the release does not cover that: "
        "there are two remedies, and each costs an ε of its own."
    )
    screen.draw(plots.leak(moved, data))
    cards.label(data.provenance)


def over_users(found: PrivateFound) -> None:
    """What either way would cost with fewer users or more."""
    st.markdown("Every user is taken so many times: shares stay, noise matters less.")
    data, parameters = found.data, found.parameters
    copies = work.over_users(data, parameters)
    screen.draw(plots.over_users(found, cached.over_users(data.digest, parameters, data), copies))
    show_progress(work.USERS.key, copies)
    cards.label(data.provenance)


def show_progress(key: str, copies: Copies) -> None:
    """How far the simulation is, in one line that is always there."""
    with st.container(height=PROGRESS_HEIGHT, border=False):
        doing = "Simulating private copies" + ("; pale: settings before" if copies.earlier else "")
        if not jobs.watch(key, doing) and copies.cancelled:
            st.caption("The simulation of private copies was stopped early.")


def files(found: PrivateFound) -> None:
    """The whole answer, with what was drawn."""
    drawn, ledger, source = actions.choices(), session.ledger(), take_away.source()
    parameters, copies = found.parameters, found.copies

    def content() -> Report:
        # At the budget of the choice the cost of a copy is made up for; the curve of the settings before is left out.
        at = copies.at or comparison.copy_cost(parameters, found.data.histogram)
        curve = () if copies.earlier else copies.over_epsilon
        answer = build_answer(
            found.data, parameters, replace(found, copies=replace(copies, at=at, over_epsilon=curve))
        )
        of = report_content.of_answer(QUESTION, answer, source, asked=_asked(parameters))
        return replace(of, releases=_released(drawn, ledger), methods=None)

    take_away.draw("private", found.data.provenance, content, methods(found, actions.numbers(), ledger))


def _asked(parameters: PrivateParameters) -> dict[str, str]:
    """Return what was asked, in words; of the fields for one kind of number those that apply."""
    asked = QUESTION.asked(
        "wanted",
        "epsilon_choice",
        "relation",
        "noise",
        "delta",
        "largest",
        *(name for name, wanted in OF_ONE_QUESTION.items() if parameters.wanted in wanted),
        "guess",
        "factor",
    )
    return asked | {"epsilon": "ε of the release that will use it"}


def _released(drawn: Sequence[tuple[words.Kind, words.Drawn]], ledger: Ledger) -> tuple[Line, ...]:
    """Return what was drawn, and what everything drawn cost: the person's own doing, which tells nothing of
    the data.
    """
    return (*(_line(kind, one) for kind, one in drawn), *spent_lines(ledger))


def _line(kind: words.Kind, one: words.Drawn) -> Line:
    name = wording.capital(words.NUMBER_NAMES[kind])
    if not isinstance(one, PrivateChoice):
        return Line(name, words.shown(one), one.facts)
    rows = wording.counted(one.value, "row") if one.value == 1.0 else f"{choice.shown(one)} rows"
    return Line(name, rows, one.facts, number=one.value)


def value_range() -> None:
    """The range of a value, drawn with an ε of its own."""
    if on_range.form(session.original().dataset):
        st.rerun()


def pair() -> None:
    """The pair of bounds of *Per group*, drawn with one ε."""
    data = session.dataset()
    st.markdown(
        "To how many groups may one user add, and how much to each? Both numbers are drawn at once, with one "
        f"ε. {words.PAIR_AIM}"
    )
    if data.pairs is None and data.pair_sizes is None:
        st.info("These data have no groups: load them in *Your data* with a group in each row.")
        return
    parameters = per_group_setting()
    if isinstance(parameters, str):
        st.info(parameters)
        return
    try:
        asked = drawing.pair_asked_for(parameters, actions.beside())
    except InvalidInput as refused:
        fields.say(refused.problems)
        return
    if parameters.statistic is Statistic.SUM:
        with st.container(horizontal=True):
            fields.draw_all(QUESTION, "pair_unit", "pair_largest")
    if isinstance(asked, Lacking):
        st.info(asked.said)
        return
    way = on_card.Way(asked)
    st.markdown(f"{words.usual_cost(asked)} What is released is set on *Per group*.")
    if way.dropped:
        st.markdown(way.dropped)
    st.button(way.name, key="private_pair_draw", icon=":material/casino:", help=way.help, on_click=way.draw)
    st.page_link(session.page_file("Per group"), label="Per group", icon=":material/table_rows:")


def per_group_setting() -> PerGroupParameters | str:
    """Return the release that *Per group* is set to, or why it is none."""
    fields.start(PER_GROUP, shares=False)
    state, key = st.session_state, PER_GROUP.key
    statistic, noise = state[key("statistic")], state[key("noise")]
    try:
        return PerGroupParameters(
            state[keys.EPSILON],
            statistic if statistic in per_group_inputs.offered(session.dataset()) else Statistic.ROWS,
            noise,
            state[key("delta")] if noise is NoiseKind.GAUSSIAN else None,
            state[key("neighbours")],
            lower=setting.held(PER_GROUP, "lower") if statistic is Statistic.MEAN else None,
            upper=setting.held(PER_GROUP, "upper") if statistic is Statistic.MEAN else None,
            num_groups=None if state[key("num_groups")] is None else int(state[key("num_groups")]),
        )
    except InvalidInput as refused:
        return " ".join(f"{wording.capital(one.message)}." for one in refused.problems)
