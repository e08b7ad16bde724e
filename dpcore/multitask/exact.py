"""Exact optima where the graph may be treated as public: one weight per task, or per user and task.

**One weight per task.** This is problem (9) itself, solved and proved, for a graph that may be treated as public.
With p_i = omega_i^2 and c_i = n_i^(-gamma):  minimise sum_i c_i / p_i  subject to  A p <= beta, A the
user-task matrix. For shares lambda on the simplex of users let q = A^T lambda and S = sum_i sqrt(c_i q_i).
Minimising the Lagrangian over p, and then choosing the multipliers' sum, leaves the lower bound S^2 / beta.
The same shares give weights: r_i = sqrt(c_i / q_i), p = beta r / max_j (A r)_j, of value
S max_j (A r)_j / beta. Since sum_j lambda_j (A r)_j = S, max_j (A r)_j / S - 1 >= 0 is the relative gap, and
it comes for free at every step.

Ascent: by Cauchy and Schwarz, sqrt(sum_j b_j) >= sum_j sqrt(a_j b_j) / sqrt(sum_j a_j), so that S(new) is at
least sum_j sqrt(lambda_j new_j) (A r)_j, with equality at the old shares. Maximising that over the simplex
gives  new_j ~ lambda_j (A r)_j^2: a multiplicative step that never lowers S. Larger powers than 2 go faster
and are kept as long as S rises; where it falls, the proven step is taken instead.

Few users bind, so the ascent works on a small set of heavy users; users outside whose load exceeds S are
then added, and users whose share died out dropped.

**A weight for every user and task.** This goes beyond the paper; the graph may again be treated as public:

minimise  sum_i e_i / W_i^2,  e_i = n_i^(2 - gamma),  W_i = sum_j w_ij,  subject to  sum_i w_ij^2 <= beta
for every user. With w_ij = omega_i for all j this is problem (9). It is convex.

For any prices pi > 0 a user can contribute at most sqrt(beta) |pi on their tasks| to sum_i pi_i W_i, and does
so with w_ij = sqrt(beta) pi_i / |pi on their tasks|. Minimising sum e_i / W_i^2 under that one constraint
leaves the lower bound  (sum_i e_i^(1/3) pi_i^(2/3))^3 / (beta (sum_j |pi on Omega^j|)^2).  Both meet where
pi_i = e_i / W_i^3.

With D_i = sqrt(beta) sum over the task's users of 1 / |pi on Omega^j|, the weights give W_i = pi_i D_i, and
the condition reads pi_i = e_i^(1/4) D_i^(-3/4). The right-hand side grows with pi and is homogeneous of
degree 3/4 in it, hence a contraction by 3/4 in Thompson's metric, max_i |log pi_i - log pi'_i|: iterating it
converges from anywhere, linearly, at two passes over the pairs a step; the gap shrinks with its square.

It assumes that a task's users are interchangeable. Users with few tasks have more to give to each, so the task's loss
skews toward them; see `dpcore.multitask.weights`.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpcore.common.certificate import Certificate, Solved, solve_timed
from dpcore.common.extras import import_extra
from dpcore.common.progress import Progress, ShouldStop, measure_progress, never, silent
from dpcore.common.wording import format_count
from dpcore.contributions import FloatArray, IntArray
from dpcore.multitask.problem import Allocation, TaskGraph, TaskProblem, UserRule
from dpcore.multitask.weights import ROUNDING_MARGIN, BudgetFit, WeightRule, scale_to_budget

MAX_STEPS = 20_000


@dataclass
class StepCounter:
    """A counter of steps that reports progress on a logarithmic scale of the gap, and asks whether to stop.

    Attributes:
        tolerance: Relative gap between value and lower bound at which the search ends.
        progress: Called with a share in [0, 1] that never falls.
        should_stop: Asked once per step.
        num_steps: How many were taken.
        is_stopped: True if a person stopped the search.
    """

    tolerance: float
    progress: Progress
    should_stop: ShouldStop
    num_steps: int = 0
    is_stopped: bool = False
    _reported_share: float = 0.0

    def take_step(self, gap: float) -> bool:
        """Count one step; return False at the step limit or if a person stopped the search."""
        self.is_stopped = self.is_stopped or self.should_stop()
        if self.is_stopped or self.num_steps >= MAX_STEPS:
            return False
        self.num_steps += 1
        self._reported_share = max(self._reported_share, measure_progress(gap, self.tolerance))
        self.progress(self._reported_share)
        return True

    def certify(self, allocation: Allocation, lower_bound: float, certificate_argument: str) -> Allocation:
        """Return a copy of the allocation with certificate and stop reason, marked as one that reads the graph."""
        certificate = Certificate(allocation.total_bound, lower_bound, certificate_argument)
        steps_text = format_count(self.num_steps, "step")
        if certificate.relative_gap <= self.tolerance:
            stop_reason = f"Reached the required gap after {steps_text}."
        elif self.is_stopped:
            stop_reason = f"Stopped after {steps_text}; the weights are valid."
        elif self.num_steps >= MAX_STEPS:
            stop_reason = f"Ended at the limit of {steps_text}, before the required gap."
        else:
            stop_reason = f"Ended after {steps_text}: no further progress in float64."
        return replace(allocation, reads_graph=True, certificate=certificate, stop_reason=stop_reason)


FIRST_STEP_POWER = 2.0
MAX_STEP_POWER = 60.0
STEP_POWER_GROWTH = 1.15
NUM_FIRST_USERS = 1000
"""Users in the first working set; in the end about 100 to 2,000 of 70,000 users bind."""
MAX_DROPPED_SHARE_RATIO = 0.01
"""A user leaves the working set below this share of an even one, times the round's tolerance."""
TOLERANCE_FACTOR_PER_ROUND = 0.1
"""The gap shrinks by it in each round on the working set."""
MAX_IDLE_ROUNDS = 5
"""Rounds at the smallest aim without a smaller gap: then float64 has no more to give."""


