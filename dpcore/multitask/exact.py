"""Problem (9) itself, solved and proved, when the graph may be treated as public (a what-if).

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
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.contributions import FloatArray, IntArray
from dpcore.multitask.graph import TaskGraph
from dpcore.multitask.problem import Allocation, TaskProblem
from dpcore.multitask.search import SearchOptions, Watch
from dpcore.multitask.weights import ROUNDING_MARGIN

PROVEN_POWER = 2.0
LARGEST_POWER = 60.0
POWER_GROWTH = 1.15
FIRST_USERS = 1000
"""Heaviest users in the first working set; on 70,000 users about 100 to 2,000 end up binding."""
DEAD_SHARE = 0.01
"""A user leaves the working set below this share, relative to an even one and times the round's tolerance:
all that go together cannot matter to S by more than a hundredth of it."""
ROUND_FACTOR = 0.1
"""Each round on the working set goes down to this part of the gap before: most steps are on few users."""
MAX_IDLE_ROUNDS = 5
"""Rounds at the smallest aim without a smaller gap after which float64 has no more to give."""
ARGUMENT = "a dual bound computed from the same graph"


class _Point(NamedTuple):
    """The shares of the users, S, r and A r at them."""

    shares: FloatArray
    total: float
    ratios: FloatArray
    loads: FloatArray

    @property
    def gap(self) -> float:
        """Return the relative gap."""
        return float(self.loads.max()) / self.total - 1.0


def _evaluate(graph: TaskGraph, costs: FloatArray, shares: FloatArray) -> _Point | None:
    """Compute S, r and A r at these shares; None if a task has no share left."""
    task_shares = graph.sum_by_task(shares)
    if not np.all(task_shares > 0.0):
        return None
    terms = np.sqrt(costs * task_shares)
    ratios = terms / task_shares
    return _Point(shares, float(terms.sum()), ratios, graph.sum_by_user(ratios))


def _ascend(graph: TaskGraph, costs: FloatArray, start: FloatArray, tolerance: float, watch: Watch) -> _Point:
    """Raise S over the simplex of this graph's users until the gap is within ``tolerance``."""
    best_point = _evaluate(graph, costs, start)
    assert best_point is not None
    power = PROVEN_POWER
    while best_point.gap > tolerance and watch.take_step(best_point.gap):
        raised_shares = best_point.shares * np.exp(power * np.log(best_point.loads / best_point.total))
        trial = _evaluate(graph, costs, raised_shares / raised_shares.sum())
        # Near the top S moves by less than its rounding: a strict comparison would end the ascent too early.
        if trial is not None and trial.total >= best_point.total * (1.0 - 1e-14):
            best_point, power = trial, min(power * POWER_GROWTH, LARGEST_POWER)
        elif power > PROVEN_POWER:
            power = PROVEN_POWER
        else:
            break  # The proven step no longer rises: float64 has no more to give.
    return best_point


def _find_heaviest_users(graph: TaskGraph, loads: FloatArray, task_mask: npt.NDArray[np.bool_]) -> IntArray:
    """Find for every task in the mask its user with the largest load."""
    pair_indices = np.flatnonzero(task_mask[graph.tasks])
    tasks, users = graph.tasks[pair_indices], graph.users[pair_indices]
    order = np.lexsort((loads[users], tasks))
    is_heaviest = np.append(np.diff(tasks[order]) > 0, True) if order.size else np.zeros(0, bool)
    return np.unique(users[order][is_heaviest]).astype(np.int64)


def _choose_first_set(graph: TaskGraph, loads: FloatArray) -> IntArray:
    """Choose the heaviest users, and for every task that they miss, its heaviest user."""
    if graph.num_users <= FIRST_USERS:
        return np.flatnonzero(graph.tasks_per_user)
    heaviest = np.argpartition(-loads, FIRST_USERS)[:FIRST_USERS]
    heaviest = heaviest[loads[heaviest] > 0.0]  # A user without a task binds nothing.
    is_missed = np.bincount(graph.select_users(heaviest).tasks, minlength=graph.num_tasks) == 0
    return np.union1d(heaviest, _find_heaviest_users(graph, loads, is_missed))


