"""The best bound over ε, and candidate bounds, of every question that declares them; against brute force."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpcore.answer import against
from dpcore.answer.against import BoundComparison
from dpcore.common import weights
from dpcore.common.privacy import Neighbours
from dpcore.common.programs import Program
from dpcore.common.progress import ShouldStop
from dpcore.contributions import ContributionHistogram
from dpcore.data import samples
from dpcore.data_owners.bounds import Unit
from dpcore.data_owners.parameters import OwnersSource
from dpcore.factorisation.parameters import RatingSource
from dpcore.multitask.parameters import MultitaskParameters
from dpcore.multitask.problem import compute_exact_budget
from dpcore.quantile.parameters import Weighting
from dpcore.report import plotly_figures
from dpcore.training import decision
from dpcore.training.account import plan_noise
from dpcore.training.mechanism import Pace
from dpcore.training.parameters import TrainingParameters
from dpcore.training.rows import prepare_rows
from dpcore.training.training_data import load_sample
from pages.shared.base import catalogue
from pages.shared.screen import compare_tab
from tests.pages.driving import chart, check, finish, go, list_figure_keys, open_app, open_tab, shown_texts

SIZES, USERS = np.array([1, 2, 5, 40]), np.array([50, 30, 15, 5])
DATA = samples.load("shop-events")
SETTINGS: dict[str, dict[str, Any]] = {
    "mean": {"lower": 0.0, "upper": 60.0},
    "total": {},
    "learning": {},
    "gap_examples": {},
    "quantile": {"low": 0.0, "high": 60.0},
    "per_group": {},
    "start": {"bound": 3},
    "data_owners": {"source": OwnersSource.DATA, "unit": Unit.OWNER, "shared": 20},
    "factorisation": {"num_users": 300, "num_items": 200, "ratings_per_user": 20.0},
}


def compare(name: str, data: Any = DATA, **settings: Any) -> Any:
    """Return what a page compares over ε under these settings, or its sentence on why there is nothing."""
    question = catalogue.QUESTION_BY_NAME[name]
    answer_module = compare_tab.import_answer_module(name)
    return answer_module.compare_over_epsilon(data, question.parameters_type(**{"epsilon": 1.0, **settings}))


def compare_bounds(name: str, **changes: Any) -> BoundComparison:
    return compare(name, **(SETTINGS[name] | changes))


def toy() -> BoundComparison:
    """The error is |bound - 10 ε|: the best bound is 10 ε."""
    return BoundComparison(
        "Bound", "Error", lambda epsilon: (10.0 * epsilon, 0.0),
        lambda epsilon, bounds: np.abs(bounds - 10.0 * epsilon), SIZES, USERS,
    )  # fmt: skip


def test_every_question_with_an_epsilon_says_what_it_compares_or_why_not() -> None:
    for question in catalogue.PAGES:
        module = compare_tab.import_answer_module(question.name)
        assert hasattr(module, "compare_over_epsilon") == (question.parameters_type is not None), (
            question.name
        )


@pytest.mark.thinned
@pytest.mark.parametrize(
    "name", ["mean", "total", "learning", "gap_examples", "start", "data_owners", "factorisation"]
)
@pytest.mark.parametrize("epsilon", [0.02, 1.0, 20.0])
def test_the_best_bound_is_the_best_of_all_whole_ones(name: str, epsilon: float) -> None:
    comparison = compare_bounds(name)
    bound, error = comparison.compute_best_bound_and_error(epsilon)
    every = np.arange(1.0, float(np.max(comparison.distinct_contributions)) + 1.0)
    errors = comparison.compute_errors(epsilon, every)
    # A real bound between two whole ones may be better than both; a whole one never is better than the best.
    assert error <= errors.min() * (1 + 1e-9)
    assert comparison.compute_errors(epsilon, np.array([bound]))[0] == pytest.approx(error, rel=1e-12)


def test_fields_that_nothing_depends_on_make_no_work() -> None:
    for name, changes in (
        ("mean", {"own_bound": 3}),
        ("start", {"bound": 40}),
        ("total", {"own_bound": 2.0}),
    ):
        question = catalogue.QUESTION_BY_NAME[name]
        parameters = question.parameters_type(epsilon=0.4, **(SETTINGS[name] | changes))
        settings = question.parameters_type(epsilon=2.0, **SETTINGS[name])
        module = compare_tab.import_answer_module(name)
        key = against.build_cache_key(parameters, module.IGNORED_FIELD_NAMES)
        assert key == against.build_cache_key(settings, module.IGNORED_FIELD_NAMES)
        best = module.compare_over_epsilon(DATA, key).compute_best_bound_and_error(0.7)
        assert compare_bounds(name, **changes).compute_best_bound_and_error(0.7) == best


def test_where_there_is_nothing_to_compare_a_sentence_says_why() -> None:
    for name, changes, words in (
        ("quantile", {"weighting": Weighting.NONE, "program": Program.PYTHON}, "There is no bound"),
        ("factorisation", {"source": RatingSource.DATA}, "needs ratings"),
        ("per_group", {}, "no groups"),
    ):
        reason = compare(name, replace(DATA, pairs=None, tasks=None), **(SETTINGS[name] | changes))
        assert isinstance(reason, str)
        assert words in reason


@pytest.mark.parametrize("personal", [0, 300])
def test_ways_cross_where_their_bounds_are_alike(personal: int) -> None:
    comparison = compare("data_owners", personal=personal, personal_diameter=float(personal > 0))
    assert len(comparison.epsilons_with_change_labels) == 1 + (personal > 0)
    for epsilon, words in comparison.epsilons_with_change_labels:
        alone, nothing, joint, *full = comparison.compute_costs(
            np.array([epsilon * 0.99, epsilon, epsilon * 1.01])
        )
        assert len(full) == (personal > 0)
        other = full[0] if words.startswith("Full privacy") else joint
        assert other[1] == pytest.approx(alone[1], rel=1e-9)
        assert other[0] > alone[0]
        assert other[2] < alone[2]
        assert (nothing < np.minimum(joint, other)).all()
    epsilons, _ = against.compute_method_curves(comparison)
    assert {epsilon for epsilon, _ in comparison.epsilons_with_change_labels} <= set(epsilons.tolist())
    plot = against.plot_methods("owners", comparison, 1.0, DATA.provenance)
    traces = plotly_figures.draw_plot(plot).data
    assert [trace.name for trace in traces][: len(comparison.method_names)] == list(comparison.method_names)
    marked = [trace.x[0] for trace in traces if trace.mode == "markers"]
    assert marked == [epsilon for epsilon, _ in comparison.epsilons_with_change_labels]


def test_the_best_way_of_many_tasks_is_the_best_at_every_epsilon() -> None:
    parameters = MultitaskParameters(1.0, num_users=400, num_tasks=12, tasks_per_user=4.0)
    comparison = compare("multitask", num_users=400, num_tasks=12, tasks_per_user=4.0)
    epsilons = np.array([0.1, 1.0, 5.0])
    errors = comparison.compute_costs(epsilons)
    assert (errors[1] <= errors[0] * (1.0 + 1e-12)).all()
    # For strongly convex losses the bound is one over the budget, whatever divides it.
    budgets = [
        compute_exact_budget(replace(parameters, epsilon=float(epsilon)).target) for epsilon in epsilons
    ]
    assert np.allclose(errors * budgets, errors[:, :1] * budgets[0])
    assert errors[1, 1] / errors[0, 1] == pytest.approx(errors[1, 0] / errors[0, 0])


def noise_alone(eigenvalues: Any, mechanism: Any, deviation: float) -> float:
    """Expected excess from noise of this deviation in every step, by the answer to a push in each step alone."""
    first, excess = mechanism.average.find_first_step(mechanism.steps), 0.0
    for pushed in range(1, mechanism.steps + 1):
        theta, averaged = np.zeros(eigenvalues.size), np.zeros(eigenvalues.size)
        for step in range(1, mechanism.steps + 1):
            theta = theta - mechanism.learning_rate * (eigenvalues * theta + (step == pushed))
            averaged += theta * (step >= first) / (mechanism.steps - first + 1)
        excess += 0.5 * float(eigenvalues @ averaged**2) * deviation**2
    return excess


def test_training_predicts_what_its_formulas_say() -> None:
    sample = load_sample()
    settings = {"neighbours": Neighbours.REPLACE_VALUES, "pace": Pace.ENTERED}
    parameters, comparison = TrainingParameters(1.0, **settings), compare("training", sample, **settings)
    rows = parameters.make_experiment(
        prepare_rows(sample.dataset.table, sample.scaling, parameters.positive_above)
    ).train  # type: ignore[arg-type]
    eigenvalues = decision.compute_public_eigenvalues(rows, parameters.mechanism)
    all_values = np.geomspace(1.0, rows.histogram.max_size, 400)
    for epsilon in (0.1, 3.0, 30.0):
        mechanism = replace(parameters.mechanism, epsilon=epsilon)
        bound, error = comparison.compute_best_bound_and_error(epsilon)
        trade_off = decision.calibrate_trade_off(eigenvalues, mechanism)
        assert bound == weights.find_best_smooth(rows.histogram, trade_off).bound
        assert error <= comparison.compute_errors(epsilon, all_values).min() * (1.0 + 1e-12)
        # Without sampling error what is left is noise, step by step, where no budget goes to the sum of weights:
        # every user's counts are public.
        kept = float(rows.histogram.count_kept_rows(bound))
        noise = noise_alone(eigenvalues, mechanism, plan_noise(mechanism, bound).gradient_noise_std / kept)
        parts = (0.0, decision.calibrate_costs(eigenvalues, mechanism)[1])
        assert float(decision.predict_excess(rows.histogram, np.array(bound), parts)) == pytest.approx(
            noise, rel=1e-9
        )
    slow = compare("training", sample, sampled=0.5)
    assert (slow.is_slow, slow.compute_errors) == (True, None)


def test_curves_follow_epsilon_and_stop_when_told() -> None:
    shares: list[float] = []
    curves = against.compute_bound_curves(toy(), shares.append)
    assert np.allclose(curves.bounds, 10.0 * curves.epsilons)
    assert (curves.epsilons[0], curves.epsilons[-1], shares[-1]) == (*against.EPSILON_LIMITS, 1.0)
    stop: ShouldStop = lambda: len(shares) >= curves.epsilons.size + 3  # noqa: E731
    assert against.compute_bound_curves(toy(), shares.append, stop).bounds.size == 3
    bound_curves = against.compute_bound_curves(toy(), None, lambda: True)
    for plot in against.plot_best("toy", toy(), bound_curves, 1.0, None, DATA.provenance):
        (curve,) = [trace for trace in plotly_figures.draw_plot(plot).data if trace.name == "best at each ε"]
        assert len(curve.x) == 0


@pytest.mark.long
@pytest.mark.parametrize("name", ["quantile", "per_group"])
def test_slow_questions_are_worked_out_at_few_epsilons(name: str) -> None:
    comparison = compare_bounds(name)
    assert comparison.is_slow
    curves = against.compute_bound_curves(comparison)
    assert curves.epsilons.tolist() == list(against.COARSE_EPSILONS)
    # More ε, less error, but for subsamples.
    assert (np.diff(curves.errors) <= curves.errors[:-1] * 0.02).all()
    assert (curves.bounds >= 0.0).all()


def test_candidates_against_brute_force() -> None:
    per_user = np.repeat(SIZES, USERS)
    candidates = against.list_candidates(toy(), 0.7)
    assert [one.bound for one in candidates] == sorted({one.bound for one in candidates})
    for one in candidates:
        assert one.error == pytest.approx(abs(one.bound - 7.0))
        assert one.lost_contribution_share == pytest.approx(
            1.0 - np.minimum(per_user, one.bound).sum() / per_user.sum()
        )
        assert one.num_affected == (per_user > one.bound).sum()
    why = {one.bound: one.reason for one in candidates}
    assert why[7.0] == "best"
    assert why[1.0] == "median"  # 50 of 100 users have 1.
    assert why[5.0].replace("\xa0", " ") == "90 % of users have at most this; 95 % of users have at most this"
    assert why[40.0].replace("\xa0", " ") == "99 % of users have at most this; the most that a user has"
    assert why[10.0] == why[20.0] == "round number"
    rows = against.tabulate_candidates(candidates)
    assert [row["Against the best"] for row in rows if row["How it is come by"] == "best"] == [""]
    assert rows[-1]["Users over it"] == "0"


def test_quantiles_are_those_of_users_and_round_numbers_stay_few() -> None:
    rng = np.random.default_rng(3)
    for _ in range(30):
        counts = np.ceil(rng.pareto(0.7, size=int(rng.integers(1, 60))) + 1e-9) * int(rng.integers(1, 4))
        histogram = ContributionHistogram.from_counts(counts)
        comparison = BoundComparison(
            "", "", lambda e: (1.0, 0.0), lambda e, b: b, histogram.sizes, histogram.users
        )
        candidates = against.list_candidates(comparison, 1.0)
        for share, words in ((0.5, "median"), (0.9, "90"), (0.99, "99")):
            (candidate,) = [c for c in candidates if words in c.reason]
            assert candidate.bound == histogram.find_quantile(share)
        assert sum(c.reason == "round number" for c in candidates) <= against.MAX_ROUND_BOUNDS + 1


def test_the_tab_shows_curves_at_the_epsilon_in_use_and_answers_a_new_one() -> None:
    app = open_app("Mean")
    open_tab(app, "mean", "Compare")
    names = ["mean_bound_over_epsilon", "mean_error_over_epsilon"]
    assert [key for key in list_figure_keys(app) if "epsilon" in key] == names
    figure_before = chart(app, names[0])
    check(app.number_input(key="epsilon").set_value(0.3).run())
    figure_after = chart(app, names[0])
    assert figure_after["data"][0] == figure_before["data"][0]  # The curve stays, the point moves.
    assert figure_after["data"][1]["x"] != figure_before["data"][1]["x"]
    assert "Bounds that people take" in shown_texts(app)
    (table,) = app.dataframe
    best = table.value[table.value["How it is come by"] == "best"]
    (bound,) = best["Bound"].tolist()
    assert f"Keep at most {bound} rows per user" in shown_texts(app)  # As on the card.


def test_data_owners_shows_every_way_and_start_unfolds_it() -> None:
    app = open_app("Join or train alone")
    open_tab(app, "data_owners", "Compare")
    assert "data_owners_ways_over_epsilon" in list_figure_keys(app)
    assert "by the bounds, joining pays" in shown_texts(app)
    app = go(app, "Home")
    assert not [key for key in list_figure_keys(app) if "over_epsilon" in key]
    app.session_state["start_pinned"] = True
    check(app.run())
    assert len([key for key in list_figure_keys(app) if "over_epsilon" in key]) == 2
    assert "Bounds that people take" in shown_texts(app)


def test_slow_curves_are_worked_out_on_request() -> None:
    app = open_app("Group by")
    open_tab(app, "per_group", "Compare")
    assert not [key for key in list_figure_keys(app) if "epsilon" in key]
    check(app.button(key="per_group_against_job_start").click().run())
    finish(app, "per_group.against_job")
    assert len([key for key in list_figure_keys(app) if "epsilon" in key]) == 2
    check(app.number_input(key="epsilon").set_value(0.3).run())  # Another ε asks for nothing new.
    assert len([key for key in list_figure_keys(app) if "epsilon" in key]) == 2
