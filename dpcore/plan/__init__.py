"""Several statistics of one table from one budget: the share of each, and its bound.

`parameters` has the released lines, the noise that a program adds for (epsilon, delta), and shares that add up in
binary. `curves` has the error of each line at every noise and bound, and `table` computes these curves from a data set.
`least_sum` divides the budget, and `solution` computes the releases of a program at those shares.
"""

from dpcore.plan.parameters import choose_defaults
