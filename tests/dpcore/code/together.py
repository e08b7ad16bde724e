"""Several releases of the sample events from one budget, and what each must have of it."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpcore.code import Quantity, ReleasePlan, ReleaseShare, ReleaseSpec
from dpcore.common.noise_error import NoiseKind
from dpcore.common.programs import Program
from tests.dpcore.code import files
from tests.dpcore.code.specs import SPEC_BY_NAME, SURE, VALUES, make_spec, run_program

EPSILON = 1000.0
DELTA = 1e-6
SMALLEST_SHARE = 1.0 / 32.0
RELEASES: dict[str, tuple[ReleaseSpec, int]] = {
    "users": (make_spec(Quantity.COUNT, max_rows=1), 2**15 + 1),
    "rows": (SPEC_BY_NAME["count"], 2**16),
    "sum": (SPEC_BY_NAME["sum"], 2**17 + 3),
    "mean": (SPEC_BY_NAME["mean, cap, private counts"], 2**18),
    "users per group": (SPEC_BY_NAME["groups"], 2**16 + 12_345),
    "rows per group": (SPEC_BY_NAME["rows per group"], 2**17 + 54_321),
    "sums per group": (SPEC_BY_NAME["sums per group"], 2**17),
    "quantile 0.75": (make_spec(Quantity.QUANTILE, max_rows=7, quantiles=(0.75,), **VALUES), 2**16),
}
"""Releases by name, each with its parts of 2^20, at least LEAST of them."""
assert all(num_parts >= SMALLEST_SHARE * 2**20 for _, num_parts in RELEASES.values())


def make_several(
    noise: NoiseKind = NoiseKind.LAPLACE, quantile: bool = False, clamps_users: bool = False, **fields: Any
) -> ReleasePlan:
    """Make all of them, with little noise; with other fields of a choice, all of them, and a mean of clamped users."""
    remainder = 2**20 - sum(num_parts for _, num_parts in RELEASES.values())
    plan = tuple(
        ReleaseShare(name, replace(choice, **fields), num_parts + (remainder if name == "mean" else 0))
        for name, (choice, num_parts) in RELEASES.items()
        if quantile or name != "quantile 0.75"
    )
    if clamps_users:
        users_fields = {"max_rows": None, "threshold": 2.5, "clamps_users": True, "weight_of_rows": 0.2}
        users_fields |= {"weight_of_users": 0.7, "user_share": 0.4}
        shares = [(share, users_fields if share.name == "mean" else {}) for share in plan]
        plan = tuple(replace(share, spec=replace(share.spec, **changes)) for share, changes in shares)
    return ReleasePlan(plan, EPSILON, noise, None if noise is NoiseKind.LAPLACE else DELTA)


def compute_move(share: ReleaseShare, noise: NoiseKind) -> float:
    """Compute how far a user moves a release under its bound, in L1 or, with Gaussian noise, in L2; by hand."""
    choice = share.spec
    largest = max(-choice.min_total, choice.max_total or 0.0)
    groups = float(choice.max_groups or 1)
    each = {
        Quantity.COUNT: float(choice.max_rows or 0),
        Quantity.SUM: largest,
        # Sums above the lower and below the upper end: a row adds the length of the range to both together.
        Quantity.MEAN: (choice.max_rows or choice.threshold or 0)
        * ((choice.upper or 0.0) - (choice.lower or 0.0)),
        # Three sums to which a row adds 1 in all.
        Quantity.DEVIATION: float(choice.max_rows or 0),
        Quantity.GROUP_COUNTS: 1.0,
        Quantity.GROUP_ROWS: float(choice.max_rows or 0),
        Quantity.GROUP_SUMS: largest,
        # What a user's rows add to |rows up to a candidate - q times all rows|: between -q and 1 - q each.
        Quantity.QUANTILE: 0.75 * float(choice.max_rows or choice.threshold or 0.0),
    }[choice.quantity]
    return each * (groups if noise is NoiseKind.LAPLACE else math.sqrt(groups))


def make_plan(nasty: files.Nasty) -> ReleasePlan:
    """Make one program of what `files.check_file` counts."""
    bounds_by_name = {
        "users": (Quantity.COUNT, {"max_rows": 1}),
        "rows": (Quantity.COUNT, {"max_rows": 2}),
        "sum": (Quantity.SUM, {"max_total": files.MAX_TOTAL}),
        "users per group": (Quantity.GROUP_COUNTS, {"max_groups": 4}),
    }
    shares = [
        ReleaseShare(name, nasty.make_spec(quantity, **bounds), 2**18)
        for name, (quantity, bounds) in bounds_by_name.items()
    ]
    return ReleasePlan(tuple(shares), files.EPSILON)


def check_file(nasty: files.Nasty, library: Program, folder: Path) -> None:
    """Check the same as `files.check_file`, with all of it released by one program."""
    (folder / nasty.name).write_bytes(nasty.content())
    releases = run_program(make_plan(nasty), library)["released"]
    # A quarter of the budget each: noise of scale 4 / 1000 on users, 8 / 1000 on rows, 16 / 1000 on users per group.
    assert round(releases["users"]) == len(nasty.sizes())
    assert round(releases["rows"]) == nasty.capped_rows(2)
    noise = 1.05 * 4.0 * files.MAX_TOTAL / files.EPSILON * SURE
    assert abs(releases["sum"] - nasty.capped_sum()) <= noise
    users = sorted(round(noises) for noises in releases["users per group"].values())
    assert users == nasty.users_of_groups()


QUIET_GROUPS = 400


def check_scale(library: Program, noise: NoiseKind, folder: Path) -> None:
    """Run it where no bound cuts anything: what is released less what stands there is noise, of a known size."""
    lines = [f"u{index},g{index},1" for index in range(QUIET_GROUPS)]
    (folder / "quiet.csv").write_text("\n".join(["who,where,what", *lines, ""]))
    names: dict[str, Any] = {
        "epsilon": 2.0, "file": "quiet.csv", "privacy_unit": ("who",), "value_column": "what", "group_column": "where",
    }  # fmt: skip
    rows = make_spec(Quantity.GROUP_ROWS, max_groups=9, max_rows=3, **names)
    sums = make_spec(Quantity.GROUP_SUMS, max_groups=4, max_total=7.5, **names)
    plan = ReleasePlan(
        (ReleaseShare("rows", rows, 3 * 2**18), ReleaseShare("sums", sums, 2**18)),
        2.0,
        noise,
        None if noise is NoiseKind.LAPLACE else DELTA,
    )
    releases = run_program(plan, library)["released"]
    for share in plan.releases:
        amount = share.num_parts / 2**20 * plan.compute_total_budget(library)
        scale = compute_move(share, noise) / (
            amount if noise is NoiseKind.LAPLACE else math.sqrt(2.0 * amount)
        )
        # The mean of |noise| is b, or sigma sqrt(2 / pi); of 400 draws its deviation is at most 5 % of that.
        expected = scale if noise is NoiseKind.LAPLACE else scale * math.sqrt(2.0 / math.pi)
        noises = [releases[share.name][f"g{index}"] - 1.0 for index in range(QUIET_GROUPS)]
        size = math.fsum(map(abs, noises)) / QUIET_GROUPS
        assert 0.7 * expected < size < 1.35 * expected, (library, share.name, size, expected)
