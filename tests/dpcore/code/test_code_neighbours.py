"""What one user may not decide of a program for private data, case by case; see `audit` for all neighbouring tables."""

from __future__ import annotations

import contextlib
import io
import math
import re
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dpcore.code import Quantity, ReleaseSpec, write
from dpcore.code.release_spec import DescentRule
from dpcore.code.several import ReleasePlan, ReleaseShare
from dpcore.common.privacy import Disclosure, Neighbours
from dpcore.common.programs import Program
from dpcore.counting import count, open_files
from dpcore.data.column_roles import Roles, TableKind
from dpcore.data.tables import FileKind, FileLayout, TableLayout
from tests.dpcore.code.specs import SPEC_BY_NAME, run_text

LIBRARIES = [Program.PYTHON, Program.OPENDP]
HEADER = "user_id,product,amount\n"
ROWS = "".join(f"u{user},p{group},{10 * user + group}.5\n" for user in range(6) for group in range(2))
EXTREME = (
    'new,mine alone,7\nnew,p1,-7\nnew,p1,seven\nnew,p1,\nnew,p0,NA\nnew,p1,"1,234"\nnew,p1,1e308\nnew,p1,-1e308\n'
    "new,p0,1e999\nnew,p0,inf\nnew,p0,nan\nnew,p2,1e18\nnew,p1\nnew,p1,1,2,3,4\nnew,,3\n"
)
PRIVATE = {
    name: replace(choice, disclosure=Disclosure.PRIVATE)
    for name, choice in SPEC_BY_NAME.items()
    if choice.quantity not in (Quantity.MODEL, Quantity.TASK_WEIGHTS, Quantity.COEFFICIENTS)
}


def program(choice: ReleaseSpec | ReleasePlan, library: Program) -> str:
    """Return the program with the public list of groups written into it."""
    return write(choice, library).text.replace("GROUPS: list[str] = []", 'GROUPS = ["p0", "p1", "p2"]')


def form(printed: str) -> str:
    """Return what was printed with every number replaced by one letter and signs left out."""
    words = re.sub(r"(?<!\w)[-+]?\d+\.?\d*(?:e[-+]?\d+)?", "N", printed)
    return re.sub(r"\W+", " ", words)


def run(text: str) -> tuple[str, str, str]:
    """Return how the program ended, what it wrote to stderr, and the form of what it printed."""
    out, err, end = io.StringIO(), io.StringIO(), "0"
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(record=True) as seen,
    ):
        warnings.simplefilter("default")
        try:
            exec(compile(text, "program", "exec"), {})
        except BaseException as error:
            end = repr(error)
    return end, err.getvalue() + "".join(sorted({str(item.message) for item in seen})), form(out.getvalue())


@pytest.mark.long
def test_a_process_ends_alike_for_an_extreme_user_and_for_nobody(empty_folder: Path) -> None:
    (empty_folder / "program.py").write_text(program(PRIVATE["means per group"], Program.PYTHON))
    ends = []
    for rows in (ROWS, ROWS + EXTREME, ""):
        (empty_folder / "shop_events.csv").write_text(HEADER + rows)
        result = subprocess.run([sys.executable, "program.py"], capture_output=True, text=True, check=False)
        ends.append((result.returncode, result.stderr, form(result.stdout)))
    groups = " p0 N p1 N p2 N "
    assert ends == [(0, "", f" released{groups}noise_standard_error{groups}noise_half_width_95{groups}")] * 3


def results(choice: ReleaseSpec | ReleasePlan, library: Program) -> dict[str, Any]:
    """Return what the names of a program are bound to after it ran."""
    return run_text(program(choice, library))


PYTHON_AND_OPENDP = pytest.mark.parametrize("library", LIBRARIES)


