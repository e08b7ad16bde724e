"""JSON: files that a person takes away, a strict reader of files from unknown authors, and a codec of dataclasses.

The reader reads every value by its type and collects every problem. A sentence that names the location refuses a name
that stands twice, a number beyond float64, NaN, an integer with thousands of digits, half a character, and every
value that nobody reads.
"""

from __future__ import annotations

import base64
import binascii
import enum
import json
import math
import types
import typing
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from types import MappingProxyType, NoneType
from typing import Any, NoReturn, TypeVar

import numpy as np
import numpy.typing as npt

from dpcore.common.certificate import Certificate
from dpcore.common.checks import InvalidInput, Problems, quote, refuse
from dpcore.common.text_fields import list_field_types
from dpcore.common.version import VERSION

T = TypeVar("T")

MAX_PROBLEMS = 20
"""Problems that are said of one file; a file with more is not mended by a longer list."""
ARRAY_TYPE_BY_NAME = {"int64": np.dtype("<i8"), "float64": np.dtype("<f8")}
"""How arrays are written: little-endian, eight bytes an entry, as base64."""


def load_json(content: bytes, max_bytes: int, file_label: str) -> JsonValue:
    """Parse the bytes of a whole JSON file and return its outermost value.

    Args:
        content: The file.
        max_bytes: A longer one is refused unread.
        file_label: The file as a sentence calls it, such as ``the session file``.

    Raises:
        InvalidInput: It is no JSON, or JSON that says one thing in two ways.
    """
    if len(content) > max_bytes:
        size_text, max_size_text = (f"{num_bytes / 1e6:,.0f} MB" for num_bytes in (len(content), max_bytes))
        raise refuse(f"{file_label} has {size_text}; at most {max_size_text} are read")
    problems = Problems()

    def build_object(name_value_pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """Build the members of a JSON object, and add a problem if a name occurs twice."""
        members_by_name = dict(name_value_pairs)
        if len(members_by_name) < len(name_value_pairs) and len(problems.entries) < MAX_PROBLEMS:
            known_names: set[str] = set()
            repeated_name = next(
                member_name
                for member_name, _ in name_value_pairs
                if member_name in known_names or known_names.add(member_name)  # type: ignore[func-returns-value]
            )
            problems.add(f"{quote(repeated_name)} stands twice in one object of {file_label}")
        return members_by_name

    try:
        json_text = content.decode("utf-8-sig")
        outermost_value = json.loads(
            json_text, object_pairs_hook=build_object, parse_constant=_refuse_constant
        )
    except UnicodeDecodeError:
        problems.add(f"{file_label} is not text in UTF-8")
    except RecursionError:
        problems.add(f"{file_label} is nested too deeply")
    except json.JSONDecodeError as error:
        problems.add(f"{file_label} is not JSON", f"line {error.lineno:,}, column {error.colno:,}")
    except _ConstantError as error:
        problems.add(f"{file_label} holds {error}, which JSON does not know")
    except ValueError:  # Python reads no whole number of more than 4,300 digits.
        problems.add(f"{file_label} holds a number of thousands of digits")
    problems.raise_if_any()
    return JsonValue(outermost_value, "", problems)


class _ConstantError(Exception):
    """NaN or an infinity."""


def _refuse_constant(constant_name: str) -> NoReturn:
    """Raise `_ConstantError` for NaN or an infinity."""
    raise _ConstantError(constant_name)


@dataclass(frozen=True)
class JsonValue:
    """One value of a file. Each reader returns None, and adds a problem, if the value is of another type.

    Attributes:
        value: As parsed.
        location: Its way from the top, names and numbers from 1, set off by commas; empty for the top itself.
        problems: What was wrong so far, anywhere in the file.
    """

    value: Any
    location: str
    problems: Problems

    def refuse(self, message: str) -> None:
        """Add a problem at this value's location, unless the file has `MAX_PROBLEMS` already."""
        if len(self.problems.entries) < MAX_PROBLEMS:
            self.problems.add(message, self.location)

    def get_members(
        self, needed_names: Collection[str], optional_names: Collection[str] = ()
    ) -> dict[str, JsonValue] | None:
        """Return the members of an object by name; None, with problems, if one is missing or unknown."""
        # Room for unknown names, so that they can be told, and for no more than are told.
        members_by_name = self.get_named(len(needed_names) + len(optional_names) + MAX_PROBLEMS)
        if members_by_name is None:
            return None
        num_problems = len(self.problems.entries)
        for member_name in members_by_name:
            if member_name not in needed_names and member_name not in optional_names:
                self.refuse(f"{quote(member_name)} is not known here")
        for member_name in needed_names:
            if member_name not in members_by_name:
                self.refuse(f"{member_name} is missing")
        return members_by_name if len(self.problems.entries) == num_problems else None

    def read_members(
        self, needed: Mapping[str, Reader], optional: Mapping[str, Reader] = MappingProxyType({})
    ) -> dict[str, Any] | None:
        """Read the members of an object by their readers; return the results by name, None if anything is refused."""
        num_problems, members = len(self.problems.entries), self.get_members(needed, optional)
        if members is None:
            return None
        present_readers = {name: reader for name, reader in {**needed, **optional}.items() if name in members}
        results_by_name = {name: reader(members[name]) for name, reader in present_readers.items()}
        # Where no more problems are noted, none shows.
        return results_by_name if len(self.problems.entries) == num_problems < MAX_PROBLEMS else None

    def build(self, build_object: Callable[..., T], *arguments: Any, **keyword_arguments: Any) -> T | None:
        """Call ``build_object`` with values that were read; None, with its problems added here, if it refuses them."""
        try:
            return build_object(*arguments, **keyword_arguments)
        except InvalidInput as error:
            for problem in error.problems:
                self.refuse(problem.message)
        return None

    def get_named(self, max_members: int) -> dict[str, JsonValue] | None:
        """Return the members of an object by name; None, with a problem, if it is no object or has too many."""
        if not isinstance(self.value, dict):
            self.add_type_problem("an object")
            return None
        if len(self.value) > max_members:
            self.add_type_problem(f"an object of at most {max_members:,} members")
            return None
        return {
            member_name: self._get_inner(member_value, quote(member_name).strip("'"))
            for member_name, member_value in self.value.items()
        }

    def get_entries(self, max_entries: int) -> list[JsonValue] | None:
        """Return the entries of a list; None, with a problem, if it is no list or has too many."""
        if not isinstance(self.value, list):
            self.add_type_problem("a list")
            return None
        if len(self.value) > max_entries:
            self.add_type_problem(f"a list of at most {max_entries:,} entries")
            return None
        return [
            self._get_inner(entry_value, f"entry {entry_index + 1:,}")
            for entry_index, entry_value in enumerate(self.value)
        ]

    def get_text(self, max_characters: int) -> str | None:
        """Return the text; None, with a problem, if it is none, too long, or has half of a surrogate pair."""
        if not isinstance(self.value, str) or len(self.value) > max_characters:
            self.add_type_problem(f"a text of at most {max_characters:,} characters")
            return None
        try:
            self.value.encode()
        except UnicodeEncodeError:  # Half of a pair, as JSON can write it and nothing can show it.
            self.add_type_problem("a text of whole characters")
            return None
        return self.value

    def get_number(self) -> float | None:
        """Return the number as a float; None, with a problem, if it is no finite number."""
        # Not by `isinstance`, for which True and False are whole numbers.
        if type(self.value) not in (int, float):
            self.add_type_problem("a number")
            return None
        try:
            float_value = float(self.value)
        except OverflowError:
            float_value = math.inf
        if not math.isfinite(float_value):
            self.add_type_problem("a finite number")
            return None
        return float_value

    def get_integer(self, lowest: int, highest: int) -> int | None:
        """Return the integer; None, with a problem, if it is none in [low, high]."""
        if type(self.value) is not int or not lowest <= self.value <= highest:
            self.add_type_problem(f"a whole number from {lowest:,} to {highest:,}")
            return None
        return self.value

    def get_boolean(self) -> bool | None:
        """Return True or False; None, with a problem, for any other value."""
        if not isinstance(self.value, bool):
            self.add_type_problem("true or false")
            return None
        return self.value

    def get_numbers(
        self, max_entries: int, limits: tuple[float, float], is_integer: bool = False
    ) -> npt.NDArray[Any] | None:
        """Return a list of 1 to ``max_entries`` numbers within limits as an array; None, with a problem, otherwise.

        Its type is int64 if all must be integers, else float64.
        """
        list_entries, (lowest, highest) = self.value, limits
        if not isinstance(list_entries, list) or not 0 < len(list_entries) <= max_entries:
            self.add_type_problem(f"a list of 1 to {max_entries:,} entries")
            return None
        types = (int,) if is_integer else (int, float)
        are_valid_entries = [type(number) in types and lowest <= number <= highest for number in list_entries]
        if all(are_valid_entries):
            return np.array(list_entries, dtype=np.int64 if is_integer else np.float64)
        bad_index = are_valid_entries.index(False)
        bad_entry = self._get_inner(list_entries[bad_index], f"entry {bad_index + 1:,}")
        requirement_text = "a whole number" if is_integer else "a number"
        bad_entry.add_type_problem(f"{requirement_text} from {lowest:,} to {highest:,}")
        return None

    def choose(self, values_by_text: Mapping[str, T]) -> T | None:
        """Return the object that the text stands for; None, with a problem, for any other value."""
        if not isinstance(self.value, str) or self.value not in values_by_text:
            self.add_type_problem(f"one of {', '.join(values_by_text)}")
            return None
        return values_by_text[self.value]

    def get_array(self, type_name: str, num_dimensions: int = 1) -> npt.NDArray[Any] | None:
        """Return an array that `encode_array` wrote, read-only; None, with a problem, for any other value.

        Args:
            type_name: One of `ARRAY_TYPE_BY_NAME`.
            num_dimensions: How many it must have.
        """
        members_by_name = self.get_members(["shape", type_name])
        if members_by_name is None:
            return None
        length_nodes = members_by_name["shape"].get_entries(num_dimensions)
        base64_text = members_by_name[type_name].value
        shape = [length_node.get_integer(0, 10**10) for length_node in length_nodes or ()]
        if None in shape or len(shape) != num_dimensions:
            self.add_type_problem(f"an array with {num_dimensions} sides")
            return None
        if not isinstance(base64_text, str):
            members_by_name[type_name].add_type_problem("a text in base64")
            return None
        try:
            content = base64.b64decode(base64_text, validate=True)
        except (binascii.Error, ValueError):
            members_by_name[type_name].add_type_problem("a text in base64")
            return None
        if len(content) != math.prod(side or 0 for side in shape) * ARRAY_TYPE_BY_NAME[type_name].itemsize:
            self.add_type_problem("an array as long as its shape says")
            return None
        decoded_array = np.frombuffer(content, dtype=ARRAY_TYPE_BY_NAME[type_name])
        return decoded_array.reshape([side or 0 for side in shape])

    def _get_inner(self, inner_value: Any, inner_name: str) -> JsonValue:
        """Return a value inside this one; its location ends with ``inner_name``."""
        return JsonValue(
            inner_value, f"{self.location}, {inner_name}" if self.location else inner_name, self.problems
        )

    def add_type_problem(self, requirement: str) -> None:
        """Add the problem that the value is not what ``requirement`` names, such as "a number"; say what it is."""
        self.refuse(f"this must be {requirement}; got {_describe(self.value)}")


Reader = Callable[[JsonValue], Any]


def read_text(max_characters: int) -> Reader:
    """Return a reader of a text of at most so many characters."""
    return lambda json_value: json_value.get_text(max_characters)


def read_texts(max_texts: int, max_characters: int) -> Reader:
    """Return a reader of a list of at most so many texts, which gives a tuple.

    An empty one, with a problem, if it fails.
    """
    return lambda json_value: tuple(
        entry.get_text(max_characters) for entry in json_value.get_entries(max_texts) or ()
    )


def read_optional(value_reader: Reader) -> Reader:
    """Return a reader of a value that may also be null."""
    return lambda json_value: None if json_value.value is None else value_reader(json_value)


def _describe(value: Any) -> str:
    """Return the size of an object or a list, or another value itself, as a phrase."""
    if isinstance(value, dict):
        return f"an object of {len(value):,} members"
    if isinstance(value, list):
        return f"a list of {len(value):,} entries"
    return quote(value)


def encode_array(array: npt.NDArray[Any]) -> dict[str, Any]:
    """Encode an array of numbers for JSON without loss: its shape, and its entries in base64.

    Args:
        array: Of whole numbers that fit into int64, or of floats.
    """
    type_name = "float64" if array.dtype.kind == "f" else "int64"
    array_bytes = np.ascontiguousarray(array, dtype=ARRAY_TYPE_BY_NAME[type_name]).tobytes()
    return {"shape": list(array.shape), type_name: base64.b64encode(array_bytes).decode("ascii")}


MADE_WITH = f"Sweet Spot {VERSION}"
CHOICE_SCHEMA = "sweetspot/choice/1"


def write_document(schema: str, **members_by_section: object) -> str:
    """Return sections as the text of an indented JSON file, after their schema and the program's name."""
    document_members = {"schema": schema, "made_with": MADE_WITH, **members_by_section}
    return json.dumps(document_members, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def finite_or_none(value: float) -> float | None:
    """Return the value, or None if it is not finite, as JSON has no such numbers."""
    return value if math.isfinite(value) else None


def convert_certificate(certificate: Certificate | None) -> dict[str, object]:
    """Return the JSON entries of a certificate by key; the proof is "none" without one."""
    if certificate is None:
        return {"proved_relative_gap": None, "proof": "none"}
    relative_gap = finite_or_none(certificate.relative_gap)
    approximation_fields = {"approximate": certificate.approximation} if certificate.approximation else {}
    return {"proved_relative_gap": relative_gap, "proof": certificate.argument, **approximation_fields}


ReadersByName = dict[str, Reader]


@dataclass(frozen=True)
class Codec:
    """The form of objects in a file: a dataclass is an object with its fields, an enum its value, a tuple a list.

    Attributes:
        max_text: Largest number of characters of a text; a longer one is cut when it is written.
        max_entries: Largest number of entries of a list, likewise.
        integer_range: Smallest and largest integer.
        readers_by_type: Readers that replace the one that a type implies, by type, or by dataclass and field name.
        writers_by_type: Functions that return the JSON of a type.
    """

    max_text: int
    max_entries: int
    integer_range: tuple[int, int] = (0, 10**15)
    readers_by_type: Mapping[Any, Reader] = field(default_factory=dict)
    writers_by_type: Mapping[type, Callable[[Any], Any]] = field(default_factory=dict)

    def write(self, object_value: Any) -> Any:
        """Convert a value to JSON; texts and lists that are too long are cut."""
        if type(object_value) in self.writers_by_type:
            return self.writers_by_type[type(object_value)](object_value)
        if is_dataclass(object_value):
            return self.write_fields(object_value)
        if isinstance(object_value, enum.Enum):
            return object_value.value
        if isinstance(object_value, np.ndarray):
            return encode_array(object_value)
        if isinstance(object_value, str):
            return cut(object_value, self.max_text)
        if isinstance(object_value, tuple):
            return [self.write(tuple_entry) for tuple_entry in object_value[: self.max_entries]]
        return object_value

    def write_fields(self, dataclass_object: Any) -> dict[str, Any]:
        """Convert a dataclass object's fields to JSON, by name; empty fields with that default are left out."""
        members_by_field: dict[str, Any] = {}
        for f in fields(dataclass_object):
            field_value = getattr(dataclass_object, f.name)
            is_empty = isinstance(field_value, str | tuple | None) and not field_value
            if f.init and not (is_empty and field_value == f.default):
                members_by_field[f.name] = self.write(field_value)
        return members_by_field

    def read(self, node: JsonValue, value_type: Any) -> Any:
        """Read a value of a type; None, with a problem, if the JSON holds no such value."""
        type_arguments = typing.get_args(value_type)
        if node.value is None and NoneType in type_arguments:
            return None
        if value_type in self.readers_by_type:
            return self.readers_by_type[value_type](node)
        if isinstance(value_type, types.UnionType):
            return self.read(node, type_arguments[0])
        if typing.get_origin(value_type) is tuple:
            return self._read_tuple(node, type_arguments)
        if is_dataclass(value_type):
            members = node.read_members(*self.list_readers(value_type))
            return None if members is None else node.build(value_type, **members)  # type: ignore[arg-type]
        if issubclass(value_type, enum.Enum):
            return node.choose({enum_option.value: enum_option for enum_option in value_type})
        if value_type is bool:
            return node.get_boolean()
        if value_type is str:
            return node.get_text(self.max_text)
        return node.get_number() if value_type is float else node.get_integer(*self.integer_range)

    def _read_tuple(self, node: JsonValue, entry_types: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """Read a tuple whose entries have these types; None, with a problem, if the list has another length."""
        if entry_types[-1] is Ellipsis:
            entry_nodes = node.get_entries(self.max_entries) or []
            return tuple(self.read(entry_node, entry_types[0]) for entry_node in entry_nodes)
        entry_nodes = node.get_entries(len(entry_types)) or []
        if len(entry_nodes) != len(entry_types):
            node.add_type_problem(f"a list of {len(entry_types)} entries")
            return None
        return tuple(map(self.read, entry_nodes, entry_types))

    def list_readers(self, dataclass_type: Any) -> tuple[ReadersByName, ReadersByName]:
        """Return (readers of required fields, readers of other fields) of a dataclass, each by field name."""
        required_and_optional: tuple[ReadersByName, ReadersByName] = ({}, {})
        for f in fields(dataclass_type):
            if f.init:
                has_default = f.default is not MISSING or f.default_factory is not MISSING
                type_reader = self.make_reader(list_field_types(dataclass_type)[f.name])
                reader = self.readers_by_type.get((dataclass_type, f.name), type_reader)
                required_and_optional[has_default][f.name] = reader
        return required_and_optional

    def make_reader(self, value_type: Any) -> Reader:
        """Return a reader of values of a type."""
        return lambda node: self.read(node, value_type)


def cut(long_text: str, max_length: int) -> str:
    """Cut a text to a length, with lone surrogates replaced."""
    return long_text[:max_length].encode(errors="replace").decode()
