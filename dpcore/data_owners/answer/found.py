"""What is found for data owners: bounds, the map around them, crossings; of the data only where owners are theirs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpcore.answer.against import Against, Ways, remembered
from dpcore.common import wording
from dpcore.common.errors import refusal
from dpcore.common.privacy import Disclosure, Provenance
from dpcore.contributions import FloatArray
from dpcore.data_owners import crossings, unequal
from dpcore.data_owners.bounds import (
    Collaboration,
    Private,
    Unit,
    alone,
    alone_printed,
    full_user_printed,
    joint_smooth,
    saving,
    saving_printed,
    together,
    trivial,
    without_privacy,
)
from dpcore.data_owners.parameters import TRAINING, OwnersParameters, OwnersSource
from dpcore.data_owners.regimes import LARGEST_EPSILON, Axis, Regime, RegimeMap, regime_map, regime_of
from dpcore.dataset import Dataset


@dataclass(frozen=True, eq=False)
class OwnersFound:
    """All that depends on data and question.

    Attributes:
        parameters: What was asked.
        of: The owners, as entered or as the data have them (with the best cap, where a whole owner is protected).
        regime: What is best for them.
        map: The map around them.
        alone: Bound of an owner alone.
        joint: Bound of joint privacy.
        full: Bound of full privacy.
        nothing: A bound from which on nothing is said.
        epsilon_joint: ε above which joint privacy pays.
        epsilon_full: The same of full privacy.
        owners_joint: Owners like these from whom on joint privacy pays; None where no number suffices.
        owners_full: The same of full privacy.
        cap: The best cap per owner, where owners of the data are one unit each.
        own_bound: Bound at the person's own cap; None without one.
        smaller: (m†, owners with fewer records), of the data's owners; see `crossings.gaining_below`.
        disclosure: Of the numbers above.
    """

    parameters: OwnersParameters
    of: Collaboration
    regime: Regime
    map: RegimeMap
    alone: float
    joint: float
    full: float
    nothing: float
    epsilon_joint: float
    epsilon_full: float
    owners_joint: int | None
    owners_full: int | None
    cap: unequal.CapChoice | None
    own_bound: float | None
    smaller: tuple[float, int] | None
    disclosure: Provenance

    @property
    def of_data(self) -> bool:
        """Whether the owners are those of the data."""
        return self.parameters.source is OwnersSource.DATA

    @property
    def says_nothing(self) -> bool:
        """Whether the bound of joint privacy is no smaller than what any model has."""
        return self.joint >= self.nothing

    @property
    def outside(self) -> tuple[str, ...]:
        """What the theorem asks for and does not have here, sentences."""
        found = []
        if float(self.of.epsilon) > LARGEST_EPSILON:
            found.append("The theorem holds up to ε = 10.")
        if float(self.of.delta) * float(self.of.owners) >= 1.0:
            found.append("The theorem asks for δ below 1/n.")
        return tuple(found)

    def at(self, axis: Axis) -> float:
        """Where the person stands on an axis of the map."""
        return float(getattr(self.of, axis.value))


def find(data: Dataset | Provenance, parameters: OwnersParameters) -> OwnersFound:
    """Evaluate bounds, map and crossings.

    Args:
        data: Whose users are the owners; where owners are entered, what kind of numbers these are.
        parameters: What was asked.

    Raises:
        InvalidInput: The data do not fit the question.
    """
    of, cap, own, smaller = parameters.collaboration(), None, None, None
    disclosure = data.provenance if isinstance(data, Dataset) else data
    if parameters.source is OwnersSource.DATA:
        if not isinstance(data, Dataset):
            raise refusal("the owners are to be those of data, and there are none")
        if parameters.whole_owner:
            cap = unequal.best_cap(data.histogram, of)
            if parameters.own_cap is not None:
                most = min(parameters.own_cap, data.histogram.max_size)
                own = float(unequal.joint_bounds(data.histogram, float(most), of))
        of = parameters.of_histogram(data.histogram, None if cap is None else float(cap.cap))
        limit = float(crossings.gaining_below(of))
        smaller = limit, int(data.histogram.users[data.histogram.sizes < limit].sum())
    return OwnersFound(
        parameters=parameters,
        of=of,
        regime=regime_of(of),
        map=regime_map(of, parameters.x_axis, parameters.y_axis, parameters.whole_owner),
        alone=float(alone(of)),
        joint=float(together(of, Private.JOINT)),
        full=float(together(of, Private.FULL)),
        nothing=float(trivial(of)),
        epsilon_joint=float(crossings.epsilon_star(of, Private.JOINT)),
        epsilon_full=float(crossings.epsilon_star(of, Private.FULL)),
        owners_joint=crossings.owners_needed(of, Private.JOINT),
        owners_full=crossings.owners_needed(of, Private.FULL),
        cap=cap,
        own_bound=own,
        smaller=smaller,
        disclosure=disclosure,
    )


NOT_COMPARED = ("own_cap", *TRAINING)
WAYS = ("Alone", "Together, no privacy", "Joint privacy", "Full privacy")


def against_epsilon(data: Dataset, parameters: OwnersParameters) -> Against | Ways:
    """What every way costs at any epsilon; where owners of the data are one unit each, the best cap per owner, too.

    Raises:
        InvalidInput: The data do not fit the question.
    """
    if parameters.source is OwnersSource.ENTERED:
        return _ways(parameters.collaboration(), Disclosure.PUBLIC)
    if not parameters.whole_owner:
        return _ways(parameters.of_histogram(data.histogram), data.provenance)
    histogram, of = data.histogram, parameters.collaboration()

    @remembered
    def choice(epsilon: float) -> unequal.CapChoice:
        return unequal.best_cap(histogram, of.having(epsilon=epsilon))

    def best(epsilon: float) -> tuple[float, float]:
        found = choice(epsilon)
        return float(found.cap), found.bound

    def costs(epsilons: FloatArray) -> FloatArray:
        at = [
            replace(parameters, epsilon=float(epsilon)).of_histogram(histogram, float(choice(epsilon).cap))
            for epsilon in epsilons.tolist()
        ]
        return np.stack([_costs(one) for one in at], axis=1)

    sentence = "what an owner may expect of each way, with the best bound on an owner's records at each ε"
    return Against(
        "Best bound (records per owner)",
        "Bound on the excess loss, joint privacy",
        best,
        lambda epsilon, caps: unequal.joint_bounds(histogram, caps, of.having(epsilon=epsilon)),
        histogram.sizes,
        histogram.users,
        cut="Records left out",
        ways=Ways("Bound on the excess loss", _names(of), costs, (), f"{sentence}, by the bounds."),
    )


def _ways(of: Collaboration, kind: Provenance) -> Ways:
    """All ways at any epsilon, and where joining begins to pay, in closed form."""
    pays = {
        "joint privacy": float(crossings.epsilon_star(of, Private.JOINT)),
        "full privacy": float(crossings.epsilon_star(of, Private.FULL)),
    }
    if of.personal == 0.0:
        pays = {"joint or full privacy": pays["joint privacy"]}
    said = " and ".join(
        f"with {name} above ε = {wording.number(epsilon)}"
        if math.isfinite(epsilon)
        else f"with {name} at no ε"
        for name, epsilon in pays.items()
    )
    marks = sorted(
        (epsilon, f"From here on {name} beats working alone")
        for name, epsilon in pays.items()
        if math.isfinite(epsilon)
    )
    return Ways(
        "Bound on the excess loss",
        _names(of),
        lambda epsilons: _costs(of.having(epsilon=epsilons)),
        tuple(marks),
        f"by the bounds, training together beats working alone {said}.",
        kind,
    )


def _costs(of: Collaboration) -> FloatArray:
    """Every way's bound, in the order of `_names`, shape (ways,) or (ways, k)."""
    found = (alone(of), without_privacy(of), together(of, Private.JOINT), together(of, Private.FULL))
    return np.stack([np.broadcast_to(one, np.shape(of.epsilon)) for one in found])[: len(_names(of))]


