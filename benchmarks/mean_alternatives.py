"""Other estimates of a mean beside clamped users, and clamped users for means per group, on held-out users.

    python benchmarks/mean_alternatives.py [--seeds 20] [--epsilons 0.3 1 3] [--groups]

As in `clamped_users.py`, one half of the users chooses the parameters, the other is released, neighbours add or remove
a user, and the number is the root mean square error over that of clamped rows with the known public range.

- *users, best limit*: `dpcore.mean.clamped_users`.
- *Huber*: the exponential mechanism with the score -|sum_l clamp(s_l (c_l - x), -T, T)|, whose sensitivity is T; x in
  the public range. It needs no bound on rows, no centre and no count of rows; T is the best of the first half.
- *two stages*: the median of users' means by the exponential mechanism with 0.3 epsilon, then users' means clamped to
  tau around it (after Levy et al. 2021).
- *trimmed*: the trimmed mean of users' means, with Student's t noise of 3 degrees for its smooth sensitivity (after Bun
  and Steinke 2019); the number of users is public, and one user is replaced.
- *over users*: users' means, clamped and averaged, about the mean over *users*: another target.

With --groups: means per group, with clamped rows and clamped users of the best range of the first half, and
*constant*, which is the overall mean of the first half for every group and needs no release. Groups have at least 50
rows, and noise below 15 % of them at the known range's best bounds.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import clamped_users as held_out
from benchmarks import mean_on_tables
from dpcore.contributions import FloatArray, IntArray
from dpcore.dataset import Values
from dpcore.mean import clamped_users
from dpcore.mean.clamped_users import ClampedUsersProblem

MEDIAN_SHARE = 0.3
DEGREES = 3
MIN_GROUP_ROWS, MAX_NOISE_SHARE = 50, 0.15
MAX_GROUPS, MAX_GROUP_ROWS = (1, 2, 3, 4, 6, 8, 12, 20), (1, 2, 3, 4, 6, 8, 12, 16, 32, 64)
"""Candidates of the two bounds per group."""

Setting = TypeVar("Setting")


@dataclass(frozen=True)
class Users:
    """The users of one half: rows per user, mean per user, and the mean over all rows."""

    sizes: FloatArray
    means: FloatArray
    row_mean: float

    @classmethod
    def from_values(cls, values: Values) -> Users:
        """Add up each user's rows."""
        sizes = np.bincount(values.user_codes).astype(np.float64)
        means = np.bincount(values.user_codes, values.values) / sizes
        return cls(sizes, means, float(values.values.mean()))


def choose(measure: Callable[[Setting], float], settings: Sequence[Setting]) -> Setting:
    """Choose the setting with the least error."""
    return min(settings, key=measure)


def measure_huber(users: Users, epsilon: float, limit: float, lower: float, upper: float) -> float:
    """Measure the error of the exponential mechanism for the Huber estimate, by integration over [lower, upper]."""

    def add_deviations(point: float) -> float:
        return float(np.clip(users.sizes * (users.means - point), -limit, limit).sum())

    low, high = lower, upper
    for _ in range(60):
        midpoint = (low + high) / 2.0
        low, high = (midpoint, high) if add_deviations(midpoint) > 0.0 else (low, midpoint)
    num_rows = users.sizes[np.abs(users.sizes * (users.means - low)) < limit].sum()
    width = 2.0 * limit / (epsilon * max(num_rows, 1.0))
    offsets = np.r_[0.0, np.geomspace(width / 50.0, upper - lower, 160)]
    points = np.unique(np.clip(np.r_[low - offsets, low + offsets], lower, upper))
    logits = np.array([-epsilon * abs(add_deviations(point)) / (2.0 * limit) for point in points])
    densities = np.exp(logits - logits.max())
    squares = np.trapezoid(densities * (points - users.row_mean) ** 2, points)
    return math.sqrt(squares / np.trapezoid(densities, points))


def compare_huber(chosen_on: Users, measured_on: Users, epsilon: float, lower: float, upper: float) -> float:
    """Measure the Huber estimate on the second half with the best limit of the first."""
    deviations = chosen_on.sizes * np.abs(chosen_on.means - chosen_on.row_mean)
    limits = np.geomspace(max(np.quantile(deviations, 0.02), 1e-9), np.quantile(deviations, 0.999), 25)
    limit = choose(lambda limit: measure_huber(chosen_on, epsilon, limit, lower, upper), limits.tolist())
    return measure_huber(measured_on, epsilon, limit, lower, upper)


