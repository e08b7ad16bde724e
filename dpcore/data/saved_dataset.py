"""A data set as JSON and back, and the meaning of its columns."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from dpcore.common.privacy import Disclosure, Neighbours, ReleaseFacts, is_mechanism
from dpcore.common.strict_json import (
    JsonValue,
    Reader,
    encode_array,
    read_enum,
    read_integer,
    read_text,
    read_texts,
)
from dpcore.contributions import MAX_SIZE, ContributionHistogram
from dpcore.data.design_matrix import Design
from dpcore.data.tables import FileKind, FileLayout, TableLayout
from dpcore.dataset import (
    MAX_VALUES,
    Contribution,
    Dataset,
    LabelledRows,
    Pairs,
    PairSizes,
    TaskSizes,
    Totals,
    Values,
)

ROOM = 32_000_000
"""Largest number of bytes of the arrays of one file, about two million rows with values; encoded, a third more."""
MOST_SIZES = 1_000_000
"""Largest number of distinct sizes in a file."""
NAME, SENTENCE, NOTES = 500, 4_000, 100
"""Longest name and sentence, and largest number of notes."""
MOST_NAMES = 10_000
"""Largest number of names of features, and of files."""

_FACETS: dict[str, type[Any]] = {
    "values": Values, "totals": Totals, "pairs": Pairs,
    "tasks": TaskSizes, "pair_sizes": PairSizes, "table": LabelledRows,
}  # fmt: skip
"""The facets of `Dataset`; the types of their attributes decide how these are read."""
_CODES = ("user_codes", "task_codes")
_WORDS = {
    "values": "the values of each row",
    "totals": "the totals per user",
    "pairs": "who contributes to which group",
    "tasks": "the users of each group",
    "pair_sizes": "how users spread over groups",
    "table": "features and labels",
}


@dataclass(frozen=True)
class SavedDataset:
    """A dataset as JSON.

    Attributes:
        content: Content of the file; None if not even the histogram has room.
        left_out: Facets that were left out, a sentence each.
        room: Bytes that remain for another dataset.
    """

    content: dict[str, Any] | None
    left_out: tuple[str, ...]
    room: int


def to_json(dataset: Dataset, room: int = ROOM) -> SavedDataset:
    """Write the dataset as JSON, smaller facets first, while there is room.

    Args:
        dataset: The data.
        room: Largest number of bytes of its arrays.
    """
    histogram = dataset.histogram
    room -= 16 * histogram.sizes.size
    if room < 0 or histogram.sizes.size > MOST_SIZES:
        return SavedDataset(
            None, (f"{dataset.name}: its users have too many different numbers of rows for a file",), room
        )
    saved_facets: dict[str, Any] = {}
    left_out = []
    facets_by_name = [
        (name, getattr(dataset, name)) for name in _FACETS if getattr(dataset, name) is not None
    ]
    for name, facet in sorted(facets_by_name, key=lambda entry: _bytes(entry[1])):
        size = _bytes(facet)
        if size <= room and _fits(facet):
            saved_facets[name] = facet
            room -= size
        else:
            left_out.append(f"{dataset.name}: {_WORDS[name]} ({size / 1e6:,.1f} MB)")
    notes = (*dataset.notes, *(f"Left out of the session file: {words}." for words in left_out))
    facets: dict[str, Any] = {name: saved_facets.get(name) for name in _FACETS}
    # Names of tasks are left out, as they are contents of rows, not counts.
    saved = replace(dataset, notes=notes, task_names=(), **facets)
    return SavedDataset(_content(saved), tuple(left_out), room)


def _bytes(facet: Any) -> int:
    return sum(value.nbytes for f in fields(facet) if isinstance(value := getattr(facet, f.name), np.ndarray))


def _fits(facet: Any) -> bool:
    """Return True if the file's codes and names can be read back."""
    attributes = [getattr(facet, f.name) for f in fields(facet)]
    names = [name for value in attributes for name in (value if isinstance(value, tuple) else [value])]
    return (
        all(int(getattr(facet, name).max()) < MAX_VALUES for name in _CODES if hasattr(facet, name))
        and getattr(facet, "num_tasks", 0) <= MAX_VALUES
        and all(cut(name, NAME) == name for name in names if isinstance(name, str))
        and len(names) <= MOST_NAMES
    )


