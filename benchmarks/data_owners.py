"""Data owners: the audits, the crossings, and training alone, with joint and full privacy, and without.

Run ``python -m benchmarks.data_owners`` from the root; ``--full`` adds the whole grid of the paper's tables (an hour on
MNIST), and ``--levels`` and ``--seeds`` take a part of it, with nothing else. MNIST is used where SWEETSPOT_BENCH_DATA
names a folder that has ``mnist.npz`` (x_train, y_train); nothing of it is written anywhere. Steps, clip and rate were
chosen on other seeds than those shown. scikit-learn is looked for in this Python, then in the one that
SWEETSPOT_SKLEARN names.
"""

from __future__ import annotations

import argparse
import itertools
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._algorithm_1 import (
    AuditInstance,
    bound_epsilon_on_halves,
    find_accounted_noise,
    simulate_shared_outputs,
)
from benchmarks._peers import run_peer
from dpcore.data_owners import bounds
from dpcore.data_owners.bounds import Collaboration, ProtectedPart, Unit, bound_alone, bound_together
from dpcore.data_owners.study import Form, Study, StudyResult, run_study
from dpcore.data_owners.training import (
    LabelledRecords,
    TrainingOptions,
    fit_shared,
    fit_without_privacy,
    load_digits,
    pad_units,
    scale_records,
    split_records,
)

MNIST_RECORDS = 12_500
"""10,000 to learn from, as in the paper, and 2,500 to test on."""
MNIST_OPTIONS = TrainingOptions(step_size=16.0, personal_steps=40)
AUDIT_RUNS = 20_000


def print_table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under a title, columns aligned."""
    widths = [max(len(r[k]) for r in (head, *rows)) for k in range(len(head))]
    print(f"\n{title}")
    for row in (head, ["-" * w for w in widths], *rows):
        cells = [c.rjust(w) if k else c.ljust(w) for k, (c, w) in enumerate(zip(row, widths, strict=True))]
        print("  ".join(cells), flush=True)


def read_mnist() -> LabelledRecords | None:
    """Return a part of MNIST as means of 2 x 2 pixels; None if the file is missing."""
    path = Path(os.environ.get("SWEETSPOT_BENCH_DATA", "")) / "mnist.npz"
    if "SWEETSPOT_BENCH_DATA" not in os.environ or not path.exists():
        return None
    with np.load(path) as archive:
        images, labels = archive["x_train"], archive["y_train"]
    rows = np.random.default_rng(0).permutation(labels.size)[:MNIST_RECORDS]
    means = images[rows].reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4)).reshape(-1, 196)
    return LabelledRecords(
        scale_records(means.astype(np.float64)), labels[rows].astype(np.int64), 10, "MNIST"
    )


def show_crossings() -> None:
    """Print closed forms for 10,000 collaborations at once, beside bisection of the bounds."""
    rng = np.random.default_rng(1)
    collaboration = Collaboration(
        epsilon=1.0,
        delta=1e-5,
        owners=np.rint(np.exp(rng.uniform(1, 8, 10_000))),
        records=np.rint(np.exp(rng.uniform(1, 8, 10_000))),
        shared=1e4,
        personal=10.0,
        personal_diameter=0.1,
    )
    start = time.perf_counter()
    closed = bounds.find_epsilon_star(collaboration, ProtectedPart.JOINT)
    took = time.perf_counter() - start
    start = time.perf_counter()
    low, high = np.full(10_000, -30.0), np.full(10_000, 30.0)
    for _ in range(100):
        midpoint = (low + high) / 2.0
        pays = bound_together(
            collaboration.replace(epsilon=np.exp(midpoint)), ProtectedPart.JOINT
        ) < bound_alone(collaboration)
        low, high = np.where(pays, low, midpoint), np.where(pays, midpoint, high)
    bisected = time.perf_counter() - start
    largest_difference = float(np.max(np.abs(np.exp(high) / closed - 1.0)))
    print(
        f"\nε* of 10,000 collaborations: closed form {1e3 * took:.2f} ms, bisection {1e3 * bisected:.0f} ms, "
        f"largest relative difference {largest_difference:.1e}"
    )


def show_audits() -> None:
    """Print audits of the paper's algorithm on the constructed instance, and of the forms that are trained here."""
    rows = []
    for reach in (100.0, 10.0, 2.0):
        instance = AuditInstance(reach=reach)
        noise = find_accounted_noise(instance)
        start = time.perf_counter()
        outputs = simulate_shared_outputs(instance, noise, AUDIT_RUNS, seed=7)
        assert outputs is not None
        result = bound_epsilon_on_halves(*outputs, instance.delta)
        rows.append(
            (
                f"algorithm 1, D_X = {instance.personal_diameter:,.0f} D_U, noise {noise:.2f} L",
                f"{result.true:,}",
                f"{result.false:,}",
                f"{result.epsilon:.2f}",
                f"{instance.epsilon:g}",
                f"{time.perf_counter() - start:.1f}",
            )
        )
    for name, unit_records in (("a record", 1), ("a user of 5", 5), ("an owner of 30", 30)):
        start = time.perf_counter()
        outputs = (
            _simulate_shared_outputs(unit_records, True, 31),
            _simulate_shared_outputs(unit_records, False, 32),
        )
        result = bound_epsilon_on_halves(*outputs, 1e-5)
        rows.append(
            (
                f"shared part, {name} added or removed",
                f"{result.true:,}",
                f"{result.false:,}",
                f"{result.epsilon:.2f}",
                "1",
                f"{time.perf_counter() - start:.1f}",
            )
        )
    print_table(
        f"Audits, {AUDIT_RUNS:,} runs of each neighbour, judged on one half (95 % confidence, δ = 1e-5)",
        ("what", "true", "false", "shown ε ≥", "claimed", "s"),
        rows,
    )


