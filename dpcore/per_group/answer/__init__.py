"""The answer for a release per group as data. It imports the mathematics of `dpcore.per_group`, not the other way."""

from dpcore.per_group.answer.answer import build_answer, build_refused_answer, build_setting
from dpcore.per_group.answer.solution import (
    NOT_COMPARED,
    DistributionSolution,
    PerGroupSolution,
    compare_over_epsilon,
    solve,
)
