"""What g sees of objects: where they are, how they stand to each other and to the landmarks, and what stayed.

"On top of" and "in the corner" are narrow bumps in space, which layers that are fed positions alone learn slowly, and
mixed with the scene. Given as inputs, one linear layer is enough, and plans of parts add up to the plan of the whole.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from planvec.agents.encoders import UNIT, Encoder, Linear
from planvec.worlds.spaces import Objects


class RelationEncoder(Encoder):
    """The relations in two observations, positions, and which objects stayed → one linear layer."""

    linear: Linear
    space: Objects = eqx.field(static=True)

    def __init__(self, space: Objects, features: int, *, key: Array):
        related = space.objects * (space.objects - 1) // 2 * len(LEVELS) + space.objects * len(space.landmarks)
        self.linear = Linear(2 * (related + space.size) + space.objects, features, key=key)
        self.space = space

    def __call__(self, observations: tuple[Array, Array]) -> Array:
        """Positions (N, 3 · objects) in metres → features (N, features)."""
        first, last = observations
        moved = (last - first).reshape(*first.shape[:-1], -1, 3)
        seen = [relations(first, self.space), relations(last, self.space), near(moved, self.space.side)]
        return self.linear(jnp.concatenate([*seen, first / UNIT, last / UNIT], axis=-1), out=jnp.float32)


LEVELS = np.array([[0, 0, -1], [0, 0, 0], [0, 0, 1]], np.float32)  # one object under another, level with it, on top


def relations(positions: Array, space: Objects) -> Array:
    """For each pair of objects whether one is under, level with or on top of the other; and for each object whether it
    is at each landmark: from 0, far from it, to 1, exactly so. (…, 3 · objects) to (…, relations)"""
    objects = positions.reshape(*positions.shape[:-1], space.objects, 3)
    one, other = np.triu_indices(space.objects, 1)
    offsets = objects[..., one, :] - objects[..., other, :]
    stacked = near(offsets[..., None, :] - space.side * LEVELS, space.side)
    landmarks = np.array(space.landmarks, np.float32).reshape(-1, 2)
    placed = near(objects[..., None, :2] - landmarks, space.side)
    return jnp.concatenate([both.reshape(*positions.shape[:-1], -1) for both in (stacked, placed)], axis=-1)


def near(offsets: Array, side: float) -> Array:
    """A bump, half an object's side wide: 1 where there is no offset, 0.37 at half a side. (…, axes) to (…)"""
    return jnp.exp(-jnp.sum(jnp.square(offsets / (side / 2)), axis=-1))
