"""Reports and scripts of uploaded data: private numbers stay out where asked, names stay text, scripts read files."""

from __future__ import annotations

import ast
import html
import json
import re
from dataclasses import replace

import numpy as np
import plotly.graph_objects as go_
import pytest

from dpcore.answer import Answer, Axis, Number, Plot
from dpcore.common.certificate import Certificate
from dpcore.common.mechanisms import LaplaceRelease
from dpcore.common.noise_error import Measure
from dpcore.common.privacy import Disclosure, Ledger, Neighbours, ReleaseFacts
from dpcore.contributions import ContributionHistogram
from dpcore.counting import read_table
from dpcore.data.design_matrix import Design, Feature, FeatureKind
from dpcore.dataset import Dataset
from dpcore.mean import MeanParameters, VarianceSource
from dpcore.regression import problem
from dpcore.regression.draw import ReleasedCoefficients
from dpcore.regression.parameters import DataSource
from dpcore.report import content as dpcore_report_content
from dpcore.report import content as report_document
from dpcore.report import report_html
from dpcore.report.content import Line, Report, remove_private, write_report_json
from dpcore.report.markup import escape_markdown
from dpcore.report.script import ScriptSource
from dpcore.total.parameters import Summed
from pages.mean.question import QUESTION as MEAN
from pages.regression import upload as regression_report
from pages.regression.upload import RegressionData
from pages.shared.base import keys
from pages.shared.report import report_content
from pages.shared.session import session
from pages.training import release as training_report
from tests.pages.driving import check, confirm, data, open_app, open_on_file, shown_texts
from tests.pages.reporting import (
    HOSTILE,
    PRIVATE_FILE,
    REPORT_TIME,
    Reader,
    assert_script_has_what_the_page_has,
    card_numbers,
    find_stem,
    private_page,
    run_and_read_answer,
    run_script,
    wait_for_searches,
)

READ = ("mean.variance_source", VarianceSource.FROM_VALUES)
"""A look at private values, which is a person's own choice."""


def test_private_numbers_are_left_out_and_that_is_said(report_contents):
    app = private_page("Mean")
    content = report_contents["mean"]()
    histogram = data(app).histogram
    numbers = [value for _, value in card_numbers(app, "mean_card")]
    users, rows = f"{histogram.num_users:,}", f"{histogram.num_rows:,}"
    full = Reader(report_content.write_html(content, REPORT_TIME, public_only=False))
    public_text = report_content.write_html(content, REPORT_TIME, public_only=True)
    public = Reader(public_text)
    assert users in full.text
    assert rows in full.text
    assert "Do not publish" in full.text
    assert "What is marked private in this report was computed from private data." in full.text
    assert len(full.of_class("private")) > 20
    assert rows not in public.text
    assert not public.of_class("private")
    assert not public.of_class("plot")
    assert "evil" not in public_text
    assert "plotly.js v" not in public_text, (
        "nothing to draw: the plotting script would be 1.2 MB for nothing"
    )
    for left_out in ("The choice: headline", "Figure: Error against the bound", "Summary of the data"):
        assert left_out in public.text
    for kept_text in ("What is assumed", "How this is computed", "Versions", "Privacy budget ε"):
        assert kept_text in public.text
    assert not remove_private(content).holds_private
    encoded = report_content.write_json(content, REPORT_TIME, public_only=True)
    # Short ones (a cap of 67 rows) also stand in versions; the next test covers them.
    for number in (*(n for n in numbers if len(n) > 3), rows):
        assert number not in encoded
    assert json.loads(encoded)["choice"] is None
    assert json.loads(report_content.write_json(content, REPORT_TIME, public_only=False))["choice"]["answer"]


