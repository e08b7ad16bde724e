"""What is carried away: a release, the bound that was chosen for it, and how the data name their columns."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, fields
from fractions import Fraction
from numbers import Real

from dpcore.common import wording
from dpcore.common.checks import EPSILON_RANGE, Problems
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Disclosure, Neighbours, Provenance, ReleaseFacts
from dpcore.data.layout import FileLayout, TableLayout

MAX_WHOLE = 10**12


class Released(enum.Enum):
    """What is released; the value is how a sentence calls it."""

    MEAN = "mean"
    SUM = "sum"
    COUNT = "count of rows"
    GROUP_COUNTS = "users per group"
    GROUP_ROWS = "rows per group"
    GROUP_SUMS = "sums per group"
    GROUP_MEANS = "means per group"
    QUANTILE = "quantile"
    MODEL = "model"
    TASK_WEIGHTS = "weighted sums per task"
    COEFFICIENTS = "coefficients of a linear model"
    CLASSIFIER = "linear classifier"


NEEDS: dict[Released, tuple[tuple[str, ...], ...]] = {
    Released.MEAN: (("max_rows",), ("threshold",)),
    Released.SUM: (("max_total",),),
    Released.COUNT: (("max_rows",),),
    Released.GROUP_COUNTS: (("max_groups",), ("max_norm",)),
    Released.GROUP_ROWS: (("max_groups", "max_rows"), ("max_norm",)),
    Released.GROUP_SUMS: (("max_groups", "max_total"), ("max_norm",)),
    Released.GROUP_MEANS: (("max_groups", "max_rows"),),
    Released.QUANTILE: (("max_rows",), ("threshold",)),
    Released.MODEL: (("max_rows",),),
    Released.TASK_WEIGHTS: (("exponent", "budget"),),
    Released.COEFFICIENTS: (("largest_user_weight",),),
    Released.CLASSIFIER: (("threshold",),),
}
"""Which fields state the bound of each release: one of the alternatives, whole."""
_WHOLE = ("max_rows", "max_groups", "coefficients")
_LAPLACE_ONLY = (Released.MEAN, Released.QUANTILE, Released.COEFFICIENTS)
"""Releases whose programs draw Laplace noise, or pick with the exponential mechanism."""
_BOUNDS = (
    "max_rows",
    "threshold",
    "max_total",
    "max_groups",
    "max_norm",
    "exponent",
    "budget",
    "largest_user_weight",
)
PLAIN_PYTHON_ONLY = (Released.TASK_WEIGHTS, Released.COEFFICIENTS, Released.CLASSIFIER)
"""What no library but plain Python can express."""
PER_GROUP = (Released.GROUP_COUNTS, Released.GROUP_ROWS, Released.GROUP_SUMS, Released.GROUP_MEANS)
"""Releases of one number per group."""
OF_VALUES = (Released.MEAN, Released.SUM, Released.QUANTILE, Released.GROUP_SUMS, Released.GROUP_MEANS)
"""Releases for which programs read the column of values, and of labels no program but plain Python's."""


MODELS = (Released.COEFFICIENTS, Released.CLASSIFIER)
"""Releases for which a row counts where nothing is missing in it."""


@dataclass(frozen=True)
class Rule:
    """A descent whose steps go by a rule, and a bound that may follow the users.

    Attributes:
        bounds_by: ``followed``, ``sums``, ``cap`` or ``weights``.
        clip: Norm to which a row's gradient is clipped.
        one: Noise of one release of the whole budget over how far a user moves it in bounds.
        count_noise: On the number of users within the bound, in every step.
        number_noise: On the number of users; 0 where it is public.
        momentum: In [0, 1).
        travel: The step length times ``one`` and the root of the number of features, at most.
        longest: The step length times the number of users, at most.
        settled: Number of the last step that is not longer than ``travel`` says.
        fade: What is left in a step of the fading mean of the noisy gradients.
        agreeing: The squared length of that mean over the number of features beyond which steps grow.
        moving: Likewise, beyond which the mean of the iterates forgets by ``fade``.
        growth: By how much they grow or shrink at a time.
        most_growth: To how many times ``travel`` at most.
        start: The first bound, at least the threshold, is the root of users over noise divided by this.
        clipped: Users that are to be beyond the bound, in ``one`` times the root of the number of features.
        turn: How fast the bound moves.
        largest: Most that its logarithm moves in a step.
        ends: It stays within.
    """

    bounds_by: str
    clip: float
    one: float
    count_noise: float
    number_noise: float
    momentum: float
    travel: float
    longest: float
    settled: int
    fade: float
    agreeing: float
    moving: float
    growth: float
    most_growth: float
    start: float
    clipped: float
    turn: float
    largest: float
    ends: tuple[float, float]

    def words(self, bound: float) -> str:
        """Return how users are bounded."""
        short = f", gradients of rows shortened to {self.clip!r}" if self.clip < 1.0 else ""
        return {
            "followed": "users' sums of gradients clipped at a bound that follows a private quantile of them",
            "sums": f"users' sums of gradients clipped to that of {bound!r} rows",
            "cap": f"at most {int(bound)} rows of each user, drawn at random{short}",
            "weights": f"smooth weights, no user above the weight of {bound!r} rows{short}",
        }[self.bounds_by]


