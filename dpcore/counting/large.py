"""Large files through DuckDB: tried as they seem to be, read again as they turn out to be, in parts where need be."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dpcore.common.errors import FULL_DISK, InvalidInput, Problem
from dpcore.common.progress import ShouldStop
from dpcore.common.workspace import Workspace
from dpcore.counting import diagnose, query, reading, text_numbers
from dpcore.counting.duck import Duck, identifier
from dpcore.counting.files import Part, safe_path
from dpcore.counting.formats import Format
from dpcore.counting.reading import Reading
from dpcore.counting.reduce import NO_COPIES, Reduced, Reduction, say_copies
from dpcore.counting.running import Columns, Steps
from dpcore.data.column_roles import Roles
from dpcore.data.tables import shown

if TYPE_CHECKING:
    from ibis.expr.types import Table, Value

PASSES = (1, 7, 61)
"""In how many parts users are counted, one after another, when fewer need more than the memory limit."""

_ROOM = 1_000_000
"""Bytes without which a disk is as good as full."""


class Large:
    """Large files on their way to a `Reduced`.

    Args:
        parts: The files, of the same columns in whatever order.
        roles: Events; what each column means.
        memory_limit: Bytes that DuckDB may use.
        should_stop: Asked all the time.
        steps: Told how far it is.
        notes: Takes what a person should know.
        counts: Whether the value is the number of contributions of a user who has no other row.
        copies: Whether to look for rows that are exact copies of others.
    """

    def __init__(
        self,
        parts: tuple[Part, ...],
        roles: Roles,
        memory_limit: int,
        should_stop: ShouldStop | None,
        steps: Steps,
        notes: list[str],
        *,
        counts: bool = False,
        copies: bool = False,
    ) -> None:
        self.columns = parts[0].columns
        self.roles, self.notes, self._steps, self._stop = roles, notes, steps, should_stop
        self._counts, self._copies = counts, copies
        self._memory_limit, self._threads, self._passes = memory_limit, 0, 1
        self._queries = steps.total
        self._workspace = Workspace()
        # 32 MB where 1 GB may be used, which is the fastest.
        buffer = min(max(memory_limit // 31 // 16 * 16, reading.SMALL_BUFFER), reading.LARGE_BUFFER)
        texts = reading.mixed(parts)
        self._readings = [
            Reading(replace(p, path=safe_path(p.path, self._workspace)), buffer=buffer, texts=texts)
            for p in parts
        ]

    def reduce(self) -> Reduced:
        """Count; a file that turns out not to be UTF-8, or to have short rows, is read again as it is.

        Raises:
            InvalidInput: The files cannot be counted; all problems at once.
            StoppedError: Stop was pressed.
        """
        with closing(self._workspace):
            for at, its in enumerate(self._readings):
                if not its.part.encoding.startswith("utf-8") and its.part.format is Format.TEXT:
                    if not its.part.encoding.startswith("utf"):
                        self.notes.append(diagnose.windows_1252(its.part))
                    self._readings[at] = self._recode(at, its.part.encoding)
            with closing(diagnose.TruncationCheck(self._parts, self._stop)) as truncation:
                try:
                    reduced = self._mend_and_reduce()
                except InvalidInput:
                    truncation.verdict()  # What is wrong with a file that was cut off is mostly that.
                    raise
                truncation.verdict()
                return reduced

    def _mend_and_reduce(self) -> Reduced:
        import duckdb

        attempts = 0
        while attempts < 3 + len(self._readings):
            said = len(self.notes)
            try:
                return self._reduce()
            except duckdb.OutOfMemoryException as error:
                del self.notes[said:]
                self._ask_for_less(error)
            except duckdb.NotImplementedException:
                # What its threads read did not fit together: https://github.com/duckdb/duckdb/issues/24237.
                del self.notes[said:]
                self._readings = [replace(its, alone=True) for its in self._readings]
                attempts += 1
            except duckdb.Error as error:
                del self.notes[said:]
                if self._finds_no_room(error):
                    raise InvalidInput([FULL_DISK]) from None
                diagnosis = diagnose.Diagnosis(
                    self._readings, self._duck, self._recode, self.notes, self._stop
                )
                self._readings = diagnosis.recovered()
                attempts += 1
        raise InvalidInput([diagnose.damaged(self._readings[0].part)])

    @property
    def _parts(self) -> list[Part]:
        return [its.part for its in self._readings]

    def _recode(self, at: int, encoding: str) -> Reading:
        target = self._workspace.folder / f"utf8-{at}"
        return reading.recoded(self._readings[at], encoding, target, self._stop, self._steps)

    @contextmanager
    def _duck(self) -> Iterator[Duck]:
        files = [part.path for part in self._parts]
        duck = Duck(files, self._workspace.folder, self._memory_limit, self._stop, self._steps)
        try:
            if self._threads:
                duck.connection.execute(f"SET threads = {self._threads}")
            yield duck
        finally:
            duck.close()

    def _finds_no_room(self, error: Exception) -> bool:
        """Whether DuckDB failed as the disk is full: it says so in its own words, or in those of the system."""
        said = str(error)
        words = ("max_temp_directory_size", "No space left", "not enough space")
        return any(word in said for word in words) or not self._workspace.has_room(_ROOM)

    def _ask_for_less(self, error: Exception) -> None:
        """One thread and small buffers, as every thread has its own; then fewer users at a time."""
        self._steps.total = self._steps.done + self._queries
        if not self._threads:
            self._threads = 1
            self._readings = [replace(its, buffer=reading.SMALL_BUFFER) for its in self._readings]
            return
        further = [passes for passes in PASSES if passes > self._passes]
        if not further:
            if self._finds_no_room(error):
                raise InvalidInput([FULL_DISK])
            what = f"counting needs more than the memory limit of {self._memory_limit:,} bytes"
            raise InvalidInput([Problem(what, "", "Raise the limit")])
        self._passes = further[0]

    # --- counting -----------------------------------------------------------------------------------------

    def _reduce(self) -> Reduced:
        for at, its in enumerate(self._readings):
            if its.part.format is Format.JSON and its.part.encoding != "utf-8":  # a mark that DuckDB refuses
                self._readings[at] = self._recode(at, its.part.encoding)
        alone = [its.part for its in self._readings if its.alone and its.part.format is Format.TEXT]
        diagnose.refuse_open_quotes(alone, self._stop)
        with self._duck() as duck:
            union = reading.union(self._readings, self.columns, self.roles.missing_users)
            duck.connection.execute(f"CREATE TEMP VIEW source AS {union}")
            table = duck.table("source")
            roles = reading.renamed(self.roles, self.columns)
            who_alone = self.roles.value is None and self.roles.task is None
            if who_alone and self._passes == 1:
                reduced = self._in_one_pass(duck, table, roles)
            else:
                reduced = self._in_several(duck, table, roles)
            if len(self.columns) > 2 and not self._counts:
                self._say_copies(duck, table, roles)
        return reduced

    def _say_copies(self, duck: Duck, table: Table, roles: Roles) -> None:
        if not self._copies:
            self.notes.append(NO_COPIES)
            return
        self._steps.total += self._passes
        found = [
            duck.run(query.copies(table, roles, True, _strip, at, self._passes)) for at in range(self._passes)
        ]
        say_copies(found, self.notes)

    def _in_one_pass(self, duck: Duck, table: Table, roles: Roles) -> Reduced:
        """Who alone: cells are grouped as they stand, and looked at afterwards, once per user.

        Stripping 10 million cells before they are grouped would take a third of the time.
        """
        import ibis

        text = [f"{query.WHO}{at}" for at, c in enumerate(roles.privacy_unit) if table[c].type().is_string()]
        headers = self._header_cells()
        if text and headers is not None:
            rows = query.events(table, roles, has_nan=True, strip=lambda column: column)

            def odd(users: Table) -> Any:
                found = users[text[0]].isin(headers) if headers else ibis.literal(False)
                for column in text:
                    found = found | _padded(users[column])
                return found

            known = duck.run(query.histogram(rows, self.roles, odd, spelling=True))
            if not np.nansum(np.asarray(known["odd"], np.float64)):
                return self._reduction(duck, rows, table, roles, None, histogram=known).reduce()
            self._steps.total += 1
        self._refuse_second_headers(duck, table)
        rows = query.events(table, roles, has_nan=True, strip=_strip)
        return self._reduction(duck, rows, table, roles, None).reduce()

    def _refuse_second_headers(self, duck: Duck, table: Table) -> None:
        """Refuse joined files, by the bytes of their headers and, where these have marks before them, by the cells."""
        diagnose.refuse_second_headers(self._parts, self._stop)
        if not any(part.format is Format.TEXT and len(part.columns) > 1 for part in self._parts):
            return
        again = table
        for at, name in enumerate(self.columns):
            again = again.filter(again[f"c{at}"].replace("\ufeff", "").strip() == name)
        self._steps.total += 1
        if duck.run(again.aggregate(n=again.count()))["n"][0]:
            what, remedy = (
                "the header row stands among the data again",
                "Remove it (were several files joined?)",
            )
            raise InvalidInput([Problem(what, "", remedy)])

    def _header_cells(self) -> list[str] | None:
        """The names that stand over the user in the files of text; None where a header is not written plainly."""
        user = self.roles.user or ""
        texts = [part for part in self._parts if part.format is Format.TEXT and len(part.columns) > 1]
        if not all(reading.header_is_plain(part, user) for part in texts):
            return None
        return [user, f"\ufeff{user}"] if texts else []

    def _in_several(self, duck: Duck, table: Table, roles: Roles) -> Reduced:
        value = self._value(duck, table, roles)
        rows = query.events(table, roles, value, has_nan=True, strip=_strip)
        headers = self._header_cells()
        if headers is None:
            self._refuse_second_headers(duck, table)
        # The few columns are kept on the way where reading them again would cost more.
        if any(part.format is not Format.PARQUET for part in self._parts):
            rows = self._keep(duck, "rows", rows)
        if headers:
            seen = rows.filter(rows[f"{query.WHO}0"].isin(headers))
            if duck.run(seen.aggregate(n=seen.count()))["n"][0]:
                self._refuse_second_headers(duck, table)
        return self._reduction(duck, rows, table, roles, value).reduce()

    def _value(self, duck: Duck, table: Table, roles: Roles) -> Value | None:
        """The value column as a number; None where it is one, or there is none."""
        name = self.roles.value or ""
        if roles.value is None or table[roles.value].type().is_numeric():
            return None
        if not table[roles.value].type().is_string():
            what, where = "the column does not hold numbers", f"column {shown(name)}"
            raise InvalidInput([Problem(what, where, "Choose another value column")])
        delimiters = {part.delimiter for part in self._parts}
        self._steps.total += 1
        column = text_numbers.Column(
            table[roles.value], table, name, delimiters.pop() if len(delimiters) == 1 else "", duck.run,
            lambda mask: self._places().find(lambda part: part.select(bad=mask), 1), self._counts,
        )  # fmt: skip
        return text_numbers.number(column, self.notes)

    def _places(self) -> diagnose.Places:
        return diagnose.Places(self._readings, self.columns, self.roles.missing_users, self._duck)

    def _reduction(
        self, duck: Duck, rows: Table, table: Table, roles: Roles, value: Value | None,
        histogram: Columns | None = None,
    ) -> Reduction:  # fmt: skip
        in_parts = 1 + (self.roles.value is not None) + (self.roles.task is not None)
        self._steps.total += in_parts * (self._passes - 1)

        def place(kind: str, most: int) -> str:
            def ask(part: Table) -> Table:
                found = query.events(part, roles, value, has_nan=True, strip=_strip)
                return found.select(bad=query.odd_cells(found, roles, self._counts)[kind])

            self._steps.total += 1
            return self._places().find(ask, most)

        return Reduction(
            rows, self.roles, self.columns, duck.run,
            keep=lambda name, expression: self._keep(duck, name, expression),
            place=place,
            notes=self.notes, histogram=histogram, counts=self._counts, passes=self._passes,
        )  # fmt: skip

    def _keep(self, duck: Duck, name: str, expression: Table) -> Table:
        import ibis

        self._steps.total += 1
        duck.execute(f"CREATE TEMP TABLE {identifier(name)} AS {ibis.to_sql(expression, dialect='duckdb')}")
        return duck.table(name)


def _padded(column: Any) -> Any:
    """Whether blanks stand around a text, or nothing stands there. Null for null."""
    # Every kind of blank sorts at or before the space, by code point, and so does nothing at all.
    return (column.left(1) <= " ") | (column.right(1) <= " ")


def _strip(column: Any) -> Any:
    """`query.stripped` for DuckDB, which takes 2 s to strip 10 million cells and 0.4 s to see that it need not."""
    return _padded(column).ifelse(query.stripped(column), column)
