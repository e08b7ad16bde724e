"""Make the pictures of the documentation in docs/img: the trade-off, and the steps of docs/start.md.

    make docs-pictures

Starts the app, opens a link for each picture, and saves what a window of 1280 x 800 shows, with two pixels for
one so that text stays sharp, and with a palette so that files stay small. Names after the command choose pictures:
`.venv/bin/python docs/pictures.py code`. Needs requirements-dev.txt and the browser that the tests use.
"""

from __future__ import annotations

import io
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

from PIL import Image
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.browser import browser as helpers  # noqa: E402

FOLDER = ROOT / "docs" / "img"
SIZE = {"width": 1280, "height": 800}
SCALE = 2
COLOURS = 192
# Work in the background ends within seconds on a quiet machine.
WORK_LIMIT = 300_000
EVENTS = ROOT / "sample_data" / "shop_events.csv"


@dataclass(frozen=True)
class Picture:
    """One picture.

    Attributes:
        name: Of the file.
        path: In the address; empty for Home.
        fields: Of the link.
        then: What a person does before the picture is taken.
        element: What the picture shows, as a CSS selector; the window if empty.
    """

    name: str
    path: str
    fields: dict[str, str] = field(default_factory=dict)
    then: Callable[[Page], None] | None = None
    element: str = ""


def _press(page: Page, name: str) -> None:
    page.get_by_test_id("stMain").get_by_role("button", name=name).first.click()
    helpers.settle(page)


def _upload(page: Page) -> None:
    page.get_by_test_id("stMain").get_by_text("Upload a file").first.click()
    helpers.settle(page)
    page.locator("input[type=file]").set_input_files(EVENTS)
    helpers.settle(page)
    _press(page, "Use these data")


def _range(page: Page) -> None:
    _upload(page)
    page.get_by_test_id("stMain").get_by_role("link", name="Mean").first.click()
    helpers.settle(page)
    for name, value in (("Lowest value L", "0"), ("Highest value U", "100")):
        bound = page.get_by_role("spinbutton", name=name)
        bound.fill(value)
        bound.press("Enter")
        helpers.settle(page)


MEAN = {
    "data": "shop-events",
    "epsilon": "1",
    "lower": "0",
    "upper": "100",
    "variance_source": "values",
    "target": "table",
    "likeness": "values",
}
# Where a callout stands on the figure of Home: shares of its width and height.
CALLOUTS = (
    (0.17, 0.12, "Too low: data are lost"),
    (0.74, 0.18, "Too high: noise"),
)


def _add_callouts(page: Page) -> None:
    page.evaluate(
        """(callouts) => {
            const figure = document.querySelector("[data-testid='stMain'] .js-plotly-plot");
            figure.style.position = "relative";
            for (const [left, top, text] of callouts) {
                const label = document.createElement("div");
                label.textContent = text;
                label.style.cssText = `position:absolute;left:${100 * left}%;top:${100 * top}%;z-index:9;` +
                    "font:600 15px 'Source Sans', sans-serif;background:#fff;border:1.5px solid #0b5a6b;" +
                    "border-radius:6px;padding:4px 10px;color:#0b3c49;white-space:nowrap";
                figure.append(label);
            }
        }""",
        [list(callout) for callout in CALLOUTS],
    )


def pictures() -> list[Picture]:
    """List the pictures of README and docs."""
    return [
        Picture("tradeoff", "", then=_add_callouts, element="[data-testid='stMain'] .js-plotly-plot"),
        Picture("what-data-answer", "your-data", then=_upload),
        Picture("first-answer", "your-data", then=_range),
        Picture("code", "mean", MEAN, lambda page: _press(page, "Get code")),
    ]


def shoot(page: Page, url: str, picture: Picture) -> bytes:
    """Return a small PNG of the window; refuse a page that shows a problem."""
    link = f"?{urlencode({'link': '1', **picture.fields})}" if picture.fields else ""
    page.goto(f"{url}/{picture.path}{link}")
    helpers.settle(page)
    if picture.then is not None:
        picture.then(page)
    page.locator("[data-testid='stMain'] .js-plotly-plot .main-svg").first.wait_for()
    helpers.stop_button(page).wait_for(state="hidden", timeout=WORK_LIMIT)  # of work in the background
    helpers.settle(page)
    wrong = page.locator("[data-testid='stException'], .st-key-link_problems").all_inner_texts()
    if wrong:
        raise RuntimeError(f"{picture.name} shows a problem: {wrong}")
    page.mouse.move(0, 0)
    page.evaluate(
        "document.activeElement?.blur(); document.querySelector(\"[data-testid='stMain']\").scrollTo(0, 0)"
    )
    page.wait_for_timeout(700)  # the figure's last transition, and what the mouse had opened
    shown = page.locator(picture.element).first if picture.element else page
    image = Image.open(io.BytesIO(shown.screenshot())).convert("RGB")
    small = io.BytesIO()
    # The palette by coverage: by frequency, thin lines lose their colour. Dithering would speckle the plain grounds.
    image.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(
        small, "PNG", optimize=True
    )
    return small.getvalue()


def main() -> None:
    """Start the app, make the pictures, stop the app."""
    wanted = set(sys.argv[1:])
    chosen = [picture for picture in pictures() if not wanted or picture.name in wanted]
    if unknown := wanted - {picture.name for picture in chosen}:
        sys.exit(f"There is no picture called {', '.join(sorted(unknown))}.")
    FOLDER.mkdir(parents=True, exist_ok=True)
    as_root = hasattr(os, "geteuid") and os.geteuid() == 0
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        app = helpers.start_app(Path(folder) / "server.log")
        try:
            # The first run registers the pages; before it, a deep link finds no page.
            helpers.launcher.is_answering(
                f"{app.url}/_stcore/script-health-check", timeout=helpers.START_LIMIT
            )
            browser = playwright.chromium.launch(
                executable_path=helpers.find_browser(),
                args=["--disable-gpu", "--font-render-hinting=none", *(["--no-sandbox"] if as_root else [])],
            )
            for picture in chosen:
                # A window of its own: what a picture uploads is gone with it.
                context = browser.new_context(viewport=SIZE, device_scale_factor=SCALE, color_scheme="light")  # type: ignore[arg-type]
                content = shoot(helpers.listen(context.new_page()), app.url, picture)
                context.close()
                target = FOLDER / f"{picture.name.replace('_', '-')}.png"
                target.write_bytes(content)
                print(f"Wrote {target.relative_to(ROOT)}, {len(content) / 1000:.0f} kB")
            browser.close()
        finally:
            app.stop()


if __name__ == "__main__":
    main()
