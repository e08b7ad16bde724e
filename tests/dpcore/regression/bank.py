"""A bank of small problems that every method runs."""

import numpy as np

from dpcore.regression import sample_limiting
from dpcore.regression.problem import RegressionProblem
from dpcore.regression.sample_limiting import CapCurve


def random_problem(seed: int) -> RegressionProblem:
    """Draw a small problem of varied shape, units and balance between the two kinds of noise; users in no order."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 5))
    n = int(rng.integers(12, 60))
    m = int(rng.integers(d + 2, 13))
    features = rng.standard_normal((n, d)) @ (np.eye(d) + 0.5 * rng.standard_normal((d, d)))
    if seed % 3 == 1:
        features[:, 0] = 1.0  # An intercept.
    if seed % 3 == 2:
        features = np.round(features)  # Many rows alike; some columns nearly one-hot.
        features[np.arange(d), np.arange(d)] += 1.0
    weights = np.arange(1, m + 1) ** -1.2
    owners = rng.choice(m, size=n, p=weights / weights.sum())
    owners[rng.permutation(n)[:m]] = np.arange(m)  # Nobody is left out.
    residual_variance = 0.0 if seed % 10 == 9 else float(10.0 ** rng.uniform(-2, 2))
    return RegressionProblem(
        features=features,
        user_codes=owners * 7 + 3,
        epsilon=float(10.0 ** rng.uniform(-0.5, 1.0)),
        value_bound=float(10.0 ** rng.uniform(-0.5, 0.5)),
        residual_variance=residual_variance,
    )


def total_variance(problem: RegressionProblem, c: np.ndarray) -> float:
    """Compute theorem 6, written out with loops: independent of the package."""
    per_user: dict[int, float] = {}
    for i, owner in enumerate(problem.user_codes.tolist()):
        per_user[owner] = per_user.get(owner, 0.0) + sum(abs(float(x)) for x in c[:, i])
    b = problem.value_bound / problem.epsilon * max(per_user.values())
    return problem.residual_variance * float((c * c).sum()) + 2.0 * c.shape[0] * b * b


def estimate_caps(problem: RegressionProblem, *arguments, **options) -> CapCurve:
    """Estimate the variances of caps, in expectation over draws; arguments as of `sample_limiting.try_caps`."""
    return sample_limiting.average_draws(problem, sample_limiting.try_caps(problem, *arguments, **options))