@dataclass(frozen=True)
class Training:
    """How a linear classifier is trained; every number of it is public.

    Attributes:
        numbers: Columns that enter as numbers, each with its range: mapped to [-1, 1].
        levels: Columns that enter as categories, each with the levels that have an indicator.
        intercept: Whether a feature is 1 in every row.
        norm: Norm that a row's features have at most, above 0; they are divided by it.
        positive_above: Labels above it are 1, all others -1.
        slope: Derivative of the loss by the margin, a NumPy expression in ``margin``.
        steps: T.
        rate: η.
        first: Number of the first step, from 1, whose iterate is averaged; by a rule all are, with growing weights.
        radius: Of the ball that θ is kept in.
        gradient_noise: Standard deviation of the noise on a step's summed gradient.
        weight_noise: Of that on the sum of weights; 0 where it is public.
        sampled: Probability with which a user takes part in a step.
        rule: How steps and bound go by a rule, in place of ``rate``, ``weight_noise`` and ``sampled``; then
            ``gradient_noise`` is over the bound.
        positive: The class that is 1 where labels are words, all others -1; empty where ``positive_above`` says.
    """

    numbers: tuple[tuple[str, tuple[float, float]], ...]
    levels: tuple[tuple[str, tuple[str, ...]], ...]
    intercept: bool
    norm: float
    positive_above: float
    slope: str
    steps: int
    rate: float
    first: int
    radius: float
    gradient_noise: float
    weight_noise: float
    sampled: float = 1.0
    rule: Rule | None = None
    positive: str = ""


