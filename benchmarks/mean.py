"""The best smooth weights and the best cap for a mean, beside what a person would do instead.

    python benchmarks/mean.py

One run on one machine; only ratios and objectives are to be compared. Each line is the best of `REPEATS` runs
on a fresh histogram, so that nothing is answered from an earlier run. "Above the bound" is how far the
achieved variance lies above our certified lower bound for the same question.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import optimize

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from dpcore import mean
from dpcore.contributions import ContributionHistogram

REPEATS = 3
NUM_USERS = 1_000_000_000
EXPONENT = 1.5


@dataclass(frozen=True)
class TableRow:
    """One row of the table: what was done, how long it took, and the variances it reached."""

    title: str
    seconds: float
    smooth: float | None
    capped: float | None


def build_zipf_problem(num_sizes: int) -> mean.MeanProblem:
    """Build a problem of 1e9 users, sizes 1 .. num_sizes by Zipf's law, every size held by at least one user."""
    sizes = np.arange(1, num_sizes + 1)
    share = sizes.astype(np.float64) ** -EXPONENT
    users = np.maximum(1, np.floor((NUM_USERS - num_sizes) * share / share.sum())).astype(np.int64)
    users[0] += NUM_USERS - users.sum()
    # At this epsilon both optima lie well inside the range of sizes.
    return mean.MeanProblem(ContributionHistogram(sizes, users), 0.01, 1.0, 0.25)


def copy_problem(problem: mean.MeanProblem) -> mean.MeanProblem:
    """Return the same problem on a histogram that has not computed any sums yet."""
    h = ContributionHistogram(problem.histogram.sizes, problem.histogram.users)
    return mean.MeanProblem(h, problem.epsilon, problem.value_bound, problem.value_variance)


def make_plain_variances(problem: mean.MeanProblem) -> tuple[Callable[..., float], Callable[..., float]]:
    """Return v(h) and v'(h) of one bound by numpy over all distinct sizes, as one writes them from the paper."""
    s = problem.histogram.sizes.astype(np.float64)
    u = problem.histogram.users.astype(np.float64)
    var, noise = problem.value_variance, 2 * (problem.value_bound / problem.epsilon) ** 2

    def smooth(h: float) -> float:
        kept_rows = np.minimum(h, s)
        n = np.dot(u, kept_rows)
        return float(var * np.dot(u, kept_rows**2 / s) / n**2 + noise * (h / n) ** 2)

    def capped(h: float) -> float:
        n = np.dot(u, np.minimum(h, s))
        return float(var / n + noise * (h / n) ** 2)

    return smooth, capped


def solve_exactly(problem: mean.MeanProblem) -> tuple[float, float]:
    """Return the variances of both certified optima."""
    return mean.find_best_smooth(problem).squared_error, mean.find_best_cap(problem).squared_error


def search_our_grid(problem: mean.MeanProblem) -> tuple[float, float]:
    """Return the least variances over 1,000 log-spaced bounds, all at once, on our prefix sums."""
    grid = np.geomspace(problem.histogram.min_size, problem.histogram.max_size, 1000)
    caps = np.unique(np.rint(grid))
    return float(mean.compute_smooth_variance(problem, grid).min()), float(
        mean.compute_capped_variance(problem, caps).min()
    )


def search_plain_grid(problem: mean.MeanProblem, points: int = 1000) -> tuple[float, float]:
    """Return the least variances over 1,000 log-spaced bounds, each by numpy over all distinct sizes."""
    smooth, capped = make_plain_variances(problem)
    grid = np.geomspace(problem.histogram.min_size, problem.histogram.max_size, points)
    return min(map(smooth, grid)), min(map(capped, np.unique(np.rint(grid))))


def search_by_scipy(problem: mean.MeanProblem) -> tuple[float, float]:
    """Return the variances by scipy.optimize.minimize_scalar (bounded) on log h; the cap rounded both ways."""
    smooth, capped = make_plain_variances(problem)
    limits = (np.log(problem.histogram.min_size), np.log(problem.histogram.max_size))
    best = [
        optimize.minimize_scalar(lambda x, f=f: f(np.exp(x)), bounds=limits, method="bounded")
        for f in (smooth, capped)
    ]
    h = float(np.exp(best[1].x))
    return float(best[0].fun), min(capped(np.floor(h)), capped(np.ceil(h)))


