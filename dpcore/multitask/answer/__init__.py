"""The answer for many tasks as data. It imports the mathematics of `dpcore.multitask`, which does not know it."""

from dpcore.multitask.answer.answer import build_answer
from dpcore.multitask.answer.found import NOT_COMPARED, MultitaskFound, against_epsilon, find
