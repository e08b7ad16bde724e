"""The solution for data owners: bounds, the map around them, and crossings, for entered owners or the data's own."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from dpcore.answer.against import MAX_CACHED_EPSILONS, BoundComparison, MethodComparison
from dpcore.common.checks import refuse
from dpcore.common.privacy import Disclosure, Provenance
from dpcore.common.wording import capitalise, format_number
from dpcore.contributions import FloatArray
from dpcore.data_owners import bounds, regimes
from dpcore.data_owners.bounds import (
    Collaboration,
    FloatOrArray,
    ProtectedPart,
    Unit,
    bound_alone,
    bound_together,
)
from dpcore.data_owners.parameters import TRAINING_FIELDS, OwnersParameters, OwnersSource
from dpcore.data_owners.regimes import MapAxis, Regime, RegimeMap
from dpcore.dataset import Dataset

JOINT, FULL = ProtectedPart.JOINT, ProtectedPart.FULL
ComputeBound = Callable[[Collaboration], FloatOrArray]


@dataclass(frozen=True, eq=False)
class OwnersSolution:
    """All results that depend on data and question.

    Attributes:
        parameters: What was asked.
        collaboration: The owners, as entered or as the data have them (with the best cap, where a whole owner is
            protected).
        regime: What is best for them.
        regime_map: The map around them.
        bound_alone: Bound of an owner alone.
        bound_joint: Bound of joint privacy.
        bound_full: Bound of full privacy.
        trivial_bound: A bound from which on nothing is said.
        joint_paying_epsilon: ε above which joint privacy pays.
        full_paying_epsilon: The same of full privacy.
        owners_needed_joint: Owners like these from whom on joint privacy pays; None where no number suffices.
        owners_needed_full: The same of full privacy.
        cap_choice: The best cap per owner, where owners of the data are one unit each.
        bound_at_own_cap: Bound at the person's own cap; None without one.
        gaining_limit_and_count: (m†, number of owners with fewer records), of the data's owners, whose bound alone is
            above the joint one; None for entered owners.
        disclosure: Of the numbers above.
    """

    parameters: OwnersParameters
    collaboration: Collaboration
    regime: Regime
    regime_map: RegimeMap
    bound_alone: float
    bound_joint: float
    bound_full: float
    trivial_bound: float
    joint_paying_epsilon: float
    full_paying_epsilon: float
    owners_needed_joint: int | None
    owners_needed_full: int | None
    cap_choice: regimes.CapChoice | None
    bound_at_own_cap: float | None
    gaining_limit_and_count: tuple[float, int] | None
    disclosure: Provenance

    @property
    def is_of_data(self) -> bool:
        """Return True if the owners are those of the data."""
        return self.parameters.source is OwnersSource.DATA

    @property
    def has_personal_part(self) -> bool:
        """Return True if owners have personal parameters, so that joint and full privacy differ."""
        return float(self.collaboration.personal) > 0.0

    @property
    def is_vacuous(self) -> bool:
        """Return True if the bound of joint privacy is no smaller than the loss of any model."""
        return self.bound_joint >= self.trivial_bound

    @property
    def unmet_conditions(self) -> tuple[str, ...]:
        """Return the conditions of the theorem that do not hold here, as sentences."""
        condition_sentences = []
        if float(self.collaboration.epsilon) > regimes.LARGEST_EPSILON:
            condition_sentences.append("The theorem holds up to ε = 10.")
        if float(self.collaboration.delta) * float(self.collaboration.owners) >= 1.0:
            condition_sentences.append("The theorem asks for δ below 1/n.")
        return tuple(condition_sentences)

    def get_coordinate(self, map_axis: MapAxis) -> float:
        """Return the person's coordinate on an axis of the map."""
        return float(getattr(self.collaboration, map_axis.value))


