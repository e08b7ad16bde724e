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
PAGES_WITHOUT_FIGURE = {"plan", "release-sheet"}
"""Pages that are empty in a new session."""
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
            const box = found?.getBoundingClientRect();
            if (!box?.height) continue;  // A figure that replaces another one is hidden until it is drawn.
            const y = box.top + main.scrollTop;
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
class ScreenResult:
    """What a page's first screen is like, and what has moved on it."""

    words: int
    shown_share: float
    tabs: int
    moves_of_steps: list[list[Any]] = field(default_factory=list)
    moves_of_tabs: list[list[Any]] = field(default_factory=list)
    zoom: str = "-"


def find_figure(page: Page) -> Locator:
    """Return the main figure."""
    return page.get_by_test_id("stMain").locator(".js-plotly-plot").first


def measure_shown_share(page: Page) -> float:
    """Return the share of the main figure's height on the first screen; NaN where a page has none."""
    box = find_figure(page).bounding_box() if find_figure(page).count() else None
    if box is None:
        return float("nan")
    return max(0.0, min(box["y"] + box["height"], SCREEN["height"]) - max(box["y"], 0.0)) / box["height"]


def draw_zoom(page: Page) -> list[list[float]]:
    """Draw a box over the middle of the main figure; return the ranges that follow."""
    area = find_figure(page).locator(".nsewdrag").first.bounding_box()
    assert area is not None
    page.mouse.move(area["x"] + 0.3 * area["width"], area["y"] + 0.3 * area["height"])
    page.mouse.down()
    page.mouse.move(area["x"] + 0.7 * area["width"], area["y"] + 0.8 * area["height"], steps=4)
    page.mouse.up()
    page.mouse.move(5, 5)
    helpers.settle(page)
    ranges: list[list[float]] = find_figure(page).evaluate(RANGES)
    return ranges


def step_control(page: Page, name: str, count: int) -> list[list[Any]]:
    """Move the main control there and back; return what has moved with it."""
    moves: list[list[Any]] = []
    slider = page.locator(".st-key-epsilon_slider").get_by_role("slider")
    for number in range(2 * count if slider.count() or name in LISTS else 0):
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
        new_moves = page.evaluate("() => window.whatMoved()")
        moves += new_moves if slider.count() else [move for move in new_moves if move[0] != "box"]
    return moves


def open_all_tabs(page: Page) -> list[list[Any]]:
    """Open every tab, those within tabs too; return what has moved at or above the row."""
    moves: list[list[Any]] = []
    rows = page.get_by_test_id("stMain").get_by_role("tablist")
    for outer_index in range(rows.first.get_by_role("tab").count() if rows.count() else 0):
        moves += open_tab(page, rows.first, outer_index)
        # What lies within the tab that is open now; rows of the others stay in the page, unseen.
        for inner in rows.all()[1:]:
            if not inner.is_visible():
                continue
            for number in range(inner.get_by_role("tab").count()):
                moves += open_tab(page, inner, number)
    return moves


def open_tab(page: Page, row: Locator, number: int) -> list[list[Any]]:
    """Open one tab of a row; return the moves of the row, and of what stands above the first row."""
    row.evaluate("e => e.scrollIntoView({block: 'start'})")
    page.wait_for_timeout(100)
    position_script = (
        "(e) => e.getBoundingClientRect().top + document.querySelector(\"[data-testid='stMain']\").scrollTop"
    )
    position_before = row.evaluate(position_script)
    page.evaluate(WATCH, NOTICED)
    tab = row.get_by_role("tab").nth(number)
    words = tab.inner_text()
    tab.evaluate("e => e.click()")
    helpers.settle(page)
    moves = [move for move in page.evaluate("() => window.whatMoved()") if move[0] != "box"]
    position_after = row.evaluate(position_script)
    if abs(position_after - position_before) > NOTICED:
        moves.append(["row", words, round(position_before), round(position_after)])
    return moves


def check_page(chromium: Browser, url: str, name: str, count: int) -> ScreenResult:
    """Check one page in a browser that has stored nothing."""
    page = helpers.listen(chromium.new_context(viewport=SCREEN).new_page())  # type: ignore[arg-type]
    page.set_default_timeout(1000 * helpers.SETTLE_LIMIT)
    page.goto(f"{url}/{name}")
    if name not in PAGES_WITHOUT_FIGURE:  # Training has one once its first runs are made.
        page.wait_for_selector("[data-testid='stMain'] .js-plotly-plot .main-svg", state="attached")
    helpers.settle(page)
    page.wait_for_timeout(1000)
    helpers.settle(page)
    rows = page.get_by_test_id("stMain").get_by_role("tablist").all()
    result = ScreenResult(
        page.evaluate(WORDS, SCREEN["height"]),
        measure_shown_share(page),
        max((row.get_by_role("tab").count() for row in rows), default=0),
    )
    if find_figure(page).count() and name not in LISTS:  # Another list's figure has other axes.
        zoomed_ranges = draw_zoom(page)
        find_figure(page).evaluate("e => { e.dataset.seen = 'yes' }")
        result.moves_of_steps = step_control(page, name, count)
        same = find_figure(page).evaluate("e => e.dataset.seen") == "yes"
        result.zoom = "kept" if same and find_figure(page).evaluate(RANGES) == zoomed_ranges else "lost"
    else:
        result.moves_of_steps = step_control(page, name, count)
    result.moves_of_tabs = open_all_tabs(page)
    page.context.close()
    return result


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
            result = check_page(chromium, url, name, flags.steps)
            print(
                f"{name or 'start':20s} {result.words:5d} {100 * result.shown_share:5.0f} % {result.tabs:4d}"
                f" {len(result.moves_of_steps):12d} {len(result.moves_of_tabs):5d}  {result.zoom}",
                flush=True,
            )
            if flags.why:
                for cause, moves in (("step", result.moves_of_steps), ("tab", result.moves_of_tabs)):
                    for box_name, words, position_before, position_after in moves:
                        print(
                            f"    {cause}: {box_name} {words[:NEAR]!r} {position_before} -> {position_after}"
                        )
        if app is not None:
            app.stop()
        chromium.close()


if __name__ == "__main__":
    main()
