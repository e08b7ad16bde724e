"""Choose privately: ordinary, empty and hostile inputs; releases, what they cost together, and their labels."""

from __future__ import annotations

import json

import numpy as np
import opendp.prelude as opendp
import pytest
from streamlit.testing.v1 import AppTest

from dpcore import mean
from dpcore.common.errors import InvalidInput
from dpcore.common.privacy import Neighbours, Sensitivity
from dpcore.contributions import ContributionHistogram
from dpcore.data import samples
from dpcore.private_choice import choice, choice_regret, comparison
from dpcore.private_choice.fixed_point import MAX_TOTAL_USERS
from dpcore.private_choice.parameters import PrivateParameters, Relation, Wanted
from dpcore.private_choice.scores import SmoothMean
from pages.private_choice import actions, answer, card, report
from pages.shared import keys, session
from tests.pages.driving import (
    chart,
    data,
    errors,
    fine,
    go,
    link_of,
    open_app,
    shown_texts,
    trace,
    unescaped,
    upload,
)

SAMPLE = samples.load(session.DEFAULT_SAMPLE)
COUNTS = np.concatenate((np.arange(1, 300), [2017]))
SECRET = "rows,users\n" + "\n".join(f"{s},{1 if s > 50 else 40}" for s in COUNTS)


def opened(**link: str) -> AppTest:
    return open_app("Choose privately", **link)


def on_private_data() -> AppTest:
    at = open_app("Your data")
    upload(at, SECRET.encode())
    fine(at.button(key="use_upload").click().run())
    assert data(at).sensitivity is Sensitivity.PRIVATE
    return go(at, "Choose privately")


def curves(at: AppTest) -> comparison.CopyCurves:
    job = at.session_state["private_choice.curves_job"]
    job.wait(300.0)
    fine(at.run())
    return job.result


def test_the_exact_curve_is_that_of_the_law():
    at = opened()
    x, y = trace(chart(at, "private_regret_epsilon"), "Direct choice, median")
    problem = choice.ChoiceProblem(SmoothMean(0.125), 0.1, 10_000)
    # The distribution by hand at one budget: sort the costs, add up the chances.
    budget = x[np.argmin(np.abs(x - 0.01))]
    costs = np.sqrt(
        mean.smooth_variance(mean.MeanProblem(SAMPLE.histogram, 1.0, 1.0, 0.25), problem.candidates)
    )
    costs = costs / mean.best_smooth(mean.MeanProblem(SAMPLE.histogram, 1.0, 1.0, 0.25)).standard_error - 1.0
    chances = choice.probabilities(problem, SAMPLE.histogram, budget)
    order = np.argsort(costs)
    median = costs[order][np.argmax(np.cumsum(chances[order]) >= 0.5)]
    assert y[x == budget][0] == pytest.approx(median, rel=1e-6)


def test_card_says_what_it_costs_and_in_all():
    texts = shown_texts(opened())
    assert "Chosen with ε = 0.1, the bound costs less than 0.01" in texts
    assert "ε = 1 for the release and ε = 0.1 for the choice: ε = 1.1" in texts
    found = choice_regret.regret(PrivateParameters(1.0).choice, SAMPLE.histogram)
    assert f"Direct, 1 in 20 {card.brief(float(found.percentile_95[0, 0]))}" in texts


def test_copies_are_simulated_beside_it(all_copies):
    at = opened()
    found = curves(at)
    assert not found.cancelled
    x, y = trace(chart(at, "private_regret_epsilon"), "Private copy, median")
    assert list(x) == [epsilon for epsilon, _ in found.over_epsilon]
    # The same copies through the other module's own distribution of regrets.
    from dpcore.private_choice import regret

    p = PrivateParameters(1.0)
    problem = mean.MeanProblem(SAMPLE.histogram, 1.0, 1.0, 0.25)
    (own,) = regret.simulate([regret.smooth_question(problem)], p.copy_at(0.1), comparison.RUNS, 0)
    assert y[list(x).index(0.1)] == pytest.approx(max(own.median, 1e-5), rel=1e-6)


def test_one_user_more_moves_the_bound_in_the_picture():
    at = opened()
    x, y = trace(chart(at, "private_leak"), "With that user")
    at_most, base = int(x[-1]), SAMPLE.histogram
    more = ContributionHistogram.from_table(np.append(base.sizes, at_most), np.append(base.users, 1))
    expected = mean.best_smooth(mean.MeanProblem(more, 1.0, 1.0, 0.25)).threshold
    assert y[-1] == pytest.approx(expected, rel=1e-12)
    assert y[-1] > trace(chart(at, "private_leak"), "Without that user")[1][-1]


