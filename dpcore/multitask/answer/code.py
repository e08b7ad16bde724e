"""The chosen bound with the names that the data have, for *Code for your library*."""

from __future__ import annotations

from typing import Any

from dpcore.code import Released
from dpcore.code.forms import ROWS_OF_THE_FILE, CodeChoice, forms, of_data, one_group_column
from dpcore.common import wording
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Disclosure
from dpcore.dataset import Dataset
from dpcore.multitask.answer.found import MultitaskFound, tasks_per_user
from dpcore.multitask.answer.words import inflation
from dpcore.multitask.fit import BudgetFit
from dpcore.multitask.parameters import TaskSource
from dpcore.multitask.weights import AVERAGE


def of_tasks(found: MultitaskFound, data: Dataset | None) -> CodeChoice | None:
    """Task weights, and the number of tasks per user of the best uniform sampling, or of the person's own.

    Args:
        found: What was found.
        data: The data; those whose tasks were generated do not name them.
    """
    weighed, parameters = found.weighed, found.parameters
    if data is None or parameters.source is not TaskSource.DATA:
        base: dict[str, Any] = {"group_column": "task"}
    else:
        base = of_data(data) | one_group_column(data)
    base |= {"disclosure": found.tasks.disclosure, "delta": parameters.delta} | ROWS_OF_THE_FILE
    task_weights = {
        "exponent": weighed.rule.exponent,
        # A user moves these sums by the root of the budget. The sums of algorithms 1 and 2 move by sqrt(2 beta), and
        # beta is calibrated for them: here it may be twice as large.
        "budget": 2.0 * found.budgets.exact,
        "inflation": _public_inflation(found),
        "every_user_full": weighed.rule.fit is BudgetFit.FULL,
    }
    most = tasks_per_user(weighed.own_sampling or weighed.sampling)
    groups = {"max_groups": most, "noise": NoiseKind.GAUSSIAN}
    return forms(
        parameters.epsilon,
        base,
        [
            (
                f"Task weights, μ = {wording.entered(weighed.rule.exponent)}",
                Released.TASK_WEIGHTS,
                task_weights,
            ),
            (f"At most {wording.counted(most, 'task')}", Released.GROUP_COUNTS, groups),
        ],
    )


def _public_inflation(found: MultitaskFound) -> float | None:
    """Return c of equation 10, or None if it would tell of private data: the person then enters a public one."""
    if found.weighed.rule.fit in (BudgetFit.CLIPPED, BudgetFit.FULL):
        return AVERAGE.factor
    return inflation(found.weighed) if found.tasks.disclosure is Disclosure.PUBLIC else None
