"""The paper's figures on ratings that are brought, as MovieLens publishes them: made-up content."""

from __future__ import annotations

import numpy as np
import pytest

from dpcore.common.errors import InvalidInput
from dpcore.data.published import File
from dpcore.factorisation import implicit, implicit_study, paper, paper_brought, paper_recall, study
from dpcore.factorisation.generator import GeneratedRatings
from dpcore.factorisation.implicit_study import RECOMMENDERS, ImplicitStudy, Recommender
from dpcore.factorisation.model import RatingRange
from dpcore.factorisation.ratings import Ratings
from dpcore.factorisation.study import MODEL_KINDS, ModelKind, Study

FIGURES = {of.key: paper_brought.accept_files(of) for of in (*paper.FIGURES, *paper_recall.FIGURES)}


def published(step: float) -> tuple[Ratings, File]:
    """Whole or half stars, and the same as a file."""
    ratings = GeneratedRatings(300, 60, 15.0, step=step, choice_spread=1.0).draw(np.random.default_rng(0))
    stars = np.maximum(ratings.values, step)
    rows = zip(ratings.graph.users, ratings.items, stars, strict=True)
    lines = [f"{user + 7}::{item + 1}::{value:g}::978300760" for user, item, value in rows]
    of_items = {item: code for code, item in enumerate(dict.fromkeys(ratings.items.tolist()))}
    of_users = {user: code for code, user in enumerate(dict.fromkeys(ratings.graph.users.tolist()))}
    users = [of_users[user] for user in ratings.graph.users.tolist()]
    items = [of_items[item] for item in ratings.items.tolist()]
    return Ratings.from_columns(users, items, stars), File("ratings.dat", "\n".join([*lines, ""]).encode())


@pytest.mark.parametrize(("step", "lowest"), [(1.0, 1.0), (0.5, 0.5)])
def test_errors_on_brought_ratings_are_those_of_a_study(step: float, lowest: float) -> None:
    ratings, file = published(step)
    brings = FIGURES["krichene-figure-1"].own_data
    assert brings is not None
    made = brings.build_figure([file])
    # MovieLens has whole stars from 1 or half stars from 0.5.
    asked = Study(epsilons=(5.0,), repeats=1, seed=4, limits=RatingRange(lowest, 5.0), with_recall=False)
    expected = study.run(ratings, asked).rmse[:, 0, 0, 0]
    for kind in (ModelKind.ADAPTIVE, ModelKind.PRIVATE_OFFSETS, ModelKind.NO_PRIVACY):
        assert made.run_once(5.0, 4)[kind.name.lower()] == pytest.approx(
            expected[MODEL_KINDS.index(kind)], rel=1e-4
        )
    assert (made.dataset_name, made.num_runs) == ("these ratings", paper_brought.RUNS)
    assert f"{ratings.num_ratings:,} ratings of {ratings.num_items} films" in made.setting
    assert "generated" not in made.setting + made.difference_note


def test_choices_on_brought_ratings_are_those_of_four_stars() -> None:
    ratings, file = published(1.0)
    brings = FIGURES["krichene-figure-2"].own_data
    assert brings is not None
    made = brings.build_figure([file])
    asked = ImplicitStudy(epsilons=(20.0,), repeats=1, seed=2, compared=(Recommender.TAIL,))
    expected = implicit_study.run(implicit.select_choices(ratings, 4.0), asked).recall[:, 0, 0, 0]
    assert made.run_once(20.0, 2)["tail"] == pytest.approx(expected[RECOMMENDERS.index(Recommender.TAIL)])
    assert "generated" not in made.setting + made.difference_note


def test_every_figure_but_those_of_songs_and_planted_traits_takes_ratings() -> None:
    without = {key for key, of in FIGURES.items() if of.own_data is None}
    assert without == {"krichene-figure-7", "krichene-table-3"}
    brings = FIGURES["krichene-figure-9"].own_data
    assert brings is not None
    with pytest.raises(InvalidInput, match="o file of ratings"):
        brings.build_figure([File("notes.txt", b"nothing\n")])
