"""Choosing privately, the answer as data. It imports the mathematics of `dpcore.private_choice`, which knows it not."""

from dpcore.private_choice.answer.answer import build_answer
from dpcore.private_choice.comparison import PrivateSolution, solve
