"""What the first screen of a page shows, and that a reload comes back to it."""

from __future__ import annotations

import math
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Locator, Page, expect

from pages.shared import catalogue, layout
from tests.browser.browser import settle
from tests.browser.test_journeys import SHOP_EVENTS, go_to

SCREEN = {"width": 1280, "height": 800}
NARROW = {"width": 390, "height": 900}
MOST_WORDS = 120
LEAST_FIGURE = 360
# Words outside the sidebar that the first screen shows; what a figure says in itself does not count.
WORDS = """(height) => {
  const main = document.querySelector("[data-testid='stMain']");
  const walk = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
  let words = 0;
  while (walk.nextNode()) {
    const node = walk.currentNode, text = node.textContent.trim();
    if (!text || node.parentElement.closest('.js-plotly-plot, .katex-mathml, script, style')) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const box = range.getBoundingClientRect();
    if (box.height > 0 && box.top < height && box.bottom > 0) words += text.split(/\\s+/).length;
  }
  return words;
}"""


def main_figure(page: Page) -> Locator:
    page.wait_for_selector("[data-testid='stMain'] .js-plotly-plot .main-svg", state="attached")
    return page.get_by_test_id("stMain").locator(".js-plotly-plot").first


def look_at_first_screen(page: Page, most_words: float, what: str) -> None:
    """At 1280 pixels the figure is whole and there is little to read; at 390 nothing is cut."""
    page.set_viewport_size(SCREEN)
    page.get_by_test_id("stMain").evaluate("e => e.scrollTo(0, 0)")  # The page before may have been scrolled.
    settle(page)
    box = main_figure(page).bounding_box()
    assert box is not None, what
    assert box["height"] >= LEAST_FIGURE, what
    assert box["y"] + box["height"] <= SCREEN["height"], what
    assert page.evaluate(WORDS, SCREEN["height"]) <= most_words, what
    page.set_viewport_size(NARROW)
    settle(page)
    narrow = main_figure(page).bounding_box()
    assert narrow is not None, what
    assert narrow["y"] < 900, what
    wider = page.evaluate(
        """() => [document.scrollingElement, document.querySelector("[data-testid='stMain']")]
            .map(e => e.scrollWidth - e.clientWidth)"""
    )
    assert max(wider) <= 1, what
    computed = page.get_by_role("tab", name=layout.COMPUTED)
    if computed.count():
        computed.evaluate("e => e.click()")
        formulae = page.get_by_test_id("stMain").locator(".katex-display:visible")
        expect(formulae.first).to_be_visible()
        settle(page)
        cut = """all => all.filter(e => e.scrollWidth > e.clientWidth + 1)
            .map(e => e.querySelector('annotation').textContent)"""
        assert formulae.evaluate_all(cut) == [], what


def test_the_figure_is_whole_there_is_little_to_read_and_nothing_is_cut_in_a_narrow_window(
    page: Page, app_url: str
) -> None:
    page.goto(app_url)
    settle(page)
    for spec in catalogue.PAGES:
        page.set_viewport_size(SCREEN)  # The narrow window folds the sidebar.
        go_to(page, spec.title)
        look_at_first_screen(page, MOST_WORDS, spec.title)
    # What is chosen first; with other settings there may be more to say.
    page.goto(f"{app_url}/mean?link=1&epsilon=1&counts=private")
    settle(page)
    look_at_first_screen(page, math.inf, "Mean, counts private")


def test_from_a_file_to_a_number_and_back_after_a_reload(page: Page, app_url: str) -> None:
    page.set_viewport_size(SCREEN)
    page.goto(f"{app_url}/your-data")
    settle(page)
    page.get_by_text("Upload a file").click()
    settle(page)
    page.locator("input[type=file]").set_input_files(SHOP_EVENTS)
    settle(page)
    # While it waits, what is in use stands aside.
    expect(page.locator(".st-key-in_use")).to_have_count(0)
    page.get_by_role("button", name="Use these data").click()
    settle(page)
    # The bar says which column answers what, and leads there.
    offers = page.locator(".st-key-your_data_offers")
    expect(offers).to_contain_text("amount →")
    offers.get_by_role("link", name="Mean").click()
    expect(page.get_by_role("heading", level=1, name="Mean")).to_be_visible()
    settle(page)
    # Of private values the range is asked for, and no answer stands before that.
    expect(page.get_by_text("What range can a value have?")).to_be_visible()
    expect(page.locator(".st-key-mean_card")).to_have_count(0)
    for label, number in (("Lowest value L", "0"), ("Highest value U", "100")):
        page.get_by_role("spinbutton", name=label).fill(number)
        page.get_by_role("spinbutton", name=label).press("Enter")
        settle(page)
    expect(page.locator(".st-key-mean_card h4")).to_contain_text("Keep at most")
    # Nothing that may have been read off the values is in the address.
    assert set(parse_qs(urlsplit(page.url).query)) == {
        "link", "data", "epsilon", "variance_source", "counts", "upload",
    }  # fmt: skip


def test_the_keyboard_the_copy_and_the_address_that_follows_a_slider_and_survives_a_reload(
    page: Page, app_url: str
) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"{app_url}/mean")
    settle(page)
    shown = page.locator(".st-key-mean_card .value").inner_text()
    page.locator(".st-key-mean_card").get_by_role("button", name="Copy").click()
    assert page.evaluate("navigator.clipboard.readText()") == shown.split()[0].replace(",", "")

    # The keyboard meets the inputs, then the figure, then the answer.
    slider = page.locator(".st-key-epsilon_slider").get_by_role("slider")
    slider.focus()
    wanted = [
        ".st-key-epsilon", ".st-key-mean-lower", ".st-key-mean-upper", ".st-key-mean_more",
        ".st-key-mean_error", ".st-key-mean_card",
    ]  # fmt: skip
    met: list[str] = []
    for _ in range(60):
        page.keyboard.press("Tab")
        at = page.evaluate(
            "(wanted) => wanted.find(name => document.activeElement.closest(name)) ?? ''", wanted
        )
        if at and at not in met:
            met.append(at)
        if met == wanted:
            break
    assert met == wanted

    # The address follows the slider without filling the history.
    entries = page.evaluate("history.length")
    for _ in range(3):
        slider.press("ArrowRight")
        settle(page)
    assert parse_qs(urlsplit(page.url).query)["epsilon"] == ["3"]
    assert page.evaluate("history.length") == entries
    page.reload()
    settle(page)
    assert page.get_by_role("spinbutton", name="ε, exactly").input_value() == "3"
    expect(page.locator(".st-key-link_problems")).to_have_count(0)
