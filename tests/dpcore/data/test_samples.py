"""Every sample loads, and its totals are those of its origin."""

import runpy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Disclosure
from dpcore.counting import build_dataset, read_table
from dpcore.data import samples
from dpcore.data.guessed_roles import guess_roles

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("key", samples.SAMPLES)
def test_loads_as_public_with_its_origin(key: str) -> None:
    sample, data = samples.SAMPLES[key], samples.load(key)
    assert sample.key == key
    assert data.disclosure is Disclosure.PUBLIC
    assert data.name == sample.title
    assert data.source == sample.source_text
    assert data.source.count("..") == 0


@pytest.mark.parametrize(
    ("key", "num_users", "num_rows"),
    [
        # UCI Online Retail without the rows that lack a customer.
        ("online-retail-lines", 4_372, 406_829),
        ("online-retail-invoices", 4_372, 22_190),
        ("online-retail-customers-per-product", 3_684, 267_615),
        ("requests-commits", 803, 6_489),
    ],
)
def test_totals_agree_with_the_origin(key: str, num_users: int, num_rows: int) -> None:
    data = samples.load(key)
    assert (data.histogram.num_users, data.histogram.num_rows) == (num_users, num_rows)
    assert (data.values, data.pairs) == (None, None)


@pytest.mark.parametrize("key", samples.SAMPLES)
def test_uploading_the_file_gives_the_same_data(key: str) -> None:
    # A person may find the files and upload them: the columns must be recognised as what they are.
    sample = samples.SAMPLES[key]
    table = read_table(sample.path.read_bytes(), sample.file_name)
    roles = guess_roles(table)
    assert roles == sample.roles
    uploaded, from_sample = build_dataset(table, roles, Disclosure.PUBLIC), samples.load(key)
    if from_sample.pairs is not None:  # Sums of a pair may be added up in another order.
        uploaded, from_sample = (
            replace(
                data,
                pairs=replace(
                    data.pairs,
                    sums=data.pairs.sums.round(6),
                    sums_of_squares=data.pairs.sums_of_squares.round(6),
                ),
            )
            for data in (uploaded, from_sample)
        )
    assert uploaded.digest == from_sample.digest


def test_shop_events_are_what_the_readme_says() -> None:
    data = samples.load("shop-events")
    values, codes = data.values.values, data.values.user_codes
    assert (values.min() >= 0, values.max() <= 100) == (True, True)
    np.testing.assert_allclose(values, np.round(values, 2), rtol=1e-15)
    assert data.histogram.max_size <= 150
    # One-way analysis of variance, the usual estimate of the variance between groups of unequal size.
    sizes = np.bincount(codes)
    means = np.bincount(codes, weights=values) / sizes
    m, n = sizes.size, values.size
    variance_within = np.sum((values - means[codes]) ** 2) / (n - m)
    among = np.sum(sizes * (means - values.mean()) ** 2) / (m - 1)
    variance_between = (among - variance_within) / ((n - np.sum(sizes**2) / n) / (m - 1))
    assert variance_between / (variance_between + variance_within) == pytest.approx(0.2, abs=0.05)
    readme = (samples.FOLDER / "README.md").read_text(encoding="utf-8")
    assert f"{n:,} rows, {m} users" in readme


def test_item_ratings_are_what_the_readme_says() -> None:
    data = samples.load("item-ratings")
    assert data.pairs.value_range == (0.5, 5.0)
    assert data.pairs.num_tasks == 100
    assert set(np.unique(data.pairs.rows)) == {1}
    readme = (samples.FOLDER / "README.md").read_text(encoding="utf-8")
    assert f"{data.histogram.num_rows:,} rows, {data.histogram.num_users} users" in readme


def test_readme_names_every_file() -> None:
    readme = (samples.FOLDER / "README.md").read_text(encoding="utf-8")
    files = {p.name for p in samples.FOLDER.iterdir()} - {"README.md"}
    # What is no sample of *Data* belongs to a question, whose core names it.
    other_files = files - {s.file_name for s in samples.SAMPLES.values()}
    core = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "dpcore").glob("*/*.py"))
    assert all(f'"{name}"' in core for name in other_files)
    assert all(f"`{name}`" in readme for name in files)


@pytest.mark.parametrize(
    ("script", "file_name"),
    [
        ("make_sample_events.py", "shop_events.csv"),
        ("make_sample_ratings.py", "item_ratings.csv"),
        ("make_sample_tickets.py", "support_tickets.csv"),
    ],
)
def test_the_script_makes_the_file(
    script: str, file_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # If a later version of numpy draws other numbers from the same seed, keep the file and say so in its README.
    target = tmp_path / "made.csv"
    monkeypatch.setattr("sys.argv", [script, str(target)])
    runpy.run_path(str(ROOT / "docs" / script), run_name="__main__")
    assert target.read_text(encoding="utf-8") == (samples.FOLDER / file_name).read_text(encoding="utf-8")


def test_unknown_or_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no sample called 'nonsense'; there are shop-events"):
        samples.load("nonsense")
    monkeypatch.setattr(samples, "FOLDER", tmp_path)
    with pytest.raises(InvalidInput, match="missing from the folder"):
        samples.load("shop-events")
