"""Fields of a question: what is typed stays, what is wrong gets a sentence, and no answer to another one stands."""

from __future__ import annotations

import io
from dataclasses import fields
from typing import get_args, get_type_hints

import numpy as np
import pandas as pd
import pytest
from streamlit.delta_generator import DeltaGenerator

from dpcore.common.privacy import Disclosure
from dpcore.learning import LearningParameters
from dpcore.mean import MeanParameters
from dpcore.report import charts, content, plotly_figures
from dpcore.total.parameters import TotalParameters
from pages.shared.base import catalogue, keys
from pages.shared.fields import field_values
from pages.shared.figures import figures
from tests.pages.driving import (
    begin,
    chart,
    check,
    errors,
    finish,
    go,
    list_figure_keys,
    list_metrics,
    open_app,
    open_tab,
    read_shown_link,
    shown_texts,
)

SHOP = {"link": "1", "data": "shop-events", "epsilon": "1"}


def has_answer(app) -> bool:
    """Whether the page shows an answer: metrics of its card, or a figure."""
    return bool(list_metrics(app)) or bool(list_figure_keys(app))


JOBS = (
    "quantile.search_job",
    "examples_per_user.exact_job",
    "regression.solve",
    "regression.caps",
    "training.runs_job",
)


@pytest.mark.few(4)
@pytest.mark.long_for(
    "User-level DP-SGD", "Classifier", "Recommender", "Linear regression", "Quantile", "Multi-task weights"
)
@pytest.mark.parametrize("title", [spec.title for spec in catalogue.PAGES])
def test_a_page_is_the_same_on_its_second_run_and_no_answer_stands_to_a_bad_epsilon(title):
    lines = {"link": "1", "epsilon": "1", "lines": "users; rows"} if title == "Budget plan" else {}
    app = finish(open_app(title, **lines), *JOBS)  # A plan starts empty.
    before = shown_texts(app), read_shown_link(app), list_figure_keys(app)
    check(app.run())
    assert (shown_texts(app), read_shown_link(app), list_figure_keys(app)) == before
    if title in ("Data", "Paper comparison", "Release sheet"):  # They ask for no ε.
        return
    assert has_answer(app)
    for item in (0.0, -1.0, 1e-7, 5000.0) if title == "Mean" else (0.0, 5000.0):
        check(app.number_input(key=keys.EPSILON).set_value(item).run())
        assert "must lie between 0.000001 and 1,000; got" in errors(app)
        assert not list_metrics(app)
        assert "start_tradeoff" not in list_figure_keys(app)
        assert app.number_input(key=keys.EPSILON).value == item
        assert f"epsilon={item:g}" not in read_shown_link(app)
    if title == "Mean":
        go(app, "Data")  # which does not use it
        assert f"epsilon={item:g}" not in read_shown_link(app)
        app = go(app, title)
        assert app.number_input(key=keys.EPSILON).value == item
    check(app.select_slider(key=keys.EPSILON_SLIDER).set_value(2.0).run())
    # The browser may miss what the first run of a page says, when another begins at once: what every run says must do.
    slider = app.select_slider(key=keys.EPSILON_SLIDER).proto
    assert not slider.set_value
    assert [float(slider.options[int(position)].replace(",", "")) for position in slider.default] == [2.0]
    app = finish(app, *JOBS)
    assert has_answer(app)
    assert "must lie between" not in errors(app)


# Page, tab key and tab, field, whether the page's answer stands on without it.
WHOLE = {
    "Mean's own cap": ("Mean", "", "", "mean.own_bound", True),
    "runs": ("Sum and count", "total.tabs", "Four ways to choose a bound", "total.runs", True),
    "seed": ("Sum and count", "total.tabs", "Four ways to choose a bound", "total.seed", True),
    "VC dimension": ("Bias curves over τ₀", "", "", "learning.vc_dimension", False),
    "learning's own cap": ("Bias curves over τ₀", "", "", "learning.own_bound", True),
    "samples": ("Bias curves over τ₀", "learning.tabs", "Figure 3", "learning.draws", True),
    "users": ("Multi-task weights", "", "", "multitask.num_users", False),
    "own sampling": ("Multi-task weights", "", "", "multitask.max_tasks", True),
    "rows": ("Linear regression", "", "", "regression.num_rows", False),
    "steps": ("Classifier", "", "", "training.steps", False),
}


@pytest.mark.few(2)
@pytest.mark.long_but("users", "Mean's own cap", "VC dimension")
@pytest.mark.parametrize("name", WHOLE)
def test_what_is_no_whole_number_in_range_stays_and_gets_a_sentence(name):
    title, tabs, tab, key, stands = WHOLE[name]
    source = {"source": "skewed"} if title == "Multi-task weights" else {}
    app = begin(title, **SHOP, **source)
    if tabs:
        app.session_state[tabs] = tab
    app = finish(app, *JOBS)
    value_before = app.number_input(key=key).value
    for entered, text in ((1.5, "got 1.5"), (1e13, "got 10000000000000"), (-2.0, "got -2")):
        check(app.number_input(key=key).set_value(entered).run())
        assert text in errors(app)
        assert "must be a whole number between" in errors(app)
        assert app.number_input(key=key).value == entered  # it is there to be mended
        assert has_answer(app) is stands
    check(app.number_input(key=key).set_value(value_before).run())
    app = finish(app, *JOBS)
    assert not app.error
    assert has_answer(app)


