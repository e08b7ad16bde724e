"""JSON of dataclasses: written by their fields, and read by the types of these, strictly, as from an unknown author."""

from __future__ import annotations

import enum
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from types import NoneType
from typing import Any

import numpy as np

from dpcore.common.strict_json import JsonValue, Reader, encode_array
from dpcore.common.text_fields import list_field_types

Members = dict[str, Reader]


@dataclass(frozen=True)
class Codec:
    """The form of objects in a file: a dataclass is an object with its fields, an enum its value, a tuple a list.

    Attributes:
        max_text: Largest number of characters of a text; a longer one is cut when it is written.
        max_entries: Largest number of entries of a list, likewise.
        integers: Smallest and largest integer.
        readers: Readers that replace the one that a type implies, by type, or by dataclass and field name.
        writers: Functions that return the JSON of a type.
    """

    max_text: int
    max_entries: int
    integers: tuple[int, int] = (0, 10**15)
    readers: Mapping[Any, Reader] = field(default_factory=dict)
    writers: Mapping[type, Callable[[Any], Any]] = field(default_factory=dict)

    def write(self, value: Any) -> Any:
        """Return the JSON of a value."""
        if type(value) in self.writers:
            return self.writers[type(value)](value)
        if is_dataclass(value):
            return self.write_fields(value)
        if isinstance(value, enum.Enum):
            return value.value
        if isinstance(value, np.ndarray):
            return encode_array(value)
        if isinstance(value, str):
            return cut(value, self.max_text)
        if isinstance(value, tuple):
            return [self.write(entry) for entry in value[: self.max_entries]]
        return value

    def write_fields(self, value: Any) -> dict[str, Any]:
        """Return the JSON of each field by name, without those that are empty and may be missing."""
        members = {f.name: (getattr(value, f.name), f.default) for f in fields(value) if f.init}
        return {
            name: self.write(entry)
            for name, (entry, default) in members.items()
            if not (isinstance(entry, str | tuple | None) and not entry and entry == default)
        }

    def read(self, node: JsonValue, value_type: Any) -> Any:
        """Return a value of a type; None, with a problem, if the JSON holds no such value."""
        arguments = typing.get_args(value_type)
        if node.value is None and NoneType in arguments:
            return None
        if value_type in self.readers:
            return self.readers[value_type](node)
        if isinstance(value_type, types.UnionType):
            return self.read(node, arguments[0])
        if typing.get_origin(value_type) is tuple:
            return self._read_tuple(node, arguments)
        if is_dataclass(value_type):
            members = node.read_members(*self.list_readers(value_type))
            return None if members is None else node.build(value_type, **members)  # type: ignore[arg-type]
        if issubclass(value_type, enum.Enum):
            return node.choose({member.value: member for member in value_type})
        if value_type is bool:
            return node.get_boolean()
        if value_type is str:
            return node.get_text(self.max_text)
        return node.get_number() if value_type is float else node.get_integer(*self.integers)

    def _read_tuple(self, node: JsonValue, entry_types: tuple[Any, ...]) -> tuple[Any, ...] | None:
        if entry_types[-1] is Ellipsis:
            entries = node.get_entries(self.max_entries) or []
            return tuple(self.read(entry, entry_types[0]) for entry in entries)
        entries = node.get_entries(len(entry_types)) or []
        if len(entries) != len(entry_types):
            node.must_be(f"a list of {len(entry_types)} entries")
            return None
        return tuple(map(self.read, entries, entry_types))

    def list_readers(self, class_: Any) -> tuple[Members, Members]:
        """Return the readers of the fields of a dataclass by name: of required fields, and of the others."""
        readers: tuple[Members, Members] = ({}, {})
        for f in fields(class_):
            if f.init:
                has_default = f.default is not MISSING or f.default_factory is not MISSING
                reader = self.readers.get((class_, f.name), self.reader(list_field_types(class_)[f.name]))
                readers[has_default][f.name] = reader
        return readers

    def reader(self, value_type: Any) -> Reader:
        """Return a reader of values of a type."""
        return lambda node: self.read(node, value_type)


def cut(text: str, max_length: int) -> str:
    """Cut a text to a length for a file, with lone surrogates replaced."""
    return text[:max_length].encode(errors="replace").decode()
