"""One release has one setting: what is entered on one page holds on all, and all say the same number for it."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest

import dpcore as ss
from dpcore import mean, total
from dpcore.common.noise_error import Measure, NoiseKind
from dpcore.common.privacy import Disclosure
from dpcore.common.programs import Program
from dpcore.common.wording import format_percent
from dpcore.contributions import ContributionHistogram
from dpcore.data import samples
from dpcore.data.totals_per_user import get_user_amounts
from dpcore.dataset import Dataset, Values
from dpcore.gap_examples.answer import build_answer as gap_answered
from dpcore.gap_examples.parameters import GapParameters
from dpcore.learning import LearningParameters, PrivacyForm
from dpcore.learning.answer import build_answer as learning_answered
from dpcore.learning.answer import compare_over_epsilon as learning_against
from dpcore.mean.answer import build_answer as mean_answered
from dpcore.mean.answer import compare_over_epsilon as mean_against
from dpcore.mean.table_values import ValueSummary
from dpcore.per_group.parameters import Statistic
from dpcore.plan.answer import build_answer as plan_answered
from dpcore.plan.parameters import PlanParameters
from dpcore.private_choice import release_bounds
from dpcore.private_choice.answer import selection
from dpcore.private_choice.choice import forecast
from dpcore.private_choice.parameters import BoundPurpose, PrivateParameters
from dpcore.quantile.answer import compare_over_epsilon as quantile_against
from dpcore.quantile.parameters import Weighting
from dpcore.total.answer import build_answer as total_answered
from dpcore.total.answer import compare_over_epsilon as total_against
from dpcore.total.parameters import Summed, TotalParameters
from pages.private_choice import on_card
from tests.pages.driving import (
    check,
    confirm,
    data,
    enter_range,
    go,
    list_metrics,
    open_app,
    release_copy,
    shown_texts,
    use_dataset,
)

SHOP = samples.load("shop-events")
SECRET = dataclasses.replace(SHOP, name="secret.csv", disclosure=Disclosure.PRIVATE)
SKEWED = ContributionHistogram(sizes=[1, 2, 5, 40, 300], users=[400, 90, 40, 12, 2])


@pytest.mark.long
@pytest.mark.parametrize("histogram", [SHOP.histogram, SKEWED], ids=["shop", "skewed"])
def test_all_pages_find_one_number_for_one_setting(histogram):
    """Twenty settings side by side: a mean under each, on every page that answers it, and over ε on *Compare*."""
    data_set = Dataset("few", "few", Disclosure.PUBLIC, histogram)
    for number, (epsilon, share) in enumerate(
        itertools.product((0.05, 0.3, 1.0, 3.0, 20.0), (0.25, 0.1, 0.05, 0.01))
    ):
        lower, upper = -3.0 * number, 7.0 + number
        for counts in mean.Counts:
            parameters = mean.MeanParameters(
                epsilon,
                lower,
                upper,
                variance_source=mean.VarianceSource.ENTERED,
                value_variance=share * (upper - lower) * (upper - lower),
                counts=counts,
            )
            on_mean = mean_answered(data_set, parameters)
            bounds = {"Mean": on_mean.numbers[0].value}
            compared = mean_against(data_set, parameters)
            bounds["Compare"] = compared.compute_best_bound_and_error(epsilon)[0]
            on_gap = gap_answered(
                data_set,
                GapParameters(epsilon, variance_source=mean.VarianceSource.ENTERED, value_variance=share),
                value_range=(lower, upper),
            )
            assert not on_mean.setting.list_differences(on_gap.setting)
            bounds["Weights vs. caps"] = on_gap.solution.comparison.cap_choice.max_contributions
            assert on_gap.solution.comparison.smooth_choice.threshold == pytest.approx(
                on_mean.solution.smooth_choice.threshold
            )
            release = PrivateParameters.from_release(on_mean.setting)
            # Where everybody may know the counts, no draw is needed.
            assert (release is None) is (counts is mean.Counts.PUBLIC)
            if release is not None:
                assert not on_mean.setting.list_differences(release.setting)
                bounds["with DP"] = release.condition.find_best_bound(histogram)
            # Where the error is the same at two bounds, either is best.
            costs = {
                page: float(mean.compute_capped_variance(on_mean.solution.problem, h))
                for page, h in bounds.items()
            }
            assert list(costs.values()) == pytest.approx([costs["Mean"]] * len(costs), rel=1e-12), bounds
            # Another variance is another setting, and it is named.
            other = dataclasses.replace(parameters, value_variance=parameters.value_variance / 2)
            assert on_mean.setting.list_differences(mean_answered(data_set, other).setting) == (
                "variance_share",
            )


@pytest.mark.long
@pytest.mark.parametrize("histogram", [SHOP.histogram, SKEWED], ids=["shop", "skewed"])
def test_all_pages_find_one_bound_for_one_count_or_sum(histogram):
    """Twenty settings: a count, and a column's sum brought row by row, under either noise and any measure."""
    rng = np.random.default_rng(0)
    users = np.repeat(np.arange(histogram.num_users), np.repeat(histogram.sizes, histogram.users))
    values = Values(users, np.round(rng.gamma(0.5, 20.0, users.size), 2), "amount")
    data_set = Dataset("few", "few", Disclosure.PRIVATE, histogram, values=values)
    for epsilon, noise, summed in itertools.product(
        (0.05, 0.3, 1.0, 3.0, 20.0), NoiseKind, (Summed.ROWS, Summed.VALUES)
    ):
        delta = None if noise is NoiseKind.LAPLACE else 1e-6
        parameters = TotalParameters(
            epsilon, summed, mechanism=noise, delta=delta, objective=Measure.BOUND, highest_total=5e4
        )
        on_page = total_answered(data_set, parameters)
        problem = on_page.solution.problem
        bounds = {"Sum and count": on_page.numbers[0].value}
        bounds["Compare"] = total_against(data_set, parameters).compute_best_bound_and_error(epsilon)[0]
        call = ss.count_bound if summed is Summed.ROWS else ss.sum_bound
        call_answer = call(data_set, epsilon=epsilon, mechanism=noise.value, delta=delta, objective="bound")
        bounds["Python"] = call_answer.bound
        request = selection.build_request(on_page, data_set, selection.SelectionSettings())
        assert not on_page.setting.list_differences(request.setting)
        histogram_drawn_on = data_set.histogram
        if summed is Summed.VALUES:
            histogram_drawn_on = release_bounds.convert_to_units(
                get_user_amounts(data_set).totals, request.problem.unit, request.problem.largest
            )
        bounds["the draw"] = (
            request.problem.condition.find_best_bound(histogram_drawn_on) * request.problem.unit
        )
        app = total.compute_errors(problem, list(bounds.values()))
        # A bound on totals is written in few digits, and drawn in units: hardly more error.
        # Draws go by the noise of the exact mechanism in real numbers, not by that of a program.
        near = 1e-5 if summed is Summed.ROWS and noise is NoiseKind.LAPLACE else 2e-3
        np.testing.assert_allclose(
            app.bias + app.mean_noise, app.bias[0] + app.mean_noise[0], rtol=near, err_msg=str(bounds)
        )
        assert bounds["Sum and count"] == bounds["Compare"] == bounds["Python"]
        if noise is NoiseKind.LAPLACE:  # A plan with this line alone, which goes by root mean squares.
            by_squares = dataclasses.replace(parameters, objective=Measure.RMSE, program=Program.PYTHON)
            squares = total_answered(data_set, by_squares)
            line = "rows" if summed is Summed.ROWS else "sum"
            plan_parameters = PlanParameters(epsilon, lines=line, program=Program.PYTHON)
            planned = plan_answered(data_set, plan_parameters).solution.lines[0]
            assert planned.error == pytest.approx(squares.solution.compute_error(planned.bound), rel=1e-5)
            assert planned.error == pytest.approx(
                squares.solution.compute_error(squares.solution.bound), rel=2e-3
            )


