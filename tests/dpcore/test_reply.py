"""Replies as values: pickles, comparison, tables over epsilon, and types for editors."""

from __future__ import annotations

import inspect
import pickle
import pydoc
import runpy
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpcore as ss
from dpcore import questions
from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Disclosure, Neighbours, ReleaseFacts
from dpcore.data import samples
from dpcore.reply import Reply
from tests.dpcore.test_inputs_stay import INPUTS, settings_of

pytestmark = pytest.mark.usefixtures("few_subsamples")

ROOT = Path(__file__).resolve().parents[2]
EVENTS = pd.read_csv(samples.FOLDER / "shop_events.csv").assign(
    user_id=lambda table: "person-" + table["user_id"]
)
COLUMNS = {"user": "user_id", "epsilon": 1}
CALLS = {
    "mean_bound": {"value": "amount", "lower": 0, "upper": 100},
    "count_bound": {},
    "sum_bound": {"value": "amount"},
    "group_bounds": {"group": "product"},
    "quantile_bound": {"value": "amount", "lower": 0, "upper": 100},
    "plan_bounds": {"lines": "users; rows"},
    "learning_bound": {},
    "examples_bound": {"delta": 1e-6},
    "weights_gain": {},
    "private_bound": {},
}


@pytest.mark.few(3)
@pytest.mark.long_for("examples_bound", "private_bound")
@pytest.mark.parametrize("name", CALLS)
def test_a_pickle_holds_the_answer_and_no_data_unless_they_are_kept(name: str) -> None:
    reply = getattr(ss, name)(EVENTS, **COLUMNS, **CALLS[name])
    content = pickle.dumps(reply)
    assert b"person-" not in content
    stored = pickle.loads(content)
    assert stored == reply
    assert str(stored) == str(reply)
    assert stored.data is None
    assert stored.data_digest == reply.data_digest != ""
    assert stored.numbers.equals(reply.numbers)
    assert list(stored.figures) == list(reply.figures)
    assert stored.figure().to_json() == reply.figure().to_json()
    if reply.forms:
        assert stored.code() == reply.code()
    with pytest.raises(InvalidInput, match="no data to keep"):
        stored.keep_data()
    # A question without a draw says so, and others that the data are gone.
    has_draw = name in (*questions.SELECTABLE_CALLS, "private_bound")
    message = r"no data\. Ask the question again, .* keep_data\(\)" if has_draw else "selected privately for"
    with pytest.raises(InvalidInput, match=message):
        stored.draw()
    whole = pickle.loads(pickle.dumps(reply.keep_data()))
    assert whole == reply
    assert whole.data == reply.data
    assert whole.script() == reply.script()


@pytest.mark.long_but("variance_bound", "task_weights")
@pytest.mark.parametrize("name", sorted(questions.QUESTIONS.keys() - CALLS))
def test_replies_of_tables_with_labels_and_of_pairs_pickle(name: str) -> None:
    reply = getattr(ss, name)(INPUTS["text columns"][0](), **settings_of(name, INPUTS["text columns"][1]))
    stored = pickle.loads(pickle.dumps(reply))
    assert stored == reply
    assert str(stored) == str(reply)
    assert stored.numbers.equals(reply.numbers)
    assert stored.data is None
    assert [figure.to_json() for figure in stored.figures.values()] == [
        figure.to_json() for figure in reply.figures.values()
    ]


def test_replies_differ_in_data_settings_and_numbers() -> None:
    reply = ss.count_bound(EVENTS, **COLUMNS)
    assert reply == ss.count_bound(EVENTS, **COLUMNS)
    assert hash(reply) == hash(ss.count_bound(EVENTS, **COLUMNS))
    assert reply != ss.count_bound(EVENTS.iloc[1:], **COLUMNS)
    assert reply != ss.count_bound(EVENTS, **COLUMNS, mechanism="gaussian", delta=1e-6)
    assert reply != ss.count_bound(EVENTS, **COLUMNS, disclosure="public")


@pytest.mark.long
@pytest.mark.parametrize("epsilons", [[0.1, 1, 3], (0.1, 1.0, 3.0), np.array([0.1, 1, 3])])
def test_several_epsilons_give_a_table_with_the_reply_of_each(epsilons) -> None:
    settings = {"user": "user_id", "value": "amount", "lower": 0, "upper": 100}
    table = EVENTS.pipe(ss.mean_bound, epsilon=epsilons, **settings)
    assert list(table.index) == list(epsilons)
    for epsilon, row in table.iterrows():
        single = ss.mean_bound(EVENTS, epsilon=epsilon, **settings)
        assert (row["bound"], row["error"], row["reply"]) == (single.bound, single.error, single)
        assert row["verdict"] == single.answer.relative_error.verdict.value


@pytest.mark.parametrize(("epsilon", "sentence"), [([], "empty"), ([1, "x"], "got 'x'"), ([-1], "got -1")])
def test_several_epsilons_are_checked(epsilon, sentence) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        ss.count_bound([1, 2], epsilon=epsilon)


def test_the_types_of_the_calls_are_those_of_the_script() -> None:
    stubs = runpy.run_path(str(ROOT / ".make" / "stubs.py"))
    assert stubs["STUB_PATH"].read_text(encoding="utf-8") == stubs["write_stub"](), "run .make/stubs.py"