def measure_clamped_means(
    users: Users, epsilon: float, threshold: float, centre: float, distance: float
) -> float:
    """Measure the error of the pair whose users' means are clamped to a distance from a centre."""
    weights = np.minimum(threshold, users.sizes)
    mean = float(weights @ np.clip(users.means, centre - distance, centre + distance)) / weights.sum()
    noise_scale = threshold / (epsilon * weights.sum())
    noise = math.sqrt(2.0) * noise_scale * math.hypot(mean - centre + distance, centre + distance - mean)
    return math.hypot(mean - users.row_mean, noise)


def compare_two_stages(
    chosen_on: Users, measured_on: Users, epsilon: float, lower: float, upper: float
) -> float:
    """Measure a drawn median and users' means clamped around it, with the best bound and distance of the first half."""
    candidates = np.linspace(lower, upper, 1001)

    def measure(users: Users, setting: tuple[float, float], seed: int) -> float:
        ranks = np.searchsorted(np.sort(users.means), candidates)
        # A user moves the distance to the middle rank by one half: epsilon / (2 * 1/2) times it.
        logits = -MEDIAN_SHARE * epsilon * np.abs(ranks - users.means.size / 2.0)
        densities = np.exp(logits - logits.max())
        centres = np.random.default_rng(seed).choice(candidates, 20, p=densities / densities.sum())
        remaining_epsilon = (1.0 - MEDIAN_SHARE) * epsilon
        errors = [measure_clamped_means(users, remaining_epsilon, setting[0], c, setting[1]) for c in centres]
        return float(np.sqrt(np.mean(np.square(errors))))

    distances = np.quantile(
        np.abs(chosen_on.means - np.median(chosen_on.means)), [0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 1.0]
    )
    thresholds = np.unique(np.geomspace(1, chosen_on.sizes.max(), 10).round())
    settings = list(itertools.product(thresholds.tolist(), distances.tolist()))
    return measure(measured_on, choose(lambda setting: measure(chosen_on, setting, 1), settings), 2)


def compare_over_users(chosen_on: Users, measured_on: Users, epsilon: float) -> float:
    """Measure the mean over users about itself, with the best range of the first half."""

    def measure(users: Users, ends: tuple[float, float]) -> float:
        mean = float(np.clip(users.means, *ends).mean())
        noise = math.sqrt(2.0) / (epsilon * users.means.size) * math.hypot(mean - ends[0], ends[1] - mean)
        return math.hypot(mean - float(users.means.mean()), noise)

    lows = np.quantile(chosen_on.means, [0.0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2])
    highs = np.quantile(chosen_on.means, [0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 1.0])
    ranges = [(low, high) for low, high in itertools.product(lows.tolist(), highs.tolist()) if low < high]
    return measure(measured_on, choose(lambda ends: measure(chosen_on, ends), ranges))


def compute_smooth_sensitivity(sorted_means: FloatArray, num_cut: int, decay: float, width: float) -> float:
    """Compute max_j e^(-decay j) of the largest change of the trimmed mean after j users were replaced."""
    num_users = sorted_means.size
    num_left = num_users - 2 * num_cut
    padding = num_cut + num_users
    padded = np.r_[[sorted_means[0]] * padding, sorted_means, [sorted_means[-1]] * padding]
    padded[:padding], padded[padding + num_users :] = -math.inf, math.inf
    largest = 0.0
    for num_replaced in range(num_users):
        if math.exp(-decay * num_replaced) * width / num_left <= largest:
            break
        steps = np.arange(num_replaced + 2)
        upper_means = padded[padding + num_users - num_cut - 1 + steps]
        lower_means = padded[padding + num_cut + steps - 1 - num_replaced]
        change = min(float((upper_means - lower_means).max()), width)
        largest = max(largest, math.exp(-decay * num_replaced) * change / num_left)
    return largest


