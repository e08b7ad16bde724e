"""A data set as JSON and back: the histogram first, then further facets as far as there is room."""

from __future__ import annotations

import functools
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
from dpcore.data.layout import FileKind, FileLayout, TableLayout
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
"""Bytes of the arrays that one file holds: two million rows with values, say. In the file they take a third more."""
MOST_SIZES = 1_000_000
"""Different numbers of rows per user that a file holds."""
NAME, SENTENCE, NOTES = 500, 4_000, 100
"""Longest name and sentence, and most notes."""
MOST_NAMES = 10_000
"""Most names of features, and of files."""

_FACETS: dict[str, type[Any]] = {
    "values": Values, "totals": Totals, "pairs": Pairs,
    "tasks": TaskSizes, "pair_sizes": PairSizes, "table": LabelledRows,
}  # fmt: skip
"""The facets of `Dataset`; how their attributes are read follows from the types."""
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
    """A data set as JSON.

    Attributes:
        content: What the file holds; None where not even the histogram has room.
        left_out: What it does not hold, a sentence each.
        room: Bytes that are left for another one.
    """

    content: dict[str, Any] | None
    left_out: tuple[str, ...]
    room: int


def to_json(dataset: Dataset, room: int = ROOM) -> SavedDataset:
    """Return the data set, smaller facets first, as far as there is room.

    Args:
        dataset: The data.
        room: Bytes that its arrays may take.
    """
    histogram = dataset.histogram
    room -= 16 * histogram.sizes.size
    if room < 0 or histogram.sizes.size > MOST_SIZES:
        return SavedDataset(
            None, (f"{dataset.name}: its users have too many different numbers of rows for a file",), room
        )
    kept: dict[str, Any] = {}
    left_out = []
    held = [(name, getattr(dataset, name)) for name in _FACETS if getattr(dataset, name) is not None]
    for name, facet in sorted(held, key=lambda entry: _bytes(entry[1])):
        size = _bytes(facet)
        if size <= room and _fits(facet):
            kept[name] = facet
            room -= size
        else:
            left_out.append(f"{dataset.name}: {_WORDS[name]} ({size / 1e6:,.1f} MB)")
    notes = (*dataset.notes, *(f"Left out of the session file: {words}." for words in left_out))
    facets: dict[str, Any] = {name: kept.get(name) for name in _FACETS}
    # Names of tasks stay out: they are what rows say, not what is counted of them.
    held_in_file = replace(dataset, notes=notes, task_names=(), **facets)
    return SavedDataset(_content(held_in_file), tuple(left_out), room)


def _bytes(facet: Any) -> int:
    return sum(value.nbytes for f in fields(facet) if isinstance(value := getattr(facet, f.name), np.ndarray))


def _fits(facet: Any) -> bool:
    """Return True if what reads the file will take its codes and names."""
    held = [getattr(facet, f.name) for f in fields(facet)]
    names = [name for value in held for name in (value if isinstance(value, tuple) else [value])]
    return (
        all(int(getattr(facet, name).max()) < MAX_VALUES for name in _CODES if hasattr(facet, name))
        and getattr(facet, "num_tasks", 0) <= MAX_VALUES
        and all(cut(name, NAME) == name for name in names if isinstance(name, str))
        and len(names) <= MOST_NAMES
    )


