"""A sum or a count: the best bound on what one user adds, and what it costs."""

from dpcore.total.nonnegative import (
    TotalChoice,
    TotalErrors,
    TotalProblem,
    best_bound,
    bounds_within,
    certify,
    critical_rank,
    error_interval,
    errors,
    measured,
    optimal_bound,
    short_bound,
)
