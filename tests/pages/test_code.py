"""Code below the answer cards: every page, every library, the chosen bound, names from the person's file."""

from __future__ import annotations

import ast
import re
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from dpcore.code import Library, write
from dpcore.common.privacy import Sensitivity
from dpcore.contributions import ContributionHistogram
from dpcore.data import samples
from dpcore.dataset import Contribution, Dataset
from dpcore.quantile import QuantileProblem
from dpcore.quantile.parameters import QuantileParameters
from dpcore.total.parameters import Summed
from pages.quantile import answer as quantile_answer
from pages.quantile.code import of_quantile
from pages.shared import code_choices, keys, session
from tests.pages import driving
from tests.pages.driving import SHOP_EVENTS, fine, go, open_app, shown_texts

LIBRARIES = [library.name for library in Library]


def open_code(at: AppTest, card: str) -> AppTest:
    at.session_state[card + keys.CARD_CODE] = True
    return fine(at.run())


def choose(at: AppTest, card: str, library: str) -> AppTest:
    return fine(at.segmented_control(key=f"{keys.CODE_LIBRARY}_{card}").set_value(library).run())


def codes(at: AppTest) -> list[str]:
    return [str(block.value) for block in at.main.code]


def with_events(title: str, **link: str) -> AppTest:
    return open_app(title, **{"link": "1", "data": "shop-events", "epsilon": "1", **link})


def literals(text: str) -> set[object]:
    return {node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)}


def has(text: str, library: str, number: float) -> bool:
    """Whether the program contains the number as a literal."""
    if library != Library.BIGQUERY.name:
        return number in literals(text)
    code = "\n".join(line for line in text.splitlines() if not line.startswith("--"))
    return number in {float(x) for x in re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?:e-?\d+)?", code)}


def metric(at: AppTest, label: str) -> float:
    (found,) = [m for m in at.metric if m.label == label]
    return float(re.sub(r"[^\d.]", "", str(found.value)))


def form(at: AppTest, card: str, which: int) -> AppTest:
    """The first or the second form of an answer: both can be written as code."""
    return fine(at.segmented_control(key=keys.CODE_FORM + card).set_value(which).run())


def test_mean_shows_the_cap_and_the_weights() -> None:
    at = open_code(with_events("Mean"), "mean_card")
    cap, threshold = metric(at, "Best cap"), metric(at, "Best smooth threshold")
    for library in LIBRARIES:
        at = choose(at, "mean_card", library)
        (text,) = codes(at)
        assert has(text, library, cap)
        assert "amount" in text
        at = form(at, "mean_card", 1)
        (smooth,) = codes(at)
        assert smooth != text
        decimals = literals(smooth) if library != "BIGQUERY" else map(float, re.findall(r"\d+\.\d+", smooth))
        assert any(isinstance(x, float) and x == pytest.approx(threshold, rel=5e-3) for x in decimals)
        assert at.get_by_key("mean_card_code_file")
        at = form(at, "mean_card", 0)


def test_the_largest_gap_shows_the_cap_of_the_data() -> None:
    at = open_code(with_events("How much can weights gain?"), "gap_card")
    for library in LIBRARIES:
        (text,) = codes(choose(at, "gap_card", library))
        assert has(text, library, metric(at, "Best cap"))


@pytest.mark.parametrize("summed", ["rows", "values"])
def test_sum_and_count_shows_the_bound(summed: str) -> None:
    at = open_code(with_events("Sum and count", summed=summed), "total_card")
    for library in LIBRARIES:
        (text,) = codes(choose(at, "total_card", library))
        # To the last digit where values are added up: the card shows the rounded bound, too.
        assert has(text, library, metric(at, "Best bound T"))
        if summed == "rows" and library == "BIGQUERY":
            assert "max_groups_contributed = 1," in text


def test_quantile_writes_the_cap_and_says_where_weights_cannot_be() -> None:
    parameters = QuantileParameters(1.0, low=0.0, high=100.0)
    shop = samples.load("shop-events")
    assert shop.values is not None
    asked = QuantileProblem(shop.values, 0.5, 1.0, parameters.base_distribution())
    found = of_quantile(quantile_answer.answer(parameters, asked, None), shop)
    assert found is not None
    (_, weights), (name, cap) = found.forms
    for library in Library:
        written = write(weights, library)
        if library is not Library.PYTHON:
            assert not written.text
            assert "cannot be expressed" in "\n".join(written.differences)
        assert has(write(cap, library).text, library.name, float(re.sub(r"\D", "", name)))


