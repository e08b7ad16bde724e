"""Group by: answer, words and figures as pure functions; one opened session for the wiring."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
import pytest

from dpcore.code import write
from dpcore.common.checks import InvalidInput
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Disclosure
from dpcore.common.programs import Program
from dpcore.common.wording import format_count
from dpcore.contributions import ContributionHistogram
from dpcore.data import samples
from dpcore.data.group_pairs import build_pairs
from dpcore.dataset import Dataset
from dpcore.per_group.answer import answer, build_answer
from dpcore.per_group.answer import words as answer_words
from dpcore.per_group.answer.solution import MIN_SAVING
from dpcore.per_group.answer.words import NAME_BY_OBJECTIVE
from dpcore.per_group.moments import compute_moments, compute_pair_error
from dpcore.per_group.pair_of_bounds import round_up
from dpcore.per_group.pairs import UserGroupPairs
from dpcore.per_group.parameters import Objective, PerGroupParameters, Statistic
from dpcore.per_group.problem import PerGroupProblem
from dpcore.per_group.whole_vector import VectorRule, keep_amounts
from pages.per_group import inputs
from pages.per_group.question import QUESTION
from pages.shared.base import keys
from pages.shared.session import session
from tests.pages.driving import (
    chart,
    check,
    data,
    errors,
    finish,
    open_app,
    open_on_file,
    open_tab,
    raw_texts,
    read_address,
    read_shown_link,
    shown_texts,
    trace,
    use_dataset,
    work_waits_for_stop,
)
from tests.pages.per_group.conftest import (
    SHOP,
    answer_from,
    build_parameters,
    draw_plot,
    read_choice_file,
    solve,
)


def find_best_pair(parameters: PerGroupParameters) -> tuple[float, int, int]:
    """Return the error and bounds of the best of all pairs."""
    problem = PerGroupProblem(UserGroupPairs.from_facet(SHOP.pairs), parameters)
    return min((compute_pair_error(problem, l0, c), l0, c) for l0, c in product(range(1, 33), range(1, 26)))


@pytest.fixture(scope="module")
def rows() -> Any:
    return solve(SHOP, build_parameters())


def test_the_answer_is_the_best_of_all_pairs_and_its_map_holds_it(rows: Any) -> None:
    error, l0, linf = find_best_pair(rows.parameters)
    assert (rows.pair.max_groups, rows.pair.max_amount) == (l0, linf)
    assert rows.pair.error == pytest.approx(error, rel=1e-12)
    place = (
        np.flatnonzero(rows.error_map.amount_bounds == linf)[0],
        np.flatnonzero(rows.error_map.group_bounds == l0)[0],
    )
    assert rows.error_map.errors[place] == pytest.approx(error, rel=1e-9)
    assert rows.error_map.errors.min() == pytest.approx(error, rel=1e-9)
    assert rows.tuner_pair.error >= error
    assert rows.error_parts.total == pytest.approx(error, rel=1e-9)
    problem = rows.problem
    low, high = rows.near_optimal_groups
    inside = [compute_pair_error(problem, at, linf) <= 1.05 * error for at in range(1, 33)]
    assert low <= l0 <= high
    assert all(inside[low - 1 : high])
    assert not inside[low - 2]
    assert not inside[high]


@pytest.mark.long
def test_scaling_is_said_to_be_better_where_the_theorem_covers_it_and_only_there() -> None:
    for statistic in Statistic:
        view = solve(SHOP, build_parameters(statistic))
        if statistic.is_non_negative:
            assert view.best_vector.error <= view.vector_choices[0].error <= view.pair_error * (1 + 1e-3)
            told = answer_from(view).alternative
            assert (told is not None) == (view.saved_share >= MIN_SAVING)
        else:
            assert (view.best_vector, view.vector_group_errors, view.saved_share) == (None, None, 0.0)
            assert answer_from(view).alternative is None
        if view.pair is not None:  # the bound that libraries ask for comes first
            assert format_count(view.pair.max_groups, "group") in answer_words.write_headline(view)
        told = answer_from(view)
        assert told.disclosure is Disclosure.PUBLIC
        names = [name for name, _, _ in told.proofs]
        assert (
            names
            == {True: ["Pair", "One level", "Scaling"], False: [] if view.is_mean else ["Pair"]}[
                statistic.is_non_negative
            ]
        )
    scaled = answer_from(solve(SHOP, build_parameters()), SHOP)
    assert "Scaling users instead" in scaled.alternative.sentence
    assert any(name.startswith(scaled.alternative.form_prefix) for name, _ in scaled.code.forms)


def test_the_best_cap_is_promised_over_all_groups_and_not_in_each(rows: Any) -> None:
    problem = rows.problem
    stand_ins = problem.sum_by_group(
        problem.amounts - keep_amounts(problem, VectorRule.CAP, rows.vector_choices[0].max_norm)
    )
    of_cap = (
        stand_ins**2 + float(problem.parameters.compute_norm_noise_std(rows.vector_choices[0].max_norm)) ** 2
    )
    of_pair = compute_moments(problem, 1, 1).mean_squares
    assert np.any(of_pair < of_cap)
    assert problem.combine_errors(of_pair) > rows.vector_choices[0].error


@pytest.mark.long
def test_where_nothing_is_worth_releasing_the_page_says_so() -> None:
    for statistic in (Statistic.ROWS, Statistic.MEAN):
        view = solve(SHOP, build_parameters(statistic, 1e-5))
        assert view.pair is None
        told = answer_from(view)
        assert told.headline.startswith("Release nothing at ε = 0.00001")
        assert told.numbers[0].text == "none"
        assert draw_plot(view).data
        assert draw_plot(view, "per-group-sizes").data is not None


@pytest.mark.parametrize("objective", Objective)
def test_every_objective_has_its_words_and_figures(objective: Objective) -> None:
    floor = 60.0 if objective.needs_floor else None
    view = solve(
        SHOP, build_parameters(objective=objective, floor=floor, mechanism=NoiseKind.GAUSSIAN, delta=1e-6)
    )
    found = answer_from(view)
    assert "%" in found.numbers[1].text if objective.is_relative else "row" in found.numbers[1].text
    assert NAME_BY_OBJECTIVE[objective] in answer_from(view).plots["per-group-error"]().alt
    curves = view.norm_curves
    assert min(curves[1]) == pytest.approx(view.vector_choices[0].error, rel=2e-3)
    assert min(curves[2]) == pytest.approx(view.vector_choices[1].error, rel=1e-9)
    assert "L2 norm" in draw_plot(view, "per-group-norm").layout.xaxis.title.text


def test_the_persons_own_pair_is_compared_and_marked() -> None:
    view = solve(SHOP, build_parameters(own_groups=2, own_amount=5.0))
    assert view.own_pair.error == pytest.approx(compute_pair_error(view.problem, 2, 5.0))
    assert any("Your own pair, 2 × 5" in name for name in answer_from(view).facts)
    names = [t.name for t in draw_plot(view).data]
    assert {"Best pair", "PipelineDP", "Your own pair"} <= set(names)


@pytest.mark.long
def test_sums_in_a_large_unit_have_the_same_answer() -> None:
    amounts, unit = 1.0 + np.arange(SHOP.pairs.user_codes.size) % 2, 100.0
    # 1 and 2; in the large unit 0.01 and 0.02.
    facets = [
        replace(
            SHOP.pairs,
            rows=np.ones(amounts.size, dtype=np.int64),
            sums=amounts / x,
            sums_of_squares=(amounts / x) ** 2,
            value_range=(1.0 / x, 2.0 / x),
        )
        for x in (1.0, unit)
    ]
    small, large = (replace(SHOP, pairs=facet) for facet in facets)
    nothing: dict[str, object] = {"objective": Objective.MEAN_RMSE, "num_groups": 400}  # No T is of use.
    for epsilon, more in ((2.0, {}), (20.0, {}), (1e-3, nothing)):
        plain, scaled = (solve(d, build_parameters(Statistic.SUM, epsilon, **more)) for d in (small, large))
        assert scaled.pair_error == pytest.approx(plain.pair_error / unit, rel=1e-3)
        assert scaled.near_optimal_groups == plain.near_optimal_groups
        assert (scaled.pair is None) == (plain.pair is None)
        norms, norms_scaled = (view.norm_curves[0] for view in (plain, scaled))
        assert norms_scaled == pytest.approx(norms / unit, rel=1e-2)


def test_distinct_users_have_one_bound_and_a_line() -> None:
    view = solve(SHOP, build_parameters(Statistic.USERS))
    assert answer_words.instruct_to_bound(view) == f"Count each user in at most {view.pair.max_groups} groups"
    line = next(t for t in draw_plot(view).data if t.name == "Error of the pair")
    assert min(line.y) == pytest.approx(view.pair.error, rel=1e-9)
    assert answer_from(view).numbers[0].text_to_copy == str(view.pair.max_groups)


def test_groups_of_use_are_counted() -> None:
    view = solve(SHOP, build_parameters(epsilon=300.0))
    size, error = np.abs(view.problem.totals), view.group_errors
    assert view.count_useless(error) == sum(e >= s for e, s in zip(error, size, strict=True))
    found = view.find_useful_size(error)
    assert all(e < 0.1 * s for e, s in zip(error, size, strict=True) if s >= found)
    below = [e >= 0.1 * s for e, s in zip(error, size, strict=True) if s < found]
    assert any(below)
    assert view.find_useful_size(np.full(size.shape, 1e9)) is None
    assert view.find_useful_size(np.zeros(size.shape)) == size[size > 0].min()
    assert any("every error is below 10" in s for s in answer_words.describe_groups(view))


def test_amounts_are_rounded_up_to_few_digits() -> None:
    amounts = [round_up(x) for x in (0.0, 1234.1, 0.98761, 3.0, 133.4000001)]
    assert amounts == [0.0, 1240.0, 0.988, 3.0, 134.0]


def test_the_public_list_adds_empty_groups_and_may_not_be_too_short(rows: Any) -> None:
    longer = solve(SHOP, build_parameters(num_groups=80))
    assert longer.num_groups == 80
    # As many groups more, all of them noise: another pair is best.
    assert longer.pair_error < rows.pair_error
    longest = solve(SHOP, build_parameters(num_groups=100_000_000))  # costs no more than 41 groups do
    assert longest.problem.totals.size == longer.problem.totals.size == 41
    with pytest.raises(Exception, match="hold 40 groups"):
        solve(SHOP, build_parameters(num_groups=39))


def test_private_data_are_labelled_and_their_groups_as_well() -> None:
    private = replace(SHOP, disclosure=Disclosure.PRIVATE)
    told = answer_from(solve(private, build_parameters()), private)
    assert "**the groups and the pair were computed from them**" in told.detail
    assert told.disclosure is Disclosure.PRIVATE
    with_list = answer_from(solve(private, build_parameters(num_groups=40)), private)
    assert with_list.facts["Choosing with DP offers"].startswith("the pair")
    signed = answer_from(solve(private, build_parameters(Statistic.SIGNED_SUM)), private)
    assert dict(signed.facts)["Choosing with DP offers"].startswith("no pair")
    assert "the groups" not in with_list.detail
    assert "**this pair was computed from them**" in with_list.detail
    assert "Choose it with differential privacy" in with_list.detail
    for _, choice in told.code.forms:
        assert "do not publish" in write(choice, Program.PYTHON).text.lower()


def test_code_carries_the_numbers_of_the_card() -> None:
    for statistic in Statistic:
        view = solve(SHOP, build_parameters(statistic, 30.0 if statistic is Statistic.MEAN else 1.0))
        code = answer_from(view).code
        texts = {name: write(choice, Program.PYTHON).text for name, choice in code.forms}
        (pair,) = [text for name, text in texts.items() if name.startswith("Pair")]
        if statistic in (Statistic.ROWS, Statistic.MEAN):
            bounds = f"{view.pair.max_groups}, {int(view.pair.max_amount)} "
            assert f"MAX_GROUPS, MAX_ROWS = {bounds}" in pair
        else:
            assert f"MAX_GROUPS = {view.pair.max_groups} " in pair
        if statistic in (Statistic.SUM, Statistic.SIGNED_SUM):
            low = -view.pair.max_amount if statistic is Statistic.SIGNED_SUM else 0.0
            assert f"LOW, HIGH = {low!r}, {view.pair.max_amount!r}" in pair
        assert (len(texts) == 3) == statistic.is_non_negative
        if view.best_vector is not None:
            first, best_norm, _ = texts.values()
            assert first is pair
            assert f"MAX_NORM = {round_up(view.best_vector.max_norm)!r}" in best_norm


@pytest.mark.long
def test_the_file_holds_question_answer_and_proofs() -> None:
    view = solve(SHOP, build_parameters(Statistic.SUM, mechanism=NoiseKind.GAUSSIAN, delta=1e-6))
    choice_file = read_choice_file(view)
    assert choice_file["answer"]["max_groups_contributed"] == view.pair.max_groups
    assert choice_file["answer"]["max_amount_per_group_rounded"] == view.pair.max_amount
    assert choice_file["answer"]["cap"]["max_norm"] == view.vector_choices[0].max_norm
    assert choice_file["answer"]["cap"]["norm"] == "L2"
    assert choice_file["answer"]["proved_relative_gap"] <= 1e-6
    assert choice_file["data"]["num_groups"] == 40
    assert choice_file["data"]["value_column"] == "amount"
    mean = read_choice_file(solve(SHOP, build_parameters(Statistic.MEAN)), SHOP)
    assert mean["answer"]["proved_relative_gap"] is None
    assert "cap" not in mean["answer"]
    share = mean["answer"]["error"] / mean["answer"]["error_of_publishing_nothing"]
    assert mean["answer"]["relative_error"] == pytest.approx(share)


def test_only_what_the_data_hold_is_offered() -> None:
    signed = build_pairs([0, 0, 1], [0, 1, 1], 2, "city", np.array([1.0, -2.0, 3.0]), "v")
    plain = build_pairs([0, 0, 1], [0, 1, 1], 2, "city")

    def data(pairs: object) -> Dataset:
        return Dataset("d", "", Disclosure.PUBLIC, ContributionHistogram([1, 2], [1, 1]), pairs=pairs)  # type: ignore[arg-type]

    assert inputs.list_statistics(SHOP) == list(Statistic)
    assert Statistic.SUM not in inputs.list_statistics(data(signed))
    assert Statistic.SIGNED_SUM in inputs.list_statistics(data(signed))
    assert inputs.list_statistics(data(plain)) == [Statistic.ROWS, Statistic.USERS]
    assert inputs.list_statistics(data(replace(plain, rows=None))) == [Statistic.USERS]


@pytest.mark.long
def test_the_page_goes_from_one_question_to_the_next() -> None:
    app = open_app("Group by", link="1", data="shop-events", epsilon="1")
    _, l0, linf = find_best_pair(build_parameters())
    ((x,), (y,)) = trace(chart(app, "per_group_error"), "Best pair")
    assert (x, y) == (l0, linf)
    assert f"Keep at most {l0} groups per user, and {linf} rows in each." in shown_texts(app)
    open_tab(app, "per_group", "Scaling instead")
    assert trace(chart(app, "per_group_norm"), "Best pair of bounds")
    open_tab(app, "per_group", "Error of each group")
    assert trace(chart(app, "per_group_sizes"), "Best pair")
    check(app.selectbox(key="per_group.statistic").set_value(Statistic.MEAN).run())
    assert app.number_input(key="per_group.upper").value == 100.0
    check(app.number_input(key="per_group.upper").set_value(20.0).run())
    assert not errors(app)
    assert not [c for c in raw_texts(app) if "Traceback" in c]
    check(app.selectbox(key="per_group.statistic").set_value(Statistic.ROWS).run())
    check(app.selectbox(key="per_group.objective").set_value(Objective.MEAN_RELATIVE).run())
    check(app.number_input(key="per_group.floor").set_value(-1.0).run())
    assert "floor must lie between" in errors(app).lower()
    check(app.number_input(key="per_group.floor").set_value(20.0).run())
    check(app.number_input(key="per_group.num_groups").set_value(39.0).run())
    assert "hold 40 groups" in errors(app)
    check(app.number_input(key="per_group.num_groups").set_value(60.0).run())
    assert not errors(app)
    assert "num_groups=60" in read_shown_link(app)
    check(app.number_input(key="per_group.own_groups").set_value(3.0).run())
    assert "go together" in errors(app)
    check(app.number_input(key="per_group.own_amount").set_value(2.0).run())
    ((x,), (y,)) = trace(chart(app, "per_group_error"), "Your own pair")
    assert (x, y) == (3, 2)


def test_data_without_groups_show_a_labelled_demonstration() -> None:
    with pytest.raises(InvalidInput, match="no groups"):
        build_answer(samples.load("online-retail-lines"), build_parameters())
    app = open_app("Group by", link="1", data="online-retail-lines", epsilon="1")
    assert "Upload groups" in [link.proto.label for link in app.main.get("page_link")]
    notes = [note["text"] for note in chart(app, "per_group_error")["layout"]["annotations"]]
    assert any("Demonstration" in note for note in notes)
    assert data(app).name != session.load_demonstration().name  # It does not take their place.


@pytest.mark.long
def test_a_long_search_can_be_stopped_and_says_how_far_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer, "MAX_IMMEDIATE_PAIRS", 0)
    work_waits_for_stop(monkeypatch)
    app = open_app("Group by", link="1", data="shop-events", epsilon="1")
    assert "Best pair" not in shown_texts(app)
    check(app.button(key="per_group.job_stop").click().run())
    finish(app, "per_group.job")
    ((x,), (y,)) = trace(chart(app, "per_group_error"), "Best pair")
    assert x >= 1
    assert y >= 1
    assert "Stopped after" in shown_texts(app)
    before = [element.value for element in app.markdown if element.value.startswith("## ")]
    # A changed question starts anew, and the answer before stands meanwhile.
    check(app.selectbox(key="per_group.statistic").set_value(Statistic.USERS).run())
    assert "The answer for the settings before" in app.get("progress")[0].proto.text
    # What is pinned or saved now says what it was asked, not what is asked since.
    assert ("Statistic released per group", "Users") not in app.session_state[keys.PIN_BUILDER]().settings
    # It stands there pale.
    grey_headlines = [f"## :gray[{headline.removeprefix('## ')}]" for headline in before]
    assert [element.value for element in app.markdown if element.value.startswith("## ")] == grey_headlines
    assert "Preliminary" in shown_texts(app)
    check(app.button(key="per_group.job_stop").click().run())
    finish(app, "per_group.job")
    assert [element.value for element in app.markdown if element.value.startswith("## ")] != before
    assert ("Statistic released per group", "Users") in app.session_state[keys.PIN_BUILDER]().settings


def test_the_page_answers_for_the_program_and_opens_with_its_code() -> None:
    app = open_app("Group by", link="1", data="shop-events", epsilon="1")
    check(app.selectbox(key="per_group.program").set_value(Program.BIGQUERY).run())
    _, l0, linf = find_best_pair(build_parameters(program=Program.BIGQUERY))
    headline = f"Keep at most {l0} groups per user, and {linf} rows in each."
    assert headline in shown_texts(app)
    assert (l0, linf) != find_best_pair(build_parameters())[1:]
    opened = open_app("Group by", **dict(parse_qsl(read_shown_link(app).partition("?")[2])))
    assert headline in shown_texts(opened)
    check(app.button(key="per_group_card" + keys.CODE_BUTTON_SUFFIX).click().run())
    (program,) = [code.value for code in app.code if "link=" not in code.value]
    assert f"max_groups_contributed = {l0}" in program
    open_tab(app, "per_group", "Scaling instead")
    assert "BigQuery has no such bound" in shown_texts(app)


@pytest.mark.long
def test_the_range_of_public_values_is_not_filled_in_for_private_ones() -> None:
    app = open_app("Group by", link="1", data="shop-events", epsilon="1")
    check(app.selectbox(key="per_group.statistic").set_value(Statistic.MEAN).run())
    assert app.session_state["per_group.upper"] == 100.0
    private = replace(SHOP, name="other.csv", disclosure=Disclosure.PRIVATE)
    check(use_dataset(app, private).run())
    check(app.selectbox(key="per_group.statistic").set_value(Statistic.MEAN).run())
    assert (app.session_state["per_group.lower"], app.session_state["per_group.upper"]) == (None, None)
    assert "What range can a value have?" in shown_texts(app)


def test_a_public_list_of_groups_reaches_answer_program_and_address() -> None:
    """Beside private data, too: it is written down from what is known, and every release names its groups."""
    rows = [f"u{user},{group}" for user in range(40) for group in ("a", "b'", "c", "d")[: 1 + user % 4]]
    opened = open_on_file("\n".join(["user,group", *rows, ""]).encode(), "Group by")
    assert data(opened).is_private
    before = opened.session_state[keys.PAGE_PARAMETERS]
    opened.text_area(QUESTION.get_key("groups")).set_value("a\nb'\nempty").run()
    check(opened)
    parameters = opened.session_state[keys.PAGE_PARAMETERS]
    assert (before.num_listed_groups, parameters.num_listed_groups) == (None, 3)
    view = solve(data(opened), parameters)
    assert view.problem.totals.tolist() == [40.0, 30.0, 0.0]  # u0, u4, ... have one group, u1, u5, ... two
    program = write(build_answer(data(opened), parameters).code.forms[0][1], Program.OPENDP).text
    assert 'GROUPS: list[str] = ["a", "b\'", "empty"]' in program
    assert read_address(opened)["groups"] == "a\nb'\nempty"
    assert dict(parse_qsl(read_shown_link(opened)))["groups"] == "a\nb'\nempty"
    opened.text_area(QUESTION.get_key("groups")).set_value("a\na").run()
    assert "The list of groups has 'a' twice" in errors(opened)
    opened.text_area(QUESTION.get_key("groups")).set_value("").run()
    assert opened.session_state[keys.PAGE_PARAMETERS] == before
    opened.text_input(QUESTION.get_key("edges")).set_value("0 to 10 by 5").run()
    assert "No group on the public list is in the data" in errors(opened)
