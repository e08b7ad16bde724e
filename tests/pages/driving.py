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
from streamlit.components.v2.component_manager import BidiComponentManager
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

ROOT = Path(__file__).resolve().parents[2]
SHOP_EVENTS = (ROOT / "sample_data" / "shop_events.csv").read_bytes()
PATIENCE = 300.0
"""Seconds after which something hangs: far more than anything takes on a machine that others keep busy."""


def page_path(title: str) -> str:
    return os.path.relpath(catalogue.find_page(title).path, server.SCRIPT.parent)


def confirm(at: AppTest, key: str) -> AppTest:
    """Press the button of a private draw, and confirm that it may be spent."""
    check(at.button(key=key).click().run())
    return check(at.button(key=f"{key}_confirm").click().run())


PLENTY = 5.0
"""ε of a private copy in which users are left: at 0.1, one copy in ten of a few hundred users is empty."""


def release_copy(at: AppTest, epsilon: float = PLENTY) -> AppTest:
    """On Choose privately: draw a private copy, which becomes the data in use."""
    check(at.number_input(key="private_choice.selection_epsilon").set_value(epsilon).run())
    confirm(at, "private_release")
    assert data(at).release is not None, "no user is left in the copy"
    return at


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
    """All that is in a block, listed once: a tree is whole before anyone looks, and every run makes another.

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


@functools.cache
def installed_components() -> BidiComponentManager:
    """Components of installed packages: `AppTest` would look through all packages in every session, 80 to 200 ms."""
    manager = BidiComponentManager()
    manager.discover_and_register_components(start_file_watching=False)
    return manager


def open_app(title: str = "Start", **link: str) -> AppTest:
    """A new session whose first page is this one, opened by a link where fields are given.

    Run twice after a link: state of widgets that are not drawn vanishes on the second run only. That a page opened
    without one is the same on its second run is a test of its own.
    """
    at = begin(title, **link)
    return check(at.run()) if link else at


def begin(title: str, **link: str) -> AppTest:
    """As `open_app`, run once: for a test that runs it again in any case, with `finish` or by a change."""
    at = new_app(title)
    for name, text in link.items():
        at.query_params[name] = text
    return check(at.run())


def new_app(title: str) -> AppTest:
    """A new session whose first page will be this one: nothing has run yet."""
    at = AppTest.from_file(server.SCRIPT, default_timeout=PATIENCE)
    at._bidi_component_manager = installed_components()
    # A link names the first page of a session by its address; `switch_page` before the first run goes by the
    # file's name instead.
    at._page_hash = calc_hash(catalogue.find_page(title).url_path)
    return at


def go(at: AppTest, title: str) -> AppTest:
    """To another page. Run twice: state of widgets that are not drawn vanishes on the second run only."""
    look_at(at, title)
    return check(at.run())


def look_at(at: AppTest, title: str) -> AppTest:
    """As `go`, run once: on a round of pages, of which the next one is the second run."""
    at.switch_page(page_path(title))
    return check(at.run())


def check(at: AppTest) -> AppTest:
    """Assert that the app did not end in an exception and that the shell is there."""
    assert not at.exception, [error.message for error in at.exception]
    assert any(text.value.startswith("**Data:**") for text in at.sidebar.markdown)
    return at


fine = check  # Profiling scripts know it by its former name.


def open_tab(at: AppTest, question: str, tab: str) -> AppTest:
    """Open a tab of a question's page."""
    at.session_state[f"{question}.tabs"] = tab
    return check(at.run())


def enter_range(at: AppTest, lower: float, upper: float) -> AppTest:
    """Enter on *Mean* what range a value has."""
    at.number_input(key="mean.lower").set_value(lower)
    return check(at.number_input(key="mean.upper").set_value(upper).run())


