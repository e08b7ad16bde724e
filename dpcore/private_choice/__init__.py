"""The choice of a bound from private data without leaking: DP releases of what the choice needs, and their cost.

``scores`` and ``table_scores`` (what makes a number the best one, as queries that one user moves by at most 1,
in whole steps), ``choice`` (one number by an exponential mechanism, and what that costs, exactly),
``private_range`` (a value range likewise), ``private_histogram`` (a DP histogram of the contribution
histogram), ``parameters`` (the fields of the page), ``release_bounds`` (requests for the bounds of other pages, and
the cost of a range) and ``comparison`` (both ways side by side). This file does no work.
"""

from dpcore.private_choice.parameters import choose_defaults

__all__ = ["choose_defaults"]
