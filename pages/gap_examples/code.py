"""The chosen bound with the names that the data have, for *Code for your library*."""

from __future__ import annotations

from dpcore.code.forms import CodeChoice
from dpcore.common.privacy import Neighbours
from dpcore.dataset import Dataset
from dpcore.mean import MeanParameters
from dpcore.mean.answer.code import mean_forms
from pages.gap_examples.answer import GapView


def of_gap(
    view: GapView, dataset: Dataset, parameters: MeanParameters, ends: tuple[float, float] | None
) -> CodeChoice | None:
    """The two choices for a mean that the page compares; None where nobody has entered the range of a value.

    What is best depends on that range only through its ratio to σ, so the page itself does not ask for it.
    """
    both = view.comparison
    if ends is None or not ends[0] < ends[1]:
        return None
    asked = MeanParameters(parameters.epsilon, *ends)
    relation = Neighbours.REPLACE_VALUES
    return mean_forms(both.cap.max_contributions, both.smooth.threshold, relation, dataset, asked)
