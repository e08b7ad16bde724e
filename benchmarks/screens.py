"""What a person meets on every page, in a browser: what its first screen shows, and whether anything jumps.

    .venv/bin/python benchmarks/screens.py [--pages mean learning] [--steps 3] [--why]

One line per page, at 1280 x 800 pixels:

- *words* that the first screen shows outside the sidebar and the figure;
- *figure*: the share of the main figure's height that it shows;
- *tabs*: the longest row of them;
- *jumps*: how often something was moved up or down, first while the main control goes some steps there and back
  (epsilon, or the page's own list where it has none), then while every tab is opened. Seen twice: by what the browser
  reports of moved boxes (`layout-shift`), and by the places of control, figure, card and tabs in every frame. The
  browser's own scrolling, where what was below has become shorter, is none, and neither are sentences about other
  data or another figure that a list has chosen: they are others, with lines of their own;
- *zoom*: whether the range of the main figure that was chosen by hand, and its element, are those of before.

With `--why`, what moved from where to where.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from playwright.sync_api import Browser, Locator, Page, sync_playwright

from pages.shared.base import catalogue
from tests.browser import browser as helpers
from tests.browser.conftest import browser_flags
from tests.browser.test_first_screen import SCREEN, WORDS

LISTS = {"your-data": "Sample", "reproduce": "Figure"}
"""The main control of the pages without epsilon."""
NOTICED = 8
"""Pixels up or down that are no jump: less than a third of a line of text."""
NEAR = 40
"""Characters that say which box has moved."""

# Collects what moves in the page until it is asked. Heights count from the top of what is scrolled.
WATCH = """noticed => {
    const main = document.querySelector("[data-testid='stMain']");
    const named = {
        control: ".st-key-epsilon_slider, [data-testid='stMain'] [data-testid='stSelectbox']",
        figure: "[data-testid='stMain'] .js-plotly-plot",
        card: "[data-testid='stMain'] [class*='_card']",
        tabs: "[data-testid='stMain'] [role='tablist']",
    };
    const say = node => ((node.innerText || node.parentElement?.innerText || "").trim().slice(0, 40)
        || node.className?.toString() || node.nodeName).replace(/\\s+/g, " ");
    const moved = [];
    const seen = new PerformanceObserver(list => {
        for (const entry of list.getEntries()) for (const {node, previousRect: was, currentRect: is} of entry.sources) {
            const element = node?.nodeType === 1 ? node : node?.parentElement;
            if (!element || !main.contains(element) || element.closest(".js-plotly-plot")) continue;
            // A box that appears, goes or is rolled out of sight has no height on one side.
            if (!was.height || !is.height || Math.abs(is.top - was.top - scrolledBy(entry)) <= noticed) continue;
            moved.push(["box", say(element), Math.round(was.top), Math.round(is.top)]);
        }
    });
    let last = {}, scrolls = [[performance.now(), main.scrollTop]], going = true;
    const scrolledBy = entry => {
        const before = scrolls.filter(([at]) => at < entry.startTime - 50).at(-1) ?? scrolls[0];
        return before[1] - main.scrollTop;
    };
    const look = () => {
        if (!going) return;
        scrolls.push([performance.now(), main.scrollTop]);
        for (const [name, where] of Object.entries(named)) {
            const found = document.querySelector(where);
            if (!found) continue;
            const y = found.getBoundingClientRect().top + main.scrollTop;
            if (name in last && Math.abs(y - last[name]) > noticed)
                moved.push([name, say(found), Math.round(last[name]), Math.round(y)]);
            last[name] = y;
        }
        requestAnimationFrame(look);
    };
    look();
    seen.observe({type: "layout-shift", buffered: false});
    window.whatMoved = () => { going = false; seen.disconnect(); return moved; };
}"""
RANGES = """e => ["xaxis", "yaxis"].map(name => (e._fullLayout[name]?.range ?? []).map(Number))"""


@dataclass
class Looked:
    """What a page's first screen is like, and what has moved on it."""

    words: int
    shown: float
    tabs: int
    stepped: list[list[Any]] = field(default_factory=list)
    opened: list[list[Any]] = field(default_factory=list)
    zoom: str = "-"


def figure(page: Page) -> Locator:
    """The main figure."""
    return page.get_by_test_id("stMain").locator(".js-plotly-plot").first


def shown(page: Page) -> float:
    """The share of the main figure's height on the first screen; NaN where a page has none."""
    box = figure(page).bounding_box() if figure(page).count() else None
    if box is None:
        return float("nan")
    return max(0.0, min(box["y"] + box["height"], SCREEN["height"]) - max(box["y"], 0.0)) / box["height"]


def zoom(page: Page) -> list[list[float]]:
    """Draw a box over the middle of the main figure; the ranges that follow."""
    area = figure(page).locator(".nsewdrag").first.bounding_box()
    assert area is not None
    page.mouse.move(area["x"] + 0.3 * area["width"], area["y"] + 0.3 * area["height"])
    page.mouse.down()
    page.mouse.move(area["x"] + 0.7 * area["width"], area["y"] + 0.8 * area["height"], steps=4)
    page.mouse.up()
    page.mouse.move(5, 5)
    helpers.settle(page)
    ranges: list[list[float]] = figure(page).evaluate(RANGES)
    return ranges


