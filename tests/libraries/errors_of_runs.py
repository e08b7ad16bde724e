"""The error of many runs of a library's whole program, beside the one that the call states."""

from __future__ import annotations

import csv
import json
import math
import sys
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dpcore as ss
from dpcore.code import write
from dpcore.common.privacy import Disclosure
from dpcore.common.programs import Program
from dpcore.contributions import ContributionHistogram
from dpcore.dataset import Dataset, Pairs
from tests.libraries import truth

RUNS = 50
NOISES: dict[str, dict[str, Any]] = {"Laplace": {}, "Gaussian": {"mechanism": "Gaussian", "delta": 1e-6}}


def check_stated_error(library: Program, noise: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Compare the error of users per product over 50 runs with the stated one.

    The 50 runs release 2,000 numbers. Their root mean square has a standard error of 2.5 % with Laplace and 1.6 % with
    Gaussian noise where noise is most of the error, as it is at this epsilon; 15 % is 6 of them or more.
    """
    with truth.EVENTS.open(newline="", encoding="utf-8") as lines:
        pairs = sorted({(row["user_id"], row["product"]) for row in csv.DictReader(lines)})
    (_, user_codes), (_, group_codes) = (
        np.unique(column, return_inverse=True) for column in zip(*pairs, strict=True)
    )
    users = Counter(group for _, group in pairs)
    ones = np.ones(len(pairs), dtype=np.int64)
    dataset = Dataset(
        "shop",
        "",
        Disclosure.PUBLIC,
        ContributionHistogram.from_counts(np.bincount(user_codes)),
        pairs=Pairs(user_codes, group_codes, len(users), "product", rows=ones),
    )
    reply = ss.group_bounds(dataset, statistic="users", epsilon=0.3, program=library.value, **NOISES[noise])
    choice = replace(
        next(iter(reply.forms.values())), file="shop_events.csv", group_column="product", known_columns=True
    )
    program = compile(write(choice, library).text, "program", "exec")
    squares = []
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(truth.EVENTS.parent)
        patch.setattr(sys, "argv", ["program.py", "--json"])
        for _ in range(RUNS):
            capsys.readouterr()
            exec(program, {})
            released = json.loads(capsys.readouterr().out.splitlines()[-1])["released"]
            assert sorted(released) == sorted(users)
            squares += [(value - users[group]) ** 2 for group, value in released.items()]
    assert math.sqrt(float(np.mean(squares))) == pytest.approx(float(reply.error or 0.0), rel=0.15)
