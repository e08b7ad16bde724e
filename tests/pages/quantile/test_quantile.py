"""Quantile: the card and the figures of an answer are those of `dpcore.quantile`, as pure functions."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest

from dpcore import quantile
from dpcore.answer import Level
from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Disclosure, Neighbours
from dpcore.common.programs import Program
from dpcore.common.wording import format_count, format_number, format_percent
from dpcore.contributions import ContributionHistogram
from dpcore.dataset import Dataset, Values
from dpcore.quantile import QuantileProblem, WeightKind, mechanism, optimal_bound
from dpcore.quantile import rows as quantile_rows
from dpcore.quantile.answer import answer as answer_answer
from dpcore.quantile.answer import build_answer, plots
from dpcore.quantile.answer import solution as core
from dpcore.quantile.answer import words as sentences
from dpcore.quantile.base_distribution import HistogramBase, NormalBase
from dpcore.quantile.parameters import BaseKind, BoundFrom, QuantileParameters, Weighting
from dpcore.report import plotly_figures
from tests.pages.driving import read_answer, trace
from tests.pages.quantile.conftest import BASE, ENDS, SHOP, answer_for, problem, render


def make_dataset(rows: list[tuple[str, float]], disclosure=Disclosure.PUBLIC) -> Dataset:
    users = sorted({user for user, _ in rows})
    ordered = sorted(rows, key=lambda row: row[0])
    codes = np.array([users.index(user) for user, _ in ordered])
    values = Values(codes, np.array([value for _, value in ordered], dtype=np.float64), "amount")
    histogram = ContributionHistogram.from_counts(np.bincount(codes))
    return Dataset("rows", "", disclosure, histogram, values=values)


def render_plot(answer, key="error") -> dict:
    """Return a plot of an answer as Plotly gets it."""
    return render(answer.plots[f"quantile-{key}"]())


def test_the_answer_is_that_of_the_core():
    answer = answer_for()
    main = answer.plots["quantile-error"]()
    drawn_main = render(main)
    for kind, name, mark_name in (
        (WeightKind.SMOOTH, "Smooth weights", "Best smooth weights"),
        (WeightKind.CAP, "Bounded rows", "Best bound"),
    ):
        bounds, drawn = trace(drawn_main, name)
        picks = [0, bounds.size // 3, bounds.size - 1]
        searched = problem().with_search_subsamples() if kind is WeightKind.CAP else problem()
        expected = [
            quantile.compute_output(searched, kind, float(bounds[k])).expected_rank_error for k in picks
        ]
        assert drawn[picks] == pytest.approx(expected)
        ((x,), (y,)) = trace(drawn_main, mark_name)
        # The mark of a cap is on other subsamples than the curve: within four standard errors of either.
        subsample_errors = quantile.compute_subsample_errors(
            [problem().with_search_subsamples()], kind, float(x)
        )
        assert x == bounds[np.argmin(drawn)]
        assert min(drawn) == pytest.approx(subsample_errors.mean())
        spread = quantile.compute_standard_error(subsample_errors, kind, float(x), problem().rows)
        assert abs(y - min(drawn)) <= 8.0 * spread
        assert y == pytest.approx(quantile.compute_output(problem(), kind, float(x)).expected_rank_error)
    unbounded = quantile.compute_output(problem(), WeightKind.CAP, 1000.0)
    (level,) = drawn_main["layout"]["shapes"]
    assert level["y0"] == level["y1"] == pytest.approx(unbounded.expected_rank_error)
    assert "No bound" in [one["name"] for one in drawn_main["data"]]
    best = optimal_bound.find_best_bound(problem(), WeightKind.SMOOTH, core.NUM_SEARCH_BOUNDS)
    out = quantile.compute_output(problem(), WeightKind.SMOOTH, best.bound)
    low, high = out.find_interval()
    assert [one.value for one in answer.numbers] == pytest.approx(
        [best.bound, out.expected_rank_error, unbounded.expected_rank_error]
    )
    assert [one.text for one in answer.numbers] == [
        format_count(best.bound, "row"),
        format_percent(out.expected_rank_error),
        format_percent(unbounded.expected_rank_error),
    ]
    assert f"of answers lie from {format_number(low)} to {format_number(high)}, mean" in read_answer(answer)
    assert float(answer.numbers[0].text_to_copy) == pytest.approx(best.bound, rel=1e-14)
    assert answer.headline == f"Cap each user's total weight at {format_count(best.bound, 'row')}."
    words = read_answer(answer)
    assert all(assumption in words for assumption in quantile.list_assumptions(Neighbours.REPLACE_VALUES))
    assert (
        f"All 140 bounds were tried. All used the same {quantile_rows.MAX_SEARCH_SUBSAMPLES} subsamples. "
        "The error is the average" in words
    )


def test_good_enough_is_where_all_bounds_tried_cost_little():
    for answer in (answer_for(), answer_for(weighting=Weighting.CAP)):
        view = answer.solution
        low, high = view.near_optimal_bounds
        tried = view.choices.get(view.weight_kind).search_errors
        inside = (tried.bounds >= low) & (tried.bounds <= high)
        assert low <= view.bound <= high
        assert np.all(tried.expected_errors[inside] <= 1.05 * tried.expected_errors.min())
        for beyond in (tried.bounds[tried.bounds < low][-1:], tried.bounds[tried.bounds > high][:1]):
            assert beyond.size
            assert tried.expected_errors[tried.bounds == beyond[0]] > 1.05 * tried.expected_errors.min()
    assert f"{format_number(low)} to {high:.0f} rows are within 5" in answer.near_optimal
    # A bound from counts was not chosen by its error.
    assert not answer_for(bound_from=BoundFrom.COUNTS).near_optimal


def test_a_cap_is_judged_by_many_subsamples_and_compared_with_smooth_weights_by_their_average():
    # One subsample, picked with the cap that is luckiest on it, can say 1.13 %: below smooth weights, at 1.28 %.
    problem = QuantileProblem(SHOP.values, 0.5, 1.0, BASE, first_seed=29, num_subsamples=1)
    answer = answer_for(weighting=Weighting.CAP)
    smooth, best = answer.solution.choices.smooth_choice, answer.solution.choices.cap_choice
    assert optimal_bound.find_best_bound(problem, WeightKind.CAP).rank_error < 0.9 * smooth.rank_error
    # By subsamples that the page did not use.
    fresh = np.concatenate(
        [
            quantile.compute_subsample_errors(
                [QuantileProblem(SHOP.values, 0.5, 1.0, BASE, first_seed=subsample, num_subsamples=200)],
                WeightKind.CAP,
                best.bound,
            )
            for subsample in (1000, 2000, 3000, 4000)
        ]
    )
    spread = float(np.hypot(best.standard_error, fresh.std(ddof=1) / np.sqrt(fresh.size)))
    assert abs(best.rank_error - fresh.mean()) <= 4.0 * spread
    assert fresh.mean() > smooth.rank_error
    words = read_answer(answer)
    assert answer.numbers[1].text == format_percent(best.rank_error)
    error_text = sentences.format_error(best.rank_error, best.standard_error)
    assert f"bounded rows with a bound of {format_number(best.bound)}, error {error_text}" in words
    spread_text = f"± {format_percent(best.standard_error)} over {mechanism.DEFAULT_SUBSAMPLES} subsamples."
    assert answer.numbers[1].help.endswith(spread_text)
    assert "the release draws its own" in words
    # Smooth weights draw no subsample.
    assert "subsamples" not in answer_for().numbers[1].help


def test_an_own_bound_is_compared():
    answer = answer_for(weighting=Weighting.CAP, own_bound=4.0)
    out = quantile.compute_output(problem(), WeightKind.CAP, 4.0)
    ((x,), (y,)) = trace(render_plot(answer), "Your own bound")
    assert (x, y) == (4.0, pytest.approx(out.expected_rank_error))
    x, density = trace(render_plot(answer, "density"), "Your own bound")
    width = x[1] - x[0]
    middle = out.cdf(x[100] + width / 2.0) - out.cdf(x[100] - width / 2.0)
    assert density[100] * width == pytest.approx(float(middle))
    error = format_percent(out.expected_rank_error)
    assert f"Your own bound, 4 rows: rank error {error}" in read_answer(answer)
    assert [name for name, _ in answer.code.forms][-1] == "Bound, 4 rows"
    assert "Your own bound" not in [t.get("name") for t in render_plot(answer_for())["data"]]


def test_density_and_nearness_are_exact():
    answer = answer_for(weighting=Weighting.CAP)
    out = quantile.compute_output(problem(), WeightKind.CAP, answer.solution.bound)
    x, density = trace(render_plot(answer, "density"), "Median")
    width = x[1] - x[0]
    inside = float(out.cdf(x[-1] + width / 2.0) - out.cdf(x[0] - width / 2.0))
    assert density.sum() * width == pytest.approx(inside)
    middle = out.cdf(x[100] + width / 2.0) - out.cdf(x[100] - width / 2.0)
    assert density[100] * width == pytest.approx(float(middle))
    t, curve_values = trace(render_plot(answer, "near"), "Median")
    assert curve_values == pytest.approx(out.compute_probability_within(t))
    (first, second), _ = trace(render_plot(answer, "density"), "Median: mean of the answer")
    assert first == second == pytest.approx(out.mean)


def test_axes_stay_where_they_are_while_epsilon_moves():
    shown = []
    for epsilon in (0.1, 1.0, 10.0):
        error, density, near, paper = (make() for make in answer_for(epsilon=epsilon).plots.values())
        # The height of a density, which has area 1, must move with epsilon; that of the error follows its curves.
        shown.append(
            [(entry.x.limits, entry.y.limits) for entry in (near, paper)] + [error.x.limits, density.x.limits]
        )
        (unbounded,) = (item.value for item in error.items if isinstance(item, Level))
        drawn = [*np.asarray(error.columns["expected_rank_error"]), unbounded]
        low, high = error.y.limits
        # The next 1, 2 or 5 is at most 2.5 times as far, times the margin of a tenth.
        assert low <= min(drawn) <= 2.75 * low
        assert high / 2.75 <= max(drawn) <= high
    assert shown[0] == shown[1] == shown[2]


@pytest.mark.parametrize(
    ("given", "base"),
    [
        ({"base": BaseKind.NORMAL, "center": 50.0, "spread": 20.0}, NormalBase(50.0, 20.0)),
        (
            {"base": BaseKind.HISTOGRAM, "edges": "0, 30, 60, 200", "masses": "1, 3, 1"},
            HistogramBase(np.array([0.0, 30.0, 60.0, 200.0]), np.array([1.0, 3.0, 1.0])),
        ),
    ],
)
def test_other_bases_and_no_bound_are_used(given, base):
    answer = answer_for(**given, weighting=Weighting.NONE)
    out = quantile.compute_output(problem(base=base), WeightKind.SMOOTH, 1000.0)
    best = optimal_bound.find_best_bound(problem(base=base), WeightKind.SMOOTH, core.NUM_SEARCH_BOUNDS)
    assert answer.numbers[2].value == pytest.approx(out.expected_rank_error)
    assert (
        answer.headline == f"Set a bound: cap each user's total weight at {format_count(best.bound, 'row')}."
    )
    assert answer.numbers[1].text == format_percent(best.rank_error)
    # Its density over the values shown is that of the base.
    x, curve_values = trace(render_plot(answer, "density"), "Base ν")
    assert np.median(curve_values / np.exp(base.log_density(x))) == pytest.approx(1.0, rel=1e-3)


def test_several_quantiles_share_epsilon_and_have_a_line_each():
    answer = answer_for(quantiles="0.9, 0.1")
    together = mechanism.compute_outputs(problem(), [0.1, 0.9], WeightKind.SMOOTH, answer.solution.bound)
    words = read_answer(answer)
    near = render_plot(answer, "near")
    for item in together:
        low, high = item.find_interval()
        assert f"answers lie from {format_number(low)} to {format_number(high)}" in words
        t, curve_values = trace(near, f"{item.quantile:g}-quantile")
        assert curve_values == pytest.approx(item.compute_probability_within(t))
    mean_error = np.mean([item.expected_rank_error for item in together])
    assert f"Rank error {format_percent(mean_error)}" in words


def test_the_bound_from_counts_uses_no_values():
    given = {"bound_from": BoundFrom.COUNTS, "beta": 0.2, "alpha": 0.1, "gamma": 0.1}
    answer = answer_for(**given)
    bound = optimal_bound.RankBound(SHOP.histogram, 1.0, 0.1, 0.2, 0.1)
    best = bound.find_optimum(WeightKind.SMOOTH).bound
    assert answer.numbers[0].text == format_count(best, "row")
    paper = render_plot(answer, "paper")
    x, curve_values = trace(paper, "Smooth weights")
    assert curve_values == pytest.approx(bound.compute(WeightKind.SMOOTH, x))
    ((x,), (y,)) = trace(paper, "Best, smooth weights")
    assert (x, y) == (pytest.approx(best), pytest.approx(float(bound.compute(WeightKind.SMOOTH, best))))
    wider = optimal_bound.RankBound(SHOP.histogram, 1.0, 0.1, 0.2, 0.1, is_for_population=True)
    assert f"A = {format_number(wider.trade_off)}" in sentences.describe_paper_bound(
        answer_for(**given, population=True).solution
    )


def test_degenerate_data_are_answered():
    cases = [
        [("a", 1.0)],
        [("a", 3.0), ("a", 3.0), ("b", 3.0)],
        [("a", 1e-12), ("b", 2e-12)],
        [("a", 0.0), ("b", 1e300), ("c", -1e300)],
        [*[("a", float(k)) for k in range(300)], ("b", 1e9)],
    ]
    for rows in cases:
        dataset = make_dataset(rows)
        parameters = QuantileParameters(1.0, low=0.0, high=300.0, program=Program.BEST)
        _, few = answer_answer.sort_rows(dataset, parameters)
        first = core.compute_mechanism_solution(
            parameters, few, answer_answer.choose_first_bounds(few, parameters.quantile_levels)
        )
        for answer in (build_answer(dataset, parameters), build_answer(dataset, parameters, first)):
            window, widest = core.find_shown_ranges(answer.solution)
            assert widest[0] <= window[0] < window[1] <= widest[1]
            for make in answer.plots.values():
                assert plotly_figures.draw_plot(make()).data
            assert "nan" not in read_answer(answer)


def test_columns_hold_what_is_drawn():
    answer = answer_for(weighting=Weighting.CAP)
    columns = answer.plots["quantile-error"]().columns
    assert len(columns["weights"]) == columns["bound"].size == columns["expected_rank_error"].size
    density = plots.plot_density(answer.solution, SHOP, (0.0, 100.0)).columns
    width = density["to"] - density["from"]
    # Everything lies inside the base, and both densities have area 1.
    assert float(density["density_q0.5"] @ width) == pytest.approx(1.0)
    assert float(density["base_density"] @ width) == pytest.approx(1.0)
    assert re.search(r"Keep at most \d+ rows per user", answer.headline)


def test_a_search_that_is_stopped_answers_with_what_was_tried_and_data_without_values_are_refused():
    shares = []
    answer = build_answer(
        SHOP, QuantileParameters(1.0, **ENDS), progress=shares.append, should_stop=lambda: len(shares) > 8
    )
    assert "Stopped early" in answer.detail
    assert shares == sorted(shares)
    with pytest.raises(InvalidInput, match="no values"):
        build_answer(dataclasses.replace(SHOP, values=None), QuantileParameters(1.0, **ENDS))


def test_a_first_answer_is_near_the_exact_one_and_there_is_none_of_too_many_rows(monkeypatch):
    parameters = QuantileParameters(1.0, **ENDS)
    _, few = answer_answer.sort_rows(SHOP, parameters)
    first, exact = answer_answer.choose_first_bounds(few, (0.5,)), core.search_bounds(problem(), (0.5,))
    # Smooth weights draw no subsample, and on so few rows all bounds are tried at once.
    assert first.smooth_choice.bound == exact.smooth_choice.bound
    assert first.smooth_choice.rank_error == exact.smooth_choice.rank_error
    # Caps: fewer of them, on fewer subsamples; within four standard errors of the exact error of the same cap.
    same = quantile.compute_output(problem(), WeightKind.CAP, first.cap_choice.bound)
    assert (
        abs(first.cap_choice.rank_error - same.expected_rank_error) <= 4.0 * first.cap_choice.standard_error
    )
    assert same.expected_rank_error <= 1.1 * exact.cap_choice.rank_error
    assert first.cap_choice.certificate.lower_bound == -np.inf
    assert "nothing is proved" in first.cap_choice.stop_reason
    # It needs so little that it stays within its share of work.
    tried = sum(
        int(np.sum(~np.isnan(one.search_errors.expected_errors)))
        for one in (first.smooth_choice, first.cap_choice)
    )
    assert tried < 100
    monkeypatch.setattr(answer_answer, "MAX_FIRST_ROWS", SHOP.values.values.size - 1)
    assert answer_answer.sort_rows(SHOP, parameters)[1] is None


def test_few_subsamples_share_the_sorted_rows():
    few, alone = problem().with_subsamples(3), dataclasses.replace(problem(), num_subsamples=3)
    assert few.rows.edges is not None
    for h in (2.0, 9.0):
        one, other = (quantile.compute_subsample_errors([p], WeightKind.CAP, h) for p in (few, alone))
        assert one.size == 3
        assert one == pytest.approx(other)
