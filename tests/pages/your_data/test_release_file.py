"""A released histogram that is loaded again as a file: its label and its epsilon come back."""

from __future__ import annotations

import io

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dpcore.common.privacy import Disclosure
from dpcore.data.column_roles import TableKind
from dpcore.private_choice.parameters import Relation
from dpcore.private_choice.private_histogram import HistogramNoise
from dpcore.report import content as report_content
from pages.private_choice import actions
from pages.shared.base import keys
from pages.shared.session import session
from tests.pages.driving import (
    AMPLE_EPSILON,
    check,
    data,
    errors,
    go,
    open_app,
    open_on_file,
    raw_texts,
    read_address,
    read_shown_link,
    release_copy,
    shown_texts,
    upload,
    use,
)

SECRET = "rows,users\n" + "\n".join(f"{s},{40 if s < 50 else 1}" for s in [*range(1, 300), 2017])
LABEL = "DP release (epsilon = 0.1, add or remove one user, discrete Laplace)"
RELEASED = f'size,users,label\n1,200,"{LABEL}"\n3,20,"{LABEL}"\n10,1,"{LABEL}"\n'


def open_release(epsilon: float = AMPLE_EPSILON, **settings) -> AppTest:
    """The app with a DP histogram of the secret in use."""
    app = open_on_file(SECRET.encode(), "Data")
    for key, value in settings.items():
        app.session_state[key] = value
    return release_copy(app, epsilon)


@pytest.mark.long
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"epsilon": 10 / 3, "private_choice.relation": Relation.REPLACE},
        {"epsilon": 5.5, "private_choice.noise": HistogramNoise.GAUSSIAN, "private_choice.delta": 1e-9},
    ],
    ids=["Laplace", "replace, no short decimal", "Gaussian"],
)
def test_label_and_epsilon_come_back_with_the_file(settings):
    copy = data(open_release(**settings))
    text = report_content.write_histogram(copy)
    # Plain: no line that pandas would stumble over, and what it writes again is the same table.
    frame = pd.read_csv(io.StringIO(text))
    assert list(frame.columns) == ["size", "users", "label"]
    assert list(frame["size"]) == list(copy.histogram.sizes)
    assert_comes_back(copy, text)
    if not settings:
        assert_comes_back(copy, frame.to_csv(index=False))


def assert_comes_back(copy, content):
    """The file, loaded in another session, is this release."""
    app = upload(open_app("Data"), content.encode(), "release.csv")
    assert app.radio(key="your_data.upload_public").value is Disclosure.DP_RELEASE
    assert f"The file states {copy.release.label}" in shown_texts(app).replace("*", "")
    dataset = data(use(app))
    assert dataset.histogram == copy.histogram
    assert dataset.release.label == copy.release.label
    # What is said may be rounded up, never down.
    assert dataset.release.epsilon >= copy.release.epsilon * (1 - 1e-12)
    assert dataset.release.delta >= copy.release.delta * (1 - 1e-12)
    assert dataset.release.neighbours is copy.release.neighbours
    # All that is computed carries it.
    app = go(app, "Mean")
    app.number_input(key="mean.lower").set_value(0.0)
    texts = shown_texts(check(app.number_input(key="mean.upper").set_value(1.0).run()))
    assert copy.release.label in texts
    assert f"DP release, ε = {copy.release.guarantee.split(',')[0].removeprefix('epsilon = ')}" in texts
    assert "do not publish" not in texts


@pytest.mark.long
def test_a_plain_file_is_asked_about_as_ever():
    app = upload(open_app("Data"), b"size,users\n1,200\n3,20\n10,1\n")
    radio = app.radio(key="your_data.upload_public")
    assert radio.value is Disclosure.PRIVATE
    assert len(radio.options) == 2
    assert "labelled" not in shown_texts(app)
    assert data(use(app)).is_private


