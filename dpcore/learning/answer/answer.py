"""The answer for a learner under a cap: one object that page, report, files, script and notebook read."""

from __future__ import annotations

from dataclasses import asdict

from dpcore import learning
from dpcore.answer import Answer, ReleaseSetting
from dpcore.answer.answer import add_choice
from dpcore.code import Quantity
from dpcore.code.forms import build_forms, cap_form, fields_of_data
from dpcore.common.strict_json import certificate_fields
from dpcore.common.text_fields import to_fields
from dpcore.dataset import Dataset
from dpcore.learning import LearningParameters
from dpcore.learning.answer import plots, words
from dpcore.learning.answer.found import LearningSolution, solve
from dpcore.learning.answer.methods import write_methods
from dpcore.learning.answer.sections import SECTIONS
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
    answer = Answer(
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
            "learning-bound": lambda: plots.plot_bound(solved, data, parameters.own_cap),
            "learning-terms": lambda: plots.plot_terms(solved, data, parameters.own_cap),
        },
        make_methods=lambda: write_methods(solved, data, parameters),
        files={
            "learning_curves.csv": lambda: write_columns(
                solved.curves, data.provenance, list_public_inputs(to_fields(parameters))
            )
        },
        setting=ReleaseSetting(Quantity.MODEL, parameters.epsilon, NEIGHBOURS),
        error_parts=words.list_error_parts(solved),
        sections=SECTIONS,
    )
    return add_choice(
        answer,
        data,
        "learning under a bound",
        lambda: _choice_details(solved),
        number_keys=("max_contributions", "tau_0", "bound", "bias_twice", "finite_sample", "privacy_noise"),
        question={
            "bias_bound": parameters.bias.title,
            "bias_needs": parameters.bias.needs,
            "privacy_term": asdict(parameters.privacy),
            "neighbours": NEIGHBOURS.value,
            "source": "Amin et al. 2019, Bounding User Contributions, theorem 1 and section 6",
        },
        left_out=learning.NOT_ABOUT_DATA,
    )


def _choice_details(solution: LearningSolution) -> dict[str, object]:
    choice = solution.choice
    return {
        "promises_something": choice.total < 1.0,
        "kept_share": choice.kept_share,
        "users_capped": choice.users_capped,
        "caps_within_5_percent": list(solution.near_optimal),
        **certificate_fields(choice.certificate),
    }
