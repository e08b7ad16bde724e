"""A session as one file: what was entered, the data as far as there is room, and the ledgers of releases.

The file can be opened on this computer or another, also after the server was stopped. It is read like a file that
anybody may have written. Its data and ledgers are checked completely before anything changes. Its settings are
followed as far as the questions' parameters accept them, as with a link. Opening a file never lowers what was spent:
releases in the session's ledger and in the file's ledger all count.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import streamlit as st

from dpcore.common.checks import InputProblem, Problems
from dpcore.common.privacy import Disclosure, Ledger, Provenance, find_strictest
from dpcore.common.strict_json import JsonValue, load_json, read_optional, read_texts, write_document
from dpcore.common.strict_json import read_text as text_of
from dpcore.common.text_fields import MAX_TEXT
from dpcore.common.wording import format_count
from dpcore.data import saved_dataset
from dpcore.data.saved_dataset import CODEC, FACT_READERS, build_facts
from pages.shared.base import catalogue, keys
from pages.shared.fields import field_values
from pages.shared.figures import figures
from pages.shared.figures.figures import Pin
from pages.shared.session import links, own_tables, session
from pages.shared.session.own_tables import KnownFile, OwnTable

SCHEMA = "sweetspot/session/1"
MAX_FILE_BYTES = 80_000_000
"""The largest file that is read; one with two full data sets is smaller."""
MAX_DATASETS, MAX_RELEASES, MAX_DIGEST_LENGTH = 1_000, 10_000, 200
"""Data sets with an account, releases of each, and characters of what names a data set at most."""
FILE_LABEL = "the session file"
MADE_OF_REFUSAL = "only a release in use is made of other data"


@dataclass(frozen=True)
class SessionContent:
    """The content of a session that a person entered or brought.

    Attributes:
        loaded_data: The data in use; None if a file has none.
        epsilon: The shared epsilon; None if its field is empty.
        values_by_key: Values of declared fields, by session key.
        ledgers_by_question: Ledgers by digest of the data, for each question with data of its own; under "" those of
            the session's data.
        pins: All pins, including those set aside beside a release.
        tables_by_page: Tables that pages have for themselves, by name of the page.
        releases_by_page: What pages have drawn with noise, by name of the page.
        known_files: Files that were put to use, and the roles of their columns.
        omission_sentences: What the session holds and no file can, a sentence each.
    """

    loaded_data: session.LoadedData | None
    epsilon: float | None = None
    values_by_key: Mapping[str, Any] = field(default_factory=dict)
    ledgers_by_question: Mapping[str, Mapping[str, Ledger]] = field(default_factory=dict)
    pins: tuple[Pin, ...] = ()
    tables_by_page: Mapping[str, OwnTable] = field(default_factory=dict)
    releases_by_page: Mapping[str, Any] = field(default_factory=dict)
    known_files: tuple[KnownFile, ...] = ()
    omission_sentences: tuple[str, ...] = ()

    @property
    def disclosure(self) -> Provenance:
        """Return the label of the file: private if data, a known file or an account is private; else the strictest one.

        Every account is private, as it names its data by a digest.
        """
        loaded_data = self.loaded_data
        data_holders = (loaded_data, loaded_data and loaded_data.original, *self.tables_by_page.values())
        datasets = [holder.dataset for holder in data_holders if holder is not None]
        # The names of a private file's columns are not for everybody either. An account names its data by a digest,
        # which is as private as they are.
        is_file_private = any(known_file.disclosure is Disclosure.PRIVATE for known_file in self.known_files)
        if is_file_private or any(self.ledgers_by_question.values()) or any(d.is_private for d in datasets):
            return Disclosure.PRIVATE
        return find_strictest([*(d.provenance for d in datasets), *(pin.disclosure for pin in self.pins)])


@dataclass
class Snapshot:
    """The session state at the last run of the page, for the thread that writes the session file."""

    values_by_key: Mapping[Any, Any]

    @property
    def content(self) -> SessionContent:
        """Return the content of the session when the page was last drawn."""
        return read_session(self.values_by_key)


def update_snapshot() -> Snapshot:
    """Store the present state for the button *Save session*, without copying it, and return the snapshot."""
    values_by_key = st.session_state.to_dict()
    values_by_key.pop(
        keys.SESSION_SNAPSHOT, None
    )  # It would hold itself, and large data until the collector comes by.
    snapshot: Snapshot = st.session_state.setdefault(keys.SESSION_SNAPSHOT, Snapshot(values_by_key))
    snapshot.values_by_key = values_by_key
    return snapshot


def read_session(values_by_key: Mapping[Any, Any] | None = None) -> SessionContent:
    """Return the content of a session; during the tour, the content that returns at its end.

    Args:
        values_by_key: The session state as a dict, which is fifteen times faster to read than Streamlit's own; by
            default the present state of this session.
    """
    values_by_key = st.session_state.to_dict() if values_by_key is None else values_by_key
    field_values_by_key = {
        session_key: session_value
        for session_key, session_value in values_by_key.items()
        if session_key in catalogue.FIELD_KEYS
    }
    ledgers_by_question = {
        q.name: values_by_key.get(q.ledgers_key, {})
        for q in catalogue.QUESTION_BY_NAME.values()
        if q.ledgers_key
    }
    tour: session.Tour | None = values_by_key.get(keys.TOUR)
    if tour is None:
        saved_state = session.SavedState(values_by_key[keys.LOADED_DATA], values_by_key.get(keys.EPSILON))
    else:
        saved_state = tour.saved_state
        tour_keys = {
            session_key
            for q in catalogue.QUESTION_BY_NAME.values()
            for session_key in session.list_entered_keys(q, values_by_key)
        }
        field_values_by_key = {
            session_key: session_value
            for session_key, session_value in field_values_by_key.items()
            if session_key not in tour_keys
        }
        former_values_by_key = saved_state.settings_by_key
        field_values_by_key |= {
            session_key: former_values_by_key[session_key]
            for session_key in former_values_by_key
            if session_key in catalogue.FIELD_KEYS
        }
    loaded_data: session.LoadedData = saved_state.loaded_data
    pins = figures.merge_pins(saved_state.pins, values_by_key.get(keys.PINS, ()))
    return SessionContent(
        loaded_data,
        saved_state.epsilon,
        field_values_by_key,
        {"": values_by_key.get(keys.LEDGERS, {}), **ledgers_by_question},
        (*loaded_data.values_set_aside.get(keys.PINS, ()), *pins),
        own_tables.list_tables(values_by_key),
        own_tables.list_releases(values_by_key),
        values_by_key.get(keys.KNOWN_FILES, ()),
        tuple(_list_undownloaded_releases(values_by_key)),
    )


def _list_undownloaded_releases(values_by_key: Mapping[Any, Any]) -> Iterator[str]:
    """Yield a sentence for each page whose releases the file leaves out; the file holds only their cost."""
    for question in (q for q in catalogue.QUESTION_BY_NAME.values() if q.ledgers_key):
        draws_by_account: Any = values_by_key.get(f"{question.name}.draws", {})
        if num_releases := sum(map(len, draws_by_account.values())):
            releases_text = format_count(num_releases, "release")
            yield f"{question.title}: {releases_text}, to be downloaded there; the cost is on the account"


# --- Writing ----------------------------------------------------------------------------------------------------------


def write_file(session_content: SessionContent) -> str:
    """Return the text of the session file."""
    data_json, data_omissions, room_bytes = _write_data(session_content.loaded_data, saved_dataset.ROOM)
    tables_json, table_omissions = own_tables.tables_to_json(session_content.tables_by_page, room_bytes)
    return write_document(
        SCHEMA,
        label=session_content.disclosure.label,
        saved=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        left_out=[*data_omissions, *table_omissions, *session_content.omission_sentences],
        data=data_json,
        epsilon=links.to_json_value(session_content.epsilon),
        settings=links.group_by_question(session_content.values_by_key),
        accounts=_write_accounts(session_content.ledgers_by_question),
        pins=[own_tables.PIN_CODEC.write(pin) for pin in session_content.pins[-figures.MAX_PINS :]],
        own=tables_json,
        drawn=own_tables.releases_to_json(session_content.releases_by_page),
        files=own_tables.known_files_to_json(session_content.known_files),
    )


def _write_data(
    loaded_data: session.LoadedData | None, room_bytes: int
) -> tuple[dict[str, Any] | None, list[str], int]:
    """Return the data as JSON, a sentence on each part left out, and the bytes that remain.

    The JSON is None without data, or if nothing of them fits.
    """
    if loaded_data is None:
        return None, [], room_bytes
    origin = loaded_data.origin
    data_json: dict[str, Any] = {"origin": origin.name, "generator": dict(origin.generator_texts)}
    if origin.name not in (session.UPLOADED, session.DP_RELEASE):
        return data_json, [], room_bytes
    saved_dataset_json = saved_dataset.to_json(loaded_data.dataset, room_bytes)
    room_bytes = saved_dataset_json.remaining_bytes
    omission_sentences = list(saved_dataset_json.left_out_phrases)
    if saved_dataset_json.dataset_json is None:
        return None, omission_sentences, room_bytes
    data_json["content"] = saved_dataset_json.dataset_json
    if loaded_data.original is not None:
        original_data_json, original_omissions, room_bytes = _write_data(loaded_data.original, room_bytes)
        omission_sentences += original_omissions
        if original_data_json is not None:
            data_json["made_of"] = original_data_json
            data_json["set_aside"] = links.group_by_question(loaded_data.values_set_aside)
    return data_json, omission_sentences, room_bytes


def _write_accounts(ledgers_by_question: Mapping[str, Mapping[str, Ledger]]) -> dict[str, Any]:
    """Return the ledgers as JSON by question and digest of the data: a list of releases with marks for each."""
    return {
        question_name: {
            digest: [
                {"mark": release_mark, **CODEC.write(facts)}
                for release_mark, facts in zip(ledger.marks, ledger.releases, strict=True)
            ]
            for digest, ledger in ledgers_by_digest.items()
        }
        for question_name, ledgers_by_digest in ledgers_by_question.items()
        if ledgers_by_digest
    }


# --- Reading ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FileContent:
    """The content of a session file.

    Attributes:
        content: Its valid content.
        setting_problems: Problems of settings, which then stay as they are.
        omission_sentences: What the file says it does not hold, a sentence each.
        saved_at_text: When it was saved, as it says.
    """

    content: SessionContent
    setting_problems: tuple[InputProblem, ...]
    omission_sentences: tuple[str, ...]
    saved_at_text: str


def read_file(file_bytes: bytes) -> FileContent:
    """Return the content of a session file; the session does not change.

    Args:
        file_bytes: The file.

    Raises:
        InvalidInput: It is no session file of this version, or its data or ledgers were changed or damaged; all
            problems at once.
    """
    document = load_json(file_bytes, MAX_FILE_BYTES, FILE_LABEL)
    if not isinstance(document.value, dict) or document.value.get("schema") != SCHEMA:
        document.refuse(f"this is no session file of this version: its schema is not {SCHEMA}")
        document.problems.raise_if_any()
    problems = Problems()  # Of settings: they are said, and the rest is followed.

    def note_second_dataset(second_node: JsonValue) -> None:
        """Add the problem that a second data set, which older files may hold, is left out."""
        if second_node.value is not None:
            problems.add("the second data set of this file is left out: pages show one data set at a time")

    values_by_member = document.read_members(
        {
            **dict.fromkeys(("schema", "made_with", "label", "saved"), text_of(saved_dataset.SENTENCE)),
            "left_out": read_texts(100, saved_dataset.SENTENCE),
            "data": read_optional(functools.partial(_read_data, problems)),
            "epsilon": functools.partial(_read_epsilon, problems),
            "settings": lambda settings: links.read_settings(settings, problems),
            "accounts": _read_accounts,
            "pins": own_tables.pins_from_json,
        },
        {
            "second": note_second_dataset,
            # Files of before have none.
            "own": own_tables.tables_from_json,
            "drawn": lambda releases: releases,
            "files": own_tables.known_files_from_json,
            "page": lambda page: page,
        },
    )
    document.problems.raise_if_any()
    assert values_by_member is not None
    drawn_node: JsonValue | None = values_by_member.get("drawn")
    releases = (
        {} if drawn_node is None else own_tables.releases_from_json(drawn_node, values_by_member["accounts"])
    )
    document.problems.raise_if_any()
    session_content = SessionContent(
        values_by_member["data"],
        values_by_member["epsilon"],
        values_by_member["settings"],
        values_by_member["accounts"],
        values_by_member["pins"],
        values_by_member.get("own", {}),
        releases,
        values_by_member.get("files", ()),
    )
    return FileContent(
        session_content, tuple(problems.entries), values_by_member["left_out"], values_by_member["saved"]
    )


def _read_epsilon(problems: Problems, node: JsonValue) -> float | None:
    """Return epsilon; None if the file's is empty, or, with a problem of settings, if it is out of range."""
    number = None if node.value is None else JsonValue(node.value, node.location, problems).get_number()
    epsilon_problems = [] if number is None else field_values.check_epsilon(number)
    problems.extend(epsilon_problems)
    return None if epsilon_problems else number


