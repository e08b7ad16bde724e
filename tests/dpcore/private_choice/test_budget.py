"""A total epsilon, divided between private selections and the release that uses them."""

import json
import random
import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import dpcore
from dpcore.answer.answer import MAX_VARIANCE_SHARE
from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Ledger, Neighbours, ReleaseFacts
from dpcore.data import samples
from dpcore.private_choice import choice
from dpcore.private_choice.answer.selection import SelectionSettings, build_request
from dpcore.private_choice.answer.words import describe_spending
from dpcore.private_choice.budget import divide_budget, find_release_epsilon, round_down
from dpcore.private_choice.parameters import BoundPurpose, PrivateParameters, Relation, find_share
from dpcore.private_choice.release_bounds import SelectionRequest
from dpcore.private_choice.table_scores import compute_least_error

pytestmark = pytest.mark.usefixtures("few_subsamples")

ADDED, REPLACED = Neighbours.ADD_OR_REMOVE_USER, Neighbours.REPLACE_USER
NASTY = 0.1, 0.3, 0.7, 1.1, 1 / 3, 2.675, 0.1 + 0.2, 1e-4, 999.99, float(np.nextafter(1.0, 0.0))


def state(epsilon: float, neighbours: Neighbours = ADDED, delta: float = 0.0) -> ReleaseFacts:
    return ReleaseFacts(epsilon, delta, neighbours, "mechanism")


def test_no_total_is_exceeded_by_a_last_digit_under_any_relation() -> None:
    generator = random.Random(62)
    for _ in range(600):
        total = generator.choice([*NASTY, round(generator.uniform(0.01, 9.0), generator.randint(1, 17))])
        ledger = Ledger()
        for _ in range(generator.randint(0, 3)):
            fraction = generator.uniform(0.001, 0.2)
            ledger = ledger.add(state(fraction * total, generator.choice([ADDED, REPLACED])))
        neighbours, share = generator.choice([ADDED, REPLACED]), generator.choice([0.15, 0.2, 0.3])
        try:
            shares = divide_budget(total, share, neighbours, ledger)
        except InvalidInput:
            assert ledger.total is not None
            assert ledger.total.epsilon > total / 4
            continue
        # Counted by the ledger of the app, whose sum is exact and rounded up: whatever was selected, the release of
        # every library adds or removes one user.
        drawn = ledger.add(state(shares.selection_epsilon, neighbours))
        for release in (shares.release_epsilon, find_release_epsilon(total, drawn, neighbours)):
            spent = drawn.add(state(release)).total
            assert spent is not None
            assert spent.epsilon <= total
            assert spent.epsilon >= total * (1.0 - 3e-5), "next to nothing is left over"


def test_shares_are_short_decimals_and_those_of_the_table() -> None:
    shares = divide_budget(1.0, 0.15, ADDED, Ledger())
    assert (shares.selection_epsilon, shares.release_epsilon) == (0.15, 0.85)
    # The release counts twice where a user is replaced: 0.15 + 2 x 0.425.
    shares = divide_budget(1.0, 0.15, REPLACED, Ledger())
    assert (shares.selection_epsilon, shares.release_epsilon) == (0.15, 0.425)
    # A second selection takes its share of what the first left: 0.15 x 0.85 = 0.1275, in two digits or a little less.
    shares = divide_budget(1.0, 0.15, ADDED, Ledger((state(0.15),)))
    assert 0.8 * 0.1275 <= shares.selection_epsilon <= 0.1275
    assert Fraction(shares.selection_epsilon) + Fraction(shares.release_epsilon) + Fraction(0.15) <= 1
    for total in NASTY:
        shares = divide_budget(total, 0.3, ADDED, Ledger())
        assert 0.79 * 0.3 * total <= shares.selection_epsilon <= 0.3 * total
        assert len(f"{shares.release_epsilon:.12g}") <= 9
    assert round_down(Fraction(2, 3)) == 0.666666
    assert round_down(Fraction(-1, 3)) == 0.0


def test_too_little_is_refused() -> None:
    for ledger in (Ledger((state(1.0),)), Ledger((state(5.0),)), Ledger((state(0.6), state(0.01, REPLACED)))):
        with pytest.raises(InvalidInput, match="oo little is left of ε = 1 in all"):
            divide_budget(1.0, 0.15, ADDED, ledger)
        assert find_release_epsilon(1.0, ledger, ADDED) == 0.0
    with pytest.raises(InvalidInput):
        divide_budget(1e-6, 0.15, ADDED, Ledger())