def solve(dataset: Dataset | Provenance, parameters: OwnersParameters) -> OwnersSolution:
    """Compute bounds, map and crossings; for owners of the data also the best cap and how many gain by joining.

    Args:
        dataset: Whose users are the owners; where owners are entered, what kind of numbers these are.
        parameters: What was asked.

    Raises:
        InvalidInput: The data do not fit the question.
    """
    collaboration, cap_choice = parameters.build_collaboration(), None
    bound_at_own_cap = gaining_limit_and_count = None
    provenance = dataset.provenance if isinstance(dataset, Dataset) else dataset
    if parameters.source is OwnersSource.DATA:
        if not isinstance(dataset, Dataset):
            raise refuse("there are no data to take owners from")
        histogram = dataset.histogram
        if parameters.protects_owner:
            cap_choice = regimes.find_best_cap(histogram, collaboration)
            if parameters.own_bound is not None:
                own_cap = float(min(parameters.own_bound, histogram.max_size))
                bound_at_own_cap = float(regimes.compute_joint_bounds(histogram, own_cap, collaboration))
        best_cap = None if cap_choice is None else cap_choice.cap
        collaboration = parameters.build_collaboration_of_histogram(histogram, best_cap)
        # Below this size an owner's own bound is larger than the joint one, which is for the average.
        single_record = collaboration.replace(records=1.0, evenness=1.0)
        gaining_limit = float(np.square(bound_alone(single_record) / bound_together(collaboration, JOINT)))
        gaining_limit_and_count = gaining_limit, int(histogram.users[histogram.sizes < gaining_limit].sum())
    return OwnersSolution(
        parameters=parameters,
        collaboration=collaboration,
        regime=regimes.find_regime(collaboration),
        regime_map=regimes.compute_regime_map(
            collaboration, parameters.x_axis, parameters.y_axis, parameters.protects_owner
        ),
        bound_alone=float(bound_alone(collaboration)),
        bound_joint=float(bound_together(collaboration, JOINT)),
        bound_full=float(bound_together(collaboration, FULL)),
        trivial_bound=float(bounds.bound_trivially(collaboration)),
        joint_paying_epsilon=float(bounds.find_epsilon_star(collaboration, JOINT)),
        full_paying_epsilon=float(bounds.find_epsilon_star(collaboration, FULL)),
        owners_needed_joint=bounds.find_owners_needed(collaboration, JOINT),
        owners_needed_full=bounds.find_owners_needed(collaboration, FULL),
        cap_choice=cap_choice,
        bound_at_own_cap=bound_at_own_cap,
        gaining_limit_and_count=gaining_limit_and_count,
        disclosure=provenance,
    )


IGNORED_FIELD_NAMES = ("own_bound", *TRAINING_FIELDS)
BOUND_FUNCTION_BY_SETTING: dict[str, ComputeBound] = {
    "Alone": bound_alone,
    "Together, no privacy": bounds.bound_without_privacy,
    "Joint privacy": partial(bound_together, protected_part=JOINT),
    "Full privacy": partial(bound_together, protected_part=FULL),
}


def compare_over_epsilon(
    dataset: Dataset, parameters: OwnersParameters
) -> BoundComparison | MethodComparison:
    """Build the comparison of all settings' bounds over epsilon.

    If whole owners of the data are protected, it is a `BoundComparison`, with the best cap at each epsilon.

    Raises:
        InvalidInput: The data do not fit the question.
    """
    if parameters.source is OwnersSource.ENTERED:
        return _compare_settings(parameters.build_collaboration(), Disclosure.PUBLIC)
    if not parameters.protects_owner:
        collaboration = parameters.build_collaboration_of_histogram(dataset.histogram)
        return _compare_settings(collaboration, dataset.provenance)
    histogram, collaboration = dataset.histogram, parameters.build_collaboration()

    @functools.lru_cache(MAX_CACHED_EPSILONS)
    def find_owner_cap(epsilon: float) -> regimes.CapChoice:
        """Find the best cap per owner at one epsilon; recent results are cached."""
        return regimes.find_best_cap(histogram, collaboration.replace(epsilon=epsilon))

    def bound_settings_at_best_caps(epsilons: FloatArray) -> FloatArray:
        """Compute every setting's bound at each epsilon's best cap, shape (settings, epsilons)."""
        collaborations_at_epsilons = (
            replace(parameters, epsilon=e).build_collaboration_of_histogram(histogram, find_owner_cap(e).cap)
            for e in epsilons.tolist()
        )
        return np.stack([*map(_bound_settings, collaborations_at_epsilons)], axis=1)

    return BoundComparison(
        "Best bound (records per owner)",
        "Bound on the excess loss, joint privacy",
        lambda epsilon: (float(find_owner_cap(epsilon).cap), find_owner_cap(epsilon).joint_bound),
        lambda e, caps: regimes.compute_joint_bounds(histogram, caps, collaboration.replace(epsilon=e)),
        histogram.sizes,
        histogram.users,
        method_comparison=MethodComparison(
            "Bound on the excess loss",
            _list_settings(collaboration),
            bound_settings_at_best_caps,
            (),
            "by the bounds, with the best bound on an owner's records at each ε.",
        ),
    )