@PYTHON_AND_OPENDP
def test_groups_off_the_list_use_up_no_group_of_a_user(library: Program, empty_folder: Path) -> None:
    """Of 50 users, each is in one listed group and in four others; the bound is one group."""
    rows = [f"u{user},{group},1" for user in range(50) for group in ("p1", *"abcd")]
    (empty_folder / "shop_events.csv").write_text(HEADER + "\n".join(rows))
    choice = replace(PRIVATE["groups"], max_groups=1, epsilon=1000.0)
    names = results(choice, library)
    noisy = names["counts"]["len"].to_list() if library is Program.OPENDP else list(names["noisy"])
    assert noisy == pytest.approx([0, 50, 0], abs=1)
    planned = results(ReleasePlan((ReleaseShare("users", choice, 2**20),), 1000.0), library)["released"][
        "users"
    ]
    assert planned == pytest.approx({"p0": 0, "p1": 50, "p2": 0}, abs=1)


@PYTHON_AND_OPENDP
def test_an_unreadable_amount_counts_as_the_lower_bound_or_as_nothing(
    library: Program, empty_folder: Path
) -> None:
    """One row in two of each user holds no number."""
    cells = ["seven", "", "nan", "inf", "1.2.3"]
    rows = [f"u{user},p1,{cell}" for user in range(500) for cell in (cells[user % 5], '"1,025"')]
    (empty_folder / "shop_events.csv").write_text(HEADER + "\n".join(rows))
    with_marks = TableLayout((FileLayout("shop_events.csv"),), numbers=(("amount", "."),))
    ranged = {"lower": 25.0, "upper": 2_000.0, "epsilon": 1000.0, "layout": with_marks}
    mean = replace(PRIVATE["mean, cap, private counts"], **ranged)
    assert results(mean, library)["mean"] == pytest.approx((25.0 + 1_025.0) / 2.0, abs=5.0)
    total = replace(PRIVATE["sum"], max_total=2_000.0, epsilon=1000.0, layout=with_marks)
    assert results(total, library)["total"] == pytest.approx(500 * 1_025.0, abs=100.0)


@PYTHON_AND_OPENDP
def test_a_huge_amount_moves_a_capped_vector_by_no_more_than_the_bound(
    library: Program, empty_folder: Path
) -> None:
    """A sum with 1e90 in it loses the smaller amounts: the cap must not be computed from their difference."""
    choice = replace(PRIVATE["sums per group, capped, Gaussian"], epsilon=5.0)
    bound = choice.max_norm
    (empty_folder / "shop_events.csv").write_text(HEADER + f"new,p0,{0.5 * bound}\nnew,p1,1e90\n")
    names = results(choice, library)
    pairs = names["pairs"]
    amounts = [float(amount) for amount in pairs["amount"]]
    assert math.hypot(*amounts) == pytest.approx(bound)
    assert math.hypot(*amounts) <= bound


WHOLE = "".join(f"u{user},p{group},{10 * user + group}\n" for user in range(6) for group in range(2))


@pytest.mark.few(3)
@pytest.mark.thinned
@pytest.mark.parametrize("separator", [",", ";"])
@pytest.mark.parametrize("cell", ['"1,234"', '"1,5"', '"1.234,5"'])
@pytest.mark.parametrize("disclosure", list(Disclosure))
def test_the_text_of_a_program_does_not_depend_on_one_user_s_marks(
    disclosure: Disclosure, cell: str, separator: str, empty_folder: Path
) -> None:
    texts = []
    roles = Roles(TableKind.EVENTS, user="user_id", value="amount", task="product")
    for rows in (WHOLE.replace(",", separator), f"{WHOLE}new,p1,".replace(",", separator) + f"{cell}\n"):
        (empty_folder / "shop_events.csv").write_text(HEADER.replace(",", separator) + rows)
        data = count(open_files([empty_folder / "shop_events.csv"]), roles, Disclosure.PRIVATE).dataset
        choice = replace(PRIVATE["sum"], disclosure=disclosure, layout=data.layout)
        plan = ReleasePlan((ReleaseShare("sum", choice, 2**20),), 1.0)
        texts.append([write(item, library).text for item in (choice, plan) for library in LIBRARIES])
    assert (texts[0] == texts[1]) is (disclosure is not Disclosure.PUBLIC)


CELLS = {
    "12": 12.0,
    "1,5": 1.5,
    "1.5": 1.5,
    "1.234,5": 1234.5,
    "1,234.5": 1234.5,
    "1,2,3": 5.0,
    "-0,25": -0.25,
}
"""Cells that leave nothing open, or that hold no number, which counts as the lower bound."""


