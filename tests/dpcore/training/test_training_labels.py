"""Labels of words: which class is 1 is asked, stands in answer, file and program, and is never guessed."""

import runpy

import numpy as np
import pandas as pd
import pytest

import dpcore as ss
from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Disclosure
from dpcore.counting import read_table
from dpcore.data.design_matrix import Design, Feature, guess_design
from dpcore.training.answer import build_answer
from dpcore.training.answer.solution import scale_rows
from dpcore.training.parameters import TrainingParameters
from dpcore.training.training_data import describe_positive, read_labelled_table

NASTY = 'it\'s a "cat", {{x}} \\\\'
SETTINGS = {
    "user": "who", "label": "label", "features": ["age"], "ranges": {"age": (0, 10)}, "epsilon": 1,
    "runs": 2, "splits": 1, "steps": 3, "pace": "entered",
}  # fmt: skip


def table() -> pd.DataFrame:
    """Three classes, a label that is missing, and blanks around another."""
    rng = np.random.default_rng(5)
    classes = rng.choice([NASTY, "dog", "3"], 80)
    frame = pd.DataFrame({"who": rng.integers(0, 30, 80), "age": rng.integers(0, 11, 80), "label": classes})
    frame.loc[[0, 1], "label"] = ["", f"  {NASTY} "]
    return frame


@pytest.mark.long
def test_one_class_stands_against_the_rest_in_rows_answer_and_program(tmp_path, monkeypatch, capsys):
    frame = table()
    answer = ss.training_bound(frame, **SETTINGS, positive=NASTY)
    labelled = answer.subject.dataset.table
    is_one = frame["label"][1:].str.strip() == NASTY
    assert labelled.labels.tolist() == is_one.tolist()
    assert any("A row counts as 1 where label = it's a" in one for one in answer.answer.assumptions)
    # The program finds the same model as one for 0 and 1, seed by seed, whatever the class is called.
    coded = frame.assign(label=np.where(frame["label"] == "", "", "0"))
    coded.loc[is_one[is_one].index, "label"] = "1"
    coded_answer = ss.training_bound(coded, **SETTINGS)
    assert not any("counts as 1" in one for one in coded_answer.answer.assumptions)
    printed = []
    for at, (of, rows) in enumerate(((answer, frame), (coded_answer, coded))):
        folder = tmp_path / str(at)
        folder.mkdir()
        monkeypatch.chdir(folder)
        rows.to_csv(folder / "data.csv", index=False)
        for form in of.forms:
            program = of.code("python", form).replace("default_rng()", "default_rng(7)")
            (folder / "program.py").write_text(program)
            runpy.run_path("program.py")
            printed.append((form, capsys.readouterr().out))
    num_forms = len(printed) // 2
    assert num_forms
    assert printed[:num_forms] == printed[num_forms:]


def test_no_class_is_guessed_and_one_that_no_row_has_is_an_input_error():
    with pytest.raises(InvalidInput, match=r"label holds words \(lines 3, 4, .* more\): which one is 1\?"):
        ss.training_bound(table(), **SETTINGS)
    with pytest.raises(InvalidInput, match="Every label is not 1: there is nothing to tell apart"):
        ss.training_bound(table(), **SETTINGS, positive="Dog")


def test_numbers_may_be_classes_and_stars_say_where_they_are_cut():
    rows = {"who": [1, 1, 2, 3], "x": [0, 1, 2, 3], "stars": [1, 3, 5, 3]}
    table_read = read_table(pd.DataFrame(rows).to_csv(index=False).encode(), "stars.csv")
    design, ranges = Design("stars", "who", (Feature("x"),)), {"x": (0, 3)}
    threes = read_labelled_table(table_read, design, Disclosure.PRIVATE, ranges, positive=3)
    assert scale_rows(threes, 0.5).signs.tolist() == [-1, 1, -1, 1]
    assert describe_positive(threes, 0.5) == "stars = 3"
    cut = read_labelled_table(table_read, design, Disclosure.PRIVATE, ranges)
    asked = TrainingParameters(1.0, positive_above=4.0, runs=2, splits=1)
    assert "stars has 3 different values: those above 4 count as 1" in build_answer(cut, asked).assumptions[0]


def test_a_column_called_label_is_proposed():
    table_read = read_table(table().to_csv(index=False).encode(), "data.csv")
    assert guess_design(table_read, allows_words=True).label == "label"
    assert guess_design(table_read).label != "label"  # where numbers are predicted
