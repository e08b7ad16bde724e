"""Bounds drawn for quantiles, learners and sums row by row: what they aim at, and their privacy, exactly."""

import dataclasses
import math

import numpy as np
import pytest

from dpcore import total
from dpcore.answer.answer import ReleaseSetting
from dpcore.code.release_spec import Quantity
from dpcore.common.checks import InvalidInput
from dpcore.common.noise_error import Measure, NoiseKind, compute_unit_scale
from dpcore.common.privacy import Disclosure, Neighbours
from dpcore.common.programs import Program
from dpcore.contributions import ContributionHistogram
from dpcore.data import samples
from dpcore.data.totals_per_user import Amounts, get_user_amounts
from dpcore.dataset import Dataset, Totals, Values
from dpcore.learning import LearningParameters, PrivacyForm, optimal_cap
from dpcore.private_choice import choice, release_bounds
from dpcore.private_choice.answer import selection
from dpcore.private_choice.choice import compute_logits, normalise_log_weights
from dpcore.private_choice.parameters import BoundPurpose, PrivateParameters
from dpcore.private_choice.release_bounds import (
    SelectionRequest,
    request_learner_bound,
    request_quantile_bound,
    request_total_bound,
)
from dpcore.private_choice.scores import CapMean
from dpcore.quantile.parameters import ASSUMED_ROWS, QuantileParameters, Weighting

USERS = Neighbours.ADD_OR_REMOVE_USER
BOTH = (USERS, Neighbours.REPLACE_USER)
SETTING = ReleaseSetting(Quantity.QUANTILE, 1.0, USERS)
GAUSSIAN = dataclasses.replace(SETTING, statistic=Quantity.SUM, noise=NoiseKind.GAUSSIAN, delta=1e-6)
EXTREME = (1, 2, 3, 7, 40, 41, 10**6)


def quantile_draw(epsilon: float = 1.0, **fields: object) -> SelectionRequest:
    return request_quantile_bound(
        QuantileParameters(epsilon, neighbours=USERS, program=Program.BEST, **fields), SETTING, 1.0, 40
    )


def learner_draw(rows: int = 30, **fields: object) -> SelectionRequest:
    return request_learner_bound(
        LearningParameters(1.0, **{"privacy_constant": 1.0, **fields}), SETTING, rows, 1.0, 40
    )


DRAWS = {
    "median": quantile_draw(),
    "median, capped": quantile_draw(weighting=Weighting.CAP),
    "population's quantiles, capped": quantile_draw(
        3.0, quantiles="0.5, 0.9", population=True, weighting=Weighting.CAP
    ),
    "certain of nu": quantile_draw(beta=1.0, gamma=0.4),
    "learner": learner_draw(),
    "learner, linear": learner_draw(privacy_form=PrivacyForm.LINEAR),
    "learner, power of 1/2": learner_draw(privacy_form=PrivacyForm.OWN, privacy_power=0.5),
    "total": request_total_bound(GAUSSIAN, 4.0, 1.0),
}


def tables(seed: int) -> list[tuple[list[int], list[int], Neighbours]]:
    """Neighbouring tables, rows per user: random small ones against each user of `EXTREME`."""
    generator = np.random.default_rng(seed)
    found = []
    for _ in range(4):
        rest = generator.choice([1, 1, 2, 3, 5, 9, 39, 60], generator.integers(1, 9)).tolist()
        for newcomer in EXTREME:
            found.append((rest, [*rest, newcomer], USERS))
            found.append(
                ([*rest, int(generator.choice(EXTREME))], [*rest, newcomer], Neighbours.REPLACE_USER)
            )
    return found


def log_ratio(
    one: tuple[SelectionRequest, list[int]],
    other: tuple[SelectionRequest, list[int]],
    neighbours: Neighbours,
    factor: float = 1.0,
) -> float:
    """The largest log ratio of probabilities; ``factor`` is by how much too small the sensitivity is taken."""
    laws = []
    for draw, counts in (one, other):
        problem = dataclasses.replace(draw.problem, neighbours=neighbours)
        far = problem.compute_distances(ContributionHistogram.from_counts(counts))
        laws.append(normalise_log_weights(compute_logits(problem, far, np.array(problem.epsilon * factor))))
    return float(np.abs(laws[0] - laws[1]).max())


