"""Parameters objects as text and back."""

import contextlib
import enum
from dataclasses import dataclass, fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpcore.common.checks import InvalidInput, Problems
from dpcore.common.text_fields import MAX_TEXT, from_fields, read_good_fields, to_fields
from dpcore.mean import MeanParameters, VarianceSource
from dpcore.multitask.parameters import MultitaskParameters
from dpcore.quantile.parameters import BaseKind, QuantileParameters


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Everything:
    """One field of each type that a parameters object may hold."""

    share: float
    count: int
    on: bool
    name: str
    colour: Colour
    maybe_share: float | None = None
    maybe_count: int | None = None
    maybe_on: bool | None = None
    maybe_name: str | None = None
    maybe_colour: Colour | None = None

    def __post_init__(self) -> None:
        problems = Problems()
        problems.finite(share=self.share)
        if self.count == 13:
            problems.add("thirteen is unlucky")
        problems.raise_if_any()


numbers = st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(max_size=MAX_TEXT)
everything = st.builds(
    Everything,
    numbers,
    st.integers().filter(lambda n: n != 13),
    st.booleans(),
    texts,
    st.sampled_from(Colour),
    st.none() | numbers,
    st.none() | st.integers(),
    st.none() | st.booleans(),
    st.none() | texts,
    st.none() | st.sampled_from(Colour),
)


@given(everything)
def test_fields_are_read_back_exactly(parameters):
    fields = to_fields(parameters)
    assert all(isinstance(text, str) for text in fields.values())
    assert from_fields(Everything, fields) == parameters


def test_how_values_are_written():
    fields = to_fields(Everything(0.1, 7, True, "a b", Colour.BLUE, maybe_share=2.0, maybe_on=False))
    assert fields == {
        "share": "0.1",
        "count": "7",
        "on": "yes",
        "name": "a b",
        "colour": "blue",
        "maybe_share": "2",
        "maybe_on": "no",
    }


GOOD = {"share": "1", "count": "2", "on": "yes", "name": "x", "colour": "red"}


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"other": "1"}, "Other is not a parameter of this page."),
        ({"x" * 500: "1"}, "X" + "x" * 39 + " is not a parameter of this page."),
        ({"share": "one"}, "Share cannot be read; got 'one'."),
        ({"share": "1" * (MAX_TEXT + 1)}, f"Share cannot be read; got '{'1' * 40}'."),
        ({"share": "nan"}, "Share must be a finite number; got nan."),
        ({"count": "1.5"}, "Count cannot be read; got '1.5'."),
        ({"count": "1e300"}, "Count cannot be read; got '1e300'."),
        ({"count": "13"}, "Thirteen is unlucky."),
        ({"on": "True"}, "On cannot be read; got 'True'."),
        ({"colour": "RED"}, "Colour cannot be read; got 'RED'."),
        ({"maybe_colour": ""}, "Maybe_colour cannot be read; got ''."),
    ],
)
def test_what_cannot_be_read_gets_its_sentence(changed, sentence):
    with pytest.raises(InvalidInput) as refused:
        from_fields(Everything, {**GOOD, **changed})
    assert [problem.sentence for problem in refused.value.problems] == [sentence]


def test_all_problems_come_at_once():
    with pytest.raises(InvalidInput) as refused:
        from_fields(Everything, {"other": "1", "share": "?", "count": "2", "on": "2"})
    assert [problem.sentence.split()[0] for problem in refused.value.problems] == [
        "Other",
        "Share",
        "On",
        "Name",
        "Colour",
    ]


@given(st.dictionaries(st.sampled_from([*GOOD, "maybe_count"]) | texts, texts, max_size=8))
def test_any_text_gives_an_object_or_sentences(fields):
    with contextlib.suppress(InvalidInput):
        assert isinstance(from_fields(Everything, fields), Everything)


STAND_IN = {"epsilon": 1.0, "lower": -99.0}


