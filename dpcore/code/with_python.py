"""The release in plain Python: pandas and NumPy for weights and caps, OpenDP for the noise.

OpenDP's constructors (``make_laplace``, ``make_gaussian``, ``make_noisy_max``, ``binary_search_param``) were checked
against opendp 0.16.0, which the tests run (2026-11-21):
https://docs.opendp.org/en/v0.16.0/api/python/opendp.measurements.html
"""

from __future__ import annotations

from dpcore.code import common, with_selection
from dpcore.code.release_noise import find_release_noise
from dpcore.code.release_spec import GROUP_QUANTITIES, Code, Quantity, ReleaseSpec
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Neighbours
from dpcore.common.programs import Program, find_exact_sigma

LIBRARY_NAME = "plain Python (pandas, NumPy; noise by OpenDP 0.16)"
REQUIREMENTS = "pip install 'opendp>=0.16,<0.17' pandas"
REPLACE_SENTENCE = "Neighbouring data differ in one user's values; everybody's number of rows is public."
REPLACE_LABELS_SENTENCE = (
    "Neighbouring data differ in the labels of one user. The features, whose rows they are, and the weights C are "
    "taken as public: this protects labels, and nothing else."
)
NUM_CANDIDATES = 2000


def write_program(spec: ReleaseSpec) -> Code:
    """Write the program of a release in plain Python; for a classifier, the one that trains it."""
    if spec.quantity is Quantity.CLASSIFIER:
        return _write_classifier(spec)
    if spec.selection is not None:
        return with_selection.write_program(spec, Program.PYTHON, LIBRARY_NAME, REQUIREMENTS)
    relation_sentence = REPLACE_SENTENCE if spec.has_public_counts else common.ADD_OR_REMOVE_SENTENCE
    relation_sentence = (
        REPLACE_LABELS_SENTENCE if spec.quantity is Quantity.COEFFICIENTS else relation_sentence
    )
    differences = [common.describe_clamped_mean(spec)]
    if spec.quantity is Quantity.MODEL:
        differences.append(
            "The code only applies the bound; the learner that gets the rows must provide the privacy. It must count a "
            "user's rows together (user-level DP, or group privacy for MAX_ROWS)."
        )
    if spec.quantity is Quantity.QUANTILE:
        candidates_text = f"{NUM_CANDIDATES:,} values laid evenly between the ends of the base"
        differences.append(f"The answer is picked from {candidates_text}.")
    if spec.quantity in GROUP_QUANTITIES:
        differences += [common.PUBLIC_GROUPS_SENTENCE, common.describe_replacement(spec)]
    if spec.quantity is Quantity.TASK_WEIGHTS:
        differences.append(
            "The list of tasks, their sizes and the number of users must be public numbers. The noise covers weighted "
            "sums whose entries lie in [-1, 1]; here every entry is 1, which counts users."
        )
    if spec.quantity is Quantity.COEFFICIENTS:
        differences.append(
            "The weights C are a file: Downloads, C. They need a residual variance that you entered: one that was "
            "computed from the labels puts the labels into C. C has a line for each complete row, in the order of the "
            "data. In private data every row with a user and all features counts. If labels were missing when C was "
            "made, the program refuses C: fill these labels, or remove their rows, and compute C again."
        )
    sigma = None
    if spec.noise is NoiseKind.GAUSSIAN and spec.delta is not None:
        sigma = find_exact_sigma(spec.epsilon, spec.delta)
    template_values = {"sigma": sigma, "noise": find_release_noise(spec, Program.PYTHON)}
    body_text = common.render_program("with_python.py", spec, candidates=NUM_CANDIDATES, **template_values)
    requirements_text = common.add_readers(REQUIREMENTS, spec)
    return common.assemble_code(
        spec, LIBRARY_NAME, relation_sentence, differences, body_text, requirements_text
    )


_CLASSIFIER_LIBRARY = "plain Python (pandas, NumPy)"
_CLASSIFIER_REQUIREMENTS = "pip install numpy pandas"
_SENTENCE_BY_RELATION = {
    Neighbours.ADD_OR_REMOVE_USER: common.ADD_OR_REMOVE_SENTENCE,
    Neighbours.REPLACE_USER: "Neighbouring data differ by one user, replaced by another with all their rows.",
    Neighbours.REPLACE_VALUES: REPLACE_SENTENCE,
}
_CLASSIFIER_DIFFERENCES = (
    "The noise comes from NumPy's floating-point generator: right for trying out, but open to attacks on floating "
    "point. To publish a model take the page's tab Release, which draws it with OpenDP, or a library below.",
    "Opacus: a row's gradient is clipped by max_grad_norm, and noise_multiplier is the noise over that norm; it knows "
    "no users. It protects a user if every user has one row, or if a user's rows are collated into one sample. The "
    "gradient of this sample is the user's mean: smooth weights with a bound of 1.",
    "jax-privacy: clipped_grad(l2_clip_norm=..., keep_batch_dim=False) clips the gradient of a user whose rows "
    "stand along a second axis, and batch_selection.UserSelectionStrategy(examples_per_user_per_batch=h) bounds "
    "them. To weight rows by min(h, s) / s, multiply their losses by it.",
)


def _write_classifier(spec: ReleaseSpec) -> Code:
    """Write the program that trains a linear classifier, in plain Python."""
    training = spec.training
    assert training is not None
    number_ranges_literal = ", ".join(
        f"{common.quote_python_text(column_name)}: ({range_lower!r}, {range_upper!r})"
        for column_name, (range_lower, range_upper) in training.number_ranges
    )
    levels_literal = ", ".join(
        f"{common.quote_python_text(column_name)}: {common.write_python_literal(level_names)}"
        for column_name, level_names in training.category_levels
    )
    template_name = "classifier.py" if training.rule is None else "classifier_by_rule.py"
    literals_by_name = {"numbers": f"{{{number_ranges_literal}}}", "levels": f"{{{levels_literal}}}"}
    body_text = common.render_program(template_name, spec, training=training, **literals_by_name)
    requirements_text = common.add_readers(_CLASSIFIER_REQUIREMENTS, spec)
    return common.assemble_code(
        spec,
        _CLASSIFIER_LIBRARY,
        _SENTENCE_BY_RELATION[spec.neighbours],
        _CLASSIFIER_DIFFERENCES,
        body_text,
        requirements_text,
    )