@dataclass(frozen=True)
class Choice:
    """A bound with all that code needs to apply it.

    Attributes:
        released: What is released.
        epsilon: Privacy budget, in `dpcore.common.checks.EPSILON_RANGE`.
        disclosure: Where the bound comes from; private means computed from private data, a release names its facts.
        neighbours: The relation under which the bound was chosen.
        delta: In (0, 1), or None where the release is epsilon-DP.
        noise: The noise under which the bound was chosen.
        max_rows: Upper bound on rows per user, whole, at least 1; of a release per group, per user and group.
        threshold: Upper bound on a user's weight in rows (smooth weights), real-valued, above 0.
        weight_of_rows: a of smooth weights for a mean: a user with s rows weighs s (a + b / (1 + (s - 1) rho)), up to
            the threshold; at least 0.
        weight_of_users: b, at least 0; 0 where a row weighs the same whoever's it is, up to the threshold.
        user_share: rho in [0, 1], how alike the rows of one user are.
        max_total: Upper end of the range that a user's total is clamped to, in the column's unit; of a release per
            group, their total in a group.
        min_total: Lower end of it.
        max_groups: Upper bound on groups per user, whole.
        max_norm: T, upper bound on the norm of what a user adds to all groups: L1 with Laplace, L2 with Gaussian noise.
        scaled: Whether the norm is kept by scaling all groups of a user alike; else by one cap for all of them.
        exponent: mu of task weights, in [0, 1].
        budget: beta, what a user's squared task weights may sum to, above 0.
        inflation: c of task weights, above 0: they are scaled for a budget of beta / c. None if a person enters it.
        every_user_full: Whether every user's task weights are scaled up to the whole budget.
        largest_user_weight: The largest sum of absolute weights that one user's labels have.
        coefficients: How many coefficients are released.
        lower: Values below are raised to it; for a quantile the lower end of the base.
        upper: Values above are lowered to it; above ``lower``.
        quantiles: What is asked for, each strictly between 0 and 1.
        file: The data's file.
        table: The data's table in BigQuery.
        privacy_unit: Columns that together identify a user.
        value_column: Column of values or labels.
        group_column: Column of groups or tasks.
        known_columns: Whether the names are the data's own; else they are placeholders.
        row_is: What a row stands for where it is not a row of the file, a phrase; empty where it is.
        training: How a classifier is trained; given exactly where one is released.
        layout: How the data's files were read; None where nobody knows.
        range_drawn: What the draw of ``lower`` and ``upper`` guarantees, where they were drawn privately.

    Raises:
        InvalidInput: A field is missing, does not belong to the release, or is out of its range; all at once.
    """

    released: Released
    epsilon: float
    disclosure: Provenance
    neighbours: Neighbours = Neighbours.ADD_OR_REMOVE_USER
    delta: float | None = None
    noise: NoiseKind = NoiseKind.LAPLACE
    max_rows: int | None = None
    threshold: float | None = None
    weight_of_rows: float = 1.0
    weight_of_users: float = 0.0
    user_share: float = 0.0
    max_total: float | None = None
    min_total: float = 0.0
    max_groups: int | None = None
    max_norm: float | None = None
    scaled: bool = False
    exponent: float | None = None
    budget: float | None = None
    inflation: float | None = 1.0
    every_user_full: bool = False
    largest_user_weight: float | None = None
    coefficients: int = 1
    lower: float | None = None
    upper: float | None = None
    quantiles: tuple[float, ...] = ()
    file: str = "events.csv"
    table: str = "your_project.your_dataset.events"
    privacy_unit: tuple[str, ...] = ("user_id",)
    value_column: str = "value"
    group_column: str = "group"
    known_columns: bool = False
    row_is: str = ""
    training: Training | None = None
    layout: TableLayout | None = None
    range_drawn: ReleaseFacts | None = None

    def __post_init__(self) -> None:
        with Problems() as problems:
            problems.between(*EPSILON_RANGE, epsilon=self.epsilon)
            if self.range_drawn is not None and (self.lower is None or self.upper is None):
                problems.add("a range that was drawn has both ends")
            self._check_bound(problems)
            self._check_delta(problems)
            self._check_values(problems)
            problems.whole(1, 10**6, coefficients=self.coefficients)
            if (self.released is Released.CLASSIFIER) != (self.training is not None):
                problems.add("a classifier, and nothing else, says how it is trained")
            names = (*self.privacy_unit, self.value_column, self.group_column, self.file, self.table)
            if not self.privacy_unit or not all(isinstance(name, str) and name for name in names):
                problems.add("columns, file and table must have names")
        # Plain Python numbers, so that repr is a literal in every language.
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name in _WHOLE and value is not None:
                object.__setattr__(self, f.name, int(value))
            elif isinstance(value, Real) and not isinstance(value, bool):
                object.__setattr__(self, f.name, float(value) + 0.0)  # No negative zero.
        object.__setattr__(self, "quantiles", tuple(float(q) for q in self.quantiles))

    def _check_bound(self, problems: Problems) -> None:
        given = {name for name in _BOUNDS if getattr(self, name) is not None}
        if given not in [set(names) for names in NEEDS[self.released]]:
            ways = " or ".join(" and ".join(names) for names in NEEDS[self.released])
            problems.add(f"the bound of a {self.released.value} is {ways}, and nothing else")
        for name in ("max_rows", "max_groups"):
            if name in given:
                problems.whole(1, MAX_WHOLE, **{name: getattr(self, name)})
        for name in ("threshold", "max_norm", "budget", "largest_user_weight"):
            if name in given:
                problems.positive(**{name: getattr(self, name)})
        problems.non_negative(weight_of_rows=self.weight_of_rows, weight_of_users=self.weight_of_users)
        problems.between(0.0, 1.0, user_share=self.user_share)
        if (self.weight_of_rows, self.weight_of_users) != (1.0, 0.0) and not self.grows:
            problems.add("weights that grow otherwise than rows belong to the smooth weights of a mean")
        if "exponent" in given:
            problems.between(0.0, 1.0, exponent=self.exponent)
        if self.inflation is not None:
            problems.positive(inflation=self.inflation)
        ends = self.max_total is not None and problems.finite(
            max_total=self.max_total, min_total=self.min_total
        )
        if ends and self.min_total >= (self.max_total or 0.0):
            problems.add("the range that a user's total is clamped to is empty")

    def _check_delta(self, problems: Problems) -> None:
        if self.delta is not None:
            problems.inside(0.0, 1.0, delta=self.delta)
        if self.noise is NoiseKind.GAUSSIAN and self.delta is None:
            problems.add("Gaussian noise needs a delta")
        if self.noise is NoiseKind.GAUSSIAN and self.released in _LAPLACE_ONLY:
            problems.add(f"the noise on a {self.released.value} is Laplace noise")

    def _check_values(self, problems: Problems) -> None:
        needed = self.released in (
            Released.MEAN,
            Released.GROUP_MEANS,
            Released.QUANTILE,
            Released.COEFFICIENTS,
        )
        if needed:
            problems.ascending(**{"the lower value bound": self.lower, "the upper one": self.upper})
        if (self.released is Released.QUANTILE) != bool(self.quantiles):
            problems.add("a quantile, and nothing else, says which quantiles are asked for")
        for q in self.quantiles:
            problems.inside(0.0, 1.0, **{"a quantile": q})

    @property
    def grows(self) -> bool:
        """Return True if smooth weights grow otherwise than with a user's rows."""
        plain = (self.weight_of_rows, self.weight_of_users) == (1.0, 0.0)
        return not plain and self.released is Released.MEAN and self.threshold is not None

    @property
    def is_private(self) -> bool:
        """Return True if the bound was computed from private data."""
        return self.disclosure is Disclosure.PRIVATE

    @property
    def of_public_data(self) -> bool:
        """Return True if the data are public, so that a program may read their groups off them.

        What a release says of private data is public, but not the data themselves.
        """
        return self.disclosure is Disclosure.PUBLIC and self.known_columns

    @property
    def read_as(self) -> TableLayout:
        """Return how programs read the data; as a file of that name usually is where nobody knows."""
        return self.layout or TableLayout((FileLayout.by_name(self.file),))

    @property
    def number_columns(self) -> tuple[str, ...]:
        """Return the columns that programs read as numbers."""
        if self.released in MODELS:
            further = () if self.training is None else tuple(name for name, _ in self.training.numbers)
            return tuple(dict.fromkeys((self.value_column, *further, *dict(self.read_as.numbers))))
        return (self.value_column,) if self.released in OF_VALUES else ()

    @property
    def in_libraries(self) -> bool:
        """Whether libraries other than plain Python know of such a release; their quantiles count all rows alike."""
        weighted = self.released is Released.QUANTILE and self.threshold is not None
        return not weighted and self.released not in PLAIN_PYTHON_ONLY

    @property
    def public_counts(self) -> bool:
        """Return True if everybody's number of rows is taken as public."""
        return self.neighbours is Neighbours.REPLACE_VALUES

    @property
    def per_quantile(self) -> float:
        """Epsilon of one quantile: an even share, rounded so that all of them never exceed epsilon."""
        parts = max(len(self.quantiles), 1)
        share = self.epsilon / parts
        while Fraction(share) * parts > Fraction(self.epsilon):
            share = math.nextafter(share, 0.0)
        return share

    @property
    def bound_words(self) -> str:
        """Return the bound, as a phrase."""
        if self.max_norm is not None:
            norm = "L1" if self.noise is NoiseKind.LAPLACE else "L2"
            how = "scaled" if self.scaled else "capped"
            return f"what a user adds to all groups {how} to an {norm} norm of at most {self.max_norm!r}"
        if self.max_groups is not None and self.released is not Released.GROUP_COUNTS:
            groups = f"at most {wording.counted(self.max_groups, 'group')} per user"
            if self.max_rows is not None:
                return f"{groups}, and at most {wording.counted(self.max_rows, 'row')} in each"
            return f"{groups}, and each total in a group clamped to [{self.min_total!r}, {self.max_total!r}]"
        if self.max_rows is not None:
            return f"at most {wording.counted(self.max_rows, 'row')} per user"
        if self.training is not None and self.training.rule is not None:
            return self.training.rule.words(float(self.threshold or 0.0))
        if self.threshold is not None:
            alike = f", rows of one user alike by {self.user_share!r}" if self.grows else ""
            return f"smooth weights, no user above the weight of {self.threshold!r} rows{alike}"
        if self.max_total is not None:
            return f"each user's total clamped to [{self.min_total!r}, {self.max_total!r}]"
        if self.max_groups is not None:
            return f"at most {wording.counted(self.max_groups, 'group')} per user"
        if self.exponent is not None:
            return f"task weights with exponent {self.exponent!r} within a budget of {self.budget!r} per user"
        return f"row weights, no user above {self.largest_user_weight!r} in total"


@dataclass(frozen=True)
class Code:
    """A choice in one library's words.

    Attributes:
        text: The program; empty where the library cannot do anything of the kind.
        language: ``python`` or ``sql``.
        file_name: What to call it on disk.
        differences: What this library does otherwise than the page assumes, or cannot do, and what comes
            nearest: sentences. They stand in the program as well.
    """

    text: str
    language: str
    file_name: str
    differences: tuple[str, ...]
