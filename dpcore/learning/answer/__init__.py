"""The answer for a capped learner as data. It imports the mathematics of `dpcore.learning`, which does not know it."""

from dpcore.learning.answer.answer import build_answer, build_setting
from dpcore.learning.answer.solution import (
    IGNORED_FIELD_NAMES,
    compare_over_epsilon,
    find_choices_by_term,
    solve,
)
