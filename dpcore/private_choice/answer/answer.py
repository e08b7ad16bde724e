"""The answer on choosing privately: one object that page, report, files, script and notebook read."""

from __future__ import annotations

from dpcore.answer import Answer
from dpcore.dataset import Dataset
from dpcore.private_choice import comparison
from dpcore.private_choice.answer import plots, words
from dpcore.private_choice.answer.found import PrivateFound, find, leak
from dpcore.private_choice.answer.methods import methods
from dpcore.private_choice.parameters import PrivateParameters


def build_answer(data: Dataset, parameters: PrivateParameters, found: PrivateFound | None = None) -> Answer:
    """Compute what it costs to choose a bound with an epsilon of its own, directly or on a private copy.

    Nothing is drawn: `dpcore.private_choice.choice.choose` and `private_histogram.release_histogram` do that.

    Args:
        data: How many users have how many rows.
        parameters: The question.
        found: What `find` found for both; searched for here by default.

    Returns:
        The answer; its ``found`` is a `PrivateFound`. Plots are computed when they are asked for.

    Raises:
        InvalidInput: The data have more users than the mechanisms can hold.

    Source: McSherry and Talwar 2007 for the draw; Epasto et al. 2020, section 3, and Amin et al. 2019, section 3, for
        what it aims at.
    """
    solution = find(data, parameters) if found is None else found
    return Answer(
        headline=words.headline(solution),
        detail=words.detail(solution),
        numbers=words.numbers(solution),
        assumptions=words.assumptions(data.disclosure, parameters),
        disclosure=data.provenance,
        facts=words.facts(solution),
        parameters=parameters,
        solution=solution,
        plots={
            "private-cost-epsilon": lambda: plots.over_epsilon(solution),
            "private-cost-users": lambda: plots.over_users(
                solution, comparison.direct_over_users(parameters, data.histogram), solution.copies
            ),
            "private-leak": lambda: plots.leak(leak(data.histogram, parameters), data),
        },
        make_methods=lambda: methods(solution),
        setting=parameters.setting,
        # The number itself is drawn, and costs; here it is only said what that would cost.
        bound=lambda: None,
    )
