"""A linear classifier under a bound, trained in NumPy: the program, and hints for other libraries.

Names of Opacus and jax-privacy were read in their documentation and source on 2026-11-22:
https://opacus.ai/api/privacy_engine.html, github.com/google-deepmind/jax_privacy (clipping.py, batch_selection.py).
"""

from __future__ import annotations

from dpcore.code import common, templates
from dpcore.code.choice import Choice, Code
from dpcore.code.quote import python_literal, python_text
from dpcore.common.privacy import Neighbours

LIBRARY = "plain Python (pandas, NumPy)"
NEEDS = "pip install numpy pandas"
RELATIONS = {
    Neighbours.ADD_OR_REMOVE_USER: common.ADD_OR_REMOVE,
    Neighbours.REPLACE_USER: "Neighbouring data differ by one user, replaced by another with all their rows.",
    Neighbours.REPLACE_VALUES: "Neighbouring data differ in one user's values; everybody's number of rows is public.",
}
DIFFERENCES = (
    "The noise comes from NumPy's floating-point generator: right for trying out, but open to attacks on floating "
    "point. To publish a model take the page's tab Release, which draws it with OpenDP, or a library below.",
    "Opacus: a row's gradient is clipped by max_grad_norm, and noise_multiplier is the noise over that norm; it knows "
    "no users. It protects a user where every user has one row, or where a user's rows are collated into one sample, "
    "whose gradient is then the user's mean: smooth weights with a bound of 1.",
    "jax-privacy: clipped_grad(l2_clip_norm=..., keep_batch_dim=False) clips the gradient of a user whose rows "
    "stand along a second axis, and batch_selection.UserSelectionStrategy(examples_per_user_per_batch=h) bounds "
    "them. Neither weights rows by min(h, s) / s; multiply the losses by that.",
)
NOWHERE = "{library} trains no models; plain Python does, in NumPy."


def write(choice: Choice) -> Code:
    """Write the program in plain Python."""
    training = choice.training
    assert training is not None
    numbers = ", ".join(f"{python_text(name)}: ({low!r}, {high!r})" for name, (low, high) in training.numbers)
    levels = ", ".join(
        f"{python_text(name)}: {python_literal(level_names)}" for name, level_names in training.levels
    )
    template = "classifier.py" if training.rule is None else "classifier_by_rule.py"
    body = templates.render_program(
        template, choice, training=training, numbers=f"{{{numbers}}}", levels=f"{{{levels}}}"
    )
    needs = common.with_readers(NEEDS, choice)
    return common.assemble(choice, LIBRARY, RELATIONS[choice.neighbours], DIFFERENCES, body, needs)
