"""The answer for data owners: one object that page, report, files, script and notebook read."""

from __future__ import annotations

from dpcore.answer import Answer
from dpcore.answer.answer import add_choice
from dpcore.common.privacy import Provenance
from dpcore.common.strict_json import finite_or_none
from dpcore.data_owners.answer import plots, words
from dpcore.data_owners.answer.code import choose_programs
from dpcore.data_owners.answer.found import OwnersSolution, solve
from dpcore.data_owners.answer.methods import write_methods
from dpcore.data_owners.answer.sections import SECTIONS
from dpcore.data_owners.bounds import bound_without_privacy
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
    answer = Answer(
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
    )
    owners = solution.collaboration
    return add_choice(
        answer,
        owner_dataset,
        "training across data owners",
        lambda: _list_details(solution),
        question={
            "source_of_bounds": "Huang et al. 2023, Learning across data owners with joint DP, theorem 3.1, appendix A"
        },
        data={"num_owners": float(owners.owners), "mean_records_kept": float(owners.records)},
        schema="sweetspot/data-owners/1",
    )


def _list_details(solution: OwnersSolution) -> dict[str, object]:
    details: dict[str, object] = {
        "regime": solution.regime.name.lower(),
        "bound_alone": solution.bound_alone,
        "bound_without_privacy": float(bound_without_privacy(solution.collaboration)),
        "bound_that_says_nothing": solution.trivial_bound,
        "bound_joint": solution.bound_joint,
        "epsilon_star_joint": finite_or_none(solution.epsilon_joint),
        "owners_needed_joint": solution.owners_joint,
        "bound_full": solution.bound_full,
        "epsilon_star_full": finite_or_none(solution.epsilon_full),
        "owners_needed_full": solution.owners_full,
    }
    if (cap := solution.cap) is not None:
        details |= {
            "max_records_per_owner": cap.cap,
            "caps_within_5_percent": list(cap.near_optimal),
            "proved_relative_gap": finite_or_none(cap.certificate.relative_gap),
        }
    return details
