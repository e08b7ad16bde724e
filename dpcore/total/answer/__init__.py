"""The answer for a sum or a count as data. It imports the mathematics of `dpcore.total`, which does not know it."""

from dpcore.total.answer.answer import build_answer, build_refused_answer, build_setting
from dpcore.total.answer.solution import (
    IGNORED_FIELD_NAMES,
    SignedSolution,
    TotalSolution,
    compare_over_epsilon,
    explain_refusal,
    solve,
)
