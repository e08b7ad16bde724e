"""Every method of training at its best bound over epsilon, on paired splits of the users, and the page's answer."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from dpcore.common.progress import never
from dpcore.training import account, decision, descent, experiment, optimum
from dpcore.training.account import Cell, Method
from dpcore.training.mechanism import LossKind, Mechanism
from dpcore.training.parameters import TrainingParameters
from dpcore.training.rows import ClassifierRows, prepare_rows
from dpcore.training.training_data import TrainingGenerator, load_sample

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
