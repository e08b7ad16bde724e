"""Several numbers about one table from one budget: which share each takes, under which bound.

`lines` says what is released, `curves` what each costs at every noise and bound, `budget` how much noise a program
draws for (epsilon, delta), `least_sum` and `reach` divide the budget, `rounding` makes shares that add up in binary,
`table` reads the curves off a data set, `drawn` says what a program draws at those shares, `programs` hands that to
`dpcore.code`, and `one_truncation` has one bound on rows for all lines.
"""

from dpcore.plan.budget import Budget, Program
from dpcore.plan.curves import BoundCurve, Curve, RankCurve, TotalCurve
from dpcore.plan.drawn import DrawnLine, covered, drawn, total_amount, weighted_sum
from dpcore.plan.least_sum import Split, least_sum
from dpcore.plan.lines import Line, Released
from dpcore.plan.one_truncation import OneTruncation, best_common_bound
from dpcore.plan.parameters import Objective, PlanParameters, usual
from dpcore.plan.reach import largest_error, needed_budgets
from dpcore.plan.rounding import PARTS, in_parts
