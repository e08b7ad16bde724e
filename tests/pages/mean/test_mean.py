"""Mean: what is drawn and said is what `dpcore.mean` answers; bad parameters get sentences; labels follow the data."""

from __future__ import annotations

import dataclasses
import json
import math
import re

import numpy as np
import pytest

from dpcore import mean
from dpcore.answer import Answer, standard
from dpcore.answer.answer import Verdict
from dpcore.common.privacy import Disclosure
from dpcore.common.wording import describe_change, format_count, format_number, format_percent
from dpcore.contributions import ContributionHistogram
from dpcore.data import samples
from dpcore.dataset import Dataset
from dpcore.mean import MeanParameters, Target, VarianceSource
from dpcore.mean.answer import MeanSolution, words
from dpcore.mean.answer import answer as mean_files
from dpcore.mean.answer import build_answer as mean_answered
from dpcore.mean.private_counts import PrivateCountsProblem
from dpcore.mean.table_values import ValueSummary
from dpcore.report import content, plotly_figures
from pages.shared.base import keys
from pages.shared.fields import setting
from pages.shared.figures import figures
from pages.shared.session import session
from tests.pages.driving import (
    chart,
    check,
    errors,
    go,
    open_app,
    open_tab,
    read_answer,
    read_number,
    read_shown_link,
    shown_texts,
    trace,
    use_dataset,
)

SAMPLE = samples.load(session.DEFAULT_SAMPLE)
SHOP = samples.load("shop-events")
SECRET = dataclasses.replace(SHOP, disclosure=Disclosure.PRIVATE)
EPSILON = setting.DEFAULT_EPSILON
TABS = (
    "Behind the answer",
    "Weight of a row",
    "When users differ",
    "Range",
    "Downloads",
    "How this is computed",
)


def build_counts_problem(
    histogram, epsilon, value_bound, variance, kind=mean.MeanProblem
) -> mean.MeanProblem:
    """What the page asks where no values are read: the mean of this table, with the share between users assumed."""
    return kind(histogram, epsilon, value_bound, variance, target=Target.TABLE, user_share=0.2)


def build_values_problem(brought, epsilon, lower, upper) -> mean.MeanProblem:
    """What it asks of public values: the mean of this table on the values themselves."""
    table = ValueSummary.from_dataset(brought, lower, upper).table_values
    return mean.MeanProblem(
        brought.histogram, epsilon, upper - lower, 1.0, target=Target.TABLE, table_values=table
    )


def replace_share(problem: mean.MeanProblem, dataset: Dataset) -> mean.MeanProblem:
    """The same with the share that is read off public values."""
    other_dataset = ValueSummary.from_dataset(dataset, 0.0, problem.value_bound)
    return dataclasses.replace(problem, user_share=other_dataset.user_share.clipped_estimate)


def assert_answer(app, problem: mean.MeanProblem) -> None:
    """The page shows the optima of this problem, in the figure and in the words."""
    cap, smooth = mean.find_best_cap(problem), mean.find_best_smooth(problem)
    figure = chart(app, "mean_error")
    ((x,), (y,)) = trace(figure, "Best bound")
    assert (x, y) == (cap.max_contributions, pytest.approx(math.sqrt(cap.squared_error)))
    ((x,), (y,)) = trace(figure, "Best smooth weights")
    assert (x, y) == (pytest.approx(smooth.threshold), pytest.approx(math.sqrt(smooth.squared_error)))
    # At large bounds noise can leave the range, and the step that moves the mean into it changes the error a little:
    # `test_moved_mean.py` has that change.
    bounds, errors_drawn = trace(figure, "Total, bounded rows")
    assert errors_drawn == pytest.approx(np.sqrt(mean.compute_capped_variance(problem, bounds)), rel=2e-3)
    bounds, errors_drawn = trace(figure, "Total, smooth weights")
    assert errors_drawn == pytest.approx(np.sqrt(mean.compute_smooth_variance(problem, bounds)), rel=2e-3)
    card_answer = read_number(app, "mean_card")
    assert card_answer["value"] == format_count(cap.max_contributions, "row")
    assert card_answer["copied"] == str(cap.max_contributions)
    assert card_answer["error"][1] == format_number(cap.standard_error)


