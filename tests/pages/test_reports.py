"""Reports and scripts of every page: what they hold is what the page shows, and nothing breaks out of its place."""

from __future__ import annotations

import ast
import html
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from html.parser import HTMLParser

import numpy as np
import pytest

from dpcore import export
from dpcore.contributions import ContributionHistogram
from dpcore.privacy import Sensitivity
from dpcore.report.document import SCHEMA, report_json
from pages.parts import jobs, keys, report_content, report_html, session, take_away
from tests.pages.driving import ROOT, data, fine, go, open_app, upload, use

MADE = datetime(2026, 11, 21, 5, 0, tzinfo=UTC)
PRIVATE_LABEL = Sensitivity.PRIVATE.label


@dataclass(frozen=True)
class Case:
    """A page, how it is opened, and which of its cards the report is about."""

    title: str
    stem: str
    tab: tuple[str, str]
    link: dict[str, str]
    card: str


SHOP, ONLINE = {"data": "shop-events"}, {"data": "online-retail-lines"}
CASES = {
    "mean": Case("Mean", "mean", (keys.MEAN_TABS, "Downloads"), ONLINE, "mean_card"),
    "mean of values": Case(
        "Mean",
        "mean",
        (keys.MEAN_TABS, "Downloads"),
        {**SHOP, "lower": "0", "upper": "100", "noise": "values"},
        "mean_card",
    ),
    "mean, private counts": Case(
        "Mean",
        "mean",
        (keys.MEAN_TABS, "Downloads"),
        {**SHOP, "lower": "0", "upper": "100", "noise": "values", "counts": "private", "own_cap": "7"},
        "mean_card",
    ),
    "generated": Case(
        "Mean",
        "mean",
        (keys.MEAN_TABS, "Downloads"),
        {"data": "zipf", "data.alpha": "1.5", "data.num_users": "5000", "data.max_contributions": "300",
         "data.seed": "4"},
        "mean_card",
    ),
    "count": Case("Sum and count", "total", (keys.TOTAL_TABS, "Downloads"), ONLINE, "total_card"),
    "sum, gaussian": Case(
        "Sum and count",
        "total",
        (keys.TOTAL_TABS, "Downloads"),
        {**SHOP, "summed": "values", "noise": "Gaussian", "delta": "1e-6", "measure": "rmse"},
        "total_card",
    ),
    "counts per group": Case(
        "Sum and count", "total_grouped", (keys.TOTAL_TABS, "Counts per group"), SHOP, "total_grouped_card"
    ),
    "quantile": Case(
        "Quantile",
        "quantile",
        (keys.QUANTILE_TABS, "Downloads"),
        {**SHOP, "low": "0", "high": "100"},
        "quantile_card",
    ),
    "learning": Case(
        "Learning under a cap", "learning", (keys.LEARNING_TABS, "Downloads"), ONLINE, "learning_card"
    ),
    "regression": Case(
        "Regression",
        "regression",
        (keys.REGRESSION_TABS, "Downloads"),
        {"lower": "-300", "upper": "300", "num_rows": "300", "informative": "2", "uninformative": "1",
         "exponent": "1.8", "seed": "3"},
        "regression_card",
    ),
    "many tasks": Case(
        "Many tasks",
        "many_tasks",
        (keys.TASKS_PARTS, "Downloads"),
        {"num_users": "600", "num_tasks": "20", "tasks_per_user": "5"},
        "tasks_card",
    ),
    "many tasks of the data": Case(
        "Many tasks", "many_tasks", (keys.TASKS_PARTS, "Downloads"), {**SHOP, "source": "data"}, "tasks_card"
    ),
    "gap": Case("How much can weights gain?", "gap", (keys.GAP_TABS, "Your data"), ONLINE, "gap_card"),
}  # fmt: skip


@pytest.fixture
def taken(monkeypatch):
    """What pages contribute, by stem: AppTest cannot see what a button downloads."""
    found = {}
    monkeypatch.setattr(
        take_away, "draw", lambda stem, sensitivity, digest, content: found.update({stem: content})
    )
    return found


