"""Encoders: networks that take a tuple of observations and give one vector.

Everything is batch-first: images are (N, height, width, channels); only on a CPU the batch is last between the layers.
A layer computes in the dtype of its own weights, so casting an agent's weights is all that mixed precision takes.
"""

import math
from abc import abstractmethod
from functools import reduce
from typing import Any, NamedTuple, TypeGuard

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from planvec.agents.kernels import (
    batch_first_product,
    convolve,
    convolve_batch_last,
    convolve_images,
    convolve_tiled,
    convolved,
    join,
    look_up_batch_last,
    on_cpu,
    own_gradient,
    tables,
)
from planvec.data.tiles import Tiled
from planvec.errors import InputError

Observation = Any  # a pytree of arrays with the same leading axis


class Encoder(eqx.Module):
    """A network from a tuple of observations, each batched, to vectors (N, features) in float32."""

    @abstractmethod
    def __call__(self, observations: tuple[Observation, ...]) -> Array: ...


def kaiming(key: Array, shape: tuple[int, ...], fan: int = -1) -> Array:
    """Normal weights of variance 2 / fan-out (`fan` −1) or 2 / fan-in (−2), for a kernel (…, inputs, outputs)."""
    return jax.random.normal(key, shape) * math.sqrt(2 / (math.prod(shape[:-2]) * shape[fan]))


class Linear(eqx.Module):
    weight: Array  # (inputs, outputs)
    bias: Array  # (outputs,)

    def __init__(self, inputs: int, outputs: int, fan: int = -1, *, key: Array):
        self.weight = kaiming(key, (inputs, outputs), fan)
        self.bias = jnp.zeros(outputs)

    def __call__(self, x: Array, out: Any = None) -> Array:
        """`out`: the dtype of the result; the weights' own unless given."""
        return _product(x.astype(self.weight.dtype), self.weight, out or self.weight.dtype) + self.bias


@own_gradient(2)
def _product(x: Array, weight: Array, out: Any) -> Array:
    """(…, inputs) · (inputs, outputs), in the dtype `out`; but gradients are computed in the weights' own."""
    return jnp.matmul(x, weight, preferred_element_type=out)


def _product_pull(out: Any, saved: tuple[Array, Array], y: Array) -> tuple[Array, Array]:
    x, weight = saved
    y = y.astype(weight.dtype)
    return y @ weight.T, x.reshape(-1, x.shape[-1]).T @ y.reshape(-1, y.shape[-1])


_product.defvjp(lambda x, weight, out: (_product(x, weight, out), (x, weight)), _product_pull)


class Conv(eqx.Module):
    weight: Array  # (kernel, kernel, inputs, outputs)
    bias: Array  # (outputs,)
    stride: int = eqx.field(static=True)
    padding: int = eqx.field(static=True)

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, padding: int, *, key: Array):
        self.weight = kaiming(key, (kernel, kernel, inputs, outputs))
        self.bias = jnp.zeros(outputs)
        self.stride = stride
        self.padding = padding

    def __call__(self, x: Array) -> Array:
        return convolve(x.astype(self.weight.dtype), self.weight, self.stride, self.padding) + self.bias


class ConvShape(NamedTuple):
    channels: int
    kernel: int
    stride: int
    padding: int


CONVOLUTIONS = (  # 33×30 → 11×10 → 6×5 → 3×3 → 3×3 (appendix A)
    ConvShape(channels=16, kernel=3, stride=3, padding=0),
    ConvShape(channels=32, kernel=5, stride=2, padding=2),
    ConvShape(channels=64, kernel=3, stride=2, padding=1),
    ConvShape(channels=64, kernel=3, stride=1, padding=1),
)


VIEW_CONVOLUTIONS = (  # 60×80 → 12×16 → 6×8 → 3×4 → 3×4; the first two see tiles, one matrix product each
    ConvShape(channels=16, kernel=5, stride=5, padding=0),
    ConvShape(channels=32, kernel=2, stride=2, padding=0),
    ConvShape(channels=64, kernel=3, stride=2, padding=1),
    ConvShape(channels=64, kernel=3, stride=1, padding=1),
)


LARGE = 256  # images; on a CPU, from here on it pays to put the batch last: it takes longer to compile
JOINT = 1 << 17  # rows of a table of what any tiles of several pictures become together
GREY = 32  # pixels are divided by this, unless told; the sprites of the crafting world are dim and sparse