def has_no_answer(app) -> bool:
    return not [e for e in app.get("bidi_component") if "mean" in e.proto.id]


def enter_fields(app, **fields):
    """Type into fields of the page, then run it."""
    for name, value in fields.items():
        app.number_input(key=keys.EPSILON if name == "epsilon" else f"mean.{name}").set_value(value)
    return check(app.run())


def choose_options(app, **fields):
    for name, value in fields.items():
        check(app.segmented_control(key=f"mean.{name}").set_value(value).run())
    return app


def open_with_data(dataset: Dataset, **fields):
    """The page with these data; private ones get a range, without which nothing is answered."""
    app = check(use_dataset(open_app("Mean"), dataset).run())
    return enter_fields(app, **fields) if fields else app


def build_mean_answer(dataset: Dataset, parameters: MeanParameters) -> tuple[MeanSolution, Answer]:
    """What the page computes and says, without the page."""
    made = mean_answered(dataset, parameters)
    return made.solution, made


def test_epsilon_range_and_variance_move_the_answer_and_epsilon_not_the_axis_of_bounds():
    app = open_app("Mean")
    assert_answer(app, build_counts_problem(SAMPLE.histogram, EPSILON, 1.0, 0.25))
    before = chart(app, "mean_error")["layout"]
    caps = []
    for epsilon in (0.01, 0.1, 1.0, 10.0):
        check(app.select_slider(key=keys.EPSILON_SLIDER).set_value(epsilon).run())
        problem = build_counts_problem(SAMPLE.histogram, epsilon, 1.0, 0.25)
        assert_answer(app, problem)
        caps.append(mean.find_best_cap(problem).max_contributions)
        layout = chart(app, "mean_error")["layout"]
        assert layout["xaxis"]["range"] == before["xaxis"]["range"]
        low, high = layout["yaxis"]["range"]
        drawn = np.log10(trace(chart(app, "mean_error"), "Total, bounded rows")[1])
        # The axis ends next to the curve: by a margin and the next 1, 2 or 5, and a fiftieth of it on either side.
        assert low < drawn.min() < drawn.max() < high < drawn.max() + 0.6
    # Cheaper noise allows more rows per user.
    assert caps == sorted(caps)
    assert caps[0] < caps[-1]
    enter_fields(app, epsilon=EPSILON, lower=-2.0, upper=6.0)
    enter_fields(choose_options(app, variance_source="Entered"), value_variance=3.5)
    assert_answer(app, build_counts_problem(SAMPLE.histogram, EPSILON, 8.0, 3.5))


def test_an_own_cap_is_compared():
    app = enter_fields(open_app("Mean"), own_bound=200)
    problem = build_counts_problem(SAMPLE.histogram, EPSILON, 1.0, 0.25)
    error = math.sqrt(float(mean.compute_capped_variance(problem, 200)))
    ((x,), (y,)) = trace(chart(app, "mean_error"), "Your own bound")
    assert (x, y) == (200, pytest.approx(error))
    assert f"error {format_number(error)}" in shown_texts(app)
    enter_fields(app, own_bound=10**6)
    assert "Outside the axes: your own bound." in shown_texts(app)
    enter_fields(app, own_bound=None)
    assert "Your own bound" not in [t["name"] for t in chart(app, "mean_error")["data"]]


def test_the_error_is_that_on_the_clamped_values_of_this_table():
    app = open_with_data(SHOP)
    values = SHOP.values.values
    assert [app.number_input(key=key).value for key in ("mean.lower", "mean.upper")] == [0.0, 100.0]
    enter_fields(app, upper=40.0)
    assert_answer(app, build_values_problem(SHOP, EPSILON, 0.0, 40.0))
    outside = int(np.sum(values > 40.0))
    assert f"{outside:,} values of {values.size:,}" in shown_texts(app)
    # A click brings the paper's model, with its figures, and the variance of the clamped values.
    check(app.button(key="mean_as_in_paper").click().run())
    variance = float(np.var(np.clip(values, 0.0, 40.0), ddof=1))
    assert_answer(app, mean.MeanProblem(SHOP.histogram, EPSILON, 40.0, variance))
    # Users who differ: the share between them is read off the values, or said.
    choose_options(app, likeness="From values")
    share = ValueSummary.from_dataset(SHOP, 0.0, 40.0).user_share.clipped_estimate
    assert_answer(app, mean.MeanProblem(SHOP.histogram, EPSILON, 40.0, variance, user_share=share))
    choose_options(app, likeness="Assumed")
    check(app.slider(key="mean.user_share").set_value(0.5).run())
    assert_answer(app, mean.MeanProblem(SHOP.histogram, EPSILON, 40.0, variance, user_share=0.5))
    assert {"target=population", "likeness=entered", "user_share=0.5"} <= set(
        re.split("[?&]", read_shown_link(app))
    )


