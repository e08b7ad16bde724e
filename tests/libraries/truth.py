"""What each program releases in expectation over its draw of rows and groups, and how far off one run may be.

The data are the sample events, COPIES times over with users of other names, so that one run draws as often from the
rows of each user. Each bound holds with probability 1 - 1e-9 or more:

- Laplace noise of scale b exceeds b ln(1e9) with probability 1e-9, normal noise 6.2 standard deviations with less.
- What the draws add up to is a sum over users, who are independent: Bernstein's inequality with the exact variances
  of draws without replacement (Boucheron, Lugosi and Massart 2013, corollary 2.11).
- A ratio N / D with expectations n and d is off from n / d by (N - D n / d) / D, and N - D n / d is such a sum.
"""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpcore.code import Choice, Quantity, Several, write
from dpcore.common.noise_error import NoiseKind
from dpcore.common.programs import Program
from tests.dpcore.code import together
from tests.dpcore.code.choices import CHOICE_BY_NAME

EVENTS = Path(__file__).resolve().parents[2] / "sample_data" / "shop_events.csv"
COPIES = 25
EPSILON = 1000.0
SURE = math.log(1e9)
# Of the sample events: no user has more rows, groups, rows in a group, or a larger total, in all or in a group.
NOBODY = {"max_rows": 140, "threshold": 140.0, "max_total": 6300.0}
NOBODY_PER_GROUP = {"max_groups": 32, "max_rows": 25, "max_total": 1300.0}


# Weights that follow a share of 0.35 of the variance between users: min(h, s (a + b / (1 + 0.35 (s - 1)))).
_GROWN = {"weight_of_rows": 0.4, "weight_of_users": 5.0, "user_share": 0.35}
CHOICES = CHOICE_BY_NAME | {
    name.replace("smooth", "smooth by rho"): replace(chosen, **_GROWN)
    for name, chosen in CHOICE_BY_NAME.items()
    if name.startswith("mean, smooth")
}


def _users() -> list[dict[str, np.ndarray]]:
    """The amounts of each user by group, read without any of our code."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    with EVENTS.open(newline="", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            found[row["user_id"]][row["product"]].append(float(row["amount"]))
    return [{group: np.array(amounts) for group, amounts in user.items()} for user in found.values()]


USERS = _users()
GROUPS = sorted({group for user in USERS for group in user})


def programs(library: Program) -> list[str]:
    """Names of the choices that the library has a program for."""
    return [name for name, chosen in CHOICES.items() if write(chosen, library).text]


def case(name: str, binds: bool) -> Choice:
    """The choice at an epsilon with little noise, with its own bounds or with bounds that change nobody's data."""
    chosen = replace(CHOICES[name], epsilon=EPSILON)
    if binds:
        return chosen
    nobody = NOBODY_PER_GROUP if chosen.max_groups is not None else NOBODY
    return replace(chosen, **{field: most for field, most in nobody.items() if getattr(chosen, field)})


def run(chosen: Choice, library: Program) -> np.ndarray:
    """What one run of the program releases: one number, one per quantile, or one per group in the order of GROUPS.

    Behind totals per group stands their sum, to which a user adds nearly the same whatever groups are drawn, so that
    it is far better known. Of a model, the rows that are kept of each user, ascending.
    """
    names: dict[str, Any] = {}
    exec(compile(write(chosen, library).text, "program", "exec"), names)
    kind = chosen.quantity
    if kind is Quantity.MODEL:
        return np.sort(names["kept"].groupby("user_id").size().to_numpy())
    if kind is Quantity.QUANTILE:
        found = names["quantiles"]
        return np.array(list(found.values() if isinstance(found, dict) else found))
    if chosen.max_groups is None:
        return np.array([names[{Quantity.MEAN: "mean", Quantity.SUM: "total"}.get(kind, "count")]])
    name = {Quantity.GROUP_COUNTS: "counts", Quantity.GROUP_MEANS: "means"}.get(kind, "totals")
    has_vector = "noisy" in names and kind is not Quantity.GROUP_MEANS
    by_group = dict(zip(names["groups"], names["noisy"], strict=True)) if has_vector else names[name]
    assert sorted(by_group) == GROUPS
    values = [float(by_group[group]) for group in GROUPS]
    return np.array(values if kind is Quantity.GROUP_MEANS else [*values, math.fsum(values)])


