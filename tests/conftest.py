"""What every test shares: Streamlit's caches, and the Hypothesis profiles."""

from __future__ import annotations

import contextlib
import gc
import itertools
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.assertion import rewrite
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from xdist.scheduler import LoadScopeScheduling

from tests.cells import choose_telling, leave_named, spread_evenly

# Before NumPy is imported. Linear algebra here is on small matrices, and with a worker per core, threads beyond one
# wait for each other: opening Regression took 1.4 s instead of 0.3. Servers and programs that tests start inherit it.
for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
    os.environ.setdefault(_threads, "1")
# OpenDP's searches meet errors that they expect. To look up the stack of each takes Rust .1 s.
os.environ.setdefault("RUST_LIB_BACKTRACE", "0")

# What is imported and collected stays: until that is done, looking for what could be let go of is in vain.
gc.disable()

# Timings on a busy machine are not a property of the code: no deadline, and examples may be slow to draw.
# A landing must not depend on luck, so the same examples come in every run. `make test-search` searches afresh, with
# many times the examples; what it finds becomes an explicit `@example` beside the mend.
settings.register_profile(
    "landing", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True, print_blob=True
)
settings.register_profile("search", settings.get_profile("landing"), derandomize=False)
SEARCHING = os.environ.get("SWEETSPOT_SEARCH", "")
FEW, SHARE = 10, 1 / 5
"""Of the examples that a test asks for, a landing draws this share, and at least so many: the same ones come again and
again there, and it is for `make test-search` to look further."""
settings.load_profile("search" if SEARCHING else "landing")
if not SEARCHING:
    # Hypothesis draws from the constants of all modules of ours that are loaded. A new number anywhere, or another test
    # that ran before on the same worker, would change the examples. It has no public way to leave them out.
    with contextlib.suppress(AttributeError):
        _no_constants = providers._local_constants
        providers._get_local_constants = lambda: _no_constants


def _turn(item: pytest.Item) -> int:
    """Return when a test runs: first what waits for a browser or processes, last the core, whose files are short."""
    _, *folders, _ = item.nodeid.partition("::")[0].split("/")
    return {"browser": 0, "": 1, "pages": 2}.get("".join(folders[:1]), 3)


def _mark_long(items: list[pytest.Item]) -> None:
    """Leave to `make test-long` what the markers `thinned`, `few`, `long_but` and `long_for` say."""
    products: dict[str, list[pytest.Function]] = {}
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            products.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for name, functions in products.items():
        # One name per list of parameters. pytest counts their indices anew for each test.
        cells = [tuple(function.callspec._idlist) for function in functions]
        chosen = choose_telling(cells) if functions[0].get_closest_marker("thinned") else {*cells}
        ids_by_marker = {
            marker.name: {*marker.args}
            for marker in functions[0].iter_markers()
            if marker.name in ("long_but", "long_for")
        }
        ids = [function.callspec.id for function in functions]
        named = leave_named(ids, ids_by_marker)
        quick_functions = [
            function
            for function, cell in zip(functions, cells, strict=True)
            if cell in chosen and function.callspec.id not in named
        ]
        if (few := functions[0].get_closest_marker("few")) is not None:
            quick_functions = spread_evenly(quick_functions, few.args[0])
        for function in functions:
            if function not in quick_functions:
                function.add_marker(pytest.mark.long)
        unknown = {*itertools.chain(*ids_by_marker.values())}.difference(ids)
        if unknown and not any("::" in argument for argument in functions[0].config.args):
            raise pytest.UsageError(f"{name} has no {', '.join(sorted(unknown))}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put files first that take long; while searching, as many times the examples as ``SWEETSPOT_SEARCH`` says."""
    items.sort(key=_turn)
    _mark_long(items)
    for test in {item.obj for item in items if hasattr(getattr(item, "obj", None), "hypothesis")}:
        wanted_settings = getattr(test, "_hypothesis_internal_use_settings", settings.default)
        num_examples = wanted_settings.max_examples
        num_examples = (
            num_examples * int(SEARCHING)
            if SEARCHING
            else max(int(SHARE * num_examples), min(num_examples, FEW))
        )
        test._hypothesis_internal_use_settings = settings(wanted_settings, max_examples=num_examples)


def pytest_configure(config: pytest.Config) -> None:
    """Share among the workers what they would each do for all files: rewrite the asserts of files that changed.

    On a fresh checkout that takes 6 s of processor time a worker. pytest has no public way to do it ahead; where its
    own functions are not as in version 9, each worker does it for itself.
    """
    worker: dict[str, Any] | None = getattr(config, "workerinput", None)
    if worker is None or sys.dont_write_bytecode:
        return
    number, count = int(worker["workerid"].removeprefix("gw")), int(worker["workercount"])
    # What is wrong with a file, pytest says when it collects it.
    with contextlib.suppress(AttributeError, KeyError, OSError, SyntaxError, TypeError, ValueError):
        state = config.stash[rewrite.assertstate_key]
        for path in sorted(Path(__file__).parent.rglob("test_*.py"))[number::count]:
            folder = rewrite.get_cache_dir(path)
            cached = folder / f"{path.stem}{rewrite.PYC_TAIL}"
            if rewrite.try_makedirs(folder) and rewrite._read_pyc(path, cached) is None:
                stat, code = rewrite._rewrite_test(path, config)
                rewrite._write_pyc(state, code, stat, cached)


def pytest_collection_finish() -> None:
    """Leave what was imported and collected out of garbage collection: 4 % of the time went into looking at it.

    For good: to let go of it took each worker 1.2 s of processor time at its end.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    gc.enable()


class ByFile(LoadScopeScheduling):
    """The tests of one file on one worker, where they share what was opened.

    Those in a browser run on one worker, which has a server and a browser; the long ones on two.

    xdist's own `loadgroup` does not group under pytest 9.2: every worker started a server and a browser of its own,
    and a module's tests shared little.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        if not file.startswith("tests/browser/"):
            return file
        if self.config.option.markexpr == "long" and file.endswith(MANY_PAGES):
            return "many pages"
        return "browser"


MANY_PAGES = (
    "test_files.py",
    "test_first_screen.py",
    "test_journeys.py",
    "test_looks.py",
    "test_report.py",
)
"""About half of the processor time that the browser's long tests take."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByFile:
    """Begin with what takes longest, in the order in which the tests are collected."""
    config.option.loadscopereorder = False
    return ByFile(config, log)


@pytest.fixture(autouse=True)
def fresh_streamlit_caches(request: pytest.FixtureRequest) -> Iterator[None]:
    """Clear the caches around a test that replaces functions; all other tests of a worker share what is cached.

    Everything cached is keyed by its data and its question, so that a test answered with what another one asked
    shows a key that lacks something.
    """
    replaces_functions = "monkeypatch" in request.fixturenames
    if replaces_functions:
        _clear_caches()
    yield
    if replaces_functions:
        _clear_caches()


@pytest.fixture(scope="module")
def few_subsamples() -> Iterator[None]:
    """Average a tenth of a cap's subsamples for a quantile: that says the same of words, figures and wiring."""
    from dpcore.quantile import mechanism, rows

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mechanism, "DEFAULT_SUBSAMPLES", 40)
        patch.setattr(rows, "MAX_SEARCH_SUBSAMPLES", 10)
        yield


def _clear_caches() -> None:
    streamlit = sys.modules.get("streamlit")
    if streamlit is not None:
        streamlit.cache_data.clear()
        streamlit.cache_resource.clear()
