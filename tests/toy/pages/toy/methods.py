"""What the page has to say in a methods section."""

from __future__ import annotations

from dpcore.answer.methods import Methods, guarantee, noise
from dpcore.common.privacy import Neighbours
from dpcore.dataset import Dataset
from dpcore.toy.parameters import ToyParameters
from pages.toy.answer import ToyAnswer


def methods(view: ToyAnswer, data: Dataset, parameters: ToyParameters) -> Methods:
    """How many users are heavy."""
    added = f"{noise('Laplace')} was added to the number of users with more than {parameters.rows} rows."
    return Methods(
        guarantee=guarantee(
            "A count of users was released", parameters.epsilon, Neighbours.ADD_OR_REMOVE_USER
        ),
        found=f"{added} It is {view.heavy}.",
        withheld=added,
        disclosure=data.provenance,
        rule="The number of rows was entered.",
        what="The count",
    )
