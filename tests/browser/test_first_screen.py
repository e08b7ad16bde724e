"""What the first screen of a page shows, and that axes are written in one way."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from playwright.sync_api import Locator, Page, expect

from pages.shared.base import catalogue
from pages.shared.screen import layout
from tests.browser.accessible import list_violations
from tests.browser.browser import press, settle
from tests.browser.test_journeys import go_to

SCREEN = {"width": 1280, "height": 800}
NARROW = {"width": 390, "height": 900}
MOST_WORDS = 120
MOST_TABS = 6
LEAST_FIGURE = 360
# Words outside the sidebar that the first screen shows; what a figure says in itself does not count.
WORDS = """(height) => {
  const main = document.querySelector("[data-testid='stMain']");
  const walk = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
  const ICON = "[data-testid='stIconMaterial'], [role='img']";  // Its text is the name of a picture.
  let words = 0;
  while (walk.nextNode()) {
    const node = walk.currentNode, text = node.textContent.trim();
    if (!text || node.parentElement.closest(`.js-plotly-plot, .katex-mathml, script, style, ${ICON}`)) continue;
    if (!node.parentElement.checkVisibility()) continue;  // In a closed section.
    const range = document.createRange();
    range.selectNodeContents(node);
    const box = range.getBoundingClientRect();
    if (box.height > 0 && box.top < height && box.bottom > 0) words += text.split(/\\s+/).length;
  }
  return words;
}"""


# Texts of figures that lie under one of Plotly's buttons; values, notes, choices and badges that are cut; targets of
# less than 24 pixels.
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
    for (const line of main.querySelectorAll('.sweetspot-seen > .line'))
        if (line.scrollWidth > line.clientWidth || line.scrollHeight > line.clientHeight + 1)
            found.push(`cut: ${line.innerText}`);
    for (const button of main.querySelectorAll('button, .stMarkdownColoredBackground')) {
        if (!button.innerText || !box(button).width || button.closest("[role='tablist']")) continue;
        let around = button.parentElement;
        while (around !== main && getComputedStyle(around).overflowX === 'visible') around = around.parentElement;
        if (box(button).right > box(around).right + 2) found.push(`beyond: ${button.innerText}`);
    }
    for (const target of main.querySelectorAll("button, a[href], summary, [role='tab'], label:has(input)")) {
        const side = Math.min(box(target).width, box(target).height);
        if (side && side < 23.9 && target.checkVisibility({ opacityProperty: true }))
            found.push(`small: ${target.innerText || target.ariaLabel}`);
    }
    return found;
}"""

# Names of pages in the sidebar that end in three dots. The one of the open page is bold, and needs most.
CUT_NAMES = """() =>
    [...document.querySelectorAll(".st-key-navigation a > :last-child")]
        .filter(name => name.scrollWidth > name.clientWidth).map(name => name.innerText)"""


def wait_for_figures(page: Page) -> None:
    """Wait until every figure of the page is there, its buttons included."""
    settle(page)
    page.wait_for_function(
        """() => [...document.querySelectorAll("[data-testid='stMain'] [class*='st-key-figure_']")]
            .every(e => e.querySelector('.modebar-btn') && e.querySelector('.ytick text'))"""
    )


def main_figure(page: Page) -> Locator:
    page.wait_for_selector("[data-testid='stMain'] .js-plotly-plot .main-svg", state="attached")
    return page.get_by_test_id("stMain").locator(".js-plotly-plot").first


WITHOUT_FIGURE = ("Budget plan", "Release sheet")
"""Pages whose first screen has a table in place of a figure."""


def fill_plan(page: Page) -> None:
    """Add to an empty plan what any data have."""
    for name in ("Add number of users", "Add number of rows"):
        press(page.get_by_role("button", name=name, exact=True))


def look_at_first_screen(page: Page, most_words: float, text: str) -> None:
    """At 1280 pixels the figure is whole, there is little to read, and axe finds nothing that somebody cannot read."""
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(SCREEN)
    page.get_by_test_id("stMain").evaluate("e => e.scrollTo(0, 0)")  # The page before may have been scrolled.
    settle(page)
    assert page.evaluate(WORDS, SCREEN["height"]) <= most_words, text
    assert list_violations(page) == [], text
    if text in WITHOUT_FIGURE:
        return
    box = main_figure(page).bounding_box()
    assert box is not None, text
    # With what stands below it while its bound is dragged.
    frame = page.get_by_test_id("stMain").locator(".sweetspot-figure").first.bounding_box()
    assert frame is not None, text
    assert frame["height"] >= LEAST_FIGURE, text
    assert box["y"] + box["height"] <= SCREEN["height"], text


