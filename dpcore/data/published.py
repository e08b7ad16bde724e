"""Files of public data sets as their makers publish them: pictures, ratings, reviews of drugs, posts about news.

They are read in memory, and what a figure needs of them is kept. Nothing is coerced: what is not such a file is refused
with a sentence. Names of files are those of their makers, but any name will do where the content tells what it is.
"""

from __future__ import annotations

import gzip
import io
import math
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dpcore.common.errors import InvalidInput, refuse
from dpcore.contributions import FloatArray, IntArray
from dpcore.data.column_names import shown

if TYPE_CHECKING:
    import pandas as pd

Bytes = npt.NDArray[np.uint8]

MOST_BYTES = 1_000_000_000
"""Of a packed file once it is unpacked: more than any of these sets has."""
PICTURES, LABELS = 0x00000803, 0x00000801
"""What an IDX file of bytes begins with: three dimensions, and one."""
SIDE = 28
"""Of a picture, pixels."""
MOST_LEVELS = 20
"""Of a category: each pair of levels is a reading, and each level a column."""


@dataclass(frozen=True)
class File:
    """A file that a person brings.

    Attributes:
        name: Without its folder.
        content: Its bytes; packed ones as they are.
    """

    name: str
    content: bytes


@dataclass(frozen=True, eq=False)
class Pictures:
    """Grey pictures with a class.

    Attributes:
        pixels: 0 to 255, shape (pictures, 28, 28).
        labels: 0 to 9, shape (pictures,).
        name: Which set the first labels are those of; empty for neither MNIST nor FashionMNIST.
    """

    pixels: Bytes
    labels: IntArray
    name: str


@dataclass(frozen=True, eq=False)
class Rated:
    """Who rated what.

    Attributes:
        users: Codes 0 .. num_users - 1, shape (ratings,).
        items: Codes 0 .. num_items - 1, shape (ratings,).
        values: Ratings, shape (ratings,).
        name: Of the file.
    """

    users: IntArray
    items: IntArray
    values: FloatArray
    name: str


@dataclass(frozen=True, eq=False)
class Grouped:
    """Rows of a regression with whose they are.

    Attributes:
        features: Names and columns: text for a category, float64 for a number; each of shape (rows,).
        labels: What is predicted, shape (rows,).
        users: Codes 0 .. num_users - 1, shape (rows,).
        name: Of the file.
    """

    features: dict[str, npt.NDArray[np.generic]]
    labels: FloatArray
    users: IntArray
    name: str

    @property
    def sizes(self) -> IntArray:
        """Rows of each user, shape (num_users,)."""
        return np.bincount(self.users).astype(np.int64)

    @property
    def levels(self) -> tuple[list[str], ...]:
        """The levels of each category, ascending."""
        return tuple(
            sorted({str(level) for level in values})
            for values in self.features.values()
            if values.dtype.kind == "U"
        )

    def encoded(self, dropped: Sequence[str]) -> FloatArray:
        """Features as numbers: a category has a column for each level but one, a number is itself.

        Args:
            dropped: The level of each category that has no column.
        """
        left = iter(dropped)
        columns: list[FloatArray] = []
        for values in self.features.values():
            if values.dtype.kind == "U":
                drop = next(left)
                columns += [
                    (values == level).astype(np.float64) for level in np.unique(values) if level != drop
                ]
            else:
                columns.append(values.astype(np.float64))
        return np.column_stack(columns)


def in_folder(folder: Path) -> tuple[File, ...]:
    """All files directly in a folder whose names those of these sets may be, in the order of their names.

    Raises:
        InvalidInput: There is no such folder.
    """
    if not folder.is_dir():
        raise refuse(f"there is no folder {shown(str(folder))}")
    endings = (".gz", ".npz", ".dat", ".data", ".csv", ".tsv", "-ubyte")
    return tuple(
        File(path.name, path.read_bytes())
        for path in sorted(folder.iterdir())
        if path.is_file() and path.name.lower().endswith(endings)
    )


def unpacked(file: File) -> bytes:
    """The bytes of a file, out of gzip where it is packed.

    Raises:
        InvalidInput: It is cut off or damaged, or would not fit.
    """
    if not file.content.startswith(b"\x1f\x8b"):
        return file.content
    try:
        with gzip.open(io.BytesIO(file.content)) as stream:
            found = stream.read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error):
        raise refuse(f"{shown(file.name)} is a damaged gzip file", remedy="Get it again") from None
    if len(found) > MOST_BYTES:
        raise _too_large(file)
    return found


