"""Reading JSON that anybody may have written: every value is asked for by kind, and every problem is collected.

Nothing is taken for what it is not: a name that stands twice, a number beyond float64, NaN, a whole number with
thousands of digits, half a character, and whatever nobody asks for are all refused, in sentences that name the place.
"""

from __future__ import annotations

import base64
import binascii
import enum
import json
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NoReturn, TypeVar

import numpy as np
import numpy.typing as npt

from dpcore.common.checks import Problems, shown
from dpcore.common.errors import InvalidInput, refusal

T = TypeVar("T")

MOST_PROBLEMS = 20
"""Problems that are said of one file; a file with more is not mended by a longer list."""
KINDS = {"int64": np.dtype("<i8"), "float64": np.dtype("<f8")}
"""How arrays are written: little-endian, eight bytes an entry, as base64."""


def load(content: bytes, most_bytes: int, what: str) -> Part:
    """Parse a whole file.

    Args:
        content: The file.
        most_bytes: A longer one is refused unread.
        what: The file as a sentence calls it, such as ``the session file``.

    Raises:
        InvalidInput: It is no JSON, or JSON that says one thing in two ways.
    """
    if len(content) > most_bytes:
        size, most = (f"{number / 1e6:,.0f} MB" for number in (len(content), most_bytes))
        raise refusal(f"{what} has {size}; at most {most} are read")
    problems = Problems()

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        entries = dict(pairs)
        if len(entries) < len(pairs) and len(problems.found) < MOST_PROBLEMS:
            seen: set[str] = set()
            twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
            problems.add(f"{shown(twice)} stands twice in one object of {what}")
        return entries

    try:
        value = json.loads(
            content.decode("utf-8-sig"), object_pairs_hook=members, parse_constant=_no_constant
        )
    except UnicodeDecodeError:
        problems.add(f"{what} is not text in UTF-8")
    except RecursionError:
        problems.add(f"{what} is nested too deeply")
    except json.JSONDecodeError as error:
        problems.add(f"{what} is not JSON", f"line {error.lineno:,}, column {error.colno:,}")
    except _ConstantError as error:
        problems.add(f"{what} holds {error}, which JSON does not know")
    except ValueError:  # Python reads no whole number of more than 4,300 digits.
        problems.add(f"{what} holds a number of thousands of digits")
    problems.raise_if_any()
    return Part(value, "", problems)


class _ConstantError(Exception):
    """NaN or an infinity."""


def _no_constant(name: str) -> NoReturn:
    raise _ConstantError(name)


