"""Quantile: what is drawn and said is what `dpcore.quantile` answers; what cannot be gets a sentence."""

from __future__ import annotations

import re

import numpy as np
import pytest

from dpcore import quantile
from dpcore.common import wording
from dpcore.common.privacy import Sensitivity
from dpcore.data import samples
from dpcore.quantile import QuantileProblem, WeightKind, optimal_bound, several
from dpcore.quantile.base_distribution import HistogramBase, NormalBase, uniform_base
from dpcore.quantile.parameters import QuantileParameters, Weighting
from pages.quantile import answer, card, figures
from pages.shared import keys
from tests.pages.driving import (
    SHOP_EVENTS,
    chart,
    data,
    errors,
    fine,
    finished,
    go,
    link_of,
    numbers,
    open_app,
    shown_texts,
    trace,
    upload,
    use,
)

SHOP = samples.load("shop-events")
BASE = uniform_base(0.0, 100.0)
LINK = {"link": "1", "data": "shop-events", "epsilon": "1", "low": "0", "high": "100"}


def settled(at):
    """Wait for the searches: a test has no browser that polls."""
    return finished(at, "quantile.search_job", "quantile.poorer_job", "quantile.draws_job")


def quantile_page(**link):
    return settled(open_app("Quantile", **{**LINK, **link}))


def problem(epsilon=1.0, q=0.5, base=BASE):
    return QuantileProblem(SHOP.values, q, epsilon, base)


def test_without_values_it_says_so_and_offers_the_sample():
    at = open_app("Quantile")
    assert "This page needs values" in shown_texts(at)
    assert not at.metric
    settled(fine(at.button(key="quantile_use_sample").click().run()))
    assert data(at).name == SHOP.name
    assert len(at.metric) == 4
    # The sample is public: the ends of the base come from its values, rounded out.
    assert [at.number_input(key=k).value for k in ("quantile.low", "quantile.high")] == [0.0, 100.0]