def _too_large(file: File) -> InvalidInput:
    return refuse(f"{shown(file.name)} is larger than {MOST_BYTES:,} bytes once it is unpacked")


FIRST_LABELS = {"MNIST": (5, 0, 4, 1, 9, 2, 1, 3, 1, 4), "FashionMNIST": (9, 0, 0, 3, 0, 2, 7, 2, 5, 5)}
"""Of the training part of each: both come in files of the same names."""


def pictures(files: Sequence[File]) -> Pictures:
    """The training part of MNIST or FashionMNIST.

    Args:
        files: One ``.npz`` file with ``x_train`` and ``y_train``, or two IDX files, packed with gzip or not: pictures
            of 28 x 28 bytes, and as many labels. Of files of both parts those with more pictures are read.

    Raises:
        InvalidInput: There are no such files, or they do not fit together.
    """
    for file in files:
        if file.content.startswith(b"PK\x03\x04"):
            return _of_arrays(file)
    images, labels = _largest(files, PICTURES), _largest(files, LABELS)
    if images is None or labels is None:
        missing = (
            "pictures (train-images-idx3-ubyte)" if images is None else "labels (train-labels-idx1-ubyte)"
        )
        raise refuse(
            f"no IDX file of {missing} was given, and no .npz file",
            remedy="Bring both IDX files of the training part, packed or not, or one .npz file with x_train and "
            "y_train",
        )
    return _checked(images, labels)


def _of_arrays(file: File) -> Pictures:
    names = ("x_train", "y_train")
    try:
        with zipfile.ZipFile(io.BytesIO(file.content)) as packed:
            size = sum(member.file_size for member in packed.infolist())
        # No more of a member is unpacked than its size says.
        if size <= MOST_BYTES:
            with np.load(io.BytesIO(file.content), allow_pickle=False) as held:
                found = {name: held[name] for name in names if name in held.files}
    except Exception:  # Damaged ones raise errors of a dozen kinds, and claims of huge arrays two more.
        raise refuse(
            f"{shown(file.name)} is no .npz file of plain arrays", remedy="Get it again, or bring IDX files"
        ) from None
    if size > MOST_BYTES:
        raise _too_large(file)
    for name in names:
        # What is no array in there comes as its bytes.
        if not isinstance(found.get(name), np.ndarray):
            raise refuse(f"{shown(file.name)} has no array {name}")
    images, labels = (found[name] for name in names)
    if images.dtype != np.uint8 or labels.dtype.kind not in "iu":
        raise refuse(f"{shown(file.name)} must hold bytes as x_train and whole numbers as y_train")
    return _checked(images, labels)


def _largest(files: Sequence[File], magic: int) -> Bytes | None:
    """The IDX file of this kind that has most entries."""
    found = [array for file in files if (array := _idx(file, magic)) is not None]
    return max(found, key=len) if found else None


def _idx(file: File, magic: int) -> Bytes | None:
    """An IDX file of bytes; None where it is something else.

    Source: the IDX format as MNIST's makers describe it: a magic number, the length of each dimension, all as 32 bits
    with the highest byte first, and then the bytes.

    Raises:
        InvalidInput: Its length is not what its head says, or it holds nothing.
    """
    if not file.content.startswith((b"\x00\x00\x08", b"\x1f\x8b")):
        return None
    content = unpacked(file)
    if int.from_bytes(content[:4], "big") != magic:
        return None
    rank = magic & 0xFF
    head = 4 + 4 * rank
    lengths = [int(n) for n in np.frombuffer(content[4:head].ljust(4 * rank, b"\x00"), ">u4")]
    # None of nothing, too: of no pictures with sides of 2^32 NumPy makes no array.
    if 0 in lengths or len(content) != head + math.prod(lengths):
        raise refuse(
            f"{shown(file.name)} says that it holds {' x '.join(f'{n:,}' for n in lengths)} bytes, and holds "
            f"{max(len(content) - head, 0):,}",
            remedy="Get it again",
        )
    return np.frombuffer(content, np.uint8, offset=head).reshape(lengths)


