"""The release for Tumult Analytics, on Spark.

Names from the API reference of tmlt.analytics 0.20 (https://docs.tmlt.dev/analytics/latest/reference/) and from
github.com/opendp/tumult-analytics, src/tmlt/analytics/constraints/_truncation.py (``MaxRowsPerID(max)``,
``MaxGroupsPerID(grouping_column, max)``, ``MaxRowsPerGroupPerID(grouping_column, max)``), protected_change.py
(``AddRowsWithID``), session.py and query_builder.py (read 2026-11-21). tests/libraries runs the programs with 0.21.0.
"""

from __future__ import annotations

from dpcore.code import common, with_selection
from dpcore.code.release_noise import find_release_noise
from dpcore.code.release_spec import GROUP_QUANTITIES, Code, Quantity, ReleaseSpec
from dpcore.common.noise_error import NoiseKind
from dpcore.common.programs import Program, convert_to_rho

LIBRARY_NAME = "Tumult Analytics 0.21"
REQUIREMENTS = "Java 17, Python 3.10 to 3.12, and pip install 'tmlt.analytics>=0.21,<0.22'"
RELATION_SENTENCE = f"{common.ADD_OR_REMOVE_SENTENCE} That is what AddRowsWithID says."


def write_program(spec: ReleaseSpec) -> Code:
    """Write the program of a release, or only the sentences on why there is none."""
    rho = convert_to_rho(spec.epsilon, spec.delta) if spec.noise is NoiseKind.GAUSSIAN else None
    release_noise = find_release_noise(spec, Program.TUMULT)
    template_values = {"rho": rho, "noise": release_noise, "public_rows": common.PUBLIC_ROWS_SENTENCE}
    body_text = ""
    refusals = with_selection.list_refusals(spec, Program.TUMULT)
    if spec.is_in_every_library and not refusals:
        body_text = common.render_program("with_tumult.py", spec, **template_values)
    differences, requirements_text = (
        refusals or _list_differences(spec),
        common.add_readers(REQUIREMENTS, spec),
    )
    return common.assemble_code(
        spec, LIBRARY_NAME, RELATION_SENTENCE, differences, body_text, requirements_text
    )


def _list_differences(spec: ReleaseSpec) -> list[str]:
    """List sentences on what differs from the page, or on why there is no program."""
    quantity, is_smooth = spec.quantity, spec.threshold is not None
    if quantity is Quantity.CLASSIFIER:
        return [common.NO_TRAINING_SENTENCE.format(library="Tumult")]
    if spec.clamps_users:
        return [common.CLAMPS_ROWS_SENTENCE.format(library="Tumult")]
    differences = [common.describe_public_counts(spec), common.describe_gaussian_noise(spec)]
    differences.append(common.describe_clamped_mean(spec))
    preparation_text = (
        "before the session, one row per user. The session then bounds that one row: its guarantee covers the result, "
        "since adding or removing a user adds or removes their one row."
    )
    if quantity is not Quantity.MODEL:
        differences.append(
            "The file is read into the memory of one computer. For a table that Spark holds put your own frame in the "
            "place of events, with the columns privacy_unit, value and group, cleaned in the same way."
        )
    if quantity is Quantity.SUM:
        differences.append(f"Tumult has no clamp for a user's total. Totals are added up {preparation_text}")
    if quantity is Quantity.MEAN and is_smooth:
        differences.append(
            f"Tumult has no weights per user. Rows are added up with their weights {preparation_text}"
        )
    if common.has_noisy_rows(spec) and spec.noise is NoiseKind.LAPLACE:
        differences.append(common.SPLIT_MEAN_SENTENCE)
    if spec.max_rows is not None or spec.max_groups is not None:
        differences.append(
            "Tumult picks the rows that stay by a hash, the same in every run: what their choice does to the result "
            "does not average out over runs."
        )
    if quantity is Quantity.QUANTILE and is_smooth:
        return [
            "Tumult's quantile counts all rows alike, so smooth weights cannot be expressed. The closest "
            "option is a bound on rows per user, MaxRowsPerID; plain Python has the smooth weights."
        ]
    if quantity is Quantity.QUANTILE:
        candidates_text = "from the intervals between values within the range"
        differences.append(f"Tumult draws by the exponential mechanism, {candidates_text}.")
    if quantity is Quantity.MODEL:
        differences.append(
            "Tumult trains no models. The code keeps the bound with pandas; the privacy is that of the learner you "
            "hand the rows to, which must count a user's rows together."
        )
    if quantity is Quantity.TASK_WEIGHTS:
        return [
            "Tumult has no weights per group. The closest option is a bound on tasks per user, MaxGroupsPerID; plain "
            "Python has the task weights."
        ]
    if quantity is Quantity.COEFFICIENTS:
        return [common.NO_WEIGHTS_SENTENCE.format(library="Tumult")]
    if spec.max_norm is not None:
        return [
            "Tumult has no bound on the norm of what a user adds to all groups. The closest option is the pair of "
            "bounds, MaxGroupsPerID with MaxRowsPerGroupPerID; plain Python has the norm."
        ]
    if quantity in GROUP_QUANTITIES:
        groups_sentence = (
            common.PUBLIC_GROUPS_SENTENCE
            if spec.selection is None
            else with_selection.SELECTED_GROUPS_SENTENCE
        )
        differences += [groups_sentence, common.describe_replacement(spec)]
    if quantity is Quantity.GROUP_SUMS:
        differences.append(
            "Tumult has no clamp for a user's total in a group. Totals are added up before the session, one row per "
            "user and group, which it then bounds: adding or removing a user adds or removes their rows."
        )
    if quantity is Quantity.GROUP_MEANS:
        differences += [] if spec.noise is NoiseKind.GAUSSIAN else [common.SPLIT_MEANS_SENTENCE]
    return differences
