"""The table of methods and bounds, and what theory says beside it."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dpcore.common import weights
from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import GaussianNoise, Neighbours
from dpcore.training import account, decision, descent, experiment
from dpcore.training import mechanism as training_mechanism
from dpcore.training.account import Cell, Method
from dpcore.training.experiment import Experiment, Side, summarise_splits
from dpcore.training.mechanism import Average, LossKind, Mechanism
from dpcore.training.rows import (
    ClassifierRows,
    Measure,
    ScoreUnit,
    hold_out,
    prepare_rows,
    score_guess,
    score_models,
)
from dpcore.training.training_data import TrainingGenerator
from tests.dpcore.training.tables import generate_rows

METHODS = (Method.SMOOTH, Method.CAP, Method.CLIPPED_SUM, Method.OUTPUT)
CELLS = tuple(Cell(method, bound) for method in METHODS for bound in (1.0, 4.0))


def small(runs: int = 25, **changes) -> Experiment:
    train, test = hold_out(generate_rows(80, informative=2), 0.25, 0)
    return Experiment(((train, test),), Mechanism(1.0, 1e-5, **({"steps": 8} | changes)), CELLS, runs)


def test_stop_and_resume_lose_nothing():
    question = small()
    full = experiment.fill_table(question.make_empty_table())
    assert full.is_finished
    for num_checks in (0, 3, 40, 49):
        num_asked = 0

        def stop(limit: int = num_checks) -> bool:
            nonlocal num_asked
            num_asked += 1
            return num_asked > limit

        table = experiment.fill_table(question.make_empty_table(), should_stop=stop)
        assert not table.is_finished
        is_finished_score = np.isfinite(table.scores)
        resumed = experiment.fill_table(table)
        assert np.array_equal(resumed.scores[is_finished_score], table.scores[is_finished_score])
        assert resumed.scores == pytest.approx(full.scores, rel=1e-9)


def test_every_run_stands_for_itself():
    # A run made alone is the run made with others, and a longer table begins with a shorter one.
    question, longer = small(12), small(30)
    table, other = (
        experiment.fill_table(question.make_empty_table()),
        experiment.fill_table(longer.make_empty_table()),
    )
    assert other.scores[:, :12] == pytest.approx(table.scores, rel=1e-9)
    single_run = descent.train_cells(question.train, question.mechanism, [CELLS[2]], 0, range(7, 8))
    result = score_models(question.test, LossKind.LOGISTIC, single_run)[0]
    assert table.scores[2, 7, Side.HELD_OUT] == pytest.approx(result, rel=1e-9)
    assert np.unique(table.scores[0, :, 1, 0, 0]).size == 12


def test_the_first_runs_of_all_methods_come_first_and_are_told():
    runs_seen, shares = [], []
    question = small(25)
    experiment.fill_table(
        question.make_empty_table(),
        progress=shares.append,
        on_update=lambda table: runs_seen.append(table.runs_done),
    )
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert runs_seen[0].tolist() == [10, 10, 0, 0, 0, 0, 0, 0]
    assert runs_seen[3].tolist() == [10] * 8
    assert runs_seen[-1].tolist() == [25] * 8
    assert len(runs_seen) == 8


def test_a_summary_has_the_mean_and_its_error():
    question = small(20)
    table = experiment.fill_table(question.make_empty_table())
    values = table.scores[3, :, Side.HELD_OUT, 1, 1]
    result = table.summarise(Measure.ACCURACY, ScoreUnit.USERS)
    assert result.means[3] == pytest.approx(values.mean())
    assert result.standard_errors[3] == pytest.approx(values.std(ddof=1) / math.sqrt(20))
    assert result.half_widths[3] == pytest.approx(
        2.093024 * result.standard_errors[3], rel=1e-6
    )  # t of 19, 97.5 %
    empty = question.make_empty_table().summarise(Measure.LOSS, ScoreUnit.ROWS)
    assert np.isnan(empty.means).all()
    assert decision.find_best_cell(question.make_empty_table(), Method.SMOOTH) is None
    with pytest.raises(InvalidInput, match=r"uns must(.|\n)*no method"):
        Experiment(question.splits, question.mechanism, (), 1)


def test_the_best_bound_is_the_least_mean_and_its_stretch_is_near():
    table = experiment.fill_table(small(10).make_empty_table())
    best = decision.find_best_cell(table, Method.CAP)
    means = table.summarise(Measure.LOSS, ScoreUnit.ROWS).means
    assert means[best.cell_index] == min(means[2], means[3])
    for number in (2, 3):
        inside = best.lowest_near_optimal <= CELLS[number].bound <= best.highest_near_optimal
        assert inside is bool(means[number] <= 1.05 * means[best.cell_index])
    gain, error = decision.compare_losses(table, 2, 3)
    each = table.scores[2, :, 1, 0, 0] - table.scores[3, :, 1, 0, 0]
    assert gain == pytest.approx(each.mean())
    assert error == pytest.approx(each.std(ddof=1) / math.sqrt(10))
    half_width = summarise_splits(each, table.experiment).half_widths
    assert half_width == pytest.approx(2.262157 * error, rel=1e-6)  # t of 9


def test_references_and_scores_by_hand():
    features = np.array([[1.0], [0.5], [-1.0], [0.0]])
    rows = ClassifierRows(features, np.array([1.0, -1.0, -1.0, 1.0]), np.array([0, 0, 0, 1]))
    result = score_models(rows, LossKind.SQUARED, np.array([[2.0]]))[0]
    # Margins 2, -1, 2, 0: losses 1/2, 2, 1/2, 1/2; right 1, 0, 1, 1/2.
    assert result[0] == pytest.approx([3.5 / 4, 2.5 / 4])
    assert result[1] == pytest.approx([(1.0 + 0.5) / 2, (2 / 3 + 0.5) / 2])
    guess = score_guess(rows, LossKind.SQUARED, 0.5)
    assert guess[0] == pytest.approx([(0.125 * 2 + 1.125 * 2) / 4, 0.5])
    question = small()
    references = experiment.compute_references(question)
    assert references.certificate.proves(1e-9)
    assert references.scores_without_privacy[0, Side.TRAINED, 0, 0] == pytest.approx(
        references.certificate.value
    )
    assert (
        references.guessing_scores[0, Side.TRAINED, 0, 0]
        > references.scores_without_privacy[0, Side.TRAINED, 0, 0]
    )
    share = np.mean(question.train.signs > 0)
    entropy = -share * math.log(share) - (1 - share) * math.log(1 - share)
    assert references.guessing_scores[0, Side.TRAINED, 0, 0] == pytest.approx(entropy)


def test_bounds_to_try():
    assert account.list_bounds(1) == (1,)
    assert account.list_bounds(3) == (1, 2, 3)
    result = account.list_bounds(63)
    assert result[:4] == (1, 2, 3, 4)
    assert result[-1] == 63
    assert len(result) <= 13
    assert account.list_bounds(10**6)[-1] == 10**6


def test_the_generated_optimum_is_that_of_the_population():
    # 50,000 users of one row: the gradient of the mean loss at θ* has mean 0; each entry within 5 standard errors.
    generator = TrainingGenerator(num_users=50_000, max_rows=1, seed=4)
    sample = generator.generate()
    rows = prepare_rows(sample.dataset.table, sample.scaling, 0.5)
    each = (
        rows.signed_features
        * LossKind.LOGISTIC.differentiate(rows.signed_features @ generator.theta)[:, None]
    )
    assert np.all(np.abs(each.mean(axis=0)) < 5 * each.std(axis=0) / math.sqrt(rows.num_rows))
    off = (
        rows.signed_features
        * LossKind.LOGISTIC.differentiate(rows.signed_features @ (0.8 * generator.theta))[:, None]
    )
    assert np.any(np.abs(off.mean(axis=0)) > 5 * off.std(axis=0) / math.sqrt(rows.num_rows))
    with pytest.raises(InvalidInput, match="are generated"):
        TrainingGenerator(num_users=50_000, exponent=0.5, max_rows=10_000).generate()


def on_splits(runs: int = 12, splits: int = 4, mechanism: Mechanism | None = None) -> Experiment:
    rows = generate_rows(120, informative=2)
    cuts = tuple(hold_out(rows, 0.25, seed) for seed in range(splits))
    cells = (Cell(Method.FOLLOWED), Cell(Method.SMOOTH, 1.0), Cell(Method.CAP, 2.0))
    mechanism = mechanism or training_mechanism.apply_rule(Mechanism(2.0, 1e-6))
    return Experiment(cuts, mechanism, cells, runs, 0)


def test_runs_go_round_the_splits_and_doubts_are_of_two_kinds():
    question = on_splits()
    table = experiment.fill_table(question.make_empty_table())
    train, test = question.splits[2]
    single_run = descent.train_cells(train, question.mechanism, [question.cells[2]], 0, range(6, 7))
    result = score_models(test, LossKind.LOGISTIC, single_run)[0]
    assert table.scores[2, 6, Side.HELD_OUT] == pytest.approx(result, rel=1e-9)  # 6 = 2 modulo 4
    values = experiment.select_score(table.scores)[0]
    by_split = [values[split::4] for split in range(4)]
    variance_within = sum(((item - item.mean()) ** 2).sum() for item in by_split) / (12 - 4)
    summary = table.summarise(Measure.LOSS, ScoreUnit.ROWS)
    assert summary.means[0] == pytest.approx(values.mean())
    assert summary.spreads[0] == pytest.approx(math.sqrt(variance_within))
    assert summary.half_widths[0] == pytest.approx(
        2.306004 * math.sqrt(variance_within / 12), rel=1e-6
    )  # t of 8
    spread_between = np.std([item.mean() for item in by_split], ddof=1)
    # Three degrees of freedom, and 30 users held out for 90 trained on.
    assert summary.users_half_widths[0] == pytest.approx(
        3.182446 * spread_between * math.sqrt(1 / 4 + 1 / 3), rel=1e-6
    )
    item = summarise_splits(np.array([1.0, np.nan, 3.0, np.nan]), small(4))
    assert (item.means, item.run_counts, item.degrees_of_freedom) == (2.0, 2, 1)
    assert np.isnan(item.users_half_widths)


@pytest.mark.long
def test_bounds_that_are_trained_together_are_what_each_is_alone(monkeypatch):
    question = replace(
        on_splits(4, 2), cells=account.list_doubled_cells(6, includes_output_perturbation=True)
    )
    cells, mechanism = question.cells, question.mechanism
    trained = []

    def together(rows, mechanism, of, *args, **options):
        trained.append(list(of))
        return full(rows, mechanism, of, *args, **options)

    full = descent.train_cells
    monkeypatch.setattr(descent, "train_cells", together)
    table = experiment.fill_table(question.make_empty_table())
    # On each of two splits: the bound that follows, weights and caps at three clips each, and clipped sums.
    assert [len(of) for of in trained] == [1] * 2 + ([1] * 4 + [4] * 2) * 2 + [7] * 2
    for index, cell in enumerate(cells):
        if cell.method is Method.OUTPUT:
            continue
        for split, (train, test) in enumerate(question.splits):
            single_run = descent.train_cells(train, mechanism, [cell], 0, range(split, 4, 2))
            for held_out, side in enumerate((train, test)):
                result = score_models(side, LossKind.LOGISTIC, single_run)
                assert table.scores[index, split::2, held_out] == pytest.approx(result, rel=1e-9)
    # Where one bound fills a core's cache, as of many rows, each is trained by itself.
    bundle_sizes = []

    def one(rows, mechanism, of, *args, **options):
        bundle_sizes.append(len(of))
        return np.zeros((rows.num_features, 2))

    monkeypatch.setattr(descent, "train_cells", one)
    monkeypatch.setattr(experiment, "BLOCK_CELLS", 3 * question.train.num_rows)
    experiment.fill_table(question.make_empty_table())
    assert bundle_sizes == [1] * 2 * 20


def test_the_answer_is_the_best_or_follows_the_users_within_one_standard_error():
    question = on_splits(8, 2)
    table = question.make_empty_table()
    assert decision.choose_answer(table) is None
    filled = np.zeros_like(table.scores)
    noise = np.array([1.0, 1.0, -1.0, -1.0] * 2) * 0.01
    filled[0, :, :, 0, 0] = (0.5 + noise)[:, None]
    filled[2, :, :, 0, 0] = 0.7
    filled[1, :, :, 0, 0] = 0.5 - 1e-4
    assert decision.choose_answer(experiment.RunTable(question, filled)).cell_index == 0
    filled[1, :, :, 0, 0] = 0.45
    assert decision.choose_answer(experiment.RunTable(question, filled)).cell_index == 1
    filled[1, :, :, 0, 0] = 0.6
    assert decision.choose_answer(experiment.RunTable(question, filled)).cell_index == 0


def test_more_runs_decide_where_a_table_does_not():
    question = on_splits(8, 2)
    assert decision.plan_close_call(question.make_empty_table()) is None
    filled = np.zeros_like(question.make_empty_table().scores)
    noise = np.array([1.0, 1.0, -1.0, -1.0] * 2) * 0.01
    filled[0, :, :, 0, 0] = (0.5 + noise)[:, None]
    filled[1, :, :, 0, 0] = 0.498  # within two standard errors, which are 0.0076
    filled[2, :, :, 0, 0] = 0.7
    table = experiment.RunTable(question, filled)
    close_call = decision.plan_close_call(table)
    assert close_call.cells == question.cells[:2]
    assert close_call.num_runs == 4 * 8
    assert close_call.seed != question.seed
    # New splits, eight for two: in each cut of four parts every user is held out once.
    assert len(close_call.splits) == 8
    for cut in (close_call.splits[:4], close_call.splits[4:]):
        held_out = np.concatenate([test.features for _, test in cut])
        assert sorted(held_out.tolist()) == sorted(
            np.concatenate([side.features for side in question.splits[0]]).tolist()
        )
    assert all((train.num_users, test.num_users) == (90, 30) for train, test in close_call.splits)
    assert len({test.digest for _, test in close_call.splits}) == 8
    for train, test in close_call.splits[:2]:
        assert not {row.tobytes() for row in train.features} & {row.tobytes() for row in test.features}
    # Followed clipped sums answer within one standard error, and no further, of what the new runs say.
    for more, at in ((0.0005, 0), (0.02, 1), (-0.02, 0)):
        scores = np.zeros_like(close_call.make_empty_table().scores)
        scores[0, :, :, 0, 0] = (0.5 + np.tile(noise, 4))[:, None]
        scores[1, :, :, 0, 0] = 0.5 - more
        decided = decision.choose_answer(table, experiment.RunTable(close_call, scores))
        assert decided.cell_index == at
        # Of public rows the least answers.
        free = decision.choose_answer(table, experiment.RunTable(close_call, scores), is_public=True)
        assert free.cell_index == (0 if more < 0 else 1)
    assert decision.choose_answer(table, close_call.make_empty_table()).cell_index == 0
    # Nothing is open where they are clearly worse, or alone in front.
    for value in (0.4, 0.6):
        filled[1, :, :, 0, 0] = value
        assert decision.plan_close_call(experiment.RunTable(question, filled)) is None


def test_the_verdict_is_clear_only_where_its_interval_is():
    question = on_splits(8, 4)
    references = experiment.compute_references(question)
    guess = references.guessing_scores[np.arange(8) % 4, Side.HELD_OUT, 0, 0]
    filled = np.zeros_like(question.make_empty_table().scores)
    sway = np.array([0.1, -0.1, 0.02, -0.02] * 2)
    for shift, clear in ((-0.5, True), (0.01, False), (0.5, True)):
        filled[0, :, Side.HELD_OUT, 0, 0] = guess + sway + shift
        summary = decision.compare_with_guessing(experiment.RunTable(question, filled), references, 0)
        assert summary.means == pytest.approx(shift)
        assert bool(summary.is_clear) is clear


def test_the_descent_without_noise_splits_the_excess():
    question = on_splits(40, 4, training_mechanism.apply_rule(Mechanism(5.0, 1e-6)))
    references = experiment.compute_references(question)
    floor, quiet, unclipped = (
        item[:, Side.TRAINED, 0, 0].mean()
        for item in (
            references.scores_without_privacy,
            references.scores_without_noise,
            references.scores_without_noise_and_clipping,
        )
    )
    loss = (
        experiment.fill_table(question.make_empty_table())
        .summarise(Measure.LOSS, ScoreUnit.ROWS, Side.TRAINED)
        .means[0]
    )
    assert floor < unclipped < quiet < loss
    assert unclipped - floor < 1e-3  # 200 steps of the longest stable length are near the end
    assert experiment.compute_references(question, lambda: True) is None


def test_a_large_table_has_one_descent_without_noise_for_all_splits(monkeypatch):
    question = on_splits()
    all_references = experiment.compute_references(question)
    monkeypatch.setattr(experiment, "MAX_FIRST_LOOK_ROWS", 10)
    once = experiment.compute_references(question)
    for name in ("scores_without_privacy", "guessing_scores"):
        assert getattr(once, name) == pytest.approx(getattr(all_references, name))
    for name in ("scores_without_noise", "scores_without_noise_and_clipping"):
        ours, theirs = getattr(once, name), getattr(all_references, name)
        assert ours[0] == pytest.approx(theirs[0])
        assert ours[2] - once.scores_without_privacy[2] == pytest.approx(
            theirs[0] - all_references.scores_without_privacy[0]
        )


@pytest.mark.long
def test_a_first_look_has_the_noise_of_everybody():
    rows = generate_rows(9_000, informative=2)
    cells = (Cell(Method.FOLLOWED), Cell(Method.SMOOTH, 1.0), Cell(Method.SMOOTH, 60.0))
    full = Experiment(
        (hold_out(rows, 0.25, 0),), training_mechanism.apply_rule(Mechanism(0.1, 1e-6)), cells, 24
    )
    first_look = experiment.make_first_look(full)
    assert first_look.train.num_rows < 0.3 * full.train.num_rows
    assert [cell.bound for cell in first_look.cells] == [0.25, 1.0]
    # Its models vary as those of all users do: the spread of each coordinate over 24 runs, to a third.
    spreads = [
        descent.train_cells(item.train, item.mechanism, [cells[1]], 0, range(24)).std(axis=1)
        for item in (full, first_look)
    ]
    assert spreads[1] == pytest.approx(spreads[0], rel=0.33)
    assert experiment.make_first_look(small()) is None


def expected_excess(eigenvalues, optimum, mechanism, bound, total_weight):
    """½ Σ λ ((b θ*)² + v Σ a²) of the averaged iterate, with θ* in the eigenvectors' basis: exact for a quadratic."""
    start_share, noise_gain = decision.solve_linear_descent(
        eigenvalues, mechanism.learning_rate, mechanism.steps, mechanism.average
    )
    variance = (account.plan_noise(mechanism, bound).gradient_noise_std / total_weight) ** 2
    return 0.5 * np.sum(eigenvalues * ((start_share * optimum) ** 2 + variance * noise_gain))


