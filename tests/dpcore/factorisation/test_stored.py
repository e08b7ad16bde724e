"""The training that was stored for the first screen of Recommender, made again in part."""

from dataclasses import replace

import numpy as np
import pytest

from dpcore.factorisation.answer import solution
from dpcore.factorisation.study import run


@pytest.mark.long
def test_one_seed_of_what_is_stored_is_what_is_trained_today():
    parameters = solution.STORED_PARAMETERS
    stored_answer = solution.find_stored(replace(parameters, epsilon=3.0, item=7))
    table = solution.load_ratings(parameters, None)
    repeated = run(table, replace(parameters.study, epsilons=(1.0,), repeats=1, measures_recall=False))
    assert repeated.rmse[:, 0, 0] == pytest.approx(stored_answer.rmse[:, 0, 0], abs=1e-4, nan_ok=True)
    assert np.isfinite(stored_answer.rmse).all()


@pytest.mark.parametrize(
    "changed", [{"max_items": 99}, {"train_seed": 2}, {"num_users": 6001}, {"delta": 1e-6}]
)
def test_other_questions_have_no_stored_answer(changed: dict[str, float]):
    assert solution.find_stored(replace(solution.STORED_PARAMETERS, **changed)) is None
