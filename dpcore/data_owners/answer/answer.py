"""The answer for data owners: one object that page, report, files, script and notebook read."""

from __future__ import annotations

from dpcore.answer import Answer
from dpcore.common.privacy import Provenance
from dpcore.data_owners import files
from dpcore.data_owners.answer import plots, words
from dpcore.data_owners.answer.code import of_owners
from dpcore.data_owners.answer.found import OwnersFound, find
from dpcore.data_owners.answer.methods import methods
from dpcore.data_owners.parameters import OwnersParameters
from dpcore.dataset import Dataset


def build_answer(
    data: Dataset | Provenance, parameters: OwnersParameters, found: OwnersFound | None = None
) -> Answer:
    """Who should train together, by the bounds.

    Args:
        data: Whose users are the owners; where owners are entered, what kind of numbers these are.
        parameters: The question.
        found: What `find` found for both; computed here by default.

    Returns:
        The answer; its ``found`` is an `OwnersFound`. Plots are computed when they are asked for.

    Raises:
        InvalidInput: The data do not fit the question.

    Source: Huang et al. 2023, theorem 3.1 and appendix A.
    """
    of = find(data, parameters) if found is None else found
    made = {"owners-map": lambda: plots.regime_map(of), "owners-bounds": lambda: plots.bounds(of)}
    own = data if of.of_data and isinstance(data, Dataset) else None
    if own is not None:
        made["owners-cap"] = lambda: plots.cap(of, own)
    return Answer(
        headline=words.headline(of),
        detail=words.detail(of),
        numbers=words.numbers(of),
        assumptions=words.assumptions(of),
        disclosure=of.disclosure,
        facts=words.facts(of),
        proofs=words.proofs(of),
        code=of_owners(of, own),
        good_enough=words.good_enough(of),
        parameters=parameters,
        found=of,
        plots=made,
        written=lambda: methods(of),
        choice=lambda: files.owners_choice_json(own, parameters, of.of, of.cap, of.disclosure),
    )
