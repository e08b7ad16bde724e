"""How a script of this question gets its ratings."""

from __future__ import annotations

from dpcore.factorisation.parameters import FactorisationParameters, RatingSource
from dpcore.report.literals import Code
from dpcore.report.script import DataCell, Source, dataset_cell


def data_cell(parameters: FactorisationParameters) -> DataCell:
    """The cell that puts the table into ``ratings``: generated again, or from the person's data."""

    def cell(code: Code, source: Source, public_only: bool) -> str:
        code.use("load_ratings", "dpcore.factorisation.parameters")
        if parameters.source is RatingSource.GENERATED:
            return "ratings = load_ratings(parameters)\nassert ratings is not None"
        data = dataset_cell(code, source, public_only)
        return f"{data}\nratings = load_ratings(parameters, data)\nassert ratings is not None"

    return cell
