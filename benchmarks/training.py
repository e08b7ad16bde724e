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

from benchmarks._peers import run_peer
from dpcore.common.privacy import Neighbours
from dpcore.common.progress import never
from dpcore.training import account, bassily, decision, descent, experiment, optimum
from dpcore.training.account import Cell, Method
from dpcore.training.bassily import StepSizeFormula
from dpcore.training.mechanism import LossKind, Mechanism
from dpcore.training.parameters import TrainingParameters
from dpcore.training.rows import (
    ClassifierRows,
    hold_out,
    prepare_rows,
    score_models,
)
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


NUM_FOLDS = 4
"""Into so many parts users are cut, each of which is held out once: a cut is so many splits."""
FIRST_CUTS, FIRST_RUNS = 1, 2
"""Of all methods at all bounds."""
SECOND_CUTS, SECOND_RUNS, SECOND_BOUNDS = 4, 4, 2
"""Of each other method than clipped sums, at its best bounds by the first runs."""
CUTS_PER_BATCH = 16
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


def read_tables() -> dict[str, ClassifierRows]:
    """Read the sample, the page's generated data, and handwritten digits and films where they are given."""
    sample = load_sample()
    generated = TrainingGenerator().generate()
    rows_by_name = {
        "sample (tickets)": prepare_rows(sample.dataset.table, sample.scaling, 0.5),
        "generated, defaults": prepare_rows(generated.dataset.table, generated.scaling, 0.5),
    }
    folder = os.environ.get("SWEETSPOT_BENCH_DATA", "")
    if folder and (path := Path(folder) / "mnist.npz").is_file():
        rows_by_name["MNIST, 3 against 8"] = read_digits(path)
    if folder and (path := Path(folder) / "ml1m_user_movie_rating.csv").is_file():
        rows_by_name["MovieLens 1M, four stars or more"] = read_films(path)
    return rows_by_name


def read_digits(path: Path) -> ClassifierRows:
    """Read threes and eights as 3 x 3 block means and an intercept.

    Writers are the field ``writers`` of the file, one for each image, or ``mnist_writers.npy`` beside it (of QMNIST,
    the third column of its labels). Where neither is there, images are dealt to 1,200 made-up writers, with a Pareto
    law of sizes.
    """
    with np.load(path) as archive:
        names = set(archive.files)
        images = archive["x_train"] if "x_train" in names else archive["images"]
        labels = archive["y_train"] if "y_train" in names else archive["labels"]
        writers = archive["writers"] if "writers" in names else None
    if writers is None and (writers_path := path.with_name("mnist_writers.npy")).is_file():
        writers = np.load(writers_path)
    image_indices = np.flatnonzero((labels == 3) | (labels == 8))
    rng = np.random.default_rng(8)
    if writers is None:
        sizes = np.minimum(np.floor(rng.random(1_200) ** (-1 / 1.1)), 60).astype(int)
        image_indices = rng.permutation(image_indices)[: sizes.sum()]
        users = np.repeat(np.arange(1_200), sizes)[: image_indices.size]
    else:
        users = np.unique(writers[image_indices], return_inverse=True)[1]
    pixels = images[image_indices].reshape(-1, 28, 28)[:, 2:26, 2:26].astype(float) / 255.0
    blocks = pixels.reshape(-1, 3, 8, 3, 8).mean(axis=(2, 4)).reshape(-1, 9)
    # Grey values lie in [0, 1]: a public range, as the page would map it.
    features = np.column_stack((np.ones(image_indices.size), 2.0 * blocks - 1.0)) / np.sqrt(10.0)
    order = np.argsort(users, kind="stable")
    signs = np.where(labels[image_indices] == 8, 1.0, -1.0)
    return ClassifierRows(features[order], signs[order], users[order].astype(np.int64))


def read_films(path: Path) -> ClassifierRows:
    """Read a tenth of the ratings of 1,200 users: are they four stars or more?

    What a film is like is known from all others, as from a public catalogue: its mean rating, how often it is rated,
    how ratings spread, and an intercept.
    """
    users, items, stars = np.loadtxt(path, delimiter=",", skiprows=1, unpack=True)
    users, items = (np.unique(column, return_inverse=True)[1] for column in (users, items))
    rng = np.random.default_rng(9)
    is_user_kept = np.zeros(users.max() + 1, dtype=bool)
    is_user_kept[rng.permutation(is_user_kept.size)[:1_200]] = True
    is_public_row = ~is_user_kept[users]
    num_ratings = np.bincount(items[is_public_row], minlength=items.max() + 1)
    mean, square = (
        (np.bincount(items[is_public_row], stars[is_public_row] ** power, num_ratings.size) + 3.5**power * 5)
        / (num_ratings + 5)
        for power in (1, 2)
    )
    film_features = np.column_stack(
        (
            np.ones(num_ratings.size),
            (mean - 3.0) / 2.0,
            np.log1p(num_ratings) / np.log1p(4_840) * 2.0 - 1.0,
            np.sqrt(np.maximum(square - mean**2, 0.0)) - 1.0,
        )
    )
    row_indices = np.flatnonzero(is_user_kept[users] & (rng.random(users.size) < 0.1))
    codes = np.unique(users[row_indices], return_inverse=True)[1]
    order = np.argsort(codes, kind="stable")
    features = film_features[items[row_indices]][order] / 2.0
    return ClassifierRows(
        features, np.where(stars[row_indices] >= 4, 1.0, -1.0)[order], codes[order].astype(np.int64)
    )


