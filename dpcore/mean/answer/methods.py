"""What a mean has to say in a methods section."""

from __future__ import annotations

from dpcore import mean
from dpcore.answer.methods import Methods, cite_noise, write_guarantee
from dpcore.common import wording
from dpcore.common.privacy import Neighbours
from dpcore.dataset import Dataset
from dpcore.mean.answer.found import MeanFound


def methods(found: MeanFound, data: Dataset, parameters: mean.MeanParameters) -> Methods:
    """Return the best cap and its standard error."""
    private = found.private_counts
    relation = Neighbours.ADD_OR_REMOVE_USER if private else Neighbours.REPLACE_VALUES
    interval = f"[{wording.entered(parameters.lower)}, {wording.entered(parameters.upper)}]"
    released = f"Values were clamped to {interval}, which is treated as public, and "
    if private:
        released += (
            f"{cite_noise('Laplace')} was added to the sums of the kept values' distances from both ends of that "
            "interval; the mean is computed from these two noisy sums."
        )
    else:
        released += (
            f"{cite_noise('Laplace')} was added to the mean of the kept values [@epasto2020, section 3]."
        )
    rows = wording.counted(found.cap.max_contributions, "row")
    error = wording.number(found.cap.standard_error)
    approximately = " (by the delta method)" if private else ""
    kind = "error, as root mean square," if found.of_table else "standard error"
    were = wording.agreeing(found.cap.max_contributions, "was", "were")
    return Methods(
        guarantee=write_guarantee("The mean was released", parameters.epsilon, relation),
        sentences=f"At most {rows} of each user, drawn at random, {were} kept. {released} The expected "
        f"{kind} of the released mean is {error} in the unit of the values, privacy noise "
        f"included{approximately}.",
        public_sentences=f"At most a fixed number of rows of each user, drawn at random, were kept. {released}",
        disclosure=data.provenance,
        rule=f"The bound on rows per user minimises the expected squared error of the released mean{_rule(found)}.",
    )


def _rule(found: MeanFound) -> str:
    """About which mean the error is, what it holds, and what is assumed of users."""
    problem = found.problem
    if problem.table is not None:
        return (
            " about the mean of the rows at hand before clamping: the shift by bounding and clamping, the draw of rows "
            "and privacy noise together"
        )
    both = ", sampling error and privacy noise together,"
    share = f"if a share of {wording.number(problem.user_share, 2)} of the variance lies between users"
    if found.of_table:
        alike = f" and {share}" if problem.user_share else ""
        return f" about the mean of the rows at hand{both} if numbers of rows say nothing about the values{alike}"
    return f"{both} for rows that are independent draws" if not problem.user_share else f"{both} {share}"
