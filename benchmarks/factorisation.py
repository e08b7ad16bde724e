"""Recommenders under user-level privacy: time and memory at ten million ratings, and what adaptive weights gain.

    python benchmarks/factorisation.py [--seeds 5] [--large-seeds 5]
    python benchmarks/factorisation.py --table    every private model over epsilon, on 20 paired seeds; a few minutes
    python benchmarks/factorisation.py --where    by how much a private factorisation beats item means with own offsets,
                                                  over epsilon, its dimension, and ratings per item; two minutes
    python benchmarks/factorisation.py --recall   recall at 20 over epsilon, implicit feedback; half a minute

One run on one machine, in seconds of its processors (and by the clock, which other work on the machine moves); only
ratios and errors are to be compared. With SWEETSPOT_BENCH_DATA set to a folder that holds ml1m_user_movie_rating.csv,
errors are also measured on those million ratings, and a sweep stands beside the solvers of `implicit` where that is
installed. Nothing of the ratings is written anywhere.
"""

from __future__ import annotations

import argparse
import importlib
import math
import os
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from dpcore.contributions import FloatArray
from dpcore.factorisation import studies
from dpcore.factorisation.allocation import Scheme, Spending
from dpcore.factorisation.answer.solution import find_baseline_comparison
from dpcore.factorisation.fit import fit, fit_private
from dpcore.factorisation.implicit import select_choices
from dpcore.factorisation.model import (
    FactorSettings,
    LeastSquaresSums,
    RatingRange,
    choose_block_size,
    multiply_coordinates,
    solve_rows,
)
from dpcore.factorisation.parameters import CHOICE_SPREAD, FactorisationParameters
from dpcore.factorisation.ratings import NUM_BUCKETS, GeneratedRatings, Ratings, assign_buckets
from dpcore.factorisation.studies import PRIVATE_MEAN_KINDS, RatingStudy
from dpcore.factorisation.study import FACTORISATION, SCHEME_BY_KIND, ModelKind, StudyResult, measure, run
from dpcore.multitask.problem import PrivacyTarget

LARGE = GeneratedRatings(num_users=69_878, num_items=10_677, ratings_per_user=143.1)
"""The size of MovieLens 10M: 10 million ratings."""
PAPER = {1: 21.6, 2: 23.7, 4: 22.8, 5: 8.4}
"""What adaptive weights are said to gain at least over tail sampling on MovieLens 10M at epsilon = 1, in per cent, by
bucket from the rarest (Krichene et al. 2023, appendix D.2, which leaves one out)."""


def print_time(name: str, work: Callable[[], Any]) -> Any:
    """Do the work, print its seconds, and return its result."""
    processor, clock = time.process_time(), time.perf_counter()
    result = work()
    took, passed = time.process_time() - processor, time.perf_counter() - clock
    print(f"{name:<58} {took:>8.2f} s {passed:>8.2f} s by the clock")
    return result


def format_memory() -> str:
    """Return the most memory that this process has held, as text."""
    return f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB"


def measure_large() -> Ratings:
    """Print times and memory at the size of MovieLens 10M; return its ratings."""
    print("Generated, 69,878 users and 10,677 items")
    ratings: Ratings = print_time("ratings drawn", lambda: LARGE.draw(np.random.default_rng(1)))
    print(f"{ratings.num_ratings:,} ratings; memory so far {format_memory()}")
    limits = RatingRange()
    for dimension in (8, 32):
        settings = FactorSettings(dimension, 1, 5.0, 5.0, offset_coordinate=0.0)
        print_time(f"a sweep without privacy, d = {dimension}", partial(fit, ratings, settings, limits))
    spending = Spending.from_target(PrivacyTarget(1.0, 1e-5), 0.12, 2, 100)
    for scheme in Scheme:
        print_time(
            f"a private fit of two sweeps, d = 8, {scheme.value}",
            partial(fit_private, ratings, FactorSettings(8, 2), limits, scheme, spending),
        )
    print(f"most memory: {format_memory()}\n")
    return ratings


