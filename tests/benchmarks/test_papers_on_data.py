"""The papers' figures on files as their makers publish them: made-up content, read and computed by another route."""

from __future__ import annotations

import gzip
import json
import math
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.papers import __main__ as command
from benchmarks.papers import on_data, readers
from benchmarks.papers.__main__ import build_page, main, to_json
from dpcore.answer.paper_figure import FigureRuns
from dpcore.papers import FIGURES, find_figure
from dpcore.regression import working_set
from dpcore.regression.estimate import compute_squared_prediction_error
from dpcore.regression.problem import RegressionProblem

ROOT = Path(__file__).parents[2]
RATINGS = b"7::31::2.5::1260759144\n7::1029::3::1260759179\n15::31::4::1260759182\n"


def to_idx(array: np.ndarray) -> bytes:
    """As LeCun, Cortes and Burges describe it: two zeros, 8 for bytes, the rank, each length, then the bytes."""
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def make_pictures(name: str, num_pictures: int = 190) -> tuple[np.ndarray, np.ndarray]:
    """Pictures of which each class has a bright row of its own."""
    rng = np.random.default_rng(3)
    labels = np.concatenate((readers.FIRST_LABELS[name], rng.integers(0, 10, num_pictures))).astype(np.uint8)
    pixels = rng.integers(0, 60, (labels.size, 28, 28))
    pixels[np.arange(labels.size), 2 * labels + 4] += 190
    return pixels.astype(np.uint8), labels


def write_reviews(folder: Path) -> None:
    rng = np.random.default_rng(4)
    lines = ["\turlDrugName\trating\teffectiveness\tsideEffects"]
    for row in range(120):
        good, bad = rng.integers(0, 3), rng.integers(0, 2)
        rating = int(np.clip(2 + 3 * good - 2 * bad + rng.integers(-1, 2), 1, 10))
        drug = "NA" if row % 60 == 0 else f"drug {min(row % 60, 30)}"
        lines.append(f"{row}\t{drug}\t{rating}\t{'abc'[good]}\t{'xy'[bad]}")
    (folder / "drugLibTrain_raw.tsv").write_text("\n".join(lines))


@pytest.mark.parametrize("form", ["idx", "packed idx", "npz"])
@pytest.mark.parametrize("name", ["MNIST", "FashionMNIST"])
def test_pictures_are_read_in_every_form(tmp_path: Path, form: str, name: str) -> None:
    pixels, labels = make_pictures(name, 5)
    if form == "npz":
        np.savez_compressed(tmp_path / "some.npz", x_train=pixels, y_train=labels, x_test=pixels[:2])
    else:
        for text, array in (("images-idx3", pixels), ("labels-idx1", labels)):
            packed = form == "packed idx"
            content = gzip.compress(to_idx(array)) if packed else to_idx(array)
            (tmp_path / f"train-{text}-ubyte{'.gz' if packed else ''}").write_bytes(content)
    pictures = readers.read_pictures(tmp_path)
    np.testing.assert_array_equal(pictures.pixels, pixels)
    np.testing.assert_array_equal(pictures.labels, labels)
    assert pictures.name == name


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("ratings.dat", RATINGS),
        ("ratings.dat", RATINGS.replace(b"\n", b"\r\n")),
        ("u.data", RATINGS.replace(b"::", b"\t")),
        ("ratings.csv", b"userId,movieId,rating,timestamp\n" + RATINGS.replace(b"::", b",")),
        ("ratings.dat.gz", gzip.compress(RATINGS)),
    ],
    ids=["dat", "dat of Windows", "u.data", "csv", "packed"],
)
def test_ratings_are_read_in_every_form(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / "movies.dat").write_bytes(b"31::Dangerous Minds (1995)::Drama\n" * 50)
    (tmp_path / "words.csv").write_bytes(b"a,b,c\nx,y,z\n" * 50)
    (tmp_path / name).write_bytes(content)
    users, films, values = readers.read_ratings(tmp_path)
    assert (users.tolist(), films.tolist(), values.tolist()) == ([0, 0, 1], [0, 1, 0], [2.5, 3.0, 4.0])


def test_posts_are_joined_with_their_sources(tmp_path: Path) -> None:
    (tmp_path / "News_Final.csv").write_text(
        'IDLink,Title,Source\n99248.0,"Obama, again",USA TODAY\n10423,b,Bloomberg\n7,c,\n'
    )
    rows = [",".join(["IDLink", *(f"TS{n}" for n in range(1, 145))])]
    for post, third, last in (("10423", "2", "9"), ("99248", "-1", "71"), ("7", "1", "1"), ("8", "1", "1")):
        rows.append(",".join([post, "-1", "-1", third, *["5"] * 140, last]))
    (tmp_path / "LinkedIn_Economy.csv").write_text("\n".join(rows))
    posts = readers.read_posts(tmp_path)
    assert posts.rows.features.tolist() == [[2.0, *[5.0] * 9], [0.0, *[5.0] * 9]]
    assert (posts.rows.labels.tolist(), posts.rows.users.tolist()) == ([9.0, 71.0], [0, 1])
    early_rows = readers.read_posts(tmp_path, range(1, 4)).rows
    assert early_rows.features.tolist() == [[0.0, 0.0, 2.0], [0.0, 0.0, 0.0]]
    assert "is not the paper's table" in posts.description