def _names(of: Collaboration) -> tuple[str, ...]:
    """Label of each way; without personal parameters full privacy is joint privacy."""
    return (*WAYS[:2], "Joint or full privacy") if of.personal == 0.0 else WAYS


def bound_rows(found: OwnersFound) -> dict[str, list[object]]:
    """A row per setting: its bound for a record and for the unit that is protected, and what is printed."""
    record, of = found.of.having(records_per_unit=1.0), found.of
    rows: list[tuple[str, float | None, float | None, float | None, str]] = [
        (
            "Alone",
            float(alone(record)),
            float(alone(of)),
            float(alone_printed(of)),
            "§3.2 prints D_X + D_U for the root of A.1",
        ),
        ("Together, no privacy", float(without_privacy(record)), float(without_privacy(of)), None, "A.2"),
        (
            "Together, joint privacy",
            float(together(record, Private.JOINT)),
            found.joint,
            None,
            "theorem 3.1, as printed; privacy proof incomplete",
        ),
        (
            "Together, full privacy",
            float(together(record, Private.FULL)),
            found.full,
            None if found.parameters.unit is Unit.RECORD else float(full_user_printed(of)),
            "A.3; its user level prints εn for εnr, and m/δ for m/(rδ)",
        ),
        (
            "Joint privacy, smooth loss",
            None,
            None if found.parameters.unit is Unit.RECORD else float(joint_smooth(of)),
            None,
            "theorem B.1, logs left out",
        ),
        (
            "Saved by joint privacy",
            float(saving(record)),
            float(saving(of)),
            float(saving_printed(of)),
            "§3.2 prints √(nk) for √(nk + ℓ) − √ℓ, and leaves √log(1/δ) out",
        ),
    ]
    names = ("Setting", "One record", "The unit protected", "As printed", "Source, and what is corrected")
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}
