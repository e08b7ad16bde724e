"""The answer for data owners: one object that page, report, files, script and notebook read."""

from __future__ import annotations

from dpcore.answer import Answer
from dpcore.common.privacy import Provenance
from dpcore.data_owners import files
from dpcore.data_owners.answer import plots, words
from dpcore.data_owners.answer.code import choose_programs
from dpcore.data_owners.answer.found import OwnersSolution, solve
from dpcore.data_owners.answer.methods import write_methods
from dpcore.data_owners.answer.sections import SECTIONS
from dpcore.data_owners.parameters import OwnersParameters
from dpcore.dataset import Dataset


def build_answer(
    data: Dataset | Provenance, parameters: OwnersParameters, solution: OwnersSolution | None = None
) -> Answer:
    """Decide, by the bounds, who should train together.

    Args:
        data: Whose users are the owners; where owners are entered, what kind of numbers these are.
        parameters: The question.
        solution: What `solve` found for both; computed here by default.

    Returns:
        The answer; its ``solution`` is an `OwnersSolution`. Plots are computed when they are asked for.

    Raises:
        InvalidInput: The data do not fit the question.

    Source: Huang et al. 2023, theorem 3.1 and appendix A.
    """
    solution = solve(data, parameters) if solution is None else solution
    plot_makers = {
        "owners-map": lambda: plots.plot_regime_map(solution),
        "owners-bounds": lambda: plots.plot_bounds(solution),
    }
    owner_dataset = data if solution.is_of_data and isinstance(data, Dataset) else None
    if owner_dataset is not None:
        plot_makers["owners-cap"] = lambda: plots.plot_cap(solution, owner_dataset)
    return Answer(
        headline=words.write_headline(solution),
        detail=words.write_detail(solution),
        numbers=words.build_numbers(solution),
        assumptions=words.list_assumptions(solution),
        disclosure=solution.disclosure,
        facts=words.build_facts(solution),
        proofs=words.list_proofs(solution),
        code=choose_programs(solution, owner_dataset),
        near_optimal=words.describe_near_optimal(solution),
        parameters=parameters,
        solution=solution,
        plots=plot_makers,
        sections=SECTIONS,
        make_methods=lambda: write_methods(solution),
        choice=lambda: files.owners_choice_json(
            owner_dataset, parameters, solution.collaboration, solution.cap, solution.disclosure
        ),
    )