def finish(at: AppTest, *names: str) -> AppTest:
    """Wait for the work under these session keys, as the polling fragments do in a browser, and for what it starts."""
    for _ in range(10):
        for job in _jobs(at, names):
            job.wait(PATIENCE)
            assert not job.is_running, f"no end after {PATIENCE:.0f} seconds: {job.question}"
        check(at.run())
        if not any(job.is_running for job in _jobs(at, names)):
            return at
    raise AssertionError(f"{names} are started anew by every run")


def _jobs(at: AppTest, names: tuple[str, ...]) -> list[jobs.Job]:
    jobs_held = [at.session_state[name] for name in names if name in at.session_state]
    return [job for job in jobs_held if job is not None]


def until(holds: Callable[[], bool]) -> None:
    """Wait for what another thread brings about."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, f"not so after {PATIENCE:.0f} seconds"
        time.sleep(0.02)


def work_waits_for_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hold work beside the page at its first sign of progress until it is told to stop.

    Else a test of Stop would race against the work, which on a busy machine may end before the page is drawn.
    """
    report = jobs.Job._report

    def hold(job: jobs.Job, share: float, so_far: Any = None) -> None:
        report(job, share, so_far)
        job._stop_event.wait(PATIENCE)

    monkeypatch.setattr(jobs.Job, "_report", hold)


def data(at: AppTest) -> Dataset:
    """The data in use."""
    dataset: Dataset = at.session_state[keys.LOADED_DATA].dataset
    return dataset


def upload(at: AppTest, content: bytes, name: str = "file.csv") -> AppTest:
    """On Your data: choose a file."""
    source = at.segmented_control(key="your_data.data_source")
    if source.value != "Upload a file":
        check(source.set_value("Upload a file").run())
    check(at.file_uploader[0].upload(name, content).run())
    reads = "your_data.look_job" in at.session_state and at.session_state["your_data.look_job"] is not None
    return finish(at, "your_data.look_job") if reads else at


def use(at: AppTest) -> AppTest:
    """On Your data: take the file that was chosen."""
    return check(at.button(key="use_upload").click().run())


@functools.cache
def dataset_of(content: bytes, name: str = "file.csv") -> Dataset:
    """What Your data makes of an uploaded file: driven once, nine runs of the app."""
    return data(use(upload(open_app("Your data"), content, name)))


def on_file(content: bytes, title: str, name: str = "file.csv") -> AppTest:
    """A new session on this page with an uploaded file in use, without driving the widgets of Your data again."""
    return on_data(dataset_of(content, name), title)


def on_data(dataset: Dataset, title: str, kind: str = session.UPLOADED) -> AppTest:
    """A new session on this page with data in use, by default as after an upload."""
    return check(with_data(new_app(title), dataset, kind).run())


def errors(at: AppTest) -> str:
    """All sentences of errors and warnings on the page, without Markdown's backslashes."""
    return unescaped("\n".join(element.value for element in [*at.error, *at.warning]))


def below(at: AppTest, key: str) -> str:
    """Return the errors and notices that stand below a widget."""
    nodes = list(at.main)
    (place,) = (i for i, node in enumerate(nodes) if getattr(node, "key", None) == key)
    kinds = ("error", "info")
    return unescaped("\n".join(node.value for node in nodes[place:] if node.type in kinds))


def unescaped(text: str) -> str:
    return text.replace("\\", "")


def read_answer(answer: Answer) -> str:
    """Return all texts of an answer, without Markdown's backslashes."""
    numbers = [f"{number.label} {number.text} {number.note}" for number in answer.numbers]
    facts = [f"{name}: {sentence}" for name, sentence in answer.all_facts]
    proofs = [f"{ended} {proof.sentence}" for _, proof, ended in answer.proofs]
    texts = [answer.headline, answer.detail, *numbers, *facts, *proofs, *answer.all_assumptions]
    return unescaped("\n".join(texts))


def shown_texts(at: AppTest) -> str:
    """Every text of the page, without Markdown's backslashes."""
    return unescaped(raw_texts(at))


