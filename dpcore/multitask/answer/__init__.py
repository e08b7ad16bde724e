"""The answer for many tasks as data. It imports the mathematics of `dpcore.multitask`, never the other way."""

from dpcore.multitask.answer.answer import build_answer
from dpcore.multitask.answer.solution import (
    IGNORED_FIELD_NAMES,
    MultitaskSolution,
    compare_over_epsilon,
    solve,
)