@pytest.mark.long
def test_a_checker_reads_the_types_of_the_calls(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import dpcore as ss\n"
        "reply = ss.mean_bound([1], epsilon=1, lower=0, upper=1, clamp='users')\n"
        "reveal_type(reply)\n"
        "reveal_type(reply.headline)\n"
        "reveal_type(ss.count_bound([1], epsilon=[1, 2]))\n"
        "ss.mean_bound([1], epsilon=1, lower=0, upper=1, clamp='people')\n"
        "ss.mean_bound([1], epsilon=1, lower=0)\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--config-file=", str(program)]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    for part in ('"dpcore.reply.Reply"', '"str"', "DataFrame", "No overload variant", "program.py:7"):
        assert part in said
    assert Reply.__module__ == "dpcore.reply"


@pytest.mark.few(4)
@pytest.mark.long_for("examples_bound", "training_bound", "rating_weights", "owners")
@pytest.mark.parametrize("call", questions.QUESTIONS)
def test_every_call_runs_as_its_reply_writes_it(call, tmp_path) -> None:
    path = tmp_path / "rows.csv"
    INPUTS["text columns"][0]().to_csv(path, index=False)
    reply = getattr(ss, call)(str(path), **settings_of(call, INPUTS["text columns"][1]), disclosure="public")
    again = eval(reply.call_text, {"ss": ss, "data": str(path)})
    assert again == reply
    assert again.call == reply.call
    assert again.disclosure is reply.disclosure is Disclosure.PUBLIC
    assert pickle.loads(pickle.dumps(reply)).call_text == reply.call_text


def test_a_call_says_the_label_and_the_column_of_the_user_also_where_they_are_defaults_or_facts() -> None:
    reply = ss.count_bound(EVENTS, user=("user_id",), epsilon=1)
    assert reply.call[1]["disclosure"] == "private"
    facts = ReleaseFacts(0.5, 0.0, Neighbours.REPLACE_VALUES, "Laplace noise")
    reply = ss.count_bound([3, 1, 2], epsilon=np.float64(2.0), disclosure=facts)
    again = eval(reply.call_text, {"ss": ss, "data": [3, 1, 2]})
    assert again == reply
    assert again.disclosure == facts
    assert eval(ss.owners(epsilon=1).call_text, {"ss": ss}) == ss.owners(epsilon=1)


@pytest.mark.parametrize("name", ["seed", "random_state", "rng"])
def test_what_is_drawn_takes_no_seed_and_one_sentence_says_why(name) -> None:
    reply = ss.count_bound(EVENTS, **COLUMNS)
    draws = {
        "draw": lambda **options: reply.draw(0.1, **options),
        "select_privately": lambda **options: ss.select_privately("count_bound", EVENTS, COLUMNS, **options),
        "select_range": lambda **options: ss.select_range(
            EVENTS, user="user_id", value="amount", epsilon=1, unit=1, largest=100, **options
        ),
    }
    for function_name, draw in draws.items():
        with pytest.raises(InvalidInput, match="take the noise off") as refused:
            draw(**{name: 1})
        (problem,) = refused.value.problems
        assert problem.message.startswith(f"{function_name} takes no {name}")
        assert "In tests" in problem.remedy
        with pytest.raises(TypeError, match="'sead'"):
            draw(sead=1)


def test_help_on_the_package_lists_every_call_with_its_first_line() -> None:
    help_text = pydoc.plain(pydoc.render_doc(ss))
    names = [name for name in dir(ss) if not name.startswith("__")]
    assert set(questions.QUESTIONS) < set(names)
    first_lines = {name: (inspect.getdoc(getattr(ss, name)) or "").splitlines()[0] for name in names}
    assert len(set(first_lines.values())) == len(names)
    for name, first_line in first_lines.items():
        assert f"{name}: {first_line}" in help_text


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("call", "settings"),
    [
        ("count_bound", {}),
        ("sum_bound", {"value": "amount"}),
        ("mean_bound", {"value": "amount", "lower": 0, "upper": 100}),
        ("mean_bound", {"value": "amount", "lower": 0, "upper": 100, "clamp": "users"}),
        ("quantile_bound", {"value": "amount", "lower": 0, "upper": 100, "program": "OpenDP"}),
        ("group_bounds", {"group": "product", "program": "PipelineDP"}),
        ("learning_bound", {}),
        ("examples_bound", {}),
    ],
)
def test_the_error_at_an_own_bound_is_a_number_and_that_of_the_best_bound_there(call, settings):
    ask = partial(getattr(ss, call), samples.load("shop-events"), epsilon=1, **settings)
    best = ask()
    assert not [label for label in best.numbers.index if "your own" in label]
    pair = getattr(best.solution, "pair", None)
    best_bound = best.bound if pair is None else (pair.max_groups, pair.max_amount)

    def own_row(bound):
        names = ("own_groups", "own_amount") if isinstance(bound, tuple) else ("own_bound",)
        reply = ask(**dict(zip(names, np.atleast_1d(bound).tolist(), strict=True)))
        row = reply.numbers.iloc[-1]
        assert row.name == f"{reply.numbers.index[1]}, your own bound"
        (fact,) = [text for heading, text in reply.facts.items() if heading.startswith("Your")]
        assert row["text"] in fact or call == "examples_bound"
        return row

    best_row = own_row(best_bound)
    # Of examples the noise is known exactly for the best bound alone; for others it is bounded.
    assert best_row["value"] == pytest.approx(best.error, rel=0.1 if call == "examples_bound" else 1e-6)
    assert best_row["value"] >= best.error * (1 - 1e-9)
    assert (best_row["note"] == "at most") == (call == "examples_bound")
    assert best_row["unit"] == best.numbers["unit"].iloc[1]
    assert own_row((1, 1) if call == "group_bounds" else 1)["value"] > best.error
