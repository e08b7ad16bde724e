"""What serves two data sets where a search beside the page finds it, and what all sentences on two data sets share."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from dpcore.answer.against import SharedChoice
from dpcore.common import wording
from dpcore.common.privacy import strictest
from dpcore.dataset import Dataset
from dpcore.report import charts
from pages.shared.base import tables
from pages.shared.base.question import Question
from pages.shared.fields import jobs
from pages.shared.figures import pins

SECOND: dict[str, Any] = {"color": "#8C6D31", "dash": "solid", "width": 1.8}
"""Look of the second data set's curve: thinner than a main one, which stays the one to pin."""


def plain_question(parameters: Any, module: Any, epsilon: float) -> Any:
    """The parameters at an epsilon, with what the module names as not compared as at first."""
    aside = getattr(module, "NOT_COMPARED", ())
    defaults = {f.name: f.default for f in dataclasses.fields(parameters) if f.name in aside}
    return dataclasses.replace(parameters, epsilon=epsilon, **defaults)


def told_apart(names: list[str]) -> list[str]:
    """The names, numbered where two are alike."""
    return (
        [f"{name} ({at})" for at, name in enumerate(names, start=1)]
        if len(set(names)) < len(names)
        else names
    )


def costs_of(regrets: Sequence[float], names: list[str]) -> str:
    """What a choice costs each data set over its own best one, in words."""
    return " and ".join(
        f"{wording.percent(regret)} on {wording.plain(name)}"
        for name, regret in zip(names, regrets, strict=True)
    )


def searcher_of(of: Question) -> Any | None:
    """The page's ``shared.py``, where the choice for both data sets is searched beside the page; None without one."""
    name = f"pages.{of.name}.shared"
    return None if find_spec(name) is None else importlib.import_module(name)


def job_of(of: Question) -> str:
    """The session key of the search."""
    return f"{of.name}_shared_job"


def question_of(of: Question, data: Dataset, second: Dataset, parameters: Any) -> tuple[str, str, Any]:
    """What a search answers: both data sets, and what was asked."""
    return data.digest, second.digest, plain_question(parameters, searcher_of(of), parameters.epsilon)


def show_searched(of: Question, both: list[Dataset], parameters: Any) -> None:
    """What a search finds for both data sets, or the button that starts it, or why there is none."""
    searcher, question = searcher_of(of), question_of(of, both[0], both[1], parameters)
    assert searcher is not None
    if why := searcher.why_not(both, parameters):
        st.caption(why)
        return
    if jobs.watch(job_of(of), "Looking for what serves both"):
        return
    done = jobs.result_of(job_of(of))
    if done is None or done[1] is None or done[0] != question:
        st.button(
            "Find what serves both",
            key=f"{of.name}_shared",
            icon=":material/play_arrow:",
            on_click=_start_search,
            args=(job_of(of), question, searcher, both, parameters),
        )
        return
    names = [one.name for one in both]
    choice: SharedChoice = done[1]
    measure = f", {choice.measure}" if choice.measure else ""
    st.markdown(
        f"One choice for both: **{choice.choice}**{measure}. Over the least error of each it costs "
        f"{costs_of(choice.regrets, names)}. {choice.certificate.sentence}"
    )
    tables.show(rows_of_search(choice, names), "Both data sets at three choices", height="content")
    st.caption(f"Label of these numbers: {strictest([one.provenance for one in both]).label}.")


def _start_search(key: str, question: Any, searcher: Any, both: list[Dataset], parameters: Any) -> None:
    jobs.start(
        key, question, lambda tell, stop: searcher.shared_choice(both, parameters, tell, stop), heavy=True
    )


def rows_of_search(found: SharedChoice, names: list[str]) -> list[dict[str, str]]:
    """The errors of each data set at the shared choice and at each one's best."""
    names = told_apart(names)
    which = ["the shared choice", *(f"best of {name}" for name in names)]
    return [
        {
            "Choice": choice,
            "Which": what,
            **{
                f"Error of {name}": f"{wording.number(errors[at])} ({wording.change(errors[at], errors[1 + own])})"
                for own, (name, errors) in enumerate(zip(names, found.errors, strict=True))
            },
        }
        for at, (what, choice) in enumerate(zip(which, found.choices, strict=True))
    ]


def with_searched(fig: go.Figure, name: str, found: SharedChoice) -> go.Figure:
    """The figure with what a search found of the second data set, where it has a place on these axes."""
    if not pins.axes_of(fig)[2].startswith(found.upwards):
        return fig
    both, shown = go.Figure(data=fig.data, layout=fig.layout), pins.plain_name(name, 32)
    hover = f"{shown}<br>%{{x:,.3~r}}, %{{y:.3g}}"
    if found.curve is not None:
        charts.add_curve(both, shown, *found.curve, SECOND, hover)
    if found.best is not None:
        point = charts.marker(f"{shown}, best", *found.best, SECOND["color"], "triangle-up", hover)
        both.add_trace(point.update(showlegend=found.curve is None))
    if found.shared is not None:
        hover = "Best for both<br>%{x:,.3~r}, %{y:.3g}"
        charts.add_marker(both, "Best for both", *found.shared, SECOND["color"], "star", hover)
    return both
