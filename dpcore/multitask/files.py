"""Files of weights: per task, per user and task, and code that applies them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from dpcore.code.common import render
from dpcore.data.column_names import escape_formula
from dpcore.multitask.problem import Allocation

ROWS_PER_PIECE = 100_000


def _quote(text: str) -> str:
    """Quote a text for CSV, and make it harmless to spreadsheets."""
    text = escape_formula(text)
    return '"' + text.replace('"', '""') + '"' if any(character in text for character in ',"\r\n') else text


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


def write_task_weights(allocation: Allocation, label: str, names: Sequence[str] | None = None) -> str:
    """Write one line per task.

    Columns: task (code or name), users (n_i), factor (of w_ij = factor x user factor), mean_weight (W_i / n_i),
    bound (error bound up to a common constant), share_of_bound.

    Args:
        allocation: The weights.
        label: What the numbers are (`dpcore.common.privacy.Disclosure.label`), written as a comment on top.
        names: Names of the tasks; codes where None.
    """
    table = tabulate_weights(allocation)
    columns = [table[name].tolist() for name in table.columns]
    heads = [str(i) for i in table.index] if names is None else [_quote(str(n)) for n in names]
    lines = [f"# {label}", ",".join(("task", *table.columns))]
    lines += [f"{h},{n},{f!r},{w!r},{b!r},{s!r}" for h, n, f, w, b, s in zip(heads, *columns, strict=True)]
    return "\n".join(lines) + "\n"


def write_pair_weights(allocation: Allocation, label: str) -> Iterator[str]:
    """Yield the lines user,task,weight of every pair in pieces, by code, in the graph's order; never all in memory.

    Args:
        allocation: The weights, on a graph.
        label: As in `write_task_weights`.
    """
    graph = allocation.problem.require_graph()
    scales = allocation.user_scales
    assert scales is not None
    yield f"# {label}\nuser,task,weight\n"
    for first in range(0, graph.num_pairs, ROWS_PER_PIECE):
        piece = slice(first, first + ROWS_PER_PIECE)
        users, tasks = graph.users[piece], graph.tasks[piece]
        weights = allocation.task_weights[tasks] * scales[users]
        rows = zip(users.tolist(), tasks.tolist(), weights.tolist(), strict=True)
        yield "".join(f"{u},{t},{w!r}\n" for u, t, w in rows)


def write_numpy_code(allocation: Allocation, file_name: str = "task_weights.csv") -> str:
    """Write code that reads the task factors and computes every w_ij from codes of users and tasks.

    Args:
        allocation: The weights.
        file_name: Where the CSV of `write_task_weights` will be.
    """
    max_tasks = round(allocation.problem.budget / float(allocation.task_weights[0]) ** 2)
    path = Path(__file__).with_name("weights.py")
    return render(path, allocation=allocation, rule=allocation.rule.name, k=max_tasks, file_name=file_name)
