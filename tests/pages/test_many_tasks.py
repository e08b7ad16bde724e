"""Many tasks: what is drawn and said is what `dpcore.multitask` answers; labels follow the tasks; long work ends."""

from __future__ import annotations

import csv
import dataclasses
import re
from types import SimpleNamespace

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from dpcore.common import wording
from dpcore.common.privacy import Sensitivity
from dpcore.common.text_fields import to_fields
from dpcore.data import samples
from dpcore.multitask import bounds, exact, files, free
from dpcore.multitask.budget import PrivacyTarget, compare, exact_budget
from dpcore.multitask.experiment import Experiment, run
from dpcore.multitask.fit import BudgetFit, WeightRule
from dpcore.multitask.graph import TaskGraph, without_empty_tasks
from dpcore.multitask.parameters import LossKind, MultitaskParameters, TaskSource
from dpcore.multitask.problem import TaskProblem
from dpcore.multitask.sampling import best_uniform_sampling, uniform_sampling
from dpcore.multitask.search import SearchOptions
from dpcore.multitask.synthetic import HeavyTailed, SkewedTasks
from dpcore.multitask.weight_skew import skew_of
from pages.multitask import answer, card, detail_figures, figures, tabs
from pages.multitask.question import QUESTION, generator_fields, propose
from pages.shared import cards, keys
from tests.pages.driving import (
    SHOP_EVENTS,
    chart,
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

TARGET = PrivacyTarget(1.0, 1e-5)
TABS = (
    "Sizes and μ",
    "Users",
    "Tasks",
    "Exact optimum",
    "Private counts",
    "Budget",
    "Downloads",
    "How computed",
)
SMALL = {"num_users": "400", "num_tasks": "12", "tasks_per_user": "3"}


def problem_of(generator: SkewedTasks, kind: LossKind = LossKind.STRONGLY_CONVEX) -> TaskProblem:
    pairs, _ = without_empty_tasks(generator.draw(np.random.default_rng(1)))
    graph = TaskGraph.from_pairs(pairs, generator.num_users)
    return TaskProblem.from_graph(graph, exact_budget(TARGET), kind.loss)


DEFAULT = problem_of(SkewedTasks())


def open_small(**link: str) -> AppTest:
    return open_app("Many tasks", link="1", epsilon="1", **{**SMALL, **link})


def small_problem(kind: LossKind = LossKind.STRONGLY_CONVEX) -> TaskProblem:
    return problem_of(SkewedTasks(400, 12, 1.0, 3.0), kind)


def tab(at: AppTest, name: str) -> AppTest:
    """Open a tab; run twice, since state of widgets that are not drawn vanishes on the second run only."""
    at.session_state["multitask.parts"] = name
    fine(at.run())
    return fine(at.run())


def ratios(at: AppTest, name: str) -> np.ndarray:
    """Error ratios from tail to head as drawn: bars begin at 1, markers stand where they are."""
    (found,) = [t for t in chart(at, "many_tasks_buckets")["data"] if t.get("name") == name]
    values = numbers(found["y"])
    return values + 1.0 if found["type"] == "bar" else values


def assert_answer(at: AppTest, problem: TaskProblem, rule: WeightRule) -> None:
    """The page shows these weights on these tasks: buckets, weights, and the card's numbers."""
    chosen, uniform = rule.weights(problem), rule.with_exponent(0.0).weights(problem)
    buckets = bounds.by_size(chosen, uniform)
    assert ratios(at, f"μ = {rule.exponent:g}") == pytest.approx([b.bound / b.reference for b in buckets])
    sampled = best_uniform_sampling(problem)
    k = round(problem.budget / sampled.task_weights[0] ** 2)
    assert ratios(at, f"Uniform sampling, k = {k:,}") == pytest.approx(
        [b.bound / b.reference for b in bounds.by_size(sampled, uniform)]
    )
    sizes, weights = trace(chart(at, "many_tasks_weights"), f"μ = {rule.exponent:g}")
    drawn = dict(zip(sizes, weights, strict=True))
    for size in np.unique(problem.task_sizes):
        mean = chosen.mean_weights[problem.task_sizes == size].mean() / np.sqrt(problem.budget)
        assert drawn[float(size)] == pytest.approx(mean)
    assert at.metric[3].value == wording.number(problem.budget)
    used = chosen.budget_use[problem.required_graph().tasks_per_user > 0].mean() / problem.budget
    assert at.metric[1].value == wording.percent(float(used))
    power = 0.5 if problem.loss.value == 0 else 1.0
    ratio = (chosen.total_bound / uniform.total_bound) ** power
    if abs(ratio - 1.0) > 0.01 and ratio < 2.0:
        assert at.metric[0].value == f"{'−' if ratio < 1 else '+'}{wording.percent(abs(1.0 - ratio))}"


# --- the answer ---------------------------------------------------------------------------------------------


def test_the_first_screen_is_useful_without_tasks_in_the_data():
    at = open_app("Many tasks")
    assert_answer(at, DEFAULT, WeightRule(0.5))
    shown = shown_texts(at)
    assert "these are generated" in shown
    assert re.search(
        r"With μ = 1/2 the tail fifth of tasks gains [\d.]+×, the head loses [\d.]+×, the total", shown
    )
    assert cards.BADGES[Sensitivity.PUBLIC][0] in shown


@pytest.mark.parametrize("fit", BudgetFit)
@pytest.mark.parametrize("kind", LossKind)
def test_every_fit_and_loss(fit, kind):
    at = open_small(fit=fit.value, loss=kind.value, exponent="0.25", log_constant="0.5")
    assert_answer(at, small_problem(kind), WeightRule(0.25, fit, 0.5))
    assert ("depends on who contributed to which task" in shown_texts(at)) == (
        fit is BudgetFit.NOBODY_CLIPPED
    )


def test_the_exponent_moves_the_answer_and_not_the_axes():
    at = open_small()
    before = {
        key: chart(at, key)["layout"]["yaxis"]["range"]
        for key in ("many_tasks_buckets", "many_tasks_weights")
    }
    for mark in (0.0, 0.25, 1.0):
        fine(at.button(key=f"tasks_mark_{mark:g}").click().run())
        assert at.slider(key="multitask.exponent").value == mark
        assert_answer(at, small_problem(), WeightRule(mark))
        for key, limits in before.items():
            assert chart(at, key)["layout"]["yaxis"]["range"] == limits
    fine(at.slider(key="multitask.exponent").set_value(0.0).run())
    assert "With μ = 0 all tasks weigh the same" in shown_texts(at)


def test_the_curve_over_mu_is_computed_by_dpcore():
    at = open_small()
    problem, rule = small_problem(), WeightRule(0.0)
    mu, totals = trace(chart(at, "many_tasks_exponents"), "Total bound")
    expected = [rule.with_exponent(m).weights(problem).total_bound for m in mu]
    assert totals == pytest.approx(np.array(expected) / expected[0])
    (best,), _ = trace(chart(at, "many_tasks_exponents"), "Best μ")
    assert best == mu[np.argmin(totals)]


def test_an_own_sampling_is_compared():
    at = open_small(max_tasks="2")
    problem = small_problem()
    ratio = uniform_sampling(problem, 2).total_bound / WeightRule(0.0).weights(problem).total_bound
    side = "below" if ratio < 1.0 else "above"
    assert f"at your 2, {wording.percent(abs(1.0 - ratio))} {side} that of uniform weights" in shown_texts(at)


def test_epsilon_and_delta_set_the_budget_and_nothing_else():
    at = open_small()
    before = ratios(at, "μ = 0.5")
    at.select_slider(key=keys.EPSILON_SLIDER).set_value(0.1)
    fine(at.number_input(key="multitask.delta").set_value(1e-8).run())
    assert at.metric[3].value == wording.number(exact_budget(PrivacyTarget(0.1, 1e-8)))
    assert ratios(at, "μ = 0.5") == pytest.approx(before)


def test_few_tasks_have_few_buckets():
    assert "There is only one task" in shown_texts(open_small(num_tasks="1", tasks_per_user="1"))
    shown = shown_texts(open_small(num_tasks="3", tasks_per_user="1.5"))
    assert "the smallest task" in shown
    assert "tail fifth" not in shown


# --- the tabs -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TABS)
def test_every_tab_is_drawn_for_every_source(name):
    at = open_small(source="heavy-tailed", zipf_exponent="1.5")
    tab(at, name)
    assert not at.error
    fine(at.segmented_control(key="multitask.loss").set_value(LossKind.CONVEX).run())
    assert not at.error


def test_users_budget_use():
    at = tab(open_small(), "Users")
    problem = small_problem()
    graph = problem.required_graph()
    for name, mu in (("μ = 0.5", 0.5), ("Uniform weights", 0.0)):
        used = WeightRule(mu).weights(problem).budget_use[graph.tasks_per_user > 0] / problem.budget
        _, shares = trace(chart(at, "many_tasks_use"), name)
        assert shares.sum() == pytest.approx(1.0)
        assert shares[-1] == pytest.approx(np.mean(used >= 0.95 - 1e-9))
        tasks, mean = trace(chart(at, "many_tasks_users"), name)
        heaviest = graph.tasks_per_user[graph.tasks_per_user > 0] == tasks[-1]
        assert mean[-1] == pytest.approx(used[heaviest].mean())


def test_the_table_of_tasks():
    at = tab(open_small(), "Tasks")
    problem = small_problem()
    chosen, uniform = WeightRule(0.5).weights(problem), WeightRule(0.0).weights(problem)
    frame = at.dataframe[0].value.set_index("task").sort_index()
    assert frame["users"].tolist() == problem.task_sizes.tolist()
    assert frame["weight"].to_numpy() == pytest.approx(chosen.mean_weights)
    assert frame["bound_ratio"].to_numpy() == pytest.approx(chosen.task_bounds / uniform.task_bounds)
    assert frame["share"].sum() == pytest.approx(1.0)


def test_a_long_table_keeps_both_ends():
    parameters = MultitaskParameters(1.0, num_tasks=50, num_users=500, tasks_per_user=5.0)
    tasks = answer.load_tasks(parameters, samples.load("online-retail-lines"))
    rule = WeightRule(0.5)
    question = answer.WeightQuestion(1.0, parameters.loss.loss, rule)
    view = answer.compute(
        tasks,
        question,
        answer.curve(tasks, question.loss, rule),
        answer.best_sampling(tasks, question.loss),
    )
    columns, left_out = detail_figures.task_table(view, 10)
    ordered = np.sort(view.problem.task_sizes)
    assert left_out == ordered.size - 10
    assert columns["users"].tolist() == [*ordered[:5], *ordered[-5:]]


def test_exact_optima_are_held_against_their_kind():
    at = tab(open_small(), "Exact optimum")
    assert "not computed" in shown_texts(at)
    finished(fine(at.button(key="tasks_find").click().run()), "multitask.optimum_job")
    problem = small_problem()
    options = SearchOptions(1e-6)
    same, anything = exact.best_task_weights(problem, options), free.best_user_task_weights(problem, options)
    clipped = WeightRule(0.5).weights(problem)
    further = 1.0 - anything.total_bound / clipped.total_bound
    (said,) = re.findall(r"the exact optimum would gain a further ([\d.]+)", at.markdown[1].value)
    assert float(said) == pytest.approx(100.0 * further, rel=0.06)
    frame = at.dataframe[0].value.set_index("Weights")
    assert frame.loc["Exact optimum, problem (9)", "Total bound"] == pytest.approx(
        same.total_bound / anything.total_bound, rel=3e-4
    )
    unclipped = WeightRule(0.5, BudgetFit.NOBODY_CLIPPED).weights(problem)
    assert frame.loc["μ = 0.5, nobody clipped", "Above the optimum of its kind"] == pytest.approx(
        100.0 * (unclipped.total_bound / same.total_bound - 1.0), abs=0.05
    )
    assert frame.loc["μ = 0.5, clipped, c = 1", "Largest weight skew"] == pytest.approx(
        100.0 * skew_of(clipped).largest
    )
    assert (frame.loc[frame["Users of a task"] == "weigh the same", "Largest weight skew"] < 1e-9).all()
    shown = shown_texts(at)
    assert shown.count("Proved: no choice of this kind is better by more than") >= 4  # card and tab

    # Where nobody is clipped, it is problem (9) that the card compares with; epsilon does not matter.
    at.select_slider(key=keys.EPSILON_SLIDER).set_value(5.0)
    fine(at.selectbox(key="multitask.fit").set_value(BudgetFit.NOBODY_CLIPPED).run())
    further = 1.0 - same.total_bound / unclipped.total_bound
    (said,) = re.findall(r"the exact optimum would gain a further ([\d.]+)", at.markdown[1].value)
    assert float(said) == pytest.approx(100.0 * further, rel=0.06)

    # Other tasks: what was found no longer answers.
    fine(at.number_input(key="multitask.graph_seed").set_value(2).run())
    assert "would gain a further" not in shown_texts(at)


def test_private_counts_cost_what_dpcore_says():
    at = tab(
        open_small(count_share="0.3", count_max_tasks="3", count_covers="no", count_seed="7"),
        "Private counts",
    )
    problem = small_problem()
    from dpcore.multitask.counts import cost_factor, release_counts

    counts = release_counts(problem.required_graph(), 0.3 * problem.budget, 3, np.random.default_rng(7), 0.0)
    rest = TaskProblem.from_graph(problem.required_graph(), 0.7 * problem.budget)
    with_slack = WeightRule(0.5).weights(rest, counts.usable).total_bound
    plain = WeightRule(0.5).weights(problem).total_bound
    metrics = {m.label: m.value for m in at.metric}
    assert metrics["Total bound with n̂ + s"] == f"{wording.number(with_slack / plain)}×"
    assert metrics["Cost factor"] == f"{wording.number(cost_factor(problem.task_sizes, counts.usable))}×"
    assert "simulation: not a release" in shown_texts(at)


def test_both_budgets_are_shown():
    at = tab(open_small(), "Budget")
    both = compare(TARGET)
    shown = shown_texts(at)
    assert wording.number(both.exact, 4) in shown
    assert wording.number(both.sufficient, 4) in shown
    assert f"{both.weight_gain:.3f} times as large" in shown
    fine(at.select_slider(key=keys.EPSILON_SLIDER).set_value(20.0).run())  # above log(1 / delta)
    assert "does not apply" in shown_texts(at)


# --- data and labels ----------------------------------------------------------------------------------------


def with_shop_events(public: bool = False) -> AppTest:
    at = upload(open_app("Your data"), SHOP_EVENTS, "shop_events.csv")
    if public:
        fine(at.radio(key="your_data.upload_public").set_value(Sensitivity.PUBLIC).run())
    return go(use(at), "Many tasks")


def test_uploaded_tasks_are_taken_and_private():
    at = with_shop_events()
    assert at.selectbox(key="multitask.source").value is TaskSource.DATA
    shop = samples.load("shop-events")
    graph = TaskGraph.from_pairs(shop.pairs, shop.histogram.num_users)
    assert_answer(at, TaskProblem.from_graph(graph, exact_budget(TARGET)), WeightRule(0.5))
    assert cards.BADGES[Sensitivity.PRIVATE][0] in shown_texts(at)
    assert "release them first" in shown_texts(at)
    assert "source=data" in link_of(at)
    fine(at.selectbox(key="multitask.source").set_value(TaskSource.SKEWED).run())
    assert_answer(at, DEFAULT, WeightRule(0.5))
    assert cards.BADGES[Sensitivity.PRIVATE][0] not in shown_texts(at)


def test_data_without_tasks_are_said_and_lead_to_your_data():
    at = open_small(source="data")
    assert "do not say who contributes to which task" in shown_texts(at)
    for name in TABS:
        tab(at, name)
    fine(at.selectbox(key="multitask.source").set_value(TaskSource.SKEWED).run())
    assert_answer(at, small_problem(), WeightRule(0.5))


def test_a_source_chosen_by_hand_stays_when_pages_change():
    at = with_shop_events(public=True)
    fine(at.selectbox(key="multitask.source").set_value(TaskSource.HEAVY_TAILED).run())
    go(go(at, "Mean"), "Many tasks")
    assert at.selectbox(key="multitask.source").value is TaskSource.HEAVY_TAILED


def test_downloads_hold_the_shown_weights():
    problem = small_problem()
    chosen = WeightRule(0.5).weights(problem)
    lines = files.task_weights_csv(chosen, Sensitivity.PRIVATE.label).splitlines()
    assert "do not publish" in lines[0]
    rows = list(csv.DictReader(lines[1:]))
    assert [float(r["factor"]) for r in rows] == pytest.approx(chosen.task_weights)
    at = tab(open_small(), "Downloads")
    assert len(at.selectbox(key="multitask.download").options) == 2
    assert f"{problem.required_graph().num_pairs:,} lines" in shown_texts(at)
    assert f"BUDGET = {problem.budget!r}" in at.code[0].value + at.code[1].value
    assert any("reads" not in c for c in at.selectbox(key="multitask.download").options)


# --- refused input ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("multitask.delta", None, "Δ is empty"),
        ("multitask.delta", 0.9, "Delta must lie between"),
        ("multitask.num_users", 0, "Num_users must be a whole number"),
        ("multitask.tasks_per_user", 1000.0, "Tasks_per_user must lie between"),
        ("multitask.graph_seed", -1, "Graph_seed must be a whole number"),
    ],
)
def test_refused_input_gets_a_sentence_and_loses_nothing(key, value, said):
    at = open_small()
    fine(at.number_input(key=key).set_value(value).run())
    assert said.lower() in errors(at).lower()
    assert at.number_input(key=key).value == value
    fine(at.number_input(key=key).set_value(3).run())
    if key != "multitask.delta":
        assert not at.error


