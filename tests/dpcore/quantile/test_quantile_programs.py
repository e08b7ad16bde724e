"""The error of a quantile is that of its program: laws by brute force, releases by the programs and by simulation."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpcore.code import Quantity, write
from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Disclosure, Neighbours
from dpcore.common.programs import Program
from dpcore.contributions import ContributionHistogram
from dpcore.data import samples
from dpcore.dataset import Values
from dpcore.quantile import QuantileProblem, compute_output, optimal_bound
from dpcore.quantile.answer import build_answer
from dpcore.quantile.answer.words import SHORT_NAME_BY_PROGRAM
from dpcore.quantile.base_distribution import CandidateBase
from dpcore.quantile.parameters import BoundFrom, QuantileParameters, Weighting
from dpcore.quantile.programs import compute_permute_and_flip, lay_base
from dpcore.quantile.rows import WeightKind
from tests.dpcore.code.specs import make_spec, run_program

CAP = WeightKind.CAP
USERS = Neighbours.ADD_OR_REMOVE_USER
SHOP = samples.load("shop-events")
SHOP_VALUES = SHOP.values
assert SHOP_VALUES is not None
LEVEL = 1e-6
# Two users' values tie with candidates of the grid on [0, 4].
FEW = Values(
    np.repeat(np.arange(4), [1, 3, 2, 5]), np.array([1.0, 1.0, 2.0, 3.0, 2.2, 3.0, 0.5, 1.0, 3.3, 3.9, 4.0])
)


def pose(program: Program, values: Values, q: float, epsilon: float, high: float = 4.0) -> QuantileProblem:
    return QuantileProblem(
        values, q, epsilon, lay_base(program, 0.0, high), neighbours=USERS, program=program
    )


def flip_by_definition(ratios: np.ndarray) -> np.ndarray:
    """Permute-and-flip over all orders: candidates in random order, each accepted with its probability."""
    probabilities = np.zeros(ratios.size)
    for order in itertools.permutations(range(ratios.size)):
        reached = 1.0
        for i in order:
            probabilities[i] += reached * ratios[i]
            reached *= 1.0 - ratios[i]
    return probabilities / math.factorial(ratios.size)


@pytest.mark.parametrize("scale", [1e-3, 0.1, 1.0, 10.0, 1000.0])
def test_permute_and_flip_is_its_definition_over_all_orders(scale: float) -> None:
    generator = np.random.default_rng(7)
    for num_candidates in (2, 3, 6):
        scores = -scale * generator.random((4, num_candidates))
        scores[0, 1] = scores[0, 0]
        for line, probabilities in zip(scores, compute_permute_and_flip(scores), strict=True):
            expected = flip_by_definition(np.exp(line - line.max()))
            assert probabilities == pytest.approx(expected, rel=1e-5, abs=1e-12)


def test_permute_and_flip_of_many_candidates_is_noisy_max_with_exponential_noise() -> None:
    generator = np.random.default_rng(8)
    scores = -5.0 * generator.random((1, 1001)) ** 2
    counts = np.zeros(1001)
    for _ in range(40):
        noisy = scores + generator.exponential(size=(1000, 1001))
        counts += np.bincount(noisy.argmax(axis=1), minlength=1001)
    groups = np.argsort(scores[0]) // 100
    observed, expected = (
        np.bincount(groups, w) for w in (counts, compute_permute_and_flip(scores)[0] * 40_000)
    )
    assert stats.chisquare(observed, expected).pvalue > LEVEL


@pytest.mark.long_but("0.8")
@pytest.mark.parametrize("q", [0.5, 0.8])
def test_opendp_s_scores_leave_out_ties(q: float) -> None:
    """Every choice of rows is listed; a score is |below - q (n - equal)|, straight from OpenDP's definition."""
    problem = pose(Program.OPENDP, FEW, q, 2.0)
    law = compute_output(problem.with_subsamples(4000), CAP, 2.0)
    candidates = np.arange(1001) / 250.0
    rows = [FEW.values[FEW.user_codes == user] for user in range(4)]
    kept_rows = itertools.product(*(itertools.combinations(r, min(2, r.size)) for r in rows))
    laws = []
    for kept_row in kept_rows:
        values = np.array(list(itertools.chain(*kept_row)))
        below, equal = (compare(values[:, None], candidates).sum(axis=0) for compare in (np.less, np.equal))
        # One user's rows move the score by max(q, 1 - q) each, two of them at most.
        scores = -np.abs(below - q * (values.size - equal)) * 2.0 / (2.0 * 2.0 * max(q, 1.0 - q))
        laws.append(compute_permute_and_flip(scores[None])[0])
    expected = np.mean(laws, axis=0)
    # Sampled choices of rows: within 5 deviations of a share of 4,000.
    spread = 5.0 * np.std(laws, axis=0) / math.sqrt(4000)
    assert np.all(np.abs(law.probabilities[1:] - expected) <= spread + 1e-5)
    errors = np.abs((FEW.values[:, None] <= candidates).mean(axis=0) - q)
    assert law.expected_rank_error == pytest.approx(expected @ errors, rel=0.02)