class _DualPoint(NamedTuple):
    """A point of the dual: users' shares, its objective S, the tasks' squared weights r, and users' loads A r."""

    user_shares: FloatArray
    objective: float
    squared_weights: FloatArray
    user_loads: FloatArray

    @property
    def gap(self) -> float:
        """Return by how much the largest load exceeds the objective S, over S: the relative gap; 0 at the optimum."""
        return float(self.user_loads.max()) / self.objective - 1.0


def _evaluate_dual(graph: TaskGraph, bound_factors: FloatArray, user_shares: FloatArray) -> _DualPoint | None:
    """Compute the dual objective, tasks' squared weights and users' loads at shares; None if a task has no share."""
    task_shares = graph.sum_by_task(user_shares)
    if not np.all(task_shares > 0.0):
        return None
    dual_terms = np.sqrt(bound_factors * task_shares)
    squared_weights = dual_terms / task_shares
    user_loads = graph.sum_by_user(squared_weights)
    return _DualPoint(user_shares, float(dual_terms.sum()), squared_weights, user_loads)


def _ascend_dual(
    graph: TaskGraph,
    bound_factors: FloatArray,
    first_shares: FloatArray,
    tolerance: float,
    step_counter: StepCounter,
) -> _DualPoint:
    """Raise S over the simplex of this graph's users until the gap is within ``tolerance``.

    Ends earlier at the watch's step limit, on a stop, or where float64 allows no more progress; returns the best
    point.
    """
    best_point = _evaluate_dual(graph, bound_factors, first_shares)
    assert best_point is not None
    step_power = FIRST_STEP_POWER
    while best_point.gap > tolerance and step_counter.take_step(best_point.gap):
        load_ratios = best_point.user_loads / best_point.objective
        raised_shares = best_point.user_shares * np.exp(step_power * np.log(load_ratios))
        trial_point = _evaluate_dual(graph, bound_factors, raised_shares / raised_shares.sum())
        # Near the top S moves by less than its rounding: a strict comparison would end the ascent too early.
        if trial_point is not None and trial_point.objective >= best_point.objective * (1.0 - 1e-14):
            best_point, step_power = trial_point, min(step_power * STEP_POWER_GROWTH, MAX_STEP_POWER)
        elif step_power > FIRST_STEP_POWER:
            step_power = FIRST_STEP_POWER
        else:
            break  # The proven step no longer rises: float64 has no more to give.
    return best_point


def _find_heaviest_users(
    graph: TaskGraph, user_loads: FloatArray, selected_task_mask: npt.NDArray[np.bool_]
) -> IntArray:
    """Return the user with the largest load of each task in the mask: distinct user codes, ascending."""
    pair_indices = np.flatnonzero(selected_task_mask[graph.task_codes])
    pair_tasks, pair_users = graph.task_codes[pair_indices], graph.user_codes[pair_indices]
    pair_order = np.lexsort((user_loads[pair_users], pair_tasks))
    heaviest_mask = np.append(np.diff(pair_tasks[pair_order]) > 0, True)[: pair_order.size]
    return np.unique(pair_users[pair_order][heaviest_mask]).astype(np.int64)