@pytest.mark.long_but("Disclosure.PRIVATE")
@pytest.mark.parametrize("choice", [Disclosure.PRIVATE, Disclosure.PUBLIC])
def test_whoever_knows_better_than_the_label_is_believed(choice):
    app = upload(open_app("Data"), RELEASED.encode())
    check(app.radio(key="your_data.upload_public").set_value(choice).run())
    dataset = data(use(app))
    assert dataset.disclosure is choice
    assert dataset.release is None


@pytest.mark.long_but("epsilon = 0.1-epsilon = 0", "discrete Laplace-[click](https://evil.example)")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (LABEL, Disclosure.PRIVATE.label),
        (LABEL, Disclosure.PUBLIC.label),
        ('200,"DP release (epsilon = 0.1', '200,"DP release (epsilon = 0.2'),
        (f'200,"{LABEL}"', '200,""'),
        ("epsilon = 0.1", "epsilon = 0"),
        ("epsilon = 0.1", "epsilon = inf"),
        ("epsilon = 0.1", "epsilon = 1.2.3"),
        ("epsilon = 0.1", "epsilon = 0.1, delta = 2"),
        ("add or remove one user", "nobody"),
        ("discrete Laplace", "[click](https://evil.example)"),
        ("discrete Laplace", "x" * 500),
    ],
)
def test_what_is_no_label_of_one_release_is_private(old, new):
    assert old in RELEASED
    app = upload(open_app("Data"), RELEASED.replace(old, new).encode())
    radio = app.radio(key="your_data.upload_public")
    assert radio.value is Disclosure.PRIVATE
    assert len(radio.options) == 2
    assert "evil" not in raw_texts(app)
    assert data(use(app)).is_private


def test_two_releases_in_one_file_are_not_one():
    lines = RELEASED.splitlines()
    app = upload(open_app("Data"), "\n".join([*lines, *lines[1:]]).encode())
    in_use = data(app)
    check(app.radio(key="your_data.upload_kind").set_value(TableKind.HISTOGRAM).run())
    check(app.selectbox(key="your_data.upload_role_" + "users").set_value("users").run())
    check(app.radio(key="your_data.upload_public").set_value(Disclosure.DP_RELEASE).run())
    use(app)
    assert "a size stands twice, so this is not one dp release" in errors(app).lower()
    assert data(app) is in_use


def test_two_files_are_not_one_release():
    app = check(open_app("Data"))
    check(app.segmented_control(key="your_data.data_source").set_value("Upload a file").run())
    files = [(name, RELEASED.encode(), "text/csv") for name in ("one.csv", "two.csv")]
    check(app.file_uploader[0].set_value(files).run())
    assert app.radio(key="your_data.upload_public").value is Disclosure.PRIVATE


def test_a_release_is_a_histogram_and_nothing_else():
    app = upload(open_app("Data"), RELEASED.encode())
    check(app.radio(key="your_data.upload_kind").set_value(TableKind.COUNTS).run())
    radio = app.radio(key="your_data.upload_public")
    assert radio.value is Disclosure.PRIVATE
    assert len(radio.options) == 2


def test_a_loaded_release_lasts_as_long_as_the_page_and_is_named_in_no_link():
    app = use(upload(open_app("Data"), RELEASED.encode(), "release.csv"))
    assert "Here until this page is closed or loaded anew." in shown_texts(app)
    assert read_address(app)["upload"] == "1"
    assert "data=dp-release" in read_shown_link(app)
    assert app.session_state[keys.LOADED_DATA].origin == session.Origin(session.DP_RELEASE)


def test_nothing_can_be_drawn_from_a_loaded_release():
    app = use(upload(open_app("Data"), RELEASED.encode()))
    texts = shown_texts(app)
    assert actions.RELEASED_DATA_TEXT in texts
    assert actions.PUBLIC_DATA_TEXT not in texts
    assert not [b for b in app.button if b.key in ("private_release", "private_back")]
    assert LABEL in texts
    assert "may be published" in texts
    assert "Spent on these data" not in texts
