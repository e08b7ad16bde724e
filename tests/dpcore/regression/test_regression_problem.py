import numpy as np
import pytest

from dpcore.common.checks import InvalidInput
from dpcore.regression import estimate, sample_limiting, working_set
from dpcore.regression.draw import tabulate_users
from dpcore.regression.problem import RegressionProblem
from tests.dpcore.regression.bank import random_problem


def refusal(**changes):
    fine = {
        "features": np.arange(12.0).reshape(6, 2) ** 2,
        "user_codes": np.array([0, 0, 1, 1, 2, 2]),
        "epsilon": 1.0,
        "value_bound": 1.0,
        "residual_variance": 1.0,
    }
    with pytest.raises(InvalidInput) as caught:
        RegressionProblem(**(fine | changes))
    return str(caught.value)


def test_everything_that_is_wrong_is_said_at_once():
    said = refusal(
        features=np.ones((1, 2)), user_codes=[0], epsilon=0.0, value_bound=-1.0, residual_variance=np.inf
    )
    for name in ("at least as many rows", "epsilon", "value_bound", "residual_variance"):
        assert name in said.lower()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"features": np.ones(3)}, "at least one column"),
        ({"features": np.full((6, 2), np.nan)}, "finite"),
        ({"features": np.eye(2)[:1], "user_codes": [0]}, "at least as many rows"),
        ({"features": np.ones((60, 51)), "user_codes": np.zeros(60, int)}, "at most 50"),
        ({"user_codes": [0, 1]}, "one owner per row"),
        ({"feature_names": ("a", "a")}, "one different name"),
        ({"epsilon": 1e-200, "value_bound": 1e200}, "leaves float64"),
    ],
)
def test_refusals_say_what_is_wrong(changes, words):
    assert words in refusal(**changes)


def test_dependent_columns_are_named():
    rng = np.random.default_rng(0)
    level = rng.integers(0, 3, 40)
    features = np.column_stack([np.ones(40), *(level == k for k in range(3)), rng.standard_normal(40)])
    said = refusal(
        features=features,
        user_codes=np.arange(40) % 7,
        feature_names=("intercept", "low", "middle", "high", "age"),
    )
    assert "linearly dependent" in said
    assert "age" not in said
    assert sum(name in said for name in ("intercept ", "low ", "middle ", "high ")) == 1
    zero = np.column_stack([np.zeros(40), rng.standard_normal(40)])
    assert "x1 can be written" in refusal(features=zero, user_codes=np.arange(40))


def test_whitening_is_undone_exactly():
    problem = random_problem(5)
    w = problem.whitened
    assert w.row_matrix @ w.triangular_factor == pytest.approx(problem.features[w.row_order], abs=1e-12)
    assert w.row_matrix.T @ w.row_matrix == pytest.approx(
        problem.num_rows * np.eye(problem.num_features), abs=1e-10
    )
    c = np.random.default_rng(0).standard_normal((problem.num_features, problem.num_rows))
    assert np.array_equal(w.restore_order(w.sort_rows(c)), c)
    # Repair is the projection of the paper's formula, in the original coordinates.
    x = problem.features
    by_hand = c + (np.eye(x.shape[1]) - c @ x) @ np.linalg.pinv(x)
    assert w.restore_order(w.repair(w.sort_rows(c))) == pytest.approx(by_hand, abs=1e-10)


def test_a_small_repair_keeps_zeros():
    problem = random_problem(4)
    best = working_set.solve(problem).matrix
    off = best * (1.0 + 1e-8)
    repaired = problem.whitened.restore_order(problem.whitened.repair(problem.whitened.sort_rows(off)))
    assert np.array_equal(repaired != 0.0, best != 0.0)
    assert np.abs(repaired @ problem.features - np.eye(problem.num_features)).max() < 1e-12


def test_user_weights_add_up():
    problem = random_problem(7)
    found = sample_limiting.estimate_on_all_rows(problem)
    weights = estimate.compute_user_weights(problem, found)
    assert weights.max() == pytest.approx(found.largest_user_weight, rel=1e-12)
    users = tabulate_users(problem, found)
    for code, size, weight in zip(users.index, users["rows"], weights, strict=True):
        mine = problem.user_codes == code
        assert mine.sum() == size
        assert np.abs(found.matrix[:, mine]).sum() == pytest.approx(weight, rel=1e-12)
    assert estimate.compute_variances(problem, found).sum() == pytest.approx(found.variance, rel=1e-12)


def test_evaluate_refuses_other_shapes():
    problem = random_problem(7)
    with pytest.raises(InvalidInput, match="shape"):
        estimate.evaluate(problem, np.zeros((1, 2)), None, "", "")
    with pytest.raises(InvalidInput, match="finite"):
        estimate.evaluate(problem, np.full((problem.num_features, problem.num_rows), np.nan), None, "", "")


def test_another_question_about_the_same_rows_is_the_problem_made_anew():
    problem = random_problem(3)
    settings = problem.with_settings(0.3, 2.0, 5.0)
    anew = RegressionProblem(
        problem.features, problem.user_codes, 0.3, 2.0, 5.0, feature_names=problem.feature_names
    )
    assert settings == anew
    assert settings.histogram.sizes.tolist() == anew.histogram.sizes.tolist()
    assert working_set.solve(settings).variance == working_set.solve(anew).variance
    assert settings.whitened is problem.whitened
    with pytest.raises(InvalidInput, match=r"(?is)epsilon.*value_bound.*residual_variance"):
        problem.with_settings(0.0, -1.0, np.nan)
    with pytest.raises(InvalidInput, match="leaves float64"):
        problem.with_settings(1e-200, 1e200, 1.0)
