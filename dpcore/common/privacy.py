"""The vocabulary of privacy that every question shares, and the total cost of releases."""

from __future__ import annotations

import enum
import functools
import math
import re
import secrets
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Decimal
from fractions import Fraction

from dpcore.common.checks import Problems, quote, refuse
from dpcore.common.wording import format_count, format_digits


class Neighbours(enum.Enum):
    """The neighbouring relation of a guarantee: the difference between two neighbouring data sets."""

    REPLACE_VALUES = "one user's values change; everybody's number of rows is public"
    ADD_OR_REMOVE_USER = "one user, with all their rows, is added or removed"
    REPLACE_USER = "one user, with all their rows, is replaced by another; the number of users is public"

    @property
    def short(self) -> str:
        """Return the relation in a few words, for labels."""
        return {
            Neighbours.REPLACE_VALUES: "replace one user's values",
            Neighbours.ADD_OR_REMOVE_USER: "add or remove one user",
            Neighbours.REPLACE_USER: "replace one user",
        }[self]


class Disclosure(enum.Enum):
    """The origin of a number (public input, private data, a DP release), which decides who may see it."""

    PUBLIC = "public"
    PRIVATE = "private"
    DP_RELEASE = "DP release"

    @property
    def label(self) -> str:
        """Return the label of a number computed from data of this kind."""
        return {
            Disclosure.PUBLIC: "public input",
            Disclosure.PRIVATE: "computed from private data (do not publish)",
            Disclosure.DP_RELEASE: "computed from a DP release",
        }[self]


LABEL_COLUMN = "label"
"""The column of a file that says in every line what its numbers are."""
# The mechanism is free text in a file that anybody may have written: no mark of Markdown, and short.
_LABEL_PATTERN = re.compile(
    r"DP release \(epsilon = ([0-9.]+(?:e-?[0-9]+)?)(?:, delta = ([0-9.]+(?:e-?[0-9]+)?))?, ([a-z' ]+), "
    r"([A-Za-z][A-Za-z0-9 -]{0,79})\)"
)
_MECHANISM_PATTERN = re.compile(r"[A-Za-z][A-Za-z0-9 -]{0,79}")


def is_mechanism(mechanism_text: str) -> bool:
    """Return True if a text may be a mechanism's name in the label of a file."""
    return _MECHANISM_PATTERN.fullmatch(mechanism_text) is not None


@dataclass(frozen=True)
class ReleaseFacts:
    """The guarantee of a DP release and its mechanism: the label of everything computed from it.

    Attributes:
        epsilon: As proven by what drew the noise, above 0.
        delta: As proven, at least 0 and below 1; 0 for a pure guarantee.
        neighbours: The relation that the guarantee is about.
        mechanism: In words, short, without numbers computed from data.

    Raises:
        InvalidInput: A parameter is out of its range.
    """

    epsilon: float
    delta: float
    neighbours: Neighbours
    mechanism: str

    def __post_init__(self) -> None:
        """Raise `InvalidInput` with every parameter that is out of its range."""
        with Problems() as problems:
            problems.positive(epsilon=self.epsilon)
            if problems.non_negative(delta=self.delta) and self.delta >= 1.0:
                problems.add(f"delta must be below 1; got {self.delta!r}")
            problems.of_kind(Neighbours, neighbours=self.neighbours)
            if not isinstance(self.mechanism, str) or not self.mechanism:
                problems.add("the mechanism must be said in words")

    @classmethod
    def from_label(cls, label_text: str) -> ReleaseFacts | None:
        """Read the facts from a release's ``label``, with its digits rounded up; None if the text is no such label."""
        label_match = _LABEL_PATTERN.fullmatch(label_text)
        neighbours_by_short_name = {relation.short: relation for relation in Neighbours}
        if label_match is None or label_match[3] not in neighbours_by_short_name:
            return None
        try:
            neighbours = neighbours_by_short_name[label_match[3]]
            return cls(float(label_match[1]), float(label_match[2] or 0.0), neighbours, label_match[4])
        except ValueError:  # Two points in a number, or an epsilon of 0.
            return None

    @property
    def guarantee(self) -> str:
        """Return the guarantee as ``epsilon = 0.1`` or ``epsilon = 0.1, delta = 0.000001``, rounded up."""
        epsilon_phrase = f"epsilon = {format_rounded_up(self.epsilon)}"
        return epsilon_phrase + (f", delta = {format_rounded_up(self.delta)}" if self.delta else "")

    @property
    def label(self) -> str:
        """Return the label of a number computed from the release."""
        return f"{Disclosure.DP_RELEASE.value} ({self.guarantee}, {self.neighbours.short}, {self.mechanism})"


