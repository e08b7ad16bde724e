"""What a question declares once: its place in the app, its fields, and what each field may have come from.

Widgets, session keys, links, resets, reports and the sentences on empty fields follow from it.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from dpcore.common.parameters import EPSILON, Parameters, Place, declared_fields
from dpcore.common.parameters import Field as Field
from dpcore.common.parameters import FieldOrigin as FieldOrigin
from dpcore.common.text_fields import list_field_types
from dpcore.dataset import Dataset

T = TypeVar("T")
From = FieldOrigin


class Facet(enum.Enum):
    """What of the data in use a question answers from."""

    ROWS = "how many rows each user has"
    VALUES = "a value in each row"
    GROUPS = "a group, product or task in each row"


public = functools.partial(Field, origin=FieldOrigin.PUBLIC)
"""A field that is never read off data."""
DELTA = public(
    "δ",
    "At most this much probability that ε does not hold. Well below 1 / (number of users).",
    name="δ",
    width=110,
)


@dataclass(frozen=True)
class Question:
    """One page.

    Attributes:
        name: Of its folders in the core and in the pages.
        title: In the sidebar.
        icon: Material icon.
        url_path: In the address; empty for the first page.
        group: Heading in the sidebar; empty for none.
        sentence: What the page answers, one sentence; Start shows it, and the sidebar.
        lead: The sentence under the page's title, Markdown.
        step: What is released, in a word or two, on a page that chooses a bound, where the strip stands; else empty.
        heading: The page's title where it is not the one in the sidebar.
        release: What a person says they want to release when this page is the answer; empty for none.
        answers_from: What of the data in use it answers from; *Your data* leads to it where the data have that.
        own_data: Whether the page brings data of its own and leaves the session's alone.
        own_file: What the session holds, by name, while a file of the page's own is in use; empty for none.
        parameters: Class of the page's parameters object, None where there is none.
        fields: The fields of that object but the shared epsilon; declared there if it is one of `Parameters`.
        also: What else the page keeps in the session, by name: tabs, runs, work beside the page.
        propose: What its fields hold for new data, by name, given the data and what they hold now.
        proposed: Fields that ``propose`` may set: before anybody has seen the page, it holds these and no others.
        draws: Whether its folder has ``on_card.py``, which draws the bounds of other questions' cards privately.
        plans: Whether its folder has ``on_card.py``, which takes the releases of other cards into a plan.
        range_on: Title of the page on which the range of a value is entered, given the parameters; empty where none
            is needed. None where the page has the fields itself.
        formerly: Fields that links and session files of before name and that are gone: what each is called now, or, of
            one that came to nothing, what was meant of fields that came later, by name.
    """

    name: str
    title: str
    icon: str
    url_path: str
    group: str
    sentence: str
    lead: str = ""
    step: str = ""
    heading: str = ""
    release: str = ""
    answers_from: tuple[Facet, ...] = ()
    own_data: bool = False
    own_file: str = ""
    parameters: type[Any] | None = None
    fields: Mapping[str, Field] = field(default_factory=dict)
    also: Mapping[str, FieldOrigin] = field(default_factory=dict)
    propose: Callable[[Dataset, Mapping[str, Any]], Mapping[str, Any]] | None = None
    proposed: tuple[str, ...] = ()
    draws: bool = False
    plans: bool = False
    range_on: Callable[[Any], str] | None = None
    formerly: Mapping[str, str | Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.parameters is not None:
            object.__setattr__(self, "fields", self._complete_fields(self.parameters))
        if set(self.fields) & set(self.also):
            raise ValueError(f"{self.name} declares twice: {sorted(set(self.fields) & set(self.also))}")

    def _complete_fields(self, kind: type[Any]) -> Mapping[str, Field]:
        """Return the fields with what follows from the parameters class."""
        declared = declared_fields(kind) if issubclass(kind, Parameters) else self.fields
        defaults = {f.name: f.default for f in fields(kind) if f.init and f.name != "epsilon"}
        if set(defaults) != set(declared):
            raise ValueError(f"{self.name} must declare exactly the fields of its parameters object")
        hints = list_field_types(kind)
        return {
            name: declared[name].complete(hints[name], defaults[name], self.own_data) for name in declared
        }

    def placed(self, *places: Place) -> list[str]:
        """Return the names of the fields that stand in these places."""
        return [name for name, field in self.fields.items() if field.place in places]

    @functools.cached_property
    def own(self) -> tuple[str, ...]:
        """The fields for a bound of the user's own, which stand under the answer."""
        return tuple(self.placed(Place.OWN))

    @functools.cached_property
    def own_account(self) -> str:
        """Return what the session holds, by name, of what was released of the page's own data; empty for
        none.

        A ledger per set of data, which session files carry: it is called ``spent`` on every page with data of its own.
        """
        return "spent" if self.own_data and "spent" in self.also else ""

    @functools.cached_property
    def account_key(self) -> str:
        """Return the session key of `own_account`; empty for none."""
        return self.key(self.own_account) if self.own_account else ""

    @functools.cached_property
    def file_key(self) -> str:
        """Return the session key of the page's own file, ``own_file``; empty for none."""
        return self.key(self.own_file) if self.own_file else ""

    @functools.cached_property
    def path(self) -> str:
        """Path of the page's file, absolute. Every run of the app names all pages: looked for once."""
        file = find_spec(f"pages.{self.name}.page")  # It looks for the file and runs nothing.
        if file is None or file.origin is None:
            raise FileNotFoundError(f"the folder of {self.name} has no page.py")
        return file.origin

    def as_now(self, held: Mapping[str, T], made: Callable[[Any], T]) -> dict[str, T]:
        """Return what a link or a session file of before holds, by today's names; what it says by them itself
        stays.

        Args:
            held: By the names of then. A field that came to nothing stays among them: that it is not followed is said.
            made: A value as such a link or file holds it.
        """
        found = dict(held)
        for name, now in self.formerly.items():
            if name not in held:
                continue
            if isinstance(now, str):
                found.setdefault(now, found.pop(name))
            else:
                found = {later: made(value) for later, value in now.items()} | found
        return found

    def came_later(self, held: Iterable[str]) -> dict[str, Any]:
        """Return what fields meant that a session file of before does not have, as they came later: their
        defaults.

        Args:
            held: Names of the fields that the file has. A page that was seen has all of its time; of one that nobody
                saw, only what data propose is there, and that meant nothing yet.
        """
        assert self.parameters is not None
        names = set(held)
        seen = {name for name in names & set(self.fields) if not self.fields[name].renewed} - set(
            self.proposed
        )
        if not seen:
            return {}
        usual = {f.name: f.default for f in fields(self.parameters)}
        return {name: usual[name] for name in self.fields if name not in names and usual[name] is not MISSING}

    @functools.cached_property
    def key(self) -> Callable[[str], str]:
        """Return the session key of a field, or of what else the page keeps, by its name; KeyError where it
        declares none.

        Made once: a run of a page asks some fifty times.
        """
        return _Keys({name: f"{self.name}.{name}" for name in (*self.fields, *self.also)}).__getitem__

    @functools.cached_property
    def widgets(self) -> dict[str, str]:
        """Session key by field of the parameters object, the shared epsilon among them."""
        shared = {"epsilon": "epsilon"} if self.parameters is not None else {}
        return shared | {name: self.key(name) for name in self.fields}

    @functools.cached_property
    def declared(self) -> dict[str, Field]:
        """Return the declaration of every field of the parameters object, the shared epsilon among them."""
        return {"epsilon": EPSILON, **self.fields}

    @functools.cached_property
    def called(self) -> dict[str, str]:
        """Return how sentences name the fields, those that may stay empty among them."""
        return {name: self.declared[name].subject for name in self.widgets}

    def field(self, name: str) -> Field:
        """Return the declaration of a field."""
        return self.declared[name]

    def formula(self, room: str = "formula") -> str:
        """Return how the page computes, in Markdown with LaTeX and its sources: a file of its folder."""
        declared = find_spec(f"pages.{self.name}.question")
        assert declared is not None
        assert declared.origin is not None
        return _text(Path(declared.origin).with_name(f"{room}.md"))

    def asked(self, *names: str) -> dict[str, str]:
        """Return what fields are called in a report, by name: of those named, or of all; the shared epsilon
        first.
        """
        chosen = names or (*self.fields,)
        return {
            name: self.field(name).report_label or self.field(name).label for name in ("epsilon", *chosen)
        }

    def comes_from(self, name: str) -> FieldOrigin:
        """Return where what stands under this name may have come from.

        A name with more behind it, set off by an underscore, goes by its beginning: a widget of each round, say. What
        is declared nowhere is treated as read off the data.
        """
        if name in self.fields:
            return self.fields[name].origin
        declared = [
            known for known in self.also if name == known or name.startswith(known.removesuffix("_") + "_")
        ]
        return self.also[max(declared, key=len)] if declared else FieldOrigin.DATA

    def first(self, name: str) -> Any:
        """Return what a field begins with."""
        return self.declared[name].initial

    def forgotten(self, name: str) -> Any:
        """Return what a field holds after its content was set aside: what it begins with, and nothing if it
        is about values.

        A default range of values would look like a choice that somebody made.
        """
        return None if self.field(name).origin is FieldOrigin.VALUES else self.first(name)


class _Keys(dict[str, str]):
    """Session keys by name."""

    def __missing__(self, name: str) -> str:
        raise KeyError(f"this question declares no {name}")


@functools.cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")
