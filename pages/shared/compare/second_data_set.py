"""A second data set beside the one in use: both curves on one figure, and the bound that serves both best."""

from __future__ import annotations

import dataclasses
import importlib
import re
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from dpcore.answer.against import Against, Ways
from dpcore.common import wording
from dpcore.common.errors import InvalidInput
from dpcore.common.privacy import Provenance, strictest
from dpcore.common.shared_bound import SharedBound, Sharer, least_worst_regret
from dpcore.dataset import Dataset
from dpcore.report import charts
from pages.shared.base import keys, tables
from pages.shared.base.cache import cached
from pages.shared.base.question import Question
from pages.shared.compare import common_choice
from pages.shared.fields import jobs
from pages.shared.figures import pins
from pages.shared.session import session

CURVE_POINTS = 200
AT_ONE = 1.0
"""The ε of the key under which functions of ε are kept: they do not depend on the one in use."""


# --- What a question declares ---------------------------------------------------------------------------------------


Compared = Against | Ways | str
"""What a question compares; in words, why it does not."""


def declared_by(of: Question) -> Callable[[Any, Any], Compared] | None:
    """The function ``against_epsilon`` of the question's answer; None where it declares none."""
    module = _answers(of.name)
    against: Callable[[Any, Any], Compared] | None = getattr(module, "against_epsilon", None)
    return against


def _answers(name: str) -> Any:
    """The module that answers a question: in the core, or beside its page; None without one."""
    places = (f"dpcore.{name}.answer", f"pages.{name}.answer")
    # Asked of the folder first: `find_spec` raises where that is not there.
    known = (at for at in places if find_spec(at.rpartition(".")[0]) and find_spec(at))
    return next((importlib.import_module(at) for at in known), None)


def asked(of: Question, parameters: Any) -> Any:
    """The question without what nothing that is compared depends on, and at one ε: the key of what is kept.

    Raises:
        InvalidInput: It cannot be asked at that ε.
    """
    return common_choice.plain_question(parameters, _answers(of.name), AT_ONE)


def compared(of: Question, parameters: Any, data: Any) -> Compared:
    """What the question compares on these data, kept for every ε; in words, why it does not.

    Args:
        of: The question.
        parameters: Its parameters object.
        data: A data set, or what the page has for itself, with ``digest``.

    Raises:
        InvalidInput: The data do not fit the question.
    """
    if declared_by(of) is None:
        return "This page compares nothing over ε."
    return _against(of.name, data.digest, asked(of, parameters), data)


@cached(max_entries=8)
def _against(name: str, digest: str, parameters: Any, _data: Any) -> Compared:
    answer: Compared = _answers(name).against_epsilon(_data, parameters)
    assert isinstance(answer, Against | Ways | str)
    return answer


# --- The second data set --------------------------------------------------------------------------------------------


def second() -> session.Loaded | None:
    """The data set beside the one in use."""
    second: session.Loaded | None = st.session_state.get(keys.SECOND)
    return second


def keep() -> None:
    """Put the data in use beside those that are loaded next."""
    st.session_state[keys.SECOND] = dataclasses.replace(session.loaded(), made_of=None, set_aside={})


def remove() -> None:
    """Let no data stand beside those in use."""
    st.session_state[keys.SECOND] = None


def is_another() -> bool:
    """Whether there is a second data set, and it is not the one in use."""
    beside = second()
    return beside is not None and beside.dataset != session.dataset()


def offer() -> None:
    """In *Your data*: the button, or what stands beside the data in use."""
    beside = second()
    with st.container(horizontal=True, vertical_alignment="center", key="second_data_offer"):
        if beside is None:
            st.button(
                "Keep beside the next data",
                key="second_data_keep",
                on_click=keep,
                icon=":material/splitscreen_right:",
                help="Then load others: where a page chooses a bound, its figure shows both, and "
                "*Compare* the bound that serves both best.",
            )
            return
        words = "beside the data in use" if is_another() else "will stand beside the data that you load next"
        st.markdown(f"**{wording.plain(beside.dataset.name)}** {words}.", width="content")
        st.button("Remove it", key="second_data_remove", on_click=remove, icon=":material/delete:")


# --- On a page ------------------------------------------------------------------------------------------------------


def with_second(of: Question, fig: go.Figure) -> tuple[go.Figure, Provenance | None]:
    """A main figure with the second data set's curve, and what that is; the figure itself and None without one.

    Args:
        of: The question.
        fig: As the page made it; it is not changed.
    """
    parameters, beside = st.session_state.get(keys.PAGE_PARAMETERS), second()
    if parameters is None or beside is None or not is_another():
        return fig, None
    data = beside.dataset
    if common_choice.searcher_of(of) is not None:
        done = jobs.result_of(common_choice.job_of(of))
        if (
            done is None
            or done[1] is None
            or done[0] != common_choice.question_of(of, session.dataset(), data, parameters)
        ):
            return fig, None
        return common_choice.with_searched(fig, data.name, done[1]), data.provenance
    try:
        curves = compared(of, parameters, data)
    except InvalidInput:  # The tab says why.
        return fig, None
    if not isinstance(curves, Against) or curves.error is None or curves.sharer is None:
        return fig, None
    if curves.point is not None:
        return _marked(fig, data.name, *curves.point(parameters.epsilon)), data.provenance
    return _drawn(fig, data.name, curves, parameters.epsilon), data.provenance


