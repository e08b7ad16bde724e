"""The answer in words."""

from __future__ import annotations

from dpcore.answer import Answer, Number
from dpcore.common import wording
from dpcore.dataset import Dataset
from dpcore.toy.parameters import ToyParameters
from pages.toy import code
from pages.toy.answer import ToyAnswer


def card(view: ToyAnswer, data: Dataset, parameters: ToyParameters) -> Answer:
    """What the page answers."""
    number = wording.number(view.heavy)
    return Answer(
        headline=f"{wording.counted(view.heavy, 'user')} have more than {parameters.rows} rows.",
        detail="",
        numbers=(Number("Heavy users", number),),
        assumptions=("one user more or less is protected",),
        disclosure=data.provenance,
        code=code.of_toy(data, parameters),
    )