@pytest.mark.parametrize(
    ("separator", "mark", "open_cells"),
    [
        (",", "", {"1,234": 1234.0, "1.234": 1.234}),
        (";", ".", {"1,234": 1234.0, "1.234": 1.234}),
        (";", ",", {"1,234": 1.234, "1.234": 1234.0}),
    ],
)  # fmt: skip
def test_a_program_reads_each_amount_by_itself(
    separator: str, mark: str, open_cells: dict[str, float], empty_folder: Path
) -> None:
    cells = CELLS | open_cells
    rows = [f'u{index}{separator}p1{separator}"{cell}"' for index, cell in enumerate(cells)]
    (empty_folder / "shop_events.csv").write_text(HEADER.replace(",", separator) + "\n".join(rows))
    layout = TableLayout((FileLayout("shop_events.csv", separator=separator),), (("amount", ","),))
    text = program(replace(PRIVATE["mean, cap, private counts"], layout=layout), Program.PYTHON)
    if mark:
        assert run(text)[0].startswith("SystemExit('Write . or , into DECIMAL first")
        text = text.replace('DECIMAL = ""', f'DECIMAL = "{mark}"')
    names: dict[str, Any] = {}
    exec(compile(text, "program", "exec"), names)
    assert dict(zip(cells, names["events"].sort_index()["amount"], strict=True)) == cells


FILES = {
    "a key that nobody has": (
        FileLayout("events.jsonl", FileKind.JSON),
        '{"user_id": "a", "product": "p1", "amount": 3}\n',
        "",
        '{"user_id": "a"}\n{"other": 1}\n',
    ),
    "blanks between fields": (
        FileLayout("events.dat", separator=" +"),
        "user_id product amount\na p1 3\n",
        "user_id product amount\n",
        "user_id product amount\na p1 3\nb p1\nc p1 2 3 4 5\n",
    ),
    "no header": (
        FileLayout("events.dat", separator="::", names=("user_id", "product", "amount")),
        "a::p1::3\n",
        "",
        "a::p1::3\nb\n",
    ),
}


@PYTHON_AND_OPENDP
@pytest.mark.parametrize("name", FILES)
def test_other_files_end_a_program_no_more_than_csv(name: str, library: Program, empty_folder: Path) -> None:
    layout, *contents = FILES[name]
    choice = replace(
        PRIVATE["means per group"], file=layout.name, layout=TableLayout((layout,), (("amount", ""),))
    )
    ends = []
    for content in contents:
        (empty_folder / layout.name).write_text(content)
        ends.append(run(program(choice, library)))
    assert ends == [("0", "", ends[0][2])] * 3


@PYTHON_AND_OPENDP
def test_rows_without_a_user_that_are_one_user_stop_nothing(library: Program, empty_folder: Path) -> None:
    layout = TableLayout((FileLayout("shop_events.csv"),), missing_is_a_user=True)
    text = program(replace(PRIVATE["means per group"], layout=layout), library)
    ends = []
    for rows in (ROWS, ROWS + EXTREME, ",p1,3\n", ""):
        (empty_folder / "shop_events.csv").write_text(HEADER + rows)
        ends.append(run(text))
    assert ends == [("0", "", ends[0][2])] * 4


@pytest.mark.parametrize("cell", ["seven", "inf", "1e999"])
def test_a_label_that_is_no_number_stops_no_regression(cell: str, empty_folder: Path) -> None:
    choice = replace(SPEC_BY_NAME["coefficients"], disclosure=Disclosure.PRIVATE)
    (empty_folder / "shop_events.csv").write_text(HEADER + f"a,p1,7\nb,p1,{cell}\n")
    pd.DataFrame({"row": [0, 1], "user_code": [0, 1], "x": 1.0}).to_parquet("regression_matrix.parquet")
    assert results(choice, Program.PYTHON)["labels"].tolist() == [7.0, 100.0 if cell == "1e999" else 5.0]


