"""Figures with their data, tables, and pinned answers.

A pin is a page's answer card, frozen with the label of its data, for the table in the tab *Compare*. Links and reports
hold no pins; a session file does. When a DP release takes the place of private data, pins of private data are set aside
with them.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from dpcore.answer.answer import BIAS, STYLE_BY_PART
from dpcore.answer.handle import Dots, Handle, SecondBound, Spread, UserBars
from dpcore.answer.notation import relabel_plot
from dpcore.answer.plot import Plot, Style
from dpcore.common.privacy import Disclosure, Provenance
from dpcore.common.privacy import write_file_name as write_file_name
from dpcore.common.text_fields import to_fields
from dpcore.common.wording import escape_text, format_entered, format_percent
from dpcore.report import charts, plotly_figures
from dpcore.report import content as report_content
from dpcore.report.charts import LINE_BY_STYLE
from pages.shared import figure
from pages.shared.base import keys, page_run
from pages.shared.fields import fields

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator


MAX_PINS = 24
"""Pins that a session holds."""


@dataclass(frozen=True, eq=False)
class Pin:
    """One pinned answer, by the texts and numbers that the table of pins shows.

    Attributes:
        question: Name of the question.
        name: What the person calls it.
        data: Name of the data.
        epsilon: Privacy budget; None where the question has none.
        bound: Label and value of the card's number; an empty label and the instruction if that number is the error.
        error: Label and value of its error; empty where there is none.
        rows_lost: Share of all rows that the bound leaves out; None where it is not about rows.
        half_or_double: What half and double of the bound cost, a sentence; empty where the card does not say.
        settings: (what, value) of everything else that was asked and is not as at first.
        disclosure: Of the data.
    """

    question: str
    name: str
    data: str
    epsilon: float | None
    bound: tuple[str, str]
    error: tuple[str, str]
    rows_lost: float | None
    half_or_double: str
    settings: tuple[tuple[str, str], ...]
    disclosure: Provenance


def list_all_pins() -> tuple[Pin, ...]:
    """Return every pin of the session, oldest first."""
    pins: tuple[Pin, ...] = st.session_state.get(keys.PINS, ())
    return pins


def list_pins(question_name: str) -> tuple[Pin, ...]:
    """Return the pins of a question."""
    return tuple(pin for pin in list_all_pins() if pin.question == question_name)


def store_pins(new_pins: Iterable[Pin]) -> None:
    """Make these the session's pins, oldest first; beyond `MAX_PINS` the oldest are dropped."""
    st.session_state[keys.PINS] = tuple(new_pins)[-MAX_PINS:]


def split_private_pins(session_values: Iterable[object]) -> tuple[tuple[Pin, ...], tuple[Pin, ...]]:
    """Return the pins of private data, and all other pins; values that are no pins are left out."""
    pins = [pin for pin in session_values if isinstance(pin, Pin)]
    private_pins = tuple(pin for pin in pins if pin.disclosure is Disclosure.PRIVATE)
    return private_pins, tuple(pin for pin in pins if pin not in private_pins)


def merge_pins(first_pins: Iterable[Pin], added_pins: Iterable[Pin]) -> tuple[Pin, ...]:
    """Return the pins of both lists without repetitions, with names made unique within each question."""
    merged_pins = list(first_pins)
    identities = {_identify(pin) for pin in merged_pins}
    for pin in added_pins:
        if _identify(pin) not in identities:
            used_names = {other_pin.name for other_pin in merged_pins if other_pin.question == pin.question}
            merged_pins.append(replace(pin, name=_append_number(pin.name, used_names)))
            identities.add(_identify(pin))
    return tuple(merged_pins)


def _identify(pin: Pin) -> tuple[str, ...]:
    """Return the question and the texts of a pin without its name: pins with the same are the same answer."""
    return (
        pin.question,
        *(cell_text for column_heading, cell_text in tabulate_pin(pin).items() if column_heading != "Pin"),
    )


def pin_offered_answer(question_name: str) -> None:
    """Pin the answer that the page of this question offers, if it offers one; the next run says so."""
    build_pin: Callable[[], Pin | None] | None = st.session_state.get(keys.PIN_BUILDER)
    new_pin = None if build_pin is None else build_pin()
    if new_pin is None or new_pin.question != question_name:
        return
    new_name = new_pin.name
    namesake = next((pin for pin in list_pins(question_name) if pin.name == new_name), None)
    if namesake is not None:  # Its name gets the first setting that differs, or a number.
        texts_by_setting = dict(namesake.settings)
        name_suffixes = (
            f", {setting_label} {setting_text}"
            for setting_label, setting_text in new_pin.settings
            if texts_by_setting.get(setting_label) != setting_text
        )
        new_name = find_free_name(question_name, new_name + next(name_suffixes, ""))
    store_pins((*list_all_pins(), replace(new_pin, name=new_name)))
    st.session_state[f"{question_name}_pin_new"] = new_name


