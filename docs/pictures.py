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

PICTURE_FOLDER = ROOT / "docs" / "img"
WINDOW_SIZE = {"width": 1280, "height": 960}
PIXEL_RATIO = 2
NUM_COLOURS = 192
# Work in the background ends within seconds on a quiet machine.
WORK_MILLISECONDS = 300_000
EVENTS_PATH = ROOT / "sample_data" / "shop_events.csv"


@dataclass(frozen=True)
class Callout:
    """A sentence on a picture that points at one thing.

    Attributes:
        text: What it says.
        find_target: Return what it points at, and draws a frame around; None for a place without one.
        shift: From the left end of what it points at to the left end of the text, and down, in pixels; for a place
            without one the shares of the picture's width and height.
    """

    text: str
    find_target: Callable[[Page], Locator] | None
    shift: tuple[float, float]


@dataclass(frozen=True)
class Picture:
    """One picture.

    Attributes:
        name: Of the file.
        path: In the address; empty for Home.
        fields: Of the link.
        prepare: What a person does before the picture is taken.
        shows: Return what the picture shows: the smallest part of the window that holds all of these; the window if
            there are none.
        padding: Pixels around it.
        height: The most pixels from its top to its bottom.
        callouts: What it points at.
    """

    name: str
    path: str
    fields: dict[str, str] = field(default_factory=dict)
    prepare: Callable[[Page], None] | None = None
    shows: tuple[Callable[[Page], Locator], ...] = ()
    padding: int = 8
    height: int = WINDOW_SIZE["height"]
    callouts: tuple[Callout, ...] = ()


def _find_main(page: Page) -> Locator:
    return page.get_by_test_id("stMain")


def _find_figure(page: Page) -> Locator:
    return _find_main(page).locator(".js-plotly-plot")


def _press_button(page: Page, name: str) -> None:
    _find_main(page).get_by_role("button", name=name).first.click()
    helpers.settle(page)


def _upload_events(page: Page) -> None:
    _find_main(page).get_by_text("Upload a file").first.click()
    helpers.settle(page)
    page.locator("input[type=file]").set_input_files(EVENTS_PATH)
    helpers.settle(page)
    _press_button(page, "Use these data")


def _enter_range(page: Page) -> None:
    _upload_events(page)
    _find_main(page).get_by_role("link", name="Mean").first.click()
    helpers.settle(page)
    for name, value in (("Lowest value L", "0"), ("Highest value U", "100")):
        number_field = page.get_by_role("spinbutton", name=name)
        number_field.fill(value)
        number_field.press("Enter")
        helpers.settle(page)


MEAN_FIELDS = {
    "data": "shop-events",
    "epsilon": "1",
    "lower": "0",
    "upper": "100",
    "variance_source": "values",
    "target": "table",
    "likeness": "values",
}
LABEL_CSS = "position:fixed;z-index:2147483647;pointer-events:none;box-sizing:border-box;"
STYLES = (
    f"{LABEL_CSS}border:2px solid #c2410c;border-radius:8px",
    f"{LABEL_CSS}transform:translate(0,-50%);font:600 15px 'Source Sans',sans-serif;background:#fff;"
    "white-space:nowrap;border:1.5px solid #c2410c;border-radius:6px;padding:4px 10px;color:#7c2d12",
)
"""Of the frame around what a callout points at, and of its text."""


def _find_edges(page: Page, picture: Picture) -> tuple[float, float, float, float]:
    """Return left, top, right and bottom of what the picture shows, within the window."""
    if not picture.shows:
        return 0, 0, WINDOW_SIZE["width"], WINDOW_SIZE["height"]
    boxes = [box for find_target in picture.shows if (box := find_target(page).first.bounding_box())]
    top = max(min(box["y"] for box in boxes) - picture.padding, 0)
    bottom = max(box["y"] + box["height"] for box in boxes) + picture.padding
    return (
        max(min(box["x"] for box in boxes) - picture.padding, 0),
        top,
        min(max(box["x"] + box["width"] for box in boxes) + picture.padding, WINDOW_SIZE["width"]),
        min(bottom, top + picture.height, WINDOW_SIZE["height"]),
    )


