import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from dpcore.regression import dual as regression_dual
from dpcore.regression import estimate, sample_limiting, working_set
from dpcore.regression.dual import price_entries
from tests.dpcore.regression.bank import random_problem, total_variance


def dual_value(problem, m, multipliers):
    """D(M, lambda) / unit noise, written out from the Lagrangian in the original coordinates."""
    whitened = problem.whitened
    prices = np.abs(whitened.row_matrix @ m)
    a = problem.trade_off
    values = np.maximum(prices - multipliers[whitened.row_users][:, None], 0.0)
    return (
        float((m * whitened.constraint_target).sum())
        - multipliers.sum() ** 2 / 4
        - (values**2).sum() / (4 * a)
    )


@pytest.mark.parametrize("seed", range(8))
def test_multipliers_are_the_best_for_their_m(seed):
    problem = random_problem(seed)
    rng = np.random.default_rng(seed)
    m = rng.standard_normal((problem.num_features, problem.num_features))
    priced = price_entries(problem.whitened, problem.trade_off, m)
    ours = dual_value(problem, m, priced.user_multipliers)
    assert ours == pytest.approx(priced.reward - priced.penalty, rel=1e-12)
    # Independent route: a general optimiser over lambda >= 0, from two starts.
    for start in (np.zeros(problem.num_users), 3.0 * priced.user_multipliers + 0.1):
        other = minimize(
            lambda x: -dual_value(problem, m, x), start, bounds=[(0, None)] * start.size, method="L-BFGS-B"
        )
        assert -other.fun <= ours + 1e-9 * abs(ours) + 1e-12
        assert -other.fun == pytest.approx(ours, rel=1e-3, abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 200), scale=st.floats(-8, 8), shift=st.integers(0, 10**6))
def test_no_feasible_matrix_is_below_any_bound(seed, scale, shift):
    problem = random_problem(seed)
    rng = np.random.default_rng(shift)
    d = problem.num_features
    multipliers = problem.whitened.constraint_target + 10.0**scale * rng.standard_normal((d, d))
    bound = estimate.compute_lower_bound(problem, multipliers)
    c = sample_limiting.estimate_on_all_rows(problem).matrix
    # Any C plus any matrix times the projection off the columns of X is feasible.
    noise = rng.standard_normal((d, problem.num_rows)) * 10.0 ** rng.uniform(-3, 0)
    fitted = noise @ problem.features @ np.linalg.pinv(problem.features)
    for feasible in (c, c + noise - fitted):
        assert bound <= total_variance(problem, feasible) * (1 + 1e-9)


@pytest.mark.parametrize("seed", [0, 4, 7, 12])
def test_hessian_is_the_derivative_of_the_gradient(seed):
    # Away from kinks the gradient E - A^T W(M) is linear, so a central difference is exact up to rounding.
    problem = random_problem(seed)
    whitened, a, d = problem.whitened, problem.trade_off, problem.num_features
    rng = np.random.default_rng(seed)
    m = whitened.constraint_target + rng.standard_normal((d, d)) * np.abs(whitened.constraint_target).max()
    curvature = regression_dual.compute_hessian(whitened, a, price_entries(whitened, a, m)) / (2.0 * a)
    step = 1e-7 * np.abs(m).max()
    for j in range(d):
        for r in range(d):
            moved = np.zeros((d, d))
            moved[r, j] = step
            ends = [
                whitened.row_matrix.T @ price_entries(whitened, a, m + s * moved).build_weights(a)
                for s in (1, -1)
            ]
            difference = (ends[0] - ends[1]) / (2 * step)
            column = curvature[:, j * d + r].reshape(d, d).T
            assert np.allclose(difference, column, rtol=1e-5, atol=1e-5 * np.abs(curvature).max())


@pytest.mark.parametrize("seed", [0, 9, 13])
def test_certificates_fail_on_half_answers(seed):
    problem = random_problem(seed)
    best = working_set.solve(problem)
    # The optimum's own multipliers, from a search that is asked again.
    dual = problem.whitened.triangular_factor @ _multipliers(problem)
    assert estimate.evaluate(problem, best.matrix, dual, "", "").certificate.proves(1e-5)
    broken = best.matrix.copy()
    broken[:, 0] += 1e-3 * np.abs(broken).max()
    refused = estimate.evaluate(problem, broken, dual, "", "")
    assert refused.infeasibility > 1e-9
    assert not refused.certificate.proves(0.5)
    # Feasible again, but no longer the best: the gap says so.
    w = problem.whitened.repair(problem.whitened.sort_rows(broken * 1.3))
    worse = estimate.evaluate(problem, problem.whitened.restore_order(w), dual, "", "")
    assert worse.infeasibility < 1e-9
    assert worse.certificate.relative_gap > 1e-6
    # Wrong multipliers prove nothing about the right matrix.
    assert not estimate.evaluate(problem, best.matrix, -dual, "", "").certificate.proves(0.5)


def _multipliers(problem):
    """Multipliers of X^T C^T = I by CVXPY, up to scale, which the bound does not need."""
    import cvxpy as cp

    c = cp.Variable((problem.num_features, problem.num_rows))
    users = np.unique(problem.user_codes)
    t = cp.Variable()
    constraint = c @ problem.features == np.eye(problem.num_features)
    sums = [cp.sum(cp.abs(c[:, np.flatnonzero(problem.user_codes == u)])) <= t for u in users]
    cp.Problem(cp.Minimize(problem.trade_off * cp.sum_squares(c) + t**2), [constraint, *sums]).solve(
        solver="CLARABEL"
    )
    return -constraint.dual_value.T
