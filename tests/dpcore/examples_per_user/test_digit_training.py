"""Training on the digits: clipped sums by a loop, bounds kept, parts apart, and that noise costs accuracy."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks import examples_per_user
from benchmarks.examples_per_user import CLASSES, UserDesign, deal_digits, draw_kept_rows, list_options, train
from dpcore.examples_per_user.parameters import Sampling


@pytest.fixture(scope="module")
def two_seeds() -> examples_per_user.TrainingResult:
    return train(UserDesign.DIVERSE, 8.0, 1e-5, seeds=2)


def test_no_user_is_above_the_bound_and_none_is_chosen_by_others() -> None:
    user = deal_digits(UserDesign.DIVERSE).user
    for bound in (1, 3, 32):
        rows = draw_kept_rows(user, bound, np.random.default_rng(1))
        assert np.bincount(user[rows]).tolist() == np.minimum(np.bincount(user), bound).tolist()
        assert (np.diff(rows) > 0).all()


@pytest.mark.parametrize("way", [Sampling.EXAMPLES, Sampling.USERS])
def test_sums_of_clipped_gradients_are_those_of_a_loop(way: Sampling) -> None:
    data, rng = deal_digits(UserDesign.SIMILAR), np.random.default_rng(2)
    of = replace(
        next(one for one in list_options(UserDesign.SIMILAR, 2.0, 1e-5) if one.sampling is way),
        gradient_norm=0.6,
    )
    theta = rng.normal(size=(CLASSES, data.features.shape[1]))
    x, y, user = data.features[:40], np.eye(CLASSES)[data.labels[:40]], data.user[:40]
    gradients = []
    for features, one in zip(x, y, strict=True):
        scores = np.exp(theta @ features)
        gradients.append(np.outer(scores / scores.sum() - one, features))
    if way is Sampling.EXAMPLES:
        expected = sum(g / max(np.linalg.norm(g), 1.0) for g in gradients)
    else:
        means = [
            np.mean([g for g, u in zip(gradients, user, strict=True) if u == who], axis=0)
            for who in set(user)
        ]
        expected = sum(g / max(np.linalg.norm(g) / 0.6, 1.0) for g in means)
    assert examples_per_user._sum_clipped(theta, x, y, user, of) == pytest.approx(
        np.asarray(expected), abs=1e-12
    )


def test_test_and_picking_parts_share_no_digit_with_each_other_or_with_training() -> None:
    data = deal_digits(UserDesign.DIVERSE)
    parts = [
        {row.tobytes() for row in item}
        for item in (data.features, data.picking_digits[0], data.testing_digits[0])
    ]
    assert [len(data.features), len(data.picking_digits[0]), len(data.testing_digits[0])] == [1137, 300, 360]
    assert len(parts[0] | parts[1] | parts[2]) >= 1797 - 5  # a few digits occur twice
    assert deal_digits(UserDesign.DIVERSE).gradient_similarity < 0.1
    assert deal_digits(UserDesign.SIMILAR).gradient_similarity > 0.5


@pytest.mark.long
def test_noise_costs_accuracy_and_the_estimate_ranks_the_ends(
    two_seeds: examples_per_user.TrainingResult,
) -> None:
    by = {
        (option.sampling, option.bound): mean
        for option, mean in zip(two_seeds.options, two_seeds.mean_accuracy, strict=True)
    }
    assert two_seeds.noiseless_accuracy > 0.88
    # At G = 32 drawing examples needs noise many times that of G = 1, and is worse by far more than two seeds vary.
    assert by[Sampling.EXAMPLES, 1] > by[Sampling.EXAMPLES, 32] + 0.2
    assert by[Sampling.USERS, 8] > by[Sampling.EXAMPLES, 32] + 0.2
    assert (two_seeds.standard_error >= 0.0).all()
