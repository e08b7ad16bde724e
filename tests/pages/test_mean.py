"""Mean: what is drawn and said is what `dpcore.mean` answers; bad parameters get sentences; labels follow the data."""

from __future__ import annotations

import dataclasses
import json
import math
import re

import numpy as np
import pytest

from dpcore import mean
from dpcore.common import wording
from dpcore.common.privacy import Sensitivity
from dpcore.data import samples
from dpcore.mean import files as mean_files
from dpcore.mean.user_effects import clamp
from dpcore.report import csv_files
from pages.mean import card
from pages.shared import figures, keys, ranges, session
from tests.pages.driving import (
    SHOP_EVENTS,
    chart,
    data,
    errors,
    fine,
    go,
    numbers,
    open_app,
    shown_texts,
    trace,
    upload,
    use,
)

SAMPLE = samples.load(session.DEFAULT_SAMPLE)
EPSILON = ranges.DEFAULT_EPSILON


def assert_answer(at, problem: mean.MeanProblem) -> None:
    """The page shows the optima of this problem, in the figure and in the card."""
    cap, smooth = mean.best_cap(problem), mean.best_smooth(problem)
    figure = chart(at, "mean_error")
    ((x,), (y,)) = trace(figure, "Best cap")
    assert (x, y) == (cap.max_contributions, pytest.approx(math.sqrt(cap.variance)))
    ((x,), (y,)) = trace(figure, "Best smooth weights")
    assert (x, y) == (pytest.approx(smooth.threshold), pytest.approx(math.sqrt(smooth.variance)))
    bounds, errors_drawn = trace(figure, "Total, cap")
    assert errors_drawn == pytest.approx(np.sqrt(mean.capped_variance(problem, bounds)))
    bounds, errors_drawn = trace(figure, "Total, smooth weights")
    assert errors_drawn == pytest.approx(np.sqrt(mean.smooth_variance(problem, bounds)))
    assert at.metric[0].value == wording.counted(cap.max_contributions, "row")
    assert at.metric[1].value == wording.number(cap.standard_error)
    assert at.metric[2].value == wording.number(smooth.threshold)
    assert at.metric[3].value == wording.number(smooth.standard_error)


def with_shop_events(at=None, public=False):
    at = upload(at or open_app("Your data"), SHOP_EVENTS, "shop_events.csv")
    if public:
        fine(at.radio(key="your_data.upload_public").set_value(Sensitivity.PUBLIC).run())
    return go(use(at), "Mean")


# --- the answer ---------------------------------------------------------------------------------------------


def test_the_default_sample_is_answered_by_dpcore():
    assert_answer(open_app("Mean"), mean.MeanProblem(SAMPLE.histogram, EPSILON, 1.0, 0.25))


def test_epsilon_moves_the_answer_and_not_the_axes():
    at = open_app("Mean")
    before = chart(at, "mean_error")["layout"]
    caps = []
    for epsilon in (0.01, 0.1, 1.0, 10.0):
        fine(at.select_slider(key=keys.EPSILON_SLIDER).set_value(epsilon).run())
        problem = mean.MeanProblem(SAMPLE.histogram, epsilon, 1.0, 0.25)
        assert_answer(at, problem)
        caps.append(mean.best_cap(problem).max_contributions)
        layout = chart(at, "mean_error")["layout"]
        assert layout["xaxis"]["range"] == before["xaxis"]["range"]
        assert layout["yaxis"]["range"] == before["yaxis"]["range"]
    # Cheaper noise allows more rows per user.
    assert caps == sorted(caps)
    assert caps[0] < caps[-1]


def test_entered_bounds_and_variance_are_used():
    at = open_app("Mean")
    at.number_input(key="mean.lower").set_value(-2.0)
    at.number_input(key="mean.upper").set_value(6.0)
    fine(at.segmented_control(key="mean.variance_source").set_value("Entered").run())
    fine(at.number_input(key="mean.value_variance").set_value(3.5).run())
    assert_answer(at, mean.MeanProblem(SAMPLE.histogram, EPSILON, 8.0, 3.5))


def test_an_own_cap_is_compared():
    at = open_app("Mean")
    fine(at.number_input(key="mean.own_cap").set_value(200).run())
    problem = mean.MeanProblem(SAMPLE.histogram, EPSILON, 1.0, 0.25)
    error = math.sqrt(float(mean.capped_variance(problem, 200)))
    ((x,), (y,)) = trace(chart(at, "mean_error"), "Your own cap")
    assert (x, y) == (200, pytest.approx(error))
    assert f"standard error {wording.number(error)}" in shown_texts(at)
    fine(at.number_input(key="mean.own_cap").set_value(None).run())
    assert "Your own cap" not in [t["name"] for t in chart(at, "mean_error")["data"]]


