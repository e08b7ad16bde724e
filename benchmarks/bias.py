"""Speed of the bias curves: ours beside what a person would write instead, in one run.

Run from the repository root: ``python -m benchmarks.bias``. Times are the best of three, in seconds, and
include the histogram's prefix sums (a fresh histogram each time), not its validation.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from dpcore.contributions import ContributionHistogram
from dpcore.learning import optimal_cap, population
from dpcore.learning.bias_bounds import BiasTerm
from dpcore.learning.participation import PowerLaw, compute_expectations, simulate

DISTINCT, POINTS, ROUNDS = 1_000_000, 200, 3


def measure_seconds(prepare: Callable[[], object], work: Callable[[object], object]) -> float:
    """Return the seconds of the fastest of some rounds of ``work``; ``prepare`` is not timed."""
    best = np.inf
    for _ in range(ROUNDS):
        ready = prepare()
        start = time.perf_counter()
        work(ready)
        best = min(best, time.perf_counter() - start)
    return best


def compute_plain_worst_case(histogram: ContributionHistogram, caps: np.ndarray) -> list[float]:
    """Compute the total variation cap by cap, without prefix sums."""
    sizes, users = histogram.sizes.astype(float), histogram.users.astype(float)
    n = float(sizes @ users)
    out = []
    for cap in caps:
        kept_rows = np.minimum(sizes, cap) @ users
        out.append(float(np.maximum(sizes / n - cap / kept_rows, 0.0) @ users))
    return out


def main() -> None:
    """Print the seconds of each way."""
    rng = np.random.default_rng(0)
    sizes = np.sort(rng.choice(20 * DISTINCT, DISTINCT, replace=False)) + 1
    users = rng.integers(1, 1000, DISTINCT)

    def build_histogram() -> ContributionHistogram:
        """Build a histogram that has computed no prefix sums yet."""
        return ContributionHistogram(sizes=sizes, users=users)

    def make_problem_builder(term: BiasTerm) -> Callable[[], optimal_cap.BiasProblem]:
        """Return a function that builds the problem of a bias term on a fresh histogram."""
        return lambda: optimal_cap.BiasProblem(
            histogram=build_histogram(), epsilon=1.0, bias=term, loss_variance=0.01, vc_dimension=10
        )

    caps = np.unique(np.rint(np.geomspace(1.0, sizes[-1], POINTS)))
    tau_0 = np.geomspace(1.0, sizes[-1], POINTS) / build_histogram().num_rows
    law = PowerLaw(0.5)
    in_sample = np.geomspace(1e-6, 1.0, POINTS)
    cost = population.PopulationProblem(participation=law, epsilon=1.0, bias=BiasTerm.LOG_KEPT)
    rows: list[tuple[str, float]] = [
        (
            f"all ten bias terms, {DISTINCT:,} sizes x {POINTS} tau_0",
            measure_seconds(
                make_problem_builder(BiasTerm.TIGHTEST), lambda p: optimal_cap.compute_bias_terms(p, tau_0)
            ),  # type: ignore[arg-type]
        ),
        (
            "the bound in its parts, same points",
            measure_seconds(
                make_problem_builder(BiasTerm.TIGHTEST), lambda p: optimal_cap.compute_error_parts(p, tau_0)
            ),  # type: ignore[arg-type]
        ),
        (
            "worst case alone, NumPy without prefix sums",
            measure_seconds(build_histogram, lambda h: compute_plain_worst_case(h, caps)),  # type: ignore[arg-type]
        ),
        (
            "best whole cap, certified, worst case",
            measure_seconds(make_problem_builder(BiasTerm.WORST_CASE), optimal_cap.find_best_cap),  # type: ignore[arg-type]
        ),
        (
            "best whole cap, certified, tightest",
            measure_seconds(make_problem_builder(BiasTerm.TIGHTEST), optimal_cap.find_best_cap),  # type: ignore[arg-type]
        ),
        (
            f"E[n_tau / n] by binomials, n = 1e6 x {POINTS} tau_0",
            measure_seconds(lambda: None, lambda _: compute_expectations(law, 10**6, in_sample)),
        ),
        (
            "the paper's way: 100 draws of 1e6 rows",
            measure_seconds(lambda: None, lambda _: simulate(law, 10**6, in_sample, num_draws=100)),
        ),
        (
            "cost of privacy, n = 1e2 ... 1e9, each certified",
            measure_seconds(lambda: None, lambda _: population.find_cost_of_privacy(cost)),
        ),
    ]
    width = max(len(name) for name, _ in rows)
    for name, row_seconds in rows:
        print(f"{name:<{width}}  {row_seconds:8.3f} s")


if __name__ == "__main__":
    main()
