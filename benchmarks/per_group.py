"""The best bounds for a release per group, beside the grid of PipelineDP's tuner written out in NumPy.

    python benchmarks/per_group.py

One run on one machine, in seconds of its processors; only ratios and errors are to be compared. With
SWEETSPOT_BENCH_DATA set to a folder that holds ml1m_user_movie_rating.csv, all is also done on the pairs of user and
movie of those million ratings; with online_retail.parquet (UCI, Online Retail), on its customers and products, and on
its customers and countries. Where groups are selected privately, the best pair stands beside what PipelineDP's rule
picks, and beside scaling users with a selection of its own.

The tuner (PipelineDP, analysis/parameter_tuning.py) takes at most so many candidates, evenly spread over the list of
numbers of three leading digits, and the one with the least mean of the groups' root mean squared errors. Its moments
per group are exact, as ours are.
"""

from __future__ import annotations

import math
import os
import resource
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from dpcore.common.noise_error import NoiseKind
from dpcore.contributions import FloatArray
from dpcore.per_group.moments import compute_pair_error
from dpcore.per_group.pair_of_bounds import find_best_pair
from dpcore.per_group.pairs import UserGroupPairs
from dpcore.per_group.parameters import Objective, PerGroupParameters, Statistic
from dpcore.per_group.private_pair import pick_as_tuner
from dpcore.per_group.problem import PerGroupProblem
from dpcore.per_group.selection import (
    SelectionProblem,
    find_best_selected_pair,
    find_best_selected_vector,
)
from dpcore.per_group.selection_rules import SelectionRule
from dpcore.per_group.sorted_pairs import SortedPairs
from dpcore.per_group.whole_vector import find_best_cap, find_best_radial

CANDIDATES = 50


def time_since(start: float) -> str:
    """Return the processor time since ``start`` as text."""
    return f"{time.process_time() - start:>9.3f} s"


def list_candidates(largest: int, max_candidates: int) -> list[int]:
    """List at most so many numbers of three leading digits up to the largest, which is one of them."""
    numbers, step = [1], 1
    while numbers[-1] + step <= largest:
        numbers.append(numbers[-1] + step)
        if numbers[-1] == 1000 * step:
            step *= 10
    if len(numbers) > max_candidates - 1:
        numbers = [numbers[int(i * len(numbers) / (max_candidates - 1))] for i in range(max_candidates - 1)]
    return numbers if numbers[-1] == largest else [*numbers, largest]


