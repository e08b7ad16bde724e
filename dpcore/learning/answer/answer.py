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
from dpcore.learning.answer.found import LearningFound, find
from dpcore.learning.answer.methods import methods
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
    return Answer(
        headline=words.headline(of),
        detail=words.detail(of, data),
        numbers=words.numbers(of),
        assumptions=learning.ASSUMPTIONS,
        disclosure=data.provenance,
        facts=words.facts(of, parameters.own_cap),
        proofs=(("Bound", of.choice.certificate, of.choice.ended),),
        code=build_forms(
            parameters.epsilon, fields_of_data(data), [(cap_form(cap), Quantity.MODEL, {"max_rows": cap})]
        ),
        near_optimal=words.good_enough(of),
        parameters=parameters,
        solution=of,
        plots={
            "learning-bound": lambda: plots.bound(of, data, parameters.own_cap),
            "learning-terms": lambda: plots.terms(of, data, parameters.own_cap),
        },
        make_methods=lambda: methods(of, data, parameters),
        choice=lambda: files.learning_choice_json(data, parameters, of.choice, of.within),
        files={
            "learning_curves.csv": lambda: write_columns(
                of.curves, data.provenance, list_public_inputs(to_fields(parameters))
            )
        },
        setting=ReleaseSetting(Quantity.MODEL, parameters.epsilon, NEIGHBOURS),
        error_parts=words.error_parts(of),
    )
