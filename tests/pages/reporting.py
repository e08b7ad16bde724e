"""Reports of every page for the tests: how each page is opened, what its HTML holds, what its script prints."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from html.parser import HTMLParser
from operator import itemgetter

import numpy as np

from dpcore.answer import Bars, Cells, Curve, Level, Mark
from pages.shared.base import catalogue, keys
from pages.shared.card import cards
from pages.shared.fields import jobs
from pages.shared.report import report_content
from tests.pages.driving import (
    ROOT,
    build_app,
    chart,
    check,
    data,
    finish,
    list_metrics,
    numbers,
    open_on_file,
    trace,
)

MATH_OR_CODE = re.compile(r"\$\$.+?\$\$|(?<!\\)\$.+?(?<!\\)\$|```.+?```|`.+?`", re.DOTALL)
MARKS = re.compile(r"\S*\^\S*|(?<![\w\\])[^\W\d_]{1,3}\\?_[\w{]{1,3}\b")


def find_marks(text):
    """Return what stands for a symbol outside of LaTeX and code: '^2', 'n_tau'."""
    return MARKS.findall(MATH_OR_CODE.sub("", text))


REPORT_TIME = datetime(2026, 11, 21, 5, 0, tzinfo=UTC)


SHOP, ONLINE = {"data": "shop-events"}, {"data": "online-retail-lines"}
CASES: dict[str, tuple[str, dict[str, str]]] = {
    "mean": ("Mean", ONLINE),
    "mean of values": ("Mean", {**SHOP, "lower": "0", "upper": "100", "variance_source": "values"}),
    "mean, private counts": (
        "Mean",
        {**SHOP, "lower": "0", "upper": "100", "variance_source": "values", "counts": "private", "own_bound": "7"},
    ),
    "generated": (
        "Mean",
        {"data": "zipf", "data.alpha": "1.5", "data.num_users": "5000", "data.max_contributions": "300",
         "data.seed": "4"},
    ),
    "count": ("Sum and count", {**ONLINE, "measure": "bound", "own_bound": "200"}),
    "sum, gaussian": (
        "Sum and count",
        {**SHOP, "summed": "values", "mechanism": "Gaussian", "delta": "1e-6", "measure": "rmse"},
    ),
    "per group": ("Group by", {**SHOP, "statistic": "rows"}),
    "per group, mean": (
        "Group by",
        {**SHOP, "epsilon": "100", "statistic": "mean", "lower": "0", "upper": "100", "own_groups": "2",
         "own_amount": "5"},
    ),
    "per group, users of private groups": (
        "Group by",
        {**SHOP, "statistic": "users", "selection": "truncated geometric", "selection_share": "0.5",
         "selection_delta": "1e-6"},
    ),
    "quantile": ("Quantile", {**SHOP, "low": "0", "high": "100"}),
    "quantiles, cap from counts": (
        "Quantile",
        {**SHOP, "low": "0", "high": "100", "quantiles": "0.25, 0.9", "weighting": "cap", "bound_from": "counts",
         "own_bound": "7", "beta": "0.2"},
    ),
    "quantile, no bound": (
        "Quantile",
        {**SHOP, "base": "normal", "center": "40", "spread": "30", "weighting": "none"},
    ),
    "learning": ("Bias curves over τ₀", ONLINE),
    "learning, own cap": (
        "Bias curves over τ₀",
        {**SHOP, "bias": "chi_squared", "loss_variance": "0.02", "own_bound": "9", "privacy_form": "own",
         "privacy_power": "1.25", "alpha": "0.75"},
    ),
    "learning, no bound at the own cap": (
        "Bias curves over τ₀",
        {"data": "requests-commits", "bias": "corollary_1", "own_bound": "1", "vc_dimension": "0"},
    ),
    "regression": (
        "Linear regression",
        {"lower": "-300", "upper": "300", "num_rows": "300", "informative": "2", "uninformative": "1", "exponent":
         "1.8", "seed": "3"},
    ),
    "regression, entered variance": (
        "Linear regression",
        {"lower": "-50", "upper": "50", "num_rows": "120", "informative": "1", "uninformative": "1",
         "variance_source": "entered", "residual_variance": "400"},
    ),
    "training": (
        "Classifier",
        {"source": "generated", "num_users": "90", "informative": "2", "runs": "4", "splits": "2"},
    ),
    "training, as entered": (
        "Classifier",
        {"source": "sample", "pace": "entered", "runs": "2", "splits": "1", "steps": "3", "bounded_by": "cap",
         "neighbours": "one user's values change; everybody's number of rows is public"},
    ),
    "many tasks": ("Multi-task weights", {"num_users": "600", "num_tasks": "20", "tasks_per_user": "5"}),
    "many tasks of the data": ("Multi-task weights", {**SHOP, "source": "data"}),
    "many tasks, nobody clipped": (
        "Multi-task weights",
        {"source": "heavy-tailed", "num_users": "400", "num_tasks": "30", "tasks_per_user": "4", "loss": "convex",
         "fit": "nobody-clipped", "max_tasks": "3", "exponent": "1"},
    ),
    "factorisation": (
        "Recommender",
        {"num_users": "400", "num_items": "90", "ratings_per_user": "12", "repeats": "1"},
    ),
    "factorisation, trained": (
        "Recommender",
        {"num_users": "300", "num_items": "60", "ratings_per_user": "12", "repeats": "2", "train_epsilons": "5"},
    ),
    "factorisation of the data, gradient steps": (
        "Recommender",
        {**SHOP, "source": "data", "lowest": "0", "highest": "100", "repeats": "1", "train_epsilons": "20",
         "algorithm": "descent", "sweeps": "1"},
    ),
    "data owners": ("Join or train alone", {"personal": "50", "personal_diameter": "0.1"}),
    "data owners of the data": ("Join or train alone", {**ONLINE, "source": "data", "unit": "owner"}),
    "data owners, users protected": (
        "Join or train alone",
        {**ONLINE, "source": "data", "unit": "user", "records_per_user": "3", "x_axis": "shared", "personal": "5",
         "personal_diameter": "0.5", "own_bound": "9"},
    ),
    "gap": ("Weights vs. caps", ONLINE),
    "gap, variance entered": ("Weights vs. caps", {**SHOP, "variance_source": "entered", "value_variance": "0"}),
}  # fmt: skip
"""Pages, and the links that open them."""
STEMS = {
    "data_owners": "owners",
    "gap_examples": "gap",
    "multitask": "many_tasks",
}
"""Beginnings of the keys of a page's card and report, where they are not the question's name."""


def find_stem(title):
    """Return the name under which a page's card and report stand."""
    name = catalogue.find_page(title).name
    return STEMS.get(name, name)