Charge = Callable[[ReleaseFacts], None]
"""Notes what a draw guarantees. Whoever draws calls it after all checks and before there is any noise, so that an
error afterwards finds the draw noted; where it raises, nothing is drawn."""

Provenance = Disclosure | ReleaseFacts
"""The origin of numbers, with a ``label``: the facts of a release, or else public or private."""


def check_provenance(disclosure: str | Provenance) -> Provenance:
    """Convert "public", "private" or a provenance to a provenance; raise InvalidInput for anything else."""
    if isinstance(disclosure, Disclosure | ReleaseFacts):
        return disclosure
    if isinstance(disclosure, str) and disclosure in ("public", "private"):
        return Disclosure(disclosure)
    allowed_text = "'private', 'public' or the facts of a DP release"
    raise refuse(f"disclosure must be {allowed_text}; got {quote(disclosure)}")


def classify(provenance: Provenance) -> Disclosure:
    """Return public, private or DP release; facts of a release are the last."""
    return Disclosure.DP_RELEASE if isinstance(provenance, ReleaseFacts) else provenance


def find_strictest(provenances: Iterable[Provenance]) -> Provenance:
    """Return the strictest provenance: private before a release before public; of several releases the first."""
    provenance_list = list(provenances)
    if Disclosure.PRIVATE in provenance_list:
        return Disclosure.PRIVATE
    return next((p for p in provenance_list if p is not Disclosure.PUBLIC), Disclosure.PUBLIC)


def round_up_to_float(exact: Fraction) -> float:
    """Return the smallest float64 that is not below a number: a sum of epsilons, or a sensitivity."""
    nearest_float = float(exact)
    return nearest_float if Fraction(nearest_float) >= exact else math.nextafter(nearest_float, math.inf)


def format_rounded_up(privacy_parameter: float, num_digits: int = 6) -> str:
    """Format a privacy parameter with ``num_digits`` significant digits, rounded up.

    An excess below 1e-12 of it is rounding of a sum (0.1 + 0.2) and does not raise the last digit shown.
    """
    # The shortest decimal that is this float, as it was entered: 0.1, and not the binary fraction just above it.
    exact_decimal = Decimal(repr(float(privacy_parameter)))
    if not exact_decimal:
        return "0"
    last_digit_unit = Decimal(1).scaleb(exact_decimal.adjusted() - num_digits + 1)
    rounded_decimal = exact_decimal.quantize(last_digit_unit, rounding=ROUND_HALF_EVEN)
    if abs(rounded_decimal - exact_decimal) > exact_decimal * Decimal("1e-12"):
        rounded_decimal = exact_decimal.quantize(last_digit_unit, ROUND_CEILING)
    return format_digits(float(rounded_decimal))


@dataclass(frozen=True)
class LaplaceNoise:
    """Laplace noise of an epsilon-DP release.

    Attributes:
        scale: b, in the unit of what is released.

    Source: Epasto et al. 2020, definition 3 (Dwork et al. 2006): Lap(b) has mean 0 and variance 2 b^2.
    """

    scale: float

    @classmethod
    def for_release(cls, l1_sensitivity: float, epsilon: float) -> LaplaceNoise:
        """Return the noise that makes a statistic of this L1 sensitivity epsilon-DP."""
        return cls(scale=l1_sensitivity / epsilon)

    @property
    def variance(self) -> float:
        """Return 2 b^2."""
        return 2.0 * self.scale**2


