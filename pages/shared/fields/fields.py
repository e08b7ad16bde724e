"""A page's question: its fields as widgets, and the parameters object that they make.

No field has limits of its own. With limits, Streamlit silently changes what was typed (1.5 becomes 1, and so does
1e13), or refuses it in words of its own while the last answer still stands. So what is typed stays, and the parameters
object says in a sentence what is wrong with it.
"""

from __future__ import annotations

import itertools
import math
import re
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import streamlit as st

from dpcore.common import wording
from dpcore.common.checks import EPSILON_RANGE, InputProblem, InvalidInput, Problems
from dpcore.common.parameters import fields_by_name
from dpcore.common.text_fields import list_field_types
from pages.shared.base import keys, page_run
from pages.shared.base.question import Question
from pages.shared.fields import setting

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

P = TypeVar("P")
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
    key: str,
    help: str = "",
    *,
    is_integer: bool = False,
    step: float | None = None,
    placeholder: str = "",
    width: Width = "stretch",
) -> float | None:
    """Draw a field for a number, with its problems below, and return the number; None while the field is empty.

    Args:
        label: Its label.
        key: Session key; holds a float once something was typed, and None while the field is empty.
        help: Shown at the label.
        is_integer: True if the buttons beside it count by 1; the parameters object judges the number.
        step: What the buttons count by, if not 1.
        placeholder: Shown while it is empty.
        width: In pixels.
    """
    value: float | None = st.number_input(
        label,
        value=None,  # else a cleared field would silently become 0
        key=key,
        # A float even for whole numbers: an integer field cuts off what follows the first digits.
        step=1.0 if is_integer else step,
        format="%g",
        persist_state="session",
        placeholder=placeholder or None,
        help=help or None,
        width=scale_width(width),
    )
    for problem in st.session_state.get(keys.UNUSED_VALUE_PROBLEMS, {}).get(key, ()):
        st.caption(f":material/error: {wording.plain(InputProblem(problem.message).sentence, 300)}")
    return value


def draw_field(
    question: Question, name: str, label: str = "", options: Collection[Any] = (), is_disabled: bool = False
) -> Any:
    """Draw the widget of a declared field and return its value; the declaration decides which widget it is.

    Args:
        question: The question.
        name: The field.
        label: Replaces the declared label on a page with a shorter one.
        options: The options that are offered now; empty for all. Only for a field with options.
        is_disabled: True if a slider or a text can only be read.
    """
    field, key = question.declarations[name], question.widget_keys[name]
    st.session_state.setdefault(key, field.initial)
    label = label or field.label
    width: Width = field.width or "stretch"
    if field.options is not None:
        texts = {value: text for value, text in field.options.items() if not options or value in options}
        if field.as_list:
            return draw_select_box(label, texts, key, field.help, width)
        return draw_choice(label, texts, key, field.help)
    placeholder = field.placeholder
    if field.value_type is float and field.slider is None and not field.stops:
        number_options: dict[str, Any] = {"step": field.step, "placeholder": placeholder, "width": width}
        return draw_number(label, key, field.help, is_integer=field.is_integer, **number_options)
    common_options: dict[str, Any] = {"key": key, "persist_state": "session", "help": field.help or None}
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
    *names: str,
    options: Mapping[str, Collection[Any]] = MappingProxyType({}),
    widgets: Mapping[str, Callable[[], object]] = MappingProxyType({}),
) -> None:
    """Draw the widgets of several fields, one after another.

    Args:
        question: The question.
        names: The fields.
        options: The options that a field offers now, by name; all of them by default.
        widgets: Functions that draw a field in another way, by name.
    """
    for name in names:
        if name in widgets:
            widgets[name]()
            continue
        switch_name, on_values = question.fields[name].enabled_with or ("", ())
        is_disabled = (
            bool(switch_name) and st.session_state[question.widget_keys[switch_name]] not in on_values
        )
        draw_field(question, name, options=options.get(name, ()), is_disabled=is_disabled)


