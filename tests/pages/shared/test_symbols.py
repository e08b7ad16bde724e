"""Symbols in visible text are set as symbols: no '^2' and no 'n_tau' outside LaTeX, code and names of columns."""

from __future__ import annotations

import re

import pytest

from dpcore.quantile.answer.found import Poorer
from pages.shared.base import keys
from tests.pages.driving import begin, finished, raw_texts, words_of_numbers

MATH_OR_CODE = re.compile(r"\$\$.+?\$\$|(?<!\\)\$.+?(?<!\\)\$|```.+?```|`.+?`", re.DOTALL)
MARKS = re.compile(r"\S*\^\S*|(?<![\w\\])[^\W\d_]{1,3}\\?_[\w{]{1,3}\b")
ZIPF = {
    "data": "zipf",
    "data.alpha": "1.5",
    "data.num_users": "5000",
    "data.max_contributions": "300",
    "data.seed": "4",
}
PARTICIPATION = {"data": "participation", "data.alpha": "1", "data.num_rows": "2000", "data.seed": "4"}
CASES = [
    ("Start", {}, {}),
    ("Your data", ZIPF, {"your_data.data_source": "Generate", "your_data.generator": "zipf"}),
    (
        "Your data",
        PARTICIPATION,
        {"your_data.data_source": "Generate", "your_data.generator": "participation"},
    ),
    ("Mean", {}, {}),
    (
        "Quantile",
        {"data": "shop-events"},
        {"quantile.tabs": "Base distribution", "quantile.poorer": Poorer.WIDER},
    ),
    ("Quantile", {"data": "shop-events"}, {"quantile.tabs": "The paper's bound"}),
    ("Sum and count", {}, {}),
    *(
        ("Learning under a bound", form, {"learning.tabs": tab})
        for form, tab in (
            ({}, "All bounds on the bias"),
            ({"privacy_form": "linear"}, "Figure 2"),
            ({"privacy_form": "own", "privacy_power": "1.5"}, "Figure 3"),
            ({}, "Cost of privacy"),
        )
    ),
    ("Regression", {"lower": "-300", "upper": "300"}, {}),
    ("Training", {}, {}),
    ("Many tasks", {}, {}),
    ("Many tasks", {"source": "heavy-tailed"}, {}),
    ("Factorisation", {}, {}),
    ("How much can weights gain?", {}, {}),
    ("Choose privately", {}, {}),
]


def marks(text: str) -> list[str]:
    return MARKS.findall(MATH_OR_CODE.sub("", text))


@pytest.mark.parametrize("text", ["(share/ε)^2", "τ/n_τ", "p_j", "u_i ∝ 1/i", "1/i\\^α", "n\\_τ"])
def test_the_rule_finds_what_it_is_for(text):
    assert marks(text)
    assert not marks(f"${text}$")


def words_of_widgets(at) -> str:
    """Labels and help texts of everything that is drawn."""
    found = []

    def walk(block):
        for child in getattr(block, "children", {}).values():
            walk(child)
        proto = getattr(block, "proto", None)
        if proto is not None:
            found.extend(str(getattr(proto, name, "")) for name in ("label", "help", "placeholder"))

    walk(at._tree)
    return "\n".join(found)


@pytest.mark.parametrize(("title", "link", "state"), CASES)
def test_no_page_writes_marks_for_symbols(title, link, state):
    at = begin(title, link="1", epsilon="1", **link)
    for key, value in state.items():
        at.session_state[key] = value
    searches = ("quantile.search_job", "quantile.poorer_job", "regression.solve", "regression.caps")
    finished(at, *searches, "training.runs_job", "factorisation.train_job")
    assert at.session_state[keys.LINK_PROBLEMS] == ()
    assert not marks(raw_texts(at))
    assert not marks(words_of_widgets(at))
    numbers = words_of_numbers(at)
    assert numbers or title in ("Start", "Your data")
    assert not marks(numbers)
    for table in at.table:
        assert not marks(table.value.to_string())
    for frame in at.dataframe:
        assert not marks(frame.value.to_string())
