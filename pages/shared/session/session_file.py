"""A session as one file: what was entered, the data as far as there is room, and the account of what was released.

Saved and opened again, on this computer or another, after the server was stopped too. It is read like a file that
anybody may have written: what it is made of is checked whole before anything changes; what it says of fields is
followed as far as the questions' parameters objects take it, as with a link. Opening a file never lowers what was
spent: of the account in the session and the one in the file every release counts.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import math
import typing
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import streamlit as st

from dpcore.common import wording
from dpcore.common.checks import Problems
from dpcore.common.documents import write_document
from dpcore.common.errors import InputProblem, InvalidInput
from dpcore.common.ledger import Ledger
from dpcore.common.privacy import Disclosure, Provenance, find_strictest
from dpcore.common.strict_json import JsonValue, load_json, read_optional, read_texts
from dpcore.common.strict_json import read_text as text_of
from dpcore.common.text_fields import MAX_TEXT, list_field_types, list_text_limits, read_good_fields, to_text
from dpcore.data import saved_dataset
from dpcore.data.saved_dataset import FACTS, SavedDataset, build_facts, facts_to_json
from pages.shared.base import catalogue, keys
from pages.shared.base.question import Question
from pages.shared.fields import fields
from pages.shared.figures import pins
from pages.shared.figures.pins import Pin
from pages.shared.session import known_files, last_releases, links, own_tables, pins_json, session, shelf
from pages.shared.session.known_files import KnownFile
from pages.shared.session.own_tables import OwnTable

SCHEMA = "sweetspot/session/1"
MOST_BYTES = 80_000_000
"""The largest file that is read; one with two full data sets is smaller."""
MOST_DATASETS, MOST_RELEASES, DIGEST = 1_000, 10_000, 200
"""Data sets with an account, releases of each, and characters of what names a data set at most."""
CALLED = "the session file"
MADE_OF = "only a release in use is made of other data"


@dataclass(frozen=True)
class Content:
    """What a session holds that a person entered or brought.

    Attributes:
        loaded: The data in use; None where a file has none.
        epsilon: The shared epsilon; None where its field is empty.
        settings: Session key to what the field holds, of every declared field that holds something.
        accounts: What was released: by question, empty for the session's data; then a ledger by digest of the data.
        pins: What was pinned, those among it that are set aside beside a release.
        own_tables: Tables that pages have for themselves, by name of the page.
        releases: What pages have drawn with noise, by name of the page.
        files: Which files were put to use, and what their columns were taken for.
        left_out: What the session holds besides, and no file, a sentence each.
    """

    loaded: session.Loaded | None
    epsilon: float | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    accounts: Mapping[str, Mapping[str, Ledger]] = field(default_factory=dict)
    pins: tuple[Pin, ...] = ()
    own_tables: Mapping[str, OwnTable] = field(default_factory=dict)
    releases: Mapping[str, Any] = field(default_factory=dict)
    files: tuple[KnownFile, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def disclosure(self) -> Provenance:
        """Return the label of the file: private where anything in it is."""
        loaded = self.loaded
        datasets = (
            [] if loaded is None else [loaded.dataset, *([loaded.made_of.dataset] if loaded.made_of else [])]
        )
        datasets += [table.dataset for table in self.own_tables.values()]
        private = [
            *(data.is_private for data in datasets),
            # The names of a private file's columns are not for everybody either.
            *(f.disclosure is Disclosure.PRIVATE for f in self.files),
        ]
        # An account names its data by a digest, which is as private as they are.
        if any(private) or any(self.accounts.values()):
            return Disclosure.PRIVATE
        return find_strictest(
            [*(data.provenance for data in datasets), *(pin.disclosure for pin in self.pins)]
        )


@dataclass
class Holder:
    """Where the page leaves what a click on *Save session* writes: the button's thread knows nothing of the session."""

    state: Mapping[Any, Any]

    @property
    def content(self) -> Content:
        """Return what the session held when the page was drawn last."""
        return take(self.state)

    @property
    def disclosure(self) -> Provenance:
        """Return the label of the file that would hold it."""
        return _without_draws(self.state).disclosure


def leave() -> Holder:
    """Leave what the session holds now where the button finds it: references, nothing is copied or looked at."""
    state = st.session_state.to_dict()
    state.pop(keys.SESSION_FILE, None)  # It would hold itself, and large data until the collector comes by.
    holder: Holder = st.session_state.setdefault(keys.SESSION_FILE, Holder(state))
    holder.state = state
    return holder


