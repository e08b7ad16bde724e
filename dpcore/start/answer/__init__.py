"""The first trade-off as data. It imports the mathematics of `dpcore.total`, never the other way."""

from dpcore.start.answer.answer import build_answer
from dpcore.start.answer.found import CELLS, NOT_COMPARED, Tradeoff, against_epsilon, solve
