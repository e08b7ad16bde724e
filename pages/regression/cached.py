"""Calls of the core that a rerun of the Regression page repeats; keyed as in `pages.shared.base.cache`, and why."""

from __future__ import annotations

import numpy as np

from dpcore.answer.stage import Stage
from dpcore.dataset import Dataset, LabelledRows
from dpcore.regression.answer import RegressionSolution, compute
from dpcore.regression.estimate import LinearEstimate, ordinary_residual_variance
from dpcore.regression.parameters import RegressionGenerator, RegressionParameters, rows_of
from dpcore.regression.problem import RegressionProblem
from dpcore.regression.sample_limiting import CapDraws
from pages.regression.upload import RegressionData
from pages.shared.base.cache import cached


@cached(max_entries=4, own_data=True)
def regression_data(generator: RegressionGenerator) -> RegressionData:
    """Generated features, labels and owners."""
    data, coefficients = generator.dataset()
    return RegressionData(data, data.digest, coefficients)


@cached(max_entries=16, own_data=True)
def regression_variance(digest: str, lower: float, upper: float, _table: LabelledRows) -> float:
    """sigma^2 by ordinary least squares on labels clipped to [lower, upper]."""
    return ordinary_residual_variance(_table.features, np.clip(_table.labels, lower, upper))


@cached(max_entries=2, own_data=True)
def regression_rows(digest: str, _table: LabelledRows) -> RegressionProblem:
    """Features and owners, checked and sorted once for every epsilon, range and variance."""
    return rows_of(_table)


@cached(max_entries=3, own_data=True)
def regression_found(
    known: tuple[object, ...],
    parameters: RegressionParameters,
    stage: Stage,
    _data: Dataset,
    _problem: RegressionProblem,
    _ours: LinearEstimate,
    _draws: CapDraws,
) -> RegressionSolution:
    """Return what the page shows; ``known`` names the data and what the searches have found."""
    return compute(_data, parameters, _problem, _ours, _draws, stage)
