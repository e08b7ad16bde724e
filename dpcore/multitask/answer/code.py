"""The chosen bound as programs, with the names that the data have."""

from __future__ import annotations

from typing import Any

from dpcore.code import Quantity
from dpcore.code.forms import ROWS_OF_THE_FILE, CodeChoice, build_forms, fields_of_data, one_group_column
from dpcore.common import wording
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Disclosure
from dpcore.dataset import Dataset
from dpcore.multitask.answer.found import MultitaskSolution, count_tasks_per_user
from dpcore.multitask.answer.words import compute_inflation
from dpcore.multitask.fit import BudgetFit
from dpcore.multitask.parameters import TaskSource
from dpcore.multitask.weights import AVERAGE


def choose_programs(solution: MultitaskSolution, dataset: Dataset | None) -> CodeChoice | None:
    """Return programs for task weights, and for the person's or the best number of tasks per user.

    Args:
        solution: What was found.
        dataset: The data; those whose tasks were generated do not name them.
    """
    comparison, parameters = solution.comparison, solution.parameters
    if dataset is None or parameters.source is not TaskSource.DATA:
        base: dict[str, Any] = {"group_column": "task"}
    else:
        base = fields_of_data(dataset) | one_group_column(dataset)
    base |= {"disclosure": solution.tasks.disclosure, "delta": parameters.delta} | ROWS_OF_THE_FILE
    task_weights = {
        "exponent": comparison.rule.exponent,
        # A user moves these sums by the root of the budget. The sums of algorithms 1 and 2 move by sqrt(2 beta), and
        # beta is calibrated for them: here it may be twice as large.
        "budget": 2.0 * solution.budgets.exact,
        "inflation": _public_inflation(solution),
        "every_user_full": comparison.rule.fit is BudgetFit.FULL,
    }
    max_tasks = count_tasks_per_user(comparison.entered_sampling or comparison.sampling)
    groups = {"max_groups": max_tasks, "noise": NoiseKind.GAUSSIAN}
    return build_forms(
        parameters.epsilon,
        base,
        [
            (
                f"Task weights, μ = {wording.entered(comparison.rule.exponent)}",
                Quantity.TASK_WEIGHTS,
                task_weights,
            ),
            (f"At most {wording.counted(max_tasks, 'task')}", Quantity.GROUP_COUNTS, groups),
        ],
    )


def _public_inflation(solution: MultitaskSolution) -> float | None:
    """Return c of equation 10, or None if it would tell of private data: the person then enters a public one."""
    if solution.comparison.rule.fit in (BudgetFit.CLIPPED, BudgetFit.FULL):
        return AVERAGE.factor
    return compute_inflation(solution.comparison) if solution.tasks.disclosure is Disclosure.PUBLIC else None
