"""Work beside the page: it ends with a result, a stop is a result, and an error is not lost."""

from __future__ import annotations

import asyncio
import errno
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from dpcore.answer.section import Search
from dpcore.common.checks import InputProblem, InvalidInput
from pages.shared.base import cache, page_run
from pages.shared.base.cache import ResultStore
from pages.shared.fields import jobs, searches
from pages.shared.fields.jobs import Job
from pages.shared.server import server
from tests.pages.driving import RUN_SECONDS, errors, finish, open_app, read_number, shown_texts, wait_until


def test_work_reports_and_ends():
    job = Job("question")
    assert job.is_running

    def work(progress, should_stop):
        progress(0.25, (1,))
        progress(0.4)
        assert (job.progress_share, job.partial_result) == (0.4, (1,))
        progress(7.0, (1, 2))
        assert job.partial_result == (1, 2)
        assert not should_stop()
        return 42

    job.run(work)
    assert (job.is_running, job.result, job.progress_share, job.input_problems) == (False, 42, 1.0, ())


def test_a_stop_is_heard_while_the_work_runs():
    job, begun = Job(None), threading.Event()

    def work(progress, should_stop):
        begun.set()
        while not should_stop():
            time.sleep(0.001)
        return "what there was"

    thread = threading.Thread(target=job.run, args=(work,))
    thread.start()
    assert begun.wait(RUN_SECONDS)
    assert job.is_running
    job.stop()
    job.wait(RUN_SECONDS)
    thread.join(RUN_SECONDS)
    assert (job.is_running, job.result) == (False, "what there was")


def test_a_server_that_ends_stops_all_work():
    running, waiting, begun = Job(1, is_heavy=True), Job(2, is_heavy=True), threading.Event()

    def work(_tell, should_stop):
        begun.set()
        while not should_stop():
            time.sleep(0.001)

    async def serve():
        async with server.lifespan(None):
            threading.Thread(target=running.run, args=(work,), daemon=True).start()
            wait_until(begun.is_set)
            threading.Thread(target=waiting.run, args=(work,), daemon=True).start()
            wait_until(lambda: waiting.is_waiting)

    with ThreadPoolExecutor() as thread:  # Playwright leaves a running loop in the worker's main thread.
        thread.submit(asyncio.run, serve()).result()
    running.wait(RUN_SECONDS)
    waiting.wait(RUN_SECONDS)
    assert (running.is_running, waiting.is_running) == (False, False)


def test_of_heavy_work_one_piece_runs_at_a_time():
    first, second, light = Job(1, is_heavy=True), Job(2, is_heavy=True), Job(3)
    order, go_on = [], threading.Event()

    def work_of(job):
        def work(tell, should_stop):
            order.append(f"{job.request} begins")
            while not (go_on.is_set() or should_stop()):
                time.sleep(0.001)
            order.append(f"{job.request} ends")
            return job.request

        return work

    def begin(job):
        thread = threading.Thread(target=job.run, args=(work_of(job),))
        thread.start()
        return thread

    threads = [begin(first)]
    wait_until(lambda: order)
    threads.append(begin(second))
    wait_until(lambda: second.is_waiting)
    light.stop()
    begin(light).join(RUN_SECONDS)
    assert order == ["1 begins", "3 begins", "3 ends"]
    assert (first.is_waiting, second.is_running) == (False, True)
    go_on.set()
    for thread in threads:
        thread.join(RUN_SECONDS)
    assert order == ["1 begins", "3 begins", "3 ends", "1 ends", "2 begins", "2 ends"]
    assert (second.is_waiting, second.result) == (False, 2)
    third = Job(4, is_heavy=True)  # The turn was given back.
    third.run(work_of(third))
    assert third.result == 4


