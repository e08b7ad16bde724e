"""The range [L, U] that values are clamped to, chosen from private data by exponential mechanisms.

The aim. With at most h rows of each user, a user of s rows weighs min(h, s) / n_h in a mean, and the error
|bias| + mean |noise| is (what is cut off) + h (U - L) / (epsilon n_h). It is least in U where the rows above U weigh
h / (epsilon n_h): multiplied by n_h / h,

    Q(U) = sum_l (min(h, s_l) / h) (share of user l's rows above U) = 1 / epsilon,

and in L likewise: n_h, which is private, has gone, and a user adds between 0 and 1 to Q. So at the best range as many
users lie beyond either end as weigh 1 / epsilon; for the sum of a column the condition is the same.

The score of a candidate U is its distance d_U, in users, from tau = 1 / epsilon + 2 / (epsilon of the draw) to the
interval [Q(U), Q(U-)]: the margin keeps a draw from landing beyond all users, where only the noise grows. Candidates
are centre + w with w on a public geometric grid, and U is drawn with a chance proportional to
w^-p exp(-epsilon d_U / 2). The weights w^-p decide more than the rank does: beyond all users every candidate is about
tau from the target, there are as many of them as the grid has decades, and the error is proportional to w. At p = 1.5
the mean error is finite whatever the public maximum, above 2 the mean square too; but a larger p takes more users to
outvote (`RangeProblem.signal_ratio`), so that a public guess of their number decides. The centre
is a typical value that is public, or is drawn before. A known L takes the centre's place, and U alone is
drawn.

The cost. One user added to the data moves Q(U) at any candidate by at most r, the share of their rows above the
centre, all in one direction; so the log of the chance of any U moves by at most epsilon r (half from its score, half
from the sum over all). For L it moves by epsilon r' with r' the share below. As r + r' <= 1, **both draws together are
epsilon-DP** where users are added or removed. If a user is replaced by another, or only their values are, each of
the two may move by the whole of it: both ends cost twice, and each gets half. A single end is moved by 1 under any
relation.

Without a public centre a quarter of epsilon draws the median (each user's rows weigh 1 together; over 0 and a signed
geometric grid), and the rest one half-width w for both ends, with Q(w) = the share of rows farther than w from it. A
centre far from all data costs in proportion to its distance, so that centres have weights, too: |c|^-1/2, and |c|^-1
where the public guess says that there are few users (`PRIOR_POWERS_OF_CENTRE`).

Where users are clamped in place of rows (`dpcore.mean.clamped_users`), user l counts as one row with the value
centre + min(h, s_l) / h (mean of the rows - centre): the half-width w cuts off those with |z_l| > T = h w. The mean
noise is 2 T / (epsilon n_h), so that tau is 2 / epsilon + 2 / (epsilon of the draw). A user moves one rank by at most 1
under every relation, so that one half-width costs epsilon, and two ends cost what they do above.

Shares are rounded down to steps of 2^-20 user for each user before they are added up, in whole numbers: so the
sensitivity is exact, and r + r' <= 1 stays true. Source: McSherry and Talwar 2007, theorem 6, for the draw; Amin et al.
2019, equation 6, for the rank of a sum; condition, composition and weights are ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpcore.common import mechanisms
from dpcore.common.checks import EPSILON_RANGE, Problems
from dpcore.common.privacy import Charge, Neighbours, ReleaseFacts
from dpcore.contributions import MAX_SIZE, FloatArray, IntArray
from dpcore.dataset import Values
from dpcore.private_choice.choice import MECHANISM_NAME
from dpcore.private_choice.scores import RESOLUTION, add_prior, compute_interval_distance, to_steps

GRID_GROWTH = 1.02
"""Widths of the grid are at most so many times the one before."""
TARGET_MARGIN_TIMES_EPSILON = 2.0
"""tau is so many users over epsilon of the draw above 1 / epsilon of the release; between 0 and 4 it matters little."""
PRIOR_POWER_RANGE = (1.5, 2.5)
"""Least and largest p of the weights w^-p. Below 1.5 the mean error is that of the largest candidates, below 2 the mean
square is; from 2.5 on nothing is gained."""
EPSILON_SHARE_OF_CENTRE = 0.25
"""Share of epsilon that draws the centre where none is known."""
PRIOR_POWERS_OF_CENTRE = (0.5, 1.0)
"""p of the weights |c|^-p of centres, the second where the data are not `RangeProblem.signal_ratio`.