@pytest.mark.few(2)
@pytest.mark.long_for("median, capped")
@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS.keys())
def test_exact_log_ratios_keep_epsilon_under_both_relations(draw: SelectionRequest) -> None:
    most = dict.fromkeys(BOTH, 0.0)
    for here, there, of in tables(1):
        most[of] = max(most[of], log_ratio((draw, here), (draw, there), of))
    assert max(most.values()) <= draw.problem.epsilon * (1.0 + 1e-9)
    # Else an audit of a draw that does not look would pass, too.
    assert min(most.values()) > 0.2 * draw.problem.epsilon


def caught(selection_request: SelectionRequest, there: SelectionRequest, **options: float) -> bool:
    of_adding = (pair for pair in tables(1) if pair[2] is USERS)
    return any(log_ratio((selection_request, a), (there, b), of, **options) > 1.05 for a, b, of in of_adding)


def test_wrong_variants_are_caught() -> None:
    # Half the sensitivity: exp(-epsilon d / D) in place of exp(-epsilon d / (2 D)). Of a steep target, a quarter.
    for name, factor in (("learner, linear", 2.0), ("total", 2.0), ("certain of nu", 2.0), ("median", 4.0)):
        assert caught(DRAWS[name], DRAWS[name], factor=factor), name

    # How many rows there are, read off the data where it has to be public.
    def of_data(counts: list[int]) -> SelectionRequest:
        rank = QuantileParameters(1.0, neighbours=USERS, weighting=Weighting.CAP).build_rank_bound(
            ContributionHistogram.from_counts(counts)
        )
        condition = CapMean(dataclasses.replace(rank, public_rows=None).trade_off)
        draw = DRAWS["median, capped"]
        return dataclasses.replace(draw, problem=dataclasses.replace(draw.problem, condition=condition))

    def learner(counts: list[int]) -> SelectionRequest:
        return learner_draw(sum(counts))

    for variant in (of_data, learner):
        few, many = [1] * 8, [*[1] * 8, 10**6]
        assert log_ratio((variant(few), few), (variant(many), many), USERS) > 1.05
    # Means of totals in bins: one user in 1,000 moves them all across a candidate.
    draw = request_total_bound(dataclasses.replace(GAUSSIAN, noise=NoiseKind.LAPLACE, delta=None), 4.0, 1.0)
    here, there = (np.full(30, np.mean(item)) for item in ([1.0] * 30, [1.0] * 30 + [4.0]))
    laws = [
        np.log(
            choice.compute_probabilities(
                draw.problem, release_bounds.convert_to_units(item, draw.problem.unit, draw.problem.largest)
            )
        )
        for item in (here, there)
    ]
    assert np.abs(laws[0] - laws[1]).max() > 1.05


def test_replacing_a_user_takes_twice_the_sensitivity_of_a_cap() -> None:
    draw = DRAWS["median, capped"]
    added = draw.problem.sensitivity
    replaced = dataclasses.replace(draw.problem, neighbours=Neighbours.REPLACE_USER).sensitivity
    pairs = [pair for pair in tables(2) if pair[2] is Neighbours.REPLACE_USER]
    far = [
        np.abs(
            np.subtract(
                *(
                    draw.problem.compute_distances(ContributionHistogram.from_counts(side))
                    for side in pair[:2]
                )
            )
        ).max()
        for pair in pairs
    ]
    assert added < max(far) <= replaced


@pytest.mark.parametrize("weighting", [Weighting.SMOOTH, Weighting.CAP])
@pytest.mark.parametrize(("quantiles", "population"), [("0.5", False), ("0.9", True)])
def test_a_quantile_aims_at_the_least_of_the_papers_trade_off(
    weighting: Weighting, quantiles: str, population: bool
) -> None:
    histogram = samples.load("shop-events").histogram
    parameters = QuantileParameters(
        1.0, quantiles, weighting=weighting, population=population, neighbours=USERS, program=Program.BEST
    )
    draw = request_quantile_bound(parameters, SETTING, 0.1)
    # W^2 + A sum c_i^2 at every candidate, from scratch; A with a million rows, and epsilon by max(q, 1 - q).
    reach = max(parameters.quantile_levels[0], 1.0 - parameters.quantile_levels[0])
    spread = math.log(2.0 * ASSUMED_ROWS / 0.05) / (8.0 * math.log(1.0 / 0.05**2) ** 2) / reach**2
    trade_off = (4.0 if population else 1.0) * spread
    h = draw.problem.candidates[:, None]
    sizes, users = histogram.sizes.astype(float), histogram.users
    weight = np.minimum(h, sizes)  # of a user
    of_rows = weight**2 / (sizes if weighting is Weighting.SMOOTH else weight)
    kept_total = (weight * users).sum(axis=1)
    objective = (h[:, 0] ** 2 + trade_off * (of_rows * users).sum(axis=1)) / kept_total**2
    best = float(draw.problem.candidates[np.argmin(objective)])
    assert draw.problem.condition.find_best_bound(histogram) == pytest.approx(
        best, abs=0.07 if weighting is Weighting.SMOOTH else 0
    )
    # The page's own bound from counts is the same, however many rows the data have.
    assert parameters.build_rank_bound(histogram).find_optimum(
        parameters.weight_kind
    ).bound == draw.problem.condition.find_best_bound(histogram)


