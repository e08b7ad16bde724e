"""The release for PipelineDP, on its local backend.

Parameter names and rules from ``AggregateParams`` (pipeline_dp/aggregate_params.py) and the sensitivities in
pipeline_dp/dp_computations.py of github.com/OpenMined/PipelineDP, versions 0.2.1 and 0.3.1, and
https://pipelinedp.readthedocs.io (read 2026-11-21): ``max_contributions`` stands alone, or
``max_partitions_contributed`` and ``max_contributions_per_partition`` stand together; ``min_sum_per_partition`` and
``max_sum_per_partition`` bound the sum of a privacy unit in a partition and exclude ``min_value``;
``max_contributions`` is refused for percentiles (dp_engine.py). tests/libraries runs the programs with 0.3.1.
"""

from __future__ import annotations

from typing import Any

from dpcore.code import common, with_selection
from dpcore.code.release_noise import find_release_noise
from dpcore.code.release_spec import GROUP_QUANTITIES, Code, Quantity, ReleaseSpec
from dpcore.common.noise_error import NoiseKind
from dpcore.common.programs import Program

LIBRARY_NAME = "PipelineDP 0.3"
REQUIREMENTS = "Python 3.11 to 3.13, and pip install 'pipeline-dp>=0.3,<0.4' pandas"


def write_program(spec: ReleaseSpec) -> Code:
    """Write the program of a release, or only the sentences on why there is none."""
    refusals = with_selection.list_refusals(spec, Program.PIPELINEDP)
    body_text = _render_body(spec) if spec.is_in_every_library and not refusals else ""
    needs_text = f"{REQUIREMENTS} dp-accounting" if composes_losses(spec) else REQUIREMENTS
    requirements_text = common.add_readers(needs_text, spec)
    differences = refusals or _list_differences(spec)
    return common.assemble_code(
        spec, LIBRARY_NAME, common.ADD_OR_REMOVE_SENTENCE, differences, body_text, requirements_text
    )


def composes_losses(spec: ReleaseSpec) -> bool:
    """Return True if an accountant composes the noise of sums and rows, instead of half the budget for each."""
    is_ratio = spec.quantity is Quantity.GROUP_MEANS or common.has_noisy_rows(spec)
    return is_ratio and spec.noise is NoiseKind.GAUSSIAN


def _list_differences(spec: ReleaseSpec) -> list[str]:
    """List sentences on what differs from the page, or on why there is no program."""
    quantity, is_smooth = spec.quantity, spec.threshold is not None
    if quantity is Quantity.CLASSIFIER:
        return [common.NO_TRAINING_SENTENCE.format(library="PipelineDP")]
    if spec.clamps_users:
        return [common.CLAMPS_ROWS_SENTENCE.format(library="PipelineDP")]
    differences = [common.describe_public_counts(spec, has_tree=True)]
    if spec.noise is NoiseKind.GAUSSIAN:
        differences.append(
            # Measured with 0.3.1 for epsilon from 0.01 to 50 and delta from 1e-9 to 1e-3.
            "PipelineDP finds the scale of Gaussian noise itself: that of the exact mechanism, as on the page, or up "
            "to 0.05 % more."
        )
    if quantity is Quantity.MEAN and is_smooth:
        differences.append(
            "PipelineDP has no weights per user. The rows are added up with their weights before, one row "
            "per user, and PipelineDP clamps that one row: its guarantee covers the result, since a user "
            "is one row."
        )
    differences.append(common.describe_clamped_mean(spec))
    if common.has_noisy_rows(spec) and spec.noise is NoiseKind.LAPLACE:
        differences.append(common.SPLIT_MEAN_SENTENCE)
    if quantity is Quantity.QUANTILE and is_smooth:
        return [
            "PipelineDP's percentiles count all rows alike, so smooth weights cannot be expressed. The "
            "closest option is a bound on rows per user; plain Python has the smooth weights."
        ]
    if quantity is Quantity.QUANTILE:
        differences.append(
            "PipelineDP finds percentiles in a tree of 16^4 leaves with noise on every node, 4 rows / ε, and holds "
            "them between 0.5 and 99.5 %. For one bound its error is several times that of OpenDP."
        )
    if quantity is Quantity.MODEL:
        differences.append(
            "PipelineDP trains no models. The code keeps the bound in Python; the privacy is that of the learner you "
            "hand the rows to, which must count a user's rows together."
        )
    if quantity is Quantity.TASK_WEIGHTS:
        return [
            "PipelineDP has no weights per partition. The closest option is a bound on tasks per user, "
            "max_partitions_contributed; plain Python has the task weights."
        ]
    if quantity is Quantity.COEFFICIENTS:
        return [common.NO_WEIGHTS_SENTENCE.format(library="PipelineDP")]
    if spec.max_norm is not None:
        return [
            "PipelineDP has no bound on the norm of what a user adds to all partitions. The closest option is the pair "
            "of bounds, max_partitions_contributed with max_contributions_per_partition; plain Python has the norm."
        ]
    if quantity in GROUP_QUANTITIES:
        groups_sentence = (
            common.PUBLIC_GROUPS_SENTENCE
            if spec.selection is None
            else with_selection.SELECTED_GROUPS_SENTENCE
        )
        differences += [groups_sentence, common.describe_replacement(spec)]
    if quantity is Quantity.GROUP_MEANS:
        differences += [] if spec.noise is NoiseKind.GAUSSIAN else [common.SPLIT_MEANS_SENTENCE]
    return differences


def list_percents(spec: ReleaseSpec) -> list[float]:
    """List the quantiles in percent, to 13 digits, since 0.07 * 100 is 7.000000000000001."""
    return [float(f"{100 * quantile:.13g}") for quantile in spec.quantiles]


def _render_body(spec: ReleaseSpec) -> str:
    """Render the program without head and notes."""
    release_noise = find_release_noise(spec, Program.PIPELINEDP)
    template_values: dict[str, Any] = {"percents": list_percents(spec), "noise": release_noise}
    template_values["public_rows"] = common.PUBLIC_ROWS_SENTENCE
    template_values["composes_losses"] = composes_losses(spec)
    selection = spec.selection
    template_values["total_epsilon"] = spec.epsilon + (selection.epsilon if selection else 0.0)
    template_values["total_delta"] = (spec.delta or 0.0) + (selection.delta if selection else 0.0)
    return common.render_program("with_pipelinedp.py", spec, **template_values)
