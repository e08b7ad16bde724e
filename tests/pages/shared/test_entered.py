"""What a person entered is shown with all its digits: an epsilon never looks smaller than it is."""

from __future__ import annotations

import re

import pytest

from pages.shared.base import keys
from tests.pages.driving import begin, check, finish, raw_texts

EPSILON = 7.33491234
"""Three and six digits of it are both less."""
SHOP = {"data": "shop-events"}
CASES = [
    ("Home", {}, {}),
    ("Mean", {}, {}),
    ("Mean", {"data": "shop-events", "lower": "0", "upper": "100", "counts": "private"}, {}),
    ("Quantile", {**SHOP, "low": "0", "high": "100"}, {}),
    ("Sum and count", SHOP, {"total.tabs": "Four ways to choose a bound"}),
    ("Group by", SHOP, {"per_group.tabs": "Error of each group"}),
    ("Bias curves over τ₀", {}, {"learning.tabs": "Figure 3"}),
    (
        "Linear regression",
        {"lower": "-300", "upper": "300", "num_rows": "300"},
        {"regression.tabs": "Figures 1 and 2"},
    ),
    (
        "Linear regression",
        {"lower": "-300", "upper": "300", "num_rows": "300"},
        {"regression.tabs": "Release"},
    ),
    ("Classifier", {}, {"training.tabs": "Release"}),
    ("Multi-task weights", {}, {}),
    ("Recommender", {}, {}),
    ("Join or train alone", {}, {"data_owners.tabs": "Bounds"}),
    ("Weights vs. caps", {}, {}),
]
NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?:e[-−]?\d+)?")


JOBS = ("quantile.search_job", "regression.solve", "regression.caps", "training.runs_job")


def open_case(title, link, state, epsilon):
    app = begin(title, link="1", epsilon=f"{epsilon!r}", **link)
    assert app.session_state[keys.LINK_PROBLEMS] == ()
    for key, value in state.items():
        app.session_state[key] = value
    return finish(app, *JOBS)


def read_all_texts(app) -> str:
    """Texts, tables, and what figures say; no code and no link, which programs read."""
    texts = raw_texts(app)
    for block in app.code:
        texts = texts.replace(str(block.value), "")
    tables = "\n".join(str(table.value.to_string()) for table in (*app.table, *app.dataframe))
    return f"{texts}\n{tables}"


def read_numbers(text: str) -> list[float]:
    return [float(number.replace(",", "").replace("−", "-")) for number in NUMBER.findall(text)]


@pytest.mark.long_but("Mean-link1-state1", "Home-link0-state0", "Group by-link5-state5")
@pytest.mark.parametrize(("title", "link", "state"), CASES)
def test_an_epsilon_never_looks_smaller_than_it_is_and_is_not_written_as_python_does(title, link, state):
    app = open_case(title, link, state, EPSILON)
    near = [x for x in read_numbers(read_all_texts(app)) if abs(x / EPSILON - 1.0) < 1e-3]
    assert all(x >= EPSILON for x in near)
    app = finish(check(app.number_input(key=keys.EPSILON).set_value(1.25e-5).run()), *JOBS)
    assert not re.findall(r"1\.2[5]?e[-−]0?5", read_all_texts(app))


def test_the_part_of_epsilon_that_a_quantile_takes_is_not_rounded_down():
    link = {**SHOP, "low": "0", "high": "100", "quantiles": "0.25, 0.5, 0.75"}
    text = read_all_texts(open_case("Quantile", link, {}, 1.0))
    assert "ε = 0.333334 for each." in text


def test_start_says_epsilon_as_it_was_entered():
    assert "ε = 0.00001." in read_all_texts(open_case("Home", {}, {}, 1e-5))
