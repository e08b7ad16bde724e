"""What is written: syntax, parameters, labels, names from outside, and that no bound turns into another."""

from __future__ import annotations

import ast
import os
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
import sqlglot
from sqlglot import exp

from dpcore.code import LIBRARIES, Quantity, ReleaseSpec, read_name_table, write
from dpcore.code.common import describe_bound_source
from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Disclosure, Neighbours, ReleaseFacts
from dpcore.common.programs import Program
from dpcore.quantile.programs import TREE_PROGRAMS
from tests.dpcore.code import together
from tests.dpcore.code.reading import parse
from tests.dpcore.code.specs import GAUSSIAN, REPLACE, SPEC_BY_NAME, VALUES, make_spec

SEARCHING = bool(os.environ.get("SWEETSPOT_SEARCH"))
ROOT = Path(__file__).resolve().parents[3]
EACH = pytest.mark.parametrize("name", list(SPEC_BY_NAME))
HOSTILE = (
    "count; drop table users",
    'it\'s "quoted"',
    "back`tick\\`",
    "triple \"\"\" and '''",
    "two\nlines\r\n-- # */",
    "ends in a backslash \\",
    "Größe µ 数量",
    "\u202egnp.exe\u2028\x00\x07{}%s$x",
    "*",
    "^.*$",
)


def names_in_turn(at: int) -> list[str]:
    """Of these names every third, another third for the next question; all of them where examples are searched for."""
    return [name for k, name in enumerate(HOSTILE) if SEARCHING or (k + at) % 3 == 0]


def constants(text: str) -> list[object]:
    return [node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)]