def test_refused_counts_can_be_mended_where_they_are_entered():
    at = tab(open_small(), "Private counts")
    fine(at.number_input(key="multitask.count_share").set_value(None).run())
    assert "Share of β for counts is empty" in errors(at)
    fine(at.number_input(key="multitask.count_share").set_value(0.2).run())
    assert not at.error
    assert "many_tasks_counts" in str(chart(at, "many_tasks_counts") and "many_tasks_counts")


def test_a_hostile_link_gets_sentences():
    at = open_app("Many tasks", link="1", epsilon="1", exponent="7", source="elsewhere")
    assert "Source cannot be read" in errors(at)
    assert "tail fifth" in shown_texts(at)


def test_a_single_user_has_no_logarithm():
    at = open_small(num_users="1", fit="logarithmic")
    assert "num_users must be a whole number between 2" in errors(at).replace("Num_users", "num_users")


def test_the_link_holds_every_setting():
    at = open_small(source="heavy-tailed", exponent="0.35", fit="full", experiment_epsilons="2")
    link = link_of(at)
    for text in (
        "source=heavy-tailed",
        "exponent=0.35",
        "fit=full",
        "experiment_epsilons=2",
        "num_users=400",
    ):
        assert text in link
    assert len(to_fields(MultitaskParameters(1.0))) < 35


