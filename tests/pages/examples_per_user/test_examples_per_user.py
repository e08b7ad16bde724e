"""User-level DP-SGD: what is drawn and said is what `dpcore` finds; edges get sentences; programs run."""

from __future__ import annotations

import ast
import contextlib
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpcore.answer import Answer
from dpcore.code import Code
from dpcore.common.privacy import Disclosure, Neighbours, ReleaseFacts
from dpcore.common.progress import Stage
from dpcore.common.wording import format_count, format_number
from dpcore.contributions import ContributionHistogram
from dpcore.data import samples
from dpcore.dataset import Dataset
from dpcore.examples_per_user.answer import answer as owners_told
from dpcore.examples_per_user.answer import build_answer, solve_quickly
from dpcore.examples_per_user.answer.solution import round_up
from dpcore.examples_per_user.candidates import FORM_BY_TITLE, TrainingConstants, write_program
from dpcore.examples_per_user.noise import bound_multiplier, find_multiplier
from dpcore.examples_per_user.owners import Ownership, generate_ownership, select_most_records
from dpcore.examples_per_user.parameters import ExamplesParameters, Sampling
from pages.shared.session import session
from tests.pages.driving import (
    chart,
    check,
    errors,
    finish,
    go,
    list_metrics,
    open_app,
    open_tab,
    shown_texts,
)

PAGE = "User-level DP-SGD"
SAMPLE = samples.load(session.DEFAULT_SAMPLE)
ASKED = ExamplesParameters(1.0)


@pytest.fixture(scope="module")
def answer() -> Answer:
    return build_answer(SAMPLE, ASKED)


def answer_quickly(data: Dataset, parameters: ExamplesParameters) -> Answer:
    return build_answer(data, parameters, solve_quickly(data.histogram, parameters))


def make_users(sizes: list[int], counts: list[int], disclosure: Disclosure = Disclosure.PUBLIC) -> Dataset:
    return replace(SAMPLE, histogram=ContributionHistogram(sizes, counts), disclosure=disclosure)


@pytest.mark.long
def test_the_page_shows_what_the_core_finds_and_the_exact_noise_when_it_comes(answer: Answer) -> None:
    app = finish(open_app(PAGE), "examples_per_user.exact_job")
    texts = shown_texts(app)
    assert answer.headline in texts
    text = " ".join(str(metric) for metric in list_metrics(app))
    best = answer.solution.best_candidate
    assert format_number(round_up(best.multiplier), 4) in text
    assert "at most" not in text
    names = [entry.get("name") for entry in chart(app, "examples_error")["data"]]
    assert {"Sample examples", "Sample users", "Best bound"} <= set(names)
    for tab, figure in (("Noise", "examples_noise"), ("Examples kept", "examples_kept")):
        app.session_state["examples_per_user.tabs"] = tab
        assert chart(check(app.run()), figure)["data"]
    app.session_state["examples_per_user.tabs"] = "Behind the answer"
    check(app.number_input(key="examples_per_user.own_bound").set_value(5.0).run())
    assert "Your bound, 5 examples" in shown_texts(app)


@pytest.mark.long
def test_bad_input_gets_sentences(answer: Answer) -> None:
    app = open_app(PAGE)
    check(app.number_input(key="examples_per_user.batch_size").set_value(1e7).run())
    assert "is more than all" in errors(app)
    check(app.number_input(key="examples_per_user.batch_size").set_value(0.0).run())
    assert "The expected batch B must lie between" in errors(app)
    check(app.number_input(key="examples_per_user.batch_size").set_value(64.0).run())
    check(app.number_input(key="examples_per_user.steps").set_value(2.5).run())
    assert "must be a whole number" in errors(app)


@pytest.mark.long
def test_the_card_has_the_noise_rounded_up(answer: Answer) -> None:
    best = answer.solution.best_candidate
    shown = next(number for number in answer.numbers if number.key == "noise_multiplier")
    assert best.multiplier <= shown.value <= 1.001 * best.multiplier
    assert best.multiplier == find_multiplier(
        1 if best.sampling is Sampling.USERS else best.bound, best.rate, 1.0, 1e-6, 100
    )
    assert round_up(1.23401) == 1.235
    assert round_up(0.099991) == 0.1
    assert round_up(5.0) == 5.0


