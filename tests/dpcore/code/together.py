"""Several releases of the sample events from one budget, and what each must have of it."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpcore.code import Choice, Library, Quantity, ReleaseShare, Several, write
from dpcore.common.noise_error import NoiseKind
from tests.dpcore.code import files
from tests.dpcore.code.choices import EVERY, VALUES, choice

EPSILON = 1000.0
DELTA = 1e-6
LEAST = 1.0 / 32.0
PARTS: dict[str, tuple[Choice, int]] = {
    "users": (choice(Quantity.COUNT, max_rows=1), 2**15 + 1),
    "rows": (EVERY["count"], 2**16),
    "sum": (EVERY["sum"], 2**17 + 3),
    "mean": (EVERY["mean, cap, private counts"], 2**18),
    "users per group": (EVERY["groups"], 2**16 + 12_345),
    "rows per group": (EVERY["rows per group"], 2**17 + 54_321),
    "sums per group": (EVERY["sums per group"], 2**17),
    "quantile 0.75": (choice(Quantity.QUANTILE, max_rows=7, quantiles=(0.75,), **VALUES), 2**16),
}
"""Releases by name, each with its parts of 2^20, at least LEAST of them."""
assert all(parts >= LEAST * 2**20 for _, parts in PARTS.values())


def several(noise: NoiseKind = NoiseKind.LAPLACE, quantile: bool = False, **fields: Any) -> Several:
    """All of them, with little noise; with other fields of a choice, all of them."""
    left = 2**20 - sum(parts for _, parts in PARTS.values())
    asked = tuple(
        ReleaseShare(name, replace(chosen, **fields), parts + (left if name == "mean" else 0))
        for name, (chosen, parts) in PARTS.items()
        if quantile or name != "quantile 0.75"
    )
    if noise is NoiseKind.LAPLACE:
        return Several(asked, EPSILON, EPSILON)
    # By Bun and Steinke 2016, proposition 1.3, in whole numbers; what OpenDP converts to EPSILON is somewhat more.
    log = math.log(1.0 / DELTA)
    rho = math.floor((EPSILON / (math.sqrt(EPSILON + log) + math.sqrt(log))) ** 2)
    return Several(asked, EPSILON, float(rho), noise, DELTA)


def moves(part: ReleaseShare, noise: NoiseKind) -> float:
    """How far a user moves a release under its bound, in L1 or, with Gaussian noise, in L2; counted by hand."""
    chosen = part.choice
    most = max(-chosen.min_total, chosen.max_total or 0.0)
    groups = float(chosen.max_groups or 1)
    each = {
        Quantity.COUNT: float(chosen.max_rows or 0),
        Quantity.SUM: most,
        # Sums above the lower and below the upper end: a row adds the length of the range to both together.
        Quantity.MEAN: (chosen.max_rows or 0) * ((chosen.upper or 0.0) - (chosen.lower or 0.0)),
        Quantity.GROUP_COUNTS: 1.0,
        Quantity.GROUP_ROWS: float(chosen.max_rows or 0),
        Quantity.GROUP_SUMS: most,
        # What a user's rows add to |rows up to a candidate - q times all rows|: between -q and 1 - q each.
        Quantity.QUANTILE: 0.75 * float(chosen.max_rows or chosen.threshold or 0.0),
    }[chosen.quantity]
    return each * (groups if noise is NoiseKind.LAPLACE else math.sqrt(groups))


def run(asked: Several, library: Library) -> dict[str, Any]:
    """What the names of the program are bound to after it ran."""
    names: dict[str, Any] = {}
    exec(compile(write(asked, library).text, "program", "exec"), names)
    return names


def plan_of(nasty: files.Nasty) -> Several:
    """What `files.check` counts, in one program."""
    chosen = {
        "users": (Quantity.COUNT, {"max_rows": 1}),
        "rows": (Quantity.COUNT, {"max_rows": 2}),
        "sum": (Quantity.SUM, {"max_total": files.MAX_TOTAL}),
        "users per group": (Quantity.GROUP_COUNTS, {"max_groups": 4}),
    }
    parts = [
        ReleaseShare(name, nasty.choice(kind, **bounds), 2**18) for name, (kind, bounds) in chosen.items()
    ]
    return Several(tuple(parts), files.EPSILON, files.EPSILON)


def check_file(nasty: files.Nasty, library: Library, folder: Path) -> None:
    """As `files.check`, with all of it released by one program."""
    (folder / nasty.name).write_bytes(nasty.content())
    released = run(plan_of(nasty), library)["released"]
    # A quarter of the budget each: noise of scale 4 / 1000 on users, 8 / 1000 on rows, 16 / 1000 on users per group.
    assert round(released["users"]) == len(nasty.sizes())
    assert round(released["rows"]) == nasty.capped_rows(2)
    noise = 1.05 * 4.0 * files.MAX_TOTAL / files.EPSILON * files.SURE
    assert abs(released["sum"] - nasty.capped_sum()) <= noise
    users = sorted(round(found) for found in released["users per group"].values())
    assert users == nasty.users_of_groups()


QUIET_GROUPS = 400


def check_scale(library: Library, noise: NoiseKind, folder: Path) -> None:
    """Run it where no bound cuts anything: what is released less what stands there is noise, of a known size."""
    lines = [f"u{at},g{at},1" for at in range(QUIET_GROUPS)]
    (folder / "quiet.csv").write_text("\n".join(["who,where,what", *lines, ""]))
    names: dict[str, Any] = {
        "epsilon": 2.0, "file": "quiet.csv", "privacy_unit": ("who",), "value_column": "what", "group_column": "where",
    }  # fmt: skip
    rows = choice(Quantity.GROUP_ROWS, max_groups=9, max_rows=3, **names)
    sums = choice(Quantity.GROUP_SUMS, max_groups=4, max_total=7.5, **names)
    asked = Several(
        (ReleaseShare("rows", rows, 3 * 2**18), ReleaseShare("sums", sums, 2**18)),
        2.0,
        2.0 if noise is NoiseKind.LAPLACE else 0.0625,
        noise,
        None if noise is NoiseKind.LAPLACE else DELTA,
    )
    released = run(asked, library)["released"]
    for part in asked.releases:
        amount = part.num_parts / 2**20 * asked.total
        scale = moves(part, noise) / (amount if noise is NoiseKind.LAPLACE else math.sqrt(2.0 * amount))
        # The mean of |noise| is b, or sigma sqrt(2 / pi); of 400 draws its deviation is at most 5 % of that.
        expected = scale if noise is NoiseKind.LAPLACE else scale * math.sqrt(2.0 / math.pi)
        found = [released[part.name][f"g{at}"] - 1.0 for at in range(QUIET_GROUPS)]
        size = math.fsum(map(abs, found)) / QUIET_GROUPS
        assert 0.7 * expected < size < 1.35 * expected, (library, part.name, size, expected)
