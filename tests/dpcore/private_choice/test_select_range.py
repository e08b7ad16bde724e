"""A range selected straight from a file: its law is that of the mechanism, and no user moves it too far."""

from __future__ import annotations

import ast
import functools
import json
import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpcore as ss
from dpcore.cli import command
from dpcore.common import mechanisms
from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import ReleaseFacts
from dpcore.dataset import Dataset, Values
from dpcore.private_choice import private_range
from tests.dpcore.private_choice.test_select_privately import BASE, HEADER, USERS, form, written

SETTINGS: dict[str, Any] = {"user": "who", "value": "amount", "epsilon": 1, "unit": 0.5, "largest": 200}
SETTINGS |= {"selection_epsilon": 1.0, "max_contributions": 3}
KINDS: dict[str, dict[str, Any]] = {
    "both ends": {"centre": 2},
    "both ends, replaced": {"centre": 2, "neighbours": "replace"},
    "upper end": {"lower": 0},
    "no centre": {},
    "users": {"centre": 2, "clamp": "users"},
    "users, replaced": {"centre": 2, "clamp": "users", "neighbours": "replace"},
    "users, no centre": {"clamp": "users"},
}


def find_laws(
    data: Any, monkeypatch: pytest.MonkeyPatch, index: int = 0, **settings: Any
) -> list[np.ndarray]:
    """Return the log chances of each draw if every draw selects the candidate of this index."""
    laws: list[np.ndarray] = []

    def select(scores: list[int], sensitivity: int, epsilon: float) -> Any:
        logits = np.array([float(score) for score in scores]) * epsilon / (2.0 * sensitivity)
        logits -= logits.max()
        laws.append(logits - np.log(np.exp(logits).sum()))
        return type("Selected", (), {"index": index})

    with monkeypatch.context() as patched:
        patched.setattr(mechanisms, "exponential_mechanism", select)
        ss.select_range(data, **SETTINGS, **settings)
    return laws


