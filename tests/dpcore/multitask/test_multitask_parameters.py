"""The page's parameters: what they refuse, what they build, and that they survive as text."""

import numpy as np
import pytest

from dpcore.common.checks import InvalidInput
from dpcore.common.text_fields import from_fields, to_fields
from dpcore.multitask.experiment import HeavyTailed, SkewedTasks
from dpcore.multitask.parameters import MultitaskParameters, TaskSource
from dpcore.multitask.problem import Loss


def test_every_problem_is_said_at_once() -> None:
    with pytest.raises(InvalidInput) as refused:
        MultitaskParameters(-1.0, delta=2.0, exponent=1.5, num_users=0, experiment_epsilons="one")
    message = " ".join(p.sentence for p in refused.value.problems)
    for word in ("Epsilon", "δ must", "The weight exponent μ", "The number of users", "separated by commas"):
        assert word in message


@pytest.mark.parametrize(
    "wrong",
    [
        {"num_users": 200_000, "num_tasks": 10_000},
        {"num_users": 200_000, "tasks_per_user": 51.0},
        {"tasks_per_user": 101.0},
        {"count_share": 0.0},
        {"count_share": 1.0},
        {"max_tasks": 0},
        {"experiment_epsilons": ""},
        {"experiment_epsilons": "1 2 3 4 5"},
        {"experiment_epsilons": "0"},
        {"experiment_epsilons": "nan"},
        {"experiment_repeats": 0},
        {"graph_seed": -1},
    ],
)
def test_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        MultitaskParameters(1.0, **wrong)


def test_they_survive_as_text() -> None:
    parameters = MultitaskParameters(
        0.5, 1e-7, TaskSource.HEAVY_TAILED, loss=Loss.CONVEX, exponent=0.35, experiment_epsilons="5, 1 , 0.25"
    )
    assert from_fields(MultitaskParameters, to_fields(parameters)) == parameters
    assert parameters.experiment.epsilons == (0.25, 1.0, 5.0)
    assert parameters.experiment.delta == 1e-7
    assert parameters.loss is Loss.CONVEX


def test_the_source_names_the_generator() -> None:
    assert MultitaskParameters(1.0, source=TaskSource.DATA).generator is None
    assert MultitaskParameters(1.0, skew=2.0).generator == SkewedTasks(power=2.0)
    heavy = MultitaskParameters(1.0, source=TaskSource.HEAVY_TAILED, user_spread=0.5).generator
    assert heavy == HeavyTailed(10_000, 100, 20.0, 1.0, 0.5)
    first, same, other = (
        SkewedTasks(50, 5, 1.0, 2.0).draw(np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    assert first == same != other


@pytest.mark.parametrize("users", [1, 10_000])
@pytest.mark.parametrize("source", [TaskSource.SKEWED, TaskSource.HEAVY_TAILED])
def test_whatever_is_accepted_can_be_built(users: int, source: TaskSource) -> None:
    rng = np.random.default_rng(1)
    for _ in range(30):
        tasks = int(10 ** rng.uniform(0, 4))
        parameters = MultitaskParameters(
            1.0,
            source=source,
            num_users=users,
            num_tasks=tasks,
            tasks_per_user=float(rng.uniform(1, min(tasks, 10_000_000 / users))),
            zipf_exponent=float(rng.uniform(0, 3)),
            user_spread=float(rng.uniform(0, 3)),
        )
        assert parameters.generator is not None
