"""The answer for a plan as data. It imports the mathematics of `dpcore.plan`, never the other way."""

from dpcore.plan.answer.answer import build_answer
from dpcore.plan.solution import PlanSolution, compare_over_epsilon, solve