def test_what_stands_in_for_a_bad_field_is_said_beside_it_and_on_top():
    app = open_app("Sum and count", **SHOP)
    open_tab(app, "total", "Four ways to choose a bound")
    check(app.number_input(key="total.runs").set_value(None).run())
    assert "The number of runs is empty. Enter a number. Until then 1,000 is used" in errors(app)
    assert sum("number of runs is empty" in caption.value for caption in app.caption) == 1
    assert app.session_state[keys.PAGE_PARAMETERS].runs == 1000
    check(app.number_input(key="total.runs").set_value(300.0).run())
    assert not errors(app)
    assert app.session_state[keys.PAGE_PARAMETERS].runs == 300


def test_empty_and_refused_fields_are_named_at_once():
    parameters, problems = field_values.build_parameters(
        MeanParameters,
        {"epsilon": None, "lower": 0.0, "upper": None, "own_bound": 1.5},
        {"epsilon": "ε", "upper": "Highest value U"},
    )
    assert parameters is None
    sentences = [problem.sentence for problem in problems]
    assert sentences[:2] == ["ε is empty. Enter a number.", "Highest value U is empty. Enter a number."]
    assert len(sentences) == 3
    assert sentences[2].startswith(
        "Your own bound must be a whole number between 1 and 1,000,000,000,000; got 1.5"
    )


@pytest.mark.parametrize(
    "question",
    [q for q in catalogue.PAGES if q.parameters_type is not None],
    ids=lambda question: question.name,
)
def test_no_sentence_names_a_field_as_python_does(question):
    # Each number far out of range, those that may stay empty among them.
    hints = get_type_hints(question.parameters_type)
    numbers = [n for n in question.fields if {int, float} & {hints[n], *get_args(hints[n])}]
    usual = {name: question.get_initial_value(name) for name in question.fields} | {"epsilon": 1.0}
    labels = {name: field.name for name, field in question.fields.items() if field.is_required}
    for name in numbers:
        for value in (-1.5e300, 1.5e300):
            values = usual | {name: value}
            _, problems = field_values.build_parameters(
                question.parameters_type, values, labels, subjects_by_field=question.subjects_by_field
            )
            for problem in problems:
                begins, must, _ = problem.sentence.partition(" must ")
                # What a page leaves out is no matter of names; G is its letter.
                if not must or begins == "G":
                    continue
                assert "_" not in begins.replace("D_X", "").replace("D_U", ""), problem.sentence
                is_python = begins.lower() in question.fields
                assert not is_python or begins == question.field(begins.lower()).subject, problem.sentence


def test_an_empty_end_of_a_range_says_nothing_of_the_other():
    # Were the default 0 put in its place, L = 0 would seem to lie above U = −5.
    _, problems = field_values.build_parameters(
        MeanParameters, {"epsilon": 1.0, "lower": None, "upper": -5.0}, {"lower": "L"}
    )
    assert [problem.sentence for problem in problems] == ["L is empty. Enter a number."]


@pytest.mark.parametrize("kind", [MeanParameters, TotalParameters, LearningParameters])
def test_what_is_made_of_floats_is_what_is_made_of_whole_numbers(kind):
    usual = kind(0.5)
    values = {field.name: getattr(usual, field.name) for field in fields(usual)}
    floats = {name: float(value) if type(value) is int else value for name, value in values.items()}
    parameters, problems = field_values.build_parameters(kind, floats, {})
    assert problems == []
    assert parameters == usual
    assert {name: type(getattr(parameters, name)) for name in values} == {
        name: type(v) for name, v in values.items()
    }


def test_a_figure_s_file_says_what_was_asked_and_in_which_units():
    axes = (
        plotly_figures.build_linear_axis("Bound, rows per user", (0, 1)),
        plotly_figures.build_linear_axis("Error, €", (0, 1)),
    )
    fig = charts.Sketch(*axes).to_figure()
    notes = [
        *content.list_public_inputs({"epsilon": "0.7", "table": "26x1\n31x1000"}),
        *figures.list_axis_notes(fig),
    ]
    columns = {"bound": np.array([1, 2]), "name": np.array(["a#b", "c, d"]), "x": np.array([0.1, 1e-300])}
    text = content.write_columns(columns, Disclosure.PRIVATE, notes)
    head = [line for line in text.splitlines() if line.startswith("#")]
    assert head[0] == "# these numbers: computed from private data (do not publish)"
    assert head[1].startswith("# Sweet Spot ")
    assert head[2:] == [
        "# public input: epsilon = 0.7",
        "# public input: table = 26x1 31x1000",
        "# axis x: Bound, rows per user",
        "# axis y: Error, €",
    ]
    read = pd.read_csv(io.StringIO(text), comment="#")
    assert read["bound"].tolist() == [1, 2]
    assert read["name"].tolist() == ["a#b", "c, d"]
    assert read["x"].tolist() == [0.1, 1e-300]
    assert set(read["label"]) == {Disclosure.PRIVATE.label}


def test_figures_of_a_page_carry_its_question(monkeypatch):
    files = {}
    real = content.write_columns

    def kept(data, sensitivity, notes=()):
        text = real(data, sensitivity, notes)
        files[next(iter(data))] = text
        return text

    monkeypatch.setattr(content, "write_columns", kept)
    # A file is made when its button is pressed, which AppTest cannot do.
    monkeypatch.setattr(DeltaGenerator, "download_button", lambda self, label, data, **options: data())
    app = open_app("Mean", **SHOP, own_bound="9", upper="100")
    assert chart(app, "mean_error")
    assert files
    for text in files.values():
        assert "# public input: epsilon = 1\n" in text
        assert "# public input: upper = 100\n" in text
        assert "# public input: own_bound = 9\n" in text
        assert "# axis x: " in text
        assert "rows per user" in text
        assert len(pd.read_csv(io.StringIO(text), comment="#")) > 1
