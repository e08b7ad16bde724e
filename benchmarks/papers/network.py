"""The network of Huang et al. 2023 in NumPy: two convolutions and two parallel last layers, with clipped gradients.

The layers follow from the numbers of parameters in the paper's table 2. A 5 × 5 convolution to 16 channels, ReLU and
maxima over 2 × 2 pixels; the same to 32 channels; two last layers of 1,568 × 11 without intercept, whose outputs are
averaged. Only 11 outputs make up 17,248 parameters; the last one is never a class. Both convolutions keep the size of
their pictures.

Arrays are float32, as BLAS is twice as fast with them. Pictures have shape (records, 28, 28), maps (records, channels,
height, width).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Weights = dict[str, Array]
"""By name of the parameter; of a convolution (channels out, channels in × 25), of a last layer (features, outputs)."""

PARAMETERS_BY_LAYER = {
    "conv1": ("conv1", "bias1"),
    "conv2": ("conv2", "bias2"),
    "fc1": ("fc1",),
    "fc2": ("fc2",),
}
KERNEL, SIDE, CHANNELS, NUM_OUTPUTS = 5, 28, (16, 32), 11
NUM_FEATURES = CHANNELS[1] * (SIDE // 4) ** 2
BLOCK = 16
"""Records that are computed together: their arrays stay in the processor's cache."""


def initialise(rng: np.random.Generator, dtype: type = np.float32) -> Weights:
    """Draw all weights uniformly within ±1/√(inputs of a unit), as PyTorch does."""

    def draw(fan_in: int, *shape: int) -> Array:
        limit = 1.0 / np.sqrt(fan_in)
        return rng.uniform(-limit, limit, shape).astype(dtype)

    inputs = (KERNEL**2, CHANNELS[0] * KERNEL**2)
    return {
        "conv1": draw(inputs[0], CHANNELS[0], inputs[0]),
        "bias1": draw(inputs[0], CHANNELS[0], 1),
        "conv2": draw(inputs[1], CHANNELS[1], inputs[1]),
        "bias2": draw(inputs[1], CHANNELS[1], 1),
        "fc1": draw(NUM_FEATURES, NUM_FEATURES, NUM_OUTPUTS),
        "fc2": draw(NUM_FEATURES, NUM_FEATURES, NUM_OUTPUTS),
    }


def spread_patches(maps: Array) -> Array:
    """Return the 5 × 5 neighbourhood of every pixel, shape (records, channels × 25, pixels); zeros beyond the edge."""
    num_records, num_channels, height, width = maps.shape
    margin = KERNEL // 2
    padded = np.zeros((num_records, num_channels, height + 2 * margin, width + 2 * margin), maps.dtype)
    padded[:, :, margin:-margin, margin:-margin] = maps
    patches = np.empty((num_records, num_channels, KERNEL, KERNEL, height, width), maps.dtype)
    for i in range(KERNEL):
        for j in range(KERNEL):
            patches[:, :, i, j] = padded[:, :, i : i + height, j : j + width]
    return patches.reshape(num_records, num_channels * KERNEL**2, height * width)


def gather_patches(patches: Array, num_channels: int, side: int) -> Array:
    """Sum neighbourhoods back into pixels, the transpose of `spread_patches`; shape (records, channels, side, side)."""
    margin = KERNEL // 2
    patches_by_offset = patches.reshape(-1, num_channels, KERNEL, KERNEL, side, side)
    padded = np.zeros(
        (len(patches_by_offset), num_channels, side + 2 * margin, side + 2 * margin), patches.dtype
    )
    for i in range(KERNEL):
        for j in range(KERNEL):
            padded[:, :, i : i + side, j : j + side] += patches_by_offset[:, :, i, j]
    return padded[:, :, margin:-margin, margin:-margin]


def _list_corners(maps: Array) -> list[Array]:
    """Return views of the four pixels of every 2 × 2 square."""
    return [maps[:, :, i::2, j::2] for i in (0, 1) for j in (0, 1)]


def pool(maps: Array) -> Array:
    """Return the maxima over 2 × 2 squares, at least 0: ReLU and pooling in one step."""
    top_left, top_right, bottom_left, bottom_right = _list_corners(maps)
    maxima = np.maximum(np.maximum(top_left, top_right), np.maximum(bottom_left, bottom_right))
    return np.maximum(maxima, 0, out=maxima)


def unpool(gradients: Array, maxima: Array, maps: Array) -> Array:
    """Return the gradient at the pixels: each maximum above 0 passes its own to the first pixel that attains it."""
    result = np.empty_like(maps)
    is_open = maxima > 0
    for corner, target in zip(_list_corners(maps), _list_corners(result), strict=True):
        is_here = is_open & (corner == maxima)
        np.multiply(gradients, is_here, out=target)
        is_open &= ~is_here
    return result