def _read_data(problems: Problems, node: JsonValue, is_original: bool = False) -> session.LoadedData | None:
    """Return data with their origin, or None, with a problem; ``is_original`` is True if a release was made of them."""

    def read_original(original_node: JsonValue) -> session.LoadedData | None:
        """Return the data that a release was made of; None, with a problem, where data are not a release."""
        if is_original:  # At once: it could be made of others without end.
            original_node.refuse(MADE_OF_REFUSAL)
            return None
        return _read_data(problems, original_node, is_original=True)

    values_by_member = node.read_members(
        {"origin": text_of(40), "generator": lambda generator: generator.get_named(links.MAX_FIELDS)},
        {
            "content": saved_dataset.from_json,
            "made_of": read_original,
            "set_aside": lambda settings: links.read_settings(settings, problems, fills_new_fields=False),
        },
    )
    if values_by_member is None:
        return None
    origin_name = values_by_member["origin"]
    generator_texts = {
        setting_name: text_node.get_text(MAX_TEXT)
        for setting_name, text_node in values_by_member["generator"].items()
    }
    if origin_name not in (session.UPLOADED, session.DP_RELEASE):
        if set(values_by_member) != {"origin", "generator"} or None in generator_texts.values():
            node.refuse("a sample or a generator has nothing beside its name and its parameters")
            return None
        origin = session.Origin(origin_name, generator_texts)
        dataset = node.build(origin.load)
        return None if dataset is None else session.LoadedData(dataset, origin)
    if "content" not in values_by_member or generator_texts:
        node.refuse("uploaded data and releases are their content, and have no parameters")
    elif (values_by_member["content"].release is not None) != (origin_name == session.DP_RELEASE):
        node.refuse("data are a release exactly where they say what it guarantees")
    elif "made_of" in values_by_member and origin_name != session.DP_RELEASE:
        node.refuse(MADE_OF_REFUSAL)
    else:
        origin, original_data = session.Origin(origin_name), values_by_member.get("made_of")
        values_set_aside = values_by_member.get("set_aside", {}) if original_data else {}
        return session.LoadedData(values_by_member["content"], origin, original_data, values_set_aside)
    return None


