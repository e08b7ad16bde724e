"""Objects as JSON and back by the types of their fields."""

import enum
from dataclasses import dataclass, replace
from typing import Any

import pytest

from dpcore.common.checks import Problems, refuse
from dpcore.common.strict_json import Codec, JsonValue


class Colour(enum.Enum):
    RED = "red"


@dataclass(frozen=True)
class Inner:
    size: int
    note: str = "none"

    def __post_init__(self) -> None:
        if self.size == 13:
            raise refuse("the size must not be 13")


@dataclass(frozen=True)
class Outer:
    name: str
    colour: Colour
    pair: tuple[str, float]
    inner: tuple[Inner, ...] = ()
    share: float | None = None
    is_public: bool = False


CODEC = Codec(max_text=5, max_entries=2, integer_range=(0, 20))
FULL = Outer("a", Colour.RED, ("b", 0.1), (Inner(1), Inner(2, "")), 0.5, True)
JSON = {
    "name": "a",
    "colour": "red",
    "pair": ["b", 0.1],
    "inner": [{"size": 1, "note": "none"}, {"size": 2, "note": ""}],
    "share": 0.5,
    "is_public": True,
}


def read_outer(content: Any) -> tuple[Any, list[str]]:
    node = JsonValue(content, "", Problems())
    return CODEC.read(node, Outer), [problem.sentence for problem in node.problems.entries]


def test_an_object_comes_back_and_empty_defaults_are_left_out() -> None:
    assert CODEC.write(FULL) == JSON
    assert read_outer(JSON) == (FULL, [])
    short = Outer("a", Colour.RED, ("b", 0.1))
    assert CODEC.write(short) == {"name": "a", "colour": "red", "pair": ["b", 0.1], "is_public": False}
    assert read_outer(CODEC.write(short)) == (short, [])
    # What would be refused when it is read is cut when it is written.
    assert read_outer(CODEC.write(replace(FULL, name="abcdefg", inner=3 * (Inner(1),))))[1] == []


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"name": "abcdef"}, "Name: this must be a text of at most 5 characters; got 'abcdef'."),
        ({"name": None}, "Name: this must be a text of at most 5 characters; got None."),
        ({"colour": "blue"}, "Colour: this must be one of red; got 'blue'."),
        ({"pair": ["b"]}, "Pair: this must be a list of 2 entries; got a list of 1 entries."),
        (
            {"inner": [{"size": 21}]},
            "Inner, entry 1, size: this must be a whole number from 0 to 20; got 21.",
        ),
        ({"inner": [{"size": 13}]}, "Inner, entry 1: the size must not be 13."),
        ({"inner": [{}]}, "Inner, entry 1: size is missing."),
        (
            {"inner": 3 * [{"size": 1}]},
            "Inner: this must be a list of at most 2 entries; got a list of 3 entries.",
        ),
        ({"share": "x"}, "Share: this must be a number; got 'x'."),
        ({"is_public": 1}, "Is_public: this must be true or false; got 1."),
        ({"more": 1}, "'more' is not known here."),
    ],
)
def test_what_is_of_another_type_is_refused_with_its_location(change: dict[str, Any], sentence: str) -> None:
    assert read_outer(JSON | change) == (None, [sentence])