def test_weights_of_other_users_are_refused_whatever_the_labels_are(empty_folder: Path) -> None:
    """As many rows, but one of them is another user's: that user would move the sums by more than the noise covers."""
    text = program(replace(SPEC_BY_NAME["coefficients"], disclosure=Disclosure.PRIVATE), Program.PYTHON)
    pd.DataFrame({"row": range(3), "user_code": [7, 7, 2], "x": 1.0}).to_parquet("regression_matrix.parquet")
    ends = {}
    for users in ("aab", "abb"):
        for cell in ("7", "", "NA", "seven"):
            rows = "".join(f"{user},p1,{cell if index == 2 else 9}\n" for index, user in enumerate(users))
            (empty_folder / "shop_events.csv").write_text(HEADER + rows)
            ends[users, cell] = run(text)
    assert {end for (users, _), end in ends.items() if users == "aab"} == {
        ("0", "", " released x N noise_standard_error null noise_half_width_95 null note no interval ")
    }
    (refusal,) = {end for (users, _), end in ends.items() if users == "abb"}
    assert "belong to other rows or users" in refusal[0]


def test_labels_far_from_zero_need_no_more_noise(empty_folder: Path) -> None:
    """Rounding in sums of labels of 1e15 would be a thousand times the interval: it is not in the sums before noise."""
    choice = replace(
        SPEC_BY_NAME["coefficients"],
        disclosure=Disclosure.PRIVATE,
        lower=1e15,
        upper=1e15 + 1.0,
        epsilon=1e3,
    )
    (empty_folder / "shop_events.csv").write_text(
        HEADER + "".join(f"a,p1,{10**15 + at % 2}\n" for at in range(1000))
    )
    weights = pd.DataFrame({"row": range(1000), "user_code": 0, "x": 0.1})
    weights.to_parquet("regression_matrix.parquet")
    assert results(choice, Program.PYTHON)["exact"] == [pytest.approx(50.0, abs=1e-12)]


def rule_of(bounding_method: str) -> DescentRule:
    """Return a rule for which the number of users is public."""
    return DescentRule(
        bounding_method=bounding_method, clip=1.0, unit_noise=2.0, count_noise_std=1.0, num_users_noise_std=0.0,
        momentum=0.5, travel_limit=1.0, stable_limit=1.0, last_limited_step=3, fade_factor=0.9, growth_threshold=2.0,
        forgetting_threshold=2.0, growth_factor=1.1, max_growth=4.0, first_bound_divisor=2.0,
        clipped_users_over_noise=1.0, bound_rate=1.0, max_log_change=1.0, bound_range=(1.0, 8.0),
    )  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("bounding_method", ["followed", "sums", "cap", "weights"])
def test_a_classifier_by_rule_runs_on_nobody(bounding_method: str, empty_folder: Path) -> None:
    classifier = PRIVATE["classifier"]
    ends = []
    for rows in (ROWS, ROWS + EXTREME, ""):
        (empty_folder / "shop_events.csv").write_text(HEADER + rows)
        training = replace(classifier.training, rule=rule_of(bounding_method))
        ends.append(run(program(replace(classifier, training=training), Program.PYTHON)))
    assert ends == [("0", "", ends[0][2])] * 3


@pytest.mark.long_but("Neighbours.REPLACE_USER-weights", "Neighbours.REPLACE_VALUES-None")
@pytest.mark.parametrize("rule", [None, "weights"])
@pytest.mark.parametrize("neighbours", [Neighbours.REPLACE_VALUES, Neighbours.REPLACE_USER])
def test_no_user_s_cells_change_what_is_public_of_a_classifier(
    neighbours: Neighbours, rule: str | None, empty_folder: Path
) -> None:
    """Everybody's number of rows is public, or that everybody has one: no cell drops a row."""
    classifier = PRIVATE["classifier"]
    training = replace(
        classifier.training, rule=None if rule is None else rule_of(rule), weight_noise_std=0.0
    )
    choice = replace(classifier, training=training, neighbours=neighbours)
    for cells in ("p1,7", "p1,", "p1,NA", "p1,seven", ",7", "p1,7,8,9"):
        (empty_folder / "shop_events.csv").write_text(HEADER + ROWS + f"last,{cells}\n")
        names = results(choice, Program.PYTHON)
        assert len(names["y"]) == 13
        assert names["users"] == names["num_users"] == 7 if rule else names["total"] == 13
