"""Everything that releases: never less private than asked, honest labels, and noise of the stated scale."""

import ast
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import opendp.prelude as dp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest

from dpcore.common import mechanisms
from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Neighbours
from dpcore.contributions import MAX_USERS, ContributionHistogram
from dpcore.private_choice import choice, private_histogram
from dpcore.private_choice.private_histogram import HistogramNoise, HistogramParameters, PublicBins
from dpcore.private_choice.scores import SmoothMean
from dpcore.regression import draw, sample_limiting
from dpcore.regression.problem import RegressionProblem
from dpcore.training.account import Cell, Method
from dpcore.training.mechanism import Mechanism
from dpcore.training.release import train_once
from dpcore.training.rows import ClassifierRows


@settings(max_examples=40, deadline=None)
@given(sensitivity=st.floats(1e-6, 1e6), epsilon=st.floats(1e-3, 100.0))
def test_never_less_private_than_asked(sensitivity, epsilon):
    drawn = mechanisms.release_laplace([0.0], sensitivity, epsilon)
    assert drawn.epsilon <= epsilon
    assert drawn.scale >= sensitivity / epsilon
    assert drawn.scale == pytest.approx(sensitivity / epsilon, rel=1e-12)


def test_noise_is_laplace_of_the_stated_scale():
    # Kolmogorov-Smirnov on 4,000 independent entries; a false alarm once in a million runs.
    drawn = mechanisms.release_laplace(np.zeros(4000), sensitivity=3.0, epsilon=2.0)
    assert kstest(drawn.values, "laplace", args=(0.0, 1.5)).pvalue > 1e-6
    assert drawn.label == "DP release, epsilon = 2"


def test_the_label_never_rounds_epsilon_down():
    drawn = mechanisms.release_laplace([0.0], sensitivity=1.0, epsilon=0.1234564)
    assert drawn.label == "DP release, epsilon = 0.123457"


def test_refusals_come_together():
    with pytest.raises(InvalidInput, match=r"(?si)vector.*sensitivity.*epsilon"):
        mechanisms.release_laplace([[math.nan]], 0.0, 0.0)


PEOPLE = ContributionHistogram([1, 3, 10], [200, 20, 1])
BINS = PublicBins(3, 12)
PROBLEM = RegressionProblem(np.ones((5, 1)), np.arange(5), 1.0, 1.0, 1.0)
DRAWS = {
    "laplace": lambda charge: mechanisms.release_laplace([1.0], 1.0, 1.0, charge),
    "discrete_laplace": lambda charge: mechanisms.release_discrete_laplace([1], 1, 1.0, charge),
    "discrete_gaussian": lambda charge: mechanisms.release_discrete_gaussian([1], 1, 1.0, 1e-6, charge),
    "exponential_mechanism": lambda charge: mechanisms.exponential_mechanism([0, -1], 1, 1.0, charge),
    "release_histogram": lambda charge: private_histogram.release_histogram(
        PEOPLE, HistogramParameters(1.0, BINS), charge
    ),
    "release_histogram, Gaussian": lambda charge: private_histogram.release_histogram(
        PEOPLE, HistogramParameters(1.0, BINS, HistogramNoise.GAUSSIAN, 1e-6), charge
    ),
    "choose": lambda charge: choice.choose(choice.ChoiceProblem(SmoothMean(0.125), 1.0, 100), PEOPLE, charge),
    "draw_coefficients": lambda charge: draw.draw_coefficients(
        PROBLEM, sample_limiting.estimate_on_all_rows(PROBLEM), np.ones(5), 0.0, charge
    ),
    # One step, and a public sum of weights, so that there is one draw; all draws share one charge.
    "train_once": lambda charge: train_once(
        ClassifierRows(np.ones((5, 1)), np.ones(5), np.arange(5)),
        Mechanism(1.0, 1e-5, Neighbours.REPLACE_VALUES, steps=1),
        Cell(Method.CAP, 1),
        charge,
    ),
}


class _RefusedError(Exception):
    pass


def test_every_draw_is_charged_before_there_is_noise(monkeypatch):
    events = []
    noise = dp.Measurement.__call__

    def drawn(self, argument):
        events.append("drawn")
        return noise(self, argument)

    def fails(self, argument):
        drawn(self, argument)
        raise _RefusedError

    def charge(*arguments):
        events.append(arguments)

    def refuse(*arguments):
        raise _RefusedError

    for name, spend in DRAWS.items():
        monkeypatch.setattr(dp.Measurement, "__call__", drawn)
        events.clear()
        made = spend(charge)
        (charged, last) = events
        assert last == "drawn", name
        # What was noted is what the release says of itself.
        facts = getattr(made, "facts", None)
        told = charged[0] if facts is None else charged[0].epsilon
        assert told == (made.epsilon if facts is None else facts.epsilon), name
        assert facts is None or charged == (facts,), name
        # An error after the draw finds it charged; a charge that is refused draws nothing.
        monkeypatch.setattr(dp.Measurement, "__call__", fails)
        events.clear()
        with pytest.raises(_RefusedError):
            spend(charge)
        assert events == [charged, "drawn"], name
        events.clear()
        with pytest.raises(_RefusedError):
            spend(refuse)
        assert events == [], name