@pytest.mark.long
@pytest.mark.parametrize("average", Average)
@pytest.mark.parametrize("relation", [Neighbours.ADD_OR_REMOVE_USER, Neighbours.REPLACE_VALUES])
def test_the_excess_formula_against_runs(average, relation):
    # The squared loss is a quadratic; a clip so large that it never acts makes the formula exact, the noise that the
    # clip calls for with it. 2,000 runs; the mean excess within 5 of its standard errors.
    rows = generate_rows(60, informative=2)
    mechanism = Mechanism(3.0, 1e-4, relation, LossKind.SQUARED, 12, 1.3, average, 1e6, clip=30.0)
    bound = 2.0
    weights = np.minimum(bound, rows.sizes)[rows.user_codes] / rows.sizes[rows.user_codes]
    c = weights / weights.sum()
    hessian = rows.features.T @ (rows.features * c[:, None])
    optimum = np.linalg.solve(hessian, rows.signed_features.T @ c)
    eigenvalues, vectors = np.linalg.eigh(hessian)
    predicted = expected_excess(eigenvalues, vectors.T @ optimum, mechanism, bound, weights.sum())
    theta = descent.train_cells(rows, mechanism, [Cell(Method.SMOOTH, bound)], 5, range(2000))
    if relation is Neighbours.ADD_OR_REMOVE_USER:
        # The formula takes the sum of weights as public: the same noise, divided by the true sum.
        public_sum = Mechanism(3.0, 1e-4, relation, LossKind.SQUARED, 12, 1.3, average, 1e6, clip=30.0)
        theta = _with_known_sum(rows, public_sum, bound, weights, 2000)
    losses = c @ (1 - rows.signed_features @ theta) ** 2 / 2
    optimal_loss = c @ (1 - rows.signed_features @ optimum) ** 2 / 2
    result = losses - optimal_loss
    assert abs(result.mean() - predicted) < 5 * result.std() / math.sqrt(result.size)