def test_until_the_exact_noise_is_there_the_card_says_at_most() -> None:
    noise = solve_quickly(SAMPLE.histogram, ASKED).with_noise(None)
    assert noise.stage is Stage.FIRST
    answer = build_answer(SAMPLE, ASKED, noise)
    (multiplier,) = (number for number in answer.numbers if number.label.startswith("Noise multiplier"))
    assert multiplier.text.startswith("at most ")
    assert "searching the exact one" in multiplier.note


def test_what_must_not_be_believed_is_on_the_card() -> None:
    said = answer_quickly(make_users([1, 50], [900, 4]), replace(ASKED, delta=0.01, batch_size=950.0))
    assert "is too small" in said.detail
    assert "δ is above 1 over the number of users" in said.detail
    assert any("Not covered: shuffled data" in assumption for assumption in said.assumptions)
    assert any("public constants" in assumption for assumption in said.assumptions)
    assert "by this estimate" in said.facts["Both ways"]
    assert (
        "ε does not cover" in answer_quickly(make_users([1, 9], [90, 40], Disclosure.PRIVATE), ASKED).detail
    )
    assert not said.proofs


def test_a_bound_of_ones_own_that_keeps_too_few_is_said() -> None:
    said = answer_quickly(make_users([1, 50], [900, 4]), replace(ASKED, batch_size=950.0, own_bound=1))
    assert "is too small" in said.facts["Your bound, 1 example"]
    best = answer_quickly(SAMPLE, ASKED).solution.best_candidate
    same = answer_quickly(SAMPLE, replace(ASKED, own_bound=best.bound))
    assert same.facts[f"Your bound, {format_count(best.bound, 'example')}"].startswith("that is the best")


def test_the_bands_reach_from_diverse_to_alike() -> None:
    plot = answer_quickly(SAMPLE, ASKED).plots["examples-noise"]()
    low, middle, high = (np.asarray(plot.columns[f"users_noise{end}"]) for end in ("_diverse", "", "_alike"))
    assert (low[1:] < middle[1:]).all()
    assert (middle[1:] < high[1:]).all()
    examples = np.asarray(plot.columns["examples_noise"])
    assert examples == pytest.approx(np.asarray(plot.columns["examples_noise_alike"]))


def test_of_private_data_no_word_of_the_methods_depends_on_them() -> None:
    one, other = (
        answer_quickly(make_users([1, 9], counts, Disclosure.PRIVATE), ASKED).methods
        for counts in ([90, 40], [300, 80])
    )
    assert one.text == other.text
    assert one.latex.isascii()


def test_the_choice_says_that_nothing_is_proved(answer: Answer) -> None:
    content = json.loads(answer.write_json())
    assert content["answer"]["bound"] == answer.numbers[0].value
    assert content["answer"]["noise_multiplier"] >= answer.solution.best_candidate.multiplier
    assert "estimate" in content["answer"]["proof"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("way", "bound", "rate"),
    [(Sampling.USERS, 8, 0.1), (Sampling.EXAMPLES, 3, 0.1), (Sampling.EXAMPLES, 2, 1.0)],
)
def test_the_program_of_values_checks_its_own_epsilon(way: Sampling, bound: int, rate: float) -> None:
    sigma = round_up(bound_multiplier(1 if way is Sampling.USERS else bound, rate, 2.0, 1e-5, 20))
    training = TrainingConstants(way, bound, rate, 40.0, sigma, 2.0, 1e-5, 20)
    name = next(iter(FORM_BY_TITLE))
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        run_program(write_program(name, training, "Label.").text)
    assert "epsilon spent" in printed.getvalue()
    with pytest.raises(AssertionError, match="does not keep"), contextlib.redirect_stdout(io.StringIO()):
        run_program(write_program(name, replace(training, multiplier=0.8 * sigma), "Label.").text)


def run_program(text: str) -> dict[str, Any]:
    space: dict[str, Any] = {"__name__": "__main__"}
    with np.errstate(all="ignore"):
        exec(compile(text, "program.py", "exec"), space)
    return space


@pytest.mark.long
def test_a_page_of_other_data_begins_with_their_own_search() -> None:
    app = finish(
        open_app(PAGE, link="1", data="requests-commits", epsilon="2"), "examples_per_user.exact_job"
    )
    assert not errors(app)
    app = go(app, "Bias curves over τ₀")
    assert go(app, PAGE).title[0].value == PAGE


