"""The JSON file of a choice, which takes from the answer what the answer says."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from dpcore import questions
from dpcore.answer import Answer, Number
from dpcore.answer.answer import add_json_writer
from dpcore.common.privacy import Disclosure, Neighbours, ReleaseFacts
from dpcore.data import samples
from dpcore.learning import LearningParameters
from dpcore.total.answer import build_answer
from dpcore.total.parameters import ASSUMPTIONS_ON_RELEASE, TotalParameters

pytestmark = pytest.mark.usefixtures("few_subsamples")

SHOP = samples.load("shop-events")
PRIVATE = replace(SHOP, disclosure=Disclosure.PRIVATE)
ANSWER = Answer(
    "Keep 7 rows.",
    "",
    (Number("Bound", "7 rows", value=7), Number("Error", "0.5", value=0.5), Number("Range", "[1, 2]")),
    ("Counts are public",),
    Disclosure.PRIVATE,
    parameters=LearningParameters(0.3, own_bound=9),
)


def read_document(answer: Answer) -> Any:
    return json.loads(answer.write_json())


def test_the_file_says_what_the_answer_says() -> None:
    answer = add_json_writer(
        ANSWER,
        PRIVATE,
        "a bound",
        lambda: {"extra": 1.5},
        number_keys=("bound",),
        question_entries={"neighbours": "users"},
        data_entries={"column": "amount"},
        omitted_parameter_names=("own_bound",),
    )
    document = read_document(answer)
    question = document["question"]
    assert (question["release"], question["epsilon"], question["neighbours"]) == ("a bound", 0.3, "users")
    assert question["label"] == "public input"
    assert "own_bound" not in question
    assert (document["data"]["num_rows"], document["data"]["column"]) == (3016, "amount")
    assert document["answer"] == {"label": Disclosure.PRIVATE.label, "bound": 7, "extra": 1.5}
    assert document["data"]["label"] == Disclosure.PRIVATE.label
    assert document["assumptions"] == ["Counts are public"]
    assert ANSWER.write_json is None, "the answer before stays as it is"


def test_without_data_all_that_was_entered_has_the_label_of_the_answer() -> None:
    document = read_document(add_json_writer(ANSWER, None, "a bound", dict, schema="test/1"))
    assert list(document) == ["schema", "made_with", "question", "answer", "assumptions"]
    assert document["question"]["label"] == document["answer"]["label"] == Disclosure.PRIVATE.label
    assert document["schema"] == "test/1"


@pytest.mark.parametrize(
    ("call", "settings"),
    [
        ("mean_bound", {"lower": 0, "upper": 100}),
        ("count_bound", {}),
        ("sum_bound", {}),
        ("group_bounds", {}),
        ("quantile_bound", {"lower": 0, "upper": 100}),
        ("learning_bound", {}),
        ("examples_bound", {}),
        ("owners", {}),
    ],
)
def test_every_file_has_the_label_and_the_assumptions_of_its_answer(
    call: str, settings: Mapping[str, Any]
) -> None:
    answer = questions.build_call(call)(PRIVATE, epsilon=1, **settings).answer
    document = read_document(answer)
    assert document["assumptions"] == list(answer.assumptions)
    assert document["question"]["label"] == "public input"
    assert document["data"]["label"] == document["answer"]["label"] == answer.disclosure.label
    assert answer.disclosure is Disclosure.PRIVATE


def test_the_file_of_a_release_has_the_assumptions_of_a_release() -> None:
    facts = ReleaseFacts(1.0, 0.0, Neighbours.ADD_OR_REMOVE_USER, "discrete Laplace")
    histogram_only = replace(PRIVATE, values=None, totals=None, pairs=None, tasks=None, privacy_unit=())
    release = replace(histogram_only, disclosure=Disclosure.DP_RELEASE, release=facts)
    document = read_document(build_answer(release, TotalParameters(1.0)))
    assert document["assumptions"] == list(ASSUMPTIONS_ON_RELEASE)
    assert document["answer"]["label"] == facts.label