For 400 users at an epsilon of 0.1, who are not, the table has the mean error of a draw over that of the best range, on
the two samples:

    all centres alike  30,000  1,600,000
    power of 1/2          112      3,600
    power of 1             29         13

At an epsilon of 0.5 a power of 1/2 changes nothing there. It costs 1.32 to 1.62 times for values about 1,000 with a
deviation of 5, for which a power of 1 costs 40 times."""
MAX_MAGNITUDE = 1e15
"""Largest magnitude of a public number of a range; the smallest distance is its reciprocal."""


@dataclass(frozen=True)
class RangeProblem:
    """The question: choose a range of values with epsilon-DP. All of it is public.

    Attributes:
        epsilon_release: Of the release that will use the range, in `dpcore.common.checks.EPSILON_RANGE`.
        epsilon: Budget of the choice alone, from 1e-5 to 1e3.
        unit: Smallest distance of an end from the centre that is looked at, above 0, in the values' unit: how finely
            they are measured.
        largest: Largest distance of an end from the centre, above ``unit``; without a centre also the largest
            magnitude of the centre.
        centre: A typical value from what the quantity is; None to draw it too, or where ``lower`` is known.
        lower: L where it is known; then U alone is drawn.
        neighbours: Who differs between neighbouring data sets.
        users: A public guess of the number of users, at least 1, never the number in the data; None for none. With a
            bound on rows above 1, of those who have so many rows: the others count in part.
        max_contributions: h, at least 1, public or drawn before.
        clamps_users: True if the range limits each user's deviation from its middle, not each row.

    Raises:
        InvalidInput: All problems at once.
    """

    epsilon_release: float
    epsilon: float
    unit: float
    largest: float
    centre: float | None = None
    lower: float | None = None
    neighbours: Neighbours = Neighbours.ADD_OR_REMOVE_USER
    users: float | None = None
    max_contributions: int = 1
    clamps_users: bool = False

    def __post_init__(self) -> None:
        """Raise `InvalidInput` with all problems of the attributes."""
        with Problems() as problems:
            problems.between(*EPSILON_RANGE, epsilon=self.epsilon_release)
            problems.between(10.0 * EPSILON_RANGE[0], EPSILON_RANGE[1], selection_epsilon=self.epsilon)
            is_valid = problems.between(
                1.0 / MAX_MAGNITUDE, MAX_MAGNITUDE, unit=self.unit, largest=self.largest
            )
            if is_valid:
                problems.ascending(unit=self.unit, largest=self.largest)
            for field_name in ("centre", "lower"):
                if (field_value := getattr(self, field_name)) is not None:
                    is_valid &= problems.between(-MAX_MAGNITUDE, MAX_MAGNITUDE, **{field_name: field_value})
            if self.centre is not None and self.lower is not None:
                problems.add("a typical value goes with both ends, and with a known L only U is chosen")
            if self.clamps_users and self.lower is not None:
                problems.add("users are clamped around a centre, which a known L does not give")
            problems.of_kind(Neighbours, neighbours=self.neighbours)
            problems.whole(1, MAX_SIZE, max_contributions=self.max_contributions)
            if self.users is not None:
                problems.between(1.0, MAX_SIZE, users=self.users)
            if not problems.entries and self.anchor is not None and not self.list_widths(self.anchor).size:
                problems.add(
                    "beside the typical value, or L, no width of the grid can be told from 0",
                    remedy="Enter a larger largest distance",
                )

    @property
    def anchor(self) -> float | None:
        """Return the known L or centre, from which candidates are counted; None if the centre is drawn, too."""
        return self.centre if self.lower is None else self.lower

    @property
    def num_ends(self) -> int:
        """Return the number of draws of ends: 2 for L and U, 1 for U alone or one half-width."""
        return 2 if self.centre is not None else 1

    @property
    def epsilon_of_end(self) -> float:
        """Return the epsilon of each draw of an end."""
        if self.anchor is None:
            # Never above the rest: 3/4 of it may have been rounded up.
            return math.nextafter((1.0 - EPSILON_SHARE_OF_CENTRE) * self.epsilon, 0.0)
        is_halved = self.num_ends == 2 and self.neighbours is not Neighbours.ADD_OR_REMOVE_USER
        return self.epsilon / 2.0 if is_halved else self.epsilon

    @property
    def epsilon_of_centre(self) -> float:
        """Return the epsilon of the draw of the centre; without meaning if the centre is known."""
        return EPSILON_SHARE_OF_CENTRE * self.epsilon

    @property
    def centre_sensitivity(self) -> int:
        """Return by how many steps one user can change a score of the centre, at most."""
        return RESOLUTION // 2 if self.neighbours is Neighbours.ADD_OR_REMOVE_USER else RESOLUTION

    @property
    def target(self) -> float:
        """Return tau, the public target of the tail sums, in users."""
        return (
            2.0 if self.clamps_users else 1.0
        ) / self.epsilon_release + TARGET_MARGIN_TIMES_EPSILON / self.epsilon_of_end

    @property
    def signal_ratio(self) -> float | None:
        """Return by how much the data outweigh the prior that favours small candidates; None without a guess of users.

        Next to the centre a candidate lacks (epsilon / 2) (users beyond - tau), and the weights favour it by p ln(w /
        unit) over the best w. Beyond count all users above a known L, and a quarter of them on either side of a
        typical value, as values are skewed; the best w is taken to lie at two thirds of the grid on its log axis. So
        from 1 on the data decide at p = 1.5.
        """
        if self.users is None:
            return None
        num_users_beyond = self.users * self._beyond
        return (
            0.5 * self.epsilon_of_end * (num_users_beyond - self.target) / math.log(self.largest / self.unit)
        )

    @property
    def _beyond(self) -> float:
        """Return the assumed share of users who have values beyond an end."""
        return 0.25 if self.num_ends == 2 else 1.0

    @property
    def users_needed(self) -> float:
        """Return the approximate number of users from which a draw is of use."""
        return (self.target + 2.0 * math.log(self.largest / self.unit) / self.epsilon_of_end) / self._beyond

    @property
    def power(self) -> float:
        """Return p of the weights w^-p: larger for more users, who outweigh it; the least without a guess of users."""
        least_power, largest_power = PRIOR_POWER_RANGE
        return min(max(least_power + 0.5 * ((self.signal_ratio or 1.0) - 1.0), least_power), largest_power)

    @cached_property
    def grid(self) -> FloatArray:
        """Return the public distances from the centre, ascending, of four digits, in the values' unit, shape (c,)."""
        num_steps = math.ceil(math.log(self.largest / self.unit) / math.log(GRID_GROWTH))
        unrounded_distances = np.geomspace(self.unit, self.largest, num_steps + 1)
        inner_distances = [float(f"{distance:.3e}") for distance in unrounded_distances[1:-1]]
        return np.unique(np.clip([self.unit, *inner_distances, self.largest], self.unit, self.largest))

    @cached_property
    def centres(self) -> FloatArray:
        """Return the candidates for the centre, ascending: 0 and the grid with both signs."""
        return np.concatenate((-self.grid[::-1], [0.0], self.grid))

    @cached_property
    def centre_log_prior(self) -> FloatArray:
        """Return the public log weight of each candidate for the centre, larger near 0, shape (c,)."""
        has_few_users = self.signal_ratio is not None and self.signal_ratio < 1.0
        return np.asarray(
            -PRIOR_POWERS_OF_CENTRE[has_few_users] * np.log(np.maximum(np.abs(self.centres), self.unit))
        )

    def list_widths(self, anchor: float) -> FloatArray:
        """Return the distances of the grid that float64 can add to and subtract from the anchor, ascending."""
        return self.grid[(anchor + self.grid > anchor) & (anchor - self.grid < anchor)]

    def compute_log_prior(self, anchor: float) -> FloatArray:
        """Compute the log weight of each distance that is possible at an anchor."""
        return np.asarray(-self.power * np.log(self.list_widths(anchor) / self.largest))

    def list_ends(self, anchor: float) -> FloatArray:
        """Return the candidates for U at an anchor, ascending."""
        return np.asarray(anchor + self.list_widths(anchor))

    def may_draw(self, lower: float, upper: float) -> bool:
        """Return True if a draw can return this range."""
        if self.anchor is None:
            grid, centres = self.grid, self.centres.tolist()
            return any(lower in centre - grid and upper in centre + grid for centre in centres)
        lower_fits = lower == self.lower if self.lower is not None else -lower in self.list_ends(-self.anchor)
        return lower_fits and upper in self.list_ends(self.anchor)

    def compute_logits(self, tail_sums: tuple[IntArray, IntArray], anchor: float) -> FloatArray:
        """Compute the log probability of each candidate for an end, up to a constant, shape (c,)."""
        distances = compute_interval_distance(*tail_sums, to_steps(Fraction(self.target)))
        logits_per_step = self.epsilon_of_end / (2.0 * RESOLUTION)
        return np.asarray(self.compute_log_prior(anchor) - logits_per_step * distances)

    def compute_scores(self, tail_sums: tuple[IntArray, IntArray], anchor: float) -> list[int]:
        """Compute the score of each candidate for an end, in steps: minus distance plus log weight."""
        distances = compute_interval_distance(*tail_sums, to_steps(Fraction(self.target)))
        return add_prior(distances, self.compute_log_prior(anchor), RESOLUTION, self.epsilon_of_end)


