"""Bounds selected without the private answer: no user decides how it ends, and one user moves no chance by more."""

import contextlib
import io
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpcore as ss
from dpcore import private_selection, questions
from dpcore.cli import command
from dpcore.common import mechanisms
from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Disclosure, ReleaseFacts
from dpcore.contributions import ContributionHistogram
from dpcore.data.task_facets import PairSizes
from dpcore.dataset import Dataset

pytestmark = pytest.mark.usefixtures("few_subsamples")

HEADER = "who,amount,place\n"
BASE = HEADER + "".join(f"u{at % 5},{at % 7 + 1}.5,g{at % 2}\n" for at in range(20))
USERS = {
    "a negative amount": "z,-500,g0\n",
    "one more group": "z,1,g9\n",
    "text": "z,abc,g0\n",
    "a decimal comma": 'z,"1,5",g0\n',
    "a blank": "z,,\n",
    "no id": ",3,g0\n",
    "infinity": "z,inf,g1\n",
    "a sum that overflows": "z,1e308,g1\nz,1e308,g1\n",
    "the header as a row": HEADER,
    "one field too many": "z,1,g0,oops\n",
    "one field too few": "z,1\n",
    "a line too long for a page": f"z,1,{'g' * 140_000}\n",
    "text behind a quotation": 'z,1,"g0" "x"\n',
    "many rows": "z,1,g0\nz,1,g1\nz,1,g2\n" * 30,
}
"""Rows of one more user."""
RANGED = {"value": "amount", "lower": 0, "upper": 10}
KINDS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "mean": ("mean_bound", RANGED, {}),
    "count": ("count_bound", {}, {}),
    "count of filtered rows": ("count_bound", {"filters": "amount > 0.5; place != g1"}, {}),
    "sum": ("sum_bound", {"value": "amount", "highest_total": 100}, {}),
    "smooth quantile": ("quantile_bound", RANGED, {}),
    "quantile": ("quantile_bound", {**RANGED, "weighting": "cap"}, {}),
    "learner": ("learning_bound", {"public_rows": 30}, {}),
    "groups": ("group_bounds", {"group": "place", "num_groups": 2}, {}),
    "sums of groups": (
        "group_bounds",
        {"group": "place", "num_groups": 2, "value": "amount", "statistic": "sum"},
        {"unit": 1, "highest_amount": 50},
    ),
    "choice": ("private_bound", {}, {}),
    "cap": ("private_bound", {"purpose": "cap", "user_share": 0}, {}),
    "replaced": ("private_bound", {"purpose": "cap", "user_share": 0, "neighbours": "replace"}, {}),
    "quantile of rows": ("private_bound", {"purpose": "quantile", "quantile": 0.8}, {}),
}


@pytest.fixture(scope="module", autouse=True)
def stand_ins():
    """The answers on made-up tables, computed once: they know nothing of the files."""
    answers: dict[Any, Any] = {}
    compute = questions.build_reply

    def build_reply(name, data, settings):
        if not isinstance(data, Dataset):
            return compute(name, data, settings)
        # The layout, which programs show, is no part of the digest.
        key = name, data.digest, data.name, data.layout, repr(sorted(settings.items()))
        if key not in answers:
            answers[key] = compute(name, data, settings)
        return answers[key]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(questions, "build_reply", build_reply)
        yield


def written(folder: Path, text: str) -> Path:
    (folder / "events.csv").write_text(text, encoding="utf-8")
    return folder / "events.csv"


def form(text: str) -> str:
    """The text with its numbers out, and with the words that follow a number of one or of several."""
    return re.sub(r"\b(row|group)s\b", r"\1", re.sub(r"[0-9][0-9.,e+-]*", "#", text))


def ask(kind: str, data: Any, **options: Any) -> Any:
    question, settings, public = KINDS[kind]
    return ss.select_privately(
        question, data, {"user": "who", "epsilon": 1, **settings}, 1.0, **public, **options
    )