def solve_by_cvxpy(problem: mean.MeanProblem) -> tuple[float, None]:
    """Return the variance of the weights problem grouped by size, by CVXPY and Clarabel (smooth weights only)."""
    import cvxpy as cp

    s, u = problem.histogram.sizes.astype(float), problem.histogram.users.astype(float)
    # Variables scaled by the number of users: a user's weight times m is of order 1.
    m = u.sum()
    w, t = cp.Variable(s.size), cp.Variable()
    noise = 2 * (problem.value_bound / problem.epsilon) ** 2
    ratio = problem.value_variance / noise
    sampling = cp.sum_squares(cp.multiply(np.sqrt(ratio * u / s), w))
    question = cp.Problem(cp.Minimize(cp.square(t) + sampling), [w >= 0, w <= t, (u / m) @ w == 1])
    question.solve(solver=cp.CLARABEL)
    # Objective recomputed at a feasible point made from the answer; the solver's word is not taken.
    weight = np.maximum(np.asarray(w.value), 0.0)
    weight /= np.dot(u, weight)
    return float(problem.value_variance * np.dot(u, weight**2 / s) + noise * weight.max() ** 2), None


def measure(
    title: str,
    run: Callable[[mean.MeanProblem], tuple[float, float | None]],
    problem: mean.MeanProblem,
    repeats: int,
) -> TableRow:
    """Return the row of a way: the best wall-clock time of some runs, and its variances."""
    seconds = []
    for _ in range(repeats):
        question = copy_problem(problem)
        start = time.perf_counter()
        smooth, capped = run(question)
        seconds.append(time.perf_counter() - start)
    return TableRow(title, min(seconds), smooth, capped)


def print_table(problem: mean.MeanProblem, lines: list[TableRow]) -> None:
    """Print the table; the first line is ours, to which times are compared."""
    h = problem.histogram
    smooth_bound = mean.find_best_smooth(problem).certificate.lower_bound
    cap_bound = mean.find_best_cap(problem).certificate.lower_bound
    print(
        f"\n{h.sizes.size:,} distinct sizes, {h.num_users:,} users, {h.num_rows:,} rows, eps = {problem.epsilon:g}"
    )
    print(f"{'':42s} {'time':>10s} {'ratio':>9s}   {'smooth: above':>14s} {'cap: above':>14s}")
    print(f"{'':42s} {'':>10s} {'':>9s}   {'the bound':>14s} {'the bound':>14s}")
    for line in lines:
        gap_texts = [
            "-" if value is None else f"{value / bound - 1:.1e}"
            for value, bound in ((line.smooth, smooth_bound), (line.capped, cap_bound))
        ]
        ratio = line.seconds / lines[0].seconds
        print(
            f"{line.title:42s} {line.seconds * 1e3:7.1f} ms {ratio:8.3g}x   {gap_texts[0]:>14s} {gap_texts[1]:>14s}"
        )


def main() -> None:
    """Measure and print: 1e6 distinct sizes, then 1e4, which CVXPY finishes too."""
    for num_sizes in (1_000_000, 10_000):
        problem = build_zipf_problem(num_sizes)
        is_large = num_sizes > 100_000
        lines = [
            measure("ours: both optima, certified", solve_exactly, problem, REPEATS),
            measure("grid of 1,000 h on our prefix sums", search_our_grid, problem, REPEATS),
            measure("minimize_scalar on log h, numpy", search_by_scipy, problem, 1 if is_large else REPEATS),
            measure("grid of 1,000 h, numpy over all sizes", search_plain_grid, problem, 1),
        ]
        if not is_large:
            solve_by_cvxpy(build_zipf_problem(100))  # the import is not counted
            lines.append(measure("CVXPY + Clarabel (smooth only)", solve_by_cvxpy, problem, 1))
        print_table(problem, lines)


if __name__ == "__main__":
    main()
