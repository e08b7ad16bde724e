"""Budget plan: lines in a table are the text that links carry; the page says what the core answers; edges."""

from __future__ import annotations

import csv
import math
import tomllib
from dataclasses import replace
from types import SimpleNamespace
from urllib.parse import unquote_plus

import pytest
from pandas import read_csv

import dpcore as ss
from dpcore.common.privacy import Disclosure
from dpcore.common.programs import Program
from dpcore.contributions import ContributionHistogram
from dpcore.counting.count import to_dataset
from dpcore.data import samples
from dpcore.dataset import Dataset
from dpcore.mean import Target, VarianceSource
from dpcore.plan.answer import build_answer, solve
from dpcore.plan.parameters import Objective, PlanParameters, choose_defaults
from dpcore.report.script import ScriptSource
from pages.plan import inputs, line_table, question
from pages.shared.base import keys
from pages.shared.report import report_content
from tests.pages.driving import (
    check,
    errors,
    go,
    list_metrics,
    open_app,
    open_on_dataset,
    read_card_texts,
    read_shown_link,
    shown_texts,
    use_dataset,
)
from tests.pages.reporting import REPORT_TIME

SHOP = samples.load("shop-events")
TEXT = (
    "users; rows within 2%; sum within 12 weight 0.5; median within 3%; quantile 0.9; rows per group weight 2"
)


def open_plan(text, **options):
    return open_app(
        "Budget plan",
        link="1",
        data="shop-events",
        epsilon="1",
        lines=text,
        lower="0",
        upper="100",
        **options,
    )


def test_a_plan_starts_empty_and_offers_what_the_data_have():
    empty = {"lines": None, "lower": None, "upper": None, "proposed": None}
    of_mean = ("target", "variance_source", "likeness")
    empty |= dict.fromkeys((*of_mean, *(f"{name}_proposed" for name in of_mean)))
    held = question.propose_values(SHOP, empty)
    assert held["lines"] == ""
    assert held["lower"] <= SHOP.values.values.min()
    assert held["upper"] >= SHOP.values.values.max()
    assert "lines" not in question.propose_values(
        SHOP, {**empty, **held, "lines": "rows"}
    )  # What a person added stays.
    offered = line_table.list_offered_statistics(SHOP)
    assert offered[:4] == ["users", "rows", "sum", "mean"]
    together = [name for name in offered if name != "standard deviation"]  # One release with the variance.
    solve(SHOP, PlanParameters(1.0, lines="; ".join(together), lower=held["lower"], upper=held["upper"]))
    counts = Dataset("few", "", Disclosure.PUBLIC, ContributionHistogram.from_counts([1, 4]))
    assert line_table.list_offered_statistics(counts) == ["users", "rows"]
    app = open_plan("")
    assert "The plan is empty" in shown_texts(app)
    assert not list_metrics(app)
    for name in ("users", "rows_per_group"):
        app = check(app.button(key=f"plan_add_{name}").click().run())
    assert "lines=users; rows per group&" in unquote_plus(read_shown_link(app))
    assert list_metrics(app)
    app.number_input(key="plan_quantile").set_value(0.25).run()
    app = check(app.button(key="plan_add_quantile").click().run())
    assert "rows per group; quantile 0.25" in unquote_plus(read_shown_link(app))


@pytest.mark.parametrize(
    ("edit", "lines_text"),
    [
        ({"line": 1, "label": "rows", "target": "3%"}, "users; rows within 3%"),
        ({"line": 0, "label": "users"}, "rows within 2%"),
        ({"line": 0, "label": "rows"}, "users; rows within 2%"),  # The table has changed since.
        ({"line": 2, "label": "rows"}, "users; rows within 2%"),
        ({"line": True, "label": "rows"}, "users; rows within 2%"),
        ("rows", "users; rows within 2%"),
    ],
)
def test_an_edit_of_the_table_changes_the_line_that_it_names(edit, lines_text, monkeypatch):
    state = {"plan.lines": "users; rows within 2%", "plan_table": SimpleNamespace(edited=edit)}
    monkeypatch.setattr(line_table.st, "session_state", state)
    line_table.apply_edit()
    assert state["plan.lines"] == lines_text