@pytest.mark.long
@pytest.mark.parametrize(
    ("purpose", "user_share", "most"),
    [
        (BoundPurpose.CAP, 0.0, 1.25),
        (BoundPurpose.CAP, 0.2, 1.1),
        (BoundPurpose.SMOOTH, 0.2, 1.1),
        (BoundPurpose.SUM, 0.0, 1.3),
    ],
)
def test_no_other_share_does_much_better_on_public_samples(purpose, user_share, most) -> None:
    def measure(share: float, epsilon: float, users: int, key: str) -> float:
        """Compute the expected error of selection and release, up to a factor that no share changes."""
        parameters = PrivateParameters(
            epsilon * (1.0 - share),
            purpose,
            selection_epsilon=epsilon * share,
            variance_share=MAX_VARIANCE_SHARE,
            user_share=user_share,
        )
        histogram = samples.load(key).histogram
        scale = users / histogram.num_users
        regret = choice.summarise_regret(parameters.choice, histogram, None, scale).mean_regrets[0, 0]
        error = (1.0 + regret) * compute_least_error(parameters.condition, histogram, scale)
        # The errors of a mean are in units of (B / epsilon)^2.
        return float(error if purpose is BoundPurpose.SUM else error / parameters.epsilon)

    ratios = []
    for case in [
        (e, n, key) for e in (0.3, 3.0) for n in (100, 10_000) for key in choice.FORECAST_SAMPLES[1:]
    ]:
        errors = [measure(share, *case) for share in (find_share(purpose), 0.05, 0.4)]
        ratios.append(errors[0] / min(errors))
    assert max(ratios) <= most
    assert np.exp(np.mean(np.log(ratios))) <= 1.08


def test_the_request_of_a_total_is_that_of_both_shares() -> None:
    parameters = PrivateParameters(2.0, BoundPurpose.SUM, is_total_epsilon=True, relation=Relation.REPLACE)
    request = SelectionRequest.from_parameters(parameters)
    apart = replace(parameters, is_total_epsilon=False, epsilon=0.7, selection_epsilon=0.6)
    assert request == replace(SelectionRequest.from_parameters(apart), total_epsilon=2.0)
    assert request.describe_budget() == (
        "Of ε = 2 in all, a draw takes 0.6; 0.7 is left for the release, which counts twice"
    )
    answer = dpcore.private_bound([1, 2, 30], epsilon=1, is_total_epsilon=True)
    assert answer.facts["In all"].startswith("ε = 1 with the release")
    assert answer.facts["Budget"] == "Of ε = 1 in all, a draw takes 0.15; 0.85 is left for the release."
    assert answer.setting.epsilon == 0.85


CALLS = {
    "mean_bound": {"value": "amount", "lower": 0, "upper": 9, "counts": "private"},
    "count_bound": {"mechanism": "Gaussian", "delta": 1e-6},
    "sum_bound": {"value": "amount", "highest_total": 100},
    "quantile_bound": {"value": "amount", "lower": 0, "upper": 9},
    "group_bounds": {"group": "group", "num_groups": 3},
    "learning_bound": {"public_rows": 4},
    "private_bound": {"purpose": "sum", "neighbours": "replace"},
}


@pytest.mark.few(4)
@pytest.mark.parametrize("call", CALLS)
def test_what_a_call_spends_and_its_program_are_the_total_whatever_the_data(call) -> None:
    table = pd.DataFrame({"user": ["a", "a", "b"], "amount": [1.0, 2.0, 3.0], "group": ["x", "y", "x"]})
    shares = set()
    for rows in (table, table.iloc[:0], pd.concat([table] * 40)):
        charged: list[ReleaseFacts] = []
        settings = {"user": "user", **CALLS[call]}
        drawn = dpcore.select_privately(call, rows, settings, total_epsilon=0.7, charge=charged.append)
        question = json.loads(drawn.to_json())["question"]
        release = question["release_epsilon"]
        total = Ledger((*charged, state(release))).total
        assert total is not None
        assert question["total_epsilon"] == 0.7
        assert 0.69999 <= total.epsilon <= 0.7
        assert "ε = 0.7" in drawn.detail
        shares.add((charged[0].epsilon, release))
        if call not in ("private_bound", "learning_bound"):
            assert re.search(rf"\b{release!r}\b", drawn.code("python"))
    assert len(shares) == 1