@pytest.mark.long_but("mean")
@pytest.mark.parametrize("kind", KINDS)
def test_no_user_decides_how_a_selection_ends_or_what_it_says(kind, tmp_path) -> None:
    forms, accounts = set(), set()
    for text in (
        BASE,
        *(BASE + user for user in USERS.values()),
        HEADER,
        *(HEADER + u for u in USERS.values()),
    ):
        account: list[ReleaseFacts] = []
        drawn = ask(kind, written(tmp_path, text), charge=account.append)
        program = "" if drawn.answer.code is None else drawn.code("python")
        # A decimal comma may change the mark by which the program reads the column (docs/privacy.md).
        program = program.replace('"who", "amount"', "")
        forms.add((form(str(drawn)), form(drawn.to_json()), form(re.sub(r"numbers\(.*", "", program))))
        accounts.add(tuple(account))
    assert len(forms) == 1
    assert len(accounts) == 1


@pytest.mark.long
@pytest.mark.parametrize("kind", ["sum", "sums of groups", "groups", "mean"])
def test_the_command_ends_alike_whatever_a_user_writes(kind, tmp_path) -> None:
    question, settings, public = KINDS[kind]
    options = {"user": "who", "epsilon": 1, "draw": 1, **settings, **public}
    words = [w for key, value in options.items() for w in (f"--{key.replace('_', '-')}", str(value))]
    ends = set()
    for text in (BASE, *(BASE + user for user in USERS.values()), HEADER, HEADER + USERS["text"]):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = command.main([questions.name_command(question), str(written(tmp_path, text)), *words])
        ends.add((code, form(out.getvalue()), err.getvalue()))
    assert len(ends) == 1
    assert next(iter(ends))[0] == 0
    assert next(iter(ends))[2] == ""


@pytest.mark.long
def test_tables_in_memory_are_read_by_the_same_rules() -> None:
    base = pd.DataFrame({"who": ["a", "b", "a"], "amount": [1.0, 2.0, 3.0], "place": ["x", "x", "y"]})
    hostile: tuple[dict[str, Any], ...] = (
        {"who": "z", "amount": "abc", "place": "q"},
        {"who": None, "amount": 1.0, "place": "x"},
        {"who": 7, "amount": -5.0, "place": None},
        {"who": "z", "amount": float("nan"), "place": "x"},
    )
    tables = [base, base.iloc[:0], *(pd.concat([base, pd.DataFrame([row])]) for row in hostile)]
    for text in ("mean", "sum", "groups", "sums of groups"):
        assert len({form(str(ask(text, table))) for table in tables}) == 1, text
    assert (
        len(
            {
                form(str(ss.select_privately("count_bound", counts, {"epsilon": 1})))
                for counts in ([], [3, -1])
            }
        )
        == 1
    )


@pytest.mark.long
def test_a_draw_takes_the_data_of_an_answer_and_nothing_that_it_found() -> None:
    base = pd.DataFrame({"who": ["a", "b", "a"], "amount": [1.0, 2.0, 3.0], "place": ["x", "x", "y"]})
    user = pd.DataFrame({"who": ["z", "z"], "amount": [-500.0, 1.0], "place": ["x", "y"]})
    both = pd.concat([base, user])
    for text in ("sum", "mean", "quantile", "groups"):
        question, settings, public = KINDS[text]
        drawn = {
            form(str(getattr(ss, question)(table, user="who", epsilon=1, **settings).draw(1.0, **public)))
            for table in (base, both)
        }
        assert drawn == {form(str(ask(text, both)))}, text
    # A pair does not go by the objective, which one user may leave without a large group.
    large = {"objective": "large_groups", "floor": 3}
    answer = ss.group_bounds(both, user="who", epsilon=1, group="place", num_groups=2, **large)
    assert "group" in str(answer.draw(1.0))
    signed = ss.group_bounds(
        both, user="who", epsilon=1, group="place", value="amount", num_groups=2, statistic="signed_sum"
    )
    with pytest.raises(InvalidInput, match="sums of amounts of at least 0"):
        signed.draw()


def test_a_distribution_of_pairs_is_selected_from_and_has_no_sums() -> None:
    """A thousand users in three groups each: at this ε all three are selected."""
    histogram = ContributionHistogram([3], [1_000])
    sizes = PairSizes([3], [1], [3_000], [1_000] * 3, [1_000] * 3, "place")
    data = Dataset("pairs", "pairs", Disclosure.PRIVATE, histogram, pair_sizes=sizes)
    settings = {"epsilon": 1, "num_groups": 3}
    assert ss.select_privately("group_bounds", data, settings, 100.0).bound.max_groups == 3
    with pytest.raises(InvalidInput, match="no sums"):
        ss.select_privately("group_bounds", data, {**settings, "statistic": "sum"}, unit=1, highest_amount=9)


