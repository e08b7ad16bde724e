"""What a mean has to say in a methods section."""

from __future__ import annotations

from dpcore import mean
from dpcore.answer.methods import Methods, guarantee, noise
from dpcore.common import wording
from dpcore.common.privacy import Neighbours
from dpcore.dataset import Dataset
from dpcore.mean.answer.found import MeanFound


def methods(found: MeanFound, data: Dataset, parameters: mean.MeanParameters) -> Methods:
    """The best cap and its standard error."""
    private = found.private_counts
    relation = Neighbours.ADD_OR_REMOVE_USER if private else Neighbours.REPLACE_VALUES
    interval = f"[{wording.entered(parameters.lower)}, {wording.entered(parameters.upper)}]"
    released = f"Values were clamped to {interval}, which is treated as public, and "
    if private:
        released += (
            f"{noise('Laplace')} was added to the sums of the kept values' distances from both ends of that "
            "interval; the mean is computed from these two noisy sums."
        )
    else:
        released += f"{noise('Laplace')} was added to the mean of the kept values [@epasto2020, section 3]."
    rows = wording.counted(found.cap.max_contributions, "row")
    error = wording.number(found.cap.standard_error)
    approximately = " (by the delta method)" if private else ""
    were = wording.agreeing(found.cap.max_contributions, "was", "were")
    return Methods(
        guarantee=guarantee("The mean was released", parameters.epsilon, relation),
        found=f"At most {rows} of each user, drawn at random, {were} kept. {released} The expected standard "
        f"error of the released mean is {error} in the unit of the values, privacy noise "
        f"included{approximately}.",
        withheld=f"At most a fixed number of rows of each user, drawn at random, were kept. {released}",
        disclosure=data.provenance,
        rule="The bound on rows per user minimises the expected squared error of the released mean, sampling "
        "error and privacy noise together, for rows that are independent draws.",
    )
