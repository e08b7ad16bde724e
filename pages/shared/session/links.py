"""Permanent links, and the settings of fields in a session file.

Permanent links: a version, where the data come from, and the settings of the page that go with its choices.

A link never contains a number computed from private data: uploads and DP releases are named only as such, and
sigma^2 taken from values is carried as the word "values". A link is read once, before any widget
exists. Its problems are listed field by field, and its valid fields are followed.
"""

from __future__ import annotations

import dataclasses
import enum
import math
import typing
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

import streamlit as st

from dpcore.common import text_fields
from dpcore.common.checks import InputProblem, InvalidInput, Problems
from dpcore.common.parameters import FieldOrigin, Parameters, applies
from dpcore.common.strict_json import JsonValue
from pages.shared.base import catalogue, keys, page_run
from pages.shared.base.question import Question
from pages.shared.fields import setting
from pages.shared.fields.field_values import check_epsilon
from pages.shared.session import session, tour

VERSION = "1"
VERSION_FIELD = "link"
DATA_FIELD = "data"
GENERATOR_PREFIX = "data."
MAX_FIELDS = 40
MAX_CHARACTERS = 100_000
MAX_LINK_TEXT = 4_000
"""Longest text in a link, as a server takes no address of any length; a session file holds longer ones."""
UPLOAD_MARK = "upload"
"""Stands in the address while uploaded data are in use: a reload of the page loses them, and can say so."""
DATA_GONE = "uploaded data were in use, and they are gone: they stay only until the page is loaded anew"
PINS_MARK = "kept"
"""Stands in the address while something is pinned: a reload loses that, too."""
PINS_GONE = "what was pinned is gone"
SPENT_MARK = "spent"
"""Stands in the address once something was released: after a reload the account of it begins anew."""
SPENT_GONE = "what was spent before is no longer counted: the account begins at 0"
RELOAD_PROBLEMS = (DATA_GONE, PINS_GONE, SPENT_GONE)
"""Messages of a page that was reloaded."""
# For fields that every link has; the range of a label is one that nobody means.
STAND_IN_BY_FIELD = {"epsilon": setting.DEFAULT_EPSILON, "lower": 0.0, "upper": 1.0}


def write_link(
    address: str, page_url_path: str, origin: session.Origin, setting_texts: Mapping[str, str]
) -> str:
    """Return the permanent link of a page.

    Args:
        address: Any address of this app; only its scheme and host are used.
        page_url_path: Of the page.
        origin: Where the data come from.
        setting_texts: The settings as text, by field, from `list_parameter_fields`.
    """
    query_text = urlencode({**_list_origin_fields(origin), **setting_texts})
    return urlsplit(address)._replace(path=f"/{page_url_path}", query=query_text, fragment="").geturl()


def _list_origin_fields(origin: session.Origin) -> dict[str, str]:
    """Return the fields of a link that name where the data come from, texts by name; the version among them."""
    generator_texts = {
        GENERATOR_PREFIX + setting_name: setting_text
        for setting_name, setting_text in origin.generator_texts.items()
    }
    return {VERSION_FIELD: VERSION, DATA_FIELD: origin.name, **generator_texts}


def list_parameter_fields(parameters: Parameters | None) -> dict[str, str]:
    """Return the fields of a link that hold the settings, without long texts and those that do not apply."""
    if parameters is None:
        return {}
    texts_by_name, unused_names = text_fields.to_fields(parameters), parameters.unused_names
    return {
        n: field_text
        for n, field_text in texts_by_name.items()
        if n not in unused_names and len(field_text) <= MAX_LINK_TEXT
    }


