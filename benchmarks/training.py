"""Training: ours beside diffprivlib and Opacus on one row per user, its speed, and the paper's table 2 beside ours.

    python benchmarks/training.py            loss and time beside the peers that are there, and the time of a page
    python benchmarks/training.py --table    every method at its best bound over epsilon, on many paired splits of the
                                             users, and whether the page's answer is never more than one standard
                                             error behind the best; with SWEETSPOT_BENCH_DATA also on mnist.npz (by
                                             writers where it, or mnist_writers.npy beside it, names them) and
                                             ml1m_user_movie_rating.csv there; --epsilons 1, --data MNIST and
                                             --batches 4 take some, and fewer splits; a quarter of an hour of CPU
    python benchmarks/training.py --paper    table 2: druglib_ratings.csv in SWEETSPOT_BENCH_DATA; four minutes of CPU
                                             for each reading and epsilon with all m² steps, so about 80 for all of
                                             them; --share 0.05 takes the last 5 %, --steps and --ties some readings

Peers are looked for in this Python, then in those that SWEETSPOT_DIFFPRIVLIB and SWEETSPOT_OPACUS name (paths of a
python in an environment of its own); where one is absent, its lines are left out with a sentence.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks._peers import run_peer
from benchmarks._training_over_epsilon import (
    CUTS_PER_BATCH,
    MOST_BATCHES,
    TABLE_EPSILONS,
    print_table_over_epsilon,
)
from dpcore.common.privacy import Neighbours
from dpcore.training import bassily, descent, experiment, optimum
from dpcore.training.account import Cell, Method
from dpcore.training.bassily import StepSizeFormula
from dpcore.training.mechanism import LossKind, Mechanism
from dpcore.training.parameters import TrainingParameters
from dpcore.training.rows import ClassifierRows, hold_out, prepare_rows, score_models
from dpcore.training.training_data import TrainingGenerator, load_sample

RUNS = 20
DELTA = 1e-5
# Table 2 of Epasto et al. 2020, "drugs": weights h = 1 to 4, caps h = 1 to 4, no bound.
PRINTED_LOSSES_BY_EPSILON = {
    30: (0.514, 0.557, 0.628, 0.700, 0.553, 0.580, 0.654, 0.725, 2.846),
    40: (0.433, 0.469, 0.510, 0.551, 0.474, 0.472, 0.522, 0.553, 2.611),
    50: (0.401, 0.416, 0.445, 0.472, 0.436, 0.423, 0.454, 0.464, 2.307),
}

DIFFPRIVLIB = """
import json, sys, time, warnings
import numpy as np
warnings.filterwarnings("ignore")
from diffprivlib.models import LogisticRegression
data = np.load(sys.argv[1]); x, y = data["x"], data["y"]
epsilon, runs = float(sys.argv[2]), int(sys.argv[3])
found = []
for c in (1.0, 0.01, 0.1, 10.0, 100.0):
    models, began = [], time.process_time()
    for run in range(runs):
        model = LogisticRegression(epsilon=epsilon, data_norm=1.0, C=c, fit_intercept=False, random_state=run)
        models.append(model.fit(x, y).coef_[0].tolist())
    name = "defaults" if c == 1.0 else f"C = {c:g}"
    found.append([f"diffprivlib, {name}", (time.process_time() - began) / runs, models])
