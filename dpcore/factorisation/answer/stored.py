"""What a training on the ratings that **Factorisation** begins with found, stored: it takes ten seconds.

``python -m dpcore.factorisation.answer.stored`` makes it anew. A test trains one seed of it again.
"""

from __future__ import annotations

import functools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from dpcore.factorisation.answer.found import load
from dpcore.factorisation.measures import BUCKETS
from dpcore.factorisation.parameters import FactorisationParameters
from dpcore.factorisation.study import KINDS, StudyResult, run

FILE = Path(__file__).with_name("stored.json")
ASKED = FactorisationParameters(epsilon=1.0)
"""The question that it answers, at any epsilon of the page: the one that is trained nearest is shown."""
DIGITS = 6
"""After the point, of an error."""


def result(parameters: FactorisationParameters) -> StudyResult | None:
    """The training for a question, without its models; None where it is not the one that was stored."""
    same = replace(parameters, epsilon=ASKED.epsilon, item=ASKED.item) == ASKED
    return _read() if same else None


@functools.cache
def _read() -> StudyResult:
    held, study = json.loads(FILE.read_text(encoding="utf-8")), ASKED.study
    shape = (len(KINDS), len(study.epsilons), study.repeats, 1 + BUCKETS)
    rmse, recall = (np.array(held[name], dtype=np.float64).reshape(shape) for name in ("rmse", "recall"))
    tested = np.array(held["test_ratings"], dtype=np.int64).reshape(study.repeats, BUCKETS)
    return StudyResult(study, rmse, recall, tested, np.zeros(0, dtype=np.int64), {}, finished=True)


def make() -> None:
    """Train, and store what was found."""
    table = load(ASKED, None)
    assert table is not None
    found = run(table.ratings, ASKED.study)
    lists = {
        name: [None if np.isnan(value) else round(float(value), DIGITS) for value in values.ravel()]
        for name, values in (("rmse", found.rmse), ("recall", found.recall))
    }
    FILE.write_text(
        json.dumps({**lists, "test_ratings": found.test_ratings.ravel().tolist()}) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    make()
