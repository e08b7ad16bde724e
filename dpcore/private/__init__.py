"""Choosing a bound from private data without leaking: DP releases of what the choice needs, and what they cost.

``bins`` (public bins of rows per user), ``copy`` (a private copy of the contribution histogram), ``consistency``
(noisy counts to a histogram that can be), ``regret`` (what choosing on a copy costs), ``ledger`` (what was
spent on one set of private data). This file does no work.
"""
