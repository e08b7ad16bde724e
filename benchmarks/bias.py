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


def seconds(prepare: Callable[[], object], work: Callable[[object], object]) -> float:
    """Best of some rounds; ``prepare`` is not timed."""
    best = np.inf
    for _ in range(ROUNDS):
        ready = prepare()
        start = time.perf_counter()
        work(ready)
        best = min(best, time.perf_counter() - start)
    return best


def plain_worst_case(histogram: ContributionHistogram, caps: np.ndarray) -> list[float]:
    """Total variation cap by cap, without prefix sums."""
    sizes, users = histogram.sizes.astype(float), histogram.users.astype(float)
    n = float(sizes @ users)
    out = []
    for cap in caps:
        kept = np.minimum(sizes, cap) @ users
        out.append(float(np.maximum(sizes / n - cap / kept, 0.0) @ users))
    return out


def main() -> None:
    rng = np.random.default_rng(0)
    sizes = np.sort(rng.choice(20 * DISTINCT, DISTINCT, replace=False)) + 1
    users = rng.integers(1, 1000, DISTINCT)

    def fresh() -> ContributionHistogram:
        return ContributionHistogram(sizes=sizes, users=users)

    def problem(term: BiasTerm) -> Callable[[], optimal_cap.BiasProblem]:
        return lambda: optimal_cap.BiasProblem(
            histogram=fresh(), epsilon=1.0, bias=term, loss_variance=0.01, vc_dimension=10
        )

    caps = np.unique(np.rint(np.geomspace(1.0, sizes[-1], POINTS)))
    tau_0 = np.geomspace(1.0, sizes[-1], POINTS) / fresh().num_rows
    law = PowerLaw(0.5)
    in_sample = np.geomspace(1e-6, 1.0, POINTS)
    cost = population.PopulationProblem(participation=law, epsilon=1.0, bias=BiasTerm.LOG_KEPT)
    rows: list[tuple[str, float]] = [
        (
            f"all ten bias terms, {DISTINCT:,} sizes x {POINTS} tau_0",
            seconds(problem(BiasTerm.TIGHTEST), lambda p: optimal_cap.compute_bias_terms(p, tau_0)),  # type: ignore[arg-type]
        ),
        (
            "the bound in its parts, same points",
            seconds(problem(BiasTerm.TIGHTEST), lambda p: optimal_cap.compute_error_parts(p, tau_0)),  # type: ignore[arg-type]
        ),
        (
            "worst case alone, NumPy without prefix sums",
            seconds(fresh, lambda h: plain_worst_case(h, caps)),  # type: ignore[arg-type]
        ),
        (
            "best whole cap, certified, worst case",
            seconds(problem(BiasTerm.WORST_CASE), optimal_cap.find_best_cap),  # type: ignore[arg-type]
        ),
        (
            "best whole cap, certified, tightest",
            seconds(problem(BiasTerm.TIGHTEST), optimal_cap.find_best_cap),  # type: ignore[arg-type]
        ),
        (
            f"E[n_tau / n] by binomials, n = 1e6 x {POINTS} tau_0",
            seconds(lambda: None, lambda _: compute_expectations(law, 10**6, in_sample)),
        ),
        (
            "the paper's way: 100 draws of 1e6 rows",
            seconds(lambda: None, lambda _: simulate(law, 10**6, in_sample, num_draws=100)),
        ),
        (
            "cost of privacy, n = 1e2 ... 1e9, each certified",
            seconds(lambda: None, lambda _: population.find_cost_of_privacy(cost)),
        ),
    ]
    width = max(len(name) for name, _ in rows)
    for name, taken in rows:
        print(f"{name:<{width}}  {taken:8.3f} s")


if __name__ == "__main__":
    main()