@pytest.mark.parametrize("sampling", [Sampling.EXAMPLES, Sampling.USERS])
def test_programs_of_libraries_hold_the_constants_and_compute_none_from_the_table(sampling: Sampling) -> None:
    training = TrainingConstants(sampling, 3, 0.125, 40.5, 1.2345, 2.0, 1e-5, 20)
    names = ("SAMPLING_RATE", "DIVISOR", "NOISE_MULTIPLIER", "STEPS")
    for name in FORM_BY_TITLE:
        text = write_program(name, training, "Label of the numbers that it holds: public input.").text
        constants = {
            target.id: ast.literal_eval(node.value)
            for node in ast.parse(text).body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name) and target.id in names
        }
        assert constants == dict(zip(names, (0.125, 40.5, 1.2345, 20), strict=True))
        assert "Label of the numbers" in text


@pytest.mark.parametrize("name", ["Opacus", "JAX Privacy"])
@pytest.mark.parametrize(
    "rows", ["", "z,3,much,1e400\n", "z,11,1,1\n", " ,3,1,1\n", "z,,1,1\n", "z,4,1,1\n" * 9]
)
def test_no_row_decides_how_a_program_of_a_library_ends(
    name: str, rows: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The part that reads, without the library: one user more, or nobody at all, ends nothing and prints nothing."""
    monkeypatch.chdir(tmp_path)
    text = write_program(
        name, TrainingConstants(Sampling.EXAMPLES, 3, 0.125, 40.5, 1.2345, 2.0, 1e-5, 20), "Label."
    ).text
    reading = text[text.index("FILE = ") : text.index("x, y")]
    for table in ("a,0,1,2\na,9,3,4\n" + rows, rows):
        (tmp_path / "examples.csv").write_text("user,label,one,two\n" + table)
        space: dict[str, object] = {"pd": pd, "np": np}
        exec(reading, space)
        features, labels = space["features"], space["labels"]
        assert features.shape == (labels.size, 2)
        assert np.isfinite(features).all()
        assert labels.size <= 5
    assert capsys.readouterr() == ("", "")
    assert "bincount(user).max()\n" not in text  # The largest number of examples of a user is not printed.


@pytest.mark.long
def test_several_owners_are_those_of_the_data_or_invented_and_the_proof_is_shown() -> None:
    app = open_app(PAGE, link="1", data="shop-events", epsilon="1")
    open_tab(app, "examples_per_user", "Several owners")
    app = finish(app, "examples_per_user.owners_job", "examples_per_user.exact_job")
    pairs = samples.load("shop-events").pairs
    kept = select_most_records(Ownership.from_pairs(pairs.task_codes, pairs.user_codes), 5)
    texts = shown_texts(app) + " ".join(str(metric) for metric in list_metrics(app))
    assert format_number(kept.num_kept) in texts
    assert "does not protect that somebody is there" in texts
    check(app.number_input(key="examples_per_user.owners_bound").set_value(0.5).run())
    assert "must be a whole number" in errors(app)


def test_the_noise_of_several_owners_is_larger_where_contents_are_replaced() -> None:
    kept = select_most_records(generate_ownership(400, 90), 3)
    numbers = owners_told.build_numbers(kept, replace(ASKED, batch_size=32.0))
    zeroed, replaced = (number.value for number in numbers[2:])
    assert replaced > zeroed  # type: ignore[operator]
    assert len(owners_told.build_numbers(kept, replace(ASKED, batch_size=1e6))) == 2
    rows = owners_told.tabulate_owners(kept)
    assert sum(rows["Kept"]) == kept.num_kept
    assert numbers[1].value == kept.max_records


def test_on_a_dp_release_its_label_stands_at_everything() -> None:
    copy = ReleaseFacts(0.1, 0.0, Neighbours.ADD_OR_REMOVE_USER, "discrete Laplace noise")
    made = answer_quickly(replace(SAMPLE, disclosure=Disclosure.DP_RELEASE, release=copy), ASKED)
    assert made.disclosure == copy
    assert any("The DP release is taken for the data" in assumption for assumption in made.all_assumptions)
    assert "discrete Laplace noise" in made.methods.text
    assert all("DP release" in form.text for _, form in made.code.forms if isinstance(form, Code))
