"""What clamping users in place of rows gains for a mean, on users who did not choose the parameters.

    python benchmarks/clamped_users.py [--seeds 20] [--epsilons 0.3 1 3]

For every table and ε the users are split into halves. One half chooses the parameters, the other is released;
neighbours add or remove a user. The number is the root mean square error of the release over that of clamped rows with
the known public range, geometric mean over the splits with its standard error.

- *rows, best range*: rows clamped to the best range of the first half.
- *users, best limit*: `dpcore.mean.clamped_users` with centre, limit and bound of the first half.
- *rows, drawn* and *users, drawn*: the range drawn from the released half itself with 0.3 ε, both ends around a public
  typical value: the median of the first half in one digit. No end lies farther from it than the known range is wide.
  The bound on rows is the one that was best for this way on the first half.

The tables are those of `mean_on_tables.py`, with all their rows.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import mean_on_tables
from dpcore.contributions import FloatArray
from dpcore.dataset import Values
from dpcore.mean import clamped_users, value_range
from dpcore.mean.clamped_users import ClampedUsersProblem
from dpcore.mean.value_range import ValueRangeProblem
from dpcore.private_choice import private_range
from dpcore.private_choice.choice import convert_to_probabilities
from dpcore.private_choice.private_range import RangeProblem
from dpcore.private_choice.scores import RESOLUTION

SHARE_FOR_CHOICE = 0.3
DRAWS = 40
MAX_ROWS = 10_000_000


def read_values(table: mean_on_tables.Table) -> Values:
    """Read a table's values, sorted by user."""
    codes = np.unique(table.rows["user"], return_inverse=True)[1]
    order = np.argsort(codes, kind="stable")
    return Values(codes[order], table.rows["value"].to_numpy()[order])


def split_users(values: Values, seed: int) -> tuple[Values, Values]:
    """Split the rows by user into two random halves."""
    is_first = np.random.default_rng(seed).random(values.user_codes[-1] + 1) < 0.5
    in_first_half = is_first[values.user_codes]
    return tuple(  # type: ignore[return-value]
        Values(np.unique(values.user_codes[rows], return_inverse=True)[1], values.values[rows])
        for rows in (in_first_half, ~in_first_half)
    )


def measure_rows(values: Values, epsilon: float, threshold: float, lower: float, upper: float) -> float:
    """Measure the error of the pair with clamped rows and smooth weights, by the delta method."""
    sizes = np.bincount(values.user_codes)
    clamped_means = np.bincount(values.user_codes, np.clip(values.values, lower, upper)) / sizes
    weights = np.minimum(threshold, sizes)
    clamped_mean = float(weights @ clamped_means) / weights.sum()
    noise_scale = threshold / (epsilon * weights.sum())
    noise = math.sqrt(2.0) * noise_scale * math.hypot(clamped_mean - lower, upper - clamped_mean)
    return math.hypot(clamped_mean - float(values.values.mean()), noise)


def choose_threshold(values: Values, epsilon: float, lower: float, upper: float) -> float:
    """Choose the bound on rows with the least error at a known range."""
    thresholds = np.unique(np.bincount(values.user_codes)).astype(np.float64)
    if thresholds.size > 200:
        thresholds = thresholds[np.unique(np.geomspace(1, thresholds.size, 200).astype(np.int64)) - 1]
    errors = [measure_rows(values, epsilon, threshold, lower, upper) for threshold in thresholds]
    return float(thresholds[int(np.argmin(errors))])


def measure_users(values: Values, epsilon: float, threshold: float, centre: float, limit: float) -> float:
    """Measure the error of the pair with clamped users."""
    problem = ClampedUsersProblem(values, 2.0 / epsilon**2)
    return problem.measure_parts(threshold, centre, limit).table_error


