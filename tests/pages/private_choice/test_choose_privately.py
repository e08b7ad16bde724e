"""Choosing with DP: ordinary, empty and hostile inputs; releases, what they cost together, and their labels."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import opendp.prelude as opendp
import pytest
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from dpcore import mean
from dpcore.code import write
from dpcore.common.checks import InvalidInput
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Disclosure, Neighbours
from dpcore.common.programs import Program
from dpcore.contributions import ContributionHistogram
from dpcore.data import samples
from dpcore.dataset import Dataset
from dpcore.private_choice import choice, comparison
from dpcore.private_choice.answer import PrivateSolution, build_answer, selection, words
from dpcore.private_choice.parameters import BoundPurpose, PrivateParameters, Relation
from dpcore.private_choice.scores import MAX_TOTAL_USERS, SmoothMean
from pages.shared.base import catalogue, keys
from pages.shared.session import links, session
from tests.pages.driving import (
    build_app,
    check,
    confirm,
    data,
    enter_range,
    errors,
    go,
    open_app,
    read_address,
    read_answer,
    release_copy,
    shown_texts,
    use_dataset,
)

SAMPLE = samples.load(session.DEFAULT_SAMPLE)
COUNTS = np.concatenate((np.arange(1, 300), [2017]))
SECRET = ContributionHistogram(sizes=COUNTS, users=np.where(COUNTS > 50, 1, 40))


def secret_data(histogram: ContributionHistogram = SECRET) -> Dataset:
    return Dataset("secret.csv", "", Disclosure.PRIVATE, histogram)


def on_private_data(title: str = "Data", histogram: ContributionHistogram = SECRET) -> AppTest:
    return check(use_dataset(build_app(title), secret_data(histogram)).run())


def solve_choice(histogram: ContributionHistogram = SAMPLE.histogram, **settings) -> PrivateSolution:
    parameters = PrivateParameters(**{"epsilon": 1.0, **settings})
    data = dataclasses.replace(SAMPLE, histogram=histogram)
    return comparison.solve(data, parameters)


def test_the_exact_curve_is_that_of_the_law():
    plot = build_answer(SAMPLE, PrivateParameters(1.0)).plots["private-cost-epsilon"]()
    curve = plot.items[0]
    x, y = np.asarray(curve.x), np.asarray(curve.y)
    problem = choice.ChoiceProblem(SmoothMean(0.125), 0.1, 10_000, prior=choice.SmallFirst())
    # The distribution by hand at one budget: sort the costs, add up the chances.
    budget = x[np.argmin(np.abs(x - 0.01))]
    costs = np.sqrt(
        mean.compute_smooth_variance(mean.MeanProblem(SAMPLE.histogram, 1.0, 1.0, 0.25), problem.candidates)
    )
    costs = (
        costs / mean.find_best_smooth(mean.MeanProblem(SAMPLE.histogram, 1.0, 1.0, 0.25)).standard_error - 1.0
    )
    chances = choice.compute_probabilities(problem, SAMPLE.histogram, budget)
    order = np.argsort(costs)
    median = costs[order][np.argmax(np.cumsum(chances[order]) >= 0.5)]
    assert y[x == budget][0] == pytest.approx(median, rel=1e-6)


def test_card_says_what_it_costs_and_in_all():
    view = solve_choice()
    copy, answer = view.histogram_cost, build_answer(SAMPLE, view.parameters, view)
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
    assert f"DP histogram, median cost {words.format_share(copy.median)}" in text
    # The way that costs less in 19 of 20 draws is recommended, and comes first.
    cheap = dataclasses.replace(copy, percentile_95=0.0, median=0.0)
    answer = build_answer(SAMPLE, view.parameters, dataclasses.replace(view, histogram_cost=cheap))
    assert answer.headline == "Choose on a DP histogram."
    assert answer.numbers[0].label == "DP histogram, median cost"
    # Copies without users have no cost that JSON could hold.
    no_users = dataclasses.replace(copy, percentile_95=np.inf)
    empty = build_answer(SAMPLE, view.parameters, dataclasses.replace(view, histogram_cost=no_users))
    assert [number.value is None for number in empty.numbers] == [False, False, False, True]


@pytest.mark.long
def test_a_copy_costs_what_choosing_on_simulated_copies_costs(all_copies):
    # The same copies, with the bound and the error of *Mean*.
    problem = mean.MeanProblem(SAMPLE.histogram, 1.0, 1.0, 0.25)
    bounds = comparison.simulate_chosen_bounds(
        SAMPLE.histogram,
        lambda copy: mean.find_best_smooth(dataclasses.replace(problem, histogram=copy)).threshold,
        PrivateParameters(1.0).histogram_parameters,
    )
    errors = np.sort(np.sqrt(mean.compute_smooth_variance(problem, bounds)))
    median = errors[errors.size // 2 - 1] / mean.find_best_smooth(problem).standard_error - 1.0
    assert solve_choice().histogram_cost.median == pytest.approx(median)


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


def test_two_draws_add_up_and_it_is_said_before():
    app = on_private_data("Sum and count")
    confirm(app, "total_card_draw")
    check(go(app, "Data").number_input(key="private_choice.histogram_epsilon").set_value(0.5).run())
    check(app.button(key="private_release").click().run())
    spent = "With what was spent before in this window, ε = 0.6 in 2 releases"
    assert spent in shown_texts(app).replace("**", "")
    check(app.button(key="private_release_confirm").click().run())
    assert "Spent on these data: ε = 0.6 in 2 releases" in shown_texts(app)
    assert data(app).disclosure is Disclosure.DP_RELEASE


def test_a_dp_histogram_is_the_data_of_every_page_until_they_are_brought_back():
    app = on_private_data()
    secret = data(app)
    release_copy(app, 2.0)
    histogram = data(app)
    assert histogram.release.epsilon <= 2.0
    assert histogram.release.neighbours is Neighbours.ADD_OR_REMOVE_USER
    assert histogram.release.label in shown_texts(app)
    assert f"{secret.histogram.num_rows:,}" not in shown_texts(app)
    assert "You may publish" in shown_texts(app)
    go(app, "Mean")
    assert app.number_input(key="mean.lower").value is None
    enter_range(app, 0.0, 1.0)
    assert histogram.release.label in shown_texts(app)
    # What is chosen on it costs nothing more.
    assert not [b for b in app.button if b.key == "mean_card_draw"]
    check(go(app, "Data").button(key="private_back").click().run())
    assert data(app) == secret
    assert "in 1 release" in shown_texts(app)


def test_a_histogram_without_users_says_so_and_is_spent():
    app = on_private_data(histogram=ContributionHistogram([3], [1]))
    check(app.number_input(key="private_choice.histogram_epsilon").set_value(0.001).run())
    for _ in range(20):  # Noise of scale 1,000 on one user: now and then some users are left.
        confirm(app, "private_release")
        if data(app).disclosure is Disclosure.PRIVATE:
            break
        check(app.button(key="private_back").click().run())
    assert data(app).disclosure is Disclosure.PRIVATE
    assert "No users are left in the histogram" in errors(app)
    assert "Spent on these data" in shown_texts(app)


def test_an_empty_field_gives_a_sentence_and_nothing_can_be_released():
    app = on_private_data()
    for key, name in [
        ("private_choice.histogram_epsilon", "ε of the histogram is empty"),
        ("private_choice.largest", "the public maximum of rows per user is empty"),
    ]:
        value_before = app.number_input(key=key).value
        check(app.number_input(key=key).set_value(None).run())
        assert name.lower() in errors(app).lower()
        assert not [b for b in app.button if b.key == "private_release"]
        check(app.number_input(key=key).set_value(value_before).run())
        assert not errors(app)


def test_next_to_no_sampling_error_needs_no_choice():
    with pytest.raises(InvalidInput, match="next to no sampling error"):
        PrivateParameters(1e-6, variance_share=0.25)


@pytest.mark.long
def test_more_users_than_can_be_added_up_give_a_sentence():
    app = on_private_data("Sum and count", ContributionHistogram([1, 2], [MAX_TOTAL_USERS, 5]))
    check(app.button(key="total_card_draw").click().run())
    assert "there must be at most" in shown_texts(app).lower()
    assert not [b for b in app.button if b.key == "total_card_draw_confirm"]


@pytest.mark.parametrize(
    ("title", "button"), [("Sum and count", "total_card_draw"), ("Data", "private_release")]
)
def test_a_draw_that_ends_in_an_error_is_in_the_account(monkeypatch, title, button):
    app = on_private_data(title)

    def fails(self, argument):
        raise InvalidInput(["the sampler broke off"])

    with monkeypatch.context() as patched:
        patched.setattr(opendp.Measurement, "__call__", fails)
        confirm(app, button)
    assert "The sampler broke off" in errors(app)
    ((made,),) = (item.releases for item in app.session_state[keys.LEDGERS].values())
    assert made.epsilon <= 0.1
    check(app.button(key=button).click().run())
    assert "With what was spent before" in shown_texts(app).replace("**", "")
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
    facts = build_answer(secret_data(), PrivateParameters(1.0)).facts
    neighbours_text = "where both are for neighbours that add or remove one user."
    assert facts["In all"] == f"ε = 1.1 with the release, {neighbours_text}"
    # A release for users added or removed takes two steps to replace one: 2 + 0.1.
    facts = build_answer(secret_data(), PrivateParameters(1.0, relation=Relation.REPLACE)).facts
    assert "counts up to twice: ε = 2.1." in facts["In all"]
    drawn = choice.choose(PrivateParameters(1.0, relation=Relation.REPLACE).choice, SECRET)
    ((_, carried),) = selection.build_code(
        drawn, BoundPurpose.SMOOTH, secret_data(), 1.0, value_range=(0.0, 1.0)
    ).forms
    text = one_line(write(carried, Program.PYTHON).text)
    assert "Together they protect against replacing one user only" in text
    assert "up to twice its epsilon" in text


def test_a_release_of_an_upload_says_that_a_reload_loses_it():
    app = on_private_data()
    release_copy(app)
    assert "Here until this page is closed or loaded anew" in shown_texts(app)
    assert "Counted in this window alone" in shown_texts(app)
    address = read_address(app)
    assert links.UPLOAD_MARK in address
    # Loaded anew, the account begins at 0, and that is said.
    anew = open_app("Data", **address)
    said = {problem.message for problem in anew.session_state[keys.LINK_PROBLEMS]}
    assert said == {links.DATA_GONE, links.SPENT_GONE}
    assert links.SPENT_MARK not in read_address(anew)


def test_what_the_costs_are_computed_from_is_said_of_these_data():
    for dataset, sentence in (
        (SAMPLE, "computed from these public data"),
        (secret_data(), "a look that no ε covers"),
    ):
        assert sentence in read_answer(build_answer(dataset, PrivateParameters(1.0)))


def test_users_over_the_public_maximum_are_told_apart_from_a_wish_to_raise_it():
    over = int((COUNTS > 100).sum())
    assert "Over the maximum" not in build_answer(secret_data(), PrivateParameters(1.0)).facts
    facts = build_answer(secret_data(), PrivateParameters(1.0, largest=100)).facts
    assert facts["Over the maximum"] == f"{over} users. Raise it only for reasons outside these data."


@pytest.mark.long
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


@pytest.mark.parametrize(
    ("link", "title"),
    [
        ({}, "Mean"),
        ({"wanted": "cap"}, "Mean"),
        ({"wanted": "sum", "epsilon_choice": "0.3", "release_delta": "0.000001"}, "Sum and count"),
        ({"wanted": "quantile", "share": "0.9"}, "Data"),
    ],
)
def test_the_address_of_the_former_page_leads_to_the_page_of_the_release(link, title):
    app = build_app(title)
    app._page_hash = calc_hash(catalogue.PRIVATE_SELECTION_STEP.url_path)
    for name, text in {"link": "1", "epsilon": "0.7", "data": "shop-events", **link}.items():
        app.query_params[name] = text
    check(app.run())
    assert app.title[0].value == title
    assert (app.session_state[keys.EPSILON], data(app).name) == (0.7, samples.load("shop-events").name)
    if "epsilon_choice" in link:
        assert app.session_state["private_choice.selection_epsilon"] == 0.3
        assert app.session_state["total.delta"] == 1e-6
        assert app.session_state["total.mechanism"] is NoiseKind.GAUSSIAN
    assert not errors(app)
