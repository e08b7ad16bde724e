"""Files as people have them, which one program reads like another: what stands in them, and how the app reads them."""

from __future__ import annotations

import codecs
import gzip
import io
import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dpcore.code import Quantity, ReleaseSpec
from dpcore.common.privacy import Disclosure
from dpcore.common.programs import Program
from dpcore.data.tables import FileKind, FileLayout, TableLayout
from tests.dpcore.code.specs import SURE, run_program

USER, VALUE, GROUP = "Kunde", "Betrag", "Artikel"
MAX_TOTAL = 3_000.0
EPSILON = 1_000.0
Row = tuple[str, str, float]
NAMES = [
    "NA",
    "null",
    "None",
    "Müller",
    "O'Neil, Ann",
    "7",
    "true",
    "u0\u00a0",
    *(f"u{index}" for index in range(30)),
]
"""Of people, where the one with a no-break space is another one, as the app says."""
ROWS: list[Row] = [
    (name, f"p{(index + row_index) % 4}", round(37.9 * (index + 1) * (row_index + 1) % 2_900 + 0.25, 2))
    for index, name in enumerate(NAMES)
    for row_index in range(1 + index % 6)
]
"""User, group and amount; users have one to six rows, and some are called as if they were nobody."""


@dataclass(frozen=True)
class Nasty:
    """A file.

    Attributes:
        content: Its bytes.
        layout: How the app reads it.
        rows: What stands in it, of rows that count.
    """

    content: Callable[[], bytes]
    layout: TableLayout
    rows: tuple[Row, ...] = tuple(ROWS)

    @property
    def name(self) -> str:
        return self.layout.files[0].name

    def make_spec(self, quantity: Quantity, **bounds: Any) -> ReleaseSpec:
        """Make a choice with little noise."""
        return ReleaseSpec(
            quantity, EPSILON, Disclosure.PUBLIC, file=self.name, layout=self.layout, has_known_columns=True,
            privacy_unit=(USER,), value_column=VALUE, group_column=GROUP, **bounds,
        )  # fmt: skip

    def sizes(self) -> dict[str, int]:
        """Return the number of rows of each user."""
        return Counter(user for user, _, _ in self.rows)

    def capped_rows(self, max_rows: int) -> int:
        return sum(min(max_rows, size) for size in self.sizes().values())

    def capped_sum(self) -> float:
        totals: dict[str, float] = defaultdict(float)
        for user, _, amount in self.rows:
            totals[user] += amount
        assert max(totals.values()) > MAX_TOTAL
        return math.fsum(min(total, MAX_TOTAL) for total in totals.values())

    def users_of_groups(self) -> list[int]:
        """Return the number of users of each group, ascending; nobody is in more than four."""
        return sorted(Counter(group for _, group in {(user, group) for user, group, _ in self.rows}).values())


def _text(cells: Callable[[int, Row], str], header: str, separator: str = ",", extra: str = "") -> str:
    names = separator.join((USER, GROUP, VALUE))
    return header + names + "\n" + "".join(cells(index, row) + "\n" for index, row in enumerate(ROWS)) + extra


def _quoted(cell: str) -> str:
    return f'"{cell}"'


def _english(amount: float) -> str:
    return f"{amount:,.2f}"


def _german(amount: float) -> str:
    return f"{amount:,.2f}".translate(str.maketrans(",.", ".,"))


def _blanks(index: int, row: Row) -> str:
    padded = [row[0], f"{row[0]} ", f"  {row[0]}", f"{row[0]}\t", _quoted(f"{row[0]} ")][index % 5]
    padded = _quoted(row[0]) if "," in row[0] else padded
    return f"{padded},{row[1]} ,{row[2]}"


def _workbook() -> bytes:
    import openpyxl

    book = openpyxl.Workbook()
    book.active.title, book.active.sheet_state = "alt", "hidden"
    sheet = book.create_sheet("Käufe")
    sheet.append([])
    sheet.append([USER, GROUP, VALUE])
    for name, group, amount in ROWS:
        sheet.append([7 if name == "7" else name, group, amount])
    sheet.append([None, "p1", 3.5])
    content = io.BytesIO()
    book.save(content)
    return content.getvalue()


def _parquet() -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    codes = [10**17 + NAMES.index(name) for name, _, _ in ROWS]  # as doubles, these are two
    table = pa.table(
        {
            USER: pa.array([*codes, None], pa.int64()),
            GROUP: [*(f"{group} " for _, group, _ in ROWS), "p1"],
            VALUE: [*(amount for *_, amount in ROWS), 1.0],
        }
    )
    content = io.BytesIO()
    pq.write_table(table, content)
    return content.getvalue()


TYPES: dict[str, list[Any]] = {"7": [7, "7", 7.0, " 7"], "true": [True, "true"] * 2}


def _json_lines() -> bytes:
    lines: list[dict[str, Any]] = [
        {USER: TYPES.get(name, [name] * 4)[index % 4], GROUP: group, VALUE: amount}
        for index, (name, group, amount) in enumerate(ROWS)
    ]
    return "\n".join(map(json.dumps, [*lines, {USER: None, GROUP: "p1", VALUE: 2.5}])).encode()


def _layout(name: str, decimal: str = "", **fields: Any) -> TableLayout:
    return TableLayout((FileLayout(name, **fields),), ((VALUE, decimal),))


SHORT = tuple(row for row in ROWS if " " not in row[0])
NUMBERED = tuple(
    (str(3 + NAMES.index(user)), group.removeprefix("p"), amount) for user, group, amount in ROWS
)


