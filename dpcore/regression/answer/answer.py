"""The answer for a linear regression: one object that page, report, files, script and notebook read."""

from __future__ import annotations

import numpy as np

from dpcore.answer import Answer
from dpcore.answer.choice import add_choice
from dpcore.common.documents import certificate_fields
from dpcore.dataset import Dataset
from dpcore.regression import files
from dpcore.regression.answer import plots, words
from dpcore.regression.answer.code import of_regression
from dpcore.regression.answer.found import ErrorOf, RegressionFound, find
from dpcore.regression.answer.methods import methods
from dpcore.regression.estimate import coefficient_variances
from dpcore.regression.parameters import ASSUMPTIONS, RegressionParameters, ResidualVarianceSource


def build_answer(
    data: Dataset | None, parameters: RegressionParameters, found: RegressionFound | None = None
) -> Answer:
    """Find how much each row should weigh in a linear regression of private labels on public features.

    Args:
        data: Labels, features and owners, as `dpcore.regression.design_matrix.build` makes them of a table; None where
            they are generated, as the parameters say.
        parameters: The question.
        found: What `find` found for both, or what its searches have found so far; searched for here by default.

    Returns:
        The answer; its ``found`` is a `RegressionFound`. Plots are computed when they are asked for.

    Raises:
        InvalidInput: The data have no labels and features, or do not fit the question.

    Source: Epasto et al. 2020, section 5.
    """
    of = find(data, parameters) if found is None else found
    answer = Answer(
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
            "regression-errors": lambda: plots.plot_errors(of, ErrorOf.COEFFICIENTS),
            "regression-errors-predictions": lambda: plots.plot_errors(of, ErrorOf.PREDICTIONS),
            "regression-caps": lambda: plots.plot_caps(of, ErrorOf.COEFFICIENTS),
            "regression-predictions": lambda: plots.plot_caps(of, ErrorOf.PREDICTIONS),
            "regression-weights": lambda: plots.plot_weights(of),
        },
        make_methods=lambda: methods(of),
        bound=lambda: files.user_table(of.problem, of.ours),
    )
    variance_is_entered = of.parameters.variance_source is ResidualVarianceSource.ENTERED
    return add_choice(
        answer,
        of.data,
        "linear regression with private labels",
        lambda: _list_details(of),
        question={
            "data_source": of.parameters.source.value,  # In every choice, ``source`` is the work with the method.
            "mechanism": "Laplace",
            "source": "Epasto et al. 2020, Smoothly Bounding User Contributions in DP, section 5",
        },
        data={
            "feature_names": list(of.problem.feature_names),
            "residual_variance": of.problem.residual_variance,
            "residual_variance_label": "public input" if variance_is_entered else answer.disclosure.label,
        },
        schema="sweetspot/regression/1",
    )


def _list_details(solution: RegressionFound) -> dict[str, object]:
    estimate, caps = solution.ours, solution.caps
    return {
        "total_variance": estimate.variance,
        "sampling_variance": estimate.sampling_variance,
        "privacy_variance": estimate.privacy_variance,
        "laplace_scale": estimate.noise.scale,
        "largest_user_weight": estimate.largest_user_weight,
        "standard_errors": np.sqrt(coefficient_variances(solution.problem, estimate)).tolist(),
        **certificate_fields(estimate.certificate),
        "ended": estimate.ended,
        "max_contributions": None if caps is None else caps.max_contributions,
        "best_cap_total_variance": None if caps is None else float(caps.variance[caps.best]),
    }
