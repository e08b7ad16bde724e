"""The stored result of a training on the default ratings of the page, which takes ten seconds.

``python -m dpcore.factorisation.answer.stored`` makes it anew. A test trains one seed of it again.
"""

from __future__ import annotations

import functools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from dpcore.factorisation.parameters import FactorisationParameters
from dpcore.factorisation.study import StudyResult, run

FILE = Path(__file__).with_name("stored.json")
STORED_PARAMETERS = FactorisationParameters(epsilon=1.0)
"""The question that it answers, at any epsilon of the page: the one that is trained nearest is shown."""
DIGITS = 6
"""After the point, of an error."""


def find_stored(parameters: FactorisationParameters) -> StudyResult | None:
    """Return the stored training for a question, without its models; None if another one was stored."""
    is_stored = (
        replace(parameters, epsilon=STORED_PARAMETERS.epsilon, item=STORED_PARAMETERS.item)
        == STORED_PARAMETERS
    )
    return _read_stored() if is_stored else None


@functools.cache
def _read_stored() -> StudyResult:
    """Read the stored training."""
    content = json.loads(FILE.read_text(encoding="utf-8"))
    rmse, recall = (np.array(content[measure]) for measure in ("rmse", "recall"))
    return StudyResult(STORED_PARAMETERS.study, rmse, recall, np.zeros(0, dtype=np.int64), finished=True)


def train_and_store() -> None:
    """Train, and store the result."""
    ratings = STORED_PARAMETERS.population.draw(np.random.default_rng(STORED_PARAMETERS.data_seed))
    result = run(ratings, STORED_PARAMETERS.study)
    content = {"rmse": result.rmse.round(DIGITS).tolist(), "recall": result.recall.round(DIGITS).tolist()}
    FILE.write_text(f"{json.dumps(content)}\n", encoding="utf-8")


if __name__ == "__main__":
    train_and_store()
