"""The best bound and its error over ε, and the bounds that people take without asking. Pure: numbers in, numbers out.

A question declares one function in its ``answer.py``:

    def against_epsilon(data: Dataset, parameters: P) -> Against | Ways | str

A string says why there is nothing to compare. The tab *Compare* does the rest. Everything that does not depend on ε is
done once, in that function or behind it. Fields that none of it depends on are named in ``NOT_COMPARED``, so that they
make no work. A page with data of its own hands these to `pages.shared.base.page_run.compares`: the function
is given them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from dpcore.common import wording
from dpcore.common.privacy import Provenance
from dpcore.common.progress import Progress, ShouldStop
from dpcore.contributions import FloatArray, IntArray

T = TypeVar("T")

EPSILON_STEPS = (
    0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7,
    1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0, 20.0, 50.0, 100.0,
)  # fmt: skip
"""Values of ε that a slider has, and at which answers are compared."""
SHOWN = (0.01, 30.0)
"""ε from where to where."""
FEW = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
"""Where each takes seconds."""
MOST_REMEMBERED = 256
SHARES = (0.5, 0.9, 0.95, 0.99)
"""Shares of users whose quantile is often taken as the bound."""


@dataclass(frozen=True, eq=False)
class Ways:
    """Several ways to a release, and what each costs at any ε, all else as it was asked.

    Attributes:
        axis: What the cost is, with its unit.
        names: Of the ways.
        errors: What each costs at epsilons of shape (k,), shape (ways, k).
        crossings: (ε, what changes there), exact, ascending: where a way costs as much as the first.
        sentence: Which way is best from where on.
        provenance: Of these numbers where that is not that of the data in use.
    """

    axis: str
    names: tuple[str, ...]
    errors: Callable[[FloatArray], FloatArray]
    crossings: tuple[tuple[float, str], ...] = ()
    sentence: str = ""
    provenance: Provenance | None = None


@dataclass(frozen=True, eq=False)
class Against:
    """What is best at any ε, all else as it was asked.

    Attributes:
        bound_axis: What the bound is, with its unit.
        error_axis: What the error is, with its unit.
        best: The best bound at an ε, and its error.
        error: The error at an ε and at bounds, shape (k,); None where candidates are not compared.
        amounts: What users have of that which is bounded, distinct, ascending, shape (n,); empty without candidates.
        users: Users who have each, shape (n,).
        cut: What a bound leaves out, as the heading of a column.
        whole: Whether a bound is a whole number.
        slow: Whether one ε takes so long that all of them are work beside the page, on request.
        caption: What the numbers are, a sentence below the table; empty where the axes say it.
        error_of_candidates: What ``error`` is where that is not what ``best`` reaches; empty where it is.
        provenance: Of these numbers where that is not that of the data in use.
        ways: Ways that are compared, too; None where there are none.
    """

    bound_axis: str
    error_axis: str
    best: Callable[[float], tuple[float, float]]
    error: Callable[[float, FloatArray], FloatArray] | None = None
    amounts: FloatArray | IntArray = ()  # type: ignore[assignment]
    users: IntArray = ()  # type: ignore[assignment]
    cut: str = "Rows left out"
    whole: bool = True
    slow: bool = False
    caption: str = ""
    error_of_candidates: str = ""
    provenance: Provenance | None = None
    ways: Ways | None = None


@dataclass(frozen=True, eq=False)
class OverEpsilon:
    """The curves.

    Attributes:
        epsilons: Ascending, shape (k,).
        bounds: The best bound at each.
        errors: Its error.
    """

    epsilons: FloatArray
    bounds: FloatArray
    errors: FloatArray


def epsilon_grid(slow: bool) -> FloatArray:
    """Where the curves are computed: the steps of the slider, with one between each two where that is cheap."""
    if slow:
        return np.array(FEW)
    steps = np.array([step for step in (*EPSILON_STEPS, SHOWN[1]) if SHOWN[0] <= step <= SHOWN[1]])
    steps.sort()
    return np.sort(np.concatenate((steps, np.sqrt(steps[1:] * steps[:-1]))))


def over_epsilon(
    of: Against, progress: Progress | None = None, should_stop: ShouldStop | None = None
) -> OverEpsilon:
    """The best bound and its error over ε; over those that were reached, where it is stopped."""
    grid = epsilon_grid(of.slow)
    points: list[tuple[float, float]] = []
    for epsilon in grid:
        if should_stop is not None and should_stop():
            break
        points.append(of.best(float(epsilon)))
        if progress is not None:
            progress(len(points) / grid.size)
    pairs = np.array(points, dtype=np.float64).reshape(-1, 2)
    return OverEpsilon(grid[: len(points)], pairs[:, 0], pairs[:, 1])


@dataclass(frozen=True, eq=False)
class WaysOverEpsilon:
    """The curves of several ways.

    Attributes:
        epsilons: Ascending, shape (k,).
        errors: What each way costs, shape (ways, k).
    """

    epsilons: FloatArray
    errors: FloatArray


def ways_over_epsilon(of: Ways) -> WaysOverEpsilon:
    """What every way costs over ε, the crossings among the points."""
    marks = [epsilon for epsilon, _ in of.crossings if SHOWN[0] <= epsilon <= SHOWN[1]]
    grid = np.unique(np.append(epsilon_grid(slow=False), marks))
    return WaysOverEpsilon(grid, of.errors(grid))


def rows_of_ways(of: Ways, epsilon: float) -> list[dict[str, str]]:
    """The ways at one ε, by heading, and how it differs from the first."""
    errors = of.errors(np.array([epsilon]))[:, 0].tolist()
    return [
        {
            "Way": name,
            "Cost": wording.number(error),
            "Change": "" if name == of.names[0] else wording.change(error, errors[0]),
        }
        for name, error in zip(of.names, errors, strict=True)
    ]


def remembered(of: Callable[[float], T]) -> Callable[[float], T]:
    """A function of ε that computes each ε once. What it holds goes with what is compared, which caches forget."""
    kept: dict[float, T] = {}

    def found(epsilon: float) -> T:
        if epsilon not in kept:
            if len(kept) >= MOST_REMEMBERED:
                kept.clear()
            kept[epsilon] = of(epsilon)
        return kept[epsilon]

    return found


# --- Candidates -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Candidate:
    """A bound that somebody may take.

    Attributes:
        bound: In the unit of the amounts.
        why: How it is come by.
        error: At the ε in use.
        lost: Share of all amounts that it leaves out.
        affected: Users who have more.
    """

    bound: float
    why: str
    error: float
    lost: float
    affected: int


def candidates(of: Against, epsilon: float) -> tuple[Candidate, ...]:
    """The best bound, round ones, quantiles of what users have, and the largest of it, ascending.

    Args:
        of: It must have an ``error``.
        epsilon: In use.
    """
    assert of.error is not None
    amounts, users = np.asarray(of.amounts, dtype=np.float64), np.asarray(of.users, dtype=np.float64)
    named: dict[float, list[str]] = {}

    def add(bound: float, why: str) -> None:
        if bound > 0.0:
            named.setdefault(bound, []).append(why)

    add(float(of.best(epsilon)[0]), "best")
    positive = amounts[amounts > 0.0]
    for rung in _round(float(positive[0]), float(positive[-1]), of.whole):
        add(rung, ROUND)
    at_most = np.cumsum(users)
    for share in SHARES:
        # A share of users is taken exactly: 0.9 times ten users is nine, whatever float64 makes of it.
        at = int(np.searchsorted(at_most, share * at_most[-1] * (1.0 - 1e-12)))
        add(
            float(amounts[at]),
            "median" if share == 0.5 else f"{wording.percent(share)} of users have at most this",
        )
    add(float(amounts[-1]), "the most that a user has")
    bounds = np.array(sorted(named))
    errors = of.error(epsilon, bounds)
    total = float(amounts @ users)
    return tuple(
        Candidate(
            float(bound),
            "; ".join(why for why in named[bound] if why != ROUND or len(named[bound]) == 1),
            float(error),
            float(np.maximum(amounts - bound, 0.0) @ users) / total,
            int(users[amounts > bound].sum()),
        )
        for bound, error in zip(bounds.tolist(), errors, strict=True)
    )


MOST_ROUND = 12
ROUND = "round number"


def _round(low: float, high: float, whole: bool) -> list[float]:
    """1, 2 and 5 times powers of ten between the least and the most, only powers of ten where these are many."""
    first = int(np.floor(np.log10(max(low, 1.0) if whole else max(low, high / 1e6))))
    last = int(np.floor(np.log10(high)))
    rungs = [step * 10.0**power for power in range(first, last + 1) for step in (1.0, 2.0, 5.0)]
    rungs = [float(f"{rung:.0e}") for rung in rungs if rung <= high and (not whole or rung >= 1.0)]
    if len(rungs) <= MOST_ROUND:
        return rungs
    return [rung for rung in rungs if f"{rung:.0e}".startswith("1")]


def rows_of(found: Sequence[Candidate], of: Against) -> list[dict[str, str]]:
    """The table, by heading."""
    best = min(one.error for one in found)
    return [
        {
            "Bound": wording.number(one.bound),
            "How it is come by": one.why,
            "Error": wording.number(one.error),
            "Against the best": "" if "best" in one.why.split("; ") else wording.change(one.error, best),
            of.cut: wording.percent(one.lost),
            "Users over it": wording.number(one.affected),
        }
        for one in found
    ]