def print_errors(title: str, ratings: Ratings, study: RatingStudy) -> None:
    """Print mean errors with standard errors over seeds, and adaptive weights against the other schemes."""
    result = run(ratings, study)
    print(
        f"{title}: {ratings.num_ratings:,} ratings, d = {study.private_settings.dimension}, "
        f"T = {study.private_settings.sweeps}, k = {study.max_items}, {study.repeats} seeds;\n"
        "RMSE over all items, then from the rarest fifth to the most rated, with standard errors"
    )
    for epsilon_index, epsilon in enumerate(study.epsilons):
        for row_index, model in enumerate(study.model_kinds):
            if epsilon_index and not model.is_private:
                continue
            print(
                f"  ε = {epsilon:<4g} {model.value:<28}" + _format_row(result.rmse[row_index, epsilon_index])
            )
        for other_model in (ModelKind.UNIFORM, ModelKind.TAIL, *PRIVATE_MEAN_KINDS):
            gain = _compute_gain(result, other_model, epsilon_index)
            print(
                f"  ε = {epsilon:<4g} adaptive gains over {other_model.value:<20}"
                + _format_row(gain, "{:+.2f}", " %")
            )
        if epsilon == 1.0:
            paper_gains = "".join(
                f"{'≥ ' + str(PAPER[bucket]) + ' %' if bucket in PAPER else '–':>17}"
                for bucket in range(1 + NUM_BUCKETS)
            )
            print(f"  ε = 1    the paper, over tail (MovieLens 10M)     {paper_gains}")
            _print_missing_gains(result, epsilon_index)
    print()


def _compute_gain(result: StudyResult, other_model: ModelKind, epsilon_index: int) -> FloatArray:
    """Compute by how many per cent the adaptive error is below the other's per seed, shape (seeds, 1 + NUM_BUCKETS)."""
    adaptive_errors, other_errors = (
        result.select_runs(model)[epsilon_index] for model in (ModelKind.ADAPTIVE, other_model)
    )
    return np.asarray(100.0 * (1.0 - adaptive_errors / other_errors))


