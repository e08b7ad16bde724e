"""Classifier with a table of one's own: ranges, levels, labels, and the script that reads it."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dpcore.common.privacy import Disclosure
from dpcore.training.parameters import DataSource
from dpcore.training.training_data import TrainingData
from pages.shared.report import report_content
from pages.training.upload import UPLOAD
from tests.pages import reporting
from tests.pages.driving import (
    check,
    errors,
    list_figure_keys,
    open_app,
    read_address,
    read_shown_link,
    shown_texts,
)
from tests.pages.training.conftest import MADE, TITLE, open_tab, release_model, wait_for_runs


def make_visits() -> bytes:
    rng = np.random.default_rng(3)
    users = np.minimum(rng.zipf(1.7, 260), 40)
    frame = pd.DataFrame(
        {
            "visitor": [f"v{u}" for u in users],
            "minutes": np.round(rng.gamma(2.0, 9.0, users.size), 1),
            "device": rng.choice(["phone", "desk"], users.size),
        }
    )
    frame.loc[0, "device"] = "prosthesis"  # a level that one user alone has
    bought = rng.random(users.size) < 1 / (1 + np.exp(2 - 0.1 * frame["minutes"]))
    frame["bought"] = np.where(bought, "yes", rng.choice(["no", "later"], users.size))
    return frame.to_csv(index=False).encode()


def with_upload(public: bool) -> AppTest:
    app = open_app(TITLE, link="1", epsilon="3", runs="3", splits="1")
    check(app.segmented_control(key="training.source").set_value(DataSource.UPLOAD).run())
    check(app.file_uploader[0].upload("visits.csv", make_visits()).run())
    check(app.selectbox(key=UPLOAD.get_role_key("label")).set_value("bought").run())
    check(app.selectbox(key=UPLOAD.get_role_key("user")).set_value("visitor").run())
    check(app.multiselect(key=UPLOAD.get_role_key("features")).set_value(["minutes", "device"]).run())
    check(app.multiselect(key=UPLOAD.get_role_key("categories")).set_value(["device"]).run())
    if public:
        check(app.radio(key="training.public").set_value(Disclosure.PUBLIC).run())
        assert sorted(app.selectbox(key=UPLOAD.get_role_key("positive")).options) == ["later", "no", "yes"]
        app.selectbox(key=UPLOAD.get_role_key("positive")).set_value("yes")
    else:
        check(app.button(key="training_use").click().run())
        assert "levels of column device must be listed" in errors(app)
        assert "which one is 1?" in errors(app)
        app.text_input(key=UPLOAD.get_role_key("positive")).set_value(" yes ")
        app.text_area(key="training.levels_device").set_value("desk\ntablet\ndesk")
        check(app.run())
        assert "desk stands twice" in errors(app)
        app.text_area(key="training.levels_device").set_value("desk\ntablet")
        check(app.run())
    return wait_for_runs(check(app.button(key="training_use").click().run()))


@pytest.mark.long
def test_private_rows_need_public_ranges_and_are_labelled():
    app = with_upload(public=False)
    assert "What range can these columns have" in shown_texts(app)
    assert "training_methods_loss" not in list_figure_keys(app)
    assert app.number_input(key="training.range_low_minutes").value is None
    app.number_input(key="training.range_low_minutes").set_value(90.0)
    wait_for_runs(check(app.number_input(key="training.range_high_minutes").set_value(0.0).run()))
    assert "from a lower to a higher number" in errors(app)
    wait_for_runs(check(app.number_input(key="training.range_low_minutes").set_value(-10.0).run()))
    shown_text = shown_texts(app)
    assert "do not publish" in shown_text.lower()
    follows = "clipped to a bound that adapts" in shown_text
    assert follows or "this bound was computed from them" in shown_text.replace("*", "")
    assert "source=upload" in read_shown_link(app)
    assert "minutes" not in read_shown_link(app)
    # Nothing that may come from a table of one's own is in the address.
    assert not {"source", "positive_above", "bound", "num_users"} & set(read_address(app))
    open_tab(app, "Release")
    release_model(app)
    assert "Spent on these data" in shown_texts(app)
    assert "A score θ·x above 0 says **bought = yes**" in shown_texts(app)
    # What is released names the levels that were listed and no other.
    (model,) = [frame.value for frame in app.dataframe if "θ" in frame.value]
    assert model["Feature"].tolist() == ["intercept", "minutes", "device: tablet"]
    # And the methods section tells of this model, with the bound that was entered and OpenDP's noise.
    open_tab(app, "Downloads")
    (text,) = [code.value for code in app.code if "a bound that follows a private quantile" in code.value][:1]
    assert "discrete Gaussian noise in every step" in text
    assert "all users took part in every step" in text


def test_labels_of_many_values_are_not_cut_in_silence():
    data = MADE.dataset
    stars = replace(data.table, labels=np.arange(data.table.labels.size) % 5.0)
    training_data = TrainingData(replace(data, table=stars), "an account", scaling=MADE.scaling)
    app = AppTest.from_function(_cut, kwargs={"loaded": training_data}).run()
    (notice,) = app.info
    assert "y has 5 different values: those above 2.5 count as 1" in notice.value.replace("\\", "")
    assert not AppTest.from_function(_cut, kwargs={"loaded": TrainingData(data, "")}).run().info


def _cut(loaded):
    from pages.training import upload

    upload.show_label_rule(loaded, 2.5)


@pytest.mark.long
def test_ranges_of_public_rows_are_proposed():
    app = with_upload(public=True)
    assert app.number_input(key="training.range_low_minutes").value == 0.0
    high = app.number_input(key="training.range_high_minutes").value
    assert high >= pd.read_csv(io.BytesIO(make_visits()))["minutes"].max()
    assert "Safe to publish" in shown_texts(app)
    assert any(
        begin in shown_texts(app) for begin in ("Train with", "Best so far", "Do not train", "Not clear")
    )


@pytest.mark.long
def test_the_script_reads_the_table_and_prints_what_the_card_says(report_contents, tmp_path):
    app = with_upload(public=True)
    app.session_state["training.tabs"] = "Downloads"
    wait_for_runs(wait_for_runs(app))
    (tmp_path / "visits.csv").write_bytes(make_visits())
    script = report_content.write_script(
        report_contents["training"](), reporting.REPORT_TIME, public_only=False
    )
    printed = reporting.run_script(script, tmp_path).splitlines()
    card_numbers = reporting.card_numbers(app, "training_card")
    assert card_numbers
    for label, value in card_numbers:
        assert f"{label}: {value}" in printed
