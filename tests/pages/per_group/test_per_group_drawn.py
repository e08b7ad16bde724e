"""The pair chosen with DP: from the card of Group by, its account, its code, its file."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from dpcore.code import write
from dpcore.common.checks import Problems
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Disclosure, Ledger, Neighbours, ReleaseFacts
from dpcore.common.programs import Program
from dpcore.common.strict_json import JsonValue
from dpcore.common.wording import format_percent
from dpcore.per_group.answer import answer
from dpcore.per_group.parameters import PerGroupParameters, Statistic
from dpcore.per_group.private_pair import DrawnPair, PrivatePairProblem
from dpcore.private_choice.answer import words
from dpcore.private_choice.parameters import NumberPair
from pages.private_choice import saved
from tests.pages.driving import (
    chart,
    check,
    confirm,
    go,
    open_app,
    read_card_texts,
    shown_texts,
    trace,
    use_dataset,
)
from tests.pages.per_group.conftest import SHOP

SECRET = replace(SHOP, name="secret.csv", disclosure=Disclosure.PRIVATE)
FACTS = ReleaseFacts(0.5, 0.0, Neighbours.ADD_OR_REMOVE_USER, "exponential mechanism")


def build_private_pair(statistic: Statistic = Statistic.ROWS, **options: object) -> DrawnPair:
    unit = 0.25 if statistic is Statistic.SUM else 1.0
    parameters = PerGroupParameters(1.0, statistic, num_groups=60, **options)  # type: ignore[arg-type]
    problem = PrivatePairProblem(parameters, 0.5, 50, unit)
    groups, amounts = problem.candidates
    return DrawnPair(int(groups[-1]), float(amounts[-1] * unit), FACTS, problem, "product")


@pytest.mark.long
def test_the_pair_is_drawn_on_the_card_and_carried_away() -> None:
    app = check(use_dataset(open_app("Group by"), SECRET).run())
    check(app.button(key="per_group_card_draw").click().run())
    assert "paste your public list of groups" in shown_texts(app)
    assert not [button for button in app.button if button.key == "per_group_card_draw_confirm"]
    app.session_state["per_group.num_groups"] = 60.0
    app.session_state["private_choice.selection_epsilon"] = 0.5
    check(app.run())
    # 0.5 times 60 groups over 1: 30, and nothing of the data is in it.
    assert f"usually within about {format_percent(0.05, 1)} of the best pair's" in shown_texts(app)
    confirm(app, "per_group_card_draw")
    ((_, held),) = app.session_state["private_choice.choices"].items()
    ((kind, drawn),) = held
    assert kind is NumberPair.PAIR
    assert drawn.column == SHOP.pairs.label
    page_text = shown_texts(app)
    assert words.format_selection(drawn) in read_card_texts(app)
    (across,), (upwards,) = trace(chart(app, "per_group_error"), "Chosen with DP")
    assert (across, upwards) == (drawn.max_groups, drawn.max_amount)
    assert "ε = 1.5 in all" in page_text
    assert "DP release (epsilon = 0.5" in page_text
    opened = check(app.button(key="per_group_card_code").click().run())
    bounds_code = f"MAX_GROUPS, MAX_ROWS = {drawn.max_groups}, {int(drawn.max_amount)} "
    assert bounds_code in "".join(block.value for block in opened.code)
    # For other settings it is not theirs; it stays on Data.
    app.session_state["per_group.num_groups"] = 70.0
    check(app.run())
    assert drawn.facts.label not in shown_texts(app)
    app.session_state["per_group.num_groups"] = 60.0
    assert drawn.facts.label in shown_texts(check(app.run()))
    go(app, "Data")
    assert f"Pair of bounds per group: **{words.format_selection(drawn)}**" in shown_texts(app)
    # Other data do not have it.
    other = replace(
        SECRET, histogram=replace(SHOP.histogram, users=SHOP.histogram.users * 2), values=None, pairs=None
    )
    assert drawn.facts.label not in shown_texts(check(use_dataset(app, other).run()))


@pytest.mark.parametrize("statistic", [Statistic.ROWS, Statistic.USERS, Statistic.SUM])
def test_programs_hold_the_drawn_pair_and_its_label(statistic: Statistic) -> None:
    private_pair = build_private_pair(statistic)
    private_forms = answer.write_private_forms(private_pair, SHOP)
    ((_, choice),) = private_forms.forms
    for library in (Program.PYTHON, Program.OPENDP):
        text = write(choice, library).text
        assert "DP release (epsilon = 0.5" in text
        assert "do not publish" not in text.lower()
    python = write(choice, Program.PYTHON).text
    if statistic is Statistic.ROWS:
        bounds = f"{private_pair.max_groups}, {int(private_pair.max_amount)} "
        assert f"MAX_GROUPS, MAX_ROWS = {bounds}" in python
    else:
        assert f"MAX_GROUPS = {private_pair.max_groups} " in python
    if statistic is Statistic.SUM:
        assert f"LOW, HIGH = 0.0, {private_pair.max_amount!r}" in python


def test_a_session_file_carries_it_beside_what_it_cost() -> None:
    for item in (
        build_private_pair(),
        build_private_pair(Statistic.SUM, mechanism=NoiseKind.GAUSSIAN, delta=1e-6),
    ):
        held = {"digest": ((NumberPair.PAIR, item),)}
        written = json.loads(json.dumps(saved.to_json(held)))

        def read(content: object, account: Ledger) -> tuple[object, list[str]]:
            problems = Problems()
            found = saved.from_json(JsonValue(content, "", problems), {"digest": account})
            return found, [entry.message for entry in problems.entries]

        paid = Ledger().add(FACTS)
        assert read(written, paid) == (held, [])
        assert read(written, Ledger())[1]  # It did not cost anything there.
        for name, wrong in (
            ("max_groups", 59),
            ("max_amount", 0.1),
            ("epsilon", 0.7),
            ("statistic", "mean"),
            ("num_groups", 0),
            ("unit", "1"),
            ("column", 3),
            ("mechanism", "Laplace"),
        ):
            changed = json.loads(json.dumps(written))
            changed["digest"][0][name] = wrong
            assert read(changed, paid)[1], name


def test_what_a_draw_usually_costs_is_said_from_public_figures() -> None:
    def describe_cost(epsilon: float, groups: int) -> str:
        return words.describe_pair_cost(
            PrivatePairProblem(PerGroupParameters(1.0, num_groups=groups), epsilon, 10)
        )

    for epsilon, groups, share in ((0.5, 10, "5"), (0.5, 4, "15"), (0.5, 2, "30")):
        assert f"about {share}\xa0%" in describe_cost(epsilon, groups)
        assert "usually" in describe_cost(epsilon, groups)
        assert "at most" not in describe_cost(epsilon, groups)
    assert "a larger ε" in describe_cost(0.5, 1)
