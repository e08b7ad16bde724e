"""Several numbers about one table from one budget: which share each takes, under which bound.

`lines` says what is released, `curves` what each costs at every noise and bound, `budget` how much noise a program
draws for (epsilon, delta), `least_sum`, `reach` and `largest` divide the budget, `rounding` makes shares that add up
in binary, and `table` reads the curves off a data set.
"""

from dpcore.plan.budget import Budget, Program
from dpcore.plan.curves import BoundCurve, Curve, RankCurve, TotalCurve
from dpcore.plan.least_sum import Split, least_sum
from dpcore.plan.lines import Line, Released
from dpcore.plan.parameters import Objective, PlanParameters
from dpcore.plan.reach import largest_error, needed_budgets
from dpcore.plan.rounding import PARTS, in_parts
