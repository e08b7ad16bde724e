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
BESIDE = 8.0
"""Seconds that work beside a page is watched."""
Case = tuple[dict[str, str], str]


def contexts(kind: Any) -> Iterator[dict[str, str]]:
    """Settings under which a field may be in use: the first ones, and every choice of one other field."""
    hints = list_field_types(kind)
    ranges: list[dict[str, str]] = [{}] + ([{"lower": "0", "upper": "1"}] if "lower" in hints else [])
    for given in ranges:
        yield {"epsilon": "1"} | given
        for name, hint in hints.items():
            for one in typing.get_args(hint) or (hint,):
                if isinstance(one, type) and issubclass(one, enum.Enum):
                    yield from ({"epsilon": "1", name: str(value.value)} | given for value in one)


def ends(kind: Any, name: str) -> list[Case]:
    """The largest and the least value that a number may have, each with a setting that allows it."""
    hint = list_field_types(kind)[name]
    kinds = typing.get_args(hint) or (hint,)
    if int not in kinds and float not in kinds:
        return []
    whole = float not in kinds
    needed = {
        f.name: {"lower": "0"}.get(f.name, "1")
        for f in fields(kind)
        if f.init and f.default is MISSING and f.default_factory is MISSING
    }

    def asked(given: dict[str, str], value: float) -> tuple[str, str]:
        text = str(int(value)) if whole else repr(float(value))
        try:
            from_fields(kind, needed | given | {name: text})
        except InvalidInput as refused:
            return "", " ".join(problem.sentence for problem in refused.problems)
        return text, ""

    def end(given: dict[str, str], sign: int) -> str:
        found, said = asked(given, sign * (1e18 if whole else 1e300))
        if not found and (stated := re.search(r"between (\S+) and (\S+?)[;.]", said)):
            number = stated[2 if sign > 0 else 1].replace(",", "").replace("−", "-").replace("×10", "e")
            try:
                found, _ = asked(given, float(number))
            except ValueError:  # A word stands there.
                found = ""
        tried = [digit * 10.0**power for power in range(18, -13, -1) for digit in (9, 5, 2, 1)]
        for value in tried if sign > 0 else [-1e12, -1e6, -1.0, 0.0, *reversed(tried)]:
            if found:
                break
            if not whole or value == int(value):
                found, _ = asked(given, value)
        return found

    largest = [(given, found) for given in contexts(kind) if (found := end(given, 1))]
    least = [(given, found) for given in contexts(kind) if (found := end(given, -1))]
    if not largest:
        return []
    return [max(largest, key=lambda case: float(case[1])), min(least, key=lambda case: float(case[1]))]


def megabytes(what: str) -> float:
    """A line of this process's state."""
    return int(re.search(what + r":\s+([0-9]+)", Path("/proc/self/status").read_text())[1]) / 1024  # type: ignore[index]


def looked_at(title: str, link: dict[str, str]) -> dict[str, Any]:
    """What opening a page takes, in a process of its own."""
    out, into = os.pipe()
    if (child := os.fork()) == 0:
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
        found: dict[str, Any] = {}
        try:
            Path("/proc/self/clear_refs").write_text("5")  # The peak begins anew.
            before, began = megabytes("VmRSS"), time.process_time()
            at = driving.begin(title, **link)
            found["seconds"] = round(time.process_time() - began, 2)
            held = at.session_state._state.filtered_state.values()
            work = [one for one in held if isinstance(one, jobs.Job)]
            until = time.monotonic() + BESIDE
            while any(job.is_running for job in work) and time.monotonic() < until:
                time.sleep(0.1)
            stopped = time.monotonic()
            for job in work:
                job.stop()
            while any(job.is_running for job in work) and time.monotonic() < stopped + 30.0:
                time.sleep(0.05)
            found |= {
                "megabytes": round(megabytes("VmHWM") - before),
                "stopped": round(time.monotonic() - stopped, 1),
            }
        except BaseException as error:  # The process ends here, whatever it is.
            found["failed"] = repr(error)[:200]
        os.write(into, json.dumps(found).encode())
        os._exit(0)
    os.close(into)
    with os.fdopen(out) as answer:
        told = answer.read()
    os.waitpid(child, 0)
    return dict(json.loads(told)) if told else {"failed": "the process was killed"}


def main(names: list[str]) -> int:
    """Look at all cases; returns how many take too much."""
    driving.begin("Mean", **SAMPLE)  # What every page imports.
    bad = 0
    for spec in catalogue.PAGES:
        if spec.parameters is None or (names and spec.name not in names):
            continue
        driving.begin(spec.title, **SAMPLE, epsilon="1")
        found = {name: cases for name in ["epsilon", *spec.fields] if (cases := ends(spec.parameters, name))}
        asked = [{**given, name: text} for name, cases in found.items() for given, text in cases]
        for one, other in itertools.combinations(found, 2):
            (first, x), (second, y) = found[one][0], found[other][0]
            asked.append({**first, **second, one: x, other: y})
        most = {"seconds": 0.0, "megabytes": 0.0, "stopped": 0.0}
        for link in asked:
            took = looked_at(spec.title, SAMPLE | link)
            most = {name: max(most[name], took.get(name, 0.0)) for name in most}
            limits = {"seconds": SECONDS, "megabytes": MEGABYTES, "stopped": STOPPED}
            if "failed" in took or any(took[name] > limit for name, limit in limits.items()):
                bad += 1
                print(f"  too much: {spec.title}, {link}: {took}", flush=True)
        print(f"{spec.title}: {len(asked)} cases; at most {most}", flush=True)
    print(f"{bad} take more than {SECONDS:g} s, {MEGABYTES:g} MB, or {STOPPED:g} s to stop.")
    return bad


if __name__ == "__main__":
    main(sys.argv[1:])
