"""The settings of the page *Join or train alone*, as one validated object."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dpcore.common.checks import EPSILON_RANGE, Problems, refuse
from dpcore.common.parameters import LINE, TAB, Option, Parameters, of_data, public
from dpcore.common.text_fields import build_from, parse_checked_numbers, parse_numbers
from dpcore.contributions import ContributionHistogram
from dpcore.data_owners.bounds import Collaboration, Unit
from dpcore.data_owners.network_parts import NUM_PARAMETERS, PersonalPart
from dpcore.data_owners.regimes import MapAxis, build_capped_collaboration
from dpcore.data_owners.study import RecordSource, Study

MAX_OWNERS, MAX_RECORDS, MAX_PARAMETERS = 10**9, 10**12, 10**12
DIAMETER_RANGE = (1e-9, 1e9)
CONSTANT_RANGE = (1e-3, 1e6)

MAX_OWNERS_BY_SOURCE = {RecordSource.DIGITS: 64, RecordSource.GENERATED: 512, RecordSource.UPLOAD: 256}
"""Each owner still has half a dozen records."""
MAX_VALUES, MAX_RUNS = 6, 5
TRAINING_FIELDS = ("train_on", "train_owners", "train_epsilons", "train_runs", "train_seed")

ASSUMPTIONS = (
    "The loss is convex and L-Lipschitz; all owners' best models have one shared part",
    "The constants hidden by O(·) are those entered: bounds compare orders and promise no accuracy",
    "The privacy proof of theorem 3.1, the bound of joint privacy, is incomplete: see *How this is computed*",
    "Neighbouring data sets differ in one unit of protection, which is replaced",
    "Working alone tells the others nothing. Joint privacy protects no one from their own owner, nor where an owner "
    "publishes the personal part",
)


class OwnersSource(Option):
    """The source of the owners that the question is about."""

    ENTERED = "entered", "As entered"
    DATA = "data", "Of the data in use"


ENTRY_RULE: dict[str, Any] = {"only_with": ("source", (OwnersSource.ENTERED,)), "place": LINE}
"""Of the numbers of entered owners."""
AS_CHOSEN = "as chosen"
"""Placeholder of a number that follows from the personal part while it is empty."""
CONSTANT_HELP = "The factor that O(·) hides in the paper, which leaves it open."


@dataclass(frozen=True)
class OwnersParameters(Parameters):
    """The parameters of the page *Join or train alone*: everything but the data."""

    # Whoever reads owners off private data and enters them has read them off the data.
    owners: int = of_data.number(
        1_000, "Owners, n", (1, MAX_OWNERS), name="the number of owners n", width=92, **ENTRY_RULE
    )
    """The data owners who could train together."""
    records: int = of_data.number(
        1_000,
        "Records each, m",
        (1, MAX_RECORDS),
        name="the number of records per owner",
        width=146,
        **ENTRY_RULE,
    )
    """The records of every owner. For unequal owners, take those of the data in use, under *More settings*."""
    personal_part: PersonalPart = public.choice(
        PersonalPart.LAST,
        "Personal part",
        name="the personal part",
        uses_select_box=True,
        width=198,
        place=LINE,
    )
    """The layers that each owner fits for itself, of the network in the paper: 47,744 parameters in four layers, the
    last two side by side. Joint privacy adds no noise to them. For another model, enter ℓ and k under *More settings*.
    """
    source: OwnersSource = public.choice(OwnersSource.ENTERED, "Owners")
    """Owners of equal size as entered, or each user of the data in use as one owner."""
    unit: Unit = public.choice(Unit.RECORD, "What is protected as one")
    """The protected unit: one record, all records of a user, or all records of an owner."""
    records_per_user: float | None = of_data.number(
        None,
        "Records per user, m/r",
        (1.0, MAX_RECORDS),
        name="the number of records per user",
        initial=5.0,
        is_integer=True,
        only_with=("unit", (Unit.USER,)),
    )
    """The records of one user; an owner with m records has r users."""
    delta: float = public.number(1e-5, "δ", (1e-15, 0.5), name="δ")
    """The probability with which ε may fail to hold. Choose it well below 1/n."""
    shared: int | None = public.number(
        None,
        "Shared parameters, ℓ",
        (0, MAX_PARAMETERS),
        name="the number of shared parameters",
        placeholder=AS_CHOSEN,
    )
    """Of the part of the model that all owners share; empty: all of the network but the personal part."""
    personal: int | None = public.number(
        None,
        "Personal, k",
        (0, MAX_PARAMETERS),
        name="the number of personal parameters",
        placeholder=AS_CHOSEN,
    )
    """The parameters that each owner fits for itself; empty: those of the personal part."""
    personal_diameter: float | None = public.number(
        None, "Diameter D_X", name="the personal diameter D_X", placeholder="√(k/(k + ℓ))"
    )
    """The largest distance between two personal parts, 0 for no personal part. Empty: all parameters have one range."""
    shared_diameter: float | None = public.number(
        None, "Diameter D_U", name="the shared diameter D_U", placeholder="√(ℓ/(k + ℓ))"
    )
    """The largest distance between two shared parts. Empty: all parameters have one range."""
    lipschitz: float = public.number(1.0, "Lipschitz L", DIAMETER_RANGE, name="the Lipschitz constant L")
    """The largest slope of the loss; every bound is proportional to it."""
    alone_constant: float = public.number(
        1.0, "Constant, alone", CONSTANT_RANGE, name="the constant alone", help=CONSTANT_HELP
    )
    sampling_constant: float = public.number(1.0, "Constant of 1/√(mn)", CONSTANT_RANGE, help=CONSTANT_HELP)
    privacy_constant: float = public.number(1.0, "Constant of 1/ε", CONSTANT_RANGE, help=CONSTANT_HELP)
    own_bound: int | None = of_data.number(
        None,
        "Your own cap",
        (1, MAX_RECORDS),
        name="your own cap",
        former_name="own_cap",
        is_renewed=True,
        placeholder="optional",
    )
    """At most so many records of each owner, to compare with the best cap."""
    x_axis: MapAxis = public.choice(MapAxis.OWNERS, "Map, across", uses_select_box=True)
    y_axis: MapAxis = public.choice(MapAxis.EPSILON, "Map, upwards", uses_select_box=True)
    train_on: RecordSource = public.choice(RecordSource.DIGITS, "Records", place=TAB)
    """1,797 handwritten digits (UCI, CC BY 4.0), 4,000 generated records, or a table whose users are the owners."""
    train_owners: str = public.text("4, 16, 64", "Owners", max_length=60, place=TAB)
    """Up to six numbers of owners, separated by commas."""
    train_epsilons: str = public.text("0.25, 1", "Privacy budgets ε", max_length=60, place=TAB)
    """Up to six values of ε, separated by commas."""
    train_runs: int = public.number(1, "Runs", (1, MAX_RUNS), name="the number of runs", place=TAB)
    """Each run has another split, other owners and other noise."""
    train_seed: int = public.number(
        1, "Seed", (0, 2**32 - 1 - MAX_RUNS), name="the seed of the training", place=TAB
    )
    """Seed of the first run: split, owners, noise, and generated records if any; each further run has the next seed."""

    def _check_together(self, problems: Problems) -> None:
        """Add a problem for every set of fields that do not fit together, and for the text fields of the training."""
        has_entered_users = self.unit is Unit.USER and self.source is OwnersSource.ENTERED
        if has_entered_users and self.records_per_user is not None and self.records_per_user > self.records:
            problems.add("a user cannot have more records than the owner")
        # What follows from other fields can be computed only where these are right.
        sizes_by_field = vars(self) if problems.entries else self.model_sizes
        if all(sizes_by_field[name] == 0.0 for name in ("personal_diameter", "shared_diameter")):
            problems.add("one of the diameters D_X and D_U must be above 0")
        for diameter_phrase, diameter in (
            ("the personal diameter D_X, where it is not 0,", self.personal_diameter),
            ("the shared diameter D_U, where it is not 0,", self.shared_diameter),
        ):
            if diameter:
                problems.between(*DIAMETER_RANGE, **{diameter_phrase: diameter})
        if self.x_axis is self.y_axis:
            problems.add("both axes of the map show the same", remedy="Choose another for one")
        if isinstance(self.train_on, RecordSource):
            max_owners = MAX_OWNERS_BY_SOURCE[self.train_on]
            for num_owners in parse_checked_numbers(
                problems, "numbers of owners", self.train_owners, MAX_VALUES
            ):
                problems.whole(2, max_owners, **{"each number of owners to train with": num_owners})
        field_name = "budgets ε to train with"
        for epsilon in parse_checked_numbers(problems, field_name, self.train_epsilons, MAX_VALUES):
            problems.between(*EPSILON_RANGE, **{"each budget ε to train with": epsilon})

    @property
    def study(self) -> Study:
        """Return the study to train: the entered owners, budgets, runs and seed, with the page's δ and unit."""
        return Study(
            numbers_of_owners=tuple(int(num_owners) for num_owners in parse_numbers(self.train_owners)),
            epsilons=parse_numbers(self.train_epsilons),
            seeds=tuple(range(self.train_seed, self.train_seed + self.train_runs)),
            delta=self.delta,
            unit=self.unit,
            records_per_user=math.ceil(self.records_per_user or 1.0),
        )

    @property
    def protects_owner(self) -> bool:
        """Return True if an owner is one unit of protection."""
        return self.unit is Unit.OWNER

    @property
    def is_of_network(self) -> bool:
        """Return True if ℓ and k are those of the paper's network with the personal part that is chosen."""
        return self.shared is None and self.personal is None

    @property
    def model_sizes(self) -> dict[str, float]:
        """Return ℓ, k, D_X and D_U by the names of their fields, as entered or as they follow from the personal part.

        Diameters that are empty are those of a model of diameter 1 whose parameters all have one range: D_X² = k/(k +
        ℓ) and D_U² = ℓ/(k + ℓ). So the bound of an owner alone does not depend on the personal part.
        """
        part_size = self.personal_part.size
        shared = NUM_PARAMETERS - part_size if self.shared is None else self.shared
        personal = part_size if self.personal is None else self.personal
        shared_share = shared / (shared + personal) if personal else 1.0
        diameter_by_field = {
            "personal_diameter": self.personal_diameter,
            "shared_diameter": self.shared_diameter,
        }
        share_by_field = {"personal_diameter": 1.0 - shared_share, "shared_diameter": shared_share}
        return {
            "shared": shared,
            "personal": personal,
            **{
                name: math.sqrt(share_by_field[name]) if d is None else d
                for name, d in diameter_by_field.items()
            },
        }

    def build_collaboration(self) -> Collaboration:
        """Return a collaboration with the entered numbers; its records per unit follow from the protected unit."""
        sizes_by_unit = {Unit.RECORD: 1.0, Unit.USER: self.records_per_user or 1.0, Unit.OWNER: self.records}
        return build_from(Collaboration, self, records_per_unit=sizes_by_unit[self.unit], **self.model_sizes)

    def build_collaboration_of_histogram(
        self, histogram: ContributionHistogram, cap: float | None = None
    ) -> Collaboration:
        """Return a collaboration of the owners of a histogram, with at most ``cap`` records of each.

        Without ``cap`` all records are kept. ``mean_records`` is then the mean number of kept records per owner.

        Raises:
            InvalidInput: A user would have more records than the largest owner.
        """
        if self.unit is Unit.USER and (self.records_per_user or 1.0) > histogram.max_size:
            raise refuse("a user cannot have more records than the largest owner has")
        collaboration, cap = self.build_collaboration(), float(histogram.max_size if cap is None else cap)
        collaboration = build_capped_collaboration(histogram, cap, collaboration, self.protects_owner)
        mean_records, evenness = float(collaboration.records), float(collaboration.evenness)
        return collaboration.replace(records=mean_records, evenness=evenness)
