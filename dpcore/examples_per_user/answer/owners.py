"""Records of several owners: sentences and numbers on the records kept, the bound on them, and the noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcore.answer import Number
from dpcore.common import wording
from dpcore.common.checks import refuse
from dpcore.dataset import Dataset
from dpcore.examples_per_user.noise import bound_multiplier
from dpcore.examples_per_user.owners import MAX_PAIRS, Ownership, RecordSelection
from dpcore.examples_per_user.parameters import ExamplesParameters
from dpcore.examples_per_user.programs import write_owners_program as write_owners_program

PROTECTS = (
    "**This does not protect that somebody is there.** Which records are kept depends on all users, so who owns which "
    "record is public. Only the contents of one user's records are protected, zeroed or replaced by others."
)
FAIRNESS = (
    "The most records are not the best training: those of few owners are kept more often, and the model learns them "
    "more than others."
)


def read_ownership(dataset: Dataset) -> Ownership | None:
    """Read the groups of the data as records, and their users as owners; None if there are no groups.

    Raises:
        InvalidInput: More pairs than are searched.
    """
    if dataset.pairs is None:
        return None
    if dataset.pairs.user_codes.size > MAX_PAIRS:
        raise refuse(
            f"the data have {dataset.pairs.user_codes.size:,} pairs; at most {MAX_PAIRS:,} are searched"
        )
    return Ownership.from_pairs(dataset.pairs.task_codes, dataset.pairs.user_codes)


@dataclass(frozen=True)
class OwnersNoise:
    """The noise multipliers of sampling the selected records.

    Attributes:
        rate: q.
        zeroed_multiplier: Where one user's contents are zeroed; at most, by Rényi accounting.
        replaced_multiplier: Where they are replaced by others; likewise.
    """

    rate: float
    zeroed_multiplier: float
    replaced_multiplier: float


def compute_noise(selection: RecordSelection, parameters: ExamplesParameters) -> OwnersNoise | None:
    """Compute the noise for these records; None if B is more than all of them."""
    if parameters.batch > selection.count:
        return None
    rate = min(float(f"{parameters.batch / selection.count:.3g}"), 1.0)
    zeroed_multiplier, replaced_multiplier = (
        bound_multiplier(
            selection.bound,
            rate,
            parameters.epsilon,
            parameters.delta,
            parameters.steps,
            is_replaced=is_replaced,
        )
        for is_replaced in (False, True)
    )
    return OwnersNoise(rate, zeroed_multiplier, replaced_multiplier)


def build_numbers(selection: RecordSelection, noise: OwnersNoise | None) -> tuple[Number, ...]:
    """Build the records kept, the proved bound on them, and the noise."""
    numbers = [
        Number(
            "Records kept",
            wording.number(selection.count),
            f"of {wording.number(selection.ownership.num_records)}; at most {wording.number(selection.bound)} of a "
            "user",
            value=selection.count,
        ),
        Number(
            "No choice keeps more than",
            wording.number(selection.at_most),
            "proved" if selection.gap else "proved: this is the most",
            "By the prices of a linear program, added up in whole numbers.",
            selection.at_most,
            key="at_most",
        ),
    ]
    if noise is not None:
        numbers += [
            Number(
                "Noise multiplier, contents zeroed",
                f"at most {noise.zeroed_multiplier:.4g}",
                f"records drawn at rate {wording.number(noise.rate)}",
                value=noise.zeroed_multiplier,
            ),
            Number(
                "Noise multiplier, contents replaced",
                f"at most {noise.replaced_multiplier:.4g}",
                wording.change(noise.replaced_multiplier, noise.zeroed_multiplier),
                "A replaced content turns a gradient around: k clip norms one way against k the other.",
                noise.replaced_multiplier,
            ),
        ]
    return tuple(numbers)


def tabulate_owners(selection: RecordSelection) -> dict[str, list[object]]:
    """Tabulate the records by number of owners."""
    columns = selection.count_by_owners()
    kept_share = columns["kept"] / np.maximum(columns["records"], 1)
    return {
        "Owners": columns["owners"].tolist(),
        "Records": columns["records"].tolist(),
        "Kept": columns["kept"].tolist(),
        "Share kept": kept_share.tolist(),
    }