def _checked(images: Bytes, labels: npt.NDArray[np.generic]) -> Pictures:
    if images.ndim != 3 or images.shape[1:] != (SIDE, SIDE) or labels.shape != images.shape[:1]:
        raise refuse(
            f"pictures of {SIDE} x {SIDE} and one label for each are needed; got shapes {images.shape} and "
            f"{labels.shape}",
            remedy="Bring pictures and labels of the same part",
        )
    classes = labels.astype(np.int64)
    if classes.size == 0 or classes.min() < 0 or classes.max() > 9:
        raise refuse("labels must be whole numbers from 0 to 9")
    begins = tuple(int(x) for x in classes[:10])
    name = next((known for known, first in FIRST_LABELS.items() if begins == first), "")
    return Pictures(images, classes, name)


def ratings(files: Sequence[File]) -> Rated:
    """Ratings of MovieLens.

    Args:
        files: One of them is read, the one with most bytes of: ``ratings.dat`` (user, film, rating and time between
            ``::``, no header), ``u.data`` (the same between tabs), or a CSV file with a header whose first three
            columns are those.

    Raises:
        InvalidInput: There is none, or one of its lines has something else.
    """
    of = [file for file in files if _begins_like_ratings(unpacked(file)[:2000])]
    if not of:
        raise refuse(
            "no file of ratings was given",
            remedy="Bring ratings.dat or ratings.csv of MovieLens, or u.data of its 100K set",
        )
    file = max(of, key=lambda one: len(one.content))
    content = unpacked(file)
    between = _between(content)
    frame = _columns(file, content.replace(b"::", b"\t") if between == "::" else content, between)
    import pandas as pd

    values = frame[2].to_numpy(np.float64)
    if not np.all(np.isfinite(values)):
        raise refuse(f"line {int(np.argmax(~np.isfinite(values))) + 1:,} of {shown(file.name)} has no rating")
    return Rated(pd.factorize(frame[0])[0], pd.factorize(frame[1])[0], values, file.name)


def _between(content: bytes) -> str:
    first = content.partition(b"\n")[0]
    return "::" if b"::" in first else "\t" if b"\t" in first else ","


def _begins_like_ratings(beginning: bytes) -> bool:
    """Whether each of the first lines has three numbers first, but for a header between commas."""
    # The last line of a beginning may be cut off.
    lines = beginning.splitlines()[: beginning.count(b"\n")] or beginning.splitlines()
    between = _between(beginning)
    rows = [line.split(between.encode()) for line in lines[between == "," :]]
    return bool(rows) and all(len(row) >= 3 and all(map(_number, row[:3])) for row in rows)


def _number(cell: bytes) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False


def _columns(file: File, content: bytes, between: str) -> pd.DataFrame:
    import pandas as pd

    try:
        return pd.read_csv(
            io.BytesIO(content),
            sep="," if between == "," else "\t",
            header=None,
            skiprows=int(between == ","),
            usecols=[0, 1, 2],
            dtype={0: np.int64, 1: np.int64, 2: np.float64},
        )
    except (ValueError, OverflowError):  # What pandas says quotes the line.
        raise refuse(
            f"{shown(file.name)} has a line without a user, a film and a rating", remedy="Get it again"
        ) from None


def reviews(files: Sequence[File]) -> Grouped:
    """Reviews of drugs (*drugs*): each drug is a user, two rated properties are features, and its rating the label.

    Args:
        files: ``drugLibTrain_raw.tsv`` among them, or any file between tabs or commas with its columns; where there are
            several, the one with most bytes is read.

    Raises:
        InvalidInput: There is none, a rating is no number, or a property has one level or more than `MOST_LEVELS`.

    Source: Epasto et al. 2020, appendix E.1.1.
    """
    named = {
        "users": ("urlDrugName", "drug"),
        "labels": ("rating",),
        "effectiveness": ("effectiveness",),
        "side effects": ("sideEffects", "side_effects"),
    }
    for file in sorted(files, key=lambda one: -len(one.content)):
        found = _with_columns(file, named)
        if found is not None:
            features = {name: found[name].to_numpy(str) for name in ("effectiveness", "side effects")}
            for name, values in features.items():
                if not 2 <= np.unique(values).size <= MOST_LEVELS:
                    raise refuse(
                        f"{name} in {shown(file.name)} must have 2 to {MOST_LEVELS} levels, as a category has",
                        remedy="Get it again",
                    )
            return _grouped(file, found, features, "rating")
    raise refuse(
        "no file of reviews was given",
        remedy="Bring drugLibTrain_raw.tsv, with the columns urlDrugName, rating, effectiveness and sideEffects",
    )


