"""Sections as data: what a reader without a page sees, and what keeps results apart."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

import dpcore
from dpcore.answer.section import (
    Cached,
    Choice,
    Columns,
    Integer,
    Note,
    Parts,
    Search,
    flatten_sections,
    list_parts,
    list_plots,
)
from dpcore.common.checks import InvalidInput, refuse
from dpcore.common.privacy import Disclosure
from dpcore.data import samples
from dpcore.learning.answer import build_answer

SHOP = samples.load("shop-events")


def double(number: int) -> int:
    return 2 * number


def fail(number: int) -> int:
    raise refuse(f"{number} is refused")


def test_a_reader_takes_first_choices_and_searches_only_if_asked() -> None:
    def parts() -> Parts:
        way = yield Choice("way", "Way", {3: "three", 4: "four"})
        number = yield Integer("number", "Number", (1, 9), 5)
        outcome = yield Search("work", (), lambda tell, stop: tell(0.5) or "found", "Working")
        yield f"{way} {number} {yield Cached(double, (number,))} {outcome}"

    assert list_parts(parts())[-1] == "3 5 10 None"
    assert list_parts(parts(), runs_searches=True)[-1] == "3 5 10 found"


def test_parts_in_columns_are_read_and_a_section_may_go_on_after_a_refusal() -> None:
    def left() -> Parts:
        try:
            yield Cached(fail, (7,))
        except InvalidInput as refused:
            yield Note(refused.problems[0].sentence)

    def right() -> Iterator[str]:
        yield "right"

    columns, refused, note, last = list_parts([Columns((left(), right()))])
    assert isinstance(columns, Columns)
    assert isinstance(refused, Cached)
    assert isinstance(note, Note)
    assert "7 is refused" in note.text
    assert last == "right"

    def careless() -> Parts:
        yield Cached(fail, (7,))

    with pytest.raises(InvalidInput, match="7 is refused"):
        list_parts(careless())


def test_only_a_function_of_a_module_is_kept_by_its_arguments() -> None:
    captured = 3
    with pytest.raises(ValueError, match="may depend on more than its arguments"):
        Cached(lambda: captured, ())
    assert Cached(double, (4,)).question == (4,)


def test_data_with_another_label_are_another_question() -> None:
    private = replace(SHOP, disclosure=Disclosure.PRIVATE)
    assert Cached(double, (private,)).question != Cached(double, (SHOP,)).question


@pytest.mark.long
def test_a_report_has_the_figures_of_every_tab_and_a_notebook_its_texts() -> None:
    reply = dpcore.learning_bound(SHOP, epsilon=1.0)
    keys = [plot.key for plot in list_plots(reply.answer, SHOP)]
    assert keys[: len(reply.answer.plots)] == list(reply.answer.plots)
    assert {"learning-figure-2", "learning-figure-3a", "learning-figure-3b"} <= set(keys)
    assert len(set(keys)) == len(keys)
    private = build_answer(replace(SHOP, disclosure=Disclosure.PRIVATE), reply.parameters)
    assert {plot.disclosure for plot in list_plots(private, SHOP)} == {Disclosure.PRIVATE}
    assert "Figure 3" in reply.tabs
    texts = [item for item in reply.tab("Cost of privacy", search=True) if isinstance(item, str)]
    assert any("flattens at" in text for text in texts)
    with pytest.raises(InvalidInput, match="there are 'Behind the answer'"):
        reply.tab("Nothing")


def test_a_bound_that_was_drawn_holds_no_section() -> None:
    private = replace(SHOP, disclosure=Disclosure.PRIVATE)
    reply = dpcore.count_bound(private, epsilon=1.0)
    assert flatten_sections(reply.answer.sections)
    released_figure = reply.draw(0.1)
    assert not released_figure.answer.sections
    assert not released_figure.tabs