def compare_trimmed(
    chosen_on: Users, measured_on: Users, epsilon: float, lower: float, upper: float
) -> float:
    """Measure the trimmed mean of users' means, with the best trim and split of epsilon of the first half."""

    def measure(users: Users, setting: tuple[float, float]) -> float:
        trim, decay_share = setting
        means = np.sort(np.clip(users.means, lower, upper))
        num_cut = int(trim * means.size)
        # The logarithm of the density changes by at most d per unit of dilation, and (d + 1) / (2 sqrt(d)) of shift.
        decay = decay_share * epsilon / DEGREES
        scale = (1.0 - decay_share) * epsilon * 2.0 * math.sqrt(DEGREES) / (DEGREES + 1)
        sensitivity = compute_smooth_sensitivity(means, num_cut, decay, upper - lower)
        estimate = float(means[num_cut : means.size - num_cut].mean())
        return math.hypot(estimate - users.row_mean, sensitivity / scale * math.sqrt(DEGREES / (DEGREES - 2)))

    settings = list(itertools.product((0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4), (0.1, 0.2, 0.3, 0.5)))
    return measure(measured_on, choose(lambda setting: measure(chosen_on, setting), settings))


def measure_ratios(table: mean_on_tables.Table, values: Values, epsilon: float, seed: int) -> list[float]:
    """Measure the errors of five estimates over that of the known range, on one split."""
    halves = held_out.split_users(values, seed)
    chosen_on, measured_on = (Users.from_values(values_of_half) for values_of_half in halves)
    ends = table.lower, table.upper
    known_range_error = held_out.measure_rows(
        halves[1], epsilon, held_out.choose_threshold(halves[0], epsilon, *ends), *ends
    )
    best = clamped_users.find_best_joint(ClampedUsersProblem(halves[0], 2.0 / epsilon**2))
    errors = (
        held_out.measure_users(halves[1], epsilon, best.threshold, best.centre, best.limit),
        compare_huber(chosen_on, measured_on, epsilon, *ends),
        compare_two_stages(chosen_on, measured_on, epsilon, *ends),
        compare_trimmed(chosen_on, measured_on, epsilon, *ends),
        compare_over_users(chosen_on, measured_on, epsilon),
    )
    return [error / known_range_error for error in errors]


@dataclass(frozen=True)
class GroupTable:
    """A table of one row per contribution, with columns ``user``, ``group`` and ``value``, and its public range."""

    name: str
    rows: pd.DataFrame
    lower: float
    upper: float


def list_group_tables() -> Iterator[GroupTable]:
    """List the samples with groups, and what lies in the folder of the environment."""

    def build(
        name: str, rows: pd.DataFrame, columns: tuple[str, str, str], ends: tuple[float, float]
    ) -> GroupTable:
        user, group, value = (rows[column] for column in columns)
        frame = pd.DataFrame(
            {
                "user": pd.factorize(user)[0],
                "group": pd.factorize(group)[0],
                "value": value.to_numpy(np.float64),
            }
        )
        return GroupTable(name, frame, *ends)

    samples = mean_on_tables.ROOT / "sample_data"
    shop, tickets = (pd.read_csv(samples / f"{name}.csv") for name in ("shop_events", "support_tickets"))
    yield build("shop_events, products", shop, ("user_id", "product", "amount"), (0, 100))
    yield build("support_tickets, channels", tickets, ("customer", "channel", "hours_waited"), (0, 48))
    ratings = pd.read_csv(samples / "item_ratings.csv")
    yield build("item_ratings, items", ratings, ("user_id", "item", "rating"), (0.5, 5))
    folder = Path(os.environ.get("SWEETSPOT_BENCH_DATA", "/nowhere"))
    if (path := folder / "online_retail.parquet").exists():
        retail = pd.read_parquet(path)
        retail = retail[retail["CustomerID"].notna() & (retail["Quantity"] > 0)]
        retail = retail.assign(
            spent=retail["Quantity"] * retail["UnitPrice"],
            month=pd.to_datetime(retail["InvoiceDate"]).dt.strftime("%Y-%m"),
        )
        yield build("Online Retail, countries", retail, ("CustomerID", "Country", "spent"), (0, 100))
        yield build("Online Retail, months", retail, ("CustomerID", "month", "spent"), (0, 100))
    if (path := folder / "CDNOW_master.txt").exists():
        cdnow = pd.read_csv(
            path, sep=r"\s+", header=None, names=["user", "date", "number", "dollars"], dtype=str
        )
        cdnow = cdnow.assign(dollars=pd.to_numeric(cdnow["dollars"], errors="coerce")).dropna()
        cdnow = cdnow.assign(month=cdnow["date"].str[:6], year=cdnow["date"].str[:4])
        yield build("CDNOW, months", cdnow, ("user", "month", "dollars"), (0, 500))
        yield build("CDNOW, years", cdnow, ("user", "year", "dollars"), (0, 500))


