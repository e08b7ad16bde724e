"""The answer for a recommender: one object that page, report, files, script and notebook read."""

from __future__ import annotations

from dpcore.answer import Answer
from dpcore.dataset import Dataset
from dpcore.factorisation import files
from dpcore.factorisation.answer import plots, words
from dpcore.factorisation.answer.code import of_ratings
from dpcore.factorisation.answer.found import FactorisationFound, find
from dpcore.factorisation.answer.methods import methods
from dpcore.factorisation.parameters import FactorisationParameters, RatingSource


def build_answer(
    data: Dataset | None, parameters: FactorisationParameters, found: FactorisationFound | None = None
) -> Answer:
    """Which items get a user's budget when a recommender is learned, and whether it beats item means.

    Args:
        data: Ratings: a user, an item and a value in each row; None where the settings say how they are generated.
        parameters: The question.
        found: What was found for both, with a training or without; by default all models are trained here.

    Returns:
        The answer; its ``found`` is a `FactorisationFound`. Plots are computed when they are asked for.

    Raises:
        InvalidInput: The data hold no ratings, or too few of them to train on some and test on others.

    Source: Krichene et al. 2023, section 5.
    """
    of = find(data, parameters) if found is None else found
    kind, result = of.table.disclosure, of.result
    return Answer(
        headline=words.headline(of),
        detail=words.detail(of),
        numbers=words.numbers(of),
        assumptions=words.ASSUMPTIONS,
        disclosure=kind,
        facts=words.facts(of),
        code=of_ratings(of, data if of.parameters.source is RatingSource.DATA else None),
        parameters=of.parameters,
        found=of,
        plots=plots.plots(of),
        written=lambda: methods(of),
        files={}
        if result is None
        else {"factorisation_runs.csv": lambda: files.runs_csv(result, kind.label)},
        bound=lambda: files.budget_table(of.shares, of.table.spreads),
        error=None if of.verdict is None else words.numbers(of)[0].value,
    )
