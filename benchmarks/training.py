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
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks._peers import peer
from dpcore.common.privacy import Neighbours
from dpcore.common.progress import never
from dpcore.training import account, bassily, decision, descent, experiment, optimum
from dpcore.training.account import Cell, Method
from dpcore.training.bassily import StepSize
from dpcore.training.mechanism import LossKind, Mechanism
from dpcore.training.parameters import TrainingParameters
from dpcore.training.rows import (
    ClassifierRows,
    compute_scores,
    hold_out,
    prepare_rows,
)
from dpcore.training.training_data import TrainingGenerator, load_sample

RUNS = 20
DELTA = 1e-5
# Table 2 of Epasto et al. 2020, "drugs": weights h = 1 to 4, caps h = 1 to 4, no bound.
PRINTED = {
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


def one_row_each(num_users: int) -> tuple[ClassifierRows, ClassifierRows]:
    """Users with one row, so that a row is a user for libraries that know none; trained on and held out."""
    made = TrainingGenerator(num_users=num_users, max_rows=1, seed=31).generate()
    return hold_out(prepare_rows(made.dataset.table, made.scaling, 0.5), 0.25, 0)


def beside_peers() -> None:
    """Loss on users held out, and CPU time of a model, at equal epsilon and relation."""
    print(f"One row per user, logistic loss on users held out: mean of {RUNS} runs, ± two standard errors")
    print(
        "line: users trained on, epsilon, loss without privacy; then method, relation, delta, loss, CPU ms per model"
    )
    for num_users, epsilon in itertools.product((800, 4000), (0.5, 1.0, 3.0)):
        train, test = one_row_each(num_users)
        best = optimum.fit_model(train, LossKind.LOGISTIC, np.ones(train.num_rows), 20.0)
        floor = compute_scores(test, LossKind.LOGISTIC, best.theta[:, None])[0, 0, 0]
        ours_timed(
            train, Mechanism(epsilon, DELTA), Cell(Method.FOLLOWED)
        )  # Once, so that no import is timed.
        print(f"{train.num_users:,} users, epsilon {epsilon:g}: {floor:.3f} without privacy")
        ours = [
            (name, relation, *ours_timed(train, Mechanism(epsilon, DELTA, relation), cell))
            for relation in (Neighbours.ADD_OR_REMOVE_USER, Neighbours.REPLACE_VALUES)
            for name, cell in (
                ("ours, bound follows", Cell(Method.FOLLOWED)),
                ("ours, plain descent", Cell(Method.SMOOTH, 1.0)),
            )
        ]
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "rows.npz")
            np.savez(path, x=train.features, y=train.signs)
            theirs = [
                (*found, Neighbours.REPLACE_VALUES, "0")
                for found in peer(
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
            theirs += [
                (*found, Neighbours.ADD_OR_REMOVE_USER, f"{DELTA:g}")
                for found in peer("opacus", "SWEETSPOT_OPACUS", OPACUS, options)
            ]
        for name, relation, seconds, theta in ours:
            show(name, relation, f"{DELTA:g}", test, theta, seconds)
        for name, seconds, theta, relation, delta in theirs:
            show(name, relation, delta, test, theta, seconds)


def ours_timed(train: ClassifierRows, mechanism: Mechanism, cell: Cell) -> tuple[float, np.ndarray]:
    """(CPU seconds of a model, models)."""
    began = time.process_time()
    theta = descent.train_cells(train, mechanism, [cell], 0, range(RUNS))
    return (time.process_time() - began) / RUNS, theta


def show(
    name: str, relation: Neighbours, delta: str, test: ClassifierRows, theta: np.ndarray, seconds: float
) -> None:
    losses = compute_scores(test, LossKind.LOGISTIC, theta)[:, 0, 0]
    error = 2 * losses.std(ddof=1) / np.sqrt(losses.size)
    print(
        f"  {name:24} {relation.short:24} {delta:>6}  {losses.mean():.3f} ± {error:.3f}  {1000 * seconds:8.1f} ms",
        flush=True,
    )


def time_of_a_page() -> None:
    """CPU time until the first curve and until all runs, on the page's sample and on a larger table."""
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


def druglib(at_least: bool) -> ClassifierRows:
    """The table as appendix E.2 may mean it: rating above (or at least) the median, one-hot without first levels."""
    import pandas as pd

    frame = pd.read_csv(Path(os.environ["SWEETSPOT_BENCH_DATA"]) / "druglib_ratings.csv")
    median = float(frame["rating"].median())
    rating = frame["rating"].to_numpy(float)
    parts = [
        pd.get_dummies(frame[name]).iloc[:, 1:].to_numpy(float) for name in ("effectiveness", "side_effects")
    ]
    users = frame["drug"].factorize()[0]
    order = np.argsort(users, kind="stable")
    positive = rating >= median if at_least else rating > median
    return ClassifierRows(
        np.hstack(parts)[order], np.where(positive, 1.0, -1.0)[order], users[order].astype(np.int64)
    )


def list_paper_cells(rows: ClassifierRows) -> list[Cell]:
    """The columns of the paper's table 2: smooth weights and caps of 1 to 4 rows, and no bound."""
    bounded_cells = [Cell(method, bound) for method in (Method.SMOOTH, Method.CAP) for bound in range(1, 5)]
    return [*bounded_cells, Cell(Method.SMOOTH, int(rows.sizes.max()))]


def table_2(runs: int, share: float, readings: Sequence[StepSize], ties: Sequence[bool]) -> None:
    """The paper's table 2 beside ours, under every reading of step size and ties; and the page's own mechanism."""
    part = "all m² steps" if share == 1.0 else f"the last {share:.0%} of the m² steps"
    print(
        "Loss on all rows, alike, of the last iterate (mean ± two standard errors); delta = 0.1. The paper does not "
        "say\nhow ties at the median, the start, the step size, the dropped levels or the intercept are meant. Tried "
        f"here:\nties and step sizes as named, first levels dropped, no intercept, start at 0, {part}, {runs} runs, "
        "caps drawn anew\nin every run."
    )
    for at_least, step_size in itertools.product(ties, readings):
        rows = druglib(at_least)
        best = optimum.fit_model(rows, LossKind.LOGISTIC, np.ones(rows.num_rows), bassily.BOX * 8**0.5)
        print(
            f"\n{rows.num_users} users, {rows.num_rows:,} rows; rating {'at least' if at_least else 'above'} the "
            f"median; step {step_size.value}; least loss {best.certificate.value:.3f}"
        )
        print(f"{'':16}{'weights h = 1 … 4':^64}{'caps h = 1 … 4':^64}  no bound")
        for epsilon, printed in PRINTED.items():
            print(f"eps {epsilon} paper    " + "".join(f"{value:^16.3f}" for value in printed))
            models = [
                bassily.train_bassily(rows, cell, float(epsilon), 0, range(runs), step_size, share)
                for cell in list_paper_cells(rows)
            ]
            losses = np.array([compute_scores(rows, LossKind.LOGISTIC, theta)[:, 0, 0] for theta in models])
            cells = zip(losses.mean(axis=1), losses.std(axis=1, ddof=1) / runs**0.5, strict=True)
            print(
                f"eps {epsilon} ours     " + "".join(f"{f'{m:.3f} ± {2 * s:.3f}':^16}" for m, s in cells),
                flush=True,
            )
    print(
        "\nThe page's mechanism on the same table: epsilon = 1 and 2, delta = 1e-5, add or remove one user, features "
        "scaled to\nnorm 1, one setting for all (60 steps of 1.5, last half averaged); training loss as above."
    )
    rows = druglib(False)
    scaled = ClassifierRows(rows.features / 2**0.5, rows.signs, rows.user_codes)
    for epsilon in (1.0, 2.0, 5.0):
        line = []
        for cell in list_paper_cells(rows):
            theta = descent.train_cells(scaled, Mechanism(epsilon, DELTA), [cell], 0, range(50))
            losses = compute_scores(scaled, LossKind.LOGISTIC, theta)[:, 0, 0]
            line.append(f"{losses.mean():.3f} ± {2 * losses.std(ddof=1) / 50**0.5:.3f}")
        print(f"eps {epsilon:g}           " + "".join(f"{text:^16}" for text in line))


PARTS = 4
"""Into so many parts users are cut, each of which is held out once: a cut is so many splits."""
FIRST_CUTS, FIRST_RUNS = 1, 2
"""Of all methods at all bounds."""
SECOND_CUTS, SECOND_RUNS, SECOND_BOUNDS = 4, 4, 2
"""Of each other method than clipped sums, at its best bounds by the first runs."""
CUTS_AT_ONCE = 16
"""On each split one run and its mirror image, all noise with the other sign: what moves a loss in proportion to the
noise then cancels in their mean, which has a third to a half of the variance of two runs of their own."""
BATCHES, MOST_BATCHES = 2, 40
"""Of so many cuts each: of all clipped sums that may be best; and of the answer and its rivals, until it is sure."""
TABLE_DELTA = 1e-6
TABLE_EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
MOST_ERROR = 0.05
"""Standard error of an excess, as a share of it, up to which it is taken as known."""
SURE = 0.045
"""More cuts are made until it is no more than this."""
FAR = 3.0
"""By so many standard errors what is clearly behind is behind."""


def table_data() -> dict[str, ClassifierRows]:
    """The sample, the page's generated data, and handwritten digits and films where they are given."""
    sample = load_sample()
    made = TrainingGenerator().generate()
    found = {
        "sample (tickets)": prepare_rows(sample.dataset.table, sample.scaling, 0.5),
        "generated, defaults": prepare_rows(made.dataset.table, made.scaling, 0.5),
    }
    folder = os.environ.get("SWEETSPOT_BENCH_DATA", "")
    if folder and (path := Path(folder) / "mnist.npz").is_file():
        found["MNIST, 3 against 8"] = digits(path)
    if folder and (path := Path(folder) / "ml1m_user_movie_rating.csv").is_file():
        found["MovieLens 1M, four stars or more"] = films(path)
    return found


def digits(path: Path) -> ClassifierRows:
    """Threes and eights as 3 x 3 block means and an intercept.

    Writers are the field ``writers`` of the file, one for each image, or ``mnist_writers.npy`` beside it (of QMNIST,
    the third column of its labels). Where neither is there, images are dealt to 1,200 made-up writers, with a Pareto
    law of sizes.
    """
    with np.load(path) as held:
        names = set(held.files)
        images = held["x_train"] if "x_train" in names else held["images"]
        labels = held["y_train"] if "y_train" in names else held["labels"]
        writers = held["writers"] if "writers" in names else None
    if writers is None and (beside := path.with_name("mnist_writers.npy")).is_file():
        writers = np.load(beside)
    chosen = np.flatnonzero((labels == 3) | (labels == 8))
    rng = np.random.default_rng(8)
    if writers is None:
        sizes = np.minimum(np.floor(rng.random(1_200) ** (-1 / 1.1)), 60).astype(int)
        chosen = rng.permutation(chosen)[: sizes.sum()]
        users = np.repeat(np.arange(1_200), sizes)[: chosen.size]
    else:
        users = np.unique(writers[chosen], return_inverse=True)[1]
    pixels = images[chosen].reshape(-1, 28, 28)[:, 2:26, 2:26].astype(float) / 255.0
    blocks = pixels.reshape(-1, 3, 8, 3, 8).mean(axis=(2, 4)).reshape(-1, 9)
    # Grey values lie in [0, 1]: a public range, as the page would map it.
    features = np.column_stack((np.ones(chosen.size), 2.0 * blocks - 1.0)) / np.sqrt(10.0)
    order = np.argsort(users, kind="stable")
    signs = np.where(labels[chosen] == 8, 1.0, -1.0)
    return ClassifierRows(features[order], signs[order], users[order].astype(np.int64))


def films(path: Path) -> ClassifierRows:
    """A tenth of the ratings of 1,200 users: are they four stars or more? What a film is like is known from all others,
    as from a public catalogue: its mean rating, how often it is rated, how ratings spread, and an intercept."""
    users, items, stars = np.loadtxt(path, delimiter=",", skiprows=1, unpack=True)
    users, items = (np.unique(column, return_inverse=True)[1] for column in (users, items))
    rng = np.random.default_rng(9)
    ours = np.zeros(users.max() + 1, dtype=bool)
    ours[rng.permutation(ours.size)[:1_200]] = True
    others = ~ours[users]
    count = np.bincount(items[others], minlength=items.max() + 1)
    mean, square = (
        (np.bincount(items[others], stars[others] ** power, count.size) + 3.5**power * 5) / (count + 5)
        for power in (1, 2)
    )
    known = np.column_stack(
        (
            np.ones(count.size),
            (mean - 3.0) / 2.0,
            np.log1p(count) / np.log1p(4_840) * 2.0 - 1.0,
            np.sqrt(np.maximum(square - mean**2, 0.0)) - 1.0,
        )
    )
    kept = np.flatnonzero(ours[users] & (rng.random(users.size) < 0.1))
    codes = np.unique(users[kept], return_inverse=True)[1]
    order = np.argsort(codes, kind="stable")
    features = known[items[kept]][order] / 2.0
    return ClassifierRows(
        features, np.where(stars[kept] >= 4, 1.0, -1.0)[order], codes[order].astype(np.int64)
    )


@dataclass(eq=False)
class Cuts:
    """Splits of the users of a table, `CUTS_AT_ONCE` cuts after each other, each cut with `PARTS` splits.

    Attributes:
        rows: Of all users.
        found: Of each batch: who is trained on, shape (users, splits), and the losses held out without privacy and of
            guessing, shape (2, splits).
    """

    rows: ClassifierRows
    found: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)

    def batch(self, at: int) -> tuple[np.ndarray, np.ndarray]:
        """A batch by its number."""
        while len(self.found) <= at:
            trained = self.trained_on(len(self.found))
            self.found.append((trained, self._floors(trained)))
        return self.found[at]

    def trained_on(self, batch: int) -> np.ndarray:
        """1 for users who are trained on, 0 for those held out, shape (users, splits)."""
        users = self.rows.num_users
        trained = np.ones((users, CUTS_AT_ONCE * PARTS))
        for cut in range(CUTS_AT_ONCE):
            order = np.random.default_rng([batch, cut, 21]).permutation(users)
            # Parts of the same size, so that as many are trained on in every split.
            for part, held in enumerate(order[: users // PARTS * PARTS].reshape(PARTS, -1)):
                trained[held, cut * PARTS + part] = 0.0
        return trained

    def _floors(self, trained: np.ndarray) -> np.ndarray:
        rows = self.rows
        theta, constant = np.empty((rows.num_features, trained.shape[1])), np.empty(trained.shape[1])
        for at, weights in enumerate(trained[rows.user_codes].T):
            found = optimum.fit_model(rows, LossKind.LOGISTIC, weights, Mechanism.radius)
            theta[:, at], share = found.theta, weights @ (rows.signs > 0.0) / weights.sum()
            constant[at] = np.log(share / (1.0 - share))
        guess = np.logaddexp(0.0, -rows.signs[:, None] * constant)
        return np.stack((self.held_out(theta, trained), _mean_held_out(rows, guess, trained)))

    def held_out(self, theta: np.ndarray, trained: np.ndarray) -> np.ndarray:
        """Loss of each model on the users that were held out from it, shape (models,)."""
        return _mean_held_out(self.rows, np.logaddexp(0.0, -(self.rows.signed @ theta)), trained)

    def excess(self, batch: int, mechanism: Mechanism, cell: Cell) -> np.ndarray:
        """Of clipped sums at a bound, or with one that follows: mean of the runs, shape (splits,).

        All runs on all splits at once; on each one with noise of its own, the same for all cells, and its mirror image.
        """
        trained, (floor, _) = self.batch(batch)
        trained = np.tile(trained, (1, 2))
        columns, d, follows = trained.shape[1], self.rows.num_features, cell.method is Method.FOLLOWED
        plan = account.plan_rule_noise(mechanism, follows)
        rng = np.random.default_rng([batch, 22])
        noise = descent.RuleNoise(
            *(
                np.concatenate((one, -one), axis=-1)
                for one in (
                    rng.standard_normal((mechanism.steps, d, columns // 2)),
                    rng.standard_normal((mechanism.steps, columns // 2)),
                    rng.standard_normal(columns // 2),
                )
            )
        )
        clipped_sums = descent.make_clipped_gradient(self.rows, mechanism, columns)
        found = descent.simulate_descents(
            lambda theta, bounds, _: clipped_sums(theta, bounds, trained),
            mechanism,
            int(trained[:, 0].sum()),
            np.array([cell.bound]),
            noise,
            bound_follows=follows,
            rule_plan=plan,
            should_stop=never,
        )
        assert found is not None
        return self.held_out(found[0], trained).reshape(2, -1).mean(axis=0) - floor

    def few(
        self, mechanism: Mechanism, cells: Sequence[Cell], cuts: int, runs: int
    ) -> dict[Cell, np.ndarray]:
        """Excess of a few runs of any method on the splits of the first cuts, each of shape (splits,)."""
        trained, floors = self.batch(0)
        found = np.empty((len(cells), cuts * PARTS))
        for at in range(found.shape[1]):
            on = trained[:, at] > 0.0
            train, test = (self.rows.select_users(np.flatnonzero(side)) for side in (on, ~on))
            question = experiment.Experiment(((train, test),), mechanism, tuple(cells), runs, 5_000 + at)
            losses = experiment.select_score(experiment.fill_table(question.make_empty_table()).scores)
            found[:, at] = losses.mean(axis=1) - floors[0, at]
        return dict(zip(cells, found, strict=True))


def _mean_held_out(rows: ClassifierRows, losses: np.ndarray, trained: np.ndarray) -> np.ndarray:
    """Mean loss over the rows of users held out, one for each column; all have one shape."""
    out = 1.0 - trained[rows.user_codes]
    return np.asarray((losses * out).sum(axis=0) / out.sum(axis=0))


def table_over_epsilon(epsilons: Sequence[float], most: int, names: Sequence[str]) -> bool:
    """Excess of the loss on users held out over that without privacy, each method at its best bound.

    A standard error is over the cuts, each of which holds every user out once: who is held out then moves it little.

    Returns:
        Whether the page's answer is never more than one standard error of the best row behind it. With enough splits
        any difference, however small, is more than its own paired standard error.
    """
    print(
        "Excess of the logistic loss on users held out over no privacy, ± one standard error over cuts of the users.\n"
        f"Delta {TABLE_DELTA:g}, add or remove one user. A cut has {PARTS} paired splits, of which each part is held "
        "out once, with a run and its mirror image on each.\n"
        f"Clipped sums, with the bound of least loss in brackets: {BATCHES * CUTS_AT_ONCE} cuts; the answer and its "
        f"rivals have more, until the\nerror is at most {SURE:.1%} of the excess. Other methods: {SECOND_RUNS} runs "
        f"on each split of {SECOND_CUTS} cuts; with *, they are not clearly behind.\n"
        "The answer is what the page says after its own runs, on splits of its own. It passes where it is at most\n"
        "one standard error of the best row's excess behind it; the paired difference is said, too."
    )
    methods, failed, unsure = list(Method), [], []
    for name, rows in table_data().items():
        if names and not any(name.startswith(one) for one in names):
            continue
        cuts = Cuts(rows)
        print(f"\n{name}: {rows.num_users:,} users, {rows.num_rows:,} rows, {rows.num_features} features")
        print(
            f"{'epsilon':>8}"
            + "".join(f"{method.value:>30}" for method in methods)
            + f"{'guessing':>12}  answer"
        )
        for epsilon in epsilons:
            answer = page_answer(rows, epsilon)
            of, others = _row_of_table(cuts, epsilon, most, answer)
            least = min((one for one in of if _rival(of, one, answer)), key=lambda one: of[one].mean())
            more = of[answer] - of[least]
            passed = more.mean() <= _error(of[least])
            line = []
            for method in methods:
                mine = [one for one in of if one.method is method]
                if mine:
                    best = min(mine, key=lambda one: of[one].mean())
                    bound = "" if method is Method.FOLLOWED else f" [{best.reach:g}]"
                    line.append(f"{f'{of[best].mean():.5f} ± {_error(of[best]):.5f}{bound}':>30}")
                    continue
                best = min(
                    (one for one in others if one.method is method), key=lambda one: others[one].mean()
                )
                error = _error(others[best])
                near = "*" if others[best].mean() - FAR * error <= of[answer].mean() else ""
                line.append(f"{f'{others[best].mean():.5f} ± {error:.5f}{near} [{best.reach:g}]':>30}")
            relative = _error(of[answer]) / max(abs(of[answer].mean()), 1e-12)
            if relative > MOST_ERROR:
                unsure.append(f"{name} at {epsilon:g}: {relative:.0%}")
            if not passed:
                failed.append(f"{name} at {epsilon:g}")
            behind = (
                ""
                if least == answer
                else f", {more.mean():+.6f} ± {_error(more):.6f} beside {least.method.value} [{least.reach:g}]"
            )
            said = f"{answer.method.value} [{answer.reach:g}]{behind}: {'PASS' if passed else 'FAIL'}"
            doubt = f"standard error {relative:.1%} of it, {of[answer].size // PARTS} cuts"
            guessing = f"{np.subtract(*cuts.batch(0)[1][::-1]).mean():>12.4f}"
            print(f"{epsilon:>8g}" + "".join(line) + f"{guessing}  {said}; {doubt}", flush=True)
    print(
        "\nFAIL: the answer is more than one standard error behind the best of " + "; ".join(failed)
        if failed
        else "\nPASS: the answer is never more than one standard error behind the best"
    )
    if unsure:
        print(f"Standard error of the answer's excess above {MOST_ERROR:.0%} of it: " + "; ".join(unsure))
    return not failed


def _rival(of: dict[Cell, np.ndarray], cell: Cell, answer: Cell) -> bool:
    """Whether a cell was run as often as the answer."""
    return of[cell].size == of[answer].size


def _row_of_table(
    cuts: Cuts, epsilon: float, most: int, answer: Cell
) -> tuple[dict[Cell, np.ndarray], dict[Cell, np.ndarray]]:
    """Excess of clipped sums that may be best, on each split, and of other methods at the best of their bounds."""
    asked = TrainingParameters(epsilon, delta=TABLE_DELTA)
    mechanism, cells = asked.mechanism, asked.list_cells(int(cuts.rows.sizes.max()))
    first = cuts.few(mechanism, cells, FIRST_CUTS, FIRST_RUNS)
    here = Cell(Method.FOLLOWED)
    chosen = {here}
    for cell in cells:
        behind = first[cell] - first[here]
        if cell.method is Method.CLIPPED_SUM and behind.mean() <= FAR * behind.std(ddof=1) / behind.size**0.5:
            chosen.add(cell)
    if answer.method in (Method.FOLLOWED, Method.CLIPPED_SUM):
        chosen.add(answer)
    of = {
        cell: np.concatenate([cuts.excess(batch, mechanism, cell) for batch in range(BATCHES)])
        for cell in sorted(chosen, key=lambda one: (one.method.value, one.reach))
    }
    # Some who may be best, by the first cuts, go on beside the answer.
    best = min(of, key=lambda one: of[one].mean())
    going = {answer, here, best}
    going |= {cell for cell in of if (more := of[cell] - of[best]).mean() <= 2.0 * _error(more)}
    for batch in range(BATCHES, most):
        if _error(of[answer]) <= SURE * of[answer].mean():
            break
        for cell in going:
            of[cell] = np.append(of[cell], cuts.excess(batch, mechanism, cell))
    others: dict[Cell, np.ndarray] = {}
    for method in (Method.SMOOTH, Method.CAP, Method.OUTPUT):
        mine = sorted((one for one in cells if one.method is method), key=lambda one: first[one].mean())
        others |= cuts.few(mechanism, mine[:SECOND_BOUNDS], SECOND_CUTS, SECOND_RUNS)
    return of, others


def page_answer(rows: ClassifierRows, epsilon: float) -> Cell:
    """Method and bound that the page answers after its runs by default, on splits of their own."""
    question = TrainingParameters(epsilon, delta=TABLE_DELTA, seed=1_000).make_experiment(rows)
    table = experiment.fill_table(question.make_empty_table())
    asked = decision.plan_close_call(table)
    close = None if asked is None else experiment.fill_table(asked.make_empty_table())
    best = decision.choose_answer(table, close, choice_costs_no_privacy=True)
    assert best is not None
    return question.cells[best.cell_index]


def _error(values: np.ndarray) -> float:
    """Standard error of the mean of one value per split, over the cuts."""
    cuts = values.reshape(-1, PARTS).mean(axis=1)
    return float(cuts.std(ddof=1) / cuts.size**0.5)


def main() -> None:
    """Choose by flag."""
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
        help=f"of {CUTS_AT_ONCE} cuts, for the answer of the table and its rivals, at most",
    )
    parser.add_argument(
        "--data", nargs="+", default=(), help="how the names of the table's data begin; all by default"
    )
    parser.add_argument("--runs", type=int, default=50, help="of each cell of table 2")
    parser.add_argument("--share", type=float, default=1.0, help="of the m² steps of table 2, the last ones")
    names = [step_size.name for step_size in StepSize]
    parser.add_argument("--steps", nargs="+", choices=names, default=names, help="step sizes of table 2")
    where = {"above": False, "at": True}
    parser.add_argument(
        "--ties",
        nargs="+",
        choices=list(where),
        default=list(where),
        help="a rating above, or at, the median is 1",
    )
    flags = parser.parse_args()
    if flags.paper:
        steps, ties = [StepSize[name] for name in flags.steps], [where[name] for name in flags.ties]
        table_2(flags.runs, flags.share, steps, ties)
    elif flags.table:
        sys.exit(0 if table_over_epsilon(flags.epsilons, flags.batches, flags.data) else 1)
    else:
        beside_peers()
        time_of_a_page()


if __name__ == "__main__":
    main()
