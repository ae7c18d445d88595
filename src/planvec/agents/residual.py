"""A policy that finds its way over a board: tiles → residual blocks at full resolution, the plan read in each of them
→ what a few queries attend to → the head."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array, lax

from planvec.agents.encoders import GREY, Conv, Linear, Observation, kaiming
from planvec.agents.kernels import convolve, convolve_tiled
from planvec.agents.policies import Head, Policy
from planvec.data.tiles import Tiled

QUERIES = 8  # of the attention over all places
TEMPER = 0.3  # blocks begin as small corrections


class Block(eqx.Module):
    """x + W₂ * relu(W₁ * relu(x + V·plan))

    The plan comes in where an activation is computed anyway, and its layer's is the only bias: on an accelerator each
    further sum over all places would be a pass through memory.
    """

    read: Linear
    inner: Array  # (3, 3, channels, channels)
    outer: Array  # (3, 3, channels, channels)

    def __init__(self, channels: int, plan: int, *, key: Array):
        inner_key, outer_key, read_key = jax.random.split(key, 3)
        self.read = Linear(plan, channels, key=read_key)
        self.inner = kaiming(inner_key, (3, 3, channels, channels))
        self.outer = TEMPER * kaiming(outer_key, (3, 3, channels, channels))

    def __call__(self, x: Array, plan: Array) -> Array:
        seen = jax.nn.relu(x + self.read(plan)[:, None, None, :])
        return x + convolve(jax.nn.relu(convolve(seen, self.inner, 1, 1)), self.outer, 1, 1)


class PlanReader(eqx.Module):
    """tanh(W·plan): what is large in a plan looks as what is small, so that sums look as their parts. In float32."""

    linear: Linear
    keeps_precision = True

    def __init__(self, plan: int, features: int, *, key: Array):
        self.linear = Linear(plan, features, fan=-2, key=key)

    def __call__(self, plan: Array) -> Array:
        product = jnp.matmul(plan, self.linear.weight, precision=lax.Precision.HIGHEST)
        return jnp.tanh(product + self.linear.bias)


class ResidualPolicy(Policy):
    """π for boards: the tiles, residual blocks, a few queries, two layers."""

    FEATURES = 128  # of its last hidden layer

    tiles: Conv
    reader: PlanReader
    blocks: tuple[Block, ...]
    queries: Linear
    layers: tuple[Linear, Linear]
    head: Head

    def __init__(self, side: int, colours: int, plan: int, head: Head, width: int = 64, depth: int = 6, *, key: Array):
        """`side`: of a tile, in pixels; `colours`: of a picture; `plan`: numbers in one."""
        tiles_key, reader_key, queries_key, first_key, second_key, *block_keys = jax.random.split(key, depth + 5)
        self.tiles = Conv(colours, width, side, side, 0, key=tiles_key)
        self.reader = PlanReader(plan, width, key=reader_key)
        self.blocks = tuple(Block(width, width, key=block_key) for block_key in block_keys)
        self.queries = Linear(width, QUERIES, fan=-2, key=queries_key)
        first = Linear(QUERIES * width, 2 * self.FEATURES, key=first_key)
        self.layers = first, Linear(2 * self.FEATURES, self.FEATURES, key=second_key)
        self.head = head

    def hidden(self, observations: tuple[Observation, ...], plan: Array | None = None) -> Array:
        [seen] = observations
        assert plan is not None, "it reads a plan"
        x = self._see(seen)
        read = self.reader(plan).astype(x.dtype)
        for block in self.blocks:
            x = block(x, read)
        x = self._attend(jax.nn.relu(x))
        for layer in self.layers:
            x = jax.nn.relu(layer(x))
        return x

    def _see(self, seen: Array | Tiled) -> Array:
        """(N, rows, columns, channels)"""
        first = self.tiles
        if isinstance(seen, Tiled):
            return convolve_tiled(first.weight, (seen.tiles,), seen.atlas, GREY) + first.bias
        return first(seen.astype(first.weight.dtype) / GREY)

    def _attend(self, x: Array) -> Array:
        """What each query finds on the board: (N, rows, columns, channels) to (N, queries · channels)"""
        places = x.reshape(len(x), -1, x.shape[-1])
        attention = jax.nn.softmax(self.queries(places, out=jnp.float32), axis=1).astype(x.dtype)
        return jnp.einsum("npq,npc->nqc", attention, places).reshape(len(x), -1)