def _content(dataset: Dataset) -> dict[str, Any]:
    facets = {
        name: {
            f.name: _to_json_value(value)
            for f in fields(facet)
            if (value := getattr(facet, f.name)) is not None
        }
        for name in _FACETS
        if (facet := getattr(dataset, name)) is not None
    }
    release = {} if dataset.release is None else {"release": facts_to_json(dataset.release)}
    return {
        "name": cut(dataset.name, NAME),
        "source": cut(dataset.source, SENTENCE),
        "disclosure": dataset.disclosure.value,
        **release,
        **({} if dataset.layout is None else {"layout": _layout_to_json(dataset.layout)}),
        "privacy_unit": [cut(column, NAME) for column in dataset.privacy_unit[:NOTES]],
        "contribution": dataset.contribution.value,
        "notes": [cut(note, SENTENCE) for note in dataset.notes[:NOTES]],
        "digest": dataset.digest,
        "histogram": {"sizes": dataset.histogram.sizes.tolist(), "users": dataset.histogram.users.tolist()},
        "facets": facets,
    }


def _layout_to_json(layout: TableLayout) -> dict[str, Any]:
    return {
        "files": [
            {**vars(file), "name": cut(file.name, NAME), "kind": file.kind.value, "names": list(file.names)}
            for file in layout.files
        ],
        "numbers": [list(entry) for entry in layout.numbers],
        "missing_is_a_user": layout.missing_is_a_user,
        "filled": list(layout.filled),
    }


def cut(text: str, max_length: int) -> str:
    """Cut a text to a length for a file, with lone surrogates replaced."""
    return text[:max_length].encode(errors="replace").decode()


