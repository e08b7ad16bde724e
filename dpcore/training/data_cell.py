"""How a script of this question gets its table and the ranges of its features."""

from __future__ import annotations

from collections.abc import Mapping

from dpcore.data.design_matrix import Design
from dpcore.report.literals import Code
from dpcore.report.script import DataCell, Source, table_cell
from dpcore.training.parameters import DataSource, TrainingParameters


def data_cell(
    parameters: TrainingParameters, design: Design | None, ranges: Mapping[str, tuple[float, float]]
) -> DataCell:
    """The cell that puts the table into ``data`` and how it is scaled into ``scaling``.

    Args:
        parameters: The question.
        design: What the columns of the person's table mean.
        ranges: Public ranges of its numbers, as they were entered.
    """

    def cell(code: Code, source: Source, public_only: bool) -> str:
        if parameters.source is DataSource.SAMPLE:
            code.use("ticket_data", "dpcore.training.sample")
            return "data, scaling = ticket_data()"
        if parameters.source is DataSource.GENERATED:
            return "made = parameters.generator.generate()\ndata, scaling = made.dataset, made.scaling"
        code.use("scaling_of", "dpcore.training.rows")
        table = table_cell(code, source, public_only, design)
        return f"{table}\nscaling = scaling_of(data, design, {dict(ranges)!r})"

    return cell