@dataclass(frozen=True)
class UserGroups:
    """The pairs of user and group of one half, with the group's number, and the true mean of every group.

    Attributes:
        group_codes: Group of each pair, shape (P,).
        sizes: Rows of each pair, shape (P,).
        means: Mean of the pair's rows, shape (P,); clamped before if a range was given.
        groups_per_user: Groups of the pair's user, shape (P,).
        true_means: Mean of all rows of a group, shape (G,); NaN if it has none.
    """

    group_codes: IntArray
    sizes: FloatArray
    means: FloatArray
    groups_per_user: IntArray
    true_means: FloatArray

    @classmethod
    def from_rows(cls, rows: pd.DataFrame, num_groups: int, ends: tuple[float, float] | None) -> UserGroups:
        """Average the rows of every pair, clamped to [ends] if it is given."""
        clamped = rows if ends is None else rows.assign(value=rows["value"].clip(*ends))
        pairs = clamped.groupby(["user", "group"])["value"].agg(["size", "mean"]).reset_index()
        return cls(
            pairs["group"].to_numpy(), pairs["size"].to_numpy(np.float64), pairs["mean"].to_numpy(),
            pairs.groupby("user")["group"].transform("size").to_numpy(),
            rows.groupby("group")["value"].mean().reindex(range(num_groups)).to_numpy(),
        )  # fmt: skip

    def measure_squares(
        self, epsilon: float, bounds: tuple[int, int], ends: tuple[float, float], clamps_users: bool
    ) -> FloatArray:
        """Measure the squared error of every group's mean with smooth weights, by the delta method, shape (G,)."""
        num_groups, (max_groups, max_rows) = self.true_means.size, bounds
        centre, half_width = (ends[0] + ends[1]) / 2.0, (ends[1] - ends[0]) / 2.0
        kept_shares = np.minimum(1.0, max_groups / self.groups_per_user)
        weights = np.minimum(max_rows, self.sizes)
        deviations = weights * (self.means - centre)
        if clamps_users:
            deviations = np.clip(deviations, -max_rows * half_width, max_rows * half_width)
        num_rows = np.bincount(self.group_codes, weights * kept_shares, num_groups)
        sums = np.bincount(self.group_codes, deviations * kept_shares, num_groups)
        offsets = sums / np.maximum(num_rows, 1e-12)
        noise_scale = max_groups * max_rows / (epsilon * np.maximum(num_rows, 1.0))
        noise = math.sqrt(2.0) * noise_scale * np.hypot(offsets + half_width, half_width - offsets)
        squares = (centre + offsets - self.true_means) ** 2 + np.minimum(noise, half_width) ** 2
        return np.asarray(squares, dtype=np.float64)


