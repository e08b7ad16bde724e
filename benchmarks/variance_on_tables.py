"""The errors that a plan promises of variances and of means that share a count, beside many releases on real tables.

    python benchmarks/variance_on_tables.py [--draws 2000]

The tables are those of `mean_on_tables`. For every table, ε and noise: the best bound and the promised error of
variance and standard deviation, and the root mean square error of releases with rows drawn anew, fifty draws of noise
for each. The ratio of both has a 99 % interval; *to first order* is that of the error that the bound is chosen by.
The releases are computed here from the rows, without the package's mathematics. Online Retail has several columns:
means of quantity, unit price and the number of characters of the description share one count.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import dpcore as ss
from benchmarks.mean_on_tables import MAX_TABLE_ROWS, WIDE, read_tables
from dpcore.contributions import FloatArray

NOISES: dict[str, dict[str, Any]] = {"Laplace": {}, "Gaussian": {"mechanism": "gaussian", "delta": 1e-6}}
RETAIL = {"Quantity": (0, 50), "UnitPrice": (0, 20), "Characters": (0, 40)}


def draw_kept_rows(users: FloatArray, bound: int, num_draws: int) -> Iterator[FloatArray]:
    """Yield the indices of at most ``bound`` rows of each user, drawn at random."""
    generator, codes = np.random.default_rng(5), np.unique(users, return_inverse=True)[1]
    ranks = np.arange(codes.size) - np.concatenate([[0], np.cumsum(np.bincount(codes))])[np.sort(codes)]
    for _ in range(num_draws):
        yield np.lexsort((generator.random(codes.size), codes))[ranks < bound]


def draw_noise(name: str, scale: float, *shape: int) -> FloatArray:
    """Draw noise of a kind and scale, from a generator that is seeded once for each process."""
    return (GENERATOR.laplace if name == "Laplace" else GENERATOR.normal)(scale=scale, size=shape)


GENERATOR = np.random.default_rng(6)


def sum_kept_rows(users: FloatArray, t: FloatArray, bound: int, num_draws: int) -> FloatArray:
    """Sum (1 - t)^2, 2 t (1 - t) and t^2 over the rows of each draw, shape (num_draws, 3)."""
    polynomials = np.stack([(1 - t) ** 2, 2 * t * (1 - t), t**2], axis=1)
    return np.array(
        [polynomials[row_indices].sum(axis=0) for row_indices in draw_kept_rows(users, bound, num_draws)]
    )


def measure_variances(num_draws: int) -> None:
    """Print a line per table, ε, noise and statistic."""
    for table in read_tables():
        values, users = table.rows["value"].to_numpy(), table.rows["user"].to_numpy()
        width = table.upper - table.lower
        t = (np.clip(values, table.lower, table.upper) - table.lower) / width
        sums_by_bound: dict[int, FloatArray] = {}
        for epsilon in (0.1, 0.3, 1.0, 3.0):
            for (name, noise), statistic in itertools.product(
                NOISES.items(), ("variance", "standard deviation")
            ):
                plan = ss.plan_bounds(
                    table.rows, user="user", value="value", disclosure="public", epsilon=epsilon,
                    lower=table.lower, upper=table.upper, lines=statistic, **noise,
                )  # fmt: skip
                (line,) = plan.solution.lines
                bound, weight = int(line.bound), 1.0 if name == "Laplace" else math.sqrt(3.5)
                if bound not in sums_by_bound:
                    sums_by_bound[bound] = sum_kept_rows(users, t, bound, num_draws)
                noises = draw_noise(name, bound * math.sqrt(line.v), num_draws, 50, 3)
                low, mixed, high = np.moveaxis(
                    sums_by_bound[bound][:, None] + noises / [1.0, weight, 1.0], -1, 0
                )
                rows = np.maximum(low + mixed + high, 1.0)
                numbers = np.clip(high / rows - ((mixed / 2.0 + high) / rows) ** 2, 0.0, 0.25) * width**2
                truth = np.var(values)
                if statistic != "variance":
                    numbers, truth = np.sqrt(numbers), math.sqrt(truth)
                squares = ((numbers - truth) ** 2).mean(axis=1)
                measured = math.sqrt(squares.mean())
                half_width = WIDE * squares.std() / math.sqrt(num_draws) / 2.0 / squares.mean()
                (linear_square,) = line.planned_line.curve.find_optimum(np.array([line.v])).squared_errors
                print(
                    f"{table.name:38} ε {epsilon:3} {name:8} {statistic:18} bound {bound:4} "
                    f"value {truth:9.4g} promised {line.error:9.4g} ({line.error / truth:6.1%}) "
                    f"ratio {line.error / measured:.3f} ± {half_width:.3f}, "
                    f"to first order {math.sqrt(linear_square) / measured:.3f}",
                    flush=True,
                )


def measure_shared_means(num_draws: int) -> None:
    """Print for Online Retail the errors of means that share a count, and those with counts of their own."""
    path = Path(os.environ.get("SWEETSPOT_BENCH_DATA", "/nowhere")) / "online_retail.parquet"
    if not path.exists():
        return
    rows = pd.read_parquet(path)
    rows = rows[rows["CustomerID"].notna() & (rows["Quantity"] > 0)]
    rows = rows.assign(Characters=rows["Description"].astype(str).str.len().astype(float))
    rows = rows[rows["CustomerID"].isin(rows["CustomerID"].drop_duplicates().iloc[:700])].iloc[
        :MAX_TABLE_ROWS
    ]
    for epsilon in (1.0, 3.0):
        for name, noise in NOISES.items():
            lines = [f"mean of {column} from {low} to {high}" for column, (low, high) in RETAIL.items()]
            plan = ss.plan_bounds(
                rows, user="CustomerID", disclosure="public", epsilon=epsilon, lines=lines, **noise
            )
            solution = plan.solution
            if (count_line := solution.count_line) is None:
                print(f"ε {epsilon} {name}: means have counts of their own")
                continue
            squares: dict[str, list[float]] = {column: [] for column in RETAIL}
            for row_indices in draw_kept_rows(
                rows["CustomerID"].to_numpy(), int(count_line.bound), num_draws
            ):
                count = row_indices.size + draw_noise(name, count_line.bound * math.sqrt(count_line.v), 50)
                for (column, (low, high)), line in zip(RETAIL.items(), solution.lines, strict=True):
                    range_middle, values = (low + high) / 2.0, rows[column].to_numpy()
                    scale = line.bound * (high - low) / 2.0 * math.sqrt(line.v)
                    total = (np.clip(values[row_indices], low, high) - range_middle).sum() + draw_noise(
                        name, scale, 50
                    )
                    means = np.clip(range_middle + total / np.maximum(count, 1.0), low, high)
                    squares[column] += ((means - values.mean()) ** 2).tolist()
            for column, line, apart in zip(RETAIL, solution.lines, solution.apart_lines, strict=True):
                measured = math.sqrt(np.mean(squares[column]))
                print(
                    f"ε {epsilon} {name:8} mean of {column:10} bound {line.bound:4.0f} promised {line.error:.4g} ratio "
                    f"{line.error / measured:.3f}; with a count of its own {apart.error:.4g}",
                    flush=True,
                )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description="Promised and measured errors of variances and shared counts."
    )
    parser.add_argument("--draws", type=int, default=2000)
    arguments = parser.parse_args()
    measure_variances(arguments.draws)
    measure_shared_means(arguments.draws)
