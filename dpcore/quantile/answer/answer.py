"""The answer for quantiles: one object that page, report, files, script and notebook read."""

from __future__ import annotations

from dpcore.answer import Answer, ReleaseSetting
from dpcore.answer.answer import add_choice
from dpcore.code import Quantity
from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.common.strict_json import finite_or_none
from dpcore.dataset import Dataset
from dpcore.quantile import files
from dpcore.quantile.answer import plots, words
from dpcore.quantile.answer.code import of_quantile
from dpcore.quantile.answer.found import QuantileFound, find
from dpcore.quantile.answer.methods import methods
from dpcore.quantile.answer.sections import SECTIONS
from dpcore.quantile.mechanism import assumptions
from dpcore.quantile.parameters import BoundFrom, QuantileParameters


def build_answer(
    data: Dataset,
    parameters: QuantileParameters,
    found: QuantileFound | None = None,
    progress: Progress = silent,
    should_stop: ShouldStop = never,
) -> Answer:
    """Find the best bound for private quantiles, and the rank error of the answers.

    Args:
        data: The data, with values.
        parameters: The parameters.
        found: The solution for both; computed by `find` if it is None.
        progress: Called with the share of the search that is done, from 0 to 1.
        should_stop: Called during the search; True ends it with the best bound of those tried.

    Returns:
        The answer; its ``solution`` is a `QuantileFound`. Plots are computed on demand.

    Raises:
        InvalidInput: The data have no values.

    Source: Epasto et al. 2020, section 4 and appendix B.
    """
    solution = find(data, parameters, progress, should_stop) if found is None else found
    answer = Answer(
        headline=words.write_headline(solution),
        detail=words.write_detail(solution, data),
        numbers=words.build_numbers(solution),
        assumptions=assumptions(parameters.neighbours),
        disclosure=data.provenance,
        facts=words.build_facts(solution),
        proofs=words.list_proofs(solution),
        code=of_quantile(solution, data),
        near_optimal=words.describe_near_optimal(solution),
        parameters=parameters,
        solution=solution,
        plots={
            "quantile-error": lambda: plots.plot_errors(solution, data),
            "quantile-density": lambda: plots.plot_density(solution, data),
            "quantile-near": lambda: plots.plot_rank_distance(solution, data),
            "quantile-paper": lambda: plots.plot_paper_bound(solution, data),
        },
        make_methods=lambda: methods(solution, data),
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
        sections=SECTIONS,
    )
    return add_choice(
        answer,
        data,
        "quantile",
        lambda: _list_details(solution, answer.disclosure.label),
        question={
            "neighbours": parameters.neighbours.value,
            "mechanism": "exponential mechanism on the weighted rank",
            "source": "Epasto et al. 2020, Smoothly Bounding User Contributions in DP, appendix B",
        },
    )


def _list_details(solution: QuantileFound, label: str) -> dict[str, object]:
    return {
        "bound": solution.bound,
        "bound_label": label,
        "best_for_the_values": [
            {
                "weights": choice.kind.value,
                "bound": choice.bound,
                "expected_rank_error": choice.rank_error,
                # One subsample alone has none.
                "standard_error_over_subsamples": finite_or_none(choice.standard_error),
                "subsamples": choice.subsamples,
                "expected_rank_error_without_bound": choice.unbounded_rank_error,
                "ended": choice.ended,
            }
            for choice in (solution.choices.smooth, solution.choices.cap)
        ],
        "quantiles": [
            {
                "quantile": output.quantile,
                "epsilon": solution.parameters.epsilon_each,
                "expected_rank_error": output.expected_rank_error,
                "subsamples": int(output.subsample_errors.size),
                "least_rank_error": output.least_rank_error,
                "mean_answer": output.mean,
                "interval_95": list(output.interval()),
                "largest_user_weight": output.largest_user_weight,
            }
            for output in solution.outputs
        ],
    }
