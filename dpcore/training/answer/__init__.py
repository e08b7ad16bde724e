"""The answer for a classifier as data. It imports the mathematics of `dpcore.training`, never the other way."""

from dpcore.training.answer.answer import build_answer
from dpcore.training.answer.solution import IGNORED_FIELD_NAMES, TrainingSolution, compare_over_epsilon, solve
