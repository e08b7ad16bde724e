"""How a script of this question gets its owners."""

from __future__ import annotations

from dpcore.data_owners.parameters import OwnersParameters, OwnersSource
from dpcore.report.literals import Code
from dpcore.report.script import DataCell, Source, dataset_cell


def data_cell(parameters: OwnersParameters) -> DataCell:
    """The cell that puts records per owner into ``histogram``: those of the data, or None where they are entered."""

    def cell(code: Code, source: Source, public_only: bool) -> str:
        if parameters.source is not OwnersSource.DATA:
            return "histogram = None  # Owners and records are those of the question."
        return f"{dataset_cell(code, source, public_only)}\nhistogram = data.histogram"

    return cell
