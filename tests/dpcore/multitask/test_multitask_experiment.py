"""Appendix C: what the paper claims, with a stated confidence; Stop; determinism."""

import numpy as np
import pytest
from scipy.stats import t as student

from dpcore.multitask.experiment import Algorithm, Experiment, ExperimentResult, draw_examples, run_experiment

SIZES = {"num_users": 300, "num_tasks": 8, "tasks_per_user": 3.0}
SMALL = Experiment(powers=(1.0,), epsilons=(5.0,), exponents=(0.0, 0.5), repeats=3, **SIZES)


@pytest.mark.long
def test_half_beats_zero_and_one_with_sufficient_statistics() -> None:
    experiment = Experiment(
        algorithms=(Algorithm.SUFFICIENT_STATISTICS,), exponents=(0.0, 0.5, 1.0), repeats=10, seed=2023
    )
    result = run_experiment(experiment)
    # One-sided paired t test at 99.9 % for each of the 8 comparisons: all of them together at 99.2 %.
    needed = student.ppf(0.999, experiment.repeats - 1)
    for other_number in (0.0, 1.0):
        assert len(result.errors_by_panel) == 4
        for panel in result.errors_by_panel:
            gain = result.compare_exponents(panel, 0.5, other_number)
            assert gain.means > needed * gain.standard_errors, (panel, other_number)


@pytest.mark.long
def test_descent_gains_from_adapting_where_noise_rules() -> None:
    experiment = Experiment((Algorithm.GRADIENT_DESCENT,), (1.0,), (1.0,), (0.0, 0.5), repeats=6, seed=7)
    gain = run_experiment(experiment).compare_exponents((Algorithm.GRADIENT_DESCENT, 1.0, 1.0), 0.5, 0.0)
    assert gain.means > student.ppf(0.999, 5) * gain.standard_errors


def test_threads_and_order_do_not_change_the_result() -> None:
    experiment, two = run_experiment(SMALL, num_workers=1), run_experiment(SMALL, num_workers=2)
    for panel, errors in experiment.errors_by_panel.items():
        np.testing.assert_array_equal(errors, two.errors_by_panel[panel])
    # A run does not depend on what else is asked for.
    descent = (Algorithm.GRADIENT_DESCENT,)
    single_run = run_experiment(Experiment(descent, (1.0,), (5.0,), (0.5,), repeats=2, **SIZES))
    np.testing.assert_array_equal(
        single_run.errors_by_panel[PANEL][0], experiment.errors_by_panel[PANEL][1, :2]
    )


def test_stop_keeps_what_is_done_and_progress_reaches_one() -> None:
    shares: list[float] = []
    result = run_experiment(SMALL, progress=shares.append)
    assert result.num_runs_done == result.num_runs
    assert shares[-1] == 1.0
    assert shares == sorted(shares)
    never = Experiment(repeats=1000)
    early = run_experiment(never, should_stop=lambda: True)
    assert early.num_runs_done < early.num_runs == 8 * 9 * 1000
    assert all(early.summarise(panel).means.shape == (9,) for panel in early.errors_by_panel)


def test_a_failing_progress_ends_the_run() -> None:
    def fail(_: float) -> None:
        raise RuntimeError("page gone")

    with pytest.raises(RuntimeError, match="page gone"):
        run_experiment(Experiment(repeats=1000), progress=fail)


PANEL = (Algorithm.GRADIENT_DESCENT, 1.0, 5.0)


def test_means_skip_runs_not_reached() -> None:
    errors = np.array([[1.0, 2.0, 6.0], [3.0, 5.0, np.nan]])
    result = ExperimentResult(SMALL, {PANEL: errors})
    summary = result.summarise(PANEL)
    np.testing.assert_allclose(summary.means, [3.0, 4.0])
    # Sample variances 7 and 2 over 3 and 2.
    np.testing.assert_allclose(summary.standard_errors, np.sqrt([7 / 3, 1.0]))
    gain = result.compare_exponents(PANEL, 0.0, 0.5)
    assert gain.means == pytest.approx(2.5)
    assert gain.standard_errors == pytest.approx(0.5)


def test_relative_errors_are_paired() -> None:
    errors = np.array([[2.0, 4.0, 10.0], [1.0, 3.0, np.nan]])
    summary = ExperimentResult(SMALL, {PANEL: errors}).summarise(PANEL, is_relative=True)
    # 1/2 and 3/4, not mean(1, 3) / mean(2, 4, 10).
    assert summary.means == pytest.approx([1.0, 0.625])
    assert summary.standard_errors == pytest.approx([0.0, 0.125])


def test_training_and_test_pairs_are_apart_and_complete() -> None:
    train, test = draw_examples(SMALL, 1.0, np.random.default_rng(0))
    pairs = train.graph.num_pairs + test.labels.size
    # 20 % held out: four standard deviations of a binomial.
    assert test.labels.size == pytest.approx(0.2 * pairs, abs=4 * (0.16 * pairs) ** 0.5)
    training_pairs = {tuple(row) for row in np.column_stack((train.graph.task_codes, train.features))}
    test_pairs = {tuple(row) for row in np.column_stack((test.graph.task_codes, test.features))}
    assert not training_pairs & test_pairs