def test_the_variance_comes_from_the_clamped_values():
    at = with_shop_events(public=True)
    values = data(at).values.values
    assert [at.number_input(key=key).value for key in ("mean.lower", "mean.upper")] == [0.0, 100.0]
    fine(at.number_input(key="mean.upper").set_value(40.0).run())
    variance = float(np.var(np.clip(values, 0.0, 40.0), ddof=1))
    assert_answer(at, mean.MeanProblem(data(at).histogram, EPSILON, 40.0, variance))
    outside = int(np.sum(values > 40.0))
    assert f"{outside:,} values of {values.size:,}" in shown_texts(at)


def test_the_source_of_the_variance_follows_the_data_until_the_person_chooses():
    at = open_app("Mean")  # Counts only, seen first: nothing to take a variance from.
    assert at.session_state["mean.variance_source"] is mean.VarianceSource.WORST_CASE
    with_shop_events(go(at, "Your data"), public=True)
    assert at.session_state["mean.variance_source"] is mean.VarianceSource.FROM_VALUES
    variance = float(np.var(data(at).values.values, ddof=1))
    assert_answer(at, mean.MeanProblem(data(at).histogram, EPSILON, 100.0, variance))
    fine(at.segmented_control(key="mean.variance_source").set_value("Worst case").run())
    with_shop_events(go(at, "Your data"), public=True)
    assert at.session_state["mean.variance_source"] is mean.VarianceSource.WORST_CASE
    assert_answer(at, mean.MeanProblem(data(at).histogram, EPSILON, 100.0, 2_500.0))


def test_what_independence_hides_is_said_and_drawn():
    at = with_shop_events(public=True)
    at.session_state["mean.tabs"] = "What independence hides"
    fine(at.run())
    values = data(at).values
    problem = mean.MeanProblem(data(at).histogram, EPSILON, 100.0, float(np.var(values.values, ddof=1)))
    cap = mean.best_cap(problem).max_contributions
    # By a loop over users: each user's mean counts min(cap, rows) times.
    per_user = [values.values[values.user_codes == code] for code in np.unique(values.user_codes)]
    kept = [min(cap, rows.size) for rows in per_user]
    capped = np.average([rows.mean() for rows in per_user], weights=kept)
    shift = capped - values.values.mean()
    assert f"The capped mean differs from the plain mean by {wording.number(shift)}" in shown_texts(at)
    x, y = trace(chart(at, "mean_shift"), "Bounded mean minus plain mean")
    assert y[np.flatnonzero(x == cap)] == pytest.approx([shift])
    assert y[-1] == pytest.approx(0.0, abs=1e-9)


def test_without_values_independence_is_explained_and_the_worst_case_stands_in():
    at = open_app("Mean")
    at.session_state["mean.tabs"] = "What independence hides"
    fine(at.segmented_control(key="mean.variance_source").set_value("From values").run())
    assert "This needs values" in shown_texts(at)
    assert "The worst case stands in" in shown_texts(at)
    assert_answer(at, mean.MeanProblem(SAMPLE.histogram, EPSILON, 1.0, 0.25))


