"""A session with a release, its account and tables of pages, as a file holds it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from dpcore.common.privacy import Disclosure, Ledger, Neighbours, ReleaseFacts
from dpcore.contributions import ContributionHistogram
from dpcore.data.column_roles import MissingUsers, Roles, TableKind
from dpcore.data.design_matrix import Design, Feature
from dpcore.dataset import Contribution, Dataset, LabelledRows
from dpcore.private_choice.choice import MECHANISM_NAME, DrawnNumber
from dpcore.private_choice.parameters import BoundPurpose, PrivateParameters, Relation
from dpcore.training.training_data import TrainingData
from pages.regression.upload import RegressionData
from pages.shared.figures.figures import Pin
from pages.shared.session import session, session_file
from pages.shared.session.own_tables import KnownFile, OwnTable
from pages.shared.session.session_file import SessionContent

FACTS = ReleaseFacts(0.25, 0.0, Neighbours.REPLACE_USER, "discrete Laplace")
SECRET = Dataset("secret.csv", "", Disclosure.PRIVATE, ContributionHistogram([1, 3], [200, 40]))
RELEASE = Dataset("copy", "", Disclosure.DP_RELEASE, ContributionHistogram([1, 3], [190, 44]), release=FACTS)
LEDGER = Ledger((FACTS, FACTS), ("aa", "bb"))
ROWS = LabelledRows(
    np.array([[1.0, 2.0], [1.0, 5.0], [1.0, 3.5], [1.0, 7.0]]), np.array([3.0, 4.0, 5.0, 4.0]), np.array([0, 1, 1, 2]),
    ("intercept", "age"), "rating",
)  # fmt: skip
TABLE = Dataset(
    "rows.csv",
    "",
    Disclosure.PRIVATE,
    ContributionHistogram([1, 2], [2, 1]),
    table=ROWS,
    privacy_unit=("who",),
)
DESIGN = Design("rating", "who", (Feature("age"),), positive='a "good" one')
ACCOUNT = "ab" * 32
NUMBER = PrivateParameters(
    1.0, BoundPurpose.SUM, selection_epsilon=0.25, relation=Relation.REPLACE, guess=20.0, guess_factor=3.0
)
CHOSEN = DrawnNumber(17.0, ReleaseFacts(0.25, 0.0, Neighbours.REPLACE_USER, MECHANISM_NAME), NUMBER.choice)
DRAWN = {SECRET.histogram.digest: ((BoundPurpose.SUM, CHOSEN),)}
EVENTS = Roles(
    TableKind.EVENTS, user="shop", value="price", task="day", missing_users=MissingUsers.ONE_USER,
    further_user=("client",), contribution=Contribution.DISTINCT_TASKS,
)  # fmt: skip
FILES = (
    KnownFile("a.csv", ("shop", "client", "day", "price"), EVENTS, Disclosure.PRIVATE),
    KnownFile("b.csv", ("n", "k"), Roles(TableKind.HISTOGRAM, size="n", users="k"), Disclosure.PUBLIC),
)
PIN = Pin(
    "mean", "a", "a.csv", 1.0, ("Best cap", "3"), ("Error", "0.1"), 0.2, "", (("U", "7"),), FACTS
)  # fmt: skip


def build_content() -> SessionContent:
    """A release in use, what it was made of, an account, and fields of both sides."""
    behind = session.LoadedData(SECRET, session.Origin(session.UPLOADED))
    loaded_data = session.LoadedData(RELEASE, session.Origin(session.DP_RELEASE), behind, {"mean.upper": 9.0})
    paid = LEDGER.merge(Ledger((CHOSEN.facts,), ("cc",)))
    accounts = {
        "": {SECRET.histogram.digest: paid}, "regression": {"0" * 64: LEDGER}, "training": {"1" * 64: LEDGER},
    }  # fmt: skip
    settings = {"mean.lower": 1.0, "mean.upper": None}
    return SessionContent(
        loaded_data, 0.5, settings, accounts, (PIN,), tables(), {"private_choice": DRAWN}, FILES
    )  # fmt: skip


def tables() -> dict[str, OwnTable]:
    """The same rows on both pages."""
    trained = {"range_low_age": 0.0, "range_high_age": 120.0}
    return {
        "regression": OwnTable(RegressionData(TABLE, ACCOUNT, design=DESIGN)),
        "training": OwnTable(TrainingData(TABLE, ACCOUNT, DESIGN), trained),
    }


def write_json(content: SessionContent) -> Any:
    return json.loads(session_file.write_file(content))


def read_json(content: Any) -> session_file.FileContent:
    return session_file.read_file(json.dumps(content).encode())


def reopen(content: SessionContent) -> session_file.FileContent:
    return read_json(write_json(content))