NASTY: dict[str, Nasty] = {
    "blanks in ids": Nasty(
        lambda: _text(_blanks, "", extra=',p1,5.5\n"  ",p2,8\n').encode(), _layout("blanks.csv")
    ),
    "thousands marks": Nasty(
        lambda: _text(lambda _, row: f'"{row[0]}",{row[1]},"{_english(row[2])}"', "").encode(),
        _layout("thousands.csv", "."),
    ),
    "German Excel": Nasty(
        lambda: _text(
            lambda _, row: f"{row[0]};{row[1]};{_german(row[2])}", "sep=;\r\n", ";", " ;p1;keiner\n"
        ).encode("cp1252"),
        _layout("german.csv", ",", separator=";", encoding="cp1252", skip=1),
    ),
}
"""What every library's program is run on."""
FURTHER: dict[str, Nasty] = {
    "workbook": Nasty(_workbook, _layout("kauf.xlsx", kind=FileKind.WORKBOOK, skip=1, sheet="Käufe")),
    "JSON Lines": Nasty(_json_lines, _layout("events.jsonl", kind=FileKind.JSON)),
    "JSON": Nasty(
        lambda: json.dumps([json.loads(line) for line in _json_lines().split(b"\n")]).encode(),
        _layout("events.json", kind=FileKind.JSON),
    ),
    "Parquet": Nasty(_parquet, _layout("events.parquet", kind=FileKind.PARQUET)),
    "comments, packed": Nasty(
        lambda: gzip.compress(
            _text(lambda _, row: f"{_quoted(row[0])}| {row[1]}|{row[2]}", "# made by hand\n\n", "|").encode()
        ),
        _layout("data", separator="|", skip=2, packing="gzip"),
    ),
    "UTF-16": Nasty(
        lambda: (
            codecs.BOM_UTF16_LE + _text(lambda _, row: "\t".join(map(str, row)), "", "\t").encode("utf-16-le")
        ),
        _layout("unicode.txt", separator="\t", encoding="utf-16"),
    ),
    "blanks between fields": Nasty(
        lambda: "".join(f"  {user} {group}   {amount}\n" for user, group, amount in SHORT).encode(),
        _layout("cdnow.txt", separator=" +", names=(USER, GROUP, VALUE)),
        SHORT,
    ),
    "blanks and a header": Nasty(
        lambda: _text(lambda _, row: f"{row[0].replace(' ', '')}   {row[1]}  {row[2]} ", "", " ").encode(),
        _layout("with header.dat", separator=" +"),
        tuple((user.replace(" ", ""), group, amount) for user, group, amount in ROWS),
    ),
    "double colons": Nasty(
        lambda: gzip.compress(
            "".join(f"{user}::{group}:: {amount}\r\n" for user, group, amount in ROWS).encode("cp1252")
        ),
        _layout("ratings.dat", separator="::", encoding="cp1252", packing="gzip", names=(USER, GROUP, VALUE)),
    ),
    "tabs and no header": Nasty(
        lambda: "".join(
            f"{user}\t{group}\t {amount}\t{7 if index % 2 else ''}\r\n"
            for index, (user, group, amount) in enumerate(NUMBERED, 1)
        ).encode(),
        _layout("u.data", separator="\t", names=(USER, GROUP, VALUE, "seconds")),
        NUMBERED,
    ),
    "nobody is a user": Nasty(
        lambda: _text(_blanks, "", extra=',p1,5.5\n"  ",p2,8\n , ,\n').encode(),
        replace(_layout("blanks.csv"), missing_is_a_user=True),
        (*ROWS, ("", "p1", 5.5), ("", "p2", 8.0)),
    ),
}


def run_nasty(nasty: Nasty, library: Program, quantity: Quantity, **bounds: Any) -> dict[str, Any]:
    """Run the program, and return what its names are bound to."""
    return run_program(nasty.make_spec(quantity, **bounds), library)


def check_file(nasty: Nasty, library: Program, folder: Path) -> None:
    """Run programs in the working folder: users, rows under a bound of two, and totals are what stands in the file.

    OpenDP's programs take a tenth of a second each and read a file by the code that plain Python's have: of files that
    no further library is tried on, users and rows are counted together there.

    Args:
        nasty: The file.
        library: Whose programs.
        folder: The working folder, to which the file is written.
    """
    (folder / nasty.name).write_bytes(nasty.content())
    assert len(nasty.sizes()) < nasty.capped_rows(2) < len(nasty.rows)
    for max_rows in (2,) if library is Program.OPENDP and nasty not in NASTY.values() else (1, 2):
        count = run_nasty(nasty, library, Quantity.COUNT, max_rows=max_rows)["count"]
        # Noise of scale 0.002: it is off by half with probability e^-250.
        assert abs(count - nasty.capped_rows(max_rows)) < 0.5, (library, max_rows, count)
    noise = 1.05 * MAX_TOTAL / EPSILON * SURE
    total = run_nasty(nasty, library, Quantity.SUM, max_total=MAX_TOTAL)["total"]
    assert abs(total - nasty.capped_sum()) <= noise, (library, total)
    users = run_nasty(nasty, library, Quantity.GROUP_COUNTS, max_groups=4)
    by_group = users["noisy"] if library is Program.PYTHON else users["counts"]
    if library in (Program.PIPELINEDP, Program.TUMULT):
        by_group = by_group.values()
    elif library is Program.OPENDP:
        by_group = by_group["len"]
    # Of scale 0.004 each.
    assert [round(users) for users in sorted(by_group)] == nasty.users_of_groups()
