"""A sum or a count: the best bound on what one user adds, and what it costs."""

from dpcore.total.nonnegative import (
    TotalChoice,
    TotalErrors,
    TotalProblem,
    best_bound,
    certify,
    critical_rank,
    error_interval,
    errors,
    find_near_optimal_bounds,
    measure_errors,
    optimal_bound,
    short_bound,
)