def _compare_settings(collaboration: Collaboration, provenance: Provenance) -> MethodComparison:
    """Build the comparison of all settings' bounds over epsilon.

    It marks the epsilons from which joining is better than training alone.
    """
    crossing_epsilon_by_name = {
        part_name: float(bounds.find_epsilon_star(collaboration, protected_part))
        for part_name, protected_part in (("joint privacy", JOINT), ("full privacy", FULL))
    }
    if collaboration.personal == 0.0:
        crossing_epsilon_by_name = {"joint or full privacy": crossing_epsilon_by_name["joint privacy"]}
    crossings_phrase = " and ".join(
        f"with {part_name} above ε = {format_number(epsilon)}"
        if math.isfinite(epsilon)
        else f"with {part_name} at no ε"
        for part_name, epsilon in crossing_epsilon_by_name.items()
    )
    crossing_marks = sorted(
        (epsilon, f"{capitalise(part_name)} begins to pay")
        for part_name, epsilon in crossing_epsilon_by_name.items()
        if math.isfinite(epsilon)
    )
    return MethodComparison(
        "Bound on the excess loss",
        _list_settings(collaboration),
        lambda epsilons: _bound_settings(collaboration.replace(epsilon=epsilons)),
        tuple(crossing_marks),
        f"by the bounds, joining pays {crossings_phrase}.",
        provenance,
    )


def _bound_settings(collaboration: Collaboration) -> FloatArray:
    """Compute the bound of each setting of `_list_settings`, shape (settings,), or (settings, k) of k epsilons."""
    setting_bounds = [
        np.broadcast_to(compute_bound(collaboration), np.shape(collaboration.epsilon))
        for compute_bound in BOUND_FUNCTION_BY_SETTING.values()
    ]
    return np.stack(setting_bounds[: len(_list_settings(collaboration))])


def _list_settings(collaboration: Collaboration) -> tuple[str, ...]:
    """Return the label of each setting; without personal parameters joint and full privacy are one setting."""
    setting_labels = tuple(BOUND_FUNCTION_BY_SETTING)
    return (*setting_labels[:2], "Joint or full privacy") if collaboration.personal == 0.0 else setting_labels


def tabulate_bounds(solution: OwnersSolution) -> dict[str, list[object]]:
    """Build the columns, by heading, of a table of bounds: for one record, for the protected unit, and as printed."""
    compute_alone, compute_without_privacy, compute_joint, compute_full = BOUND_FUNCTION_BY_SETTING.values()
    collaboration, protects_record = solution.collaboration, solution.parameters.unit is Unit.RECORD
    table_rows: list[tuple[str, ComputeBound, ComputeBound | None, str]] = [
        (
            "Alone",
            compute_alone,
            bounds.compute_printed_bound_alone,
            "§3.2 prints D_X + D_U for the root of A.1",
        ),
        ("Together, no privacy", compute_without_privacy, None, "A.2"),
        ("Together, joint privacy", compute_joint, None, "theorem 3.1; privacy proof incomplete"),
        (
            "Together, full privacy",
            compute_full,
            None if protects_record else bounds.compute_printed_bound_of_users,
            "A.3; its user level prints εn for εnr, and m/δ for m/(rδ)",
        ),
        ("Joint privacy, smooth loss", bounds.bound_smooth_joint, None, "theorem B.1, logs left out"),
        (
            "Saved by joint privacy",
            bounds.compute_joint_saving,
            bounds.compute_printed_saving,
            "§3.2 prints √(nk) for √(nk + ℓ) − √ℓ, and leaves √log(1/δ) out",
        ),
    ]
    record_collaboration = collaboration.replace(records_per_unit=1.0)
    columns_by_heading: dict[str, list[object]] = {
        "Setting": [setting_name for setting_name, *_ in table_rows],
        "One record": [float(compute_bound(record_collaboration)) for _, compute_bound, *_ in table_rows],
        "The unit protected": [float(compute_bound(collaboration)) for _, compute_bound, *_ in table_rows],
        "As printed": [None if f is None else float(f(collaboration)) for *_, f, _ in table_rows],
        "Source, and what is corrected": [printed_source_text for *_, printed_source_text in table_rows],
    }
    # Theorem B.1 is about units of several records.
    smooth_index = columns_by_heading["Setting"].index("Joint privacy, smooth loss")
    columns_by_heading["One record"][smooth_index] = None
    if protects_record:
        columns_by_heading["The unit protected"][smooth_index] = None
    return columns_by_heading
