"""What a person must be able to read at 390 and at 1280 pixels: labels, numbers, ticks, fields, code."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from pages.shared.base import catalogue
from tests.browser.accessible import violations
from tests.browser.browser import settle
from tests.browser.test_first_screen import NARROW, look_in_a_narrow_window
from tests.browser.test_journeys import (
    SHOP_EVENTS,
    WIDE,
    choose_file,
    go_to,
    press,
    short_axes,
    short_axes_are_drawn,
)

# Texts of figures that lie under one of Plotly's buttons; values, choices and badges that are cut; buttons too low to
# press.
UNREADABLE = """() => {
    const found = [], main = document.querySelector("[data-testid='stMain']");
    const box = e => e.getBoundingClientRect();
    const meet = (a, b) =>
        Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
        Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1;
    for (const plot of main.querySelectorAll('.js-plotly-plot')) {
        const buttons = [...plot.querySelectorAll('.modebar-btn')].map(box);
        if (!buttons.length) found.push('no buttons');
        for (const text of plot.querySelectorAll('.main-svg text'))
            if (box(text).width && buttons.some(b => meet(b, box(text)))) found.push(`under: ${text.textContent}`);
    }
    for (const value of main.querySelectorAll("[data-testid='stMetricValue'], [data-testid='stMetricValue'] *"))
        if (value.scrollWidth > value.clientWidth + 1 && getComputedStyle(value).overflowX !== 'visible')
            found.push(`cut: ${value.innerText}`);
    for (const button of main.querySelectorAll('button, .stMarkdownColoredBackground')) {
        if (!button.innerText || !box(button).width || button.closest("[role='tablist']")) continue;
        let around = button.parentElement;
        while (around !== main && getComputedStyle(around).overflowX === 'visible') around = around.parentElement;
        if (box(button).right > box(around).right + 2) found.push(`beyond: ${button.innerText}`);
    }
    for (const button of main.querySelectorAll('button'))
        if (button.innerText && box(button).height && box(button).height < 20) found.push(`low: ${button.innerText}`);
    return found;
}"""

# Names of pages in the sidebar that end in three dots. The one of the open page is bold, and needs most.
CUT_NAMES = """() =>
    [...document.querySelectorAll("[data-testid='stSidebarNavLink'] > :last-child")]
        .filter(name => name.scrollWidth > name.clientWidth).map(name => name.innerText)"""


def drawn(page: Page) -> None:
    """Wait until every figure of the page is there, its buttons included."""
    settle(page)
    page.wait_for_function(
        """() => [...document.querySelectorAll("[data-testid='stMain'] [class*='st-key-figure_']")]
            .every(e => e.querySelector('.modebar-btn') && e.querySelector('.ytick text'))"""
    )


def with_private_events(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/your-data")
    settle(page)
    press(page.get_by_text("Upload a file"))
    choose_file(page, "shop_events.csv", SHOP_EVENTS.read_bytes())
    press(page.get_by_role("button", name="Use these data"))


RANGES = {"mean": ("lower", "upper"), "quantile": ("low", "high"), "factorisation": ("lowest", "highest")}


def test_nothing_on_private_data_is_covered_or_cut_in_a_narrow_window(page: Page, app_url: str) -> None:
    with_private_events(page, app_url)
    page.emulate_media(color_scheme="dark")
    settle(page)
    assert violations(page, "[data-testid='stSidebar']", dark=True) == []
    page.set_viewport_size(NARROW)
    for spec in catalogue.PAGES:
        if spec.name == "training":  # In its own journey.
            continue
        go_to(page, spec.title, whole=False, folded=True)
        for key, number in zip(RANGES.get(spec.name, ()), ("0", "100"), strict=False):
            field = page.locator(
                f".st-key-{spec.name}-{key} input"
            )  # Of private values the page asks for it.
            field.fill(number)
            field.press("Enter")
            settle(page)
        if spec.name == "data_owners":  # Its owners are entered, and public, unless the data's are asked for.
            press(page.get_by_role("button", name="More settings"))
            press(page.get_by_role("radio", name="Of the data in use"))
            page.keyboard.press("Escape")
            settle(page)
        drawn(page)
        labels = page.locator(".js-plotly-plot .annotation", has_text="do not")
        if not spec.own_data and spec.name != "papers":  # It shows stored results, and no data in use.
            expect(labels.first).to_be_attached()
        assert page.evaluate(UNREADABLE) == [], spec.title
        look_in_a_narrow_window(page, spec.title)


def test_an_axis_is_written_in_one_way_and_all_of_a_choice_is_seen_beside_the_sidebar(
    page: Page, app_url: str
) -> None:
    page.goto(f"{app_url}/sum-and-count")
    drawn(page)
    ticks = page.locator(".js-plotly-plot .xtick text, .js-plotly-plot .ytick text").all_text_contents()
    assert "1,000,000" in ticks
    assert not [tick for tick in ticks if not re.fullmatch(r"[\d,]+(\.\d+)?", tick)]
    page.set_viewport_size({"width": 1024, "height": 900})
    drawn(page)
    assert page.evaluate(UNREADABLE) == [], "Sum and count"
    for title in ("Mean", "Many tasks", "Learning under a bound"):
        go_to(page, title)
        drawn(page)
        assert page.evaluate(UNREADABLE) == [], title
    expect(page.get_by_test_id("stSidebarNavLink")).to_have_count(len(catalogue.PAGES))
    assert page.evaluate(CUT_NAMES) == []
    # Beyond seven digits: powers of ten, on all of the axis.
    page.set_viewport_size(WIDE)
    press(page.get_by_role("tab", name="The paper"))
    press(page.get_by_role("tab", name="Figure 2"))
    drawn(page)
    ticks = page.locator(".st-key-learning_figure_2 .xtick text").all_text_contents()
    written = [tick.replace("\N{ZERO WIDTH SPACE}", "") for tick in ticks]
    assert written == [*(f"10−{k}" for k in range(6, 0, -1)), "1"]


def test_a_short_axis_is_drawn_and_code_of_ninety_characters_is_read_without_wrapping(
    page: Page, app_url: str
) -> None:
    page.goto(f"{app_url}/{short_axes(5, 10)}")
    settle(page)
    short_axes_are_drawn(page, 5, 10)
    page.get_by_text("Code for your library").click()
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
