"""Public data as their makers publish them, in made-up files of each form."""

from __future__ import annotations

import contextlib
import gzip
import io
import struct
import zipfile

import numpy as np
import pytest

from dpcore.common.errors import InvalidInput
from dpcore.data import published
from dpcore.data.published import File

LABELS = np.array([5, 0, 4, 1, 9, 2, 1, 3, 1, 4, 7], dtype=np.uint8)
PIXELS = np.random.default_rng(0).integers(0, 256, (LABELS.size, 28, 28), dtype=np.uint8)


def idx(array: np.ndarray) -> bytes:
    """As LeCun, Cortes and Burges describe it: two zeros, 8 for bytes, the rank, each length, then the bytes."""
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def npz(**arrays: np.ndarray) -> bytes:
    into = io.BytesIO()
    np.savez_compressed(into, **arrays)
    return into.getvalue()


def zipped(**members: bytes) -> bytes:
    into = io.BytesIO()
    with zipfile.ZipFile(into, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in members.items():
            packed.writestr(f"{name}.npy", content)
    return into.getvalue()


def npy(length: int) -> bytes:
    """The head of an array of so many bytes, and two of them."""
    into = io.BytesIO()
    np.lib.format.write_array_header_1_0(into, {"descr": "|u1", "fortran_order": False, "shape": (length,)})
    return into.getvalue() + b"\0\0"


@pytest.mark.parametrize(
    "files",
    [
        [File("train-labels-idx1-ubyte", idx(LABELS)), File("train-images-idx3-ubyte", idx(PIXELS))],
        [
            File("train-images-idx3-ubyte.gz", gzip.compress(idx(PIXELS))),
            File("train-labels-idx1-ubyte.gz", gzip.compress(idx(LABELS))),
            File("t10k-images-idx3-ubyte", idx(PIXELS[:3])),
            File("t10k-labels-idx1-ubyte", idx(LABELS[:3])),
        ],
        [File("mnist.npz", npz(x_train=PIXELS, y_train=LABELS, x_test=PIXELS[:2], y_test=LABELS[:2]))],
    ],
    ids=["idx", "idx.gz and the test part", "npz"],
)
def test_pictures_are_read_as_idx_and_as_npz(files: list[File]) -> None:
    found = published.pictures(files)
    np.testing.assert_array_equal(found.pixels, PIXELS)
    np.testing.assert_array_equal(found.labels, LABELS)
    assert found.name == "MNIST"


def test_fashion_is_told_from_digits_by_its_first_labels() -> None:
    labels = np.array([9, 0, 0, 3, 0, 2, 7, 2, 5, 5, 0], dtype=np.uint8)
    assert published.pictures([File("a.npz", npz(x_train=PIXELS, y_train=labels))]).name == "FashionMNIST"
    assert published.pictures([File("a.npz", npz(x_train=PIXELS, y_train=labels[::-1]))]).name == ""


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ([], "No IDX file of pictures"),
        ([File("i", idx(PIXELS))], "No IDX file of labels"),
        ([File("i", idx(PIXELS)[:-1]), File("l", idx(LABELS))], "11 x 28 x 28 bytes, and holds 8,623"),
        ([File("i", b"\0\0\x08\x03\0\0"), File("l", idx(LABELS))], "says that it holds"),
        ([File("i", idx(PIXELS[:5])), File("l", idx(LABELS))], "one label for each"),
        ([File("i", idx(PIXELS[:, :8])), File("l", idx(LABELS))], "28 x 28"),
        ([File("i", idx(PIXELS)), File("l", idx(LABELS + 9))], "from 0 to 9"),
        ([File("i.gz", gzip.compress(idx(PIXELS))[:-900])], "damaged gzip"),
        ([File("a.npz", npz(x_train=PIXELS))], "no array y_train"),
        ([File("a.npz", npz(x_train=PIXELS.astype(float), y_train=LABELS))], "must hold bytes"),
        ([File("a.npz", npz(x_train=np.array([{}]), y_train=LABELS))], "plain arrays"),
        ([File("a.npz", b"PK\x03\x04 and no more")], "plain arrays"),
        # Claims of more than there is.
        ([File("a.npz", zipped(x_train=npy(10**12), y_train=npy(2)))], "plain arrays"),
        ([File("a.npz", zipped(x_train=npy(10**20), y_train=npy(2)))], "plain arrays"),
        ([File("a.npz", zipped(x_train=b"no array", y_train=npy(2)))], "no array x_train"),
        ([File("i", struct.pack(">4I", 0x803, 0, 2**32 - 1, 2**32 - 1)), File("l", idx(LABELS))], "holds 0"),
        ([File("i", struct.pack(">4I", 0x803, *[2**32 - 1] * 3)), File("l", idx(LABELS))], "holds 0"),
    ],
)
def test_other_pictures_are_refused(files: list[File], sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        published.pictures(files)


def test_what_would_not_fit_is_refused_packed_either_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published, "MOST_BYTES", 5_000)
    for bomb in (npz(x_train=np.zeros_like(PIXELS), y_train=LABELS), gzip.compress(idx(PIXELS))):
        with pytest.raises(InvalidInput, match="larger than 5,000 bytes once it is unpacked"):
            published.pictures([File("packed", bomb)])


