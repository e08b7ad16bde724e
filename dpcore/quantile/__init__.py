"""Quantiles of user-weighted values by the exponential mechanism: bounds on rows per user, weights, errors."""

from dpcore.quantile.distribution import QuantileOutput
from dpcore.quantile.mechanism import (
    QuantileProblem,
    assumptions,
    output,
    standard_error,
    subsample_errors,
)
from dpcore.quantile.parameters import choose_defaults
from dpcore.quantile.rows import WeightKind
