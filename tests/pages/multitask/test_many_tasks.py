"""Multi-task weights on the page: it shows what `dpcore.multitask` answers; labels follow; long work ends."""

from __future__ import annotations

import csv
import re
from dataclasses import replace

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Disclosure
from dpcore.common.wording import format_number
from dpcore.multitask import exact
from dpcore.multitask.answer import sections, solve
from dpcore.multitask.answer import solution as core
from dpcore.multitask.experiment import Algorithm, Experiment, run_experiment
from dpcore.multitask.parameters import MultitaskParameters, TaskSource
from dpcore.multitask.problem import (
    Loss,
    PrivacyTarget,
    TaskGraph,
    TaskProblem,
    compare_budgets,
    compute_exact_budget,
)
from dpcore.multitask.sampling import compute_cost_factor, release_counts
from dpcore.multitask.weights import BudgetFit, WeightRule, compute_skew
from pages.multitask.question import QUESTION, list_answer_fields, propose_values
from pages.shared.base import keys
from pages.shared.card import cards
from pages.shared.screen import layout
from pages.shared.session import session
from tests.pages.driving import (
    chart,
    check,
    errors,
    finish,
    go,
    list_metrics,
    open_app,
    read_shown_link,
    shown_texts,
    trace,
)
from tests.pages.multitask.conftest import (
    SMALL,
    TARGET,
    WITH_TASKS,
    WITHOUT,
    assert_answer,
    build_answer_of,
    build_small_problem,
    solve_small,
)

PAGE = "Multi-task weights"
TASK_TABS = ("Weights", "Users and tasks", "Exact optimum", "Private counts", "Budget", "Experiment")
TABS = (layout.BEHIND, *TASK_TABS, layout.DOWNLOADS, layout.COMPUTED)


@pytest.fixture(scope="module")
def opened_page() -> AppTest:
    """One session for the module."""
    return open_app(PAGE)


@pytest.fixture
def app(opened_page: AppTest) -> AppTest:
    """The module's session on few generated tasks, with nothing else entered."""
    opened_page.session_state[keys.LOADED_DATA] = replace(
        opened_page.session_state[keys.LOADED_DATA], dataset=WITHOUT
    )
    names = {name: QUESTION.get_initial_value(name) for name in QUESTION.fields}
    jobs = {name: None for name in QUESTION.origins_by_entry if "_job" in name}
    return open_tab(enter_fields(opened_page, epsilon=1.0, **{**names, **SMALL, **jobs}), layout.BEHIND)


def enter_fields(app: AppTest, **values: object) -> AppTest:
    """Set fields by name, and run."""
    for name, value in values.items():
        app.session_state["epsilon" if name == "epsilon" else f"multitask.{name}"] = value
    return check(app.run())


def open_tab(app: AppTest, name: str) -> AppTest:
    if app.session_state["multitask.tabs"] != name:
        app.session_state["multitask.tabs"] = name
        app.run()
    return check(app.run())


def test_epsilon_and_delta_set_the_budget_and_nothing_is_computed_anew(app, monkeypatch):
    check(app.run())  # Caches are empty where something is patched.
    figure_before = chart(app, "many_tasks_weights")
    monkeypatch.setattr(core, "WeightComparison", None)
    app.select_slider(key=keys.EPSILON_SLIDER).set_value(0.1)
    check(app.number_input(key="multitask.delta").set_value(1e-8).run())
    budget = {metric.label: metric.value for metric in list_metrics(app)}["User budget β"]
    assert budget == format_number(compute_exact_budget(PrivacyTarget(0.1, 1e-8)))
    assert chart(app, "many_tasks_weights") == figure_before


def test_the_exponent_moves_the_answer_and_not_the_axes(app):
    assert "these are generated" in shown_texts(app)
    assert cards.BADGE_BY_DISCLOSURE[Disclosure.PUBLIC][0] in shown_texts(app)
    before = chart(app, "many_tasks_weights")["layout"]
    problem = build_small_problem()
    sizes, uniform = problem.graph.task_sizes, WeightRule(0.0).allocate(problem)
    for mu in (0.0, 0.25, 1.0):
        check(app.slider(key="multitask.exponent").set_value(mu).run())
        ends, ratios = (
            values.reshape(5, 3) for values in trace(chart(app, "many_tasks_weights"), "Fifths of the tasks")
        )
        # The bound of a fifth is the sum of its tasks' bounds.
        fifths = np.array_split(np.argsort(sizes, kind="stable"), 5)
        bounds = WeightRule(mu).allocate(problem).task_bounds
        assert ratios[:, 0] == pytest.approx([bounds[f].sum() / uniform.task_bounds[f].sum() for f in fifths])
        assert ends[:, :2].tolist() == [[sizes[f].min(), sizes[f].max()] for f in fifths]
        layout_now = chart(app, "many_tasks_weights")["layout"]
        for axis in ("xaxis", "yaxis", "yaxis2"):
            assert layout_now[axis]["range"] == before[axis]["range"]
    check(app.button(key="tasks_use_best").click().run())
    assert app.slider(key="multitask.exponent").value == solve_small().comparison.exponent_curve.optimum[0]
    assert "tasks_use_best" not in [button.key for button in app.button]