SLICES = tuple(range(3, 31, 3))
"""Of the 20-minute slices TS1, TS2 ... those of full hours, the first ten."""


def posts(files: Sequence[File], slices: Sequence[int] = SLICES) -> Grouped:
    """Posts about news (*news*): each source is a user, counts after some slices are features, the last is the label.

    Args:
        files: ``News_Final.csv``, and the file of one topic and network, such as ``LinkedIn_Palestine.csv``; of several
            of these the first by its name is read. A count of -1, of a post that was not there yet, is 0, as nobody
            had seen it.
        slices: Which are features.

    Raises:
        InvalidInput: One is missing, or a count is no number.

    Source: Epasto et al. 2020, appendix E.1.1, which leaves open the topic and which ten slices of the first 30.
    """
    last = 144
    sources = counts = None
    for file in sorted(files, key=lambda one: one.name):
        if sources is None:
            sources = _with_columns(file, {"id": ("IDLink",), "users": ("Source",)})
        if counts is None:
            wanted = {f"TS{n}": (f"TS{n}",) for n in (*slices, last)}
            counts = _with_columns(file, {"id": ("IDLink",), **wanted})
            of = file
    if sources is None or counts is None:
        raise refuse(
            "files of posts were not given",
            remedy="Bring News_Final.csv (with IDLink and Source) and the file of one topic and network (with "
            "IDLink and TS1 to TS144)",
        )
    for frame in (sources, counts):
        frame["id"] = frame["id"].str.strip().str.removesuffix(".0")
    joined = counts.merge(sources.drop_duplicates("id"), on="id", how="inner")
    joined = joined[joined["users"].str.strip() != ""].rename(columns={f"TS{last}": "labels"})
    if joined.empty:
        raise refuse("no IDLink stands in both files", remedy="Bring files of the same set")
    features = {f"TS{n}": np.maximum(_numbers(of, joined, f"TS{n}"), 0.0) for n in slices}
    return _grouped(of, joined, features, f"TS{last}")


def _with_columns(file: File, named: dict[str, tuple[str, ...]]) -> pd.DataFrame | None:
    """Columns of a file between tabs or commas, as text under our names; None where one is missing."""
    import pandas as pd

    content = unpacked(file)
    if b"\x00" in content[:2000]:
        return None
    header = content[:5000].partition(b"\n")[0].decode("utf-8", "replace").strip("\ufeff\r")
    between = "\t" if "\t" in header else ","
    cells = [cell.strip().strip('"') for cell in header.split(between)]
    places = {
        ours: next((cells.index(t) for t in theirs if t in cells), -1) for ours, theirs in named.items()
    }
    if min(places.values()) < 0:
        return None
    try:
        frame = pd.read_csv(
            io.BytesIO(content), sep=between, header=None, skiprows=1, dtype=str, keep_default_na=False,
            usecols=sorted(places.values()), encoding="utf-8", encoding_errors="replace",
        )  # fmt: skip
    except ValueError:
        raise refuse(
            f"{shown(file.name)} has lines that are no rows of its columns", remedy="Get it again"
        ) from None
    return frame.rename(columns={at: ours for ours, at in places.items()})


def _numbers(file: File, frame: pd.DataFrame, column: str, name: str = "") -> FloatArray:
    import pandas as pd

    found = pd.to_numeric(frame[column], errors="coerce").to_numpy(np.float64)
    if not np.all(np.isfinite(found)):
        raise refuse(
            f"{name or column} is no number in row {int(np.argmax(~np.isfinite(found))) + 1:,} of {shown(file.name)}"
        )
    return found


def _grouped(
    file: File, frame: pd.DataFrame, features: dict[str, npt.NDArray[np.generic]], label: str
) -> Grouped:
    import pandas as pd

    users = pd.factorize(frame["users"])[0].astype(np.int64)
    return Grouped(features, _numbers(file, frame, "labels", label), users, file.name)
