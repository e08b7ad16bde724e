"""Sentences for a methods section: what they say of public, private and released data, and who has them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpcore import mean
from dpcore.answer import Answer
from dpcore.answer.methods import Methods, write_guarantee
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Disclosure, Ledger, Neighbours, Provenance, ReleaseFacts
from dpcore.contributions import ContributionHistogram
from dpcore.data.task_facets import Pairs
from dpcore.data_owners import answer as owners_answer
from dpcore.data_owners.bounds import Unit
from dpcore.data_owners.parameters import OwnersParameters, OwnersSource
from dpcore.dataset import Dataset, Values
from dpcore.gap_examples import answer as gap_answer
from dpcore.gap_examples.parameters import GapParameters
from dpcore.learning import LearningParameters
from dpcore.learning import answer as learning_answer
from dpcore.mean import answer as mean_answer
from dpcore.per_group import answer as per_group_answer
from dpcore.per_group.parameters import PerGroupParameters
from dpcore.per_group.selection_rules import SelectionRule
from dpcore.private_choice import comparison
from dpcore.private_choice.answer.answer import build_methods as private_methods
from dpcore.private_choice.choice import DrawnNumber, choose, format_drawn_number
from dpcore.private_choice.parameters import PrivateParameters
from dpcore.quantile import answer as quantile_answer
from dpcore.quantile.parameters import QuantileParameters, Weighting
from dpcore.total import answer as total_answer
from dpcore.total.parameters import Summed, TotalParameters
from pages.shared.base import catalogue

PAGES = Path(__file__).parents[3] / "pages"
WITHOUT = {
    "papers": "it collects figures of papers and gives no bound",
    "release_sheet": "it states what other pages release",
    "start": "its card teaches a trade-off",
    "your_data": "it holds data and answers nothing",
}
"""Questions without sentences, and why."""
COPY = ReleaseFacts(0.1, 0.0, Neighbours.ADD_OR_REMOVE_USER, "discrete Laplace noise")


def users(counts: list[int], provenance: Provenance) -> Dataset:
    """Users with so many rows each, a value in each row, over two groups."""
    codes = np.repeat(np.arange(len(counts)), counts)
    values = Values(codes, np.linspace(0.1, 0.9, codes.size), "amount")
    each = np.arange(len(counts))
    pairs = Pairs(
        np.repeat(each, 2), np.tile([0, 1], len(counts)), 2,
        rows=np.column_stack([np.maximum(np.array(counts) - 1, 1), np.ones(len(counts), dtype=int)]).ravel(),
    )  # fmt: skip
    histogram = ContributionHistogram.from_counts(counts)
    released = provenance if isinstance(provenance, ReleaseFacts) else None
    disclosure = Disclosure.DP_RELEASE if released is not None else provenance
    assert isinstance(disclosure, Disclosure)
    if released is not None:
        return Dataset("copy", "", disclosure, histogram, release=released)
    return Dataset("mine.csv", "", disclosure, histogram, values=values, pairs=pairs)


def write_choice_methods(data: Dataset, *arguments: DrawnNumber) -> Methods | None:
    parameters = PrivateParameters(1.0)
    solution = comparison.solve(data, parameters)
    ledger = Ledger()
    for item in arguments:
        ledger = ledger.add(item.facts)
    return private_methods(solution, [(parameters.purpose, item) for item in arguments], ledger)


def read(methods: Methods) -> Iterator[str]:
    """Numbers in what was computed from the data."""
    yield from re.findall(r"\d[\d,.]*\d|\d", methods.procedure)


QUESTIONS: dict[str, tuple[Callable[[Dataset, Any], Answer], Any]] = {
    "mean": (mean_answer.build_answer, mean.MeanParameters(1.0)),
    "mean, private counts": (mean_answer.build_answer, mean.MeanParameters(1.0, counts=mean.Counts.PRIVATE)),
    "count": (total_answer.build_answer, TotalParameters(1.0)),
    "sum": (
        total_answer.build_answer,
        TotalParameters(1.0, summed=Summed.VALUES, mechanism=NoiseKind.GAUSSIAN, delta=1e-6),
    ),
    "per group": (per_group_answer.build_answer, PerGroupParameters(1.0)),
    "private groups": (
        per_group_answer.build_answer,
        PerGroupParameters(
            1.0, selection=SelectionRule.TRUNCATED_GEOMETRIC, selection_share=0.5, selection_delta=1e-5
        ),
    ),
    "quantile": (quantile_answer.build_answer, QuantileParameters(1.0)),
    "quantile, cap": (quantile_answer.build_answer, QuantileParameters(1.0, weighting=Weighting.CAP)),
    "quantile, no bound": (quantile_answer.build_answer, QuantileParameters(1.0, weighting=Weighting.NONE)),
    "learning": (learning_answer.build_answer, LearningParameters(1.0)),
    "gap": (gap_answer.build_answer, GapParameters(1.0)),
    "owners": (owners_answer.build_answer, OwnersParameters(1.0, source=OwnersSource.DATA, unit=Unit.OWNER)),
}


def write_methods(name: str, data: Dataset) -> Methods:
    build_answer, parameters = QUESTIONS[name]
    methods = build_answer(data, parameters).methods
    assert methods is not None
    return methods


@pytest.mark.few(6)
@pytest.mark.parametrize("name", QUESTIONS)
def test_of_private_data_no_word_depends_on_the_data(name: str) -> None:
    one, other = ([1, 1, 2, 3, 5, 90] * 9, [2, 4, 7, 30] * 30)
    texts = [write_methods(name, users(counts, Disclosure.PRIVATE)) for counts in (one, other)]
    assert texts[0].text == texts[1].text
    assert texts[0].latex == texts[1].latex
    assert texts[0].latex.isascii()
    assert texts[0].shown_disclosure is Disclosure.PUBLIC
    public = [write_methods(name, users(counts, Disclosure.PUBLIC)).text for counts in (one, other)]
    assert public[0] != public[1], "else this test shows nothing"
    assert "private data" in texts[0].text
    assert "not" in texts[0].text


@pytest.mark.parametrize("name", ["mean", "count", "learning", "gap", "owners"])
def test_on_a_release_its_facts_are_stated(name: str) -> None:
    methods = write_methods(name, users([1, 1, 2, 3, 5, 90] * 9, COPY))
    assert "(epsilon = 0.1; add or remove one user; discrete Laplace noise)" in methods.text
    assert "whose budget comes on top" in methods.text
    assert methods.shown_disclosure == COPY


def test_a_number_that_was_drawn_stands_there_with_its_own_budget_and_nothing_before() -> None:
    private = users([1, 1, 2, 3, 5, 90] * 9, Disclosure.PRIVATE)
    assert write_choice_methods(private) is None
    problem = PrivateParameters(1.0).choice
    ones = [choose(problem, private.histogram, charge=lambda facts: None) for _ in range(2)]
    methods = write_choice_methods(private, *ones)
    assert f"smooth weights is {format_drawn_number(ones[1])}. " in methods.text
    assert "at ε = 0.1. " in methods.text
    assert "spent ε = 0.2 together" in methods.text
    assert methods.shown_disclosure == ones[1].facts
    copy = write_choice_methods(users([1, 1, 2, 3, 5, 90] * 9, COPY))
    assert "(epsilon = 0.1; add or remove one user; discrete Laplace noise)" in copy.text


def test_the_bound_and_the_error_are_those_of_the_answer() -> None:
    data = users([1, 1, 2, 3, 5, 90] * 9, Disclosure.PUBLIC)
    methods = write_methods("mean", data)
    view = mean_answer.build_answer(data, mean.MeanParameters(1.0)).solution
    rows, *rest = read(replace(methods, procedure=methods.procedure.replace("[@dwork2006]", "")))
    # Brute force over all whole caps, by the formula of claim 2: B = 1, sigma^2 = 1/4, epsilon = 1.
    sizes, number = data.histogram.sizes.astype(float), data.histogram.users
    errors = {}
    for h in range(1, 91):
        kept = float(np.minimum(h, sizes) @ number)
        errors[h] = 0.25 / kept + 2.0 * (h / kept) ** 2
    best = min(errors, key=errors.__getitem__)
    assert int(rows) == best == view.cap_choice.max_contributions
    assert f"{np.sqrt(errors[best]):.3g}" in rest


@given(epsilon=st.floats(1e-6, 1e3), delta=st.floats(1e-15, 0.5))
def test_a_budget_is_never_stated_smaller_than_it_is(epsilon: float, delta: float) -> None:
    sentence = write_guarantee("It was released", epsilon, Neighbours.REPLACE_USER, delta)
    match = re.search(r"ε = ([\d,.e−]+) and δ = ([\d,.e−]+)\. ", sentence)
    stated = [float(number.replace(",", "").replace("−", "-")) for number in match.groups()]
    # What a sum's rounding leaves in the last two units is not shown.
    assert stated[0] >= epsilon * (1.0 - 5e-16)
    assert stated[1] >= delta * (1.0 - 5e-16)


def test_where_nothing_is_to_be_released_that_is_what_is_said() -> None:
    data = users([1, 2, 3], Disclosure.PUBLIC)
    methods = total_answer.build_answer(data, TotalParameters(0.001)).methods
    assert methods.text.startswith("At ε = 0.001 publishing 0 is no worse")
    assert "was released with" not in methods.text
    hidden = replace(methods, disclosure=Disclosure.PRIVATE)
    assert "no bound" not in hidden.text
    assert "was released with" in hidden.text


def test_every_question_that_gives_a_bound_has_sentences() -> None:
    there = {
        path.parents[1].name
        for path in (PAGES.parent / "dpcore").glob("*/answer/*.py")
        if "Methods(" in path.read_text(encoding="utf-8")
    }
    assert there == set(catalogue.QUESTION_BY_NAME) - set(WITHOUT)