def test_public_data_need_no_protection_but_may_be_tried():
    at = opened()
    assert actions.DEMONSTRATION in shown_texts(at)
    fine(at.button(key="private_choose").click().run())
    assert "Chosen privately" in shown_texts(at)


def test_private_data_are_labelled_and_no_demonstration():
    at = on_private_data()
    assert actions.DEMONSTRATION not in shown_texts(at)
    for key in ("private_leak", "private_regret_epsilon", "private_regret_users"):
        notes = [a["text"].replace("<br>", " ") for a in chart(at, key)["layout"]["annotations"]]
        assert Sensitivity.PRIVATE.label in notes
    badges = [m.value for m in at.markdown if "do not publish" in m.value]
    assert badges


def test_a_direct_choice_leaves_the_data_and_stands_in_the_account():
    at = on_private_data()
    before = data(at)
    assert "Spends ε = 0.1, the first" in shown_texts(at).replace("**", "")
    fine(at.button(key="private_choose").click().run())
    assert data(at) == before
    ((_, drawn),) = next(iter(at.session_state["private_choice.choices"].values()))
    assert drawn.facts.epsilon <= 0.1
    assert drawn.value in drawn.problem.candidates
    texts = shown_texts(at)
    assert drawn.facts.label in texts
    assert choice.shown(drawn) in texts
    assert len(next(iter(at.session_state[keys.LEDGERS].values())).releases) == 1


@pytest.mark.parametrize("wanted", [Wanted.SMOOTH, Wanted.CAP, Wanted.SUM])
def test_code_applies_the_chosen_number_under_its_label(wanted):
    at = on_private_data()
    at.session_state["private_choice.wanted"] = wanted
    fine(at.run())
    fine(at.button(key="private_choose").click().run())
    drawn = drawn_numbers(at)[0]
    code = " ".join(block.value for block in at.code if "import" in block.value)
    assert f"{drawn.value:g}" in code
    assert "DP release (epsilon = 0.1, add or remove one user, exponential mechanism)" in one_line(code)
    assert "private data (do not publish)" not in code.lower()


def one_line(code: str) -> str:
    """Comment lines put together, so that a sentence may be broken anywhere."""
    return " ".join(line.removeprefix("#").strip() for line in code.splitlines())


def drawn_numbers(at: AppTest) -> list[choice.PrivateChoice]:
    return [drawn for found in at.session_state["private_choice.choices"].values() for _, drawn in found]


def test_two_draws_add_up_and_it_is_said_before():
    at = on_private_data()
    fine(at.button(key="private_choose").click().run())
    assert "With what was spent before, ε = 0.2 in 2 releases" in shown_texts(at).replace("**", "")
    fine(at.number_input(key="private_choice.epsilon_choice").set_value(0.5).run())
    assert "With what was spent before, ε = 0.6 in 2 releases" in shown_texts(at).replace("**", "")
    fine(at.button(key="private_release").click().run())
    texts = shown_texts(at)
    assert "Spent on these data: ε = 0.6 in 2 releases" in texts
    assert data(at).sensitivity is Sensitivity.DP_RELEASE


def test_after_a_release_the_page_draws_from_it_and_leads_back():
    at = on_private_data()
    secret = data(at)
    fine(at.number_input(key="private_choice.epsilon_choice").set_value(2.0).run())
    fine(at.button(key="private_release").click().run())
    copy = data(at)
    assert copy.release.epsilon <= 2.0
    assert copy.release.neighbours is Neighbours.ADD_OR_REMOVE_USER
    assert copy.release.label in shown_texts(at)
    # The picture is that of the released histogram, not of the private one.
    level = trace(chart(at, "private_leak"), "Without that user")[1][0]
    released, private = (
        mean.best_smooth(mean.MeanProblem(h, 1.0, 1.0, 0.25)).threshold
        for h in (copy.histogram, secret.histogram)
    )
    assert level == pytest.approx(released)
    assert level != pytest.approx(private, rel=1e-9)
    assert f"{secret.histogram.num_rows:,}" not in shown_texts(at)
    assert "may be published" in shown_texts(at)
    assert "in the clear would be" not in shown_texts(at)
    fine(at.run())
    go(at, "Mean")
    assert copy.release.label in shown_texts(at)
    go(at, "Choose privately")
    # A direct choice still draws on the private data, and adds up.
    fine(at.button(key="private_choose").click().run())
    assert data(at) == copy
    assert "in 2 releases" in shown_texts(at)
    fine(at.button(key="private_back").click().run())
    assert data(at) == secret
    assert "in 2 releases" in shown_texts(at)


