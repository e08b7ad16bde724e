"""The answer of the tests' question: what page, report, files, script and notebook read."""

from __future__ import annotations

import numpy as np

from dpcore.answer import Answer, Column, Curve, Number, Plot, Style, linear_axis
from dpcore.answer.methods import Methods, cite_noise, write_guarantee
from dpcore.code import Quantity
from dpcore.code.forms import build_forms, list_data_fields, name_cap_form
from dpcore.common.privacy import Neighbours
from dpcore.common.wording import format_count, format_number
from dpcore.dataset import Dataset
from dpcore.toy.heavy import count_heavy_users
from dpcore.toy.parameters import ToyParameters


def build_answer(data: Dataset, parameters: ToyParameters) -> Answer:
    """Build the answer: how many users have more rows than so many."""
    rows, heavy = parameters.rows, count_heavy_users(data.histogram, parameters.rows)
    how, protects = "A count of users was released", Neighbours.ADD_OR_REMOVE_USER
    added = f"{cite_noise('Laplace')} was added to the number of users with more than {rows} rows."
    return Answer(
        headline=f"{format_count(heavy, 'user')} have more than {rows} rows.",
        detail="",
        numbers=(Number("Heavy users", format_number(heavy), value=heavy),),
        assumptions=("one user more or less is protected",),
        disclosure=data.provenance,
        code=build_forms(
            parameters.epsilon,
            list_data_fields(data),
            [(name_cap_form(rows), Quantity.COUNT, {"max_rows": rows})],
        ),
        parameters=parameters,
        solution=heavy,
        plots={"toy-users": lambda: plot(data, "Users", 1.0), "toy-share": lambda: plot(data, "Share", 0.0)},
        make_methods=lambda: Methods(
            guarantee_text=write_guarantee(how, parameters.epsilon, protects),
            procedure=f"{added} It is {heavy}.",
            public_procedure=added,
            disclosure=data.provenance,
            rule_sentence="The number of rows was entered.",
            subject_phrase="The count",
        ),
    )


def plot(data: Dataset, name: str, users: float) -> Plot:
    """Plot users with more rows, or their share."""
    histogram, key = data.histogram, name.lower()
    largest = histogram.num_users**users
    counts = np.array([count_heavy_users(histogram, int(size)) for size in histogram.sizes])
    across = linear_axis("rows", (0.0, float(histogram.sizes[-1])))
    upwards = linear_axis(key, (0.0, float(largest)))
    rows, users_shown = (
        Column("rows", histogram.sizes),
        Column("found", counts * largest / histogram.num_users),
    )
    texts = (f"toy-{key}", f"Heavy users: {name}", "Fewer have more rows.")
    curves = (Curve(name, rows, users_shown, Style.TOTAL),)
    return Plot(*texts, across, upwards, curves, data.provenance)
