"""What a call refuses, or leaves out, is said in sentences that name the setting, column or file."""

import numpy as np
import pandas as pd
import pytest

import dpcore as ss
from dpcore.common.checks import InvalidInput
from dpcore.common.noise_error import NoiseKind
from dpcore.contributions import ContributionHistogram
from dpcore.counting.count import to_dataset
from dpcore.data import samples

pytestmark = pytest.mark.usefixtures("few_subsamples")

FEW = pd.DataFrame({"user": list("aabc"), "amount": [1.0, 2.0, 3.0, 4.0], "shop": list("xyxy")})


def list_refusals(name, *data, **settings):
    with pytest.raises(InvalidInput) as refused:
        getattr(ss, name)(*data, **settings)
    return sorted(str(refused.value).splitlines())


def test_all_that_is_wrong_is_said_at_once(tmp_path):
    file = tmp_path / "few.csv"
    FEW.to_csv(file, index=False)
    columns = "; there are user, amount, shop."
    for data in (FEW, file):
        # A missing column, an unknown setting or a missing one hides no other problem.
        wrong = {"user": "nobody", "epsilon": -1, "lower": 3, "upper": 1, "qqqq": 1}
        assert list_refusals("mean_bound", data, **wrong) == [
            "Epsilon must lie between 0.000001 and 1,000; got -1.",
            "Lowest value L must lie below highest value U; got 3 and 1.",
            f"There is no column nobody{columns}",
            "There is no setting 'qqqq' of mean_bound.",
        ]
        assert list_refusals("group_bounds", data, user="nobody", epsilon=0, disclosure="secret") == [
            "Disclosure must be 'private', 'public' or the facts of a DP release; got 'secret'.",
            "Epsilon must lie between 0.000001 and 1,000; got 0.",
            f"There is no column nobody{columns}",
            "This question needs the column of the groups: group=…",
        ]
        labels = {"user": "user", "label": "nothing", "features": ["amount"], "disclosure": "secret"}
        assert list_refusals("regression_weights", data, **labels, epsilon=-1, upper=1) == [
            "Disclosure must be 'private', 'public' or the facts of a DP release; got 'secret'.",
            "Epsilon must lie between 0.000001 and 1,000; got -1.",
            "Lower is missing.",
            f"There is no column nothing{columns}",
        ]


def test_numbers_stand_for_their_text():
    settings = {"user": "user", "value": "amount", "epsilon": 1, "lower": 0, "upper": 5}
    for quantiles in (0.25, np.float64(0.25), [0.25], np.array([0.25]), "0.25"):
        assert ss.quantile_bound(FEW, quantiles=quantiles, **settings).parameters.quantile_levels == (0.25,)
    assert ss.quantile_bound(FEW, quantiles=np.array([0.9, 0.5]), **settings).parameters.quantile_levels == (
        0.5,
        0.9,
    )
    base = {"user": "user", "value": "amount", "epsilon": 1, "base": "histogram"}
    answer = ss.quantile_bound(FEW, **base, edges=[0, 1.5, 5], masses=np.array([2, 1]))
    assert (answer.parameters.edges, answer.parameters.masses) == ("0; 1.5; 5", "2; 1")
    (sentence,) = list_refusals("quantile_bound", FEW, quantiles=True, **settings)
    assert sentence == "Quantiles must be text, such as '0.25, 0.5'; got True."
    (sentence,) = list_refusals("quantile_bound", FEW, weighting="smooth", **settings)
    assert (
        sentence
        == 'The weights can be set only with "plain Python" or "best known mechanism" as the program.'
    )
    (sentence,) = list_refusals("quantile_bound", FEW, quantiles=" ", **settings)
    assert sentence.startswith("Quantiles is empty.")


