"""Who is affected, on every page's card: users above the bound, counted one by one on a small table."""

from __future__ import annotations

import re

import pytest

from dpcore.common.wording import format_count, format_percent
from pages.shared.base import keys
from tests.pages.driving import finish, list_metrics, open_on_file, shown_texts

# Every size from 1 to 30 has a number of users of its own, so that h − 1, h and h + 1 have different users above.
COUNTS = [size for size in range(1, 31) for _ in range(2 * (31 - size) + 3)]
TABLE = ("size,users\n" + "\n".join(f"{s},{COUNTS.count(s)}" for s in range(1, 31))).encode()
EVENTS = ("user_id,amount\n" + "\n".join(
    f"u{k},{(7 * k + row) % 10}" for k, count in enumerate(COUNTS) for row in range(count)
)).encode()  # fmt: skip


def open_page(title: str, content: bytes = TABLE):
    return open_on_file(content, title)


def read_bound(app) -> int:
    return int(re.match(r"[\d,]+", list_metrics(app)[0].value).group().replace(",", ""))


def count_users_above(h: int) -> str:
    """The users with more rows than h, counted."""
    number = sum(count > h for count in COUNTS)
    assert 0 < number < len(COUNTS)
    assert len({sum(count > item for count in COUNTS) for item in (h - 1, h, h + 1)}) == 3
    return f"{format_count(number, 'user')} ({format_percent(number / len(COUNTS))})"


def test_sum_and_count():
    app = open_page("Sum and count")
    for epsilon in (0.02, 0.1):
        app.number_input(key=keys.EPSILON).set_value(epsilon).run()
        assert f"{count_users_above(read_bound(app))} lie over the bound" in shown_texts(app)


@pytest.mark.long
def test_quantile():
    app = open_page("Quantile", EVENTS)
    app.number_input(key="quantile.low").set_value(0.0)
    app = finish(app.number_input(key="quantile.high").set_value(10.0).run(), "quantile.search_job")
    for epsilon in (0.1, 0.3):
        app.number_input(key=keys.EPSILON).set_value(epsilon).run()
        app = finish(app, "quantile.search_job")
        assert f"{count_users_above(read_bound(app))} lie over the bound" in shown_texts(app)