def wait_for_searches(app):
    """Wait for searches that run beside the page: a test has no browser that polls."""
    for key in (
        "per_group.job",
        "quantile.search_job",
        "regression.solve",
        "regression.caps",
        "training.runs_job",
    ):
        if key in app.session_state and isinstance(app.session_state[key], jobs.Job):
            app.session_state[key].wait(60.0)
    return check(app.run())


def open_case(name):
    """Open the *Downloads* of a case; what it trains only on request is trained."""
    title, link = CASES[name]
    app = show_downloads(build_app(title), title)
    for field, text in {"link": "1", "epsilon": "1", **link}.items():
        app.query_params[field] = text
    app = wait_for_searches(check(app.run()))
    assert app.session_state[keys.LINK_PROBLEMS] == ()
    if "train_epsilons" in link:
        job = "factorisation.train_job"
        finish(check(app.button(key="factorisation_train_job_start").click().run()), job)
    return app


def show_downloads(app, title):
    (spec,) = (spec for spec in catalogue.PAGES if spec.title == title)
    app.session_state[spec.get_key("tabs")] = "Downloads"
    return app


def list_card_numbers(app, key):
    """Return (label, value) of a card's large number and of its error; empty where it has none."""
    key_ending = cards.NUMBER_KEY_PREFIX + key
    proto = next((e.proto for e in app.get("bidi_component") if e.proto.id.endswith(key_ending)), None)
    if proto is None:
        return []
    payload = json.loads(proto.json)
    return [
        (payload["label"], payload["value"]),
        *([tuple(payload["error"][:2])] if payload["error"] else []),
    ]


def card_numbers(app, key, label_in_headline=""):
    """Return (label, value) of the labelled numbers of one card.

    A number that the instruction holds has no label there. It is left out, unless its label is given.
    """
    metrics = [(metric.label, metric.value) for metric in list_metrics(app.get_by_key(key))]
    large = [(label or label_in_headline, value) for label, value in list_card_numbers(app, key)]
    return [*filter(itemgetter(0), large), *metrics]


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


