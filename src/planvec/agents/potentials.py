"""Encoders that are potentials: g(a, b) = Φ(b) − Φ(a).

Then plans add along a trajectory by construction, g(a, b) + g(b, c) = g(a, c), and doing nothing is no plan at all,
g(a, a) = 0. Nothing else adds so for all a, b and c: put c = a. What Φ sums over, cells or relations, has no place in
it, so a plan can say what was done and not where. Of a view from within there is no such sum: there Φ is a network.
"""

from abc import abstractmethod

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array, lax

from planvec.agents.encoders import GREY, Encoder, Linear, Observation
from planvec.agents.relations import relations
from planvec.data.tiles import Tiled
from planvec.worlds.spaces import Objects


class Potential(Encoder):
    """g(a, b) = Φ(b) − Φ(a), always in float32: what has not changed must cancel, whatever the sum is."""

    keeps_precision = True

    @abstractmethod
    def potential(self, observation: Observation) -> Array:
        """Φ of one observation each: (N, features)."""

    def __call__(self, observations: tuple[Observation, ...]) -> Array:
        first, last = observations
        return self.potential(last) - self.potential(first)


class TilePotential(Potential):
    """Φ of an image: the sum over its tiles of what three layers make of each."""

    layers: tuple[Linear, Linear, Linear]
    side: int = eqx.field(static=True)  # of a tile, in pixels

    def __init__(self, side: int, channels: int, features: int, hidden: int = 128, *, key: Array):
        sizes = (side * side * channels, hidden, hidden, features)
        keys = jax.random.split(key, 3)
        first, second, last = (Linear(a, b, key=k) for a, b, k in zip(sizes, sizes[1:], keys, strict=False))
        self.layers = first, second, eqx.tree_at(lambda layer: layer.weight, last, last.weight / 10)
        self.side = side

    def potential(self, observation: Array | Tiled) -> Array:
        """Of a picture made of tiles only their numbers matter: each tile is looked up, and counted."""
        if isinstance(observation, Tiled) and observation.atlas.pictures.shape[1:3] == (self.side,) * 2:
            table = self._of_tiles(jnp.asarray(observation.atlas.flat))
            numbers = observation.tiles.reshape(len(observation.tiles), -1, 1)
            counts = jnp.sum(numbers == jnp.arange(len(table)), axis=1, dtype=jnp.float32)
            return _exactly(counts, table)
        image = observation.draw() if isinstance(observation, Tiled) else observation
        n, height, width, channels = image.shape
        rows, columns = height // self.side, width // self.side
        tiles = image[:, : rows * self.side, : columns * self.side]
        tiles = tiles.reshape(n, rows, self.side, columns, self.side, channels).swapaxes(2, 3)
        return self._of_tiles(tiles.reshape(n, rows * columns, -1)).sum(axis=1)

    def _of_tiles(self, pixels: Array) -> Array:
        """What each tile adds to the sum: (…, pixels · channels) to (…, features)."""
        first, second, last = self.layers
        x = jax.nn.relu(_exactly(pixels.astype(jnp.float32) / GREY, first.weight) + first.bias)
        x = jax.nn.relu(_exactly(x, second.weight) + second.bias)
        return _exactly(x, last.weight) + last.bias


class RelationPotential(Potential):
    """Φ of objects: linear in how they stand to each other and to the landmarks."""

    linear: Linear
    space: Objects = eqx.field(static=True)

    def __init__(self, space: Objects, features: int, *, key: Array):
        inputs = relations(jnp.zeros(space.size), space).size
        self.linear = Linear(inputs, features, key=key)
        self.space = space

    def potential(self, observation: Array) -> Array:
        return _exactly(relations(observation, self.space), self.linear.weight)


class NetworkPotential(Potential):
    """Φ is what any network makes of one observation."""

    network: Encoder

    def potential(self, observation: Observation) -> Array:
        return self.network((observation,))


def _exactly(x: Array, weight: Array) -> Array:
    """A product in float32 throughout; a GPU would round to ten bits."""
    return jnp.matmul(x, weight, precision=lax.Precision.HIGHEST)