@pytest.mark.long
def test_a_public_report_of_a_private_choice_holds_what_was_drawn_and_what_it_cost(report_contents):
    app = private_page("Sum and count")
    before = report_contents["total"]()
    assert before.release_lines == ()
    confirm(app, "total_card_draw")
    confirm(app, "total_card_draw")
    content = report_contents["total"]()
    (first, second) = (
        drawn.value
        for selections in app.session_state["private_choice.choices"].values()
        for _, drawn in selections
    )
    texts = [f"{value:,.3f}".rstrip("0").rstrip(".") for value in (first, second)]
    public = report_content.write_html(content, REPORT_TIME, public_only=True)
    document = json.loads(report_content.write_json(content, REPORT_TIME, public_only=True))
    assert [line["number"] for line in document["releases"]] == [first, second, 0.2]
    for line, text in zip(document["releases"][:2], texts, strict=True):
        assert line["value"].startswith(f"{text} row")
        assert "DP release (epsilon = 0.1, add or remove one user" in line["label"]
    assert "ε = 0.2, in 2 releases" in document["releases"][2]["value"]
    assert "ε = 0.2, in 2 releases" in Reader(public).text
    # Otherwise it is that of other data.
    assert not Reader(public).of_class("private")
    assert document["answers"][0]["numbers"] == []
    private = data(app)
    for number in (f"{private.histogram.num_users:,}", f"{private.histogram.num_rows:,}"):
        assert number in Reader(report_content.write_html(content, REPORT_TIME, public_only=False)).text
    assert f"{private.histogram.num_rows:,}" not in public


def test_a_public_report_does_not_depend_on_the_private_data(report_contents):
    # Two data sets of other sizes, sums and names: apart from nothing, the files are the same.
    app = private_page("Mean")
    first = report_contents["mean"]()
    counts = np.array([1, 2, 90, 4000])
    origin = session.Origin(session.UPLOADED)
    dataset = data(app)
    other = type(dataset)("other", "elsewhere", Disclosure.PRIVATE, ContributionHistogram.from_counts(counts))
    app.session_state[keys.LOADED_DATA] = session.LoadedData(other, origin)
    wait_for_searches(app)
    second = report_contents["mean"]()
    assert [line.value_text for line in first.summary_lines] != [
        line.value_text for line in second.summary_lines
    ]
    shift = "Figure: When users differ"
    assert shift in remove_private(first).omitted_sections
    texts = [
        re.sub(
            rf'    "({shift}|Figure: Error over [^"]*)",\n',
            "",
            report_content.write_json(item, REPORT_TIME, public_only=True),
        )
        for item in (first, second)
    ]
    assert texts[0] == texts[1]


@pytest.mark.few(2)
@pytest.mark.parametrize("title", ["Mean", "Sum and count", "Bias curves over τ₀"])
def test_hostile_names_stay_text(title, report_contents):
    private_page(title)
    content = report_contents[find_stem(title)]()
    page = Reader(report_content.write_html(content, REPORT_TIME, public_only=False))
    kinds = {tag for tag, _ in page.elements}
    assert not kinds & {"img", "a", "iframe", "svg"}
    assert all(
        "evil.example" not in script or attributes.get("class") == "figure-data"
        for attributes, script in page.scripts
    )
    assert HOSTILE.replace("/", "") in page.text.replace("\u2060", "")
    document = report_content.write_json(content, REPORT_TIME, public_only=False)
    assert HOSTILE.replace("/", "") in json.loads(document)["data"][0]["value"]


def plot(text, disclosure):
    """A figure with a text wherever one may stand."""
    axis = Axis(text, limits=(1.0, 2.0))
    return Plot("k", text, text, axis, axis, (), disclosure, note=text)


def test_a_hostile_name_in_a_figure_cannot_end_its_script():
    fig = go_.Figure(go_.Scatter(x=[1, 2], y=[1, 2], name=HOSTILE + "<!--<script><b>"))
    text = report_html._embed_figure(
        plot("t", Disclosure.PUBLIC), fig
    )  # The one place where a figure becomes text.
    page = Reader(f"<script class='figure-data'>{text}</script><p id='after'>after</p>")
    assert [tag for tag, _ in page.elements] == ["script", "p"]
    name = page.specs()[0]["data"][0]["name"]
    assert re.findall("<[^>]*>", name) == ["<b>"], "Plotly makes links of <a href>"
    assert "<" not in page.scripts[0][1]
    assert html.unescape(name) == HOSTILE + "<!--<script><b>"