def read_link(
    texts_by_name: Mapping[str, str], question: Question
) -> tuple[session.Origin, dict[str, Any], list[InputProblem]]:
    """Return the content of a link: the origin of the data, values by session key, and problems of fields.

    Args:
        texts_by_name: The texts of its query, by field.
        question: The page it points to.

    Returns:
        Where the data come from; the value of every widget that it sets, by session key; and the problems of fields
        that are unknown, missing or out of range, which it does not set.

    Raises:
        InvalidInput: Another version, too many fields or too many characters: the link cannot be read at all.
    """
    problems = Problems()
    if texts_by_name.get(VERSION_FIELD) != VERSION:
        problems.add("this link was made by another version of the app", remedy="Ask for a new one")
    num_characters = sum(
        len(field_name) + len(field_text) for field_name, field_text in texts_by_name.items()
    )
    if len(texts_by_name) > MAX_FIELDS or num_characters > MAX_CHARACTERS:
        remedy_sentence = f"At most {MAX_FIELDS} and {MAX_CHARACTERS:,} are read. Ask for it again"
        problems.add(
            f"this link has {len(texts_by_name)} fields and {num_characters:,} characters",
            remedy=remedy_sentence,
        )
    problems.raise_if_any()
    shell_field_names = (VERSION_FIELD, DATA_FIELD, UPLOAD_MARK, PINS_MARK, SPENT_MARK, page_run.PRESENT_MARK)
    generator_texts, setting_texts = dict[str, str](), dict[str, str]()
    for field_name, field_text in texts_by_name.items():
        if field_name.startswith(GENERATOR_PREFIX):
            generator_texts[field_name.removeprefix(GENERATOR_PREFIX)] = field_text
        elif field_name not in shell_field_names and not tour.is_address_field(field_name):
            setting_texts[field_name] = field_text
    setting_texts = question.rename_former_fields(setting_texts, text_fields.to_text)
    origin = session.Origin(texts_by_name.get(DATA_FIELD, session.DEFAULT_SAMPLE), generator_texts)
    stand_in_text_by_field: dict[str, str] = {}
    if UPLOAD_MARK in texts_by_name:
        # An address that was loaded anew. The data are gone, and it never held what may have been read off them.
        if origin.name in (session.UPLOADED, session.DP_RELEASE):
            origin = session.Origin(session.DEFAULT_SAMPLE)
        if question.parameters_type is not None:
            absent_names = {
                f.name for f in dataclasses.fields(question.parameters_type)
            } - setting_texts.keys()
            stand_in_text_by_field = {
                field_name: str(stand_in_value)
                for field_name, stand_in_value in STAND_IN_BY_FIELD.items()
                if field_name in absent_names
            }
    parameters_type, keys_by_name = question.parameters_type or Parameters, question.widget_keys
    if question.parameters_type is None:
        keys_by_name = {"epsilon": keys.EPSILON}
        stand_in_text_by_field = (
            {} if "epsilon" in setting_texts else {"epsilon": str(setting.DEFAULT_EPSILON)}
        )
    values_by_key, field_problems = _read_widgets(
        parameters_type, keys_by_name, stand_in_text_by_field | setting_texts
    )
    stand_in_keys = {keys_by_name[field_name] for field_name in stand_in_text_by_field}
    values_by_key = {
        key: stand_in_value for key, stand_in_value in values_by_key.items() if key not in stand_in_keys
    }
    return origin, values_by_key, field_problems


def _read_widgets(
    parameters_type: type[Any], keys_by_name: Mapping[str, str], texts_by_name: Mapping[str, str]
) -> tuple[dict[str, Any], list[InputProblem]]:
    """Return the values of widgets by session key, defaults included, and the problems of a link's other fields."""
    parameters, bad_names, field_problems = text_fields.read_good_fields(
        parameters_type, texts_by_name, STAND_IN_BY_FIELD
    )
    if bad_names:
        is_partly_good = len(bad_names) < len(texts_by_name)
        rest_text = "all else is as it says" if is_partly_good else "the app's own settings are shown"
        field_problems.append(InputProblem(f"not followed: {', '.join(bad_names)}; {rest_text}"))
    # A stand-in is nobody's setting: the page goes on with its own, and with both ends of a range.
    required_names = {f.name for f in dataclasses.fields(parameters_type) if f.default is dataclasses.MISSING}
    missing_names = required_names & set(bad_names)
    if missing_names & {"lower", "upper"}:
        missing_names |= {"lower", "upper"}
    set_keys_by_name = {
        field_name: key for field_name, key in keys_by_name.items() if field_name not in missing_names
    }
    return {
        key: getattr(parameters, field_name) for field_name, key in set_keys_by_name.items()
    }, field_problems