def sum_tails(
    values: Values | None, ends: FloatArray, max_contributions: int = 1
) -> tuple[IntArray, IntArray]:
    """Compute how much weight rows have above each end, and at or above it: Q(U), Q(U-), in steps; private.

    Args:
        values: Values of every row, sorted by user; None for data without anybody in them.
        ends: Ascending, shape (c,).
        max_contributions: h.

    Returns:
        Two arrays of shape (c,), int64; each user adds a whole number from 0 to `RESOLUTION`.
    """
    if values is None:
        return np.zeros(ends.size, dtype=np.int64), np.zeros(ends.size, dtype=np.int64)
    # Within each user the largest first, whose j-th alone decides whether j rows lie above an end. A row weighs
    # (min(h, s) / h) / s = 1 / max(h, s) users.
    row_order = np.lexsort((-values.values, values.user_codes))
    ordered_values, user_starts = values.values[row_order], values.first_entries
    rows_per_user = values.rows_per_user
    user_size_per_row = np.repeat(rows_per_user, rows_per_user)
    row_ranks = np.arange(1, ordered_values.size + 1) - np.repeat(user_starts, rows_per_user)
    # A user whose j largest rows lie above adds floor(j 2^20 / max(h, s)): the j-th adds the difference.
    row_divisors = np.maximum(user_size_per_row, max_contributions)
    added_steps = row_ranks * RESOLUTION // row_divisors - (row_ranks - 1) * RESOLUTION // row_divisors
    num_ends_up_to = np.searchsorted(ends, ordered_values, side="right")
    tails_above = _sum_above(np.searchsorted(ends, ordered_values, side="left"), added_steps, ends.size)
    return tails_above, _sum_above(num_ends_up_to, added_steps, ends.size)