@pytest.mark.long
def test_all_pages_find_one_bound_for_one_quantile_or_learner():
    """Twenty settings each: the page, *Compare* over ε, a call, and what a draw aims at."""
    few = SHOP.values.user_codes < 12
    values = Values(SHOP.values.user_codes[few], SHOP.values.values[few], "amount")
    histogram = ContributionHistogram.from_counts(np.bincount(values.user_codes))
    data_set = Dataset("few", "few", Disclosure.PRIVATE, histogram, values=values)
    for epsilon, kind, quantiles in itertools.product(
        (0.05, 0.3, 1.0, 3.0, 20.0), (Weighting.SMOOTH, Weighting.CAP), ("0.5", "0.25, 0.9")
    ):
        settings = {
            "epsilon": epsilon,
            "weighting": kind.value,
            "program": "plain Python" if kind is Weighting.SMOOTH else "OpenDP",
            "quantiles": quantiles,
            "lower": 0,
            "upper": 100,
        }
        on_page = ss.quantile_bound(data_set, **settings)
        parameters = on_page.parameters
        assert parameters.protects_users
        bound = on_page.solution.bound
        assert (
            quantile_against(data_set, parameters).compute_best_bound_and_error(epsilon)[0]
            == bound
            == on_page.bound
        )
        request = selection.build_request(on_page.answer, data_set, selection.SelectionSettings())
        assert not on_page.answer.setting.list_differences(request.setting)
        errors = request.problem.condition.compute_errors(
            histogram, np.array([bound, request.problem.condition.find_best_bound(histogram)])
        )
        assert errors[0] == pytest.approx(errors[1], rel=1e-9)
    for epsilon, differ, form in itertools.product(
        (0.05, 0.3, 1.0, 3.0, 20.0), (0.0, 0.25), (PrivacyForm.QUADRATIC, PrivacyForm.LINEAR)
    ):
        parameters = LearningParameters(epsilon, loss_variance=differ, privacy_form=form, public_rows=3_000)
        on_page = learning_answered(SECRET, parameters)
        bound = on_page.numbers[0].value
        assert learning_against(SECRET, parameters).compute_best_bound_and_error(epsilon)[0] == bound
        call = ss.learning_bound(SECRET, epsilon=epsilon, loss_variance=differ, privacy_form=form.value)
        assert call.bound == bound
        # Its draw aims at another number on purpose, and the card says so.
        request = selection.build_request(on_page, SECRET, selection.SelectionSettings())
        assert on_card._describe_aim(on_page, request)