def test_the_facts_of_the_card_by_hand():
    # Users: 4 of 1 row, 2 of 4, 1 of 20 (32 rows); B = 1, epsilon = 10, sigma^2 = 1/4.
    # Every cap is tried.
    sizes, users = np.array([1, 4, 20]), np.array([4, 2, 1])
    table = "size,users\n" + "\n".join(f"{s},{u}" for s, u in zip(sizes, users, strict=True))
    at = go(use(upload(open_app("Your data"), table.encode())), "Mean")
    fine(at.number_input(key=keys.EPSILON).set_value(10.0).run())

    def parts(h: int) -> tuple[float, float]:
        kept = int(np.sum(users * np.minimum(sizes, h)))
        return 0.25 / kept, 2.0 * (h / (10.0 * kept)) ** 2

    errors_of = {h: math.sqrt(sum(parts(h))) for h in range(1, 41)}
    best = min(range(1, 21), key=errors_of.__getitem__)
    assert 4 < best < 20  # Between two sizes: being over it, and losing rows by it, are different things.
    kept = int(np.sum(users * np.minimum(sizes, best)))
    said = shown_texts(at)
    assert f"Best cap {best} rows per user" in said
    over = wording.percent(20 / 32)
    assert f"1 user ({wording.percent(1 / 7)}) with {over} of all rows lies over it" in said
    assert f"{wording.percent((32 - kept) / 32)} of all rows would be left out" in said
    for name, h in (("half", best // 2), ("double", 2 * best)):
        assert f"{name} ({h}) costs {wording.change(errors_of[h], errors_of[best])}" in said
    sampling, noise = parts(best)
    assert at.metric[1].delta == f"{wording.percent(noise / (sampling + noise))} privacy noise"


def test_weights_are_drawn_against_the_size_of_the_user():
    at = open_app("Mean")
    problem = mean.MeanProblem(SAMPLE.histogram, EPSILON, 1.0, 0.25)
    sizes, drawn = trace(chart(at, "mean_weights"), "Smooth weights")
    h = mean.best_smooth(problem).threshold
    kept = float(np.sum(SAMPLE.histogram.users * np.minimum(SAMPLE.histogram.sizes, h)))
    assert drawn == pytest.approx(np.minimum(h, sizes) / (sizes * kept) * SAMPLE.histogram.num_rows)


@pytest.mark.parametrize(
    "tab", ["Weight of a row", "What independence hides", "Downloads", "How this is computed"]
)
@pytest.mark.parametrize(
    "table", [b"size,users\n1,1\n", b"size,users\n5,3\n", b"size,users\n1,1000000000000\n"]
)
def test_degenerate_data_are_answered_on_every_tab(table, tab):
    at = go(use(upload(open_app("Your data"), table)), "Mean")
    at.session_state["mean.tabs"] = tab
    fine(at.run())
    assert_answer(at, mean.MeanProblem(data(at).histogram, EPSILON, 1.0, 0.25))
    assert not errors(at)


# --- bad parameters -----------------------------------------------------------------------------------------


def entered(at) -> list[object]:
    return [at.number_input(key=key).value for key in (keys.EPSILON, "mean.lower", "mean.upper")]


def no_answer(at) -> bool:
    return not at.metric


@pytest.mark.parametrize(
    ("lower", "upper", "sentence"),
    [
        (3.0, 3.0, "The lower value bound must lie below the upper one; got 3 and 3"),
        (7.0, -2.0, "The lower value bound must lie below the upper one; got 7 and −2"),
        (None, 5.0, "Lowest value L is empty. Enter a number"),
        (-5.0, None, "Highest value U is empty. Enter a number"),
        (0.0, 1e300, "must lie between 1e−9 and 1,000,000,000"),
        (0.0, 1e-12, "must lie between 1e−9 and 1,000,000,000"),
    ],
)
def test_bad_value_bounds_give_a_sentence_and_nothing_entered_is_lost(lower, upper, sentence):
    at = open_app("Mean")
    at.number_input(key=keys.EPSILON).set_value(0.7)
    at.number_input(key="mean.lower").set_value(lower)
    fine(at.number_input(key="mean.upper").set_value(upper).run())
    assert sentence in errors(at)
    assert no_answer(at)
    go(at, "Your data")
    go(at, "Mean")
    assert sentence in errors(at)
    assert entered(at) == [0.7, lower, upper]
    at.number_input(key="mean.lower").set_value(0.0)
    fine(at.number_input(key="mean.upper").set_value(1.0).run())
    assert not errors(at)
    assert_answer(at, mean.MeanProblem(SAMPLE.histogram, 0.7, 1.0, 0.25))


@pytest.mark.parametrize(
    ("variance", "sentence"),
    [
        (0.3, "cannot vary by more than (upper − lower)²/4 = 0.25; got 0.3"),
        (None, "σ² is empty. Enter a number"),
    ],
)
def test_a_variance_that_cannot_be_gives_a_sentence(variance, sentence):
    at = open_app("Mean")
    fine(at.segmented_control(key="mean.variance_source").set_value("Entered").run())
    fine(at.number_input(key="mean.value_variance").set_value(variance).run())
    assert sentence in errors(at)
    assert no_answer(at)
    assert at.number_input(key="mean.value_variance").value == variance
    fine(at.number_input(key="mean.value_variance").set_value(0.25).run())
    assert not errors(at)
    assert_answer(at, mean.MeanProblem(SAMPLE.histogram, EPSILON, 1.0, 0.25))


def test_an_empty_epsilon_gives_a_sentence():
    at = open_app("Mean")
    fine(at.number_input(key=keys.EPSILON).set_value(None).run())
    assert "ε is empty. Enter a number" in errors(at)
    assert no_answer(at)
    fine(at.number_input(key=keys.EPSILON).set_value(1e-6).run())
    assert_answer(at, mean.MeanProblem(SAMPLE.histogram, 1e-6, 1.0, 0.25))


def test_all_problems_are_said_at_once():
    at = open_app("Mean")
    at.number_input(key=keys.EPSILON).set_value(None)
    fine(at.number_input(key="mean.upper").set_value(None).run())
    assert "ε is empty" in errors(at)
    assert "Highest value U is empty" in errors(at)


def test_everything_entered_survives_page_switches():
    at = with_shop_events()
    at.number_input(key=keys.EPSILON).set_value(0.37)
    at.number_input(key="mean.lower").set_value(-1.0)
    at.number_input(key="mean.own_cap").set_value(9)
    fine(at.number_input(key="mean.upper").set_value(77.0).run())
    fine(at.segmented_control(key="mean.variance_source").set_value("Entered").run())
    fine(at.number_input(key="mean.value_variance").set_value(5.5).run())
    before = data(at)
    for title in ("Start", "Your data", "Mean"):
        go(at, title)
    assert data(at) is before
    assert entered(at) == [0.37, -1.0, 77.0]
    assert at.number_input(key="mean.own_cap").value == 9
    assert at.number_input(key="mean.value_variance").value == 5.5
    assert_answer(at, mean.MeanProblem(before.histogram, 0.37, 78.0, 5.5))


# --- labels -------------------------------------------------------------------------------------------------


def test_numbers_from_private_data_say_so_everywhere():
    at = with_shop_events()
    texts = shown_texts(at)
    assert "private data" in " ".join(m.value for m in at.sidebar.markdown)
    badges = re.findall(r"-background\[:\w+\[:material/\w+: ([^\]]*)\]", texts)
    assert len(badges) >= 2
    assert all("private" in text for text in badges)
    assert "do not publish" in texts
    assert "public input" not in texts
    at.session_state["mean.tabs"] = "Downloads"
    fine(at.run())
    assert "Label in both: *computed from private data (do not publish)*" in shown_texts(at)
    helps = [button.proto.help for button in at.get("download_button") if button.proto.help]
    assert helps
    assert all("do not publish" in text for text in helps)


def test_what_is_taken_as_public_is_said_and_what_to_do_where_it_is_not():
    at = with_shop_events()
    texts = shown_texts(at)
    assert "how many rows each user has is assumed to be public" in texts
    assert "Where it is not, using the bound gives some of it away" in texts
    assert "choose the bound without these data, or under *Choose privately*" in texts
    assert card.COUNTS_TOO in texts
    assert card.VARIANCE_LEAKS in texts
    fine(at.segmented_control(key="mean.variance_source").set_value("Worst case").run())
    assert card.VARIANCE_LEAKS not in shown_texts(at)
    fine(at.segmented_control(key="mean.counts").set_value(mean.Counts.PRIVATE).run())
    texts = shown_texts(at)
    assert card.LEAKS_COUNTS in texts
    assert card.LEAKS not in texts
    assert card.COUNTS_TOO not in texts
    texts = shown_texts(with_shop_events(public=True))
    assert card.LEAKS not in texts
    assert card.VARIANCE_LEAKS not in texts


def test_numbers_from_public_data_do_not_say_private():
    for at in (open_app("Mean"), with_shop_events(public=True)):
        assert "do not publish" not in shown_texts(at)
        assert "public" in " ".join(m.value for m in at.sidebar.markdown)


@pytest.mark.parametrize("sensitivity", Sensitivity)
def test_downloads_carry_the_label(sensitivity):
    problem = mean.MeanProblem(SAMPLE.histogram, EPSILON, 1.0, 0.25)
    weights = mean_files.weights_csv(problem, 4.5, 16, sensitivity)
    assert all(line.endswith(sensitivity.label) for line in weights.splitlines()[1:])
    figure_data = csv_files.columns_csv({"x": [1, 2]}, sensitivity)
    assert all(line.endswith(sensitivity.label) for line in figure_data.splitlines()[1:])
    assert ("do-not-publish" in figures.file_name("x", sensitivity)) is (sensitivity is Sensitivity.PRIVATE)


def test_the_choice_of_private_data_labels_what_was_computed_from_them():
    held = data(with_shop_events())
    parameters = mean.MeanParameters(
        epsilon=0.5, upper=100.0, variance_source=mean.VarianceSource.FROM_VALUES
    )
    problem = parameters.problem(held.histogram, clamp(held.values, 0.0, 100.0).variance)
    text = mean_files.mean_choice_json(
        held, parameters, problem, mean.best_cap(problem), mean.best_smooth(problem)
    )
    choice = json.loads(text)
    for part in ("data", "answer"):
        assert choice[part]["label"] == Sensitivity.PRIVATE.label
    assert choice["data"]["value_variance_label"] == Sensitivity.PRIVATE.label
    assert choice["question"]["label"] == "public input"
    assert "value_variance" not in choice["question"]
    assert choice["data"]["value_variance_from"] == "values"
    # B h / (epsilon n_h), what a library is to be given; n_h by a sum over sizes.
    h = choice["answer"]["max_contributions"]
    kept = int(np.sum(np.minimum(held.histogram.sizes, h) * held.histogram.users))
    assert choice["answer"]["rows_kept_at_cap"] == kept
    assert choice["answer"]["cap"]["laplace_scale"] == pytest.approx(100.0 * h / (0.5 * kept), rel=1e-12)


def test_a_variance_that_stands_in_for_values_is_not_labelled_as_theirs():
    private = dataclasses.replace(SAMPLE, sensitivity=Sensitivity.PRIVATE)
    parameters = mean.MeanParameters(epsilon=0.5, variance_source=mean.VarianceSource.FROM_VALUES)
    problem = parameters.problem(private.histogram)
    text = mean_files.mean_choice_json(
        private, parameters, problem, mean.best_cap(problem), mean.best_smooth(problem)
    )
    found = json.loads(text)["data"]
    assert (found["value_variance"], found["value_variance_from"]) == (0.25, "worst")
    assert found["value_variance_label"] == "public input"


def test_private_values_propose_no_bounds():
    at = with_shop_events()
    assert [at.number_input(key=key).value for key in ("mean.lower", "mean.upper")] == [0.0, 1.0]


# --- the drawing --------------------------------------------------------------------------------------------


def test_axes_have_titles_with_units_and_traces_are_short():
    at = with_shop_events(public=True)
    at.session_state["mean.tabs"] = "What independence hides"
    fine(at.run())
    for key in ("mean_error", "mean_shift"):
        layout = chart(at, key)["layout"]
        assert "(rows per user)" in layout["xaxis"]["title"]["text"]
        assert "(unit of the values)" in layout["yaxis"]["title"]["text"]
        assert all(numbers(t["x"]).size <= 500 for t in chart(at, key)["data"])


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 1e3])
@pytest.mark.parametrize("noise", ["Worst case", "Entered"])
def test_a_point_outside_the_axes_is_said_and_can_be_brought_in(epsilon, noise):
    at = open_app("Mean")
    fine(at.segmented_control(key="mean.variance_source").set_value(noise).run())
    if noise == "Entered":
        at.number_input(key="mean.value_variance").set_value(0.0)
    fine(at.number_input(key=keys.EPSILON).set_value(epsilon).run())
    ((_,), (error,)) = trace(chart(at, "mean_error"), "Best cap")
    low, high = (10.0**end for end in chart(at, "mean_error")["layout"]["yaxis"]["range"])
    assert ("Outside the axes: the best cap" in shown_texts(at)) is not (low <= error <= high)
    (control,) = [s for s in at.select_slider if s.label.startswith("Standard error")]
    fine(control.set_value((float(control.options[0]), float(control.options[-1].replace(",", "")))).run())
    assert "Outside the axes" not in shown_texts(at)
    low, high = (10.0**end for end in chart(at, "mean_error")["layout"]["yaxis"]["range"])
    assert low <= error <= high


def test_an_own_cap_beyond_the_axis_is_said():
    at = open_app("Mean")
    fine(at.number_input(key="mean.own_cap").set_value(10**6).run())
    assert "Outside the axes: your own cap." in shown_texts(at)


def test_a_range_of_bounds_stays_when_the_value_bounds_change():
    at = open_app("Mean")
    (control,) = [s for s in at.select_slider if s.label == "Bound, rows per user"]
    fine(control.set_value((10.0, 1_000.0)).run())
    fine(at.number_input(key="mean.upper").set_value(50.0).run())
    (control,) = [s for s in at.select_slider if s.label == "Bound, rows per user"]
    assert control.value == (10.0, 1_000.0)


def test_the_range_control_moves_the_axis():
    at = open_app("Mean")
    (control,) = [s for s in at.select_slider if s.label == "Bound, rows per user"]
    fine(control.set_value((10.0, 1_000.0)).run())
    # Decades; a little room is left at both ends.
    assert chart(at, "mean_error")["layout"]["xaxis"]["range"] == pytest.approx([1.0, 3.0], abs=0.1)