@dataclass(frozen=True)
class GaussianNoise:
    """Normal noise of an (epsilon, delta)-DP release.

    Attributes:
        scale: Standard deviation, in the unit of what is released.

    Source: Balle and Wang 2018, theorem 8 (the exact condition, not the classical sufficient one).
    """

    scale: float

    @classmethod
    def for_release(cls, l2_sensitivity: float, epsilon: float, delta: float) -> GaussianNoise:
        """Return the noise that makes a statistic of the given L2 sensitivity (epsilon, delta)-DP, never too little.

        Args:
            l2_sensitivity: L2 sensitivity, at least 0, in the unit of what is released.
            epsilon: Above 0.
            delta: Strictly between 0 and 1.

        Raises:
            InvalidInput: A parameter is out of its range.
        """
        with Problems() as problems:
            problems.non_negative(sensitivity=l2_sensitivity)
            problems.positive(epsilon=epsilon)
            problems.inside(0.0, 1.0, delta=delta)
        return cls(scale=l2_sensitivity * _compute_unit_sigma(float(epsilon), float(delta)))

    @property
    def variance(self) -> float:
        """Return the scale squared."""
        return self.scale**2


def compute_gaussian_sigma(epsilon: float, delta: float) -> float:
    """Compute the standard deviation at which a Gaussian of L2 sensitivity 1 is (epsilon, delta)-DP.

    By dp-accounting, whose root finder may stop on either side of the root: code that releases noise pushes the
    result to the safe side.

    Source: Balle and Wang 2018, theorem 8.
    """
    import numpy as np
    from dp_accounting import get_sigma_gaussian

    # Whether log1p(-1) and the like warn there depends on the processor: NumPy has one loop per instruction set.
    with np.errstate(all="ignore"):
        return float(get_sigma_gaussian(epsilon, delta))


def compute_gaussian_epsilon(sigma: float, delta: float) -> float:
    """Compute the smallest epsilon that a Gaussian of L2 sensitivity 1 keeps at ``delta``.

    Source: Balle and Wang 2018, theorem 8, by dp-accounting.
    """
    import numpy as np
    from dp_accounting import get_epsilon_gaussian

    with np.errstate(all="ignore"):  # As in `compute_gaussian_sigma`.
        return float(get_epsilon_gaussian(sigma, delta))


def bound_sampled_epsilon(
    sigma: float,
    sampling_probability: float,
    num_steps: int,
    unsampled_sigma: float,
    delta: float,
    grid_distance: float = 1e-3,
) -> float:
    """Compute an upper bound on epsilon for Gaussians of Poisson-sampled users, and one Gaussian of all users.

    It is for neighbours that add or remove a user. Privacy losses are put on a grid, rounded upwards, and composed.

    Args:
        sigma: Standard deviation of each sampled Gaussian over its L2 sensitivity.
        sampling_probability: Probability with which a user takes part in one of them.
        num_steps: How many there are.
        unsampled_sigma: Standard deviation of the Gaussian of all users over its sensitivity; 0 where there is none.
        delta: At which epsilon is asked.
        grid_distance: Distance of the grid's points.

    Source: Doroshenko et al. 2022, by dp-accounting.
    """
    import numpy as np
    from dp_accounting.pld import privacy_loss_distribution as losses

    with np.errstate(all="ignore"):  # As in `compute_gaussian_sigma`.
        loss_distribution = losses.from_gaussian_mechanism(
            sigma, sampling_prob=sampling_probability, value_discretization_interval=grid_distance
        ).self_compose(num_steps)
        if unsampled_sigma:
            loss_distribution = loss_distribution.compose(
                losses.from_gaussian_mechanism(unsampled_sigma, value_discretization_interval=grid_distance)
            )
        return float(loss_distribution.get_epsilon_for_delta(delta))


