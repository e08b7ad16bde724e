"""How a script of this question gets its table and the ranges of its features."""

from __future__ import annotations

from collections.abc import Mapping

from dpcore.data.design_matrix import Design
from dpcore.report.literals import Code
from dpcore.report.script import DataCell, Source
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
        data = source.dataset
        code.use("design_matrix", "dpcore.data")
        code.use("read_table", "dpcore.counting")
        code.use("scaling_of", "dpcore.training.rows")
        name = "your-table.csv" if public_only and data.is_private else data.name
        meaning = "design_matrix.guess(table)" if design is None else code.of(design)
        return (
            f"# The table that was loaded on the page.\nFILE = Path({name!r})\n"
            "table = read_table(FILE.read_bytes(), FILE.name)\n"
            f"design = {meaning}\n"
            f"data = design_matrix.build(table, design, {code.of(data.disclosure)})\n"
            f"scaling = scaling_of(data, design, {dict(ranges)!r})"
        )

    return cell
