"""Beyond the paper: a weight for every user and task, optimal on a graph that may be treated as public.

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

What it assumes: that a task's users are interchangeable. Users with few tasks have more to give to each, so
the task's loss skews toward them; see `dpcore.multitask.weight_skew`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.contributions import FloatArray
from dpcore.multitask.problem import Allocation, TaskProblem, UserRule
from dpcore.multitask.search import SearchOptions, Watch
from dpcore.multitask.weights import scale_to_budget

ARGUMENT = "a dual bound from prices per task, computed from the same graph"


class _Step(NamedTuple):
    """The prices after one step, and the value and lower bound before it."""

    next_prices: FloatArray
    value: float
    lower_bound: float

    @property
    def gap(self) -> float:
        """Return the relative gap."""
        return (self.value - self.lower_bound) / self.value


def _take_step(problem: TaskProblem, prices: FloatArray) -> _Step:
    """Iterate the prices once, and evaluate value and lower bound at the old ones."""
    graph = problem.require_graph()
    lengths = np.sqrt(graph.sum_by_user(prices**2))
    # A user without a task has length 0 and gives nothing.
    inverse = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0.0)
    totals_per_price = math.sqrt(problem.budget) * graph.sum_by_task(inverse)
    noise_prices = problem.price_of_noise
    return _Step(
        next_prices=noise_prices**0.25 * totals_per_price**-0.75,
        # The weights that these prices call for have W_i = pi_i D_i.
        value=float(np.sum(noise_prices / (prices * totals_per_price) ** 2)),
        lower_bound=_bound_below(problem, prices, float(lengths.sum())),
    )


def _bound_below(problem: TaskProblem, prices: FloatArray, total_length: float) -> float:
    """Compute the lower bound from prices and the summed lengths of the users' price vectors."""
    combined_prices = float(np.sum(np.cbrt(problem.price_of_noise * prices**2)))
    return combined_prices**3 / (problem.budget * total_length**2)


def compute_lower_bound(problem: TaskProblem, prices: FloatArray) -> float:
    """Compute a number that no weights w_ij within the budgets can go below.

    Args:
        problem: The question, with a graph.
        prices: pi > 0, shape (num_tasks,), any scale.
    """
    lengths = np.sqrt(problem.require_graph().sum_by_user(prices**2))
    return _bound_below(problem, prices, float(lengths.sum()))


def find_best_user_task_weights(
    problem: TaskProblem,
    options: SearchOptions | None = None,
    progress: Progress = silent,
    should_stop: ShouldStop = never,
) -> Allocation:
    """Find the best weights of all, free for every user and task. Reads the private graph.

    Args:
        problem: The question, with a graph.
        options: Tolerance on the relative gap, and the limit of steps.
        progress: Called with a share in [0, 1].
        should_stop: Asked once per step; where it says yes, what has been reached is returned.

    Returns:
        `Allocation` in which every user with a task spends the whole budget, with its certificate.

    Raises:
        InvalidInput: No graph.

    Source: generalises Krichene et al. 2023, equation 9, to the weights of equation 3.
    """
    graph = problem.require_graph()
    options = options or SearchOptions()
    watch = Watch(options, progress, should_stop)
    prices = problem.task_sizes.astype(np.float64) ** -problem.loss.best_exponent
    step = _take_step(problem, prices)
    while step.gap > options.tolerance and watch.take_step(step.gap):
        prices = step.next_prices
        step = _take_step(problem, prices)
    scales = scale_to_budget(graph, prices, problem.budget)
    allocation = Allocation(
        "exact optimum, one weight per user and task", problem, prices, scales, rule=UserRule.FULL
    )
    return watch.certify(allocation, compute_lower_bound(problem, prices), ARGUMENT)
