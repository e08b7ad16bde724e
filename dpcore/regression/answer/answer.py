"""The answer for a linear regression: one object that page, report, files, script and notebook read."""

from __future__ import annotations

from dpcore.answer import Answer
from dpcore.dataset import Dataset
from dpcore.regression import files
from dpcore.regression.answer import plots, words
from dpcore.regression.answer.code import of_regression
from dpcore.regression.answer.found import ErrorOf, RegressionFound, find
from dpcore.regression.answer.methods import methods
from dpcore.regression.parameters import ASSUMPTIONS, RegressionParameters


def build_answer(
    data: Dataset | None, parameters: RegressionParameters, found: RegressionFound | None = None
) -> Answer:
    """Find how much each row should weigh in a linear regression of private labels on public features.

    Args:
        data: Labels, features and owners, as `dpcore.regression.design_matrix.build_dataset` makes them of a table;
            None where they are generated, as the parameters say.
        parameters: The question.
        found: What `find` found for both, or what its searches have found so far; searched for here by default.

    Returns:
        The answer; its ``found`` is a `RegressionFound`. Plots are computed when they are asked for.

    Raises:
        InvalidInput: The data have no labels and features, or do not fit the question.

    Source: Epasto et al. 2020, section 5.
    """
    of = find(data, parameters) if found is None else found
    return Answer(
        headline="Weight the rows, do not bound them.",
        detail=words.detail(of),
        numbers=words.numbers(of),
        assumptions=ASSUMPTIONS,
        disclosure=of.data.provenance,
        facts=words.facts(of),
        proofs=(("Best weights", of.ours.certificate, of.ours.ended),),
        code=of_regression(of),
        near_optimal=words.good_enough(of),
        parameters=of.parameters,
        solution=of,
        plots={
            "regression-errors": lambda: plots.errors(of, ErrorOf.COEFFICIENTS),
            "regression-errors-predictions": lambda: plots.errors(of, ErrorOf.PREDICTIONS),
            "regression-caps": lambda: plots.caps(of, ErrorOf.COEFFICIENTS),
            "regression-predictions": lambda: plots.caps(of, ErrorOf.PREDICTIONS),
            "regression-weights": lambda: plots.weights(of),
        },
        make_methods=lambda: methods(of),
        choice=lambda: files.choice_json(of.data, of.parameters, of.problem, of.ours, of.caps),
        bound=lambda: files.user_table(of.problem, of.ours),
    )