@pytest.mark.long
def test_the_source_of_the_variance_follows_the_data_until_the_person_chooses():
    app = open_app("Mean")  # Counts only, seen first: nothing to take a variance from.
    assert app.session_state["mean.variance_source"] is VarianceSource.WORST_CASE
    check(use_dataset(app, SHOP).run())
    assert app.session_state["mean.variance_source"] is VarianceSource.FROM_VALUES
    assert_answer(app, build_values_problem(SHOP, EPSILON, 0.0, 100.0))
    choose_options(app, variance_source="Worst case")
    check(use_dataset(app, dataclasses.replace(SHOP, name="again")).run())
    assert app.session_state["mean.variance_source"] is VarianceSource.WORST_CASE
    assert_answer(app, replace_share(build_counts_problem(SHOP.histogram, EPSILON, 100.0, 2_500.0), SHOP))


def test_what_independence_hides_is_said_and_drawn():
    view, made = build_mean_answer(
        SHOP, MeanParameters(1.0, upper=100.0, variance_source=VarianceSource.FROM_VALUES)
    )
    values, cap = SHOP.values, view.cap_choice.max_contributions
    # By a loop over users: each user's mean counts min(cap, rows) times.
    per_user = [values.values[values.user_codes == code] for code in np.unique(values.user_codes)]
    kept = [min(cap, rows.size) for rows in per_user]
    capped = np.average([rows.mean() for rows in per_user], weights=kept)
    shift = capped - values.values.mean()
    sentences = words.describe_shifts(view, view.value_summary)
    assert f"The bounded mean differs from the plain mean by {format_number(shift)}" in sentences[0]
    (trace,) = [
        t
        for t in plotly_figures.draw_plot(made.plots["mean-shift"]()).data
        if t.name == "Bounded mean minus plain mean"
    ]
    assert trace.y[np.flatnonzero(trace.x == cap)] == pytest.approx([shift])
    assert trace.y[-1] == pytest.approx(0.0, abs=1e-9)


