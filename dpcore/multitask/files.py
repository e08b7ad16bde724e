"""Files of weights: per task, per user and task, and code that applies them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from dpcore.code.common import render
from dpcore.multitask.problem import Allocation
from dpcore.multitask.sampling import count_tasks_per_user

ROWS_PER_PIECE = 100_000
"""Pairs of which the weights are in memory at a time, besides their text."""


def tabulate_weights(allocation: Allocation) -> pd.DataFrame:
    """Tabulate the weight of each task, a row per task code.

    Columns: ``users`` (n_i), ``factor`` (of w_ij = factor x user factor), ``mean_weight`` (W_i / n_i),
    ``bound`` (error bound up to a common constant), ``share_of_bound``.
    """
    bounds = allocation.task_bounds
    columns = {
        "users": allocation.problem.task_sizes,
        "factor": allocation.task_weights,
        "mean_weight": allocation.mean_weights,
        "bound": bounds,
        "share_of_bound": bounds / bounds.sum(),
    }
    return pd.DataFrame(columns, index=pd.RangeIndex(bounds.size, name="task"))


def write_task_weights(allocation: Allocation, label: str) -> str:
    """Write the table of `tabulate_weights` as CSV.

    Args:
        allocation: The weights.
        label: What the numbers are (`dpcore.common.privacy.Disclosure.label`), written as a comment on top.
    """
    return f"# {label}\n" + tabulate_weights(allocation).to_csv(lineterminator="\n")


def write_pair_weights(allocation: Allocation, label: str) -> str:
    """Write the lines user,task,weight of every pair, by code, in the graph's order.

    Args:
        allocation: The weights, on a graph.
        label: As in `write_task_weights`.
    """
    graph, scales = allocation.problem.require_graph(), allocation.user_scales
    assert scales is not None
    pieces = [f"# {label}\nuser,task,weight\n"]
    for first in range(0, graph.num_pairs, ROWS_PER_PIECE):
        piece = slice(first, first + ROWS_PER_PIECE)
        users, tasks = graph.users[piece], graph.tasks[piece]
        weights = allocation.task_weights[tasks] * scales[users]
        rows = pd.DataFrame({"user": users, "task": tasks, "weight": weights})
        pieces.append(rows.to_csv(header=False, index=False, lineterminator="\n"))
    return "".join(pieces)


def write_numpy_code(allocation: Allocation, file_name: str = "task_weights.csv") -> str:
    """Write code that reads the task factors and computes every w_ij from codes of users and tasks.

    Args:
        allocation: The weights.
        file_name: Where the CSV of `write_task_weights` will be.
    """
    path, max_tasks = Path(__file__).with_name("weights.py"), count_tasks_per_user(allocation)
    return render(path, allocation=allocation, rule=allocation.rule.name, k=max_tasks, file_name=file_name)
