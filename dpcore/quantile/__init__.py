"""Quantiles of user-weighted values by the exponential mechanism: bounds on rows per user, weights, errors."""

from dpcore.quantile.mechanism import (
    QuantileProblem,
    compute_output,
    compute_standard_error,
    compute_subsample_errors,
    list_assumptions,
)
from dpcore.quantile.parameters import choose_defaults
from dpcore.quantile.rows import QuantileOutput, WeightKind
