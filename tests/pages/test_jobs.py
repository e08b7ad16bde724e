"""Work beside the page: it ends with a result, a stop is a result, and an error is not lost."""

from __future__ import annotations

import threading
import time

import pytest

from pages.shared.jobs import Job
from tests.pages.driving import PATIENCE


def test_work_reports_and_ends():
    job = Job("question")
    assert job.running

    def work(progress, should_stop):
        progress(0.25)
        assert job.progress == 0.25
        progress(7.0)
        assert not should_stop()
        return 42

    job.run(work)
    assert (job.running, job.result, job.progress, job.error) == (False, 42, 1.0, None)


def test_a_stop_is_heard_while_the_work_runs():
    job, begun = Job(None), threading.Event()

    def work(progress, should_stop):
        begun.set()
        while not should_stop():
            time.sleep(0.001)
        return "what there was"

    thread = threading.Thread(target=job.run, args=(work,))
    thread.start()
    assert begun.wait(PATIENCE)
    assert job.running
    job.stop()
    job.wait(PATIENCE)
    thread.join(PATIENCE)
    assert (job.running, job.result) == (False, "what there was")


def test_an_error_is_kept_for_the_page():
    job = Job(None)

    def work(progress, should_stop):
        raise ValueError("lost?")

    job.run(work)
    assert not job.running
    with pytest.raises(ValueError, match="lost"):
        raise job.error