def keywords(text: str, call: str) -> dict[str, object]:
    """Keyword arguments of the first call of a function, where they are literals."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == call:
            return {
                str(k.arg): k.value.value if isinstance(k.value, ast.Constant) else ast.unparse(k.value)
                for k in node.keywords
            }
    raise AssertionError(f"no call of {call}")


@EACH
@pytest.mark.parametrize("library", list(LIBRARIES))
def test_a_program_parses_imports_what_it_uses_and_says_what_it_needs_and_spends(
    name: str, library: Program
) -> None:
    code = write(SPEC_BY_NAME[name], library)
    if not code.text:
        assert library is not Program.PYTHON
        assert any("lain Python" in sentence for sentence in code.differences)
        return
    if code.language == "sql":
        assert parse(code.text)
    else:
        nodes = list(ast.walk(ast.parse(code.text)))
        imported = {
            (alias.asname or alias.name).split(".")[0]
            for node in nodes
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }
        assert imported <= {node.id for node in nodes if isinstance(node, ast.Name)}
        head = " ".join(code.text.split("\n\n")[0].replace("\n#", "").split())
        assert "pip install " in head
        assert ("every run spends epsilon again" in head) == (name != "model")
    for sentence in code.differences:
        assert " ".join(sentence.split()) in re.sub(r"\s*\n(#|--)\s+", " ", code.text)
    assert max(map(len, code.text.splitlines())) <= 120
    assert code.file_name.endswith(".sql" if code.language == "sql" else ".py")


# --- bounds -------------------------------------------------------------------------------------------------


def rows_as_groups(sql: str) -> list[str]:
    """What is wrong with the bounds of a statement that was chosen for 7 rows per user."""
    wrong = []
    private = [s for s in parse(sql) if s.options]
    for statement in private:
        if statement.options["max_groups_contributed"] != "1":
            wrong.append("max_groups_contributed is not 1")
        if list(statement.options) != ["epsilon", "delta", "max_groups_contributed", "privacy_unit_column"]:
            wrong.append("other options")
    if not private:
        wrong.append("no private statement")
    return wrong


def test_a_rows_bound_is_never_a_groups_bound() -> None:
    for name in ("mean, cap", "mean, cap, private counts", "count", "quantile, cap", "mean, smooth"):
        assert rows_as_groups(write(SPEC_BY_NAME[name], Program.BIGQUERY).text) == [], name


def test_the_test_would_see_a_rows_bound_exported_as_groups() -> None:
    sql = write(SPEC_BY_NAME["count"], Program.BIGQUERY).text
    mutant = sql.replace("max_groups_contributed = 1", "max_groups_contributed = 7")
    assert mutant != sql
    assert rows_as_groups(mutant) == ["max_groups_contributed is not 1"]


@pytest.mark.parametrize(
    ("name", "bounds"),
    [
        ("mean, cap", [("SUM", "contribution_bounds_per_group", 0.0, 665.0)]),
        (
            "mean, cap, private counts",
            [
                ("SUM", "contribution_bounds_per_group", -332.5, 332.5),
                ("COUNT", "contribution_bounds_per_group", 0.0, 7.0),
            ],
        ),
        ("mean, smooth", [("SUM", "contribution_bounds_per_group", 0.0, 7.3 * 95.0)]),
        ("sum", [("SUM", "contribution_bounds_per_group", 0.0, 150.25)]),
        ("sum, both signs", [("SUM", "contribution_bounds_per_group", -20.0, 80.5)]),
        ("count", [("COUNT", "contribution_bounds_per_group", 0.0, 7.0)]),
        ("groups", [("COUNT", "contribution_bounds_per_group", 0.0, 1.0)]),
        ("quantile, cap", [("PERCENTILE_CONT", "contribution_bounds_per_row", 5.0, 100.0)] * 2),
    ],
)
def test_bigquery_clamps_what_a_user_adds(name: str, bounds: list[tuple[str, str, float, float]]) -> None:
    (private,) = [s for s in parse(write(SPEC_BY_NAME[name], Program.BIGQUERY).text) if s.options]
    assert private.bounds == bounds
    assert private.options["epsilon"] == "1.0"
    assert private.options["max_groups_contributed"] == ("3" if name == "groups" else "1")


@pytest.mark.parametrize("name", ["mean, cap", "mean, cap, private counts", "quantile, cap", "model"])
def test_bigquery_samples_rows_in_a_statement_before(name: str) -> None:
    first, *_ = parse(write(SPEC_BY_NAME[name], Program.BIGQUERY).text)
    assert not first.options
    (qualify,) = first.tree.find_all(exp.Qualify)
    limit = qualify.this
    assert isinstance(limit, exp.LTE)
    assert limit.expression.this == "7"
    (window,) = limit.find_all(exp.Window)
    assert [column.name for column in window.args["partition_by"]] == ["user_id"]
    assert window.args["order"].find(exp.Rand)


# Of releases per group, what is added up between which ends.
METRICS = {"rows per group": "COUNT", "sums per group": "SUM", "means per group": "MEAN"}
AGGREGATES = {
    "rows per group": 'count(name="rows")',
    "sums per group": 'sum("value", low=0.0, high=133.5, name="total")',
    "means per group": 'average("value", low=LOWER, high=UPPER, name="noisy_mean")',
}
PIPELINEDP_RANGE = {"min_value": "LOWER", "max_value": "UPPER"}
PIPELINEDP_SUMS = {
    "max_partitions_contributed": 9,
    "max_contributions_per_partition": 1,
    "max_sum_per_partition": 133.5,
}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mean, cap", {"max_contributions": 7, "min_value": 0.0, "max_value": "UPPER - LOWER"}),
        ("mean, cap, private counts", {"max_contributions": 7, **PIPELINEDP_RANGE}),
        ("count", {"max_contributions": 7}),
        ("groups", {"max_partitions_contributed": 3, "max_contributions_per_partition": 1}),
        ("rows per group", {"max_partitions_contributed": 9, "max_contributions_per_partition": 3}),
        ("sums per group", PIPELINEDP_SUMS | {"min_sum_per_partition": 0.0}),
        ("sums per group, any sign", PIPELINEDP_SUMS | {"min_sum_per_partition": "-133.5"}),
        (
            "means per group",
            {"max_partitions_contributed": 9, "max_contributions_per_partition": 3, **PIPELINEDP_RANGE},
        ),
        (
            "quantile, cap",
            {"max_partitions_contributed": 1, "max_contributions_per_partition": 7, **PIPELINEDP_RANGE},
        ),
        (
            "sum, both signs",
            {
                "max_partitions_contributed": 1,
                "max_contributions_per_partition": 1,
                "min_sum_per_partition": "-20.0",
                "max_sum_per_partition": 80.5,
            },
        ),
    ],
)
def test_pipelinedp_takes_the_bound_by_its_name(name: str, expected: dict[str, object]) -> None:
    arguments = keywords(write(SPEC_BY_NAME[name], Program.PIPELINEDP).text, "AggregateParams")
    bounds = {k: v for k, v in arguments.items() if k not in ("noise_kind", "metrics")}
    assert bounds == expected
    assert METRICS.get(name, "") in str(arguments["metrics"])
    # Its own rule: one of the two ways, never both (AggregateParams.__post_init__).
    assert ("max_contributions" in arguments) != ("max_partitions_contributed" in arguments)
    assert ("max_partitions_contributed" in arguments) == ("max_contributions_per_partition" in arguments)


@pytest.mark.parametrize("name", list(SPEC_BY_NAME))
def test_pipelinedp_says_where_a_sum_needs_no_bound_on_rows(name: str) -> None:
    lines = [line.strip() for line in write(SPEC_BY_NAME[name], Program.PIPELINEDP).text.splitlines()]
    comments = [line for line in lines if line.startswith("#") and "no max_contributions is needed" in line]
    assert len(comments) == any(line.startswith("max_sum_per_partition=") for line in lines)


@pytest.mark.parametrize(
    ("name", "calls"),
    [
        ("mean, cap", ["MaxRowsPerID(7)"]),
        ("mean, smooth", ["MaxRowsPerID(1)"]),
        ("count", ["MaxRowsPerID(7)"]),
        ("sum", ["MaxRowsPerID(1)"]),
        ("groups", ["MaxGroupsPerID('group', 3)", "MaxRowsPerGroupPerID('group', 1)"]),
        ("quantile, cap", ["MaxRowsPerID(7)"]),
        ("rows per group", ["MaxGroupsPerID('group', 9)", "MaxRowsPerGroupPerID('group', 3)"]),
        ("sums per group", ["MaxGroupsPerID('group', 9)", "MaxRowsPerGroupPerID('group', 1)"]),
        ("means per group", ["MaxGroupsPerID('group', 9)", "MaxRowsPerGroupPerID('group', 3)"]),
    ],
)
def test_tumult_enforces_the_bound(name: str, calls: list[str]) -> None:
    text = write(SPEC_BY_NAME[name], Program.TUMULT).text
    assert AGGREGATES.get(name, "") in text
    tree = ast.parse(text)
    calls_made = [
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.startswith("Max")
    ]
    assert sorted(calls_made) == sorted(calls)
    imported = {
        alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert {call.split("(")[0] for call in calls} <= imported


@pytest.mark.parametrize("library", list(LIBRARIES))
def test_a_file_of_another_kind_is_not_read_as_if_it_were_csv_without_a_word(library: Program) -> None:
    comments = "is read as text with commas"
    for file in ("events.txt", "events.log"):
        text = " ".join(
            write(replace(SPEC_BY_NAME["count"], file=file), library).text.replace("\n#", "").split()
        )
        assert (comments in text) == (library is not Program.BIGQUERY)
    for file in (
        "events.csv",
        "EVENTS.TSV",
        "events.parquet",
        "events.xlsx",
        "events.jsonl",
        "events.csv.zst",
    ):
        assert comments not in write(replace(SPEC_BY_NAME["count"], file=file), library).text


# --- numbers and labels -------------------------------------------------------------------------------------


@pytest.mark.thinned
@pytest.mark.parametrize("epsilon", [0.1 + 0.2, 1 / 3, 1e-6, 7.000000000000001])
@pytest.mark.parametrize("library", list(LIBRARIES))
def test_epsilon_is_written_exactly(library: Program, epsilon: float) -> None:
    text = write(replace(SPEC_BY_NAME["count"], epsilon=epsilon), library).text
    if library is Program.BIGQUERY:
        assert float(parse(text)[0].options["epsilon"]) == epsilon
    else:
        assert epsilon in constants(text)


def test_several_quantiles_never_cost_more_than_epsilon() -> None:
    for count in range(1, 12):
        for epsilon in (1.0, 0.1, 0.7, 1 / 3):
            quantiles = tuple((i + 1) / (count + 1) for i in range(count))
            one = replace(SPEC_BY_NAME["quantile, cap"], epsilon=epsilon, quantiles=quantiles)
            assert (
                0
                <= Fraction(epsilon) - Fraction(one.epsilon_per_quantile) * count
                <= Fraction(epsilon) / 10**15
            )


@pytest.mark.parametrize("library", list(LIBRARIES))
def test_a_bound_from_private_data_says_so_before_any_code(library: Program) -> None:
    private = write(replace(SPEC_BY_NAME["mean, cap"], disclosure=Disclosure.PRIVATE), library).text
    head = private.split("\n\n")[0]
    assert "COMPUTED FROM PRIVATE DATA (DO NOT PUBLISH)" in head
    public = write(SPEC_BY_NAME["mean, cap"], library).text
    assert "PRIVATE DATA" not in public
    assert "public input" in public.split("\n\n")[0]
    facts = ReleaseFacts(0.125, 0.0, Neighbours.ADD_OR_REMOVE_USER, "discrete Laplace")
    released = write(replace(SPEC_BY_NAME["mean, cap"], disclosure=facts), library).text.split("\n\n")[0]
    assert "DP release (epsilon = 0.125, add or remove one user" in " ".join(
        line.lstrip("#- ") for line in released.splitlines()
    )


def test_the_label_names_all_that_was_spent_and_the_total() -> None:
    def label(**options: object) -> str:
        return describe_bound_source(replace(SPEC_BY_NAME["mean, cap"], epsilon=1.0, **options))

    add, exchange = (
        ReleaseFacts(0.2, 0.0, relation, "exponential mechanism")
        for relation in (Neighbours.ADD_OR_REMOVE_USER, Neighbours.REPLACE_USER)
    )
    of_range = replace(add, epsilon=0.5)
    both = label(disclosure=add, range_facts=of_range)
    assert both.endswith("In all epsilon = 0.2 (bound) + 0.5 (range) + 1 (this release) = 1.7.")
    assert "The range comes from a DP release (epsilon = 0.5" in both
    range_alone = label(disclosure=Disclosure.PUBLIC, range_facts=of_range)
    assert range_alone.startswith("The bound is a public input. The range comes from")
    assert range_alone.endswith("In all epsilon = 0.5 (range) + 1 (this release) = 1.5.")
    # No total where a part protects something else, or nothing protects the bound.
    assert "In all" not in label(disclosure=exchange, range_facts=of_range)
    assert "replacing one user only" in label(disclosure=exchange, range_facts=of_range)
    assert "In all" not in label(disclosure=Disclosure.PRIVATE, range_facts=of_range)
    noisy = replace(add, delta=1e-6)
    assert label(disclosure=noisy).endswith("0.2 (bound) + 1 (this release) = 1.2, delta = 0.000001.")
    with pytest.raises(InvalidInput, match="both ends"):
        replace(SPEC_BY_NAME["sum"], range_facts=add)


def test_groups_of_private_data_are_not_read_off_them() -> None:
    for library in (Program.OPENDP, Program.PIPELINEDP, Program.TUMULT, Program.PYTHON):
        public = write(SPEC_BY_NAME["groups"], library).text
        private = write(replace(SPEC_BY_NAME["groups"], disclosure=Disclosure.PRIVATE), library).text
        # Of private data with a bound from a release, only the bound is public.
        facts = ReleaseFacts(0.125, 0.0, Neighbours.ADD_OR_REMOVE_USER, "discrete Laplace")
        released_message = write(replace(SPEC_BY_NAME["groups"], disclosure=facts), library).text
        for text in (private, released_message):
            assert text.count("GROUPS: list[str] = []") == 1
            assert "# public data" not in text
        assert "GROUPS: list" not in public
        assert "# public data" in public


def test_the_relation_of_the_question_and_of_the_library_are_both_said() -> None:
    for library in LIBRARIES:
        text = " ".join(
            write(SPEC_BY_NAME["mean, cap"], library).text.replace("\n--", "").replace("\n#", "").split()
        )
        if library is Program.PYTHON:
            assert "differ in one user's values" in text
        else:
            assert "added or removed" in text
            assert "The bound was chosen for public numbers of rows per user" in text
            quantile_text = write(SPEC_BY_NAME["quantile, cap"], library).text
            quantile_text = " ".join(re.sub(r"\n(#|--)", "", quantile_text).split())
            # A changed value moves twice as many counts of a tree, and a score by 1; a user's rows by max(q, 1 - q).
            value_cost = "at most twice ε" if library in TREE_PROGRAMS else "ε / max(q, 1 - q)"
            assert f"A change of values alone has {value_cost}" in quantile_text


# --- names from outside -------------------------------------------------------------------------------------


def shape(text: str) -> str:
    """The program without its literals: what a name must not change."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return ast.dump(tree)


