"""The chosen release with the names that the data have, for *Code for your library*."""

from __future__ import annotations

from dpcore.code import Quantity
from dpcore.code.forms import ROWS_OF_THE_FILE, CodeChoice, build_forms, fields_of_data
from dpcore.common import wording
from dpcore.common.noise_error import NoiseKind
from dpcore.dataset import Dataset
from dpcore.factorisation.answer.found import FactorisationSolution


def choose_programs(solution: FactorisationSolution, dataset: Dataset | None) -> CodeChoice | None:
    """Return programs for DP item means, where they are recommended; no library fits a factorisation.

    Args:
        solution: What was found.
        dataset: Whose ratings they are; None where they were generated.
    """
    verdict = solution.verdict
    if verdict is not None and verdict.is_worth_it:
        return None
    parameters, limits = solution.parameters, solution.parameters.limits
    base = (
        fields_of_data(dataset) if dataset is not None else {"group_column": "item", "value_column": "rating"}
    )
    base |= {"disclosure": solution.table.disclosure, "delta": parameters.delta} | ROWS_OF_THE_FILE
    bounds = {
        "max_groups": parameters.max_items,
        "max_rows": 1,
        "noise": NoiseKind.GAUSSIAN,
        "lower": limits.lowest,
        "upper": limits.highest,
    }
    name = f"Item means, at most {wording.counted(parameters.max_items, 'item')}"
    return build_forms(parameters.epsilon, base, [(name, Quantity.GROUP_MEANS, bounds)])
