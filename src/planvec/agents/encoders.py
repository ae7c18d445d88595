"""Encoders: networks that take a tuple of observations and give one vector.

Everything is batch-first: images are (N, height, width, channels); only on a CPU the batch is last between the layers.
A layer computes in the dtype of its own weights, so casting an agent's weights is all that mixed precision takes.
"""

import math
from abc import abstractmethod
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

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
        x = x.astype(self.weight.dtype)
        return jnp.matmul(x, self.weight, preferred_element_type=out or self.weight.dtype) + self.bias


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


def convolve(x: Array, weight: Array, stride: int, padding: int) -> Array:
    """(N, H, W, inputs) * (k, k, inputs, outputs) → (N, H', W', outputs), as matrix products.

    On images this small they beat XLA's own convolution: by half on a GPU, where several models trained together
    become one batched product instead of a grouped convolution, and many times over inside a scan on the CPU.
    """
    tiled = stride == weight.shape[0] and padding == 0
    return convolve_tiles(x, weight) if tiled else convolve_rows(x, weight, stride, padding)


def convolve_tiles(x: Array, weight: Array) -> Array:
    """Stride = kernel: every output sees its own tile of the image, so one matrix product over tiles."""
    n, height, width, channels = x.shape
    k = weight.shape[0]
    rows, columns = height // k, width // k
    tiles = x[:, : rows * k, : columns * k].reshape(n, rows, k, columns, k, channels).transpose(0, 1, 3, 2, 4, 5)
    return tiles.reshape(n, rows, columns, -1) @ weight.reshape(k * k * channels, -1)


def convolve_rows(x: Array, weight: Array, stride: int, padding: int) -> Array:
    """One matrix product over the k input rows of every output row, the kernel written out along the width.

    On images this narrow, multiplying zeros costs less than gathering patches and scattering their gradients.
    """
    n, height, width, _ = x.shape
    k, outputs = weight.shape[0], weight.shape[-1]
    rows, columns = (convolved(size, k, stride, padding) for size in (height, width))
    x = jnp.pad(x, ((0, 0), (padding, padding), (0, 0), (0, 0)))
    strips = jnp.stack([x[:, i : i + stride * (rows - 1) + 1 : stride] for i in range(k)], axis=2)
    spread = jnp.einsum("lwx,klio->kwixo", _taps(k, width, columns, stride, padding).astype(x.dtype), weight)
    flat = strips.reshape(n * rows, -1) @ spread.reshape(-1, columns * outputs)
    return flat.reshape(n, rows, columns, outputs)