def take(state: Mapping[Any, Any] | None = None) -> Content:
    """Return what a session holds, during the tour what returns at its end.

    Args:
        state: Its state as a dict, of which each look costs a fifteenth of one into Streamlit's own; by default that of
            this session now.
    """
    state = st.session_state.to_dict() if state is None else state
    return replace(_without_draws(state), releases=last_releases.take(state), left_out=tuple(_models(state)))


def _without_draws(state: Mapping[Any, Any]) -> Content:
    """Return the same without what pages have drawn, on which its label does not depend."""
    settings = {
        key: state[key]
        for q in catalogue.PAGES
        for name, key in q.widgets.items()
        if name in q.fields and key in state
    }
    accounts: dict[str, Mapping[str, Ledger]] = {"": state.get(keys.LEDGERS, {})}
    for question in catalogue.PAGES:
        if question.account_key:
            accounts[question.name] = state.get(question.account_key, {})
    tour: shelf.Tour | None = state.get(keys.TOUR)
    if tour is None:
        saved_state = shelf.Before(state[keys.LOADED], state.get(keys.EPSILON), settings)
    else:
        saved_state = tour.saved_state
        tour_keys = {key for q in catalogue.PAGES for key in shelf.list_entered_keys(q, state)}
        settings = {key: value for key, value in settings.items() if key not in tour_keys} | {
            key: value for key, value in saved_state.settings.items() if _is_field(key)
        }
    loaded: session.Loaded = saved_state.loaded
    pinned_now, aside = state.get(keys.PINS, ()), loaded.set_aside.get(keys.PINS, ())
    pinned = (
        *aside,
        *(pins.joined(saved_state.pinned, pinned_now) if saved_state.pinned or pinned_now else ()),
    )
    has_tables = any(q.file_key and q.file_key in state for q in catalogue.PAGES)
    tables, files = own_tables.take(state) if has_tables else {}, state.get(keys.KNOWN_FILES, ())
    return Content(loaded, saved_state.epsilon, settings, accounts, pinned, tables, files=files)


def _models(state: Mapping[Any, Any]) -> Iterator[str]:
    """Yield what pages with an account of their own have released, of which a file holds the cost alone."""
    for question in catalogue.PAGES:
        if question.own_account and "draws" in question.also:
            num_releases = sum(map(len, state.get(question.key("draws"), {}).values()))
            if num_releases:
                yield (
                    f"{question.title}: {wording.counted(num_releases, 'release')} that the page drew, "
                    "to be downloaded there; the cost is on the account"
                )


def _is_field(key: str) -> bool:
    name, _, entry = key.partition(".")
    question = catalogue.named(name)
    return question is not None and entry in question.fields


# --- Writing ----------------------------------------------------------------------------------------------------------


def text(content: Content, saved_at: datetime | None = None) -> str:
    """Return the file.

    Args:
        content: What the session holds.
        saved_at: When; now by default.
    """
    data, left_out, room = _data(content.loaded, saved_dataset.ROOM)
    tables, further = own_tables.to_json(content.own_tables, room)
    left_out += [*further, *content.left_out]
    return write_document(
        SCHEMA,
        label=content.disclosure.label,
        saved=(saved_at or datetime.now(UTC)).strftime("%Y-%m-%d %H:%M UTC"),
        left_out=left_out,
        data=data,
        epsilon=to_json_value(content.epsilon),
        settings=_by_question(content.settings),
        accounts=_accounts(content.accounts),
        pins=[pins_json.to_json(pin) for pin in content.pins[-pins.MOST :]],
        own=tables,
        drawn=last_releases.to_json(content.releases),
        files=known_files.to_json(content.files),
    )


def _data(loaded: session.Loaded | None, room: int) -> tuple[dict[str, Any] | None, list[str], int]:
    """Return the data, what is left out of them, and the bytes that are left for more."""
    if loaded is None:
        return None, [], room
    entry: dict[str, Any] = {"origin": loaded.origin.kind, "generator": dict(loaded.origin.fields)}
    if loaded.origin.kind not in (session.UPLOADED, session.RELEASED):
        return entry, [], room
    saved: SavedDataset = saved_dataset.to_json(loaded.dataset, room)
    left_out = list(saved.left_out)
    if saved.content is None:
        return None, left_out, room
    room = saved.room
    entry["content"] = saved.content
    if loaded.made_of is not None:
        behind, omissions, room = _data(loaded.made_of, room)
        left_out += omissions
        if behind is not None:
            entry |= {"made_of": behind, "set_aside": _by_question(loaded.set_aside)}
    return entry, left_out, room