@pytest.mark.long
def test_every_tab_is_drawn_for_every_source(app):
    enter_fields(app, source=TaskSource.HEAVY_TAILED, zipf_exponent=1.5)
    for loss in Loss:
        enter_fields(app, loss=loss)
        for name in TABS:
            app.session_state["multitask.tabs"] = name  # Run once: the next tab is the second run.
            assert not check(app.run()).error, name


def test_the_table_of_tasks(app):
    open_tab(app, "Users and tasks")
    problem = build_small_problem()
    chosen, uniform = WeightRule(0.5).allocate(problem), WeightRule(0.0).allocate(problem)
    frame = app.dataframe[0].value.set_index("Task").sort_index()
    assert frame["Users"].tolist() == problem.graph.task_sizes.tolist()
    assert frame["Weight, mean"].to_numpy() == pytest.approx(chosen.mean_weights)
    assert frame["Error bound against uniform"].to_numpy() == pytest.approx(
        chosen.task_bounds / uniform.task_bounds
    )
    assert frame["Share of the total error"].sum() == pytest.approx(1.0)


@pytest.mark.long
def test_exact_optima_are_held_against_their_kind_and_against_cvxpy(app, monkeypatch):
    open_tab(app, "Exact optimum")
    assert "Not computed yet" in shown_texts(app)
    finish(check(app.button(key="multitask_optimum_job_start").click().run()), "multitask.optimum_job")
    problem = build_small_problem()
    same, anything = (
        exact.find_best_task_weights(problem, 1e-6),
        exact.find_best_user_task_weights(problem, 1e-6),
    )
    clipped = WeightRule(0.5).allocate(problem)

    def further() -> float:
        (percent,) = re.findall(r"The exact optimum would gain a further ([\d.]+)", shown_texts(app))
        return float(percent)

    gained = 1.0 - anything.total_bound / clipped.total_bound
    assert further() == pytest.approx(100.0 * gained, rel=0.06)
    frame = app.dataframe[0].value.set_index("Weights")
    assert frame.loc["Exact optimum, problem (9)", "Total bound"] == pytest.approx(
        same.total_bound / anything.total_bound, rel=3e-4
    )
    unclipped = WeightRule(0.5, BudgetFit.NOBODY_CLIPPED).allocate(problem)
    assert frame.loc["μ = 0.5, nobody clipped", "Above the optimum of its kind"] == pytest.approx(
        100.0 * (unclipped.total_bound / same.total_bound - 1.0), abs=0.05
    )
    assert frame.loc["μ = 0.5, clipped, c = 1", "Largest weight skew"] == pytest.approx(
        100.0 * compute_skew(clipped).max()
    )
    assert (frame.loc[frame["Users of a task"] == "weigh the same", "Largest weight skew"] < 1e-9).all()
    proved = "Proved: no choice of this kind is better by more than"
    finish(check(app.button(key="multitask_cvxpy_job_start").click().run()), "multitask.cvxpy_job")
    both = app.dataframe[-1].value.set_index("Solver")
    assert both["Total bound for β = 1"].to_numpy() == pytest.approx(
        same.total_bound * problem.budget, rel=2e-6
    )
    assert (both["No answer is below"] <= both["Total bound for β = 1"] * (1.0 + 1e-9)).all()
    assert "times as long as Sweet Spot" in shown_texts(app)
    with monkeypatch.context() as patched:
        patched.setattr(exact, "MAX_PAIRS", 10)
        check(app.run())
        assert "Offered up to 10" in shown_texts(app)
        assert "multitask_cvxpy_job_start" not in [button.key for button in app.button]
    open_tab(app, layout.BEHIND)
    assert shown_texts(app).count(proved) == 2

    # Where nobody is clipped, it is problem (9) that the card compares with; epsilon does not matter.
    app.select_slider(key=keys.EPSILON_SLIDER).set_value(5.0)
    check(app.selectbox(key="multitask.fit").set_value(BudgetFit.NOBODY_CLIPPED).run())
    gained = 1.0 - same.total_bound / unclipped.total_bound
    assert further() == pytest.approx(100.0 * gained, rel=0.06)

    # Other tasks: what was found no longer answers.
    check(app.number_input(key="multitask.graph_seed").set_value(2).run())
    assert "would gain a further" not in shown_texts(app)