# --- the experiment -----------------------------------------------------------------------------------------


def test_the_experiment_runs_on_the_page():
    at = open_small(
        experiment_epsilons="5", experiment_users="300", experiment_repeats="2", experiment_seed="3"
    )
    at.session_state["multitask.tabs"] = "The paper's experiment"
    fine(at.run())
    fine(at.run())
    assert "It has not run yet" in shown_texts(at)
    finished(fine(at.button(key="tasks_run").click().run()), "multitask.experiment_job")
    expected = run(Experiment(epsilons=(5.0,), repeats=2, seed=3, num_users=300))
    ratio, _ = expected.relative()
    mu, drawn = trace(chart(at, "many_tasks_experiment_1_2"), "ε = 5")
    assert mu.tolist() == list(expected.experiment.exponents)
    assert drawn == pytest.approx(ratio[0, 1, 0])
    fine(at.toggle(key="multitask.relative").set_value(False).run())
    _, drawn = trace(chart(at, "many_tasks_experiment_2_1"), "ε = 5")
    assert drawn == pytest.approx(expected.mean()[1, 0, 0])
    fine(at.number_input(key="multitask.experiment_seed").set_value(4).run())
    assert "results are for earlier settings" in shown_texts(at)


def test_a_stopped_experiment_shows_what_it_has():
    at = open_small(experiment_epsilons="1", experiment_users="50000", experiment_repeats="50")
    # Minutes of work: it cannot end by itself before it is stopped, however slowly the page is drawn.
    at.session_state["multitask.tabs"] = "The paper's experiment"
    fine(at.run())
    fine(at.button(key="tasks_run").click().run())
    at.session_state["multitask.experiment_job"].stop()
    finished(at, "multitask.experiment_job")
    shown = shown_texts(at)
    assert "Stopped after" in shown or "Stopped before the first run" in shown


