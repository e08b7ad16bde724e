"""Sums, quantiles and the private-count mean, beside what a person would do instead.

    python benchmarks/total_and_quantile.py

One run on one machine; only ratios and errors are to be compared. With SWEETSPOT_BENCH_DATA set to a folder
that holds ml1m_user_movie_rating.csv, all is also done on those million ratings.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy import optimize

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import _mean_simulation
from dpcore import mean, quantile, total
from dpcore.contributions import ContributionHistogram, FloatArray
from dpcore.data.totals_per_user import Amounts
from dpcore.dataset import Values
from dpcore.mean import private_counts
from dpcore.quantile import QuantileProblem, WeightKind, optimal_bound
from dpcore.quantile.base_distribution import build_uniform_base
from dpcore.total import TotalProblem, strategies


def print_time(title: str, run: Callable[[], str]) -> None:
    """Run once and print one row."""
    start = time.perf_counter()
    result = run()
    print(f"{title:<72} {1e3 * (time.perf_counter() - start):>10,.1f} ms   {result}")


def compare_sums(totals: FloatArray, epsilon: float) -> None:
    """Print the best bound on a sum: ours, and a scan of the raw totals."""
    amounts = Amounts.from_totals(totals)
    problem = TotalProblem(amounts, epsilon)

    def solve_exactly() -> str:
        best = total.find_best_choice(TotalProblem(Amounts.from_totals(totals), epsilon))
        return f"T = {best.max_total:.6g}, error {float(best.errors.absolute_errors):.6g}, {best.certificate.sentence}"

    def compute_error(t: float) -> float:
        bias, scale = float(np.maximum(totals - t, 0.0).sum()), t / epsilon
        return bias + scale * float(np.exp(-bias / scale))

    def scan_quantiles() -> str:
        t = min(np.quantile(totals, np.linspace(0.5, 1.0, 101)), key=lambda t: compute_error(float(t)))
        return f"T = {t:.6g}, error {compute_error(float(t)):.6g}"

    def search_by_scipy() -> str:
        optimum = optimize.minimize_scalar(
            compute_error, bounds=(1e-9, float(totals.max())), method="bounded"
        )
        return f"T = {optimum.x:.6g}, error {optimum.fun:.6g}"

    print_time("best bound, exact, certified, from the raw totals", solve_exactly)
    print_time("  the same once grouped", lambda: f"T = {total.find_best_choice(problem).max_total:.6g}")
    print_time("  scan of 101 quantiles over the raw totals", scan_quantiles)
    print_time("  scipy minimize_scalar over the raw totals", search_by_scipy)
    epsilons = np.geomspace(1e-4, 10.0, 200)
    print_time("figure 1: 3 exact curves, 200 epsilons", lambda: str(_describe_curves(problem, epsilons)))
    print_time(
        "figure 1: simulation, 3 x 30 points, 1,000 runs",
        lambda: f"{strategies.simulate_strategies(problem, epsilons[::7]).relative_errors.size} points",
    )


def _describe_curves(problem: TotalProblem, epsilons: FloatArray) -> str:
    """Compute the curves of figure 1, and return them at the middle epsilon as text."""
    curves = strategies.compute_strategy_curves(problem, epsilons)
    best, median, high = (float(x) for x in curves.relative_errors[:, 100])
    return f"at epsilon {epsilons[100]:.3g}: best {best:.2%}, median {median:.2%}, 95 % quantile {high:.2%}"


def compare_quantiles(values: Values, low: float, high: float) -> None:
    """Print the exact distribution of a private median, and a grid."""
    problem = QuantileProblem(values, 0.5, 1.0, build_uniform_base(low, high))
    h = 20.0

    def compute_first() -> str:
        out = quantile.compute_output(problem, WeightKind.SMOOTH, h)
        return f"{out.probabilities.size:,} intervals, expected rank error {out.expected_rank_error:.3e}"

    def compute_once_more() -> str:
        return f"{quantile.compute_output(problem, WeightKind.SMOOTH, h).mean:.6g} on average"

    def compute_on_grid() -> str:
        y = np.sort(values.values)
        points = np.linspace(low, high, 100_000)
        rank = np.searchsorted(y, points, side="right") / y.size
        w = problem.histogram.max_size / y.size
        tilt = np.exp(-np.abs(rank - 0.5) / (2.0 * w))
        return f"expected rank error, no bound: {float(np.sum(tilt * np.abs(rank - 0.5)) / tilt.sum()):.3e}"

    def draw_release() -> str:
        out = quantile.compute_output(problem.with_changes(epsilon=1e3), WeightKind.SMOOTH, 1.0)
        return f"epsilon 1000: {out.sample(1, np.random.default_rng(0))[0]:.6g}"

    print_time("quantile: sort and exact output density", compute_first)
    print_time("  at another bound (sorted already)", compute_once_more)
    print_time("  one exact answer by Gumbel-max at epsilon 1000", draw_release)
    print_time("  unweighted exponential mechanism on a grid of 100,000", compute_on_grid)
    for weight_kind in WeightKind:
        choice: list[optimal_bound.QuantileChoice] = []
        print_time(
            f"best bound by exact rank error: {weight_kind.name.lower()}",
            lambda weight_kind=weight_kind, choice=choice: (
                str(  # type: ignore[misc]
                    choice.append(optimal_bound.find_best_bound(problem, weight_kind))
                    or choice[0].search_errors.bounds.size
                )
                + f" bounds; best {choice[0].bound:.4g}: {choice[0].rank_error:.3e}, "
                f"no bound: {choice[0].unbounded_rank_error:.3e}"
            ),
        )


def compare_private_means(histogram: ContributionHistogram) -> None:
    """Print the pair against the usual numerator and denominator, each at its own best cap."""
    for release in private_counts.ReleasedSums:
        problem = private_counts.PrivateCountsProblem(histogram, 0.1, 5.0, 1.25, 3.58, release)

        def run(problem: private_counts.PrivateCountsProblem = problem) -> str:
            best = mean.find_best_cap(problem)
            simulation = _mean_simulation.simulate(problem, best.max_contributions, capped=True, runs=20_000)
            return (
                f"cap {best.max_contributions}, standard error {best.standard_error:.4g} (delta method), "
                f"{simulation.mean_squared_error**0.5:.4g} (20,000 runs)"
            )

        print_time(f"private-count mean, epsilon 0.1: {release.name}", run)


def main() -> None:
    """Print the tables."""
    generator = np.random.default_rng(0)
    print("A million users with Pareto totals (exponent 1.2), epsilon 0.01")
    compare_sums(generator.pareto(1.2, 1_000_000), 0.01)
    sizes = np.minimum(np.ceil(generator.pareto(1.3, 150_000) * 2.0), 3000).astype(np.int64)
    values = Values(np.repeat(np.arange(sizes.size), sizes), generator.gamma(2.0, 10.0, int(sizes.sum())))
    print(f"\n{values.values.size:,} distinct values of {sizes.size:,} users, uniform base on [0, 500]")
    compare_quantiles(values, 0.0, 500.0)
    folder = os.environ.get("SWEETSPOT_BENCH_DATA")
    file = Path(folder) / "ml1m_user_movie_rating.csv" if folder else None
    if file is None or not file.exists():
        return
    table = np.loadtxt(file, delimiter=",", skiprows=1, dtype=np.int64)
    table = table[np.argsort(table[:, 0], kind="stable")]
    _, codes, counts = np.unique(table[:, 0], return_inverse=True, return_counts=True)
    print(f"\n{table.shape[0]:,} ratings of {counts.size:,} users")
    compare_sums(counts.astype(np.float64), 0.01)
    compare_quantiles(Values(codes, table[:, 2].astype(np.float64)), 0.5, 5.5)
    compare_private_means(ContributionHistogram.from_counts(counts))


if __name__ == "__main__":
    main()
