"""How well a released model predicts, in expectation over its noise. Computed from private labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpcore.common.checks import Problems, refuse
from dpcore.contributions import FloatArray
from dpcore.regression.estimate import LinearEstimate
from dpcore.regression.problem import RegressionProblem


@dataclass(frozen=True)
class PredictionError:
    """Expected mean squared error of X beta~ against the labels, in its parts.

    Attributes:
        fit: (1/n) |y - X C y|^2, before noise, label unit squared.
        privacy: 2 b^2 tr(X^T X) / n, due to the Laplace noise, label unit squared.
    """

    fit: float
    privacy: float

    @property
    def total(self) -> float:
        """Return both parts together."""
        return self.fit + self.privacy


def numeric_labels(problem: RegressionProblem, labels: npt.ArrayLike) -> FloatArray:
    """Convert the labels to float64; NaN and infinite ones stay.

    Raises:
        InvalidInput: Not one number per row.
    """
    try:
        y = np.array(labels, dtype=np.float64)
    except (TypeError, ValueError):
        raise refuse("labels must be numbers") from None
    if y.shape != (problem.num_rows,):
        raise refuse(f"labels must be one number per row, {problem.num_rows:,}; got shape {y.shape}")
    return y


def checked_labels(problem: RegressionProblem, labels: npt.ArrayLike) -> FloatArray:
    """Convert the labels to float64, all of them finite.

    Raises:
        InvalidInput: Not one finite number per row (the first offender is named).
    """
    y = numeric_labels(problem, labels)
    if not np.all(np.isfinite(y)):
        raise refuse("labels must be finite numbers", location=f"row {int(np.argmax(~np.isfinite(y))) + 1}")
    return y


def prediction_error(
    problem: RegressionProblem, estimate: LinearEstimate, labels: npt.ArrayLike
) -> PredictionError:
    """Compute the mean squared error of the released model's predictions, exactly in expectation over the noise.

    Args:
        problem: The question.
        estimate: C and its noise.
        labels: y, shape (num_rows,), as they enter the release (clipped).

    Raises:
        InvalidInput: The labels do not fit.
    """
    y = checked_labels(problem, labels)
    fitted = problem.features @ (estimate.matrix @ y)
    squares = float(np.sum(problem.whitened.units**2))  # tr(X^T X) / n
    return PredictionError(float(np.mean((y - fitted) ** 2)), estimate.noise.variance * squares)


def ordinary_residual_variance(features: npt.ArrayLike, labels: npt.ArrayLike) -> float:
    """Estimate sigma^2 by ordinary least squares, residual sum of squares over n - d. Computed from private labels.

    Args:
        features: X, shape (num_rows, num_features), of full rank.
        labels: y, shape (num_rows,).

    Raises:
        InvalidInput: Shapes differ, or there are no more rows than features.
    """
    x, y = np.asarray(features, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    with Problems() as problems:
        if x.ndim != 2 or y.shape != x.shape[:1]:
            problems.add(f"labels must be one number per row of the features; got {y.shape} for {x.shape}")
        elif x.shape[0] <= x.shape[1]:
            problems.add("the noise cannot be estimated: there are no more rows than features")
    # The fit does not depend on the units of the features, but what `lstsq` takes for rounding does.
    scale = np.maximum(np.abs(x).max(axis=0), np.finfo(float).tiny)
    residuals = y - (x / scale) @ np.linalg.lstsq(x / scale, y, rcond=None)[0]
    return float(np.sum(residuals**2) / (x.shape[0] - x.shape[1]))