print(json.dumps(found))
"""
OPACUS = """
import json, sys, time, warnings
import numpy as np, torch
warnings.filterwarnings("ignore")
from opacus import PrivacyEngine
torch.set_num_threads(1)
data = np.load(sys.argv[1]); x, y = torch.tensor(data["x"]), torch.tensor((data["y"] + 1) / 2)
epsilon, runs, delta, steps, rate = float(sys.argv[2]), int(sys.argv[3]), *map(float, sys.argv[4:7])
models, began = [], time.process_time()
for run in range(runs):
    torch.manual_seed(run)
    model = torch.nn.Linear(x.shape[1], 1, bias=False).double()
    torch.nn.init.zeros_(model.weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=len(x))
    model, optimizer, loader = PrivacyEngine().make_private_with_epsilon(
        module=model, optimizer=optimizer, data_loader=loader, target_epsilon=epsilon, target_delta=delta,
        epochs=int(steps), max_grad_norm=1.0)
    iterates = []
    for _ in range(int(steps)):
        for xs, ys in loader:
            optimizer.zero_grad()
            torch.nn.functional.binary_cross_entropy_with_logits(model(xs)[:, 0], ys).backward()
            optimizer.step()
        iterates.append(model._module.weight.detach()[0].clone())
    models.append(torch.stack(iterates[int(steps) // 2:]).mean(0).tolist())
print(json.dumps([["Opacus, DP-SGD", (time.process_time() - began) / runs, models]]))
"""


def generate_single_rows(num_users: int) -> tuple[ClassifierRows, ClassifierRows]:
    """Generate users with one row, so that a row is a user for libraries that know none; trained on and held out."""
    generated = TrainingGenerator(num_users=num_users, max_rows=1, seed=31).generate()
    return hold_out(prepare_rows(generated.dataset.table, generated.scaling, 0.5), 0.25, 0)


def compare_with_peers() -> None:
    """Print loss on users held out, and CPU time of a model, at equal epsilon and relation."""
    print(f"One row per user, logistic loss on users held out: mean of {RUNS} runs, ± two standard errors")
    print(
        "line: users trained on, epsilon, loss without privacy; then method, relation, delta, loss, CPU ms per model"
    )
    for num_users, epsilon in itertools.product((800, 4000), (0.5, 1.0, 3.0)):
        train, test = generate_single_rows(num_users)
        best = optimum.fit_model(train, LossKind.LOGISTIC, np.ones(train.num_rows), 20.0)
        floor = score_models(test, LossKind.LOGISTIC, best.theta[:, None])[0, 0, 0]
        time_our_model(
            train, Mechanism(epsilon, DELTA), Cell(Method.FOLLOWED)
        )  # Once, so that no import is timed.
        print(f"{train.num_users:,} users, epsilon {epsilon:g}: {floor:.3f} without privacy")
        our_results = [
            (name, relation, *time_our_model(train, Mechanism(epsilon, DELTA, relation), cell))
            for relation in (Neighbours.ADD_OR_REMOVE_USER, Neighbours.REPLACE_VALUES)
            for name, cell in (
                ("ours, bound follows", Cell(Method.FOLLOWED)),
                ("ours, plain descent", Cell(Method.SMOOTH, 1.0)),
            )
        ]
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "rows.npz")
            np.savez(path, x=train.features, y=train.signs)
            peer_results = [
                (*peer_result, Neighbours.REPLACE_VALUES, "0")
                for peer_result in run_peer(
                    "diffprivlib", "SWEETSPOT_DIFFPRIVLIB", DIFFPRIVLIB, [path, str(epsilon), str(RUNS)]
                )
            ]
            mechanism = Mechanism(epsilon, DELTA)
            options = [
                path,
                str(epsilon),
                str(RUNS),
                str(DELTA),
                str(mechanism.steps),
                str(mechanism.learning_rate),
            ]
            peer_results += [
                (*peer_result, Neighbours.ADD_OR_REMOVE_USER, f"{DELTA:g}")
                for peer_result in run_peer("opacus", "SWEETSPOT_OPACUS", OPACUS, options)
            ]
        for name, relation, seconds, theta in our_results:
            print_losses(name, relation, f"{DELTA:g}", test, theta, seconds)
        for name, seconds, theta, relation, delta in peer_results:
            print_losses(name, relation, delta, test, theta, seconds)


def time_our_model(train: ClassifierRows, mechanism: Mechanism, cell: Cell) -> tuple[float, np.ndarray]:
    """Return the CPU seconds of a model, and the models, shape (features, runs)."""
    began = time.process_time()
    theta = descent.train_cells(train, mechanism, [cell], 0, range(RUNS))
    return (time.process_time() - began) / RUNS, theta


def print_losses(
    name: str, relation: Neighbours, delta: str, test: ClassifierRows, theta: np.ndarray, seconds: float
) -> None:
    """Print the mean loss of the models of one method."""
    losses = score_models(test, LossKind.LOGISTIC, theta)[:, 0, 0]
    error = 2 * losses.std(ddof=1) / np.sqrt(losses.size)
    print(
        f"  {name:24} {relation.short:24} {delta:>6}  {losses.mean():.3f} ± {error:.3f}  {1000 * seconds:8.1f} ms",
        flush=True,
    )


def print_page_times() -> None:
    """Print CPU time until the first curve and until all runs, on the page's sample and on a larger table."""
    sample = load_sample()
    large = TrainingGenerator(num_users=8_000, exponent=1.1, max_rows=60, seed=5).generate()
    for name, table, ranges in (
        ("sample", sample.dataset.table, sample.scaling),
        ("8,000 users", large.dataset.table, large.scaling),
    ):
        question = TrainingParameters(1.0).make_experiment(prepare_rows(table, ranges, 0.5))
        began, marks = time.process_time(), []
        experiment.compute_references(question)
        experiment.fill_table(
            question.make_empty_table(),
            on_update=lambda _, m=marks, b=began: m.append(time.process_time() - b),
        )
        print(
            f"{name}: {question.train.num_rows:,} rows trained on, {len(question.cells)} cells; first curve (10 runs) "
            f"{marks[0]:.2f} s, all {question.num_runs} runs {marks[-1]:.1f} s of CPU",
            flush=True,
        )


def read_druglib(at_least: bool) -> ClassifierRows:
    """Read the table as appendix E.2 may mean it: rating above (or at) the median, one-hot without first levels."""
    import pandas as pd

    frame = pd.read_csv(Path(os.environ["SWEETSPOT_BENCH_DATA"]) / "druglib_ratings.csv")
    median = float(frame["rating"].median())
    rating = frame["rating"].to_numpy(float)
    indicators = [
        pd.get_dummies(frame[name]).iloc[:, 1:].to_numpy(float) for name in ("effectiveness", "side_effects")
    ]
    users = frame["drug"].factorize()[0]
    order = np.argsort(users, kind="stable")
    positive = rating >= median if at_least else rating > median
    return ClassifierRows(
        np.hstack(indicators)[order], np.where(positive, 1.0, -1.0)[order], users[order].astype(np.int64)
    )


def list_paper_cells(rows: ClassifierRows) -> list[Cell]:
    """List the columns of the paper's table 2: smooth weights and caps of 1 to 4 rows, and no bound."""
    bounded_cells = [Cell(method, bound) for method in (Method.SMOOTH, Method.CAP) for bound in range(1, 5)]
    return [*bounded_cells, Cell(Method.SMOOTH, int(rows.sizes.max()))]


def print_table_2(runs: int, share: float, readings: Sequence[StepSizeFormula], ties: Sequence[bool]) -> None:
    """Print the paper's table 2 beside ours, by every reading of step size and ties; and the page's own mechanism."""
    steps_text = "all m² steps" if share == 1.0 else f"the last {share:.0%} of the m² steps"
    print(
        "Loss on all rows, alike, of the last iterate (mean ± two standard errors); delta = 0.1. The paper does not "
        "say\nhow ties at the median, the start, the step size, the dropped levels or the intercept are meant. Tried "
        f"here:\nties and step sizes as named, first levels dropped, no intercept, start at 0, {steps_text}, {runs} "
        "runs, caps drawn anew\nin every run."
    )
    for at_least, step_size in itertools.product(ties, readings):
        rows = read_druglib(at_least)
        best = optimum.fit_model(
            rows, LossKind.LOGISTIC, np.ones(rows.num_rows), bassily.HALF_BOX_WIDTH * 8**0.5
        )
        print(
            f"\n{rows.num_users} users, {rows.num_rows:,} rows; rating {'at least' if at_least else 'above'} the "
            f"median; step {step_size.value}; least loss {best.certificate.value:.3f}"
        )
        print(f"{'':16}{'weights h = 1 … 4':^64}{'caps h = 1 … 4':^64}  no bound")
        for epsilon, paper_losses in PRINTED_LOSSES_BY_EPSILON.items():
            print(f"eps {epsilon} paper    " + "".join(f"{value:^16.3f}" for value in paper_losses))
            models = [
                bassily.train_bassily(rows, cell, float(epsilon), 0, range(runs), step_size, share)
                for cell in list_paper_cells(rows)
            ]
            losses = np.array([score_models(rows, LossKind.LOGISTIC, theta)[:, 0, 0] for theta in models])
            cells = zip(losses.mean(axis=1), losses.std(axis=1, ddof=1) / runs**0.5, strict=True)
            print(
                f"eps {epsilon} ours     " + "".join(f"{f'{m:.3f} ± {2 * s:.3f}':^16}" for m, s in cells),
                flush=True,
            )
    print(
        "\nThe page's mechanism on the same table: epsilon = 1 and 2, delta = 1e-5, add or remove one user, features "
        "scaled to\nnorm 1, one setting for all (60 steps of 1.5, last half averaged); training loss as above."
    )
    rows = read_druglib(False)
    scaled = ClassifierRows(rows.features / 2**0.5, rows.signs, rows.user_codes)
    for epsilon in (1.0, 2.0, 5.0):
        line = []
        for cell in list_paper_cells(rows):
            theta = descent.train_cells(scaled, Mechanism(epsilon, DELTA), [cell], 0, range(50))
            losses = score_models(scaled, LossKind.LOGISTIC, theta)[:, 0, 0]
            line.append(f"{losses.mean():.3f} ± {2 * losses.std(ddof=1) / 50**0.5:.3f}")
        print(f"eps {epsilon:g}           " + "".join(f"{text:^16}" for text in line))


def main() -> None:
    """Print the tables that the flags name."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--paper", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--epsilons", nargs="+", type=float, default=TABLE_EPSILONS, help="of the table")
    parser.add_argument(
        "--batches",
        type=int,
        default=MOST_BATCHES,
        help=f"of {CUTS_PER_BATCH} cuts, for the answer of the table and its rivals, at most",
    )
    parser.add_argument(
        "--data", nargs="+", default=(), help="how the names of the table's data begin; all by default"
    )
    parser.add_argument("--runs", type=int, default=50, help="of each cell of table 2")
    parser.add_argument("--share", type=float, default=1.0, help="of the m² steps of table 2, the last ones")
    names = [step_size.name for step_size in StepSizeFormula]
    parser.add_argument("--steps", nargs="+", choices=names, default=names, help="step sizes of table 2")
    ties_by_name = {"above": False, "at": True}
    parser.add_argument(
        "--ties",
        nargs="+",
        choices=list(ties_by_name),
        default=list(ties_by_name),
        help="a rating above, or at, the median is 1",
    )
    flags = parser.parse_args()
    if flags.paper:
        steps, ties = (
            [StepSizeFormula[name] for name in flags.steps],
            [ties_by_name[name] for name in flags.ties],
        )
        print_table_2(flags.runs, flags.share, steps, ties)
    elif flags.table:
        sys.exit(0 if print_table_over_epsilon(flags.epsilons, flags.batches, flags.data) else 1)
    else:
        compare_with_peers()
        print_page_times()


if __name__ == "__main__":
    main()
