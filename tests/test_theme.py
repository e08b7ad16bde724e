"""Contrast of the theme's colours, by the formula of WCAG 2.2 (relative luminance, contrast ratio)."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from dpcore.report import charts

ROOT = Path(__file__).resolve().parents[1]
THEME = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))["theme"]
TEXT, CONTROL = 4.5, 3.0


def channels(colour: str) -> list[int]:
    return [int(colour[i : i + 2], 16) for i in (1, 3, 5)]


def luminance(colour: str) -> float:
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
        for c in (v / 255 for v in channels(colour))
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def tinted(colour: str, ground: str, share: float) -> str:
    mixed = [
        round(share * c + (1 - share) * g) for c, g in zip(channels(colour), channels(ground), strict=True)
    ]
    return "#" + "".join(f"{value:02X}" for value in mixed)


def test_the_formula_gives_the_known_ratios():
    # WCAG's own extremes, and the grey that is known as the lightest with 4.5:1 on white.
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21.0)
    assert contrast("#FFFFFF", "#FFFFFF") == 1.0
    assert contrast("#767676", "#FFFFFF") == pytest.approx(4.54, abs=0.005)
    assert contrast("#777777", "#FFFFFF") < 4.5


@pytest.mark.parametrize("mode", ["light", "dark"])
@pytest.mark.parametrize("place", ["page", "sidebar"])
def test_text_is_readable(mode, place):
    theme = THEME[mode]
    grounds = theme if place == "page" else {**theme, **theme["sidebar"]}
    for ground in ("backgroundColor", "secondaryBackgroundColor", "codeBackgroundColor"):
        for colour in ("textColor", "linkColor", "primaryColor", "codeTextColor"):
            assert contrast(theme[colour], grounds[ground]) >= TEXT, (colour, ground)
        caption = tinted(theme["textColor"], grounds[ground], 0.6)  # as Streamlit writes them
        assert contrast(caption, grounds[ground]) >= TEXT, ground
    # A pressed choice: the primary colour on a tenth of it.
    primary, ground = theme["primaryColor"], grounds["backgroundColor"]
    assert contrast(primary, tinted(primary, ground, 0.1)) >= TEXT


def test_white_stands_on_the_primary_colour():
    assert contrast("#FFFFFF", THEME["light"]["primaryColor"]) >= TEXT  # labels of main buttons
    assert (
        contrast("#FFFFFF", THEME["dark"]["primaryColor"]) >= CONTROL
    )  # ticks; main buttons and tags have labels in the colour of the ground


def test_main_buttons_go_by_the_theme():
    filled = re.compile(r"""type=["']primary["']""")
    paths = [
        str(path)
        for path in (ROOT / "pages").rglob("*.py")
        if filled.search(path.read_text(encoding="utf-8"))
    ]
    assert not paths, "questions.main_button() says how a main button is drawn"


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_curves_stand_out(mode):
    ours = charts.LINE_BY_STYLE.values()
    for colour in [*THEME[mode]["chartCategoricalColors"], *(style["color"] for style in ours)]:
        assert contrast(colour, THEME[mode]["backgroundColor"]) >= CONTROL, colour