def _sum_above(num_ends_below_rows: IntArray, added_steps: IntArray, num_candidates: int) -> IntArray:
    """Sum the steps of the rows above each end, shape (num_candidates,).

    ``num_ends_below_rows`` says of each row how many ends lie below it. Sums are exact below 2^53.
    """
    step_sums = np.bincount(
        num_ends_below_rows, weights=added_steps.astype(np.float64), minlength=num_candidates + 1
    )
    return np.asarray(np.cumsum(step_sums[::-1])[::-1][1:].astype(np.int64))


def scale_deviations(values: Values, centre: float, max_contributions: int) -> Values:
    """Replace each user's rows by one: the centre plus min(h, s) / h times their mean's deviation from it.

    Args:
        values: Values of every row, sorted by user.
        centre: M, public or drawn before.
        max_contributions: h.
    """
    first_row_indices, rows_per_user = values.first_entries, values.rows_per_user
    # Divided before the sum, which must not overflow: the draw would fail for some tables only.
    user_means = np.add.reduceat(values.values / np.repeat(rows_per_user, rows_per_user), first_row_indices)
    user_weights = np.minimum(rows_per_user, max_contributions) / max_contributions
    return replace(
        values,
        user_codes=values.user_codes[first_row_indices],
        values=centre + user_weights * (user_means - centre),
    )