@pytest.mark.parametrize("histogram", [SHOP.histogram, SKEWED], ids=["shop", "skewed"])
def test_users_who_differ_are_one_setting_too(histogram):
    """The mean of this table with counts alone: *Mean*, *Compare*, and what a private draw aims at."""
    data_set = Dataset("few", "few", Disclosure.PRIVATE, histogram)
    for epsilon, alike in itertools.product((0.1, 1.0, 5.0), (0.05, 0.2, 1.0)):
        parameters = mean.MeanParameters(
            epsilon,
            0.0,
            50.0,
            counts=mean.Counts.PRIVATE,
            target=mean.Target.TABLE,
            likeness=mean.Likeness.ENTERED,
            user_share=alike,
        )
        on_mean = mean_answered(data_set, parameters)
        release = PrivateParameters.from_release(on_mean.setting)
        assert not on_mean.setting.list_differences(release.setting)
        best = on_mean.numbers[0].value
        assert release.condition.find_best_bound(histogram) == best
        assert mean_against(data_set, parameters).compute_best_bound_and_error(epsilon)[0] == best
        errors = release.condition.compute_errors(histogram, np.array([1.0, 7.0, float(best)]))
        there = np.sqrt(mean.compute_capped_variance(on_mean.solution.problem, [1.0, 7.0, best]))
        np.testing.assert_allclose(errors / errors[-1], there / there[-1], rtol=1e-9)
        # Of a population users who differ are not taken into account, and that is told.
        population = dataclasses.replace(parameters, target=mean.Target.POPULATION)
        setting = mean_answered(data_set, population).setting
        assert setting.list_differences(PrivateParameters.from_release(setting).setting) == ("user_share",)


