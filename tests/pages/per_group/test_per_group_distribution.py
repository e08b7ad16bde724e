"""Group by where only the distribution of pairs is known: limits of the error, report and script."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dpcore.common.privacy import Disclosure
from dpcore.counting import build_dataset, read_table, reduce
from dpcore.data import group_pairs
from dpcore.data.column_roles import Roles, TableKind
from dpcore.per_group.answer import answer
from dpcore.per_group.answer.solution import solve_by_distribution
from dpcore.per_group.moments import compute_pair_error
from dpcore.per_group.pairs import UserGroupPairs
from dpcore.per_group.problem import PerGroupProblem
from dpcore.per_group.selection_rules import SelectionRule
from dpcore.report.script import ScriptSource
from pages.per_group.question import QUESTION
from pages.shared.report import report_content
from tests.pages.driving import (
    SHOP_EVENTS,
    chart,
    check,
    errors,
    open_on_dataset,
    open_tab,
    shown_texts,
    trace,
)
from tests.pages.per_group.conftest import SHOP, answer_from, build_parameters, read_choice_file
from tests.pages.reporting import (
    REPORT_TIME,
    assert_script_has_what_the_page_has,
    run_and_read_answer,
    run_script,
)


@pytest.mark.long
def test_where_pairs_are_too_many_their_distribution_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reduce.dataset, "MAX_PAIRS", 100)
    roles = Roles(TableKind.EVENTS, user="user_id", task="product", value="amount")
    dataset = build_dataset(read_table(SHOP_EVENTS, "events.csv"), roles, Disclosure.PUBLIC)
    assert dataset.pairs is None
    view = solve_by_distribution(dataset, build_parameters())
    exact = PerGroupProblem(UserGroupPairs.from_facet(SHOP.pairs), build_parameters())
    true = compute_pair_error(exact, view.pair.max_groups, view.pair.max_amount)
    assert view.error_limits[0] <= true <= view.error_limits[1]
    assert view.error_map.errors.min() == view.pair_choice.error
    told = answer_from(view, dataset)
    assert "Which pairs lie in which group is not known" in told.detail
    assert not told.proofs
    empty_solution = solve_by_distribution(dataset, build_parameters(epsilon=1e-5))
    assert answer_from(empty_solution, dataset).headline.startswith("Release nothing at ε = 0.00001")

    methods = answer.write_methods(view, dataset)
    assert f"at most {view.pair_choice.max_groups} groups" in methods.procedure
    assert f"is about {told.numbers[1].text}" in methods.procedure
    assert "the same in every group" in methods.rule_sentence
    assert answer.write_methods(empty_solution, dataset).no_release_sentence.endswith("nothing was released.")
    choice = read_choice_file(view, dataset)
    assert choice["answer"]["max_groups_contributed"] == view.pair.max_groups
    assert choice["answer"]["error_at_least"] <= true <= choice["answer"]["error_at_most"]
    assert "in proportion to its size" in choice["answer"]["approximate"]
    assert any("the same mixture of pairs" in sentence for sentence in choice["assumptions"])

    app = open_on_dataset(dataset, "Group by")
    assert "Which pairs lie in which group is not known" in shown_texts(app)
    open_tab(app, "per_group", "Downloads")
    assert {"per_group_choice_file", "pair_distribution_file", "per_group_report_html"} <= {
        button.key for button in app.get("download_button")
    }
    ((x,), (y,)) = trace(chart(app, "per_group_error"), "Best pair")
    assert (x, y) == (view.pair.max_groups, view.pair.max_amount)
    check(app.selectbox(key="per_group.selection").set_value(SelectionRule.LAPLACE).run())
    assert "Private groups need the pairs" in errors(app)


@pytest.mark.long
def test_report_and_script_of_a_distribution_say_what_the_page_says(tmp_path: Path) -> None:
    sizes = group_pairs.summarise_pairs(SHOP.pairs)
    counted = replace(SHOP, pairs=None, pair_sizes=sizes, disclosure=Disclosure.PRIVATE)
    name = "pair-distribution-PRIVATE-do-not-publish.json"  # As the button names it.
    (tmp_path / name).write_text(group_pairs.write_distribution(counted), encoding="utf-8")
    private = group_pairs.read_distribution((tmp_path / name).read_bytes(), name, Disclosure.PRIVATE)
    view = solve_by_distribution(private, build_parameters())
    of = report_content.build_page_report(
        QUESTION,
        answer_from(view, private),
        ScriptSource(private, needs_rows=True, write_data_cell=answer.write_data_cell),
    )
    (figure, *_), told = of.figures, answer_from(view, private)
    assert figure.columns["error"].tolist() == view.error_map.errors.ravel().tolist()
    html = report_content.write_html(of, REPORT_TIME, False)
    assert told.numbers[0].text in html
    assert "Which pairs lie in which group is not known" in html
    assert told.numbers[0].text not in report_content.write_html(of, REPORT_TIME, True)
    app = open_on_dataset(private, "Group by")
    assert_script_has_what_the_page_has(app, of, run_and_read_answer(of, tmp_path))
    for public_only in (False, True):
        printed = run_script(report_content.write_script(of, REPORT_TIME, public_only), tmp_path)
        for number in told.numbers:
            assert f"{number.label}: {number.text}" in printed
