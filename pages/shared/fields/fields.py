"""A page's question: its fields as widgets, and the parameters object that they make.

No field has limits of its own. With limits, Streamlit silently changes what was typed (1.5 becomes 1, and so does
1e13), or refuses it in words of its own while the last answer still stands. So what is typed stays, and the parameters
object says in a sentence what is wrong with it.
"""

from __future__ import annotations

import itertools
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import streamlit as st

from dpcore.common.checks import InputProblem, Problems
from dpcore.common.parameters import fields_by_name
from dpcore.common.wording import escape_text, format_entered, format_number
from pages.shared.base import keys, page_run
from pages.shared.base.question import Question
from pages.shared.fields import setting
from pages.shared.fields.field_values import build_parameters, lower_first_letter, replace_field_names

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

Width = int | typing.Literal["stretch"]


MIN_TEXT_AREA_LENGTH = 100_000
"""A text that takes more characters has lines."""
TEXT_AREA_PIXELS = 72
"""Height of such a field, in pixels: two lines, so that it can stand beside others."""


def scale_width(width: Width) -> Width:
    """Return a field's width in pixels, enlarged as the type is while the app is presented on a projector."""
    if isinstance(width, int) and st.session_state.get(keys.IS_PRESENTING):
        return width * page_run.PRESENTED_TYPE_PIXELS // page_run.USUAL_TYPE_PIXELS
    return width


def draw_number(
    label: str,
    widget_key: str,
    help_text: str = "",
    *,
    is_integer: bool = False,
    step: float | None = None,
    placeholder: str = "",
    width: Width = "stretch",
) -> float | None:
    """Draw a field for a number, with its problems below, and return the number; None while the field is empty.

    Args:
        label: Its label.
        widget_key: Session key; holds a float once something was typed, and None while the field is empty.
        help_text: Shown at the label.
        is_integer: True if the buttons beside it count by 1; the parameters object judges the number.
        step: What the buttons count by, if not 1.
        placeholder: Shown while it is empty.
        width: In pixels.
    """
    entered_number: float | None = st.number_input(
        label,
        value=None,  # else a cleared field would silently become 0
        key=widget_key,
        # A float even for whole numbers: an integer field cuts off what follows the first digits.
        step=1.0 if is_integer else step,
        format="%g",
        persist_state="session",
        placeholder=placeholder or None,
        help=help_text or None,
        width=scale_width(width),
    )
    for problem in st.session_state.get(keys.UNUSED_VALUE_PROBLEMS, {}).get(widget_key, ()):
        st.caption(f":material/error: {escape_text(InputProblem(problem.message).sentence, 300)}")
    return entered_number


def draw_field(
    question: Question,
    field_name: str,
    label: str = "",
    offered_options: Collection[Any] = (),
    is_disabled: bool = False,
) -> Any:
    """Draw the widget of a declared field and return its value; the declaration decides which widget it is.

    Args:
        question: The question.
        field_name: The field.
        label: Replaces the declared label on a page with a shorter one.
        offered_options: The options that are offered now; empty for all. Only for a field with options.
        is_disabled: True if a slider or a text can only be read.
    """
    field, widget_key = question.declarations[field_name], question.widget_keys[field_name]
    st.session_state.setdefault(widget_key, field.initial)
    label = label or field.label
    width: Width = field.width or "stretch"
    if field.options is not None:
        text_by_option = {
            option: option_text
            for option, option_text in field.options.items()
            if not offered_options or option in offered_options
        }
        if field.uses_select_box:
            return draw_select_box(label, text_by_option, widget_key, field.help, width)
        return draw_choice(label, text_by_option, widget_key, field.help)
    placeholder = field.placeholder
    if field.value_type is float and field.slider is None and not field.stops:
        number_options: dict[str, Any] = {"step": field.step, "placeholder": placeholder, "width": width}
        return draw_number(label, widget_key, field.help, is_integer=field.is_integer, **number_options)
    common_options = _build_common_options(widget_key, field.help)
    sized_options = common_options | {"width": scale_width(width), "disabled": is_disabled}
    if field.slider is not None:
        lowest, highest, step = field.slider
        return st.slider(label, lowest, highest, step=step, format=field.format or None, **sized_options)
    if field.stops:
        return st.select_slider(label, field.stops, format_func="{:,}".format, **common_options)
    if field.value_type is bool:
        return st.toggle(label, **common_options)
    text_options = sized_options | {"max_chars": field.max_length, "placeholder": placeholder or None}
    if (field.max_length or 0) > MIN_TEXT_AREA_LENGTH:
        return st.text_area(label, height=TEXT_AREA_PIXELS, **text_options)
    return st.text_input(label, **text_options)


