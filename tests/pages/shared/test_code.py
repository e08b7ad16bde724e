"""Code below the answer cards: every page, every library, the chosen bound, names from the person's file."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from dpcore.answer import Answer
from dpcore.code import LIBRARIES, Code, write
from dpcore.code import forms as code_choices
from dpcore.common.programs import Program
from dpcore.data import samples
from dpcore.dataset import Contribution
from dpcore.quantile import answer as quantile_answer
from dpcore.quantile.parameters import QuantileParameters
from dpcore.total.parameters import Summed
from pages.shared.base import keys
from pages.shared.card import cards
from pages.shared.session import session
from tests.pages import driving
from tests.pages.driving import SHOP_EVENTS, check, finish, go, open_app, shown_texts


@pytest.fixture(autouse=True)
def cards_shown(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keep the card that a page has drawn last, by its key."""
    draw = cards.draw_answer

    def noted(card: Answer, key: str, *further: Any) -> None:
        SHOWN[key] = card
        draw(card, key, *further)

    monkeypatch.setattr(cards, "draw_answer", noted)
    yield
    SHOWN.clear()


SHOWN: dict[str, Answer] = {}


def write_program(card: str, library: Program, which: int = 0) -> str:
    """What the dialog of this card writes for a library, in its first or another form; empty for nothing."""
    return write_code(card, library, which).text


def write_code(card: str, library: Program, which: int = 0) -> Code:
    code = SHOWN[card].code
    return write(code.forms[which][1], library)


def read_number(card: str, label: str) -> float:
    """A number of the card, as it is read."""
    (card_number,) = [number for number in SHOWN[card].numbers if number.label == label]
    return float(re.sub(r"[^\d.]", "", card_number.text))


def open_code(app: AppTest, card: str) -> AppTest:
    return check(app.button(key=card + keys.CODE_BUTTON_SUFFIX).click().run())


def list_programs(app: AppTest) -> list[str]:
    """Programs on the page; the link is code as well."""
    return [str(block.value).strip() for block in app.code if "link=" not in str(block.value)]


def with_events(title: str, **link: str) -> AppTest:
    return open_app(title, **{"link": "1", "data": "shop-events", "epsilon": "1", **link})


def list_literals(text: str) -> set[object]:
    return {node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)}


def has_number(text: str, library: Program, number: float) -> bool:
    """Whether the program contains the number as a literal."""
    if library is not Program.BIGQUERY:
        return number in list_literals(text)
    code = "\n".join(line for line in text.splitlines() if not line.startswith("--"))
    return number in {float(x) for x in re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?:e-?\d+)?", code)}


def test_mean_shows_the_cap_and_the_weights() -> None:
    with_events("Mean", lower="0", upper="100")
    cap, threshold = (
        read_number("mean_card", "Best bound"),
        read_number("mean_card", "Bound of the smooth weights"),
    )
    for library in LIBRARIES:
        text, smooth = write_program("mean_card", library), write_program("mean_card", library, 1)
        assert has_number(text, library, cap)
        assert "amount" in text
        decimals = (
            map(float, re.findall(r"\d+\.\d+", smooth))
            if library is Program.BIGQUERY
            else list_literals(smooth)
        )
        assert any(isinstance(x, float) and x == pytest.approx(threshold, rel=5e-3) for x in decimals)


def test_the_largest_gap_shows_the_cap_of_the_data() -> None:
    app = with_events("Weights vs. caps")
    # As *Mean* proposes of public values.
    assert has_number(write_program("gap_card", Program.PYTHON), Program.PYTHON, 100.0)
    # The page asks for no range itself, and writes no program with one that nobody entered.
    app.session_state["mean.upper"] = None
    check(app.run())
    assert SHOWN["gap_card"].code is None
    assert "needs the range of a value" in shown_texts(app)
    app.session_state["mean.upper"] = 95.0
    check(app.run())
    assert has_number(write_program("gap_card", Program.PYTHON), Program.PYTHON, 95.0)
    for library in LIBRARIES:
        assert has_number(write_program("gap_card", library), library, read_number("gap_card", "Best bound"))


@pytest.mark.parametrize("summed", ["rows", "values"])
def test_sum_and_count_shows_the_bound(summed: str) -> None:
    with_events("Sum and count", summed=summed)
    for library in LIBRARIES:
        text = write_program("total_card", library)
        # To the last digit where values are added up: the card shows the rounded bound, too.
        assert has_number(text, library, read_number("total_card", "Best bound"))
        if summed == "rows" and library is Program.BIGQUERY:
            assert "max_groups_contributed = 1," in text


def test_quantile_writes_the_cap_and_says_where_weights_cannot_be() -> None:
    parameters = QuantileParameters(1.0, low=0.0, high=100.0, program=Program.BEST)
    shop = samples.load("shop-events")
    code = quantile_answer.build_answer(shop, parameters).code
    (_, weights), (name, cap) = code.forms
    for library in LIBRARIES:
        program = write(weights, library)
        if library is not Program.PYTHON:
            assert not program.text
            assert "cannot be expressed" in "\n".join(program.differences)
        assert has_number(write(cap, library).text, library, float(re.sub(r"\D", "", name)))


