"""Shows figures: with a stable key, a text for screen readers, the data as CSV, and buttons to save a picture."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go
import streamlit as st

from dpcore.answer import Plot, Style
from dpcore.answer.answer import BIAS, STYLES
from dpcore.answer.handle import Dots, Handle
from dpcore.common.privacy import Disclosure, Provenance
from dpcore.common.privacy import write_file_name as write_file_name
from dpcore.common.text_fields import to_fields
from dpcore.common.wording import plain
from dpcore.report import charts, document
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
    button_place: DeltaGenerator | None = None,
    figure_place: DeltaGenerator | None = None,
    handle: tuple[Mapping[str, Any], tuple[str, ...]] | None = None,
) -> None:
    """Draw a figure with a button for its data below.

    Args:
        fig: From `dpcore.report.charts` and related modules.
        key: Unique on the page; also the name of the downloaded files.
        alt: What the figure shows, its takeaway first, for a screen reader.
        data: The values that the figure draws, by column name.
        disclosure: Label of the data behind it; goes into the file.
        button_place: Where the button goes, for a figure with other controls below; right below the figure by default.
        figure_place: Where the figure goes; here by default.
        handle: Description of the handle, and session keys of the fields that it moves.
    """
    # Read now: the file is made when its button is pressed, in a thread that knows nothing of the session.
    run, original = page_run.CURRENT_RUN.get(), fig
    parameters = _find_parameters(run)
    question = ""
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
        lambda: document.write_columns(data, disclosure, [*_list_inputs(parameters), *axis_notes(original)]),
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
    return _list_inputs(_find_parameters(page_run.CURRENT_RUN.get()))


def _find_parameters(run: page_run.PageRun | None) -> Any:
    """Return the parameters of the visible answer, or None; call it while the page is drawn."""
    settings = None if run is None else run.answered_parameters
    return settings or st.session_state.get(keys.PAGE_PARAMETERS)


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
    description: dict[str, Any] = {
        "name": handle.name,
        "unit": plot.x.unit,
        "bounds": _round_numbers(handle.bound),
        "errors": _round_numbers(handle.error),
        "colour": LINE_STYLES[Style.CAP]["color"],
        "initial": handle.initial_value,
        "isInteger": handle.is_integer,
        "parts": [
            # The loss lies on one side of the truth; the other parts lie on both sides.
            {
                "name": name,
                "colour": LINE_STYLES[STYLES[name]]["color"],
                "y": _round_numbers(values),
                "isLoss": name == BIAS,
            }
            for name, values in handle.parts.items()
        ],
        "isSum": handle.is_sum,
        "best": handle.best_value,
        "users": [
            {"title": x.title, "sizes": _round_numbers(x.contributions), "bySecond": x.is_cut_by_second}
            for x in handle.users
        ],
    }
    if (second_bound := handle.second) is not None:
        description["second"] = {
            "name": second_bound.name,
            "unit": second_bound.unit,
            "bounds": _round_numbers(second_bound.values),
            "initial": second_bound.initial_value,
            "isInteger": second_bound.is_integer,
        }
    if handle.dots is not None:
        description["dots"] = _describe_dots(plot, handle.dots)
    return description


def list_handle_keys(handle: Handle, key: Callable[[str], str]) -> tuple[str, ...]:
    """Return the session keys of the fields that the handle moves, in the order in which the browser sends them."""
    bounds = (handle,) if handle.second is None else (handle, handle.second)
    return tuple(key(bound.field) for bound in bounds)


def _describe_dots(plot: Plot, dots: Dots) -> dict[str, Any]:
    """Return the simulated releases as JSON for the browser: draws of unit size, and the columns that scale them."""
    zeros = np.zeros(1)
    description = {
        "unitName": dots.unit_name,
        # The strip then says that nothing was released.
        "isPrivate": plot.disclosure is Disclosure.PRIVATE,
        "loss": _round_numbers(zeros if dots.loss is None else dots.loss),
        "noise": _round_numbers(zeros if dots.noise is None else dots.noise),
        "draws": [_round_numbers(draw) for draw in dots.unit_draws],
        "spread": dots.spread.value,
        "limit": dots.axis_limit,
        "unit": dots.unit,
    }
    if dots.unit_sampling_draws is not None:
        description |= {
            "sampling": _round_numbers(zeros if dots.sampling is None else dots.sampling),
            "samplingDraws": [_round_numbers(draw) for draw in dots.unit_sampling_draws],
        }
    return description


def _round_numbers(column: npt.ArrayLike) -> list[float]:
    """Return the numbers rounded for JSON; NaN and infinity become a number beyond the top of every axis."""
    numbers = np.nan_to_num(np.asarray(column, dtype=np.float64), nan=UNBOUNDED, posinf=UNBOUNDED)
    return [float(f"{value:.{DIGITS}g}") for value in numbers.tolist()]