def test_no_text_of_a_report_becomes_markup():
    text = HOSTILE + "<script>alert(1)</script>'\"&{{ 7 * 7 }}"
    for disclosure in Disclosure:
        line = Line(text, text, disclosure, text, text, 1.0, text)
        answer = Answer(
            headline=text,
            detail=text,
            numbers=(Number(text, text, text, text, 1.0),),
            assumptions=(text,),
            disclosure=disclosure,
            facts={text: text},
            proofs=((text, Certificate(2.0, 1.0, text), text),),
            parameters=MeanParameters(1.0),
        )
        full_report = Report(
            page_title=text,
            question=text,
            answers=((text, answer),),
            figures=(plot(text, disclosure),),
            setting_lines=(line,),
            summary_lines=(line,),
            disclosure=disclosure,
            formulae_markdown=text,
            release_lines=(line,),
        )
        for report in (full_report, replace(remove_private(full_report), omitted_sections=(text,))):
            page = Reader(report_html.write_report_html(report, REPORT_TIME))
            assert not {tag for tag, _ in page.elements} & {"img", "a", "iframe", "svg"}
            assert len(page.scripts) == (3 if report.figures else 0)
            assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)
            assert page.text.count("{{ 7 * 7 }}") >= 5
            assert page.text.count("alert(1)") >= 5


@pytest.mark.parametrize("public_only", [True, False])
def test_a_script_holds_no_number_of_private_data(public_only, report_contents):
    app = private_page("Mean", READ)
    script = report_content.write_script(report_contents["mean"](), REPORT_TIME, public_only)
    histogram = data(app).histogram
    own = {float(n) for n in (*histogram.sizes, *histogram.users, histogram.num_rows, histogram.num_users)}
    parameters = [
        node
        for node in ast.walk(ast.parse(script))
        if isinstance(node, ast.Constant) and type(node.value) is float
    ]
    assert not own & {node.value for node in parameters if node.value > 3.0}
    integers = {
        node.value for node in ast.walk(ast.parse(script))
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value > 12
    }  # fmt: skip
    assert integers <= {240}
    assert ("evil.example" in script.split("FILES = ")[1].splitlines()[0]) is not public_only


@pytest.mark.long
def test_the_script_of_private_data_reads_the_persons_own_files(report_contents, tmp_path):
    app = private_page("Bias curves over τ₀")
    shown = card_numbers(app, "learning_card")
    content = report_contents["learning"]()
    histogram = data(app).histogram
    (tmp_path / "histogram-PRIVATE-do-not-publish.csv").write_text(
        report_document.write_columns(
            {"size": histogram.sizes, "users": histogram.users}, Disclosure.PRIVATE
        ),
        encoding="utf-8",
    )
    printed = run_script(
        report_content.write_script(content, REPORT_TIME, True), tmp_path, as_a_person=True
    ).splitlines()
    for label, value in shown:
        assert f"{label}: {value}" in printed


@pytest.mark.long
def test_the_script_of_private_values_reads_the_file_that_was_loaded(report_contents, tmp_path):
    app = private_page("Mean", READ)
    shown = card_numbers(app, "mean_card")
    content = report_contents["mean"]()
    (tmp_path / "your-file.csv").write_bytes(PRIVATE_FILE)
    printed = run_script(report_content.write_script(content, REPORT_TIME, True), tmp_path).splitlines()
    for label, value in shown:
        assert f"{label}: {value}" in printed


def test_both_reports_of_private_data_stand_beside_each_other():
    app = private_page("Mean")
    button_keys = [b.key for b in app.get("download_button") if "report" in str(b.key)]
    assert button_keys == [
        f"mean_report{public}_{ending}" for public in ("", "_public") for ending in ("html", "json", "py")
    ]
    texts = shown_texts(app)
    assert "neither the choice nor its figures" in texts
    assert "PRIVATE-do-not-publish" in texts


@pytest.mark.long_but("Mean")
@pytest.mark.parametrize(
    "title", ["Mean", "Sum and count", "Quantile", "Bias curves over τ₀", "Weights vs. caps"]
)
def test_how_large_a_report_will_be_is_true_of_what_it_holds(title, monkeypatch):
    contents = {}
    maker = report_content.build_writer

    def noted(make, content, public_only):
        contents[make, public_only] = content
        return maker(make, content, public_only)

    monkeypatch.setattr(report_content, "build_writer", noted)
    app = private_page(title)
    without, full = (
        f"Less than {report_content.PUBLIC_KILOBYTES} kB",
        f"About {report_content.REPORT_MEGABYTES} MB",
    )
    assert without in shown_texts(app)
    assert full in shown_texts(app)
    text = report_content.write_html(contents[report_content.write_html, True](), REPORT_TIME, True)
    assert report_content.PUBLIC_KILOBYTES / 2 < len(text.encode()) / 1e3 < report_content.PUBLIC_KILOBYTES
    text = report_content.write_html(contents[report_content.write_html, False](), REPORT_TIME, False)
    assert abs(len(text.encode()) / 1e6 - report_content.REPORT_MEGABYTES) < 0.15