def test_the_answer_is_that_of_the_core():
    at = quantile_page()
    figure = chart(at, "quantile_error")
    for kind, name in ((WeightKind.SMOOTH, "Smooth weights"), (WeightKind.CAP, "Cap")):
        bounds, drawn = trace(figure, name)
        picks = [0, bounds.size // 3, bounds.size - 1]
        searched = problem().on_search_subsamples() if kind is WeightKind.CAP else problem()
        expected = [quantile.output(searched, kind, float(bounds[k])).expected_rank_error for k in picks]
        assert drawn[picks] == pytest.approx(expected)
        ((x,), (y,)) = trace(figure, f"Best, {name.lower()}")
        # The mark of a cap is on other subsamples than the curve: within four standard errors of either.
        search = quantile.subsample_errors([problem().on_search_subsamples()], kind, float(x))
        assert x == bounds[np.argmin(drawn)]
        assert min(drawn) == pytest.approx(search.mean())
        spread = quantile.standard_error(search, kind, float(x), problem().rows)
        assert abs(y - min(drawn)) <= 8.0 * spread
        assert y == pytest.approx(quantile.output(problem(), kind, float(x)).expected_rank_error)
    unbounded = quantile.output(problem(), WeightKind.CAP, 1000.0)
    assert trace(figure, "No bound")[1] == pytest.approx([unbounded.expected_rank_error] * 2)
    best = optimal_bound.best_bound(problem(), WeightKind.SMOOTH, answer.SEARCH_POINTS)
    out = quantile.output(problem(), WeightKind.SMOOTH, best.bound)
    low, high = out.interval()
    assert [metric.value for metric in at.metric] == [
        wording.counted(best.bound, "row"),
        wording.percent(out.expected_rank_error),
        wording.percent(unbounded.expected_rank_error),
        f"{wording.number(low)} to {wording.number(high)}",
    ]
    texts = shown_texts(at)
    assert all(assumption in texts for assumption in quantile.ASSUMPTIONS)
    assert (
        "All 140 caps were tried. Each cap was tried on the same 50 subsamples. The error stated is the average"
        in texts
    )
    assert "nothing is proved for other subsamples" in texts
    assert "nothing is proved" in texts


def test_a_cap_is_judged_by_many_subsamples_and_compared_with_smooth_weights_by_their_average():
    # One subsample, picked with the cap that is luckiest on it, says 1.07 %: below smooth weights, at 1.28 %.
    one = QuantileProblem(SHOP.values, 0.5, 1.0, BASE, subsamples=1)
    smooth = optimal_bound.best_bound(problem(), WeightKind.SMOOTH, answer.SEARCH_POINTS)
    assert optimal_bound.best_bound(one, WeightKind.CAP).rank_error < 0.9 * smooth.rank_error
    at = quantile_page(weighting="cap")
    best = optimal_bound.best_bound(problem(), WeightKind.CAP)
    # By subsamples that the page did not use.
    fresh = np.concatenate(
        [
            quantile.subsample_errors(
                [QuantileProblem(SHOP.values, 0.5, 1.0, BASE, subsample=subsample, subsamples=200)],
                WeightKind.CAP,
                h,
            )
            for subsample in (1000, 2000, 3000, 4000)
            for h in (best.bound,)
        ]
    )
    spread = float(np.hypot(best.standard_error, fresh.std(ddof=1) / np.sqrt(fresh.size)))
    assert abs(best.rank_error - fresh.mean()) <= 4.0 * spread
    assert fresh.mean() > smooth.rank_error
    assert at.metric[1].value == wording.percent(best.rank_error)
    texts = shown_texts(at)
    said = card.with_spread(best.rank_error, best.standard_error)
    assert f"a cap with h = {wording.number(best.bound)}: {said}; smooth weights with h = " in texts
    assert best.rank_error > smooth.rank_error
    assert f"± {wording.percent(best.standard_error)} (400 subsamples)" in texts
    assert "the release draws its own" in texts
    subsamples = quantile.subsample_errors([problem()], WeightKind.CAP, best.bound)
    assert (
        f"single subsamples go from {wording.percent(subsamples.min())} to {wording.percent(subsamples.max())}"
        in texts
    )
    # Smooth weights draw no subsample.
    at = quantile_page(weighting="smooth")
    assert "subsamples)" not in shown_texts(at)
    assert f"a cap with h = {wording.number(best.bound)}: {said}." in shown_texts(at)


def test_density_and_nearness_are_exact():
    at = quantile_page(weighting="cap", bound_from="own", own_bound="4")
    out = quantile.output(problem(), WeightKind.CAP, 4.0)
    x, density = trace(chart(at, "quantile_density"), "Median")
    width = x[1] - x[0]
    inside = float(out.cdf(x[-1] + width / 2.0) - out.cdf(x[0] - width / 2.0))
    assert density.sum() * width == pytest.approx(inside)
    middle = out.cdf(x[100] + width / 2.0) - out.cdf(x[100] - width / 2.0)
    assert density[100] * width == pytest.approx(float(middle))
    t, within = trace(chart(at, "quantile_near"), "Median")
    assert within == pytest.approx(out.probability_within(t))
    (first, second), _ = trace(chart(at, "quantile_density"), "Median: mean of the answer")
    assert first == second == pytest.approx(out.mean)
    assert at.metric[0].value == "4 rows"


def test_axes_stay_where_they_are_while_epsilon_moves():
    at = quantile_page()
    before = {
        key: chart(at, key)["layout"] for key in ("quantile_error", "quantile_density", "quantile_near")
    }
    for epsilon in (0.1, 10.0):
        settled(fine(at.number_input(key=keys.EPSILON).set_value(epsilon).run()))
        assert at.metric[1].value == wording.percent(
            optimal_bound.best_bound(problem(epsilon), WeightKind.SMOOTH, answer.SEARCH_POINTS).rank_error
        )
        for key, layout in before.items():
            now = chart(at, key)["layout"]
            assert now["xaxis"]["range"] == layout["xaxis"]["range"]
            assert now["yaxis"].get("range") == layout["yaxis"].get("range")


@pytest.mark.parametrize(
    ("fields", "base"),
    [
        ({"base": "normal", "center": "50", "spread": "20"}, NormalBase(50.0, 20.0)),
        (
            {"base": "histogram", "edges": "0, 30, 60, 200", "masses": "1, 3, 1"},
            HistogramBase(np.array([0.0, 30.0, 60.0, 200.0]), np.array([1.0, 3.0, 1.0])),
        ),
    ],
)
def test_other_bases_are_used(fields, base):
    link = {name: text for name, text in LINK.items() if name not in ("low", "high")}
    at = settled(open_app("Quantile", **link, **fields, weighting="none"))
    out = quantile.output(problem(base=base), WeightKind.SMOOTH, 1000.0)
    assert at.metric[1].value == wording.percent(out.expected_rank_error)
    assert at.metric[0].value == "none"
    # Its density over the values shown is that of the base.
    x, drawn = trace(chart(at, "quantile_density"), "Base ν")
    assert np.median(drawn / np.exp(base.log_density(x))) == pytest.approx(1.0, rel=1e-3)


def test_several_quantiles_share_epsilon_and_have_a_line_each():
    at = quantile_page(quantiles="0.9, 0.1", bound_from="own", own_bound="5")
    together = several.several(problem(), [0.1, 0.9], WeightKind.SMOOTH, 5.0)
    texts = shown_texts(at)
    assert "2 quantiles share ε evenly: 0.5 each" in texts
    for one in together.outputs:
        low, high = one.interval()
        assert f"answers from {wording.number(low)} to {wording.number(high)}" in texts
        t, within = trace(chart(at, "quantile_near"), f"{one.quantile:g}-quantile")
        assert within == pytest.approx(one.probability_within(t))
    mean_error = np.mean([one.expected_rank_error for one in together.outputs])
    assert at.metric[1].value == wording.percent(mean_error)


def test_the_bound_from_counts_uses_no_values():
    at = quantile_page(bound_from="counts", beta="0.2", alpha="0.1", gamma="0.1")
    bound = optimal_bound.RankBound(SHOP.histogram, 1.0, 0.1, 0.2, 0.1)
    best = bound.best(WeightKind.SMOOTH).bound
    assert at.metric[0].value == wording.counted(best, "row")
    at.session_state["quantile.tabs"] = "The paper's bound"
    fine(at.run())
    x, drawn = trace(chart(at, "quantile_paper"), "Smooth weights")
    assert drawn == pytest.approx(bound.value(WeightKind.SMOOTH, x))
    ((x,), (y,)) = trace(chart(at, "quantile_paper"), "Best, smooth weights")
    assert (x, y) == (pytest.approx(best), pytest.approx(float(bound.value(WeightKind.SMOOTH, best))))
    fine(at.toggle(key="quantile.population").set_value(True).run())
    wider = optimal_bound.RankBound(SHOP.histogram, 1.0, 0.1, 0.2, 0.1, population=True)
    assert f"A = {wording.number(wider.trade_off)}" in shown_texts(at)


def test_a_poor_base_is_drawn_and_said():
    at = quantile_page(bound_from="own", own_bound="5")
    assert "ν gives β = " in shown_texts(at)
    x, drawn = trace(chart(at, "quantile_poorer"), "Expected rank error")
    for k in (0, 10, 14):
        moved = uniform_base(100.0 * x[k], 100.0 + 100.0 * x[k])
        expected = quantile.output(problem(base=moved), WeightKind.SMOOTH, 5.0).expected_rank_error
        assert drawn[k] == pytest.approx(expected)
    assert drawn[0] > 20.0 * drawn[10]
    settled(fine(at.segmented_control(key="quantile.poorer").set_value("Wider").run()))
    x, drawn = trace(chart(at, "quantile_poorer"), "Expected rank error")
    wide = uniform_base(50.0 - 50.0 * x[-1], 50.0 + 50.0 * x[-1])
    expected = quantile.output(problem(base=wide), WeightKind.SMOOTH, 5.0).expected_rank_error
    assert drawn[-1] == pytest.approx(expected)


def test_sampled_answers_are_called_a_simulation_and_lie_on_the_exact_probabilities():
    at = quantile_page(bound_from="own", own_bound="5")
    at.session_state["quantile.tabs"] = "Sampled answers"
    fine(at.run())
    fine(at.number_input(key="quantile.draws").set_value(5000).run())
    settled(fine(at.button(key="quantile_draw").click().run()))
    figure = chart(at, "quantile_samples")
    _, exact = trace(figure, "Median, exact")
    _, simulated = trace(figure, "Median, simulated")
    # Counts of 5,000 draws in 40 bins: each within five standard deviations.
    assert np.all(np.abs(simulated - exact) <= 5.0 * np.sqrt(exact * (1.0 - exact) / 5000.0) + 1.0 / 5000.0)
    assert "not a release" in shown_texts(at)
    fine(at.number_input(key="quantile.draws").set_value(100).run())
    assert "These results are for earlier settings" in shown_texts(at)


def test_ties_cost_what_no_budget_can_buy_back():
    rows = "\n".join(f"u{k},{1 + k % 5}" for k in range(100))
    at = upload(open_app("Your data"), ("user,rating\n" + rows).encode())
    settled(go(use(at), "Quantile"))
    at.number_input(key="quantile.low").set_value(0.5)
    settled(fine(at.number_input(key="quantile.high").set_value(5.5).run()))
    settled(fine(at.number_input(key=keys.EPSILON).set_value(1000.0).run()))
    # Ratings 1 to 5, 20 each: F is 0.4 or 0.6 next to the median.
    assert re.search(r"no answer under this base comes closer than 10(\.0)?\s%", shown_texts(at))
    assert re.fullmatch(r"10(\.0)?\s%", at.metric[1].value)


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("quantile.low", None, "Lowest answer a is empty. Enter a number"),
        ("quantile.low", 200.0, "Low must lie below high"),
        ("quantile.quantiles", "0.5, 7", "got 7"),
        ("quantile.quantiles", "", "Quantiles is empty"),
        (keys.EPSILON, None, "ε is empty"),
    ],
)
def test_what_cannot_be_gets_a_sentence_and_nothing_is_lost(key, value, sentence):
    at = quantile_page()
    widget = at.text_input(key=key) if isinstance(value, str) else at.number_input(key=key)
    fine(widget.set_value(value).run())
    assert sentence in errors(at)
    assert not at.metric
    go(at, "Your data")
    go(at, "Quantile")
    assert sentence in errors(at)
    assert at.number_input(key="quantile.high").value == 100.0