@pytest.mark.long
@pytest.mark.parametrize("leaves_out", [False, True])
def test_the_papers_posts_are_recognised_among_several_files(tmp_path: Path, leaves_out: bool) -> None:
    """3,452 posts of 297 sources, the largest with 878, labels from 0 to 71; a larger file of other posts beside it."""
    sources = np.concatenate((np.zeros(878, int), np.arange(1, 297), np.arange(3452 - 878 - 296) % 296 + 1))
    labels = np.arange(3452) % 72
    num_extra = 50 if leaves_out else 0  # Of these a count is -1.
    posts = [f"{post},{source}" for post, source in enumerate([*sources, *[5] * num_extra])]
    posts += [f"{post},{post % 400}" for post in range(10_000, 15_000)]
    (tmp_path / "News_Final.csv").write_text("IDLink,Source\n" + "\n".join(posts))
    header = ",".join(["IDLink", *(f"TS{n}" for n in range(1, 145))])
    early = ",".join(["3"] * 30)
    rows = [f"{post},{early},{','.join(['4'] * 113)},{label}" for post, label in enumerate(labels)]
    rows += [f"{3452 + i},{','.join(['-1'] * 30)},{','.join(['4'] * 113)},1" for i in range(num_extra)]
    (tmp_path / "LinkedIn_Palestine.csv").write_text("\n".join([header, *rows]))
    others = [f"{post},{early},{','.join(['4'] * 113)},9" for post in range(10_000, 15_000)]
    (tmp_path / "Facebook_Obama.csv").write_text("\n".join([header, *others]))
    found = readers.read_posts(tmp_path)
    reading = "rows with -1 left out" if leaves_out else "-1 as 0"
    assert found.description == f"the paper's table: LinkedIn_Palestine.csv, {reading}"
    assert found.rows.labels.tolist() == labels.tolist()
    (tmp_path / "LinkedIn_Palestine.csv").unlink()
    assert readers.read_posts(tmp_path).description.startswith("Facebook_Obama.csv, which is not")


def test_a_folder_without_the_files_is_refused_with_what_is_missing(tmp_path: Path) -> None:
    for build in set(on_data.BUILDERS.values()):
        key = next(key for key, builder in on_data.BUILDERS.items() if builder is build)
        with pytest.raises(ValueError, match=r"^no "):
            build(key, tmp_path)


def test_a_linear_model_learns_made_up_pictures(tmp_path: Path) -> None:
    for name in readers.FIRST_LABELS:
        pixels, labels = make_pictures(name)
        np.savez(tmp_path / "some.npz", x_train=pixels, y_train=labels)
        figure = on_data.BUILDERS["huang-table-1"]("huang-table-1", tmp_path)
        theirs = {line.key: line.paper_values for line in figure.lines}
        # Digits read in the paper's table 1.
        assert theirs["joint"][3] == {"MNIST": 0.8169, "FashionMNIST": 0.6719}[name]
    accuracies = figure.run_once(4.0, 0)
    # Each class has a bright row of its own: learned from all without privacy, and hidden by an owner's noise.
    assert accuracies["plain"] > 0.9
    assert accuracies["joint_owner"] < 0.6


def test_a_count_of_ratings_has_the_error_of_the_closed_form(tmp_path: Path) -> None:
    counts = np.array([1, 2, 3, 5, 40])
    lines = [f"{user}\t{film}\t4\t0" for user, count in enumerate(counts, 10) for film in range(count)]
    (tmp_path / "u.data").write_text("\n".join(lines))
    errors = on_data.BUILDERS["amin-figure-1"]("amin-figure-1", tmp_path).run_once(0.5, 0)
    # A bound of 3 cuts 2 + 37 ratings, and E|b + Laplace(s)| = b + s exp(-b/s).
    cut, scale = 39.0, 3.0 / 0.5
    assert errors["median"] == pytest.approx((cut + scale * math.exp(-cut / scale)) / counts.sum(), rel=1e-9)
    # 1/0.7 users, one to two, lie above the paper's bound: it is 5, and cuts 35. Nothing errs less than the optimum.
    errors, cut, scale = (
        on_data.compute_relative_errors(
            on_data.Amounts.from_histogram(on_data.ContributionHistogram.from_counts(counts)), 0.7
        ),
        35.0,
        5.0 / 0.7,
    )
    assert errors["rule"] == pytest.approx((cut + scale * math.exp(-cut / scale)) / counts.sum(), rel=1e-9)
    assert errors["best"] <= min(errors.values())


