"""The answer for a classifier as data. It imports the mathematics of `dpcore.training`, which does not know it."""

from dpcore.training.answer.answer import build_answer
from dpcore.training.answer.found import NOT_COMPARED, TrainingFound, against_epsilon, compute, find
