"""How a script of this question gets its users and tasks."""

from __future__ import annotations

from dpcore.multitask.parameters import MultitaskParameters, TaskSource
from dpcore.report.literals import Code
from dpcore.report.script import DataCell, Source, dataset_cell


def data_cell(parameters: MultitaskParameters) -> DataCell:
    """The cell that puts users and tasks into ``graph``: generated again, or from the person's data."""

    def cell(code: Code, source: Source, public_only: bool) -> str:
        code.use("TaskGraph", "dpcore.multitask.graph")
        code.use("without_empty_tasks", "dpcore.multitask.graph")
        if parameters.source is not TaskSource.DATA:
            code.use("draw_pairs", "dpcore.multitask.parameters")
            return (
                "pairs, _ = without_empty_tasks(draw_pairs(parameters.generator, parameters.graph_seed))\n"
                "graph = TaskGraph.from_pairs(pairs, parameters.generator.num_users)"
            )
        return (
            f"{dataset_cell(code, source, public_only)}\n"
            "pairs, _ = without_empty_tasks(data.pairs)\n"
            "num_users = max(data.histogram.num_users, int(pairs.user_codes[-1]) + 1)\n"
            "graph = TaskGraph.from_pairs(pairs, num_users)"
        )

    return cell
