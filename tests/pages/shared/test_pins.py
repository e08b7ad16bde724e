"""Pins: what is frozen, its label, the list, and where a pin of private data goes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
import streamlit

from dpcore.common.checks import Problems
from dpcore.common.privacy import Disclosure, Neighbours, ReleaseFacts, find_strictest
from dpcore.common.strict_json import JsonValue
from dpcore.quantile.parameters import QuantileParameters
from pages.shared.base import catalogue, keys, page_run
from pages.shared.figures import figures
from pages.shared.figures.figures import Pin
from pages.shared.screen import compare_tab
from pages.shared.session import own_tables, session, session_file
from tests.pages.driving import (
    SHOP_EVENTS,
    chart,
    check,
    go,
    open_app,
    open_on_file,
    open_tab,
    read_shown_link,
    release_copy,
    shown_texts,
)

FACTS = ReleaseFacts(0.25, 0.0, Neighbours.REPLACE_USER, "discrete Laplace")


def pin(name: str = "a", disclosure: Any = Disclosure.PUBLIC, **changes: Any) -> Pin:
    complete_pin = Pin(
        "mean", name, "a.csv", 1.0, ("Best cap", "3 rows"), ("Error", "0.1"), 0.25, "half costs 3 %",
        (("Highest value", "7"),), disclosure,
    )  # fmt: skip
    return replace(complete_pin, **changes)


def test_the_strictest_label_holds() -> None:
    public, private = Disclosure.PUBLIC, Disclosure.PRIVATE
    assert find_strictest([public, FACTS, private]) is private
    assert find_strictest([public, FACTS]) == FACTS
    assert find_strictest([]) is public


def test_the_list_as_a_file_carries_the_label_and_no_formula() -> None:
    text = compare_tab.write_pins_csv(
        (pin("=1+1"), pin("b", Disclosure.PRIVATE, epsilon=None, rows_lost=None))
    )
    head, first, second = text.splitlines()
    assert head.startswith("Pin,ε,Bound,Error,Rows left out,Half or double,")
    assert "'=1+1" in first
    assert first.endswith(Disclosure.PRIVATE.label)
    assert "25 %" in first.replace("\xa0", " ")
    assert second.startswith("b,,3 rows (best cap)")


def test_pins_come_back_from_json_and_changed_ones_are_refused() -> None:
    pins_made = [pin(), pin("release", FACTS), pin("map", Disclosure.PRIVATE, epsilon=None)]
    content = json.loads(json.dumps([own_tables.PIN_CODEC.write(item) for item in pins_made]))
    problems = Problems()
    back = own_tables.pins_from_json(JsonValue(content, "pins", problems))
    assert problems.entries == []
    assert [figures.tabulate_pin(item) for item in back] == [figures.tabulate_pin(item) for item in pins_made]
    assert [item.disclosure for item in back] == [item.disclosure for item in pins_made]
    before = content[0] | {"curve": {"x": [1, 2, 3], "y": [1, 2, 3]}}  # Pins of before had one.
    (without,) = own_tables.pins_from_json(JsonValue([before], "pins", problems))
    assert (figures.tabulate_pin(without), problems.entries) == (figures.tabulate_pin(back[0]), [])
    for change in (
        {"epsilon": "1"}, {"bound": ["a"]}, {"settings": [["a"]]}, {"disclosure": "DP release"}, {"more": 1},
        {"rows_lost": 1e308}, {"epsilon": 0}, {"name": "x" * 500},
    ):  # fmt: skip
        problems = Problems()
        assert own_tables.pins_from_json(JsonValue([content[0] | change], "pins", problems)) == ()
        assert problems.entries, change


def test_private_pins_make_the_session_file_private_and_step_aside_beside_a_release(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sample = session.Origin(session.DEFAULT_SAMPLE)
    loaded = session.LoadedData(sample.load(), sample)
    assert session_file.SessionContent(loaded, pins=(pin("r", FACTS),)).disclosure == FACTS
    content = session_file.SessionContent(loaded, pins=(pin(), pin("private", Disclosure.PRIVATE)))
    assert content.disclosure is Disclosure.PRIVATE
    state: dict[str, Any] = {}
    monkeypatch.setattr(streamlit, "session_state", state)
    session_file.apply_content(session_file.read_file(session_file.write_file(content).encode()).content)
    assert [one.name for one in figures.list_all_pins()] == ["a", "private"]
    session_file.apply_content(content)  # Pins that are there already are not doubled.
    assert len(figures.list_all_pins()) == 2
    same_name = replace(pin(), data="other.csv")
    assert [one.name for one in figures.merge_pins([pin()], [pin(), same_name, same_name])] == ["a", "a (2)"]
    private, others = figures.split_private_pins(state[keys.PINS])
    assert ([one.name for one in private], [one.name for one in others]) == (["private"], ["a"])


def pin_answer(app: Any, name: str) -> Any:
    return check(app.button(key=f"{name}_pin").click().run())


def list_traces(app: Any, key: str) -> list[str]:
    return [trace["name"] for trace in chart(app, key)["data"]]


@pytest.mark.long
def test_a_pin_stays_over_settings_and_data_with_its_label_and_never_in_a_link() -> None:
    app = open_on_file(SHOP_EVENTS, "Mean", "shop_events.csv")
    for key, value in {"mean.lower": 0.0, "mean.upper": 80.0}.items():
        check(app.number_input(key=key).set_value(value).run())
    app = pin_answer(app, "mean")
    check(app.number_input(key="epsilon").set_value(0.37).run())
    app = pin_answer(app, "mean")
    assert [item.name for item in app.session_state[keys.PINS]] == [
        f"shop_events.csv, ε = {e}" for e in ("1", "0.37")
    ]
    assert all(item.disclosure is Disclosure.PRIVATE for item in app.session_state[keys.PINS])
    open_tab(app, "mean", "Compare")
    table = app.dataframe[0]
    assert table.value["ε"].tolist() == ["1", "0.37"]
    assert table.value["Rows left out"].str.endswith("%").all()
    assert table.value["Half or double"].str.contains(" costs ").all()
    assert "Highest value U: 80" in table.value["Settings"][0]

    assert "shop_events" not in read_shown_link(app)

    check(app.text_input(key="mean_pin_name").set_value("last year").run())
    assert [item.name for item in app.session_state[keys.PINS]] == ["shop_events.csv, ε = 1", "last year"]
    check(app.button(key="mean_pin_remove").click().run())
    assert [item.name for item in app.session_state[keys.PINS]] == ["shop_events.csv, ε = 1"]
    check(app.button(key="mean_pins_remove").click().run())
    assert "No answer is pinned yet" in shown_texts(app)


def test_files_and_pins_name_the_settings_that_the_answer_is_for(monkeypatch: pytest.MonkeyPatch) -> None:
    # While another answer is looked for, the fields hold what nobody has answered yet.
    parameters, since = QuantileParameters(1.0), QuantileParameters(0.25)
    monkeypatch.setattr(streamlit, "session_state", {keys.PAGE_PARAMETERS: since})
    run = page_run.PageRun(catalogue.QUESTION_BY_NAME["quantile"])
    try:
        page_run.CURRENT_RUN.set(run)
        assert "public input: epsilon = 0.25" in figures.list_public_inputs(figures.get_answered_parameters())
        run.answered_parameters = parameters
        assert "public input: epsilon = 1" in figures.list_public_inputs(figures.get_answered_parameters())
    finally:
        page_run.CURRENT_RUN.set(None)
    assert "public input: epsilon = 0.25" in figures.list_public_inputs(figures.get_answered_parameters())


@pytest.mark.long
def test_a_page_without_tabs_lists_its_pins_below() -> None:
    app = pin_answer(open_app("Group by"), "per_group")
    (one,) = app.session_state[keys.PINS]
    assert (one.data, one.rows_lost) == ("Demonstration", None)
    open_tab(app, "per_group", "Compare")
    app = go(app, "Home")
    assert [box.label for box in app.main.expander] == ["Compare"]
    assert not app.dataframe  # What it holds is drawn once it is unfolded.
    app = pin_answer(app, "start")
    app.session_state["start_pinned"] = True
    check(app.run())
    # A page lists its own pins only.
    assert len(app.dataframe[0].value) == 1


def test_a_pin_whose_large_number_is_the_error_says_the_choice() -> None:
    app = pin_answer(open_app("Multi-task weights"), "multitask")
    (pin,) = app.session_state[keys.PINS]
    assert pin.bound == ("", "Weight a task of n users by 1/√n: small tasks weigh more.")
    assert pin.error[0] == "Total error bound"


@pytest.mark.long
def test_pins_of_private_data_go_with_them_and_come_back() -> None:
    app = open_on_file(SHOP_EVENTS, "Sum and count", "shop_events.csv")
    app = pin_answer(app, "total")
    app = go(app, "Data")
    release_copy(app)
    assert app.session_state[keys.PINS] == ()
    app = pin_answer(go(app, "Sum and count"), "total")
    (beside,) = app.session_state[keys.PINS]
    assert isinstance(beside.disclosure, ReleaseFacts)
    saved_session = session_file.write_file(app.session_state[keys.SESSION_SNAPSHOT].content)
    assert len(json.loads(saved_session)["pins"]) == 2
    app = go(app, "Data")
    check(app.button(key="private_back").click().run())
    assert [one.disclosure for one in app.session_state[keys.PINS]] == [Disclosure.PRIVATE, beside.disclosure]
