"""The answer for a linear regression: one object that page, report, files, script and notebook read."""

from __future__ import annotations

import numpy as np

from dpcore.answer import Answer
from dpcore.answer.answer import add_choice
from dpcore.common.strict_json import certificate_fields
from dpcore.dataset import Dataset
from dpcore.regression import draw
from dpcore.regression.answer import plots
from dpcore.regression.answer.solution import (
    ErrorOf,
    RegressionSolution,
    describe_near_optimal,
    list_facts,
    list_numbers,
    solve,
    write_detail,
    write_forms,
    write_methods,
)
from dpcore.regression.estimate import coefficient_variances
from dpcore.regression.parameters import ASSUMPTIONS, RegressionParameters, ResidualVarianceSource


def build_answer(
    data: Dataset | None, parameters: RegressionParameters, solution: RegressionSolution | None = None
) -> Answer:
    """Find how much each row should weigh in a linear regression of private labels on public features.

    Args:
        data: Labels, features and owners, as `dpcore.regression.problem.build_dataset` makes them of a table;
            None where they are generated, as the parameters say.
        parameters: The question.
        solution: What `solve` found for both, or what its searches have found so far; searched for here by default.

    Returns:
        The answer; its ``solution`` is a `RegressionSolution`. Plots are computed when they are asked for.

    Raises:
        InvalidInput: The data have no labels and features, or do not fit the question.

    Examples:
        By symmetry all rows weigh 1/2; the noise is 1/2 of the range of a label, over ε.

        >>> import pandas as pd
        >>> import dpcore as ss
        >>> table = pd.DataFrame({"user": list("abcd"), "x": [-1, 1, -1, 1], "y": [1, 2, 3, 4]})
        >>> answer = ss.regression_weights(table, user="user", label="y", features=["x"], epsilon=1, lower=0, upper=5)
        >>> print(answer.bound["weight"].round(3).tolist(), round(answer.error, 3))
        [0.5, 0.5, 0.5, 0.5] 2.5

    Source: Epasto et al. 2020, section 5.
    """
    solved = solve(data, parameters) if solution is None else solution
    answer = Answer(
        headline="Weight the rows, do not bound them.",
        detail=write_detail(solved),
        numbers=list_numbers(solved),
        assumptions=ASSUMPTIONS,
        disclosure=solved.data.provenance,
        facts=list_facts(solved),
        proofs=(("Best weights", solved.best_estimate.certificate, solved.best_estimate.stop_reason),),
        code=write_forms(solved),
        near_optimal=describe_near_optimal(solved),
        parameters=solved.parameters,
        solution=solved,
        plots={
            "regression-errors": lambda: plots.plot_errors(solved, ErrorOf.COEFFICIENTS),
            "regression-errors-predictions": lambda: plots.plot_errors(solved, ErrorOf.PREDICTIONS),
            "regression-caps": lambda: plots.plot_caps(solved, ErrorOf.COEFFICIENTS),
            "regression-predictions": lambda: plots.plot_caps(solved, ErrorOf.PREDICTIONS),
            "regression-weights": lambda: plots.plot_weights(solved),
        },
        make_methods=lambda: write_methods(solved),
        bound=lambda: draw.user_table(solved.problem, solved.best_estimate),
    )
    variance_is_entered = solved.parameters.variance_source is ResidualVarianceSource.ENTERED
    return add_choice(
        answer,
        solved.data,
        "linear regression with private labels",
        lambda: _list_details(solved),
        question={
            "data_source": solved.parameters.source.value,  # In every choice, ``source`` is the work with the method.
            "mechanism": "Laplace",
            "source": "Epasto et al. 2020, Smoothly Bounding User Contributions in DP, section 5",
        },
        data={
            "feature_names": list(solved.problem.feature_names),
            "residual_variance": solved.problem.residual_variance,
            "residual_variance_label": "public input" if variance_is_entered else answer.disclosure.label,
        },
        schema="sweetspot/regression/1",
    )


def _list_details(solution: RegressionSolution) -> dict[str, object]:
    estimate, caps = solution.best_estimate, solution.caps
    return {
        "total_variance": estimate.variance,
        "sampling_variance": estimate.sampling_variance,
        "privacy_variance": estimate.privacy_variance,
        "laplace_scale": estimate.noise.scale,
        "largest_user_weight": estimate.largest_user_weight,
        "standard_errors": np.sqrt(coefficient_variances(solution.problem, estimate)).tolist(),
        **certificate_fields(estimate.certificate),
        "ended": estimate.stop_reason,
        "max_contributions": None if caps is None else caps.max_contributions,
        "best_cap_total_variance": None if caps is None else float(caps.variance[caps.best]),
    }