@pytest.mark.long
def test_private_counts_cost_what_dpcore_says(app):
    enter_fields(
        open_tab(app, "Private counts"), count_share=0.3, count_max_tasks=3, count_covers=False, count_seed=7
    )
    problem = build_small_problem()
    counts = release_counts(problem.graph, 0.3 * problem.budget, 3, np.random.default_rng(7), 0.0)
    rest = TaskProblem(problem.graph, 0.7 * problem.budget)
    with_slack = WeightRule(0.5).allocate(rest, counts.usable_counts).total_bound
    plain = WeightRule(0.5).allocate(problem).total_bound
    metrics = {m.label: m.value for m in list_metrics(app)}
    assert metrics["Total bound with n̂ + s"] == f"{format_number(with_slack / plain)}×"
    assert (
        metrics["Cost factor"]
        == f"{format_number(compute_cost_factor(problem.graph.task_sizes, counts.usable_counts))}×"
    )
    assert "simulation: not a release" in shown_texts(app)
    # For a cleared field of a tab its default stands in, and it can be mended where it stands.
    check(app.number_input(key="multitask.count_share").set_value(None).run())
    usual = format_number(MultitaskParameters(1.0).count_share)
    assert f"The share of β for counts is empty. Enter a number. Until then {usual} is used" in errors(app)
    enter_fields(app, count_share=0.2, experiment_epsilons="one")
    assert "must be numbers separated by commas" in errors(app)
    assert "Until then 1, 5 is used" in errors(app)
    enter_fields(app, experiment_epsilons="2")
    assert not app.error


@pytest.mark.long
def test_both_budgets_are_shown(app):
    open_tab(app, "Budget")
    both = compare_budgets(TARGET)
    page_text = shown_texts(app)
    assert format_number(both.exact_budget, 4) in page_text
    assert format_number(both.sufficient_budget, 4) in page_text
    assert f"{1.0 / both.weight_gain:.3f}" in page_text
    check(app.select_slider(key=keys.EPSILON_SLIDER).set_value(20.0).run())  # above log(1 / delta)
    assert "does not apply" in shown_texts(app)


# --- data and labels ----------------------------------------------------------------------------------------


def test_tasks_of_private_data_are_taken_and_private(app):
    private = replace(WITH_TASKS, disclosure=Disclosure.PRIVATE)
    app.session_state[keys.LOADED_DATA] = session.LoadedData(private, session.Origin(session.UPLOADED))
    enter_fields(app, source=TaskSource.DATA)
    assert cards.BADGE_BY_DISCLOSURE[Disclosure.PRIVATE][0] in shown_texts(app)
    assert "release them first" in shown_texts(app)
    assert "source=data" in read_shown_link(app)
    # A name that stands in private rows alone has a number; one of a public list is shown.
    open_tab(app, "Users and tasks")
    assert set(app.dataframe[0].value["Name"]) == {f"task {task}" for task in range(len(private.task_names))}
    app.session_state[keys.ITEM_NAMES] = {private.task_names[3]: "Chair"}
    check(app.run())
    assert app.dataframe[0].value.set_index("Task")["Name"][3] == "Chair"
    assert "names 1 of the" in shown_texts(app)
    graph = TaskGraph.from_pairs(WITH_TASKS.pairs, WITH_TASKS.histogram.num_users)
    of_data = TaskProblem(graph, compute_exact_budget(TARGET))
    solution = solve_small(private, source=TaskSource.DATA)
    assert_answer(build_answer_of(solution, private), of_data, WeightRule(0.5))
    with pytest.raises(InvalidInput, match="these data have none"):
        solve(WITHOUT, solution.parameters)
    # Nothing puts the best exponent, which these data say, among the settings that a link or a report holds.
    check(app.slider(key="multitask.exponent").set_value(1.0).run())
    far = WeightRule(1.0).allocate(solution.comparison.problem)
    assert replace(solution.comparison, allocation=far).recommendation[0] != 1.0
    assert "tasks_use_best" not in [button.key for button in app.button]
    check(app.slider(key="multitask.exponent").set_value(0.5).run())
    # A source chosen by hand stays when pages change, and generated tasks are public.
    check(app.selectbox(key="multitask.source").set_value(TaskSource.HEAVY_TAILED).run())
    go(go(app, "Home"), PAGE)
    assert app.selectbox(key="multitask.source").value is TaskSource.HEAVY_TAILED
    assert cards.BADGE_BY_DISCLOSURE[Disclosure.PRIVATE][0] not in shown_texts(app)