def _with_known_sum(rows, mechanism, bound, weights, runs):
    """The descent written out again, one run after another in the textbook's way, with a public sum of weights."""
    noise = account.plan_noise(mechanism, bound)
    rng = np.random.default_rng(9)
    first = {Average.ALL: 1, Average.LAST_HALF: mechanism.steps // 2 + 1, Average.LAST: mechanism.steps}
    result = np.empty((rows.num_features, runs))
    for run in range(runs):
        theta, iterates = np.zeros(rows.num_features), []
        for _ in range(mechanism.steps):
            gradient = -((weights * (1 - rows.signed_features @ theta)) @ rows.signed_features)
            gradient = gradient + noise.gradient_noise_std * rng.standard_normal(theta.size)
            theta = theta - mechanism.learning_rate * gradient / weights.sum()
            iterates.append(theta)
        result[:, run] = np.mean(iterates[first[mechanism.average] - 1 :], axis=0)
    return result


def test_many_steps_come_to_the_formula_with_the_trace():
    # Averaging all of very many iterates: T Σ a² -> 1/λ², so that A = tr(H⁻¹V) / (κ² tr H⁻¹) with V = H; the last
    # half costs twice the noise.
    eigenvalues = np.array([0.05, 0.1, 0.25])
    for average, times in ((Average.ALL, 1.0), (Average.LAST_HALF, 2.0)):
        start_share, noise_gain = decision.solve_linear_descent(eigenvalues, 4.0, 200_000, average)
        assert 200_000 * noise_gain == pytest.approx(times / eigenvalues**2, rel=1e-3)
        assert np.all(np.abs(start_share) < 1e-3)
    mechanism = Mechanism(1.0, 1e-5, steps=1000, average=Average.ALL)
    kappa = GaussianNoise.for_release(1.0, 1.0, 1e-5).scale
    limit = 3 / (kappa**2 * (1 / eigenvalues).sum())
    assert decision.calibrate_trade_off(eigenvalues, mechanism) == pytest.approx(limit, rel=0.03)
    replaced = Mechanism(1.0, 1e-5, Neighbours.REPLACE_VALUES, steps=1000, average=Average.ALL)
    assert decision.calibrate_trade_off(eigenvalues, replaced) == pytest.approx(limit / 4, rel=0.03)


def test_theorem_4_by_hand():
    rows = small().train
    mechanism = Mechanism(30.0, 0.1)
    n, m = rows.num_rows, rows.num_users
    by_hand = math.log(8) * math.log(n) * 900 / math.log(m / 0.1) ** 4
    result = decision.compute_theorem_trade_off(rows.histogram, 8, mechanism)
    assert result == pytest.approx(by_hand)
    threshold = weights.find_best_smooth(rows.histogram, result)
    assert threshold.certificate.proves(1e-9)

    # The best threshold beats every other on a grid, row by row: Σ c² and (max user)² written out.
    def cost(h: float) -> float:
        each = np.minimum(h, rows.sizes)
        total = each.sum()
        return (each.max() / total) ** 2 + result * (each**2 / rows.sizes).sum() / total**2

    assert cost(threshold.bound) <= min(cost(h) for h in np.geomspace(1, 60, 500)) * (1 + 1e-9)
