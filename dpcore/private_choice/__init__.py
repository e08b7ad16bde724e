"""Choosing a bound from private data without leaking: DP releases of what the choice needs, and what they cost.

``bins`` (public bins of rows per user), ``private_histogram`` (a private copy of the contribution histogram),
``consistency`` (noisy counts to a histogram that can be), ``regret`` (what choosing on a copy costs); ``scores`` (what
makes a number the best one, as queries that one user moves by at most 1, counted in the steps of ``fixed_point``;
``cap_distance`` for a cap), ``choice`` (one number by an exponential mechanism), ``choice_regret`` (what that costs,
exactly), ``parameters`` and ``comparison`` (for the page); ``table_scores`` for a mean whose users differ. This file
does no work.
"""

from dpcore.private_choice.parameters import choose_defaults

__all__ = ["choose_defaults"]
