"""From an unknown file to code that runs: one way per kind of release, private and public, in at most six actions."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.browser import settle
from tests.browser.test_journeys import choose_file

MOST = 6
"""Actions after the file was chosen: presses, choices and entries."""
SCREEN = {"width": 1280, "height": 800}


def orders() -> bytes:
    """Purchases of 300 customers, most of whom have few."""
    rng = np.random.default_rng(7)
    lines = ["customer,product,spend"]
    for customer, count in enumerate(np.minimum(rng.zipf(1.8, 300), 200)):
        for _ in range(count):
            lines.append(f"c{customer:03d},p{rng.integers(8)},{min(rng.gamma(2.0, 10.0), 99.0):.2f}")
    return "\n".join(lines).encode() + b"\n"


@dataclass
class Way:
    """A person at the page, and how often they did something."""

    page: Page
    actions: int = 0

    def press(self, target: Locator) -> None:
        target.click()
        self.actions += 1
        settle(self.page)

    def enter(self, label: str, text: str) -> None:
        field = self.page.get_by_role("spinbutton", name=label, exact=True)
        field.fill(text)
        field.press("Enter")
        self.actions += 1
        settle(self.page)

    def choose(self, label: str, option: str) -> None:
        """From a list: opening it and pressing the option is one choice."""
        self.page.get_by_role("combobox", name=label).click()
        self.press(self.page.get_by_role("option", name=option, exact=True))


@dataclass(frozen=True)
class Kind:
    """A kind of release.

    Attributes:
        page: Title of its page.
        ends: Labels of the range that private values need; empty where none is needed.
        chosen: Buttons, or (list, option), that say what is released.
        private: Whether its bound can be drawn on the page.
    """

    page: str
    ends: tuple[str, ...] = ()
    chosen: tuple[str | tuple[str, str], ...] = ()
    private: bool = True


KINDS = {
    "mean": Kind("Mean", ("Lowest value L", "Highest value U")),
    "count": Kind("Sum and count"),
    "sum": Kind("Sum and count", chosen=("Values",), private=False),
    "quantile": Kind("Quantile", ("Lowest answer", "Highest answer"), private=False),
    "per group": Kind("Per group"),
}


def test_from_an_unknown_file_to_code_that_runs(page: Page, app_url: str, tmp_path: Path) -> None:
    page.set_viewport_size(SCREEN)
    for private in (True, False):
        for name, kind in KINDS.items():
            path_of(page, app_url, tmp_path, name, kind, private)


def path_of(page: Page, app_url: str, folder: Path, name: str, kind: Kind, private: bool) -> None:
    page.goto(f"{app_url}/your-data")
    settle(page)
    page.get_by_text("Upload a file", exact=True).click()
    settle(page)
    choose_file(page, "orders.csv", orders())
    way = Way(page)
    if not private:
        way.press(page.get_by_text("Yes: anybody may see them"))
    way.press(page.get_by_role("button", name="Use these data"))
    page.screenshot(path=f"/tmp/shots-release/{name}-{private}-0.png")
    way.press(page.locator(".st-key-your_data_offers").get_by_role("link", name=kind.page))
    page.screenshot(path=f"/tmp/shots-release/{name}-{private}-1.png")
    for of in kind.chosen:
        way.press(page.get_by_text(of, exact=True))
    for label, text in zip(kind.ends if private else (), ("0", "100"), strict=False):
        way.enter(label, text)
    page.screenshot(path=f"/tmp/shots-release/{name}-{private}-2.png")
    draw = page.get_by_role("button", name=re.compile("Draw it privately"))
    print(name, private, "draw", draw.count())
    if draw.count():
        way.press(draw.first)
        page.screenshot(path=f"/tmp/shots-release/{name}-{private}-3.png")
    print(page.locator(".sweetspot-number .value").all_inner_texts(), page.locator("h2").all_inner_texts()[:2])
    way.press(page.locator(".sweetspot-strip button").last)
    page.screenshot(path=f"/tmp/shots-release/{name}-{private}-4.png")
    code = page.get_by_role("dialog").get_by_test_id("stCode").locator("code")
    text = code.inner_text() if code.count() else page.get_by_role("dialog").inner_text()
    print(name, private, way.actions, "\n", text[:3000])
    page.keyboard.press("Escape")
    settle(page)
