"""Shows a figure: template, stable key, alt text with the takeaway; its data as CSV, pictures by its own buttons."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go
import streamlit as st

from dpcore.answer import Plot, Style
from dpcore.answer.handle import Dots, Handle
from dpcore.answer.parts import BIAS, STYLES
from dpcore.common.privacy import Disclosure, Provenance
from dpcore.common.privacy import write_file_name as write_file_name
from dpcore.common.text_fields import to_fields
from dpcore.common.wording import plain
from dpcore.report import charts, csv_files
from dpcore.report.plotly_figures import LINE_STYLES
from pages.shared import figure
from pages.shared.base import keys, page_run
from pages.shared.figures import pins

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator


def show(
    fig: go.Figure,
    key: str,
    alt: str,
    data: Mapping[str, npt.ArrayLike],
    disclosure: Provenance,
    below: DeltaGenerator | None = None,
    place: DeltaGenerator | None = None,
    handle: tuple[Mapping[str, Any], tuple[str, ...]] | None = None,
) -> None:
    """Draw a figure with a button for its data below.

    Args:
        fig: From `dpcore.report.charts` and related modules.
        key: Unique on the page; also the name of the downloaded files.
        alt: What the figure shows, its takeaway first, for a screen reader.
        data: Column name to values, what the figure draws.
        disclosure: Of the data behind it; goes into the file.
        below: Where the button goes, for a figure with other controls below; by default right below.
        place: Where the figure goes; by default here.
        handle: What the browser is told of its handle, and the session's keys of the fields that it moves.
    """
    # Asked for now: the file is made when its button is pressed, in a thread that knows nothing of the session.
    run, made = page_run.now(), fig
    asked = _asked(run)
    question = "" if run is None or not _is_main(run) else run.question.name
    if run is not None and question:
        run.figure = fig
    if disclosure is not Disclosure.PUBLIC:
        charts.add_label(fig, disclosure.label)
    with place or contextlib.nullcontext():
        figure.draw(
            fig, key, alt, write_file_name(key, disclosure), csv=f"{key}_csv", ghost=True, handle=handle
        )
    if question and below is None:
        below = st.container(horizontal=True, vertical_alignment="center")
    (below or st).download_button(
        "CSV",
        lambda: csv_files.write_columns(data, disclosure, [*_notes(asked), *axis_notes(made)]),
        file_name=f"{write_file_name(key, disclosure)}.csv",
        mime="text/csv",
        key=f"{key}_csv",
        on_click="ignore",
        type="tertiary",
        icon=":material/download:",
        help=f"The numbers behind the figure, as a table: {disclosure.label}. The buttons above the figure save it as "
        "PNG or SVG.",
    )
    if question:
        with below or contextlib.nullcontext():
            _pin_button(question)


def _is_main(run: page_run.Drawn) -> bool:
    """Return whether what is drawn now is the main figure of a question that is asked."""
    return run.in_main and run.figure is None and run.question.parameters is not None


def _pin_button(question: str) -> None:
    """*Pin this*, below the main figure."""
    if name := st.session_state.pop(f"{question}_pin_new", ""):
        st.toast(f"Pinned: {plain(name)}. The tab *Compare* lists it.", icon=":material/keep:")
    st.button(
        "Pin this",
        key=f"{question}_pin",
        on_click=pins.pin,
        args=(question,),
        type="tertiary",
        icon=":material/keep:",
        help="Keeps this answer with its data and settings. The tab *Compare* lists what is pinned.",
    )


def question_notes() -> list[str]:
    """Return what the question is that the page answers, a line per public input, for the top of a file.

    It holds what a link holds, and hence no number computed from private data.
    """
    return _notes(_asked(page_run.now()))


def _asked(run: page_run.Drawn | None) -> Any:
    """Return the parameters object of the answer in sight; to be asked while the page is drawn. None where
    there is none.
    """
    answered = None if run is None else run.answered
    return answered or st.session_state.get(keys.PAGE_PARAMETERS)


def _notes(parameters: Any) -> list[str]:
    return csv_files.list_public_inputs({} if parameters is None else to_fields(parameters))


def axis_notes(fig: go.Figure) -> list[str]:
    """Return what the axes say, units included, a line each."""
    axes = [name for name in fig.layout.to_plotly_json() if name.startswith(("xaxis", "yaxis"))]
    titles = {f"axis {name.replace('axis', '')}": fig.layout[name].title.text for name in axes}
    return [f"{name}: {title}" for name, title in titles.items() if title]


# --- The handle of a figure -------------------------------------------------------------------------------------------


DIGITS = 5
"""Digits of a number that only says where something is drawn: far finer than a pixel."""
BEYOND = 1e300


def handle_told(plot: Plot, handle: Handle) -> Mapping[str, Any]:
    """Return what the browser is told of a handle, as JSON: the columns that it looks up while a person moves
    it.
    """
    words: dict[str, Any] = {
        "name": handle.name,
        "unit": plot.x.unit,
        "bounds": _short(handle.bound),
        "errors": _short(handle.error),
        "colour": LINE_STYLES[Style.CAP]["color"],
        "at": handle.initial_value,
        "whole": handle.is_integer,
        "parts": [
            # Of what the bound itself causes a release lacks as much; the others lie on both sides of the truth.
            {
                "name": name,
                "colour": LINE_STYLES[STYLES[name]]["color"],
                "y": _short(values),
                "lacks": name == BIAS,
            }
            for name, values in handle.parts.items()
        ],
        "addUp": handle.is_sum,
        "best": handle.best_value,
        "users": [
            {"title": users.title, "sizes": _short(users.contributions), "bySecond": users.is_cut_by_second}
            for users in handle.users
        ],
    }
    if (second := handle.second) is not None:
        words["second"] = {
            "name": second.name,
            "unit": second.unit,
            "bounds": _short(second.values),
            "at": second.initial_value,
            "whole": second.is_integer,
        }
    if handle.dots is not None:
        words["dots"] = _dots(plot, handle.dots)
    return words


def handle_moves(handle: Handle, key: Callable[[str], str]) -> tuple[str, ...]:
    """Return the session's keys of the fields that hold what is moved, in the order in which the browser
    sends it.
    """
    fields = (handle.field, *(() if handle.second is None else (handle.second.field,)))
    return tuple(key(field) for field in fields)


def _dots(plot: Plot, dots: Dots) -> dict[str, Any]:
    nothing = np.zeros(1)
    found = {
        "what": dots.unit_name,
        # What was not released may be looked at by whoever holds the data: it says where it comes from.
        "alone": plot.disclosure is Disclosure.PRIVATE,
        "short": _short(nothing if dots.loss is None else dots.loss),
        "noise": _short(nothing if dots.noise is None else dots.noise),
        "draws": [_short(one) for one in dots.unit_draws],
        "spread": dots.spread.value,
        "reach": dots.axis_limit,
        "unit": dots.unit,
    }
    if dots.unit_sampling_draws is not None:
        found |= {
            "sampling": _short(nothing if dots.sampling is None else dots.sampling),
            "others": [_short(one) for one in dots.unit_sampling_draws],
        }
    return found


def _short(column: npt.ArrayLike) -> list[float]:
    """Numbers as JSON holds them: what has no bound lies beyond the top of every axis."""
    numbers = np.nan_to_num(np.asarray(column, dtype=np.float64), nan=BEYOND, posinf=BEYOND)
    return [float(f"{value:.{DIGITS}g}") for value in numbers.tolist()]
