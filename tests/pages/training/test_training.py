"""Classifier: what is drawn and said is what the core finds; stopped work and releases."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import opendp.prelude as opendp
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Disclosure, Ledger, Neighbours
from dpcore.common.wording import format_number
from dpcore.report import plotly_figures
from dpcore.training import decision, experiment
from dpcore.training.account import Cell, Method
from dpcore.training.answer import TrainingSolution, plots, words
from dpcore.training.answer import answer as training_answer
from dpcore.training.answer.solution import Runs
from dpcore.training.experiment import References, RunTable
from dpcore.training.mechanism import LossKind, Pace
from dpcore.training.parameters import TrainingParameters
from dpcore.training.rows import Measure, ScoreUnit
from dpcore.training.training_data import TrainingData
from pages.shared.base import cache as cache_of_pages
from pages.shared.base import keys
from pages.training import release as releases
from tests.pages.driving import (
    chart,
    check,
    errors,
    finish,
    go,
    list_metrics,
    numbers,
    open_app,
    read_number,
    shown_texts,
    work_waits_for_stop,
)
from tests.pages.training.conftest import (
    JOB,
    LINK,
    MADE,
    PARAMETERS,
    TITLE,
    answer_for,
    make_experiment,
    open_small,
    open_tab,
    release_model,
    wait_for_runs,
)

AVERAGES = Cell(Method.SMOOTH, 1.0)


@cache
def references(parameters: TrainingParameters) -> References:
    solutions = experiment.compute_references(make_experiment(parameters))
    assert solutions is not None
    return solutions


@cache
def run_table(parameters: TrainingParameters) -> RunTable:
    return experiment.fill_table(make_experiment(parameters).make_empty_table())


def build_solution(
    parameters: TrainingParameters = PARAMETERS, table: RunTable | None = None
) -> TrainingSolution:
    loaded = TrainingData(MADE.dataset, "an account", scaling=MADE.scaling)
    return TrainingSolution(loaded, parameters, Runs(table or run_table(parameters), references(parameters)))


@pytest.fixture(scope="module")
def full_solution() -> TrainingSolution:
    table = run_table(PARAMETERS)
    close = decision.plan_close_call(table)
    decided = None if close is None else experiment.fill_table(close.make_empty_table())
    loaded = TrainingData(MADE.dataset, "an account", scaling=MADE.scaling)
    return TrainingSolution(loaded, PARAMETERS, Runs(table, references(PARAMETERS), close_table=decided))


def read_curve(figure, name: str):
    (plot_trace,) = [t for t in figure.data if t.name == name]
    return np.asarray(plot_trace.x), np.asarray(plot_trace.y)


@pytest.mark.long
@pytest.mark.parametrize("measure", Measure)
@pytest.mark.parametrize("over", ScoreUnit)
def test_the_figure_has_every_method_with_its_band_and_the_references(full_solution, measure, over):
    figure = plotly_figures.draw_plot(plots.plot_bounds(full_solution, measure, over))
    summary = full_solution.table.summarise(measure, over)
    for method, name in ((Method.SMOOTH, "Smooth weights"), (Method.CAP, "Cap, random rows"),
                         (Method.CLIPPED_SUM, "Clipped sum"), (Method.OUTPUT, "Output perturbation")):  # fmt: skip
        cells = full_solution.table.find_cell_indices(method)
        x, y = read_curve(figure, name)
        assert x == pytest.approx(full_solution.reaches[cells])
        assert y == pytest.approx(summary.means[cells])
        (band,) = [t for t in figure.data if t.legendgroup == name and t.fill == "toself"]
        assert np.asarray(band.y)[: cells.size] == pytest.approx((summary.means + summary.half_widths)[cells])
    floor, guess, *_ = full_solution.average_references(measure, over)
    assert read_curve(figure, "No privacy")[1] == pytest.approx([floor] * 2)
    assert read_curve(figure, "Guessing")[1] == pytest.approx([guess] * 2)
    (followed,) = full_solution.table.find_cell_indices(Method.FOLLOWED)
    assert read_curve(figure, "Clipped sum, adaptive bound")[1] == pytest.approx(
        [summary.means[followed]] * 2
    )
    *_, quiet, unclipped = full_solution.average_references(measure, over)
    assert read_curve(figure, "Adaptive bound, no noise")[1] == pytest.approx([quiet] * 2)
    assert read_curve(figure, "No noise, no clipping")[1] == pytest.approx([unclipped] * 2)
    # W by hand: the heaviest user's weight over everybody's; below one row a bound shortens gradients instead.
    sizes = full_solution.table.experiment.train.sizes
    h, weight = read_curve(figure, "W, the heaviest user's share")
    by_hand = [
        np.minimum(max(bound, 1.0), sizes).max() / np.minimum(max(bound, 1.0), sizes).sum() for bound in h
    ]
    assert weight == pytest.approx(by_hand)
    assert "Every curve lies beyond" not in str(figure.layout)
    low, high = figure.layout.yaxis.range
    assert low < min(floor, guess) <= max(floor, guess) < high


@pytest.mark.long
def test_the_axis_stays_while_the_budget_moves(full_solution):
    other_solution = build_solution(replace(PARAMETERS, epsilon=7.0, runs=3))
    assert other_solution.table.scores[0, 0, 1, 0, 0] != full_solution.table.scores[0, 0, 1, 0, 0]
    for measure in Measure:
        assert plots.choose_limits(other_solution, measure, ScoreUnit.ROWS) == plots.choose_limits(
            full_solution, measure, ScoreUnit.ROWS
        )
        assert (
            plots.choose_limits(full_solution, measure, ScoreUnit.ROWS)[0]
            < plots.choose_limits(full_solution, measure, ScoreUnit.ROWS)[1]
        )


def with_loss(solution: TrainingSolution, cell: Cell, loss: float) -> TrainingSolution:
    """What was found, but with another loss of a method at a bound."""
    scores = solution.table.scores.copy()
    scores[solution.cells.index(cell), :, :, :, 0] = loss
    return build_solution(solution.parameters, RunTable(solution.table.experiment, scores))


@pytest.mark.long
def test_the_card_says_what_the_runs_found(full_solution):
    floor, guess, *_ = full_solution.average_references(Measure.LOSS, ScoreUnit.ROWS)
    first = with_loss(full_solution, Cell(Method.FOLLOWED), floor + 0.01)
    answer = answer_for(first)
    losses = first.table.summarise(Measure.LOSS, ScoreUnit.ROWS)
    assert answer.headline == "Train with each user's gradient sum clipped to a bound that adapts."
    numbers = {number.label: (number.text, number.note) for number in answer.numbers}
    assert "Bound h" not in numbers
    noise, users = (
        format_number(half_widths[first.best_cell.cell_index], 2)
        for half_widths in (losses.half_widths, losses.users_half_widths)
    )
    assert numbers["Loss on users held out"][0] == format_number(losses.means[first.best_cell.cell_index])
    assert numbers["95 % intervals"][0] == f"± {noise} noise, ± {users} users"
    assert numbers["Without privacy"][0] == format_number(floor)
    assert numbers["Guessing"][0] == format_number(guess)
    assert answer.relative_error.share == pytest.approx(0.01 / (guess - floor))
    facts = dict(answer.facts)
    assert any("or a method by these curves" in assumed for assumed in answer.assumptions)
    assert "by stopping early" in facts["Where the loss comes from"]
    assert "hardly any protection" not in answer.detail
    other = answer_for(with_loss(full_solution, AVERAGES, floor - 0.2))
    assert other.headline == "Train with smooth weights of at most one row per user."
    numbers = {number.label: number.text for number in other.numbers}
    assert numbers["Bound h"] == format_number(1.0)
    assert words.describe_cell(Cell(Method.SMOOTH, 2.5)) == "smooth weights of at most 2.5 rows per user"
    private = replace(with_loss(full_solution, AVERAGES, floor - 0.2), data=TrainingData(
        replace(MADE.dataset, disclosure=Disclosure.PRIVATE), "an account", scaling=MADE.scaling
    ))  # fmt: skip
    assert "An adaptive bound needs no choice" in answer_for(private).detail
    weak = answer_for(build_solution(replace(PARAMETERS, epsilon=30.0, delta=0.1)))
    assert "hardly any protection" in weak.detail


def test_a_budget_that_is_too_small_is_said_so(full_solution):
    parameters = replace(PARAMETERS, epsilon=0.01)
    small = build_solution(parameters, RunTable(make_experiment(parameters), full_solution.table.scores))
    guess = small.runs.references.guessing_scores[:, 1, 0, 0]
    scores = small.table.scores.copy()
    for more, headline in (
        (2.0, "Do not train with this budget: guessing does better."),
        (1e-3, "Not clear whether training beats guessing with this budget."),
    ):
        sway = np.array([-0.05, 0.02, 0.03])
        scores[:, :, 1, 0, 0] = (guess + sway + more)[np.arange(9) % 3]
        solution = build_solution(small.parameters, RunTable(small.table.experiment, scores))
        assert (solution.is_useless, solution.is_unclear) == (more > 1, more < 1)
        answer = answer_for(solution)
        assert answer.headline == headline
        if solution.is_useless:
            assert answer.numbers[0].label == "Loss on users held out"  # no bound is recommended
            assert not answer.near_optimal
            assert "Every curve lies beyond" in str(
                plotly_figures.draw_plot(plots.plot_bounds(solution, Measure.LOSS, ScoreUnit.ROWS)).layout
            )


@pytest.mark.long
def test_other_losses_paces_and_relations_are_drawn(full_solution):
    for changes in (
        {"loss": LossKind.SQUARED},
        {"pace": Pace.ENTERED, "steps": 5, "neighbours": Neighbours.REPLACE_VALUES},
        {"loss": LossKind.HINGE, "neighbours": Neighbours.REPLACE_USER},
    ):
        other = build_solution(replace(PARAMETERS, runs=3, **changes))
        names = {
            t.name
            for t in plotly_figures.draw_plot(plots.plot_bounds(other, Measure.LOSS, ScoreUnit.ROWS)).data
        }
        assert {"Smooth weights", "Cap, random rows", "Clipped sum", "Clipped sum, adaptive bound"} <= names
        # The squared loss has no bounded slope.
        assert ("Output perturbation" in names) is (changes.get("loss") is not LossKind.SQUARED)
        assert answer_for(other).code is not None


def test_labels_on_one_side_are_an_input_error():
    with pytest.raises(InvalidInput, match="nothing to tell apart"):
        make_experiment(replace(PARAMETERS, positive_above=3.0))


@pytest.mark.long
def test_first_runs_make_a_figure_and_a_card_that_say_so(full_solution):
    parameters = replace(PARAMETERS, runs=12)
    seen: list[RunTable] = []
    experiment.fill_table(
        make_experiment(parameters).make_empty_table(), on_update=seen.append, should_stop=lambda: bool(seen)
    )
    first = build_solution(parameters, seen[0])
    assert (first.table.runs_done.min(), first.table.runs_done.max()) == (0, 10)
    figure = plotly_figures.draw_plot(plots.plot_bounds(first, Measure.LOSS, ScoreUnit.ROWS))
    assert np.isfinite(read_curve(figure, "Clipped sum, adaptive bound")[1].astype(float)).all()
    # Curves of methods without a run are there, and empty: the figure is updated in place, curve by curve.
    assert not np.isfinite(read_curve(figure, "Smooth weights")[1].astype(float)).any()
    whole_figure = plotly_figures.draw_plot(plots.plot_bounds(full_solution, Measure.LOSS, ScoreUnit.ROWS))
    names, whole_names = ([t.name for t in f.data if t.mode != "text"] for f in (figure, whole_figure))
    assert names == whole_names
    answer = answer_for(first)
    assert "10 of 12 runs so far" in answer.detail


def test_the_table_and_the_files_hold_every_cell(full_solution):
    frame = pd.DataFrame(training_answer.tabulate_methods(full_solution))
    assert len(frame) == len(full_solution.cells)
    assert frame["Loss"].to_numpy() == pytest.approx(
        full_solution.table.summarise(Measure.LOSS, ScoreUnit.ROWS).means
    )
    sides = plots.plot_sides(full_solution).columns
    cells = full_solution.table.find_cell_indices(Method.CLIPPED_SUM)
    users = full_solution.table.summarise(Measure.LOSS, ScoreUnit.USERS, 0).means[cells]
    assert sides["loss_users_trained_on"] == pytest.approx(users)
    assert '"schema": "sweetspot/training/2"' in answer_for(full_solution).write_json()


@pytest.fixture(scope="module")
def page() -> AppTest:
    """One session for the tests of the wiring; each leaves the settings as they were."""
    return open_small()


def assert_methods(figure, full_solution: TrainingSolution, means: np.ndarray) -> None:
    """Every method at its best bound, those far worse than guessing at the edge."""
    drawn = {
        plot_trace["name"]: numbers(plot_trace["y"])
        for plot_trace in figure["data"]
        if plot_trace.get("y") != [None]
    }
    assert list(drawn["Recommended"]) == [pytest.approx(means[full_solution.best_cell.cell_index], rel=1e-9)]
    best = full_solution.cells[full_solution.best_cell.cell_index].method
    first = sorted(full_solution.parameters.methods, key=lambda method: method is not Method.FOLLOWED)
    order = [method for method in first if method is not best]
    others = drawn["Other methods, at their best bounds"]
    seen = 0
    for method, item in zip(order, others, strict=True):
        if math.isfinite(item):
            assert item == pytest.approx(
                means[full_solution.best_cell_by_method[method].cell_index], rel=1e-9
            )
            seen += 1
    far = drawn.get("Beyond this axis: far worse than guessing", np.array([np.nan]))
    assert seen + np.isfinite(far).sum() == len(order)
    assert seen >= 2


@pytest.mark.long
def test_the_page_shows_what_the_core_finds(page, full_solution):
    app = open_tab(page, "Behind the answer")
    assert_methods(
        chart(app, "training_methods_loss"),
        full_solution,
        full_solution.table.summarise(Measure.LOSS, ScoreUnit.ROWS).means,
    )
    card_answer = read_number(app, "training_card")
    assert float(card_answer["copied"]) == pytest.approx(answer_for(full_solution).numbers[0].value)
    text = shown_texts(app)
    assert "9 runs of every method at every bound" in text
    assert "Curves are simulated" in text
    assert "Safe to publish" in text
    app.session_state["training.measure"], app.session_state["training.over"] = (
        Measure.ACCURACY,
        ScoreUnit.USERS,
    )
    check(app.run())
    drawn_means = full_solution.table.summarise(Measure.ACCURACY, ScoreUnit.USERS).means
    assert_methods(chart(app, "training_methods_accuracy"), full_solution, drawn_means)
    app.session_state["training.measure"], app.session_state["training.over"] = Measure.LOSS, ScoreUnit.ROWS
    for tab in ("Rows and users", "Theory", "Downloads", "How this is computed"):
        open_tab(app, tab)
    assert "A bound that follows the users." in shown_texts(app)


@pytest.mark.long
def test_a_slider_moved_back_has_its_answer_at_once(page):
    app = open_tab(page, "Behind the answer")
    page_text_before, result = shown_texts(app), app.session_state[JOB].result
    wait_for_runs(check(app.select_slider(key=keys.EPSILON_SLIDER).set_value(2.0).run()))
    assert shown_texts(app) != page_text_before
    check(app.select_slider(key=keys.EPSILON_SLIDER).set_value(1.0).run())
    assert app.session_state[JOB].result is result  # nothing was started
    assert shown_texts(app) == page_text_before


@pytest.mark.long
def test_runs_on_the_sample_are_made_once_for_all_sessions(monkeypatch):
    begun: list[int] = []

    def fill(table, *, should_stop, on_update=None, **options):
        if on_update is None:  # Runs that decide between the closest, as the second makes them.
            return experiment_fill(table, should_stop=should_stop, **options)
        begun.append(int(table.runs_done.sum()))
        tables: list[RunTable] = []

        def tell(more):
            tables.append(more)
            on_update(more)

        def stop():
            return should_stop() or bool(tables and len(begun) == 1)

        return experiment_fill(table, on_update=tell, should_stop=stop, **options)

    experiment_fill = experiment.fill_table
    monkeypatch.setattr(experiment, "fill_table", fill)
    sample = {"link": "1", "epsilon": "1", "source": "sample", "runs": "2", "splits": "1"}
    # The first is stopped early; the second goes on; the third has it all.
    first = wait_for_runs(open_app(TITLE, **sample))
    result = first.session_state[JOB].result
    second = wait_for_runs(open_app(TITLE, **sample))
    assert 0 < result.table.runs_done.sum() < 2 * len(result.table.experiment.cells)
    assert begun == [0, int(result.table.runs_done.sum())]
    assert "2 runs of every method at every bound" in shown_texts(second)
    third = check(open_app(TITLE, **sample))
    assert len(begun) == 2
    assert "2 runs of every method at every bound" in shown_texts(third)
    # Generated data and uploads stay with their session.
    generated = wait_for_runs(open_app(TITLE, **LINK | {"runs": "2", "data_seed": "3"}))
    assert begun[2:] == [0]
    answers = cache_of_pages.get_result_store(JOB, True, training_answer.MAX_CACHED_TABLES)
    assert answers.get_result(third.session_state[JOB].request) is not None
    assert answers.get_result(generated.session_state[JOB].request) is None


@pytest.mark.long
def test_releases_are_made_on_request_only_counted_and_kept(page, monkeypatch):
    app = open_tab(page, "Release")
    assert "Spent on these data" not in shown_texts(app)
    assert "all 60 users" in shown_texts(app)

    def fails(self, argument):
        raise InvalidInput(["the sampler broke off"])

    with monkeypatch.context() as patched:
        patched.setattr(opendp.Measurement, "__call__", fails)
        release_model(app)
    assert "The sampler broke off" in errors(app)
    assert "1 release of these rows that ended in an error" in shown_texts(app)
    release_model(app)
    (model,) = [frame.value for frame in app.dataframe if "θ" in frame.value.columns]
    assert len(model) == 3
    assert "ε = 2, δ = 0.00002 in 2 releases (add or remove one user)" in shown_texts(app)
    with monkeypatch.context() as patched:
        work_waits_for_stop(patched)
        check(app.button(key="training_release").click().run())
        assert not [button for button in app.button if button.key == "training_release"]
        app.session_state["training.release_job"].stop()
        finish(app, "training.release_job")
    assert "nothing was spent" in shown_texts(app)
    assert "in 2 releases" in shown_texts(app)
    go(app, "Mean")
    open_tab(go(app, TITLE), "Release")
    (kept,) = [frame.value for frame in app.dataframe if "θ" in frame.value.columns]
    assert kept["θ"].tolist() == model["θ"].tolist()
    assert "The last bound was" in shown_texts(app)
    app.selectbox(key="training.bounded_by").set_value(Method.SMOOTH)
    wait_for_runs(check(app.number_input(key="training.bound").set_value(2.0).run()))
    assert "settings have changed" in shown_texts(app)
    assert "at most 2 rows per user" in shown_texts(app)
    wait_for_runs(check(app.selectbox(key="training.bounded_by").set_value(Method.CAP).run()))
    release_model(app)
    assert "Trained with a cap: at most 2 rows per user, drawn at random" in shown_texts(app)
    account = app.session_state["training.release_job"].request[0]
    (line, *_) = releases.list_model_lines(app.session_state["training.draws"][account], Ledger())
    assert "a cap: at most 2 rows per user" in line.note
    assert line.disclosure is Disclosure.DP_RELEASE
    wait_for_runs(check(app.number_input(key="training.bound").set_value(1.5).run()))
    assert "draws a whole number of rows" in errors(app)
    wait_for_runs(check(app.selectbox(key="training.bounded_by").set_value(Method.FOLLOWED).run()))
    wait_for_runs(check(app.number_input(key="training.bound").set_value(1.0).run()))
    # Other rows have an account of their own.
    wait_for_runs(check(app.number_input(key="training.data_seed").set_value(9).run()))
    assert "Spent on these data" not in shown_texts(app)
    wait_for_runs(check(app.number_input(key="training.data_seed").set_value(1).run()))


@pytest.mark.long
def test_stopped_runs_are_a_result_that_goes_on(monkeypatch, full_solution):
    work_waits_for_stop(monkeypatch)
    app = open_app(TITLE, **LINK)
    assert app.session_state[JOB].is_running
    app.session_state[JOB].stop()
    wait_for_runs(app)
    assert "Stopped after" in shown_texts(app) or not list_metrics(app)
    monkeypatch.undo()
    app.button(key="training_again").click()
    wait_for_runs(check(app.run()))
    assert "9 runs of every method at every bound" in shown_texts(app)
    assert_methods(
        chart(app, "training_methods_loss"),
        full_solution,
        full_solution.table.summarise(Measure.LOSS, ScoreUnit.ROWS).means,
    )
