"""Programs for a training with a bounded number of examples per user: the values with a check of ε, and libraries."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dpcore.code import Code
from dpcore.code.common import render
from dpcore.common import wording
from dpcore.common.version import VERSION
from dpcore.examples_per_user.noise import choose_grid, truncate_mixture
from dpcore.examples_per_user.parameters import Sampling

PROGRAMS = {"Values, and a check of ε": "values", "Opacus": "opacus", "JAX Privacy": "jax_privacy"}
"""By the name that a person reads: the template."""


@dataclass(frozen=True)
class Training:
    """The constants of a program.

    Attributes:
        sampling: Who is drawn.
        bound: G.
        rate: q.
        divisor: Of the noisy sum.
        multiplier: σ, over the clip norm.
        epsilon: Promised.
        delta: Likewise.
        steps: T.
    """

    sampling: Sampling
    bound: int
    rate: float
    divisor: float
    multiplier: float
    epsilon: float
    delta: float
    steps: int


def write_program(name: str, training: Training, label: str) -> Code:
    """Write one of `PROGRAMS`.

    Args:
        name: Which.
        training: Its constants.
        label: What kind of numbers they are, a sentence.
    """
    template_name = PROGRAMS[name]
    num_moved = 1 if training.sampling is Sampling.USERS else training.bound
    possible_moves, weights = (
        truncate_mixture(num_moved, training.rate)
        if training.rate < 1.0
        else ([0.0, float(num_moved)], [0.0, 1.0])
    )
    text = render(
        Path(__file__).with_name(f"{template_name}.py"),
        version=VERSION,
        label=label,
        users=training.sampling is Sampling.USERS,
        bound=training.bound,
        rate=wording.digits(training.rate),
        divisor=wording.digits(training.divisor),
        multiplier=wording.digits(training.multiplier),
        epsilon=wording.digits(training.epsilon),
        delta=wording.digits(training.delta),
        steps=training.steps,
        grid=wording.digits(choose_grid(training.epsilon, training.steps)),
        # Where a tail was moved G stands behind K, which is then the last k in order.
        last=int(possible_moves[-2])
        if possible_moves[-1] > len(possible_moves) - 1
        else int(possible_moves[-1]),
        weights=weights,
    )
    return Code(text, "python", f"examples_per_user_{template_name}.py", ())


def write_owners_program(bound: int) -> Code:
    """Write a program that keeps records of several owners, for a table of the person's own.

    Args:
        bound: k, records per user.
    """
    text = render(Path(__file__).with_name("keep_records.py"), version=VERSION, bound=bound)
    return Code(text, "python", "keep_records.py", ())
