"""Methods that bound the rows of a user before gradients are summed, and how far one user can then move the sum.

Weights are not divided by their sum: where counts are private, that sum moves with a user, and a mean divided
by it can move by up to twice the largest share even where one user is only added. So the sum of gradients gets
the noise, and the sum of weights is public, or gets noise of its own (`account`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.common.checks import Problems
from dpcore.common.parameters import Option
from dpcore.common.privacy import Neighbours
from dpcore.contributions import FloatArray, IntArray
from dpcore.training.rows import ClassifierRows


class Method(Option):
    """The rule that keeps a user within the bound h, and the mechanism that trains with it."""

    FOLLOWED = "followed clipped sum", "Clipped sums, bound follows the users"
    SMOOTH = "smooth weights", "Smooth weights"
    CAP = "cap", "A cap, rows drawn at random"
    CLIPPED_SUM = "clipped sum", "Clipped sums"
    OUTPUT = "output perturbation", "Output perturbation"


FIRST_BOUND = 0.25
"""Where the bound of followed clipped sums begins at least, in rows; no choice: it goes where the users are."""


@dataclass(frozen=True)
class Cell:
    """One row of the table: a method at a bound.

    Attributes:
        method: What is done.
        bound: h, in rows: real and above 0 for weights and clipped sums, whole and at least 1 for a cap. Smooth
            weights of h at most 1 average each user's rows (Epasto et al. 2020, claim 1, where every user has a
            row); any method of h at least the largest user bounds nobody. Followed clipped sums begin there or above.
        clip: Norm to which a row's gradient is shortened, over that of the mechanism, in (0, 1]: below 1 it is to
            weights and caps what a bound below 1 is to clipped sums.

    Raises:
        InvalidInput: The bound does not suit the method, or the clip is out of range.
    """

    method: Method
    bound: float = FIRST_BOUND
    clip: float = 1.0

    def __post_init__(self) -> None:
        with Problems() as problems:
            if self.method is Method.CAP:
                problems.whole(1, 10**12, cap=self.bound)
            else:
                problems.positive(bound=self.bound)
            problems.between(1e-6, 1.0, clip=self.clip)
        object.__setattr__(self, "bound", float(self.bound))
        object.__setattr__(self, "clip", float(self.clip))

    @property
    def reach(self) -> float:
        """Return how far a user moves a step's summed gradient at most, in rows: bound times clip."""
        return self.bound * self.clip


def compute_smooth_weights(sizes: IntArray, bound: float) -> FloatArray:
    """Compute the weight of each row of a user, by user: min(h, s) / s, so that a user weighs min(h, s).

    Source: Epasto et al. 2020, claim 1 and appendix E.2, before the division by the sum of all.

    Source: Epasto et al. 2020, claim 1 and appendix E.2, before the division by the sum of all.
    """
    return np.asarray(np.minimum(bound, sizes) / sizes)


def draw_ranks(rows: ClassifierRows, seed: int, runs: range) -> IntArray:
    """Rank each user's rows 0, 1, 2 … in a random order, anew for every run, shape (num_rows, runs).

    A cap of h keeps ranks below h. The order of a run depends on seed and number of the run alone, and a user's
    order on no other user's presence in distribution, so that a cap drawn here is as private as one drawn in
    advance.
    """
    ranks = np.empty((rows.num_rows, len(runs)), dtype=np.int64)
    for run_index, run in enumerate(runs):
        ranks[:, run_index] = rank_within_users(
            rows, np.random.default_rng([seed, 1, run]).random(rows.num_rows)
        )
    return ranks


def rank_within_users(rows: ClassifierRows, keys: NDArray[Any]) -> IntArray:
    """Rank each user's rows 0, 1, 2 … in the order of their keys, shape (num_rows,)."""
    ranks = np.empty(rows.num_rows, dtype=np.int64)
    ranks[np.lexsort((keys, rows.users))] = np.arange(rows.num_rows) - rows.starts[rows.users]
    return ranks


def gradient_sensitivity(neighbours: Neighbours) -> float:
    """Return the sensitivity of the summed gradient in bounds: 1 where a user comes or goes, else 2."""
    return 1.0 if neighbours is Neighbours.ADD_OR_REMOVE_USER else 2.0


def weight_sensitivity(neighbours: Neighbours, bound: float) -> float:
    """Return the most that the sum of weights moves, in rows: 0 where it is public.

    A user weighs min(h, s) with s at least 1: a user who comes adds at most h; one who is replaced keeps at
    least min(h, 1), so that averages (h at most 1) have a sum that does not move.
    """
    if neighbours is Neighbours.ADD_OR_REMOVE_USER:
        return bound
    return max(bound - 1.0, 0.0) if neighbours is Neighbours.REPLACE_USER else 0.0
