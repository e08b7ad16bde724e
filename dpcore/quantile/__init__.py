"""Quantiles of user-weighted values by the exponential mechanism: bounds on rows per user, weights, errors."""

from dpcore.quantile.mechanism import (
    QuantileProblem,
    compute_subsample_errors,
    list_assumptions,
    output,
    standard_error,
)
from dpcore.quantile.parameters import choose_defaults
from dpcore.quantile.rows import QuantileOutput, WeightKind