def test_the_facts_of_the_card_by_hand():
    # Users: 4 of 1 row, 2 of 4, 1 of 20 (32 rows); B = 1, epsilon = 10, sigma^2 = 1/4.
    # Every cap is tried.
    sizes, users = np.array([1, 4, 20]), np.array([4, 2, 1])
    dataset = Dataset("few", "", Disclosure.PUBLIC, ContributionHistogram(sizes, users))
    parameters = MeanParameters(10.0)

    def parts(h: int) -> tuple[float, float]:
        kept = int(np.sum(users * np.minimum(sizes, h)))
        return 0.25 / kept, 2.0 * (h / (10.0 * kept)) ** 2

    errors_of = {h: math.sqrt(sum(parts(h))) for h in range(1, 41)}
    best = min(range(1, 21), key=errors_of.__getitem__)
    assert 4 < best < 20  # Between two sizes: being over it, and losing rows by it, are different things.
    kept = int(np.sum(users * np.minimum(sizes, best)))
    _, shown = build_mean_answer(dataset, parameters)
    texts = read_answer(shown)
    assert shown.headline == f"Keep at most {best} rows per user."
    over = format_percent(20 / 32)
    assert f"1 user ({format_percent(1 / 7)}) lies over the bound; " in texts
    assert f"This user holds {over} of all rows." in texts
    assert f"{format_percent((32 - kept) / 32)} of all rows are left out" in texts
    for name, h in (("half", best // 2), ("double", 2 * best)):
        assert f"{name} ({h}) costs {describe_change(errors_of[h], errors_of[best])}" in texts
    close = [h for h in range(1, 21) if errors_of[h] <= 1.05 * errors_of[best]]
    assert f"{close[0]} to {close[-1]} rows are within" in shown.near_optimal
    sampling, noise = parts(best)
    # There are no values, so the error is relative to half of the range, here [0, 1].
    assert shown.relative_error.share == pytest.approx(math.sqrt(sampling + noise) / 0.5)
    assert shown.numbers[1].note == f"({format_percent(math.sqrt(sampling + noise) / 0.5)} of half the range)"


def test_weights_are_drawn_against_the_size_of_the_user():
    _, made = build_mean_answer(SAMPLE, MeanParameters(1.0))
    (trace,) = [
        t for t in plotly_figures.draw_plot(made.plots["mean-weights"]()).data if t.name == "Smooth weights"
    ]
    h = mean.find_best_smooth(mean.MeanProblem(SAMPLE.histogram, 1.0, 1.0, 0.25)).threshold
    kept = float(np.sum(SAMPLE.histogram.users * np.minimum(SAMPLE.histogram.sizes, h)))
    assert trace.y == pytest.approx(np.minimum(h, trace.x) / (trace.x * kept) * SAMPLE.histogram.num_rows)


@pytest.mark.long
def test_every_tab_answers_on_degenerate_data_and_without_values():
    app = open_app("Mean")
    for sizes, users in (([1], [1]), ([5], [3]), ([1], [10**12])):
        histogram = ContributionHistogram(sizes, users)
        use_dataset(app, Dataset("few", "", Disclosure.PRIVATE, histogram))
        enter_fields(app, lower=0.0, upper=1.0)  # Of private data nobody has, until now.
        for tab in TABS:
            open_tab(app, "mean", tab)
            assert_answer(app, build_counts_problem(histogram, EPSILON, 1.0, 0.25))
            assert not errors(app)
            if tab == "When users differ":
                assert "This needs values" in shown_texts(app)
    app.session_state["mean.tabs"] = TABS[0]
    choose_options(app, variance_source="From values")
    assert "The worst case stands in" in shown_texts(app)
    assert_answer(app, build_counts_problem(histogram, EPSILON, 1.0, 0.25))


def read_entered(app) -> list[object]:
    return [app.number_input(key=key).value for key in (keys.EPSILON, "mean.lower", "mean.upper")]


def test_bad_value_bounds_give_a_sentence_and_nothing_entered_is_lost():
    app = open_app("Mean")
    for lower, upper, sentence in (
        (3.0, 3.0, "Lowest value L must lie below highest value U; got 3 and 3"),
        (7.0, -2.0, "Lowest value L must lie below highest value U; got 7 and −2"),
        (None, 5.0, "Lowest value L is empty. Enter a number"),
        (-5.0, None, "Highest value U is empty. Enter a number"),
        (0.0, 1e300, "must lie between 1e−9 and 1,000,000,000"),
        (0.0, 1e-12, "must lie between 1e−9 and 1,000,000,000"),
    ):
        enter_fields(app, epsilon=0.7, lower=lower, upper=upper)
        assert sentence in errors(app)
        assert has_no_answer(app)
    go(go(app, "Data"), "Mean")
    assert sentence in errors(app)
    assert read_entered(app) == [0.7, lower, upper]
    enter_fields(app, lower=0.0, upper=1.0)
    assert not errors(app)
    assert_answer(app, build_counts_problem(SAMPLE.histogram, 0.7, 1.0, 0.25))
    # The fix is a button: the last entries that had an answer, on the same data alone.
    enter_fields(app, lower=2.0)
    assert app.button(key="mean_undo").label == "Set lowest value L back to 0"
    enter_fields(app, epsilon=None)
    assert app.button(key="mean_undo").label == "Undo the last changes"
    check(app.button(key="mean_undo").click().run())
    assert read_entered(app) == [0.7, 0.0, 1.0]
    assert not errors(app)
    enter_fields(use_dataset(app, SECRET), lower=5.0, upper=1.0)
    assert errors(app)
    assert not [button for button in app.button if button.key == "mean_undo"]


# --- private data and labels --------------------------------------------------------------------------------


def test_private_values_begin_without_a_range_and_nothing_is_answered_before_there_is_one():
    app = open_with_data(SECRET)
    assert read_entered(app)[1:] == [None, None]
    assert "**What range can a value have?** Enter L and U" in shown_texts(app)
    assert has_no_answer(app)
    assert "lower" not in read_shown_link(app)
    enter_fields(app, lower=0.0)
    assert "Enter U, from what you know of the quantity" in shown_texts(app)
    assert has_no_answer(app)
    enter_fields(app, upper=100.0)
    assert "What range" not in shown_texts(app)
    assert_answer(
        app, build_counts_problem(SHOP.histogram, EPSILON, 100.0, 100.0**2 / 4.0, PrivateCountsProblem)
    )
    # Many values outside it change how the headline is read.
    enter_fields(app, upper=1.0)
    clamped = format_percent(float(np.mean(SHOP.values.values > 1.0)))
    assert f"**{clamped} of the values are clamped**" in shown_texts(app)


def test_numbers_from_private_data_say_so_everywhere():
    app = open_with_data(SECRET, lower=0.0, upper=100.0)
    texts = shown_texts(app)
    assert "private data" in " ".join(m.value for m in app.sidebar.markdown)
    badges = re.findall(r"-background\[:\w+\[:material/\w+: ([^\]]*)\]", texts)
    assert len(badges) >= 2
    others = {text.lower() for text in badges if not text.lower().startswith(tuple(Verdict))}
    assert others == {"private data", "do not publish", "bound: do not publish"}
    assert "public input" not in texts
    open_tab(app, "mean", "Downloads")
    assert "Label of both files: *computed from private data (do not publish)*" in shown_texts(app)
    helps = [button.proto.help for button in app.get("download_button") if button.proto.help]
    assert helps
    assert all("do not publish" in text for text in helps)
    check(use_dataset(app, SHOP).run())
    assert "do not publish" not in shown_texts(app).lower()
    assert "public" in " ".join(m.value for m in app.sidebar.markdown)


def test_what_is_taken_as_public_is_said_and_what_to_do_where_it_is_not():
    parameters = MeanParameters(1.0, upper=100.0, variance_source=VarianceSource.FROM_VALUES)
    shown = build_mean_answer(SECRET, parameters)[1]
    detail = shown.detail
    assert words.COUNTS_PUBLIC_SENTENCE in detail
    assert "Where counts are private" in shown.facts
    assert words.VALUES_LEAK_SENTENCE in detail
    worst = dataclasses.replace(parameters, variance_source=VarianceSource.WORST_CASE)
    detail = build_mean_answer(SECRET, worst)[1].detail
    assert standard.PUBLIC_COUNTS_CAVEAT in detail
    assert words.VALUES_LEAK_SENTENCE not in detail
    shown = build_mean_answer(SECRET, dataclasses.replace(parameters, counts=mean.Counts.PRIVATE))[1]
    detail = shown.detail
    assert words.VALUES_LEAK_SENTENCE in detail
    assert "assumed to be public" not in detail
    assert "Where counts are private" not in shown.facts
    detail = build_mean_answer(SHOP, parameters)[1].detail
    assert "Your data are private" not in detail


@pytest.mark.parametrize("disclosure", Disclosure)
def test_downloads_carry_the_label(disclosure):
    problem = build_counts_problem(SAMPLE.histogram, EPSILON, 1.0, 0.25)
    weights = mean_files.write_weights_csv(problem, 4.5, 16, disclosure)
    assert all(line.endswith(disclosure.label) for line in weights.splitlines()[1:])
    figure_data = content.write_columns({"x": [1, 2]}, disclosure)
    assert all(line.endswith(disclosure.label) for line in figure_data.splitlines()[1:])
    assert ("do-not-publish" in figures.write_file_name("x", disclosure)) is (
        disclosure is Disclosure.PRIVATE
    )


def test_the_choice_of_private_data_labels_what_was_computed_from_them():
    parameters = MeanParameters(epsilon=0.5, upper=100.0, variance_source=VarianceSource.FROM_VALUES)
    _, answer = build_mean_answer(SECRET, parameters)
    choice = json.loads(answer.write_json())
    for text in ("data", "answer"):
        assert choice[text]["label"] == Disclosure.PRIVATE.label
    assert choice["data"]["value_variance_label"] == Disclosure.PRIVATE.label
    assert choice["question"]["label"] == "public input"
    assert "value_variance" not in choice["question"]
    assert choice["data"]["value_variance_from"] == "values"
    # B h / (epsilon n_h), what a library is to be given; n_h by a sum over sizes.
    h = choice["answer"]["max_contributions"]
    kept = int(np.sum(np.minimum(SECRET.histogram.sizes, h) * SECRET.histogram.users))
    assert choice["answer"]["rows_kept_at_cap"] == kept
    assert choice["answer"]["cap"]["laplace_scale"] == pytest.approx(100.0 * h / (0.5 * kept), rel=1e-12)


def test_a_variance_that_stands_in_for_values_is_not_labelled_as_theirs():
    private = dataclasses.replace(SAMPLE, disclosure=Disclosure.PRIVATE)
    parameters = MeanParameters(epsilon=0.5, variance_source=VarianceSource.FROM_VALUES)
    _, answer = build_mean_answer(private, parameters)
    choice_data = json.loads(answer.write_json())["data"]
    assert (choice_data["value_variance"], choice_data["value_variance_from"]) == (0.25, "worst")
    assert choice_data["value_variance_label"] == "public input"


@pytest.mark.long
def test_a_point_outside_the_axes_is_said_and_can_be_brought_in():
    app = open_app("Mean")
    for source in ("Worst case", "Entered"):
        choose_options(app, variance_source=source)
        for epsilon in (1e-6, 1e-3, 1e3):
            enter_fields(app, epsilon=epsilon, **({"value_variance": 0.0} if source == "Entered" else {}))
            ((_,), (error,)) = trace(chart(app, "mean_error"), "Best bound")
            low, high = (10.0**end for end in chart(app, "mean_error")["layout"]["yaxis"]["range"])
            assert ("Outside the axes: the best bound" in shown_texts(app)) is not (low <= error <= high)
            (control,) = [s for s in app.select_slider if s.label.startswith("Error")]
            value_before = control.value
            widest = float(control.options[0]), float(control.options[-1].replace(",", ""))
            check(control.set_value(widest).run())
            assert "Outside the axes" not in shown_texts(app)
            low, high = (10.0**end for end in chart(app, "mean_error")["layout"]["yaxis"]["range"])
            assert low <= error <= high
            (control,) = [s for s in app.select_slider if s.label.startswith("Error")]
            check(control.set_value(value_before).run())


def test_the_range_control_moves_the_axis_and_stays_when_the_value_bounds_change():
    app = open_app("Mean")
    (control,) = [s for s in app.select_slider if s.label == "Bound, rows per user"]
    check(control.set_value((10.0, 1_000.0)).run())
    # Decades; a little room is left at both ends.
    assert chart(app, "mean_error")["layout"]["xaxis"]["range"] == pytest.approx([1.0, 3.0], abs=0.1)
    enter_fields(app, upper=50.0)
    (control,) = [s for s in app.select_slider if s.label == "Bound, rows per user"]
    assert control.value == (10.0, 1_000.0)


def test_users_clamped_are_answered_on_the_card_and_rows_beside_them():
    app = open_with_data(SHOP, lower=20.0, upper=70.0)
    choose_options(app, clamp=mean.Clamp.USERS)
    parameters = MeanParameters(EPSILON, 20.0, 70.0, **mean.choose_defaults(SHOP), clamp=mean.Clamp.USERS)
    solution, answer = build_mean_answer(SHOP, parameters)
    card_answer = read_number(app, "mean_card")
    assert card_answer["value"] == answer.numbers[0].text
    assert card_answer["error"][1] == format_number(solution.users_solution.standard_error)
    ((x,), (y,)) = trace(chart(app, "mean_error"), "Best bound")
    assert (x, y) == (
        solution.users_solution.threshold,
        pytest.approx(solution.users_solution.standard_error),
    )
    assert "rows clamped" in shown_texts(app).lower()
    assert "mean_clamp=users" in read_shown_link(app) or "clamp=users" in read_shown_link(app)