def _add_callout(page: Page, callout: Callout, edges: tuple[float, float, float, float]) -> None:
    """Draw the callout's text, and the frame around what it points at."""
    left, top, right, bottom = edges
    x, y = left + callout.shift[0] * (right - left), top + callout.shift[1] * (bottom - top)
    styles = []
    if callout.find_target is not None:
        box = callout.find_target(page).first.bounding_box()
        assert box is not None, f"nothing is there for {callout.text!r}"
        x, y = box["x"] + callout.shift[0], box["y"] + box["height"] / 2 + callout.shift[1]
        is_beside = abs(callout.shift[1]) < box["height"]
        width = min(box["width"], callout.shift[0] - 12) if is_beside else box["width"]
        box_css = (
            f";left:{box['x'] - 5}px;top:{box['y'] - 3}px;width:{width + 10}px;height:{box['height'] + 6}px"
        )
        styles.append((STYLES[0] + box_css, ""))
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


def list_pictures() -> list[Picture]:
    """List the pictures of README and docs."""
    return [
        Picture(
            "tradeoff",
            "",
            shows=(_find_figure,),
            padding=0,
            callouts=(
                Callout("Too low: data are lost", None, (0.18, 0.16)),
                Callout("Too high: noise", None, (0.74, 0.22)),
            ),
        ),
        Picture(
            "what-data-answer",
            "your-data",
            prepare=_upload_events,
            shows=(_find_figure, _find_column("In use:")),
            height=560,
            callouts=(
                Callout(
                    "Press what you release",
                    lambda page: _find_main(page).get_by_role("link", name="Mean"),
                    (90, -75),
                ),
            ),
        ),
        Picture(
            "first-answer",
            "your-data",
            prepare=_enter_range,
            shows=(_find_figure, _find_column("Keep at most")),
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
            MEAN_FIELDS,
            lambda page: _press_button(page, "Get code"),
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


def take_picture(page: Page, url: str, picture: Picture) -> bytes:
    """Return a small PNG of the window; refuse a page that shows a problem."""
    link = f"?{urlencode({'link': '1', **picture.fields})}" if picture.fields else ""
    page.goto(f"{url}/{picture.path}{link}")
    helpers.settle(page)
    if picture.prepare is not None:
        picture.prepare(page)
    page.locator("[data-testid='stMain'] .js-plotly-plot .main-svg").first.wait_for()
    helpers.stop_button(page).wait_for(state="hidden", timeout=WORK_MILLISECONDS)  # of work in the background
    helpers.settle(page)
    problem_texts = page.locator("[data-testid='stException'], .st-key-link_problems").all_inner_texts()
    if problem_texts:
        raise RuntimeError(f"{picture.name} shows a problem: {problem_texts}")
    page.mouse.move(0, 0)
    page.evaluate(
        "document.activeElement?.blur(); document.querySelector(\"[data-testid='stMain']\").scrollTo(0, 0)"
    )
    page.wait_for_timeout(700)  # the figure's last transition, and what the mouse had opened
    edges = _find_edges(page, picture)
    for callout in picture.callouts:
        _add_callout(page, callout, edges)
    clip = {"x": edges[0], "y": edges[1], "width": edges[2] - edges[0], "height": edges[3] - edges[1]}
    image = Image.open(io.BytesIO(page.screenshot(clip=clip))).convert("RGB")  # type: ignore[arg-type]
    output_stream = io.BytesIO()
    # The palette by coverage: by frequency, thin lines lose their colour. Dithering would speckle the plain grounds.
    image.quantize(NUM_COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(
        output_stream, "PNG", optimize=True
    )
    return output_stream.getvalue()


def main() -> None:
    """Start the app, make the pictures, stop the app."""
    requested_names = set(sys.argv[1:])
    requested_pictures = [
        picture for picture in list_pictures() if not requested_names or picture.name in requested_names
    ]
    if unknown := requested_names - {picture.name for picture in requested_pictures}:
        sys.exit(f"There is no picture called {', '.join(sorted(unknown))}.")
    PICTURE_FOLDER.mkdir(parents=True, exist_ok=True)
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
            for picture in requested_pictures:
                # A window of its own: what a picture uploads is gone with it.
                context = browser.new_context(
                    viewport=WINDOW_SIZE, device_scale_factor=PIXEL_RATIO, color_scheme="light"
                )  # type: ignore[arg-type]
                png_bytes = take_picture(helpers.listen(context.new_page()), app.url, picture)
                context.close()
                target_path = PICTURE_FOLDER / f"{picture.name.replace('_', '-')}.png"
                target_path.write_bytes(png_bytes)
                print(f"Wrote {target_path.relative_to(ROOT)}, {len(png_bytes) / 1000:.0f} kB")
            browser.close()
        finally:
            app.stop()


if __name__ == "__main__":
    main()