def test_the_page_says_what_the_core_answers_and_every_edge_in_a_sentence():
    text = "users within 1%; rows within 2%; sum; rows per group within 20%"
    app = open_plan(text, program=Program.OPENDP.value)
    parameters = PlanParameters(1.0, lines=text, lower=None, upper=None, program=Program.OPENDP)
    answer = build_answer(SHOP, parameters, solve(SHOP, parameters))
    assert answer.headline in shown_texts(app)
    assert list_metrics(app)[0].value == answer.numbers[0].text
    assert (
        answer.solution.planned_lines[answer.solution.most_expensive_index].line.label.lower()
        in answer.detail.lower()
    )
    assert text in unquote_plus(read_shown_link(app))
    app = check(app.segmented_control(key="plan.objective").set_value(Objective.REACH).run())
    least_asked = PlanParameters(1.0, lines=text, objective=Objective.REACH, program=Program.OPENDP)
    least_answer = build_answer(SHOP, least_asked, solve(SHOP, least_asked))
    assert least_answer.headline in shown_texts(app)
    app = check(app.segmented_control(key="plan.objective").set_value(Objective.LARGEST).run())
    assert "needs a target error in every line; sum has none" in errors(app)
    assert not list_metrics(app)


USER, VALUE, GROUP = "Kunde, Nr.", "Betrag $x_1$ *netto*", "Gruppe; <b>"
"""Names of columns as people have them."""