def apply_once(question: Question) -> None:
    """Apply the link or tour of this session's address to the session state, once. Call it before any widget.

    The data come first: the link's widgets override what loading data proposes.
    """
    if st.session_state.get(keys.IS_LINK_APPLIED):
        return
    st.session_state[keys.IS_LINK_APPLIED] = True
    texts_by_name = st.query_params.to_dict()
    session.get_loaded()  # First: loading data resets widgets and problems, and must not undo what the link sets.
    problems = Problems()
    if VERSION_FIELD in texts_by_name:
        _apply_link(texts_by_name, question, problems)
    tour.resume_tour(texts_by_name, VERSION_FIELD in texts_by_name, problems)
    if UPLOAD_MARK in texts_by_name:
        problems.add(DATA_GONE, remedy=f"Load them again. Shown instead: {session.get_dataset().name}")
    if PINS_MARK in texts_by_name:
        problems.add(PINS_GONE, remedy="Save session, in the sidebar, keeps it as a file")
    if SPENT_MARK in texts_by_name:
        problems.add(SPENT_GONE, remedy="Open a saved session file, or add what you released yourself")
    st.session_state[keys.LINK_PROBLEMS] = tuple(problems.entries)


def _apply_link(texts_by_name: Mapping[str, str], question: Question, problems: Problems) -> None:
    """Load the link's data and set its widgets, as far as they are valid; add what is not to ``problems``."""
    try:
        origin, values_by_key, field_problems = read_link(texts_by_name, question)
    except InvalidInput as error:
        problems.extend(error.problems)
        return
    try:
        session.use_data(session.LoadedData(origin.load(), origin))
    except InvalidInput as error:
        problems.extend(error.problems)
        problems.add(f"shown instead: {session.get_dataset().name}")
    problems.extend(field_problems)
    st.session_state.update(values_by_key)
    choice_keys = {
        question.get_key(field_name)
        for field_name, field in question.fields.items()
        if field.options is not None
    }
    if (
        origin.name in (session.UPLOADED, session.DP_RELEASE)
        or UPLOAD_MARK in texts_by_name
        or question.has_own_data
    ):
        st.session_state[keys.AWAITED_VALUES] = values_by_key
    st.session_state[keys.LINK_CHOICES] = {
        k: link_value for k, link_value in values_by_key.items() if k in choice_keys
    }


