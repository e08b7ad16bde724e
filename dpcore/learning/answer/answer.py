"""The answer for a learner under a cap: one object that page, report, files, script and notebook read."""

from __future__ import annotations

from dataclasses import asdict

from dpcore import learning
from dpcore.answer import Answer, ReleaseSetting
from dpcore.answer.choice import add_choice
from dpcore.code import Released
from dpcore.code.forms import cap_form, forms, of_data
from dpcore.common.documents import certificate_fields
from dpcore.common.text_fields import to_fields
from dpcore.dataset import Dataset
from dpcore.learning import LearningParameters
from dpcore.learning.answer import plots, words
from dpcore.learning.answer.found import LearningFound, find
from dpcore.learning.answer.methods import methods
from dpcore.learning.answer.sections import SECTIONS
from dpcore.learning.error_bound import NEIGHBOURS
from dpcore.report.csv_files import list_public_inputs, write_columns


def build_answer(data: Dataset, parameters: LearningParameters, found: LearningFound | None = None) -> Answer:
    """Find the best bound on rows per user for a private learner.

    Args:
        data: How many rows users have.
        parameters: The question.
        found: What `find` found for both; computed here by default.

    Returns:
        The answer; its ``found`` is a `LearningFound`. Plots are computed when they are asked for.

    Source: Amin et al. 2019, theorem 1.
    """
    of = find(data, parameters) if found is None else found
    cap = of.choice.max_contributions
    answer = Answer(
        headline=words.headline(of),
        detail=words.detail(of, data),
        numbers=words.numbers(of),
        assumptions=learning.ASSUMPTIONS,
        disclosure=data.provenance,
        facts=words.facts(of, parameters.own_cap),
        proofs=(("Bound", of.choice.certificate, of.choice.ended),),
        code=forms(parameters.epsilon, of_data(data), [(cap_form(cap), Released.MODEL, {"max_rows": cap})]),
        near_optimal=words.good_enough(of),
        parameters=parameters,
        solution=of,
        plots={
            "learning-bound": lambda: plots.plot_bound(of, data, parameters.own_cap),
            "learning-terms": lambda: plots.plot_terms(of, data, parameters.own_cap),
        },
        make_methods=lambda: methods(of, data, parameters),
        files={
            "learning_curves.csv": lambda: write_columns(
                of.curves, data.provenance, list_public_inputs(to_fields(parameters))
            )
        },
        setting=ReleaseSetting(Released.MODEL, parameters.epsilon, NEIGHBOURS),
        error_parts=words.error_parts(of),
        sections=SECTIONS,
    )
    return add_choice(
        answer,
        data,
        "learning under a bound",
        lambda: _choice_details(of),
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


def _choice_details(solution: LearningFound) -> dict[str, object]:
    choice = solution.choice
    return {
        "promises_something": choice.total < 1.0,
        "kept_share": choice.kept_share,
        "users_capped": choice.users_capped,
        "caps_within_5_percent": list(solution.within),
        **certificate_fields(choice.certificate),
    }