def run_script(script, folder, as_a_person=False, names=None):
    """Run a script, and return what it prints.

    Args:
        script: Its text.
        folder: Where it lies, and the files that it reads.
        as_a_person: In a Python of its own, which takes a second to import what it needs. Else in this one, in which
            names that the script does not define are as unknown.
        names: Takes what the script defines, where it runs in this Python.
    """
    file = folder / "script.py"
    file.write_text(script, encoding="utf-8")
    # Names that are unknown or not used: a person should not wonder what an import is for.
    checked = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F", str(file)],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert checked.returncode == 0, checked.stdout
    if not as_a_person:
        printed = io.StringIO()
        with contextlib.chdir(folder), contextlib.redirect_stdout(printed):
            defined = {} if names is None else names
            defined |= {"__name__": "__main__", "__file__": str(file)}
            exec(compile(script, str(file), "exec"), defined)
        return printed.getvalue()
    done = subprocess.run(
        [sys.executable, "-W", "error", str(file)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_and_read_answer(content, folder):
    """Return the answer that the script of a page computes anew."""
    names: dict[str, object] = {}
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        exec(report_content.write_script(content, REPORT_TIME, public_only=False), names)
    return read_answer_texts(names)


def read_answer_texts(names):
    """Return the answer that a script left among its names, by the call or the core; None if it left none."""
    answer = names.get("answer")
    return getattr(answer, "answer", answer)


def assert_script_has_what_the_page_has(app, content, script_answer):
    """Assert that what a script computed anew is what the page shows, to the last digit: the answer is one object."""
    ((_, page_answer),) = content.answers
    assert script_answer.numbers == page_answer.numbers
    assert (script_answer.headline, script_answer.detail, script_answer.all_facts) == (
        page_answer.headline,
        page_answer.detail,
        page_answer.all_facts,
    )
    assert (script_answer.write_json and script_answer.write_json()) == (
        page_answer.write_json and page_answer.write_json()
    )
    assert script_answer.methods == page_answer.methods
    assert list(script_answer.plots) == list(page_answer.plots)
    for key, plot in script_answer.plots.items():
        script_columns, page_columns = plot().columns, page_answer.plots[key]().columns
        assert list(script_columns) == list(page_columns)
        for column, values in script_columns.items():
            np.testing.assert_array_equal(values, page_columns[column])
    # And the page draws just that: every curve of its main figure is a column of the plot.
    main = next(iter(script_answer.plots.values()))()
    for item in main.lower_plot.items if main.lower_plot else ():
        if isinstance(item, Curve):
            x, y = trace(chart(app, main.key.replace("-", "_")), item.name, "y2")
            np.testing.assert_array_equal(x, np.asarray(item.x))
            np.testing.assert_array_equal(y, np.asarray(item.y, dtype=np.float64))
    for item in main.items:
        if isinstance(item, Curve):
            # The part below may have a curve of the same name.
            x, y = trace(chart(app, main.key.replace("-", "_")), item.name, "y")
            np.testing.assert_array_equal(x, np.asarray(item.x))
            column = np.asarray(item.y, dtype=np.float64)
            # All main figures here have log axes, with gaps at 0 and at infinity.
            np.testing.assert_array_equal(y, np.where((column > 0.0) & (column < np.inf), column, np.nan))
        elif isinstance(item, Cells):
            plot_trace = chart(app, main.key.replace("-", "_"))["data"][0]
            np.testing.assert_array_equal(np.ravel(numbers(plot_trace["customdata"])), np.ravel(item.values))
        elif isinstance(item, Bars):
            (plot_trace,) = (
                item_trace
                for item_trace in chart(app, main.key.replace("-", "_"))["data"]
                if item_trace["name"] == item.name
            )
            assert list(plot_trace["x"]) == list(np.asarray(item.x))
            np.testing.assert_allclose(numbers(plot_trace["y"]) + item.base_value, np.asarray(item.y))
        elif isinstance(item, Level) and item.is_vertical:
            x, _ = trace(chart(app, main.key.replace("-", "_")), item.name)
            assert list(x) == [item.value, item.value]
        elif isinstance(item, Level):
            shapes = chart(app, main.key.replace("-", "_"))["layout"]["shapes"]
            assert (item.value, item.value) in [(shape["y0"], shape["y1"]) for shape in shapes]
        elif isinstance(item, Mark):
            ((x,), (y,)) = trace(chart(app, main.key.replace("-", "_")), item.name)
            assert (x, y) == (item.x, item.y)


HOSTILE = '</script><img src="https://evil.example/x" onerror=alert(1)>$x$`*[a](javascript:1)\\'


HEADER = ",".join('"' + name.replace('"', '""') + '"' for name in ("user_id", f"amount {HOSTILE}", "product"))
ROWS = "".join(f"u{i % 37},{i % 11},p{i % 5}\n" for i in range(2500)) + "u0,3,p1\n" * 400
PRIVATE_FILE = f"{HEADER}\n{ROWS}".encode()


def private_page(title, *settings):
    """Open the *Downloads* of a page on private uploaded events whose names try to break out."""
    app = show_downloads(open_on_file(PRIVATE_FILE, title, f"{HOSTILE.replace('/', '')}.csv"), title)
    assert data(app).is_private
    # Of private values the page asks for the range.
    ends = {"Mean": ("mean.lower", "mean.upper"), "Quantile": ("quantile.low", "quantile.high")}.get(
        title, ()
    )
    for key, value in (*settings, *zip(ends, (0.0, 1.0), strict=False)):
        app.session_state[key] = value
    return wait_for_searches(app)
