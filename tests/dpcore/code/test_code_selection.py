"""Privately selected groups as programs: the threshold of the program is the page's, and both keep the promise."""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import opendp.prelude as dp
import pandas as pd
import pytest
from scipy.special import ndtr
from scipy.stats import laplace

import dpcore as ss
from dpcore.code import Quantity, ReleaseSpec, write
from dpcore.code.release_spec import GroupSelection
from dpcore.code.with_selection import GAUSSIAN, GEOMETRIC, LAPLACE
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Disclosure
from dpcore.common.programs import Program
from dpcore.per_group.selection_rules import SelectionRule, compute_keep_probabilities
from tests.dpcore.code import audit
from tests.dpcore.code.specs import make_spec

RULES = {
    LAPLACE: SelectionRule.LAPLACE,
    GAUSSIAN: SelectionRule.GAUSSIAN,
    GEOMETRIC: SelectionRule.TRUNCATED_GEOMETRIC,
}
NEIGHBOURS = "user_id,product,amount\n"


def choose(rule: str = LAPLACE, **fields: Any) -> ReleaseSpec:
    selection = GroupSelection(rule, 1.0, 1e-6, fields.pop("min_users", 1))
    choice = make_spec(Quantity.GROUP_COUNTS, max_groups=3, selection=selection)
    return replace(choice, disclosure=Disclosure.PRIVATE, **fields)


def run(
    choice: ReleaseSpec, program: Program, monkeypatch: pytest.MonkeyPatch
) -> tuple[dict[str, Any], dict[str, float]]:
    """Run a program; return its names, and scale and threshold of OpenDP's last mechanism with a threshold."""
    used: dict[str, float] = {}

    def record(make: Any, *space: Any, scale: float, threshold: float) -> Any:
        used.update(scale=scale, threshold=threshold)
        return make(*space, scale=scale, threshold=threshold)

    for name in ("make_laplace_threshold", "make_gaussian_threshold"):
        monkeypatch.setattr(dp.m, name, functools.partial(record, getattr(dp.m, name)))
    names: dict[str, Any] = {}
    exec(compile(write(choice, program).text, "program", "exec"), names)
    return names, used


