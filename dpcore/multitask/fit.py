"""Rules that bring weights within users' budgets, by name, and the optimum that each compares with.

Problem (9) allows no clipping, so its optimum is to be compared with weights scaled so that nobody is clipped.
Clipping lets light users keep larger weights than heavy ones, and then equations 11 and 12 with c = 1 can beat
the optimum of (9); they cannot beat `free.find_best_user_task_weights`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy.typing as npt

from dpcore.common.parameters import Option
from dpcore.multitask.problem import Allocation, TaskProblem
from dpcore.multitask.weights import (
    AVERAGE,
    allocate_by_power,
    allocate_normalised,
    inflate_for_no_clipping,
    inflate_logarithmically,
)


class BudgetFit(Option):
    """The rule that brings weights within users' budgets."""

    CLIPPED = "average", "Clip, c = 1"
    LOGARITHMIC = "logarithmic", "Clip, c = C log n"
    NOBODY_CLIPPED = "nobody-clipped", "Clip nobody"
    FULL = "full", "Fill everybody up"

    @property
    def same_for_all_users(self) -> bool:
        """Return True if a task's weight is the same for all its users, as problem (9) demands."""
        return self is BudgetFit.NOBODY_CLIPPED

    @property
    def reads_graph(self) -> bool:
        """Return True if the task weights are computed from who contributes to what."""
        return self is BudgetFit.NOBODY_CLIPPED


@dataclass(frozen=True)
class WeightRule:
    """The rule of the weights: the exponent and the fit.

    Attributes:
        exponent: mu in [0, 1].
        fit: How weights are brought within users' budgets.
        log_constant: C where c = C log n.
    """

    exponent: float
    fit: BudgetFit = BudgetFit.CLIPPED
    log_constant: float = 1.0

    def allocate(self, problem: TaskProblem, counts: npt.ArrayLike | None = None) -> Allocation:
        """Compute the allocation.

        Args:
            problem: The question, with a graph.
            counts: Estimates in place of task sizes, shape (num_tasks,).

        Raises:
            InvalidInput: As `dpcore.multitask.weights.compute_task_weights`; c = C log n with a single user.
        """
        if self.fit is BudgetFit.FULL:
            return allocate_normalised(problem, self.exponent, counts=counts)
        if self.fit is BudgetFit.NOBODY_CLIPPED:
            inflation = inflate_for_no_clipping(problem, self.exponent, counts)
        elif self.fit is BudgetFit.LOGARITHMIC:
            inflation = inflate_logarithmically(problem.num_users, self.log_constant)
        else:
            inflation = AVERAGE
        return allocate_by_power(problem, self.exponent, inflation, counts)

    def with_exponent(self, exponent: float) -> WeightRule:
        """Return the same fit with another exponent; 0 is the reference for adapting to task sizes."""
        return WeightRule(exponent, self.fit, self.log_constant)
