"""Driving the app through `AppTest`, and reading what it drew."""

from __future__ import annotations

import base64
import functools
import json
import os
import time
import unittest.mock
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import numpy as np
import pytest
import streamlit as st
from streamlit import config
from streamlit.components.v2 import manifest_scanner
from streamlit.elements.widgets import number_input, radio, selectbox, slider, text_widgets
from streamlit.runtime.scriptrunner.script_cache import ScriptCache
from streamlit.runtime.scriptrunner_utils import script_run_context
from streamlit.runtime.state import SafeSessionState, get_session_state
from streamlit.testing.v1 import AppTest, app_test, element_tree, local_script_runner
from streamlit.util import calc_hash

from dpcore.answer import Answer
from dpcore.dataset import Dataset
from pages.shared import figure as shared_figure
from pages.shared.base import catalogue, keys
from pages.shared.card import cards
from pages.shared.fields import jobs
from pages.shared.server import server
from pages.shared.session import links, session

# A person sees no traceback; a test that fails says which exception it was.
config.set_option("client.showErrorDetails", "full")

ROOT = Path(__file__).resolve().parents[2]
SHOP_EVENTS = (ROOT / "sample_data" / "shop_events.csv").read_bytes()
RUN_SECONDS = 300.0
"""Seconds after which something hangs: far more than anything takes on a machine that others keep busy."""


def find_page_path(title: str) -> str:
    return os.path.relpath(catalogue.find_page(title).page_path, server.MAIN_SCRIPT.parent)


def confirm(app: AppTest, key: str) -> AppTest:
    """Press the button of a private draw, and confirm that it may be spent."""
    check(app.button(key=key).click().run())
    return check(app.button(key=f"{key}_confirm").click().run())


AMPLE_EPSILON = 5.0
"""ε of a DP histogram in which users are left: at 0.1, one in ten of a few hundred users is empty."""


def release_copy(app: AppTest, epsilon: float = AMPLE_EPSILON) -> AppTest:
    """Release a DP histogram on Data; it becomes the data in use."""
    check(go(app, "Data").number_input(key="private_choice.histogram_epsilon").set_value(epsilon).run())
    confirm(app, "private_release")
    assert data(app).release is not None, "no user is left in the histogram"
    return app


COMPILED = ScriptCache()
"""Of all sessions, as a server has it: `AppTest` would compile the script and its page anew in every run, 1.4 ms."""


# Every session of `AppTest` asks its module for a cache of its own.
for _module in (app_test, local_script_runner):
    _module.ScriptCache = lambda: COMPILED  # type: ignore[attr-defined]


class _OneKeyAtATime:
    """The state of a session as widgets ask for it, who look up their own key in a dict of all that it holds.

    Making that dict for every field to fill in took a twentieth of the processor time of all runs.
    """

    def __init__(self, state: SafeSessionState) -> None:
        self.filtered_state = state

    def __getattr__(self, name: str) -> Any:
        return getattr(self.filtered_state, name)


for _widgets in (number_input, radio, selectbox, slider, text_widgets):
    _widgets.get_session_state = lambda: _OneKeyAtATime(get_session_state())  # type: ignore[assignment]
app_test._AppTestSessionState.__contains__ = lambda self, key: key in self._state  # type: ignore[method-assign]


def _list_nodes(block: element_tree.Block) -> Iterator[element_tree.Node]:
    """List all that is in a block, once: a tree is whole before anyone looks, and every run makes another.

    Each look for a kind of element would go through generators as deep as the tree, a fortieth of all processor time.
    """
    nodes: list[element_tree.Node] | None = vars(block).get("nodes")
    if nodes is None:
        nodes = [block]
        for child in block.children.values():
            nodes.extend(child)
        vars(block)["nodes"] = nodes
    return iter(nodes)


element_tree.Block.__iter__ = _list_nodes  # type: ignore[assignment,method-assign]

# A digest of every message, by which a browser asks for it again: nobody does here. `id` takes it and does nothing, and
# a profile of a page's run does not go through this file for every element.
script_run_context.populate_hash_if_needed = id  # type: ignore[assignment]


def _wait_for_end(runner: local_script_runner.LocalScriptRunner, timeout: float) -> None:
    """Wait for the end of a run. `AppTest` would look every millisecond, a twelfth of all processor time."""
    thread = runner._script_thread
    thread.join(timeout)
    if thread.is_alive():
        runner.request_stop()
        thread.join()
        raise RuntimeError(f"The page did not end within {timeout:.0f} seconds")


local_script_runner.require_widgets_deltas = _wait_for_end


# `AppTest` would search all installed packages for components in every session, 80 to 200 ms.
manifest_scanner.scan_component_manifests = functools.cache(manifest_scanner.scan_component_manifests)


def open_app(title: str = "Home", **link: str) -> AppTest:
    """Open a new session whose first page is this one, by a link where fields are given.

    Run twice after a link: state of widgets that are not drawn vanishes on the second run only. That a page opened
    without one is the same on its second run is a test of its own.
    """
    app = begin(title, **link)
    return check(app.run()) if link else app


