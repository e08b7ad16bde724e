"""The question as a person enters it, and the files they take away."""

import io
import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest

from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Disclosure
from dpcore.regression import draw as regression_draw
from dpcore.regression import sample_limiting, working_set
from dpcore.regression.answer import build_answer
from dpcore.regression.answer.solution import build_solution
from dpcore.regression.draw import draw_coefficients
from dpcore.regression.estimate import estimate_residual_variance
from dpcore.regression.parameters import RegressionGenerator, RegressionParameters, ResidualVarianceSource
from dpcore.regression.problem import RegressionProblem, build_unit_problem

DATA, _ = RegressionGenerator(200, 2, 1, exponent=1.8, seed=2).build_dataset()
PARAMETERS = RegressionParameters(1.5, -300.0, 300.0)
VARIANCE = estimate_residual_variance(DATA.table.features, PARAMETERS.clip_labels(DATA.table))
PROBLEM = build_unit_problem(DATA).with_settings(PARAMETERS.epsilon, PARAMETERS.value_bound, VARIANCE)
OURS = working_set.solve(PROBLEM)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"upper": -301.0}, "lower must lie below upper"),
        ({"upper": math.inf}, "upper"),
        ({"variance_source": ResidualVarianceSource.ENTERED}, "variance σ² is missing"),
        ({"residual_variance": 1.0}, 'variance σ² can be set only with "Entered"'),
        (
            {"variance_source": ResidualVarianceSource.ENTERED, "residual_variance": -1.0},
            "variance σ² must lie",
        ),
        ({"num_rows": 19}, "rows n must"),
        ({"num_rows": 10**9}, "rows n must"),
        ({"informative": 0, "exponent": 0.5, "seed": -1}, r"features with a coefficient.*exponent.*seed"),
        ({"num_rows": 30, "informative": 20}, "at least 50 rows"),
    ],
)
def test_refusals(changes, words):
    fine = {"epsilon": 1.0, "lower": -300.0, "upper": 300.0}
    with pytest.raises(InvalidInput, match="(?is)" + words):
        RegressionParameters(**(fine | changes))


def test_features_that_are_called_like_other_columns_keep_a_column_each():
    names = ("row", "row (coefficient)")
    problem = RegressionProblem(
        np.random.default_rng(0).normal(size=(6, 2)), np.arange(6), 1.0, 1.0, 1.0, names
    )
    estimate = sample_limiting.estimate_on_all_rows(problem)
    frame = pd.read_parquet(io.BytesIO(regression_draw.write_matrix(problem, estimate, Disclosure.PUBLIC)))
    assert frame["row"].tolist() == list(range(6))
    assert np.array_equal(frame["row (coefficient)"], estimate.matrix[1])
    assert np.array_equal(frame["row (coefficient) (coefficient)"], estimate.matrix[0])


def test_the_parquet_file_holds_c_with_its_label():
    content = regression_draw.write_matrix(PROBLEM, OURS, Disclosure.PRIVATE)
    frame = pd.read_parquet(io.BytesIO(content))
    c = frame[list(PROBLEM.feature_names)].to_numpy().T
    np.testing.assert_array_equal(c, OURS.matrix)
    np.testing.assert_allclose(c @ DATA.table.features, np.eye(3), atol=1e-9)
    # The noise of the release can be recomputed from the file alone.
    heaviest = np.abs(c).sum(axis=0)
    heaviest = pd.Series(heaviest).groupby(frame["user_code"]).sum().max()
    metadata = json.loads(pyarrow.parquet.read_metadata(io.BytesIO(content)).metadata[b"PANDAS_ATTRS"])
    assert metadata["label"] == Disclosure.PRIVATE.label
    assert metadata["laplace_scale"] == pytest.approx(heaviest * 600.0 / 1.5)


def test_every_draw_stands_in_the_file_with_its_epsilon():
    draws = [draw_coefficients(PROBLEM, OURS, DATA.table.labels, -300.0) for _ in range(2)]
    frame = pd.read_csv(io.StringIO(regression_draw.write_draws(draws)))
    assert frame["draw"].tolist() == [1, 1, 1, 2, 2, 2]
    np.testing.assert_array_equal(frame["value"], np.concatenate([d.release.values for d in draws]))
    assert set(frame["label"]) == {"DP release (epsilon = 1.5, replace one user's values, Laplace)"}
    assert frame["value"][:3].tolist() != frame["value"][3:].tolist()


def test_names_of_coefficients_are_no_formulas():
    names = ("=1+1", "@sum: x", *PROBLEM.feature_names[2:])
    draw = replace(draw_coefficients(PROBLEM, OURS, DATA.table.labels, -300.0), feature_names=names)
    frame = pd.read_csv(io.StringIO(regression_draw.write_draws([draw])))
    assert frame["coefficient"].tolist() == ["'=1+1", "'@sum: x", *names[2:]]


@pytest.mark.parametrize("with_caps", [True, False])
def test_the_choice_separates_what_was_entered_from_what_was_computed(with_caps):
    draws = sample_limiting.try_caps(PROBLEM, PARAMETERS.clip_labels(DATA.table), 2)
    solution = build_solution(DATA, PARAMETERS, PROBLEM, OURS, draws)
    solution = solution if with_caps else replace(solution, cap_curve=None)
    content = json.loads(build_answer(DATA, PARAMETERS, solution).write_json())
    assert content["question"]["epsilon"] == 1.5
    assert content["question"]["data_source"] == PARAMETERS.source.value
    assert "Epasto" in content["question"]["source"]
    assert "residual_variance" not in content["question"]
    assert content["data"]["residual_variance"] == VARIANCE
    assert content["answer"]["total_variance"] == OURS.variance
    assert sum(np.square(content["answer"]["standard_errors"])) == pytest.approx(OURS.variance)
    assert (content["answer"]["max_contributions"] is None) is not with_caps
