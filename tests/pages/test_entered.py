"""What a person entered is shown with all its digits: an epsilon never looks smaller than it is."""

from __future__ import annotations

import re

import pytest

from pages.shared import keys
from tests.pages.driving import finished, open_app, raw_texts

EPSILON = 7.33491234
"""Three and six digits of it are both less."""
SHOP = {"data": "shop-events"}
CASES = [
    ("Start", {}, {}),
    ("Mean", {}, {}),
    ("Mean", {"data": "shop-events", "lower": "0", "upper": "100", "counts": "private"}, {}),
    ("Quantile", {**SHOP, "low": "0", "high": "100"}, {}),
    ("Sum and count", SHOP, {keys.TOTAL_TABS: "Four ways to choose T"}),
    ("Sum and count", SHOP, {keys.TOTAL_TABS: "Counts per group"}),
    ("Learning under a cap", {}, {keys.LEARNING_TABS: "Figure 3"}),
    (
        "Regression",
        {"lower": "-300", "upper": "300", "num_rows": "300"},
        {keys.REGRESSION_TABS: "Figures 1, 2"},
    ),
    ("Regression", {"lower": "-300", "upper": "300", "num_rows": "300"}, {keys.REGRESSION_TABS: "Release"}),
    ("Many tasks", {}, {}),
    ("How much can weights gain?", {}, {}),
    ("Choose privately", {}, {}),
]
NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?:e[-−]?\d+)?")


def opened(title, link, state, epsilon):
    at = open_app(title, link="1", epsilon=f"{epsilon!r}", **link)
    assert at.session_state[keys.LINK_PROBLEMS] == ()
    for key, value in state.items():
        at.session_state[key] = value
    at.run()
    jobs = (keys.QUANTILE_SEARCH_JOB, keys.REGRESSION_SOLVE, keys.REGRESSION_CAPS)
    return words(finished(at, *jobs))


def words(at) -> str:
    """Texts, tables, and what figures say; no code and no link, which programs read."""
    texts = raw_texts(at)
    for block in at.code:
        texts = texts.replace(str(block.value), "")
    tables = "\n".join(str(table.value.to_string()) for table in (*at.table, *at.dataframe))
    return f"{texts}\n{tables}"


def numbers(text: str) -> list[float]:
    return [float(found.replace(",", "").replace("−", "-")) for found in NUMBER.findall(text)]


@pytest.mark.parametrize(("title", "link", "state"), CASES)
def test_an_epsilon_never_looks_smaller_than_it_is(title, link, state):
    near = [x for x in numbers(opened(title, link, state, EPSILON)) if abs(x / EPSILON - 1.0) < 1e-3]
    assert all(x >= EPSILON for x in near)


def test_the_part_of_epsilon_that_a_quantile_takes_is_not_rounded_down():
    text = opened("Quantile", {**SHOP, "low": "0", "high": "100", "quantiles": "0.25, 0.5, 0.75"}, {}, 1.0)
    assert "3 quantiles share ε evenly: 0.333334 each." in text


@pytest.mark.parametrize(("title", "link", "state"), CASES)
def test_a_small_epsilon_is_not_written_as_python_does(title, link, state):
    assert not re.findall(r"1\.2[5]?e[-−]0?5", opened(title, link, state, 1.25e-5))


def test_the_paper_s_figures_are_drawn_for_the_epsilon_that_is_named():
    text = opened(*CASES[7], EPSILON)
    assert f"at ε = {EPSILON}" in text


def test_start_says_epsilon_as_it_was_entered():
    assert "ε = 0.00001," in opened("Start", {}, {}, 1e-5)