def test_private_data_get_the_private_side_and_every_page_the_same_number():
    app = use_dataset(open_app("Mean"), SECRET)
    app.session_state["mean.lower"], app.session_state["mean.upper"] = 0.0, 100.0
    check(app.run())
    assert app.session_state["mean.target"] is mean.Target.TABLE
    assert app.session_state["mean.likeness"] is mean.Likeness.ENTERED
    parameters = mean.MeanParameters(
        1.0, 0.0, 100.0, counts=mean.Counts.PRIVATE, target=mean.Target.TABLE, likeness=mean.Likeness.ENTERED
    )
    differ = mean.find_best_cap(parameters.build_problem(SECRET.histogram)).max_contributions
    assert f"Keep at most {differ} rows" in shown_texts(app)
    check(app.segmented_control(key="mean.likeness").set_value("Not at all").run())
    assert app.session_state["mean.counts"] is mean.Counts.PRIVATE
    assert app.session_state["mean.variance_source"] is mean.VarianceSource.WORST_CASE
    cap = mean.find_best_cap(
        mean.MeanParameters(1.0, 0.0, 100.0).build_problem(SECRET.histogram)
    ).max_contributions
    assert f"Keep at most {cap} rows" in shown_texts(app)
    # A look at the values is a choice of the person's own.
    app.session_state["mean.variance_source"] = mean.VarianceSource.FROM_VALUES
    app.session_state["mean.counts"] = mean.Counts.PUBLIC
    go(app, "Mean")
    table = ValueSummary.from_dataset(SECRET, 0.0, 100.0).table_values
    problem = mean.MeanProblem(
        SECRET.histogram, 1.0, 100.0, 1.0, target=mean.Target.TABLE, table_values=table
    )
    max_contributions = mean.find_best_cap(problem).max_contributions
    assert max_contributions != cap
    assert f"Keep at most {max_contributions} rows" in shown_texts(app)
    assert f"private counts the best bound is **{cap} rows**" in shown_texts(app)


def test_where_a_page_finds_another_number_on_purpose_a_sentence_says_both():
    """Weights gain goes by the worst case where *Mean* reads the variance."""
    app = check(use_dataset(open_app("Mean"), SHOP).run())
    check(app.button(key="mean_as_in_paper").click().run())
    variance = float(np.clip(SHOP.values.values, 0.0, 100.0).var(ddof=1))
    cap = mean.find_best_cap(mean.MeanProblem(SHOP.histogram, 1.0, 100.0, variance)).max_contributions
    worst = mean.find_best_cap(mean.MeanProblem(SHOP.histogram, 1.0, 100.0, 2_500.0)).max_contributions
    sentence = f"*Mean* finds {cap} for this release, this page {worst}: its σ² is {variance / 1e4:.3g} of"
    assert sentence in shown_texts(go(app, "Weights vs. caps"))
    app.session_state["mean.variance_source"] = mean.VarianceSource.WORST_CASE
    check(app.run())
    assert "*Mean* finds" not in shown_texts(app)


@pytest.mark.long
def test_a_setting_that_is_entered_once_holds_on_all_pages():
    app = check(use_dataset(open_app("Mean"), SECRET).run())
    enter_range(app, 2.0, 80.0)
    go(app, "Quantile")
    assert (app.number_input(key="quantile.low").value, app.number_input(key="quantile.high").value) == (
        2.0,
        80.0,
    )
    check(app.number_input(key="quantile.high").set_value(90.0).run())
    app.session_state["per_group.statistic"] = Statistic.MEAN
    go(app, "Group by")
    assert (app.number_input(key="per_group.lower").value, app.number_input(key="per_group.upper").value) == (
        2.0,
        90.0,
    )
    # One that is cleared is asked for where it was cleared; the other pages keep theirs, also after a further visit.
    check(app.number_input(key="per_group.upper").set_value(None).run())
    assert check(app.run()).number_input(key="per_group.upper").value is None
    go(app, "Mean")
    assert (app.number_input(key="mean.lower").value, app.number_input(key="mean.upper").value) == (2.0, 90.0)
    app.session_state["total.mechanism"] = NoiseKind.GAUSSIAN
    go(app, "Sum and count")
    check(app.number_input(key="total.delta").set_value(1e-8).run())
    go(app, "Group by")
    assert app.number_input(key="per_group.delta").value == 1e-8


@pytest.mark.long
def test_the_range_beside_a_demonstration_is_about_that_alone():
    app = check(open_app("Mean").run())
    assert data(app).values is None
    check(app.number_input(key="mean.upper").set_value(7.0).run())
    go(app, "Quantile")
    assert app.number_input(key="quantile.high").value == 100.0
    check(app.number_input(key="quantile.high").set_value(60.0).run())
    go(app, "Mean")
    assert app.number_input(key="mean.upper").value == 7.0


def test_a_range_of_private_values_is_forgotten_with_them():
    app = check(use_dataset(open_app("Mean"), SECRET).run())
    enter_range(app, 2.0, 80.0)

    release_copy(app)
    go(app, "Group by")
    assert 80.0 not in app.session_state["release_setting"].values()
    assert 80.0 not in app.session_state["release_setting_seen"].values()
    assert app.session_state["per_group.upper"] is None


