"""The crossing as a short program of its own: plain Python that needs nothing but its standard library."""

from __future__ import annotations

from dpcore.code import Code
from dpcore.common import wording
from dpcore.data_owners.bounds import Collaboration

_PROGRAM = '''"""When should data owners train together? The bounds of Huang et al. 2023, and where they cross.

{label}
Every constant that O(.) hides is in the lines below. The map compares orders; it promises no accuracy.
"""

from math import hypot, inf, log, sqrt

EPSILON = {epsilon}
DELTA = {delta}
OWNERS = {owners}
RECORDS = {records}  # per owner
RECORDS_PER_UNIT = {unit}  # what is protected as one: 1 record, those of a user, or those of an owner
SHARED = {shared}  # shared parameters
PERSONAL = {personal}  # personal parameters per owner
PERSONAL_DIAMETER = {personal_diameter}
SHARED_DIAMETER = {shared_diameter}
LIPSCHITZ = {lipschitz}
ALONE, SAMPLING, PRIVACY = {alone}, {sampling}, {privacy}  # constants
EVENNESS = {evenness}  # 1 where all owners have as many records


def bound_alone():
    """Every owner trains alone (appendix A.1)."""
    return ALONE * EVENNESS * LIPSCHITZ * hypot(PERSONAL_DIAMETER, SHARED_DIAMETER) / sqrt(RECORDS)


def scale(epsilon):
    """Group privacy for all records of a unit (section 3.1.2)."""
    return RECORDS_PER_UNIT * sqrt(log(RECORDS_PER_UNIT / DELTA)) / epsilon


def bound_together(owners, epsilon, noisy):
    """All train together, noise on so many parameters (theorem 3.1 and appendix A.3)."""
    diameter = sqrt(owners * PERSONAL_DIAMETER**2 + SHARED_DIAMETER**2)
    all_records = owners * RECORDS
    noise = PRIVACY * scale(epsilon) * sqrt(noisy) / all_records
    return LIPSCHITZ * diameter * (SAMPLING / sqrt(all_records) + noise)


def epsilon_star(owners, noisy):
    """The epsilon above which training together has the smaller bound."""
    own, joint = hypot(PERSONAL_DIAMETER, SHARED_DIAMETER), sqrt(owners * PERSONAL_DIAMETER**2 + SHARED_DIAMETER**2)
    gain = ALONE * EVENNESS * sqrt(owners) * own / joint - SAMPLING
    if gain <= 1e-14 * SAMPLING:
        return inf
    return PRIVACY * scale(1.0) * sqrt(noisy) / (sqrt(owners * RECORDS) * gain)


def owners_needed(noisy_of, most=10**12):
    """The smallest number of owners for which training together has the smaller bound; None where none has."""


    def pays(owners):
        return EPSILON > epsilon_star(owners, noisy_of(owners))

    high = 1
    while not pays(high):
        if high >= most:
            return None
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if pays(middle) else (middle, high)
    return high


def noisy_joint(owners):
    return SHARED


def noisy_full(owners):
    return owners * PERSONAL + SHARED


print("bound alone:", bound_alone())
for name, noisy_of in (("joint privacy", noisy_joint), ("full privacy", noisy_full)):
    noisy = noisy_of(OWNERS)
    print(f"{{name}}: bound {{bound_together(OWNERS, EPSILON, noisy)}}")
    print(f"  pays above epsilon = {{epsilon_star(OWNERS, noisy)}}, or from {{owners_needed(noisy_of)}} owners on")
'''


def crossing_program(of: Collaboration, label: str) -> Code:
    """A program that computes the bounds and where they cross, for these owners.

    Args:
        of: The owners; numbers, no arrays.
        label: What kind of numbers it holds, a sentence.
    """

    def number(value: object) -> str:
        return wording.digits(float(value))  # type: ignore[arg-type]

    text = _PROGRAM.format(
        label=label,
        epsilon=number(of.epsilon),
        delta=number(of.delta),
        owners=number(of.owners),
        records=number(of.records),
        unit=number(of.records_per_unit),
        shared=number(of.shared),
        personal=number(of.personal),
        personal_diameter=number(of.personal_diameter),
        shared_diameter=number(of.shared_diameter),
        lipschitz=number(of.lipschitz),
        alone=number(of.alone_constant),
        sampling=number(of.sampling_constant),
        privacy=number(of.privacy_constant),
        evenness=number(of.evenness),
    )
    return Code(text, "python", "data_owners_crossing.py", ())
