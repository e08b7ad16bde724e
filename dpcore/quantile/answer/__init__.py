"""The answer for quantiles as data. It imports the mathematics of `dpcore.quantile`, which does not know it."""

from dpcore.quantile.answer.answer import build_answer, build_setting
from dpcore.quantile.answer.solution import IGNORED_FIELD_NAMES, QuantileSolution, compare_over_epsilon, solve