def measure_group_ratios(table: GroupTable, epsilon: float, seed: int) -> list[float] | None:
    """Measure clamped rows, clamped users and a constant over the known range, on one split; None without groups."""
    rows, known_ends = table.rows, (table.lower, table.upper)
    num_groups = int(rows["group"].max()) + 1
    is_first = np.random.default_rng(seed).random(int(rows["user"].max()) + 1) < 0.5
    first_rows, second_rows = rows[is_first[rows["user"]]], rows[~is_first[rows["user"]]]
    first_groups, second_groups = (
        UserGroups.from_rows(groups, num_groups, known_ends) for groups in (first_rows, second_rows)
    )
    all_bounds = [
        (max_groups, max_rows)
        for max_groups, max_rows in itertools.product(MAX_GROUPS, MAX_GROUP_ROWS)
        if max_groups <= first_groups.groups_per_user.max()
    ]
    num_rows = np.bincount(first_groups.group_codes, first_groups.sizes, num_groups)
    is_measured = (
        (num_rows >= MIN_GROUP_ROWS)
        & np.isfinite(first_groups.true_means)
        & np.isfinite(second_groups.true_means)
    )

    def measure_error(
        groups: UserGroups, bounds: tuple[int, int], ends: tuple[float, float], clamps_users: bool
    ) -> float:
        return math.sqrt(groups.measure_squares(epsilon, bounds, ends, clamps_users)[is_measured].mean())

    if not is_measured.any():
        return None
    bounds = choose(lambda bounds: measure_error(first_groups, bounds, known_ends, False), all_bounds)
    weights = np.minimum(bounds[1], first_groups.sizes) * np.minimum(
        1.0, bounds[0] / first_groups.groups_per_user
    )
    num_kept = np.bincount(first_groups.group_codes, weights, num_groups)
    is_measured &= 2.0 * bounds[0] * bounds[1] / (epsilon * np.maximum(num_kept, 1.0)) < MAX_NOISE_SHARE
    if not is_measured.any():
        return None
    known_range_error = measure_error(second_groups, bounds, known_ends, False)

    lows, highs = (
        np.unique(first_rows["value"].quantile(shares))
        for shares in ([0.0, 0.01, 0.05, 0.1, 0.25], [0.5, 0.75, 0.85, 0.9, 0.95, 0.98, 0.99, 0.995, 1.0])
    )
    all_ends = [(low, high) for low, high in itertools.product(lows.tolist(), highs.tolist()) if low < high]
    errors = []
    for ends in all_ends:
        groups = UserGroups.from_rows(first_rows, num_groups, ends)
        errors += [(measure_error(groups, bounds, ends, False), bounds, ends) for bounds in all_bounds]
    _, bounds, ends = min(errors)
    clamped_rows = measure_error(UserGroups.from_rows(second_rows, num_groups, ends), bounds, ends, False)

    first_groups, second_groups = (
        UserGroups.from_rows(groups, num_groups, None) for groups in (first_rows, second_rows)
    )
    centres = [*first_rows["value"].quantile([0.3, 0.4, 0.5, 0.6, 0.7]), first_rows["value"].mean()]
    spread = float(np.subtract(*first_rows["value"].quantile([0.9, 0.1])))
    all_ends += [
        (centre - half_width, centre + half_width)
        for centre, half_width in itertools.product(centres, spread / 2.0 * np.geomspace(0.1, 10.0, 14))
    ]
    settings = list(itertools.product(all_bounds, all_ends))
    bounds, ends = choose(lambda setting: measure_error(first_groups, *setting, True), settings)
    constant = float(first_groups.true_means[is_measured].mean())
    constant_error = math.sqrt(np.mean((second_groups.true_means[is_measured] - constant) ** 2))
    return [
        error / known_range_error
        for error in (clamped_rows, measure_error(second_groups, bounds, ends, True), constant_error)
    ]


def main() -> None:
    """Print one line per table and epsilon, and the geometric mean over tables."""
    parser = argparse.ArgumentParser(description="Other estimates of a mean, on held-out users.")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.3, 1.0, 3.0])
    parser.add_argument("--groups", action="store_true")
    arguments = parser.parse_args()
    mean_on_tables.MAX_TABLE_ROWS = held_out.MAX_ROWS
    names = ("rows, best", "users, best", "constant")
    if not arguments.groups:
        names = ("users, best", "Huber", "two stages", "trimmed", "over users")
    print(f"{'table':30} {'eps':>5} " + " ".join(f"{name:>14}" for name in names))
    logs_by_epsilon: dict[float, list[FloatArray]] = {epsilon: [] for epsilon in arguments.epsilons}
    for table in list_group_tables() if arguments.groups else mean_on_tables.read_tables():
        values = None if isinstance(table, GroupTable) else held_out.read_values(table)
        for epsilon in arguments.epsilons:
            ratios = [
                measure_group_ratios(table, epsilon, seed)
                if isinstance(table, GroupTable)
                else measure_ratios(table, values, epsilon, seed)
                for seed in range(arguments.seeds)
            ]
            logs = np.log([ratio for ratio in ratios if ratio is not None])
            if not logs.size:
                continue
            means, errors = logs.mean(axis=0), logs.std(axis=0, ddof=1) / math.sqrt(len(logs))
            logs_by_epsilon[epsilon].append(means)
            cells = [
                f"{ratio:.2f} ± {ratio * error:.2f}"
                for ratio, error in zip(np.exp(means), errors, strict=True)
            ]
            print(f"{table.name:30} {epsilon:5g} " + " ".join(f"{cell:>14}" for cell in cells), flush=True)
    for epsilon, table_logs in logs_by_epsilon.items():
        overall = np.exp(np.mean(table_logs, axis=0))
        print(f"{'geometric mean':30} {epsilon:5g} " + " ".join(f"{ratio:14.2f}" for ratio in overall))


if __name__ == "__main__":
    main()
