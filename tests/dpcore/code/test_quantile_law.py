"""Programs draw a quantile by the law whose error the card states, or say by which other one.

Draws by OpenDP have no seed. A candidate's frequency is compared with its probability by an exact binomial test, at a
level of 1e-10. A program that draws by permute-and-flip passes with a chance of about 1e-7.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import opendp.mod
import pytest
from scipy.stats import binomtest

from dpcore.code import Quantity, ReleasePlan, ReleaseShare, with_python, write
from dpcore.common import mechanisms
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Neighbours
from dpcore.common.programs import Program
from dpcore.dataset import Values
from dpcore.quantile.base_distribution import build_uniform_base
from dpcore.quantile.mechanism import QuantileProblem, compute_output
from dpcore.quantile.rows import WeightKind as Weights
from tests.dpcore.code.specs import REPLACE, make_spec, run_program

DRAWS = 3000
LEVEL = 1e-10
Q, EPSILON = 0.01, 2.0
ADD_OR_REMOVE = Neighbours.ADD_OR_REMOVE_USER
# Between these values lie the four candidates of [0, 4]: 0.5, 1.5, 2.5 and 3.5. Their exponents are about 1 apart.
ROWS = (("a", 1.0), ("a", 1.0), ("b", 2.0), ("c", 3.0), ("c", 3.0))
FIELDS: dict[str, Any] = {
    "file": "rows.csv", "value_column": "amount", "lower": 0.0, "upper": 4.0, "epsilon": EPSILON,
}  # fmt: skip


def exponential(exponents: list[float]) -> list[float]:
    """The exponential mechanism: candidate i with probability exp(s_i) over the sum of all."""
    odds = [math.exp(exponent) for exponent in exponents]
    return [odd / math.fsum(odds) for odd in odds]


def check_law(draw: Callable[[], int], probabilities: list[float]) -> None:
    counts = np.bincount([draw() for _ in range(DRAWS)], minlength=len(probabilities))
    for count, probability in zip(counts.tolist(), probabilities, strict=True):
        assert binomtest(count, DRAWS, probability).pvalue > LEVEL, (counts, probabilities)


@pytest.fixture
def folder(empty_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(with_python, "NUM_CANDIDATES", 4)
    lines = [f"{user},{value}" for user, value in ROWS]
    (empty_folder / "rows.csv").write_text("\n".join(["user_id,amount", *lines, ""]))
    return empty_folder


def on_card(bound: float, weights: Weights, neighbours: Neighbours, epsilon: float = EPSILON) -> list[float]:
    """Probabilities of the four candidates by the law whose error the card states."""
    values = Values(np.array([0, 0, 1, 2, 2]), np.array([value for _, value in ROWS]))
    problem = QuantileProblem(values, Q, epsilon, build_uniform_base(0.0, 4.0), neighbours=neighbours)
    law = compute_output(problem, weights, bound)
    return np.diff(law.cdf([0.0, 1.0, 2.0, 3.0, 4.0])).tolist()


@pytest.mark.long_but("bounds0-WeightKind.CAP-Neighbours.REPLACE_VALUES")
@pytest.mark.parametrize(
    ("bounds", "weights", "neighbours"),
    [
        ({"max_rows": 2}, Weights.CAP, REPLACE),
        ({"threshold": 1.0}, Weights.SMOOTH, REPLACE),
        ({"threshold": 1.0}, Weights.SMOOTH, ADD_OR_REMOVE),
    ],
)
def test_plain_python_draws_by_the_law_of_the_card(
    folder: Path, bounds: dict[str, float], weights: Weights, neighbours: Neighbours
) -> None:
    choice = make_spec(Quantity.QUANTILE, quantiles=(Q,), neighbours=neighbours, **bounds, **FIELDS)
    picks, invoke = [], opendp.mod.Measurement.__call__

    def recorded(measurement: Any, scores: Any) -> Any:
        index = invoke(measurement, scores)
        picks.append((measurement, scores, index))
        return index

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opendp.mod.Measurement, "__call__", recorded)
        names = run_program(choice, Program.PYTHON)
    ((measurement, scores, index),) = picks
    assert names["quantiles"] == {Q: index + 0.5}
    (bound,) = bounds.values()
    check_law(functools.partial(measurement, scores), on_card(bound, weights, neighbours))


@pytest.mark.long
@pytest.mark.parametrize("noise", list(NoiseKind))
def test_several_releases_draw_a_quantile_by_the_law_of_the_card(folder: Path, noise: NoiseKind) -> None:
    median = make_spec(Quantity.QUANTILE, quantiles=(Q,), threshold=1.0, neighbours=ADD_OR_REMOVE, **FIELDS)
    plan, epsilon = ReleasePlan((ReleaseShare("quantile", median, 2**20),), EPSILON), EPSILON
    if noise is NoiseKind.GAUSSIAN:
        plan = ReleasePlan(plan.releases, 5.0, noise, 1e-6)
        # Beside Gaussian noise the exponential mechanism counts as epsilon^2 / 8 of rho (Cesar and Rogers 2021).
        epsilon = math.sqrt(8.0 * plan.compute_total_budget(Program.PYTHON))
    draw, scores, loss = run_program(plan, Program.PYTHON)["prepared"]["quantile"]
    assert loss <= plan.compute_total_budget(Program.PYTHON)
    check_law(functools.partial(draw, scores), on_card(1.0, Weights.SMOOTH, ADD_OR_REMOVE, epsilon))


@pytest.mark.long
def test_private_selections_draw_by_the_exponential_mechanism() -> None:
    scores, scale = [0, 1024, 0, -1024], 1024.0
    check_law(mechanisms.make_selector(scores, scale), exponential([0.0, 1.0, 0.0, -1.0]))


@pytest.mark.long
def test_opendp_draws_by_permute_and_flip_under_pure_epsilon_and_the_program_says_so(folder: Path) -> None:
    """Its exponential noise is permute-and-flip: of scores 0 and 1 the first has half of exp(-1), not 0.269."""
    choice = make_spec(Quantity.QUANTILE, quantiles=(Q,), max_rows=2, neighbours=ADD_OR_REMOVE, **FIELDS)
    code = write(choice, Program.OPENDP)
    assert any("permute-and-flip" in sentence for sentence in code.differences)
    summary = run_program(choice, Program.OPENDP)["query"].summarize()
    assert summary["distribution"].to_list() == ["ExponentialMin"]

    import opendp.prelude as dp

    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float)
    draw = dp.m.make_noisy_max(*space, dp.max_divergence(), scale=1.0)
    half = math.exp(-1.0) / 2.0
    check_law(functools.partial(draw, [0.0, 1.0]), [half, 1.0 - half])


def test_opendp_s_several_releases_say_by_which_law_a_quantile_is_drawn() -> None:
    """With Gaussian noise OpenDP's quantiles have Gumbel noise: the law of the page."""
    ranked = make_spec(Quantity.QUANTILE, quantiles=(Q,), max_rows=2, neighbours=ADD_OR_REMOVE, **FIELDS)
    shares = (ReleaseShare("quantile", ranked, 2**20),)
    sentences = {
        noise: " ".join(write(plan, Program.OPENDP).differences)
        for noise, plan in (
            (NoiseKind.LAPLACE, ReleasePlan(shares, EPSILON)),
            (NoiseKind.GAUSSIAN, ReleasePlan(shares, 9.0, NoiseKind.GAUSSIAN, 1e-6)),
        )
    }
    assert "permute-and-flip" in sentences[NoiseKind.LAPLACE]
    assert "permute-and-flip" not in sentences[NoiseKind.GAUSSIAN]


def test_weights_by_user_add_up_without_rounding(folder: Path) -> None:
    """Weights are whole steps: sums of 30,000 of them are exact, where floats drift by more than their last digit."""
    lines = [f"u{i % 7},{(i % 3999) / 1000}" for i in range(30_000)]
    (folder / "rows.csv").write_text("\n".join(["user_id,amount", *lines, ""]))
    choice = make_spec(Quantity.QUANTILE, quantiles=(Q,), threshold=0.7, neighbours=ADD_OR_REMOVE, **FIELDS)
    names = run_program(choice, Program.PYTHON)
    weights = names["events"]["weight"].tolist()
    assert all(isinstance(weight, int) for weight in weights)
    assert names["below"].tolist() == [0, *itertools.accumulate(weights)]
    per_user = names["events"].groupby("user_id")["weight"].sum()
    assert per_user.max() <= 0.7 * names["STEPS"]
    assert per_user.min() >= 0.7 * names["STEPS"] - 30_000 / 7 - 1
