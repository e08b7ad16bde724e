"""The best bound over ε, and candidate bounds, of every question that declares them; against brute force."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpcore.common.progress import ShouldStop
from dpcore.contributions import ContributionHistogram
from dpcore.data import samples
from pages.shared import against, against_figures, beside, catalogue, compare_tab
from pages.shared.against import Against
from tests.pages.driving import chart, figure_keys, fine, finished, open_app, shown_texts

SIZES, USERS = np.array([1, 2, 5, 40]), np.array([50, 30, 15, 5])
DATA = samples.load("shop-events")
ASKED: dict[str, dict[str, Any]] = {
    "mean": {"lower": 0.0, "upper": 60.0},
    "total": {},
    "learning": {},
    "gap_examples": {},
    "quantile": {"low": 0.0, "high": 60.0},
    "per_group": {},
}


def declared(name: str, **changes: Any) -> Against:
    question = catalogue.named(name)
    assert question is not None
    assert question.parameters is not None
    function = beside.declared_by(question)
    assert function is not None
    found = function(DATA, question.parameters(epsilon=1.0, **(ASKED[name] | changes)))
    assert found is not None
    return found


def toy() -> Against:
    """The error is |bound - 10 ε|: the best bound is 10 ε."""
    return Against(
        "Bound", "Error", lambda epsilon: (10.0 * epsilon, 0.0),
        lambda epsilon, bounds: np.abs(bounds - 10.0 * epsilon), SIZES, USERS,
    )  # fmt: skip


def test_questions_without_the_function_have_the_tab_without_curves() -> None:
    start, data = catalogue.named("start"), catalogue.named("your_data")
    assert start is not None
    assert data is not None
    assert beside.declared_by(start) is None
    assert list(compare_tab.tabs(start)) == ["Compare"]
    assert compare_tab.tabs(data) == {}


@pytest.mark.parametrize("name", ["mean", "total", "learning", "gap_examples"])
@pytest.mark.parametrize("epsilon", [0.02, 1.0, 20.0])
def test_the_best_bound_is_the_best_of_all_whole_ones(name: str, epsilon: float) -> None:
    found = declared(name)
    bound, error = found.best(epsilon)
    assert found.error is not None
    every = np.arange(1.0, float(DATA.histogram.max_size) + 1.0)
    errors = found.error(epsilon, every)
    # A real bound between two whole ones may be better than both; a whole one never is better than the best.
    assert error <= errors.min() * (1 + 1e-9)
    assert found.error(epsilon, np.array([bound]))[0] == pytest.approx(error, rel=1e-12)


def test_the_curves_agree_with_the_answers_of_the_pages() -> None:
    from dpcore.mean import MeanParameters
    from dpcore.mean.user_effects import clamp
    from pages.mean import answer

    asked = MeanParameters(0.3, lower=0.0, upper=60.0)
    assert DATA.values is not None
    clamped = clamp(DATA.values, 0.0, 60.0)
    view = answer.compute(DATA.histogram, asked, clamped.variance, clamped.mean)
    assert declared("mean").best(0.3) == (view.cap.max_contributions, view.cap.standard_error)


def test_curves_follow_epsilon_and_stop_when_told() -> None:
    told: list[float] = []
    curves = against.over_epsilon(toy(), told.append)
    assert np.allclose(curves.bounds, 10.0 * curves.epsilons)
    assert (curves.epsilons[0], curves.epsilons[-1], told[-1]) == (*against.SHOWN, 1.0)
    stop: ShouldStop = lambda: len(told) >= curves.epsilons.size + 3  # noqa: E731
    assert against.over_epsilon(toy(), told.append, stop).bounds.size == 3
    nothing = against.over_epsilon(toy(), None, lambda: True)
    pictures = against_figures.pictures("toy", toy(), nothing, 1.0, None, DATA.provenance)
    assert [len(picture.draw().data) for picture in pictures] == [1, 1]


@pytest.mark.parametrize("name", ["quantile", "per_group"])
def test_slow_questions_are_worked_out_at_few_epsilons(name: str) -> None:
    found = declared(name)
    assert found.slow
    curves = against.over_epsilon(found)
    assert curves.epsilons.tolist() == list(against.FEW)
    assert (
        np.diff(curves.errors) <= curves.errors[:-1] * 0.02
    ).all()  # More ε, less error, but for subsamples.
    assert (curves.bounds >= 0.0).all()


def test_candidates_against_brute_force() -> None:
    per_user = np.repeat(SIZES, USERS)
    found = against.candidates(toy(), 0.7)
    assert [one.bound for one in found] == sorted({one.bound for one in found})
    for one in found:
        assert one.error == pytest.approx(abs(one.bound - 7.0))
        assert one.lost == pytest.approx(1.0 - np.minimum(per_user, one.bound).sum() / per_user.sum())
        assert one.affected == (per_user > one.bound).sum()
    why = {one.bound: one.why for one in found}
    assert why[7.0] == "best"
    assert why[1.0] == "median"  # 50 of 100 users have 1.
    assert why[5.0].replace("\xa0", " ") == "90 % of users have at most this; 95 % of users have at most this"
    assert why[40.0].replace("\xa0", " ") == "99 % of users have at most this; the most that a user has"
    assert why[10.0] == why[20.0] == "round number"
    rows = against.rows_of(found, toy())
    assert [row["Against the best"] for row in rows if row["How it is come by"] == "best"] == [""]
    assert rows[-1]["Users over it"] == "0"


def test_quantiles_are_those_of_users_and_round_numbers_stay_few() -> None:
    rng = np.random.default_rng(3)
    for _ in range(30):
        counts = np.ceil(rng.pareto(0.7, size=int(rng.integers(1, 60))) + 1e-9) * int(rng.integers(1, 4))
        histogram = ContributionHistogram.from_counts(counts)
        of = Against("", "", lambda e: (1.0, 0.0), lambda e, b: b, histogram.sizes, histogram.users)
        found = against.candidates(of, 1.0)
        for share, words in ((0.5, "median"), (0.9, "90"), (0.99, "99")):
            (one,) = [c for c in found if words in c.why]
            assert one.bound == histogram.quantile(share)
        assert sum(c.why == "round number" for c in found) <= against.MOST_ROUND + 1


def test_the_tab_shows_curves_at_the_epsilon_in_use_and_answers_a_new_one() -> None:
    at = open_app("Mean")
    at.session_state["mean.tabs"] = "Compare"
    fine(at.run())
    names = ["mean_bound_over_epsilon", "mean_error_over_epsilon"]
    assert [key for key in figure_keys(at) if "epsilon" in key] == names
    before = chart(at, names[0])
    fine(at.number_input(key="epsilon").set_value(0.3).run())
    after = chart(at, names[0])
    assert after["data"][0] == before["data"][0]  # The curve stays, the point moves.
    assert after["data"][1]["x"] != before["data"][1]["x"]
    assert "Bounds that people take" in shown_texts(at)
    (table,) = at.dataframe
    best = table.value[table.value["How it is come by"] == "best"]
    assert best["Bound"].tolist() == ["41"]  # As on the card.
    assert "41 rows" in shown_texts(at)


def test_slow_curves_are_worked_out_on_request() -> None:
    at = open_app("Per group")
    at.session_state["per_group.tabs"] = "Compare"
    fine(at.run())
    assert not [key for key in figure_keys(at) if "epsilon" in key]
    fine(at.button(key="per_group_against").click().run())
    finished(at, "per_group_against_job")
    assert len([key for key in figure_keys(at) if "epsilon" in key]) == 2
    fine(at.number_input(key="epsilon").set_value(0.3).run())  # Another ε asks for nothing new.
    assert len([key for key in figure_keys(at) if "epsilon" in key]) == 2
