"""The gain of weights over caps as data. It imports the mathematics of `dpcore.gap_examples`, never the other way."""

from dpcore.gap_examples.answer.answer import build_answer
from dpcore.gap_examples.answer.solution import GapSolution, compare_over_epsilon, solve