def _simulate_shared_outputs(unit_records: int, present: bool, seed: int) -> np.ndarray:
    """Return how far W leans to the unit's class in each run: the clip's largest move, against no other gradient."""
    count = 4 + (unit_records if present else 0)
    features = np.zeros((count, 1))
    features[4:] = 1.0
    data = LabelledRecords(features, np.zeros(count, dtype=np.int64), 2, "one unit")
    padded_records = pad_units(data, np.r_[np.arange(4), np.full(count - 4, 4)], 5)
    options = TrainingOptions(steps=4, clip=0.2, step_size=0.1)
    rng = np.random.default_rng(seed)
    weights = [
        fit_shared(padded_records, 5, 1.0, 1e-5, rng, options, clips_per_unit=unit_records)
        for _ in range(AUDIT_RUNS)
    ]
    return np.array([w[1, 0] - w[0, 0] for w in weights])


SCIKIT_LEARN = """
import json, sys, time
import numpy as np
from sklearn.linear_model import LogisticRegression
data = np.load(sys.argv[1]); x, y = data["x"], data["y"]
start = time.perf_counter()
model = LogisticRegression(C=1 / (float(sys.argv[2]) * len(y)), fit_intercept=False, tol=1e-8, max_iter=5000).fit(x, y)
print(json.dumps([["scikit-learn", time.perf_counter() - start, model.coef_.tolist()]]))
"""


def show_against_scikit_learn(data: LabelledRecords) -> None:
    """Print how far the fit without noise differs from scikit-learn's."""
    learn, _ = split_records(data, 0)
    options = TrainingOptions(plain_penalty=1e-3, plain_steps=600)
    start = time.perf_counter()
    our_model = fit_without_privacy(learn, options)
    print(f"\nNo noise, {data.name}: ours {time.perf_counter() - start:.1f} s")
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "rows.npz")
        np.savez(path, x=learn.features, y=learn.labels)
        for name, took, peer_model in run_peer(
            "sklearn", "SWEETSPOT_SKLEARN", SCIKIT_LEARN, [path, str(options.plain_penalty)]
        ):
            largest_difference = float(np.abs(our_model - peer_model.T).max())
            print(f"{name} {took:.1f} s, coefficients differ by {largest_difference:.1e}")


def show_study(title: str, study: Study, data: LabelledRecords) -> StudyResult:
    """Print mean test accuracies, and the time; return the result."""
    start, start_cpu = time.perf_counter(), time.process_time()
    result = run_study(study, data)
    took, cpu = time.perf_counter() - start, time.process_time() - start_cpu
    names = [(form.value, form, 0) for form in (Form.SEPARATE, Form.NON_PRIVATE, Form.NON_PRIVATE_PERSONAL)]
    for e, epsilon in enumerate(study.epsilons):
        names += [(f"{form.value}, ε = {epsilon:g}", form, e) for form in (Form.FULL, Form.JOINT)]
    rows = [
        (name, *(f"{value:.3f}" for value in result.average_accuracies(form)[e]))
        for name, form, e in names
        if e < result.accuracies_by_form[form].shape[0]
    ]
    print_table(
        f"{title}: test accuracy, {len(study.seeds)} seed(s), {took:.0f} s ({cpu:.0f} s of CPU)",
        ("form", *(f"n = {n}" for n in study.numbers_of_owners)),
        rows,
    )
    for other_form in (Form.FULL, Form.SEPARATE):
        sign = result.compare_forms(Form.JOINT, other_form)
        print(
            f"joint above {other_form.value} in {int(np.sum(sign == 1))} of {sign.size} cells, below in "
            f"{int(np.sum(sign == -1))}; the others within the standard error"
        )
    return result


