"""Several statistics of one table from one budget: the share of each, and its bound.

`parameters` has the released lines, the noise that a program adds for (epsilon, delta), and shares that add up in
binary. `curves` has the error of each line at every noise and bound, and `table` computes these curves from a data set.
`least_sum` divides the budget, and `solution` computes the releases of a program at those shares.
"""

from dpcore.plan.curves import BoundCurve, Curve, RankCurve, TotalCurve
from dpcore.plan.least_sum import Split, find_least_sum, find_needed_budgets, split_by_largest_error
from dpcore.plan.parameters import (
    NUM_PARTS,
    Budget,
    Line,
    LineStatistic,
    Objective,
    PlanParameters,
    Program,
    choose_defaults,
    round_to_parts,
)
from dpcore.plan.solution import AllocatedLine, allocate_lines, compute_total_amount, sum_weighted_squares
