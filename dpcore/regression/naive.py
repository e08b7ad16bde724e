"""What people use today when labels are private and users have several rows. No claim to be the best."""

from __future__ import annotations

import numpy as np

from dpcore.common import wording
from dpcore.common.checks import refuse
from dpcore.contributions import FloatArray
from dpcore.regression import sample_limiting
from dpcore.regression.estimate import LinearEstimate, evaluate
from dpcore.regression.problem import RegressionProblem


def all_rows(problem: RegressionProblem) -> LinearEstimate:
    """Ordinary least squares on all rows, noise for the user who moves it most."""
    c = problem.whitened.original(problem.whitened.repaired(problem.whitened.ordinary()))
    return evaluate(problem, c, None, "ordinary least squares, all rows", "A closed form.")


def user_averages(problem: RegressionProblem) -> LinearEstimate:
    """Fit ordinary least squares to one averaged row per user, all users weighing the same.

    Averages of features and labels obey the same model, so the estimator is unbiased.

    Raises:
        InvalidInput: The averages are linearly dependent.
    """
    whitened = problem.whitened
    averages = whitened.per_user(whitened.rows) / whitened.sizes[:, None]
    weights = sample_limiting.least_squares(averages, whitened.target)
    if weights is None:
        message = (
            f"the averaged features of {wording.counted(problem.num_users, 'user')} are linearly dependent"
        )
        raise refuse(message, remedy="Use rows instead of averages")
    shared: FloatArray = np.repeat(weights / whitened.sizes[:, None], whitened.sizes, axis=0)
    c = whitened.original(whitened.repaired(shared))
    return evaluate(problem, c, None, "ordinary least squares on user averages", "A closed form.")