def test_learning_shows_the_cap() -> None:
    at = open_code(with_events("Learning under a cap"), "learning_card")
    for library in LIBRARIES:
        (text,) = codes(choose(at, "learning_card", library))
        assert has(text, library, metric(at, "Best cap"))
        assert "learner" in text


def test_many_tasks_weighs_in_python_and_bounds_tasks_elsewhere() -> None:
    at = open_code(open_app("Many tasks"), "tasks_card")
    for library in LIBRARIES:
        at = choose(at, "tasks_card", library)
        if library == Library.PYTHON.name:
            (text,) = codes(at)
            assert "EXPONENT = " in text
            assert "BUDGET = " in text
        else:
            assert codes(at) == []
            assert "task weights" in "\n".join(str(i.value) for i in at.info)
        most = float(re.sub(r"\D", "", at.segmented_control(key=keys.CODE_FORM + "tasks_card").options[1]))
        (text,) = codes(form(at, "tasks_card", 1))
        assert has(text, library, most)
        at = form(at, "tasks_card", 0)


def test_the_library_is_remembered_on_all_pages() -> None:
    at = choose(open_code(with_events("Mean"), "mean_card"), "mean_card", "TUMULT")
    at = open_code(go(at, "Learning under a cap"), "learning_card")
    assert "pyspark" in codes(at)[0]
    at = open_code(go(at, "Mean"), "mean_card")
    assert "tmlt" in codes(at)[0]


def test_code_is_written_only_where_it_is_open() -> None:
    at = with_events("Mean")
    assert codes(at) == []
    assert "The same thing is called" not in shown_texts(at)


def test_the_table_of_names_opens() -> None:
    at = open_code(with_events("Mean"), "mean_card")
    at = fine(at.button(key="mean_card_names").click().run())
    assert "max_partitions_contributed" in shown_texts(at)


def test_placeholders_are_called_so() -> None:
    at = open_code(open_app("Mean"), "mean_card")
    assert "are placeholders" in shown_texts(at)
    assert "are placeholders" not in shown_texts(open_code(with_events("Mean"), "mean_card"))


def test_private_uploads_say_so_and_use_their_own_names() -> None:
    name = 'who" `is`; drop'
    content = SHOP_EVENTS.replace(b"user_id", b'"who"" `is`; drop"', 1)
    at = open_app("Your data")
    driving.upload(at, content, "it's mine.csv")
    _roles(at, name)
    driving.use(at)
    assert driving.data(at).privacy_unit == (name,)
    at = open_code(go(at, "Mean"), "mean_card")
    for library in LIBRARIES:
        (text,) = codes(choose(at, "mean_card", library))
        assert "COMPUTED FROM PRIVATE DATA (DO NOT PUBLISH)" in text.split("\n\n")[0]
        if library == "BIGQUERY":
            assert 'PARTITION BY `who" \\`is\\`; drop`' in text
        else:
            assert "it's mine.csv" in literals(text)
            assert any(str(x).replace("``", "`").strip("`") == name for x in literals(text))


def _roles(at: AppTest, user: str) -> None:
    """Tell the page whose rows they are, where it does not guess."""
    for box in at.selectbox:
        if str(box.key).startswith("your_data.upload_role_") and "user" in str(box.key):
            box.set_value(user)
    fine(at.run())


def test_distinct_tasks_are_not_called_rows_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    data: Any = session.Origin("shop-events").load()
    fields = code_choices.of_data(replace(data, contribution=Contribution.DISTINCT_TASKS, values=None))
    assert "distinct task" in fields["row_is"]


SPENT = b"user,amount\n" + b"".join(b"u%d,%d.5\n" % (i % 60, i % 7) for i in range(300))


