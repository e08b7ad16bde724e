"""What the page Choose privately has to say in a methods section."""

from __future__ import annotations

from collections.abc import Sequence

from dpcore.common import wording
from dpcore.common.ledger import Ledger
from dpcore.common.privacy import Disclosure, rounded_up
from dpcore.dataset import Dataset
from dpcore.private_choice import choice
from dpcore.private_choice.choice import PrivateChoice
from dpcore.private_choice.parameters import Wanted
from dpcore.report.methods import NEIGHBOURS, Chosen, Methods
from pages.private_choice.answer import PrivateView
from pages.private_choice.card import NUMBER_NAMES


def methods(
    view: PrivateView, data: Dataset, drawn: Sequence[tuple[Wanted, PrivateChoice]], ledger: Ledger
) -> Methods:
    """The latest number that was drawn for this question, which may be printed; else how one would be drawn."""
    p = view.parameters
    number = NUMBER_NAMES[p.wanted]
    latest = next((one for wanted, one in reversed(drawn) if wanted is p.wanted), None)
    if latest is None and data.release is not None:
        return Methods(
            guarantee=f"The {number} was taken from a differentially private release of how many users have "
            f"how many rows. It is meant for a release at ε = {wording.entered(p.epsilon)}.",
            found=f"The {number} is {wording.number(view.best, 6)}.",
            withheld="",
            disclosure=data.provenance,
            rule=f"It {RULES[p.wanted]}",
            what="The number",
        )
    largest = latest.problem.largest if latest is not None else p.largest
    facts = latest.facts if latest is not None else None
    epsilon, relation = (
        (facts.epsilon, facts.neighbours) if facts is not None else (p.epsilon_choice, p.relation.neighbours)
    )
    value = f"The {number} is {choice.shown(latest)}. " if latest is not None else ""
    spent = ""
    if ledger.spent is not None and len(ledger.releases) > 1:
        delta = f" and δ = {rounded_up(ledger.spent.delta)}" if ledger.spent.delta else ""
        all_of_it = f"ε = {rounded_up(ledger.spent.epsilon)}{delta}"
        spent = f" All that was drawn from these data so far spent {all_of_it} together."
    return Methods(
        guarantee=f"The {number} was itself chosen with user-level ε-differential privacy at ε = "
        f"{rounded_up(epsilon)}. Two data sets are neighbours {NEIGHBOURS[relation]}.",
        found=f"{value}It was drawn by the exponential mechanism [@mcsherry2007] of [@opendp] from public "
        f"candidates of at most {wording.number(largest)} rows. By basic composition [@dwork2014] its budget and "
        f"that of the release that uses it add up.{spent}",
        withheld="",
        disclosure=Disclosure.PUBLIC if facts is None else facts,
        rule=f"The exact optimum, which the choice aims at, {RULES[p.wanted]}",
        what="The number",
        chosen=Chosen.DRAWN,
    )


RULES = {
    Wanted.SMOOTH: "minimises the expected squared error of a released mean under smooth weights "
    "[@epasto2020, section 3].",
    Wanted.CAP: "minimises the expected squared error of a released mean [@epasto2020, section 3].",
    Wanted.SUM: "minimises the bias of a released sum plus the mean size of its noise [@amin2019, section 3].",
    Wanted.QUANTILE: "is the quantile of rows per user that was asked for.",
}