def test_a_dict_of_columns_is_no_dict_of_counts() -> None:
    columns = {"who": ["a", "b"], "amount": [1.0, 2.0]}
    with pytest.raises(InvalidInput, match="has no columns"):
        ss.select_privately("count_bound", columns, {"user": "who", "epsilon": 1})


def test_what_the_person_entered_is_still_refused_and_broken_files_say_nothing_of_cells(tmp_path) -> None:
    path = written(tmp_path, BASE)
    settings = {"user": "who", "epsilon": 1}
    for question, more, text in (
        ("sum_bound", {"value": "amuont", "highest_total": 9}, "no column"),
        ("sum_bound", {"value": "amount"}, "highest_total=…"),
        ("sum_bound", {**RANGED, "highest_total": 9}, "Leave out lower and upper"),
        ("mean_bound", {**RANGED, "epsilon": -1}, "psilon must"),
        ("group_bounds", {"group": "place"}, "num_groups=…"),
        ("mean_bound", {**RANGED, "disclosure": "public"}, "needs no draw"),
        ("weights_gain", {}, "selected privately for"),
    ):
        with pytest.raises(InvalidInput, match=text):
            ss.select_privately(question, path, {**settings, **more})
    path = written(tmp_path, BASE + 'z,"s3cr3t,g0\n')
    with pytest.raises(InvalidInput, match="cannot be read as a table") as refused:
        ss.select_privately("count_bound", path, settings)
    assert "s3cr3t" not in str(refused.value)