def test_data_without_what_a_question_needs_get_a_sentence_that_helps():
    table = "Take a table with one row per contribution, and name its column"
    counts = [3, 1, 2]
    for data in (counts, ContributionHistogram.from_counts(counts), to_dataset(FEW, "user")):
        (sentence,) = list_refusals("quantile_bound", data, epsilon=1)
        assert sentence == (f"This question needs the value of each row. {table}: value=…")
        (sentence,) = list_refusals("group_bounds", data, epsilon=1)
        assert sentence == (f"This question needs the group of each row. {table}: group=…")
    (sentence,) = list_refusals("quantile_bound", FEW, user="user", epsilon=1)
    assert sentence == "This question needs the column of the values: value=…"
    for empty in ([], (), np.array([]), pd.Series([], dtype=int)):
        (sentence,) = list_refusals("count_bound", empty, epsilon=1)
        assert sentence == "The list of rows per user is empty. Give one number for each user."
    (sentence,) = list_refusals("count_bound", None, epsilon=1)
    assert sentence.startswith("Data must be a table, the path of a file")


def test_what_is_no_name_table_or_list_gets_a_sentence():
    settings = {"user": "user", "label": "amount", "features": ["shop"], "lower": 0, "upper": 5, "epsilon": 1}
    for wrong, sentence in {
        (
            "levels",
            "x",
        ): "Levels must hold entries by column, such as levels={'column': ['DE', 'FR']}; got x.",
        ("levels", 3): "Levels must hold entries by column, such as levels={'column': ['DE', 'FR']}; got 3.",
        ("intercept", "no"): "Intercept must be True or False; got 'no'.",
        ("label", 3): "Label must be the name of a column; got 3.",
        ("features", 3): "Features must be the name of a column; got 3.",
    }.items():
        assert sentence in list_refusals("regression_weights", FEW, **settings | dict([wrong]))
    numbers = settings | {"features": ["amount"], "label": "shop", "positive": "x"}
    del numbers["lower"], numbers["upper"]
    for ranges in ({"amount": 3}, {"amount": (1, 2, 3)}):
        (refusal,) = list_refusals("training_bound", FEW, **numbers, ranges=ranges)
        assert refusal.startswith(
            "Ranges must hold entries by column, such as ranges={'column': (0, 100)}; got"
        )
    users = {"user": "user", "epsilon": 1}
    (refusal,) = list_refusals("count_bound", pd.DataFrame, **users)
    assert refusal.endswith("got type.")
    (refusal,) = list_refusals("count_bound", FEW, **users, disclosure=np.array([1, 2]))
    assert refusal.startswith("Disclosure must be")
    assert list_refusals("count_bound", FEW.iloc[:0], **users) == [
        "There are no rows. Add one for each contribution."
    ]
    (refusal,) = list_refusals("count_bound", FEW.set_axis([0, 1, 2], axis=1), user="0", epsilon=1)
    assert refusal == "The names of the columns look like data. Name them, such as user and value."
    (refusal,) = list_refusals("count_bound", "a\0b.csv", **users)
    assert refusal.startswith("A path holds a NUL character")


def test_a_pattern_names_its_files(tmp_path):
    for part in range(3):
        FEW.to_csv(tmp_path / f"part{part}.csv", index=False)
    pattern = str(tmp_path / "part*.csv")
    settings = {"user": "user", "epsilon": 1}
    of_paths = ss.count_bound([tmp_path / f"part{part}.csv" for part in range(3)], **settings)
    assert ss.count_bound(pattern, **settings).data.histogram == of_paths.data.histogram
    assert of_paths.data.histogram.num_rows == 12
    (sentence,) = list_refusals("count_bound", str(tmp_path / "nothing*.csv"), **settings)
    assert sentence.startswith("No file is called like ")
    labels = {"user": "user", "label": "amount", "lower": 0, "upper": 5, "epsilon": 1}
    (sentence,) = list_refusals("regression_weights", pattern, **labels)
    assert sentence == "A table with labels is one file; there are 3 here."
    selected = ss.select_privately("count_bound", pattern, {"user": "user", "epsilon": 1}, epsilon=1)
    assert selected.bound >= 0


def test_rows_that_were_left_out_are_told(tmp_path):
    table = FEW.assign(user=["a", None, None, "b"])
    answer = ss.count_bound(table, user="user", epsilon=1)
    note = "2 rows without a user were left out (first: row 2)."
    *lines, label = str(answer).splitlines()
    assert note in lines
    assert label == answer.disclosure.label
    assert f"<p>{note}</p>" in answer._repr_html_()
    with_markup = ss.count_bound(FEW.rename(columns={"shop": "<b>"}), user="user", epsilon=1)
    assert "<b>" not in with_markup._repr_html_().replace("<td><b>", "")
    assert "left out" not in str(
        ss.select_privately("count_bound", table, {"user": "user", "epsilon": 1}, epsilon=1)
    )