def _choose_first_set(graph: TaskGraph, user_loads: FloatArray) -> IntArray:
    """Return the user codes of the first working set, distinct.

    Few users are all in it if they have a task. Of many, it has the heaviest ones, and the heaviest user of each task
    that these leave without a user.
    """
    if graph.num_users <= NUM_FIRST_USERS:
        return np.flatnonzero(graph.tasks_per_user)
    heaviest_users = np.argpartition(-user_loads, NUM_FIRST_USERS)[:NUM_FIRST_USERS]
    heaviest_users = heaviest_users[user_loads[heaviest_users] > 0.0]  # A user without a task binds nothing.
    missed_mask = np.bincount(graph.select_users(heaviest_users).task_codes, minlength=graph.num_tasks) == 0
    return np.union1d(heaviest_users, _find_heaviest_users(graph, user_loads, missed_mask))


def _choose_next_set(
    user_codes: IntArray,
    subgraph: TaskGraph,
    dual_point: _DualPoint,
    user_loads: FloatArray,
    tolerance: float,
) -> tuple[IntArray, FloatArray]:
    """Return the next working set: user codes, and their dual shares, which sum to 1.

    Users whose share died out are dropped, and up to `NUM_FIRST_USERS` users whose load exceeds S are added, the most
    overloaded first.
    """
    kept_mask = dual_point.user_shares > MAX_DROPPED_SHARE_RATIO * tolerance / user_codes.size
    # A task whose last users would go keeps all that it has.
    loses_all_users = subgraph.sum_by_task(kept_mask.astype(np.float64)) == 0.0
    kept_mask |= subgraph.sum_by_user(loses_all_users.astype(np.float64)) > 0.0
    user_loads = user_loads.copy()
    user_loads[user_codes] = 0.0
    overloaded_users = np.flatnonzero(user_loads > dual_point.objective * (1.0 + tolerance / 4.0))
    overloaded_users = overloaded_users[np.argsort(-user_loads[overloaded_users])[:NUM_FIRST_USERS]]
    kept_shares = dual_point.user_shares[kept_mask]
    # Not 0, from which a multiplicative step never gets away; a tenth of the average hardly disturbs the others.
    next_shares = np.concatenate((kept_shares, np.full(overloaded_users.size, 0.1 * kept_shares.mean())))
    return np.concatenate((user_codes[kept_mask], overloaded_users)), next_shares / next_shares.sum()


def find_best_task_weights(
    problem: TaskProblem,
    tolerance: float = 1e-6,
    progress: Progress = silent,
    should_stop: ShouldStop = never,
) -> Allocation:
    """Find the best weights with one number per task, for this very graph. Reads the private graph.

    Args:
        problem: The problem.
        tolerance: Relative gap between value and lower bound at which the search ends.
        progress: Called with a share in [0, 1].
        should_stop: Asked once per step; where it says yes, what has been reached is returned.

    Returns:
        `Allocation` with nobody clipped and its certificate.

    Source: Krichene et al. 2023, equation 9. The paper does not solve it, since the graph is private.
    """
    graph = problem.graph
    step_counter = StepCounter(tolerance, progress, should_stop)
    bound_factors = problem.unclipped_bound_factors
    # Equation 11 is the first guess of who is heavy.
    user_codes = _choose_first_set(
        graph, graph.sum_by_user(np.sqrt(bound_factors / problem.graph.task_sizes))
    )
    user_shares = np.full(user_codes.size, 1.0 / user_codes.size)
    final_tolerance = tolerance / 2.0
    round_tolerance = max(0.1, final_tolerance)
    smallest_gap, num_idle_rounds = np.inf, 0
    while True:
        subgraph = graph.select_users(user_codes)
        dual_point = _ascend_dual(subgraph, bound_factors, user_shares, round_tolerance, step_counter)
        user_loads = graph.sum_by_user(dual_point.squared_weights)
        relative_gap = float(user_loads.max()) / dual_point.objective - 1.0
        is_idle = round_tolerance <= final_tolerance and relative_gap > 0.99 * smallest_gap
        num_idle_rounds, smallest_gap = num_idle_rounds + 1 if is_idle else 0, min(relative_gap, smallest_gap)
        if (
            relative_gap <= tolerance
            or num_idle_rounds > MAX_IDLE_ROUNDS
            or not step_counter.take_step(relative_gap)
        ):
            break
        user_codes, user_shares = _choose_next_set(
            user_codes, subgraph, dual_point, user_loads, round_tolerance
        )
        round_tolerance = max(
            min(round_tolerance, dual_point.gap) * TOLERANCE_FACTOR_PER_ROUND, final_tolerance
        )
    # Scaled to the heaviest user of the whole graph, and by a rounding less: nobody is above the budget.
    squared_weights = problem.budget * dual_point.squared_weights / user_loads.max() * (1.0 - ROUNDING_MARGIN)
    # Both sides of the certificate are computed from the full graph and nothing else.
    user_multipliers = np.zeros(graph.num_users)
    user_multipliers[user_codes] = dual_point.user_shares
    optimum_name, user_scales = "exact optimum, one weight per task", np.ones(graph.num_users)
    allocation = Allocation(
        optimum_name, problem, np.sqrt(squared_weights), user_scales, clipped_user_share=0.0
    )
    lower_bound = compute_lower_bound(problem, user_multipliers)
    return step_counter.certify(allocation, lower_bound, "a dual bound computed from the same graph")


