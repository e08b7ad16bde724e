"""The error of many runs of a library's whole program, beside the stated one."""

from __future__ import annotations

import json
import math
import sys

import numpy as np
import pytest

from dpcore.code import Quantity, write
from dpcore.code.release_noise import find_release_noise
from dpcore.common.noise_error import NoiseKind
from dpcore.common.programs import Program
from tests.dpcore.code.specs import make_spec
from tests.libraries import truth

RUNS, MAX_GROUPS = 50, 3


def check_stated_error(library: Program, noise: NoiseKind, capsys: pytest.CaptureFixture[str]) -> None:
    """Compare the error of users per product over 50 runs with the stated one.

    A user with n groups keeps each with probability min(1, 3 / n). The environments of the libraries lack what the
    calls need, so the error is computed here. The runs release 2,000 numbers: their root mean square has a
    standard error of 2.5 % with Laplace and 1.6 % with Gaussian noise, which is most of the error. 15 % is 6 of them.
    """
    delta = 1e-6 if noise is NoiseKind.GAUSSIAN else None
    choice = make_spec(Quantity.GROUP_COUNTS, max_groups=MAX_GROUPS, epsilon=0.05, noise=noise, delta=delta)
    stated_noise = find_release_noise(choice, library)
    assert stated_noise is not None
    num_users = {group: sum(group in user for user in truth.USERS) for group in truth.GROUPS}
    stated_squares = []
    for group in truth.GROUPS:
        chances = np.array([min(1.0, MAX_GROUPS / len(user)) for user in truth.USERS if group in user])
        sampling = float((chances * (1.0 - chances)).sum())
        stated_squares.append(float((1.0 - chances).sum()) ** 2 + sampling + stated_noise.deviation**2)
    program = compile(write(choice, library).text, "program", "exec")
    squares = []
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(truth.EVENTS.parent)
        patch.setattr(sys, "argv", ["program.py", "--json"])
        for _ in range(RUNS):
            capsys.readouterr()
            exec(program, {})
            release = json.loads(capsys.readouterr().out.splitlines()[-1])["released"]
            assert sorted(release) == truth.GROUPS
            squares += [(value - num_users[group]) ** 2 for group, value in release.items()]
    assert math.sqrt(float(np.mean(squares))) == pytest.approx(
        math.sqrt(float(np.mean(stated_squares))), rel=0.15
    )