DRAWN_BY = {"choose": ("choice", "private_pair", "private_range"), "select": ("selection", "selections")}
"""Modules whose functions of such common names draw."""


def test_every_draw_of_a_page_is_charged():
    # Whoever adds a draw to a page and forgets its account fails here.
    draws, found = {name.partition(",")[0] for name in DRAWS}, 0
    for path in Path("pages").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "opendp" not in text or "make_" not in text, path
        assert "import mechanisms" not in text, f"{path} draws past the functions that know of an account"
        for call in (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)):
            name = getattr(call.func, "attr", getattr(call.func, "id", ""))
            owner = getattr(getattr(call.func, "value", None), "id", "")
            drawn = owner in DRAWN_BY[name] if name in DRAWN_BY else name in draws and owner != "session"
            if drawn:
                found += 1
                assert any(keyword.arg == "charge" for keyword in call.keywords), (path, call.lineno)
    assert found == 4


def test_a_copy_of_very_many_users():
    events = []
    full = ContributionHistogram([1, 2], [MAX_USERS, MAX_USERS])
    # Noise of scale 1e6 carries about half of such counts past what one size may hold.
    wide = HistogramParameters(1e-6, PublicBins(2, 2))
    for _ in range(8):
        histogram = private_histogram.release_histogram(full, wide, events.append)
        assert histogram.histogram.users.max() <= MAX_USERS
    assert [facts.epsilon for facts in events] == [histogram.facts.epsilon] * 8
    # Both sizes in one bin are too many, which is said before anything is drawn or spent.
    with pytest.raises(InvalidInput, match="No histogram was drawn, and no ε was spent"):
        private_histogram.release_histogram(full, HistogramParameters(1.0, PublicBins(1, 1)), events.append)
    assert len(events) == 8


def test_nothing_is_less_private_at_the_edges_of_what_is_allowed():
    # Scales are checked in exact arithmetic; what OpenDP proves is never more than what was asked.
    epsilons = [1e-6, math.nextafter(1e-6, 1.0), math.log(2.0), 36.7, 709.8, math.nextafter(1e3, 0.0), 1e3]
    for epsilon in epsilons:
        for s in (1, 2, 3, 2**20 + 2**12, 10**12):
            drawn = mechanisms.release_discrete_laplace([0], s, epsilon)
            assert 0.0 < drawn.epsilon <= epsilon
            assert Fraction(drawn.scale) * Fraction(epsilon) >= s
            chosen = mechanisms.exponential_mechanism([0, -5], s, epsilon)
            assert 0.0 < chosen.epsilon <= epsilon
            assert Fraction(chosen.scale) * Fraction(epsilon) >= 2 * s
        for s in (5e-324, 1e-310, 1e-9, 1.0, 1e300):
            drawn = mechanisms.release_laplace([0.0], s, epsilon)
            assert 0.0 < drawn.epsilon <= epsilon
            assert Fraction(drawn.scale) * Fraction(epsilon) >= Fraction(s)
    for epsilon, delta, s in (
        (1e-6, 5e-324, 10**12),
        (1e-6, 1.0 - 2.0**-53, 1),
        (1.0, 1e-15, 2),
        (1e3, 0.5, 10**12),
    ):
        drawn = mechanisms.release_discrete_gaussian([0], s, epsilon, delta)
        assert 0.0 < drawn.epsilon <= epsilon
        assert 0.0 < drawn.delta <= delta
    with pytest.raises(InvalidInput, match="float64"):
        mechanisms.release_laplace([0.0], 1.7e308, 0.5)


@pytest.mark.parametrize("root", [1, 3, 10**8, 999_999_999])
def test_a_sensitivity_is_never_rounded_down(root):
    # The nearest float of 10^16 + 1 is a square; exact arithmetic tells.
    for squared in (root**2, root**2 + 1, root**2 + root):
        fraction = Fraction(mechanisms._round_root_up(squared))
        assert fraction**2 >= squared
        assert float(fraction) <= math.nextafter(math.nextafter(math.sqrt(squared), math.inf), math.inf)
    assert mechanisms._round_root_up(root**2) == root