@pytest.mark.long_but("Sum and count-total-BoundPurpose.SUM")
@pytest.mark.parametrize(
    ("title", "name", "wanted"),
    [("Mean", "mean", BoundPurpose.CAP), ("Sum and count", "total", BoundPurpose.SUM)],
)
def test_a_bound_is_drawn_on_the_page_that_asks_for_it(title, name, wanted):
    app = use_dataset(open_app(title), SECRET)
    app.session_state["mean.lower"], app.session_state["mean.upper"] = 0.0, 100.0
    check(app.run())
    draw, code = app.button(key=f"{name}_card_draw"), app.button(key=f"{name}_card_code")
    assert (draw.label, code.label) == ("Choose with DP…", "Use the number as it is")
    confirm(app, draw.key)
    ((_, choices),) = app.session_state["private_choice.choices"].items()
    ((purpose, drawn),) = choices
    assert purpose is wanted
    assert drawn.problem == PrivateParameters(1.0, wanted, user_share=0.2).choice
    assert f"Keep at most {drawn.value:,.0f} row" in shown_texts(app)
    assert drawn.facts.label in shown_texts(app)
    assert "the release adds ε = 1" in shown_texts(app)
    assert app.button(key=f"{name}_card_code").label == "Get code"
    shown = check(app.button(key=f"{name}_card_code").click().run())
    assert f"{drawn.value:.0f}" in "".join(block.value for block in shown.code)
    # For other settings another number is best: what was drawn stands on Data, and is not called theirs.
    check(app.number_input(key="epsilon").set_value(3.0).run())
    assert app.button(key=f"{name}_card_draw").label == "Choose with DP…"
    check(app.button(key=f"{name}_card_draw").click().run())
    assert "With what was spent before in this window, **ε = 0.2**" in shown_texts(app)
    assert drawn.facts.label not in shown_texts(app)
    assert shown_texts(go(app, "Data")).count(drawn.facts.label) == 1


def test_nothing_is_drawn_where_nothing_needs_it():
    for data_set in (SHOP, dataclasses.replace(SECRET, values=None)):
        app = use_dataset(open_app("Mean"), data_set)
        app.session_state["mean.counts"] = mean.Counts.PUBLIC
        check(app.run())
        assert not [button for button in app.button if button.key == "mean_card_draw"]


@pytest.mark.long
def test_what_a_draw_costs_stands_beside_its_button_and_says_nothing_of_the_data():
    """Two private tables, one sentence; it goes with the draw."""
    cost_texts = set()
    for histogram in (SHOP.histogram, SKEWED):
        private = dataclasses.replace(SECRET, histogram=histogram, values=None)
        app = check(use_dataset(open_app("Sum and count"), private).run())
        check(app.button(key="total_card_draw").click().run())
        (cost,) = (text for text in shown_texts(app).splitlines() if "On public samples" in text)
        cost_texts.add(cost)
    assert len(cost_texts) == 1
    # What it aims at is not what this page minimises unless told to, which is said, too.
    (cost,) = cost_texts
    assert "The draw aims at the least bias plus mean noise." in cost
    extra = forecast(PrivateParameters(1.0, purpose=BoundPurpose.SUM).choice)
    assert extra.max() > 1.0
    assert all(format_percent(item) in cost for item in extra)
    assert "a bound that you know does better" in cost
    confirm(app, "total_card_draw")
    assert "On public samples" not in shown_texts(app)


def test_a_bound_of_ones_own_is_compared_under_the_card():
    app = check(use_dataset(open_app("Mean"), SHOP).run())
    check(app.number_input(key="mean.own_bound").set_value(50.0).run())
    (sentence,) = {
        text for text in shown_texts(app).splitlines() if text.startswith("Your own bound, 50 rows")
    }
    table = ValueSummary.from_dataset(SHOP, 0.0, 100.0).table_values
    problem = mean.MeanProblem(SHOP.histogram, 1.0, 100.0, 1.0, target=mean.Target.TABLE, table_values=table)
    ratio = math.sqrt(
        mean.compute_capped_variance(problem, 50)
        / mean.compute_capped_variance(problem, mean.find_best_cap(problem).max_contributions)
    )
    assert f"{ratio:.1f} times as much compared with the bound above" in sentence
    # What is wrong with it is said beside it, and the answer stands.
    check(app.number_input(key="mean.own_bound").set_value(1.5).run())
    assert list_metrics(app)
    assert "must be a whole number" in shown_texts(app)