def show_users(data: LabelledRecords, study: Study, sizes: Sequence[int]) -> None:
    """Print accuracies at user level: the user's summed gradient clipped, beside group privacy; table 4."""
    rows = []
    means_by_form: dict[tuple[bool, Form], list[float]] = {}
    for unit_records in sizes:
        for by_group in (False, True):
            user_study = replace(
                study, unit=Unit.USER, records_per_user=unit_records, uses_group_privacy=by_group
            )
            result = run_study(user_study, data)
            for form in (Form.FULL, Form.JOINT):
                means_by_form.setdefault((by_group, form), []).append(
                    float(result.average_accuracies(form).mean())
                )
            rows.append(
                (
                    f"m/r = {unit_records}, {'group privacy' if by_group else 'per-user clip'}",
                    *(
                        f"{value:.3f}"
                        for form in (Form.FULL, Form.JOINT)
                        for value in result.average_accuracies(form).ravel()
                    ),
                )
            )
    head = [
        f"{form.value}, ε = {e:g}, n = {n}"
        for form in (Form.FULL, Form.JOINT)
        for e in study.epsilons
        for n in study.numbers_of_owners
    ]
    print_table(f"{data.name}, user level: test accuracy", ("form", *head), rows)
    for (by_group, form), scores in means_by_form.items():
        how = "group privacy" if by_group else "per-user clip"
        falls = all(later <= earlier for earlier, later in itertools.pairwise(scores))
        print(
            f"{form.value}, {how}: {'falls' if falls else 'does not fall'} as m/r grows; in table 4 it falls"
        )


def main() -> None:
    """Print everything, with ``--full`` the whole grid as well, or a part of the grid alone."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="n in {4 … 512}, six ε, five seeds, both levels")
    parser.add_argument("--levels", nargs="+", choices=list(LEVELS), help="parts of the grid, alone")
    parser.add_argument("--seeds", type=int, default=5, help="runs of the grid, 1 to 5")
    arguments = parser.parse_args()
    data, seeds = read_mnist(), tuple(range(1, arguments.seeds + 1))
    if arguments.levels:
        if data is None:
            parser.error(NO_MNIST)
        show_grid(data, arguments.levels, seeds)
        return
    show_crossings()
    show_audits()
    show_against_scikit_learn(load_digits())
    small = Study((4, 16, 64), (0.25, 1.0), seeds=(1,))
    show_study("Handwritten digits", small, load_digits())
    show_study("Handwritten digits, whole owners protected", replace(small, unit=Unit.OWNER), load_digits())
    show_users(load_digits(), Study((64,), (1.0,), seeds=(1,)), (5, 20))
    if data is None:
        print(f"\n{NO_MNIST}")
        return
    large = Study((4, 64, 512), (0.25, 1.0), seeds=(1,), delta=1e-4, training_options=MNIST_OPTIONS)
    show_study("MNIST", large, data)
    show_users(data, replace(large, numbers_of_owners=(64,), epsilons=(1.0,)), (5, 20))
    if arguments.full:
        show_grid(data, list(LEVELS), seeds)


NO_MNIST = "No MNIST: SWEETSPOT_BENCH_DATA names no folder with mnist.npz"
LEVELS: dict[str, dict[str, Any]] = {
    "record": {},
    "user-5": {"unit": Unit.USER, "records_per_user": 5},
    "group-5": {"unit": Unit.USER, "records_per_user": 5, "uses_group_privacy": True},
    "user-20": {"unit": Unit.USER, "records_per_user": 20},
    "group-20": {"unit": Unit.USER, "records_per_user": 20, "uses_group_privacy": True},
}
"""Records protected; users of so many by a clip of their summed gradient, or by group privacy."""


def show_grid(data: LabelledRecords, levels: Sequence[str], seeds: tuple[int, ...]) -> None:
    """Print the grid of the paper's tables on MNIST, level by level."""
    grid = Study(
        (4, 16, 64, 128, 256, 512),
        (0.25, 1.0, 2.0, 5.0, 10.0, 100.0),
        seeds=seeds,
        delta=1e-4,
        training_options=MNIST_OPTIONS,
    )
    for level in levels:
        show_study(f"MNIST, {level}", replace(grid, **LEVELS[level]), data)


if __name__ == "__main__":
    main()
