"""A mean under a bound on rows per user: the best cap, the best smooth weights, and what each costs."""

from dpcore.mean.models import MeanError
from dpcore.mean.parameters import Clamp, Counts, Likeness, MeanParameters, VarianceSource, choose_defaults
from dpcore.mean.public_counts import (
    ASSUMPTIONS,
    NEIGHBOURS,
    CapChoice,
    MeanProblem,
    SmoothChoice,
    Target,
    WeightGrowth,
    compute_capped_error,
    compute_capped_variance,
    compute_row_weight,
    compute_smooth_error,
    compute_smooth_variance,
    find_best_cap,
    find_best_smooth,
    find_cap_stretches,
    find_caps_within,
    find_weight_growth,
)
