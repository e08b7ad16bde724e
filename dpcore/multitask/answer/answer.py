"""The answer for many tasks: one object that page, report, files, script and notebook read."""

from __future__ import annotations

from dpcore.answer import Answer
from dpcore.dataset import Dataset
from dpcore.multitask import files
from dpcore.multitask.answer import plots, words
from dpcore.multitask.answer.code import of_tasks
from dpcore.multitask.answer.found import MultitaskFound, find, with_budget
from dpcore.multitask.answer.methods import methods
from dpcore.multitask.parameters import MultitaskParameters


def build_answer(
    data: Dataset | None, parameters: MultitaskParameters, found: MultitaskFound | None = None
) -> Answer:
    """Who gets a user's privacy budget when one model per task is trained.

    Args:
        data: Who contributes to which task; not read, and may be None, where the parameters name a generator.
        parameters: The question.
        found: What `find` found for both, with the exact optima where they were computed; searched for here by default.

    Returns:
        The answer; its ``found`` is a `MultitaskFound`. Plots are computed when they are asked for.

    Raises:
        InvalidInput: The data have no tasks, the generator drew nothing, or c = C log n with a single user.

    Source: Krichene et al. 2023, section 4.
    """
    of = find(data, parameters) if found is None else found
    return Answer(
        headline=words.headline(of),
        detail=words.detail(of),
        numbers=words.numbers(of),
        assumptions=words.assumptions(of),
        disclosure=of.tasks.disclosure,
        facts=words.facts(of),
        proofs=words.proofs(of),
        code=of_tasks(of, data),
        good_enough=words.good_enough(of),
        parameters=parameters,
        found=of,
        plots={
            "many-tasks-buckets": lambda: plots.buckets(of),
            "many-tasks-weights": lambda: plots.weights(of),
            "many-tasks-exponents": lambda: plots.exponents(of),
            "many-tasks-sizes": lambda: plots.sizes(of.tasks),
        },
        written=lambda: methods(of),
        bound=lambda: files.task_table(with_budget(of.weighed.chosen, of.budgets.exact)),
    )