def test_a_learner_aims_near_the_best_cap_where_the_number_of_rows_is_right() -> None:
    for key in ("shop-events", "online-retail-invoices"):
        histogram = samples.load(key).histogram
        parameters = LearningParameters(1.0)
        problem = parameters.build_problem(histogram)
        draw = request_learner_bound(parameters, SETTING, histogram.num_rows, 0.1)
        cap = draw.problem.condition.find_best_bound(histogram)
        far = draw.problem.compute_distances(histogram)
        assert draw.problem.candidates[np.argmin(far)] == pytest.approx(cap, rel=0.03)
        error = float(optimal_cap.compute_error_parts(problem, cap / histogram.num_rows).total)
        assert error <= 1.06 * optimal_cap.find_best_cap(problem).total
    with pytest.raises(InvalidInput, match="no cap is best"):
        learner_draw(privacy_constant=0.0)


def test_sums_and_counts_with_gaussian_noise_aim_at_the_least_bias_plus_mean_noise() -> None:
    shop = samples.load("shop-events")
    for delta in (1e-9, 1e-3):
        parameters = PrivateParameters(0.7, BoundPurpose.SUM, release_delta=delta)
        problem = total.TotalProblem(
            Amounts.from_histogram(shop.histogram),
            0.7,
            NoiseKind.GAUSSIAN,
            delta,
            Measure.BOUND,
            is_integer=True,
            program=Program.OPENDP,
            rounds_noise=False,
        )
        assert (
            parameters.condition.find_best_bound(shop.histogram) == total.find_best_choice(problem).max_total
        )
    # A sum of amounts, brought row by row: by brute force over the grid, in the column's unit.
    setting = dataclasses.replace(GAUSSIAN, epsilon=0.7)
    draw = request_total_bound(setting, 20_000.0, 0.1)
    totals = get_user_amounts(shop).totals
    scale = compute_unit_scale(NoiseKind.GAUSSIAN, 0.7, 1e-6)
    bounds = draw.problem.bounds
    error = np.maximum(totals - bounds[:, None], 0.0).sum(axis=1) + scale * math.sqrt(2.0 / math.pi) * bounds
    # Without the further margin that a draw of a sum takes.
    far = draw.problem.condition.compute_distances(
        release_bounds.convert_to_units(totals, draw.problem.unit, draw.problem.largest),
        draw.problem.candidates,
    )[0]
    assert error[np.argmin(far)] <= 1.005 * error.min()  # Neighbours on the grid are 2 % apart.


def test_a_total_becomes_whole_units_by_itself() -> None:
    units = release_bounds.convert_to_units(np.array([0.3, 0.1, 0.0, -5.0, 1e300, 0.31]), 0.1, 1000)
    assert dict(zip(units.sizes.tolist(), units.users.tolist(), strict=True)) == {1: 3, 3: 1, 4: 1, 1001: 1}
    draw = request_total_bound(GAUSSIAN, 7.5, 0.1)
    assert (draw.problem.unit, draw.problem.largest) == (1e-4, 75_000)
    assert (draw.problem.bounds[2], draw.problem.bounds[-1]) == (0.0003, 7.5)
    with pytest.raises(InvalidInput, match="highest total"):
        request_total_bound(GAUSSIAN, 0.0, 0.1)
    histogram = ContributionHistogram([1], [2])
    data = Dataset("two", "two", Disclosure.PRIVATE, histogram, values=Values([0, 1], [0.3, -5.0], "amount"))
    drawn = selection.select(draw, data)
    assert drawn.column == "amount"
    assert drawn.value in draw.problem.bounds
    binned = dataclasses.replace(data, values=None, totals=Totals([1.5], "amount", [2]))
    assert get_user_amounts(binned).totals is None
    with pytest.raises(InvalidInput, match="no total for each user"):
        selection.select(draw, binned)
