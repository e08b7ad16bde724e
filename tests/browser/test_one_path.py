"""From an unknown file to code that runs, for each kind of release: six actions, one more to confirm a private draw."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.browser import press, settle
from tests.browser.test_journeys import choose_file

MOST = 6
"""Actions after the file was chosen: presses, choices and entries."""
SCREEN = {"width": 1280, "height": 800}
FILE = "orders.csv"
NUMBER = r"([\d,]+(?:\.\d+)?)"


@dataclass(frozen=True)
class Kind:
    """A kind of release.

    Attributes:
        page: Title of its page.
        ends: Labels of the range that private values need.
        picks: What is chosen first; empty for nothing.
        public: Label of a public number that the private draw needs, and what is entered; empty for none.
        groups: Whether a public list of groups is needed.
        bounds: What the program calls them, in the order of the large number.
    """

    page: str
    bounds: tuple[str, ...]
    ends: tuple[str, ...] = ()
    picks: str = ""
    public: tuple[str, str] = ("", "")
    groups: bool = False


KINDS = (
    Kind("Mean", ("MAX_ROWS",), ("Lowest value L", "Highest value U")),
    Kind("Sum and count", ("MAX_ROWS",), picks="Rows"),
    Kind("Sum and count", ("LOW, HIGH",), picks="Values", public=("Highest total of one user", "20000")),
    Kind("Quantile", ("MAX_ROWS",), ("Lowest, L", "Highest, U")),
    Kind("Group by", ("MAX_GROUPS", "MAX_ROWS"), groups=True),
    Kind("Bias curves over τ₀", ("MAX_ROWS",), public=("Rows in all, about", "1000")),
)


def purchases() -> bytes:
    """Of 300 customers, most of whom have few."""
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
        field = self.page.get_by_label(label, exact=True).and_(self.page.locator("input, textarea"))
        field.fill(text)
        field.blur()
        self.actions += 1
        settle(self.page)


@pytest.mark.parametrize(
    ("private_kinds", "public_kinds"),
    [(KINDS[2:3], ()), pytest.param(KINDS, KINDS[::4], marks=pytest.mark.long)],
    ids=["some", "all"],
)
def test_from_an_unknown_file_to_code_that_runs(
    private_kinds: Sequence[Kind], public_kinds: Sequence[Kind], page: Page, app_url: str, tmp_path: Path
) -> None:
    """The bounds of the program are those on the screen; no number is entered but public ones that a release states.

    Of public data, where nothing is drawn or entered, a mean stands for all, or a mean and a pair of bounds.
    """
    page.set_viewport_size(SCREEN)
    (tmp_path / FILE).write_bytes(purchases())
    page.goto(f"{app_url}/your-data")
    settle(page)
    press(page.get_by_text("Upload a file", exact=True))
    programs = []
    for private, kinds in ((True, private_kinds), (False, public_kinds)):
        if not kinds:
            continue
        common = file_in_use(page, private)
        ways = page.locator(".st-key-your_data_offers")
        for item in KINDS:
            expect(ways.get_by_role("link", name=item.page)).to_have_count(1)
        for item in kinds:
            programs.append(path_of(ways.get_by_role("link", name=item.page), item, private, common))
            # A press as well, and a whole page less to draw than by way of Data.
            ways = page.locator(".st-key-navigation")
        press(page.locator(".st-key-navigation").get_by_role("link", name="Data"))
    for number, text in enumerate(programs):
        (tmp_path / f"program{number}.py").write_text(text, encoding="utf-8")
    everything = "".join(f"import program{number}\n" for number in range(len(programs)))
    done = subprocess.run(
        [sys.executable, "-c", everything], cwd=tmp_path, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    # All but the learner's, which bounds rows, release something.
    num_releases = sum(kind.page != KINDS[-1].page for kind in (*private_kinds, *public_kinds))
    assert len(done.stdout.splitlines()) >= num_releases


def file_in_use(page: Page, private: bool) -> int:
    """Bring the file; how many actions that took, which every way from it begins with."""
    bring = page.get_by_text("Bring another file")
    if bring.count():
        bring.click()
    choose_file(page, FILE, purchases())
    way = Way(page)
    if not private:
        way.press(page.get_by_text("Yes: anybody may see them"))
    way.press(page.get_by_role("button", name="Use these data"))
    return way.actions


def path_of(link: Locator, kind: Kind, private: bool, common: int) -> str:
    """The program at the end of the way that begins with this link; what is on the screen is looked at on it."""
    page = link.page
    way = Way(page, common)
    way.press(link)
    if kind.picks:
        way.press(page.get_by_test_id("stMain").get_by_role("radio", name=kind.picks))
    if private:
        for label, text in zip(kind.ends, ("0", "100"), strict=False):
            way.enter(label, text)
        if kind.groups:
            way.enter("Public list of groups", "\n".join(f"p{group}" for group in range(8)))
    draw = page.get_by_role("button", name="Choose with DP…")
    expect(draw).to_have_count(int(private))
    if private:
        way.press(draw)
        if kind.public[0]:
            way.enter(*kind.public)
        way.press(page.get_by_role("button", name="Spend ε = 0.1"))
        expect(page.get_by_role("button", name="Choose again with DP…")).to_be_visible()
    number_text = page.locator(".sweetspot-number .value").first.inner_text()
    bounds = [float(number.replace(",", "")) for number in re.findall(NUMBER, number_text)]
    way.press(page.get_by_role("button", name="Get code"))
    text = page.get_by_role("dialog").get_by_test_id("stCode").locator("code").inner_text()
    assert way.actions <= MOST + private, (kind, private, way.actions)
    numbers_text = re.findall(f"{', '.join(kind.bounds)} = (?:0.0, )?([0-9., ]+)", text)[0]
    written = [float(number) for number in numbers_text.split(",")]
    assert written == pytest.approx(bounds, rel=5e-3)  # The screen has three digits: 2.375 is 2.38 there.
    assert "COMPUTED FROM PRIVATE DATA" not in text
    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    page.get_by_role("dialog").wait_for(state="detached")
    return text