def draw_fields(
    question: Question,
    *field_names: str,
    options_by_field: Mapping[str, Collection[Any]] = MappingProxyType({}),
    widgets_by_field: Mapping[str, Callable[[], object]] = MappingProxyType({}),
) -> None:
    """Draw the widgets of several fields, one after another.

    Args:
        question: The question.
        field_names: The fields.
        options_by_field: The options that a field offers now, by name; all of them by default.
        widgets_by_field: Functions that draw a field in another way, by name.
    """
    for field_name in field_names:
        if field_name in widgets_by_field:
            widgets_by_field[field_name]()
            continue
        switch_name, enabling_values = question.fields[field_name].enabled_with or ("", ())
        is_disabled = (
            bool(switch_name) and st.session_state[question.widget_keys[switch_name]] not in enabling_values
        )
        draw_field(
            question,
            field_name,
            offered_options=options_by_field.get(field_name, ()),
            is_disabled=is_disabled,
        )


def draw_field_row(question: Question, *field_names: str, width_shares: Sequence[int] = ()) -> None:
    """Draw the widgets of several fields side by side, as in `build_row` or in columns of these shares of the width."""
    if not width_shares:
        with build_row():
            draw_fields(question, *field_names)
        return
    for column_container, field_name in zip(
        st.columns(width_shares, vertical_alignment="bottom"), field_names, strict=False
    ):
        with column_container:
            draw_field(question, field_name)


def initialise_fields(question: Question, uses_shared_data: bool = True) -> None:
    """Set new fields to their initial values, and exchange shared values with other pages.

    Args:
        question: The question.
        uses_shared_data: False if the page shows a demonstration; it then takes no value from other pages.
    """
    for field_name, field in question.fields.items():
        st.session_state.setdefault(question.widget_keys[field_name], field.initial)
    if uses_shared_data:
        setting.exchange_values(question)


def draw_choice(label: str, text_by_option: Mapping[Any, str], widget_key: str, help_text: str = "") -> Any:
    """Draw a row of buttons, one pressed, and return the pressed option; ``text_by_option`` are the labels by option.

    The session's value is passed as the default, too. Without a default, Streamlit 1.67 tells the browser in each run
    to set the widget to the session's value, until the browser has drawn it. A widget in a popover is drawn when the
    popover is opened, so a run that was under way could undo a press.
    """
    current_option = st.session_state.get(widget_key)
    default_option = current_option if current_option in text_by_option else None
    return st.segmented_control(
        label,
        default=default_option,
        required=True,
        **_build_widget_options(text_by_option, widget_key, help_text),
    )


def _build_common_options(widget_key: str, help_text: str) -> dict[str, Any]:
    """Return the keyword arguments that all widgets take: key, help, and that the value lasts for the session."""
    return {"key": widget_key, "persist_state": "session", "help": help_text or None}


def _build_widget_options(
    text_by_option: Mapping[Any, str], widget_key: str, help_text: str
) -> dict[str, Any]:
    """Return the keyword arguments of a widget that shows the text of each option."""
    common_options = _build_common_options(widget_key, help_text)
    return {"options": list(text_by_option), "format_func": text_by_option.__getitem__, **common_options}


def draw_select_box(
    label: str,
    text_by_option: Mapping[Any, str],
    widget_key: str,
    help_text: str = "",
    width: Width = "stretch",
) -> Any:
    """Draw a select box and return the selected option; ``text_by_option`` are the labels by option."""
    current_option = st.session_state.get(widget_key)
    widget_options = _build_widget_options(text_by_option, widget_key, help_text)
    option_index = list(text_by_option).index(current_option) if current_option in text_by_option else 0
    return st.selectbox(label, index=option_index, width=scale_width(width), **widget_options)


