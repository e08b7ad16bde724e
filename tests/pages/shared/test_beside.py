"""A second data set beside the first: its curve, the bound that serves both, its label, and where it goes."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpcore import mean
from dpcore.common.privacy import Disclosure
from dpcore.common.shared_bound import SharedBound
from dpcore.contributions import ContributionHistogram
from dpcore.data import samples
from dpcore.dataset import Dataset, Values
from dpcore.quantile import QuantileProblem, optimal_bound
from dpcore.quantile.parameters import BoundFrom, QuantileParameters, Weighting
from pages.shared.base import keys
from pages.shared.compare import common_choice, second_data_set
from pages.shared.session import session, session_file
from tests.pages.driving import (
    SHOP_EVENTS,
    chart,
    data,
    fine,
    finished,
    go,
    on_file,
    open_app,
    release_copy,
    shown_texts,
)

INVOICES = "online-retail-invoices"


def kept(at: Any, of: str = INVOICES) -> Any:
    """Any page, with this sample beside the data in use."""
    origin = session.Origin(of)
    at.session_state[keys.SECOND] = session.Loaded(origin.load(), origin)
    return fine(at.run())


def asked(name: str, epsilon: float) -> mean.MeanProblem:
    """What *Mean* asks where only counts are known: its error may have several valleys."""
    histogram = samples.load(name).histogram
    return mean.MeanProblem(histogram, epsilon, 1.0, 0.25, target=mean.Target.TABLE, user_share=0.2)


def best_of_both(epsilon: float, *names: str) -> tuple[int, float]:
    """By brute force: the whole cap with the least worst ratio, values in [0, 1] in the worst case."""
    problems = [asked(name, epsilon) for name in names]
    least = [mean.best_cap(problem).standard_error for problem in problems]

    def worst(cap: int) -> float:
        errors = [math.sqrt(float(mean.capped_variance(problem, cap))) for problem in problems]
        return max(error / best for error, best in zip(errors, least, strict=True))

    caps = range(1, max(problem.histogram.max_size for problem in problems) + 1)
    return min((worst(cap), cap) for cap in caps)[1], min(worst(cap) for cap in caps)


def test_both_curves_stand_on_one_figure_and_the_tab_names_the_best_bound_for_both() -> None:
    at = open_app("Mean")
    alone = chart(at, "mean_error")
    kept(at)
    both = chart(at, "mean_error")
    # Only the second one's curve and its best point are new; axes and size stay.
    assert both["data"][: len(alone["data"])] == alone["data"]
    curve, weights, point = both["data"][len(alone["data"]) :]
    assert weights["name"] == "The same, smooth weights"
    assert curve["name"] == "Online Retail: invoices per cus…"
    problem = asked(INVOICES, 1.0)
    assert point["x"] == [mean.best_cap(problem).max_contributions]
    assert both["layout"]["height"] == alone["layout"]["height"]
    assert both["layout"]["xaxis"]["range"] == alone["layout"]["xaxis"]["range"]
    at.session_state["mean.tabs"] = "Compare"
    fine(at.run())
    bound, ratio = best_of_both(1.0, session.DEFAULT_SAMPLE, INVOICES)
    assert f"One bound for both: **{bound}** (rows per user)" in shown_texts(at)
    table = at.dataframe[0].value
    assert table["Bound"].tolist()[0] == str(bound)
    assert ratio > 1.0
    assert "Proved best to within rounding" in shown_texts(at)
    # The curve of the data in use stays the one that is pinned.
    fine(at.button(key="mean_pin").click().run())
    (pin,) = at.session_state[keys.PINS]
    assert pin.data == data(at).name


def test_sum_and_count_compares_too_and_a_sum_that_the_second_cannot_answer_is_said() -> None:
    at = kept(go(on_file(SHOP_EVENTS, "Mean", "shop_events.csv"), "Sum and count"))
    assert any(trace["name"].startswith("Online Retail") for trace in chart(at, "total_error")["data"])
    at.session_state["total.tabs"] = "Compare"
    fine(at.run())
    assert "One bound for both" in shown_texts(at)
    fine(at.segmented_control(key="total.summed").set_value("Values").run())
    assert "lacks what it answers from" in shown_texts(at)
    assert not any(trace["name"].startswith("Online Retail") for trace in chart(at, "total_error")["data"])


def test_a_learner_shares_a_cap_and_a_page_that_cannot_says_so() -> None:
    at = kept(open_app("Learning under a bound"))
    assert any(trace["name"].startswith("Online Retail") for trace in chart(at, "learning_bound")["data"])
    at.session_state["learning.tabs"] = "Compare"
    fine(at.run())
    assert "One bound for both" in shown_texts(at)
    assert "Proved" in shown_texts(at)
    at = go(at, "Data owners")
    at.session_state["data_owners.tabs"] = "Compare"
    fine(at.run())
    assert "compares no two data sets" in shown_texts(at)


def test_a_pair_for_both_is_searched_on_request_and_marked_on_the_map() -> None:
    at = open_app("Per group")
    shop = samples.load("shop-events")
    at.session_state[keys.LOADED] = session.Loaded(shop, session.Origin("shop-events"))
    at.session_state[keys.SECOND] = session.Loaded(
        replace(shop, name="Last year"), session.Origin("shop-events")
    )
    at.session_state["per_group.tabs"] = "Compare"
    fine(at.run())
    assert not any("Last year" in str(trace.get("name")) for trace in chart(at, "per_group_error")["data"])
    fine(at.button(key="per_group_shared").click().run())
    finished(at, "per_group_shared_job")
    assert "One choice for both: **" in shown_texts(at)
    assert "costs 0 % on" in shown_texts(at).replace("\xa0", " ")
    assert "Proved" in shown_texts(at)
    marks = [trace["name"] for trace in chart(at, "per_group_error")["data"][-2:]]
    assert marks == ["Last year, best", "Best for both"]
    fine(at.number_input(key="epsilon").set_value(0.3).run())
    assert not any("Last year" in str(trace.get("name")) for trace in chart(at, "per_group_error")["data"])
    assert at.button(key="per_group_shared")


def values_of(seed: int, users: int, most: int) -> Dataset:
    """Users with up to so many rows, each around a level of their own."""
    rng = np.random.default_rng(seed)
    counts = np.minimum(rng.zipf(1.7, users), most)
    codes = np.repeat(np.arange(users), counts)
    held = Values(codes, np.repeat(rng.uniform(2.0, 8.0, users), counts) + rng.normal(0.0, 0.5, codes.size))
    name = f"seed {seed}"
    return Dataset(name, "", Disclosure.PUBLIC, ContributionHistogram.from_counts(counts), values=held)


@pytest.mark.parametrize("weighting", [Weighting.SMOOTH, Weighting.CAP])
@pytest.mark.parametrize("bound_from", list(BoundFrom))
def test_the_bound_of_a_quantile_for_both_against_brute_force(
    weighting: Weighting, bound_from: BoundFrom
) -> None:
    from pages.quantile.shared import shared_choice, why_not

    both = [values_of(1, 60, 30), values_of(2, 40, 12)]
    asked = QuantileParameters(0.8, low=0.0, high=10.0, weighting=weighting, bound_from=bound_from)
    assert why_not(both, asked) == ""
    from_values = bound_from is BoundFrom.VALUES
    assert ("must have values" in why_not([both[0], replace(both[1], values=None)], asked)) is from_values
    found = shared_choice(both, asked, lambda share: None, lambda: False)
    assert found is not None
    caps = weighting is Weighting.CAP
    low, high = 1.0, float(max(one.histogram.max_size for one in both))
    every = np.arange(low, high + 1.0) if caps else np.geomspace(low, high, 300)
    if bound_from is BoundFrom.COUNTS:
        errors = np.stack([asked.rank_bound(one.histogram).value(asked.kind, every) for one in both])
        falling, rising = asked.rank_bound(both[0].histogram).parts(asked.kind, every)
        assert (np.diff(falling) <= 1e-12).all()
        assert (np.diff(rising) >= -1e-12).all()
    elif caps:
        problems = [
            QuantileProblem(one.values, 0.5, 1.0, asked.base_distribution())  # type: ignore[arg-type]
            .with_epsilon(0.8)
            .on_search_subsamples()
            for one in both
        ]
        errors = np.array(
            [
                [
                    float(
                        optimal_bound.rank_errors(one, asked.kind, [h], quantiles=asked.asked).rank_error[0]
                    )
                    for h in every
                ]
                for one in problems
            ]
        )
    else:
        assert "only some bounds" in found.certificate.sentence
        assert found.curve is not None
        assert found.curve[0].size > 32
        assert max(found.regrets) >= 0.0
        return
    least = float((errors / errors.min(axis=1)[:, None]).max(axis=0).min())
    assert 1.0 + max(found.regrets) <= least * (1.0 + 1e-5)
    assert found.certificate.lower_bound <= least * (1.0 + 1e-9)
    assert found.certificate.proves(1e-4)
    rows = common_choice.rows_of_search(found, [one.name for one in both])
    assert [row["Which"] for row in rows] == ["the shared choice", "best of seed 1", "best of seed 2"]
    assert "the same" in rows[1]["Error of seed 1"]


def test_a_second_private_data_set_makes_the_figure_private_and_is_in_no_link() -> None:
    at = on_file(SHOP_EVENTS, "Mean", "shop_events.csv")
    secret = at.session_state[keys.LOADED]
    at = open_app("Mean")
    at.session_state[keys.SECOND] = secret
    fine(at.run())
    told = json.loads(at.get_by_key("figure_mean_error").proto.bytes)
    assert told["fileName"] == "mean-error-PRIVATE-do-not-publish"
    assert "shop_events" not in json.dumps([element.value for element in at.code])
    content = at.session_state[keys.SESSION_FILE].content
    assert content.disclosure is Disclosure.PRIVATE
    back = session_file.read(session_file.text(content).encode()).content
    assert back.second is not None
    assert back.second.dataset == secret.dataset


def test_your_data_keeps_and_removes_it() -> None:
    at = open_app("Your data")
    first = data(at).name
    fine(at.button(key="second_data_keep").click().run())
    assert "will stand beside the data that you load next" in shown_texts(at)
    assert "Beside them" not in shown_texts(at)
    fine(at.selectbox(key="your_data.sample").set_value("shop-events").run())
    assert f"Beside them: {first}" in shown_texts(at)
    fine(at.button(key="second_data_remove").click().run())
    assert at.session_state[keys.SECOND] is None
    assert "Beside them" not in shown_texts(at)


def test_private_data_beside_others_step_aside_with_a_copy_and_come_back() -> None:
    at = on_file(SHOP_EVENTS, "Choose privately", "shop_events.csv")
    at.session_state[keys.SECOND] = at.session_state[keys.LOADED]
    fine(at.run())
    release_copy(at)
    assert keys.SECOND not in at.session_state
    fine(at.button(key="private_back").click().run())
    assert at.session_state[keys.SECOND].dataset.is_private


@pytest.mark.parametrize("axis", ["Best bound (rows per user)", "Best bound"])
def test_the_sentence_says_the_unit_where_there_is_one(axis: str) -> None:
    from dpcore.common.certificate import Certificate

    shared = SharedBound(7.0, (0.1, 0.02), Certificate(1.1, 1.1, "a"))
    said = second_data_set.sentence(shared, axis, ["a.csv", "b.csv"])
    unit = " (rows per user)" if "(" in axis else ""
    assert said.startswith(f"One bound for both: **7**{unit}. Over")
    assert "10 % on a" in said.replace("\xa0", " ")
