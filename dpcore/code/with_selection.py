"""Privately selected groups for plain Python and OpenDP, and why a library has no such program.

OpenDP's ``make_laplace_threshold`` and ``make_gaussian_threshold`` (0.16.0, run by the tests) have the threshold of
*Group by*: the same noise, and the least threshold within the same delta. Their Polars context spends all of epsilon
on one noisy count and has no such split, so that the programs bound users with pandas.
"""

from __future__ import annotations

from typing import Any

from dpcore.code import common
from dpcore.code.release_noise import find_release_noise
from dpcore.code.release_spec import Code, ReleaseSpec
from dpcore.common.noise_error import NoiseKind
from dpcore.common.programs import Program, find_exact_sigma

GEOMETRIC, LAPLACE, GAUSSIAN = "truncated geometric", "Laplace threshold", "Gaussian threshold"
"""Rules, as `dpcore.code.release_spec.GroupSelection` names them."""
SELECTED_GROUPS_SENTENCE = (
    "Groups are selected privately, by the users that keep them. A group that is not released is missing, whatever it "
    "holds. The budget of both parts together covers the list of released groups and their noisy amounts."
)
_ONLY_PAIRS_SENTENCE = (
    "{library} selects groups privately for the pair of bounds only, not for a bound on whole vectors."
)


def list_refusals(spec: ReleaseSpec, program: Program) -> list[str]:
    """List the sentence on why a library cannot select a choice's groups privately.

    Empty if it can, or if no groups are selected.
    """
    selection, program_name = spec.selection, program.value
    if selection is None:
        return []
    if spec.max_norm is not None:
        return [_ONLY_PAIRS_SENTENCE.format(library=program_name)]
    is_gaussian = spec.noise is NoiseKind.GAUSSIAN
    if program in (Program.PYTHON, Program.OPENDP) and selection.rule == GEOMETRIC:
        return [
            f"{program_name} has no truncated geometric rule. PipelineDP has it; here choose a Laplace threshold."
        ]
    if program is Program.PIPELINEDP:
        has_even_split = selection.epsilon == spec.epsilon
        has_even_split &= not is_gaussian or selection.delta == spec.delta
        split_parts_text = "ε and δ" if is_gaussian else "ε"
        even_sentence = f"PipelineDP splits {split_parts_text} evenly between groups and noise. Choose that."
        return [] if has_even_split else [even_sentence]
    if program is Program.TUMULT:
        has_library_rule = selection.rule == LAPLACE and selection.min_users == 1 and not is_gaussian
        only_laplace_text = (
            "selects groups by a Laplace threshold, beside Laplace noise and without a least number of users"
        )
        return [] if has_library_rule else [f"Tumult {only_laplace_text}. Choose that, or plain Python."]
    if program is Program.BIGQUERY:
        has_library_rule = (
            selection.rule == LAPLACE and selection.min_users == 1 and selection.epsilon == spec.epsilon
        )
        only_laplace_text = (
            "selects groups by a Laplace threshold, with half of ε and without a least number of users"
        )
        return [] if has_library_rule else [f"BigQuery {only_laplace_text}. Choose that, or plain Python."]
    return []


def write_program(spec: ReleaseSpec, program: Program, library_name: str, requirements_text: str) -> Code:
    """Write the program with a private selection of groups, for plain Python or OpenDP, or only why there is none."""
    selection, refusals = spec.selection, list_refusals(spec, program)
    assert selection is not None
    body_text, differences = "", [SELECTED_GROUPS_SENTENCE, common.describe_replacement(spec)]
    if program is Program.OPENDP:
        differences.append(common.describe_gaussian_noise(spec))
    if not refusals:
        template_values: dict[str, Any] = {"whole": program is Program.OPENDP, "sigma": None}
        template_values |= {"selection_sigma": None, "noise": find_release_noise(spec, program)}
        if spec.noise is NoiseKind.GAUSSIAN and spec.delta is not None:
            template_values["sigma"] = find_exact_sigma(spec.epsilon, spec.delta)
        if selection.rule == GAUSSIAN:
            template_values["selection_sigma"] = find_exact_sigma(selection.epsilon, selection.delta / 2.0)
        body_text = common.render_program("with_selection.py", spec, **template_values)
    requirements_text = common.add_readers(requirements_text, spec)
    return common.assemble_code(
        spec,
        library_name,
        common.ADD_OR_REMOVE_SENTENCE,
        refusals or differences,
        body_text,
        requirements_text,
    )