def test_learning_shows_the_cap() -> None:
    with_events("Bias curves over τ₀")
    for library in LIBRARIES:
        text = write_program("learning_card", library)
        assert has_number(text, library, read_number("learning_card", "Best bound"))
        assert "learner" in text


def test_many_tasks_weighs_in_python_and_bounds_tasks_elsewhere() -> None:
    open_app("Multi-task weights")
    code = SHOWN["many_tasks_card"].code
    most = float(re.sub(r"\D", "", code.forms[1][0]))
    for library in LIBRARIES:
        weights = write_code("many_tasks_card", library)
        if library is Program.PYTHON:
            assert "EXPONENT = " in weights.text
            assert "BUDGET = " in weights.text
        else:
            assert not weights.text
            assert "task weights" in "\n".join(weights.differences)
        assert has_number(write_program("many_tasks_card", library, 1), library, most)


@pytest.mark.long
def test_the_dialog_writes_the_program_for_the_library_that_was_chosen() -> None:
    app = with_events("Mean", lower="0", upper="100")
    assert list_programs(app) == []
    assert "max_partitions_contributed" not in shown_texts(app)
    # One library for all pages: the panel of each begins with that of the program whose error was shown last.
    for library in (Program.TUMULT, Program.OPENDP):
        app = go(app, "Mean")
        app = open_code(check(app.selectbox(key="mean.program").set_value(library).run()), "mean_card")
        # The table of names stands in it: Streamlit refuses a dialog that is opened in another one.
        assert "max_partitions_contributed" in shown_texts(app)
        assert list_programs(app) == [write_program("mean_card", library).strip()]
        app = open_code(go(app, "Bias curves over τ₀"), "learning_card")
        assert list_programs(app) == [write_program("learning_card", library).strip()]


def panel() -> None:
    """The panel by itself, as a dialog draws it."""
    from dpcore.code import Quantity, ReleaseSpec
    from dpcore.code.forms import OfferedPrograms
    from dpcore.common.privacy import Disclosure, Neighbours
    from pages.shared.card.code_panel import draw_code

    common = {
        "disclosure": Disclosure.PUBLIC,
        "lower": 0.0,
        "upper": 1.0,
        "neighbours": Neighbours.REPLACE_VALUES,
    }
    cap = ReleaseSpec(Quantity.MEAN, 1.0, max_rows=3, **common)
    weights = ReleaseSpec(Quantity.MEAN, 1.0, threshold=2.5, **common)
    draw_code(OfferedPrograms((("Cap", cap), ("Weights", weights))), "card")


def test_the_panel_changes_library_and_form_and_has_the_table_of_names() -> None:
    app = AppTest.from_function(panel).run()
    assert not app.exception
    assert "are placeholders" in shown_texts(app)
    first = app.code[0].value
    app.segmented_control(key=f"{keys.CODE_LIBRARY}_card").set_value("PYTHON").run()
    assert app.session_state[keys.CODE_LIBRARY] == "PYTHON"
    second_value = app.code[0].value
    assert second_value != first
    assert has_number(second_value, Program.PYTHON, 3)
    app.segmented_control(key=keys.CODE_FORM_PREFIX + "card").set_value(1).run()
    assert has_number(app.code[0].value, Program.PYTHON, 2.5)
    assert app.get_by_key("card_code_file")
    assert "max_partitions_contributed" in shown_texts(app)


def panel_of_a_quantile() -> None:
    """The panel of a quantile with weights, which OpenDP lacks, and with a bound on rows, which it has."""
    from dpcore.code import Quantity, ReleaseSpec
    from dpcore.code.forms import OfferedPrograms
    from dpcore.common.privacy import Disclosure
    from pages.shared.card.code_panel import draw_code

    common = {"disclosure": Disclosure.PUBLIC, "lower": 0.0, "upper": 1.0, "quantiles": (0.5,)}
    weights = ReleaseSpec(Quantity.QUANTILE, 1.0, threshold=2.5, **common)
    cap = ReleaseSpec(Quantity.QUANTILE, 1.0, max_rows=3, **common)
    draw_code(OfferedPrograms((("Weights", weights), ("Bound, 3 rows", cap))), "card")


def test_the_panel_shows_the_nearest_form_that_a_library_has_and_says_so() -> None:
    app = AppTest.from_function(panel_of_a_quantile).run()
    app.segmented_control(key=f"{keys.CODE_LIBRARY}_card").set_value("OPENDP").run()
    assert not app.exception
    assert "smooth weights cannot be expressed" in shown_texts(app)
    assert "The program below is for **Bound, 3 rows**, which OpenDP has." in shown_texts(app)
    assert has_number(app.code[0].value, Program.OPENDP, 3)
    app.segmented_control(key=f"{keys.CODE_LIBRARY}_card").set_value("PYTHON").run()
    assert "The program below is for" not in shown_texts(app)
    assert has_number(app.code[0].value, Program.PYTHON, 2.5)