def find_free_name(question_name: str, preferred_name: str) -> str:
    """Return the preferred name, or that with a number in brackets if another pin of the question is called so."""
    return _append_number(preferred_name, {pin.name for pin in list_pins(question_name)})


def _append_number(preferred_name: str, used_names: Collection[str]) -> str:
    """Return the preferred name, with a number in brackets if it is already used."""
    next_number, numbered_name = 2, preferred_name
    while numbered_name in used_names:
        next_number, numbered_name = next_number + 1, f"{preferred_name} ({next_number})"
    return numbered_name


def tabulate_pin(pin: Pin) -> dict[str, str]:
    """Return a pin as a table row: its texts by heading."""
    return {
        "Pin": pin.name,
        "ε": "" if pin.epsilon is None else format_entered(pin.epsilon),
        "Bound": f"{pin.bound[1]} ({pin.bound[0].lower()})" if pin.bound[0] else pin.bound[1],
        "Error": f"{pin.error[1]} ({pin.error[0].lower()})" if pin.error[1] else "",
        "Rows left out": "" if pin.rows_lost is None else format_percent(pin.rows_lost),
        "Half or double": pin.half_or_double,
        "Data": pin.data,
        "Settings": "; ".join(
            f"{setting_label}: {setting_text}" for setting_label, setting_text in pin.settings
        ),
        "These numbers are": pin.disclosure.label,
    }


MISSING_TEXT = "–"
"""Stands in an empty cell."""


def show_table(
    columns_or_frame: Any,
    alt: str,
    table_key: str | None = None,
    formats_by_column: Mapping[str, str | tuple[str, str]] | None = None,
    titles_by_column: Mapping[str, str] | None = None,
    **table_options: Any,
) -> None:
    """Draw a table without its index.

    Args:
        columns_or_frame: Column name to values, or a frame.
        alt: What it shows, for a screen reader.
        table_key: Unique on the page; None for none.
        formats_by_column: How Streamlit writes the numbers of a column, by its name; or that and a help at its head.
        titles_by_column: What stands at the head of a column of numbers, by its name, where that is not the name.
        table_options: Further arguments of `st.dataframe`.
    """
    column_config = {}
    for column, format_or_pair in (formats_by_column or {}).items():
        number_format, help_text = (
            (format_or_pair, None) if isinstance(format_or_pair, str) else format_or_pair
        )
        column_title = (titles_by_column or {}).get(column)
        column_config[column] = st.column_config.NumberColumn(
            column_title, format=number_format, help=help_text
        )
    table_options |= {"hide_index": True, "alt": alt, "placeholder": MISSING_TEXT}
    st.dataframe(columns_or_frame, key=table_key, column_config=column_config or None, **table_options)


def draw_plot(
    plot: Plot,
    label_text: str = "",
    get_field_key: Callable[[str], str] | None = None,
    button_slot: DeltaGenerator | None = None,
    figure_slot: DeltaGenerator | None = None,
) -> None:
    """Draw a plot with a button for its data below; the first one of a page with parameters can be pinned.

    Args:
        plot: The plot.
        label_text: Text above it, with which its description begins; empty for nothing.
        get_field_key: Returns the session key of a field that the plot's handle moves; None for no handle.
        button_slot: Where the button goes, for a figure with other controls below; right below the figure by default.
        figure_slot: Where the figure goes; here by default.
    """
    run = page_run.CURRENT_RUN.get()
    if run is not None and st.session_state.get(keys.PAPER_NOTATION):
        plot = relabel_plot(plot, run.question.symbols_by_phrase)
    fig, alt = plotly_figures.draw_plot(plot), plot.alt
    figure_key, disclosure = plot.key.replace("-", "_"), plot.disclosure
    if label_text:
        fig, alt = charts.add_label(fig, label_text), f"{label_text}. {alt}"
    handle_and_keys = None
    if get_field_key is not None and plot.handle is not None:
        handle_and_keys = describe_handle(plot, plot.handle), list_handle_keys(plot.handle, get_field_key)
    # Read now: the file is made when its button is pressed, in a thread that knows nothing of the session.
    parameters, pinning_question_name = get_answered_parameters(), ""
    # The first figure of a page with parameters, its main one, can be pinned.
    if run is not None and run.main_figure is None and run.question.parameters_type is not None:
        pinning_question_name, run.main_figure = run.question.name, fig
    if disclosure is not Disclosure.PUBLIC:
        charts.add_label(fig, disclosure.label)
    file_name = write_file_name(figure_key, disclosure)
    with figure_slot or contextlib.nullcontext():
        figure.draw_figure(fig, figure_key, alt, plot.title, file_name, f"{figure_key}_csv", handle_and_keys)
    if pinning_question_name and button_slot is None:
        button_slot = st.container(horizontal=True, vertical_alignment="center")
    fields.draw_download_button(
        "CSV",
        f"{file_name}.csv",
        lambda: report_content.write_columns(
            plot.columns, disclosure, [*list_public_inputs(parameters), *list_axis_notes(fig)]
        ),
        f"{figure_key}_csv",
        button_type="tertiary",
        help_text=f"The numbers behind the figure: {disclosure.label}. The buttons above it save it as PNG or SVG.",
        container=button_slot,
    )
    if pinning_question_name:
        with button_slot or contextlib.nullcontext():
            if pin_name := st.session_state.pop(f"{pinning_question_name}_pin_new", ""):
                st.toast(
                    f"Pinned: {escape_text(pin_name)}. The tab *Compare* lists it.", icon=":material/keep:"
                )
            help_text = "Keeps this answer with its data and settings."
            button_options: dict[str, Any] = {"type": "tertiary", "help": help_text}
            fields.draw_button(
                "Pin this",
                f"{pinning_question_name}_pin",
                "keep",
                pin_offered_answer,
                pinning_question_name,
                **button_options,
            )
            if run is not None and run.question.symbols_by_phrase:
                st.toggle("Paper notation", key=keys.PAPER_NOTATION, persist_state="session")


