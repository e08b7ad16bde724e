"""Ways to bring weights within users' budgets, by name; and what each compares with.

Comparing like with like: problem (9) allows no clipping, so its optimum is to be compared with weights scaled
so that nobody is clipped. Clipping lets light users keep larger weights than heavy ones, and then equations
11 and 12 with c = 1 can beat the optimum of (9); what they cannot beat is `free.best_user_task_weights`.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy.typing as npt

from dpcore.multitask.problem import Allocation, TaskProblem
from dpcore.multitask.weights import AVERAGE, logarithmic, normalised_weights, power_weights, unclipped


class BudgetFit(enum.Enum):
    """How weights are brought within users' budgets."""

    CLIPPED = "average"
    LOGARITHMIC = "logarithmic"
    NOBODY_CLIPPED = "nobody-clipped"
    FULL = "full"

    @property
    def same_for_all_users(self) -> bool:
        """Whether a task's weight is the same for all its users, as problem (9) demands."""
        return self is BudgetFit.NOBODY_CLIPPED

    @property
    def reads_graph(self) -> bool:
        """Whether the task weights are computed from who contributes to what."""
        return self is BudgetFit.NOBODY_CLIPPED


@dataclass(frozen=True)
class WeightRule:
    """Which weights: the exponent and how they are fitted.

    Attributes:
        exponent: mu in [0, 1].
        fit: How weights are brought within users' budgets.
        log_constant: C where c = C log n.
    """

    exponent: float
    fit: BudgetFit = BudgetFit.CLIPPED
    log_constant: float = 1.0

    def weights(self, problem: TaskProblem, counts: npt.ArrayLike | None = None) -> Allocation:
        """The allocation.

        Args:
            problem: The question, with a graph.
            counts: Estimates in place of task sizes, shape (num_tasks,).

        Raises:
            InvalidInput: As `dpcore.multitask.weights.task_weights`; c = C log n with a single user.
        """
        if self.fit is BudgetFit.FULL:
            return normalised_weights(problem, self.exponent, counts=counts)
        if self.fit is BudgetFit.NOBODY_CLIPPED:
            inflation = unclipped(problem, self.exponent, counts)
        elif self.fit is BudgetFit.LOGARITHMIC:
            inflation = logarithmic(problem.num_users, self.log_constant)
        else:
            inflation = AVERAGE
        return power_weights(problem, self.exponent, inflation, counts)

    def with_exponent(self, exponent: float) -> WeightRule:
        """The same fit, another exponent; 0 is what adapting to task sizes is compared with."""
        return WeightRule(exponent, self.fit, self.log_constant)