def draw_field_row(question: Question, *names: str, shares: Sequence[int] = ()) -> None:
    """Draw the widgets of several fields side by side, as in `build_row` or in columns of these shares of the width."""
    if not shares:
        with build_row():
            draw_fields(question, *names)
        return
    for column_container, name in zip(st.columns(shares, vertical_alignment="bottom"), names, strict=False):
        with column_container:
            draw_field(question, name)


def initialise_fields(question: Question, uses_shared_data: bool = True) -> None:
    """Set new fields to their initial values, and exchange shared values with other pages.

    Args:
        question: The question.
        uses_shared_data: False if the page shows a demonstration; it then takes no value from other pages.
    """
    for name, field in question.fields.items():
        st.session_state.setdefault(question.widget_keys[name], field.initial)
    if uses_shared_data:
        setting.exchange_values(question)


def draw_choice(label: str, texts: Mapping[Any, str], key: str, help: str = "") -> Any:
    """Draw a row of buttons, one pressed, and return the pressed option; ``texts`` are the labels by option.

    The session's value is passed as the default, too. Without a default, Streamlit 1.67 tells the browser in each run
    to set the widget to the session's value, until the browser has drawn it. A widget in a popover is drawn when the
    popover is opened, so a run that was under way could undo a press.
    """
    current_option = st.session_state.get(key)
    default_option = current_option if current_option in texts else None
    return st.segmented_control(
        label, default=default_option, required=True, **_build_widget_options(texts, key, help)
    )


def _build_widget_options(texts: Mapping[Any, str], key: str, help: str) -> dict[str, Any]:
    """Return the keyword arguments of a widget that shows the text of each option."""
    shared_options: dict[str, Any] = {"key": key, "persist_state": "session", "help": help or None}
    return {"options": list(texts), "format_func": texts.__getitem__, **shared_options}


def draw_select_box(
    label: str, texts: Mapping[Any, str], key: str, help: str = "", width: Width = "stretch"
) -> Any:
    """Draw a select box and return the selected option; ``texts`` are the labels by option."""
    current_option, widget_options = st.session_state.get(key), _build_widget_options(texts, key, help)
    option_index = widget_options["options"].index(current_option) if current_option in texts else 0
    return st.selectbox(label, index=option_index, width=scale_width(width), **widget_options)


def draw_radio(
    label: str,
    texts: Mapping[Any, str],
    key: str,
    help: str = "",
    is_horizontal: bool = False,
    captions: Mapping[Any, str] | None = None,
) -> Any:
    """Draw radio buttons and return the selected option; labels and captions are given by option."""
    options = _build_widget_options(texts, key, help) | {
        "captions": captions and [captions[x] for x in texts]
    }
    return st.radio(label, horizontal=is_horizontal, **options)


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
    label: str,
    key: str,
    icon: str,
    callback: Callable[..., object] | None = None,
    *arguments: Any,
    is_main: bool = False,
    **options: Any,
) -> bool:
    """Draw a button with an icon and return True if it was pressed just before this run.

    Args:
        label: Its label.
        key: Unique on the page.
        icon: Name of a Material icon.
        callback: Called with ``arguments`` when the button is pressed, before the page runs again.
        arguments: The arguments of ``callback``.
        is_main: True for the main button of its place.
        options: Further arguments of `st.button`.
    """
    if is_main:
        options["type"] = choose_main_button_type()
    return st.button(label, key=key, icon=f":material/{icon}:", on_click=callback, args=arguments, **options)  # type: ignore[arg-type]


MIME_BY_ENDING = {
    "csv": "text/csv",
    "html": "text/html",
    "json": "application/json",
    "parquet": "application/vnd.apache.parquet",
    "toml": "application/toml",
}