@dataclass(frozen=True)
class Part:
    """One value of a file. Each question about it returns None, and notes a problem, where it is something else.

    Attributes:
        value: As parsed.
        place: Its way from the top, names and numbers from 1, set off by commas; empty for the top itself.
        problems: What was wrong so far, anywhere in the file.
    """

    value: Any
    place: str
    problems: Problems

    def refuse(self, what: str) -> None:
        """Note a problem with this value."""
        if len(self.problems.found) < MOST_PROBLEMS:
            self.problems.add(what, self.place)

    def members(self, needed: Collection[str], optional: Collection[str] = ()) -> dict[str, Part] | None:
        """The members of an object with these names, all of ``needed`` among them and no others."""
        # Room for unknown names, so that they can be told, and for no more than are told.
        members = self.named(len(needed) + len(optional) + MOST_PROBLEMS)
        if members is None:
            return None
        before = len(self.problems.found)
        for name in members:
            if name not in needed and name not in optional:
                self.refuse(f"{shown(name)} is not known here")
        for name in needed:
            if name not in members:
                self.refuse(f"{name} is missing")
        return members if len(self.problems.found) == before else None

    def each(
        self, needed: Mapping[str, Reader], optional: Mapping[str, Reader] = MappingProxyType({})
    ) -> dict[str, Any] | None:
        """What the readers find at the members with their names, as `members`; None where anything is refused."""
        before, found = len(self.problems.found), self.members(needed, optional)
        if found is None:
            return None
        given = {name: read(found[name]) for name, read in {**needed, **optional}.items() if name in found}
        # Where no more problems are noted, none shows.
        return given if len(self.problems.found) == before < MOST_PROBLEMS else None

    def made(self, make: Callable[..., T], *values: Any, **named: Any) -> T | None:
        """What is made of values that were read; None, with what it refuses noted here, where they do not fit."""
        try:
            return make(*values, **named)
        except InvalidInput as refused:
            for problem in refused.problems:
                self.refuse(problem.what)
        return None

    def named(self, most: int) -> dict[str, Part] | None:
        """The members of an object with any names, at most so many."""
        if not isinstance(self.value, dict):
            self.must_be("an object")
            return None
        if len(self.value) > most:
            self.must_be(f"an object of at most {most:,} members")
            return None
        return {name: self._inner(value, shown(name).strip("'")) for name, value in self.value.items()}

    def entries(self, most: int) -> list[Part] | None:
        """The entries of a list, at most so many."""
        if not isinstance(self.value, list):
            self.must_be("a list")
            return None
        if len(self.value) > most:
            self.must_be(f"a list of at most {most:,} entries")
            return None
        return [self._inner(value, f"entry {at + 1:,}") for at, value in enumerate(self.value)]

    def text(self, most: int) -> str | None:
        """A text of at most so many characters, all of them whole."""
        if not isinstance(self.value, str) or len(self.value) > most:
            self.must_be(f"a text of at most {most:,} characters")
            return None
        try:
            self.value.encode()
        except UnicodeEncodeError:  # Half of a pair, as JSON can write it and nothing can show it.
            self.must_be("a text of whole characters")
            return None
        return self.value

    def number(self) -> float | None:
        """A finite number."""
        # Not by `isinstance`, for which True and False are whole numbers.
        if type(self.value) not in (int, float):
            self.must_be("a number")
            return None
        try:
            number = float(self.value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            self.must_be("a finite number")
            return None
        return number

    def whole(self, low: int, high: int) -> int | None:
        """A whole number in [low, high]."""
        if type(self.value) is not int or not low <= self.value <= high:
            self.must_be(f"a whole number from {low:,} to {high:,}")
            return None
        return self.value

    def one_of(self, names: Mapping[str, T]) -> T | None:
        """What one of these texts stands for."""
        if not isinstance(self.value, str) or self.value not in names:
            self.must_be(f"one of {', '.join(names)}")
            return None
        return names[self.value]

    def array(self, kind: str, dimensions: int = 1) -> npt.NDArray[Any] | None:
        """An array as `array` writes it, read-only.

        Args:
            kind: One of `KINDS`.
            dimensions: How many it must have.
        """
        members = self.members(["shape", kind])
        if members is None:
            return None
        sides = members["shape"].entries(dimensions)
        text = members[kind].value
        shape = [side.whole(0, 10**10) for side in sides] if sides is not None else []
        if None in shape or len(shape) != dimensions:
            self.must_be(f"an array with {dimensions} sides")
            return None
        if not isinstance(text, str):
            members[kind].must_be("a text in base64")
            return None
        try:
            content = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            members[kind].must_be("a text in base64")
            return None
        if len(content) != math.prod(side or 0 for side in shape) * KINDS[kind].itemsize:
            self.must_be("an array as long as its shape says")
            return None
        return np.frombuffer(content, dtype=KINDS[kind]).reshape([side or 0 for side in shape])

    def _inner(self, value: Any, name: str) -> Part:
        return Part(value, f"{self.place}, {name}" if self.place else name, self.problems)

    def must_be(self, what: str) -> None:
        """Note that it must be something else."""
        self.refuse(f"this must be {what}; got {_kind(self.value)}")


Reader = Callable[[Part], Any]


def text(most: int) -> Reader:
    """Reads a text of at most so many characters."""
    return lambda part: part.text(most)


def texts(most: int, longest: int) -> Reader:
    """Reads at most so many texts."""
    return lambda part: tuple(entry.text(longest) for entry in part.entries(most) or ())


def whole(low: int, high: int) -> Reader:
    """Reads a whole number."""
    return lambda part: part.whole(low, high)


def kind(of: type[enum.Enum]) -> Reader:
    """Reads the value of one of these."""
    names = {one.value: one for one in of}
    return lambda part: part.one_of(names)


def maybe(read: Reader) -> Reader:
    """Reads what may be null."""
    return lambda part: None if part.value is None else read(part)


def _kind(value: Any) -> str:
    if isinstance(value, dict):
        return f"an object of {len(value):,} members"
    if isinstance(value, list):
        return f"a list of {len(value):,} entries"
    return shown(value)


def array(values: npt.NDArray[Any]) -> dict[str, Any]:
    """An array as JSON holds it, every bit of it kept: its shape, and its entries as base64 under their kind.

    Args:
        values: Of whole numbers that fit into int64, or of floats.
    """
    kind = "float64" if values.dtype.kind == "f" else "int64"
    content = np.ascontiguousarray(values, dtype=KINDS[kind]).tobytes()
    return {"shape": list(values.shape), kind: base64.b64encode(content).decode("ascii")}
