"""A session saved on one page and opened in another session: data, settings, account and tables."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pandas import read_csv

from dpcore.common.privacy import Disclosure, Ledger
from dpcore.contributions import ContributionHistogram
from dpcore.counting.count import to_dataset
from dpcore.data import samples, saved_dataset
from dpcore.dataset import Dataset, LabelledRows
from dpcore.training.parameters import DataSource
from dpcore.training.training_data import TrainingData
from pages.shared.base import keys
from pages.shared.session import session_file
from pages.your_data import columns
from tests.pages.driving import (
    SHOP_EVENTS,
    build_app,
    check,
    data,
    enter_range,
    errors,
    go,
    list_metrics,
    open_app,
    open_on_dataset,
    open_on_file,
    shown_texts,
    upload,
    use,
)
from tests.pages.shared.session_contents import ACCOUNT, DESIGN, FACTS


def write_session(app: Any) -> bytes:
    """What the button in the sidebar writes."""
    return session_file.write_file(app.session_state[keys.SESSION_SNAPSHOT].content).encode()


def open_session(app: Any, content: bytes) -> Any:
    app = go(app, "Data")
    check(app.segmented_control(key="your_data.data_source").set_value("Session").run())
    return check(app.file_uploader[0].upload("session.json", content).run())


@pytest.mark.long
def test_a_session_comes_back_in_another_and_its_account_never_shrinks() -> None:
    app = open_on_file(SHOP_EVENTS, "Mean", "shop_events.csv")
    enter_range(app, 3.0, 80.0)
    check(app.number_input(key="epsilon").set_value(0.37).run())
    session_before = write_session(app)
    assert json.loads(session_before)["label"] == Disclosure.PRIVATE.label
    digest = data(app).histogram.digest
    app.session_state[keys.LEDGERS] = {digest: Ledger().add(FACTS)}
    check(app.run())
    assert "Spent on these data: ε = 0.25" in shown_texts(app)
    session_after = write_session(app)

    new = open_session(open_app("Data"), session_after)
    assert data(new) == data(app)
    assert "In use: shop_events.csv" in shown_texts(new)
    assert "Spent on these data: ε = 0.25" in shown_texts(new)
    # The file that was saved before the release takes nothing off the account.
    new = open_session(new, session_before)
    assert "Spent on these data: ε = 0.25" in shown_texts(new)
    new = go(new, "Mean")
    assert [new.number_input(key=key).value for key in ("mean.lower", "mean.upper", "epsilon")] == [
        3.0,
        80.0,
        0.37,
    ]
    assert new.session_state["epsilon_slider"] == 0.3
    new = open_session(new, session_after.replace(b'"disclosure": "private"', b'"disclosure": "public"'))
    assert "not those that were saved" in errors(new)
    assert "Nothing was changed" in errors(new)
    assert data(new) == data(app)


@pytest.mark.long
def test_further_value_columns_and_the_lines_of_a_plan_come_back() -> None:
    frame = read_csv(samples.FOLDER / "support_tickets.csv")
    columns = {"user": "customer", "value": "words", "further_values": ("hours_waited", "years")}
    app = open_on_dataset(to_dataset(frame, **columns, disclosure="public"), "Budget plan")
    lines = "rows; mean of hours_waited from 0 to 72; sum of years"
    app.session_state["plan.lines"] = lines
    before = [metric.value for metric in list_metrics(check(app.run()))]
    assert not errors(app)
    new = open_session(open_app("Data"), write_session(app))
    assert data(new) == data(app)
    assert data(new).value_columns == ("words", "hours_waited", "years")
    new = go(new, "Budget plan")
    assert not errors(new)
    assert new.session_state["plan.lines"] == lines
    assert [metric.value for metric in list_metrics(new)] == before


@pytest.mark.long
def test_what_columns_were_taken_for_comes_back_where_the_data_are_too_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = upload(open_app("Data"), SHOP_EVENTS, "shop_events.csv")
    check(app.selectbox(key="your_data.upload_role_task").set_value(columns.NO_COLUMN).run())
    app = use(app)
    monkeypatch.setattr(saved_dataset, "ROOM", 100)
    new = open_session(open_app("Data"), write_session(app))
    assert data(new).name != "shop_events.csv"
    assert "Bring shop_events.csv again" in shown_texts(new)
    new = upload(new, SHOP_EVENTS, "shop_events.csv")
    assert new.selectbox(key="your_data.upload_role_task").value == columns.NO_COLUMN
    assert new.selectbox(key="your_data.upload_role_user").value == "user_id"


@pytest.mark.long
def test_a_page_goes_on_with_its_own_table_and_what_a_file_does_not_hold_is_named() -> None:
    rng = np.random.default_rng(1)
    codes = np.repeat(np.arange(40), 1 + np.arange(40) % 4)
    features = np.c_[np.ones(codes.size), rng.uniform(0.0, 10.0, codes.size)]
    rows = LabelledRows(features, rng.integers(0, 2, codes.size), codes, ("intercept", "age"), "rating")
    histogram = ContributionHistogram.from_counts(np.bincount(codes))
    table = Dataset("own.csv", "", Disclosure.PRIVATE, histogram, table=rows, privacy_unit=("who",))
    app = open_app("Classifier")
    app.session_state["training.loaded"] = TrainingData(table, ACCOUNT, DESIGN)
    app.session_state["training.source"], app.session_state["training.runs"] = DataSource.UPLOAD, 2
    check(app.run())
    app.number_input(key="training.range_low_age").set_value(0.0)
    app.number_input(key="training.range_high_age").set_value(10.0)
    check(app.run())
    app.session_state["training.draws"] = {ACCOUNT: [SimpleNamespace(question="another")]}
    check(app.run())
    new = open_session(open_app("Data"), write_session(app))
    assert "Classifier: 1 release, to be downloaded there" in shown_texts(new)
    new = go(new, "Classifier")
    assert "Data of this page: **own.csv**" in shown_texts(new)
    assert new.number_input(key="training.range_high_age").value == 10.0


def test_a_public_demo_opens_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWEETSPOT_SERVED", "1")
    app = check(build_app("Data").run())
    check(app.segmented_control(key="your_data.data_source").set_value("Session").run())
    assert not app.file_uploader
    assert "public demo" in shown_texts(app)