def write_current_link(question: Question) -> tuple[str, str]:
    """Return the permanent link of the page as it stands, and the query of the browser's address.

    A reload of the page comes back to that query. An address is not shared by choice, but browsers show and keep it. So
    for private data, and for releases, it holds only fields that are declared public, and the ends of a range, which
    are public by their nature. For uploads, pins and spending it says only that there are some. While a file of the
    page's own is in use, everything entered may have been read off it. A page with data of its own depends on those
    alone.
    """
    loaded_data, current_tour, state = session.get_loaded(), session.get_tour(), st.session_state
    data_after_tour = loaded_data if current_tour is None else current_tour.saved_state.loaded_data
    came_from_file = session.came_from_file(data_after_tour.original or data_after_tour)
    parameters: Parameters | None = state.get(keys.PAGE_PARAMETERS)
    epsilon: Any = state.get(keys.EPSILON)
    if parameters is None and not check_epsilon(epsilon):
        parameters = Parameters(epsilon)
    hides_fields = bool(question.own_file_key) and question.own_file_key in state
    hides_fields |= not question.has_own_data and (loaded_data.original or loaded_data).dataset.is_private
    has_own_table = any(q.own_file_key and q.own_file_key in state for q in catalogue.PAGES)
    mark_text_by_name = {UPLOAD_MARK: "1"} if has_own_table or came_from_file else {}
    if current_tour is not None:
        mark_text_by_name |= tour.list_address_fields(current_tour)
    if state.get(keys.PINS) or (current_tour is not None and current_tour.saved_state.pins):
        mark_text_by_name[PINS_MARK] = "1"
    ledger_state_keys = (keys.LEDGERS, *(q.ledgers_key for q in catalogue.PAGES if q.ledgers_key))
    ledgers = (
        ledger for ledgers_key in ledger_state_keys for ledger in (state.get(ledgers_key) or {}).values()
    )
    if any(ledger.releases for ledger in ledgers):
        mark_text_by_name[SPENT_MARK] = "1"
    if state.get(keys.IS_PRESENTING):
        mark_text_by_name[page_run.PRESENT_MARK] = "1"
    setting_texts = list_parameter_fields(parameters)
    page_address = st.context.url or "http://127.0.0.1:8501"
    permanent_link = write_link(page_address, question.url_path, loaded_data.origin, setting_texts)
    if hides_fields:
        for field_name, field in question.fields.items():
            if field.origin is not FieldOrigin.PUBLIC and not field.is_published:
                setting_texts.pop(field_name, None)
    return permanent_link, urlencode(
        _list_origin_fields(loaded_data.origin) | setting_texts | mark_text_by_name
    )