@pytest.mark.thinned
@pytest.mark.parametrize("program", [Program.PYTHON, Program.OPENDP])
@pytest.mark.parametrize("rule", [LAPLACE, GAUSSIAN])
@pytest.mark.parametrize(
    ("epsilon", "delta", "max_groups", "min_users"), [(1.0, 1e-6, 3, 1), (0.5, 1e-9, 4, 10)]
)
def test_the_threshold_of_the_program_is_that_of_the_page(
    program: Program,
    rule: str,
    epsilon: float,
    delta: float,
    max_groups: int,
    min_users: int,
    empty_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [f"u{user},{group},1" for user in range(600) for group in ("a", "b") if group == "a" or user < 9]
    (empty_folder / "shop_events.csv").write_text(NEIGHBOURS + "\n".join(rows))
    choice = replace(
        choose(), selection=GroupSelection(rule, epsilon, delta, min_users), max_groups=max_groups
    )
    names, used = run(choice, program, monkeypatch)
    users = np.arange(0, 500)
    distances = (users - (min_users - 1) - used["threshold"]) / used["scale"]
    drawn = ndtr(distances) if rule == GAUSSIAN else laplace.cdf(distances)
    drawn[users < min_users] = 0.0
    page = compute_keep_probabilities(RULES[rule], epsilon, delta, max_groups, 499, min_users=min_users)
    assert page == pytest.approx(drawn, rel=1e-5, abs=1e-15)
    assert page[-1] > 0.9
    # 600 users are above every threshold, 9 of them below the pre-threshold of 10 or unlikely by 1e-5.
    assert names["groups"] == ["a"]


def compute_spent_delta(pi: np.ndarray, epsilon: float, max_groups: int) -> float:
    """Return the largest delta over groups of n and n + 1 users, by every outcome of the groups of one user."""
    spent = 0.0
    for sizes in itertools.product(range(0, pi.size - 1, 3), repeat=max_groups):
        for base, other in itertools.permutations(([pi[n] for n in sizes], [pi[n + 1] for n in sizes])):
            loss = 0.0
            for kept in itertools.product((True, False), repeat=max_groups):
                p, q = (
                    math.prod(x if k else 1.0 - x for x, k in zip(side, kept, strict=True))
                    for side in (base, other)
                )
                loss += max(p - math.exp(epsilon) * q, 0.0)
            spent = max(spent, loss)
    return spent


@pytest.mark.parametrize("min_users", [1, 5])
@pytest.mark.parametrize(
    ("rule", "program"),
    [*((rule, Program.PIPELINEDP) for rule in RULES.values()), (SelectionRule.LAPLACE, Program.TUMULT)],
)
def test_one_user_changes_which_groups_are_kept_by_no_more_than_the_budget(
    rule: SelectionRule, program: Program, min_users: int
) -> None:
    options: Any = {"min_users": min_users, "program": program}
    for epsilon, delta, max_groups in ((1.0, 1e-2, 1), (0.7, 0.05, 2), (2.0, 1e-3, 3)):
        pi = compute_keep_probabilities(rule, epsilon, delta, max_groups, 24, **options)
        assert compute_spent_delta(pi, epsilon, max_groups) <= delta * (1.0 + 1e-9)
        # The audit sees a rule that is one user too generous.
        generous = compute_keep_probabilities(rule, epsilon, delta, max_groups, 26, **options)[2:]
        if min_users == 1 and program is not Program.TUMULT:  # its delta is far from used up
            assert compute_spent_delta(np.r_[0.0, generous], epsilon, max_groups) > delta


@pytest.mark.long
@pytest.mark.long_but("Program.OPENDP-NoiseKind.LAPLACE")
@pytest.mark.parametrize("noise", NoiseKind)
@pytest.mark.parametrize("program", [Program.PYTHON, Program.OPENDP])
def test_a_program_tells_of_one_user_only_which_groups_pass_their_threshold(
    program: Program, noise: NoiseKind, empty_folder: Path
) -> None:
    """Groups of 40 and more users pass it in all tables; what one user adds does not, whatever it holds."""
    delta = 1e-6 if noise is NoiseKind.GAUSSIAN else None
    choice = replace(
        choose(min_users=3),
        file=audit.FILE,
        noise=noise,
        delta=delta,
        quantity=Quantity.GROUP_ROWS,
        max_rows=2,
    )
    choice = replace(choice, epsilon=1000.0, selection=GroupSelection(LAPLACE, 50.0, 1e-6, 3))
    rows = [f"v{user},{group},1.5,1" for user in range(40) for group in audit.GROUPS]
    text = write(choice, program).text
    base = audit.run(text, audit.join_rows(*rows), empty_folder)
    assert base.ending == "0"
    assert base.names["groups"] == list(audit.GROUPS)
    for name, added in audit.ONE_USER.items():
        observed = audit.run(text, audit.join_rows(*rows, *added), empty_folder)
        assert observed.names["groups"] == base.names["groups"], name
        assert not audit.describe_difference(base, observed), name
    for name, content in audit.EMPTY.items():
        observed = audit.run(text, content, empty_folder)
        assert (observed.ending, observed.names["groups"]) == ("0", []), name


def test_the_answer_writes_the_program_of_its_pair_and_says_who_has_none() -> None:
    frame = pd.DataFrame([(u, f"g{g}") for u in range(300) for g in range(1 + u % 4)], columns=["u", "g"])
    columns: dict[str, Any] = {
        "user": "u",
        "group": "g",
        "epsilon": 2.0,
        "selection_share": 0.5,
        "selection_delta": 1e-6,
    }
    reply = ss.group_bounds(frame, selection="laplace threshold", min_users=20, **columns)
    text = reply.code("python")
    assert "SELECTION_EPSILON, SELECTION_DELTA = 1.0, 1e-06" in text
    assert "MIN_USERS = 20" in text
    assert f"MAX_GROUPS, MAX_ROWS = {reply.bound.max_groups}, " in text
    assert "pre_threshold=20," in reply.code("pipelinedp")
    assert "LAPLACE_THRESHOLDING" in reply.code("pipelinedp")
    choice = choose()
    has_text = {
        (rule, program): bool(
            write(replace(choice, selection=replace(choice.selection, rule=rule)), program).text
        )
        for rule in RULES
        for program in (Program.PYTHON, Program.OPENDP, Program.PIPELINEDP, Program.TUMULT, Program.BIGQUERY)
    }
    assert {pair for pair, is_written in has_text.items() if not is_written} == {
        *((GEOMETRIC, program) for program in (Program.PYTHON, Program.OPENDP)),
        *(
            (rule, program)
            for rule in (GEOMETRIC, GAUSSIAN)
            for program in (Program.TUMULT, Program.BIGQUERY)
        ),
    }
    uneven = replace(choice, selection=GroupSelection(LAPLACE, 0.5, 1e-6))
    assert "splits ε evenly" in write(uneven, Program.PIPELINEDP).differences[0]