@pytest.fixture
def _events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"{user},{value}" for user, value in zip(FEW.user_codes, FEW.values, strict=True)]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("\n".join(["user_id,amount", *lines, ""]))


@pytest.mark.long
@pytest.mark.usefixtures("_events")
@pytest.mark.slow
def test_opendp_s_program_errs_as_the_card_says() -> None:
    """120 releases of the program's own query, each with its own choice of rows."""
    fields: dict[str, Any] = {"file": "rows.csv", "value_column": "amount", "lower": 0.0, "upper": 4.0}
    q = 0.8
    choice = make_spec(Quantity.QUANTILE, quantiles=(q,), max_rows=2, neighbours=USERS, epsilon=2.0, **fields)
    names = run_program(choice, Program.OPENDP)
    measure = names["query"].resolve()
    answers = np.array([measure(names["events"]).collect().item() for _ in range(120)])
    errors = np.abs(np.searchsorted(np.sort(FEW.values), answers, side="right") / FEW.values.size - q)
    law = compute_output(pose(Program.OPENDP, FEW, q, 2.0), CAP, 2.0)
    assert stats.ttest_1samp(errors, law.expected_rank_error).pvalue > LEVEL


def test_tumult_draws_from_the_intervals_between_values() -> None:
    """Of one row per user no choice is random: interval by interval, with ranks and lengths counted by hand."""
    values = Values(np.arange(5), np.array([-1.0, 1.0, 1.0, 2.5, 9.0]))
    law = compute_output(pose(Program.TUMULT, values, 0.8, 1.5), CAP, 1.0)
    lengths, ranks = np.array([1.0, 1.5, 1.5]), np.array([1, 3, 4])
    odds = lengths * np.exp(-1.5 * np.abs(ranks - 4.0) / (2.0 * 0.8))
    assert np.diff(law.cdf([0.0, 1.0, 2.5, 4.0])) == pytest.approx(odds / odds.sum(), abs=1e-12)


def walk_down(values: np.ndarray, q: float, scale: float, generator: np.random.Generator) -> float:
    """GetQuantile of google/differential-privacy's quantile-tree.h, line by line, on [0, 4]."""
    leaves = (np.clip(values / 4.0, 0.0, 1.0) * (16**4 - 1)).astype(int)
    start, size, q = 0, 16**4, min(max(q, 0.005), 0.995)
    while size > 1:
        child = size // 16
        counts = [
            int(((leaves >= start + i * child) & (leaves < start + (i + 1) * child)).sum())
            + round(generator.laplace(scale=scale))
            for i in range(16)
        ]
        total = sum(counts)
        filled = sum(count for count in counts if count >= 0.005 * total)
        if total <= 0 or filled <= 0:
            break
        partial = 0.0
        for i, count in enumerate(counts):
            partial += count if count >= 0.005 * total else 0.0
            if partial / filled >= q - 1e-6:
                q = 1.0 if count == 0 else min(max((q * filled - (partial - count)) / count, 0.0), 1.0)
                start, size = start + i * child, child
                break
    return 4.0 * (start + q * size) / 16**4