def with_names(choice: ReleaseSpec, name: str) -> ReleaseSpec:
    return replace(
        choice,
        privacy_unit=(name + "1", name),
        value_column=name,
        group_column=name,
        file=name,
        bigquery_table=name,
    )


@pytest.mark.long_but("Program.PIPELINEDP")
@pytest.mark.parametrize("library", [library for library in LIBRARIES if library is not Program.BIGQUERY])
def test_hostile_names_stay_literals_in_python(library: Program) -> None:
    for index, (name, choice) in enumerate(SPEC_BY_NAME.items()):
        honest = {
            each: write(with_names(choice, each), library).text for each in ('an "honest" name', "honest")
        }
        for hostile in names_in_turn(index):
            text = write(with_names(choice, hostile), library).text
            if not text:
                continue
            same = honest['an "honest" name' if '"' in hostile else "honest"]
            assert shape(text) == shape(same), (name, hostile)
            if library is not Program.OPENDP or hostile not in ("*", "^.*$"):
                written = [str(c) for c in constants(text)]
                assert any(hostile.replace("`", "``") in c or hostile in c for c in written), (name, hostile)
            # Nothing invisible, no line end inside a comment or a literal.
            assert all(c.isprintable() or c == "\n" for c in text), (name, hostile)
            assert text.count("\n") == len(text.splitlines()), (name, hostile)


