"""The answer for data owners as data. It imports the mathematics of `dpcore.data_owners`, which does not know it."""

from dpcore.data_owners.answer.answer import build_answer
from dpcore.data_owners.answer.solution import (
    IGNORED_FIELD_NAMES,
    OwnersSolution,
    compare_over_epsilon,
    solve,
)
