"""Readers of the papers' public data sets, in files as their makers publish them: all from one folder.

``docs/papers_data.md`` says where the files are. A reader takes the file by its columns, and names of files matter only
for MNIST's IDX files. A reader that finds nothing raises a ValueError, which says what it looked for.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from dpcore.data.samples import RegressionRows

FIRST_LABELS = {"MNIST": (5, 0, 4, 1, 9, 2, 1, 3, 1, 4), "FashionMNIST": (9, 0, 0, 3, 0, 2, 7, 2, 5, 5)}
"""First labels of each training part: both sets come in files of the same names."""
FULL_HOURS = tuple(range(3, 31, 3))
"""The first ten full hours among the 20-minute slices TS1, TS2 ... of *news*."""
LAST_SLICE = "TS144"


@dataclass(frozen=True, eq=False)
class Pictures:
    """Grey pictures with a class.

    Attributes:
        pixels: 0 to 255, shape (pictures, 28, 28).
        labels: 0 to 9, shape (pictures,).
        name: Name of the set, by its first labels.
    """

    pixels: np.ndarray
    labels: np.ndarray
    name: str


def read_pictures(folder: Path, subset: Literal["train", "test"] = "train") -> Pictures:
    """Read a part of MNIST or FashionMNIST: an .npz file, or two IDX files, packed with gzip or not.

    The test part has no name of its own, as only first labels of the training parts are known.
    """
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as arrays:
            if {f"x_{subset}", f"y_{subset}"} <= set(arrays.files):
                return _name_pictures(arrays[f"x_{subset}"], arrays[f"y_{subset}"])
    stem = {"train": "train", "test": "t10k"}[subset]
    paths_by_part = [sorted(folder.glob(f"{stem}-{name}-ubyte*")) for name in ("images-idx3", "labels-idx1")]
    if not all(paths_by_part):
        raise ValueError(
            f"no {stem}-images-idx3-ubyte with {stem}-labels-idx1-ubyte, nor .npz with x_{subset} and y_{subset}"
        )
    return _name_pictures(*(_read_idx(paths[0]) for paths in paths_by_part))


def _name_pictures(pixels: np.ndarray, labels: np.ndarray) -> Pictures:
    if pixels.shape != (labels.size, 28, 28):
        raise ValueError(f"{labels.size} labels for pictures of shape {pixels.shape}")
    first_labels = tuple(labels[:10].tolist())
    name = next((name for name, first in FIRST_LABELS.items() if first == first_labels), "these pictures")
    return Pictures(pixels, labels.astype(np.int64), name)


def _read_idx(path: Path) -> np.ndarray:
    """Read an IDX file of bytes: the rank in byte 3, each length as 32 bits with the highest byte first, the bytes."""
    content = _read_bytes(path)
    rank = content[3]
    shape = np.frombuffer(content, ">u4", count=rank, offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * rank).reshape(shape)


def read_ratings(folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Read ratings of MovieLens; of several files the largest.

    A line has user, film and rating first: between ``::`` or tabs without a header, or between commas with one.

    Returns:
        Codes of users and of films, and ratings, each of shape (ratings,).
    """
    for path in _list_largest_first(folder, "*.dat*", "*.data*", "*.csv*"):
        content = _read_bytes(path)
        separator = next(s for s in (b"::", b"\t", b",") if s in content[:2000] or s == b",")
        header = int(separator == b",")
        first_lines = content[:2000].splitlines()[header : header + 2]
        if not first_lines or not _is_numeric(first_lines[0].split(separator)[:3]):
            continue
        table = pd.read_csv(
            io.BytesIO(content.replace(b"::", b"\t")),
            sep="," if header else "\t",
            skiprows=header,
            header=None,
            usecols=[0, 1, 2],
        )
        users, films = (pd.factorize(table[column])[0] for column in (0, 1))
        return users, films, table[2].to_numpy(np.float64)
    raise ValueError("no ratings.dat, ratings.csv or u.data of MovieLens")


def read_reviews(folder: Path) -> RegressionRows:
    """Read *drugs*: each drug is a user, two rated properties are features, and its rating is the label.

    A property has a column for each of its levels except the first, as ``pandas.get_dummies`` drops it.

    Source: Epasto et al. 2020, appendix E.1.1.
    """
    columns = {
        "user": ("urlDrugName", "drug"),
        "label": ("rating",),
        "effect": ("effectiveness",),
        "harm": ("sideEffects", "side_effects"),
    }
    _, table = _read_columns(folder, columns, "drugLibTrain_raw.tsv")
    indicators = [table[name] == level for name in ("effect", "harm") for level in np.unique(table[name])[1:]]
    return _build_rows(table, np.column_stack(indicators))


@dataclass(frozen=True, eq=False)
class Posts:
    """Posts of one topic and network as rows of a regression.

    Attributes:
        rows: Each source is a user, counts after some slices are features, the last count is the label.
        description: The file, how counts of -1 are read, and whether this is the paper's table.
    """

    rows: RegressionRows
    description: str


