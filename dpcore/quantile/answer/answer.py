"""The answer for quantiles: one object that page, report, files, script and notebook read."""

from __future__ import annotations

from dpcore.answer import Answer, ReleaseSetting
from dpcore.code import Released
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
    """How much one user's rows may weigh in private quantiles, and how close the answers come.

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
    of = find(data, parameters, progress, should_stop) if found is None else found
    smooth, cap = of.choices.smooth, of.choices.cap
    return Answer(
        headline=words.headline(of),
        detail=words.detail(of, data),
        numbers=words.numbers(of),
        assumptions=assumptions(parameters.neighbours),
        disclosure=data.provenance,
        facts=words.facts(of),
        proofs=words.proofs(of),
        code=of_quantile(of, data),
        near_optimal=words.good_enough(of),
        parameters=parameters,
        solution=of,
        plots={
            "quantile-error": lambda: plots.errors(of, data),
            "quantile-density": lambda: plots.density(of, data),
            "quantile-near": lambda: plots.near(of, data),
            "quantile-paper": lambda: plots.paper(of, data),
        },
        make_methods=lambda: methods(of, data),
        choice=lambda: files.choice_json(data, parameters, of.bound, (smooth, cap), of.outputs),
        files={
            "quantile_weights.csv": lambda: files.weights_csv(
                of.problem.histogram, of.kind, of.bound, data.provenance
            )
        },
        setting=ReleaseSetting(
            Released.QUANTILE,
            parameters.epsilon,
            parameters.neighbours,
            "" if data.values is None else data.values.column,
            lower=None if parameters.answer_range is None else parameters.answer_range[0],
            upper=None if parameters.answer_range is None else parameters.answer_range[1],
            uses_values=parameters.bound_from is BoundFrom.VALUES,
        ),
    )