def test_reviews_give_the_regression_that_is_read_by_hand(tmp_path: Path) -> None:
    write_reviews(tmp_path)
    assert readers.read_reviews(tmp_path).users.max() == 30  # "NA" is a drug like any other.
    # By hand: ones, a column for each level but the first, labels from 0; the best weights' error by the solver alone.
    cells = [line.split("\t") for line in (tmp_path / "drugLibTrain_raw.tsv").read_text().splitlines()[1:]]
    x = np.array([[1, c[3] == "b", c[3] == "c", c[4] == "y"] for c in cells], dtype=float)
    labels, users = (
        np.array([float(c[2]) - 1.0 for c in cells]),
        np.unique([c[1] for c in cells], return_inverse=True)[1],
    )
    variance = float(np.sum((labels - x @ np.linalg.lstsq(x, labels)[0]) ** 2)) / (len(x) - 4)
    problem = RegressionProblem(x, users, 1.0, float(labels.max()), variance)
    by_hand = compute_squared_prediction_error(problem, working_set.solve(problem), labels)
    figure = on_data.BUILDERS["epasto-table-1-drugs"]("epasto-table-1-drugs", tmp_path)
    errors = figure.run_once(1.0, 0)
    assert errors["weights"] == pytest.approx(by_hand, rel=1e-4)
    assert {line.key for line in figure.lines} == set(errors)


def test_reviews_are_classes_above_the_median(tmp_path: Path) -> None:
    write_reviews(tmp_path)
    rows = readers.read_reviews(tmp_path)
    classes = on_data.classify_rows(rows)
    assert (classes.signs == 1).sum() == (rows.labels > np.median(rows.labels)).sum()
    figure = on_data.BUILDERS["epasto-table-2"]("epasto-table-2", tmp_path)
    losses = figure.run_once(2.0, 0)
    assert set(losses) == {line.key for line in figure.lines}
    # Another seed draws other noise; more noise loses more.
    assert losses["weights_30"] != figure.run_once(2.0, 1)["weights_30"]
    assert losses["weights_50"] < losses["weights_30"]
    assert "cap_30" not in figure.run_once(5.0, 0)  # The table has one column without a bound.


def test_a_recommender_is_trained_on_ratings(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    rows = [(u, f, rng.integers(1, 6)) for u in range(80) for f in rng.choice(40, 12, replace=False)]
    (tmp_path / "ratings.dat").write_text("\n".join(f"{u}::{f}::{r}::0" for u, f, r in rows))
    runs = {
        key: build(key, tmp_path).run_once
        for key, build in on_data.BUILDERS.items()
        if key.startswith("krichene")
    }
    over_epsilon = runs["krichene-figure-1"](20.0, 0)
    # Ratings from 1 to 5 drawn at random have a spread of √2, and no model of such noise errs by more than the range.
    assert all(1.0 < error < 4.0 for error in over_epsilon.values())
    # Both figures meet at the paper's μ = 1/4.
    assert runs["krichene-figure-3"](0.25, 0)["adaptive_20"] == pytest.approx(over_epsilon["adaptive"])
    rarest = runs["krichene-figure-4"](1.0, 0)
    gain = 1 - rarest["adaptive"] / rarest["tail"]
    assert runs["krichene-figure-9"](1.0, 0)["gain_1"] == pytest.approx(gain)
    assert 0.0 <= runs["krichene-figure-2"](20.0, 0)["tail"] <= 1.0


def test_the_command_prints_what_a_folder_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "u.data").write_bytes(RATINGS.replace(b"::", b"\t"))
    main(["--data", str(tmp_path), "amin-figure-1", "huang-table-1", "epasto-figure-1"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Amin et al. 2019, figure 1: error of a count")
    assert "on 3 ratings by 2 users" in lines[0]
    assert lines[-1].startswith("Huang et al. 2023, table 1: left out. no train-images-idx3-ubyte")
    for arguments in (["--data", str(tmp_path), "--runs", "0"], ["--data", str(tmp_path / "nowhere")]):
        with pytest.raises(SystemExit):
            main(arguments)


def test_an_interrupted_command_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = (find_figure(key) for key in ("amin-figure-2", "amin-figure-3a"))
    monkeypatch.setattr(command, "RESULTS", tmp_path)
    monkeypatch.setattr(command, "PROGRESS", tmp_path / "progress")

    def interrupt(_value: float, _seed: int) -> dict[str, float]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        command.store_figures([first, replace(second, run_once=interrupt)])
    assert [path.name for path in tmp_path.glob("*.json")] == ["amin-figure-2.json"]
    command.store_figures([first, second])
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(";")[0] for line in lines[1:2]] == ["amin-figure-2: finished before"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["amin-figure-2.json", "amin-figure-3a.json"]
    command.store_figures([first])  # A later call begins anew.
    assert "finished before" not in capsys.readouterr().out


def test_stored_runs_are_read_as_they_were_written() -> None:
    figure = find_figure("amin-figure-3a")
    runs = figure.compute()
    text = to_json(figure, runs)
    assert json.loads(text)["command"] == "make paper-figures"
    again = FigureRuns.read(figure, text)
    assert again.x_values == runs.x_values
    np.testing.assert_allclose(again.summary.means, runs.summary.means, rtol=1e-6)


def test_the_documentation_is_made_of_the_list() -> None:
    assert (ROOT / "docs" / "papers.md").read_text(encoding="utf-8") == build_page()


def test_every_builder_is_one_of_a_figure() -> None:
    assert set(on_data.BUILDERS) <= {figure.key for figure in FIGURES}