def draw_download_button(
    label: str,
    file_name: str,
    content_or_writer: str | Callable[[], str | bytes],
    key: str,
    *,
    type: typing.Literal["primary", "secondary", "tertiary"] = "secondary",
    help: str = "",
    place: DeltaGenerator | None = None,
) -> None:
    """Draw a button that downloads a text, or what a function returns on a click, as a file; nothing reruns."""
    (place or st).download_button(
        label,
        content_or_writer,
        file_name=file_name,
        mime=MIME_BY_ENDING.get(file_name.rpartition(".")[2], "text/plain"),
        key=key,
        on_click="ignore",
        type=type,
        icon=":material/download:",
        help=help or None,
    )


def show_problems(problems: Iterable[InputProblem]) -> None:
    """Show problems as an error box, a sentence each, with the labels of the page's fields."""
    run = page_run.CURRENT_RUN.get()
    labels = {} if run is None else run.question.subjects_by_field
    sentences = [wording.plain(_replace_field_names(problem, labels).sentence, 300) for problem in problems]
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
    required_labels = {name: field.name for name, field in question.declarations.items() if field.is_required}
    state = st.session_state
    keys_by_name = {name: key for name, key in question.widget_keys.items() if name not in unused_names}
    # A widget of text that was emptied holds "", where the field has None.
    nullable_names = {
        name for name, f in fields_by_name(question.parameters_type).items() if f.default is None
    }
    values_by_name = {
        name: None if state[key] == "" and name in nullable_names else state[key]
        for name, key in keys_by_name.items()
    } | dict(overrides or {})
    state[keys.UNUSED_VALUE_PROBLEMS] = {}
    # All at once first: two that go together, of one's own pair, are no good one by one.
    subjects = question.subjects_by_field
    build_with = partial(
        build_parameters, question.parameters_type, labels=required_labels, subjects=subjects
    )
    complete_parameters, all_problems = build_with(values_by_name)
    if complete_parameters is not None:
        values_by_key = {key: state[key] for key in question.widget_keys.values()}
        state[keys.LAST_ANSWERED_VALUES] = question.name, state[keys.DATA_VERSION], values_by_key
        return complete_parameters
    needed_by_name = {name: value for name, value in values_by_name.items() if name not in optional_names}
    parameters, _ = build_with(needed_by_name)
    if parameters is None:
        show_problems(all_problems)
        _offer_undo(question)
        return None
    for name in filter(values_by_name.__contains__, optional_names):
        default = getattr(parameters, name)
        changed_parameters, problems = build_with({name: values_by_name[name]}, base_parameters=parameters)
        parameters = parameters if changed_parameters is None else changed_parameters
        if problems:
            default_text = default if isinstance(default, str) or default is None else wording.number(default)
            until_text = f"Until then {default_text} is used" if default_text else "Until then it is left out"
            state[keys.UNUSED_VALUE_PROBLEMS][question.widget_keys[name]] = [
                replace(p, remedy=". ".join(filter(None, (p.remedy, until_text)))) for p in problems
            ]
    if state[keys.UNUSED_VALUE_PROBLEMS]:
        show_problems(itertools.chain.from_iterable(state[keys.UNUSED_VALUE_PROBLEMS].values()))
    return parameters


def _offer_undo(question: Question) -> None:
    """Draw the button that sets the changed fields back to the last values that had an answer on these data, if any."""
    state = st.session_state
    name, data_version, values_by_key = state.get(keys.LAST_ANSWERED_VALUES, ("", None, {}))
    changed_by_key = {key: value for key, value in values_by_key.items() if state.get(key) != value}
    if not changed_by_key or (name, data_version) != (question.name, state[keys.DATA_VERSION]):
        return
    label = "Undo the last changes"
    if len(changed_by_key) == 1:
        ((key, value),) = changed_by_key.items()
        subject = next(
            question.subjects_by_field[name]
            for name in question.widget_keys
            if question.widget_keys[name] == key
        )
        if isinstance(value, float):
            label = f"Set {_lower_first_letter(subject)} back to {wording.entered(value)}"
    draw_button(label, f"{question.name}_undo", "undo", partial(state.update, changed_by_key))