def test_counted_data_without_labels_are_refused_by_a_sentence():
    with pytest.raises(InvalidInput, match="training_bound got counts without them"):
        ss.training_bound(samples.load("shop-events"), epsilon=1.0, delta=1e-6)


def test_problems_of_question_and_data_are_told_at_once():
    frame = pd.DataFrame({"user_id": ["a"], "amount": [1.0]})
    with pytest.raises(ValueError) as refused:  # noqa: PT011, it is an InvalidInput, whose sentences follow
        ss.mean_bound(frame, user="userid", value="price", epsilon=1, lowr=0, counts="privat")
    assert isinstance(refused.value, InvalidInput)
    sentences = str(refused.value).splitlines()
    for text in ("'lowr'", "lower is missing", "Upper is missing", "'public', 'private'", "userid", "price"):
        assert any(text.lower() in line.lower() for line in sentences), text
    for wrong, text in (
        (lambda: ss.mean_bound(frame, epsilon=1, lower=0, upper=1), "user="),
        (lambda: ss.quantile_bound([1, 2], epsilon=1, lower=0, upper=1), "value="),
        (lambda: ss.group_bounds([1, 2], epsilon=1), "group="),
        (lambda: ss.count_bound(3, epsilon=1), "got int"),
        (lambda: ss.count_bound({1}, epsilon=1), "or a dict by user.*got set"),
        (lambda: ss.count_bound([10**30, 1], epsilon=1), "entry 1 is 1000000000000000000000000000000\\."),
        (lambda: ss.count_bound([1, 2, None], epsilon=1), "Counts must be numbers; entry 3 is None"),
        (lambda: ss.count_bound({"a": 1, "b": "x"}, epsilon=1), "Counts must be numbers; entry 2 is 'x'"),
        (lambda: ss.count_bound([[1], [2, 3]], epsilon=1), "Counts must be numbers; entry 1 is"),
        (lambda: ss.count_bound([1], epsilon="1"), "must be a number between 0.000001 and 1,000; got '1'"),
        (lambda: ss.count_bound([1], epsilon=1, disclosure="secret"), "secret"),
        (lambda: ss.count_bound([1], epsilon=-1), "Epsilon must"),
        (lambda: ss.count_bound("nowhere.csv", epsilon=1), "nowhere.csv"),
        (lambda: ss.regression_weights([1], epsilon=1, lower=0, upper=1), "must be a table"),
        (lambda: ss.regression_weights(epsilon=1, lower=0, upper=1, source="upload"), "No data were given"),
        (lambda: ss.rating_weights(epsilon=1, source="data"), "No data were given"),
    ):
        with pytest.raises(InvalidInput, match=text):
            wrong()


def test_several_epsilons_get_all_their_sentences(tmp_path):
    with pytest.raises(InvalidInput) as refused:
        ss.count_bound(tmp_path / "none.csv", user="user", epsilon=[1, -1, "x", -1, 0], mechanism="loud")
    assert [problem.message.partition(";")[0] for problem in refused.value.problems[:3]] == [
        "epsilon must lie between 0.000001 and 1,000",
        "epsilon must be a number between 0.000001 and 1,000",
        "epsilon must lie between 0.000001 and 1,000",
    ]
    other_messages = [problem.message for problem in refused.value.problems[3:]]
    assert any("mechanism must be one of" in message for message in other_messages)
    assert any("cannot be opened" in message for message in other_messages)


@pytest.mark.parametrize(
    "settings",
    [
        {"program": NoiseKind.LAPLACE},
        {"epsilon": NoiseKind.LAPLACE},
        {"own_bound": NoiseKind.LAPLACE},
        {"disclosure": NoiseKind.LAPLACE},
        {"user": NoiseKind.LAPLACE},
    ],
)
def test_a_refused_option_is_shown_by_its_value(settings):
    with pytest.raises(InvalidInput) as refused:
        ss.count_bound([1, 2, 3], **({"epsilon": 1.0} | settings))
    assert str(refused.value).endswith("got 'Laplace'.")
