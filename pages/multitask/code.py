"""The chosen bound with the names that the data have, for *Code for your library*."""

from __future__ import annotations

from dpcore.code import Released
from dpcore.code.forms import ROWS_OF_THE_FILE, CodeChoice, forms, of_data, one_group_column
from dpcore.common import wording
from dpcore.common.noise_error import NoiseKind
from dpcore.dataset import Dataset
from dpcore.multitask.fit import BudgetFit
from pages.multitask.answer import MultitaskView, tasks_per_user


def of_tasks(
    view: MultitaskView, epsilon: float, delta: float, budget: float, dataset: Dataset | None
) -> CodeChoice | None:
    """Task weights, and the number of tasks per user of the best uniform sampling.

    Args:
        view: The answer.
        epsilon: Of the page.
        delta: Of the page.
        budget: beta that they give.
        dataset: Whose tasks they are; None where they were generated.
    """
    base = of_data(dataset) | one_group_column(dataset) if dataset is not None else {"group_column": "task"}
    base |= {"disclosure": view.tasks.disclosure, "delta": delta} | ROWS_OF_THE_FILE
    sizes, weights = view.problem.task_sizes, view.chosen.task_weights
    task_weights = {
        "exponent": view.rule.exponent,
        "budget": budget,
        # c of equation 10: for what part of the budget the weights are scaled.
        "inflation": float(view.problem.num_users * view.problem.budget / (sizes @ weights**2)),
        "every_user_full": view.rule.fit is BudgetFit.FULL,
    }
    sampling = view.own_sampling or view.sampling
    most = tasks_per_user(sampling)
    groups = {"max_groups": most, "noise": NoiseKind.GAUSSIAN}
    return forms(
        epsilon,
        base,
        [
            (f"Task weights, μ = {wording.entered(view.rule.exponent)}", Released.TASK_WEIGHTS, task_weights),
            (f"At most {wording.counted(most, 'task')}", Released.GROUP_COUNTS, groups),
        ],
    )
