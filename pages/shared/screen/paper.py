"""Shows a paper's figure at the paper's setting, with stored results or with results that were just computed."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dpcore.answer.paper_figure import FigureRuns, PaperFigure, build_plot, describe_difference
from dpcore.common import wording
from dpcore.common.privacy import Disclosure
from pages.shared.card import cards
from pages.shared.fields import fields, jobs
from pages.shared.screen import plots


def find_newest_runs(figure: PaperFigure) -> FigureRuns:
    """Return the runs that were computed in this session, or else those that come with the app."""
    done = jobs.result_of(_build_job_key(figure.key))
    return figure.stored if done is None or done[1] is None else done[1]


def show(figures: Sequence[PaperFigure], state_key: str = "") -> None:
    """Show a figure in a tab: heading, plot, differences, and the button that computes it now.

    The person's settings do not change it. ``state_key`` holds which of several figures is shown.
    """
    figure = figures[0]
    if len(figures) > 1:
        names = {figure.key: figure.item for figure in figures}
        st.session_state.setdefault(state_key, figure.key)
        selected_key = fields.choice("Of the paper", names, state_key)
        figure = next(figure for figure in figures if figure.key == selected_key)
    runs = find_newest_runs(figure)
    st.markdown(f"**The paper's setting. {figure.name}: {figure.title}**")
    plots.draw(build_plot(figure, runs))
    show_text(figure, runs)
    show_button(figure)


def show_text(figure: PaperFigure, runs: FigureRuns) -> None:
    """Show how far our results lie from the paper's and why, the setting, and where our results come from."""
    st.markdown(f"{describe_difference(figure, runs)} {figure.difference_note}")
    num_runs = wording.counted(len(runs.seeds), "run")
    origin = f"Stored results of {runs.version}" if runs.version else "Computed in this session"
    bars = "" if figure.is_exact else f", {num_runs}; bars are 95 % intervals of their mean"
    st.caption(f"{figure.setting} {origin}{bars}.")
    cards.label(Disclosure.PUBLIC)


def show_button(figure: PaperFigure) -> None:
    """Draw the button that computes the figure anew as work beside the page, or its progress."""
    if jobs.watch(_build_job_key(figure.key), f"Computing {figure.item[0].lower()}{figure.item[1:]}"):
        return
    done = jobs.result_of(_build_job_key(figure.key))
    if done is not None and done[1] is None:
        st.caption(":material/stop_circle: Stopped: what is shown was there before.")
    num_runs = wording.counted(len(figure.values) * (1 if figure.is_exact else figure.num_runs), "run")
    st.button(
        "Compute it now",
        key=f"compute_{figure.key.replace('-', '_')}",
        icon=":material/play_arrow:",
        on_click=_start,
        args=(figure,),
        help=f"{num_runs} beside the page; they replace what is shown in this window.",
    )


def _start(figure: PaperFigure) -> None:
    jobs.start(
        _build_job_key(figure.key),
        figure.key,
        lambda progress, should_stop: figure.compute(progress=progress, should_stop=should_stop),
        heavy=True,
    )


def _build_job_key(key: str) -> str:
    return f"paper_job_{key.replace('-', '_')}"
