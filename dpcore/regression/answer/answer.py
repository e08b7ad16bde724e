"""The answer for a linear regression: one object that page, report, files, script and notebook read."""

from __future__ import annotations

from dpcore.answer import Answer
from dpcore.dataset import Dataset
from dpcore.regression import files
from dpcore.regression.answer import plots, words
from dpcore.regression.answer.code import write_forms
from dpcore.regression.answer.found import ErrorOf, RegressionSolution, solve
from dpcore.regression.answer.methods import write_methods
from dpcore.regression.parameters import ASSUMPTIONS, RegressionParameters


def build_answer(
    data: Dataset | None, parameters: RegressionParameters, solution: RegressionSolution | None = None
) -> Answer:
    """Find how much each row should weigh in a linear regression of private labels on public features.

    Args:
        data: Labels, features and owners, as `dpcore.regression.design_matrix.build_dataset` makes them of a table;
            None where they are generated, as the parameters say.
        parameters: The question.
        solution: What `solve` found for both, or what its searches have found so far; searched for here by default.

    Returns:
        The answer; its ``solution`` is a `RegressionSolution`. Plots are computed when they are asked for.

    Raises:
        InvalidInput: The data have no labels and features, or do not fit the question.

    Source: Epasto et al. 2020, section 5.
    """
    solved = solve(data, parameters) if solution is None else solution
    return Answer(
        headline="Weight the rows, do not bound them.",
        detail=words.write_detail(solved),
        numbers=words.list_numbers(solved),
        assumptions=ASSUMPTIONS,
        disclosure=solved.data.provenance,
        facts=words.list_facts(solved),
        proofs=(("Best weights", solved.best_estimate.certificate, solved.best_estimate.stop_reason),),
        code=write_forms(solved),
        near_optimal=words.describe_near_optimal(solved),
        parameters=solved.parameters,
        solution=solved,
        plots={
            "regression-errors": lambda: plots.errors(solved, ErrorOf.COEFFICIENTS),
            "regression-errors-predictions": lambda: plots.errors(solved, ErrorOf.PREDICTIONS),
            "regression-caps": lambda: plots.caps(solved, ErrorOf.COEFFICIENTS),
            "regression-predictions": lambda: plots.caps(solved, ErrorOf.PREDICTIONS),
            "regression-weights": lambda: plots.weights(solved),
        },
        make_methods=lambda: write_methods(solved),
        choice=lambda: files.choice_json(
            solved.data, solved.parameters, solved.problem, solved.best_estimate, solved.caps
        ),
        bound=lambda: files.user_table(solved.problem, solved.best_estimate),
    )