def test_heavy_work_that_is_stopped_while_it_waits_ends_and_leaves_the_turn_to_others():
    job, waits, go_on = Job(None, is_heavy=True), Job(None, is_heavy=True), threading.Event()
    thread = threading.Thread(target=job.run, args=(lambda tell, stop: go_on.wait(RUN_SECONDS),))
    thread.start()
    wait_until(lambda: cache.HEAVY_QUEUE.has_no_free_turn)
    other = threading.Thread(target=waits.run, args=(lambda tell, stop: "stopped" if stop() else "ran",))
    other.start()
    wait_until(lambda: waits.is_waiting)
    waits.stop()
    other.join(RUN_SECONDS)
    assert (waits.result, job.is_running) == ("stopped", True)
    go_on.set()
    thread.join(RUN_SECONDS)
    assert not cache.HEAVY_QUEUE.has_no_free_turn


def failing(error):
    def work(progress, should_stop):
        raise error

    job = Job(None)
    job.run(work)
    assert not job.is_running
    assert job.result is None
    return job


@pytest.mark.parametrize(
    ("error", "says", "again"),
    [
        (InvalidInput([InputProblem("the cell is blank", "line 3")]), "Line 3: the cell is blank.", False),
        (OSError(errno.ENOSPC, "No space left on device"), "The temporary folder is full. Free space", True),
        (FileNotFoundError(2, "No such file or directory", "/s3cr3t"), "is no longer there", True),
        (PermissionError(13, "Permission denied", "/s3cr3t"), "read or written (permission denied)", True),
        (MemoryError(), "There is not enough memory", True),
        (KeyError("s3cr3t"), "An error that nobody foresaw ended this (KeyError, test_jobs.py line", True),
    ],
)
def test_every_error_is_kept_as_a_sentence_that_quotes_nothing(error, says, again):
    job = failing(error)
    (problem,) = job.input_problems
    assert says in problem.sentence
    assert "s3cr3t" not in problem.sentence
    assert (job.has_failed, job.retry_work is not None) == (True, again)