def printed_of(content, folder, file, name):
    """What the script of private data prints, beside the person's own file."""
    (folder / name).write_bytes(file)
    return run_script(
        report_content.write_script(content, REPORT_TIME, public_only=True), folder
    ).splitlines()


@pytest.mark.long
def test_scripts_of_pages_that_need_rows_read_them_from_the_file(report_contents, tmp_path):
    app = private_page("Quantile")
    content = report_contents["quantile"]()
    (tmp_path / data(app).name).write_bytes(PRIVATE_FILE)
    assert_script_has_what_the_page_has(app, content, run_and_read_answer(content, tmp_path))
    printed = printed_of(content, tmp_path, PRIVATE_FILE, "your-file.csv")
    assert len(content.answer.numbers) == 3
    for number in content.answer.numbers:
        assert f"{number.label}: {number.text}" in printed


@pytest.mark.long
def test_totals_of_both_signs(report_contents, tmp_path):
    file = ("user,amount\n" + "".join(f"u{i % 40},{(i * 7) % 23 - 11}\n" for i in range(400))).encode()
    app = open_on_file(file, "Sum and count")
    app.session_state["total.summed"] = Summed.VALUES
    check(app.run())
    app.session_state["total.signed_tabs"] = "Downloads"
    wait_for_searches(app)
    (tmp_path / data(app).name).write_bytes(file)
    assert_script_has_what_the_page_has(
        app,
        report_contents["total_signed"](),
        run_and_read_answer(report_contents["total_signed"](), tmp_path),
    )
    app.session_state["total.lower"], app.session_state["total.upper"] = -5.0, 20.0
    app.session_state["total.objective"] = Measure.RMSE
    wait_for_searches(app)
    assert_script_has_what_the_page_has(
        app,
        report_contents["total_signed"](),
        run_and_read_answer(report_contents["total_signed"](), tmp_path),
    )
    printed = printed_of(report_contents["total_signed"](), tmp_path, file, "your-file.csv")
    shown = card_numbers(app, "total_card")
    assert shown  # Of the range, the instruction says the ends.
    for label, value in shown:
        assert f"{label}: {value}" in printed


@pytest.mark.long
def test_regression_on_a_table_of_ones_own(report_contents, tmp_path):
    rng = np.random.default_rng(5)
    rows = [
        f"p{rng.integers(12)},{rng.choice(['a', 'b', 'c'])},{rng.normal():.3f},{rng.integers(1, 11)}"
        for _ in range(150)
    ]
    file = ("who,kind,size,rating\n" + "\n".join(rows) + "\n").encode()
    table = read_table(file, "ratings.csv")
    design = Design("rating", "who", (Feature("kind", FeatureKind.CATEGORIES, "b"), Feature("size")))
    regression_data = RegressionData(
        problem.build_dataset(table, design, Disclosure.PRIVATE), "an account", design=design
    )
    app = open_app("Linear regression", link="1", epsilon="1", lower="1", upper="10")
    app.session_state["regression.loaded"] = regression_data
    app.session_state["regression.source"] = DataSource.UPLOAD
    app.session_state["regression.lower"], app.session_state["regression.upper"] = 1.0, 10.0
    check(app.run())
    app.session_state["regression.tabs"] = "Downloads"
    wait_for_searches(wait_for_searches(app))
    content = report_contents["regression"]()
    printed = printed_of(content, tmp_path, file, "your-table.csv")
    shown = card_numbers(app, "regression_card")
    assert len(shown) == 2
    for label, value in shown:
        assert f"{label}: {value}" in printed
    public = Reader(report_content.write_html(content, REPORT_TIME, public_only=True))
    assert "ratings.csv" not in public.text
    assert not public.of_class("private")


def regression_draw(epsilon: float, *values: float) -> ReleasedCoefficients:
    release = LaplaceRelease(np.array(values), epsilon=epsilon, scale=2.0, sensitivity=1.0)
    return ReleasedCoefficients("", ("x1", "<b>"), release, np.ones(len(values)), np.ones(len(values)))