@pytest.mark.long
@pytest.mark.parametrize(
    ("program", "scale", "max_rows"),
    [(Program.PIPELINEDP, 4 * 2 / 9.0, 2), (Program.BIGQUERY, 4 * 5 / 9.0, 2)],
)
@pytest.mark.parametrize("q", [0.001, 0.5])
def test_a_tree_is_walked_as_google_s_library_walks_it(
    program: Program, scale: float, max_rows: int, q: float
) -> None:
    """The same answers as a walk line by line; the tests of the libraries compare with PyDP itself."""
    generator = np.random.default_rng(3)
    law = compute_output(pose(program, FEW, q, 9.0), CAP, 2.0)
    answers = []
    for _ in range(2000):
        order = generator.permutation(FEW.values.size)
        kept = [i for user in range(4) for i in order[FEW.user_codes[order] == user][:max_rows]]
        answers.append(walk_down(FEW.values[kept], q, scale, generator))
    simulated = np.repeat(
        law.base.breaks, np.round(law.probabilities[1:] * law.subsample_errors.size).astype(int)
    )
    assert stats.ks_2samp(simulated, answers).pvalue > LEVEL
    errors = np.abs(np.searchsorted(np.sort(FEW.values), answers, side="right") / FEW.values.size - q)
    assert stats.ttest_ind(law.subsample_errors, errors, equal_var=False).pvalue > LEVEL


@pytest.mark.long_but("Program.PYTHON", "Program.BIGQUERY")
@pytest.mark.parametrize("program", list(Program))
def test_page_and_program_have_one_bound(program: Program) -> None:
    answer = build_answer(SHOP, QuantileParameters(1.0, low=0.0, high=100.0, program=program))
    assert answer.code is not None
    library = Program.PYTHON if program is Program.BEST else program
    assert answer.code.library is library
    name, choice = answer.code.forms[0]
    assert write(choice, library).text, name
    assert choice.max_rows == answer.solution.bound or choice.threshold == answer.solution.bound
    assert json.loads(answer.write_json())["question"]["program"] == program.value
    assert library.value in answer.facts["Mechanism"] or program is Program.BEST
    assert answer.solution.rank_error > 0.0
    if program is Program.BIGQUERY:
        assert "5 rows per user, whatever bound you choose" in answer.headline
        assert (answer.near_optimal, answer.solution.bound) == ("", 5.0)


@pytest.mark.long
@pytest.mark.parametrize(("quantiles", "epsilon"), [("0.5", 1.0), ("0.9", 0.1), ("0.1, 0.5, 0.9", 0.3)])
def test_the_best_known_mechanism_is_at_least_as_good_as_each_program(quantiles: str, epsilon: float) -> None:
    settings: dict[str, Any] = {"quantiles": quantiles, "low": 0.0, "high": 100.0}
    settings |= {"weighting": Weighting.CAP, "neighbours": USERS}
    users = np.flatnonzero(np.bincount(SHOP_VALUES.user_codes) <= 9)[:40]
    is_kept = np.isin(SHOP_VALUES.user_codes, users)
    codes = np.searchsorted(users, SHOP_VALUES.user_codes[is_kept])
    histogram = ContributionHistogram.from_counts(np.bincount(codes))
    few_values = Values(codes, SHOP_VALUES.values[is_kept])
    few = dataclasses.replace(SHOP, histogram=histogram, values=few_values, pairs=None, totals=None)
    errors, best = {}, None
    for program in (Program.BEST, Program.OPENDP, Program.PIPELINEDP, Program.TUMULT):
        answer = build_answer(few, QuantileParameters(epsilon, program=program, **settings))
        errors[program], best = answer.solution.rank_error, best or answer
    assert errors[Program.BEST] == min(errors.values())
    mechanism = best.solution.mechanism
    # Public data: the code opens with the library that draws it, and the page says which it is.
    assert best.code.library is (Program.PYTHON if mechanism is Program.BEST else mechanism)
    assert SHORT_NAME_BY_PROGRAM[mechanism].split("-")[0].split(" ")[0] in best.facts["Mechanism"]
    # One tree serves all quantiles with the whole of epsilon.
    assert mechanism is Program.PIPELINEDP or "," not in quantiles
    private = dataclasses.replace(few, disclosure=Disclosure.PRIVATE)
    parameters = QuantileParameters(epsilon, program=Program.BEST, **settings)
    answer = build_answer(private, parameters, best.solution)
    assert answer.code.library is Program.PYTHON, "which mechanism is best was read off the values"
    assert "permute-and-flip, tree of counts" in answer.methods.public_procedure


