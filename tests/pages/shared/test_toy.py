"""A new question is one folder in the core, one in the pages, and one entry in a list: all the rest follows."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

import dpcore
from dpcore.common.privacy import Disclosure
from dpcore.common.text_fields import to_fields
from dpcore.private_choice.private_histogram import HistogramParameters
from pages.private_choice import actions
from pages.shared import shell
from pages.shared.base import cache, catalogue, keys
from pages.shared.fields import jobs
from pages.shared.report import report_content
from pages.shared.session import links, session
from tests.pages.driving import (
    ROOT,
    SHOP_EVENTS,
    chart,
    check,
    data,
    errors,
    finish,
    go,
    open_app,
    open_tab,
    read_shown_link,
    shown_texts,
    upload,
    use,
)
from tests.pages.reporting import REPORT_TIME, list_card_numbers

TOY = ROOT / "tests" / "toy"


@pytest.fixture(scope="module")
def toy() -> Iterator[Any]:
    """The folders beside the app's own, and the one entry. Afterwards nothing of it is left."""
    about_data = list(cache._CACHED_FUNCTIONS_OF_DATA)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(TOY))
        patch.setattr(dpcore, "__path__", [*dpcore.__path__, str(TOY / "dpcore")])
        questions = catalogue.read_questions((*catalogue.PAGE_FOLDERS, "toy"))
        patch.setattr(catalogue, "PAGES", questions)
        all_questions = (*questions, *catalogue.read_questions(catalogue.STEP_FOLDERS))
        patch.setattr(catalogue, "QUESTION_BY_NAME", {question.name: question for question in all_questions})
        yield catalogue.find_page("Heavy users")
    cache._CACHED_FUNCTIONS_OF_DATA[:] = about_data
    for name in [name for name in sys.modules if name.startswith(("pages.toy", "dpcore.toy"))]:
        del sys.modules[name]
    for package in ("pages", "dpcore"):
        if hasattr(sys.modules.get(package), "toy"):
            delattr(sys.modules[package], "toy")


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> None:
    """What other pages do on a click, done before any widget where the test asks for it."""
    show = shell.show_shell

    def with_command(spec: Any) -> Any:
        command = st_state().pop("test_command", None)
        if command == "release":
            actions.release_dp_histogram(HistogramParameters(1000.0))
        elif command == "back":
            session.use_original()
        return show(spec)

    monkeypatch.setattr(shell, "show_shell", with_command)


def st_state() -> Any:
    import streamlit as st

    return st.session_state


def do(app: AppTest, command: str) -> AppTest:
    app.session_state["test_command"] = command
    return check(app.run())


def value(app: AppTest, name: str) -> Any:
    return app.session_state[f"toy.{name}"]


def test_it_is_in_the_sidebar_and_among_start_s_advice(toy: Any) -> None:
    app = open_app("Home")
    check(app.get_by_key("start.release").set_value("A count of heavy users").run())
    assert toy.question_sentence in shown_texts(app)
    app = go(app, "Heavy users")
    assert app.title[0].value == "Heavy users"
    assert app.number_input(key="toy.usual_value").value == 2.5
    assert app.number_input(key="toy.usual_value").label == "A usual value"
    assert app.segmented_control(key="toy.shown").options == ["Users", "Their share"]
    assert [entry["name"] for entry in chart(app, "toy_users")["data"]] == ["Users"]
    assert [entry["name"] for entry in chart(open_tab(app, "toy", "Their share"), "toy_share")["data"]] == [
        "Share"
    ]


def test_a_link_carries_its_fields_and_brings_them_back(toy: Any) -> None:
    app = open_app(
        "Heavy users", link="1", data="shop-events", epsilon="0.5", rows="3", shown="share", own_rows="x"
    )
    assert value(app, "rows") == 3
    assert "Own_rows cannot be read" in errors(app)
    assert {"rows=3", "shown=share", "epsilon=0.5", "data=shop-events"} <= set(
        read_shown_link(app).partition("?")[2].split("&")
    )
    origin, values, problems = links.read_link(
        {"link": "1", "data": "zipf", **to_fields(toy.parameters_type(epsilon=2.0, rows=9))}, toy
    )
    assert values["toy.rows"] == 9
    assert not problems
    assert origin.name == "zipf"


@pytest.mark.long
def test_private_data_a_copy_of_them_and_back(toy: Any, commands: None) -> None:
    app = go(use(upload(open_app("Data"), SHOP_EVENTS, "shop_events.csv")), "Heavy users")
    assert "computed from private data" in shown_texts(app)
    app.number_input(key="toy.rows").set_value(17.0)
    app.number_input(key="toy.own_rows").set_value(19.0)
    check(app.number_input(key="toy.usual_value").set_value(0.137).run())
    app.segmented_control(key="toy.shown").set_value(
        toy.fields["shown"].options and list(toy.fields["shown"].options)[1]
    )
    check(open_tab(app, "toy", "Simulation").button(key="toy_simulate").click().run())
    app = finish(app, "toy.job")
    assert "50 runs." in shown_texts(app)
    job: jobs.Job = value(app, "job")
    assert "0.137" in read_shown_link(app)

    app = do(app, "release")
    assert data(app).disclosure is Disclosure.DP_RELEASE
    assert value(app, "usual_value") is None  # it may have come from the values
    assert value(app, "rows") == 5  # so may this from the counts: it begins anew
    assert value(app, "own_rows") is None
    assert value(app, "shown").value == "share"  # public
    assert "toy.job" not in app.session_state
    assert job._stop_event.is_set()
    assert "0.137" not in read_shown_link(app)
    assert "17" not in read_shown_link(app).partition("?")[2]
    assert "The usual value is empty" in errors(app)

    app = do(app, "back")
    assert [value(app, name) for name in ("usual_value", "rows", "own_rows")] == [0.137, 17.0, 19.0]
    # Other data: what may have been read off those before starts afresh.
    app = go(use(upload(go(app, "Data"), b"size,users\n1,300\n9,40\n", "other.csv")), "Heavy users")
    assert value(app, "own_rows") is None
    assert value(app, "usual_value") is None
    assert value(app, "rows") == 5
    assert value(app, "shown").value == "share"  # public


def test_report_script_and_code(
    toy: Any, report_contents: dict[str, Any], tmp_path: Any, monkeypatch: Any
) -> None:
    app = open_app("Heavy users", link="1", data="shop-events", epsilon="1", rows="3")
    check(app.button(key="toy_card" + keys.CODE_BUTTON_SUFFIX).click().run())
    assert any("import" in str(block.value) for block in app.code), "no program"
    open_tab(app, "toy", "Downloads")
    ((label, number),) = list_card_numbers(app, "toy_card")
    content = report_contents["toy"]()
    document = json.loads(report_content.write_json(content, REPORT_TIME, public_only=False))
    assert {figure["key"] for figure in document["figures"]} == {"toy-users", "toy-share", "distribution"}
    page = report_content.write_html(content, REPORT_TIME, public_only=False)
    assert "More rows than" not in page
    assert "Rows" in page
    script = report_content.write_script(content, REPORT_TIME, public_only=False)
    monkeypatch.chdir(tmp_path)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(script, "script.py", "exec"), {"__name__": "__main__"})
    assert f"{label}: {number}" in printed.getvalue()
    assert (tmp_path / "toy-users.html").exists()