def bound_mixture_epsilon(
    sigma: float,
    mean_moves: Sequence[float],
    move_probabilities: Sequence[float],
    num_steps: int,
    delta: float,
    grid_distance: float,
) -> float:
    """Compute an upper bound on epsilon of steps in which a user moves a Gaussian by a random amount.

    The amount is one of ``mean_moves``, with probabilities ``move_probabilities``. It is for neighbours that add or
    remove a user; rounding is as in `bound_sampled_epsilon`.

    Args:
        sigma: Standard deviation of a step's noise.
        mean_moves: By how much, ascending from 0.
        move_probabilities: With which probabilities; they sum to 1.
        num_steps: How many steps there are.
        delta: At which epsilon is asked.
        grid_distance: Distance of the grid's points.

    Source: Choquette-Choo et al. 2023 (arXiv 2310.15526) for the pair; Doroshenko et al. 2022, by dp-accounting.
    """
    import numpy as np
    from dp_accounting.pld import privacy_loss_distribution as losses

    with np.errstate(all="ignore"):  # As in `compute_gaussian_sigma`.
        step_losses = losses.from_mixture_gaussian_mechanism(
            sigma, list(mean_moves), list(move_probabilities), value_discretization_interval=grid_distance
        )
        return float(step_losses.self_compose(num_steps).get_epsilon_for_delta(delta))


@functools.lru_cache(maxsize=4096)
def _compute_unit_sigma(epsilon: float, delta: float) -> float:
    """Compute the standard deviation at sensitivity 1 by dp-accounting, raised by more than its rounding."""
    rounded_sigma = compute_gaussian_sigma(epsilon, delta)
    # It solves delta = Phi(1 / (2 sigma) - epsilon sigma) - e^epsilon Phi(...) to 1e-12 (absolute in sigma), a
    # difference that loses Phi / delta in relative precision. Measured against 60 digits the loss is 4e-9 at
    # epsilon = 1e-6, delta = 1e-15; this pushes by 2e-7 there.
    first_delta_term = 0.5 * math.erfc((epsilon * rounded_sigma - 0.5 / rounded_sigma) / math.sqrt(2.0))
    return rounded_sigma * (1.0 + 1e-13 + 32.0 * sys.float_info.epsilon * first_delta_term / delta) + 2e-12


def write_file_name(file_stem: str, disclosure: Provenance) -> str:
    """Return a file name without its ending; it says if numbers are private, or of a DP release with which epsilon."""
    hyphenated_stem = file_stem.replace("_", "-")
    if isinstance(disclosure, ReleaseFacts):
        return f"{hyphenated_stem}-DP-release-epsilon-{format_rounded_up(disclosure.epsilon)}"
    is_private = disclosure is Disclosure.PRIVATE
    return f"{hyphenated_stem}-PRIVATE-do-not-publish" if is_private else hyphenated_stem


# How many steps of the first relation one step of the second takes at most; absent where none lead there.
# Replacing a user is removing one and adding another; so is changing one user's values; and changing values is
# replacing a user by one with as many rows.
_STEPS_BY_RELATIONS = {
    (Neighbours.ADD_OR_REMOVE_USER, Neighbours.ADD_OR_REMOVE_USER): 1,
    (Neighbours.ADD_OR_REMOVE_USER, Neighbours.REPLACE_USER): 2,
    (Neighbours.ADD_OR_REMOVE_USER, Neighbours.REPLACE_VALUES): 2,
    (Neighbours.REPLACE_USER, Neighbours.REPLACE_USER): 1,
    (Neighbours.REPLACE_USER, Neighbours.REPLACE_VALUES): 1,
    (Neighbours.REPLACE_VALUES, Neighbours.REPLACE_VALUES): 1,
}
_LARGEST_EXPONENT = 709.0
_STRONGEST_RELATIONS_FIRST = (
    Neighbours.ADD_OR_REMOVE_USER,
    Neighbours.REPLACE_USER,
    Neighbours.REPLACE_VALUES,
)


def draw_mark() -> str:
    """Draw a random mark of 16 hexadecimal digits, unrelated to data and noise."""
    return secrets.token_hex(8)


@dataclass(frozen=True)
class Total:
    """The joint guarantee of all releases.

    Attributes:
        epsilon: Never less than the sum.
        delta: Likewise; 1 at most, where nothing is guaranteed any more.
        neighbours: The strongest relation that all of them cover.
    """

    epsilon: float
    delta: float
    neighbours: Neighbours


