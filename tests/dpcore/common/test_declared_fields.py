"""Fields that are declared on a parameters class: what follows from a declaration, and what is refused."""

from dataclasses import dataclass

import pytest

from dpcore.common.checks import InvalidInput, Problems
from dpcore.common.parameters import (
    LINE,
    TAB,
    Option,
    Parameters,
    check_shared,
    describe,
    list_fields_beside_data,
    of_data,
    public,
)
from dpcore.common.text_fields import from_fields, to_fields


class Shape(Option):
    """Shapes."""

    ROUND = "round", "Like a ball"
    OWN = "own", "Your own"


@dataclass(frozen=True)
class Order(Parameters):
    """An order of things."""

    count: int = public.number(3, "Things", (1, 9), place=LINE)
    """How many things
    are ordered."""
    shape: Shape = of_data.choice(Shape.ROUND, "Shape")
    edges: int | None = of_data.number(
        None, "Number of edges", (3, 6), initial=4, only_with=("shape", (Shape.OWN,)), width=10
    )
    size: float = of_data.number(1.0, "Size s", (0.5, 2.0), name="size s")
    note: str = of_data.text("", "Note", max_length=5, place=TAB)


def refused(**fields: object) -> list[str]:
    with pytest.raises(InvalidInput) as caught:
        Order(**{"epsilon": 1.0, **fields})
    return [problem.sentence for problem in caught.value.problems]


def test_all_problems_come_at_once_by_the_names_of_the_fields():
    assert refused(epsilon=0, count=2.5, size=float("nan"), note="x" * 9) == [
        "Epsilon must lie between 0.000001 and 1,000; got 0.",
        "The things must be a whole number between 1 and 9; got 2.5.",
        "Size s must lie between 0.5 and 2; got nan.",
    ]
    assert refused(shape="round") == ["Shape must be of the kind Shape."]


def test_a_field_that_goes_with_a_choice():
    assert refused(edges=4) == ['The number of edges can be set only with "Your own" as the shape.']
    assert refused(shape=Shape.OWN) == ["The number of edges is missing. Enter a number."]
    assert refused(shape=Shape.OWN, edges=7) == [
        "The number of edges must be a whole number between 3 and 6; got 7."
    ]
    assert Order(1.0, shape=Shape.OWN, edges=5).edges == 5
    assert Order(1.0).unused_names == ("edges",)
    assert Order(1.0, shape=Shape.OWN, edges=5).unused_names == ()


def test_links_and_keys_of_answers():
    order = Order(0.5, count=2, shape=Shape.OWN, edges=5, note="blue")
    assert to_fields(order) == {
        "epsilon": "0.5",
        "count": "2",
        "shape": "own",
        "edges": "5",
        "size": "1",
        "note": "blue",
    }
    assert from_fields(Order, to_fields(order)) == order
    assert list_fields_beside_data(Order) == ("note",)
    assert order.about_data == Order(0.5, count=2, shape=Shape.OWN, edges=5)
    with pytest.raises(InvalidInput, match="Note cannot be read"):
        from_fields(Order, {"epsilon": "1", "note": "x" * 201})


def test_a_link_may_hold_a_longer_text_than_the_widget_takes():
    # Earlier versions wrote texts of up to 200 characters, whatever the widget took.
    assert from_fields(Order, {"epsilon": "1", "note": "x" * 200}).note == "x" * 200


def test_an_object_is_checked_by_the_declarations_that_it_shares():
    @dataclass(frozen=True)
    class Box:
        count: int
        size: float = 1.0
        colour: str = "red"

    problems = Problems()
    check_shared(problems, Order, Box(0, 9.0))
    assert [problem.sentence for problem in problems.entries] == [
        "The things must be a whole number between 1 and 9; got 0.",
        "Size s must lie between 0.5 and 2; got 9.0.",
    ]


def test_the_help_of_a_call_has_the_ranges():
    assert describe(Order)["count"] == "Things. How many things are ordered. From 1 to 9."
    assert describe(Order)["shape"] == "Shape."
