"""The answer for many tasks: one object that page, report, files, script and notebook read."""

from __future__ import annotations

from dpcore.answer import Answer
from dpcore.dataset import Dataset
from dpcore.multitask import files
from dpcore.multitask.answer import plots, words
from dpcore.multitask.answer.code import choose_programs
from dpcore.multitask.answer.found import MultitaskSolution, rescale_budget, solve
from dpcore.multitask.answer.methods import write_methods
from dpcore.multitask.parameters import MultitaskParameters


def build_answer(
    dataset: Dataset | None, parameters: MultitaskParameters, solution: MultitaskSolution | None = None
) -> Answer:
    """Divide a user's privacy budget among tasks if one model per task is trained.

    Args:
        dataset: Who contributes to which task; not read, and may be None, where the parameters name a generator.
        parameters: The question.
        solution: What `solve` found for both, with the exact optima where they were computed; searched for here by
            default.

    Returns:
        The answer; its ``solution`` is a `MultitaskSolution`. Plots are computed when they are asked for.

    Raises:
        InvalidInput: The data have no tasks, the generator drew nothing, or c = C log n with a single user.

    Source: Krichene et al. 2023, section 4.
    """
    solution = solve(dataset, parameters) if solution is None else solution
    return Answer(
        headline=words.write_headline(solution),
        detail=words.write_detail(solution),
        numbers=words.build_numbers(solution),
        assumptions=words.list_assumptions(solution),
        disclosure=solution.tasks.disclosure,
        facts=words.build_facts(solution),
        proofs=words.list_proofs(solution),
        code=choose_programs(solution, dataset),
        near_optimal=words.describe_near_optimal(solution),
        parameters=parameters,
        solution=solution,
        plots={
            "many-tasks-buckets": lambda: plots.plot_buckets(solution),
            "many-tasks-weights": lambda: plots.plot_weights(solution),
            "many-tasks-exponents": lambda: plots.plot_exponents(solution),
            "many-tasks-sizes": lambda: plots.plot_sizes(solution.tasks),
        },
        make_methods=lambda: write_methods(solution),
        bound=lambda: files.tabulate_weights(
            rescale_budget(solution.comparison.allocation, solution.budgets.exact)
        ),
    )
