"""The parts of the paper's network, of which some may be personal: each owner fits these for itself.

Source: Huang et al. 2023, section 4.1.3 and table 2.
"""

from __future__ import annotations

from dpcore.common.parameters import Option

SIZE_BY_LAYER = {"conv1": 416, "conv2": 12_832, "fc1": 17_248, "fc2": 17_248}
"""Parameters of each layer. The last two stand side by side, and the network's output is their average."""
NUM_PARAMETERS = sum(SIZE_BY_LAYER.values())


class PersonalPart(Option):
    """The layers that are personal; the second of the two last layers is always shared, as in the paper."""

    NOTHING = "none", "Nothing"
    FIRST = "conv1", "First layer (416)"
    SECOND = "conv2", "Second layer (12,832)"
    FIRST_TWO = "conv1+conv2", "First two layers (13,248)"
    LAST = "fc1", "One last layer (17,248)"
    FIRST_AND_LAST = "conv1+fc1", "First and last (17,664)"
    SECOND_AND_LAST = "conv2+fc1", "Second and last (30,080)"
    ALL_BUT_ONE = "conv1+conv2+fc1", "All but one last (30,496)"

    @property
    def layers(self) -> tuple[str, ...]:
        """Return the names of its layers, keys of `SIZE_BY_LAYER`."""
        return () if self is PersonalPart.NOTHING else tuple(self.value.split("+"))

    @property
    def size(self) -> int:
        """Return the number of its parameters."""
        return sum(SIZE_BY_LAYER[layer] for layer in self.layers)