def draw_radio(
    label: str,
    text_by_option: Mapping[Any, str],
    widget_key: str,
    help_text: str = "",
    is_horizontal: bool = False,
    caption_by_option: Mapping[Any, str] | None = None,
) -> Any:
    """Draw radio buttons and return the selected option; labels and captions are given by option."""
    widget_options = _build_widget_options(text_by_option, widget_key, help_text)
    widget_options["captions"] = caption_by_option and [
        caption_by_option[option] for option in text_by_option
    ]
    return st.radio(label, horizontal=is_horizontal, **widget_options)


def build_row() -> DeltaGenerator:
    """Return a container in which fields stand side by side, as many as fit in a line.

    Columns would cut buttons that are wider than the column. Fields in a row have a fixed width, wide enough for
    their labels: fields whose labels wrap do not stand at the same height.
    """
    return st.container(horizontal=True)


def choose_main_button_type() -> typing.Literal["primary", "secondary"]:
    """Return the type of a main button; `pages/shared/screen/address.js` makes its label readable."""
    return "primary"


def draw_button(
    button_label: str,
    widget_key: str,
    icon_name: str,
    callback: Callable[..., object] | None = None,
    *callback_arguments: Any,
    is_main: bool = False,
    **button_options: Any,
) -> bool:
    """Draw a button with an icon and return True if it was pressed just before this run.

    Args:
        button_label: Its label.
        widget_key: Unique on the page.
        icon_name: Name of a Material icon.
        callback: Called with ``callback_arguments`` when the button is pressed, before the page runs again.
        callback_arguments: The arguments of ``callback``.
        is_main: True for the main button of its place.
        button_options: Further arguments of `st.button`.
    """
    if is_main:
        button_options["type"] = choose_main_button_type()
    button_options |= {"icon": f":material/{icon_name}:", "on_click": callback, "args": callback_arguments}
    return st.button(button_label, key=widget_key, **button_options)


MIME_BY_ENDING = {
    "csv": "text/csv",
    "html": "text/html",
    "json": "application/json",
    "parquet": "application/vnd.apache.parquet",
    "toml": "application/toml",
}


def draw_download_button(
    button_label: str,
    file_name: str,
    content_or_writer: str | Callable[[], str | bytes],
    widget_key: str,
    *,
    button_type: typing.Literal["primary", "secondary", "tertiary"] = "secondary",
    help_text: str = "",
    container: DeltaGenerator | None = None,
) -> None:
    """Draw a button that downloads a text, or what a function returns on a click, as a file; nothing reruns."""
    (container or st).download_button(
        button_label,
        content_or_writer,
        file_name=file_name,
        mime=MIME_BY_ENDING.get(file_name.rpartition(".")[2], "text/plain"),
        key=widget_key,
        on_click="ignore",
        type=button_type,
        icon=":material/download:",
        help=help_text or None,
    )


def show_problems(problems: Iterable[InputProblem]) -> None:
    """Show problems as an error box, a sentence each, with the labels of the page's fields."""
    run = page_run.CURRENT_RUN.get()
    labels_by_field = {} if run is None else run.question.subjects_by_field
    sentences = [
        escape_text(replace_field_names(problem, labels_by_field).sentence, 300) for problem in problems
    ]
    bullet = "- " if len(sentences) > 1 else ""
    st.error("\n".join(bullet + sentence for sentence in sentences), icon=":material/error:")


