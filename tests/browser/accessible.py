"""What axe-core, the usual checker of accessibility, finds wrong with a page."""

from __future__ import annotations

from importlib import resources

from playwright.sync_api import Page

# Figures are pictures with a sentence each, and tests/test_theme.py holds their contrast. The label of a main button
# has the colour of the ground (`address`) from the page's next run on: here the colours change without one.
_RUN_AXE = """([within, dark]) => axe.run(
    {include: within, exclude: ['.js-plotly-plot', ...(dark ? ["[data-testid='stBaseButton-primary']"] : [])]},
    {resultTypes: ['violations'], preload: false, ...(dark ? {runOnly: ['color-contrast']} : {})}
).then(({violations}) => violations.flatMap(({id, help, nodes}) => nodes
    .map(({target, failureSummary}) => `${id}: ${help}: ${target}: ${failureSummary}`)))"""


def list_violations(page: Page, selector: str = "[data-testid='stMain']", dark: bool = False) -> list[str]:
    """Return what is wrong by all of axe's rules; on a dark page by that of contrast, as nothing else goes by colours.

    Args:
        page: Settled.
        selector: What is looked at, in CSS.
        dark: Whether the page is.
    """
    if not page.evaluate("'axe' in window"):
        page.evaluate((resources.files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8"))
    problems: list[str] = page.evaluate(_RUN_AXE, [selector, dark])
    return problems
