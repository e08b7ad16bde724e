"""The first trade-off as data. It imports the mathematics of `dpcore.total`, never the other way."""

from dpcore.start.answer.answer import NOT_COMPARED, against_epsilon, build_answer, solve