def chances(draw: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """Return the log chance of every candidate, from what the mechanism is given; epsilon is 1."""
    given: list[tuple[list[int], int]] = []

    class Selected:
        index, epsilon = 0, 1.0

    def select(scores, sensitivity, epsilon, charge=None):
        given.append((list(scores), sensitivity))
        return Selected

    with monkeypatch.context() as patched:
        patched.setattr(mechanisms, "exponential_mechanism", select)
        draw()
    ((scores, sensitivity),) = given
    logits = np.array([float(s) for s in scores]) / (2.0 * sensitivity)
    logits -= logits.max()
    return logits - np.log(np.exp(logits).sum())


@pytest.mark.parametrize("kind", ["mean", "count", "sum", "quantile", "learner", "groups", "sums of groups"])
def test_on_data_that_have_an_answer_the_law_is_that_of_its_draw(kind, tmp_path, monkeypatch) -> None:
    path = written(tmp_path, BASE.replace(",g1", ",g0", 3))
    question, settings, public = KINDS[kind]
    answer = getattr(ss, question)(path, user="who", epsilon=1, **settings)
    straight = chances(lambda: ask(kind, path), monkeypatch)
    assert np.array_equal(straight, chances(lambda: answer.draw(1.0, **public), monkeypatch))


@pytest.mark.long_but("replaced")
@pytest.mark.parametrize("kind", KINDS)
def test_one_user_more_moves_no_chance_by_more_than_epsilon(kind, tmp_path, monkeypatch) -> None:
    """Through the reading: small tables with and without the rows of one user, the empty table among them."""
    if kind == "replaced":
        # z takes the place of u0, who has one row.
        pairs = [(HEADER + "u0,1,g0\n" + message, HEADER + user + message) for user in USERS.values() if user[0] == "z"
                 for message in ("", "a,2,g0\na,3,g1\nb,9,g0\n")]  # fmt: skip
    else:
        pairs = [
            (text, text + user)
            for text in (HEADER, HEADER + "a,2,g0\na,3,g1\nb,9,g0\n")
            for user in USERS.values()
        ]
    law = {
        text: chances(lambda text=text: ask(kind, written(tmp_path, text)), monkeypatch)
        for text in {text for pair in pairs for text in pair}
    }
    moved = [np.abs(law[one] - law[other]).max() for one, other in pairs]
    assert max(moved) <= 1.0 + 1e-6
    assert max(moved) > 0.01  # The user is heard at all.


def test_a_quantile_of_rows_per_user_is_drawn_from_its_reply() -> None:
    # 50 users have up to 3 rows, which misses 40 of 100 by 10; fewer rows miss by 40, more than 8 by 60. These are
    # drawn with probability below e^-1000.
    reply = ss.private_bound(
        [3] * 50 + [9] * 50, epsilon=1, purpose="quantile", quantile=0.4, selection_epsilon=100
    )
    assert 3 <= reply.draw().bound <= 8


def test_counts_are_drawn_from_in_every_form_and_each_entry_is_read_by_itself(monkeypatch) -> None:
    """The law is that of the plain counts, whatever stands among them."""

    def find_law(counts: Any) -> np.ndarray:
        return chances(lambda: ss.select_privately("count_bound", counts, {"epsilon": 1}, 1.0), monkeypatch)

    plain_law = find_law([1, 2, 2])
    # One user decides neither whether there is a draw, nor how the counts of others are read.
    strange_entries = ("x", None, float("nan"), -1, [5], 1j, -(10**400), pd.NA)
    equal_counts: list[Any] = [Counter("abbcc"), {"a": 1, "b": 2, "c": 2}, pd.Series([2, 1, 2]), (2, 2, 1)]
    equal_counts += [[1, 2, strange_entry, 2] for strange_entry in strange_entries]
    equal_counts += [[1, "2", "x", 2], {"a": 1, "b": "x", "c": 2, "d": 2}, np.array([1, 2, "x", 2])]
    for counts in equal_counts:
        assert np.array_equal(find_law(counts), plain_law), counts
    assert not np.array_equal(find_law([1, 2]), plain_law)
    assert np.array_equal(find_law([1, 2, 10**400]), find_law([1, 2, 10**12]))
    assert np.array_equal(find_law([[1, 2], [3, 4]]), find_law([]))
    for wrong in ({1, 2}, b"12", 3, np.ones((2, 2)), None):
        with pytest.raises(InvalidInput, match="Data must be a table"):
            find_law(wrong)


@pytest.mark.few(4)
@pytest.mark.parametrize("conditions", ["amount > 3", "amount < 3", "amount >= 2; place = g0", "place != g0"])
@pytest.mark.parametrize("has_numbers", [False, True])
def test_a_draw_takes_the_rows_that_the_answer_takes(conditions, has_numbers, tmp_path) -> None:
    rows = [
        ("a", "5", "g0"),
        ("a", "x", "g1"),
        ("a", "2", "g0"),
        ("b", "4", "g1"),
        ("b", "", "g0"),
        (None, "1", "g0"),
    ]
    table = pd.DataFrame(rows, columns=["who", "amount", "place"])
    table.to_csv(tmp_path / "t.csv", index=False)
    table["amount"] = pd.to_numeric(table["amount"], errors="coerce") if has_numbers else table["amount"]
    keeps = {
        "amount > 3": lambda amount, _: amount > 3.0,
        "amount < 3": lambda amount, _: amount < 3.0,
        "amount >= 2; place = g0": lambda amount, place: amount >= 2.0 and place == "g0",
        "place != g0": lambda _, place: place != "g0",
    }[conditions]
    kept = [who for who, amount, place in rows if keeps(float(amount) if amount.isdigit() else np.nan, place)]
    sizes = sorted(kept.count(who) for who in {*kept} - {None})
    for data in (table, tmp_path / "t.csv"):
        settings = {"user": "who", "epsilon": 1.0, "filters": conditions}
        _, _, amounts, _ = private_selection._pose_question("count_bound", data, settings, None, {})
        assert np.repeat(amounts.histogram.sizes, amounts.histogram.users).tolist() == sizes
        assert amounts.num_rows_without_user == kept.count(None)
        # The value on the same column: a cell without a number counts as 0, and satisfies no condition.
        settings |= {"value": "amount", "lower": 0.0, "upper": 10.0}
        _, _, amounts, _ = private_selection._pose_question("mean_bound", data, settings, None, {})
        assert np.repeat(amounts.histogram.sizes, amounts.histogram.users).tolist() == sizes