def _read_accounts(node: JsonValue) -> dict[str, dict[str, Ledger]]:
    """Return the ledgers of a file by question, "" for the session's data, and by digest of the data."""
    question_names = ("", *(q.name for q in catalogue.QUESTION_BY_NAME.values() if q.ledgers_key))
    ledgers_by_question: dict[str, dict[str, Ledger]] = {}
    for question_name, digests_node in (node.get_members((), question_names) or {}).items():
        for digest, ledger_node in (digests_node.get_named(MAX_DATASETS) or {}).items():
            if (
                JsonValue(digest, digests_node.location, digests_node.problems).get_text(MAX_DIGEST_LENGTH)
                is None
            ):
                continue
            ledger = _read_ledger(ledger_node)
            if ledger is not None:
                ledgers_by_question.setdefault(question_name, {})[digest] = ledger
    return ledgers_by_question


def _read_ledger(node: JsonValue) -> Ledger | None:
    """Return one ledger from a list of releases; None, with a problem, if one is damaged or a mark stands twice."""
    release_facts, marks = [], []
    for release_node in node.get_entries(MAX_RELEASES) or ():
        values_by_member = release_node.read_members({**FACT_READERS, "mark": text_of(40)})
        facts = build_facts(release_node, values_by_member)
        if values_by_member is None or facts is None:
            return None
        release_facts.append(facts)
        marks.append(values_by_member["mark"])
    if len(set(marks)) < len(marks):
        node.refuse("a mark stands at two releases")
        return None
    return Ledger(tuple(release_facts), tuple(marks))


