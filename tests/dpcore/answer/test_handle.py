"""The handle of a figure: its simulated releases have the error on the card, and its users are those of the data."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import stats

from dpcore import total
from dpcore.answer import handle
from dpcore.common.noise_error import Measure, NoiseKind
from dpcore.data import samples
from dpcore.learning import LearningParameters
from dpcore.learning import answer as learning_answer
from dpcore.learning.bias_bounds import BiasTerm
from dpcore.mean import Counts, MeanParameters
from dpcore.mean import answer as mean_answer
from dpcore.mean.parameters import Likeness, usual
from dpcore.total import answer as total_answer
from dpcore.total.parameters import TotalParameters
from pages.shared.figures import handles


@pytest.mark.parametrize("noise", NoiseKind)
def test_draws_are_of_the_noise_with_a_mean_magnitude_of_1(noise):
    drawn = handle.unit_draws(noise)
    assert drawn.shape == (handle.SETS, handle.DOTS)
    law = stats.laplace() if noise is NoiseKind.LAPLACE else stats.norm(scale=math.sqrt(math.pi / 2))
    # The law's own mean magnitude is 1, and the draws are of the law.
    assert law.expect(abs) == pytest.approx(1.0)
    assert stats.kstest(drawn.ravel(), law.cdf).pvalue > 0.01
    off = np.abs(np.abs(drawn).mean(axis=1) - 1.0)
    assert (np.diff(off) >= 0).all()


@pytest.mark.parametrize("noise", NoiseKind)
@pytest.mark.parametrize("measure", [Measure.ABSOLUTE, Measure.RMSE])
@pytest.mark.parametrize("own", [None, 20.0, 300.0])
def test_the_spread_of_the_dots_is_the_error_on_the_card_within_its_interval(noise, measure, own):
    data = samples.load("shop-events")
    asked = TotalParameters(1.0, mechanism=noise, measure=measure, own_bound=own, delta=(
        1e-4 if noise is NoiseKind.GAUSSIAN else None
    ))  # fmt: skip
    answer = total_answer.answered(data, asked)
    plot = answer.plots["total-error"]()
    found = plot.handle
    assert found is not None
    assert found.dots is not None
    bounds = np.asarray(plot.drawn[found.bound])
    at = int(np.abs(np.log(bounds / found.at)).argmin())
    short, mean = (np.asarray(plot.drawn[name])[at] for name in (found.dots.short, found.dots.noise))
    dots = handle.released(found.dots, float(short), float(mean)).ravel()
    each = np.abs(dots) if measure is Measure.ABSOLUTE else dots**2
    error = float(total.errors(answer.found.problem, bounds[at]).by(measure))
    expected = error if measure is Measure.ABSOLUTE else error**2
    # Four standard errors of the mean of independent draws.
    assert abs(each.mean() - expected) <= 4.0 * each.std() / math.sqrt(each.size)
    assert np.asarray(plot.drawn[found.error])[at] == pytest.approx(error)


@pytest.mark.parametrize(
    "asked",
    [
        MeanParameters(1.0, lower=0.0, upper=100.0, **usual(samples.load("shop-events"))),
        MeanParameters(0.3, lower=0.0, upper=100.0, own_cap=20),
        MeanParameters(1.0, lower=0.0, upper=100.0, counts=Counts.PRIVATE),
    ],
    ids=["values read", "counts only, own bound", "private counts"],
)
def test_the_dots_of_a_mean_have_its_error_shift_and_draw_of_rows_included(asked):
    answer = mean_answer.answered(samples.load("shop-events"), asked)
    plot = answer.plots["mean-error"]()
    found = plot.handle
    assert found is not None
    assert found.dots is not None
    bounds = np.asarray(plot.drawn[found.bound])
    at = int(np.abs(np.log(bounds / found.at)).argmin())
    short, noise, drawn = (
        float(np.asarray(plot.drawn[name])[at])
        for name in (found.dots.short, found.dots.noise, found.dots.sampling)
    )
    squares = handle.released(found.dots, short, noise, drawn).ravel() ** 2
    expected = float(np.asarray(plot.drawn[found.error])[at]) ** 2
    # Four standard errors of a mean of independent draws; of Laplace noise, a normal draw and a shift none has more
    # than a Laplace draw alone, sqrt(6 - 1) of its mean.
    assert abs(squares.mean() - expected) <= 4.0 * math.sqrt(5.0) * expected / math.sqrt(squares.size)
    if asked.likeness is Likeness.FROM_VALUES:
        assert short > 0.0
        assert drawn > 0.0


def test_draws_besides_noise_are_normal_and_not_those_of_the_noise():
    drawn = handle.normal_draws().ravel()
    assert stats.kstest(drawn, stats.norm().cdf).pvalue > 0.01
    noise = handle.unit_draws(NoiseKind.LAPLACE).ravel()
    assert abs(stats.pearsonr(drawn, noise).statistic) < 3.0 / math.sqrt(drawn.size)


def test_where_nothing_is_released_there_are_no_dots_and_what_has_no_bound_is_drawn_at_the_top():
    asked = LearningParameters(1.0, bias=BiasTerm.COROLLARY_1)
    plot = learning_answer.answered(samples.load("shop-events"), asked).plots["learning-bound"]()
    assert plot.handle is not None
    assert plot.handle.dots is None
    told = handles.told(plot, plot.handle)
    assert "dots" not in told
    assert json.dumps(told, allow_nan=False)
    assert max(told["errors"]) == handles.BEYOND


def some_of(counts):
    values, users = np.unique(counts, return_counts=True)
    return handle.some_users(values, users, "rows")


def test_users_are_some_of_all_from_the_heaviest_to_the_lightest():
    rng = np.random.default_rng(5)
    sizes = np.sort(rng.zipf(1.4, 3_000).clip(max=5_000))[::-1]
    shown = some_of(sizes)
    assert shown.sizes[0] == sizes[0]
    assert shown.sizes[-1] == sizes[-1]
    assert (np.diff(shown.sizes) <= 0).all()
    # The ten heaviest are all there.
    assert shown.sizes[:10].tolist() == sizes[:10].tolist()
    assert handle.MOST_USERS / 2 < shown.sizes.size <= handle.MOST_USERS
    assert "of 3,000 users" in shown.title
    few = some_of(np.array([3, 1, 2]))
    assert few.sizes.tolist() == [3.0, 2.0, 1.0]
    assert few.title == "3 users"
