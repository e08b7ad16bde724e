"""The methods section of the comparison of caps and weights."""

from __future__ import annotations

from dpcore.answer.methods import Methods, cite_noise, write_guarantee
from dpcore.common import wording
from dpcore.common.privacy import Neighbours
from dpcore.dataset import Dataset
from dpcore.gap_examples.answer.found import GapSolution
from dpcore.gap_examples.answer.words import WORTH_HAVING
from dpcore.gap_examples.parameters import GapParameters
from dpcore.gap_examples.two_groups import supremum


def write_methods(solution: GapSolution, dataset: Dataset, parameters: GapParameters) -> Methods:
    """Write the methods section: the recommended bound, and the ratio of the variances."""
    comparison, largest_ratio = solution.comparison, supremum().ratio
    noise_text = cite_noise("Laplace")
    if comparison.ratio < WORTH_HAVING:
        rows = wording.counted(comparison.cap.max_contributions, "row")
        step = f"At most {rows} of each user, drawn at random, were kept"
    else:
        threshold = wording.number(comparison.smooth.threshold, 6)
        step = (
            f"Rows were weighted such that no user weighs more than {threshold} rows [@epasto2020, section 3]"
        )
    return Methods(
        guarantee=write_guarantee("The mean was released", parameters.epsilon, Neighbours.REPLACE_VALUES),
        sentences=f"{step}, and {noise_text} was added to the mean. "
        f"The best bound on rows per user has {comparison.ratio:.4f} times the variance of the best weights.",
        public_sentences=f"What a user's rows weigh together was bounded, and {noise_text} was added to the mean.",
        disclosure=dataset.provenance,
        rule="The best bound and the best weights minimise the expected squared error of the released mean. "
        f"Whatever the data, the ratio of their variances is below {largest_ratio:.5f}; weights were preferred from a "
        f"ratio of {wording.number(WORTH_HAVING)} on.",
        subject="The ratio",
    )