def get_answered_parameters() -> Any | None:
    """Return the parameters of the answer in sight; None if there is none."""
    run = page_run.CURRENT_RUN.get()
    return (run and run.answered_parameters) or st.session_state.get(keys.PAGE_PARAMETERS)


def list_public_inputs(parameters: Any | None) -> list[str]:
    """Return the page's public inputs, a line each, for the top of a file.

    They hold what a link holds, and hence no number computed from private data.
    """
    return report_content.list_public_inputs({} if parameters is None else to_fields(parameters))


def list_axis_notes(fig: go.Figure) -> list[str]:
    """Return a line for each axis that has a title: its name and its title, which ends in the unit."""
    axis_keys = [
        axis_name for axis_name in fig.layout.to_plotly_json() if axis_name.startswith(("xaxis", "yaxis"))
    ]
    titles_by_axis = {
        f"axis {axis_name.replace('axis', '')}": fig.layout[axis_name].title.text for axis_name in axis_keys
    }
    return [f"{axis_name}: {axis_title}" for axis_name, axis_title in titles_by_axis.items() if axis_title]


# --- The handle of a figure -------------------------------------------------------------------------------------------


SENT_DIGITS = 5
"""Digits of a number that only says where something is drawn: far finer than a pixel."""
UNBOUNDED_STAND_IN = 1e300


def describe_handle(plot: Plot, handle: Handle) -> Mapping[str, Any]:
    """Return a handle as JSON for the browser: the columns that it looks up while a person moves it."""
    handle_payload: dict[str, Any] = _to_json(handle)
    # The loss lies on one side of the truth; the other parts lie on both sides.
    part_payloads = [
        {
            "name": part_name,
            "colour": _get_color(STYLE_BY_PART[part_name]),
            "y": _to_json(part_errors),
            "is_loss": part_name == BIAS,
        }
        for part_name, part_errors in handle.error_parts.items()
    ]
    handle_payload |= {"unit": plot.x.unit, "colour": _get_color(Style.CAP), "error_parts": part_payloads}
    if handle.dots is not None:
        # The strip then says that nothing was released.
        handle_payload["dots"]["is_private"] = plot.disclosure is Disclosure.PRIVATE
    return handle_payload


def _get_color(style: Style) -> str:
    """Return the CSS colour of a style."""
    return str(LINE_BY_STYLE[style]["color"])


def list_handle_keys(handle: Handle, get_field_key: Callable[[str], str]) -> tuple[str, ...]:
    """Return the session keys of the fields that the handle moves, in the order in which the browser sends them."""
    moved_handles = (handle,) if handle.second_bound is None else (handle, handle.second_bound)
    return tuple(get_field_key(moved_handle.field_name) for moved_handle in moved_handles)


def _to_json(handle_part: Any) -> Any:
    """Return a part of a handle as JSON: objects as dicts, columns as lists of rounded numbers.

    NaN and infinity become `UNBOUNDED_STAND_IN`, which lies beyond the top of every axis.
    """
    if isinstance(handle_part, Handle | SecondBound | UserBars | Dots):
        return {f.name: _to_json(getattr(handle_part, f.name)) for f in dataclasses.fields(handle_part)}
    if isinstance(handle_part, Spread):
        return handle_part.value
    if handle_part is None or isinstance(handle_part, str | float | int | Mapping):
        return handle_part
    if isinstance(handle_part, tuple) and all(isinstance(user_bars, UserBars) for user_bars in handle_part):
        return [_to_json(user_bars) for user_bars in handle_part]
    finite_values = np.nan_to_num(
        np.asarray(handle_part, dtype=np.float64), nan=UNBOUNDED_STAND_IN, posinf=UNBOUNDED_STAND_IN
    )
    rounded_values = [
        float(f"{finite_value:.{SENT_DIGITS}g}") for finite_value in finite_values.ravel().tolist()
    ]
    return np.reshape(rounded_values, finite_values.shape).tolist()
