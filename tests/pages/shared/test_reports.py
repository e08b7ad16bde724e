"""Reports and scripts of every page on public data: what they hold is what the page shows."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from dpcore.answer.methods import ChoiceSource
from dpcore.common.privacy import Disclosure
from dpcore.common.version import VERSION
from dpcore.report import plotly_script
from dpcore.report.content import JSON_SCHEMA_NAME
from dpcore.training import experiment
from pages.shared.report import report_content
from tests.cells import leave_repeats
from tests.pages.driving import raw_texts, read_card_texts
from tests.pages.reporting import (
    CASES,
    REPORT_TIME,
    Reader,
    assert_script_has_what_the_page_has,
    card_numbers,
    find_marks,
    find_stem,
    open_case,
    read_answer_texts,
    run_and_read_answer,
    run_script,
)

FILL = experiment.fill_table
AS_A_PERSON = ("mean",)
"""Whose script runs in a Python of its own: alone, with what a fresh one imports."""


UNTRAINED = "factorisation"
"""The case whose script trains, while the page waits for its button."""


@pytest.fixture(scope="module", autouse=True)
def all_runs():
    """As a script makes them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiment, "fill_table", FILL)
        yield


@pytest.mark.few(2)
@pytest.mark.long_for("mean", "training", "learning", "regression", "quantile", "many tasks", "gap")
@pytest.mark.parametrize("name", leave_repeats(CASES, lambda name: CASES[name][0]))
def test_report_json_and_script_say_what_the_page_says_and_the_report_is_whole(
    name, report_contents, tmp_path
):
    title, _ = CASES[name]
    app = open_case(name)
    words = raw_texts(app)
    for code in app.code:
        words = words.replace(code.value, "")
    assert not find_marks(words)
    assert not find_marks(read_card_texts(app))
    content = report_contents[find_stem(title)]()
    # The card's first number has no label where the instruction holds it; everywhere else it has the answer's.
    shown = card_numbers(app, f"{find_stem(title)}_card", content.answer.numbers[0].label)
    assert len(shown) >= 2
    assert shown[0][0] == content.answer.numbers[0].label

    page = Reader(report_content.write_html(content, REPORT_TIME, public_only=False))
    assert_one_file_with_every_figure_and_a_label_beside_every_number(page, content)
    document = json.loads(report_content.write_json(content, REPORT_TIME, public_only=False))
    script = report_content.write_script(content, REPORT_TIME, public_only=False)
    names: dict[str, object] = {}
    printed = run_script(script, tmp_path, name in AS_A_PERSON, names).splitlines()
    if name != UNTRAINED:
        assert_script_has_what_the_page_has(
            app, content, read_answer_texts(names) or run_and_read_answer(content, tmp_path)
        )
    assert document["schema"] == JSON_SCHEMA_NAME
    numbers = {line["name"]: line["value"] for line in document["answers"][0]["numbers"]}
    for label, value in shown:
        assert f"{label}: {value}" in printed
        assert numbers[label] == value
        assert " ".join(f"{label} {value}".split()) in page.text
    # A Python of its own simulates as many copies as a person's, where the tests' pages make few.
    simulated = "DP histogram" if name in AS_A_PERSON else "nothing"
    missing = [
        label
        for label, value in numbers.items()
        if f"{label}: {value}" not in printed and not label.startswith(simulated)
    ]
    assert missing == []
    if name != UNTRAINED:
        # A note may hold a number that stands nowhere else: the cap that an error belongs to, an interval.
        notes = [n.note for n in content.answer.numbers if n.note and not n.label.startswith(simulated)]
        assert [note for note in notes if f"  {note}" not in printed] == []
    figures = [line.removeprefix("Figure: ") for line in printed if line.startswith("Figure: ")]
    assert figures
    assert all((tmp_path / figure).stat().st_size > 1000 for figure in figures)
    assert (tmp_path / "plotly.min.js").is_file()
    assert_sentences_for_a_methods_section(content.methods, document["methods"], page)


def assert_one_file_with_every_figure_and_a_label_beside_every_number(page, content):
    for tag, attributes in page.elements:
        assert tag not in ("link", "iframe", "object", "embed", "img", "base"), tag
        assert not {"src", "href", "srcset", "xlink:href"} & set(attributes), (tag, attributes)
        assert not [a for a in attributes if a.startswith("on")], (tag, attributes)
    assert sum("plotly.js v" in script for _, script in page.scripts) == 1
    specs = {spec["id"]: spec for spec in page.specs()}
    places = [a["id"] for a in page.of_class("plot")]
    assert places == [f"figure-{figure.key}" for figure in content.figures]
    assert set(places) == set(specs)
    for spec in specs.values():
        assert spec["data"]
        assert {trace.get("type", "scatter") for trace in spec["data"]} <= set(plotly_script.TRACE_TYPES)
        # Its own colours: Streamlit's placeholders are near black (#000001 and so on).
        assert "#00000" not in json.dumps(spec["layout"])
        assert spec["layout"]["paper_bgcolor"] == "white"
    numbers, sentences = len(page.of_class("tile")), len(page.of_class("methods"))
    rows = sum(tag == "tr" for tag, _ in page.elements)
    headlines, figures = len(page.of_class("headline")), len(places)
    assert numbers >= 2
    assert len(page.of_class("label")) == numbers + rows + headlines + figures + sentences
    assert "Do not publish" not in page.text


def assert_sentences_for_a_methods_section(methods, document_methods, page):
    if methods is None:
        assert document_methods is None
        assert not page.of_class("methods")
        return
    assert document_methods == {
        "label": methods.shown_disclosure.label,
        "text": methods.text,
        "bibtex": methods.bibtex,
    }
    assert " ".join(methods.text.split()) in page.text
    assert "@misc{sweetspot," in page.text
    assert "ε = 1" in methods.text
    assert f"Sweet Spot {VERSION}" in methods.text
    for wrong in ("[@", "  ", "..", " .", " ,", "None", "nan", "()", "inf"):
        assert wrong not in methods.text, wrong
    assert methods.text.endswith(".")
    assert methods.latex.isascii()
    assert methods.latex.count("$") % 2 == 0
    assert re.findall(r"\\citep(?:\[[^\]]*\])?\{(\w+)\}", methods.latex)
    # Of private data the same question says nothing that these data say.
    hidden = replace(methods, disclosure=Disclosure.PRIVATE)
    if methods.choice_source is ChoiceSource.COMPUTED:
        assert methods.procedure not in hidden._text_with_citations
        assert "not cover that choice" in hidden.text
    assert hidden.shown_disclosure is Disclosure.PUBLIC


def test_public_data_have_one_report():
    app = open_case("mean")
    assert [b.key for b in app.get("download_button") if "report" in str(b.key)] == [
        "mean_report_html", "mean_report_json", "mean_report_py",
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["(share/ε)^2", "τ/n_τ", "p_j", "u_i ∝ 1/i", "1/i\\^α", "n\\_τ"])
def test_marks_for_symbols_are_found_outside_of_latex(text):
    assert find_marks(text)
    assert not find_marks(f"${text}$")