def test_work_ends_once_its_session_is_lost_for_long_enough(monkeypatch):
    now, lost, stopped_before = [0.0], [True, False, True, True, True, True], []
    monkeypatch.setattr(jobs, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(jobs, "_CHECK_SECONDS", 0.0)
    job = Job(None)

    def is_lost():
        now[0] += 2.0
        stopped_before.append(job._stop_event.is_set())
        return lost[len(stopped_before) - 1]

    # Lost at 2, there again at 4, lost from 6 on: five seconds later it is asked at 12.
    job.stop_when_lost(is_lost, jobs.LOST_SECONDS)
    assert stopped_before == [False] * 6
    assert job._stop_event.is_set()


def test_work_of_a_session_that_nobody_is_connected_to_is_stopped(monkeypatch):
    connected = {"ours"}
    runtime = SimpleNamespace(is_active_session=connected.__contains__)
    monkeypatch.setattr("streamlit.runtime.Runtime.instance", lambda: runtime)
    monkeypatch.setattr(jobs.streamlit_internals, "get_session_id", lambda: "ours")
    monkeypatch.setattr(jobs, "LOST_SECONDS", 0.0)
    app = SimpleNamespace(session_state={})
    monkeypatch.setattr(jobs, "st", app)
    monkeypatch.setattr(searches, "st", app)

    def work(progress, should_stop):
        while not should_stop():
            time.sleep(0.001)
        return "what there was"

    question = SimpleNamespace(name="page", get_key=lambda name: name)
    search = Search("job", "question", work, "Working", first_wait_seconds=0.0, later_wait_seconds=0.0)
    run = searches.SearchRun(question, search, SimpleNamespace(digest="data"))
    monkeypatch.setattr(jobs.cache, "get_result_store", lambda *_: ResultStore(0))
    run.start_if_needed()
    job = run.job
    assert job.is_running
    connected.clear()
    job.wait(RUN_SECONDS)
    assert jobs.find_result("job") == (("data", "question"), "what there was")
    # What a page searches by itself begins anew; what a person stopped stays as it is.
    connected.add("ours")
    run.start_if_needed()
    assert run.job is not job
    job = run.job
    job.stop()
    job.wait(RUN_SECONDS)
    run.start_if_needed()
    assert run.job is job


def test_a_page_says_that_work_was_stopped_as_the_connection_was_lost():
    def page():
        from pages.shared.fields import jobs

        jobs.show_progress("job", "Working")

    app = AppTest.from_function(page, default_timeout=600)
    job = app.session_state["job"] = Job(None)
    thread = threading.Thread(target=job.run, args=(lambda tell, stop: wait_until(stop),))
    thread.start()
    job.stop_when_lost(lambda: True, 0.0)
    thread.join(RUN_SECONDS)
    assert "page was lost" in app.run().info[0].value
    again = app.session_state["job"] = Job(None)
    again.run(lambda tell, stop: None)
    assert not app.run().info


def test_work_goes_on_while_somebody_is_connected():
    job, was_asked = Job(None), threading.Event()

    def is_lost():
        was_asked.set()
        return False

    watcher = threading.Thread(target=job.stop_when_lost, args=(is_lost, 0.01))
    watcher.start()
    assert was_asked.wait(RUN_SECONDS)
    job.run(lambda progress, should_stop: should_stop())
    watcher.join(RUN_SECONDS)
    assert not watcher.is_alive()
    assert job.result is False


PAGES = {
    "Quantile": ("quantile.search_job",),
    "Linear regression": ("regression.solve", "regression.caps"),
    "Classifier": ("training.runs_job",),
}


@pytest.mark.long
@pytest.mark.parametrize("title", PAGES)
def test_a_page_says_why_its_work_failed_and_tries_again(monkeypatch, title):
    run = Job.run

    def fails(progress, should_stop):
        raise ZeroDivisionError("s3cr3t")

    def run_and_fail(job, work):
        run(job, fails)
        job.retry_work = work

    with monkeypatch.context() as patched:
        patched.setattr(Job, "run", run_and_fail)
        app = open_app(title, link="1", data="shop-events", epsilon="1")
        app = finish(app, *PAGES[title])  # What a page starts by itself is not started over and over.
    error_text = errors(app)
    assert error_text.count("An error that nobody foresaw ended this (ZeroDivisionError") == len(PAGES[title])
    assert "s3cr3t" not in error_text
    for key in PAGES[title]:
        app.button(key=f"{key}_retry").click().run()
    app = finish(app, *PAGES[title])
    assert "nobody foresaw" not in errors(app)
    assert all(app.session_state[key].result is not None for key in PAGES[title])


@pytest.mark.long
@pytest.mark.parametrize(
    ("title", "key", "doing"),
    [("Linear regression", "regression_card", "stopped"), ("Quantile", "quantile_card", "A first answer")],
)
def test_work_that_ends_between_two_looks_of_a_page_is_shown_whole(
    monkeypatch: pytest.MonkeyPatch, title: str, key: str, doing: str
) -> None:
    event, run, result_of = threading.Event(), jobs.Job.run, jobs.find_result

    def hold(job: jobs.Job, work: jobs.Work) -> None:
        event.wait(RUN_SECONDS)
        run(job, work)

    def look(name: str) -> object:
        result = result_of(name)
        event.set()
        job: jobs.Job = st.session_state[name]
        job._done_event.wait(RUN_SECONDS)
        return result

    monkeypatch.setattr(jobs.Job, "run", hold)
    monkeypatch.setattr(jobs, "find_result", look)
    app = open_app(title)
    assert event.is_set()
    assert read_number(app, key)["value"]
    assert doing not in shown_texts(app)


def test_work_that_ends_waits_with_a_run_of_the_page_until_nobody_reads_a_dialog(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runs: list[bool] = []
    state: dict[str, object] = {}
    app = SimpleNamespace(session_state=state, rerun=lambda: runs.append(True))
    monkeypatch.setattr(jobs, "st", app)
    monkeypatch.setattr(page_run, "st", app)
    state["work"] = job = Job("question", was_read_early=True)
    job.run(lambda tell, stop: 42)
    page_run.request_dialog(lambda: None)
    jobs.rerun_if_ended("work")
    page_run.open_requested_dialog()
    jobs.rerun_if_ended("work")
    assert not runs
    page_run.note_dialog_closed()
    jobs.rerun_if_ended("work")
    assert runs
    jobs.rerun_if_ended("work")
    assert len(runs) == 1