class ImageEncoder(Encoder):
    """Images concatenated on channels → convolutions with ReLU → flattened → one linear layer."""

    convs: tuple[Conv, ...]
    linear: Linear
    shape: tuple[int, int, int] = eqx.field(static=True)  # height, width, channels of one image
    grey: float = eqx.field(static=True)

    def __init__(
        self,
        shape: tuple[int, int, int],
        observations: int,
        features: int,
        layers: tuple[ConvShape, ...] = CONVOLUTIONS,
        grey: float = GREY,
        *,
        key: Array,
    ):
        *conv_keys, linear_key = jax.random.split(key, len(layers) + 1)
        height, width, colours = shape
        self.shape = (height, width, colours)
        self.grey = grey
        channels = colours * observations
        convs = []
        for layer, conv_key in zip(layers, conv_keys, strict=True):
            convs.append(Conv(channels, *layer, key=conv_key))
            height, width = (convolved(side, *layer[1:]) for side in (height, width))
            channels = layer.channels
        self.convs = tuple(convs)
        self.linear = Linear(height * width * channels, features, key=linear_key)

    def __call__(self, observations: tuple[Array | Tiled, ...]) -> Array:
        """Images (N, height, width, channels) of 0…255, or made of tiles → features (N, features)."""
        for image in observations:
            if image.shape[1:] != self.shape:
                raise InputError(f"this agent sees images of shape {self.shape}; got {image.shape[1:]}")
        batch_last = on_cpu() and observations[0].shape[0] >= LARGE
        if self._sees_tiles(observations):
            x = self._tiled_batch_last(observations) if batch_last else self._tiled(observations)
        else:
            images = tuple(seen.draw() if isinstance(seen, Tiled) else seen for seen in observations)
            x = self._images_batch_last(images) if batch_last else self._images(images)
        return self._others_batch_last(x) if batch_last else self._others(x)

    def _sees_tiles(self, observations: tuple[Array | Tiled, ...]) -> TypeGuard[tuple[Tiled, ...]]:
        """Whether the first layer sees all observations tile by tile, and tiles of one atlas."""
        first = self.convs[0]
        tiled = [seen for seen in observations if isinstance(seen, Tiled)]
        if first.padding or len(tiled) < len(observations):
            return False
        atlas, *others = {seen.atlas for seen in tiled}
        return not others and atlas.pictures.shape[1:3] == first.weight.shape[:2] == (first.stride,) * 2

    # The first layer, (N, height, width, outputs), and the others.

    def _images(self, images: tuple[Array, ...]) -> Array:
        first = self.convs[0]
        return jax.nn.relu(first(jnp.concatenate(images, axis=-1).astype(first.weight.dtype) / self.grey))

    def _tiled(self, seen: tuple[Tiled, ...]) -> Array:
        first = self.convs[0]
        tiles = tuple(picture.tiles for picture in seen)
        return jax.nn.relu(convolve_tiled(first.weight, tiles, seen[0].atlas, self.grey) + first.bias)

    def _others(self, x: Array) -> Array:
        for conv in self.convs[1:]:
            x = jax.nn.relu(conv(x))
        return self.linear(x.reshape(len(x), -1), out=jnp.float32)

    # The same with the batch last between the layers, (height, width, outputs, N): on a CPU two thirds faster.

    def _images_batch_last(self, images: tuple[Array, ...]) -> Array:
        first = self.convs[0]
        return jax.nn.relu(convolve_images(images, first.weight, self.grey) + first.bias[:, None])

    def _others_batch_last(self, x: Array) -> Array:
        for conv in self.convs[1:]:
            x = jax.nn.relu(convolve_batch_last(x, conv.weight, conv.stride, conv.padding) + conv.bias[:, None])
        x = batch_first_product(self.linear.weight, x.reshape(-1, x.shape[-1]))
        return x.astype(jnp.float32) + self.linear.bias

    def _tiled_batch_last(self, seen: tuple[Tiled, ...]) -> Array:
        """Where pictures and tiles are few, all that can become of any tiles is known beforehand."""
        first = self.convs[0]
        atlas = seen[0].atlas
        parts = zip(tables(first.weight, len(seen), atlas, self.grey), seen, strict=True)
        parts = [(table, jnp.moveaxis(picture.tiles, 0, -1)) for table, picture in parts]
        if len(atlas) ** len(parts) > JOINT:
            return jax.nn.relu(sum(look_up_batch_last(*part) for part in parts) + first.bias[:, None])
        table, numbers = reduce(join, parts)
        return look_up_batch_last(jax.nn.relu(table + first.bias), numbers)


UNIT = 0.03  # metres by which positions of objects are divided


class VectorEncoder(Encoder):
    """Vectors end to end → linear layers with ReLU between them. Without layers: just the vectors."""

    layers: tuple[Linear, ...]
    unit: float = eqx.field(static=True)  # in metres

    def __init__(self, sizes: tuple[int, ...], unit: float = UNIT, *, key: Array):
        """`sizes`: of all vectors together, then of each layer's output."""
        self.unit = unit
        keys = jax.random.split(key, len(sizes))
        self.layers = tuple(Linear(a, b, key=k) for a, b, k in zip(sizes[:-1], sizes[1:], keys, strict=False))

    def __call__(self, observations: tuple[Array, ...]) -> Array:
        x = jnp.concatenate(observations, axis=-1) / self.unit
        for i, layer in enumerate(self.layers):
            x = layer(jax.nn.relu(x) if i else x, out=jnp.float32)
        return x


OF_IMAGES = 256  # numbers that are made of images …
OF_WAYPOINTS = 256  # … and of waypoints
UNITS = np.array([4, 4, 1], np.float32)  # waypoints are divided by this: metres, so that flags count as much as places


class ViewEncoder(Encoder):
    """Images → convolutions, waypoints → two linear layers; both side by side → ReLU → one linear layer."""

    images: ImageEncoder
    waypoints: VectorEncoder
    linear: Linear

    def __init__(self, image: tuple[int, int, int], waypoints: int, observations: int, features: int, *, key: Array):
        image_key, waypoints_key, linear_key = jax.random.split(key, 3)
        self.images = ImageEncoder(image, observations, OF_IMAGES, VIEW_CONVOLUTIONS, grey=255, key=image_key)
        self.waypoints = VectorEncoder(
            (3 * waypoints * observations, OF_WAYPOINTS, OF_WAYPOINTS), unit=1.0, key=waypoints_key
        )
        self.linear = Linear(OF_IMAGES + OF_WAYPOINTS, features, key=linear_key)

    def __call__(self, observations: tuple[dict[str, Array], ...]) -> Array:
        """{"image": (N, height, width, channels), "waypoints": (N, waypoints, 3)} → features (N, features)."""
        places = tuple((seen["waypoints"] / UNITS).reshape(len(seen["waypoints"]), -1) for seen in observations)
        both = (self.images(tuple(seen["image"] for seen in observations)), self.waypoints(places))
        return self.linear(jax.nn.relu(jnp.concatenate(both, axis=-1)), out=jnp.float32)