def _to_json_value(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return encode_array(value)
    return list(value) if isinstance(value, tuple) else value


def facts_to_json(facts: ReleaseFacts) -> dict[str, Any]:
    """Return the facts of a release as JSON, with all digits of epsilon and delta."""
    return {
        "epsilon": facts.epsilon,
        "delta": facts.delta,
        "neighbours": facts.neighbours.short,
        "mechanism": facts.mechanism,
    }


def _mechanism(value: JsonValue) -> str | None:
    mechanism = value.get_text(80)
    if mechanism is not None and not is_mechanism(mechanism):
        value.refuse("a mechanism is said in letters, digits, blanks and hyphens")
    return mechanism


_RELATIONS = {relation.short: relation for relation in Neighbours}
FACTS: Mapping[str, Reader] = {
    "epsilon": JsonValue.get_number,
    "delta": JsonValue.get_number,
    "neighbours": lambda part: part.choose(_RELATIONS),
    "mechanism": _mechanism,
}
"""Readers of the facts of a release."""


def build_facts(value: JsonValue, members: Mapping[str, Any] | None) -> ReleaseFacts | None:
    """Build the facts of a release from members that were read; None if there are problems, which are recorded."""
    return None if members is None else value.build(ReleaseFacts, *(members[name] for name in FACTS))


def read_facts(value: JsonValue) -> ReleaseFacts | None:
    """Read the facts of a release from a JSON object that contains nothing else."""
    return build_facts(value, value.read_members(FACTS))


def from_json(value: JsonValue) -> Dataset | None:
    """Read the dataset that `to_json` wrote; None if there are problems, which are recorded.

    Every facet is checked like one from an upload, and the dataset by the digest that it had when it was saved.
    """
    members = value.read_members(
        {
            "name": read_text(NAME),
            "source": read_text(SENTENCE),
            "disclosure": read_enum(Disclosure),
            "privacy_unit": read_texts(NOTES, NAME),
            "contribution": read_enum(Contribution),
            "notes": read_texts(NOTES, SENTENCE + NAME),
            "digest": read_text(64),
            "histogram": _histogram,
            "facets": _facets,
        },
        {"release": read_facts, "layout": _layout},
    )
    if members is None:
        return None
    digest, facets = members.pop("digest"), members.pop("facets")
    dataset = value.build(Dataset, **members, **facets)
    if dataset is not None and dataset.digest != digest:
        value.refuse("these data are not those that were saved: the file was changed or damaged")
        return None
    return dataset


def _histogram(value: JsonValue) -> ContributionHistogram | None:
    members = value.get_members(["sizes", "users"])
    if members is None:
        return None
    sizes, users = (members[name].get_entries(MOST_SIZES) for name in ("sizes", "users"))
    if sizes is None or users is None:
        return None
    if not all(type(entry.value) is int for entry in (*sizes, *users)):
        value.refuse("sizes and users must be whole numbers")
        return None
    return value.build(ContributionHistogram, [e.value for e in sizes], [e.value for e in users])


def _layout(value: JsonValue) -> TableLayout | None:
    members = value.read_members(
        {
            "files": lambda files: tuple(map(_file_layout, files.get_entries(MOST_NAMES) or ())),
            "numbers": lambda columns: tuple(map(_column, columns.get_entries(MOST_NAMES) or ())),
            "missing_is_a_user": lambda answer: answer.value,
            "filled": read_texts(MOST_NAMES, NAME),
        }
    )
    if members is None:
        return None
    if not members["files"] or None in members["numbers"] or type(members["missing_is_a_user"]) is not bool:
        value.refuse("there must be a file, a mark with each column of numbers, and a yes or no")
        return None
    return TableLayout(**members)


def _column(value: JsonValue) -> tuple[str | None, str | None] | None:
    """Read a column of numbers and its decimal mark."""
    pair = value.get_entries(2) or ()
    return (
        (pair[0].get_text(NAME), pair[1].choose({mark: mark for mark in ("", ".", ",")}))
        if len(pair) == 2
        else None
    )


def _file_layout(value: JsonValue) -> FileLayout | None:
    readers = {f.name: read_text(NAME) for f in fields(FileLayout) if f.name != "names"}
    readers |= {"kind": read_enum(FileKind), "skip": read_integer(0, 10**9)}
    members = value.read_members(
        readers, {"names": read_texts(MOST_NAMES, NAME)}
    )  # Files of earlier versions have none.
    return None if members is None else FileLayout(**members)


def _facets(value: JsonValue) -> dict[str, Any]:
    return {
        name: _facet(name, facet) for name, facet in (value.get_members((), tuple(_FACETS)) or {}).items()
    }


def _facet(name: str, value: JsonValue) -> Any | None:
    facet_type = _FACETS[name]
    types = {f.name: str(f.type) for f in fields(facet_type)}
    members = value.read_members(
        {}, {name: functools.partial(_read_attribute, name, its_type) for name, its_type in types.items()}
    )
    if members is None:
        return None
    try:
        return value.build(facet_type, **members)
    except TypeError:
        value.refuse(f"of {', '.join(types)}, one is missing that is needed")
    return None


def _read_attribute(attribute: str, its_type: str, value: JsonValue) -> Any:
    its_kind = its_type.split(" | ")[0]
    if its_kind == "IntArray":
        array = value.get_array("int64")
        # Arrays have an entry for every code up to the largest, so a huge code would take all memory.
        largest, subject = (MAX_VALUES - 1, "codes") if attribute in _CODES else (MAX_SIZE, "these")
        if array is not None and array.size and not 0 <= int(array.min()) <= int(array.max()) <= largest:
            value.refuse(f"{subject} must be whole numbers from 0 to {largest:,}")
        return array
    if its_kind == "FloatArray":
        return value.get_array("float64", dimensions=2 if attribute == "features" else 1)
    if its_kind == "int":
        return value.get_integer(1, MAX_VALUES) if attribute == "num_tasks" else value.get_integer(0, 10**15)
    if its_kind == "str":
        return value.get_text(NAME)
    if its_kind == "tuple[str, ...]":
        return tuple(entry.get_text(NAME) for entry in value.get_entries(MOST_NAMES) or ())
    ends = tuple(entry.get_number() for entry in value.get_entries(2) or ())
    if len(ends) != 2:
        value.refuse("a range has two ends")
    return ends


def design_to_json(design: Design | None) -> dict[str, Any] | None:
    """Return a design as JSON for a session file, or None if there is none."""
    if design is None:
        return None
    features = [
        [feature.column, feature.encoding.value, feature.reference, *feature.levels]
        for feature in design.features
    ]
    # Left out if empty, so that seals of earlier files stay valid.
    optional_fields = {"positive": design.positive} if design.positive else {}
    return {
        "label": design.label,
        "user": design.user,
        "features": features,
        "intercept": design.intercept,
        **optional_fields,
    }


def compute_seal(account: str, digest: str, design: Mapping[str, Any] | None) -> str:
    """Compute the seal of account, data and design, which detects an account of other data."""
    return hashlib.sha256(json.dumps([account, digest, design]).encode()).hexdigest()


def table_to_json(
    content: Mapping[str, Any], account: str, design: Design | None, settings: Mapping[str, float]
) -> dict[str, Any]:
    """Return a table that belongs to one page as JSON.

    Args:
        content: The data, from `dpcore.data.saved_dataset.to_json`.
        account: Privacy account of the rows.
        design: Roles of its columns.
        settings: Entries of the user about its columns, by session key.
    """
    saved_design = design_to_json(design)
    return {
        "content": content,
        "account": account,
        "design": saved_design,
        "entered": dict(settings),
        "seal": compute_seal(account, content["digest"], saved_design),
    }
