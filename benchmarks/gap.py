"""How fast the gap questions are answered. Run: python -m benchmarks.gap (or make bench)."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from dpcore.contributions import ContributionHistogram
from dpcore.gap_examples.compare import build_problem_of_noise_ratio, compare, compute_variance_ratios
from dpcore.gap_examples.regression import compute_limiting_of_example_3
from dpcore.gap_examples.two_groups import compute_integer_cap_limit, compute_supremum


def measure_seconds(run: Callable[[], object], repeats: int = 3) -> float:
    """Return the seconds of the fastest of a few runs."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Print the table."""
    top = compute_supremum().build_problem()
    rng = np.random.default_rng(0)
    sizes = np.unique(np.rint(rng.pareto(1.0, 50_000) * 10 + 1))
    wide = build_problem_of_noise_ratio(ContributionHistogram.from_table(sizes, np.ones(sizes.size)), 5_000.0)
    instances = [build_problem_of_noise_ratio(top.histogram, float(r)) for r in np.geomspace(1.0, 1e3, 200)]
    size_rows, user_rows = np.tile([1.0, 1e6], (200_000, 1)), np.tile([26.0, 31.0], (200_000, 1))
    noises = np.geomspace(1.0, 1e3, 200_000)
    shares = np.linspace(0.0, 1.0, 2_001)
    rows = [
        ("exact, certified comparison: 2 sizes", 200, lambda: [compare(p) for p in instances]),
        (f"exact, certified comparison: {sizes.size:,} sizes", 1, lambda: compare(wide)),
        (
            "the same ratios as a batch: 2 sizes",
            200_000,
            lambda: compute_variance_ratios(size_rows, user_rows, noises),
        ),
        ("curve of limits over 2,001 shares", 1, lambda: compute_integer_cap_limit(shares)),
        (
            "example 3, g = 500: thresholds",
            500,
            lambda: [compute_limiting_of_example_3(500, h) for h in range(1, 501)],
        ),
    ]
    print(f"{'what':<48}{'how many':>10}{'seconds':>10}{'each, µs':>12}")
    for title, count, run in rows:
        seconds = measure_seconds(run)
        print(f"{title:<48}{count:>10,}{seconds:>10.4f}{seconds / count * 1e6:>12.3f}")


if __name__ == "__main__":
    main()