@pytest.mark.few(12)
@EACH
def test_hostile_names_stay_identifiers_in_sql(name: str) -> None:
    honest = write(with_names(SPEC_BY_NAME[name], "honest"), Program.BIGQUERY).text
    for hostile in names_in_turn(list(SPEC_BY_NAME).index(name)):
        text = write(with_names(SPEC_BY_NAME[name], hostile), Program.BIGQUERY).text
        if not text:
            continue
        kinds = [token.token_type for token in sqlglot.tokenize(text, read="bigquery")]
        assert kinds == [token.token_type for token in sqlglot.tokenize(honest, read="bigquery")], hostile
        assert len(parse(text)) == len(parse(honest)), hostile
        assert all(c.isprintable() or c == "\n" for c in text), hostile
        code = "\n".join(line for line in text.splitlines() if not line.startswith("--"))
        quoted = re.findall(r"`((?:[^`\\]|\\.)*)`", code)
        unescaped = {ast.literal_eval('"' + q.replace("\\`", "`").replace('"', '\\"') + '"') for q in quoted}
        assert hostile in unescaped
        if name != "model":
            assert "`" not in re.sub(r"`((?:[^`\\]|\\.)*)`", "", code), hostile


def test_the_shape_would_see_an_injection() -> None:
    text = write(SPEC_BY_NAME["count"], Program.OPENDP).text
    assert shape(text) != shape(text.replace('"user_id"', '"user_id" + print("x")'))