def build_parameters(
    parameters_type: type[P],
    values_by_name: Mapping[str, Any],
    labels: Mapping[str, str],
    base_parameters: P | None = None,
    subjects: Mapping[str, str] | None = None,
) -> tuple[P | None, list[InputProblem]]:
    """Build a parameters object; return it, or None, with every problem of empty and of refused fields.

    Args:
        parameters_type: Its class.
        values_by_name: Values by field name; whole floats become int if the field holds an int.
        labels: Fields that must not be empty, with the words that begin a sentence about them.
        base_parameters: An object in which these fields are changed; None for a new one.
        subjects: The words for all fields in sentences; those of ``labels`` by default.
    """
    types = list_field_types(parameters_type)
    field_values = {name: _convert_whole_number(types[name], value) for name, value in values_by_name.items()}
    empty_names = [name for name in labels if name in values_by_name and values_by_name[name] is None]
    problems = [InputProblem(f"{labels[name]} is empty", remedy="Enter a number") for name in empty_names]
    # NaN in the place of what is empty: no check passes it, and none that compares two fields goes by it.
    field_values |= dict.fromkeys(empty_names, math.nan)
    try:
        if base_parameters is None:
            parameters = parameters_type(**field_values)
        else:
            parameters = replace(base_parameters, **field_values)  # type: ignore[type-var]
    except InvalidInput as error:
        real_problems = (p for p in error.problems if not p.message.endswith("got nan"))
        problems += [_replace_field_names(problem, subjects or labels) for problem in real_problems]
        if problems:
            return None, problems
        raise
    return (None, problems) if problems else (parameters, [])


def _replace_field_names(problem: InputProblem, labels: Mapping[str, str]) -> InputProblem:
    """Return the problem with the page's label in place of the Python name that its message begins with.

    Other fields in the message, such as the one that a lower bound must lie below, are replaced too.
    """
    name, verb, requirement = problem.message.partition(" must ")
    name, minus_sign, subtracted_name = name.partition(" − ")
    if not labels.get(name) or (minus_sign and not labels.get(subtracted_name)):
        return problem
    for other_name, label in labels.items():
        if label:
            pattern = rf"\b(below|above|at least) {re.escape(other_name)}\b"
            requirement = re.sub(pattern, rf"\1 {_lower_first_letter(label)}", requirement)
    subject = labels[name] + (f" − {_lower_first_letter(labels[subtracted_name])}" if minus_sign else "")
    return replace(problem, message=f"{subject}{verb}{requirement}")


def _lower_first_letter(label: str) -> str:
    """Return the label as it stands inside a sentence: its first letter in lower case, except for symbols."""
    return f"{label[0].lower()}{label[1:]}" if label[1:2].islower() else label


def _convert_whole_number(annotation: Any, value: Any) -> Any:
    """Return a whole float as int if the field's type allows int; any other value stays as it is."""
    takes_int = annotation is int or int in typing.get_args(annotation)
    return int(value) if takes_int and isinstance(value, float) and value.is_integer() else value


def draw_whole_number(
    label: str, key: str, lowest: int, highest: int, step: int, help: str = ""
) -> int | None:
    """Draw a field for an integer outside any parameters object; return None, with its problem shown, if it is bad."""
    value = draw_number(label, key, help, step=float(step))
    problems = Problems()
    if value is not None and problems.whole(lowest, highest, **{label: value}):
        return int(value)
    if value is None:
        problems.add(f"{label} is empty", remedy="Enter a number")
    show_problems(problems.entries)
    return None


def check_epsilon(epsilon: float | None) -> list[InputProblem]:
    """Return the problems of the shared epsilon; an empty list if it is good."""
    problems = Problems()
    if epsilon is None:
        problems.add("the field of ε is empty", remedy="Enter a number")
    else:
        problems.between(*EPSILON_RANGE, ε=epsilon)
    return problems.entries
