"""The error bounds of many tasks under the chosen weights, beside uniform ones.

A program that a person takes away (`dpcore.report.script`), here with an example of a question and data.
"""

# %% What it uses
import math

import numpy as np

from dpcore.common import wording
from dpcore.multitask import budget
from dpcore.multitask.fit import WeightRule
from dpcore.multitask.graph import TaskGraph, without_empty_tasks
from dpcore.multitask.parameters import MultitaskParameters, draw_pairs
from dpcore.multitask.problem import Allocation, Loss, TaskProblem
from dpcore.report.scaffold import BLUE, GREY, ORANGE, figure, keep, line, point, say

# %% The question, as it was entered
parameters = MultitaskParameters(epsilon=1.0)

# %% The data
generator = parameters.generator
assert generator is not None
pairs, _ = without_empty_tasks(draw_pairs(generator, parameters.graph_seed))
graph = TaskGraph.from_pairs(pairs, generator.num_users)

# %% The answer
budgets = budget.compare(parameters.target)
problem = TaskProblem.from_graph(graph, budgets.exact, parameters.loss.loss)
rule = WeightRule(parameters.exponent, parameters.fit, parameters.log_constant)
chosen, uniform = rule.weights(problem), rule.with_exponent(0.0).weights(problem)


def total(allocation: Allocation) -> float:
    """Error bound of all tasks together, relative to uniform weights; for convex losses the root of the sum."""
    ratio = allocation.total_bound / uniform.total_bound
    return math.sqrt(ratio) if problem.loss is Loss.CONVEX else ratio


# What was chosen where its total is within 5 % of the smallest over μ, else the best; on large graphs few μ are tried.
exponents = np.linspace(0.0, 1.0, 41 if graph.num_pairs <= 1_000_000 else 9)
totals = [total(rule.with_exponent(float(mu)).weights(problem)) for mu in exponents]
best = int(np.argmin(totals))
exponent, ratio = parameters.exponent, total(chosen)
if ratio > 1.05 * totals[best]:
    exponent, ratio = float(exponents[best]), totals[best]
used = chosen.budget_use[graph.tasks_per_user > 0] / problem.budget
sign = "\u2212" if ratio < 1.0 else "+"
change = f"{sign}{wording.percent(abs(1.0 - ratio))}"
say("Exponent μ", wording.entered(exponent))
say("Total error bound", change if ratio <= 2.0 else f"{wording.number(ratio, 2)}\u00d7")
say("Budget used", wording.percent(float(used.mean())))
say("Users clipped", wording.percent(chosen.share_clipped) if chosen.share_clipped else "none")
say("User budget β", wording.number(budgets.exact))

# %% Figures
ranks = np.arange(1, graph.num_tasks + 1)
fig = figure("How large the tasks are", "Rank of the task, largest first", "Users of the task")
line(fig, "Users", ranks, np.sort(graph.task_sizes)[::-1], BLUE)
keep(fig, "many-tasks-sizes")

fig = figure(
    "Total error bound over the exponent", "Exponent μ", "Total bound (1 = uniform weights)", log="y"
)
line(fig, "Total bound", exponents, totals, BLUE)
point(fig, "Chosen", parameters.exponent, total(chosen), ORANGE)
keep(fig, "many-tasks-exponents")

root = math.sqrt(problem.budget)
fig = figure("Weight against the size of the task", "Users of the task", "Weight (1 = root of β)")
order = np.argsort(graph.task_sizes)
line(fig, "Chosen", graph.task_sizes[order], chosen.mean_weights[order] / root, BLUE)
line(fig, "Uniform weights", graph.task_sizes[order], uniform.mean_weights[order] / root, GREY)
keep(fig, "many-tasks-weights")