def test_settings_survive_page_switches_and_travel_in_the_link():
    at = quantile_page(quantiles="0.3", weighting="cap", bound_from="own", own_bound="7")
    go(at, "Start")
    settled(go(at, "Quantile"))
    assert at.metric[0].value == "7 rows"
    link = link_of(at)
    for piece in ("quantiles=0.3", "weighting=cap", "bound_from=own", "own_bound=7", "low=0", "high=100"):
        assert piece in link


def test_a_field_that_a_link_left_out_has_a_proposal_when_it_comes_into_use():
    at = quantile_page()
    settled(fine(at.segmented_control(key="quantile.base").set_value("Normal").run()))
    assert not errors(at)
    assert at.number_input(key="quantile.center").value == 50.0
    settled(fine(at.segmented_control(key="quantile.bound_from").set_value("My own").run()))
    assert not errors(at)
    assert at.metric[0].value == "5 rows"


def test_a_stopped_search_is_an_answer_that_says_so():
    at = quantile_page()
    asked = at.session_state["quantile.search_job"].question
    stopped = answer.search(problem(), (0.5,), should_stop=lambda: True)
    at.session_state["quantile.search_job"].result = stopped
    fine(at.run())
    assert at.session_state["quantile.search_job"].question == asked
    assert "The search was stopped early" in shown_texts(at)
    settled(fine(at.button(key="quantile_again").click().run()))
    assert "The search was stopped early" not in shown_texts(at)


