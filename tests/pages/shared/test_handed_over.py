"""`answer.open()`: the page that opens asks the same question of the same data, and the address tells nothing."""

from __future__ import annotations

import pandas as pd
import pytest

import dpcore as ss
from dpcore.common import browser
from dpcore.common.errors import InvalidInput
from dpcore.common.workspace import Workspace
from dpcore.data import samples
from dpcore.report import local_app
from pages.shared.base import demo, keys
from tests.pages import driving

EVENTS = samples.FOLDER / "shop_events.csv"


@pytest.fixture
def opened(monkeypatch):
    """Hands over what an answer opens, and returns the page that its address leads to; and the folder."""
    workspace = Workspace()
    monkeypatch.setenv(local_app.FOLDER, str(workspace.folder))

    class App:
        link, workspace = "http://127.0.0.1:1", None

    App.workspace = workspace
    monkeypatch.setattr(local_app, "_started", lambda: App)

    def page(answer):
        address = answer.open(browser=False, wait=False)
        token = address.partition("?open=")[2]
        assert (workspace.folder / token).stat().st_mode & 0o077 == 0
        at = driving.fine(driving.begin("Start", open=token))
        assert not (workspace.folder / token).exists()
        return at, token

    yield page
    workspace.close()


def test_the_page_has_the_answer_the_data_and_the_settings(opened):
    answer = ss.mean_bound(
        EVENTS, user="user_id", value="amount", epsilon=3, lower=-5, upper=80, own_cap=7, counts="public"
    )
    at, token = opened(answer)
    held = at.session_state
    assert held[keys.LOADED].dataset == answer.data
    assert held[keys.LOADED].dataset.is_private
    assert held[keys.PAGE_PARAMETERS] == answer.parameters
    assert answer.headline in driving.shown_texts(at)
    again = driving.begin("Start", open=token)
    assert "opens once" in driving.errors(again)
    assert not again.session_state[keys.LOADED].dataset.is_private


def test_the_browser_is_given_a_file_that_leads_to_the_address(monkeypatch):
    workspace = Workspace()
    start = "a-start-token-of-a-server"

    class App:
        link = f"http://127.0.0.1:1/?token={start}"

    App.workspace = workspace
    monkeypatch.setattr(local_app, "_started", lambda: App)
    monkeypatch.delenv("SWEETSPOT_NO_BROWSER", raising=False)
    given = []
    monkeypatch.setattr(browser, "_can_read_files", lambda: True)
    monkeypatch.setattr("webbrowser.open", lambda address: given.append(address) or True)
    address = ss.count_bound([1, 2, 30], epsilon=1).open(wait=False)
    (file,) = workspace.folder.glob("*.html")
    assert given == [file.as_uri()]
    assert file.stat().st_mode & 0o077 == 0
    assert f'location.replace("{address}")' in file.read_text(encoding="utf-8")
    assert address.startswith(f"{App.link}&open=")
    workspace.close()
    assert not file.exists()


def test_a_table_of_the_pages_own_comes_with_its_ranges(opened):
    tickets = pd.read_csv(samples.FOLDER / "support_tickets.csv")
    asked = {"user": "customer", "label": "escalated", "features": ["words", "channel"], "epsilon": 2}
    short = {"runs": 2, "splits": 1, "pace": "entered", "steps": 2}
    answer = ss.training_bound(
        tickets, **asked, levels={"channel": ["email", "chat"]}, ranges={"words": (0, 300)}, **short
    )
    at, _ = opened(answer)
    held = at.session_state["training.loaded"]
    assert held.dataset == answer.brought.dataset
    assert (held.design, at.session_state["training.range_high_words"]) == (answer.brought.design, 300)
    assert at.session_state[keys.PAGE_PARAMETERS] == answer.parameters
    generated = ss.regression_weights(epsilon=2, num_rows=60, lower=-300, upper=300)
    at, _ = opened(generated)
    assert at.session_state[keys.PAGE_PARAMETERS] == generated.parameters


def test_an_address_reads_no_other_file_and_a_public_demo_none(opened, tmp_path, monkeypatch):
    secret = tmp_path / "secret"
    secret.write_text("s3cr3t")
    for token in (str(secret), "../" * 9 + "etc/passwd", "in-use", "A" * 43, "", "\0"):
        assert local_app.handed_over(token, str(tmp_path)) is None
    assert secret.exists()
    answer = ss.count_bound([1, 2, 3], epsilon=1)
    token = answer.open(browser=False, wait=False).partition("?open=")[2]
    monkeypatch.setenv(demo.SERVED, "1")
    at = driving.begin("Start", open=token)
    assert "opens once" in driving.errors(at)
    assert not at.session_state[keys.LOADED].dataset.is_private


def test_where_the_app_is_missing_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(local_app.importlib.util, "find_spec", lambda name: None)
    local_app._command.cache_clear()
    with pytest.raises(InvalidInput, match="extra `app`"):
        ss.count_bound([1, 2], epsilon=1).open()
    local_app._command.cache_clear()