@pytest.mark.long
def test_data_without_tasks_are_said_and_lead_to_your_data(app):
    enter_fields(app, source=TaskSource.DATA)
    assert "have no tasks" in shown_texts(app)
    for name in ("Budget", "Experiment", layout.COMPUTED):
        open_tab(app, name)
    check(app.selectbox(key="multitask.source").set_value(TaskSource.SKEWED).run())
    assert chart(app, "many_tasks_weights")["data"]


def test_downloads_hold_the_shown_weights(app):
    problem = build_small_problem()
    chosen = WeightRule(0.5).allocate(problem)
    scaled = solve_small().comparison.allocation.with_budget(problem.budget)
    assert scaled.task_weights == pytest.approx(chosen.task_weights)
    lines = sections.write_task_weights(scaled, Disclosure.PRIVATE.label).splitlines()
    assert "do not publish" in lines[0]
    rows = list(csv.DictReader(lines[1:]))
    assert [float(r["factor"]) for r in rows] == pytest.approx(chosen.task_weights)
    open_tab(app, layout.DOWNLOADS)
    assert len(app.segmented_control(key="multitask.download").options) == 2
    assert f"{problem.graph.num_pairs:,} lines" in shown_texts(app)
    assert f"BUDGET = {problem.budget!r}" in shown_texts(app)


def test_a_single_user_has_no_logarithm(app):
    enter_fields(app, num_users=1, fit=BudgetFit.LOGARITHMIC)
    assert "The number of users must be a whole number between 2" in errors(app)


@pytest.mark.long
def test_the_experiment_runs_on_the_page(app):
    enter_fields(app, experiment_epsilons="5", experiment_users=300, experiment_repeats=2, experiment_seed=3)
    open_tab(app, "Experiment")
    assert "It has not run yet" in shown_texts(app)
    finish(check(app.button(key="multitask_experiment_job_start").click().run()), "multitask.experiment_job")
    expected = run_experiment(Experiment(epsilons=(5.0,), repeats=2, seed=3, num_users=300))
    panels = [(Algorithm.SUFFICIENT_STATISTICS, 2.0, 5.0), (Algorithm.GRADIENT_DESCENT, 1.0, 5.0)]
    mu, curve_values = trace(chart(app, "many_tasks_experiment_1_2"), "ε = 5")
    assert mu.tolist() == list(expected.experiment.exponents)
    assert curve_values == pytest.approx(expected.summarise(panels[0], is_relative=True).means)
    check(app.segmented_control(key="multitask.relative").set_value(False).run())
    _, curve_values = trace(chart(app, "many_tasks_experiment_2_1"), "ε = 5")
    assert curve_values == pytest.approx(expected.summarise(panels[1]).means)
    check(app.number_input(key="multitask.experiment_seed").set_value(4).run())
    assert "results are for earlier settings" in shown_texts(app)


def test_the_tasks_of_the_data_are_proposed_and_a_generator_in_use_stays():
    assert WITH_TASKS.pairs is not None
    assert WITHOUT.pairs is None
    for now in (None, *TaskSource):
        assert propose_values(WITH_TASKS, {"source": now}) == {"source": TaskSource.DATA}
    for now in (None, TaskSource.DATA):
        assert propose_values(WITHOUT, {"source": now}) == {"source": TaskSource.SKEWED}
    for now in (TaskSource.SKEWED, TaskSource.HEAVY_TAILED):
        assert propose_values(WITHOUT, {"source": now}) == {}


def test_a_report_names_the_fields_that_made_its_tasks():
    of_answer = {"epsilon", "delta", "source", "loss", "exponent", "fit", "max_tasks"}
    generated = {"num_users", "num_tasks", "tasks_per_user", "graph_seed"}
    for source, of_generator in (
        (TaskSource.DATA, set()),
        (TaskSource.SKEWED, generated | {"skew"}),
        (TaskSource.HEAVY_TAILED, generated | {"zipf_exponent", "user_spread"}),
    ):
        assert (
            set(QUESTION.get_report_labels(*list_answer_fields(MultitaskParameters(1.0, source=source))))
            == of_answer | of_generator
        )
    assert "log_constant" in list_answer_fields(MultitaskParameters(1.0, fit=BudgetFit.LOGARITHMIC))