def test_private_values_are_labelled_and_propose_nothing():
    at = upload(open_app("Your data"), SHOP_EVENTS, "shop_events.csv")
    settled(go(use(at), "Quantile"))
    texts = shown_texts(at)
    assert card.LEAKS_VALUES in texts
    assert "do not publish" in texts
    assert "public input" not in texts
    assert [at.number_input(key=k).value for k in ("quantile.low", "quantile.high")] == [0.0, 1.0]
    helps = [button.proto.help for button in at.get("download_button") if button.proto.help]
    assert helps
    assert all("do not publish" in text for text in helps)
    settled(fine(at.segmented_control(key="quantile.bound_from").set_value("From counts").run()))
    texts = shown_texts(at)
    assert card.LEAKS_VALUES not in texts
    assert card.LEAKS in texts


@pytest.mark.parametrize(
    "rows",
    [
        ["a,1"],
        ["a,3", "a,3", "b,3"],
        ["a,1e-12", "b,2e-12"],
        ["a,0", "b,1e300", "c,-1e300"],
        [f"a,{k}" for k in range(300)] + ["b,1e9"],
    ],
    ids=["one", "ties", "tiny", "huge", "heavy"],
)
def test_degenerate_data_are_answered_on_every_tab(rows):
    at = upload(open_app("Your data"), ("user,value\n" + "\n".join(rows)).encode())
    fine(at.radio(key="your_data.upload_public").set_value(Sensitivity.PUBLIC).run())
    at = settled(go(use(at), "Quantile"))
    for tab in ("Base distribution", "The paper's bound", "Downloads", "How this is computed"):
        at.session_state["quantile.tabs"] = tab
        settled(fine(at.run()))
        assert at.metric
        # Values that no range may reach are warned of.
        assert not at.error
        assert ("outside the range of the base" in errors(at)) is ("b,1e300" in rows)


