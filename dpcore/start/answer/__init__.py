"""The first trade-off as data. It imports the mathematics of `dpcore.total`, never the other way."""

from dpcore.start.answer.answer import CELLS, NOT_COMPARED, Tradeoff, against_epsilon, build_answer, solve
