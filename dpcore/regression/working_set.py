"""The best matrix C, exactly and fast: Newton on the dual, then a growing set of entries; certified at every step.

1. Newton's method on the dual (`dual`). Where sampling noise counts it ends here, at once.
2. Where privacy noise rules, C is sparse (about one entry per user). Clarabel solves exactly for the entries that a
   smoothed dual points to. Its multipliers M price all other entries, and those above their user's multiplier enter.
   This repeats until the gap closes.

Every C is made feasible by C + (I - C X)(X^T X)^-1 X^T, and every M gives a lower bound (`dual`). So a search that is
stopped returns the best C so far with its proved gap.

Source: the problem is Epasto et al. 2020, theorem 6, who hand it to SCS through CVXPY; the method is ours.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpcore.common.certificate import Certificate, Solved, solve_timed
from dpcore.common.extras import import_extra
from dpcore.common.progress import Progress, ShouldStop, measure_progress, never, silent
from dpcore.contributions import FloatArray, IntArray, rank_within_users
from dpcore.regression import dual
from dpcore.regression.dual import PricedEntries, price_entries
from dpcore.regression.estimate import LinearEstimate, SearchStep, evaluate
from dpcore.regression.problem import RegressionProblem, Whitened

SOLVER_TOLERANCE = 1e-11
"""Relative gap and feasibility asked of Clarabel; the certificate judges what it reached."""


@dataclass(frozen=True, eq=False)
class RestrictedSolution:
    """Solution of a restricted problem.

    Attributes:
        sparse_weights: W = C^T, sorted rows, zero outside the given entries, shape (n, d).
        constraint_multipliers: M, shape (d, d).
        user_multipliers: lambda of the users, 0 for those without entries, shape (m,).
    """

    sparse_weights: FloatArray
    constraint_multipliers: FloatArray
    user_multipliers: FloatArray


def solve_restricted(
    whitened: Whitened,
    trade_off: float,
    entry_positions: IntArray,
    entry_signs: FloatArray,
    expected_largest_weight: float,
    should_stop: ShouldStop = never,
) -> RestrictedSolution | str:
    """Minimise a sum w^2 + t^2, t the largest user weight, over W that is 0 outside the given signed entries.

    Every given entry must have its sign or be 0: w = sign v with v >= 0.

    Args:
        whitened: The data.
        trade_off: a, at least 0.
        entry_positions: Flat positions i d + j, shape (k,); an entry may stand twice, once with each sign.
        entry_signs: 1 or -1 each, shape (k,).
        expected_largest_weight: The expected t; v is counted in it, so that Clarabel sees numbers near 1.
        should_stop: Asked at every iteration; stopping leaves no solution.

    Returns:
        The solution; Clarabel's own word if it called the problem infeasible or returned numbers that are not finite.
    """
    import clarabel  # type: ignore[import-untyped]
    from scipy.sparse import block_array, csc_array, diags_array

    n, d = whitened.row_matrix.shape
    k = entry_positions.size
    row_indices, column_indices = entry_positions // d, entry_positions % d
    used_users, used_user_indices = np.unique(whitened.row_users[row_indices], return_inverse=True)
    # A^T W = E, column after column: line j d + r, one sparse column of d numbers per entry.
    constraint_indices = column_indices[:, None] * d + np.arange(d)
    signed_rows = whitened.row_matrix[row_indices] * entry_signs[:, None]
    equality_parts = (signed_rows.ravel(), constraint_indices.ravel(), np.arange(k + 1) * d)
    equality_matrix = csc_array(equality_parts, shape=(d * d, k))
    user_sum_matrix = csc_array((np.ones(k), (used_user_indices, np.arange(k))), shape=(used_users.size, k))
    constraints = block_array(
        [
            [equality_matrix, csc_array((d * d, 1))],
            [user_sum_matrix, csc_array(np.full((used_users.size, 1), -1.0))],
            [diags_array(np.full(k, -1.0)), csc_array((k, 1))],
        ],
        format="csc",
    )
    constraint_bounds = np.concatenate(
        (whitened.constraint_target.T.ravel() / expected_largest_weight, np.zeros(used_users.size + k))
    )
    quadratic_matrix = diags_array(np.append(np.full(k, 2.0 * trade_off), 2.0)).tocsc()
    solver_settings = clarabel.DefaultSettings()
    solver_settings.verbose = False
    solver_settings.tol_gap_rel = solver_settings.tol_gap_abs = solver_settings.tol_feas = SOLVER_TOLERANCE
    clarabel_cones = [clarabel.ZeroConeT(d * d), clarabel.NonnegativeConeT(used_users.size + k)]
    linear_costs = np.zeros(k + 1)
    solver = clarabel.DefaultSolver(
        quadratic_matrix, linear_costs, constraints, constraint_bounds, clarabel_cones, solver_settings
    )
    if should_stop is not never:
        solver.set_termination_callback(lambda _: should_stop())
    clarabel_solution = solver.solve()
    v, z = np.array(clarabel_solution.x), np.array(clarabel_solution.z)
    status_text = str(clarabel_solution.status)
    if "Infeasible" in status_text or not (np.all(np.isfinite(v)) and np.all(np.isfinite(z))):
        return status_text
    w, user_multipliers = np.zeros((n, d)), np.zeros(whitened.starts.size)
    # What interior points leave at the border counts as 0: C stays sparse, and the repair makes up for it.
    abs_entry_weights = np.where(v[:k] > 1e-9 * max(float(v[k]), 0.0), v[:k], 0.0)
    np.add.at(w, (row_indices, column_indices), entry_signs * abs_entry_weights * expected_largest_weight)
    # The objective was counted in scale^2 and the constraints in scale, so multipliers in their ratio. Clarabel's z has
    # P x + A^T z = 0: for the equalities that is -M.
    user_multipliers[used_users] = z[d * d : d * d + used_users.size] * expected_largest_weight
    return RestrictedSolution(w, -z[: d * d].reshape(d, d).T * expected_largest_weight, user_multipliers)


SMOOTHING_FACTORS = (1.0, 1e-1, 1e-2, 1e-3)
"""Trade-offs A, times the number of users, that smooth the dual where the true one is smaller."""

MAX_BRIEF_TRADE_OFF, NUM_BRIEF_STEPS = 0.1, 10
"""Trade-off times the number of users below which Clarabel takes over after so many Newton steps."""
MAX_WORKING_ENTRIES = 500_000
"""Most entries for Clarabel: a minute and about 2 GB."""
MAX_FIRST_GAP = 0.1
"""Relative gap at which an answer is shown while the search goes on: its standard error is at most 5 % above the
least."""
MAX_ENTERING_PER_USER = 32
"""Most entries of one user that enter the working set at a time: a heavy user has many alike."""


MAX_ROUNDS, MAX_NEWTON_STEPS = 50, 60
"""Most restricted problems, and most Newton steps on the true dual."""


@dataclass(eq=False)
class _Search:
    """The best feasible W and the best multipliers so far; all values divided by `unit_noise`."""

    problem: RegressionProblem
    tolerance: float
    progress: Progress
    should_stop: ShouldStop
    on_first: Callable[[LinearEstimate], None] | None

    def __post_init__(self) -> None:
        self.whitened, self.trade_off = self.problem.whitened, self.problem.trade_off
        self.start_time = time.perf_counter()
        self.search_steps: list[SearchStep] = []
        self.best_w = self.whitened.repair(self.whitened.solve_least_squares())
        self.best_objective = self.whitened.evaluate_objective(self.best_w, self.trade_off)
        self.best_lower_bound = 0.0  # A variance is never below 0.
        # M = E prices entries as ordinary least squares weighs them: exact where privacy noise does not count.
        self.best_dual = self.whitened.constraint_target
        self.try_dual(self.best_dual)

    @property
    def relative_gap(self) -> float:
        """Return (best objective − best lower bound) / best objective."""
        return (self.best_objective - self.best_lower_bound) / self.best_objective

    @property
    def is_proved(self) -> bool:
        """Return True if the relative gap is within the tolerance."""
        return self.relative_gap <= self.tolerance

    def try_primal(self, w: FloatArray) -> None:
        """Make a candidate W feasible and keep it if its objective is the least so far."""
        # Repaired before it is valued: a W that misses A^T W = E has a value that no feasible one need reach.
        w = self.whitened.repair(w)
        objective = self.whitened.evaluate_objective(w, self.trade_off)
        if objective < self.best_objective:
            self.best_w, self.best_objective = w, objective

    def try_dual(self, m: FloatArray, priced_entries: PricedEntries | None = None) -> PricedEntries:
        """Keep M as the best dual point if its lower bound is the highest so far.

        Returns the prices of M, which are computed if they are not given.
        """
        if priced_entries is None:
            priced_entries = price_entries(self.whitened, self.trade_off, m)
        if priced_entries.lower_bound > self.best_lower_bound:
            self.best_dual, self.best_lower_bound = m, priced_entries.lower_bound
        return priced_entries

    def record(self, num_entries: int) -> None:
        """Add a search step with the best variance and bound so far, and report progress.

        Once, when the gap is first within `MAX_FIRST_GAP` but not yet closed, also give the estimate so far to
        ``on_first``.
        """
        unit_noise, seconds = self.problem.unit_noise, time.perf_counter() - self.start_time
        variance, lower_bound = unit_noise * self.best_objective, unit_noise * self.best_lower_bound
        self.search_steps.append(SearchStep(seconds, variance, lower_bound, num_entries))
        self.progress(measure_progress(self.relative_gap, self.tolerance))
        if self.on_first is not None and self.relative_gap <= MAX_FIRST_GAP and not self.is_proved:
            on_first, self.on_first = self.on_first, None
            on_first(self.build_estimate("The search goes on: the best so far."))

    def build_estimate(self, stop_reason: str) -> LinearEstimate:
        """Evaluate the best C so far, with the lower bound of the best multipliers."""
        c = self.whitened.restore_order(self.best_w)
        return evaluate(self.problem, c, self.best_dual, stop_reason, self.search_steps)


def solve(
    problem: RegressionProblem,
    tolerance: float = 1e-8,
    *,
    progress: Progress = silent,
    should_stop: ShouldStop = never,
    on_first: Callable[[LinearEstimate], None] | None = None,
) -> LinearEstimate:
    """Find the linear unbiased estimator of least total variance under epsilon-DP, with a certificate.

    Args:
        problem: The question.
        tolerance: Relative gap at which the search ends.
        progress: Told the share of the way to the tolerance, on a logarithmic scale, from 0 to 1.
        should_stop: Asked often; once it returns True the best C so far is returned.
        on_first: Told the first C that is proved within `MAX_FIRST_GAP` of the best, a whole answer, whose steps
            go on to grow; not told if the search ends at once.

    Returns:
        `LinearEstimate`; `stop_reason` says whether the gap closed, and the certificate how far.

    Source: Epasto et al. 2020, theorem 6, for the objective.
    """
    working_search = _Search(problem, tolerance, progress, should_stop, on_first)
    working_search.record(working_search.best_w.size)
    entry_codes = _ascend_smoothed_duals(working_search)
    if working_search.is_proved:
        stop_reason = "The gap closed on the dual alone."
    elif working_search.should_stop():
        stop_reason = "Stopped: the best so far."
    else:
        stop_reason = _grow_working_set(working_search, entry_codes)
    return working_search.build_estimate(stop_reason)


def _ascend_smoothed_duals(search: _Search) -> IntArray:
    """Ascend the dual of ever less smoothed problems, and keep what improves on the search's best.

    Return the codes of the signed entries that the last three points use; none if the search ended at once.
    """
    whitened, a = search.whitened, search.trade_off
    m = search.best_dual
    code_arrays: list[IntArray] = []
    for smoothed_trade_off in _list_smoothings(a, whitened.starts.size):
        is_exact = smoothed_trade_off == a
        # Where privacy noise rules, Newton on the true dual only refines what the smoothed ones found.
        is_brief = not is_exact or a * whitened.starts.size < MAX_BRIEF_TRADE_OFF
        num_steps = NUM_BRIEF_STEPS if is_brief else MAX_NEWTON_STEPS

        def may_end(dual_point: dual.DualPoint, is_true_dual: bool = is_exact) -> bool:
            """Return True if the ascent may end at this point.

            On the true dual, first keep the point and its W if they are the best, and record a step.
            """
            if not is_true_dual:
                # A smoothed dual only says where to go on from: few digits of its optimum do.
                return dual_point.relative_gradient_size < 1e-4 or search.should_stop()
            search.try_dual(dual_point.m, dual_point.priced_entries)
            # Farther from A^T W = E the repair changes the candidate too much for it to be the best.
            if dual_point.relative_gradient_size < 1e-2:
                search.try_primal(dual_point.priced_entries.build_weights(a))
            search.record(dual_point.priced_entries.used_positions.size)
            return search.is_proved or search.should_stop()

        last_dual_point = dual.ascend_dual(whitened, smoothed_trade_off, m, num_steps, may_end)
        if not is_exact:
            search.try_dual(last_dual_point.m)
            search.try_primal(last_dual_point.priced_entries.build_weights(smoothed_trade_off))
            search.record(last_dual_point.priced_entries.used_positions.size)
        if search.is_proved or search.should_stop():
            break
        used_positions = last_dual_point.priced_entries.used_positions
        used_prices = last_dual_point.priced_entries.prices.ravel()[used_positions]
        code_arrays.append(_encode_entries(used_positions, used_prices))
        m = last_dual_point.m
    # Points smoothed more use more entries, most of them for nothing; a few of them save rounds later.
    return np.unique(np.concatenate((*code_arrays[-3:], np.empty(0, dtype=np.int64))))


def _list_smoothings(trade_off: float, num_users: int) -> list[float]:
    """List the trade-offs at which the problem is solved one after another, descending, each started at the last.

    The last is the true trade-off, unless it is so small that Newton steps fail on it.
    """
    larger_trade_offs = [a / num_users for a in SMOOTHING_FACTORS if a / num_users > trade_off]
    if not larger_trade_offs or trade_off > larger_trade_offs[-1] / 10.0:
        larger_trade_offs.append(trade_off)
    return larger_trade_offs


def _find_feasible_basis(search: _Search) -> IntArray:
    """Find d independent rows and the W on them with A^T W = E; return the codes of its signed entries."""
    from scipy.linalg import qr

    _, pivots = qr(search.whitened.row_matrix.T, mode="r", pivoting=True)
    d = search.whitened.row_matrix.shape[1]
    basis_rows = np.sort(pivots[:d])
    w = np.linalg.solve(search.whitened.row_matrix[basis_rows].T, search.whitened.constraint_target)
    # With the signs of a solution, as the restricted problem holds every entry to its sign.
    return _encode_entries((basis_rows[:, None] * d + np.arange(d)).ravel(), np.asarray(w).ravel())


def _grow_working_set(search: _Search, entry_codes: IntArray) -> str:
    """Solve on a working set of entries and add those that could lower the objective, until the gap closes.

    The search keeps the best W and multipliers. Return the reason why it ended, as a sentence.
    """
    whitened, a = search.whitened, search.trade_off
    # Without d independent rows the restricted problem could have no feasible point at all.
    entry_codes = np.union1d(entry_codes, _find_feasible_basis(search))
    for _ in range(MAX_ROUNDS):
        if entry_codes.size > MAX_WORKING_ENTRIES:
            return f"The working set outgrew {MAX_WORKING_ENTRIES:,} entries: the best so far."
        expected_largest_weight = whitened.find_largest_user_weight(search.best_w)
        entry_signs = np.where(entry_codes % 2 == 1, 1.0, -1.0)
        solution = solve_restricted(
            whitened, a, entry_codes // 2, entry_signs, expected_largest_weight, search.should_stop
        )
        if isinstance(solution, RestrictedSolution):
            search.try_primal(solution.sparse_weights)
            priced_entries = search.try_dual(solution.constraint_multipliers)
            prices = priced_entries.prices.ravel()
        search.record(entry_codes.size)
        if search.is_proved:
            return "The gap closed."
        if search.should_stop():
            return "Stopped: the best so far."
        if isinstance(solution, str):
            return f"The restricted problem could not be solved ({solution}): the best so far."
        # Two opinions on what pays: the multipliers that Clarabel found, and the best ones for its M. They agree at
        # the optimum only; before it, either may pass over entries that pay.
        entering_positions = _find_entering(search, prices, solution.user_multipliers)
        entering_positions = np.union1d(entering_positions, priced_entries.used_positions)
        # Entries are never dropped, so the working set cannot go round in circles.
        next_codes = np.union1d(entry_codes, _encode_entries(entering_positions, prices[entering_positions]))
        if next_codes.size == entry_codes.size:
            return "No entry is left to let in: what remains of the gap is rounding."
        entry_codes = next_codes
    return "The limit of rounds was reached: the best so far."


def _find_entering(search: _Search, prices: FloatArray, user_multipliers: FloatArray) -> IntArray:
    """Return the positions of entries priced above their user's multiplier, at most `MAX_ENTERING_PER_USER` of each."""
    whitened = search.whitened
    d = whitened.row_matrix.shape[1]
    absolute_prices = np.abs(prices)
    paying_positions = np.flatnonzero(absolute_prices > np.repeat(user_multipliers, whitened.sizes * d))
    ranks_in_user = rank_within_users(
        whitened.row_users[paying_positions // d], -absolute_prices[paying_positions]
    )
    return paying_positions[ranks_in_user < MAX_ENTERING_PER_USER]


def _encode_entries(entry_positions: IntArray, entry_signs: FloatArray) -> IntArray:
    """Return ascending distinct codes of signed entries: twice the position, plus 1 if the sign is above 0."""
    return np.unique(2 * entry_positions + (entry_signs > 0.0))


MAX_CVXPY_ENTRIES = 60_000
"""Most entries of C for a general solver: 30,000 took Clarabel 4 s."""


def solve_with_cvxpy(
    problem: RegressionProblem, solver: str = "CLARABEL", **solver_options: object
) -> LinearEstimate:
    """Find the linear unbiased estimator of least total variance by a general solver.

    Args:
        problem: The question.
        solver: Any solver of CVXPY for second-order cones or quadratic programs; the paper used ``SCS``.
        **solver_options: Handed to it.

    Returns:
        The solver's C made feasible by C + (I - C X)(X^T X)^-1 X^T, and a bound from its own multipliers.
        Where it gives no answer, ordinary least squares stands in and ``stop_reason`` says so.

    Source: Epasto et al. 2020, theorem 6 and appendix E.1.2.
    """
    from scipy.sparse import csr_array

    cp = import_extra("cvxpy")  # Heavy, and only partly typed.
    n, d = problem.features.shape
    whitened = problem.whitened
    original_users = np.empty(n, dtype=np.int64)
    original_users[whitened.row_order] = whitened.row_users
    ownership_matrix = csr_array((np.ones(n), (np.arange(n), original_users)), shape=(n, problem.num_users))
    c = cp.Variable((d, n))
    unbiasedness = c @ problem.features == np.eye(d)
    largest_user_weight = cp.max(cp.sum(cp.abs(c), axis=0) @ ownership_matrix)
    sampling_variance = problem.residual_variance * cp.sum_squares(c)
    privacy_variance = problem.unit_noise * cp.square(largest_user_weight)
    cvxpy_problem = cp.Problem(cp.Minimize(sampling_variance + privacy_variance), [unbiasedness])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "Solution may be inaccurate": the certificate says how much.
        try:
            cvxpy_problem.solve(solver=solver, **solver_options)
        except cp.SolverError as error:
            stop_reason = f"{solver} failed ({error}); ordinary least squares stands in."
        else:
            stop_reason = f"{solver} ended with “{cvxpy_problem.status}”."
    unrepaired_matrix = np.zeros((d, n)) if c.value is None else np.asarray(c.value)
    constraint_multipliers = (
        np.zeros((d, d)) if unbiasedness.dual_value is None else np.asarray(unbiasedness.dual_value)
    )
    w = whitened.repair(whitened.sort_rows(unrepaired_matrix))
    # CVXPY adds <Y, C X - I> to the loss where we subtract <M, X^T C^T - I>; X = A R takes M to R M.
    m = -whitened.triangular_factor @ constraint_multipliers.T
    return evaluate(problem, whitened.restore_order(w), m, stop_reason)


def compare_solvers(problem: RegressionProblem, should_stop: ShouldStop = never) -> tuple[Solved, ...]:
    """Solve with our search and with CVXPY and Clarabel, both timed; ours alone if it is stopped before."""
    import_extra("cvxpy")  # Before its clock starts.
    _ = problem.whitened

    def get_proof(estimate: LinearEstimate) -> tuple[Certificate, str]:
        """Return the certificate of an estimate and how its search ended."""
        return estimate.certificate, estimate.stop_reason

    own_solved = solve_timed("Sweet Spot", lambda: get_proof(solve(problem, should_stop=should_stop)))
    if should_stop():
        return (own_solved,)
    return own_solved, solve_timed(
        "CVXPY with Clarabel", lambda: get_proof(solve_with_cvxpy(problem, time_limit=60.0))
    )
