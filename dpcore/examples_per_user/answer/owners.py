"""Records of several owners in words and numbers: what is kept, what is proved, and what the noise then protects."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcore.answer import Number
from dpcore.common import wording
from dpcore.common.checks import Problems
from dpcore.common.errors import refusal
from dpcore.contributions import MAX_SIZE
from dpcore.dataset import Dataset
from dpcore.examples_per_user.noise import multiplier_at_most
from dpcore.examples_per_user.owners import MOST_PAIRS, Kept, Ownership
from dpcore.examples_per_user.parameters import ExamplesParameters
from dpcore.examples_per_user.programs import owners_program as owners_program

PROTECTS = (
    "**This does not protect that somebody is there.** Which records are kept depends on all users, so who owns which "
    "record is public; what is protected are the contents of one user's records, zeroed or replaced by others."
)
FAIRNESS = (
    "The most records are not the best training: those of few owners are kept more often, and the model learns them "
    "more than others."
)


def of_data(data: Dataset) -> Ownership | None:
    """The groups of the data as records, and their users as owners; None where there are no groups.

    Raises:
        InvalidInput: More pairs than are searched.
    """
    if data.pairs is None:
        return None
    if data.pairs.user_codes.size > MOST_PAIRS:
        raise refusal(
            f"the data have {data.pairs.user_codes.size:,} pairs; at most {MOST_PAIRS:,} are searched"
        )
    return Ownership.from_pairs(data.pairs.task_codes, data.pairs.user_codes)


@dataclass(frozen=True)
class OwnersNoise:
    """The noise multipliers of drawing the records kept.

    Attributes:
        rate: q.
        zeroed: Where one user's contents are zeroed; at most, by Rényi accounting.
        replaced: Where they are replaced by others; likewise.
    """

    rate: float
    zeroed: float
    replaced: float


def noise(kept: Kept, asked: ExamplesParameters) -> OwnersNoise | None:
    """The noise for these records; None where B is more than all of them."""
    if asked.batch > kept.count:
        return None
    rate = min(float(f"{asked.batch / kept.count:.3g}"), 1.0)
    zeroed, replaced = (
        multiplier_at_most(kept.bound, rate, asked.epsilon, asked.delta, asked.steps, replaced=one)
        for one in (False, True)
    )
    return OwnersNoise(rate, zeroed, replaced)


def numbers(kept: Kept, of: OwnersNoise | None) -> tuple[Number, ...]:
    """Records kept, what is proved, and the noise."""
    found = [
        Number(
            "Records kept",
            wording.number(kept.count),
            f"of {wording.number(kept.ownership.num_records)}; at most {wording.number(kept.bound)} of a user",
            value=kept.count,
        ),
        Number(
            "No choice keeps more than",
            wording.number(kept.at_most),
            "proved" if kept.gap else "proved: this is the most",
            "By the prices of a linear program, added up in whole numbers.",
            kept.at_most,
            key="at_most",
        ),
    ]
    if of is not None:
        found += [
            Number(
                "Noise multiplier, contents zeroed",
                f"at most {of.zeroed:.4g}",
                f"records drawn at rate {wording.number(of.rate)}",
                value=of.zeroed,
            ),
            Number(
                "Noise multiplier, contents replaced",
                f"at most {of.replaced:.4g}",
                wording.change(of.replaced, of.zeroed),
                "A replaced content turns a gradient around: k clip norms one way against k the other.",
                of.replaced,
            ),
        ]
    return tuple(found)


def rows(kept: Kept) -> dict[str, list[object]]:
    """A line per number of owners."""
    columns = kept.by_owners()
    share = columns["kept"] / np.maximum(columns["records"], 1)
    return {
        "Owners": columns["owners"].tolist(),
        "Records": columns["records"].tolist(),
        "Kept": columns["kept"].tolist(),
        "Share kept": share.tolist(),
    }


def whole_bound(entered: float | None) -> int:
    """k as it was entered.

    Raises:
        InvalidInput: It is empty, or no whole number of at least 1.
    """
    with Problems() as problems:
        problems.whole(1, MAX_SIZE, **{"the records per user k": entered})
    assert entered is not None
    return int(entered)