def test_traces_are_short_and_axes_have_titles():
    at = quantile_page(quantiles="0.1, 0.3, 0.5, 0.7, 0.9")
    for key in ("quantile_error", "quantile_density", "quantile_near", "quantile_poorer"):
        figure = chart(at, key)
        assert figure["layout"]["xaxis"]["title"]["text"]
        assert figure["layout"]["yaxis"]["title"]["text"]
        assert all(numbers(t["x"]).size <= 500 for t in figure["data"])
    assert "(rows per user)" in chart(at, "quantile_error")["layout"]["xaxis"]["title"]["text"]
    assert "(unit of the values)" in chart(at, "quantile_density")["layout"]["xaxis"]["title"]["text"]


def test_columns_hold_what_is_drawn():
    parameters = QuantileParameters(1.0, low=0.0, high=100.0, weighting=Weighting.CAP)
    choices = answer.search(problem(), parameters.asked)
    view = answer.compute(parameters, problem(), choices)
    columns = figures.error_columns(view)
    assert len(columns["weights"]) == columns["bound"].size == columns["expected_rank_error"].size
    density = figures.density_columns(view, (0.0, 100.0))
    width = density["to"] - density["from"]
    # Everything lies inside the base, and both densities have area 1.
    assert float(density["density_q0.5"] @ width) == pytest.approx(1.0)
    assert float(density["base_density"] @ width) == pytest.approx(1.0)
    headline = card.card(view, SHOP).headline
    assert re.search(r"Keep at most \d+ rows of each user", headline)


def said_of_the_range(at) -> tuple[str, str, list[str]]:
    """Sentence, warning and badges of the box of inputs."""
    box = at.get_by_key("quantile_inputs")
    badges = [m.value for m in box.markdown if "-background[" in m.value]
    return box.caption[-1].value, "\n".join(w.value for w in box.warning), badges


def test_private_values_outside_the_default_range_are_warned_of_under_their_label():
    at = upload(open_app("Your data"), SHOP_EVENTS, "shop_events.csv")
    sentence, warning, badges = said_of_the_range(settled(go(use(at), "Quantile")))
    values = SHOP.values.values
    outside = int(((values < 0.0) | (values > 1.0)).sum())
    assert outside > 0.9 * values.size
    share = wording.percent(outside / values.size)
    assert f"{outside:,} values of {values.size:,} ({share}) lie outside [a, b]" in sentence
    assert f"{share} of the values lie outside the range of the base distribution" in warning
    assert len(badges) == 1
    assert "computed from private data: do not publish" in badges[0]
    # Mean says the same of the same range, and labels it alike.
    box = go(at, "Mean").get_by_key("mean_inputs")
    assert (
        f"{outside:,} values of {values.size:,} ({share}) lie outside [L, U] and are clamped"
        in box.caption[-1].value
    )
    assert f"{share} of the values are clamped" in box.warning[0].value
    assert [m.value for m in box.markdown if "-background[" in m.value] == badges


def test_the_range_of_a_histogram_is_warned_of_and_a_normal_base_has_none():
    at = settled(quantile_page())
    sentence, warning, badges = said_of_the_range(at)
    assert "All values lie inside [a, b]." in sentence
    assert not warning
    assert not badges
    fine(at.segmented_control(key="quantile.base").set_value("Histogram").run())
    fine(at.text_input(key="quantile.edges").set_value("0, 5, 10").run())
    sentence, warning, _ = said_of_the_range(settled(at))
    above = int((SHOP.values.values > 10.0).sum())
    assert f"outside the bins of ν: 0 below, {above:,} above." in sentence
    assert "Set the bins from what you know" in warning
    fine(at.segmented_control(key="quantile.base").set_value("Normal").run())
    sentence, warning, _ = said_of_the_range(settled(at))
    assert "outside" not in sentence
    assert not warning