def convolve_batch_last(x: Array, weight: Array, stride: int, padding: int) -> Array:
    """(H, W, inputs, N) * (k, k, inputs, outputs) → (H', W', outputs, N), as matrix products for a CPU.

    The window that some outputs see is a slice of long rows here: cheap to copy, and to add gradients to. It ends at
    the border, where the kernel is cut as well: no padding is multiplied.
    """
    height, width, _, n = x.shape
    k, outputs = weight.shape[0], weight.shape[-1]
    rows, columns = (convolved(size, k, stride, padding) for size in (height, width))
    beside = max(1, min(WIDE // outputs, k // stride))  # places of one product: few, so few of its weights are zeros
    zero = jnp.zeros((), weight.dtype)

    def window(first: int, last: int, size: int) -> tuple[int, int]:
        """What these outputs see of a side."""
        return max(stride * first - padding, 0), min(stride * last - padding + k, size)

    def place(output: int, begin: int, end: int) -> tuple[int, int, int]:
        """The zeros around the kernel, or if negative its taps to cut, for this output in a window."""
        before = stride * output - padding - begin
        return before, end - begin - k - before, 0

    def row(i: int) -> Array:
        top, bottom = window(i, i, height)
        strip, vertical = x[top:bottom], place(i, top, bottom)

        def product(some: range) -> Array:
            left, right = window(some[0], some[-1], width)
            edges = [(vertical, place(j, left, right), (0, 0, 0), (0, 0, 0)) for j in some]
            kernels = jnp.stack([lax.pad(weight, zero, edge) for edge in edges], axis=3)
            seen = strip[:, left:right].reshape(1, -1, n)
            return _products(kernels.reshape(seen.shape[1], -1), seen).reshape(-1, outputs, n)

        return jnp.concatenate([product(range(columns)[j : j + beside]) for j in range(0, columns, beside)])

    return jnp.stack([row(i) for i in range(rows)])


def convolve_images(images: tuple[Array, ...], weight: Array, grey: float) -> Array:
    """Images (N, H, W, channels) / grey, side by side on channels, stride = kernel → (H', W', outputs, N), on a CPU."""
    k, outputs = weight.shape[0], weight.shape[-1]
    n, height, width, channels = images[0].shape
    rows, columns = height // k, width // k

    def cut(image: Array) -> Array:
        tiles = image[:, : rows * k, : columns * k].reshape(n, rows, k, columns, k * channels)
        return tiles.transpose(1, 3, 0, 2, 4).reshape(rows * columns, n, -1)

    # In a loop, so that XLA has the images drawn before it turns them; otherwise it draws every number on its own.
    tiles = lax.map(cut, jnp.stack(images))
    seen = jnp.concatenate([tile.swapaxes(1, 2) for tile in tiles], axis=1).astype(weight.dtype) / grey
    kernel = weight.reshape(k, k, len(images), channels, outputs).transpose(2, 0, 1, 3, 4)
    return _products(kernel.reshape(-1, outputs), seen).reshape(rows, columns, outputs, n)


# The products on a CPU. Value and gradients each have the one of several equal forms that XLA computes fastest there.


@jax.custom_vjp
def _products(weight: Array, x: Array) -> Array:
    """(inputs, outputs) · (batch, inputs, N) → (batch, outputs, N)"""
    return lax.dot_general(_spread(weight, x), x, (((1,), (1,)), ((0,), (0,))))


def _spread(weight: Array, x: Array) -> Array:
    return jnp.broadcast_to(weight, (len(x), *weight.shape))


def _products_pull(saved: tuple[Array, Array], y: Array) -> tuple[Array, Array]:
    weight, x = saved
    of_weight = lax.dot_general(x, y, (((2,), (2,)), ((0,), (0,)))).sum(0)
    return of_weight, _spread(weight, x) @ y


_products.defvjp(lambda weight, x: (_products(weight, x), (weight, x)), _products_pull)


@jax.custom_vjp
def _batch_first_product(weight: Array, x: Array) -> Array:
    """(inputs, outputs) · (inputs, N) → (N, outputs)"""
    return lax.dot_general(x, weight, (((0,), (0,)), ((), ())))


def _batch_first_pull(saved: tuple[Array, Array], y: Array) -> tuple[Array, Array]:
    weight, x = saved
    return x @ y, lax.dot_general(weight, y, (((1,), (1,)), ((), ())))


_batch_first_product.defvjp(lambda weight, x: (_batch_first_product(weight, x), (weight, x)), _batch_first_pull)


def convolved(size: int, kernel: int, stride: int, padding: int) -> int:
    """The side of a convolution's output."""
    return (size + 2 * padding - kernel) // stride + 1


def _taps(kernel: int, inputs: int, outputs: int, stride: int, padding: int) -> np.ndarray:
    """(kernel, inputs, outputs): 1 where output x sees input w through this tap, else 0."""
    tap, w, x = np.ogrid[:kernel, :inputs, :outputs]
    return (w == stride * x + tap - padding).astype(np.float32)


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


WIDE = 64  # outputs of a matrix product; narrower ones are slow on a CPU
LARGE = 256  # images; on a CPU, from here on it pays to put the batch last: it takes longer to compile
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
        height, width, channels = shape[0], shape[1], shape[2] * observations
        convs = []
        for layer, conv_key in zip(layers, conv_keys, strict=True):
            convs.append(Conv(channels, *layer, key=conv_key))
            height, width = (convolved(side, *layer[1:]) for side in (height, width))
            channels = layer.channels
        self.convs = tuple(convs)
        self.linear = Linear(height * width * channels, features, key=linear_key)
        self.shape, self.grey = tuple(shape), grey

    def __call__(self, observations: tuple[Array, ...]) -> Array:
        """Images (N, height, width, channels) of 0…255 → features (N, features)."""
        for image in observations:
            if image.shape[1:] != self.shape:
                raise InputError(f"this agent sees images of shape {self.shape}; got {image.shape[1:]}")
        batch_last = jax.default_backend() == "cpu" and len(observations[0]) >= LARGE
        return (self._batch_last if batch_last else self._batch_first)(observations)

    def _batch_first(self, images: tuple[Array, ...]) -> Array:
        x = jnp.concatenate(images, axis=-1).astype(self.linear.weight.dtype) / self.grey
        for conv in self.convs:
            x = jax.nn.relu(conv(x))
        return self.linear(x.reshape(len(x), -1), out=jnp.float32)

    def _batch_last(self, images: tuple[Array, ...]) -> Array:
        """The same with the batch last between the layers: on a CPU two thirds faster."""
        first, *others = self.convs
        x = jax.nn.relu(convolve_images(images, first.weight, self.grey) + first.bias[:, None])
        for conv in others:
            x = jax.nn.relu(convolve_batch_last(x, conv.weight, conv.stride, conv.padding) + conv.bias[:, None])
        x = _batch_first_product(self.linear.weight, x.reshape(-1, x.shape[-1]))
        return x.astype(jnp.float32) + self.linear.bias


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


OF_IMAGES, OF_WAYPOINTS = 256, 256  # numbers that are made of each
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