def group_by_question(values_by_key: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the fields' values as JSON, by question and name of the field; other keys are left out."""
    values_by_question: dict[str, dict[str, Any]] = {}
    for session_key in filter(catalogue.FIELD_KEYS.__contains__, values_by_key):
        question_name, _, field_name = session_key.partition(".")
        values_by_question.setdefault(question_name, {})[field_name] = to_json_value(
            values_by_key[session_key]
        )
    return values_by_question


def to_json_value(value: Any) -> Any:
    """Return the value of a field as JSON; None for NaN, infinity and values of other types."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, bool | int | float | str) else None


def read_settings(node: JsonValue, problems: Problems, fills_new_fields: bool = True) -> dict[str, Any]:
    """Return valid settings by session key; with ``fills_new_fields``, add fields that are newer than the file."""
    values_by_key: dict[str, Any] = {}
    for question_name, page_node in (
        JsonValue(node.value, node.location, problems).get_named(200) or {}
    ).items():
        question = catalogue.QUESTION_BY_NAME.get(question_name)
        if question is None or question.parameters_type is None:
            page_node.refuse("there is no such question here")
            continue
        location = page_node.location
        nodes_by_name = question.rename_former_fields(
            page_node.get_named(200) or {},
            lambda value, location=location: JsonValue(to_json_value(value), location, problems),  # type: ignore[misc]
        )
        if fills_new_fields:
            default_by_field = question.list_newer_defaults(nodes_by_name)
            values_by_key |= {
                question.get_key(field_name): default_value
                for field_name, default_value in default_by_field.items()
            }
        values_by_key |= _read_fields(question, nodes_by_name)
    return values_by_key


def _read_fields(question: Question, nodes_by_field: Mapping[str, JsonValue]) -> dict[str, Any]:
    """Return the values that the question's parameters object accepts, by session key; refuse the nodes of others."""
    assert question.parameters_type is not None
    type_by_field = text_fields.list_field_types(question.parameters_type)
    max_length_by_field = text_fields.list_text_limits(question.parameters_type)
    values_by_field: dict[str, Any] = {}
    for field_name, node in nodes_by_field.items():
        if field_name not in question.fields:
            node.refuse("there is no such field here")
        elif node.value is None:
            if question.fields[field_name].options is None and type_by_field[field_name] is not bool:
                values_by_field[field_name] = None
        else:
            max_length = max_length_by_field.get(field_name, text_fields.MAX_TEXT)
            try:
                values_by_field[field_name] = _convert_value(type_by_field[field_name], node, max_length)
            except ValueError:
                node.refuse(
                    f"this is not what the field {question.fields[field_name].label or field_name} holds"
                )
    accepted_names = _list_accepted_names(question, values_by_field)
    for field_name in [field_name for field_name in values_by_field if field_name not in accepted_names]:
        field_label = question.fields[field_name].label or field_name
        nodes_by_field[field_name].refuse(
            f"{field_label} cannot be this: {text_fields.to_text(values_by_field[field_name])[:40]}"
        )
    return {
        question.get_key(field_name): values_by_field[field_name]
        for field_name in values_by_field
        if field_name in accepted_names
    }


def _convert_value(field_type: Any, node: JsonValue, max_length: int) -> Any:
    """Return a node's value in the type that the field's widget holds.

    Raises:
        ValueError: The value is of another type, or too long.
    """
    value = node.value
    for option_type in typing.get_args(field_type) or (field_type,):
        if isinstance(option_type, type) and issubclass(option_type, enum.Enum):
            return option_type(value)
        if option_type is bool and isinstance(value, bool):
            return value
        if option_type is str and isinstance(value, str) and len(value) <= max_length:
            value.encode()  # A UnicodeEncodeError is a ValueError.
            return value
        if option_type in (int, float) and type(value) in (int, float) and abs(value) < 1e300:
            return int(value) if option_type is int and value == int(value) else float(value)
    raise ValueError


def _list_accepted_names(question: Question, values_by_field: Mapping[str, Any]) -> set[str]:
    """Return the names of fields that are empty, or whose value is good with the others or alone.

    A value that does not apply now, such as the variance beside *Worst case*, stays in its field if it is in range.
    """
    assert question.parameters_type is not None
    type_by_field = text_fields.list_field_types(question.parameters_type)

    def is_in_range(field_name: str) -> bool:
        """Return True if the field alone accepts its value."""
        problems = Problems()
        question.fields[field_name].check(problems, values_by_field[field_name], type_by_field[field_name])
        return not problems.entries

    empty_names = {field_name for field_name, field_value in values_by_field.items() if field_value is None}
    good_values_by_field = {
        n: v for n, v in values_by_field.items() if n not in empty_names and is_in_range(n)
    }
    # Nothing is compared with what is empty, nor with an end of a range that nobody entered.
    nan_by_field = {field_name: math.nan for field_name in STAND_IN_BY_FIELD if field_name in type_by_field}
    used_values_by_field = nan_by_field | {
        field_name: good_values_by_field.get(field_name, math.nan)
        for field_name in (*good_values_by_field, *empty_names)
        if applies(
            question.fields[field_name].only_with,
            lambda other: good_values_by_field.get(other, question.get_initial_value(other)),
        )
    }
    if _is_accepted(question, used_values_by_field):
        return empty_names | set(good_values_by_field)

    def is_good_alone(field_name: str) -> bool:
        """Return True if the value is good without the other fields, except a field that switches this one on."""
        field = question.fields[field_name]
        if field_name not in used_values_by_field or field.limits or field.options or field.stops:
            return True  # It was checked above.
        condition_field_names = (
            {field.only_with[0]} & good_values_by_field.keys() if field.only_with else set()
        )
        own_value_by_field = {
            own_field_name: good_values_by_field[own_field_name]
            for own_field_name in (field_name, *condition_field_names)
        }
        return _is_accepted(question, nan_by_field | own_value_by_field)

    return empty_names | set(filter(is_good_alone, good_values_by_field))


def _is_accepted(question: Question, values_by_field: Mapping[str, Any]) -> bool:
    """Return True if the parameters object accepts the values; comparisons with empty fields are ignored."""
    assert question.parameters_type is not None
    try:
        question.parameters_type(**{**values_by_field, "epsilon": setting.DEFAULT_EPSILON})
    except InvalidInput as error:
        return all(problem.message.endswith("got nan") for problem in error.problems)
    except (TypeError, ValueError):  # A field that may not be empty is.
        return False
    return True
