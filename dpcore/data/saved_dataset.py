"""A data set as JSON and back: the histogram first, then further facets as far as there is room."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from dpcore.common.errors import InvalidInput
from dpcore.common.privacy import Disclosure, Neighbours, ReleaseFacts, is_mechanism
from dpcore.common.strict_json import Part, array
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


_MEMBERS = (
    *("name", "source", "disclosure", "privacy_unit", "contribution"),
    *("notes", "digest", "histogram", "facets"),
)


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
    """The data set, smaller facets first, as far as there is room.

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
    """Whether what reads the file will take its codes and names."""
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
    """A text as a file holds it: so long at most, and of whole characters."""
    return text[:most].encode(errors="replace").decode()


def _written(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return array(value)
    return list(value) if isinstance(value, tuple) else value


def facts_to_json(facts: ReleaseFacts) -> dict[str, Any]:
    """What a release guarantees; all digits of epsilon and delta."""
    return {
        "epsilon": facts.epsilon,
        "delta": facts.delta,
        "neighbours": facts.neighbours.short,
        "mechanism": facts.mechanism,
    }


FACTS = ("epsilon", "delta", "neighbours", "mechanism")


def facts_of(found: dict[str, Part], part: Part) -> ReleaseFacts | None:
    """What a release guarantees, from the members of ``part``; None, with the problems noted, where it is none."""
    epsilon, delta = found["epsilon"].number(), found["delta"].number()
    neighbours = found["neighbours"].one_of({relation.short: relation for relation in Neighbours})
    mechanism = found["mechanism"].text(80)
    if mechanism is not None and not is_mechanism(mechanism):
        found["mechanism"].refuse("a mechanism is said in letters, digits, blanks and hyphens")
        return None
    if epsilon is None or delta is None or neighbours is None or mechanism is None:
        return None
    try:
        return ReleaseFacts(epsilon, delta, neighbours, mechanism)
    except InvalidInput as refused:
        _pass_on(refused, part)
        return None


def from_json(part: Part) -> Dataset | None:
    """The data set that `to_json` wrote; None, with all problems noted, where it is none.

    Every facet is checked as one that comes from an upload, and all of it by the digest that it had when it was saved.
    """
    found = part.members(_MEMBERS, ["release", "layout"])
    if found is None:
        return None
    before = len(part.problems.found)
    unit, notes = (found[name].entries(NOTES) for name in ("privacy_unit", "notes"))
    given: dict[str, Any] = {
        "name": found["name"].text(NAME),
        "source": found["source"].text(SENTENCE),
        "disclosure": found["disclosure"].one_of({kind.value: kind for kind in Disclosure}),
        "privacy_unit": tuple(entry.text(NAME) for entry in unit or ()),
        "contribution": found["contribution"].one_of({kind.value: kind for kind in Contribution}),
        "notes": tuple(entry.text(SENTENCE + NAME) for entry in notes or ()),
        "histogram": _histogram(found["histogram"]),
    }
    if "release" in found and (members := found["release"].members(FACTS)) is not None:
        given["release"] = facts_of(members, found["release"])
    if "layout" in found:
        given["layout"] = _layout(found["layout"])
    digest, facets = found["digest"].text(64), found["facets"].members((), tuple(_FACETS))
    for name, facet in (facets or {}).items():
        given[name] = _facet(name, facet)
    if len(part.problems.found) > before:
        return None
    try:
        dataset = Dataset(**given)
    except InvalidInput as refused:
        _pass_on(refused, part)
        return None
    if dataset.digest != digest:
        found["digest"].refuse("these data are not those that were saved: the file was changed or damaged")
        return None
    return dataset


def _histogram(part: Part) -> ContributionHistogram | None:
    members = part.members(["sizes", "users"])
    if members is None:
        return None
    sizes, users = (members[name].entries(MOST_SIZES) for name in ("sizes", "users"))
    if sizes is None or users is None:
        return None
    if not all(type(entry.value) is int for entry in (*sizes, *users)):
        part.refuse("sizes and users must be whole numbers")
        return None
    try:
        return ContributionHistogram([e.value for e in sizes], [e.value for e in users])  # type: ignore[arg-type]
    except InvalidInput as refused:
        _pass_on(refused, part)
        return None


def _layout(part: Part) -> TableLayout | None:
    members = part.members([f.name for f in fields(TableLayout)])
    if members is None:
        return None
    files = [_file_layout(entry) for entry in members["files"].entries(MOST_NAMES) or ()]
    numbers: list[Any] = [entry.entries(2) or [] for entry in members["numbers"].entries(MOST_NAMES) or ()]
    one_user = members["missing_is_a_user"].value
    if not files or any(len(entry) != 2 for entry in numbers) or type(one_user) is not bool:
        part.refuse("there must be a file, a mark with each column of numbers, and a yes or no")
        return None
    marks = {mark: mark for mark in ("", ".", ",")}
    read: Any = tuple((column.text(NAME), mark.one_of(marks)) for column, mark in numbers)
    filled: Any = tuple(column.text(NAME) for column in members["filled"].entries(MOST_NAMES) or ())
    return TableLayout(tuple(file for file in files if file is not None), read, one_user, filled)


def _file_layout(part: Part) -> FileLayout | None:
    members = part.members([f.name for f in fields(FileLayout) if f.name != "names"], ["names"])
    if members is None:
        return None
    given: dict[str, Any] = {
        name: its.text(NAME) for name, its in members.items() if name not in ("kind", "skip", "names")
    }
    if "names" in members:  # Files of earlier versions have none.
        given["names"] = tuple(name.text(NAME) for name in members["names"].entries(MOST_NAMES) or ())
    given["kind"] = members["kind"].one_of({kind.value: kind for kind in FileKind})
    given["skip"] = members["skip"].whole(0, 10**9)
    return FileLayout(**given)


def _facet(name: str, part: Part) -> Any | None:
    kind = _FACETS[name]
    types = {f.name: str(f.type) for f in fields(kind)}
    members = part.members((), tuple(types))
    if members is None:
        return None
    before = len(part.problems.found)
    given = {attribute: _read(attribute, types[attribute], entry) for attribute, entry in members.items()}
    for attribute in _CODES:
        codes = given.get(attribute)
        # Code counts users up to the largest code: one beyond all reason would take all memory.
        if codes is not None and codes.size and not 0 <= int(codes.min()) <= int(codes.max()) < MAX_VALUES:
            members[attribute].refuse(f"codes must be whole numbers from 0 to {MAX_VALUES - 1:,}")
    if len(part.problems.found) > before:
        return None
    try:
        return kind(**given)
    except InvalidInput as refused:
        _pass_on(refused, part)
    except TypeError:
        part.refuse(f"of {', '.join(types)}, one is missing that is needed")
    return None


def _read(attribute: str, its_type: str, part: Part) -> Any:
    kind = its_type.split(" | ")[0]
    if kind == "IntArray":
        array = part.array("int64")
        if array is not None and array.size and not 0 <= int(array.min()) <= int(array.max()) <= MAX_SIZE:
            part.refuse(f"these must be whole numbers from 0 to {MAX_SIZE:,}")
        return array
    if kind == "FloatArray":
        return part.array("float64", dimensions=2 if attribute == "features" else 1)
    if kind == "int":
        return part.whole(1, MAX_VALUES) if attribute == "num_tasks" else part.whole(0, 10**15)
    if kind == "str":
        return part.text(NAME)
    if kind == "tuple[str, ...]":
        return tuple(entry.text(NAME) for entry in part.entries(MOST_NAMES) or ())
    ends = tuple(entry.number() for entry in part.entries(2) or ())
    if len(ends) != 2:
        part.refuse("a range has two ends")
    return ends


def _pass_on(refused: InvalidInput, part: Part) -> None:
    for problem in refused.problems:
        part.refuse(problem.what)