# --- Opening ----------------------------------------------------------------------------------------------------------


def apply_content(session_content: SessionContent) -> None:
    """Make a file's content the session's. Call it before any widget that it sets, for example from a callback.

    A tour ends. Ledgers, pins, releases and known files are added to those of the session. Data, pages' own tables and
    fields are replaced as far as the file has them.
    """
    state = st.session_state
    session.end_tour()  # Else its end would put the settings from before over those of the file.
    # First: whatever stops this, nothing that was spent is forgotten.
    for question_name, ledgers_by_digest in session_content.ledgers_by_question.items():
        ledgers_key = catalogue.QUESTION_BY_NAME[question_name].ledgers_key if question_name else keys.LEDGERS
        current_ledgers: dict[str, Ledger] = state.get(ledgers_key, {})
        state[ledgers_key] = current_ledgers | {
            digest: current_ledgers.get(digest, Ledger()).merge(ledger)
            for digest, ledger in ledgers_by_digest.items()
        }
    shown_pins = session_content.pins
    if (loaded_data := session_content.loaded_data) is not None:
        values_set_aside = dict(loaded_data.values_set_aside)
        # As it was: pins of private data do not stand beside a release of them.
        if loaded_data.original is not None:
            values_set_aside[keys.PINS], shown_pins = figures.split_private_pins(shown_pins)
        session.use_data(replace(loaded_data, values_set_aside=values_set_aside))
    own_tables.add_known_files(session_content.known_files)
    own_tables.apply_releases(session_content.releases_by_page)
    own_tables.apply_tables(session_content.tables_by_page)
    figures.store_pins(figures.merge_pins(figures.list_all_pins(), shown_pins))
    state.update(session_content.values_by_key)
    state[keys.AWAITED_VALUES] = {
        field_key: field_value
        for field_key, field_value in session_content.values_by_key.items()
        if session_content.loaded_data is None
        or catalogue.QUESTION_BY_NAME[field_key.partition(".")[0]].has_own_data
    }
    if session_content.epsilon is not None:
        state[keys.EPSILON] = session_content.epsilon
        state[keys.EPSILON_PAGE] = None  # The widgets of the page where ε stood last take it up, too.
