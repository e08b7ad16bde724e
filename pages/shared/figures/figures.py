"""Shows a figure: template, stable key, alt text with the takeaway; its data as CSV, pictures by its own buttons."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt
import plotly.graph_objects as go
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dpcore.common.privacy import Disclosure, Provenance
from dpcore.common.privacy import file_name as file_name
from dpcore.common.text_fields import to_fields
from dpcore.report import charts, csv_files
from pages.shared import figure
from pages.shared.base import keys, page_run
from pages.shared.figures import pins


@dataclass(frozen=True)
class Picture:
    """A figure of a page and of its report.

    Attributes:
        key: Unique in the report and on the page; its words are set off by hyphens.
        title: Heading.
        draw: Makes it.
        alt: What it shows, its takeaway first.
        columns: What it draws.
        disclosure: Of the data behind it.
        handle: What the browser is told of its handle (`handles.told`); None for none.
        moves: The session's keys of the fields that the handle moves.
    """

    key: str
    title: str
    draw: Callable[[], go.Figure]
    alt: str
    columns: Mapping[str, npt.ArrayLike]
    disclosure: Provenance
    handle: Mapping[str, Any] | None = None
    moves: tuple[str, ...] = ()


def show_picture(
    picture: Picture, below: DeltaGenerator | None = None, place: DeltaGenerator | None = None
) -> None:
    """Draw a picture with a button for its data; ``below`` and ``place`` as in `show`."""
    key = picture.key.replace("-", "_")
    moved = None if picture.handle is None else (picture.handle, picture.moves)
    show(picture.draw(), key, picture.alt, picture.columns, picture.disclosure, below, place, moved)


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
    fig, shown, question = pins.main_figure(run, fig, disclosure)
    if shown is not Disclosure.PUBLIC:
        charts.labelled(fig, shown.label)
    with place or contextlib.nullcontext():
        figure.draw(fig, key, alt, file_name(key, shown), csv=f"{key}_csv", ghost=True, handle=handle)
    if question and below is None:
        below = st.container(horizontal=True, vertical_alignment="center")
    (below or st).download_button(
        "CSV",
        lambda: csv_files.columns_csv(data, disclosure, [*_notes(asked), *axis_notes(made)]),
        file_name=f"{file_name(key, disclosure)}.csv",
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
            pins.button(question)


def question_notes() -> list[str]:
    """What the question is that the page answers, a line per public input, for the top of a file.

    It holds what a link holds, and hence no number computed from private data.
    """
    return _notes(_asked(page_run.now()))


def _asked(run: page_run.Drawn | None) -> Any:
    """The parameters object of the answer in sight; to be asked while the page is drawn. None where there is none."""
    answered = None if run is None else run.answered
    return answered or st.session_state.get(keys.PAGE_PARAMETERS)


def _notes(parameters: Any) -> list[str]:
    return csv_files.public_inputs({} if parameters is None else to_fields(parameters))


def axis_notes(fig: go.Figure) -> list[str]:
    """What the axes say, units included, a line each."""
    axes = [name for name in fig.layout.to_plotly_json() if name.startswith(("xaxis", "yaxis"))]
    titles = {f"axis {name.replace('axis', '')}": fig.layout[name].title.text for name in axes}
    return [f"{name}: {title}" for name, title in titles.items() if title]
