"""Make docs/img/mean.png, the picture in the README: the Mean page on a built-in sample.

    python docs/screenshot.py

Starts the app, opens a link, and saves what a window of 1440 x 1010 shows. Needs requirements-dev.txt and the
browser that the tests use.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.browser import browser as helpers  # noqa: E402

PICTURE = ROOT / "docs" / "img" / "mean.png"
SIZE = {"width": 1440, "height": 1010}
FIELDS = {
    "link": "1",
    "data": "online-retail-lines",
    "epsilon": "1",
    "lower": "0",
    "upper": "1",
    "variance_source": "worst",
}


def shoot(url: str, picture: Path) -> None:
    """Save the Mean page of the app at this address, and refuse one that shows an error."""
    as_root = hasattr(os, "geteuid") and os.geteuid() == 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=helpers.find_browser(),
            args=["--disable-gpu", *(["--no-sandbox"] if as_root else [])],
        )
        page = browser.new_page(viewport=SIZE, color_scheme="light")  # type: ignore[arg-type]
        page.goto(f"{url}/mean?{urlencode(FIELDS)}")
        page.locator(".st-key-mean_card").wait_for()
        page.locator(".st-key-mean_error .main-svg").first.wait_for()
        helpers.settle(page)
        wrong = page.locator("[data-testid='stException'], .st-key-link_problems").all_inner_texts()
        if wrong:
            raise RuntimeError(f"the page shows a problem: {wrong}")
        page.wait_for_timeout(500)  # the figure's last transition
        picture.parent.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=picture)
        browser.close()


def main() -> None:
    """Start the app, make the picture, stop the app."""
    with tempfile.TemporaryDirectory() as folder:
        app = helpers.start_app(Path(folder) / "server.log")
        try:
            # The first run registers the pages; before it, a deep link finds no page.
            helpers.launcher.answers(f"{app.url}/_stcore/script-health-check", timeout=180.0)
            shoot(app.url, PICTURE)
        finally:
            app.stop()
    print(f"Wrote {PICTURE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
