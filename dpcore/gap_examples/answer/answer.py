"""How much weights gain over the best cap on data: one object that page, report, files, script and notebook read."""

from __future__ import annotations

from typing import NamedTuple

from dpcore import mean
from dpcore.answer import Answer, ReleaseSetting
from dpcore.code import Released
from dpcore.code.forms import CodeChoice
from dpcore.common.privacy import Neighbours
from dpcore.dataset import Dataset
from dpcore.gap_examples import files
from dpcore.gap_examples.answer import plots, words
from dpcore.gap_examples.answer.found import GapFound, find
from dpcore.gap_examples.answer.methods import methods
from dpcore.gap_examples.parameters import GapParameters
from dpcore.mean.answer.code import mean_forms


class CapAndWeights(NamedTuple):
    """The two bounds that are compared, and what the second gains.

    Attributes:
        max_contributions: The best cap.
        threshold: Of the best smooth weights.
        variance_ratio: Variance of the cap over that of the weights.
    """

    max_contributions: int
    threshold: float
    variance_ratio: float


Ends = tuple[float, float]
"""The range of a value, L and U."""


def build_answer(
    data: Dataset, parameters: GapParameters, found: GapFound | None = None, ends: Ends | None = None
) -> Answer:
    """The best cap beside the best smooth weights.

    Args:
        data: How many rows users have.
        parameters: The question.
        found: What `find` found for both; computed here by default.
        ends: The range of a value, which a program for a library needs; what is best depends on it only through its
            ratio to sigma. None writes no program.

    Returns:
        The answer; its ``found`` is a `GapFound`. Plots are computed when they are asked for.

    Source: Epasto et al. 2020, section 3.3; docs/gap.md.
    """
    of = find(data, parameters.mean_parameters()) if found is None else found
    both = of.comparison
    return Answer(
        headline=words.headline(both),
        detail=words.detail(data),
        numbers=words.numbers(both),
        assumptions=mean.ASSUMPTIONS,
        disclosure=data.provenance,
        facts=words.facts(of),
        proofs=(
            ("Bounded rows", both.cap.certificate, both.cap.ended),
            ("Smooth weights", both.smooth.certificate, both.smooth.ended),
        ),
        code=_programs(of, data, parameters.epsilon, ends),
        good_enough=words.good_enough(of),
        parameters=parameters,
        found=of,
        plots={"gap-data": lambda: plots.variances(of, data)},
        written=lambda: methods(of, data, parameters),
        choice=lambda: files.instance_json(both, data.provenance),
        setting=ReleaseSetting(
            Released.MEAN,
            parameters.epsilon,
            Neighbours.REPLACE_VALUES,
            lower=None if ends is None else ends[0],
            upper=None if ends is None else ends[1],
            variance_share=both.problem.value_variance / both.problem.value_bound**2,
        ),
        bound=CapAndWeights(both.cap.max_contributions, both.smooth.threshold, both.ratio),
    )


def _programs(found: GapFound, data: Dataset, epsilon: float, ends: Ends | None) -> CodeChoice | None:
    if ends is None or not ends[0] < ends[1]:
        return None
    both, asked = found.comparison, mean.MeanParameters(epsilon, *ends)
    cap, threshold = both.cap.max_contributions, both.smooth.threshold
    return mean_forms(cap, threshold, Neighbours.REPLACE_VALUES, data, asked)
