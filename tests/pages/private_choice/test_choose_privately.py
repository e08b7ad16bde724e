"""Choose privately: ordinary, empty and hostile inputs; releases, what they cost together, and their labels."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import opendp.prelude as opendp
import pytest
from streamlit.testing.v1 import AppTest

from dpcore import mean
from dpcore.code import write
from dpcore.common import wording
from dpcore.common.checks import InvalidInput
from dpcore.common.noise_error import ASSUMED_SHARE
from dpcore.common.privacy import Disclosure, Neighbours
from dpcore.common.programs import Program
from dpcore.contributions import ContributionHistogram
from dpcore.data import samples
from dpcore.dataset import Dataset
from dpcore.private_choice import choice, comparison
from dpcore.private_choice.answer import PrivateSolution, build_answer, selection, words
from dpcore.private_choice.parameters import NUMBER_NAMES, BoundPurpose, PrivateParameters, Relation
from dpcore.private_choice.scores import MAX_TOTAL_USERS, SmoothMean
from dpcore.private_choice.table_scores import TableSmooth
from pages.private_choice import actions
from pages.shared.base import keys
from pages.shared.session import links, session
from tests.pages.driving import (
    address_of,
    chart,
    check,
    confirm,
    data,
    enter_range,
    errors,
    go,
    link_of,
    new_app,
    open_app,
    read_answer,
    release_copy,
    shown_texts,
    trace,
    with_data,
)

SAMPLE = samples.load(session.DEFAULT_SAMPLE)
COUNTS = np.concatenate((np.arange(1, 300), [2017]))
SECRET = ContributionHistogram(sizes=COUNTS, users=np.where(COUNTS > 50, 1, 40))


def open_page(**link: str) -> AppTest:
    """The page for rows that are independent, with which the truths here are computed; see also `test_one_setting`."""
    if link:
        return open_app("Choose privately", **link)
    app = new_app("Choose privately")
    app.session_state["private_choice.user_share"] = 0.0
    return check(app.run())


def secret_data(histogram: ContributionHistogram = SECRET) -> Dataset:
    return Dataset("secret.csv", "", Disclosure.PRIVATE, histogram)


def on_private_data(histogram: ContributionHistogram = SECRET) -> AppTest:
    app = with_data(open_page(), secret_data(histogram))
    return check(app.run())


def solve_choice(histogram: ContributionHistogram = SAMPLE.histogram, **settings) -> PrivateSolution:
    parameters = PrivateParameters(**{"epsilon": 1.0, **settings})
    data = dataclasses.replace(SAMPLE, histogram=histogram)
    return comparison.solve(data, parameters)


def test_the_exact_curve_is_that_of_the_law():
    app = open_page()
    figure = chart(app, "private_cost_epsilon")
    assert figure["layout"]["xaxis"]["title"]["text"] == "ε of the choice"  # A capital one looks like an E.
    x, y = trace(figure, "Direct choice, median")
    problem = choice.ChoiceProblem(SmoothMean(0.125), 0.1, 10_000, prior=choice.SmallFirst())
    # The distribution by hand at one budget: sort the costs, add up the chances.
    budget = x[np.argmin(np.abs(x - 0.01))]
    costs = np.sqrt(
        mean.smooth_variance(mean.MeanProblem(SAMPLE.histogram, 1.0, 1.0, 0.25), problem.candidates)
    )
    costs = costs / mean.best_smooth(mean.MeanProblem(SAMPLE.histogram, 1.0, 1.0, 0.25)).standard_error - 1.0
    chances = choice.compute_probabilities(problem, SAMPLE.histogram, budget)
    order = np.argsort(costs)
    median = costs[order][np.argmax(np.cumsum(chances[order]) >= 0.5)]
    assert y[x == budget][0] == pytest.approx(median, rel=1e-6)


def test_card_says_what_it_costs_and_in_all():
    view = solve_choice()
    copy, answer = view.copy_cost, build_answer(SAMPLE, view.parameters, view)
    text = read_answer(answer)
    assert answer.headline == "Choose the number directly."
    assert answer.numbers[0].text == words.format_share(view.direct_cost.median)
    assert float(answer.numbers[0].text_to_copy) == pytest.approx(view.direct_cost.median, rel=0.05)
    assert [number.value for number in answer.numbers] == [
        view.direct_cost.median, view.direct_cost.percentile_95, copy.median, copy.percentile_95
    ]  # fmt: skip
    assert "In all: ε = 1.1 with the release" in text
    exact = choice.summarise_regret(PrivateParameters(1.0).choice, SAMPLE.histogram)
    assert f"Direct choice, 1 in 20 {words.format_share(float(exact.percentile_95_regrets[0, 0]))}" in text
    assert f"Private copy, median cost {words.format_share(copy.median)}" in text
    # The way that costs less in 19 of 20 draws is recommended, and comes first.
    cheap = dataclasses.replace(copy, percentile_95=0.0, median=0.0)
    answer = build_answer(SAMPLE, view.parameters, dataclasses.replace(view, copy_cost=cheap))
    assert answer.headline == "Choose on a private copy."
    assert answer.numbers[0].label == "Private copy, median cost"
    # Copies without users have no cost that JSON could hold.
    no_users = dataclasses.replace(copy, percentile_95=np.inf)
    empty = build_answer(SAMPLE, view.parameters, dataclasses.replace(view, copy_cost=no_users))
    assert [number.value is None for number in empty.numbers] == [False, False, False, True]


def test_a_copy_costs_what_choosing_on_simulated_copies_costs(all_copies):
    # The same copies, with the bound and the error of *Mean*.
    problem = mean.MeanProblem(SAMPLE.histogram, 1.0, 1.0, 0.25)
    bounds = comparison.simulate_bounds(
        SAMPLE.histogram,
        lambda copy: mean.best_smooth(dataclasses.replace(problem, histogram=copy)).threshold,
        PrivateParameters(1.0).copy,
    )
    errors = np.sort(np.sqrt(mean.smooth_variance(problem, bounds)))
    median = errors[errors.size // 2 - 1] / mean.best_smooth(problem).standard_error - 1.0
    assert solve_choice().copy_cost.median == pytest.approx(median)


def test_private_data_are_labelled_and_no_demonstration():
    app = on_private_data()
    assert actions.DEMONSTRATION_TEXT not in shown_texts(app)
    notes = [
        a["text"].replace("<br>", " ") for a in chart(app, "private_cost_epsilon")["layout"]["annotations"]
    ]
    assert Disclosure.PRIVATE.label in notes
    assert [m.value for m in app.markdown if "do not publish" in m.value.lower()]


def test_a_direct_choice_leaves_the_data_and_stands_in_the_account():
    app = on_private_data()
    dataset_before = data(app)
    assert "Either spends ε = 0.1, the first" in shown_texts(app).replace("**", "")
    confirm(app, "private_choose")
    assert data(app) == dataset_before
    ((_, drawn),) = next(iter(app.session_state["private_choice.choices"].values()))
    assert drawn.facts.epsilon <= 0.1
    assert drawn.value in drawn.problem.candidates
    texts = shown_texts(app)
    assert drawn.facts.label in texts
    assert choice.format_choice(drawn) in texts
    assert len(next(iter(app.session_state[keys.LEDGERS].values())).releases) == 1


def test_code_applies_the_chosen_number_under_its_label():
    for bound_purpose in (BoundPurpose.SMOOTH, BoundPurpose.CAP, BoundPurpose.SUM):
        drawn = choice.choose(PrivateParameters(1.0, bound_purpose).choice, SECRET)
        code = selection.build_code(drawn, bound_purpose, secret_data(), 1.0, value_range=(0.0, 1.0))
        ((_, carried),) = code.forms
        text = write(carried, Program.OPENDP).text or write(carried, Program.PYTHON).text
        assert f"{drawn.value:g}" in text
        assert "DP release (epsilon = 0.1, add or remove one user, exponential mechanism)" in one_line(text)
        assert "private data (do not publish)" not in text.lower()
    # A quantile of sizes bounds no release of its own.
    drawn = choice.choose(PrivateParameters(1.0, BoundPurpose.QUANTILE).choice, SECRET)
    assert (
        selection.build_code(drawn, BoundPurpose.QUANTILE, secret_data(), 1.0, value_range=(0.0, 1.0)) is None
    )


def one_line(code: str) -> str:
    """Comment lines put together, so that a sentence may be broken anywhere."""
    return " ".join(line.removeprefix("#").strip() for line in code.splitlines())


def drawn_numbers(app: AppTest) -> list[choice.PrivateChoice]:
    return [drawn for item in app.session_state["private_choice.choices"].values() for _, drawn in item]


def test_two_draws_add_up_and_it_is_said_before():
    app = on_private_data()
    confirm(app, "private_choose")
    assert "ε = 1.1 in all" in shown_texts(app)
    check(app.number_input(key="private_choice.selection_epsilon").set_value(0.5).run())
    assert "With what was spent before in this window, ε = 0.6 in 2 releases" in shown_texts(app).replace(
        "**", ""
    )
    confirm(app, "private_release")
    texts = shown_texts(app)
    assert "Spent on these data: ε = 0.6 in 2 releases" in texts
    assert data(app).disclosure is Disclosure.DP_RELEASE


def test_after_a_release_the_page_draws_from_it_and_leads_back():
    app = on_private_data()
    secret = data(app)
    release_copy(app, 2.0)
    copy = data(app)
    assert copy.release.epsilon <= 2.0
    assert copy.release.neighbours is Neighbours.ADD_OR_REMOVE_USER
    assert copy.release.label in shown_texts(app)
    # The number is that of the released histogram, not of the private one.
    # New data bring what is usually assumed of users.
    released, private = (
        TableSmooth(0.125, ASSUMED_SHARE).best_bound(h) for h in (copy.histogram, secret.histogram)
    )
    assert f"Take {wording.number(released)} as the" in shown_texts(app)
    assert wording.number(released) != wording.number(private)
    assert f"{secret.histogram.num_rows:,}" not in shown_texts(app)
    assert "may be published" in shown_texts(app)
    assert "in the clear would be" not in shown_texts(app)
    go(app, "Mean")
    assert app.number_input(key="mean.lower").value is None
    enter_range(app, 0.0, 1.0)
    assert copy.release.label in shown_texts(app)
    go(app, "Choose privately")
    # A direct choice still draws on the private data, and adds up.
    confirm(app, "private_choose")
    assert data(app) == copy
    assert "in 2 releases" in shown_texts(app)
    check(app.button(key="private_back").click().run())
    assert data(app) == secret
    assert "in 2 releases" in shown_texts(app)


def test_a_copy_without_users_says_so_and_is_spent():
    app = on_private_data(ContributionHistogram([3], [1]))
    check(app.number_input(key="private_choice.selection_epsilon").set_value(0.001).run())
    for _ in range(20):  # Noise of scale 1,000 on one user: now and then some users are left.
        confirm(app, "private_release")
        if data(app).disclosure is Disclosure.PRIVATE:
            break
        check(app.button(key="private_back").click().run())
    assert data(app).disclosure is Disclosure.PRIVATE
    assert "No users are left in the copy" in errors(app)
    assert "Spent on these data" in shown_texts(app)


def test_every_question_under_either_relation():
    app = open_page(link="1", data="requests-commits", epsilon="1")
    for bound_purpose in BoundPurpose:
        for relation in Relation:
            app.session_state["private_choice.purpose"] = bound_purpose
            app.session_state["private_choice.relation"] = relation
            check(app.run())
            assert not errors(app)
            assert NUMBER_NAMES[bound_purpose] in shown_texts(app)
            confirm(app, "private_choose")
            assert relation.neighbours.short in shown_texts(app)
            assert f"purpose={bound_purpose.value}" in link_of(app)


def test_an_empty_field_gives_a_sentence_and_nothing_can_be_released():
    app = open_page()
    for key, name in [
        ("private_choice.selection_epsilon", "ε of the choice is empty"),
        ("private_choice.largest", "the public maximum of rows per user is empty"),
        ("private_choice.variance_share", "the variance of a value is empty"),
        (keys.EPSILON, "ε is empty"),
    ]:
        value_before = app.number_input(key=key).value
        check(app.number_input(key=key).set_value(None).run())
        assert name.lower() in errors(app).lower()
        assert not [b for b in app.button if b.key == "private_release"]
        check(app.number_input(key=key).set_value(value_before).run())
        assert not errors(app)


def test_next_to_no_sampling_error_needs_no_choice():
    app = open_page(link="1", epsilon="0.000001", variance_share="0.25")
    assert "next to no sampling error" in errors(app)


def test_more_users_than_can_be_added_up_give_a_sentence():
    app = on_private_data(ContributionHistogram([1, 2], [MAX_TOTAL_USERS, 5]))
    assert "there must be at most" in errors(app).lower()
    assert not [b for b in app.button if b.key == "private_choose"]


@pytest.mark.parametrize("button", ["private_choose", "private_release"])
def test_a_draw_that_ends_in_an_error_is_in_the_account(monkeypatch, button):
    app = open_page()

    def fails(self, argument):
        raise InvalidInput(["the sampler broke off"])

    with monkeypatch.context() as patched:
        patched.setattr(opendp.Measurement, "__call__", fails)
        confirm(app, button)
    assert "The sampler broke off" in errors(app)
    ((made,),) = (item.releases for item in app.session_state[keys.LEDGERS].values())
    assert made.epsilon <= 0.1
    assert "With what was spent before" in shown_texts(app).replace("**", "")
    check(app.run())
    assert "broke off" not in errors(app)


def test_the_file_of_a_choice_holds_nothing_private():
    parameters = PrivateParameters(1.0, BoundPurpose.CAP, selection_epsilon=0.3)
    drawn = choice.choose(parameters.choice, SAMPLE.histogram)
    document = json.loads(selection.write_json(drawn, BoundPurpose.CAP))
    assert document["answer"]["value"] == drawn.value
    assert document["answer"]["label"] == drawn.facts.label
    assert document["question"]["label"] == "public input"
    # Two draws of one question differ in the number alone, whatever the data.
    other = choice.choose(parameters.choice, ContributionHistogram(sizes=[1, 9], users=[5, 6]))
    second_content = json.loads(selection.write_json(other, BoundPurpose.CAP))
    second_content["answer"]["value"] = document["answer"]["value"]
    assert second_content == document


def test_a_choice_under_replacement_does_not_pretend_to_cover_presence():
    app = on_private_data()
    assert (
        "ε = 1.1 with the release, where both are for neighbours that add or remove one user."
        in shown_texts(app)
    )
    app.session_state["private_choice.relation"] = Relation.REPLACE
    check(app.run())
    # A release for users added or removed takes two steps to replace one: 2 + 0.1.
    assert "counts up to twice: ε = 2.1." in shown_texts(app)
    drawn = choice.choose(PrivateParameters(1.0, relation=Relation.REPLACE).choice, SECRET)
    ((_, carried),) = selection.build_code(
        drawn, BoundPurpose.SMOOTH, secret_data(), 1.0, value_range=(0.0, 1.0)
    ).forms
    text = one_line(write(carried, Program.PYTHON).text)
    assert "Together they protect against replacing one user only" in text
    assert "up to twice its epsilon" in text


def test_the_code_of_a_number_says_where_its_value_bounds_come_from():
    app = on_private_data()
    app.session_state["mean.lower"], app.session_state["mean.upper"] = 0.0, 60.0
    confirm(app, "private_choose")
    check(app.button(key="private_code_0").click().run())
    assert "Value bounds [0, 60] as on the page *Mean*" in shown_texts(app)
    assert [block for block in app.code if "import" in block.value]
    app.session_state["mean.lower"] = app.session_state["mean.upper"] = None
    check(app.button(key="private_code_0").click().run())
    assert not [block for block in app.code if "import" in block.value]


def test_a_bad_epsilon_beside_a_chosen_number_gives_no_traceback():
    app = on_private_data()
    confirm(app, "private_choose")
    for epsilon in (None, 0.0, 1e9):
        check(app.number_input(key=keys.EPSILON).set_value(epsilon).run())
        assert drawn_numbers(app)[0].facts.label in shown_texts(app)
        check(app.button(key="private_code_0").click().run())


def test_a_release_of_an_upload_says_that_a_reload_loses_it():
    app = on_private_data()
    release_copy(app)
    assert "Here until this page is closed or loaded anew" in shown_texts(app)
    assert "Counted in this window alone" in shown_texts(app)
    address = address_of(app)
    assert links.UPLOAD_MARK in address
    # Loaded anew, the account begins at 0, and that is said.
    anew = open_app("Choose privately", **address)
    said = {problem.message for problem in anew.session_state[keys.LINK_PROBLEMS]}
    assert said == {links.RELOADED, links.SPENT_GONE}
    assert "the first on these data in this window" in shown_texts(anew)
    assert links.SPENT_MARK not in address_of(anew)


def test_what_the_costs_are_computed_from_is_said_of_these_data():
    app = open_page()
    assert "computed from these public data" in shown_texts(app)
    assert "a look that no ε covers" not in shown_texts(app)
    app = on_private_data()
    assert "computed from the private data" in shown_texts(app)
    assert "a look that no ε covers" in shown_texts(app)
    release_copy(app)
    texts = shown_texts(app)
    assert "computed from the release in use and spend nothing more" in texts
    assert "in the clear" not in texts


def test_users_over_the_public_maximum_are_told_apart_from_a_wish_to_raise_it():
    app = on_private_data()
    over = int((COUNTS > 100).sum())
    assert "**Over the maximum:**" not in shown_texts(app)
    check(app.number_input(key="private_choice.largest").set_value(100.0).run())
    texts = shown_texts(app)
    assert f"{over} users. Raise it only for reasons outside these data" in texts


def test_what_is_computed_on_a_release_says_whose_errors_it_shows():
    app = on_private_data()
    release_copy(app)
    go(app, "Sum and count")
    texts = shown_texts(app)
    assert "error on the original data" in texts
    assert "own ε covers the bound" in texts
    assert "Read off private data it is not" not in texts
    go(app, "Mean")
    enter_range(app, 0.0, 1.0)
    assert "The DP release is taken for the data" in shown_texts(app)
