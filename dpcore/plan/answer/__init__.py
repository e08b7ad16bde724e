"""The answer for a plan as data. It imports the mathematics of `dpcore.plan`, which does not know it."""

from dpcore.plan.answer.answer import build_answer, with_noises
from dpcore.plan.answer.found import PlanFound, against_epsilon, find
