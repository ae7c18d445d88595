"""Pairs of demonstrations on the accelerator, and samples of them for training."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import jax
import jax.numpy as jnp
from jax import Array

from planvec.data.samples import Batch, Samples

if TYPE_CHECKING:
    from planvec.worlds.protocol import World

NOISE = 0.1  # the share of the expert's actions that are random, unless told


class PairSet(Samples):
    """Pairs of demonstrations laid end to end: pair i is demonstrations 2i and 2i+1."""

    unit: ClassVar[str] = "pairs"
    size: ClassVar[int] = 2

    @staticmethod
    def fresh(world: "World", count: int, seed: Sequence[int]) -> "PairSet":
        """Pairs of demonstrations by the expert, of the world's usual tasks, in memory."""
        tasks = [task for task in world.sample_tasks((*seed, 0), count, *world.sizes) for _ in range(2)]
        demos = world.record(tasks, (*seed, 1), NOISE)
        return PairSet.of(world, world.replay(demos), demos.actions, demos.lengths)

    def sample(self, key: Array, batch: int, ended: float = 0.0) -> Batch:
        """Random pairs, either side being the reference, at a random time step each; a share of them, `ended`, at the
        very end. Pure: call it inside jit."""
        pair_key, side_key, time_key = jax.random.split(key, 3)
        pair = jax.random.randint(pair_key, (batch,), self.begin, self.end)
        side = jax.random.bernoulli(side_key, shape=(batch,)).astype(jnp.int32)
        demo = 2 * pair + side
        reference = 2 * pair + 1 - side
        length = self.lengths[demo]
        time = jax.random.randint(time_key, (batch,), 0, length)
        over = jax.random.bernoulli(jax.random.fold_in(time_key, 1), ended, (batch,))
        time = jnp.where(over, length, time)
        return Batch(
            first=self.moments(demo, jnp.zeros_like(time)),
            now=self.moments(demo, time),
            last=self.moments(demo, length),
            action=self.acts(demo, time),
            ref_first=self.moments(reference, jnp.zeros_like(time)),
            ref_last=self.moments(reference, self.lengths[reference]),
            over=over,
            next=self.moments(demo, jnp.minimum(time + 1, length)),
        )
