"""The answer for a mean as data. It imports the mathematics of `dpcore.mean`, which does not know it."""

from dpcore.mean.answer.answer import build_answer, build_setting
from dpcore.mean.answer.solution import IGNORED_FIELD_NAMES, MeanSolution, compare_over_epsilon, solve