def test_a_copy_without_users_says_so_and_is_spent():
    at = open_app("Your data")
    upload(at, b"rows,users\n3,1\n")
    fine(at.button(key="use_upload").click().run())
    go(at, "Choose privately")
    fine(at.number_input(key="private_choice.epsilon_choice").set_value(0.001).run())
    for _ in range(20):  # Noise of scale 1,000 on one user: now and then some users are left.
        fine(at.button(key="private_release").click().run())
        if data(at).sensitivity is Sensitivity.PRIVATE:
            break
        fine(at.button(key="private_back").click().run())
    assert data(at).sensitivity is Sensitivity.PRIVATE
    assert "No users are left in the copy" in errors(at)
    assert "Spent on these data" in shown_texts(at)


@pytest.mark.parametrize("wanted", Wanted)
@pytest.mark.parametrize("relation", Relation)
def test_every_question_under_either_relation(wanted, relation):
    at = opened(link="1", data="requests-commits", epsilon="1", wanted=wanted.value, relation=relation.value)
    assert not errors(at)
    assert card.NUMBER_NAMES[wanted] in shown_texts(at)
    fine(at.button(key="private_choose").click().run())
    assert relation.neighbours.short in shown_texts(at)
    assert f"wanted={wanted.value}" in link_of(at)


def test_a_sum_says_why_it_is_dear_and_what_helps():
    at = opened(link="1", data="online-retail-invoices", epsilon="1", wanted="sum")
    assert "Why so much" in shown_texts(at)
    fine(at.number_input(key="private_choice.guess").set_value(250.0).run())
    fine(at.number_input(key="private_choice.factor").set_value(1.1).run())
    assert "guess=250" in link_of(at)
    # A sharp and right guess: what is drawn is what was guessed.
    assert (
        answer.compute(
            samples.load("online-retail-invoices").histogram,
            PrivateParameters(1.0, Wanted.SUM, guess=250.0, factor=1.1),
        ).direct.median
        < 0.5
    )


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("private_choice.epsilon_choice", "ε of the choice is empty"),
        ("private_choice.largest", "the public maximum is empty"),
        ("private_choice.variance_share", "the variance of a value is empty"),
        (keys.EPSILON, "ε is empty"),
    ],
)
def test_an_empty_field_gives_a_sentence_and_nothing_can_be_released(key, name):
    at = opened()
    fine(at.number_input(key=key).set_value(None).run())
    assert name.lower() in errors(at).lower()
    assert not [b for b in at.button if b.key == "private_release"]


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"epsilon_choice": "nan"}, "Epsilon_choice must lie between"),
        ({"epsilon_choice": "1e9"}, "Epsilon_choice must lie between"),
        ({"largest": "0"}, "Largest must be a whole number"),
        ({"largest": "9" * 60}, "Largest must be a whole number"),
        ({"wanted": "everything"}, "Wanted cannot be read"),
        ({"delta": "0.1"}, "Delta goes with Gaussian noise"),
        ({"variance_share": "0.5"}, "Variance_share must lie between"),
        ({"guess": "5"}, "A guess goes with a factor"),
        ({"relation": "<script>"}, "Relation cannot be read"),
    ],
)
def test_hostile_links_give_sentences(fields, sentence):
    at = opened(link="1", **{"epsilon": "1", **fields})
    assert sentence in errors(at)


def test_next_to_no_sampling_error_needs_no_choice():
    at = opened(link="1", epsilon="0.000001", variance_share="0.25")
    assert "next to no sampling error" in errors(at)


def test_more_users_than_can_be_added_up_give_a_sentence():
    at = open_app("Your data")
    upload(at, f"rows,users\n1,{MAX_TOTAL_USERS}\n2,5\n".encode())
    fine(at.button(key="use_upload").click().run())
    go(at, "Choose privately")
    assert "there must be at most" in errors(at).lower()
    assert not [b for b in at.button if b.key == "private_choose"]


@pytest.mark.parametrize("button", ["private_choose", "private_release"])
def test_a_draw_that_ends_in_an_error_is_in_the_account(monkeypatch, button):
    at = opened()

    def fails(self, argument):
        raise InvalidInput(["the sampler broke off"])

    with monkeypatch.context() as patched:
        patched.setattr(opendp.Measurement, "__call__", fails)
        fine(at.button(key=button).click().run())
    assert "The sampler broke off" in errors(at)
    ((made,),) = (found.releases for found in at.session_state[keys.LEDGERS].values())
    assert made.epsilon <= 0.1
    assert "With what was spent before" in shown_texts(at).replace("**", "")
    fine(at.run())
    assert "broke off" not in errors(at)