def build_page_parameters(
    question: Question,
    unused_names: Collection[str] = (),
    overrides: Mapping[str, Any] | None = None,
    optional_names: Collection[str] = (),
) -> Any | None:
    """Build the page's parameters from its widgets; if they are refused, show all problems and return None.

    The session keeps values that were accepted for *Undo*, and the problems of fields whose default is used.

    Args:
        question: The question; it declares the session key of each field and which fields must not be empty.
        unused_names: Fields that do not apply now: the object is made without them.
        overrides: Values that replace those of the session.
        optional_names: Fields that the main answer can do without, mostly because they stand in a tab, which a refused
            question does not draw. A bad one is named, and its default stands in for it.
    """
    assert question.parameters_type is not None
    required_label_by_field = {
        field_name: field.name for field_name, field in question.declarations.items() if field.is_required
    }
    state = st.session_state
    keys_by_field = {
        field_name: widget_key
        for field_name, widget_key in question.widget_keys.items()
        if field_name not in unused_names
    }
    # A widget of text that was emptied holds "", where the field has None.
    nullable_names = {
        field_name for field_name, f in fields_by_name(question.parameters_type).items() if f.default is None
    }
    values_by_field = {
        field_name: None if state[widget_key] == "" and field_name in nullable_names else state[widget_key]
        for field_name, widget_key in keys_by_field.items()
    } | dict(overrides or {})
    state[keys.UNUSED_VALUE_PROBLEMS] = {}
    # All at once first: two that go together, of one's own pair, are no good one by one.
    subjects_by_field = question.subjects_by_field
    build_with_labels = partial(
        build_parameters, required_label_by_field=required_label_by_field, subjects_by_field=subjects_by_field
    )
    build_from_values = partial(build_with_labels, question.parameters_type)
    complete_parameters, all_problems = build_from_values(values_by_field)
    if complete_parameters is not None:
        values_by_key = {widget_key: state[widget_key] for widget_key in question.widget_keys.values()}
        state[keys.LAST_ANSWERED_VALUES] = question.name, state[keys.DATA_VERSION], values_by_key
        return complete_parameters
    needed_values_by_field = {
        field_name: value for field_name, value in values_by_field.items() if field_name not in optional_names
    }
    parameters, _ = build_from_values(needed_values_by_field)
    if parameters is None:
        show_problems(all_problems)
        _draw_undo_button(question)
        return None
    for field_name in filter(values_by_field.__contains__, optional_names):
        default_value = getattr(parameters, field_name)
        changed_parameters, field_problems = build_from_values(
            {field_name: values_by_field[field_name]}, base_parameters=parameters
        )
        parameters = parameters if changed_parameters is None else changed_parameters
        if field_problems:
            is_number = default_value is not None and not isinstance(default_value, str)
            default_text = format_number(default_value) if is_number else default_value
            until_text = f"Until then {default_text} is used" if default_text else "Until then it is left out"
            state[keys.UNUSED_VALUE_PROBLEMS][question.widget_keys[field_name]] = [
                replace(p, remedy=". ".join(filter(None, (p.remedy, until_text)))) for p in field_problems
            ]
    if state[keys.UNUSED_VALUE_PROBLEMS]:
        show_problems(itertools.chain.from_iterable(state[keys.UNUSED_VALUE_PROBLEMS].values()))
    return parameters


def _draw_undo_button(question: Question) -> None:
    """Draw the button that sets the changed fields back to the last values that had an answer on these data, if any."""
    state = st.session_state
    page_name, data_version, answered_by_key = state.get(keys.LAST_ANSWERED_VALUES, ("", None, {}))
    former_by_key = {
        widget_key: former_value
        for widget_key, former_value in answered_by_key.items()
        if state.get(widget_key) != former_value
    }
    if not former_by_key or (page_name, data_version) != (question.name, state[keys.DATA_VERSION]):
        return
    button_label = "Undo the last changes"
    if len(former_by_key) == 1:
        ((widget_key, former_value),) = former_by_key.items()
        field_subject = next(
            question.subjects_by_field[name]
            for name, key in question.widget_keys.items()
            if key == widget_key
        )
        if isinstance(former_value, float):
            button_label = f"Set {lower_first_letter(field_subject)} back to {format_entered(former_value)}"
    draw_button(button_label, f"{question.name}_undo", "undo", partial(state.update, former_by_key))


def draw_whole_number(
    label: str, widget_key: str, lowest_number: int, highest_number: int, step: int, help_text: str = ""
) -> int | None:
    """Draw a field for an integer outside any parameters object; return None, with its problem shown, if it is bad."""
    entered_number = draw_number(label, widget_key, help_text, step=float(step))
    problems = Problems()
    if entered_number is not None and problems.whole(
        lowest_number, highest_number, **{label: entered_number}
    ):
        return int(entered_number)
    if entered_number is None:
        problems.add(f"{label} is empty", remedy="Enter a number")
    show_problems(problems.entries)
    return None