def compute_lower_bound(problem: TaskProblem, user_multipliers: FloatArray) -> float:
    """Compute S^2 / beta, a lower bound on the total bound of any weights with one number per task.

    Args:
        problem: The problem.
        user_multipliers: lambda >= 0, not all 0, shape (num_users,); scaled to sum to 1 here.
    """
    task_shares = problem.graph.sum_by_task(user_multipliers) / user_multipliers.sum()
    return float(np.sqrt(problem.unclipped_bound_factors * task_shares).sum() ** 2 / problem.budget)


def _iterate_prices(problem: TaskProblem, task_prices: FloatArray) -> tuple[FloatArray, float]:
    """Take one fixed-point step from the prices of the tasks to the next ones.

    Returns the next prices, and the relative gap between both bounds at the given ones.
    """
    graph = problem.graph
    price_norms = np.sqrt(graph.sum_by_user(task_prices**2))
    # A user without a task has length 0 and gives nothing.
    inverse_norms = np.divide(1.0, price_norms, out=np.zeros_like(price_norms), where=price_norms > 0.0)
    totals_per_price = math.sqrt(problem.budget) * graph.sum_by_task(inverse_norms)
    # The weights that these prices call for have W_i = pi_i D_i.
    total_bound = float(np.sum(problem.noise_bound_factors / (task_prices * totals_per_price) ** 2))
    lower_bound = _bound_total_below(problem, task_prices, float(price_norms.sum()))
    next_prices = problem.noise_bound_factors**0.25 * totals_per_price**-0.75
    return next_prices, (total_bound - lower_bound) / total_bound


def _bound_total_below(problem: TaskProblem, task_prices: FloatArray, summed_price_norms: float) -> float:
    """Compute a lower bound on the total error bound of any weights, from the prices of the tasks.

    ``summed_price_norms`` is the sum of the users' norms of their tasks' prices.
    """
    price_sum = float(np.sum(np.cbrt(problem.noise_bound_factors * task_prices**2)))
    return price_sum**3 / (problem.budget * summed_price_norms**2)


def compute_free_lower_bound(problem: TaskProblem, task_prices: FloatArray) -> float:
    """Compute a lower bound on the total bound of any weights w_ij within the budgets.

    Args:
        problem: The problem.
        task_prices: pi > 0, shape (num_tasks,), any scale.
    """
    price_norms = np.sqrt(problem.graph.sum_by_user(task_prices**2))
    return _bound_total_below(problem, task_prices, float(price_norms.sum()))


