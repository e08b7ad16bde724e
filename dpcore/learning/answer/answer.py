"""The answer for a learner under a cap: one object that page, report, files, script and notebook read."""

from __future__ import annotations

from dpcore import learning
from dpcore.answer import Answer, ReleaseSetting
from dpcore.code import Quantity
from dpcore.code.forms import build_forms, cap_form, fields_of_data
from dpcore.common.text_fields import to_fields
from dpcore.dataset import Dataset
from dpcore.learning import LearningParameters, files
from dpcore.learning.answer import plots, words
from dpcore.learning.answer.found import LearningSolution, solve
from dpcore.learning.answer.methods import write_methods
from dpcore.learning.error_bound import NEIGHBOURS
from dpcore.report.csv_files import list_public_inputs, write_columns


def build_answer(
    data: Dataset, parameters: LearningParameters, solution: LearningSolution | None = None
) -> Answer:
    """Find the best bound on rows per user for a private learner.

    Args:
        data: How many rows users have.
        parameters: The question.
        solution: What `solve` found for both; computed here by default.

    Returns:
        The answer; its ``solution`` is a `LearningSolution`. Plots are computed when they are asked for.

    Source: Amin et al. 2019, theorem 1.
    """
    solved = solve(data, parameters) if solution is None else solution
    cap = solved.choice.max_contributions
    return Answer(
        headline=words.write_headline(solved),
        detail=words.write_detail(solved, data),
        numbers=words.list_numbers(solved),
        assumptions=learning.ASSUMPTIONS,
        disclosure=data.provenance,
        facts=words.list_facts(solved, parameters.own_cap),
        proofs=(("Bound", solved.choice.certificate, solved.choice.stop_reason),),
        code=build_forms(
            parameters.epsilon, fields_of_data(data), [(cap_form(cap), Quantity.MODEL, {"max_rows": cap})]
        ),
        near_optimal=words.describe_near_optimal(solved),
        parameters=parameters,
        solution=solved,
        plots={
            "learning-bound": lambda: plots.bound(solved, data, parameters.own_cap),
            "learning-terms": lambda: plots.terms(solved, data, parameters.own_cap),
        },
        make_methods=lambda: write_methods(solved, data, parameters),
        choice=lambda: files.learning_choice_json(data, parameters, solved.choice, solved.near_optimal),
        files={
            "learning_curves.csv": lambda: write_columns(
                solved.curves, data.provenance, list_public_inputs(to_fields(parameters))
            )
        },
        setting=ReleaseSetting(Quantity.MODEL, parameters.epsilon, NEIGHBOURS),
        error_parts=words.list_error_parts(solved),
    )
