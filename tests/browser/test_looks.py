"""What a person must be able to read at 390 and at 1280 pixels: labels, numbers, ticks, fields, code."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from pages.shared.base import catalogue
from tests.browser.accessible import list_violations
from tests.browser.browser import enter, press, settle
from tests.browser.test_first_screen import (
    NARROW,
    UNREADABLE,
    WITHOUT_FIGURE,
    fill_plan,
    look_in_a_narrow_window,
    wait_for_figures,
)
from tests.browser.test_journeys import SHOP_EVENTS, choose_file, go_to, short_axes, short_axes_are_drawn


def with_private_events(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/your-data")
    settle(page)
    press(page.get_by_text("Upload a file"))
    choose_file(page, "shop_events.csv", SHOP_EVENTS.read_bytes())
    press(page.get_by_role("button", name="Use these data"))


RANGES = {"mean": ("lower", "upper"), "quantile": ("low", "high"), "factorisation": ("lowest", "highest")}


CROWDED = ("mean", "per_group", "quantile", "plan", "your_data")
"""Pages with the most to show in a narrow window; `make test-long` looks at all."""


@pytest.mark.long
@pytest.mark.parametrize(
    "pages",
    [
        [page for page in catalogue.PAGES if page.name in CROWDED],
        pytest.param(catalogue.PAGES, marks=pytest.mark.long),
    ],
    ids=["crowded", "all"],
)
def test_nothing_on_private_data_is_covered_or_cut_in_a_narrow_window(
    pages: Sequence[Any], page: Page, app_url: str
) -> None:
    with_private_events(page, app_url)
    page.emulate_media(color_scheme="dark")
    settle(page)
    assert list_violations(page, "[data-testid='stSidebar']", dark=True) == []
    page.set_viewport_size(NARROW)
    for spec in pages:
        if spec.name == "training":  # In its own journey.
            continue
        go_to(page, spec.title, whole=False, folded=True)
        for key, number in zip(RANGES.get(spec.name, ()), ("0", "100"), strict=False):
            field = page.locator(
                f".st-key-{spec.name}-{key} input"
            )  # Of private values the page asks for it.
            enter(field, number)
        if spec.name == "plan":
            fill_plan(page)
        if spec.name == "data_owners":  # Its owners are entered, and public, unless the data's are asked for.
            press(page.get_by_role("button", name="More settings"))
            press(page.get_by_role("radio", name="Of the data in use"))
            page.keyboard.press("Escape")
            settle(page)
        wait_for_figures(page)
        labels = page.locator(".js-plotly-plot .annotation", has_text="do not")
        # Paper comparison shows stored results, and no data in use.
        if not (spec.has_own_data or spec.name == "papers" or spec.title in WITHOUT_FIGURE):
            expect(labels.first).to_be_attached()
        assert page.evaluate(UNREADABLE) == [], spec.title
        look_in_a_narrow_window(page, spec.title)


@pytest.mark.long
def test_a_short_axis_is_drawn_and_code_of_ninety_characters_is_read_without_wrapping(
    page: Page, app_url: str
) -> None:
    page.goto(f"{app_url}/{short_axes(5, 10)}")
    settle(page)
    short_axes_are_drawn(page, 5, 10)
    page.get_by_text("Get code").click()
    code = page.get_by_role("dialog").get_by_test_id("stCode").locator("code")
    expect(code).to_contain_text("import opendp.prelude as dp")
    fits = code.evaluate(
        """e => {
            const style = getComputedStyle(e), box = e.parentElement, around = getComputedStyle(box);
            const pen = document.createElement('canvas').getContext('2d');
            pen.font = `${style.fontSize} ${style.fontFamily}`;
            const width = box.clientWidth - parseFloat(around.paddingLeft) - parseFloat(around.paddingRight);
            return width / pen.measureText('x').width;
        }"""
    )
    assert fits >= 94
    page.set_viewport_size(NARROW)
    settle(page)
    pre = code.locator("xpath=ancestor::pre")
    assert pre.evaluate("e => e.scrollWidth - e.clientWidth") <= 1


@pytest.mark.long
def test_on_a_phone_the_pages_are_a_landmark_and_the_sidebar_closes_behind_a_link(
    page: Page, app_url: str
) -> None:
    page.set_viewport_size(NARROW)
    page.goto(f"{app_url}/mean")
    settle(page)
    page.get_by_test_id("stExpandSidebarButton").click()
    pages = page.get_by_role("navigation", name="Pages")
    expect(pages).to_be_in_viewport()
    expect(pages.locator("[aria-current=page]")).to_have_text(re.compile("Mean$"))
    # A folded group opens by key.
    expect(pages.get_by_role("link", name="Recommender")).not_to_be_visible()
    pages.locator("summary").press("Enter")
    expect(pages.get_by_role("link", name="Recommender")).to_be_visible()
    settle(page)
    pages.get_by_role("link", name="Recommender").click()
    expect(page.get_by_role("heading", level=1, name="Recommender")).to_be_visible()
    expect(pages).not_to_be_in_viewport()
