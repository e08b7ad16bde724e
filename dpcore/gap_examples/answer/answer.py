"""The gain of weights over the best cap on data: one object that page, report, files, script and notebook read."""

from __future__ import annotations

from typing import NamedTuple

from dpcore import mean
from dpcore.answer import Answer, ReleaseSetting
from dpcore.code import Quantity
from dpcore.code.forms import CodeChoice
from dpcore.common.privacy import Neighbours
from dpcore.dataset import Dataset
from dpcore.gap_examples import files
from dpcore.gap_examples.answer import plots, words
from dpcore.gap_examples.answer.found import GapSolution, solve
from dpcore.gap_examples.answer.methods import write_methods
from dpcore.gap_examples.answer.sections import SECTIONS
from dpcore.gap_examples.parameters import GapParameters
from dpcore.mean.answer.code import mean_forms


class CapAndWeights(NamedTuple):
    """The best cap, the best threshold of smooth weights, and the ratio of their variances.

    Attributes:
        max_contributions: The best cap.
        threshold: Of the best smooth weights.
        variance_ratio: Variance of the cap over that of the weights.
    """

    max_contributions: int
    threshold: float
    variance_ratio: float


ValueRange = tuple[float, float]
"""The range of a value, L and U."""


def build_answer(
    dataset: Dataset,
    parameters: GapParameters,
    solution: GapSolution | None = None,
    value_range: ValueRange | None = None,
) -> Answer:
    """Compare the best cap with the best smooth weights on the examples of the paper.

    Args:
        dataset: How many rows users have.
        parameters: The question.
        solution: What `solve` found for both; computed here by default.
        value_range: The range of a value, which a program for a library needs; what is best depends on it only
            through its ratio to sigma. None writes no program.

    Returns:
        The answer; its ``solution`` is a `GapSolution`. Plots are computed when they are asked for.

    Source: Epasto et al. 2020, section 3.3; docs/gap.md.
    """
    solution = solve(dataset, parameters.mean_parameters()) if solution is None else solution
    comparison = solution.comparison
    return Answer(
        headline=words.write_headline(comparison),
        detail=words.write_detail(dataset),
        numbers=words.build_numbers(comparison),
        assumptions=mean.ASSUMPTIONS,
        disclosure=dataset.provenance,
        facts=words.build_facts(solution),
        proofs=(
            ("Bounded rows", comparison.cap.certificate, comparison.cap.stop_reason),
            ("Smooth weights", comparison.smooth.certificate, comparison.smooth.stop_reason),
        ),
        code=_build_code(solution, dataset, parameters.epsilon, value_range),
        near_optimal=words.describe_near_optimal(solution),
        parameters=parameters,
        solution=solution,
        plots={"gap-data": lambda: plots.plot_variances(solution, dataset)},
        make_methods=lambda: write_methods(solution, dataset, parameters),
        choice=lambda: files.instance_json(comparison, dataset.provenance),
        setting=ReleaseSetting(
            Quantity.MEAN,
            parameters.epsilon,
            Neighbours.REPLACE_VALUES,
            lower=None if value_range is None else value_range[0],
            upper=None if value_range is None else value_range[1],
            variance_share=comparison.problem.value_variance / comparison.problem.value_bound**2,
        ),
        sections=SECTIONS,
        bound=CapAndWeights(comparison.cap.max_contributions, comparison.smooth.threshold, comparison.ratio),
    )


def _build_code(
    solution: GapSolution, dataset: Dataset, epsilon: float, value_range: ValueRange | None
) -> CodeChoice | None:
    """Return the programs for a mean with both bounds, or None if the value range is unknown or empty."""
    if value_range is None or not value_range[0] < value_range[1]:
        return None
    comparison, mean_parameters = solution.comparison, mean.MeanParameters(epsilon, *value_range)
    cap, threshold = comparison.cap.max_contributions, comparison.smooth.threshold
    return mean_forms(cap, threshold, Neighbours.REPLACE_VALUES, dataset, mean_parameters)
