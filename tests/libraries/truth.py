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
import itertools
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpcore.code import Quantity, ReleasePlan, ReleaseSpec, write
from dpcore.common.noise_error import NoiseKind
from dpcore.common.programs import Program
from tests.dpcore.code import together
from tests.dpcore.code.specs import SPEC_BY_NAME

EVENTS = Path(__file__).resolve().parents[2] / "sample_data" / "shop_events.csv"
COPIES = 25
EPSILON = 1000.0
SURE = math.log(1e9)
# Of the sample events: no user has more rows, groups, rows in a group, or a larger total, in all or in a group.
NOBODY = {"max_rows": 140, "threshold": 140.0, "max_total": 6300.0}
NOBODY_PER_GROUP = {"max_groups": 32, "max_rows": 25, "max_total": 1300.0}


# Weights that follow a share of 0.35 of the variance between users: min(h, s (a + b / (1 + 0.35 (s - 1)))).
_GROWN = {"weight_of_rows": 0.4, "weight_of_users": 5.0, "user_share": 0.35}
CHOICES = SPEC_BY_NAME | {
    name.replace("smooth", "smooth by rho"): replace(choice, **_GROWN)
    for name, choice in SPEC_BY_NAME.items()
    if name.startswith("mean, smooth")
}


def _read_users() -> list[dict[str, np.ndarray]]:
    """Read the amounts of each user by group, without any of our code."""
    amounts_by_user: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    with EVENTS.open(newline="", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            amounts_by_user[row["user_id"]][row["product"]].append(float(row["amount"]))
    return [
        {group: np.array(amounts) for group, amounts in user.items()} for user in amounts_by_user.values()
    ]


USERS = _read_users()
GROUPS = sorted({group for user in USERS for group in user})


def list_programs(library: Program) -> list[str]:
    """List the names of the choices that the library has a program for."""
    return [name for name, choice in CHOICES.items() if write(choice, library).text and not choice.edges]


def check_bins(library: Program) -> None:
    """Check rows per bin, under bounds that bind nobody, against the rows of the file between the edges."""
    choice = replace(CHOICES["rows per bin"], epsilon=EPSILON, max_rows=1_000)
    names: dict[str, Any] = {}
    exec(compile(write(choice, library).text, "program", "exec"), names)
    amounts = np.concatenate([_list_rows(user) for user in USERS])
    edges = np.array([float(edge) for edge in choice.edges])
    expected = COPIES * np.array(
        [np.sum((low <= amounts) & (amounts < high)) for low, high in itertools.pairwise(edges)]
    )
    released_totals = np.array([names["totals"][group] for group in choice.groups])
    assert np.all(np.abs(released_totals - expected) <= _bound_noise(choice, 2 * 1_000) + 1.0)


def make_case(name: str, binds: bool) -> ReleaseSpec:
    """Make the choice at an epsilon with little noise, with its own bounds or with bounds that change nobody's data."""
    choice = replace(CHOICES[name], epsilon=EPSILON)
    if binds:
        return choice
    nobody = NOBODY_PER_GROUP if choice.max_groups is not None else NOBODY
    return replace(choice, **{field: largest for field, largest in nobody.items() if getattr(choice, field)})


def run_choice(choice: ReleaseSpec, library: Program) -> np.ndarray:
    """Return what one run of the program releases: one number, one per quantile, or one per group in `GROUPS`' order.

    Behind totals per group stands their sum, to which a user adds nearly the same whatever groups are drawn, so that
    it is far better known. Of a model, the rows that are kept of each user, ascending.
    """
    names: dict[str, Any] = {}
    exec(compile(write(choice, library).text, "program", "exec"), names)
    quantity = choice.quantity
    if quantity is Quantity.MODEL:
        return np.sort(names["kept"].groupby("user_id").size().to_numpy())
    if quantity is Quantity.QUANTILE:
        quantiles = names["quantiles"]
        return np.array(list(quantiles.values() if isinstance(quantiles, dict) else quantiles))
    if choice.max_groups is None:
        return np.array([names[{Quantity.MEAN: "mean", Quantity.SUM: "total"}.get(quantity, "count")]])
    name = {Quantity.GROUP_COUNTS: "counts", Quantity.GROUP_MEANS: "means"}.get(quantity, "totals")
    has_vector = "noisy" in names and quantity is not Quantity.GROUP_MEANS
    by_group = dict(zip(names["groups"], names["noisy"], strict=True)) if has_vector else names[name]
    assert sorted(by_group) == GROUPS
    values = [float(by_group[group]) for group in GROUPS]
    return np.array(values if quantity is Quantity.GROUP_MEANS else [*values, math.fsum(values)])


def check_together(several: ReleasePlan, releases: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that every release of several is what is expected, with the noise of its share or less."""
    monkeypatch.setattr("tests.libraries.truth.EPSILON", together.EPSILON * together.SMALLEST_SHARE)
    for release_share in several.releases:
        choice = release_share.spec
        if choice.quantity is Quantity.QUANTILE and several.noise is NoiseKind.GAUSSIAN:
            continue  # Its epsilon is that of a share of rho: the recorded scales tell it.
        if (
            choice.quantity is not Quantity.MEAN
        ):  # Laplace noise of that share is more than the Gaussian noise of it
            choice = replace(choice, noise=several.noise, delta=several.delta)
        release = releases[release_share.name]
        if isinstance(release, dict):
            assert sorted(release) == GROUPS
            of_groups = [float(release[group]) for group in GROUPS]
            numbers = np.array([*of_groups, math.fsum(of_groups)])
        else:
            numbers = np.array([float(release)])
        expected = compute_truth(choice)
        assert expected.covers(numbers), (release_share.name, numbers - expected.expected, expected.tolerance)


@dataclass(frozen=True)
class Truth:
    """What is expected of each released number, and how far from it one run may be."""

    expected: np.ndarray
    tolerance: np.ndarray

    def covers(self, release: np.ndarray) -> bool:
        """Return True if every number of the release is within the tolerance."""
        return bool(np.all(np.abs(release - self.expected) <= self.tolerance))


def compute_truth(choice: ReleaseSpec) -> Truth:
    """Compute the truth about the programs of a choice, whatever the library."""
    quantity = choice.quantity
    if quantity is Quantity.MODEL:
        rows = np.sort([min(_count_rows(user), choice.max_rows or 0) for user in USERS] * COPIES).astype(
            float
        )
        return Truth(rows, np.zeros_like(rows))
    if quantity is Quantity.QUANTILE:
        return _compute_quantiles(choice)
    if quantity is Quantity.MEAN:
        return _compute_mean(choice)
    if quantity is Quantity.GROUP_MEANS:
        return _compute_group_means(choice)
    if choice.max_groups is not None:
        return _compute_group_totals(choice)
    if quantity is Quantity.SUM:
        low, high = choice.min_total, choice.max_total or 0.0
        each = [min(max(float(_list_rows(user).sum()), low), high) for user in USERS]
        return Truth(np.array([COPIES * math.fsum(each)]), np.array([_bound_noise(choice, max(-low, high))]))
    max_rows = choice.max_rows or 0
    count = COPIES * sum(min(_count_rows(user), max_rows) for user in USERS)
    return Truth(np.array([float(count)]), np.array([_bound_noise(choice, max_rows) + 1.0]))  # a whole number


def _list_rows(user: dict[str, np.ndarray]) -> np.ndarray:
    return np.concatenate(list(user.values()))


def _count_rows(user: dict[str, np.ndarray]) -> int:
    return sum(map(len, user.values()))


def _bound_noise(choice: ReleaseSpec, sensitivity: float, share: float = 1.0) -> float:
    """Bound the noise of one number for a share of the budget; 5 % for what a library adds against rounding."""
    if choice.noise is NoiseKind.LAPLACE:
        return 1.05 * sensitivity / (share * EPSILON) * SURE
    # By zero-concentrated DP (Bun and Steinke 2016, proposition 1.3), which needs more than the exact mechanism.
    log = math.log(1.0 / (choice.delta or 0.0))
    rho = (share * EPSILON / (math.sqrt(share * EPSILON + log) + math.sqrt(log))) ** 2
    return 1.05 * sensitivity / math.sqrt(2.0 * rho) * 6.2


def _bound_sampling(variances: Sequence[float], largest: float) -> float:
    """Return by how much the sum over users of all copies is off with probability at most 1e-9 (Bernstein).

    ``variances`` are of what each user of one copy adds, ``largest`` is how far a user may be off.
    """
    log = math.log(2e9)
    third = log * largest / 3.0
    return third + math.sqrt(third**2 + 2.0 * log * COPIES * math.fsum(variances))


def _find_moments(values: np.ndarray, max_values: int) -> tuple[float, float]:
    """Find expectation and variance of the sum of at most ``max_values`` values, drawn without replacement."""
    size = len(values)
    if size <= max_values:
        return float(values.sum()), 0.0
    return max_values * float(values.mean()), max_values * (1.0 - max_values / size) * float(
        values.var(ddof=1)
    )


def _find_weight(choice: ReleaseSpec, rows: int) -> float:
    """Find what all rows of a user weigh together."""
    grown = choice.weight_of_rows + choice.weight_of_users / (1.0 + (rows - 1) * choice.user_share)
    return min(rows * grown, float(choice.threshold or choice.max_rows or 0))


def _compute_mean(choice: ReleaseSpec) -> Truth:
    """Compute both sums around the middle of the range; the rows kept, or their weight, are not random."""
    low, high = choice.lower or 0.0, choice.upper or 0.0
    half_width, bound = (high - low) / 2.0, choice.threshold or choice.max_rows or 0
    sums, variances = [], []
    for user in USERS:
        values = np.clip(_list_rows(user), low, high) - (low + half_width)
        if choice.threshold is not None:
            total, variance = _find_weight(choice, len(values)) * float(values.mean()), 0.0
        else:
            total, variance = _find_moments(values, choice.max_rows or 0)
        sums.append(total)
        variances.append(variance)
    kept_weight = COPIES * math.fsum(_find_weight(choice, _count_rows(user)) for user in USERS)
    ratio = COPIES * math.fsum(sums) / kept_weight
    sampling = _bound_sampling(variances, bound * half_width) if any(variances) else 0.0
    if choice.has_public_counts:
        tolerance = (sampling + _bound_noise(choice, 2.0 * bound * half_width)) / kept_weight
    else:
        # Half of the budget each, or one budget for two sums of twice the sensitivity.
        noise = _bound_noise(choice, bound * half_width, 0.5)
        rows_noise = _bound_noise(choice, bound, 0.5)
        tolerance = (sampling + noise + abs(ratio) * rows_noise) / (kept_weight - rows_noise)
    return Truth(np.array([low + half_width + ratio]), np.array([tolerance]))


def _find_chance(user: dict[str, np.ndarray], choice: ReleaseSpec) -> float:
    """Return the probability that a group of the user is drawn."""
    return min(1.0, (choice.max_groups or 0) / len(user))


def _scale_by_groups(choice: ReleaseSpec, each: float) -> float:
    """Return the sensitivity if each group of a user moves by at most ``each``: in L1, with Gaussian noise in L2."""
    groups = choice.max_groups or 0
    return each * (groups if choice.noise is NoiseKind.LAPLACE else math.sqrt(groups))


def _compute_group_totals(choice: ReleaseSpec) -> Truth:
    expected, tolerances, groups = [], [], choice.max_groups or 0
    amount_limits = {Quantity.GROUP_COUNTS: 1.0, Quantity.GROUP_ROWS: float(choice.max_rows or 0)}
    each = amount_limits.get(choice.quantity, max(-choice.min_total, choice.max_total or 0.0))
    noise = _bound_noise(choice, _scale_by_groups(choice, each))
    for group in GROUPS:
        total, variances = 0.0, []
        for user in USERS:
            if group not in user:
                continue
            chance, amount = _find_chance(user, choice), _find_amount(choice, user[group])
            total += chance * amount
            variances.append(amount**2 * chance * (1.0 - chance))
        expected.append(COPIES * total)
        sampling = _bound_sampling(variances, each) if any(variances) else 0.0
        tolerances.append(sampling + noise + 1.0)  # a whole number
    draw_moments = [
        _find_moments(np.array([_find_amount(choice, rows) for rows in user.values()]), groups)
        for user in USERS
    ]
    expected.append(COPIES * math.fsum(total for total, _ in draw_moments))
    variances = [variance for _, variance in draw_moments]
    sampling = _bound_sampling(variances, groups * each) if any(variances) else 0.0
    # The sum of n draws of Laplace noise of scale b exceeds (ln(2e9) - n ln(1 - x^2)) b / x with probability 1e-9 at
    # most, for every x below 1 (Chernoff); for 40 of them and x = 0.6 that is 66 b, and sqrt(40) ln(1e9) b is 131 b.
    tolerances.append(sampling + math.sqrt(len(GROUPS)) * noise + 1.0)
    return Truth(np.array(expected), np.array(tolerances))


def _find_amount(choice: ReleaseSpec, rows: np.ndarray) -> float:
    """Find what a group of a user adds where it is drawn."""
    if choice.quantity is Quantity.GROUP_COUNTS:
        return 1.0
    if choice.quantity is Quantity.GROUP_ROWS:
        return float(min(len(rows), choice.max_rows or 0))
    return min(max(float(rows.sum()), choice.min_total), choice.max_total or 0.0)


def _compute_group_means(choice: ReleaseSpec) -> Truth:
    expected, tolerances = [], []
    low, high, max_rows = choice.lower or 0.0, choice.upper or 0.0, choice.max_rows or 0
    half_width = (high - low) / 2.0
    noise = _bound_noise(choice, _scale_by_groups(choice, max_rows * half_width), 0.5)
    rows_noise = _bound_noise(choice, _scale_by_groups(choice, max_rows), 0.5)
    for group in GROUPS:
        user_moments = []
        for user in USERS:
            if group in user:
                values = np.clip(user[group], low, high) - (low + half_width)
                user_moments.append(
                    (_find_chance(user, choice), min(len(values), max_rows), *_find_moments(values, max_rows))
                )
        ratio = sum(p * total for p, _, total, _ in user_moments) / sum(
            p * rows for p, rows, _, _ in user_moments
        )
        # Of each user's sum less ratio times rows, and of the rows: the law of total variance.
        deviations = [p * (v + (1.0 - p) * (t - ratio * rows) ** 2) for p, rows, t, v in user_moments]
        counts = [p * (1.0 - p) * rows**2 for p, rows, _, _ in user_moments]
        sampling = _bound_sampling(deviations, 4.0 * half_width * max_rows) if any(deviations) else 0.0
        fewer = _bound_sampling(counts, max_rows) if any(counts) else 0.0
        rows_left = COPIES * sum(p * rows for p, rows, _, _ in user_moments) - fewer - rows_noise
        assert rows_left > 0.0
        expected.append(low + half_width + ratio)
        tolerances.append((sampling + noise + abs(ratio) * rows_noise) / rows_left)
    return Truth(np.array(expected), np.array(tolerances))


def _compute_quantiles(choice: ReleaseSpec) -> Truth:
    """Return the values between which a quantile lies: where the expected rows below fit those drawn, plus or less."""
    low, high, max_rows = choice.lower or 0.0, choice.upper or 0.0, choice.max_rows or 0
    values = np.unique(np.concatenate([np.clip(_list_rows(user), low, high) for user in USERS]))
    rows_below, variances = np.zeros(len(values)), np.zeros(len(values))
    for user in USERS:
        rows = np.sort(np.clip(_list_rows(user), low, high))
        size, drawn_rows = len(rows), min(len(rows), max_rows)
        share = np.searchsorted(rows, values, side="right") / size
        rows_below += COPIES * drawn_rows * share
        variances += drawn_rows * share * (1.0 - share) * (size - drawn_rows) / max(size - 1, 1)
    all_rows = rows_below[-1]
    sampling = _bound_sampling([float(variances.max())], max_rows) if np.any(variances) else 0.0
    # The coarsest of the mechanisms is a tree of four levels with sixteen children each, whose counts are all noisy
    # and share the budget of one quantile.
    noise = 4 * 16 * 4 * max_rows / choice.epsilon_per_quantile * SURE
    cell = (high - low) / 2000  # plain Python's candidates
    ends = []
    for q in choice.quantiles:
        first_value = values[np.searchsorted(rows_below, q * all_rows - sampling - noise)] - cell
        last_value = (
            values[
                min(
                    np.searchsorted(rows_below, q * all_rows + sampling + noise, side="right"),
                    len(values) - 1,
                )
            ]
            + cell
        )
        ends.append((first_value, last_value))
    low_ends, high_ends = np.array(ends).T
    return Truth((low_ends + high_ends) / 2.0, (high_ends - low_ends) / 2.0)
