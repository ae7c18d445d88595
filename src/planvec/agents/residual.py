"""A policy that finds its way over a board: tiles → residual blocks at full resolution, the plan read in each of them
→ what a few queries attend to → the head."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from planvec.agents.encoders import GREY, Conv, Linear, Observation
from planvec.agents.kernels import convolve_tiled
from planvec.agents.policies import Head, Policy
from planvec.data.tiles import Tiled

QUERIES = 8
OFFSETS = (  # rows and columns from where a share of the channels comes
    *((0, 0), (0, 1), (1, 0), (0, -1), (-1, 0), (1, 1), (1, -1), (-1, 1), (-1, -1)),
    *((0, 3), (3, 0), (0, -3), (-3, 0)),
)


def shift(x: Array, offsets: tuple[tuple[int, int], ...] = OFFSETS) -> Array:
    """Each share of the channels moved by an offset of its own, zeros coming in over the edge. (N, H, W, channels)"""
    _, height, width, channels = x.shape
    shares = np.array_split(np.arange(channels), len(offsets))
    moved = []
    for (down, right), share in zip(offsets, shares, strict=True):
        part = x[..., share[0] : share[-1] + 1]
        low_high = ((0, 0, 0), (down, -down, 0), (right, -right, 0), (0, 0, 0))  # negative: cut off
        moved.append(lax.pad(part, jnp.zeros((), x.dtype), low_high))
    return jnp.concatenate(moved, axis=-1)


class ShiftBlock(eqx.Module):
    """x + W₂·relu(W₁·shift(relu(x)) + V·plan)"""

    inner: Linear
    outer: Linear
    read: Linear

    def __init__(self, channels: int, hidden: int, plan: int, *, key: Array):
        a, b, c = jax.random.split(key, 3)
        self.inner = Linear(channels, hidden, fan=-2, key=a)
        outer = Linear(hidden, channels, fan=-2, key=b)
        self.outer = eqx.tree_at(lambda layer: layer.weight, outer, 0.3 * outer.weight)
        self.read = Linear(plan, hidden, key=c)

    def __call__(self, x: Array, plan: Array) -> Array:
        seen = shift(jax.nn.relu(x))
        return x + self.outer(jax.nn.relu(self.inner(seen) + self.read(plan)[:, None, None, :]))


class ConvBlock(eqx.Module):
    inner: Array
    outer: Array
    bias: Array
    bias2: Array
    read: Linear

    def __init__(self, channels: int, hidden: int, plan: int, *, key: Array):
        a, b, c = jax.random.split(key, 3)
        self.inner = jax.random.normal(a, (3, 3, channels, hidden)) * (2 / 9 / channels) ** 0.5
        self.outer = 0.3 * jax.random.normal(b, (3, 3, hidden, channels)) * (2 / 9 / hidden) ** 0.5
        self.bias, self.bias2 = jnp.zeros(hidden), jnp.zeros(channels)
        self.read = Linear(plan, hidden, key=c)

    def __call__(self, x: Array, plan: Array) -> Array:
        def conv(x, w):
            return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

        h = jax.nn.relu(conv(jax.nn.relu(x), self.inner) + (self.read(plan) + self.bias)[:, None, None, :])
        return x + conv(h, self.outer) + self.bias2


class PlanReader(eqx.Module):
    """tanh(W·plan): what is large in a plan looks as what is small, so that sums look as their parts. In float32."""

    linear: Linear
    keeps_precision = True

    def __call__(self, plan: Array) -> Array:
        product = jnp.matmul(plan, self.linear.weight, precision=lax.Precision.HIGHEST)
        return jnp.tanh(product + self.linear.bias)


class ResidualPolicy(Policy):
    """π for images made of tiles."""

    FEATURES = 128  # of its last hidden layer

    tiles: Conv
    reader: PlanReader
    blocks: tuple[Any, ...]
    queries: Linear
    layers: tuple[Linear, Linear]
    head: Head

    def __init__(
        self,
        channels: tuple[int, int],
        plan: int,
        head: Head,
        kind: Any = ShiftBlock,
        width: int = 64,
        hidden: int = 128,
        depth: int = 8,
        read: int = 64,
        *,
        key: Array,
    ):
        side, colours = channels
        keys = jax.random.split(key, depth + 5)
        self.tiles = Conv(colours, width, side, side, 0, key=keys[0])
        self.reader = PlanReader(Linear(plan, read, fan=-2, key=keys[1]))
        self.blocks = tuple(kind(width, hidden, read, key=k) for k in keys[5:])
        self.queries = Linear(width, QUERIES, fan=-2, key=keys[2])
        sizes = (QUERIES * width, 256, self.FEATURES)
        first, second = (Linear(a, b, key=k) for a, b, k in zip(sizes, sizes[1:], keys[3:5], strict=False))
        self.layers = first, second
        self.head = head

    def hidden(self, observations: tuple[Observation, ...], plan: Array | None = None) -> Array:
        [seen] = observations
        first = self.tiles
        if isinstance(seen, Tiled):
            x = convolve_tiled(first.weight, (seen.tiles,), seen.atlas, GREY) + first.bias
        else:
            x = first(seen.astype(first.weight.dtype) / GREY)
        read = self.reader(plan).astype(x.dtype)
        for block in self.blocks:
            x = block(x, read)
        x = jax.nn.relu(x).reshape(len(x), -1, x.shape[-1])
        attention = jax.nn.softmax(self.queries(x, out=jnp.float32), axis=1).astype(x.dtype)
        x = jnp.einsum("npq,npc->nqc", attention, x).reshape(len(x), -1)
        for layer in self.layers:
            x = jax.nn.relu(layer(x))
        return x
