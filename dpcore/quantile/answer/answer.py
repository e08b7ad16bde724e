"""The answer for quantiles: one object that page, report, files, script and notebook read."""

from __future__ import annotations

from dpcore.answer import Answer, ReleaseSetting
from dpcore.code import Quantity
from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.dataset import Dataset
from dpcore.quantile import files
from dpcore.quantile.answer import plots, words
from dpcore.quantile.answer.code import of_quantile
from dpcore.quantile.answer.found import QuantileFound, find
from dpcore.quantile.answer.methods import methods
from dpcore.quantile.mechanism import assumptions
from dpcore.quantile.parameters import BoundFrom, QuantileParameters


def build_answer(
    data: Dataset,
    parameters: QuantileParameters,
    found: QuantileFound | None = None,
    progress: Progress = silent,
    should_stop: ShouldStop = never,
) -> Answer:
    """Find how much one user's rows may weigh in private quantiles, and how close the answers come.

    Args:
        data: With values.
        parameters: The question.
        found: What was found for both; `find` searches here by default.
        progress: Told the share of the search that is done, from 0 to 1.
        should_stop: Asked during the search; True ends it with the best bound of those tried.

    Returns:
        The answer; its ``found`` is a `QuantileFound`. Plots are computed when they are asked for.

    Raises:
        InvalidInput: The data have no values.

    Source: Epasto et al. 2020, section 4 and appendix B.
    """
    solution = find(data, parameters, progress, should_stop) if found is None else found
    smooth, cap = solution.choices.smooth, solution.choices.cap
    return Answer(
        headline=words.headline(solution),
        detail=words.detail(solution, data),
        numbers=words.numbers(solution),
        assumptions=assumptions(parameters.neighbours),
        disclosure=data.provenance,
        facts=words.facts(solution),
        proofs=words.proofs(solution),
        code=of_quantile(solution, data),
        near_optimal=words.good_enough(solution),
        parameters=parameters,
        solution=solution,
        plots={
            "quantile-error": lambda: plots.errors(solution, data),
            "quantile-density": lambda: plots.density(solution, data),
            "quantile-near": lambda: plots.near(solution, data),
            "quantile-paper": lambda: plots.paper(solution, data),
        },
        make_methods=lambda: methods(solution, data),
        choice=lambda: files.choice_json(data, parameters, solution.bound, (smooth, cap), solution.outputs),
        files={
            "quantile_weights.csv": lambda: files.weights_csv(
                solution.problem.histogram, solution.kind, solution.bound, data.provenance
            )
        },
        setting=ReleaseSetting(
            Quantity.QUANTILE,
            parameters.epsilon,
            parameters.neighbours,
            "" if data.values is None else data.values.column,
            lower=None if parameters.answer_range is None else parameters.answer_range[0],
            upper=None if parameters.answer_range is None else parameters.answer_range[1],
            uses_values=parameters.bound_from is BoundFrom.VALUES,
        ),
    )