def check_together(asked: Several, released: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every release of several is what it is expected to be, with the noise of its share or less."""
    monkeypatch.setattr("tests.libraries.truth.EPSILON", together.EPSILON * together.SMALLEST_SHARE)
    for part in asked.releases:
        chosen = part.choice
        if (
            chosen.quantity is not Quantity.MEAN
        ):  # Laplace noise of that share is more than the Gaussian noise of it
            chosen = replace(chosen, noise=asked.noise, delta=asked.delta)
        found = released[part.name]
        if isinstance(found, dict):
            assert sorted(found) == GROUPS
            of_groups = [float(found[group]) for group in GROUPS]
            numbers = np.array([*of_groups, math.fsum(of_groups)])
        else:
            numbers = np.array([float(found)])
        expected = of(chosen)
        assert expected.holds(numbers), (part.name, numbers - expected.expected, expected.off)


@dataclass(frozen=True)
class Truth:
    """What is expected of each released number, and how far from it one run may be."""

    expected: np.ndarray
    off: np.ndarray

    def holds(self, released: np.ndarray) -> bool:
        return bool(np.all(np.abs(released - self.expected) <= self.off))


def of(chosen: Choice) -> Truth:
    """The truth about the programs of a choice, whatever the library."""
    kind = chosen.quantity
    if kind is Quantity.MODEL:
        rows = np.sort([min(_size(user), chosen.max_rows or 0) for user in USERS] * COPIES).astype(float)
        return Truth(rows, np.zeros_like(rows))
    if kind is Quantity.QUANTILE:
        return _quantiles(chosen)
    if kind is Quantity.MEAN:
        return _mean(chosen)
    if kind is Quantity.GROUP_MEANS:
        return _group_means(chosen)
    if chosen.max_groups is not None:
        return _group_totals(chosen)
    if kind is Quantity.SUM:
        low, high = chosen.min_total, chosen.max_total or 0.0
        each = [min(max(float(_rows(user).sum()), low), high) for user in USERS]
        return Truth(np.array([COPIES * math.fsum(each)]), np.array([_noise(chosen, max(-low, high))]))
    most = chosen.max_rows or 0
    count = COPIES * sum(min(_size(user), most) for user in USERS)
    return Truth(np.array([float(count)]), np.array([_noise(chosen, most) + 1.0]))  # a whole number


def _rows(user: dict[str, np.ndarray]) -> np.ndarray:
    return np.concatenate(list(user.values()))


def _size(user: dict[str, np.ndarray]) -> int:
    return sum(map(len, user.values()))


def _noise(chosen: Choice, sensitivity: float, share: float = 1.0) -> float:
    """Bound on the noise of one number for a share of the budget; 5 % for what a library adds against rounding."""
    if chosen.noise is NoiseKind.LAPLACE:
        return 1.05 * sensitivity / (share * EPSILON) * SURE
    # By zero-concentrated DP (Bun and Steinke 2016, proposition 1.3), which needs more than the exact mechanism.
    log = math.log(1.0 / (chosen.delta or 0.0))
    rho = (share * EPSILON / (math.sqrt(share * EPSILON + log) + math.sqrt(log))) ** 2
    return 1.05 * sensitivity / math.sqrt(2.0 * rho) * 6.2


def _off(variances: Sequence[float], largest: float) -> float:
    """Bernstein: the sum over users of all copies is off by more with probability at most 1e-9.

    ``variances`` are of what each user of one copy adds, ``largest`` is how far a user may be off.
    """
    log = math.log(2e9)
    third = log * largest / 3.0
    return third + math.sqrt(third**2 + 2.0 * log * COPIES * math.fsum(variances))


def _drawn(values: np.ndarray, most: int) -> tuple[float, float]:
    """Expectation and variance of the sum of at most so many of the values, drawn without replacement."""
    size = len(values)
    if size <= most:
        return float(values.sum()), 0.0
    return most * float(values.mean()), most * (1.0 - most / size) * float(values.var(ddof=1))


def _weight(chosen: Choice, rows: int) -> float:
    """What all rows of a user weigh together."""
    grown = chosen.weight_of_rows + chosen.weight_of_users / (1.0 + (rows - 1) * chosen.user_share)
    return min(rows * grown, float(chosen.threshold or chosen.max_rows or 0))


def _mean(chosen: Choice) -> Truth:
    """Both sums around the middle of the range; the number of rows kept, or their weight, is not random."""
    low, high = chosen.lower or 0.0, chosen.upper or 0.0
    half, bound = (high - low) / 2.0, chosen.threshold or chosen.max_rows or 0
    sums, variances = [], []
    for user in USERS:
        values = np.clip(_rows(user), low, high) - (low + half)
        if chosen.threshold is not None:
            total, variance = _weight(chosen, len(values)) * float(values.mean()), 0.0
        else:
            total, variance = _drawn(values, chosen.max_rows or 0)
        sums.append(total)
        variances.append(variance)
    kept = COPIES * math.fsum(_weight(chosen, _size(user)) for user in USERS)
    ratio = COPIES * math.fsum(sums) / kept
    sampling = _off(variances, bound * half) if any(variances) else 0.0
    if chosen.has_public_counts:
        off = (sampling + _noise(chosen, 2.0 * bound * half)) / kept
    else:
        # Half of the budget each, or one budget for two sums of twice the sensitivity.
        noise = _noise(chosen, bound * half, 0.5)
        of_rows = _noise(chosen, bound, 0.5)
        off = (sampling + noise + abs(ratio) * of_rows) / (kept - of_rows)
    return Truth(np.array([low + half + ratio]), np.array([off]))


def _in_group(user: dict[str, np.ndarray], chosen: Choice) -> float:
    """Probability that a group of the user is drawn."""
    return min(1.0, (chosen.max_groups or 0) / len(user))


def _over_groups(chosen: Choice, each: float) -> float:
    """Sensitivity where each group of a user moves by at most so much: in L1 or, for Gaussian noise, in L2."""
    groups = chosen.max_groups or 0
    return each * (groups if chosen.noise is NoiseKind.LAPLACE else math.sqrt(groups))


def _group_totals(chosen: Choice) -> Truth:
    expected, off, groups = [], [], chosen.max_groups or 0
    most = {Quantity.GROUP_COUNTS: 1.0, Quantity.GROUP_ROWS: float(chosen.max_rows or 0)}
    each = most.get(chosen.quantity, max(-chosen.min_total, chosen.max_total or 0.0))
    noise = _noise(chosen, _over_groups(chosen, each))
    for group in GROUPS:
        total, variances = 0.0, []
        for user in USERS:
            if group not in user:
                continue
            chance, amount = _in_group(user, chosen), _amount(chosen, user[group])
            total += chance * amount
            variances.append(amount**2 * chance * (1.0 - chance))
        expected.append(COPIES * total)
        sampling = _off(variances, each) if any(variances) else 0.0
        off.append(sampling + noise + 1.0)  # a whole number
    drawn = [_drawn(np.array([_amount(chosen, rows) for rows in user.values()]), groups) for user in USERS]
    expected.append(COPIES * math.fsum(total for total, _ in drawn))
    variances = [variance for _, variance in drawn]
    sampling = _off(variances, groups * each) if any(variances) else 0.0
    # The sum of n draws of Laplace noise of scale b exceeds (ln(2e9) - n ln(1 - x^2)) b / x with probability 1e-9 at
    # most, for every x below 1 (Chernoff); for 40 of them and x = 0.6 that is 66 b, and sqrt(40) ln(1e9) b is 131 b.
    off.append(sampling + math.sqrt(len(GROUPS)) * noise + 1.0)
    return Truth(np.array(expected), np.array(off))


def _amount(chosen: Choice, rows: np.ndarray) -> float:
    """What a group of a user adds where it is drawn."""
    if chosen.quantity is Quantity.GROUP_COUNTS:
        return 1.0
    if chosen.quantity is Quantity.GROUP_ROWS:
        return float(min(len(rows), chosen.max_rows or 0))
    return min(max(float(rows.sum()), chosen.min_total), chosen.max_total or 0.0)


def _group_means(chosen: Choice) -> Truth:
    expected, off = [], []
    low, high, most = chosen.lower or 0.0, chosen.upper or 0.0, chosen.max_rows or 0
    half = (high - low) / 2.0
    noise = _noise(chosen, _over_groups(chosen, most * half), 0.5)
    of_rows = _noise(chosen, _over_groups(chosen, most), 0.5)
    for group in GROUPS:
        of_users = []
        for user in USERS:
            if group in user:
                values = np.clip(user[group], low, high) - (low + half)
                of_users.append((_in_group(user, chosen), min(len(values), most), *_drawn(values, most)))
        ratio = sum(p * total for p, _, total, _ in of_users) / sum(p * rows for p, rows, _, _ in of_users)
        # Of each user's sum less ratio times rows, and of the rows: the law of total variance.
        apart = [p * (v + (1.0 - p) * (t - ratio * rows) ** 2) for p, rows, t, v in of_users]
        counts = [p * (1.0 - p) * rows**2 for p, rows, _, _ in of_users]
        sampling = _off(apart, 4.0 * half * most) if any(apart) else 0.0
        fewer = _off(counts, most) if any(counts) else 0.0
        rows_left = COPIES * sum(p * rows for p, rows, _, _ in of_users) - fewer - of_rows
        assert rows_left > 0.0
        expected.append(low + half + ratio)
        off.append((sampling + noise + abs(ratio) * of_rows) / rows_left)
    return Truth(np.array(expected), np.array(off))


def _quantiles(chosen: Choice) -> Truth:
    """Between which values a quantile lies: where so many rows are expected below as were drawn, less what is off."""
    low, high, most = chosen.lower or 0.0, chosen.upper or 0.0, chosen.max_rows or 0
    values = np.unique(np.concatenate([np.clip(_rows(user), low, high) for user in USERS]))
    below, variances = np.zeros(len(values)), np.zeros(len(values))
    for user in USERS:
        rows = np.sort(np.clip(_rows(user), low, high))
        size, drawn = len(rows), min(len(rows), most)
        share = np.searchsorted(rows, values, side="right") / size
        below += COPIES * drawn * share
        variances += drawn * share * (1.0 - share) * (size - drawn) / max(size - 1, 1)
    kept = below[-1]
    sampling = _off([float(variances.max())], most) if np.any(variances) else 0.0
    # The coarsest of the mechanisms is a tree of four levels with sixteen children each, whose counts are all noisy
    # and share the budget of one quantile.
    noise = 4 * 16 * 4 * most / chosen.epsilon_per_quantile * SURE
    cell = (high - low) / 2000  # plain Python's candidates
    ends = []
    for q in chosen.quantiles:
        first = values[np.searchsorted(below, q * kept - sampling - noise)] - cell
        last = (
            values[min(np.searchsorted(below, q * kept + sampling + noise, side="right"), len(values) - 1)]
            + cell
        )
        ends.append((first, last))
    low_ends, high_ends = np.array(ends).T
    return Truth((low_ends + high_ends) / 2.0, (high_ends - low_ends) / 2.0)
