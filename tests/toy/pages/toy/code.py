"""The bound as a program for the person's library."""

from __future__ import annotations

from dpcore.code import Released
from dpcore.code.forms import CodeChoice, cap_form, forms, of_data
from dpcore.dataset import Dataset
from dpcore.toy.parameters import ToyParameters


def of_toy(data: Dataset, parameters: ToyParameters) -> CodeChoice | None:
    """A count of rows under this cap."""
    form = (cap_form(parameters.rows), Released.COUNT, {"max_rows": parameters.rows})
    return forms(parameters.epsilon, of_data(data), [form])