def steps(page: Page, name: str, count: int) -> list[list[Any]]:
    """Move the main control there and back; what has moved with it."""
    moved: list[list[Any]] = []
    slider = page.locator(".st-key-epsilon_slider").get_by_role("slider")
    for number in range(2 * count):
        if slider.count():
            slider.focus()
            page.evaluate(WATCH, NOTICED)
            page.keyboard.press("ArrowRight" if number < count else "ArrowLeft")
        else:
            box = page.get_by_test_id("stMain").get_by_role("combobox", name=LISTS[name]).first
            box.click()
            page.wait_for_timeout(300)
            page.keyboard.press("ArrowDown" if number < count else "ArrowUp")
            page.evaluate(WATCH, NOTICED)
            page.keyboard.press("Enter")
        helpers.settle(page)
        said = page.evaluate("() => window.whatMoved()")
        moved += said if slider.count() else [one for one in said if one[0] != "box"]
    return moved


def tabs_opened(page: Page) -> list[list[Any]]:
    """Open every tab, those within tabs too; what has moved at or above the row."""
    moved: list[list[Any]] = []
    rows = page.get_by_test_id("stMain").get_by_role("tablist")
    for outer in range(rows.first.get_by_role("tab").count() if rows.count() else 0):
        moved += opened(page, rows.first, outer)
        # What lies within the tab that is open now; rows of the others stay in the page, unseen.
        for inner in rows.all()[1:]:
            if not inner.is_visible():
                continue
            for number in range(inner.get_by_role("tab").count()):
                moved += opened(page, inner, number)
    return moved


def opened(page: Page, row: Locator, number: int) -> list[list[Any]]:
    """Open one tab of a row; the moves of the row, and of what stands above the first row."""
    row.evaluate("e => e.scrollIntoView({block: 'start'})")
    page.wait_for_timeout(100)
    where = (
        "(e) => e.getBoundingClientRect().top + document.querySelector(\"[data-testid='stMain']\").scrollTop"
    )
    before = row.evaluate(where)
    page.evaluate(WATCH, NOTICED)
    tab = row.get_by_role("tab").nth(number)
    words = tab.inner_text()
    tab.evaluate("e => e.click()")
    helpers.settle(page)
    moved = [one for one in page.evaluate("() => window.whatMoved()") if one[0] != "box"]
    after = row.evaluate(where)
    if abs(after - before) > NOTICED:
        moved.append(["row", words, round(before), round(after)])
    return moved


def look(chromium: Browser, url: str, name: str, count: int) -> Looked:
    """One page, in a browser that has stored nothing."""
    page = helpers.listen(chromium.new_context(viewport=SCREEN).new_page())  # type: ignore[arg-type]
    page.set_default_timeout(1000 * helpers.SETTLE_LIMIT)
    page.goto(f"{url}/{name}")
    # Training has a figure once its first runs are made.
    page.wait_for_selector("[data-testid='stMain'] .js-plotly-plot .main-svg", state="attached")
    helpers.settle(page)
    page.wait_for_timeout(1000)
    helpers.settle(page)
    rows = page.get_by_test_id("stMain").get_by_role("tablist").all()
    found = Looked(
        page.evaluate(WORDS, SCREEN["height"]),
        shown(page),
        max((row.get_by_role("tab").count() for row in rows), default=0),
    )
    if figure(page).count() and name not in LISTS:  # Another list's figure has other axes.
        chosen = zoom(page)
        figure(page).evaluate("e => { e.dataset.seen = 'yes' }")
        found.stepped = steps(page, name, count)
        same = figure(page).evaluate("e => e.dataset.seen") == "yes"
        found.zoom = "kept" if same and figure(page).evaluate(RANGES) == chosen else "lost"
    else:
        found.stepped = steps(page, name, count)
    found.opened = tabs_opened(page)
    page.context.close()
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    addresses = [spec.url_path for spec in catalogue.PAGES]
    parser.add_argument("--pages", nargs="*", default=addresses)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--why", action="store_true")
    parser.add_argument("--url", help="of an app that runs already")
    flags = parser.parse_args()
    try:
        path = helpers.find_browser()
    except helpers.BrowserMissingError as missing:
        print(missing)
        return
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        chromium = playwright.chromium.launch(executable_path=path, args=browser_flags())
        app = None if flags.url else helpers.start_app(Path(folder) / "app.log")
        url = flags.url or (app.url if app else "")
        helpers.launcher.is_answering(f"{url}/_stcore/script-health-check", helpers.START_LIMIT)
        print(
            f"{'page':20s} {'words':>5s} {'figure':>7s} {'tabs':>4s} {'jumps: steps':>12s} {'tabs':>5s}  zoom"
        )
        for name in flags.pages:
            found = look(chromium, url, name, flags.steps)
            print(
                f"{name or 'start':20s} {found.words:5d} {100 * found.shown:5.0f} % {found.tabs:4d}"
                f" {len(found.stepped):12d} {len(found.opened):5d}  {found.zoom}",
                flush=True,
            )
            if flags.why:
                for what, moved in (("step", found.stepped), ("tab", found.opened)):
                    for kind, words, before, after in moved:
                        print(f"    {what}: {kind} {words[:NEAR]!r} {before} -> {after}")
        if app is not None:
            app.stop()
        chromium.close()


if __name__ == "__main__":
    main()
