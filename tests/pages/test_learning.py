"""Learning under a cap: what is drawn and said is what `dpcore` answers; bad parameters get sentences."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from dpcore.common import wording
from dpcore.contributions import ContributionHistogram
from dpcore.data import samples
from dpcore.learning import LearningParameters, PrivacyForm, optimal_cap, population
from dpcore.learning import files as learning_files
from dpcore.learning.optimal_cap import BiasTerm
from dpcore.learning.participation import PowerLaw
from dpcore.learning.participation_sample import expectation, simulate
from pages.learning import (
    answer,
    inputs,
    population_figures,
)
from pages.learning import (
    figures as learning_charts,
)
from pages.learning import (
    population as learning_population,
)
from pages.shared import jobs, keys, session
from pages.shared.ranges import DEFAULT_EPSILON
from tests.pages.driving import (
    SHOP_EVENTS,
    chart,
    data,
    errors,
    fine,
    finished,
    go,
    link_of,
    open_app,
    raw_texts,
    shown_texts,
    trace,
    unescaped,
    upload,
    use,
)

PAGE = "Learning under a cap"
SAMPLE = samples.load(session.DEFAULT_SAMPLE)
TABS = (
    "All bounds on the bias",
    "Who is capped",
    "Figure 2",
    "Figure 3",
    "Cost of privacy",
    "Downloads",
    "How this is computed",
)


def question(at, **changed) -> optimal_cap.BiasProblem:
    return LearningParameters(**{"epsilon": DEFAULT_EPSILON, **changed}).problem(data(at).histogram)


def on_tab(at, tab: str):
    at.session_state["learning.tabs"] = tab
    at.run()
    return fine(at.run())


def same(drawn: np.ndarray, computed: np.ndarray) -> bool:
    """Equal where drawable; a gap where a log axis has no place."""
    there = np.isfinite(computed) & (computed > 0)
    return bool(np.all(np.isnan(drawn[~there])) and np.allclose(drawn[there], computed[there], rtol=1e-12))


def assert_answer(at, problem: optimal_cap.BiasProblem) -> None:
    """The page shows the best cap of this problem and its parts, in the figure and in the card."""
    best = optimal_cap.best_cap(problem)
    figure = chart(at, "learning_bound")
    ((x,), (y,)) = trace(figure, "Best cap")
    assert (x, y) == (pytest.approx(best.fraction), pytest.approx(best.total))
    tau_0, total = trace(figure, "Bound, all three")
    parts = optimal_cap.error_parts(problem, tau_0)
    assert same(total, parts.total)
    for name, part in (
        ("Bias, twice", parts.bias),
        ("Finite sample", parts.finite_sample),
        ("Privacy noise", parts.privacy),
    ):
        assert same(trace(figure, name)[1], part)
    # The curve is drawn where whole caps are, and no cap drawn is better than the best.
    assert np.allclose(tau_0 * problem.histogram.num_rows, np.rint(tau_0 * problem.histogram.num_rows))
    assert np.nanmin(total) >= best.total * (1 - 1e-6)
    shown = [metric.value for metric in at.metric]
    assert shown[0] == wording.counted(best.max_contributions, "row")
    assert shown[1:4] == [wording.number(part) for part in (best.bias, best.finite_sample, best.privacy)]
    assert f"τ₀ = {wording.number(best.fraction)}" in shown_texts(at)


# --- the answer ---------------------------------------------------------------------------------------------


def test_the_default_sample_is_answered_by_dpcore():
    at = open_app(PAGE)
    assert_answer(at, question(at))


def test_epsilon_moves_the_answer_and_not_the_axes():
    at = open_app(PAGE)
    before = chart(at, "learning_bound")["layout"]
    caps = []
    for epsilon in (0.01, 0.1, 1.0, 10.0):
        fine(at.select_slider(key=keys.EPSILON_SLIDER).set_value(epsilon).run())
        problem = question(at, epsilon=epsilon)
        assert_answer(at, problem)
        caps.append(optimal_cap.best_cap(problem).cap)
        layout = chart(at, "learning_bound")["layout"]
        for axis in ("xaxis", "yaxis"):
            assert layout[axis]["range"] == before[axis]["range"]
    assert caps == sorted(caps)
    assert caps[0] < caps[-1]


@pytest.mark.parametrize("term", BiasTerm)
def test_every_bound_on_the_bias_can_be_chosen_and_says_what_it_needs(term):
    at = open_app(
        PAGE, link="1", data="requests-commits", epsilon="0.5", bias=term.value, loss_variance="0.03"
    )
    assert not errors(at)
    assert_answer(at, question(at, epsilon=0.5, bias=term, loss_variance=0.03))
    (caption,) = [c.value for c in at.caption if "Bias at most" in c.value]
    needs = term.needs
    assert f"It needs: {needs[:1].lower()}{needs[1:]}." in unescaped(caption)
    assert ("Var(H) is not used" in caption) is not term.needs_variance
    assert at.slider(key="learning.loss_variance").disabled is not term.needs_variance


def test_the_bias_vanishes_where_users_are_alike():
    at = open_app(PAGE, link="1", data="requests-commits", epsilon="1")
    assert float(at.metric[1].value) > 0
    fine(at.slider(key="learning.loss_variance").set_value(0.0).run())
    assert_answer(at, question(at, epsilon=1.0, loss_variance=0.0))
    assert at.metric[1].value == "0"
    assert "Users are taken to be alike" in shown_texts(at)


def test_all_settings_are_used():
    at = open_app(PAGE)
    at.number_input(key="learning.vc_dimension").set_value(3)
    at.number_input(key="learning.failure_probability").set_value(0.01)
    at.number_input(key="learning.privacy_constant").set_value(40.0)
    at.number_input(key="learning.finite_sample_constant").set_value(0.5)
    fine(at.segmented_control(key="learning.privacy_form").set_value(PrivacyForm.OWN).run())
    fine(at.number_input(key="learning.privacy_power").set_value(1.25).run())
    changed = {
        "vc_dimension": 3,
        "failure_probability": 0.01,
        "privacy_constant": 40.0,
        "finite_sample_constant": 0.5,
        "privacy_form": PrivacyForm.OWN,
        "privacy_power": 1.25,
    }
    assert_answer(at, question(at, **changed))
    fine(at.segmented_control(key="learning.privacy_form").set_value(PrivacyForm.LINEAR).run())
    changed |= {"privacy_form": PrivacyForm.LINEAR, "privacy_power": None}
    assert_answer(at, question(at, **changed))
    assert r"F = 40 $(\text{share}/\varepsilon)$" in raw_texts(at)
    fine(at.segmented_control(key="learning.privacy_form").set_value(PrivacyForm.QUADRATIC).run())
    assert r"$C \ln^2(3/\delta)$ $(\text{share}/\varepsilon)^{2}$ with C = 40" in raw_texts(at)


def test_a_bound_above_one_is_said_to_promise_nothing():
    at = open_app(PAGE, link="1", data="requests-commits", epsilon="0.1")
    assert optimal_cap.best_cap(question(at, epsilon=0.1)).total > 1
    assert "Above 1 the bound promises nothing" in shown_texts(at)
    fine(at.number_input(key=keys.EPSILON).set_value(10.0).run())
    assert "Above 1 the bound promises nothing" not in shown_texts(at)


def test_private_data_say_what_a_cap_leaks():
    at = go(use(upload(open_app("Your data"), SHOP_EVENTS, "shop_events.csv")), PAGE)
    assert_answer(at, question(at))
    assert "Your data are private, and a cap read off them is too" in shown_texts(at)
    assert "computed from private data: do not publish" in shown_texts(at)
    at = on_tab(at, "Figure 2")
    assert "public input" in shown_texts(at)


def test_the_slider_cannot_carry_the_heaviest_users_rows_into_a_link():
    at = go(use(upload(open_app("Your data"), b"size,users\n1,300\n2017,1\n", "secret.csv")), PAGE)
    slider = at.select_slider(key=f"learning.cap_slider_{at.session_state[keys.DATA_VERSION]}")
    assert slider.options[-1] == "5,000"
    fine(slider.set_value(5000).run())
    assert "own_cap=5000" in link_of(at)
    assert "2017" not in link_of(at)


# --- one's own cap ------------------------------------------------------------------------------------------


def test_an_own_cap_is_compared_and_its_controls_keep_in_step():
    at = open_app(PAGE, link="1", data="shop-events", epsilon="0.1")
    n = data(at).histogram.num_rows
    slider = f"learning.cap_slider_{at.session_state[keys.DATA_VERSION]}"
    problem = question(at, epsilon=0.1)

    def assert_own(cap):
        ((x,), (y,)) = trace(chart(at, "learning_bound"), "Your cap")
        total = float(optimal_cap.error_parts(problem, cap / n).total)
        assert (x, y) == (pytest.approx(cap / n), pytest.approx(total))
        assert f"bound {wording.number(total)} (bias" in shown_texts(at)
        assert at.number_input(key="learning.own_cap").value == cap
        assert f"**{wording.number(cap / n)}**" in [text.value for text in at.markdown]

    fine(at.number_input(key="learning.own_cap").set_value(9).run())
    assert_own(9)
    assert at.select_slider(key=slider).value == 10
    fine(at.select_slider(key=slider).set_value(50).run())
    assert_own(50)
    assert "own_cap=50&" in link_of(at)
    assert f"{50 / n:.4g}"[:5] not in link_of(at)
    fine(at.number_input(key="learning.own_cap").set_value(None).run())
    assert "Your cap" not in [t["name"] for t in chart(at, "learning_bound")["data"]]
    assert "–" in [text.value for text in at.markdown]
    assert at.select_slider(key=slider).value == inputs.NO_CAP


def test_an_own_cap_does_not_outlive_its_data():
    at = open_app(PAGE)
    fine(at.number_input(key="learning.own_cap").set_value(9).run())
    at = go(use(upload(go(at, "Your data"), b"size,users\n1,5\n")), PAGE)
    assert at.number_input(key="learning.own_cap").value is None


# --- tabs ---------------------------------------------------------------------------------------------------


def test_all_bounds_are_drawn_and_listed():
    at = open_app(PAGE, link="1", data="requests-commits", epsilon="1", loss_variance="0.02", own_cap="2")
    at = on_tab(at, "All bounds on the bias")
    problem = question(at, epsilon=1.0, loss_variance=0.02)
    figure = chart(at, "learning_terms")
    tau_0, cut = trace(figure, "Share of rows cut (i)")
    terms = optimal_cap.bias_terms(problem, tau_0)
    for term in BiasTerm:
        if term not in answer.MINIMA:
            assert same(trace(figure, f"{term.title} ({term.group})")[1], 2.0 * terms[term]), term
    corollary = trace(figure, "Corollary 1 (iv)")[1]
    both = np.isfinite(cut) & np.isfinite(corollary)
    assert both.any()
    assert np.all(cut[both] <= corollary[both])
    assert np.isnan(corollary).sum() > np.isnan(cut).sum()  # it does not apply to the lowest caps
    (table,) = [one.value for one in at.table]
    assert list(table["Bound"]) == [term.title for term in BiasTerm]
    for term, (_, row) in zip(BiasTerm, table.iterrows(), strict=True):
        best = optimal_cap.best_cap(replace(problem, bias=term))
        assert row["Best cap under it"] == wording.counted(round(best.cap), "row")
        assert row["Its bound"] == wording.number(best.total)
        own = 2.0 * float(optimal_cap.bias_terms(problem, 2 / problem.histogram.num_rows)[term])
        expected = wording.number(own) if math.isfinite(own) else "does not apply"
        assert row["Twice, at your cap"] == expected
    assert "does not apply" in set(table["Twice, at your cap"])


def test_who_is_capped_is_listed_from_the_users_themselves():
    at = on_tab(open_app(PAGE, link="1", data="shop-events", epsilon="0.1"), "Who is capped")
    histogram = data(at).histogram
    counts = np.repeat(histogram.sizes, histogram.users)
    cap = optimal_cap.best_cap(question(at, epsilon=0.1)).max_contributions
    (table,) = [frame.value for frame in at.dataframe]
    assert table["users"].sum() == (counts > cap).sum()
    assert table["rows_cut"].sum() == np.maximum(counts - cap, 0).sum()
    assert list(table["size"]) == sorted(set(counts[counts > cap].tolist()), reverse=True)
    assert table["share_before"].iloc[0] == pytest.approx(counts.max() / counts.sum())
    assert table["share_after"].iloc[0] == pytest.approx(cap / np.minimum(counts, cap).sum())
    fine(at.number_input(key="learning.own_cap").set_value(2).run())
    fine(at.segmented_control(key="learning.whose_cap").set_value("Your cap").run())
    (table,) = [frame.value for frame in at.dataframe]
    assert table["users"].sum() == (counts > 2).sum()
    fine(at.number_input(key="learning.own_cap").set_value(10**6).run())
    assert "this cap throws nothing away" in shown_texts(at)


def test_figure_2_is_the_mass_of_uncapped_users():
    at = on_tab(open_app(PAGE), "Figure 2")
    fine(at.number_input(key="learning.alpha").set_value(1.5).run())
    figure = chart(at, "learning_figure_2")
    tau_0, mass = trace(figure, "α = 1.5, uncapped users")
    # By a direct sum: what is not with the users above tau_0.
    p = np.arange(1.0, 200_001.0) ** -2.5
    p /= PowerLaw(1.5).normaliser
    direct = np.array([1.0 - p[p > t].sum() for t in tau_0])
    assert np.allclose(mass, direct, atol=1e-9)
    kept = trace(figure, "α = 1.5, all rows kept")[1]
    tail = PowerLaw(1.5).tail(p.size)
    assert np.allclose(kept, [np.minimum(p, t).sum() + tail for t in tau_0], atol=1e-9)
    assert {t["name"] for t in figure["data"]} > {f"α = {a:g}" for a in learning_population.FAMILY}


def test_figure_3_is_exact_and_the_simulation_lies_over_it():
    at = on_tab(open_app(PAGE), "Figure 3")
    at.number_input(key="learning.population_rows").set_value(2000)
    at.number_input(key="learning.draws").set_value(40)
    fine(at.number_input(key="learning.alpha").set_value(0.75).run())
    here = LearningParameters(DEFAULT_EPSILON, alpha=0.75, population_rows=2000).population(2000)
    best = population.best_fraction(here)
    figure = chart(at, "learning_figure_3a")
    tau_0, total = trace(figure, "Sum")
    parts = population.error_parts(here, tau_0)
    assert same(total, parts.bias + parts.privacy)
    assert np.all(parts.finite_sample == 0)
    ((x,), (y,)) = trace(figure, "Smallest")
    assert (x, y) == (pytest.approx(best.fraction), pytest.approx(best.total))
    users = trace(chart(at, "learning_figure_3b"), "Users capped")[1]
    assert same(users, expectation(PowerLaw(0.75), 2000, tau_0).users_capped)
    assert "Simulated" not in [t["name"] for t in figure["data"]]
    fine(at.button(key="learning_draw").click().run())
    at = finished(at, "learning.draws_job")
    x, y = trace(chart(at, "learning_figure_3b"), "Simulated")
    draws = simulate(PowerLaw(0.75), 2000, x, 40).users_capped
    expected = expectation(PowerLaw(0.75), 2000, x).users_capped
    # Six standard errors, and the rarest events left out: a chance of less than 1e-6 to fail.
    often = expected > 1.0
    error = np.sqrt(expected[often] / 40)
    assert np.all(np.abs(y[often] - expected[often]) <= 6 * error)
    assert same(y, draws.mean(axis=0))
    assert "40 samples drawn" in shown_texts(at)
    # Another population: the samples no longer fit.
    fine(at.number_input(key="learning.alpha").set_value(1.0).run())
    assert "another α or n" in shown_texts(at)
    assert "Simulated" not in [t["name"] for t in chart(at, "learning_figure_3a")["data"]]


def test_figure_3b_finds_few_users_capped_at_the_papers_epsilon():
    at = on_tab(open_app(PAGE, link="1", epsilon="0.3"), "Figure 3")
    (table,) = [frame.value for frame in at.dataframe]
    assert [float(a) for a in table["α"]] == list(learning_population.FAMILY)
    capped = [int(text) for text in table["Users capped, ε = 1"]]
    # To 30 digits (tests/dpcore/test_population.py); the paper: "very small (2 to 8 users)".
    assert capped == [1, 2, 3, 4, 4]


def test_the_cost_of_privacy_flattens_above_zero_and_only_alike_users_escape():
    at = on_tab(open_app(PAGE), "Cost of privacy")
    at = finished(at, "learning.cost_job")
    rows, smallest = trace(chart(at, "learning_cost"), "Smallest sum: cost of privacy")
    assert list(rows) == [float(10**k) for k in range(2, 10)]
    one = population.best_fraction(LearningParameters(DEFAULT_EPSILON).population(10**5))
    assert smallest[3] == pytest.approx(one.total)
    assert np.all(np.diff(smallest) < 0)
    floor = trace(chart(at, "learning_cost"), "Floor, n → ∞")[1][0]
    assert floor > 0.1
    assert smallest[-1] == pytest.approx(floor, rel=1e-3)
    assert f"flattens at {wording.number(floor)}" in shown_texts(at)
    finite = trace(chart(at, "learning_cost"), "Finite-sample term, no cap")[1]
    assert finite[-1] == pytest.approx(math.sqrt(10 * math.log(1e9 / 0.05) / 1e9))
    fine(at.slider(key="learning.loss_variance").set_value(0.0).run())
    at = finished(at, "learning.cost_job")
    names = [t["name"] for t in chart(at, "learning_cost")["data"]]
    assert "Floor, n → ∞" not in names
    assert "its bias, twice" not in names
    assert "and on to 0" in shown_texts(at)


def test_a_stopped_cost_of_privacy_is_a_result_and_can_be_taken_up_again():
    at = open_app(PAGE)
    cost = population.cost_of_privacy(
        LearningParameters(DEFAULT_EPSILON).population(None), should_stop=lambda: True
    )
    assert cost.cancelled
    job = jobs.Job(LearningParameters(DEFAULT_EPSILON).about_cost)
    job.run(lambda progress, should_stop: cost)
    at.session_state["learning.cost_job"] = job
    at = on_tab(at, "Cost of privacy")
    assert "Stopped: 0 of 8 values of n were done" in errors(at)
    fine(at.button(key="learning.cost_again").click().run())
    at = finished(at, "learning.cost_job")
    assert "Stopped" not in errors(at)
    assert trace(chart(at, "learning_cost"), "Smallest sum: cost of privacy")[0].size == 8


@pytest.mark.parametrize(
    "table", [b"size,users\n1,1\n", b"size,users\n5,3\n", b"size,users\n1,1000000000000\n"]
)
def test_degenerate_data_are_answered_on_every_tab(table):
    at = go(use(upload(open_app("Your data"), table)), PAGE)
    for tab in TABS:
        at.session_state["learning.tabs"] = tab
        fine(at.run())
        assert not errors(at)
    assert_answer(at, question(at))


# --- parameters ---------------------------------------------------------------------------------------------


def test_a_link_opens_the_same_question_again():
    at = open_app(
        PAGE, link="1", data="shop-events", epsilon="0.7", bias="chi_squared", loss_variance="0.0123",
        vc_dimension="4", failure_probability="0.02", privacy_form="own", privacy_constant="2",
        privacy_power="1.5", finite_sample_constant="0.25", own_cap="33", alpha="0.9", population_rows="5000",
        draws="12",
    )  # fmt: skip
    assert not errors(at)
    again = open_app(PAGE, **dict(pair.split("=") for pair in link_of(at).split("?")[1].split("&")))
    assert link_of(again) == link_of(at)
    expected = LearningParameters(
        0.7, BiasTerm.CHI_SQUARED, 0.0123, 4, 0.02, PrivacyForm.OWN, 2.0, 1.5, 0.25, 33, 0.9, 5000, 12
    )
    assert again.session_state[keys.PAGE_PARAMETERS] == expected
    assert_answer(again, expected.problem(samples.load("shop-events").histogram))
    on_tab(again, "Figure 3")
    assert again.number_input(key="learning.draws").value == 12


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"bias": "my_own"}, "bias cannot be read"),
        ({"loss_variance": "0.3"}, "Var(H) must lie between 0 and 0.25"),
        ({"vc_dimension": "1.5"}, "vc_dimension cannot be read"),
        ({"privacy_power": "2"}, "power goes only with a privacy term of your own"),
        ({"alpha": "nan"}, "exponent α must lie between"),
        ({"population_rows": "1" + "0" * 30}, "number of rows n must be a whole number"),
        ({"own_cap": "-4"}, "own cap must be a whole number"),
        ({"tau": "5"}, "tau is not a parameter of this page"),
    ],
)
def test_a_hostile_link_gives_a_sentence_and_the_page_goes_on(fields, sentence):
    at = open_app(PAGE, link="1", data=session.DEFAULT_SAMPLE, epsilon="2", **fields)
    assert sentence.lower() in errors(at).lower()
    assert_answer(at, question(at, epsilon=2.0))


@pytest.mark.parametrize(
    ("key", "sentence"),
    [
        (keys.EPSILON, "ε is empty. Enter a number"),
        ("learning.vc_dimension", "The VC dimension d is empty"),
        ("learning.failure_probability", "The failure probability δ is empty"),
        ("learning.privacy_constant", "The privacy constant C is empty"),
        ("learning.finite_sample_constant", "The finite-sample constant is empty"),
    ],
)
def test_a_cleared_field_gives_a_sentence_and_can_be_filled_again(key, sentence):
    at = open_app(PAGE)
    before = at.number_input(key=key).value
    fine(at.number_input(key=key).set_value(None).run())
    assert sentence in errors(at)
    assert not at.metric
    go(go(at, "Your data"), PAGE)
    assert sentence in errors(at)
    fine(at.number_input(key=key).set_value(before).run())
    assert not errors(at)
    assert_answer(at, question(at))


def test_for_a_cleared_field_of_the_population_its_default_stands_in():
    at = on_tab(open_app(PAGE), "Figure 3")
    usual = LearningParameters(DEFAULT_EPSILON)
    for name in ("alpha", "population_rows", "draws"):
        key = f"learning.{name}"
        before = at.number_input(key=key).value
        fine(at.number_input(key=key).set_value(None).run())
        assert (
            f"is empty. Enter a number. Until then {wording.number(getattr(usual, name))} is used"
            in errors(at)
        )
        assert at.number_input(key=key).value is None
        assert_answer(at, question(at))
        fine(at.number_input(key=key).set_value(before).run())
        assert not errors(at)


def test_entries_outlive_a_visit_elsewhere():
    at = open_app(PAGE)
    fine(at.selectbox(key="learning.bias").set_value(BiasTerm.CHI_SQUARED).run())
    fine(at.slider(key="learning.loss_variance").set_value(0.05).run())
    fine(at.number_input(key="learning.own_cap").set_value(77).run())
    at = on_tab(at, "Figure 2")
    fine(at.number_input(key="learning.alpha").set_value(2.25).run())
    at = go(go(at, "Mean"), PAGE)
    assert_answer(at, question(at, bias=BiasTerm.CHI_SQUARED, loss_variance=0.05))
    assert at.number_input(key="learning.own_cap").value == 77
    assert at.session_state["learning.alpha"] == 2.25


# --- the pure parts -----------------------------------------------------------------------------------------

HISTOGRAMS = {
    "one user": ContributionHistogram(sizes=[1], users=[1]),
    "one size": ContributionHistogram(sizes=[7], users=[20]),
    "widest": ContributionHistogram(sizes=[1, 10**12], users=[10**12, 1]),
    "1e6 sizes": ContributionHistogram(sizes=np.arange(1, 1_000_001), users=np.ones(1_000_000)),
    "sample": SAMPLE.histogram,
}


@pytest.mark.parametrize("name", HISTOGRAMS)
@pytest.mark.parametrize("term", [BiasTerm.TIGHTEST, BiasTerm.COROLLARY_1, BiasTerm.LOG_FRACTION])
def test_figures_are_small_named_and_fixed(name, term):
    layouts = []
    for epsilon in (0.01, 30.0):
        parameters = LearningParameters(epsilon, bias=term)
        view = answer.compute(parameters.problem(HISTOGRAMS[name]))
        limits = answer.axis_limits(view)
        figures = [
            learning_charts.bound_figure(view, limits, own_cap=3),
            learning_charts.terms_figure(view, limits, own_cap=3),
        ]
        for figure in figures:
            for one in figure.data:
                assert 1 <= len(one.x) == len(one.y) <= 500
            for axis in (figure.layout.xaxis, figure.layout.yaxis):
                assert axis.title.text
                assert axis.range[0] < axis.range[1]
        layouts.append([(f.layout.xaxis.range, f.layout.yaxis.range) for f in figures])
        document = json.loads(
            learning_files.learning_choice_json(SAMPLE, parameters, view.choice, view.within)
        )
        assert document["answer"]["max_contributions"] == view.choice.max_contributions
    assert layouts[0] == layouts[1]


@pytest.mark.parametrize("alpha", [0.05, 0.5, 10.0])
def test_figures_of_the_population_are_small(alpha):
    view = learning_population.compute(LearningParameters(1.0, alpha=alpha, population_rows=10))
    for figure in (
        population_figures.mass_figure(alpha),
        population_figures.cost_figure(view, None, (0.1, 1.0)),
        population_figures.capped_figure(view, None, (0.1, 1.0)),
    ):
        for one in figure.data:
            assert 1 <= len(one.x) == len(one.y) <= 500
    assert learning_population.best_sentence(view)