def _choose_next_set(
    users: IntArray, subgraph: TaskGraph, point: _Point, loads: FloatArray, tolerance: float
) -> tuple[IntArray, FloatArray]:
    """Drop users whose share died out, and add the most violated ones with a small share."""
    is_kept = point.shares > DEAD_SHARE * tolerance / users.size
    # A task whose last users would go keeps all that it has.
    is_lost = subgraph.sum_by_task(is_kept.astype(np.float64)) == 0.0
    is_kept |= subgraph.sum_by_user(is_lost.astype(np.float64)) > 0.0
    loads = loads.copy()
    loads[users] = 0.0
    violated_users = np.flatnonzero(loads > point.total * (1.0 + tolerance / 4.0))
    if violated_users.size > FIRST_USERS:
        violated_users = violated_users[np.argpartition(-loads[violated_users], FIRST_USERS)[:FIRST_USERS]]
    kept_shares = point.shares[is_kept]
    # Not 0, from which a multiplicative step never gets away; a tenth of the average hardly disturbs the others.
    shares = np.concatenate((kept_shares, np.full(violated_users.size, 0.1 * kept_shares.mean())))
    return np.concatenate((users[is_kept], violated_users)), shares / shares.sum()


def find_best_task_weights(
    problem: TaskProblem,
    options: SearchOptions | None = None,
    progress: Progress = silent,
    should_stop: ShouldStop = never,
) -> Allocation:
    """Find the best weights with one number per task, for this very graph. Reads the private graph.

    Args:
        problem: The question, with a graph.
        options: Tolerance on the relative gap, and the limit of steps.
        progress: Called with a share in [0, 1].
        should_stop: Asked once per step; where it says yes, what has been reached is returned.

    Returns:
        `Allocation` with nobody clipped and its certificate.

    Raises:
        InvalidInput: No graph.

    Source: Krichene et al. 2023, equation 9. The paper does not solve it, since the graph is private.
    """
    graph = problem.require_graph()
    options = options or SearchOptions()
    watch = Watch(options, progress, should_stop)
    sizes = problem.task_sizes.astype(np.float64)
    costs = sizes**-problem.loss.value
    # Equation 11 is the first guess of who is heavy.
    users = _choose_first_set(graph, graph.sum_by_user(np.sqrt(costs / sizes)))
    shares = np.full(users.size, 1.0 / users.size)
    final_tolerance = options.tolerance / 2.0
    round_tolerance = max(0.1, final_tolerance)
    smallest_gap, idle_rounds = np.inf, 0
    while True:
        subgraph = graph.select_users(users)
        point = _ascend(subgraph, costs, shares, round_tolerance, watch)
        loads = graph.sum_by_user(point.ratios)
        gap = float(loads.max()) / point.total - 1.0
        idle_rounds = (
            idle_rounds + 1 if round_tolerance <= final_tolerance and gap > 0.99 * smallest_gap else 0
        )
        smallest_gap = min(gap, smallest_gap)
        if gap <= options.tolerance or idle_rounds > MAX_IDLE_ROUNDS or not watch.take_step(gap):
            break
        users, shares = _choose_next_set(users, subgraph, point, loads, round_tolerance)
        round_tolerance = max(min(round_tolerance, point.gap) * ROUND_FACTOR, final_tolerance)
    # Scaled to the heaviest user of the whole graph, and by a rounding less: nobody is above the budget.
    squared = problem.budget * point.ratios / loads.max() * (1.0 - ROUNDING_MARGIN)
    return _certify(problem, squared, users, point.shares, watch)


def _certify(
    problem: TaskProblem, squared: FloatArray, users: IntArray, shares: FloatArray, watch: Watch
) -> Allocation:
    """Compute both sides of the certificate from the full graph and nothing else."""
    graph = problem.require_graph()
    multipliers = np.zeros(graph.num_users)
    multipliers[users] = shares
    allocation = Allocation(
        "exact optimum, one weight per task",
        problem,
        np.sqrt(squared),
        np.ones(graph.num_users),
        share_clipped=0.0,
    )
    return watch.certify(allocation, compute_lower_bound(problem, multipliers), ARGUMENT)


def compute_lower_bound(problem: TaskProblem, multipliers: FloatArray) -> float:
    """Compute S^2 / beta: no weights with one number per task can go below it.

    Args:
        problem: The question, with a graph.
        multipliers: lambda >= 0, not all 0, shape (num_users,); scaled to sum to 1 here.
    """
    task_shares = problem.require_graph().sum_by_task(multipliers) / multipliers.sum()
    costs = problem.task_sizes.astype(np.float64) ** -problem.loss.value
    return float(np.sqrt(costs * task_shares).sum() ** 2 / problem.budget)
