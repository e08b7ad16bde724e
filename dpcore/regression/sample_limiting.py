"""Sample limiting, which people use today: ordinary least squares on at most h random rows of each user.

The draw is made before the labels are seen, so the noise is exactly that of the drawn rows. The cost of a cap is an
expectation over draws, estimated from a few draws that are the same for all caps. A draw puts a user's rows in a random
order and keeps the first h.

Source: Epasto et al. 2020, section 5.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpcore.common.checks import refuse, require
from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.common.wording import format_count
from dpcore.contributions import FloatArray, IntArray, build_log_grid, rank_within_users
from dpcore.regression.estimate import ErrorTarget, LinearEstimate, check_labels, evaluate_repaired_weights
from dpcore.regression.problem import RegressionProblem, Whitened

DEPENDENCE_TOLERANCE = 1e-12
"""Smallest over largest eigenvalue of the drawn rows' Gram matrix below which rank is lost."""


@dataclass(frozen=True, eq=False)
class CapDraws:
    """Sums over the weights of each draw, without sigma^2, B and epsilon; NaN where a draw's rows lost rank.

    Attributes:
        caps: Ascending, shape (k,).
        squared_weight_sums: Sum of c^2, shape (draws, k), 1 / (unit of the feature)^2.
        squared_largest_user_weights: (max_l sum |c|)^2, shape (draws, k), same unit.
        mean_squared_residuals: (1/n) |y - X C y|^2, shape (draws, k), label unit squared; NaN where no labels were
            given. Computed from private labels.
    """

    caps: IntArray
    squared_weight_sums: FloatArray
    squared_largest_user_weights: FloatArray
    mean_squared_residuals: FloatArray

    @property
    def num_draws(self) -> int:
        """Return the number of draws that were finished for every cap; 0 if the study was stopped in the first."""
        return int(self.squared_weight_sums.shape[0])


_EMPTY = np.empty((0, 0))
NO_DRAWS = CapDraws(np.empty(0, dtype=np.int64), _EMPTY, _EMPTY, _EMPTY)
"""The draws of a study that has not begun."""


@dataclass(frozen=True, eq=False)
class CapCurve:
    """The variances of each cap, averaged over the draws whose rows have full rank.

    Attributes:
        caps: Ascending, shape (k,).
        num_full_rank_draws: Draws that were averaged, shape (k,). Where there is none, the means are NaN.
        num_rank_deficient_draws: Draws whose rows are linearly dependent: no estimate exists there, shape (k,).
        sampling_variances: Mean over draws, summed over coefficients, (label unit / feature unit)^2.
        privacy_variances: Mean over draws, same unit.
        squared_prediction_errors: Mean over draws of the expected squared error of the prediction, label unit squared;
            NaN where no labels were given. Computed from private labels.
        prediction_noise_variances: The part of it that is privacy noise.
    """

    caps: IntArray
    num_full_rank_draws: IntArray
    num_rank_deficient_draws: IntArray
    sampling_variances: FloatArray
    privacy_variances: FloatArray
    squared_prediction_errors: FloatArray
    prediction_noise_variances: FloatArray

    @property
    def variances(self) -> FloatArray:
        """Return sampling plus privacy variance at each cap, the mean of what was drawn."""
        return np.asarray(self.sampling_variances + self.privacy_variances)

    @property
    def valid_mask(self) -> npt.NDArray[np.bool_]:
        """Return True for each cap at which every draw gave an estimate; the largest one keeps all rows and does."""
        return np.asarray((self.num_rank_deficient_draws == 0) & (self.num_full_rank_draws > 0))

    def get_squared_errors(self, target: ErrorTarget) -> FloatArray:
        """Return the errors at each cap, shape (k,).

        For coefficients these are mean total variances, for predictions mean squared errors.
        """
        return self.variances if target is ErrorTarget.COEFFICIENTS else self.squared_prediction_errors

    def list_costs(self, cap_index: int) -> list[float]:
        """Return [total variance, privacy variance, prediction error] of the cap at this index."""
        return [
            float(c[cap_index])
            for c in (self.variances, self.privacy_variances, self.squared_prediction_errors)
        ]

    def find_best_index(self, target: ErrorTarget) -> int:
        """Return the index of the cap of least error, of those whose draws all have full rank.

        For predictions it is the paper's choice, which depends on labels.
        """
        errors = self.get_squared_errors(target)
        return int(np.argmin(np.where(self.valid_mask & ~np.isnan(errors), errors, np.inf)))

    @property
    def best_index(self) -> int:
        """Return the index of the cap of least mean variance."""
        return self.find_best_index(ErrorTarget.COEFFICIENTS)

    @property
    def max_contributions(self) -> int:
        """Return the cap of least mean variance."""
        return int(self.caps[self.best_index])