def raw_texts(at: AppTest) -> str:
    """Every text of the page, as Markdown and LaTeX."""
    kinds = (
        at.title,
        at.header,
        at.subheader,
        at.markdown,
        at.caption,
        at.info,
        at.error,
        at.warning,
        at.code,
    )
    metrics = [" ".join(metric) for metric in metrics_of(at)]
    return "\n".join([*(str(e.value) for kind in kinds for e in kind), *metrics])


def link_of(at: AppTest) -> str:
    """The link that the shell offers."""
    (link,) = [str(code.value) for code in at.code if f"{links.VERSION_FIELD}={links.VERSION}" in code.value]
    return link


def address_of(at: AppTest) -> dict[str, str]:
    """The fields that the page puts into the browser's address."""
    return dict(parse_qsl(json.loads(at.get_by_key("address").proto.json)["query"]))


def chart(at: AppTest, key: str) -> dict[str, Any]:
    """The figure with this key, as Plotly gets it."""
    spec: dict[str, Any] = json.loads(at.get_by_key(shared_figure.KEY_BEGINS + key).proto.bytes)["figure"]
    return spec


def figure_keys(at: AppTest) -> list[str]:
    """The keys of all figures on the page."""
    # An element's id is a digest and its key.
    keys_of_all = [element.proto.id.split("-", 2)[2] for element in at.get("bidi_component")]
    begins = shared_figure.KEY_BEGINS
    return [key.removeprefix(begins) for key in keys_of_all if key.startswith(begins)]


def trace(figure: dict[str, Any], name: str) -> tuple[np.ndarray, np.ndarray]:
    """(x, y) of the only trace of this name."""
    (plot_trace,) = [t for t in figure["data"] if t.get("name") == name]
    return numbers(plot_trace["x"]), numbers(plot_trace["y"])


def numbers(field: Any) -> np.ndarray:
    """Plotly's arrays are lists or base64."""
    if isinstance(field, dict):
        return np.frombuffer(base64.b64decode(field["bdata"]), dtype=np.dtype(field["dtype"]))
    return np.asarray(field, dtype=np.float64)


def answer_of(at: AppTest, card: str) -> dict[str, Any]:
    """The large number of an answer card: its label, value and unit, what is copied, and the parts of its error."""
    answer: dict[str, Any] = json.loads(at.get_by_key(cards.LARGE_BEGINS + card).proto.json)
    return answer


def words_of_numbers(at: AppTest) -> str:
    """What stands in and behind all key numbers and grids of numbers: labels, units, notes, and what explains them."""
    begins = (f"-{cards.GRID_BEGINS}", f"-{cards.LARGE_BEGINS}")
    payloads = [
        e.proto.json for e in at.get("bidi_component") if any(begin in e.proto.id for begin in begins)
    ]
    return "\n".join(_strings(json.loads(text) for text in payloads))


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    within = (
        value.values() if isinstance(value, dict) else () if isinstance(value, int | float | None) else value
    )
    return [text for part in within for text in _strings(part)]


class Metric(NamedTuple):
    """A number that a page shows with a label."""

    label: str
    value: str
    note: str


def metrics_of(at: Any) -> list[Metric]:
    """The numbers behind an answer, and single ones beside figures, of a page or of a part of it."""
    grids = [e.proto for e in at.get("bidi_component") if f"-{cards.GRID_BEGINS}" in e.proto.id]
    grid_numbers = [one for proto in grids for one in json.loads(proto.json)]
    single = [Metric(one.label, one.value, one.delta) for one in at.metric]
    return [*(Metric(one["label"], one["value"], one["note"]) for one in grid_numbers), *single]


def with_data(at: AppTest, brought: Dataset, kind: str = session.UPLOADED) -> AppTest:
    """The session with these data in use, as after an upload, without its widgets. The page is not run."""
    with unittest.mock.patch.object(st, "session_state", at.session_state):
        session.use(session.LoadedData(brought, session.Origin(kind)))
    return at
