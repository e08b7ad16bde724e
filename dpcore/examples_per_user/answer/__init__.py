"""The answer for examples per user as data. It imports the mathematics of `dpcore.examples_per_user`."""

from dpcore.examples_per_user.answer.answer import build_answer
from dpcore.examples_per_user.answer.solution import (
    IGNORED_FIELD_NAMES,
    compare_over_epsilon,
    solve,
    solve_quickly,
)
