"""Several statistics of one table from one budget: the share of each, and its bound.

`lines` says what is released, `curves` the error of each line at every noise and bound, `budget` how much noise
a program adds for (epsilon, delta), `find_least_sum` and `reach` divide the budget, `rounding` makes shares that add
up in binary, `table` computes the curves from a data set, `drawn` computes what a program releases at those
shares, `programs` hands that to `dpcore.code`, and `one_truncation` has one bound on rows for all lines.
"""

from dpcore.plan.curves import BoundCurve, Curve, RankCurve, TotalCurve
from dpcore.plan.drawn import (
    AllocatedLine,
    allocate_lines,
    compute_total_amount,
    describe_coverage,
    sum_weighted_squares,
)
from dpcore.plan.least_sum import Split, find_least_sum, find_needed_budgets, split_by_largest_error
from dpcore.plan.lines import NUM_PARTS, Budget, Line, LineStatistic, Program, round_to_parts
from dpcore.plan.one_truncation import OneTruncation, find_common_bound
from dpcore.plan.parameters import Objective, PlanParameters, choose_defaults
