"""What a person must be able to read at 390 and at 1280 pixels: labels, numbers, ticks, fields, code."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from pages.shared import catalogue
from tests.browser.browser import settle
from tests.browser.test_journeys import NARROW, SHOP_EVENTS, WIDE, choose_file, go_to, press

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


def open_page(page: Page, title: str) -> None:
    """To another page, in a window of any width: the narrow one folds the sidebar."""
    page.set_viewport_size(WIDE)
    go_to(page, title, whole=False)
    page.set_viewport_size(NARROW)


RANGES = {"mean": ("lower", "upper"), "quantile": ("low", "high"), "factorisation": ("lowest", "highest")}


def test_nothing_on_private_data_is_covered_or_cut_in_a_narrow_window(page: Page, app_url: str) -> None:
    with_private_events(page, app_url)
    for spec in catalogue.PAGES:
        if spec.own_data:
            continue
        open_page(page, spec.title)
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
        expect(labels.first).to_be_attached()
        assert page.evaluate(UNREADABLE) == [], spec.title


def test_all_of_a_choice_is_seen_beside_the_sidebar(page: Page, app_url: str) -> None:
    page.set_viewport_size({"width": 1024, "height": 900})
    page.goto(f"{app_url}/mean")
    for title in ("Mean", "Sum and count", "Learning under a cap", "Many tasks"):
        go_to(page, title)
        drawn(page)
        assert page.evaluate(UNREADABLE) == [], title


def test_a_long_range_on_a_card_is_not_cut(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/quantile?link=1&data=shop-events&epsilon=1&low=0&high=1")
    for viewport in (WIDE, NARROW):
        page.set_viewport_size(viewport)  # type: ignore[arg-type]
        drawn(page)
        assert re.search(r"0\.\d+ to 0\.\d+", page.get_by_test_id("stMain").inner_text())
        assert page.evaluate(UNREADABLE) == []


def test_an_axis_is_written_in_one_way(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/sum-and-count")
    drawn(page)
    ticks = page.locator(".js-plotly-plot .xtick text, .js-plotly-plot .ytick text").all_text_contents()
    assert "1,000,000" in ticks
    assert not [tick for tick in ticks if not re.fullmatch(r"[\d,]+(\.\d+)?", tick)]
    # Beyond seven digits: powers of ten, on all of the axis.
    go_to(page, "Learning under a cap")
    press(page.get_by_role("tab", name="Figure 2"))
    drawn(page)
    ticks = page.locator(".st-key-learning_figure_2 .xtick text").all_text_contents()
    written = [tick.replace("\N{ZERO WIDTH SPACE}", "") for tick in ticks]
    assert written == [*(f"10−{k}" for k in range(6, 0, -1)), "1"]


def test_a_number_drawn_stands_below_its_button_and_nothing_moves(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/choose-privately")
    page.set_viewport_size(WIDE)
    drawn(page)
    tops = page.evaluate(
        """() => [...document.querySelectorAll(
            '.st-key-private_choice_inputs [data-testid="stNumberInputContainer"]')]
            .map(e => e.getBoundingClientRect().top)"""
    )
    assert len(tops) == 2
    assert max(tops) - min(tops) < 1
    page.set_viewport_size(NARROW)
    button = page.get_by_role("button", name="Choose one number privately")
    button.scroll_into_view_if_needed()
    drawn(page)
    before = button.bounding_box()
    for draws in (1, 2):
        button.click()
        expect(page.locator(".st-key-private_chosen").get_by_text("exponential mechanism")).to_have_count(
            draws
        )
        settle(page)
        after, result = button.bounding_box(), page.locator(".st-key-private_chosen").bounding_box()
        assert before is not None
        assert after is not None
        assert result is not None
        assert after["y"] == pytest.approx(before["y"], abs=1.0)
        assert 0.0 < result["y"] - (after["y"] + after["height"]) < 120.0


def test_code_of_ninety_characters_is_read_without_wrapping(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/mean?link=1&data=shop-events&epsilon=1")
    settle(page)
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