@dataclass(eq=False)
class Cuts:
    """Splits of the users of a table, `CUTS_PER_BATCH` cuts after each other, each cut with `NUM_FOLDS` splits.

    Attributes:
        rows: Of all users.
        batches: Of each batch: who is trained on, shape (users, splits), and the losses held out without privacy and of
            guessing, shape (2, splits).
    """

    rows: ClassifierRows
    batches: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)

    def get_batch(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Return a batch by its number; compute it, and those before it, if they are not there yet."""
        while len(self.batches) <= number:
            trained = self.draw_training_users(len(self.batches))
            self.batches.append((trained, self._measure_floors(trained)))
        return self.batches[number]

    def draw_training_users(self, batch: int) -> np.ndarray:
        """Draw 1 for users who are trained on, 0 for those held out, shape (users, splits)."""
        users = self.rows.num_users
        trained = np.ones((users, CUTS_PER_BATCH * NUM_FOLDS))
        for cut in range(CUTS_PER_BATCH):
            order = np.random.default_rng([batch, cut, 21]).permutation(users)
            # Parts of the same size, so that as many are trained on in every split.
            for fold, held_out_users in enumerate(
                order[: users // NUM_FOLDS * NUM_FOLDS].reshape(NUM_FOLDS, -1)
            ):
                trained[held_out_users, cut * NUM_FOLDS + fold] = 0.0
        return trained

    def _measure_floors(self, trained: np.ndarray) -> np.ndarray:
        """Return the losses held out without privacy and of guessing, shape (2, splits)."""
        rows = self.rows
        theta, log_odds = np.empty((rows.num_features, trained.shape[1])), np.empty(trained.shape[1])
        for split, weights in enumerate(trained[rows.user_codes].T):
            solution = optimum.fit_model(rows, LossKind.LOGISTIC, weights, Mechanism.radius)
            theta[:, split], share = solution.theta, weights @ (rows.signs > 0.0) / weights.sum()
            log_odds[split] = np.log(share / (1.0 - share))
        guess = np.logaddexp(0.0, -rows.signs[:, None] * log_odds)
        return np.stack(
            (self.compute_held_out_losses(theta, trained), _average_held_out(rows, guess, trained))
        )

    def compute_held_out_losses(self, theta: np.ndarray, trained: np.ndarray) -> np.ndarray:
        """Return the loss of each model on the users that were held out from it, shape (models,)."""
        return _average_held_out(self.rows, np.logaddexp(0.0, -(self.rows.signed_features @ theta)), trained)

    def compute_excess(self, batch: int, mechanism: Mechanism, cell: Cell) -> np.ndarray:
        """Compute the excess of clipped sums at a bound, or with one that follows: mean of the runs, shape (splits,).

        All runs on all splits at once; on each one with noise of its own, the same for all cells, and its mirror image.
        """
        trained, (floor, _) = self.get_batch(batch)
        trained = np.tile(trained, (1, 2))
        columns, d, follows = trained.shape[1], self.rows.num_features, cell.method is Method.FOLLOWED
        plan = account.plan_rule_noise(mechanism, follows)
        rng = np.random.default_rng([batch, 22])
        noise = descent.RuleNoise(
            *(
                np.concatenate((half_noise, -half_noise), axis=-1)
                for half_noise in (
                    rng.standard_normal((mechanism.steps, d, columns // 2)),
                    rng.standard_normal((mechanism.steps, columns // 2)),
                    rng.standard_normal(columns // 2),
                )
            )
        )
        clipped_sums = descent.make_clipped_gradient(self.rows, mechanism, columns)
        descents = descent.simulate_descents(
            lambda theta, bounds, _: clipped_sums(theta, bounds, trained),
            mechanism,
            int(trained[:, 0].sum()),
            np.array([cell.bound]),
            noise,
            rule_plan=plan,
            should_stop=never,
        )
        assert descents is not None
        return self.compute_held_out_losses(descents[0], trained).reshape(2, -1).mean(axis=0) - floor

    def compute_rough_excess(
        self, mechanism: Mechanism, cells: Sequence[Cell], cuts: int, runs: int
    ) -> dict[Cell, np.ndarray]:
        """Compute the excess of a few runs of any method on the splits of the first cuts, each of shape (splits,)."""
        trained, floors = self.get_batch(0)
        excesses = np.empty((len(cells), cuts * NUM_FOLDS))
        for split in range(excesses.shape[1]):
            is_trained = trained[:, split] > 0.0
            train, test = (self.rows.select_users(np.flatnonzero(side)) for side in (is_trained, ~is_trained))
            question = experiment.Experiment(((train, test),), mechanism, tuple(cells), runs, 5_000 + split)
            losses = experiment.select_score(experiment.fill_table(question.make_empty_table()).scores)
            excesses[:, split] = losses.mean(axis=1) - floors[0, split]
        return dict(zip(cells, excesses, strict=True))


def _average_held_out(rows: ClassifierRows, losses: np.ndarray, trained: np.ndarray) -> np.ndarray:
    """Return the mean loss over the rows of users held out, one for each column; all have one shape."""
    out = 1.0 - trained[rows.user_codes]
    return np.asarray((losses * out).sum(axis=0) / out.sum(axis=0))


def print_table_over_epsilon(epsilons: Sequence[float], max_batches: int, names: Sequence[str]) -> bool:
    """Print the excess of the loss on users held out over that without privacy, each method at its best bound.

    A standard error is over the cuts, each of which holds every user out once: who is held out then moves it little.

    Returns:
        Whether the page's answer is never more than one standard error of the best row behind it. With enough splits
        any difference, however small, is more than its own paired standard error.
    """
    print(
        "Excess of the logistic loss on users held out over no privacy, ± one standard error over cuts of the users.\n"
        f"Delta {TABLE_DELTA:g}, add or remove one user. A cut has {NUM_FOLDS} paired splits, of which each part is "
        "held out once, with a run and its mirror image on each.\n"
        f"Clipped sums, with the bound of least loss in brackets: {BATCHES * CUTS_PER_BATCH} cuts; the answer and its "
        f"rivals have more, until the\nerror is at most {SURE:.1%} of the excess. Other methods: {SECOND_RUNS} runs "
        f"on each split of {SECOND_CUTS} cuts; with *, they are not clearly behind.\n"
        "The answer is what the page says after its own runs, on splits of its own. It passes where it is at most\n"
        "one standard error of the best row's excess behind it; the paired difference is said, too."
    )
    methods, failed, unsure = list(Method), [], []
    for name, rows in read_tables().items():
        if names and not any(name.startswith(beginning) for beginning in names):
            continue
        cuts = Cuts(rows)
        print(f"\n{name}: {rows.num_users:,} users, {rows.num_rows:,} rows, {rows.num_features} features")
        print(
            f"{'epsilon':>8}"
            + "".join(f"{method.value:>30}" for method in methods)
            + f"{'guessing':>12}  answer"
        )
        for epsilon in epsilons:
            answer = find_page_answer(rows, epsilon)
            excess_by_cell, rough_by_cell = _compute_table_row(cuts, epsilon, max_batches, answer)
            best_cell = min(
                (cell for cell in excess_by_cell if _has_as_many_runs(excess_by_cell, cell, answer)),
                key=lambda cell: excess_by_cell[cell].mean(),
            )
            extra_excess = excess_by_cell[answer] - excess_by_cell[best_cell]
            passed = extra_excess.mean() <= _compute_error(excess_by_cell[best_cell])
            line = []
            for method in methods:
                method_cells = [cell for cell in excess_by_cell if cell.method is method]
                if method_cells:
                    best = min(method_cells, key=lambda cell: excess_by_cell[cell].mean())
                    bound = "" if method is Method.FOLLOWED else f" [{best.reach:g}]"
                    excess = excess_by_cell[best]
                    line.append(f"{f'{excess.mean():.5f} ± {_compute_error(excess):.5f}{bound}':>30}")
                    continue
                best = min(
                    (cell for cell in rough_by_cell if cell.method is method),
                    key=lambda cell: rough_by_cell[cell].mean(),
                )
                error = _compute_error(rough_by_cell[best])
                near = (
                    "*" if rough_by_cell[best].mean() - FAR * error <= excess_by_cell[answer].mean() else ""
                )
                line.append(f"{f'{rough_by_cell[best].mean():.5f} ± {error:.5f}{near} [{best.reach:g}]':>30}")
            relative = _compute_error(excess_by_cell[answer]) / max(abs(excess_by_cell[answer].mean()), 1e-12)
            if relative > MOST_ERROR:
                unsure.append(f"{name} at {epsilon:g}: {relative:.0%}")
            if not passed:
                failed.append(f"{name} at {epsilon:g}")
            behind = (
                ""
                if best_cell == answer
                else f", {extra_excess.mean():+.6f} ± {_compute_error(extra_excess):.6f} "
                f"beside {best_cell.method.value} [{best_cell.reach:g}]"
            )
            answer_text = f"{answer.method.value} [{answer.reach:g}]{behind}: {'PASS' if passed else 'FAIL'}"
            doubt = f"standard error {relative:.1%} of it, {excess_by_cell[answer].size // NUM_FOLDS} cuts"
            guessing = f"{np.subtract(*cuts.get_batch(0)[1][::-1]).mean():>12.4f}"
            print(f"{epsilon:>8g}" + "".join(line) + f"{guessing}  {answer_text}; {doubt}", flush=True)
    print(
        "\nFAIL: the answer is more than one standard error behind the best of " + "; ".join(failed)
        if failed
        else "\nPASS: the answer is never more than one standard error behind the best"
    )
    if unsure:
        print(f"Standard error of the answer's excess above {MOST_ERROR:.0%} of it: " + "; ".join(unsure))
    return not failed


def _has_as_many_runs(excess_by_cell: dict[Cell, np.ndarray], cell: Cell, answer: Cell) -> bool:
    """Return True if a cell was run as often as the answer."""
    return excess_by_cell[cell].size == excess_by_cell[answer].size


def _compute_table_row(
    cuts: Cuts, epsilon: float, max_batches: int, answer: Cell
) -> tuple[dict[Cell, np.ndarray], dict[Cell, np.ndarray]]:
    """Compute the excess of clipped sums that may be best, on each split, and of other methods at their best bounds."""
    parameters = TrainingParameters(epsilon, delta=TABLE_DELTA)
    mechanism, cells = parameters.mechanism, parameters.list_cells(int(cuts.rows.sizes.max()))
    first_excess = cuts.compute_rough_excess(mechanism, cells, FIRST_CUTS, FIRST_RUNS)
    followed_cell = Cell(Method.FOLLOWED)
    candidates = {followed_cell}
    for cell in cells:
        behind = first_excess[cell] - first_excess[followed_cell]
        if cell.method is Method.CLIPPED_SUM and behind.mean() <= FAR * behind.std(ddof=1) / behind.size**0.5:
            candidates.add(cell)
    if answer.method in (Method.FOLLOWED, Method.CLIPPED_SUM):
        candidates.add(answer)
    excess_by_cell = {
        cell: np.concatenate([cuts.compute_excess(batch, mechanism, cell) for batch in range(BATCHES)])
        for cell in sorted(candidates, key=lambda candidate: (candidate.method.value, candidate.reach))
    }
    # Some who may be best, by the first cuts, go on beside the answer.
    best_cell = min(excess_by_cell, key=lambda candidate: excess_by_cell[candidate].mean())
    remaining_cells = {answer, followed_cell, best_cell}
    remaining_cells |= {
        cell
        for cell in excess_by_cell
        if (extra_excess := excess_by_cell[cell] - excess_by_cell[best_cell]).mean()
        <= 2.0 * _compute_error(extra_excess)
    }
    for batch in range(BATCHES, max_batches):
        if _compute_error(excess_by_cell[answer]) <= SURE * excess_by_cell[answer].mean():
            break
        for cell in remaining_cells:
            excess_by_cell[cell] = np.append(
                excess_by_cell[cell], cuts.compute_excess(batch, mechanism, cell)
            )
    rough_by_cell: dict[Cell, np.ndarray] = {}
    for method in (Method.SMOOTH, Method.CAP, Method.OUTPUT):
        method_cells = sorted(
            (candidate for candidate in cells if candidate.method is method),
            key=lambda candidate: first_excess[candidate].mean(),
        )
        rough_by_cell |= cuts.compute_rough_excess(
            mechanism, method_cells[:SECOND_BOUNDS], SECOND_CUTS, SECOND_RUNS
        )
    return excess_by_cell, rough_by_cell


def find_page_answer(rows: ClassifierRows, epsilon: float) -> Cell:
    """Find the method and bound that the page answers after its runs by default, on splits of their own."""
    question = TrainingParameters(epsilon, delta=TABLE_DELTA, seed=1_000).make_experiment(rows)
    table = experiment.fill_table(question.make_empty_table())
    close_call = decision.plan_close_call(table)
    close = None if close_call is None else experiment.fill_table(close_call.make_empty_table())
    best = decision.choose_answer(table, close, is_public=True)
    assert best is not None
    return question.cells[best.cell_index]


def _compute_error(values: np.ndarray) -> float:
    """Return the standard error of the mean of one value per split, over the cuts."""
    cuts = values.reshape(-1, NUM_FOLDS).mean(axis=1)
    return float(cuts.std(ddof=1) / cuts.size**0.5)


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
