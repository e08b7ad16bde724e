"""Shows figures: with a stable key, a text for screen readers, the data as CSV, and buttons to save a picture."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from dpcore.answer import Plot, Style
from dpcore.answer.answer import BIAS, STYLES
from dpcore.answer.handle import Dots, Handle, SecondBound, Spread, UserBars
from dpcore.common.privacy import Disclosure
from dpcore.common.privacy import write_file_name as write_file_name
from dpcore.common.text_fields import to_fields
from dpcore.common.wording import plain
from dpcore.report import charts, document, plotly_figures
from dpcore.report.plotly_figures import LINE_STYLES
from pages.shared import figure
from pages.shared.base import keys, page_run
from pages.shared.figures import pins

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator


def draw(
    plot: Plot,
    label: str = "",
    key_of: Callable[[str], str] | None = None,
    button_place: DeltaGenerator | None = None,
    figure_place: DeltaGenerator | None = None,
) -> None:
    """Draw a plot with a button for its data below.

    Args:
        plot: The plot.
        label: Text above it, with which its description begins; empty for nothing.
        key_of: Returns the session key of a field that the plot's handle moves; None for no handle.
        button_place: Where the button goes, for a figure with other controls below; right below the figure by default.
        figure_place: Where the figure goes; here by default.
    """
    fig, alt = plotly_figures.draw(plot), plot.alt
    key, disclosure = plot.key.replace("-", "_"), plot.disclosure
    if label:
        fig, alt = charts.add_label(fig, label), f"{label}. {alt}"
    handle = None
    if key_of is not None and plot.handle is not None:
        handle = describe_handle(plot, plot.handle), list_handle_keys(plot.handle, key_of)
    # Read now: the file is made when its button is pressed, in a thread that knows nothing of the session.
    run, parameters, question = page_run.CURRENT_RUN.get(), _find_parameters(), ""
    # The first figure in the main place of a page with parameters can be pinned.
    if run is not None and run.in_main and run.figure is None and run.question.parameters is not None:
        question, run.figure = run.question.name, fig
    if disclosure is not Disclosure.PUBLIC:
        charts.add_label(fig, disclosure.label)
    file_name = write_file_name(key, disclosure)
    with figure_place or contextlib.nullcontext():
        figure.draw(fig, key, alt, file_name, csv=f"{key}_csv", ghost=True, handle=handle)
    if question and button_place is None:
        button_place = st.container(horizontal=True, vertical_alignment="center")
    (button_place or st).download_button(
        "CSV",
        lambda: document.write_columns(
            plot.columns, disclosure, [*_list_inputs(parameters), *axis_notes(fig)]
        ),
        file_name=f"{file_name}.csv",
        mime="text/csv",
        key=f"{key}_csv",
        on_click="ignore",
        type="tertiary",
        icon=":material/download:",
        help=f"The numbers behind the figure, as a table: {disclosure.label}. The buttons above the figure save it as "
        "PNG or SVG.",
    )
    if question:
        with button_place or contextlib.nullcontext():
            _draw_pin_button(question)


def _draw_pin_button(question: str) -> None:
    """Draw the button *Pin this* below the main figure."""
    if name := st.session_state.pop(f"{question}_pin_new", ""):
        st.toast(f"Pinned: {plain(name)}. The tab *Compare* lists it.", icon=":material/keep:")
    st.button(
        "Pin this",
        key=f"{question}_pin",
        on_click=pins.pin_answer,
        args=(question,),
        type="tertiary",
        icon=":material/keep:",
        help="Keeps this answer with its data and settings. The tab *Compare* lists what is pinned.",
    )


def question_notes() -> list[str]:
    """Return the page's public inputs, a line each, for the top of a file.

    They hold what a link holds, and hence no number computed from private data.
    """
    return _list_inputs(_find_parameters())


def _find_parameters() -> Any:
    """Return the parameters of the visible answer, or None; call it while the page is drawn."""
    run = page_run.CURRENT_RUN.get()
    return (run and run.answered_parameters) or st.session_state.get(keys.PAGE_PARAMETERS)


def _list_inputs(parameters: Any) -> list[str]:
    """Return the public inputs in these parameters, a line each."""
    return document.list_public_inputs({} if parameters is None else to_fields(parameters))


def axis_notes(fig: go.Figure) -> list[str]:
    """Return the title of each axis with its unit, a line each."""
    axes = [name for name in fig.layout.to_plotly_json() if name.startswith(("xaxis", "yaxis"))]
    titles = {f"axis {name.replace('axis', '')}": fig.layout[name].title.text for name in axes}
    return [f"{name}: {title}" for name, title in titles.items() if title]


# --- The handle of a figure -------------------------------------------------------------------------------------------


DIGITS = 5
"""Digits of a number that only says where something is drawn: far finer than a pixel."""
UNBOUNDED = 1e300


def describe_handle(plot: Plot, handle: Handle) -> Mapping[str, Any]:
    """Return a handle as JSON for the browser: the columns that it looks up while a person moves it."""
    description: dict[str, Any] = _to_json(handle)
    description |= {
        "unit": plot.x.unit,
        "colour": LINE_STYLES[Style.CAP]["color"],
        "parts": [
            # The loss lies on one side of the truth; the other parts lie on both sides.
            {
                "name": name,
                "colour": LINE_STYLES[STYLES[name]]["color"],
                "y": _to_json(values),
                "is_loss": name == BIAS,
            }
            for name, values in handle.parts.items()
        ],
    }
    if handle.dots is not None:
        # The strip then says that nothing was released.
        description["dots"]["is_private"] = plot.disclosure is Disclosure.PRIVATE
    return description


def list_handle_keys(handle: Handle, key: Callable[[str], str]) -> tuple[str, ...]:
    """Return the session keys of the fields that the handle moves, in the order in which the browser sends them."""
    bounds = (handle,) if handle.second is None else (handle, handle.second)
    return tuple(key(bound.field) for bound in bounds)


def _to_json(value: Any) -> Any:
    """Return a value as JSON; columns are rounded, and NaN and infinity lie beyond the top of every axis."""
    if isinstance(value, Handle | SecondBound | UserBars | Dots):
        return {f.name: _to_json(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Spread):
        return value.value
    if value is None or isinstance(value, str | float | int | Mapping):
        return value
    if isinstance(value, tuple) and all(isinstance(entry, UserBars) for entry in value):
        return [_to_json(entry) for entry in value]
    column = np.nan_to_num(np.asarray(value, dtype=np.float64), nan=UNBOUNDED, posinf=UNBOUNDED)
    rounded = [float(f"{number:.{DIGITS}g}") for number in column.ravel().tolist()]
    return np.reshape(rounded, column.shape).tolist()