# --- pure ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ratio", "said"),
    [(0.56, "falls by 44"), (1.0, "stays the same"), (1.25, "rises by 25"), (3.0, "rises to 3×")],
)
def test_words_for_a_change(ratio, said):
    assert said in card.fall(ratio)


def test_figures_have_at_most_500_points():
    rng = np.random.default_rng(1)
    sizes, values = rng.integers(1, 10**6, 5_000), rng.random(5_000)
    x, y = figures.by_distinct_size(sizes, values)
    assert x.size == y.size <= figures.MAX_POINTS
    assert (x[0], x[-1]) == (sizes.min(), sizes.max())


@pytest.mark.parametrize("count", [100, 5_000])
def test_every_task_is_in_the_figure_of_sizes_and_of_very_many_all_in_its_file(count):
    sizes = np.random.default_rng(2).integers(1, 10**6, count)
    tasks = SimpleNamespace(graph=SimpleNamespace(task_sizes=sizes))
    columns = figures.size_columns(tasks)
    assert list(columns["rank"]) == list(range(1, count + 1))
    assert list(columns["users"]) == sorted(sizes, reverse=True)
    (drawn,) = figures.size_figure(tasks).data
    if count <= 3_000:
        assert list(drawn.x) == list(columns["rank"])
    else:
        assert 300 < len(drawn.x) <= 3_000
        assert (drawn.x[0], drawn.x[-1]) == (1, count)
    assert list(drawn.y) == [sorted(sizes, reverse=True)[int(rank) - 1] for rank in drawn.x]