def test_the_file_of_a_choice_holds_nothing_private():
    parameters = PrivateParameters(1.0, Wanted.CAP, epsilon_choice=0.3)
    drawn = choice.choose(parameters.choice, SAMPLE.histogram)
    document = json.loads(report.choice_json(drawn, Wanted.CAP))
    assert document["answer"]["value"] == drawn.value
    assert document["answer"]["label"] == drawn.facts.label
    assert document["question"]["label"] == "public input"
    # Two draws of one question differ in the number alone, whatever the data.
    other = choice.choose(parameters.choice, ContributionHistogram(sizes=[1, 9], users=[5, 6]))
    second = json.loads(report.choice_json(other, Wanted.CAP))
    second["answer"]["value"] = document["answer"]["value"]
    assert second == document


def test_a_choice_under_replacement_does_not_pretend_to_cover_presence():
    at = on_private_data()
    assert "1.1, where the release too is made for neighbours that add or remove one user." in shown_texts(at)
    at.session_state["private_choice.relation"] = Relation.REPLACE
    fine(at.run())
    # A release for users added or removed takes two steps to replace one: 2 + 0.1.
    assert "counts up to twice: ε = 2.1." in shown_texts(at)
    fine(at.button(key="private_choose").click().run())
    code = one_line(" ".join(block.value for block in at.code if "import" in block.value))
    assert "Together they protect against replacing one user only" in code
    assert "up to twice its epsilon" in code


def test_after_a_release_code_does_not_ascribe_value_bounds_to_mean():
    at = on_private_data()
    fine(at.button(key="private_choose").click().run())
    assert "as on the page *Mean*" in shown_texts(at)
    at.session_state["mean.lower"] = at.session_state["mean.upper"] = None
    fine(at.run())
    assert "where none are entered on the page *Mean*" in shown_texts(at)


@pytest.mark.parametrize("epsilon", [None, 0.0, 1e9])
def test_a_bad_epsilon_beside_a_chosen_number_gives_no_traceback(epsilon):
    at = on_private_data()
    fine(at.button(key="private_choose").click().run())
    fine(at.number_input(key=keys.EPSILON).set_value(epsilon).run())
    assert drawn_numbers(at)[0].facts.label in shown_texts(at)


def test_a_release_of_an_upload_says_that_a_reload_loses_it():
    at = on_private_data()
    fine(at.button(key="private_release").click().run())
    assert "are here until this page is closed or loaded anew" in shown_texts(at)
    assert "upload" in at.query_params


def test_what_the_costs_are_computed_from_is_said_of_these_data():
    at = opened()
    assert "They are public, so reading the costs" in shown_texts(at)
    assert "a look at the data that no ε covers" not in shown_texts(at)
    at = on_private_data()
    assert "computed from the private data in the clear" in shown_texts(at)
    assert "a look at the data that no ε covers" in shown_texts(at)
    fine(at.button(key="private_release").click().run())
    texts = shown_texts(at)
    assert "computed from the release in use, not from the data behind it" in texts
    assert "Were the release the data themselves: one more user" in texts
    formula = next(e.value for e in at.markdown if "Why the number leaks" in e.value)
    assert "in the clear" not in texts.replace(unescaped(formula), "")


def test_a_number_that_one_user_cannot_move_is_not_said_to_move():
    at = opened(link="1", wanted="sum", largest="3")  # everybody's T is far above what a user may have
    texts = shown_texts(at).lower()
    assert "one more user with at most 3 rows, the public maximum, does not move" in texts
    assert "can move" not in texts


def test_users_over_the_public_maximum_are_told_apart_from_a_wish_to_raise_it():
    at = on_private_data()
    over = int((COUNTS > 100).sum())
    assert "**Over the maximum:**" not in shown_texts(at)
    fine(at.number_input(key="private_choice.largest").set_value(100.0).run())
    texts = shown_texts(at)
    assert f"{over} users have more than the 100 rows of the public maximum" in texts
    assert "Raise it only for reasons outside these data" in texts


def test_a_sum_of_a_column_is_sent_to_its_own_way():
    at = opened(link="1", wanted="sum")
    assert "For a **sum of a column**, load the data again" in shown_texts(at)
    assert "minimises bias plus mean noise, as in the paper, and depends on 1/ε alone" in shown_texts(at)
    assert "sum of a column" not in shown_texts(opened())


def test_what_is_computed_on_a_release_says_whose_errors_it_shows():
    at = on_private_data()
    fine(at.number_input(key="private_choice.epsilon_choice").set_value(3.0).run())
    fine(at.button(key="private_release").click().run())
    go(at, "Sum and count")
    texts = shown_texts(at)
    assert "the error on the original data is unknown" in texts
    assert "T was chosen on a DP release, whose ε covers it" in texts
    assert "Read off private data it is not" not in texts
    go(at, "Mean")
    assert "computed as if the DP release were the data" in shown_texts(at)
