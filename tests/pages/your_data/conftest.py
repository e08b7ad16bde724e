"""Files that are chosen on Data, and what is counted of them."""

from __future__ import annotations

import gzip

import pytest

from dpcore.counting import formats
from pages.your_data import file_upload
from tests.pages.driving import SHOP_EVENTS, check, data, finish, open_app

GZIPPED = gzip.compress(SHOP_EVENTS)


def histogram_of(app) -> dict[int, int]:
    histogram = data(app).histogram
    return dict(zip(histogram.sizes.tolist(), histogram.users.tolist(), strict=True))


@pytest.fixture
def everything_is_large(monkeypatch):
    """Uploads lie in a temporary folder, and are counted there, however small."""
    monkeypatch.setattr(file_upload, "MAX_HELD_BYTES", 0)
    monkeypatch.setattr(formats, "read_small", lambda *arguments: None)


@pytest.fixture
def local(monkeypatch):
    monkeypatch.setenv(file_upload.LOCAL, "1")


def panel():
    """A new session in which a file is to be chosen."""
    app = open_app("Data")
    return check(app.segmented_control(key="your_data.data_source").set_value("Upload a file").run())


def until_counted(app):
    return finish(app, "your_data.upload_job")


def choose(app, **roles):
    """Say which columns mean what."""
    for role, column in roles.items():
        check(app.selectbox(key=f"your_data.upload_role_{role}").set_value(column).run())
