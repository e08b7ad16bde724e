"""A sum or a count: the best bound on what one user adds, and what it costs."""

from dpcore.total.nonnegative import (
    TotalChoice,
    TotalErrors,
    TotalProblem,
    compute_error_interval,
    compute_errors,
    find_best_choice,
    find_near_optimal_bounds,
    find_optimal_bound,
    find_short_bound,
    measure_errors,
)