def test_the_page_hands_over_the_sizes_of_all_tasks(monkeypatch):
    shown = {}
    show = tabs.figures.show

    def recorded(fig, key, alt, data, *more, **named):
        shown[key] = data
        show(fig, key, alt, data, *more, **named)

    monkeypatch.setattr(tabs.figures, "show", recorded)
    at = tab(open_small(num_users="2000", num_tasks="400"), "Sizes and μ")
    (found,) = chart(at, "many_tasks_sizes")["data"]
    users = shown["many_tasks_sizes"]["users"]
    assert len(users) == len(numbers(found["x"])) > 300
    assert list(shown["many_tasks_sizes"]["rank"]) == list(range(1, len(users) + 1))


def test_the_tasks_of_the_data_are_proposed_and_a_generator_in_use_stays():
    with_tasks, without = samples.load("shop-events"), samples.load("online-retail-lines")
    assert with_tasks.pairs is not None
    assert without.pairs is None
    for now in (None, *TaskSource):
        assert propose(with_tasks, {"source": now}) == {"source": TaskSource.DATA}
    for now in (None, TaskSource.DATA):
        assert propose(without, {"source": now}) == {"source": TaskSource.SKEWED}
    for now in (TaskSource.SKEWED, TaskSource.HEAVY_TAILED):
        assert propose(without, {"source": now}) == {}


def test_a_report_names_the_fields_that_made_its_tasks():
    assert "skew" in generator_fields(TaskSource.SKEWED)
    assert {"zipf_exponent", "user_spread"} <= set(generator_fields(TaskSource.HEAVY_TAILED))
    assert generator_fields(TaskSource.DATA) == ()
    made = {TaskSource.SKEWED: SkewedTasks, TaskSource.HEAVY_TAILED: HeavyTailed}
    for source, generator in made.items():
        # What one needs to draw them again: all that the generator takes, and the seed.
        needed = {field.name for field in dataclasses.fields(generator)}
        asked = QUESTION.asked(*generator_fields(source))
        assert len(asked) == len(needed) + 2  # the seed, and epsilon
