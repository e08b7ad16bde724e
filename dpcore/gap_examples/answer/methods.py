"""What the comparison of caps and weights has to say in a methods section."""

from __future__ import annotations

from dpcore.answer.methods import Methods, guarantee, noise
from dpcore.common import wording
from dpcore.common.privacy import Neighbours
from dpcore.dataset import Dataset
from dpcore.gap_examples.answer.found import GapFound
from dpcore.gap_examples.answer.words import WORTH_HAVING
from dpcore.gap_examples.parameters import GapParameters
from dpcore.gap_examples.two_groups import supremum


def methods(found: GapFound, data: Dataset, parameters: GapParameters) -> Methods:
    """The cap or the weights that the page recommends, and the ratio of their variances."""
    both, most = found.comparison, supremum().ratio
    kind = noise("Laplace")
    if both.ratio < WORTH_HAVING:
        rows = wording.counted(both.cap.max_contributions, "row")
        done = f"At most {rows} of each user, drawn at random, were kept"
    else:
        threshold = wording.number(both.smooth.threshold, 6)
        done = (
            f"Rows were weighted such that no user weighs more than {threshold} rows [@epasto2020, section 3]"
        )
    return Methods(
        guarantee=guarantee("The mean was released", parameters.epsilon, Neighbours.REPLACE_VALUES),
        found=f"{done}, and {kind} was added to the mean. The best bound on rows per user has {both.ratio:.4f} "
        "times the variance of the best weights.",
        withheld=f"What a user's rows weigh together was bounded, and {kind} was added to the mean.",
        disclosure=data.provenance,
        rule="The best bound and the best weights minimise the expected squared error of the released mean. "
        f"Whatever the data, the ratio of their variances is below {most:.5f}; weights were preferred from a "
        f"ratio of {wording.number(WORTH_HAVING)} on.",
        what="The ratio",
    )