def begin(title: str, **link: str) -> AppTest:
    """Do as `open_app`, run once: for a test that runs it again in any case, with `finish` or by a change."""
    app = build_app(title)
    for name, text in link.items():
        app.query_params[name] = text
    return check(app.run())


def build_app(title: str) -> AppTest:
    """Make a new session whose first page will be this one: nothing has run yet."""
    app = AppTest.from_file(server.MAIN_SCRIPT, default_timeout=RUN_SECONDS)
    # A link names the first page of a session by its address; `switch_page` before the first run goes by the
    # file's name instead.
    app._page_hash = calc_hash(catalogue.find_page(title).url_path)
    return app


def go(app: AppTest, title: str) -> AppTest:
    """Go to another page. Run twice: state of widgets that are not drawn vanishes on the second run only."""
    look_at(app, title)
    return check(app.run())


def look_at(app: AppTest, title: str) -> AppTest:
    """Do as `go`, run once: on a round of pages, of which the next one is the second run."""
    app.switch_page(find_page_path(title))
    return check(app.run())


def check(app: AppTest) -> AppTest:
    """Assert that the app did not end in an exception and that the shell is there."""
    assert not app.exception, [error.message for error in app.exception]
    assert any(text.value.startswith("**Data:**") for text in app.sidebar.markdown)
    return app


fine = check  # Profiling scripts know it by its former name.


def open_tab(app: AppTest, question: str, tab: str) -> AppTest:
    """Open a tab of a question's page."""
    app.session_state[f"{question}.tabs"] = tab
    return check(app.run())


def enter_range(app: AppTest, lower: float, upper: float) -> AppTest:
    """Enter on *Mean* what range a value has."""
    app.number_input(key="mean.lower").set_value(lower)
    return check(app.number_input(key="mean.upper").set_value(upper).run())


def finish(app: AppTest, *names: str) -> AppTest:
    """Wait for the work under these session keys, as the polling fragments do in a browser, and for what it starts."""
    for _ in range(10):
        for job in _jobs(app, names):
            job.wait(RUN_SECONDS)
            assert not job.is_running, f"no end after {RUN_SECONDS:.0f} seconds: {job.request}"
        check(app.run())
        if not any(job.is_running for job in _jobs(app, names)):
            return app
    raise AssertionError(f"{names} are started anew by every run")


def _jobs(app: AppTest, names: tuple[str, ...]) -> list[jobs.Job]:
    jobs_held = [app.session_state[name] for name in names if name in app.session_state]
    return [job for job in jobs_held if job is not None]


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for what another thread brings about."""
    deadline = time.monotonic() + RUN_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"not so after {RUN_SECONDS:.0f} seconds"
        time.sleep(0.02)


def work_waits_for_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hold work beside the page at its first sign of progress until it is told to stop.

    Else a test of Stop would race against the work, which on a busy machine may end before the page is drawn.
    """
    report = jobs.Job._report

    def hold(job: jobs.Job, share: float, so_far: Any = None) -> None:
        report(job, share, so_far)
        job._stop_event.wait(RUN_SECONDS)

    monkeypatch.setattr(jobs.Job, "_report", hold)


def data(app: AppTest) -> Dataset:
    """Return the data in use."""
    dataset: Dataset = app.session_state[keys.LOADED_DATA].dataset
    return dataset


def upload(app: AppTest, content: bytes, name: str = "file.csv") -> AppTest:
    """Choose a file on Data."""
    source = app.segmented_control(key="your_data.data_source")
    if source.value != "Upload a file":
        check(source.set_value("Upload a file").run())
    check(app.file_uploader[0].upload(name, content).run())
    reads = "your_data.look_job" in app.session_state and app.session_state["your_data.look_job"] is not None
    return finish(app, "your_data.look_job") if reads else app


def use(app: AppTest) -> AppTest:
    """Take the file that was chosen on Data."""
    return check(app.button(key="use_upload").click().run())


@functools.cache
def count_content(content: bytes, name: str = "file.csv") -> Dataset:
    """Return what Data makes of an uploaded file: driven once, nine runs of the app."""
    return data(use(upload(open_app("Data"), content, name)))


def open_on_file(content: bytes, title: str, name: str = "file.csv") -> AppTest:
    """Open this page with an uploaded file in use, without driving the widgets of Data again."""
    return open_on_dataset(count_content(content, name), title)


def open_on_dataset(dataset: Dataset, title: str, origin_kind: str = session.UPLOADED) -> AppTest:
    """Open this page with data in use, by default as after an upload."""
    return check(use_dataset(build_app(title), dataset, origin_kind).run())


def errors(app: AppTest) -> str:
    """Return all sentences of errors and warnings on the page, without Markdown's backslashes."""
    return unescape_markdown("\n".join(element.value for element in [*app.error, *app.warning]))


def read_notices_below(app: AppTest, key: str) -> str:
    """Return the errors and notices that stand below a widget."""
    nodes = list(app.main)
    (position,) = (i for i, node in enumerate(nodes) if getattr(node, "key", None) == key)
    kinds = ("error", "info")
    return unescape_markdown("\n".join(node.value for node in nodes[position:] if node.type in kinds))