def solve_least_squares(row_matrix: FloatArray, constraint_target: FloatArray) -> FloatArray | None:
    """Return W of ordinary least squares, rows (rows^T rows)^-1 E, or None if the rows are linearly dependent."""
    gram_matrix = row_matrix.T @ row_matrix
    eigenvalues = np.linalg.eigvalsh(gram_matrix)
    if not eigenvalues[0] > DEPENDENCE_TOLERANCE * eigenvalues[-1]:
        return None
    return np.asarray(row_matrix @ np.linalg.solve(gram_matrix, constraint_target))


def draw_ranks(whitened: Whitened, seed: int) -> IntArray:
    """Return for each sorted row its rank, from 0 on, in a random order of its user's rows, shape (n,)."""
    return rank_within_users(whitened.row_users, np.random.default_rng(seed).random(whitened.row_users.size))


def draw_estimate(problem: RegressionProblem, max_contributions: int, seed: int = 0) -> LinearEstimate:
    """Draw once the rows that sample limiting keeps, and evaluate ordinary least squares on them.

    Args:
        problem: The question.
        max_contributions: h, rows kept of each user at most, at least 1.
        seed: Of the draw, at least 0.

    Raises:
        InvalidInput: The cap is not a whole number of at least 1; the drawn rows are linearly dependent.
    """
    require.whole(1, 10**12, max_contributions=max_contributions)
    whitened = problem.whitened
    kept_rows = np.flatnonzero(draw_ranks(whitened, seed) < max_contributions)
    kept_weights = solve_least_squares(whitened.row_matrix[kept_rows], whitened.constraint_target)
    if kept_weights is None:
        rows_phrase = format_count(max_contributions, "row")
        rank_deficient_sentence = (
            f"with at most {rows_phrase} per user, this draw's rows are linearly dependent"
        )
        raise refuse(rank_deficient_sentence, "", "Raise the bound, or draw again")
    w = np.zeros(whitened.row_matrix.shape)
    w[kept_rows] = kept_weights
    return evaluate_repaired_weights(problem, w)


def _list_caps(problem: RegressionProblem, caps: Sequence[int]) -> IntArray:
    """Return the caps to try, ascending: the given ones and the largest user's size.

    Without given ones, up to 25 from 1 to that size.
    """
    largest_size = problem.histogram.max_size
    if not caps:
        return np.unique(np.round(build_log_grid(1.0, float(largest_size), 25)).astype(np.int64))
    return np.unique(np.minimum(np.array((*caps, largest_size), dtype=np.int64), largest_size))


def try_caps(
    problem: RegressionProblem,
    labels: npt.ArrayLike | None = None,
    num_draws: int = 10,
    caps: Sequence[int] = (),
    *,
    progress: Progress = silent,
    should_stop: ShouldStop = never,
) -> CapDraws:
    """For each cap, draw the rows that are kept and fit them, several times.

    The result serves any sigma^2, B and epsilon.

    Args:
        problem: Its features and owners are used, nothing else.
        labels: y, shape (num_rows,), as they enter the release, for prediction errors; private.
        num_draws: Draws per cap, at least 1.
        caps: Caps to try, whole numbers of at least 1; a log-spaced choice from 1 to the largest user if empty. Caps
            above the largest user count as that.
        progress: Told the share of draws done.
        should_stop: Asked between draws; what is done by then is kept.

    Raises:
        InvalidInput: The labels do not fit.
    """
    sorted_labels = None if labels is None else check_labels(problem, labels)[problem.whitened.row_order]
    tried_caps = _list_caps(problem, caps)
    costs_per_draw = np.full((num_draws, tried_caps.size, 3), np.nan)
    # The largest cap keeps all rows.
    costs_per_draw[:, -1] = _compute_costs(problem, np.arange(problem.num_rows), sorted_labels)
    for draw_index in range(num_draws):
        random_ranks = draw_ranks(problem.whitened, draw_index)
        for cap_index, cap in enumerate(tried_caps[:-1]):
            if should_stop():
                return CapDraws(tried_caps, *np.moveaxis(costs_per_draw[:draw_index], 2, 0))
            costs_per_draw[draw_index, cap_index] = _compute_costs(
                problem, np.flatnonzero(random_ranks < cap), sorted_labels
            )
        progress((draw_index + 1) / num_draws)
    return CapDraws(tried_caps, *np.moveaxis(costs_per_draw, 2, 0))