def paid(*epsilons: float) -> Ledger:
    return Ledger(tuple(ReleaseFacts(e, 0.0, Neighbours.REPLACE_VALUES, "Laplace") for e in epsilons))


def test_released_coefficients_stay_in_a_public_report():
    draw = regression_draw(0.1234564, 1.25, -3.5)
    *lines, spent = regression_report.list_draw_lines([draw], paid(0.1234564))
    assert [line.number for line in lines] == [1.25, -3.5]
    assert {line.shown_label for line in lines} == {
        "DP release (epsilon = 0.123457, replace one user's values, Laplace)"
    }
    assert {line.disclosure for line in lines} == {Disclosure.DP_RELEASE}
    assert spent.disclosure is Disclosure.PUBLIC
    assert "error" not in spent.note
    assert regression_report.list_draw_lines([], Ledger()) == ()


def test_the_epsilon_of_released_coefficients_is_never_rounded_down_and_draws_add_up():
    # 1/7 = 0.142857142..., whose six nearest digits are too few.
    draw = regression_draw(1 / 7, 1.25, -3.5)
    line, _, spent = regression_report.list_draw_lines([draw, draw], paid(1 / 7, 1 / 7))
    assert "0.142858" in line.shown_label
    assert "Draw 2 of these labels" in line.note
    assert spent.value_text == "ε = 0.285715, in 2 releases"
    assert draw.release.label.endswith("0.142858")


@pytest.mark.parametrize(
    ("list_lines", "noun"),
    [(regression_report.list_draw_lines, "labels"), (training_report.list_model_lines, "rows")],
)
def test_what_a_failed_release_has_spent_is_in_the_report(list_lines, noun):
    """The account charges before there is noise, and so does the report: without any release that came of it, too."""
    (line,) = list_lines([], paid(0.5, 0.25))
    assert (line.value_text, line.number, line.disclosure) == (
        "ε = 0.75, in 2 releases",
        0.75,
        Disclosure.PUBLIC,
    )
    assert f"counts 2 releases of these {noun} that ended in an error" in line.note


@pytest.mark.parametrize(
    ("value", "shown"), [(1.0, "1"), (0.1, r"0\.1"), (1 / 3, r"0\.3333333333333333"), (1e-6, r"0\.000001")]
)
def test_what_was_asked_is_said_with_all_its_digits(value, shown):
    assert dpcore_report_content.format_setting(value) == shown


@pytest.mark.parametrize("disclosure", [Disclosure.PRIVATE, Disclosure.PUBLIC])
@pytest.mark.parametrize("public_only", [False, True])
def test_what_may_have_been_read_off_private_data_is_no_plain_public_input(disclosure, public_only):
    """A cap of one's own and a range are typed with the data in sight; counts stand as they began."""
    parameters = MeanParameters(0.7, lower=0.0, upper=40.0, user_share=0.35, own_bound=7)
    behind = Dataset("a.csv", "", disclosure, ContributionHistogram([1, 9], [30, 2]))
    answer = Answer("", "", (), (), disclosure, parameters=parameters)
    report = report_content.build_page_report(MEAN, answer, ScriptSource(behind))
    report = remove_private(report) if public_only else report
    labels = {line.name: line.shown_label for line in report.setting_lines}
    words = MEAN.get_report_labels()
    private = disclosure is Disclosure.PRIVATE
    for name in ("lower", "upper", "user_share", "own_bound"):
        expected = dpcore_report_content.PRIVATE_SETTING_LABEL if private else Disclosure.PUBLIC.label
        assert labels[escape_markdown(words[name])] == expected
    for name in ("epsilon", "counts"):
        assert labels[escape_markdown(words[name])] == Disclosure.PUBLIC.label
    document = json.loads(write_report_json(report, REPORT_TIME))
    entered_names = document["question"]["entered_beside_private_data"]
    assert entered_names == (["lower", "upper", "user_share", "own_bound"] if private else [])
    # The person may publish them who chose them elsewhere: the file's name and first lines stay as they are.
    assert not report.holds_private or not public_only
    assert (
        dpcore_report_content.PRIVATE_SETTING_LABEL in report_html.write_report_html(report, REPORT_TIME)
    ) == private
