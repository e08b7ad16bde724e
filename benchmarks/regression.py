"""Regression with label privacy: ours beside CVXPY.

    python benchmarks/regression.py            speed against CVXPY, and ours alone up to 300,000 rows
    python benchmarks/regression.py --large    ours alone at 1,000,000 rows

Each line runs in a process of its own, so that peak memory is its own. CVXPY's answers are made feasible and
certified by the same module as ours: "above" is how far each lies above the best lower bound of all.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import resource
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from dpcore.regression import parameters, working_set
from dpcore.regression.problem import RegressionProblem


def build_problem(num_rows: int, epsilon: float, exponent: float) -> RegressionProblem:
    """Build a problem on the paper's synthetic data with its own noise variance; B is the range of the labels."""
    data = parameters.generate_table(num_rows, exponent=exponent)
    bound = float(np.ptp(data.labels))
    return RegressionProblem(data.features, data.user_codes, epsilon, bound, residual_variance=400.0)


def measure(task: tuple[str, int, float, float]) -> tuple[int, float, float, float, float, float, str]:
    """Return users, trade-off times users, seconds, peak MB, variance, lower bound, and how the search ended."""
    method, num_rows, epsilon, exponent = task
    problem = build_problem(num_rows, epsilon, exponent)
    began = time.perf_counter()
    is_ours = method == "ours"
    solution = working_set.solve(problem) if is_ours else working_set.solve_with_cvxpy(problem, solver=method)
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
    weight = problem.trade_off * problem.graph.num_users
    value, bound = solution.variance, solution.certificate.lower_bound
    return problem.graph.num_users, weight, seconds, peak, value, bound, solution.stop_reason


def print_table(tasks: list[tuple[str, int, float, float]]) -> None:
    """Run each task in a fresh process and print its line; `A m` is small where privacy noise rules."""
    heads = ("rows", "eps", "alpha", "users", "A m", "method", "seconds", "peak MB", "above best bound")
    line = "{:>9} {:>5} {:>5} {:>7} {:>8}  {:10} {:>8} {:>8} {:>16}  {}"
    print(line.format(*heads, "ended"))
    for (num_rows, epsilon, exponent), group in itertools.groupby(tasks, key=lambda task: task[1:]):
        results = []
        for task in group:
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                results.append((task[0], pool.apply(measure, (task,))))
        best = max(result[5] for _, result in results)
        for method, (users, weight, seconds, peak, value, _, stop_reason) in results:
            excess = (value - best) / best
            start = (f"{num_rows:,}", f"{epsilon:g}", f"{exponent:g}", f"{users:,}", f"{weight:.2g}", method)
            print(
                line.format(*start, f"{seconds:.2f}", f"{peak:.0f}", f"{excess:.1e}", stop_reason), flush=True
            )


def main() -> None:
    """Print the tables that the flags name."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--large", action="store_true")
    flags = parser.parse_args()
    if flags.large:
        print_table(
            [("ours", 1_000_000, 1.0, 1.5), ("ours", 1_000_000, 1.0, 2.0), ("ours", 1_000_000, 100.0, 2.0)]
        )
    else:
        methods = ("ours", "CLARABEL", "SCS")
        print_table([(method, n, 1.0, 1.5) for n in (600, 3000) for method in methods])
        print_table([("ours", n, epsilon, 1.5) for n in (30_000, 300_000) for epsilon in (0.1, 1.0, 10.0)])


if __name__ == "__main__":
    main()