def _by_question(settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    by_question: dict[str, dict[str, Any]] = {}
    for key, value in settings.items():
        if _is_field(key):
            name, _, entry = key.partition(".")
            by_question.setdefault(name, {})[entry] = to_json_value(value)
    return by_question


def _accounts(accounts: Mapping[str, Mapping[str, Ledger]]) -> dict[str, Any]:
    return {
        name: {
            digest: [
                {"mark": mark, **facts_to_json(facts)}
                for mark, facts in zip(ledger.marks, ledger.releases, strict=True)
            ]
            for digest, ledger in ledgers.items()
        }
        for name, ledgers in accounts.items()
        if ledgers
    }


def _note_second_dataset(node: JsonValue, aside: Problems) -> None:
    """Note that a file of before holds a second data set, which no page shows any more."""
    if node.value is not None:
        aside.add("the second data set of this file is left out: pages show one data set at a time")


def to_json_value(value: Any) -> Any:
    """Return what a field holds as a session file has it."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, bool | int | float | str) else None


# --- Reading ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FileContent:
    """What a file holds.

    Attributes:
        content: What is good of it.
        not_followed: What is wrong with settings, which then stay as they are.
        left_out: What it says that it does not hold.
        saved: When it was saved, as it says.
    """

    content: Content
    not_followed: tuple[InputProblem, ...]
    left_out: tuple[str, ...]
    saved: str


def read(content: bytes) -> FileContent:
    """Return what a file holds; it changes nothing.

    Args:
        content: The file.

    Raises:
        InvalidInput: It is no session file of this version, or what it is made of was changed or damaged; all problems
            at once.
    """
    document = load_json(content, MOST_BYTES, CALLED)
    if not isinstance(document.value, dict) or document.value.get("schema") != SCHEMA:
        document.refuse(f"this is no session file of this version: its schema is not {SCHEMA}")
        document.problems.raise_if_any()
    aside = Problems()  # Of settings: they are said, and the rest is followed.
    members = document.read_members(
        {
            **dict.fromkeys(("schema", "made_with", "label", "saved"), text_of(saved_dataset.SENTENCE)),
            "left_out": read_texts(100, saved_dataset.SENTENCE),
            "data": read_optional(functools.partial(_read_dataset, aside)),
            "epsilon": functools.partial(_epsilon, aside),
            "settings": lambda settings: _settings(settings, aside),
            "accounts": _read_accounts,
            "pins": pins_json.from_json,
        },
        {
            "second": lambda node: _note_second_dataset(node, aside),
            # Files of before have none.
            "own": own_tables.from_json,
            "drawn": lambda releases: releases,
            "files": known_files.from_json,
            "page": lambda page: page,
        },
    )
    document.problems.raise_if_any()
    assert members is not None
    releases = last_releases.from_json(members["drawn"], members["accounts"]) if "drawn" in members else {}
    document.problems.raise_if_any()
    session_content = Content(
        loaded=members["data"],
        releases=releases,
        own_tables=members.get("own", {}),
        files=members.get("files", ()),
        **{name: members[name] for name in ("epsilon", "settings", "accounts", "pins")},
    )
    return FileContent(session_content, tuple(aside.entries), members["left_out"], members["saved"])


def _epsilon(aside: Problems, node: JsonValue) -> float | None:
    if node.value is None:
        return None
    number = JsonValue(node.value, node.location, aside).get_number()
    problems = [] if number is None else fields.epsilon_problems(number)
    aside.extend(problems)
    return None if problems else number


def _read_dataset(aside: Problems, node: JsonValue, behind: bool = False) -> session.Loaded | None:
    """Data with their origin; ``behind``: whether they are not in use, as those that a release was made of."""

    def made_of(its: JsonValue) -> session.Loaded | None:
        if behind:  # At once: it could be made of others without end.
            its.refuse(MADE_OF)
            return None
        return _read_dataset(aside, its, behind=True)

    members = node.read_members(
        {"origin": text_of(40), "generator": lambda generator: generator.get_named(links.MAX_FIELDS)},
        {
            "content": saved_dataset.from_json,
            "made_of": made_of,
            "set_aside": lambda settings: _settings(settings, aside, of_all=False),
        },
    )
    if members is None:
        return None
    origin_kind = members["origin"]
    texts = {name: entry.get_text(MAX_TEXT) for name, entry in members["generator"].items()}
    if origin_kind not in (session.UPLOADED, session.RELEASED):
        if set(members) != {"origin", "generator"} or None in texts.values():
            node.refuse("a sample or a generator has nothing beside its name and its parameters")
            return None
        origin = session.Origin(origin_kind, texts)
        dataset = node.build(origin.load)
        return None if dataset is None else session.Loaded(dataset, origin)
    if "content" not in members or texts:
        node.refuse("uploaded data and releases are their content, and have no parameters")
    elif (members["content"].release is not None) != (origin_kind == session.RELEASED):
        node.refuse("data are a release exactly where they say what it guarantees")
    elif "made_of" in members and origin_kind != session.RELEASED:
        node.refuse(MADE_OF)
    else:
        original, set_aside = members.get("made_of"), members.get("set_aside", {})
        return session.Loaded(
            members["content"], session.Origin(origin_kind), original, set_aside if original else {}
        )
    return None


def _read_accounts(node: JsonValue) -> dict[str, dict[str, Ledger]]:
    pages = {"": None} | {q.name: q for q in catalogue.PAGES if q.own_account}
    accounts: dict[str, dict[str, Ledger]] = {}
    for name, question in (node.get_members((), tuple(pages)) or {}).items():
        for digest, entries in (question.get_named(MOST_DATASETS) or {}).items():
            if JsonValue(digest, question.location, question.problems).get_text(DIGEST) is None:
                continue
            ledger = _ledger(entries)
            if ledger is not None:
                accounts.setdefault(name, {})[digest] = ledger
    return accounts


def _ledger(node: JsonValue) -> Ledger | None:
    releases, marks = [], []
    for entry in node.get_entries(MOST_RELEASES) or ():
        members = entry.read_members({**FACTS, "mark": text_of(40)})
        facts = build_facts(entry, members)
        if members is None or facts is None:
            return None
        releases.append(facts)
        marks.append(members["mark"])
    if len(set(marks)) < len(marks):
        node.refuse("a mark stands at two releases")
        return None
    return Ledger(tuple(releases), tuple(marks))


def _settings(node: JsonValue, aside: Problems, of_all: bool = True) -> dict[str, Any]:
    """Session key to value of what is good; ``of_all``: whether all fields of a page that was seen are there."""
    settings: dict[str, Any] = {}
    for name, page_node in (JsonValue(node.value, node.location, aside).get_named(200) or {}).items():
        question = catalogue.named(name)
        if question is None or question.parameters is None:
            page_node.refuse("there is no such question here")
            continue
        location = page_node.location
        by_name = question.as_now(
            page_node.get_named(200) or {},
            lambda value, location=location: JsonValue(to_json_value(value), location, aside),  # type: ignore[misc]
        )
        if of_all:
            settings |= {question.key(n): value for n, value in question.came_later(by_name).items()}
        settings |= _fields(question, by_name, aside)
    return settings


def _fields(question: Question, nodes: Mapping[str, JsonValue], aside: Problems) -> dict[str, Any]:
    """Session key to value of those fields of a question that its parameters object takes."""
    assert question.parameters is not None
    hints, longest = list_field_types(question.parameters), list_text_limits(question.parameters)
    values: dict[str, Any] = {}
    for name, node in nodes.items():
        if name not in question.fields:
            node.refuse("there is no such field here")
        elif node.value is None:
            if question.fields[name].options is None and hints[name] is not bool:
                values[name] = None
        else:
            try:
                values[name] = _typed(hints[name], node, longest.get(name, MAX_TEXT))
            except ValueError:
                node.refuse(f"this is not what the field {question.fields[name].label or name} holds")
    empty = {name for name, value in values.items() if value is None}
    good = _accepted(question, {name: value for name, value in values.items() if name not in empty}, empty)
    for name in values:
        if name not in good and name not in empty:
            nodes[name].refuse(
                f"{question.fields[name].label or name} cannot be this: {to_text(values[name])[:40]}"
            )
    return {question.key(name): value for name, value in values.items() if name in good or name in empty}


def _typed(hint: Any, node: JsonValue, longest: int) -> Any:
    """Return the value as a widget holds it.

    Raises:
        ValueError: It is of another type.
    """
    kinds = [
        option_type for option_type in (typing.get_args(hint) or (hint,)) if option_type is not type(None)
    ]
    value = node.value
    for option_type in kinds:
        if isinstance(option_type, type) and issubclass(option_type, enum.Enum):
            return option_type(value)
        if option_type is bool and isinstance(value, bool):
            return value
        if option_type is str and isinstance(value, str) and len(value) <= longest:
            value.encode()  # A UnicodeEncodeError is a ValueError.
            return value
        if option_type in (int, float) and type(value) in (int, float) and abs(value) < 1e300:
            return int(value) if option_type is int and value == int(value) else float(value)
    raise ValueError


def _accepted(question: Question, values: Mapping[str, Any], empty: Collection[str]) -> set[str]:
    """Return the fields that the parameters object takes: with the others, or alone under some choice of a
    list.

    What does not apply now, the variance beside *Worst case*, say, is kept as it stands in its field.
    """
    assert question.parameters is not None
    field_names = {f.name for f in dataclasses.fields(question.parameters) if f.init}
    stand_ins = {name: value for name, value in links.STAND_INS.items() if name in field_names}
    texts = {name: to_text(value) for name, value in values.items()}
    silent = {name: str(value) for name, value in stand_ins.items() if name not in texts}
    _, bad, _ = read_good_fields(question.parameters, silent | texts, stand_ins)
    choices: list[dict[str, Any]] = [{}]
    choices += [
        {name: option} for name, declared in question.fields.items() for option in (declared.options or ())
    ]
    # Nothing is compared with what is empty, nor with an end of a range that nobody entered.
    base = {name: value if name == "epsilon" else math.nan for name, value in stand_ins.items()}
    base |= dict.fromkeys(empty, math.nan)
    return {
        name
        for name, value in values.items()
        if (question.fields[name].options is None or value in question.fields[name].options)  # type: ignore[operator]
        and (
            name not in bad
            or any(_is_accepted(question, base | choice | {name: value}) for choice in choices)
        )
    }


def _is_accepted(question: Question, values: Mapping[str, Any]) -> bool:
    assert question.parameters is not None
    try:
        question.parameters(**values)
    except InvalidInput as refused:
        return all(problem.message.endswith("got nan") for problem in refused.problems)
    except (TypeError, ValueError):  # A field that may not be empty is.
        return False
    return True


# --- Opening ----------------------------------------------------------------------------------------------------------


def apply(content: Content) -> None:
    """Make a file's content the session's. To be called before any widget that it sets, from a callback say."""
    state = st.session_state
    session.end_tour()  # Else its end would put the settings from before over those of the file.
    # First: whatever stops this, nothing that was spent is forgotten.
    for name, ledgers in content.accounts.items():
        question = catalogue.named(name)
        key = keys.LEDGERS if question is None else question.key(question.own_account)
        ledgers_now: dict[str, Ledger] = state.get(key, {})
        state[key] = ledgers_now | {
            digest: ledgers_now.get(digest, Ledger()).merge(ledger) for digest, ledger in ledgers.items()
        }
    pinned = content.pins
    if (loaded := content.loaded) is not None:
        set_aside = dict(loaded.set_aside)
        # As it was: pins of private data do not stand beside a release of them.
        if loaded.made_of is not None:
            set_aside[keys.PINS], pinned = pins.parted(pinned)
        session.use(loaded.dataset, loaded.origin, loaded.made_of, set_aside)
    known_files.keep(content.files)
    last_releases.apply(content.releases)
    own_tables.apply(content.own_tables)
    pins.keep(pins.joined(pins.all_pins(), pinned))
    for key, value in content.settings.items():
        state[key] = value
    state[keys.AWAITED] = {
        key: value
        for key, value in content.settings.items()
        if content.loaded is None or ((page := catalogue.named(key.partition(".")[0])) and page.own_data)
    }
    if content.epsilon is not None:
        state[keys.EPSILON] = content.epsilon
        state[keys.EPSILON_PAGE] = None  # The widgets of the page where ε stood last take it up, too.