PAPER_POSTS = (3452, 297, 878, 0.0, 71.0)
"""Rows, sources, rows of the largest source, least and largest label of *news* (Epasto et al. 2020, appendix E.1.1)."""


def read_posts(folder: Path, slices: Sequence[int] = FULL_HOURS) -> Posts:
    """Read *news*: the paper's table if a file is recognised by its sizes, else the largest file.

    A count of -1, from before a post was there, is taken as 0, or else its row is left out: whichever gives the paper's
    sizes; as 0 if neither does.

    Source: Epasto et al. 2020, appendix E.1.1, which leaves open the topic and which ten slices of the first 30.
    """
    names = [f"TS{n}" for n in slices]
    columns = {name: (name,) for name in ("IDLink", *names, LAST_SLICE)}
    file_kind = "file of one topic and network, such as LinkedIn_Palestine.csv"
    _, posts = _read_columns(folder, {"IDLink": ("IDLink",), "user": ("Source",)}, "News_Final.csv")
    tables = list(_iterate_columns(folder, columns))
    if not tables:
        raise ValueError(f"no {file_kind}")
    merged_tables = [(path, _join_sources(counts, posts)) for path, counts in tables]
    for path, merged in merged_tables:
        is_complete = (merged[[*names, "label"]].astype(np.float64) >= 0.0).all(axis=1)
        for reading, table in (("-1 as 0", merged), ("rows with -1 left out", merged[is_complete])):
            rows = _build_post_rows(table, names)
            if _measure_posts(rows) == PAPER_POSTS:
                return Posts(rows, f"the paper's table: {path.name}, {reading}")
    path, merged = merged_tables[0]
    if merged.empty:
        raise ValueError(f"no IDLink of {path.name} stands in News_Final.csv")
    return Posts(_build_post_rows(merged, names), f"{path.name}, which is not the paper's table; -1 as 0")


def _join_sources(counts: pd.DataFrame, posts: pd.DataFrame) -> pd.DataFrame:
    """Return the counts of posts whose source is known, with source and label."""
    counts, posts = (table.assign(IDLink=table["IDLink"].str.removesuffix(".0")) for table in (counts, posts))
    merged = counts.merge(posts.drop_duplicates("IDLink"), on="IDLink")
    return merged[merged["user"] != ""].rename(columns={LAST_SLICE: "label"})


def _build_post_rows(table: pd.DataFrame, names: Sequence[str]) -> RegressionRows:
    numbers = table[[*names, "label"]].astype(np.float64).clip(lower=0.0)
    return _build_rows(table.assign(label=numbers["label"]), numbers[list(names)].to_numpy())


def _measure_posts(rows: RegressionRows) -> tuple[float, ...]:
    """Return rows, sources, rows of the largest source, least and largest label; zeros for an empty table."""
    if not rows.labels.size:
        return (0, 0, 0, 0.0, 0.0)
    sizes = np.bincount(rows.users)
    return rows.labels.size, sizes.size, int(sizes.max()), float(rows.labels.min()), float(rows.labels.max())


def _build_rows(table: pd.DataFrame, features: np.ndarray) -> RegressionRows:
    labels = table["label"].to_numpy(np.float64)
    users = pd.factorize(table["user"])[0].astype(np.int64)
    return RegressionRows(np.asarray(features, dtype=np.float64), labels, users)


def _read_columns(
    folder: Path, columns: Mapping[str, Sequence[str]], missing: str
) -> tuple[Path, pd.DataFrame]:
    """Read the largest table that `_iterate_columns` finds."""
    first_table = next(_iterate_columns(folder, columns), None)
    if first_table is None:
        raise ValueError(f"no {missing}")
    return first_table


def _iterate_columns(
    folder: Path, columns: Mapping[str, Sequence[str]]
) -> Iterator[tuple[Path, pd.DataFrame]]:
    """Read the tables between tabs or commas that have these columns, as text under our names, largest first."""
    for path in _list_largest_first(folder, "*.tsv*", "*.csv*"):
        content = _read_bytes(path)
        separator = "\t" if b"\t" in content.partition(b"\n")[0] else ","
        header = list(pd.read_csv(io.BytesIO(content), sep=separator, nrows=0).columns)
        names_in_file = {
            our_name: next((name for name in names if name in header), "")
            for our_name, names in columns.items()
        }
        if all(names_in_file.values()):
            table = pd.read_csv(
                io.BytesIO(content),
                sep=separator,
                usecols=list(names_in_file.values()),
                dtype=str,
                keep_default_na=False,
            )
            yield path, table.rename(columns={name: our_name for our_name, name in names_in_file.items()})


def _list_largest_first(folder: Path, *patterns: str) -> Iterator[Path]:
    paths = {path for pattern in patterns for path in folder.glob(pattern)}
    return iter(sorted(paths, key=lambda path: (-path.stat().st_size, path.name)))


def _read_bytes(path: Path) -> bytes:
    content = path.read_bytes()
    return gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content


def _is_numeric(cells: Sequence[bytes]) -> bool:
    try:
        return len([float(cell) for cell in cells]) == 3
    except ValueError:
        return False
