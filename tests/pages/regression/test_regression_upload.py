"""Linear regression with a table of one's own: what is read, asked, labelled and kept out of links."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dpcore.common.privacy import Disclosure
from dpcore.regression.estimate import estimate_residual_variance
from dpcore.regression.parameters import DataSource
from pages.regression.upload import UPLOAD
from pages.shared.base import keys
from pages.shared.server import access
from pages.shared.session import links
from pages.your_data import file_upload
from tests.pages.driving import (
    check,
    errors,
    list_metrics,
    open_app,
    read_address,
    read_notices_below,
    read_shown_link,
    shown_texts,
)
from tests.pages.regression.conftest import (
    LINK,
    TITLE,
    assert_answer,
    enter_variance,
    open_tab,
    wait_for_work,
)


def make_ratings() -> pd.DataFrame:
    rng = np.random.default_rng(8)
    rows = 240
    frame = pd.DataFrame(
        {
            "shop": [f"s{k}" for k in np.minimum(rng.zipf(1.6, rows), 25)],
            "kind": rng.choice(["plain", "fancy", "rare"], rows, p=[0.5, 0.3, 0.2]),
            "size": np.round(rng.normal(5.0, 2.0, rows), 2),
        }
    )
    effect = frame["kind"].map({"plain": 0.0, "fancy": 2.0, "rare": -1.0})
    score = 5.0 + effect + 0.2 * frame["size"] + rng.normal(0.0, 1.0, rows)
    frame["rating"] = np.clip(np.round(score), 1, 10).astype(int).astype(object)
    frame.loc[6, "rating"] = ""
    return frame


RATINGS = make_ratings()


def choose_features(app: AppTest, features: list[str], categories: list[str]) -> None:
    check(app.selectbox(key=UPLOAD.get_role_key("user")).set_value("shop").run())
    check(app.multiselect(key=UPLOAD.get_role_key("features")).set_value(features).run())
    check(app.multiselect(key=UPLOAD.get_role_key("categories")).set_value(categories).run())


def with_upload(public: bool = False) -> AppTest:
    app = open_app(TITLE)
    check(app.segmented_control(key="regression.source").set_value(DataSource.UPLOAD).run())
    check(app.file_uploader[0].upload("ratings.csv", RATINGS.to_csv(index=False).encode()).run())
    assert app.session_state[UPLOAD.get_role_key("label")] == "rating"
    choose_features(app, ["kind", "size"], ["kind"])
    check(app.selectbox(key="regression.reference_" + "kind").set_value("rare").run())
    if public:
        check(app.radio(key="regression.public").set_value(Disclosure.PUBLIC).run())
    return check(app.button(key="regression_use").click().run())


def enter_bounds(app: AppTest, lower: float = 1.0, upper: float = 10.0) -> AppTest:
    app.number_input(key="regression.lower").set_value(lower)
    return wait_for_work(check(app.number_input(key="regression.upper").set_value(upper).run()))


def uploaded_problem(epsilon: float = 1.0):
    frame = RATINGS.drop(6)
    y = frame["rating"].to_numpy(float)
    x = np.column_stack(
        [np.ones(len(y)), frame["kind"] == "fancy", frame["kind"] == "plain", frame["size"]]
    ).astype(float)
    from dpcore.regression.problem import RegressionProblem

    variance = estimate_residual_variance(x, y)
    return RegressionProblem(x, pd.factorize(frame["shop"])[0], epsilon, 9.0, variance), y


def test_an_uploaded_table_is_answered_and_labelled():
    app = with_upload()
    assert "What range can a label have?" in shown_texts(app)
    assert not list_metrics(app)
    app = enter_bounds(app)
    assert_answer(app, *uploaded_problem())
    texts = shown_texts(app)
    assert "do not publish" in texts.lower()
    assert "1 row with a missing value was left out (rating: line 8)" in texts
    link = read_shown_link(app)
    assert "source=upload" in link
    assert "rating" not in link
    variance = uploaded_problem()[0].residual_variance
    assert f"{variance:.3g}" not in link


@pytest.mark.long
def test_what_was_entered_for_one_table_is_asked_anew_with_the_next():
    app = enter_bounds(with_upload(), 2.0, 977.0)
    assert "What range can a label have?" not in shown_texts(app)
    enter_variance(app, 31.5)
    # Another column of the same file is the label.
    check(app.file_uploader[0].upload("ratings.csv", RATINGS.drop(6).to_csv(index=False).encode()).run())
    check(app.selectbox(key=UPLOAD.get_role_key("label")).set_value("size").run())
    choose_features(app, ["rating"], [])
    check(app.button(key="regression_use").click().run())
    assert "What range can a label have?" in shown_texts(app)
    assert app.session_state["regression.upper"] is None
    assert app.session_state["regression.residual_variance"] != 31.5


@pytest.mark.long
def test_a_draw_of_private_labels_needs_an_entered_variance():
    app = open_tab(enter_bounds(with_upload()), "Release")
    assert app.button(key="regression_draw").disabled
    assert "Enter a σ² that you may publish" in errors(app)
    enter_variance(app, 1.5)
    check(open_tab(app, "Release").button(key="regression_draw").click().run())
    assert "Spent on these data: ε = 1 in 1 release" in shown_texts(app)


@pytest.mark.long
def test_what_cannot_be_read_is_said_and_the_data_in_use_stay():
    app = enter_bounds(with_upload(public=True))
    before = [metric.value for metric in list_metrics(app)]
    check(app.file_uploader[0].upload("photo.csv", b"\x89PNG....").run())
    assert "PNG" in errors(app)
    broken = RATINGS.assign(size=["x"] * 3 + ["4"] * (len(RATINGS) - 3), copy=RATINGS["size"])
    check(app.file_uploader[0].upload("broken.csv", broken.to_csv(index=False).encode()).run())
    choose_features(app, ["size"], [])
    check(app.button(key="regression_use").click().run())
    assert errors(app).count("Lines 2, 3, 4, column size") == 1
    assert "Lines 2, 3, 4, column size" in read_notices_below(app, "regression_use")
    check(app.run())
    assert "Lines 2, 3, 4, column size" in read_notices_below(app, "regression_use")
    assert [metric.value for metric in list_metrics(app)] == before


@pytest.mark.long
@pytest.mark.parametrize("link", [{}, LINK | {"source": "upload"}])
def test_a_public_demo_takes_no_table_and_says_so(monkeypatch, link):
    monkeypatch.setenv(access.SERVED, "1")
    monkeypatch.setenv(file_upload.LOCAL, "1")
    app = open_app(TITLE, **link)
    check(app.segmented_control(key="regression.source").set_value(DataSource.UPLOAD).run())
    assert not app.file_uploader
    assert "uploads and paths are switched off" in shown_texts(app)
    check(app.segmented_control(key="regression.source").set_value(DataSource.GENERATED).run())
    assert list_metrics(wait_for_work(app))


@pytest.mark.long
def test_public_labels_propose_bounds():
    app = wait_for_work(with_upload(public=True))
    low, high = app.session_state["regression.lower"], app.session_state["regression.upper"]
    labels = pd.to_numeric(RATINGS["rating"]).dropna()
    assert low <= labels.min()
    assert high >= labels.max()
    assert list_metrics(app)


@pytest.mark.long
def test_the_address_of_a_table_of_ones_own_holds_nothing_that_may_come_from_it():
    app = enter_bounds(with_upload(), -3.5, 93.25)
    assert "-3.5" in read_shown_link(app)  # A link is shared on purpose.
    assert read_address(app) == {"link": "1", "data": "online-retail-lines", "epsilon": "1", "upload": "1"}
    again = open_app(TITLE, **read_address(app))
    assert [p.message for p in again.session_state[keys.LINK_PROBLEMS]] == [links.DATA_GONE]
    # Of generated data it holds the settings, whatever the data of the other pages are.
    app = open_app("Linear regression")
    assert {"lower", "upper", "num_rows"} <= set(read_address(app))


def test_a_link_to_an_upload_asks_for_the_table():
    app = open_app(TITLE, **(LINK | {"source": "upload"}))
    assert not list_metrics(app)
    assert app.file_uploader
    assert "link does not carry uploaded data" in shown_texts(app)