# --- choices ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("released", "fields", "word"),
    [
        (Quantity.COUNT, {"max_rows": 2.5}, "whole"),
        (Quantity.COUNT, {"max_rows": 0}, "whole"),
        (Quantity.COUNT, {"max_groups": 3}, "max_rows"),
        (Quantity.COUNT, {"max_rows": 3, "max_groups": 3}, "nothing else"),
        (Quantity.COUNT, {}, "max_rows"),
        (Quantity.MEAN, {"max_rows": 3, "threshold": 2.0, **VALUES}, "nothing else"),
        (Quantity.MEAN, {"max_rows": 3}, "lower"),
        (Quantity.MEAN, {"max_rows": 3, "lower": 1.0, "upper": 1.0}, "below"),
        (Quantity.SUM, {"max_total": float("nan")}, "finite"),
        (Quantity.SUM, {"max_total": 5.0, "min_total": 5.0}, "empty"),
        (Quantity.QUANTILE, {"max_rows": 3, **VALUES}, "quantiles"),
        (Quantity.QUANTILE, {"max_rows": 3, "quantiles": (1.0,), **VALUES}, "strictly"),
        (Quantity.COUNT, {"max_rows": 3, "epsilon": 0.0}, "epsilon"),
        (Quantity.COUNT, {"max_rows": 3, "delta": 1.0}, "delta"),
        (
            Quantity.QUANTILE,
            {"max_rows": 3, "quantiles": (0.5,), "noise": GAUSSIAN, "delta": 1e-6, **VALUES},
            "Laplace",
        ),
        (Quantity.COUNT, {"max_rows": 3, "privacy_unit": ()}, "names"),
    ],
)
def test_bad_choices_are_refused(released: Quantity, fields: dict[str, object], word: str) -> None:
    with pytest.raises(InvalidInput, match=f"(?i){word}"):
        make_spec(released, **fields)


def test_all_problems_are_said_at_once() -> None:
    with pytest.raises(InvalidInput) as refused:
        make_spec(Quantity.MEAN, max_rows=0, epsilon=-1.0, lower=2.0, upper=1.0, neighbours=REPLACE)
    assert len(refused.value.problems) == 3


# --- the same thing is called -------------------------------------------------------------------------------


@pytest.mark.long
def test_every_name_in_the_table_stands_in_a_program() -> None:
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in read_name_table().splitlines()]
    columns = table[0][2:]
    for library, column in zip(LIBRARIES, columns, strict=False):
        assert column.startswith(library.value)
    assert len(table) == 11
    for row in table[2:]:
        for library, column, item in zip(LIBRARIES, columns, row[2:], strict=False):
            text = "\n".join(
                write(c, library).text for c in [*SPEC_BY_NAME.values(), together.make_several()]
            )
            for snippet in re.findall(r"`([^`]+)`", item):
                word = re.match(r"[A-Za-z_.]+", snippet)
                assert word
                last = word.group().split(".")[-1]
                assert last in text, f"{column}: {snippet}"


def test_the_document_has_the_table() -> None:
    text = (ROOT / "docs" / "libraries.md").read_text(encoding="utf-8")
    assert read_name_table() in text