def negate_values(values: Values | None) -> Values | None:
    """Return the values with their signs changed, so that L is found as a U; None for None."""
    return None if values is None else replace(values, values=-values.values)


def list_tails(
    problem: RangeProblem, values: Values | None, anchor: float
) -> tuple[tuple[IntArray, IntArray], ...]:
    """Compute `sum_tails` of each draw at an anchor: (of U,), (of L, of U), or (of the half-width,)."""
    max_contributions = int(problem.max_contributions)
    if problem.clamps_users:
        values = None if values is None else scale_deviations(values, anchor, max_contributions)
        max_contributions = 1
    if problem.anchor is None:
        distance_values = None if values is None else replace(values, values=np.abs(values.values - anchor))
        return (sum_tails(distance_values, problem.list_widths(anchor), max_contributions),)
    upper_tails = sum_tails(values, problem.list_ends(anchor), max_contributions)
    if problem.num_ends == 1:
        return (upper_tails,)
    return sum_tails(negate_values(values), problem.list_ends(-anchor), max_contributions), upper_tails


def score_ends(problem: RangeProblem, values: Values | None, anchor: float) -> tuple[list[int], ...]:
    """Compute the scores of each draw at an anchor: (of U,), (of L, of U), or (of the half-width,)."""
    return tuple(
        problem.compute_scores(tail_sums, anchor) for tail_sums in list_tails(problem, values, anchor)
    )


def score_centres(problem: RangeProblem, values: Values | None) -> list[int]:
    """Compute the score of each candidate for the centre, in steps.

    It is minus the distance of 0 from (share above) - 1/2, plus log weights. A user who is added or removed moves it
    by at most half a user, one who is replaced by a whole one.
    """
    half_users_in_steps = 0 if values is None else int(np.unique(values.user_codes).size) * (RESOLUTION // 2)
    distances = compute_interval_distance(*sum_tails(values, problem.centres), half_users_in_steps)
    log_prior, sensitivity = problem.centre_log_prior, problem.centre_sensitivity
    return add_prior(distances, log_prior, sensitivity, problem.epsilon_of_centre)


@dataclass(frozen=True)
class DrawnRange:
    """A range that was chosen with epsilon-DP and may be published.

    Attributes:
        lower: L, in the values' unit.
        upper: U.
        facts: What the choice of both guarantees together and how it was made.
        problem: The question, all of it public.
        column: Name of the column whose values these are, public.
    """

    lower: float
    upper: float
    facts: ReleaseFacts
    problem: RangeProblem
    column: str = ""


def choose(
    problem: RangeProblem, values: Values | None, charge: Charge | None = None, value_column: str = ""
) -> DrawnRange:
    """Draw the range: one DP release of both ends, fresh at every call.

    Args:
        problem: The question.
        values: Values of every row, private; None for data without anybody in them.
        charge: Told once, before anything is drawn, what all draws together guarantee.
        value_column: Name of the column; by default that of the values.
    """
    value_column = value_column or ("" if values is None else values.column)
    release_facts = ReleaseFacts(problem.epsilon, 0.0, problem.neighbours, MECHANISM_NAME)
    anchor = problem.anchor
    # Beside a known anchor all that can fail comes before the charge. Without one the ends' scores need the centre
    # that is drawn; the charge is for both.
    scores_per_draw = None if anchor is None else score_ends(problem, values, anchor)
    if charge is not None:
        charge(release_facts)
    if anchor is None:
        centre_release = mechanisms.exponential_mechanism(
            score_centres(problem, values), problem.centre_sensitivity, problem.epsilon_of_centre
        )
        # Released, and so free to use: the candidates for the half-width may depend on it.
        anchor = float(problem.centres[centre_release.index])
        scores_per_draw = score_ends(problem, values, anchor)
    assert scores_per_draw is not None
    candidate_distances = problem.list_widths(anchor)
    epsilon = problem.epsilon_of_end
    drawn_indices = [
        mechanisms.exponential_mechanism(end_scores, RESOLUTION, epsilon).index
        for end_scores in scores_per_draw
    ]
    lower = anchor if problem.lower is not None else anchor - float(candidate_distances[drawn_indices[0]])
    return DrawnRange(
        lower, anchor + float(candidate_distances[drawn_indices[-1]]), release_facts, problem, value_column
    )
