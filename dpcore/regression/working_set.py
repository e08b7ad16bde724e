"""The best C, exactly and fast: Newton on the dual, then a growing set of entries; certified at every step.

1. Newton's method on the dual (`dual_newton`). Where sampling noise counts it ends here, at once.
2. Where privacy noise rules, C is sparse (about one entry per user). The entries that a smoothed dual points
   to are solved exactly with Clarabel (`quadratic_program`); its multipliers M price all other entries, those
   above their user's multiplier enter, and so on until the gap closes.

Every C is made feasible by C + (I - C X)(X^T X)^-1 X^T and every M gives a lower bound (`dual`), so a search
that is stopped returns the best C so far with what is proved of it.

Source: the problem is Epasto et al. 2020, theorem 6, who hand it to SCS through CVXPY; the method is ours.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpcore.common.checks import Problems
from dpcore.common.progress import Progress, ShouldStop, measure_progress, never, silent
from dpcore.contributions import FloatArray, IntArray
from dpcore.regression import dual_newton
from dpcore.regression.dual import PricedEntries, price
from dpcore.regression.estimate import LinearEstimate, Step, evaluate
from dpcore.regression.problem import RegressionProblem
from dpcore.regression.quadratic_program import solve_restricted

METHOD = "best linear unbiased estimator"
SMOOTHING = (1.0, 1e-1, 1e-2, 1e-3)
"""Trade-offs A, times the number of users, by which the dual is smoothed where the true one is smaller."""

BRIEF_BELOW, BRIEF_STEPS = 0.1, 10
"""Below this trade-off times the number of users, so many Newton steps do before Clarabel takes over."""
MAX_WORKING_SET = 500_000
"""Entries that Clarabel is given at most: a minute and about 2 GB."""
FIRST_GAP = 0.1
"""Relative gap at which an answer is good to be shown while the search goes on: its standard error, the root, is at
most 5 % above the least."""
ENTERING = 32
"""Entries of one user that may enter the working set at a time: a heavy user has many that look alike."""


@dataclass(frozen=True)
class SolverOptions:
    """Limits that change the time taken, never the right answer.

    Attributes:
        tolerance: Relative gap at which the search ends, at least 1e-12.
        rounds: Restricted problems to solve at most.
        newton_steps: Newton steps at most on the true dual.
    """

    tolerance: float = 1e-8
    rounds: int = 50
    newton_steps: int = 60

    def __post_init__(self) -> None:
        with Problems() as problems:
            problems.between(1e-12, 1.0, tolerance=self.tolerance)
            problems.whole(0, 10_000, rounds=self.rounds, newton_steps=self.newton_steps)


class _Search:
    """The best feasible W and the best multipliers so far; all values divided by `unit_noise`."""

    def __init__(
        self,
        problem: RegressionProblem,
        options: SolverOptions,
        progress: Progress,
        should_stop: ShouldStop,
        on_step: Callable[[Step], None] | None,
        on_first: Callable[[LinearEstimate], None] | None,
    ) -> None:
        self.problem, self.options = problem, options
        self.whitened, self.trade_off = problem.whitened, problem.trade_off
        self.progress, self.should_stop, self.on_step = progress, should_stop, on_step
        self.on_first = on_first
        self.began = time.perf_counter()
        self.steps: list[Step] = []
        self.entries = 0
        self.best_w = self.whitened.repaired(self.whitened.ordinary())
        self.value = self.whitened.objective(self.best_w, self.trade_off)
        self.bound = 0.0  # A variance is never below 0.
        # M = E prices entries as ordinary least squares weighs them: exact where privacy noise does not count.
        self.best_dual = self.whitened.target
        self.try_dual(self.best_dual)

    @property
    def gap(self) -> float:
        return (self.value - self.bound) / self.value

    @property
    def proved(self) -> bool:
        return self.gap <= self.options.tolerance

    @property
    def stopped(self) -> bool:
        return self.should_stop()

    def try_primal(self, w: FloatArray) -> None:
        """Repair a candidate and keep it if it is the best."""
        # Repaired before it is valued: a W that misses A^T W = E has a value that no feasible one need reach.
        w = self.whitened.repaired(w)
        value = self.whitened.objective(w, self.trade_off)
        if value < self.value:
            self.best_w, self.value = w, value

    def try_dual(self, m: FloatArray, priced: PricedEntries | None = None) -> PricedEntries:
        """Price with M and keep it if its bound is the best."""
        priced = price(self.whitened, self.trade_off, m) if priced is None else priced
        if priced.lower_bound > self.bound:
            self.best_dual, self.bound = m, priced.lower_bound
        return priced

    def record(self, entries: int) -> None:
        """Add the present bounds to the steps, and call the listeners."""
        unit = self.problem.unit_noise
        seconds = time.perf_counter() - self.began
        self.entries = entries
        self.steps.append(Step(seconds, unit * self.value, unit * self.bound, entries))
        if self.on_step is not None:
            self.on_step(self.steps[-1])
        self.progress(measure_progress(self.gap, self.options.tolerance))
        if self.on_first is not None and self.gap <= FIRST_GAP and not self.proved:
            on_first, self.on_first = self.on_first, None
            on_first(self.answer("The search goes on: the best so far."))

    def answer(self, stop_reason: str) -> LinearEstimate:
        """Return the best C so far, with what is proved of it."""
        c = self.whitened.original(self.best_w)
        return evaluate(self.problem, c, self.best_dual, METHOD, stop_reason, tuple(self.steps))


def solve(
    problem: RegressionProblem,
    options: SolverOptions | None = None,
    *,
    progress: Progress = silent,
    should_stop: ShouldStop = never,
    on_step: Callable[[Step], None] | None = None,
    on_first: Callable[[LinearEstimate], None] | None = None,
) -> LinearEstimate:
    """Find the linear unbiased estimator of least total variance under epsilon-DP, with a certificate.

    Args:
        problem: The question.
        options: Tolerance and limits.
        progress: Told the share of the way to the tolerance, on a logarithmic scale, from 0 to 1.
        should_stop: Asked often; once it returns True the best C so far is returned.
        on_step: Told every `Step`, for a curve of the gap while it closes.
        on_first: Told the first C that is proved within `FIRST_GAP` of the best, as a whole answer; not where the
            search ends at once.

    Returns:
        `LinearEstimate`; `stop_reason` says whether the gap closed, and the certificate how far.

    Source: Epasto et al. 2020, theorem 6, for the objective.
    """
    search = _Search(problem, options or SolverOptions(), progress, should_stop, on_step, on_first)
    search.record(search.best_w.size)
    keys = _newton(search)
    if search.proved:
        stop_reason = "The gap closed on the dual alone."
    elif search.stopped:
        stop_reason = "Stopped: the best so far."
    else:
        stop_reason = _grow(search, keys)
    return search.answer(stop_reason)


def _newton(search: _Search) -> IntArray:
    """Ascend the dual, smoothed less and less; returns the signed entries that the last points use."""
    whitened, a = search.whitened, search.trade_off
    m = search.best_dual
    signed_entries: list[IntArray] = []
    for level in _levels(a, whitened.starts.size):
        exact = level == a
        # Where privacy noise rules, Newton on the true dual only refines what the smoothed ones found.
        brief = not exact or a * whitened.starts.size < BRIEF_BELOW
        steps = min(search.options.newton_steps, BRIEF_STEPS) if brief else search.options.newton_steps

        def settled(point: dual_newton.DualPoint, exact: bool = exact) -> bool:
            if not exact:
                # A smoothed dual only says where to go on from: few digits of its optimum do.
                return point.missing < 1e-4 or search.stopped
            search.try_dual(point.m, point.priced)
            # Farther from A^T W = E the repair changes the candidate too much for it to be the best.
            if point.missing < 1e-2:
                search.try_primal(point.priced.candidate(a))
            search.record(point.priced.entries.size)
            return search.proved or search.stopped

        latest = dual_newton.ascend(whitened, level, m, steps, settled)
        if not exact:
            search.try_dual(latest.m)
            search.try_primal(latest.priced.candidate(level))
            search.record(latest.priced.entries.size)
        if search.proved or search.stopped:
            break
        signed_entries.append(_signed_entries(latest.priced))
        m = latest.m
    # Points smoothed more use more entries, most of them for nothing; a few of them save rounds later.
    return np.unique(np.concatenate((*signed_entries[-3:], np.empty(0, dtype=np.int64))))


def _levels(trade_off: float, num_users: int) -> list[float]:
    """Return the degrees of smoothing to go through, ending at the true trade-off where Newton can work with it."""
    levels = [share / num_users for share in SMOOTHING if share / num_users > trade_off]
    if not levels or trade_off > levels[-1] / 10.0:
        levels.append(trade_off)
    return levels


def _signed_entries(priced: PricedEntries) -> IntArray:
    return _keys(priced.entries, np.sign(priced.prices.ravel()[priced.entries]))


def _feasible_basis(search: _Search) -> IntArray:
    """Return the signed entries of d independent rows that alone satisfy A^T W = E."""
    from scipy.linalg import qr

    _, pivots = qr(search.whitened.rows.T, mode="r", pivoting=True)
    d = search.whitened.rows.shape[1]
    basis = np.sort(pivots[:d])
    w = np.linalg.solve(search.whitened.rows[basis].T, search.whitened.target)
    # With the signs of a solution, as the restricted problem holds every entry to its sign.
    entries = (basis[:, None] * d + np.arange(d)).ravel()
    return _keys(entries, np.asarray(w).ravel())


def _grow(search: _Search, keys: IntArray) -> str:
    """Solve on the working set, price everything, let in what pays, until the gap closes."""
    whitened, a = search.whitened, search.trade_off
    # Without d independent rows the restricted problem could have no feasible point at all.
    keys = np.union1d(keys, _feasible_basis(search))
    for _ in range(search.options.rounds):
        if keys.size > MAX_WORKING_SET:
            return f"The working set outgrew {MAX_WORKING_SET:,} entries: the best so far."
        scale = whitened.largest_user_weight(search.best_w)
        entries = keys // 2
        restricted = solve_restricted(
            whitened, a, entries, np.where(keys % 2 == 1, 1.0, -1.0), scale, search.should_stop
        )
        if restricted.sound:
            search.try_primal(restricted.w)
            priced = search.try_dual(restricted.dual)
            prices = priced.prices.ravel()
        search.record(keys.size)
        if search.proved:
            return "The gap closed."
        if search.stopped:
            return "Stopped: the best so far."
        if not restricted.sound:
            return f"The restricted problem could not be solved ({restricted.status}): the best so far."
        # Two opinions on what pays: the multipliers that Clarabel found, and the best ones for its M. They agree at
        # the optimum only; before it, either may pass over entries that pay.
        entering = np.union1d(_entering(search, prices, restricted.multipliers), priced.entries)
        # Entries are never dropped, so the working set cannot go round in circles.
        following = np.union1d(keys, _keys(entering, np.sign(prices[entering])))
        if following.size == keys.size:
            return "No entry is left to let in: what remains of the gap is rounding."
        keys = following
    return "The limit of rounds was reached: the best so far."


def _entering(search: _Search, prices: FloatArray, multipliers: FloatArray) -> IntArray:
    """Return the entries priced above their user's multiplier, of each user the `ENTERING` highest."""
    whitened = search.whitened
    d = whitened.rows.shape[1]
    sizes = np.abs(prices)
    paying = np.flatnonzero(sizes > np.repeat(multipliers, whitened.sizes * d))
    users = whitened.users[paying // d]
    order = np.lexsort((-sizes[paying], users))
    users = users[order]
    starts = np.flatnonzero(np.diff(users, prepend=-1))
    ranks = np.arange(users.size) - np.repeat(starts, np.diff(starts, append=users.size))
    return paying[order][ranks < ENTERING]


def _keys(entries: IntArray, signs: FloatArray) -> IntArray:
    """Encode signed entries as distinct ascending whole numbers: twice the position, plus 1 for a positive sign."""
    return np.unique(2 * entries + (signs > 0.0))
