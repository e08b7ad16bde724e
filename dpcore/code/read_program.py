"""What a program passes to its library, as objects: read from its own text, so that both always agree."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from typing import Any

from dpcore.common.checks import refuse
from dpcore.common.extras import import_extra

_CALLS_BY_LIBRARY = {
    "pipelinedp": ("NaiveBudgetAccountant", "PLDBudgetAccountant", "AggregateParams"),
    "tumult": (
        "PureDPBudget", "ApproxDPBudget", "RhoZCDPBudget", "MaxRowsPerID", "MaxGroupsPerID", "MaxRowsPerGroupPerID",
        "sum", "count", "average", "quantile",
    ),
}  # fmt: skip
"""Calls whose arguments are parameters, by library in lower case."""
_POSITIONAL_NAMES_BY_CALL = {
    "PureDPBudget": ("epsilon",), "ApproxDPBudget": ("epsilon", "delta"), "RhoZCDPBudget": ("rho",),
    "MaxRowsPerID": ("max",), "MaxGroupsPerID": ("grouping_column", "max"),
    "MaxRowsPerGroupPerID": ("grouping_column", "max"), "sum": ("column",), "average": ("column",),
    "quantile": ("column",),
}  # fmt: skip
"""Tumult's own names of arguments that its programs pass by position."""


def read_parameters(program_text: str, library: str) -> dict[str, dict[str, Any]]:
    """Read the arguments of a program's calls; return them by call and by the library's own names.

    Args:
        program_text: Program for PipelineDP or Tumult.
        library: ``pipelinedp`` or ``tumult``.

    Returns:
        Numbers and texts as they are, members of the library's enumerations by name, what the program itself computes
        from the data as the text of the expression. A second call of the same name has the key ``AggregateParams 2``.

    Raises:
        InvalidInput: It is another library.
    """
    if library not in _CALLS_BY_LIBRARY:
        raise refuse(f"parameters have names in {' and '.join(_CALLS_BY_LIBRARY)}, got {library!r}")
    program_tree = ast.parse(program_text)
    constants = _read_constants(program_tree)
    arguments_by_call: dict[str, dict[str, Any]] = {}
    for call in (node for statement in program_tree.body for node in _walk_in_order(statement)):
        call_name = getattr(call.func, "id", getattr(call.func, "attr", ""))
        # `sum` and its kin are queries of a session's builder, not those of data frames.
        is_query = call_name in ("sum", "count", "average", "quantile")
        if call_name not in _CALLS_BY_LIBRARY[library] or (
            is_query and not any(k.arg == "name" for k in call.keywords)
        ):
            continue
        arguments = dict(zip(_POSITIONAL_NAMES_BY_CALL.get(call_name, ()), call.args, strict=False))
        arguments |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
        num_earlier_calls = sum(call_key.partition(" ")[0] == call_name for call_key in arguments_by_call)
        call_key = f"{call_name} {num_earlier_calls + 1}" if num_earlier_calls else call_name
        arguments_by_call[call_key] = {
            call_name: _evaluate(node, constants) for call_name, node in arguments.items()
        }
    return arguments_by_call


def build_query(program_text: str, opendp_context: Any) -> Any:
    """Build the query of an OpenDP program on another context.

    Args:
        program_text: Program for OpenDP.
        opendp_context: An OpenDP context whose table has the columns of the program's own: ``privacy_unit``, and what
            the query sums.

    Raises:
        InvalidInput: The program makes no query of a context, or one that needs its groups.
    """
    import_extra("opendp")
    # Whoever has a context has Polars, which the core does not need.
    program_tree = ast.parse(program_text)
    # The column `value` and the candidates are those of quantiles.
    query_variables = "query", "value", "candidates"
    query_statements = [
        s
        for s in program_tree.body
        if isinstance(s, ast.Assign) and ast.unparse(s.targets[0]) in query_variables
    ]
    used_names = [n.id for s in query_statements for n in ast.walk(s) if isinstance(n, ast.Name)]
    if used_names.count("context") != 1:
        raise refuse("OpenDP's program for this is not one query of a context", remedy="Use its code")
    if "groups" in used_names:
        message = "OpenDP's query for this needs the table of groups that its program makes"
        raise refuse(message, remedy="Use its code")
    values_by_name: dict[str, Any] = {
        **_read_constants(program_tree),
        "context": opendp_context,
        "dp": importlib.import_module("opendp.prelude"),
        "pl": importlib.import_module("polars"),
    }
    exec(compile(ast.Module([*query_statements], []), "program", "exec"), values_by_name)
    return values_by_name["query"]


def _walk_in_order(statement: ast.stmt) -> Iterator[ast.Call]:
    """Yield the calls in a statement in the order in which they end."""
    call_nodes = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
    yield from sorted(call_nodes, key=lambda call: (call.end_lineno or 0, call.end_col_offset or 0))


def _read_constants(program_tree: ast.Module) -> dict[str, Any]:
    """Return by name the program's constants, set to numbers or texts.

    Constants that are read from the data are left out.
    """
    constants_by_name: dict[str, Any] = {}
    for statement in program_tree.body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]).strip("()").isupper():
            try:
                exec(compile(ast.Module([statement], []), "program", "exec"), constants_by_name)
            except NameError:  # It is read from the data.
                continue
    return constants_by_name


def _evaluate(argument_node: ast.expr, constants_by_name: dict[str, Any]) -> Any:
    """Return the value of an argument: a number, a text or a list of these.

    Members of enumerations are texts, their names. What is computed from data is the text of its expression.
    """
    if isinstance(argument_node, ast.List | ast.Tuple):
        return [_evaluate(list_item_node, constants_by_name) for list_item_node in argument_node.elts]
    if isinstance(argument_node, ast.Attribute):
        return argument_node.attr
    if isinstance(argument_node, ast.Call):
        return ast.unparse(argument_node).rpartition("Metrics.")[2]
    try:
        return eval(compile(ast.Expression(argument_node), "program", "eval"), dict(constants_by_name))
    except NameError:
        return ast.unparse(argument_node)