def test_a_damaged_npz_is_refused_wherever_the_damage_is() -> None:
    whole, rng = npz(x_train=PIXELS[:1], y_train=LABELS[:1]), np.random.default_rng(0)
    for _ in range(300):
        damaged = bytearray(whole)
        # Behind the mark that tells that it is a zip file.
        damaged[int(rng.integers(4, len(whole)))] = int(rng.integers(256))
        with contextlib.suppress(InvalidInput):
            published.pictures([File("a.npz", bytes(damaged))])


DAT = b"7::31::2.5::1260759144\n7::1029::3::1260759179\n15::31::4::1260759182\n"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("ratings.dat", DAT),
        ("ratings.dat", DAT.replace(b"\n", b"\r\n")),
        ("u.data", DAT.replace(b"::", b"\t")),
        ("ratings.csv", b"userId,movieId,rating,timestamp\n" + DAT.replace(b"::", b",")),
        ("ratings.dat.gz", gzip.compress(DAT)),
    ],
    ids=["dat", "dat of Windows", "u.data", "csv", "packed"],
)
def test_ratings_are_read_in_every_form_of_movielens(name: str, content: bytes) -> None:
    beside = [File("movies.dat", b"31::Dangerous Minds (1995)::Drama\n"), File("README.csv", b"a,b\n1,2\n")]
    found = published.ratings([*beside, File(name, content)])
    assert found.users.tolist() == [0, 0, 1]
    assert found.items.tolist() == [0, 1, 0]
    assert found.values.tolist() == [2.5, 3.0, 4.0]
    assert found.name == name


def test_what_is_no_file_of_ratings_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"(?i)no file of ratings"):
        published.ratings([File("movies.dat", b"31::Dangerous Minds (1995)::Drama\n")])
    with pytest.raises(InvalidInput, match="without a user, a film and a rating"):
        published.ratings([File("ratings.dat", DAT * 40 + b"secret::31::4::1\n")])
    with pytest.raises(InvalidInput, match="without a user, a film and a rating"):
        published.ratings([File("ratings.dat", DAT + b"9" * 30 + b"::31::4::1\n")])


REVIEWS = (
    "\turlDrugName\trating\teffectiveness\tsideEffects\tcondition\tbenefitsReview\n"
    '2202\tenalapril\t4\tHighly Effective\tMild Side Effects\tbirth control\t"slow, and\n""on two lines"""\n'
    "3117\tNA\t10\tIneffective\tNo Side Effects\tacid\tgood\n"
    "1146\tenalapril\t1\tHighly Effective\tSevere Side Effects\tacid\t\n"
)


