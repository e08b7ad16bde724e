"""The settings of the page *Join or train alone*, as one validated object."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, replace

from dpcore.common.checks import EPSILON_RANGE, Problems
from dpcore.common.errors import refuse
from dpcore.common.text_fields import build_from, parse_checked_numbers, parse_numbers
from dpcore.contributions import ContributionHistogram
from dpcore.data_owners.bounds import Collaboration, Unit
from dpcore.data_owners.regimes import MapAxis
from dpcore.data_owners.study import Records, Study
from dpcore.data_owners.unequal import cap_owners

MAX_OWNERS, MAX_RECORDS, MAX_PARAMETERS = 10**9, 10**12, 10**12
DIAMETER_RANGE = (1e-9, 1e9)
CONSTANT_RANGE = (1e-3, 1e6)

MAX_TRAIN_OWNERS = {Records.DIGITS: 64, Records.GENERATED: 512, Records.UPLOAD: 256}
"""So many owners still have half a dozen records each; those of an upload are as many as they are."""
MAX_VALUES, MAX_RUNS = 6, 5
TRAINING_FIELDS = ("train_on", "train_owners", "train_epsilons", "train_runs", "train_seed")
"""Fields that only training depends on."""

ASSUMPTIONS = (
    "The loss is convex and L-Lipschitz; all owners' best models share one best shared part (section 1.1 of the paper)",
    "Constants hidden by O(·) are those entered, 1 unless changed: the map compares orders and promises no accuracy",
    "The bound of joint privacy is as printed in theorem 3.1, whose privacy proof is incomplete: see *How "
    "this is computed*",
    "Neighbouring data sets differ in one unit of protection, which is replaced",
    "Working alone tells the others nothing. Joint privacy protects no one from their own owner, nor where an owner "
    "publishes the personal part",
)
"""What the answers rest on; sentences without their full stop."""


class OwnersSource(enum.Enum):
    """The source of the owners that the question is about."""

    ENTERED = "entered"
    DATA = "data"


@dataclass(frozen=True)
class OwnersParameters:
    """The question on the page, without the data.

    Attributes:
        epsilon: Privacy budget, in `dpcore.common.checks.EPSILON_RANGE`.
        owners: n; unused where the data say it.
        records: m, per owner; likewise.
        shared: ℓ, number of shared parameters.
        personal: k, number of personal parameters per owner.
        source: Whether owners and records are entered or read from the data.
        unit: What is protected as one.
        records_per_user: m/r, only where a user is the unit.
        delta: δ, strictly between 0 and 1.
        personal_diameter: D_X, largest distance between two personal parameters; 0 where there are none.
        shared_diameter: D_U, largest distance between two shared parameters.
        lipschitz: L, how much the loss of a record can grow per unit of distance between two parameters.
        alone_constant: What O(·) hides in the bound of an owner alone.
        sampling_constant: Likewise in the term 1/√(mn).
        privacy_constant: Likewise in the term with ε.
        own_cap: A cap per owner to compare with the best one, in records.
        x_axis: What the map runs over.
        y_axis: The other one.
        train_on: What models are trained on.
        train_owners: Numbers of owners to train with, separated by commas or spaces.
        train_epsilons: Budgets to train with, likewise.
        train_runs: Runs of every form, each with a seed of its own.
        train_seed: The first of them.

    Raises:
        InvalidInput: All problems at once, in the page's words.
    """

    epsilon: float
    owners: int = 64
    records: int = 100
    shared: int = 7_850
    personal: int = 0
    source: OwnersSource = OwnersSource.ENTERED
    unit: Unit = Unit.RECORD
    records_per_user: float | None = None
    delta: float = 1e-5
    personal_diameter: float = 0.0
    shared_diameter: float = 1.0
    lipschitz: float = 1.0
    alone_constant: float = 1.0
    sampling_constant: float = 1.0
    privacy_constant: float = 1.0
    own_cap: int | None = None
    x_axis: MapAxis = MapAxis.OWNERS
    y_axis: MapAxis = MapAxis.EPSILON
    train_on: Records = Records.DIGITS
    train_owners: str = "4, 16, 64"
    train_epsilons: str = "0.25, 1"
    train_runs: int = 1
    train_seed: int = 1

    def __post_init__(self) -> None:
        with Problems() as problems:
            problems.between(*EPSILON_RANGE, epsilon=self.epsilon)
            problems.whole(1, MAX_OWNERS, **{"the number of owners n": self.owners})
            has_valid_records = problems.whole(1, MAX_RECORDS, **{"the records per owner m": self.records})
            problems.whole(0, MAX_PARAMETERS, **{"the shared parameters ℓ": self.shared})
            problems.whole(0, MAX_PARAMETERS, **{"the personal parameters k": self.personal})
            if self.unit is Unit.USER:
                has_valid_user = problems.between(
                    1.0, MAX_RECORDS, **{"the records per user m/r": self.records_per_user}
                )
                if (
                    has_valid_user
                    and has_valid_records
                    and self.source is OwnersSource.ENTERED
                    and (self.records_per_user or 1) > self.records
                ):
                    problems.add("a user cannot have more records than the owner")
            elif self.records_per_user is not None:
                problems.add("records per user go only with users as the unit of protection")
            problems.between(1e-15, 0.5, δ=self.delta)
            personal = self.personal_diameter == 0.0 or problems.between(
                *DIAMETER_RANGE, **{"the personal diameter D_X, where it is not 0,": self.personal_diameter}
            )
            shared = self.shared_diameter == 0.0 or problems.between(
                *DIAMETER_RANGE, **{"the shared diameter D_U, where it is not 0,": self.shared_diameter}
            )
            if personal and shared and self.personal_diameter == self.shared_diameter == 0.0:
                problems.add("one of the diameters D_X and D_U must be above 0")
            problems.between(*DIAMETER_RANGE, **{"the Lipschitz constant L": self.lipschitz})
            for name, value in (
                ("alone", self.alone_constant),
                ("of the term 1/√(mn)", self.sampling_constant),
                ("of the term with ε", self.privacy_constant),
            ):
                problems.between(*CONSTANT_RANGE, **{f"the constant {name}": value})
            if self.own_cap is not None:
                problems.whole(1, MAX_RECORDS, **{"your own cap": self.own_cap})
            if self.x_axis is self.y_axis:
                problems.add("both axes of the map show the same", remedy="Choose another for one of them")
            self._check_training(problems)

    def _check_training(self, problems: Problems) -> None:
        """Add the problems of the settings of a training."""
        max_owners = MAX_TRAIN_OWNERS[self.train_on]
        for owner_count in parse_checked_numbers(
            problems, "numbers of owners", self.train_owners, MAX_VALUES
        ):
            problems.whole(2, max_owners, **{"each number of owners to train with": owner_count})
        for epsilon in parse_checked_numbers(
            problems, "budgets ε to train with", self.train_epsilons, MAX_VALUES
        ):
            problems.between(*EPSILON_RANGE, **{"each budget ε to train with": epsilon})
        problems.whole(1, MAX_RUNS, **{"the number of runs": self.train_runs})
        problems.whole(0, 2**32 - 1 - MAX_RUNS, **{"the seed of the training": self.train_seed})

    @property
    def study(self) -> Study:
        """Return the study that is trained, with the page's δ and unit of protection."""
        return Study(
            owners=tuple(int(owner_count) for owner_count in parse_numbers(self.train_owners)),
            epsilons=parse_numbers(self.train_epsilons),
            seeds=tuple(range(self.train_seed, self.train_seed + self.train_runs)),
            delta=self.delta,
            unit=self.unit,
            records_per_user=math.ceil(self.records_per_user or 1.0),
        )

    @property
    def without_training(self) -> OwnersParameters:
        """Return the same question with default settings of the training."""
        defaults = OwnersParameters(self.epsilon)
        return replace(self, **{name: getattr(defaults, name) for name in TRAINING_FIELDS})

    @property
    def whole_owner(self) -> bool:
        """Return True if an owner is one unit of protection."""
        return self.unit is Unit.OWNER

    def collaborate(self) -> Collaboration:
        """Return the entered owners, all of one size."""
        unit_sizes = {
            Unit.RECORD: 1.0,
            Unit.USER: float(self.records_per_user or 1.0),
            Unit.OWNER: float(self.records),
        }
        # As float64: Python's whole numbers would grow beyond what NumPy takes.
        counts = {name: float(getattr(self, name)) for name in ("owners", "records", "shared", "personal")}
        return build_from(Collaboration, self, records_per_unit=unit_sizes[self.unit], **counts)

    def collaborate_on_histogram(
        self, histogram: ContributionHistogram, cap: float | None = None
    ) -> Collaboration:
        """Return the owners of a histogram of records per owner, with at most ``cap`` records each, or all.

        Raises:
            InvalidInput: A user would have more records than the largest owner.
        """
        if self.unit is Unit.USER and (self.records_per_user or 1.0) > histogram.max_size:
            raise refuse("a user cannot have more records than the largest owner has")
        largest_cap = float(histogram.max_size if cap is None else cap)
        capped_owners = cap_owners(histogram, largest_cap, self.collaborate(), self.whole_owner)
        return capped_owners.replace(
            records=float(capped_owners.records), evenness=float(capped_owners.evenness)
        )