def find_best_user_task_weights(
    problem: TaskProblem,
    tolerance: float = 1e-6,
    progress: Progress = silent,
    should_stop: ShouldStop = never,
) -> Allocation:
    """Find the best weights of all, free for every user and task. Reads the private graph.

    Args:
        problem: The problem.
        tolerance: Relative gap between value and lower bound at which the search ends.
        progress: Called with a share in [0, 1].
        should_stop: Asked once per step; where it says yes, what has been reached is returned.

    Returns:
        `Allocation` in which every user with a task spends the whole budget, with its certificate.

    Source: generalises Krichene et al. 2023, equation 9, to the weights of equation 3.
    """
    graph = problem.graph
    step_counter = StepCounter(tolerance, progress, should_stop)
    task_prices = problem.graph.task_sizes.astype(np.float64) ** -problem.loss.best_exponent
    next_prices, relative_gap = _iterate_prices(problem, task_prices)
    while relative_gap > tolerance and step_counter.take_step(relative_gap):
        task_prices = next_prices
        next_prices, relative_gap = _iterate_prices(problem, task_prices)
    user_scales = scale_to_budget(graph, task_prices, problem.budget)
    optimum_name = "exact optimum, one weight per user and task"
    allocation = Allocation(optimum_name, problem, task_prices, user_scales, rule=UserRule.FULL)
    lower_bound = compute_free_lower_bound(problem, task_prices)
    return step_counter.certify(allocation, lower_bound, "a dual bound computed from the same graph")


MAX_PAIRS = 50_000
"""Pairs of a user and a task: as many took Clarabel 2 to 4 seconds."""


def run_cvxpy(problem: TaskProblem, solver: str = "CLARABEL", **options: object) -> tuple[Certificate, str]:
    """Minimise the total bound over weights that are one number per task; return certificate and stop reason.

    Args:
        problem: The problem.
        solver: Any solver of CVXPY for second-order cones.
        **options: Handed to it.

    Returns:
        The bound of the solver's weights, scaled so that no user is above the budget, beside what its multipliers
        prove; and how it ended, a sentence. Where it gives no answer, the weights of equation 11 stand in.

    Source: Krichene et al. 2023, problem (9).
    """
    cp = import_extra("cvxpy")  # Heavy, and only partly typed.
    graph = problem.graph
    bound_factors = problem.unclipped_bound_factors
    # In units of equation 11, unclipped: entries near 1, where solvers are at their best.
    weight_rule = WeightRule(problem.loss.best_exponent, BudgetFit.NOBODY_CLIPPED)
    reference_squares = weight_rule.allocate(problem).task_weights ** 2 / problem.budget
    p = cp.Variable(problem.graph.num_tasks)
    budget_constraint = graph.matrix.multiply(reference_squares).tocsr() @ p <= 1.0
    relative_factors = bound_factors / reference_squares / np.sum(bound_factors / reference_squares)
    objective = cp.Minimize(cp.sum(cp.multiply(relative_factors, cp.inv_pos(p))))
    cvxpy_problem = cp.Problem(objective, [budget_constraint])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "Solution may be inaccurate": the certificate says how much.
        try:
            cvxpy_problem.solve(solver=solver, **options)
        except cp.SolverError as error:
            stop_reason = f"{solver} failed ({error}); the weights of equation 11 stand in."
        else:
            stop_reason = f"{solver} ended with “{cvxpy_problem.status}”."
    relative_squares = np.ones(problem.graph.num_tasks) if p.value is None else np.asarray(p.value)
    squared_weights = reference_squares * np.maximum(relative_squares, 1e-9)
    # Scaled to the budget: a solver's violation of it must not pass for a lower value.
    squared_weights *= problem.budget / graph.sum_by_user(squared_weights).max()
    user_multipliers, lower_bound = np.zeros(graph.num_users), -math.inf
    if budget_constraint.dual_value is not None:
        user_multipliers = np.maximum(np.asarray(budget_constraint.dual_value), 0.0)
    if np.any(user_multipliers > 0.0):
        lower_bound = compute_lower_bound(problem, user_multipliers)
    total_bound = float(np.sum(bound_factors / squared_weights))
    return Certificate(total_bound, lower_bound, f"the multipliers of {solver}"), stop_reason


def compare_with_cvxpy(problem: TaskProblem, should_stop: ShouldStop = never) -> tuple[Solved, ...]:
    """Solve with our search, then by CVXPY with Clarabel; return a `Solved` of each, or of ours alone after a stop."""
    import_extra("cvxpy")  # Before its clock starts.
    problem.graph.sum_by_user(np.zeros(problem.graph.num_tasks))  # The index too.

    def solve_ours() -> tuple[Certificate, str]:
        """Return the certificate and the stop reason of our own search."""
        allocation = find_best_task_weights(problem, should_stop=should_stop)
        assert allocation.certificate is not None
        return allocation.certificate, allocation.stop_reason

    own_solved = solve_timed("Sweet Spot", solve_ours)
    if should_stop():
        return (own_solved,)
    return own_solved, solve_timed("CVXPY with Clarabel", lambda: run_cvxpy(problem, time_limit=60.0))