def look_in_a_narrow_window(page: Page, text: str) -> None:
    """At 390 pixels, in the dark, nothing is cut, the number is on the first screen, and contrasts are enough."""
    if page.viewport_size != NARROW:
        page.emulate_media(color_scheme="dark")
        page.set_viewport_size(NARROW)
        settle(page)
    number = page.locator(".sweetspot-number .value")
    if text not in WITHOUT_FIGURE and number.count():
        box = number.first.bounding_box()
        assert box is not None, text
        assert box["y"] + box["height"] <= NARROW["height"], text
    wider = page.evaluate(
        """() => [document.scrollingElement, document.querySelector("[data-testid='stMain']")]
            .map(e => e.scrollWidth - e.clientWidth)"""
    )
    assert max(wider) <= 1, text
    assert list_violations(page, dark=True) == [], text
    assert page.get_by_role("tab").count() <= MOST_TABS, text
    # Names along the axis do not run into each other; slanted ones and those of three lines may share a place.
    meeting = """e => {
        const names = e._fullLayout.xaxis.tickangle === 0 ? [...e.querySelectorAll('.xtick text')] : [];
        const boxes = names.filter(t => t.querySelectorAll('.line').length < 3).map(t => t.getBoundingClientRect());
        return boxes.filter((box, k) => k && box.left < boxes[k - 1].right - 1).length;
    }"""
    assert text in WITHOUT_FIGURE or main_figure(page).evaluate(meeting) == 0, text
    computed = page.get_by_role("tab", name=layout.COMPUTED)
    if computed.count():
        computed.evaluate("e => e.click()")
        formulae = page.get_by_test_id("stMain").locator(".katex-display:visible")
        expect(formulae.first).to_be_visible()
        settle(page)
        cut = """all => all.filter(e => e.scrollWidth > e.clientWidth + 1)
            .map(e => e.querySelector('annotation').textContent)"""
        assert formulae.evaluate_all(cut) == [], text


def a_demonstration_says_so(page: Page) -> None:
    """Quantile without values: invented data, named once on the card and once in the figure."""
    card = page.locator(".st-key-quantile_card")
    expect(card.get_by_text("Keep at most").first).to_be_visible()
    expect(card.get_by_text("Invented data")).to_be_visible()
    label = page.locator(".st-key-quantile_error .annotation", has_text="Demonstration")
    expect(label).to_be_attached()


def ticks_are_whole_numbers_in_one_way(page: Page) -> None:
    """On Sum and count."""
    ticks = page.locator(".js-plotly-plot .xtick text, .js-plotly-plot .ytick text").all_text_contents()
    assert "1,000,000" in ticks
    assert not [tick for tick in ticks if not re.fullmatch(r"[\d,]+(\.\d+)?", tick)]


def ticks_beyond_seven_digits_are_powers_of_ten(page: Page) -> None:
    """On all of the axis, on Bias curves over τ₀."""
    press(page.get_by_role("tab", name="The paper"))
    press(page.get_by_role("tab", name="Figure 2"))
    wait_for_figures(page)
    ticks = page.locator(".st-key-learning_figure_2 .xtick text").all_text_contents()
    written = [tick.replace("\N{ZERO WIDTH SPACE}", "") for tick in ticks]
    assert written == [*(f"10−{k}" for k in range(6, 0, -1)), "1"]


def all_is_seen_beside_the_sidebar(page: Page, text: str) -> None:
    page.set_viewport_size({"width": 1024, "height": 900})
    wait_for_figures(page)
    assert page.evaluate(UNREADABLE) == [], text
    num_closed = sum(question.navigation_group in catalogue.FOLDED_GROUPS for question in catalogue.PAGES)
    links = page.locator(".st-key-navigation").get_by_role("link")
    expect(links).to_have_count(len(catalogue.PAGES) - num_closed)
    assert links.and_(page.locator("[aria-current=page]")).count() == 1, text
    assert page.evaluate(CUT_NAMES) == [], text


SHOWN_DATA = {
    "Group by": "invented shop purchases",
    "Quantile": "invented shop purchases",
    "Multi-task weights": "generated users and tasks",
    "Paper comparison": "each paper's own",
    "Linear regression": "Generated, 3,000 rows",
    "Recommender": "generated ratings",
    "Join or train alone": "none, only the numbers entered",
}
"""What the sidebar names on pages that do not show the data in use."""
ELSEWHERE = ("The largest gap", "Classifier")
"""Pages with a journey of their own, whose first screens are looked at there."""


FIRST = ("Home", "Mean", "Budget plan")
OTHERS = [spec.title for spec in catalogue.PAGES if spec.title not in (*FIRST, *ELSEWHERE)]


# Narrow windows are looked at on private data (`test_looks`), where there is more to show.
@pytest.mark.parametrize(
    "titles", [FIRST, pytest.param(OTHERS, marks=pytest.mark.long)], ids=["first", "others"]
)
def test_the_figure_is_whole_and_there_is_little_to_read(
    titles: Sequence[str], page: Page, app_url: str
) -> None:
    page.set_viewport_size(SCREEN)
    page.goto(app_url)
    settle(page)
    assert list_violations(page, "body") == []
    for title in titles:
        go_to(page, title)
        shown_data = SHOWN_DATA.get(title, "Online Retail")
        expect(page.locator(".st-key-shell_data")).to_contain_text(f"Data: {shown_data}")
        if title == "Budget plan":
            fill_plan(page)
        if title == "Quantile":
            a_demonstration_says_so(page)
        look_at_first_screen(page, MOST_WORDS, title)
        if title == "Sum and count":
            ticks_are_whole_numbers_in_one_way(page)
        if title == "Bias curves over τ₀":
            ticks_beyond_seven_digits_are_powers_of_ten(page)
        if title in ("Mean", "Sum and count", "Multi-task weights", "Bias curves over τ₀"):
            all_is_seen_beside_the_sidebar(page, title)
