"""Private groups on Group by: answer, words and figures as pure functions; the job in one opened session."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from dpcore.code import write
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Disclosure
from dpcore.common.programs import Program
from dpcore.contributions import ContributionHistogram
from dpcore.data.task_facets import Pairs
from dpcore.per_group.answer import answer, words
from dpcore.per_group.answer.error_map import split_error
from dpcore.per_group.answer.solution import SELECTED_MAP_SHAPE
from dpcore.per_group.pairs import UserGroupPairs
from dpcore.per_group.parameters import PerGroupParameters, Statistic
from dpcore.per_group.problem import PerGroupProblem
from dpcore.per_group.selection import SelectionProblem
from dpcore.per_group.selection_rules import SelectionRule
from tests.pages.driving import chart, check, errors, finish, open_app, open_tab, read_shown_link, trace
from tests.pages.per_group.conftest import SHOP, answer_from, draw_plot, read_choice_file, solve


def build_parameters(epsilon: float = 3.0, **options: object) -> PerGroupParameters:
    private = {
        "selection": SelectionRule.TRUNCATED_GEOMETRIC,
        "selection_share": 0.5,
        "selection_delta": 1e-6,
    }
    return PerGroupParameters(epsilon, **{**private, **options})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def rows() -> Any:
    return solve(SHOP, build_parameters())


@pytest.mark.parametrize("private", [True, False])
def test_a_column_of_zeros_is_answered_by_publishing_nothing(private: bool) -> None:
    # Of sums that are all 0 every bound is as good as another, and there is no range to search.
    facet = Pairs(
        np.array([0, 0, 1]),
        np.array([0, 1, 1]),
        2,
        rows=np.array([1, 2, 1]),
        sums=np.zeros(3),
        sums_of_squares=np.zeros(3),
        value_column="zero",
        value_range=(0.0, 0.0),
    )
    data = replace(
        SHOP,
        histogram=ContributionHistogram([1, 3], [1, 1]),
        pairs=facet,
        values=None,
        totals=None,
        task_names=(),
    )
    question = (
        build_parameters(statistic=Statistic.SUM) if private else PerGroupParameters(1.0, Statistic.SUM)
    )
    view = solve(data, question)
    assert (view.pair, view.pair_error, view.saved_share) == (None, 0.0, 0.0)
    assert view.pair_choice.certificate.lower_bound == 0.0
    assert answer_from(view, data).headline.startswith("Release nothing at")
    assert draw_plot(view).data


@pytest.mark.long
def test_the_answer_is_the_best_of_all_pairs(rows: Any) -> None:
    selection = SelectionProblem(PerGroupProblem(UserGroupPairs.from_facet(SHOP.pairs), build_parameters()))
    least, l0, linf = min(
        (selection.compute_error(l0, c), l0, c) for l0, c in product(range(1, 17), range(1, 26))
    )
    # The search stops at a gap of 0.001.
    assert least <= rows.pair.error <= least * 1.001
    assert rows.pair_choice.certificate.lower_bound <= least
    assert rows.error_map.errors.min() >= least
    kept, lost = split_error(rows.problem, rows.selection_solution.selected_groups_by_bounds_name["pair"])
    assert kept + lost == pytest.approx(rows.pair.error, rel=1e-12)
    assert (rows.vector_choices, rows.error_parts) == ((), None)
    assert l0 > 1
    assert linf > 1


def test_curves_go_through_what_is_asked(rows: Any) -> None:
    found = rows.selection_solution
    for key in ("pair", "scaled"):
        (epsilons, released, error_kept, error_lost), groups = (
            found.curves_by_bounds_name[key],
            found.selected_groups_by_bounds_name[key],
        )
        app = int(np.argmin(np.abs(epsilons - 3.0)))
        assert epsilons[app] == pytest.approx(3.0)
        assert released[app] == pytest.approx(groups.num_expected_groups, rel=1e-9)
        assert error_kept[app] + error_lost[app] == pytest.approx(
            rows.problem.combine_errors(groups.mean_squares), rel=1e-9
        )
        assert np.all(np.diff(released) > 0.0)
    assert (
        draw_plot(rows, "per-group-kept-over-epsilon").data[0].y[-1]
        == found.curves_by_bounds_name["pair"][1][-1]
    )
    assert sum(t.mode != "text" for t in draw_plot(rows, "per-group-error-over-epsilon").data) == 4
    columns = answer_from(rows).plots["per-group-kept-over-epsilon"]().columns
    assert {"groups_pair", "error_of_lost_scaled"} <= set(columns)


@pytest.mark.long
def test_the_card_says_what_is_kept_and_how_the_budget_is_split(rows: Any) -> None:
    told = answer_from(rows)
    assert told.headline.startswith("Keep at most")
    assert ", of at most " in told.alternative.sentence
    facts = dict(told.facts)
    assert facts["Budget"].startswith(
        "ε = 1.5 and δ = 0.000001 to select groups (truncated geometric), ε = 1.5 for"
    )
    assert "without a proof" in facts["Without sampling amounts"]
    assert "tuner" in rows.selection_solution.selected_groups_by_bounds_name
    released = next(number for number in told.numbers if number.label == "Groups released")
    assert released.note == "of 40, on average"
    assert any("count as 0" in text for text in told.assumptions)
    assert "PipelineDP has it" in write(told.code.forms[0][1], Program.OPENDP).differences[0]
    assert "TRUNCATED_GEOMETRIC" in write(told.code.forms[0][1], Program.PIPELINEDP).text
    gaussian = solve(SHOP, build_parameters(mechanism=NoiseKind.GAUSSIAN, delta=1e-5))
    assert "δ = 0.00001 for the noise" in dict(answer_from(gaussian, SHOP).facts)["Budget"]
    private = replace(SHOP, disclosure=Disclosure.PRIVATE)
    assert (
        "the groups and the pair were" not in answer_from(solve(private, build_parameters()), private).detail
    )


def test_what_survives_is_said_and_drawn(rows: Any) -> None:
    found = rows.selection_solution
    pair = found.selected_groups_by_bounds_name["pair"]
    columns = answer_from(rows).plots["per-group-survival"]().columns
    assert columns["kept_at_pair"].sum() == pytest.approx(pair.num_expected_groups)
    likely = found.users_per_group[pair.keep_probabilities >= 0.5].min()
    assert f"has {likely} users" in words.describe_survival(rows)[0]
    assert next(t.name for t in draw_plot(rows, "per-group-survival").data) == "Best pair"
    saved = read_choice_file(rows)
    assert saved["answer"]["groups_released_on_average"] == pair.num_expected_groups
    assert saved["answer"]["scaled_users"]["proof"] == "none"


def test_where_nothing_survives_the_page_says_so() -> None:
    view = solve(SHOP, build_parameters(1e-4, statistic=Statistic.USERS))
    assert view.pair is None
    assert words.write_headline(view).startswith("Release nothing at ε = 0.0001")
    assert draw_plot(view).data
    assert words.describe_survival(view)


def test_stop_gives_what_was_found_until_then() -> None:
    asks = iter(range(10**6))
    view = solve(SHOP, build_parameters(), should_stop=lambda: next(asks) > 60)
    assert view.pair_choice.stop_reason.startswith("Stopped")
    assert view.error_map.amount_bounds.size < SELECTED_MAP_SHAPE[1]
    assert draw_plot(view).data
    # Stopped before anything was looked at: nothing says that nothing is best.
    questions = (
        build_parameters(),
        PerGroupParameters(1.0),
        PerGroupParameters(1e-3, Statistic.MEAN, lower=0.0, upper=100.0),
    )
    for question in questions:
        early = solve(SHOP, question, should_stop=lambda: True)
        if early.pair is None:
            told = answer_from(early, SHOP)
            assert not early.pair_choice.is_settled
            assert "Nothing useful" not in early.pair_choice.stop_reason
            assert "is best" not in early.pair_choice.stop_reason
            assert told.numbers[0].text == "none found"
            if "scale" not in told.headline:
                assert told.headline.startswith("No useful pair was found at ε")
                assert "no bound was found" in answer.write_methods(early, SHOP).no_release_sentence
            if early.selection_solution is not None:
                assert words.describe_survival(early)[-1].startswith("No useful bounds were found")
    assert early.pair is None
    public = solve(SHOP, PerGroupParameters(1.0), should_stop=lambda: True)
    assert public.vector_choices[0].stop_reason.startswith("Stopped")


@pytest.mark.long
def test_the_page_selects_groups_privately_in_a_job() -> None:
    app = open_app("Group by", link="1", data="shop-events", epsilon="3")
    assert "Scaling users instead: " in app.button(key="per_group_card_alternative").label
    check(app.selectbox(key="per_group.selection").set_value(SelectionRule.TRUNCATED_GEOMETRIC).run())
    finish(app, "per_group.job")
    assert "Scaling users instead, of at most " in app.button(key="per_group_card_alternative").label
    assert trace(chart(app, "per_group_error"), "Best pair")
    assert "selection=truncated+geometric" in read_shown_link(app)
    open_tab(app, "per_group", "Which groups survive")
    assert trace(chart(app, "per_group_survival"), "Best pair")
    check(app.number_input(key="per_group.selection_share").set_value(2.0).run())
    assert "share of ε for selecting groups must lie between" in errors(app)
    check(app.selectbox(key="per_group.selection").set_value(SelectionRule.PUBLIC_LIST).run())
    assert "Scaling users instead: " in app.button(key="per_group_card_alternative").label
    assert not errors(app)