def _marked(fig: go.Figure, name: str, x: float, y: float) -> go.Figure:
    """The figure with a point of the second data set."""
    both, shown = go.Figure(data=fig.data, layout=fig.layout), pins.plain_name(name, 32)
    hover = f"{shown}<br>%{{x:,.3~r}}, %{{y:.3g}}"
    return both.add_trace(charts.marker(shown, x, y, common_choice.SECOND, "triangle-up", hover))


def _drawn(fig: go.Figure, name: str, found: Against, epsilon: float) -> go.Figure:
    assert found.error is not None
    assert found.sharer is not None
    amounts = np.asarray(found.amounts, dtype=np.float64)
    low, high = float(amounts[amounts > 0.0][0]), float(amounts[-1])
    best = found.sharer(epsilon)
    x = np.geomspace(low, max(high, 2.0 * low), CURVE_POINTS)
    x = np.unique(np.append(x, best.best if best.best > 0.0 else low))
    shown = pins.plain_name(name, 32)
    hover = f"{shown}<br>%{{x:,.3~r}}, %{{y:.3g}}"
    both = go.Figure(data=fig.data, layout=fig.layout)
    charts.add_curve(both, shown, x, found.error(epsilon, x), common_choice.SECOND, hover)
    if found.further is not None:
        thin = {**common_choice.SECOND, "dash": "dot", "width": 1.4}
        name = f"The same, {found.further.name}"
        charts.add_curve(both, name, x, found.further.error(epsilon, x), thin, hover)
    if best.best > 0.0:
        point = charts.marker(
            f"{shown}, best", best.best, best.least, common_choice.SECOND, "triangle-up", hover
        )
        both.add_trace(point.update(showlegend=False))
    return both


def show(of: Question, data: Dataset, parameters: Any) -> None:
    """In the tab *Compare*: the bound that serves both data sets best. Nothing without a second one."""
    beside = second()
    if beside is None or not is_another():
        return
    st.markdown(
        f"**Two data sets:** {wording.plain(data.name)}, and beside it {wording.plain(beside.dataset.name)}"
    )
    if common_choice.searcher_of(of) is not None:
        common_choice.show_searched(of, [data, beside.dataset], parameters)
        return
    both = [compared(of, parameters, one) for one in (data, beside.dataset)]
    sharing = [one for one in both if isinstance(one, Against) and one.sharer is not None]
    if len(sharing) < len(both):
        alone = next((one.alone for one in both if isinstance(one, Against) and one.alone), "")
        st.caption(
            alone or "This page compares no two data sets, or one of these two lacks what it answers from."
        )
        return
    sharers = [one.sharer(parameters.epsilon) for one in sharing if one.sharer is not None]
    names = [data.name, beside.dataset.name]
    show_shared(sharers, sharing[0].whole, sharing[0].bound_axis, names)
    further = [one.further for one in sharing if one.further is not None]
    if len(further) == len(sharing):
        st.markdown(f"**With {further[0].name}:**")
        show_shared(
            [one.sharer(parameters.epsilon) for one in further], further[0].whole, further[0].bound, names
        )
    for name, one in zip(names, sharing, strict=True):
        if one.note:
            st.caption(f"{wording.plain(name)}: {one.note}")
    kinds = [data.provenance, beside.dataset.provenance]
    st.caption(f"Label of these numbers: {strictest(kinds).label}.")


def show_shared(sharers: list[Sharer], whole: bool, axis: str, names: list[str]) -> None:
    """The bound that serves both, its proof, and both data sets at it and at their own best ones."""
    shared = least_worst_regret(sharers, whole)
    st.markdown(f"{sentence(shared, axis, names)} {shared.certificate.sentence}")
    tables.show(rows(shared, sharers, names), "Both data sets at three bounds", height="content")


def sentence(shared: SharedBound, axis: str, names: list[str]) -> str:
    """The bound that serves all best, and what it costs each; ``axis``: what the bound is, with its unit."""
    unit = re.search(r"\(.*\)", axis)
    costs = common_choice.costs_of(shared.regrets, names)
    return (
        f"One bound for both: **{wording.number(shared.bound, 4)}**{f' {unit[0]}' if unit else ''}. Over the least "
        f"error of each it costs {costs}."
    )


def rows(shared: SharedBound, sharers: list[Sharer], names: list[str]) -> list[dict[str, str]]:
    """The errors of each data set at the shared bound and at each one's best, beside its own best one."""
    names = common_choice.told_apart(names)
    own = [(f"best of {name}", one.best) for name, one in zip(names, sharers, strict=True)]

    def error(one: Sharer, bound: float) -> str:
        return f"{wording.number(one.error(bound))} ({wording.change(one.error(bound), one.least)})"

    return [
        {
            "Bound": wording.number(bound, 4),
            "Which": what,
            **{f"Error of {name}": error(one, bound) for name, one in zip(names, sharers, strict=True)},
        }
        for what, bound in [("the shared bound", shared.bound), *own]
    ]