@pytest.fixture(scope="module")
def nasty(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """Sums of both signs that come to 0, cells without a user or a group, and one user with most of the rows."""
    file = tmp_path_factory.mktemp("plan") / "Umsätze.csv"
    with file.open("w", newline="", encoding="utf-8") as text:
        rows = csv.writer(text)
        rows.writerow([USER, VALUE, GROUP])
        for user in range(60):
            for at in range(1 + user % 6):
                rows.writerow([f"u{user}", 10 + at, ["a", "b", "c,d"][at % 3]])
                rows.writerow([f"u{user}" if at % 2 else "", 0, "a"])
        total = sum(10 + at for user in range(60) for at in range(1 + user % 6))
        rows.writerows([["giant", 0, ""]] * 2_000)
        rows.writerow(["giant", -total, "a"])
    return to_dataset(str(file), user=USER, value=VALUE, group=GROUP)


@pytest.mark.long
def test_edges_of_lines_and_of_data_get_an_answer_or_a_sentence(nasty: Dataset):
    """In one session: the lines are written as the table of the page writes them."""
    app = open_on_dataset(nasty, "Budget plan")
    app.session_state["plan.lines"] = "users; sum"  # No share of 0 can be a target.
    check(app.run())
    assert "Sum is 0 on these data" in errors(app)
    good = "users; rows; sum within 10; users per group; rows per group; sums per group within 5"
    for text, ranged in (
        (good, False),
        ("rows", False),
        ("users; mean within 2; median", True),
        ("mean within 0.0001; rows", True),
    ):
        app.session_state["plan.lines"] = text
        if text.startswith("mean"):  # What sampling leaves is in the way of a population's mean alone.
            app.session_state["plan.target"] = Target.POPULATION
        check(app.run())
        if ranged and app.number_input(key="plan.lower").value is None:
            app.number_input(key="plan.lower").set_value(-100.0)
            check(app.number_input(key="plan.upper").set_value(100.0).run())
        ends = {"lower": -100.0, "upper": 100.0} if ranged else {}
        asked = app.session_state[keys.PAGE_PARAMETERS]
        assert asked == PlanParameters(
            asked.epsilon, lines=text, **ends, **{**choose_defaults(nasty), "target": asked.target}
        )
        answer = build_answer(nasty, asked, solve(nasty, asked))
        assert answer.headline in shown_texts(app)
        assert list_metrics(app)[0].value == answer.numbers[0].text
        assert all(math.isfinite(line.error) for line in answer.solution.lines)
    assert "no ε is enough" in shown_texts(app)
    for text, sentence in (
        ("rows; rows within 3", "Rows stands there twice"),
        ("rows weight 0", "The weight of rows must lie"),
        ("rows within 0", "The target error of rows must lie"),
        ("users per grp", "Line 1 cannot be read"),
        ("; ".join(f"quantile 0.{k}" for k in range(101, 152)), "at most 50 lines; there are 51"),
    ):
        app.session_state["plan.lines"] = text
        check(app.run())
        assert sentence in errors(app)
        assert not list_metrics(app)


@pytest.mark.long
def test_what_leaves_the_page_reads_a_file_with_any_names(nasty: Dataset):
    """Settings as TOML, program, script and report; the answer of the file of settings is that of the page."""
    parameters = PlanParameters(
        3.0, lines="users; sum within 10; mean within 2; sums per group within 5", lower=-100.0, upper=100.0
    )
    answer = build_answer(nasty, parameters, solve(nasty, parameters))
    held = tomllib.loads(inputs.write_settings(nasty, answer))
    assert (held["user"], held["value"], held["group"]) == (USER, VALUE, GROUP)
    path = nasty.layout.files[0].name
    assert ss.plan_bounds(nasty, **held).parameters == parameters
    content = report_content.build_page_report(
        question.QUESTION, answer, ScriptSource(nasty, needs_rows=True)
    )
    public = report_content.write_json(content, REPORT_TIME, public_only=True)
    assert answer.headline not in public
    for private in (path, "Betrag"):
        assert private not in public
    compile(report_content.write_script(content, REPORT_TIME, False), "script.py", "exec")
    assert VALUE in report_content.write_script(content, REPORT_TIME, False)


@pytest.mark.long
def test_what_mean_assumes_the_mean_of_a_plan_assumes_and_of_private_values_it_is_asked_anew():
    asked = {"link": "1", "data": "shop-events", "epsilon": "1", "lower": "0", "upper": "100"}
    app = open_app(
        "Mean", **asked, target="table", variance_source="values", counts="private", likeness="values"
    )
    app = check(app.segmented_control(key="mean.variance_source").set_value(VarianceSource.WORST_CASE).run())
    app = go(app, "Budget plan")
    assert app.session_state["plan.variance_source"] is VarianceSource.WORST_CASE
    app.session_state["plan.lines"] = "mean within 1"
    app = check(app.run())
    app = check(app.segmented_control(key="plan.variance_source").set_value(VarianceSource.FROM_VALUES).run())
    # One line takes all of the budget: its error is that of Mean, at the settings that stand there now, too.
    value = list_metrics(app)[-1].value
    app = go(app, "Mean")
    assert app.session_state["mean.variance_source"] is VarianceSource.FROM_VALUES
    assert value in read_card_texts(app)
    app = use_dataset(app, replace(SHOP, name="mine.csv", disclosure=Disclosure.PRIVATE))
    assert app.session_state["mean.variance_source"] is VarianceSource.WORST_CASE
    assert go(app, "Budget plan").session_state["plan.variance_source"] is VarianceSource.WORST_CASE


@pytest.mark.long
def test_a_release_of_another_page_becomes_a_line_with_its_range():
    app = open_app(
        "Quantile", link="1", data="shop-events", epsilon="1", quantiles="0.5, 0.9", low="0", high="250"
    )
    app = check(app.button(key="quantile_card_plan").click().run())
    assert not [button for button in app.button if button.key == "quantile_card_plan"]  # They are there now.
    app = go(app, "Budget plan")
    said = unquote_plus(read_shown_link(app))
    assert "median; quantile 0.9" in said
    assert "upper=250" in said
    assert list_metrics(app)


def test_a_line_of_another_column_is_added_with_its_own_range():
    frame = read_csv(samples.FOLDER / "support_tickets.csv")
    columns = {"user": "customer", "value": "words", "further_values": ("hours_waited", "years")}
    app = open_on_dataset(to_dataset(frame, **columns, disclosure="public"), "Budget plan")
    app = check(app.button(key="plan_add_rows").click().run())
    assert "Enter a lowest value" in shown_texts(app)
    app.number_input(key="plan_column_lower").set_value(0.0).run()
    app = check(app.number_input(key="plan_column_upper").set_value(72.0).run())
    app = check(app.button(key="plan_add_column").click().run())
    assert app.session_state["plan.lines"] == "rows; mean of hours_waited from 0 to 72"
    # No line needs the range of the first column.
    assert not [field for field in app.number_input if field.key in ("plan.lower", "plan.upper")]
    assert not errors(app)