def test_good_fields_are_kept_and_bad_ones_named():
    parsed, bad, problems = read_good_fields(
        MeanParameters, {"epsilon": "2", "lower": "-1", "upper": "high", "own_bound": "0", "x": "1"}, STAND_IN
    )
    assert parsed == MeanParameters(2.0, lower=-1.0)
    assert bad == ("upper", "own_bound")
    text = " ".join(problem.sentence for problem in problems)
    for sentence_part in (
        "X is not a parameter",
        "Upper cannot be read",
        "Your own bound must be a whole number",
    ):
        assert sentence_part.lower() in text.lower()


def test_fields_that_only_hold_together_are_kept_together():
    entered_texts = {"variance_source": "entered", "value_variance": "4", "lower": "0", "upper": "10"}
    parsed, bad, _ = read_good_fields(MeanParameters, {"epsilon": "nan", **entered_texts}, STAND_IN)
    assert parsed == MeanParameters(
        1.0, 0.0, 10.0, variance_source=VarianceSource.ENTERED, value_variance=4.0
    )
    assert bad == ("epsilon",)
    # Without the wider range the variance is impossible: it goes, and its source with it.
    parsed, bad, _ = read_good_fields(
        MeanParameters, {"epsilon": "3", **entered_texts, "upper": "x"}, STAND_IN
    )
    assert parsed == MeanParameters(3.0)
    assert bad == ("upper", "variance_source", "value_variance")


def test_a_base_of_three_fields_is_kept():
    texts = {"epsilon": "1", "base": "normal", "center": "5", "spread": "2", "alpha": "7"}
    parsed, bad, _ = read_good_fields(QuantileParameters, texts, STAND_IN)
    assert parsed == QuantileParameters(1.0, base=BaseKind.NORMAL, center=5.0, spread=2.0)
    assert bad == ("alpha",)


def test_missing_fields_have_stand_ins_and_are_named():
    parsed, bad, problems = read_good_fields(MeanParameters, {"upper": "5"}, STAND_IN)
    assert parsed == MeanParameters(1.0, upper=5.0)
    assert bad == ("epsilon",)
    assert [problem.sentence for problem in problems] == ["Epsilon is missing."]


@given(
    st.dictionaries(
        st.sampled_from(
            ["epsilon", "lower", "upper", "variance_source", "value_variance", "own_bound", "counts", "?"]
        ),
        st.sampled_from(
            ["1", "0.5", "-3", "nan", "1e300", "", "worst", "entered", "values", "private", "9" * 300]
        ),
    )
)
def test_good_fields_agree_with_from_fields_and_are_what_was_written(given_texts):
    parsed, bad, problems = read_good_fields(MeanParameters, given_texts, STAND_IN)
    if problems:
        with pytest.raises(InvalidInput) as refused:
            from_fields(MeanParameters, given_texts)
        assert {p.message for p in refused.value.problems} <= {p.message for p in problems}
    else:
        assert parsed == from_fields(MeanParameters, given_texts)
        assert bad == ()
    # Whatever is not named stands as the text has it.
    good_texts = {name: text for name, text in given_texts.items() if name not in bad and name != "?"}
    assert from_fields(MeanParameters, {"epsilon": "1", **good_texts}) == parsed


def test_a_link_full_of_bad_fields_is_done_with_soon():
    # Every triple of 20 bad fields is tried: 1,350 objects, some milliseconds.
    texts = {field.name: "-1" for field in fields(MultitaskParameters)}
    parsed, bad, problems = read_good_fields(MultitaskParameters, texts, STAND_IN)
    # The settings of the generator do not apply, so that nobody looks at them until they do.
    assert parsed.without(*parsed.unused_names) == MultitaskParameters(1.0)
    assert len(bad) == len(texts) - sum(getattr(parsed, name) == -1 for name in parsed.unused_names)
    assert len(problems) >= 10
