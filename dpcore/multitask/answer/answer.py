"""The answer for many tasks, as all readers take it."""

from __future__ import annotations

from typing import Any

from dpcore.answer import standard
from dpcore.answer.answer import Answer
from dpcore.answer.unit import state_unit
from dpcore.code import forms
from dpcore.code.forms import FILE_ROW_FIELDS, OfferedPrograms, build_forms, list_data_fields
from dpcore.code.release_spec import Quantity
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Disclosure
from dpcore.common.wording import format_count, format_entered
from dpcore.dataset import Dataset
from dpcore.multitask.answer import plots, words
from dpcore.multitask.answer.sections import SECTIONS, tabulate_weights
from dpcore.multitask.answer.solution import MultitaskSolution, solve
from dpcore.multitask.parameters import MultitaskParameters, TaskSource
from dpcore.multitask.sampling import count_tasks_per_user
from dpcore.multitask.weights import BudgetFit


def choose_programs(solution: MultitaskSolution, dataset: Dataset | None) -> OfferedPrograms | None:
    """Return programs for the chosen task weights, and for uniform sampling of the person's or the best k tasks.

    Args:
        solution: The solution.
        dataset: The data; None if tasks are generated.
    """
    comparison, parameters, weight_rule = solution.comparison, solution.parameters, solution.comparison.rule
    settings_of_all_forms: dict[str, Any] = {"group_column": "task"}
    if dataset is not None and parameters.generator is None:
        settings_of_all_forms = list_data_fields(dataset) | forms.mark_combined_groups(dataset)
    settings_of_all_forms |= {
        "disclosure": solution.tasks.disclosure,
        "delta": parameters.delta,
    } | FILE_ROW_FIELDS
    task_weight_settings: dict[str, Any] = {
        "exponent": weight_rule.exponent,
        # A user moves these sums by the root of the budget. The sums of algorithms 1 and 2 move by sqrt(2 beta), and
        # beta is calibrated for them: here it may be twice as large.
        "weight_budget": 2.0 * solution.budgets.exact_budget,
        "inflation": _find_public_inflation(solution),
        "fills_every_budget": weight_rule.fit is BudgetFit.FULL,
    }
    max_tasks = count_tasks_per_user(comparison.entered_task_sampling or comparison.best_task_sampling)
    sampling_settings: dict[str, Any] = {"max_groups": max_tasks, "noise": NoiseKind.GAUSSIAN}
    weights_name = f"Task weights, μ = {format_entered(weight_rule.exponent)}"
    task_weight_form = (weights_name, Quantity.TASK_WEIGHTS, task_weight_settings)
    sampling_form = (
        f"At most {format_count(max_tasks, 'task')}",
        Quantity.GROUP_COUNTS,
        sampling_settings,
    )
    return build_forms(parameters.epsilon, settings_of_all_forms, [task_weight_form, sampling_form])


def _find_public_inflation(solution: MultitaskSolution) -> float | None:
    """Return c of equation 10; None if it were computed from private data: the person then enters a public one."""
    if solution.comparison.rule.fit in (BudgetFit.CLIPPED, BudgetFit.FULL):
        return 1.0
    is_public = solution.tasks.disclosure is Disclosure.PUBLIC
    return words.compute_inflation(solution.comparison) if is_public else None


def build_answer(
    dataset: Dataset | None, parameters: MultitaskParameters, solution: MultitaskSolution | None = None
) -> Answer:
    """Divide a user's privacy budget among tasks if one model per task is trained.

    Args:
        dataset: Who contributes to which task; not read, and may be None, if the parameters name a generator.
        parameters: The parameters.
        solution: The solution for both, with the exact optima if they were computed; computed here by default.

    Returns:
        The answer; its ``solution`` is a `MultitaskSolution`. Plots are computed when they are asked for.

    Raises:
        InvalidInput: The data have no tasks, the generator drew nothing, or c = C log n with a single user.

    Examples:
        Two tasks with as many users each: no weights are better than equal ones.

        >>> import pandas as pd
        >>> import dpcore as ss
        >>> pairs = pd.DataFrame({"user": list("aabc"), "task": list("xyxy")})
        >>> answer = ss.task_weights(pairs, user="user", group="task", epsilon=1)
        >>> print(answer.bound["share_of_bound"].round(3).tolist(), round(answer.error, 3))
        [0.5, 0.5] 1.0

    Source: Krichene et al. 2023, section 4.
    """
    solution = solve(dataset, parameters) if solution is None else solution
    allocation = solution.comparison.allocation
    near_optimal_exponents = solution.comparison.exponent_curve.near_optimal
    answer = Answer(
        headline=words.write_headline(solution),
        detail=words.write_detail(solution),
        numbers=words.build_numbers(solution),
        assumptions=words.list_assumptions(solution),
        disclosure=solution.tasks.disclosure,
        facts=words.build_facts(solution),
        proofs=words.list_proofs(solution),
        code=choose_programs(solution, dataset),
        near_optimal=standard.write_near_optimal_range(
            *near_optimal_exponents,
            symbol="μ",
            objective_text="the least total bound",
            choices_noun="exponents",
        ),
        parameters=parameters,
        solution=solution,
        plots={
            "many-tasks-weights": lambda: plots.plot_weights(solution),
            "many-tasks-buckets": lambda: plots.plot_buckets(solution),
            "many-tasks-exponents": lambda: plots.plot_exponents(solution),
            "many-tasks-sizes": lambda: plots.plot_sizes(solution.tasks),
        },
        make_methods=lambda: words.write_methods(solution),
        error=solution.comparison.recommendation[1],
        bound=lambda: tabulate_weights(allocation.with_budget(solution.budgets.exact_budget)),
        sections=SECTIONS,
    )
    unit_answer: Answer = state_unit(answer, dataset if parameters.source is TaskSource.DATA else None)
    return unit_answer