def test_private_uploads_say_so_and_use_their_own_names() -> None:
    name = 'who" `is`; drop'
    content = SHOP_EVENTS.replace(b"user_id", b'"who"" `is`; drop"', 1)
    app = open_app("Data")
    driving.upload(app, content, "it's mine.csv")
    _roles(app, name)
    driving.use(app)
    assert driving.data(app).privacy_unit == (name,)
    go(app, "Bias curves over τ₀")
    for library in LIBRARIES:
        text = write_program("learning_card", library)
        assert "COMPUTED FROM PRIVATE DATA (DO NOT PUBLISH)" in text.split("\n\n")[0]
        if library is Program.BIGQUERY:
            assert 'PARTITION BY `who" \\`is\\`; drop`' in text
        else:
            assert "it's mine.csv" in list_literals(text)
            assert any(str(x).replace("``", "`").strip("`") == name for x in list_literals(text))


def _roles(app: AppTest, user: str) -> None:
    """Tell the page whose rows they are, where it does not guess."""
    for box in app.selectbox:
        if str(box.key).startswith("your_data.upload_role_") and "user" in str(box.key):
            box.set_value(user)
    check(app.run())


def test_distinct_tasks_are_not_called_rows_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    data: Any = session.Origin("shop-events").load()
    fields = code_choices.list_data_fields(
        replace(data, contribution=Contribution.DISTINCT_TASKS, values=None)
    )
    assert "distinct task" in fields["row_description"]


SPENT = b"sep=;\nk\xe4ufer;amount\n" + b"".join(b"u%d;1.00%d,5\n" % (i % 60, i % 7) for i in range(300))
"""As Excel in Germany writes it."""


@pytest.mark.long
def test_a_sum_of_a_column_takes_the_file_as_it_is_also_where_totals_are_counted(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No word of another form of the table, in which the program would add up something else; and it runs."""
    app = driving.upload(open_app("Data"), SPENT, "spent.csv")
    _roles(app, "käufer")
    app = check(app.selectbox(key="your_data.upload_contribution").set_value(Contribution.TOTAL).run())
    driving.use(app)
    assert driving.data(app).contribution is Contribution.TOTAL
    app = go(app, "Sum and count")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spent.csv").write_bytes(SPENT)
    per_user = [sum(1000.5 + i % 7 for i in range(u, 300, 60)) for u in range(60)]
    # What users add is their total either way.
    for summed in (Summed.ROWS, Summed.VALUES):
        check(app.segmented_control(key="total.summed").set_value(summed).run())
        for library in LIBRARIES:
            assert "A row is here" not in write_program("total_card", library)
        names: dict[str, Any] = {}
        text = write_program("total_card", Program.PYTHON)
        # Between semicolons the person writes the mark.
        assert text.count('DECIMAL = ""\n') == 1
        exec(compile(text.replace('DECIMAL = ""\n', 'DECIMAL = ","\n'), "program", "exec"), names)
        clamped = sum(min(total, names["HIGH"]) for total in per_user)
        # Laplace noise of scale HIGH / epsilon stays within 20.8 of them with probability 1 - 1e-9.
        assert abs(names["total"] - clamped) <= 20.8 * names["HIGH"] / names["EPSILON"]


@pytest.mark.long_but("Program.PYTHON")
@pytest.mark.parametrize("library", [Program.OPENDP, Program.PYTHON])
def test_the_program_on_the_page_runs_as_it_stands(library: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    app = with_events("Sum and count")
    text, bound = write_program("total_card", library), read_number("total_card", "Best bound")
    assert "# Run it in Sweet Spot's folder, or write the whole path in place of" in text
    monkeypatch.chdir(driving.ROOT)
    names: dict[str, Any] = {}
    exec(compile(text, "program", "exec"), names)
    sizes = driving.data(app).histogram
    # Laplace noise of scale T at epsilon = 1 stays within 20.8 T with probability 1 - 1e-9.
    assert abs(names["count"] - float(sizes.count_kept_rows(bound))) <= 20.8 * bound + 1


@pytest.mark.long
def test_a_range_for_totals_of_both_signs_is_written() -> None:
    losses = b"user_id,amount\n" + b"".join(b"u%d,%d\n" % (i % 50, (i * 7) % 41 - 20) for i in range(400))
    app = driving.open_on_file(losses, "Sum and count")
    check(app.segmented_control(key="total.summed").set_value(Summed.VALUES).run())
    for library in LIBRARIES:
        text = write_program("total_card", library)
        assert "PRIVATE DATA" in text
        assert re.search(r"-\d+\.\d+", text)  # a lower end below 0


def test_regression_weighs_in_plain_python_only() -> None:
    finish(open_app("Linear regression"), "regression.solve", "regression.caps")
    for library in LIBRARIES:
        code = write_code("regression_card", library)
        if library is Program.PYTHON:
            assert "LARGEST_USER_WEIGHT = " in code.text
            assert "regression_matrix.parquet" in code.text
        else:
            assert not code.text
            assert "lain Python" in "\n".join(code.differences)
