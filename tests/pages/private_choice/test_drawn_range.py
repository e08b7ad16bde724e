"""The range chosen with DP: from Mean, its account, and what the pages do with it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from dpcore.common.checks import Problems
from dpcore.common.privacy import Disclosure, Ledger, Neighbours, ReleaseFacts
from dpcore.common.strict_json import JsonValue
from dpcore.data import samples
from dpcore.mean import Clamp
from dpcore.private_choice.answer import words
from dpcore.private_choice.parameters import NumberPair
from dpcore.private_choice.private_range import DrawnRange, RangeProblem
from pages.private_choice import saved
from pages.private_choice.question import KnownValue
from pages.shared.base import keys
from pages.shared.session import session_file
from tests.pages.driving import (
    check,
    confirm,
    go,
    open_app,
    shown_texts,
    use_dataset,
)

SHOP = samples.load("shop-events")
SECRET = replace(SHOP, name="secret.csv", disclosure=Disclosure.PRIVATE)
FACTS = ReleaseFacts(0.5, 0.0, Neighbours.ADD_OR_REMOVE_USER, "exponential mechanism")
RANGE_COST = "With the draw of the range, ε = 1.5 in all."
FORM = {
    "known": KnownValue.TYPICAL,
    "centre": 20.0,
    "unit": 1.0,
    "largest": 1000.0,
    "users": 400.0,
    "epsilon": 0.5,
}


def fill_form(app, **form):
    for name, value in {**FORM, **form}.items():
        app.session_state[f"private_choice.range_{name}"] = value


@pytest.mark.long
def test_from_the_missing_range_of_a_mean_to_range_and_bound_both_drawn() -> None:
    app = check(use_dataset(open_app("Mean"), SECRET).run())
    fill_form(app)
    opened = check(app.button(key="private_range_ask").click().run())
    page_text = shown_texts(opened)
    assert "cost nothing, and are the first choice" in page_text
    assert opened.button(key="private_range_draw").label == "Draw L and U (ε = 0.5)"
    # A browser keeps the dialog open; here every press runs the whole page.
    check(opened.button(key="private_range_draw").click().run())
    assert "private_choice.choices" not in app.session_state
    opened = check(app.button(key="private_range_ask").click().run())
    check(opened.button(key="private_range_draw_confirm").click().run())
    ((_, held),) = app.session_state["private_choice.choices"].items()
    ((kind, drawn),) = held
    assert kind is NumberPair.RANGE
    assert drawn.lower < 20.0 < drawn.upper
    check(app.run())
    assert app.number_input(key="mean.lower").value == drawn.lower
    assert app.number_input(key="mean.upper").value == drawn.upper
    assert RANGE_COST in shown_texts(app)
    # Then the bound, on the same account.
    app.session_state["private_choice.selection_epsilon"] = 0.2
    check(app.run())
    confirm(app, "mean_card_draw")
    shown = shown_texts(app)
    assert "The draw has spent ε = 0.2, that of the range ε = 0.5" in shown
    assert "the release adds ε = 1: ε = 1.7 in all" in shown
    ((_, ledger),) = app.session_state["ledgers"].items()
    assert [release.epsilon for release in ledger.releases] == pytest.approx([0.5, 0.2])
    code = "".join(block.value for block in check(app.button(key="mean_card_code").click().run()).code)
    assert repr(drawn.lower) in code or f"{drawn.lower:g}" in code
    assert f"{drawn.upper:g}" in code
    label = " ".join(line.lstrip("# ") for line in code.splitlines())
    assert "In all epsilon = 0.2 (bound) + 0.5 (range) + 1 (this release) = 1.7." in label
    # Other pages clamp to it, too, and Data lists both.
    go(app, "Quantile")
    assert app.number_input(key="quantile.high").value == drawn.upper
    # Its bound is not drawn: the card says what range and release come to.
    assert RANGE_COST in shown_texts(app)
    go(app, "Data")
    assert f"Range of a value, L and U: **{words.format_selection(drawn)}**" in shown_texts(app)
    # Where another range is entered, it is not the drawn one any more; a press takes it back.
    app.session_state["release_setting"] = {"lower": 0.0, "upper": 50.0}
    assert RANGE_COST not in shown_texts(go(app, "Quantile"))
    check(go(app, "Data").button(key="private_take_0").click().run())
    assert RANGE_COST in shown_texts(go(app, "Quantile"))
    # Other data have no drawn range, and none to clamp to.
    check(
        use_dataset(
            app,
            replace(
                SECRET,
                histogram=replace(SHOP.histogram, users=SHOP.histogram.users * 2),
                values=None,
                totals=None,
                pairs=None,
            ),
        ).run()
    )
    assert RANGE_COST not in shown_texts(go(app, "Quantile"))


def open_form(app, **form: object):
    """Fill in the form of a range and open its dialog on Mean."""
    fill_form(app, **form)
    return check(app.button(key="private_range_ask").click().run())


def test_the_dialog_says_whether_a_draw_is_of_use_before_anything_is_drawn() -> None:
    app = check(use_dataset(open_app("Mean"), SECRET).run())
    assert "Fill in the fields" in shown_texts(check(app.button(key="private_range_ask").click().run()))
    page_text = shown_texts(open_form(app, users=50.0))
    assert "Not recommended" in page_text
    assert "which costs no ε" in page_text
    assert "Enter about how many users" in shown_texts(open_form(app, users=None))
    opened = open_form(app, known=KnownValue.LOWEST, lower=0.0, users=5000.0)
    assert opened.button(key="private_range_draw").label.startswith("Draw U")
    opened = open_form(app, known=KnownValue.NEITHER)
    assert opened.button(key="private_range_draw").label.startswith("Draw L and U")
    assert "unit must lie below largest" in shown_texts(open_form(app, unit=5.0, largest=1.0)).lower()
    assert "private_choice.choices" not in app.session_state


def test_a_bound_that_was_drawn_before_is_that_of_the_range() -> None:
    app = check(use_dataset(open_app("Mean"), SECRET).run())
    app.session_state["mean.lower"], app.session_state["mean.upper"] = 0.0, 100.0
    check(app.run())
    confirm(app, "mean_card_draw")
    ((_, ((_, bound),)),) = app.session_state["private_choice.choices"].items()
    app.session_state["mean.lower"] = app.session_state["mean.upper"] = None
    app.session_state["release_setting"] = {}
    check(app.run())
    opened = open_form(app)
    if bound.value > 1:
        labels = [one.label for one in opened.number_input]
        assert f"Users with {bound.value:,.0f} rows or more, about" in labels
    app.session_state["private_choice.range_bound"] = 5  # One that is public stands in its place.
    opened = check(app.button(key="private_range_ask").click().run())
    assert "Users with 5 rows or more, about" in [one.label for one in opened.number_input]
    problem = RangeProblem(1.0, 0.5, 1.0, 1000.0, centre=0.0, users=5000.0, max_contributions=7)
    assert "of at least 7 rows" in words.describe_range_cost(problem)


def test_what_stands_in_the_form_is_in_session_files() -> None:
    app = check(use_dataset(open_app("Mean"), SECRET).run())
    fill_form(app)
    check(app.run())
    content = session_file.read_file(
        session_file.write_file(app.session_state[keys.SESSION_SNAPSHOT].content).encode()
    ).content
    assert content.values_by_key["private_choice.range_largest"] == 1000.0
    assert content.values_by_key["private_choice.range_known"] is KnownValue.TYPICAL


def test_nothing_of_private_data_is_in_what_is_said_before() -> None:
    said = []
    for data in (SECRET, replace(SECRET, values=replace(SHOP.values, values=SHOP.values.values * 7.0 + 3.0))):
        app = check(use_dataset(open_app("Mean"), data).run())
        fill_form(app)
        opened = check(app.button(key="private_range_ask").click().run())
        check(opened.button(key="private_range_draw").click().run())
        page_text = shown_texts(check(app.button(key="private_range_ask").click().run()))
        said.append(page_text[page_text.index("cost nothing, and are") : page_text.index("Spends ε")])
    assert said[0] == said[1]


def test_words_for_every_relation_and_number_of_users() -> None:
    problem = RangeProblem(1.0, 0.5, 1.0, 1000.0, centre=0.0, users=5000.0)
    assert "typically" in words.describe_range_cost(problem)
    assert "with half of ε" in words.describe_range_cost(replace(problem, neighbours=Neighbours.REPLACE_USER))
    for_users = replace(problem, clamps_users=True, users=128.0)
    assert "users of 1 row or more" in words.describe_range_cost(replace(for_users, users=5000.0))
    assert "public range that you know is better" in words.describe_range_cost(
        replace(for_users, users=127.0)
    )
    assert "public range that you know is better" not in words.describe_range_cost(for_users)
    few = replace(problem, users=20.0)
    assert "Not recommended" in words.describe_range_cost(few)
    assert "typically" in words.describe_range_cost(replace(problem, users=few.users_needed))
    assert few.power == 1.5 < problem.power <= 2.5


def test_a_session_file_carries_it_beside_what_it_cost() -> None:
    asked = RangeProblem(1.0, 0.5, 1.0, 1000.0, centre=20.0, users=400.0)
    drawn = DrawnRange(20.0 - float(asked.grid[5]), 20.0 + float(asked.grid[9]), FACTS, asked, "amount")
    known = replace(asked, centre=None, lower=3.0)
    middle = replace(asked, centre=None)
    others = (
        DrawnRange(3.0, 3.0 + float(known.grid[7]), FACTS, known, "amount"),
        DrawnRange(
            float(middle.centres[4] - middle.grid[3]),
            float(middle.centres[4] + middle.grid[3]),
            FACTS,
            middle,
            "",
        ),
    )

    def read(content: object, account: Ledger) -> tuple[object, list[str]]:
        problems = Problems()
        found = saved.from_json(JsonValue(content, "", problems), {"digest": account})
        return found, [one.message for one in problems.entries]

    for one in (drawn, *others):
        held = {"digest": ((NumberPair.RANGE, one),)}
        written = json.loads(json.dumps(saved.to_json(held)))
        assert read(written, Ledger().add(FACTS)) == (held, [])
        assert read(written, Ledger())[1]
        earlier = json.loads(json.dumps(written))
        del earlier["digest"][0]["clamps_users"]  # Files of earlier versions clamp rows.
        assert not read(earlier, Ledger().add(FACTS))[1]
        for name, wrong in (
            ("lower", one.lower + 1e-3),
            ("upper", "x"),
            ("epsilon", 0.7),
            ("unit", 0.0),
            ("centre", ""),
        ):
            changed = json.loads(json.dumps(written))
            changed["digest"][0][name] = wrong
            assert read(changed, Ledger().add(FACTS))[1], name


def test_a_range_for_users_is_drawn_where_the_mean_clamps_users() -> None:
    app = check(use_dataset(open_app("Mean"), SECRET).run())
    check(app.segmented_control(key="mean.clamp").set_value(Clamp.USERS).run())
    fill_form(app, bound=4)
    opened = check(app.button(key="private_range_ask").click().run())
    assert "The range is for users of 4 rows or more" in shown_texts(opened)
    check(opened.button(key="private_range_draw").click().run())
    opened = check(app.button(key="private_range_ask").click().run())
    check(opened.button(key="private_range_draw_confirm").click().run())
    (((_, drawn),),) = app.session_state["private_choice.choices"].values()
    assert drawn.problem.clamps_users
    assert drawn.facts.epsilon == 0.5
    check(app.run())
    assert (app.number_input(key="mean.lower").value, app.number_input(key="mean.upper").value) == (
        drawn.lower,
        drawn.upper,
    )