def test_reviews_of_drugs_are_read_as_their_tsv_and_reduced() -> None:
    short = "drug,rating,effectiveness,side_effects\nx,3,Ineffective,No Side Effects\n"
    short += "x,4,Effective,Mild Side Effects\n"
    for files in (
        [File("drugLibTrain_raw.tsv", REVIEWS.encode())],
        [File("s.csv", short.encode()), File("d.tsv", REVIEWS.encode())],
    ):
        found = published.reviews(files)
        assert found.users.tolist() == [0, 1, 0]  # "NA" is a drug like any other.
        assert found.labels.tolist() == [4.0, 10.0, 1.0]
        assert found.features["effectiveness"].tolist() == [
            "Highly Effective",
            "Ineffective",
            "Highly Effective",
        ]
        assert found.features["side effects"][2] == "Severe Side Effects"
        assert found.sizes.tolist() == [2, 1]
    assert published.reviews([File("s.csv", short.encode())]).labels.tolist() == [3.0, 4.0]
    with pytest.raises(InvalidInput, match=r"(?i)rating is no number in row 2"):
        published.reviews([File("d.tsv", REVIEWS.replace("\t10\t", "\tten\t").encode())])
    for few in (short.rpartition("x,4")[0], short + "".join(f"x,3,level {n},b\n" for n in range(19))):
        with pytest.raises(InvalidInput, match="must have 2 to 20 levels"):
            published.reviews([File("s.csv", few.encode())])
    with pytest.raises(InvalidInput, match=r"(?i)no file of reviews"):
        published.reviews([File("d.tsv", b"a\tb\n1\t2\n")])


def test_posts_are_joined_with_their_sources() -> None:
    slices = [f"TS{n}" for n in range(1, 145)]
    news = (
        'IDLink,Title,Headline,Source,Topic\n99248.0,"Obama, again",x,USA TODAY,obama\n'
        "10423,b,y,Bloomberg,economy\n7,c,z,,economy\n"
    )
    row = lambda link, first, last: ",".join([link, *["-1"] * 2, first, *["5"] * 140, last])  # noqa: E731
    counts = "\n".join(
        [
            ",".join(["IDLink", *slices]),
            row("10423", "2", "9"),
            row("99248", "-1", "71"),
            row("7", "1", "1"),
            row("8", "1", "1"),
        ]
    )
    files = [File("News_Final.csv", news.encode()), File("LinkedIn_Economy.csv", counts.encode())]
    found = published.posts(files)
    assert len(found.features) == 10
    assert found.features["TS3"].tolist() == [2.0, 0.0]
    assert found.features["TS30"].tolist() == [5.0, 5.0]
    assert found.labels.tolist() == [9.0, 71.0]
    assert found.users.tolist() == [0, 1]
    assert list(published.posts(files, slices=range(1, 4)).features) == ["TS1", "TS2", "TS3"]
    for one in files:
        with pytest.raises(InvalidInput, match=r"(?i)files of posts were not given"):
            published.posts([one])
    with pytest.raises(InvalidInput, match=r"(?i)no IDLink stands in both"):
        published.posts(
            [
                File(
                    "News_Final.csv",
                    news.replace("99248", "1").replace("10423", "2").replace("7,c", "3,c").encode(),
                ),
                files[1],
            ]
        )


def test_a_folder_is_read_by_the_endings_of_these_sets(tmp_path) -> None:
    (tmp_path / "u.data").write_bytes(DAT.replace(b"::", b"\t"))
    (tmp_path / "notes.txt").write_bytes(b"no")
    (tmp_path / "inner.csv").mkdir()
    assert [file.name for file in published.in_folder(tmp_path)] == ["u.data"]
    with pytest.raises(InvalidInput, match=r"(?i)no folder"):
        published.in_folder(tmp_path / "nowhere")
