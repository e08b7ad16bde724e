"""What a rerun of this page repeats, cached by content; see `pages.shared.cache`."""

from __future__ import annotations

from dpcore import learning
from dpcore.dataset import Dataset
from pages.learning import answer as learning_view
from pages.learning import population
from pages.shared.cache import cached


@cached(max_entries=32)
def learning_answer(
    digest: str, parameters: learning.LearningParameters, _dataset: Dataset
) -> learning_view.LearningView:
    """The answer of Learning under a cap; ``parameters`` without what does not change it."""
    return learning_view.compute(parameters.problem(_dataset.histogram))


@cached(max_entries=16)
def learning_rivals(
    digest: str, parameters: learning.LearningParameters, _dataset: Dataset
) -> learning_view.Rivals:
    """The best cap under every bound on the bias; ``parameters`` as above."""
    return learning_view.rivals(parameters.problem(_dataset.histogram))


@cached(max_entries=16)
def learning_population_view(parameters: learning.LearningParameters) -> population.PopulationView:
    """Figures 2 and 3; ``parameters`` without what does not change them."""
    return population.compute(parameters)
