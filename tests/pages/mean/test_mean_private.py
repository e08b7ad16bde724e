"""Mean with private counts: the switch moves everything on the page."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import replace
from urllib.parse import parse_qsl

import numpy as np
import pytest

from dpcore import mean
from dpcore.answer import standard
from dpcore.common.noise_error import DEFAULT_DELTA, NoiseKind
from dpcore.common.privacy import Disclosure
from dpcore.common.programs import Program
from dpcore.common.wording import format_number
from dpcore.data import samples
from dpcore.mean import private_counts
from dpcore.mean.answer import build_answer
from dpcore.mean.moved_mean import measure_caps
from dpcore.mean.private_counts import PrivateCountsProblem, ReleasedSums
from pages.shared.fields import setting
from pages.shared.session import session
from tests.pages.driving import chart, check, data, errors, open_app, read_shown_link, shown_texts, trace

SAMPLE = samples.load(session.DEFAULT_SAMPLE)
SHOP = samples.load("shop-events")
EPSILON = setting.DEFAULT_EPSILON


def open_with_private_counts(**link):
    app = open_app("Mean", **link)
    check(app.button(key="mean_as_in_paper").click().run())
    return check(app.segmented_control(key="mean.counts").set_value("Private too").run())


def shop_problem(epsilon=1.0, release=ReleasedSums.PAIR):
    values = SHOP.values.values
    return PrivateCountsProblem(
        SHOP.histogram, epsilon, 100.0, float(np.var(values, ddof=1)), float(values.mean()), release
    )


def measure_error(problem):
    """The error of the best cap after the mean is moved into its range."""
    return math.sqrt(
        float(measure_caps(problem, mean.find_best_cap(problem).max_contributions).squared_error)
    )


def open_shop(epsilon="1"):
    link = {
        "link": "1",
        "data": "shop-events",
        "epsilon": epsilon,
        "upper": "100",
        "variance_source": "values",
    }
    return open_app("Mean", **link, counts="private")


def test_the_switch_moves_curves_card_and_assumptions():
    app = open_with_private_counts()
    problem = PrivateCountsProblem(SAMPLE.histogram, EPSILON, 1.0, 0.25)
    cap = mean.find_best_cap(problem)
    figure = chart(app, "mean_error")
    bounds, drawn = trace(figure, "Total, bounded rows, usual split of ε")
    # Numerator B h, denominator h, half of epsilon each, at the worst mean: 8 times the privacy variance.
    kept = np.array([np.sum(SAMPLE.histogram.users * np.minimum(SAMPLE.histogram.sizes, h)) for h in bounds])
    assert drawn == pytest.approx(np.sqrt(0.25 / kept + 8.0 * 2.0 * (bounds / EPSILON / kept) ** 2))
    ((x,), (y,)) = trace(figure, "Best bound")
    assert (x, y) == (cap.max_contributions, pytest.approx(cap.standard_error))
    assert "Delta-method" in figure["layout"]["yaxis"]["title"]["text"]
    texts = shown_texts(app)
    assert "Counts are **private too**" in texts
    assert all(assumption in texts for assumption in private_counts.ASSUMPTIONS)
    assert mean.ASSUMPTIONS[0] not in texts
    assert private_counts.ERROR_APPROXIMATION_NAME in texts
    assert "counts=private" in read_shown_link(app)
    check(app.segmented_control(key="mean.counts").set_value("Public").run())
    assert mean.ASSUMPTIONS[0] in shown_texts(app)
    assert "delta method" not in shown_texts(app)


def test_a_link_from_before_the_switch_means_public_counts():
    app = open_app("Mean", link="1", data="shop-events", epsilon="1", upper="100")
    assert app.segmented_control(key="mean.counts").value is mean.Counts.PUBLIC
    # Nor did it say which mean: it was that of the paper, with independent rows.
    problem = mean.MeanProblem(SHOP.histogram, 1.0, 100.0, 2500.0)
    ((x,), (y,)) = trace(chart(app, "mean_error"), "Best bound")
    best = mean.find_best_cap(problem)
    assert (x, y) == (best.max_contributions, pytest.approx(best.standard_error))
    assert not errors(app)


@pytest.mark.long
def test_variance_and_mean_of_the_values_are_used():
    app = open_shop()
    best = mean.find_best_cap(shop_problem())
    ((x,), (y,)) = trace(chart(app, "mean_error"), "Best bound")
    assert (x, y) == (best.max_contributions, pytest.approx(measure_error(shop_problem())))
    best_cap = mean.find_best_cap(shop_problem(release=ReleasedSums.SPLIT))
    sentence = f"{format_number(best_cap.standard_error)} at their best bound"
    assert sentence in shown_texts(app)
    assert best_cap.standard_error > 1.5 * best.standard_error


def test_bound_error_and_program_follow_the_program_and_its_noise():
    app = open_shop()
    for program in (Program.PIPELINEDP, Program.BIGQUERY, Program.OPENDP):
        check(app.selectbox(key="mean.program").set_value(program.value).run())
        release = ReleasedSums.PAIR if program is Program.OPENDP else ReleasedSums.CENTRED_SPLIT
        problem = replace(shop_problem(release=release), program=program)
        ((x,), (y,)) = trace(chart(app, "mean_error"), "Best bound")
        assert (x, y) == (
            mean.find_best_cap(problem).max_contributions,
            pytest.approx(measure_error(problem)),
        )
    check(app.segmented_control(key="mean.mechanism").set_value("Gaussian").run())
    problem = replace(
        shop_problem(), program=Program.OPENDP, mechanism=NoiseKind.GAUSSIAN, delta=DEFAULT_DELTA
    )
    ((x,), (y,)) = trace(chart(app, "mean_error"), "Best bound")
    best = mean.find_best_cap(problem)
    assert (x, y) == (best.max_contributions, pytest.approx(measure_error(problem)))
    assert problem.noise_sentence in shown_texts(app)
    # The link opens the same again.
    again = open_app("Mean", **dict(parse_qsl(read_shown_link(app).partition("?")[2])))
    assert trace(chart(again, "mean_error"), "Best bound") == trace(chart(app, "mean_error"), "Best bound")


@pytest.mark.long
def test_noise_that_can_leave_the_range_is_said_to():
    assert "Noise can leave the range" not in shown_texts(open_shop())
    assert "Noise can leave the range" in shown_texts(open_shop("0.01"))


def test_files_say_which_setting_they_are_for():
    parameters = mean.MeanParameters(1.0, upper=100.0, counts=mean.Counts.PRIVATE)
    private = replace(SHOP, disclosure=Disclosure.PRIVATE)
    answer = build_answer(private, parameters)
    view = answer.solution
    choice = json.loads(answer.write_json())
    assert choice["question"]["counts"] == "private"
    assert choice["question"]["neighbours"] == private_counts.NEIGHBOURS.value
    assert private_counts.ERROR_APPROXIMATION_NAME in choice["question"]["errors_are"]
    rows = list(csv.DictReader(io.StringIO(answer.files["mean_weights.csv"]())))
    h = view.smooth_choice.threshold
    for row in rows:
        size = int(row["size"])
        # Weights times B change the pair by at most B h when the user comes or goes.
        assert float(row["user_weight"]) == pytest.approx(min(h, size))
        assert float(row["row_weight"]) * size == pytest.approx(min(h, size))
        assert int(row["rows_kept_at_cap"]) <= view.cap_choice.max_contributions
        assert row["label"] == Disclosure.PRIVATE.label
    for plot in answer.plots.values():
        assert set(plot().columns["contribution_counts"]) == {"private too"}


def test_private_data_are_warned_of_in_the_setting_s_own_words():
    parameters = mean.MeanParameters(1.0, counts=mean.Counts.PRIVATE)
    private = type(SHOP)(name="x", source="x", disclosure=Disclosure.PRIVATE, histogram=SHOP.histogram)
    card = build_answer(private, parameters)
    assert standard.warn_of_leak("this bound was") in card.detail
    assert standard.PUBLIC_COUNTS_CAVEAT not in card.detail
    assert data(open_with_private_counts()).disclosure is Disclosure.PUBLIC
