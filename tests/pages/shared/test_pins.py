"""Pins: what is frozen, its ghost, its label, the list, and where a pin of private data goes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import streamlit

from dpcore.common.checks import Problems
from dpcore.common.privacy import Disclosure, Neighbours, ReleaseFacts, strictest
from dpcore.common.strict_json import Part
from dpcore.quantile.parameters import QuantileParameters
from dpcore.report import charts
from pages.shared.base import catalogue, keys, page_run
from pages.shared.compare import pin_table
from pages.shared.figures import figures, pins
from pages.shared.figures.pins import Curve, Pin
from pages.shared.session import pins_json, session, session_file
from tests.pages.driving import (
    SHOP_EVENTS,
    chart,
    fine,
    go,
    link_of,
    on_file,
    open_app,
    release_copy,
    shown_texts,
)

FACTS = ReleaseFacts(0.25, 0.0, Neighbours.REPLACE_USER, "discrete Laplace")
X = np.array([1.0, 10.0, 100.0])
AXES = ("Bound", "log", "Error", "log")


def figure(y: float = 1.0) -> Any:
    fig = charts.Sketch(charts.log_axis("Bound", (1, 100)), charts.log_axis("Error", (0.1, 10))).figure()
    fig.add_trace(charts.curve("Noise", X, X, charts.PRIVACY, ""))
    fig.add_trace(charts.curve("Total", X, y * np.array([5.0, 2.0, 6.0]), charts.CAP, ""))
    charts.band(fig, 5, 20, "Within")
    return fig.add_trace(charts.marker("Best", 10.0, 2.0 * y, "#000", "diamond", ""))


def pin(name: str = "a", disclosure: Any = Disclosure.PUBLIC, **changes: Any) -> Pin:
    curve = pins.curve_of(figure())
    whole = Pin(
        "mean", name, "a.csv", 1.0, ("Best cap", "3 rows"), ("Error", "0.1"), 0.25, "half costs 3 %",
        (("Highest value", "7"),), disclosure, curve,
    )  # fmt: skip
    return replace(whole, **changes)


def test_the_main_curve_is_frozen_with_its_best_point() -> None:
    curve = pins.curve_of(figure(2.0))
    assert curve is not None
    assert curve.y.tolist() == [10.0, 4.0, 12.0]
    assert (curve.best, curve.axes) == ((10.0, 4.0), AXES)
    thin = charts.Sketch({}, {}).figure().add_trace(charts.curve("Noise", X, X, charts.PRIVACY, ""))
    assert pins.curve_of(thin) is None
    assert (
        pins.curve_of(
            charts.Sketch({}, {}).figure().add_trace(charts.curve("", ["a", "b", "c"], X, charts.CAP, ""))
        )
        is None
    )  # type: ignore[arg-type]
    assert pins.curve_of(charts.Sketch({}, {}).figure().add_heatmap(z=[[1, 2], [3, 4]])) is None


def test_ghosts_stand_behind_on_the_same_axes_only_and_leave_the_figure_as_it_was() -> None:
    fig = figure()
    assert pins.curve_of(fig) is not None
    other = replace(pin("elsewhere"), curve=Curve(X, X, ("Bound", "log", "Variance", "log")))
    many = [pin(str(at)) for at in range(6)]
    page_run, shown = pins.ghosts(fig, [*many, other, pin("none", curve=None)])
    assert [one.name for one in shown] == ["2", "3", "4", "5"]
    assert [trace.name for trace in page_run.data[:4]] == ["2", "3", "4", "5"]
    assert len({trace.line.dash for trace in page_run.data[:4]}) == 4
    assert page_run.data[4:] == fig.data
    assert page_run.layout.height == fig.layout.height
    assert pins.ghosts(fig, [other]) == (fig, ())
    # A ghost has the width of a minor curve: the figure's own main curve stays the one to pin.
    again = pins.curve_of(page_run)
    assert again is not None
    assert again.y.tolist() == [5.0, 2.0, 6.0]


def test_a_curve_of_one_of_several_plots_stays_on_its_own() -> None:
    fig = figure()
    fig.update_layout(yaxis={"domain": [0.4, 1.0]}, yaxis2={"title": {"text": "Share"}, "domain": [0.0, 0.3]})
    fig.add_trace(charts.curve("Share", X, X, charts.CAP, "").update(yaxis="y2"))
    first = pins.curve_of(fig)
    assert first is not None
    assert (first.on, first.axes) == (("x", "y"), AXES)
    below = pins.curve_of(type(fig)(data=fig.data[-1:], layout=fig.layout))
    assert below is not None
    assert (below.on, below.axes[2]) == (("x", "y2"), "Share")
    page_run, shown = pins.ghosts(fig, [replace(pin("below"), curve=below)])
    assert len(shown) == 1
    assert page_run.data[0].yaxis == "y2"
    assert 0.0 <= page_run.layout.legend2.y <= 0.3
    nowhere = replace(below, on=("x", "y7"), axes=(*AXES[:2], "", ""))
    assert pins.ghosts(fig, [replace(pin(), curve=nowhere)]) == (fig, ())


def test_the_legend_of_ghosts_stands_where_they_are_not() -> None:
    def corner(y: list[float]) -> tuple[str, str]:
        one = replace(pin(), curve=Curve(X, np.array(y), AXES))
        legend = pins.ghosts(figure(), [one])[0].layout.legend2
        return legend.yanchor, legend.xanchor

    assert corner([5.0, 5.0, 5.0]) == ("bottom", "left")
    assert corner([0.11, 5.0, 5.0]) == ("bottom", "right")
    assert corner([0.11, 0.11, 0.11]) == ("top", "left")


def test_names_of_files_are_no_html_in_a_figure() -> None:
    assert pins.ghosts(figure(), [pin("<b>a & b</b>")])[0].data[0].name == "&lt;b&gt;a &amp; b&lt;/b&gt;"


def test_the_strictest_label_holds() -> None:
    public, private = Disclosure.PUBLIC, Disclosure.PRIVATE
    assert strictest([public, FACTS, private]) is private
    assert strictest([public, FACTS]) == FACTS
    assert strictest([]) is public


def test_the_list_as_a_file_carries_the_label_and_no_formula() -> None:
    text = pin_table.as_csv((pin("=1+1"), pin("b", Disclosure.PRIVATE, epsilon=None, rows_lost=None)))
    head, first, second = text.splitlines()
    assert head.startswith("Pin,ε,Bound,Error,Rows left out,Half or double,")
    assert "'=1+1" in first
    assert first.endswith(Disclosure.PRIVATE.label)
    assert "25 %" in first.replace("\xa0", " ")
    assert second.startswith("b,,3 rows (best cap)")


def test_pins_come_back_from_json_and_changed_ones_are_refused() -> None:
    held = [pin(), pin("release", FACTS), pin("map", Disclosure.PRIVATE, curve=None, epsilon=None)]
    content = json.loads(json.dumps([pins_json.to_json(one) for one in held]))
    problems = Problems()
    back = pins_json.from_json(Part(content, "pins", problems))
    assert problems.found == []
    assert [pins.said(one) for one in back] == [pins.said(one) for one in held]
    assert [one.disclosure for one in back] == [one.disclosure for one in held]
    assert back[0].curve is not None
    assert back[0].curve.y.tolist() == [5.0, 2.0, 6.0]
    assert back[0].curve.best == (10.0, 2.0)
    for change in (
        {"epsilon": "1"}, {"bound": ["a"]}, {"settings": [["a"]]}, {"disclosure": "DP release"}, {"more": 1},
        {"curve": {**content[0]["curve"], "axes": ["a"]}}, {"curve": {**content[0]["curve"], "best": [1]}},
        {"curve": {**content[0]["curve"], "on": ["x", "z"]}}, {"rows_lost": 1e308}, {"epsilon": 0},
        {"curve": {**content[0]["curve"], "y": content[0]["curve"]["x"] | {"shape": [2]}}}, {"name": "x" * 500},
    ):  # fmt: skip
        problems = Problems()
        assert pins_json.from_json(Part([content[0] | change], "pins", problems)) == ()
        assert problems.found, change


def test_private_pins_make_the_session_file_private_and_step_aside_beside_a_release(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sample = session.Origin(session.DEFAULT_SAMPLE)
    loaded = session.Loaded(sample.load(), sample)
    assert session_file.Content(loaded, pins=(pin("r", FACTS),)).disclosure == FACTS
    content = session_file.Content(loaded, pins=(pin(), pin("private", Disclosure.PRIVATE)))
    assert content.disclosure is Disclosure.PRIVATE
    state: dict[str, Any] = {}
    monkeypatch.setattr(streamlit, "session_state", state)
    session_file.apply(session_file.read(session_file.text(content).encode()).content)
    assert [one.name for one in pins.all_pins()] == ["a", "private"]
    session_file.apply(content)  # Pins that are there already are not doubled.
    assert len(pins.all_pins()) == 2
    same_name = replace(pin(), data="other.csv")
    assert [one.name for one in pins.joined([pin()], [pin(), same_name, same_name])] == ["a", "a (2)"]
    private, others = pins.parted(state[keys.PINS])
    assert ([one.name for one in private], [one.name for one in others]) == (["private"], ["a"])


# --- In the app -------------------------------------------------------------------------------------------------------


def pinned(at: Any, name: str) -> Any:
    return fine(at.button(key=f"{name}_pin").click().run())


def traces(at: Any, key: str) -> list[str]:
    return [trace["name"] for trace in chart(at, key)["data"]]


def test_a_pin_stays_over_settings_and_data_with_its_label_and_never_in_a_link() -> None:
    at = on_file(SHOP_EVENTS, "Mean", "shop_events.csv")
    for key, value in {"mean.lower": 0.0, "mean.upper": 80.0}.items():
        fine(at.number_input(key=key).set_value(value).run())
    before = chart(at, "mean_error")
    at = pinned(at, "mean")
    fine(at.number_input(key="epsilon").set_value(0.37).run())
    after = chart(at, "mean_error")
    (ghost,) = [trace for trace in after["data"] if trace.get("legend") == "legend2"]
    assert ghost["name"] == "shop_events.csv, ε = 1"
    assert ghost["y"] == next(
        trace["y"] for trace in before["data"] if trace["name"] == "Total, bounded rows"
    )
    assert after["layout"]["height"] == before["layout"]["height"]
    at = pinned(at, "mean")
    assert [one.name for one in at.session_state[keys.PINS]] == [
        f"shop_events.csv, ε = {e}" for e in ("1", "0.37")
    ]
    assert all(one.disclosure is Disclosure.PRIVATE for one in at.session_state[keys.PINS])
    at.session_state["mean.tabs"] = "Compare"
    fine(at.run())
    table = at.dataframe[0]
    assert table.value["ε"].tolist() == ["1", "0.37"]
    assert table.value["Rows left out"].str.endswith("%").all()
    assert table.value["Half or double"].str.contains(" costs ").all()
    assert "Highest value, U: 80" in table.value["Settings"][0]

    # On public data the figure with the ghosts of private ones is no public picture.
    session_data = open_app("Mean").session_state[keys.LOADED]
    at.session_state[keys.LOADED] = session_data
    fine(at.run())
    figure_now = json.loads(at.get_by_key("figure_mean_error").proto.bytes)
    assert figure_now["fileName"] == "mean-error-PRIVATE-do-not-publish"
    assert any(
        "do not publish" in note["text"].replace("<br>", " ")
        for note in figure_now["figure"]["layout"]["annotations"]
    )
    assert "ghost" not in link_of(at)
    assert "shop_events" not in link_of(at)

    fine(at.text_input(key="mean_pin_name").set_value("last year").run())
    assert [one.name for one in at.session_state[keys.PINS]] == ["shop_events.csv, ε = 1", "last year"]
    fine(at.button(key="mean_pin_remove").click().run())
    assert [one.name for one in at.session_state[keys.PINS]] == ["shop_events.csv, ε = 1"]
    fine(at.button(key="mean_pins_remove").click().run())
    assert "Nothing is pinned yet" in shown_texts(at)
    assert traces(at, "mean_error")[0] == "Total, bounded rows"


def test_files_and_pins_name_the_settings_that_the_answer_is_for(monkeypatch: pytest.MonkeyPatch) -> None:
    # While another answer is looked for, the fields hold what nobody has answered yet.
    asked, since = QuantileParameters(1.0), QuantileParameters(0.25)
    monkeypatch.setattr(streamlit, "session_state", {keys.PAGE_PARAMETERS: since})
    run = page_run.Drawn(catalogue.named("quantile"))  # type: ignore[arg-type]
    try:
        page_run.begin(run)
        assert "public input: epsilon = 0.25" in figures.question_notes()
        page_run.answers(asked)
        assert "public input: epsilon = 1" in figures.question_notes()
    finally:
        page_run.begin(None)
    assert "public input: epsilon = 0.25" in figures.question_notes()


def test_a_heat_map_is_pinned_to_the_list_only_and_a_page_without_tabs_lists_its_pins_below() -> None:
    at = pinned(open_app("Per group"), "per_group")
    (one,) = at.session_state[keys.PINS]
    assert (one.curve, one.data, one.rows_lost) == (None, "Demonstration", None)
    at.session_state["per_group.tabs"] = "Compare"
    fine(at.run())
    assert "is no curve" in shown_texts(at)
    at = go(at, "Start")
    assert [box.label for box in at.expander] == ["Compare"]
    assert not at.dataframe  # What it holds is drawn once it is unfolded.
    at = pinned(at, "start")
    at.session_state["start_pinned"] = True
    fine(at.run())
    # A page lists its own pins only.
    assert len(at.dataframe[0].value) == 1


def test_pins_of_private_data_go_with_them_and_come_back() -> None:
    at = on_file(SHOP_EVENTS, "Sum and count", "shop_events.csv")
    at = pinned(at, "total")
    at = go(at, "Choose privately")
    release_copy(at)
    assert at.session_state[keys.PINS] == ()
    at = pinned(go(at, "Sum and count"), "total")
    assert len(traces(at, "total_error")) == len(set(traces(at, "total_error")))
    (beside,) = at.session_state[keys.PINS]
    assert isinstance(beside.disclosure, ReleaseFacts)
    held = session_file.text(at.session_state[keys.SESSION_FILE].content)
    assert len(json.loads(held)["pins"]) == 2
    at = go(at, "Choose privately")
    fine(at.button(key="private_back").click().run())
    assert [one.disclosure for one in at.session_state[keys.PINS]] == [Disclosure.PRIVATE, beside.disclosure]
