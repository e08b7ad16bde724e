"""A paper's figure at the paper's setting, with what was stored of it or what was just computed."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dpcore.answer.paper_figure import PaperFigure, StoredRuns
from dpcore.answer.paper_plot import describe_difference, plot_figure
from dpcore.common import wording
from dpcore.common.privacy import Disclosure
from pages.shared.card import cards
from pages.shared.fields import fields, jobs
from pages.shared.screen import plots


def known(of: PaperFigure) -> tuple[PaperFigure, StoredRuns]:
    """A figure with the newest runs of it: of brought data, of this session, else those that come with the app."""
    brought = brought_for(of)
    if (
        brought is not None
        and (done := jobs.result_of(_job(brought.key))) is not None
        and done[1] is not None
    ):
        return brought, done[1]
    done = jobs.result_of(_job(of.key))
    found = of.stored if done is None or done[1] is None else done[1]
    assert found is not None  # A test holds that every figure has a file.
    return of, found


def brought_for(of: PaperFigure) -> PaperFigure | None:
    """The same figure on the paper's own data, where the person has brought them."""
    found: PaperFigure | None = st.session_state.get(_brought(of.key))
    return found


def bring(of: PaperFigure, on_data: PaperFigure) -> None:
    """Keep a figure on data that were brought: what *Compute it* computes from now on."""
    st.session_state[_brought(of.key)] = on_data


def show(figures: Sequence[PaperFigure], held: str = "") -> None:
    """In a tab: heading, figure, what differs, and the button that computes it now.

    No setting of the person's moves.
    """
    of = figures[0]
    if len(figures) > 1:
        names = {figure.key: figure.item for figure in figures}
        st.session_state.setdefault(held, of.key)
        chosen = fields.choice("Of the paper", names, held)
        of = next(figure for figure in figures if figure.key == chosen)
    shown, found = known(of)
    st.markdown(f"**The paper's setting. {of.name}: {of.title}**")
    plots.draw(plot_figure(shown, found))
    words(shown, found)
    compute_now(of)


def words(of: PaperFigure, found: StoredRuns) -> None:
    """How far ours lie from theirs and why, the setting, and where ours come from."""
    st.markdown(f"{describe_difference(of, found)} {of.difference_note}")
    runs = wording.counted(len(found.seeds), "run")
    here = f"Computed in this session on {of.dataset_name}" if of.dataset_name else "Computed in this session"
    made = f"Stored results of {found.version}" if found.version else here
    bars = "" if of.is_exact else f", {runs}; bars are 95 % intervals of their mean"
    st.caption(f"{of.setting} {made}{bars}.")
    cards.label(Disclosure.PUBLIC)


def compute_now(of: PaperFigure) -> None:
    """The button that makes it anew, on data that were brought where there are any, as work beside the page."""
    of = brought_for(of) or of
    if jobs.watch(_job(of.key), f"Computing {of.item[0].lower()}{of.item[1:]}"):
        return
    done = jobs.result_of(_job(of.key))
    if done is not None and done[1] is None:
        st.caption(":material/stop_circle: Stopped: what is shown was there before.")
    st.button(
        f"Compute it on {of.dataset_name}" if of.dataset_name else "Compute it now",
        key=f"compute_{of.key.replace('-', '_')}",
        icon=":material/play_arrow:",
        on_click=_start,
        args=(of,),
        help=f"{wording.counted(len(of.values) * (1 if of.is_exact else of.num_runs), 'run')} beside the page; they "
        "replace what is shown in this window.",
    )


def _start(of: PaperFigure) -> None:
    jobs.start(
        _job(of.key), of.key, lambda tell, stop: of.compute(progress=tell, should_stop=stop), heavy=True
    )


def _brought(key: str) -> str:
    return f"paper_brought_{key.replace('-', '_')}"


def _job(key: str) -> str:
    return f"paper_job_{key.replace('-', '_')}"