def test_a_sum_of_a_column_takes_the_file_as_it_is_also_where_totals_are_counted(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No word of another form of the table, in which the program would add up something else; and it runs."""
    at = driving.upload(open_app("Your data"), SPENT, "spent.csv")
    at = fine(at.selectbox(key="your_data.upload_contribution").set_value(Contribution.TOTAL).run())
    driving.use(at)
    assert driving.data(at).contribution is Contribution.TOTAL
    at = go(at, "Sum and count")
    at = open_code(fine(at.segmented_control(key="total.summed").set_value(Summed.ROWS).run()), "total_card")
    in_text = " ".join(codes(choose(at, "total_card", "PYTHON"))[0].replace("\n#", "").split())
    assert "A row is here one unit of the column" in in_text  # There a row of the table is one indeed.
    at = fine(at.segmented_control(key="total.summed").set_value(Summed.VALUES).run())
    for library in LIBRARIES:
        (text,) = codes(choose(at, "total_card", library))
        assert "A row is here" not in text
    (text,) = codes(choose(at, "total_card", "PYTHON"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spent.csv").write_bytes(SPENT)
    names: dict[str, Any] = {}
    exec(compile(text, "program", "exec"), names)
    per_user = [sum(i % 7 + 0.5 for i in range(u, 300, 60)) for u in range(60)]
    clamped = sum(min(total, names["HIGH"]) for total in per_user)
    # Laplace noise of scale HIGH / epsilon stays within 20.8 of them with probability 1 - 1e-9.
    assert abs(names["total"] - clamped) <= 20.8 * names["HIGH"] / names["EPSILON"]


@pytest.mark.parametrize("library", ["OPENDP", "PYTHON"])
def test_the_program_on_the_page_runs_as_it_stands(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    at = choose(open_code(with_events("Sum and count"), "total_card"), "total_card", library)
    (text,) = codes(at)
    bound = metric(at, "Best bound T")
    monkeypatch.chdir(driving.ROOT)
    names: dict[str, Any] = {}
    exec(compile(text, "program", "exec"), names)
    sizes = driving.data(at).histogram
    # Laplace noise of scale T at epsilon = 1 stays within 20.8 T with probability 1 - 1e-9.
    assert abs(names["count"] - float(sizes.kept_rows(bound))) <= 20.8 * bound + 1


def test_a_range_for_totals_of_both_signs_is_written() -> None:
    losses = b"user_id,amount\n" + b"".join(b"u%d,%d\n" % (i % 50, (i * 7) % 41 - 20) for i in range(400))
    at = open_app("Your data")
    driving.use(driving.upload(at, losses, "losses.csv"))
    at = go(at, "Sum and count")
    at = fine(at.segmented_control(key="total.summed").set_value(Summed.VALUES).run())
    at = open_code(at, "total_card")
    for library in LIBRARIES:
        (text,) = codes(choose(at, "total_card", library))
        assert "PRIVATE DATA" in text
        assert re.search(r"-\d+\.\d+", text)  # a lower end below 0


def test_regression_weighs_in_plain_python_only() -> None:
    at = open_app("Regression")
    for key in ("regression.solve", "regression.caps"):
        for _ in range(3):
            if key in at.session_state and at.session_state[key] is not None:
                at.session_state[key].wait(300.0)
                at = fine(at.run())
    at = open_code(at, "regression_card")
    for library in LIBRARIES:
        at = choose(at, "regression_card", library)
        if library == Library.PYTHON.name:
            (text,) = codes(at)
            assert "LARGEST_USER_WEIGHT = " in text
            assert "regression_matrix.parquet" in text
        else:
            assert codes(at) == []
            assert "lain Python" in "\n".join(str(i.value) for i in at.info)


@pytest.mark.parametrize("rows", [40, 2_000_000, 9_999_999])
def test_the_length_in_code_does_not_tell_how_many_rows_private_data_have(rows: int) -> None:
    held = Dataset("x", "", Sensitivity.PRIVATE, ContributionHistogram([rows], [1]))
    assert code_choices.of_data(held)["max_length"] == code_choices.ROWS
    # It must hold, all the same.
    more = Dataset("x", "", Sensitivity.PRIVATE, ContributionHistogram([5 * code_choices.ROWS], [1]))
    assert code_choices.of_data(more)["max_length"] >= more.histogram.num_rows
