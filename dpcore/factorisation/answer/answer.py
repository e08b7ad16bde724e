"""The answer for a recommender: one object that page, report, files, script and notebook read."""

from __future__ import annotations

from dpcore.answer import Answer
from dpcore.dataset import Dataset
from dpcore.factorisation import files
from dpcore.factorisation.answer import plots, words
from dpcore.factorisation.answer.sections import build_sections
from dpcore.factorisation.answer.solution import FactorisationSolution, solve
from dpcore.factorisation.answer.words import choose_programs, write_methods
from dpcore.factorisation.parameters import FactorisationParameters, RatingSource


def build_answer(
    dataset: Dataset | None,
    parameters: FactorisationParameters,
    solution: FactorisationSolution | None = None,
) -> Answer:
    """Choose which items get a user's budget in a recommender, and decide whether it beats item means.

    Args:
        dataset: Ratings: a user, an item and a value in each row; None where the settings say how they are generated.
        parameters: The question.
        solution: What was found for both, with a training or without; by default all models are trained here.

    Returns:
        The answer; its ``solution`` is a `FactorisationSolution`. Plots are computed when they are asked for.

    Raises:
        InvalidInput: The data hold no ratings, or too few of them to train on some and test on others.

    Examples:
        >>> import dpcore as ss
        >>> few = {"num_users": 100, "num_items": 20, "ratings_per_user": 5, "rank": 2, "dimension": 2, "repeats": 2}
        >>> ss.rating_weights(epsilon=0.01, **few).headline
        'At ε = 0.01 it is not clear whether factorising beats item means with own offsets.'

    Source: Krichene et al. 2023, section 5.
    """
    solution = solve(dataset, parameters) if solution is None else solution
    disclosure, result = solution.disclosure, solution.result
    return Answer(
        headline=words.write_headline(solution),
        detail=words.write_detail(solution),
        numbers=words.build_numbers(solution),
        assumptions=words.ASSUMPTIONS,
        disclosure=disclosure,
        facts=words.build_facts(solution),
        code=choose_programs(solution, dataset if solution.parameters.source is RatingSource.DATA else None),
        parameters=solution.parameters,
        solution=solution,
        plots=plots.build_plots(solution),
        make_methods=lambda: write_methods(solution),
        files={}
        if result is None
        else {"factorisation_runs.csv": lambda: files.runs_csv(result, disclosure.label)},
        sections=build_sections(solution),
        bound=lambda: files.budget_table(solution.shares, solution.spreads),
        error=None if solution.verdict is None else words.build_numbers(solution)[0].value,
    )