@dataclass(frozen=True)
class Ledger:
    """The releases of one set of private data, in order.

    Basic composition: epsilons and deltas add up, whatever was chosen in the light of earlier releases. If
    neighbouring relations differ, the total is for the strongest that all cover, with group privacy for those
    that take two steps: (2 epsilon, (1 + e^epsilon) delta).

    Attributes:
        releases: What each guarantees.
        marks: One per release, drawn at random when it is noted: the same release that comes back from a file is known
            by it, and two releases of the same kind stay two. New ones are drawn where none are given.

    Raises:
        ValueError: The marks are not as many as the releases, or one stands twice.

    Examples:
        >>> release = ReleaseFacts(0.5, 0.0, Neighbours.ADD_OR_REMOVE_USER, "Laplace")
        >>> print(Ledger().add(release).add(release).sentence)
        Spent on these data: ε = 1 in 2 releases (add or remove one user).

    Source: Dwork, Roth 2014, The Algorithmic Foundations of Differential Privacy, theorems 3.16 and B.1 (basic
        composition), theorem 2.2 and its (epsilon, delta) form (group privacy).
    """

    releases: tuple[ReleaseFacts, ...] = ()
    marks: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        """Draw the marks if none are given; raise ValueError unless each release has a mark of its own."""
        if not self.marks:
            object.__setattr__(self, "marks", tuple(draw_mark() for _ in self.releases))
        if not len(self.releases) == len(self.marks) == len(set(self.marks)):
            raise ValueError("a ledger has one mark of its own for each release")

    def add(self, facts: ReleaseFacts) -> Ledger:
        """Return the ledger with one more release."""
        return Ledger((*self.releases, facts), (*self.marks, draw_mark()))

    def merge(self, other_ledger: Ledger) -> Ledger:
        """Return a ledger with the releases of both, where releases that both hold stand once.

        Two releases are the same if mark and facts are. A release of ``other_ledger`` with the mark of another
        release here gets a new mark. The total is never less than either ledger's.
        """
        facts_by_mark = dict(zip(self.marks, self.releases, strict=True))
        merged_ledger = self
        for release_mark, facts in zip(other_ledger.marks, other_ledger.releases, strict=True):
            if facts_by_mark.get(release_mark) != facts:
                unused_mark = draw_mark() if release_mark in merged_ledger.marks else release_mark
                merged_ledger = Ledger((*merged_ledger.releases, facts), (*merged_ledger.marks, unused_mark))
        return merged_ledger

    @property
    def total(self) -> Total | None:
        """Return the joint guarantee of all releases; None before the first."""
        if not self.releases:
            return None
        # There always is one: every relation covers changed values.
        common_neighbours = next(
            common_neighbours
            for common_neighbours in _STRONGEST_RELATIONS_FIRST
            if all((facts.neighbours, common_neighbours) in _STEPS_BY_RELATIONS for facts in self.releases)
        )
        exact_epsilon, exact_delta = Fraction(0), Fraction(0)
        for facts in self.releases:
            num_steps = _STEPS_BY_RELATIONS[facts.neighbours, common_neighbours]
            exact_epsilon += num_steps * Fraction(facts.epsilon)
            delta_factor = Fraction(1)
            if num_steps == 2 and facts.delta:
                # e^epsilon is beyond float64 above 709; any delta times it is then taken for no guarantee at all.
                exp_epsilon = math.exp(facts.epsilon) if facts.epsilon <= _LARGEST_EXPONENT else 0.0
                delta_factor = 1 / Fraction(facts.delta)
                if exp_epsilon:
                    delta_factor = 1 + Fraction(math.nextafter(exp_epsilon, math.inf))
            exact_delta += delta_factor * Fraction(facts.delta)
        total_delta = round_up_to_float(min(exact_delta, Fraction(1)))
        return Total(round_up_to_float(exact_epsilon), total_delta, common_neighbours)

    @property
    def sentence(self) -> str:
        """Return the total as a sentence, rounded up."""
        ledger_total = self.total
        if ledger_total is None:
            return "Nothing has been released from these data."
        delta_text = f", δ = {format_rounded_up(ledger_total.delta)}" if ledger_total.delta else ""
        return (
            f"Spent on these data: ε = {format_rounded_up(ledger_total.epsilon)}{delta_text} in "
            f"{format_count(len(self.releases), 'release')} ({ledger_total.neighbours.short})."
        )