@pytest.mark.long
def test_the_best_cap_of_a_tree_is_the_least_of_all_under_one_noise() -> None:
    problem = pose(Program.PIPELINEDP, SHOP.values, 0.5, 1.0, 100.0)
    choice = optimal_bound.find_best_bound(problem, CAP)
    searched = choice.search_errors
    assert searched.bounds.size == problem.histogram.max_size - problem.histogram.min_size + 1
    rank_errors = optimal_bound.compute_rank_errors(
        problem.with_search_subsamples(), CAP, [choice.bound, 40.0]
    )
    assert rank_errors.expected_errors[0] == searched.expected_errors.min() < rank_errors.expected_errors[1]
    assert "simulated releases" in choice.stop_reason
    # Other noise: within 5 standard errors of each other.
    assert choice.rank_error == pytest.approx(
        searched.expected_errors.min(), abs=5.0 * searched.standard_errors.max()
    )


@pytest.mark.long
def test_counts_give_a_bound_for_every_program_and_bigquery_keeps_its_own() -> None:
    settings: dict[str, Any] = {"low": 0.0, "high": 100.0, "bound_from": BoundFrom.COUNTS}
    solutions = {
        program: build_answer(SHOP, QuantileParameters(1.0, program=program, **settings)).solution
        for program in (Program.OPENDP, Program.BIGQUERY)
    }
    assert solutions[Program.OPENDP].bound == solutions[Program.OPENDP].counts_bound
    assert solutions[Program.BIGQUERY].bound == 5.0


def test_a_library_s_problem_protects_users_alone() -> None:
    with pytest.raises(InvalidInput, match="one user added or removed"):
        QuantileProblem(FEW, 0.5, 1.0, lay_base(Program.TUMULT, 0.0, 4.0), program=Program.TUMULT)


def test_candidates_have_their_mass_at_points() -> None:
    base = CandidateBase(np.array([0.0, 1.0, 3.0]), np.array([0.5, 0.2, 0.3]))
    low, high = np.array([-np.inf, 0.0, 0.0, 1.0, 3.0]), np.array([0.0, 1.0, 3.0, 1.0, np.inf])
    assert np.exp(base.log_mass(low, high)) == pytest.approx([0.0, 0.5, 0.7, 0.2, 0.3])


@pytest.mark.parametrize("weighting", WeightKind)
@pytest.mark.parametrize("q", [0.5, 0.8])
def test_permute_and_flip_is_private_where_only_one_user_s_values_change(
    weighting: WeightKind, q: float
) -> None:
    """Compare the exact laws on neighbouring tables: no answer is e^epsilon times as likely, and some is nearly so."""
    epsilon, values, bound = 1.5, FEW.values, float(FEW.values.size)
    largest = 0.0
    for user, amounts in itertools.product(range(4), (0.0, 2.0, 4.0)):
        moved = Values(FEW.user_codes, np.where(FEW.user_codes == user, amounts, values))
        laws = [
            compute_output(
                QuantileProblem(
                    table, q, epsilon, lay_base(Program.OPENDP, 0.0, 4.0), program=Program.OPENDP
                ),
                weighting,
                2.0 if weighting is WeightKind.SMOOTH else bound,
            ).log_probabilities[1:]
            for table in (FEW, moved)
        ]
        largest = max(largest, float(np.abs(laws[0] - laws[1]).max()))
    assert 0.2 * epsilon < largest <= epsilon * (1.0 + 1e-4)
