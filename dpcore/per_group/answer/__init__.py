"""The answer for a release per group as data. It imports the mathematics of `dpcore.per_group`, not the other way."""

from dpcore.per_group.answer.answer import build_answer, build_refused_answer, build_setting
from dpcore.per_group.answer.solution import (
    IGNORED_FIELD_NAMES,
    DistributionSolution,
    PerGroupSolution,
    compare_over_epsilon,
    solve,
)
