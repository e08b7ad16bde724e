"""Make the pictures of the documentation in docs/img: the trade-off, and the steps of docs/start.md.

    make docs-pictures

Starts the app, opens a link for each picture, and saves the part of a window that matters, with callouts on it: with
two pixels for one so that text stays sharp, and with a palette so that files stay small. Names after the command choose
pictures: `.venv/bin/python docs/pictures.py code`. Needs requirements-dev.txt and the browser that the tests use.
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
from playwright.sync_api import Locator, Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.browser import browser as helpers  # noqa: E402

FOLDER = ROOT / "docs" / "img"
SIZE = {"width": 1280, "height": 960}
SCALE = 2
COLOURS = 192
# Work in the background ends within seconds on a quiet machine.
WORK_LIMIT = 300_000
EVENTS = ROOT / "sample_data" / "shop_events.csv"


@dataclass(frozen=True)
class Callout:
    """A sentence on a picture that points at one thing.

    Attributes:
        text: What it says.
        find: Return what it points at, and draws a frame around; None for a place without one.
        shift: From the left end of what it points at to the left end of the text, and down, in pixels; for a place
            without one the shares of the picture's width and height.
    """

    text: str
    find: Callable[[Page], Locator] | None
    shift: tuple[float, float]


@dataclass(frozen=True)
class Picture:
    """One picture.

    Attributes:
        name: Of the file.
        path: In the address; empty for Home.
        fields: Of the link.
        then: What a person does before the picture is taken.
        shows: Return what the picture shows: the smallest part of the window that holds all of these; the window if
            there are none.
        padding: Pixels around it.
        height: The most pixels from its top to its bottom.
        callouts: What it points at.
    """

    name: str
    path: str
    fields: dict[str, str] = field(default_factory=dict)
    then: Callable[[Page], None] | None = None
    shows: tuple[Callable[[Page], Locator], ...] = ()
    padding: int = 8
    height: int = SIZE["height"]
    callouts: tuple[Callout, ...] = ()


def _main(page: Page) -> Locator:
    return page.get_by_test_id("stMain")


def _figure(page: Page) -> Locator:
    return _main(page).locator(".js-plotly-plot")


def _press(page: Page, name: str) -> None:
    _main(page).get_by_role("button", name=name).first.click()
    helpers.settle(page)


def _upload(page: Page) -> None:
    _main(page).get_by_text("Upload a file").first.click()
    helpers.settle(page)
    page.locator("input[type=file]").set_input_files(EVENTS)
    helpers.settle(page)
    _press(page, "Use these data")


def _range(page: Page) -> None:
    _upload(page)
    _main(page).get_by_role("link", name="Mean").first.click()
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
FRAME = "position:fixed;z-index:2147483647;pointer-events:none;box-sizing:border-box;"
STYLES = (
    f"{FRAME}border:2px solid #c2410c;border-radius:8px",
    f"{FRAME}transform:translate(0,-50%);font:600 15px 'Source Sans',sans-serif;background:#fff;white-space:nowrap;"
    "border:1.5px solid #c2410c;border-radius:6px;padding:4px 10px;color:#7c2d12",
)
"""Of the frame around what a callout points at, and of its text."""


def _find_part(page: Page, picture: Picture) -> tuple[float, float, float, float]:
    """Return left, top, right and bottom of what the picture shows, within the window."""
    if not picture.shows:
        return 0, 0, SIZE["width"], SIZE["height"]
    boxes = [box for find in picture.shows if (box := find(page).first.bounding_box())]
    top = max(min(box["y"] for box in boxes) - picture.padding, 0)
    bottom = max(box["y"] + box["height"] for box in boxes) + picture.padding
    return (
        max(min(box["x"] for box in boxes) - picture.padding, 0),
        top,
        min(max(box["x"] + box["width"] for box in boxes) + picture.padding, SIZE["width"]),
        min(bottom, top + picture.height, SIZE["height"]),
    )


def _add_callout(page: Page, callout: Callout, part: tuple[float, float, float, float]) -> None:
    """Draw the callout's text, and the frame around what it points at."""
    left, top, right, bottom = part
    x, y = left + callout.shift[0] * (right - left), top + callout.shift[1] * (bottom - top)
    styles = []
    if callout.find is not None:
        box = callout.find(page).first.bounding_box()
        assert box is not None, f"nothing is there for {callout.text!r}"
        x, y = box["x"] + callout.shift[0], box["y"] + box["height"] / 2 + callout.shift[1]
        is_beside = abs(callout.shift[1]) < box["height"]
        width = min(box["width"], callout.shift[0] - 12) if is_beside else box["width"]
        edges = (
            f";left:{box['x'] - 5}px;top:{box['y'] - 3}px;width:{width + 10}px;height:{box['height'] + 6}px"
        )
        styles.append((STYLES[0] + edges, ""))
    styles.append((f"{STYLES[1]};left:{x}px;top:{y}px", callout.text))
    page.evaluate(
        """(labels) => {
            for (const [style, text] of labels) {
                const label = document.createElement("div");
                label.style.cssText = style;
                label.textContent = text;
                document.body.append(label);
            }
        }""",
        [list(style) for style in styles],
    )


def _find_text(text: str) -> Callable[[Page], Locator]:
    return lambda page: page.get_by_text(text)


def _find_column(text: str) -> Callable[[Page], Locator]:
    """Return the column of the page that holds this text."""
    return lambda page: page.get_by_text(text).first.locator("xpath=ancestor::*[@data-testid='stColumn'][1]")


def pictures() -> list[Picture]:
    """List the pictures of README and docs."""
    return [
        Picture(
            "tradeoff",
            "",
            shows=(_figure,),
            padding=0,
            callouts=(
                Callout("Too low: data are lost", None, (0.18, 0.16)),
                Callout("Too high: noise", None, (0.74, 0.22)),
            ),
        ),
        Picture(
            "what-data-answer",
            "your-data",
            then=_upload,
            shows=(_figure, _find_column("In use:")),
            height=560,
            callouts=(
                Callout(
                    "Press what you release",
                    lambda page: _main(page).get_by_role("link", name="Mean"),
                    (90, -75),
                ),
            ),
        ),
        Picture(
            "first-answer",
            "your-data",
            then=_range,
            shows=(_figure, _find_column("Keep at most")),
            height=478,
            callouts=(
                Callout(
                    "The bound",
                    lambda page: _find_column("Keep at most")(page).get_by_text("17 rows"),
                    (252, 0),
                ),
                Callout("Its error", _find_text("Error: 2.26"), (252, -10)),
                Callout("Makes it safe to publish", _find_text("Choose with DP…"), (130, 0)),
            ),
        ),
        Picture(
            "code",
            "mean",
            MEAN,
            lambda page: _press(page, "Get code"),
            shows=(lambda page: page.get_by_role("dialog"),),
            padding=0,
            height=740,
            callouts=(
                Callout(
                    "Your library",
                    lambda page: page.get_by_role("dialog").get_by_role("radiogroup").last,
                    (480, 0),
                ),
                Callout(
                    "The bound",
                    lambda page: page.get_by_role("dialog").get_by_text("MAX_ROWS").first,
                    (375, 0),
                ),
            ),
        ),
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
    part = _find_part(page, picture)
    for callout in picture.callouts:
        _add_callout(page, callout, part)
    clip = {"x": part[0], "y": part[1], "width": part[2] - part[0], "height": part[3] - part[1]}
    image = Image.open(io.BytesIO(page.screenshot(clip=clip))).convert("RGB")  # type: ignore[arg-type]
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