def pick_by_grid(problem: PerGroupProblem) -> tuple[int, int]:
    """Return the tuner's pick (L0, L∞), every candidate by plain array code."""
    users, codes = problem.pairs.user_codes, problem.pairs.group_codes
    sizes = np.bincount(users)[users]
    each = math.isqrt(CANDIDATES)
    group_candidates, amount_candidates = (
        list_candidates(int(sizes.max()), each),
        list_candidates(int(problem.amounts.max()), each),
    )
    if len(amount_candidates) < each:
        group_candidates = list_candidates(int(sizes.max()), CANDIDATES // len(amount_candidates))
    elif len(group_candidates) < each:
        amount_candidates = list_candidates(int(problem.amounts.max()), CANDIDATES // len(group_candidates))
    num_groups, true_totals = (
        problem.pairs.num_groups,
        np.bincount(codes, problem.amounts, problem.pairs.num_groups),
    )
    least_error, pick = math.inf, (0, 0)
    for l0 in group_candidates:
        for linf in amount_candidates:
            p, m = np.minimum(1.0, l0 / sizes), np.minimum(problem.amounts, linf)
            bias = np.bincount(codes, p * m, num_groups) - true_totals
            variance = np.bincount(codes, p * (1.0 - p) * m * m, num_groups)
            noise = float(problem.parameters.compute_pair_noise_std(l0, linf)) ** 2
            error = float(np.mean(np.sqrt(bias**2 + variance + noise)))
            if error < least_error:
                least_error, pick = error, (l0, linf)
    return pick


def simulate_error(problem: PerGroupProblem, l0: int, linf: float, runs: int = 3) -> float:
    """Return the root mean squared error over groups of runs of the mechanism itself."""
    rng, parameters = np.random.default_rng(1), problem.parameters
    pairs, num_groups = problem.pairs, problem.pairs.num_groups
    rank = np.arange(pairs.num_pairs) - np.repeat(pairs.user_starts, pairs.groups_per_user)
    squares: list[FloatArray] = []
    for _ in range(runs):
        order = np.lexsort((rng.random(pairs.num_pairs), pairs.user_codes))[rank < l0]
        release = np.bincount(pairs.group_codes[order], np.minimum(problem.amounts[order], linf), num_groups)
        scale = (
            float(parameters.compute_norm_sensitivity(parameters.compute_pair_norm(l0, linf)))
            * parameters.unit_noise
        )
        draw = rng.laplace if parameters.mechanism is NoiseKind.LAPLACE else rng.normal
        squares.append((release + draw(0.0, scale, num_groups) - problem.totals) ** 2)
    return math.sqrt(float(np.mean(squares)))


def compare(pairs: UserGroupPairs, parameters: PerGroupParameters, tuner: bool = True) -> None:
    """Print one question: the exact pair, the tuner's, and both rules for whole vectors."""
    delta = "" if parameters.delta is None else f", delta {parameters.delta:g}"
    print(
        f"-- {parameters.statistic.value}, {parameters.mechanism.value} noise, epsilon {parameters.epsilon:g}{delta}"
    )
    parameters.unit_noise  # noqa: B018 (its library takes seconds to import; that is not what is measured)
    problem = PerGroupProblem(pairs, parameters)
    start = time.process_time()
    facet = SortedPairs.from_problem(problem)
    print(
        f"  {'sorting, and the error of releasing nothing':<46}{problem.error_of_nothing:>12,.2f}{time_since(start)}"
    )
    for objective in (Objective.ROOT_MEAN_SQUARE, Objective.MEAN_RMSE):
        question = PerGroupProblem(
            pairs,
            PerGroupParameters(
                parameters.epsilon,
                parameters.statistic,
                parameters.mechanism,
                parameters.delta,
                objective=objective,
            ),
        )
        question.weights, question.error_of_nothing  # noqa: B018
        start = time.process_time()
        best = find_best_pair(question, facet)
        words = f"best pair ({best.max_groups}, {best.max_amount:g}), {objective.name.lower()}"
        print(f"  {words:<46}{best.error:>12,.2f}{time_since(start)}  {best.num_evaluations} passes, gap "
              f"{best.certificate.relative_gap:.0e}")  # fmt: skip
        if objective is Objective.ROOT_MEAN_SQUARE:
            best_by_square, took = best, time.process_time() - start
    if tuner:
        start = time.process_time()
        l0, linf = pick_by_grid(problem)
        slower = (time.process_time() - start) / took
        error = compute_pair_error(problem, l0, linf)
        print(f"  {f'pick of the grid ({l0}, {linf}), root_mean_square':<46}{error:>12,.2f}{time_since(start)}  "
              f"{error / best_by_square.error - 1.0:+.1%}, {slower:.0f} times as long")  # fmt: skip
        if not best_by_square.releases_nothing:
            runs = [
                simulate_error(problem, *pair)
                for pair in ((best_by_square.max_groups, best_by_square.max_amount), (l0, linf))
            ]
            print(f"  {'both by three runs of the mechanism':<46}{runs[0]:>12,.2f} and {runs[1]:,.2f}")
    for rule in (find_best_radial, find_best_cap):
        start = time.process_time()
        vector = rule(problem)
        print(f"  {f'{vector.vector_rule.name.lower()}, T = {vector.max_norm:.6g}':<46}{vector.error:>12,.2f}"
              f"{time_since(start)}  {vector.num_evaluations} evaluations, gap {vector.certificate.relative_gap:.0e}, "
              f"{1.0 - vector.error / best_by_square.error:.1%} below the pair")  # fmt: skip


def compare_selected(pairs: UserGroupPairs, epsilon: float, max_evaluations: int) -> None:
    """Print groups selected by the truncated geometric rule: the pair, the tuner's, and scaling."""
    parameters = PerGroupParameters(
        epsilon,
        selection=SelectionRule.TRUNCATED_GEOMETRIC,
        selection_share=0.5,
        selection_delta=1e-6,
    )
    print(f"-- rows, groups selected privately, epsilon {epsilon:g} (half for each), delta 1e-06")
    selection = SelectionProblem(PerGroupProblem(pairs, parameters))
    start = time.process_time()
    worth = selection.evaluate_groups(20, 1.0)
    print(f"  {'groups released at (20, 1)':<46}{worth.num_expected_groups:>12,.2f}{time_since(start)}")
    start = time.process_time()
    best = find_best_selected_pair(selection, max_evaluations=max_evaluations)
    num_released = (
        0.0 if best.releases_nothing else selection.compute_keep_probabilities(best.max_groups).sum()
    )
    print(f"  {f'best pair ({best.max_groups}, {best.max_amount:g})':<46}{best.error:>12,.2f}{time_since(start)}  "
          f"{best.num_evaluations} evaluations, gap {best.certificate.relative_gap:.0e}, {num_released:.3g} groups, "
          f"nothing costs {selection.problem.error_of_nothing:,.2f}")  # fmt: skip
    start = time.process_time()
    l0, linf = pick_as_tuner(selection.problem, selection.compute_keep_probabilities)
    error = selection.compute_error(l0, linf)
    print(f"  {f'pick of the rule ({l0}, {linf})':<46}{error:>12,.2f}{time_since(start)}  "
          f"{error / best.error - 1.0:+.1%}, "
          f"{selection.compute_keep_probabilities(l0).sum():.3g} groups released")  # fmt: skip
    start = time.process_time()
    vector = find_best_selected_vector(selection)
    if vector is not None:
        print(f"  {f'{vector.vector_rule.name.lower()}, T = {vector.max_norm:.4g}, L0 = {vector.max_groups}':<46}"
              f"{vector.error:>12,.2f}{time_since(start)}  {1.0 - vector.error / best.error:.1%} below the pair, "
              f"{selection.compute_keep_probabilities(vector.max_groups).sum():.3g} groups released")  # fmt: skip


def read_retail(file: Path, group: str) -> UserGroupPairs:
    """Read customers, with a group column of Online Retail; lines without a customer stay out."""
    import duckdb

    columns = duckdb.sql(
        f"SELECT CustomerID::BIGINT AS who, dense_rank() OVER (ORDER BY {group}) - 1 AS code "
        f"FROM '{file}' WHERE CustomerID IS NOT NULL AND {group} IS NOT NULL"
    ).fetchnumpy()
    return UserGroupPairs.from_arrays(columns["who"], columns["code"], int(columns["code"].max()) + 1)


def draw_pairs(num_pairs: int, groups: int) -> UserGroupPairs:
    """Draw pairs with skewed users, groups and rows: each user has a run of neighbouring groups, so none is twice."""
    rng = np.random.default_rng(0)
    sizes = (4.0 / (1.0 - rng.random(num_pairs // 4)) ** 0.8).astype(np.int64).clip(max=groups // 3)
    sizes = sizes[: int(np.searchsorted(np.cumsum(sizes), num_pairs, side="right"))]
    users = np.repeat(np.arange(sizes.size), sizes)
    first_groups = ((groups - sizes) * rng.random(sizes.size) ** 3.0).astype(np.int64)
    offsets = np.arange(users.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    rows = rng.zipf(2.2, users.size).clip(max=1000)
    return UserGroupPairs(users, np.repeat(first_groups, sizes) + offsets, rows, groups)


def main() -> None:
    """Print all comparisons."""
    gaussian = {"mechanism": NoiseKind.GAUSSIAN, "delta": 1e-6}
    print("generated, 300,000 pairs, 2,000 groups")
    pairs = draw_pairs(300_000, 2_000)
    for epsilon in (0.5, 3.0):
        compare(pairs, PerGroupParameters(epsilon))
        compare(pairs, PerGroupParameters(epsilon, **gaussian))  # type: ignore[arg-type]
    folder = os.environ.get("SWEETSPOT_BENCH_DATA")
    if folder and (file := Path(folder) / "ml1m_user_movie_rating.csv").exists():
        print("MovieLens 1M, user and movie")
        table = np.loadtxt(file, delimiter=",", skiprows=1)
        movies = np.unique(table[:, 1], return_inverse=True)[1]
        start = time.process_time()
        pairs = UserGroupPairs.from_arrays(table[:, 0], movies, int(movies.max()) + 1, row_values=table[:, 2])
        print(f"  {'pairs from ratings':<46}{pairs.num_pairs:>12,}{time_since(start)}")
        for epsilon in (0.5, 1.0, 3.0):
            compare(pairs, PerGroupParameters(epsilon))
            compare(pairs, PerGroupParameters(epsilon, **gaussian))  # type: ignore[arg-type]
        compare(pairs, PerGroupParameters(1.0, Statistic.SUM), tuner=False)
        compare_selected(pairs, 1.0, 60)
    if folder and (file := Path(folder) / "online_retail.parquet").exists():
        for group in ("StockCode", "Country"):
            pairs = read_retail(file, group)
            print(
                f"Online Retail, customer and {group}: {pairs.num_pairs:,} pairs, {pairs.num_groups:,} groups"
            )
            for epsilon in (0.5, 1.0, 3.0):
                compare(pairs, PerGroupParameters(epsilon))
                compare(pairs, PerGroupParameters(epsilon, **gaussian))  # type: ignore[arg-type]
            for epsilon in (1.0, 3.0):
                compare_selected(pairs, epsilon, 300)
    print("generated, 10 million pairs, 10,000 groups")
    pairs = draw_pairs(10_000_000, 10_000)
    memory_of_pairs = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    for parameters in (PerGroupParameters(1.0), PerGroupParameters(1.0, **gaussian)):  # type: ignore[arg-type]
        parameters.unit_noise  # noqa: B018
        problem = PerGroupProblem(pairs, parameters)
        start = time.process_time()
        facet = SortedPairs.from_problem(problem)
        words = f"{parameters.mechanism.value}: sorting, and what nothing costs"
        print(f"  {words:<46}{problem.error_of_nothing:>12,.2f}{time_since(start)}")
        start = time.process_time()
        best = find_best_pair(problem, facet)
        print(f"  {f'best pair ({best.max_groups}, {best.max_amount:g})':<46}{best.error:>12,.2f}{time_since(start)}  "
              f"{best.num_evaluations} passes, gap {best.certificate.relative_gap:.0e}")  # fmt: skip
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"  most memory: {memory_of_pairs:.2f} GB when the pairs had been made, {peak:.2f} GB at the end")


if __name__ == "__main__":
    main()