def settled(at):
    """Wait for searches that run beside the page: a test has no browser that polls."""
    for key in (keys.QUANTILE_SEARCH_JOB, keys.REGRESSION_SOLVE, keys.REGRESSION_CAPS):
        if key in at.session_state and isinstance(at.session_state[key], jobs.Job):
            at.session_state[key].wait(60.0)
    return fine(at.run())


def opened(case):
    at = settled(open_app(case.title, link="1", epsilon="1", **case.link))
    at.session_state[case.tab[0]] = case.tab[1]
    at = settled(at)
    assert at.session_state[keys.LINK_PROBLEMS] == ()
    return at


def card_numbers(at, key):
    """(label, value) of the metrics of one card."""
    inside = at.get_by_key(key)
    return [(metric.label, metric.value) for metric in inside.metric]


class Reader(HTMLParser):
    """Elements with their attributes, and what scripts and the page hold."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.scripts, self.texts, self._in = [], [], [], ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self._in = tag
            self.scripts += [(dict(attrs), "")] if tag == "script" else []

    def handle_endtag(self, tag):
        self._in = "" if tag == self._in else self._in

    def handle_data(self, data):
        if self._in == "script":
            attributes, text = self.scripts[-1]
            self.scripts[-1] = (attributes, text + data)
        elif not self._in:
            self.texts.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())

    def of_class(self, name):
        return [a for _, a in self.elements if name in (a.get("class") or "").split()]

    def specs(self):
        return [json.loads(text) for a, text in self.scripts if a.get("class") == "figure-data"]


def run(script, folder):
    """What a script prints, run as a person would."""
    file = folder / "script.py"
    file.write_text(script, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(file)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", CASES)
def test_report_json_and_script_say_what_the_page_says(name, taken, tmp_path):
    case = CASES[name]
    at = opened(case)
    content = taken[case.stem]()
    shown = card_numbers(at, case.card)
    assert len(shown) >= 3

    page = Reader(take_away.html(content, MADE, public_only=False))
    document = json.loads(report_json(report_content.make(content, MADE, public_only=False)))
    printed = run(report_content.script_text(content, MADE, public_only=False), tmp_path).splitlines()
    assert document["schema"] == SCHEMA
    numbers = {line["name"]: line["value"] for line in document["answers"][0]["numbers"]}
    for label, value in shown:
        assert f"{label}: {value}" in printed
        assert numbers[label] == value
        assert " ".join(f"{label} {value}".split()) in page.text
    figures = [line.removeprefix("Figure: ") for line in printed if line.startswith("Figure: ")]
    assert figures
    assert all((tmp_path / figure).stat().st_size > 1000 for figure in figures)
    assert (tmp_path / "plotly.min.js").is_file()


@pytest.mark.parametrize("name", CASES)
def test_the_html_is_one_file_with_every_figure_and_a_label_beside_every_number(name, taken):
    case = CASES[name]
    opened(case)
    content = taken[case.stem]()
    text = take_away.html(content, MADE, public_only=False)
    page = Reader(text)
    for tag, attributes in page.elements:
        assert tag not in ("link", "iframe", "object", "embed", "img", "base"), tag
        assert not {"src", "href", "srcset", "xlink:href"} & set(attributes), (tag, attributes)
        assert not [a for a in attributes if a.startswith("on")], (tag, attributes)
    assert sum("plotly.js v" in script for _, script in page.scripts) == 1
    specs = {spec["id"]: spec for spec in page.specs()}
    places = [a["id"] for a in page.of_class("plot")]
    assert places == [f"figure-{picture.key}" for picture in content.pictures]
    assert set(places) == set(specs)
    for spec in specs.values():
        assert spec["data"]
        # Its own colours: Streamlit's placeholders are near black (#000001 and so on).
        assert "#00000" not in json.dumps(spec["layout"])
        assert spec["layout"]["paper_bgcolor"] == "white"
    numbers = len(page.of_class("tile"))
    rows = sum(tag == "tr" for tag, _ in page.elements)
    headlines, figures = len(page.of_class("headline")), len(places)
    assert numbers >= 3
    assert len(page.of_class("label")) == numbers + rows + headlines + figures
    assert "Do not publish" not in page.text


HOSTILE = '</script><img src="https://evil.example/x" onerror=alert(1)>$x$`*[a](javascript:1)\\'


HEADER = ",".join('"' + name.replace('"', '""') + '"' for name in ("user_id", f"amount {HOSTILE}", "product"))
ROWS = "".join(f"u{i % 37},{i % 11},p{i % 5}\n" for i in range(2500)) + "u0,3,p1\n" * 400
PRIVATE_FILE = f"{HEADER}\n{ROWS}".encode()


def private_page(title, tab, at=None):
    """A page on private uploaded events whose names try to break out."""
    at = at or open_app("Your data")
    upload(at, PRIVATE_FILE, f"{HOSTILE.replace('/', '')}.csv")
    use(at)
    assert data(at).is_private
    go(at, title)
    at.session_state[tab[0]] = tab[1]
    return settled(at)


def test_private_numbers_are_left_out_and_that_is_said(taken):
    at = private_page("Mean", (keys.MEAN_TABS, "Downloads"))
    content = taken["mean"]()
    histogram = data(at).histogram
    numbers = [value for _, value in card_numbers(at, "mean_card")]
    users, rows = f"{histogram.num_users:,}", f"{histogram.num_rows:,}"
    whole = Reader(take_away.html(content, MADE, public_only=False))
    public_text = take_away.html(content, MADE, public_only=True)
    public = Reader(public_text)
    assert users in whole.text
    assert rows in whole.text
    assert "Do not publish" in whole.text
    assert whole.text.count(PRIVATE_LABEL) > 20
    assert rows not in public.text
    assert not public.of_class("private")
    assert not public.of_class("plot")
    assert "evil" not in public_text
    assert "plotly.js v" not in public_text, (
        "nothing to draw: the plotting script would be 4.6 MB for nothing"
    )
    for left_out in (
        "The choice: headline",
        "Figure: Standard error against the bound",
        "Summary of the data",
    ):
        assert left_out in public.text
    for kept in ("What is assumed", "How this is computed", "Versions", "Privacy budget ε"):
        assert kept in public.text
    document = report_content.make(content, MADE, public_only=True)
    assert not document.holds_private
    encoded = report_json(document)
    # Short ones (a cap of 67 rows) also stand in versions; the next test covers them.
    for number in (*(n for n in numbers if len(n) > 3), rows):
        assert number not in encoded
    assert json.loads(encoded)["choice"] is None
    assert json.loads(report_json(report_content.make(content, MADE, public_only=False)))["choice"]["answer"]


def test_a_public_report_does_not_depend_on_the_private_data(taken):
    # Two data sets of other sizes, sums and names: apart from nothing, the files are the same.
    at = private_page("Mean", (keys.MEAN_TABS, "Downloads"))
    first = taken["mean"]()
    counts = np.array([1, 2, 90, 4000])
    origin = session.Origin(session.UPLOADED)
    held = data(at)
    other = type(held)("other", "elsewhere", Sensitivity.PRIVATE, ContributionHistogram.from_counts(counts))
    at.session_state[keys.LOADED] = session.Loaded(other, origin)
    settled(at)
    second = taken["mean"]()
    assert first.source.dataset.digest != second.source.dataset.digest
    of = [report_content.make(one, MADE, public_only=True) for one in (first, second)]
    shift = "Figure: What independence hides"
    assert shift in of[0].left_out
    texts = [report_json(one).replace(f'    "{shift}",\n', "") for one in of]
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    ("title", "stem", "tab", "card"),
    [
        ("Mean", "mean", (keys.MEAN_TABS, "Downloads"), "mean_card"),
        ("Sum and count", "total", (keys.TOTAL_TABS, "Downloads"), "total_card"),
        ("Learning under a cap", "learning", (keys.LEARNING_TABS, "Downloads"), "learning_card"),
    ],
)
def test_hostile_names_stay_text(title, stem, tab, card, taken):
    private_page(title, tab)
    page = Reader(take_away.html(taken[stem](), MADE, public_only=False))
    kinds = {tag for tag, _ in page.elements}
    assert not kinds & {"img", "a", "iframe", "svg"}
    assert all(
        "evil.example" not in script or attributes.get("class") == "figure-data"
        for attributes, script in page.scripts
    )
    assert HOSTILE.replace("/", "") in page.text.replace("\u2060", "")
    document = report_json(report_content.make(taken[stem](), MADE, public_only=False))
    assert HOSTILE.replace("/", "") in json.loads(document)["data"][0]["value"]


def test_a_hostile_name_in_a_figure_cannot_end_its_script():
    import plotly.graph_objects as go_

    fig = go_.Figure(go_.Scatter(x=[1, 2], y=[1, 2], name=HOSTILE + "<!--<script>"))
    text = report_html._drawing(  # The one place where a figure becomes text.
        report_content.FigureData("k", "t", "a", {}, Sensitivity.PUBLIC), fig
    )
    page = Reader(text + "<p id='after'>after</p>")
    assert [tag for tag, _ in page.elements] == ["script", "p"]
    name = page.specs()[0]["data"][0]["name"]
    assert "<" not in name, "Plotly makes links of <a href>"
    assert html.unescape(name) == HOSTILE + "<!--<script>"


@pytest.mark.parametrize("public_only", [True, False])
def test_a_script_holds_no_number_of_private_data(public_only, taken):
    at = private_page("Mean", (keys.MEAN_TABS, "Downloads"))
    script = report_content.script_text(taken["mean"](), MADE, public_only)
    histogram = data(at).histogram
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
    assert ("evil.example" in script.split("FILE = ")[1].splitlines()[0]) is not public_only


def test_the_script_of_private_data_reads_the_persons_own_files(taken, tmp_path):
    at = private_page("Learning under a cap", (keys.LEARNING_TABS, "Downloads"))
    shown = card_numbers(at, "learning_card")
    content = taken["learning"]()
    histogram = data(at).histogram
    (tmp_path / "histogram-PRIVATE-do-not-publish.csv").write_text(
        export.columns_csv({"size": histogram.sizes, "users": histogram.users}, Sensitivity.PRIVATE),
        encoding="utf-8",
    )
    printed = run(report_content.script_text(content, MADE, True), tmp_path).splitlines()
    for label, value in shown:
        assert f"{label}: {value}" in printed


def test_the_script_of_private_values_reads_the_file_that_was_loaded(taken, tmp_path):
    at = private_page("Mean", (keys.MEAN_TABS, "Downloads"))
    shown = card_numbers(at, "mean_card")
    content = taken["mean"]()
    (tmp_path / "your-file.csv").write_bytes(PRIVATE_FILE)
    printed = run(report_content.script_text(content, MADE, True), tmp_path).splitlines()
    for label, value in shown:
        assert f"{label}: {value}" in printed


def test_the_switch_is_there_for_private_data_and_on():
    at = private_page("Mean", (keys.MEAN_TABS, "Downloads"))
    switch = at.toggle(key=keys.REPORT_PUBLIC_ONLY)
    assert switch.value is True
    fine(switch.set_value(False).run())
    assert "PRIVATE-do-not-publish" in " ".join(caption.value for caption in at.caption)
    private_page("Mean", (keys.MEAN_TABS, "Downloads"), go(at, "Your data"))
    go(at, "Learning under a cap")
    at.session_state[keys.LEARNING_TABS] = "Downloads"
    fine(at.run())
    # The same data: what was chosen stays. (Loaded again under the same content, they are the same data.)
    assert at.toggle(key=keys.REPORT_PUBLIC_ONLY).value is False
    upload(go(at, "Your data"), b"user_id,amount\na,1\nb,2\nb,3\n", "x.csv")
    use(at)
    go(at, "Learning under a cap")
    at.session_state[keys.LEARNING_TABS] = "Downloads"
    fine(at.run())
    assert at.toggle(key=keys.REPORT_PUBLIC_ONLY).value is True


def test_public_data_need_no_switch():
    at = opened(CASES["mean"])
    assert not [t for t in at.toggle if t.key == keys.REPORT_PUBLIC_ONLY]