def unescape_markdown(text: str) -> str:
    return text.replace("\\", "")


def read_answer(answer: Answer) -> str:
    """Return all texts of an answer, without Markdown's backslashes."""
    numbers = [f"{number.label} {number.text} {number.note}" for number in answer.numbers]
    facts = [f"{name}: {sentence}" for name, sentence in answer.all_facts]
    proofs = [f"{stop_reason} {proof.sentence}" for _, proof, stop_reason in answer.proofs]
    texts = [answer.headline, answer.detail, *numbers, *facts, *proofs, *answer.all_assumptions]
    return unescape_markdown("\n".join(texts))


def shown_texts(app: AppTest) -> str:
    """Return every text of the page, without Markdown's backslashes."""
    return unescape_markdown(raw_texts(app))


def raw_texts(app: AppTest) -> str:
    """Return every text of the page, as Markdown and LaTeX."""
    groups = (
        app.title,
        app.header,
        app.subheader,
        app.markdown,
        app.caption,
        app.info,
        app.error,
        app.warning,
        app.code,
    )
    metrics = [" ".join(metric) for metric in list_metrics(app)]
    return "\n".join([*(str(e.value) for elements in groups for e in elements), *metrics])


def read_shown_link(app: AppTest) -> str:
    """Return the link that the shell offers."""
    (link,) = [str(code.value) for code in app.code if f"{links.VERSION_FIELD}={links.VERSION}" in code.value]
    return link


def read_address(app: AppTest) -> dict[str, str]:
    """Return the fields that the page puts into the browser's address."""
    return dict(parse_qsl(json.loads(app.get_by_key("address").proto.json)["query"]))


def chart(app: AppTest, key: str) -> dict[str, Any]:
    """Return the figure with this key, as Plotly gets it."""
    spec: dict[str, Any] = json.loads(app.get_by_key(shared_figure.WIDGET_KEY_PREFIX + key).proto.bytes)[
        "figure"
    ]
    return spec


def list_figure_keys(app: AppTest) -> list[str]:
    """Return the keys of all figures on the page."""
    # An element's id is a digest and its key.
    keys_of_all = [element.proto.id.split("-", 2)[2] for element in app.get("bidi_component")]
    begins = shared_figure.WIDGET_KEY_PREFIX
    return [key.removeprefix(begins) for key in keys_of_all if key.startswith(begins)]


def trace(figure: dict[str, Any], name: str, y_axis: str = "") -> tuple[np.ndarray, np.ndarray]:
    """Return (x, y) of the only trace of this name, of those on an axis ("y", below it "y2") where one is given."""
    (plot_trace,) = [
        t
        for t in figure["data"]
        if t.get("name") == name and t.get("yaxis", "y") == (y_axis or t.get("yaxis", "y"))
    ]
    return numbers(plot_trace["x"]), numbers(plot_trace["y"])


def numbers(field: Any) -> np.ndarray:
    """Return Plotly's array, which is a list or base64, as numbers."""
    if isinstance(field, dict):
        return np.frombuffer(base64.b64decode(field["bdata"]), dtype=np.dtype(field["dtype"]))
    return np.asarray(field, dtype=np.float64)


def read_number(app: AppTest, card: str) -> dict[str, Any]:
    """Return the large number of an answer card: label, value and unit, what is copied, and the parts of its error."""
    answer: dict[str, Any] = json.loads(app.get_by_key(cards.NUMBER_KEY_PREFIX + card).proto.json)
    return answer


def read_card_texts(app: AppTest) -> str:
    """Return all texts in and behind key numbers and grids of numbers: labels, units, notes, explanations."""
    begins = (f"-{cards.GRID_KEY_PREFIX}", f"-{cards.NUMBER_KEY_PREFIX}")
    payloads = [
        e.proto.json for e in app.get("bidi_component") if any(begin in e.proto.id for begin in begins)
    ]
    return "\n".join(_strings(json.loads(text) for text in payloads))


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    values = (
        value.values() if isinstance(value, dict) else () if isinstance(value, int | float | None) else value
    )
    return [text for item in values for text in _strings(item)]


class Metric(NamedTuple):
    """A number that a page shows with a label."""

    label: str
    value: str
    note: str


def list_metrics(app: Any) -> list[Metric]:
    """Return the numbers behind an answer, and single ones beside figures, of a page or of a part of it."""
    grids = [e.proto for e in app.get("bidi_component") if f"-{cards.GRID_KEY_PREFIX}" in e.proto.id]
    grid_numbers = [number for proto in grids for number in json.loads(proto.json)]
    single = [Metric(number.label, number.value, number.delta) for number in app.metric]
    return [*(Metric(number["label"], number["value"], number["note"]) for number in grid_numbers), *single]


def use_dataset(app: AppTest, dataset: Dataset, origin_kind: str = session.UPLOADED) -> AppTest:
    """Return the session with these data in use, as after an upload, without its widgets. The page is not run."""
    with unittest.mock.patch.object(st, "session_state", app.session_state):
        session.use_data(session.LoadedData(dataset, session.Origin(origin_kind)))
    return app
