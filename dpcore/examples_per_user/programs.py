"""A training with a bounded number of examples per user as programs: the values with a check of ε, and libraries."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dpcore.code import Code
from dpcore.code.templates import render
from dpcore.common import wording
from dpcore.common.version import VERSION
from dpcore.examples_per_user.noise import grid_of, kept_terms
from dpcore.examples_per_user.parameters import Way

PROGRAMS = {"Values, and a check of ε": "values", "Opacus": "opacus", "JAX Privacy": "jax_privacy"}
"""By the name that a person reads: the template."""


@dataclass(frozen=True)
class Training:
    """What a program holds; all of it are constants.

    Attributes:
        way: Who is drawn.
        bound: G.
        rate: q.
        divisor: Of the noisy sum.
        multiplier: σ, over the clip norm.
        epsilon: Promised.
        delta: Likewise.
        steps: T.
    """

    way: Way
    bound: int
    rate: float
    divisor: float
    multiplier: float
    epsilon: float
    delta: float
    steps: int


def program(name: str, of: Training, label: str) -> Code:
    """One of `PROGRAMS`.

    Args:
        name: Which.
        of: Its constants.
        label: What kind of numbers they are, a sentence.
    """
    file = PROGRAMS[name]
    moves = 1 if of.way is Way.USERS else of.bound
    k, weights = kept_terms(moves, of.rate) if of.rate < 1.0 else ([0.0, float(moves)], [0.0, 1.0])
    text = render(
        Path(__file__).with_name(f"{file}.py"),
        version=VERSION,
        label=label,
        users=of.way is Way.USERS,
        bound=of.bound,
        rate=wording.digits(of.rate),
        divisor=wording.digits(of.divisor),
        multiplier=wording.digits(of.multiplier),
        epsilon=wording.digits(of.epsilon),
        delta=wording.digits(of.delta),
        steps=of.steps,
        grid=wording.digits(grid_of(of.epsilon, of.steps)),
        # Where a tail was moved G stands behind K, which is then the last k in order.
        last=int(k[-2]) if k[-1] > len(k) - 1 else int(k[-1]),
        weights=weights,
    )
    return Code(text, "python", f"examples_per_user_{file}.py", ())


def owners_program(bound: int) -> Code:
    """Records of several owners: a program that keeps them, for a table of the person's own.

    Args:
        bound: k, records per user.
    """
    text = render(Path(__file__).with_name("keep_records.py"), version=VERSION, bound=bound)
    return Code(text, "python", "keep_records.py", ())