def test_a_total_and_an_epsilon_of_the_selection_exclude_each_other() -> None:
    with pytest.raises(InvalidInput, match="total epsilon is divided"):
        dpcore.select_privately("count_bound", [1, 2], {"epsilon": 1}, 0.1, total_epsilon=1.0)
    reply = dpcore.count_bound([1, 2, 3], epsilon=5)
    sentence = "The draw has spent ε = 0.3; the release adds ε = 0.7: ε = 1 in all."
    assert sentence in str(reply.draw(total_epsilon=1.0)).splitlines()
    # What was spent before is no part of draw and release, but of the total.
    settings = SelectionSettings(is_total_epsilon=True, ledger=Ledger((state(0.5),)))
    card = dpcore.count_bound([1, 2, 3], epsilon=1)
    assert card.data is not None
    request = build_request(card.answer, card.data, settings)
    assert isinstance(request, SelectionRequest)
    facts = ReleaseFacts(request.problem.epsilon, 0.0, request.problem.neighbours, "exponential mechanism")
    sentence = (
        "The draw has spent ε = 0.15; the release adds ε = 0.35: ε = 1 in all, with what was spent before."
    )
    assert describe_spending(facts, request) == sentence


@pytest.mark.parametrize("number", ["count", "total"])
def test_a_choice_aims_at_the_noise_of_the_program(number) -> None:
    sigmas = {}
    for program in ("opendp", "python", "bigquery"):
        call, extra = (
            ("count_bound", {})
            if number == "count"
            else ("sum_bound", {"value": "amount", "highest_total": 100})
        )
        settings = {
            "user": "user",
            "epsilon": 1,
            "mechanism": "Gaussian",
            "delta": 1e-6,
            "program": program,
            **extra,
        }
        table = pd.DataFrame({"user": ["a", "b"], "amount": [1.0, 2.0]})
        question = json.loads(dpcore.select_privately(call, table, settings).to_json())["question"]
        sigmas[program] = question["condition"]["price"]
    # Balle and Wang 2018 at (1, 1e-6): sigma 4.2247, E|noise| = sigma sqrt(2 / pi); by way of zCDP 6 % more; Laplace
    # noise with half of epsilon has E|noise| = 2.
    assert sigmas["python"] == pytest.approx(4.2247 * np.sqrt(2 / np.pi), rel=1e-4)
    assert 1.05 < sigmas["opendp"] / sigmas["python"] < 1.08
    assert sigmas["bigquery"] == 2.0


# The variance of a program's noise over (B h / n_h)^2, at the mean where it is largest. A pair: 2 / epsilon^2, or the
# sigma^2 of Balle and Wang 2018 at (1, 1e-6). A split around the middle: B / 2 times 1 / (epsilon / 2) and B / 2 times
# 2 / epsilon, each Laplace; BigQuery's scales are 3 / epsilon.
MEAN_NOISES = {
    ("python", "Laplace"): 2.0,
    ("opendp", "Laplace"): 2.0,
    ("pipelinedp", "Laplace"): 2.0 * (1.0 + 1.0),
    ("tumult", "Laplace"): 2.0 * (1.0 + 1.0),
    ("bigquery", "Laplace"): 2.0 * (1.5**2 + 1.5**2),
    ("python", "Gaussian"): 4.2247**2,
}


@pytest.mark.parametrize("case", MEAN_NOISES)
def test_the_choice_of_a_mean_s_bound_aims_at_the_noise_of_the_program(case) -> None:
    program, mechanism = case
    table = pd.DataFrame({"user": ["a", "b"], "amount": [1.0, 2.0]})
    settings = {"user": "user", "value": "amount", "lower": 0, "upper": 9, "epsilon": 1, "program": program}
    settings |= {
        "mechanism": mechanism,
        "counts": "private",
        "target": "population",
        "likeness": "independent",
    }
    settings |= {"delta": 1e-6} if mechanism == "Gaussian" else {}
    drawn = dpcore.select_privately("mean_bound", table, settings)
    trade_off = json.loads(drawn.to_json())["question"]["condition"]["trade_off"]
    assert trade_off == pytest.approx(0.25 / MEAN_NOISES[case], rel=1e-4)
    assert (
        ("δ = 0.000001" in drawn.detail)
        == (mechanism == "Gaussian")
        == ("SIGMA = 4.2" in drawn.code(program))
    )
