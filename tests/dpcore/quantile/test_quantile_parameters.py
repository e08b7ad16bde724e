"""What a person may ask of a private quantile: texts are read, bases are made, everything wrong is said at once."""

import math

import numpy as np
import pytest

from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Neighbours
from dpcore.common.programs import Program
from dpcore.contributions import ContributionHistogram
from dpcore.quantile.mechanism import NEIGHBOURS
from dpcore.quantile.parameters import BaseKind, QuantileParameters, Weighting

BEST = {"program": Program.BEST}
NORMAL = {"base": BaseKind.NORMAL, "center": 3.0, "spread": 2.0}
BINS = {"base": BaseKind.HISTOGRAM, "edges": "0, 1, 4", "masses": "1, 3"}


def refused(**fields) -> str:
    with pytest.raises(InvalidInput) as caught:
        QuantileParameters(**{"epsilon": 1.0, **BEST, **fields})
    return "\n".join(problem.sentence for problem in caught.value.problems)


@pytest.mark.parametrize("text", ["0.75, 0.25 ,0.5", "0.75 0.25\t0.5", "0.75;0.25;0.5;", " 0.25,0.5,0.75"])
def test_quantiles_are_read_and_put_in_order(text):
    parameters = QuantileParameters(3.0, text)
    assert parameters.quantile_levels == (0.25, 0.5, 0.75)
    assert parameters.epsilon_each == 1.0


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"quantiles": ""}, "Quantiles is empty"),
        ({"quantiles": "0.5, x"}, "got 'x'"),
        ({"quantiles": "nan"}, "finite numbers"),
        ({"quantiles": "0, 0.5"}, "strictly between 0 and 1 (the median is 0.5); got 0"),
        ({"quantiles": "50"}, "got 50"),
        ({"quantiles": "0.5, 0.50"}, "asked for twice"),
        ({"quantiles": "0.1 0.2 0.3 0.4 0.5 0.6"}, "1 to 5 quantiles; got 6"),
        ({"quantiles": "0.5," * 100}, "more than 200 characters"),
        ({"low": 5.0, "high": 5.0}, "Low must lie below high"),
        ({"low": -1e13}, "must lie between"),
        ({"center": 3.0}, 'the mean of ν can be set only with "Normal" as the base distribution'),
        ({**NORMAL, "spread": None}, "the standard deviation of ν is missing"),
        ({**NORMAL, "spread": 0.0}, "the standard deviation of ν must lie between"),
        ({**NORMAL, "low": 1.0}, "can be set only with a uniform base distribution"),
        ({**BINS, "edges": "0, 4, 1"}, "strictly ascending"),
        ({**BINS, "masses": "1"}, "one weight per bin"),
        ({**BINS, "masses": "0, 0"}, "not all 0"),
        ({**BINS, "masses": "1, -1"}, "at least 0"),
        ({**BINS, "edges": "0, 1, 1e300"}, "must lie between"),
        ({"own_bound": 2.5, "weighting": Weighting.CAP}, "your own bound must be a whole number"),
        ({"own_bound": 0.0}, "your own bound must lie between"),
        ({"alpha": 0.6}, "α must lie between"),
        ({"beta": 0.0}, "β must lie between"),
        ({"gamma": 0.5}, "γ must lie between"),
        ({"epsilon": 0.0}, "Epsilon must lie between"),
    ],
)
def test_what_cannot_be_gets_a_sentence(fields, sentence):
    assert sentence.lower() in refused(**fields).lower()


def test_all_problems_are_said_at_once():
    message = refused(epsilon=-1.0, quantiles="2", low=3.0, high=1.0, alpha=2.0)
    for piece in ("Epsilon", "got 2", "Low must lie below", "α must"):
        assert piece in message


@pytest.mark.parametrize(
    "fields", [{"low": 0.0, "high": 4.0}, NORMAL, BINS], ids=["uniform", "normal", "histogram"]
)
def test_a_poorer_base_is_the_base_moved_and_stretched(fields):
    parameters = QuantileParameters(1.0, **BEST, **fields)
    base_given, poorer = parameters.build_base(), parameters.build_base(3.0, 0.25)
    # X -> middle + 3 (X - middle) + width / 4, from the definition, on points around the middle.
    center_of_mass, width = (3.0, 8.0) if parameters.base is BaseKind.NORMAL else (2.0, 4.0)
    x = np.linspace(-5.0, 9.0, 57) + 0.01  # off the edges
    shifted = center_of_mass + 3.0 * (x - center_of_mass) + width / 4.0
    assert poorer.log_density(shifted) == pytest.approx(base_given.log_density(x) - math.log(3.0))


def test_the_relation_decides_the_draw_and_a_user_who_comes_needs_a_bound():
    values, users = (QuantileParameters(1.0, "0.5, 0.8", neighbours=one, **BEST) for one in NEIGHBOURS)
    # 0.5 ε each: the median may be drawn with twice that, the 0.8-quantile with 1 / 0.8 of it.
    assert [users.compute_drawn_epsilon(q) for q in users.quantile_levels] == pytest.approx([1.0, 0.625])
    assert (values.other_relation_epsilon, users.other_relation_epsilon) == pytest.approx((0.25 + 0.4, 1.625))
    assert users.build_rank_bound(ContributionHistogram(sizes=[1], users=[5])).epsilon == 0.625
    with pytest.raises(InvalidInput, match="may have any number of rows"):
        QuantileParameters(1.0, **BEST, weighting=Weighting.NONE, neighbours=Neighbours.ADD_OR_REMOVE_USER)
    with pytest.raises(InvalidInput, match="What epsilon protects must be one of"):
        QuantileParameters(1.0, **BEST, neighbours=Neighbours.REPLACE_USER)


def test_a_library_bounds_rows_of_users_who_come_and_go_and_uses_the_range_of_the_base_alone():
    parameters = QuantileParameters(1.0, weighting=Weighting.NONE, **NORMAL)
    assert (parameters.program, parameters.weighting) == (Program.OPENDP, Weighting.CAP)
    assert parameters.neighbours is Neighbours.ADD_OR_REMOVE_USER
    assert {"weighting", "neighbours"} < set(parameters.unused_names)
    # Four standard deviations around the mean; a poorer base is moved by a share of its width.
    points = parameters.build_base().breaks
    assert (points[0], points[-1], points.size) == (-5.0, 11.0, 1001)
    assert parameters.build_base(2.0, 0.5).breaks == pytest.approx(3.0 + 2.0 * (points - 3.0) + 8.0)
    own_base = {"base": BaseKind.HISTOGRAM, "edges": "0, 1, 4", "masses": "1, 0"}
    settings = QuantileParameters(1.0, program=Program.PYTHON, weighting=Weighting.NONE, **own_base)
    assert settings.weighting is Weighting.NONE
    assert settings.build_base().breaks == pytest.approx((np.arange(2000) + 0.5) / 500)


@pytest.mark.parametrize(
    ("program", "epsilon"),
    [(Program.OPENDP, 0.5), (Program.TUMULT, 0.5), (Program.PIPELINEDP, 1.0), (Program.BIGQUERY, 1.0 / 3.0)],
)
def test_quantiles_share_epsilon_as_the_program_divides_it(program, epsilon):
    assert QuantileParameters(1.0, "0.5, 0.8", program=program).epsilon_each == pytest.approx(epsilon)
