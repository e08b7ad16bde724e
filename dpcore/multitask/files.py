"""Weights to take away: per task, per user and task, and code that applies them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dpcore.multitask.problem import Allocation, UserRule

ROWS_AT_A_TIME = 100_000


def _quoted(text: str) -> str:
    # A cell that begins like a formula would be run by a spreadsheet.
    text = "'" + text if text[:1] in "=+-@\t\r" else text
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',"\r\n') else text


def task_weights_csv(allocation: Allocation, label: str, names: Sequence[str] | None = None) -> str:
    """One line per task.

    Columns: task (code or name), users (n_i), factor (of w_ij = factor x user factor), mean_weight
    (W_i / n_i), bound (error bound up to a common constant), share_of_bound.

    Args:
        allocation: The weights.
        label: What the numbers are (`dpcore.common.privacy.Disclosure.label`), written as a comment on top.
        names: Names of the tasks; codes where None.
    """
    bounds = allocation.task_bounds
    columns = (
        allocation.problem.task_sizes.tolist(),
        allocation.task_weights.tolist(),
        allocation.mean_weights.tolist(),
        bounds.tolist(),
        (bounds / bounds.sum()).tolist(),
    )
    heads = [str(i) for i in range(bounds.size)] if names is None else [_quoted(str(n)) for n in names]
    lines = [f"# {label}", "task,users,factor,mean_weight,bound,share_of_bound"]
    lines += [f"{h},{n},{f!r},{w!r},{b!r},{s!r}" for h, n, f, w, b, s in zip(heads, *columns, strict=True)]
    return "\n".join(lines) + "\n"


def pair_weights_csv(allocation: Allocation, label: str) -> Iterator[str]:
    """user,task,weight of every pair in pieces, by code, in the graph's order; never all in memory.

    Args:
        allocation: The weights, on a graph.
        label: As in `task_weights_csv`.
    """
    graph = allocation.problem.required_graph()
    scales = allocation.user_scales
    assert scales is not None
    yield f"# {label}\nuser,task,weight\n"
    for first in range(0, graph.num_pairs, ROWS_AT_A_TIME):
        at = slice(first, first + ROWS_AT_A_TIME)
        users, tasks = graph.users[at], graph.tasks[at]
        weights = allocation.task_weights[tasks] * scales[users]
        rows = zip(users.tolist(), tasks.tolist(), weights.tolist(), strict=True)
        yield "".join(f"{u},{t},{w!r}\n" for u, t, w in rows)


_CLIPPED = """\
# Equation 12 of Krichene et al. 2023: users above the budget are scaled down to it.
user_factors = np.minimum(1.0, np.sqrt(BUDGET / used))
pair_weights = factors[task_codes] * user_factors[user_codes]
"""
_FULL = """\
# Every user spends the whole budget.
user_factors = np.sqrt(BUDGET / used)
pair_weights = factors[task_codes] * user_factors[user_codes]
"""
_SAMPLED = """\
# At most k = {k} of every user's tasks, drawn uniformly.
order = np.lexsort((np.random.default_rng().random(user_codes.size), user_codes))
first = np.concatenate(([0], np.cumsum(np.bincount(user_codes))))[user_codes[order]]
pair_weights = np.zeros(user_codes.size)
kept = order[np.arange(user_codes.size) - first < {k}]
pair_weights[kept] = factors[task_codes[kept]]
"""


def numpy_code(allocation: Allocation, file_name: str = "task_weights.csv") -> str:
    """Code that reads the task factors and computes every w_ij from codes of users and tasks.

    Args:
        allocation: The weights.
        file_name: Where the CSV of `task_weights_csv` will be.
    """
    rules = {UserRule.CLIPPED: _CLIPPED, UserRule.FULL: _FULL, UserRule.SAMPLED: _SAMPLED}
    k = round(allocation.problem.budget / float(allocation.task_weights[0]) ** 2)
    body = rules[allocation.rule].replace("{k}", str(k))
    return f'''\
"""Weights w_ij: {allocation.name}.

Sum over each user's tasks of pair_weights**2 is at most BUDGET (beta, an RDP slope); with Gaussian noise
scaled to 1 per release, algorithms 1 and 2 of Krichene et al. 2023 are then (alpha, alpha BUDGET)-RDP.
"""

import csv

import numpy as np

BUDGET = {allocation.problem.budget!r}
with open({file_name!r}, newline="", encoding="utf-8") as file:
    next(file)  # The label.
    factors = np.array([float(row["factor"]) for row in csv.DictReader(file)])

# Your data: one entry per distinct pair of user and task, codes from 0; tasks in the order of the file.
user_codes = np.load("user_codes.npy")
task_codes = np.load("task_codes.npy")

used = np.bincount(user_codes, weights=factors[task_codes] ** 2)
used[used == 0.0] = np.inf  # Users without a task.
{body}'''
