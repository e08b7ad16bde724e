"""Light work: so many pieces at a time, pages before it, and in a fair order."""

from __future__ import annotations

import itertools
import threading
import time
from types import SimpleNamespace

import pytest

from pages.shared.base import cache
from pages.shared.fields import jobs
from pages.shared.fields.jobs import Job
from tests.pages.driving import RUN_SECONDS, wait_until


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> cache.WorkQueue:
    """A line of the test's own, in which one computes at a time, and no page is at work."""
    pages = cache.RunningPages()
    queue = cache.WorkQueue(1, pages)
    monkeypatch.setattr(cache, "RUNNING_PAGES", pages)
    monkeypatch.setattr(cache, "LIGHT_QUEUE", queue)
    monkeypatch.setattr(jobs, "st", SimpleNamespace(session_state={}))
    return queue


class Searches:
    """Works that note when they compute, and go on one step at a time when they are let."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self.at_once = self.most = 0
        self.lock, self.go_on = threading.Lock(), threading.Event()

    def work(self, name: str, steps: int = 1) -> jobs.Work:
        def work(tell: jobs.Progress, should_stop: jobs.ShouldStop) -> str:
            for step in range(steps):
                if should_stop():
                    return f"{name} stopped"
                with self.lock:
                    self.at_once += 1
                    self.most = max(self.most, self.at_once)
                    self.order.append(f"{name}{step}")
                assert self.go_on.wait(RUN_SECONDS)
                with self.lock:
                    self.at_once -= 1
            return name

        return work

    def start(self, key: str, name: str, steps: int = 1) -> Job:
        return jobs.start_job(key, name, self.work(name, steps), 0.0, is_light=True)


def test_only_so_many_compute_at_once_and_all_end(line: cache.WorkQueue) -> None:
    searches = Searches()
    first = searches.start("of a", "a")
    wait_until(lambda: searches.order)
    others = [searches.start(f"of {name}", name) for name in "bcdefg"]
    wait_until(lambda: all(job.is_waiting for job in others))
    assert (first.is_waiting, searches.order) == (False, ["a0"])
    searches.go_on.set()
    for job in (first, *others):
        job.wait(RUN_SECONDS)
    assert [job.result for job in (first, *others)] == list("abcdefg")
    assert searches.most == 1
    assert sorted(searches.order) == [f"{name}0" for name in "abcdefg"]
    assert not any(job.is_waiting for job in others)


def test_whoever_asked_first_computes_first_and_a_question_asked_anew_keeps_its_place(
    line: cache.WorkQueue,
) -> None:
    searches = Searches()
    running = searches.start("of a", "a")
    wait_until(lambda: searches.order)
    old = searches.start("of b", "old")
    wait_until(lambda: old.is_waiting)
    later = searches.start("of c", "c")
    wait_until(lambda: later.is_waiting)
    new = searches.start("of b", "new")
    wait_until(lambda: new.is_waiting and not old.is_running)
    assert (old.result, old.input_problems) == (None, ())
    searches.go_on.set()
    for job in (running, new, later):
        job.wait(RUN_SECONDS)
    # What the session does not ask any more was never computed.
    assert searches.order == ["a0", "new0", "c0"]


def test_a_stop_while_it_waits_ends_it_with_what_a_stopped_search_returns(line: cache.WorkQueue) -> None:
    searches = Searches()
    running = searches.start("of a", "a")
    wait_until(lambda: searches.order)
    waits = searches.start("of b", "b")
    wait_until(lambda: waits.is_waiting)
    waits.stop()
    waits.wait(RUN_SECONDS)
    assert (waits.result, running.is_running) == ("b stopped", True)
    assert jobs.find_result("of b") == ("b", "b stopped")
    searches.go_on.set()
    running.wait(RUN_SECONDS)
    again = searches.start("of b", "b")  # The turn was given back once, not twice.
    again.wait(RUN_SECONDS)
    assert (again.result, searches.most) == ("b", 1)


def test_a_failure_gives_the_turn_back(line: cache.WorkQueue) -> None:
    def fails(tell: jobs.Progress, should_stop: jobs.ShouldStop) -> None:
        raise ZeroDivisionError

    failed = jobs.start_job("of a", "a", fails, RUN_SECONDS, is_light=True)
    assert failed.has_failed
    searches = Searches()
    searches.go_on.set()
    after = searches.start("of b", "b")
    after.wait(RUN_SECONDS)
    assert after.result == "b"


def test_long_work_hands_its_turn_on_and_gets_it_back() -> None:
    now = [0.0]
    line = cache.WorkQueue(1, cache.RunningPages(), lambda: now[0])
    long, brief, late = line.create_entry(), line.create_entry(), line.create_entry()
    order: list[str] = []

    def never() -> bool:
        return False

    def take(name: str, place: cache.QueueEntry) -> threading.Thread:
        def enter() -> None:
            line.wait_for_turn(place, never)
            order.append(name)
            line.end_turn()

        thread = threading.Thread(target=enter)
        thread.start()
        wait_until(lambda: place.is_waiting)
        return thread

    assert line.wait_for_turn(long, never)
    now[0] = cache.TURN_SECONDS * 2
    assert line.give_way(long, never)  # Nobody waits.
    assert (long.turn_started_at, order) == (0.0, [])
    brief.rank_time = now[0]
    first = take("brief", brief)
    late.rank_time = now[0] + cache.REQUEUE_DELAY_SECONDS + 1.0
    second = take("late", late)
    now[0] = cache.TURN_SECONDS / 2
    assert line.give_way(long, never)  # Its turn is not over.
    assert order == []
    now[0] = cache.TURN_SECONDS * 2
    assert line.give_way(long, never)  # Back after the first, before the one that came later.
    first.join(RUN_SECONDS)
    assert order == ["brief"]
    line.end_turn()
    second.join(RUN_SECONDS)
    assert order == ["brief", "late"]


def test_long_work_that_is_stopped_while_it_waits_for_its_next_turn_ends(line: cache.WorkQueue) -> None:
    line._clock = itertools.count().__next__  # Every look at the clock is a turn later.
    searches, others = Searches(), Searches()
    long = searches.start("of a", "long", steps=1000)
    wait_until(lambda: searches.order)
    other = others.start("of b", "b")
    wait_until(lambda: other.is_waiting)
    searches.go_on.set()
    wait_until(lambda: long.is_waiting and others.order)
    long.stop()
    long.wait(RUN_SECONDS)
    assert (long.result, other.is_running) == ("long stopped", True)
    others.go_on.set()
    other.wait(RUN_SECONDS)
    after = searches.start("of c", "c")
    after.wait(RUN_SECONDS)
    wait_until(lambda: line._num_free == 1)
    assert (other.result, after.result) == ("b", "c")


def test_light_work_stands_back_at_a_step_while_a_page_computes_but_not_while_it_waits(
    line: cache.WorkQueue,
) -> None:
    searches = Searches()
    searches.go_on.set()
    with cache.RUNNING_PAGES.count_run():
        with cache.RUNNING_PAGES.count_run():  # A page within a page is one run.
            patient = Job("patient", is_light=True)
            patient._queue_entry.patience_seconds = RUN_SECONDS
            thread = threading.Thread(target=patient.run, args=(searches.work("patient", 3),))
            thread.start()
        assert searches.order == []
        assert not patient.is_waiting  # It waits for no other work.
        patient.wait(RUN_SECONDS)  # The page waits for it: it goes on.
    assert patient.result == "patient"
    thread.join(RUN_SECONDS)
    assert cache.RUNNING_PAGES._num_runs == 0


def test_light_work_stands_back_for_a_page_that_begins_later(line: cache.WorkQueue) -> None:
    begun, goes_on, steps = threading.Event(), threading.Event(), []

    def work(tell: jobs.Progress, should_stop: jobs.ShouldStop) -> str:
        begun.set()
        assert goes_on.wait(RUN_SECONDS)
        should_stop()
        steps.append("after the page")
        return "done"

    job = Job(None, is_light=True)
    job._queue_entry.patience_seconds = RUN_SECONDS
    thread = threading.Thread(target=job.run, args=(work,))
    thread.start()
    assert begun.wait(RUN_SECONDS)
    with cache.RUNNING_PAGES.count_run():
        goes_on.set()
        time.sleep(0.05)
        steps.append("the page")
    thread.join(RUN_SECONDS)
    assert (steps, job.result) == (["the page", "after the page"], "done")


def test_light_work_does_not_stand_back_for_ever(line: cache.WorkQueue) -> None:
    searches = Searches()
    searches.go_on.set()
    job = Job(None, is_light=True)
    job._queue_entry.patience_seconds = 0.01
    thread = threading.Thread(target=job.run, args=(searches.work("a", 5),))
    with cache.RUNNING_PAGES.count_run():
        thread.start()
        thread.join(RUN_SECONDS)
        assert job.result == "a"


def test_a_page_that_fails_is_no_more_at_work() -> None:
    pages = cache.RunningPages()
    with pytest.raises(ZeroDivisionError), pages.count_run():
        raise ZeroDivisionError
    assert pages._num_runs == 0
