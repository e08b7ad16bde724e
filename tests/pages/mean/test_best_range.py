"""The tab Range of Mean: what it says is what the core finds, a button enters it, and nothing private leaves."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dpcore.common.privacy import Disclosure
from dpcore.contributions import ContributionHistogram
from dpcore.data import samples
from dpcore.dataset import Dataset, Values
from dpcore.mean import Clamp, Counts, MeanParameters, choose_defaults, value_range
from dpcore.mean.answer import build_answer, plots, users
from dpcore.mean.value_range import ValueRangeProblem, WeightedRows
from tests.pages.driving import (
    check,
    finish,
    go,
    open_app,
    open_tab,
    read_shown_link,
    shown_texts,
    use_dataset,
    work_waits_for_stop,
)

SHOP = samples.load("shop-events")
FIGURES = ("mean-range-upper", "mean-range-lower")


def solve_ranges(dataset: Dataset, epsilon: float, lower: float, upper: float, **options):
    parameters = MeanParameters(epsilon, lower, upper, **choose_defaults(dataset) | options)
    answer = build_answer(dataset, parameters)
    return answer, plots.choose_ranges(dataset, answer.solution, parameters)


def by_hand(
    dataset: Dataset, epsilon: float, h: float, lower: float, upper: float
) -> tuple[float, float, float]:
    """Clamping, bounding and noise, row by row."""
    _, user_of_row, counts = np.unique(dataset.values.user_codes, return_inverse=True, return_counts=True)
    kept_values = np.minimum(h, counts)
    y, weights = dataset.values.values, (kept_values / counts / kept_values.sum())[user_of_row]
    cut = weights @ (np.maximum(lower - y, 0.0) + np.maximum(y - upper, 0.0))
    return (
        float(cut),
        abs(float(weights @ y - y.mean())),
        np.sqrt(2.0) * kept_values.max() / kept_values.sum() * (upper - lower) / epsilon,
    )


def test_curves_are_the_three_parts_row_by_row():
    answer, ranges = solve_ranges(SHOP, 0.5, 2.0, 80.0)
    h = ranges.weighted_rows.threshold
    upper, lower = (answer.plots[name]() for name in FIGURES)
    for plot, ends in ((upper, lambda x: (2.0, x)), (lower, lambda x: (x, 80.0))):
        column = "upper" if plot is upper else "lower"
        for item in (0, 40, -1):
            clamping, bounding, noise = by_hand(SHOP, 0.5, h, *ends(plot.columns[column][item]))
            drawn = [plot.columns[name][item] for name in ("clamping", "bounding", "noise", "error")]
            together = np.hypot(clamping + bounding, noise)
            assert drawn == pytest.approx([clamping, bounding, noise, together], abs=1e-9)
    # No end of a range ever meets the other, and no drawn range errs less than the best.
    assert min(upper.columns["upper"]) > 2.0
    assert max(lower.columns["lower"]) < 80.0
    assert min(upper.columns["error"]) >= ranges.best_range_at_lower.error * (1 - 1e-12)
    assert ranges.best_range_at_lower.error in upper.columns["error"]


def test_the_rule_of_equal_tails_cuts_off_one_over_epsilon_users():
    """Between the row at the end and the one beyond it lies the weight of 1 / epsilon users at the bound."""
    for epsilon in (0.05, 0.3, 1.0):
        _, ranges = solve_ranges(SHOP, epsilon, 0.0, 100.0)
        h, (low, high) = ranges.weighted_rows.threshold, ranges.equal_tails_range
        _, user_of_row, counts = np.unique(SHOP.values.user_codes, return_inverse=True, return_counts=True)
        kept = np.minimum(h, counts)
        users = (kept / counts / kept.max())[user_of_row]  # 1 for all rows of a user at the bound
        y = SHOP.values.values
        low, high = low + 1e-9, high - 1e-9  # They are values, but for rounding of their centre.
        assert users[y > high + 2e-9].sum() <= 1.0 / epsilon * (1 + 1e-9) <= users[y >= high].sum() + 1e-9
        assert users[y < low - 2e-9].sum() <= 1.0 / epsilon * (1 + 1e-9) <= users[y <= low].sum() + 1e-9


def test_no_range_is_offered_that_is_next_to_a_single_value():
    """At a tiny epsilon the least error is that of a range about the median, which publishes it."""
    answer, ranges = solve_ranges(SHOP, 1e-3, 0.0, 100.0)
    assert not plots.is_usable(ranges.weighted_rows.problem, ranges.best_range)
    assert ranges.best_range.error < ranges.current_range.error
    assert plots.build_table(ranges, ranges.best_range)[""] == ["In use", "Users clamped, in use"]
    best_users = users.find_best_choice(ranges.users_problem)
    assert not users.is_usable(ranges.users_problem, best_users)
    assert "no range of these values pays" in " ".join(plots.describe_ranges(ranges, ranges.best_range))
    assert "Best U" not in answer.plots["mean-range-upper"]().alt
    _, fine_one = solve_ranges(SHOP, 1.0, 0.0, 100.0)
    low, high = plots.round_outward(fine_one.best_range)
    assert low <= fine_one.best_range.lower < fine_one.best_range.upper <= high
    # Rounding costs next to nothing.
    rounded = WeightedRows(
        ValueRangeProblem(SHOP.values, 1.0), fine_one.weighted_rows.threshold
    ).compute_error_parts(low, high)
    assert float(rounded.error) <= 1.02 * fine_one.best_range.error


def test_hostile_values_are_drawn_or_refused_in_words():
    users = np.array([0, 0, 1, 2, 2, 2])
    histogram = ContributionHistogram.from_counts([2, 1, 3])
    for values, offered in (
        ([5.0] * 6, False),
        ([1e120, 0.0, 1.0, 2.0, 3.0, 4.0], False),
        ([1e308, -1e308, 1e308, 1e308, 3.0, 4.0], False),
        ([-7.0, -6.0, -5.0, -7.5, -3.0, -2.0], True),
        ([1e-9, 2e-9, 5e-9, 3e-9, 8e-9, 1e-8], True),
        ([1e9 + 1, 1e9 + 2, 1e9, 1e9 + 5, 1e9 + 3, 1e9], True),
    ):
        dataset = Dataset(
            "made", "by hand", Disclosure.PUBLIC, histogram, values=Values(users, np.array(values))
        )
        assert plots.has_range_choice(dataset) is offered
        for lower, upper in ((0.0, 1.0), (-1e6, -5e5), (1e9 + 1.0, 2e9)):
            answer = build_answer(dataset, MeanParameters(2.0, lower, upper, **choose_defaults(dataset)))
            assert (FIGURES[0] in answer.plots) is offered
            assert ("beyond 1e100" in answer.detail) is (max(values) > 1e100)
            assert np.isfinite(answer.numbers[1].value)
            for name in FIGURES if offered else ():
                plot = answer.plots[name]()
                assert plot.x.limits[0] < plot.x.limits[1]
                assert np.all(np.isfinite(plot.columns["error"]))


@pytest.mark.long
def test_the_tab_takes_a_range_into_the_setting_and_private_values_give_none():
    app = check(use_dataset(open_app("Mean"), SHOP).run())
    app.session_state["mean.tabs"] = "Range"
    app = finish(check(app.run()), "mean.range_search")
    texts = shown_texts(app)
    assert "A range that you know is the first choice" in texts
    assert "Proved: no choice of this kind is better by more than" in texts
    assert "a private look" not in texts
    joint = value_range.find_best_joint(ValueRangeProblem(SHOP.values, 1.0))
    low, high = plots.round_outward(joint)
    check(app.button(key="mean_lower_upper_use").click().run())
    assert (app.session_state["mean.lower"], app.session_state["mean.upper"]) == (low, high)
    go(app, "Quantile")
    assert app.session_state["quantile.high"] == high

    secret = dataclasses.replace(SHOP, disclosure=Disclosure.PRIVATE)
    app = check(use_dataset(open_app("Mean"), secret).run())
    app.number_input(key="mean.lower").set_value(0.0)
    app.number_input(key="mean.upper").set_value(100.0)
    app.session_state["mean.tabs"] = "Range"
    app = finish(check(app.run()), "mean.range_search")
    assert "a private look" in shown_texts(app)
    assert not [button for button in app.button if button.key == "mean_lower_upper_use"]
    assert [button for button in app.button if button.key == "private_range_ask"]
    assert f"{high}" not in read_shown_link(app)


@pytest.mark.long
def test_a_search_that_is_stopped_says_how_far_it_came(monkeypatch: pytest.MonkeyPatch):
    work_waits_for_stop(monkeypatch)
    app = check(use_dataset(open_app("Mean"), SHOP).run())
    app = open_tab(app, "mean", "Range")
    assert "Best range and bound" not in shown_texts(app)
    assert not [button for button in app.button if button.key == "mean_lower_upper_use"]
    check(app.button(key="mean.range_search_stop").click().run())
    app = finish(app, "mean.range_search")
    assert "Best range and bound" in shown_texts(app)
    # The search for users is held, too; left so, it would keep the searches of other tests waiting.
    app.session_state["mean.users_range_search"].stop()
    finish(app, "mean.users_range_search")


def test_users_stand_beside_rows_in_table_and_figure_and_their_best_range_is_better():
    answer, ranges = solve_ranges(SHOP, 1.0, 10.0, 70.0, counts=Counts.PRIVATE)
    problem, solution = ranges.users_problem, answer.solution.users_solution
    best = users.find_best_choice(problem)
    assert users.is_usable(problem, best)
    table = plots.build_table(ranges, ranges.best_range, best)
    assert table[""][-2:] == ["Users clamped, in use", plots.BEST_FOR_USERS]
    assert best.error < min(ranges.current_users_range.error, ranges.best_range.error)
    # The proposal errs as the table says, or less where biases cancel; ends are rounded.
    low, high = plots.round_outward(best)
    parameters = MeanParameters(
        1.0, low, high, **choose_defaults(SHOP) | {"counts": Counts.PRIVATE}, clamp=Clamp.USERS
    )
    assert build_answer(SHOP, parameters).numbers[1].value <= 1.03 * best.error
    plot = answer.plots["mean-range-upper"]()
    for item in (3, 60, -1):
        upper = plot.columns["upper"][item]
        limit = solution.threshold * (upper - 10.0) / 2.0
        parts = problem.measure_parts(solution.threshold, (upper + 10.0) / 2.0, limit)
        assert plot.columns["users_error"][item] == pytest.approx(parts.error)