def _format_row(values: FloatArray, form: str = "{:.4f}", unit: str = "") -> str:
    """Format the mean of each column of ``values``, with its standard error."""
    cells = []
    for column in values.T:
        column = column[np.isfinite(column)]
        error = column.std(ddof=1) / math.sqrt(column.size) if column.size > 1 else math.nan
        mean = form.format(column.mean()) if column.size else "–"
        cells.append(f"{mean} ± {form.format(error).lstrip('+')}{unit}".rjust(17 + len(unit) // 2))
    return "".join(cells)


def _print_missing_gains(result: StudyResult, epsilon_index: int) -> None:
    """Print the buckets whose gain over tail sampling is below the paper's, if any."""
    gain = _compute_gain(result, ModelKind.TAIL, epsilon_index).mean(axis=0)
    missing_buckets = [bucket for bucket, paper_gain in PAPER.items() if not gain[bucket] >= paper_gain]
    if missing_buckets:
        bucket_texts = ", ".join(str(bucket - 1) for bucket in missing_buckets)
        print(f"  The paper's gains over tail sampling are not seen here in bucket {bucket_texts}.")


def read_movielens() -> Ratings | None:
    """Return MovieLens 1M; if its file is missing, print a sentence and return None."""
    folder = os.environ.get("SWEETSPOT_BENCH_DATA")
    file = Path(folder or "") / "ml1m_user_movie_rating.csv"
    if folder is None or not file.exists():
        print(
            "MovieLens 1M is left out: SWEETSPOT_BENCH_DATA names no folder that holds ml1m_user_movie_rating.csv.\n"
        )
        return None
    users, items, values = np.loadtxt(file, delimiter=",", skiprows=1, unpack=True)
    codes = [np.unique(column, return_inverse=True)[1] for column in (users, items)]
    return Ratings.from_columns(codes[0], codes[1], values.astype(np.float32))


def compare_with_implicit(ratings: Ratings, dimension: int = 32, ridge: float = 10.0) -> None:
    """Print one sweep of the same objective, that of implicit feedback, by both solvers of `implicit` and by ours.

    sum over all pairs c (p - <x, y>)^2 + ridge (|x|^2 + |y|^2), where c is the rating and p = 1 where there is one, and
    c = 1 and p = 0 elsewhere. What all pairs share is one matrix, added to the sums of every row.
    """
    try:
        als: Any = importlib.import_module("implicit.cpu._als")
    except ImportError:
        print("The solvers of implicit are left out: it is not installed here.\n")
        return
    from scipy.sparse import csr_matrix

    print(f"One sweep of implicit feedback, MovieLens 1M, d = {dimension}, one thread")
    matrix = csr_matrix(
        (ratings.values, ratings.items, ratings.starts), shape=(ratings.num_users, ratings.num_items)
    )
    by_item = matrix.T.tocsr()
    first = np.random.default_rng(0).normal(size=(ratings.num_items, dimension)).astype(np.float32) / 10.0

    def run_solver(solver: Callable[..., None]) -> tuple[Any, Any]:
        """Run one sweep of a solver of implicit; return factors of users and of items."""
        users, items = np.zeros((ratings.num_users, dimension), np.float32), first.copy()
        solver(matrix, users, items, ridge, num_threads=1)
        solver(by_item, items, users, ridge, num_threads=1)
        return users, items

    factors_by_name = {
        "implicit, Cholesky": print_time("implicit, Cholesky", lambda: run_solver(als.least_squares)),
        "implicit, conjugate gradients (3 steps)": print_time(
            "implicit, conjugate gradients (3 steps)", lambda: run_solver(als.least_squares_cg)
        ),
        "ours": print_time("ours", lambda: _run_implicit_sweep(ratings, first, ridge)),
    }
    objectives = {
        name: _compute_implicit_objective(ratings, users, items, ridge)
        for name, (users, items) in factors_by_name.items()
    }
    for name, value in objectives.items():
        print(f"  objective of {name:<44} {value:.3f}")
    relative_difference = abs(objectives["ours"] / objectives["implicit, Cholesky"] - 1.0)
    print(f"  ours and Cholesky differ by {relative_difference:.1e} of it\n")


def _run_implicit_sweep(ratings: Ratings, first: Any, ridge: float) -> tuple[Any, Any]:
    """Run one sweep of ours; return factors of users and of items."""
    row_indices, column_indices = np.triu_indices(first.shape[1])
    shared, of_items = (first.T @ first)[row_indices, column_indices], multiply_coordinates(first)
    users = np.empty((ratings.num_users, first.shape[1]), np.float32)
    item_sums = LeastSquaresSums.build_zeros(ratings.num_items, first.shape[1], np.float32)
    for block in ratings.iterate_blocks(choose_block_size(first.shape[1])):
        weights = ratings.values[block.rating_slice]
        matrices, vectors = block.build_matrix(weights - 1.0) @ of_items, block.build_matrix(weights) @ first
        users[block.users] = solve_rows(LeastSquaresSums(matrices + shared, vectors), ridge)
        item_sums.add(block, users[block.users], weights - 1.0, weights)
    shared = (users.T @ users)[row_indices, column_indices]
    return users, solve_rows(
        LeastSquaresSums(item_sums.matrix_triangles + shared, item_sums.label_sums), ridge
    )


def _compute_implicit_objective(ratings: Ratings, users: Any, items: Any, ridge: float) -> float:
    """Compute the objective of implicit feedback over all pairs."""
    users, items = users.astype(np.float64), items.astype(np.float64)
    scores = np.einsum("pd,pd->p", users[ratings.graph.user_codes], items[ratings.items])
    everywhere = float(np.sum((users.T @ users) * (items.T @ items)))
    rated = float(np.sum(ratings.values * (1.0 - scores) ** 2 - scores**2))
    return everywhere + rated + ridge * float(np.sum(users**2) + np.sum(items**2))


TABLE_EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
TABLE_SEEDS, TABLE_SEED = 20, 1_000
MOST_ERROR = 0.05
"""Standard error of an excess, as a share of it, up to which it is taken as known."""


def print_table_over_epsilon() -> bool:
    """Print every private model over epsilon, on the same splits and noise, and what the page would answer.

    The page's answer is that of a training with its own settings, three seeds by default, none of them in the table.

    Returns:
        Whether the answer is never more than one standard error of their difference behind the best model.
    """
    page = FactorisationParameters(1.0)
    table_study = replace(page.study, epsilons=TABLE_EPSILONS, measures_recall=False)
    studies_by_name = {
        "Generated, the page's defaults": (
            page.population.draw(np.random.default_rng(page.data_seed)),
            table_study,
        )
    }
    if (real := read_movielens()) is not None:
        studies_by_name["MovieLens 1M"] = (real, replace(table_study, rating_range=RatingRange(1.0, 5.0)))
    print(
        f"RMSE over {TABLE_SEEDS} paired seeds, ± one standard error; delta {table_study.delta:g}, add or remove "
        "a user. Each seed splits\nevery user's ratings anew. The answer is what the page says after a training of its "
        f"own, {page.repeats} other seeds, and is\njudged here. Excess: of its error over that of the factorisation "
        "without privacy, with its standard error as a share."
    )
    failed, unsure = [], []
    for name, (ratings, study) in studies_by_name.items():
        assert ratings is not None
        on_page = run(ratings, study)
        result = run(ratings, replace(study, repeats=TABLE_SEEDS, seed=TABLE_SEED))
        plain_errors = ", ".join(
            f"{model.value} {result.select_runs(model)[0, :, 0].mean():.4f}"
            for model in study.model_kinds
            if not model.is_private
        )
        print(f"\n{name}: {ratings.num_ratings:,} ratings; {plain_errors}")
        private = [model for model in study.model_kinds if model.is_private]
        print(f"{'epsilon':>8}" + "".join(f"{model.value:>34}" for model in private) + "  answer")
        for epsilon_index, epsilon in enumerate(study.epsilons):
            errors_by_model = {model: result.select_runs(model)[epsilon_index, :, 0] for model in private}
            comparison = find_baseline_comparison(on_page, epsilon)
            assert comparison is not None
            answer = FACTORISATION if comparison.is_worth_it else RatingStudy.baseline
            best_model = min(errors_by_model, key=lambda model: errors_by_model[model].mean())
            extra_errors = errors_by_model[answer] - errors_by_model[best_model]
            cells = "".join(
                f"{f'{model_errors.mean():.4f} ± {_compute_standard_error(model_errors):.4f}':>34}"
                for model_errors in errors_by_model.values()
            )
            passed = answer is best_model or extra_errors.mean() <= _compute_standard_error(extra_errors)
            excess = errors_by_model[answer] - result.select_runs(ModelKind.NO_PRIVACY)[epsilon_index, :, 0]
            share = _compute_standard_error(excess) / max(abs(excess.mean()), 1e-12)
            if not passed:
                failed.append(f"{name} at {epsilon:g}")
            if share > MOST_ERROR:
                unsure.append(f"{name} at {epsilon:g}: {share:.0%}")
            behind = (
                ""
                if answer is best_model
                else f", {extra_errors.mean():+.4f} ± {_compute_standard_error(extra_errors):.4f} "
                f"beside {best_model.value}"
            )
            unclear = "" if comparison.is_clear else " (not clear)"
            print(
                f"{epsilon:>8g}{cells}  {answer.value}{unclear}{behind}: {'PASS' if passed else 'FAIL'}; excess "
                f"{excess.mean():.4f} ({share:.1%})",
                flush=True,
            )
    print(
        "\nFAIL: the answer is more than one standard error behind the best of " + "; ".join(failed)
        if failed
        else "\nPASS: the answer is never more than one standard error behind the best"
    )
    if unsure:
        print(f"Standard error of the answer's excess above {MOST_ERROR:.0%} of it: " + "; ".join(unsure))
    return not failed


def _compute_standard_error(values: FloatArray) -> float:
    """Return the standard error of a mean over seeds."""
    return float(values.std(ddof=1) / values.size**0.5)


WHERE_EPSILONS, WHERE_DIMENSIONS = (3.0, 10.0, 30.0, 100.0), (4, 8, 16)
WHERE_USERS, WHERE_ITEMS, WHERE_SEEDS = (3_000, 12_000), (3_700, 925), 3


def compute_advantages(population: GeneratedRatings, study: RatingStudy) -> FloatArray:
    """Compute by how much the RMSE of a factorisation with adaptive weights is below that of item means.

    Args:
        population: The users whose ratings are drawn; their number is taken from `WHERE_USERS`.
        study: One epsilon, and the settings of both models; each seed draws ratings of its own.

    Returns:
        Shape (numbers of users, seeds); above 0 where the factorisation is better.
    """
    spending = study.build_spending(study.epsilons[0])
    exponent = studies.choose_exponent(study.epsilons[0], study.exponent)
    gains = np.empty((len(WHERE_USERS), study.repeats))
    for row, num_users in enumerate(WHERE_USERS):
        for seed in range(study.repeats):
            for_ratings, for_split, for_noise = np.random.SeedSequence([study.seed, seed, num_users]).spawn(3)
            ratings = replace(population, num_users=num_users).draw(np.random.default_rng(for_ratings))
            train, test = ratings.split(study.test_share, np.random.default_rng(for_split))
            noise_seed = int(for_noise.generate_state(1)[0])
            fitted = fit_private(
                train, study.private_settings, study.rating_range, SCHEME_BY_KIND[ModelKind.ADAPTIVE], spending,
                study.exponent, study.ridge_to_noise, noise_seed, gradient_steps=study.gradient_steps,
            )  # fmt: skip
            assert fitted is not None
            item_means = studies.fit_private_item_means(
                train, study.rating_range, spending, exponent, study.ridge_to_noise, noise_seed
            )
            models = (studies.add_own_offsets(item_means), fitted)
            buckets = assign_buckets(train.item_counts)
            means_rmse, factors_rmse = (measure(m, train, test, buckets, False)[0][0] for m in models)
            gains[row, seed] = means_rmse - factors_rmse
    return gains


def print_advantages() -> None:
    """Print by how much the factorisation's error is below its baseline's, as there is more and more to learn from.

    Items are few or many, users few or many, so that an item has 16 times as many ratings in the last block as in the
    first; tastes, offsets and ratings per user are those of the page's defaults.
    """
    page = FactorisationParameters(1.0)
    print(
        f"RMSE of item means with own offsets less that of a factorisation with adaptive weights, mean of "
        f"{WHERE_SEEDS} seeds ± one\nstandard error; above 0 the factorisation is better. Delta {page.delta:g}, add or "
        "remove one user; settings of the page but d."
    )
    for items in WHERE_ITEMS:
        population = replace(page.population, num_items=items)
        gains = {
            (epsilon, dimension): compute_advantages(
                population,
                replace(
                    page.study,
                    epsilons=(epsilon,),
                    repeats=WHERE_SEEDS,
                    rating_range=RatingRange(population.lowest, population.highest),
                    private_settings=replace(page.study.private_settings, dimension=dimension),
                ),
            )
            for epsilon in WHERE_EPSILONS
            for dimension in WHERE_DIMENSIONS
        }
        for users_index, users in enumerate(WHERE_USERS):
            per_item = users * population.ratings_per_user / items
            print(f"\n{items:,} items, {users:,} users: about {per_item:,.0f} ratings per item")
            print(f"{'epsilon':>8}" + "".join(f"{f'd = {dimension}':>22}" for dimension in WHERE_DIMENSIONS))
            for epsilon in WHERE_EPSILONS:
                cell_gains = [gains[epsilon, dimension][users_index] for dimension in WHERE_DIMENSIONS]
                cells = "".join(
                    f"{f'{seed_gains.mean():+.4f} ± {seed_gains.std(ddof=1) / WHERE_SEEDS**0.5:.4f}':>22}"
                    for seed_gains in cell_gains
                )
                print(f"{epsilon:>8g}{cells}", flush=True)


RECALL_SEEDS = 5


def print_recall_over_epsilon() -> None:
    """Print recall of every recommender by the page's settings: generated users, and MovieLens 1M if it is there."""
    page = FactorisationParameters(1.0)
    population = replace(page.population, choice_spread=CHOICE_SPREAD)
    tables = {"Generated": select_choices(population.draw(np.random.default_rng(1)))}
    if (real := read_movielens()) is not None:
        tables["MovieLens 1M, 4 stars and more"] = select_choices(real, page.chosen_from)
    study = replace(page.choice_study, epsilons=(1.0, 3.0, 10.0, 30.0), repeats=RECALL_SEEDS)
    for name, choices in tables.items():
        result = run(choices, study)
        print(f"\n{name}: {choices.num_ratings:,} choices; mean of {RECALL_SEEDS} seeds ± one standard error")
        print(f"{'epsilon':>8}" + "".join(f"{model.value:>28}" for model in study.model_kinds))
        for epsilon_index, epsilon in enumerate(study.epsilons):
            recalls = [
                result.recall[model_index, epsilon_index, :, 0]
                for model_index in range(len(study.model_kinds))
            ]
            cells = "".join(
                f"{f'{seed_recalls.mean():.4f} ± {_compute_standard_error(seed_recalls):.4f}':>28}"
                for seed_recalls in recalls
            )
            print(f"{epsilon:>8g}{cells}", flush=True)


def main() -> None:
    """Print all measurements, or the one that a flag names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5, help="seeds of the smaller tables")
    parser.add_argument(
        "--large-seeds", type=int, default=5, help="seeds at ten million ratings; 0 to leave it out"
    )
    parser.add_argument("--table", action="store_true", help="the table over epsilon alone")
    parser.add_argument("--where", action="store_true", help="where the factorisation wins, alone")
    parser.add_argument("--recall", action="store_true", help="recall over epsilon, alone")
    arguments = parser.parse_args()
    if arguments.recall:
        print_recall_over_epsilon()
        return
    if arguments.where:
        print_advantages()
        return
    if arguments.table:
        sys.exit(0 if print_table_over_epsilon() else 1)
    ratings = measure_large()
    study = RatingStudy(repeats=arguments.seeds, measures_recall=False)
    if (real := read_movielens()) is not None:
        compare_with_implicit(real)
        print_errors("MovieLens 1M", real, replace(study, rating_range=RatingRange(1.0, 5.0)))
    print_errors("Generated, 6,000 × 3,700", GeneratedRatings().draw(np.random.default_rng(1)), study)
    if arguments.large_seeds:
        print_errors("Generated, 69,878 × 10,677", ratings, replace(study, repeats=arguments.large_seeds))
    print(f"most memory: {format_memory()}")


if __name__ == "__main__":
    main()
