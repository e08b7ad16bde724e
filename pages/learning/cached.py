"""What a rerun of this page repeats, cached by content; see `pages.shared.base.cache`."""

from __future__ import annotations

from collections.abc import Mapping

from dpcore.answer import Answer
from dpcore.dataset import Dataset
from dpcore.learning import LearningParameters
from dpcore.learning.answer import LearningSolution, build_answer, population, solve, solve_rivals
from dpcore.learning.bias_bounds import BiasTerm
from dpcore.learning.error_bound import LearningCap
from pages.shared.base.cache import cached


@cached(max_entries=32)
def _found(digest: str, parameters: LearningParameters, _data: Dataset) -> LearningSolution:
    return solve(_data, parameters)


def learning_answer(data: Dataset, parameters: LearningParameters) -> Answer:
    """Return the answer; what does not change it, a cap of the person's own say, is no part of what is
    kept.
    """
    return build_answer(data, parameters, _found(data.digest, parameters.about_data, data))


@cached(max_entries=16)
def learning_rivals(
    digest: str, parameters: LearningParameters, _data: Dataset
) -> Mapping[BiasTerm, LearningCap]:
    """Return the best cap under every bound on the bias; ``parameters`` without what does not change it."""
    return solve_rivals(parameters.problem(_data.histogram))


@cached(max_entries=16)
def on_population(parameters: LearningParameters) -> population.PopulationSolution:
    """Figures 2 and 3; ``parameters`` without what does not change them."""
    return population.solve(parameters)
