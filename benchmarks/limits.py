"""Every page with every number of its link at both ends of the range, and with every pair of them at their largest.

A page answers within two seconds of processor time and 500 MB, or works beside the page and stops when told to. Each
case runs in a process of its own, forked from one that has opened a page. Prints what takes more, and the largest.

    PYTHONPATH=. python benchmarks/limits.py [question ...]
"""

from __future__ import annotations

import enum
import itertools
import json
import os
import re
import resource
import sys
import time
import typing
from collections.abc import Iterator
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from dpcore.common.checks import InvalidInput
from dpcore.common.text_fields import from_fields, list_field_types
from pages.shared.base import catalogue
from pages.shared.fields import jobs
from tests.pages import driving

SAMPLE = {"link": "1", "data": "shop-events"}
SECONDS, MEGABYTES, STOPPED = 2.0, 500.0, 5.0
WATCH_SECONDS = 8.0
"""Seconds that work beside a page is watched."""
Case = tuple[dict[str, str], str]


def list_contexts(parameters_class: Any) -> Iterator[dict[str, str]]:
    """Yield settings under which a field may be in use: the first ones, and every choice of one other field."""
    hints = list_field_types(parameters_class)
    ranges: list[dict[str, str]] = [{}] + ([{"lower": "0", "upper": "1"}] if "lower" in hints else [])
    for range_fields in ranges:
        yield {"epsilon": "1"} | range_fields
        for name, hint in hints.items():
            for hint_class in typing.get_args(hint) or (hint,):
                if isinstance(hint_class, type) and issubclass(hint_class, enum.Enum):
                    yield from (
                        {"epsilon": "1", name: str(value.value)} | range_fields for value in hint_class
                    )


def list_extremes(parameters_class: Any, name: str) -> list[Case]:
    """Return the largest and the least value that a number may have, each with a setting that allows it."""
    hint = list_field_types(parameters_class)[name]
    kinds = typing.get_args(hint) or (hint,)
    if int not in kinds and float not in kinds:
        return []
    is_integer = float not in kinds
    required_fields = {
        f.name: {"lower": "0"}.get(f.name, "1")
        for f in fields(parameters_class)
        if f.init and f.default is MISSING and f.default_factory is MISSING
    }

    def try_value(context: dict[str, str], value: float) -> tuple[str, str]:
        """Return the value's text and no refusal, or no text and the refusal."""
        text = str(int(value)) if is_integer else repr(float(value))
        try:
            from_fields(parameters_class, required_fields | context | {name: text})
        except InvalidInput as refused:
            return "", " ".join(problem.sentence for problem in refused.problems)
        return text, ""

    def find_extreme(context: dict[str, str], sign: int) -> str:
        """Return the text of the largest value that is accepted (of the least if ``sign`` is -1); empty if none is."""
        accepted_text, refusal = try_value(context, sign * (1e18 if is_integer else 1e300))
        if not accepted_text and (stated_range := re.search(r"between (\S+) and (\S+?)[;.]", refusal)):
            number = stated_range[2 if sign > 0 else 1].replace(",", "").replace("−", "-").replace("×10", "e")
            try:
                accepted_text, _ = try_value(context, float(number))
            except ValueError:  # A word stands there.
                accepted_text = ""
        magnitudes = [digit * 10.0**power for power in range(18, -13, -1) for digit in (9, 5, 2, 1)]
        for value in magnitudes if sign > 0 else [-1e12, -1e6, -1.0, 0.0, *reversed(magnitudes)]:
            if accepted_text:
                break
            if not is_integer or value == int(value):
                accepted_text, _ = try_value(context, value)
        return accepted_text

    largest_cases = [
        (context, accepted_text)
        for context in list_contexts(parameters_class)
        if (accepted_text := find_extreme(context, 1))
    ]
    least_cases = [
        (context, accepted_text)
        for context in list_contexts(parameters_class)
        if (accepted_text := find_extreme(context, -1))
    ]
    if not largest_cases:
        return []
    return [
        max(largest_cases, key=lambda case: float(case[1])),
        min(least_cases, key=lambda case: float(case[1])),
    ]


def read_megabytes(field: str) -> float:
    """Return a line of this process's state, in megabytes."""
    return int(re.search(field + r":\s+([0-9]+)", Path("/proc/self/status").read_text())[1]) / 1024  # type: ignore[index]


def measure_page(title: str, link: dict[str, str]) -> dict[str, Any]:
    """Measure what opening a page takes, in a process of its own."""
    read_end, write_end = os.pipe()
    if (child := os.fork()) == 0:
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
        measurements: dict[str, Any] = {}
        try:
            Path("/proc/self/clear_refs").write_text("5")  # The peak begins anew.
            memory_before, began = read_megabytes("VmRSS"), time.process_time()
            app = driving.begin(title, **link)
            measurements["seconds"] = round(time.process_time() - began, 2)
            session_values = app.session_state._state.filtered_state.values()
            work = [session_value for session_value in session_values if isinstance(session_value, jobs.Job)]
            until = time.monotonic() + WATCH_SECONDS
            while any(job.is_running for job in work) and time.monotonic() < until:
                time.sleep(0.1)
            stopped = time.monotonic()
            for job in work:
                job.stop()
            while any(job.is_running for job in work) and time.monotonic() < stopped + 30.0:
                time.sleep(0.05)
            measurements |= {
                "megabytes": round(read_megabytes("VmHWM") - memory_before),
                "stopped": round(time.monotonic() - stopped, 1),
            }
        except BaseException as error:  # The process ends here, whatever it is.
            measurements["failed"] = repr(error)[:200]
        os.write(write_end, json.dumps(measurements).encode())
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as reply_file:
        reply = reply_file.read()
    os.waitpid(child, 0)
    return dict(json.loads(reply)) if reply else {"failed": "the process was killed"}


def main(names: list[str]) -> int:
    """Measure all cases; return how many take too much."""
    driving.begin("Mean", **SAMPLE)  # What every page imports.
    bad = 0
    for spec in catalogue.PAGES:
        if spec.parameters_type is None or (names and spec.name not in names):
            continue
        driving.begin(spec.title, **SAMPLE, epsilon="1")
        cases_by_field = {
            name: cases
            for name in ["epsilon", *spec.fields]
            if (cases := list_extremes(spec.parameters_type, name))
        }
        links = [{**context, name: text} for name, cases in cases_by_field.items() for context, text in cases]
        for first_field, second_field in itertools.combinations(cases_by_field, 2):
            (first_context, x), (second_context, y) = (
                cases_by_field[first_field][0],
                cases_by_field[second_field][0],
            )
            links.append({**first_context, **second_context, first_field: x, second_field: y})
        largest = {"seconds": 0.0, "megabytes": 0.0, "stopped": 0.0}
        for link in links:
            took = measure_page(spec.title, SAMPLE | link)
            largest = {name: max(largest[name], took.get(name, 0.0)) for name in largest}
            limits = {"seconds": SECONDS, "megabytes": MEGABYTES, "stopped": STOPPED}
            if "failed" in took or any(took[name] > limit for name, limit in limits.items()):
                bad += 1
                print(f"  too much: {spec.title}, {link}: {took}", flush=True)
        print(f"{spec.title}: {len(links)} cases; at most {largest}", flush=True)
    print(f"{bad} take more than {SECONDS:g} s, {MEGABYTES:g} MB, or {STOPPED:g} s to stop.")
    return bad


if __name__ == "__main__":
    main(sys.argv[1:])
