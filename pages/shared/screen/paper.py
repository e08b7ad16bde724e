"""A paper's figure at the paper's setting, with what was stored of it or what was just computed."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dpcore.answer.paper_figure import PaperFigure, Stored
from dpcore.answer.paper_plot import drawing, said
from dpcore.common import wording
from dpcore.common.privacy import Disclosure
from pages.shared.card import cards
from pages.shared.fields import fields, jobs
from pages.shared.screen import plots


def known(of: PaperFigure) -> tuple[PaperFigure, Stored]:
    """A figure with the newest runs of it: those of this session, else those that come with the app."""
    done = jobs.result_of(_job(of.key))
    found = of.stored if done is None or done[1] is None else done[1]
    assert found is not None  # A test holds that every figure has a file.
    return of, found


def show(figures: Sequence[PaperFigure], held: str = "") -> None:
    """In a tab: heading, figure, what differs, and the button that computes it now. No setting of the person's "
    "moves."""
    of = figures[0]
    if len(figures) > 1:
        names = {figure.key: figure.item for figure in figures}
        st.session_state.setdefault(held, of.key)
        chosen = fields.choice("Of the paper", names, held)
        of = next(figure for figure in figures if figure.key == chosen)
    _, found = known(of)
    st.markdown(f"**The paper's setting. {of.name}: {of.title}**")
    plots.draw(drawing(of, found))
    words(of, found)
    compute_now(of)


def words(of: PaperFigure, found: Stored) -> None:
    """How far ours lie from theirs and why, the setting, and where ours come from."""
    st.markdown(f"{said(of, found)} {of.differs}")
    runs = wording.counted(len(found.seeds), "run")
    made = f"Stored results of {found.version}" if found.version else "Computed in this session"
    bars = "" if of.exact else f", {runs}; bars are 95 % intervals of their mean"
    st.caption(f"{of.setting} {made}{bars}.")
    cards.label(Disclosure.PUBLIC)


def compute_now(of: PaperFigure) -> None:
    """The button that makes it anew, as work beside the page."""
    if jobs.watch(_job(of.key), f"Computing {of.item[0].lower()}{of.item[1:]}"):
        return
    done = jobs.result_of(_job(of.key))
    if done is not None and done[1] is None:
        st.caption(":material/stop_circle: Stopped: what is shown was there before.")
    st.button(
        "Compute it now",
        key=f"compute_{of.key.replace('-', '_')}",
        icon=":material/play_arrow:",
        on_click=_start,
        args=(of,),
        help=f"{wording.counted(len(of.values) * (1 if of.exact else of.runs), 'run')} beside the page; they "
        "replace the stored ones in this window.",
    )


def _start(of: PaperFigure) -> None:
    jobs.start(
        _job(of.key), of.key, lambda tell, stop: of.compute(progress=tell, should_stop=stop), heavy=True
    )


def _job(key: str) -> str:
    return f"paper_job_{key.replace('-', '_')}"