def average_draws(problem: RegressionProblem, cap_draws: CapDraws) -> CapCurve:
    """Average the variances and errors of each cap over draws, at the problem's sigma^2, B and epsilon.

    The problem must have the features and owners of the draws. Prediction errors are right for another epsilon or
    sigma^2, and for another B if this clips no label differently.
    """
    sampling_variances = problem.residual_variance * cap_draws.squared_weight_sums
    privacy_variances = problem.unit_noise * cap_draws.squared_largest_user_weights
    full_rank_mask = ~np.isnan(sampling_variances)
    num_full_rank = full_rank_mask.sum(axis=0)
    # Noise of variance v on each coefficient adds v tr(X^T X) / n to the squared error of predictions.
    noise_factor = problem.total_mean_square / problem.num_features
    squared_prediction_errors = cap_draws.mean_squared_residuals + privacy_variances * noise_factor
    draw_costs = np.stack((sampling_variances, privacy_variances, squared_prediction_errors), axis=2)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean_costs = np.where(full_rank_mask[..., None], draw_costs, 0.0).sum(axis=0).T / num_full_rank
    averages = np.vstack((mean_costs, mean_costs[1] * noise_factor))
    return CapCurve(cap_draws.caps, num_full_rank, cap_draws.num_draws - num_full_rank, *averages)


def _compute_costs(
    problem: RegressionProblem, kept_rows: IntArray, sorted_labels: FloatArray | None
) -> tuple[float, float, float]:
    """Fit the kept rows; return (sum c^2, (largest user weight)^2, (1/n) |y - X C y|^2).

    All are NaN if the rows are linearly dependent, the last one also without labels.
    """
    whitened = problem.whitened
    kept_weights = solve_least_squares(whitened.row_matrix[kept_rows], whitened.constraint_target)
    if kept_weights is None:
        return (np.nan, np.nan, np.nan)
    user_weights = np.bincount(whitened.row_users[kept_rows], weights=np.abs(kept_weights).sum(axis=1))
    mean_squared_residual = np.nan
    if sorted_labels is not None:
        # X = A R.
        coefficients = kept_weights.T @ sorted_labels[kept_rows]
        fitted_labels = whitened.row_matrix @ (whitened.triangular_factor @ coefficients)
        mean_squared_residual = float(np.mean((sorted_labels - fitted_labels) ** 2))
    return float(np.vdot(kept_weights, kept_weights)), float(user_weights.max()) ** 2, mean_squared_residual


def estimate_on_all_rows(problem: RegressionProblem) -> LinearEstimate:
    """Evaluate ordinary least squares on all rows, without a cap."""
    return evaluate_repaired_weights(problem, problem.whitened.solve_least_squares())


def estimate_on_averages(problem: RegressionProblem) -> LinearEstimate:
    """Evaluate ordinary least squares on one averaged row per user, all users with the same weight.

    Averages of features and labels obey the same model, so the estimator is unbiased.

    Raises:
        InvalidInput: The averages are linearly dependent.
    """
    whitened = problem.whitened
    average_rows = whitened.sum_per_user(whitened.row_matrix) / whitened.sizes[:, None]
    average_weights = solve_least_squares(average_rows, whitened.constraint_target)
    if average_weights is None:
        users_text = format_count(problem.num_users, "user")
        raise refuse(f"the averaged features of {users_text} are linearly dependent", "", "Use rows instead")
    row_weights: FloatArray = np.repeat(average_weights / whitened.sizes[:, None], whitened.sizes, axis=0)
    return evaluate_repaired_weights(problem, row_weights)