def _content(dataset: Dataset) -> dict[str, Any]:
    facets = {
        name: {
            f.name: _written(value) for f in fields(facet) if (value := getattr(facet, f.name)) is not None
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


def cut(text: str, most: int) -> str:
    """Return a text as a file holds it: so long at most, and of whole characters."""
    return text[:most].encode(errors="replace").decode()


def _written(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return encode_array(value)
    return list(value) if isinstance(value, tuple) else value


def facts_to_json(facts: ReleaseFacts) -> dict[str, Any]:
    """Return what a release guarantees; all digits of epsilon and delta."""
    return {
        "epsilon": facts.epsilon,
        "delta": facts.delta,
        "neighbours": facts.neighbours.short,
        "mechanism": facts.mechanism,
    }


def _mechanism(part: JsonValue) -> str | None:
    mechanism = part.get_text(80)
    if mechanism is not None and not is_mechanism(mechanism):
        part.refuse("a mechanism is said in letters, digits, blanks and hyphens")
    return mechanism


_RELATIONS = {relation.short: relation for relation in Neighbours}
FACTS: Mapping[str, Reader] = {
    "epsilon": JsonValue.get_number,
    "delta": JsonValue.get_number,
    "neighbours": lambda part: part.choose(_RELATIONS),
    "mechanism": _mechanism,
}
"""How what a release guarantees is read."""


def facts_of(part: JsonValue, given: Mapping[str, Any] | None) -> ReleaseFacts | None:
    """What a release guarantees, of what was read of ``part``; None, with the problems noted, where it is none."""
    return None if given is None else part.build(ReleaseFacts, *(given[name] for name in FACTS))


def read_facts(part: JsonValue) -> ReleaseFacts | None:
    """Return what a release guarantees, of a part that holds nothing else."""
    return facts_of(part, part.read_members(FACTS))


def from_json(part: JsonValue) -> Dataset | None:
    """Return the data set that `to_json` wrote; None, with all problems noted, where it is none.

    Every facet is checked as one that comes from an upload, and all of it by the digest that it had when it was saved.
    """
    given = part.read_members(
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
    if given is None:
        return None
    digest, facets = given.pop("digest"), given.pop("facets")
    dataset = part.build(Dataset, **given, **facets)
    if dataset is not None and dataset.digest != digest:
        part.refuse("these data are not those that were saved: the file was changed or damaged")
        return None
    return dataset


def _histogram(part: JsonValue) -> ContributionHistogram | None:
    members = part.get_members(["sizes", "users"])
    if members is None:
        return None
    sizes, users = (members[name].get_entries(MOST_SIZES) for name in ("sizes", "users"))
    if sizes is None or users is None:
        return None
    if not all(type(entry.value) is int for entry in (*sizes, *users)):
        part.refuse("sizes and users must be whole numbers")
        return None
    return part.build(ContributionHistogram, [e.value for e in sizes], [e.value for e in users])


def _layout(part: JsonValue) -> TableLayout | None:
    given = part.read_members(
        {
            "files": lambda files: tuple(map(_file_layout, files.get_entries(MOST_NAMES) or ())),
            "numbers": lambda columns: tuple(map(_column, columns.get_entries(MOST_NAMES) or ())),
            "missing_is_a_user": lambda answer: answer.value,
            "filled": read_texts(MOST_NAMES, NAME),
        }
    )
    if given is None:
        return None
    if not given["files"] or None in given["numbers"] or type(given["missing_is_a_user"]) is not bool:
        part.refuse("there must be a file, a mark with each column of numbers, and a yes or no")
        return None
    return TableLayout(**given)


def _column(part: JsonValue) -> tuple[str | None, str | None] | None:
    """Return a column of numbers and its decimal mark."""
    pair = part.get_entries(2) or ()
    return (
        (pair[0].get_text(NAME), pair[1].choose({mark: mark for mark in ("", ".", ",")}))
        if len(pair) == 2
        else None
    )


def _file_layout(part: JsonValue) -> FileLayout | None:
    readers = {f.name: read_text(NAME) for f in fields(FileLayout) if f.name != "names"}
    readers |= {"kind": read_enum(FileKind), "skip": read_integer(0, 10**9)}
    given = part.read_members(
        readers, {"names": read_texts(MOST_NAMES, NAME)}
    )  # Files of earlier versions have none.
    return None if given is None else FileLayout(**given)


def _facets(part: JsonValue) -> dict[str, Any]:
    return {name: _facet(name, facet) for name, facet in (part.get_members((), tuple(_FACETS)) or {}).items()}


def _facet(name: str, part: JsonValue) -> Any | None:
    of = _FACETS[name]
    types = {f.name: str(f.type) for f in fields(of)}
    given = part.read_members(
        {}, {name: functools.partial(_read, name, its_type) for name, its_type in types.items()}
    )
    if given is None:
        return None
    try:
        return part.build(of, **given)
    except TypeError:
        part.refuse(f"of {', '.join(types)}, one is missing that is needed")
    return None


def _read(attribute: str, its_type: str, part: JsonValue) -> Any:
    its_kind = its_type.split(" | ")[0]
    if its_kind == "IntArray":
        array = part.get_array("int64")
        # Code counts users up to the largest code: one beyond all reason would take all memory.
        most, what = (MAX_VALUES - 1, "codes") if attribute in _CODES else (MAX_SIZE, "these")
        if array is not None and array.size and not 0 <= int(array.min()) <= int(array.max()) <= most:
            part.refuse(f"{what} must be whole numbers from 0 to {most:,}")
        return array
    if its_kind == "FloatArray":
        return part.get_array("float64", dimensions=2 if attribute == "features" else 1)
    if its_kind == "int":
        return part.get_integer(1, MAX_VALUES) if attribute == "num_tasks" else part.get_integer(0, 10**15)
    if its_kind == "str":
        return part.get_text(NAME)
    if its_kind == "tuple[str, ...]":
        return tuple(entry.get_text(NAME) for entry in part.get_entries(MOST_NAMES) or ())
    ends = tuple(entry.get_number() for entry in part.get_entries(2) or ())
    if len(ends) != 2:
        part.refuse("a range has two ends")
    return ends
