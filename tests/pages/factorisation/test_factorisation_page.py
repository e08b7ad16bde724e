"""Recommender: what is drawn and said is what `dpcore.factorisation` answers; a training ends, stops and is kept."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from dpcore.answer import Answer
from dpcore.common.privacy import Disclosure
from dpcore.contributions import ContributionHistogram
from dpcore.data import samples
from dpcore.data.group_pairs import build_pairs
from dpcore.dataset import Dataset
from dpcore.factorisation import answer
from dpcore.factorisation.allocation import Scheme, divide_budget
from dpcore.factorisation.answer import plots, words
from dpcore.factorisation.answer import solution as core
from dpcore.factorisation.answer.answer import write_runs
from dpcore.factorisation.implicit import select_choices
from dpcore.factorisation.parameters import CHOICE_SPREAD, Algorithm, FactorisationParameters, RatingSource
from dpcore.factorisation.ratings import NUM_BUCKETS, GeneratedRatings
from dpcore.factorisation.studies import CHOICE_KINDS, PRIVATE_KINDS, RATING_KINDS
from dpcore.factorisation.study import SCHEME_BY_KIND, ModelKind, StudyResult, run
from dpcore.report.plotly_figures import draw_plot
from pages.factorisation.question import QUESTION, propose_values
from pages.shared.base import keys
from pages.shared.screen import layout
from pages.shared.server import access
from tests.pages.driving import (
    chart,
    check,
    errors,
    finish,
    list_figure_keys,
    open_app,
    open_on_dataset,
    read_number,
    shown_texts,
    trace,
    work_waits_for_stop,
)

PAGE, JOB = "Recommender", "factorisation.train_job"
SMALL: dict[str, Any] = {"num_users": 300, "num_items": 60, "ratings_per_user": 12.0, "repeats": 2}
LINK = {name: f"{value:g}" for name, value in SMALL.items()}
LINK |= {"link": "1", "data": "online-retail-lines", "epsilon": "1", "train_epsilons": "5"}
PARAMETERS = FactorisationParameters(1.0, train_epsilons="5", **SMALL)
ITEM_TABS = ("Who gets the budget", "Rare and popular items", "Nearest items", "Implicit feedback")
TABS = (*ITEM_TABS, layout.DOWNLOADS, layout.COMPUTED)


def build_rated_dataset(disclosure: Disclosure) -> Dataset:
    """Build ratings as Data does from a table of users, items and stars."""
    ratings = GeneratedRatings(200, 40, 10.0).draw(np.random.default_rng(0))
    users, stars = ratings.graph.user_codes.astype(np.int64), ratings.values.astype(np.float64)
    per_user = np.bincount(users)
    return Dataset(
        "ratings.csv", "A file.", disclosure, ContributionHistogram.from_counts(per_user[per_user > 0]),
        privacy_unit=("user",), pairs=build_pairs(users, ratings.items, 40, "movie", stars, "stars"),
    )  # fmt: skip


def build_solution(
    parameters: FactorisationParameters = PARAMETERS, result: StudyResult | None = None
) -> answer.FactorisationSolution:
    table = core.load_ratings(parameters, None)
    shares = tuple(
        core.replace_noise(
            divide_budget(table, scheme, *core.choose_share_settings(parameters, scheme)), parameters
        )
        for scheme in Scheme
    )
    return answer.FactorisationSolution(parameters, table, Disclosure.PUBLIC, shares, result)


def build_answer(
    parameters: FactorisationParameters = PARAMETERS, result: StudyResult | None = None
) -> Answer:
    return answer.build_answer(None, parameters, build_solution(parameters, result))


def build_result(means: dict[ModelKind, float], spread: float = 0.001) -> StudyResult:
    """Build a result of three seeds whose errors differ from these by fixed small numbers."""
    study = replace(PARAMETERS.study, repeats=3, epsilons=(1.0,))
    rmse = np.empty((len(RATING_KINDS), 1, 3, 1 + NUM_BUCKETS))
    for index, rating_kind in enumerate(RATING_KINDS):
        wobble = spread * np.array([-1.0, 0.0, 1.0]) * (1.0 + index)
        rmse[index, 0] = means.get(rating_kind, 1.0) + wobble[:, None] + 0.01 * np.arange(1 + NUM_BUCKETS)
    counts = np.arange(60)
    return StudyResult(study, rmse, np.full_like(rmse, np.nan), counts, {}, True)


def test_the_card_says_plainly_whether_a_factorisation_is_worth_it() -> None:
    beaten = build_answer(result=build_result({ModelKind.PRIVATE_OFFSETS: 0.9}))
    assert beaten.headline == "At ε = 1, release item means: they predict better than a factorisation."
    assert beaten.numbers[0].text == "0.9000"
    assert beaten.detail.startswith("Factorising with adaptive weights is 0.1000 ± ")
    assert beaten.detail.endswith(" worse.")
    # Another scheme is better, but it was not declared: picked by these errors, its interval would not hold.
    picked = build_answer(result=build_result({ModelKind.PRIVATE_OFFSETS: 0.9, ModelKind.TAIL: 0.8}))
    assert picked.headline == beaten.headline
    unsure = build_answer(
        result=build_result({ModelKind.PRIVATE_OFFSETS: 0.9, ModelKind.ADAPTIVE: 0.899}, spread=0.02)
    )
    assert unsure.headline.startswith("At ε = 1 it is not clear")
    better = build_answer(result=build_result({ModelKind.PRIVATE_OFFSETS: 0.9, ModelKind.ADAPTIVE: 0.8}))
    assert better.headline == "At ε = 1, release a factorisation: it predicts better than item means."
    assert better.numbers[0].label.endswith("factorisation")
    assert better.numbers[0].text == "0.8000"
    # With two seeds nothing is clear, however large the difference.
    two = build_result({ModelKind.PRIVATE_OFFSETS: 0.9, ModelKind.ADAPTIVE: 0.8})
    two.rmse[:, :, 2] = np.nan
    few = build_answer(result=two)
    assert "not clear" in few.headline
    assert "Train at least 3 seeds" in few.detail
    values = {number.key: number.value for number in better.numbers}
    assert (values["factorisation"], values["adaptive_most_rated"]) == pytest.approx((0.8, -0.2))
    # No library fits a factorisation; the code is that of item means.
    assert (
        build_answer(result=build_result({ModelKind.PRIVATE_OFFSETS: 0.9, ModelKind.ADAPTIVE: 0.8})).code
        is None
    )
    code = build_answer(result=build_result({ModelKind.PRIVATE_OFFSETS: 0.9})).code
    assert (code.forms[0][1].max_groups, code.forms[0][1].delta) == (100, 1e-5)


def test_buckets_are_said_with_the_fewest_and_most_ratings_of_their_items() -> None:
    solution = build_solution()
    ascending = np.array_split(np.sort(solution.ratings.item_counts), NUM_BUCKETS)
    assert solution.count_ranges == [(counts[0], counts[-1]) for counts in ascending]
    assert f"; {ascending[0][0]} to {ascending[-1][-1]} ratings per item" in words.describe_ratings(solution)


def test_a_result_at_another_epsilon_is_said_to_be() -> None:
    parameters = replace(PARAMETERS, epsilon=3.0)
    card = build_answer(parameters, build_result({ModelKind.PRIVATE_OFFSETS: 0.9}))
    assert "ε = 1 is the nearest trained to yours." in card.detail
    # Guarantee and error are of one training: a methods section would else promise the one and report the other.
    methods = card.methods
    assert "at ε = 1 and" in methods.text
    assert "ε = 3" not in methods.text


def test_figures_draw_what_was_computed() -> None:
    solution = build_solution()
    assert list(plots.build_plots(solution)) == ["factorisation-shares"]
    drawn = draw_plot(plots.plot_shares(solution))
    for scheme, name in words.NAME_BY_SCHEME.items():
        bars, line = (one for one in drawn.data if one.name == name)
        assert np.asarray(bars.y) == pytest.approx(solution.find_shares(scheme).bucket_shares)
        assert np.asarray(line.y) == pytest.approx(solution.find_shares(scheme).noise_to_signal)
        assert (bars.yaxis, line.yaxis, line.legendgroup) == (None, "y2", name)
    result = run(solution.ratings, PARAMETERS.study)
    solution = build_solution(result=result)
    fig = draw_plot(plots.plot_over_epsilon(result, Disclosure.PUBLIC, 2.0))
    assert [list(one.x) for one in fig.data if one.name == "Your ε"] == [[2.0, 2.0]]
    for kind in PRIVATE_KINDS:
        (one,) = [one for one in fig.data if one.name == kind.value]
        assert np.asarray(one.y) == pytest.approx(result.summarise(kind).means[:, 0])
        assert np.asarray(one.error_y.array) == pytest.approx(result.summarise(kind).half_widths[:, 0])
    at = solution.baseline_comparison.epsilon_index
    (adaptive,) = [
        one
        for one in draw_plot(plots.plot_buckets(solution, "rmse")).data
        if one.name == ModelKind.ADAPTIVE.value
    ]
    assert np.asarray(adaptive.y) == pytest.approx(
        result.compare(ModelKind.ADAPTIVE, ModelKind.UNIFORM).means[at]
    )
    nearest = plots.plot_nearest_items(solution)
    assert nearest is not None
    assert len([one for one in draw_plot(nearest).data if one.mode != "text"]) == len(SCHEME_BY_KIND) + 1
    rows = list(csv.DictReader(io.StringIO(write_runs(result, "public input").split("\n", 1)[1])))
    # Three models without privacy once, five private ones at two epsilons; two seeds; all items and five buckets.
    assert len(rows) == (3 + 5 * 2) * 2 * 6
    wanted = {"model": "TAIL".lower(), "epsilon": "5.0", "seed": "1", "items": "all"}
    (row,) = [one for one in rows if wanted.items() <= one.items()]
    assert float(row["rmse"]) == result.select_runs(ModelKind.TAIL)[1, 1, 0]


def test_recall_is_said_with_its_interval_and_drawn() -> None:
    study = replace(PARAMETERS.choice_study, epsilons=(1.0, 5.0), repeats=3)
    recall = np.full((len(CHOICE_KINDS), 2, 3, 1 + NUM_BUCKETS), np.nan)

    unmeasured = np.full_like(recall, np.nan)

    def compare(adaptive: tuple[float, ...], epsilon: float = 5.0) -> str:
        # Three seeds with popular items at 0.20, 0.21 and 0.22: differences are paired.
        recall[CHOICE_KINDS.index(ModelKind.PRIVATE_POPULAR)] = np.array([0.20, 0.21, 0.22])[:, None]
        recall[CHOICE_KINDS.index(ModelKind.ADAPTIVE), 1] = np.array(adaptive)[:, None]
        result = StudyResult(study, unmeasured, recall, np.arange(60), {}, True)
        return words.write_comparison(result, epsilon)

    better = compare((0.30, 0.32, 0.31))
    # Differences 0.10, 0.11, 0.09: mean 0.1, standard error 0.01 / √3, times Student's 4.303 with two degrees.
    assert "release a factorisation" in better
    assert "0.310 against 0.210, a difference of +0.100 ± 0.025" in better
    assert compare((0.30, 0.32, 0.31), 1.0).startswith("**At ε = 5")  # The only one that is done.
    assert "recommend the most popular items" in compare((0.10, 0.12, 0.11))
    assert "not clear" in compare((0.21, 0.20, 0.23))
    assert "Train at least 3 seeds" in compare((0.30, 0.32, math.nan))
    figure = draw_plot(
        plots.plot_over_epsilon(StudyResult(study, unmeasured, recall, np.arange(60)), Disclosure.PUBLIC)
    )
    (line,) = [trace for trace in figure.data if trace.name == ModelKind.ADAPTIVE.value]
    assert np.asarray(line.y)[1] == pytest.approx(0.31)
    nothing = StudyResult(study, unmeasured, unmeasured, np.arange(60))
    assert words.write_comparison(nothing, 1.0).startswith("Nothing is trained")


def test_the_axis_of_noise_over_signal_stays_while_epsilon_moves() -> None:
    drawn = [
        draw_plot(plots.plot_shares(build_solution(replace(PARAMETERS, epsilon=e)))) for e in (0.5, 1.0, 10.0)
    ]
    assert len({tuple(fig.layout.yaxis2.range) for fig in drawn}) == 1


def test_data_with_ratings_are_proposed_and_private_ones_show_no_range() -> None:
    now = {"source": RatingSource.DATA}
    public = propose_values(build_rated_dataset(Disclosure.PUBLIC), now)
    assert public["source"] is RatingSource.DATA
    assert (public["lowest"], public["highest"]) == (0.5, 5.0)
    private = propose_values(build_rated_dataset(Disclosure.PRIVATE), now)
    assert (private["lowest"], private["highest"]) == (None, None)
    assert propose_values(samples.load("online-retail-lines"), now) == {"source": RatingSource.GENERATED}


@pytest.fixture(scope="module")
def trained() -> AppTest:
    """One session on a small table, trained."""
    app = open_app(PAGE, **LINK)
    assert app.session_state[keys.LINK_PROBLEMS] == ()
    assert list_figure_keys(app) == ["factorisation_shares"]
    assert "Not trained yet: noise on the rarest" in shown_texts(app)
    check(app.button(key="factorisation_train_job_start").click().run())
    return finish(app, JOB)


def test_a_training_ends_in_what_the_core_answers(trained: AppTest) -> None:
    core_answer = answer.build_answer(None, PARAMETERS)
    expected = core_answer.solution
    assert core_answer.headline in shown_texts(trained)
    shown = read_number(trained, "factorisation_card")
    assert (shown["label"], shown["value"]) == (core_answer.numbers[0].label, core_answer.numbers[0].text)
    assert list_figure_keys(trained)[0] == "factorisation_errors"
    drawn = trace(chart(trained, "factorisation_errors"), ModelKind.ADAPTIVE.value)[1]
    assert drawn == pytest.approx(expected.result.summarise(ModelKind.ADAPTIVE).means[:, 0])


@pytest.mark.long
def test_every_tab_opens_and_another_epsilon_keeps_the_training(trained: AppTest) -> None:
    for tab in TABS:
        trained.session_state[QUESTION.get_key("tabs")] = tab
        check(trained.run())
    trained.session_state[QUESTION.get_key("tabs")] = layout.BEHIND
    check(trained.number_input(key=keys.EPSILON).set_value(4.0).run())
    assert "ε = 5 is the nearest trained to yours" in shown_texts(trained)
    check(trained.number_input(key=QUESTION.get_key("max_items")).set_value(7.0).run())
    assert "The last training was for other settings." in shown_texts(trained)
    assert list_figure_keys(trained)[0] == "factorisation_shares"
    check(trained.number_input(key=QUESTION.get_key("max_items")).set_value(0.0).run())
    assert "must be a whole number between 1 and 1,000,000; got 0" in errors(trained)
    assert not list_figure_keys(trained)
    check(trained.number_input(key=QUESTION.get_key("max_items")).set_value(100.0).run())
    check(trained.number_input(key=keys.EPSILON).set_value(1.0).run())
    assert list_figure_keys(trained)[0] == "factorisation_errors"


@pytest.mark.long
def test_choices_are_trained_on_in_their_tab(trained: AppTest) -> None:
    job = QUESTION.get_key("implicit_job")
    trained.session_state[QUESTION.get_key("tabs")] = "Implicit feedback"
    check(trained.run())
    check(trained.button(key="factorisation_implicit_job_start").click().run())
    finish(trained, job)
    population = replace(PARAMETERS.population, choice_spread=CHOICE_SPREAD)
    expected = run(select_choices(population.draw(np.random.default_rng(1))), PARAMETERS.choice_study)
    assert words.write_comparison(expected, 1.0) in shown_texts(trained)
    assert "factorisation_recall" in list_figure_keys(trained)
    check(trained.number_input(key=QUESTION.get_key("unobserved")).set_value(2.0).run())
    assert "These results are for earlier settings" in shown_texts(trained)
    check(trained.number_input(key=QUESTION.get_key("unobserved")).set_value(0.5).run())
    # What was trained on ratings of one's own is not shown beside generated ones.
    assert "do not publish" not in shown_texts(trained).lower()
    assert "factorisation_recall" in list_figure_keys(trained)
    done = trained.session_state[job]
    public, done.request = done.request, ("digest of private ratings", done.request[1])
    del trained.session_state[f"{job}_earlier"]
    check(trained.run())
    assert "factorisation_recall" not in list_figure_keys(trained)
    done.request = public


@pytest.mark.long
def test_ratings_of_ones_own_are_choices_from_a_number_on() -> None:
    app = open_on_dataset(build_rated_dataset(Disclosure.PUBLIC), PAGE)
    app.session_state[QUESTION.get_key("tabs")] = "Implicit feedback"
    app.session_state[QUESTION.get_key("repeats")] = 1.0
    app.session_state[QUESTION.get_key("chosen_from")] = 6.0
    check(app.run())
    check(app.button(key="factorisation_implicit_job_start").click().run())
    finish(app, QUESTION.get_key("implicit_job"))
    assert "No rating is at least 6" in errors(app) + shown_texts(app)


def test_gradient_steps_show_their_fields_and_their_noise(trained: AppTest) -> None:
    before = read_number(trained, "factorisation_card")["label"]
    check(trained.segmented_control(key=QUESTION.get_key("algorithm")).set_value(Algorithm.DESCENT).run())
    check(trained.number_input(key=QUESTION.get_key("steps")).set_value(8.0).run())
    card_answer = read_number(trained, "factorisation_card")
    # Four times as many releases in a sweep as sums and vectors are: twice the noise of 79.5 at k = 100.
    assert (card_answer["label"], card_answer["value"]) == ("Noise s on each sum", "159")
    check(trained.segmented_control(key=QUESTION.get_key("algorithm")).set_value(Algorithm.STATISTICS).run())
    assert read_number(trained, "factorisation_card")["label"] == before


def test_private_ratings_ask_for_their_range_and_label_every_number(monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_on_dataset(build_rated_dataset(Disclosure.PRIVATE), PAGE)
    assert "What range can a rating have?" in shown_texts(app)
    assert not list_figure_keys(app)
    check(app.number_input(key=QUESTION.get_key("lowest")).set_value(0.5).run())
    check(app.number_input(key=QUESTION.get_key("highest")).set_value(5.0).run())
    assert list_figure_keys(app) == ["factorisation_shares"]
    assert "Do not publish" in shown_texts(app)
    # Stopped at its first sign of progress: what was finished is a result, here nothing.
    work_waits_for_stop(monkeypatch)
    check(app.button(key="factorisation_train_job_start").click().run())
    check(app.button(key=f"{JOB}_stop").click().run())
    finish(app, JOB)
    done = app.session_state[JOB].result
    assert isinstance(done, StudyResult)
    assert not done.is_finished
    assert not errors(app)
    assert list_figure_keys(app) == ["factorisation_shares"]


def test_items_of_private_rows_have_names_from_a_public_list_alone() -> None:
    names = tuple(f"diary {number}" for number in range(40))
    app = open_on_dataset(replace(build_rated_dataset(Disclosure.PRIVATE), task_names=names), PAGE)
    app.session_state[QUESTION.get_key("lowest")], app.session_state[QUESTION.get_key("highest")] = 0.5, 5.0
    app.session_state[QUESTION.get_key("repeats")] = 1.0
    check(app.run())
    check(app.button(key="factorisation_train_job_start").click().run())
    finish(app, JOB)
    app.session_state[QUESTION.get_key("tabs")] = "Nearest items"
    for brought, message in ((None, "item "), ({name: f"Film {name[6:]}" for name in names}, "Film ")):
        app.session_state[keys.ITEM_NAMES] = brought
        check(app.run())
        assert f"Nearest to {message}" in shown_texts(app)
        (nearest,) = [frame.value for frame in app.dataframe if "Adaptive" in frame.value.columns]
        assert all(str(cell).startswith(message) for cell in nearest.to_numpy().ravel())
        assert not any("diary" in text for text in (shown_texts(app), nearest.to_csv()))
    assert "names 40 of the 40 items (computed from private data: do not publish)" in shown_texts(app)


@pytest.mark.long
def test_train_again_and_stop_keeps_the_earlier_result(
    trained: AppTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    card_answer_before = read_number(trained, "factorisation_card")
    with monkeypatch.context() as patched:
        work_waits_for_stop(patched)
        check(trained.button(key="factorisation_train_job_start").click().run())
        check(trained.button(key=f"{JOB}_stop").click().run())
        finish(trained, JOB)
    assert not trained.session_state[JOB].result.is_finished
    assert list_figure_keys(trained)[0] == "factorisation_errors"
    assert read_number(trained, "factorisation_card") == card_answer_before


def test_a_public_demo_limits_what_is_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "is_served", lambda: True)
    app = open_app(PAGE, link="1", num_users="3000", num_items="600", ratings_per_user="250", repeats="9")
    assert "this public demo generates at most 600,000 ratings" in errors(app).replace("This", "this")
    assert "trains at most 3 seeds" in errors(app)
    assert not list_figure_keys(app)
