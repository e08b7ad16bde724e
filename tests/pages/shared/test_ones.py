"""Where there is one of something, the words around the number say so."""

from __future__ import annotations

import re

import pytest

from dpcore.common.privacy import Disclosure
from dpcore.total.parameters import Summed
from tests.pages.driving import check, finish, look_at, open_app, shown_texts, upload, use

# Of one user, of one row each, and of many light users beside a heavy one, whose one value is far off.
ONE_USER = b"user_id,amount,task\na,1,x\na,2,x\na,3,y\n"
ONE_ROW_EACH = b"user_id,amount,task\na,1,x\nb,2,y\n"
ONE_HEAVY = (
    "user_id,amount,task\n"
    + "".join(f"u{i},{i % 9},t{i % 4}\n" for i in range(60))
    + "heavy,5,t1\n" * 40
    + "heavy,5000,t2\n"
).encode()
NOUNS = (
    "users|rows|values|tasks|groups|columns|pairs|labels|features|draws|bounds|caps|steps|iterations|answers"
)
# A thousands separator or a decimal before or after the 1 makes it another number; × and / make it none.
ONE_OF_MANY = re.compile(rf"(?<![\d.,/–×])1\*{{0,2}} (?:{NOUNS})\b")
ONE_ARE = re.compile(
    r"(?<![\d.,/])1 (?:user|value|task|row)\b(?: of [\d,]+)?(?: \([^)]*\))?(?: with [^.;,]* rows| without a task)?"
    r" (?:are|have|lie|hold|carry|were)\b"
)


def find_plurals(text: str) -> list[str]:
    text = text.replace("**", "")
    return [m[0] for rule in (ONE_OF_MANY, ONE_ARE) for m in rule.finditer(text)]


@pytest.mark.parametrize(
    "text",
    [
        "with 1 rows",
        "at 1 rows",
        "**1 users** have",
        "1 user (2 %) lie over",
        "1 user of 5 carry",
        "1 value (1 %) are",
    ],
)
def test_the_rules_find_what_they_are_for(text):
    assert find_plurals(text)


def use_file(content: bytes):
    app = upload(open_app("Data"), content)
    assert not find_plurals(shown_texts(app))
    check(app.radio(key="your_data.upload_public").set_value(Disclosure.PUBLIC).run())
    return use(app)


@pytest.mark.long
@pytest.mark.parametrize("content", [ONE_USER, ONE_ROW_EACH, ONE_HEAVY], ids=["user", "row each", "heavy"])
def test_no_page_speaks_of_one_as_of_many(content):
    app = use_file(content)
    for title in (
        "Home",
        "Data",
        "Quantile",  # before Mean, whose range it would take
        "Mean",
        "Sum and count",
        "Bias curves over τ₀",
        "Multi-task weights",
        "Weights vs. caps",
    ):
        if title == "Mean":
            app.session_state["mean.lower"], app.session_state["mean.upper"] = 0.0, 100.0
        look_at(app, title)
        if title == "Quantile":
            finish(app, "quantile.search_job")
        if title == "Sum and count":
            check(app.segmented_control(key="total.summed").set_value(Summed.VALUES).run())
        assert not find_plurals(shown_texts(app)), title