@dataclass
class Pass:
    """What a forward pass keeps for the gradient: patches, maps and maxima of both convolutions, and logits."""

    patches: tuple[Array, Array]
    maps: tuple[Array, Array]
    maxima: tuple[Array, Array]
    logits: Array

    @property
    def features(self) -> Array:
        """Return the inputs of the last layers, shape (records, 1568)."""
        return self.maxima[1].reshape(len(self.logits), -1)


def run_forward(weights: Weights, pictures: Array) -> Pass:
    """Compute the logits of pictures, shape (records, 11), and what their gradient needs."""
    patches1 = spread_patches(pictures[:, None])
    maps1 = (weights["conv1"] @ patches1 + weights["bias1"]).reshape(-1, CHANNELS[0], SIDE, SIDE)
    maxima1 = pool(maps1)
    patches2 = spread_patches(maxima1)
    maps2 = (weights["conv2"] @ patches2 + weights["bias2"]).reshape(-1, CHANNELS[1], SIDE // 2, SIDE // 2)
    maxima2 = pool(maps2)
    logits = maxima2.reshape(len(pictures), -1) @ ((weights["fc1"] + weights["fc2"]) / 2)
    return Pass((patches1, patches2), (maps1, maps2), (maxima1, maxima2), logits)


def compute_probabilities(logits: Array) -> Array:
    """Return the probabilities of the outputs, shape of ``logits``."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def compute_record_gradients(
    weights: Weights, pictures: Array, labels: Array
) -> tuple[Weights, Array, Array]:
    """Compute the gradient of each record's loss.

    Returns:
        Gradients of the convolutions by parameter, records along the first axis; the inputs of the last layers, shape
        (records, 1568); and the gradients at the outputs of either of them, shape (records, 11). A last layer's
        gradient is the outer product of these two, so it is not built.
    """
    forward = run_forward(weights, pictures)
    residuals = compute_probabilities(forward.logits)
    residuals[np.arange(len(labels)), labels] -= 1
    residuals /= 2
    back = (residuals @ (weights["fc1"] + weights["fc2"]).T).reshape(forward.maxima[1].shape)
    deltas2 = unpool(back, forward.maxima[1], forward.maps[1]).reshape(len(labels), CHANNELS[1], -1)
    gradients = {
        "conv2": deltas2 @ forward.patches[1].transpose(0, 2, 1),
        "bias2": deltas2.sum(2, keepdims=True),
    }
    back = gather_patches(weights["conv2"].T @ deltas2, CHANNELS[0], SIDE // 2)
    deltas1 = unpool(back, forward.maxima[0], forward.maps[0]).reshape(len(labels), CHANNELS[0], -1)
    gradients |= {
        "conv1": deltas1 @ forward.patches[0].transpose(0, 2, 1),
        "bias1": deltas1.sum(2, keepdims=True),
    }
    return gradients, forward.features, residuals


def sum_clipped_gradients(
    weights: Weights,
    pictures: Array,
    labels: Array,
    clipped_layers: tuple[str, ...] = (),
    max_norm: float = np.inf,
) -> Weights:
    """Sum the gradients of all records, each with its norm over some layers clipped.

    Args:
        weights: Where the gradient is taken.
        pictures: Shape (records, 28, 28).
        labels: Their classes.
        clipped_layers: A record's gradient over all of these layers is scaled to norm ``max_norm`` at most. The others'
            gradients are summed as they are.
        max_norm: Largest norm.

    Returns:
        The sums, by parameter.
    """
    sums = {name: np.zeros_like(array) for name, array in weights.items()}
    clipped_names = {name for layer in clipped_layers for name in PARAMETERS_BY_LAYER[layer]}
    for start in range(0, len(labels), BLOCK):
        block = slice(start, start + BLOCK)
        gradients, features, residuals = compute_record_gradients(weights, pictures[block], labels[block])
        squares = np.zeros(len(residuals), features.dtype)
        head_squares = np.einsum("rf,rf->r", features, features) * np.einsum("ro,ro->r", residuals, residuals)
        for name in clipped_names:
            squares += (
                head_squares if name not in gradients else np.einsum("rij,rij->r", *[gradients[name]] * 2)
            )
        factors = np.minimum(1, max_norm / np.sqrt(np.maximum(squares, 1e-30))).astype(features.dtype)
        for name, total in sums.items():
            scales = factors if name in clipped_names else np.ones_like(factors)
            if name in gradients:
                total += np.tensordot(scales, gradients[name], 1)
            else:
                total += features.T @ (residuals * scales[:, None])
    return sums


def predict(weights: Weights, pictures: Array) -> Array:
    """Return the most likely class of each picture."""
    logits = [run_forward(weights, pictures[i : i + BLOCK]).logits for i in range(0, len(pictures), BLOCK)]
    return np.concatenate(logits)[:, :10].argmax(axis=1)