def measure_drawn(
    table: mean_on_tables.Table, values: Values, setting: DrawnSetting, threshold: float, seed: int
) -> float:
    """Measure the error where both ends of the range are drawn from the released values themselves."""
    cap, width = max(round(threshold), 1), table.upper - table.lower
    problem = RangeProblem(
        (1.0 - SHARE_FOR_CHOICE) * setting.epsilon, SHARE_FOR_CHOICE * setting.epsilon, width / 1000.0, width,
        centre=setting.typical, users=float(values.user_codes[-1] + 1), max_contributions=cap,
        clamps_users=setting.clamps_users,
    )  # fmt: skip
    generator, widths = np.random.default_rng(seed), problem.list_widths(setting.typical)
    slope = problem.epsilon_of_end / (2.0 * RESOLUTION)
    low_widths, high_widths = (
        generator.choice(
            widths, DRAWS, p=convert_to_probabilities(slope * np.array(scores, dtype=np.float64))
        )
        for scores in private_range.score_ends(problem, values, setting.typical)
    )
    errors = []
    for low_width, high_width in zip(low_widths, high_widths, strict=True):
        low, high = setting.typical - low_width, setting.typical + high_width
        if setting.clamps_users:
            centre, limit = (low + high) / 2.0, cap * (high - low) / 2.0
            errors.append(measure_users(values, problem.epsilon_release, cap, centre, limit))
        else:
            errors.append(measure_rows(values, problem.epsilon_release, cap, low, high))
    return float(np.sqrt(np.mean(np.square(errors))))


@dataclass(frozen=True)
class DrawnSetting:
    """A private choice of the range.

    Attributes:
        epsilon: Of the choice and the release together.
        typical: A public typical value.
        clamps_users: False to clamp rows.
    """

    epsilon: float
    typical: float
    clamps_users: bool


def measure_ratios(table: mean_on_tables.Table, values: Values, epsilon: float, seed: int) -> list[float]:
    """Measure the errors of the four ways over that of the known range, on one split."""
    first_half, second_half = split_users(values, seed)
    known_range_error = measure_rows(
        second_half,
        epsilon,
        choose_threshold(first_half, epsilon, table.lower, table.upper),
        table.lower,
        table.upper,
    )
    rows = value_range.find_best_joint(ValueRangeProblem(first_half, epsilon))
    users = clamped_users.find_best_joint(ClampedUsersProblem(first_half, 2.0 / epsilon**2))
    errors = [
        measure_rows(second_half, epsilon, rows.threshold, rows.lower, rows.upper),
        measure_users(second_half, epsilon, users.threshold, users.centre, users.limit),
    ]
    typical = float(f"{np.median(first_half.values):.0e}")
    thresholds = np.unique(np.geomspace(1.0, np.bincount(first_half.user_codes).max(), 12).round())
    for clamps_users in (False, True):
        setting = DrawnSetting(epsilon, typical, clamps_users)
        drawn_errors = [
            measure_drawn(table, first_half, setting, threshold, seed) for threshold in thresholds
        ]
        threshold = float(thresholds[int(np.argmin(drawn_errors))])
        errors.append(measure_drawn(table, second_half, setting, threshold, seed))
    return [error / known_range_error for error in errors]


def main() -> None:
    """Print one line per table and epsilon, and the geometric mean over tables."""
    parser = argparse.ArgumentParser(description="What clamping users gains, on held-out users.")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.3, 1.0, 3.0])
    arguments = parser.parse_args()
    start = time.perf_counter()
    mean_on_tables.MAX_TABLE_ROWS = MAX_ROWS
    print(
        f"{'table':40} {'eps':>5} {'rows, best range':>18} {'users, best limit':>18} "
        f"{'rows, drawn':>18} {'users, drawn':>18}"
    )
    means_by_epsilon: dict[float, list[FloatArray]] = {epsilon: [] for epsilon in arguments.epsilons}
    for table in mean_on_tables.read_tables():
        values = read_values(table)
        for epsilon in arguments.epsilons:
            ratios = [measure_ratios(table, values, epsilon, seed) for seed in range(arguments.seeds)]
            logs = np.log(ratios)
            means, standard_errors = logs.mean(axis=0), logs.std(axis=0, ddof=1) / math.sqrt(len(logs))
            means_by_epsilon[epsilon].append(means)
            cells = [
                f"{mean:.2f} ± {mean * error:.2f}"
                for mean, error in zip(np.exp(means), standard_errors, strict=True)
            ]
            print(f"{table.name:40} {epsilon:5g} " + " ".join(f"{cell:>18}" for cell in cells), flush=True)
    for epsilon, table_means in means_by_epsilon.items():
        overall = np.exp(np.mean(table_means, axis=0))
        print(f"{'geometric mean':40} {epsilon:5g} " + " ".join(f"{ratio:18.2f}" for ratio in overall))
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