@pytest.mark.long_but("users, replaced-0")
@pytest.mark.parametrize(
    ("kind", "index"),
    [(kind, index) for kind in KINDS for index in ((0, 40, 300) if "no centre" in kind else (0,))],
)
def test_one_user_moves_no_chance_by_more_than_epsilon(
    kind: str, index: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through the reading: the draws of one range are independent given the centre, so their log ratios add up."""
    rest, largest = "a,2,g0\na,3,g1\nb,9,g0\nc,2.5,g0\n", 0.0
    replaced = KINDS[kind].get("neighbours") == "replace"

    @functools.cache
    def find_laws_of(table: str) -> list[np.ndarray]:
        return find_laws(written(tmp_path, table), monkeypatch, index, **KINDS[kind])

    for text in (HEADER, HEADER + rest):
        for user in USERS.values():
            one, other = (text + "u0,1,g0\n" if replaced else text), text + user
            if replaced and not user.startswith("z"):
                continue
            ratios = [a - b for a, b in zip(find_laws_of(one), find_laws_of(other), strict=True)]
            if "no centre" in kind:
                ratios[0] = ratios[0][index : index + 1]
            largest = max(largest, sum(r.max() for r in ratios), -sum(r.min() for r in ratios))
    assert 0.05 < largest <= 1.0 + 1e-6


@pytest.mark.long_but("users, replaced")
@pytest.mark.parametrize("kind", KINDS)
def test_the_law_is_that_of_the_values_in_the_file(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows without a user are left out, other cells without a number count as 0; a frame is read alike."""
    path = written(tmp_path, BASE + USERS["text"] + USERS["no id"] + USERS["infinity"])
    laws = find_laws(path, monkeypatch, 3, **KINDS[kind])
    rows = pd.read_csv(path).dropna(subset="who")
    numbers = pd.to_numeric(rows["amount"], errors="coerce").replace(np.inf, 0.0).fillna(0.0)
    user_codes, order = pd.factorize(rows["who"])[0], np.argsort(pd.factorize(rows["who"])[0], kind="stable")
    values = Values(user_codes[order], numbers.to_numpy()[order], "amount")
    problem = ss.select_range(path, **SETTINGS, **KINDS[kind]).bound.problem
    anchor = float(problem.centres[3]) if problem.anchor is None else problem.anchor
    scores = private_range.score_ends(problem, values, anchor)
    for law, expected_scores in zip(laws[-len(scores) :], scores, strict=True):
        logits = np.array([float(s) for s in expected_scores]) * problem.epsilon_of_end / 2.0
        logits = (logits - logits.max()) / private_range.RESOLUTION
        np.testing.assert_allclose(law, logits - np.log(np.exp(logits).sum()), atol=1e-9)
    frame_laws = find_laws(rows.assign(amount=numbers), monkeypatch, 3, **KINDS[kind])
    for law, frame_law in zip(laws, frame_laws, strict=True):
        np.testing.assert_allclose(law, frame_law, atol=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["both ends", "users", "no centre"])
def test_no_user_decides_how_a_selection_ends_or_what_it_says(kind: str, tmp_path: Path) -> None:
    texts, accounts = set(), set()
    for text in (HEADER, *(BASE + user for user in USERS.values()), *(HEADER + u for u in USERS.values())):
        account: list[ReleaseFacts] = []
        reply = ss.select_range(written(tmp_path, text), **SETTINGS, **KINDS[kind], charge=account.append)
        ast.parse(reply.code("python"))
        texts.add(tuple(map(form, (str(reply).replace("−", ""), reply.to_json().replace("-", "")))))
        accounts.add(tuple(account))
    assert len(texts) == len(accounts) == 1


@pytest.mark.parametrize("users", [["a", "a", "b"], [None], []])
def test_a_column_of_no_type_is_one_without_numbers(
    users: list[str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether a table has a first number decides the type of its column, and so must not decide about the draw."""
    blank_cells = [None] * len(users)
    texts = pd.DataFrame(
        {"who": pd.Series(users, dtype="str"), "amount": pd.Series(blank_cells, dtype="str")}
    )
    (text_law,) = find_laws(texts, monkeypatch, lower=0)
    for data in (
        pd.DataFrame({"who": users, "amount": blank_cells}, dtype=object),
        pl.DataFrame({"who": users, "amount": blank_cells}),
        pa.table({"who": pa.array(users), "amount": pa.nulls(len(users))}),
    ):
        (law,) = find_laws(data, monkeypatch, lower=0)
        assert np.array_equal(law, text_law)
    (other_law,) = find_laws(pd.DataFrame({"who": ["a"], "amount": [50.0]}), monkeypatch, lower=0)
    assert not np.array_equal(other_law, text_law)


def test_a_drawn_range_pickles_and_has_the_call_that_drew_it(tmp_path: Path) -> None:
    path, settings = written(tmp_path, BASE), {**SETTINGS, "centre": 2, "neighbours": "replace"}
    reply = ss.select_range(path, **settings, missing=None)
    stored = pickle.loads(pickle.dumps(reply))
    assert stored == reply
    assert str(stored) == str(reply)
    written_settings: dict[str, Any] = {}
    names = SimpleNamespace(select_range=lambda data, **arguments: written_settings.update(arguments))
    eval(stored.call_text, {"ss": names, "data": path})
    assert written_settings == settings


def test_a_total_is_divided_and_the_reply_holds_the_range(tmp_path: Path) -> None:
    path = written(tmp_path, BASE)
    reply = ss.select_range(path, **SETTINGS, centre=2, is_total_epsilon=True, clamp="users")
    question = json.loads(reply.to_json())["question"]
    assert question["epsilon"] + question["release_epsilon"] <= 1.0
    assert question["epsilon"] == pytest.approx(0.2, abs=0.03)
    lower, upper = reply.bound.lower, reply.bound.upper
    ((_, choice),) = reply.forms.items()
    assert (choice.lower, choice.upper, choice.clamps_users, choice.threshold) == (lower, upper, True, 3.0)
    assert choice.range_facts == reply.disclosure
    assert "public input" in reply.code("opendp")
    assert str(lower) in reply.code("python").replace("−", "-")


def test_what_is_missing_or_wrong_is_refused_before_anything_is_drawn(tmp_path: Path) -> None:
    path = written(tmp_path, BASE)
    account: list[ReleaseFacts] = []
    for settings, text in (
        ({"value": None}, "user=…, value=…"),
        ({"value": "amuont"}, "no column"),
        ({"epsilon": -1}, "psilon must"),
        ({"unit": 300}, "nit"),
        ({"clamp": "columns"}, "'rows', 'users'"),
        ({"neighbours": "both"}, "eighbours must be one of"),
        ({"clamp": "users", "lower": 0}, "around a centre"),
    ):
        with pytest.raises(InvalidInput, match=text):
            ss.select_range(path, **{**SETTINGS, **settings}, charge=account.append)
    counts = ss.count_bound([1, 2], epsilon=1).data
    assert isinstance(counts, Dataset)
    with pytest.raises(InvalidInput, match="no values"):
        ss.select_range(counts, epsilon=1, unit=1, largest=9, charge=account.append)
    assert not account


def test_the_command_selects_a_range(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = {"user": "who", "value": "amount", "epsilon": 1, "centre": -2, "unit": 0.5, "largest": 200}
    words = [word for key, value in settings.items() for word in (f"--{key}", str(value))]
    path = str(written(tmp_path, BASE))
    assert command.main(["range", path, *words, "--clamp", "users", "--max-contributions", "4"]) == 0
    assert "weights of at most 4 rows" in capsys.readouterr().out
    assert command.main(["range", path, *words[:-4]]) == 2
    assert capsys.readouterr().err.count("got None") == 2
    assert command.main(["range", path, *words, "--longest", "4"]) == 2
    assert "no setting 'longest'" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        command.main(["range", "--help"])
    assert max(map(len, capsys.readouterr().out.splitlines())) < 80
    with pytest.raises(SystemExit):
        command.main(["range", path, *words, "--report", str(tmp_path / "x.html")])
    assert not (tmp_path / "x.html").exists()
