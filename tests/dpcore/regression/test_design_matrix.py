"""A table to features, labels and owners: one-hot groups, missing values, and everything that is wrong at once."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Disclosure
from dpcore.contributions import ContributionHistogram
from dpcore.counting import read_table
from dpcore.data import design_matrix as data_matrix
from dpcore.data.design_matrix import Design, Feature, FeatureKind, guess_design, list_levels, read_levels
from dpcore.dataset import Dataset, LabelledRows
from dpcore.regression import problem as dm

CATEGORIES = FeatureKind.CATEGORIES


def table(text: str):
    return read_table(text.encode(), "t.csv")


def ratings(rows: int = 60, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "user": [f"u{k}" for k in rng.integers(0, 15, rows)],
            "colour": rng.choice(["red", "green", "blue"], rows),
            "size": rng.integers(1, 40, rows),
            "rating": rng.integers(1, 11, rows),
        }
    )


def of_frame(frame: pd.DataFrame):
    return table(frame.to_csv(index=False))


def build(text_or_frame, *features: Feature, intercept: bool = True, **roles: str) -> Dataset:
    read = of_frame(text_or_frame) if isinstance(text_or_frame, pd.DataFrame) else table(text_or_frame)
    roles = {"label": "rating", "user": "user"} | roles
    return dm.build_dataset(read, Design(features=features, intercept=intercept, **roles), Disclosure.PRIVATE)


def refusal(*arguments, **options) -> str:
    with pytest.raises(InvalidInput) as caught:
        build(*arguments, **options)
    return str(caught.value)


def test_features_labels_and_owners_are_those_of_the_table():
    frame = ratings()
    made = build(frame, Feature("colour", CATEGORIES, "green"), Feature("size"))
    rows = made.table
    assert rows.feature_names == ("intercept", "colour: blue", "colour: red", "size")
    # Independent route: pandas' own dummies.
    dummies = pd.get_dummies(frame["colour"]).drop(columns="green").to_numpy(float)
    expected = np.column_stack([np.ones(len(frame)), dummies, frame["size"]])
    np.testing.assert_array_equal(rows.features, expected)
    np.testing.assert_array_equal(rows.labels, frame["rating"])
    same_user = frame["user"].to_numpy()[:, None] == frame["user"].to_numpy()[None, :]
    np.testing.assert_array_equal(rows.user_codes[:, None] == rows.user_codes[None, :], same_user)
    assert made.histogram == ContributionHistogram.from_counts(frame["user"].value_counts())
    assert made.disclosure is Disclosure.PRIVATE
    assert "green" in made.source


@pytest.mark.long
@settings(max_examples=30)
@given(seed=st.integers(0, 30), reference=st.sampled_from(["red", "green", "blue"]), of_size=st.booleans())
def test_the_reference_level_does_not_change_what_an_intercept_model_fits(seed, reference, of_size):
    frame = ratings(seed=seed)
    size = Feature("size", CATEGORIES) if of_size and frame["size"].nunique() < 30 else Feature("size")

    def fitted(level: str) -> np.ndarray:
        rows = build(frame, Feature("colour", CATEGORIES, level), size).table
        return rows.features @ np.linalg.lstsq(rows.features, rows.labels, rcond=None)[0]

    np.testing.assert_allclose(fitted(reference), fitted("red"), atol=1e-7)


def test_without_an_intercept_there_is_no_column_of_ones():
    rows = build(ratings(), Feature("colour", CATEGORIES, "red"), intercept=False).table
    assert rows.feature_names == ("colour: blue", "colour: green")
    assert not np.any(np.all(rows.features == 1.0, axis=0))


def test_the_most_frequent_level_is_the_reference_unless_one_is_chosen():
    frame = ratings(50)
    frame.loc[:29, "colour"] = "blue"
    assert list_levels(of_frame(frame), "colour")[0] == "blue"
    assert "colour: blue" not in build(frame, Feature("colour", CATEGORIES)).table.feature_names


def test_rows_with_missing_values_are_left_out_and_named():
    frame = ratings(40).astype(object)
    frame.loc[3, "rating"] = ""  # file line 5
    frame.loc[5, "size"] = "NA"  # file line 7
    frame.loc[7, "user"] = ""
    frame.loc[9, "colour"] = ""
    frame.loc[9, "size"] = "null"
    made = build(frame, Feature("colour", CATEGORIES), Feature("size"))
    assert made.table.labels.size == 36
    np.testing.assert_array_equal(made.table.labels, frame.drop([3, 5, 7, 9])["rating"].astype(float))
    (note,) = made.notes
    assert note.startswith("4 rows with missing values were left out")
    for text in ("rating: line 5", "size: lines 7, 11", "user: line 9", "colour: line 11"):
        assert text in note


def test_a_level_that_only_incomplete_rows_have_makes_no_feature():
    frame = ratings(40).astype(object)
    frame.loc[3, "colour"], frame.loc[3, "rating"] = "violet", ""
    assert "colour: violet" not in build(frame, Feature("colour", CATEGORIES)).table.feature_names
    assert "no complete row" in refusal(frame, Feature("colour", CATEGORIES, "violet"))


@settings(max_examples=30)
@given(
    st.lists(
        st.sampled_from(["red", "green", "blue", "rare disease X", "Grün", "0"]), min_size=40, max_size=40
    )
)
def test_listed_levels_make_features_that_no_user_s_rows_change(cells):
    """Whatever one user's rows hold, a release has the same features, in the same order, and others' rows stay."""
    frame = ratings(40).astype(object)
    colour = read_levels("colour", "green\n red \n\nviolet")
    assert (colour.reference, colour.further_levels) == ("green", ("red", "violet"))
    design = Design("rating", "user", (colour, Feature("size")))
    table_before = data_matrix.build_dataset(of_frame(frame), design, Disclosure.PRIVATE).table
    assert table_before.feature_names == ("intercept", "colour: red", "colour: violet", "size")
    changed = frame.copy()
    their_values = (frame["user"] == frame["user"].iloc[0]).to_numpy()
    changed.loc[their_values, "colour"] = np.array(cells, dtype=object)[their_values]
    table_after = data_matrix.build_dataset(of_frame(changed), design, Disclosure.PRIVATE).table
    assert table_after.feature_names == table_before.feature_names
    np.testing.assert_array_equal(table_after.features[~their_values], table_before.features[~their_values])
    # A level that is not listed counts as the reference.
    np.testing.assert_array_equal(table_after.features[:, 1], (changed["colour"] == "red").astype(float))
    assert not table_after.features[:, 2].any()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "at least two are needed"),
        ("one", "at least two are needed"),
        ("a\nb\na", "a stands twice"),
        ("\n".join("abcdeabcde"), r"a, b, c \(and 2 more\) stands twice"),
    ],
)
def test_a_list_of_levels_that_does_not_do_gets_a_sentence(text, said):
    with pytest.raises(InvalidInput, match=said):
        read_levels("colour", text)
    with pytest.raises(InvalidInput, match="at most 50"):
        read_levels("colour", "\n".join(map(str, range(51))))


def test_cells_that_are_no_numbers_are_said_with_their_lines_for_all_columns_at_once():
    frame = ratings(30).astype(object)
    frame.loc[[2, 4, 6, 8], "rating"] = "good"
    frame.loc[1, "size"] = "inf"
    frame.loc[5, "size"] = "1e999"
    frame.loc[7, "size"] = "-1e101"
    said = refusal(frame, Feature("size"))
    assert "Lines 4, 6, 8 and 1 more, column rating: text where a number must stand" in said
    assert "Lines 3, 7, 9, column size: no number up to ±1e100" in said
    assert "good" not in said


def test_roles_that_overlap_or_are_not_there_are_said_at_once():
    said = refusal(ratings(), Feature("rating"), Feature("weight"), Feature("user"))
    assert "column rating is chosen for the label and for a feature" in said.lower()
    assert "column user is chosen for the user and for a feature" in said.lower()
    assert 'no column "weight"' in said
    assert "no features" in refusal(ratings(), intercept=False)


def test_levels_too_few_and_too_many_are_said_at_once():
    frame = ratings(300)
    frame["same"] = "x"
    frame["many"] = [f"v{k % 80}" for k in range(300)]
    said = refusal(frame, Feature("same", CATEGORIES), Feature("many", CATEGORIES))
    assert "only one level" in said
    assert "80 levels" in said


def test_dependent_features_are_named():
    frame = ratings()
    frame["double"] = 2 * frame["size"]
    said = refusal(frame, Feature("size"), Feature("double"))
    assert "linearly dependent: double can be written through the others" in said


def test_too_few_rows_and_too_many_features():
    few = ratings(3)
    few["number"] = [1, 4, 9]
    assert "more complete rows than the 3 here" in refusal(few, Feature("size"), Feature("number"))
    frame = ratings(200)
    for k in range(2):
        frame[f"c{k}"] = [f"v{(j * (k + 3)) % 31}" for j in range(200)]
    said = refusal(frame, Feature("c0", CATEGORIES), Feature("c1", CATEGORIES))
    assert "61 features after one-hot encoding; at most 50" in said


def test_when_no_row_is_complete_the_emptiest_column_is_named():
    frame = ratings(20).astype(object)
    frame["size"] = ""
    assert "such as size" in refusal(frame, Feature("size"))


def test_names_stay_different():
    frame = ratings(40)
    frame["intercept"] = np.arange(40) ** 2
    frame["colour: red"] = np.arange(40) ** 3
    rows = build(
        frame, Feature("colour", CATEGORIES, "blue"), Feature("intercept"), Feature("colour: red")
    ).table
    assert len(set(rows.feature_names)) == rows.features.shape[1] == 5


def test_the_guess_takes_user_and_label_by_name_and_leaves_ids_out():
    frame = ratings(100)
    frame["comment"] = [f"text number {k}" for k in range(100)]
    design = guess_design(of_frame(frame))
    assert (design.user, design.label) == ("user", "rating")
    assert [(f.column, f.encoding) for f in design.features] == [
        ("colour", CATEGORIES),
        ("size", FeatureKind.NUMERIC),
    ]
    assert dm.build_dataset(of_frame(frame), design, Disclosure.PUBLIC).table.features.shape == (100, 4)


def test_the_guess_takes_a_column_that_is_called_label():
    named = table("user,Label,x,z\n" + "".join(f"u{k % 9},{k % 2},{k % 7},{k % 5}\n" for k in range(40)))
    design = guess_design(named)
    assert design.label == "Label"  # not the last column of numbers
    assert [f.column for f in design.features] == ["x", "z"]
    words = table("user,label,x\n" + "".join(f"u{k % 9},red,{k}\n" for k in range(40)))
    assert guess_design(words).label == "x"  # no number can be read there


@pytest.mark.parametrize("text", ["a,b\n1,2\n3,4\n", "x\n1\n2\n", "user,when\nann,\nbob,\n"])
def test_the_guess_never_fails_on_a_table(text):
    read = table(text)
    design = guess_design(read)
    assert {design.user, design.label} <= set(read.columns)


def labelled(**changes):
    fine = {
        "features": np.arange(6.0).reshape(3, 2),
        "labels": [1.0, 2.0, 3.0],
        "user_codes": [0, 1, 0],
        "feature_names": ("a", "b"),
    }
    return LabelledRows(**(fine | changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"features": np.ones(3)},
        {"features": np.ones((2, 2))},
        {"user_codes": [0, 1]},
        {"user_codes": [0, -1, 0]},
        {"feature_names": ("a", "a")},
        {"feature_names": ("a",)},
        {"labels": [1.0, np.nan, 2.0]},
    ],
)
def test_a_facet_that_does_not_fit_is_refused(changes):
    with pytest.raises(InvalidInput):
        labelled(**changes)


def test_the_facet_is_read_only_and_part_of_the_digest():
    rows = labelled()
    with pytest.raises(ValueError, match="read-only"):
        rows.labels[0] = 7.0
    of = [
        Dataset("t", "t", Disclosure.PUBLIC, ContributionHistogram([1, 2], [1, 1]), table=facet).digest
        for facet in (None, rows, labelled(labels=[1.0, 2.0, 4.0]), labelled(feature_names=("a", "c")))
    ]
    assert len(set(of)) == 4
    with pytest.raises(InvalidInput, match="rows per user"):
        Dataset("t", "t", Disclosure.PUBLIC, ContributionHistogram([3], [1]), table=rows)
