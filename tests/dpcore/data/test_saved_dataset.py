"""Data sets as JSON and back, and JSON that anybody may have written."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pandas import DataFrame

from dpcore.common.checks import InvalidInput, Problems
from dpcore.common.privacy import Disclosure, Ledger, Neighbours, ReleaseFacts, is_mechanism
from dpcore.common.strict_json import MAX_PROBLEMS, JsonValue, encode_array, load_json
from dpcore.contributions import ContributionHistogram
from dpcore.counting.count import to_dataset
from dpcore.data import saved_dataset
from dpcore.data.task_facets import Pairs, PairSizes, TaskSizes
from dpcore.dataset import Contribution, Dataset, LabelledRows, Totals, Values


def parsed(text: str | bytes) -> JsonValue:
    return load_json(text.encode() if isinstance(text, str) else text, 10_000, "the file")


def refusal(text: str | bytes) -> str:
    with pytest.raises(InvalidInput) as refused:
        parsed(text)
    return str(refused.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not JSON"),
        ('{"a": 1', "Line 1, column 8: the file is not JSON"),
        (b"\xff\xfe{", "not text in UTF-8"),
        ('{"a": 1, "b": 2, "a": 3}', "'a' stands twice"),
        ('{"a": NaN}', "holds NaN"),
        ("[-Infinity]", "holds -Infinity"),
        ("9" * 5000, "thousands of digits"),
        ("[" * 9_999, "nested too deeply"),
        (" " * 10_001, "at most 0 MB are read"),
    ],
)
def test_what_is_no_plain_json_is_refused_in_a_sentence(text: str | bytes, words: str) -> None:
    assert words in refusal(text)


def test_a_part_is_only_what_it_says_and_all_problems_come_at_once() -> None:
    document = parsed(
        '{"text": "\\ud800", "number": 1e999, "whole": 2.0, "true": true, "list": [1, "x"], "deep": {"b": null}}'
    )
    members = document.get_members(["text", "number", "whole", "true", "list", "deep"])
    assert [
        members["text"].get_text(5),
        members["number"].get_number(),
        members["whole"].get_integer(0, 9),
    ] == [None] * 3
    assert [
        members["true"].get_number(),
        members["true"].get_integer(0, 9),
        members["deep"].get_members(["a"]),
    ] == [None] * 3
    entries = members["list"].get_entries(2)
    assert [entries[0].get_integer(0, 9), entries[1].get_number(), members["list"].get_entries(1)] == [
        1,
        None,
        None,
    ]
    sentences = [problem.sentence for problem in document.problems.entries]
    assert len(sentences) == 9
    assert "Text: this must be a text of whole characters; got '\\ud800'." in sentences
    assert "List, entry 2: this must be a number; got 'x'." in sentences
    assert "Deep: 'b' is not known here." in sentences
    assert "Deep: a is missing." in sentences


def test_a_hostile_file_gets_a_short_list() -> None:
    document = JsonValue({f"x{i}": i for i in range(2000)}, "", Problems())
    assert document.get_members(["a"], [f"y{i}" for i in range(3000)]) is None
    assert len(document.problems.entries) == MAX_PROBLEMS


@pytest.mark.parametrize(
    "change",
    [
        {"shape": [3]},
        {"shape": [-2]},
        {"shape": [2, 1]},
        {"float64": "AAAA"},
        {"float64": "é"},
        {"float64": 7},
        {"more": 1},
        {"float64": None},
    ],
)
def test_an_array_is_as_long_as_it_says(change: dict[str, Any]) -> None:
    written = encode_array(np.array([1.5, -0.0]))
    array_read = JsonValue(written, "", Problems()).get_array("float64")
    assert array_read.tobytes() == np.array([1.5, -0.0]).tobytes()
    changed = JsonValue(written | change, "", Problems())
    assert changed.get_array("float64") is None
    assert changed.problems.entries


def with_everything() -> Dataset:
    histogram = ContributionHistogram([1, 2], [1, 2])
    codes = [0, 1, 1, 2, 2]
    return Dataset(
        "events.csv",
        "A file",
        Disclosure.PRIVATE,
        histogram,
        ("user", "device"),
        Contribution.ROWS,
        values=Values(codes, [0.1, 1e300, -0.0, 5e-324, 2.0], "amount"),
        totals=Totals([0.0, 3.5, 1e9], "amount", [5, 1, 2]),
        pairs=Pairs(
            [0, 1, 2], [1, 0, 1], 2, "shop", [1, 2, 2], [0.1, 2.0, 3.0], [0.01, 4.0, 9.0], "amount", (0.1, 3.0), 4,
            further_columns=("day",),
        ),
        tasks=TaskSizes([1, 2], "shop", ("day",)),
        pair_sizes=PairSizes([1, 2], [1, 2], [1, 2], [5], [3], "shop", ("day",)),
        table=LabelledRows(np.arange(10.0).reshape(5, 2), np.arange(5.0), codes, ("x", "y"), "label"),
        notes=("A row was left out.",),
    )  # fmt: skip


def read_back(content: Any) -> tuple[Dataset | None, list[str]]:
    json_value = JsonValue(json.loads(json.dumps(content)), "", Problems())
    return saved_dataset.from_json(json_value), [problem.sentence for problem in json_value.problems.entries]


def test_every_facet_comes_back_bit_by_bit() -> None:
    data = with_everything()
    saved = saved_dataset.to_json(data)
    assert saved.left_out_phrases == ()
    back, problems = read_back(saved.dataset_json)
    assert problems == []
    assert back == data
    assert (back.notes, back.privacy_unit, back.source) == (data.notes, data.privacy_unit, data.source)
    assert np.signbit(back.values.values[2])


def with_columns() -> Dataset:
    table = DataFrame(
        {"user": [1, 1, 2], "price": [1.0, 2.5, 3.0], "tax": [0.5, 0.0, 0.25], "days": [3, 4, 5]}
    )
    further = {"value": "price", "further_values": ("tax", "days")}
    return to_dataset(table, user="user", filters="days > 3", **further)


def test_further_columns_come_back_and_only_those_of_the_table() -> None:
    data = with_columns()
    saved = saved_dataset.to_json(data)
    assert saved.left_out_phrases == ()
    back, problems = read_back(saved.dataset_json)
    assert problems == []
    assert back == data
    assert back.value_columns == ("price", "tax", "days")
    assert back.find_column("days").values.values.tolist() == [4.0, 5.0]
    # Room for all but the last column, which is named.
    least_room = saved_dataset.ROOM - saved.remaining_bytes - 1
    smaller = saved_dataset.to_json(data, least_room)
    assert smaller.left_out_phrases == (f"{data.name}: column days",)
    assert read_back(smaller.dataset_json)[0].value_columns == ("price", "tax")
    # A column of other data, with another label, or with columns of its own is refused.
    public = saved_dataset.to_json(
        replace(data, disclosure=Disclosure.PUBLIC, further_datasets=())
    ).dataset_json
    for further in ([public], [saved.dataset_json], [saved.dataset_json["further"][1]]):
        back, problems = read_back(saved.dataset_json | {"further": further})
        assert back is None
        assert problems


def test_a_release_comes_back_with_its_facts() -> None:
    facts = ReleaseFacts(0.1 + 0.2, 1e-12, Neighbours.REPLACE_USER, "discrete Laplace")
    data = Dataset("copy", "", Disclosure.DP_RELEASE, ContributionHistogram([1], [7]), release=facts)
    back, problems = read_back(saved_dataset.to_json(data).dataset_json)
    assert problems == []
    assert back.release == facts


def test_what_has_no_room_is_left_out_by_name_largest_first() -> None:
    data = with_everything()
    # 32 bytes of histogram, 16 of tasks, 48 of totals: then 40 of 80 are left, too few for the values.
    saved = saved_dataset.to_json(data, remaining_bytes=32 + 16 + 48 + 40)
    assert len(saved.left_out_phrases) == 4
    assert any("the values (" in words for words in saved.left_out_phrases)
    back, problems = read_back(saved.dataset_json)
    assert problems == []
    assert back.values is None
    assert back.totals == data.totals
    assert back.histogram == data.histogram
    assert sum("Left out of the session file" in note for note in back.notes) == 4
    assert saved_dataset.to_json(data, remaining_bytes=31).dataset_json is None


@st.composite
def changes(draw: st.DrawFn) -> tuple[list[Any], Any]:
    """A place in the file, and what shall stand there."""
    path: list[Any] = []
    node: Any = saved_dataset.to_json(with_everything()).dataset_json
    while isinstance(node, dict | list) and node and (not path or draw(st.booleans())):
        path.append(draw(st.sampled_from(sorted(node) if isinstance(node, dict) else range(len(node)))))
        node = node[path[-1]]
    odd = st.one_of(
        st.none(), st.booleans(), st.integers(-(10**20), 10**20), st.floats(allow_nan=False), st.text(max_size=5),
        st.just([]), st.just({}), st.just({"shape": [10**9], "int64": ""}),
        st.just(encode_array(np.array([10**17, -5]))),
    )  # fmt: skip
    return path, draw(odd)


@settings(max_examples=150, deadline=None)
@given(changes())
def test_a_changed_data_set_is_refused_or_differs_in_words_only(change: tuple[list[Any], Any]) -> None:
    path, value = change
    content = json.loads(json.dumps(saved_dataset.to_json(with_everything()).dataset_json))
    node = content
    for name in path[:-1]:
        node = node[name]
    node[path[-1]] = value
    back, problems = read_back(content)
    assert (back is None) == bool(problems)
    if back is not None:  # Names, source and notes are words; everything else is held by the digest.
        assert back.digest == with_everything().digest


def test_codes_that_would_take_all_memory_are_refused_though_the_digest_were_right() -> None:
    content = saved_dataset.to_json(with_everything()).dataset_json
    huge = replace(with_everything(), values=None, table=None, pairs=None)
    facet = {"user_codes": encode_array(np.array([0, 10**12])), "values": encode_array(np.array([0.0, 1.0]))}
    for name, content_changed in (
        ("values", facet),
        ("pairs", {**content["facets"]["pairs"], "num_tasks": 10**15}),
    ):
        back, problems = read_back({**content, "digest": huge.digest, "facets": {name: content_changed}})
        assert back is None
        assert problems


releases = st.builds(
    ReleaseFacts,
    st.sampled_from([0.1, 0.5, 2.0]),
    st.just(0.0),
    st.sampled_from([Neighbours.ADD_OR_REMOVE_USER, Neighbours.REPLACE_USER]),
    st.just("Laplace"),
)
marks = st.lists(st.sampled_from("abcdef"), unique=True, max_size=4)
ledgers = marks.flatmap(
    lambda chosen_marks: st.lists(releases, min_size=len(chosen_marks), max_size=len(chosen_marks)).map(
        lambda facts: Ledger(tuple(facts), tuple(chosen_marks))
    )
)


def epsilon(ledger: Ledger) -> float:
    return 0.0 if ledger.total is None else ledger.total.epsilon


@settings(max_examples=200, deadline=None)
@given(ledgers, ledgers)
def test_joined_accounts_hold_every_release_once_and_never_spend_less(one: Ledger, other: Ledger) -> None:
    both = one.merge(other)
    assert epsilon(both) >= max(epsilon(one), epsilon(other))
    assert both.merge(one) == both == both.merge(both)
    shared = {
        mark
        for mark, facts in zip(one.marks, one.releases, strict=True)
        if facts == dict(zip(other.marks, other.releases, strict=True)).get(mark)
    }
    assert len(both.releases) == len(one.releases) + len(other.releases) - len(shared)
    assert set(one.marks) <= set(both.marks)


def test_two_releases_of_one_kind_stay_two_and_one_saved_twice_stays_one() -> None:
    facts = ReleaseFacts(0.5, 0.0, Neighbours.REPLACE_USER, "Laplace")
    node, there = Ledger().add(facts), Ledger().add(facts)
    assert len(node.merge(there).releases) == 2
    assert node.add(facts).merge(node).releases == (facts, facts)
    with pytest.raises(ValueError, match="one mark"):
        Ledger((facts, facts), ("a", "a"))


def test_every_mechanism_that_draws_can_be_read_back() -> None:
    from dpcore.private_choice import choice, private_histogram
    from dpcore.regression import draw as regression_draw
    from dpcore.training import release

    names = [
        choice.MECHANISM_NAME,
        regression_draw._build_facts(1.0).mechanism,
        release.DESCENT_MECHANISM,
        *(item.value for item in private_histogram.HistogramNoise),
    ]
    assert all(is_mechanism(name) for name in names)
