"""One program of several releases on rows that lack a group or a value, and on users of every kind."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from dpcore.code import write
from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Disclosure
from dpcore.common.programs import Program
from dpcore.counting import count, open_files
from dpcore.data.column_roles import Roles, TableKind
from dpcore.plan import table
from dpcore.plan.parameters import PlanParameters, choose_defaults
from dpcore.plan.solution import allocate_lines, make_program
from tests.dpcore.code.specs import PYTHON_AND_OPENDP, SURE, run_program, run_text


@pytest.mark.long
@PYTHON_AND_OPENDP
def test_rows_without_a_group_count_as_rows_and_in_no_group(library: Program, empty_folder: Path) -> None:
    # Each user has a row in one group and two without: the bound of one group must not be used up by no group.
    rows = [f"u{user},{'' if row else 'abc'[user % 3]},{row + 1}" for user in range(60) for row in range(3)]
    (empty_folder / "few.csv").write_text("\n".join(["who,where,what", *rows, ""]))
    roles = Roles(TableKind.EVENTS, user="who", value="what", task="where")
    data = count(open_files([empty_folder / "few.csv"]), roles, Disclosure.PUBLIC).dataset
    parameters = PlanParameters(
        1000.0,
        lines="rows; sum; users per group; rows per group; sums per group",
        program=library,
    )
    lines = allocate_lines(data, parameters, table.plan_lines(data, parameters), [0.2] * 5)
    assert [line.bound for line in lines] == pytest.approx([3.0, 6.0, 1.0, 1.0, 1.0], rel=0.01)
    plan = make_program(data, parameters, lines)
    released = run_program(plan, library)["released"]
    assert released["rows"] == pytest.approx(180.0, abs=3 / 200 * SURE)
    assert released["sum"] == pytest.approx(360.0, abs=7 / 200 * SURE)
    for name in ("users per group", "rows per group", "sums per group"):
        assert released[name] == pytest.approx(
            {"a": 20.0, "b": 20.0, "c": 20.0}, abs=1.1 / 200 * SURE + 0.3
        ), name


def ill_formed() -> list[tuple[str, str, float]]:
    """(user, group, value): one giant user, values of both signs, totals of 0, and rows in no group."""
    giant = [("giant", "ab"[row % 2], 3.0) for row in range(300)]
    rows = [
        (f"u{user}", ("a", "b", "c", "")[(user + row) % 4], float((-1) ** user * user + row))
        for user in range(40)
        for row in range(1 + user % 2)
    ]
    return [*giant, *rows, ("zero", "c", 5.0), ("zero", "c", -5.0)]


def laplace_variance(scale: float, is_whole: bool) -> float:
    """Of Laplace noise, or of the whole noise P(z) ~ p^|z| at p = e^(-1 / scale), summed term by term."""
    if not is_whole:
        return 2.0 * scale**2
    weights = [math.exp(-z / scale) for z in range(1, math.ceil(40.0 * scale) + 2)]
    return 2.0 * math.fsum(z * z * w for z, w in enumerate(weights, 1)) / (1.0 + 2.0 * math.fsum(weights))


@pytest.mark.long
@PYTHON_AND_OPENDP
def test_the_plan_of_an_ill_formed_file_has_the_users_the_rows_and_the_noise_of_its_program(
    library: Program, empty_folder: Path
) -> None:
    rows = ill_formed()
    program = [f" {user} ,{group},{value}" for user, group, value in rows]
    # Rows of nobody, whose cells are not even numbers, count nowhere.
    (empty_folder / "ill.csv").write_text("\n".join(["who,where,what", *program, ",a,7", " ,,", ""]))
    roles = Roles(TableKind.EVENTS, user="who", value="what", task="where")
    data = count(open_files([empty_folder / "ill.csv"]), roles, Disclosure.PRIVATE).dataset
    message = "users; rows; sum; mean within 1; users per group; rows per group; sums per group"
    parameters = PlanParameters(
        1000.0, lines=message, lower=-50.0, upper=50.0, program=library, **choose_defaults(data)
    )
    lines = allocate_lines(
        data, parameters, table.plan_lines(data, parameters), [*[1.0 / 12.0] * 3, 0.5, *[1.0 / 12.0] * 3]
    )
    plan = make_program(data, parameters, lines)
    # The public list names a group in which nobody is.
    text = write(plan, library).text.replace("str] = []", 'str] = ["a", "b", "c", "nobody"]')
    released = run_text(text)["released"]
    sizes, totals = Counter(user for user, _, _ in rows), defaultdict(float)
    for user, _, value in rows:
        totals[user] += value
    of_line = {line.planned_line.line.label: line for line in lines}
    sensitivity = {"users": 1.0, "rows": of_line["rows"].bound, "sum": of_line["sum"].bound}
    expected_by_line = {
        "users": (len(sizes), 0.0),
        "rows": (
            sum(min(size, sensitivity["rows"]) for size in sizes.values()),
            sum(max(size - sensitivity["rows"], 0.0) for size in sizes.values()),
        ),
        "sum": (
            math.fsum(max(-sensitivity["sum"], min(total, sensitivity["sum"])) for total in totals.values()),
            math.fsum(
                total - max(-sensitivity["sum"], min(total, sensitivity["sum"])) for total in totals.values()
            ),
        ),
    }
    for name, (expected, cut) in expected_by_line.items():
        scale = sensitivity[name] / of_line[name].spent_budget
        variance = laplace_variance(scale, is_whole=library is Program.OPENDP and name != "sum")
        assert of_line[name].error == pytest.approx(math.sqrt(cut**2 + variance), rel=1e-6)
        assert abs(released[name] - expected) <= scale * SURE + 1.0, name
    # Nothing is cut of the mean. Of its two noisy sums, for the values' distance from the middle and for the rows,
    # each is off by at most SURE scales, with half of the share where the library splits it.
    mean, wide = math.fsum(value for *_, value in rows) / len(rows), 2.0 / of_line["mean"].spent_budget * SURE
    assert of_line["mean"].bound == 300.0
    off_sum, off_rows = 300.0 * 50.0 * wide, 300.0 * wide
    assert off_rows < len(rows) / 2.0
    assert abs(released["mean"] - mean) <= (off_sum + abs(mean) * off_rows) / (len(rows) - off_rows) < 4.0
    # Of groups nobody's are cut, only what a user adds to each; and in that of nobody there is noise alone.
    in_group: dict[tuple[str, str], list[float]] = defaultdict(list)
    for user, group, value in rows:
        in_group[user, group].append(value)
    for name, amount in (
        ("users per group", lambda values: 1.0),
        ("rows per group", lambda values: float(len(values))),
        ("sums per group", math.fsum),
    ):
        line, value = of_line[name], released[name]
        largest = 1.0 if math.isnan(line.second_bound) else line.second_bound
        scale = line.bound * largest / line.spent_budget
        assert line.bound == 2.0
        assert sorted(value) == ["a", "b", "c", "nobody"]
        squares = []
        for group in value:
            each = [amount(values) for (_, where), values in in_group.items() if where == group]
            expected = math.fsum(max(-largest, min(item, largest)) for item in each)
            assert abs(value[group] - expected) <= scale * SURE + 1.0, (name, group)
            variance = laplace_variance(scale, library is Program.OPENDP and name != "sums per group")
            squares.append((math.fsum(each) - expected) ** 2 + variance)
        # The page knows of the groups that somebody is in.
        assert line.error == pytest.approx(math.sqrt(math.fsum(squares[:3]) / 3.0), rel=1e-3), name


@PYTHON_AND_OPENDP
def test_a_plan_does_not_run_where_a_value_is_missing_and_neither_is_there_one(
    library: Program, empty_folder: Path
) -> None:
    roles = Roles(TableKind.EVENTS, user="who", value="what")
    (empty_folder / "few.csv").write_text("who,what\na,1\nb,2\n")
    data = count(open_files([empty_folder / "few.csv"]), roles, Disclosure.PUBLIC).dataset
    parameters = PlanParameters(
        900.0, lines="rows; sum; mean within 1", lower=0.0, upper=9.0, program=library
    )
    plan = make_program(
        data, parameters, allocate_lines(data, parameters, table.plan_lines(data, parameters), [0.3] * 3)
    )
    (empty_folder / "few.csv").write_text("who,what\na,1\nb,\n")
    with pytest.raises(InvalidInput, match="the cell is blank"):
        count(open_files([empty_folder / "few.csv"]), roles, Disclosure.PUBLIC)
    with pytest.raises(SystemExit, match="no epsilon was spent"):
        run_program(plan, library)
